//! Processes, signals and threads; the moments at which a test kills the program, and how much is read of a child or
//! file.

pub(crate) mod failpoint;
pub(crate) mod interrupt;
pub(crate) mod limits;
pub(crate) mod parallel;
pub(crate) mod process;
pub(crate) mod sandbox;
#[cfg(target_os = "linux")]
mod supervisor;
#[cfg(test)]
pub(crate) mod testing;
