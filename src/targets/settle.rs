//! Which objects something may change before they are deployed: a kustomization above reads the file of the object, as a
//! parent of Flux or Argo CD does, and writes into what it reads. What comes of it, only its build shows.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};
use std::rc::Rc;

use serde_json::Value as Json;

use super::unread::read_as;
use super::variables::POST_BUILD;
use super::{Changer, Found, Object, Place, Target, Targets, Unsettled};
use crate::graph::{Edge, Graph, Root, RootId, SourceId, Target as Leads};
use crate::kustomization::{Accepts, Kind, documents, is_same_key, read_object};
use crate::tree::{self, Resolved, path};

/// The fields of a kustomization that say what is read, or write into no object that says what is deployed.
const READING: [&str; 18] = [
    "apiVersion",
    "kind",
    "metadata",
    "resources",
    "bases",
    "components",
    "configMapGenerator",
    "secretGenerator",
    "generatorOptions",
    "generators",
    "helmCharts",
    "helmChartInflationGenerator",
    "helmGlobals",
    "replicas",
    "buildMetadata",
    "sortOptions",
    "validators",
    "openapi",
];

/// The fields with patches, each of which is for objects of some kinds.
const PATCHES: [&str; 3] = ["patches", "patchesJson6902", "patchesStrategicMerge"];

/// Which objects something may write into, of those that it reads.
#[derive(Debug, Clone, Default)]
struct Reach {
    /// Whether those of all kinds.
    all: bool,
    /// The others' kinds.
    kinds: BTreeSet<String>,
    /// Whether it fills in variables.
    variables: bool,
}

impl Reach {
    fn all() -> Reach {
        Reach { all: true, ..Reach::default() }
    }

    fn is_nothing(&self) -> bool {
        !self.all && self.kinds.is_empty() && !self.variables
    }

    fn is_of(&self, kind: &str) -> bool {
        self.all || self.kinds.contains(kind)
    }

    fn join(&mut self, other: Reach) {
        self.all |= other.all;
        self.kinds.extend(other.kinds);
        self.variables |= other.variables;
    }
}

/// Something that may change objects.
struct Change {
    by: String,
    /// The roots that it deploys, if it is a target; `None` if it is a root.
    deploys: Option<Rc<Deploys>>,
    reach: Reach,
}

/// What a target deploys.
#[derive(Default)]
struct Deploys {
    path: String,
    roots: BTreeSet<RootId>,
}

impl Deploys {
    fn of(target: &Target, graph: &Graph) -> Rc<Deploys> {
        let Place::Here(here) = &target.place else { return Rc::new(Deploys::default()) };
        Rc::new(Deploys { path: here.path.clone(), roots: graph.reach_localized(target.walked(here, graph)) })
    }

    /// Returns whether what is built in a directory is among it.
    fn holds(&self, directory: &str, graph: &Graph) -> bool {
        let root = graph.user_root(directory);
        root.is_none_or(|root| self.roots.contains(&root)) || self.path == directory
    }
}

/// What may change the objects in each file.
type OfFiles<'a> = HashMap<&'a str, Vec<Change>>;

impl Unsettled {
    /// Finds which targets stand in objects that a kustomization of `graph` (a walk over all of the tree), or another target,
    /// may change, and which nothing deploys. What a build made of an object is changed by nothing else that was built.
    pub(crate) fn settle(self, graph: &Graph) -> Targets {
        let Unsettled(mut found) = self;
        let read = read_as(graph);
        let is_patch = |target: &Target| read.get(&*target.object.file) == Some(&false);
        let is_applied = |target: &Target| found.here().any(|(one, here)| one.takes(here, &target.object.file));
        let is_object = |one: &Target| one.object.built_by.is_some() || !is_patch(one) || is_applied(one);
        let are_objects: Vec<bool> = found.targets.iter().map(is_object).collect();
        let mut are_objects = are_objects.into_iter();
        found.targets.retain(|_| are_objects.next().unwrap_or(true));
        let files: HashSet<&str> = found.targets.iter().flat_map(Target::object_files).collect();
        let read = files_read(graph, &found.targets, &|file| files.contains(file));
        let mut writers = Writers { graph, of_roots: HashMap::new() };
        let mut changes = if files.is_empty() { OfFiles::new() } else { writers.of_files(&files) };
        for (target, read) in found.targets.iter().zip(&read) {
            add(&mut changes, (target, graph), read, &writers.of_target(target));
        }
        found.follow(&mut changes, &read, graph);
        let changed: Vec<Option<Changer>> =
            found.targets.iter().map(|one| found.changer(one, &changes, graph)).collect();
        for (target, changer) in found.targets.iter_mut().zip(changed) {
            target.changed_by = changer;
        }
        found.undeployed = found.undeployed(graph);
        found
    }
}

