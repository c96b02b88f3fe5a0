//! The one way to build: subjects on disk with all that they reach, each built with a closed network.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::disk::Pool;
use super::edits::Edits;
use super::memory::{Memory, OutputForm};
use super::program::{self, Program, Programs, Tool};
use super::roots::{self, Built, Refusals, RootDirs, Roots, Unbuilt, Writing};
use super::run::{BuildOutput, BuildRun, RootDir};
use super::runner::refuse_arguments;
use super::subject::{BuildSpec, By, objects};
use crate::config::Config;
use crate::git::LocalRepo;
use crate::graph::{Explored, Remotes, ScopedTree, Survey};
use crate::message::failure::{Failure, Failures, Result};
use crate::os::parallel::{processors, side_by_side};
use crate::plan;
use crate::record::{BuildTool, Lock};
use crate::targets::built::{Builder, declaring};
use crate::tree::path;
use crate::workspace::Workspace;

/// The subject of a build, or why there is none; `Ok(None)` builds to nothing.
pub(crate) type Wanted = Result<Option<BuildSpec>, Failures>;

/// The source of the output of a subject: a program, or a known text.
enum OutputSource {
    Known(Vec<u8>),
    Run(Box<ProgramRun>),
}

/// A program, as it is run for a subject.
struct ProgramRun {
    /// The directory of the subject.
    directory: String,
    /// The build, or why its root is not built.
    run: Result<BuildRun, Unbuilt>,
    /// Why a cluster may get another output than this machine; `None` if nothing indicates that.
    depends_on_cluster: Option<String>,
}

/// Subjects on disk, to be built side by side.
// No tree is in it, because other threads could not use one.
pub(crate) struct Builds {
    program: Program,
    /// The arguments of all builds by kustomize.
    arguments: Vec<String>,
    /// The files that all builds share.
    pool: Pool,
    /// The output of each subject.
    outputs: Vec<Result<OutputSource, Unbuilt>>,
    /// The edited kustomizations, by the numbers of their subjects.
    edited: BTreeMap<usize, Result<Vec<u8>, Unbuilt>>,
}

impl Builds {
    /// Writes subjects of a workspace as a [checkout](Workspace::into_checkout) gives it, with everything that they
    /// reference. `remotes` fetches the remote references, those of `lock` as it has them.
    pub(crate) fn of_workspace(
        workspace: &Workspace,
        lock: Option<&Lock>,
        subjects: &[Wanted],
        remotes: &mut dyn Remotes,
        programs: Programs<'_>,
    ) -> Result<Builds> {
        let repo = workspace.repo().map(|rc| &**rc);
        Builds::begin(programs, &workspace.config, repo)?.write(
            workspace.survey(),
            subjects,
            |survey: &Survey, directories: &[String]| {
                plan::walk_for_build(survey, &workspace.config, lock, directories, remotes)
            },
        )
    }

    /// Writes subjects whose builds need only files of their trees, so that nothing is fetched.
    pub(crate) fn of_tree(
        survey: &Survey,
        subjects: &[Wanted],
        programs: Programs<'_>,
        config: &Config,
        repo: Option<&LocalRepo>,
    ) -> Result<Builds> {
        // The errors of the walk are dropped, because kustomize reports the same ones.
        Builds::begin(programs, config, repo)?.write(survey, subjects, |survey: &Survey, directories: &[String]| {
            Explored { troubles: Vec::new(), ..survey.explore_inputs(directories) }
        })
    }

    /// Finds kustomize, and checks a helm that the user names. Fails for arguments after which there is no output, if
    /// there is no kustomize, or if it is not in the version that the configuration requires.
    fn begin(programs: Programs<'_>, config: &Config, repo: Option<&LocalRepo>) -> Result<Builds> {
        let Programs { kustomize, helm, arguments } = programs;
        refuse_arguments(arguments)?;
        let program = program::find(kustomize)?
            .map_err(|reason| {
                Failure::new(reason).hint("install kustomize, or name it in the environment variable KUSTOMIZE")
            })?
            .configured(config, Memory::of(repo))?
            .with_helm(helm)?;
        let (outputs, edited) = (Vec::new(), BTreeMap::new());
        Ok(Builds { program, arguments: arguments.to_vec(), pool: Pool::default(), outputs, edited })
    }

