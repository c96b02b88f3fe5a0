//! `check --build`: localizes what is checked in memory, as `branch` does, builds the result without a network, and judges
//! what comes out.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::Before;
use crate::build::subject::{Subject, Written};
use crate::build::{RESTRICTED, missing_flag, unread_file};
use crate::check::{Builds, Checked, Claim, not_built, unread_reference};
use crate::commands::affected::changes;
use crate::commands::from_lock;
use crate::commands::localize::{KustomizeArgs, deployed_from};
use crate::commands::targets::written;
use crate::config::Config;
use crate::fetch::Fetcher;
use crate::git::LocalRepo;
use crate::graph::{Graph, Survey};
use crate::kustomization::Kind;
use crate::message::failure::{Failure, FailureKind, Failures, Location, Result};
use crate::message::finding::{Finding, Rule};
use crate::os::parallel::{processors, side_by_side};
use crate::plan::{Options, Plan, changed, in_place, reached_left};
use crate::targets::affected::{Affected, affected};
use crate::targets::built::{Builder, Output};
use crate::targets::generated::{ANY_FILE, Generated};
use crate::targets::{Engine, Found, Identity, Target, Targets, Unsettled};
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, path};
use crate::workspace::{Files, Workspace};

/// How to build.
pub(in crate::commands) struct How<'a> {
    pub with: &'a KustomizeArgs,
    pub offline: bool,
    pub quiet: bool,
}

/// The builds of one check.
pub(super) struct Building<'a> {
    here: Rc<LocalRepo>,
    workspace: Workspace,
    how: &'a How<'a>,
    paths: &'a [String],
    /// What the team decided: with `base`, before the change.
    policy: &'a Config,
    /// What alone is built; none for everything.
    affected: Option<Affected>,
    fetcher: RefCell<Fetcher>,
    came: RefCell<Came>,
}

/// What came of them.
#[derive(Default)]
struct Came {
    builds: Builds,
    findings: Vec<Finding>,
    /// What was not built because something is not locked.
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

type Built = Result<Vec<u8>, Failures>;

impl<'a> Building<'a> {
    /// Prepares to build what a tree holds; with `base` what a change since then affects.
    pub(super) fn open(
        here: &Rc<LocalRepo>,
        (files, survey): (&Files, &Rc<Survey>),
        (paths, policy): (&'a [String], &'a Config),
        base: Option<&Before>,
        how: &'a How<'a>,
    ) -> Result<Building<'a>, Failures> {
        let workspace = Workspace::surveyed(survey)?;
        let config = &workspace.config;
        let affected = base.map(|base| -> Result<Affected> {
            let changes = changes(here, files, &survey.tree(), &base.commit)?;
            let settled = |survey| -> Result<_> {
                let (explored, found) = written(here, survey, config)?;
                let targets = found.settle(&explored.graph);
                Ok((explored, targets))
            };
            let [was, is] = [&base.survey, &**survey].map(settled);
            affected(&changes, config, &was?, &is?)
        });
        let (affected, fetcher) = (affected.transpose()?, from_lock(Some(here), &workspace, how.offline, how.quiet)?);
        let (here, fetcher) = (here.clone(), RefCell::new(fetcher));
        Ok(Building { here, workspace, how, paths, policy, affected, fetcher, came: RefCell::default() })
    }

    /// Builds, and returns what is deployed as it came out.
    pub(super) fn targets(&self, found: Unsettled) -> Result<Targets> {
        let config = &self.workspace.config;
        let explored = self.workspace.survey().read_all()?;
        let (tree, deployed) = (&self.workspace.tree, found.as_written().roots());
        let starts = self.policy.starting_points(&**tree, self.paths, &tree.kustomizations()?, deployed)?;
        let begun = self.workspace.survey().graph(&starts);
        let is_wanted = |target: &Target| self.wants(target, &begun);
        let identity = || Identity::of_any_clone(&self.here, config);
        let found =
            found.built(&explored, config, &identity, &is_wanted, self.paths, |builders| self.build(builders))?;
        if let Err(failures) = self.render(&found, &begun) {
            self.came.borrow_mut().failures.extend(failures.0);
        }
        Ok(found)
    }