impl Targets {
    /// Returns what may change the objects that say what a target is, each with whether it does more than fill in variables.
    fn changes<'c>(&self, target: &Target, changes: &'c OfFiles<'_>, graph: &Graph) -> Vec<(&'c Change, bool)> {
        let is_built = target.object.built_by.is_some();
        let (own, is_open) = (target.builder(), target.said.contains("${"));
        let mut found = Vec::new();
        for object in target.objects() {
            for change in changes.get(object.file.as_str()).into_iter().flatten() {
                // Another cluster may build an object of its own of the same file.
                let is_elsewhere = |deploys: &Rc<Deploys>| !deploys.holds(&target.home, graph);
                let is_other = change.deploys.as_ref().is_none_or(is_elsewhere);
                let is_done = is_built && (is_other || self.builds.done.contains(&change.by));
                let writes = change.reach.is_of(object.written_kind());
                if change.by != own && !is_done && (writes || is_open && change.reach.variables) {
                    found.push((change, writes));
                }
            }
        }
        found
    }

    fn changer(&self, target: &Target, changes: &OfFiles<'_>, graph: &Graph) -> Option<Changer> {
        let (change, _) = self.changes(target, changes, graph).into_iter().next()?;
        let not_built = target.object_files().find_map(|file| self.builds.failed.get(file));
        Some(Changer { name: change.by.clone(), not_built: not_built.cloned() })
    }

    /// Adds that what may be built in another way may change what it deploys, too, and so on.
    fn follow<'t>(&self, changes: &mut OfFiles<'t>, read: &[BTreeSet<&'t str>], graph: &Graph) {
        let mut in_files: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, target) in self.targets.iter().enumerate() {
            target.object_files().for_each(|file| in_files.entry(file).or_default().push(number));
        }
        let mut done = vec![false; self.targets.len()];
        let mut todo: VecDeque<usize> = (0..self.targets.len()).collect();
        while let Some(number) = todo.pop_front() {
            let (target, read) = (&self.targets[number], &read[number]);
            if read.is_empty()
                || done[number]
                || !self.changes(target, changes, graph).iter().any(|(_, writes)| *writes)
            {
                continue;
            }
            done[number] = true;
            add(changes, (target, graph), read, &Reach::all());
            todo.extend(read.iter().filter_map(|file| in_files.get(file)).flatten());
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

/// What tells which objects roots and targets write into, of those that they read.
struct Writers<'a> {
    graph: &'a Graph,
    /// Those of each root, as far as it was asked for.
    of_roots: HashMap<RootId, Reach>,
}

