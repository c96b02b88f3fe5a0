//! Checks many variants in one commit, and builds each of them from a real checkout.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use git_kustomize_localize::seams::{processors, side_by_side};
use serde_json::Value;

use super::call;
use super::variant::Variant;
use crate::support::{Kustomize, Repo, Running, Sandbox, Server, ended_within, full, program};

/// A way to build, with its arguments.
type Way = (&'static str, &'static [&'static str]);

/// At night in the first four, one after the other; else in the last one, which reads all that they read.
pub(super) const WAYS: [Way; 5] = [
    ("unrestricted", &["--load-restrictor", "LoadRestrictionsNone"]),
    ("helm", &["--enable-helm"]),
    ("plugins", &["--enable-alpha-plugins", "--enable-exec", "--network"]),
    ("plain", &[]),
    (
        "all",
        &[
            "--load-restrictor",
            "LoadRestrictionsNone",
            "--enable-helm",
            "--enable-alpha-plugins",
            "--enable-exec",
            "--network",
        ],
    ),
];

/// How many variants share a commit; where few are built, ten times as many.
pub(super) const TOGETHER: usize = 100;

/// How long a build may take. What it has started until then counts.
const BUILD: Duration = Duration::from_secs(10);

/// The result of one variant.
pub(super) struct Verdict<'a> {
    pub(super) variant: &'a Variant,
    /// What the check found, and `verify`, if it was asked: what fails, and what does not.
    said: Vec<Vec<(bool, String)>>,
    /// Whether it was built: of those that the check refuses, some are.
    pub(super) is_built: bool,
    /// What was called or asked for, with the way in which it was built.
    pub(super) reached: Vec<(&'static str, String)>,
}

impl Verdict<'_> {
    /// Whether the check exits 0 for it, or `verify` does.
    pub(super) fn passes(&self) -> bool {
        let passes = |said: &Vec<(bool, String)>| !said.iter().any(|(fails, _)| *fails);
        self.said.iter().any(passes)
    }

    /// Whether the check passes, and the build reaches out all the same.
    pub(super) fn is_hole(&self) -> bool {
        self.passes() && !self.reached.is_empty()
    }
}

impl fmt::Display for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Variant { class, name, .. } = self.variant;
        writeln!(f, "({class:?}, {name:?})")?;
        f.write_str(&self.variant.shown())?;
        for (_, finding) in self.said.iter().flatten() {
            writeln!(f, "  found: {finding}")?;
        }
        for (way, what) in &self.reached {
            writeln!(f, "  {way}: {}", what.escape_debug())?;
        }
        Ok(())
    }
}

/// One place to build in. What reaches its server and its log comes from the one build that runs there.
struct Worker {
    server: Server,
    directory: PathBuf,
}

/// Checks and builds.
pub(super) struct Judge {
    pub(super) sandbox: Sandbox,
    kustomize: PathBuf,
    /// Those that build nothing at the moment.
    workers: Mutex<Vec<Worker>>,
    repositories: AtomicUsize,
    /// Of so many roots that the check refuses, one is built: it cannot be a hole, whatever it does.
    pub(super) refused: usize,
    pub(super) ways: &'static [Way],
    pub(super) together: usize,
    /// How `check` builds, and `branch` as well; empty where nothing is built.
    pub(super) builds: &'static [&'static str],
    /// Whether all files lie where a lock lists them that says nothing else, and `verify` judges them, too.
    pub(super) listed: bool,
}

impl Judge {
    pub(super) fn new(kustomize: &Kustomize) -> Judge {
        let sandbox = Sandbox::new();
        call::put_programs(&sandbox.path("programs"));
        let workers = (0..processors().clamp(2, 4)).map(|number| {
            let directory = sandbox.path(&format!("worker-{number}"));
            for name in ["home", "tmp"] {
                fs::create_dir_all(directory.join(name)).unwrap();
            }
            let server = Server::start();
            fs::write(directory.join("authority.pem"), server.authority()).unwrap();
            Worker { server, directory }
        });
        Judge {
            workers: Mutex::new(workers.collect()),
            kustomize: kustomize.program().to_owned(),
            sandbox,
            repositories: AtomicUsize::new(0),
            refused: 1,
            ways: if full() { &WAYS[..4] } else { &WAYS[4..] },
            together: TOGETHER,
            builds: &[],
            listed: false,
        }
    }

