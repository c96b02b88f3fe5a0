//! What lies between two commits of a remote repository. No file of it is fetched: commits alone say whether a
//! branch moved forward, and what its authors wrote about that.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Fetcher;
use super::git::{Clock, GitRemotes, GitRequest};
use super::work::SIDE_BY_SIDE;
use crate::git::{Fetch, Part};
use crate::message::failure::{FailureKind, Result};
use crate::os::interrupt::Scratch;
use crate::os::parallel::side_by_side;
use crate::os::process::Terminal;
use crate::reference::RepoRef;

/// How many commits a [`History`] names.
const NAMED: usize = 10;
/// How much older than the old commit a commit between the two may say it is, before all of history is requested.
const MARGIN: u64 = 30 * 24 * 60 * 60;

/// A commit without those before it.
const ALONE: &str = "--depth=1";

/// How long one remote may take to tell what would only be good to know.
const SOON: Duration = Duration::from_secs(30);
/// How many remotes are asked for that.
const ASKED: usize = 50;

/// How one commit stands to an older one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct History {
    /// In which direction it lies.
    pub course: Course,
    /// How many commits, without merges, the new one has that the old one had not.
    pub commits: usize,
    /// The newest of these, newest first: id, and the first line of the message as its author wrote it.
    pub newest: Vec<(String, String)>,
}

/// In which direction a commit lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Course {
    /// The new commit contains the old one.
    Forward,
    /// The old commit contains the new one.
    Back,
    /// Neither contains the other, or the old one is gone.
    Apart,
}

impl GitRemotes {
    /// Returns what lies between the commit `old` and the requested one, which must be known.
    pub(crate) fn history(&self, request: &GitRequest, old: &str, timeout: Duration) -> Result<History> {
        let Some(new) = request.commit.as_deref() else {
            return Err(self.not_cached(request));
        };
        let shown = request.url.shown();
        let name = [shown.as_str(), old, new].join("\n");
        if let Some(known) = self.cache().note(&name)
            && let Ok(history) = serde_json::from_slice(&known)
        {
            return Ok(history);
        }
        let history = self.history_now(request, old, timeout, Terminal::Detached)?;
        // An old commit that the server does not have now may come back.
        if (history.course != Course::Apart || history.commits > 0)
            && let Ok(bytes) = serde_json::to_vec(&history)
        {
            self.cache().keep_note(&name, &bytes)?;
        }
        Ok(history)
    }

    /// Does the same without the cache: for callers that need the answer of the repository itself.
    pub(crate) fn history_now(
        &self,
        request: &GitRequest,
        old: &str,
        timeout: Duration,
        terminal: Terminal,
    ) -> Result<History> {
        let Some(new) = request.commit.as_deref().filter(|_| !self.is_offline()) else {
            return Err(self.not_cached(request));
        };
        self.asking(request, old, timeout, terminal)?.history(old, new)
    }

    /// Asks for one object, as the server has it now, and returns the commit that it is or stands for.
    pub(crate) fn given(
        &self,
        request: &GitRequest,
        id: &str,
        timeout: Duration,
        terminal: Terminal,
    ) -> Result<String> {
        let asking = self.asking(request, id, timeout, terminal)?;
        asking.fetch(&[(id, "new")], Some(ALONE))?;
        let commit = asking.ask(&["rev-parse", "--verify", "refs/kl/new^{commit}"])?;
        let commit = commit.ok_or_else(|| self.no_such_ref(request, id))?;
        Ok(commit.trim().to_owned())
    }

    /// Makes an empty repository for objects like the one with this id, to ask with.
    fn asking<'a>(
        &'a self,
        request: &'a GitRequest,
        id: &str,
        timeout: Duration,
        terminal: Terminal,
    ) -> Result<Asking<'a>> {
        let format = match id.len() {
            64 => "sha256",
            _ => "sha1",
        };
        let scratch = self.cache().scratch(&request.url.shown(), format)?;
        Ok(Asking { remotes: self, request, scratch, clock: Clock::start(timeout, None), terminal })
    }
}

/// A remote repository that is at another commit than it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Move {
    /// Its URL without secrets.
    pub url: String,
    /// The ref that named the old commit; none stands for HEAD.
    pub from: Option<String>,
    /// The ref that names the new one.
    pub to: Option<String>,
    /// The old commit.
    pub old: String,
    /// The new one.
    pub new: String,
}

impl Fetcher {
    /// Returns what lies between the commits of each move, if the remotes answer in time; `None` where they do not.
    pub(crate) fn histories(&self, moves: &[Move]) -> Vec<Option<History>> {
        // A request with a secret in its URL keeps it.
        let keys: Vec<&RepoRef> = self.repositories.keys().collect();
        let url = |shown: &str| {
            let asked = keys.iter().find(|key| key.url.shown() == shown);
            asked.map_or_else(|| shown.into(), |key| key.url.clone())
        };
        let requests: Vec<GitRequest> = moves
            .iter()
            .map(|moved| GitRequest {
                url: url(&moved.url),
                reference: moved.to.clone(),
                commit: Some(moved.new.clone()),
                by: self.named_by(url(&moved.url).exposed()),
                is_submodule: false,
            })
            .collect();
        let git: &GitRemotes = &self.git;
        let asked = moves.len().min(ASKED);
        let told = side_by_side(&requests[..asked], SIDE_BY_SIDE, |index, request| {
            let moved = moves.get(index).filter(|moved| moved.old != moved.new)?;
            git.history(request, &moved.old, SOON).ok()
        });
        told.into_iter().chain(std::iter::repeat(None)).take(moves.len()).collect()
    }
}

