//! One git repository with a working tree.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use git_kustomize_localize::seams::record::{Lock, Mode, StoredFile, sha256_hex};

use super::schema::validate;
use super::state::GitDirectory;
use super::{Output, Running, Sandbox, State, files};

/// A repository in a [`Sandbox`].
pub(crate) struct Repo {
    sandbox: Sandbox,
    path: PathBuf,
    /// The files for which all was locked.
    locked: Mutex<Option<BTreeMap<String, String>>>,
}

impl Repo {
    /// Returns what stands at `path` already.
    pub(crate) fn new(sandbox: &Sandbox, path: PathBuf) -> Repo {
        Repo { sandbox: sandbox.clone(), path, locked: Mutex::default() }
    }

    pub(crate) fn sandbox(&self) -> &Sandbox {
        &self.sandbox
    }

    /// Returns the top of the working tree.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directory that git keeps for this working tree.
    pub(crate) fn git_directory(&self) -> PathBuf {
        GitDirectory::of(&self.path).own
    }

    /// Runs `git` at the top of the working tree and returns its standard output.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.sandbox.git(&self.path, args)
    }

    /// Runs `git` at the top of the working tree, whatever comes of it.
    pub(crate) fn try_git(&self, args: &[&str]) -> Output {
        self.sandbox.try_git(&self.path, args)
    }

    /// Runs the program under test at the top of the working tree. For `branch`, which resolves nothing, what is remote
    /// is locked before.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> Output {
        if args.first() == Some(&"branch") {
            self.lock();
        }
        self.run_as_is(args)
    }

    /// Runs the program, without locking anything before.
    #[track_caller]
    pub(crate) fn run_as_is(&self, args: &[&str]) -> Output {
        self.sandbox.run(&self.path, args)
    }

    /// Locks what is remote, as far as it can be resolved, and commits the lock if that changed it. Does nothing if all
    /// was locked before and no file that may have a reference has changed since: many tests call this for each run.
    #[track_caller]
    pub(crate) fn lock(&self) {
        let now = || {
            let mut all = files(&self.path);
            all.retain(|path, _| path != "README.md" && !path.ends_with("config.yaml"));
            Some(all)
        };
        let mut locked = self.locked.lock().unwrap();
        if *locked != now() {
            let is_all = self.lock_anew().status == 0;
            *locked = now().filter(|_| is_all);
        }
    }

    /// Runs `lock`, and commits the lock if it is not the one of HEAD. There is none if nothing is remote.
    #[track_caller]
    fn lock_anew(&self) -> Output {
        const LOCK: &str = "kustomize-localize.lock";
        let output = self.run_as_is(&["lock"]);
        let Ok(lock) = fs::read_to_string(self.path.join(LOCK)) else {
            return output;
        };
        let as_json: serde_json::Value = serde_yaml::from_str(&lock).unwrap();
        validate(include_str!("../../../src/record/lock/schema.json"), &as_json.to_string());
        let held = self.try_git(&["cat-file", "blob", &format!("HEAD:{LOCK}")]);
        if held.status != 0 || held.stdout != lock {
            self.git(&["add", "-f", "--", LOCK]);
            self.git(&["commit", "--quiet", "-m", "lock", "--", LOCK]);
        }
        output
    }

    /// Runs the program, which must change nothing.
    #[track_caller]
    pub(crate) fn run_unchanged(&self, args: &[&str]) -> Output {
        let before = self.state();
        let output = self.run_as_is(args);
        before.assert_same(&self.state());
        output
    }

    /// Starts the program under test at the top of the working tree.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        self.sandbox.start(&self.path, args)
    }

    /// Writes a file, and the directories it needs.
    #[track_caller]
    pub(crate) fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.prepare(path);
        fs::write(path, contents).unwrap();
    }

    /// Writes a file that can be executed.
    #[track_caller]
    pub(crate) fn write_executable(&self, path: &str, contents: impl AsRef<[u8]>) {
        self.write(path, contents);
        let mode = fs::Permissions::from_mode(0o755);
        fs::set_permissions(self.path.join(path), mode).unwrap();
    }

    /// Makes a script one of the hooks of git.
    pub(crate) fn hook(&self, name: &str, script: &str) {
        let hook = self.git_directory().join("hooks").join(name);
        self.write_executable(hook.to_str().unwrap(), script);
    }

    /// Makes `path` a symbolic link with this text.
    #[track_caller]
    pub(crate) fn symlink(&self, path: &str, target: &str) {
        std::os::unix::fs::symlink(target, self.prepare(path)).unwrap();
    }

    /// Removes a file or a link from the working tree.
    #[track_caller]
    pub(crate) fn remove(&self, path: &str) {
        fs::remove_file(self.path.join(path)).unwrap();
    }

    /// Returns the text of a file in the working tree.
    #[track_caller]
    pub(crate) fn read(&self, path: &str) -> String {
        let path = self.path.join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
    }

    /// Commits the whole working tree, changed or not, and returns the id of the commit.
    #[track_caller]
    pub(crate) fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", message]);
        self.id("HEAD")
    }

    /// Commits a configuration.
    pub(crate) fn decide(&self, text: &str) {
        self.write(".kustomize-localize", text);
        self.commit("configuration");
    }

    /// Writes and commits files.
    pub(crate) fn commit_files(&self, files: &[(&str, &str)]) {
        for (path, text) in files {
            self.write(path, text);
        }
        self.commit("files");
    }

    /// Stages everything, and writes a lock that lists each file of `localized-files` and says nothing else.
    #[track_caller]
    pub(crate) fn list_localized(&self) {
        self.git(&["add", "--all"]);
        let listed = self.git(&["ls-files", "-z", "--stage"]);
        let mut lock = Lock::default();
        for line in listed.split_terminator('\0') {
            let (entry, path) = line.split_once('\t').unwrap();
            if entry.starts_with("100") && path.contains("/localized-files/") {
                lock.files.push(StoredFile {
                    path: path.to_owned(),
                    sha256: sha256_hex(&fs::read(self.path().join(path)).unwrap()),
                    mode: if entry.starts_with("100755") { Mode::Executable } else { Mode::Plain },
                    ..StoredFile::default()
                });
            }
        }
        self.write("kustomize-localize.lock", lock.render().unwrap());
    }

    /// Runs `git fsck`, without the two processes that it starts for files that are not here.
    pub(crate) fn fsck(&self) -> Output {
        let without = ["-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false"];
        self.try_git(&[&without[..], &["fsck", "--strict", "--no-dangling", "--no-progress"]].concat())
    }

    /// Returns the object id of `revision`.
    #[track_caller]
    pub(crate) fn id(&self, revision: &str) -> String {
        let known = GitDirectory::of(&self.path).id(revision);
        known.unwrap_or_else(|| self.git(&["rev-parse", "--verify", "--end-of-options", revision]))
    }

    /// Returns the parents that a commit names, also those that are not here.
    #[track_caller]
    pub(crate) fn parents(&self, revision: &str) -> Vec<String> {
        let commit = self.git(&["cat-file", "commit", revision]);
        let (head, _) = commit.split_once("\n\n").unwrap();
        let parents = head.lines().filter_map(|line| line.strip_prefix("parent "));
        parents.map(str::to_owned).collect()
    }

    /// Returns the message of a commit.
    #[track_caller]
    pub(crate) fn message(&self, revision: &str) -> String {
        self.git(&["log", "-1", "--format=%B", revision])
    }

    /// Returns a linked worktree in the directory `name` of the sandbox.
    #[track_caller]
    pub(crate) fn linked(&self, name: &str, options: &[&str]) -> Repo {
        let path = self.sandbox.path(name);
        let add = ["worktree", "add", "--quiet", path.to_str().unwrap()];
        self.git(&[&add, options].concat());
        Repo::new(&self.sandbox, path)
    }

    /// Returns the text of `path` in `revision`.
    #[track_caller]
    pub(crate) fn show(&self, revision: &str, path: &str) -> String {
        let output = self.try_git(&["cat-file", "blob", &format!("{revision}:{path}")]);
        output.success().stdout.clone()
    }

    /// Returns the mode and path of every file in `revision`, as `100644 a/b`.
    #[track_caller]
    pub(crate) fn files(&self, revision: &str) -> Vec<String> {
        let listing = self.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "--end-of-options", revision]);
        listing.lines().map(str::to_owned).collect()
    }

    /// Returns everything about the repository that a run should not have changed.
    pub(crate) fn state(&self) -> State {
        State::of(self)
    }

    fn prepare(&self, path: &str) -> PathBuf {
        let path = self.path.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }
}