    /// Returns what comes of each variant in a repository with this configuration.
    pub(super) fn judge<'a>(&self, variants: &'a [Variant], config: &str) -> Vec<Verdict<'a>> {
        let commits: Vec<&[Variant]> = variants.chunks(self.together).collect();
        let judged = side_by_side(&commits, processors().clamp(2, 4), |_, commit| {
            self.with_worker(|worker| self.judge_commit(worker, commit, config))
        });
        judged.into_iter().flatten().collect()
    }

    fn with_worker<T>(&self, work: impl FnOnce(&Worker) -> T) -> T {
        let worker = self.workers.lock().unwrap().pop().unwrap();
        let result = work(&worker);
        self.workers.lock().unwrap().push(worker);
        result
    }

    fn judge_commit<'a>(&self, worker: &Worker, variants: &'a [Variant], config: &str) -> Vec<Verdict<'a>> {
        let number = self.repositories.fetch_add(1, Ordering::Relaxed);
        let repo = self.sandbox.repo(&format!("repository-{number}"));
        if !config.is_empty() {
            repo.write(".kustomize-localize", config);
        }
        let url = worker.server.url();
        let loopback = url.trim_start_matches("http://").trim_end_matches('/');
        let (below, commands) =
            if self.listed { ("/localized-files/x", &[CHECK_HEAD, VERIFY_HEAD][..]) } else { ("", &[CHECK_HEAD][..]) };
        for (index, variant) in variants.iter().enumerate() {
            let place = format!("{}{below}", directory(index));
            variant.write(&repo, &place, loopback);
        }
        if self.listed {
            // A lock is refused where there is no kustomization at all.
            repo.write("kustomization.yaml", "resources: []\n");
            repo.list_localized();
        }
        repo.commit("variants");
        let branch = ["branch", "--dry-run"];
        let builds = if self.builds.is_empty() { None } else { Some([&branch, &self.builds[1..]].concat()) };
        let judged = commands.iter().map(|command| [command, self.builds].concat()).chain(builds);
        let mut judged: Vec<_> = judged.map(|command| judged_by(&self.sandbox, &repo, &command)).collect();
        // As everybody gets it, with what `.gitattributes` does to it.
        let checkout = format!("checkout-{number}");
        let checkout = self.sandbox.clone_of(&repo, &checkout);
        let mut verdicts = Vec::new();
        for (index, variant) in variants.iter().enumerate() {
            let said = judged.iter_mut();
            let mut verdict = Verdict {
                variant,
                said: said.map(|said| said.remove(&directory(index)).unwrap_or_default()).collect(),
                is_built: false,
                reached: Vec::new(),
            };
            let root = checkout.path().join(format!("{}{below}", directory(index)));
            verdict.is_built = verdict.passes() || index.is_multiple_of(self.refused);
            if verdict.is_built {
                verdict.reached = self.build(worker, &root, &root, verdict.passes());
            }
            verdicts.push(verdict);
        }
        assert!(judged[0].is_empty(), "findings beside: {judged:?}");
        fs::remove_dir_all(repo.path()).unwrap();
        fs::remove_dir_all(checkout.path()).unwrap();
        verdicts
    }

    /// Returns what the builds of a root of this checkout reach; of one that is refused, what the first reaches that
    /// reaches anything.
    pub(super) fn reached(&self, checkout: &Path, root: &str, passes: bool) -> Vec<(&'static str, String)> {
        let root = checkout.join(root);
        self.with_worker(|worker| self.build(worker, checkout, &root, passes))
    }

    /// Builds a root in every way; files within `within` are its own. Of one that the check refuses it is enough to
    /// know that it reaches out in one.
    fn build(&self, worker: &Worker, within: &Path, root: &Path, passes: bool) -> Vec<(&'static str, String)> {
        let mut reached = Vec::new();
        for (way, arguments) in self.ways {
            let what = self.build_in(worker, within, root, arguments);
            reached.extend(what.into_iter().map(|what| (*way, what)));
            if !passes && !reached.is_empty() {
                break;
            }
        }
        reached
    }

    /// Returns what one build called or asked for.
    fn build_in(&self, worker: &Worker, within: &Path, root: &Path, arguments: &[&str]) -> Vec<String> {
        let log = worker.directory.join("log");
        let messages = worker.directory.join("stderr");
        fs::write(&log, "").unwrap();
        worker.server.forget();
        let proxy = worker.server.as_https_proxy();
        let mut command = Command::new(&self.kustomize);
        command
            .arg("build")
            .args(arguments)
            .arg(root)
            .current_dir(root)
            .env_clear()
            .env("PATH", self.sandbox.path("programs"))
            .env("HOME", worker.directory.join("home"))
            .env("TMPDIR", worker.directory.join("tmp"))
            .env("GOGC", "off")
            .env("JUDGE_LOG", &log)
            .env("HTTP_PROXY", &proxy)
            .env("HTTPS_PROXY", &proxy)
            .env("SSL_CERT_FILE", worker.directory.join("authority.pem"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&messages).unwrap());
        run(command);
        let temporary = worker.directory.join("tmp");
        let calls = call::read(&log).into_iter();
        let mut reached: Vec<String> =
            calls.filter(|call| !call::is_hermetic(call, within, &temporary)).map(|call| call.join(" ")).collect();
        let asked = worker.server.requests().into_iter();
        reached.extend(asked.map(|asked| format!("{} {}", asked.method, asked.url())));
        // What the server cannot see, because it went straight to another address.
        let messages = fs::read(&messages).unwrap();
        let messages = String::from_utf8_lossy(&messages).into_owned();
        if reached.is_empty() && messages.contains("dial tcp") {
            reached.push(messages);
        }
        reached
    }
}

