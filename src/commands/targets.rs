//! `targets`: lists the targets that Flux and Argo CD deploy from the repository. `schema.json` describes the JSON.

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::rc::Rc;

use clap::Args;
use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::messages::counted;
use super::output::{Done, Outcome, Page, Shown};
use crate::build::deployed::find;
use crate::config::{Config, FILE_NAME};
use crate::git::{LocalRepo, Snapshot};
use crate::graph::Survey;
use crate::graph::inputs::explore_all;
use crate::message::failure::{Failure, Failures, Result};
use crate::message::redact::{inert, visible};
use crate::targets::{
    self, DeployedTree, ExternalInput, Identity, Installed, Revision, Target, TargetLocation, TargetState, Targets,
    Unread,
};
use crate::tree::path;
use crate::workspace::{Files, repository_offline};

/// Arguments of `targets`.
#[derive(Debug, Clone, Args)]
pub(super) struct TargetsArgs {
    /// Read a commit [default: the working tree]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    /// Print the annotation that Argo CD needs for each application to notice every change
    #[arg(long)]
    manifest_generate_paths: bool,
}

impl TargetsArgs {
    /// Lists the targets, or with `--manifest-generate-paths` the annotations that they should have.
    pub(super) fn run(&self) -> Done {
        let repo = repository_offline()?;
        let survey = Survey::of(Files::open(&repo, &Snapshot::of(self.rev.as_deref()))?.checked_out());
        if self.manifest_generate_paths {
            let DeployedTree { explored, targets } = find(&repo, &survey)?;
            let lines = targets::generate_paths(&explored.graph, &targets)?.into_iter().map(|(object, value)| {
                let name = format!("{}: {} {}", object.location_text(), object.kind, object.full_name());
                format!("{}\n  {}: {}\n", visible(&name), targets::GENERATE_PATHS, visible(&value))
            });
            return Page::of(inert(&lines.collect::<String>()));
        }
        Ok(Box::new(surveyed(&repo, &survey)?))
    }
}

/// The targets, and the inputs of their builds.
#[derive(Default)]
pub(super) struct TargetSurvey {
    targets: Targets,
    /// For each target the inputs of its build that the tree lacks; `None` if that is unknown, or it is not built from
    /// here.
    reaches: Vec<Option<Vec<ExternalInput>>>,
    pub engines: Vec<Installed>,
    /// The number of files of Rancher Fleet, whose deployments are unknown.
    fleet_files: usize,
}

/// A target as JSON has it.
#[derive(Serialize)]
struct Surveyed<'a> {
    #[serde(flatten)]
    target: &'a Target,
    state: &'static str,
    /// Why the targets are unknown; `None` if they are known.
    unknown: Option<String>,
    reaches: Option<&'a [ExternalInput]>,
}

impl Serialize for TargetSurvey {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let mut survey = serializer.serialize_struct("Survey", 4)?;
        let targets = self.each().map(|(target, reaches)| Surveyed {
            target,
            state: target.state(reaches).word(),
            unknown: target.why_unknown(),
            reaches,
        });
        survey.serialize_field("targets", &targets.collect::<Vec<_>>())?;
        survey.serialize_field("unread", &self.targets.unread)?;
        survey.serialize_field("engines", &self.engines)?;
        survey.serialize_field("fleet_files", &self.fleet_files)?;
        survey.end()
    }
}

impl TargetSurvey {
    /// Each target with the inputs that its build lacks.
    pub(super) fn each(&self) -> impl Iterator<Item = (&Target, Option<&[ExternalInput]>)> {
        self.targets.targets.iter().zip(self.reaches.iter().map(Option::as_deref))
    }

    /// The objects that could not be read.
    pub(super) fn unread(&self) -> &[Unread] {
        &self.targets.unread
    }
}

/// Finds the targets, and the inputs that each build lacks.
pub(super) fn surveyed(repo: &Rc<LocalRepo>, survey: &Survey) -> Result<TargetSurvey, Failures> {
    let (tree, DeployedTree { explored, targets }) = (&survey.tree(), find(repo, survey)?);
    let config = Config::of(&**tree, "")?;
    // For now each revision counts as that of this tree: those of localized branches are inspected again below.
    let mut reaches = targets.missing_inputs(&explored, &config, |_| true)?;
    let engines = targets::installed(&**tree, &config, &targets)?;
    // A target of a localized branch deploys the content of that branch, which is inspected if it exists.
    let revisions = targets.targets.iter().filter_map(|target| match &target.location {
        TargetLocation::Local(dir) => Some(dir.revision.clone()),
        TargetLocation::External(_) | TargetLocation::Templated(_) => None,
    });
    let revisions: HashSet<Revision> = revisions.collect();
    for revision in revisions.iter().filter(|revision| revision.is_localized()) {
        if let Some(tip) = Identity::of(repo, &config)?.tip(revision)? {
            let of_tip = targets.missing_inputs(&explore_all(Rc::new(tip))?, &config, |other| other == revision)?;
            for (inputs, tip_inputs) in reaches.iter_mut().zip(of_tip) {
                if tip_inputs.is_some() {
                    *inputs = tip_inputs;
                }
            }
        }
    }
    // Files of Fleet are counted, because silence would look like a repository without deployments.
    let mut fleet_files = tree.files_named(&|name| ["fleet.yaml", "fleet.yml"].contains(&name))?;
    fleet_files.retain(|file| !config.leaves_out(path::parent(file)));
    Ok(TargetSurvey { targets, reaches, engines, fleet_files: fleet_files.len() })
}

