//! The parts of Flux objects that say what is deployed. `policy.rs` uses those about the fate of deployed objects.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value as Json};

use crate::kustomization::{Located, Mistyped, Scalar, Value};
use crate::targets::scan::{ScannedKind, Spec, is_readable, models};

pub(in crate::targets) const KUSTOMIZATION: &str = "Kustomization";
pub(in crate::targets) const RELEASE: &str = "HelmRelease";
pub(super) const INSTANCE: &str = "FluxInstance";
pub(super) const RESOURCE_SET: &str = "ResourceSet";
pub(super) const GIT: &str = "GitRepository";
pub(super) const OCI: &str = "OCIRepository";
pub(super) const BUCKET: &str = "Bucket";
pub(super) const CHART: &str = "HelmChart";
pub(super) const ARTIFACT: &str = "ExternalArtifact";
pub(super) const GENERATOR: &str = "ArtifactGenerator";

const SOURCES: &str = "source.toolkit.fluxcd.io/v";
const OPERATOR: &str = "fluxcd.controlplane.io/v";

/// The kinds of objects that define targets.
pub(in crate::targets) const KINDS: &[ScannedKind] = &[
    ScannedKind::of("kustomize.toolkit.fluxcd.io/v", KUSTOMIZATION, is_kustomization),
    ScannedKind::of(SOURCES, GIT, is_readable::<Spec<Repository>>),
    ScannedKind::of(SOURCES, OCI, is_readable::<Spec<Repository>>),
    ScannedKind::of(SOURCES, BUCKET, ScannedKind::any),
    ScannedKind::of(SOURCES, ARTIFACT, ScannedKind::any),
    ScannedKind::of(SOURCES, GENERATOR, is_readable::<Generator>),
    ScannedKind::of("source.extensions.fluxcd.io/v", GENERATOR, is_readable::<Generator>),
    ScannedKind::of("helm.toolkit.fluxcd.io/v", RELEASE, is_release).ignoring_unreadable(),
    ScannedKind::of(OPERATOR, INSTANCE, is_readable::<Spec<Instance>>),
    ScannedKind::of(OPERATOR, RESOURCE_SET, ScannedKind::any),
];

models! {
    /// The name of a source or of another object, and its alias in a [`Generator`].
    Reference {
        alias: String,
        kind: String,
        namespace: String,
        name: String,
    }

    /// A `Kustomization`; one without a source is a patch for one.
    Kustomization {
        path: Option<Located<String>>,
        source_ref: Option<Reference>,
        components: Vec<Located<String>>,
        ignore_missing_components: bool,
        post_build: PostBuild,
    }

    /// The fields of a `Kustomization` that change its build.
    #[derive(serde::Serialize)]
    Overrides {
        build_metadata: Option<Json>,
        images: Option<Vec<Json>>,
        name_prefix: Option<String>,
        name_suffix: Option<String>,
        patches: Option<Vec<Json>>,
        patches_json6902: Option<Vec<Json>>,
        patches_strategic_merge: Option<Vec<Json>>,
        post_build: Option<Json>,
        target_namespace: Option<String>,
    }

    /// The fields of a `Kustomization` or a `HelmRelease` about the fate of the deployed objects.
    Fate {
        metadata: Namespaced,
        spec: FateSpec,
    }

    Namespaced {
        namespace: String,
    }

    FateSpec {
        prune: bool,
        force: bool,
        suspend: bool,
        deletion_policy: String,
        target_namespace: String,
        kube_config: KubeConfig,
        depends_on: Vec<Reference>,
    }

    KubeConfig {
        secret_ref: Named,
        config_map_ref: Named,
    }

    /// An object with the marks by which its variables stay.
    Marked {
        metadata: Marks,
    }

    Marks {
        labels: Mark,
        annotations: Mark,
    }

    Mark {
        #[serde(rename = "kustomize.toolkit.fluxcd.io/substitute")]
        substitute: Option<String>,
    }

    /// The variables that are substituted after a build.
    PostBuild {
        substitute: BTreeMap<String, String>,
        substitute_from: Vec<Named>,
        substitute_strategy: String,
    }

    /// A reference by name.
    Named {
        name: String,
    }

    /// A `GitRepository` or an `OCIRepository`; one without a URL is a patch for one.
    Repository {
        url: Option<String>,
        #[serde(rename = "ref")]
        revision: Revision,
        ignore: String,
        sparse_checkout: Vec<String>,
        include: Vec<Include>,
        recurse_submodules: bool,
    }

    /// The revision of a repository: the first field that is set, in this order.
    Revision {
        commit: Option<Scalar>,
        digest: Option<Scalar>,
        name: Option<Scalar>,
        semver: Option<Scalar>,
        tag: Option<Scalar>,
        branch: Option<Scalar>,
    }

    /// A directory of another source that is copied into an artifact.
    Include {
        repository: Named,
        to_path: String,
    }

    /// A `FluxInstance`.
    Instance {
        sync: Sync,
        distribution: Distribution,
        kustomize: Patched,
    }

    /// The patches of a kustomization.
    Patched {
        patches: Vec<Patch>,
        patches_json6902: Vec<Patch>,
        patches_strategic_merge: Vec<Scalar>,
    }

    Patch {
        path: Option<String>,
        patch: Option<String>,
    }

    /// An operation of a JSON patch.
    Operation {
        value: Option<Json>,
    }

    /// The source that an [`Instance`] deploys.
    Sync {
        kind: String,
        name: Option<String>,
        url: Option<String>,
        #[serde(rename = "ref")]
        revision: Option<String>,
        path: Option<Located<String>>,
    }

    Distribution {
        version: Option<Scalar>,
    }

    /// A `HelmRelease`.
    Release {
        chart: Spec<Chart>,
        release_name: Option<Scalar>,
        target_namespace: Option<Scalar>,
        install: Install,
        values: Option<Json>,
        values_from: Vec<Json>,
        post_renderers: Vec<Json>,
    }

    Chart {
        chart: Option<Located<String>>,
        source_ref: Reference,
        values_files: Vec<String>,
        ignore_missing_values_files: bool,
        values_file: Option<String>,
    }

    Install {
        crds: String,
    }

    /// An `ArtifactGenerator`.
    Generator {
        metadata: Annotated,
        spec: GeneratorSpec,
    }

    Annotated {
        annotations: Annotations,
    }

    Annotations {
        #[serde(rename = "source.extensions.fluxcd.io/reconcile")]
        reconcile: String,
    }

    GeneratorSpec {
        path_pattern: String,
        sources: Vec<Reference>,
        artifacts: Vec<Output>,
    }

    /// An artifact of a [`Generator`].
    Output {
        name: String,
        copy: Vec<Copy>,
    }

    /// A copy of files into an [`Output`].
    Copy {
        from: Option<String>,
        to: Option<String>,
        exclude: Vec<String>,
        strategy: Option<String>,
    }
}

