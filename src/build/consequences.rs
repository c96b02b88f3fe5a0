//! What a difference of two builds brings about: data that is lost, what the API server refuses, what may do more, what
//! stops, and what deploys it all.
//!
//! One table: a row is a function of an object as it was and as it is. It says nothing that is not sure: a field that is
//! only on one side may be what the API server fills in.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde::{Deserialize as _, Serialize};
use serde_yaml::{Deserializer, Mapping, Value};

use super::compare::{self, ObjectChange, key};
use crate::targets::Target;
use crate::targets::policy::{self, Policy, at, group, text};

/// What a change of one object brings about.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Consequence {
    /// The row of the table.
    pub id: &'static str,
    /// The object: `apps/v1 Deployment NAMESPACE/NAME`.
    pub object: String,
    /// What builds it.
    pub target: String,
    pub text: String,
}

/// A row of the table.
pub(crate) struct Row {
    pub id: &'static str,
    pub group: &'static str,
    /// What it finds, in one phrase.
    pub about: &'static str,
    /// Says what it is in an object, if it is there.
    of: fn(&Seen<'_>) -> Option<String>,
}

const LOST: &str = "data is lost";
const REFUSED: &str = "the API server refuses";
const MORE: &str = "more may be done";
const STOPS: &str = "it stops";
const DEPLOYS: &str = "what deploys it";
const REVIEW: &str = "review";

const fn row(id: &'static str, group: &'static str, about: &'static str, of: fn(&Seen<'_>) -> Option<String>) -> Row {
    Row { id, group, about, of }
}

/// The table, in the order in which consequences of one object are shown.
pub(crate) const TABLE: &[Row] = &[
    row("removed-statefulset", LOST, "a StatefulSet is removed", |seen| seen.removed("apps/StatefulSet")),
    row("removed-pvc", LOST, "a PersistentVolumeClaim is removed, perhaps with the data of its volume", |seen| {
        seen.removed("/PersistentVolumeClaim")
    }),
    row("removed-namespace", LOST, "a Namespace is removed, with all that is in it", |seen| seen.removed("/Namespace")),
    row("removed-crd", LOST, "a CustomResourceDefinition is removed, with all objects of its kind", |seen| {
        seen.removed("apiextensions.k8s.io/CustomResourceDefinition")
    }),
    row("removed-networkpolicy", LOST, "a NetworkPolicy is removed, so that what it denied may pass", |seen| {
        seen.removed("networking.k8s.io/NetworkPolicy")
    }),
    row("smaller-pvc", LOST, "a PersistentVolumeClaim asks for less, which is refused", |seen| seen.smaller()),
    row("immutable-field", REFUSED, "a field changes that cannot be changed", |seen| seen.immutable()),
    row("privileged", MORE, "a container is privileged", |seen| seen.new_in(privileged)),
    row("host-path", MORE, "a volume is a path of the node", |seen| seen.new_in(host_paths)),
    row("host-namespace", MORE, "a pod is not isolated from its node", |seen| seen.new_in(host_namespaces)),
    row("cluster-role-binding", MORE, "a ClusterRoleBinding is new", |seen| seen.bound()),
    row("wildcard-role", MORE, "a role has a rule with `*`", |seen| seen.new_in(wildcards)),
    row("no-replicas", STOPS, "none of it runs", |seen| seen.no_replicas()),
    row("suspended", DEPLOYS, "nothing more is deployed by itself", |seen| seen.switched(true)),
    row("resumed", DEPLOYS, "everything that waited is deployed", |seen| seen.switched(false)),
    row("below-suspended", DEPLOYS, "it is suspended, so that nothing happens before it is resumed", |seen| {
        seen.below_suspended()
    }),
    row("prune-switched", DEPLOYS, "pruning is switched", |seen| seen.prune_switched()),
    row("destination-moved", DEPLOYS, "it is deployed to another place", |seen| seen.destination_moved()),
    row("removed-dependency", DEPLOYS, "something is removed that others depend on", |seen| seen.needed()),
    row("major-version", REVIEW, "the first number of a version changes", |seen| seen.major_version()),
    row("moved-object", REVIEW, "an object leaves one target and comes in another", |seen| seen.moved()),
];

