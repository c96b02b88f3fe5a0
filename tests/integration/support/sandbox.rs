//! One directory and one environment, with nothing of the caller's in them.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use tempfile::TempDir;

use super::{Kustomize, Output, Repo, Running, Server, programs, schema, template};

/// The date of every commit, unless a test sets another: ids are then the same on every machine.
const DATE: &str = "2026-01-02T03:04:05Z";

/// What is taken from the caller: where programs are, and where coverage goes.
const INHERITED: [&str; 2] = ["PATH", "LLVM_PROFILE_FILE"];

/// A temporary directory with its own home, cache, git configuration and environment.
///
/// Clones are the same sandbox; it is removed with the last one.
#[derive(Clone)]
pub(crate) struct Sandbox(Arc<Inner>);

struct Inner {
    environment: Mutex<BTreeMap<OsString, OsString>>,
    /// What was said about a set of objects when it was last looked at, by its directory.
    looked_at: Mutex<BTreeMap<PathBuf, (String, String)>>,
    root: PathBuf,
    _directory: TempDir,
}

impl Sandbox {
    /// Returns an empty sandbox.
    ///
    /// `KUSTOMIZE_LOCALIZE_KEEP_SANDBOX=1` leaves the directory for a look at what a test did.
    pub(crate) fn new() -> Sandbox {
        let mut directory = TempDir::with_prefix(prefix()).unwrap();
        if env::var_os("KUSTOMIZE_LOCALIZE_KEEP_SANDBOX").is_some() {
            directory.disable_cleanup(true);
            eprintln!("sandbox: {}", directory.path().display());
        }
        let root = directory.path().canonicalize().unwrap();
        for name in ["home", "cache", "config", "tmp", "bin"] {
            fs::create_dir(root.join(name)).unwrap();
        }
        // git would start another process after every commit, to see whether it should tidy up.
        fs::write(root.join("gitconfig"), "[maintenance]\n\tauto = false\n").unwrap();
        let mut path = root.join("bin").into_os_string();
        path.push(":");
        path.push(programs::path());

        let mut environment = BTreeMap::new();
        for name in INHERITED {
            if let Some(value) = env::var_os(name) {
                environment.insert(name.into(), value);
            }
        }
        let sandbox = Sandbox(Arc::new(Inner {
            environment: Mutex::new(environment),
            looked_at: Mutex::default(),
            root,
            _directory: directory,
        }));
        for (name, directory) in [
            ("HOME", "home"),
            ("XDG_CACHE_HOME", "cache"),
            ("XDG_CONFIG_HOME", "config"),
            ("TMPDIR", "tmp"),
            ("GIT_CONFIG_GLOBAL", "gitconfig"),
            // A repository around the temporary directory must not be found.
            ("GIT_CEILING_DIRECTORIES", ""),
        ] {
            sandbox.set(name, sandbox.path(directory));
        }
        for (name, value) in [
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_AUTHOR_NAME", "A. Author"),
            ("GIT_AUTHOR_EMAIL", "author@example.com"),
            ("GIT_AUTHOR_DATE", DATE),
            ("GIT_COMMITTER_NAME", "C. Committer"),
            ("GIT_COMMITTER_EMAIL", "committer@example.com"),
            ("GIT_COMMITTER_DATE", DATE),
            ("TZ", "UTC"),
            ("LC_ALL", "C"),
            // A build of kustomize is short: it collects garbage for a quarter of its time, and needs not.
            ("GOGC", "off"),
            ("GOMEMLIMIT", "1GiB"),
        ] {
            sandbox.set(name, value);
        }
        sandbox.set("PATH", path);
        sandbox
    }

    /// Lets the program build with the real kustomize, so that it checks its builds. `None` when there is no kustomize:
    /// the calling test is skipped.
    pub(crate) fn builds(&self) -> Option<Kustomize> {
        let kustomize = Kustomize::find()?;
        self.set("KUSTOMIZE", kustomize.program());
        Some(kustomize)
    }

