//! The kustomization that an engine builds for a target: what it finds at the path, with what the object changes in it.
//!
//! Flux writes it into the directory (fluxcd/pkg, `kustomize/kustomize_generator.go`), Argo CD lets `kustomize edit` do so
//! (argo-cd, `util/kustomize/kustomize.go`).

use serde_json::{Map, Value, json};

use super::variables::Variables;
use super::{Build, Engine, Found, Here, Target};
use crate::kustomization::{FILE_NAMES, read_object};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{self, Tree, path};

/// The option of `kustomize build` that lets a root load any file.
pub(crate) const ANY_FILE: &str = "--load-restrictor=LoadRestrictionsNone";

/// The field of an object of Flux that says what is filled in.
pub(super) const VARIABLES: &str = "postBuild";

/// What an engine builds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Generated {
    /// The directory, from the top of the repository.
    pub directory: String,
    /// The name of the kustomization in it.
    pub file_name: &'static str,
    /// What that holds.
    pub text: Vec<u8>,
    /// Whether the engine changes what is there.
    pub is_changed: bool,
    /// The plain files that become resources.
    pub files: Vec<String>,
    /// The arguments of `kustomize build`.
    pub arguments: Vec<String>,
    /// What Flux fills in afterwards.
    pub variables: Variables,
}

/// Returns what an engine builds for a target; none where it does not build with kustomize.
pub(crate) fn generated(tree: &dyn Tree, target: &Target, here: &Here) -> Result<Option<Generated>> {
    let (directory, is_root) = match (&here.found, target.engine) {
        (Found::Kustomization(directory), _) => (directory.clone(), true),
        (Found::Directory(directory), Engine::Flux) => (directory.clone(), false),
        _ => return Ok(None),
    };
    let mut made = Generated {
        file_name: FILE_NAMES[0],
        text: Vec::new(),
        is_changed: !is_root,
        files: Vec::new(),
        arguments: arguments(target),
        variables: target.build.overrides.get(VARIABLES).map_or_else(Variables::default, Variables::of),
        directory,
    };
    let mut kustomization = if is_root {
        if let Some((name, path)) = tree::kustomization_in(tree, &made.directory)? {
            made.file_name = name;
            made.text = tree.read(&path)?;
        }
        match parsed(&made.text) {
            Some(kustomization) => kustomization,
            // No engine can read it, either.
            None => return Ok(Some(made)),
        }
    } else {
        let resources = here.scanned.iter().filter_map(|one| path::below(&one.path, &made.directory));
        let resources: Vec<Value> = resources.map(|inside| json!(format!("./{inside}"))).collect();
        made.files = here.scanned.iter().filter(|one| !one.is_root).map(|one| one.path.clone()).collect();
        let mut kustomization = Map::new();
        if resources.is_empty() {
            kustomization.insert("namespace".to_owned(), json!("_placeholder"));
        }
        kustomization.insert("resources".to_owned(), Value::Array(resources));
        kustomization
    };
    let before = kustomization.clone();
    match target.engine {
        Engine::Flux => of_flux(&mut kustomization, &target.build, is_root),
        Engine::ArgoCd => of_argo(&mut kustomization, &target.build),
        Engine::Fleet | Engine::Kustomize => {}
    }
    append(&mut kustomization, "components", components(target));
    if kustomization != before || !is_root {
        made.is_changed = true;
        made.text = Value::Object(kustomization).to_string().into_bytes();
    }
    Ok(Some(made))
}

/// Returns the arguments of kustomize that change what it builds. What would run code is not among them, whatever the
/// tree says: only the user can give that.
fn arguments(target: &Target) -> Vec<String> {
    let mut arguments = Vec::new();
    if target.build.load_restrictor == Some(LoadRestrictor::None) {
        arguments.push(ANY_FILE.to_owned());
    }
    if target.engine == Engine::Flux {
        arguments.push("--reorder=none".to_owned());
    }
    arguments
}

/// Reads the first document, as kustomize does.
fn parsed(text: &[u8]) -> Option<Map<String, Value>> {
    let text = std::str::from_utf8(text).ok()?;
    match read_object(text, 0).ok()??.json() {
        Value::Object(kustomization) => Some(kustomization),
        _ => None,
    }
}

/// Returns the components that the object adds, without those that are not there, if they may be missing.
fn components(target: &Target) -> Vec<Value> {
    let is_there = |found: &Found| matches!(found, Found::Kustomization(_) | Found::Directory(_));
    let may_be_missing = target.build.ignore_missing_components;
    let all = target.build.components.iter();
    let all = all.filter(|one| !may_be_missing || one.found.as_ref().is_none_or(is_there));
    all.map(|one| json!(one.text.text)).collect()
}

fn append(kustomization: &mut Map<String, Value>, key: &str, more: Vec<Value>) {
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

fn list<'a>(build: &'a Build, key: &str) -> &'a [Value] {
    let list = build.overrides.get(key).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Returns a text of the object that is not empty.
fn text<'a>(build: &'a Build, key: &str) -> Option<&'a str> {
    let text = build.overrides.get(key).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

