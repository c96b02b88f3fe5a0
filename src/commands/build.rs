//! `build`: what kustomize makes of a root, or of what is deployed, with what the lock holds.

use std::path::Path;
use std::rc::Rc;

use clap::{Args, ValueHint};

use super::localize::KustomizeArgs;
use super::output::{Done, OutputArgs, Page, print};
use super::{fetcher, fetching, targets};
use crate::build::Roots;
use crate::fetch;
use crate::graph::Source;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Result, command, nearest, shown};
use crate::plan;
use crate::targets::generated::generated;
use crate::targets::{Found, Place, Target, Targets};
use crate::tree::overlay::OverlayTree;
use crate::tree::{self, Resolved, SharedTree, Tree, path};
use crate::workspace::{Files, Workspace, from_top, repository_offline};

/// Arguments of `build`.
#[derive(Debug, Clone, Args)]
pub(super) struct BuildArgs {
    /// A directory with a kustomization, or a target: its path, FILE:LINE, NAME or NAMESPACE/NAME [default: the current
    /// directory]
    #[arg(value_name = "PATH|TARGET", value_hint = ValueHint::DirPath)]
    what: Option<String>,

    /// Build a commit [default: the working tree]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    #[command(flatten)]
    with: KustomizeArgs,
}

impl BuildArgs {
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let workspace = match &self.rev {
            Some(rev) => Workspace::of_rev(repository_offline()?, Some(rev))?,
            None => Workspace::of_working_tree(false)?,
        };
        let (tree, directory, mut arguments) = self.subject(&workspace)?;
        arguments.extend(self.with.build_arg.iter().cloned());
        let roots = roots(&workspace, tree, &directory, self.with.kustomize.as_deref(), output.quiet)?;
        print(&roots.build(&directory, &arguments)?);
        Page::of(String::new())
    }

    /// Returns the tree and the directory to build, and what its engine passes to kustomize.
    fn subject(&self, workspace: &Workspace) -> Result<(SharedTree, String, Vec<String>), Failures> {
        let repo = workspace.repo().map_or_else(repository_offline, |repo| Ok(repo.clone()))?;
        let (tree, text) = (&workspace.tree, self.what.as_deref().unwrap_or("."));
        let place = from_top(&repo, &**tree, text)?;
        let root = root_at(&**tree, &place)?;
        // What is deployed takes builds to find: not for what can only be a directory.
        let is_path = text.starts_with(['.', ':']) || text.ends_with('/');
        let is_name = !is_path && (text.matches('/').count() < 2 || text.contains(':'));
        let found = if root.is_some() && !is_name { Targets::default() } else { targets::find(&repo, tree)?.1 };
        match (root, meant(&found, text, &place).as_slice()) {
            (Some(root), []) => Ok((tree.clone(), root, Vec::new())),
            (None, [target]) => Ok(deployed(tree, target)?),
            (None, []) => Err(unknown(&found, text).into()),
            (root, all) => Err(ambiguous(text, root.is_some(), all).into()),
        }
    }
}

/// Writes a root of a tree, with everything that it reaches, from the lock and the cache alone.
fn roots(
    workspace: &Workspace,
    tree: SharedTree,
    directory: &String,
    kustomize: Option<&Path>,
    quiet: bool,
) -> Result<Roots, Failures> {
    let options = fetch::Options { locked: true, ..fetching(&workspace.config, true, quiet) };
    let locks = workspace.lock.clone().into_iter().collect();
    let mut fetcher = fetcher(workspace.repo(), options, locks, None)?;
    let source = Source { tree, ..workspace.source() };
    let directories = std::slice::from_ref(directory);
    let graph = plan::reached(workspace, source, directories, &mut fetcher).map_err(|mut failures| {
        for failure in &mut failures.0 {
            let hints = failure.hints.iter_mut().filter(|hint| hint.starts_with(fetch::ONLINE));
            hints.for_each(|hint| *hint = "bring it into the cache: git kustomize-localize lock".to_owned());
        }
        failures
    })?;
    let is_commit = matches!(workspace.files, Files::Commit { .. });
    Ok(Roots::write(&graph, graph.own_roots().into_values(), is_commit, kustomize)?)
}

/// Returns the directory of the kustomization at a path: that itself, or the directory that holds it.
fn root_at(tree: &dyn Tree, place: &str) -> Result<Option<String>> {
    let directory = if FILE_NAMES.contains(&path::name(place)) { path::parent(place) } else { place };
    Ok(match tree::resolve(tree, directory)? {
        Resolved::Directory { path } => tree::kustomization_in(tree, &path)?.map(|_| path),
        _ => None,
    })
}

/// Returns what an engine builds: its kustomization in the tree that it sees.
fn deployed(tree: &SharedTree, target: &Target) -> Result<(SharedTree, String, Vec<String>)> {
    let not_built = |why: &str| Failure::new(format!("{} cannot be built here: {why}", target.by()));
    let there = match &target.place {
        Place::Here(there) => there,
        Place::External(why) | Place::Templated(why) => return Err(not_built(why)),
    };
    let mut seen = OverlayTree::new(tree.clone());
    for place in tree.below("")? {
        if tree.entry(&place)?.is_some_and(|entry| target.hides(there, &place, entry)) {
            seen.remove(&place);
        }
    }
    let made = generated(&seen, target, there)?;
    let made = made.ok_or_else(|| match &there.found {
        Found::Nothing(why) => not_built(why),
        _ => not_built(&format!("`{}` is not for kustomize", path::shown(&there.path))),
    })?;
    seen.file(&path::join(&made.directory, made.file_name), &made.text, false);
    Ok((Rc::new(seen), made.directory, made.arguments))
}

/// Returns the targets that a text names: by the name of the object, with or without its namespace, by its file and
/// line, or by the path that is deployed.
fn meant<'a>(found: &'a Targets, text: &str, place: &str) -> Vec<&'a Target> {
    let is_meant = |target: &&Target| {
        let object = &target.object;
        object.name == text || object.full_name() == text || typed(target) == text || target.by() == text
    };
    let named: Vec<&Target> = found.targets.iter().filter(is_meant).collect();
    if !named.is_empty() {
        return named;
    }
    let is_there = |target: &&Target| matches!(&target.place, Place::Here(here) if here.path == place);
    found.targets.iter().filter(is_there).collect()
}

/// Returns what names a target whatever else there is.
fn typed(target: &Target) -> String {
    format!("{}:{}", target.object.file, target.object.line)
}

fn unknown(found: &Targets, text: &str) -> Failure {
    let failure = Failure::new(format!("`{}` is neither a directory with a kustomization nor a target", shown(text)));
    let known = found.targets.iter().map(|target| &target.object);
    let known: Vec<String> = known.flat_map(|object| [object.name.clone(), object.full_name()]).collect();
    match nearest(text, known.iter().map(String::as_str)) {
        Some(meant) => failure.hint(format!("did you mean `{}`?", shown(meant))),
        None => failure.hint("list the targets: git kustomize-localize targets"),
    }
}

fn ambiguous(text: &str, is_root: bool, all: &[&Target]) -> Failure {
    const BUILD: &str = "git kustomize-localize build";
    let mut failure = Failure::new(format!("`{}` names several things", shown(text)));
    if is_root {
        failure = failure.hint(format!("the directory: {}", command(BUILD, [format!("./{text}")])));
    }
    all.iter()
        .fold(failure, |failure, target| failure.hint(format!("{}: {}", target.by(), command(BUILD, [typed(target)]))))
}
