//! Facts about an object that a reviewer must know. Each function returns texts; a text that only the new object has
//! is a consequence of the change.

use std::collections::BTreeMap;

use serde_yaml::Value;

use crate::targets::policy::{ObjectPolicy, at, full_name_at, is_crd, is_kind, is_true, items, text};
use crate::tree::path;

const RBAC: &str = "rbac.authorization.k8s.io";

/// The spec of the pod that an object is, or makes; null if it makes none.
fn pod_spec(object: &Value) -> &Value {
    let all = ["spec.jobTemplate.spec.template.spec", "spec.template.spec", "spec"];
    let mut pods = all.iter().filter_map(|keys| at(object, keys));
    pods.find(|pod| pod.get("containers").is_some()).unwrap_or(&Value::Null)
}

/// The containers of the pod that an object is, or makes, with the init containers.
fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    let spec = pod_spec(object);
    items(spec, "initContainers").chain(items(spec, "containers"))
}

/// The names of the privileged containers.
pub(super) fn privileged(object: &Value) -> Vec<String> {
    let all = containers(object).filter(|container| is_true(container, "securityContext.privileged"));
    all.map(|container| format!("`{}`", text(container, "name"))).collect()
}

/// The directories of the node that an object mounts.
pub(super) fn host_paths(object: &Value) -> Vec<String> {
    let volumes = items(pod_spec(object), "volumes").map(|volume| text(volume, "hostPath.path"));
    let own = Some(object).filter(|object| is_kind(object, "/PersistentVolume"));
    let all = volumes.chain(own.map(|volume| text(volume, "spec.hostPath.path")));
    all.filter(|path| !path.is_empty()).map(|path| format!("`{path}`")).collect()
}

/// The fields by which a pod shares namespaces of the node.
pub(super) fn host_namespaces(object: &Value) -> Vec<String> {
    let mut all = vec!["hostNetwork", "hostPID", "hostIPC"];
    all.retain(|field| is_true(pod_spec(object), field));
    all.into_iter().map(|field| format!("`{field}`")).collect()
}

/// The cluster role that a ClusterRoleBinding gives, with those who get it.
pub(super) fn bindings(object: &Value) -> Vec<String> {
    if !is_kind(object, &format!("{RBAC}/ClusterRoleBinding")) {
        return Vec::new();
    }
    let subjects: Vec<String> =
        items(object, "subjects").map(|item| format!("{} {}", text(item, "kind"), full_name_at(item, ""))).collect();
    vec![format!("{} for {}", text(object, "roleRef.name"), subjects.join(", "))]
}

/// The rules of a role that have `*` in one of their lists.
pub(super) fn wildcards(object: &Value) -> Vec<String> {
    const FIELDS: [&str; 4] = ["verbs", "resources", "nonResourceURLs", "apiGroups"];
    if !["Role", "ClusterRole"].iter().any(|kind| is_kind(object, &format!("{RBAC}/{kind}"))) {
        return Vec::new();
    }
    items(object, "rules")
        .filter_map(|rule| {
            let texts = |field| items(rule, field).filter_map(Value::as_str).collect::<Vec<_>>();
            let all = FIELDS.map(|field| (field, texts(field)));
            let is_wild = all.iter().any(|(_, texts)| texts.contains(&"*"));
            let all = all.iter().filter(|(_, texts)| !texts.is_empty());
            let all: Vec<_> = all.map(|(field, texts)| format!("{field} {}", texts.join(", "))).collect();
            is_wild.then(|| all.join("; "))
        })
        .collect()
}

/// `replicas: 0`, if a workload is scaled to no pods.
pub(super) fn no_replicas(object: &Value) -> Vec<String> {
    const KINDS: [&str; 5] =
        ["apps/Deployment", "apps/StatefulSet", "apps/ReplicaSet", "/ReplicationController", "argoproj.io/Rollout"];
    let can_scale = KINDS.iter().any(|kind| is_kind(object, kind));
    let is_none = at(object, "spec.replicas").and_then(Value::as_u64) == Some(0);
    if can_scale && is_none { vec!["`replicas: 0`".to_owned()] } else { Vec::new() }
}

/// Why the objects of an engine's object are not deployed yet.
pub(super) fn waits(object: &Value) -> Vec<String> {
    let policy = ObjectPolicy::of(object);
    let is_suspended = policy.as_ref().is_some_and(|policy| policy.is_suspended);
    let is_manual = policy.is_some_and(|policy| !policy.is_automatic);
    let all = [(is_suspended, "`suspend: true`"), (is_manual, "manual sync")];
    all.iter().filter(|(is_it, _)| *is_it).map(|(_, what)| (*what).to_owned()).collect()
}

