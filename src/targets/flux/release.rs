//! What Flux gives to helm: `GetReleaseName` and the like in its `api/v2/helmrelease_types.go`.

use super::super::chart::{Keys, Release, at};
use super::super::place;
use super::super::scan::Document;
use crate::config::Engine;
use crate::kustomization::Value;
use crate::tree::Tree;

/// The longest name of a release. Flux shortens others.
const LONGEST: usize = 53;

const KEYS: Keys = Keys {
    unread: &["spec.valuesFrom", "spec.postRenderers", "spec.chart.spec.valuesFile"],
    name: &["spec.releaseName"],
    namespace: &["spec.targetNamespace"],
    files: ["spec.chart.spec.valuesFiles", "spec.chart.spec.ignoreMissingValuesFiles"],
    values: &["spec.values"],
    no_crds: ["spec.install.crds", "Skip"],
    options: &[],
};

/// Returns the files that take the place of the values of the chart, if there are any; `base` is the top of its source.
pub(super) fn values_files(found: &Document, base: &str) -> Vec<String> {
    KEYS.files(&found.value).filter_map(|file| place::resolve(Engine::Flux, base, file)).collect()
}

/// Returns how the chart of a `HelmRelease` is rendered; else why that is not known.
pub(super) fn release(tree: &dyn Tree, found: &Document, base: &str) -> Result<Release, String> {
    let [own, name] = [&found.object.namespace, &found.object.name];
    let namespace = at(&found.value, KEYS.namespace[0]).and_then(Value::text);
    let name = namespace.map_or(name.clone(), |namespace| format!("{namespace}-{name}"));
    let place = |file: &str| place::resolve(Engine::Flux, base, file).ok_or_else(|| format!("`{file}` is not in it"));
    let mut release = KEYS.release(tree, &found.value, [&name, own], &place)?;
    let is_long = |one: &String| one.strip_prefix("--name-template=").is_some_and(|name| name.len() > LONGEST);
    if release.arguments.iter().any(is_long) {
        return Err(format!("the name of its release has more than {LONGEST} letters"));
    }
    release.replaces_own = !values_files(found, base).is_empty();
    Ok(release)
}
