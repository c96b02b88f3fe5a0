//! What lies between two commits of a remote repository. No file of it is fetched: commits alone say whether a branch
//! moved forward, and what its authors wrote about that.

use std::collections::HashMap;
use std::time::Duration;

use super::git::{GitRequest, format_of};
use super::progress::SIDE_BY_SIDE;
use super::{Fetcher, Key, Network};
use crate::git::{Fetch, Part};
use crate::message::failure::{FailureKind, Result};
use crate::message::redact::SafeUrl;
use crate::os::interrupt::Scratch;
use crate::reference::Upstream;

/// How many commits a [`History`] names.
const NAMED: usize = 10;
/// How much older than the old commit a commit between the two may say it is, before all of history is requested.
const MARGIN: u64 = 30 * 24 * 60 * 60;

/// What is said of a branch that did not move forward.
pub(crate) const REWRITTEN: &str = "was rewritten or reset: it no longer contains the locked commit";

/// No history before a commit.
const ALONE: &str = "--depth=1";

/// How long one request may take for what would only be good to know.
const SOON: Duration = Duration::from_secs(30);

/// How one commit stands to an older one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct History {
    /// Whether it contains the older one: then the rest says what came in between.
    pub is_forward: bool,
    /// How many commits, without merges, the new one has that the old one had not.
    pub commits: usize,
    /// The newest of these, newest first: id, and the first line of the message as its author wrote it.
    pub newest: Vec<(String, String)>,
}

/// A repository that is another commit now, or under another ref.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move<'a> {
    pub old: (&'a Upstream, &'a str),
    pub new: (&'a Upstream, &'a str),
}

/// Says what lies between the two commits of each move, where it can.
pub(crate) type Histories<'a> = dyn Fn(&[Move<'_>]) -> Vec<Option<History>> + 'a;

impl Fetcher {
    /// Returns what lies between the commits of each move of a repository, if the remotes answer in time; `None` where they
    /// do not.
    pub(crate) fn histories(&self, moves: &[Move<'_>]) -> Vec<Option<History>> {
        // A request with a secret in its URL keeps it.
        let known = self.known.keys().filter_map(|key| match key {
            Key::Git(key) => Some((key.clone_spec().shown(), key.clone_spec())),
            _ => None,
        });
        let known: HashMap<String, SafeUrl> = known.collect();
        let url = |shown: &str| known.get(shown).cloned().unwrap_or_else(|| shown.into());
        let request = |(new, commit): (&Upstream, &str)| {
            let request = GitRequest::new(url(new.url()), new.reference(), Some(commit));
            GitRequest { may_ask: false, timeout: SOON, ..request }
        };
        let asked: Vec<_> = moves.iter().map(|Move { old, new }| (request(*new), old.1, new.1)).collect();
        let network: &Network = &self.network;
        let is_asked = |old: &str, new: &str| old != new && !network.offline;
        network.progress.each(
            SIDE_BY_SIDE,
            &asked,
            |(request, ..)| request.url.shown(),
            |_, (request, old, new)| is_asked(old, new).then(|| network.history(request, old, new).ok())?,
        )
    }
}

impl Network {
    /// Returns what lies between the commits `old` and `new` of a repository, as its server says now.
    pub(super) fn history(&self, request: &GitRequest, old: &str, new: &str) -> Result<History> {
        let mut commits = Commits::new(self, request, new)?;
        let since = match commits.fetch(old, Some(ALONE)) {
            // Servers may refuse to give a commit by its id. The new one may contain it all the same.
            Err(failure) if failure.kind == FailureKind::NotInRepository => None,
            done => done.and_then(|()| commits.date(old))?,
        };
        // Most of the time what came since then is all. Where nothing did, this fails; and where an older branch was merged,
        // history ends at the merge, on all of its sides.
        let is_all = match since.map(|date| format!("--shallow-since=@{}", date.saturating_sub(MARGIN))) {
            Some(since) => commits.fetch_new(new, Some(&since)).is_ok() && !commits.ends_between(old, new)?,
            None => false,
        };
        if !is_all {
            // Afresh: git cannot always add to history that ends somewhere.
            commits = Commits::new(self, request, new)?;
            commits.fetch_new(new, None)?;
        }
        let is_forward = commits.ask(&["merge-base", "--is-ancestor", old, new])?.is_some();
        if is_forward { commits.between(old, new) } else { Ok(History { is_forward, commits: 0, newest: Vec::new() }) }
    }

