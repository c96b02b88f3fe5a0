//! `git kustomize-localize` makes `kustomize build` hermetic, with git as the ledger.
//!
//! This page is the map of the program; read it before the code.
//!
//! # The main job
//!
//! `git kustomize-localize TARGET` ([`cli`]) reads the target from a commit ([`tree`]), parses each
//! kustomization into references with their exact places ([`kustomization`]), tells local from
//! remote as kustomize does ([`reference`](mod@reference)) and follows every one of them ([`walk`]). Remote files
//! and remote roots are brought in, level by level ([`fetch`]). The graph that the walk yields is
//! then localized in three pure steps ([`localize`]): place every node, edit the scalars, collect
//! the files. Original and result are built with the user's kustomize, and the outputs compared
//! ([`build_check`]). The result and its record ([`record`]) go into one commit on a branch, or into a plain
//! directory ([`commit`]); what was done is told by [`report`].
//!
//! Nothing in the way of `check` reaches the network, and a build without the feature `localize` has no
//! [`fetch`] at all.
//!
//! Nothing is written before the whole result is known, and then all of it or nothing.
//!
//! # The rooms
//!
//! A room uses only rooms below it.
//!
//! | room | job |
//! |---|---|
//! | [`cli`] | arguments to calls, one file per command |
//! | [`hook`](mod@hook) | hooks of git: putting them in, taking them out, what one that runs has to judge |
//! | [`report`] | what is said: for people, as JSON |
//! | [`verify`](mod@verify) | a localized commit against its lock and trailers; with an answer of upstream, what became of it there |
//! | [`reference_tree`] | the graph as people see it: what references what, in which state |
//! | [`check`](mod@check) | the rules: what a hermetic build could not resolve |
//! | [`mend`] | what makes a working tree pass the check: its lock brought up to date, localizing where it stands; also for a branch |
//! | [`commit`] | the branch, the tip, trees and blobs, a linked worktree, a plain directory |
//! | [`build_check`] | the build of the original, that of the result, and what they have in common |
//! | [`localize`] | layout, rewrite, result |
//! | [`fetch`] | git, http, helm, cache, what the tip holds: the only room that reaches the network |
//! | [`walk`] | the graph of roots, files and references; defines [`walk::Remotes`], which `fetch` implements |
//! | [`config`] | `.kustomize-localize`: what a team decides for its repository |
//! | [`record`] | lock and trailers, written, read and checked by the same code |
//! | [`kustomization`] | the one table of fields, YAML with spans, edits of scalars |
//! | [`reference`](mod@reference) | the grammar of a reference, the path of what it names |
//! | [`tree`] | read-only files: of a commit, on disk, in memory |
//! | `yaml` | YAML of our own formats: the lock, the configuration |
//! | [`git`] | what is asked of the git executable: of this repository, of a foreign one |
//! | [`process`], [`interrupt`] | deadlines, process groups, what must not outlive us |
//! | [`failpoint`] | the moments before something changes that stays: a test ends us at each of them |
//! | [`failure`], [`finding`], [`redact`] | what stopped the work, what is wrong with the files, what is never shown |
//!
//! # Rules that hold everywhere
//!
//! - Everything from outside is hostile: kustomizations, URLs, refs, repositories, HTTP bodies. What
//!   git could take for an option is refused before git is started; paths from outside never leave
//!   the place that they were given.
//! - A secret (userinfo, token, signed query) is never written: not to a path, a record, a message.
//! - A [`failure::Failure`] says where, what, and what to do. It is not a finding.

#![cfg_attr(test, allow(clippy::expect_used, clippy::unwrap_used))]

pub mod build_check;
pub mod check;
pub mod cli;
pub mod commit;
pub mod config;
pub mod failpoint;
pub mod failure;
#[cfg(feature = "localize")]
pub mod fetch;
pub mod finding;
pub mod git;
pub mod hook;
pub mod interrupt;
pub mod kustomization;
pub mod localize;
pub mod mend;
pub mod process;
pub mod record;
pub mod redact;
pub mod reference;
pub mod reference_tree;
pub mod report;
pub mod tree;
pub mod verify;
pub mod walk;
mod yaml;
