//! Remote references, and the interface by which a walk fetches them.

use std::rc::Rc;

use super::{Archive, ChartRef, RemoteCommit, RemoteFile};
use crate::config;
use crate::kustomization::{Accepts, Reference};
use crate::message::failure::{Failure, Result};
use crate::message::finding::Subject;
use crate::message::redact::SafeUrl;
use crate::record::Lock;
use crate::reference::{self, PLAIN_QUERY, Pin, RepoSpec, Upstream};
use crate::tree::path;

/// The kind of content that kustomize accepts for a remote reference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum ExpectedContent {
    /// A file, by HTTP GET: the field takes only files.
    File,
    /// A root, by git: `components`, and any text that is not an http(s) URL.
    Root,
    /// A file if the answer is one, otherwise a root: `resources`, `bases` and lists of plugins.
    Either,
}

/// A remote reference to resolve.
#[derive(Debug, Clone)]
pub(crate) struct RemoteRef {
    /// The reference as written.
    pub text: SafeUrl,
    /// The kind of content that the field accepts.
    pub wants: ExpectedContent,
    /// The URL as kustomize splits it. `None` if kustomize does not take it for a git URL.
    pub spec: Option<RepoSpec>,
    /// The URL, without secrets, of the upstream that has the reference. `None` if the user's files have it.
    pub by: Option<String>,
    /// Whether an HTML page is expected: the key or URL of a generator ends like one.
    pub is_page: bool,
}

impl RemoteRef {
    /// The remote reference that kustomize makes of a text and its field. `None` for a local path. `by` tells the
    /// upstream that has the reference.
    pub(super) fn of(reference: &Reference, by: impl FnOnce() -> Option<String>) -> Option<RemoteRef> {
        let text = reference.text.as_str();
        let is_http = reference::is_remote_file(text);
        let spec = RepoSpec::parse(text).ok();
        let (wants, spec) = match reference.accepts {
            Accepts::File | Accepts::Program if is_http => (ExpectedContent::File, None),
            Accepts::File | Accepts::Program => return None,
            // A URL whose path climbs is not accepted as a repository, but it may be a file.
            Accepts::Either | Accepts::Plugin if is_http => {
                (ExpectedContent::Either, spec.filter(|spec| !spec.escapes()))
            }
            // Any other field, and a text that is no http URL, can only mean a repository.
            _ => (ExpectedContent::Root, Some(spec?)),
        };
        let is_page =
            reference.key.as_ref().is_some_and(|key| reference::names_page(&key.name) || reference::names_page(text));
        Some(RemoteRef { text: text.into(), wants, spec, by: by(), is_page })
    }

    /// The reference as a repository, by its text alone: nothing is fetched. `None` if it is, or looks like, a file.
    pub(crate) fn repository(&self) -> Option<&RepoSpec> {
        let spec = self.spec.as_ref()?;
        match self.wants {
            ExpectedContent::File => None,
            ExpectedContent::Root => Some(spec),
            // The text allows only a guess: an answer would tell for sure.
            ExpectedContent::Either => (reference::has_git_marker(self.text.exposed())
                || !reference::looks_like_file(self.text.exposed()))
            .then_some(spec),
        }
    }

    /// The reference as a repository: the entry of `lock` tells whether it is one, and without an entry its text.
    pub(crate) fn repository_by(&self, lock: &Lock) -> Option<&RepoSpec> {
        match self.locked(lock) {
            Some(Upstream::Git { .. }) => self.spec.as_ref(),
            Some(_) => None,
            None => self.repository(),
        }
    }

    /// The subject of rules and exceptions, as far as text and field tell.
    pub(crate) fn subject(&self) -> Subject {
        self.meant().subject()
    }

    /// The upstream that was probably meant, even if kustomize drops a part of the query.
    pub(crate) fn meant(&self) -> Upstream {
        self.repository().map_or_else(|| self.file(), Upstream::git)
    }

    /// The upstream that kustomize reads, as far as text and field tell.
    pub(crate) fn upstream(&self) -> Upstream {
        // If kustomize drops a part of the query, the URL names no ref.
        self.repository().filter(|spec| !spec.query_dropped).map_or_else(|| self.file(), Upstream::git)
    }

    /// The reference as a file.
    fn file(&self) -> Upstream {
        Upstream::File { url: self.text.shown() }
    }

