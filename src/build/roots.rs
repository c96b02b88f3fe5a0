//! Roots on disk, each with the inputs that a walk has found.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::disk::{self, Layout, Pool};
use super::inputs::{self, TREES};
use super::memory::OutputForm;
use super::program::{Program, Tool};
use super::run::{BuildFiles, BuildOutput, BuildRun, RootDir};
use super::{missing_flag, unread_file, unread_reference};
use crate::graph::{FileId, Graph, RootId, ScopedTree, Trouble};
use crate::kustomization::{FILE_NAMES, NoteKind, Runs};
use crate::message::failure::{Failure, FailureKind, Failures, Result};
use crate::os::interrupt::unusable;
use crate::os::limits::LOADS;
use crate::plan::{ComparedRoot, Plan, first_missing};
use crate::targets::chart;
use crate::targets::generated::ANY_FILE;
use crate::tree::{SharedTree, path};

/// The result of a build.
pub(crate) type Built = Result<BuildOutput, Unbuilt>;

/// Why nothing was built.
#[derive(Debug, Clone)]
pub(crate) enum Unbuilt {
    /// No build was tried: it would lack something.
    Skipped(Failure),
    /// The program failed, or refused the root: the reason, on one line.
    Failed(String),
    /// Its engine refuses the output: why.
    Refused(String),
    /// The program made requests that no reference names: a message for each.
    Unread(BTreeSet<String>),
    /// Whether it builds is not known.
    Unknown(Failures),
}

impl Unbuilt {
    /// The requests of a build that were refused; `None` if it made none.
    pub(super) fn unread(build: &BuildOutput, by: &Program) -> Option<Unbuilt> {
        let messages = build.refused.iter().map(|call| unread_reference(by.kind.name(), call));
        (!build.refused.is_empty()).then(|| Unbuilt::Unread(messages.collect()))
    }
}

impl From<Failure> for Unbuilt {
    fn from(failure: Failure) -> Self {
        Unbuilt::Unknown(failure.into())
    }
}

/// The failures that a command reports if it needs the output.
impl From<Unbuilt> for Failures {
    fn from(unbuilt: Unbuilt) -> Self {
        match unbuilt {
            // Its kind was set where it was skipped.
            Unbuilt::Skipped(failure) => failure.into(),
            Unbuilt::Failed(reason) | Unbuilt::Refused(reason) => {
                let hint = missing_flag(&reason);
                Failure::new(reason).because(FailureKind::NotBuilt).hints(hint).into()
            }
            Unbuilt::Unread(messages) => Failures(
                messages
                    .into_iter()
                    .map(|message: String| {
                        let failure = Failure::new(message).because(FailureKind::UnreadReference);
                        failure.hint("git kustomize-localize explain unread-reference")
                    })
                    .collect(),
            ),
            Unbuilt::Unknown(failures) => failures,
        }
    }
}

/// Why roots of a graph are not built, known before any build.
pub(super) struct Refusals<'a> {
    graph: &'a Graph,
    /// References that could not be followed, which prevent the build.
    troubles: &'a [Trouble],
    /// The roots whose builds load too many.
    overloaded: BTreeSet<RootId>,
    /// The roots that name files whose aliases stand for too much.
    exploding: BTreeMap<RootId, Failure>,
    /// The roots that name programs which do not run as they should, and why.
    unrunnable: BTreeMap<RootId, String>,
}