fn of_flux(kustomization: &mut Map<String, Value>, build: &Build, is_root: bool) {
    let resources = kustomization.get("resources").and_then(Value::as_array);
    if is_root && resources.is_none_or(Vec::is_empty) {
        let origins = json!(["originAnnotations"]);
        kustomization.insert("buildMetadata".to_owned(), origins);
    }
    for (from, to) in [("targetNamespace", "namespace"), ("namePrefix", "namePrefix"), ("nameSuffix", "nameSuffix")] {
        if let Some(text) = text(build, from) {
            kustomization.insert(to.to_owned(), json!(text));
        }
    }
    let patch = |patch: &Value| {
        let mut patch = patch.clone();
        if let Some(fields) = patch.as_object_mut() {
            fields.retain(|key, _| ["patch", "target"].contains(&key.as_str()));
        }
        patch
    };
    let patches = list(build, "patches").iter().map(patch).collect();
    append(kustomization, "patches", patches);
    let merges = list(build, "patchesStrategicMerge").iter();
    let merges = merges.map(|patch| json!(patch.to_string())).collect();
    append(kustomization, "patchesStrategicMerge", merges);
    let operations = list(build, "patchesJson6902").iter().map(|patch| {
        let operations = patch.get("patch").cloned().unwrap_or_default();
        json!({"patch": operations.to_string(), "target": patch.get("target")})
    });
    append(kustomization, "patchesJson6902", operations.collect());
    for image in list(build, "images") {
        put(kustomization, "images", image, true);
    }
    if let Some(metadata) = build.overrides.get("buildMetadata") {
        kustomization.insert("buildMetadata".to_owned(), metadata.clone());
    }
}

/// Puts an entry with a name into a list, in the place of the one that has it: as a whole, or field by field.
fn put(kustomization: &mut Map<String, Value>, key: &str, entry: &Value, merges: bool) {
    let entries = kustomization.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten();
    let name = entry.get("name");
    let same = entries.into_iter().find(|one| one.get("name") == name);
    match (same, entry.as_object()) {
        (None, _) => append(kustomization, key, vec![entry.clone()]),
        (Some(Value::Object(old)), Some(new)) if merges => {
            // A tag or a digest takes the place of both.
            if new.contains_key("newTag") || new.contains_key("digest") {
                old.remove("newTag");
                old.remove("digest");
            }
            old.extend(new.clone());
        }
        (Some(old), _) => *old = entry.clone(),
    }
}

fn of_argo(kustomization: &mut Map<String, Value>, build: &Build) {
    for key in ["namePrefix", "nameSuffix", "namespace"] {
        if let Some(text) = text(build, key) {
            kustomization.insert(key.to_owned(), json!(text));
        }
    }
    for image in list(build, "images").iter().filter_map(Value::as_str) {
        put(kustomization, "images", &of_image(image), true);
    }
    for replicas in list(build, "replicas") {
        put(kustomization, "replicas", replicas, false);
    }
    let flag = |key: &str| build.overrides.get(key) == Some(&json!(true));
    let pairs = |key: &str| build.overrides.get(key).and_then(Value::as_object);
    if let Some(labels) = pairs("commonLabels").filter(|labels| !labels.is_empty()) {
        if flag("labelWithoutSelector") {
            let includes = flag("labelIncludeTemplates");
            let entry = json!({"pairs": labels, "includeTemplates": includes});
            append(kustomization, "labels", vec![entry]);
        } else {
            merge(kustomization, "commonLabels", labels);
        }
    }
    if let Some(annotations) = pairs("commonAnnotations") {
        merge(kustomization, "commonAnnotations", annotations);
    }
    append(kustomization, "patches", list(build, "patches").to_vec());
}

fn merge(kustomization: &mut Map<String, Value>, key: &str, pairs: &Map<String, Value>) {
    let empty = || Value::Object(Map::new());
    let old = kustomization.entry(key.to_owned()).or_insert_with(empty);
    if let Some(old) = old.as_object_mut() {
        old.extend(pairs.clone());
    }
}

/// Returns what `kustomize edit set image` makes of `[NAME=]NEW_NAME[:TAG][@DIGEST]`.
fn of_image(text: &str) -> Value {
    let (name, new) = match text.split_once('=') {
        Some((name, new)) => (Some(name), new),
        None => (None, text),
    };
    let (rest, digest) = match new.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (new, None),
    };
    let (image, tag) = match rest.rsplit_once(':') {
        Some((image, tag)) if !tag.contains('/') => (image, Some(tag)),
        _ => (rest, None),
    };
    let mut entry = Map::new();
    let mut set = |key: &str, value: Option<&str>| {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            entry.insert(key.to_owned(), json!(value));
        }
    };
    set("name", Some(name.unwrap_or(image)));
    set("newName", name.map(|_| image).filter(|image| *image != "*"));
    set("newTag", tag.filter(|tag| *tag != "*"));
    set("digest", digest.filter(|digest| *digest != "*"));
    Value::Object(entry)
}
