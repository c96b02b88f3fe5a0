//! `build`: builds a root or a target with the content of the lock.

mod files;

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::localize::KustomizeArgs;
use super::messages::{NAMED, first, lines};
use super::output::{Done, OutputArgs, Page, print, say};
use crate::build::builds::{Builds, Wanted};
use crate::build::choice::{is_named_by, unique_name, unknown_target};
use crate::build::deployed;
use crate::build::rendered::append;
use crate::build::subject::BuildSpec;
use crate::kustomization::FILE_NAMES;
use crate::message::failure::{Failure, Failures, Result, command, shown};
use crate::message::redact::visible;
use crate::targets::{EngineName, Target, TargetLocation, Targets};
use crate::tree::{self, Resolved, Tree, path};
use crate::workspace::{Workspace, from_lock, from_top, repository_offline};

/// Arguments of `build`.
#[derive(Debug, Clone, Args)]
pub(super) struct BuildArgs {
    /// A directory with a kustomization, or a target: its path, FILE:LINE, NAME or NAMESPACE/NAME [default: the current
    /// directory]
    #[arg(value_name = "PATH|TARGET", value_hint = ValueHint::DirPath)]
    names: Vec<String>,

    /// Write a file for each target and topmost root into DIR, or for those that are named [default: one to standard
    /// output]
    ///
    /// Files of an earlier run that are not built any more are deleted. Secrets are written as they are.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,

    /// With `--output`: only what a change since the merge base with REV affects
    #[arg(long, value_name = "REV", requires = "output")]
    base: Option<String>,

    /// Build a commit [default: the working tree]
    #[arg(long, value_name = "REV")]
    rev: Option<String>,

    /// Use only what lock, branch and cache hold
    #[arg(long)]
    offline: bool,

    #[command(flatten)]
    with: KustomizeArgs,
}

impl BuildArgs {
    /// Builds one root or target to standard output, or with `--output` many into files.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let workspace = Workspace::to_read(repository_offline()?, self.rev.as_deref())?;
        // Builds read what a checkout writes, not what git stores.
        let workspace = workspace.into_checkout();
        if let Some(directory) = &self.output {
            return files::write(self, &workspace, directory, output);
        }
        let text = match self.names.as_slice() {
            [] => ".",
            [text] => text,
            _ => {
                let failure = Failure::new("only one PATH or TARGET is built to standard output");
                return Err(failure.hint("to build all of them into files: --output DIR").into());
            }
        };
        // The subjects are known before anything is fetched for them.
        let subjects: Vec<Wanted> = subjects(&workspace, text, output.quiet)?.into_iter().map(Some).map(Ok).collect();
        let mut fetcher = from_lock(workspace.repo(), &workspace, self.offline, output.quiet)?;
        let builds =
            Builds::of_workspace(&workspace, workspace.lock.as_deref(), &subjects, &mut fetcher, self.with.programs())?;
        let mut built = Vec::new();
        for number in 0..subjects.len() {
            // The objects of several sources of a target are one output.
            append(&mut built, &builds.bytes(number)?);
        }
        // The bytes of a build are the result: they are printed as they are, and no report follows.
        print(&built);
        Page::of(String::new())
    }
}

/// The root or target that the argument names: of a target all sources in this tree. Fails if it names nothing, or may
/// mean several.
fn subjects(workspace: &Workspace, text: &str, quiet: bool) -> Result<Vec<BuildSpec>, Failures> {
    let repo = workspace.repo().map_or_else(repository_offline, |repo| Ok(repo.clone()))?;
    let tree = &workspace.tree;
    let path = from_top(&repo, &**tree, text)?;
    let root = root_at(&**tree, &path)?;
    // Finding targets may take builds, which is not necessary for an argument that can only be a directory.
    let deployed = if root.is_some() && !may_name_target(text) {
        Targets::default()
    } else {
        deployed::find(&repo, workspace.survey())?.targets
    };
    let targets = &deployed.targets;
    let named: Vec<&Target> = targets.iter().filter(|target| is_named_by(target, text)).collect();
    let is_at_path = |target: &&Target| matches!(&target.location, TargetLocation::Local(dir) if dir.path == path);
    let deploying: Vec<&Target> = targets.iter().filter(is_at_path).collect();
    // A directory is built as it is, with a note about the engines that build it in another way.
    if let (Some(root), []) = (&root, named.as_slice()) {
        let others = deploying.iter().filter(|target| !quiet && target.engine != EngineName::Kustomize);
        let notes = others.map(|target| as_deployed(target, targets));
        say(&lines(first(notes, NAMED)));
        return Ok(vec![BuildSpec::root(workspace, root)]);
    }
    // A directory without a kustomization stands for the target that deploys it.
    let sources = if named.is_empty() { deploying } else { named };
    let Some(target) = sources.first() else { return Err(unknown_target(targets, text).into()) };
    // A text that may mean a root and a target, or several targets, is refused: nothing is guessed. Several sources of
    // one object are one target.
    if root.is_some() || sources.iter().any(|source| source.object != target.object) {
        return Err(ambiguous(text, root.is_some(), &sources, targets).into());
    }
    deployed_sources(workspace, &sources, quiet)
}

