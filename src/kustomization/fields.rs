//! THE table: every field with a reference, and the role of its value. Fields with another effect are named where it
//! counts: those that write into objects in `targets/changers.rs`, those that hold values of Secrets in
//! `build/secrets.rs`, functions in `check/function.rs`. The others are kustomize's own business.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use super::Accepts;
use super::read::is_same_key;

/// The role of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// The value is not read.
    Other,
    /// A path or URL.
    Reference(Accepts),
    /// A generator's source: a file, or `key=file`.
    Source,
    /// A patch if it reads like one, else a file.
    PatchOrFile,
    /// A patch.
    InlinePatch,
    /// A chart: a mapping with these keys.
    Chart(ChartKeys),
    ChartHome,
    /// An argument of helm.
    Argument,
    /// A variable with its value; without a value it is taken from the machine that builds.
    Variable,
    /// A field that kustomize reads and this program does not follow, with a hint.
    Unsupported(&'static str),
}

use Accepts::{Component, Either, File, Plugin};
use Role::{Argument, Chart, ChartHome, InlinePatch, Other, PatchOrFile, Reference, Source, Unsupported, Variable};

/// Fields, each with its path from the top, such as `patches[].path`.
type Table = &'static [(&'static str, Role)];

/// The keys of a chart, which differ between the fields that list charts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ChartKeys {
    name: &'static str,
    pub version: &'static str,
    pub repo: &'static str,
    /// The key of the file of values.
    pub values: &'static str,
}

impl ChartKeys {
    /// The keys of a chart, in the order name, version, repository, file of values.
    pub(super) fn all(self) -> [&'static str; 4] {
        [self.name, self.version, self.repo, self.values]
    }
}

const CHART: Role = Chart(ChartKeys { name: "name", version: "version", repo: "repo", values: "valuesFile" });
const OLD_CHART: Role =
    Chart(ChartKeys { name: "chartName", version: "chartVersion", repo: "chartRepoUrl", values: "values" });
const CONFIG_HOME: Role = Unsupported("remove it: configure helm where it runs");

const KUSTOMIZATION: Table = &[
    ("apiVersion", Other),
    ("kind", Other),
    ("resources[]", Reference(Either)),
    // Appended to `resources` (FixKustomization), so a file does as well as a root.
    ("bases[]", Reference(Either)),
    ("components[]", Reference(Component)),
    ("crds[]", Reference(File)),
    ("configurations[]", Reference(File)),
    ("openapi.path", Reference(File)),
    ("patches[].path", Reference(File)),
    ("patches[].patch", InlinePatch),
    ("patchesStrategicMerge[]", PatchOrFile),
    ("patchesJson6902[].path", Reference(File)),
    ("patchesJson6902[].patch", InlinePatch),
    ("replacements[].path", Reference(File)),
    ("configMapGenerator[].files[]", Source),
    ("configMapGenerator[].envs[]", Reference(File)),
    ("configMapGenerator[].env", Reference(File)),
    ("secretGenerator[].files[]", Source),
    ("secretGenerator[].envs[]", Reference(File)),
    ("secretGenerator[].env", Reference(File)),
    ("generators[]", Reference(Plugin)),
    ("transformers[]", Reference(Plugin)),
    ("validators[]", Reference(Plugin)),
    // Helm gets it as the namespace of charts here and in the bases.
    ("namespace", Argument),
    ("helmGlobals.chartHome", ChartHome),
    ("helmGlobals.configHome", CONFIG_HOME),
    ("helmCharts[]", CHART),
    ("helmCharts[].valuesFile", Reference(File)),
    ("helmCharts[].additionalValuesFiles[]", Reference(File)),
    ("helmChartInflationGenerator[]", OLD_CHART),
    ("helmChartInflationGenerator[].chartHome", ChartHome),
    ("helmChartInflationGenerator[].helmHome", CONFIG_HOME),
    ("helmChartInflationGenerator[].values", Reference(File)),
    // The fields below have no reference. They are listed so that a misspelt field can be reported.
    ("buildMetadata", Other),
    ("metadata", Other),
    ("namePrefix", Other),
    ("nameSuffix", Other),
    ("commonLabels", Other),
    ("labels", Other),
    ("commonAnnotations", Other),
    ("images", Other),
    ("imageTags", Other),
    ("replicas", Other),
    ("vars", Other),
    ("sortOptions", Other),
    ("generatorOptions", Other),
];

