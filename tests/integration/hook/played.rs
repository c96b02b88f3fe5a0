//! Whole workflows, played on this machine by [act](https://github.com/nektos/act): expressions, conditions, inputs and
//! outputs of actions, and reusable workflows, which steps that are cut out of YAML do not show.
//!
//! The hosting side is a server on loopback. act looks at no permissions, no concurrency and no filters of paths.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::recipes::Hosting;
use super::{LOCAL, REMOTE, ROOT};
use crate::support::pages::{blocks, source};
use crate::support::{Output, Reply, Repo, Running, Sandbox, config, program, tool};

/// The token of the job, and that of an App.
const TOKEN: &str = "job-t0ken";
const APP: &str = "app-t0ken";
const COMMIT: &str = "1111111111111111111111111111111111111111";
const COMMENTS: &str = "/api/repos/owner/repository/issues/7/comments";

/// A repository on a hosting side, and what plays its workflows.
struct Played {
    sandbox: Sandbox,
    hosting: Hosting,
    work: Repo,
    act: PathBuf,
}

/// What starts a workflow.
struct Event {
    name: &'static str,
    git_ref: String,
    commit: String,
    payload: Value,
}

impl Played {
    /// Returns one whose `main` has one clean commit; none without act, or without a kustomize.
    fn new() -> Option<Played> {
        let (act, sandbox) = (tool("act")?, Sandbox::new());
        sandbox.offer("kustomize", sandbox.builds()?.program());
        let work = sandbox.repo("work");
        super::clean(&work);
        let hosting = Hosting::of(&sandbox, &work, TOKEN);
        let origin = hosting.origin.path().to_str().unwrap();
        work.git(&["remote", "add", "origin", origin]);
        sandbox.set("GITHUB_API_URL", format!("{}api", hosting.server.url()));
        hosting.server.route(COMMENTS, Reply::status(201));
        hosting.server.route(&format!("{COMMENTS}?per_page=100&page=1"), Reply::ok("[]"));
        sandbox.set("STAND_IN_TOOL", sandbox.path("tool"));
        // There is no release, and nothing is compiled here.
        let place = "while [ \"$1\" != --root ]; do shift; done\nmkdir -p \"$2/bin\"";
        sandbox.script("cargo", &format!("{place} && ln -sf {} \"$2/bin/\"", program().display()));
        let played = Played { sandbox, hosting, work, act };
        played.stage();
        Some(played)
    }

