//! What the user named, found.

use super::What;
use crate::commands::usage::unknown_word;
use crate::destination::Destination;
use crate::fetch::Fetcher;
use crate::graph::{Source, Start, no_directory};
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::plan::copy;
use crate::reference::{self, RepoSpec, default_new_dir};
use crate::tree::{self, Resolved, path};
use crate::workspace::{Files, Workspace};

/// What is localized, found in a workspace.
pub(super) enum Subject {
    /// A copy of one target.
    Copy(Copied),
    /// The repository where it stands.
    InPlace {
        /// The directories of the roots that were named; all when there are none.
        targets: Vec<String>,
    },
}

/// A target to copy.
pub(super) struct Copied {
    /// The target as the user named it.
    named: String,
    place: Place,
    /// NEW_DIR as the user would name it, from the directory that we were started in.
    new_dir: String,
}

enum Place {
    /// The path in the tree of the workspace, and that of the scope, if one was given.
    Local {
        directory: String,
        scope: Option<String>,
    },
    Remote(RepoSpec),
}

impl Subject {
    pub(super) fn find(what: &What, workspace: &Workspace) -> Result<Subject> {
        match what {
            What::Copy { target, new_dir, scope } => {
                let place = match remote(target, scope.is_some())? {
                    Some(spec) => Place::Remote(spec),
                    None => local(target, scope.as_deref(), workspace)?,
                };
                Ok(Subject::Copy(Copied {
                    new_dir: self::new_dir(new_dir.as_deref(), target, &place)?,
                    named: target.clone(),
                    place,
                }))
            }
            What::InPlace(targets) => {
                let targets = targets.iter().map(|text| root(text, workspace));
                let mut targets = targets.collect::<Result<Vec<String>>>()?;
                targets.sort();
                targets.dedup();
                Ok(Subject::InPlace { targets })
            }
        }
    }

    /// Returns the directories of the roots that were named, in place; all when there are none.
    pub(super) fn targets(&self) -> &[String] {
        match self {
            Subject::Copy(_) => &[],
            Subject::InPlace { targets } => targets,
        }
    }

    /// Returns NEW_DIR as the user would name it, if there is one.
    pub(super) fn new_dir(&self) -> Option<&str> {
        match self {
            Subject::Copy(copied) => Some(&copied.new_dir),
            Subject::InPlace { .. } => None,
        }
    }
}

impl Copied {
    /// Returns what to copy. A remote target is fetched for that.
    pub(super) fn target(
        &self,
        workspace: &Workspace,
        destination: &Destination,
        fetcher: &mut Fetcher,
    ) -> Result<copy::Target> {
        match &self.place {
            Place::Local { directory, scope } => {
                // How the lock names the target must not depend on where all of this lies.
                let anchor = match &workspace.top {
                    Some(top) => top,
                    None => path::parent(destination.place()),
                };
                Ok(local_target(workspace, directory, scope.as_deref(), anchor))
            }
            Place::Remote(spec) => remote_target(&self.named, spec, fetcher),
        }
    }
}

/// Returns a directory of the workspace as a target. Locks name it from `anchor`.
pub(crate) fn local_target(workspace: &Workspace, directory: &str, scope: Option<&str>, anchor: &str) -> copy::Target {
    copy::Target {
        name: path::relative(anchor, directory),
        scope: scope.map(|scope| path::relative(anchor, scope)),
        url: None,
        start: Start {
            source: Source { scope: scope.unwrap_or(directory).to_owned(), ..workspace.source() },
            directory: directory.to_owned(),
        },
    }
}

/// Fetches a remote target.
pub(crate) fn remote_target(url: &str, spec: &RepoSpec, fetcher: &mut Fetcher) -> Result<copy::Target> {
    let repository = fetcher.repository(spec)?;
    let directory = match tree::resolve(&*repository.tree, &spec.directory())? {
        Resolved::Directory { path } => path,
        _ => return Err(no_directory(&repository, &spec.directory())),
    };
    Ok(copy::Target {
        name: redact::url(url),
        scope: None,
        url: Some(url.to_owned()),
        start: Start {
            source: Source { tree: repository.tree.clone(), scope: String::new(), repository: Some(repository) },
            directory,
        },
    })
}

/// Reads a target as the URL of a git repository, if it is one.
pub(crate) fn remote(target: &str, has_scope: bool) -> Result<Option<RepoSpec>> {
    if target.is_empty() {
        return Err(Failure::new("the target is empty").hint("name a directory, or the URL of one"));
    }
    let Ok(spec) = RepoSpec::parse(target) else {
        return match reference::unsupported_scheme(target) {
            Some(scheme) => Err(Failure::new(format!("`{}`: kustomize cannot read `{scheme}`", redact::url(target)))
                .hint("use an https, ssh or file URL of a git repository")),
            None => Ok(None),
        };
    };
    reference::refuse_unsafe(target, Some(&spec))
        .map_err(|reason| Failure::new(format!("`{}` is refused: {reason}", redact::url(target))))?;
    if has_scope {
        return Err(Failure::new("`--scope` cannot be given for a remote target: its repository is the scope")
            .hint("leave `--scope` out"));
    }
    Ok(Some(spec))
}

