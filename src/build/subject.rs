//! What can be built of a tree: a root as it is, or what an engine makes of one; with what the lock holds.

use std::path::Path;
use std::rc::Rc;

use super::memory::{Memory, Wants};
use super::program::{self, Program};
use super::runner::{refuse_arguments, runs, unrunnable};
use super::{Roots, inputs};
use crate::config::{Config, FILE_NAME};
use crate::git::LocalRepo;
use crate::graph::inputs::explore;
use crate::graph::{Graph, Remotes, Source, Survey};
use crate::message::failure::{Failure, FailureKind, Failures, Result, shown};
use crate::os::limits::LOADS;
use crate::os::parallel::{processors, side_by_side};
use crate::plan;
use crate::record::LoadRestrictor;
use crate::targets::generated::{ANY_FILE, Generated, generated};
use crate::targets::plain::plain;
use crate::targets::variables::Variables;
use crate::targets::{Found, Place, Target, at_other_revision, chart};
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, path};
use crate::workspace::{Files, Workspace};

/// A kustomization or a chart, in the tree that whoever builds it gets to see.
#[derive(Clone)]
pub(crate) struct Subject {
    tree: SharedTree,
    directory: String,
    /// What is passed to kustomize or helm.
    arguments: Vec<String>,
    by: By,
    /// What is filled in afterwards.
    variables: Variables,
}

/// What builds a subject.
#[derive(Clone)]
enum By {
    Kustomize,
    /// helm, with values, and why a cluster may get something else.
    Helm(Vec<Vec<u8>>, Option<String>),
    /// Nothing: this comes out of it.
    Nothing(Vec<u8>),
}

impl Subject {
    /// Takes the root in a directory as it is.
    pub(crate) fn root(workspace: &Workspace, directory: &str) -> Subject {
        let arguments = match workspace.config.load_restrictor {
            LoadRestrictor::None => vec![ANY_FILE.to_owned()],
            LoadRestrictor::RootOnly => Vec::new(),
        };
        let (tree, directory) = (workspace.tree.clone(), directory.to_owned());
        Subject { tree, directory, arguments, by: By::Kustomize, variables: Variables::default() }
    }

    /// Takes what the engine of a target builds; else why that cannot be built here.
    pub(crate) fn deployed(workspace: &Workspace, target: &Target) -> Result<Subject> {
        let tree = &workspace.tree;
        let there = match &target.place {
            Place::Here(there) => there,
            Place::External(why) | Place::Templated(why) => return Err(Failure::new(why)),
        };
        if let Some(revision) = at_other_revision(target) {
            return Err(Failure::new(format!("it deploys another revision, `{}`", shown(revision))));
        }
        if let Some(why) = target.open() {
            return Err(Failure::new(why));
        }
        // Only Flux packs what it builds. Who sees everything shares the tree with the roots.
        let all = if target.engine.packs() { tree.below("")? } else { Vec::new() };
        let (mut packed, mut hides) = (OverlayTree::new(tree.clone()), false);
        for place in all {
            if tree.entry(&place)?.is_some_and(|entry| target.hides(there, &place, entry)) {
                packed.remove(&place);
                hides = true;
            }
        }
        let seen: SharedTree = if hides { Rc::new(packed) } else { tree.clone() };
        if let Some(made) = generated(&*seen, target, there)? {
            return Ok(Subject::made(seen, &made));
        }
        if let Found::Chart(directory) = &there.found {
            return Subject::chart(&workspace.config, seen, target, directory);
        }
        let plain = plain(&*seen, target, there)?.ok_or_else(|| match &there.found {
            Found::Nothing(why) => Failure::new(why),
            _ => Failure::new(format!("kustomize does not build `{}`", path::shown(&there.path))),
        })?;
        let (directory, variables) = (there.path.clone(), Variables::default());
        Ok(Subject { tree: seen, directory, arguments: Vec::new(), by: By::Nothing(plain), variables })
    }

