mod changes;
mod clones;
pub(crate) mod commits;
mod following;
mod gitops;
mod hydrator;
mod shortlog;
mod worktree;
