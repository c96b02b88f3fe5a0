//! Chooses the builds to compare: the starting points and targets that a change touches.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::consequences::{Needs, needs};
use super::deployed::both;
use super::parts::named;
use super::subject::BuildSpec;
use crate::config::Config;
use crate::git::LocalRepo;
use crate::graph::{Graph, Survey};
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Result, command, nearest, shown};
use crate::message::position::Position;
use crate::reference::Upstream;
use crate::targets::affected::changes::Changes;
use crate::targets::affected::{AffectedRoot, AffectedTarget, Cause, DiffStatus, affected};
use crate::targets::{ObjectRef, Target, TargetLocation, Unread};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, path};
use crate::workspace::{Workspace, from_top};

/// The builds that a change touches.
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

/// A build that may differ.
pub(crate) struct Choice {
    what: What,
    pub(crate) status: DiffStatus,
    pub(crate) cause: Cause,
    /// The entries of the lock that are something else, and that it leads to.
    pub(crate) moved: BTreeSet<Upstream>,
}

enum What {
    /// The root in a directory.
    Root(String),
    /// A target, as it was and as it is.
    Target(Box<[Option<Target>; 2]>),
}

impl Choice {
    /// The builds that a change touches, if they are requested. A root that a target deploys is built as that target.
    pub(crate) fn of(
        repo: &Rc<LocalRepo>,
        config: &Config,
        changes: &Changes,
        surveys: [&Survey; 2],
        only: &[String],
    ) -> Result<Choices, Failures> {
        let [was, is] = both(repo, surveys, config)?;
        let affected = affected(changes, config, &was, &is)?;
        let mut needed = Needs::new();
        is.1.targets.iter().for_each(|target| needs(target.manifest.as_bytes(), &mut needed));
        let named = [was.1.targets, is.1.targets.clone()].concat();
        let asked =
            only.iter().map(|text| Argument::of_change(repo, changes, &named, text)).collect::<Result<Vec<_>>>()?;
        let is_asked = |is_it: &dyn Fn(&Argument<'_>) -> bool| asked.is_empty() || asked.iter().any(is_it);
        let (mut all, mut built) = (Vec::new(), HashSet::new());
        let graph = &is.0.graph;
        let known = graph.user_roots();
        let mut named = HashMap::new();
        let mut moved = |directories: &[&str]| {
            let roots = directories.iter().filter_map(|directory| known.get(directory).copied());
            changes.moved_below(graph, roots, &mut named)
        };
        for AffectedTarget { target, was, status, cause } in affected.targets {
            let there = target.local_dir().filter(|_| status != DiffStatus::Removed);
            let roots: Vec<&str> = there.iter().flat_map(|there| target.roots(there)).collect();
            let moved = moved(&roots)?;
            built.extend(roots.into_iter().map(str::to_owned));
            if is_asked(&|asked| asked.selects(&target)) {
                let both = match status {
                    DiffStatus::Removed => [Some(target), None],
                    _ => [was, Some(target)],
                };
                all.push(Choice { what: What::Target(Box::new(both)), status, cause, moved });
            }
        }
        for AffectedRoot { directory, status, cause } in affected.roots {
            if !built.contains(&directory) && is_asked(&|asked| asked.contains(&directory)) {
                let moved = moved(&[&directory])?;
                all.push(Choice { what: What::Root(directory), status, cause, moved });
            }
        }
        // A base that is named is built, too.
        for directory in asked.iter().filter_map(|asked| asked.path.as_deref()) {
            let is_root = [&was.0.graph, &is.0.graph].map(|graph| graph.user_roots().contains_key(directory));
            let is_built =
                all.iter().any(|choice: &Choice| matches!(&choice.what, What::Root(root) if root == directory));
            let status = match is_root {
                [true, true] => DiffStatus::Changed,
                [false, true] => DiffStatus::Added,
                [true, false] => DiffStatus::Removed,
                [false, false] => continue,
            };
            if affected.directories.contains(directory) && !built.contains(directory) && !is_built {
                let (cause, moved) = (Cause::Path(directory.to_owned()), moved(&[directory])?);
                all.push(Choice { what: What::Root(directory.to_owned()), status, cause, moved });
            }
        }
        let (unbuilt, unread, differing) = (affected.unbuilt, affected.unread, affected.directories);
        Ok(Choices { builds: all, unbuilt, unread, needs: needed, targets: is.1.targets, differing })
    }

    /// All requested builds of a workspace, with the same content on both sides.
    pub(crate) fn all(repo: &Rc<LocalRepo>, workspace: &Workspace, only: &[String]) -> Result<Choices, Failures> {
        // To a tree that holds nothing, everything is a change.
        let paths = workspace.tree.names("")?.into_iter().collect();
        let changes = Changes::of(Rc::new(OverlayTree::default()), workspace.tree.clone(), paths)?;
        let surveys = [&Survey::of(changes.old.clone()), &**workspace.survey()];
        let mut choices = Choice::of(repo, &workspace.config, &changes, surveys, only)?;
        choices.builds.retain(|choice| !choice.is_elsewhere());
        for Choice { what, status, .. } in &mut choices.builds {
            *status = DiffStatus::Changed;
            if let What::Target(both) = what {
                both[0] = both[1].clone();
            }
        }
        Ok(choices)
    }

    /// Its name, and the build that made it.
    pub(crate) fn name(&self) -> String {
        let title = self.title();
        self.built_by().map_or(title.clone(), |by| format!("{title}, built by {by}"))
    }

    pub(crate) fn title(&self) -> String {
        match &self.what {
            What::Root(directory) => path::shown(directory).to_owned(),
            What::Target(_) => self.target().map_or(String::new(), Target::title),
        }
    }

    /// The name of the set that generates the target; `None` if there is none.
    pub(crate) fn set(&self) -> Option<String> {
        let ObjectRef { file, line, set, .. } = &self.target()?.object;
        set.as_ref().map(|set| format!("ApplicationSet {set} ({file}:{line})"))
    }

    /// The target as it is, or was.
    fn target(&self) -> Option<&Target> {
        self.targets().into_iter().rev().flatten().next()
    }

    /// The old and the new target; `None` for a root.
    pub(crate) fn targets(&self) -> [Option<&Target>; 2] {
        match &self.what {
            What::Root(_) => [None, None],
            What::Target(both) => both.each_ref().map(Option::as_ref),
        }
    }

    /// The build that made the object of the target; `None` if it is as written.
    pub(crate) fn built_by(&self) -> Option<String> {
        self.target()?.object.built_by.clone()
    }

    /// Whether its directory is known to be in another repository or at another revision.
    fn is_elsewhere(&self) -> bool {
        let What::Target(both) = &self.what else { return false };
        both.iter()
            .flatten()
            .all(|target| target.local_dir().is_none() && !matches!(target.location, TargetLocation::Templated(_)))
    }

    /// The directories of the roots that its build is made of, as it is: each that is built with something else.
    pub(super) fn tops(&self) -> Vec<String> {
        let (target, dir) = match (&self.what, self.target().and_then(|target| Some((target, target.local_dir()?)))) {
            (What::Root(directory), _) => return vec![directory.clone()],
            (_, Some(there)) => there,
            (_, None) => return Vec::new(),
        };
        let is_generated = |root: &str| dir.scanned.iter().any(|resource| resource.is_root && resource.path == root);
        target.roots(dir).filter(|root| !is_generated(root)).map(str::to_owned).collect()
    }

    /// The directories of the roots below these.
    pub(super) fn below(&self, graph: &Graph) -> Vec<String> {
        let there = self.target().and_then(Target::local_dir);
        let generated = there.into_iter().flat_map(|dir| &dir.scanned).filter(|resource| resource.is_root);
        let named = self.tops().into_iter().flat_map(|top| named(graph, &top));
        generated.map(|resource| resource.path.clone()).chain(named).collect()
    }

    /// The subject on the old (0) or the new (1) side; `None` if it does not exist there.
    pub(crate) fn subject(&self, side: usize, workspace: &Workspace) -> Result<Option<BuildSpec>, Failures> {
        let absent = [DiffStatus::Added, DiffStatus::Removed][side];
        Ok(match &self.what {
            What::Root(directory) => (self.status != absent).then(|| BuildSpec::root(workspace, directory)),
            What::Target(both) => {
                both[side].as_ref().map(|target| BuildSpec::deployed(workspace, target)).transpose()?
            }
        })
    }
}

/// A PATH or TARGET of the command line.
struct Argument<'a> {
    text: &'a str,
    /// The path from the top. `None` if it cannot be one.
    path: Option<String>,
}

