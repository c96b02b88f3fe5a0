//! Variables that a parent fills in.

use super::flux::SOURCE;
use super::*;

/// Returns an object with a name, a path, and more of its `spec`.
fn object(name: &str, path: &str, more: &str) -> String {
    format!(
        "---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  path: {path}
  sourceRef: {{kind: GitRepository, name: flux-system}}
{more}"
    )
}

fn substitute(values: &str) -> String {
    format!("  postBuild: {{substitute: {{{values}}}}}\n")
}

/// Returns name and place of each target that was filled in, or could not be.
fn places(files: &[(&str, &str)]) -> Vec<String> {
    let found = find_in(&[files, &[("s.yaml", SOURCE)]].concat());
    let lines = found.targets.iter().map(|target| {
        let name = &target.object.name;
        match &target.place {
            Place::Here(here) => format!("{name} {}", here.path),
            Place::External(why) | Place::Templated(why) => format!("{name} {why}"),
        }
    });
    lines.collect()
}

#[test]
fn a_parent_fills_in_what_lies_in_its_directory() {
    let parent = object(
        "all",
        "./all",
        &substitute("A: one, EMPTY: '', NESTED: '${X}'"),
    );
    for (path, expected) in [
        ("./${A}", "one"),
        ("./${A}/${A}-${NONE:=two}", "one/one-two"),
        ("./${EMPTY:=x}/${NONE:-y}/${NONE=z}", "x/y/z"),
        ("./${EMPTY}/a", "a"),
        ("./${A:=other}", "one"),
        (
            "./${NONE}",
            "`./${NONE}`: Flux Kustomization all (p.yaml:2) has no value for `NONE`",
        ),
        (
            "./${A}/${NESTED}",
            "`./one/${NESTED}`: Flux Kustomization all (p.yaml:2) has `${X}` for it, which its own parent fills in",
        ),
        (
            "./${A/o/x}",
            "`./${A/o/x}`: `A/o/x` is more than a name with a default",
        ),
        (
            "./${A:=${B}}",
            "`./${A:=${B}}`: `A:=${B` is more than a name with a default",
        ),
        ("./$${A}", "`./${A}` is filled in by a parent"),
        ("./${A", "`./${A` is filled in by a parent"),
    ] {
        let child = object("child", &format!("'{path}'"), "");
        let found = places(&[("p.yaml", &parent), ("all/deep/child.yaml", &child)]);
        assert_eq!(
            found,
            [format!("child {expected}"), "all all".to_owned()],
            "{path}"
        );
        // Of one that it does not deploy, nothing is known.
        let found = places(&[("p.yaml", &parent), ("more/child.yaml", &child)]);
        let is_plain = path.starts_with("./$${");
        assert!(
            is_plain || found[0].contains("is filled in by a parent"),
            "{found:?}"
        );
    }
}

#[test]
fn a_parent_fills_in_what_its_build_reads() {
    let child = object("child", "'./${A}'", "");
    let found = find_in(&[
        ("s.yaml", SOURCE),
        ("p.yaml", &object("all", "./prod", &substitute("A: one"))),
        ("prod/kustomization.yaml", "resources: [../base]\n"),
        (
            "base/kustomization.yaml",
            "resources: [child.yaml, ../prod]\n",
        ),
        ("base/child.yaml", &child),
        // Not in the kustomization.
        ("prod/other.yaml", &child),
    ]);
    let lines: Vec<String> = found.targets.iter().map(line).collect();
    let name = "Kustomization flux-system/child (base/child.yaml:2, filled in by Flux Kustomization all (p.yaml:2))";
    assert_eq!(lines[0], format!("{name} one@Some(\"main\")true nothing"));
    assert_eq!(found.targets[0].spot, (6, 9));
    assert!(
        lines[2].contains("templated: `./${A}` is filled in by a parent"),
        "{lines:?}"
    );
}

#[test]
fn what_else_gives_values_may_change_them() {
    let from = "  postBuild:
    substitute: {A: one}
    substituteFrom: [{kind: ConfigMap, name: vars}]
";
    let parent = object("all", "./all", from);
    for (path, expected) in [
        // What stands in the object itself has the last word.
        ("./${A}", "one"),
        (
            "./${B:=b}",
            "`./${B:=b}`: ConfigMap vars of Flux Kustomization all (p.yaml:2) may hold `B`",
        ),
    ] {
        let child = object("child", &format!("'{path}'"), "");
        let found = places(&[("p.yaml", &parent), ("all/child.yaml", &child)]);
        assert_eq!(found[0], format!("child {expected}"));
    }
    // No value at all: nothing is filled in.
    let parent = object("all", "./all", "");
    let child = object("child", "'./${A:=a}'", "");
    let found = places(&[("p.yaml", &parent), ("all/child.yaml", &child)]);
    assert_eq!(found[0], "child `./${A:=a}` is filled in by a parent");
    let parent = object("all", "./all", "  postBuild: {substitute: {A: b}}\n");
    let child = child.replace(
        "flux-system}\nspec",
        "flux-system, labels: {kustomize.toolkit.fluxcd.io/substitute: disabled}}\nspec",
    );
    let found = places(&[("p.yaml", &parent), ("all/child.yaml", &child)]);
    assert_eq!(found[0], "child `./${A:=a}` is filled in by a parent");
}