impl Patched {
    /// The patches: each as a text, or as the path of a file.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let by_field = self.patches.iter().chain(&self.patches_json6902);
        let texts = by_field.flat_map(|Patch { path, patch }| path.iter().chain(patch)).map(String::as_str);
        texts.chain(self.patches_strategic_merge.iter().map(|text| text.0.as_str()))
    }
}

impl Operation {
    /// The texts that it sets.
    pub(super) fn texts(&self) -> impl Iterator<Item = &str> {
        let values =
            self.value.iter().flat_map(|value| value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice));
        values.filter_map(Json::as_str)
    }
}

impl Overrides {
    /// The fields that are set, by their names.
    pub(super) fn named(&self) -> Map<String, Json> {
        let mut all = serde_json::to_value(self).ok().and_then(|all| all.as_object().cloned()).unwrap_or_default();
        all.retain(|_, value| !value.is_null());
        all
    }

    /// Reads the fields of an object.
    pub(super) fn of(named: &Map<String, Json>) -> Overrides {
        Overrides::deserialize(Json::Object(named.clone())).unwrap_or_default()
    }
}

fn is_kustomization(value: &Value) -> Result<bool, Mistyped> {
    Ok(is_readable::<Spec<Kustomization>>(value)? && is_readable::<Spec<Overrides>>(value)?)
}

/// The key of [`Overrides`] that changes the output of a build, not the kustomization.
pub(crate) const POST_BUILD: &str = "postBuild";

impl Marked {
    /// Whether its variables stay as they are.
    pub(super) fn is_disabled(&self) -> bool {
        let marks = [&self.metadata.labels, &self.metadata.annotations];
        marks.iter().any(|mark| mark.substitute.as_deref() == Some("disabled"))
    }
}

impl Revision {
    /// The revision as it is written, and whether it can never move. The tag of an artifact, unlike one of git, can.
    pub(super) fn named(&self, is_git: bool) -> (Option<&str>, bool) {
        let all = [
            (&self.commit, is_git),
            (&self.digest, true),
            (&self.name, false),
            (&self.semver, false),
            (&self.tag, is_git),
            (&self.branch, false),
        ];
        let named = all.into_iter().find_map(|(text, is_fixed)| Some((text.as_ref()?.0.as_str(), is_fixed)));
        named.map_or((None, false), |(text, is_fixed)| (Some(text), is_fixed))
    }
}

impl Include {
    /// The directory in the artifact.
    pub(super) fn directory(&self) -> &str {
        if self.to_path.is_empty() { &self.repository.name } else { &self.to_path }
    }
}

/// Only a release whose chart is in a git repository is relevant.
fn is_release(value: &Value) -> Result<bool, Mistyped> {
    let source = value.at(&["spec", "chart", "spec", "sourceRef", "kind"]);
    if source.and_then(Value::text) != Some(GIT) {
        return Ok(false);
    }
    is_readable::<Spec<Release>>(value)
}

impl Generator {
    /// Whether an annotation disables it.
    pub(super) fn is_disabled(&self) -> bool {
        self.metadata.annotations.reconcile.eq_ignore_ascii_case("disabled")
    }
}

impl Copy {
    /// Whether it overwrites existing files.
    pub(super) fn is_overwriting(&self) -> bool {
        self.strategy.as_deref().is_none_or(|strategy| strategy == "Overwrite")
    }
}
