//! What is deployed from the repository that is localized.

use std::rc::Rc;

use crate::message::failure::{Failures, Result};
use crate::plan::{self, Plan};
use crate::reference_tree::Survey;
use crate::targets::{self, Identity, Targets};
use crate::tree::Listing;
use crate::tree::disk::DiskTree;
use crate::workspace::{Files, Workspace};

/// What is deployed from the repository that a workspace lies in.
pub(in crate::commands) struct Deployed {
    pub(super) tree: Rc<dyn Listing>,
    /// With what may change their objects.
    targets: Targets,
    /// Where the workspace has the top of the repository.
    top: String,
}

impl Deployed {
    /// Reads the objects of the repository that is localized as the plan says, and notes what may change them; none
    /// where there is no repository.
    pub(in crate::commands) fn of(workspace: &Workspace, plan: &Plan) -> Result<Option<Deployed>> {
        let (tree, top): (Rc<dyn Listing>, &str) = match &workspace.files {
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

    /// Refuses a plan that would change what is deployed besides.
    pub(in crate::commands) fn refuse_harm(&self, plan: &Plan) -> Result<(), Failures> {
        plan::deployed::refuse_harm(plan, &self.targets, &*self.tree, &self.top)
    }

    /// Says how many targets are deployed from a branch, and names one that is not; none where nothing is deployed.
    pub(super) fn count_from(&self, branch: &str) -> Option<String> {
        let (from, other): (Vec<_>, Vec<_>) =
            self.targets.here().partition(|(_, here)| here.revision.name.as_deref() == Some(branch));
        let all = from.len() + other.len();
        let other = other.first().map(|(target, here)| {
            let object = &target.object;
            let (name, revision) = (object.full_name(), here.revision.shown());
            format!("; {name} ({}:{}) reads {revision}", object.file, object.line)
        });
        let other = other.unwrap_or_default();
        let targets = if all == 1 { "target" } else { "targets" };
        let from = from.len();
        (all > 0).then(|| format!("deployed from {branch}: {from} of {all} {targets}{other}"))
    }
}