    /// Prepares the outputs of subjects: `reach` walks from roots, and everything that it reaches is written for their
    /// builds.
    fn write(
        mut self,
        survey: &Survey,
        subjects: &[Wanted],
        mut reach: impl FnMut(&Survey, &[String]) -> Explored,
    ) -> Result<Builds> {
        let tree = &survey.tree();
        // Roots of this tree share their bases, so that one walk and one copy serve all of them. A chart has a tree of
        // its own, and so has a kustomization that an engine makes or edits.
        let is_root = |subject: &&BuildSpec| matches!(subject.by, By::Kustomize) && Rc::ptr_eq(&subject.tree, tree);
        let roots = subjects.iter().flatten().flatten().filter(is_root).map(|subject| subject.directory.clone());
        let roots: Vec<String> = roots.collect::<BTreeSet<String>>().into_iter().collect();
        let dirs = if roots.is_empty() { BTreeMap::new() } else { self.write_roots(&reach(survey, &roots), &roots)? };
        self.run_edits(subjects)?;
        for (number, subject) in subjects.iter().enumerate() {
            // An edit that failed explains the subject, whatever it would build to.
            let output = match (self.edited.get(&number), subject) {
                (Some(Err(unbuilt)), _) => Err(unbuilt.clone()),
                (_, Ok(Some(subject))) if is_root(&subject) => Ok(self.run_of(subject, &dirs)),
                (_, Ok(Some(subject))) => {
                    let subject = self.as_edited(number, subject);
                    self.write_alone(&subject, &mut reach).map_err(Unbuilt::from)
                }
                (_, Ok(None)) => Ok(OutputSource::Known(Vec::new())),
                (_, Err(failures)) => Err(Unbuilt::Unknown(failures.clone())),
            };
            self.outputs.push(output);
        }
        Ok(self)
    }

    /// Runs the `kustomize edit` commands of all subjects side by side, as Argo CD runs them before a build.
    fn run_edits(&mut self, subjects: &[Wanted]) -> Result<()> {
        let mut runs = Vec::new();
        for (number, subject) in subjects.iter().enumerate() {
            if let Ok(Some(subject)) = subject {
                runs.extend(Edits::write(subject)?.map(|edits| (number, edits)));
            }
        }
        let texts = side_by_side(&runs, processors(), |_, (_, edits)| edits.run(&self.program));
        self.edited = runs.iter().map(|(number, _)| *number).zip(texts).collect();
        Ok(())
    }

    /// A subject as its edits leave it.
    fn as_edited<'a>(&self, number: usize, subject: &'a BuildSpec) -> Cow<'a, BuildSpec> {
        match self.edited.get(&number) {
            Some(Ok(text)) => Cow::Owned(subject.clone().with(text)),
            Some(Err(_)) | None => Cow::Borrowed(subject),
        }
    }

    /// Writes roots of a walk, with everything that they reach.
    fn write_roots(&mut self, Explored { graph, troubles, .. }: &Explored, directories: &[String]) -> Result<RootDirs> {
        // Known reasons come first: the program would report them less clearly, or not at all.
        let refusals = Refusals::of(graph, troubles, &self.arguments, &self.program);
        let roots = directories.iter().map(|directory| {
            let root = graph.user_root(directory);
            let refused = root.and_then(|root| refusals.of_root(root));
            (directory.clone(), refused.map_or(Ok(root), Err))
        });
        // The walk has fetched all that a build may read, so that the network stays closed.
        Ok(Roots::write(graph, roots.collect(), Writing::INPUT, &mut self.pool)?.dirs)
    }

    /// Prepares a subject for which the common walk does not hold: its tree is not the surveyed one, or kustomize does
    /// not build it. Returns the source of its output.
    fn write_alone(
        &mut self,
        subject: &BuildSpec,
        reach: &mut impl FnMut(&Survey, &[String]) -> Explored,
    ) -> Result<OutputSource> {
        let BuildSpec { tree, directory, by, .. } = subject;
        match by {
            By::Plain(output) => Ok(OutputSource::Known(output.clone())),
            By::Kustomize => {
                // Its engine makes or edits the kustomization, or hides files, so its tree needs a walk of its own.
                let directories = std::slice::from_ref(directory);
                let dirs = self.write_roots(&reach(&Survey::of(tree.clone()), directories), directories)?;
                Ok(self.run_of(subject, &dirs))
            }
            By::Helm(values, depends_on_cluster) => {
                let program = self.program.helm()?;
                let (root, values) = roots::write_chart(tree, directory, values, &mut self.pool)?;
                // helm gets its values as files, because other users of the machine can see a command line.
                let values = values.iter().map(|file| format!("--values={}", file.display())).collect::<Vec<_>>();
                Ok(OutputSource::run(subject, Ok(root), &program, &values, depends_on_cluster.clone()))
            }
        }
    }

    /// The run of kustomize for a subject among roots.
    fn run_of(&self, subject: &BuildSpec, dirs: &RootDirs) -> OutputSource {
        OutputSource::run(subject, dirs[&subject.directory].clone(), &self.program, &self.arguments, None)
    }

    /// The program, and how the network is closed.
    pub(crate) fn program_and_network(&self) -> String {
        format!("{}, {}", self.program.name(), self.program.network)
    }

    /// The program for a record.
    pub(crate) fn tool(&self) -> BuildTool {
        BuildTool { program: self.program.name(), arguments: self.arguments.clone() }
    }

    /// The programs that build.
    pub(crate) fn programs(&self) -> String {
        self.program.full_name()
    }

    /// Why a cluster may get another output than a build here; `None` if nothing indicates that.
    pub(crate) fn depends_on_cluster(&self, subject: usize) -> Option<&str> {
        match &self.outputs[subject] {
            Ok(OutputSource::Run(run)) => run.depends_on_cluster.as_deref(),
            _ => None,
        }
    }

    /// Builds a subject and fills in the variables of its engine, for comparisons and for reading its objects.
    pub(crate) fn build(&self, subject: usize) -> Built {
        self.output(subject, OutputForm::Objects)
    }

    /// The exact output of a subject, for a file or the terminal. A failure without a location names the directory of
    /// the subject, if a program builds it.
    pub(crate) fn bytes(&self, subject: usize) -> Result<Vec<u8>, Failures> {
        let located = |failure: Failure| match &self.outputs[subject] {
            Ok(OutputSource::Run(run)) if failure.location.is_none() => {
                failure.context(format!("cannot build `{}`", path::shown(&run.directory)))
            }
            _ => failure,
        };
        match self.output(subject, OutputForm::Bytes) {
            Ok(build) => Ok(build.stdout),
            Err(unbuilt) => Err(Failures(Failures::from(unbuilt).0.into_iter().map(located).collect())),
        }
    }

    /// Builds a subject, and keeps only the objects of engines in the output.
    fn engine_objects(&self, subject: usize, form: OutputForm) -> Built {
        let build = self.output(subject, form)?;
        Ok(BuildOutput { stdout: declaring(&build.stdout), ..build })
    }

    /// The output of a subject by its number. Fails if a chart renders to something else the second time. For a
    /// function that does so, the output is only marked as unsteady.
    fn output(&self, subject: usize, form: OutputForm) -> Built {
        match self.outputs[subject].as_ref().map_err(Unbuilt::clone)? {
            OutputSource::Known(output) => Ok(BuildOutput::known(output.clone())),
            OutputSource::Run(run) => {
                let run = run.run.as_ref().map_err(Unbuilt::clone)?;
                let build = run.build(form)?;
                if run.program.kind == Tool::Helm && build.is_unsteady {
                    return Err(Failure::new("its chart renders to something else each time").into());
                }
                Ok(build)
            }
        }
    }

    /// Builds all subjects at the same time, keeps only the objects of engines, and tests whether a second build is
    /// equal if helm or a function runs. A build that requests something unknown, or reads a file that no reference
    /// names, is [`Unbuilt::Unread`].
    pub(crate) fn all_engine_objects(&self, subjects: &[Wanted]) -> Result<Vec<Built>> {
        let numbers: Vec<usize> = (0..subjects.len()).collect();
        // Each build is a process, whose start takes most of its time.
        let mut all =
            side_by_side(&numbers, processors(), |_, number| self.engine_objects(*number, OutputForm::TestedObjects));
        for (number, built) in all.iter_mut().enumerate() {
            // kustomize may have failed because it reads a file that no reference names, so it is run once more among
            // all files. A chart is laid out as a whole, so helm lacks no file.
            if let Err(Unbuilt::Failed(reason)) = &*built
                && let Ok(OutputSource::Run(run)) = &self.outputs[number]
                && let Ok(Some(subject)) = &subjects[number]
                && let Ok(run) = &run.run
                && run.program.kind != Tool::Helm
            {
                let tree = self.as_edited(number, subject).tree.clone();
                // The tree is the user's, and any of its files may be the one that is missing.
                let source = ScopedTree { tree, scope: String::new(), repository: None };
                if let Some(messages) = run.retry_among_all(&source, reason)? {
                    *built = Err(Unbuilt::Unread(messages));
                }
            }
        }
        Ok(all)
    }
}

