//! Which objects a build may change before they are deployed, as an overlay for an app of apps patches the paths of its
//! applications.

use std::collections::{HashMap, HashSet};

use super::{Changer, Found, Place, Target, Targets};
use crate::graph::{Edge, Graph, RootId, Target as Leads};
use crate::kustomization::Kind;
use crate::kustomization::{Data, Value, documents, read_object};
use crate::tree::{Tree, path};

/// The kinds of objects of which a patch can change what is deployed.
const KINDS: [&str; 11] = [
    "Kustomization",
    "GitRepository",
    "OCIRepository",
    "ArtifactGenerator",
    "FluxInstance",
    "ResourceSet",
    "Application",
    "ApplicationSet",
    "AppProject",
    "GitRepo",
    "List",
];

/// The fields of `spec` that say what is deployed.
const FIELDS: [&str; 20] = [
    "path",
    "sourceRef",
    "components",
    "source",
    "sources",
    "artifacts",
    "sourceHydrator",
    "generators",
    "template",
    "templatePatch",
    "sync",
    "url",
    "ref",
    "ignore",
    "sparseCheckout",
    "include",
    "repo",
    "paths",
    "branch",
    "revision",
];

impl Targets {
    /// Notes which targets stand in objects that a kustomization of `graph` (a walk over `tree`), or another target, may
    /// change. What a build made of an object is changed by nothing else that was built.
    pub(crate) fn settle(&mut self, graph: &Graph, tree: &dyn Tree) {
        if self.targets.is_empty() {
            return;
        }
        let changers = Changers::of(self, graph, tree, &FIELDS);
        let changed = self.targets.iter().map(|one| changers.of_target(one, self));
        let changed: Vec<Option<Changer>> = changed.collect();
        for (target, changer) in self.targets.iter_mut().zip(changed) {
            target.changed_by = changer;
        }
    }
}

/// What may change some fields of objects.
struct Changers {
    /// The kustomizations that may, by the files of objects.
    roots: HashMap<String, String>,
    /// The targets that may, by the directories that they deploy: a parent of Flux or Argo CD patches its children.
    parents: HashMap<String, Vec<String>>,
}

impl Changers {
    fn of(targets: &Targets, graph: &Graph, tree: &dyn Tree, fields: &[&str]) -> Changers {
        let all = &targets.targets;
        let objects = all.iter().flat_map(Target::object_files).collect();
        let mut parents: HashMap<String, Vec<String>> = HashMap::new();
        for target in all {
            if let Some(path) = target.patched(fields) {
                let path = path.to_owned();
                parents.entry(path).or_default().push(target.builder());
            }
        }
        Changers { roots: changed_files(graph, tree, &objects, fields), parents }
    }

    fn of_target(&self, target: &Target, targets: &Targets) -> Option<Changer> {
        let builds = &targets.builds;
        let files = target.object_files();
        let is_built = target.object.built_by.is_some();
        let by_root = || files.iter().find_map(|file| self.roots.get(*file)).cloned();
        let by_parent = || {
            let own = target.builder();
            let above = files.iter().flat_map(|file| path::and_above(file).chain([""]));
            let mut parents = above.filter_map(|path| self.parents.get(path)).flatten();
            let parent = parents.find(|by| **by != own && !(is_built && builds.done.contains(*by)));
            parent.cloned()
        };
        let name = if is_built { None } else { by_root() };
        let not_built = files.iter().find_map(|file| builds.failed.get(*file));
        Some(Changer { name: name.or_else(by_parent)?, not_built: not_built.cloned() })
    }
}

impl Target {
    /// Returns the directory whose objects it patches, if it may change one of these fields.
    fn patched(&self, fields: &[&str]) -> Option<&str> {
        let patches = self.build.overrides.get("patches")?.as_array()?;
        let mut texts = patches.iter().filter_map(|one| one.get("patch")?.as_str());
        match &self.place {
            Place::Here(here)
                if !matches!(here.found, Found::Nothing(_)) && texts.any(|text| touches_text(text, fields)) =>
            {
                Some(&here.path)
            }
            _ => None,
        }
    }

