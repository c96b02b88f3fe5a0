mod command;
mod conflicts;
mod entries;
mod init;
mod sbom;
mod status;
mod update;
