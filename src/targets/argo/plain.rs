//! The objects that Argo CD applies from a directory of plain files: every object in its manifests, as written
//! (`getPotentiallyValidManifests` in its `reposerver/repository/repository.go`).

use globset::GlobMatcher;
use serde_json::Value as Json;

use super::{PlainDirectory, crossing};
use crate::kustomization::{FileDocument, documents, read_object};
use crate::message::failure::Result;
use crate::targets::{EngineName, PathContent, Target, TargetDir};
use crate::tree::{self, Resolved, Tree, path};

/// How the names of manifests end.
const MANIFESTS: [&str; 3] = [".yaml", ".yml", ".json"];

/// Argo CD skips a file with this text.
const SKIPPED: &str = "+argocd:skip-file-rendering";

/// The objects that an engine applies from a directory of plain files; `None` if it does something else. They are
/// complete unless [`BuildSettings::unread`](super::BuildSettings::unread) says otherwise.
pub(crate) fn plain(tree: &dyn Tree, target: &Target, dir: &TargetDir) -> Result<Option<Vec<u8>>> {
    let Some(files) = manifests(tree, target, dir)? else { return Ok(None) };
    let mut all = String::new();
    for file in files {
        // Argo CD skips a link to nothing or to a directory (`getPotentiallyValidManifestFile`). With a link out of the
        // repository it builds nothing, which the rule `engine` reports.
        if let Resolved::File { path: real, .. } = tree::resolve(tree, &file)? {
            let bytes = tree.read(&real)?;
            let text = String::from_utf8_lossy(&bytes);
            if !text.contains(SKIPPED) {
                // The name of a link tells whether its file is JSON.
                add_objects(&text, file.ends_with(".json"), &mut all);
            }
        }
    }
    Ok(Some(all.into_bytes()))
}

/// The files that an engine takes for manifests of a directory of plain files; `None` if it does something else.
pub(crate) fn manifests(tree: &dyn Tree, target: &Target, dir: &TargetDir) -> Result<Option<Vec<String>>> {
    let (PathContent::Directory(directory), EngineName::ArgoCd) = (&dir.content, target.engine) else {
        return Ok(None);
    };
    let mut files = tree.below(directory)?;
    let is_manifest = manifest_matcher(directory, &target.build.directory);
    files.retain(|file| is_manifest(file));
    Ok(Some(files))
}

/// A function that tells whether Argo CD reads a file as a manifest of a directory of plain files, by the options of
/// its source.
pub(super) fn manifest_matcher(directory: &str, options: &PlainDirectory) -> impl Fn(&str) -> bool {
    // `None` without a pattern, `Some(None)` for a broken one.
    let matcher =
        |text: &str| Some(text).filter(|text| !text.is_empty()).map(|text| Some(crossing(text)?.compile_matcher()));
    let (include, exclude) = (matcher(&options.include), matcher(&options.exclude));
    move |file| {
        let Some(inside) = path::below(file, directory) else { return false };
        // A broken pattern matches nothing.
        let matches = |glob: &Option<GlobMatcher>| glob.as_ref().is_some_and(|glob| glob.is_match(inside));
        (options.recurse || !inside.contains('/'))
            && MANIFESTS.iter().any(|end| file.ends_with(end))
            && !exclude.as_ref().is_some_and(matches)
            && include.as_ref().is_none_or(matches)
    }
}

/// Adds the objects in the text of a file to `all`, the documents of an output, each as Argo CD would deploy it. A part
/// that cannot be read is added as it is.
fn add_objects(text: &str, is_json: bool, all: &mut String) {
    let parts: Vec<FileDocument<'_>> = if is_json { vec![text.into()] } else { documents(text).collect() };
    let objects: Vec<_> = parts.iter().map(read_part).collect();
    // If something in it is not an object, Argo CD skips the text, unless it looks like manifests or is JSON: then it
    // fails.
    let looks_like_manifests = ["apiVersion:", "kind:", "metadata:"].iter().all(|key| text.contains(key));
    if !is_json && !looks_like_manifests && !objects.iter().all(is_object) {
        return;
    }
    for (part, read) in parts.iter().zip(objects) {
        match read.map(|json| json.map(|json| list_items(&json))) {
            // A document with only comments is not an object, and not an error for an engine either.
            Ok(None) => {}
            // The engines deploy the items of a List, not the List.
            Ok(Some(Some(items))) => {
                let items = items.iter().filter_map(|item| serde_yaml::to_string(item).ok());
                items.for_each(|item| add_document(&item, all));
            }
            Ok(Some(None)) | Err(_) => add_document(part.text, all),
        }
    }
}

/// Whether a document is an object, or has only comments.
fn is_object(read: &serde_yaml::Result<Option<Json>>) -> bool {
    read.as_ref().is_ok_and(|json| json.as_ref().is_none_or(|json| json["kind"].is_string()))
}

/// Adds a document to an output.
fn add_document(text: &str, all: &mut String) {
    all.push_str("---\n");
    all.push_str(text.strip_prefix("---").map_or(text, |text| text.trim_start_matches(['\r', '\n'])));
    if !all.ends_with('\n') {
        all.push('\n');
    }
}

/// The items of a list, such as a ConfigMapList; `None` if it is not a list.
fn list_items(list: &Json) -> Option<Vec<Json>> {
    let mut items = list["items"].as_array()?.clone();
    // Clients of Kubernetes give an item without a kind the one that the list implies.
    let kind = list["kind"].as_str().and_then(|kind| kind.strip_suffix("List")).filter(|kind| !kind.is_empty());
    for item in items.iter_mut().filter_map(Json::as_object_mut) {
        if let Some(kind) = kind.filter(|_| !item.contains_key("kind")) {
            item.insert("kind".to_owned(), kind.into());
            item.entry("apiVersion").or_insert_with(|| list["apiVersion"].clone());
        }
    }
    Some(items)
}

/// A document as JSON; `None` if it is empty.
fn read_part(part: &FileDocument<'_>) -> serde_yaml::Result<Option<Json>> {
    // The engines accept more as YAML than the files that may declare targets.
    match read_object(*part) {
        Ok(value) => Ok(value.map(|value| value.json())),
        Err(_) => serde_yaml::from_str::<Json>(part.text).map(Some),
    }
}
