//! The consequences of a difference of two builds: data that is lost, objects that the API server refuses, permissions
//! that grow, workloads that stop, and changes of the objects that deploy all of it.
//!
//! One table: a row is a function of the old and the new object. It reports only certain consequences: a field that only
//! one side has may be one that the API server fills in.

pub(crate) mod facts;
mod immutable;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};

use serde::{Deserialize as _, Serialize};
use serde_yaml::{Deserializer, Value};

use super::compare::{self, ObjectChange, in_namespace, key};
use crate::message::redact::concealed;
use crate::targets::affected::{DiffStatus, Sides};
use crate::targets::policy::{self, ObjectPolicy, full_name, is_kind, text};
use crate::targets::{ObjectRef, Target};

/// The rows with their groups and what they find, an empty line, and what all of them have in common.
pub(crate) const PAGE: &str = include_str!("consequences.md");

/// A consequence of the change of one object.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub(crate) struct Consequence {
    /// The row of the table.
    pub id: &'static str,
    /// The object: `apps/v1 Deployment NAMESPACE/NAME`.
    pub object: String,
    /// The name of its build.
    pub target: String,
    /// The build that made the object of the target: several may have one name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub built_by: Option<String>,
    pub text: String,
}

/// A row of the table: its text if it applies to an object.
pub(crate) struct Row {
    pub id: &'static str,
    of: fn(&Seen<'_>) -> Option<String>,
}

macro_rules! rows {
    ($($id:literal $of:expr;)+) => {
        /// The table, in the order in which consequences of one object are shown.
        pub(crate) const TABLE: &[Row] = &[$(Row { id: $id, of: $of },)+];
    };
}

rows! {
    "removed-statefulset" |seen| seen.removed(|old| is_kind(old, "apps/StatefulSet"));
    "removed-pvc" |seen| seen.removed(|old| is_kind(old, "/PersistentVolumeClaim"));
    "removed-namespace" |seen| seen.removed(|old| is_kind(old, "/Namespace"));
    "removed-crd" |seen| seen.removed(policy::is_crd);
    "removed-networkpolicy" |seen| seen.removed(|old| text(old, "kind").ends_with("NetworkPolicy"));
    "removed-field" |seen| facts::removed_fields(seen.old?, seen.new?);
    "smaller-pvc" |seen| immutable::smaller(seen.old?, seen.new?);
    "immutable-field" |seen| seen.immutable();
    "privileged" |seen| seen.gains(facts::privileged);
    "host-path" |seen| seen.gains(facts::host_paths);
    "host-namespace" |seen| seen.gains(facts::host_namespaces);
    "cluster-role-binding" |seen| seen.old.map_or(seen.gains(facts::bindings), |_| None);
    "wildcard-role" |seen| seen.gains(facts::wildcards);
    "no-replicas" |seen| seen.old.and(seen.gains(facts::no_replicas));
    "suspended" |seen| seen.old.and(seen.gains(facts::waits));
    "resumed" |seen| gains(seen.new, seen.old, facts::waits).filter(|_| seen.new.is_some()).map(|what| format!("no longer {what}"));
    "below-suspended" |seen| seen.below_suspended();
    "prune-switched" |seen| seen.old.filter(|old| !facts::prunes(old).is_empty()).and(seen.gains(facts::prunes));
    "destination-moved" |seen| seen.old.and(seen.gains(if seen.shows_moves { facts::clusters } else { facts::destinations }));
    "removed-target" |seen| seen.gone();
    "removed-dependency" |seen| seen.needed();
    "major-version" |seen| facts::major_version(seen.old?, seen.new?);
    "moved-object" |seen| seen.moved();
}

impl Row {
    /// Its group, and its text in one phrase.
    pub(crate) fn described(&self) -> (&'static str, &'static str) {
        let start = format!("- `{}` (", self.id);
        let line = PAGE.lines().find_map(|line| line.strip_prefix(&start));
        line.and_then(|line| line.split_once("): ")).unwrap_or_default()
    }
}

/// The old and the new object, and the facts around it.
#[derive(Default)]
struct Seen<'a> {
    old: Option<&'a Value>,
    new: Option<&'a Value>,
    /// The policy of the target that deploys it; `None` if that is not known.
    policy: Option<&'a ObjectPolicy>,
    /// Whether a target deployed it before.
    was_deployed: bool,
    /// Whether the target that deploys it is removed, too.
    is_target_removed: bool,
    /// If this object is a target: whether its build shows all objects that move to another namespace.
    shows_moves: bool,
    /// If this object is a target: the number of changed objects that it deploys.
    changed_objects: usize,
    /// The name of another build in which this removed object is new.
    added_to: Option<&'a str>,
    /// The objects that stay, and depend on it.
    needed_by: Vec<&'a str>,
}

