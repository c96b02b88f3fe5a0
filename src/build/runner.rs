//! The two builds of each target, side by side.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::build_inputs::BuildInputs;
use super::program::{self, Program, Search};
use super::run::{self, Build, BuildEnv, Git, Network};
use super::{BuildCheck, Job, Options, SKIPPED, Target, TargetCheck, Verdict, compare, fake_git};
use crate::fetch::Progress;
use crate::graph::{FileId, Graph, Origin};
use crate::kustomization::{FunctionRuntime, NoteKind};
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::{processors, side_by_side};
use crate::record::{Builder, LoadRestrictor};

/// How long one build may take where the user does not say.
pub(super) const TIMEOUT: Duration = Duration::from_secs(300);

/// Builds original and result of each target that no earlier run has checked, and compares what comes out.
pub(crate) fn check_builds(mut job: Job<'_>, options: &Options) -> Result<BuildCheck> {
    let mut skipped = std::mem::take(&mut job.skipped);
    let mut checked =
        if job.targets.is_empty() && !skipped.is_empty() { BuildCheck::default() } else { checked(&job, options)? };
    checked.targets.append(&mut skipped);
    Ok(checked)
}

fn checked(job: &Job<'_>, options: &Options) -> Result<BuildCheck> {
    refuse_arguments(&options.arguments)?;
    let program = match program::find(options.program.as_deref())? {
        Search::Found(program) => program,
        Search::Nothing(reason) => return Ok(BuildCheck::without(&reason)),
    };
    let mut arguments = options.arguments.clone();
    if job.plan.load_restrictor == LoadRestrictor::None {
        arguments.push("--load-restrictor=LoadRestrictionsNone".to_owned());
    }
    let by = Builder { program: program.name(), arguments: arguments.clone() };
    let covered = match &job.earlier {
        Some(earlier) => earlier.covered(job, &by),
        None => vec![false; job.targets.len()],
    };
    let mut checked = BuildCheck::default();
    let verdict_of_all = |verdict: Verdict| {
        let targets = job.targets.iter();
        targets.map(|target| TargetCheck::new(target, verdict.clone())).collect()
    };
    if covered.iter().all(|covered| *covered) {
        checked.targets = verdict_of_all(Verdict::VerifiedBefore);
        checked.by = Some(by);
        return Ok(checked);
    }
    // kustomize skips them without `--enable-alpha-plugins` and `--enable-exec`; kubectl has no such flags.
    let has = |name: &str| {
        let on = [name.to_owned(), format!("{name}=true")];
        arguments.iter().any(|argument| on.contains(argument))
    };
    let runs = has("--enable-alpha-plugins") && has("--enable-exec") && program.kind == program::Kind::Kustomize;
    let graph = &job.plan.before;
    let skips = has("--enable-alpha-plugins") && !runs && runs_programs(graph);
    if let Some(reason) = untrusted(graph).filter(|_| runs) {
        checked.by = Some(by);
        checked.targets = verdict_of_all(Verdict::NotBuilt { reason });
        return Ok(checked);
    }
    let scratch = Scratch::new().map_err(|error| unusable(&error))?;
    let todo: Vec<&Target> =
        (job.targets.iter().zip(&covered)).filter(|(_, covered)| !**covered).map(|(target, _)| target).collect();
    let inputs = BuildInputs::put(job, &todo, scratch.path())?;
    let runner = Runner {
        skips,
        runs,
        program: &program,
        inputs: &inputs,
        arguments,
        offline: options.offline,
        progress: Progress::new("building", options.quiet),
        outputs: &options.outputs,
        is_single: job.targets.len() == 1,
        kept: Mutex::default(),
    };
    checked.by = Some(by);
    runner.run(job, &todo, &covered, checked)
}

