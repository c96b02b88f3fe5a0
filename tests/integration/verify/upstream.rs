//! `verify --upstream`: what became upstream of what the locks list.

mod files;
mod mixed;
mod refs;

use std::path::Path;

use serde_json::Value;

use crate::support::{Output, Repo, Sandbox, config};

/// Returns a repository `work` whose `app` names these, and whose lock holds them.
fn locked(sandbox: &Sandbox, references: &[String]) -> Repo {
    let repo = sandbox.repo("work");
    let list: Vec<String> = references.iter().map(|it| format!("- '{it}'\n")).collect();
    repo.write("app/kustomization.yaml", format!("resources:\n{}", list.concat()));
    repo.run(&["lock"]).success();
    repo.commit("locked");
    repo
}

/// Returns an upstream with one commit.
fn upstream(sandbox: &Sandbox, path: &str) -> Repo {
    let repo = sandbox.repo(path);
    repo.write("kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("cm.yaml", config("one"));
    repo.commit("one");
    repo
}

/// Asks upstream, which changes nothing.
#[track_caller]
fn ask(repo: &Repo, args: &[&str]) -> Output {
    let output = repo.run_unchanged(&[&["verify", "--upstream"], args].concat());
    assert_eq!(leftovers(repo), [""; 0]);
    output
}

/// Returns what was left in the temporary directory beside the repository, and unfinished in the cache.
fn leftovers(repo: &Repo) -> Vec<String> {
    let root = repo.path().parent().unwrap();
    let names = |directory: &Path| -> Vec<String> {
        let entries = directory.read_dir().into_iter().flatten();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let mut left = names(&root.join("tmp"));
    let cache = root.join("cache/git-kustomize-localize/git");
    for url in names(&cache) {
        let entries = names(&cache.join(url)).into_iter();
        left.extend(entries.filter(|name| name.starts_with("fetching-")));
    }
    left
}

/// Asks upstream and returns the report, which its schema allows; `status` is how it must end.
#[track_caller]
fn report(repo: &Repo, args: &[&str], status: i32) -> Value {
    let output = ask(repo, &[&["--format", "json"], args].concat());
    assert_eq!(output.status, status, "{output:?}");
    let report = parsed(&output);
    let verdicts: Vec<&str> =
        report["upstream"].as_array().unwrap().iter().map(|one| one["verdict"].as_str().unwrap()).collect();
    let differences = report["differences"].as_array().unwrap();
    let of_upstream = differences.iter().filter(|one| one["kind"] == "upstream");
    let differing = verdicts.iter().filter(|verdict| matches!(**verdict, "moved" | "gone"));
    assert_eq!(of_upstream.count(), differing.count(), "{report:#}");
    let failures = report["failures"].as_array().unwrap();
    let expected = match (failures.is_empty(), differences.is_empty()) {
        (false, _) => 2,
        (true, false) => 1,
        (true, true) => 0,
    };
    assert_eq!(status, expected, "{report:#}");
    let unreachable = verdicts.iter().filter(|verdict| **verdict == "unreachable");
    assert!(unreachable.count() <= failures.len(), "{report:#}");
    report
}

/// Returns the report.
#[track_caller]
pub(crate) fn parsed(output: &Output) -> Value {
    serde_json::from_str(&output.stdout).unwrap()
}

/// Returns `VERDICT NAME: MESSAGE` of each remote, where the name is the ref or else the last part of the URL.
fn told(report: &Value) -> Vec<String> {
    let all = report["upstream"].as_array().unwrap();
    let mut told: Vec<String> = all
        .iter()
        .map(|one| {
            let url = one["url"].as_str().unwrap();
            let name = one["ref"].as_str().unwrap_or(url.rsplit('/').next().unwrap());
            let verdict = one["verdict"].as_str().unwrap();
            let message = one["message"].as_str().unwrap();
            format!("{verdict} {name}: {message}").trim_end_matches(": ").to_owned()
        })
        .collect();
    told.sort();
    told
}
