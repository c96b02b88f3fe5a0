//! The pipeline: what is walked, counted and left out.

mod bounds;
mod locked;
mod objects;
mod unread;

use super::testing::{Scene, flux, source};
use super::*;
use crate::record::LOCK_NAME;

const REMOTE: &str = "https://github.com/o/r//base?ref=v1";

fn checked(files: &[(&str, &str)], paths: &[&str]) -> Checked {
    checked_with(files, paths, &Config::default())
}

fn checked_with(files: &[(&str, &str)], paths: &[&str], config: &Config) -> Checked {
    let scene = Scene {
        paths: paths.iter().map(|path| (*path).to_owned()).collect(),
        config: config.clone(),
        ..Scene::default()
    };
    let add = |scene: Scene, (path, text): &(&str, &str)| scene.file(path, text);
    files.iter().fold(scene, add).check()
}

fn found(checked: &Checked) -> Vec<(&str, &str, usize)> {
    checked
        .findings
        .iter()
        .map(|finding| {
            let line = finding.span.map_or(0, |span| span.start.line);
            (finding.rule.id(), finding.path.as_str(), line)
        })
        .collect()
}

#[test]
fn every_kustomization_is_checked_each_once() {
    let remote = format!("resources:\n- {REMOTE}\n");
    let files = [
        ("base/kustomization.yaml", remote.as_str()),
        ("a/kustomization.yml", "resources:\n- ../base\n"),
        ("b/Kustomization", "resources:\n- ../base\n"),
        ("b/other.yaml", "resources: [https://github.com/o/r]\n"),
    ];
    let checked = checked(&files, &[]);
    assert_eq!(found(&checked), [("remote-reference", "base/kustomization.yaml", 2)]);
    assert_eq!((checked.kustomizations, checked.references), (3, 3));
    assert_eq!(checked.status(), 1);
}

#[test]
fn one_broken_file_does_not_hide_the_others() {
    let remote = format!("resources:\n- {REMOTE}\n");
    let mut scene = Scene::default().file("a/kustomization.yaml", "resources: [\n");
    scene.tree.add_file("b/kustomization.yaml", b"\xff\xfea");
    let checked = scene.file("base/kustomization.yaml", &remote).check();
    let (invalid, remote) = ("invalid-kustomization", "remote-reference");
    assert_eq!(
        found(&checked),
        [
            (invalid, "a/kustomization.yaml", 1),
            (invalid, "b/kustomization.yaml", 1),
            (remote, "base/kustomization.yaml", 2),
        ]
    );
}

#[test]
fn a_path_bounds_where_the_walk_starts() {
    let remote = format!("resources:\n- {REMOTE}\n");
    let files = [
        ("base/kustomization.yaml", remote.as_str()),
        ("a/one/kustomization.yml", "resources:\n- ../../base\n"),
        ("ab/kustomization.yaml", "resources: [https://github.com/o/r]\n"),
    ];
    for paths in [["a"], ["a/one"], ["a/one/kustomization.yml"]] {
        let checked = checked(&files, &paths);
        assert_eq!(found(&checked), [("remote-reference", "base/kustomization.yaml", 2)], "{paths:?}");
        assert_eq!(checked.kustomizations, 2);
    }
}

#[test]
fn a_kustomization_is_checked_as_its_directory_is() {
    let files = [
        ("clusters/source.yaml", &*source("")),
        ("clusters/apps.yaml", &*flux("apps")),
        ("apps/kustomization.yaml", "helmCharts: [{name: web}]\n"),
        ("apps/charts/web/Chart.yaml", "name: web\n"),
    ];
    for path in ["apps", "apps/kustomization.yaml"] {
        let checked = checked(&files, &[path]);
        let rules: Vec<Rule> = checked.findings.iter().map(|finding| finding.rule).collect();
        assert_eq!(rules, [Rule::MissingPath, Rule::Engine], "{path}");
    }
}

