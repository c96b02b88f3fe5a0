//! Several commits of one repository, fetched with one request.

use std::time::Duration;

use super::{Clock, Fetched, GitRemotes, GitRequest, fetched_commit};
use crate::git::Part;
use crate::message::failure::Result;
use crate::os::interrupt::Scratch;
use crate::os::process::Terminal;

impl GitRemotes {
    /// Fetches commits of one repository, unless the cache holds them. `None` for each that is not there then: one
    /// missing ref is the end of such a request, so that each is to be requested alone, which explains what is wrong.
    pub(in crate::fetch) fn fetch_together(
        &self,
        requests: &[&GitRequest],
        timeout: Option<Duration>,
    ) -> Result<Vec<Option<Fetched>>> {
        let clock = Clock::start(timeout.unwrap_or(self.timeout), None);
        let mut done = Vec::new();
        for request in self.with_commits(requests, &clock)? {
            done.push(self.cached(&request, timeout)?);
        }
        let left = requests.iter().zip(&mut done).filter(|(_, done)| done.is_none());
        let left: Vec<_> = left.collect();
        let Some((first, _)) = left.first().filter(|_| left.len() > 1) else {
            return Ok(done);
        };
        let references: Vec<&str> = left.iter().map(|(request, _)| name(request)).collect();
        let scratch = self.fetch_references(first, &references, Part::SmallFiles, &clock, Terminal::Detached)?;
        for (number, (request, done)) in left.into_iter().enumerate() {
            let (commit, is_tag) = fetched_commit(scratch.path(), number, name(request), &self.budget)?;
            if is_tag {
                self.learn_tag(request, name(request));
            }
            let known = GitRequest { commit: Some(commit), ..(*request).clone() };
            self.keep_one(&scratch, &known)?;
            *done = self.cached(&known, timeout)?;
        }
        Ok(done)
    }

    /// Adds the commits to the requests for refs, if the cache may hold some.
    fn with_commits(&self, requests: &[&GitRequest], clock: &Clock<'_>) -> Result<Vec<GitRequest>> {
        let mut all: Vec<GitRequest> = requests.iter().map(|one| (*one).clone()).collect();
        let floating = all.iter_mut().filter(|request| request.commit.is_none());
        let mut floating: Vec<&mut GitRequest> = floating.collect();
        let Some(first) = floating.first().map(|first| (**first).clone()) else {
            return Ok(all);
        };
        if self.knew(&first.url.shown()) {
            let names: Vec<String> = floating.iter().map(|one| name(one).to_owned()).collect();
            let references: Vec<&str> = names.iter().map(String::as_str).collect();
            let listing = self.list(&first, &references, clock, Terminal::Detached)?;
            for (request, reference) in floating.iter_mut().zip(references) {
                if let Some((full, id)) = listing.find(reference) {
                    if full.starts_with("refs/tags/") {
                        self.learn_tag(request, reference);
                    }
                    request.commit = Some(id);
                }
            }
        }
        Ok(all)
    }

    /// Keeps what was fetched as the repository of one of its commits.
    fn keep_one(&self, scratch: &Scratch, known: &GitRequest) -> Result<()> {
        let url = known.url.shown();
        let commit = known.commit.as_deref().unwrap_or_default();
        if self.cache.repository(&url, commit, false)?.is_some() {
            return Ok(());
        }
        let format = match commit.len() {
            64 => "sha256",
            _ => "sha1",
        };
        let one = self.cache.scratch(&url, format)?;
        self.cache.add(scratch, &[one.path()])?;
        self.cache.keep(one, &url, commit)?;
        Ok(())
    }
}

/// Returns what names a commit to its server.
fn name(request: &GitRequest) -> &str {
    let known = request.commit.as_deref().or(request.reference.as_deref());
    known.unwrap_or("HEAD")
}
