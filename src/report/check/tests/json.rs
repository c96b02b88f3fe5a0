use serde_json::{Value, json};

use super::*;
use crate::redact::is_hidden;
use crate::report::check::json;

const SCHEMA: &str = include_str!("../schema.json");

/// Returns the report, which the schema allows.
fn report(checked: &Checked) -> Value {
    let text = json(checked);
    assert_valid(SCHEMA, &text);
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_report_matches_its_documentation() {
    let git = Finding {
        subject: Subject::Git {
            url: "https://github.com/acme/base".to_owned(),
            path: "deploy".to_owned(),
            reference: Some("v1".to_owned()),
            pin: "tag",
        },
        deployed: vec!["Flux Kustomization apps (clusters/apps.yaml:3)".to_owned()],
        ..allowed()
    };
    let checked = Checked {
        source: Checking::Commit {
            rev: "main".to_owned(),
            commit: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned(),
        },
        known: Some((7, "HEAD".to_owned())),
        failures: vec![failure()],
        ..checked(vec![git])
    };
    assert_eq!(
        report(&checked),
        json!({
            "version": 1,
            "tool": {"name": "git-kustomize-localize", "version": env!("CARGO_PKG_VERSION")},
            "source": "commit",
            "rev": "main",
            "commit": "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d",
            "checked": {"kustomizations": 14, "references": 52, "differing": 0, "unbuilt_targets": 0},
            "new_only": {"base": "HEAD", "left_out": 7},
            "new_config": [],
            "new_locked": [],
            "findings": [{
                "rule": "remote-reference",
                "severity": "error",
                "path": "apps/web/kustomization.yaml",
                "line": 3,
                "column": 5,
                "end_line": 3,
                "end_column": 31,
                "field": "resources[0]",
                "reference": "https://example.com/a.yaml",
                "kind": "git",
                "git": {"url": "https://github.com/acme/base", "path": "deploy", "ref": "v1", "pin": "tag"},
                "message": "https://example.com/a.yaml is neither localized nor locked",
                "help": [
                    "keep the URL, and lock it:\ngit kustomize-localize lock\ngit add -- kustomize-localize.lock",
                    "allow it",
                ],
                "deployed_by": ["Flux Kustomization apps (clusters/apps.yaml:3)"],
                "allowed": {"by": ".kustomize-localize:12", "reason": "mirrored inside"},
            }],
            "failures": [{
                "file": "apps/db/kustomization.yaml",
                "line": 2,
                "column": 1,
                "field": "",
                "message": "this is not YAML",
                "hints": ["mend it"],
            }],
        })
    );
}

#[test]
fn every_kind_of_finding_is_in_the_schema() {
    let helm = Finding {
        subject: Subject::Helm {
            url: "https://charts.example.com".to_owned(),
            chart: "db".to_owned(),
            version: String::new(),
        },
        ..finding()
    };
    let everywhere = Rule::ALL.iter().map(|rule| Finding {
        rule: *rule,
        severity: rule.default_severity(),
        ..finding()
    });
    let no_place = Failure::new("no such file");
    let checked = Checked {
        failures: vec![failure(), no_place],
        ..checked(
            [finding(), warning(), helm, hostile()]
                .into_iter()
                .chain(everywhere)
                .collect(),
        )
    };
    let value = report(&checked);
    assert_eq!(value["findings"][1]["kind"], "local");
    assert_eq!(value["findings"][1]["line"], Value::Null);
    assert_eq!(value["findings"][2]["helm"]["chart"], "db");
    assert_eq!(value["failures"][1], json!({"message": "no such file"}));
}

#[test]
fn the_schema_refuses_other_documents() {
    let good = report(&checked(vec![finding()]));
    for (pointer, bad) in [
        ("/version", json!(2)),
        ("/source", json!("stash")),
        ("/findings/0/rule", json!("no-such-rule")),
        ("/findings/0/severity", json!("off")),
        ("/findings/0/line", json!(0)),
        ("/findings/0/kind", json!("svn")),
        ("/findings/0/kind", json!("git")),
        ("/findings/0/allowed", json!(false)),
        ("/checked/references", json!(-1)),
    ] {
        let mut value = good.clone();
        *value.pointer_mut(pointer).unwrap() = bad;
        assert!(problem(SCHEMA, &value.to_string()).is_some(), "{pointer}");
    }
}

#[test]
fn hostile_text_is_kept_and_hides_nothing() {
    let text = json(&checked(vec![hostile()]));
    assert!(!text.chars().any(|one| one != '\n' && is_hidden(one)));
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["findings"][0]["path"], HOSTILE);
    assert_eq!(value["findings"][0]["git"]["ref"], HOSTILE);
}

#[test]
fn an_empty_report_is_whole() {
    let value = report(&checked(Vec::new()));
    assert_eq!(value["source"], "index");
    assert_eq!(value["findings"], json!([]));
    assert_eq!(value["failures"], json!([]));
    assert_eq!(value["new_only"], Value::Null);
}

#[test]
fn the_schema_knows_the_rules() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let rules = &schema["properties"]["findings"]["items"]["properties"]["rule"]["enum"];
    let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    assert_eq!(*rules, json!(ids));
}

#[test]
fn a_check_that_could_not_begin_has_the_same_shape() {
    let source = Checking::Commit {
        rev: "no-such".to_owned(),
        commit: String::new(),
    };
    let value = report(&Checked::failed(source, vec![failure()]));
    assert_eq!(value["rev"], "no-such");
    assert_eq!(value["commit"], Value::Null);
    assert_eq!(value["failures"][0]["message"], "this is not YAML");
}
