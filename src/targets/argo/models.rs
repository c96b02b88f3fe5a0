//! The parts of Argo CD objects that say what is deployed. `policy.rs` uses those about the fate of deployed objects.

use std::collections::BTreeMap;

use serde::de::IgnoredAny;
use serde_json::{Map, Value as Json};

use crate::kustomization::{Data, Located, Scalar, Value, is_same_key};
use crate::message::position::Position;
use crate::targets::scan::{ScannedKind, Spec, is_readable, models};

pub(in crate::targets) const APPLICATION: &str = "Application";
pub(in crate::targets) const SET: &str = "ApplicationSet";
/// The kind of the operator.
const INSTANCE: &str = "ArgoCD";
const MAP: &str = "ConfigMap";
const VERSIONS: &str = "argoproj.io/v";

/// The annotation that lists the files whose changes make Argo CD build an application again.
pub(crate) const GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";

/// The fields that give a source its type.
pub(super) const KUSTOMIZE: &str = "kustomize";
pub(super) const HELM: &str = "helm";
pub(super) const DIRECTORY: &str = "directory";
pub(super) const PLUGIN: &str = "plugin";

/// The fields of a type that count: Argo CD takes a type out of `source` and `sources` that sets none of them.
const COUNTED: [(&str, &str); 3] = [
    (
        KUSTOMIZE,
        "namePrefix nameSuffix version namespace images replicas commonLabels commonAnnotations patches components \
         kubeVersion apiVersions ignoreMissingComponents",
    ),
    (
        HELM,
        "version releaseName valueFiles parameters fileParameters values valuesObject passCredentials kubeVersion \
         ignoreMissingValueFiles skipCrds skipTests skipSchemaValidation apiVersions namespace",
    ),
    (DIRECTORY, "recurse jsonnet include exclude disableExtensionFilter"),
];

/// The kinds of objects that define targets, and the ConfigMap with options.
pub(in crate::targets) const KINDS: &[ScannedKind] = &[
    ScannedKind::of(VERSIONS, APPLICATION, is_readable::<Spec<Application>>),
    ScannedKind::of(VERSIONS, SET, is_readable::<Spec<Set>>),
    ScannedKind::of(VERSIONS, INSTANCE, ScannedKind::any),
    ScannedKind::named("argocd-cm", MAP),
];

