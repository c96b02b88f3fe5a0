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
use std::path::{Path, PathBuf};

use git_kustomize_localize::seams::record::sha256_hex;

use crate::support::{OVERLAY, Output, Project, Repo, Running, Sandbox, base_of};

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_git-kustomize-localize");
/// What a run may change: everything that is not the user's.
const PLACES: [&str; 4] = ["work", "deployed", "cache", "tmp"];
/// How the names of what only a living run uses begin.
const TEMPORARY: [&str; 2] = ["fetching-", "kustomize-localize-tmp-"];

const COPY: &[&str] = &[OVERLAY[0], OVERLAY[1], OVERLAY[2], "--no-verify"];
const DISK: &[&str] = &[OVERLAY[0], OVERLAY[1], OVERLAY[2], "--no-verify", "--no-commit"];
const IN_PLACE: &[&str] = &["branch", "--no-verify"];
const WORKING_TREE: &[&str] = &["vendor", "--no-verify"];
const WORKTREE: &[&str] = &["branch", "--no-verify", "--worktree", "../deployed"];

/// A command line in a repository that can be put back to how it was before.
struct Stage {
    project: Project,
    args: &'static [&'static str],
    before: Facts,
    /// What an undisturbed run leaves; taken from the first one.
    after: RefCell<Option<Facts>>,
}

/// Files by their path: mode and digest.
type Files = BTreeMap<String, String>;

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
    /// A first run.
    fn new(args: &'static [&'static str]) -> Stage {
        Stage::of(project(), args)
    }

    /// One after another, with something new to localize.
    fn again(args: &'static [&'static str]) -> Stage {
        let project = project();
        project.work.run(args).success();
        if args == WORKING_TREE {
            project.work.commit("localized");
        }
        next_version(&project);
        Stage::of(project, args)
    }

    /// Takes the current state of a project for the beginning of each run.
    fn of(project: Project, args: &'static [&'static str]) -> Stage {
        let hooks = project.work.git_directory().join("hooks");
        fs::remove_dir_all(hooks).unwrap();
        let saved = project.sandbox.path("saved");
        fs::create_dir(&saved).unwrap();
        let places = PLACES.map(|place| project.sandbox.path(place));
        let there = places.iter().filter(|place| place.exists());
        let mut copy = project.sandbox.command("cp", &saved);
        Running::start(copy.arg("-a").args(there).arg(".")).wait().success();
        Stage { args, before: Facts::of(&project), after: RefCell::default(), project }
    }

    /// Whether it writes to the working tree.
    fn writes(&self) -> bool {
        let written = ["--no-commit", "vendor"];
        written.iter().any(|word| self.args.contains(word)) || !self.args.contains(&"--no-verify")
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
        Running::start(copy.args(["-a", "saved/.", "."])).wait().success();
    }

    fn run(&self) -> Output {
        self.project.work.run_as_is(self.args)
    }

    /// Runs it from the beginning, and ends it right before the effect of this number.
    fn end_at(&self, number: usize, name: &str) {
        eprintln!("ended at effect {number}: {name}");
        self.reset();
        self.end_from_here_at(number);
    }

    fn end_from_here_at(&self, number: usize) {
        const STOP: &str = "KUSTOMIZE_LOCALIZE_STOP_AT";
        self.sandbox().set(STOP, number.to_string());
        self.run().fails(-9);
        self.sandbox().unset(STOP);
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
        assert_eq!(self.temporary(), crate::support::NONE);
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
        if !self.writes() {
            assert!(files == before.files, "the working tree changed");
        }
        let paths: BTreeSet<&String> = before.files.keys().chain(after.files.keys()).collect();
        for path in paths {
            let now = files.remove(path);
            let ways = [before.files.get(path), after.files.get(path)];
            assert!(ways.contains(&now.as_ref()), "{path} is neither");
        }
        assert!(files.is_empty(), "{:?}", files.keys());
        let fsck = self.project.work.fsck();
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
            own += &format!("{name}: {}\n", sha256_hex(&bytes));
        }
        let deployed = project.sandbox.path("deployed");
        Facts {
            refs: work.git(&["for-each-ref"]),
            own,
            files: files(work.path()),
            deployed: deployed.join(".git").exists().then(|| {
                let repo = Repo::new(&project.sandbox, deployed.clone());
                let status = repo.try_git(&["status", "--porcelain", "--branch"]);
                let own = repo.try_git(&["for-each-ref", "refs/worktree/"]);
                let list = work.git(&["worktree", "list", "--porcelain"]);
                let told = format!("{}{}{list}", status.stdout, own.stdout);
                (files(&deployed), told)
            }),
        }
    }

    /// Asserts that these are the `expected` facts, but for what only a living run uses.
    #[track_caller]
    fn assert_same(&self, expected: &Facts, output: &Output) {
        let lasting = |facts: &Facts| {
            let mut facts = facts.clone();
            facts.files.retain(|path, _| !is_temporary(path));
            facts
        };
        assert_eq!(lasting(self), lasting(expected), "{output:?}");
    }
}

fn is_temporary(path: &str) -> bool {
    TEMPORARY.iter().any(|prefix| path.starts_with(prefix))
}

/// Returns mode and digest of every file below a directory, but for what git keeps.
fn files(top: &Path) -> Files {
    let mut found = crate::support::files(top);
    found.retain(|path, _| !path.ends_with('/'));
    found
}

/// A project of few and small files.
fn project() -> Project {
    let project = Project::new();
    project.work.git(&["rm", "-q", "-r", "other", "README.md"]);
    project.work.run_as_is(&["lock"]).success();
    project.work.commit("less");
    fs::remove_dir_all(project.sandbox.path("cache")).unwrap();
    project
}

/// Lets the source name the next version of its upstream.
fn next_version(project: &Project) {
    project.second_version();
    let base = "example/base/kustomization.yaml";
    project.work.write(base, base_of("v2"));
    project.work.run_as_is(&["lock"]).success();
    project.work.commit("v2");
}
