//! Chooses the builds to run: all starting points and targets of a tree, or those that a change touches.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::builds::Wanted;
use super::consequences::{Needs, add_needs};
use super::deployed::deployed;
use super::subject::BuildSpec;
use crate::config::Config;
use crate::git::{CommitId, LocalRepo};
use crate::graph::Survey;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Result, command, nearest, short, shown};
use crate::message::position::Position;
use crate::reference::Upstream;
use crate::targets::affected::changes::Changes;
use crate::targets::affected::{AffectedTarget, Cause, DiffStatus, Sides, affected, other_builds};
use crate::targets::{Identity, ObjectRef, Target, TargetDir, TargetLocation, Unread};
use crate::tree::{Entry, Tree, path};
use crate::workspace::{Workspace, commit, from_top, merge_base};

/// The builds that were chosen.
pub(crate) struct Choices {
    pub(crate) builds: Vec<Choice>,
    /// The targets whose objects an unknown build may change.
    pub(crate) unbuilt: Vec<Target>,
    /// The needs of the new targets.
    pub(crate) needs: Needs,
    /// The files that could not be read, so that their deployments are unknown.
    pub(crate) unread: Vec<Unread>,
    /// All targets; for a change those of the new side.
    pub(crate) targets: Vec<Target>,
    /// The directories of all roots whose build can differ.
    pub(crate) differing: BTreeSet<String>,
}

/// The base of a change, and the change since.
pub(crate) struct Comparison {
    /// The merge base.
    pub(crate) base: CommitId,
    pub(crate) old: Workspace,
    pub(crate) changes: Changes,
}

impl Comparison {
    /// Compares a workspace, as a checkout has it, with the merge base of its commit, or of HEAD, and `base`.
    pub(crate) fn since(repo: &Rc<LocalRepo>, base: &str, new: &Workspace) -> Result<Comparison, Failures> {
        let head = new.files.commit().map_or_else(|| commit(repo, "HEAD"), |id| Ok(id.clone()))?;
        let base = merge_base(repo, base, Some(&head.commit))?;
        let old = Workspace::of_rev(repo.clone(), Some(&base.commit))
            .map_err(|failures: Failures| failures.context(format!("at {}", short(&base.commit))))?
            .into_checkout();
        let trees = Sides { old: old.tree.clone(), new: new.tree.clone() };
        let changes = Changes::since(repo, &base, &new.files, trees)?;
        Ok(Comparison { base, old, changes })
    }

    /// The builds that the change touches; with the arguments `only`, those that they select.
    pub(crate) fn choices(&self, repo: &Rc<LocalRepo>, new: &Workspace, only: &[String]) -> Result<Choices, Failures> {
        let surveys = Sides { old: &**self.old.survey(), new: &**new.survey() };
        Choices::of_change(repo, &new.config, &self.changes, surveys, only)
    }
}

/// A build, and how it may differ.
pub(crate) struct Choice {
    build: ChosenBuild,
    pub(crate) status: DiffStatus,
    /// One of the differences; `None` if it was not chosen for one.
    pub(crate) cause: Option<Cause>,
    /// The changed entries of the lock that its build reads.
    pub(crate) moved: BTreeSet<Upstream>,
}

enum ChosenBuild {
    /// The root in a directory.
    Root(String),
    /// A target, as it was and as it is.
    Target(Box<Sides<Option<Target>>>),
}