impl Outcome for TargetSurvey {
    fn stopped(&self) -> Vec<Failure> {
        targets::stopped(&self.targets.targets).cloned().collect()
    }

    /// The name of each target, and its location below; at the end the counts, and what is deployed from a branch.
    fn text(&self, _shown: Shown) -> String {
        let mut out = String::new();
        for (target, reaches) in self.each() {
            out += &target_text(target, reaches);
        }
        for unread in &self.targets.unread {
            out += &format!("{}\n  unknown: {}\n", unread.location_text(), unread.message);
        }
        for engine in &self.engines {
            out += &format!("{}:{}: {}\n", engine.file, engine.line, engine.name());
        }
        if !out.is_empty() {
            out.push('\n');
        }
        let mut out: String = out.lines().map(|line| visible(line) + "\n").collect();
        // Without this, a wrong URL would look like a repository that nobody deploys.
        if self.targets.assumes_this_repo {
            out += &format!(
                "note: nothing is deployed from here: if the cluster knows this repository by another URL, add that to `repository` in {FILE_NAME}; or list the deployed paths under `targets` there\n"
            );
        }
        out += &summary(self);
        out += &localized(self).map_or(String::new(), |line| visible(&line) + "\n");
        if self.fleet_files > 0 {
            out += &format!("{} fleet.yaml: what Rancher Fleet deploys is unknown\n", self.fleet_files);
        }
        out
    }
}

/// A target with its location, its state and the builds that define it; `reaches` are the inputs of its build that the
/// tree lacks.
fn target_text(target: &Target, reaches: Option<&[ExternalInput]>) -> String {
    let Target { object, location, .. } = target;
    let mut out = format!("{}:{}: {}\n  {}", object.file, object.line, named(target), location.described());
    if let Some(set) = &object.set {
        out += &format!(", of ApplicationSet {set}");
    }
    if target.state(reaches) == TargetState::Localized {
        out += ", localized";
    }
    for reach in reaches.unwrap_or_default() {
        out += &format!("\n    reaches {}: {}", reach.name, reach.state);
    }
    // A location elsewhere has its reason in its description already.
    if let (TargetLocation::Local(_), None, Some(why)) = (location, &target.changed_by, target.why_unknown()) {
        out += &format!("\n  unknown: {why}");
    }
    if let Some(by) = &object.built_by {
        out += &format!("\n  built by {by}");
    }
    if let Some(by) = &target.changed_by {
        out += &format!("\n  may be changed by {}", by.name);
        if let Some(why) = &by.not_built {
            out += &format!("\n    not built: {}", why.message);
        }
    }
    out + "\n"
}

/// The engine, and the name of the object.
pub(super) fn named(Target { engine, object, .. }: &Target) -> String {
    format!("{} {} {}{}", engine.name(), object.kind, object.full_name(), object.own_directory())
}

/// A line about targets of a localized branch; `None` if nothing is localized, and nothing has to be.
fn localized(survey: &TargetSurvey) -> Option<String> {
    let wants_branch = survey.each().any(wants_branch);
    let deployed = survey.targets.deployed_from("a localized branch", Revision::is_localized);
    deployed.filter(|_| wants_branch)
}

/// Whether a target is deployed from a localized branch, or its build needs something that the tree lacks.
fn wants_branch((target, reaches): (&Target, Option<&[ExternalInput]>)) -> bool {
    target.local_dir().is_some_and(|dir| dir.revision.is_localized() || reaches.is_some_and(|all| !all.is_empty()))
}

/// The counts of all targets. Those that may deploy something else count as unknown, as in `diff`.
fn summary(survey: &TargetSurvey) -> String {
    let targets = &survey.targets;
    // Each target is counted at one location, and once more if it is missing or unknown.
    let (mut local, mut external, mut templated) = (0, 0, 0);
    for target in &targets.targets {
        *match target.location {
            TargetLocation::Local(_) => &mut local,
            TargetLocation::External(_) => &mut external,
            TargetLocation::Templated(_) => &mut templated,
        } += 1;
    }
    let mut line = match targets.targets.len() {
        0 => "no targets: no object of Flux or Argo CD was found".to_owned(),
        count => counted(count, "target"),
    };
    if !targets.targets.is_empty() {
        line += &format!(": {local} here, {external} external, {templated} templated");
    }
    let count = |word: &str| survey.each().filter(|(target, reaches)| target.state(*reaches).word() == word).count();
    for (count, word) in [(count("missing"), "missing"), (count("unknown") + targets.unread.len(), "unknown")] {
        if count > 0 {
            line += &format!("; {count} {word}");
        }
    }
    line + "\n"
}
