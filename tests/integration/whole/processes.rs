//! How many git processes a command starts, and how often it walks a tree: it takes longer to start a process than to
//! read a hundred kustomizations.

use std::fs;

use crate::support::{Repo, Sandbox, World, config_map};

/// Runs the program, and returns how many git processes it started, without those that git starts itself, and how many
/// walks.
fn started(sandbox: &Sandbox, repo: &Repo, args: &[&str]) -> (usize, usize) {
    let [trace, walks] = [sandbox.path("trace"), sandbox.path("walks")];
    for file in [&trace, &walks] {
        // git is also started by the test.
        let _ = fs::remove_file(file);
    }
    sandbox.set("GIT_TRACE2_EVENT", &trace);
    sandbox.set("KUSTOMIZE_LOCALIZE_WALKS", &walks);
    repo.run_as_is(args).success();
    let events = fs::read_to_string(&trace).unwrap();
    let walked = fs::read_to_string(&walks).unwrap_or_default().lines().count();
    let starts = events.lines().filter(|line| line.contains("\"event\":\"start\""));
    let own = starts.filter(|line| {
        let id = line.split("\"sid\":\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        !id.contains('/')
    });
    (own.count(), walked)
}

#[test]
fn a_command_starts_as_many_processes_for_sixty_references_as_for_one() {
    for references in [1, 60] {
        let world = World::new();
        world.sandbox.builds();
        let files: Vec<(String, String)> = (0..references)
            .flat_map(|number| {
                let root = format!("r{number}/kustomization.yaml");
                [(root, "resources: [map.yaml]\n".to_owned()), (format!("r{number}/map.yaml"), config_map("map"))]
            })
            .collect();
        let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
        world.upstream_of("acme/lib", &files);
        let listed: Vec<String> =
            (0..references).map(|number| format!("'https://github.com/acme/lib//r{number}?ref=v1'")).collect();
        let root = format!("namePrefix: a-\nresources: [{}]\n", listed.join(", "));
        world.commit(&[
            ("app/kustomization.yaml", &root),
            ("other/kustomization.yaml", "resources: [map.yaml]\n"),
            ("other/map.yaml", &config_map("x")),
        ]);
        let started = |args: &[&str]| (args.join(" "), started(&world.sandbox, &world.work, args));
        let mut counts = vec![started(&["lock"])];
        world.work.commit("lock");
        for args in [
            ["check"].as_slice(),
            &["check", "--staged"],
            &["check", "--rev", "HEAD"],
            &["targets"],
            &["tree"],
            &["affected", "HEAD"],
            &["branch", "--no-verify"],
            &["branch", "--no-verify"],
            &["other", "--branch", "copies", "--no-verify"],
            &["other", "../copy", "--no-commit", "--no-verify"],
        ] {
            counts.push(started(args));
        }
        // `branch`: the source, and the result.
        let counts: Vec<_> =
            counts.iter().map(|(args, (processes, walks))| (args.as_str(), *processes, *walks)).collect();
        assert_eq!(
            counts,
            [
                ("lock", 5, 1),
                ("check", 2, 1),
                ("check --staged", 2, 1),
                ("check --rev HEAD", 2, 1),
                ("targets", 2, 1),
                ("tree", 2, 1),
                ("affected HEAD", 3, 2),
                ("branch --no-verify", 9, 2),
                ("branch --no-verify", 6, 0),
                ("other --branch copies --no-verify", 9, 2),
                ("other ../copy --no-commit --no-verify", 2, 2),
            ],
            "{references}"
        );
    }
}

/// What Flux and Argo CD deploy; an overlay patches one of them.
const OBJECTS: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: x}
spec: {interval: 1h, url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: web, namespace: x}
spec: {interval: 1h, path: ./web, prune: true, sourceRef: {kind: GitRepository, name: fleet}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: x}
spec: {source: {path: web, repoURL: 'https://github.com/acme/fleet'}, destination: {namespace: x}, project: default}
";

const PATCH: &str = "resources: [../base]
patches:
- target: {kind: Application}
  patch: |-
    - {op: replace, path: /spec/source/path, value: app}
";

/// What is deployed, patched or left out does not lead to another walk of a tree.
#[test]
fn a_tree_is_walked_once_whatever_is_deployed_and_left_out() {
    let world = World::new();
    world.sandbox.builds();
    let map = config_map("map");
    let lib =
        world.upstream_of("acme/lib", &[("r/kustomization.yaml", "resources: [map.yaml]\n"), ("r/map.yaml", &map)]);
    lib.write("r/map.yaml", config_map("new"));
    lib.commit("second");
    lib.git(&["tag", "v2"]);
    let config = "exclude: [tmpl]\nrules: {not-built: error}\nrepository: [{url: 'https://github.com/acme/fleet'}]\n";
    world.commit(&[
        (".kustomize-localize", config),
        ("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//r?ref=v1']\n"),
        ("web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("web/map.yaml", &map),
        ("tmpl/kustomization.yaml", "resources: [../gone, 'https://github.com/acme/gone?ref=v1']\n"),
        ("clusters/base/kustomization.yaml", "resources: [objects.yaml]\n"),
        ("clusters/base/objects.yaml", OBJECTS),
        ("clusters/prod/kustomization.yaml", PATCH),
    ]);
    let walks = |args: &[&str]| (args.join(" "), started(&world.sandbox, &world.work, args).1);
    let mut counts = vec![walks(&["lock"])];
    world.work.commit("lock");
    world.commit(&[("web/map.yaml", &config_map("other"))]);
    for args in [
        ["check"].as_slice(),
        &["check", "--base", "HEAD~1"],
        &["check", "--build"],
        &["check", "--base", "HEAD~1", "--build"],
        &["tree"],
        &["targets"],
        &["status"],
        &["affected", "HEAD~1"],
        &["diff", "HEAD~1"],
        &["branch"],
        &["update", "https://github.com/acme/lib", "--to", "v2", "--diff", "--dry-run"],
    ] {
        counts.push(walks(args));
    }
    let counts: Vec<_> = counts.iter().map(|(args, walks)| (args.as_str(), *walks)).collect();
    assert_eq!(
        counts,
        [
            ("lock", 1),
            ("check", 1),
            ("check --base HEAD~1", 2),
            // What is localized is another tree; each round of builds has its own.
            ("check --build", 2),
            ("check --base HEAD~1 --build", 4),
            ("tree", 1),
            ("targets", 1),
            ("status", 1),
            ("affected HEAD~1", 2),
            ("diff HEAD~1", 2),
            // The source, and what is localized.
            ("branch", 2),
            ("update https://github.com/acme/lib --to v2 --diff --dry-run", 3),
        ]
    );
}