/// Everything that is the same for all targets. No tree is in it: those cannot be read side by side.
struct Runner<'a> {
    program: &'a Program,
    inputs: &'a BuildInputs,
    arguments: Vec<String>,
    offline: bool,
    /// Whether the builds leave functions out.
    skips: bool,
    /// Whether they run functions that are programs.
    runs: bool,
    progress: Progress,
    /// What outputs that differ are kept under.
    outputs: &'a str,
    /// Whether there is one target only.
    is_single: bool,
    /// Where they are kept, once there are any.
    kept: Mutex<Option<Scratch>>,
}

impl Runner<'_> {
    /// Builds the targets that are not `covered`, and notes all results.
    fn run(self, job: &Job<'_>, todo: &[&Target], covered: &[bool], mut checked: BuildCheck) -> Result<BuildCheck> {
        let mut built = self.all(todo)?.into_iter();
        self.progress.clear();
        let targets = job.targets.iter().zip(covered);
        let targets = targets.filter_map(|(target, covered)| {
            if *covered { Some(TargetCheck::new(target, Verdict::VerifiedBefore)) } else { built.next() }
        });
        checked.targets = targets.collect();
        checked.network = Some(self.program.walls.network);
        let kept = self.kept.into_inner();
        checked.kept = kept.unwrap_or_else(PoisonError::into_inner).map(|scratch| scratch.keep().display().to_string());
        let live = checked.targets.iter().any(|target| target.live.is_some());
        if checked.differs() {
            checked.converted.clone_from(&self.inputs.converted);
        }
        if checked.differs() && (live || !self.inputs.is_complete) {
            checked.moved = (job.moved)(live);
        }
        Ok(checked)
    }

    /// Builds all targets, in about as many processes as there are processors: each target is two.
    fn all(&self, targets: &[&Target]) -> Result<Vec<TargetCheck>> {
        self.progress.expect(targets.len());
        let checked = side_by_side(targets, processors().div_ceil(2), |number, target| {
            self.progress.begin(&target.name);
            let checked = self.one(number, target);
            self.progress.end(&target.name);
            checked
        });
        checked.into_iter().collect()
    }

    /// Builds one target.
    fn one(&self, number: usize, target: &Target) -> Result<TargetCheck> {
        let inputs = self.inputs;
        let private = inputs.private(number);
        let build = |what: &str, target: &OsStr, env: BuildEnv<'_>| {
            let private = private.join(what);
            run::build(self.program, target, &self.arguments, &private, env, TIMEOUT)
        };
        let source = inputs.original(&target.original);
        let env = |git, network| BuildEnv { git, network, input: &inputs.input };
        let fetched = || {
            let network = match &inputs.proxy {
                Some(proxy) if inputs.is_complete || !self.offline => Network::Fetched(proxy),
                None if !inputs.is_complete && !self.offline => Network::Open,
                _ => Network::Closed,
            };
            env(Git::StandIn(&inputs.manifest), network)
        };
        let original = |what: &str, live: bool| {
            let env = if live { env(Git::Real, Network::Open) } else { fetched() };
            build(what, source.as_os_str(), env)
        };
        let localized = || {
            let env = env(Git::StandIn(&inputs.nothing), Network::Closed);
            let directory = inputs.localized(&target.localized);
            build("localized", directory.as_os_str(), env)
        };
        let (first, localized) = std::thread::scope(|threads| {
            let localized = threads.spawn(localized);
            let first = original("original", false);
            let lost = || Err(Failure::new("a build was lost"));
            (first, localized.join().unwrap_or_else(|_| lost()))
        });
        let (mut first, localized) = (first?, localized?);
        let mut unknown = None;
        // Files that the real git checks out may be executable.
        if !first.success && !self.offline && !self.runs {
            let proxy = inputs.proxy.as_ref();
            unknown =
                fake_git::unknown(&inputs.manifest).or_else(|| proxy.and_then(|proxy| proxy.unknown(&first.said)));
            if unknown.is_some() {
                first = original("live", true)?;
            }
        }
        if first.is_late {
            return Err(Failure::new(format!("{}: the original could not be built: {}", target.name, first.said))
                .hint("to do without the proof: --no-verify"));
        }
        let mut verdict = self.verdict(&first, &localized);
        if let Verdict::Differs(difference) = &verdict {
            let again = original("again", unknown.is_some())?;
            if again.success && again.stdout != first.stdout {
                verdict = Verdict::Unsteady(difference.clone());
            }
        }
        let kept = if verdict.differs() {
            Some(
                self.keep(target, &first, &localized)
                    .map_err(|error| Failure::new(format!("the outputs could not be kept: {error}")))?,
            )
        } else {
            None
        };
        Ok(TargetCheck {
            size: first.stdout.len() as u64,
            live: unknown,
            outputs: kept.map(|kept| kept.display().to_string()),
            ..TargetCheck::new(target, verdict)
        })
    }

    /// Compares two builds of a target.
    fn verdict(&self, original: &Build, localized: &Build) -> Verdict {
        let verdict = match (original.success, localized.success) {
            (false, _) => Verdict::NotBuilt { reason: self.inputs.plain(&original.said) },
            (true, false) => Verdict::Broken { reason: self.inputs.plain(&localized.said) },
            (true, true) => compare::compare(&original.stdout, &localized.stdout),
        };
        if self.skips && verdict.is_same() {
            return Verdict::NotBuilt { reason: SKIPPED.to_owned() };
        }
        verdict
    }

    /// Keeps what was built, for the user to look at. Only the user can: it may hold secrets.
    fn keep(&self, target: &Target, original: &Build, localized: &Build) -> std::io::Result<PathBuf> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let scratch = match kept.take() {
            Some(scratch) => scratch,
            None => Scratch::for_user(self.outputs)?,
        };
        let mut directory = scratch.path().to_owned();
        if !self.is_single {
            directory.push(&target.localized);
        }
        *kept = Some(scratch);
        std::fs::create_dir_all(&directory)?;
        for (name, build) in [("original", original), ("localized", localized)] {
            let place = |end: &str| directory.join(format!("{name}.{end}"));
            std::fs::write(place("yaml"), &build.stdout)?;
            if !build.said.is_empty() {
                std::fs::write(place("stderr"), &build.said)?;
            }
        }
        Ok(directory)
    }
}

