//! Compares two commits of a remote repository. No files are fetched: commits tell whether a branch moved forward, and
//! what its authors wrote.

use std::collections::HashMap;
use std::time::Duration;

use super::git::{GitRequest, format_of};
use super::progress::SIDE_BY_SIDE;
use super::{ContentKey, Fetcher, Network};
use crate::git::FetchFilter;
use crate::message::failure::{FailureKind, Result};
use crate::message::redact::SafeUrl;
use crate::os::interrupt::Scratch;
use crate::reference::Upstream;

/// The most commits that an [`Ancestry`] names.
const NAMED: usize = 10;
/// By how many seconds a commit between the two may claim to be older than the old one, before the whole history is
/// fetched.
const MARGIN: u64 = 30 * 24 * 60 * 60;

/// The message for a branch that did not move forward.
pub(crate) const REWRITTEN: &str = "was rewritten or reset: it no longer contains the locked commit";

/// The option for a commit without its history.
const ALONE: &str = "--depth=1";

/// The longest time for a request whose answer the run can do without.
const SOON: Duration = Duration::from_secs(30);

/// The relation of a commit to an older one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Ancestry {
    /// Whether the new commit contains the old one. Otherwise the rest is empty.
    pub is_forward: bool,
    /// The number of commits, without merges, that only the new one contains.
    pub commits: usize,
    /// The newest of these, newest first, as id and first line of the message.
    pub newest: Vec<(String, String)>,
}

/// A repository whose commit or ref changed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Move<'a> {
    pub old: RefCommit<'a>,
    pub new: RefCommit<'a>,
}

/// A repository at a ref, with the commit that a lock has for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RefCommit<'a> {
    pub upstream: &'a Upstream,
    pub commit: &'a str,
}

/// Compares the two commits of each move. `None` for a move that could not be compared.
pub(crate) type Histories<'a> = dyn Fn(&[Move<'_>]) -> Vec<Option<Ancestry>> + 'a;

impl Fetcher {
    /// The history between the commits of each move, which messages and reports show to reviewers: whether the branch
    /// only moved forward, and by which commits. `None` if both commits are equal, if the run is offline, or if the
    /// comparison fails, for example because the remote does not answer in time.
    pub(crate) fn histories(&self, moves: &[Move<'_>]) -> Vec<Option<Ancestry>> {
        // The URL of an earlier request may have a secret, which is needed again.
        let fetched = self.known.keys().filter_map(|key| match key {
            ContentKey::Git(key) => Some((key.clone_spec().shown(), key.clone_spec())),
            _ => None,
        });
        let url_with_secret: HashMap<String, SafeUrl> = fetched.collect();
        let request = |RefCommit { upstream, commit }: RefCommit<'_>| {
            let url = url_with_secret.get(upstream.url()).cloned().unwrap_or_else(|| upstream.url().into());
            let request = GitRequest::new(url, upstream.reference(), Some(commit));
            // The run can do without the answer, so nobody is asked for a password.
            GitRequest { may_ask: false, timeout: SOON, ..request }
        };
        let compared: Vec<_> = moves.iter().map(|Move { old, new }| (request(*new), old.commit, new.commit)).collect();
        let network: &Network = &self.network;
        network.progress.each(
            SIDE_BY_SIDE,
            &compared,
            |(request, ..)| request.url.shown(),
            |_, (request, old, new)| {
                let is_moved = old != new && !network.offline;
                is_moved.then(|| network.history(request, old, new).ok())?
            },
        )
    }
}

impl Network {
    /// The history between the commits `old` and `new` of a repository, from its server. Fetches recent commits first,
    /// and the whole history if the date of `old` is unknown, or if commits between the two may be missing.
    pub(super) fn history(&self, request: &GitRequest, old: &str, new: &str) -> Result<Ancestry> {
        let mut commits = Commits::new(self, request, new)?;
        let since = match commits.fetch(old, Some(ALONE)) {
            // Servers may refuse to give a commit by its id, even if the new commit contains it. Then its date is not
            // known.
            Err(failure) if failure.kind == FailureKind::NotInRepository => None,
            done => done.and_then(|()| commits.date(old))?,
        };
        // Commits since the date of the old one are usually enough. git fails if there are none, and cuts the history
        // of a merged branch that is older.
        let is_all = match since.map(|date| format!("--shallow-since=@{}", date.saturating_sub(MARGIN))) {
            Some(since) => commits.fetch_new(new, Some(&since)).is_ok() && !commits.may_lack_some(old, new)?,
            None => false,
        };
        if !is_all {
            // A new repository, because git cannot always extend a history that was cut off.
            commits = Commits::new(self, request, new)?;
            commits.fetch_new(new, None)?;
        }
        match commits.git_answer(&["merge-base", "--is-ancestor", old, new])? {
            Some(_) => commits.ancestry(old, new),
            None => Ok(Ancestry::default()),
        }
    }

