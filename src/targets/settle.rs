//! Which objects a build may change before they are deployed: a kustomization above reads the file of the object, as a
//! parent of Flux or Argo CD does, and has transformers, or a patch or replacement that is not for another kind.

use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value as Json;

use super::scan::is_known;
use super::{Changer, Found, Place, Target, Targets};
use crate::graph::{Edge, Graph, RootId, Target as Leads};
use crate::kustomization::{Kind, read_object};
use crate::tree::path;

impl Targets {
    /// Notes which targets stand in objects that a kustomization of `graph` (a walk over all of the tree), or another target, may
    /// change, and which nothing deploys. What a build made of an object is changed by nothing else that was built.
    pub(crate) fn settle(&mut self, graph: &Graph) {
        let files: HashSet<&str> = self.targets.iter().flat_map(Target::object_files).collect();
        let roots = if files.is_empty() { HashMap::new() } else { changed_files(graph, &files) };
        let mut parents: HashMap<&str, Vec<String>> = HashMap::new();
        for target in &self.targets {
            if let Some(path) = target.patched() {
                parents.entry(path).or_default().push(target.builder());
            }
        }
        let changer = |target: &Target| {
            let files = target.object_files();
            let is_built = target.object.built_by.is_some();
            let by_root = || files.iter().find_map(|file| roots.get(*file));
            let by_parent = || {
                let own = target.builder();
                let above = files.iter().flat_map(|file| path::and_above(file).chain([""]));
                let mut parents = above.filter_map(|path| parents.get(path)).flatten();
                parents.find(|by| **by != own && !(is_built && self.builds.done.contains(*by)))
            };
            let name = if is_built { None } else { by_root() };
            let not_built = files.iter().find_map(|file| self.builds.failed.get(*file));
            Some(Changer { name: name.or_else(by_parent)?.clone(), not_built: not_built.cloned() })
        };
        let changed: Vec<Option<Changer>> = self.targets.iter().map(changer).collect();
        for (target, changer) in self.targets.iter_mut().zip(changed) {
            target.changed_by = changer;
        }
        self.undeployed = self.undeployed(graph);
    }
}

impl Target {
    /// Returns the directory whose objects it may patch.
    fn patched(&self) -> Option<&str> {
        let Place::Here(here) = &self.place else {
            return None;
        };
        let may = || may_change(&Json::Object(self.build.overrides.clone()));
        (!matches!(here.found, Found::Nothing(_)) && may()).then_some(&here.path)
    }

    /// Returns its name as one who builds: what deploys itself was no other one before.
    pub(super) fn builder(&self) -> String {
        let name = self.written().by();
        if self.object.built_by.as_ref() == Some(&name) { name } else { self.by() }
    }

    /// Returns it as its file has it.
    pub(super) fn written(&self) -> Target {
        let mut written = self.clone();
        written.object.built_by = None;
        written
    }

    /// Returns the files of the objects that say what it is: its own, and that of its source.
    pub(crate) fn object_files(&self) -> Vec<&str> {
        let mut files = vec![self.object.file.as_str()];
        if let Place::Here(here) = &self.place
            && let Some(object) = here.artifact.as_ref().and_then(|one| one.object.as_ref())
        {
            files.push(&object.file);
        }
        files
    }
}

/// Returns the files that roots read which may change one of `objects`, each with the first such kustomization.
fn changed_files(graph: &Graph, objects: &HashSet<&str>) -> HashMap<String, String> {
    let mut changed = HashMap::new();
    for reader in readers(graph, &|file| objects.contains(file)) {
        // A component changes what its users have accumulated.
        let components = graph.reach(
            [reader],
            |_, _, edge| matches!(edge.target, Leads::Root { id, .. } if graph.roots[id].kind == Some(Kind::Component)),
        );
        let may_change = |root: &RootId| graph.roots[*root].source == 0 && root_may_change(graph, *root);
        let by = [reader].into_iter().chain(components).find(may_change);
        if let Some(by) = by {
            let by = graph.label(graph.roots[by].file);
            for file in files_of(graph, [reader]) {
                changed.entry(file.to_owned()).or_insert_with(|| by.clone());
            }
        }
    }
    changed
}

/// Returns whether a root may change objects of engines. One that cannot be read, or is not plain YAML, may.
fn root_may_change(graph: &Graph, root: RootId) -> bool {
    let Ok(bytes) = graph.read(graph.roots[root].file) else { return true };
    let text = String::from_utf8_lossy(&bytes);
    read_object(&text, 0).map_or(true, |found| found.is_some_and(|kustomization| may_change(&kustomization.json())))
}

/// Returns whether a kustomization may change objects of engines: it has transformers, or a patch or replacement that
/// does not name another kind.
fn may_change(kustomization: &Json) -> bool {
    let items = |key: &str| kustomization[key].as_array().into_iter().flatten();
    let is_wanted = |kind: &Json| kind.as_str().is_none_or(is_engines);
    let patch = |one: &Json| is_wanted(&one["target"]["kind"]) && is_wanted(&one["kind"]);
    let replacement = |one: &Json| {
        let targets = one["targets"].as_array();
        targets.is_none_or(|all| all.iter().any(|one| is_wanted(&one["select"]["kind"])))
    };
    let mut patches = ["patches", "patchesJson6902", "patchesStrategicMerge"].into_iter().flat_map(items);
    items("transformers").next().is_some() || patches.any(patch) || items("replacements").any(replacement)
}

/// Returns whether objects of a kind, or some that a regular expression for kinds matches, say what is deployed.
fn is_engines(kind: &str) -> bool {
    let is_plain = kind.chars().all(|character| character.is_ascii_alphanumeric());
    !is_plain || kind == "List" || is_known(kind)
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

#[cfg(test)]
mod tests {
    use super::may_change;
    use crate::kustomization::read_object;

    #[test]
    fn only_what_is_not_for_another_kind_may_change_an_object() {
        for (text, expected) in [
            ("patches: [{target: {kind: Application}, path: x.yaml}]", true),
            ("patches: [{target: {kind: Deployment}, path: x.yaml}]", false),
            ("patches: [{target: {kind: 'Appl.*'}, path: x.yaml}]", true),
            ("patches: [{path: x.yaml}]", true),
            ("patchesStrategicMerge: [x.yaml]", true),
            ("patchesStrategicMerge: [{kind: Kustomization, spec: {path: x}}]", true),
            ("patchesJson6902: [{target: {kind: List}, path: x.yaml}]", true),
            ("replacements: [{path: x.yaml}]", true),
            ("replacements: [{targets: [{select: {kind: Application}}]}]", true),
            ("replacements: [{targets: [{select: {kind: Deployment}}, {select: {}}]}]", true),
            ("replacements: [{targets: [{select: {kind: Deployment}}]}]", false),
            ("transformers: [x.yaml]", true),
            ("namePrefix: a-\nimages: [{name: a, newTag: b}]", false),
        ] {
            let value = read_object(text, 0).unwrap().unwrap();
            assert_eq!(may_change(&value.json()), expected, "{text}");
        }
    }
}
