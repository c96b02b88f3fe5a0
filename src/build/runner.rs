//! The two builds of each root, side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use super::disk::Pool;
use super::memory::OutputForm;
use super::program::{self, Program};
use super::roots::{Refusals, Roots, Unbuilt, Writing};
use super::run::{BuildOutput, BuildRun, RootDir};
use super::{BuildCheck, BuildOptions, PlanBuilds, TargetCheck, Verdict, compare};
use crate::fetch::Progress;
use crate::graph::{Graph, RootId, ScopedTree};
use crate::message::failure::{Failure, Failures, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::processors;
use crate::plan::{ComparedRoot, Plan};
use crate::record::{BuildTool, LoadRestrictor};
use crate::targets::generated::ANY_FILE;
use crate::targets::variables::Variables;
use crate::tree::path;

/// Builds original and result of each root that can be built and that no earlier run has checked, and compares the
/// outputs. Nothing is built if no program is found.
pub(crate) fn check_builds(job: &PlanBuilds<'_>, options: &BuildOptions) -> Result<BuildCheck> {
    refuse_arguments(&options.arguments)?;
    let program = match program::find(options.program.as_deref())? {
        Ok(program) => &program.configured(&options.config, options.memory.clone())?,
        Err(reason) => return Ok(BuildCheck::not_built(&reason)),
    };
    let mut arguments = options.arguments.clone();
    if options.config.load_restrictor == LoadRestrictor::None {
        arguments.push(ANY_FILE.to_owned());
    }
    // Something remote that could not be followed has ended the plan, and kustomize itself reports missing local files.
    let refusals = Refusals::of(&job.plan.before, &[], &arguments, program);
    let outputs = Scratch::for_user(&options.outputs).map_err(unusable)?;
    let builder = PlanBuilder { job, options, program, arguments: &arguments, refusals, outputs };
    let mut checked = builder.check_affected()?;
    // In a copy only the target has a path.
    if job.plan.new_dir.is_none() {
        builder.check_bases(&mut checked)?;
    }
    if checked.targets.iter().any(|target| target.outputs.is_some()) {
        builder.outputs.keep();
    }
    Ok(checked)
}

/// What builds the roots of a plan.
struct PlanBuilder<'a> {
    job: &'a PlanBuilds<'a>,
    options: &'a BuildOptions,
    program: &'a Program,
    arguments: &'a [String],
    refusals: Refusals<'a>,
    /// The directory for outputs that differ. One for all builds, because a new one would take the place of the last.
    /// Only the user can read it: outputs may hold secrets.
    outputs: Scratch,
}

