//! `action.yml`: its steps, run as a runner of GitHub Actions runs them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_yaml::Value;
use sha2::{Digest as _, Sha256};

use crate::shipped::release::shipped;
use crate::support::pages::{self, section, source};
use crate::support::{Output, Reply, Repo, Running, Sandbox, Server, config};

const REMOTE: &str = "resources:\n  - https://example.com/acme/app//deploy?ref=v1\n";
const LOCAL: &str = "resources:\n  - config.yaml\n";
const OFF: &str = "rules:\n  remote-reference: off\n  floating-ref: off\n";

/// A runner with a repository on the hosting side and its checkout.
struct Runner {
    sandbox: Sandbox,
    /// The hosting side.
    origin: Repo,
    /// The checkout that `actions/checkout` made.
    checkout: Repo,
    /// The values of expressions, such as `inputs.base`.
    context: BTreeMap<String, String>,
}

impl Runner {
    /// Returns a runner for an origin with one clean commit on `main`, and the program on `PATH`.
    fn new() -> Runner {
        let sandbox = Sandbox::new();
        sandbox.offer_itself();
        let origin = sandbox.repo("origin");
        origin.write("app/kustomization.yaml", LOCAL);
        origin.write("app/config.yaml", config("app"));
        origin.commit("clean");
        for directory in ["runner", "checkout"] {
            fs::create_dir(sandbox.path(directory)).unwrap();
        }
        let checkout = sandbox.repo("checkout");
        let url = format!("file://{}", origin.path().display());
        checkout.git(&["remote", "add", "origin", &url]);
        let mut runner = Runner {
            sandbox,
            origin,
            checkout,
            context: BTreeMap::new(),
        };
        runner.set("github.action_path", env!("CARGO_MANIFEST_DIR"));
        runner.set("github.action_repository", "owner/repository");
        runner.set("github.action_ref", "main");
        runner.set("github.event.repository.default_branch", "main");
        runner.set("inputs.install", "none");
        for (name, value) in [("RUNNER_OS", "Linux"), ("RUNNER_ARCH", "X64")] {
            runner.sandbox.set(name, value);
        }
        runner
            .sandbox
            .set("RUNNER_TEMP", runner.sandbox.path("runner"));
        runner
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.context.insert(name.to_owned(), value.into());
    }

    /// Checks `commit` of the origin out for an event as `actions/checkout` does, `depth` commits deep.
    fn event(&mut self, name: &str, commit: &str, depth: u32) {
        let depth = format!("--depth={depth}");
        self.checkout
            .git(&["fetch", "--quiet", "--no-tags", &depth, "origin", commit]);
        self.checkout
            .git(&["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"]);
        self.sandbox.set("GITHUB_EVENT_NAME", name);
        self.sandbox.set("GITHUB_SHA", self.checkout.id("HEAD"));
        self.sandbox.set("GITHUB_REF", "refs/heads/main");
    }

    /// Runs the action, with what its inputs do not say by default.
    fn run(&mut self) -> Output {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml");
        let action: Value = serde_yaml::from_str(&fs::read_to_string(source).unwrap()).unwrap();
        for (name, input) in action["inputs"].as_mapping().unwrap() {
            let name = format!("inputs.{}", name.as_str().unwrap());
            let default = input["default"].as_str().unwrap().to_owned();
            self.context.entry(name).or_insert(default);
        }
        let mut last = None;
        for step in action["runs"]["steps"].as_sequence().unwrap() {
            let output = self.step(step);
            let failed = output.status != 0;
            last = Some(output);
            if failed {
                break;
            }
        }
        last.unwrap()
    }

