mod directories;
mod document;
mod policy;
mod read;
mod urls;

use std::collections::BTreeSet;

use super::*;

fn parse(text: &str) -> Config {
    Config::parse(text.as_bytes(), FILE_NAME).unwrap()
}

/// Returns what is wrong, as `line:column: field: message (hints)`.
fn refused(text: &str) -> String {
    let Err(failure) = Config::parse(text.as_bytes(), FILE_NAME) else {
        panic!("accepted:\n{text}");
    };
    let text = failure.to_string();
    let text = text.strip_prefix(&format!("{FILE_NAME}:")).unwrap_or(&text);
    if failure.hints.is_empty() { text.to_owned() } else { format!("{text} ({})", failure.hints.join("; ")) }
}

/// Asserts that `text` is refused, and what is said holds `part`.
#[track_caller]
fn is_refused_for(text: &str, part: &str) {
    let said = refused(text);
    assert!(said.contains(part), "{part:?} is not in {said:?}");
}

/// Returns the words that there are beside one that is not known.
fn known(text: &str) -> BTreeSet<String> {
    let message = serde_yaml::from_str::<Config>(text).unwrap_err().to_string();
    let (_, list) = message.split_once(", expected ").unwrap();
    list.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

fn git(url: &str, path: &str, reference: &str) -> Subject {
    let reference = Some(reference.to_owned());
    Subject::Remote(Upstream::Git { url: url.to_owned(), reference, submodules: true, path: path.to_owned() })
}

fn http(url: &str) -> Subject {
    Subject::Remote(Upstream::File { url: url.to_owned() })
}

const EVERYTHING: &str = r#"# policy
rules:
  floating-ref: warning
  "stale-lock": off
  invalid-kustomization: 'error'
scopes: [apps/*, "clusters/**"]
include:
- clusters
exclude:
- "**/templates"
- '.'
allow:
- url: github.com/acme
  refs: tag
  reason: our own   # said twice
- chart: https://charts.example.com/*
  refs: any
  rules: [remote-chart]
  reason: >-
    mirrored,
    and watched
- path: "**/secret.env"
  reason: made   by each cluster
- {image: gcr.io/acme, rules: [function], reason: TODO}
- {program: sed, rules: [function], reason: on every machine}
helm: true
allow-private: true
load-restrictor: none
"#;