impl Choices {
    /// All builds of a workspace; with the arguments `only`, those that they select. Both sides of each are this tree;
    /// `diff` may build them with two programs.
    pub(crate) fn of_workspace(
        repo: &Rc<LocalRepo>,
        workspace: &Workspace,
        only: &[String],
    ) -> Result<Choices, Failures> {
        let (config, tree) = (&workspace.config, &*workspace.tree);
        // The files of all builds must be the same in each clone, so the remotes of this one do not count.
        let deployed = deployed(repo, workspace.survey(), config, &|| Identity::of_any_clone(repo, config))?;
        // An argument that names nothing fails before the chosen builds are run.
        let arguments = Argument::read_all(repo, &[tree], &deployed.targets.targets, only)?;
        let others = other_builds(tree, config, &deployed)?;
        let known = deployed.explored.graph.user_roots();
        let targets = deployed.targets.targets;
        // The status only says that a build is on both sides.
        let mut all: Vec<Choice> = targets.iter().cloned().map(Choice::of_target).collect();
        all.extend(others.roots.into_iter().map(|root| Choice::of_root(root, DiffStatus::Changed, None)));
        let builds = requested(all, &arguments, |directory| {
            known.contains_key(directory).then(|| Choice::of_root(directory.to_owned(), DiffStatus::Changed, None))
        });
        Ok(Choices {
            builds,
            // Also targets that `only` does not select: the callers report them, or keep their files.
            unbuilt: targets.iter().filter(|target| target.changed_by.is_some()).cloned().collect(),
            needs: needs_of(&targets),
            unread: others.unread,
            targets,
            // Two programs may build any root differently.
            differing: known.into_keys().map(str::to_owned).collect(),
        })
    }

    /// Takes out the targets that [no build of this tree has](Target::elsewhere), and returns those that still exist.
    pub(crate) fn take_elsewhere(&mut self) -> Vec<Target> {
        let elsewhere = self.builds.extract_if(.., |choice| choice.is_elsewhere());
        elsewhere.filter_map(|choice| choice.targets().new.cloned()).collect()
    }

    /// The builds that a change touches; with the arguments `only`, those that they select.
    pub(crate) fn of_change(
        repo: &Rc<LocalRepo>,
        config: &Config,
        changes: &Changes,
        surveys: Sides<&Survey>,
        only: &[String],
    ) -> Result<Choices, Failures> {
        let identity = || Identity::of(repo, config);
        let deployed = surveys.try_map(|survey| deployed(repo, survey, config, &identity))?;
        // A build counts if its inputs differ between the sides.
        let affected = affected(changes, config, deployed.as_ref())?;
        let graphs = deployed.as_ref().map(|side| &side.explored.graph);
        let Sides { old: old_targets, new: targets } = deployed.as_ref().map(|side| side.targets.targets.clone());
        // An argument may name something that only one side has.
        let trees: [&dyn Tree; 2] = [&*changes.trees.new, &*changes.trees.old];
        let arguments = Argument::read_all(repo, &trees, &[old_targets, targets.clone()].concat(), only)?;
        let mut all: Vec<Choice> = affected.targets.into_iter().map(Choice::of_affected).collect();
        let roots = affected.roots.into_iter();
        all.extend(roots.map(|root| Choice::of_root(root.directory, root.status, Some(root.cause))));
        // `all` lacks bases, which are built only as a part of others, unless an argument names them.
        let mut builds = requested(all, &arguments, |directory| {
            let Sides { old, new } = graphs.map(|graph| graph.user_root(directory));
            let status = match (old, new) {
                (Some(_), Some(_)) => DiffStatus::Changed,
                (None, Some(_)) => DiffStatus::Added,
                (Some(_), None) => DiffStatus::Removed,
                (None, None) => return None,
            };
            let differs = affected.directories.contains(directory);
            let cause = Some(Cause::Path(directory.to_owned()));
            differs.then(|| Choice::of_root(directory.to_owned(), status, cause))
        });
        // For the summary, which says for each upstream how many builds its change touches.
        let (user_roots, mut sources_of_roots) = (graphs.new.user_roots(), HashMap::new());
        for choice in &mut builds {
            let roots = choice.built_roots().filter_map(|directory| user_roots.get(directory).copied());
            choice.moved = changes.changed_sources_below(graphs.new, roots, &mut sources_of_roots)?;
        }
        let builds = with_all_sources(builds, &targets);
        let (unbuilt, unread, differing) = (affected.unbuilt, affected.unread, affected.directories);
        Ok(Choices { builds, unbuilt, needs: needs_of(&targets), unread, targets, differing })
    }
}