    fn step(&mut self, step: &Value) -> Output {
        assert_eq!(step["shell"].as_str(), Some("bash"));
        let script = self.sandbox.path("runner/step.sh");
        let run = step["run"].as_str().unwrap();
        // Whatever is pasted into a script is run.
        assert!(!run.contains("${{"), "{run}");
        fs::write(&script, run).unwrap();
        let files = ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"];
        for name in files {
            let file = self.sandbox.path("runner").join(name);
            fs::write(&file, "").unwrap();
            self.sandbox.set(name, &file);
        }
        let mut command = self.sandbox.command("bash", self.checkout.path());
        command
            .args(["--noprofile", "--norc", "-eo", "pipefail"])
            .arg(script);
        for (name, value) in step["env"].as_mapping().unwrap() {
            let value = value.as_str().unwrap();
            let expression = value
                .strip_prefix("${{ ")
                .and_then(|rest| rest.strip_suffix(" }}"));
            let value = match expression {
                // A missing value of an event is empty.
                Some(name) => self.context.get(name).cloned().unwrap_or_default(),
                None => value.to_owned(),
            };
            command.env(name.as_str().unwrap(), value);
        }
        let output = Running::start(&mut command).wait();
        let added = fs::read_to_string(self.sandbox.path("runner/GITHUB_PATH")).unwrap();
        for directory in added.lines() {
            let path = format!("{directory}:{}", std::env::var("PATH").unwrap());
            self.sandbox.set("PATH", path);
        }
        output
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.sandbox.path("runner").join(name)).unwrap()
    }

    /// Makes a pull request of what is in the working tree of the origin, and returns the base, the
    /// head and the merge that GitHub makes of them.
    fn pull_request(&mut self) -> (String, String, String) {
        let base = self.origin.id("main");
        self.origin.git(&["switch", "--quiet", "-c", "topic"]);
        let head = self.origin.commit("change");
        self.origin
            .git(&["switch", "--quiet", "-c", "pull", "main"]);
        self.origin
            .git(&["merge", "--quiet", "--no-ff", "-m", "merge", "topic"]);
        let merge = self.origin.id("HEAD");
        self.set("github.event.pull_request.base.sha", &base);
        (base, head, merge)
    }
}

#[test]
fn a_pull_request_that_needs_the_network_fails() {
    let mut runner = Runner::new();
    runner.origin.write("app/kustomization.yaml", REMOTE);
    let (_, head, merge) = runner.pull_request();
    // By default only the merge is there, and its base is fetched.
    for depth in [1, 2] {
        runner.event("pull_request", &merge, depth);
        runner
            .run()
            .fails(1)
            .stdout_has("::error file=app/kustomization.yaml,line=2,")
            .stdout_has("remote-reference");
        let summary = runner.file("GITHUB_STEP_SUMMARY");
        assert!(summary.contains("app/kustomization.yaml:2:5"), "{summary}");
        let touched = "~~~text\napp: app/kustomization.yaml\n~~~\n";
        assert!(summary.contains(touched), "{summary}");
        let (_, picture) = summary.split_once("~~~mermaid\nflowchart LR\n").unwrap();
        assert!(picture.contains(" == new ==> "), "{summary}");
        assert!(picture.trim_end().ends_with("~~~"), "{summary}");
    }
    // Some check the head out.
    runner.event("pull_request", &head, 1);
    runner.sandbox.set("GITHUB_SHA", &merge);
    runner.run().fails(1).stdout_has("remote-reference");
}

#[test]
fn a_pull_request_that_does_not_passes() {
    let mut runner = Runner::new();
    runner.origin.write("note", "x");
    let (_, _, merge) = runner.pull_request();
    runner.event("pull_request", &merge, 1);
    runner.run().success();
}

#[test]
fn a_pull_request_cannot_switch_off_its_own_check() {
    let mut runner = Runner::new();
    runner.origin.write("app/kustomization.yaml", REMOTE);
    runner.origin.write(".kustomize-localize", OFF);
    let (_, _, merge) = runner.pull_request();
    runner.event("pull_request", &merge, 1);
    runner.run().fails(1).stdout_has("remote-reference");
    // The configuration of the commit itself works; the base lacks it.
    runner.set("inputs.base", &merge);
    runner.run().success();
}

