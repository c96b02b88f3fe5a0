//! The arguments that Flux gives to helm: `GetReleaseName` and others in its `api/v2/helmrelease_types.go`.

use super::super::ObjectRef;
use super::super::chart::{self, ReleaseFields};
use super::super::engine::Engine;
use super::Flux;
use super::models::Release;
use crate::kustomization::Scalar;
use crate::tree::Tree;

/// The longest name of a release.
const LONGEST: usize = 53;

/// The files that take the place of the values of the chart, if there are any; `base` is the top of its source.
pub(super) fn values_files(spec: &Release, base: &str) -> Vec<String> {
    spec.chart.spec.values_files.iter().filter_map(|file| Flux.resolve(base, file)).collect()
}

/// How the chart of a `HelmRelease` is rendered, or why that is unknown.
pub(super) fn release(
    tree: &dyn Tree,
    object: &ObjectRef,
    spec: &Release,
    base: &str,
) -> Result<chart::Release, String> {
    if let Some(why) = spec.unread() {
        return Err(why);
    }
    let [namespace, name] = [spec.target_namespace.as_ref(), spec.release_name.as_ref()].map(Scalar::given);
    // helm-controller gives this name to a release without one.
    let name = name.map_or_else(
        || namespace.map_or(object.name.clone(), |namespace| format!("{namespace}-{}", object.name)),
        str::to_owned,
    );
    // helm-controller shortens such a name, and the output has it.
    if name.len() > LONGEST {
        return Err(format!("the name of its release has more than {LONGEST} letters"));
    }
    let chart = &spec.chart.spec;
    let rendered = ReleaseFields {
        name: &name,
        namespace: namespace.unwrap_or(&object.namespace),
        files: &chart.values_files,
        may_be_missing: chart.ignore_missing_values_files,
        values: spec.values.as_ref(),
        skips_crds: spec.install.crds == "Skip",
        options: Vec::new(),
    };
    let mut release = rendered
        .into_release(tree, &|file: &str| Flux.resolve(base, file).ok_or_else(|| format!("`{file}` is not in it")))?;
    release.replaces_own = !values_files(spec, base).is_empty();
    Ok(release)
}

impl Release {
    /// Why the rendered chart is unknown: a field changes it that the program does not read.
    fn unread(&self) -> Option<String> {
        chart::unread([
            ("spec.valuesFrom", !self.values_from.is_empty()),
            ("spec.postRenderers", !self.post_renderers.is_empty()),
            ("spec.chart.spec.valuesFile", self.chart.spec.values_file.is_some()),
        ])
    }
}
