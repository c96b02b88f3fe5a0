//! The targets whose builds may differ: those whose objects or sources changed, and those with a different input.

use std::collections::BTreeMap;

use serde_json::Value;

use super::reached::{DeploymentIndex, TargetPairs};
use super::{AffectedTarget, Cause, Causes, DiffStatus, Sides};
use crate::config::{Config, EngineName};
use crate::graph::inputs::BuildInput;
use crate::message::failure::Result;
use crate::targets::plain::manifests;
use crate::targets::{self, Changer, ObjectRef, Target, TargetDir, TargetLocation, Targets};
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
        let targets = sides.map(|side| side.targets);
        let Sides { old, new } = targets.map(|side| &side.targets);
        let before = pair_with_old(old, new);
        let pairs = TargetPairs::of(sides, &before);
        let comparison = TargetComparison { causes: self, config, old, new: targets.new, pairs: &pairs };
        let mut affected = Vec::new();
        for (number, target) in new.iter().enumerate() {
            match before[number] {
                Some(at) if pairs.is_new(number, at) => {
                    affected.push(AffectedTarget::added(target, object_file(target)));
                }
                Some(at) => affected.extend(comparison.change(target, at, pairs.is_unnamed(at))?),
                // If the old tree deployed its file, and nothing deploys it now, it is only the written form of a
                // target that a build made.
                None if sides.new.is_idle(target, sides.old) => {}
                // Another view of an object that the old tree has is not new.
                None if is_view(target, new, old) => {}
                None => affected.extend(comparison.appearance(target)?),
            }
        }
        for at in pairs.gone() {
            let target = &old[at];
            // If the new tree deploys its file, and nothing deployed it before, it is only the written form of a target
            // that a build makes now. A target whose name was unknown, and is known now, is not removed either.
            let is_renamed = has_unknown_names(target) && is_view(target, old, new);
            if !sides.old.is_idle(target, sides.new) && !is_renamed {
                affected.extend(comparison.change(target, at, true)?);
            }
        }
        Ok(affected)
    }
}

/// The targets of two trees, to find their changes.
struct TargetComparison<'a> {
    causes: &'a Causes<'a>,
    config: &'a Config,
    old: &'a [Target],
    new: &'a Targets,
    pairs: &'a TargetPairs<'a>,
}

