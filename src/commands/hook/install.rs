//! The files of hooks: this program writes and removes its own files, and leaves those of others alone.
//!
//! They are the files in `hooks/` of the source, so that a copied one and an installed one are the same.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::commands::output::{Outcome, Shown};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result, command};
use crate::message::redact::visible;

/// The hooks that can be installed, by the name that git has for each.
const SCRIPTS: [(&str, &str); 3] = [
    ("pre-commit", include_str!("../../../hooks/pre-commit")),
    ("pre-merge-commit", include_str!("../../../hooks/pre-merge-commit")),
    ("pre-push", include_str!("../../../hooks/pre-push")),
];

/// How a file begins that we made, whatever its version.
const OURS: &[u8] = b"#!/bin/sh\n# Made by git kustomize-localize.";

/// The hooks that were written or removed.
#[derive(Debug, Serialize)]
pub(super) struct ChangedHooks {
    files: Vec<PathBuf>,
    verb: &'static str,
}

impl Outcome for ChangedHooks {
    /// A line for each file, with its path from the current directory, or its absolute path if it is elsewhere.
    fn text(&self, _shown: Shown) -> String {
        let current = std::env::current_dir().unwrap_or_default();
        let text: String = self
            .files
            .iter()
            .map(|path: &PathBuf| {
                let path = path.strip_prefix(&current).unwrap_or(path);
                format!("{} {}\n", self.verb, visible(&path.display().to_string()))
            })
            .collect();
        if text.is_empty() { "nothing to remove\n".to_owned() } else { text }
    }
}

/// Puts hooks where git looks for them. None is written if one of them would replace a hook of another program.
pub(super) fn install(repo: &LocalRepo, names: &[String]) -> Result<ChangedHooks, Failures> {
    // Links are followed, because a hook would be written where they lead.
    let (directory, common) = (without_links(&repo.hooks()?), without_links(&repo.common));
    // A bare repository gets pushes, and has hooks of another kind.
    let Some(top) = &repo.top else {
        return Err(Failure::new("this repository has no working tree, so no commits are made here")
            .hint("for a repository that is pushed to, see `hooks/pre-receive` in the source of this program")
            .into());
    };
    // A global `core.hooksPath` is shared by all repositories of this person.
    if !directory.starts_with(&common) && !directory.starts_with(without_links(top)) {
        let shown = directory.display();
        let hooks = common.join("hooks").display().to_string();
        let failure = Failure::new(format!(
            "git reads hooks from `{shown}`, outside of this repository: a hook there would run in other repositories too"
        ));
        let set = command("git config --local core.hooksPath", [hooks]);
        let failure = failure.hint(format!("to use hooks of this repository only: {set}"));
        let all = names.iter().map(|name| format!("to run it in all of them, {}", hook_line(name)));
        return Err(all.fold(failure, Failure::hint).into());
    }
    // All hooks are examined first: a half installed set would check only some of the ways to commit.
    let (mut files, mut failures) = (BTreeMap::new(), Vec::new());
    for (name, script) in named(names) {
        let path = directory.join(name);
        if read_hook(&path)?.is_none_or(|bytes| bytes.starts_with(OURS)) {
            files.insert(path, script);
            continue;
        }
        failures.push(
            Failure::new(format!("not overwriting the existing hook `{}`", path.display()))
                .hint(format!("to run both, {}", hook_line(name)))
                .hint("for a hook of husky, lefthook, pre-commit or prek: git kustomize-localize help hook"),
        );
    }
    if !failures.is_empty() {
        return Err(Failures(failures));
    }
    // The contents are written beside their paths first, so that a full disk leaves no empty hook.
    let ready = files.into_iter().map(|(path, script)| match write_beside(&path, script.as_bytes()) {
        Ok(file) => Ok((path, file)),
        Err(error) => Err(hook_failure("write", &path, &error)),
    });
    let ready: Vec<_> = ready.collect::<Result<_>>()?;
    let mut files = Vec::new();
    for (path, file) in ready {
        file.persist(&path).map_err(|error| hook_failure("write", &path, &error.error))?;
        files.push(path);
    }
    Ok(ChangedHooks { files, verb: "installed" })
}

/// Removes the hooks that `install` wrote, and no hook of another program.
pub(super) fn uninstall(repo: &LocalRepo, names: &[String]) -> Result<ChangedHooks> {
    // All hooks are read before the first is removed, so that a failure removes none of them.
    let directory = without_links(&repo.hooks()?);
    let mut files = Vec::new();
    for (name, _) in named(names) {
        let path = directory.join(name);
        if read_hook(&path)?.is_some_and(|bytes| bytes.starts_with(OURS)) {
            files.push(path);
        }
    }
    for path in &files {
        fs::remove_file(path).map_err(|error| hook_failure("remove", path, &error))?;
    }
    Ok(ChangedHooks { files, verb: "removed" })
}

/// The hooks with these names.
fn named(names: &[String]) -> impl Iterator<Item = (&'static str, &'static str)> {
    SCRIPTS.into_iter().filter(|(name, _)| names.iter().any(|hook| hook == name))
}

/// The line to add to a hook of another program, so that it runs this check as well.
fn hook_line(name: &str) -> String {
    let copy = if name == "pre-push" { ", with a copy of its standard input" } else { "" };
    format!("add to it{copy}: git kustomize-localize hook run {name} \"$@\" || exit $?")
}

/// The path with all links followed; its last component may be missing.
fn without_links(path: &Path) -> PathBuf {
    fs::canonicalize(path)
        .ok()
        .or_else(|| Some(fs::canonicalize(path.parent()?).ok()?.join(path.file_name()?)))
        .unwrap_or_else(|| path.to_owned())
}

/// The content of the hook at a path, by which our own are recognized; `None` if there is none.
fn read_hook(path: &Path) -> Result<Option<Vec<u8>>> {
    if path.is_symlink() {
        // A link belongs to another program, because this one never writes links. No content is ours, so it is not
        // followed.
        return Ok(Some(Vec::new()));
    }
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(hook_failure("read", path, &error)),
    }
}

/// The failure to write, read or remove (`verb`) a hook.
fn hook_failure(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not {verb} `{}`: {error}", path.display()))
}

/// Writes an executable file beside `path`, which the caller renames to it, so that git never runs a part of a hook.
fn write_beside(path: &Path, bytes: &[u8]) -> std::io::Result<tempfile::NamedTempFile> {
    let directory = path.parent().unwrap_or(path);
    fs::create_dir_all(directory)?;
    let mut file = tempfile::Builder::new().prefix(".kustomize-localize-").tempfile_in(directory)?;
    file.write_all(bytes)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        fs::set_permissions(file.path(), fs::Permissions::from_mode(0o755))?;
    }
    Ok(file)
}
