//! Proof that a run left a repository as it was.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::Repo;

/// Everything about a repository that a user would notice if it changed.
///
/// Compare two of them with `assert_eq!`, or with [`State::assert_same`], which prints only what
/// differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State(BTreeMap<&'static str, String>);

impl State {
    /// Returns the state of `repo`, without changing it: not even the index is refreshed.
    pub(crate) fn of(repo: &Repo) -> State {
        let git = |args: &[&str]| {
            let output = repo.try_git(&[&["--no-optional-locks"], args].concat());
            format!("{}{}[{}]\n", output.stdout, output.stderr, output.status)
        };
        let kept = repo.git(&["rev-parse", "--absolute-git-dir", "--git-common-dir"]);
        let (directory, common) = kept.split_once('\n').unwrap();
        let [directory, common] = [directory, common].map(|place| repo.path().join(place));
        let mut names: Vec<String> = fs::read_dir(&directory)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        let mut files = String::new();
        list(repo.path(), repo.path(), &mut files);
        State(BTreeMap::from([
            ("refs", git(&["for-each-ref"])),
            ("HEAD", fs::read_to_string(directory.join("HEAD")).unwrap()),
            ("status", git(&["status", "--porcelain", "--ignored"])),
            // Read directly: a process for each is most of the time of a test that asks often.
            ("configuration", digest(&common.join("config"))),
            ("stashes", digest(&common.join("logs/refs/stash"))),
            ("index", digest(&directory.join("index"))),
            ("shallow", digest(&directory.join("shallow"))),
            (
                "fsck",
                git(&["fsck", "--strict", "--no-dangling", "--no-progress"]),
            ),
            // Locks, FETCH_HEAD, MERGE_HEAD and the like show up here.
            ("git directory", names.join("\n")),
            ("files", files),
        ]))
    }

    /// Returns this state as if the ref `name` (as `refs/heads/x`) did not exist.
    pub(crate) fn without_ref(mut self, name: &str) -> State {
        let suffix = format!("\t{name}");
        let refs = self.0.get_mut("refs").unwrap();
        *refs = refs
            .split_inclusive('\n')
            .filter(|line| !line.trim_end().ends_with(&suffix))
            .collect();
        self
    }

    /// Returns this state without one of its parts, as `files` or `git directory`.
    #[track_caller]
    pub(crate) fn without(mut self, part: &str) -> State {
        assert!(self.0.remove(part).is_some(), "no part {part:?}");
        self
    }

    /// Asserts that `after` is the same, and prints what is not.
    #[track_caller]
    pub(crate) fn assert_same(&self, after: &State) {
        let mut differences = String::new();
        for (part, before) in &self.0 {
            let after = after.0.get(part).map_or("(left out)", String::as_str);
            if before != after {
                writeln!(
                    differences,
                    "{part} before:\n{before}\n{part} after:\n{after}"
                )
                .unwrap();
            }
        }
        assert!(
            differences.is_empty(),
            "the repository changed\n{differences}"
        );
        assert_eq!(self, after);
    }
}

/// Appends mode, digest (or link text) and path of everything below `directory`.
fn list(top: &Path, directory: &Path, lines: &mut String) {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        let name = path.strip_prefix(top).unwrap().display();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if name.to_string() == ".git" {
            continue;
        } else if metadata.is_dir() {
            writeln!(lines, "{name}/").unwrap();
            list(top, &path, lines);
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            writeln!(lines, "link {} {name}", target.display()).unwrap();
        } else {
            let mode = metadata.permissions().mode();
            writeln!(lines, "{mode:o} {} {name}", digest(&path)).unwrap();
        }
    }
}

/// Returns the SHA-256 of a file in hexadecimal, or `absent`.
fn digest(path: &Path) -> String {
    let Ok(bytes) = fs::read(path) else {
        return "absent".to_owned();
    };
    let mut text = String::new();
    for byte in Sha256::digest(&bytes) {
        write!(text, "{byte:02x}").unwrap();
    }
    text
}
