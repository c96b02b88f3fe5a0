//! The changes of an application to a kustomization: the commands that Argo CD runs (argo-cd,
//! `util/kustomize/kustomize.go`).

use serde_json::Value as Json;

use super::environment::Environment;
use super::models::Kustomize;

/// The arguments of `kustomize edit` for a source of an application, in Argo CD's order and without components; or why
/// one is not known.
pub(super) fn commands(environment: &Environment<'_>, spec: &Kustomize) -> Result<Vec<Vec<String>>, String> {
    let mut all = Vec::new();
    let mut run = |words: &[&str], values: Vec<String>| {
        if !values.is_empty() {
            all.push(words.iter().map(|word| (*word).to_owned()).chain(values).collect());
        }
    };
    // The order is that of Argo CD: a later command sees what an earlier one wrote.
    run(&["set", "nameprefix", "--"], unless_empty(&spec.name_prefix));
    run(&["set", "namesuffix", "--"], unless_empty(&spec.name_suffix));
    run(&["set", "image"], spec.images.iter().map(|image| environment.fill_in(image)).collect::<Result<_, _>>()?);
    let replicas = spec.replicas.iter().map(|replica| format!("{}={}", replica.name, count(&replica.count)));
    run(&["set", "replicas"], replicas.collect());
    // The flags are options of `kustomize edit`, before the values.
    let flags = [
        (spec.force_common_labels, "--force"),
        (spec.label_without_selector, "--without-selector"),
        (spec.label_include_templates, "--include-templates"),
    ];
    let labels = spec.common_labels.iter();
    let labels = labels.map(|(key, text)| Ok(format!("{key}:{}", environment.fill_in(text)?)));
    run(&flagged("label", &flags), labels.collect::<Result<_, String>>()?);
    // Labels are always filled in, annotations only if the object asks for it.
    let is_plain = !spec.common_annotations_envsubst;
    let annotations = spec.common_annotations.iter().map(|(key, text)| {
        let value = if is_plain { text.clone() } else { environment.fill_in(text)? };
        Ok(format!("{key}:{value}"))
    });
    let annotations = annotations.collect::<Result<_, String>>()?;
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
