//! Applies the `.gitattributes` and `.gitignore` files of a tree to paths, without any configuration.

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::process::Command;

use super::{error_message, isolated, run, stdout_of};
use crate::message::failure::{Failure, Result, shown};
use crate::os::interrupt::{Scratch, unusable};

/// A scratch repository with only these files in its working tree.
#[derive(Debug)]
pub(crate) struct Checkout {
    scratch: Scratch,
    objects: gix::Repository,
}

/// How a file is checked out.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    /// The filter that converts it; `None` if there is none.
    pub filter: Option<String>,
    /// Whether git writes ids into it.
    pub has_ident: bool,
    /// Whether git may write other bytes than it stores, without a filter.
    pub converts: bool,
}

/// The attributes that matter to a checkout if `core.eol` is LF.
const ATTRIBUTES: [&str; 5] = ["filter", "ident", "eol", "crlf", "working-tree-encoding"];

impl Checkout {
    /// Makes a repository with these files. For a symlink the bytes are its text, as in an index.
    pub(crate) fn new(files: &[(String, Vec<u8>)], hash: gix::hash::Kind) -> Result<Self> {
        // git must read neither the working tree of this repository nor its `info` directory.
        let scratch = Scratch::new().map_err(unusable)?;
        init(scratch.path(), hash).map_err(unusable)?;
        let options = gix::open::Options::isolated().with(gix::sec::Trust::Full);
        let objects = gix::open_opts(scratch.path(), options);
        let objects = objects.map_err(unusable)?;
        for (path, bytes) in files {
            let disk_path = scratch.path().join(safe(path)?);
            let parent = disk_path.parent().unwrap_or(scratch.path());
            std::fs::create_dir_all(parent).and_then(|()| std::fs::write(&disk_path, bytes)).map_err(unusable)?;
        }
        Ok(Checkout { scratch, objects })
    }

    /// The bytes that a checkout writes for the file at `path`. Filters are not run.
    pub(crate) fn convert(&self, path: &str, bytes: &[u8]) -> Result<Vec<u8>> {
        // `cat-file --filters` converts objects, so the bytes become one.
        let id = self.objects.write_blob(bytes).map_err(|_| cannot_tell(path))?;
        let mut git = self.git(&["cat-file", "--filters", "--path", path, &id.to_string()]);
        let output = run(&mut git, None)?;
        if output.status.success() { Ok(output.stdout) } else { Err(cannot_tell(path)) }
    }

    /// The attributes by which each file is checked out. Files without attributes are missing in the result.
    pub(crate) fn attributes(&self, paths: &[String]) -> Result<HashMap<String, Attributes>> {
        let mut git = self.git(&["check-attr", "--stdin", "-z"]);
        let output = stdout_of(run(git.args(ATTRIBUTES), Some(paths.join("\0").as_bytes()))?)?;
        let text = String::from_utf8_lossy(&output);
        // git prints three fields for each path and attribute.
        let (mut fields, mut by_path) = (text.split('\0'), HashMap::<String, Attributes>::new());
        while let (Some(path), Some(name), Some(state)) = (fields.next(), fields.next(), fields.next()) {
            // `filter` without a name and `-filter` name no filter, so git runs none. `eol=lf` writes the stored bytes.
            if matches!((name, state), (_, "unspecified" | "unset") | ("filter", "set") | ("eol", "lf")) {
                continue;
            }
            let attributes = by_path.entry(path.to_owned()).or_default();
            match name {
                "filter" => attributes.filter = Some(state.to_owned()),
                name => {
                    attributes.converts = true;
                    attributes.has_ident |= name == "ident" && state == "set";
                }
            }
        }
        Ok(by_path)
    }

    /// The location of the rule by which git ignores a path, such as `.gitignore:3`; `None` if git does not ignore it,
    /// or cannot tell.
    pub(crate) fn ignore_rule(&self, path: &str) -> Option<String> {
        let mut git = self.git(&["check-ignore", "--no-index", "--stdin", "-z", "-v"]);
        let output = run(&mut git, Some(path.as_bytes())).ok()?;
        let rule = String::from_utf8(output.stdout).ok()?;
        let mut fields = rule.split('\0');
        // A pattern with `!` takes the path out again.
        let (file, line, pattern) = (fields.next()?, fields.next()?, fields.next()?);
        (!pattern.starts_with('!')).then(|| format!("{file}:{line}"))
    }

    /// git in the scratch repository.
    fn git(&self, args: &[&str]) -> Command {
        let mut git = converting();
        let top = self.scratch.path();
        git.current_dir(top).env("GIT_DIR", top.join(".git")).env("GIT_WORK_TREE", top).args(args);
        git
    }
}

/// The failure for a file that git could not convert.
fn cannot_tell(path: &str) -> Failure {
    Failure::new(format!("cannot determine how git checks out `{path}` with its attributes"))
        .hint("rename it, or remove its attributes in `.gitattributes`")
}

/// Rejects a path that could lead out of the top, or into `.git`.
fn safe(path: &str) -> Result<&str> {
    // A tree may contain any names.
    for name in path.split('/') {
        if matches!(name, "" | "." | "..") || name.eq_ignore_ascii_case(".git") || name.contains('\0') {
            return Err(Failure::new(format!("git cannot check out the path `{}`", shown(path))));
        }
    }
    Ok(path)
}

/// A git that reads no configuration, and converts files as this program demands.
fn converting() -> Command {
    let mut command = isolated();
    command
        .env("GIT_ATTR_NOSYSTEM", "1")
        .args(["-c", "core.attributesFile=/dev/null", "-c", "core.excludesFile=/dev/null"])
        .args(["-c", "core.quotePath=false", "-c", "core.ignoreCase=false"])
        .args(["-c", "core.autocrlf=false", "-c", "core.eol=lf"]);
    command
}

/// Makes an empty repository in a directory.
fn init(directory: &Path, hash: gix::hash::Kind) -> io::Result<()> {
    let mut git = converting();
    git.args(["init", "--quiet", "--template=", "--object-format", &hash.to_string()]).arg(directory);
    let output = run(&mut git, None).map_err(io::Error::other)?;
    if output.status.success() { Ok(()) } else { Err(io::Error::other(error_message(&output))) }
}
