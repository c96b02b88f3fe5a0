//! The two builds of each root, side by side.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::inputs::{self, Answers};
use super::memory::Wants;
use super::program::{self, Kind, Program};
use super::run::{Build, Building};
use super::{BuildCheck, Job, Options, TargetCheck, Verdict, compare, unread_file, unread_reference};
use crate::fetch::Progress;
use crate::graph::{Graph, RootId};
use crate::kustomization::{NoteKind, Runs};
use crate::message::failure::{Failure, Result};
use crate::os::interrupt::{Scratch, unusable};
use crate::os::limits::LOADS;
use crate::os::parallel::processors;
use crate::plan::{Affected, Plan, reached_left};
use crate::record::{Builder, LoadRestrictor};
use crate::targets::generated::ANY_FILE;
use crate::targets::variables::Variables;
use crate::tree::path;

/// What kustomize says of a file outside of its root, unless [`ANY_FILE`] is passed.
pub(crate) const RESTRICTED: &str = "is not in or below";

/// Builds original and result of each root that no earlier run has checked, and compares what comes out.
pub(crate) fn check_builds(job: &Job<'_>, options: &Options) -> Result<BuildCheck> {
    refuse_arguments(&options.arguments)?;
    let (graph, affected) = (&job.plan.before, &job.plan.affected);
    let program = match program::find(options.program.as_deref())? {
        Ok(program) => program.configured(&options.config, options.memory.clone())?,
        Err(reason) => return Ok(BuildCheck::without(&reason)),
    };
    let mut arguments = options.arguments.clone();
    if options.config.load_restrictor == LoadRestrictor::None {
        arguments.push(ANY_FILE.to_owned());
    }
    let by = Builder { program: program.name(), arguments: arguments.clone() };
    let skipped = skipped(graph);
    let mut verdicts: Vec<Option<Verdict>> = affected.iter().map(&skipped).collect();
    if let Some(earlier) = &job.earlier {
        for (verdict, recorded) in verdicts.iter_mut().zip(earlier.verdicts(job, &by)?) {
            *verdict = verdict.take().or(recorded);
        }
    }
    if let Some((roots, reason)) = unrunnable(graph, &arguments, &program) {
        let hit = graph.leading_to(roots);
        for (_, verdict) in affected.iter().zip(&mut verdicts).filter(|(one, _)| hit.contains(&one.root)) {
            verdict.get_or_insert(Verdict::NotBuilt { reason: reason.clone() });
        }
    }
    let run = |todo: &[&Affected]| match todo {
        [] => Ok(Vec::new()),
        _ => Runner::check(job, options, &program, arguments.clone(), todo),
    };
    let todo = affected.iter().zip(&verdicts).filter(|(_, verdict)| verdict.is_none());
    let todo: Vec<&Affected> = todo.map(|(one, _)| one).collect();
    let network = (!todo.is_empty()).then_some(program.network);
    let mut built = run(&todo)?.into_iter();
    let targets = affected.iter().zip(verdicts).filter_map(|(one, verdict)| match verdict {
        Some(verdict) => Some(TargetCheck::new(one, verdict)),
        None => built.next(),
    });
    let mut checked = BuildCheck { by: Some(by), network, targets: targets.collect(), without: None };
    let came = |target: &TargetCheck| (target.root, target.verdict.is_same());
    let mut known: BTreeMap<RootId, bool> = checked.targets.iter().map(came).collect();
    while let Some(next) = unseen(job.plan, &known) {
        let (out, todo): (Vec<_>, Vec<_>) = next.iter().partition(|one| skipped(one).is_some());
        let built = run(&todo)?;
        known.extend(out.into_iter().map(|one| (one.root, false)).chain(built.iter().map(came)));
        let is_wrong = |one: &TargetCheck| one.verdict.differs() || matches!(one.verdict, Verdict::Unread { .. });
        checked.targets.extend(built.into_iter().filter(is_wrong));
    }
    Ok(checked)
}

/// Returns what says why a root is not built, if it is not: one build would reach out, and the other could not.
fn skipped(graph: &Graph) -> impl Fn(&Affected) -> Option<Verdict> {
    let loads = graph.loads();
    move |one| {
        let reason = reached_left(graph, one.root).or_else(|| absolute(graph, one));
        let outside = || inputs::outside(graph, one.root).unwrap_or_else(|failure| Some(failure.message));
        let over = || (loads[one.root] > LOADS.most as u64).then(|| LOADS.exceeded(&one.name).message);
        reason.or_else(over).or_else(outside).map(|reason| Verdict::Skipped { reason })
    }
}

