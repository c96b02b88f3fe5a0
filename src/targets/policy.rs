//! The fields of an engine's object about the fate of the objects that it deploys.

use serde_yaml::Value;

use super::argo::FINALIZER;
use super::flux::RELEASE;

/// The fate of the objects that a target deploys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPolicy {
    /// Whether objects that are no longer built are deleted; `None` if that is unknown.
    pub prunes: Option<bool>,
    /// Whether its objects are deleted with it; `None` if it deploys nothing itself.
    pub deletes_objects: Option<bool>,
    /// Whether a CustomResourceDefinition is not deleted with it.
    pub leaves_crds: bool,
    /// Whether objects that cannot be changed are deleted and made again.
    pub forces: bool,
    /// Whether nothing is deployed until it is resumed.
    pub is_suspended: bool,
    /// Whether a change is deployed without anybody who asks for it.
    pub is_automatic: bool,
    /// The namespace of objects without one, if their kind has namespaces; empty if that is unknown.
    pub namespace: String,
    /// The destination of the deployment: names of fields with their values.
    pub destination: Vec<(&'static str, String)>,
    /// The objects of its kind that must be ready before, as `NAMESPACE/NAME`.
    pub depends_on: Vec<String>,
}

const FLUX: &str = ".toolkit.fluxcd.io";
pub(crate) const KUSTOMIZATION: &str = "kustomize.toolkit.fluxcd.io/Kustomization";
pub(crate) const ARGO: &str = "argoproj.io";

/// The value at these keys.
pub(crate) fn at<'a>(value: &'a Value, keys: &str) -> Option<&'a Value> {
    keys.split('.').try_fold(value, |value, key| value.get(key))
}

/// The text at these keys; empty if there is none.
pub(crate) fn text<'a>(value: &'a Value, keys: &str) -> &'a str {
    at(value, keys).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn is_true(value: &Value, keys: &str) -> bool {
    at(value, keys).and_then(Value::as_bool) == Some(true)
}

/// The items of the list at these keys.
pub(crate) fn items<'a>(value: &'a Value, keys: &str) -> impl Iterator<Item = &'a Value> {
    at(value, keys).and_then(Value::as_sequence).into_iter().flatten()
}

fn group(object: &Value) -> &str {
    text(object, "apiVersion").rsplit_once('/').map_or("", |(group, _)| group)
}

/// Whether an object is of this kind: `GROUP/KIND`.
pub(crate) fn is_kind(object: &Value, kind: &str) -> bool {
    kind.split_once('/') == Some((group(object), text(object, "kind")))
}

/// `NAMESPACE/NAME` of an object.
pub(crate) fn full_name(object: &Value) -> String {
    full_name_at(object, "metadata.")
}

