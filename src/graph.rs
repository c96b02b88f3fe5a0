//! The walk: from one kustomization root along every reference to everything that a build reads.
//!
//! The walk itself knows no network. Remote references are handed, level by level, to a
//! [`Remotes`]; a walk without one leaves them unresolved.

mod ahead;
mod bundle;
mod chain;
mod chart;
mod cycle;
pub(crate) mod inputs;
mod local;
mod nodes;
mod places;
mod plugin;
mod remote;
mod remote_ref;
#[cfg(test)]
pub(crate) mod testing;
mod trouble;

pub(crate) use chart::{Archive, CHART_HOME, Chart, ChartHomes, ChartRef, Place, Pulled};
pub(crate) use nodes::{
    CarriedId, Edge, File, FileId, Graph, Noted, Origin, RemoteFile, Repository, Root, RootId, Source, SourceId,
    Target, Warning,
};
pub(crate) use remote::no_directory;
pub(crate) use remote_ref::{Found, NamedBy, RemoteRef, Remotes, Wants, accepted, rules, subject};
pub(crate) use trouble::{Beyond, Trouble, TroubleKind};

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use crate::config::{Comments, Config};
use crate::kustomization::{self, Accepts, FunctionRuntime, Kustomization, NoteKind, ProblemKind, Reference, Refused};
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::message::finding::Rule;
use crate::message::redact::SafeUrl;
use crate::os::limits::{FILE, FINDINGS, RUN};
use crate::record::{LoadRestrictor, stored};
pub(crate) use crate::tree::absence::Absence;
use crate::tree::{self, Resolved, path};
use places::Places;
use plugin::PluginRoot;
use trouble::{WalkError, WalkResult};

/// How many bytes of kustomizations are read at once, before what they say is kept: that takes less memory.
const AT_ONCE: usize = 1 << 20;

/// What changes how a walk goes.
#[derive(Default)]
pub(crate) struct Options<'a> {
    /// Where files may lie. In a remote root always in or below the root.
    pub load_restrictor: LoadRestrictor,
    /// The directories of roots that may load any file in their scope, whatever the load restrictor says: who deploys
    /// them builds them so.
    pub unrestricted: Option<&'a HashSet<String>>,
    /// Returns whether a local path (from the top of the tree) may be missing, besides those at which a comment says so: a
    /// reference to it does not change.
    pub leave_missing: Option<&'a dyn Fn(&str) -> bool>,
    /// Explains why a local file is missing.
    pub absence: Option<&'a dyn Fn(&str) -> Absence>,
    /// A directory of the tree that no reference may reach: where the result is going to be.
    pub forbidden: Option<String>,
    /// What is read.
    pub contents: Contents,
    /// Whether the bytes of the kustomizations at which the walk starts are dropped; they can be [read
    /// again](Graph::bytes).
    pub drops_bytes: bool,
    /// Says what stays remote, besides comments.
    pub leave: Option<&'a Config>,
    /// Returns whether something remote stays so although no exception covers it.
    pub keeps: Option<&'a dyn Fn(&RemoteRef) -> bool>,
    /// Whether no comments count: nobody who may decide wrote them.
    pub ignores_comments: bool,
    /// Whether what stays remote is requested all the same, and followed as far as there is an answer.
    pub asks_for_left: bool,
}

/// Which files a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Contents {
    /// Every file that it reaches.
    #[default]
    All,
    /// Those that lead further: kustomizations and plugin configurations. The bytes of all others
    /// stay empty.
    Configurations,
    /// The same in the tree that is walked, and every file of what is fetched.
    Fetched,
}

/// What a walk over many roots came to.
pub(crate) struct Explored {
    /// Everything that could be followed.
    pub graph: Graph,
    /// Everything that could not, in a stable order.
    pub troubles: Vec<Trouble>,
    /// The root of each directory that the walk was given, in their order; none if the directory has no root.
    pub starts: Vec<Option<RootId>>,
}

