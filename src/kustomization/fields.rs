//! THE field table: every field of a kustomization and of the built-in plugins that kustomize 5.8.1 knows, the
//! shape of its value, and what its strings mean. Nothing else in the program knows a field by name.
//!
//! The shapes are those of kustomize's Go types (`api/types`), because `encoding/json` decodes by them. The names
//! were measured: each JSON tag in the program was tried in each place.

use super::{Accepts, PluginUse};

/// The shape of a value.
#[derive(Debug)]
pub(super) enum Shape {
    /// A string.
    Text(Role),
    Bool,
    /// A boolean: whether the newest version of a chart may be one under development.
    Devel,
    Integer,
    /// A slice. An empty one is a value, `null` is none.
    List(&'static Shape),
    /// A deprecated slice that kustomize appends to another one after reading, so an empty one has no effect.
    Folded(&'static Shape),
    /// A map of strings to strings, in which some keys mean something. They are compared exactly.
    Texts(&'static [(&'static str, Role)]),
    /// A map of strings to anything.
    Values,
    /// A struct; `null` does not change it.
    Struct(&'static Struct),
    /// A pointer to a struct; `null` removes it.
    Pointer(&'static Struct),
    /// What kustomize reads and this program does not follow, with what to do instead.
    Refused(&'static str),
}

/// A Go struct.
#[derive(Debug)]
pub(super) struct Struct {
    pub fields: &'static [(&'static str, Shape)],
    /// Its strings make up one chart.
    pub chart: bool,
    /// The fields of which kustomize needs one to be set; empty where it needs none.
    pub one_of: &'static [&'static str],
}

/// What a string means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Nothing here.
    Plain,
    Kind,
    ApiVersion,
    BuildMetadata,
    /// A path or URL.
    Reference(Accepts),
    /// A generator source: a file, or `key=file`.
    FileSource,
    /// A patch if it parses as one, else a file.
    PatchOrFile,
    /// Plugin configurations if it parses as such, else a file or a root.
    Plugin(PluginUse),
    /// The values file of a chart.
    ValuesFile,
    /// How a chart's values and those that are written here are put together.
    ValuesMerge,
    ChartName,
    ChartVersion,
    ChartRepo,
    ChartHome,
    /// What helm is given as an argument, and nothing else.
    HelmArgument,
    /// What a function runs.
    Code,
}

/// Returns every field in which a string may name a file or a root.
pub(super) fn referring() -> Vec<String> {
    let mut found = Vec::new();
    add_referring(&KUSTOMIZATION, "", &mut found);
    for (kind, _, fields) in BUILTIN_PLUGINS {
        add_referring(fields, &format!("{kind}."), &mut found);
    }
    found.sort();
    found
}

fn add_referring(of: &Struct, prefix: &str, found: &mut Vec<String>) {
    for (name, shape) in of.fields {
        add_shape(shape, format!("{prefix}{name}"), found);
    }
}

fn add_shape(shape: &Shape, field: String, found: &mut Vec<String>) {
    match shape {
        Shape::Text(role) if role.refers() => found.push(field),
        Shape::List(of) | Shape::Folded(of) => add_shape(of, format!("{field}[]"), found),
        Shape::Texts(keys) => {
            let keys = keys.iter().filter(|(_, role)| role.refers());
            found.extend(keys.map(|(key, _)| format!("{field}.{key}")));
        }
        Shape::Struct(of) | Shape::Pointer(of) => {
            add_referring(of, &format!("{field}."), found);
        }
        Shape::Text(_)
        | Shape::Bool
        | Shape::Integer
        | Shape::Values
        | Shape::Devel
        | Shape::Refused(_) => {}
    }
}

impl Role {
    /// Returns whether kustomize refuses an empty entry in a list of such strings. Of patches, it skips one.
    pub(super) fn is_never_empty(self) -> bool {
        matches!(self, Role::Reference(_) | Role::FileSource)
    }

    fn refers(self) -> bool {
        matches!(
            self,
            Role::Reference(_)
                | Role::FileSource
                | Role::PatchOrFile
                | Role::Plugin(_)
                | Role::ValuesFile
                | Role::ChartHome
        )
    }
}

