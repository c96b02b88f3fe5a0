//! Proof that a run left a repository as it was.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use git_kustomize_localize::seams::record::sha256_hex;

use super::Repo;

/// Everything about a repository that a user would notice if it changed.
///
/// It is read from the files, because a process for each part is most of the time of a test that asks often. git is
/// asked only about refs in a reftable, and about objects that have changed. What `git status` says follows from it.
///
/// Compare two of them with `assert_eq!`, or with [`State::assert_same`], which prints only what
/// differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct State(BTreeMap<&'static str, String>);

impl State {
    /// Returns the state of `repo`, without changing it: not even the index is refreshed.
    pub(crate) fn of(repo: &Repo) -> State {
        let git = GitDirectory::of(repo.path());
        let mut names: Vec<String> = fs::read_dir(&git.own)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        // Builds may be remembered there whenever something is built.
        names.retain(|name| name != "kustomize-localize");
        names.sort();
        let refs = if git.common.join("reftable").is_dir() {
            repo.git(&["for-each-ref", "--format=%(objectname)\t%(refname)"])
        } else {
            let refs = git.with_reflogs().into_iter();
            refs.map(|(name, value)| format!("{value}\t{name}\n")).collect()
        };
        let settings = ["config", "config.worktree", "info/sparse-checkout"];
        let settings = settings.map(|name| {
            let place = if name == "config" { &git.common } else { &git.own };
            digest(&place.join(name))
        });
        State(BTreeMap::from([
            ("refs", refs),
            ("HEAD", fs::read_to_string(git.own.join("HEAD")).unwrap()),
            ("configuration", settings.join("\n")),
            ("info", listing(&git.common.join("info"))),
            ("index", digest(&git.own.join("index"))),
            ("shallow", digest(&git.common.join("shallow"))),
            ("modules", git.modules()),
            ("fsck", fsck(repo, &git.common.join("objects"))),
            // Locks, FETCH_HEAD, MERGE_HEAD and the like show up here.
            ("git directory", names.join("\n")),
            ("files", listing(repo.path())),
        ]))
    }

    /// Returns this state as if the ref `name` (as `refs/heads/x`) did not exist.
    pub(crate) fn without_ref(mut self, name: &str) -> State {
        let suffix = format!("\t{name}");
        let refs = self.0.get_mut("refs").unwrap();
        *refs = refs.split_inclusive('\n').filter(|line| !line.trim_end().ends_with(&suffix)).collect();
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
                writeln!(differences, "{part} before:\n{before}\n{part} after:\n{after}").unwrap();
            }
        }
        assert!(differences.is_empty(), "the repository changed\n{differences}");
        // A part that only `after` has differs, too.
        assert_eq!(self, after);
    }
}

/// Where git keeps what belongs to one working tree, and what all those of a repository share.
pub(super) struct GitDirectory {
    pub(super) own: PathBuf,
    common: PathBuf,
}

impl GitDirectory {
    /// Finds it as git does: from `path` upwards.
    #[track_caller]
    pub(super) fn of(path: &Path) -> GitDirectory {
        let found = path.ancestors().find_map(|directory| {
            let inside = directory.join(".git");
            if let Ok(text) = fs::read_to_string(&inside) {
                let place = text.strip_prefix("gitdir: ").unwrap();
                return Some(directory.join(place.trim_end()));
            }
            let is_bare = || directory.join("objects").is_dir() && directory.join("HEAD").is_file();
            let found = inside.is_dir().then_some(inside);
            found.or_else(|| is_bare().then(|| directory.to_owned()))
        });
        let own = found.unwrap_or_else(|| panic!("no repository at {}", path.display()));
        let common = match fs::read_to_string(own.join("commondir")) {
            Ok(place) => own.join(place.trim_end()),
            Err(_) => own.clone(),
        };
        GitDirectory { own, common }
    }

    /// Returns every ref with its object, or what else its file holds.
    fn refs(&self) -> BTreeMap<String, String> {
        let packed = fs::read_to_string(self.common.join("packed-refs")).unwrap_or_default();
        let packed = packed.lines().filter_map(|line| line.split_once(" refs/"));
        let mut refs: BTreeMap<String, String> =
            packed.map(|(id, name)| (format!("refs/{name}"), id.to_owned())).collect();
        // A ref in a file of its own counts, not a packed one of that name. Some refs belong to a worktree.
        for top in [&self.common, &self.own] {
            each_file(&top.join("refs"), &mut |path| {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                let text = fs::read_to_string(path).unwrap();
                refs.insert(name, text.trim_end().to_owned());
            });
        }
        refs
    }

