//! What a walk yields: roots and files as nodes, references as edges.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use super::chart::{Archive, Chart, Place as ChartPlace};
use super::remote_ref::RemoteRef;
use crate::config::{Comments, Config};
use crate::kustomization::{self, Kind, Note, ProblemKind, Reference};
use crate::message::failure::{Failure, Location, Result};
use crate::message::finding::{Finding, Rule, Subject};
use crate::message::position::{Position, Span};
use crate::message::redact::SafeUrl;
use crate::record::{Digest, Pinned};
use crate::reference::{RepoSpec, Upstream};
use crate::tree::{SharedTree, path};

macro_rules! ids {
    ($(#[$doc:meta] $id:ident of $one:ident;)+) => {$(
        #[$doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $id(pub usize);

        impl Index<$id> for Vec<$one> {
            type Output = $one;

            fn index(&self, id: $id) -> &$one {
                &self[id.0]
            }
        }

        impl IndexMut<$id> for Vec<$one> {
            fn index_mut(&mut self, id: $id) -> &mut $one {
                &mut self[id.0]
            }
        }
    )+};
}

ids! {
    /// A tree that the walk reads from, by its place in [`Graph::sources`].
    SourceId of Source;
    /// A kustomization root, by its place in [`Graph::roots`].
    RootId of Root;
    /// A file, by its place in [`Graph::files`].
    FileId of File;
}

/// A reference: the root whose it is, and its place among the references of that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct EdgeId {
    pub root: RootId,
    pub index: usize,
}

impl Index<EdgeId> for Graph {
    type Output = Edge;

    fn index(&self, id: EdgeId) -> &Edge {
        &self.roots[id.root].edges[id.index]
    }
}

impl IndexMut<EdgeId> for Graph {
    fn index_mut(&mut self, id: EdgeId) -> &mut Edge {
        &mut Rc::make_mut(&mut self.roots)[id.root].edges[id.index]
    }
}

impl SourceId {
    /// The one in which the walk starts.
    pub(crate) const FIRST: SourceId = SourceId(0);
}

/// Where something stands in a file, by its lines, for [`Graph::exception`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub file: FileId,
    pub span: Span,
}

/// The references of a kustomization and everything they lead to.
#[derive(Default, Clone)]
pub(crate) struct Graph {
    /// The trees that were read.
    pub sources: Vec<Source>,
    /// The kustomization roots, the target first, each once per tree.
    pub roots: Rc<Vec<Root>>,
    /// The roots of each tree, by their directories.
    pub(super) directories: Rc<HashMap<SourceId, HashMap<String, RootId>>>,
    /// The files, each once.
    pub files: Rc<Vec<File>>,
    /// The charts, by the roots that name them. One for which the tree could not tell is among the troubles.
    pub charts: Vec<Chart>,
    /// The references that stay remote by decision, each with the reason.
    pub left: HashMap<EdgeId, String>,
    /// The roots that lack a local file which the configuration lets be missing, each with the path of one.
    pub missing: BTreeMap<RootId, String>,
    /// The roots that name a file outside of themselves, as who lifts the load restrictor may.
    pub leaves: BTreeSet<RootId>,
    /// Whether no comments count: nobody who may decide wrote them.
    pub(super) ignores_comments: bool,
    /// What works but should be known.
    pub findings: Vec<Finding>,
    /// What kustomize accepts although it deserves a note, with the data that rules need.
    pub notes: Rc<Vec<Noted>>,
}

/// A note and where it stands.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    /// The root whose kustomization, or plugin configuration, it is in.
    pub root: RootId,
    /// The file that it is in.
    pub file: FileId,
    /// The note.
    pub note: Note,
}

/// One tree and what bounds it.
#[derive(Clone)]
pub(crate) struct Source {
    /// The files.
    pub tree: SharedTree,
    /// The directory that roots of this tree may not leave.
    pub scope: String,
    /// Where it was fetched from; none for the tree of the user.
    pub repository: Option<Rc<Repository>>,
}

/// One commit of a repository that a remote root named.
pub(crate) struct Repository {
    /// Its files, as a checkout gives them.
    pub tree: SharedTree,
    /// The request.
    pub version: RepoSpec,
    /// The commit, in full.
    pub commit: String,
    /// Who signed it: as a lock says, or as was verified in this run.
    pub signed: OnceCell<String>,
}

impl Repository {
    /// Returns the ref as written, or what stands for it in paths when none was: the commit.
    pub(crate) fn version_name(&self) -> &str {
        self.version.reference.as_deref().unwrap_or(&self.commit)
    }