    /// Fetches the commit or tag object `id`, to learn whether the server still has it. Returns the id of the commit
    /// that it is, or that it tags.
    pub(super) fn resolve_on_server(&self, request: &GitRequest, id: &str) -> Result<String> {
        let commits = Commits::new(self, request, id)?;
        commits.fetch(id, Some(ALONE))?;
        let commit = commits.git_answer(&["rev-parse", "--verify", &format!("{id}^{{commit}}")])?;
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
    /// An empty repository for objects of the same format as `id`.
    fn new(network: &'a Network, request: &'a GitRequest, id: &str) -> Result<Self> {
        let scratch = network.cache.scratch(&request.url.shown(), format_of(id))?;
        Ok(Commits { network, request, scratch })
    }

    /// Fetches the commit `new` with its history by its id, or by its ref if the server does not give commits by id.
    /// `since` limits the history. Fails if the ref no longer leads to the commit.
    fn fetch_new(&self, new: &str, since: Option<&str>) -> Result<()> {
        match self.fetch(new, since) {
            Err(failure) if failure.kind == FailureKind::NotInRepository => {
                self.fetch(self.request.reference(), since).map_err(|_| failure)?;
            }
            done => done?,
        }
        let is_fetched = self.git_answer(&["cat-file", "-e", &format!("{new}^{{commit}}")])?.is_some();
        if is_fetched { Ok(()) } else { Err(self.network.no_such_ref(self.request, new)) }
    }

    /// Fetches a commit by its id or a ref, with its history. `option` limits the history, such as `--depth=1`.
    fn fetch(&self, name: &str, option: Option<&str>) -> Result<()> {
        let (into, refspecs) = (self.scratch.path(), format!("+{name}:refs/kl/{name}\n"));
        let exchange = self.network.exchange(self.request, into, FetchFilter::NoTrees, option, &refspecs)?;
        if exchange.output.status.success() {
            return Ok(());
        }
        Err(self.network.explain(self.request, name, &exchange))
    }

    /// The output of a git command about the fetched commits. `None` if it fails, which is git's way to say no.
    fn git_answer(&self, arguments: &[&str]) -> Result<Option<String>> {
        let answer = self.network.remote_git.query_commits(self.scratch.path(), arguments, self.request.timeout);
        answer.map_err(|error| self.network.not_run(self.request, error))
    }

    /// The date of a commit, in seconds since the epoch.
    fn date(&self, commit: &str) -> Result<Option<u64>> {
        let date = self.git_answer(&["rev-list", "--max-count=1", "--timestamp", commit])?;
        Ok(date.and_then(|date| date.split_whitespace().next()?.parse().ok()))
    }

    /// Whether commits between `old` and `new` may be missing. The oldest commit of a history that was cut off has no
    /// parents, so one without parents after `old` is suspicious.
    fn may_lack_some(&self, old: &str, new: &str) -> Result<bool> {
        let ends = self.git_answer(&["rev-list", "--max-parents=0", "--max-count=1", &format!("{old}..{new}")])?;
        Ok(ends.is_none_or(|ends| !ends.is_empty()))
    }

    /// The commits between `old` and `new`, which contains it: their number, and the newest with their subjects. Merges
    /// are not counted, because their authors wrote nothing.
    fn ancestry(&self, old: &str, new: &str) -> Result<Ancestry> {
        let range = format!("{old}..{new}");
        let commits = self.git_answer(&["rev-list", "--no-merges", "--pretty=oneline", "--encoding=UTF-8", &range])?;
        let commits = commits.unwrap_or_default();
        let newest = commits.lines().take(NAMED).filter_map(|line| line.split_once(' '));
        Ok(Ancestry {
            is_forward: true,
            commits: commits.lines().count(),
            newest: newest.map(|(id, subject)| (id.to_owned(), subject.to_owned())).collect(),
        })
    }
}
