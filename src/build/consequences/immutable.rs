//! Fields that the API server does not let anybody change.

use serde_yaml::{Mapping, Value};

use crate::build::secrets;
use crate::targets::policy::{at, is_kind, text};

/// Kinds with fields that cannot be changed. A field with `?` may be filled in by a cluster, so that only one side has
/// it. After `=` is the default of a field.
const FIELDS: &str = "
    apps/Deployment spec.selector
    apps/DaemonSet spec.selector
    apps/ReplicaSet spec.selector
    apps/StatefulSet spec.selector spec.serviceName spec.podManagementPolicy=OrderedReady spec.volumeClaimTemplates
    batch/Job spec.selector? spec.template?
    /PersistentVolumeClaim spec.accessModes spec.selector spec.storageClassName? spec.volumeName?
    /PersistentVolumeClaim spec.volumeMode=Filesystem spec.dataSource? spec.dataSourceRef?
    rbac.authorization.k8s.io/RoleBinding roleRef?
    rbac.authorization.k8s.io/ClusterRoleBinding roleRef?
    /Service spec.clusterIP?";

/// The immutable fields that surely change, for a message; `None` if there are none.
pub(super) fn changed(old: &Value, new: &Value) -> Option<String> {
    // A Service may become or cease to be an ExternalName, which has no address: then the address may change.
    if [old, new].iter().any(|object| text(object, "spec.type") == "ExternalName") {
        return None;
    }
    let mut all = Vec::new();
    for line in FIELDS.lines() {
        let mut words = line.split_whitespace();
        if words.next().is_some_and(|kind| is_kind(old, kind)) {
            all.extend(words.filter_map(|field| change(old, new, field)));
        }
    }
    (!all.is_empty()).then(|| all.join(", "))
}

/// The name of a field of [`FIELDS`], if the field surely changes.
fn change<'a>(old: &Value, new: &Value, field: &'a str) -> Option<&'a str> {
    let (name, absent) = field.split_once(['=', '?']).unwrap_or((field, ""));
    let is_filled_in = field.ends_with('?');
    let value_in = |object| at(object, name).filter(|value| !is_empty(value));
    let is_changed = match (value_in(old), value_in(new)) {
        (Some(old), Some(new)) => differs(old, new),
        // If one side lacks the field, the other side may have what the API server would fill in.
        (value, other) => {
            !is_filled_in
                && value.or(other).is_some_and(|value: &Value| value.as_str().is_none_or(|text| text != absent))
        }
    };
    is_changed.then_some(name)
}

/// Whether a value says the same as a missing field.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Whether two values are surely not the same to the API server.
fn differs(old: &Value, new: &Value) -> bool {
    match (old, new) {
        (Value::Mapping(old), Value::Mapping(new)) => {
            old.keys().chain(new.keys()).any(|key| field_differs(key, old.get(key), new.get(key)))
        }
        (Value::Sequence(old), Value::Sequence(new)) => {
            old.len() != new.len() || old.iter().zip(new).any(|(old, new)| differs(old, new))
        }
        _ => {
            let [old, new] = [old, new].map(scalar);
            // The API server reads `1000m` and `1` as one quantity.
            old != new && quantity(&old).zip(quantity(&new)).is_none_or(|(old, new)| old != new)
        }
    }
}

/// Whether the values of a field of two mappings, `None` if it is missing, are surely not the same to the API server.
fn field_differs(key: &Value, old: Option<&Value>, new: Option<&Value>) -> bool {
    // The API server fills in missing fields, but none in these mappings.
    const WHOLE: [&str; 3] = ["labels", "matchLabels", "nodeSelector"];
    let [old, new] = [old, new].map(|value| value.filter(|value| !is_empty(value)));
    if key.as_str().is_some_and(|key| WHOLE.contains(&key)) {
        return old != new;
    }
    match (old, new) {
        (Some(old), Some(new)) => differs(old, new),
        // It does not fill in a list.
        (Some(Value::Sequence(_)), None) | (None, Some(Value::Sequence(_))) => true,
        (Some(mapping @ Value::Mapping(_)), None) | (None, Some(mapping @ Value::Mapping(_))) => {
            differs(mapping, &Value::Mapping(Mapping::new()))
        }
        // A scalar that only one side has may be a default.
        _ => false,
    }
}

/// A scalar as a text; anything else as no scalar is.
fn scalar(value: &Value) -> String {
    secrets::scalar_text(value).unwrap_or_else(|| format!("{value:?}"))
}

/// The old and the new size of a claim that asks for less storage, for a message.
pub(super) fn smaller(old: &Value, new: &Value) -> Option<String> {
    let claim = Some(old).filter(|old| is_kind(old, "/PersistentVolumeClaim"))?;
    let (old, new) = (requested_storage(claim)?, requested_storage(new)?);
    (quantity(&new)? < quantity(&old)?).then(|| format!("{old} -> {new}"))
}

/// The storage that a claim requests.
fn requested_storage(claim: &Value) -> Option<String> {
    at(claim, "spec.resources.requests.storage").map(scalar)
}

/// Reads a quantity of Kubernetes, such as `10Gi` or `100m`; `None` for any other text.
fn quantity(text: &str) -> Option<f64> {
    let end = text.trim_end_matches(|c: char| c.is_ascii_alphabetic()).len();
    let (number, unit) = text.split_at(end);
    let (unit, base) = match unit.strip_suffix('i') {
        Some(unit) => (unit, 1024_f64),
        None => (unit, 1000.0),
    };
    // The power of 1000, or of 1024 with an `i`.
    let power = match unit {
        "" => 0,
        "m" => -1,
        "k" | "K" => 1,
        unit => i32::try_from("MGTPE".find(unit)?).ok()? + 2,
    };
    Some(number.parse::<f64>().ok()? * base.powi(power))
}
