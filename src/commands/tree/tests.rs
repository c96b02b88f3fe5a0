use std::rc::Rc;

use serde_json::Value;

use super::*;
use crate::commands::json::json_report;
use crate::graph::testing::tree as files;
use crate::message::failure::Location;

const APP: &str = "https://github.com/acme/app//deploy?ref=v1.2.0";

/// Returns the graph of these files; it shows no secret.
fn survey(all: &[(&str, &str)], paths: &[&str]) -> ReferenceTree {
    let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
    let tree = ReferenceTree::survey(None, Rc::new(files(all)), &Config::default(), &paths).unwrap();
    assert!(!drawn(&tree).contains("secret") && !json_report(&tree).contains("secret"));
    tree
}

fn drawn(tree: &ReferenceTree) -> String {
    tree.text(Shown::default())
}

/// Returns what leads to a URL, or that nothing does.
fn inverted(all: &[(&str, &str)], url: &str) -> String {
    let lock = Lock::find(&files(all), LOCK_NAME).unwrap().unwrap_or_default();
    let mut tree = survey(all, &[]);
    match tree.invert(url, &lock) {
        Ok(()) => drawn(&tree),
        Err(failure) => failure.message,
    }
}

#[test]
fn directories_of_a_repository_are_distinguished() {
    let all = [
        ("web/kustomization.yaml", "resources: ['https://example.com/acme/bases//apps/web?ref=v1']\n"),
        ("db/kustomization.yaml", "resources: ['https://example.com/acme/bases//apps/db?ref=v1']\n"),
    ];
    let web = "https://example.com/acme/bases//apps/web?ref=v1 (tag, not locked)\n└── web\n";
    for rest in ["//apps/web", "//apps/web?ref=v1", "/apps/web"] {
        assert_eq!(inverted(&all, &format!("https://example.com/acme/bases{rest}")), web, "{rest}");
    }
    for rest in ["/bases//apps", "/bases", ""] {
        let text = inverted(&all, &format!("https://example.com/acme{rest}"));
        assert!(text.contains(web) && text.contains("└── db\n"), "{rest}: {text}");
    }
}

#[test]
fn every_shape_is_drawn() {
    const PART: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    let parts = [
        ("one/kustomization.yaml", &*format!("{PART}namePrefix: a-\n")),
        ("two/kustomization.yaml", &format!("{PART}components: [../one, ../one]\n")),
        ("app/kustomization.yaml", "components: [../one, ../two, ../one]\npatches: [{path: p.yaml}, {path: p.yaml}]\n"),
        ("app/p.yaml", "a: b\n"),
    ];
    let inner =
        [("app/kustomization.yaml", "resources: [part]\n"), ("app/part/kustomization.yaml", "namePrefix: a-\n")];
    let broken = [("app/kustomization.yaml", "resources: [../base]\n"), ("base/kustomization.yaml", "resources: [\n")];
    let remote = format!("resources: [., '{APP}']\n");
    let rings = [
        ("a/kustomization.yaml", "resources: [../b]\n"),
        ("b/kustomization.yaml", "resources: [../a]\n"),
        ("c/kustomization.yaml", &remote),
    ];
    for (all, paths, expected) in [
        (&inner[..], &["app"][..], "app\n└── app/part\n"),
        (&inner, &["app/kustomization.yaml"], "app\n└── app/part\n"),
        (&inner, &["app", "app/part"], "app\n└── app/part\n"),
        (&broken, &[], "app\n└── base (invalid)\n"),
        (
            &rings,
            &[],
            "a\n└── b\n    └── a (cycle)\n\nc\n├── c (cycle)\n└── https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)\n",
        ),
        (&parts, &[], "app\n├── one (component)\n├── two (component)\n│   └── one (component)\n└── app/p.yaml\n"),
    ] {
        assert_eq!(drawn(&survey(all, paths)), expected);
    }
    assert_eq!(
        inverted(&rings, "https://github.com/acme/app"),
        "https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)\n└── c\n"
    );
    // Every reference is listed, also the repeated ones.
    assert_eq!(survey(&parts, &[]).references.len(), 7);
}

