//! The schema and the page say what the code does.

use serde_json::Value;

use super::*;

fn schema() -> Value {
    serde_json::from_str(SCHEMA).unwrap()
}

fn keys(object: &Value) -> BTreeSet<String> {
    object.as_object().unwrap().keys().cloned().collect()
}

fn words(list: &Value) -> Vec<&str> {
    let list = list["enum"].as_array().unwrap();
    list.iter().map(|word| word.as_str().unwrap()).collect()
}

/// Returns whether the schema accepts a text.
fn accepts(text: &str) -> bool {
    let Ok(value) = serde_yaml::from_str::<Value>(text) else {
        return false;
    };
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.add_resource("config.json", schema()).unwrap();
    let index = compiler.compile("config.json", &mut schemas).unwrap();
    schemas.validate(&value, index).is_ok()
}

#[test]
fn the_schema_has_the_keys_and_words_of_the_code() {
    let schema = schema();
    assert_eq!(schema["$schema"], "http://json-schema.org/draft-07/schema#");
    let properties = &schema["properties"];
    assert_eq!(keys(properties), known("zzzzzzzzzz: 1"));
    let allow = &schema["definitions"]["allow"]["properties"];
    assert_eq!(keys(allow), known("allow: [{zzzzzzzzzz: 1}]"));
    let repository = &properties["repository"]["items"]["properties"];
    assert_eq!(keys(repository), known("repository: [{zzzzzzzzzz: 1}]"));
    let target = &properties["targets"]["items"]["properties"];
    assert_eq!(keys(target), known("targets: [{zzzzzzzzzz: 1}]"));
    let of = |list: &Value| -> BTreeSet<String> { words(list).into_iter().map(str::to_owned).collect() };
    assert_eq!(of(&target["engine"]), known("targets: [{path: a, engine: zzz}]"));
    for property in [properties, allow] {
        for (key, value) in property.as_object().unwrap() {
            assert!(value["description"].is_string(), "{key}");
        }
    }
    let rules = &properties["rules"]["properties"];
    let rules_of = || Rule::ALL.iter().filter(|rule| !rule.is_always_an_error());
    let all: BTreeSet<String> = Rule::ALL.iter().map(|rule| rule.id().to_owned()).collect();
    assert_eq!(known("rules: {zzzzzzzzzz: off}"), all);
    let ids: BTreeSet<String> = rules_of().map(|rule| rule.id().to_owned()).collect();
    let with_all = ids.iter().cloned().chain(["*".to_owned()]).collect::<BTreeSet<_>>();
    assert_eq!(keys(rules), with_all);
    for rule in rules_of() {
        let summary = rule.summary();
        let (first, rest) = summary.split_at(1);
        let severity = rule.default_level().name();
        assert_eq!(rules[rule.id()]["description"], format!("{}{rest}. Default: {severity}.", first.to_uppercase()));
    }
    assert_eq!(of(&schema["definitions"]["level"]), known("rules: {engine: zzz}"));
    let policies: Vec<&str> = [RefPolicy::Any, RefPolicy::Branch, RefPolicy::Tag, RefPolicy::Commit]
        .iter()
        .map(|policy| policy.name())
        .collect();
    assert_eq!(words(&allow["refs"]), policies);
    let ids = |is: fn(Rule) -> bool| -> Vec<&str> {
        let rules = Rule::ALL.iter().filter(|rule| is(**rule));
        rules.map(|rule| rule.id()).collect()
    };
    assert_eq!(words(&allow["rules"]["items"]), ids(Rule::can_be_allowed));
    let description = allow["rules"]["description"].as_str().unwrap();
    let default = ids(Rule::is_allowed_by_default).join(", ");
    assert!(description.ends_with(&format!("Default: {default}.")));
}

