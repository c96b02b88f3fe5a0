//! Which objects a build may change before they are deployed, so that they deploy something else: a kustomization above
//! reads the file of the object, as a parent of Flux or Argo CD does, and may write a field that says what is deployed.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value as Json;

use super::field_specs::{self, KUSTOMIZATION, Read, Written};
use super::generated::VARIABLES;
use super::variables::Variables;
use super::{Changer, Found, Here, Object, Place, Target, Targets, scan, unfilled};
use crate::graph::{Edge, Graph, Root, RootId, Target as Leads};
use crate::kustomization::{Accepts, Kind, read_object};
use crate::reference::is_url;
use crate::tree::{self, Resolved, path};

/// Something that may change objects.
struct Change {
    by: String,
    written: Written,
    /// Whether it is a root, else it is a target.
    is_root: bool,
}

/// What may change the objects in each file.
type OfFiles<'a> = HashMap<&'a str, Vec<Change>>;

impl Targets {
    /// Notes which targets stand in objects that a kustomization of `graph` (a walk over all of the tree), or another target, may
    /// change, and which nothing deploys. What a build made of an object is changed by nothing else that was built.
    pub(crate) fn settle(&mut self, graph: &Graph) {
        let files: HashSet<&str> = self.targets.iter().flat_map(Target::object_files).collect();
        let mut writing = Writing { graph, of_roots: HashMap::new() };
        let mut changes = if files.is_empty() { OfFiles::new() } else { writing.of_files(&files) };
        for target in &self.targets {
            let written = writing.of_target(target);
            add(&mut changes, graph, target, &written);
        }
        let in_turn: Vec<Written> = self.targets.iter().map(|one| self.in_turn(one, &changes)).collect();
        for (target, written) in self.targets.iter().zip(in_turn) {
            add(&mut changes, graph, target, &written);
        }
        let changed: Vec<Option<Changer>> = self.targets.iter().map(|one| self.changer(one, &changes)).collect();
        for (target, changer) in self.targets.iter_mut().zip(changed) {
            target.changed_by = changer;
        }
        self.fill_namespaces(&mut writing);
        self.undeployed = self.undeployed(graph);
    }

    /// Returns what may write into the objects that say what a target is, each with the kind of the object: roots that read
    /// them, and targets that deploy them.
    fn writers<'c>(&self, target: &'c Target, changes: &'c OfFiles<'_>) -> Vec<(&'c Change, &'c str)> {
        let is_built = target.object.built_by.is_some();
        let own = target.builder();
        let is_done = |change: &Change| is_built && (change.is_root || self.builds.done.contains(&change.by));
        let counts = |change: &&Change| change.by != own && !is_done(change);
        let of_object = |object: &'c Object| {
            let found = changes.get(object.file.as_str()).into_iter().flatten().filter(counts);
            found.map(|change| (change, object.written_kind()))
        };
        target.objects().flat_map(of_object).collect()
    }

    fn changer(&self, target: &Target, changes: &OfFiles<'_>) -> Option<Changer> {
        let writers = self.writers(target, changes);
        let is_open = target.said.contains("${");
        let moves =
            writers.iter().find(|(one, kind)| one.written.kinds.contains(kind) || one.written.variables && is_open);
        let builds = |(one, kind): &&(&Change, &str)| *kind == KUSTOMIZATION && one.written.below.is_some();
        let (change, _) = moves.or_else(|| writers.iter().find(builds))?;
        let not_built = target.object_files().find_map(|file| self.builds.failed.get(file));
        Some(Changer { name: change.by.clone(), moves: moves.is_some(), not_built: not_built.cloned() })
    }

    /// Returns what a target that may be built in another way may write into what it deploys.
    fn in_turn(&self, target: &Target, changes: &OfFiles<'_>) -> Written {
        let writers = self.writers(target, changes).into_iter().filter(|(_, kind)| *kind == KUSTOMIZATION);
        let kinds = writers.filter_map(|(change, _)| change.written.below.as_ref()).flatten().copied().collect();
        Written { kinds, ..Written::default() }
    }

    /// Fills in the namespaces of objects that say none: the one that the targets which deploy them give, else the one of the
    /// kustomizations that read them.
    fn fill_namespaces(&mut self, writing: &mut Writing<'_>) {
        let is_bare = |target: &&Target| target.object.namespace.is_empty() && scan::is_known(&target.object.kind);
        let bare: HashSet<String> =
            self.targets.iter().filter(is_bare).map(|target| target.object.file.clone()).collect();
        if bare.is_empty() {
            return;
        }
        let mut given: [HashMap<String, BTreeSet<String>>; 2] = Default::default();
        let mut give = |by: usize, files: &mut dyn Iterator<Item = &str>, namespace: &str| {
            for file in
                files.filter(|file| !namespace.is_empty() && unfilled([namespace]).is_none() && bare.contains(*file))
            {
                given[by].entry(file.to_owned()).or_default().insert(namespace.to_owned());
            }
        };
        for target in &self.targets {
            let namespace =
                ["targetNamespace", "namespace"].iter().find_map(|key| target.build.overrides.get(*key)?.as_str());
            if let (Place::Here(here), Some(namespace)) = (&target.place, namespace) {
                give(0, &mut files_read(writing.graph, target, here).into_iter(), namespace);
            }
        }
        for root in readers(writing.graph, &|file| bare.contains(file)) {
            let namespace = writing.of_root(root).1;
            if !namespace.is_empty() {
                give(1, &mut files_of(writing.graph, [root]).into_iter(), &namespace);
            }
        }
        for object in
            self.targets.iter_mut().map(|target| &mut target.object).filter(|object| object.namespace.is_empty())
        {
            let all = given.iter().find_map(|given| given.get(&object.file)).filter(|all| all.len() == 1);
            object.namespace = all.and_then(|all| all.first().cloned()).unwrap_or_default();
        }
    }
}

