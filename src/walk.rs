//! The walk: from one kustomization root along every reference to everything that a build reads.
//!
//! The walk itself knows no network. Remote references are handed, level by level, to a
//! [`Remotes`]; a walk without one leaves them unresolved.

mod cycle;
mod graph;

pub use graph::{
    Edge, File, FileId, Graph, Origin, RemoteFile, Repository, Root, RootId, Source, SourceId,
    Target, Warning,
};

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::failure::{Failure, Failures, Location, Result};
use crate::kustomization::{self, Accepts, Kind, NoteKind, Problem, Reference};
use crate::record::LoadRestrictor;
use crate::redact;
use crate::reference::{self, RepoSpec, Unsafe};
use crate::tree::{self, Resolved, SharedTree, path};

/// What a reference that kustomize reads over the network may turn out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Wants {
    /// A file field: always an HTTP GET.
    File,
    /// `components`, and whatever is no http(s) URL: always git.
    Root,
    /// `resources`, `bases` and plugin lists: a file if the answer is one, else git.
    Either,
}

/// A remote reference to resolve.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The reference as written.
    pub text: String,
    /// What it may be.
    pub wants: Wants,
    /// How kustomize splits it, if it takes it for git.
    pub spec: Option<RepoSpec>,
}

/// What a remote reference turned out to be.
#[derive(Clone)]
pub enum Found {
    /// A file.
    File(Rc<RemoteFile>),
    /// A repository; the root lies in the directory that the reference names.
    Root(Rc<Repository>),
}

/// Brings in what remote references name.
pub trait Remotes {
    /// Resolves references that were found at one depth, side by side: one answer for each, in
    /// their order. The same reference is never asked for twice in one call.
    fn resolve(&mut self, wanted: &[Wanted]) -> Vec<Result<Found>>;
}

/// Why a local file is not in the tree that is walked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    /// It is nowhere.
    Nowhere,
    /// It is on disk, but git does not track it (or has it staged only).
    Untracked,
    /// It is kept out of git by a rule, at this place, with this pattern.
    Ignored(String, String),
}

/// What changes how a walk goes.
#[derive(Default)]
pub struct Options<'a> {
    /// Where files may lie. In a remote root always in or below the root.
    pub load_restrictor: LoadRestrictor,
    /// Says of a local path (from the top of the tree) that it may be missing: a reference to it
    /// stays as it is.
    pub leave_missing: Option<&'a dyn Fn(&str) -> bool>,
    /// Tells why a local file is missing.
    pub absence: Option<&'a dyn Fn(&str) -> Absence>,
    /// A directory of the tree that no reference may reach: where the result is going to be.
    pub forbidden: Option<String>,
}

/// Where a walk starts.
pub struct Start {
    /// The tree.
    pub source: Source,
    /// The target's directory in it.
    pub directory: String,
}

/// Walks everything that the target references.
///
/// # Errors
/// Every independent problem of the walk, in a stable order.
pub fn walk(
    start: Start,
    remotes: Option<&mut dyn Remotes>,
    options: &Options<'_>,
) -> Result<Graph, Failures> {
    let mut walker = Walker {
        graph: Graph::default(),
        options,
        offline: remotes.is_none(),
        roots: HashMap::new(),
        files: HashMap::new(),
        downloads: HashMap::new(),
        repositories: HashMap::new(),
        queue: Vec::new(),
        pending: Vec::new(),
        failures: Vec::new(),
        unread: HashSet::new(),
    };
    walker.graph.sources.push(start.source);
    let target = walker
        .enter(0, &start.directory, None)
        .map_err(Failures::from)?;
    debug_assert_eq!(target, 0);
    let mut remotes = remotes;
    loop {
        while let Some(root) = walker.queue.pop() {
            walker.read_root(root);
        }
        let Some(remotes) = remotes.as_deref_mut() else {
            break;
        };
        if walker.pending.is_empty() {
            break;
        }
        walker.resolve_pending(remotes);
    }
    walker.finish()
}

/// A remote reference that waits for its level to be complete.
struct Pending {
    root: RootId,
    edge: usize,
    wanted: Wanted,
    component: Option<bool>,
    plugin: bool,
}

