//! `check --build`: localizes the checked tree in memory, as `branch` does, builds the result without the network, and
//! checks the outputs.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use super::localized::deployed_from;
use super::{BuildSummary, Checked, Claim, not_built, not_observed, refused, unread_reference};

use crate::build::builds::{self, Wanted};
use crate::build::deployed::written;
use crate::build::rendered::ProgramOptions;
use crate::build::subject::{BuildSpec, objects};
use crate::build::{Built, Unbuilt, missing_flag};
use crate::config::Config;
use crate::fetch::Fetcher;
use crate::git::{CommitId, LocalRepo, Snapshot};
use crate::graph::{Graph, Survey};
use crate::message::failure::{Failure, FailureKind, Failures, Location, Result};
use crate::message::finding::{Finding, Rule};
use crate::plan::{Plan, PlanOptions, first_missing, in_place};
use crate::targets::affected::changes::Changes;
use crate::targets::affected::{Affected, Sides, affected};
use crate::targets::built::{Builder, Output};
use crate::targets::generated::generated;
use crate::targets::{DeployedTree, Identity, PathContent, Target, Targets, UnresolvedTargets};
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace, from_lock};

/// How a check builds.
pub(crate) struct CheckBuildOptions<'a> {
    pub run: ProgramOptions<'a>,
    /// Whether the run also compares the builds of all roots, so that those that no engine changes are left to it.
    pub compares_roots: bool,
}

/// The builds of one check.
pub(crate) struct CheckBuilds<'a> {
    repo: Rc<LocalRepo>,
    workspace: Workspace,
    how: &'a CheckBuildOptions<'a>,
    paths: &'a [String],
    /// The policy of the team: with `base`, that before the change.
    policy: &'a Config,
    /// The only roots and targets to build; `None` for everything.
    affected: Option<Affected>,
    /// The plan that exists already; each round of builds localizes the roots that it lacks.
    planned: Option<&'a Plan>,
    fetcher: RefCell<Fetcher>,
    results: RefCell<BuildResults>,
}

/// The results of the builds.
#[derive(Default)]
struct BuildResults {
    summary: BuildSummary,
    findings: Vec<Finding>,
    /// The builds that did not run because a reference is not locked.
    unlocked: Vec<Unlocked>,
    /// Why nothing could be localized, or built.
    failures: Vec<Failure>,
}

/// A root that was not built because something that it reaches is not locked.
struct Unlocked {
    file: String,
    by: String,
    failures: Failures,
}

impl BuildResults {
    /// Adds why nothing could be built, once: each round of builds, and that of the charts, fails for the same reason.
    fn stop(&mut self, failures: &Failures) {
        let known = &mut self.failures;
        failures.0.iter().for_each(|failure| {
            if !known.contains(failure) {
                known.push(failure.clone());
            }
        });
    }

    /// Adds the failures of the builds of a file.
    fn fail(&mut self, file: &str, failures: Failures) {
        let location = Location { file: file.to_owned(), ..Location::default() };
        self.failures.extend(failures.0.into_iter().map(|failure| failure.at(location.clone())));
    }

    /// Adds a build with an unknown result.
    fn add_unknown(&mut self, by: &str, why: &str) {
        self.summary.unknown.push(format!("{by}: {why}"));
    }

    /// Adds the result of a build, with `hint` for a failure of the program. Returns the failures that stopped the
    /// build before its result was known, for the caller to judge; else `None`.
    fn add(&mut self, file: &str, by: &str, built: &Built, hint: Option<&str>) -> Option<Failures> {
        match built {
            Ok(build) => {
                self.summary.built += 1;
                self.findings.extend(build.unobserved.map(|why| not_observed(file, why, by)));
                // If one input has two outputs, no comparison with either proves anything.
                if build.is_unsteady {
                    self.add_unknown(by, "it builds to something else each time");
                }
            }
            Err(Unbuilt::Unread(messages)) => {
                let findings = messages.iter().map(|message| unread_reference(file, message.clone(), by));
                self.findings.extend(findings);
            }
            Err(Unbuilt::Failed(reason)) => {
                let hint = missing_flag(reason).or(hint);
                self.findings.push(not_built(file, reason, by, hint));
            }
            Err(Unbuilt::Refused(reason)) => self.findings.push(refused(file, reason, by)),
            Err(Unbuilt::Skipped(failure)) if failure.kind == FailureKind::Left => self.summary.left += 1,
            Err(Unbuilt::Skipped(Failure { message, hints, .. })) => {
                let hint = hints.first().map(String::as_str);
                self.findings.push(not_built(file, message, by, hint));
            }
            Err(Unbuilt::Unknown(failures)) if failures.are_all(FailureKind::NotKnown) => {
                self.add_unknown(by, &reason(failures));
            }
            Err(Unbuilt::Unknown(failures)) => return Some(failures.clone()),
        }
        None
    }