const FILE: Shape = Shape::Text(Role::Reference(Accepts::File));
const PLAIN: Shape = Shape::Text(Role::Plain);
const PLAINS: Shape = Shape::List(&PLAIN);
const CODE: Shape = Shape::Text(Role::Code);
const HELM_ARGUMENT: Shape = Shape::Text(Role::HelmArgument);
const CONFIG_HOME: Shape = Shape::Refused("leave it out: configure helm where it runs");
const STRINGS: Shape = Shape::Texts(&[]);
const TRANSFORMERS: Shape = Shape::List(&Shape::Text(Role::Plugin(PluginUse::Transformer)));

const fn record(fields: &'static [(&'static str, Shape)]) -> Struct {
    Struct {
        fields,
        chart: false,
        one_of: &[],
    }
}

const fn one_of(
    names: &'static [&'static str],
    fields: &'static [(&'static str, Shape)],
) -> Struct {
    Struct {
        one_of: names,
        ..record(fields)
    }
}

/// `types.Kustomization`.
pub(super) static KUSTOMIZATION: Struct = record(&[
    ("apiVersion", Shape::Text(Role::ApiVersion)),
    ("kind", Shape::Text(Role::Kind)),
    ("metadata", Shape::Pointer(&METADATA)),
    (
        "openapi",
        Shape::Texts(&[("path", Role::Reference(Accepts::File))]),
    ),
    ("namePrefix", PLAIN),
    ("nameSuffix", PLAIN),
    // It is the namespace of its charts and of those below.
    ("namespace", HELM_ARGUMENT),
    ("commonLabels", STRINGS),
    ("labels", Shape::List(&Shape::Struct(&LABEL))),
    ("commonAnnotations", STRINGS),
    (
        "patchesStrategicMerge",
        Shape::List(&Shape::Text(Role::PatchOrFile)),
    ),
    ("patchesJson6902", Shape::List(&Shape::Struct(&PATCH))),
    ("patches", Shape::List(&Shape::Struct(&PATCH))),
    ("images", Shape::List(&Shape::Struct(&IMAGE))),
    ("imageTags", Shape::Folded(&Shape::Struct(&IMAGE))),
    ("replacements", Shape::List(&Shape::Struct(&REPLACEMENT))),
    ("replicas", Shape::List(&Shape::Struct(&REPLICA))),
    ("vars", Shape::List(&Shape::Struct(&VAR))),
    ("sortOptions", Shape::Pointer(&SORT_OPTIONS)),
    (
        "resources",
        Shape::List(&Shape::Text(Role::Reference(Accepts::Either))),
    ),
    (
        "components",
        Shape::List(&Shape::Text(Role::Reference(Accepts::Root {
            component: true,
        }))),
    ),
    ("crds", Shape::List(&FILE)),
    // Appended to `resources` (FixKustomization), so a file does as well as a root.
    (
        "bases",
        Shape::Folded(&Shape::Text(Role::Reference(Accepts::Either))),
    ),
    (
        "configMapGenerator",
        Shape::List(&Shape::Struct(&CONFIG_MAP)),
    ),
    ("secretGenerator", Shape::List(&Shape::Struct(&SECRET))),
    ("helmGlobals", Shape::Pointer(&HELM_GLOBALS)),
    ("helmCharts", Shape::List(&Shape::Struct(&HELM_CHART))),
    (
        "helmChartInflationGenerator",
        Shape::Folded(&Shape::Struct(&OLD_HELM_CHART)),
    ),
    ("generatorOptions", Shape::Pointer(&GENERATOR_OPTIONS)),
    ("configurations", Shape::List(&FILE)),
    (
        "generators",
        Shape::List(&Shape::Text(Role::Plugin(PluginUse::Generator))),
    ),
    ("transformers", TRANSFORMERS),
    ("validators", TRANSFORMERS),
    (
        "buildMetadata",
        Shape::List(&Shape::Text(Role::BuildMetadata)),
    ),
]);

