//! What is deployed from the repository that is localized.

use std::rc::Rc;

use crate::check;
use crate::graph::inputs::explore_all;
use crate::graph::{Explored, Graph, Warning};
use crate::message::failure::Result;
use crate::message::finding::Finding;
use crate::plan::Plan;
use crate::targets::{self, Identity, Targets};
use crate::tree::disk::DiskTree;
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, path};
use crate::workspace::{Files, Workspace};

/// What is deployed from the repository that a workspace lies in, with what may change the objects.
pub(in crate::commands) struct Deployed(Targets);

impl Deployed {
    /// Finds what is deployed, and adds to the warnings of a plan what an engine would do to files of ours in the result,
    /// and does not do now; none where there is no repository.
    pub(in crate::commands) fn judge(workspace: &Workspace, plan: &mut Plan) -> Result<Option<Deployed>> {
        let (Some(repo), Some(top)) = (workspace.repo(), &workspace.top) else {
            return Ok(None);
        };
        // A directory on disk may lie in a repository, of which the plan walks no more.
        let is_disk = matches!(workspace.files, Files::Disk { .. });
        let tree: SharedTree =
            if is_disk { Rc::new(DiskTree::of_working_tree(repo.clone())?) } else { workspace.tree.clone() };
        let config = &workspace.config;
        let mut targets = targets::find(&*tree, config, &|| Identity::of(repo, config))?;
        if !is_disk {
            targets.settle(&plan.before);
        } else if !targets.targets.is_empty() {
            targets.settle(&explore_all(tree.clone())?.graph);
        }
        let deployed = Deployed(targets);
        let mut after = OverlayTree::new(tree.clone());
        for (place, file) in &plan.changes {
            if let (Some(file), Some(place)) = (file, path::below(place, top)) {
                after.file(place, &file.bytes, file.executable);
            }
        }
        let is_copy = plan.new_dir.is_some();
        let mut found = deployed.engine(workspace, Rc::new(after), is_copy, &mut plan.after)?;
        if !found.is_empty() {
            let before = deployed.engine(workspace, tree, is_copy, &mut plan.before)?;
            found.retain(|one| !before.iter().any(|other| other.message == one.message));
        }
        plan.warnings.extend(found.into_iter().map(Warning::from));
        Ok(Some(deployed))
    }

    /// Returns what engines do to files of ours in a tree, of which `graph` was walked. That of a copy is none of the
    /// repository.
    fn engine(
        &self,
        workspace: &Workspace,
        tree: SharedTree,
        is_copy: bool,
        graph: &mut Graph,
    ) -> Result<Vec<Finding>> {
        if self.0.targets.is_empty() && self.0.sets.is_empty() {
            return Ok(Vec::new());
        }
        let input = check::Input {
            checking: check::Checking::WorkingTree,
            tree,
            paths: &[],
            config: &workspace.config,
            own: None,
            absences: None,
            identity: None,
        };
        let walked = if is_copy { Graph::default() } else { std::mem::take(graph) };
        let explored = Explored { graph: walked, troubles: Vec::new(), starts: Vec::new() };
        let found = check::engine(&input, &explored, &self.0);
        if !is_copy {
            *graph = explored.graph;
        }
        found
    }

    /// Says how many targets are deployed from a branch; none where nothing is deployed.
    pub(super) fn count_from(&self, branch: &str) -> Option<String> {
        self.0.deployed_from(branch, |revision| revision.name.as_deref() == Some(branch))
    }
}