/// Returns the roots to build next, of those that no build may have come to. `known` says of each root whether its own did.
fn unseen(plan: &Plan, known: &BTreeMap<RootId, bool>) -> Option<Vec<Affected>> {
    let graph = &plan.before;
    let that = |is: bool| known.iter().filter(move |(_, built)| **built == is).map(|(root, _)| *root);
    let next = graph.unseen(that(true), that(false)).into_iter().filter(|root| !known.contains_key(root));
    let next: Vec<Affected> = next.map(|root| Affected::own(graph, root, true)).collect();
    (plan.new_dir.is_none() && !next.is_empty()).then_some(next)
}

/// Everything that is the same for all roots. No tree is in it: those cannot be read side by side.
struct Runner<'a> {
    program: &'a Program,
    /// What all builds read, and may not change.
    input: &'a Path,
    /// The top of what the original lies in, and of the result, of each root.
    tops: Vec<[PathBuf; 2]>,
    /// What answers the originals, and the results.
    answers: [Answers; 2],
    /// Where the builds have their own files.
    private: PathBuf,
    arguments: Vec<String>,
    /// Where outputs that differ are kept.
    kept: Scratch,
}

impl Runner<'_> {
    /// Builds roots and compares, in about as many processes as there are processors: a root that changes is two.
    fn check(
        job: &Job<'_>,
        options: &Options,
        program: &Program,
        arguments: Vec<String>,
        roots: &[&Affected],
    ) -> Result<Vec<TargetCheck>> {
        let scratch = Scratch::new().map_err(|error| unusable(&error))?;
        let input = scratch.path().join("input");
        let kept = Scratch::for_user(&options.outputs).map_err(|error| unusable(&error))?;
        let private = scratch.path().join("builds");
        std::fs::create_dir_all(&private).map_err(|error| unusable(&error))?;
        let tops = (0..roots.len()).map(|number| tops(job.plan, number, &input)).collect();
        write(job, roots, &input)?;
        let [original, localized] = ["original", "localized"].map(|name| input.join(name));
        let answers = [
            Answers::of(&job.plan.before, options.offline, &original)?,
            Answers::of(&job.plan.after, true, &localized)?,
        ];
        let runner = Runner { program, input: &input, tops, answers, private, arguments, kept };
        let (two, one): (Vec<_>, Vec<_>) = roots.iter().enumerate().partition(|(_, root)| root.is_changed);
        let mut checked = Vec::new();
        for (group, most) in [(two, processors().div_ceil(2)), (one, processors())] {
            let name = |(_, root): &(usize, &&Affected)| root.name.clone();
            checked.extend(
                Progress::new("building", options.quiet)
                    .each(most, &group, name, |_, (number, root)| Ok((*number, runner.one(*number, root)?))),
            );
        }
        let mut checked = checked.into_iter().collect::<Result<Vec<(usize, TargetCheck)>>>()?;
        checked.sort_by_key(|(number, _)| *number);
        let mut targets: Vec<TargetCheck> = checked.into_iter().map(|(_, target)| target).collect();
        runner.complete(job, roots, &mut targets)?;
        if targets.iter().any(|target| target.outputs.is_some()) {
            runner.kept.keep();
        }
        Ok(targets)
    }

    /// Builds originals that fail once more, among all files of the tree: what was read may not be all that kustomize
    /// reads. What they ask for there counts, and so does that they build there.
    fn complete(&self, job: &Job<'_>, roots: &[&Affected], targets: &mut [TargetCheck]) -> Result<()> {
        let failed = roots.iter().zip(targets);
        let failed = failed.filter(|(_, target)| matches!(target.verdict, Verdict::NotBuilt { .. }));
        let failed: Vec<(&&Affected, &mut TargetCheck)> = failed.collect();
        let source = &job.plan.before.sources[0];
        if failed.is_empty() || source.repository.is_some() {
            return Ok(());
        }
        let top = self.input.join("whole");
        inputs::whole(source, job.checkout.is_some(), &top)?;
        let (whole, arguments) = (top.join(&source.scope), [&*self.arguments, &[ANY_FILE.to_owned()]].concat());
        for (root, target) in failed {
            let built = self.build(root, 0, &whole, &arguments, Some(Wants::Objects))?;
            let mut messages: BTreeSet<String> =
                built.refused.iter().map(|one| unread_reference("kustomize", one)).collect();
            if let (true, true, Verdict::NotBuilt { reason }) = (messages.is_empty(), built.success, &target.verdict) {
                messages.insert(unread_file(reason));
            }
            if !messages.is_empty() {
                *target = TargetCheck::new(root, Verdict::Unread { messages });
            }
        }
        Ok(())
    }

    /// Returns one build below a directory, of an original (0) or a result (1); not of what is remembered if nothing is
    /// wanted but that.
    fn build(
        &self,
        root: &Affected,
        side: usize,
        top: &Path,
        arguments: &[String],
        wants: Option<Wants>,
    ) -> Result<Build> {
        let (program, answers, input, variables) =
            (self.program, &self.answers[side], self.input, &Variables::default());
        let target = &top.join([&root.original, &root.localized][side]);
        let building = Building { program, target, arguments, answers, input, top, variables };
        let built = match wants {
            Some(wants) => building.output(&self.private, wants),
            None => building.run(&self.private),
        };
        built.map_err(|failure| failure.context(&root.name).hint("to skip verification: --no-verify"))
    }

    /// Builds one root, by its number: one that stays as it is once. What is shown of a difference has all values.
    fn one(&self, number: usize, root: &Affected) -> Result<TargetCheck> {
        let checked = self.compared(number, root, Wants::Objects)?;
        if checked.verdict.differs() { self.compared(number, root, Wants::Bytes) } else { Ok(checked) }
    }

    fn compared(&self, number: usize, root: &Affected, wants: Wants) -> Result<TargetCheck> {
        let tops = &self.tops[number];
        let build = |side: usize, arguments: &[String]| self.build(root, side, &tops[side], arguments, Some(wants));
        let both = |arguments: &[String]| {
            if !root.is_changed {
                return Ok((build(1, arguments)?, None));
            }
            std::thread::scope(|threads| {
                let localized = threads.spawn(|| build(1, arguments));
                let original = build(0, arguments);
                let lost = |_| Err(Failure::new("a build was lost"));
                Ok((original?, Some(localized.join().unwrap_or_else(lost)?)))
            })
        };
        let mut arguments = self.arguments.clone();
        let (mut original, mut localized) = both(&arguments)?;
        // The root's own engine may build it so.
        if !original.success && original.said.contains(RESTRICTED) && !arguments.iter().any(|one| one == ANY_FILE) {
            arguments.push(ANY_FILE.to_owned());
            let unrestricted = both(&arguments)?;
            if unrestricted.0.success || !unrestricted.0.refused.is_empty() {
                (original, localized) = unrestricted;
            }
        }
        let requests = [Some(&original), localized.as_ref()].into_iter().flatten().flat_map(|one| one.refused.clone());
        let messages: BTreeSet<String> = requests.map(|request| unread_reference("kustomize", &request)).collect();
        if !messages.is_empty() {
            return Ok(TargetCheck::new(root, Verdict::Unread { messages }));
        }
        let mut verdict = match &localized {
            None if original.success => Verdict::Unchanged,
            None => Verdict::NotBuilt { reason: original.reason(&tops[1]) },
            Some(_) if !original.success => Verdict::NotBuilt { reason: original.reason(&tops[0]) },
            Some(localized) if !localized.success => Verdict::Broken { reason: localized.reason(&tops[1]) },
            Some(localized) => compare::compare(&original.stdout, &localized.stdout),
        };
        if let (Verdict::Differs(difference), Wants::Bytes) = (&verdict, wants) {
            let again = self.build(root, 0, &tops[0], &arguments, None)?;
            if again.success && again.stdout != original.stdout {
                verdict = Verdict::Unsteady(difference.clone());
            }
        }
        let mut checked = TargetCheck::new(root, verdict);
        checked.size = original.size;
        if let (Some(localized), true, Wants::Bytes) = (&localized, checked.verdict.differs(), wants) {
            let kept = self.keep(root, [("original", &original), ("localized", localized)]);
            let kept = kept.map_err(|error| Failure::new(format!("cannot keep the outputs: {error}")))?;
            checked.outputs = Some(kept.display().to_string());
        }
        Ok(checked)
    }

    /// Keeps what was built, for the user to look at. Only the user can: it may hold secrets.
    fn keep(&self, root: &Affected, builds: [(&str, &Build); 2]) -> std::io::Result<PathBuf> {
        let directory = self.kept.path().join(&root.localized);
        std::fs::create_dir_all(&directory)?;
        for (name, build) in builds {
            std::fs::write(directory.join(format!("{name}.yaml")), &build.stdout)?;
        }
        Ok(directory)
    }
}