/// The configurations of the plugins with `apiVersion: builtin` that can be loaded (`GeneratorFactories` and
/// `TransformerFactories`, api/internal/plugins/builtinhelpers). Only what means something is listed: unknown
/// fields are allowed there. Paths are relative to the kustomization that lists the plugin.
pub(super) static BUILTIN_PLUGINS: &[(&str, PluginUse, &Struct)] = &[
    ("AnnotationsTransformer", PluginUse::Transformer, &NO_PATHS),
    (
        "ConfigMapGenerator",
        PluginUse::Generator,
        &GENERATOR_PLUGIN,
    ),
    ("HashTransformer", PluginUse::Transformer, &NO_PATHS),
    (
        "HelmChartInflationGenerator",
        PluginUse::Generator,
        &HELM_PLUGIN,
    ),
    ("IAMPolicyGenerator", PluginUse::Generator, &NO_PATHS),
    ("ImageTagTransformer", PluginUse::Transformer, &NO_PATHS),
    ("LabelTransformer", PluginUse::Transformer, &NO_PATHS),
    ("NamespaceTransformer", PluginUse::Transformer, &NO_PATHS),
    (
        "PatchJson6902Transformer",
        PluginUse::Transformer,
        &JSON_PATCH_PLUGIN,
    ),
    (
        "PatchStrategicMergeTransformer",
        PluginUse::Transformer,
        &MERGE_PLUGIN,
    ),
    ("PatchTransformer", PluginUse::Transformer, &PATCH_PLUGIN),
    ("PrefixSuffixTransformer", PluginUse::Transformer, &NO_PATHS),
    ("PrefixTransformer", PluginUse::Transformer, &NO_PATHS),
    (
        "ReplacementTransformer",
        PluginUse::Transformer,
        &REPLACEMENT_PLUGIN,
    ),
    ("ReplicaCountTransformer", PluginUse::Transformer, &NO_PATHS),
    ("SecretGenerator", PluginUse::Generator, &GENERATOR_PLUGIN),
    ("SuffixTransformer", PluginUse::Transformer, &NO_PATHS),
    (
        "ValueAddTransformer",
        PluginUse::Transformer,
        &VALUE_ADD_PLUGIN,
    ),
];

static NO_PATHS: Struct = record(&[]);

/// kustomize ignores `env` here.
static GENERATOR_PLUGIN: Struct = record(&[
    ("envs", Shape::List(&FILE)),
    ("files", Shape::List(&Shape::Text(Role::FileSource))),
]);

static PATCH_PLUGIN: Struct = one_of(&["path", "patch"], &[("patch", PLAIN), ("path", FILE)]);

static JSON_PATCH_PLUGIN: Struct =
    one_of(&["path", "jsonOp"], &[("jsonOp", PLAIN), ("path", FILE)]);

static MERGE_PLUGIN: Struct = one_of(
    &["paths", "patches"],
    &[
        ("patches", PLAIN),
        ("paths", Shape::List(&Shape::Text(Role::PatchOrFile))),
    ],
);

static REPLACEMENT_PLUGIN: Struct =
    record(&[("replacements", Shape::List(&Shape::Struct(&REPLACEMENT)))]);

static VALUE_ADD_PLUGIN: Struct = record(&[("targetFilePath", FILE)]);

static HELM_PLUGIN: Struct = Struct {
    chart: true,
    one_of: &[],
    fields: &[
        ("additionalValuesFiles", Shape::List(&FILE)),
        ("apiVersions", Shape::List(&HELM_ARGUMENT)),
        ("chartHome", Shape::Text(Role::ChartHome)),
        ("configHome", CONFIG_HOME),
        ("devel", Shape::Devel),
        ("kubeVersion", HELM_ARGUMENT),
        ("name", Shape::Text(Role::ChartName)),
        ("nameTemplate", HELM_ARGUMENT),
        ("namespace", HELM_ARGUMENT),
        ("releaseName", HELM_ARGUMENT),
        ("repo", Shape::Text(Role::ChartRepo)),
        ("valuesFile", Shape::Text(Role::ValuesFile)),
        ("valuesMerge", Shape::Text(Role::ValuesMerge)),
        ("version", Shape::Text(Role::ChartVersion)),
    ],
};

