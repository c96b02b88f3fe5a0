//! The consequences of a difference of two builds: data that is lost, objects that the API server refuses, permissions
//! that grow, workloads that stop, and changes of the objects that deploy all of it.
//!
//! One table: a row is a function of the old and the new object. It reports only certain consequences: a field that
//! only one side has may be one that the API server fills in.

pub(crate) mod facts;
mod immutable;
#[cfg(test)]
mod tests;

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use serde::{Deserialize as _, Serialize};
use serde_yaml::{Deserializer, Value};

use super::compare::{self, ObjectChange, identity_key, in_namespace};
use crate::message::redact::visible_with_marks;
use crate::targets::Target;
use crate::targets::affected::{DiffStatus, Sides};
use crate::targets::policy::{self, ObjectPolicy, full_name, is_kind, text};

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
    "resumed" |seen| gains(seen.new, seen.old, facts::waits).filter(|_| seen.new.is_some()).map(|state| format!("no longer {state}"));
    "below-suspended" |seen| seen.below_suspended();
    "prune-switched" |seen| seen.old.filter(|old| !facts::prunes(old).is_empty()).and(seen.gains(facts::prunes));
    "destination-moved" |seen| seen.old.and(seen.gains(if seen.shows_moves { facts::clusters } else { facts::destinations }));
    "removed-target" |seen| seen.removed_target();
    "removed-dependency" |seen| seen.removed_dependency();
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
    /// The policy of the target that deploys it; the default if that is not known.
    policy: Rc<ObjectPolicy>,
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

/// The facts about all builds, which judging one of them needs.
struct AllBuilds<'a> {
    /// The names of the builds in which objects are new, by the keys of these.
    added_to: HashMap<String, &'a str>,
    /// The targets whose builds show all objects that move to another namespace.
    showing_moves: Vec<Sides<Option<Value>>>,
    needs: &'a Needs,
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

