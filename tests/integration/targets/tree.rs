//! `tree`: the reference graph, as people run it. What is drawn of which graph has tests beside the command.

use crate::support::{Project, Repo, Sandbox, config};

/// Two overlays, a base that both name, a component; some of it remote, some of it missing.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.commit_files(&[
        ("base/kustomization.yaml", "resources:\n- map.yaml\n- https://github.com/acme/app//deploy?ref=v1.2.0\n"),
        ("base/map.yaml", &config("base")),
        (
            "overlays/prod/kustomization.yaml",
            "resources: [../../base, gone.yaml, 'https://user:secret@files.example.com/x.yaml']\ncomponents: [../../tls]\n",
        ),
        ("overlays/dev/kustomization.yaml", "resources: [../../base]\n"),
        (
            "tls/kustomization.yaml",
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: ['git@github.com:acme/tls?ref=main']\n",
        ),
    ]);
    repo
}

#[test]
fn it_is_drawn_as_dependencies_are() {
    let sandbox = Sandbox::new();
    sandbox.repo("work").run_unchanged(&["tree"]).success().says(expect![[r#"
        no kustomization found
    "#]]);
    let repo = repository(&sandbox);
    repo.run_unchanged(&["tree"]).success().says(expect![[r#"
        overlays/dev
        └── base
            ├── base/map.yaml
            └── https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)

        overlays/prod
        ├── base (*)
        ├── overlays/prod/gone.yaml (missing)
        ├── https://files.example.com/x.yaml (not locked)
        └── tls (component)
            └── git@github.com:acme/tls?ref=main (branch, not locked)
    "#]]);
    repo.run_unchanged(&["tree", "--invert", "github.com/acme/app?ref=v1.2.0"]).success().says(expect![[r#"
        https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)
        └── base
            ├── overlays/dev
            └── overlays/prod
    "#]]);
    repo.run_unchanged(&["tree", "--format=json", "tls"]).success().says(expect![[r#"
        {
          "version": 1,
          "tool": {
            "name": "git-kustomize-localize",
            "version": "…"
          },
          "starts": [
            {
              "name": "tls",
              "kind": "kustomization",
              "component": true,
              "remote": null,
              "pin": null,
              "locked": null,
              "why": null
            }
          ],
          "references": [
            {
              "from": "tls",
              "to": {
                "name": "git@github.com:acme/tls?ref=main",
                "kind": "git",
                "component": false,
                "remote": null,
                "pin": "branch",
                "locked": null,
                "why": null
              },
              "file": "tls/kustomization.yaml",
              "line": 3,
              "column": 13,
              "field": "resources[0]",
              "reference": "git@github.com:acme/tls?ref=main"
            }
          ]
        }
    "#]]);
}

#[test]
fn options_select_what_is_shown() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let resources = |text: &str| repo.write("overlays/dev/kustomization.yaml", format!("resources: [{text}]\n"));
    resources("staged.yaml");
    repo.git(&["add", "overlays"]);
    resources("on-disk.yaml");
    for (args, expected) in [
        (&[][..], "overlays/dev\n└── overlays/dev/on-disk.yaml (missing)\n"),
        (
            &["--rev", "HEAD", "--invert", "github.com/acme"],
            "https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)\n└── base\n    └── overlays/dev\n",
        ),
    ] {
        let tree = repo.run_unchanged(&[&["tree", "overlays/dev"], args].concat());
        assert_eq!(tree.success().stdout, expected, "{args:?}");
    }
    // Paths are relative to where one stands.
    sandbox.run(&repo.path().join("overlays"), &["tree", "dev"]).success().says(expect![[r#"
        overlays/dev
        └── overlays/dev/on-disk.yaml (missing)
    "#]]);
}

#[test]
fn locked_and_localized_nodes_are_marked() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    work.run_unchanged(&["tree", "example"]).success().says(expect![[r#"
        example/overlay
        └── example/base
            ├── example/base/config.yaml
            └── https://example.com/acme/remote.git?ref=v1 (tag, locked <0>)
    "#]]);
    work.run(&["vendor"]).success();
    work.run_unchanged(&["tree", "example"]).success().says(expect![[r#"
        example/overlay
        └── example/base
            ├── example/base/config.yaml
            └── example/base/localized-files/example.com/acme/remote/v1 (from https://example.com/acme/remote.git?ref=v1)
                └── example/base/localized-files/example.com/acme/remote/v1/service.yaml (from https://example.com/acme/remote.git?ref=v1)
    "#]]);
    work.run_unchanged(&["tree", "--invert", "https://example.com/acme/remote.git"]).success().says(expect![[r#"
        example/base/localized-files/example.com/acme/remote/v1 (from https://example.com/acme/remote.git?ref=v1)
        └── example/base
            └── example/overlay

        example/base/localized-files/example.com/acme/remote/v1/service.yaml (from https://example.com/acme/remote.git?ref=v1)
        └── example/base/localized-files/example.com/acme/remote/v1 (from https://example.com/acme/remote.git?ref=v1) (*)
    "#]]);
}

#[test]
fn what_is_not_there_is_an_error() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.run(&["tree", "nowhere"]).fails(2).says(expect![[r#"
        error: no kustomization in `nowhere`
          hint: name a directory that contains a kustomization, or none, for all of them
    "#]]);
    repo.run(&["tree", "--rev", "nothing"]).fails(2).says(expect![[r#"
        error: unknown revision `nothing`
          hint: fetch it first, or name another one: git log --oneline --all
    "#]]);
    repo.run(&["tree", "--invert", "https://user:secret@example.com/other"]).fails(2).says(expect![[r#"
        error: nothing names `https://example.com/other`
          hint: list the remote references: git kustomize-localize tree
    "#]]);
    repo.run(&["tree", "https://token@example.com/acme/app"]).fails(2).says(expect![[r#"
        error: `https://example.com/acme/app` is not a directory of this repository
          hint: to see what references it: git kustomize-localize tree --invert https://example.com/acme/app
    "#]]);
    sandbox.run(&sandbox.path(""), &["tree"]).fails(2).says(expect![[r#"
        error: this is not a git repository
          hint: run it in a repository
    "#]]);
}

#[test]
fn a_deployed_root_is_shown_although_it_is_left_out() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let application = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: {repoURL: 'https://github.com/acme/fleet', path: apps/web}}\n";
    repo.commit_files(&[
        (".kustomize-localize", "include: [shown]\nrepository: [{url: 'https://github.com/acme/fleet'}]\n"),
        ("app.yaml", application),
        ("apps/web/kustomization.yaml", "resources: ['https://github.com/acme/app//deploy?ref=v1.2.0']\n"),
        ("apps/db/kustomization.yaml", "namePrefix: db-\n"),
        ("shown/kustomization.yaml", "namePrefix: shown-\n"),
    ]);
    repo.run_unchanged(&["tree"]).success().says(expect![[r#"
        shown

        apps/web
        └── https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)
    "#]]);
    repo.run_unchanged(&["tree", "--invert", "github.com/acme/app"]).success().says(expect![[r#"
        https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)
        └── apps/web
    "#]]);
    // It was there before.
    repo.write("apps/web/kustomization.yaml", "resources: ['https://github.com/acme/app//deploy?ref=v1.3.0']\n");
    repo.commit("Change");
    repo.run_unchanged(&["affected", "HEAD^"]).success().says(expect![[r#"
        apps/web: apps/web/kustomization.yaml
        Argo CD Application web (app.yaml:1): apps/web/kustomization.yaml
        1 of 2 kustomizations and 1 of 1 target since <0>
    "#]]);
}