    pub(crate) fn is_chart(&self) -> bool {
        matches!(self.by, By::Helm(..))
    }

    /// Takes what an engine renders of a chart.
    fn chart(config: &Config, tree: SharedTree, target: &Target, directory: &str) -> Result<Subject> {
        if !config.helm {
            return Err(Failure::new("it is a Helm chart, and `helm` is off")
                .hint(format!("write `helm: true` into {FILE_NAME}")));
        }
        let release = chart::release(target)?;
        let asks = chart::asks(&*tree, target, &release, directory)?;
        let by = By::Helm(chart::values(&*tree, target, &release, directory)?, asks);
        let mut seen = OverlayTree::new(tree);
        if release.replaces_own {
            seen.remove(&path::join(directory, "values.yaml"));
        }
        let (directory, arguments) = (directory.to_owned(), release.arguments);
        Ok(Subject { tree: Rc::new(seen), directory, arguments, by, variables: Variables::default() })
    }

    /// Takes what an engine makes of a directory of a tree.
    pub(crate) fn made(tree: SharedTree, made: &Generated) -> Subject {
        let mut seen = OverlayTree::new(tree.clone());
        seen.file(&path::join(&made.directory, made.file_name), &made.text, false);
        let tree = if made.is_changed { Rc::new(seen) } else { tree };
        let Generated { directory, arguments, variables, .. } = made.clone();
        Subject { tree, directory, arguments, by: By::Kustomize, variables }
    }
}

/// What gives the output of a subject.
enum Call {
    /// kustomize: among which roots it is, its directory, its arguments, the variables in its output, and whether it runs
    /// what need not give the same again.
    Kustomize(usize, String, Vec<String>, Variables, bool),
    /// helm: that, and the same, and why a cluster may get something else.
    Helm(Program, usize, String, Vec<String>, Option<String>),
    /// Nothing: it is known.
    Known(Vec<u8>),
}

/// Subjects on disk with all that they reach, to be built without the network, side by side: no tree is in it.
pub(crate) struct Written {
    program: Program,
    /// The arguments of all builds by kustomize.
    more: Vec<String>,
    roots: Vec<Roots>,
    /// Whether each is built among all files of its tree.
    whole: bool,
    /// What to call for each subject, or why it cannot be built; none of nothing.
    calls: Vec<Result<Option<Call>, Failures>>,
}

impl Written {
    /// Writes subjects of a workspace, of which none builds to nothing. `remotes` gives what their references lead to.
    pub(crate) fn of(
        workspace: &Workspace,
        subjects: Vec<Result<Option<Subject>, Failures>>,
        remotes: &mut dyn Remotes,
        kustomize: Option<&Path>,
        more: &[String],
    ) -> Result<Written> {
        let checks_out = matches!(workspace.files, Files::Commit { .. });
        let reach = |program: &Program, tree: &SharedTree, directories: &[String]| {
            let source = Source { tree: tree.clone(), ..workspace.source() };
            let graph = plan::reached(workspace, source, directories, remotes)?;
            match unrunnable(&graph, more, program) {
                Some((_, reason)) => Err(Failure::new(reason).into()),
                None => Ok(graph),
            }
        };
        let here = workspace.repo().map(|here| &**here);
        Written::by_program(kustomize, &workspace.config, more, here)?.with(
            &workspace.tree,
            checks_out,
            subjects,
            reach,
        )
    }

    /// Returns what builds, and how the network is closed.
    pub(crate) fn by(&self) -> String {
        format!("{}, {}", self.program.name(), self.program.network)
    }

    /// Writes nothing yet, and finds the program that the configuration wants.
    fn by_program(
        kustomize: Option<&Path>,
        config: &Config,
        more: &[String],
        here: Option<&LocalRepo>,
    ) -> Result<Written> {
        refuse_arguments(more)?;
        let missing =
            |reason| Failure::new(reason).hint("install kustomize, or name it in the environment variable KUSTOMIZE");
        let program = program::find(kustomize)?.map_err(missing)?.configured(config, Memory::of(here))?;
        Ok(Written { program, more: more.to_vec(), roots: Vec::new(), whole: false, calls: Vec::new() })
    }