impl PlanBuilder<'_> {
    /// Checks the affected roots: from what is known before any build, by an earlier proof, or by building them.
    fn check_affected(&self) -> Result<BuildCheck> {
        let affected = &self.job.plan.affected;
        let by = BuildTool { program: self.program.name(), arguments: self.arguments.to_vec() };
        // A root that is known not to build has its verdict before any build, whatever an earlier run has found.
        let mut verdicts: Vec<Option<Verdict>> = Vec::new();
        for root in affected {
            verdicts.push(self.refusal(root).map(verdict_of).transpose()?);
        }
        // An earlier proof holds if the inputs and the program are the same.
        if let Some(earlier) = &self.job.earlier {
            for (verdict, recorded) in verdicts.iter_mut().zip(earlier.verdicts(self.job, &by)?) {
                *verdict = verdict.take().or(recorded);
            }
        }
        // The roots without a verdict are built, and their results put in their places.
        let unjudged = affected.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_none());
        let unjudged: Vec<&ComparedRoot> = unjudged.map(|(root, _)| root).collect();
        let network = (!unjudged.is_empty()).then_some(self.program.network);
        let mut built = self.build(&unjudged)?.into_iter();
        let targets = affected.iter().zip(verdicts).filter_map(|(root, verdict)| match verdict {
            Some(verdict) => Some(TargetCheck::new(root, verdict)),
            None => built.next(),
        });
        Ok(BuildCheck { by: Some(by), network, targets: targets.collect(), not_built: None })
    }

    /// Checks the bases of roots that failed: such a build may not have come to them, so they are built by themselves.
    /// Only a problem of a base is reported: nobody asked for the base.
    fn check_bases(&self, checked: &mut BuildCheck) -> Result<()> {
        let mut known: BTreeMap<RootId, bool> = checked.targets.iter().map(sameness).collect();
        loop {
            let bases = unverified(self.job.plan, &known);
            if bases.is_empty() {
                return Ok(());
            }
            let (refused, buildable): (Vec<_>, Vec<_>) = bases.iter().partition(|root| self.refusal(root).is_some());
            if !buildable.is_empty() {
                checked.network = Some(self.program.network);
            }
            let built = self.build(&buildable)?;
            known.extend(refused.into_iter().map(|root| (root.root, false)).chain(built.iter().map(sameness)));
            checked.targets.extend(built.into_iter().filter(|target: &TargetCheck| {
                target.verdict.differs() || matches!(target.verdict, Verdict::Unread { .. })
            }));
        }
    }

    /// Why a root is not built, known before any build; `None` if a build can be tried.
    fn refusal(&self, root: &ComparedRoot) -> Option<Unbuilt> {
        match absolute_path_reason(&self.job.plan.before, root.root) {
            Some(why) => Some(Unbuilt::Skipped(Failure::new(why))),
            None => self.refusals.of_root(root.root),
        }
    }

    /// Builds roots side by side, and compares their outputs.
    fn build(&self, roots: &[&ComparedRoot]) -> Result<Vec<TargetCheck>> {
        if roots.is_empty() {
            return Ok(Vec::new());
        }
        let pairs = RootPairs::write(self, roots).map_err(|failure| failure.context(NOT_WRITTEN))?;
        let check = |_, root: &&ComparedRoot| pairs.check_root(root).map_err(|failure| not_built(failure, root));
        let progress = Progress::new("building", self.options.quiet);
        let checked = progress.each(processors(), roots, |root: &&ComparedRoot| root.name.clone(), check);
        let mut targets = checked.into_iter().collect::<Result<Vec<TargetCheck>>>()?;
        // A root may fail for a file that no walk has found: then it builds among all files, which is a finding. This
        // is tried for one root after another, because all roots share one copy of the tree.
        for (root, target) in roots.iter().zip(&mut targets) {
            let Verdict::NotBuilt { reason } = &target.verdict else { continue };
            let messages = pairs.retry_among_all(root, &self.job.plan.before.sources[0], reason);
            if let Some(messages) = messages.map_err(|failure| not_built(failure, root))? {
                *target = TargetCheck::new(root, Verdict::Unread { messages });
            }
        }
        Ok(targets)
    }
}

/// A root, and whether its outputs are the same.
fn sameness(target: &TargetCheck) -> (RootId, bool) {
    (target.root, target.verdict.is_same())
}

/// The roots to build next, which no build has reached for sure. `known` says of each built root whether both outputs
/// are the same.
fn unverified(plan: &Plan, known: &BTreeMap<RootId, bool>) -> Vec<ComparedRoot> {
    let graph = &plan.before;
    let (same, others): (Vec<RootId>, Vec<RootId>) = known.keys().partition(|root| known[*root]);
    let next = graph.unverified_roots(same, others).into_iter().filter(|root| !known.contains_key(root));
    next.map(|root| ComparedRoot::unmoved(graph, root, true)).collect()
}

/// The message if a root, or one that it reaches, names an absolute path, so that it is not built; else `None`.
fn absolute_path_reason(graph: &Graph, root: RootId) -> Option<String> {
    let roots = graph.reachable([root]);
    let edges = roots.iter().flat_map(|root| &graph.roots[*root].edges);
    let named = edges.map(|edge| (edge.from, &edge.reference.text));
    let charts = graph.charts.iter().filter(|chart| roots.contains(&chart.root));
    let homes = charts.map(|chart| (graph.roots[chart.root].file, &chart.home));
    // An absolute path leads out of the directory in which the original is built.
    let (file, text) = named.chain(homes).find(|(_, text)| path::is_absolute(text))?;
    Some(format!("{} names the absolute path `{text}`", graph.label(file)))
}

/// The verdict on a root that is not built on one side. Fails if it is unknown whether it builds.
fn verdict_of(unbuilt: Unbuilt) -> Result<Verdict> {
    match unbuilt {
        Unbuilt::Skipped(failure) => Ok(Verdict::Skipped { reason: failure.message }),
        Unbuilt::Failed(reason) | Unbuilt::Refused(reason) => Ok(Verdict::NotBuilt { reason }),
        Unbuilt::Unread(messages) => Ok(Verdict::Unread { messages }),
        Unbuilt::Unknown(Failures(failures)) => {
            Err(failures.into_iter().next().unwrap_or_else(|| Failure::new("a build was lost")))
        }
    }
}

