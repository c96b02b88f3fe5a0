//! `check` green on a commit means that `branch` is done from it, and a red one that it is not: one severity decides
//! both.

use crate::support::{Repo, World, config_map, rows};

const HERE: &str = "https://git.example.com/acme/fleet";

/// Commits the files, and returns whether both commands say yes; they must agree.
#[track_caller]
fn passes(work: &Repo, what: &str) -> bool {
    work.commit(what);
    let gate = work.run_unchanged(&["check", "--rev", "HEAD"]);
    let job = work.run_as_is(&["branch", "--no-verify"]);
    assert_eq!(gate.status == 0, job.status == 0, "{what}: {gate:?} {job:?}");
    assert!(gate.status < 2 && job.status < 2, "{what}: {gate:?} {job:?}");
    // Another run begins anew.
    work.try_git(&["update-ref", "-d", "refs/heads/localized/main"]);
    gate.status == 0
}

/// Returns a repository with a locked reference, whose remote is [`HERE`].
fn world() -> World {
    let world = World::acme();
    world.work.git(&["remote", "add", "origin", HERE]);
    world.commit(&[
        ("apps/web/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
        ("apps/own/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/own/map.yaml", &config_map("own")),
    ]);
    world.work.run(&["lock"]).success();
    world
}

fn application(name: &str, source: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec:\n  source: {{repoURL: {HERE}, {source}}}\n"
    )
}

#[test]
fn what_the_gate_says_is_what_the_job_does() {
    let gone = "resources: [map.yaml, 'https://github.com/acme/none?ref=v1']\n";
    let allow = |reason: &str| format!("allow: [{{url: 'https://github.com/acme/none?ref=v1', reason: {reason}}}]\n");
    let here = format!("repository: [{{url: '{HERE}'}}]\n");
    let all = [
        ("nothing", vec![], String::new(), true),
        (
            "untracked-path",
            vec![
                (".gitignore", "secret.env\n".to_owned()),
                ("apps/own/kustomization.yaml", "secretGenerator: [{name: s, envs: [secret.env]}]\n".to_owned()),
            ],
            String::new(),
            true,
        ),
        ("missing-target", vec![("argo/a.yaml", application("a", "path: apps/gone"))], here.clone(), false),
        (
            "options for a kustomization that is not there",
            vec![
                ("argo/a.yaml", application("a", "path: plain, kustomize: {namePrefix: a-}")),
                ("plain/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n".to_owned()),
            ],
            String::new(),
            false,
        ),
        (
            "missing-target that nothing reaches",
            vec![
                ("argo/a.yaml", application("a", "path: old")),
                ("old/kustomization.yaml", "resources: [b.yaml]\n".to_owned()),
                ("old/b.yaml", application("b", "path: apps/own")),
                ("archive/c.yaml", application("c", "path: apps/gone")),
            ],
            String::new(),
            true,
        ),
        (
            "unknown-target",
            vec![("argo/a.yaml", application("a", "path: apps/own, kustomize: {components: ['${part}']}"))],
            String::new(),
            true,
        ),
        (
            "a reference that is not locked",
            vec![("apps/own/kustomization.yaml", gone.to_owned())],
            String::new(),
            false,
        ),
        ("a reason", vec![("apps/own/kustomization.yaml", gone.to_owned())], allow("gone upstream"), true),
        ("a reason that says TODO", vec![("apps/own/kustomization.yaml", gone.to_owned())], allow("TODO"), true),
        (
            "deployed-remote",
            vec![("argo/a.yaml", application("a", "path: apps/web, targetRevision: main"))],
            String::new(),
            true,
        ),
    ];
    for (what, files, config, expected) in rows(all, 2) {
        let world = world();
        for (path, text) in &files {
            world.work.write(path, text);
        }
        world.work.write(".kustomize-localize", &config);
        assert_eq!(passes(&world.work, what), expected, "{what}");
        // One that makes errors of all warnings is one for both.
        let is_clean = ["nothing", "a reason"].contains(&what);
        world.work.write(".kustomize-localize", format!("rules: {{'*': error, deployed-remote: warning}}\n{config}"));
        let is_warned = expected && !is_clean && what != "deployed-remote";
        assert_eq!(passes(&world.work, &format!("{what}, all warnings are errors")), expected && !is_warned, "{what}");
    }
}

#[test]
fn what_is_deployed_never_keeps_the_branch_from_being_made() {
    let world = world();
    world.work.write("argo/a.yaml", application("a", "path: apps/web, targetRevision: main"));
    world.work.decide("rules: {deployed-remote: error}\n");
    world.work.run(&["check"]).fails(1).says(expect![[r#"
        error[deployed-remote]: Argo CD Application a (argo/a.yaml:1) deploys `apps/web` from `main`, which is not localized: its build fetches 1 remote reference
         --> argo/a.yaml:5:63
          |
        5 |   source: {repoURL: https://git.example.com/acme/fleet, path: apps/web, targetRevision: main}
          |                                                               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: deploy a localized branch: git kustomize-localize explain deployed-remote

        for more: git kustomize-localize explain deployed-remote
        checked 2 kustomizations with 2 references in the working tree: 1 error
    "#]]);
    world.work.run_as_is(&["branch", "--no-verify"]).success();
}