/// `runtimeutil.FunctionSpec`.
pub(super) static FUNCTION: Struct = record(&[
    ("container", Shape::Struct(&CONTAINER)),
    ("deferFailure", Shape::Bool),
    ("exec", Shape::Struct(&EXEC)),
]);

static CONTAINER: Struct = record(&[
    ("envs", PLAINS),
    ("image", CODE),
    (
        "mounts",
        Shape::Refused("leave it out, and write what the function needs into its configuration"),
    ),
    ("network", Shape::Bool),
]);

static EXEC: Struct = record(&[("args", PLAINS), ("envs", PLAINS), ("path", CODE)]);

static METADATA: Struct = record(&[
    ("annotations", STRINGS),
    ("labels", STRINGS),
    ("name", PLAIN),
    ("namespace", PLAIN),
]);

/// `types.ConfigMapArgs`.
static CONFIG_MAP: Struct = record(&[
    ("behavior", PLAIN),
    ("env", FILE),
    ("envs", Shape::List(&FILE)),
    ("files", Shape::List(&Shape::Text(Role::FileSource))),
    ("literals", PLAINS),
    ("name", PLAIN),
    ("namespace", PLAIN),
    ("options", Shape::Pointer(&GENERATOR_OPTIONS)),
]);

/// `types.SecretArgs`.
static SECRET: Struct = record(&[
    ("behavior", PLAIN),
    ("env", FILE),
    ("envs", Shape::List(&FILE)),
    ("files", Shape::List(&Shape::Text(Role::FileSource))),
    ("literals", PLAINS),
    ("name", PLAIN),
    ("namespace", PLAIN),
    ("options", Shape::Pointer(&GENERATOR_OPTIONS)),
    ("type", PLAIN),
]);

static GENERATOR_OPTIONS: Struct = record(&[
    ("annotations", STRINGS),
    ("disableNameSuffixHash", Shape::Bool),
    ("immutable", Shape::Bool),
    ("labels", STRINGS),
]);

static HELM_GLOBALS: Struct = record(&[
    ("chartHome", Shape::Text(Role::ChartHome)),
    ("configHome", CONFIG_HOME),
]);

/// `types.HelmChart`.
static HELM_CHART: Struct = Struct {
    chart: true,
    one_of: &[],
    fields: &[
        ("additionalValuesFiles", Shape::List(&FILE)),
        ("apiVersions", Shape::List(&HELM_ARGUMENT)),
        ("debug", Shape::Bool),
        ("devel", Shape::Devel),
        ("includeCRDs", Shape::Bool),
        ("kubeVersion", HELM_ARGUMENT),
        ("name", Shape::Text(Role::ChartName)),
        ("nameTemplate", HELM_ARGUMENT),
        ("namespace", HELM_ARGUMENT),
        ("releaseName", HELM_ARGUMENT),
        ("repo", Shape::Text(Role::ChartRepo)),
        ("skipHooks", Shape::Bool),
        ("skipTests", Shape::Bool),
        ("valuesFile", Shape::Text(Role::ValuesFile)),
        ("valuesInline", Shape::Values),
        ("valuesMerge", Shape::Text(Role::ValuesMerge)),
        ("version", Shape::Text(Role::ChartVersion)),
    ],
};

/// `types.HelmChartArgs`, of which kustomize drops `chartRepoName`, `extraArgs`, `helmBin` and
/// `releaseNamespace`.
static OLD_HELM_CHART: Struct = Struct {
    chart: true,
    one_of: &[],
    fields: &[
        ("chartHome", Shape::Text(Role::ChartHome)),
        ("chartName", Shape::Text(Role::ChartName)),
        ("chartRepoName", PLAIN),
        ("chartRepoUrl", Shape::Text(Role::ChartRepo)),
        ("chartVersion", Shape::Text(Role::ChartVersion)),
        ("extraArgs", PLAINS),
        ("helmBin", PLAIN),
        ("helmHome", CONFIG_HOME),
        ("releaseName", HELM_ARGUMENT),
        ("releaseNamespace", PLAIN),
        ("values", Shape::Text(Role::ValuesFile)),
        ("valuesLocal", Shape::Values),
        ("valuesMerge", Shape::Text(Role::ValuesMerge)),
    ],
};