impl<'a> Refusals<'a> {
    /// Prepares to ask about the roots of a graph.
    pub(super) fn of(
        graph: &'a Graph,
        troubles: &'a [Trouble],
        arguments: &[String],
        program: &Program,
    ) -> Refusals<'a> {
        let (overloaded, exploding) = (graph.overloaded(), graph.exploding());
        Refusals { graph, troubles, overloaded, exploding, unrunnable: unrunnable(graph, arguments, program) }
    }

    /// Why a root is not built; `None` if a build can be tried.
    pub(super) fn of_root(&self, root: RootId) -> Option<Unbuilt> {
        let graph = self.graph;
        let reached = graph.reachable([root]);
        // Failures of all kinds are reported at once, and make the result unknown.
        let troubles = self.troubles.iter().filter(|trouble| graph.belongs_to(trouble.at, &reached));
        let mut failures: Vec<Failure> = troubles.map(|trouble| trouble.failure.clone()).collect();
        failures.dedup();
        // The count of the root includes all that it reaches.
        if self.overloaded.contains(&root) {
            failures.push(LOADS.exceeded(&graph.label(graph.roots[root].file)));
        }
        failures.extend(reached.iter().find_map(|root| graph.too_large(*root)));
        failures.extend(reached.iter().find_map(|root| self.exploding.get(root).cloned()));
        if !failures.is_empty() {
            return Some(Unbuilt::Unknown(Failures(failures)));
        }
        // Exceptions come after the failures: a root with a failure is unknown even if an exception covers something
        // else.
        if let Some(reason) = first_missing(graph, &reached) {
            return Some(Unbuilt::Skipped(Failure::new(reason).because(FailureKind::Left)));
        }
        match inputs::outside_reason(graph, &reached).transpose() {
            None => {}
            Some(Ok(why)) => {
                let failure = Failure::new(why).hint("put a copy of it there").because(FailureKind::NotBuilt);
                return Some(Unbuilt::Skipped(failure));
            }
            Some(Err(failure)) => return Some(failure.into()),
        }
        // The program itself would skip these in silence, or run a program of this machine for remote input.
        reached.iter().find_map(|root| self.unrunnable.get(root).cloned()).map(Unbuilt::Failed)
    }
}

/// The roots that name programs which kustomize would skip, or programs of this machine that remote input must not run,
/// each with the reason.
fn unrunnable(graph: &Graph, arguments: &[String], program: &Program) -> BTreeMap<RootId, String> {
    let programs = graph.notes.iter().filter_map(|noted| match &noted.note.kind {
        NoteKind::Code { runs: Runs::Program(path), .. } => Some((noted, path)),
        _ => None,
    });
    let has_flag =
        |name: &str| arguments.iter().any(|argument| *argument == name || *argument == format!("{name}=true"));
    // Without this flag kustomize runs no function, and fails with a message of its own.
    if !has_flag("--enable-alpha-plugins") {
        return BTreeMap::new();
    }
    // Without `--enable-exec`, which kubectl does not have, kustomize leaves programs out.
    if !has_flag("--enable-exec") || program.kind != Tool::Kustomize {
        let reason = "kustomize silently skips exec functions; to run them (this runs their code): \
                        --build-arg=--enable-exec, with kustomize";
        return programs.map(|(noted, _)| (noted.root, reason.to_owned())).collect();
    }
    // An upstream that chooses a program of this machine chooses its arguments, too. Its own programs cannot
    // run: they are written without the execute bit, unless they are trusted.
    let chosen = programs.filter(|(noted, path)| !path.contains('/') && graph.is_fetched(noted.file));
    let mut reasons = BTreeMap::new();
    for (noted, path) in chosen {
        // The first program of a root is the reason.
        reasons.entry(noted.root).or_insert_with(|| {
            let label = graph.label(noted.file);
            format!("{label} runs the local program `{path}`, which cannot be trusted with remote input")
        });
    }
    reasons
}

/// How the files of a graph are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Writing<'a> {
    /// Whether they are those of a commit, which are read as a checkout gives them.
    pub(super) checks_out: bool,
    /// The fetched files that may be run; `None` if none may.
    pub(super) trusted: Option<&'a HashSet<FileId>>,
    /// Whether nothing is asked of an upstream, whatever the proxy of this machine can stand in for.
    pub(super) offline: bool,
    /// The name of the directory that they are written to.
    pub(super) name: &'a str,
}

impl Writing<'_> {
    /// Files that no commit has, for builds without a network.
    pub(super) const INPUT: Writing<'static> =
        Writing { checks_out: false, trusted: None, offline: true, name: "input" };
}

/// Roots on disk by their directories, or why they are not built.
pub(super) type RootDirs = BTreeMap<String, Result<RootDir, Unbuilt>>;

/// Roots on disk.
pub(super) struct Roots {
    pub(super) files: Arc<BuildFiles>,
    pub(super) dirs: RootDirs,
}

