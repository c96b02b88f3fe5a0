//! What git makes of a path, as the `.gitattributes` or the `.gitignore` files of some tree say, and no configuration.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{command, done, run, said, untied};
use crate::message::failure::{Failure, Result, shown};
use crate::os::interrupt::{Scratch, unusable};

/// A repository of our own, with those files in its working tree and nothing else: git asks no other place for them,
/// neither the working tree of this repository nor its `info` directory.
#[derive(Debug)]
pub(crate) struct Checkout {
    scratch: Scratch,
    objects: gix::Repository,
}

/// How a file is checked out.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    /// The filter that it goes through.
    pub filter: Option<String>,
    /// Whether git writes ids into it.
    pub has_ident: bool,
    /// Whether git may write other bytes than it stores, without a filter.
    pub converts: bool,
}

/// What a checkout asks for, once `core.eol` is LF.
const ATTRIBUTES: [&str; 5] = ["filter", "ident", "eol", "crlf", "working-tree-encoding"];

impl Checkout {
    /// Makes one with these files by their paths; of a link its target counts, which is what git reads in an index.
    pub(crate) fn new(files: &[(String, Vec<u8>)], hash: gix::hash::Kind) -> Result<Self> {
        let scratch = Scratch::new().map_err(|error| unusable(&error))?;
        init(scratch.path(), hash).map_err(|error| unusable(&error))?;
        let options = gix::open::Options::isolated().with(gix::sec::Trust::Full);
        let objects = gix::open_opts(scratch.path(), options);
        let objects = objects.map_err(|error| unusable(&io::Error::other(error.to_string())))?;
        for (path, bytes) in files {
            let place = scratch.path().join(safe(path)?);
            let parent = place.parent().unwrap_or(scratch.path());
            std::fs::create_dir_all(parent)
                .and_then(|()| std::fs::write(&place, bytes))
                .map_err(|error| unusable(&error))?;
        }
        Ok(Checkout { scratch, objects })
    }

    /// Returns what a checkout makes of the bytes of the file at `path`. A filter is not run.
    pub(crate) fn convert(&self, path: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        let id = self.objects.write_blob(bytes).map_err(|_| cannot_tell(path))?;
        let mut git = self.git(&["cat-file", "--filters", "--path", path, &id.to_string()]);
        let output = run(&mut git, None)?;
        if output.status.success() { Ok(output.stdout) } else { Err(cannot_tell(path)) }
    }

    /// Returns how files are checked out, of those of which attributes say something.
    pub(crate) fn attributes(&self, paths: &[String]) -> Result<HashMap<String, Attributes>> {
        let mut git = self.git(&["check-attr", "--stdin", "-z"]);
        let output = done(run(git.args(ATTRIBUTES), Some(paths.join("\0").as_bytes()))?)?;
        let text = String::from_utf8_lossy(&output);
        let (mut fields, mut found) = (text.split('\0'), HashMap::<String, Attributes>::new());
        while let (Some(path), Some(name), Some(state)) = (fields.next(), fields.next(), fields.next()) {
            // A filter that is only set or taken away is none.
            if matches!((name, state), (_, "unspecified" | "unset") | ("filter", "set") | ("eol", "lf")) {
                continue;
            }
            let one = found.entry(path.to_owned()).or_default();
            match name {
                "filter" => one.filter = Some(state.to_owned()),
                name => {
                    one.converts = true;
                    one.has_ident |= name == "ident" && state == "set";
                }
            }
        }
        Ok(found)
    }

    /// Returns where the rule stands by which git leaves a path alone, as `.gitignore:3`.
    pub(crate) fn ignored(&self, path: &str) -> Option<String> {
        let mut git = self.git(&["check-ignore", "--no-index", "--stdin", "-z", "-v"]);
        let output = run(&mut git, Some(path.as_bytes())).ok()?;
        let rule = String::from_utf8(output.stdout).ok()?;
        let mut fields = rule.split('\0');
        let (file, line, pattern) = (fields.next()?, fields.next()?, fields.next()?);
        (!pattern.starts_with('!')).then(|| format!("{file}:{line}"))
    }

    fn git(&self, args: &[&str]) -> Command {
        let mut git = isolated();
        let top = self.scratch.path();
        git.current_dir(top).env("GIT_DIR", top.join(".git")).env("GIT_WORK_TREE", top).args(args);
        git
    }
}

fn cannot_tell(path: &str) -> Failure {
    Failure::new(format!("cannot determine how git checks out `{path}` with its attributes"))
        .hint("rename it, or remove its attributes in `.gitattributes`")
}

/// Returns a path that leads nowhere but below the top: a tree may hold any name.
fn safe(path: &str) -> Result<&str> {
    let is_safe =
        |name: &str| !matches!(name, "" | "." | "..") && !name.eq_ignore_ascii_case(".git") && !name.contains('\0');
    if path.split('/').all(is_safe) {
        Ok(path)
    } else {
        Err(Failure::new(format!("git cannot check out the path `{}`", shown(path))))
    }
}

/// A git that knows of no configuration and of no repository.
fn isolated() -> Command {
    let mut command = command();
    untied(&mut command);
    command
        .env_remove("GIT_CONFIG_PARAMETERS")
        .env_remove("GIT_CONFIG_COUNT")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .args(["-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null"])
        .args(["-c", "core.quotePath=false", "-c", "core.ignoreCase=false"])
        .args(["-c", "core.autocrlf=false", "-c", "core.eol=lf"]);
    command
}

/// Makes an empty repository of a directory.
fn init(directory: &Path, hash: gix::hash::Kind) -> io::Result<()> {
    let mut git = isolated();
    git.args(["init", "--quiet", "--template=", "--object-format", &hash.to_string()]).arg(directory);
    let output = run(&mut git, None).map_err(io::Error::other)?;
    if output.status.success() { Ok(()) } else { Err(io::Error::other(said(&output))) }
}
