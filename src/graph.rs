//! The walk follows every reference from a kustomization root to everything that its build reads.
//!
//! The walk records facts ([`Survey`]) and judges nothing. A [`WalkPolicy`] decides afterwards which of them count. It
//! also decides which remote references are localized; these are handed, level by level, to a [`Remotes`]. Without a
//! [`Remotes`] they stay unresolved.

mod chain;
mod chart;
mod cycle;
pub(crate) mod inputs;
mod judge;
mod local;
pub(crate) mod named;
mod nodes;
mod plugin;
mod reach;
mod remote;
mod remote_ref;
mod survey;
#[cfg(test)]
pub(crate) mod testing;
mod trouble;

pub use chart::archive;
pub(crate) use chart::{Archive, Chart, ChartLookup, ChartRef};
pub(crate) use judge::{REASON_NOT_AN_ERROR, WalkPolicy};
pub(crate) use local::similar_path;
pub(crate) use nodes::{
    Edge, EdgeId, File, FileId, Graph, Lines, Noted, Origin, RemoteCommit, RemoteFile, Resolution, Root, RootId,
    ScopedTree, SourceId,
};
pub(crate) use reach::reach;
pub(crate) use remote::no_directory;
pub(crate) use remote_ref::{ExpectedContent, RemoteContent, RemoteRef, Remotes};
pub(crate) use survey::Survey;
pub(crate) use trouble::{At, Trouble, TroubleKind};

use std::collections::{BTreeMap, HashMap, HashSet};
use std::mem;
use std::rc::Rc;

use crate::config::Comments;
use crate::kustomization::{self, Accepts, Kustomization, NoteKind, ProblemKind, Reference, Refused, Runs};
use crate::message::failure::{Failure, Failures, Result, listed};
use crate::message::position::Position;
use crate::message::redact::SafeUrl;
use crate::os::limits::{FILE, FINDINGS, LOADS, RUN};
use crate::os::parallel::{processors, side_by_side};
use crate::record::stored;
use crate::tree::absence::Absence;
use crate::tree::{self, Resolved, path};
use trouble::WalkResult;

/// The most bytes of kustomizations that are in memory as text before they are parsed.
const UNPARSED_BYTES: usize = 1 << 20;

/// The number of kustomizations for which a thread is worth its start.
const PER_THREAD: usize = 250;

/// The most threads that parse kustomizations. More would only wait for memory.
const THREADS: usize = 8;

/// The hint for text that git or another program could misread.
pub(crate) const HINT_REWRITE: &str =
    "rewrite it, and check where it came from: text that git could misread is never passed on";

/// The result of a walk from several roots.
pub(crate) struct Explored {
    /// Everything that the walk could follow.
    pub graph: Graph,
    /// Everything that the walk could not follow, in a stable order.
    pub troubles: Vec<Trouble>,
    /// The root of each directory that the walk was given, in the same order. `None` if the directory has no root that
    /// could be read, or if a limit was exceeded before it was looked at.
    pub starts: Vec<Option<RootId>>,
}

/// The tree and directory in which a walk starts.
pub(crate) struct Start {
    pub source: ScopedTree,
    /// The directory of the root in the tree.
    pub directory: String,
}

/// Walks everything that the root at `start` references. Fails with every trouble that the walk finds, each once.
pub(crate) fn walk(
    start: Start,
    remotes: Option<&mut dyn Remotes>,
    policy: &WalkPolicy<'_>,
) -> Result<Graph, Failures> {
    let explored = Survey::in_scope(start.source).explore(&[start.directory], remotes, policy);
    // Each root that lists a plugin configuration has its references, so their troubles may occur several times.
    let mut seen = HashSet::new();
    let failures = explored.troubles.into_iter().map(|trouble| trouble.failure);
    Failures::if_any(failures.filter(|failure| seen.insert(failure.clone())).collect())?;
    Ok(explored.graph)
}