impl Target {
    /// Returns its name as one who builds: what deploys itself was no other one before.
    pub(super) fn builder(&self) -> String {
        let name = self.title();
        if self.object.built_by.as_ref() == Some(&name) { name } else { self.by() }
    }

    /// Returns the objects that say what it is: its own, and those of its source.
    fn objects(&self) -> impl Iterator<Item = &Object> {
        std::iter::once(&self.object).chain(&self.sources)
    }

    /// Returns the files of these objects.
    pub(crate) fn object_files(&self) -> impl Iterator<Item = &str> {
        self.objects().map(|object| object.file.as_str())
    }
}

/// What tells what roots and targets may write into objects.
struct Writing<'a> {
    graph: &'a Graph,
    /// What each root may write, and the namespace that it gives, as far as it was asked for.
    of_roots: HashMap<RootId, (Written, String)>,
}

impl<'a> Writing<'a> {
    /// Returns who may change objects in some files, of those that roots read.
    fn of_files(&mut self, files: &HashSet<&str>) -> OfFiles<'a> {
        let graph = self.graph;
        let configured = self.configured();
        let mut changed = OfFiles::new();
        for reader in readers(graph, &|file| files.contains(file)) {
            let below = configured.iter().filter(|(_, above)| above.contains(&reader)).map(|(root, _)| *root);
            let all: Vec<RootId> = self.with_components([reader]).into_iter().chain(below).collect();
            for root in all {
                let written = self.of_root(root).0;
                if written.is_nothing() {
                    continue;
                }
                let by = graph.label(graph.roots[root].file);
                let change = || Change { by: by.clone(), written: written.clone(), is_root: true };
                for file in files_of(graph, [reader]).into_iter().filter(|file| files.contains(file)) {
                    changed.entry(file).or_default().push(change());
                }
            }
        }
        changed
    }

    /// Returns the roots whose configurations may change objects, each with those that lead to it: kustomize takes what they
    /// say of names for what roots above have read, too.
    fn configured(&mut self) -> Vec<(RootId, BTreeSet<RootId>)> {
        let graph = self.graph;
        let says = |edge: &Edge| ["configurations", "crds"].iter().any(|key| edge.reference.field.starts_with(key));
        let own = graph.own_roots().into_values();
        let all = own.filter(|root| graph.roots[*root].edges.iter().any(says));
        let all: Vec<RootId> = all.filter(|root| !self.of_root(*root).0.is_nothing()).collect();
        all.into_iter().map(|root| (root, graph.leading_to([root]))).collect()
    }

    /// Returns what a target may write into objects that it deploys.
    fn of_target(&mut self, target: &Target) -> Written {
        let here = match &target.place {
            Place::Here(here) if !matches!(here.found, Found::Nothing(_)) => here,
            _ => return Written::default(),
        };
        let components = target.build.components.iter().map(|one| &one.found);
        if components.clone().any(Option::is_none) {
            return Written::all();
        }
        let mut written = self.written_in(&Json::Object(target.build.overrides.clone()), &here.path);
        written.variables = target.build.overrides.get(VARIABLES).is_some_and(|said| !Variables::of(said).is_empty());
        let roots = components.filter_map(|found| match found {
            Some(Found::Kustomization(root)) => self.graph.root_in(0, root),
            _ => None,
        });
        for root in self.with_components(roots.collect::<Vec<_>>()) {
            written.join(self.of_root(root).0);
        }
        written
    }

    /// Returns roots with the components that they add: these change what their users have accumulated.
    fn with_components(&self, roots: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        let is_component = |edge: &Edge| matches!(edge.target, Leads::Root { id, .. } if self.graph.roots[id].kind == Some(Kind::Component));
        self.graph.reach(roots, |_, _, edge| is_component(edge))
    }

    /// Returns what a root may write into objects by itself, and the namespace that it gives. One that cannot be read may
    /// write anything.
    fn of_root(&mut self, root: RootId) -> (Written, String) {
        if let Some(known) = self.of_roots.get(&root) {
            return known.clone();
        }
        let Root { source, directory, file, edges, .. } = &self.graph.roots[root];
        // What is remote is read as what names it.
        let is_unknown =
            |edge: &Edge| edge.reference.accepts == Accepts::Component && !matches!(edge.target, Leads::Root { .. });
        let bytes = self.graph.read(*file).ok().filter(|_| *source == 0 && !edges.iter().any(is_unknown));
        let text = bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let known = match text.and_then(|text| read_object(text, 0).ok()?).map(|read| read.json()) {
            Some(read) => (self.written_in(&read, directory), field_specs::text(&read, "namespace").to_owned()),
            None => (Written::all(), String::new()),
        };
        self.of_roots.entry(root).or_insert(known).clone()
    }

    /// Returns what that which stands in a kustomization may write.
    fn written_in(&self, kustomization: &Json, directory: &str) -> Written {
        let tree = &*self.graph.sources[0].tree;
        let read: Read<'_> = &|text| {
            let place = path::resolve(directory, text).filter(|_| !is_url(text) && !path::is_absolute(text))?;
            let Resolved::File { path, .. } = tree::resolve(tree, &place).ok()? else { return None };
            String::from_utf8(tree.read(&path).ok()?).ok()
        };
        field_specs::written(kustomization, read)
    }
}

