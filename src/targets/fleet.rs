//! Fleet: each `fleet.yaml` makes a bundle of its directory, built with kustomize where there is a kustomization.

use super::chart::{Keys, Release, Values};
use super::{Build, Engine, Found, Here, Object, Place, Revision, Target, Targets, Unread, place, plain};
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
    for file in tree.files_named(&|name| FILE_NAMES.contains(&name))? {
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
            Err((line, message)) => targets.unread.push(Unread::invalid(&file, line, message, false)),
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

/// Returns whether a file is that of a bundle, by its name.
pub(super) fn is_file(file: &str) -> bool {
    FILE_NAMES.contains(&path::name(file))
}

fn is_fleet(value: &Value) -> bool {
    let is_key = |key: &str| KEYS.split_whitespace().any(|one| one == key);
    value.mapping().is_some_and(|pairs| pairs.iter().any(|(key, _)| is_key(key)))
}

/// Returns how Fleet builds what is in a bundle, by its file, if it has one.
pub(super) fn build(tree: &dyn Tree, place: &Place, said: Option<(&str, &Value)>) -> Result<Build> {
    let mut build = Build { load_restrictor: Some(LoadRestrictor::RootOnly), ..Build::default() };
    if let Some((directory, bundle)) = said {
        build.values = CHART.files(bundle).filter_map(|file| path::resolve(directory, file)).collect();
    }
    match place {
        Place::Here(Here { found: Found::Directory(directory), .. }) => {
            build.unread = plain::unknown_of_fleet(tree, directory)?;
        }
        // What lies beside the file goes with the chart.
        Place::External(_) => build.values.extend(said.map(|(directory, _)| directory.to_owned())),
        Place::Here(Here { found: Found::Chart(_), .. }) => {
            build.release = Some(said.map_or_else(unnamed, |(directory, bundle)| release(tree, directory, bundle)));
        }
        _ => {}
    }
    Ok(build)
}

fn unnamed<T>() -> Result<T, String> {
    Err("Fleet names its release after a GitRepo: no `helm.releaseName` says it".to_owned())
}

const CHART: Keys = Keys {
    unread: &["helm.valuesFrom", "helm.templateValues"],
    name: &["helm.releaseName", "name"],
    namespace: &["namespace", "defaultNamespace"],
    files: ["helm.valuesFiles", ""],
    values: &["helm.values"],
    no_crds: ["", ""],
    options: &[],
};

/// Returns how the chart of a bundle is rendered (its `internal/bundlereader`); else why that is not known.
fn release(tree: &dyn Tree, directory: &str, bundle: &Value) -> Result<Release, String> {
    let mut customized =
        ["targetCustomizations", "targets"].into_iter().filter_map(|key| bundle.get(key)?.list()).flatten();
    if customized.any(|part| ["helm", "namespace", "defaultNamespace"].iter().any(|key| part.get(key).is_some())) {
        return Err("its `targetCustomizations` change it for some clusters".to_owned());
    }
    let place =
        |file: &str| path::resolve(directory, file).ok_or_else(|| format!("`{file}` leads out of the repository"));
    let mut release = CHART.release(tree, bundle, ["", "default"], &place)?;
    if !release.arguments.iter().any(|one| one.starts_with("--name-template=")) {
        return unnamed();
    }
    // Fleet merges the files into what stands in its own.
    if matches!(release.values.last(), Some(Values::Text(_))) {
        release.values.rotate_right(1);
    }
    Ok(release)
}

/// Adds the directories that a bundle is built from: its own, and those that it names for some clusters, in
/// `targetCustomizations` or under its older name, `targets`.
fn bundle(tree: &dyn Tree, file: &str, value: &Value, targets: &mut Targets) -> Result<()> {
    let directory = path::parent(file);
    let mut add = |(line, column): (usize, usize), name: &str, place: Place| -> Result<()> {
        let object = Object::of(file, line, FILE_NAME, tree.label(name));
        let build = build(tree, &place, Some((directory, value)))?;
        targets.targets.push(Target::new(Engine::Fleet, object, (line, column), place, build, &value.json()));
        Ok(())
    };
    let customized = ["targetCustomizations", "targets"].into_iter().filter_map(|key| value.get(key)?.list());
    let parts = std::iter::once(value).chain(customized.flatten());
    let overlays: Vec<&Value> = parts.filter_map(|part| part.at(&["kustomize", "dir"])).collect();
    // Clusters for which nothing is customized get the bundle itself.
    if value.at(&["kustomize", "dir"]).is_none() {
        add((1, 1), directory, itself(tree, directory, value)?)?;
    }
    for overlay in overlays {
        let spot = (overlay.line, overlay.column);
        let Some(written) = overlay.text() else {
            let message = "`kustomize.dir` is not a string".to_owned();
            targets.unread.push(Unread::invalid(file, spot.0, message, false));
            continue;
        };
        // Fleet packs the directory of the bundle, and nothing else.
        let here = place::here(tree, Engine::Fleet, directory, written, Revision::this(), None)?;
        add(spot, &here.path.clone(), Place::Here(here))?;
    }
    Ok(())
}

/// Returns where the bundle in a directory is: a chart of its own or of a repository, else what is there.
fn itself(tree: &dyn Tree, directory: &str, value: &Value) -> Result<Place> {
    let said = |key: &str| value.at(&["helm", key]).and_then(Value::text).filter(|text| !text.is_empty());
    let here = |place: &str| place::here(tree, Engine::Fleet, "", place, Revision::this(), None);
    let elsewhere = Place::External("it is a chart".to_owned());
    Ok(match (said("repo"), said("chart")) {
        (Some(_), _) => elsewhere,
        (None, None) => Place::Here(here(directory)?),
        (None, Some(chart)) => match path::resolve(directory, chart) {
            Some(there) => Some(place::chart(tree, here(&there)?)?)
                .filter(|here| matches!(here.found, Found::Chart(_)))
                .map_or(elsewhere, Place::Here),
            None => elsewhere,
        },
    })
}
