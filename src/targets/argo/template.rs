//! The templates of an `ApplicationSet`, as far as they only name parameters.

use std::collections::BTreeMap;

use crate::tree::path;

/// What the fields begin with that say where an application is built from.
const SOURCE: &str = "source";

/// The parameters that a generator gives one application, by their names in a template: `path.basename`, `cluster`.
pub(super) type Parameters = BTreeMap<String, String>;

/// How the parameters of a git generator are named.
#[derive(Clone, Copy)]
pub(super) struct Style<'a> {
    pub(super) is_go: bool,
    /// What stands before `path`, so that two generators of a matrix are told apart.
    pub(super) prefix: &'a str,
}

/// Fills parameters into a text; none where a template does more than name one that is known.
pub(super) fn fill(text: &str, parameters: &Parameters, is_go: bool) -> Option<String> {
    let (filled, is_all) = fill_known(text, parameters, is_go);
    is_all.then_some(filled)
}

/// Fills parameters into a text, leaves the rest as it is, and returns whether that was all.
pub(super) fn fill_known(text: &str, parameters: &Parameters, is_go: bool) -> (String, bool) {
    let mut filled = String::new();
    let mut is_all = true;
    let mut rest = text;
    while let Some((before, opened)) = rest.split_once("{{") {
        filled.push_str(before);
        let Some((inside, after)) = opened.split_once("}}") else {
            filled.push_str("{{");
            filled.push_str(opened);
            return (filled, false);
        };
        let name = inside.trim();
        let name = if is_go { go_name(name) } else { Some(name.to_owned()) };
        match name.and_then(|name| parameters.get(&name)) {
            Some(value) => filled.push_str(value),
            None => {
                is_all = false;
                filled.push_str("{{");
                filled.push_str(inside);
                filled.push_str("}}");
            }
        }
        rest = after;
    }
    filled.push_str(rest);
    (filled, is_all)
}

/// Returns whether a patch may change the source of an application: it names one, or prints what is not known.
pub(super) fn may_move(patch: &str, parameters: &Parameters, is_go: bool) -> bool {
    let pieces = if is_go { pieces(patch, parameters) } else { fill(patch, parameters, is_go).map(|text| vec![text]) };
    let Some(pieces) = pieces else {
        return true;
    };
    // Keys are read without regard to case.
    let pieces: Vec<String> = pieces.iter().map(|piece| piece.to_lowercase()).collect();
    let splits = || (1..SOURCE.len()).map(|at| SOURCE.split_at(at));
    let names = |piece: &String| {
        // Another way to write a letter: an escape, a tag as `!!binary`, and what Go takes for an `s` in a key.
        piece.contains(SOURCE) || piece.contains(['\\', '!', 'ſ'])
    };
    let ends = |piece: &String| splits().any(|(head, _)| piece.ends_with(head));
    let begins = |piece: &String| splits().any(|(_, tail)| piece.starts_with(tail));
    // Two pieces that do not follow each other do where what is between them prints nothing.
    pieces.iter().any(names) || (pieces.iter().any(ends) && pieces.iter().any(begins))
}

/// Returns the texts between what decides in a Go template, with the parameters in them; none where it does more than
/// decide and print parameters that are known.
fn pieces(patch: &str, parameters: &Parameters) -> Option<Vec<String>> {
    let mut pieces = Vec::new();
    let mut piece = String::new();
    let mut rest = patch;
    // In these a name is not that of a parameter.
    let mut is_inside = false;
    while let Some((before, opened)) = rest.split_once("{{") {
        let (action, after) = opened.split_once("}}")?;
        // The end may be within a text, unless all texts in it end.
        if action.contains(['`', '\'', '\\']) || action.matches('"').count() % 2 == 1 {
            return None;
        }
        let trimmed = action.strip_prefix('-');
        piece.push_str(trimmed.map_or(before, |_| before.trim_end()));
        let action = trimmed.unwrap_or(action);
        let trimmed = action.strip_suffix('-');
        rest = trimmed.map_or(after, |_| after.trim_start());
        let action = trimmed.unwrap_or(action).trim();
        let word = action.split_whitespace().next().unwrap_or(action);
        if ["if", "else", "end", "range", "with"].contains(&word) {
            is_inside |= ["range", "with"].contains(&word) || action.contains(" with ");
            pieces.push(std::mem::take(&mut piece));
        } else if is_inside {
            return None;
        } else {
            piece.push_str(parameters.get(&go_name(action)?)?);
        }
    }
    piece.push_str(rest);
    pieces.push(piece);
    Some(pieces)
}

