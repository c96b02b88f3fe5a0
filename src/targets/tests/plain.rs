//! Directories of plain files.

use super::*;
use crate::targets::plain::plain;

fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// Returns the names of the objects that the first target of a tree applies; none where that is not known.
fn applied(files: &[(&str, &str)]) -> Option<Vec<String>> {
    let tree = tree(files);
    let targets = find_in(files);
    let target = &targets.targets[0];
    let here = target.local_dir().unwrap();
    if target.build.unread.is_some() {
        assert!(target.why_unknown().is_some());
        return None;
    }
    let output = String::from_utf8(plain(&tree, target, here).unwrap()?).unwrap();
    let names = crate::kustomization::documents(&output).filter_map(|document| {
        let object = read_object(document).unwrap()?.json();
        Some(object["metadata"]["name"].as_str().unwrap().to_owned())
    });
    Some(names.collect())
}

#[test]
fn argo_cd_applies_the_manifests_that_its_source_takes() {
    let application = |directory: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: x}}\nspec: {{source: {{repoURL: '{HERE}', path: d, directory: {directory}}}}}\n"
        )
    };
    let (a, b, c, e) = (map("a"), map("b") + "---\n# nothing\n---\n" + &map("b2"), map("c"), map("e"));
    let json = r#"{"apiVersion": "v1", "kind": "List", "items": [{"kind": "X", "metadata": {"name": "j"}}]}"#;
    let skipped = format!("# +argocd:skip-file-rendering\n{a}");
    for (directory, expected) in [
        ("{}", "a b b2 j"),
        ("{recurse: true}", "a b b2 j c e"),
        ("{recurse: true, exclude: 's/*'}", "a b b2 j"),
        ("{recurse: true, include: '*.yml'}", "b b2"),
        ("{recurse: true, include: 's/*.yaml'}", "c e"),
        ("{recurse: true, include: 's/**/e.yaml'}", "e"),
        ("{recurse: true, include: '{a.yaml,*/c.yaml}'}", "a c"),
        ("{recurse: true, include: '{a.yaml,*/c.yaml}', exclude: '*a.yaml'}", "c"),
        ("{include: '[', recurse: true}", ""),
    ] {
        let object = application(directory);
        let files = [
            ("0.yaml", object.as_str()),
            ("d/a.yaml", &a),
            ("d/b.yml", &b),
            ("d/j.json", json),
            ("d/k.txt", &a),
            ("d/skipped.yaml", &skipped),
            ("d/values.yaml", "replicas: 1\n"),
            ("d/s/c.yaml", &c),
            ("d/s/t/e.yaml", &e),
        ];
        let expected: Vec<&str> = expected.split_whitespace().collect();
        assert_eq!(applied(&files).unwrap(), expected, "{directory}");
        // Jsonnet makes objects that nobody knows here.
        let files = [&files[..], &[("d/x.jsonnet", "{}")]].concat();
        assert_eq!(applied(&files), None, "{directory}");
    }
}

#[test]
fn what_is_no_yaml_is_shown_if_it_looks_like_a_manifest() {
    let object = format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: x}}\nspec: {{source: {{repoURL: '{HERE}', path: d}}}}\n"
    );
    let broken = map("a") + "data: {a: 1, a: 2}\n";
    for (text, expected) in [
        (broken.as_str(), Some(broken.as_str())),
        ("{{ template }}\n", None),
        ("--- # one\nkind: X\nmetadata: {name: a}", Some(" # one\nkind: X\nmetadata: {name: a}\n")),
        ("--- {kind: X}\r\n---\r\nkind: Y\r\n", Some(" {kind: X}\r\n---\nkind: Y\r\n")),
        (
            "apiVersion: v1\nkind: SecretList\nitems: [{metadata: {name: a}}, {kind: B}]\n",
            Some("apiVersion: v1\nkind: Secret\nmetadata:\n  name: a\n---\nkind: B\n"),
        ),
        ("", None),
    ] {
        let files = [("0.yaml", object.as_str()), ("d/a.yaml", text)];
        let targets = find_in(&files);
        let target = &targets.targets[0];
        let output = plain(&tree(&files), target, target.local_dir().unwrap()).unwrap().unwrap();
        let expected = expected.map(|text| format!("---\n{text}")).unwrap_or_default();
        assert_eq!(String::from_utf8(output).unwrap(), expected, "{text}");
    }
}
