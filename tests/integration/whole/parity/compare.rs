//! When two localized copies are the same.
//!
//! `kustomize localize` writes kustomizations and plugin configurations anew (no comments, sorted
//! keys) and cleans every path; we change only what must change. So these files are compared as
//! values, and a path may be spelled in another way if it leads to the same place.

use std::collections::{BTreeMap, BTreeSet};

use git_kustomize_localize::seams::kustomization::FILE_NAMES;
use git_kustomize_localize::seams::tree::{name, parent};
use serde::Deserialize as _;
use serde_yaml::Value;

use super::case::Tree;

/// Returns what is wrong with `ours`, where `exact` are the paths that have to be equal bytes.
pub(super) fn differences(theirs: &Tree, exact: &BTreeSet<String>, ours: &Tree) -> Vec<String> {
    let mut differences = Vec::new();
    let plugins = plugin_files(theirs);
    for (path, expected) in &theirs.files {
        let Some(given) = ours.files.get(path) else {
            differences.push(format!("{path} is missing"));
            continue;
        };
        if given == expected {
            continue;
        }
        let base = if is_kustomization(path) { Some(parent(path)) } else { plugins.get(path).map(String::as_str) };
        let reason = match base.filter(|_| !exact.contains(path)) {
            None => "other bytes".to_owned(),
            Some(base) => match same_documents(expected, given, base) {
                Ok(()) => continue,
                Err(reason) => reason,
            },
        };
        let [expected, given] = [expected, given].map(|bytes| String::from_utf8_lossy(bytes));
        differences.push(format!("{path}: {reason}\n--- expected\n{expected}\n--- ours\n{given}"));
    }
    let paths = ours.files.keys();
    let more = paths.filter(|path| !theirs.files.contains_key(*path));
    differences.extend(more.map(|path| format!("{path} is too much")));
    for (path, target) in &ours.links {
        differences.push(format!("{path} is a link to {target}, and a copy has no links"));
    }
    differences
}

fn is_kustomization(path: &str) -> bool {
    FILE_NAMES.contains(&name(path))
}

/// Returns the plugin configurations that kustomizations of the tree list, each with the directory
/// that its paths start from: that of the kustomization.
fn plugin_files(tree: &Tree) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (path, bytes) in tree.files.iter().filter(|(path, _)| is_kustomization(path)) {
        let directory = parent(path);
        for document in documents(bytes).unwrap_or_default() {
            for field in ["generators", "transformers", "validators"] {
                let entries = document.get(field).and_then(Value::as_sequence);
                for entry in entries.into_iter().flatten().filter_map(Value::as_str) {
                    found.extend(clean(directory, entry).map(|path| (path, directory.to_owned())));
                }
            }
        }
    }
    found
}

fn documents(bytes: &[u8]) -> Result<Vec<Value>, String> {
    let text = str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let mut documents = Vec::new();
    for document in serde_yaml::Deserializer::from_str(text.trim_start_matches('\u{feff}')) {
        let mut value = Value::deserialize(document).map_err(|error| error.to_string())?;
        value.apply_merge().map_err(|error| error.to_string())?;
        documents.push(value);
    }
    Ok(documents)
}

fn same_documents(theirs: &[u8], ours: &[u8], base: &str) -> Result<(), String> {
    let (theirs, ours) = (documents(theirs)?, documents(ours)?);
    let (theirs, ours) = (Value::Sequence(theirs), Value::Sequence(ours));
    same(&theirs, &ours, base, "document")
}

/// Compares two values, whose paths start from `base`; the error names the `place` where they differ.
fn same(theirs: &Value, ours: &Value, base: &str, place: &str) -> Result<(), String> {
    match (theirs, ours) {
        (Value::Mapping(theirs), Value::Mapping(ours)) => {
            for (key, expected) in theirs {
                let key = key.as_str().ok_or("a key that is no string")?;
                let given = ours.get(key).ok_or(format!("{place}.{key} is missing"))?;
                same(expected, given, base, &format!("{place}.{key}"))?;
            }
            match ours.keys().find(|key| !theirs.contains_key(*key)) {
                Some(key) => Err(format!("{place} has {key:?} too much")),
                None => Ok(()),
            }
        }
        (Value::Sequence(theirs), Value::Sequence(ours)) if theirs.len() == ours.len() => {
            let pairs = theirs.iter().zip(ours).enumerate();
            for (index, (expected, given)) in pairs {
                same(expected, given, base, &format!("{place}[{index}]"))?;
            }
            Ok(())
        }
        (Value::String(theirs), Value::String(ours))
            if same_place(theirs, ours, base) || same_inline(theirs, ours, base) =>
        {
            Ok(())
        }
        (theirs, ours) if theirs == ours => Ok(()),
        (theirs, ours) => Err(format!("{place} is {ours:?} and should be {theirs:?}")),
    }
}

