//! `git kustomize-localize` vendors the remote bases of kustomizations, and proves that the build is the same.
//!
//! This page is the map of the program; read it before the code.
//!
//! # The main job
//!
//! [`commands::localize`](commands) does what `git kustomize-localize TARGET` asks for in five steps:
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
//! Nothing that `check` calls reaches the network.
//!
//! # The rooms
//!
//! A room uses only rooms below it.
//!
//! | room | job |
//! |---|---|
//! | [`commands`] | what the program does, one file per command, and what it prints; findings as people see them: `commands/findings.rs`; hooks: `commands/hook`; the manual |
//! | [`destination`] | where a plan goes: a branch and its worktree, a directory, the working tree; and what the message of its commit says (`destination/message.rs`) |
//! | [`verify`](mod@verify) | compares a localized commit with its lock and trailers, and with upstream |
//! | [`check`](mod@check) | the rules, one file and one page per rule: what a hermetic build could not resolve; the list of their ids is `message/rule.rs` |
//! | [`build`] | builds original and result, and compares the outputs; what a build sees of its environment: `build/run.rs`; what a difference brings about: `build/consequences.rs` |
//! | [`plan`] | what localizing changes, as a copy or in place, and what locking does; the layout of `localized-files` (`plan/layout.rs`; its segments: `reference/localized_path.rs`) |
//! | [`targets`] | what Flux, Argo CD and Fleet deploy from a tree, how they build it, and what a change of it touches, each engine in its own module, asked in `targets/engine.rs`; the kinds of objects that are read at all: `targets/scan.rs` |
//! | [`workspace`] | what a run starts from: files of a commit or on disk, with configuration and lock |
//! | [`fetch`] | git, http, helm, cache, earlier results: the only room that reaches the network; how much it may take is `fetch/budget.rs`; how old it is and who signed it: `fetch/trust.rs` |
//! | [`graph`] | roots, files and references, and what they are called (`graph/named.rs`); defines [`graph::Remotes`], which `fetch` implements |
//! | [`config`] | `.kustomize-localize`: the configuration of a repository |
//! | [`record`] | lock and trailers, written, read and checked by the same code; what a localized branch holds of them |
//! | [`kustomization`] | the one table of fields, YAML with spans, edits of scalars; YAML of our own formats |
//! | [`reference`](mod@reference) | the grammar of a reference, the path of what it names |
//! | [`tree`] | read-only files: of a commit, on disk, in memory |
//! | [`git`] | the git executable: for this repository, for a remote one; signatures |
//! | [`os`] | processes and their deadlines, signals, threads; how much is read of a child or file |
//! | [`message`] | what stopped the work, what is wrong with the files, what must not be shown; what looks like a token: `message/redact/token.rs` |
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
        pub use crate::check::{Checked, Checking, Input, check};
        pub use crate::commands::check::formats as report;
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
    pub mod fetch {
        pub use crate::fetch::helm::archive;
    }
    pub mod reference {
        pub use crate::reference::localized_path::{file_place, root_place};
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