    /// The same with the digest of what is logged of each.
    fn with_reflogs(&self) -> BTreeMap<String, String> {
        let mut refs = self.refs();
        for top in [&self.common, &self.own] {
            let top = top.join("logs");
            each_file(&top, &mut |path| {
                let name = path.strip_prefix(&top).unwrap().display().to_string();
                let value = refs.remove(&name).unwrap_or_default();
                refs.insert(name, format!("{value} {}", digest(path)));
            });
        }
        refs
    }

    /// The digests of HEAD and index of each submodule.
    fn modules(&self) -> String {
        let mut lines = String::new();
        each_file(&self.common.join("modules"), &mut |path| {
            // A log is also called HEAD, but has no objects beside it.
            let is_state = path.ends_with("HEAD") || path.ends_with("index");
            if is_state && path.with_file_name("objects").is_dir() {
                writeln!(lines, "{} {}", digest(path), path.display()).unwrap();
            }
        });
        lines
    }

    /// Returns the object of HEAD, or of a branch or tag; `None` for what only git can tell.
    pub(super) fn id(&self, name: &str) -> Option<String> {
        let refs = self.refs();
        let places = ["", "refs/tags/", "refs/heads/", "refs/remotes/"];
        let mut text = match name {
            "HEAD" => fs::read_to_string(self.own.join("HEAD")).ok()?,
            name => places.iter().find_map(|place| refs.get(&format!("{place}{name}")).cloned())?,
        };
        if let Some(to) = text.strip_prefix("ref: ") {
            text = refs.get(to.trim_end())?.clone();
        }
        let id = text.trim_end();
        let is_id = id.len() >= 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| id.to_owned())
    }
}

/// What is wrong in the repository; nothing as long as it has the objects that it had when it was first looked at. An
/// object is known by its path and size.
fn fsck(repo: &Repo, objects: &Path) -> String {
    let mut names = String::new();
    each_file(objects, &mut |path| {
        let length = fs::symlink_metadata(path).unwrap().len();
        writeln!(names, "{length} {}", path.display()).unwrap();
    });
    repo.sandbox().looked_at(objects, names, || {
        let output = repo.fsck();
        // With status 0 it only advises.
        match output.status {
            0 => String::new(),
            status => format!("{}{}[{status}]", output.stdout, output.stderr),
        }
    })
}

fn listing(top: &Path) -> String {
    let lines = files(top).into_iter();
    lines.map(|(path, what)| format!("{what} {path}\n")).collect()
}

/// Returns mode and digest (or link text) of everything below a directory but for git's own, by path. The path of a
/// directory ends with a slash.
pub(crate) fn files(top: &Path) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    list(top, top, &mut found);
    found
}

fn list(top: &Path, directory: &Path, found: &mut BTreeMap<String, String>) {
    for path in sorted(directory) {
        let name = path.strip_prefix(top).unwrap().display().to_string();
        let metadata = fs::symlink_metadata(&path).unwrap();
        if name == ".git" {
            continue;
        } else if metadata.is_dir() {
            found.insert(format!("{name}/"), String::new());
            list(top, &path, found);
        } else if metadata.is_symlink() {
            let target = fs::read_link(&path).unwrap();
            found.insert(name, format!("link {}", target.display()));
        } else {
            let mode = metadata.permissions().mode();
            found.insert(name, format!("{mode:o} {}", digest(&path)));
        }
    }
}

/// Calls `look` with every file and link below a directory, in order.
pub(crate) fn each_file(directory: &Path, look: &mut dyn FnMut(&Path)) {
    for path in sorted(directory) {
        if fs::symlink_metadata(&path).unwrap().is_dir() {
            each_file(&path, look);
        } else {
            look(&path);
        }
    }
}

/// Returns what is in a directory; nothing is in one that does not exist.
fn sorted(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten();
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

/// Returns the SHA-256 of a file in hexadecimal, or `absent`.
fn digest(path: &Path) -> String {
    fs::read(path).map_or("absent".to_owned(), |bytes| sha256_hex(&bytes))
}