    /// Renders the charts that are deployed. What is deployed and nothing here builds is unknown.
    fn render(&self, found: &Targets, begun: &Graph) -> Result<(), Failures> {
        // What is missing, and what cannot be told before, the rules say. kustomize has built the others.
        let is_other = |target: &Target| match target.here().map(|here| &here.found) {
            None | Some(Found::Nothing(_) | Found::Kustomization(_)) => false,
            Some(Found::Directory(_)) => !target.engine.packs(),
            Some(Found::Chart(_) | Found::Plugin(_) | Found::Submodule(_)) => true,
        };
        let is_open = |target: &&Target| is_other(target) && self.wants(target, begun) && target.unknown().is_none();
        let wanted = found.targets.iter().filter(is_open);
        let subjects = wanted.map(|target| (target, Subject::deployed(&self.workspace, target)));
        // A directory of plain files is what is deployed.
        let others = subjects.filter(|(_, subject)| subject.as_ref().map_or(true, Subject::is_chart));
        let (targets, subjects): (Vec<&Target>, Vec<_>) =
            others.map(|(target, subject)| (target, subject.map(Some).map_err(Failures::from))).unzip();
        if targets.is_empty() {
            return Ok(());
        }
        for (target, (output, _)) in targets.iter().zip(self.run(self.workspace.survey(), subjects, false)?) {
            let (file, by) = (&target.object.file, target.by());
            match output {
                Ok(_) => self.came.borrow_mut().builds.built += 1,
                Err(failures) if self.note(file, &by, &failures) => {}
                Err(failures) if failures.0.iter().all(|one| one.kind == FailureKind::NotBuilt) => {
                    let help = "fix the chart, or the values that its object gives";
                    let finding = not_built(file, &reason(&failures), &by, Some(help));
                    self.came.borrow_mut().findings.push(finding);
                }
                Err(failures) => self.unknown(&by, &reason(&failures)),
            }
        }
        Ok(())
    }

    /// Verifies who signed what a change locks.
    pub(super) fn verify(&self, claim: &Claim<'_>) -> Result<()> {
        self.fetcher.borrow().verify(claim.source, claim.pinned, claim.signers).map(drop)
    }

    /// Adds to a check what was found. What the check finds wrong is not localized, and said once.
    pub(super) fn add_to(self, checked: &mut Checked) {
        let unlocked = std::mem::take(&mut self.came.borrow_mut().unlocked);
        for Unlocked { file, by, failures } in &unlocked {
            match is_told(failures, &checked.findings) {
                true => self.unknown(by, &reason(failures)),
                false => self.not_built(file, by, failures),
            }
        }
        let Came { mut builds, findings, failures, .. } = self.came.into_inner();
        builds.stopped = !failures.is_empty();
        checked.builds = Some(builds);
        if checked.status() == 0 {
            checked.failures.extend(failures);
        }
        checked.add(findings, self.policy, &*self.workspace.tree);
    }

    /// Returns whether a target is to be built: what no object deploys, where what the run begins at leads there.
    fn wants(&self, target: &Target, begun: &Graph) -> bool {
        let Some(here) = target.here() else { return false };
        if target.engine == Engine::Kustomize && !target.roots(here).any(|root| begun.root_in(0, root).is_some()) {
            return false;
        }
        let is_in = |place: &str| self.paths.is_empty() || self.paths.iter().any(|path| path::is_in(place, path));
        if !is_in(&here.path) && !is_in(&target.object.file) {
            return false;
        }
        let Some(affected) = &self.affected else { return true };
        let mut targets = affected.targets.iter();
        // A build may have given it another name.
        let place = |target: &Target| (target.object.file.clone(), target.object.line);
        targets.any(|one| place(&one.target) == place(target))
            || target.roots(here).any(|root| affected.directories.contains(root))
    }

