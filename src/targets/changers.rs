//! Finds the objects that something may change before they are deployed: a kustomization above reads the file of the
//! object, as a parent of Flux or Argo CD does, and writes into the objects that it reads. Only its build shows the
//! result.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

use serde_json::Value as Json;

use super::deployments::Deployments;
use super::unread::read_as;
use super::variables::POST_BUILD;
use super::{Changer, ObjectRef, PathContent, Target, TargetLocation, Targets, UnresolvedTargets};
use crate::graph::{Edge, Graph, Resolution as Leads, RootId, SourceId};
use crate::kustomization::{Accepts, KustomizationKind, documents, is_same_key, read_object};
use crate::tree::{self, Resolved, path};

/// The fields of a kustomization that select inputs, or never write into an object that defines a target.
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

/// The objects that something may write into, among those that it reads.
#[derive(Debug, Clone, Default)]
struct WritableKinds {
    /// Whether objects of all kinds.
    all: bool,
    /// The kinds, unless all.
    kinds: BTreeSet<String>,
    /// Whether it fills in variables.
    variables: bool,
}

impl WritableKinds {
    fn all() -> WritableKinds {
        WritableKinds { all: true, ..WritableKinds::default() }
    }

    fn is_nothing(&self) -> bool {
        !self.all && self.kinds.is_empty() && !self.variables
    }

    fn includes(&self, kind: &str) -> bool {
        self.all || self.kinds.contains(kind)
    }

    /// Adds the objects of another set.
    fn join(&mut self, other: WritableKinds) {
        self.all |= other.all;
        self.kinds.extend(other.kinds);
        self.variables |= other.variables;
    }
}

/// Something that may change objects.
struct PossibleChange {
    by: String,
    build: ChangingBuild,
    writes: WritableKinds,
}

/// The build in which objects may change.
enum ChangingBuild {
    /// That of the target with this index.
    Target(usize),
    /// That of a root, by a root in it.
    Root { built: RootId, writer: RootId },
}

impl UnresolvedTargets {
    /// Finds the targets whose objects a kustomization of `graph` (a walk over the whole tree), or another target, may
    /// change, and those that nothing deploys.
    pub(crate) fn resolve_changers(self, graph: &Graph) -> Targets {
        let UnresolvedTargets(mut targets) = self;
        let read = read_as(graph);
        // A file that roots only use as a patch defines no target, unless an engine applies it.
        let is_applied = |file: &str| targets.local_targets().any(|(user, dir)| user.takes(dir, file));
        let written = targets.targets.iter().filter(|target| target.object.built_by.is_none());
        let files = written.map(|target| &target.object.file);
        let patches: HashSet<String> =
            files.filter(|file| read.get(file.as_str()) == Some(&false) && !is_applied(file)).cloned().collect();
        targets.targets.retain(|target| target.object.built_by.is_some() || !patches.contains(&target.object.file));
        let files: BTreeSet<&str> = targets.targets.iter().flat_map(Target::object_files).collect();
        let deployments = Deployments::of(graph, &targets.targets, &files);
        let undeployed = targets.undeployed(graph, &deployments);
        let changes = Changers::of(&targets, graph, &deployments, &files);
        let changed: Vec<Option<Changer>> = targets.targets.iter().map(|target| changes.changer(target)).collect();
        targets.targets.iter_mut().zip(changed).for_each(|(target, changer)| target.changed_by = changer);
        // An object that only a part of a failed build makes is not deployed: the object as written stands for the
        // result.
        let parts = &targets.builds.parts;
        targets.targets.retain(|target| {
            target.changed_by.is_none() || target.object.built_by.is_none() || !parts.contains(&target.home)
        });
        targets.undeployed = undeployed;
        targets
    }
}

/// The builds that may change the objects of targets.
struct Changers<'t> {
    targets: &'t Targets,
    graph: &'t Graph,
    deployments: &'t Deployments<'t>,
    /// The changes of the objects in each file.
    of_files: HashMap<&'t str, Vec<PossibleChange>>,
}