impl TargetComparison<'_> {
    /// The change of a target without an old one: it is new, unless an old view of its object may have named it.
    fn appearance(&self, target: &Target) -> Result<Option<AffectedTarget>> {
        let view = self.old.iter().find(|view| has_unknown_names(view) && are_of_one_object(view, target));
        // Always a cause: a target without an old one differs by its file.
        let cause = self.cause(target, None)?;
        Ok(cause.map(|cause| AffectedTarget::appeared(target, view, cause)))
    }

    /// The change from the old target `at` to `target`. `None` if nothing differs. If it `is_unnamed`, nothing is known
    /// to deploy it any more: it is like one that is gone, although the file of its object may stay.
    fn change(&self, target: &Target, at: usize, is_unnamed: bool) -> Result<Option<AffectedTarget>> {
        let old = &self.old[at];
        let mut change = AffectedTarget::changed(target, old);
        if is_unnamed {
            let Some(changer) = self.possible_changer(at)? else {
                let (target, status, cause) = (old.clone(), DiffStatus::Removed, object_file(old));
                return Ok(Some(AffectedTarget { target, was: None, status, cause }));
            };
            change.target.changed_by.get_or_insert(changer);
        }
        match self.cause(&change.target, Some(old))? {
            Some(cause) => change.cause = cause,
            // Whether it is still deployed is not known: that is a change, although no input differs.
            None if is_unnamed => {}
            None => return Ok(None),
        }
        Ok(Some(change))
    }

    /// Something that may still deploy an old target, although nothing is known to do so: a build or file, or a chart
    /// that differs. `None` if it is removed.
    fn possible_changer(&self, at: usize) -> Result<Option<Changer>> {
        if let Some(changer) = self.pairs.may_name(at) {
            return Ok(Some(changer));
        }
        Ok(self.changed_chart_for(&self.old[at])?.map(Changer::new))
    }

    /// The file of the first chart that differs and may now make the object of an old target: one of its templates is
    /// for objects of that kind, and its output is not among the new targets.
    fn changed_chart_for(&self, target: &Target) -> Result<Option<String>> {
        let changes = self.causes.changes;
        let files = changes.files(|_| true)?;
        for directory in path::directories(files.iter().map(String::as_str)) {
            let file = path::join(directory, "Chart.yaml");
            // An object that was written in the chart itself is gone from there.
            let is_known = path::is_in(&target.object.file, directory) || self.new.is_rendered(directory);
            if !is_known && changes.trees.new.entry(&file)?.is_some() && self.has_template_for(target, directory)? {
                return Ok(Some(file));
            }
        }
        Ok(None)
    }

    /// Whether a template of a chart may make an object of the kind of a target.
    fn has_template_for(&self, target: &Target, chart: &str) -> Result<bool> {
        let (tree, kind) = (&self.causes.changes.trees.new, format!("kind: {}", target.object.written_kind()));
        let templates = tree.below(&path::join(chart, "templates"))?;
        // One that cannot be read may make any object.
        let is_other =
            |template: &String| tree.read(template).is_ok_and(|text| !String::from_utf8_lossy(&text).contains(&kind));
        Ok(!templates.iter().all(is_other))
    }

    /// The difference for a target, in its object or among its inputs now and before (`old`, `None` for a new target).
    /// `None` if there is none.
    fn cause(&self, target: &Target, old: Option<&Target>) -> Result<Option<Cause>> {
        let is_same = old.is_some_and(|old| old.digest == target.digest);
        let both: Vec<&Target> = [target].into_iter().chain(old).collect();
        // The directories of both sides count: an old input may be gone, and a current one may be new.
        let dirs: Vec<(&Target, &TargetDir)> =
            both.iter().filter_map(|target| Some((*target, changeable_dir(target)?))).collect();
        let mut inputs = Vec::new();
        // If the object changed, the files that define it come first: they are the cause that a reviewer looks for.
        if !is_same {
            inputs.extend(self.defining_files(target, old).into_iter().map(BuildInput::At));
        }
        if target.why_unknown().is_some() {
            // Only the cluster knows the whole path, so everything below its known part counts.
            let from = dirs.first().map_or("", |(_, dir)| &*dir.path);
            inputs.extend(known_directories(&target.manifest, from).into_iter().map(BuildInput::Below));
        }
        for (target, dir) in &dirs {
            inputs.extend(self.inputs(target, dir)?);
        }
        // A chart from elsewhere may have its values from this repository.
        inputs.extend(both.iter().flat_map(|target| target.build.more_inputs.iter().cloned().map(BuildInput::Below)));
        if let Some(cause) = self.causes.changes.cause_in(&inputs)? {
            return Ok(Some(cause));
        }
        for directory in dirs.iter().flat_map(|(target, dir)| target.roots(dir)) {
            if let Some(cause) = self.causes.of_directory(directory)? {
                return Ok(Some(cause));
            }
        }
        if target.changed_by.is_some() || (target.object.built_by.is_some() && !is_same) {
            let cause = self.cause_in_readers(target);
            if cause.is_some() {
                return Ok(cause);
            }
        }
        // A `.sourceignore` may hide or show a file anywhere in an artifact, and turns the defaults of Flux off.
        let is_packed = dirs.first().is_some_and(|(_, dir)| dir.artifact.is_some());
        let ignores = self.causes.changes.ignores.as_ref().filter(|_| is_packed);
        Ok(ignores.or((!is_same).then_some(&target.object.file)).map(|file| Cause::Path(file.clone())))
    }

    /// The files that define the object of a target now and before, and those of the targets that made it. They need
    /// not exist: the configuration may not, and the source of bootstrapping has no file.
    fn defining_files(&self, target: &Target, old: Option<&Target>) -> Vec<String> {
        let built_by = target.object.built_by.as_ref();
        let builders = self.new.targets.iter().filter(|builder| built_by == Some(&builder.by()));
        let files = [target].into_iter().chain(old).chain(builders).flat_map(Target::object_files).map(str::to_owned);
        // A kustomization that built it, or might have, may be gone.
        let changer = |old: &Target| old.changed_by.as_ref().map(|by| by.name.clone());
        let before = old.and_then(|old| old.object.built_by.clone().or_else(|| changer(old)));
        // The configuration may have moved the target: `repository` tells which URLs are this repository.
        files.chain(before).chain([self.config.file.clone()]).collect()
    }

    /// The inputs of a target from its directory.
    fn inputs(&self, target: &Target, dir: &TargetDir) -> Result<Vec<BuildInput>> {
        let changes = self.causes.changes;
        // A file may have become a manifest, or may no longer be one.
        let plain = changes.trees.as_ref().try_map(|tree| manifests(&**tree, target, dir))?;
        let plain = plain.new.zip(plain.old).map(|(new, old)| [new, old].concat());
        // If not all objects are known, any file of the directory may make some.
        let plain = plain.filter(|_| target.build.unread.is_none());
        let mut inputs = Vec::new();
        // The lists of manifests do not have what is behind a link, or in a submodule.
        if plain.is_some() && target.build.directory.recurse {
            inputs.extend(changes.changed_non_files(&dir.path)?.into_iter().map(BuildInput::At));
        }
        inputs.extend(targets::inputs(&*changes.trees.new, target, dir, plain)?);
        Ok(inputs)
    }

    /// A difference for a root that reads the object of a target, which it may change. `None` if there is none.
    fn cause_in_readers(&self, target: &Target) -> Option<Cause> {
        let files: Vec<&str> = target.object_files().collect();
        let readers = targets::readers(self.causes.graph, &|file| files.contains(&file));
        readers.into_iter().find_map(|root| self.causes.of_roots[root.0].clone())
    }
}