/// Where a walk starts.
pub(crate) struct Start {
    /// The tree.
    pub source: Source,
    /// The target's directory in it.
    pub directory: String,
}

/// Walks everything that the target references.
pub(crate) fn walk(start: Start, remotes: Option<&mut dyn Remotes>, options: &Options<'_>) -> Result<Graph, Failures> {
    let explored = explore(start.source, &[start.directory], remotes, options);
    if explored.troubles.is_empty() {
        return Ok(explored.graph);
    }
    let mut seen = HashSet::new();
    Err(Failures(
        explored
            .troubles
            .into_iter()
            .map(|trouble| trouble.failure)
            .filter(|failure| seen.insert(failure.clone()))
            .collect(),
    ))
}

/// Walks everything that the roots in `directories` (real paths in the tree of `source`) reference.
/// What cannot be followed never stops the rest.
pub(crate) fn explore(
    source: Source,
    directories: &[String],
    remotes: Option<&mut dyn Remotes>,
    options: &Options<'_>,
) -> Explored {
    let mut walker = Walker {
        graph: Graph::default(),
        options,
        offline: remotes.is_none(),
        roots: Places::default(),
        files: Places::default(),
        references: HashSet::new(),
        no_bytes: Rc::new([]),
        downloads: HashMap::new(),
        repositories: HashMap::new(),
        queue: Vec::new(),
        pending: Vec::new(),
        plugin_roots: Vec::new(),
        listed: HashSet::new(),
        plugins: HashSet::new(),
        read_plugins: HashMap::new(),
        references_read: 0,
        remotes: 0,
        is_full: false,
        carried: HashMap::new(),
        troubles: Vec::new(),
    };
    walker.graph.sources.push(source);
    let starts = walker.start(directories);
    let mut remotes = remotes;
    loop {
        while let Some(root) = walker.queue.pop() {
            walker.read_root(root);
        }
        if walker.read_plugin_roots() {
            continue;
        }
        let Some(remotes) = remotes.as_deref_mut() else {
            break;
        };
        if walker.pending.is_empty() {
            break;
        }
        walker.resolve_pending(remotes);
    }
    walker.find_charts();
    if let Some(remotes) = remotes {
        walker.bring_charts(remotes);
    }
    let (graph, troubles) = walker.finish();
    explored(graph, troubles, starts)
}

/// Finds what is wrong with what was walked as a whole.
fn explored(mut graph: Graph, mut troubles: Vec<Trouble>, starts: Vec<Option<RootId>>) -> Explored {
    troubles.extend(cycle::find(&graph));
    chain::tell(&graph, &mut troubles);
    // Remote references fail after local ones, but a file is read from its top.
    troubles.sort_by(|one, other| one.failure.location.cmp(&other.failure.location));
    let mut seen = HashSet::new();
    graph.warnings.retain(|warning| seen.insert(warning.clone()));
    Explored { graph, troubles, starts }
}

/// A remote reference that waits for its level to be complete.
struct Pending {
    root: RootId,
    edge: usize,
    wanted: Rc<RemoteRef>,
    is_plugin: bool,
}

struct Walker<'a> {
    graph: Graph,
    options: &'a Options<'a>,
    offline: bool,
    roots: Places,
    files: Places,
    /// Every reference that was found: kustomizations are alike.
    references: HashSet<Rc<Reference>>,
    no_bytes: Rc<[u8]>,
    downloads: HashMap<SafeUrl, FileId>,
    repositories: HashMap<*const Repository, SourceId>,
    queue: Vec<RootId>,
    pending: Vec<Pending>,
    /// The roots that others list for the plugin configurations in them.
    plugin_roots: Vec<PluginRoot>,
    /// The lister and the root of each of them.
    listed: HashSet<(RootId, RootId)>,
    /// The plugin configurations that were read, each with the root that it is read for.
    plugins: HashSet<(RootId, FileId)>,
    /// What they say.
    read_plugins: HashMap<FileId, Rc<Kustomization>>,
    /// How many roots and references there are.
    references_read: usize,
    /// How many of the references are remote.
    remotes: usize,
    /// Whether there were more than there is room for.
    is_full: bool,
    /// What is carried, by source, path and bound.
    carried: HashMap<(SourceId, String, String), CarriedId>,
    troubles: Vec<Trouble>,
}