impl<'t> Changers<'t> {
    /// Finds the builds that may change the objects in `files`, those that define targets.
    fn of(
        targets: &'t Targets,
        graph: &'t Graph,
        deployments: &'t Deployments<'t>,
        files: &BTreeSet<&'t str>,
    ) -> Changers<'t> {
        let mut changes = Changers { targets, graph, deployments, of_files: HashMap::new() };
        if files.is_empty() {
            return changes;
        }
        let mut writers = Writers { graph, of_roots: HashMap::new() };
        changes.of_files = writers.by_roots(files);
        for (number, target) in targets.targets.iter().enumerate() {
            changes.add_target(number, &writers.writes_of_target(target));
        }
        changes.propagate();
        changes
    }

    /// Notes that the build of a target may change the objects that it deploys, as `writes` says.
    fn add_target(&mut self, number: usize, writes: &WritableKinds) {
        if writes.is_nothing() {
            return;
        }
        for file in self.deployments.files(number) {
            let (by, writes) = (self.targets.targets[number].builder(), writes.clone());
            self.of_files.entry(file).or_default().push(PossibleChange {
                by,
                build: ChangingBuild::Target(number),
                writes,
            });
        }
    }

    /// Adds the changes that follow from the known ones: a build that may change a target may make it deploy anything.
    fn propagate(&mut self) {
        // Each target is looked at again only if something that may change it is found: thousands may be in a row.
        let mut in_files: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, target) in self.targets.targets.iter().enumerate() {
            target.object_files().for_each(|file| in_files.entry(file).or_default().push(number));
        }
        let mut done = vec![false; self.targets.targets.len()];
        let mut todo: VecDeque<usize> = (0..self.targets.targets.len()).collect();
        while let Some(number) = todo.pop_front() {
            let files = self.deployments.files(number);
            // Variables alone change no path: a target with one in its path has no files here.
            if files.is_empty()
                || done[number]
                || !self.changes(&self.targets.targets[number]).iter().any(|(_, writes)| *writes)
            {
                continue;
            }
            done[number] = true;
            self.add_target(number, &WritableKinds::all());
            // The targets whose objects it deploys follow from this one.
            todo.extend(files.iter().filter_map(|file| in_files.get(file)).flatten());
        }
    }

    /// The builds that may change the objects that define a target, each with whether it does more than fill in
    /// variables.
    fn changes(&self, target: &Target) -> Vec<(&PossibleChange, bool)> {
        // Variables matter only to an object that has some.
        let (own, has_variables) = (target.builder(), target.manifest.contains("${"));
        let mut changes = Vec::new();
        for object in target.objects() {
            for change in self.of_files.get(object.file.as_str()).into_iter().flatten() {
                // A build made the target in its home. A build of another cluster makes an object of its own from the
                // same file, and does not change this one.
                let is_other = match change.build {
                    ChangingBuild::Target(number) => !self.may_be_home(&target.home, number),
                    ChangingBuild::Root { built, writer } => !self.is_part(&target.home, built, writer),
                };
                let is_done = object.built_by.is_some() && (is_other || self.targets.builds.done.contains(&change.by));
                let writes = change.writes.includes(object.written_kind());
                let matters = writes || has_variables && change.writes.variables;
                // An object that its own target deploys does not wait for itself.
                if change.by != own && !is_done && matters {
                    changes.push((change, writes));
                }
            }
        }
        changes
    }

    /// Whether a target deploys the build of a directory. Also true if the graph has no root there, and so cannot tell.
    fn may_be_home(&self, directory: &str, number: usize) -> bool {
        let root = self.graph.user_root(directory);
        root.is_none_or(|root| self.deployments.roots(number).contains(&root))
            || matches!(&self.targets.targets[number].location, TargetLocation::Local(dir) if dir.path == directory)
    }

    /// Whether the build of a directory is only a part of that of a root, which did not succeed, and whose `writer` it
    /// does not have.
    fn is_part(&self, directory: &str, built: RootId, writer: RootId) -> bool {
        if !self.targets.builds.parts.contains(directory) {
            return false;
        }
        self.graph.user_root(directory).is_some_and(|part| {
            let [whole, own] = [built, part].map(|root| self.graph.reach_localized([root]));
            built != part && whole.contains(&part) && !own.contains(&writer)
        })
    }

    /// The build that may change the object of a target; `None` if none may.
    fn changer(&self, target: &Target) -> Option<Changer> {
        // The first by its name, roots before targets: the graph has the order in which a command walks the tree.
        let changes = self.changes(target).into_iter().map(|(change, _)| change);
        let change = changes.min_by_key(|change| (matches!(change.build, ChangingBuild::Target(_)), &change.by))?;
        let not_built = target.object_files().find_map(|file| self.targets.builds.failed.get(file));
        Some(Changer { name: change.by.clone(), not_built: not_built.cloned() })
    }
}

