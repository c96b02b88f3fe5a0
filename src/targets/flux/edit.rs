//! What an object of Flux changes in a kustomization (fluxcd/pkg, `kustomize/kustomize_generator.go`).

use serde_json::{Map, Value, json};

use super::super::Build;
use super::super::generated::{append, list};

/// Writes it.
pub(in crate::targets) fn edit(kustomization: &mut Map<String, Value>, build: &Build, is_root: bool) {
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
        put(kustomization, image);
    }
    if let Some(metadata) = build.overrides.get("buildMetadata") {
        kustomization.insert("buildMetadata".to_owned(), metadata.clone());
    }
}

/// Returns a text of the object that is not empty.
fn text<'a>(build: &'a Build, key: &str) -> Option<&'a str> {
    let text = build.overrides.get(key).and_then(Value::as_str);
    text.filter(|text| !text.is_empty())
}

/// Puts an image into a kustomization, in the place of the one that has its name: field by field.
fn put(kustomization: &mut Map<String, Value>, image: &Value) {
    let images = kustomization.get_mut("images").and_then(Value::as_array_mut).into_iter().flatten();
    let same = images.into_iter().find(|one| one.get("name") == image.get("name"));
    let (Some(Value::Object(old)), Some(new)) = (same, image.as_object()) else {
        return append(kustomization, "images", vec![image.clone()]);
    };
    // A tag or a digest takes the place of both.
    if new.contains_key("newTag") || new.contains_key("digest") {
        old.remove("newTag");
        old.remove("digest");
    }
    old.extend(new.clone());
}