/// The facts about all builds.
struct Around<'a> {
    /// The names of the builds in which objects are new, by the keys of these.
    added_to: HashMap<String, &'a str>,
    /// The targets whose builds show all objects that move to another namespace.
    showing_moves: Vec<Sides<Option<Value>>>,
    needs: &'a Needs,
    applications: Applications<'a>,
}

/// Applications of Argo CD by their identity.
type Applications<'a> = HashMap<[&'a str; 4], Application<'a>>;

/// An application, of perhaps several sources.
#[derive(Default)]
struct Application<'a> {
    /// Whether one of its sources stays.
    stays: bool,
    /// The objects that come to or leave one of its sources.
    objects: HashMap<String, Sides<Option<&'a Value>>>,
}

/// The old and the new build of one name, and their difference.
#[derive(Default)]
pub(crate) struct BuildDiff<'a> {
    pub name: &'a str,
    /// The target; `None` for a root that nothing deploys.
    pub target: Sides<Option<&'a Target>>,
    pub objects: Vec<ObjectChange>,
    /// Whether these are all: it was built on both sides.
    pub is_built: bool,
    /// The namespaces of objects that name none.
    pub namespaces: Sides<String>,
}

/// Objects that are needed, `KIND NAMESPACE/NAME`, each with one that needs it.
pub(crate) type Needs = BTreeSet<(String, String)>;

/// Adds the objects that the objects of an output need.
pub(crate) fn needs(output: &[u8], needs: &mut Needs) {
    const FIELD: &[u8] = b"dependsOn";
    // An output without the field need not be parsed.
    if !output.windows(FIELD.len()).any(|part| part == FIELD) {
        return;
    }
    let objects = Deserializer::from_slice(output);
    for object in objects.map_while(|document| Value::deserialize(document).ok()) {
        for name in ObjectPolicy::of(&object).unwrap_or_default().depends_on {
            needs.insert((format!("{} {name}", text(&object, "kind")), full_name(&object)));
        }
    }
}

/// The object of a target, as it is deployed.
fn manifest(target: &Target) -> Option<Value> {
    object(target, &target.manifest)
}

/// The objects of a target on both sides, in one form.
fn own_objects(target: Sides<Option<&Target>>) -> Sides<Option<Value>> {
    // If a build that failed may change one of them, both are taken as their files have them.
    let is_open = target.iter().flatten().any(|target| target.changed_by.is_some());
    target.map(|target| {
        let written = target?.written.as_ref().filter(|_| is_open);
        object(target?, written.unwrap_or(&target?.manifest))
    })
}

/// An object of a target from its JSON, with its kind.
fn object(target: &Target, json: &str) -> Option<Value> {
    let Ok(Value::Mapping(mut fields)) = serde_json::from_str(json) else { return None };
    // An application that a set makes has no kind of its own.
    if !fields.contains_key("kind") {
        fields.insert("apiVersion".into(), format!("{}/v1alpha1", policy::ARGO).into());
        fields.insert("kind".into(), target.object.kind.clone().into());
    }
    Some(Value::Mapping(fields))
}

/// The namespace of deployed objects that name none; empty if it is unknown.
pub(crate) fn namespace(target: Option<&Target>) -> String {
    target.and_then(manifest).and_then(|by| ObjectPolicy::of(&by)).map_or(String::new(), |by| by.namespace)
}

