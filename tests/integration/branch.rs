mod again;
mod clones;
pub(crate) mod commits;
mod following;
mod gitops;
mod green;
mod hydrator;
mod push;
mod rendered;
mod shortlog;
mod uncommitted;
mod worktree;

const BRANCH: &str = "refs/heads/localized/main";
