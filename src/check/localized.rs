//! The targets of a repository that is being localized, and the files in the result that engines would refuse.

use std::rc::Rc;

use super::{Input, engine_findings};
use crate::git::{LocalRepo, Snapshot};
use crate::graph::{Explored, Graph};
use crate::message::failure::Result;
use crate::message::finding::Finding;
use crate::plan::Plan;
use crate::targets::{self, Identity, Targets};
use crate::tree::SharedTree;
use crate::workspace::Workspace;

/// Finds the targets of a repository, and adds to the plan the findings of rule `engine` that the result has and the
/// source does not. Files outside of a repository have no targets.
pub(crate) fn deployed(workspace: &Workspace, plan: &mut Plan) -> Result<Targets> {
    match workspace.repo().filter(|_| workspace.files.snapshot().is_some()) {
        Some(repo) => deployed_from(repo, workspace, plan),
        None => Ok(Targets::default()),
    }
}

/// Finds the targets of files of the repository `repo`, also of a tree in memory, and adds to the plan the findings of
/// rule `engine` that the result has and the source does not.
pub(crate) fn deployed_from(repo: &Rc<LocalRepo>, workspace: &Workspace, plan: &mut Plan) -> Result<Targets> {
    let (tree, config) = (&workspace.tree, &workspace.config);
    let starts: Vec<String> = plan.before.user_roots().into_keys().map(str::to_owned).collect();
    let unresolved = targets::find_from(workspace.survey(), &starts, config, &|| Identity::of_any_clone(repo, config))?;
    let targets = unresolved.resolve_changers(&plan.before);
    // Without targets no engine deploys the result, so there is nothing to find.
    if targets.targets.is_empty() && targets.generators.is_empty() {
        return Ok(targets);
    }
    // A copy has no survey: `check` judges it where it is committed.
    let Some(survey) = plan.survey.clone() else { return Ok(targets) };
    let mut findings = findings_in(workspace, &targets, survey.tree(), &mut plan.after)?;
    // Findings of the original are the user's, and must not keep the result from being written.
    if !findings.is_empty() {
        let known = findings_in(workspace, &targets, tree.clone(), &mut plan.before)?;
        findings.retain(|finding| !known.iter().any(|other| other.identity() == finding.identity()));
    }
    plan.findings.extend(findings);
    Ok(targets)
}

/// The findings of rule `engine` in a tree that was walked to `graph`, with the exceptions of the workspace.
fn findings_in(workspace: &Workspace, targets: &Targets, tree: SharedTree, graph: &mut Graph) -> Result<Vec<Finding>> {
    let input = Input {
        source: Snapshot::WorkingTree,
        tree,
        paths: &[],
        config: &workspace.config,
        change_config: None,
        absences: None,
        identity: None,
        build: None,
    };
    // The rule takes the graph as a part of a walk, so it is moved there and back.
    let explored = Explored { graph: std::mem::take(graph), troubles: Vec::new(), starts: Vec::new() };
    let findings = engine_findings(&input, &explored, targets);
    *graph = explored.graph;
    findings
}
