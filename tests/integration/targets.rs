mod affected;
mod command;
mod diff;
mod patched;
mod tree;