    /// Reports each build that did not run because a reference is not locked: as unknown if `findings`, those of the
    /// check, report all of these references already, and else as a finding. The references of the base are not among
    /// `findings`, but a change that affects the build must learn that nobody has built it.
    fn judge_unlocked(&mut self, findings: &[Finding]) {
        for Unlocked { file, by, failures } in std::mem::take(&mut self.unlocked) {
            if are_reported(&failures, findings) {
                self.add_unknown(&by, &reason(&failures));
            } else {
                let hint = failures.0.iter().flat_map(|failure| &failure.hints).next();
                self.findings.push(not_built(&file, &reason(&failures), &by, hint.map(String::as_str)));
            }
        }
    }
}

/// The tree of the base of a change.
pub(crate) struct BaseTree {
    pub commit: CommitId,
    pub files: Files,
    pub survey: Survey,
}

impl BaseTree {
    /// Opens the files of the base as a checkout has them.
    pub(crate) fn open(repo: &Rc<LocalRepo>, commit: &CommitId) -> Result<BaseTree> {
        let files = Files::open(repo, &Snapshot::of(Some(&commit.commit)))?;
        Ok(BaseTree { commit: commit.clone(), survey: Survey::of(files.checked_out()), files })
    }
}

impl<'a> CheckBuilds<'a> {
    /// Prepares the builds of a tree; with `base` only those that a change since then affects.
    pub(crate) fn open(
        repo: &Rc<LocalRepo>,
        (files, survey): (&Files, &Rc<Survey>),
        (paths, policy): (&'a [String], &'a Config),
        base: Option<&BaseTree>,
        how: &'a CheckBuildOptions<'a>,
    ) -> Result<CheckBuilds<'a>, Failures> {
        let mut workspace = Workspace::surveyed(survey)?;
        if base.is_some() {
            // A change must not choose the programs that check it.
            workspace.config = workspace.config.run_by(policy);
        }
        let config = &workspace.config;
        // With a base only the builds that the change affects run: the others are those of the base.
        let affected = base.map(|base| -> Result<Affected> {
            let surveys = Sides { old: &base.survey, new: &**survey };
            let changes = Changes::since(repo, &base.commit, files, surveys.map(Survey::tree))?;
            let deployed = surveys.try_map(|survey| -> Result<_> {
                let (explored, unresolved) = written(survey, config, &|| Identity::of_any_clone(repo, config))?;
                let targets = unresolved.resolve_changers(&explored.graph);
                Ok(DeployedTree { explored, targets })
            })?;
            affected(&changes, config, deployed.as_ref())
        });
        let affected = affected.transpose()?;
        let fetcher = RefCell::new(from_lock(Some(repo), &workspace, how.run.offline, how.run.quiet)?);
        let (repo, planned, results) = (repo.clone(), None, RefCell::default());
        Ok(CheckBuilds { repo, workspace, how, paths, policy, affected, planned, fetcher, results })
    }

    /// Uses a plan that the run has already, so that its roots are not localized again.
    pub(crate) fn with_plan(self, planned: Option<&'a Plan>) -> CheckBuilds<'a> {
        CheckBuilds { planned, ..self }
    }

    /// Builds the targets that the check covers, and returns all targets, with those that are defined by the built
    /// objects. Results of builds are kept for [`Self::add_to`].
    pub(crate) fn targets(&self, unresolved: UnresolvedTargets) -> Result<Targets> {
        let config = &self.workspace.config;
        let explored = self.workspace.survey().explore_all_inputs()?;
        let (tree, deployed) = (&self.workspace.tree, unresolved.as_written().roots());
        let starts = self.policy.starting_points(&**tree, self.paths, &tree.kustomizations()?, deployed)?;
        let checked = self.workspace.survey().graph(&starts);
        // If the run compares roots, it builds these targets and the roots in `paths`, so they are not built here.
        let is_compared = |target: &Target| self.how.compares_roots && is_built_as_root(&**tree, target);
        let is_wanted = |target: &Target| self.includes(target, &checked) && !is_compared(target);
        let named = if self.how.compares_roots { &[] } else { self.paths };
        let identity = || Identity::of_any_clone(&self.repo, config);
        let build = |builders: &[&Builder]| self.build(builders);
        let targets = unresolved.resolve_by_builds(&explored, config, &identity, &is_wanted, named, build)?;
        self.add_unbuilt(&targets, &checked);
        Ok(targets)
    }

    /// Reports the targets as unknown that are deployed without kustomize, and that cannot be built here.
    fn add_unbuilt(&self, targets: &Targets, checked: &Graph) {
        let Workspace { tree, config, .. } = &self.workspace;
        // With helm a chart was built, and a rule reports each target that is unknown for a reason of its own.
        let unbuilt = targets.targets.iter().filter(|target: &&Target| {
            is_built_without_kustomize(target) && !(config.helm && target.is_chart()) && target.why_unknown().is_none()
        });
        for target in unbuilt.filter(|target| self.includes(target, checked)) {
            if let Err(why) = BuildSpec::deployed(tree, config, target) {
                self.results.borrow_mut().add_unknown(&target.by(), &why.message);
            }
        }
    }

    /// Verifies the signer of an entry that a change locks.
    pub(crate) fn verify(&self, claim: &Claim<'_>) -> Result<()> {
        self.fetcher.borrow().verify(claim.source, claim.pinned, claim.signers)
    }

    /// Adds the findings and failures of the builds to a check. If the check has errors already, nothing could be
    /// localized because of them, so failures that would only repeat them are dropped.
    pub(crate) fn add_to(self, checked: &mut Checked) {
        let mut results = self.results.into_inner();
        results.judge_unlocked(&checked.findings);
        let BuildResults { mut summary, findings, mut failures, .. } = results;
        summary.stopped = summary.built == 0 && !failures.is_empty();
        checked.builds = Some(summary);
        // A stopped build is a failure, whatever the other errors are.
        let is_clean = checked.status() == 0;
        failures.retain(|failure| is_clean || failure.kind == FailureKind::Stopped);
        checked.failures.extend(failures);
        checked.add(findings, self.policy, &*self.workspace.tree);
    }

    /// Whether to build a target: the check covers it, and the change affects it. A target that no object defines
    /// counts only if `checked`, the graph from the starting points, has its root: nothing else says that somebody
    /// builds it.
    fn includes(&self, target: &Target, checked: &Graph) -> bool {
        let Some(dir) = target.local_dir() else { return false };
        if !target.engine.has_objects() && !target.roots(dir).any(|root| checked.user_root(root).is_some()) {
            return false;
        }
        if !path::covers_root(self.paths, &dir.path) && !path::is_in_any(&target.object.file, self.paths) {
            return false;
        }
        let Some(affected) = &self.affected else { return true };
        let mut objects = affected.targets.iter().map(|other| &other.target.object);
        // Objects are compared by their locations, not their names: a build may rename an object.
        objects.any(|object| (&object.file, object.line) == (&target.object.file, target.object.line))
            || target.roots(dir).any(|root| affected.directories.contains(root))
    }

    /// Builds kustomizations, and renders charts, which have no kustomization (`made`). The outputs are in the order of
    /// `builders`.
    fn build(&self, builders: &[&Builder]) -> Vec<Output> {
        let (kustomizations, charts): (Vec<&Builder>, Vec<&Builder>) =
            builders.iter().partition(|builder| builder.made.is_some());
        let (mut built, mut rendered) =
            (self.kustomizations(&kustomizations).into_iter(), self.charts(&charts).into_iter());
        let output = |builder: &&Builder| if builder.made.is_some() { built.next() } else { rendered.next() };
        builders.iter().filter_map(output).collect()
    }

    /// Renders charts, in which nothing is localized.
    fn charts(&self, builders: &[&Builder]) -> Vec<Output> {
        if builders.is_empty() {
            return Vec::new();
        }
        let Workspace { tree, config, .. } = &self.workspace;
        let subjects =
            builders.iter().map(|builder| -> Wanted { Ok(Some(BuildSpec::of_builder(builder, tree, config)?)) });
        let subjects: Vec<Wanted> = subjects.collect();
        let rendered = match self.run(self.workspace.survey(), &subjects) {
            Ok(rendered) => rendered,
            Err(failures) => {
                self.results.borrow_mut().stop(&failures);
                return vec![Err(failures.joined()); builders.len()];
            }
        };
        let results = &mut *self.results.borrow_mut();
        let outputs = builders.iter().zip(rendered).zip(&subjects).map(|((builder, rendered), subject)| {
            let file = builder.file();
            let hint = "fix the chart, or the values that its object gives";
            match results.add(&file, &builder.by, &rendered, Some(hint)) {
                // A chart that a limit stopped may render anything, so the check has failed. Without a chart that
                // cannot be had here, the rest of the check still counts.
                Some(failures) if failures.are_all(FailureKind::Stopped) => results.fail(&file, failures),
                Some(failures) => results.add_unknown(&builder.by, &reason(&failures)),
                None => {}
            }
            objects(subject, rendered).map_err(Failures::joined)
        });
        outputs.collect()
    }

    /// Localizes the roots of some builds, and builds them. If there is a base, and unlocked references stop all of
    /// them, each is tried alone.
    fn kustomizations(&self, builders: &[&Builder]) -> Vec<Output> {
        if builders.is_empty() {
            return Vec::new();
        }
        // The plan of a run may cover a part of the repository only, so it serves if it has all of these roots.
        let mut roots = builders.iter().flat_map(|builder| builder.roots());
        let planned = self.planned.filter(|plan| roots.all(|root| plan.before.user_root(root).is_some()));
        let outputs = match planned {
            Some(plan) => self.outputs(builders, plan),
            None => self.localized(builders).and_then(|plan| self.outputs(builders, &plan)),
        };
        let failures = match outputs {
            Ok(outputs) => return outputs,
            Err(failures) => failures,
        };
        // An unlocked reference stops the localizing of all. The base of a change may have it, too, so that the others
        // must be built: each is tried by itself.
        let is_unlocked = self.affected.is_some() && failures.are_all(FailureKind::NotLocked);
        if is_unlocked && builders.len() > 1 {
            return builders.iter().flat_map(|builder| self.kustomizations(&[builder])).collect();
        }
        match builders {
            [builder] if is_unlocked => {
                let (file, by, failures) = (builder.file(), builder.by.clone(), failures.clone());
                self.results.borrow_mut().unlocked.push(Unlocked { file, by, failures });
            }
            _ => self.results.borrow_mut().stop(&failures),
        }
        vec![Err(failures.joined()); builders.len()]
    }

    /// Localizes the roots of builds in memory, because engines build the localized files. It fails for the same
    /// reasons as `branch`.
    fn localized(&self, builders: &[&Builder]) -> Result<Plan, Failures> {
        let roots: BTreeSet<&str> = builders.iter().flat_map(|builder| builder.roots()).collect();
        let targets = roots.into_iter().map(str::to_owned).collect();
        let request = in_place::InPlaceRequest { targets, ..in_place::InPlaceRequest::default() };
        let options = PlanOptions { trailers: true, ..PlanOptions::default() };
        let mut plan = in_place::plan(&self.workspace, request, &options, &mut *self.fetcher.borrow_mut())?;
        deployed_from(&self.repo, &self.workspace, &mut plan)?;
        self.policy.judge(&mut plan.findings);
        let errors = plan.findings.iter().filter(|finding| finding.fails());
        self.results.borrow_mut().findings.extend(errors.cloned());
        Ok(plan)
    }

    /// Builds the localized roots of a plan, and keeps the results for the report. The outputs are in the order of
    /// `builders`.
    fn outputs(&self, builders: &[&Builder], plan: &Plan) -> Result<Vec<Output>, Failures> {
        // Does not occur: only the plan of a copy has no survey, and a copy is not checked before it is committed.
        let Some(survey) = &plan.survey else { return Ok(Vec::new()) };
        let (tree, before) = (survey.tree(), &plan.before);
        // A build that lacks something by an exception, remote or a local file, could only fail, so it is skipped.
        let skipped = builders.iter().map(|builder| {
            let roots = builder.roots().filter_map(|root| before.user_root(root));
            first_missing(before, &before.reachable(roots))
        });
        let skipped: Vec<Option<String>> = skipped.collect();
        let subjects = builders.iter().zip(&skipped).map(|(builder, skipped)| -> Wanted {
            // A skipped build gets no subject, so that no program runs for it.
            let made = if skipped.is_none() { builder.made_in(&*tree)? } else { None };
            Ok(made.map(|made| BuildSpec::generated(tree.clone(), &made)).transpose()?)
        });
        let built = self.run(survey, &subjects.collect::<Vec<Wanted>>())?;
        let results = &mut *self.results.borrow_mut();
        // The caller pairs outputs with builders by position, so that a build that is skipped has one too.
        let outputs = builders.iter().zip(built).zip(skipped).map(|((builder, built), skipped)| {
            if let Some(reason) = skipped {
                results.summary.left += 1;
                return Err(Failure::new(reason));
            }
            // A build that the object makes impossible is mended in the object, any other in the kustomization.
            let file = match &built {
                Err(Unbuilt::Refused(_)) => builder.target.object.file.clone(),
                _ => builder.file(),
            };
            // Unlike a chart, a localized root has all that it reads, so an unknown result is a failure.
            if let Some(failures) = results.add(&file, &builder.by, &built, None) {
                results.fail(&file, failures);
            }
            built.map(|build| build.stdout).map_err(|unbuilt| Failures::from(unbuilt).joined())
        });
        Ok(outputs.collect())
    }

    /// Runs the builds, side by side and without the network.
    fn run(&self, survey: &Survey, subjects: &[Wanted]) -> Result<Vec<Built>, Failures> {
        let (programs, config) = (self.how.run.programs, &self.workspace.config);
        let written = builds::Builds::of_tree(survey, subjects, programs, config, Some(&*self.repo))?;
        self.results.borrow_mut().summary.by = written.program_and_network();
        Ok(written.all_engine_objects(subjects)?)
    }
}

