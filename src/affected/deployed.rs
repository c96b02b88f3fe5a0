//! The targets whose build can differ: what Flux, Argo CD and Fleet deploy.

use std::cell::OnceCell;
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::changes::Changes;
use super::{AffectedTarget, Cause, Causes, Status};
use crate::config::{Config, Engine};
use crate::graph::inputs::{self, Input};
use crate::graph::{Graph, RootId, Target as Leads};
use crate::message::failure::Result;
use crate::targets::{self, Found, Object, Place, Target, Targets};
use crate::tree::path;

/// What names the object of a target, wherever it stands.
type Name<'a> = (Engine, &'a str, &'a str, &'a str);

fn name(target: &Target) -> Name<'_> {
    let Object { kind, namespace, name, .. } = &target.object;
    (target.engine, kind, namespace, name)
}

/// What of the roots differs.
pub(super) struct Deployed<'a> {
    pub(super) changes: &'a Changes,
    pub(super) config: &'a Config,
    pub(super) graph: &'a Graph,
    pub(super) causes: &'a Causes,
    /// The roots by their directories.
    pub(super) roots: HashMap<&'a str, RootId>,
    /// The files that the roots read for which something differs, and those that they lead to.
    pub(super) read: OnceCell<HashMap<&'a str, &'a Cause>>,
}

