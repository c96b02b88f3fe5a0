//! Fetching: a commit with all of its files, without the larger ones, without any; and files by their ids.

use std::path::Path;
use std::process::Command;

use super::{REMOTE, RemoteGit, path_option};
use crate::os::failpoint;
use crate::os::process::{self, Limits, Output, Terminal};

/// Who chose the URL of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The user, in a kustomization or on the command line.
    ByUser,
    /// A fetched repository, in its `.gitmodules`.
    ByRepository,
}

/// Leaves out the files of 1 KiB and more. Most kustomizations are smaller: with them at hand, what a build reads is
/// known without another request. In trees, a file costs about 50 bytes itself.
const SMALL_FILES: &str = "blob:limit=1k";
const NO_FILES: &str = "blob:none";
const NO_TREES: &str = "tree:0";

/// What one fetch brings.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Wanted<'a> {
    /// Commits, by their ids or refs, with all of their files: as `refs/kl/0` and so on.
    Commits(&'a [&'a str]),
    /// The same without their larger files, where the server can leave them out.
    SmallFiles(&'a [&'a str]),
    /// Files by their ids, one a line.
    Files(&'a str),
}

/// A commit to fetch, and the name that it gets below `refs/kl/`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RefSpec<'a> {
    /// Its id, or a ref.
    pub id: &'a str,
    pub name: &'a str,
}

/// How much of the history before a commit is fetched with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Depth {
    /// Nothing.
    One,
    /// What was made since then, in seconds since the epoch.
    Since(u64),
    /// All of it.
    All,
}

impl RemoteGit {
    /// A command that fetches into the bare repository at `directory`, from what is spoken to.
    fn fetching(&self, directory: &Path, terminal: Terminal) -> Command {
        let mut command = self.command();
        command
            // `--git-dir`, not `-C`: the user may have set `safe.bareRepository=explicit`.
            .arg(path_option("--git-dir=", directory))
            .args(["-c", "protocol.version=2"])
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            .args(["-c", "fetch.unpackLimit=1"])
            // Larger files are written as they come, and are never in memory as a whole.
            .args(["-c", "core.bigFileThreshold=16m"])
            .args(["-c", "protocol.ext.allow=never"]);
        self.talking(&mut command, terminal);
        command.args(["fetch", "-q", "--no-tags", "--no-auto-maintenance"]);
        command.arg("--no-recurse-submodules");
        command
    }

    /// The same for a part of what `url` has.
    fn fetching_part(&self, directory: &Path, url: &str, filter: &str, terminal: Terminal) -> Command {
        let mut remote = self.to(url);
        remote.set(&format!("remote.{REMOTE}.promisor"), "true");
        remote.set(&format!("remote.{REMOTE}.partialclonefilter"), filter);
        let mut command = remote.fetching(directory, terminal);
        command.arg(format!("--filter={filter}"));
        command
    }

    /// Fetches from `url` into the bare repository at `directory`: commits, one deep, or files.
    pub(crate) fn fetch(
        &self,
        directory: &Path,
        url: &str,
        wanted: Wanted<'_>,
        asked: Asked,
        limits: Limits<'_>,
        terminal: Terminal,
    ) -> Result<Output, process::Error> {
        let mut input = None;
        let refspecs = |references: &[&str]| -> Vec<String> {
            let numbered = references.iter().enumerate();
            numbered.map(|(number, reference)| format!("+{reference}:refs/kl/{number}")).collect()
        };
        let mut command = match wanted {
            Wanted::Commits(references) => {
                let mut command = self.to(url).fetching(directory, terminal);
                command.args(["--depth=1", "--end-of-options", REMOTE]);
                command.args(refspecs(references));
                command
            }
            Wanted::SmallFiles(references) => {
                let mut command = self.fetching_part(directory, url, SMALL_FILES, terminal);
                command.args(["--depth=1", "--end-of-options", REMOTE]);
                command.args(refspecs(references));
                command
            }
            Wanted::Files(ids) => {
                input = Some(ids.as_bytes());
                let mut command = self.fetching_part(directory, url, NO_FILES, terminal);
                command.args(["--no-write-fetch-head", "--stdin"]);
                command.args(["--end-of-options", REMOTE]);
                command
            }
        };
        if asked == Asked::ByRepository {
            // As `git submodule` does: `protocol.file.allow=user` then refuses local paths.
            command.env("GIT_PROTOCOL_FROM_USER", "0");
        }
        failpoint::before("fetch");
        process::run(&mut command, input, limits, terminal)
    }

    /// Fetches commits of `url`, none of their files where the server can leave them out, into the bare repository at
    /// `directory`.
    pub(crate) fn fetch_commits(
        &self,
        directory: &Path,
        url: &str,
        wanted: &[RefSpec<'_>],
        depth: Depth,
        limits: Limits<'_>,
        terminal: Terminal,
    ) -> Result<Output, process::Error> {
        let mut command = self.fetching_part(directory, url, NO_TREES, terminal);
        match depth {
            Depth::One => command.arg("--depth=1"),
            Depth::Since(seconds) => command.arg(format!("--shallow-since=@{seconds}")),
            // A repository that is not shallow cannot be unshallowed.
            Depth::All if directory.join("shallow").exists() => command.arg("--unshallow"),
            Depth::All => &mut command,
        };
        command.args(["--end-of-options", REMOTE]);
        for wanted in wanted {
            command.arg(format!("+{}:refs/kl/{}", wanted.id, wanted.name));
        }
        failpoint::before("fetch commits");
        process::run(&mut command, None, limits, terminal)
    }
}