/// The needs of the objects of targets.
fn needs_of(targets: &[Target]) -> Needs {
    let mut needed = Needs::new();
    targets.iter().for_each(|target| add_needs(target.manifest.as_bytes(), &mut needed));
    needed
}

/// The builds that the arguments select among `all`; without an argument all of them. Roots that a target deploys are
/// dropped. A directory that an argument names but `all` lacks may be a base: `base` gives its build, or `None`.
fn requested(mut all: Vec<Choice>, arguments: &[Argument<'_>], base: impl Fn(&str) -> Option<Choice>) -> Vec<Choice> {
    // A root that a target deploys is built as that target.
    let targets = all.iter().filter(|choice| matches!(choice.build, ChosenBuild::Target(_)));
    let deployed: HashSet<String> = targets.flat_map(Choice::built_roots).map(str::to_owned).collect();
    all.retain(|choice| choice.directory().is_none_or(|directory| !deployed.contains(directory)));
    if !arguments.is_empty() {
        // The sources of an application are compared as one, so an argument that selects one of them selects all.
        let is_selected = |number: &usize| arguments.iter().any(|argument| argument.selects(&all[*number]));
        let applications = group_sources(all.iter().map(Choice::targets)).into_iter();
        let selected: HashSet<usize> =
            applications.filter(|sources| sources.iter().any(is_selected)).flatten().collect();
        let all_selected = all.into_iter().enumerate().filter(|(number, _)| selected.contains(number));
        all = all_selected.map(|(_, choice)| choice).collect();
    }
    let chosen: HashSet<String> = all.iter().filter_map(Choice::directory).map(str::to_owned).collect();
    // A root that an argument names is built, too, although other roots name it.
    let named = arguments.iter().filter_map(|argument| argument.path.as_deref());
    let missing = named.filter(|directory| !deployed.contains(*directory) && !chosen.contains(*directory));
    all.extend(missing.filter_map(base));
    all
}

/// The chosen builds, and the sources of their applications that the change does not touch: the output of an
/// application has the objects of all its sources.
pub(super) fn with_all_sources(mut chosen: Vec<Choice>, targets: &[Target]) -> Vec<Choice> {
    let built = chosen.iter().filter_map(|choice| choice.targets().new);
    // The applications of a set have one location, so only their objects tell them apart.
    let (objects, sources): (HashSet<&ObjectRef>, HashSet<(&ObjectRef, Position)>) =
        built.map(|target| (&target.object, (&target.object, target.spot))).unzip();
    let others = targets
        .iter()
        .filter(|target| objects.contains(&target.object) && !sources.contains(&(&target.object, target.spot)));
    let others: Vec<Choice> = others.cloned().map(Choice::of_target).collect();
    // No build of this tree has the objects of a source that is elsewhere.
    chosen.extend(others.into_iter().filter(|choice| !choice.is_elsewhere()));
    chosen
}

/// The numbers of the targets that are compared as one: the sources of an application, in its order, and each other
/// target or root by itself.
pub(crate) fn group_sources<'a>(targets: impl Iterator<Item = Sides<Option<&'a Target>>>) -> Vec<Vec<usize>> {
    let mut known: HashMap<Sides<Option<&ObjectRef>>, usize> = HashMap::new();
    let mut all: Vec<Vec<(Option<Position>, usize)>> = Vec::new();
    for (number, target) in targets.enumerate() {
        let Sides { old, new } = target.map(|target| target.map(|target| &target.object));
        // The sources of an application share its old object, its new one, or both, so each object is a key of the
        // group. A source that is gone has only the old object. The old object is not equal to the new one if the
        // application moves to another line.
        let objects = [Sides { old, new: None }, Sides { old: None, new }];
        let objects = objects.into_iter().filter(|object| *object != Sides::default());
        // Targets of the new tree come first, so a source that is gone finds the group of the sources that remain.
        let group = objects.clone().find_map(|object| known.get(&object).copied()).unwrap_or(all.len());
        known.extend(objects.map(|object| (object, group)));
        if group == all.len() {
            all.push(Vec::new());
        }
        all[group].push((target.newest().map(|target| target.spot), number));
    }
    all.iter_mut().for_each(|sources| sources.sort_unstable());
    all.into_iter().map(|sources| sources.into_iter().map(|(_, number)| number).collect()).collect()
}