impl Roots {
    /// Writes the inputs of roots of a graph. Each is given by its directory from the scope, with `None` if the
    /// directory holds no root, or why the root is not built.
    pub(super) fn write(
        graph: &Graph,
        roots: BTreeMap<String, Result<Option<RootId>, Unbuilt>>,
        writing: Writing<'_>,
        pool: &mut Pool,
    ) -> Result<Roots> {
        let files = Arc::new(BuildFiles::of(graph, writing)?);
        let existing =
            roots.values().enumerate().filter_map(|(number, root)| Some((number, root.as_ref().ok()?.as_ref()?)));
        let existing: Vec<(usize, RootId)> = existing.map(|(number, root)| (number, *root)).collect();
        let mut layouts = inputs::lay_out(graph, existing, writing, &files.input, pool)?;
        let (source, mut dirs) = (&graph.sources[0], BTreeMap::new());
        for (number, (directory, root)) in roots.into_iter().enumerate() {
            let top = inputs::tree_dir(graph, number, &files.input);
            if let Ok(None) = &root {
                // kustomize gets the files with the names of kustomizations, and reports why the directory is not a
                // root. Only a tree without a scope has such directories, so the names are paths of the tree.
                fs::create_dir_all(&top).map_err(unusable)?;
                let names = FILE_NAMES.map(|name| path::join(&directory, name));
                disk::write_temporary(&*source.tree, names, None, &top)?;
            }
            let dir = root.map(|root| {
                let reached = graph.reachable(root);
                // A generator may run in any root on the way.
                let runs = reached.iter().any(|root| graph.runs(*root));
                let (files, directory, top) = (files.clone(), directory.clone(), top.join(&source.scope));
                let layout = layouts.remove(&number).map(Arc::new);
                RootDir {
                    files,
                    layout,
                    top,
                    directory,
                    runs,
                    reads_outside: !reached.is_disjoint(&graph.roots_reading_outside),
                }
            });
            dirs.insert(directory, dir);
        }
        Ok(Roots { files, dirs })
    }

    /// Writes a copy as [`inputs::write_copy`] does, and returns its roots.
    pub(super) fn of_copy(plan: &Plan, into: &str, checkout: Option<&SharedTree>) -> Result<Roots> {
        let writing = Writing { checks_out: checkout.is_some(), name: "localized", ..Writing::INPUT };
        let files = Arc::new(BuildFiles::of(&plan.after, writing)?);
        let tree = files.input.join(TREES);
        inputs::write_copy(plan, into, checkout, &tree)?;
        let runs = plan.after.root_ids().any(|root| plan.after.runs(root));
        // `reads_outside` is false, because the root of the original tells that for both sides.
        let dirs = plan.affected.iter().map(|ComparedRoot { localized, .. }| {
            let (files, top, directory) = (files.clone(), tree.join(into), localized.clone());
            (localized.clone(), Ok(RootDir { files, layout: None, top, directory, runs, reads_outside: false }))
        });
        Ok(Roots { dirs: dirs.collect(), files })
    }

    /// Whether the root in a directory reaches one that names a file outside of its own directory.
    pub(super) fn reads_outside(&self, directory: &str) -> bool {
        matches!(self.dirs.get(directory), Some(Ok(RootDir { reads_outside: true, .. })))
    }
}

/// Writes a chart with everything that links in it lead to, and values beside it. Returns also the files with the
/// values.
pub(super) fn write_chart(
    tree: &SharedTree,
    directory: &str,
    values: &[Vec<u8>],
    pool: &mut Pool,
) -> Result<(RootDir, Vec<PathBuf>)> {
    let files = Arc::new(BuildFiles::of(&Graph::default(), Writing::INPUT)?);
    let (top, beside) = (files.input.join(TREES), files.input.join("values"));
    let mut layout = Layout::new(&top);
    layout.add(&**tree, chart::file_paths(&**tree, directory)?, None, pool)?;
    fs::create_dir_all(&beside).map_err(unusable)?;
    let mut written = Vec::new();
    for (number, text) in values.iter().enumerate() {
        written.push(beside.join(format!("{number}.yaml")));
        fs::write(&written[number], text).map_err(unusable)?;
    }
    let layout = Some(Arc::new(layout));
    // A template need not give the same again, so helm `runs`. Only kustomize asks whether a root leaves its directory.
    Ok((RootDir { files, layout, top, directory: directory.to_owned(), runs: true, reads_outside: false }, written))
}