/// Returns what each of these builds brings about. Adds to its objects what deploys it, if that changes and no build shows
/// it.
pub(crate) fn consequences(all: &mut [BuildDiff<'_>], needs: &Needs) -> Vec<Vec<Consequence>> {
    let own: Vec<_> = all.iter().map(|build| own_objects(build.target)).collect();
    let changed = || all.iter().flat_map(|build| &build.objects);
    // Values in outputs are shortened, so that those of the targets are compared in the same form.
    let short: Vec<_> = own.iter().map(|own| own.clone().map(|value| value.map(compare::condensed))).collect();
    let is_shown = |own: &Sides<Option<Value>>| changed().any(|object| is_of(&object.values, own));
    // A build shows the object of a target if it makes that object.
    let shown: Vec<bool> = short.iter().map(is_shown).collect();
    // If a set is shown, its applications would only repeat the difference.
    let sets: BTreeSet<String> =
        changed().filter_map(|object| object.values.new.as_ref()).filter(is_set).map(full_name).collect();
    let is_made = |target: Option<&Target>| {
        target.is_some_and(|target| target.object.set.as_ref().is_some_and(|set| sets.contains(set)))
    };
    // The build itself shows each object that moves, because it writes another namespace.
    let shows_moves = |(build, own): &(&BuildDiff<'_>, &Sides<Option<Value>>)| {
        let Sides { old: was, new: is } = own.as_ref().map(Option::as_ref);
        let is_moved = was.is_some() && is.is_some_and(|is| is_kind(is, policy::KUSTOMIZATION));
        is_moved
            && build.is_built
            && build.objects.iter().all(|object| object.change == DiffStatus::Changed)
            && gains(was, is, facts::destinations).is_some()
    };
    let showing_moves: Vec<_> =
        all.iter().zip(&own).zip(short).filter(|(pair, _)| shows_moves(pair)).map(|(_, short)| short).collect();
    // Decide for each target whether its own object is added, and what counts of it.
    let mut itself = Vec::new();
    for ((build, is_shown), own) in all.iter_mut().zip(shown).zip(own) {
        // The target's own object comes first: it explains the others.
        let below = build.objects.len();
        if let Sides { old: Some(was), new: Some(is) } = &own
            && !is_shown
            && !is_made(build.target.new)
        {
            build.objects.splice(0..0, build.own(was, is));
        }
        itself.push(match own {
            Sides { old: Some(_), new: Some(is) } if !is_made(build.target.new) => {
                (below, Sides { old: Some(is.clone()), new: Some(is) })
            }
            _ if is_shown => (0, Sides::default()),
            own => (below, own),
        });
    }
    // Only now, because the objects that were added count, too.
    let around = Around::of(all, showing_moves, needs);
    all.iter().zip(&itself).map(|(build, itself): (&BuildDiff<'_>, _)| build.consequences(itself, &around)).collect()
}

/// Whether an object is an ApplicationSet.
fn is_set(object: &&Value) -> bool {
    is_kind(object, "argoproj.io/ApplicationSet")
}

/// Returns whether an object that differs is made of this one.
fn is_of(made: &Sides<Option<Value>>, own: &Sides<Option<Value>>) -> bool {
    own.iter().any(Option::is_some) && made.iter().zip(own.iter()).all(|(made, own)| is_made_of(made, own))
}

/// Whether one side of an object is made of the same side of another.
fn is_made_of(made: &Option<Value>, own: &Option<Value>) -> bool {
    match (made, own) {
        (None, None) => true,
        (Some(made), Some(own)) => {
            let name = |object| text(object, "metadata.name");
            // A build may add a prefix or a suffix to the name.
            name(made).contains(name(own)) && ["kind", "spec"].iter().all(|key| made.get(key) == own.get(key))
        }
        _ => false,
    }
}

impl<'a> Around<'a> {
    fn of(all: &'a [BuildDiff<'_>], showing_moves: Vec<Sides<Option<Value>>>, needs: &'a Needs) -> Around<'a> {
        let mut added_to = HashMap::new();
        for build in all.iter().filter(|build| build.target.new.is_some() || build.target.old.is_none()) {
            for object in build.objects.iter().filter(|object| object.change == DiffStatus::Added) {
                for key in build.keys(object) {
                    added_to.entry(key).or_insert(build.name);
                }
            }
        }
        // An application with several sources has a build for each: an object may move between them.
        let mut applications: Applications<'_> = HashMap::new();
        for build in all {
            let Some(application) = build.application() else { continue };
            let known = applications.entry(application).or_default();
            known.stays |= build.target.new.is_some();
            for object in &build.objects {
                let [_, key] = build.keys(object);
                match object.change {
                    DiffStatus::Added => known.objects.entry(key).or_default().new = object.values.new.as_ref(),
                    DiffStatus::Removed => known.objects.entry(key).or_default().old = object.values.old.as_ref(),
                    DiffStatus::Changed => {}
                }
            }
        }
        Around { added_to, showing_moves, needs, applications }
    }
}

impl BuildDiff<'_> {
    /// The identities of an object: as it is written, and where it lies, or lay, if its kind has namespaces.
    fn keys(&self, object: &ObjectChange) -> [String; 2] {
        let Sides { old, new } = &self.namespaces;
        let namespace = if object.change == DiffStatus::Added { new } else { old };
        [key(&object.id), in_namespace(key(&object.id), namespace)]
    }

    /// The difference of its target.
    fn own(&self, was: &Value, is: &Value) -> Vec<ObjectChange> {
        let texts = Sides { old: was, new: is }.map(|value| serde_yaml::to_string(value).unwrap_or_default());
        let mut changes = compare::changes(texts.as_ref().map(|text| text.as_bytes()), Sides::default());
        let id = compare::id(is).unwrap_or_else(|| self.name.to_owned());
        changes.iter_mut().for_each(|change| change.id.clone_from(&id));
        changes
    }

    /// The identity of the application of Argo CD of which it is a source, perhaps of several.
    fn application(&self) -> Option<[&str; 4]> {
        let target = self.target.newest().filter(|target| target.engine.takes_sources())?;
        let ObjectRef { file, namespace, name, built_by, .. } = &target.object;
        Some([file, namespace, name, built_by.as_deref().unwrap_or_default()])
    }

    fn consequences(
        &self,
        (changed_objects, own): &(usize, Sides<Option<Value>>),
        around: &Around<'_>,
    ) -> Vec<Consequence> {
        let Around { added_to, showing_moves, needs, applications } = around;
        let Sides { old: was, new: is } = self.target;
        let policy = self.target.newest().and_then(manifest).and_then(|object| ObjectPolicy::of(&object));
        let mut all: Vec<Consequence> = Vec::new();
        let application = self.application().and_then(|name| applications.get(&name));
        // An application has one source less.
        let stays = is.is_some() || application.is_some_and(|application| application.stays);
        let own = own.as_ref().map(|value| value.as_ref().filter(|_| is.is_some() || !stays));
        // The target comes before what it deploys.
        let itself = Seen { changed_objects: *changed_objects, ..Seen::of(own, needs) };
        let objects = self.objects.iter().map(|object| {
            let keys = self.keys(object);
            // An object that moves from one source to another stays the same object of the same application.
            let moved = application.and_then(|application| application.objects.get(&keys[1]));
            let values = match (moved, object.change) {
                (Some(Sides { old: Some(_), new: Some(_) }), DiffStatus::Removed) => Sides::default(),
                (Some(both @ Sides { old: Some(_), new: Some(_) }), DiffStatus::Added) => *both,
                _ => object.values.as_ref().map(Option::as_ref),
            };
            let seen = Seen {
                policy: policy.as_ref(),
                was_deployed: was.is_some(),
                is_target_removed: was.is_some() && !stays,
                shows_moves: showing_moves.iter().any(|own| is_of(&object.values, own)),
                added_to: keys.iter().find_map(|key| added_to.get(key)).copied(),
                ..Seen::of(values, needs)
            };
            (object.id.as_str(), seen)
        });
        for (object, seen) in std::iter::once((self.name, itself)).chain(objects) {
            for row in TABLE {
                let Some(what) = (row.of)(&seen) else { continue };
                let text = concealed(&format!("{} ({what})", row.described().1));
                // One chart is the label of many objects, and deployed by each object of an engine that names it.
                let is_label = what.starts_with("chart ") && seen.new.and_then(ObjectPolicy::of).is_none();
                if is_label && all.iter().any(|other| other.text == text) {
                    continue;
                }
                let [object, target] = [object, self.name].map(str::to_owned);
                let built_by = self.target.newest().and_then(|target| target.object.built_by.clone());
                all.push(Consequence { id: row.id, object, target, built_by, text });
            }
        }
        all
    }
}

/// How bad a consequence is: the row of the table.
pub(crate) fn rank(consequence: &Consequence) -> usize {
    TABLE.iter().position(|row| row.id == consequence.id).unwrap_or(TABLE.len())
}

/// The values that one object has, and another lacks.
fn gains(old: Option<&Value>, new: Option<&Value>, of: fn(&Value) -> Vec<String>) -> Option<String> {
    let old = old.map_or(Vec::new(), of);
    let mut new = new.map_or(Vec::new(), of);
    new.retain(|value| !old.contains(value));
    (!new.is_empty()).then(|| new.join(", "))
}

impl<'a> Seen<'a> {
    fn of(Sides { old, new }: Sides<Option<&'a Value>>, needs: &'a Needs) -> Seen<'a> {
        let name = old.map_or(String::new(), |old| format!("{} {}", text(old, "kind"), full_name(old)));
        let needed = needs.range((name.clone(), String::new())..);
        let needed_by = needed.take_while(|need| need.0 == name).map(|need| need.1.as_str());
        let needed_by = needed_by.collect();
        Seen { old, new, needed_by, ..Seen::default() }
    }

    fn gains(&self, of: fn(&Value) -> Vec<String>) -> Option<String> {
        gains(self.old, self.new, of)
    }

    /// The fate of such an object that is removed.
    fn removed(&self, is_such: fn(&Value) -> bool) -> Option<String> {
        let old = self.old.filter(|old| self.new.is_none() && is_such(old))?;
        let goes = self.is_target_removed;
        let deletes = self.policy.and_then(|policy| if goes { policy.deletes_objects } else { policy.prunes });
        let stays = goes && self.policy.is_some_and(|policy| policy.leaves_crds) && policy::is_crd(old);
        // The order matters: an annotation of the object wins over its target, and the kind of removal over pruning.
        let what = match deletes {
            _ if policy::stays(old, goes) => return Some("orphaned: it opts out of pruning".to_owned()),
            Some(false) if !goes => return Some("orphaned: the target does not prune".to_owned()),
            _ if stays || deletes == Some(false) => return Some("orphaned: the target leaves it".to_owned()),
            _ if policy::needs_confirmation(old, goes) => "deleted after confirmation",
            Some(_) if goes => "deleted with the target",
            Some(_) if self.added_to.is_some() => "the target prunes, so it is deleted",
            Some(_) => "deleted: the target prunes",
            None if goes => "deleted or orphaned with the target",
            None => "deleted if the target prunes (unknown)",
        };
        Some(match self.added_to {
            None => what.to_owned(),
            Some(other) if deletes.is_none() && !goes => format!("{what}; {other} has it now"),
            Some(other) => format!("{what}, unless {other} takes it over"),
        })
    }

    fn immutable(&self) -> Option<String> {
        let (old, new) = self.old.zip(self.new)?;
        let fields = immutable::changed(old, new)?;
        let is_forced = policy::is_replaced(new) || self.policy.is_some_and(|policy| policy.forces);
        let what = if is_forced { "deleted and recreated" } else { "the API server refuses it" };
        Some(format!("{fields}: {what}"))
    }

    fn below_suspended(&self) -> Option<String> {
        let new = self.new.filter(|new| is_suspended(new))?;
        match self.changed_objects {
            0 => self.old.filter(|old| *old != new && is_suspended(old)).map(|_| "it changes itself".to_owned()),
            1 => Some("1 object changes".to_owned()),
            many => Some(format!("{many} objects change")),
        }
    }

    fn needed(&self) -> Option<String> {
        let is_gone = self.new.is_none() && self.added_to.is_none();
        let is_it = is_gone && !self.needed_by.is_empty();
        is_it.then(|| format!("needed by {}", self.needed_by.join(", ")))
    }

    /// Returns what becomes of what such an object deploys that is removed.
    fn gone(&self) -> Option<String> {
        let old = self.old.filter(|_| self.new.is_none() && self.added_to.is_none())?;
        let what = match (ObjectPolicy::of(old)?.deletes_objects?, text(old, "kind")) {
            (true, "ApplicationSet") => "its applications and their objects are deleted with it",
            (false, "ApplicationSet") => "its applications are deleted with it; their objects stay",
            (true, _) => "its objects are deleted with it",
            (false, _) => "its objects stay, and nothing updates them",
        };
        Some(what.to_owned())
    }

    fn moved(&self) -> Option<String> {
        let is_gone = self.old.is_some() && self.new.is_none() && self.was_deployed;
        self.added_to.filter(|_| is_gone).map(|other| format!("{other} has it now"))
    }
}

/// Whether the object of a target is suspended.
fn is_suspended(object: &Value) -> bool {
    ObjectPolicy::of(object).is_some_and(|policy| policy.is_suspended)
}