#[test]
fn allowed_findings_and_stale_comments_are_reported() {
    let file = format!(
        "resources:\n# kustomize-localize: allow[remote-reference] ours\n- {REMOTE}\n- x.yaml # kustomize-localize: allow[engine] old\n"
    );
    let files = [("a/kustomization.yaml", file.as_str()), ("a/x.yaml", "")];
    let config = b"allow: [{url: a.example, refs: tag, reason: r}]\n";
    let config = Config::parse(config, "policy.yaml").unwrap();
    let whole = checked_with(&files, &[], &config);
    assert_eq!(
        found(&whole),
        [
            ("remote-reference", "a/kustomization.yaml", 3),
            ("stale-allow", "a/kustomization.yaml", 4),
            ("stale-allow", "policy.yaml", 1),
        ]
    );
    let allowed = whole.findings[0].allowed.as_ref().unwrap();
    assert_eq!(allowed.by(), "a/kustomization.yaml:2");
    assert_eq!(whole.status(), 0);
    // A part may lack what the whole has.
    let part = checked_with(&files, &["a"], &config);
    assert_eq!(found(&part).len(), 1);
    let broken = [files[0], files[1], (LOCK_NAME, "version: 7\n")];
    let broken = checked_with(&broken, &[], &config);
    assert_eq!(found(&broken), []);
    assert_eq!(broken.status(), 2);
}

#[test]
fn comments_in_localized_files_allow_nothing() {
    let file = format!(
        "resources:\n- {REMOTE} # kustomize-localize: allow[remote-reference] trust me\n# kustomize-localize: allow[x]\n"
    );
    let lock = format!(
        "version: 1\nfiles:\n  - path: localized-files/x/kustomization.yaml\n    mode: \"100644\"\n    sha256: {}\n",
        crate::record::sha256_hex(file.as_bytes())
    );
    let own = ("kustomization.yaml", "namePrefix: x\n");
    let files = [(LOCK_NAME, lock.as_str()), ("localized-files/x/kustomization.yaml", file.as_str()), own];
    let checked = checked(&files, &[]);
    assert!(checked.failures.is_empty(), "{:?}", checked.failures);
    assert_eq!(found(&checked), [("remote-reference", "localized-files/x/kustomization.yaml", 2)]);
    assert_eq!(checked.status(), 1);
}

#[test]
fn a_file_added_to_localized_files_is_checked_as_any_other() {
    let lock = format!(
        "version: 1\nfiles:\n  - path: localized-files/x.yaml\n    mode: \"100644\"\n    sha256: {}\n",
        crate::record::sha256_hex(b"")
    );
    let files = [
        (LOCK_NAME, lock.as_str()),
        ("localized-files/x.yaml", ""),
        ("localized-files/new/kustomization.yaml", "resources: [gone.yaml, ../x.yaml]\n"),
    ];
    let checked = checked(&files, &[]);
    let path = "localized-files/new/kustomization.yaml";
    assert_eq!(found(&checked), [("edited-copy", path, 0), ("missing-path", path, 1), ("out-of-scope", path, 1)]);
}

#[test]
fn a_file_that_is_too_large_is_a_failure() {
    const PLUGINS: &str = "generators: [g.yaml]\n";
    let large = format!("# kustomize-localize: allow[invalid-kustomization] x\n{}", "# \n".repeat(3_400_000));
    for (path, text) in [("base/kustomization.yaml", "resources: [base]\n"), ("g.yaml", PLUGINS)] {
        let scene = Scene::of(text).file(path, &large).config("rules: {invalid-kustomization: off}\n");
        let checked = scene.check();
        assert_eq!(checked.status(), 2, "{path}");
        assert_eq!(checked.failures.len(), 1, "{path}");
        let failure = &checked.failures[0];
        assert_eq!(failure.message, format!("`{path}` has more than 10000000 bytes"));
        assert!(failure.hints[0].starts_with("split it"), "{failure:?}");
    }
}