#[test]
fn a_pull_request_cannot_break_the_configuration() {
    let mut runner = Runner::new();
    runner
        .origin
        .write(".kustomize-localize", "nonsense: true\n");
    let (_, _, merge) = runner.pull_request();
    runner.event("pull_request", &merge, 1);
    runner
        .run()
        .fails(2)
        .stdout_has("::error file=.kustomize-localize,line=1,");
}

#[test]
fn only_new_findings_count_if_the_base_says_so() {
    let mut runner = Runner::new();
    runner.origin.write("old/kustomization.yaml", REMOTE);
    runner
        .origin
        .write(".kustomize-localize", "new-only: true\n");
    runner.origin.commit("old");
    runner.origin.write("new/kustomization.yaml", REMOTE);
    let (base, _, merge) = runner.pull_request();
    runner.event("pull_request", &merge, 1);
    let output = runner.run();
    output
        .fails(1)
        .stdout_has("file=new/kustomization.yaml")
        .lacks("file=old/kustomization.yaml");
    for (event, variable) in [
        ("push", "github.event.before"),
        ("merge_group", "github.event.merge_group.base_sha"),
    ] {
        runner.event(event, &merge, 1);
        runner.set(variable, &base);
        runner
            .run()
            .fails(1)
            .stdout_has("file=new/kustomization.yaml")
            .lacks("file=old/kustomization.yaml");
    }
    // A new branch starts from the default one.
    runner.event("push", &merge, 1);
    runner.sandbox.set("GITHUB_REF", "refs/heads/pull");
    runner.set("github.event.before", "0".repeat(40));
    runner.run().fails(1).lacks("file=old/kustomization.yaml");
}

#[test]
fn no_event_is_judged_by_the_configuration_of_the_change() {
    let mut runner = Runner::new();
    runner.origin.write("app/kustomization.yaml", REMOTE);
    runner.origin.write(".kustomize-localize", OFF);
    let (_, _, merge) = runner.pull_request();
    runner.set("github.event.before", "0".repeat(40));
    for event in [
        "push",
        "create",
        "release",
        "schedule",
        "workflow_dispatch",
        "workflow_run",
        "repository_dispatch",
        "issue_comment",
        "pull_request_review",
        "anything",
    ] {
        for name in ["refs/heads/pull", "refs/tags/v1", "refs/pull/1/merge"] {
            runner.event(event, &merge, 1);
            runner.sandbox.set("GITHUB_REF", name);
            runner.run().fails(1).stdout_has("remote-reference");
        }
        // The default branch itself starts from nothing that the event names.
        runner.event(event, &merge, 1);
        runner.run().fails(2).stdout_has(&format!(
            "the event {event} names no commit to compare with"
        ));
    }
    // Who asks for it is judged by it.
    runner.set("inputs.base", &merge);
    runner.run().success();
}

#[test]
fn a_change_that_only_loosens_the_configuration_is_shown() {
    let mut runner = Runner::new();
    runner.origin.write(".kustomize-localize", OFF);
    let (_, _, merge) = runner.pull_request();
    runner.event("pull_request", &merge, 1);
    runner
        .run()
        .success()
        .stdout_has("new in the configuration: +  remote-reference: off\n");
    let summary = runner.file("GITHUB_STEP_SUMMARY");
    let line = "<p>new in the configuration:</p>\n<ul>\n<li><code>+rules:</code></li>\n<li><code>+  remote-reference: off</code></li>\n";
    assert!(summary.contains(line), "{summary}");
}

