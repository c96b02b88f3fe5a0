//! What git makes of a path, as the `.gitattributes` or the `.gitignore` files of some tree say, and no configuration.

use std::path::Path;
use std::process::Command;

use super::{command, not_run, said, untied};
use crate::message::failure::{Failure, Result, shown};
use crate::os::interrupt::{Scratch, TEMPORARY_HINT, unusable};
use crate::os::process::{self, Conversation, Limits, Terminal};

/// A repository of our own, with those files in its working tree and nothing else: git asks no other place for them,
/// neither the working tree of this repository nor its `info` directory.
#[derive(Debug)]
pub(crate) struct Checkout {
    scratch: Scratch,
    objects: gix::Repository,
    /// The git that converts, the one that reads attributes, and the one that knows what is ignored, once needed.
    converts: Option<Conversation>,
    tells: Option<Conversation>,
    ignores: Option<Conversation>,
}

/// How a file is checked out.
#[derive(Debug)]
pub(crate) struct Attributes {
    /// The filter that it goes through.
    pub filter: Option<String>,
    /// Whether git writes ids into it.
    pub has_ident: bool,
}

impl Checkout {
    /// Makes one with these files by their paths; of a link its target counts, which is what git reads in an index.
    pub(crate) fn new(files: &[(String, Vec<u8>)], hash: gix::hash::Kind) -> Result<Self> {
        let scratch = Scratch::new().map_err(|error| unusable(&error))?;
        let mut git = isolated();
        git.args(["init", "-q", "--template="]).arg(format!("--object-format={hash}")).arg(scratch.path());
        let made = process::run(&mut git, None, Limits::default(), Terminal::Detached).map_err(not_run)?;
        let failed = |why: &dyn std::fmt::Display| {
            Failure::new(format!("could not make a temporary repository: {why}")).hint(TEMPORARY_HINT)
        };
        if !made.status.success() {
            return Err(failed(&said(&made)));
        }
        let options = gix::open::Options::isolated().with(gix::sec::Trust::Full);
        let objects = gix::open_opts(scratch.path(), options).map_err(|error| failed(&error))?;
        for (path, bytes) in files {
            let place = scratch.path().join(safe(path)?);
            let parent = place.parent().unwrap_or(scratch.path());
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&place, bytes))
                .map_err(|error| unusable(&error))?;
        }
        Ok(Checkout { scratch, objects, converts: None, tells: None, ignores: None })
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
        let git = open(&mut self.converts, self.scratch.path(), &["cat-file", "--batch", "--filters"])?;
        let answer = git.ask(&format!("{id} {path}\n{end}")).map_err(|_| failed())?;
        if !answer.contains(" blob ") {
            return Err(failed());
        }
        git.read_to_line(&format!("{end} missing")).map_err(|_| failed())
    }

    /// Returns how the file at `path` is checked out.
    pub(crate) fn attributes(&mut self, path: &str) -> Result<Attributes> {
        let git = open(&mut self.tells, self.scratch.path(), &["check-attr", "--stdin", "filter", "ident"])?;
        let state = |answer: std::io::Result<String>, name: &str| {
            let answer = answer.map_err(|_| cannot_tell(path))?;
            let state = answer.rsplit_once(&format!(": {name}: ")).ok_or_else(|| cannot_tell(path))?;
            Ok(state.1.to_owned())
        };
        let filter = state(git.ask(&quoted(path)), "filter")?;
        let ident = state(git.line(), "ident")?;
        // A filter that is only set or taken away is none.
        let is_none = matches!(&*filter, "unspecified" | "unset" | "set");
        Ok(Attributes { filter: (!is_none).then_some(filter), has_ident: ident == "set" })
    }

    /// Returns the rule by which git leaves a path alone: where it stands, as `.gitignore:3`, and its pattern.
    pub(crate) fn ignored(&mut self, path: &str) -> Option<(String, String)> {
        let args = ["check-ignore", "--no-index", "--stdin", "-v", "-n"];
        let git = open(&mut self.ignores, self.scratch.path(), &args).ok()?;
        let Ok(answer) = git.ask(&quoted(path)) else {
            // It ends at what is no path.
            self.ignores = None;
            return None;
        };
        let (rule, _) = answer.rsplit_once('\t')?;
        let (file, rest) = rule.split_once(':')?;
        let (line, pattern) = rest.split_once(':')?;
        (!file.is_empty() && !pattern.starts_with('!')).then(|| (format!("{file}:{line}"), pattern.to_owned()))
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
        .args(["-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null"])
        .args(["-c", "core.quotePath=false", "-c", "core.ignoreCase=false"])
        .args(["-c", "core.autocrlf=false", "-c", "core.eol=lf"]);
    command
}

fn open<'a>(git: &'a mut Option<Conversation>, directory: &Path, args: &[&str]) -> Result<&'a mut Conversation> {
    match git {
        Some(git) => Ok(git),
        none => {
            let mut command = isolated();
            command.current_dir(directory).env("GIT_DIR", directory.join(".git")).env("GIT_WORK_TREE", directory);
            Ok(none.insert(Conversation::start(command.args(args)).map_err(not_run)?))
        }
    }
}
