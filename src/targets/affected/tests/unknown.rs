//! A target is removed only if everything is known that could still name it.

use expect_test::expect;

use super::{MAP, World, compared, world};

/// The changes of the targets of two trees, each with the build or file that may still name it.
fn changes(old: &World, new: &World) -> String {
    let affected = compared(old, new);
    let lines = affected.targets.iter().map(|change| {
        let why = change.target.changed_by.as_ref().map_or(String::new(), |by| {
            let not_built = by.not_built.as_ref().map_or(String::new(), |why| format!(", not built: {why}"));
            format!(" ({} may name it{not_built})", by.name)
        });
        format!("{} {}{why}\n", change.status.name(), change.target.object.name)
    });
    let total = affected.targets_total;
    lines.collect::<String>() + &format!("{total} targets\n")
}

fn application(name: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{source: {{repoURL: 'https://github.com/acme/fleet', path: {path}}}}}\n"
    )
}

fn set(more: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: s}}
spec:
  goTemplate: true
  generators:
  - git: {{repoURL: 'https://github.com/acme/fleet', files: [{{path: 'cfg/*.json'}}]}}
{more}  template:
    metadata: {{name: '{{{{.n}}}}'}}
    spec: {{source: {{repoURL: 'https://github.com/acme/fleet', path: web}}}}
"
    )
}

fn with(old: &World, file: &str, text: Option<&str>) -> World {
    let mut new = old.clone();
    match text {
        Some(text) => new.insert(file.to_owned(), (text.to_owned(), Some(false))),
        None => new.remove(file),
    };
    new
}

fn generated() -> World {
    world(&[
        ("set.yaml", &set("")),
        ("cfg/1.json", "{n: one}"),
        ("cfg/2.json", "{n: two}"),
        ("web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("web/map.yaml", MAP),
        ("alone.yaml", &application("alone", "web")),
    ])
}

#[test]
fn what_a_set_names_is_unknown_if_its_generator_is() {
    let old = generated();
    let broken = with(&old, "cfg/2.json", Some("{n: "));
    expect![[r#"
        changed one (ApplicationSet s (set.yaml:1) may name it)
        changed two (ApplicationSet s (set.yaml:1) may name it)
        4 targets
    "#]]
    .assert_eq(&changes(&old, &broken));
    // It was unknown, and is not removed.
    expect![[r#"
        changed one (ApplicationSet s (set.yaml:1) may name it)
        changed two (ApplicationSet s (set.yaml:1) may name it)
        3 targets
    "#]]
    .assert_eq(&changes(&broken, &old));
    let selected = with(&old, "set.yaml", Some(&set("    selector: {matchLabels: {n: one}}\n")));
    expect![[r#"
        changed one (ApplicationSet s (set.yaml:1) may name it)
        changed two (ApplicationSet s (set.yaml:1) may name it)
        4 targets
    "#]]
    .assert_eq(&changes(&old, &selected));
    let invalid = with(&old, "set.yaml", Some(&(set("") + "  x: &a *b\n")));
    expect![[r#"
        changed one (set.yaml:11 may name it)
        changed two (set.yaml:11 may name it)
        3 targets
    "#]]
    .assert_eq(&changes(&old, &invalid));
    // Nothing is unknown.
    expect![[r#"
        removed two
        2 targets
    "#]]
    .assert_eq(&changes(&old, &with(&old, "cfg/2.json", None)));
    expect![[r#"
        removed alone
        1 targets
    "#]]
    .assert_eq(&changes(&broken, &with(&broken, "alone.yaml", None)));
}

#[test]
fn what_a_root_deploys_is_unknown_if_it_no_longer_builds() {
    let old = world(&[
        ("prod/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: [web.yaml, map.yaml]\n"),
        ("base/web.yaml", &application("web", "web")),
        ("base/map.yaml", MAP),
        ("web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("web/map.yaml", MAP),
    ]);
    let listed = with(&old, "base/web.yaml", None);
    expect![[r#"
        changed web (base/kustomization.yaml may name it, not built: base/kustomization.yaml:1:13: resources[0]: there is no `base/web.yaml`)
        1 targets
    "#]].assert_eq(&changes(&old, &listed));
    let gone = with(&listed, "base/kustomization.yaml", Some("resources: [map.yaml]\n"));
    expect![[r#"
        removed web
        0 targets
    "#]]
    .assert_eq(&changes(&old, &gone));
    let unread = with(&gone, "base/kustomization.yaml", Some("resources: [\n"));
    expect![[r#"
        changed web (base/kustomization.yaml may name it, not built: base/kustomization.yaml:1:12: not valid YAML: unclosed bracket '[')
        1 targets
    "#]].assert_eq(&changes(&old, &unread));
}