/// A trouble for each root whose build would load too many roots, unless it references such a root. kustomize loads a
/// root again for each reference to it, so a short chain of roots, each of which names the next one twice, keeps it
/// busy forever.
fn overload_troubles(graph: &Graph) -> Vec<Trouble> {
    let overloaded = graph.overloaded();
    // A root that references an overloaded one is overloaded, too, but has not caused it.
    let lowest =
        overloaded.iter().filter(|root| !graph.referenced_roots(**root).any(|(_, id)| overloaded.contains(&id)));
    let troubles = lowest.map(|root| {
        let file = graph.roots[*root].file;
        let failure = LOADS.exceeded(&graph.label(file)).at(graph.location_in(file, Position::new(1, 1), ""));
        Trouble::of(TroubleKind::Refused, failure).at(graph, At::File(file))
    });
    troubles.collect()
}

#[derive(Default)]
struct Walker {
    graph: Graph,
    /// The files of each source, by path.
    files: Rc<HashMap<SourceId, HashMap<String, FileId>>>,
    /// Every reference so far. Equal references share one allocation, because kustomizations are alike.
    references: HashSet<Rc<Reference>>,
    downloads: HashMap<SafeUrl, FileId>,
    /// The references that are still to be followed.
    queue: Vec<EdgeId>,
    /// The remote references that wait until their level is complete.
    pending: Vec<EdgeId>,
    /// The roots that other roots list for their plugin configurations, as (lister, root), with the field that lists
    /// them.
    plugin_roots: BTreeMap<(RootId, RootId), String>,
    /// The plugin configurations that were read, each with the root that lists it.
    plugins: HashSet<(RootId, FileId)>,
    /// The content of each plugin configuration.
    read_plugins: HashMap<FileId, Rc<Kustomization>>,
    /// The number of references so far.
    references_read: usize,
    /// The number of remote references so far.
    remotes: usize,
    /// Whether the walk ended because a limit was exceeded.
    is_full: bool,
    troubles: Vec<Trouble>,
    /// The root of each directory in which a walk started, or why there is none. `None` if a limit was exceeded before.
    started: HashMap<String, Option<WalkResult<RootId>>>,
    /// The roots that a reference names but may not, such as a component in `resources`.
    misfits: HashMap<EdgeId, RootId>,
}

impl Walker {
    /// Whether the walk is within its limits, which bound the work that a hostile repository can cause. If it is not,
    /// the walk ends, with one trouble that says so.
    fn is_within_limits(&mut self) -> bool {
        let reports = self.remotes + self.graph.notes.len() + self.troubles.len();
        let counts = [(RUN, self.references_read), (FINDINGS, reports)];
        let full = counts.into_iter().find(|(limit, count)| *count >= limit.most);
        if let Some((limit, _)) = full.filter(|_| !self.is_full) {
            self.is_full = true;
            let label = self.graph.sources[0].tree.label("");
            self.record_trouble(*Trouble::of(TroubleKind::Failed, limit.exceeded(&label)), At::Nothing);
            // Without anything left to follow, the walk ends.
            self.queue.clear();
            self.pending.clear();
            self.plugin_roots.clear();
        }
        full.is_none()
    }

    /// Adds the roots in `directories` of the tree in which the walk starts (the user's, or a fetched repository) to
    /// the graph, and queues their references. A directory at which the walk has started before is skipped.
    fn start(&mut self, directories: &[String]) {
        let (mut unread, mut bytes) = (Vec::new(), 0);
        for directory in directories {
            if self.started.contains_key(directory) {
                continue;
            }
            let start = match self.find_or_add_root(SourceId::FIRST, directory) {
                // After a limit was exceeded nothing is read, so it is unknown whether the directory has a root.
                _ if self.is_full => None,
                // No text: the root was there before, or its kustomization cannot be read, which is a trouble of the
                // file.
                Ok((root, text)) => {
                    bytes += text.as_ref().map_or(0, |text| text.len());
                    unread.extend(text.map(|text| (root, text)));
                    Some(Ok(root))
                }
                Err(trouble) => Some(Err(trouble)),
            };
            self.started.insert(directory.clone(), start);
            // In portions, so that a large repository is not in memory as a whole before it is parsed.
            if bytes >= UNPARSED_BYTES {
                self.read(mem::take(&mut unread));
                bytes = 0;
            }
        }
        self.read(unread);
    }

