//! Our own executable in the place of git, for a build of the original: it answers what kustomize asks from what
//! this run has fetched, and nothing else.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::disk;
use crate::graph::Repository;
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::os::interrupt::unusable;
use crate::tree::Tree as _;
use crate::tree::disk::DiskTree;

/// Where the manifest is. Without this variable, a program called `git` is not this fake.
pub(crate) const VARIABLE: &str = "KUSTOMIZE_LOCALIZE_STAND_IN";
/// What was fetched: one commit of a repository, checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Upstream {
    /// The clone spec without secrets.
    url: String,
    /// The ref as written; none for HEAD.
    reference: Option<String>,
    /// Whether submodules are part of it.
    submodules: bool,
    /// The commit.
    commit: String,
    /// Where its files are.
    directory: PathBuf,
}

impl Upstream {
    pub(super) fn new(repository: &Repository, directory: PathBuf) -> Upstream {
        let version = &repository.version;
        Upstream {
            url: version.url.shown(),
            reference: version.reference.clone(),
            submodules: version.submodules,
            commit: repository.commit.clone(),
            directory,
        }
    }
}

/// Writes the manifest of what was fetched into a directory, and returns where it is.
pub(super) fn write(upstreams: &[Upstream], directory: &Path) -> Result<PathBuf> {
    let place = directory.join("fetched.json");
    let text = serde_json::to_vec(upstreams)
        .map_err(|error| Failure::new(format!("the manifest cannot be written: {error}")))?;
    fs::write(&place, text).map_err(|error| unusable(&error))?;
    Ok(place)
}

/// Puts our executable into `directory` as `git`.
pub(super) fn link(directory: &Path) -> io::Result<()> {
    let program = std::env::current_exe()?;
    let place = directory.join(format!("git{}", std::env::consts::EXE_SUFFIX));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(program, place)
    }
    #[cfg(not(unix))]
    {
        fs::hard_link(&program, &place).or_else(|_| fs::copy(&program, &place).map(drop))
    }
}

/// Stands in for git, if that is what we were started for.
pub(crate) fn run() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = PathBuf::from(arguments.next()?);
    let manifest = PathBuf::from(std::env::var_os(VARIABLE)?);
    if name.file_stem()? != "git" {
        return None;
    }
    let arguments: Vec<String> = arguments.map(|argument| argument.to_string_lossy().into_owned()).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match answer(&manifest, Path::new("."), &arguments) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(reason) => {
            let call = redact::text(&format!("git {}", arguments.join(" "))).replace(char::is_control, " ");
            let _ = writeln!(io::stderr(), "fatal: `{call}`: {reason}");
            Some(ExitCode::from(128))
        }
    }
}

/// Does what one call asks for, in the directory `clone`. These are all the calls that kustomize makes (4.0 to
/// 5.8, `api/internal/git/cloner.go`). The clone remembers the URL of `origin`, and what was fetched from where.
fn answer(manifest: &Path, clone: &Path, arguments: &[&str]) -> Result<(), String> {
    let git = clone.join(".git");
    let said = |error: io::Error| error.to_string();
    let store = |name: &str, text: &str| fs::write(git.join(name), text).map_err(|_| "not a git repository".to_owned());
    match arguments {
        ["init"] => fs::create_dir_all(&git).map_err(said),
        ["remote", "add", "origin", url] => store("origin", url),
        ["fetch", "--depth=1", url, reference] => {
            let origin = fs::read_to_string(git.join("origin")).unwrap_or_default();
            let url = if *url == "origin" { &origin } else { *url };
            if found(manifest, url, reference)?.is_empty() {
                return Err(format!("{} at {reference} was not fetched", redact::url(url)));
            }
            store("fetched", &format!("{url}\n{reference}"))
        }
        ["checkout", "FETCH_HEAD"] | ["submodule", "update", "--init", "--recursive"] => {
            let fetched = fs::read_to_string(git.join("fetched")).unwrap_or_default();
            let (url, reference) = fetched.split_once('\n').ok_or("nothing was fetched")?;
            // A commit without submodules also serves requests with them.
            let is_asked = |upstream: &Upstream| !upstream.submodules || arguments[0] == "submodule";
            let mut found = found(manifest, url, reference)?.into_iter().filter(is_asked);
            found.try_for_each(|upstream| copy(&upstream.directory, clone).map_err(|failure| failure.message))
        }
        _ => Err("not answered here".to_owned()),
    }
}