/// The text that says whether a target deletes objects that its source removes; empty if that is unknown.
pub(super) fn prunes(object: &Value) -> Vec<String> {
    let what = match ObjectPolicy::of(object).and_then(|policy| policy.prunes) {
        Some(true) => "on: removed objects are deleted",
        Some(false) => "off: removed objects stay",
        None => return Vec::new(),
    };
    vec![what.to_owned()]
}

/// The fields of a target that say where it deploys to, with their values.
pub(super) fn destinations(object: &Value) -> Vec<String> {
    let all = ObjectPolicy::of(object).map_or(Vec::new(), |policy| policy.destination);
    all.into_iter()
        .map(|(field, value): (&str, String)| match value.as_str() {
            "" => format!("{field} none"),
            value => format!("{field} `{value}`"),
        })
        .collect()
}

/// The [`destinations`] without the namespaces that its build writes.
pub(super) fn clusters(object: &Value) -> Vec<String> {
    let mut all = destinations(object);
    all.retain(|field| !field.starts_with("targetNamespace "));
    all
}

/// The images and charts whose major version changes; `None` if there are none. An image is the same on both sides if
/// its path in the object and the last part of its name are equal. A mirror changes the other parts of the name: then
/// both names are shown.
pub(super) fn major_version(old: &Value, new: &Value) -> Option<String> {
    let old = versions(old);
    let mut moves = Vec::new();
    for (key, (to, is)) in versions(new) {
        if let Some((from, was)) = old.get(&key).copied()
            && let (Some(old_major), Some(new_major)) = (first_number(was), first_number(is))
            && old_major != new_major
        {
            let (kind, ..) = key;
            moves.push(if from == to {
                format!("{kind} {to} {was} -> {is}")
            } else {
                format!("{kind} {from}:{was} -> {to}:{is}")
            });
        }
    }
    (!moves.is_empty()).then(|| moves.join(", "))
}

/// The versions of a CustomResourceDefinition that are no longer served, and the removed fields of the others; `None`
/// if there are none.
pub(super) fn removed_fields(old: &Value, new: &Value) -> Option<String> {
    // How many are named.
    const NAMED: usize = 5;
    if !is_crd(old) || !is_crd(new) {
        return None;
    }
    let (is_served, mut gone) = (served(new), Vec::new());
    for (name, was) in served(old) {
        match is_served.get(name) {
            None => gone.push(format!("version {name}")),
            Some(is) => {
                // Without two schemas nothing tells which fields are removed.
                let schema = "schema.openAPIV3Schema";
                if let (Some(was), Some(is)) = (at(was, schema), at(is, schema)) {
                    collect_removed_fields(was, is, name, &mut gone);
                }
            }
        }
    }
    let more = gone.len().saturating_sub(NAMED);
    gone.truncate(NAMED);
    gone.extend((more > 0).then(|| format!("and {more} more")));
    (!gone.is_empty()).then(|| gone.join(", "))
}

/// The versions of a CustomResourceDefinition that the API server serves.
fn served(object: &Value) -> BTreeMap<&str, &Value> {
    let all = items(object, "spec.versions").filter(|version| is_true(version, "served"));
    all.map(|version| (text(version, "name"), version)).collect::<BTreeMap<&str, &Value>>()
}

/// Adds the properties that a schema has no longer, by their `path`.
fn collect_removed_fields(was: &Value, is: &Value, path: &str, gone: &mut Vec<String>) {
    // Such a schema keeps fields that it does not know, so none is lost.
    if is_true(is, "x-kubernetes-preserve-unknown-fields") {
        return;
    }
    for (name, was) in at(was, "properties").and_then(Value::as_mapping).into_iter().flatten() {
        let path = format!("{path}.{}", name.as_str().unwrap_or_default());
        match is.get("properties").and_then(|all| all.get(name)) {
            Some(is) => collect_removed_fields(was, is, &path, gone),
            None => gone.push(format!("`{path}`")),
        }
    }
    // A schema without these may accept any item, so nothing is surely removed.
    for (field, mark) in [("items", "[]"), ("additionalProperties", ".*")] {
        if let (Some(was), Some(is)) = (was.get(field), is.get(field)) {
            collect_removed_fields(was, is, &format!("{path}{mark}"), gone);
        }
    }
}