impl<'a> Writers<'a> {
    /// Returns who may change objects in some files, of those that roots read.
    fn of_files(&mut self, files: &HashSet<&str>) -> OfFiles<'a> {
        let graph = self.graph;
        let configured = self.configured();
        let mut changed = OfFiles::new();
        for reader in readers(graph, &|file| files.contains(file)) {
            let below = configured.iter().filter(|(_, above)| above.contains(&reader)).map(|(root, _)| *root);
            let all: Vec<RootId> = self.with_components([reader]).into_iter().chain(below).collect();
            for root in all {
                let reach = self.of_root(root);
                if reach.is_nothing() {
                    continue;
                }
                let by = graph.label(graph.roots[root].file);
                let change = || Change { by: by.clone(), reach: reach.clone(), deploys: None };
                for file in files_of(graph, [reader]).into_iter().filter(|file| files.contains(file)) {
                    changed.entry(file).or_default().push(change());
                }
            }
        }
        changed
    }

    /// Returns the roots whose configurations may change objects, each with those that lead to it: kustomize takes what they
    /// say of names for what roots above have read, too.
    fn configured(&self) -> Vec<(RootId, BTreeSet<RootId>)> {
        let graph = self.graph;
        let says = |edge: &Edge| ["configurations", "crds"].iter().any(|key| edge.reference.field.starts_with(key));
        let own = graph.user_roots().into_values();
        let all = own.filter(|root| graph.roots[*root].edges.iter().any(says));
        all.map(|root| (root, graph.leading_to([root]))).collect()
    }

    /// Returns which objects a target may write into, of those that it deploys.
    fn of_target(&mut self, target: &Target) -> Reach {
        let here = match &target.place {
            Place::Here(here) if !matches!(here.found, Found::Nothing(_)) => here,
            _ => return Reach::default(),
        };
        let components = target.build.components.iter().map(|one| &one.found);
        if components.clone().any(Option::is_none) {
            return Reach::all();
        }
        let mut reach = Reach::default();
        let overrides = target.build.overrides.iter().filter(|(key, _)| *key != POST_BUILD);
        overrides.for_each(|(key, value)| reach.join(self.of_field(key, value, &here.path)));
        reach.variables |= !target.build.variables.is_empty();
        let roots = components.filter_map(|found| match found {
            Some(Found::Kustomization(root)) => self.graph.user_root(root),
            _ => None,
        });
        for root in self.with_components(roots.collect::<Vec<_>>()) {
            reach.join(self.of_root(root));
        }
        reach
    }

    /// Returns roots with the components that they add: these change what their users have accumulated.
    fn with_components(&self, roots: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        let is_component = |edge: &Edge| matches!(edge.target, Leads::Root { id, .. } if self.graph.roots[id].kind == Some(Kind::Component));
        self.graph.reach(roots, |_, edge| is_component(edge))
    }

    /// Returns which objects a root writes into by itself. One that cannot be read may write into all.
    fn of_root(&mut self, root: RootId) -> Reach {
        if let Some(known) = self.of_roots.get(&root) {
            return known.clone();
        }
        let Root { source, directory, file, edges, .. } = &self.graph.roots[root];
        // What is remote is read as what names it.
        let is_unknown =
            |edge: &Edge| edge.reference.accepts == Accepts::Component && !matches!(edge.target, Leads::Root { .. });
        let bytes = self.graph.read(*file).ok().filter(|_| *source == SourceId::FIRST && !edges.iter().any(is_unknown));
        let text = bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let read = text.and_then(|text| read_object(text, 0).ok()?).map(|read| read.json());
        let mut reach = Reach { all: read.as_ref().is_none_or(|read| !read.is_object()), ..Reach::default() };
        for (key, value) in read.iter().filter_map(Json::as_object).flatten() {
            reach.join(self.of_field(key, value, directory));
        }
        self.of_roots.entry(root).or_insert(reach).clone()
    }

    /// Returns which objects a field of a kustomization in a directory writes into, or one of an object that changes it.
    fn of_field(&self, key: &str, value: &Json, directory: &str) -> Reach {
        let is_one_of = |keys: &[&str]| keys.iter().any(|known| is_same_key(known, key));
        let is_empty = match value {
            Json::Null => true,
            Json::String(text) => text.is_empty(),
            Json::Array(items) => items.is_empty(),
            Json::Object(fields) => fields.is_empty(),
            Json::Bool(_) | Json::Number(_) => false,
        };
        if is_empty || is_one_of(&READING) {
            return Reach::default();
        }
        let Some(patches) = value.as_array().filter(|_| is_one_of(&PATCHES)) else { return Reach::all() };
        let kinds: Option<Vec<Vec<String>>> = patches.iter().map(|patch| self.kinds(patch, directory)).collect();
        match kinds.map(|kinds| kinds.concat()) {
            // A list may hold any.
            Some(kinds) if kinds.iter().all(|kind| is_plain(kind) && !kind.ends_with("List")) => {
                Reach { kinds: kinds.into_iter().collect(), ..Reach::default() }
            }
            _ => Reach::all(),
        }
    }

    /// Returns the kinds of the objects that a patch is for; none where that cannot be read.
    fn kinds(&self, patch: &Json, directory: &str) -> Option<Vec<String>> {
        if let Some(target) = patch.get("target") {
            return Some(vec![target.get("kind")?.as_str()?.to_owned()]);
        }
        let named = |text: &str| {
            let place = path::resolve(directory, text)?;
            let tree = &*self.graph.sources[0].tree;
            let Resolved::File { path, .. } = tree::resolve(tree, &place).ok()? else { return None };
            String::from_utf8(tree.read(&path).ok()?).ok()
        };
        let text = match (patch, patch.get("patch"), patch.get("path")) {
            (Json::String(text), ..) if text.contains(": ") => text.clone(),
            (Json::String(path), ..) | (_, None, Some(Json::String(path))) => named(path)?,
            (_, Some(Json::String(text)), _) => text.clone(),
            (_, Some(inline), _) => inline.to_string(),
            (inline, None, None) => inline.to_string(),
            _ => return None,
        };
        let objects = documents(&text).filter_map(|(before, text)| read_object(text, before).transpose());
        objects.map(|object| Some(object.ok()?.json().get("kind")?.as_str()?.to_owned())).collect()
    }
}

fn is_plain(kind: &str) -> bool {
    !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Adds what a target may make of the files that it reads.
fn add<'t>(changes: &mut OfFiles<'t>, (target, graph): (&Target, &Graph), read: &BTreeSet<&'t str>, reach: &Reach) {
    if reach.is_nothing() || read.is_empty() {
        return;
    }
    let deploys = Deploys::of(target, graph);
    for file in read {
        let change = Change { by: target.builder(), deploys: Some(deploys.clone()), reach: reach.clone() };
        changes.entry(file).or_default().push(change);
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
    for reached in graph.reach_localized(roots) {
        for edge in &graph.roots[reached].edges {
            files.extend(graph.user_file(edge));
        }
    }
    files
}

/// Returns the roots of a graph whose builds read one of some files of the tree.
pub(crate) fn readers(graph: &Graph, is_wanted: &dyn Fn(&str) -> bool) -> BTreeSet<RootId> {
    let reads = |edge: &Edge| graph.user_file(edge).is_some_and(is_wanted);
    graph.leading_to(graph.root_ids().filter(|id| graph.roots[*id].edges.iter().any(reads)))
}