/// Returns whether the build of a root runs helm or a function, which need not give the same again.
pub(super) fn runs(graph: &Graph, root: RootId) -> bool {
    graph.reach([root], |_, _, _| true).into_iter().any(|id| graph.runs(id))
}

/// Returns the directories that original and result of one of several roots, by its number, are named from.
fn tops(plan: &Plan, number: usize, input: &Path) -> [PathBuf; 2] {
    let scope = plan.before.sources.first().map_or("", |source| &source.scope);
    let original = inputs::own(&plan.before, number, &input.join("original")).join(scope);
    let localized = input.join("localized");
    let result = plan.new_dir.as_ref().map(|into| localized.join("tree").join(into));
    [original, result.unwrap_or_else(|| inputs::own(&plan.after, number, &localized))]
}

/// Writes everything that the builds of these roots read.
fn write(job: &Job<'_>, roots: &[&Affected], input: &Path) -> Result<()> {
    let (plan, checks_out) = (job.plan, job.checkout.is_some());
    let [original, localized] = ["original", "localized"].map(|name| input.join(name));
    let numbered = || roots.iter().enumerate();
    let ids = numbered().filter(|(_, one)| one.is_changed).map(|(number, one)| (number, one.root));
    inputs::of_graph(&plan.before, ids, &plan.trusted, checks_out, &original)?;
    if let Some(into) = &plan.new_dir {
        return inputs::of_copy(plan, into, job.checkout.as_ref(), &localized.join("tree"));
    }
    let known = plan.after.own_roots();
    let ids = numbered().filter_map(|(number, one)| Some((number, *known.get(one.localized.as_str())?)));
    inputs::of_graph(&plan.after, ids, &Default::default(), checks_out, &localized)
}

