//! What a walk requests from the network, and the interface to it.

use std::rc::Rc;

use super::{Archive, ChartRef, RemoteFile, Repository};
use crate::kustomization::{Accepts, Reference};
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Rule, Subject};
use crate::message::redact::{self, SafeUrl};
use crate::record::{GitRemote, LeftWhat, Lock, Remote};
use crate::reference::{self, PLAIN_QUERY, Pin, RepoSpec};

/// What a reference that kustomize reads over the network may turn out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Wants {
    /// A file field: always an HTTP GET.
    File,
    /// `components`, and whatever is not an http(s) URL: always git.
    Root,
    /// `resources`, `bases` and plugin lists: a file if the answer is one, else git.
    Either,
}

/// A remote reference to resolve.
#[derive(Debug, Clone)]
pub(crate) struct RemoteRef {
    /// The reference as written.
    pub text: SafeUrl,
    /// What it may be.
    pub wants: Wants,
    /// How kustomize splits it, if it takes it for git.
    pub spec: Option<RepoSpec>,
    /// The upstream whose files name it, by its URL without secrets; none for the user's own.
    pub by: Option<String>,
}

impl RemoteRef {
    /// Returns what kustomize would read over the network for a reference, as far as its text and its
    /// field tell; `None` for a local path.
    pub(super) fn of(reference: &Reference, by: impl FnOnce() -> Option<String>) -> Option<RemoteRef> {
        let text = reference.text.as_str();
        let is_http = reference::is_remote_file(text);
        let spec = || RepoSpec::parse(text).ok();
        let (wants, spec) = match reference.accepts {
            Accepts::File | Accepts::Program if is_http => (Wants::File, None),
            Accepts::File | Accepts::Program => return None,
            // A URL whose path climbs is not accepted as a repository, but it may be a file.
            Accepts::Either | Accepts::Plugin if is_http => (Wants::Either, spec().filter(|spec| !spec.escapes())),
            _ => (Wants::Root, Some(spec()?)),
        };
        Some(RemoteRef { text: text.into(), wants, spec, by: by() })
    }

    /// Returns how it is read as a repository, unless it is meant as a file. Only an answer would tell for
    /// sure.
    pub(crate) fn repository(&self) -> Option<&RepoSpec> {
        let spec = self.spec.as_ref()?;
        match self.wants {
            Wants::File => None,
            Wants::Root => Some(spec),
            Wants::Either => (reference::has_git_marker(self.text.exposed())
                || !reference::looks_like_file(self.text.exposed()))
            .then_some(spec),
        }
    }

    /// Returns what it names, as far as text and field tell.
    pub(crate) fn subject(&self) -> Subject {
        match self.repository() {
            Some(spec) => Subject::Git {
                url: spec.clone_spec().shown(),
                path: redact::url(&spec.directory()),
                pin: Pin::of(spec.reference.as_deref()).name(),
                reference: spec.reference.as_deref().map(redact::url),
            },
            None => Subject::Http { url: self.text.shown() },
        }
    }

    /// Returns the reference as chains of references in a lock name it, which holds `remote` for it.
    pub(crate) fn in_chain(&self, remote: &Remote) -> String {
        match (remote, &self.spec) {
            (Remote::Git(git), Some(spec)) => git.reference_to(&spec.directory()),
            _ => remote.label(),
        }
    }

    /// Returns its entry in a lock. The kind of the entry decides what it is, too.
    pub(crate) fn locked<'a>(&self, lock: &'a Lock) -> Option<&'a Remote> {
        let file = self.wants != Wants::Root;
        // What kustomize cannot read of a query is not what a lock holds for the HEAD that it builds instead.
        let is_repository = |spec: &&RepoSpec| self.wants != Wants::File && !spec.query_dropped;
        let repository = self.spec.as_ref().filter(is_repository);
        lock.find(file.then_some(self.text.exposed()), repository)
    }

    /// Returns the directory that it wants of a locked repository of which the lock holds others only: what this one names
    /// in turn was never looked at.
    pub(crate) fn unlocked_directory(&self, locked: &Remote) -> Option<String> {
        match (locked, &self.spec) {
            (Remote::Git(git), Some(spec)) => {
                Some(GitRemote::path(&spec.directory())).filter(|path| !git.paths.contains(path))
            }
            _ => None,
        }
    }

    /// Returns what is wrong where a lock, whose entry for it is `locked`, does not say what it is, with what to do before
    /// it can be locked; none if the lock says it.
    pub(crate) fn unlocked(&self, locked: Option<&Remote>) -> Option<Failure> {
        let directory = match locked {
            Some(locked) => Some(self.unlocked_directory(locked)?),
            None => None,
        };
        let shown = self.text.shown();
        let failure = Failure::new(match directory {
            Some(directory) => format!("the lock does not hold `{directory}` of `{shown}`"),
            None => format!("`{shown}` is neither localized nor locked"),
        });
        let hint = |spec: &RepoSpec| match Pin::of(spec.reference.as_deref()) {
            // The current HEAD is not necessarily what was meant.
            _ if spec.query_dropped => Some(PLAIN_QUERY.to_owned()),
            Pin::ShortCommit => Some("write the commit id in full, 40 digits: git fetches no other".to_owned()),
            _ => None,
        };
        let page = reference::web_page(self.text.exposed());
        let hint = page.or_else(|| hint(self.repository()?));
        Some(hint.into_iter().fold(failure, Failure::hint))
    }
}

/// Returns what something is that a lock holds as left, for a policy.
pub(crate) fn subject(what: &LeftWhat) -> Subject {
    match what {
        LeftWhat::Reference { url } => {
            let wanted =
                RemoteRef { text: url.clone().into(), wants: Wants::Either, spec: RepoSpec::parse(url).ok(), by: None };
            wanted.subject()
        }
        LeftWhat::Chart { url, chart, version } => {
            Subject::Helm { url: url.clone(), chart: chart.clone(), version: version.clone().unwrap_or_default() }
        }
        LeftWhat::Image { image } => Subject::Image { image: image.clone() },
    }
}

/// Returns the rule that something would be a finding of which a lock holds as left.
pub(crate) fn rule(what: &LeftWhat) -> Rule {
    match what {
        LeftWhat::Reference { .. } => Rule::RemoteReference,
        LeftWhat::Chart { .. } => Rule::RemoteChart,
        LeftWhat::Image { .. } => Rule::Function,
    }
}

/// What a remote reference turned out to be.
#[derive(Clone)]
pub(crate) enum Found {
    File(Rc<RemoteFile>),
    /// A repository; the root lies in the directory that the reference names.
    Root(Rc<Repository>),
}

/// Brings in what remote references name.
pub(crate) trait Remotes {
    /// Resolves references that were found at one depth, side by side: one answer for each, in
    /// their order.
    fn resolve(&mut self, wanted: &[Rc<RemoteRef>]) -> Vec<Result<Found>>;

    /// Brings in charts, side by side: one answer for each, in their order; none for one that is left remote. With each
    /// comes the upstream whose files name it.
    fn charts(&mut self, wanted: &[(ChartRef, Option<String>)]) -> Vec<Result<Option<Rc<Archive>>>> {
        wanted.iter().map(|_| Ok(None)).collect()
    }
}
