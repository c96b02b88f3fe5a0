mod base;
mod clones;
mod command;
mod commit;
mod config;
mod entries;
mod formats;
mod index;
mod kustomize;
mod printed;
mod repeated;
mod ways_out;

use serde_json::Value;

use crate::support::{Output, Repo, Running, Sandbox, config};

/// A remote root that nothing allows.
const REMOTE: &str = "https://github.com/acme/app//base?ref=v1.0.0";

fn remote() -> String {
    format!("resources:\n- {REMOTE}\n")
}

/// Returns a repository with a base and two overlays, all of it local and committed.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    fill(&repo);
    repo
}

fn fill(repo: &Repo) {
    repo.write("base/config.yaml", config("base"));
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    for overlay in ["dev", "prod"] {
        let text = "resources:\n- ../../base\n";
        repo.write(&format!("overlays/{overlay}/kustomization.yaml"), text);
    }
    repo.commit("Begin");
}

/// Runs a check that must change nothing.
#[track_caller]
fn check(repo: &Repo, args: &[&str]) -> Output {
    repo.run_unchanged(&[&["check"], args].concat())
}

/// Returns the report of such a check.
#[track_caller]
fn report(repo: &Repo, args: &[&str]) -> (Output, Value) {
    let output = check(repo, &[&["--format", "json"], args].concat());
    let report = serde_json::from_str(&output.stdout).unwrap();
    (output, report)
}

/// Returns the findings of a check that can look at everything; the status follows from them.
#[track_caller]
fn findings(repo: &Repo, args: &[&str]) -> Vec<Value> {
    let (output, report) = report(repo, args);
    let findings = report["findings"].as_array().unwrap();
    let fails = findings.iter().any(|one| marked(one).starts_with('!'));
    assert_eq!(output.status, i32::from(fails), "{output:?}");
    findings.clone()
}

/// Returns the same as `rule path:line`, with `!` before one that fails the check and `~` before one that is allowed.
#[track_caller]
fn found(repo: &Repo, args: &[&str]) -> Vec<String> {
    findings(repo, args).iter().map(marked).collect()
}

fn marked(finding: &Value) -> String {
    let mark = match (&finding["allowed"], &finding["severity"]) {
        (Value::Null, severity) if severity == "error" => "!",
        (Value::Null, _) => "",
        _ => "~",
    };
    let text = |key: &str| finding[key].as_str().unwrap();
    let line = finding["line"].as_u64().unwrap_or(0);
    format!("{mark}{} {}:{line}", text("rule"), text("path"))
}

/// Returns the commands that findings print, each once.
fn commands(findings: &[Value]) -> Vec<String> {
    let mut commands = Vec::new();
    let help = findings.iter().flat_map(|one| one["help"].as_array().unwrap());
    for command in help.filter_map(|help| command(help.as_str().unwrap())) {
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    commands
}

/// Returns the command that a help ends with, if it does.
fn command(help: &str) -> Option<String> {
    const BEGINS: [&str; 4] = ["git ", "(cd ", "printf ", "touch "];
    let begins = |at: &usize| BEGINS.iter().any(|begin| help[*at..].starts_with(begin));
    let mut starts = std::iter::once(0).chain(help.match_indices(": ").map(|(at, _)| at + 2));
    starts.find(begins).map(|start| help[start..].to_owned())
}

/// Runs a command in a directory of a repository as a user would.
fn shell(repo: &Repo, place: &str, command: &str) -> Output {
    let run = |command: &str| {
        let mut shell = repo.sandbox().command("sh", &repo.path().join(place));
        Running::start(shell.args(["-c", command])).wait()
    };
    let output = run(command);
    // `vendor` says what to stage.
    let mut lines = output.stdout.lines().map(str::trim_start);
    if let Some(stage) =
        lines.find_map(|line| line.strip_prefix("to stage it: ")).filter(|_| command.contains(" vendor "))
    {
        run(stage).success();
    }
    output
}

/// Returns a copy of a repository, in a new directory beside it.
fn copy_of(repo: &Repo, name: &str) -> Repo {
    let to = repo.path().with_file_name(name);
    let mut cp = repo.sandbox().command("cp", repo.path());
    Running::start(cp.args(["-a", "."]).arg(&to)).wait().success();
    Repo::new(repo.sandbox(), to)
}