impl Walker<'_> {
    /// Returns whether there is room for more. Where there is none, the walk ends.
    fn has_room(&mut self) -> bool {
        let reports = self.remotes + self.graph.notes.len() + self.troubles.len();
        let counts = [(RUN, self.references_read), (FINDINGS, reports)];
        let full = counts.into_iter().find(|(limit, count)| *count >= limit.most);
        if let Some((limit, _)) = full.filter(|_| !self.is_full) {
            self.is_full = true;
            let all = self.graph.sources[0].tree.label("");
            self.trouble(limit.exceeded(&all).into(), None, None);
            self.queue.clear();
            self.pending.clear();
            self.plugin_roots.clear();
        }
        full.is_none()
    }

    /// Makes directories at which the walk starts roots of the graph. Returns the root of each.
    fn start(&mut self, directories: &[String]) -> Vec<Option<RootId>> {
        let mut starts = Vec::new();
        let (mut unread, mut bytes) = (Vec::new(), 0);
        for directory in directories {
            starts.push(match self.place(0, directory) {
                _ if self.is_full => None,
                Ok((root, file)) => {
                    unread.extend(file.map(|file| (root, file)));
                    bytes += file.map_or(0, |file| self.graph.files[file].bytes.len());
                    Some(root)
                }
                Err(stop) => {
                    self.trouble(stop, None, None);
                    None
                }
            });
            if bytes >= AT_ONCE {
                self.read(std::mem::take(&mut unread));
                bytes = 0;
            }
        }
        self.read(unread);
        starts
    }

    /// Reads kustomizations side by side.
    fn read(&mut self, unread: Vec<(RootId, FileId)>) {
        let texts: Vec<&[u8]> = unread.iter().map(|(_, file)| &*self.graph.files[*file].bytes).collect();
        for ((root, file), read) in unread.into_iter().zip(ahead::read(&texts)) {
            self.fill(root, file, read);
            if self.options.drops_bytes {
                self.graph.files[file].bytes = self.no_bytes.clone();
            }
        }
    }

    /// Makes the directory (a real path) a root of the graph, whose references are followed later.
    fn enter(&mut self, source: SourceId, directory: &str) -> WalkResult<RootId> {
        let (id, unread) = self.place(source, directory)?;
        if let Some(file) = unread {
            // Which kind it is decides whether the reference that led here is a legal one.
            let read = kustomization::read(&self.graph.files[file].bytes);
            self.fill(id, file, read);
        }
        Ok(id)
    }

    /// Finds the kustomization of a directory. Returns the file too when the root is a new one, which
    /// waits for what is read in it.
    fn place(&mut self, source: SourceId, directory: &str) -> WalkResult<(RootId, Option<FileId>)> {
        let number = match self.roots.find(&self.graph.roots, source, directory) {
            Ok(known) => return Ok((known, None)),
            Err(number) => number,
        };
        let (file_name, file) = self.kustomization_file(source, directory)?;
        if !self.has_room() {
            return Err(RUN.exceeded(&self.graph.sources[source].tree.label(directory)).into());
        }
        let id = self.graph.roots.len();
        self.graph.roots.push(Root {
            source,
            directory: directory.to_owned(),
            file_name,
            file,
            kind: None,
            edges: Vec::new(),
            carries: Vec::new(),
        });
        self.roots.add(number, id);
        self.queue.push(id);
        self.bytes(file)?;
        Ok((id, Some(file)))
    }

    /// Gives a root what was read in its kustomization.
    fn fill(&mut self, id: RootId, file: FileId, read: ahead::Read) {
        let read = match read {
            Ok(read) => {
                self.graph.roots[id].kind = Some(read.kind);
                read
            }
            Err(refused) => self.problems(file, refused),
        };
        for note in read.notes {
            self.note(id, file, note);
        }
        let edges = &mut self.graph.roots[id].edges;
        edges.reserve_exact(read.references.len());
        for reference in read.references {
            self.add_edge(id, file, reference);
        }
    }

    fn add_edge(&mut self, root: RootId, from: FileId, reference: Reference) {
        if !self.has_room() {
            return;
        }
        self.references_read += 1;
        let reference = match self.references.get(&reference) {
            Some(known) => known.clone(),
            None => {
                let new = Rc::new(reference);
                self.references.insert(new.clone());
                new
            }
        };
        self.graph.roots[root].edges.push(Edge { from, reference, remote: None, target: Target::Broken });
    }

    fn kustomization_file(&mut self, source: SourceId, directory: &str) -> WalkResult<(&'static str, FileId)> {
        let tree = self.graph.sources[source].tree.clone();
        let mut found = Vec::new();
        for name in kustomization::FILE_NAMES {
            // A link that leaves the root counts as absent (kustomize's loader refuses to read it).
            if let Resolved::File { path, executable } = tree::resolve(&*tree, &path::join(directory, name))?
                && path::is_in(&path, directory)
            {
                found.push((name, path, executable));
            }
        }
        let shown = tree.label(directory);
        match found.as_slice() {
            [(name, path, executable)] => {
                // What is read comes later: a root that cannot be is there all the same.
                let (file, _) = self.unloaded(source, path, *executable);
                Ok((*name, file))
            }
            [] => Err(WalkError::new(
                TroubleKind::NoKustomization { directory: directory.to_owned() },
                format!("no kustomization file in `{shown}`"),
            )
            .hint(format!(
                "a kustomization root holds one of {}",
                kustomization::FILE_NAMES.map(|name| format!("`{name}`")).join(", ")
            ))),
            several => Err(WalkError::new(
                TroubleKind::SeveralKustomizations {
                    directory: directory.to_owned(),
                    names: several.iter().map(|(name, ..)| *name).collect(),
                },
                format!(
                    "several kustomization files in `{shown}`: {}",
                    several.iter().map(|(name, ..)| *name).collect::<Vec<_>>().join(", ")
                ),
            )
            .hint("keep one of them: `kustomize build` refuses more")),
        }
    }

    /// Returns a file of the graph, and whether it is new, of which nothing is read.
    fn unloaded(&mut self, source: SourceId, path: &str, executable: bool) -> (FileId, bool) {
        let number = match self.files.find(&self.graph.files, source, path) {
            Ok(known) => return (known, false),
            Err(number) => number,
        };
        let id = self.graph.files.len();
        self.graph.files.push(File {
            origin: Origin::Tree { source, path: path.to_owned() },
            bytes: self.no_bytes.clone(),
            executable,
            comments: None,
        });
        self.files.add(number, id);
        (id, true)
    }

    fn file(&mut self, source: SourceId, path: &str, executable: bool) -> Result<FileId> {
        let (id, is_new) = self.unloaded(source, path, executable);
        let load = match self.options.contents {
            Contents::All => true,
            Contents::Configurations => false,
            Contents::Fetched => self.graph.sources[source].repository.is_some(),
        };
        if is_new && load {
            self.load(id)?;
        }
        Ok(id)
    }

    /// Returns the bytes of a kustomization or plugin configuration.
    fn bytes(&mut self, file: FileId) -> Result<Rc<[u8]>> {
        if self.graph.files[file].bytes.is_empty() {
            self.load(file)?;
        }
        let bytes = self.graph.files[file].bytes.clone();
        if bytes.len() > FILE.most {
            // Nothing else looks at it, either.
            self.graph.files[file].bytes = self.no_bytes.clone();
            return Err(FILE.exceeded(&self.graph.label(file)));
        }
        Ok(bytes)
    }

    fn load(&mut self, file: FileId) -> Result<()> {
        let Origin::Tree { source, path } = &self.graph.files[file].origin else {
            return Ok(());
        };
        let tree = &self.graph.sources[*source].tree;
        let bytes = tree.read(path)?;
        if bytes.starts_with(b"version https://git-lfs.github.com/spec/") {
            return Err(
                Failure::new(format!("`{}` is a Git LFS pointer, not the file itself", tree.label(path))).hint(
                    "keep files that a build reads out of Git LFS (`git lfs migrate export`): what stands in for them differs from clone to clone",
                ),
            );
        }
        // What was brought in is not the user's word.
        let is_own = *source == 0 && self.graph.sources[0].repository.is_none();
        let counts = is_own && !self.options.ignores_comments && stored::home(path).is_none();
        let comments = counts.then(|| Comments::of(&bytes));
        let file = &mut self.graph.files[file];
        file.comments = comments.filter(|one| !one.comments.is_empty()).map(Rc::new);
        file.bytes = bytes.into();
        Ok(())
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
            comments: None,
        });
        self.downloads.insert(remote.url.clone(), id);
        id
    }

    fn read_root(&mut self, root: RootId) {
        // Plugin files add edges while the loop runs.
        let mut index = 0;
        while index < self.graph.roots[root].edges.len() && self.has_room() {
            self.follow(root, index);
            index += 1;
        }
    }

    fn follow(&mut self, root: RootId, edge: usize) {
        let (from, reference) = {
            let edge = &self.graph.roots[root].edges[edge];
            (edge.from, edge.reference.clone())
        };
        let remote = RemoteRef::of(&reference, || self.named_by(from));
        self.remotes += usize::from(remote.is_some());
        self.graph.roots[root].edges[edge].remote = remote.map(Rc::new);
        let target = match self.target(root, edge, &reference) {
            Ok(target) => target,
            Err(stop) => {
                self.trouble(stop, Some((root, edge)), Some(from));
                Target::Broken
            }
        };
        self.graph.roots[root].edges[edge].target = target;
    }

    /// Notes what could not be followed; the rest goes on.
    fn trouble(&mut self, stop: WalkError, edge: Option<(RootId, usize)>, file: Option<FileId>) {
        let failure = match edge {
            Some((root, edge)) => {
                let edge = &self.graph.roots[root].edges[edge];
                let location = self.graph.location(edge.from, &edge.reference);
                stop.failure.at(location)
            }
            None => stop.failure,
        };
        self.troubles.push(Trouble { kind: *stop.kind, edge, root: edge.map(|(root, _)| root), file, failure });
    }

    fn target(&mut self, root: RootId, edge: usize, reference: &Reference) -> WalkResult<Target> {
        let text = reference.text.as_str();
        if text.is_empty() {
            // kustomize skips empty strings in path fields.
            return Ok(Target::Kept);
        }
        if text.chars().any(char::is_control) {
            return Err(WalkError::new(TroubleKind::Unsafe, "the reference holds control characters"));
        }
        let accepts = reference.accepts;
        let wanted = self.graph.roots[root].edges[edge].remote.clone();
        match accepts {
            Accepts::File => match wanted {
                Some(wanted) => self.wait(root, edge, wanted, accepts),
                None => self.local_file(root, edge, text),
            },
            Accepts::Program => match wanted {
                Some(wanted) => self.wait(root, edge, wanted, accepts),
                None => self.program(root, edge, text),
            },
            Accepts::Component | Accepts::Either | Accepts::Plugin => {
                if let Some(wanted) = wanted {
                    self.refuse_shadowed(root, &wanted)?;
                    return self.wait(root, edge, wanted, accepts);
                }
                if accepts != Accepts::Component && self.is_local_file(root, text)? {
                    let target = self.local_file(root, edge, text)?;
                    if let (Accepts::Plugin, Target::File(file)) = (accepts, target) {
                        self.read_plugin(root, file, &reference.field)?;
                    }
                    return Ok(target);
                }
                let target = self.local_root(root, edge, text, accepts)?;
                self.list_plugins(root, reference, target);
                Ok(target)
            }
        }
    }

    /// Remembers a root that is listed for the plugin configurations in it.
    fn list_plugins(&mut self, lister: RootId, reference: &Reference, target: Target) {
        if let (Accepts::Plugin, Target::Root { id, .. }) = (reference.accepts, target)
            && self.listed.insert((lister, id))
        {
            let field = reference.field.clone();
            self.plugin_roots.push(PluginRoot { lister, root: id, field });
        }
    }

    fn note(&mut self, root: RootId, file: FileId, note: kustomization::Note) {
        if !self.has_room() {
            return;
        }
        let location =
            Location { line: note.line, column: note.column, field: note.field.clone(), ..self.graph.place(file) };
        if let NoteKind::Misleading { .. } = &note.kind {
            let failure = Failure::new(note.message.clone())
                .hint("write it again, and check where it came from")
                .at(location.clone());
            self.troubles.push(Trouble {
                kind: TroubleKind::Unsafe,
                edge: None,
                root: None,
                file: Some(file),
                failure,
            });
        }
        let lines = (file, note.line, note.line);
        let is_allowed = |subject| self.is_allowed(Rule::Function, &subject, lines);
        let is_accepted = note.kind.runs().is_some_and(is_allowed);
        if let Some(left) = left_behind(&note.kind).filter(|_| !is_accepted) {
            let message = format!("{}{left}", note.message);
            let warnings = &mut self.graph.warnings;
            warnings.push(Warning::new(Rule::Function, location, message));
        }
        self.graph.notes.push(Noted { root, file, note });
    }

    /// Notes what kustomize refuses in a file. Returns what could be read in it.
    fn problems(&mut self, file: FileId, refused: Refused) -> Kustomization {
        for problem in refused.problems {
            if !self.has_room() {
                break;
            }
            let mut failure = Failure::new(problem.message).at(Location {
                line: problem.line,
                column: problem.column,
                field: problem.field,
                ..self.graph.place(file)
            });
            failure.hints = Some(problem.hint).filter(|hint| !hint.is_empty()).into_iter().collect();
            self.troubles.push(Trouble {
                kind: match problem.kind {
                    ProblemKind::TooLarge => TroubleKind::Failed,
                    kind => TroubleKind::Problem(kind),
                },
                edge: None,
                root: None,
                file: Some(file),
                failure,
            });
        }
        refused.read
    }

    /// Lets go of what it took to walk, which is large.
    fn finish(mut self) -> (Graph, Vec<Trouble>) {
        self.refuse_reshaped_plugins();
        (self.graph, self.troubles)
    }
}

/// What a function means for the result that runs code which is not brought in.
fn left_behind(kind: &NoteKind) -> Option<&'static str> {
    Some(match kind {
        NoteKind::ExtraDocument
        | NoteKind::Misleading { .. }
        | NoteKind::RemoteChart { .. }
        | NoteKind::LocalChart { .. }
        | NoteKind::ChartHome { .. } => return None,
        NoteKind::KrmFunction { runtime, .. } => match runtime {
            // A program of the tree, or one that is downloaded: it comes along.
            FunctionRuntime::Exec { path } if path.contains('/') => return None,
            FunctionRuntime::Exec { .. } => {
                ", which is looked up on the PATH of the machine that builds: the copy does not hold it"
            }
            FunctionRuntime::Container { .. } => {
                ": left as it is, so that to build the copy takes docker and that image"
            }
            FunctionRuntime::Unknown => "; left as it is: the copy does not hold its code",
        },
        NoteKind::LegacyPlugin { .. } => " (a Go plugin with `.so`): the copy does not hold it",
    })
}