    /// Writes subjects with what a walk reaches. Those that are roots of `tree` itself share that.
    fn with(
        mut self,
        tree: &SharedTree,
        checks_out: bool,
        subjects: Vec<Result<Option<Subject>, Failures>>,
        mut reach: impl FnMut(&Program, &SharedTree, &[String]) -> Result<Graph, Failures>,
    ) -> Result<Written> {
        let is_root = |one: &&Subject| matches!(one.by, By::Kustomize) && Rc::ptr_eq(&one.tree, tree);
        let mut roots: Vec<String> =
            subjects.iter().flatten().flatten().filter(is_root).map(|one| one.directory.clone()).collect();
        roots.sort();
        roots.dedup();
        let mut shared = reach(&self.program, tree, &roots);
        // One that cannot be followed does not keep the others from being built.
        if shared.is_err() {
            roots.retain(|root| reach(&self.program, tree, std::slice::from_ref(root)).is_ok());
            shared = reach(&self.program, tree, &roots);
        }
        let refused = shared.as_ref().ok().map(refusal);
        roots.retain(|root| refused.as_ref().is_some_and(|refused| refused(root).is_none()));
        if let (Ok(graph), false) = (&shared, roots.is_empty()) {
            self.roots.push(Roots::write(graph, &roots, checks_out, self.whole)?);
        }
        for subject in subjects {
            let mut write = |subject: Subject| {
                let is_shared = is_root(&&subject) && roots.binary_search(&subject.directory).is_ok();
                let Subject { tree, directory, mut arguments, by, variables } = subject;
                match by {
                    By::Nothing(output) => return Ok(Call::Known(output)),
                    By::Helm(values, asks) => {
                        let helm = program::helm(self.program.timeout, self.program.memory.clone())?;
                        let (written, values) = Roots::chart(&tree, &directory, &values, checks_out)?;
                        self.roots.push(written);
                        arguments.extend(values.iter().map(|file| format!("--values={}", file.display())));
                        return Ok(Call::Helm(helm, self.roots.len() - 1, directory, arguments, asks));
                    }
                    By::Kustomize => {}
                }
                if !is_shared {
                    let alone = std::slice::from_ref(&directory);
                    let graph = reach(&self.program, &tree, alone)?;
                    refusal(&graph)(&directory).map_or(Ok(()), Err)?;
                    self.roots.push(Roots::write(&graph, alone, checks_out, self.whole)?);
                    let runs = runs_in(&graph, &directory);
                    return Ok(Call::Kustomize(self.roots.len() - 1, directory, arguments, variables, runs));
                }
                let runs = shared.as_ref().is_ok_and(|graph| runs_in(graph, &directory));
                Ok(Call::Kustomize(0, directory, arguments, variables, runs))
            };
            let call = subject.and_then(|subject| subject.map(&mut write).transpose());
            self.calls.push(call);
        }
        Ok(self)
    }

    /// Writes subjects of a tree that need nothing else; with `whole` among all files of the tree.
    pub(crate) fn closed(
        survey: &Survey,
        subjects: Vec<Result<Option<Subject>, Failures>>,
        kustomize: Option<&Path>,
        (config, more): (&Config, &[String]),
        here: Option<&LocalRepo>,
        whole: bool,
    ) -> Result<Written> {
        let reach = |program: &Program, tree: &SharedTree, directories: &[String]| {
            let is_known = Rc::ptr_eq(tree, &survey.tree());
            let graph = if is_known { survey.read(directories) } else { explore(tree.clone(), directories) }.graph;
            unrunnable(&graph, more, program).map_or(Ok(graph), |(_, reason)| Err(Failure::new(reason).into()))
        };
        let written = Written { whole, ..Written::by_program(kustomize, config, more, here)? };
        written.with(&survey.tree(), false, subjects, reach)
    }

