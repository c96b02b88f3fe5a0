mod affected;
mod agree;
mod charts;
mod command;
mod diff;
mod patched;
mod tree;