#[test]
fn localized_files_are_checked_as_far_as_they_can_be_mended() {
    use Rule::{FloatingRef, InvalidKustomization, RemoteChart, RemoteReference, UnsafeReference};
    let place = "localized-files/a/kustomization.yaml";
    let remote = "rules: {remote-reference: off}\n";
    let unsafe_ones = "resources: ['https://github.com/o/r?ref=-x', 'https://me:hunter2@h/x.yaml']\nhelmCharts: [{name: a, repo: 'https://me:hunter2@h'}]\n";
    for (text, config, rule, count) in [
        ("resources: [https://h/x.yaml]\n", "", RemoteReference, 1),
        ("helmCharts: [{name: a, repo: 'https://h'}]\n", "", RemoteChart, 1),
        (unsafe_ones, "", UnsafeReference, 3),
        ("resources: ['https://github.com/o/r?ref=main']\n", remote, FloatingRef, 0),
        ("resource: []\n", "", InvalidKustomization, 1),
        ("namePrefix: a\n---\nnamePrefix: b\n", "", InvalidKustomization, 0),
    ] {
        let scene = || Scene::of("resources: [localized-files/a]\n").config(config);
        let found = scene().stored(place, text).find(rule);
        assert_eq!(found.len(), count, "{text}");
        assert!(found.iter().all(|finding| finding.path == place));
        // What is not listed is like any other file.
        assert!(!scene().file(place, text).find(rule).is_empty(), "{text}");
    }
}

#[test]
fn no_rule_shows_a_secret() {
    let function = "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: 'https://me:hunter2@example.com/run'}\n";
    let remote = "rules: {remote-reference: off}\n";
    for (text, config, rule) in [
        ("resources: ['https://a:hunter2@example.com/x.yaml']", "", Rule::RemoteReference),
        ("resources: ['https://b:hunter2@github.com/o/r?sig=hunter2']", "", Rule::RemoteReference),
        ("helmCharts: [{name: a, repo: 'https://me:hunter2@h.example'}]", "", Rule::RemoteChart),
        ("resources: ['https://u:hunter2@github.com/o/r?ref=main']", remote, Rule::FloatingRef),
        ("resources: ['https://u:hunter2@h.example/latest/x.yaml?token=hunter2']", remote, Rule::FloatingRef),
        ("resources: ['https://u:hunter2@github.com/o/r?token=hunter2;']", remote, Rule::FloatingRef),
        ("generators: [fn.yaml]", "", Rule::Function),
    ] {
        let scene = Scene::of(&format!("{text}\n")).file("fn.yaml", function).config(config);
        let findings = scene.check().findings;
        let count = findings.iter().filter(|finding| finding.rule == rule).count();
        assert_eq!(count, 1, "{text}");
        assert!(!testing::shown(&findings).contains("hunter2"), "{findings:?}");
    }
}

#[test]
fn what_two_roots_list_is_reported_once() {
    use Rule::{InvalidKustomization, MissingPath, RemoteReference};
    let plugin = |rest: &str| format!("apiVersion: builtin\n{rest}\nmetadata: {{name: a}}\n");
    for (text, rule) in [
        (plugin("kind: PatchTransformer\npath: https://example.com/x.yaml"), RemoteReference),
        (plugin("kind: PatchTransformer\npath: gone.yaml"), MissingPath),
        (plugin("kind: PatchTransformer\npath: [a]"), InvalidKustomization),
    ] {
        for (plugin, kustomizations) in [("../p/t.yaml", 2), ("../p", 3)] {
            let lists = format!("transformers: [{plugin}]\n");
            let mut scene = Scene::default().file("p/t.yaml", &text).config("load-restrictor: none\n");
            if plugin == "../p" {
                scene = scene.file("p/kustomization.yaml", "resources: [t.yaml]\n");
            }
            let checked = scene.file("a/kustomization.yaml", &lists).file("b/kustomization.yaml", &lists).check();
            let found: Vec<_> = checked.findings.iter().map(|one| (one.rule, &*one.path)).collect();
            assert_eq!(found, [(rule, "p/t.yaml")], "{text}{plugin}");
            assert_eq!(checked.kustomizations, kustomizations);
        }
    }
}
