//! What an application changes in a kustomization: the commands that Argo CD runs (argo-cd, `util/kustomize/kustomize.go`).

use serde_json::Value as Json;

use super::super::scan::Document;
use crate::kustomization::Value;

/// How the names of the variables begin that tell which commit is deployed.
const REVISION: &str = "ARGOCD_APP_REVISION";

/// The namespaces of Argo CD itself: the name of an application in another one has that before it.
const OWN: [&str; 3] = ["", "argocd", "openshift-gitops"];

/// Returns the arguments of `kustomize edit` for a source of an application, in Argo CD's order and without components; or why
/// one is not known.
pub(super) fn commands(application: &Document, source: &Value) -> Result<Vec<Vec<String>>, String> {
    let said = source.get("kustomize").map_or(Json::Null, Value::json);
    let flag = |key: &str| said[key] == Json::Bool(true);
    let fill_in = |text: &str| expand(text, &|name| variable(application, source, name));
    let mut all = Vec::new();
    let mut run = |words: &[&str], values: Vec<String>| {
        if !values.is_empty() {
            all.push(words.iter().map(|word| (*word).to_owned()).chain(values).collect());
        }
    };
    let set = |key: &str| said[key].as_str().filter(|text| !text.is_empty()).map(str::to_owned).into_iter().collect();
    run(&["set", "nameprefix", "--"], set("namePrefix"));
    run(&["set", "namesuffix", "--"], set("nameSuffix"));
    let images = said["images"].as_array().into_iter().flatten();
    run(&["set", "image"], images.map(|image| fill_in(&text(image))).collect::<Result<_, _>>()?);
    let replicas = said["replicas"].as_array().into_iter().flatten();
    let replicas = replicas.map(|one| format!("{}={}", text(&one["name"]), count(&one["count"])));
    run(&["set", "replicas"], replicas.collect());
    let pairs = |key: &str, fills: bool| -> Result<Vec<String>, String> {
        let pairs = said[key].as_object().into_iter().flatten().map(|(key, value)| (key, text(value)));
        let pairs = pairs.map(|(key, value)| Ok(format!("{key}:{}", if fills { fill_in(&value)? } else { value })));
        pairs.collect()
    };
    let with = |command: &'static str, flags: &[(&str, &'static str)]| -> Vec<&'static str> {
        let flags = flags.iter().filter(|(key, _)| flag(key)).map(|(_, flag)| *flag);
        ["add", command].into_iter().chain(flags).collect()
    };
    let flags = [
        ("forceCommonLabels", "--force"),
        ("labelWithoutSelector", "--without-selector"),
        ("labelIncludeTemplates", "--include-templates"),
    ];
    run(&with("label", &flags), pairs("commonLabels", true)?);
    let annotations = pairs("commonAnnotations", flag("commonAnnotationsEnvsubst"))?;
    run(&with("annotation", &[("forceCommonAnnotations", "--force")]), annotations);
    run(&["set", "namespace", "--"], set("namespace"));
    Ok(all)
}

fn text(value: &Json) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns a number as Go prints it; what is none as it is written, for kustomize to refuse.
fn count(value: &Json) -> String {
    let text = text(value);
    text.parse().map_or(text, |number: i64| number.to_string())
}

/// Returns the value of a variable; why it is not known if it is not. One that Argo CD does not know is empty.
fn variable(application: &Document, source: &Value, name: &str) -> Result<String, String> {
    let unknown = || format!("`{name}` is only known to Argo CD");
    let said = |value: Option<&Value>| value.and_then(Value::scalar).unwrap_or_default();
    let object = &application.object;
    let value = match name {
        "$" => return Ok("$".to_owned()),
        "ARGOCD_APP_NAME" if OWN.contains(&&*object.namespace) => object.name.clone(),
        "ARGOCD_APP_NAME" => return Err(unknown()),
        "ARGOCD_APP_NAMESPACE" => said(application.value.at(&["spec", "destination", "namespace"])),
        "ARGOCD_APP_PROJECT_NAME" => said(application.value.at(&["spec", "project"])),
        "ARGOCD_APP_SOURCE_REPO_URL" => said(source.get("repoURL")),
        "ARGOCD_APP_SOURCE_PATH" => said(source.get("path")),
        "ARGOCD_APP_SOURCE_TARGET_REVISION" => said(source.get("targetRevision")),
        name if name.starts_with(REVISION) => return Err(unknown()),
        _ => String::new(),
    };
    if value.contains("{{") { Err(unknown()) } else { Ok(value) }
}

/// Returns a text with its variables filled in as Go's `os.Expand` does: `$NAME` and `${NAME}`.
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

/// Returns the name of the variable that a text begins with, behind its `$`, and how many bytes belong to it.
fn name(text: &str) -> (&str, usize) {
    let is_special = |one: char| "*#$@!?-".contains(one) || one.is_ascii_digit();
    if let Some(inner) = text.strip_prefix('{') {
        return match inner.find('}') {
            Some(end) => (&inner[..end], end + 2),
            None => ("", 1),
        };
    }
    let end = match text.find(|one: char| !(one.is_ascii_alphanumeric() || one == '_')) {
        _ if text.starts_with(is_special) => 1,
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