/// An object as it was and as it is, and what is known around it.
#[derive(Default)]
struct Seen<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    /// What deploys it says; none where that is not known.
    by: Option<&'a Policy>,
    /// Whether what deploys it goes, too.
    is_last: bool,
    /// How many objects change that it deploys.
    below: usize,
    /// Another target that it comes in.
    comes_in: Option<&'a str>,
    /// What stays, and depends on it.
    needed_by: Vec<&'a str>,
}

/// What is built for one name, and how it differs.
pub(crate) struct Build<'a> {
    pub name: &'a str,
    /// The target, as it was and as it is; none of a root that nothing deploys.
    pub target: [Option<&'a Target>; 2],
    pub objects: Vec<ObjectChange>,
}

/// Objects that are needed, `KIND NAMESPACE/NAME`, each with one that needs it.
pub(crate) type Needs = BTreeSet<(String, String)>;

/// Adds what the objects of an output need.
pub(crate) fn needs(output: &[u8], needs: &mut Needs) {
    const FIELD: &[u8] = b"dependsOn";
    if !output.windows(FIELD.len()).any(|one| one == FIELD) {
        return;
    }
    for object in Deserializer::from_slice(output).map_while(|one| Value::deserialize(one).ok()) {
        let needed = Policy::of(&object).unwrap_or_default().depends_on.into_iter();
        needs.extend(needed.map(|name| (format!("{} {name}", text(&object, "kind")), full_name(&object))));
    }
}

/// Returns the object of a target.
fn said(target: &Target) -> Option<Value> {
    serde_json::from_str(&target.said).ok().filter(Value::is_mapping)
}

/// Returns what each of these builds brings about. Adds to its objects what deploys it, if that changes and no build shows
/// it.
pub(crate) fn consequences(all: &mut [Build<'_>], needs: &Needs) -> Vec<Vec<Consequence>> {
    let mut own: Vec<[Option<Value>; 2]> = all.iter().map(|build| build.target.map(|one| one.and_then(said))).collect();
    let shown: HashSet<_> = all.iter().flat_map(|build| &build.objects).map(|one| &one.values).collect();
    let is_shown: Vec<bool> = own.iter().map(|own| shown.contains(own)).collect();
    let below: Vec<usize> = all.iter().map(|build| build.objects.len()).collect();
    for ((build, own), is_shown) in all.iter_mut().zip(&mut own).zip(is_shown) {
        if let [Some(was), Some(is)] = own {
            let text = |value: &Value| serde_yaml::to_string(value).unwrap_or_default().into_bytes();
            if was != is && !is_shown {
                // What Fleet has is no object.
                let id = compare::id(is).unwrap_or(build.name.to_owned());
                let name = |change| ObjectChange { id: id.clone(), ..change };
                build.objects.splice(0..0, compare::changes(&text(was), &text(is)).into_iter().map(name));
            }
            was.clone_from(is);
        } else if is_shown {
            *own = [None, None];
        }
    }
    let mut comes: HashMap<String, &str> = HashMap::new();
    for build in all.iter().filter(|build| build.target[1].is_some()) {
        let added = build.objects.iter().filter(|one| one.change == "added");
        added.for_each(|one| _ = comes.entry(key(&one.id)).or_insert(build.name));
    }
    all.iter()
        .zip(own.iter().zip(below))
        .map(|(build, (own, below))| build.consequences(own, below, &comes, needs))
        .collect()
}

impl Build<'_> {
    fn consequences(
        &self,
        own: &[Option<Value>; 2],
        below: usize,
        comes: &HashMap<String, &str>,
        needs: &Needs,
    ) -> Vec<Consequence> {
        let by = self.target.into_iter().rev().flatten().next();
        let by = by.and_then(|by| Policy::of(&said(by)?));
        let is_last = self.target[0].is_some() && self.target[1].is_none();
        let mut all: Vec<Consequence> = Vec::new();
        let itself = (self.name, own, below, false);
        let objects = self.objects.iter().map(|one| (one.id.as_str(), &one.values, 0, true));
        for (object, [old, new], below, is_below) in std::iter::once(itself).chain(objects) {
            let name = old.as_ref().map_or(String::new(), |old| format!("{} {}", text(old, "kind"), full_name(old)));
            let needed_by = needs.range((name.clone(), String::new())..).take_while(|(needed, _)| *needed == name);
            let seen = Seen {
                old: old.as_ref(),
                new: new.as_ref(),
                by: by.as_ref().filter(|_| is_below),
                is_last: is_last && is_below,
                below,
                comes_in: self.target[0].and_then(|_| comes.get(&key(object)).copied()),
                needed_by: needed_by.map(|(_, by)| by.as_str()).collect(),
            };
            for Row { id, about, of, .. } in TABLE {
                let Some(what) = of(&seen) else { continue };
                let one = Consequence {
                    id,
                    object: object.to_owned(),
                    target: self.name.to_owned(),
                    text: format!("{about}: {what}"),
                };
                // One chart is the label of many objects.
                if *id != "major-version" || !all.iter().any(|other| other.text == one.text) {
                    all.push(one);
                }
            }
        }
        all
    }
}

