//! The templates of an `ApplicationSet`, as far as they only name parameters.

use std::collections::BTreeMap;

use crate::tree::path;

/// The parameters that a generator gives one application, by their names in a template: `path.basename`, `cluster`.
pub(super) type Parameters = BTreeMap<String, String>;

/// The text after the name of a list in an action that prints it.
pub(super) const TO_JSON: &str = " | toJson";

/// How the parameters of a git generator are named.
#[derive(Clone, Copy)]
pub(super) struct Style<'a> {
    pub(super) is_go: bool,
    /// The prefix of `path`, which distinguishes the two generators of a matrix.
    pub(super) prefix: &'a str,
}

/// A text with parameters in it.
pub(super) struct FilledText {
    pub(super) text: String,
    /// Whether nothing is left to be filled in.
    pub(super) is_all: bool,
}

/// Fills parameters into a text, which is a Go template if `is_go`, and leaves the rest as it is.
pub(super) fn fill(text: &str, parameters: &Parameters, is_go: bool) -> FilledText {
    let mut filled = String::new();
    let mut is_all = true;
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once("{{") {
        filled.push_str(before);
        // The braces stay if the action is not the name of a parameter; the text after them is still filled in.
        let value = opened.split_once("}}").and_then(|(inside, after)| {
            let name = inside.trim();
            let name = if is_go { go_name(name)? } else { name.to_owned() };
            Some((parameters.get(&name)?, after))
        });
        if let Some((value, after)) = value {
            filled.push_str(value);
            rest = after;
        } else {
            is_all = false;
            filled.push_str("{{");
            rest = opened;
        }
    }
    filled.push_str(rest);
    FilledText { text: filled, is_all }
}

/// The name of the parameter that an action of a Go template prints; `None` if the action does more than print one.
fn go_name(action: &str) -> Option<String> {
    if let Some((name, "toJson")) = action.split_once('|').map(|(name, filter)| (name.trim(), filter.trim())) {
        return Some(parameter(name)? + TO_JSON);
    }
    let Some(indexed) = action.strip_prefix("index ") else {
        return parameter(action);
    };
    let (name, index) = indexed.trim().split_once(' ')?;
    let index: usize = index.trim().parse().ok()?;
    Some(format!("{}[{index}]", parameter(name)?))
}

/// The name of the parameter that a field of a Go template means.
fn parameter(name: &str) -> Option<String> {
    let name = name.strip_prefix('.')?;
    name.chars()
        .all(|character: char| character.is_ascii_alphanumeric() || "._".contains(character))
        .then(|| name.to_owned())
}

/// The parameters that a git generator makes of a directory: its path, the segments and the last name of it.
pub(super) fn directory_parameters(path: &str, style: Style<'_>) -> Parameters {
    let base = path.rsplit('/').next().unwrap_or(path);
    let name = style.name();
    // In Go the path is an object, so that `path` itself cannot be a text.
    let (whole, segments) =
        if style.is_go { (format!("{name}.path"), format!("{name}.segments")) } else { (name.clone(), name.clone()) };
    let mut parameters = Parameters::new();
    parameters.insert(whole, path.to_owned());
    parameters.insert(format!("{name}.basename"), base.to_owned());
    parameters.insert(format!("{name}.basenameNormalized"), normalized(base));
    for (index, segment) in path.split('/').enumerate() {
        parameters.insert(format!("{segments}[{index}]"), segment.to_owned());
    }
    parameters
}

/// The parameters of a file of a git generator, without those from its content.
pub(super) fn file_parameters(file: &str, style: Style<'_>) -> Parameters {
    let mut parameters = directory_parameters(path::parent(file), style);
    let (name, file) = (style.name(), path::name(file));
    parameters.insert(format!("{name}.filename"), file.to_owned());
    parameters.insert(format!("{name}.filenameNormalized"), normalized(file));
    parameters
}

impl Style<'_> {
    fn name(self) -> String {
        match self.prefix {
            "" => "path".to_owned(),
            prefix => format!("{prefix}.path"),
        }
    }
}

/// A name as Kubernetes takes it, as Argo CD makes it.
fn normalized(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let kept = name.chars().map(|character| match character {
        'a'..='z' | '0'..='9' | '-' | '.' => character,
        _ => '-',
    });
    let name: String = kept.take(253).collect();
    name.trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_filled_in() {
        let style = |is_go| Style { is_go, prefix: "" };
        let go = directory_parameters("apps/Web_1", style(true));
        let old = directory_parameters("apps/Web_1", style(false));
        for (text, is_go, expected) in [
            ("{{.path.path}}", true, Some("apps/Web_1")),
            ("x/{{ .path.basename }}/y", true, Some("x/Web_1/y")),
            ("{{.path.basenameNormalized}}", true, Some("web-1")),
            ("{{index .path.segments 0}}", true, Some("apps")),
            ("{{path}}-{{path[1]}}", false, Some("apps/Web_1-Web_1")),
            ("{{ path.basename }}", false, Some("Web_1")),
            ("plain", true, Some("plain")),
            ("{{.path.basename | lower}}", true, None),
            ("{{.cluster}}", true, None),
            ("{{cluster}}", false, None),
            ("{{index .path.segments 7}}", true, None),
            ("{{ never ends", true, None),
        ] {
            let parameters = if is_go { &go } else { &old };
            let filled = fill(text, parameters, is_go);
            assert_eq!(filled.is_all.then_some(&*filled.text), expected, "{text}");
        }
    }
}
