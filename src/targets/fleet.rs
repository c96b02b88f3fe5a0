//! Fleet: each `fleet.yaml` makes a bundle of its directory, built with kustomize where there is a kustomization.

use super::{Build, Engine, Found, Here, Object, Place, Revision, Target, Targets, Unread, place};
use crate::config::Config;
use crate::kustomization::{Value, read_object};
use crate::message::failure::Result;
use crate::record::LoadRestrictor;
use crate::tree::{Entry, Listing, Tree, path};

/// The kind of what such a file deploys, and the first of its names.
pub(super) const FILE_NAME: &str = "fleet.yaml";

/// The names of the file of a bundle. The first one that is there counts.
const FILE_NAMES: [&str; 2] = [FILE_NAME, "fleet.yml"];

/// The keys that no other program has in a file of that name.
const OWN_KEYS: [&str; 5] = ["defaultNamespace", "helm", "kustomize", "overrideTargets", "targetCustomizations"];

/// The keys of a `fleet.yaml`: other programs have a file of that name, too.
const KEYS: [&str; 30] = [
    "annotations",
    "bundleSpec",
    "correctDrift",
    "defaultNamespace",
    "deleteCRDResources",
    "deleteNamespace",
    "dependsOn",
    "diff",
    "doNotDeploy",
    "downstreamResources",
    "forceSyncGeneration",
    "helm",
    "ignore",
    "imageScans",
    "keepResources",
    "kustomize",
    "labels",
    "name",
    "namespace",
    "namespaceAnnotations",
    "namespaceLabels",
    "overrideTargets",
    "paused",
    "resources",
    "rolloutStrategy",
    "serviceAccount",
    "targetCustomizations",
    "targetRestrictions",
    "targets",
    "yaml",
];

/// Adds what Fleet deploys.
pub(super) fn find(tree: &dyn Listing, config: &Config, targets: &mut Targets) -> Result<()> {
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
                targets.unread.push(Unread::not_yaml(&file, line, message));
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
    keys.any(|(key, _)| KEYS.contains(&key))
}

/// Fleet passes over keys that it does not know, so that one of them says nothing where another is Fleet's own.
fn is_fleet(value: &Value) -> bool {
    value.mapping().is_some_and(|pairs| {
        let mut keys = pairs.iter().map(|(key, _)| key.as_str());
        !pairs.is_empty() && keys.clone().all(|key| KEYS.contains(&key)) || keys.any(|key| OWN_KEYS.contains(&key))
    })
}

/// Adds the directories that a bundle is built from: its own, and those that it names for some clusters, in
/// `targetCustomizations` or under its older name, `targets`.
fn bundle(tree: &dyn Listing, file: &str, value: &Value, targets: &mut Targets) -> Result<()> {
    let directory = path::parent(file);
    let customized =
        ["targetCustomizations", "targets"].into_iter().filter_map(|key| value.get(key).and_then(Value::list));
    let all = std::iter::once(value).chain(customized.flatten());
    let mut is_named = false;
    for part in all {
        let Some(overlay) = part.at(&["kustomize", "dir"]) else {
            continue;
        };
        let Some(written) = overlay.text() else {
            targets.unread.push(Unread::wrong(
                file,
                overlay.line,
                format!("`kustomize.dir` is {} where a text should be", overlay.kind()),
            ));
            continue;
        };
        is_named = true;
        add(tree, file, written, (overlay.line, overlay.column), targets)?;
    }
    let has_chart = value.at(&["helm", "chart"]).is_some();
    if !is_named && !has_chart {
        add(tree, file, "", (1, 1), targets)?;
    } else if !is_named {
        let name = tree.label(directory);
        targets.targets.push(Target {
            engine: Engine::Fleet,
            object: object(file, 1, name),
            digest: String::new(),
            spot: (1, 1),
            place: Place::External("it is a chart".to_owned()),
            build: Build::default(),
            changed_by: None,
            reaches: None,
        });
    }
    Ok(())
}

fn object(file: &str, line: usize, name: String) -> Object {
    Object { file: file.to_owned(), line, kind: FILE_NAME.to_owned(), namespace: String::new(), name, built_by: None }
}

fn add(tree: &dyn Listing, file: &str, written: &str, spot: (usize, usize), targets: &mut Targets) -> Result<()> {
    let directory = path::parent(file);
    let from_bundle = path::resolve(directory, written);
    let (path, found) = match from_bundle.filter(|place| path::is_in(place, directory)) {
        // Fleet packs the directory of the bundle, and nothing else.
        None => (directory.to_owned(), Found::Nothing("it leads out of the bundle".to_owned())),
        Some(place) => place::of_path(tree, "", &place, Engine::Fleet)?,
    };
    targets.targets.push(Target {
        engine: Engine::Fleet,
        object: object(file, spot.0, tree.label(&path)),
        digest: String::new(),
        spot,
        place: Place::Here(Here {
            written: written.to_owned(),
            path,
            revision: Revision { name: None, is_this: true },
            found,
            artifact: None,
        }),
        build: Build { load_restrictor: Some(LoadRestrictor::RootOnly), ..Build::default() },
        changed_by: None,
        reaches: None,
    });
    Ok(())
}
