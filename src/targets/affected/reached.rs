//! Which objects of engines other targets deploy: one that a kustomization no longer names is gone, although its file
//! stays.

use std::collections::{BTreeMap, BTreeSet};

use super::{Sides, incomplete_roots};
use crate::graph::{Explored, RootId};
use crate::kustomization::NoteKind;
use crate::message::failure::Failure;
use crate::targets::deployments::Deployments;
use crate::targets::{Changer, DeployedTree, PathContent, Target, Targets, Unread, readers};

/// The targets of one tree, as they reach the objects of each other.
pub(super) struct DeploymentIndex<'a> {
    explored: &'a Explored,
    pub(super) targets: &'a Targets,
    pub(super) incomplete: BTreeMap<RootId, Unread>,
    deployments: Deployments<'a>,
}

impl<'a> DeploymentIndex<'a> {
    pub(super) fn of(DeployedTree { explored, targets }: &'a DeployedTree) -> DeploymentIndex<'a> {
        let objects = targets.targets.iter().map(|target| target.object.file.as_str()).collect();
        let deployments = Deployments::of(&explored.graph, &targets.targets, &objects);
        DeploymentIndex { explored, targets, incomplete: incomplete_roots(explored, targets), deployments }
    }

    /// The numbers of the targets that deploy the object of a target.
    fn deployed_by(&self, target: &Target) -> Vec<usize> {
        let all = self.deployments.users(&target.object.file).iter().copied();
        all.filter(|number| self.targets.targets[*number].local_dir().is_some()).collect()
    }

    /// Whether a build made the object of a target, or another target deploys it.
    fn is_deployed(&self, target: &Target) -> bool {
        target.object.built_by.is_some() || !self.deployed_by(target).is_empty()
    }

    /// Whether nothing deploys a target of this tree, but in the other tree something did so with its file.
    pub(super) fn is_idle(&self, target: &Target, other: &DeploymentIndex<'_>) -> bool {
        // A build may have given it another name: then it is neither new nor removed itself.
        !self.is_deployed(target)
            && other
                .targets
                .targets
                .iter()
                .any(|candidate: &Target| candidate.object.file == target.object.file && other.is_deployed(candidate))
    }

    /// Whether the tree shows all objects in the output of a target: one that is not among them is surely not deployed
    /// by it.
    fn is_known(&self, number: usize) -> bool {
        let target = &self.targets.targets[number];
        let is_unknown = target.changed_by.is_some() || target.why_unknown().is_some();
        if is_unknown || target.local_dir().is_none() {
            return false;
        }
        let (graph, roots) = (&self.explored.graph, self.deployments.roots(number));
        // A root that is not read whole may deploy more. If a build fails, the objects of the build before stay
        // deployed.
        let mut troubles = self.explored.troubles.iter();
        !roots.iter().any(|root| self.incomplete.contains_key(root))
            && !troubles.any(|trouble| graph.belongs_to(trouble.at, roots))
    }

    /// The inputs of a target that may make objects that no file of the tree shows: charts, functions, plugins, and
    /// remote references.
    fn opaque_inputs(&self, number: usize) -> BTreeSet<&str> {
        let (graph, roots) = (&self.explored.graph, self.deployments.roots(number));
        let edges = roots.iter().flat_map(|root| &graph.roots[*root].edges);
        let remote = edges.filter(|edge| edge.remote.is_some()).map(|edge| edge.reference.text.as_str());
        let notes = graph.notes.iter().filter(|noted| roots.contains(&noted.root));
        let notes = notes.filter_map(|noted| match &noted.note.kind {
            NoteKind::Chart { name, .. } => Some(name.as_str()),
            NoteKind::Code { kind, .. } => Some(kind.as_str()),
            NoteKind::ExtraDocument | NoteKind::Replaced { .. } => None,
        });
        let own = self.targets.targets[number].local_dir().and_then(|dir| match &dir.content {
            PathContent::Chart(directory) | PathContent::Plugin(directory) => Some(directory.as_str()),
            _ => None,
        });
        own.into_iter().chain(remote).chain(notes).collect()
    }
}

/// Which old and new targets are the same, by their numbers, to tell which are new or removed.
pub(super) struct TargetPairs<'a> {
    sides: Sides<&'a DeploymentIndex<'a>>,
    /// The old target of each new target.
    before: &'a [Option<usize>],
    /// The new target of each old target.
    now: Vec<Option<usize>>,
}

