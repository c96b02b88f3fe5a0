//! What an application changes in a kustomization by `kustomize edit` (argo-cd, `util/kustomize/kustomize.go`).

use serde_json::{Map, Value, json};

use super::super::Build;
use super::super::generated::{append, list, put, text};

/// Writes it.
pub(in crate::targets) fn edit(kustomization: &mut Map<String, Value>, build: &Build) {
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
