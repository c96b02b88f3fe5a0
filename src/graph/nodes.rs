//! The graph that a walk yields: roots and files are nodes, references are edges.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::{Index, IndexMut};
use std::rc::Rc;

use super::chart::{Archive, Chart, ChartLookup};
use super::remote_ref::RemoteRef;
use crate::config::{Comments, Config};
use crate::kustomization::{self, Accepts, KustomizationKind, Note, ProblemKind, Reference};
use crate::message::failure::{Failure, Location, Result};
use crate::message::finding::{Finding, Rule, Subject};
use crate::message::position::{Position, Span};
use crate::message::redact::SafeUrl;
use crate::record::{Digest, Pinned};
use crate::reference::{RepoSpec, Upstream};
use crate::tree::{SharedTree, path};

macro_rules! ids {
    ($(#[$doc:meta] $id:ident of $element:ident;)+) => {$(
        #[$doc]
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) struct $id(pub usize);

        impl Index<$id> for Vec<$element> {
            type Output = $element;

            fn index(&self, id: $id) -> &$element {
                &self[id.0]
            }
        }

        impl IndexMut<$id> for Vec<$element> {
            fn index_mut(&mut self, id: $id) -> &mut $element {
                &mut self[id.0]
            }
        }
    )+};
}

ids! {
    /// A tree that the walk reads, by its index in [`Graph::sources`].
    SourceId of ScopedTree;
    /// A kustomization root, by its index in [`Graph::roots`].
    RootId of Root;
    /// A file, by its index in [`Graph::files`].
    FileId of File;
}

/// A reference: the root that has it, and its index in [`Root::edges`].
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
    /// The tree in which the walk starts.
    pub(crate) const FIRST: SourceId = SourceId(0);
}

/// The lines of a file that something occupies. [`Graph::exception`] looks for comments at them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lines {
    pub file: FileId,
    pub span: Span,
}

/// The references of a kustomization and everything that they lead to.
#[derive(Default, Clone)]
pub(crate) struct Graph {
    /// The trees that the walk has read.
    pub sources: Vec<ScopedTree>,
    /// The kustomization roots, each once per tree: first those at which the walk starts.
    pub roots: Rc<Vec<Root>>,
    /// The roots of each tree, by directory.
    pub(super) directories: Rc<HashMap<SourceId, HashMap<String, RootId>>>,
    /// The files, each once.
    pub files: Rc<Vec<File>>,
    /// The charts, by the roots that name them.
    pub charts: Vec<Chart>,
    /// The references that stay remote by an exception or a rule, each with the reason.
    pub stays_remote: HashMap<EdgeId, String>,
    /// The roots that lack a local file which an exception lets be missing, each with the path of such a file.
    pub missing: BTreeMap<RootId, String>,
    /// The roots that reference a file outside of themselves. Such a build needs a lifted load restrictor.
    pub roots_reading_outside: BTreeSet<RootId>,
    /// Whether comments do not count, because nobody who may decide wrote them.
    pub(super) ignores_comments: bool,
    /// Findings that do not stop the work.
    pub findings: Vec<Finding>,
    /// The notes of the parser on accepted fields, with the data that rules need.
    pub notes: Rc<Vec<Noted>>,
}

/// A note of the parser and its file.
#[derive(Debug, Clone)]
pub(crate) struct Noted {
    /// The root whose kustomization or plugin configuration has it.
    pub root: RootId,
    /// The file that has it.
    pub file: FileId,
    pub note: Note,
}

/// A tree and the directory that bounds references in it.
#[derive(Clone)]
pub(crate) struct ScopedTree {
    pub tree: SharedTree,
    /// The directory that references of this tree may not leave.
    pub scope: String,
    /// The repository that the tree was fetched from. `None` for the user's tree.
    pub repository: Option<Rc<RemoteCommit>>,
}

impl ScopedTree {
    /// The whole tree of a fetched repository.
    pub(crate) fn of(repository: Rc<RemoteCommit>) -> ScopedTree {
        ScopedTree { tree: repository.tree.clone(), scope: String::new(), repository: Some(repository) }
    }

    /// A whole tree of the user.
    pub(crate) fn user(tree: SharedTree) -> ScopedTree {
        ScopedTree { tree, scope: String::new(), repository: None }
    }
}