    /// Returns what it is in a lock, where none of its directories is in use yet.
    pub(crate) fn pinned(&self) -> (Upstream, Pinned) {
        let digest = Digest::GitCommit(self.commit.clone());
        (Upstream::git(&self.version), Pinned { signed: self.signed.get().cloned(), ..Pinned::new(digest) })
    }
}

/// A directory with a kustomization file.
#[derive(Clone)]
pub(crate) struct Root {
    /// The tree it lies in.
    pub source: SourceId,
    /// Its real path in that tree.
    pub directory: String,
    /// The name of its kustomization file, one of the three.
    pub file_name: &'static str,
    /// The kustomization file.
    pub file: FileId,
    /// Kustomization or Component; none where the file could not be read.
    pub kind: Option<Kind>,
    /// Whether it starts code of its tree.
    pub runs_code: bool,
    /// Every reference of the kustomization and of the plugin configurations that it lists.
    pub edges: Vec<Edge>,
}

/// A file that is in use.
#[derive(Clone)]
pub(crate) struct File {
    /// Where it comes from.
    pub origin: Origin,
    /// Whether its mode is 100755.
    pub executable: bool,
    /// The exceptions that the user wrote in it.
    pub comments: Option<Rc<Comments>>,
}

/// Where a file comes from.
#[derive(Clone)]
pub(crate) enum Origin {
    Tree {
        /// Which one.
        source: SourceId,
        /// Its real path there.
        path: String,
    },
    Remote(Rc<RemoteFile>),
    /// A chart that was pulled.
    Archive {
        /// Which one.
        archive: Rc<Archive>,
        /// The path in the directory of the chart.
        path: String,
    },
}

/// A file that was downloaded.
pub(crate) struct RemoteFile {
    /// The URL as written.
    pub url: SafeUrl,
    /// The SHA-256 of its bytes, in hex.
    pub sha256: String,
    pub bytes: Rc<[u8]>,
}

impl RemoteFile {
    /// Returns what it is in a lock.
    pub(crate) fn pinned(&self) -> (Upstream, Pinned) {
        let (digest, size) = (Digest::Sha256(self.sha256.clone()), Some(self.bytes.len() as u64));
        (Upstream::File { url: self.url.shown() }, Pinned { size, ..Pinned::new(digest) })
    }
}

/// One reference and where it leads.
#[derive(Clone)]
pub(crate) struct Edge {
    /// The file that holds the reference: the kustomization, or a plugin configuration.
    pub from: FileId,
    /// The reference.
    pub reference: Rc<Reference>,
    /// What kustomize asks the network for, as far as text and field tell; none for a path.
    pub remote: Option<Rc<RemoteRef>>,
    /// Where it leads.
    pub target: Target,
}

/// Where a reference leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// A kustomization root; `remote` when the reference is a URL.
    Root {
        /// Which one.
        id: RootId,
        /// Whether the reference is a URL.
        remote: bool,
    },
    File(FileId),
    /// A remote file or root that was not resolved, because the walk has no network.
    Remote,
    /// Unchanged, with a warning.
    Kept,
    /// Could not be followed; a failure explains why.
    Broken,
}

impl Edge {
    /// Returns where it stands.
    pub(crate) fn lines(&self) -> Lines {
        Lines { file: self.from, span: self.reference.span }
    }
}

