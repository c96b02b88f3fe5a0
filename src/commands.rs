//! What the program does, one file per command: a request in, an outcome out. Nothing here reads arguments or prints.

pub mod check;
pub mod hook;
pub mod tree;
pub mod verify;

// The commands that need the feature `localize`: those that reach the network.
#[cfg(feature = "localize")]
mod builds;
#[cfg(feature = "localize")]
mod fetching;
#[cfg(feature = "localize")]
pub mod localize;
#[cfg(feature = "localize")]
pub mod lock;
#[cfg(feature = "localize")]
pub mod update;

#[cfg(feature = "localize")]
pub use builds::{Again, Builds};
#[cfg(feature = "localize")]
pub use fetching::Fetching;

/// The commands, as users type them.
pub const NAMES: [&str; 8] = [
    "localize", "check", "lock", "update", "verify", "tree", "hook", "generate",
];

/// What happened to the files that a command was to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// It was written.
    Written,
    /// It was as it must be.
    Unchanged,
    /// It would have been written: `--dry-run`.
    DryRun,
    /// It was left as it was: there are warnings that are errors.
    Warned,
    /// It was left as it was: the result does not build to what the original builds to.
    Differs,
}