impl Choice {
    /// The build of a root, with the way in which it differs.
    fn of_root(directory: String, status: DiffStatus, cause: Option<Cause>) -> Choice {
        Choice { build: ChosenBuild::Root(directory), status, cause, moved: BTreeSet::new() }
    }

    /// A target that is the same on both sides.
    pub(super) fn of_target(target: Target) -> Choice {
        let build = ChosenBuild::Target(Box::new(Sides { old: Some(target.clone()), new: Some(target) }));
        // The status says that it is on both sides, not that it differs.
        Choice { build, status: DiffStatus::Changed, cause: None, moved: BTreeSet::new() }
    }

    /// The build of a target that a change touches, on both sides.
    fn of_affected(affected: AffectedTarget) -> Choice {
        let sides = affected.sides().map(Option::<&Target>::cloned);
        let AffectedTarget { status, cause, .. } = affected;
        Choice { build: ChosenBuild::Target(Box::new(sides)), status, cause: Some(cause), moved: BTreeSet::new() }
    }

    /// The directory of a root; `None` for a target.
    fn directory(&self) -> Option<&str> {
        match &self.build {
            ChosenBuild::Root(directory) => Some(directory),
            ChosenBuild::Target(_) => None,
        }
    }

    /// The directories of the roots that are built as it is.
    fn built_roots(&self) -> impl Iterator<Item = &str> {
        let target = self.targets().new.and_then(|target| Some((target, target.local_dir()?)));
        self.directory().into_iter().chain(target.into_iter().flat_map(|(target, dir)| target.roots(dir)))
    }

    /// Its name, and the build that made it.
    pub(crate) fn name(&self) -> String {
        let title = self.title();
        self.built_by().map_or(title.clone(), |by| format!("{title}, built by {by}"))
    }

    /// The name without the build that made its object.
    pub(crate) fn title(&self) -> String {
        match &self.build {
            ChosenBuild::Root(directory) => path::shown(directory).to_owned(),
            ChosenBuild::Target(_) => self.target().map_or(String::new(), Target::title),
        }
    }

    /// The name of the set that generates the target; `None` if there is none.
    pub(crate) fn set(&self) -> Option<String> {
        self.target()?.object.set_text()
    }

    /// The target as it is, or was.
    fn target(&self) -> Option<&Target> {
        self.targets().newest()
    }

    /// The old and the new target; `None` for a root.
    pub(crate) fn targets(&self) -> Sides<Option<&Target>> {
        match &self.build {
            ChosenBuild::Root(_) => Sides::default(),
            ChosenBuild::Target(sides) => sides.as_ref().as_ref().map(Option::as_ref),
        }
    }

    /// The build that made the object of the target; `None` if it is as written.
    pub(crate) fn built_by(&self) -> Option<String> {
        self.target()?.object.built_by.clone()
    }

    /// Whether no build of this tree has the objects of the target.
    pub(super) fn is_elsewhere(&self) -> bool {
        self.target().is_some_and(|target| target.elsewhere().is_some())
    }

    /// The directory of each side of the target that may be built here; `None` for a root.
    fn local_dirs(&self) -> Sides<Option<(&Target, &TargetDir)>> {
        self.targets().map(|target| Some((target?, target?.local_dir()?)))
    }

