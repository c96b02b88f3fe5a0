mod command;
mod conflicts;
mod entries;
mod update;
