//! `git kustomize-localize` makes `kustomize build` hermetic, with git as the ledger.
//!
//! This page is the map of the program; read it before the code.
//!
//! # The main job
//!
//! `git kustomize-localize TARGET` becomes a request ([`cli`]), and [`commands::localize`](commands) does it in five steps:
//!
//! 1. It opens a [`workspace`]: the files of a commit or on disk ([`tree`]), with the lock and the configuration.
//! 2. It makes a [`plan`]: each kustomization is parsed into references with their exact places ([`kustomization`]), local
//!    ones are told from remote ones as kustomize does ([`reference`](mod@reference)), and all are followed ([`walk`]);
//!    remote files and roots are brought in, level by level ([`fetch`]); then every node of the graph is placed, the
//!    scalars edited, the files collected.
//! 3. Original and result are built with the user's kustomize, and the outputs compared ([`build_check`]).
//! 4. The result and its record ([`record`]) go to their [`destination`]: into one commit on a branch, a directory, or the
//!    working tree. Nothing is written before the whole result is known, and then all of it or nothing.
//! 5. The outcome is reported ([`report`]).
//!
//! A copy or the repository where it stands, on a branch or on disk: these differ in what the plan writes and where it
//! goes, and in nothing else.
//!
//! Nothing in the way of `check` reaches the network, and a build without the feature `localize` has no
//! [`fetch`] at all.
//!
//! # The rooms
//!
//! A room uses only rooms below it.
//!
//! | room | job |
//! |---|---|
//! | [`cli`] | arguments to requests, outcomes to reports and exit statuses; one file per command |
//! | [`report`] | what is said: for people, as JSON, SARIF and GitHub annotations |
//! | [`commands`] | what the program does, one file per command: a request in, an outcome out; nothing is printed |
//! | [`destination`] | where a plan goes: a branch and its worktree, a directory, the working tree |
//! | [`verify`](mod@verify) | a localized commit against its lock and trailers; and what upstream says of it now |
//! | [`reference_tree`] | the graph as people see it: what references what, in which state |
//! | [`check`](mod@check) | the rules: what a hermetic build could not resolve |
//! | [`hook`](mod@hook) | hooks of git: putting them in, taking them out, what one that runs has to judge |
//! | [`build_check`] | the build of the original, that of the result, and what they have in common |
//! | [`plan`] | what localizing changes, as a copy or in place, and what locking does |
//! | [`workspace`] | what a run starts from: files of a commit or on disk, with configuration and lock |
//! | [`history`] | what a branch of ours holds: its records, and whether it still is what they say |
//! | [`fetch`] | git, http, helm, cache, what was localized before: the only room that reaches the network |
//! | [`walk`] | the graph of roots, files and references; defines [`walk::Remotes`], which `fetch` implements |
//! | [`config`] | `.kustomize-localize`: what a team decides for its repository |
//! | [`record`] | lock and trailers, written, read and checked by the same code |
//! | [`kustomization`] | the one table of fields, YAML with spans, edits of scalars |
//! | [`reference`](mod@reference) | the grammar of a reference, the path of what it names |
//! | [`tree`] | read-only files: of a commit, on disk, in memory |
//! | `yaml` | YAML of our own formats: the lock, the configuration |
//! | [`git`] | what is asked of the git executable: of this repository, of a remote one |
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
pub mod commands;
pub mod config;
#[cfg(feature = "localize")]
pub mod destination;
pub mod failpoint;
pub mod failure;
#[cfg(feature = "localize")]
pub mod fetch;
pub mod finding;
pub mod git;
pub mod history;
pub mod hook;
pub mod interrupt;
pub mod kustomization;
pub mod plan;
pub mod process;
pub mod record;
pub mod redact;
pub mod reference;
pub mod reference_tree;
pub mod report;
pub mod tree;
pub mod verify;
pub mod walk;
pub mod workspace;
mod yaml;