impl Graph {
    /// Reads a file, as kustomize does.
    pub(crate) fn read(&self, file: FileId) -> Result<Rc<[u8]>> {
        let (tree, path) = match &self.files[file].origin {
            Origin::Tree { source, path } => (&self.sources[*source].tree, path),
            Origin::Remote(remote) => return Ok(remote.bytes.clone()),
            Origin::Archive { archive, path } => return Ok(archive.files.get(path).cloned().unwrap_or_default()),
        };
        let bytes = tree.read(path)?;
        if bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
            let message = format!("`{}` is a Git LFS pointer, not the file itself", tree.label(path));
            return Err(Failure::new(message).hint(
                "keep files that a build reads out of Git LFS (`git lfs migrate export`): a clone may contain only the pointers",
            ));
        }
        Ok(bytes.into())
    }

    /// Returns the bytes of a file that was read before; none where that fails now.
    pub(crate) fn bytes(&self, file: FileId) -> Rc<[u8]> {
        self.read(file).unwrap_or_default()
    }

    /// Returns why something that a rule is about stays as it is: because of a comment at the lines of a file where it is
    /// named, or of the configuration.
    pub(crate) fn exception(
        &self,
        config: &Config,
        rule: Rule,
        subject: &Subject,
        Lines { file, span }: Lines,
    ) -> Option<String> {
        let comments = self.files[file].comments.as_deref().filter(|_| !self.ignores_comments);
        let mut said = comments.into_iter().flat_map(|comments| comments.allowing(rule, Some(span)));
        let comment = said.next().map(|(_, said)| said.reason.clone());
        comment.or_else(|| config.reason(rule, subject))
    }

    /// Notes that a root lacks a local file that may be missing.
    pub(super) fn keep_missing(&mut self, root: RootId, path: &str) {
        let shown = self.sources[0].tree.label(path);
        self.missing.entry(root).or_insert(shown);
    }

    pub(crate) fn root_ids(&self) -> impl Iterator<Item = RootId> + use<> {
        (0..self.roots.len()).map(RootId)
    }

    pub(crate) fn file_ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len()).map(FileId)
    }

    pub(crate) fn edges(&self) -> impl Iterator<Item = (EdgeId, &Edge)> {
        self.root_ids().flat_map(|root| self.edges_of(root))
    }

    pub(crate) fn edges_of(&self, root: RootId) -> impl Iterator<Item = (EdgeId, &Edge)> {
        self.roots[root].edges.iter().enumerate().map(move |(index, edge)| (EdgeId { root, index }, edge))
    }

    /// Returns whether a reference is an absolute path, or a path that leads out of its tree.
    pub(crate) fn reads_outside(&self) -> bool {
        self.edges().filter(|(_, edge)| edge.remote.is_none()).any(|(EdgeId { root, .. }, edge)| {
            let text = &edge.reference.text;
            path::is_absolute(text) || self.local_path(root, text).is_none()
        })
    }

    /// Returns where a note stands.
    pub(crate) fn lines_of(&self, note: usize) -> Lines {
        let Noted { file, note, .. } = &self.notes[note];
        Lines { file: *file, span: Span::from(note.position) }
    }

    /// Returns the file's path as the user would name it.
    pub(crate) fn label(&self, file: FileId) -> String {
        match &self.files[file].origin {
            Origin::Tree { source, path } => self.sources[*source].tree.label(path),
            Origin::Remote(remote) => remote.url.shown(),
            Origin::Archive { archive, path } => format!("{}: {path}", archive.chart.upstream()),
        }
    }

    /// Returns that the kustomization of a root is too much to be read, if it is.
    pub(crate) fn too_large(&self, root: RootId) -> Option<Failure> {
        let Root { kind: None, file, .. } = &self.roots[root] else { return None };
        let refused = kustomization::read(&self.bytes(*file)).err()?;
        let problem = refused.problems.into_iter().find(|problem| problem.kind == ProblemKind::TooLarge)?;
        Some(Failure::new(format!("`{}`: {}", self.label(*file), problem.message)).hint(problem.hint))
    }

    /// Returns whether a file lies in the tree where the walk starts.
    pub(crate) fn is_start(&self, file: FileId) -> bool {
        matches!(self.files[file].origin, Origin::Tree { source: SourceId::FIRST, .. })
    }

    /// Returns what a file was brought in from, as it is in a lock; `None` if it is the user's.
    pub(crate) fn pinned(&self, file: FileId) -> Option<(Upstream, Pinned)> {
        match &self.files[file].origin {
            Origin::Archive { archive, .. } => Some(archive.pinned()),
            Origin::Remote(file) => Some(file.pinned()),
            Origin::Tree { source, .. } => Some(self.sources[*source].repository.as_ref()?.pinned()),
        }
    }

    /// Returns whether a file came over the network.
    pub(crate) fn is_fetched(&self, file: FileId) -> bool {
        match &self.files[file].origin {
            Origin::Tree { source, .. } => self.sources[*source].repository.is_some(),
            Origin::Remote(_) | Origin::Archive { .. } => true,
        }
    }

    /// Returns a file as the place of a message.
    pub(crate) fn place(&self, file: FileId) -> Location {
        let url = self.pinned(file).map(|(upstream, _)| upstream.to_string()).unwrap_or_default();
        let file = match &self.files[file].origin {
            Origin::Remote(_) => String::new(),
            Origin::Tree { path, .. } | Origin::Archive { path, .. } if !url.is_empty() => path.clone(),
            _ => self.label(file),
        };
        Location { url, file, ..Location::default() }
    }

    /// Returns a place of a file.
    pub(crate) fn spot(&self, file: FileId, position: Position, field: &str) -> Location {
        Location { position, field: field.to_owned(), ..self.place(file) }
    }

    /// Returns the place of a note.
    pub(crate) fn note_location(&self, note: usize) -> Location {
        let Noted { file, note, .. } = &self.notes[note];
        self.spot(*file, note.position, &note.field)
    }

    /// Returns the place of a reference that stands in `file`.
    pub(crate) fn location(&self, file: FileId, reference: &Reference) -> Location {
        self.spot(file, reference.span.start, &reference.field)
    }

    /// Returns the files that a build of a root reads for itself.
    pub(crate) fn read_by(&self, id: RootId) -> BTreeSet<FileId> {
        let root = &self.roots[id];
        let of_edge = |edge: &Edge| match edge.target {
            Target::File(file) => [Some(edge.from), Some(file)],
            _ => [Some(edge.from), None],
        };
        let of_edges = root.edges.iter().flat_map(of_edge).flatten();
        let of_charts = self.charts_of(id).iter().flat_map(|chart| chart.files.values().copied());
        of_edges.chain(of_charts).chain([root.file]).collect()
    }

    /// Returns the file to which a reference leads: of a root, its kustomization.
    pub(crate) fn led_to(&self, edge: &Edge) -> Option<FileId> {
        match edge.target {
            Target::Root { id, .. } => Some(self.roots[id].file),
            Target::File(file) => Some(file),
            Target::Remote | Target::Kept | Target::Broken => None,
        }
    }

    /// Returns the roots of the tree where the walk starts, by their directories.
    pub(crate) fn own_roots(&self) -> HashMap<&str, RootId> {
        let own = self.directories.get(&SourceId::FIRST).into_iter().flatten();
        own.map(|(directory, id)| (directory.as_str(), *id)).collect()
    }

    /// Returns the root in a directory of a tree.
    pub(crate) fn root_in(&self, source: SourceId, directory: &str) -> Option<RootId> {
        self.directories.get(&source)?.get(directory).copied()
    }

    /// Returns the root in a directory of the tree where the walk starts.
    pub(crate) fn own_root(&self, directory: &str) -> Option<RootId> {
        self.root_in(SourceId::FIRST, directory)
    }

    /// Returns the path of a file of the tree where the walk starts.
    pub(crate) fn own_path(&self, file: FileId) -> Option<&str> {
        match &self.files[file].origin {
            Origin::Tree { source: SourceId::FIRST, path } => Some(path),
            _ => None,
        }
    }

    /// Returns the paths of all files of the tree where the walk starts.
    pub(crate) fn own_paths(&self) -> impl Iterator<Item = &str> {
        self.file_ids().filter_map(|file| self.own_path(file))
    }

    /// Returns the files of repositories, and the directories of their roots.
    pub(super) fn of_repositories(&self) -> Vec<(Rc<Repository>, String)> {
        let files = self.files.iter().filter_map(|file| match &file.origin {
            Origin::Tree { source, path } => Some((*source, path.as_str())),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        });
        let roots = self.roots.iter().flat_map(|root| [(root.source, &*root.directory), (root.source, "")]);
        let all: BTreeSet<_> = files.chain(roots).collect();
        let of_repository =
            |(source, path): (SourceId, &str)| Some((self.sources[source].repository.clone()?, path.to_owned()));
        all.into_iter().filter_map(of_repository).collect()
    }

    /// Returns the directories of the charts that lie in the tree where the walk starts.
    pub(crate) fn own_charts(&self) -> impl Iterator<Item = &str> {
        self.charts.iter().filter(|chart| self.roots[chart.root].source == SourceId::FIRST).filter_map(|chart| {
            match &chart.place {
                ChartPlace::There(path) => Some(path.as_str()),
                ChartPlace::Missing(_) | ChartPlace::Submodule(_) | ChartPlace::Outside => None,
            }
        })
    }

    /// Returns the path of the file of the tree where the walk starts to which a reference leads.
    pub(crate) fn own_file(&self, edge: &Edge) -> Option<&str> {
        match edge.target {
            Target::File(file) => self.own_path(file),
            _ => None,
        }
    }

    /// Returns the real path of what a reference leads to in the tree where the walk starts, by a path.
    pub(crate) fn real(&self, edge: &Edge) -> Option<&str> {
        match edge.target {
            Target::Root { id, remote: false } if self.roots[id].source == SourceId::FIRST => {
                Some(&self.roots[id].directory)
            }
            _ => self.own_file(edge),
        }
    }

    /// Returns the path in the tree that a text means to a root, as a path; none out of the tree.
    pub(crate) fn local_path(&self, root: RootId, text: &str) -> Option<String> {
        let root = &self.roots[root];
        if path::is_absolute(text) {
            self.sources[root.source].tree.absolute(text)
        } else {
            path::resolve(&root.directory, text)
        }
    }

    /// Returns the root's directory as the user would name it.
    pub(crate) fn root_label(&self, root: RootId) -> String {
        let root = &self.roots[root];
        self.sources[root.source].tree.label(&root.directory)
    }

    /// Returns the path of a root relative to the scope of its tree.
    pub(crate) fn in_scope<'a>(&self, source: SourceId, path: &'a str) -> &'a str {
        path::below(path, &self.sources[source].scope).unwrap_or(path)
    }
}
