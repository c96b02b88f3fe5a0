//! The recipes, run as far as possible without GitHub.

mod living;
mod private;
mod renovate;
mod upstream;

use crate::support::pages::{section, source};
use crate::support::{Project, Repo, Running};

/// Returns the page with the recipes.
fn page() -> String {
    source("src/manual/recipes.md")
}

/// Returns a workflow as it stands on the page in full.
fn workflow(name: &str) -> serde_json::Value {
    let page = page();
    let written = crate::support::pages::blocks(&page, "yaml").into_iter();
    let head = format!("# {name}\n");
    let mut parsed = written
        .filter(|text| text.starts_with(&head))
        .map(|text| serde_yaml::from_str::<serde_json::Value>(&text).unwrap());
    parsed
        .find(|workflow| !steps(workflow).is_empty())
        .unwrap_or_else(|| panic!("no {name}"))
}

/// Returns the steps of a workflow.
fn steps(workflow: &serde_json::Value) -> Vec<serde_json::Value> {
    let jobs = workflow["jobs"].as_object().unwrap().values();
    let steps = jobs.filter_map(|job| job["steps"].as_array());
    steps.flatten().cloned().collect()
}

/// Returns the script of a step of a workflow.
fn step(workflow: &str, name: &str) -> String {
    let steps = steps(&self::workflow(workflow));
    let mut found = steps.iter().filter(|step| step["name"] == name);
    found.next().unwrap()["run"].as_str().unwrap().to_owned()
}

#[test]
fn what_is_called_does_what_stands_on_the_page() {
    for name in ["localize", "lock", "upstream"] {
        let path = format!(".github/workflows/{name}.yml");
        let called: serde_json::Value = serde_yaml::from_str(&source(&path)).unwrap();
        let written = workflow(&path);
        let scripts = |workflow: &serde_json::Value| -> Vec<(String, String)> {
            let steps = steps(workflow).into_iter();
            let steps = steps.filter(|step| step["name"] != "Install");
            let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
            steps
                .map(|step| (text(&step["name"]), text(&step["run"])))
                .collect()
        };
        assert_eq!(scripts(&called), scripts(&written), "{name}");
        let job = &called["jobs"][name];
        assert_eq!(job["permissions"], written["permissions"], "{name}");
        assert_eq!(job["if"], written["jobs"][name]["if"], "{name}");
        // A short one calls it, with what it asks for.
        let short = crate::support::pages::blocks(&page(), "yaml").into_iter();
        let mut short = short
            .filter(|text| text.starts_with(&format!("# {path}\n")))
            .map(|text| serde_yaml::from_str::<serde_json::Value>(&text).unwrap())
            .filter(|short| steps(short).is_empty());
        let short = short.next().unwrap();
        assert_eq!(
            short["jobs"][name]["uses"],
            format!("OWNER/REPOSITORY/{path}@COMMIT")
        );
        assert_eq!(short["on"], written["on"], "{name}");
        assert_eq!(short["permissions"], written["permissions"], "{name}");
        let inputs = called["on"]["workflow_call"]["inputs"].as_object().unwrap();
        let given = &short["jobs"][name]["with"];
        for (input, about) in inputs {
            let is_given = !given[input].is_null();
            assert_eq!(is_given, about["required"] == true, "{name}: {input}");
        }
    }
}

/// Returns the script of a job on the page about CI, as GitLab runs it: in one shell, without what installs.
fn gitlab(job: &str) -> String {
    let page = source("src/manual/ci.md");
    let written = crate::support::pages::blocks(section(&page, "## GitLab CI"), "yaml");
    let mut parsed = written
        .iter()
        .map(|text| serde_yaml::from_str::<serde_json::Value>(text).unwrap());
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
    let kustomize = crate::support::Kustomize::find()?;
    project.sandbox.offer("kustomize", kustomize.program());
    Some(project)
}

