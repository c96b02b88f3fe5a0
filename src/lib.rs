//! `git kustomize-localize` vendors the remote bases of kustomizations, and proves that the build is the same.
//!
//! This page is the map of the program; read it before the code.
//!
//! # The main job
//!
//! [`localize`] does what `git kustomize-localize TARGET` asks for in five steps:
//!
//! 1. It opens a [`workspace`]: the files of a commit or on disk ([`tree`]), with the lock and the configuration.
//! 2. It makes a [`plan`]: each kustomization is parsed into references with their exact places ([`kustomization`]),
//!    which are classified as local or remote as kustomize does ([`reference`](mod@reference)), and followed
//!    ([`graph`]); remote files and roots are brought in, level by level ([`fetch`]); then every node of the graph is
//!    placed, the scalars are edited, and the files collected.
//! 3. It builds original and result with the user's kustomize, and compares the outputs ([`build`]).
//! 4. It writes the result and its record ([`record`]) to their [`destination`]: one commit on a branch, a directory,
//!    or the working tree. Nothing is written before the whole result is known. A branch and a directory change in one
//!    step; in a working tree each file does, and running it again finishes.
//! 5. It reports the outcome.
//!
//! A copy or in place, on a branch or on disk: these differ in what the plan writes and where it goes, and in nothing
//! else.
//!
//! Nothing that `check` calls reaches the network, unless it builds: then what the lock holds is fetched.
//!
//! # The rooms
//!
//! A room uses only rooms below it. Its own page has the rest of its files; tests of `NAME.rs` stand in it or in
//! `NAME/tests.rs`.
//!
//! | room | job | where its name does not tell |
//! |---|---|---|
//! | [`commands`] | what the program does, one file per command with its arguments, run and outcome, a page (`NAME.md`) and a schema of its JSON | findings as people see them: `findings.rs`; a format of `check`: `check/FORMAT.rs`; of `diff`: `diff/FORMAT.rs`; what a copy, `branch` and `vendor` have in common: `localize.rs`, their reports `localize/report.rs`; hooks: `hook/`; what was meant by a word that is no command: `usage.rs` |
//! | [`localize`] | one run of a copy, `branch` or `vendor`, from what the user named to what was written | what was named: `target.rs` |
//! | [`destination`] | where a plan goes | a branch: `on_branch.rs`; its worktree: `worktree.rs`; NEW_DIR: `directory.rs`; the working tree: `working.rs`; what a commit says of its change: `message.rs` |
//! | [`verify`](mod@verify) | compares a localized commit with its lock and trailers, and with upstream | |
//! | [`check`](mod@check) | the gate: what a hermetic build could not resolve, one file and one page per rule | exceptions: `suppression.rs`; what a base has, too: `known.rs`, and the roots and targets that lead to a finding: `starts.rs`; what is deployed: `deployed.rs`. The ids of rules: `message/rule.rs`; a repository against its base: `gate.rs`; what builds find: `build.rs`; what engines do to what was localized: `localized.rs` |
//! | [`build`] | builds original and result with kustomize, and compares the outputs | how a difference is found and shown, Secrets masked: `compare.rs`; what is built, and the one way to do it: `subject.rs`, `builds.rs`, `roots.rs`; of what a change touches: `choice.rs`; objects of engines as builds make them: `deployed.rs`; one build, with its environment: `run.rs`; builds that are remembered: `memory.rs`; which values are those of Secrets: `secrets.rs`; what it gets for a URL: `stand_in.rs`, `proxy.rs`; what a difference brings about: `consequences.rs`; what it asks for on the way: `os/sandbox/requests.rs` |
//! | [`plan`] | what localizing changes, as a copy or in place, and what locking does | `localized-files`: `layout.rs`; the new text of a reference: `spelling.rs`; `update`: `update.rs` |
//! | [`targets`] | what Flux and Argo CD deploy from a tree, how they build it, what they refuse, and what a change of it touches | an engine: `flux.rs` (its objects: `flux/models.rs`, its sources: `flux/source.rs`), `argo.rs` (its objects: `argo/models.rs`, what an ApplicationSet makes: `argo/generator.rs`), asked in `engine.rs`; the kinds of objects that are read at all: `scan.rs`; which URLs and revisions are this repository: `identity.rs`; which targets deploy an object: `deploys.rs`; what helm gets for a chart: `chart.rs`; what a change touches: `affected.rs` |
//! | [`workspace`] | what a run starts from: files of a commit or on disk, with configuration and lock | how what it names is fetched: `remotes.rs`; a lock in the middle of a merge: `conflict.rs` (two locks as one: `record/lock/merge.rs`) |
//! | [`fetch`] | git, http, helm, cache, earlier results: the only room that reaches the network | a request with its headers: `http/transport.rs`; redirects: `http.rs`; retries and waiting: `limit.rs`; which login a host gets: `reach.rs`; what upstream has now of what a lock lists: `answers.rs`; how much may come: `budget.rs`; its age and signature: `trust.rs` |
//! | [`graph`] | the survey: roots, files and references | a walk, and a part of what was walked: `survey.rs`; what counts of it, by configuration and lock: `judge.rs`; what they are called, and what `tree` says of them: `named.rs`; a local reference: `local.rs`; a remote one: `remote.rs`; charts: `chart.rs`, what is in them: `chart/archive.rs`, `chart/files.rs`, `chart/schema.rs`; [`graph::Remotes`], which `fetch` implements: `remote_ref.rs` |
//! | [`config`] | `.kustomize-localize`: the configuration of a repository | its keys: `config.rs`, `schema.json`, and how their values are read: `read.rs`; `allow`: `allow.rs`, what an entry covers `address.rs`; `sources`: `source.rs`; comments: `comment.rs` |
//! | [`record`] | lock and trailers, written, read and checked by the same code | the lock: `lock/`; the trailers of a commit: `trailers.rs`; what a localized branch holds of them: `history/` |
//! | [`kustomization`] | YAML with places, and edits of its scalars | the one table of fields: `fields.rs`; plugin configurations: `plugin.rs`; YAML of our own formats: `format.rs`; values as types of `serde`: `typed.rs` |
//! | [`reference`](mod@reference) | the grammar of a reference | of a git URL: `spec.rs`, its query: `query.rs`; what else a text may be: `classify.rs`; what nobody should be given: `unsafe_text.rs`; which upstream a text names: `upstream.rs`; where it is put: `localized_path.rs` |
//! | [`tree`] | read-only files: of a commit, on disk, in memory | as a checkout converts them: `checkout.rs` |
//! | [`git`] | the git executable | for this repository, with its connection settings and the commits that are made and signed: `local_repo.rs`, `local_repo/`; for a remote one: `remote_git/` (`git fetch`: `remote_git/fetching.rs`); signatures of upstreams: `signature.rs` |
//! | [`os`] | processes, signals, threads | starting a program: `process.rs`; what keeps it from the rest of the machine: `sandbox.rs`; how much is read of a child or file: `limits.rs` |
//! | [`message`] | what stopped the work, what is wrong with the files, what must not be shown | `failure.rs`, `finding.rs`, `redact.rs`; the identity of what is remote: `upstream.rs`, how firmly a ref names a commit: `pin.rs`; what looks like a token: `redact/token.rs` |
//!
//! # Rules that hold everywhere
//!
//! - Everything from outside is hostile: kustomizations, URLs, refs, repositories, HTTP bodies. Anything
//!   that git could take for an option is refused before git is started; paths from outside never leave
//!   their directory.
//! - A secret (userinfo, token, signed query) is never written to a path, a record or a message.
//! - A [`message::failure::Failure`] says where, what, and what to do. It is not a finding.

