//! Which objects of engines other targets deploy: one that a kustomization no longer names is gone, although its file stays.

use std::collections::{BTreeSet, HashMap};

use super::{Status, hidden};
use crate::graph::{Explored, RootId};
use crate::message::failure::Result;
use crate::targets::plain::manifests;
use crate::targets::settle::files_of;
use crate::targets::{Found, Here, Target, Targets};

/// The targets of one tree, as they reach the objects of each other.
pub(super) struct Reached<'a> {
    explored: &'a Explored,
    roots: HashMap<&'a str, RootId>,
    /// The files that some target deploys.
    files: BTreeSet<String>,
}

impl<'a> Reached<'a> {
    pub(super) fn of((explored, targets): &'a (Explored, Targets)) -> Result<Reached<'a>> {
        let roots = explored.graph.own_roots();
        let mut reached = Reached { explored, roots, files: BTreeSet::new() };
        let mut starts = Vec::new();
        for (target, here) in targets.here() {
            starts.extend(reached.roots(target, here));
            reached.files.extend(reached.plain(target, here)?);
        }
        reached.files.extend(files_of(&explored.graph, starts).into_iter().map(str::to_owned));
        Ok(reached)
    }

    fn roots(&self, target: &Target, here: &Here) -> Vec<RootId> {
        target.roots(here).filter_map(|root| self.roots.get(root).copied()).collect()
    }

    /// Returns the files that a target deploys, or may, without a kustomization that names them.
    fn plain(&self, target: &Target, here: &Here) -> Result<Vec<String>> {
        let tree = &*self.explored.graph.sources[0].tree;
        let mut files = manifests(tree, target, here)?.unwrap_or_default();
        files.extend(here.scanned.iter().map(|one| one.path.clone()));
        if let Found::Chart(directory) | Found::Plugin(directory) = &here.found {
            files.extend(tree.below(directory)?);
        }
        Ok(files)
    }

    fn has(&self, target: &Target) -> bool {
        target.object.built_by.is_some() || self.files.contains(&target.object.file)
    }

    /// Returns whether nothing deploys a target of the second of two trees, but in the first something did so with its file,
    /// where a build may have given it another name: then it is neither new nor gone itself.
    pub(super) fn is_left([one, other]: [&Reached<'_>; 2], target: &Target, all_of_one: &[Target]) -> bool {
        let is_it = |old: &Target| old.object.file == target.object.file && one.has(old);
        !other.has(target) && all_of_one.iter().any(is_it)
    }

    fn reaches(&self, by: &Target, target: &Target) -> Result<bool> {
        let Some(here) = by.here() else { return Ok(false) };
        let file = &target.object.file;
        let named = files_of(&self.explored.graph, self.roots(by, here));
        Ok(named.contains(&file.as_str()) || self.plain(by, here)?.contains(file))
    }

    /// Returns whether all is known of what a target deploys.
    fn is_known(&self, target: &Target) -> bool {
        let hidden = hidden(self.explored);
        let Some(here) = target.here().filter(|_| target.unknown().is_none()) else { return false };
        !self.explored.graph.insisted(self.roots(target, here)).into_iter().any(|root| hidden.contains_key(&root))
    }
}

/// Returns whether a target whose object is in both trees is gone, or new, since a target that is known no longer names it,
/// or does from now on. `pairs` are all targets of now, each with what it was.
pub(super) fn turned(
    [was, is]: [&Reached<'_>; 2],
    (old, new): (&Target, &Target),
    pairs: &[(&Target, Option<&Target>)],
    all_old: &[Target],
) -> Result<Option<Status>> {
    match (was.has(old), is.has(new)) {
        (true, false) => {
            let mut is_sure = false;
            for by in all_old {
                if !was.reaches(by, old)? {
                    continue;
                }
                let now = pairs.iter().find(|(_, before)| before.is_some_and(|before| std::ptr::eq(before, by)));
                if now.is_some_and(|(now, _)| !is.is_known(now)) {
                    return Ok(None);
                }
                is_sure = true;
            }
            Ok(is_sure.then_some(Status::Removed))
        }
        (false, true) => {
            for (by, before) in pairs {
                if before.is_some_and(|before| was.is_known(before)) && is.reaches(by, new)? {
                    return Ok(Some(Status::Added));
                }
            }
            Ok(None)
        }
        _ => Ok(None),
    }
}