impl<'a> TargetPairs<'a> {
    /// Pairs targets: `before` has the old target of each new one.
    pub(super) fn of(sides: Sides<&'a DeploymentIndex<'a>>, before: &'a [Option<usize>]) -> TargetPairs<'a> {
        let mut now = vec![None; sides.old.targets.targets.len()];
        for (number, before) in before.iter().enumerate() {
            if let Some(before) = before {
                now[*before] = Some(number);
            }
        }
        TargetPairs { sides, before, now }
    }

    /// The old targets that have no new target.
    pub(super) fn gone(&self) -> impl Iterator<Item = usize> {
        (0..self.now.len()).filter(|before| self.now[*before].is_none())
    }

    /// Whether a target is new although its object was there: nothing deployed the object, and now a target does of
    /// which all old objects are known.
    pub(super) fn is_new(&self, number: usize, before: usize) -> bool {
        let Sides { old, new } = self.sides;
        let target = &new.targets.targets[number];
        !old.is_deployed(&old.targets.targets[before])
            && new.is_deployed(target)
            && new
                .deployed_by(target)
                .into_iter()
                .any(|by: usize| self.before[by].is_some_and(|before| old.is_known(before)))
    }

    /// Whether something deployed the object of an old target, and nothing deploys it now, even if its file is still
    /// there.
    pub(super) fn is_unnamed(&self, before: usize) -> bool {
        let Sides { old, new } = self.sides;
        !old.deployed_by(&old.targets.targets[before]).is_empty()
            && !self.now[before].is_some_and(|now: usize| new.is_deployed(&new.targets.targets[now]))
    }

    /// The build or file that may still deploy the object of an old target, because its output is not known. `None` if
    /// everything is known that could deploy it, so that the target is removed.
    pub(super) fn may_name(&self, before: usize) -> Option<Changer> {
        let Sides { old, new } = self.sides;
        let target = &old.targets.targets[before];
        let file = target.object.file.as_str();
        let unread = || new.targets.unread_objects(&new.explored.graph).find(|unread| unread.file == file);
        self.possible_builder(before)
            .map(|by| Changer::new(by.by()))
            .or_else(|| self.broken_reader(file))
            .or_else(|| self.unknown_namer(target))
            .or_else(|| unread().map(|unread| Changer::new(unread.location_text())))
    }

    /// The new target of a builder of an old target, if its unknown output may still have the object. `None` if no
    /// builder may have kept it.
    fn possible_builder(&self, before: usize) -> Option<&'a Target> {
        let Sides { old, new } = self.sides;
        // A builder may be deployed by another one, and so on.
        let mut visited = BTreeSet::new();
        let mut todo = vec![before];
        while let Some(number) = todo.pop() {
            for builder in old.deployed_by(&old.targets.targets[number]) {
                if !visited.insert(builder) {
                    continue;
                }
                match self.now[builder] {
                    // This builder is gone, too: its own builders may have kept both.
                    None => todo.push(builder),
                    // A new chart, function or remote reference of the builder may make the object.
                    Some(now)
                        if !new.is_known(now) || !new.opaque_inputs(now).is_subset(&old.opaque_inputs(builder)) =>
                    {
                        return Some(&new.targets.targets[now]);
                    }
                    Some(_) => {}
                }
            }
        }
        None
    }

    /// A root that read a file with objects, and that no longer builds: the objects of its last build stay deployed.
    fn broken_reader(&self, file: &str) -> Option<Changer> {
        let Sides { old, new } = self.sides.map(|side| side.explored);
        let mut readers = readers(&old.graph, &|read| read == file).into_iter();
        readers.find_map(|reader| {
            let root = new.graph.user_root(&old.graph.roots[reader].directory)?;
            let reached = new.graph.reach_localized([root]);
            let trouble = new.troubles.iter().find(|trouble| new.graph.belongs_to(trouble.at, &reached))?;
            let name = new.graph.label(new.graph.roots[root].file);
            Some(Changer { name, not_built: Some(trouble.failure.clone()) })
        })
    }

    /// A new or changed object of the same engine that may define the old target, because only the cluster knows the
    /// names of the targets that it defines: a build may change it, or it is a template.
    fn unknown_namer(&self, target: &Target) -> Option<Changer> {
        let Sides { old, new } = self.sides.map(|side| &side.targets.targets);
        let is_same = |number: usize, candidate: &Target| {
            self.before[number].is_some_and(|before| old[before].digest == candidate.digest)
        };
        let mut candidates = new
            .iter()
            .enumerate()
            .filter(|(number, candidate)| candidate.engine == target.engine && !is_same(*number, candidate));
        candidates.find_map(|(_, candidate)| match &candidate.changed_by {
            Some(changer) => (candidate.object.kind == target.object.kind).then(|| changer.clone()),
            None => candidate.has_open_name().then(|| {
                let name = candidate.object.set_text().unwrap_or_else(|| candidate.by());
                Changer { name, not_built: candidate.why_undefined().map(Failure::new) }
            }),
        })
    }
}