/// Returns what was fetched of a repository: with submodules, without them, or both. kustomize asks for `HEAD` where
/// no ref is named, and where that one is.
fn found(manifest: &Path, url: &str, reference: &str) -> Result<Vec<Upstream>, String> {
    let Ok(text) = fs::read(manifest) else {
        return Ok(Vec::new());
    };
    let mut found: Vec<Upstream> = serde_json::from_slice(&text).map_err(|error| format!("no manifest: {error}"))?;
    let url = redact::url(url);
    found.retain(|one| one.url == url && one.reference.as_deref().unwrap_or("HEAD") == reference);
    // Logins are not in the manifest: of two of them the call does not say which is meant.
    if found.iter().any(|one| one.commit != found[0].commit) {
        return Err(format!("{url} at {reference} was fetched as two commits"));
    }
    Ok(found)
}

/// Copies a directory with the links in it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let tree = DiskTree::of_directory(from, false)?;
    disk::write_temporary(&tree, tree.below("")?, None, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory with what was fetched from one repository, once and from two logins.
    fn fetched() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        let upstream = |commit: &str| Upstream {
            url: "https://h/o/r".to_owned(),
            reference: Some("v1".to_owned()),
            submodules: false,
            commit: commit.to_owned(),
            directory: top.path().join(commit),
        };
        for (name, commits) in [("manifest.json", &["1"][..]), ("two.json", &["1", "2"])] {
            let upstreams: Vec<Upstream> = commits.iter().map(|commit| upstream(commit)).collect();
            let written = write(&upstreams, top.path()).unwrap();
            fs::rename(written, top.path().join(name)).unwrap();
        }
        top
    }

    fn asked(top: &Path, manifest: &str, calls: &[&str]) -> Result<(), String> {
        let clone = top.join("clone");
        fs::remove_dir_all(&clone).ok();
        fs::create_dir(&clone).unwrap();
        calls.iter().try_for_each(|call| {
            let words: Vec<&str> = call.split(' ').collect();
            answer(&top.join(manifest), &clone, &words)
        })
    }

    #[test]
    fn requests_for_unfetched_repositories_fail() {
        let top = fetched();
        let begin = ["init", "remote add origin https://h/o/r"];
        for (call, reason) in [
            ("fetch --depth=1 https://h/o/r v2", "at v2 was not fetched"),
            ("fetch --depth=1 https://h/o/r HEAD", "at HEAD was not fetched"),
            ("fetch --depth=1 https://u:secret@h/o/x v1", "https://h/o/x at v1"),
            ("fetch https://h/o/r v1", "not answered here"),
            ("checkout FETCH_HEAD", "nothing was fetched"),
            ("clone https://h/o/r", "not answered here"),
            ("-c core.x=y fetch", "not answered here"),
        ] {
            let calls = [&begin[..], &[call]].concat();
            let error = asked(top.path(), "manifest.json", &calls).unwrap_err();
            assert!(error.contains(reason), "{call}: {error}");
            assert!(!error.contains("secret"), "{error}");
        }
        let error = asked(top.path(), "manifest.json", &["remote add origin https://h/o/r"]).unwrap_err();
        assert_eq!(error, "not a git repository");
        // Two logins saw two commits: which one is meant is unknown.
        let fetch = [&begin[..], &["fetch --depth=1 https://h/o/r v1"]].concat();
        let error = asked(top.path(), "two.json", &fetch).unwrap_err();
        assert!(error.contains("as two commits"), "{error}");
        assert!(asked(top.path(), "nowhere.json", &fetch).is_err());
    }
}