    /// Parses kustomizations, in parallel if there are many, and adds their references to their roots.
    fn read(&mut self, unread: Vec<(RootId, Rc<[u8]>)>) {
        let texts: Vec<&[u8]> = unread.iter().map(|(_, text)| &**text).collect();
        let threads = processors().min(THREADS).min(texts.len() / PER_THREAD);
        let read = side_by_side(&texts, threads, |_, text| kustomization::read(text));
        for (root, read) in unread.iter().map(|(root, _)| *root).zip(read) {
            self.fill_root(root, read);
        }
    }

    /// Adds the root in `directory` (a real path) to the graph and queues its references.
    fn enter(&mut self, source: SourceId, directory: &str) -> WalkResult<RootId> {
        let (id, unread) = self.find_or_add_root(source, directory)?;
        if let Some(text) = unread {
            // The kind must be known now: it decides whether the reference to this root is legal.
            self.fill_root(id, kustomization::read(&text));
        }
        Ok(id)
    }

    /// The root in `directory`. A new root is added to the graph without its references, and returned with the text of
    /// its kustomization, if that can be read, which the caller parses.
    fn find_or_add_root(&mut self, source: SourceId, directory: &str) -> WalkResult<(RootId, Option<Rc<[u8]>>)> {
        if let Some(known) = self.graph.root_in(source, directory) {
            return Ok((known, None));
        }
        let (file_name, file) = self.kustomization_file(source, directory)?;
        if !self.is_within_limits() {
            return Err(RUN.exceeded(&self.graph.sources[source].tree.label(directory)).into());
        }
        let id = RootId(self.graph.roots.len());
        Rc::make_mut(&mut self.graph.roots).push(Root {
            source,
            directory: directory.to_owned(),
            file_name,
            file,
            kind: None,
            runs_code: false,
            edges: Vec::new(),
        });
        Rc::make_mut(&mut self.graph.directories).entry(source).or_default().insert(directory.to_owned(), id);
        // Parsed by the caller, because many texts are parsed in parallel.
        Ok((id, self.read_configuration(file)))
    }

    /// Adds the parsed kustomization of a new root to the graph: its kind, its notes, and its references, which are
    /// queued.
    fn fill_root(&mut self, id: RootId, read: Result<Kustomization, Refused>) {
        let file = self.graph.roots[id].file;
        let read = match read {
            Ok(read) => {
                Rc::make_mut(&mut self.graph.roots)[id].kind = Some(read.kind);
                read
            }
            // A root without a kind fits every field, so that no reference to a refused file is refused as well.
            Err(refused) => self.record_problems(file, refused),
        };
        for note in read.notes {
            self.record_note(id, file, note);
        }
        // The exact size: a graph may have a hundred thousand references.
        let edges = &mut Rc::make_mut(&mut self.graph.roots)[id].edges;
        edges.reserve_exact(read.references.len());
        for reference in read.references {
            self.add_edge(id, file, reference);
        }
    }

    /// Adds a reference of `root` in the file `from` to the graph, and queues it to be followed.
    fn add_edge(&mut self, root: RootId, from: FileId, reference: Reference) {
        if !self.is_within_limits() {
            return;
        }
        self.references_read += 1;
        // The same text occurs in many files; it is stored once.
        let known = self.references.get(&reference).cloned();
        let reference = known.unwrap_or_else(|| {
            let new = Rc::new(reference);
            self.references.insert(new.clone());
            new
        });
        let edges = &mut Rc::make_mut(&mut self.graph.roots)[root].edges;
        // Broken until it is followed, which does not happen if a limit ends the walk.
        edges.push(Edge { from, reference, remote: None, resolution: Resolution::Broken });
        self.queue.push(EdgeId { root, index: edges.len() - 1 });
    }