/// Returns the name of the parameter that an action of a Go template prints.
fn go_name(action: &str) -> Option<String> {
    let is_plain = |character: char| character.is_ascii_alphanumeric() || "._".contains(character);
    let plain = |name: &str| {
        let name = name.strip_prefix('.')?;
        name.chars().all(is_plain).then(|| name.to_owned())
    };
    let Some(indexed) = action.strip_prefix("index ") else {
        return plain(action);
    };
    let (name, index) = indexed.trim().split_once(' ')?;
    let index: usize = index.trim().parse().ok()?;
    Some(format!("{}[{index}]", plain(name)?))
}

/// Returns the parameters of a directory that a git generator found.
pub(super) fn of_path(path: &str, style: Style<'_>) -> Parameters {
    let base = path.rsplit('/').next().unwrap_or(path);
    let name = style.name();
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

/// Returns the parameters of a file that a git generator found, but for what stands in it.
pub(super) fn of_file(file: &str, style: Style<'_>) -> Parameters {
    let mut parameters = of_path(path::parent(file), style);
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
        let style = |is_go| Style { is_go, prefix: "" };
        let go = of_path("apps/Web_1", style(true));
        let old = of_path("apps/Web_1", style(false));
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

    #[test]
    fn a_patch_that_names_no_source_moves_nothing() {
        let pairs = [
            ("prune", "true"),
            ("patch", "spec: {source: {path: x}}"),
            ("key", "Source"),
            ("head", "sour"),
            ("tail", "ce"),
            ("escape", "\"\\u0073ource\""),
        ];
        let parameters = pairs.map(|(key, value)| (key.to_owned(), value.to_owned()));
        let parameters = Parameters::from(parameters);
        let harmless = "{{- if .auto }}\nspec: {syncPolicy: {automated: {prune: {{ .prune }}}}}\n{{- end }}";
        for text in [
            harmless,
            "{{ if eq .auto \"yes\" }}spec: {a: {{ .head }}}{{ else if .b }}x: {{ .tail }}{{ end }}",
            "a: s\n{{- if .auto }}\nenabled: true\n{{- end }}",
            "spec: {b: [{{ range .all }}1,{{ end }}]}",
        ] {
            assert!(!may_move(text, &parameters, true), "{text}");
        }
        assert!(!may_move("spec: {a: {{prune}}}", &parameters, false));
        for text in [
            "spec: {source: {path: x}}",
            "spec: {SOURCES: []}",
            "spec: {{ toYaml .spec }}",
            "{{ .spec | indent 2 }}",
            "x: {{ never ends",
            "{{ .patch }}",
            "spec:\n  {{ .key }}: {path: x}",
            "spec:\n  {{ .head }}{{ .tail }}: {path: x}",
            "spec: {{ .unheardOf }}",
            "spec:\n  {{ .escape }}: {path: x}",
            "spec: {\"sourc\\u0065\": {path: x}}",
            "spec: {!!binary c291cmNl: {path: x}}",
            "spec: {\u{17f}ource: {path: x}}",
            "spec: {so{{ if .a }}ur{{ end }}ce: {path: x}}",
            "spec:\n  sour\n{{- if .a -}}\nce: {path: x}\n{{ end }}",
            "spec: {sour{{ if .a }}x{{ else }}ce{{ end }}: {path: x}}",
            "spec: {sour{{ if ne \"}}\" .x }}ce{{ end }}: {path: x}}",
            "{{ with .a }}x: {{ .prune }}{{ end }}",
            "{{ if .a }}{{ else with .b }}x: {{ .prune }}{{ end }}",
        ] {
            assert!(may_move(text, &parameters, true), "{text}");
        }
        for text in ["{{patch}}", "{{key}}: x", "spec: {sour{{tail}}: {path: x}}", "{{if .a}}"] {
            assert!(may_move(text, &parameters, false), "{text}");
        }
    }
}