#[test]
fn gitlab_checks_and_follows() {
    let Some(project) = runner() else { return };
    let work = &project.work;
    // The check: a finding is in the report and in the log, and fails the job.
    let base = work.id("HEAD");
    let check = format!(
        "export CI_MERGE_REQUEST_DIFF_BASE_SHA={base}\n{}",
        gitlab("check")
    );
    let output = run(&project, work, &check);
    output.fails(1).stdout_has("error[remote-reference]");
    let report = std::fs::read_to_string(work.path().join("gl-code-quality-report.json"));
    let report: Vec<serde_json::Value> = serde_json::from_str(&report.unwrap()).unwrap();
    assert_eq!(report[0]["check_name"], "remote-reference");
    std::fs::remove_file(work.path().join("gl-code-quality-report.json")).unwrap();
    work.run(&["lock"]).success();
    work.commit("lock");
    run(&project, work, &check).success();

    // The branch, twice: the second run goes on from the first.
    let origin = project.sandbox.path("origin");
    let to = format!("{}.git", origin.display());
    work.git(&["clone", "--quiet", "--bare", ".", &to]);
    let follow = format!(
        "export CI_DEFAULT_BRANCH=main CI_SERVER_URL=https://gitlab.example.com CI_PROJECT_URL='{}'\n{}",
        origin.display(),
        gitlab("localize")
    );
    let mut tips = Vec::new();
    for name in ["one", "two"] {
        work.write("README.md", name);
        work.commit(name);
        work.git(&["push", "--quiet", &to, "main"]);
        let directory = project.sandbox.path(name);
        work.git(&["clone", "--quiet", &to, directory.to_str().unwrap()]);
        let job = Repo::new(&project.sandbox, directory);
        job.git(&["checkout", "--quiet", "--detach"]);
        run(&project, &job, &follow).success();
        work.git(&["fetch", "--quiet", &to, "localized/main"]);
        tips.push(work.id("FETCH_HEAD"));
    }
    work.git(&["merge-base", "--is-ancestor", &tips[0], &tips[1]]);
    assert_ne!(tips[0], tips[1]);
}

/// Returns the JSON that has this key.
fn json(key: &str) -> serde_json::Value {
    let page = page();
    let blocks = page.split("```json\n").skip(1);
    let mut parsed = blocks.map(|rest| {
        let (text, _) = rest.split_once("```").unwrap();
        serde_json::from_str::<serde_json::Value>(text).unwrap()
    });
    parsed
        .find(|json| !json[key].is_null())
        .unwrap_or_else(|| panic!("no JSON with {key}"))
}

/// Returns the blocks of a recipe, in this language.
fn blocks(recipe: &str, language: &str) -> Vec<String> {
    let page = page();
    let found = crate::support::pages::blocks(section(&page, &format!("## {recipe}")), language);
    assert!(!found.is_empty(), "{recipe} has no {language}");
    found
}

/// Runs a step as a runner does.
fn run(project: &Project, repo: &Repo, script: &str) -> crate::support::Output {
    let mut bash = project.sandbox.command("bash", repo.path());
    bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
    Running::start(&mut bash).wait()
}

/// Returns a checkout of `main`, as the job begins with.
fn checkout(project: &Project, name: &str) -> Repo {
    let directory = project.sandbox.path(name);
    let origin = project.sandbox.path("origin.git");
    let paths = [origin.to_str().unwrap(), directory.to_str().unwrap()];
    project
        .work
        .git(&["clone", "--quiet", "--branch", "main", paths[0], paths[1]]);
    Repo::new(&project.sandbox, directory)
}

#[test]
fn the_branch_follows_also_when_two_jobs_run_at_once() {
    let Some(project) = runner() else { return };
    let work = &project.work;
    let origin = project.sandbox.path("origin.git");
    work.git(&["clone", "--quiet", "--bare", ".", origin.to_str().unwrap()]);
    work.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    let workflow = ".github/workflows/localize.yml";
    let [localize, verify] = ["Localize", "Verify"].map(|name| step(workflow, name));

    let first = checkout(&project, "first");
    run(&project, &first, &localize).success();
    run(&project, &first, &verify).success();
    let tip = first.id("refs/remotes/origin/localized/main");
    assert_eq!(
        work.git(&["ls-remote", "origin", "localized/main"]),
        format!("{tip}\trefs/heads/localized/main")
    );

    // Two pushes to main, two jobs: the later commit is pushed first.
    work.write("README.md", "one");
    work.commit("one");
    work.git(&["push", "--quiet", "origin", "main"]);
    let slow = checkout(&project, "slow");
    let fast = checkout(&project, "fast");
    fast.write("README.md", "two");
    fast.commit("two");
    // A fast job gets in between a slow one and its first push.
    run(
        &project,
        &fast,
        &localize.replace("git push --quiet origin localized/main", "true"),
    )
    .success();
    slow.write_executable(
        ".git/hooks/pre-push",
        format!(
            "#!/bin/sh\ntest -e \"$0.done\" && exit 0\n: > \"$0.done\"\nunset GIT_DIR\ngit -C '{}' push --quiet origin main localized/main\n",
            fast.path().display()
        ),
    );
    run(&project, &slow, &localize)
        .success()
        .stderr_has("rejected");
    run(&project, &slow, &verify).success();
    work.git(&["fetch", "--quiet", "origin", "localized/main"]);
    let log = work.git(&["log", "--first-parent", "--format=%H", "FETCH_HEAD"]);
    assert!(log.contains(&tip), "{log}");
    assert!(
        log.contains(&fast.id("localized/main")),
        "nothing was forced: {log}"
    );
    // A job that began with the older commit does not take the branch back to it.
    assert_eq!(work.show("FETCH_HEAD", "README.md"), "two");
}