    /// The one kustomization file in a directory, with its name. Fails if there is none, or more than one.
    fn kustomization_file(&mut self, source: SourceId, directory: &str) -> WalkResult<(&'static str, FileId)> {
        let tree = self.graph.sources[source].tree.clone();
        let mut candidates = Vec::new();
        for name in kustomization::FILE_NAMES {
            // A link that leaves the root counts as absent: kustomize's loader refuses to read it.
            if let Resolved::File { path, executable } = tree::resolve(&*tree, &path::join(directory, name))?
                && path::is_in(&path, directory)
            {
                candidates.push((name, path, executable));
            }
        }
        // kustomize needs exactly one kustomization in a directory.
        match candidates.as_slice() {
            [(name, path, executable)] => {
                // The file is read later: a root exists even if its kustomization cannot be read.
                Ok((*name, self.find_or_add_file(source, path, *executable)))
            }
            [] => Err(self.without_kustomization(source, directory)?),
            [(first, ..), ..] => {
                let names: Vec<String> = candidates.iter().map(|(name, ..)| (*name).to_owned()).collect();
                let message =
                    format!("`{}` contains several kustomizations: {}", tree.label(directory), listed(&names));
                let kind = TroubleKind::BadKustomization { path: path::join(directory, first) };
                Err(Trouble::new(kind, message).hint("keep only one: `kustomize build` refuses several"))
            }
        }
    }

    /// The file at a real path of a tree. A new file is added to the graph.
    fn find_or_add_file(&mut self, source: SourceId, path: &str, executable: bool) -> FileId {
        if let Some(known) = self.files.get(&source).and_then(|files| files.get(path)) {
            return *known;
        }
        let id = self.add_file(Origin::Tree { source, path: path.to_owned() });
        Rc::make_mut(&mut self.graph.files)[id].executable = executable;
        Rc::make_mut(&mut self.files).entry(source).or_default().insert(path.to_owned(), id);
        id
    }

    /// Adds a file to the graph, which is not executable: only a tree has modes.
    fn add_file(&mut self, origin: Origin) -> FileId {
        Rc::make_mut(&mut self.graph.files).push(File { origin, executable: false, comments: None });
        FileId(self.graph.files.len() - 1)
    }

