//! What is asked of a remote: its refs; commits with all of their files, without the larger ones, without any; files.

use std::path::Path;
use std::time::Duration;

use super::{Exchange, REMOTE, RemoteGit};
use crate::os::failpoint;
use crate::os::process::{self, Terminal};

/// What one fetch brings, where the server can leave out the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    All,
    /// No files of 2 KiB and more. Most kustomizations are smaller: with them at hand, what a build reads is known
    /// without another request. In trees, a file costs about 50 bytes itself.
    SmallFiles,
    /// Only what is named.
    NoFiles,
    /// Commits alone.
    NoTrees,
}

/// One fetch into a bare repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetch<'a> {
    pub into: &'a Path,
    pub part: Part,
    /// How much of the history comes with a commit, as `--depth=1`.
    pub option: Option<&'a str>,
    /// `+REF:refs/kl/NAME`, or the id of an object, one a line.
    pub refspecs: &'a str,
    /// Whether a fetched repository chose the URL, in its `.gitmodules`.
    pub by_repository: bool,
}

impl RemoteGit {
    /// Asks `url` what `references` are, without fetching them: lines `ID<tab>REF`, also of refs that only end
    /// in one of them.
    pub(crate) fn list(
        &self,
        url: &str,
        references: &[&str],
        timeout: Duration,
        terminal: Terminal,
    ) -> Result<Exchange, process::Error> {
        let mut command = self.to(url, terminal);
        command.env("GIT_DIR", "/dev/null").args(["ls-remote", "--quiet", "--end-of-options", REMOTE]);
        for reference in references {
            command.arg(reference).arg(format!("{reference}^{{}}"));
        }
        Exchange::run(&mut command, None, timeout, terminal)
    }

    /// Fetches from `url`.
    pub(crate) fn fetch(
        &self,
        url: &str,
        wanted: Fetch<'_>,
        timeout: Duration,
        terminal: Terminal,
    ) -> Result<Exchange, process::Error> {
        let mut command = self.to(url, terminal);
        let filter = match wanted.part {
            Part::All => None,
            Part::SmallFiles => Some("blob:limit=2k"),
            Part::NoFiles => Some("blob:none"),
            Part::NoTrees => Some("tree:0"),
        };
        if let Some(filter) = filter {
            command.args(["-c", &format!("remote.{REMOTE}.promisor=true")]);
            command.args(["-c", &format!("remote.{REMOTE}.partialclonefilter={filter}")]);
        }
        command
            // Not `-C`: the user may have set `safe.bareRepository=explicit`.
            .env("GIT_DIR", wanted.into)
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            .args(["-c", "fetch.unpackLimit=1"])
            // Larger files are written as they come, and are never in memory as a whole.
            .args(["-c", "core.bigFileThreshold=16m"])
            .args(["fetch", "-q", "--no-tags", "--no-auto-maintenance", "--no-recurse-submodules", "--stdin"])
            .args(filter.map(|filter| format!("--filter={filter}")))
            .args(wanted.option)
            .args(["--end-of-options", REMOTE]);
        if wanted.by_repository {
            // As `git submodule` does: `protocol.file.allow=user` then refuses local paths.
            command.env("GIT_PROTOCOL_FROM_USER", "0");
        }
        failpoint::before("fetch");
        let before = size_of_packs(wanted.into);
        let mut done = Exchange::run(&mut command, Some(wanted.refspecs.as_bytes()), timeout, terminal)?;
        done.bytes = size_of_packs(wanted.into).saturating_sub(before);
        Ok(done)
    }
}

fn size_of_packs(repository: &Path) -> u64 {
    let packs = repository.join("objects/pack").read_dir().into_iter().flatten().flatten();
    packs.filter_map(|pack| pack.metadata().ok()).map(|pack| pack.len()).sum()
}