#[test]
fn each_parent_makes_its_own() {
    let cluster = |name: &str| {
        let source = SOURCE.replace("branch: main", &format!("branch: localized/{name}"));
        let values = substitute(&format!("cluster: {name}, same: x"));
        source + &object(name, "./shared", &values)
    };
    let child =
        object("'${cluster}-apps'", "'./apps/${cluster}'", "") + &object("same", "'./${same}'", "");
    let found = find_in(&[
        ("clusters/main/all.yaml", &cluster("main")),
        ("clusters/master/all.yaml", &cluster("master")),
        ("shared/child.yaml", &child),
    ]);
    let mut lines: Vec<String> = found.targets.iter().map(line).collect();
    lines.retain(|line| line.contains("shared/child.yaml"));
    assert_eq!(
        lines,
        [
            "Kustomization flux-system/main-apps (shared/child.yaml:2, filled in by Flux Kustomization main (clusters/main/all.yaml:11)) apps/main@Some(\"localized/main\")true nothing",
            "Kustomization flux-system/master-apps (shared/child.yaml:2, filled in by Flux Kustomization master (clusters/master/all.yaml:11)) apps/master@Some(\"localized/master\")true nothing",
            "Kustomization flux-system/same (shared/child.yaml:9, filled in by Flux Kustomization main (clusters/main/all.yaml:11)) x@Some(\"localized/main\")true nothing",
        ]
    );
}

#[test]
fn sources_and_children_of_children_are_filled_in() {
    let source = SOURCE
        .replace("fleet.git", "${REPO}.git")
        .replace("branch: main", "branch: ${BRANCH:=main}");
    let files = [
        (
            "p.yaml",
            object("all", "./all", &substitute("REPO: fleet, NEXT: two")) + "---\n" + SOURCE,
        ),
        (
            "all/s.yaml",
            source.replace("name: flux-system", "name: other"),
        ),
        (
            "all/child.yaml",
            object(
                "child",
                "./all-${NEXT}",
                &substitute("LAST: '${NEXT}-three'"),
            )
            .replace("name: flux-system}\n  post", "name: other}\n  post"),
        ),
        ("all-two/last.yaml", object("last", "./${LAST}", "")),
    ];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let found = find_in(&files);
    let lines: Vec<String> = found.targets.iter().map(line).collect();
    assert!(
        lines[0].ends_with(" two-three@Some(\"main\")true nothing"),
        "{lines:?}"
    );
    assert!(
        lines[1].ends_with(" all-two@Some(\"main\")true directory"),
        "{lines:?}"
    );
    assert_eq!(found.unread, []);
}

#[test]
fn rings_of_objects_end() {
    // One that deploys itself fills in nothing of itself, but what lies beside it.
    let own = object("own", "./clusters", &substitute("A: one, B: '${A}'"));
    let child = object("child", "./${A}", "");
    let found = places(&[("clusters/own.yaml", &own), ("clusters/x.yaml", &child)]);
    assert_eq!(found, ["own clusters", "child one"]);
    // Each of these deploys the others.
    let grows = substitute("A: 'x${A}'");
    let ring: Vec<(String, String)> = (0..20)
        .map(|number| {
            let name = format!("n{number}");
            (format!("ring/{name}.yaml"), object(&name, "./ring", &grows))
        })
        .collect();
    let files: Vec<(&str, &str)> = ring
        .iter()
        .map(|(file, text)| (file.as_str(), text.as_str()))
        .collect();
    let found = find_in(&[&files, &[("s.yaml", SOURCE)][..]].concat());
    assert!((20..=30_000).contains(&found.targets.len()));
    let one = object("one", "./two", &substitute("A: one"));
    let two = object("two", "./one", &substitute("A: '${A}'"));
    let found = places(&[("one/one.yaml", &one), ("two/two.yaml", &two)]);
    assert_eq!(found, ["one two", "two one"]);
}

#[test]
fn ten_thousand_parents_are_bounded_and_named() {
    let chain: Vec<(String, String)> = (0..10_000)
        .map(|number| {
            let path = format!("./n{}/${{A:=x}}", number + 1);
            let path = if number == 0 {
                "./n1/x".to_owned()
            } else {
                path
            };
            let file = format!("n{number}/x/object.yaml");
            (
                file,
                object(&format!("o{number}"), &path, &substitute("A: x")),
            )
        })
        .collect();
    let files: Vec<(&str, &str)> = chain
        .iter()
        .map(|(file, text)| (file.as_str(), text.as_str()))
        .collect();
    let found = find_in(&[&files, &[("s.yaml", SOURCE)][..]].concat());
    assert_eq!(found.targets.len(), 10_000);
    let here = found.here().count();
    assert!((100..=110).contains(&here), "{here}");
    let [unread] = found.unread.as_slice() else {
        panic!("{:?}", found.unread)
    };
    assert!(
        unread.message.contains("more than 100 deep"),
        "{}",
        unread.message
    );
}

#[test]
fn applications_of_argo_cd_are_filled_in_and_made_too() {
    let parent = object("all", "./all", &substitute("A: one"));
    let application = |path: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: web}}
spec: {{source: {{repoURL: {HERE}, path: '{path}'}}}}
"
        )
    };
    for (path, expected) in [
        ("x/${A}", "web x/one"),
        (
            "x/${NONE}",
            "web `x/${NONE}`: Flux Kustomization all (p.yaml:2) has no value for `NONE`",
        ),
        ("x/{{a}}", "web `x/{{a}}` is filled in elsewhere"),
    ] {
        let found = places(&[("p.yaml", &parent), ("all/a.yaml", &application(path))]);
        assert_eq!(found, [expected, "all all"], "{path}");
    }
    let set = |path: &str| {
        let made = application(path).replace('\n', "\n      ");
        format!(
            "apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {{name: set}}
spec:
  inputs: [{{a: one}}, {{a: two}}]
  resourcesTemplate: |
      {made}"
        )
    };
    assert_eq!(
        places(&[("set.yaml", &set("x/<< inputs.a >>"))]),
        ["web x/one", "web x/two"]
    );
    assert_eq!(
        places(&[("set.yaml", &set("x/<< inputs.a | upper >>"))]).len(),
        1
    );
}
