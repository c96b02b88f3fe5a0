mod example;
mod generate;
mod packaging;
mod pictures;
mod readme;
pub(crate) mod release;
mod rooms;
mod scripts;
mod workflows;