impl Seen<'_> {
    /// Returns what becomes of an object of this kind that is removed.
    fn removed(&self, kind: &str) -> Option<String> {
        let old = self.old.filter(|old| self.new.is_none() && is_kind(old, kind))?;
        Some(match (self.by.and_then(|by| by.prunes), self.comes_in) {
            _ if policy::stays(old) => "orphaned, as it says itself".to_owned(),
            _ if self.is_last => "deleted or orphaned, as the target goes, too".to_owned(),
            (Some(true), Some(other)) => format!("the target prunes, so it is deleted, unless {other} takes it over"),
            (Some(true), None) => "deleted: the target prunes".to_owned(),
            (Some(false), _) => "orphaned: the target does not prune".to_owned(),
            (None, _) => "deleted or orphaned: it is not known whether it is pruned".to_owned(),
        })
    }

    fn both(&self) -> Option<(&Value, &Value)> {
        self.old.zip(self.new)
    }

    /// Returns what the new object has and the old one has not.
    fn new_in(&self, of: fn(&Value) -> Vec<String>) -> Option<String> {
        let old = self.old.map_or(Vec::new(), of);
        let mut new = self.new.map_or(Vec::new(), of);
        new.retain(|one| !old.contains(one));
        (!new.is_empty()).then(|| new.join(", "))
    }

    fn smaller(&self) -> Option<String> {
        let (old, new) = self.both().filter(|(old, _)| is_kind(old, "/PersistentVolumeClaim"))?;
        let asked = |one| scalar(at(one, "spec.resources.requests.storage")?);
        let (old, new) = (asked(old)?, asked(new)?);
        (quantity(&new)? < quantity(&old)?).then(|| format!("{old} -> {new}"))
    }

    fn immutable(&self) -> Option<String> {
        let (old, new) = self.both()?;
        let (_, fields) = IMMUTABLE.iter().find(|(kind, _)| is_kind(old, kind))?;
        // The cluster takes the address away.
        let is_name = [old, new].iter().any(|one| text(one, "spec.type") == "ExternalName");
        let fields =
            fields.iter().filter(|(field, absent)| !is_name && changes(at(old, field), at(new, field), absent));
        let fields: Vec<&str> = fields.map(|(field, _)| *field).collect();
        let is_forced = policy::is_replaced(new) || self.by.is_some_and(|by| by.forces);
        let what = if is_forced { "deleted and made anew" } else { "the API server refuses it" };
        (!fields.is_empty()).then(|| format!("{}: {what}", fields.join(", ")))
    }

    fn bound(&self) -> Option<String> {
        let new = self
            .new
            .filter(|new| self.old.is_none() && is_kind(new, "rbac.authorization.k8s.io/ClusterRoleBinding"))?;
        let to = list(new, "subjects").map(|one| format!("{} {}", text(one, "kind"), name_in(one, "")));
        Some(format!("{} for {}", text(new, "roleRef.name"), to.collect::<Vec<_>>().join(", ")))
    }

    fn no_replicas(&self) -> Option<String> {
        const KINDS: [&str; 4] = ["apps/Deployment", "apps/StatefulSet", "apps/ReplicaSet", "/ReplicationController"];
        let replicas = |one: &Value| at(one, "spec.replicas").map_or(Some(1), Value::as_u64);
        let new = self.new.filter(|new| KINDS.iter().any(|kind| is_kind(new, kind)))?;
        let old = self.old.map(replicas);
        (replicas(new) == Some(0) && old != Some(Some(0))).then(|| "`replicas: 0`".to_owned())
    }

    fn policies(&self) -> Option<(Policy, Policy)> {
        let (old, new) = self.both()?;
        Some((Policy::of(old)?, Policy::of(new)?))
    }

    /// Returns how it waits or no longer does, if it is `waiting` only now.
    fn switched(&self, is_waiting: bool) -> Option<String> {
        let (old, new) = self.policies()?;
        let on = |is_on| if is_on { "on" } else { "off" };
        if old.is_suspended != new.is_suspended {
            return (new.is_suspended == is_waiting).then(|| format!("`suspend` is {}", on(new.is_suspended)));
        }
        let is_it = old.is_automatic != new.is_automatic && new.is_automatic != is_waiting;
        is_it.then(|| format!("automated sync is {}", on(new.is_automatic)))
    }

    fn below_suspended(&self) -> Option<String> {
        let new = self.new.filter(|new| Policy::of(new).is_some_and(|policy| policy.is_suspended))?;
        let was = self.old.filter(|old| *old != new).and_then(Policy::of);
        match self.below {
            0 => was.filter(|was| was.is_suspended).map(|_| "it changes itself".to_owned()),
            1 => Some("1 object changes".to_owned()),
            many => Some(format!("{many} objects change")),
        }
    }

    fn prune_switched(&self) -> Option<String> {
        let (old, new) = self.policies()?;
        let on = new.prunes.filter(|_| old.prunes.is_some() && old.prunes != new.prunes)?;
        Some(if on { "on: what is removed is deleted" } else { "off: what is removed stays" }.to_owned())
    }

    fn destination_moved(&self) -> Option<String> {
        let (old, new) = self.policies()?;
        let shown = |one: &str| if one.is_empty() { "none".to_owned() } else { format!("`{one}`") };
        let moves = old.destination.iter().zip(&new.destination).filter(|(old, new)| old != new);
        let moves = moves.map(|((field, old), (_, new))| format!("{field} {} -> {}", shown(old), shown(new)));
        let moves: Vec<String> = moves.collect();
        (!moves.is_empty()).then(|| moves.join(", "))
    }

    fn needed(&self) -> Option<String> {
        let is_gone = self.new.is_none() && self.comes_in.is_none() && !self.needed_by.is_empty();
        is_gone.then(|| format!("needed by {}", self.needed_by.join(", ")))
    }

    fn major_version(&self) -> Option<String> {
        let (old, new) = self.both()?;
        let (old, new) = (versions(old), versions(new));
        let moves = new.iter().filter_map(|(what, new)| {
            let old = old.get(what)?;
            (first_number(old)? != first_number(new)?).then(|| format!("{} {old} -> {new}", what.1))
        });
        let moves: Vec<String> = moves.collect();
        (!moves.is_empty()).then(|| moves.join(", "))
    }

    fn moved(&self) -> Option<String> {
        let is_gone = self.old.is_some() && self.new.is_none();
        self.comes_in.filter(|_| is_gone).map(|other| format!("{other} has it now"))
    }
}

