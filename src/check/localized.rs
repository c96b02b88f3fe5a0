//! What is deployed from the repository that is localized.

use std::rc::Rc;

use super::{Input, engine as of_engine};
use crate::git::{LocalRepo, Snapshot};
use crate::graph::{Explored, Graph};
use crate::message::failure::Result;
use crate::message::finding::Finding;
use crate::plan::Plan;
use crate::targets::{self, Identity, Targets};
use crate::tree::SharedTree;
use crate::workspace::Workspace;

/// Finds what is deployed from a repository, and adds to the findings of a plan what an engine would do to files of ours
/// in the result, and does not do now. What is copied on disk alone is judged by `check` once it is committed.
pub(crate) fn deployed(workspace: &Workspace, plan: &mut Plan) -> Result<Targets> {
    match workspace.repo().filter(|_| workspace.files.snapshot().is_some()) {
        Some(repo) => deployed_from(repo, workspace, plan),
        None => Ok(Targets::default()),
    }
}

/// Does the same for any files, as those of a repository.
pub(crate) fn deployed_from(repo: &Rc<LocalRepo>, workspace: &Workspace, plan: &mut Plan) -> Result<Targets> {
    let (tree, config) = (&workspace.tree, &workspace.config);
    let begun: Vec<String> = plan.before.user_roots().into_keys().map(str::to_owned).collect();
    let found = targets::find_from(workspace.survey(), &begun, config, &|| Identity::of_any_clone(repo, config))?;
    let targets = found.settle(&plan.before);
    if targets.targets.is_empty() && targets.generators.is_empty() {
        return Ok(targets);
    }
    let Some(survey) = plan.survey.clone() else { return Ok(targets) };
    let mut found = engine(workspace, &targets, survey.tree(), &mut plan.after)?;
    if !found.is_empty() {
        let known = engine(workspace, &targets, tree.clone(), &mut plan.before)?;
        found.retain(|one| !known.iter().any(|other| other.identity() == one.identity()));
    }
    plan.findings.extend(found);
    Ok(targets)
}

/// Returns what engines do to files of ours in a tree, of which `graph` was walked.
fn engine(workspace: &Workspace, targets: &Targets, tree: SharedTree, graph: &mut Graph) -> Result<Vec<Finding>> {
    let input = Input {
        source: Snapshot::WorkingTree,
        tree,
        paths: &[],
        config: &workspace.config,
        own: None,
        absences: None,
        identity: None,
        build: None,
    };
    let explored = Explored { graph: std::mem::take(graph), troubles: Vec::new(), starts: Vec::new() };
    let found = of_engine(&input, &explored, targets);
    *graph = explored.graph;
    found
}
