//! What people read: one transcript for each command in one rich world, in `tests/snapshots`.
//!
//! `UPDATE_EXPECT=1 cargo test --locked snapshots` writes all of them; the diff is then reviewed.

use std::fmt::Write as _;

use expect_test::expect_file;

use crate::support::{Repo, World, config_map};

/// A repository with overlays, a component, targets of two engines, an exception, and all sorts of remote references.
fn world() -> World {
    let world = World::acme();
    world.commit(&[
        (
            ".kustomize-localize",
            "allow:\n- {url: github.com/acme/extra, refs: branch, reason: ours}\n",
        ),
        (
            "apps/web/kustomization.yaml",
            "resources:\n- ../../base\n- https://github.com/acme/lib//web?ref=v1 # upstream\n",
        ),
        (
            "apps/api/kustomization.yaml",
            "resources: [../../base]\ncomponents: ['https://github.com/acme/lib//part?ref=v1']\n",
        ),
        (
            "base/kustomization.yaml",
            "resources: [map.yaml, 'https://files.example.com/v1/app.yaml']\n",
        ),
        ("base/map.yaml", &config_map("base")),
        (
            "clusters/web.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\nspec:\n  source: {repoURL: 'https://github.com/acme/ours', path: apps/web, targetRevision: main}\n  destination: {namespace: web}\n",
        ),
        (
            "clusters/api.yaml",
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: api, namespace: flux-system}\nspec:\n  path: ./apps/api\n  sourceRef: {kind: GitRepository, name: ours}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: ours, namespace: flux-system}\nspec: {url: 'https://github.com/acme/ours', ref: {branch: main}}\n",
        ),
    ]);
    let ours = "https://github.com/acme/ours";
    world.work.git(&["remote", "add", "origin", ours]);
    world
}

/// Adds what `check` has something to say about.
fn broken(world: &World) {
    world.commit(&[
        (
            "apps/jobs/kustomization.yaml",
            "# what runs at night\nresources:\n- https://github.com/acme/lib//other\n- ../../../outside\n- gone.yaml\ngenerators:\n- fn.yaml\nresource: [x]\n",
        ),
        (
            "apps/jobs/fn.yaml",
            "apiVersion: a/v1\nkind: Gen\nmetadata:\n  name: gen\n  annotations:\n    config.kubernetes.io/function: |\n      container: {image: 'ghcr.io/acme/gen:v1'}\n",
        ),
        (
            "apps/charts/kustomization.yaml",
            "helmCharts:\n- {name: redis, repo: 'https://charts.example.com', releaseName: r}\n",
        ),
    ]);
}

/// Runs commands one after the other, and returns what they say as a terminal would show it.
fn transcript(repo: &Repo, lines: &[&[&str]]) -> String {
    let mut text = String::new();
    for args in lines {
        let output = repo.run(args);
        let shown = args.join(" ");
        let _ = writeln!(text, "$ git kustomize-localize {shown}");
        text += &output.stdout;
        text += &output.stderr;
        if output.status != 0 {
            let _ = writeln!(text, "[exit status {}]", output.status);
        }
        text.push('\n');
    }
    let top = repo.path().parent().unwrap().display().to_string();
    let version = concat!("\"version\": \"", env!("CARGO_PKG_VERSION"), "\"");
    text.replace(&top, "/home/me")
        .replace(version, "\"version\": \"…\"")
}

#[test]
fn check() {
    let world = world();
    broken(&world);
    let said = transcript(
        &world.work,
        &[
            &["check"],
            &["check", "-v", "apps/web"],
            &["check", "--quiet"],
            &["check", "--base", "HEAD^"],
            &["check", "nowhere"],
        ],
    );
    expect_file!["../../snapshots/check.txt"].assert_eq(&said);
    for format in ["json", "sarif", "github", "gitlab"] {
        let said = transcript(&world.work, &[&["check", "--format", format]]);
        let file = format!(
            "{}/tests/snapshots/check-{format}.txt",
            env!("CARGO_MANIFEST_DIR")
        );
        expect_file![file].assert_eq(&said);
    }
}

