//! The templates of an `ApplicationSet`, as far as they only name parameters.

use std::collections::BTreeMap;

/// The parameters that a generator gives one application, by their names in a template: `path.basename`, `cluster`.
pub(super) type Parameters = BTreeMap<String, String>;

/// Fills parameters into a text; none where a template does more than name one that is known.
pub(super) fn fill(text: &str, parameters: &Parameters, is_go: bool) -> Option<String> {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{{") {
        let (inside, after) = after.split_once("}}")?;
        let name = inside.trim();
        let name = if is_go {
            go_name(name)?
        } else {
            name.to_owned()
        };
        filled.push_str(before);
        filled.push_str(parameters.get(&name)?);
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

/// Returns the name of the parameter that an action of a Go template prints.
fn go_name(action: &str) -> Option<String> {
    if let Some(index) = action.strip_prefix("index .path.segments ") {
        let index: usize = index.trim().parse().ok()?;
        return Some(format!("path.segments[{index}]"));
    }
    let name = action.strip_prefix('.')?;
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._".contains(character);
    name.chars().all(is_plain).then(|| name.to_owned())
}

/// Returns the parameters of a path that a git generator found.
pub(super) fn of_path(path: &str, is_go: bool) -> Parameters {
    let base = path.rsplit('/').next().unwrap_or(path);
    let mut parameters = Parameters::new();
    let name = if is_go { "path.path" } else { "path" };
    parameters.insert(name.to_owned(), path.to_owned());
    parameters.insert("path.basename".to_owned(), base.to_owned());
    parameters.insert("path.basenameNormalized".to_owned(), normalized(base));
    for (index, segment) in path.split('/').enumerate() {
        let name = if is_go { "path.segments" } else { "path" };
        parameters.insert(format!("{name}[{index}]"), segment.to_owned());
    }
    parameters
}

/// Returns a name as Kubernetes takes it, as Argo CD makes it.
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
        let go = of_path("apps/Web_1", true);
        let old = of_path("apps/Web_1", false);
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
            assert_eq!(fill(text, parameters, is_go).as_deref(), expected, "{text}");
        }
    }
}