    /// The directories of the roots that the engine builds on each side; for a root its own directory. Roots that the
    /// engine only lists in a kustomization which it generates are [scanned](Self::scanned).
    pub(super) fn outer_roots(&self) -> Sides<Vec<String>> {
        if let ChosenBuild::Root(directory) = &self.build {
            return self.exists().map(|exists| if exists { vec![directory.clone()] } else { Vec::new() });
        }
        let is_generated =
            |dir: &TargetDir, root: &str| dir.scanned.iter().any(|resource| resource.is_root && resource.path == root);
        self.local_dirs().map(|side| {
            let roots = side.into_iter().flat_map(|(target, dir)| target.roots(dir).map(move |root| (dir, root)));
            roots.filter(|(dir, root)| !is_generated(dir, root)).map(|(_, root)| root.to_owned()).collect()
        })
    }

    /// The roots and files that Flux lists on each side, in the kustomization that it generates if it finds none.
    pub(super) fn scanned(&self) -> Sides<Vec<String>> {
        self.local_dirs().map(|side| {
            let scanned = side.into_iter().flat_map(|(_, dir)| &dir.scanned);
            scanned.map(|resource| resource.path.clone()).collect()
        })
    }

    /// The sides that have it, but no root or file of this tree from which it is built: nothing tells its objects.
    pub(super) fn without_parts(&self) -> Sides<bool> {
        let parts = self.outer_roots().zip(self.scanned());
        self.exists().zip(parts).map(|(exists, (tops, scanned))| exists && tops.is_empty() && scanned.is_empty())
    }

    /// Whether it is a target that its engine builds in another way now.
    pub(super) fn is_built_otherwise(&self) -> bool {
        let Sides { old, new } = self.targets();
        old.zip(new).is_some_and(|(old, new)| old.build != new.build)
    }

    /// Whether each side has it.
    fn exists(&self) -> Sides<bool> {
        match &self.build {
            ChosenBuild::Root(_) => {
                Sides { old: self.status != DiffStatus::Added, new: self.status != DiffStatus::Removed }
            }
            ChosenBuild::Target(sides) => sides.as_ref().as_ref().map(Option::is_some),
        }
    }

    /// The subject of each side, which is built there; `None` if it does not exist there.
    pub(crate) fn subjects(&self, workspaces: Sides<&Workspace>) -> Sides<Wanted> {
        match &self.build {
            ChosenBuild::Root(root) => workspaces
                .zip(self.exists())
                .map(|(workspace, exists)| Ok(exists.then(|| BuildSpec::root(workspace, root)))),
            ChosenBuild::Target(_) => workspaces.zip(self.targets()).map(|(workspace, target)| {
                let build = |target| BuildSpec::deployed(&workspace.tree, &workspace.config, target);
                Ok(target.map(build).transpose()?)
            }),
        }
    }

    /// The subject as it is.
    pub(crate) fn subject(&self, workspace: &Workspace) -> Wanted {
        self.subjects(Sides { old: workspace, new: workspace }).new
    }
}

/// A PATH or TARGET of the command line.
struct Argument<'a> {
    text: &'a str,
    /// The path from the top. `None` if it cannot be one.
    path: Option<String>,
}

impl<'a> Argument<'a> {
    /// Reads arguments that select a part of the builds of a tree, or of two: the first is the new one.
    ///
    /// # Errors
    ///
    /// If no tree has such a directory or target.
    fn read_all(repo: &LocalRepo, trees: &[&dyn Tree], targets: &[Target], texts: &'a [String]) -> Result<Vec<Self>> {
        texts.iter().map(|text| Argument::read(repo, trees, targets, text)).collect()
    }