/// The directory of a variant.
pub(super) fn directory(index: usize) -> String {
    format!("v{index:03}")
}

/// How `check` builds in the last of the [`WAYS`].
pub(super) const BUILT: &[&str] = &[
    "--build",
    "--build-arg=--load-restrictor=LoadRestrictionsNone",
    "--build-arg=--enable-helm",
    "--build-arg=--enable-alpha-plugins",
    "--build-arg=--enable-exec",
    "--build-arg=--network",
];

/// Waits for a build, and ends it when it takes too long.
fn run(mut command: Command) {
    let mut child = command.spawn().unwrap();
    if ended_within(&mut child, BUILD).is_none() {
        child.kill().ok();
        child.wait().unwrap();
    }
}

const CHECK_HEAD: &[&str] = &["check", "--rev", "HEAD"];
const VERIFY_HEAD: &[&str] = &["verify", "HEAD"];

/// Judges the commit. Returns what was found by directory, and whether it fails.
fn judged_by(sandbox: &Sandbox, repo: &Repo, arguments: &[&str]) -> BTreeMap<String, Vec<(bool, String)>> {
    let mut command = sandbox.command(program(), repo.path());
    command.args(arguments).args(["--format", "json"]);
    let output = Running::start(&mut command).wait();
    assert!((0..=2).contains(&output.status), "{output:?}");
    assert!(!output.stderr.contains("panicked"), "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let mut found: BTreeMap<String, Vec<(bool, String)>> = BTreeMap::new();
    let mut status = 0;
    let mut add = |path: &str, fails: bool, what: String| {
        let (directory, _) = path.split_once('/').unwrap_or((path, ""));
        found.entry(directory.to_owned()).or_default().push((fails, what));
    };
    for difference in report["differences"].as_array().into_iter().flatten() {
        let text = |key: &str| difference[key].as_str().unwrap_or_default();
        status = status.max(1);
        let what = format!("{}: {}", text("kind"), text("message"));
        add(text("path"), true, what);
    }
    for finding in report["findings"].as_array().into_iter().flatten() {
        let text = |key: &str| finding[key].as_str().unwrap_or_default();
        let fails = text("severity") == "error" && finding["allowed"].is_null();
        status = status.max(i32::from(fails));
        let what = format!("{} {}: {}", text("severity"), text("rule"), text("message"));
        add(text("path"), fails, what);
    }
    // Of `branch`, which judges one variant alone.
    for error in report["errors"].as_array().into_iter().flatten() {
        status = 2;
        add(&directory(0), true, format!("error: {error}"));
    }
    if report["outcome"] == "differs" {
        status = 1;
        add(&directory(0), true, "differs".to_owned());
    }
    for failure in report["failures"].as_array().into_iter().flatten() {
        status = 2;
        let message = failure["message"].as_str().unwrap();
        let path = failure["file"].as_str().unwrap_or(message);
        let path = path.trim_start_matches('`');
        add(path, true, format!("failure: {message}"));
    }
    assert_eq!(output.status, status, "{output:?}");
    found
}