    /// The upstream that the reference means by the entry of `lock` for it: a repository or a file, which its text may
    /// not tell. The entry may lack the directory of the reference. `None` if the lock has no entry.
    pub(crate) fn locked(&self, lock: &Lock) -> Option<Upstream> {
        let file = (self.wants != ExpectedContent::Root).then(|| self.file());
        // If kustomize drops a part of the query, it builds HEAD, which the entry of a lock does not pin.
        let repository = self
            .spec
            .as_ref()
            .filter(|spec: &&RepoSpec| self.wants != ExpectedContent::File && !spec.query_dropped)
            .map(Upstream::git);
        // The kind of the entry decides whether the reference is a file or a repository.
        file.into_iter().chain(repository).find(|upstream| lock.get(upstream).is_some())
    }

    /// Whether a lock has the upstream and its directory, so that the reference is localized.
    pub(crate) fn is_locked(&self, lock: &Lock) -> bool {
        self.locked(lock).is_some_and(|upstream| lock.holds(&upstream))
    }

    /// The failure of a reference that `lock` does not have, with what to change before it can be locked. `None` if the
    /// lock has it.
    pub(crate) fn not_locked_failure(&self, lock: Option<&Lock>) -> Option<Failure> {
        let directory = match lock.and_then(|lock| Some((lock, self.locked(lock)?))) {
            Some((lock, upstream)) if lock.holds(&upstream) => return None,
            // The lock has the repository but not this directory, so its references were never looked at.
            Some((_, upstream)) => Some(path::shown(upstream.path()).to_owned()),
            None => None,
        };
        let shown = self.text.shown();
        let failure = Failure::new(match directory {
            Some(directory) => format!("`{directory}` of `{shown}` is not locked"),
            None => format!("`{shown}` is neither localized nor locked"),
        });
        Some(failure.hints(self.correction()))
    }

    /// The hint how to rewrite a reference that cannot be locked as it is meant. `None` for any other reference.
    pub(crate) fn correction(&self) -> Option<String> {
        if let Some(page) = reference::web_page(self.text.exposed()) {
            return Some(page);
        }
        let spec = self.repository()?;
        match Pin::of(spec.reference.as_deref()) {
            // kustomize would build HEAD, which is probably not the intended ref.
            _ if spec.query_dropped => Some(PLAIN_QUERY.to_owned()),
            Pin::ShortCommit => Some("write the commit id in full, 40 digits: git cannot fetch a short one".to_owned()),
            _ => None,
        }
    }
}

/// The content that a remote reference was resolved to.
#[derive(Clone)]
pub(crate) enum RemoteContent {
    File(Rc<RemoteFile>),
    /// A repository. The reference names the directory of the root in it.
    Root(Rc<RemoteCommit>),
    /// A chart. `None` if it stays remote.
    Chart(Option<Rc<Archive>>),
}

impl RemoteContent {
    /// The upstream that a reference to this content names.
    pub(super) fn upstream(&self, wanted: &RemoteRef) -> Upstream {
        match (self, &wanted.spec) {
            (RemoteContent::Root(_), Some(spec)) => Upstream::git(spec),
            _ => wanted.file(),
        }
    }
}

/// Fetches the content of remote references.
pub(crate) trait Remotes {
    /// Resolves the references of one level in parallel. Returns one answer for each, in their order.
    fn resolve(&mut self, wanted: &[Rc<RemoteRef>]) -> Vec<Result<RemoteContent>>;

    /// Fetches charts in parallel. Returns one answer for each, in their order; `None` for a chart that stays remote.
    /// Each chart comes with the upstream whose files name it, if any.
    fn charts(&mut self, wanted: &[(ChartRef, Option<String>)]) -> Vec<Result<Option<Rc<Archive>>>> {
        wanted.iter().map(|_| Ok(None)).collect()
    }

    /// Fetches files of repositories that will be read, in parallel. For a directory, the licenses in it are fetched.
    fn prefetch(&mut self, _files: &[(Rc<RemoteCommit>, String)]) {}

    /// Refuses content that lacks what `policy` demands. With `is_lifted`, content that is younger than allowed is
    /// accepted.
    fn trust(&self, _upstream: &Upstream, _policy: &config::SourcePolicy, _is_lifted: bool) -> Result<()> {
        Ok(())
    }
}