/// Returns where a root reads an absolute path, if it does: that leads out of where the original is built.
fn absolute(graph: &Graph, one: &Affected) -> Option<String> {
    let roots = graph.reach([one.root], |_, _, _| true);
    let edges = roots.iter().flat_map(|root| &graph.roots[*root].edges);
    let named = edges.map(|edge| (edge.from, &edge.reference.text));
    let charts = graph.charts.iter().filter(|chart| roots.contains(&chart.root));
    let homes = charts.map(|chart| (graph.roots[chart.root].file, &chart.home));
    let (file, text) = named.chain(homes).find(|(_, text)| path::is_absolute(text))?;
    Some(format!("{} names the absolute path `{text}`", graph.label(file)))
}

/// Returns why programs that functions are do not run as they should, if there are any, and which roots name them. An
/// upstream that chooses a program of this machine chooses its arguments, too, and has no execute bit that could be taken
/// off; and without `--enable-exec` kustomize leaves programs out.
pub(super) fn unrunnable(graph: &Graph, arguments: &[String], program: &Program) -> Option<(Vec<RootId>, String)> {
    let programs = graph.notes.iter().filter_map(|noted| match &noted.note.kind {
        NoteKind::Code { runs: Runs::Program(path), .. } => Some((noted, path)),
        _ => None,
    });
    let has = |name: &str| arguments.iter().any(|argument| *argument == name || *argument == format!("{name}=true"));
    if !has("--enable-alpha-plugins") {
        return None;
    }
    // kubectl has no such flag.
    if !has("--enable-exec") || program.kind != Kind::Kustomize {
        let silently = "kustomize silently skips exec functions; to run them (this runs their code): \
                        --build-arg=--enable-exec, with kustomize";
        let roots: Vec<RootId> = programs.map(|(noted, _)| noted.root).collect();
        return (!roots.is_empty()).then(|| (roots, silently.to_owned()));
    }
    let chosen: Vec<_> = programs.filter(|(noted, path)| !path.contains('/') && graph.is_fetched(noted.file)).collect();
    let (first, path) = chosen.first()?;
    let label = graph.label(first.file);
    let reason = format!("{label} runs the local program `{path}`, which cannot be trusted with remote input");
    Some((chosen.iter().map(|(noted, _)| noted.root).collect(), reason))
}

/// Refuses what would leave nothing to compare.
pub(super) fn refuse_arguments(arguments: &[String]) -> Result<()> {
    let is_refused = |argument: &&String| {
        let name = argument.split('=').next().unwrap_or_default();
        matches!(name, "--output" | "--help" | "--") || argument.starts_with("-o") || argument.starts_with("-h")
    };
    arguments.iter().find(is_refused).map_or(Ok(()), |argument| {
        Err(Failure::new(format!("`--build-arg {argument}` would leave nothing to compare")).hint("remove it"))
    })
}