    /// Returns its name as one who builds: what deploys itself was no other one before.
    pub(super) fn builder(&self) -> String {
        let mut before = self.clone();
        let by = before.object.built_by.take();
        let name = before.by();
        if by.as_ref() == Some(&name) { name } else { self.by() }
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

/// Returns the roots of a graph whose builds read one of some files of the tree.
pub(crate) fn roots_that_read(graph: &Graph, files: &HashSet<&str>) -> HashSet<RootId> {
    above(graph, &users(graph), &|file| files.contains(file))
}

/// Returns the roots that lead to each root.
pub(super) fn users(graph: &Graph) -> HashMap<RootId, Vec<RootId>> {
    let mut users: HashMap<RootId, Vec<RootId>> = HashMap::new();
    for (id, root) in graph.roots.iter().enumerate() {
        for edge in &root.edges {
            if let Leads::Root { id: to, .. } = edge.target {
                users.entry(to).or_default().push(id);
            }
        }
    }
    users
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

/// Returns the files of a tree that roots read as resources and may change, each with one such root. Those of
/// `objects` are among them; only these matter.
fn changed_files(graph: &Graph, tree: &dyn Tree, objects: &HashSet<&str>, fields: &[&str]) -> HashMap<String, String> {
    let mut changed = HashMap::new();
    // A component changes what its users have accumulated, so that it counts for them.
    let users = users(graph);
    let mut deciding: Vec<RootId> = deciding(graph, &users, objects).into_iter().collect();
    deciding.sort_unstable();
    deciding.retain(|root| graph.roots[*root].source == 0 && touches(graph, *root, tree, fields));
    for root in deciding {
        let mut tops = vec![root];
        let mut seen = HashSet::new();
        while let Some(top) = tops.pop() {
            if seen.insert(top) && graph.roots[top].kind == Some(Kind::Component) {
                tops.extend(users.get(&top).into_iter().flatten());
            }
        }
        let by = path::join(&graph.roots[root].directory, graph.roots[root].file_name);
        let by = tree.label(&by);
        for file in files_of(graph, seen) {
            changed.entry(file.to_owned()).or_insert_with(|| by.clone());
        }
    }
    changed
}

/// Returns the roots of the tree whose builds read one of some files.
pub(super) fn above(
    graph: &Graph,
    users: &HashMap<RootId, Vec<RootId>>,
    is_wanted: &dyn Fn(&str) -> bool,
) -> HashSet<RootId> {
    let reads = |edge: &Edge| graph.own_file(edge).is_some_and(is_wanted);
    let ids = 0..graph.roots.len();
    let mut todo: Vec<RootId> = ids.filter(|id| graph.roots[*id].edges.iter().any(reads)).collect();
    let mut found = HashSet::new();
    while let Some(root) = todo.pop() {
        if found.insert(root) {
            todo.extend(users.get(&root).into_iter().flatten());
        }
    }
    found
}

/// Returns the roots whose builds hold objects of these files, and the components that those take.
fn deciding(graph: &Graph, users: &HashMap<RootId, Vec<RootId>>, objects: &HashSet<&str>) -> HashSet<RootId> {
    let mut found = above(graph, users, &|file| objects.contains(file));
    let mut todo: Vec<RootId> = found.iter().copied().collect();
    while let Some(root) = todo.pop() {
        for edge in &graph.roots[root].edges {
            if let Leads::Root { id, .. } = edge.target
                && graph.roots[id].kind == Some(Kind::Component)
                && found.insert(id)
            {
                todo.push(id);
            }
        }
    }
    found
}

/// Returns whether a root may change what objects say about what is deployed.
fn touches(graph: &Graph, root: RootId, tree: &dyn Tree, fields: &[&str]) -> bool {
    let root = &graph.roots[root];
    let bytes = graph.bytes(root.file);
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return false;
    };
    // Most have none of these.
    let has = |word: &str| text.contains(word);
    if !has("atch") && !has("replacements") && !has("transformers") && !has("vars") {
        return false;
    }
    let value = match read_object(text, 0) {
        Ok(Some(value)) => value,
        Ok(None) => return false,
        // A merge key, for example.
        Err(_) => return true,
    };
    let items = |key: &str| items(&value, key);
    if !items("transformers").is_empty() {
        return true;
    }
    let in_file = |text: &str, touches: &dyn Fn(&str) -> bool| -> bool {
        let place = path::resolve(&root.directory, text);
        let bytes = place.and_then(|place| tree.read(&place).ok());
        // What is not here, as one by its URL, may change anything.
        bytes.is_none_or(|bytes| std::str::from_utf8(&bytes).map_or(true, touches))
    };
    let file = |text: &str| in_file(text, &|text| touches_text(text, fields));
    let replaced = |one: &Value| match one.get("path").and_then(Value::text) {
        Some(path) => in_file(path, &|text| touches_by_replacements(text, fields)),
        None => touches_by_replacement(one, fields),
    };
    let one = |patch: &Value| -> bool {
        let kind = patch.at(&["target", "kind"]).and_then(Value::text);
        if kind.is_some_and(|kind| is_plain(kind) && !KINDS.contains(&kind)) {
            return false;
        }
        match (patch.get("patch").and_then(Value::text), patch.get("path").and_then(Value::text)) {
            (Some(text), _) => touches_text(text, fields),
            (None, Some(path)) => file(path),
            (None, None) => false,
        }
    };
    let merged = |patch: &Value| match patch.text() {
        Some(text) if text.contains('\n') => touches_text(text, fields),
        Some(path) => file(path),
        None => false,
    };
    items("replacements").iter().any(replaced)
        || items("patches").iter().any(one)
        || items("patchesJson6902").iter().any(one)
        || items("patchesStrategicMerge").iter().any(merged)
}

/// Returns whether a text is no regular expression.
fn is_plain(text: &str) -> bool {
    text.chars().all(|character| character.is_ascii_alphanumeric())
}

/// Returns whether a patch changes what an object says about what is deployed. One that cannot be read may.
fn touches_text(text: &str, fields: &[&str]) -> bool {
    any_document(text, &|value| match &value.data {
        Data::List(operations) => operations.iter().any(|one| touches_by_operation(one, fields)),
        Data::Mapping(_) => touches_by_merge(value, fields),
        _ => true,
    })
}

/// Returns whether this holds for a document of a text, or may: for one that cannot be read.
fn any_document(text: &str, holds: &dyn Fn(&Value) -> bool) -> bool {
    documents(text).any(|(before, document)| match read_object(document, before) {
        Ok(Some(value)) => holds(&value),
        Ok(None) => false,
        Err(_) => true,
    })
}

fn touches_by_operation(operation: &Value, fields: &[&str]) -> bool {
    if operation.get("op").and_then(Value::text) == Some("test") {
        return false;
    }
    let Some(path) = operation.get("path").and_then(Value::text) else {
        return true;
    };
    let mut names = path.split('/').skip(1);
    match (names.next(), names.next()) {
        (Some("spec"), Some(field)) => fields.contains(&field),
        (Some("spec") | None, None) => true,
        _ => false,
    }
}

fn touches_by_merge(patch: &Value, fields: &[&str]) -> bool {
    let kind = patch.get("kind").and_then(Value::text);
    if kind.is_some_and(|kind| !KINDS.contains(&kind)) {
        return false;
    }
    let spec = patch.get("spec").and_then(Value::mapping).unwrap_or_default();
    patch.get("$patch").is_some() || spec.iter().any(|(key, _)| key == "$patch" || fields.contains(&key.as_str()))
}

/// Returns whether a file of replacements changes what an object says about what is deployed. One that cannot be read
/// may.
fn touches_by_replacements(text: &str, fields: &[&str]) -> bool {
    any_document(text, &|value| match &value.data {
        Data::List(items) => items.iter().any(|one| touches_by_replacement(one, fields)),
        _ => touches_by_replacement(value, fields),
    })
}

/// Returns the items of a list.
fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::list).unwrap_or_default()
}

