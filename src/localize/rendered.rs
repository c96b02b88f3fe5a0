//! One run of `branch --rendered`: what all builds of a commit come to, on a branch of its own.

use std::rc::Rc;

use super::{BranchReport, LocalizeOutcome, LocalizeRequest, PUSHES, ResultKind, WriteOutcome, overtaken};
use crate::build::choice::Choices;
use crate::build::rendered::{ProgramOptions, Rendered};
use crate::config::FILE_NAME;
use crate::destination::{self, Delivered, Destination, OnBranch, rendered};
use crate::git::{LocalRepo, object_id};
use crate::message::failure::{Failure, Failures, Result, listed};
use crate::tree::Tree as _;
use crate::tree::git::GitTree;
use crate::workspace::Workspace;

/// Builds everything that is deployed from the source of a request, and commits the outputs to a branch.
pub(crate) fn render(request: &LocalizeRequest<'_>) -> Result<LocalizeOutcome, Failures> {
    let workspace = request.workspace()?.into_checkout();
    let open = || Destination::open(&workspace, request.branch.as_ref(), None, request.overwrite);
    let mut destination = open()?;
    // A new branch must not take the place of one at the remote that was never fetched. And HEAD is built: changes on
    // disk would have no effect.
    destination.branch().map_or(Ok(()), OnBranch::refuse_unseen)?;
    destination::refuse_uncommitted(&workspace, &workspace.survey().explore_all_inputs()?.graph)?;
    let mut rendered = build_all(&workspace, request.how)?;
    // If somebody else pushes first, their commit becomes the parent, and nothing is built again.
    for _ in 0..PUSHES {
        // A request to render always names a branch.
        let on_branch = destination.branch().ok_or_else(|| Failure::new("rendered files go to a branch"))?;
        let content = on_branch.rendered_content(&workspace, &mut rendered)?;
        let (status, delivered) = if request.dry_run {
            (WriteOutcome::DryRun, Some(on_branch.pending(&content)?))
        } else {
            let delivered = on_branch.commit(&content, || format!("Render {}", on_branch.source_label()))?;
            (WriteOutcome::of(delivered.as_ref().is_some_and(|delivered| delivered.is_written)), delivered)
        };
        if let Some(delivered) = delivered {
            return Ok(outcome(status, on_branch, &workspace, rendered, delivered));
        }
        destination = open()?;
    }
    Err(overtaken().into())
}

/// Builds everything that is deployed from a workspace. Refuses outputs with Secrets, which everybody who can read the
/// branch could read, unless the configuration allows them.
fn build_all(workspace: &Workspace, how: ProgramOptions<'_>) -> Result<Rendered, Failures> {
    let repo = workspace.repo().ok_or_else(|| Failure::new("this is not a git repository"))?;
    let choices = Choices::of_workspace(repo, workspace, &[])?;
    let rendered = Rendered::of(workspace, choices, how)?;
    // A limit of this machine must not remove the files of a build from the branch.
    if !rendered.stopped.is_empty() {
        return Err(Failures(rendered.stopped).context("nothing was committed"));
    }
    let secrets = rendered.clear_secrets();
    if workspace.config.rendered_secrets || secrets.is_empty() {
        return Ok(rendered);
    }
    Err(in_the_clear(&secrets).into())
}

/// The failure of Secrets that everybody who reads the branch could read.
fn in_the_clear(secrets: &[String]) -> Failure {
    let subject = if secrets.len() == 1 { "a Secret" } else { "Secrets" };
    Failure::new(format!("the branch would hold {subject} in the clear: {}", listed(secrets)))
        .hint("encrypt them (SOPS, SealedSecret), or let the cluster fetch them (ExternalSecret)")
        .hint(format!(
            "if everybody who reads the branch may read them, write `rendered-secrets: true` into {FILE_NAME}"
        ))
}

/// The outcome of rendering, for the report.
fn outcome(
    status: WriteOutcome,
    on_branch: &OnBranch,
    workspace: &Workspace,
    rendered: Rendered,
    delivered: Delivered,
) -> LocalizeOutcome {
    let branch = BranchReport::of(on_branch, delivered.commit, delivered.tree, None);
    let (missing, fails, builds) = (rendered.missing(), rendered.fails, rendered.files.len());
    LocalizeOutcome {
        status,
        made: ResultKind::Rendered { builds, missing, fails },
        files: delivered.changed.files,
        removed: delivered.changed.removed,
        discarded: on_branch.discarded(),
        branch: Some(branch),
        remotes: workspace.lock.as_ref().map(|lock| lock.remotes.clone()).unwrap_or_default(),
        left: workspace.lock.as_ref().map(|lock| lock.left.clone()).unwrap_or_default(),
        ..LocalizeOutcome::default()
    }
}

/// A rendered tree beside the outputs of its source commit today, for `verify --rebuild`.
pub(crate) struct RenderedAgain {
    /// The paths at which they differ.
    pub differing: Vec<String>,
    /// The files that were not rendered again, because they may be of a build that is not known.
    pub kept: Vec<String>,
}

/// Renders a source commit again. `arguments` are those of the builds that the record names: they come from a commit
/// message, so no build gets them.
pub(crate) fn render_again(
    repo: &Rc<LocalRepo>,
    source: &str,
    tree: &str,
    arguments: &[String],
) -> Result<RenderedAgain, Failures> {
    let workspace = Workspace::of_rev(repo.clone(), Some(source))?.into_checkout();
    let choices = Choices::of_workspace(repo, &workspace, &[])?;
    let mut rendered = Rendered::of(&workspace, choices, ProgramOptions::default())?;
    // A build that a limit stopped has no files, which would look like a difference.
    if let Some(stopped) = rendered.stopped.first() {
        return Err(stopped.clone().into());
    }
    if rendered.by.without_secrets().arguments != arguments {
        let message = format!("the builds had the arguments `{}`, which a commit message names", arguments.join(" "));
        return Err(Failure::new(message).hint("render it again without `--build-arg`, and compare the trees").into());
    }
    let committed = GitTree::of_local(repo.clone(), object_id(tree)?)?;
    let differing = rendered::changes(&committed, &workspace, &mut rendered)?.into_keys().collect();
    let mut kept = committed.below("")?;
    kept.retain(|file| rendered.keeps(file));
    Ok(RenderedAgain { differing, kept })
}

#[cfg(test)]
mod tests {
    use super::in_the_clear;

    #[test]
    fn secrets_that_are_not_named_are_counted() {
        for (count, end) in [(1, "a Secret in the clear: `s0`"), (10, "`s9`"), (15, "`s9` and 5 more")] {
            let secrets: Vec<String> = (0..count).map(|number| format!("s{number}")).collect();
            let message = in_the_clear(&secrets).message;
            assert!(message.ends_with(end), "{message}");
        }
    }
}
