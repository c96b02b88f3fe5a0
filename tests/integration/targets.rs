mod affected;
mod agree;
mod charts;
mod command;
mod diff;
mod judged;
mod patched;
mod tree;