/// A commit of a repository that a remote root names.
pub(crate) struct RemoteCommit {
    /// Its files, as a checkout writes them.
    pub tree: SharedTree,
    /// The URL that was requested.
    pub version: RepoSpec,
    /// The full commit id.
    pub commit: String,
    /// The signer: from the lock, or as verified in this run.
    pub signed: OnceCell<String>,
}

impl RemoteCommit {
    /// The ref as written. Without a ref it is the commit, which stands for it in paths.
    pub(crate) fn version_name(&self) -> &str {
        self.version.reference.as_deref().unwrap_or(&self.commit)
    }

    /// The lock entry of the repository, without paths.
    pub(crate) fn pinned(&self) -> (Upstream, Pinned) {
        let digest = Digest::GitCommit(self.commit.clone());
        (Upstream::git(&self.version), Pinned { signed: self.signed.get().cloned(), ..Pinned::new(digest) })
    }
}

/// A directory with a kustomization file.
#[derive(Clone)]
pub(crate) struct Root {
    /// The tree that has it.
    pub source: SourceId,
    /// Its real path in the tree.
    pub directory: String,
    /// The name of its kustomization file, one of the three that kustomize accepts.
    pub file_name: &'static str,
    pub file: FileId,
    /// Kustomization or Component. `None` if the file could not be read, or kustomize refuses it.
    pub kind: Option<KustomizationKind>,
    /// Whether its build runs a program or an exec or Go plugin on this machine.
    pub runs_code: bool,
    /// The references of the kustomization and of the plugin configurations that it lists.
    pub edges: Vec<Edge>,
}

impl Root {
    /// The files that have its references: its kustomization, and the plugin configurations that it lists.
    pub(crate) fn files(&self) -> impl Iterator<Item = FileId> {
        self.edges.iter().map(|edge| edge.from).chain([self.file])
    }
}

/// A file that some build reads.
#[derive(Clone)]
pub(crate) struct File {
    pub origin: Origin,
    /// Whether its mode is 100755.
    pub executable: bool,
    /// The exceptions in its comments. `None` if it has none, or is not the user's.
    pub comments: Option<Rc<Comments>>,
}

/// The origin of a file.
#[derive(Clone)]
pub(crate) enum Origin {
    Tree {
        /// The tree that has it.
        source: SourceId,
        /// Its real path in the tree.
        path: String,
    },
    Remote(Rc<RemoteFile>),
    /// A file of a chart that was pulled.
    Archive {
        archive: Rc<Archive>,
        /// Its path in the chart.
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
    /// The lock entry of the file.
    pub(crate) fn pinned(&self) -> (Upstream, Pinned) {
        let (digest, size) = (Digest::Sha256(self.sha256.clone()), Some(self.bytes.len() as u64));
        (Upstream::File { url: self.url.shown() }, Pinned { size, ..Pinned::new(digest) })
    }
}

/// A reference and its resolution.
#[derive(Clone)]
pub(crate) struct Edge {
    /// The file that has the reference: the kustomization or a plugin configuration.
    pub from: FileId,
    pub reference: Rc<Reference>,
    /// The request of kustomize for the reference, as far as text and field tell. `None` for a path.
    pub remote: Option<Rc<RemoteRef>>,
    pub resolution: Resolution,
}

/// The file or root that a reference leads to, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Resolution {
    /// A kustomization root.
    Root {
        id: RootId,
        /// Whether the reference is a URL.
        remote: bool,
    },
    File(FileId),
    /// A remote file or root that was not resolved, because the walk has no network or an exception covers it.
    Remote,
    /// The reference stays as it is: it is empty, or its file is allowed to be missing.
    Unchanged,
    /// The reference could not be followed. A trouble says why.
    Broken,
}

impl Edge {
    /// The lines of the reference.
    pub(crate) fn lines(&self) -> Lines {
        Lines { file: self.from, span: self.reference.span }
    }

    /// The file that it leads to. `None` if it leads to a root, or was not resolved.
    pub(crate) fn file(&self) -> Option<FileId> {
        if let Resolution::File(file) = self.resolution { Some(file) } else { None }
    }
}