/// `types.Patch`.
static PATCH: Struct = one_of(
    &["path", "patch"],
    &[
        ("options", Shape::Pointer(&PATCH_OPTIONS)),
        ("patch", PLAIN),
        ("path", FILE),
        ("target", Shape::Pointer(&SELECTOR)),
    ],
);

static PATCH_OPTIONS: Struct = record(&[
    ("allowKindChange", Shape::Bool),
    ("allowNameChange", Shape::Bool),
]);

static SELECTOR: Struct = record(&[
    ("annotationSelector", PLAIN),
    ("group", PLAIN),
    ("kind", PLAIN),
    ("labelSelector", PLAIN),
    ("name", PLAIN),
    ("namespace", PLAIN),
    ("version", PLAIN),
]);

/// `types.ReplacementField`.
static REPLACEMENT: Struct = one_of(
    &["path", "source", "sourceValue"],
    &[
        ("path", FILE),
        ("source", Shape::Pointer(&SOURCE)),
        ("sourceValue", PLAIN),
        ("targets", Shape::List(&Shape::Pointer(&TARGET))),
    ],
);

static SOURCE: Struct = record(&[
    ("fieldPath", PLAIN),
    ("group", PLAIN),
    ("kind", PLAIN),
    ("name", PLAIN),
    ("namespace", PLAIN),
    ("options", Shape::Pointer(&FIELD_OPTIONS)),
    ("version", PLAIN),
]);

static TARGET: Struct = record(&[
    ("fieldPaths", PLAINS),
    ("options", Shape::Pointer(&FIELD_OPTIONS)),
    ("reject", Shape::List(&Shape::Pointer(&SELECTOR))),
    ("select", Shape::Pointer(&SELECTOR)),
]);

static FIELD_OPTIONS: Struct = record(&[
    ("create", Shape::Bool),
    ("delimiter", PLAIN),
    ("encoding", PLAIN),
    ("index", Shape::Integer),
]);

static IMAGE: Struct = record(&[
    ("digest", PLAIN),
    ("name", PLAIN),
    ("newName", PLAIN),
    ("newTag", PLAIN),
    ("tagSuffix", PLAIN),
]);

static REPLICA: Struct = record(&[("count", Shape::Integer), ("name", PLAIN)]);

static VAR: Struct = record(&[
    ("fieldref", Shape::Struct(&FIELD_REF)),
    ("name", PLAIN),
    ("objref", Shape::Struct(&OBJECT_REF)),
]);

static FIELD_REF: Struct = record(&[("fieldPath", PLAIN)]);

static OBJECT_REF: Struct = record(&[
    ("apiVersion", PLAIN),
    ("group", PLAIN),
    ("kind", PLAIN),
    ("name", PLAIN),
    ("namespace", PLAIN),
    ("version", PLAIN),
]);

static LABEL: Struct = record(&[
    ("fields", Shape::List(&Shape::Struct(&FIELD_SPEC))),
    ("includeSelectors", Shape::Bool),
    ("includeTemplates", Shape::Bool),
    ("pairs", STRINGS),
]);

static FIELD_SPEC: Struct = record(&[
    ("create", Shape::Bool),
    ("group", PLAIN),
    ("kind", PLAIN),
    ("path", PLAIN),
    ("version", PLAIN),
]);

static SORT_OPTIONS: Struct = record(&[
    ("legacySortOptions", Shape::Pointer(&LEGACY_SORT_OPTIONS)),
    ("order", PLAIN),
]);

static LEGACY_SORT_OPTIONS: Struct = record(&[("orderFirst", PLAINS), ("orderLast", PLAINS)]);