#![cfg_attr(test, allow(clippy::expect_used, clippy::unwrap_used))]

mod build;
mod check;
mod commands;
mod config;
mod destination;
mod fetch;
mod git;
mod graph;
mod kustomization;
mod localize;
mod message;
mod os;
mod plan;
mod record;
mod reference;
mod targets;
mod tree;
mod verify;
mod workspace;

use std::process::ExitCode;

/// Runs the program: arguments in, exit status out.
pub fn main() -> ExitCode {
    if let Some(status) = as_git() {
        return status;
    }
    os::interrupt::install();
    commands::run()
}

/// Runs the stand-in where a build calls this executable by the name of another program.
pub fn as_git() -> Option<ExitCode> {
    build::stand_in::run()
}

/// What tests, benches and fuzz targets call without starting the program. No interface for others.
#[doc(hidden)]
pub mod seams {
    pub mod check {
        pub use crate::check::{Checked, Input, check};
        pub use crate::commands::check::formats as report;
        pub use crate::git::Snapshot;
    }
    pub mod record {
        pub use crate::record::{Lock, Mode, StoredFile, Trailers, sha256_hex};
    }
    pub mod tree {
        pub use crate::git::{object_id, open};
        pub use crate::tree::git::GitTree;
        pub use crate::tree::overlay::OverlayTree;
        pub use crate::tree::path::{join, name, parent, relative};
        pub use crate::tree::{Entry, Tree};
    }
    pub mod kustomization {
        pub use crate::kustomization::{Edit, FILE_NAMES, edit, read, read_plugin, reshaping};
    }
    pub mod graph {
        pub use crate::graph::archive;
    }
    pub mod reference {
        pub use crate::reference::localized_path::{file_segments, root_segments};
        pub use crate::reference::{RepoSpec, refuse_unsafe};
    }
    pub use crate::config::Config;
    pub use crate::message::failure::Failures;
    pub use crate::message::finding::Rule;
    pub use crate::os::parallel::{processors, side_by_side};
    pub mod redact {
        pub use crate::message::redact::{has_secret, url};
    }
    pub use crate::targets::Identity;
}