struct Asking<'a> {
    remotes: &'a GitRemotes,
    request: &'a GitRequest,
    scratch: Scratch,
    clock: Clock<'a>,
    terminal: Terminal,
}

impl Asking<'_> {
    fn history(&self, old: &str, new: &str) -> Result<History> {
        let has_old = match self.fetch(&[(old, "old")], Some(ALONE)) {
            Ok(()) => true,
            // Servers may refuse to give a commit by its id. The new one may contain it all the same.
            Err(failure) if failure.kind == FailureKind::NotInRepository => false,
            Err(failure) => return Err(failure),
        };
        // Most of the time this is all: what came since then.
        if has_old && let Some(date) = self.date(old)? {
            let since = format!("--shallow-since=@{}", date.saturating_sub(MARGIN));
            if self.fetch_new(new, &[], Some(&since)).is_ok() && self.is_ancestor(old, new)? {
                return self.between(Course::Forward, old, new);
            }
        }
        // A repository that is not shallow cannot be unshallowed.
        let all = self.scratch.path().join("shallow").exists().then_some("--unshallow");
        self.fetch_new(new, &[(old, "old")][..usize::from(has_old)], all)?;
        let course = match () {
            () if !self.has(old)? => {
                return Ok(History { course: Course::Apart, commits: 0, newest: Vec::new() });
            }
            () if self.is_ancestor(old, new)? => Course::Forward,
            () if self.is_ancestor(new, old)? => Course::Back,
            () => Course::Apart,
        };
        self.between(course, old, new)
    }

    /// Fetches the new commit by its id, or else by its ref.
    fn fetch_new(&self, new: &str, beside: &[(&str, &str)], depth: Option<&str>) -> Result<()> {
        let fetch = |id| self.fetch(&[beside, &[(id, "new")]].concat(), depth);
        match fetch(new) {
            Err(failure) if failure.kind == FailureKind::NotInRepository => {
                fetch(self.request.reference.as_deref().unwrap_or("HEAD")).map_err(|_| failure)?;
            }
            done => done?,
        }
        if self.has(new)? { Ok(()) } else { Err(self.remotes.no_such_ref(self.request, new)) }
    }

    /// Fetches commits by their ids or refs, each with the name that it gets.
    fn fetch(&self, wanted: &[(&str, &str)], depth: Option<&str>) -> Result<()> {
        let refspecs: String = wanted.iter().map(|(id, name)| format!("+{id}:refs/kl/{name}\n")).collect();
        let fetch = Fetch {
            into: self.scratch.path(),
            part: Part::NoTrees,
            option: depth,
            refspecs: &refspecs,
            by_repository: self.request.is_submodule,
        };
        let output = self.remotes.talk(self.request, &self.clock, |remote_git, url| {
            remote_git.fetch(url, fetch, self.clock.limits(), self.terminal)
        })?;
        if output.status.success() {
            Ok(())
        } else {
            let id = wanted.last().map_or("HEAD", |(id, _)| id);
            Err(self.remotes.explain(self.request, id, &output))
        }
    }

    fn ask(&self, arguments: &[&str]) -> Result<Option<String>> {
        let limits = self.clock.limits();
        let answer = self.remotes.remote_git().commits(self.scratch.path(), arguments, limits);
        answer.map_err(|error| self.remotes.not_run(self.request, error, &self.clock))
    }

    fn has(&self, commit: &str) -> Result<bool> {
        let answer = self.ask(&["cat-file", "-e", &format!("{commit}^{{commit}}")])?;
        Ok(answer.is_some())
    }

    fn is_ancestor(&self, older: &str, newer: &str) -> Result<bool> {
        let answer = self.ask(&["merge-base", "--is-ancestor", older, newer])?;
        Ok(answer.is_some())
    }

    /// Returns when a commit was made, in seconds since the epoch.
    fn date(&self, commit: &str) -> Result<Option<u64>> {
        let told = self.ask(&["rev-list", "--max-count=1", "--format=%ct", commit])?;
        let line = told.and_then(|told| Some(told.lines().nth(1)?.trim().to_owned()));
        Ok(line.and_then(|line| line.parse().ok()))
    }

    fn between(&self, course: Course, old: &str, new: &str) -> Result<History> {
        let range = format!("{old}..{new}");
        let commits = self
            .ask(&["rev-list", "--count", "--no-merges", &range])?
            .and_then(|count| count.trim().parse().ok())
            .unwrap_or(0);
        let most = format!("--max-count={NAMED}");
        let told = self
            .ask(&["rev-list", "--no-merges", &most, "--format=%s", "--encoding=UTF-8", &range])?
            .unwrap_or_default();
        let mut lines = told.lines();
        let mut newest = Vec::new();
        // A heading `commit ID`, then what was requested, of each.
        while let (Some(heading), Some(subject)) = (lines.next(), lines.next()) {
            let id = heading.strip_prefix("commit ").unwrap_or(heading);
            newest.push((id.to_owned(), subject.to_owned()));
        }
        Ok(History { course, commits, newest })
    }
}
