//! Which objects of engines other targets deploy: one that a kustomization no longer names is gone, although its file stays.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::{Status, hidden};
use crate::graph::{Explored, RootId};
use crate::message::failure::Result;
use crate::targets::plain::manifests;
use crate::targets::settle::files_read;
use crate::targets::{Found, Target, Targets, Unread};

/// The targets of one tree, as they reach the objects of each other.
pub(super) struct Reached<'a> {
    explored: &'a Explored,
    pub(super) targets: &'a Targets,
    pub(super) hidden: BTreeMap<RootId, Unread>,
    /// The files with objects that targets deploy, each with the numbers of these.
    by: HashMap<String, Vec<usize>>,
}

impl<'a> Reached<'a> {
    pub(super) fn of((explored, targets): &'a (Explored, Targets)) -> Result<Reached<'a>> {
        let (graph, tree) = (&explored.graph, &*explored.graph.sources[0].tree);
        let objects: BTreeSet<&str> = targets.targets.iter().map(|target| target.object.file.as_str()).collect();
        let read = files_read(graph, &targets.targets, &|file| objects.contains(file));
        let mut by: HashMap<String, Vec<usize>> = HashMap::new();
        for (number, (target, read)) in targets.targets.iter().zip(read).enumerate() {
            let Some(here) = target.here() else { continue };
            let mut plain = manifests(tree, target, here)?.unwrap_or_default();
            // Any file of these may be one.
            if let Found::Chart(directory) | Found::Plugin(directory) = &here.found {
                plain.extend(tree.below(directory)?);
            }
            let plain = plain.iter().map(String::as_str).filter(|file| objects.contains(file));
            for file in plain.chain(read).collect::<BTreeSet<&str>>() {
                by.entry(file.to_owned()).or_default().push(number);
            }
        }
        Ok(Reached { explored, targets, hidden: hidden(explored), by })
    }

    /// Returns the numbers of the targets that deploy the object of a target.
    fn by(&self, target: &Target) -> &[usize] {
        self.by.get(&target.object.file).map(Vec::as_slice).unwrap_or_default()
    }

    fn has(&self, target: &Target) -> bool {
        target.object.built_by.is_some() || !self.by(target).is_empty()
    }

    /// Returns whether nothing deploys a target of this tree, but in the other one something did so with its file, where a
    /// build may have given it another name: then it is neither new nor gone itself.
    pub(super) fn is_idle(&self, target: &Target, other: &Reached<'_>) -> bool {
        let is_it = |one: &Target| one.object.file == target.object.file && other.has(one);
        !self.has(target) && other.targets.targets.iter().any(is_it)
    }

    /// Returns whether all is known of what a target deploys: what does not build deploys what it did.
    fn is_known(&self, target: &Target) -> bool {
        let Some(here) = target.here().filter(|_| target.changed_by.is_none() && target.unknown().is_none()) else {
            return false;
        };
        let graph = &self.explored.graph;
        let reached = graph.reach_localized(target.walked(here, graph));
        let mut troubles = self.explored.troubles.iter();
        !reached.iter().any(|root| self.hidden.contains_key(root))
            && !troubles.any(|trouble| graph.is_in(trouble.at, &reached))
    }
}

/// Returns whether a target whose object is in both trees is gone, or new, since a target that is known no longer names it,
/// or does from now on. `pairs` are all targets of now, each with what it was.
pub(super) fn turned(
    [was, is]: [&Reached<'_>; 2],
    (old, new): (&Target, &Target),
    pairs: &[(&Target, Option<&Target>)],
) -> Option<Status> {
    match (was.has(old), is.has(new)) {
        (true, false) => {
            let is_known = |number: &usize| {
                let by = &was.targets.targets[*number];
                let now = pairs.iter().find(|(_, before)| before.is_some_and(|before| std::ptr::eq(before, by)));
                now.is_none_or(|(now, _)| is.is_known(now))
            };
            let by = was.by(old);
            (!by.is_empty() && by.iter().all(is_known)).then_some(Status::Removed)
        }
        (false, true) => {
            let was_known = |number: &usize| pairs[*number].1.is_some_and(|before| was.is_known(before));
            is.by(new).iter().any(was_known).then_some(Status::Added)
        }
        _ => None,
    }
}