/// The fields that cannot be changed, each with what one that is not there is: `?` where the cluster may fill it in.
const IMMUTABLE: &[(&str, &[(&str, &str)])] = &[
    ("apps/Deployment", &[("spec.selector", "")]),
    ("apps/DaemonSet", &[("spec.selector", "")]),
    ("apps/ReplicaSet", &[("spec.selector", "")]),
    (
        "apps/StatefulSet",
        &[
            ("spec.selector", ""),
            ("spec.serviceName", ""),
            ("spec.podManagementPolicy", "OrderedReady"),
            ("spec.volumeClaimTemplates", ""),
        ],
    ),
    ("batch/Job", &[("spec.selector", "?"), ("spec.template", "?")]),
    (
        "/PersistentVolumeClaim",
        &[
            ("spec.accessModes", ""),
            ("spec.selector", ""),
            ("spec.storageClassName", "?"),
            ("spec.volumeName", "?"),
            ("spec.volumeMode", "Filesystem"),
            ("spec.dataSource", "?"),
            ("spec.dataSourceRef", "?"),
        ],
    ),
    ("rbac.authorization.k8s.io/RoleBinding", &[("roleRef", "?")]),
    ("rbac.authorization.k8s.io/ClusterRoleBinding", &[("roleRef", "?")]),
    ("/Service", &[("spec.clusterIP", "?")]),
];

