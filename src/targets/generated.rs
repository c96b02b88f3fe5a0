//! The kustomization that an engine builds for a target: the content at the path, with the changes of the object.

use serde_json::{Map, Value, json};

use super::variables::Variables;
use super::{BuildSettings, PathContent, Target, TargetDir};
use crate::kustomization::{FILE_NAMES, ObjectError, read_object};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{self, Tree, path};

/// The option of `kustomize build` that lets a root load any file.
pub(crate) const ANY_FILE: &str = "--load-restrictor=LoadRestrictionsNone";

/// A kustomization that an engine builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Generated {
    /// The directory, from the top of the repository.
    pub directory: String,
    /// The name of the kustomization in it.
    pub file_name: &'static str,
    /// Its text.
    pub text: Vec<u8>,
    /// Whether the engine changes the content of the path.
    pub is_changed: bool,
    /// The arguments of `kustomize build`.
    pub arguments: Vec<String>,
    /// The variables that Flux fills in afterwards.
    pub variables: Variables,
    /// The arguments of `kustomize edit` that is run before it is built, or why they are not known.
    pub edits: Result<Vec<Vec<String>>, String>,
}

/// The kustomization that an engine builds for a target; `None` if it does not build with kustomize.
pub(crate) fn generated(tree: &dyn Tree, target: &Target, dir: &TargetDir) -> Result<Option<Generated>> {
    let (directory, is_root) = match (&dir.content, target.engine) {
        (PathContent::Kustomization(directory), _) => (directory.clone(), true),
        (PathContent::Directory(directory), engine) if engine.generates() => (directory.clone(), false),
        _ => return Ok(None),
    };
    let mut made = Generated {
        file_name: FILE_NAMES[0],
        text: Vec::new(),
        is_changed: !is_root,
        arguments: arguments(target),
        variables: target.build.variables.clone(),
        edits: edits(target),
        directory,
    };
    // A root is edited; for a directory without one, Flux lists everything that it finds.
    let mut kustomization = if is_root {
        if let Some((name, path)) = tree::kustomization_in(tree, &made.directory)? {
            made.file_name = name;
            made.text = tree.read(&path)?;
        }
        match parsed(&made.text) {
            Ok(Some(kustomization)) => kustomization,
            // kustomize refuses it as it is.
            Ok(None) => return Ok(Some(made)),
            Err(why) => return Ok(Some(made.unedited(target, why))),
        }
    } else {
        listing(dir, &made.directory)
    };
    // An engine writes some changes of the object into the kustomization, and makes others by commands (`edits`).
    let before = kustomization.clone();
    write_changes(&mut kustomization, target, is_root);
    made.is_changed |= kustomization != before;
    if made.is_changed {
        made.text = Value::Object(kustomization).to_string().into_bytes();
    }
    made.is_changed |= made.edits != Ok(Vec::new());
    Ok(Some(made))
}

/// The kustomization that Flux writes for a directory without one: it lists everything that Flux finds.
fn listing(dir: &TargetDir, directory: &str) -> Map<String, Value> {
    let resources = dir.scanned.iter().filter_map(|resource| path::below(&resource.path, directory));
    let resources: Vec<Value> = resources.map(|inside| json!(format!("./{inside}"))).collect();
    let mut kustomization = Map::new();
    // kustomize refuses an empty kustomization, and Flux writes this to avoid that.
    if resources.is_empty() {
        kustomization.insert("namespace".to_owned(), json!("_placeholder"));
    }
    kustomization.insert("resources".to_owned(), Value::Array(resources));
    kustomization
}

/// The arguments of `kustomize edit` that is run before a target is built, or why they are not known.
fn edits(target: &Target) -> Result<Vec<Vec<String>>, String> {
    let mut edits = target.build.edits.clone().transpose()?.unwrap_or_default();
    // Argo CD adds components by a command, which also refuses a directory that is not there.
    if target.engine.runs_edits() && target.build.components().next().is_some() {
        edits.push(["add", "component"].map(str::to_owned).into_iter().chain(component_texts(target)).collect());
    }
    Ok(edits)
}

/// Writes the changes of an object into a kustomization, except those that the engine makes by commands.
fn write_changes(kustomization: &mut Map<String, Value>, target: &Target, is_root: bool) {
    target.engine.edit(kustomization, &target.build, is_root);
    if !target.engine.runs_edits() {
        append(kustomization, "components", component_texts(target).map(Value::String).collect());
    }
}

/// The components that the object adds, as they are written.
fn component_texts(target: &Target) -> impl Iterator<Item = String> {
    target.build.components().map(|component| component.text.text.clone())
}

impl Generated {
    /// The build of a root whose kustomization cannot be edited here, because it is not plain YAML. It is unknown if
    /// the engine writes into the kustomization, and else it is built as it is.
    fn unedited(mut self, target: &Target, ObjectError { line, message }: ObjectError) -> Generated {
        let mut changes = Map::new();
        write_changes(&mut changes, target, false);
        if !changes.is_empty() {
            let file = path::join(&self.directory, self.file_name);
            self.edits = Err(format!("`{file}:{line}` cannot be edited: {message}"));
        }
        self.is_changed = self.edits != Ok(Vec::new());
        self
    }

    /// Whether the engine does more than build the root at the path.
    pub(crate) fn is_of_engine(&self) -> bool {
        self.is_changed || !self.variables.is_empty()
    }
}

impl Target {
    /// Whether its engine builds it with kustomize.
    pub(crate) fn is_built(&self, dir: &TargetDir) -> bool {
        match dir.content {
            PathContent::Kustomization(_) => true,
            PathContent::Directory(_) => self.engine.generates(),
            _ => false,
        }
    }

    /// Whether its engine renders it with helm, from a chart in this repository.
    pub(crate) fn is_chart(&self) -> bool {
        self.local_dir().is_some_and(|dir| matches!(dir.content, PathContent::Chart(_)))
    }
}

/// The arguments of kustomize that change its output.
fn arguments(target: &Target) -> Vec<String> {
    // Arguments that would run code are not among them, whatever the tree says: only the user can give these.
    let mut arguments = Vec::new();
    if target.build.load_restrictor == Some(LoadRestrictor::None) {
        arguments.push(ANY_FILE.to_owned());
    }
    arguments.extend(target.engine.arguments().iter().map(|argument| (*argument).to_owned()));
    arguments
}

/// Reads the first document, as kustomize does; `None` if it is not a mapping. Fails if it is not plain YAML.
pub(crate) fn parsed(text: &[u8]) -> Result<Option<Map<String, Value>>, ObjectError> {
    let not_utf8 = |_| ObjectError { line: 1, message: "not UTF-8".to_owned() };
    let document = read_object(std::str::from_utf8(text).map_err(not_utf8)?)?;
    Ok(match document.map(|document| document.json()) {
        Some(Value::Object(kustomization)) => Some(kustomization),
        _ => None,
    })
}

/// Adds items to a list of a kustomization. Without items nothing changes, not even an empty list is added.
pub(super) fn append(kustomization: &mut Map<String, Value>, key: &str, more: Vec<Value>) {
    if more.is_empty() {
        return;
    }
    match kustomization.get_mut(key) {
        Some(Value::Array(list)) => list.extend(more),
        _ => {
            kustomization.insert(key.to_owned(), Value::Array(more));
        }
    }
}

/// The items of a list among the overrides of an object; none if it has no such list.
pub(super) fn list<'a>(build: &'a BuildSettings, key: &str) -> &'a [Value] {
    let list = build.overrides.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}
