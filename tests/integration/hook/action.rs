//! `action.yml`: its steps, run as a runner of GitHub Actions runs them.

mod comments;
mod release;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use git_kustomize_localize::seams::record::sha256_hex;
use serde_json::json;
use serde_yaml::Value;

use crate::shipped::release::shipped;
use crate::support::pages::{section, source};
use crate::support::{Kustomize, Output, Reply, Repo, Running, Sandbox, Server, Transcript, config, program, rows};

use super::{CONFIG, LOCAL, OFF, REMOTE, ROOT};

/// What an event may be about: the head or the merge of a pull request, or a commit of a branch.
const EVENTS: [&str; 6] =
    ["pull_request_target", "pull_request", "push", "merge_group", "schedule", "workflow_dispatch"];

/// A runner with a repository on the hosting side and its checkout.
struct Runner {
    sandbox: Sandbox,
    /// The hosting side.
    origin: Repo,
    /// The checkout that `actions/checkout` made.
    checkout: Repo,
    /// The directory where steps begin.
    workspace: PathBuf,
    /// The values of expressions, such as `inputs.base`.
    context: BTreeMap<String, String>,
}

impl Runner {
    /// Returns a runner for an origin with one clean commit on `main`, and the program on `PATH`.
    fn new() -> Runner {
        let sandbox = Sandbox::new();
        sandbox.offer_itself();
        let origin = sandbox.repo("origin");
        super::clean(&origin);
        fs::create_dir(sandbox.path("runner")).unwrap();
        let checkout = sandbox.repo("checkout");
        let url = format!("file://{}", origin.path().display());
        checkout.git(&["remote", "add", "origin", &url]);
        let mut runner =
            Runner { workspace: checkout.path().to_owned(), sandbox, origin, checkout, context: BTreeMap::new() };
        runner.set("github.action_path", env!("CARGO_MANIFEST_DIR"));
        runner.set("github.action_repository", "owner/repository");
        runner.set("github.action_ref", "main");
        runner.set("github.event.repository.default_branch", "main");
        runner.set("inputs.install", "none");
        let sandbox = &runner.sandbox;
        sandbox.set("RUNNER_OS", "Linux");
        sandbox.set("RUNNER_ARCH", "X64");
        sandbox.set("RUNNER_TEMP", sandbox.path("runner"));
        runner
    }

    /// Returns one that has to install the program, and then has nothing to find.
    fn without_the_program() -> Runner {
        let mut runner = Runner::new();
        fs::remove_file(runner.sandbox.path("bin/git-kustomize-localize")).unwrap();
        let commit = runner.origin.id("main");
        runner.event("schedule", &commit, 1);
        runner.set("inputs.base", commit);
        runner
    }

    fn set(&mut self, name: &str, value: impl Into<String>) {
        self.context.insert(name.to_owned(), value.into());
    }

    /// Checks `commit` of the origin out for an event as `actions/checkout` does, `depth` commits deep.
    fn event(&mut self, name: &str, commit: &str, depth: u32) {
        let depth = format!("--depth={depth}");
        self.checkout.git(&["fetch", "--quiet", "--no-tags", &depth, "origin", commit]);
        self.checkout.git(&["checkout", "--quiet", "--force", "--detach", "FETCH_HEAD"]);
        self.sandbox.set("GITHUB_EVENT_NAME", name);
        self.sandbox.set("GITHUB_SHA", self.checkout.id("HEAD"));
        self.sandbox.set("GITHUB_REF", "refs/heads/main");
    }