impl Target {
    /// The target's name as a builder.
    pub(super) fn builder(&self) -> String {
        let name = self.title();
        // If it deploys its own object, `built by` would only repeat it.
        if self.object.built_by.as_ref() == Some(&name) { name } else { self.by() }
    }

    /// The objects that define it: its own, and those of its source.
    fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        std::iter::once(&self.object).chain(&self.sources)
    }

    /// The files of these objects.
    pub(crate) fn object_files(&self) -> impl Iterator<Item = &str> {
        self.objects().map(|object| object.file.as_str())
    }
}

/// Finds the objects that roots and targets write into, among those that they read.
struct Writers<'a> {
    graph: &'a Graph,
    /// Those of each root, as far as it was asked for.
    of_roots: HashMap<RootId, WritableKinds>,
}

impl<'a> Writers<'a> {
    /// The builds of roots that may change objects in these files, which they read.
    fn by_roots<'t>(&mut self, files: &BTreeSet<&'t str>) -> HashMap<&'t str, Vec<PossibleChange>> {
        let graph = self.graph;
        let mut changed: HashMap<&str, Vec<PossibleChange>> = HashMap::new();
        for reader in readers(graph, &|file| files.contains(file)) {
            let reached = graph.reach_localized([reader]);
            // The reader and its components write. Any other root below that reads one of the files is a reader itself.
            let mut writers = self.with_components([reader]);
            // In kustomize, rules for names also apply to objects that the roots above read.
            writers.extend(reached.iter().filter(|root| self.is_configured(**root)));
            let edges = reached.iter().flat_map(|root| &graph.roots[*root].edges);
            let read: BTreeSet<&str> = edges.filter_map(|edge| files.get(graph.user_file(edge)?).copied()).collect();
            for root in writers {
                let writes = self.writes_of_root(root);
                if writes.is_nothing() {
                    continue;
                }
                for file in &read {
                    let (by, writes) = (graph.label(graph.roots[root].file), writes.clone());
                    let build = ChangingBuild::Root { built: reader, writer: root };
                    changed.entry(file).or_default().push(PossibleChange { by, build, writes });
                }
            }
        }
        changed
    }

    /// Whether a root has rules for names.
    fn is_configured(&self, root: RootId) -> bool {
        let mut fields = self.graph.roots[root].edges.iter().map(|edge| &edge.reference.field);
        fields.any(|field| ["configurations", "crds"].iter().any(|key| field.starts_with(key)))
    }

    /// The objects that a target may write into, among those that it deploys.
    fn writes_of_target(&mut self, target: &Target) -> WritableKinds {
        let dir = match &target.location {
            TargetLocation::Local(dir) if !dir.is_missing() => dir,
            _ => return WritableKinds::default(),
        };
        // A component that is not in the tree may write into all.
        let components: Vec<_> = target.build.components().map(|component| &component.content).collect();
        if components.contains(&&None) {
            return WritableKinds::all();
        }
        let mut writes = WritableKinds::default();
        // `postBuild` only fills in variables, which have a field of their own here.
        let overrides = target.build.overrides.iter().filter(|(key, _)| *key != POST_BUILD);
        overrides.for_each(|(key, value)| writes.join(self.writes_of_field(key, value, &dir.path)));
        writes.variables |= !target.build.variables.is_empty();
        let roots = components.into_iter().filter_map(|content| match content {
            Some(PathContent::Kustomization(root)) => self.graph.user_root(root),
            _ => None,
        });
        for root in self.with_components(roots.collect::<Vec<_>>()) {
            writes.join(self.writes_of_root(root));
        }
        writes
    }

    /// These roots with the components that they add.
    fn with_components(&self, roots: impl IntoIterator<Item = RootId>) -> BTreeSet<RootId> {
        // A component changes everything that its user has accumulated.
        self.graph.reach(roots, |_, edge| {
            matches!(edge.resolution, Leads::Root { id, .. } if self.graph.roots[id].kind == Some(KustomizationKind::Component))
        })
    }

    /// The objects that the fields of a root write into, without those of its components.
    fn writes_of_root(&mut self, root: RootId) -> WritableKinds {
        if let Some(known) = self.of_roots.get(&root) {
            return known.clone();
        }
        let node = &self.graph.roots[root];
        let is_unknown_component = |edge: &Edge| {
            edge.reference.accepts == Accepts::Component && !matches!(edge.resolution, Leads::Root { .. })
        };
        // A root from elsewhere, or with a component that is not known, may write into all.
        let is_read = node.source == SourceId::FIRST && !node.edges.iter().any(is_unknown_component);
        let bytes = self.graph.read(node.file).ok().filter(|_| is_read);
        let text = bytes.as_deref().and_then(|bytes| std::str::from_utf8(bytes).ok());
        let read = text.and_then(|text| read_object(text).ok()?).map(|read| read.json());
        let mut writes = WritableKinds::default();
        match read.as_ref().and_then(Json::as_object) {
            // A root that cannot be read may write into all.
            None => writes.all = true,
            Some(fields) => {
                fields.iter().for_each(|(key, value)| writes.join(self.writes_of_field(key, value, &node.directory)));
            }
        }
        self.of_roots.entry(root).or_insert(writes).clone()
    }

    /// The objects that a field writes into. It is a field of the kustomization in a directory, or of an object of an
    /// engine that changes this kustomization.
    fn writes_of_field(&self, key: &str, value: &Json, directory: &str) -> WritableKinds {
        let is_known = |keys: &[&str]| keys.iter().any(|known| is_same_key(known, key));
        if is_empty(value) || is_known(&READING) {
            return WritableKinds::default();
        }
        // Only patches tell the kinds that they write into; any other field may write into all objects.
        let Some(patches) = value.as_array().filter(|_| is_known(&PATCHES)) else { return WritableKinds::all() };
        let kinds: Option<Vec<Vec<String>>> =
            patches.iter().map(|patch| self.kinds_of_patch(patch, directory)).collect();
        match kinds.map(|kinds| kinds.concat()) {
            // A pattern for kinds, and a list of objects, may mean any kind.
            Some(kinds) if kinds.iter().all(|kind| is_plain(kind) && !kind.ends_with("List")) => {
                WritableKinds { kinds: kinds.into_iter().collect(), ..WritableKinds::default() }
            }
            _ => WritableKinds::all(),
        }
    }

    /// The kinds of the objects that a patch applies to; `None` if it cannot be read.
    fn kinds_of_patch(&self, patch: &Json, directory: &str) -> Option<Vec<String>> {
        if let Some(target) = patch.get("target") {
            return Some(vec![target.get("kind")?.as_str()?.to_owned()]);
        }
        let text = self.text_of_patch(patch, directory)?;
        let objects = documents(&text).filter_map(|document| read_object(document).transpose());
        objects.map(|object| Some(object.ok()?.json().get("kind")?.as_str()?.to_owned())).collect()
    }

    /// The text of a patch; `None` if it cannot be read. `patchesStrategicMerge` lists texts and paths, `patches` lists
    /// objects with one of both, and Flux lists patches as objects.
    fn text_of_patch(&self, patch: &Json, directory: &str) -> Option<String> {
        match (patch, patch.get("patch"), patch.get("path")) {
            (Json::String(text), ..) if text.contains(": ") => Some(text.clone()),
            // Without `: ` a text is taken for a path. If there is no such file, the kinds are unknown.
            (Json::String(path), ..) | (_, None, Some(Json::String(path))) => self.read_patch(directory, path),
            (_, Some(Json::String(text)), _) => Some(text.clone()),
            (_, Some(inline), _) | (inline, None, None) => Some(inline.to_string()),
            _ => None,
        }
    }

    /// The text of the file at a path, seen from a directory; `None` if it cannot be read.
    fn read_patch(&self, directory: &str, path: &str) -> Option<String> {
        let tree = &*self.graph.sources[0].tree;
        match tree::resolve(tree, &path::resolve(directory, path)?).ok()? {
            Resolved::File { path, .. } => String::from_utf8(tree.read(&path).ok()?).ok(),
            _ => None,
        }
    }
}

/// Whether a value says nothing.
fn is_empty(value: &Json) -> bool {
    match value {
        Json::Null => true,
        Json::String(text) => text.is_empty(),
        Json::Array(items) => items.is_empty(),
        Json::Object(fields) => fields.is_empty(),
        Json::Bool(_) | Json::Number(_) => false,
    }
}

fn is_plain(kind: &str) -> bool {
    !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// The roots of a graph whose builds read one of these files of the tree.
pub(crate) fn readers(graph: &Graph, is_wanted: &dyn Fn(&str) -> bool) -> BTreeSet<RootId> {
    graph.leading_to(
        graph
            .root_ids()
            .filter(|id| graph.roots[*id].edges.iter().any(|edge: &Edge| graph.user_file(edge).is_some_and(is_wanted))),
    )
}
