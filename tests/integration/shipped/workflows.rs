//! GitHub workflows run nothing that could change under us.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::pages::{blocks, pages};
use crate::support::tool;

#[test]
fn every_action_is_pinned_and_names_its_version() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(".github/workflows");
    let mut actions = 0;
    for entry in fs::read_dir(directory).unwrap() {
        let text = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines() {
            let Some((_, action)) = line.split_once("uses: ") else {
                continue;
            };
            // A workflow of the same commit.
            if action.starts_with("$/") {
                continue;
            }
            let (id, version) = action
                .split_once('@')
                .and_then(|(_, rest)| rest.split_once(" # v"))
                .unwrap_or_else(|| panic!("no id and version: {line}"));
            let is_id = id.len() == 40 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
            assert!(is_id, "no commit id: {line}");
            assert!(version.starts_with(|first: char| first.is_ascii_digit()));
            actions += 1;
        }
    }
    assert!(actions > 0);
}

/// Returns the workflows of all pages, those that run here and the action, by name.
fn workflows() -> Vec<(String, Value)> {
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut texts = vec![(
        "action.yml".to_owned(),
        fs::read_to_string(top.join("action.yml")).unwrap(),
    )];
    for (path, page) in pages() {
        for text in blocks(&page, "yaml") {
            let name = text.strip_prefix("# .github/workflows/");
            if let Some((name, _)) = name.and_then(|rest| rest.split_once('\n')) {
                texts.push((format!("{path}: {name}"), text.clone()));
            }
        }
    }
    for entry in fs::read_dir(top.join(".github/workflows")).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        texts.push((path.display().to_string(), text));
    }
    let parse = |text: &str| serde_yaml::from_str(text).unwrap();
    texts
        .iter()
        .map(|(name, text)| (name.clone(), parse(text)))
        .collect()
}

/// Returns the steps of a workflow or an action.
fn steps(workflow: &Value) -> Vec<&Value> {
    let jobs = workflow["jobs"].as_object().into_iter().flatten();
    jobs.map(|(_, job)| job)
        .chain([&workflow["runs"]])
        .flat_map(|job| job["steps"].as_array().into_iter().flatten())
        .collect()
}

#[test]
fn every_script_of_a_workflow_is_sound() {
    let Some(shellcheck) = tool("shellcheck") else {
        return;
    };
    let directory = tempfile::TempDir::new().unwrap();
    let mut scripts = Vec::new();
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
    assert!(scripts.len() >= 8, "{}", scripts.len());
    let output = Command::new(shellcheck).args(&scripts).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
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
        let is_pushed = ["push", "pull_request"]
            .iter()
            .any(|event| on.get(event).is_some());
        assert!(
            !is_pushed || !workflow["concurrency"].is_null(),
            "{name}: no concurrency"
        );
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
