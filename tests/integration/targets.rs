mod affected;
mod command;
mod tree;
