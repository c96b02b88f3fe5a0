//! The recipes, run as far as possible without GitHub.

mod living;
mod private;
mod renovate;
mod upstream;

use serde_json::Value;

use crate::support::pages::{self, section, source};
use crate::support::{Kustomize, Output, Project, Repo, Sandbox, Server};

/// Returns the page with the recipes.
fn page() -> String {
    source("src/manual/recipes.md")
}

/// Returns a workflow that others call.
fn called(name: &str) -> Value {
    serde_yaml::from_str(&source(name)).unwrap()
}

/// Returns the workflow on the page that calls it.
fn calling(name: &str) -> Value {
    let blocks = pages::blocks(&page(), "yaml").into_iter();
    let mut blocks = blocks.filter(|text| text.starts_with(&format!("# {name}\n")));
    serde_yaml::from_str(&blocks.next().unwrap()).unwrap()
}

/// Returns the steps of a workflow.
fn steps(workflow: &Value) -> Vec<Value> {
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.filter_map(|job| job["steps"].as_array());
    steps.flatten().cloned().collect()
}

/// Returns the script of a step of a workflow.
fn step(workflow: &str, name: &str) -> String {
    let steps = steps(&called(workflow));
    let step = steps.iter().find(|step| step["name"] == name);
    step.unwrap()["run"].as_str().unwrap().to_owned()
}

#[test]
fn what_calls_grants_and_gives_what_is_asked_for() {
    for name in ["localize", "lock", "upstream"] {
        let path = format!(".github/workflows/{name}.yml");
        let (called, short) = (called(&path), calling(&path));
        let job = &short["jobs"][name];
        assert_eq!(job["uses"], format!("OWNER/REPOSITORY/{path}@COMMIT"));
        assert_eq!(short["permissions"], called["jobs"][name]["permissions"]);
        let inputs = called["on"]["workflow_call"]["inputs"].as_object().unwrap();
        for (input, about) in inputs {
            let is_given = !job["with"][input].is_null();
            assert_eq!(is_given, about["required"] == true, "{name}: {input}");
        }
    }
}

/// Returns the script of a job on the page about CI, as GitLab runs it: in one shell, without what installs.
fn gitlab(job: &str) -> String {
    let page = source("src/manual/ci.md");
    let written = pages::blocks(section(&page, "## GitLab CI"), "yaml").into_iter();
    let mut parsed = written.map(|text| serde_yaml::from_str::<Value>(&text).unwrap());
    let found = parsed.find(|jobs| !jobs[job].is_null()).unwrap();
    let lines = found[job]["script"].as_array().unwrap();
    let lines = lines.iter().map(|line| line.as_str().unwrap());
    let is_own = |line: &&str| !line.starts_with("pip ") && !line.starts_with("apk ");
    lines.filter(is_own).collect::<Vec<_>>().join("\n")
}

/// Returns a project on a runner that has the program and a kustomize; none without that.
fn runner() -> Option<Project> {
    let project = Project::new();
    project.sandbox.offer_itself();
    let kustomize = Kustomize::find()?;
    project.sandbox.offer("kustomize", kustomize.program());
    Some(project)
}

#[test]
fn gitlab_checks_and_follows() {
    let Some(project) = runner() else { return };
    let (sandbox, work) = (&project.sandbox, &project.work);
    // The check: a finding is in the report and in the log, and fails the job.
    let tree = work.git(&["hash-object", "-w", "-t", "tree", "/dev/null"]);
    let empty = work.git(&["commit-tree", "-m", "empty", &tree]);
    sandbox.set("CI_MERGE_REQUEST_DIFF_BASE_SHA", &empty);
    let check = gitlab("check");
    let output = run(&project, work, &check);
    output.fails(1).stdout_has("error[remote-reference]");
    let report = "gl-code-quality-report.json";
    let found: Value = serde_json::from_str(&work.read(report)).unwrap();
    assert_eq!(found[0]["check_name"], "remote-reference");
    work.remove(report);
    work.run(&["lock"]).success();
    work.commit("lock");
    run(&project, work, &check).success();

    // The branch, twice: the second run goes on from the first.
    let origin = sandbox.clone_with(work, "origin.git", &["--bare"]);
    let url = sandbox.path("origin");
    sandbox.set("CI_DEFAULT_BRANCH", "main");
    sandbox.set("CI_SERVER_URL", "https://gitlab.example.com");
    sandbox.set("CI_PROJECT_URL", url);
    let to = origin.path().to_str().unwrap();
    let tips = ["one", "two"].map(|name| {
        work.write("README.md", name);
        work.commit(name);
        work.git(&["push", "--quiet", to, "main"]);
        let job = sandbox.clone_of(&origin, name);
        job.git(&["checkout", "--quiet", "--detach"]);
        run(&project, &job, &gitlab("localize")).success();
        origin.id("localized/main")
    });
    origin.git(&["merge-base", "--is-ancestor", &tips[0], &tips[1]]);
    assert_ne!(tips[0], tips[1]);
}