#[test]
fn charts_and_plugins_are_drawn() {
    let app = "\
helmCharts:
- {name: web, repo: 'https://user:secret@charts.example.com/stable', version: 1.2.3}
- {name: web, repo: 'https://charts.example.com/stable', version: 1.2.3, releaseName: again}
- {name: any, repo: 'oci://registry.example.com/charts'}
- {name: own}
- {name: gone}
generators: [plugins]
transformers:
- |-
  apiVersion: builtin
  kind: PatchTransformer
  metadata: {name: p}
  path: p.yaml
";
    let maps = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: m}\nfiles: [k=https://files.example.com/k.txt]\n";
    let all = [
        ("app/kustomization.yaml", app),
        ("app/p.yaml", "a: b\n"),
        ("app/charts/own/Chart.yaml", "name: own\n"),
        ("app/charts/own/values.yaml", ""),
        ("app/plugins/kustomization.yaml", "resources: [maps.yaml]\n"),
        ("app/plugins/maps.yaml", maps),
    ];
    assert_eq!(
        drawn(&survey(&all, &[])),
        "\
app
├── app/plugins
│   └── app/plugins/maps.yaml
├── app/p.yaml
├── https://files.example.com/k.txt (not locked)
├── https://charts.example.com/stable#web@1.2.3 (chart, not locked)
├── oci://registry.example.com/charts#any (chart, not locked)
├── app/charts/own
└── app/charts/gone (missing)
"
    );
    let web = "https://charts.example.com/stable#web@1.2.3 (chart, not locked)\n└── app\n";
    for url in ["https://charts.example.com/stable", "charts.example.com"] {
        assert_eq!(inverted(&all, url), web);
    }
    let stable = "https://charts.example.com/stable";
    for (url, is_named) in [("#web", true), ("#web@1.2.3", true), ("#other", false), ("#web@1.2", false), ("s", false)]
    {
        let url = format!("{stable}{url}");
        let text = inverted(&all, &url);
        assert!(if is_named { text == web } else { text.starts_with("nothing names") }, "{url}: {text}");
    }
    let json: Value = serde_json::from_str(&json_report(&survey(&all, &[]))).unwrap();
    let references = json["references"].as_array().unwrap();
    let charts: Vec<&Value> = references.iter().filter(|one| one["to"]["kind"] == "chart").collect();
    assert_eq!(charts.len(), 3, "{charts:?}");
    assert_eq!((&charts[0]["reference"], &charts[0]["field"]), (&stable.into(), &"helmCharts[0]".into()));
    assert!(charts[0]["to"]["locked"].is_null());
}

#[test]
fn a_directory_that_the_lock_lacks_may_be_allowed() {
    let commit = "1".repeat(40);
    let lock = format!(
        "version: 1\nremotes:\n- {{url: 'https://github.com/acme/lib', ref: v1, commit: '{commit}', paths: {{web: {{}}}}}}\n"
    );
    let kustomization = "\
resources:
- https://github.com/acme/lib//web?ref=v1 # kustomize-localize: allow[remote-reference] ours
- https://github.com/acme/lib//db?ref=v1 # kustomize-localize: allow[remote-reference] ours
- https://github.com/acme/lib//app?ref=v1
";
    let all = [("kustomization.yaml", kustomization), (LOCK_NAME, &lock)];
    assert_eq!(
        drawn(&survey(&all, &[])),
        "\
.
├── https://github.com/acme/lib//web?ref=v1 (tag, locked 111111111111)
├── https://github.com/acme/lib//db?ref=v1 (tag, allowed)
└── https://github.com/acme/lib//app?ref=v1 (tag, not locked)
"
    );
}

#[test]
fn references_of_remotes_are_found_through_the_lock() {
    let entry = |name: &str, path: &str, names: &str| {
        let commit = "1".repeat(40);
        format!(
            "- {{url: 'https://github.com/acme/{name}', ref: v1, commit: '{commit}', paths: {{{path}: {{{names}}}}}}}\n"
        )
    };
    let lock = [
        entry("deep", "app", ""),
        entry("lib", "web", "names: ['https://github.com/acme/middle?ref=v1']"),
        entry("middle", "'.'", "names: ['https://github.com/acme/deep//app?ref=v1']"),
    ];
    let lock = format!("version: 1\nremotes:\n{}", lock.concat());
    let all = [
        ("base/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
        ("app/kustomization.yaml", "resources: [../base]\n"),
        (LOCK_NAME, &lock),
    ];
    for url in ["https://github.com/acme/deep", "github.com/acme/deep//app?ref=v1"] {
        let expected = "https://github.com/acme/lib//web?ref=v1 (tag, locked 111111111111)\n└── base\n    └── app\n";
        assert_eq!(inverted(&all, url), expected);
    }
    // What no lock records is unknown here.
    assert!(inverted(&all[..2], "https://github.com/acme/deep").starts_with("nothing names"));
}

fn node(name: &str, kind: NodeKind) -> Node {
    Node { name: name.to_owned(), kind, ..Node::default() }
}

fn tree() -> ReferenceTree {
    let start = Rc::new(node("a", NodeKind::Kustomization));
    let link = |to| NamedReference { from: start.clone(), to, location: Location::default(), reference: String::new() };
    let links = vec![
        link(node("a/config.yaml", NodeKind::File)),
        link(node("https://example.com/a.yaml", NodeKind::Http)),
        link(Node { why: Some("not there"), ..node("missing", NodeKind::Broken) }),
    ];
    ReferenceTree { starts: vec![(*start).clone()], references: links }
}

#[test]
fn colour_says_what_is_open() {
    let shown = |color| tree().text(Shown { color, ..Shown::default() });
    let plain = "\
a
├── a/config.yaml
├── https://example.com/a.yaml (not locked)
└── missing (not there)
";
    assert_eq!(shown(false), plain);
    let colored = shown(true);
    assert_eq!(console::strip_ansi_codes(&colored), plain);
    for part in ["\u{1b}[1ma\u{1b}[0m", "\u{1b}[31mhttps://example", "\u{1b}[31mmissing"] {
        assert!(colored.contains(part), "{part:?}: {colored:?}");
    }
}
