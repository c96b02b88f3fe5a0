mod affected;
mod command;
mod diff;
mod tree;