impl BuildRun {
    /// Builds, and turns each way in which a build fails into its reason.
    pub(super) fn build(&self, form: OutputForm) -> Built {
        let build = self.output(form)?;
        // A refused request comes first: it may be why the program fails, and is a finding also if it does not.
        if let Some(unread) = Unbuilt::unread(&build, &self.program) {
            return Err(unread);
        }
        if !build.success {
            return Err(Unbuilt::Failed(build.reason()));
        }
        if let Some(reason) = build.problems.refusal() {
            return Err(Unbuilt::Refused(reason));
        }
        if let Some(reason) = build.problems.unknown() {
            return Err(Failure::new(reason).because(FailureKind::NotKnown).into());
        }
        Ok(build)
    }

    /// Builds a root that failed for a `reason` once more, among all files of its tree and without the load restrictor.
    /// Returns the messages of an [`Unbuilt::Unread`]: if it builds now, one about the file that no walk has found; if
    /// it makes requests that no reference names, one for each. `None` if the first failure remains.
    pub(super) fn retry_among_all(&self, source: &ScopedTree, reason: &str) -> Result<Option<BTreeSet<String>>> {
        // A fetched tree has only the files that the walk knows.
        if source.repository.is_some() {
            return Ok(None);
        }
        // All roots share one copy of the tree.
        let RootDir { files, reads_outside, .. } = &self.root;
        let whole = files.input.join("whole");
        let top = whole.join(&source.scope);
        // If the first build had the load restrictor, and the root names a file outside of itself, success proves
        // nothing: the restrictor may have been all that was wrong.
        let is_proof = !reads_outside || self.arguments.iter().any(|argument| argument == ANY_FILE);
        // Only whether it builds counts, so no second build tests its output (`runs`). A failure is remembered by the
        // `known` inputs; a success is not, because it has read other files, too.
        let run = BuildRun {
            root: RootDir { top: top.clone(), layout: None, runs: false, ..self.root.clone() },
            arguments: [&*self.arguments, &[ANY_FILE.to_owned()]].concat(),
            known: Some(self.root.clone()),
            ..self.clone()
        };
        if !run.is_remembered()? {
            if !whole.exists() {
                inputs::write_scope(source, files.checks_out, &whole)?;
            }
            // The known inputs are added: the tree does not have the charts that were pulled.
            disk::copy(self.root.on_disk()?, &top)?;
        }
        match run.build(OutputForm::Objects) {
            Ok(_) if is_proof => Ok(Some([unread_file(reason)].into())),
            // It builds, which proves nothing; or it fails among all files as well, so no missing file was the reason;
            // or its engine refuses the output, or nobody knows that here. The first failure remains.
            Ok(_) | Err(Unbuilt::Failed(_) | Unbuilt::Refused(_) | Unbuilt::Skipped(_)) => Ok(None),
            Err(Unbuilt::Unknown(failures)) if failures.are_all(FailureKind::NotKnown) => Ok(None),
            Err(Unbuilt::Unread(messages)) => Ok(Some(messages)),
            Err(Unbuilt::Unknown(Failures(failures))) => failures.into_iter().next().map_or(Ok(None), Err),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::build::program;
    use crate::graph;
    use crate::targets::variables::Variables;
    use crate::tree::overlay::OverlayTree;

    #[test]
    fn a_flag_that_a_build_lacks_is_named() {
        for (reason, flag) in [("must specify --enable-helm", Some("--build-arg=--enable-helm")), ("x", None)] {
            let failures = Failures::from(Unbuilt::Failed(reason.to_owned()));
            let hints = &failures.0[0].hints;
            assert_eq!(hints.first().and_then(|hint| hint.split(' ').next_back()), flag, "{hints:?}");
        }
    }

    fn tree(files: &[(&str, &str)], links: &[(&str, &str)]) -> OverlayTree {
        let mut tree = OverlayTree::default();
        files.iter().for_each(|(path, text)| tree.add_file(path, text.as_bytes()));
        links.iter().for_each(|(path, target)| tree.link(path, target));
        tree
    }

    #[test]
    #[cfg(unix)]
    fn what_several_roots_read_is_on_disk_once() {
        use std::os::unix::fs::MetadataExt as _;

        let files = [
            ("a/kustomization.yaml", "resources: [../base]\n"),
            ("b/kustomization.yaml", "resources: [../base]\nnamePrefix: b-\n"),
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("base/map.yaml", "kind: ConfigMap\n"),
        ];
        let graph = graph::inputs::explore(Rc::new(tree(&files, &[])), &["a", "b"].map(str::to_owned)).graph;
        let wanted = ["a", "b"].map(|one| (one.to_owned(), Ok(graph.user_root(one)))).into();
        let roots = Roots::write(&graph, wanted, Writing::INPUT, &mut Pool::default()).unwrap();
        // Nothing is on disk before a build begins.
        assert!(!roots.files.input.join(TREES).exists());
        let file = |root: &str, path: &str| {
            let top = roots.dirs[root].as_ref().unwrap().on_disk().unwrap();
            fs::metadata(top.join(path)).map(|file| file.ino()).ok()
        };
        assert!(file("a", "base/map.yaml").is_some());
        assert_eq!(file("a", "base/map.yaml"), file("b", "base/map.yaml"));
        // Each still sees nothing else.
        assert_eq!((file("a", "b/kustomization.yaml"), file("b", "a/kustomization.yaml")), (None, None));
    }

    #[test]
    fn what_aliases_blow_up_is_not_built() {
        let bomb: String =
            (1..9).map(|i| format!("a{i}: &a{i} [{}*a{}]\n", format!("*a{}, ", i - 1).repeat(9), i - 1)).collect();
        let bomb = format!("kind: X\na0: &a0 [x]\n{bomb}");
        let files = [
            ("a/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", "resources: [x.yaml]\n"),
            ("base/x.yaml", &bomb),
            ("b/kustomization.yaml", "configMapGenerator: [{name: x, files: [x.yaml]}]\n"),
            ("b/x.yaml", &bomb),
        ];
        let graph = graph::inputs::explore(Rc::new(tree(&files, &[])), &["a", "b"].map(str::to_owned)).graph;
        let exploding: Vec<String> = graph.exploding().values().map(ToString::to_string).collect();
        assert_eq!(exploding, ["base/x.yaml:8:15: aliases stand for more than 500000 YAML nodes"]);
        let (overloaded, exploding) = (BTreeSet::new(), graph.exploding());
        let refusals = Refusals { graph: &graph, troubles: &[], overloaded, exploding, unrunnable: BTreeMap::new() };
        let is_refused = |root| refusals.of_root(graph.user_root(root).unwrap()).is_some();
        assert_eq!(["a", "b"].map(is_refused), [true, false]);
    }

    #[test]
    fn a_root_is_built_to_the_byte() {
        let Ok(Ok(program)) = program::find(None) else { return };
        let map = "apiVersion: v1\ndata:\n  text: |\n    ::debug::x\nkind: ConfigMap\nmetadata:\n  name: map\n";
        let files = [
            ("app/kustomization.yaml", "resources: [../base]\n"),
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("base/map.yaml", map),
            ("bad/kustomization.yaml", "resources: [nothing.yaml]\n"),
        ];
        let all = ["app", "bad"].map(str::to_owned);
        let graph = graph::inputs::explore(Rc::new(tree(&files, &[])), &all).graph;
        let wanted = all.iter().map(|one| (one.clone(), Ok(graph.user_root(one)))).collect();
        let roots = Roots::write(&graph, wanted, Writing::INPUT, &mut Pool::default()).unwrap();
        let build = |directory: &str| {
            let dir = roots.dirs[directory].clone()?;
            BuildRun::of(dir, &program, Vec::new(), Variables::default()).build(OutputForm::Bytes)
        };
        let app = build("app").unwrap();
        assert_eq!(String::from_utf8(app.stdout).unwrap(), map);
        let Err(Unbuilt::Failed(reason)) = build("bad") else { panic!("it builds") };
        assert!(reason.contains("nothing.yaml") && !reason.contains("/input/"), "{reason}");
    }
}