#[test]
fn an_event_that_cannot_be_checked_fails() {
    let mut runner = Runner::new();
    runner.origin.write("app/kustomization.yaml", REMOTE);
    let (base, head, merge) = runner.pull_request();
    // This event has the base checked out by default.
    runner.event("pull_request_target", &base, 1);
    runner
        .run()
        .fails(2)
        .stdout_has("nothing of the pull request");
    runner.event("pull_request_target", &head, 1);
    runner.sandbox.set("GITHUB_SHA", &base);
    runner.run().fails(1).stdout_has("remote-reference");

    runner.event("push", &merge, 1);
    runner.set("github.event.before", "1".repeat(40));
    runner.run().fails(2).stdout_has("cannot be fetched");
    runner.event("pull_request", &head, 1);
    for nonsense in ["", "--upload-pack=touch pwned", "main"] {
        runner.set("github.event.pull_request.base.sha", nonsense);
        runner.run().fails(2).stdout_has("names no commit");
    }
    runner.set("inputs.base", "--nonsense");
    runner.run().fails(2).stdout_has("base names no commit");
    runner.event("schedule", &base, 1);
    runner.set("inputs.base", &base);
    runner.set("inputs.paths", "nowhere\n");
    runner.run().fails(2);
    runner.set("inputs.paths", "$(touch pwned)\n--quiet\n");
    runner.run().fails(2);
    assert!(!runner.checkout.path().join("pwned").exists());
    runner.set("inputs.paths", "app\n");
    runner.run().success();
}

#[test]
fn the_result_is_written_as_sarif_too() {
    let mut runner = Runner::new();
    runner.origin.write("app/kustomization.yaml", REMOTE);
    let (_, _, merge) = runner.pull_request();
    runner.event("pull_request", &merge, 1);
    runner.set("inputs.sarif", "result file.sarif");
    runner.run().fails(1).stdout_has("::error ");
    let sarif = runner.checkout.read("result file.sarif");
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "remote-reference");
    let output = runner.file("GITHUB_OUTPUT");
    assert!(output.contains("\nresult file.sarif\n"), "{output}");
}

const ARCHIVE: &str = "git-kustomize-localize-x86_64-unknown-linux-musl.tar.gz";

/// Returns an archive of a release, whose program prints `released`.
fn archive(sandbox: &Sandbox) -> Vec<u8> {
    let directory = sandbox.path("release/git-kustomize-localize-x86_64-unknown-linux-musl");
    fs::create_dir_all(&directory).unwrap();
    sandbox.script("git-kustomize-localize.new", "echo released");
    fs::rename(
        sandbox.path("bin/git-kustomize-localize.new"),
        directory.join("git-kustomize-localize"),
    )
    .unwrap();
    let mut command = sandbox.command("tar", &sandbox.path("release"));
    let root = directory.file_name().unwrap();
    command.args(["-czf", "../release.tar.gz"]).arg(root);
    Running::start(&mut command).wait().success();
    fs::read(sandbox.path("release.tar.gz")).unwrap()
}

/// Returns a runner without the program, and the server that has the release v1.2.3 with the digest. Its program prints
/// `released`.
fn release() -> (Runner, Server, String) {
    release_of(archive)
}

fn release_of(archive: impl FnOnce(&Sandbox) -> Vec<u8>) -> (Runner, Server, String) {
    let mut runner = Runner::new();
    fs::remove_file(runner.sandbox.path("bin/git-kustomize-localize")).unwrap();
    let commit = runner.origin.id("main");
    runner.event("schedule", &commit, 1);
    runner.set("inputs.base", commit);
    let server = Server::start();
    runner.sandbox.trust(&server);
    runner
        .sandbox
        .set("CURL_CA_BUNDLE", runner.sandbox.path("authority.pem"));
    runner
        .sandbox
        .set("GITHUB_SERVER_URL", server.tls_url().trim_end_matches('/'));
    let archive = archive(&runner.sandbox);
    let digest: String = Sha256::digest(&archive)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    server.route(&url(), Reply::ok(archive));
    runner.set("inputs.install", "release");
    (runner, server, digest)
}

fn url() -> String {
    format!("/owner/repository/releases/download/v1.2.3/{ARCHIVE}")
}

#[test]
fn a_release_is_installed_only_with_its_digest() {
    let (mut runner, server, digest) = release();
    let url = url();
    runner
        .run()
        .fails(2)
        .stdout_has("there is no release of main");
    runner.set("github.action_ref", "v1.2.3");
    runner.run().fails(2).stdout_has("no digest at");
    let other = "0".repeat(64);
    for install in ["release", "auto"] {
        // An unexpected value must not lead to a fallback.
        runner.set("inputs.install", install);
        server.route(&format!("{url}.sha256"), Reply::ok(format!("{other}  x\n")));
        runner.run().fails(2).stdout_has("has the SHA-256");
    }
    server.route(
        &format!("{url}.sha256"),
        Reply::ok(format!("{digest}  x\n")),
    );
    runner.set("inputs.sha256", &other);
    runner.run().fails(2).stdout_has("has the SHA-256");
    runner.set("inputs.sha256", "");
    runner.run().success().stdout_has("released");
}

