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
    assert_eq!(leftovers(repo), crate::support::NONE);
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

/// Compares a report with what `update` would do: it locks the digest that is upstream now, keeps a version that moved,
/// and says what cannot be used.
#[track_caller]
fn agrees_with_update(repo: &Repo, report: &Value) {
    let output = repo.run_unchanged(&["update", "--dry-run", "--format", "json"]);
    let update = parsed(&output);
    let changes = update["changes"].as_array().unwrap();
    for entry in report["upstream"].as_array().unwrap() {
        let (url, reference) = (entry["url"].as_str().unwrap(), entry["ref"].as_str().unwrap_or_default());
        let name = if reference.is_empty() { url.to_owned() } else { format!("{url}?ref={reference}") };
        let new = changes.iter().find(|change| change["url"] == *name).map(|change| &change["new"]);
        let is_named = |failures: &Value| {
            let mut messages = failures.as_array().unwrap().iter().map(|failure| failure["message"].as_str().unwrap());
            messages.any(|message| message.contains(&name) || message.contains(&format!("`{reference}`")))
        };
        match entry["verdict"].as_str().unwrap() {
            "ok" => assert_eq!(new, None, "{name}: {update:#}"),
            "updated" => assert_eq!(new, Some(&entry["new"]), "{name}: {update:#}"),
            "moved" if new.is_some() => assert_eq!(new, Some(&entry["new"]), "{name}: {update:#}"),
            _ => assert!(is_named(&update["kept"]) || is_named(&update["unresolved"]), "{name}: {update:#}"),
        }
    }
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