/// Adds the objects that the objects of an output name in `dependsOn`. Removing one of them is a consequence.
pub(crate) fn add_needs(output: &[u8], needs: &mut Needs) {
    const FIELD: &[u8] = b"dependsOn";
    // An output without the field need not be parsed.
    if !output.windows(FIELD.len()).any(|part| part == FIELD) {
        return;
    }
    let objects = Deserializer::from_slice(output);
    // A document that is not YAML ends the output: nothing tells where the next one begins.
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

/// The objects of a target on both sides, in one form: as deployed, or as written.
fn target_objects(target: Sides<Option<&Target>>) -> Sides<Option<Value>> {
    // If a build that failed may change one of them, both are taken as their files have them, so that they can be
    // compared. An object without a text in a file is taken as deployed.
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

/// The object of a target, as it is judged beside the objects that the target deploys.
#[derive(Default)]
struct TargetObject {
    values: Sides<Option<Value>>,
    /// The number of changed objects that the target deploys.
    changed_objects: usize,
}

/// The consequences of each build. If the object of a target changes, and neither a build nor an ApplicationSet shows
/// that, its change is added to the objects of the target's build.
pub(crate) fn consequences(all: &mut [BuildDiff<'_>], needs: &Needs) -> Vec<Vec<Consequence>> {
    let written: Vec<_> = all.iter().map(|build| target_objects(build.target)).collect();
    // Values in outputs are condensed, so that objects of targets are compared with them in the same form.
    let condensed: Vec<_> =
        written.iter().map(|sides| sides.clone().map(|value| value.map(compare::condensed))).collect();
    // A build shows the object of a target if it makes that object.
    let changed = || all.iter().flat_map(|build| &build.objects);
    let shown: Vec<bool> =
        condensed.iter().map(|target| changed().any(|object| are_built_from(&object.values, target))).collect();
    // If a set is shown, its applications would only repeat the difference.
    let shown_sets: BTreeSet<String> =
        changed().filter_map(|object| object.values.new.as_ref()).filter(is_set).map(full_name).collect();
    // If a build shows the objects that move to another namespace, the move of its target would only repeat that.
    let shows_moves: Vec<bool> = all.iter().zip(&written).map(|(build, target)| build.shows_moves(target)).collect();
    let showing_moves = condensed.into_iter().zip(shows_moves).filter_map(|(target, shows)| shows.then_some(target));
    let showing_moves: Vec<_> = showing_moves.collect();
    let mut targets = Vec::new();
    for ((build, is_shown), target) in all.iter_mut().zip(shown).zip(written) {
        targets.push(build.add_target_change(target, is_shown, &shown_sets));
    }
    // These facts come last, because the changes of targets that were added count for them, too.
    let around = AllBuilds::of(all, showing_moves, needs);
    all.iter().zip(&targets).map(|(build, target): (&BuildDiff<'_>, _)| build.consequences(target, &around)).collect()
}

/// Whether an object is an ApplicationSet.
fn is_set(object: &&Value) -> bool {
    is_kind(object, "argoproj.io/ApplicationSet")
}

/// Whether both sides of an object in outputs are built from those of a target.
fn are_built_from(built: &Sides<Option<Value>>, target: &Sides<Option<Value>>) -> bool {
    target.iter().any(Option::is_some)
        && built.iter().zip(target.iter()).all(|(built, target)| is_built_from(built, target))
}

/// Whether an object in an output can be the object of a target, as the build of another target changes it.
fn is_built_from(built: &Option<Value>, target: &Option<Value>) -> bool {
    match (built, target) {
        (None, None) => true,
        (Some(built), Some(target)) => {
            let name = |object| text(object, "metadata.name");
            // A build may add a prefix or a suffix to the name.
            name(built).contains(name(target)) && ["kind", "spec"].iter().all(|key| built.get(key) == target.get(key))
        }
        _ => false,
    }
}

impl<'a> AllBuilds<'a> {
    /// Collects the facts after the changed objects of targets were added to the builds.
    fn of(all: &'a [BuildDiff<'_>], showing_moves: Vec<Sides<Option<Value>>>, needs: &'a Needs) -> AllBuilds<'a> {
        let mut added_to = HashMap::new();
        // The build of a target that is removed deploys nothing any more.
        for build in all.iter().filter(|build| build.target.new.is_some() || build.target.old.is_none()) {
            for object in build.objects.iter().filter(|object| object.change == DiffStatus::Added) {
                for key in build.keys(object) {
                    added_to.entry(key).or_insert(build.name);
                }
            }
        }
        AllBuilds { added_to, showing_moves, needs }
    }
}

impl BuildDiff<'_> {
    /// The identities of an object: as it is written, and where it lies, or lay, if its kind has namespaces.
    fn keys(&self, object: &ObjectChange) -> [String; 2] {
        let Sides { old, new } = &self.namespaces;
        let namespace = if object.change == DiffStatus::Added { new } else { old };
        [identity_key(&object.id), in_namespace(identity_key(&object.id), namespace)]
    }

    /// Whether the build shows each object that moves to another namespace: that of a Kustomization of Flux does,
    /// because it writes `targetNamespace` into the objects. An object that is only new or gone may have moved as well.
    fn shows_moves(&self, target: &Sides<Option<Value>>) -> bool {
        let Sides { old, new } = target.as_ref().map(Option::as_ref);
        old.is_some()
            && new.is_some_and(|new| is_kind(new, policy::KUSTOMIZATION))
            && self.is_built
            && self.objects.iter().all(|object| object.change == DiffStatus::Changed)
            && gains(old, new, facts::destinations).is_some()
    }

    /// Adds the change of the target's own object to the objects of its build, unless a build or a set shows it
    /// already. Returns the object as the rows judge it beside these.
    fn add_target_change(
        &mut self,
        values: Sides<Option<Value>>,
        is_shown: bool,
        shown_sets: &BTreeSet<String>,
    ) -> TargetObject {
        let changed_objects = self.objects.len();
        let set = self.target.new.and_then(|target| target.object.set.as_ref());
        match values {
            // Its change is judged as one of the objects, so only its present state is judged beside them: the new
            // object stands for both sides.
            Sides { old: Some(old), new: Some(new) } if set.is_none_or(|set| !shown_sets.contains(set)) => {
                if !is_shown {
                    // It comes first: it explains the others.
                    self.objects.splice(0..0, self.target_changes(&old, &new));
                }
                TargetObject { values: Sides { old: Some(new.clone()), new: Some(new) }, changed_objects }
            }
            // A build shows the change already, and is judged for it.
            _ if is_shown => TargetObject::default(),
            // Nothing is added for a target that is new or gone, or whose set is shown: both of its objects are judged.
            values => TargetObject { values, changed_objects },
        }
    }

    /// The changes of the object of its target.
    fn target_changes(&self, was: &Value, is: &Value) -> Vec<ObjectChange> {
        let texts = Sides { old: was, new: is }.map(|value| serde_yaml::to_string(value).unwrap_or_default());
        let mut changes = compare::changes(texts.as_ref().map(|text| text.as_bytes()), Sides::default());
        let id = compare::id(is).unwrap_or_else(|| self.name.to_owned());
        changes.iter_mut().for_each(|change| change.id.clone_from(&id));
        changes
    }

    /// The consequences of the target, and of each object that differs.
    fn consequences(&self, target: &TargetObject, around: &AllBuilds<'_>) -> Vec<Consequence> {
        let AllBuilds { added_to, showing_moves, needs } = around;
        let Sides { old: was, new: is } = self.target;
        let policy = self.target.newest().and_then(manifest).and_then(|object| ObjectPolicy::of(&object));
        let policy = Rc::new(policy.unwrap_or_default());
        let mut all: Vec<Consequence> = Vec::new();
        let values = target.values.as_ref().map(Option::as_ref);
        // Nothing tells here who deploys the object of the target, so it has no policy.
        let itself = Seen { changed_objects: target.changed_objects, ..Seen::of(values, needs) };
        let objects = self.objects.iter().map(|object| {
            let keys = self.keys(object);
            let seen = Seen {
                policy: policy.clone(),
                was_deployed: was.is_some(),
                is_target_removed: was.is_some() && is.is_none(),
                shows_moves: showing_moves.iter().any(|target| are_built_from(&object.values, target)),
                added_to: keys.iter().find_map(|key| added_to.get(key)).copied(),
                ..Seen::of(object.values.as_ref().map(Option::as_ref), needs)
            };
            (object.id.as_str(), seen)
        });
        // The target comes before the objects that it deploys.
        for (object, seen) in std::iter::once((self.name, itself)).chain(objects) {
            for row in TABLE {
                let Some(detail) = (row.of)(&seen) else { continue };
                let text = visible_with_marks(&format!("{} ({detail})", row.described().1));
                // Many objects have one chart as a label, which is reported once. Objects of engines that deploy a
                // chart are reported each.
                let is_label = detail.starts_with("chart ") && seen.new.and_then(ObjectPolicy::of).is_none();
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
    /// An object of both sides, with the objects that need it. The other facts are those of an object without a target.
    fn of(Sides { old, new }: Sides<Option<&'a Value>>, needs: &'a Needs) -> Seen<'a> {
        let name = old.map_or(String::new(), |old| format!("{} {}", text(old, "kind"), full_name(old)));
        let needed = needs.range((name.clone(), String::new())..);
        let needed_by = needed.take_while(|need| need.0 == name).map(|need| need.1.as_str());
        let needed_by = needed_by.collect();
        Seen { old, new, needed_by, ..Seen::default() }
    }

    /// The values of a fact that only the new object has, joined; `None` if there are none.
    fn gains(&self, of: fn(&Value) -> Vec<String>) -> Option<String> {
        gains(self.old, self.new, of)
    }

    /// The fate of the object, if it is removed and `is_such` accepts it. An engine deletes an object together with its
    /// target, or it prunes the object while the target stays.
    fn removed(&self, is_such: fn(&Value) -> bool) -> Option<String> {
        let old = self.old.filter(|old| self.new.is_none() && is_such(old))?;
        // An annotation of the object wins over its target.
        if policy::must_stay(old, self.is_target_removed) {
            return Some("orphaned: it opts out of pruning".to_owned());
        }
        Some(if self.is_target_removed { self.removed_with_target(old) } else { self.pruned(old) })
    }

    /// The fate of an object whose target is removed, too.
    fn removed_with_target(&self, old: &Value) -> String {
        let ObjectPolicy { deletes_objects, leaves_crds, .. } = *self.policy;
        if deletes_objects == Some(false) || leaves_crds && policy::is_crd(old) {
            return "orphaned: the target leaves it".to_owned();
        }
        let fate = self.conditional_fate(old).unwrap_or(match deletes_objects {
            Some(_) => "deleted with the target",
            None => "deleted or orphaned with the target",
        });
        self.unless_taken_over(fate)
    }

    /// The fate of an object that its target no longer has.
    fn pruned(&self, old: &Value) -> String {
        let prunes = self.policy.prunes;
        if prunes == Some(false) {
            return "orphaned: the target does not prune".to_owned();
        }
        let fate = self.conditional_fate(old).unwrap_or(match (prunes, self.added_to) {
            (None, _) => "deleted if the target prunes (unknown)",
            (Some(_), None) => "deleted: the target prunes",
            // `unless` follows, which is not about pruning.
            (Some(_), Some(_)) => "the target prunes, so it is deleted",
        });
        match self.added_to {
            Some(other) if prunes.is_none() => format!("{fate}; {other} has it now"),
            _ => self.unless_taken_over(fate),
        }
    }

    /// The fate of an object that is deleted only on a condition of its own; `None` if its target alone decides.
    fn conditional_fate(&self, old: &Value) -> Option<&'static str> {
        // The output does not tell CRDs in `crds` from those that templates make.
        if self.policy.is_release && policy::is_crd(old) {
            return Some("deleted, but orphaned if it is in `crds` of the chart");
        }
        policy::needs_confirmation(old, self.is_target_removed).then_some("deleted after confirmation")
    }

    /// The fate, with the other build that has the object now, if there is one.
    fn unless_taken_over(&self, fate: &str) -> String {
        self.added_to.map_or(fate.to_owned(), |other| format!("{fate}, unless {other} takes it over"))
    }

    /// The immutable fields that change, and what becomes of the object.
    fn immutable(&self) -> Option<String> {
        let (old, new) = self.old.zip(self.new)?;
        let fields = immutable::changed(old, new)?;
        let is_forced = policy::is_replaced(new) || self.policy.forces;
        let fate = if is_forced { "deleted and recreated" } else { "the API server refuses it" };
        Some(format!("{fields}: {fate}"))
    }

    /// The number of changes that a suspended target will not deploy until somebody resumes it.
    fn below_suspended(&self) -> Option<String> {
        let new = self.new.filter(|new| is_suspended(new))?;
        match self.changed_objects {
            // The row `suspended` reports a target that was not suspended before.
            0 => self.old.filter(|old| *old != new && is_suspended(old)).map(|_| "it changes itself".to_owned()),
            1 => Some("1 object changes".to_owned()),
            many => Some(format!("{many} objects change")),
        }
    }

    /// The objects that need this removed object.
    fn removed_dependency(&self) -> Option<String> {
        let is_gone = self.new.is_none() && self.added_to.is_none();
        (is_gone && !self.needed_by.is_empty()).then(|| format!("needed by {}", self.needed_by.join(", ")))
    }

    /// The fate of the objects that a removed target has deployed; `None` also if it moved to another build, or if its
    /// policy does not tell.
    fn removed_target(&self) -> Option<String> {
        let old = self.old.filter(|_| self.new.is_none() && self.added_to.is_none())?;
        let fate = match (ObjectPolicy::of(old)?.deletes_objects?, text(old, "kind")) {
            (true, "ApplicationSet") => "its applications and their objects are deleted with it",
            (false, "ApplicationSet") => "its applications are deleted with it; their objects stay",
            (true, _) => "its objects are deleted with it",
            (false, _) => "its objects stay, and nothing updates them",
        };
        Some(fate.to_owned())
    }

    /// The build that has this removed object now.
    fn moved(&self) -> Option<String> {
        let is_gone = self.old.is_some() && self.new.is_none() && self.was_deployed;
        self.added_to.filter(|_| is_gone).map(|other| format!("{other} has it now"))
    }
}

/// Whether the object of a target is suspended.
fn is_suspended(object: &Value) -> bool {
    ObjectPolicy::of(object).is_some_and(|policy| policy.is_suspended)
}
