//! Our own executable in the place of git, for a build of the original: it answers what kustomize asks from what
//! this run has fetched, and nothing else.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

use super::build_inputs::not_put;
use crate::message::failure::{Failure, Result};
use crate::message::redact;

/// Where the manifest is. Without this variable, a program called `git` is not this fake.
pub(crate) const VARIABLE: &str = "KUSTOMIZE_LOCALIZE_STAND_IN";
/// What a clone remembers between two calls.
const STATE: &str = "fake-git.json";

/// What was fetched.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Manifest {
    pub(super) upstreams: Vec<Upstream>,
}

/// One commit of a repository, checked out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Upstream {
    /// The clone spec without secrets.
    pub(super) url: String,
    /// The ref as written; none for HEAD.
    pub(super) reference: Option<String>,
    /// Whether submodules are part of it.
    pub(super) submodules: bool,
    /// The commit.
    pub(super) commit: String,
    /// Where its files are.
    pub(super) directory: PathBuf,
}

impl Manifest {
    pub(super) fn write(&self, place: &Path) -> Result<()> {
        let text = serde_json::to_vec(self)
            .map_err(|error| Failure::new(format!("the manifest cannot be written: {error}")))?;
        fs::write(place, text).map_err(|error| not_put(&error))
    }
}

/// What a clone knows of where it comes from.
#[derive(Debug, Default, Serialize, Deserialize)]
struct State {
    url: Option<String>,
    /// What was fetched, as it was requested: `HEAD` where no ref was named. None before the fetch.
    fetched: Option<String>,
}

/// The file that lists the calls that could not be answered.
fn complaints(manifest: &Path) -> PathBuf {
    manifest.with_extension("unknown")
}

/// Returns the first call that could not be answered, if any.
pub(super) fn unknown(manifest: &Path) -> Option<String> {
    let text = fs::read_to_string(complaints(manifest)).ok()?;
    text.lines().next().map(str::to_owned)
}

/// Puts our executable into `directory` as `git`.
pub(super) fn link(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
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
            let call = redact::text(&format!("git {}", arguments.join(" ")));
            let line = format!("`{call}`: {reason}\n").replace(char::is_control, " ");
            let complaint = fs::File::options()
                .create(true)
                .append(true)
                .open(complaints(&manifest))
                .and_then(|mut file| file.write_all(format!("{}\n", line.trim_end()).as_bytes()));
            drop(complaint);
            let _ = writeln!(io::stderr(), "fatal: {reason}");
            Some(ExitCode::from(128))
        }
    }
}

/// Does what one call asks for, in the directory `clone`. These are all the calls that kustomize makes (4.0 to
/// 5.8, `api/internal/git/cloner.go`).
fn answer(manifest: &Path, clone: &Path, arguments: &[&str]) -> Result<(), String> {
    let git = clone.join(".git");
    match arguments {
        ["init"] => fs::create_dir_all(&git).map_err(|error| error.to_string()),
        ["remote", "add", "origin", url] => {
            let state = State { url: Some((*url).to_owned()), fetched: None };
            store(&git, &state)
        }
        ["fetch", "--depth=1", url, reference] => {
            let mut state = load(&git)?;
            if *url != "origin" {
                state.url = Some((*url).to_owned());
            }
            let url = state.url.clone().unwrap_or_default();
            if found(manifest, &url, reference)?.is_empty() {
                let url = redact::url(&url);
                return Err(format!("{url} at {reference} was not fetched"));
            }
            state.fetched = Some((*reference).to_owned());
            store(&git, &state)
        }
        ["checkout", "FETCH_HEAD"] => check_out(manifest, clone, &git, false),
        ["submodule", "update", "--init", "--recursive"] => check_out(manifest, clone, &git, true),
        _ => Err("not answered here".to_owned()),
    }
}

fn check_out(manifest: &Path, clone: &Path, git: &Path, submodules: bool) -> Result<(), String> {
    let state = load(git)?;
    let (Some(url), Some(reference)) = (state.url, state.fetched) else {
        return Err("nothing was fetched".to_owned());
    };
    for upstream in found(manifest, &url, &reference)? {
        // A commit without submodules also serves requests with them.
        if !upstream.submodules || submodules {
            copy(&upstream.directory, clone).map_err(|error| error.to_string())?;
        }
    }
    Ok(())
}

/// Returns what was fetched of a repository: with submodules, without them, or both. kustomize asks for `HEAD` where
/// no ref is named, and where that one is.
fn found(manifest: &Path, url: &str, reference: &str) -> Result<Vec<Upstream>, String> {
    let text = fs::read(manifest).map_err(|error| format!("no manifest: {error}"))?;
    let manifest: Manifest = serde_json::from_slice(&text).map_err(|error| format!("no manifest: {error}"))?;
    let url = redact::url(url);
    let found: Vec<Upstream> = manifest
        .upstreams
        .into_iter()
        .filter(|upstream| {
            let named = upstream.reference.as_deref().unwrap_or("HEAD");
            upstream.url == url && named == reference
        })
        .collect();
    // Logins are not in the manifest: of two of them the call does not say which is meant.
    if found.iter().any(|one| one.commit != found[0].commit) {
        return Err(format!("{url} at {reference} was fetched as two commits"));
    }
    Ok(found)
}

fn load(git: &Path) -> Result<State, String> {
    let text = fs::read(git.join(STATE)).map_err(|_| "not a git repository".to_owned())?;
    serde_json::from_slice(&text).map_err(|error| error.to_string())
}

fn store(git: &Path, state: &State) -> Result<(), String> {
    let text = serde_json::to_vec(state).map_err(|error| error.to_string())?;
    fs::write(git.join(STATE), text).map_err(|error| error.to_string())
}

/// Copies a directory with the links in it. What is there already stays.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let mut todo = vec![(from.to_owned(), to.to_owned())];
    while let Some((from, to)) = todo.pop() {
        fs::create_dir_all(&to)?;
        for entry in fs::read_dir(&from)? {
            let entry = entry?;
            let place = to.join(entry.file_name());
            let kind = entry.file_type()?;
            if kind.is_dir() {
                todo.push((entry.path(), place));
            } else if place.symlink_metadata().is_err() {
                #[cfg(unix)]
                if kind.is_symlink() {
                    std::os::unix::fs::symlink(fs::read_link(entry.path())?, &place)?;
                    continue;
                }
                fs::copy(entry.path(), &place)?;
            }
        }
    }
    Ok(())
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
            let upstreams = commits.iter().map(|commit| upstream(commit)).collect();
            Manifest { upstreams }.write(&top.path().join(name)).unwrap();
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
        let error = asked(top.path(), "manifest.json", &["checkout FETCH_HEAD"]).unwrap_err();
        assert_eq!(error, "not a git repository");
        // Two logins saw two commits: which one is meant is unknown.
        let fetch = [&begin[..], &["fetch --depth=1 https://h/o/r v1"]].concat();
        let error = asked(top.path(), "two.json", &fetch).unwrap_err();
        assert!(error.contains("as two commits"), "{error}");
        assert!(asked(top.path(), "nowhere.json", &fetch).is_err());
    }
}