impl<'a> Argument<'a> {
    /// Reads an argument that selects a part of a change.
    ///
    /// # Errors
    ///
    /// If neither side has such a directory or target.
    fn of_change(repo: &LocalRepo, changes: &Changes, targets: &[Target], text: &'a str) -> Result<Argument<'a>> {
        let path = from_top(repo, &*changes.new, text).ok();
        let path = path.map(|path| match path::name(&path) {
            name if FILE_NAMES.contains(&name) => path::parent(&path).to_owned(),
            _ => path,
        });
        let path = match path {
            Some(path) if [changes.new.entry(&path)?, changes.old.entry(&path)?].contains(&Some(Entry::Directory)) => {
                Some(path)
            }
            _ => None,
        };
        if path.is_none() && !targets.iter().any(|target| is_meant(target, text)) {
            let fetch = format!("to compare with a commit, fetch it first: {}", command("git fetch origin", [text]));
            let is_change = !changes.old.names("")?.is_empty();
            let failure = unknown(targets, text);
            return Err(if is_change { failure.hint(fetch) } else { failure });
        }
        Ok(Argument { text, path })
    }

    /// Whether a directory is the path, or below it.
    fn contains(&self, directory: &str) -> bool {
        self.path.as_ref().is_some_and(|path| path::is_in(directory, path))
    }

    /// Whether it names a target, or a directory that contains what the target deploys.
    fn selects(&self, target: &Target) -> bool {
        is_meant(target, self.text)
            || matches!(&target.location, TargetLocation::Local(here) if self.contains(&here.path))
    }
}

/// Whether a text names a target: by the name of the object, with or without its namespace, by its file and line, or by
/// where it names one of several sources.
pub(crate) fn is_meant(target: &Target, text: &str) -> bool {
    let object = &target.object;
    object.name == text || object.full_name() == text || places(target).iter().any(|name| name == text)
}

/// Names of a target that are not directories, the shortest first.
fn places(target: &Target) -> [String; 4] {
    let (file, Position { line, column }) = (&target.object.file, target.spot);
    [format!("{file}:{}", target.object.line), format!("{file}:{line}"), format!("{file}:{line}:{column}"), target.by()]
}

/// A name that means only this target.
pub(crate) fn typed(target: &Target, all: &[Target]) -> String {
    let places = places(target);
    places
        .iter()
        .find(|text: &&String| all.iter().filter(|target| is_meant(target, text)).count() == 1)
        .unwrap_or(&places[0])
        .clone()
}

/// The failure for a text that names nothing to build.
pub(crate) fn unknown(targets: &[Target], text: &str) -> Failure {
    let failure = Failure::new(format!("`{}` is neither a directory with a kustomization nor a target", shown(text)));
    let known = targets.iter().map(|target| &target.object);
    let known: Vec<String> = known.flat_map(|object| [object.name.clone(), object.full_name()]).collect();
    match nearest(text, known.iter().map(String::as_str)) {
        Some(meant) => failure.hint(format!("did you mean `{}`?", shown(meant))),
        None => failure.hint("list the targets: git kustomize-localize targets"),
    }
}
