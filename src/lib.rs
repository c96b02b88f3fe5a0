//! `git kustomize-localize` vendors the remote bases of kustomizations, and proves that the build is the same.
//!
//! This page is the map of the program; read it before the code.
//!
//! # The main job
//!
//! [`localize`] runs `git kustomize-localize TARGET` in five steps:
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
//! A copy or in place, on a branch or on disk: these differ only in the files that the plan writes, and in its
//! destination.
//!
//! `check` never reaches the network, unless it builds: then it fetches the content of the lock.
//!
//! # The rooms
//!
//! A room uses only rooms below it. Its own page says more: `ROOM.rs`, beside the directory. Tests of `NAME.rs` stand
//! in it or in `NAME/tests.rs`. Files whose names tell enough are not listed.
//!
//! [`commands`]: one file per command with arguments, run and outcome, a page (`NAME.md`) and a schema of its JSON
//! - findings for people: `findings.rs`; words and tables that reports share (moved entries, ages, signers, hints):
//!   `messages.rs`
//! - options of every command, and the names of formats: `output.rs`
//! - a format of `check`: `check/{human,github,gitlab,sarif}.rs`, what GitHub and GitLab share: `check/issue.rs`; the
//!   fingerprint of a finding: `check.rs`, from its identity: `message/finding.rs`
//! - a format of `diff`: `diff/{human,markdown,html}.rs`, and what all of these show first: `diff/summary.rs`
//! - the common part of a copy, `branch` and `vendor`: `localize.rs`, their reports: `localize/report.rs`
//! - what `update` prints, and the entries that it leaves alone: `update.rs`
//! - an SBOM: its entries `sbom/component.rs`, its formats `sbom/formats.rs`, licenses `sbom/licenses.rs`, images
//!   `sbom/images.rs`
//! - hooks: their names `hook.rs`, their scripts `../hooks/`, installing them `hook/install.rs`, what a hook
//!   checks `hook/pending.rs`
//! - guesses about unknown words: `usage.rs`; completions: `completion.rs`
//! - guides (`help NAME`: the configuration, formats, remotes, recipes and more): `src/manual/NAME.md`, their list:
//!   `manual.rs`
//!
//! [`localize`]: one run of a copy, `branch` or `vendor`, from the arguments to the written files
//! - the named target: `target.rs`; rendered files: `rendered.rs`
//!
//! [`destination`]: where a plan goes
//! - which branch, and why it must not be moved (checked out elsewhere, behind, diverged): `branch.rs`; its commit, its
//!   state for `status`, the subject and the values of its trailers: `on_branch.rs`; the text between these two, with
//!   subjects of upstream commits: `message.rs`; the worktree of `--worktree`: `worktree.rs` (made in
//!   `git/local_repo/worktrees.rs`)
//! - NEW_DIR: `directory.rs`; the working tree: `working.rs`; rendered files: `rendered.rs`
//!
//! [`verify`](mod@verify): compares a localized commit with its lock and trailers, and with upstream
//! - the lock against trailers and messages: `message.rs`
//! - upstream: `upstream_status.rs`; the verdict on a ref that moved is made in `fetch/answers.rs`
//!
//! [`check`](mod@check): the gate; each rule has a page `RULE.md`, and a file of that name if it is found here
//! - the ids of rules, with severities: `message/rule.rs`; exceptions: `suppression.rs`, also an entry of `allow` that
//!   covers nothing; a comment that allows nothing, a missing reason, a pattern of `include` or `exclude` without
//!   effect: `stale_allow.rs`
//! - rules about a trouble of the walk: `context.rs`; about sources: `sources.rs`; about builds: `unread_reference.rs`,
//!   `localize.rs`; licenses: `plan/license.rs`; executables: `plan/files.rs`; rewritten branches: `commands/update.rs`
//! - what a rule gets, and how it makes a finding at a reference: `context.rs`; what is behind a locked reference:
//!   `unlocked_dependency.rs`
//! - a repository against its base: `gate.rs`; findings of the base: `base.rs`; the roots and targets that lead to a
//!   finding: `starts.rs`
//! - targets: `deployed.rs`; findings of builds: `build.rs`; effects of engines on localized files: `localized.rs`
//!
//! [`build`]: builds original and result with kustomize, and compares the outputs
//! - what is built: `subject.rs`; the one way to build it: `builds.rs`, `roots.rs`; one build with its environment and
//!   limits: `run.rs`; the two builds of each root of a plan: `runner.rs`
//! - the files of a build: `inputs.rs`, on disk: `disk.rs`; `kustomize edit` before a build: `edits.rs`
//! - the kustomize or helm of the machine, and what options and configuration say about it: `program.rs`; responses for
//!   git and URLs: `stand_in.rs`, `proxy.rs`; the requests of a build: `os/sandbox/requests.rs`
//! - remembered builds: `memory.rs`; earlier proofs that still hold: `earlier.rs`; values of Secrets: `secrets.rs`
//! - the builds of a comparison: `choice.rs`; parts of a build that fails: `parts.rs`; differences, with Secrets
//!   masked: `compare.rs`; their consequences, in the order of their danger: `consequences.rs`, from one object:
//!   `consequences/facts.rs`
//! - objects of engines as builds make them: `deployed.rs`; files for all builds: `rendered.rs`
//!
//! [`plan`]: the changes of localizing, as a copy or in place, and of locking
//! - paths in `localized-files` that would be equal: `layout.rs`; the files that we add there: `result.rs`, licenses:
//!   `license.rs`
//! - the path of each node in the result: `placing.rs`; the new text of a reference: `spelling.rs`; the proof that
//!   nothing remote is left: `proof.rs`
//! - the entries that a lock gets, keeps and drops: `lock.rs`, `remotes.rs`; in place, edits and files in the way:
//!   `in_place/tree_changes.rs`
//! - the URLs that `update` names, and the refs that it writes: `update.rs`
//!
//! [`targets`]: what Flux and Argo CD deploy from a tree, how they build it, what they refuse, what a change touches
//! - what all engines do, asked in `engine.rs`; the kinds of objects that are read at all: `scan.rs`; which URLs and
//!   revisions are this repository: `identity.rs`; the versions of engines: `engine_versions.rs`
//! - Flux: `flux.rs`, its objects with their fields: `flux/models.rs`, which source a target has: `flux/source.rs`, the
//!   files that it does not see: `flux/ignore.rs`, which variables a target has: `flux/variables.rs`, filling them in:
//!   `flux/substitution.rs`
//! - Argo CD: `argo.rs`, its objects: `argo/models.rs`, what an ApplicationSet makes, and the paths that git generators
//!   take: `argo/application_set.rs`, each kind of generator: `argo/generator.rs`, templates: `argo/template.rs`, its
//!   `kustomize edit` commands: `argo/edit.rs`, the variables in its fields: `argo/environment.rs`, a directory without
//!   a kustomization: `argo/plain.rs`, manifest-generate-paths: `argo/watched.rs`
//! - the kustomization that Flux makes of a directory: `generated.rs`; what helm gets for a chart, and what is refused:
//!   from all engines `chart.rs`, from one `flux/release.rs`, `argo/release.rs`; globs of both engines:
//!   `argo/pattern.rs`
//! - objects as builds make them: `built.rs`, and who may change them before: `changers.rs`; which targets deploy an
//!   object: `deployments.rs`; what becomes of deployed objects: `policy.rs`
//! - the state of a target (localized, remote, unknown and so on): `external_inputs.rs`; objects that nothing deploys:
//!   `undeployed.rs`; files that could not be read: `unread.rs`
//! - what a change touches: `affected.rs`, by its targets: `affected/deployed.rs`, by ConfigMaps whose values Flux
//!   fills in: `affected/filled.rs`
//!
//! [`workspace`]: the input of a run: files of a commit or on disk, with configuration and lock
//! - its fetcher: `remotes.rs`; a lock in the middle of a merge: `conflict.rs` (two locks as one:
//!   `record/lock/merge.rs`)
//!
//! [`fetch`]: git, http, helm, cache, earlier results: the only room that reaches the network
//! - a request with its headers: `http/transport.rs`; redirects: `http.rs`, those of git: `network.rs`; retries and
//!   waiting: `limit.rs`; to which hosts a request may go, and with which login: `reach.rs`
//! - why a request failed, with the hint: `http/transport.rs`, of git: `git/failure.rs`, of helm: `helm.rs`
//! - the longest time for one fetch: `fetch.rs`; the bytes that a run and a file of it may fetch: `budget.rs`; what a
//!   terminal shows meanwhile, also of builds: `progress.rs`
//! - which objects a `git fetch` asks for: `git.rs`; a fetched commit: `checkout.rs`, its submodules: `submodule.rs`;
//!   results of a tip: `tip.rs`; the cache: `cache.rs`; charts: `helm.rs`; which tag is a newer version: `release.rs`
//! - the current state of locked upstreams: `answers.rs`, the commits since the locked one: `history.rs`; age and
//!   signature: `trust.rs`
//!
//! [`graph`]: the survey: roots, files and references
//! - a walk, and parts of it: `survey.rs`; nodes and edges: `nodes.rs`, their names for people: `named.rs`
//! - the decisions of configuration and lock: `judge.rs`; the inputs of a build: `inputs.rs`
//! - a local reference: `local.rs`; a remote one: `remote.rs`; [`graph::Remotes`], which `fetch` implements:
//!   `remote_ref.rs`; charts: `chart.rs`, their files: `chart/archive.rs`, `chart/files.rs`, `chart/schema.rs`;
//!   plugins: `plugin.rs`
//! - references that could not be followed: `trouble.rs`, the way to one in an upstream: `chain.rs`
//!
//! [`config`]: `.kustomize-localize`, the configuration of a repository
//! - its keys: `config.rs`, `schema.json`, its guide: `src/manual/configuration.md`; the keys of entries of `allow` and
//!   other lists, and how values are read: `read.rs`
//! - the roots at which a run starts (`include`, `exclude`): `starts.rs`
//! - what an entry of `allow` covers, and the text of a new one: `allow.rs`, its URLs: `address.rs`; `sources`:
//!   `source.rs`
//! - exceptions in comments of kustomizations: `comment.rs`; additions to the file: `append.rs`
//!
//! [`record`]: lock and trailers, written, read and checked by the same code
//! - the lock: an entry in memory: `lock.rs`, its keys and its text: `lock/text.rs`, its checks: `lock/validate.rs`,
//!   its schema: `lock/schema.json`, its guide: `src/manual/formats.md`; stored files: `stored.rs`;
//!   digests: `record.rs`
//! - the trailers of a commit: `trailers.rs`, those that tell how it was verified: `verified.rs`; the records of a
//!   localized branch: `history/`
//!
//! [`kustomization`]: YAML with positions, and edits of its scalars
//! - the one table of fields: `fields.rs`, applied: `read.rs`; plugin configurations: `plugin.rs`; YAML of our own
//!   formats: `format.rs`; values as types of `serde`: `typed.rs`
//!
//! [`reference`](mod@reference): the grammar of a reference
//! - a git URL: `spec.rs`, its query: `query.rs`; other kinds of texts: `classify.rs`; unsafe texts: `unsafe_text.rs`;
//!   addresses of web pages: `web_page.rs`; the version in the URL of a file: `file_url.rs`
//! - the upstream of a text: `upstream.rs`; its path in `localized-files`, and the characters that are allowed there:
//!   `localized_path.rs`
//!
//! [`tree`]: read-only files: of a commit, on disk, in memory
//! - as a checkout converts them: `checkout.rs` (by the attributes of `git/checkout.rs`); which files are licenses:
//!   `license.rs`
//! - why a path is missing, with the hint: `absence.rs`
//! - following symbolic links: `tree.rs`; why a link of a reference is refused: `graph/local.rs`
//!
//! [`git`]: the git executable
//! - the variables that it gets or must not see: `git.rs`, those of an upstream: `remote_git.rs`; attributes:
//!   `checkout.rs`
//! - this repository, with its connection settings, the commits that are made and signed, and renames since the base:
//!   `local_repo.rs`, `local_repo/`; the dates of commits: `date.rs`
//! - a remote one: `remote_git/` (`git fetch`: `remote_git/fetching.rs`); signatures of upstreams: `signature.rs`
//!
//! [`os`]: processes, signals, threads
//! - starting a program: `process.rs`; what an interruption removes: `interrupt.rs`; the isolation of a program from
//!   the machine: `sandbox.rs`, refused system calls: `sandbox/filter.rs`, the files that it may read and write:
//!   `sandbox/linux.rs`
//! - limits on trees, YAML and charts: `limits.rs` (on a build: `build/run.rs`; on a fetch: `fetch.rs`,
//!   `fetch/budget.rs`)
//!
//! [`message`]: failures, findings, and secrets that must not be shown
//! - `failure.rs`, `finding.rs`, `redact.rs`; patterns of tokens: `redact/token.rs`; the identity of an upstream:
//!   `upstream.rs`; how firmly a ref names a commit: `pin.rs`
//!
//! # Outside of `src`
//!
//! | path | content |
//! |---|---|
//! | `action.yml`, `hooks/action` | the GitHub Action: runs the program, and comments on a pull request |
//! | `hooks/` | the hooks that are installed, and configurations to copy: pre-commit, lefthook, Renovate, a server |
//! | `.ci/` | `run` checks a change, `release` tries what `.github/release.sh` builds, for one platform; the others install tools |
//! | `.github/workflows/` | each change: `ci.yml`; each night: `nightly.yml`; a release and its platforms: `release.yml`; for other repositories to call: `localize.yml`, `lock.yml`, `upstream.yml` |
//! | `.github/` | building and packing a release: `release.sh`; how to contribute: `CONTRIBUTING.md` |
//! | `templates/` | the GitLab component, where GitLab looks for it |
//! | `.pre-commit-hooks.yaml`, `pyproject.toml` | the hooks for the pre-commit framework, and the package that it installs |
//! | `tests/integration` | the program as people run it; `tests/snapshots` has its output, `tests/parity` what the kustomize of `.ci/kustomize` does, `tests/fuzz` the fuzz targets |
//!
//! Exit statuses: 0 clean, done, or nothing to do; 1 findings, or builds differ; 2 (`FAILED` of `message/failure.rs`)
//! the work could not be done. A command returns 0 or 1 by `Outcome::status`, and an error for 2.
//!
//! Variables for debugging, read by debug builds or tests only:
//!
//! | variable | effect |
//! |---|---|
//! | `KUSTOMIZE_LOCALIZE_FAILPOINTS=FILE`, `…_STOP_AT=N` | list the effects of a run; end it at the Nth, as SIGKILL does (`os/failpoint.rs`) |
//! | `KUSTOMIZE_LOCALIZE_WALKS=FILE` | write a line for each walk of a tree |
//! | `KUSTOMIZE_LOCALIZE_KEEP_SANDBOX=1` | keep the directories of the integration tests |
//! | `KUSTOMIZE_LOCALIZE_WORLDS=N`, `…_CASE=NAME` | the number of random worlds, one case of `parity::` |
//!
//! # Rules that hold everywhere
//!
//! - Everything from outside is hostile: kustomizations, URLs, refs, repositories, HTTP bodies. Anything
//!   that git could take for an option is refused before git is started; paths from outside never leave
//!   their directory.
//! - A secret (userinfo, token, signed query) is never written to a path, a record or a message.
//! - A [`message::failure::Failure`] has a location, a message and hints. It is not a finding.

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

/// The functions that tests, benches and fuzz targets call without starting the program. It is not an interface.
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
