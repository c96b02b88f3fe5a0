//! The changes of an application to a kustomization: the commands that Argo CD runs (argo-cd,
//! `util/kustomize/kustomize.go`).

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::super::ObjectRef;
use super::super::scan::Document;
use super::models::{Application, Kustomize, Source};

/// How the names of the variables begin that tell which commit is deployed.
const REVISION: &str = "ARGOCD_APP_REVISION";

/// The namespaces of Argo CD itself.
const OWN: [&str; 3] = ["", "argocd", "openshift-gitops"];

/// The arguments of `kustomize edit` for a source of an application, in Argo CD's order and without components; or why
/// one is not known.
pub(super) fn commands(document: &Document, source: &Source, spec: &Kustomize) -> Result<Vec<Vec<String>>, String> {
    let application: Application = document.spec();
    let fill_in = |text: &str| expand(text, &|name| variable(&document.object, &application, source, name));
    let mut all = Vec::new();
    let mut run = |words: &[&str], values: Vec<String>| {
        if !values.is_empty() {
            all.push(words.iter().map(|word| (*word).to_owned()).chain(values).collect());
        }
    };
    // The order is that of Argo CD: a later command sees what an earlier one wrote.
    run(&["set", "nameprefix", "--"], unless_empty(&spec.name_prefix));
    run(&["set", "namesuffix", "--"], unless_empty(&spec.name_suffix));
    run(&["set", "image"], spec.images.iter().map(|image| fill_in(image)).collect::<Result<_, _>>()?);
    let replicas = spec.replicas.iter().map(|replica| format!("{}={}", replica.name, count(&replica.count)));
    run(&["set", "replicas"], replicas.collect());
    // Labels are always filled in, annotations only if the object asks for it.
    let pairs = |pairs: &BTreeMap<String, String>, fills: bool| -> Result<Vec<String>, String> {
        let value = |value: &String| if fills { fill_in(value) } else { Ok(value.clone()) };
        pairs.iter().map(|(key, text)| Ok(format!("{key}:{}", value(text)?))).collect()
    };
    // The flags are options of `kustomize edit`, before the values.
    let flags = [
        (spec.force_common_labels, "--force"),
        (spec.label_without_selector, "--without-selector"),
        (spec.label_include_templates, "--include-templates"),
    ];
    run(&flagged("label", &flags), pairs(&spec.common_labels, true)?);
    let annotations = pairs(&spec.common_annotations, spec.common_annotations_envsubst)?;
    run(&flagged("annotation", &[(spec.force_common_annotations, "--force")]), annotations);
    run(&["set", "namespace", "--"], unless_empty(&spec.namespace));
    Ok(all)
}

/// The words of `add` with the flags that are set.
fn flagged(command: &'static str, flags: &[(bool, &'static str)]) -> Vec<&'static str> {
    let flags = flags.iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| *flag);
    ["add", command].into_iter().chain(flags).collect()
}

/// The text as a value, unless it is empty.
fn unless_empty(text: &str) -> Vec<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty()).into_iter().collect()
}

/// A number as Go prints it; any other value as written, for kustomize to refuse.
fn count(value: &Json) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.parse().map_or(text, |number: i64| number.to_string())
}

/// The value of a variable, or why it is unknown.
fn variable(object: &ObjectRef, application: &Application, source: &Source, name: &str) -> Result<String, String> {
    let unknown = || format!("`{name}` is only known to Argo CD");
    let value = match name {
        "$" => Some("$"),
        "ARGOCD_APP_NAME" if OWN.contains(&&*object.namespace) => Some(&*object.name),
        // In another namespace, the name has the namespace before it.
        "ARGOCD_APP_NAME" => return Err(unknown()),
        "ARGOCD_APP_NAMESPACE" => Some(&*application.destination.namespace.0),
        "ARGOCD_APP_PROJECT_NAME" => Some(&*application.project.0),
        "ARGOCD_APP_SOURCE_REPO_URL" => source.repo_url.as_deref(),
        "ARGOCD_APP_SOURCE_PATH" => source.path.as_ref().map(|path| path.value.as_str()),
        "ARGOCD_APP_SOURCE_TARGET_REVISION" => source.target_revision.as_deref(),
        name if name.starts_with(REVISION) => return Err(unknown()),
        _ => None,
    };
    // A variable that Argo CD does not define is empty.
    let value = value.unwrap_or_default();
    if value.contains("{{") { Err(unknown()) } else { Ok(value.to_owned()) }
}

/// A text with its variables filled in as Go's `os.Expand` does: `$NAME` and `${NAME}`.
fn expand(text: &str, value: &dyn Fn(&str) -> Result<String, String>) -> Result<String, String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once('$') {
        filled += before;
        let (name, length) = name(after);
        match (name, length) {
            ("", 0) => filled.push('$'),
            ("", _) => {}
            (name, _) => filled += &value(name)?,
        }
        rest = &after[length..];
    }
    Ok(filled + rest)
}

/// The name of the variable that a text begins with, behind its `$`, and how many bytes belong to it.
fn name(text: &str) -> (&str, usize) {
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.find('}') {
            Some(end) => (&inner[..end], end + 2),
            None => ("", 1),
        };
    }
    let end = match text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')) {
        // A special variable has one character.
        _ if text.starts_with(|c: char| "*#$@!?-".contains(c) || c.is_ascii_digit()) => 1,
        end => end.unwrap_or(text.len()),
    };
    (&text[..end], end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in_as_go_does() {
        let value = |name: &str| match name {
            "$" => Ok("$".to_owned()),
            "A" => Ok("x".to_owned()),
            "B" => Err("no".to_owned()),
            _ => Ok(String::new()),
        };
        for (text, expected) in [
            ("a", "a"),
            ("$A-${A}-${A}b", "x-x-xb"),
            ("a$b", "a"),
            ("$Ab", ""),
            ("$$A $", "$A $"),
            ("${} ${A", " A"),
            ("$1x é$-é", "x éé"),
            ("$(A)", "$(A)"),
        ] {
            assert_eq!(expand(text, &value).as_deref(), Ok(expected), "{text}");
        }
        assert_eq!(expand("$A ${B}", &value), Err("no".to_owned()));
    }
}