impl OutputSource {
    /// The run of a program for a subject whose root is on disk. `more` follows the arguments of the subject.
    fn run(
        subject: &BuildSpec,
        root: Result<RootDir, Unbuilt>,
        program: &Program,
        more: &[String],
        depends_on_cluster: Option<String>,
    ) -> OutputSource {
        let BuildSpec { directory, arguments, variables, .. } = subject.clone();
        let run = root.map(|root| BuildRun::of(root, program, [&*arguments, more].concat(), variables));
        OutputSource::Run(Box::new(ProgramRun { directory, run, depends_on_cluster }))
    }
}

/// Runs the builds of a tree that make objects of engines, side by side, and keeps only these objects: they tell what
/// else is deployed. Returns one result for each of `builders`, in their order. A build fails if a cluster may get
/// other objects than it makes here. All fail if the programs cannot be found.
pub(crate) fn build_all(
    survey: &Survey,
    builders: &[&Builder],
    config: &Config,
    repo: &LocalRepo,
) -> Vec<Result<Vec<u8>, Failures>> {
    if builders.is_empty() {
        return Vec::new();
    }
    let tree = survey.tree();
    let subjects: Vec<Wanted> =
        builders.iter().map(|builder| Ok(Some(BuildSpec::of_builder(builder, &tree, config)?))).collect();
    // The programs that a command names do not count: `diff` compares two of them by the same targets.
    let builds = Builds::of_tree(survey, &subjects, Programs::default(), config, Some(repo));
    let numbers: Vec<usize> = (0..builders.len()).collect();
    let built = side_by_side(&numbers, processors(), |_, number| {
        builds.as_ref().map_err(Failure::clone)?.engine_objects(*number, OutputForm::Objects)
    });
    built.into_iter().zip(&subjects).map(|(built, subject)| objects(subject, built)).collect()
}