    fn build(&self, builders: &[&Builder]) -> Vec<Output> {
        match self.localized(builders).and_then(|plan| self.outputs(builders, &plan)) {
            Ok(outputs) => outputs.into_iter().map(|output| output.map_err(|failures| reason(&failures))).collect(),
            // The base may have that, too. The others are built all the same.
            Err(failures) if self.affected.is_some() && failures.0.iter().all(is_unlocked) => match builders {
                [builder] => {
                    let output = Err(reason(&failures));
                    let unlocked = Unlocked { file: file(builder), by: builder.by.clone(), failures };
                    self.came.borrow_mut().unlocked.push(unlocked);
                    vec![output]
                }
                all => all.iter().flat_map(|one| self.build(&[one])).collect(),
            },
            Err(failures) => {
                let output = Err(reason(&failures));
                self.came.borrow_mut().failures.extend(failures.0);
                vec![output; builders.len()]
            }
        }
    }

    fn unknown(&self, by: &str, why: &str) {
        self.came.borrow_mut().builds.unknown.push(format!("{by}: {why}"));
    }

    fn not_built(&self, file: &str, by: &str, failures: &Failures) {
        let reason = reason(failures);
        let help = failures.0.iter().flat_map(|one| &one.hints).next().map(String::as_str);
        let finding = not_built(file, &reason, by, missing_flag(&reason).or(help));
        self.came.borrow_mut().findings.push(finding);
    }

    /// Localizes the roots of builds in memory. What stands in the way of `branch` does so here.
    fn localized(&self, builders: &[&Builder]) -> Result<Plan, Failures> {
        let roots: BTreeSet<&str> = builders.iter().flat_map(|builder| builder.roots()).collect();
        let request = in_place::Request { targets: roots.into_iter().map(str::to_owned).collect(), again: None };
        let options = Options { overwrite: false, trailers: true };
        let mut plan = in_place::plan(&self.workspace, request, &options, &mut *self.fetcher.borrow_mut())?;
        deployed_from(&self.here, &self.workspace, &mut plan)?;
        self.policy.judge(&mut plan.findings);
        let errors = plan.findings.iter().filter(|one| one.fails());
        self.came.borrow_mut().findings.extend(errors.cloned());
        Ok(plan)
    }

    /// Builds what comes of a plan.
    fn outputs(&self, builders: &[&Builder], plan: &Plan) -> Result<Vec<Built>, Failures> {
        let tree: SharedTree = Rc::new(changed(OverlayTree::new(self.workspace.tree.clone()), &plan.changes));
        let (survey, known) = (Survey::of(tree.clone()), plan.before.own_roots());
        let left = |builder: &Builder| {
            let mut roots = builder.roots().filter_map(|root| known.get(root));
            roots.find_map(|root| reached_left(&plan.before, *root))
        };
        let kind = |root: &str| known.get(root).and_then(|id| plan.before.roots[*id].kind);
        let is_component = |root: &str| kind(root) == Some(Kind::Component);
        let subject = |builder: &&Builder| match left(builder) {
            Some(reason) => Err(Failure::new(reason).because(FailureKind::Left).into()),
            None => Ok(builder.made_in(&*tree)?.map(|made| Subject::made(tree.clone(), &made))),
        };
        let built = self.run(&survey, builders.iter().map(subject).collect(), false)?;
        let (outputs, others): (Vec<Built>, Vec<bool>) = built.into_iter().unzip();
        for (builder, _) in builders.iter().zip(others).filter(|(_, is_other)| *is_other) {
            self.unknown(&builder.by, "it builds to something else each time");
        }
        let mut failed = Vec::new();
        for (builder, output) in builders.iter().zip(&outputs) {
            match output {
                Ok(_) => self.came.borrow_mut().builds.built += 1,
                Err(failures) if self.note(&file(builder), &builder.by, failures) => {}
                Err(failures) if failures.0.iter().all(|one| one.kind == FailureKind::Left) => {
                    self.came.borrow_mut().builds.left += 1;
                }
                Err(failures) if failures.0.iter().all(|one| one.kind == FailureKind::NotBuilt) => {
                    failed.push((*builder, failures));
                }
                Err(failures) => {
                    let failures = failures.clone().context(&builder.by);
                    self.came.borrow_mut().failures.extend(failures.0);
                }
            }
        }
        for (builder, failures) in self.build_whole(&survey, failed)? {
            // Nobody builds a component by itself.
            if !is_component(&builder.made.directory) {
                self.not_built(&file(builder), &builder.by, failures);
            }
        }
        Ok(outputs)
    }