/// Returns whether two references, perhaps each behind the same `key=`, lead to the same place.
fn same_place(theirs: &str, ours: &str, base: &str) -> bool {
    let split = |text: &'_ str| match text.split_once('=') {
        Some((key, path)) => (Some(key.to_owned()), clean(base, path)),
        None => (None, clean(base, text)),
    };
    let (theirs, ours) = (split(theirs), split(ours));
    theirs == ours && theirs.1.is_some()
}

/// Returns whether two scalars hold the same plugin configurations.
fn same_inline(theirs: &str, ours: &str, base: &str) -> bool {
    let is_inline =
        |text: &str| documents(text.as_bytes()).is_ok_and(|all| !all.is_empty() && all.iter().all(Value::is_mapping));
    is_inline(theirs) && is_inline(ours) && same_documents(theirs.as_bytes(), ours.as_bytes(), base).is_ok()
}

/// Returns where a relative path from `base` leads, without `.`, `//` and `a/..`; nothing if it is not a relative path.
fn clean(base: &str, path: &str) -> Option<String> {
    if path.is_empty() || path.starts_with('/') || path.contains('\n') || path.contains("://") {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in base.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[test]
fn a_path_may_be_spelled_in_another_way() {
    for (theirs, ours) in [
        ("a.yaml", "./a.yaml"),
        ("a.yaml", "x/../a.yaml"),
        ("../a", "..//b/../a/"),
        ("key=a", "key=./a"),
        ("../../a", "../../a"),
        ("a", "../base/a"),
    ] {
        assert!(same_place(theirs, ours, "base"), "{theirs} {ours}");
    }
    for (theirs, ours) in [
        ("a", "b"),
        ("a", "../a"),
        ("a", "../../a"),
        ("a", "/a"),
        ("a=a", "a"),
        ("a=a", "b=a"),
        ("https://host/a", "https://host//a"),
        ("a\n", "./a\n"),
        ("", "."),
    ] {
        assert!(!same_place(theirs, ours, "base"), "{theirs} {ours}");
    }
}

#[test]
fn values_are_compared_and_their_spelling_is_not() {
    let theirs = b"generators:\n- |\n  kind: A\n  path: a\nnamePrefix: x\nresources:\n- a\n- b\n";
    let same: &[u8] = b"# comment\nresources: [./a, 'b']\nnamePrefix: \"x\"\ngenerators:\n\
        - |\n  # comment\n  path: ./a\n  kind: A\n";
    assert_eq!(same_documents(theirs, same, ""), Ok(()));
    for (old, new, place) in [
        ("./a, 'b'", "'b', ./a", "document[0].resources[0]"),
        ("./a, 'b'", "./a", "document[0].resources"),
        ("\"x\"", "true", "document[0].namePrefix"),
        ("kind: A", "kind: B", "document[0].generators[0]"),
        ("namePrefix", "nameSuffix", "document[0].namePrefix"),
        ("# comment\nresources", "bases: [c]\nresources", "document[0] has"),
        ("kind: A\n", "kind: A\n  ---\n  a: b\n", "document[0].generators[0]"),
    ] {
        let text = str::from_utf8(same).unwrap();
        assert!(text.contains(old), "{old}");
        let error = same_documents(theirs, text.replace(old, new).as_bytes(), "").unwrap_err();
        assert!(error.starts_with(place), "{old}: {error}");
    }
}

#[test]
fn files_are_compared_by_their_kind() {
    let tree = |files: &[(&str, &str)]| {
        let files = files.iter().map(|(path, text)| (path.to_string(), text.as_bytes().to_vec()));
        Tree { files: files.collect(), ..Tree::default() }
    };
    let theirs = tree(&[
        ("a/kustomization.yaml", "transformers: [../plugin.yaml]\n"),
        ("plugin.yaml", "kind: P\n"),
        ("pod.yaml", "kind: Pod\n"),
    ]);
    let ours = tree(&[
        ("a/kustomization.yaml", "transformers:\n- ./../plugin.yaml\n"),
        ("plugin.yaml", "kind: P # comment\n"),
        ("pod.yaml", "kind: Pod\n"),
    ]);
    let none = BTreeSet::new();
    assert_eq!(differences(&theirs, &none, &ours), crate::support::NONE);
    let exact = BTreeSet::from(["plugin.yaml".to_owned()]);
    assert!(differences(&theirs, &exact, &ours)[0].starts_with("plugin.yaml: other bytes"));

    let ours = tree(&[
        ("a/kustomization.yaml", "transformers:\n- ./../plugin.yaml\n"),
        ("pod.yaml", "kind: Pod # comment\n"),
        ("new", ""),
    ]);
    let found = differences(&theirs, &none, &ours);
    assert_eq!(found[0], "plugin.yaml is missing");
    assert!(found[1].starts_with("pod.yaml: other bytes"));
    assert_eq!(found[2..], ["new is too much"]);
}