    /// Returns the absolute path of `relative` in the sandbox.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.0.root.join(relative)
    }

    /// Sets a variable for everything that is started from now on.
    pub(crate) fn set(&self, name: &str, value: impl AsRef<OsStr>) {
        let mut environment = self.0.environment.lock().unwrap();
        environment.insert(name.into(), value.as_ref().into());
    }

    /// Unsets a variable for everything that is started from now on.
    pub(crate) fn unset(&self, name: &str) {
        let mut environment = self.0.environment.lock().unwrap();
        environment.remove(OsStr::new(name));
    }

    /// Returns a command that has the environment of the sandbox and no other.
    pub(crate) fn command(&self, program: impl AsRef<OsStr>, directory: &Path) -> Command {
        let environment = self.0.environment.lock().unwrap();
        let path = environment.get(OsStr::new("PATH"));
        let mut command = Command::new(found(program.as_ref(), path));
        command.current_dir(directory).env_clear().envs(&*environment);
        command
    }

    /// Runs `git` in `directory` and returns its standard output without the last line end.
    #[track_caller]
    pub(crate) fn git(&self, directory: &Path, args: &[&str]) -> String {
        let output = self.try_git(directory, args);
        output.success();
        output.stdout.trim_end_matches('\n').to_owned()
    }

    /// Runs `git` in `directory`, whatever comes of it.
    pub(crate) fn try_git(&self, directory: &Path, args: &[&str]) -> Output {
        Running::start(self.command("git", directory).args(args)).wait()
    }

    /// Runs the program under test in `directory`. What it prints as JSON must be what its schema allows.
    #[track_caller]
    pub(crate) fn run(&self, directory: &Path, args: &[&str]) -> Output {
        let output = self.start(directory, args).wait();
        schema::assert_valid(args, &output.stdout);
        output
    }

    /// Starts the program under test in `directory`.
    pub(crate) fn start(&self, directory: &Path, args: &[&str]) -> Running {
        let mut command = self.command(super::program(), directory);
        Running::start(command.args(args).args(self.unverified(args)))
    }

    /// `--no-verify` for a command that would compare builds, in a sandbox without a program that builds: most tests
    /// are about something else, and without it nothing would be committed. `None` if `args` have an option that
    /// decides about builds, or one that commits nothing.
    fn unverified(&self, args: &[&str]) -> Option<&'static str> {
        const OTHERS: [&str; 17] = [
            "affected",
            "build",
            "check",
            "completion",
            "diff",
            "explain",
            "generate",
            "help",
            "hook",
            "init",
            "lock",
            "sbom",
            "status",
            "targets",
            "tree",
            "update",
            "verify",
        ];
        const SAID: [&str; 8] =
            ["--output", "--no-verify", "--no-commit", "--kustomize", "--build-arg", "--help", "-h", "--json"];
        let first = args.first().filter(|first| !OTHERS.contains(first) && !["vendor", "localize"].contains(first))?;
        let is_said = |one: &&str| SAID.iter().any(|said| one == said || one.starts_with(&format!("{said}=")));
        let environment = self.0.environment.lock().unwrap();
        let path = environment.get(OsStr::new("PATH"));
        let builds = ["kustomize", "kubectl"].iter().any(|one| found(OsStr::new(one), path).is_absolute());
        let is_named = environment.contains_key(OsStr::new("KUSTOMIZE"));
        (!first.starts_with('-') && !builds && !is_named && !args.iter().any(is_said)).then_some("--no-verify")
    }

    /// The repository `name`: a new one, without a commit and on branch `main`, unless there is one, which `git init`
    /// leaves as it is.
    pub(crate) fn repo(&self, name: &str) -> Repo {
        let path = self.path(name);
        fs::create_dir_all(&path).unwrap();
        let directory = path.join(".git");
        let make = || {
            self.git(&path, &["init", "--quiet", "-b", "main"]);
            // Where files can be fetched one by one, as from all large hosts.
            self.git(&path, &["config", "uploadpack.allowFilter", "true"]);
        };
        if directory.exists() {
            make();
        } else {
            self.once("init", &directory, make);
        }
        Repo::new(self, path)
    }

    /// Makes the repository `directory` with `make`, or copies what that made for `key` in a sandbox whose git has the
    /// same environment. Returns whether it is a copy: then the index does not know the files yet.
    pub(super) fn once(&self, key: &str, directory: &Path, make: impl FnOnce()) -> bool {
        let mut key = format!("{key}\n{}", fs::read_to_string(self.path("gitconfig")).unwrap());
        for (name, value) in &*self.0.environment.lock().unwrap() {
            if name.as_encoded_bytes().starts_with(b"GIT_") {
                writeln!(key, "{name:?}={value:?}").unwrap();
            }
        }
        let root = self.0.root.to_str().unwrap();
        template::once(key.replace(root, "."), directory, make)
    }

    /// What `look` says about the objects in a directory, whose files have these `names`. It is asked only if the names
    /// have changed since the last time; the first time nothing counts as wrong.
    pub(super) fn looked_at(&self, objects: &Path, names: String, look: impl FnOnce() -> String) -> String {
        let mut all = self.0.looked_at.lock().unwrap();
        match all.get(objects) {
            Some((known, said)) if *known == names => said.clone(),
            last => {
                let said = last.map(|_| look()).unwrap_or_default();
                all.insert(objects.to_owned(), (names, said.clone()));
                said
            }
        }
    }

    /// Returns a clone of `of` in the directory `name`.
    pub(crate) fn clone_of(&self, of: &Repo, name: &str) -> Repo {
        self.clone_with(of, name, &[])
    }

    /// Does the same with options of `git clone`. One for a part of the history needs `--no-local`.
    pub(crate) fn clone_with(&self, of: &Repo, name: &str, options: &[&str]) -> Repo {
        let path = self.path(name);
        let (from, to) = (of.path().to_str().unwrap(), path.to_str().unwrap());
        let clone = [&["clone", "--quiet"], options, &[from, to]].concat();
        self.git(&self.path(""), &clone);
        Repo::new(self, path)
    }

    /// Sets a value in the global git configuration.
    #[track_caller]
    pub(crate) fn configure(&self, key: &str, value: &str) {
        self.git(&self.path(""), &["config", "--global", "--add", key, value]);
    }

    /// Makes git look for every repository whose URL starts with `prefix` below `base` instead.
    pub(crate) fn pretend(&self, prefix: &str, base: &str) {
        // Written by hand: a process for each of many hosts is most of the time of some tests.
        let mut file = File::options().append(true).open(self.path("gitconfig")).unwrap();
        write!(file, "[url \"{base}\"]\n\tinsteadOf = \"{prefix}\"\n").unwrap();
    }

    /// Makes git, kustomize and the program believe the certificates of `server`.
    ///
    /// `SSL_CERT_FILE` is what Go and rustls read, except on macOS and Windows.
    pub(crate) fn trust(&self, server: &Server) {
        let file = self.path("authority.pem");
        fs::write(&file, server.authority()).unwrap();
        self.set("SSL_CERT_FILE", &file);
        self.set("GIT_SSL_CAINFO", &file);
        // git would read every certificate of the machine as well: half of the time of some tests.
        self.set("GIT_SSL_CAPATH", self.path("bin"));
    }

    /// Sends all of git, kustomize and the program to `server`, which then answers for every host.
    ///
    /// A host that has no route answers 404, so that nothing gets past the machine.
    pub(crate) fn send_through(&self, server: &Server) {
        self.trust(server);
        for name in ["http_proxy", "https_proxy", "HTTPS_PROXY"] {
            self.set(name, server.as_https_proxy());
        }
        for name in ["no_proxy", "NO_PROXY"] {
            self.set(name, "127.0.0.1,localhost");
        }
    }

    /// Puts `program` before everything else of that name on `PATH`.
    pub(crate) fn offer(&self, name: &str, program: &Path) {
        std::os::unix::fs::symlink(program, self.path("bin").join(name)).unwrap();
    }

    /// Puts the program under test on `PATH`, for hooks and commands that are printed.
    pub(crate) fn offer_itself(&self) {
        self.offer("git-kustomize-localize", &super::program());
    }

    /// Puts a shell script before everything else of that name on `PATH`.
    pub(crate) fn script(&self, name: &str, body: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns the names of what was left in the directory for temporary files.
    pub(crate) fn leftovers(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.path("tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

/// Returns the beginning of a sandbox's name, so long that its path is as long on every machine: what is underlined,
/// cut and counted in bytes is then the same.
fn prefix() -> String {
    const LENGTH: usize = 48;
    let parent = env::temp_dir().canonicalize().unwrap();
    let around = parent.as_os_str().len() + "/sandbox-".len() + "XXXXXX".len();
    // No hex digit: with the random letters behind it, it would sometimes look like the id of an object.
    format!("sandbox-{}", "x".repeat(LENGTH.saturating_sub(around)))
}

/// Returns where `path` has the program: a process that is named by its path starts without a fork, which would copy
/// the page tables of all tests.
fn found(program: &OsStr, path: Option<&OsString>) -> PathBuf {
    if Path::new(program).components().count() == 1
        && let Some(found) = path
            .into_iter()
            .flat_map(env::split_paths)
            .map(|directory| directory.join(program))
            .find(|file| file.is_file())
    {
        return found;
    }
    program.into()
}