/// The directory of this repository that a target deploys. `None` if its content is always the same, as that of a tag,
/// or not in this repository.
fn changeable_dir(target: &Target) -> Option<&TargetDir> {
    match &target.location {
        TargetLocation::Local(dir) if !dir.revision.is_fixed => Some(dir),
        _ => None,
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
    while let Some(value) = todo.pop() {
        match value {
            Value::Array(all) => todo.extend(all),
            Value::Object(mut all) => {
                if let Some(Value::String(text)) = all.remove("path") {
                    directories.extend(path::resolve("", known_part(&text)));
                }
                // A component may be a URL, which no path of the tree is like.
                if let Some(Value::Array(components)) = all.remove("components") {
                    let texts = components.iter().filter_map(Value::as_str);
                    directories.extend(texts.filter_map(|text| path::resolve(from, known_part(text))));
                }
                todo.extend(all.into_iter().map(|(_, value)| value));
            }
            // A text may be a template of objects, such as `resourcesTemplate` of a ResourceSet.
            Value::String(text) => {
                let texts = text.lines().filter_map(path_in_line);
                directories.extend(texts.filter_map(|text| path::resolve("", known_part(text))));
            }
            _ => {}
        }
    }
    directories
}

/// The directory in a path up to the first variable or pattern. A ResourceSet has its variables in `<<…>>`.
fn known_part(text: &str) -> &str {
    let Some(first) = text.find(['$', '{', '<', '*', '?', '[']) else { return text };
    text[..first].rsplit_once('/').map_or("", |(above, _)| above)
}

/// The path in a line of YAML such as `- path: "apps/web"`. `None` for another key, and for an absolute path: that of
/// an HTTP request or of a JSON patch is not a directory.
fn path_in_line(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(['-', ' ']).strip_prefix("path: ")?.trim_matches([' ', '"', '\'']);
    Some(text).filter(|text| !text.starts_with('/'))
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