/// Finds a local target and its scope.
fn local(target: &str, scope: Option<&str>, workspace: &Workspace) -> Result<Place> {
    let directory = self::directory("target", target, workspace)?;
    let found = scope.map(|scope| self::directory("scope", scope, workspace)).transpose()?;
    if let (Some(scope), Some(found)) = (scope, &found)
        && !path::is_in(&directory, found)
    {
        return Err(Failure::new(format!("the scope `{scope}` does not contain the target `{target}`"))
            .hint("name a directory above the target"));
    }
    Ok(Place::Local { directory, scope: found })
}

/// Finds a directory that was named: `what` is its part.
fn directory(what: &str, text: &str, workspace: &Workspace) -> Result<String> {
    if text.is_empty() {
        return Err(Failure::new(format!("the {what} is empty")).hint("name a directory"));
    }
    let (tree, top) = (&*workspace.tree, workspace.top.as_deref());
    let Some(lexical) = tree::argument_path(tree, top, &workspace.prefix, text) else {
        return Err(Failure::new(format!("the {what} `{text}` lies outside of the repository"))
            .hint("name a directory in it, or copy it without a repository: `--no-commit`"));
    };
    match tree::resolve(tree, &lexical)? {
        Resolved::Directory { path } => Ok(path),
        Resolved::File { .. } => Err(Failure::new(format!("the {what} `{text}` is a file"))
            .hint("name the directory that holds the kustomization")),
        Resolved::Missing { .. } => Err(match unknown_word(text).filter(|_| what == "target") {
            Some(failure) => failure,
            None => Failure::new(format!("there is no directory `{text}` for the {what}"))
                .hint(if_missing(what, text, workspace)),
        }),
        Resolved::Submodule { path } => {
            Err(Failure::new(format!("the {what} `{text}` lies in the submodule `{}`", tree.label(&path)))
                .hint("run it in the submodule, or name the submodule's repository by URL"))
        }
        Resolved::Leaves { link, target } => Err(Failure::new(format!(
            "the {what} `{text}` leads out of the tree: the link `{}` says `{target}`",
            tree.label(&link)
        ))),
        Resolved::Loop { link } => Err(Failure::new(format!(
            "the {what} `{text}` leads nowhere: the links at `{}` lead to each other",
            tree.label(&link)
        ))),
    }
}

/// Returns what to do about a missing directory.
fn if_missing(what: &str, text: &str, workspace: &Workspace) -> String {
    let is_committed = matches!(workspace.files, Files::Commit { .. });
    if is_committed && std::path::Path::new(text).exists() {
        return format!("a {what} is read from the source commit: commit it first, or use `--no-commit`");
    }
    match what {
        "scope" => "name a directory above the target, as seen from here".to_owned(),
        _ => "name the directory that holds the kustomization, as seen from here".to_owned(),
    }
}

/// Returns NEW_DIR as the user would name it.
fn new_dir(given: Option<&str>, target: &str, place: &Place) -> Result<String> {
    match (given, place) {
        (Some(""), _) => Err(Failure::new("NEW_DIR is empty")),
        (Some(given), _) => Ok(given.to_owned()),
        (None, Place::Remote(spec)) if spec.reference.is_none() => {
            Err(Failure::new(format!("`{}` is named without a ref, so NEW_DIR has no name", redact::url(target)))
                .hint("give NEW_DIR, or say which version: add `?ref=TAG-OR-COMMIT`"))
        }
        (None, Place::Remote(spec)) => Ok(default_new_dir(None, Some(spec))),
        (None, Place::Local { directory, .. }) => match path::name(directory) {
            "" => Err(Failure::new("the target is the top of the repository, so NEW_DIR has no name")
                .hint("give NEW_DIR, or commit the whole repository: git kustomize-localize branch")),
            base => Ok(default_new_dir(Some(base), None)),
        },
    }
}

/// Finds a root that is localized where it stands.
fn root(text: &str, workspace: &Workspace) -> Result<String> {
    let found = directory("root", text, workspace).map_err(|failure| match RepoSpec::parse(text) {
        Ok(_) => Failure::new("only a directory of this repository can be localized where it stands")
            .hint("to copy it: git kustomize-localize URL"),
        Err(_) => failure,
    })?;
    if workspace.is_owned(&path::join(&found, "kustomization.yaml")) {
        return Err(Failure::new(format!("the root `{text}` was localized itself: it lies in localized files"))
            .hint("name the root that references it"));
    }
    Ok(found)
}