    /// Builds what fails once more, among all files of the tree: what was read may not be all that kustomize reads. What it
    /// asks for there counts, and so does that it builds there, unless what it lacks is leave to read files from anywhere.
    /// Returns those of which nothing came.
    fn build_whole<'b>(
        &self,
        survey: &Survey,
        mut failed: Vec<(&'b Builder, &'b Failures)>,
    ) -> Result<Vec<(&'b Builder, &'b Failures)>, Failures> {
        if failed.is_empty() {
            return Ok(failed);
        }
        let tree = &survey.tree();
        let any_file = |mut made: Generated| {
            made.arguments.push(ANY_FILE.to_owned());
            Subject::made(tree.clone(), &made)
        };
        let subjects = failed.iter().map(|(builder, _)| Ok(builder.made_in(&**tree)?.map(any_file)));
        let mut outputs = self.run(survey, subjects.collect(), true)?.into_iter();
        failed.retain(|(builder, failures)| {
            let reason = reason(failures);
            match outputs.next() {
                Some((Ok(_), _)) if !reason.contains(RESTRICTED) => {
                    let finding = unread_reference(&file(builder), unread_file(&reason), &builder.by);
                    self.came.borrow_mut().findings.push(finding);
                    false
                }
                Some((Err(failures), _)) => !self.note(&file(builder), &builder.by, &failures),
                _ => true,
            }
        });
        Ok(failed)
    }

    /// Builds side by side, each with whether a second build gives something else; what is `whole` among all files of the
    /// tree.
    fn run(
        &self,
        survey: &Survey,
        subjects: Vec<Result<Option<Subject>, Failures>>,
        whole: bool,
    ) -> Result<Vec<(Built, bool)>, Failures> {
        let numbers: Vec<usize> = (0..subjects.len()).collect();
        let KustomizeArgs { kustomize, build_arg } = self.how.with;
        let with = (&self.workspace.config, &**build_arg);
        let written = Written::closed(survey, subjects, kustomize.as_deref(), with, Some(&*self.here), whole)?;
        self.came.borrow_mut().builds.by = written.by();
        Ok(side_by_side(&numbers, processors(), |_, number| {
            let output = written.build(*number);
            let is_other =
                |first: &Vec<u8>| written.runs(*number) && written.build(*number).is_ok_and(|again| again != *first);
            let differs = output.as_ref().is_ok_and(is_other);
            (output, differs)
        }))
    }

    /// Notes what a build asks for. Returns whether it asks for anything.
    fn note(&self, file: &str, by: &str, failures: &Failures) -> bool {
        let requests = failures.0.iter().filter(|one| one.kind == FailureKind::UnreadReference);
        let findings: Vec<Finding> = requests.map(|one| unread_reference(file, one.message.clone(), by)).collect();
        let is_any = !findings.is_empty();
        self.came.borrow_mut().findings.extend(findings);
        is_any
    }
}

/// Returns the kustomization that is built.
fn file(builder: &Builder) -> String {
    path::join(&builder.made.directory, builder.made.file_name)
}

/// Returns whether findings tell of all that is not locked, at its line.
fn is_told(failures: &Failures, findings: &[Finding]) -> bool {
    failures.0.iter().all(|failure| {
        let is_there = |location: &Location, finding: &Finding| {
            location.file == finding.path && finding.span.is_some_and(|span| span.start == location.position)
        };
        let mut unlocked = findings.iter().filter(|finding| finding.rule == Rule::RemoteReference);
        unlocked.any(|finding| failure.location.as_deref().is_some_and(|location| is_there(location, finding)))
    })
}

fn is_unlocked(failure: &Failure) -> bool {
    failure.kind == FailureKind::NotLocked
}

fn reason(failures: &Failures) -> String {
    failures.0.iter().map(|one| one.message.as_str()).collect::<Vec<_>>().join("; ")
}