    /// Reads one argument, which names a target, or a directory of a tree with roots or targets.
    fn read(repo: &LocalRepo, trees: &[&dyn Tree], targets: &[Target], text: &'a str) -> Result<Argument<'a>> {
        // Any of the trees will do: they differ in their files, not in how a path is written. A text that is not a path
        // in the repository may still name a target.
        let path = trees.first().and_then(|tree| from_top(repo, *tree, text).ok());
        // The file of a kustomization means its directory.
        let path = path.map(|path| match path::name(&path) {
            name if FILE_NAMES.contains(&name) => path::parent(&path).to_owned(),
            _ => path,
        });
        let is_directory = |path: &String| -> Result<bool> {
            let entries = trees.iter().map(|tree| tree.entry(path)).collect::<Result<Vec<_>>>()?;
            Ok(entries.contains(&Some(Entry::Directory)))
        };
        let path = match path {
            Some(path) if is_directory(&path)? => Some(path),
            _ => None,
        };
        let argument = Argument { text, path };
        // With an argument that selects nothing, the change would look as if it had no consequences.
        if !targets.iter().any(|target| argument.selects_target(target)) && !argument.has_kustomization(trees)? {
            let failure = unknown_target(targets, text);
            // In a comparison of two trees it may have been meant as the commit to compare with.
            let may_be_commit = trees.len() > 1 && argument.path.is_none();
            let fetch = may_be_commit.then(|| command("git fetch origin", [text]));
            return Err(failure.hints(fetch.map(|fetch| format!("to compare with a commit, fetch it first: {fetch}"))));
        }
        Ok(argument)
    }

    /// Whether a kustomization of a tree is in its directory.
    fn has_kustomization(&self, trees: &[&dyn Tree]) -> Result<bool> {
        let files = trees.iter().map(|tree| tree.kustomizations()).collect::<Result<Vec<_>>>()?;
        Ok(files.iter().flat_map(|files| files.iter()).any(|file| self.contains(file)))
    }

    /// Whether a path is that of the directory, or below it.
    fn contains(&self, directory: &str) -> bool {
        self.path.as_ref().is_some_and(|path| path::is_in(directory, path))
    }

    /// Whether it selects a root, or the target as it is or was.
    fn selects(&self, choice: &Choice) -> bool {
        let Sides { old, new } = choice.targets();
        choice.directory().is_some_and(|root| self.contains(root))
            || [old, new].into_iter().flatten().any(|target| self.selects_target(target))
    }

    /// Whether it names a target, or a directory with a root that the target builds, or with the directory that the
    /// target names.
    fn selects_target(&self, target: &Target) -> bool {
        is_named_by(target, self.text)
            || matches!(&target.location, TargetLocation::Local(dir)
                if self.contains(&dir.path) || target.roots(dir).any(|root| self.contains(root)))
    }
}

/// Whether a text names a target: by the name of the object, with or without its namespace, by its file and line, or by
/// the position of one of several sources.
pub(crate) fn is_named_by(target: &Target, text: &str) -> bool {
    let object = &target.object;
    // An entry of the configuration has no name but its directory.
    let is_named = !object.is_listed() && (object.name == text || object.full_name() == text);
    is_named || location_names(target).iter().any(|name| name == text)
}

/// Names of a target by its location, the shortest first.
fn location_names(target: &Target) -> [String; 4] {
    let (file, Position { line, column }) = (&target.object.file, target.spot);
    [format!("{file}:{}", target.object.line), format!("{file}:{line}"), format!("{file}:{line}:{column}"), target.by()]
}

/// A name that means only this target, for a command line; the file and line of its object if each name also means
/// another target.
pub(crate) fn unique_name(target: &Target, all: &[Target]) -> String {
    let names = location_names(target);
    names
        .iter()
        .find(|text: &&String| all.iter().filter(|target| is_named_by(target, text)).count() == 1)
        .unwrap_or(&names[0])
        .clone()
}

/// The failure for a text that names nothing to build.
pub(crate) fn unknown_target(targets: &[Target], text: &str) -> Failure {
    let failure = Failure::new(format!("`{}` is neither a directory with a kustomization nor a target", shown(text)));
    let known = targets.iter().map(|target| &target.object);
    let known: Vec<String> = known.flat_map(|object| [object.name.clone(), object.full_name()]).collect();
    match nearest(text, known.iter().map(String::as_str)) {
        Some(meant) => failure.hint(format!("did you mean `{}`?", shown(meant))),
        None => failure.hint("list the targets: git kustomize-localize targets"),
    }
}
