//! Ended at any moment, and many at once: the repository is as before or done, and the next run does not stumble.
//!
//! [`at_each_failpoint`] ends a run right before each of its effects: the program announces them, and a build with
//! debug assertions ends at the one whose number `KUSTOMIZE_LOCALIZE_STOP_AT` holds and names them all in the file
//! `KUSTOMIZE_LOCALIZE_FAILPOINTS`. [`at_random`] ends runs at random moments. [`at_once`] lets runs meet.

mod at_each_failpoint;
mod at_once;
mod at_random;
mod swept;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::support::{Output, Project, Repo, Running, Sandbox, base_of};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_git-kustomize-localize");
/// What a run may change: everything that is not the user's.
const PLACES: [&str; 4] = ["work", "deployed", "cache", "tmp"];
/// How the names of what only a living run uses begin.
const TEMPORARY: [&str; 3] = [
    "fetching-",
    ".kustomize-localize-",
    "kustomize-localize-tmp-",
];

/// A command line in a repository that can be put back to how it was before.
struct Stage {
    project: Project,
    args: Vec<String>,
    /// Whether it writes to the working tree.
    writes: bool,
    before: Facts,
    /// What an undisturbed run leaves; taken from the first one.
    after: RefCell<Option<Facts>>,
}

/// Files by their path: mode and bytes.
type Files = BTreeMap<String, (u32, Vec<u8>)>;

/// What a run may change, and what it may not.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Facts {
    refs: String,
    /// HEAD, index, configuration and stashes of the user.
    own: String,
    /// The working tree.
    files: Files,
    /// The linked worktree, if there is one: its files, its status, its branch.
    deployed: Option<(Files, String)>,
}

impl Stage {
    /// Takes the current state of a project for the beginning of each run.
    fn new(project: Project, args: &[&str]) -> Stage {
        let hooks = project.work.git_directory().join("hooks");
        fs::remove_dir_all(hooks).unwrap();
        let saved = project.sandbox.path("saved");
        fs::create_dir(&saved).unwrap();
        let places = PLACES.map(|place| project.sandbox.path(place));
        let there = places.iter().filter(|place| place.exists());
        let mut copy = project.sandbox.command("cp", &saved);
        Running::start(copy.arg("-a").args(there).arg("."))
            .wait()
            .success();
        Stage {
            args: args.iter().map(|arg| (*arg).to_owned()).collect(),
            writes: false,
            before: Facts::of(&project),
            after: RefCell::default(),
            project,
        }
    }

    fn sandbox(&self) -> &Sandbox {
        &self.project.sandbox
    }

    /// Puts repository, worktree, cache and temporary directory back.
    fn reset(&self) {
        for place in PLACES {
            let _ = fs::remove_dir_all(self.sandbox().path(place));
        }
        let mut copy = self.sandbox().command("cp", &self.sandbox().path(""));
        Running::start(copy.args(["-a", "saved/.", "."]))
            .wait()
            .success();
    }

    fn run(&self) -> Output {
        let args: Vec<&str> = self.args.iter().map(String::as_str).collect();
        self.project.work.run(&args)
    }

    /// Runs it undisturbed and returns the names of its effects.
    fn undisturbed(&self) -> Vec<String> {
        let list = self.sandbox().path("effects");
        let _ = fs::remove_file(&list);
        self.sandbox().set("KUSTOMIZE_LOCALIZE_FAILPOINTS", &list);
        self.run().success();
        self.sandbox().unset("KUSTOMIZE_LOCALIZE_FAILPOINTS");
        let after = Facts::of(&self.project);
        assert_eq!(after.own, self.before.own);
        assert_ne!(after, self.before, "it has no effect");
        assert_eq!(self.temporary(), [""; 0]);
        *self.after.borrow_mut() = Some(after);
        let effects = fs::read_to_string(list).unwrap();
        effects.lines().map(str::to_owned).collect()
    }

    /// Asserts that a run that was ended has left the state before it, or the one after.
    #[track_caller]
    fn assert_sound(&self) {
        let (now, before) = (Facts::of(&self.project), &self.before);
        let after = self.after.borrow();
        let after = after.as_ref().unwrap();
        let refs = [&before.refs, &after.refs];
        assert!(refs.contains(&&now.refs), "{}", now.refs);
        assert_eq!(now.own, before.own);
        let mut files = now.files;
        files.retain(|path, _| !is_temporary(path));
        if !self.writes {
            assert!(files == before.files, "the working tree changed");
        }
        let paths: BTreeSet<&String> = before.files.keys().chain(after.files.keys()).collect();
        for path in paths {
            let now = files.remove(path);
            let ways = [before.files.get(path), after.files.get(path)];
            assert!(ways.contains(&now.as_ref()), "{path} is neither");
        }
        assert!(files.is_empty(), "{:?}", files.keys());
        let fsck = ["fsck", "--strict", "--no-dangling", "--no-progress"];
        let fsck = self.project.work.try_git(&fsck);
        assert_eq!((fsck.status, fsck.stdout.as_str()), (0, ""), "{fsck:?}");
    }