/// Whether the build of a target is that of its root, to which its engine adds nothing. Also true for a target that is
/// not built with kustomize at all.
fn is_built_as_root(tree: &dyn Tree, target: &Target) -> bool {
    let made = target.local_dir().map(|dir| generated(tree, target, dir));
    match made {
        Some(Ok(Some(made))) => !made.is_of_engine(),
        // Its build reports the failure.
        Some(Err(_)) => false,
        Some(Ok(None)) | None => true,
    }
}

/// Whether a target is built by something else than kustomize.
fn is_built_without_kustomize(target: &Target) -> bool {
    // Rules report missing targets and those that are unknown before a build. kustomize has built the others, and Argo
    // CD deploys the files of a plain directory as they are.
    match target.local_dir().map(|dir| &dir.content) {
        None | Some(PathContent::Nothing(_) | PathContent::Kustomization(_) | PathContent::Directory(_)) => false,
        Some(PathContent::Chart(_) | PathContent::Plugin(_) | PathContent::Submodule(_)) => true,
    }
}

/// Whether the findings already report each unlocked reference, at its line.
fn are_reported(failures: &Failures, findings: &[Finding]) -> bool {
    let unlocked = findings.iter().filter(|finding| finding.rule == Rule::RemoteReference);
    let reported: HashSet<_> = unlocked.filter_map(|finding| Some((&*finding.path, finding.span?.start))).collect();
    let mut locations = failures.0.iter().map(|failure| failure.location.as_deref());
    locations.all(|location| location.is_some_and(|at| reported.contains(&(at.file.as_str(), at.position))))
}

/// Several failures as one line, which tells why the result of a build is unknown.
fn reason(failures: &Failures) -> String {
    failures.clone().joined().message
}
