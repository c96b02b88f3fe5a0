//! Recognizes the content of a file, or of a downloaded body.

use super::plugin;
use super::yaml::{self, Value};

/// Counts the Kubernetes objects in a file of `resources`.
///
/// # Errors
///
/// If kustomize refuses the file: it must be UTF-8 and YAML, and every document that is not empty a mapping with `kind`
/// and `metadata.name` (or a list of these). Neither `apiVersion` nor a single object is required.
pub(crate) fn count_objects(bytes: &[u8]) -> Result<usize, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "not text".to_owned())?;
    let stream = yaml::read_unique(text, usize::MAX)
        .map_err(|error| format!("not YAML (line {}: {})", error.position.line, error.message))?;
    let objects = plugin::objects(&stream);
    let objects = objects.map_err(|problem| format!("{} (line {})", problem.message, problem.position.line))?;
    Ok(objects.len())
}

/// Whether a body is a web page, which a host sends instead of a file that needs a login, or for a directory.
pub(crate) fn looks_like_html(bytes: &[u8]) -> bool {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1000)]).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    start.starts_with('<') && ["<!doctype html", "<html", "<head>", "<body"].iter().any(|tag| start.contains(tag))
}

/// Whether a file that is named like a kustomization contains a Kustomization of Flux instead, which kustomize cannot
/// build. Such a file is not a root, although its directory looks like one. False if the file cannot be parsed: then it
/// counts as a kustomization, and its error is reported.
pub(crate) fn is_flux_object(bytes: &[u8]) -> bool {
    const GROUP: &str = "kustomize.toolkit.fluxcd.io/";
    let text = std::str::from_utf8(bytes).ok().filter(|text| text.contains(GROUP));
    let stream = text.and_then(|text| yaml::read_unique(text, 1).ok());
    let Some(root) = stream.as_ref().and_then(|stream| stream.documents.first()) else { return false };
    let [version, kind] = ["apiVersion", "kind"].map(|key| root.get(key).and_then(Value::text).unwrap_or_default());
    let mut keys = root.mapping().unwrap_or_default().iter().map(|(key, _)| key.as_str());
    root.tag.is_none()
        && version.starts_with(GROUP)
        && kind == "Kustomization"
        // kustomize, which ignores case, may take another key for a field.
        && keys.all(|key| ["apiVersion", "kind", "metadata", "spec", "status"].contains(&key))
}

#[cfg(test)]
mod tests {
    use super::{count_objects, is_flux_object, looks_like_html};

    #[test]
    fn flux_objects_are_recognized_by_their_version() {
        let flux = "# to the cluster\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n";
        assert!(is_flux_object(flux.as_bytes()));
        assert!(is_flux_object(format!("{flux}metadata: {{name: a}}\nspec: {{}}\nstatus: {{}}\n").as_bytes()));
        for text in [
            &format!("{flux}resources: [a]\n"),
            &format!("{flux}apiversion: kustomize.config.k8s.io/v1beta1\n"),
            &format!("{flux}<<: {{resources: [a]}}\n"),
            &format!("{flux}kind: Kustomization\n"),
            &format!("--- !!map\n{flux}"),
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nspec: {}\n",
            "apiVersion: kustomize.config.k8s.io/v1beta1\nresources: [kustomize.toolkit.fluxcd.io/v1]\n",
            "resources: [a]\n# apiVersion: kustomize.toolkit.fluxcd.io/v1\n",
            "resources: [a]\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\n",
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\n\tkind: [",
        ] {
            assert!(!is_flux_object(text.as_bytes()), "{text}");
        }
    }

    fn refusal(text: &str) -> String {
        count_objects(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn objects_are_resources() {
        for text in [
            "apiVersion: v1\nkind: X\nmetadata: {name: a}\n",
            "kind: X\nmetadata: {name: a}\n",
            "kind: X\nmetadata: {name: 1}\n",
            "\u{feff}kind: X\r\nmetadata: {name: a}\r\n---\r\nkind: X\r\nmetadata: {name: b}\r\n",
            "---\n# nothing\n---\n{}\n---\nkind: X\nmetadata: {name: a}\n",
            "kind: List\nitems:\n- {kind: X, metadata: {name: a}}\n-\n",
            "kind: ConfigMapList\nitems:\n- {kind: X, metadata: {name: a}}\n",
            "kind: FooList\n",
            "{\"kind\":\"X\",\"metadata\":{\"name\":\"a\"}}",
            "kind: List\nitems: []\n",
            "kind: X\nmetadata: &m {name: a}\nspec: {m: *m}\n",
        ] {
            assert!(count_objects(text.as_bytes()).unwrap() > 0, "{text}");
        }
    }

    #[test]
    fn everything_else_is_named() {
        for empty in [" \n", "\u{feff}", "# nothing\n---\n"] {
            assert_eq!(count_objects(empty.as_bytes()), Ok(0), "{empty:?}");
        }
        assert_eq!(refusal("<!DOCTYPE html>\n<html>"), "expected an object, found a string (line 1)");
        assert_eq!(refusal("hello\n"), "expected an object, found a string (line 1)");
        assert_eq!(refusal("- a\n"), "expected an object, found a list (line 1)");
        assert_eq!(
            refusal("kind: X\nmetadata: {name: a}\n---\nkind: Y\n"),
            "an object of kind Y without `metadata.name` (line 4)"
        );
        assert_eq!(refusal("apiVersion: v1\nmetadata: {name: a}\n"), "an object without `kind` (line 1)");
        assert_eq!(
            refusal("kind: X\nmetadata: {name: a}\nx: 1\nx: 2\n"),
            "not YAML (line 4: the key `x` appears twice)"
        );
        assert!(refusal("a: b: c\n").starts_with("not YAML (line 1: "));
        assert_eq!(count_objects(b"kind: \xff"), Err("not text".to_owned()));
    }

    #[test]
    fn pages_are_seen_behind_comments() {
        assert!(looks_like_html(b"\xef\xbb\xbf\n<!-- x -->\n<HTML lang=en>"));
        assert!(looks_like_html(b"<?xml version='1.0'?><!doctype HTML>"));
        assert!(!looks_like_html(b"<!-- x"));
        assert!(!looks_like_html(b"kind: X # <html>"));
        assert!(!looks_like_html(b""));
    }
}