#[test]
fn the_schema_and_the_program_accept_the_same() {
    for text in [
        EVERYTHING,
        "{}",
        "scopes: []\ninclude: ['.']\nexclude: ['**/a', .github/*, 'a/..b', 'a/.b/c']\n",
        "rules: {function: off, stale-lock: error, '*': error}\n",
        "allow: [{path: '**/a*/.x', reason: r}, {chart: a.example, reason: r, refs: any}, {chart: 'https://a.example/b#c@1.2.3', reason: r}, {url: 'a.example/o/r//b?ref=${X}', reason: r}]\n",
        "allow: [{image: a.example, reason: r, rules: [function]}, {program: sed, reason: TODO}]\n",
        "allow: []\nhelm: true\nallow-private: false\nload-restrictor: root-only\n",
        "allow: [{url: 'file:///srv/*', reason: x, refs: commit, rules: [function]}, {image: 'gcr.io/a/b:v1@sha256:c', reason: x}]\n",
        "repository: [{url: 'oci://a.example/b', path: a/.b}, {url: x}]\n",
        "targets: [{path: '.', engine: flux}, {path: a/b, engine: kustomize}]\n",
        "max-file-size: 64m\nlicenses: false\nrendered-secrets: true\nhydrator-metadata: true\ntrust-exec: ['**/a.sh']\n",
        "max-file-size: 1\ntrust-exec: []\n",
        "max-file-size: 20K\n",
    ] {
        assert!(Config::parse(text.as_bytes(), "x").is_ok(), "{text}");
        assert!(accepts(text), "{text}");
    }
    for text in [
        "- a",
        "text",
        "command: x",
        "rules: []",
        "rules: {cycel: off}",
        "rules: {cycle: info}",
        "rules: {cycle: false}",
        "rules: off",
        "locked: warning",
        "locked: true",
        "scopes: apps",
        "scopes: ['']",
        "scopes: [/apps]",
        "scopes: [apps/]",
        "scopes: [./apps]",
        "scopes: [apps/.]",
        "scopes: [../apps]",
        "scopes: [apps/../x]",
        "scopes: [a//b]",
        "include: {a: b}",
        "exclude: [[a]]",
        "strict: true",
        "strict: all",
        "strict: not-built",
        "strict: [not-build]",
        "strict: [all]",
        "allow: [{path: a}]",
        "allow: [{path: '', reason: r}]",
        "allow: [{path: /a, reason: r}]",
        "allow: [{path: ., reason: r}]",
        "allow: [{path: a/, reason: r}]",
        "allow: [{path: ../a, reason: r}]",
        "allow: [{path: a//b, reason: r}]",
        "allow: [{path: a, url: b.example, reason: r}]",
        "allow: {url: a.example, reason: r}",
        "allow: [a.example]",
        "allow: [{url: a.example}]",
        "allow: [{reason: r}]",
        "allow: [{url: a.example, reason: ''}]",
        "allow: [{url: a.example, reason: ' '}]",
        "allow: [{url: '', reason: r}]",
        "allow: [{url: 'a.example?ref=x', refs: any, reason: r}]",
        "allow: [{url: 'a.example/*', reason: r}]",
        "allow: [{chart: a.example/b, reason: r}]",
        "allow: [{image: 'a.example/*', reason: r}]",
        "allow: [{url: a b.example, reason: r}]",
        "allow: [{url: a.example, reason: r, refs: sha}]",
        "allow: [{url: a.example, reason: r, rules: []}]",
        "allow: [{url: a.example, reason: r, rules: [stale-allow]}]",
        "allow: [{url: a.example, reason: r, command: x}]",
        "new-only: true",
        "comments: base",
        "allow-private: 1",
        "helm: 3",
        "pin: true",
        "load-restrictor: LoadRestrictionsNone",
        "licenses: no",
        "hydrator-metadata: 1",
        "rendered-secrets: 1",
        "max-file-size: 0",
        "max-file-size: k",
        "max-file-size: -1",
        "max-file-size: 64 m",
        "max-file-size: 64mb",
        "max-file-size: 64t",
        "max-file-size: 64é",
        "trust-exec: '**/a.sh'",
        "trust-exec: [/a.sh]",
        "trust-exec: [{path: a.sh}]",
        "repository: https://a.example/b",
        "repository: [https://a.example/b]",
        "repository: [{url: ''}]",
        "repository: [{path: a}]",
        "repository: [{url: a, path: /a}]",
        "targets: [{path: a}]",
        "targets: [{engine: flux}]",
        "targets: [{path: ../a, engine: flux}]",
        "targets: [{path: a/../b, engine: flux}]",
        "targets: [{path: a/, engine: flux}]",
        "targets: [{path: .., engine: flux}]",
        "targets: [{path: ./a, engine: flux}]",
        "targets: [{path: a, engine: argo}]",
        "targets: [{path: a, engine: flux, x: y}]",
        "allow-private: ~",
        "rules:",
    ] {
        assert!(Config::parse(text.as_bytes(), "x").is_err(), "{text}");
        assert!(!accepts(text), "{text}");
    }
}

#[test]
fn the_page_shows_a_configuration_with_every_key() {
    let page = include_str!("../../manual/configuration.md");
    let example = page.split("```yaml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    let config = parse(example);
    assert!(accepts(example));
    for key in known("zzzzzzzzzz: 1") {
        assert!(example.lines().any(|line| line.starts_with(&format!("{key}:"))), "{key} is not in the example");
        assert!(page.contains(&format!("| `{key}` |")), "{key} is not in the table");
    }
    for key in known("allow: [{zzzzzzzzzz: 1}]") {
        assert!(page.contains(&format!("`{key}`")), "{key}");
    }
    assert!(!config.allow.is_empty() && !config.scopes.is_empty());
    assert!(page.contains("(../config/schema.json)"));
}
