//! The targets whose builds may differ: those whose objects or sources changed, and those with a different input.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::reached::{DeploymentIndex, TargetPairs};
use super::{AffectedTarget, Cause, Causes, DiffStatus, Sides};
use crate::config::{Config, EngineName};
use crate::graph::inputs::BuildInput;
use crate::message::failure::Result;
use crate::reference::is_url;
use crate::targets::plain::manifests;
use crate::targets::{self, Changer, ObjectRef, Target, TargetLocation, Targets};
use crate::tree::path;

/// The identity of an object, independent of its location.
type Name<'a> = (EngineName, &'a str, &'a str, &'a str);

fn name(target: &Target) -> Name<'_> {
    let object = &target.object;
    (target.engine, &object.kind, &object.namespace, &object.name)
}

/// Ways to recognize a target among several with the same name, the most precise first: each cluster may have one.
const LIKE: [fn(&Target, &Target) -> bool; 7] = [
    |old, new| old.digest == new.digest && are_in_same_file(old, new),
    |old, new| old.digest == new.digest && are_of_same_build(old, new),
    // Several sources of one application.
    |old, new| are_in_same_file(old, new) && are_of_same_directory(old, new),
    are_of_same_build,
    |old, new| old.digest == new.digest,
    are_in_same_file,
    |_, _| true,
];

/// Whether one build made two targets.
fn are_of_same_build(old: &Target, new: &Target) -> bool {
    old.object.built_by.is_some() && old.object.built_by == new.object.built_by
}

/// Whether two targets come from the same file and build.
fn are_in_same_file(old: &Target, new: &Target) -> bool {
    old.object.file == new.object.file && old.object.built_by == new.object.built_by
}

/// Whether two targets deploy the same directory, which tells several sources of one application apart.
fn are_of_same_directory(old: &Target, new: &Target) -> bool {
    match (&old.location, &new.location) {
        (TargetLocation::Local(old), TargetLocation::Local(new)) => old.path == new.path,
        (old, new) => old == new,
    }
}

/// Whether it is not known how an object names what it defines.
fn has_unknown_names(target: &Target) -> bool {
    target.changed_by.is_some() || target.has_open_name()
}

/// Whether two targets are views of one object, and it is not known how it names what it defines.
fn are_views(target: &Target, other: &Target) -> bool {
    // Few targets are open, and there may be thousands.
    (has_unknown_names(target) || has_unknown_names(other)) && are_of_one_object(target, other)
}

/// Whether one object in a file defines two targets.
fn are_of_one_object(target: &Target, other: &Target) -> bool {
    let (ObjectRef { file, line, set, .. }, other) = (&target.object, &other.object);
    // A build may rename a set, and an edit above it moves it.
    let is_same_set = set.is_some() && *set == other.set;
    *file == other.file && set.is_some() == other.set.is_some() && (*line == other.line || is_same_set)
}

/// Whether a target is one of several views of an object in `own`, which is also in `other`.
fn is_view(target: &Target, own: &[Target], other: &[Target]) -> bool {
    own.iter().any(|view| are_views(view, target)) && other.iter().any(|view| are_of_one_object(view, target))
}

/// For each new target the number of the same target in the old tree; `None` if it has none, so that it is added.
fn pair_with_old(old: &[Target], new: &[Target]) -> Vec<Option<usize>> {
    let mut unpaired: BTreeMap<Name<'_>, Vec<usize>> = BTreeMap::new();
    for (number, target) in old.iter().enumerate() {
        unpaired.entry(name(target)).or_default().push(number);
    }
    let mut before = vec![None; new.len()];
    // Each rule takes the pairs that are certain by it, and leaves the others to the next one.
    for is_same in LIKE {
        for (target, before) in new.iter().zip(&mut before).filter(|(_, before)| before.is_none()) {
            let same_name = unpaired.entry(name(target)).or_default();
            let index = same_name.iter().position(|number| is_same(&old[*number], target));
            *before = index.map(|index| same_name.remove(index));
        }
    }
    // A build that is unknown on one side may have renamed an object, so that only its file and line tell which it is.
    let mut unpaired: Vec<usize> = unpaired.into_values().flatten().collect();
    for (target, before) in new.iter().zip(&mut before).filter(|(_, before)| before.is_none()) {
        let views = (0..unpaired.len()).filter(|index| {
            let old = &old[unpaired[*index]];
            (target.changed_by.is_some() || old.changed_by.is_some()) && are_of_one_object(old, target)
        });
        let views: Vec<usize> = views.collect();
        // Among several, only one with its name, in another namespace, is certain.
        let named = views.iter().copied().filter(|index| old[unpaired[*index]].object.name == target.object.name);
        *before = match (&views[..], &named.collect::<Vec<_>>()[..]) {
            ([index], _) | (_, [index]) => Some(unpaired.remove(*index)),
            _ => None,
        };
    }
    before
}