    /// Reads a kustomization or plugin configuration, and records the exceptions in its comments, by which the policy
    /// later decides about its references. `None` if it cannot be read: the trouble is one of the file, so that it
    /// counts for whatever reaches the file, and once.
    fn read_configuration(&mut self, file: FileId) -> Option<Rc<[u8]>> {
        let read = self.graph.read(file).and_then(|bytes| {
            FILE.check(bytes.len(), || self.graph.label(file))?;
            Ok(bytes)
        });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(failure) => {
                self.record_trouble(*Trouble::of(TroubleKind::Failed, failure), At::File(file));
                return None;
            }
        };
        // Comments count only in the user's own files: localized files were written upstream.
        let is_user_tree = self.graph.sources[0].repository.is_none();
        if self.graph.user_path(file).is_some_and(|path| is_user_tree && stored::localized_dir(path).is_none()) {
            let comments = Comments::of(&bytes);
            Rc::make_mut(&mut self.graph.files)[file].comments =
                Some(Rc::new(comments)).filter(|comments| !comments.comments.is_empty());
        }
        Some(bytes)
    }

    /// The file that was downloaded from a URL. A new file is added to the graph.
    fn find_or_add_download(&mut self, remote: &Rc<RemoteFile>) -> FileId {
        if let Some(known) = self.downloads.get(&remote.url) {
            return *known;
        }
        let id = self.add_file(Origin::Remote(remote.clone()));
        self.downloads.insert(remote.url.clone(), id);
        id
    }

    /// Follows all queued references, and those of the roots that they lead to, until the queue is empty. Remote
    /// references become pending, because the policy decides first whether to fetch them. `remotes` are only asked for
    /// files of repositories that were fetched before.
    fn follow_all(&mut self, mut remotes: Option<&mut dyn Remotes>) {
        loop {
            // Level by level, so that one request fetches the files that a level reads of a fetched repository.
            while !self.queue.is_empty() {
                if let Some(remotes) = remotes.as_deref_mut() {
                    remotes.prefetch(&self.next_files());
                }
                for edge in mem::take(&mut self.queue) {
                    if !self.is_within_limits() {
                        break;
                    }
                    self.follow(edge);
                }
            }
            // The files of plugin roots are known only now, and may have references of their own.
            if !self.read_plugin_roots() {
                return;
            }
        }
    }

    /// Follows one reference: records whether it is remote, and what it leads to, or a trouble.
    fn follow(&mut self, edge: EdgeId) {
        let Edge { from, reference, .. } = &self.graph[edge];
        let (from, reference) = (*from, reference.clone());
        let remote = RemoteRef::of(&reference, || self.upstream_url(from));
        self.remotes += usize::from(remote.is_some());
        self.graph[edge].remote = remote.map(Rc::new);
        let target = self.resolve_reference(edge, &reference).unwrap_or_else(|trouble| {
            self.record_trouble(*trouble, At::Edge(edge));
            Resolution::Broken
        });
        self.graph[edge].resolution = target;
    }

    /// Records a trouble. The walk goes on.
    fn record_trouble(&mut self, trouble: Trouble, at: At) {
        self.troubles.push(trouble.at(&self.graph, at));
    }

    /// Finds the file or root that a reference leads to, and adds it to the graph. A remote reference becomes pending.
    fn resolve_reference(&mut self, edge: EdgeId, reference: &Reference) -> WalkResult<Resolution> {
        let text = reference.text.as_str();
        if text.chars().any(char::is_control) {
            return Err(
                Trouble::new(TroubleKind::Unsafe, "the reference contains control characters").hint(HINT_REWRITE)
            );
        }
        if let Some(wanted) = self.graph[edge].remote.clone() {
            // A field that takes only files gets a URL by HTTP, and looks for no path of that name.
            if !matches!(reference.accepts, Accepts::File | Accepts::Program) {
                self.refuse_shadowed(edge.root, &wanted)?;
            }
            return self.queue_remote(edge, &wanted);
        }
        let target = self.resolve_local(edge, reference)?;
        Ok(self.list_plugins(edge.root, reference, target))
    }

    /// If the reference is in a list of plugin configurations, reads the file that it leads to, or remembers the root,
    /// for the references in these configurations. Returns `target`.
    fn list_plugins(&mut self, lister: RootId, reference: &Reference, target: Resolution) -> Resolution {
        match target {
            _ if reference.accepts != Accepts::Plugin => {}
            Resolution::File(file) => self.read_plugin(lister, file, &reference.field),
            Resolution::Root { id, .. } => {
                // The root is read later, by [`Walker::read_plugin_roots`]: its references are not followed yet.
                self.plugin_roots.entry((lister, id)).or_insert_with(|| reference.field.clone());
            }
            // For a remote reference this function is called again after it was fetched.
            Resolution::Remote | Resolution::Unchanged | Resolution::Broken => {}
        }
        target
    }

    /// Adds a note about a file to the graph, and records whether the build of `root` runs a program or plugin by it.
    fn record_note(&mut self, root: RootId, file: FileId, note: kustomization::Note) {
        if !self.is_within_limits() {
            return;
        }
        let is_code = matches!(&note.kind, NoteKind::Code { runs: Runs::Program(_) | Runs::Plugin(_), .. });
        Rc::make_mut(&mut self.graph.roots)[root].runs_code |= is_code;
        Rc::make_mut(&mut self.graph.notes).push(Noted { root, file, note });
    }

    /// Records the problems of a file that kustomize refuses. Returns the part that could be parsed, which the walk
    /// follows all the same, so that one run reports as much as it can.
    fn record_problems(&mut self, file: FileId, refused: Refused) -> Kustomization {
        for problem in refused.problems {
            if !self.is_within_limits() {
                break;
            }
            let kind = match problem.kind {
                ProblemKind::TooLarge => TroubleKind::Failed,
                ProblemKind::Reshaped => TroubleKind::Reshaped,
                kind => TroubleKind::Problem(kind),
            };
            let location = self.graph.location_in(file, problem.position, &problem.field);
            let trouble = Trouble::of(kind, Failure::new(problem.message).at(location));
            let hint = Some(problem.hint).filter(|hint| !hint.is_empty());
            self.record_trouble(*trouble.hints(hint), At::File(file));
        }
        refused.read
    }
}
