//! Where a result goes: one commit on a branch, or a plain directory. All of it or nothing.

pub mod branch;
pub mod directory;
pub mod merged;
pub mod objects;
pub mod records;
pub mod tip;
pub mod working;
pub mod worktree;