/// The old and the new image of each container whose image changed.
pub(crate) fn moved_images(old: &Value, new: &Value) -> Vec<(String, String)> {
    let (old, new) = (container_images(old), container_images(new));
    let moved = new.into_iter().filter_map(|(name, is)| Some((old.get(&name)?.clone(), is)));
    moved.filter(|(was, is)| was != is && !was.is_empty()).collect()
}

/// The images of containers by their names.
fn container_images(object: &Value) -> BTreeMap<String, String> {
    let all =
        containers(object).map(|container| (text(container, "name").to_owned(), text(container, "image").to_owned()));
    all.collect::<BTreeMap<String, String>>()
}

/// The name and version of each image and chart, by its kind, its path in the object and the last part of its name. The
/// other parts are not in the key: a mirror changes them.
type Versions<'a> = BTreeMap<(&'static str, String, &'a str), (&'a str, &'a str)>;

/// Adds the images with a tag in a value at a `path`: an `image`, or a `repository` with its `tag`, as values of charts
/// have them. Digests are cut off.
fn add_images<'a>(value: &'a Value, path: &str, all: &mut Versions<'a>) {
    let image = value.get("image").and_then(Value::as_str).unwrap_or_default();
    let image = image.split('@').next().and_then(|image| image.rsplit_once(':'));
    let parts = Some((text(value, "repository"), text(value, "tag").split('@').next().unwrap_or_default()));
    for (image, tag) in [image, parts].into_iter().flatten().filter(is_whole) {
        all.insert(("image", path.to_owned(), path::name(image)), (image, tag));
    }
    for (key, value) in value.as_mapping().into_iter().flatten() {
        add_images(value, &format!("{path}.{}", key.as_str().unwrap_or_default()), all);
    }
    // An item is found by its name, such as that of a container, because its position may change.
    for item in value.as_sequence().into_iter().flatten() {
        add_images(item, &format!("{path}.{}", text(item, "name")), all);
    }
}

/// Whether both parts of an image are known.
fn is_whole((image, tag): &(&str, &str)) -> bool {
    !image.is_empty() && !tag.is_empty() && !tag.contains('/')
}

/// The versions of the images and charts that an object names.
fn versions(object: &Value) -> Versions<'_> {
    let mut all = BTreeMap::new();
    add_images(object, "", &mut all);
    // Any object of a chart has a label NAME-VERSION. Both may have a `-`, but only the version begins with a number
    // that has a `.` after it.
    let label = at(object, "metadata.labels").and_then(|labels| labels.get("helm.sh/chart"));
    let label = label.and_then(Value::as_str).unwrap_or_default();
    let mut ends = label.match_indices('-').map(|(end, _)| (&label[..end], &label[end + 1..]));
    let label = ends.find(|(_, version)| version.contains('.') && first_number(version).is_some());
    // The chart of a HelmRelease of Flux, and those of an Application of Argo CD.
    let release = at(object, "spec.chart.spec").map(|chart| (text(chart, "chart"), text(chart, "version")));
    let sources = at(object, "spec.source").into_iter().chain(items(object, "spec.sources"));
    let sources = sources.map(|source| (text(source, "chart"), text(source, "targetRevision")));
    // A chart in an OCI repository has its version in the source, not in the release.
    let is_oci = text(object, "kind") == "OCIRepository";
    let packed =
        ["spec.ref.tag", "spec.ref.semver"].map(|field| (path::name(text(object, "spec.url")), text(object, field)));
    let packed = packed.into_iter().filter(|(_, version)| is_oci && !version.is_empty());
    let charts = label.into_iter().chain(release).chain(sources).chain(packed);
    for (chart, version) in charts {
        all.insert(("chart", String::new(), path::name(chart)), (chart, version));
    }
    all
}

/// The first number of a version, or of a range. `None` for a date, or for any other text.
fn first_number(version: &str) -> Option<u64> {
    // A number as large as a year begins a date.
    const DATES: u64 = 1000;
    let digits = version.trim_start_matches(['^', '~', '>', '=', ' ']);
    let digits = digits.strip_prefix('v').unwrap_or(digits);
    let rest = digits.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let is_version = rest.is_empty() || rest.starts_with(['.', '-', '+']);
    let number = digits[..digits.len() - rest.len()].parse().ok()?;
    (is_version && number < DATES).then_some(number)
}
