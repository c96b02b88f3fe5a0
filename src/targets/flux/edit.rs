//! The changes of an object of Flux to a kustomization (fluxcd/pkg, `kustomize/kustomize_generator.go`).

use serde_json::{Map, Value, json};

use super::super::BuildSettings;
use super::super::generated::append;
use super::models::Overrides;

/// Writes the changes of an object into the kustomization that Flux builds for it. `is_root` tells whether the
/// directory has that kustomization, so that Flux does not generate it.
pub(in crate::targets) fn edit(kustomization: &mut Map<String, Value>, build: &BuildSettings, is_root: bool) {
    // Flux adds this only to a kustomization that is in the directory and has no resources.
    let resources = kustomization.get("resources").and_then(Value::as_array);
    if is_root && resources.is_none_or(Vec::is_empty) {
        let origins = json!(["originAnnotations"]);
        kustomization.insert("buildMetadata".to_owned(), origins);
    }
    // Flux sets these only if the object has them: an empty text leaves the kustomization alone.
    let overrides = Overrides::of(&build.overrides);
    let texts = [
        ("namespace", overrides.target_namespace),
        ("namePrefix", overrides.name_prefix),
        ("nameSuffix", overrides.name_suffix),
    ];
    for (key, text) in texts {
        if let Some(text) = text.filter(|text| !text.is_empty()) {
            kustomization.insert(key.to_owned(), json!(text));
        }
    }
    let patches = overrides.patches.iter().flatten().map(known_fields).collect();
    append(kustomization, "patches", patches);
    // The patches in these fields are objects in Flux, and texts in a kustomization.
    let merges = overrides.patches_strategic_merge.iter().flatten();
    let merges = merges.map(|patch| json!(patch.to_string())).collect();
    append(kustomization, "patchesStrategicMerge", merges);
    let operations = overrides.patches_json6902.iter().flatten().map(|patch| {
        let operations = patch.get("patch").cloned().unwrap_or_default();
        json!({"patch": operations.to_string(), "target": patch.get("target")})
    });
    append(kustomization, "patchesJson6902", operations.collect());
    for image in overrides.images.iter().flatten() {
        set_image(kustomization, image);
    }
    if let Some(metadata) = overrides.build_metadata {
        kustomization.insert("buildMetadata".to_owned(), metadata);
    }
}

/// A patch with the fields that kustomize knows.
fn known_fields(patch: &Value) -> Value {
    let mut patch = patch.clone();
    if let Some(fields) = patch.as_object_mut() {
        fields.retain(|key, _| ["patch", "target"].contains(&key.as_str()));
    }
    patch
}

/// Adds an image to a kustomization, or changes the fields of the one with the same name.
fn set_image(kustomization: &mut Map<String, Value>, image: &Value) {
    let images = kustomization.get_mut("images").and_then(Value::as_array_mut).into_iter().flatten();
    let same = images.into_iter().find(|old| old.get("name") == image.get("name"));
    let (Some(Value::Object(old)), Some(new)) = (same, image.as_object()) else {
        return append(kustomization, "images", vec![image.clone()]);
    };
    // A new tag or digest replaces both old ones.
    if new.contains_key("newTag") || new.contains_key("digest") {
        old.remove("newTag");
        old.remove("digest");
    }
    old.extend(new.clone());
}
