mod command;
mod conflicts;
mod entries;
mod sbom;
mod update;