/// Returns whether a field is surely another one.
fn changes(old: Option<&Value>, new: Option<&Value>, absent: &str) -> bool {
    match (old.filter(|one| !is_empty(one)), new.filter(|one| !is_empty(one))) {
        (None, None) => false,
        (Some(old), Some(new)) => differs(old, new),
        (Some(one), None) | (None, Some(one)) => absent != "?" && (absent.is_empty() || one.as_str() != Some(absent)),
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Sequence(items) => items.is_empty(),
        Value::Mapping(fields) => fields.is_empty(),
        _ => false,
    }
}

/// Returns whether two values are surely not the same to the API server, which fills in what is not there: but for lists,
/// and labels.
fn differs(old: &Value, new: &Value) -> bool {
    const WHOLE: [&str; 3] = ["labels", "matchLabels", "nodeSelector"];
    let is_whole = |key: &Value| key.as_str().is_some_and(|key| WHOLE.contains(&key));
    match (old, new) {
        (Value::Mapping(old), Value::Mapping(new)) => old.keys().chain(new.keys()).any(|key| {
            let both = [old, new].map(|one| one.get(key).filter(|one| !is_empty(one)));
            match both {
                [Some(old), Some(new)] if is_whole(key) => old != new,
                [Some(old), Some(new)] => differs(old, new),
                [one, other] => one.or(other).is_some_and(|one| {
                    one.is_sequence()
                        || one.is_mapping() && (is_whole(key) || differs(one, &Value::Mapping(Mapping::new())))
                }),
            }
        }),
        (Value::Sequence(old), Value::Sequence(new)) => {
            old.len() != new.len() || old.iter().zip(new).any(|(old, new)| differs(old, new))
        }
        _ => match (scalar(old), scalar(new)) {
            (Some(old), Some(new)) => {
                old != new && quantity(&old).zip(quantity(&new)).is_none_or(|(old, new)| old != new)
            }
            (None, None) => false,
            _ => true,
        },
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Reads a quantity of Kubernetes, as `10Gi`.
fn quantity(text: &str) -> Option<f64> {
    const UNITS: [&str; 15] = ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi"];
    const FACTORS: [f64; 15] = [
        1.0,
        1e-9,
        1e-6,
        1e-3,
        1e3,
        1e6,
        1e9,
        1e12,
        1e15,
        1e18,
        1024.0,
        1_048_576.0,
        1_073_741_824.0,
        1_099_511_627_776.0,
        1_125_899_906_842_624.0,
    ];
    let end = text.trim_end_matches(|one: char| one.is_ascii_alphabetic()).len();
    let unit = UNITS.iter().position(|unit| *unit == &text[end..])?;
    Some(text[..end].parse::<f64>().ok()? * FACTORS[unit])
}

/// Returns whether an object is of this kind: `GROUP/KIND`.
fn is_kind(object: &Value, kind: &str) -> bool {
    kind.split_once('/') == Some((group(object), text(object, "kind")))
}

/// Returns `NAMESPACE/NAME` of what is below some key.
fn name_in(value: &Value, below: &str) -> String {
    let [namespace, name] = ["namespace", "name"].map(|key| text(value, &format!("{below}{key}")));
    if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") }
}

fn full_name(object: &Value) -> String {
    name_in(object, "metadata.")
}

fn list<'a>(value: &'a Value, keys: &str) -> impl Iterator<Item = &'a Value> {
    at(value, keys).and_then(Value::as_sequence).into_iter().flatten()
}

/// Returns the pod that an object is, or makes.
fn pod(object: &Value) -> Option<&Value> {
    let all = ["spec.jobTemplate.spec.template.spec", "spec.template.spec", "spec"];
    all.iter().filter_map(|keys| at(object, keys)).find(|pod| pod.get("containers").is_some())
}