impl Causes<'_> {
    /// The targets of the new tree whose builds may differ, and those that were removed. A target that may only seem to
    /// be removed counts as present, with the build that may deploy it.
    pub(super) fn affected_targets(
        &self,
        config: &Config,
        sides: Sides<&DeploymentIndex<'_>>,
    ) -> Result<Vec<AffectedTarget>> {
        let (old_index, new_index) = (sides.old, sides.new);
        let Sides { old, new } = sides.map(|side| &side.targets.targets);
        let now = new_index.targets;
        let before = pair_with_old(old, new);
        let pairs = TargetPairs::of(sides, &before);
        let mut affected = Vec::new();
        for (number, target) in new.iter().enumerate() {
            // Without an old target it is new, with two exceptions. If the old tree deployed its file, and nothing
            // deploys it now, it is only the written form of a target that a build made. And another view of an object
            // that the old tree has is not new.
            let Some(at) = before[number] else {
                if !new_index.is_idle(target, old_index) && !is_view(target, new, old) {
                    let cause = self.target_cause(target, None, now, config)?;
                    let view = old.iter().find(|view| has_unknown_names(view) && are_of_one_object(view, target));
                    // Always a cause: a target without an old one differs by its file.
                    affected.extend(cause.map(|cause| AffectedTarget::appeared(target, view, cause)));
                }
                continue;
            };
            if pairs.is_new(number, at) {
                affected.push(AffectedTarget::added(target, object_file(target)));
                continue;
            }
            let mut change = AffectedTarget::changed(target, &old[at]);
            // An object that nothing deploys any more is like one that is gone, although its file stays.
            let is_unnamed = pairs.is_unnamed(at);
            if is_unnamed {
                change = self.removed_unless_unknown(change, pairs.may_name(at), now)?;
            }
            if change.status == DiffStatus::Changed {
                match self.target_cause(&change.target, Some(&old[at]), now, config)? {
                    Some(cause) => change.cause = cause,
                    // Whether it is still deployed is not known: that is a change, although no input differs.
                    None if is_unnamed => {}
                    None => continue,
                }
            }
            affected.push(change);
        }
        // An old target that nothing deployed, although the new tree deploys its file, is not removed: it is only the
        // written form of a target that a build makes now.
        for at in pairs.gone().filter(|at: &usize| !old_index.is_idle(&old[*at], new_index)) {
            // A target whose name was unknown, and is known now, is not removed.
            if has_unknown_names(&old[at]) && is_view(&old[at], old, new) {
                continue;
            }
            let change = AffectedTarget::changed(&old[at], &old[at]);
            let mut change = self.removed_unless_unknown(change, pairs.may_name(at), now)?;
            if change.status == DiffStatus::Changed
                && let Some(cause) = self.target_cause(&change.target, Some(&old[at]), now, config)?
            {
                change.cause = cause;
            }
            affected.push(change);
        }
        Ok(affected)
    }

    /// The change of a target that nothing is known to deploy any more: it is removed, unless the `changer` may still
    /// deploy it, or a chart that differs and makes objects of its kind. `now` are the new targets.
    fn removed_unless_unknown(
        &self,
        mut change: AffectedTarget,
        changer: Option<Changer>,
        now: &Targets,
    ) -> Result<AffectedTarget> {
        // Both callers give a change with an old target.
        let Some(old) = change.was.as_ref() else { return Ok(change) };
        let changer = match changer {
            Some(changer) => Some(changer),
            None => self.changed_chart_for(old, now)?.map(Changer::new),
        };
        let Some(changer) = changer else {
            let (target, status, cause) = (old.clone(), DiffStatus::Removed, object_file(old));
            return Ok(AffectedTarget { target, was: None, status, cause });
        };
        change.target.changed_by.get_or_insert(changer);
        Ok(change)
    }

    /// The file of the first chart that differs and may now make the object of an old target: one of its templates is
    /// for objects of that kind, and its output is not among the new targets (`now`).
    fn changed_chart_for(&self, target: &Target, now: &Targets) -> Result<Option<String>> {
        let (tree, kind) = (&self.changes.trees.new, format!("kind: {}", target.object.written_kind()));
        let mut charts = BTreeSet::new();
        for changed in self.changes.files(|_| true)? {
            for directory in path::and_above(path::parent(&changed)) {
                let file = path::join(directory, "Chart.yaml");
                // An object that was written in the chart itself is gone from there.
                let was_in_it = path::is_in(&target.object.file, directory);
                let is_known = was_in_it || now.is_rendered(directory);
                if is_known || tree.entry(&file)?.is_none() || !charts.insert(directory.to_owned()) {
                    continue;
                }
                for template in tree.below(&path::join(directory, "templates"))? {
                    let text = tree.read(&template);
                    // One that cannot be read may make any object.
                    if text.is_ok_and(|text| !String::from_utf8_lossy(&text).contains(&kind)) {
                        continue;
                    }
                    return Ok(Some(file));
                }
            }
        }
        Ok(None)
    }

    /// The difference for a target, in its object or among its inputs now and before (`old`, `None` for a new target);
    /// `None` if there is none.
    fn target_cause(
        &self,
        target: &Target,
        old: Option<&Target>,
        all: &Targets,
        config: &Config,
    ) -> Result<Option<Cause>> {
        let object = &target.object;
        let is_same = old.is_some_and(|old| old.digest == target.digest);
        let both = || [target].into_iter().chain(old);
        let mut inputs = Vec::new();
        // If the object changed, the files that define it come first: they are the cause that a reviewer looks for.
        if !is_same {
            let builders = all.targets.iter().filter(|builder| object.built_by.as_ref() == Some(&builder.by()));
            let files = both().chain(builders).flat_map(Target::object_files);
            // A kustomization that built it, or might have, may be gone.
            let changer = |old: &'_ Target| old.changed_by.as_ref().map(|by| by.name.clone());
            let before = old.and_then(|old| old.object.built_by.clone().or_else(|| changer(old)));
            // The configuration may have moved the target: `repository` tells which URLs are this repository. It need
            // not exist, and the source of bootstrapping has no file.
            let files = files.chain(before.as_deref()).chain([config.file.as_str()]);
            inputs.extend(files.filter(|file| !file.is_empty()).map(|file| BuildInput::At(file.to_owned())));
        }
        // The directories of both sides count: an old input may be gone, and a current one may be new.
        let dirs = both().filter_map(|target| match &target.location {
            // A tag always names the same content.
            TargetLocation::Local(dir) if !dir.revision.is_fixed => Some((target, dir)),
            TargetLocation::Local(_) | TargetLocation::External(_) | TargetLocation::Templated(_) => None,
        });
        let dirs: Vec<_> = dirs.collect();
        let from = dirs.first().map_or("", |(_, dir)| &*dir.path);
        if target.why_unknown().is_some() {
            // Only the cluster knows the whole path, so everything below its known part counts.
            inputs.extend(known_directories(&target.manifest, from).into_iter().map(BuildInput::Below));
        }
        for (target, dir) in &dirs {
            // A file may have become a manifest, or may no longer be one.
            let plain = self.changes.trees.as_ref().try_map(|tree| manifests(&**tree, target, dir))?;
            let plain = plain.new.zip(plain.old).map(|(new, old)| [new, old].concat());
            // If not all objects are known, any file of the directory may make some.
            let plain = plain.filter(|_| target.build.unread.is_none());
            // The lists of manifests do not have what is behind a link, or in a submodule.
            if plain.is_some() && target.build.directory.recurse {
                inputs.extend(self.changes.changed_non_files(&dir.path)?.into_iter().map(BuildInput::At));
            }
            inputs.extend(targets::inputs(&*self.changes.trees.new, target, dir, plain)?);
        }
        // A chart from elsewhere may have its values from this repository.
        inputs.extend(both().flat_map(|target| target.build.more_inputs.iter().cloned().map(BuildInput::Below)));
        if let Some(cause) = self.changes.cause_in(&inputs)? {
            return Ok(Some(cause));
        }
        for directory in dirs.iter().flat_map(|(target, dir)| target.roots(dir)) {
            if let Some(cause) = self.of_directory(directory)? {
                return Ok(Some(cause));
            }
        }
        if target.changed_by.is_some() || (object.built_by.is_some() && !is_same) {
            // A root that reads the object may change it.
            let files: Vec<&str> = target.object_files().collect();
            let mut readers = targets::readers(self.graph, &|file| files.contains(&file)).into_iter();
            if let Some(cause) = readers.find_map(|root| self.of_roots[root.0].clone()) {
                return Ok(Some(cause));
            }
        }
        // A `.sourceignore` may hide or show a file anywhere in an artifact, and turns the defaults of Flux off.
        let is_packed = dirs.first().is_some_and(|(_, dir)| dir.artifact.is_some());
        let ignores = self.changes.ignores.as_ref().filter(|_| is_packed);
        Ok(ignores.or(Some(&object.file).filter(|_| !is_same)).map(|file| Cause::Path(file.clone())))
    }
}

