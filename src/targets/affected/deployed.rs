//! The targets whose build can differ: those of which the object, or its source, says something else, and those of whose
//! inputs one is different.

use std::collections::BTreeMap;

use serde_json::Value;

use super::reached::{Reached, turned};
use super::{AffectedTarget, Cause, Causes, Status};
use crate::config::{Config, EngineName};
use crate::graph::inputs::Input;
use crate::message::failure::Result;
use crate::reference::is_url;
use crate::targets::plain::manifests;
use crate::targets::{self, Place, Target, Targets};
use crate::tree::path;

/// What names the object of a target, wherever it stands.
type Name<'a> = (EngineName, &'a str, &'a str, &'a str);

fn name(target: &Target) -> Name<'_> {
    let object = &target.object;
    (target.engine, &object.kind, &object.namespace, &object.name)
}

/// What makes a target the same as one of that name was, the best first: each cluster may have one.
const LIKE: [fn(&Target, &Target) -> bool; 4] = [
    |old, new| old.digest == new.digest && is_there(old, new),
    |old, new| old.digest == new.digest,
    is_there,
    |_, _| true,
];

fn is_there(old: &Target, new: &Target) -> bool {
    old.object.file == new.object.file && old.object.built_by == new.object.built_by
}

impl Causes<'_> {
    /// Returns the targets of `new` whose build can differ, and those that are gone.
    pub(super) fn targets(&self, config: &Config, [was_all, is_all]: [&Reached<'_>; 2]) -> Result<Vec<AffectedTarget>> {
        let (old, new) = (was_all.targets, is_all.targets);
        let mut was: BTreeMap<Name<'_>, Vec<&Target>> = BTreeMap::new();
        for target in &old.targets {
            was.entry(name(target)).or_default().push(target);
        }
        let mut before: Vec<Option<&Target>> = vec![None; new.targets.len()];
        for is_it in LIKE {
            for (target, before) in new.targets.iter().zip(&mut before).filter(|(_, before)| before.is_none()) {
                let all = was.entry(name(target)).or_default();
                *before = all.iter().position(|old| is_it(old, target)).map(|at| all.remove(at));
            }
        }
        let mut affected = Vec::new();
        let pairs: Vec<_> = new.targets.iter().zip(before).collect();
        for (target, before) in &pairs {
            if before.is_none() && is_all.is_idle(target, was_all) {
                continue;
            }
            if let Some(was) = before
                && let Some(status) = turned([was_all, is_all], (was, target), &pairs)
            {
                let one = if status == Status::Removed { was } else { target };
                let cause = Cause::Path(one.object.file.clone());
                affected.push(AffectedTarget { target: (*one).clone(), was: None, status, cause });
                continue;
            }
            let status = if before.is_some() { Status::Changed } else { Status::Added };
            let cause = self.of_target(target, *before, new, config)?;
            let (target, was) = ((*target).clone(), before.cloned());
            affected.extend(cause.map(|cause| AffectedTarget { target, was, status, cause }));
        }
        let gone = was.into_values().flatten().filter(|one| !was_all.is_idle(one, is_all));
        affected.extend(gone.map(|target| AffectedTarget {
            cause: Cause::Path(target.object.file.clone()),
            target: target.clone(),
            was: None,
            status: Status::Removed,
        }));
        Ok(affected)
    }

    /// Returns what differs for a target, of what is said of it, and among its inputs now and before.
    fn of_target(
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
        if !is_same {
            let builders = object.built_by.iter().flat_map(|by| all.targets.iter().filter(move |one| one.by() == *by));
            let files = both().chain(builders).flat_map(Target::object_files);
            // A kustomization that built it, or might have, may be gone.
            let before = old.map(|old| (&old.object.built_by, &old.changed_by));
            let before = before.and_then(|(built, changed)| built.as_ref().or(changed.as_ref().map(|by| &by.name)));
            let files = files.chain(before.map(String::as_str)).chain([config.file.as_str()]);
            inputs.extend(files.filter(|file| !file.is_empty()).map(|file| Input::At(file.to_owned())));
        }
        let here = both().filter_map(|target| match &target.place {
            // What a tag names is what it was.
            Place::Here(here) if !here.revision.is_fixed => Some((target, here)),
            Place::Here(_) | Place::External(_) | Place::Templated(_) => None,
        });
        let here: Vec<_> = here.collect();
        let from = here.first().map_or("", |(_, here)| &*here.path);
        if target.unknown().is_some() {
            inputs.extend(written(&target.said, from).into_iter().map(Input::Below));
        }
        for (target, here) in &here {
            // A file may be one of them only now, or no longer.
            let [is, was] = [&self.changes.new, &self.changes.old].map(|tree| manifests(&**tree, target, here));
            let plain = is?.zip(was?).map(|(is, was)| [is, was].concat()).filter(|_| target.build.unread.is_none());
            if plain.is_some() && target.build.directory.recurse {
                inputs.extend(self.changes.others(&here.path)?.into_iter().map(Input::At));
            }
            inputs.extend(targets::inputs(&*self.changes.new, target, here, plain)?);
        }
        // A chart from elsewhere may have its values from here.
        inputs.extend(both().flat_map(|target| target.build.values.iter().cloned().map(Input::Below)));
        if let Some(cause) = self.changes.first_of(&inputs)? {
            return Ok(Some(cause));
        }
        for directory in here.iter().flat_map(|(target, here)| target.roots(here)) {
            if let Some(cause) = self.of_directory(directory)? {
                return Ok(Some(cause));
            }
        }
        if target.changed_by.is_some() || (object.built_by.is_some() && !is_same) {
            // Who reads the object may change it.
            let files: Vec<&str> = target.object_files().collect();
            let mut readers = targets::readers(self.graph, &|file| files.contains(&file)).into_iter();
            if let Some(cause) = readers.find_map(|root| self.of_roots[root.0].clone()) {
                return Ok(Some(cause));
            }
        }
        // A file with patterns may hide something anywhere, or no longer, and turns the defaults of Flux off.
        let is_packed = here.first().is_some_and(|(_, here)| here.artifact.is_some());
        let ignores = self.changes.ignores.as_ref().filter(|_| is_packed);
        Ok(ignores.or(Some(&object.file).filter(|_| !is_same)).map(|file| Cause::Path(file.clone())))
    }
}

/// Returns what is written of the paths that an object, as JSON, leaves to the cluster: directories, which what it deploys
/// lies below. Its components are named as `from` a directory.
fn written(said: &str, from: &str) -> Vec<String> {
    let (mut todo, mut found) = (Vec::from_iter(serde_json::from_str::<Value>(said).ok()), Vec::new());
    let mut add = |from: &str, text: &str| {
        let literal = text.split(['$', '{', '<', '*', '?', '[']).next().unwrap_or_default();
        let above = if literal == text { text } else { literal.rsplit_once('/').map_or("", |(above, _)| above) };
        found.extend(path::resolve(from, above));
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
            // A template of objects.
            Value::String(text) => {
                let paths = text.lines().filter_map(|line| line.trim_start_matches(['-', ' ']).strip_prefix("path: "));
                let paths = paths.map(|text| text.trim_matches([' ', '"', '\'']));
                // That of a request, or everything, says nothing.
                paths.filter(|text| !text.starts_with('/')).for_each(|text| add("", text));
            }
            _ => {}
        }
    }
    found
}