fn touches_by_replacement(replacement: &Value, fields: &[&str]) -> bool {
    items(replacement, "targets").iter().any(|target| {
        let kind = target.at(&["select", "kind"]).and_then(Value::text);
        let is_other = kind.is_some_and(|kind| is_plain(kind) && !KINDS.contains(&kind));
        let paths = items(target, "fieldPaths");
        let touches = |path: &Value| path.text().is_none_or(|path| touches_at(path, fields));
        !is_other && paths.iter().any(touches)
    })
}

/// Returns whether a path, as `spec.path`, is that of one of these fields, or may be.
fn touches_at(path: &str, fields: &[&str]) -> bool {
    let is_open = |name: &str| name.contains(['*', '[', '\\']);
    let mut names = path.split('.');
    match (names.next(), names.next()) {
        (Some("spec"), Some(field)) => is_open(field) || fields.contains(&field),
        (Some("spec"), None) => true,
        (Some(first), _) => is_open(first),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{FIELDS, touches_by_replacements, touches_text};

    #[test]
    fn only_replacements_in_what_is_deployed_count() {
        for (kind, path, expected) in [
            ("Kustomization", "spec.path", true),
            ("Kustomization", "spec.sourceRef.name", true),
            ("Application", "spec.source.targetRevision", true),
            ("Kustomization", "spec", true),
            ("Kustomization", "spec.*", true),
            ("Kustom.*", "spec.path", true),
            ("Kustomization", "spec.targetNamespace", false),
            ("Kustomization", "metadata.labels.path", false),
            ("Deployment", "spec.template.x", false),
        ] {
            let one = format!("targets: [{{select: {{kind: '{kind}'}}, fieldPaths: ['{path}']}}]\n");
            let all = format!("- targets: []\n- {one}");
            for text in [&one, &all] {
                assert_eq!(touches_by_replacements(text, &FIELDS), expected, "{text}");
            }
        }
        assert!(touches_by_replacements("targets: [{fieldPaths: [spec.path]}]\n", &FIELDS));
        assert!(touches_by_replacements("[\n", &FIELDS));
        assert!(!touches_by_replacements("targets: [{select: {}}]\n", &FIELDS));
    }

    #[test]
    fn only_patches_of_what_is_deployed_count() {
        for (patch, expected) in [
            ("[{op: replace, path: /spec/path, value: x}]", true),
            ("[{op: replace, path: /spec/source/targetRevision, value: x}]", true),
            ("[{op: replace, path: /spec, value: {}}]", true),
            ("[{op: test, path: /spec/path, value: x}]", false),
            ("[{op: add, path: /spec/decryption, value: {}}]", false),
            ("[{op: add, path: /metadata/labels/a, value: b}]", false),
            ("kind: Kustomization\nmetadata: {name: a}\nspec: {path: x}\n", true),
            ("kind: Kustomization\nmetadata: {name: a}\nspec: {wait: true}\n", false),
            ("kind: Deployment\nmetadata: {name: a}\nspec: {template: {}}\n", false),
            ("kind: Application\nmetadata: {name: a}\n$patch: delete\n", true),
            ("a: [\n", true),
            ("", false),
        ] {
            assert_eq!(touches_text(patch, &FIELDS), expected, "{patch}");
        }
    }
}
