//! Processes, signals and threads; the moments at which a test kills the program, and how much is taken from outside.

pub(crate) mod failpoint;
pub(crate) mod interrupt;
pub(crate) mod limits;
pub(crate) mod parallel;
pub(crate) mod process;