/// Returns the JSON that has this key.
fn json(key: &str) -> Value {
    let blocks = pages::blocks(&page(), "json").into_iter();
    let mut parsed = blocks.map(|text| serde_json::from_str::<Value>(&text).unwrap());
    parsed.find(|json| !json[key].is_null()).unwrap()
}

/// Returns the blocks of a recipe, in this language.
fn blocks(recipe: &str, language: &str) -> Vec<String> {
    let page = page();
    let found = pages::blocks(section(&page, &format!("## {recipe}")), language);
    assert!(!found.is_empty(), "{recipe} has no {language}");
    found
}

/// Runs a step as a runner does.
fn run(project: &Project, repo: &Repo, script: &str) -> Output {
    super::step(&project.sandbox, repo.path(), script, [])
}

/// A hosting side that has the user's repository, and asks for a token.
struct Hosting {
    sandbox: Sandbox,
    server: Server,
    origin: Repo,
}

impl Hosting {
    fn of(sandbox: &Sandbox, work: &Repo, token: &str) -> Hosting {
        let server = Server::start();
        let origin = sandbox.clone_with(work, "srv/owner/repository.git", &["--bare"]);
        origin.git(&["config", "http.receivepack", "true"]);
        server.serve_git("/owner/", &sandbox.path("srv/owner"));
        server.require_password("/owner/", "x-access-token", token);
        sandbox.set("GITHUB_SERVER_URL", server.url().trim_end_matches('/'));
        sandbox.set("GITHUB_REPOSITORY", "owner/repository");
        sandbox.set("GITHUB_OUTPUT", sandbox.path("output"));
        Hosting { sandbox: sandbox.clone(), server, origin }
    }

    /// Returns what `actions/checkout` leaves of a branch.
    fn checkout(&self, name: &str, branch: &str) -> Repo {
        let options = ["--branch", branch];
        let checkout = self.sandbox.clone_with(&self.origin, name, &options);
        let url = format!("{}owner/repository", self.server.url());
        checkout.git(&["remote", "set-url", "origin", &url]);
        checkout
    }
}

#[test]
fn the_branch_follows_also_when_two_jobs_run_at_once() {
    let Some(project) = runner() else { return };
    let (sandbox, work) = (&project.sandbox, &project.work);
    work.lock();
    let origin = sandbox.clone_with(work, "origin.git", &["--bare"]);
    let to = origin.path().to_str().unwrap();
    let workflow = ".github/workflows/localize.yml";
    let [localize, verify] = ["Localize", "Verify"].map(|name| step(workflow, name));

    let first = sandbox.clone_of(&origin, "first");
    run(&project, &first, &localize).success();
    run(&project, &first, &verify).success();
    let tip = first.id("refs/remotes/origin/localized/main");
    assert_eq!(origin.id("localized/main"), tip);

    // Two pushes to main, two jobs: the later commit is pushed first.
    work.write("README.md", "one");
    work.commit("one");
    work.git(&["push", "--quiet", to, "main"]);
    let [slow, fast] = ["slow", "fast"].map(|name| sandbox.clone_of(&origin, name));
    fast.write("README.md", "two");
    fast.commit("two");
    // A fast job gets in between a slow one and its first push.
    let unpushed = localize.replace(" --push", "");
    run(&project, &fast, &unpushed).success();
    slow.hook(
        "pre-push",
        &format!(
            "#!/bin/sh\ntest -e \"$0.done\" && exit 0\n: > \"$0.done\"\nunset GIT_DIR\ngit -C '{}' push --quiet origin main localized/main\n",
            fast.path().display()
        ),
    );
    // It begins again, and finds a newer `main` localized: it does not take the branch back.
    run(&project, &slow, &localize).fails(2).stderr_has("which is newer than HEAD");
    assert_eq!(origin.id("localized/main"), fast.id("localized/main"));
    run(&project, &slow, &localize).success().stdout_has("nothing to do");
    run(&project, &slow, &verify).success();
    let log = origin.git(&["log", "--first-parent", "--format=%H", "localized/main"]);
    assert!(log.contains(&tip), "{log}");
    // Nothing was forced.
    assert!(log.contains(&fast.id("localized/main")), "{log}");
    assert_eq!(origin.show("localized/main", "README.md"), "two");

    // With the key that the caller may give.
    let key = std::fs::read_to_string(crate::branch::commits::signed::key(&project)).unwrap();
    assert_ne!(origin.try_git(&["verify-commit", "localized/main"]).status, 0);
    work.git(&["pull", "--quiet", "--rebase", to, "main"]);
    work.write("README.md", "three");
    work.commit("three");
    work.git(&["push", "--quiet", to, "main"]);
    let signed = sandbox.clone_of(&origin, "signed");
    sandbox.set("SIGNING_KEY", key.trim_end());
    sandbox.set("RUNNER_TEMP", sandbox.path("").to_str().unwrap());
    run(&project, &signed, &localize).success();
    origin.git(&["verify-commit", "localized/main"]);
}