#[test]
#[ignore = "needs a release"]
fn the_archive_that_is_shipped_is_installed() {
    let directory = shipped();
    let (mut runner, server, digest) = release_of(|_| fs::read(directory.join(ARCHIVE)).unwrap());
    let said = fs::read_to_string(directory.join(format!("{ARCHIVE}.sha256"))).unwrap();
    assert_eq!(said, format!("{digest}  {ARCHIVE}\n"));
    server.route(&format!("{}.sha256", url()), Reply::ok(said));
    runner.set("github.action_ref", "v1.2.3");
    runner
        .run()
        .success()
        .stdout_has("checked 1 kustomization with 1 reference");
    runner.set("inputs.sha256", "0".repeat(64));
    runner.run().fails(2).stdout_has("has the SHA-256");
}

#[test]
fn a_commit_installs_the_release_whose_digests_it_holds() {
    let (mut runner, _server, digest) = release();
    let action = runner.sandbox.path("action");
    fs::create_dir_all(action.join("hooks/action")).unwrap();
    for script in ["install.sh", "check.sh"] {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks/action");
        fs::copy(from.join(script), action.join("hooks/action").join(script)).unwrap();
    }
    runner.set("github.action_path", action.to_str().unwrap());
    let known = action.join("hooks/action/release");
    for (digests, expected) in [
        (
            format!("{}  {ARCHIVE}\n", "0".repeat(64)),
            "has the SHA-256",
        ),
        (format!("{digest}  other-{ARCHIVE}\n"), "no digest of"),
        (format!("{digest}  {ARCHIVE}.sig\n"), "no digest of"),
    ] {
        fs::write(&known, format!("v1.2.3\n{digests}")).unwrap();
        for reference in [
            "v1",
            "main",
            "0123456789012345678901234567890123456789",
            "v1.2.3",
        ] {
            runner.set("github.action_ref", reference);
            runner.run().fails(2).stdout_has(expected);
        }
    }
    fs::write(&known, format!("v1.2.3\n{digest}  {ARCHIVE}\n")).unwrap();
    runner.set("github.action_ref", "v1");
    // The server does not say what the digest is.
    runner.run().success().stdout_has("released");
}

#[test]
fn the_source_is_compiled_where_there_is_no_release() {
    let mut runner = Runner::new();
    let program = runner.sandbox.path("bin/git-kustomize-localize");
    let commit = runner.origin.id("main");
    runner.event("schedule", &commit, 1);
    runner.set("inputs.base", commit);
    fs::remove_file(program).unwrap();
    runner.run().fails(2).stdout_has("is not on PATH");
    // A fake cargo prints its arguments, and makes the program.
    let real = env!("CARGO_BIN_EXE_git-kustomize-localize");
    runner.sandbox.script(
        "cargo",
        &format!(
            "echo \"$@\" > \"$RUNNER_TEMP/cargo\"\nwhile [ \"$1\" != --root ]; do shift; done\n\
             mkdir -p \"$2/bin\" && ln -s {real} \"$2/bin/git-kustomize-localize\""
        ),
    );
    for install in ["source", "auto"] {
        runner.set("inputs.install", install);
        let _ = fs::remove_dir_all(runner.sandbox.path("runner/git-kustomize-localize"));
        let path = format!(
            "{}:{}",
            runner.sandbox.path("bin").display(),
            std::env::var("PATH").unwrap()
        );
        runner.sandbox.set("PATH", path);
        runner.run().success().stdout_has("kustomization");
        let asked = runner.file("cargo");
        let source = concat!(
            "install --quiet --locked --path ",
            env!("CARGO_MANIFEST_DIR")
        );
        assert!(asked.contains(source), "{asked}");
    }
    runner.set("inputs.install", "something");
    runner.run().fails(2).stdout_has("install must be");
}