impl Graph {
    /// Reads a file as kustomize does. A Git LFS pointer is an error.
    pub(crate) fn read(&self, file: FileId) -> Result<Rc<[u8]>> {
        let (tree, path) = match &self.files[file].origin {
            Origin::Tree { source, path } => (&self.sources[*source].tree, path),
            Origin::Remote(remote) => return Ok(remote.bytes.clone()),
            Origin::Archive { archive, path } => return Ok(archive.files.get(path).cloned().unwrap_or_default()),
        };
        let bytes = tree.read(path)?;
        // A generator would take the pointer for the content.
        if bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
            let message = format!("`{}` is a Git LFS pointer, not the file itself", tree.label(path));
            return Err(Failure::new(message).hint(
                "keep files that a build reads out of Git LFS (`git lfs migrate export`): a clone may contain only the pointers",
            ));
        }
        Ok(bytes.into())
    }

    /// The bytes of a file that was read before; empty if reading it fails now.
    pub(crate) fn bytes(&self, file: FileId) -> Rc<[u8]> {
        self.read(file).unwrap_or_default()
    }

    /// The reason of the exception by which `subject`, at these lines, may violate `rule`. A comment there counts
    /// before the configuration. `None` if neither has an exception.
    pub(crate) fn exception(
        &self,
        config: &Config,
        rule: Rule,
        subject: &Subject,
        Lines { file, span }: Lines,
    ) -> Option<String> {
        let comments = self.files[file].comments.as_deref().filter(|_| !self.ignores_comments);
        let mut allowing = comments.into_iter().flat_map(|comments| comments.allowing(rule, Some(span)));
        let comment = allowing.next().map(|(_, directive)| directive.reason.clone());
        comment.or_else(|| config.reason(rule, subject))
    }

    /// Records that a root lacks a local file that is allowed to be missing.
    pub(super) fn allow_missing(&mut self, root: RootId, path: &str) {
        let shown = self.sources[0].tree.label(path);
        self.missing.entry(root).or_insert(shown);
    }

    /// The ids of all roots.
    pub(crate) fn root_ids(&self) -> impl Iterator<Item = RootId> + use<> {
        (0..self.roots.len()).map(RootId)
    }

    /// The ids of all files.
    pub(super) fn file_ids(&self) -> impl Iterator<Item = FileId> + use<> {
        (0..self.files.len()).map(FileId)
    }

    /// All references, with their ids.
    pub(crate) fn edges(&self) -> impl Iterator<Item = (EdgeId, &Edge)> {
        self.root_ids().flat_map(|root| self.edges_of(root))
    }

    /// The references of a root, with their ids.
    pub(crate) fn edges_of(&self, root: RootId) -> impl Iterator<Item = (EdgeId, &Edge)> {
        self.roots[root].edges.iter().enumerate().map(move |(index, edge)| (EdgeId { root, index }, edge))
    }

    /// Whether any reference is an absolute path, or a path that leads out of its tree.
    pub(crate) fn reads_outside(&self) -> bool {
        let mut local = self.edges().filter(|(_, edge)| edge.remote.is_none());
        local.any(|(EdgeId { root, .. }, Edge { reference, .. })| {
            path::is_absolute(&reference.text) || self.local_path(root, &reference.text).is_none()
        })
    }

    /// The lines of a note.
    pub(crate) fn lines_of(&self, note: usize) -> Lines {
        let Noted { file, note, .. } = &self.notes[note];
        Lines { file: *file, span: Span::from(note.position) }
    }

    /// The file's path or URL as messages show it.
    pub(crate) fn label(&self, file: FileId) -> String {
        match &self.files[file].origin {
            Origin::Tree { source, path } => self.sources[*source].tree.label(path),
            Origin::Remote(remote) => remote.url.shown(),
            Origin::Archive { archive, path } => format!("{}: {path}", archive.chart.upstream()),
        }
    }

    /// The failure of a root whose kustomization is too large to be parsed. `None` if it was parsed, or failed for
    /// another reason.
    pub(crate) fn too_large(&self, root: RootId) -> Option<Failure> {
        let Root { kind: None, file, .. } = &self.roots[root] else { return None };
        let refused = kustomization::read(&self.bytes(*file)).err()?;
        let problem = refused.problems.into_iter().find(|problem| problem.kind == ProblemKind::TooLarge)?;
        Some(Failure::new(format!("`{}`: {}", self.label(*file), problem.message)).hint(problem.hint))
    }

    /// The roots that themselves reference a file whose YAML aliases stand for too many nodes, each with the failure of
    /// one such file. Such roots are not built, because kustomize expands the aliases until the memory is full.
    pub(crate) fn exploding(&self) -> BTreeMap<RootId, Failure> {
        // Each file is parsed once, although many roots may reference it.
        let (mut known, mut exploding) = (HashMap::new(), BTreeMap::new());
        for id in self.root_ids() {
            for Edge { reference, resolution: target, .. } in &self.roots[id].edges {
                let Resolution::File(file) = *target else { continue };
                // A generator copies its files, and a program runs: kustomize parses neither.
                if reference.key.is_some() || reference.accepts == Accepts::Program {
                    continue;
                }
                let failure = known.entry(file).or_insert_with(|| self.explodes(file));
                exploding.extend(failure.clone().map(|failure| (id, failure)));
            }
        }
        exploding
    }

    /// The failure of a file whose YAML aliases stand for too many nodes. `None` if they do not, or if it is not text.
    fn explodes(&self, file: FileId) -> Option<Failure> {
        let problem = kustomization::refuse_expansion(str::from_utf8(&self.bytes(file)).ok()?).err()?;
        let location = Location { position: problem.position, ..self.file_location(file) };
        Some(Failure::new(problem.message).hint(problem.hint).at(location))
    }

    /// The upstream that a file was fetched from, with its lock entry. `None` if the file is the user's.
    pub(crate) fn pinned(&self, file: FileId) -> Option<(Upstream, Pinned)> {
        match &self.files[file].origin {
            Origin::Archive { archive, .. } => Some(archive.pinned()),
            Origin::Remote(file) => Some(file.pinned()),
            Origin::Tree { source, .. } => Some(self.sources[*source].repository.as_ref()?.pinned()),
        }
    }

    /// Whether the file came over the network.
    pub(crate) fn is_fetched(&self, file: FileId) -> bool {
        match &self.files[file].origin {
            Origin::Tree { source, .. } => self.sources[*source].repository.is_some(),
            Origin::Remote(_) | Origin::Archive { .. } => true,
        }
    }

    /// The location of a file, as messages name it, without a line.
    pub(crate) fn file_location(&self, file: FileId) -> Location {
        let url = self.pinned(file).map(|(upstream, _)| upstream.to_string()).unwrap_or_default();
        let file = match &self.files[file].origin {
            // The URL is the whole name of a downloaded file. In an upstream it is followed by a path.
            Origin::Remote(_) => String::new(),
            Origin::Tree { path, .. } | Origin::Archive { path, .. } if !url.is_empty() => path.clone(),
            _ => self.label(file),
        };
        Location { url, file, ..Location::default() }
    }

    /// A location in a file.
    pub(crate) fn location_in(&self, file: FileId, position: Position, field: &str) -> Location {
        Location { position, field: field.to_owned(), ..self.file_location(file) }
    }

    /// The location of something that kustomize accepts, and the user should know: a
    /// [`Note`](crate::kustomization::Note), by its index in `notes`.
    pub(crate) fn note_location(&self, note: usize) -> Location {
        let Noted { file, note, .. } = &self.notes[note];
        self.location_in(*file, note.position, &note.field)
    }

    /// The location of a reference.
    pub(crate) fn location(&self, Edge { from, reference, .. }: &Edge) -> Location {
        self.location_in(*from, reference.span.start, &reference.field)
    }

    /// The files that the build of a root reads, charts included, without those of the roots that it references.
    pub(crate) fn files_of_build(&self, id: RootId) -> BTreeSet<FileId> {
        let of_charts = self.charts_of(id).iter().flat_map(|chart| chart.files.values().copied());
        self.files_of(id).chain(of_charts).collect()
    }

    /// The file that a reference leads to. For a root it is the kustomization. `None` if the reference was not
    /// resolved.
    pub(crate) fn resolved_file(&self, edge: &Edge) -> Option<FileId> {
        match edge.resolution {
            Resolution::Root { id, .. } => Some(self.roots[id].file),
            _ => edge.file(),
        }
    }

    /// The roots of the tree where the walk starts, by directory.
    pub(crate) fn user_roots(&self) -> HashMap<&str, RootId> {
        let roots = self.directories.get(&SourceId::FIRST).into_iter().flatten();
        roots.map(|(directory, id)| (directory.as_str(), *id)).collect()
    }

    /// The root in a directory of a tree.
    pub(crate) fn root_in(&self, source: SourceId, directory: &str) -> Option<RootId> {
        self.directories.get(&source)?.get(directory).copied()
    }

    /// Whether a root is in the tree where the walk starts.
    pub(crate) fn is_user_root(&self, root: RootId) -> bool {
        self.roots[root].source == SourceId::FIRST
    }

    /// The root in a directory of the tree where the walk starts.
    pub(crate) fn user_root(&self, directory: &str) -> Option<RootId> {
        self.root_in(SourceId::FIRST, directory)
    }

    /// The path of a file. `None` unless the file is in the tree where the walk starts.
    pub(crate) fn user_path(&self, file: FileId) -> Option<&str> {
        match &self.files[file].origin {
            Origin::Tree { source: SourceId::FIRST, path } => Some(path),
            _ => None,
        }
    }

    /// The paths of all files of the tree where the walk starts that its roots read.
    pub(crate) fn user_paths(&self) -> impl Iterator<Item = &str> {
        // A part of a survey also has the files of other parts.
        let mut is_read = vec![false; self.files.len()];
        let of_charts = self.charts.iter().flat_map(|chart| chart.files.values().copied());
        let files = self.root_ids().flat_map(|root| self.files_of(root)).chain(of_charts);
        files.for_each(|file| is_read[file.0] = true);
        self.file_ids().filter(move |file| is_read[file.0]).filter_map(|file| self.user_path(file))
    }

    /// The files of fetched repositories that builds read, with the directories whose licenses are copied with them:
    /// those of the roots, and the top directories. One request per repository fetches all of them.
    pub(super) fn fetched_paths(&self) -> Vec<(Rc<RemoteCommit>, String)> {
        let files = self.files.iter().filter_map(|file| match &file.origin {
            Origin::Tree { source, path } => Some((*source, path.as_str())),
            Origin::Remote(_) | Origin::Archive { .. } => None,
        });
        // A directory stands for the licenses in it: [`Remotes::prefetch`] fetches nothing else of it.
        let roots = self.roots.iter().flat_map(|root| [(root.source, &*root.directory), (root.source, "")]);
        let paths = files.chain(roots).collect::<BTreeSet<_>>().into_iter();
        paths.filter_map(|(source, path)| Some((self.sources[source].repository.clone()?, path.to_owned()))).collect()
    }

    /// The directories of the charts in the tree where the walk starts.
    pub(crate) fn user_charts(&self) -> impl Iterator<Item = &str> {
        let charts = self.charts.iter().filter(|chart| self.is_user_root(chart.root));
        charts.filter_map(|chart| if let ChartLookup::There(path) = &chart.lookup { Some(&**path) } else { None })
    }

    /// The path of the file that a reference leads to. `None` unless the file is in the tree where the walk starts.
    pub(crate) fn user_file(&self, edge: &Edge) -> Option<&str> {
        self.user_path(edge.file()?)
    }

    /// The real path that a local reference leads to. `None` unless it is in the tree where the walk starts.
    pub(crate) fn real_path(&self, edge: &Edge) -> Option<&str> {
        match edge.resolution {
            Resolution::Root { id, remote: false } if self.is_user_root(id) => Some(&self.roots[id].directory),
            _ => self.user_file(edge),
        }
    }

    /// The path from the top of the tree that `text` means as a path in `root`. `None` if it leads out of the tree.
    pub(crate) fn local_path(&self, root: RootId, text: &str) -> Option<String> {
        let root = &self.roots[root];
        if path::is_absolute(text) {
            self.sources[root.source].tree.absolute(text)
        } else {
            path::resolve(&root.directory, text)
        }
    }

    /// The root's directory as messages show it.
    pub(crate) fn root_label(&self, root: RootId) -> String {
        let root = &self.roots[root];
        self.sources[root.source].tree.label(&root.directory)
    }

    /// A path of a tree, relative to the scope of the tree.
    pub(crate) fn in_scope<'a>(&self, source: SourceId, path: &'a str) -> &'a str {
        path::below(path, &self.sources[source].scope).unwrap_or(path)
    }
}
