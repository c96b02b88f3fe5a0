use super::*;
use crate::report::check::json;
use crate::report::is_hidden;

#[test]
fn a_finding_is_an_object() {
    let checked = Checked {
        source: Checking::Commit {
            rev: "main".to_owned(),
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        },
        known: Some((2, "HEAD~".to_owned())),
        failures: vec![failure()],
        ..checked(vec![finding(), warning(), allowed()])
    };
    let value: serde_json::Value = serde_json::from_str(&json(&checked)).unwrap();
    assert_eq!(value["version"], 1);
    assert_eq!(value["source"], "commit");
    assert_eq!(value["rev"], "main");
    assert_eq!(value["checked"]["kustomizations"], 14);
    assert_eq!(value["checked"]["references"], 52);
    assert_eq!(value["new_only"]["left_out"], 2);
    let first = &value["findings"][0];
    assert_eq!(first["rule"], "remote-reference");
    assert_eq!(
        (
            &first["line"],
            &first["column"],
            &first["end_line"],
            &first["end_column"]
        ),
        (&3.into(), &5.into(), &3.into(), &31.into())
    );
    assert_eq!(first["kind"], "http");
    assert_eq!(first["allowed"], serde_json::Value::Null);
    assert_eq!(value["findings"][1]["line"], serde_json::Value::Null);
    assert_eq!(
        value["findings"][2]["allowed"]["by"],
        ".kustomize-localize.yaml:12"
    );
    assert_eq!(value["failures"][0]["message"], "this is not YAML");
}

#[test]
fn hostile_text_arrives_unchanged_and_draws_nothing() {
    let text = json(&checked(vec![hostile()]));
    assert!(
        !text
            .chars()
            .any(|character| character != '\n' && is_hidden(character))
    );
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["findings"][0]["path"], HOSTILE);
    assert_eq!(value["findings"][0]["git"]["ref"], HOSTILE);
}

#[test]
fn the_schema_describes_it() {
    let schema = include_str!("../schema.json");
    assert_valid(schema, &json(&everything()));
    assert_valid(schema, &json(&checked(Vec::new())));
    let rules = serde_json::from_str::<serde_json::Value>(schema).unwrap();
    let rules = &rules["properties"]["findings"]["items"]["properties"]["rule"]["enum"];
    let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    assert_eq!(*rules, serde_json::json!(ids));
}