/// Whether a text can be the name of a target, and not only a path.
fn may_name_target(text: &str) -> bool {
    let is_path = text.starts_with(['.', ':']) || text.ends_with('/');
    // The name of an object has at most one `/`, after its namespace. A name by location (`FILE:LINE`) has a colon.
    !is_path && (text.matches('/').count() < 2 || text.contains(':'))
}

/// The sources of one target that are in this tree, for the build. Prints a note for each other source, unless `quiet`.
fn deployed_sources(workspace: &Workspace, sources: &[&Target], quiet: bool) -> Result<Vec<BuildSpec>, Failures> {
    let mut local: Vec<&Target> = sources.iter().copied().filter(|source| source.local_dir().is_some()).collect();
    if local.is_empty() {
        // The failure of any source says why nothing can be built.
        local.extend(sources.first());
    } else {
        let notes = sources.iter().filter(|_| !quiet);
        let notes = notes.filter_map(|source| Some(format!("note: {}", unbuilt_source(source)?)));
        say(&lines(first(notes, NAMED)));
    }
    let built = local.into_iter().map(|source| {
        BuildSpec::deployed(&workspace.tree, &workspace.config, source)
            .map_err(|failure: Failure| failure.context(format!("{} cannot be built here", source.by())))
    });
    Ok(built.collect::<Result<Vec<_>>>()?)
}

/// Says that a source of a target is not built, and why; `None` if it is of this tree.
fn unbuilt_source(source: &Target) -> Option<String> {
    let why = source.elsewhere().or_else(|| source.why_undefined().filter(|_| source.local_dir().is_none()))?;
    Some(format!("without its source at {}:{}: {}", source.object.file, source.spot.line, visible(&why)))
}

/// The directory of the kustomization at a path: the path itself, or the directory of the file; `None` if there is
/// none.
fn root_at(tree: &dyn Tree, path: &str) -> Result<Option<String>> {
    let directory = if FILE_NAMES.contains(&path::name(path)) { path::parent(path) } else { path };
    Ok(match tree::resolve(tree, directory)? {
        Resolved::Directory { path } => tree::kustomization_in(tree, &path)?.map(|_| path),
        _ => None,
    })
}

/// A note that an engine builds this directory in another way, with the command that does the same.
fn as_deployed(target: &Target, all: &[Target]) -> String {
    format!("note: to build it as {} does: {}", target.by(), command(BUILD, [unique_name(target, all)]))
}

const BUILD: &str = "git kustomize-localize build";

/// The failure of a text that may mean several targets, or also the root of that path, with the command for each.
fn ambiguous(text: &str, is_root: bool, named: &[&Target], all: &[Target]) -> Failure {
    let mut failure = Failure::new(format!("`{}` is ambiguous", shown(text)));
    if is_root {
        failure = failure.hint(format!("the directory: {}", command(BUILD, [format!("./{text}")])));
    }
    named.iter().map(|target| choice_line(all, target)).fold(failure, Failure::hint)
}

/// A target that the text may mean, with the command that names it alone.
fn choice_line(all: &[Target], target: &Target) -> String {
    let directory = match &target.location {
        TargetLocation::Local(dir) => format!(", {}", dir.shown()),
        _ => String::new(),
    };
    format!("{}{directory}: {}", target.by(), command(BUILD, [unique_name(target, all)]))
}
