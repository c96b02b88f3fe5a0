mod affected;
mod charts;
mod command;
mod diff;
mod patched;
mod tree;
