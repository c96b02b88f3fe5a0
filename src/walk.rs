//! The walk: from one kustomization root along every reference to everything that a build reads.
//!
//! The walk itself knows no network. Remote references are handed, level by level, to a
//! [`Remotes`]; a walk without one leaves them unresolved.

mod cycle;
mod graph;
mod local;
mod remote;

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
use crate::reference::{self, RepoSpec};
use crate::tree::{self, Resolved, path};

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
    let target = walker.enter(0, &start.directory).map_err(Failures::from)?;
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
    fn enter(&mut self, source: SourceId, directory: &str) -> Result<RootId> {
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
                let is_git = spec.is_some() && reference::has_git_marker(text);
                if is_git && reference.accepts == Accepts::Plugin {
                    // Not fetched, as it stays what it is.
                    return Ok(self.keep_plugin(root, edge, "a git URL"));
                }
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
            message: format!("{}{}", note.message, left_behind(&note.kind)),
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

/// What a note means for the result: what was found is left as it is.
fn left_behind(kind: &NoteKind) -> &'static str {
    match kind {
        NoteKind::RemoteChart { .. } => {
            "; left as it is: to build the copy takes helm and the network"
        }
        NoteKind::LocalChart { .. } | NoteKind::ChartHome { .. } | NoteKind::ConfigHome { .. } => {
            "; left as it is: the copy does not hold it"
        }
        NoteKind::KrmFunction { .. } | NoteKind::LegacyPlugin { .. } => {
            "; left as it is: the copy does not hold its code"
        }
        NoteKind::DuplicateKey { .. } | NoteKind::ExtraDocument | NoteKind::SplitUrl => "",
    }
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
