//! The fields of an engine's object about the fate of the objects that it deploys.

use serde::de::DeserializeOwned;
use serde_yaml::Value;

use super::argo::{self, APPLICATION, FINALIZER, SET};
use super::flux;

/// The fate of the objects that a target deploys.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectPolicy {
    /// Whether objects that are no longer built are deleted; `None` if that is unknown.
    pub prunes: Option<bool>,
    /// Whether its objects are deleted with it; `None` if it deploys nothing itself.
    pub deletes_objects: Option<bool>,
    /// Whether a CustomResourceDefinition is not deleted with it.
    pub leaves_crds: bool,
    /// Whether Helm deploys it, which never deletes a CustomResourceDefinition in `crds` of a chart.
    pub is_release: bool,
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
    qualified(namespace, name)
}

/// `NAMESPACE/NAME`, as `kubectl` prints them.
pub(super) fn qualified(namespace: &str, name: &str) -> String {
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

/// Deserializes an object. One with a value of a wrong type has the default.
fn read<T: DeserializeOwned + Default>(object: &Value) -> T {
    // The API server refuses an object with a value of a wrong type.
    T::deserialize(object).unwrap_or_default()
}

impl ObjectPolicy {
    /// Reads the policy from an object of an engine, to tell what a change of the deployed objects does in the cluster;
    /// `None` for any other object.
    pub(crate) fn of(object: &Value) -> Option<ObjectPolicy> {
        match (group(object), text(object, "kind")) {
            (ARGO, APPLICATION) => Some(Self::of_application(read(object))),
            (ARGO, SET) => {
                let set: argo::Fate = read(object);
                let deletes_objects = Some(!set.spec.sync_policy.preserve_resources_on_deletion);
                Some(ObjectPolicy { deletes_objects, is_automatic: true, ..ObjectPolicy::default() })
            }
            (group, kind) if group.ends_with(FLUX) => Some(Self::of_flux(read(object), kind)),
            _ => None,
        }
    }

    /// The policy of a `Kustomization`, a `HelmRelease`, or another kind of Flux, which deploys nothing itself.
    fn of_flux(flux::Fate { metadata, spec }: flux::Fate, kind: &str) -> ObjectPolicy {
        let is_kustomization = kind == flux::KUSTOMIZATION;
        // Helm deletes objects that a release no longer has.
        let prunes = if is_kustomization { Some(spec.prune) } else { (kind == flux::RELEASE).then_some(true) };
        let deletes_objects = match &*spec.deletion_policy {
            "Orphan" => Some(false),
            "Delete" | "WaitForTermination" => Some(true),
            // `MirrorPrune`, the default.
            _ => prunes,
        };
        // A dependency without a namespace is in that of the object.
        let depends_on = spec.depends_on.iter().map(|other| {
            let namespaces = [&other.namespace, &metadata.namespace];
            qualified(namespaces.into_iter().find(|namespace| !namespace.is_empty()).map_or("", |own| own), &other.name)
        });
        ObjectPolicy {
            prunes,
            // A suspended object is deleted without its objects.
            deletes_objects: deletes_objects.map(|deletes| deletes && !spec.suspend),
            leaves_crds: false,
            is_release: kind == flux::RELEASE,
            forces: is_kustomization && spec.force,
            is_suspended: spec.suspend,
            is_automatic: true,
            // The build writes `targetNamespace` into all objects that can have a namespace. The namespace of a release
            // is not looked for.
            namespace: if is_kustomization && spec.target_namespace.is_empty() { "default" } else { "" }.to_owned(),
            depends_on: depends_on.collect(),
            destination: vec![
                ("targetNamespace", spec.target_namespace),
                ("kubeConfig.secretRef.name", spec.kube_config.secret_ref.name),
                ("kubeConfig.configMapRef.name", spec.kube_config.config_map_ref.name),
            ],
        }
    }

    /// The policy of an `Application`.
    fn of_application(argo::Fate { metadata, spec }: argo::Fate) -> ObjectPolicy {
        let automated = spec.sync_policy.automated.filter(|automated| automated.enabled != Some(false));
        let cluster = match (&*spec.destination.server, &*spec.destination.name) {
            // Argo CD calls its own cluster by this name.
            ("", "in-cluster") => "https://kubernetes.default.svc",
            ("", name) => name,
            (server, _) => server,
        };
        let namespace = &spec.destination.namespace;
        ObjectPolicy {
            // Without automation, whoever starts a sync decides.
            prunes: automated.as_ref().map(|automated| automated.prune),
            deletes_objects: Some(metadata.finalizers.iter().any(|finalizer| finalizer.starts_with(FINALIZER))),
            // `shouldBeDeleted` in Argo CD's `controller/appcontroller.go`.
            leaves_crds: true,
            forces: spec.sync_policy.sync_options.iter().any(|option| FORCING.contains(&&**option)),
            is_automatic: automated.is_some(),
            destination: vec![("cluster", cluster.to_owned()), ("namespace", namespace.clone())],
            namespace: namespace.clone(),
            ..ObjectPolicy::default()
        }
    }
}

/// The options of Argo CD that make an object anew.
const FORCING: [&str; 2] = ["Replace=true", "Force=true"];

/// The value of an annotation of an object; empty if it has none.
fn annotation<'a>(object: &'a Value, name: &str) -> &'a str {
    let annotations = at(object, "metadata.annotations");
    annotations.and_then(|all| all.get(name)).and_then(Value::as_str).unwrap_or_default()
}

/// The sync options of Argo CD in an annotation of an object.
fn options(object: &Value) -> impl Iterator<Item = &str> {
    annotation(object, "argocd.argoproj.io/sync-options").split(',').map(str::trim)
}

pub(crate) fn is_crd(object: &Value) -> bool {
    is_kind(object, "apiextensions.k8s.io/CustomResourceDefinition")
}

/// Whether an object must not be pruned, or not be deleted with its target.
pub(crate) fn must_stay(object: &Value, with_target: bool) -> bool {
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
