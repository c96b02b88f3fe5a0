//! Which objects a build may change before they are deployed, so that they deploy something else: a kustomization above
//! reads the file of the object, as a parent of Flux or Argo CD does, and may write a field that says what is deployed.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value as Json;

use super::field_specs::{self, KUSTOMIZATION, Read, Written};
use super::generated::VARIABLES;
use super::variables::Variables;
use super::{Changer, Found, Object, Place, Target, Targets, Unsettled, scan, unfilled};
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

impl Unsettled {
    /// Finds which targets stand in objects that a kustomization of `graph` (a walk over all of the tree), or another target,
    /// may change, and which nothing deploys. What a build made of an object is changed by nothing else that was built.
    pub(crate) fn settle(self, graph: &Graph) -> Targets {
        let Unsettled(mut found) = self;
        let files: HashSet<&str> = found.targets.iter().flat_map(Target::object_files).collect();
        let read = files_read(graph, &found.targets, &|file| files.contains(file));
        let mut writing = Writing { graph, of_roots: HashMap::new() };
        let mut changes = if files.is_empty() { OfFiles::new() } else { writing.of_files(&files) };
        let of_targets: Vec<Written> = found.targets.iter().map(|target| writing.of_target(target)).collect();
        add(&mut changes, &found.targets, &read, &of_targets);
        let in_turn: Vec<Written> = found.targets.iter().map(|one| found.in_turn(one, &changes)).collect();
        add(&mut changes, &found.targets, &read, &in_turn);
        let changed: Vec<Option<Changer>> = found.targets.iter().map(|one| found.changer(one, &changes)).collect();
        let namespaces = found.namespaces(&read, &mut writing);
        for ((target, changer), namespace) in found.targets.iter_mut().zip(changed).zip(namespaces) {
            target.changed_by = changer;
            target.object.namespace.push_str(&namespace);
        }
        for Target { object, build, .. } in &mut found.targets {
            let is_read = |file: &str| file == object.file;
            if build.renamed.is_some() && !readers(graph, &is_read).is_empty() {
                build.unread = build.unread.take().or_else(|| build.renamed.take());
            }
        }
        found.undeployed = found.undeployed(graph);
        found
    }
}

impl Targets {
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

    /// Returns the namespaces of objects that say none, for each target; empty for one that says it: the one that the targets
    /// which deploy them give, else the one of the kustomizations that read them.
    fn namespaces(&self, read: &[BTreeSet<&str>], writing: &mut Writing<'_>) -> Vec<String> {
        let is_bare = |target: &&Target| target.object.namespace.is_empty() && scan::is_known(&target.object.kind);
        let bare: HashSet<&str> = self.targets.iter().filter(is_bare).map(|target| &*target.object.file).collect();
        if bare.is_empty() {
            return vec![String::new(); self.targets.len()];
        }
        let mut given: [HashMap<String, BTreeSet<String>>; 2] = Default::default();
        let mut give = |by: usize, files: &mut dyn Iterator<Item = &str>, namespace: &str| {
            for file in
                files.filter(|file| !namespace.is_empty() && unfilled([namespace]).is_none() && bare.contains(*file))
            {
                given[by].entry(file.to_owned()).or_default().insert(namespace.to_owned());
            }
        };
        for (target, read) in self.targets.iter().zip(read) {
            let namespace =
                ["targetNamespace", "namespace"].iter().find_map(|key| target.build.overrides.get(*key)?.as_str());
            give(0, &mut read.iter().copied(), namespace.unwrap_or_default());
        }
        for root in readers(writing.graph, &|file| bare.contains(file)) {
            let namespace = writing.of_root(root).1;
            if !namespace.is_empty() {
                give(1, &mut files_of(writing.graph, [root]).into_iter(), &namespace);
            }
        }
        let namespace = |Target { object, .. }: &Target| {
            let all = given.iter().find_map(|given| given.get(&object.file)).filter(|all| all.len() == 1);
            all.filter(|_| object.namespace.is_empty()).and_then(|all| all.first().cloned()).unwrap_or_default()
        };
        self.targets.iter().map(namespace).collect()
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

/// Adds what each target may write to that of the files that it reads.
fn add<'t>(changes: &mut OfFiles<'t>, targets: &[Target], read: &[BTreeSet<&'t str>], written: &[Written]) {
    for ((target, read), written) in targets.iter().zip(read).zip(written).filter(|(_, written)| !written.is_nothing())
    {
        for file in read {
            let change = Change { by: target.builder(), written: written.clone(), is_root: false };
            changes.entry(file).or_default().push(change);
        }
    }
}

/// Returns for each target the files of the tree that its build reads, of those that are wanted: in which objects stand.
pub(super) fn files_read<'a>(
    graph: &'a Graph,
    targets: impl IntoIterator<Item = &'a Target>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> Vec<BTreeSet<&'a str>> {
    // Most lead to none.
    let readers = readers(graph, is_wanted);
    let read = |target: &'a Target| {
        let Place::Here(here) = &target.place else { return BTreeSet::new() };
        let leads = target.walked(here, graph).any(|root| readers.contains(&root));
        let files = if leads { files_of(graph, target.walked(here, graph)) } else { Vec::new() };
        let scanned = here.scanned.iter().map(|one| one.path.as_str());
        scanned.chain(files).filter(|file| is_wanted(file)).collect()
    };
    targets.into_iter().map(read).collect()
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