models! {
    Annotated {
        metadata: Metadata,
    }

    Metadata {
        annotations: Annotations,
    }

    Annotations {
        #[serde(rename = "argocd.argoproj.io/manifest-generate-paths")]
        generate_paths: String,
    }

    /// An object with options of Argo CD.
    Options {
        data: BTreeMap<String, Json>,
        spec: InstanceSpec,
    }

    InstanceSpec {
        kustomize_build_options: Option<String>,
    }

    /// An `Application`, but for its sources.
    Application {
        project: Scalar,
        destination: Destination,
        sources: Vec<BTreeMap<String, IgnoredAny>>,
    }

    Destination {
        namespace: Scalar,
    }

    /// A source of an application.
    Source {
        #[serde(rename = "repoURL")]
        repo_url: Option<String>,
        path: Option<Located<String>>,
        chart: Option<String>,
        target_revision: Option<String>,
        #[serde(rename = "ref")]
        name: Option<String>,
        kustomize: Option<Kustomize>,
        helm: Option<Helm>,
        directory: Option<PlainDirectory>,
        plugin: Option<Json>,
    }

    /// Parts of a source as they are written.
    Written {
        kustomize: Map<String, Json>,
    }

    /// The overrides of a source for a kustomization.
    Kustomize {
        components: Vec<Located<String>>,
        ignore_missing_components: bool,
        patches: Vec<Patch>,
        name_prefix: String,
        name_suffix: String,
        namespace: String,
        images: Vec<String>,
        replicas: Vec<Replicas>,
        common_labels: BTreeMap<String, String>,
        force_common_labels: bool,
        label_without_selector: bool,
        label_include_templates: bool,
        common_annotations: BTreeMap<String, String>,
        force_common_annotations: bool,
        common_annotations_envsubst: bool,
    }

    Patch {
        path: Option<Located<String>>,
    }

    Replicas {
        name: String,
        count: Json,
    }

    /// The options of a source for a chart.
    #[derive(serde::Serialize)]
    Helm {
        release_name: Option<Scalar>,
        namespace: Option<Scalar>,
        value_files: Vec<String>,
        ignore_missing_value_files: bool,
        values: Option<Json>,
        values_object: Option<Json>,
        skip_crds: bool,
        kube_version: Option<Scalar>,
        api_versions: Vec<Scalar>,
        skip_schema_validation: bool,
        parameters: Vec<Parameter>,
        file_parameters: Vec<FileParameter>,
    }

    /// A value of a chart, by its path in the values.
    #[derive(serde::Serialize)]
    Parameter {
        name: String,
        value: String,
        // Argo CD ignores the case of keys, and its image updater writes this one so.
        #[serde(alias = "forcestring")]
        force_string: bool,
    }

    #[derive(serde::Serialize)]
    FileParameter {
        path: Option<String>,
    }

    /// The options of a source for a directory of plain files.
    #[derive(Clone, PartialEq, Eq, Hash)]
    PlainDirectory {
        recurse: bool,
        include: String,
        exclude: String,
        disable_extension_filter: bool,
    }

    /// The fields of an `Application`, or of a set of them, about the fate of the deployed objects.
    Fate {
        metadata: Finalized,
        spec: FateSpec,
    }

    Finalized {
        finalizers: Vec<String>,
    }

    FateSpec {
        sync_policy: SyncPolicy,
        destination: Cluster,
    }

    SyncPolicy {
        automated: Option<Automated>,
        sync_options: Vec<String>,
        preserve_resources_on_deletion: bool,
    }

    Automated {
        enabled: Option<bool>,
        prune: bool,
    }

    Cluster {
        server: String,
        name: String,
        namespace: String,
    }

    /// An `ApplicationSet`, but for its generators and its template.
    Set {
        go_template: bool,
        template_patch: Option<Located<String>>,
        sync_policy: SetPolicy,
        generators: Vec<BTreeMap<String, IgnoredAny>>,
    }

    SetPolicy {
        preserve_resources_on_deletion: bool,
    }

    /// A generator of a list.
    List {
        /// More elements, as YAML text.
        elements_yaml: Option<String>,
    }

    /// A generator that merges the parameters of others by keys.
    Merge {
        merge_keys: Vec<String>,
    }

    /// A generator of directories or files.
    Git {
        #[serde(rename = "repoURL")]
        repo_url: String,
        revision: Option<String>,
        path_param_prefix: String,
        directories: Option<Vec<Pattern>>,
        files: Option<Vec<Pattern>>,
    }

    /// A pattern of a git generator, and whether it leaves out the directories or files that match.
    #[derive(Clone, PartialEq, Eq)]
    Pattern {
        path: Option<String>,
        exclude: bool,
    }
}

/// Whether objects of a kind contain options.
pub(in crate::targets) fn has_options(kind: &str) -> bool {
    [MAP, INSTANCE].contains(&kind)
}

impl Options {
    /// The options of `kustomize build`, for all versions of it.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let own = self.data.iter().filter(|(key, _)| key.starts_with("kustomize.buildOptions"));
        let texts = own.filter_map(|(_, value)| value.as_str());
        let texts = texts.chain(self.spec.kustomize_build_options.as_deref());
        texts.flat_map(str::split_whitespace).map(str::to_owned)
    }
}

