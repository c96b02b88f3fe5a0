//! The files of fetched commits that did not come with them, in batches.

use std::collections::BTreeSet;
use std::path::Path;

use gix::ObjectId;

use super::{Clock, Fetched, GitRemotes};
use crate::git::Part;
use crate::message::failure::{FailureKind, Result};
use crate::os::process::Terminal;

/// Files of one repository, to be fetched together.
#[derive(Debug, Clone)]
pub(in crate::fetch) struct Batch {
    /// A commit that needs them.
    pub fetched: Fetched,
    /// Others that do.
    pub others: Vec<Fetched>,
    /// The ids of the files.
    pub ids: BTreeSet<ObjectId>,
}

impl Batch {
    /// Returns whether another batch can be fetched with the same request.
    pub(in crate::fetch) fn is_like(&self, other: &Batch) -> bool {
        let (one, other) = (&self.fetched.request, &other.fetched.request);
        one.url == other.url && one.by == other.by && one.is_submodule == other.is_submodule
    }

    /// Takes the files of another batch, too.
    pub(in crate::fetch) fn extend(&mut self, other: Batch) {
        self.ids.extend(other.ids);
        self.others.push(other.fetched);
        self.others.extend(other.others);
    }

    fn commits(&self) -> impl Iterator<Item = &Fetched> {
        [&self.fetched].into_iter().chain(&self.others)
    }
}

impl GitRemotes {
    /// Adds files to what the cache holds of commits, or all of them, where the server does not give single ones or
    /// git may ask for a password.
    pub(in crate::fetch) fn fetch_files(&self, batch: &Batch, terminal: Terminal) -> Result<()> {
        let Fetched { commit, request, timeout, .. } = &batch.fetched;
        let clock = || Clock::start(timeout.unwrap_or(self.timeout), None);
        if terminal == Terminal::Detached {
            let ids: String = batch.ids.iter().map(|id| format!("{id}\n")).collect();
            let format = match commit.len() {
                64 => "sha256",
                _ => "sha1",
            };
            let (scratch, output) = self.fetch_into(request, Part::NoFiles, &ids, format, &clock(), terminal)?;
            if output.status.success() {
                let places: Vec<&Path> = batch.commits().map(|one| &*one.directory).collect();
                return self.cache.add(&scratch, &places);
            }
            let failure = self.explain(request, commit, &output);
            match failure.kind {
                FailureKind::Login | FailureKind::NoAnswer | FailureKind::NoConnection | FailureKind::NoRepository => {
                    return Err(failure);
                }
                FailureKind::NotInRepository | FailureKind::Other => {}
            }
        }
        for one in batch.commits() {
            let (scratch, _) = self.bring(&one.request, Part::All, &clock(), terminal)?;
            self.cache.add(&scratch, &[&one.directory])?;
        }
        Ok(())
    }
}
