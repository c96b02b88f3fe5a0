//! Finds the source of a run by the arguments of the user.

use std::collections::BTreeSet;
use std::path::Path;

use super::LocalizeMode;
use crate::fetch::Fetcher;
use crate::graph::{ScopedTree, Start, no_directory};
use crate::message::failure::{Failure, Result, command, nearest};
use crate::message::redact;
use crate::plan::copy;
use crate::reference::{self, RepoSpec, default_new_dir};
use crate::tree::{self, Resolved, path};
use crate::workspace::{Files, Workspace};

/// The source of a run in a workspace.
pub(crate) enum LocalizeSource {
    /// A copy of a directory (a path in the tree of the workspace), with the directory of its scope if one was given.
    Local { directory: String, scope: Option<String> },
    /// A copy of a directory of another repository, as the user named it.
    Remote { url: String, spec: RepoSpec },
    /// The directories of roots in place. All roots if there are none.
    InPlace(Vec<String>),
}

impl LocalizeSource {
    /// Finds the source, and NEW_DIR of a copy as the user would name it from the current directory. In place there is
    /// no NEW_DIR.
    pub(super) fn find(mode: &LocalizeMode, workspace: &Workspace) -> Result<(LocalizeSource, Option<String>)> {
        match mode {
            LocalizeMode::Copy { target, new_dir, scope } => {
                // A URL is recognized before a path, as kustomize does, so that no directory can shadow it.
                let (source, default) = match parse_remote(target, scope.is_some())? {
                    Some(spec) => {
                        // `kustomize localize` refuses a URL without a ref, so that it has no default name here either.
                        let default = spec.reference.is_some().then(|| default_new_dir(None, Some(&spec)));
                        (LocalizeSource::Remote { url: target.clone(), spec }, default)
                    }
                    None => {
                        let directory = directory("target", target, workspace)?;
                        let scope =
                            scope.as_deref().map(|text| scope_directory(&directory, text, workspace)).transpose()?;
                        // The top of the repository has no name, so a copy of it needs NEW_DIR.
                        let name = path::name(&directory);
                        let default = (!name.is_empty()).then(|| default_new_dir(Some(name), None));
                        (LocalizeSource::Local { directory, scope }, default)
                    }
                };
                // Without a name for the copy the user must give one.
                let new_dir = new_dir.clone().or(default).filter(|name| !name.is_empty());
                let new_dir = new_dir.ok_or_else(|| {
                    let failure = Failure::new(format!("missing NEW_DIR for `{}`", redact::url(target)));
                    let named = command("git kustomize-localize", [&redact::url(target), "localized"]);
                    let failure = failure.hint(format!("name it: {named}"));
                    match source {
                        LocalizeSource::Remote { .. } => failure.hint("or add a ref to the URL: `?ref=TAG-OR-COMMIT`"),
                        _ => failure.hint("to localize the whole repository: git kustomize-localize branch"),
                    }
                })?;
                Ok((source, Some(new_dir)))
            }
            LocalizeMode::InPlace(targets) => {
                // First, because `check` would demand that references are locked, and in a copy `lock` refuses that.
                workspace.refuse_foreign_lock()?;
                let targets: BTreeSet<String> =
                    targets.iter().map(|text| root(text, workspace)).collect::<Result<_>>()?;
                Ok((LocalizeSource::InPlace(targets.into_iter().collect()), None))
            }
        }
    }

    /// The directories of the named roots in place. Empty if there are none.
    pub(super) fn targets(&self) -> &[String] {
        match self {
            LocalizeSource::Local { .. } | LocalizeSource::Remote { .. } => &[],
            LocalizeSource::InPlace(targets) => targets,
        }
    }

    /// The target to copy, which is fetched if it is remote. `None` if nothing is copied.
    pub(super) fn copy_source(&self, workspace: &Workspace, fetcher: &mut Fetcher) -> Result<Option<copy::CopySource>> {
        match self {
            LocalizeSource::Local { directory, scope } => {
                let scope = scope.as_deref();
                // The name in the lock must not depend on the directory of the repository or of the copy. Outside of a
                // repository it begins with the last segment of the target or scope.
                let top = workspace.top.as_deref().filter(|top| path::is_in(directory, top));
                let anchor = top.unwrap_or_else(|| path::parent(scope.unwrap_or(directory)));
                Ok(Some(local_target(workspace, directory, scope, anchor)))
            }
            LocalizeSource::Remote { url, spec } => {
                // The walk judges only the references in files, so `sources` is asked about the target here.
                fetcher.resolve_lockable(spec, &workspace.config)?;
                remote_target(url, spec, fetcher).map(Some)
            }
            LocalizeSource::InPlace(_) => Ok(None),
        }
    }
}

