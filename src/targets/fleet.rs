//! Fleet: each `fleet.yaml` makes a bundle of its directory, built with kustomize where there is a kustomization.

use super::unread::is_template;
use super::{Build, Engine, Found, Here, Object, Place, Revision, Target, Targets, Unread, place};
use crate::config::Config;
use crate::kustomization::{Value, read_object};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{Entry, Tree, path};

/// The kind of what such a file deploys, and the first of its names.
pub(super) const FILE_NAME: &str = "fleet.yaml";

/// The names of the file of a bundle. The first one that is there counts.
const FILE_NAMES: [&str; 2] = [FILE_NAME, "fleet.yml"];

/// Keys of a `fleet.yaml`. Other programs have a file of that name, too, with none of them.
const KEYS: &str = "bundleSpec correctDrift defaultNamespace dependsOn diff doNotDeploy helm keepResources kustomize name \
    namespace namespaceLabels overrideTargets rolloutStrategy targetCustomizations targetRestrictions targets";

/// Adds what Fleet deploys.
pub(super) fn find(tree: &dyn Tree, config: &Config, targets: &mut Targets) -> Result<()> {
    for file in tree.files_named(&FILE_NAMES)? {
        let directory = path::parent(&file);
        if file_in(tree, directory)?.is_none_or(|first| first != file) {
            continue;
        }
        if config.leaves_out(directory) || !matches!(tree.entry(&file)?, Some(Entry::File { .. })) {
            continue;
        }
        let bytes = tree.read(&file)?;
        let text = String::from_utf8_lossy(&bytes);
        match read_object(&text, 0) {
            Ok(Some(value)) if is_fleet(&value) => bundle(tree, &file, &value, targets)?,
            // An empty one is one of Fleet, too, but says no more than a directory does.
            Ok(_) => {}
            Err((line, message)) if declares(&text) => {
                targets.unread.push(Unread::invalid(&file, line, message, is_template(&text)));
            }
            Err(_) => {}
        }
    }
    Ok(())
}

/// Returns the file of the bundle that a directory is.
pub(super) fn file_in(tree: &dyn Tree, directory: &str) -> Result<Option<String>> {
    for name in FILE_NAMES {
        let file = path::join(directory, name);
        if tree.entry(&file)?.is_some() {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

/// Returns whether a text that cannot be read says something that a bundle of Fleet does.
fn declares(text: &str) -> bool {
    let mut keys = text.lines().filter_map(|line| line.split_once(':'));
    keys.any(|(key, _)| is_key(key))
}

fn is_fleet(value: &Value) -> bool {
    value.mapping().is_some_and(|pairs| pairs.iter().any(|(key, _)| is_key(key)))
}

fn is_key(key: &str) -> bool {
    KEYS.split_whitespace().any(|one| one == key)
}

/// Adds the directories that a bundle is built from: its own, and those that it names for some clusters, in
/// `targetCustomizations` or under its older name, `targets`.
fn bundle(tree: &dyn Tree, file: &str, value: &Value, targets: &mut Targets) -> Result<()> {
    let directory = path::parent(file);
    let Targets { targets, unread, .. } = targets;
    let mut add = |line: usize, column: usize, name: String, place: Place| {
        let object = Object {
            file: file.to_owned(),
            line,
            kind: FILE_NAME.to_owned(),
            namespace: String::new(),
            name,
            built_by: None,
        };
        let build = Build { load_restrictor: Some(LoadRestrictor::RootOnly), ..Build::default() };
        targets.push(Target::new(Engine::Fleet, object, (line, column), place, build, &value.json()));
    };
    let mut add_directory = |line: usize, column: usize, written: &str| -> Result<()> {
        let from_bundle = path::resolve(directory, written);
        let there = match from_bundle.filter(|place| path::is_in(place, directory)) {
            // Fleet packs the directory of the bundle, and nothing else.
            None => (directory.to_owned(), Found::Nothing("it leads out of the bundle".to_owned())),
            Some(place) => place::of_path(tree, "", &place, Engine::Fleet)?,
        };
        add(line, column, tree.label(&there.0), Place::Here(Here::new(written, there, Revision::this(), None)));
        Ok(())
    };
    let customized =
        ["targetCustomizations", "targets"].into_iter().filter_map(|key| value.get(key).and_then(Value::list));
    let overlays = std::iter::once(value).chain(customized.flatten()).filter_map(|part| part.at(&["kustomize", "dir"]));
    let overlays: Vec<&Value> = overlays.collect();
    for overlay in &overlays {
        match overlay.text() {
            Some(written) => add_directory(overlay.line, overlay.column, written)?,
            None => {
                let message = format!("`kustomize.dir` is {} where a text should be", overlay.kind());
                unread.push(Unread::invalid(file, overlay.line, message, false));
            }
        }
    }
    let has_named = overlays.iter().any(|overlay| overlay.text().is_some());
    if !has_named && value.at(&["helm", "chart"]).is_some() {
        add(1, 1, tree.label(directory), Place::External("it is a chart".to_owned()));
    } else if !has_named {
        add_directory(1, 1, "")?;
    }
    Ok(())
}
