//! Lists the refs of a remote, and fetches commits with all files, with small files only or without files.

use std::path::Path;
use std::time::Duration;

use super::{Exchange, REMOTE, RemoteGit};
use crate::os::failpoint;
use crate::os::process::{self, Terminal};

/// The objects that one fetch brings, if the server can leave out the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FetchFilter {
    All,
    /// No files of 2 KiB and more. Most kustomizations are smaller, so the references in them are known without another
    /// request. In a tree a file costs about 50 bytes.
    SmallFiles,
    /// Commits and trees, and the files that are requested by id.
    NoFiles,
    /// Commits only.
    NoTrees,
}

/// One fetch into a bare repository.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fetch<'a> {
    pub into: &'a Path,
    pub filter: FetchFilter,
    /// An option that limits the history, such as `--depth=1`; `None` for all of it.
    pub option: Option<&'a str>,
    /// Lines with `+REF:refs/kl/NAME` or the id of an object.
    pub refspecs: &'a str,
    /// Whether a fetched repository chose the URL, in its `.gitmodules`.
    pub by_repository: bool,
}

impl RemoteGit {
    /// Asks `url` for the ids of `references`: lines `ID<tab>REF`, also of refs that only end with one of them.
    pub(crate) fn list(
        &self,
        url: &str,
        references: &[&str],
        timeout: Duration,
        terminal: Terminal,
    ) -> Result<Exchange, process::Error> {
        let mut command = self.command_to(url, terminal);
        command.env("GIT_DIR", "/dev/null").args(["ls-remote", "--quiet", "--end-of-options", REMOTE]);
        // The peeled entry of a tag object is listed only if it is asked for.
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
        let mut command = self.command_to(url, terminal);
        let filter = match wanted.filter {
            FetchFilter::All => None,
            FetchFilter::SmallFiles => Some("blob:limit=2k"),
            FetchFilter::NoFiles => Some("blob:none"),
            FetchFilter::NoTrees => Some("tree:0"),
        };
        // git sends a filter only to a remote that is configured as a promisor.
        if let Some(filter) = filter {
            command.args(["-c", &format!("remote.{REMOTE}.promisor=true")]);
            command.args(["-c", &format!("remote.{REMOTE}.partialclonefilter={filter}")]);
        }
        command
            // Not `-C`: the user may have set `safe.bareRepository=explicit`.
            .env("GIT_DIR", wanted.into)
            .args(["-c", "core.hooksPath=/dev/null"])
            .args(["-c", "gc.auto=0", "-c", "maintenance.auto=false"])
            // Each fetch becomes one pack, which is measured below.
            .args(["-c", "fetch.unpackLimit=1"])
            // git writes larger files while it receives them, so they do not fill the memory.
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
        // git does not report the size of a fetch, so the packs are measured before and after it.
        let before = size_of_packs(wanted.into);
        let mut done = Exchange::run(&mut command, Some(wanted.refspecs.as_bytes()), timeout, terminal)?;
        done.bytes = size_of_packs(wanted.into).saturating_sub(before);
        Ok(done)
    }
}

/// The bytes of all packs of a repository.
fn size_of_packs(repository: &Path) -> u64 {
    let packs = repository.join("objects/pack").read_dir().into_iter().flatten().flatten();
    packs.filter_map(|pack| pack.metadata().ok()).map(|pack| pack.len()).sum()
}