    /// Runs, and expects the one finding of [`REMOTE`].
    #[track_caller]
    fn finds_the_remote_reference(&mut self) {
        self.run().fails(1).says(expect![[r#"
            error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
             --> app/kustomization.yaml:2:5
              |
            2 |   - https://example.com/acme/app//deploy?ref=v1
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
              = help: or vendor it: git kustomize-localize vendor :/app

            for more: git kustomize-localize explain remote-reference
            checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 error
            ::error file=app/kustomization.yaml,line=2,col=5,title=remote-reference::`https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/app
        "#]]);
    }

    /// Runs the action, with what its inputs do not say by default.
    fn run(&mut self) -> Output {
        let action = yaml("action.yml");
        for (name, input) in action["inputs"].as_mapping().unwrap() {
            let name = format!("inputs.{}", name.as_str().unwrap());
            let default = input["default"].as_str().unwrap().to_owned();
            self.context.entry(name).or_insert(default);
        }
        let (mut last, mut has_failed) = (None, false);
        for step in action["runs"]["steps"].as_sequence().unwrap() {
            let is_run = match step["if"].as_str() {
                None => !has_failed,
                Some("always() && inputs.comment == 'true' && inputs.diff != 'false'") => {
                    self.context["inputs.comment"] == "true" && self.context["inputs.diff"] != "false"
                }
                Some(other) => panic!("{other}"),
            };
            if is_run {
                let output = self.step(step);
                if !has_failed {
                    has_failed = output.status != 0;
                    last = Some(output);
                }
            }
        }
        last.unwrap()
    }

    fn step(&mut self, step: &Value) -> Output {
        assert_eq!(step["shell"].as_str(), Some("bash"));
        let run = step["run"].as_str().unwrap();
        // Whatever is pasted into a script is run.
        assert!(!run.contains("${{"), "{run}");
        let files = ["GITHUB_OUTPUT", "GITHUB_PATH", "GITHUB_STEP_SUMMARY"];
        for name in files {
            let file = self.sandbox.path("runner").join(name);
            fs::write(&file, "").unwrap();
            self.sandbox.set(name, &file);
        }
        let variables = step["env"].as_mapping().unwrap().iter();
        let variables = variables.map(|(name, value)| {
            let [name, value] = [name, value].map(|text| text.as_str().unwrap());
            let expression = value.strip_prefix("${{ ");
            let value = match expression.and_then(|rest| rest.strip_suffix(" }}")) {
                // A missing value of an event is empty.
                Some(name) => self.context.get(name).cloned().unwrap_or_default(),
                None => value.to_owned(),
            };
            (name.to_owned(), value)
        });
        let output = super::step(&self.sandbox, &self.workspace, run, variables);
        let added = fs::read_to_string(self.sandbox.path("runner/GITHUB_PATH")).unwrap();
        for directory in added.lines() {
            let path = format!("{directory}:{}", std::env::var("PATH").unwrap());
            self.sandbox.set("PATH", path);
        }
        if let Some(id) = step["id"].as_str() {
            let outputs = self.file("GITHUB_OUTPUT");
            let mut lines = outputs.lines();
            self.context.retain(|name, _| !name.starts_with(&format!("steps.{id}.")));
            while let (Some(name), Some(value), Some(_)) = (lines.next(), lines.next(), lines.next()) {
                self.set(&format!("steps.{id}.outputs.{}", name.split("<<").next().unwrap()), value);
            }
        }
        output
    }

    fn file(&self, name: &str) -> String {
        fs::read_to_string(self.sandbox.path("runner").join(name)).unwrap()
    }

    /// Makes a pull request of what is in the working tree of the origin, and returns the base, the
    /// head and the merge that GitHub makes of them. The merge is checked out.
    fn pull_request(&mut self) -> (String, String, String) {
        let origin = &self.origin;
        let base = origin.id("main");
        origin.git(&["switch", "--quiet", "-c", "topic"]);
        let head = origin.commit("change");
        origin.git(&["switch", "--quiet", "-c", "pull", "main"]);
        origin.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "topic"]);
        let merge = origin.id("HEAD");
        self.set("github.event.pull_request.base.sha", &base);
        self.set("github.event.pull_request.head.sha", &head);
        // By default only the merge is there, and its base is fetched.
        self.event("pull_request", &merge, 1);
        (base, head, merge)
    }

    /// Returns a runner for a pull request that writes these files, with what [`Runner::pull_request`] returns.
    fn pulled(files: &[(&str, &str)]) -> (Runner, (String, String, String)) {
        let mut runner = Runner::new();
        for (path, text) in files {
            runner.origin.write(path, text);
        }
        let pull_request = runner.pull_request();
        (runner, pull_request)
    }
}

#[test]
fn a_pull_request_that_needs_the_network_fails() {
    let (mut runner, (_, head, merge)) = Runner::pulled(&[(ROOT, REMOTE)]);
    let mut transcript = Transcript::default();
    for depth in [1, 2] {
        runner.event("pull_request", &merge, depth);
        transcript.add(runner.run().fails(1));
        let summary = runner.file("GITHUB_STEP_SUMMARY");
        for part in ["app/kustomization.yaml:2:5", "~~~text\napp: app/kustomization.yaml\n~~~\n"] {
            assert!(summary.contains(part), "no {part:?} in {summary}");
        }
        assert!(summary.trim_end().ends_with("~~~"), "{summary}");
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 error
        ::error file=app/kustomization.yaml,line=2,col=5,title=remote-reference::`https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/app
    "#]]);
    // Some check the head out.
    runner.event("pull_request", &head, 1);
    runner.sandbox.set("GITHUB_SHA", &merge);
    runner.finds_the_remote_reference();
}

#[test]
fn a_build_sees_what_the_reader_does_not() {
    let Some(kustomize) = Kustomize::find() else { return };
    let hidden = format!("{LOCAL}components:\n  - https://github.com/acme/hidden?ref=v1\n");
    let (mut runner, _) = Runner::pulled(&[(ROOT, &hidden)]);
    runner.run().fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/hidden?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:4:5
          |
        4 |   - https://github.com/acme/hidden?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ components[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 2 references in commit <0> (HEAD): 1 error
        ::error file=app/kustomization.yaml,line=4,col=5,title=remote-reference::`https://github.com/acme/hidden?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/app
    "#]]);
    runner.sandbox.set("KUSTOMIZE_LOCALIZE_BLIND_TO", "components");
    runner.set("inputs.build", "false");
    runner.run().success();
    runner.sandbox.script("kustomize", &format!("exec '{}' \"$@\"", kustomize.program().display()));
    let mut transcript = Transcript::default();
    for build in ["true", "auto"] {
        runner.set("inputs.build", build);
        transcript.add(runner.run().fails(1));
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error[unread-reference]: kustomize asks for `git fetch --depth=1 https://github.com/acme/hidden v1`, which no reference names
         --> app/kustomization.yaml
         = help: write the reference plainly, and lock it: git kustomize-localize explain unread-reference

        for more: git kustomize-localize explain unread-reference
        checked 1 kustomization with 1 reference in commit <0> (HEAD), 0 builds (kustomize/…, network closed): 1 error
        ::error file=app/kustomization.yaml,title=unread-reference::kustomize asks for `git fetch --depth=1 https://github.com/acme/hidden v1`, which no reference names%0Awrite the reference plainly, and lock it: git kustomize-localize explain unread-reference
        ::stop-commands::<1>
        hint: git kustomize-localize explain unread-reference
        1 affected build could not be compared since <2>; unknown: 1 root
        ::<1>::
    "#]]);
    // A URL that is not locked is told of at its line, and nowhere else; also where nothing can be built for it.
    runner.sandbox.unset("KUSTOMIZE_LOCALIZE_BLIND_TO");
    let output = runner.run();
    output.fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/hidden?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:4:5
          |
        4 |   - https://github.com/acme/hidden?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ components[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        unknown: app/kustomization.yaml: `https://github.com/acme/hidden?ref=v1` is neither localized nor locked
        checked 1 kustomization with 2 references in commit <0> (HEAD), 0 builds: 1 error; 1 build unknown
        ::error file=app/kustomization.yaml,line=4,col=5,title=remote-reference::`https://github.com/acme/hidden?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/app
        ::stop-commands::<1>
        hint: check the host's name, the network and the proxy (`https_proxy`)
        1 affected build could not be compared since <2>; unknown: 1 root
        ::<1>::
    "#]]);
    let annotations =
        output.stdout.lines().filter(|line| line.starts_with("::error ") || line.starts_with("::warning "));
    assert_eq!(annotations.count(), 1, "{output:?}");
    runner.set("inputs.build", "yes");
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::build is true, false or auto
    "#]]);
}

#[test]
fn a_pull_request_is_judged_by_its_base() {
    let on_one_line = "::error file=.kustomize-localize,line=1,";
    let loosened = "new in the configuration: +  remote-reference: off\n";
    let mut transcript = Transcript::default();
    for (files, status, said) in [
        (&[("note", "x")][..], 0, ""),
        (&[(ROOT, REMOTE), (CONFIG, OFF)], 1, "remote-reference"),
        (&[(CONFIG, "nonsense: true\n")], 2, on_one_line),
        (&[(CONFIG, OFF)], 0, loosened),
    ] {
        let (mut runner, (_, _, merge)) = Runner::pulled(files);
        let output = runner.run();
        assert_eq!(output.status, status, "{files:?} {output:?}");
        transcript.add(&output);
        if said == loosened {
            let summary = runner.file("GITHUB_STEP_SUMMARY");
            let line = "&#10;new in the configuration: +  remote-reference: off&#10;";
            assert!(summary.contains(line), "{summary}");
        }
        if status == 1 {
            // The configuration of the commit itself works; the base lacks it.
            runner.set("inputs.base", &merge);
            runner.run().success();
        }
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        new in the configuration: +rules:
        new in the configuration: +  remote-reference: off
        new in the configuration: +  floating-ref: off
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 error
        ::error file=app/kustomization.yaml,line=2,col=5,title=remote-reference::`https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/app
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error: .kustomize-localize:1:1: unknown field `nonsense`
          hint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
        ::error file=.kustomize-localize,line=1,col=1,title=could not be checked::unknown field `nonsense`%0Ahint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        new in the configuration: +rules:
        new in the configuration: +  remote-reference: off
        new in the configuration: +  floating-ref: off
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
    "#]]);
}

#[test]
fn only_new_findings_count() {
    let mut runner = Runner::new();
    runner.origin.write("old/kustomization.yaml", REMOTE);
    runner.origin.commit("old");
    runner.origin.write("new/kustomization.yaml", REMOTE);
    let (base, _, merge) = runner.pull_request();
    let before = "github.event.before";
    let mut transcript = Transcript::default();
    for (event, variable) in [
        ("pull_request", "github.event.pull_request.base.sha"),
        ("push", before),
        ("merge_group", "github.event.merge_group.base_sha"),
        // A new branch starts from the default one.
        ("push", ""),
    ] {
        runner.event(event, &merge, 1);
        if variable.is_empty() {
            runner.sandbox.set("GITHUB_REF", "refs/heads/pull");
            runner.set(before, "0".repeat(40));
        } else {
            runner.set(variable, &base);
        }
        transcript
            .add(runner.run().fails(1).stdout_has("file=new/kustomization.yaml").lacks("file=old/kustomization.yaml"));
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> new/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/new

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 3 references in commit <0> (HEAD): 1 error, 1 finding already in <1>
        ::error file=new/kustomization.yaml,line=2,col=5,title=remote-reference::`https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/new
    "#]]);
}

#[test]
fn a_push_of_a_branch_is_judged_against_the_default_branch() {
    let mut runner = Runner::new();
    runner.set("inputs.sarif", "sarif");
    let push = |runner: &mut Runner, branch: &str, files: &[(&str, &str)], status: i32| {
        let before = runner.origin.id("HEAD");
        files.iter().for_each(|(path, text)| runner.origin.write(path, text));
        let commit = runner.origin.commit("push");
        runner.event("push", &commit, 1);
        runner.sandbox.set("GITHUB_REF", format!("refs/heads/{branch}"));
        runner.set("github.event.before", before);
        let output = runner.run();
        assert_eq!(output.status, status, "{branch} {files:?} {output:?}");
        // Code scanning would close what a later push does not report.
        let is_reported = runner.checkout.read("sarif").contains("acme/app//deploy");
        assert_eq!(is_reported, runner.checkout.read(ROOT).contains("https:"), "{branch} {files:?}");
    };
    let branch = |runner: &Runner, name: &str| runner.origin.git(&["switch", "--quiet", "-c", name, "main"]);
    branch(&runner, "two-pushes");
    push(&mut runner, "two-pushes", &[(ROOT, REMOTE)], 1);
    push(&mut runner, "two-pushes", &[("note", "x")], 1);
    branch(&runner, "own-exception");
    push(&mut runner, "own-exception", &[(CONFIG, OFF)], 0);
    runner.origin.write(ROOT, REMOTE);
    runner.origin.commit("what it covers");
    push(&mut runner, "own-exception", &[(CONFIG, "")], 1);
    // What is wrong in main is not new in a branch, nor in main after the next push.
    runner.origin.git(&["switch", "--quiet", "main"]);
    push(&mut runner, "main", &[(ROOT, REMOTE)], 1);
    push(&mut runner, "main", &[("note", "y")], 0);
    branch(&runner, "rebased");
    push(&mut runner, "rebased", &[("note", "z")], 0);
}

#[test]
fn a_checkout_without_the_change_fails() {
    let (mut runner, (base, head, merge)) = Runner::pulled(&[(ROOT, REMOTE)]);
    runner.set("github.event.before", &base);
    runner.set("github.event.merge_group.base_sha", &base);
    runner.origin.git(&["switch", "--quiet", "-c", "other", "main"]);
    runner.origin.write("note", "x");
    let other = runner.origin.commit("other");
    let (mut refused, mut checked) = (Transcript::default(), Transcript::default());
    for event in rows(EVENTS, 2) {
        let is_target = event == "pull_request_target";
        // The base, and a branch that has nothing to do with it; as shallow as can be, and whole.
        for (wrong, depth) in [(&base, 1), (&base, 100), (&other, 1), (&other, 100)] {
            runner.event(event, wrong, depth);
            runner.sandbox.set("GITHUB_SHA", if is_target { &base } else { &merge });
            runner.sandbox.set("GITHUB_REF", "refs/heads/pull");
            for input in ["", &base] {
                runner.set("inputs.base", input);
                if input.is_empty() || !["schedule", "workflow_dispatch"].contains(&event) {
                    refused.add(runner.run().fails(2));
                }
            }
            runner.set("inputs.base", "");
        }
        // With what the job has committed on top of it, too.
        let right = if is_target { &head } else { &merge };
        for depth in [1, 100] {
            runner.event(event, right, depth);
            runner.sandbox.set("GITHUB_REF", "refs/heads/pull");
            if depth > 1 {
                runner.checkout.git(&["commit", "--quiet", "--allow-empty", "-m", "by the job"]);
            }
            checked.add(runner.run().fails(1));
        }
    }
    refused.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::this checkout does not contain <0>, which the event pull_request_target is about: use the event pull_request
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::this checkout does not contain <0>, which the event push is about: leave out ref and repository of actions/checkout, or give fetch-depth: 0
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::this checkout does not contain <0>, which the event schedule is about: leave out ref and repository of actions/checkout, or give fetch-depth: 0
    "#]]);
    checked.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 error
        ::error file=app/kustomization.yaml,line=2,col=5,title=remote-reference::`https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/app
    "#]]);
}

#[test]
fn a_base_that_cannot_be_fetched_fails() {
    let (mut runner, (base, head, merge)) = Runner::pulled(&[(ROOT, REMOTE)]);
    runner.set("github.event.before", &base);
    runner.set("github.event.merge_group.base_sha", &base);
    let server = Server::start();
    server.require_password("/", "x-access-token", "s3cr3t");
    let mut transcript = Transcript::default();
    for event in rows(EVENTS, 2) {
        let right = if event == "pull_request_target" { &head } else { &merge };
        let nowhere = "file:///nowhere".to_owned();
        runner.event(event, right, 1);
        runner.sandbox.set("GITHUB_REF", "refs/heads/pull");
        // As without `persist-credentials`.
        let url = runner.checkout.git(&["remote", "get-url", "origin"]);
        for other in [server.url(), nowhere] {
            runner.checkout.git(&["remote", "set-url", "origin", &other]);
            transcript.add(runner.run().fails(2));
        }
        runner.checkout.git(&["remote", "set-url", "origin", &url]);
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::commit <0>, which this change starts from, cannot be fetched: give actions/checkout persist-credentials: true
        fatal: could not read Username for 'http://127.0.0.1:…': terminal prompts disabled
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::commit <0>, which this change starts from, cannot be fetched: give actions/checkout fetch-depth: 2
        fatal: '/nowhere' does not appear to be a git repository
        fatal: Could not read from remote repository.

        Please make sure you have the correct access rights
        and the repository exists.
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::the branch main, to compare with, cannot be fetched: give actions/checkout persist-credentials: true
        fatal: could not read Username for 'http://127.0.0.1:…': terminal prompts disabled
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::the branch main, to compare with, cannot be fetched: see the log
        fatal: '/nowhere' does not appear to be a git repository
        fatal: Could not read from remote repository.

        Please make sure you have the correct access rights
        and the repository exists.
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::the branch main, to compare with, cannot be fetched: give actions/checkout persist-credentials: true
        fatal: could not read Username for 'http://127.0.0.1:…': terminal prompts disabled
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        ::error title=git kustomize-localize::the branch main, to compare with, cannot be fetched: see the log
        fatal: '/nowhere' does not appear to be a git repository
        fatal: Could not read from remote repository.

        Please make sure you have the correct access rights
        and the repository exists.
    "#]]);
}

#[test]
fn a_checkout_is_found_or_it_is_said_where_it_is() {
    let (mut runner, (_, _, merge)) = Runner::pulled(&[(ROOT, REMOTE)]);
    runner.event("pull_request", &merge, 2);
    // As in a container.
    runner.sandbox.set("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1");
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::git trusts no checkout of another user, as there is one in a container: before this step, run git config --global --add safe.directory '/home/me/checkout'
        fatal: detected dubious ownership in repository at '/home/me/checkout'
        To add an exception for this directory, call:

        	git config --global --add safe.directory /home/me/checkout
    "#]]);
    runner.sandbox.unset("GIT_TEST_ASSUME_DIFFERENT_OWNER");
    let inner = runner.checkout.path().to_owned();
    let workspace = runner.sandbox.path("workspace");
    fs::create_dir_all(workspace.join("src")).unwrap();
    fs::rename(&inner, workspace.join("src/fleet")).unwrap();
    runner.workspace = workspace;
    runner.set("inputs.sarif", "sarif");
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::nothing is checked out here, but in src/fleet: give directory: src/fleet
        fatal: not a git repository (or any of the parent directories): .git
    "#]]);
    runner.set("inputs.directory", "src/fleet");
    runner.finds_the_remote_reference();
    assert!(runner.workspace.join("sarif").exists());
    runner.set("inputs.directory", "elsewhere");
    runner.run().fails(2).stdout_has("there is no directory elsewhere");
    fs::remove_dir_all(runner.workspace.join("src/fleet")).unwrap();
    runner.set("inputs.directory", ".");
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::nothing is checked out: actions/checkout must come first
        fatal: not a git repository (or any of the parent directories): .git
    "#]]);
}

#[test]
fn what_branch_makes_is_verified_and_no_change() {
    let mut runner = Runner::new();
    let upstream = runner.sandbox.repo("upstream");
    super::clean(&upstream);
    runner.origin.write(ROOT, format!("resources: ['file://{}//app']\n", upstream.path().display()));
    runner.origin.run(&["lock"]).success();
    runner.origin.commit("lock");
    runner.origin.run(&["branch", "--no-verify"]).success();
    // An App pushes it for the first time: no commit was there before.
    runner.set("github.event.before", "0".repeat(40));
    let push = |runner: &mut Runner, branch: &str| {
        let tip = runner.origin.id("localized/main");
        runner.event("push", &tip, 1);
        runner.sandbox.set("GITHUB_REF", format!("refs/heads/{branch}"));
        runner.run()
    };
    push(&mut runner, "localized/main").success().says(expect![[r#"
        ::stop-commands::<0>
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <1>
        verified HEAD (<1>): as recorded
        ::<0>::
    "#]]);
    push(&mut runner, "topic").fails(1).says(expect![[r#"
        error[merged-back]: the localized branch was merged into its source: local paths replaced its URLs
         --> kustomize-localize.lock
         = help: undo the merge: git revert --no-edit <0>
         = help: if this is the localized branch itself, deploy from it, and do not merge it

        for more: git kustomize-localize explain merged-back
        checked 2 kustomizations with 2 references in commit <0> (HEAD): 1 error
        ::error file=kustomize-localize.lock,title=merged-back::the localized branch was merged into its source: local paths replaced its URLs%0Aundo the merge: git revert --no-edit <0>%0Aif this is the localized branch itself, deploy from it, and do not merge it
    "#]]);
    runner.origin.git(&["switch", "--quiet", "localized/main"]);
    runner.origin.write(ROOT, LOCAL);
    runner.origin.commit("by hand");
    let edited = push(&mut runner, "localized/main");
    edited.fails(1).says(expect![[r#"
        ::stop-commands::<0>
        app/kustomization.yaml: differs from the tree recorded in the message of <1>

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <1>
        NOT verified HEAD (<2>): 1 difference
        ::<0>::
        ::error title=git kustomize-localize::localized/main is not what its record says: see the log
    "#]]);
}

#[test]
fn a_pull_request_starts_from_the_base_that_it_was_merged_with() {
    let mut runner = Runner::new();
    let stale = runner.origin.id("main");
    runner.origin.write("old/kustomization.yaml", REMOTE);
    runner.origin.commit("old");
    runner.origin.write("new/kustomization.yaml", REMOTE);
    let (_, _, merge) = runner.pull_request();
    // The event may be older than the merge.
    runner.set("github.event.pull_request.base.sha", stale);
    let mut transcript = Transcript::default();
    for depth in [1, 2, 100] {
        runner.event("pull_request", &merge, depth);
        transcript
            .add(runner.run().fails(1).stdout_has("file=new/kustomization.yaml").lacks("file=old/kustomization.yaml"));
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> new/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/new

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 3 references in commit <0> (HEAD): 1 error, 1 finding already in <1>
        ::error file=new/kustomization.yaml,line=2,col=5,title=remote-reference::`https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/new
    "#]]);
}

#[test]
fn no_event_is_judged_by_the_configuration_of_the_change() {
    let (mut runner, (_, _, merge)) = Runner::pulled(&[(ROOT, REMOTE), (CONFIG, OFF)]);
    runner.set("github.event.before", "0".repeat(40));
    let names = ["refs/heads/pull", "refs/tags/v1", "refs/pull/1/merge"];
    let events = [
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
    ];

    for (event, name) in rows(events, 3).zip(names.iter().cycle()) {
        runner.event(event, &merge, 1);
        // The default branch itself starts from nothing that the event names.
        let said = format!("the event {event} names no commit to compare with");
        runner.run().fails(2).stdout_has(&said);
        runner.sandbox.set("GITHUB_REF", name);
        runner.run().fails(1).stdout_has("remote-reference");
    }

    let mut transcript = Transcript::default();
    for name in names {
        runner.event("push", &merge, 1);
        runner.sandbox.set("GITHUB_REF", name);
        transcript.add(runner.run().fails(1));
    }
    transcript.says(expect![[r#"
        $ bash --noprofile --norc -eo pipefail -c "bash \"$KL_ACTION/hooks/action/check.sh\""
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        new in the configuration: +rules:
        new in the configuration: +  remote-reference: off
        new in the configuration: +  floating-ref: off
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 error
        ::error file=app/kustomization.yaml,line=2,col=5,title=remote-reference::`https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/app
    "#]]);
    // Who asks for it is judged by it.
    runner.set("inputs.base", &merge);
    runner.run().success();
}

#[test]
fn an_event_that_cannot_be_checked_fails() {
    let (mut runner, (base, head, merge)) = Runner::pulled(&[(ROOT, REMOTE)]);
    // This event has the base checked out by default.
    runner.event("pull_request_target", &base, 1);
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::this checkout does not contain <0>, which the event pull_request_target is about: use the event pull_request
    "#]]);
    runner.event("pull_request_target", &head, 1);
    runner.sandbox.set("GITHUB_SHA", &base);
    runner.finds_the_remote_reference();

    runner.event("push", &merge, 1);
    runner.set("github.event.before", "1".repeat(40));
    // Two processes of git complain as well, in any order.
    runner.run().fails(2).stdout_has(", which this change starts from, is gone, as after a forced push: give base\n");
    runner.event("pull_request", &head, 1);
    for nonsense in ["", "--upload-pack=touch pwned", "main"] {
        runner.set("github.event.pull_request.base.sha", nonsense);
        runner.run().fails(2).stdout_has("names no commit");
    }
    runner.set("inputs.base", "--nonsense");
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::base names no commit that is at hand: give actions/checkout fetch-depth: 0
    "#]]);
    runner.checkout.git(&["fetch", "--quiet", "--unshallow", "origin"]);
    runner.run().fails(2).says(expect![[r#"
        ::error title=git kustomize-localize::base names no commit
    "#]]);
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
    let (mut runner, _) = Runner::pulled(&[(ROOT, REMOTE)]);
    runner.set("inputs.sarif", "result file.sarif");
    runner.finds_the_remote_reference();
    let sarif = runner.checkout.read("result file.sarif");
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    assert_eq!(sarif["version"], "2.1.0");
    assert_eq!(sarif["runs"][0]["results"][0]["ruleId"], "remote-reference");
    let output = runner.file("GITHUB_OUTPUT");
    assert!(output.contains("\nresult file.sarif\n"), "{output}");
}

#[test]
fn a_summary_shows_what_is_deployed() {
    let files = [("app/kustomization.yaml", "resources: [map.yaml]\n"), ("app/map.yaml", &*config("new"))];
    let (mut runner, _) = Runner::pulled(&files);
    let Some(kustomize) = Kustomize::find() else { return };
    runner.sandbox.offer("kustomize", kustomize.program());
    runner.run().success();
    let said = runner.file("kustomize-localize-diff.md");
    let summary = || runner.file("GITHUB_STEP_SUMMARY");
    assert!(said.contains("ConfigMap") && summary().contains(&said), "{said}");
    assert!(runner.file("GITHUB_OUTPUT").contains("runner/kustomize-localize-diff.md\n"));
    assert!(!runner.file("GITHUB_OUTPUT").contains(".html"));
    runner.set("inputs.diff", "false");
    runner.run().success();
    assert!(!runner.file("GITHUB_STEP_SUMMARY").contains("+++"));
    runner.set("inputs.diff", "yes");
    runner.run().fails(2).says(expect![[r#"
        checked 1 kustomization with 1 reference in commit <0> (HEAD), 1 build (kustomize/…, network closed): no problems found
        ::error title=git kustomize-localize::diff is true, false or auto
    "#]]);
}

#[test]
fn what_is_too_long_for_a_comment_is_a_page() {
    let long = format!("{}data: {{all: \"{}\"}}\n", config("new"), "x".repeat(70_000));
    let files = [("app/kustomization.yaml", "resources: [map.yaml]\n"), ("app/map.yaml", &*long)];
    let (mut runner, _) = Runner::pulled(&files);
    let Some(kustomize) = Kustomize::find() else { return };
    runner.sandbox.offer("kustomize", kustomize.program());
    runner.run().success();
    assert!(runner.file("GITHUB_OUTPUT").contains("runner/kustomize-localize-diff.html\n"));
    let page = runner.file("kustomize-localize-diff.html");
    assert!(page.starts_with("<!doctype html>") && page.contains(&"x".repeat(70_000)));
}

/// Returns a file of the sources that is YAML.
fn yaml(path: &str) -> Value {
    serde_yaml::from_str(&source(path)).unwrap()
}

#[test]
fn every_input_is_described() {
    let action = yaml("action.yml");
    let page = source("src/manual/ci.md");
    let rows = section(&page, "## GitHub Actions").lines();
    let mut rows: Vec<&str> = rows.filter_map(|line| line.strip_prefix("| `")?.split('`').next()).collect();
    let inputs = action["inputs"].as_mapping().unwrap().keys();
    let mut inputs: Vec<&str> = inputs.filter_map(Value::as_str).collect();
    rows.sort_unstable();
    inputs.sort_unstable();
    assert_eq!(rows, inputs);
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
    runner.origin.write(ROOT, reference);
    runner.origin.run(&["lock"]).success();
    let lock = runner.origin.read("kustomize-localize.lock");
    let invented = lock.replace(&upstream.id("v1"), &"1".repeat(40));
    assert_ne!(lock, invented);
    runner.origin.write("kustomize-localize.lock", invented);
    runner.pull_request();
    runner.run().success();
    runner.set("inputs.verify-lock", "true");
    runner
        .run()
        .fails(1).says(expect![[r#"
            warning[stale-lock]: `file:///home/me/upstream?ref=v1` is at <0> now, but what it names was read at <1>
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: file:///home/me/upstream
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: read it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

            for more: git kustomize-localize explain stale-lock
            new in the lock: kustomize-localize.lock:4: file:///home/me/upstream?ref=v1 gitCommit:<0>
            checked 1 kustomization with 1 reference in commit <2> (HEAD): 1 warning
            ::warning file=kustomize-localize.lock,line=4,col=5,title=stale-lock::`file:///home/me/upstream?ref=v1` is at <0> now, but what it names was read at <1>%0Aread it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
            ::stop-commands::<3>
            kustomize-localize.lock:4: moved: file:///home/me/upstream?ref=v1 was <0>, is <1>: the tag `v1` points to another commit
            upstream of 1 remote: 1 moved
              a moved version is only updated by name, once you know why it moved: git kustomize-localize update 'file:///home/me/upstream?ref=v1'
            NOT verified HEAD (<2>): 1 difference
            ::<3>::
            ::error title=git kustomize-localize::upstream is not what the locks hold, or cannot be asked: see the log
        "#]]);
    runner.set("inputs.verify-lock", "yes");
    runner.run().fails(2).says(expect![[r#"
        warning[stale-lock]: `file:///home/me/upstream?ref=v1` is at <0> now, but what it names was read at <1>
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: file:///home/me/upstream
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: read it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain stale-lock
        new in the lock: kustomize-localize.lock:4: file:///home/me/upstream?ref=v1 gitCommit:<0>
        checked 1 kustomization with 1 reference in commit <2> (HEAD): 1 warning
        ::warning file=kustomize-localize.lock,line=4,col=5,title=stale-lock::`file:///home/me/upstream?ref=v1` is at <0> now, but what it names was read at <1>%0Aread it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
        ::error title=git kustomize-localize::verify-lock is true or false
    "#]]);
}