/// A directory of the workspace as a target. Locks name it and `scope` relative to `anchor`, so that they do not depend
/// on the machine.
pub(crate) fn local_target(
    workspace: &Workspace,
    directory: &str,
    scope: Option<&str>,
    anchor: &str,
) -> copy::CopySource {
    copy::CopySource {
        name: path::relative(anchor, directory),
        scope: scope.map(|scope| path::relative(anchor, scope)),
        start: Start {
            source: ScopedTree { scope: scope.unwrap_or(directory).to_owned(), ..workspace.source() },
            directory: directory.to_owned(),
        },
    }
}

/// Fetches a remote target, whose `url` becomes its name in the lock.
pub(crate) fn remote_target(url: &str, spec: &RepoSpec, fetcher: &mut Fetcher) -> Result<copy::CopySource> {
    let repository = fetcher.repository(spec)?;
    let directory = match tree::resolve(&*repository.tree, &spec.directory())? {
        Resolved::Directory { path } => path,
        _ => return Err(no_directory(&repository, &spec.directory())),
    };
    Ok(copy::CopySource {
        // A lock stores the name, so it must not have a secret.
        name: redact::url(url),
        scope: None,
        start: Start { source: ScopedTree::of(repository), directory },
    })
}

/// Parses a target as the URL of a git repository. `None` if it is a path. Fails if it is a URL that cannot be a
/// target, or that is named with a scope.
pub(crate) fn parse_remote(target: &str, has_scope: bool) -> Result<Option<RepoSpec>> {
    let Ok(spec) = RepoSpec::parse(target) else {
        return match reference::unsupported_scheme(target) {
            Some(scheme) => {
                let (reason, hint) = reference::why_unsupported(&scheme);
                Err(refused_target(target, &reason).hint(hint))
            }
            None => Ok(None),
        };
    };
    reference::refuse_unsafe(target, Some(&spec)).map_err(|reason| {
        let hints = reference::plus_hint(target, &spec).into_iter();
        hints.fold(refused_target(target, &reason.to_string()), Failure::hint)
    })?;
    // The scope is a directory of this repository.
    if has_scope {
        return Err(Failure::new("`--scope` cannot be used with a remote target: its repository is the scope")
            .hint("remove `--scope`"));
    }
    Ok(Some(spec))
}

/// The failure of a TARGET that is not accepted.
fn refused_target(target: &str, why: &str) -> Failure {
    Failure::new(format!("`{}` is refused: {why}", redact::url(target)))
}

/// Finds the directory of a scope. Fails if it does not contain the target.
fn scope_directory(target: &str, text: &str, workspace: &Workspace) -> Result<String> {
    let scope = directory("scope", text, workspace)?;
    if path::is_in(target, &scope) {
        return Ok(scope);
    }
    Err(Failure::new(format!("the scope `{text}` does not contain the target"))
        .hint("name a directory above the target"))
}

/// The hint for an argument that is not a directory.
const HINT_NAME_DIRECTORY: &str = "name the directory of the kustomization, relative to this one";

/// Finds a directory that was named. `part` names the argument in messages: `target`, `scope` or `root`.
fn directory(part: &str, text: &str, workspace: &Workspace) -> Result<String> {
    let tree = &*workspace.tree;
    let path = tree::argument_path(tree, workspace.top.as_deref(), &workspace.prefix, text);
    // A directory that exists only on disk is the most common mistake, so it gets its own message.
    let is_on_disk = matches!(workspace.files, Files::Commit { .. }) && Path::new(text).exists();
    let (why, hint) = match path.map(|path| tree::resolve(tree, &path)).transpose()? {
        _ if text.is_empty() => ("is empty", HINT_NAME_DIRECTORY),
        Some(Resolved::Directory { path }) => return Ok(path),
        None | Some(Resolved::Leaves { .. }) => (
            "is outside of the repository",
            "name a directory of the repository, or copy the directory without it: `--no-commit`",
        ),
        Some(Resolved::Missing { .. }) if is_on_disk => {
            ("is not in the source commit", "commit it first, or use `--no-commit`")
        }
        Some(Resolved::Missing { path }) => {
            let failure = Failure::new(format!("the {part} `{text}` does not exist"));
            let meant = nearest(&path, workspace.roots()?).map(|root| tree.word(root));
            return Err(
                failure.hint(meant.map_or(HINT_NAME_DIRECTORY.to_owned(), |root| format!("did you mean `{root}`?")))
            );
        }
        Some(Resolved::Submodule { .. }) => {
            ("is in a submodule", "run it in the submodule, or name its repository by URL")
        }
        Some(Resolved::File { .. } | Resolved::Loop { .. }) => ("is not a directory", HINT_NAME_DIRECTORY),
    };
    Err(Failure::new(format!("the {part} `{text}` {why}")).hint(hint))
}

/// The directory of a root that an argument of `vendor` names.
fn root(text: &str, workspace: &Workspace) -> Result<String> {
    let root = directory("root", text, workspace)?;
    // Files that the lock owns are localized with the root that references them.
    if workspace.is_owned(&path::join(&root, "kustomization.yaml")) {
        return Err(Failure::new(format!("the root `{text}` is inside localized files"))
            .hint("name the root that references it"));
    }
    Ok(root)
}