/// Returns whether a function of the graph is a program.
fn runs_programs(graph: &Graph) -> bool {
    graph
        .notes
        .iter()
        .any(|noted| matches!(noted.note.kind, NoteKind::KrmFunction { runtime: FunctionRuntime::Exec { .. }, .. }))
}

/// Returns which program from elsewhere would run although it has no execute bit that could be taken off, if there is
/// one: an upstream that chooses a program of this machine chooses its arguments, too.
fn untrusted(graph: &Graph) -> Option<String> {
    let is_foreign = |file: FileId| match &graph.files[file].origin {
        Origin::Tree { source, .. } => graph.sources[*source].repository.is_some(),
        Origin::Remote(_) | Origin::Archive { .. } => true,
    };
    graph.notes.iter().find_map(|noted| match &noted.note.kind {
        NoteKind::KrmFunction { runtime: FunctionRuntime::Exec { path }, .. }
            if !path.contains('/') && is_foreign(noted.file) =>
        {
            Some(format!(
                "{} runs the program `{path}` of this machine, which cannot be trusted with input from others",
                graph.label(noted.file)
            ))
        }
        _ => None,
    })
}

/// Refuses what would leave nothing to compare.
fn refuse_arguments(arguments: &[String]) -> Result<()> {
    for argument in arguments {
        let name = argument.split('=').next().unwrap_or_default();
        let short = argument.starts_with("-o") || argument.starts_with("-h");
        if matches!(name, "--output" | "--help" | "--") || short {
            return Err(
                Failure::new(format!("`--build-arg {argument}` would leave nothing to compare")).hint("leave it out")
            );
        }
    }
    Ok(())
}