impl AffectedTarget {
    /// The change of a target without an old target: it is new, unless an old `view` of its object may have named it.
    fn appeared(target: &Target, view: Option<&Target>, cause: Cause) -> AffectedTarget {
        let Some(view) = view else { return AffectedTarget::added(target, cause) };
        let mut change = AffectedTarget { cause, ..AffectedTarget::changed(target, target) };
        let name = view.object.set_text().unwrap_or_else(|| view.by());
        change.target.changed_by.get_or_insert_with(|| Changer::new(name));
        change
    }

    fn added(target: &Target, cause: Cause) -> AffectedTarget {
        AffectedTarget { target: target.clone(), was: None, status: DiffStatus::Added, cause }
    }

    /// A target that was another one, by a change of its object.
    pub(super) fn changed(target: &Target, old: &Target) -> AffectedTarget {
        let cause = object_file(target);
        AffectedTarget { target: target.clone(), was: Some(old.clone()), status: DiffStatus::Changed, cause }
    }
}

/// A difference in the object of a target.
fn object_file(target: &Target) -> Cause {
    Cause::Path(target.object.file.clone())
}

/// The directories below which any change may change what an object, as JSON, deploys: variables or patterns in its
/// paths leave the rest to the cluster. Its components are relative to `from`, other paths to the top.
fn known_directories(manifest: &str, from: &str) -> Vec<String> {
    let (mut todo, mut directories) = (Vec::from_iter(serde_json::from_str::<Value>(manifest).ok()), Vec::new());
    let mut add = |from: &str, text: &str| {
        // A ResourceSet has its variables in `<<…>>`.
        let literal = text.split(['$', '{', '<', '*', '?', '[']).next().unwrap_or_default();
        let above = if literal == text { text } else { literal.rsplit_once('/').map_or("", |(above, _)| above) };
        directories.extend(path::resolve(from, above));
    };
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(all) => todo.extend(all),
            Value::Object(mut all) => {
                all.remove("path").iter().filter_map(Value::as_str).for_each(|text| add("", text));
                let components = all.remove("components");
                let components = components.as_ref().and_then(Value::as_array).into_iter().flatten();
                components.filter_map(Value::as_str).filter(|text| !is_url(text)).for_each(|text| add(from, text));
                todo.extend(all.into_iter().map(|(_, value)| value));
            }
            // A text may be a template of objects, such as `resourcesTemplate` of a ResourceSet.
            Value::String(text) => {
                let paths = text.lines().filter_map(|line| line.trim_start_matches(['-', ' ']).strip_prefix("path: "));
                let paths = paths.map(|text| text.trim_matches([' ', '"', '\'']));
                // A path of an HTTP request or of a JSON patch is not a directory.
                paths.filter(|text| !text.starts_with('/')).for_each(|text| add("", text));
            }
            _ => {}
        }
    }
    directories
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::targets::{Identity, find};

    #[test]
    fn a_target_of_the_same_build_is_the_same_and_a_view_is_not_gone() {
        let config = Config::default();
        let object = |path: &str| {
            format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: web}}\nspec: {{source: {{repoURL: 'https://h/o/r', path: {path}}}}}\n"
            )
        };
        let target = |file: &str, path: &str, by: &str| {
            let tree = crate::graph::testing::tree(&[(file, &object(path))]);
            let found = find(&tree, &config, &|| Ok(Identity::new([], &config, []))).unwrap();
            let mut target = found.as_written().targets[0].clone();
            target.object.built_by = Some(by.to_owned()).filter(|by| !by.is_empty());
            target
        };
        let old = [target("a.yaml", "x", "one"), target("a.yaml", "x", "two")];
        let new = [target("b.yaml", "x", "new"), target("b.yaml", "x", "two"), target("b.yaml", "y", "one")];
        assert_eq!(pair_with_old(&old, &new), [None, Some(1), Some(0)]);
        let open = |by: &str| {
            let changed_by = Some(Changer::new("k".to_owned()));
            Target { changed_by, ..target("a.yaml", "x", by) }
        };
        let both = [target("a.yaml", "x", "one"), open("")];
        assert!(is_view(&both[0], &both, &old) && is_view(&both[1], &both, &old));
        assert!(!is_view(&old[0], &old, &both) && !is_view(&both[0], &both, &new));
    }
}