#[test]
fn every_input_is_described() {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let action: Value =
        serde_yaml::from_str(&fs::read_to_string(top.join("action.yml")).unwrap()).unwrap();
    let page = source("src/manual/ci.md");
    let mut rows: Vec<&str> = section(&page, "## GitHub Actions")
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut inputs: Vec<&str> = action["inputs"]
        .as_mapping()
        .unwrap()
        .keys()
        .filter_map(Value::as_str)
        .collect();
    rows.sort_unstable();
    inputs.sort_unstable();
    assert_eq!(rows, inputs);
}

#[test]
fn the_workflow_that_is_called_runs_the_action() {
    let called: Value = serde_yaml::from_str(&source(".github/workflows/check.yml")).unwrap();
    let job = &called["jobs"]["check"];
    let steps = job["steps"].as_sequence().unwrap();
    let [checkout, action] = &steps[..] else {
        panic!("{steps:?}");
    };
    assert_eq!(action["uses"], "$/");
    // What is given is passed on, under the name that the action has for it.
    let inputs = called["on"]["workflow_call"]["inputs"]
        .as_mapping()
        .unwrap();
    let given = action["with"].as_mapping().unwrap();
    assert_eq!(
        inputs.keys().collect::<Vec<_>>(),
        given.keys().collect::<Vec<_>>()
    );
    let known: Value = serde_yaml::from_str(&source("action.yml")).unwrap();
    for (name, value) in given {
        let name = name.as_str().unwrap();
        assert_eq!(value, &format!("${{{{ inputs.{name} }}}}"));
        let default = &known["inputs"][name]["default"];
        assert_eq!(&inputs[name]["default"], default, "{name}");
    }
    // The page shows both, with the same rights, and a checkout of the same depth.
    let written: Vec<Value> = pages::blocks(
        section(&source("src/manual/ci.md"), "## GitHub Actions"),
        "yaml",
    )
    .iter()
    .map(|text| serde_yaml::from_str(text).unwrap())
    .collect();
    let [own, short] = &written[..] else {
        panic!("{written:?}");
    };
    assert_eq!(own["jobs"]["check"]["steps"][0]["with"], checkout["with"]);
    assert_eq!(own["on"], short["on"]);
    for workflow in [own, short] {
        assert_eq!(workflow["permissions"], job["permissions"]);
    }
    let path = "OWNER/REPOSITORY/.github/workflows/check.yml@COMMIT";
    assert_eq!(short["jobs"]["check"]["uses"], path);
}

#[test]
fn additions_to_the_lock_are_compared_with_upstream() {
    let mut runner = Runner::new();
    let upstream = runner.sandbox.repo("upstream");
    upstream.write("kustomization.yaml", LOCAL);
    upstream.write("config.yaml", config("upstream"));
    upstream.commit("one");
    upstream.git(&["tag", "v1"]);
    let url = format!("file://{}", upstream.path().display());
    let reference = format!("resources: ['{url}?ref=v1']\n");
    runner.origin.write("app/kustomization.yaml", reference);
    runner.origin.run(&["lock"]).success();
    let lock = runner.origin.read("kustomize-localize.lock");
    let invented = lock.replace(&upstream.id("v1"), &"1".repeat(40));
    assert_ne!(lock, invented);
    runner.origin.write("kustomize-localize.lock", invented);
    let (_, _, merge) = runner.pull_request();
    runner.event("pull_request", &merge, 2);
    runner.run().success();
    runner.set("inputs.verify-lock", "true");
    runner
        .run()
        .fails(1)
        .stdout_has(": moved: ")
        .stdout_has("::error title=git kustomize-localize::upstream is not what");
    runner.set("inputs.verify-lock", "yes");
    runner
        .run()
        .fails(2)
        .stdout_has("verify-lock is true or false");
}