/// Everything that an application deploys: its sources, the source of a hydrator and the branch that it writes, and the
/// sources of a single sync. Of these, Argo CD takes out unset types (`COUNTED`) only from `source` and `sources`.
pub(super) fn sources(application: &Value) -> Vec<Value> {
    let at = |keys: &[&str]| application.at(keys).cloned();
    let list = |keys: &[&str]| application.at(keys).and_then(Value::list).unwrap_or_default().iter();
    let listed = list(&["spec", "sources"]).map(without_unset_types);
    let listed = listed.chain(list(&["operation", "sync", "sources"]).cloned());
    // Argo CD ignores `source` beside `sources`, unless that is an empty list.
    let source = at(&["spec", "source"]).filter(|_| list(&["spec", "sources"]).next().is_none());
    let source = source.as_ref().map(without_unset_types);
    let hydrator = |key: &str| at(&["spec", "sourceHydrator", key]);
    // The hydrator pushes manifests to a branch, which is deployed.
    let hydrated = hydrator("syncSource").map(|sync| {
        let branch = sync.get("targetBranch").map(|branch| ("targetRevision".to_owned(), branch.clone()));
        sync.with(Data::Mapping(sync.mapping().unwrap_or_default().iter().cloned().chain(branch).collect()))
    });
    // The source of a single sync, which runs as soon as the object exists.
    let synced = at(&["operation", "sync", "source"]);
    listed.chain([source, hydrator("drySource"), hydrated, synced].into_iter().flatten()).collect()
}

/// A source without the types that set nothing, as Argo CD reads it: an empty `helm: {}` would make a chart of it.
fn without_unset_types(source: &Value) -> Value {
    let mut pairs = source.mapping().unwrap_or_default().to_vec();
    pairs.retain(|(key, value)| match (COUNTED.iter().find(|(name, _)| name == key), &value.data) {
        (Some((_, counted)), Data::Mapping(fields)) => {
            fields.iter().any(|(field, value)| counted.split(' ').any(|name| name == field) && is_set(value))
        }
        _ => true,
    });
    source.with(Data::Mapping(pairs))
}

/// Whether a value is not the zero value of its type in Go, which counts as a missing field.
fn is_set(value: &Value) -> bool {
    match &value.data {
        Data::Null => false,
        Data::Flag(is_set) => *is_set,
        // No counted field is a number in Go: a text, such as a version, may be written as one.
        Data::Number(_) => true,
        Data::Text(text) => !text.is_empty(),
        Data::List(items) => !items.is_empty(),
        Data::Mapping(pairs) => !pairs.is_empty(),
    }
}

/// Whether a value has a misspelled key, such as `Path`, that Argo CD reads as one of the keys that locate a source,
/// but that this program ignores.
pub(super) fn is_respelled(value: &Value) -> bool {
    const KEYS: [&str; 10] = [
        "spec",
        "source",
        "sources",
        "sourceHydrator",
        "drySource",
        "syncSource",
        "kustomize",
        "components",
        "patches",
        "path",
    ];
    match &value.data {
        Data::Mapping(pairs) => pairs.iter().any(|(key, value)| {
            KEYS.iter().any(|known| key != *known && is_same_key(known, key)) || is_respelled(value)
        }),
        Data::List(items) => items.iter().any(is_respelled),
        _ => false,
    }
}

impl Source {
    /// The keys that locate a source. No file beside it can override them.
    pub(super) const PLACE: [&str; 4] = ["path", "repoURL", "targetRevision", "chart"];

