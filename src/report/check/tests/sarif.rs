use serde_json::Value;

use super::*;
use crate::report::check::sarif;

/// The schema as OASIS published it.
const SCHEMA: &str = include_str!("../../../../tests/schemas/sarif-2.1.0.json");

fn run(checked: &Checked) -> Value {
    let value: Value = serde_json::from_str(&sarif(checked)).unwrap();
    value["runs"][0].clone()
}

#[test]
fn it_is_sarif() {
    assert_valid(SCHEMA, &sarif(&everything()));
    assert_valid(SCHEMA, &sarif(&checked(Vec::new())));
}

#[test]
fn a_result_names_its_rule_and_place() {
    let run = run(&checked(vec![finding(), warning(), allowed()]));
    let results = run["results"].as_array().unwrap();
    for result in results {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        assert_eq!(
            run["tool"]["driver"]["rules"][index]["id"],
            result["ruleId"]
        );
    }
    assert_eq!(results[0]["level"], "error");
    let physical = &results[0]["locations"][0]["physicalLocation"];
    assert_eq!(
        physical["artifactLocation"],
        serde_json::json!({"uri": "apps/web/kustomization.yaml", "uriBaseId": "%SRCROOT%"})
    );
    assert_eq!(run["columnKind"], "unicodeCodePoints");
    assert_eq!(
        physical["region"],
        serde_json::json!({"startLine": 3, "startColumn": 5, "endLine": 3, "endColumn": 31})
    );
    let text = results[0]["message"]["text"].as_str().unwrap();
    assert!(
        text.ends_with("git add -- kustomize-localize.lock\nallow it"),
        "{text}"
    );
    let whole = &results[1]["locations"][0]["physicalLocation"];
    assert_eq!(whole["region"], Value::Null);
    assert_eq!(results[1]["suppressions"], Value::Null);
    let suppression = &results[2]["suppressions"][0];
    assert_eq!(suppression["kind"], "external");
    assert_eq!(
        suppression["justification"],
        "mirrored inside (.kustomize-localize:12)"
    );
}

#[test]
fn the_fingerprint_survives_when_lines_move() {
    let moved = Finding {
        span: span(9, 1, 9, 27),
        ..finding()
    };
    let elsewhere = Finding {
        path: "apps/api/kustomization.yaml".to_owned(),
        ..finding()
    };
    let run = run(&checked(vec![finding(), moved, elsewhere]));
    let print = |index: usize| &run["results"][index]["partialFingerprints"];
    assert_eq!(print(0), print(1));
    assert_ne!(print(0), print(2));
}

#[test]
fn a_path_becomes_a_uri() {
    let odd = Finding {
        path: "a b/ü:%#?/k.yaml".to_owned(),
        ..finding()
    };
    let run = run(&checked(vec![odd]));
    assert_eq!(
        run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "a%20b/%C3%BC%3A%25%23%3F/k.yaml"
    );
}

#[test]
fn a_failure_is_not_a_success() {
    let mut checked = checked(Vec::new());
    checked.failures = vec![failure()];
    let invocation = &run(&checked)["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let notification = &invocation["toolExecutionNotifications"][0];
    assert_eq!(
        notification["message"]["text"],
        "this is not YAML\nhint: mend it"
    );
}

#[test]
fn a_message_holds_no_link_and_no_control() {
    let odd = Finding {
        message: "`[click](https://evil.example)`".to_owned(),
        help: vec![HOSTILE.to_owned()],
        ..finding()
    };
    let text = sarif(&checked(vec![odd, hostile()]));
    assert!(!text.contains("]("), "{text}");
    assert!(
        !text
            .chars()
            .any(|one| one != '\n' && crate::redact::is_hidden(one))
    );
}

#[test]
fn a_comment_in_the_file_suppresses_in_source() {
    let by = |by: &str| {
        let allowed = Finding {
            allowed: Some(Allowed {
                by: by.to_owned(),
                is_comment: true,
                reason: "ours".to_owned(),
            }),
            ..finding()
        };
        let run = run(&checked(vec![allowed]));
        run["results"][0]["suppressions"][0]["kind"].clone()
    };
    assert_eq!(by("apps/web/kustomization.yaml:3"), "inSource");
    assert_eq!(by("apps/web/kustomization.yaml.md:3"), "external");
    assert_eq!(by(".kustomize-localize:12"), "external");
}

#[test]
fn a_commit_is_named() {
    let run = run(&everything());
    let text = &run["automationDetails"]["description"]["text"];
    assert_eq!(text, "commit 0123456789abcdef0123456789abcdef01234567");
}