#[test]
fn lock_and_update() {
    let world = world();
    let said = transcript(
        &world.work,
        &[
            &["lock", "--dry-run"],
            &["lock"],
            &["lock"],
            &["update", "--dry-run"],
            &["tree"],
            &["tree", "apps/api", "--format", "json"],
        ],
    );
    expect_file!["../../snapshots/lock.txt"].assert_eq(&said);
    world.work.commit("locked");
    let lib = Repo::new(&world.sandbox, world.sandbox.path("upstream/acme/lib"));
    lib.write("web/more.yaml", config_map("more"));
    lib.commit("Add more");
    lib.git(&["tag", "--force", "v1"]);
    broken(&world);
    let said = transcript(
        &world.work,
        &[
            &["verify"],
            &["update"],
            &["update", "https://github.com/acme/none"],
            &["lock"],
            &["lock", "--format", "json"],
        ],
    );
    expect_file!["../../snapshots/update.txt"].assert_eq(&said);
}

#[test]
fn copy() {
    let world = world();
    let said = transcript(
        &world.work,
        &[
            &["apps/web", "--no-verify"],
            &["apps/web", "--scope", ".", "--no-verify", "--dry-run"],
            &["apps/web", "--scope", ".", "--no-verify"],
            &["apps/web", "--scope", ".", "--no-verify"],
            &[
                "apps/api",
                "../copy",
                "--scope",
                ".",
                "--no-verify",
                "--no-commit",
                "--format",
                "json",
            ],
            &["verify"],
            &[
                "https://github.com/acme/lib//web?ref=v1",
                "--no-verify",
                "--branch",
                "lib",
            ],
        ],
    );
    expect_file!["../../snapshots/copy.txt"].assert_eq(&said);
    let message = world
        .work
        .git(&["log", "-1", "--format=%B", "localized/main"]);
    let lock = world
        .work
        .show("localized/main", "localized-web/kustomize-localize.lock");
    let written = format!("{message}\n---\n{lock}");
    let version = concat!("git-kustomize-localize ", env!("CARGO_PKG_VERSION"));
    let written = written.replace(version, "git-kustomize-localize …");
    expect_file!["../../snapshots/commit.txt"].assert_eq(&written);
}

#[test]
fn branch_and_vendor() {
    let world = world();
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    let said = transcript(
        &world.work,
        &[
            &["--in-place", "--no-verify", "--dry-run"],
            &["--in-place", "--no-verify"],
            &["--in-place", "--no-verify"],
            &["verify", "localized/main"],
            &["verify", "localized/main", "--format", "json"],
        ],
    );
    expect_file!["../../snapshots/branch.txt"].assert_eq(&said);
    let said = transcript(
        &world.work,
        &[
            &["--in-place", "--no-commit", "--no-verify", "apps/web"],
            &["--in-place", "--no-commit", "--no-verify", "apps/web"],
            &["check", "--working-tree"],
        ],
    );
    expect_file!["../../snapshots/vendor.txt"].assert_eq(&said);
}

#[test]
fn targets_and_affected() {
    let world = world();
    let since = world.work.id("HEAD");
    world.commit(&[("base/map.yaml", &config_map("other"))]);
    let said = transcript(
        &world.work,
        &[
            &["targets"],
            &["targets", "--format", "json"],
            &["affected", "--since", &since],
            &["affected", "--since", &since, "--format", "json"],
        ],
    );
    let said = said.replace(&since, "SINCE").replace(&since[..12], "SINCE");
    expect_file!["../../snapshots/targets.txt"].assert_eq(&said);
}

#[test]
fn help() {
    let world = World::new();
    let said = transcript(
        &world.work,
        &[
            &[],
            &["-h"],
            &["check", "-h"],
            &["lock", "-h"],
            &["update", "-h"],
            &["verify", "-h"],
            &["tree", "-h"],
            &["targets", "-h"],
            &["affected", "-h"],
            &["hook", "-h"],
            &["explain", "remote-reference"],
            &["--no-such-option"],
            &["chekc"],
        ],
    );
    expect_file!["../../snapshots/help.txt"].assert_eq(&said);
}