/// The configurations with `apiVersion: builtin` that can be loaded (api/internal/plugins/builtinhelpers). Their paths
/// are relative to the kustomization that lists them.
const BUILTIN: &[(&str, Table)] = &[
    ("AnnotationsTransformer", NO_FILES),
    ("HashTransformer", NO_FILES),
    ("IAMPolicyGenerator", NO_FILES),
    ("ImageTagTransformer", NO_FILES),
    ("LabelTransformer", NO_FILES),
    ("NamespaceTransformer", NO_FILES),
    ("PrefixSuffixTransformer", NO_FILES),
    ("PrefixTransformer", NO_FILES),
    ("ReplicaCountTransformer", NO_FILES),
    ("SuffixTransformer", NO_FILES),
    ("ConfigMapGenerator", GENERATOR),
    ("SecretGenerator", GENERATOR),
    ("PatchTransformer", &[("path", Reference(File)), ("patch", InlinePatch)]),
    ("PatchJson6902Transformer", &[("path", Reference(File)), ("jsonOp", InlinePatch)]),
    ("PatchStrategicMergeTransformer", &[("paths[]", PatchOrFile), ("patches", InlinePatch)]),
    ("ReplacementTransformer", &[("replacements[].path", Reference(File))]),
    ("ValueAddTransformer", &[("targetFilePath", Reference(File))]),
    (
        "HelmChartInflationGenerator",
        &[
            ("", CHART),
            ("chartHome", ChartHome),
            ("configHome", CONFIG_HOME),
            ("valuesFile", Reference(File)),
            ("additionalValuesFiles[]", Reference(File)),
        ],
    ),
];

const NO_FILES: Table = &[("", Other)];

// kustomize does not read `env` here.
const GENERATOR: Table = &[("files[]", Source), ("envs[]", Reference(File))];

/// `runtimeutil.FunctionSpec`.
const FUNCTION_SPEC: Table = &[
    ("container.image", Other),
    ("container.network", Other),
    ("container.envs[]", Variable),
    ("container.mounts", Unsupported("remove it, and write what the function needs into its configuration")),
    ("exec.path", Other),
];

/// A table as a tree of keys.
#[derive(Debug, Default)]
pub(super) struct FieldTree {
    pub role: Option<Role>,
    /// Subtrees by the name of a field; by `[]` for the items of a list.
    pub names: BTreeMap<&'static str, FieldTree>,
    /// Whether every other field is an error.
    pub is_complete: bool,
}

impl FieldTree {
    /// The field of a key, with its canonical name; `None` if the table does not have it.
    pub(super) fn field(&self, key: &str) -> Option<(&'static str, &FieldTree)> {
        self.names.iter().find(|(name, _)| is_same_key(name, key)).map(|(name, field)| (*name, field))
    }
}

pub(super) static KUSTOMIZATION_FIELDS: LazyLock<FieldTree> =
    LazyLock::new(|| FieldTree { is_complete: true, ..field_tree(KUSTOMIZATION) });
pub(super) static FUNCTION_FIELDS: LazyLock<FieldTree> = LazyLock::new(|| field_tree(FUNCTION_SPEC));
pub(super) static BUILTIN_FIELDS: LazyLock<HashMap<&str, FieldTree>> =
    LazyLock::new(|| BUILTIN.iter().map(|(kind, table)| (*kind, field_tree(table))).collect());

/// A table as a tree, by which a document is read from its top: each path of the table is split at its dots, and `[]`
/// is a step of its own. An empty path sets the role of the top.
fn field_tree(table: Table) -> FieldTree {
    let mut top = FieldTree::default();
    for (path, role) in table {
        let mut field = &mut top;
        for step in path.split('.').filter(|step| !step.is_empty()) {
            field = field.names.entry(step.trim_end_matches("[]")).or_default();
            if step.ends_with("[]") {
                field = field.names.entry("[]").or_default();
            }
        }
        field.role = Some(*role);
    }
    top
}