/// Adds what a target may write to that of the files that it reads.
fn add<'t>(changes: &mut OfFiles<'t>, graph: &'t Graph, target: &'t Target, written: &Written) {
    if let (Place::Here(here), false) = (&target.place, written.is_nothing()) {
        for file in files_read(graph, target, here) {
            let change = Change { by: target.builder(), written: written.clone(), is_root: false };
            changes.entry(file).or_default().push(change);
        }
    }
}

/// Returns the files of the tree that the build of a target reads.
pub(super) fn files_read<'a>(graph: &'a Graph, target: &'a Target, here: &'a Here) -> BTreeSet<&'a str> {
    files_of(graph, target.walked(here, graph))
        .into_iter()
        .chain(here.scanned.iter().map(|one| one.path.as_str()))
        .collect()
}

/// Returns the files of the tree that roots, and those that they lead to, read.
pub(super) fn files_of(graph: &Graph, roots: impl IntoIterator<Item = RootId>) -> Vec<&str> {
    let mut files = Vec::new();
    for reached in graph.insisted(roots) {
        for edge in &graph.roots[reached].edges {
            files.extend(graph.own_file(edge));
        }
    }
    files
}

/// Returns the roots of a graph whose builds read one of some files of the tree.
pub(crate) fn readers(graph: &Graph, is_wanted: &dyn Fn(&str) -> bool) -> BTreeSet<RootId> {
    let reads = |edge: &Edge| graph.own_file(edge).is_some_and(is_wanted);
    graph.leading_to((0..graph.roots.len()).filter(|id| graph.roots[*id].edges.iter().any(reads)))
}
