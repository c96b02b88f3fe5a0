//! `affected`: lists the roots and targets that a change touches. `schema.json` describes each field of the JSON.

use std::collections::BTreeMap;
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::messages::{counted, fitting, named};
use super::output::{Done, Outcome, OutputArgs, Shown};
use crate::build::choice::group_sources;
use crate::build::deployed::deployed;
use crate::config::Config;
use crate::git::object_id;
use crate::graph::Survey;
use crate::message::failure::{Failure, short};
use crate::message::redact::visible;
use crate::targets::affected::changes::Changes;
use crate::targets::affected::{self, Affected, AffectedTarget, Cause, DiffStatus, Sides};
use crate::targets::{Changer, Identity, Target, Unread, stopped};
use crate::tree::git::GitTree;
use crate::tree::path;
use crate::workspace::{commit, merge_base, repository_offline};

/// Arguments of `affected`.
#[derive(Debug, Clone, Args)]
pub(super) struct AffectedArgs {
    /// The commit to compare with, by its merge base
    #[arg(value_name = "BASE")]
    base: String,

    /// The commit to compare; uncommitted changes are ignored
    #[arg(long, value_name = "REV", default_value = "HEAD")]
    rev: String,
}

/// The outcome of `affected`.
#[derive(Debug, Clone, Serialize)]
struct Touched {
    /// The commit that was compared with.
    since: String,
    /// The commit that was looked at.
    commit: String,
    /// The roots and targets whose builds may differ.
    #[serde(flatten)]
    affected: Affected,
}

impl AffectedArgs {
    /// Finds the roots and targets whose builds may differ.
    pub(super) fn run(&self) -> Done {
        let repo = repository_offline()?;
        let new = commit(&repo, &self.rev)?;
        let old = merge_base(&repo, &self.base, Some(&new.commit))?;
        let new_tree = GitTree::of_commit(&repo, &new)?;
        let trees = Sides { old: new_tree.beside(object_id(&old.tree)?), new: new_tree };
        let surveys = trees.map(|tree| Survey::of(Rc::new(tree.checked_out())));
        let commits = Sides { old: &old, new: &new };
        let changes = Changes::of_commits(&repo, commits, surveys.as_ref().map(Survey::tree))?;
        let config = Config::of(&*changes.trees.new, "")?;
        let deployed =
            surveys.as_ref().try_map(|survey| deployed(&repo, survey, &config, &|| Identity::of(&repo, &config)))?;
        let affected = affected::affected(&changes, &config, deployed.as_ref())?;
        Ok(Box::new(Touched { since: old.commit, commit: new.commit, affected }))
    }
}

impl Outcome for Touched {
    /// One line for each root and each target. The sources of one application share a line.
    fn text(&self, _shown: Shown) -> String {
        let roots = self.affected.roots.iter().map(|root| {
            let directory = path::shown(&root.directory).to_owned();
            (directory, root.status, &root.cause)
        });
        let targets = &self.affected.targets;
        let applications = group_sources(targets.iter().map(AffectedTarget::sides)).into_iter().map(|sources| {
            let sources: Vec<&AffectedTarget> = sources.iter().map(|source| &targets[*source]).collect();
            // A source that remains tells more about the application than one that is gone.
            let first = sources.iter().find(|source| source.status != DiffStatus::Removed).unwrap_or(&sources[0]);
            (first.target.by(), DiffStatus::of_all(sources.iter().map(|source| source.status)), &first.cause)
        });
        roots.chain(applications).map(touched_line).collect()
    }

    /// The counts, and the files that could not be read.
    fn stderr(&self, output: &OutputArgs) -> String {
        let affected = &self.affected;
        let mut text = unknown_lines(&affected.unbuilt, &affected.unread, output.verbose);
        text += &numbers(affected.roots.iter().map(|root| root.status), affected.total, "kustomization");
        if affected.targets_total > 0 || !affected.targets.is_empty() {
            let targets = affected.targets.iter().map(|target| target.status);
            text += &format!(" and {}", numbers(targets, affected.targets_total, "target"));
        }
        text + &format!(" since {}\n", short(&self.since))
    }

    fn stopped(&self) -> Vec<Failure> {
        stopped(&self.affected.unbuilt).cloned().collect()
    }
}

/// The line of a root or target: its name, and why its builds may differ.
fn touched_line((what, status, cause): (String, DiffStatus, &Cause)) -> String {
    let why = match (status, cause) {
        (DiffStatus::Added | DiffStatus::Removed, _) => status.name(),
        (DiffStatus::Changed, Cause::Path(file)) => path::shown(file),
        (DiffStatus::Changed, Cause::Remote(source)) => &source.to_string(),
    };
    format!("{}: {}\n", visible(&what), visible(why))
}

/// Lines for the user about targets whose deployment is unknown, so that nobody takes them for unchanged. Targets with
/// the same reason share a line.
pub(super) fn unknown_lines(unbuilt: &[Target], unread: &[Unread], verbose: bool) -> String {
    let mut changed: BTreeMap<(&str, Option<&str>), Vec<String>> = BTreeMap::new();
    for target in unbuilt {
        if let Some(Changer { name, not_built, .. }) = &target.changed_by {
            changed.entry((name, not_built.as_ref().map(|why| &*why.message))).or_default().push(target.title());
        }
    }
    let mut lines = Vec::new();
    for ((changer, not_built), targets) in changed {
        lines.push(format!("{}: compared as written: {changer} may change it", named(&targets, verbose)));
        lines.extend(not_built.map(|why| format!("  not built: {why}")));
    }
    lines.extend(unread.iter().map(|unread| format!("{}: unknown: {}", unread.location_text(), unread.message)));
    lines.iter().map(|line| fitting(&visible(line), 0, verbose) + "\n").collect()
}

/// The number of affected items of a total, and how many of them were removed.
fn numbers(affected: impl Iterator<Item = DiffStatus>, total: usize, noun: &str) -> String {
    let (removed, there): (Vec<DiffStatus>, Vec<DiffStatus>) =
        affected.partition(|status| *status == DiffStatus::Removed);
    let removed = if removed.is_empty() { String::new() } else { format!(" ({} removed)", removed.len()) };
    format!("{} of {}{removed}", there.len(), counted(total, noun))
}