    /// Writes the sources of this tool that workflows use, and the stand-ins for the actions of others.
    fn stage(&self) {
        let write = |path: &str, text: &str| {
            let path = self.sandbox.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        for script in ["install", "check", "comment"].map(|name| format!("hooks/action/{name}.sh")) {
            write(&format!("tool/{script}"), &source(&script));
        }
        write("tool/action.yml", &source("action.yml"));
        for name in ["localize", "lock", "upstream"] {
            let path = format!(".github/workflows/{name}.yml");
            // act does not know what GitHub says of a called workflow.
            let text = source(&path).replace("${{ job.workflow_repository }}", "owner/tool");
            write(&format!("tool/{path}"), &text.replace("${{ job.workflow_sha }}", COMMIT));
        }
        write("stand-in/checkout/action.yml", include_str!("played/checkout.yml"));
        let output = format!(
            "name: nothing\noutputs: {{token: {{value: {APP}}}}}\n\
             runs: {{using: composite, steps: [{{name: nothing, shell: bash, run: 'true'}}]}}\n"
        );
        write("stand-in/create-github-app-token/action.yml", &output);
        write("stand-in/upload-artifact/action.yml", &output);
    }

    /// Plays a workflow, and returns the log.
    fn play(&self, workflow: &str, event: &Event) -> Output {
        let (sandbox, server) = (&self.sandbox, self.hosting.server.url());
        let workflow = workflow.replace("OWNER/REPOSITORY", "owner/tool").replace("@COMMIT", &format!("@{COMMIT}"));
        fs::write(sandbox.path("workflow.yml"), &workflow).unwrap();
        let mut payload = event.payload.clone();
        payload["repository"] = json!({
            "name": "repository", "full_name": "owner/repository", "default_branch": "main", "owner": {"login": "owner"}
        });
        fs::write(sandbox.path("event.json"), payload.to_string()).unwrap();
        sandbox.set("GITHUB_REF_NAME", event.git_ref.trim_start_matches("refs/heads/"));
        let mut act = sandbox.command(&self.act, self.work.path());
        act.arg(event.name).args(["-W", "../workflow.yml", "-e", "../event.json", "-P", "ubuntu-latest=-self-hosted"]);
        act.args(["--no-skip-checkout", "--no-cache-server", "--action-offline-mode", "-s"]);
        act.arg(format!("GITHUB_TOKEN={TOKEN}"));
        let used = regex::Regex::new(r"uses: actions/([\w-]+)@(\w+)").unwrap();
        let texts = ["localize", "lock", "upstream"].map(|name| source(&format!(".github/workflows/{name}.yml")));
        for text in texts.iter().chain([&workflow]) {
            for found in used.captures_iter(text) {
                let stand_in = sandbox.path("stand-in").join(&found[1]);
                let action = format!("{server}actions/{}@{}={}", &found[1], &found[2], stand_in.display());
                act.args(["--local-repository", &action]);
            }
        }
        let here = format!("{server}owner/tool@{COMMIT}={}", sandbox.path("tool").display());
        act.args(["--local-repository", &here]);
        let api = format!("{server}api");
        for (name, value) in [
            ("GITHUB_SERVER_URL", server.trim_end_matches('/')),
            ("GITHUB_API_URL", &api),
            ("GITHUB_REPOSITORY", "owner/repository"),
            ("GITHUB_SHA", &event.commit),
            ("GITHUB_REF", &event.git_ref),
        ] {
            act.args(["--env", &format!("{name}={value}")]);
        }
        // act asks the clone what it is for.
        self.work.git(&["checkout", "--quiet", "--detach", &event.commit]);
        let output = Running::start(&mut act).wait();
        self.work.git(&["checkout", "--quiet", "-"]);
        output.lacks(TOKEN);
        output
    }

    /// Pushes a branch, whose commit before was this.
    fn pushed(&self, branch: &str, before: &str) -> Event {
        self.work.git(&["push", "--quiet", "origin", branch]);
        let payload = json!({"ref": format!("refs/heads/{branch}"), "before": before});
        Event { name: "push", git_ref: format!("refs/heads/{branch}"), commit: self.work.id(branch), payload }
    }

    /// Returns the pull request of a branch of `repository` that writes this kustomization, with what GitHub merges.
    fn pull_request(&self, repository: &str, text: &str) -> Event {
        let work = &self.work;
        let base = work.id("main");
        work.git(&["switch", "--quiet", "-C", "topic", "main"]);
        work.write(ROOT, text);
        let head = work.commit("change");
        work.git(&["switch", "--quiet", "--detach", "main"]);
        work.git(&["merge", "--quiet", "--no-ff", "-m", "merge", "topic"]);
        let commit = work.id("HEAD");
        work.git(&["push", "--quiet", "--force", "origin", "HEAD:refs/pull/7/merge"]);
        work.git(&["switch", "--quiet", "main"]);
        let head = json!({"sha": head, "ref": "topic", "repo": {"full_name": repository, "fork": true}});
        let payload =
            json!({"number": 7, "pull_request": {"number": 7, "base": {"sha": base, "ref": "main"}, "head": head}});
        Event { name: "pull_request", git_ref: "refs/pull/7/merge".to_owned(), commit, payload }
    }

    /// Lets `main` reach an upstream, locked.
    fn reaches_an_upstream(&self) {
        let upstream = self.sandbox.repo("upstream");
        super::clean(&upstream);
        upstream.git(&["tag", "v1"]);
        self.work.write(ROOT, format!("resources: ['file://{}//app?ref=v1']\n", upstream.path().display()));
        self.work.commit("remote");
        self.work.lock();
    }

    /// Returns what was written to the API: methods and paths.
    fn comments(&self) -> Vec<String> {
        self.hosting
            .server
            .log()
            .into_iter()
            .filter(|line| !line.starts_with("GET ") && line.contains("/api/"))
            .collect()
    }
}

/// Returns the workflow on a page that has this text.
fn workflow(page: &str, text: &str) -> String {
    blocks(&source(page), "yaml").into_iter().find(|block| block.contains(text)).unwrap()
}

fn gate() -> String {
    workflow("src/manual/ci.md", "merge_group")
}

fn localize() -> String {
    workflow("src/manual/recipes.md", "workflows/localize.yml\n")
}

#[test]
fn a_pull_request_with_a_finding_is_red() {
    let Some(played) = Played::new() else { return };
    let event = played.pull_request("owner/repository", REMOTE);
    let output = played.play(&gate(), &event);
    output.fails(1).stdout_has("::error file=app/kustomization.yaml,line=2,").stdout_has("Job failed");
    assert_eq!(
        output.stdout.matches("::error ").count() + output.stdout.matches("::warning ").count(),
        1,
        "{output:?}"
    );
}

#[test]
fn a_push_to_main_makes_the_branch() {
    let Some(played) = Played::new() else { return };
    let before = played.work.id("main");
    played.reaches_an_upstream();
    let event = played.pushed("main", &before);
    played.play(&localize(), &event).success().stdout_has("Job succeeded");
    let text = played.hosting.origin.show("localized/main", ROOT);
    assert!(!text.contains("file:"), "{text}");
}

#[test]
#[ignore = "takes long"]
fn every_event_of_the_gate_is_judged() {
    let Some(played) = Played::new() else { return };
    let work = &played.work;
    let clean = played.pull_request("owner/repository", LOCAL);
    played.play(&gate(), &clean).success().lacks("::error ");
    // What is merged is judged like what is asked for.
    let wrong = played.pull_request("owner/repository", REMOTE);
    let base = work.id("main");
    let queued = Event { name: "merge_group", payload: json!({"merge_group": {"base_sha": base}}), ..wrong };
    played.play(&gate(), &queued).fails(1).stdout_has("remote-reference");
    work.write(ROOT, REMOTE);
    work.commit("wrong");
    let event = played.pushed("main", &base);
    played.play(&gate(), &event).fails(1).stdout_has("remote-reference");
    work.write("note", "x");
    work.commit("note");
    let event = played.pushed("main", &work.id("main^"));
    played.play(&gate(), &event).success().stdout_has("1 finding already in ");
    // In a directory of the workspace.
    let elsewhere = gate().replace("fetch-depth: 2", "fetch-depth: 2\n          path: fleet");
    played.play(&elsewhere, &event).fails(1).stdout_has("but in fleet: give directory: fleet");
    let told = format!("{}\n        with: {{directory: fleet}}\n", elsewhere.trim_end());
    played.play(&told, &event).success();
    // What the job of `localize.yml` pushes as an App.
    played.reaches_an_upstream();
    work.run(&["branch"]).success();
    let event = played.pushed("localized/main", &"0".repeat(40));
    played.play(&gate(), &event).success().stdout_has("verified HEAD (");
}

#[test]
#[ignore = "takes long"]
fn a_pull_request_gets_its_comment() {
    let Some(played) = Played::new() else { return };
    let server = &played.hosting.server;
    let diff = workflow("src/manual/ci.md", "workflows/diff.yml\n");
    let event = played.pull_request("owner/repository", "namePrefix: new-\nresources: [config.yaml]\n");
    played.play(&diff, &event).success();
    assert_eq!(played.comments(), [format!("POST {COMMENTS}")]);
    let forked = played.pull_request("other/repository", LOCAL);
    server.forget();
    played.play(&diff, &forked).success().stdout_has("no comment: ");
    let not_wanted = diff.replace("comment: 'true'", "comment: 'true', diff: 'false'");
    played.play(&not_wanted, &event).success().stdout_has("no comment: diff is false");
    assert_eq!(played.comments(), crate::support::NONE);
    // A token that may not write, as Dependabot has it.
    server.route(COMMENTS, Reply::status(403));
    played.play(&diff, &event).success().stdout_has("::warning title=git kustomize-localize::the comment cannot be");
    // One that is too long.
    let long = format!("{}data: {{all: \"{}\"}}\n", config("app"), "x".repeat(70_000));
    played.work.write("app/config.yaml", long);
    let event = played.pull_request("owner/repository", LOCAL);
    played.play(&diff, &event).success().stdout_has("Run Main actions/upload-artifact");
}

#[test]
#[ignore = "takes long"]
fn the_workflows_pass_what_they_are_given() {
    let Some(played) = Played::new() else { return };
    let (work, server, origin) = (&played.work, &played.hosting.server, &played.hosting.origin);
    let before = work.id("main");
    played.reaches_an_upstream();
    let event = played.pushed("main", &before);
    // The token of the job may read, and only an App may write.
    server.forget_passwords();
    for (service, token) in [("git-upload-pack", TOKEN), ("git-receive-pack", APP)] {
        for path in [format!("info/refs?service={service}"), service.to_owned()] {
            server.require_password(&format!("/owner/repository/{path}"), "x-access-token", token);
        }
    }
    played.play(&localize(), &event).fails(1);
    let is_there = |branch: &str| origin.try_git(&["rev-parse", "--verify", "--quiet", branch]).status == 0;
    assert!(!is_there("localized/main"));
    let with = "\n    with: {app-id: ID, branch: deployed}\n    secrets: {app-key: KEY, upstream-token: TOKEN}\n";
    played.play(&format!("{}{with}", localize().trim_end()), &event).success();
    assert!(is_there("deployed") && !is_there("localized/main"));

    // The lock of a bot's pull request, which the App pushes too.
    let lock = workflow("src/manual/recipes.md", "workflows/lock.yml\n");
    work.git(&["switch", "--quiet", "-c", "renovate/upstream"]);
    work.write(ROOT, work.read(ROOT).replace("?ref=v1", "?ref=main"));
    let head = work.commit("raise");
    work.git(&["push", "--quiet", "origin", "renovate/upstream"]);
    let mut event = played.pull_request("owner/repository", LOCAL);
    event.payload["pull_request"]["head"]["ref"] = json!("renovate/upstream");
    played.play(&lock, &event).success();
    assert_eq!(origin.id("renovate/upstream^"), head);
    assert!(origin.show("renovate/upstream", "kustomize-localize.lock").contains("ref: main"));
    event.payload["pull_request"]["head"]["repo"]["full_name"] = json!("other/repository");
    played.play(&lock, &event).success().lacks("Run Main Lock");

    // What upstream has become, of the branch of the first job.
    let nightly = workflow("src/manual/recipes.md", "workflows/upstream.yml\n");
    let with = "\n    with: {branch: deployed}\n";
    let event = Event { name: "workflow_dispatch", ..played.pushed("main", &before) };
    played.play(&format!("{}{with}", nightly.trim_end()), &event).success().stdout_has("upstream of 1 remote: ");
}
