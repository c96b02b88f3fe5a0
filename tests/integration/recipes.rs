//! The recipes of the README, run as far as possible without GitHub.

mod living;
mod private;
mod renovate;
mod upstream;

use std::fs;
use std::path::Path;

use crate::support::{Project, Repo, Running};

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

/// Returns the script of a step of a workflow in the README.
fn step(workflow: &str, name: &str) -> String {
    let readme = readme();
    let (_, rest) = readme
        .split_once(&format!("```yaml\n# {workflow}\n"))
        .unwrap_or_else(|| panic!("no {workflow}"));
    let (text, _) = rest.split_once("```").unwrap();
    let workflow: serde_json::Value = serde_yaml::from_str(text).unwrap();
    let jobs = workflow["jobs"].as_object().unwrap();
    let steps = jobs
        .values()
        .flat_map(|job| job["steps"].as_array().unwrap());
    let mut found = steps.filter(|step| step["name"] == name);
    found.next().unwrap()["run"].as_str().unwrap().to_owned()
}

/// Returns the JSON of the README that has this key.
fn json(key: &str) -> serde_json::Value {
    let readme = readme();
    let blocks = readme.split("```json\n").skip(1);
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
    let readme = readme();
    let (_, rest) = readme
        .split_once(&format!("\n### {recipe}\n"))
        .unwrap_or_else(|| panic!("no recipe {recipe}"));
    let end = rest.find("\n## ").unwrap_or(rest.len());
    let section = rest[..end].split("\n### ").next().unwrap();
    let fence = format!("```{language}\n");
    let found: Vec<String> = section
        .split(&fence)
        .skip(1)
        .map(|rest| rest.split_once("```").unwrap().0.to_owned())
        .collect();
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
    let project = Project::new();
    let work = &project.work;
    project.sandbox.offer_itself();
    // The runner has a kustomize.
    let Some(kustomize) = crate::support::Kustomize::find() else {
        return;
    };
    project.sandbox.offer("kustomize", kustomize.program());
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
