//! The targets whose build can differ: those of which the object, or its source, says something else, and those of whose
//! inputs one is different.

use std::collections::HashMap;

use super::changes::Changes;
use super::{AffectedTarget, Cause, Status};
use crate::config::{Config, Engine};
use crate::graph::inputs::{self, Input};
use crate::graph::{Graph, RootId};
use crate::message::failure::Result;
use crate::targets::{self, Object, Place, Target, Targets};

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
    /// One of the things that differ for each root.
    pub(super) causes: &'a [Option<Cause>],
    /// The roots by their directories.
    pub(super) roots: HashMap<&'a str, RootId>,
}

impl Deployed<'_> {
    /// Returns the targets of `new` whose build can differ, and those that are gone.
    pub(super) fn affected(&self, old: &Targets, new: &Targets) -> Result<Vec<AffectedTarget>> {
        let mut was: HashMap<Name<'_>, Vec<&Target>> = HashMap::new();
        for target in &old.targets {
            was.entry(name(target)).or_default().push(target);
        }
        let mut said_the_same = Vec::new();
        for target in &new.targets {
            let old = was.get_mut(&name(target)).and_then(|all| {
                let same = all.iter().position(|old| old.digest == target.digest)?;
                Some(all.remove(same))
            });
            said_the_same.push(old);
        }
        let mut affected = Vec::new();
        for (target, same) in new.targets.iter().zip(said_the_same) {
            let old = same.or_else(|| was.get_mut(&name(target))?.pop());
            let status = if old.is_some() { Status::Changed } else { Status::Added };
            let cause = if same.is_some() { self.cause(target, old)? } else { Some(self.declared(target, old, new)?) };
            affected.extend(cause.map(|cause| AffectedTarget { target: target.clone(), status, cause }));
        }
        let gone = old.targets.iter().filter(|old| was[&name(old)].iter().any(|left| std::ptr::eq(*left, *old)));
        affected.extend(gone.map(|target| AffectedTarget {
            cause: Cause::Path(target.object.file.clone()),
            target: target.clone(),
            status: Status::Removed,
        }));
        Ok(affected)
    }

    /// Returns what differs for a target of which something else is said than before.
    fn declared(&self, target: &Target, old: Option<&Target>, all: &Targets) -> Result<Cause> {
        let mut files: Vec<&str> = target.object_files();
        if let Some(by) = &target.object.built_by {
            let builders = all.targets.iter().filter(|one| one.by() == *by);
            files.extend(builders.flat_map(Target::object_files));
        }
        if let Some(old) = old {
            files.extend(old.object_files());
            // A kustomization that built it, or might have, may be gone.
            let changed_by = old.changed_by.as_ref().map(|changer| &changer.name);
            files.extend(changed_by.or(old.object.built_by.as_ref()).map(String::as_str));
        }
        files.push(&self.config.file);
        let files = files.into_iter().filter(|file| !file.is_empty());
        let files: Vec<Input> = files.map(|file| Input::At(file.to_owned())).collect();
        let cause = match target.object.built_by.as_ref().and_then(|_| self.of_readers(target)) {
            Some(cause) => Some(cause),
            None => self.changes.first_of(&files)?,
        };
        let cause = if cause.is_some() { cause } else { self.cause(target, old)? };
        Ok(cause.unwrap_or_else(|| Cause::Path(target.object.file.clone())))
    }

    /// Returns what differs among the inputs of a target, now and before.
    fn cause(&self, target: &Target, old: Option<&Target>) -> Result<Option<Cause>> {
        if target.changed_by.is_some()
            && let Some(cause) = self.of_readers(target)
        {
            return Ok(Some(cause));
        }
        for target in [target].into_iter().chain(old) {
            let Place::Here(here) = &target.place else {
                continue;
            };
            let own = targets::inputs(&*self.changes.new, target, here)?;
            if let Some(cause) = self.changes.first_of(&own)? {
                return Ok(Some(cause));
            }
            for directory in target.roots(here) {
                let cause = match self.roots.get(directory) {
                    Some(root) => self.causes[*root].clone(),
                    None => self.changes.first_of(&inputs::of_no_root(&*self.changes.new, directory, &[])?)?,
                };
                if cause.is_some() {
                    return Ok(cause);
                }
            }
        }
        // One anywhere may hide something, or no longer, and turns the defaults of Flux off.
        let is_packed = matches!(&target.place, Place::Here(here) if here.artifact.is_some());
        Ok(self.changes.ignores.clone().filter(|_| is_packed).map(Cause::Path))
    }

    /// Returns what differs for a root that reads the object of a target, and may change it.
    fn of_readers(&self, target: &Target) -> Option<Cause> {
        let files = target.object_files();
        let readers = targets::readers(self.graph, &|file| files.contains(&file));
        readers.into_iter().find_map(|root| self.causes[root].clone())
    }
}