    /// The fields that give it a type. Argo CD refuses a source with several.
    pub(super) fn types(&self) -> Vec<&'static str> {
        let all = [
            (KUSTOMIZE, self.kustomize.is_some()),
            (HELM, self.helm.is_some()),
            (DIRECTORY, self.directory.is_some()),
            (PLUGIN, self.plugin.is_some()),
        ];
        all.into_iter().filter(|(_, is_set)| *is_set).map(|(name, _)| name).collect()
    }

    /// The position of its path, or else of the source as it is written.
    pub(super) fn spot(&self, written: &Value) -> Position {
        self.path.as_ref().map_or(written.start, Located::start)
    }

    /// The files with values of a chart, as the source names them.
    pub(super) fn values_files(&self) -> impl Iterator<Item = &str> {
        let files = self.helm.iter().flat_map(|helm| {
            let parameters = helm.file_parameters.iter().filter_map(|parameter| parameter.path.as_ref());
            helm.value_files.iter().chain(parameters)
        });
        // A plugin of helm decrypts such a file.
        files.map(|text| text.strip_prefix("secrets://").unwrap_or(text))
    }
}

impl Written {
    /// The overrides that change the kustomization.
    pub(super) fn overrides(self) -> Map<String, Json> {
        let mut all = self.kustomize;
        all.retain(|key, _| !["components", "ignoreMissingComponents", "version"].contains(&&**key));
        all
    }
}

/// The generators and the template of a set. `None` if it lacks one of them, as a patch for a set does.
pub(super) fn generators_and_template(set: &Value) -> Option<(&[Value], &Value)> {
    let spec = set.get("spec")?;
    Some((spec.get("generators")?.list()?, spec.get("template")?))
}

/// A text of the metadata of a template.
pub(super) fn metadata(template: &Value, key: &str) -> Option<String> {
    template.at(&["metadata", key]).and_then(Value::scalar)
}

/// The beginning of the finalizers by which Argo CD deletes the objects of an application with it.
pub(in crate::targets) const FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";

/// The patch for a template without finalizers: Argo CD adds one. `None` if the template has some.
pub(super) fn finalizer(template: &Value) -> Option<Value> {
    let pair = |key: &str, value| template.with(Data::Mapping(vec![(key.to_owned(), value)]));
    let text = template.with(Data::Text(FINALIZER.to_owned()));
    let is_there = template.at(&["metadata", "finalizers"]).is_some();
    (!is_there).then(|| pair("metadata", pair("finalizers", template.with(Data::List(vec![text])))))
}

/// A generator of a set.
#[derive(Clone, Copy)]
pub(super) struct Generator<'v> {
    /// Its type; empty if it has none.
    pub(super) kind: &'v str,
    /// The value of its type.
    pub(super) body: &'v Value,
    /// Whether a selector drops some of its parameters.
    pub(super) is_selective: bool,
}

/// The types of generators that are read.
pub(super) const LIST: &str = "list";
pub(super) const GIT: &str = "git";
pub(super) const MATRIX: &str = "matrix";
pub(super) const MERGE: &str = "merge";

impl<'v> Generator<'v> {
    /// The generators of an entry. An entry without any is one generator without a type.
    pub(super) fn of_entry(entry: &'v Value) -> Vec<Generator<'v>> {
        const SELECTOR: &str = "selector";
        let is_selective = entry.get(SELECTOR).is_some();
        let pairs = entry.mapping().unwrap_or_default().iter();
        let given = pairs.filter(|(key, body)| key != SELECTOR && body.data != Data::Null);
        // Argo CD runs all generators of an entry.
        let mut all: Vec<_> = given.map(|(kind, body)| Generator { kind, body, is_selective }).collect();
        if all.is_empty() {
            all.push(Generator { kind: "", body: entry, is_selective });
        }
        all
    }

    /// The generators that it combines.
    pub(super) fn inside(self) -> &'v [Value] {
        self.body.get("generators").and_then(Value::list).unwrap_or_default()
    }

    /// The elements of a list generator.
    pub(super) fn elements(self) -> &'v [Value] {
        self.body.get("elements").and_then(Value::list).unwrap_or_default()
    }

    /// Its own template.
    pub(super) fn template(self) -> Option<&'v Value> {
        self.body.get("template")
    }

    /// Its own parameters.
    pub(super) fn values(self) -> Option<&'v [(String, Value)]> {
        self.body.get("values")?.mapping()
    }
}