fn containers(object: &Value) -> impl Iterator<Item = &Value> {
    pod(object).into_iter().flat_map(|pod| ["initContainers", "containers"].into_iter().flat_map(|key| list(pod, key)))
}

fn is_on(value: &Value, keys: &str) -> bool {
    at(value, keys).and_then(Value::as_bool) == Some(true)
}

fn privileged(object: &Value) -> Vec<String> {
    let all = containers(object).filter(|one| is_on(one, "securityContext.privileged"));
    all.map(|one| format!("`{}`", text(one, "name"))).collect()
}

fn host_paths(object: &Value) -> Vec<String> {
    let volumes = pod(object).into_iter().flat_map(|pod| list(pod, "volumes"));
    let volumes = volumes.map(|one| text(one, "hostPath.path"));
    let own = Some(object).filter(|one| is_kind(one, "/PersistentVolume")).map(|one| text(one, "spec.hostPath.path"));
    volumes.chain(own).filter(|path| !path.is_empty()).map(|path| format!("`{path}`")).collect()
}

fn host_namespaces(object: &Value) -> Vec<String> {
    let all = ["hostNetwork", "hostPID", "hostIPC"].into_iter();
    all.filter(|field| pod(object).is_some_and(|pod| is_on(pod, field))).map(|field| format!("`{field}`")).collect()
}

/// Returns the rules of a role that allow anything of some sort.
fn wildcards(object: &Value) -> Vec<String> {
    const FIELDS: [&str; 4] = ["verbs", "resources", "nonResourceURLs", "apiGroups"];
    let is_role =
        ["Role", "ClusterRole"].contains(&text(object, "kind")) && group(object) == "rbac.authorization.k8s.io";
    let texts = |rule, field| list(rule, field).filter_map(Value::as_str).collect::<Vec<_>>();
    let rules = list(object, "rules").filter(|_| is_role);
    let rules = rules.filter(|rule| FIELDS.iter().any(|field| texts(rule, field).contains(&"*")));
    let shown = |rule| {
        let all = FIELDS.iter().map(|field| (field, texts(rule, field).join(", "))).filter(|(_, all)| !all.is_empty());
        all.map(|(field, all)| format!("{field} {all}")).collect::<Vec<_>>().join("; ")
    };
    rules.map(shown).collect()
}

/// Returns the versions of what an object runs, or takes: of images for each container, and of charts.
fn versions(object: &Value) -> BTreeMap<(String, String), String> {
    let image = |container: &Value| {
        let image = text(container, "image").split('@').next().unwrap_or_default().to_owned();
        let (name, tag) = image.rsplit_once(':').filter(|(_, tag)| !tag.contains('/'))?;
        Some(((text(container, "name").to_owned(), format!("image {name}")), tag.to_owned()))
    };
    let chart = |name: &str, version: &str| {
        (!name.is_empty()).then(|| ((String::new(), format!("chart {name}")), version.to_owned()))
    };
    let label = at(object, "metadata.labels").and_then(|labels| labels.get("helm.sh/chart")?.as_str());
    let label = label.and_then(|label| {
        let mut ends = label.match_indices('-').map(|(end, _)| (&label[..end], &label[end + 1..]));
        ends.find(|(_, version)| version.contains('.') && first_number(version).is_some())
    });
    let release = (text(object, "spec.chart.spec.chart"), text(object, "spec.chart.spec.version"));
    let sources = at(object, "spec.source").into_iter().chain(list(object, "spec.sources"));
    let sources = sources.map(|one| (text(one, "chart"), text(one, "targetRevision")));
    let charts = label.into_iter().chain([release]).chain(sources);
    containers(object).filter_map(image).chain(charts.filter_map(|(name, version)| chart(name, version))).collect()
}

/// Returns the first number of a version; none of a date, or of what is none.
fn first_number(version: &str) -> Option<u64> {
    const DATES: u64 = 1000;
    let digits = version.strip_prefix('v').unwrap_or(version);
    let end = digits.find(|one: char| !one.is_ascii_digit()).unwrap_or(digits.len());
    let is_version = digits[end..].is_empty() || digits[end..].starts_with(['.', '-', '+']);
    digits[..end].parse().ok().filter(|number| is_version && *number < DATES)
}

#[cfg(test)]
mod tests;