/// Roots as they were and as they are localized, on disk.
struct RootPairs<'a> {
    program: &'a Program,
    arguments: &'a [String],
    original: Roots,
    localized: Roots,
    /// The directory for outputs that differ.
    outputs: &'a Scratch,
}

impl<'a> RootPairs<'a> {
    /// Writes everything that the builds of these roots read.
    fn write(
        PlanBuilder { job, options, program, arguments, outputs, .. }: &'a PlanBuilder<'_>,
        roots: &[&ComparedRoot],
    ) -> Result<RootPairs<'a>> {
        let PlanBuilds { plan, checkout, .. } = job;
        let after = plan.after.user_roots();
        let original =
            roots.iter().filter(|root| root.is_changed).map(|root| (root.original.clone(), Ok(Some(root.root))));
        let localized =
            roots.iter().map(|root| (root.localized.clone(), Ok(after.get(root.localized.as_str()).copied())));
        // The result must build without a network and without a program that was not trusted.
        let closed = Writing { checks_out: checkout.is_some(), name: "localized", ..Writing::INPUT };
        let writing = Writing { trusted: Some(&plan.trusted), offline: options.offline, name: "original", ..closed };
        let mut pool = Pool::default();
        Ok(RootPairs {
            program,
            arguments,
            original: Roots::write(&plan.before, original.collect(), writing, &mut pool)?,
            localized: match &plan.new_dir {
                Some(into) => Roots::of_copy(plan, into, checkout.as_ref())?,
                None => Roots::write(&plan.after, localized.collect(), closed, &mut pool)?,
            },
            outputs,
        })
    }

    /// The build of a root on one side, to be run. Both sides get the same arguments.
    fn build_of(&self, root: &ComparedRoot, side: &Roots) -> Result<BuildRun, Unbuilt> {
        let is_original = std::ptr::eq(side, &self.original);
        let directory = if is_original { &root.original } else { &root.localized };
        let dir = side.dirs.get(directory).cloned();
        let dir = dir.unwrap_or_else(|| Err(Failure::new("a build was lost").into()))?;
        let mut arguments = self.arguments.to_vec();
        // If a root names files outside of itself, the engine that builds it may allow that.
        let reads_outside =
            self.original.reads_outside(&root.original) || self.localized.reads_outside(&root.localized);
        if reads_outside && !arguments.iter().any(|argument| argument == ANY_FILE) {
            arguments.push(ANY_FILE.to_owned());
        }
        Ok(BuildRun::of(dir, self.program, arguments, Variables::default()))
    }

    /// Builds a failed root once more among all files (see [`BuildRun::retry_among_all`]).
    fn retry_among_all(
        &self,
        root: &ComparedRoot,
        source: &ScopedTree,
        reason: &str,
    ) -> Result<Option<BTreeSet<String>>> {
        let run = self.build_of(root, &self.original).or_else(|_| self.build_of(root, &self.localized));
        let Ok(BuildRun { root: dir, program, arguments, variables, .. }) = run else { return Ok(None) };
        // A root that does not change is only on disk as localized. It still gets the responses of the original.
        let dir = RootDir { files: self.original.files.clone(), ..dir };
        BuildRun::of(dir, &program, arguments, variables).retry_among_all(source, reason)
    }

    /// Builds a root on both sides, and compares the outputs. If they differ, their exact bytes are kept for the user.
    fn check_root(&self, root: &ComparedRoot) -> Result<TargetCheck> {
        if !root.is_changed {
            return self.check_unchanged(root);
        }
        // Remembered outputs have hashes for values of Secrets, but the outputs that the user gets must have the
        // values.
        let checked = self.build_and_compare(root, OutputForm::Objects)?;
        if checked.verdict.differs() { self.build_and_compare(root, OutputForm::Bytes) } else { Ok(checked) }
    }

    /// Builds a root whose files are the same on both sides, and so is its output: only to see what it asks for.
    fn check_unchanged(&self, root: &ComparedRoot) -> Result<TargetCheck> {
        let built = self.build_of(root, &self.localized).and_then(|run| run.build(OutputForm::Objects));
        let (verdict, size) = match built {
            Ok(build) => (Verdict::Unchanged, build.size),
            Err(unbuilt) => (verdict_of(unbuilt)?, 0),
        };
        Ok(TargetCheck { size, ..TargetCheck::new(root, verdict) })
    }

    /// Builds both sides of a root, and compares the outputs. With [`OutputForm::Bytes`], the second try after a
    /// difference, it keeps outputs that differ for the user.
    fn build_and_compare(&self, root: &ComparedRoot, form: OutputForm) -> Result<TargetCheck> {
        let run = self.build_of(root, &self.original);
        // Both sides are built at the same time: most of the time is that of starting programs.
        let [original, localized] = std::thread::scope(|threads| {
            let localized = threads.spawn(|| self.build_of(root, &self.localized)?.build(form));
            let original = run.as_ref().map_err(Unbuilt::clone).and_then(|run| run.build(form));
            [original, localized.join().unwrap_or_else(|_| Err(Failure::new("a build was lost").into()))]
        });
        let (original, localized) = match (original, localized) {
            (Ok(original), Ok(localized)) => (original, localized),
            (Ok(original), Err(unbuilt)) => {
                let verdict = match verdict_of(unbuilt)? {
                    Verdict::NotBuilt { reason } | Verdict::Skipped { reason } => Verdict::Broken { reason },
                    // No output: both may be anything.
                    requests => return Ok(TargetCheck::new(root, requests)),
                };
                return Ok(TargetCheck { size: original.size, ..TargetCheck::new(root, verdict) });
            }
            (Err(unbuilt), localized) => {
                return Ok(TargetCheck::new(root, verdict_on_original(unbuilt, localized.err())?));
            }
        };
        let (size, verdict) = (original.size, compare::compare(&original.stdout, &localized.stdout));
        if form != OutputForm::Bytes || !verdict.differs() {
            return Ok(TargetCheck { size, ..TargetCheck::new(root, verdict) });
        }
        let verdict = match (verdict, run) {
            // The original is built again to see whether it differs from itself, only now because that costs a build.
            (Verdict::Differs(difference), Ok(run)) if !run.is_steady(&original)? => Verdict::Unsteady(difference),
            (verdict, _) => verdict,
        };
        let directory = self.keep(root, [("original", &original), ("localized", &localized)]);
        let directory = directory.map_err(|error| Failure::new(format!("cannot keep the outputs: {error}")))?;
        let outputs = Some(directory.display().to_string());
        Ok(TargetCheck { size, outputs, ..TargetCheck::new(root, verdict) })
    }

    /// Keeps the outputs, for the user to look at.
    fn keep(&self, root: &ComparedRoot, builds: [(&str, &BuildOutput); 2]) -> std::io::Result<PathBuf> {
        let directory = self.outputs.path().join(&root.localized);
        std::fs::create_dir_all(&directory)?;
        for (name, build) in builds {
            std::fs::write(directory.join(format!("{name}.yaml")), &build.stdout)?;
        }
        Ok(directory)
    }
}

