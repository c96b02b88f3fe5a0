//! The two builds of each root, side by side.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::inputs::BuildInputs;
use super::program::{self, Program};
use super::run::{Build, Building, Reach};
use super::{BuildCheck, Job, Options, SKIPPED, TargetCheck, Verdict, compare};
use crate::fetch::Progress;
use crate::graph::Graph;
use crate::kustomization::{FunctionRuntime, NoteKind};
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::parallel::{processors, side_by_side};
use crate::plan::{Affected, reached_left};
use crate::record::{Builder, LoadRestrictor};

/// Builds files from outside of their root, too.
const UNRESTRICTED: &str = "--load-restrictor=LoadRestrictionsNone";
/// What kustomize says of such a file otherwise.
const RESTRICTED: &str = "is not in or below";

/// Builds original and result of each root that no earlier run has checked, and compares what comes out.
pub(crate) fn check_builds(job: &Job<'_>, options: &Options) -> Result<BuildCheck> {
    refuse_arguments(&options.arguments)?;
    let (graph, affected) = (&job.plan.before, &job.plan.affected);
    // One build would reach out, and the other could not.
    let skipped = |one: &Affected| reached_left(graph, one.root, &job.plan.lock.left);
    let skipped = affected.iter().map(|one| Some(Verdict::Skipped { reason: skipped(one)? }));
    let mut verdicts: Vec<Option<Verdict>> = skipped.collect();
    let checks = |verdicts: Vec<Option<Verdict>>, built: Vec<TargetCheck>| {
        let mut built = built.into_iter();
        let checks = affected.iter().zip(verdicts).filter_map(|(one, verdict)| match verdict {
            Some(verdict) => Some(TargetCheck::new(&one.name, verdict)),
            None => built.next(),
        });
        checks.collect()
    };
    if verdicts.iter().all(Option::is_some) {
        return Ok(BuildCheck { targets: checks(verdicts, Vec::new()), ..BuildCheck::default() });
    }
    let program = match program::find(options.program.as_deref())? {
        Ok(program) => program,
        Err(reason) => return Ok(BuildCheck::without(&reason)),
    };
    let mut arguments = options.arguments.clone();
    if job.plan.load_restrictor == LoadRestrictor::None {
        arguments.push(UNRESTRICTED.to_owned());
    }
    let by = Builder { program: program.name(), arguments: arguments.clone() };
    if let Some(earlier) = &job.earlier {
        for (verdict, is_covered) in verdicts.iter_mut().zip(earlier.covered(job, &by)?) {
            *verdict = verdict.take().or(is_covered.then_some(Verdict::VerifiedBefore));
        }
    }
    // kustomize skips them without `--enable-alpha-plugins` and `--enable-exec`; kubectl has no such flags.
    let has = |name: &str| arguments.iter().any(|argument| *argument == name || *argument == format!("{name}=true"));
    let runs = has("--enable-alpha-plugins") && has("--enable-exec") && program.kind.name == program::KUSTOMIZE.name;
    if let Some(reason) = untrusted(graph).filter(|_| runs) {
        for verdict in &mut verdicts {
            verdict.get_or_insert(Verdict::NotBuilt { reason: reason.clone() });
        }
    }
    let todo: Vec<&Affected> =
        affected.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_none()).map(|(one, _)| one).collect();
    if todo.is_empty() {
        return Ok(BuildCheck { by: Some(by), targets: checks(verdicts, Vec::new()), ..BuildCheck::default() });
    }
    let scratch = Scratch::new().map_err(|error| unusable(&error))?;
    let inputs = BuildInputs::write(job, &todo, scratch.path())?;
    let runner = Runner {
        skips: has("--enable-alpha-plugins") && !runs && programs(graph).next().is_some(),
        program: &program,
        inputs: &inputs,
        private: scratch.path().join("builds"),
        arguments,
        options,
        is_single: affected.len() == 1,
        kept: Mutex::default(),
    };
    let targets = checks(verdicts, runner.all(&todo)?);
    let kept = runner.kept.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(BuildCheck {
        by: Some(by),
        network: Some(program.walls.network),
        kept: kept.map(|scratch| scratch.keep().display().to_string()),
        targets,
        ..BuildCheck::default()
    })
}

/// Everything that is the same for all roots. No tree is in it: those cannot be read side by side.
struct Runner<'a> {
    program: &'a Program,
    inputs: &'a BuildInputs,
    /// Where the builds have their own files.
    private: PathBuf,
    arguments: Vec<String>,
    options: &'a Options,
    /// Whether the builds leave functions out.
    skips: bool,
    /// Whether there is one root only.
    is_single: bool,
    /// Where outputs that differ are kept, once there are any.
    kept: Mutex<Option<Scratch>>,
}