impl Deployed<'_> {
    /// Returns the targets of `new` whose build can differ, and those that are gone.
    pub(super) fn affected(&self, old: &Targets, new: &Targets) -> Result<Vec<AffectedTarget>> {
        let mut was: HashMap<Name<'_>, Vec<&Target>> = HashMap::new();
        let mut unchanged: HashMap<Target, usize> = HashMap::new();
        for target in &old.targets {
            was.entry(name(target)).or_default().push(target);
            *unchanged.entry(without_places(target)).or_default() += 1;
        }
        let mut is: HashMap<Name<'_>, usize> = HashMap::new();
        for target in &new.targets {
            *is.entry(name(target)).or_default() += 1;
        }
        let builders = self.builders(new);
        let mut affected = Vec::new();
        for target in &new.targets {
            let old = was.get(&name(target)).map_or(&[][..], Vec::as_slice);
            // Each of those before is one of those now.
            let same = unchanged.get_mut(&without_places(target));
            let same = same.filter(|left| **left > 0).map(|left| *left -= 1);
            let is_same = same.is_some() && is.get(&name(target)) == Some(&old.len());
            let status = match old {
                [] => Status::Added,
                _ => Status::Changed,
            };
            let cause = if is_same { self.cause(target)? } else { Some(self.declared(target, old, &builders)?) };
            affected.extend(cause.map(|cause| AffectedTarget { target: target.clone(), status, cause }));
        }
        let gone = old.targets.iter().filter(|target| !is.contains_key(&name(target)));
        affected.extend(gone.map(|target| AffectedTarget {
            cause: Cause::Path(target.object.file.clone()),
            target: target.clone(),
            status: Status::Removed,
        }));
        Ok(affected)
    }

    /// Returns what may build objects, by the names under which these have it: roots with what differs for them, and
    /// targets.
    fn builders<'t>(&self, targets: &'t Targets) -> HashMap<String, Builder<'t>> {
        let mut builders = HashMap::new();
        let built = targets.targets.iter();
        let wanted: HashSet<String> = built.filter_map(|target| target.object.built_by.clone()).collect();
        if wanted.is_empty() {
            return builders;
        }
        for (root, cause) in self.graph.roots.iter().zip(&self.causes.found) {
            let file = path::join(&root.directory, root.file_name);
            let by = self.changes.new.label(&file);
            if root.source == 0 && wanted.contains(&by) {
                builders.insert(by, Builder::Root(cause.clone()));
            }
        }
        for target in &targets.targets {
            let by = target.by();
            if wanted.contains(&by) {
                builders.insert(by, Builder::Target(target));
            }
        }
        builders
    }

    /// Returns what differs for a target of which something else is said than before.
    fn declared(&self, target: &Target, old: &[&Target], builders: &HashMap<String, Builder<'_>>) -> Result<Cause> {
        let mut files: Vec<&str> = target.object_files();
        files.extend(old.iter().flat_map(|old| old.object_files()));
        let Object { name, built_by, .. } = &target.object;
        let own = match &target.place {
            Place::Here(here) => targets::override_files(&here.path, name),
            Place::External(_) | Place::Templated(_) => Vec::new(),
        };
        files.extend(own.iter().map(String::as_str));
        match built_by.as_ref().and_then(|by| builders.get(by)) {
            Some(Builder::Root(Some(cause))) => return Ok(cause.clone()),
            Some(Builder::Target(target)) => files.extend(target.object_files()),
            _ => {}
        }
        // A kustomization that built it, or might have, may be gone.
        for old in old {
            let changed_by = old.changed_by.as_ref().map(|changer| &changer.name);
            files.extend(changed_by.or(old.object.built_by.as_ref()).map(String::as_str));
        }
        files.push(&self.config.file);
        for file in files.into_iter().filter(|file| !file.is_empty()) {
            if let Some(cause) = self.changes.first_of(&[Input::At(file.to_owned())])? {
                return Ok(cause);
            }
        }
        let cause = self.cause(target)?;
        Ok(cause.unwrap_or_else(|| Cause::Path(target.object.file.clone())))
    }

    /// Returns what differs for a target that is declared as it was.
    fn cause(&self, target: &Target) -> Result<Option<Cause>> {
        if target.changed_by.is_some()
            && let Some(cause) = self.of_readers(target)
        {
            return Ok(Some(cause));
        }
        let Place::Here(here) = &target.place else {
            return Ok(None);
        };
        let own = targets::inputs(&*self.changes.new, target, here)?;
        if let Some(cause) = self.changes.first_of(&own)? {
            return Ok(Some(cause));
        }
        let directories = targets::roots(&*self.changes.new, target, here);
        for directory in &directories {
            if let Some(root) = self.roots.get(directory.as_str()) {
                if let Some(cause) = &self.causes.found[*root] {
                    return Ok(Some(cause.clone()));
                }
            } else {
                let inputs = inputs::of_no_root(&*self.changes.new, directory, &[])?;
                if let Some(cause) = self.changes.first_of(&inputs)? {
                    return Ok(Some(cause));
                }
            }
        }
        if let (Found::Directory(directory), Engine::Flux) = (&here.found, target.engine)
            && let Some(cause) = self.of_scanned(directory)?
        {
            return Ok(Some(cause));
        }
        // It may hide something, or no longer: that there is one anywhere turns the defaults of Flux off.
        let ignores = here.artifact.as_ref().and(self.changes.ignores.as_ref());
        Ok(ignores.cloned().map(Cause::Path))
    }

    /// Returns what differs for the kustomization that Flux makes of a directory without one: its resources are the roots
    /// in it, which Flux does not enter, and the files beside them.
    fn of_scanned(&self, directory: &str) -> Result<Option<Cause>> {
        let is_root = |above: &&str| self.roots.contains_key(above);
        // A root below the directory in which a place lies.
        let root_above = |place: &str| -> Option<RootId> {
            let mut above = path::and_above(path::parent(place));
            let root = above.find(|above| *above != directory && path::is_in(above, directory) && is_root(above))?;
            self.roots.get(root).copied()
        };
        let beside = self.changes.below_but(directory, |place| root_above(place).is_some())?;
        if let Some(place) = beside {
            return Ok(Some(Cause::Path(place)));
        }
        let of_roots = self.roots.iter().filter_map(|(root, id)| {
            let cause = self.causes.found[*id].as_ref()?;
            (path::is_in(root, directory) && root_above(root).is_none()).then_some((root, cause))
        });
        // In no order of a map, which is another one in each run.
        let first = of_roots.min_by_key(|(root, _)| **root);
        Ok(first.map(|(_, cause)| cause.clone()))
    }

    /// Returns what differs for a root that reads the object of a target, and may change it.
    fn of_readers(&self, target: &Target) -> Option<Cause> {
        let read = self.read.get_or_init(|| {
            let roots = self.causes.found.iter().enumerate();
            let mut todo: Vec<(RootId, &Cause)> =
                roots.filter_map(|(root, cause)| Some((root, cause.as_ref()?))).collect();
            let mut seen = HashSet::new();
            let mut read = HashMap::new();
            while let Some((root, cause)) = todo.pop() {
                if !seen.insert(root) {
                    continue;
                }
                for edge in &self.graph.roots[root].edges {
                    if let Leads::Root { id, .. } = edge.target {
                        todo.push((id, cause));
                    } else if let Some(path) = self.graph.own_file(edge) {
                        read.entry(path).or_insert(cause);
                    }
                }
            }
            read
        });
        let files = target.object_files();
        let mut causes = files.iter().filter_map(|file| read.get(*file));
        causes.next().map(|cause| (*cause).clone())
    }
}

/// What may build objects.
enum Builder<'a> {
    /// A root, with what differs for it.
    Root(Option<Cause>),
    /// What is deployed.
    Target(&'a Target),
}

/// Returns a target without the places where things stand.
fn without_places(target: &Target) -> Target {
    let mut plain = target.clone();
    let unplaced = |object: &mut Object| {
        object.file.clear();
        object.line = 0;
    };
    unplaced(&mut plain.object);
    plain.spot = (0, 0);
    plain.build.generate_paths = None;
    for component in &mut plain.build.components {
        component.file.clear();
        (component.line, component.column) = (0, 0);
    }
    if let Place::Here(here) = &mut plain.place
        && let Some(artifact) = &mut here.artifact
    {
        let artifact = Rc::make_mut(artifact);
        artifact.object.iter_mut().for_each(unplaced);
    }
    plain
}