/// The verdict on a root whose original does not build: for the requests of both sides if both make some, for a result
/// that makes some or is unknown, and else for the original.
fn verdict_on_original(original: Unbuilt, localized: Option<Unbuilt>) -> Result<Verdict> {
    match (original, localized) {
        (Unbuilt::Unread(messages), Some(Unbuilt::Unread(more))) => Ok(Verdict::Unread { messages: &messages | &more }),
        (_, Some(unbuilt @ (Unbuilt::Unread(_) | Unbuilt::Unknown(_)))) | (unbuilt, _) => verdict_of(unbuilt),
    }
}

const NOT_WRITTEN: &str = "nothing was written";

/// The failure with the name of its root.
fn not_built(failure: Failure, root: &ComparedRoot) -> Failure {
    failure.context(&root.name).hint("to skip verification: --no-verify").context(NOT_WRITTEN)
}

/// Refuses arguments of kustomize with which it would print no output, so that there is nothing to compare.
pub(super) fn refuse_arguments(arguments: &[String]) -> Result<()> {
    arguments
        .iter()
        .find(|argument: &&String| {
            let name = argument.split('=').next().unwrap_or_default();
            matches!(name, "--output" | "--help" | "--") || argument.starts_with("-o") || argument.starts_with("-h")
        })
        .map_or(Ok(()), |argument| {
            Err(Failure::new(format!("`--build-arg {argument}` would leave nothing to compare")).hint("remove it"))
        })
}
