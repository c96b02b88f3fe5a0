//! What git makes of a file when it checks it out, with given attributes and no configuration.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use super::{command, not_run, said, untied};
use crate::message::failure::{Failure, Result, shown};
use crate::os::interrupt::{Scratch, TEMPORARY_HINT, unusable};
use crate::os::process::{self, Conversation, Limits, Terminal};

/// A `.gitattributes` of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Attributes {
    /// Its path from the top.
    pub path: String,
    /// Its bytes; of a link its target, which is what git reads in an index.
    pub bytes: Vec<u8>,
}

/// A repository of our own, with the attributes of some tree in its working tree and nothing else: git asks no other
/// place for them, neither the working tree nor the `info/attributes` of this repository.
#[derive(Debug)]
pub(crate) struct Checkout {
    scratch: Scratch,
    objects: gix::Repository,
    /// The git that converts, and the one that reads attributes, once they were needed.
    converts: Option<Conversation>,
    tells: BTreeMap<&'static str, Option<Conversation>>,
}

impl Checkout {
    /// Prepares to check out files that have these attributes.
    pub(crate) fn new(attributes: &[Attributes], hash: gix::hash::Kind) -> Result<Self> {
        let made = |error: &dyn std::fmt::Display| {
            Failure::new(format!("could not make a temporary repository to convert files in: {error}"))
        };
        let scratch = Scratch::new().map_err(|error| unusable(&error))?;
        run(isolated().args(["init", "-q", "--template="]).arg(format!("--object-format={hash}")).arg(scratch.path()))?;
        let options = gix::open::Options::isolated().with(gix::sec::Trust::Full);
        let objects = gix::open_opts(scratch.path(), options).map_err(|error| made(&error))?;
        for one in attributes {
            let place = scratch.path().join(safe(&one.path)?);
            let parent = place.parent().unwrap_or(scratch.path());
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&place, &one.bytes))
                .map_err(|error| unusable(&error))?;
        }
        Ok(Checkout { scratch, objects, converts: None, tells: BTreeMap::new() })
    }

    /// Returns what a checkout makes of the bytes of the file at `path`. A filter is not run.
    pub(crate) fn convert(&mut self, path: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let failed = || cannot_tell(path);
        // That would be two requests.
        if path.contains('\n') {
            return Err(failed());
        }
        let id = self.objects.write_blob(bytes).map_err(|_| failed())?;
        // git prints the stored length of the file. No file in a repository has the name that this one ends at.
        let end = self.scratch.path().file_name().unwrap_or_default();
        let end = end.to_string_lossy();
        let question = format!("{id} {path}\n{end}");
        let git = open(&mut self.converts, self.scratch.path(), &["cat-file", "--batch", "--filters"])?;
        let answer = git.ask(&question).map_err(|_| failed())?;
        if answer.contains(" blob ") {
            git.read_to_line(&format!("{end} missing")).map_err(|_| failed())
        } else {
            Err(failed())
        }
    }

    /// Returns the filter that the file at `path` goes through when it is checked out.
    pub(crate) fn filter(&mut self, path: &str) -> Result<Option<String>> {
        let state = self.attribute("filter", path)?;
        // A filter that is only set or taken away is none.
        let is_none = matches!(&*state, "unspecified" | "unset" | "set");
        Ok((!is_none).then_some(state))
    }

    /// Returns whether git writes ids into the file at `path` when it is checked out.
    pub(crate) fn has_ident(&mut self, path: &str) -> Result<bool> {
        Ok(self.attribute("ident", path)? == "set")
    }

    fn attribute(&mut self, name: &'static str, path: &str) -> Result<String> {
        let failed = || cannot_tell(path);
        let git = open(self.tells.entry(name).or_default(), self.scratch.path(), &["check-attr", "--stdin", name])?;
        let answer = git.ask(&quoted(path)).map_err(|_| failed())?;
        let state = answer.rsplit_once(&format!(": {name}: "));
        Ok(state.ok_or_else(failed)?.1.to_owned())
    }
}

/// Returns a path as git reads it on one line, in quotes where it could be taken for something else.
fn quoted(path: &str) -> String {
    if !path.starts_with('"') && !path.contains(char::is_control) {
        return path.to_owned();
    }
    let mut quoted = String::from('"');
    for character in path.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            // Every control character in UTF-8 is quoted byte by byte.
            character if character.is_control() => {
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    quoted.push_str(&format!("\\{byte:03o}"));
                }
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

fn cannot_tell(path: &str) -> Failure {
    Failure::new(format!("git cannot tell how `{path}` is checked out with the attributes that are set for it"))
        .hint("rename it, or take the attributes away in `.gitattributes`")
}

/// Returns a path that leads nowhere but below the top: a tree may hold any name.
fn safe(path: &str) -> Result<&str> {
    let is_safe =
        |name: &str| !matches!(name, "" | "." | "..") && !name.eq_ignore_ascii_case(".git") && !name.contains('\0');
    if path.split('/').all(is_safe) {
        Ok(path)
    } else {
        Err(Failure::new(format!("`{}` is not a path that git checks out", shown(path))))
    }
}

/// A git that knows of no configuration and of no repository.
fn isolated() -> Command {
    let mut command = command();
    untied(&mut command);
    for name in ["GIT_CONFIG_PARAMETERS", "GIT_CONFIG_COUNT", "GIT_ATTR_SOURCE"] {
        command.env_remove(name);
    }
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .args(["-c", "core.attributesFile=/dev/null"])
        .args(["-c", "core.quotePath=false", "-c", "core.ignoreCase=false"])
        .args(["-c", "core.autocrlf=false", "-c", "core.eol=lf"]);
    command
}

fn inside(directory: &Path) -> Command {
    let mut command = isolated();
    command.current_dir(directory).env("GIT_DIR", directory.join(".git")).env("GIT_WORK_TREE", directory);
    command
}

fn open<'a>(git: &'a mut Option<Conversation>, directory: &Path, args: &[&str]) -> Result<&'a mut Conversation> {
    match git {
        Some(git) => Ok(git),
        none => {
            let started = Conversation::start(inside(directory).args(args)).map_err(not_run)?;
            Ok(none.insert(started))
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let output = process::run(command, None, Limits::default(), Terminal::Detached).map_err(not_run)?;
    if output.status.success() {
        Ok(())
    } else {
        Err(Failure::new(format!("git could not make a temporary repository to convert files in: {}", said(&output)))
            .hint(TEMPORARY_HINT))
    }
}
