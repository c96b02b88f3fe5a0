mod command;
mod conflicts;
mod decides;
mod entries;
mod init;
mod sbom;
mod status;
mod update;
