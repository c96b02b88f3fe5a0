//! GitHub workflows run nothing that could change under us.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use super::top;
use crate::support::pages::{blocks, pages, source};
use crate::support::{Running, tool};

#[test]
fn every_action_is_pinned_and_names_its_version() {
    let mut actions = 0;
    for entry in fs::read_dir(top().join(".github/workflows")).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        let actions_of = text.lines().filter_map(|line| line.split_once("uses: "));
        for (_, action) in actions_of {
            // A workflow of the same commit.
            if action.starts_with("$/") {
                continue;
            }
            let pinned = action.split_once('@');
            let pinned = pinned.and_then(|(_, rest)| rest.split_once(" # v"));
            let (id, version) = pinned.unwrap_or_else(|| panic!("no id and version: {action}"));
            let is_id = id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_id, "no commit id: {action}");
            assert!(version.starts_with(|first: char| first.is_ascii_digit()));
            actions += 1;
        }
    }
    assert!(actions > 0);
}

/// Returns the workflows of all pages, those that run here and the action, by name.
fn workflows() -> Vec<(String, Value)> {
    let mut texts = vec![("action.yml".to_owned(), source("action.yml"))];
    for (path, page) in pages() {
        for text in blocks(&page, "yaml") {
            let name = text.strip_prefix("# .github/workflows/");
            if let Some((name, _)) = name.and_then(|rest| rest.split_once('\n')) {
                texts.push((format!("{path}: {name}"), text.clone()));
            }
        }
    }
    for entry in fs::read_dir(top().join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        texts.push((path.display().to_string(), text));
    }
    let parse = |(name, text): (String, String)| (name, serde_yaml::from_str(&text).unwrap());
    texts.into_iter().map(parse).collect()
}

/// Returns the steps of a workflow or an action.
fn steps(workflow: &Value) -> Vec<&Value> {
    let jobs = workflow["jobs"].as_object().into_iter().flatten();
    jobs.map(|(_, job)| job)
        .chain([&workflow["runs"]])
        .flat_map(|job| job["steps"].as_array().into_iter().flatten())
        .collect()
}

/// Adds the files below `directory` that begin as shell scripts do.
fn add_scripts(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            add_scripts(&path, found);
        } else if fs::read(&path).unwrap().starts_with(b"#!") {
            found.push(path);
        }
    }
}

#[test]
fn every_script_is_sound() {
    let mut scripts = Vec::new();
    add_scripts(&top().join("hooks"), &mut scripts);
    let ours = [".ci/release", ".ci/run"].into_iter();
    let ours = ours.chain([".github/package.sh", ".github/release.sh"]);
    scripts.extend(ours.map(|path| top().join(path)));
    let directory = tempfile::TempDir::new().unwrap();
    for (name, workflow) in workflows() {
        for step in steps(&workflow) {
            let Some(script) = step["run"].as_str() else {
                continue;
            };
            // Text that others control must come in as a variable.
            assert!(!script.contains("${{"), "{name}: {script}");
            let path = directory.path().join(scripts.len().to_string());
            // As GitHub starts it.
            fs::write(&path, format!("#!/bin/bash\nset -eo pipefail\n{script}")).unwrap();
            scripts.push(path);
        }
    }
    assert!(scripts.len() >= 16, "{scripts:?}");
    let Some(shellcheck) = tool("shellcheck") else { return };
    Running::start(Command::new(shellcheck).args(&scripts)).wait().success();
}

#[test]
fn every_workflow_declares_its_permissions() {
    let mut jobs = 0;
    for (name, workflow) in workflows() {
        if workflow["jobs"].is_null() {
            continue;
        }
        let permissions = workflow["permissions"].as_object();
        let permissions = permissions.unwrap_or_else(|| panic!("{name}: no permissions"));
        let each: Vec<&Value> = workflow["jobs"].as_object().unwrap().values().collect();
        let is_own = each.iter().all(|job| job["permissions"].is_object());
        assert!(!permissions.is_empty() || is_own, "{name}");
        // Scheduled runs do not overtake themselves.
        let on = &workflow["on"];
        let is_pushed = ["push", "pull_request"].iter().any(|event| on.get(event).is_some());
        assert!(!is_pushed || !workflow["concurrency"].is_null(), "{name}: no concurrency");
        assert!(on.get("pull_request_target").is_none(), "{name}");
        for step in steps(&workflow) {
            let uses = step["uses"].as_str().unwrap_or_default();
            if uses.starts_with("actions/checkout@") {
                let persist = &step["with"]["persist-credentials"];
                assert!(persist.is_boolean(), "{name}: {step}");
            }
        }
        jobs += 1;
    }
    assert!(jobs >= 3, "{jobs}");
}
