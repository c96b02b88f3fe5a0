//! The nightly job that asks upstream.

use std::fs;

use serde_json::json;

use super::{called, run, step};
use crate::support::{Project, Repo, Sandbox};

const WORKFLOW: &str = ".github/workflows/upstream.yml";

/// A fake `gh`: it writes down its arguments, and knows the issue whose number is in `open`.
const GH: &str = r#"
printf '%s\n' "$*" >>"$STAND_IN_GH/log"
case "$1 $2" in
"issue list") cat "$STAND_IN_GH/open" 2>/dev/null;;
"issue create"|"issue edit") for last; do :; done; cp "$last" "$STAND_IN_GH/body";;
*) exit 1;;
esac
exit 0
"#;

/// A night: the checkout of the branch, and what a runner offers.
struct Night {
    project: Project,
    checkout: Repo,
}

impl Night {
    fn new() -> Night {
        let project = Project::new();
        let sandbox = &project.sandbox;
        sandbox.offer_itself();
        sandbox.script("gh", GH);
        for name in ["gh", "runner"] {
            fs::create_dir(sandbox.path(name)).unwrap();
        }
        sandbox.set("STAND_IN_GH", sandbox.path("gh"));
        sandbox.set("RUNNER_TEMP", sandbox.path("runner"));
        sandbox.set("GITHUB_OUTPUT", sandbox.path("runner/output"));
        project.work.run(&["branch", "--no-verify"]).success();
        // As shallow as the clone of the job.
        let options = ["--no-local", "--depth=1", "--branch=localized/main"];
        let checkout = sandbox.clone_with(&project.work, "checkout", &options);
        Night { project, checkout }
    }

    /// Runs the job as GitHub does, and returns how it ended and the arguments of `gh`.
    fn pass(&self) -> (i32, Vec<String>) {
        let sandbox: &Sandbox = &self.project.sandbox;
        for name in ["gh/log", "gh/body", "runner/output"] {
            let _ = fs::remove_file(sandbox.path(name));
        }
        let verified = run(&self.project, &self.checkout, &step(WORKFLOW, "Verify"));
        assert!(verified.stdout.contains("upstream of 1 remote: "), "{verified:?}");
        let told = fs::read_to_string(sandbox.path("runner/output")).unwrap_or_default();
        assert!(told.is_empty() || told == "differs=true\n", "{told}");
        if told.contains("differs=true") {
            assert_ne!(verified.status, 0, "a step after one that fails: `failure()`");
            run(&self.project, &self.checkout, &step(WORKFLOW, "Report")).success();
        }
        let log = fs::read_to_string(sandbox.path("gh/log")).unwrap_or_default();
        (verified.status, log.lines().map(str::to_owned).collect())
    }

    fn body(&self) -> String {
        fs::read_to_string(self.project.sandbox.path("gh/body")).unwrap()
    }
}

#[test]
fn an_issue_lists_the_differences() {
    let night = Night::new();
    let project = &night.project;
    assert_eq!(night.pass(), (0, Vec::new()));

    project.second_version();
    project.upstream.git(&["tag", "--force", "v1"]);
    let asks_for = |command: &str| {
        let (status, asked) = night.pass();
        assert_eq!((status, asked.len()), (1, 2), "{asked:?}");
        let list = "issue list --state open --app github-actions ";
        assert!(asked[0].starts_with(list), "{asked:?}");
        assert!(asked[1].starts_with(command), "{asked:?}");
        let body = night.body();
        // As code: text of upstream must not be read as Markdown.
        let mut lines = body.lines().skip(2);
        assert!(lines.all(|line| line.starts_with("    ")), "{body}");
        let moved = "the tag `v1` points to another commit\n";
        assert!(body.contains(moved) && body.contains("moved: "), "{body}");
    };
    asks_for("issue create --title Upstream is not what was locked --body-file ");
    // The next night it is reported in the same issue.
    fs::write(project.sandbox.path("gh/open"), "7\n").unwrap();
    asks_for("issue edit 7 --body-file ");
}

#[test]
fn an_unreachable_upstream_only_fails_the_job() {
    let night = Night::new();
    let sandbox = &night.project.sandbox;
    sandbox.pretend("https://example.com/acme/", "http://127.0.0.1:9/");
    assert_eq!(night.pass(), (2, Vec::new()));
    // Other differences are reported all the same.
    let file = night.checkout.git(&["ls-files", "*service.yaml"]);
    night.checkout.write(&file, "by: hand\n");
    night.checkout.commit("by hand");
    let (status, asked) = night.pass();
    assert_eq!(status, 2);
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(night.body().contains("unreachable: "), "{}", night.body());
}

#[test]
fn the_job_may_do_no_more_than_it_has_to() {
    let workflow = called(WORKFLOW);
    assert_eq!(workflow["jobs"]["upstream"]["permissions"], json!({ "contents": "read", "issues": "write" }));
    let steps = super::steps(&workflow);
    assert_eq!(steps[0]["with"]["persist-credentials"], false);
    // `shipped::workflows` looks at every script; this is what foreign text could reach.
    let has_token = |step: &serde_json::Value| step["env"].to_string().contains("github.token");
    let with_token = steps.iter().filter(|step| has_token(step));
    let names: Vec<_> = with_token.map(|step| &step["name"]).collect();
    assert_eq!(names, ["Verify", "Report"]);
}
