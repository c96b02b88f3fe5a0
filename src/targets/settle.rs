//! Which objects a build may change before they are deployed, as an overlay for an app of apps patches the paths of its
//! applications.

use std::collections::{HashMap, HashSet};

use super::{Changer, Found, Place, Target, Targets};
use crate::kustomization::Kind;
use crate::kustomization::{Data, Value, documents, read_object};
use crate::tree::{Tree, path};
use crate::walk::{Edge, Graph, Origin, RootId, Target as Leads};

/// The kinds of objects of which a patch can change what is deployed.
const KINDS: [&str; 9] = [
    "Kustomization",
    "GitRepository",
    "OCIRepository",
    "FluxInstance",
    "ResourceSet",
    "Application",
    "ApplicationSet",
    "AppProject",
    "List",
];

/// The fields of `spec` that say what is deployed.
const FIELDS: [&str; 19] = [
    "postBuild",
    "path",
    "sourceRef",
    "components",
    "source",
    "sources",
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
    "inputs",
    "resources",
    "resourcesTemplate",
];

impl Targets {
    /// Notes which targets stand in objects that a kustomization of `graph` (a walk over `tree`), or another target, may
    /// change. What a build made of an object is changed by nothing else that was built.
    pub fn settle(&mut self, graph: &Graph, tree: &dyn Tree) {
        if self.targets.is_empty() {
            return;
        }
        let objects = self.targets.iter().flat_map(Target::object_files).collect();
        let changed = changed_files(graph, tree, &objects);
        // A parent of Flux or Argo CD patches what it deploys.
        let mut parents: HashMap<String, Vec<String>> = HashMap::new();
        for target in &self.targets {
            if let Some(path) = target.patched() {
                parents
                    .entry(path.to_owned())
                    .or_default()
                    .push(target.builder());
            }
        }
        let builds = &self.builds;
        for target in &mut self.targets {
            let files = target.object_files();
            let is_built = target.object.built_by.is_some();
            let by_root = || files.iter().find_map(|file| changed.get(*file));
            let by_parent = || {
                let own = target.builder();
                let above = files
                    .iter()
                    .flat_map(|file| path::and_above(file).chain([""]));
                let mut parents = above.filter_map(|path| parents.get(path)).flatten();
                let parent =
                    parents.find(|by| **by != own && !(is_built && builds.done.contains(*by)));
                parent.cloned()
            };
            let name = match by_root().filter(|_| !is_built) {
                Some(root) => Some(tree.label(root)),
                None => by_parent(),
            };
            let not_built = files.iter().find_map(|file| builds.failed.get(*file));
            let not_built = not_built.cloned();
            target.changed_by = name.map(|name| Changer { name, not_built });
        }
        self.pass_on();
    }
}

impl Targets {
    /// Notes what may change those whose variables are filled in by one that something may change.
    fn pass_on(&mut self) {
        loop {
            let changed = self.targets.iter().filter_map(|target| {
                let changer = target.changed_by.clone()?;
                Some((target.by(), changer))
            });
            let changed: HashMap<String, Changer> = changed.collect();
            let mut is_last = true;
            for target in &mut self.targets {
                let by = target.object.filled_by.as_ref();
                if let (None, Some(changer)) =
                    (&target.changed_by, by.and_then(|by| changed.get(by)))
                {
                    target.changed_by = Some(changer.clone());
                    is_last = false;
                }
            }
            if is_last {
                return;
            }
        }
    }
}

impl Target {
    /// Returns the directory whose objects it patches, if it may change what these say about what is deployed.
    fn patched(&self) -> Option<&str> {
        let patches = self.build.overrides.get("patches")?.as_array()?;
        let mut texts = patches.iter().filter_map(|one| one.get("patch")?.as_str());
        match &self.place {
            Place::Here(here)
                if !matches!(here.found, Found::Nothing(_)) && texts.any(touches_text) =>
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
        if by.as_ref() == Some(&name) {
            name
        } else {
            self.by()
        }
    }

    /// Returns the files of the objects that say what it is: its own, and that of its source.
    #[must_use]
    pub fn object_files(&self) -> Vec<&str> {
        let mut files = vec![self.object.file.as_str()];
        if let Place::Here(here) = &self.place
            && let Some(object) = here.artifact.as_ref().and_then(|one| one.object.as_ref())
        {
            files.push(&object.file);
        }
        files
    }
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
            if let Leads::File(file) = edge.target
                && let Origin::Tree { source: 0, path } = &graph.files[file].origin
            {
                files.push(path.as_str());
            }
        }
    }
    files
}

/// Returns the files of a tree that roots read as resources and may change, each with one such root. Those of
/// `objects` are among them; only these matter.
fn changed_files(
    graph: &Graph,
    tree: &dyn Tree,
    objects: &HashSet<&str>,
) -> HashMap<String, String> {
    let mut changed = HashMap::new();
    // A component changes what its users have accumulated, so that it counts for them.
    let users = users(graph);
    let mut deciding: Vec<RootId> = deciding(graph, &users, objects).into_iter().collect();
    deciding.sort_unstable();
    deciding.retain(|root| graph.roots[*root].source == 0 && touches(graph, *root, tree));
    for root in deciding {
        let mut tops = vec![root];
        let mut seen = HashSet::new();
        while let Some(top) = tops.pop() {
            if seen.insert(top) && graph.roots[top].kind == Kind::Component {
                tops.extend(users.get(&top).into_iter().flatten());
            }
        }
        let by = path::join(&graph.roots[root].directory, graph.roots[root].file_name);
        for file in files_of(graph, seen) {
            changed.entry(file.to_owned()).or_insert_with(|| by.clone());
        }
    }
    changed
}