    /// Returns why a cluster may get something else than one of the subjects is built to; none where that is not so.
    pub(crate) fn asks(&self, subject: usize) -> Option<&str> {
        match &self.calls[subject] {
            Ok(Some(Call::Helm(.., asks))) => asks.as_deref(),
            _ => None,
        }
    }

    /// Returns whether kustomize runs what need not give the same again for one of the subjects.
    pub(crate) fn runs(&self, subject: usize) -> bool {
        matches!(self.calls[subject], Ok(Some(Call::Kustomize(.., true))))
    }

    /// Builds one of the subjects, and returns what kustomize or helm wrote, with what its engine fills in; to compare and to
    /// read objects in it.
    pub(crate) fn build(&self, subject: usize) -> Result<Vec<u8>, Failures> {
        self.output(subject, Wants::Objects)
    }

    /// Does the same, to the byte.
    pub(crate) fn bytes(&self, subject: usize) -> Result<Vec<u8>, Failures> {
        self.output(subject, Wants::Bytes)
    }

    fn output(&self, subject: usize, wants: Wants) -> Result<Vec<u8>, Failures> {
        let call = self.calls[subject].as_ref().map_err(Failures::clone)?;
        match call {
            None => Ok(Vec::new()),
            Some(Call::Known(output)) => Ok(output.clone()),
            Some(Call::Kustomize(at, directory, arguments, variables, _)) => {
                let arguments = [&**arguments, &self.more].concat();
                self.roots[*at].build(&self.program, directory, &arguments, variables, wants)
            }
            Some(Call::Helm(helm, at, directory, arguments, _)) => {
                let render = || self.roots[*at].build(helm, directory, arguments, &Variables::default(), wants);
                let output = render()?;
                if render()? != output {
                    return Err(Failure::new("its chart renders to something else each time").into());
                }
                Ok(output)
            }
        }
    }
}

fn runs_in(graph: &Graph, directory: &str) -> bool {
    graph.root_in(0, directory).is_some_and(|root| runs(graph, root))
}

/// Returns what says why a root is not built, if it is not: something that it reaches stays remote, or it is too much.
fn refusal(graph: &Graph) -> impl Fn(&str) -> Option<Failure> {
    let loads = graph.loads();
    move |directory| {
        let root = graph.root_in(0, directory)?;
        if loads[root] > LOADS.most as u64 {
            return Some(LOADS.exceeded(&graph.label(graph.roots[root].file)));
        }
        let too_large = graph.reach([root], |_, _, _| true).into_iter().find_map(|root| graph.too_large(root));
        let left = || plan::reached_left(graph, root).map(|reason| Failure::new(reason).because(FailureKind::Left));
        let outside = || {
            let why = inputs::outside(graph, root).unwrap_or_else(|failure| Some(failure.message))?;
            Some(Failure::new(why).hint("put a copy of it there").because(FailureKind::NotBuilt))
        };
        too_large.or_else(left).or_else(outside)
    }
}

/// Builds what engines make of a tree, side by side, without anything else.
pub(crate) fn build_all(
    survey: &Survey,
    all: &[&Generated],
    config: &Config,
    here: &LocalRepo,
) -> Vec<Result<Vec<u8>, Failures>> {
    if all.is_empty() {
        return Vec::new();
    }
    let tree = survey.tree();
    let subjects = all.iter().map(|made| Ok(Some(Subject::made(tree.clone(), made)))).collect();
    match Written::closed(survey, subjects, None, (config, &[]), Some(here), false) {
        Ok(written) => side_by_side(all, processors(), |number, _| written.build(number)),
        Err(failure) => all.iter().map(|_| Err(failure.clone().into())).collect(),
    }
}
