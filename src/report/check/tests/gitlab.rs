use serde_json::{Value, json};

use super::*;
use crate::report::check::gitlab;

fn issues(checked: &Checked) -> Vec<Value> {
    serde_json::from_str(&gitlab(checked)).unwrap()
}

#[test]
fn an_issue_has_what_gitlab_asks_for() {
    let found = issues(&Checked {
        failures: vec![failure()],
        ..checked(vec![finding(), warning(), allowed()])
    });
    let shown: Vec<Value> = found
        .iter()
        .map(|issue| {
            let fingerprint = issue["fingerprint"].as_str().unwrap();
            assert_eq!(fingerprint.len(), 64, "{issue}");
            json!([
                issue["check_name"],
                issue["severity"],
                issue["location"]["path"],
                issue["location"]["lines"]["begin"],
            ])
        })
        .collect();
    assert_eq!(
        shown,
        [
            json!([
                "remote-reference",
                "major",
                "apps/web/kustomization.yaml",
                3
            ]),
            json!(["stale-lock", "minor", "kustomize-localize.lock", 1]),
            json!(["not-checked", "blocker", "apps/db/kustomization.yaml", 2]),
        ]
    );
    assert_eq!(
        found[0]["description"],
        "https://example.com/a.yaml is neither localized nor locked"
    );
    assert_eq!(gitlab(&checked(Vec::new())), "[]\n");
}

#[test]
fn no_two_issues_have_one_fingerprint() {
    let found = issues(&checked(vec![finding(), finding(), finding()]));
    let prints: std::collections::BTreeSet<&str> = found
        .iter()
        .map(|issue| issue["fingerprint"].as_str().unwrap())
        .collect();
    assert_eq!(prints.len(), 3);
    // It stays the same when the line moves.
    let moved = Finding {
        span: span(9, 1, 9, 2),
        ..finding()
    };
    let moved = issues(&checked(vec![moved]));
    assert_eq!(moved[0]["fingerprint"], found[0]["fingerprint"]);
}

#[test]
fn nothing_hostile_is_shown() {
    let text = gitlab(&checked(vec![hostile()]));
    assert!(!text.contains(['\u{1b}', '\u{202e}', '\u{9b}']), "{text}");
}