    /// Runs it again, which must do what the undisturbed run did.
    #[track_caller]
    fn assert_next_run_succeeds(&self) {
        let output = self.run();
        output.success();
        let after = self.after.borrow();
        Facts::of(&self.project).assert_same(after.as_ref().unwrap(), &output);
    }

    /// Returns the paths of everything that only a living run uses, from the top of the sandbox.
    fn temporary(&self) -> Vec<String> {
        let mut found = Vec::new();
        let mut pending: Vec<PathBuf> = PLACES.map(|place| self.sandbox().path(place)).into();
        while let Some(directory) = pending.pop() {
            for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
                let path = entry.path();
                if is_temporary(&entry.file_name().to_string_lossy()) {
                    let top = self.sandbox().path("");
                    found.push(path.strip_prefix(top).unwrap().display().to_string());
                } else if entry.file_type().unwrap().is_dir() {
                    pending.push(path);
                }
            }
        }
        found.sort();
        found
    }

    /// Writes something else into every file that only a living run uses, and keeps up the pretence that it lives.
    fn poison(&self) -> Vec<File> {
        let mut alive = Vec::new();
        for place in self.temporary() {
            let place = self.sandbox().path(&place);
            let held = File::open(&place).unwrap();
            held.lock().unwrap();
            alive.push(held);
            for path in files(&place).into_keys() {
                let file = place.join(path);
                fs::remove_file(&file).unwrap();
                fs::write(file, "kind: Poison\n").unwrap();
            }
        }
        alive
    }
}

impl Facts {
    fn of(project: &Project) -> Facts {
        let work = &project.work;
        let directory = work.path().join(".git");
        let mut own = String::new();
        for name in ["HEAD", "index", "config", "logs/refs/stash", "MERGE_HEAD"] {
            let bytes = fs::read(directory.join(name)).unwrap_or_default();
            own.push_str(&format!("{name}: {bytes:?}\n"));
        }
        let deployed = project.sandbox.path("deployed");
        Facts {
            refs: work.git(&["for-each-ref"]),
            own,
            files: files(work.path()),
            deployed: deployed.join(".git").exists().then(|| {
                let repo = Repo::new(&project.sandbox, deployed.clone());
                let mut files = files(&deployed);
                files.remove(".git");
                let status = repo.try_git(&["status", "--porcelain", "--branch"]);
                let own = repo.try_git(&["for-each-ref", "refs/worktree/"]);
                let list = work.git(&["worktree", "list", "--porcelain"]);
                (files, format!("{}{}{list}", status.stdout, own.stdout))
            }),
        }
    }

    /// Asserts that these are the `expected` facts, and names those that are not.
    #[track_caller]
    fn assert_same(&self, expected: &Facts, output: &Output) {
        assert_eq!(self.refs, expected.refs, "{output:?}");
        assert_eq!(self.own, expected.own, "{output:?}");
        let names = |facts: &Facts| facts.files.keys().cloned().collect::<Vec<_>>();
        let without = |facts: &Facts| {
            let mut names = names(facts);
            names.retain(|name| !is_temporary(name));
            names
        };
        assert_eq!(without(self), without(expected), "{output:?}");
        for (path, expected) in &expected.files {
            assert!(self.files.get(path) == Some(expected), "{path}: {output:?}");
        }
        let status = |facts: &Facts| facts.deployed.as_ref().map(|(_, status)| status.clone());
        assert_eq!(status(self), status(expected), "{output:?}");
        assert!(self.deployed == expected.deployed, "{output:?}");
    }
}

fn is_temporary(path: &str) -> bool {
    TEMPORARY.iter().any(|prefix| path.starts_with(prefix))
}

/// Returns mode and bytes of every file below a directory, but for what git keeps.
fn files(top: &Path) -> Files {
    let mut found = BTreeMap::new();
    let mut pending = vec![top.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let (path, kind) = (entry.path(), entry.file_type().unwrap());
            if kind.is_dir() && entry.file_name() != ".git" {
                pending.push(path);
            } else if kind.is_file() {
                let name = path.strip_prefix(top).unwrap().display().to_string();
                let mode = entry.metadata().unwrap().permissions().mode();
                found.insert(name, (mode, fs::read(path).unwrap()));
            }
        }
    }
    found
}

/// A project of few and small files, with a worktree's directory in the arguments where they name one.
fn project() -> Project {
    let project = Project::new();
    project.work.git(&["rm", "-q", "-r", "other", "README.md"]);
    project.work.commit("less");
    project
}

/// Lets the source name the next version of its upstream.
fn next_version(project: &Project) {
    project.second_version();
    let base = "example/base/kustomization.yaml";
    project.work.write(base, base_of("v2"));
    project.work.commit("v2");
}

/// Returns the arguments that keep a worktree.
fn with_worktree(project: &Project) -> Vec<String> {
    let directory = project.sandbox.path("deployed");
    ["--in-place", "--no-verify", "--worktree"]
        .map(str::to_owned)
        .into_iter()
        .chain([directory.display().to_string()])
        .collect()
}