struct Walker<'a> {
    graph: Graph,
    options: &'a Options<'a>,
    offline: bool,
    roots: HashMap<(SourceId, String), RootId>,
    files: HashMap<(SourceId, String), FileId>,
    downloads: HashMap<String, FileId>,
    repositories: HashMap<*const Repository, SourceId>,
    queue: Vec<RootId>,
    pending: Vec<Pending>,
    failures: Vec<Failure>,
    /// Roots whose kustomization cannot be read, so that nobody knows their kind.
    unread: HashSet<RootId>,
}

impl Walker<'_> {
    /// Makes the directory (a real path) a root of the graph, to be read later.
    fn enter(
        &mut self,
        source: SourceId,
        directory: &str,
        referrer: Option<RootId>,
    ) -> Result<RootId> {
        let key = (source, directory.to_owned());
        if let Some(known) = self.roots.get(&key) {
            return Ok(*known);
        }
        let (file_name, file) = self.kustomization_file(source, directory)?;
        let id = self.graph.roots.len();
        self.graph.roots.push(Root {
            source,
            directory: directory.to_owned(),
            file_name,
            file,
            kind: Kind::Kustomization,
            edges: Vec::new(),
            referrer,
        });
        self.roots.insert(key, id);
        self.queue.push(id);
        // Which kind it is decides whether the reference that led here is a legal one.
        match kustomization::read(&self.graph.files[file].bytes) {
            Ok(read) => {
                self.graph.roots[id].kind = read.kind;
                for note in read.notes {
                    self.note(file, note);
                }
                for reference in read.references {
                    self.graph.roots[id].edges.push(Edge {
                        from: file,
                        reference,
                        target: Target::Broken,
                    });
                }
            }
            Err(problems) => {
                self.unread.insert(id);
                self.problems(file, problems);
            }
        }
        Ok(id)
    }

    fn kustomization_file(
        &mut self,
        source: SourceId,
        directory: &str,
    ) -> Result<(&'static str, FileId)> {
        let tree = self.graph.sources[source].tree.clone();
        let mut found = Vec::new();
        for name in kustomization::FILE_NAMES {
            // A link that leaves the root counts as absent (kustomize's loader refuses to read it).
            if let Resolved::File { path, executable } =
                tree::resolve(&*tree, &path::join(directory, name))?
                && path::is_in(&path, directory)
            {
                found.push((name, path, executable));
            }
        }
        let shown = tree.label(directory);
        match found.as_slice() {
            [(name, path, executable)] => Ok((*name, self.file(source, path, *executable)?)),
            [] => Err(
                Failure::new(format!("no kustomization file in `{shown}`")).hint(format!(
                    "a kustomization root holds one of {}",
                    kustomization::FILE_NAMES
                        .map(|name| format!("`{name}`"))
                        .join(", ")
                )),
            ),
            several => Err(Failure::new(format!(
                "several kustomization files in `{shown}`: {}",
                several
                    .iter()
                    .map(|(name, ..)| *name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ))
            .hint("keep one of them: `kustomize build` refuses more")),
        }
    }

    fn file(&mut self, source: SourceId, path: &str, executable: bool) -> Result<FileId> {
        let key = (source, path.to_owned());
        if let Some(known) = self.files.get(&key) {
            return Ok(*known);
        }
        let tree = &self.graph.sources[source].tree;
        let bytes = tree.read(path)?;
        if bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
            return Err(
                Failure::new(format!("`{}` is a Git LFS pointer, not the file itself", tree.label(path))).hint(
                    "keep files that a build reads out of Git LFS (`git lfs migrate export`): what stands in for them differs from clone to clone",
                ),
            );
        }
        let id = self.graph.files.len();
        self.graph.files.push(File {
            origin: Origin::Tree {
                source,
                path: path.to_owned(),
            },
            bytes: bytes.into(),
            executable,
        });
        self.files.insert(key, id);
        Ok(id)
    }

    fn downloaded(&mut self, remote: &Rc<RemoteFile>) -> FileId {
        if let Some(known) = self.downloads.get(&remote.url) {
            return *known;
        }
        let id = self.graph.files.len();
        self.graph.files.push(File {
            origin: Origin::Remote(remote.clone()),
            bytes: remote.bytes.clone(),
            executable: false,
        });
        self.downloads.insert(remote.url.clone(), id);
        id
    }

    fn read_root(&mut self, root: RootId) {
        // Plugin files add edges while the loop runs.
        let mut index = 0;
        while index < self.graph.roots[root].edges.len() {
            self.follow(root, index);
            index += 1;
        }
    }

    fn follow(&mut self, root: RootId, edge: usize) {
        let (from, reference) = {
            let edge = &self.graph.roots[root].edges[edge];
            (edge.from, edge.reference.clone())
        };
        let target = match self.target(root, edge, &reference) {
            Ok(target) => target,
            Err(failure) => {
                let location = self.graph.location(from, &reference);
                self.failures.push(failure.at(location));
                Target::Broken
            }
        };
        self.graph.roots[root].edges[edge].target = target;
    }

    fn target(&mut self, root: RootId, edge: usize, reference: &Reference) -> Result<Target> {
        let text = reference.text.as_str();
        if text.is_empty() {
            // kustomize skips empty strings in path fields.
            return Ok(Target::Kept);
        }
        if text.chars().any(char::is_control) {
            return Err(Failure::new("the reference holds control characters"));
        }
        match reference.accepts {
            Accepts::File if reference::is_remote_file(text) => {
                self.wait(root, edge, text, Wants::File, None, reference.accepts)
            }
            Accepts::File => self.local_file(root, edge, text),
            Accepts::Root { .. } => match RepoSpec::parse(text) {
                Ok(spec) => self.wait(root, edge, text, Wants::Root, Some(spec), reference.accepts),
                Err(_) => self.local_root(root, edge, text, reference.accepts),
            },
            Accepts::Either | Accepts::Plugin => {
                let spec = RepoSpec::parse(text).ok();
                if reference::is_remote_file(text) {
                    return self.wait(root, edge, text, Wants::Either, spec, reference.accepts);
                }
                if self.is_local_file(root, text)? {
                    let target = self.local_file(root, edge, text)?;
                    if let (Accepts::Plugin, Target::File(file)) = (reference.accepts, target) {
                        self.read_plugin(root, file, &reference.field);
                    }
                    return Ok(target);
                }
                match (spec, reference.accepts) {
                    (Some(_), Accepts::Plugin) => Ok(self.keep_plugin(root, edge, "a git URL")),
                    (Some(spec), accepts) => {
                        self.wait(root, edge, text, Wants::Root, Some(spec), accepts)
                    }
                    (None, Accepts::Plugin) => match self.local_directory(root, edge, text)? {
                        Some(_) => Ok(self.keep_plugin(root, edge, "a directory")),
                        None => Ok(Target::Kept),
                    },
                    (None, accepts) => self.local_root(root, edge, text, accepts),
                }
            }
        }
    }

    /// Leaves a remote reference for the end of this level.
    fn wait(
        &mut self,
        root: RootId,
        edge: usize,
        text: &str,
        wants: Wants,
        spec: Option<RepoSpec>,
        accepts: Accepts,
    ) -> Result<Target> {
        // A URL whose path climbs is no repository for us, but it may be a file.
        let spec = spec.filter(|spec| {
            wants != Wants::Either
                || !matches!(
                    reference::refuse_unsafe(text, Some(spec)),
                    Err(Unsafe::Escapes(_))
                )
        });
        reference::refuse_unsafe(text, spec.as_ref().filter(|_| wants != Wants::File)).map_err(|reason| {
            Failure::new(format!("`{}` is refused: {reason}", redact::url(text)))
                .hint("a URL, host, path or ref that git could take for something else is never passed on")
        })?;
        let referrer = &self.graph.sources[self.graph.roots[root].source].repository;
        if spec.as_ref().is_some_and(RepoSpec::is_file)
            && referrer
                .as_ref()
                .is_some_and(|repository| !repository.url.starts_with("file://"))
        {
            return Err(Failure::new(format!(
                "`{}` is refused: a remote repository may not name a path of this machine",
                redact::url(text)
            ))
            .hint("what it names would be copied from here into what you publish: use another ref or a fork"));
        }
        if !self.offline {
            self.pending.push(Pending {
                root,
                edge,
                wanted: Wanted {
                    text: text.to_owned(),
                    wants,
                    spec,
                },
                component: match accepts {
                    Accepts::Root { component } => Some(component),
                    Accepts::Either => Some(false),
                    _ => None,
                },
                plugin: accepts == Accepts::Plugin,
            });
        }
        Ok(Target::Remote)
    }

    fn is_local_file(&self, root: RootId, text: &str) -> Result<bool> {
        let Some(path) = self.local_path(root, text)? else {
            return Ok(false);
        };
        let root = &self.graph.roots[root];
        let tree = &self.graph.sources[root.source].tree;
        Ok(match tree::resolve(&**tree, &path)? {
            Resolved::File { .. } => true,
            // A link that leaves may be a file: `local_file` says what is wrong with it.
            Resolved::Leaves { .. } | Resolved::Loop { .. } => RepoSpec::parse(text).is_err(),
            _ => false,
        })
    }

    /// Returns the path in the tree that a local reference means; `None` when it is outside.
    fn local_path(&self, root: RootId, text: &str) -> Result<Option<String>> {
        let root = &self.graph.roots[root];
        let source = &self.graph.sources[root.source];
        Ok(match path::is_absolute(text) {
            true => source.tree.absolute(text),
            false => path::resolve(&root.directory, text),
        })
    }

    fn local_file(&mut self, root: RootId, edge: usize, text: &str) -> Result<Target> {
        let directory = self.graph.roots[root].directory.clone();
        let source_id = self.graph.roots[root].source;
        let source = &self.graph.sources[source_id];
        let remote = source.repository.is_some();
        let tree = source.tree.clone();
        let none = !remote && self.options.load_restrictor == LoadRestrictor::None;
        let bound = match none {
            true => source.scope.clone(),
            false => directory,
        };
        let outside = |what: &str| {
            let failure = Failure::new(match none {
                true => format!("`{text}` {what} the scope `{}`", tree.label(&bound)),
                false => format!(
                    "`{text}` {what} its kustomization root `{}`",
                    tree.label(&bound)
                ),
            });
            match (none, remote) {
                (true, _) => failure.hint("widen the scope with `--scope DIR`"),
                (false, true) => failure.hint("`kustomize build` refuses files outside their root in a remote root"),
                (false, false) => {
                    failure.hint("kustomize builds this with `--load-restrictor LoadRestrictionsNone` only: give `--load-restrictor none`")
                }
            }
        };
        if remote && path::is_absolute(text) {
            return Err(Failure::new(format!(
                "`{text}` is an absolute path in a remote root"
            ))
            .hint("no checkout of its repository has such a file: `kustomize build` refuses it too"));
        }
        let Some(path) = self.local_path(root, text)? else {
            return Err(outside("lies outside"));
        };
        self.not_forbidden(source_id, &path, text)?;
        match tree::resolve(&*tree, &path)? {
            Resolved::File { path, executable } => {
                if !path::is_in(path::parent(&path), &bound) {
                    return Err(outside(match path::is_in(&path, &bound) {
                        true => "leaves",
                        false => "lies outside",
                    }));
                }
                self.not_forbidden(source_id, &path, text)?;
                self.file(source_id, &path, executable).map(Target::File)
            }
            Resolved::Directory { .. } => {
                Err(Failure::new(format!("`{text}` is a directory, not a file")))
            }
            Resolved::Missing { path } if self.may_be_missing(source_id, &path) => {
                Ok(self.keep_missing(root, edge, &path))
            }
            other => {
                Err(self.unresolved(source_id, text, other, &|| outside("lies outside"), &bound))
            }
        }
    }

    fn local_root(
        &mut self,
        root: RootId,
        edge: usize,
        text: &str,
        accepts: Accepts,
    ) -> Result<Target> {
        let Some((source, directory)) = self.local_directory(root, edge, text)? else {
            return Ok(Target::Kept);
        };
        let id = self.enter(source, &directory, Some(root))?;
        self.check_kind(id, text, accepts)?;
        Ok(Target::Root { id, remote: false })
    }

    /// Returns the real path of the directory that a local reference names; `None` if it is missing
    /// and may be.
    fn local_directory(
        &mut self,
        root: RootId,
        edge: usize,
        text: &str,
    ) -> Result<Option<(SourceId, String)>> {
        if let Some(failure) = unsupported(text) {
            return Err(failure);
        }
        if path::is_absolute(text) {
            return Err(Failure::new(format!("`{text}` is an absolute path")).hint(
                "`kustomize build` takes those for files in their root only: write a relative path",
            ));
        }
        let source_id = self.graph.roots[root].source;
        let source = &self.graph.sources[source_id];
        let tree = source.tree.clone();
        let scope = source.scope.clone();
        let remote = source.repository.is_some();
        let outside = || {
            let failure = Failure::new(format!(
                "`{text}` lies outside the scope `{}`",
                tree.label(&scope)
            ));
            match remote {
                true => failure.hint("a remote root cannot reach out of its repository"),
                false => failure.hint("name a directory that holds both with `--scope DIR`"),
            }
        };
        let Some(path) = path::resolve(&self.graph.roots[root].directory, text) else {
            return Err(outside());
        };
        match tree::resolve(&*tree, &path)? {
            Resolved::Directory { path } => {
                if !path::is_in(&path, &scope) {
                    return Err(outside());
                }
                self.not_forbidden(source_id, &path, text)?;
                Ok(Some((source_id, path)))
            }
            Resolved::File { .. } => {
                Err(Failure::new(format!("`{text}` is a file, not a directory")))
            }
            Resolved::Missing { path } if self.may_be_missing(source_id, &path) => {
                self.keep_missing(root, edge, &path);
                Ok(None)
            }
            other => Err(self.unresolved(source_id, text, other, &outside, &scope)),
        }
    }

    fn not_forbidden(&self, source: SourceId, path: &str, text: &str) -> Result<()> {
        match &self.options.forbidden {
            Some(directory) if source == 0 && path::is_in(path, directory) => {
                Err(Failure::new(format!(
                    "`{text}` lies in `{}`, where the result is going to be",
                    self.graph.sources[0].tree.label(directory)
                ))
                .hint("choose another NEW_DIR"))
            }
            _ => Ok(()),
        }
    }

    /// Says why a local path leads nowhere.
    fn unresolved(
        &self,
        source: SourceId,
        text: &str,
        resolved: Resolved,
        outside: &dyn Fn() -> Failure,
        bound: &str,
    ) -> Failure {
        let tree = &self.graph.sources[source].tree;
        match resolved {
            Resolved::Leaves { link, target } => Failure::new(format!(
                "`{text}` follows the link `{}` to `{target}`, out of the tree",
                tree.label(&link)
            ))
            .hint("replace the link by what it points to"),
            Resolved::Loop { link } => Failure::new(format!(
                "`{text}`: the links at `{}` lead to each other",
                tree.label(&link)
            )),
            Resolved::Submodule { path } => Failure::new(format!(
                "`{text}` lies in the submodule `{}`, whose files this repository does not hold",
                tree.label(&path)
            ))
            .hint("name the submodule's repository by URL, or copy the files into this one"),
            Resolved::Missing { path } if !path::is_in(&path, bound) => outside(),
            Resolved::Missing { path } => {
                let local = self.graph.sources[source].repository.is_none();
                self.missing(text, &path, local, &**tree)
            }
            Resolved::File { .. } | Resolved::Directory { .. } => {
                Failure::new(format!("`{text}` cannot be used here"))
            }
        }
    }

    fn missing(&self, text: &str, path: &str, local: bool, tree: &dyn tree::Tree) -> Failure {
        if let Some(failure) = unsupported(text) {
            return failure;
        }
        if RepoSpec::parse(text).is_ok() {
            return Failure::new(format!(
                "`{}` names a git repository, but this field takes a file",
                redact::url(text)
            ))
            .hint("name the file by its raw https URL");
        }
        let shown = tree.label(path);
        let absence = match self.options.absence {
            Some(absence) if local => absence(path),
            _ => Absence::Nowhere,
        };
        match absence {
            Absence::Nowhere => {
                Failure::new(format!("`{text}` does not exist: there is no `{shown}`"))
            }
            Absence::Untracked => Failure::new(format!(
                "`{text}` is not committed: `{shown}` is on disk only"
            ))
            .hint(format!("git add -f -- {shown} && git commit")),
            Absence::Ignored(place, pattern) => Failure::new(format!(
                "`{text}` is kept out of git: `{shown}` matches `{pattern}` ({place})"
            ))
            .hint(format!(
                "to leave the reference as it is: --leave-missing '{shown}'"
            )),
        }
    }

    fn check_kind(&self, id: RootId, text: &str, accepts: Accepts) -> Result<()> {
        let expected = match accepts {
            Accepts::Root { component: true } => Kind::Component,
            _ => Kind::Kustomization,
        };
        if self.unread.contains(&id) {
            return Ok(());
        }
        let shown = redact::url(text);
        match (expected, self.graph.roots[id].kind) {
            (Kind::Component, Kind::Kustomization) => Err(Failure::new(format!(
                "`{shown}` is a Kustomization, but `components` takes a Component"
            ))
            .hint("name it in `resources`")),
            (Kind::Kustomization, Kind::Component) => Err(Failure::new(format!(
                "`{shown}` is a Component, which only `components` takes"
            ))
            .hint("name it in `components`")),
            _ => Ok(()),
        }
    }

    fn resolve_pending(&mut self, remotes: &mut dyn Remotes) {
        let pending = std::mem::take(&mut self.pending);
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut index: HashMap<(String, Wants), usize> = HashMap::new();
        let places: Vec<usize> = pending
            .iter()
            .map(|one| {
                *index
                    .entry((one.wanted.text.clone(), one.wanted.wants))
                    .or_insert_with(|| {
                        wanted.push(one.wanted.clone());
                        wanted.len() - 1
                    })
            })
            .collect();
        let found = remotes.resolve(&wanted);
        for (one, place) in pending.into_iter().zip(places) {
            let answer = match found.get(place) {
                Some(answer) => answer.clone(),
                None => Err(Failure::new("the reference was not resolved")),
            };
            let (from, reference) = {
                let edge = &self.graph.roots[one.root].edges[one.edge];
                (edge.from, edge.reference.clone())
            };
            let target = match self.arrive(&one, &reference, answer) {
                Ok(target) => target,
                Err(failure) => {
                    let failure = self.explain(one.root, &reference, failure);
                    self.failures
                        .push(failure.at(self.graph.location(from, &reference)));
                    Target::Broken
                }
            };
            self.graph.roots[one.root].edges[one.edge].target = target;
        }
    }

    /// Adds what only the tree can tell about a remote reference that failed.
    fn explain(&self, root: RootId, reference: &Reference, failure: Failure) -> Failure {
        let text = reference.text.as_str();
        if !text.contains("://")
            && let Ok(Some(path)) = self.local_path(root, text)
            && let Ok(Resolved::Directory { .. }) = tree::resolve(
                &*self.graph.sources[self.graph.roots[root].source].tree,
                &path,
            )
        {
            return failure.hint(format!(
                "kustomize takes `{text}` for a git URL although there is such a directory: write `./{text}`"
            ));
        }
        match reference::web_page_hint(text) {
            Some(hint) => failure.hint(hint),
            None => failure,
        }
    }

    fn arrive(
        &mut self,
        one: &Pending,
        reference: &Reference,
        answer: Result<Found>,
    ) -> Result<Target> {
        match answer? {
            Found::File(remote) => {
                let file = self.downloaded(&remote);
                if one.plugin {
                    let added = self.graph.roots[one.root].edges.len();
                    self.read_plugin(one.root, file, &reference.field);
                    for edge in added..self.graph.roots[one.root].edges.len() {
                        self.follow(one.root, edge);
                    }
                }
                Ok(Target::File(file))
            }
            Found::Root(_) if one.plugin => Ok(self.keep_plugin(one.root, one.edge, "a git URL")),
            Found::Root(repository) => {
                let spec = one
                    .wanted
                    .spec
                    .as_ref()
                    .ok_or_else(|| Failure::new("the reference is no git URL"))?;
                let source = self.source(&repository);
                let tree: SharedTree = self.graph.sources[source].tree.clone();
                let shown = redact::url(&one.wanted.text);
                let directory = match tree::resolve(&*tree, &spec.directory())? {
                    Resolved::Directory { path } => path,
                    Resolved::File { .. } => {
                        return Err(Failure::new(format!(
                            "`{shown}` names a file of a repository, not a directory"
                        ))
                        .hint("name the file by its raw https URL"));
                    }
                    Resolved::Leaves { link, target } => {
                        return Err(Failure::new(format!(
                            "`{shown}` follows the link `{link}` to `{target}`, out of its repository"
                        )));
                    }
                    _ => {
                        return Err(Failure::new(format!(
                            "`{shown}`: there is no directory `{}` in {} at {}",
                            spec.directory(),
                            repository.url,
                            repository.commit
                        )));
                    }
                };
                let id = self.enter(source, &directory, Some(one.root))?;
                if one.component.is_some() {
                    self.check_kind(id, &one.wanted.text, reference.accepts)?;
                }
                Ok(Target::Root { id, remote: true })
            }
        }
    }

    fn source(&mut self, repository: &Rc<Repository>) -> SourceId {
        let key = Rc::as_ptr(repository);
        if let Some(known) = self.repositories.get(&key) {
            return *known;
        }
        let id = self.graph.sources.len();
        self.graph.sources.push(Source {
            tree: repository.tree.clone(),
            scope: String::new(),
            repository: Some(repository.clone()),
        });
        self.repositories.insert(key, id);
        id
    }

    /// Adds the references of a plugin configuration to the root that lists it: kustomize resolves
    /// them there, wherever the configuration itself lies.
    fn read_plugin(&mut self, root: RootId, file: FileId, field: &str) {
        match kustomization::read_plugin(&self.graph.files[file].bytes) {
            Ok(plugin) => {
                for note in plugin.notes {
                    self.note(file, note);
                }
                for mut reference in plugin.references {
                    reference.field = format!("{field} > {}", reference.field);
                    self.graph.roots[root].edges.push(Edge {
                        from: file,
                        reference,
                        target: Target::Broken,
                    });
                }
            }
            Err(problems) => self.problems(file, problems),
        }
    }

    fn may_be_missing(&self, source: SourceId, path: &str) -> bool {
        source == 0 && self.options.leave_missing.is_some_and(|may| may(path))
    }

    fn keep_missing(&mut self, root: RootId, edge: usize, path: &str) -> Target {
        let edge = &self.graph.roots[root].edges[edge];
        let location = self.graph.location(edge.from, &edge.reference);
        let shown = self.graph.sources[0].tree.label(path);
        self.graph.warnings.push(Warning {
            id: "left-missing",
            message: format!(
                "`{}` is left as it is: there is no `{shown}`, so the result does not build without it",
                edge.reference.text
            ),
            location,
        });
        Target::Kept
    }

    fn keep_plugin(&mut self, root: RootId, edge: usize, what: &str) -> Target {
        let edge = &self.graph.roots[root].edges[edge];
        let location = self.graph.location(edge.from, &edge.reference);
        self.graph.warnings.push(Warning {
            id: "plugin-root",
            message: format!(
                "`{}` is {what} of plugin configurations: left as it is, so the result may not build without it",
                redact::url(&edge.reference.text)
            ),
            location,
        });
        Target::Kept
    }

    fn note(&mut self, file: FileId, note: kustomization::Note) {
        let location = Location {
            file: self.graph.label(file),
            line: note.line,
            column: note.column,
            field: note.field.clone(),
        };
        self.graph.warnings.push(Warning {
            id: warning_id(&note.kind),
            message: note.message,
            location,
        });
    }

    fn problems(&mut self, file: FileId, problems: Vec<Problem>) {
        for problem in problems {
            let mut failure = Failure::new(problem.message).at(Location {
                file: self.graph.label(file),
                line: problem.line,
                column: problem.column,
                field: problem.field,
            });
            failure.hints = problem.hints;
            self.failures.push(failure);
        }
    }

    fn finish(mut self) -> Result<Graph, Failures> {
        self.failures.extend(cycle::find(&self.graph));
        if !self.failures.is_empty() {
            // Remote references fail after local ones, but a file is read from its top.
            self.failures
                .sort_by(|one, other| one.location.cmp(&other.location));
            let mut seen = HashSet::new();
            self.failures.retain(|failure| seen.insert(failure.clone()));
            return Err(Failures(self.failures));
        }
        let mut seen = HashSet::new();
        self.graph
            .warnings
            .retain(|warning| seen.insert(warning.clone()));
        Ok(self.graph)
    }
}

/// Says so where a reference was surely meant to be remote, but not for kustomize.
fn unsupported(text: &str) -> Option<Failure> {
    let scheme = reference::unsupported_scheme(text)?;
    Some(
        Failure::new(format!(
            "`{}`: kustomize cannot read `{scheme}`",
            redact::url(text)
        ))
        .hint("use an https, ssh or file URL of a git repository, or the https URL of a file"),
    )
}

/// The stable id of the warning that a note becomes.
fn warning_id(kind: &NoteKind) -> &'static str {
    match kind {
        NoteKind::DuplicateKey { .. } => "duplicate-key",
        NoteKind::ExtraDocument => "extra-document",
        NoteKind::SplitUrl => "split-url",
        NoteKind::RemoteChart { .. } => "remote-chart",
        NoteKind::LocalChart { .. } => "local-chart",
        NoteKind::ChartHome { .. } => "chart-home",
        NoteKind::ConfigHome { .. } => "config-home",
        NoteKind::KrmFunction { .. } => "function",
        NoteKind::LegacyPlugin { .. } => "legacy-plugin",
    }
}