/// Returns the roots whose builds hold objects of these files, and the components that those take.
fn deciding(
    graph: &Graph,
    users: &HashMap<RootId, Vec<RootId>>,
    objects: &HashSet<&str>,
) -> HashSet<RootId> {
    let holds = |edge: &Edge| match edge.target {
        Leads::File(file) => match &graph.files[file].origin {
            Origin::Tree { source: 0, path } => objects.contains(path.as_str()),
            _ => false,
        },
        _ => false,
    };
    let ids = 0..graph.roots.len();
    let mut todo: Vec<RootId> = ids
        .filter(|id| graph.roots[*id].edges.iter().any(holds))
        .collect();
    let mut found = HashSet::new();
    while let Some(root) = todo.pop() {
        if found.insert(root) {
            todo.extend(users.get(&root).into_iter().flatten());
        }
    }
    todo.extend(&found);
    while let Some(root) = todo.pop() {
        for edge in &graph.roots[root].edges {
            if let Leads::Root { id, .. } = edge.target
                && graph.roots[id].kind == Kind::Component
                && found.insert(id)
            {
                todo.push(id);
            }
        }
    }
    found
}

/// Returns whether a root may change what objects say about what is deployed.
fn touches(graph: &Graph, root: RootId, tree: &dyn Tree) -> bool {
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
    let Ok(Some(value)) = read_object(text, 0) else {
        return false;
    };
    let items = |key: &str| value.get(key).and_then(Value::list).unwrap_or_default();
    if !items("replacements").is_empty() || !items("transformers").is_empty() {
        return true;
    }
    let file = |text: &str| -> bool {
        let place = path::resolve(&root.directory, text);
        let bytes = place.and_then(|place| tree.read(&place).ok());
        // What is not here, as one by its URL, may change anything.
        bytes.is_none_or(|bytes| std::str::from_utf8(&bytes).map_or(true, touches_text))
    };
    let one = |patch: &Value| -> bool {
        let kind = patch.at(&["target", "kind"]).and_then(Value::text);
        if kind.is_some_and(|kind| is_plain(kind) && !KINDS.contains(&kind)) {
            return false;
        }
        match (
            patch.get("patch").and_then(Value::text),
            patch.get("path").and_then(Value::text),
        ) {
            (Some(text), _) => touches_text(text),
            (None, Some(path)) => file(path),
            (None, None) => false,
        }
    };
    let merged = |patch: &Value| match patch.text() {
        Some(text) if text.contains('\n') => touches_text(text),
        Some(path) => file(path),
        None => false,
    };
    items("patches").iter().any(one)
        || items("patchesJson6902").iter().any(one)
        || items("patchesStrategicMerge").iter().any(merged)
}

/// Returns whether a text is no regular expression.
fn is_plain(text: &str) -> bool {
    text.chars()
        .all(|character| character.is_ascii_alphanumeric())
}

/// Returns whether a patch changes what an object says about what is deployed. One that cannot be read may.
fn touches_text(text: &str) -> bool {
    documents(text).any(|(before, document)| match read_object(document, before) {
        Ok(Some(value)) => match &value.data {
            Data::List(operations) => operations.iter().any(touches_by_operation),
            Data::Mapping(_) => touches_by_merge(&value),
            _ => true,
        },
        Ok(None) => false,
        Err(_) => true,
    })
}

fn touches_by_operation(operation: &Value) -> bool {
    if operation.get("op").and_then(Value::text) == Some("test") {
        return false;
    }
    let Some(path) = operation.get("path").and_then(Value::text) else {
        return true;
    };
    let mut names = path.split('/').skip(1);
    match (names.next(), names.next()) {
        (Some("spec"), Some(field)) => FIELDS.contains(&field),
        (Some("spec") | None, None) => true,
        _ => false,
    }
}

fn touches_by_merge(patch: &Value) -> bool {
    let kind = patch.get("kind").and_then(Value::text);
    if kind.is_some_and(|kind| !KINDS.contains(&kind)) {
        return false;
    }
    let spec = patch
        .get("spec")
        .and_then(Value::mapping)
        .unwrap_or_default();
    patch.get("$patch").is_some()
        || spec
            .iter()
            .any(|(key, _)| key == "$patch" || FIELDS.contains(&key.as_str()))
}

#[cfg(test)]
mod tests {
    use super::touches_text;

    #[test]
    fn only_patches_of_what_is_deployed_count() {
        for (patch, expected) in [
            ("[{op: replace, path: /spec/path, value: x}]", true),
            (
                "[{op: replace, path: /spec/source/targetRevision, value: x}]",
                true,
            ),
            ("[{op: replace, path: /spec, value: {}}]", true),
            ("[{op: test, path: /spec/path, value: x}]", false),
            ("[{op: add, path: /spec/decryption, value: {}}]", false),
            ("[{op: add, path: /metadata/labels/a, value: b}]", false),
            (
                "kind: Kustomization\nmetadata: {name: a}\nspec: {path: x}\n",
                true,
            ),
            (
                "kind: Kustomization\nmetadata: {name: a}\nspec: {wait: true}\n",
                false,
            ),
            (
                "kind: Deployment\nmetadata: {name: a}\nspec: {template: {}}\n",
                false,
            ),
            (
                "kind: Application\nmetadata: {name: a}\n$patch: delete\n",
                true,
            ),
            ("a: [\n", true),
            ("", false),
        ] {
            assert_eq!(touches_text(patch), expected, "{patch}");
        }
    }
}