/// `NAMESPACE/NAME` from keys that begin with `below`.
pub(crate) fn full_name_at(value: &Value, below: &str) -> String {
    let [namespace, name] = ["namespace", "name"].map(|key| text(value, &format!("{below}{key}")));
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

impl ObjectPolicy {
    /// Reads an object of an engine; `None` for any other object.
    pub(crate) fn of(object: &Value) -> Option<ObjectPolicy> {
        match (group(object), text(object, "kind")) {
            (ARGO, "Application") => Some(ObjectPolicy::argo(object)),
            (ARGO, "ApplicationSet") => {
                let keeps = is_true(object, "spec.syncPolicy.preserveResourcesOnDeletion");
                Some(ObjectPolicy { deletes_objects: Some(!keeps), is_automatic: true, ..ObjectPolicy::default() })
            }
            (group, kind) if group.ends_with(FLUX) => Some(ObjectPolicy::flux(object, kind)),
            _ => None,
        }
    }

    fn flux(object: &Value, kind: &str) -> ObjectPolicy {
        let namespace = text(object, "metadata.namespace");
        let depends_on = items(object, "spec.dependsOn");
        let is_kustomization = kind == "Kustomization";
        let is_suspended = is_true(object, "spec.suspend");
        // Helm deletes objects that a release no longer has.
        let prunes = match kind {
            "Kustomization" => Some(is_true(object, "spec.prune")),
            _ => (kind == RELEASE).then_some(true),
        };
        let deletes_objects = match text(object, "spec.deletionPolicy") {
            "Orphan" => Some(false),
            "Delete" | "WaitForTermination" => Some(true),
            _ => prunes,
        };
        let fields = ["targetNamespace", "kubeConfig.secretRef.name", "kubeConfig.configMapRef.name"];
        let destination = fields.map(|field| (field, text(object, &format!("spec.{field}")).to_owned()));
        // Any other namespace is written by the build into all objects that can have one.
        let is_default = is_kustomization && destination[0].1.is_empty();
        ObjectPolicy {
            prunes,
            // A suspended object is deleted without its objects.
            deletes_objects: deletes_objects.map(|takes| takes && !is_suspended),
            leaves_crds: false,
            forces: is_kustomization && is_true(object, "spec.force"),
            is_suspended,
            is_automatic: true,
            namespace: if is_default { "default".to_owned() } else { String::new() },
            destination: destination.into(),
            depends_on: depends_on
                .map(|value: &Value| {
                    let own = [text(value, "namespace"), namespace].into_iter().find(|own| !own.is_empty());
                    own.map_or(text(value, "name").to_owned(), |own| format!("{own}/{}", text(value, "name")))
                })
                .collect(),
        }
    }

    fn argo(object: &Value) -> ObjectPolicy {
        let automated = at(object, "spec.syncPolicy.automated").filter(|at| !at.is_null());
        let automated = automated.filter(|sync| sync.get("enabled").and_then(Value::as_bool) != Some(false));
        let mut options = items(object, "spec.syncPolicy.syncOptions").filter_map(Value::as_str);
        let of = |field: &str| text(object, &format!("spec.destination.{field}"));
        let mut finalizers = items(object, "metadata.finalizers").filter_map(Value::as_str);
        let cluster = match (of("server"), of("name")) {
            ("", "in-cluster") => "https://kubernetes.default.svc",
            ("", name) => name,
            (server, _) => server,
        };
        ObjectPolicy {
            prunes: automated.map(|sync| is_true(sync, "prune")),
            deletes_objects: Some(finalizers.any(|finalizer| finalizer.starts_with(FINALIZER))),
            leaves_crds: true,
            forces: options.any(|option| FORCING.contains(&option)),
            is_automatic: automated.is_some(),
            namespace: of("namespace").to_owned(),
            destination: vec![("cluster", cluster.to_owned()), ("namespace", of("namespace").to_owned())],
            ..ObjectPolicy::default()
        }
    }
}

/// The options of Argo CD that make an object anew.
const FORCING: [&str; 2] = ["Replace=true", "Force=true"];

fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let annotations = at(object, "metadata.annotations");
    annotations.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default()
}

fn options(object: &Value) -> impl Iterator<Item = &str> {
    annotation(object, "argocd.argoproj.io/sync-options").split(',').map(str::trim)
}

pub(crate) fn is_crd(object: &Value) -> bool {
    is_kind(object, "apiextensions.k8s.io/CustomResourceDefinition")
}

/// Whether an object must not be pruned, or not be deleted with its target.
pub(crate) fn stays(object: &Value, with_target: bool) -> bool {
    annotation(object, "kustomize.toolkit.fluxcd.io/prune") == "disabled"
        || annotation(object, "helm.sh/resource-policy") == "keep"
        || options(object).any(|option| option == if with_target { "Delete=false" } else { "Prune=false" })
}

/// Whether pruning an object, or deleting it with its target, needs a confirmation.
pub(crate) fn needs_confirmation(object: &Value, with_target: bool) -> bool {
    options(object).any(|option| option == if with_target { "Delete=confirm" } else { "Prune=confirm" })
}

/// Whether an object says that it is made anew where it cannot be changed, as a hook is.
pub(crate) fn is_replaced(object: &Value) -> bool {
    const HOOKS: [&str; 2] = ["argocd.argoproj.io/hook", "helm.sh/hook"];
    annotation(object, "kustomize.toolkit.fluxcd.io/force") == "enabled"
        || options(object).any(|option| FORCING.contains(&option))
        || HOOKS.iter().any(|name| !annotation(object, name).is_empty())
}