    /// Asks for one object, as the server has it now, and returns the commit that it is or stands for.
    pub(super) fn given(&self, request: &GitRequest, id: &str) -> Result<String> {
        let commits = Commits::new(self, request, id)?;
        commits.fetch(id, Some(ALONE))?;
        let commit = commits.ask(&["rev-parse", "--verify", &format!("{id}^{{commit}}")])?;
        let commit = commit.ok_or_else(|| self.no_such_ref(request, id))?;
        Ok(commit.trim().to_owned())
    }
}

/// Commits of a remote repository, without their files.
struct Commits<'a> {
    network: &'a Network,
    request: &'a GitRequest,
    scratch: Scratch,
}

impl<'a> Commits<'a> {
    /// Makes an empty repository for objects like the one with this id.
    fn new(network: &'a Network, request: &'a GitRequest, id: &str) -> Result<Self> {
        let scratch = network.cache.scratch(&request.url.shown(), format_of(id))?;
        Ok(Commits { network, request, scratch })
    }

    /// Fetches the new commit by its id, or else by its ref.
    fn fetch_new(&self, new: &str, depth: Option<&str>) -> Result<()> {
        match self.fetch(new, depth) {
            Err(failure) if failure.kind == FailureKind::NotInRepository => {
                self.fetch(self.request.reference(), depth).map_err(|_| failure)?;
            }
            done => done?,
        }
        let has = self.ask(&["cat-file", "-e", &format!("{new}^{{commit}}")])?.is_some();
        if has { Ok(()) } else { Err(self.network.no_such_ref(self.request, new)) }
    }

    fn fetch(&self, name: &str, option: Option<&str>) -> Result<()> {
        let refspecs = format!("+{name}:refs/kl/{name}\n");
        let (into, by_repository) = (self.scratch.path(), self.request.is_submodule);
        let wanted = Fetch { into, part: Part::NoTrees, option, refspecs: &refspecs, by_repository };
        let said = self.network.talk(self.request, |remote_git, url, terminal| {
            remote_git.fetch(url, wanted, self.request.timeout, terminal)
        })?;
        if said.output.status.success() {
            return Ok(());
        }
        Err(self.network.explain(self.request, name, &said))
    }

    fn ask(&self, arguments: &[&str]) -> Result<Option<String>> {
        let answer = self.network.remote_git.commits(self.scratch.path(), arguments, self.request.timeout);
        answer.map_err(|error| self.network.not_run(self.request, error))
    }

    /// Returns when a commit was made, in seconds since the epoch.
    fn date(&self, commit: &str) -> Result<Option<u64>> {
        let told = self.ask(&["rev-list", "--max-count=1", "--timestamp", commit])?;
        Ok(told.and_then(|told| told.split_whitespace().next()?.parse().ok()))
    }

    /// Returns whether what lies between two commits may be more than is here.
    fn ends_between(&self, old: &str, new: &str) -> Result<bool> {
        let ends = self.ask(&["rev-list", "--max-parents=0", "--max-count=1", &format!("{old}..{new}")])?;
        Ok(ends.is_none_or(|ends| !ends.is_empty()))
    }

    fn between(&self, old: &str, new: &str) -> Result<History> {
        let range = format!("{old}..{new}");
        let told = self.ask(&["rev-list", "--no-merges", "--pretty=oneline", "--encoding=UTF-8", &range])?;
        let told = told.unwrap_or_default();
        let newest = told.lines().take(NAMED).filter_map(|line| line.split_once(' '));
        Ok(History {
            is_forward: true,
            commits: told.lines().count(),
            newest: newest.map(|(id, subject)| (id.to_owned(), subject.to_owned())).collect(),
        })
    }
}
