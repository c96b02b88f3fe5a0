//! What a walk requests from the network, and the interface to it.

use std::rc::Rc;

use super::{Archive, ChartRef, RemoteFile, Repository};
use crate::config;
use crate::kustomization::{Accepts, Reference};
use crate::message::failure::{Failure, Result};
use crate::message::finding::Subject;
use crate::message::redact::SafeUrl;
use crate::record::Lock;
use crate::reference::{self, PLAIN_QUERY, Pin, RepoSpec, Upstream};
use crate::tree::path;

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
    /// Whether HTML is meant: data of a generator whose name says so.
    pub is_page: bool,
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
        let is_page =
            reference.key.as_ref().is_some_and(|key| reference::names_page(&key.name) || reference::names_page(text));
        Some(RemoteRef { text: text.into(), wants, spec, by: by(), is_page })
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

    /// Returns what it is for a policy, as far as text and field tell.
    pub(crate) fn subject(&self) -> Subject {
        self.meant().subject()
    }

    /// Returns what was probably meant, also where kustomize cannot read all of it.
    pub(crate) fn meant(&self) -> Upstream {
        self.repository().map_or_else(|| self.file(), Upstream::git)
    }

    /// Returns what it names, as far as text and field tell.
    pub(crate) fn upstream(&self) -> Upstream {
        // What kustomize cannot read of a query names no ref.
        self.repository().filter(|spec| !spec.query_dropped).map_or_else(|| self.file(), Upstream::git)
    }

    fn file(&self) -> Upstream {
        Upstream::File { url: self.text.shown() }
    }

    /// Returns what it names in a lock that has an entry for it, maybe without the directory. The kind of the entry decides
    /// what it is, too.
    pub(crate) fn locked(&self, lock: &Lock) -> Option<Upstream> {
        let file = (self.wants != Wants::Root).then(|| self.file());
        // What kustomize cannot read of a query is not what a lock holds for the HEAD that it builds instead.
        let is_repository = |spec: &&RepoSpec| self.wants != Wants::File && !spec.query_dropped;
        let repository = || self.spec.as_ref().filter(is_repository).map(Upstream::git);
        let is_there = |upstream: &Upstream| lock.get(upstream).is_some();
        file.filter(is_there).or_else(|| repository().filter(is_there))
    }

    /// Returns whether a lock holds it, so that it is localized.
    pub(crate) fn is_locked(&self, lock: &Lock) -> bool {
        self.locked(lock).is_some_and(|upstream| lock.holds(&upstream))
    }

    /// Returns what is wrong where a lock does not hold it, with what to do before it can be locked; none if it does.
    pub(crate) fn unlocked(&self, lock: Option<&Lock>) -> Option<Failure> {
        let directory = match lock.and_then(|lock| Some((lock, self.locked(lock)?))) {
            Some((lock, upstream)) if lock.holds(&upstream) => return None,
            // What that one names in turn was never looked at.
            Some((_, upstream)) => Some(path::shown(upstream.path()).to_owned()),
            None => None,
        };
        let shown = self.text.shown();
        let failure = Failure::new(match directory {
            Some(directory) => format!("`{directory}` of `{shown}` is not locked"),
            None => format!("`{shown}` is neither localized nor locked"),
        });
        Some(self.correction().into_iter().fold(failure, Failure::hint))
    }

    /// Returns what to write before it can be locked; `None` if the text is as it should be.
    pub(crate) fn correction(&self) -> Option<String> {
        if let Some(page) = reference::web_page(self.text.exposed()) {
            return Some(page);
        }
        let spec = self.repository()?;
        match Pin::of(spec.reference.as_deref()) {
            // The current HEAD is not necessarily what was meant.
            _ if spec.query_dropped => Some(PLAIN_QUERY.to_owned()),
            Pin::ShortCommit => Some("write the commit id in full, 40 digits: git cannot fetch a short one".to_owned()),
            _ => None,
        }
    }
}

/// What something remote turned out to be.
#[derive(Clone)]
pub(crate) enum Found {
    File(Rc<RemoteFile>),
    /// A repository; the root lies in the directory that the reference names.
    Root(Rc<Repository>),
    /// `None` of a chart that stays remote.
    Chart(Option<Rc<Archive>>),
}

impl Found {
    /// Returns what this is, which a reference names.
    pub(super) fn upstream(&self, wanted: &RemoteRef) -> Upstream {
        match (self, &wanted.spec) {
            (Found::Root(_), Some(spec)) => Upstream::git(spec),
            _ => wanted.file(),
        }
    }
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

    /// Brings in files of repositories that are going to be read, side by side: of a directory its licences.
    fn prefetch(&mut self, _files: &[(Rc<Repository>, String)]) {}

    /// Refuses something that was resolved in this run and lacks what `policy` asks of it. `is_lifted`: it may be young.
    fn trust(&self, _upstream: &Upstream, _policy: &config::Source, _is_lifted: bool) -> Result<()> {
        Ok(())
    }
}
