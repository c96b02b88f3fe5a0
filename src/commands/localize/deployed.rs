//! What is deployed from the repository that is localized.

use std::rc::Rc;

use crate::check;
use crate::graph::{Explored, Graph, Warning};
use crate::message::failure::Result;
use crate::message::finding::Finding;
use crate::plan::Plan;
use crate::reference_tree::Survey;
use crate::targets::{self, Identity, Targets};
use crate::tree::disk::DiskTree;
use crate::tree::overlay::OverlayTree;
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace};

/// What is deployed from the repository that a workspace lies in.
pub(in crate::commands) struct Deployed {
    pub(super) tree: Rc<dyn Tree>,
    /// With what may change their objects.
    targets: Targets,
    /// Where the workspace has the top of the repository.
    top: String,
}

impl Deployed {
    /// Reads the objects of the repository that is localized as the plan says, and notes what may change them; none
    /// where there is no repository.
    pub(in crate::commands) fn of(workspace: &Workspace, plan: &Plan) -> Result<Option<Deployed>> {
        let (tree, top): (Rc<dyn Tree>, &str) = match &workspace.files {
            Files::Commit { tree, .. } => (tree.clone(), ""),
            Files::WorkingTree { tree, .. } => (tree.clone(), ""),
            // A directory on disk may lie in a repository.
            Files::Disk { repo, .. } => match (repo, &workspace.top) {
                (Some(repo), Some(top)) => (Rc::new(DiskTree::of_working_tree(repo.clone())?), top),
                _ => return Ok(None),
            },
            Files::Tree(_) => return Ok(None),
        };
        let Some(repo) = workspace.repo() else {
            return Ok(None);
        };
        let config = &workspace.config;
        let identity = || Identity::of(repo, config);
        let mut targets = targets::find(&*tree, config, identity)?;
        match workspace.files {
            // The plan walks no more of the repository than that directory.
            Files::Disk { .. } if !targets.targets.is_empty() => {
                Survey::of(tree.clone())?.settle(&mut targets);
            }
            _ => targets.settle(&plan.before, &*tree),
        }
        Ok(Some(Deployed { tree, targets, top: top.to_owned() }))
    }

    /// Returns what `check` finds in the result that an engine would do to files of ours, and does not do now.
    pub(in crate::commands) fn harm(&self, workspace: &Workspace, plan: &mut Plan) -> Result<Vec<Warning>> {
        if self.targets.targets.is_empty() && self.targets.sets.is_empty() {
            return Ok(Vec::new());
        }
        let mut after = OverlayTree::new(self.tree.clone());
        for (place, file) in &plan.changes {
            if let (Some(file), Some(place)) = (file, path::below(place, &self.top)) {
                after.file(place, &file.bytes, file.executable);
            }
        }
        let is_copy = plan.new_dir.is_some();
        let find = |tree: Rc<dyn Tree>, graph: &mut Graph| -> Result<Vec<Finding>> {
            let input = check::Input {
                checking: check::Checking::WorkingTree,
                tree,
                paths: &[],
                config: &workspace.config,
                own: None,
                absences: None,
                identity: None,
            };
            // That of a copy is not one of the repository.
            let walked = if is_copy { Graph::default() } else { std::mem::take(graph) };
            let explored = Explored { graph: walked, troubles: Vec::new(), starts: Vec::new() };
            let found = check::engine(&input, &explored, &self.targets);
            if !is_copy {
                *graph = explored.graph;
            }
            found
        };
        let mut found = find(Rc::new(after), &mut plan.after)?;
        if !found.is_empty() {
            let before = find(self.tree.clone(), &mut plan.before)?;
            found.retain(|one| !before.iter().any(|other| other.message == one.message));
        }
        Ok(found.into_iter().map(Warning::from).collect())
    }

    /// Says how many targets are deployed from a branch; none where nothing is deployed.
    pub(super) fn count_from(&self, branch: &str) -> Option<String> {
        self.targets.deployed_from(branch, |revision| revision.name.as_deref() == Some(branch))
    }
}