impl Runner<'_> {
    /// Builds all roots, in about as many processes as there are processors: each root is two.
    fn all(&self, roots: &[&Affected]) -> Result<Vec<TargetCheck>> {
        let progress = Progress::new("building", self.options.quiet);
        progress.expect(roots.len());
        let checked = side_by_side(roots, processors().div_ceil(2), |number, root| {
            progress.begin(&root.name);
            let checked = self.one(&self.private.join(number.to_string()), root);
            progress.end(&root.name);
            checked
        });
        progress.clear();
        checked.into_iter().collect()
    }

    /// Builds one root.
    fn one(&self, private: &Path, root: &Affected) -> Result<TargetCheck> {
        let (inputs, offline) = (self.inputs, self.options.offline);
        let mut arguments = self.arguments.clone();
        let fetched = match &inputs.proxy {
            Some(proxy) if inputs.is_complete || !offline => Reach::Served(&inputs.manifest, proxy),
            None if !inputs.is_complete && !offline => Reach::Fetched(&inputs.manifest),
            _ => Reach::Local(&inputs.manifest),
        };
        let (source, result) = (inputs.original(&root.original), inputs.localized(&root.localized));
        let build = |what: &str, target: &Path, arguments: &[String], reach: Reach<'_>| {
            let building = Building { program: self.program, target, arguments, reach, input: &inputs.input };
            let built = building.run(&private.join(what));
            built.map_err(|failure| failure.context(&root.name).hint("to do without the proof: --no-verify"))
        };
        let both = |what: &str, arguments: &[String]| {
            std::thread::scope(|threads| {
                let localized =
                    threads.spawn(|| build(&format!("localized{what}"), &result, arguments, Reach::Nothing));
                let original = build(&format!("original{what}"), &source, arguments, fetched);
                let lost = |_| Err(Failure::new("a build was lost"));
                Ok((original?, localized.join().unwrap_or_else(lost)?))
            })
        };
        let (mut original, mut localized) = both("", &arguments)?;
        // The root's own engine may build it so.
        if !original.success && original.said.contains(RESTRICTED) && !arguments.iter().any(|one| one == UNRESTRICTED) {
            arguments.push(UNRESTRICTED.to_owned());
            let unrestricted = both("-unrestricted", &arguments)?;
            if unrestricted.0.success {
                (original, localized) = unrestricted;
            } else {
                arguments.pop();
            }
        }
        let mut verdict = self.verdict(&original, &localized);
        if let Verdict::Differs(difference) = &verdict {
            let again = build("again", &source, &arguments, fetched)?;
            if again.success && again.stdout != original.stdout {
                verdict = Verdict::Unsteady(difference.clone());
            }
        }
        let mut checked = TargetCheck::new(&root.name, verdict);
        checked.size = original.stdout.len() as u64;
        if checked.verdict.differs() {
            let kept = self.keep(root, &original, &localized);
            let kept = kept.map_err(|error| Failure::new(format!("the outputs could not be kept: {error}")))?;
            checked.outputs = Some(kept.display().to_string());
        }
        Ok(checked)
    }

    /// Compares two builds of a root.
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
    fn keep(&self, root: &Affected, original: &Build, localized: &Build) -> std::io::Result<PathBuf> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.is_none() {
            *kept = Some(Scratch::for_user(&self.options.outputs)?);
        }
        let mut directory = kept.as_ref().map(|scratch| scratch.path().to_owned()).unwrap_or_default();
        if !self.is_single {
            directory.push(&root.localized);
        }
        std::fs::create_dir_all(&directory)?;
        for (name, build) in [("original", original), ("localized", localized)] {
            std::fs::write(directory.join(format!("{name}.yaml")), &build.stdout)?;
            if !build.said.is_empty() {
                std::fs::write(directory.join(format!("{name}.stderr")), &build.said)?;
            }
        }
        Ok(directory)
    }
}

/// Returns the functions of a graph that are programs: the file that names each, and its path.
fn programs(graph: &Graph) -> impl Iterator<Item = (usize, &str)> {
    graph.notes.iter().filter_map(|noted| match &noted.note.kind {
        NoteKind::KrmFunction { runtime: FunctionRuntime::Exec { path }, .. } => Some((noted.file, path.as_str())),
        _ => None,
    })
}

/// Returns which program from elsewhere would run although it has no execute bit that could be taken off, if there is
/// one: an upstream that chooses a program of this machine chooses its arguments, too.
fn untrusted(graph: &Graph) -> Option<String> {
    let (file, path) = programs(graph).find(|(file, path)| !path.contains('/') && graph.is_fetched(*file))?;
    let label = graph.label(file);
    Some(format!("{label} runs the program `{path}` of this machine, which cannot be trusted with input from others"))
}

/// Refuses what would leave nothing to compare.
fn refuse_arguments(arguments: &[String]) -> Result<()> {
    let is_refused = |argument: &&String| {
        let name = argument.split('=').next().unwrap_or_default();
        matches!(name, "--output" | "--help" | "--") || argument.starts_with("-o") || argument.starts_with("-h")
    };
    match arguments.iter().find(is_refused) {
        Some(argument) => {
            let message = format!("`--build-arg {argument}` would leave nothing to compare");
            Err(Failure::new(message).hint("leave it out"))
        }
        None => Ok(()),
    }
}
