//! What a localized branch holds: the records of its messages, and whether its files still match them.

pub mod records;
pub mod tip;
pub mod trees;

/// Below this name lie the branches that we make.
pub const PREFIX: &str = "localized/";

/// Returns whether a ref is a localized branch, local or remote-tracking, by its full name.
#[must_use]
pub fn is_ours(name: &str) -> bool {
    let of_remote = |name: &str| {
        Some(
            name.strip_prefix("refs/remotes/")?
                .split_once('/')?
                .1
                .to_owned(),
        )
    };
    let branch = match name.strip_prefix("refs/heads/") {
        Some(branch) => Some(branch.to_owned()),
        None => of_remote(name),
    };
    branch.is_some_and(|branch| branch.starts_with(PREFIX))
}
