//! What people read: one transcript for each command in one rich world, in `tests/snapshots`.
//!
//! `UPDATE_EXPECT=1 cargo test --locked snapshots` writes all of them; the diff is then reviewed.

use std::fmt::Write as _;

use crate::support::{Repo, World, config_map};

/// A repository with overlays, a component, targets of two engines, an exception, and all sorts of remote references.
fn world() -> World {
    let world = World::acme();
    world.sandbox.builds();
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

#[track_caller]
fn assert_is(name: &str, said: &str) {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/snapshots");
    expect_file![format!("{directory}/{name}.txt")].assert_eq(said);
}

/// Runs commands one after the other, and compares what they say.
#[track_caller]
fn say(repo: &Repo, name: &str, lines: &[&str]) {
    assert_is(name, &transcript(repo, lines));
}

/// Runs commands one after the other, and returns what they say as a terminal would show it.
fn transcript(repo: &Repo, lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines {
        let args: Vec<&str> = line.split_whitespace().collect();
        let output = repo.run(&args);
        let _ = writeln!(text, "$ git kustomize-localize {line}");
        text += &output.shown();
        if output.status != 0 {
            let _ = writeln!(text, "[exit status {}]", output.status);
        }
        text.push('\n');
    }
    text
}

#[test]
fn check() {
    let world = world();
    broken(&world);
    say(&world.work, "check", &["check", "check -v apps/web", "check --quiet", "check --base HEAD^", "check nowhere"]);
    for format in ["json", "sarif", "github", "gitlab"] {
        let name = format!("check-{format}");
        say(&world.work, &name, &[&format!("check --format {format}")]);
    }
}

#[test]
fn init_and_status() {
    let world = world();
    broken(&world);
    say(
        &world.work,
        "init",
        &["", "init --dry-run", "init", "init --format json", "status -v", "status --format json"],
    );
}

#[test]
fn lock_and_update() {
    let world = world();
    say(
        &world.work,
        "lock",
        &["lock --dry-run", "lock", "lock", "update --dry-run", "tree", "tree apps/api --format json"],
    );
    world.work.commit("locked");
    let lib = Repo::new(&world.sandbox, world.sandbox.path("upstream/acme/lib"));
    lib.write("web/more.yaml", config_map("more"));
    lib.commit("Add more");
    lib.git(&["tag", "--force", "v1"]);
    broken(&world);
    say(
        &world.work,
        "update",
        &["verify", "update", "update https://github.com/acme/none", "lock", "lock --format json"],
    );
}

#[test]
fn copy() {
    let world = world();
    say(
        &world.work,
        "copy",
        &[
            "apps/web --no-verify",
            "apps/web --scope . --no-verify --dry-run",
            "apps/web --scope . --no-verify",
            "apps/web --scope . --no-verify",
            "apps/api ../copy --scope . --no-verify --no-commit --format json",
            "verify",
            "https://github.com/acme/lib//web?ref=v1 --no-verify --branch lib",
        ],
    );
    let (work, branch) = (&world.work, "localized/main");
    let message = work.git(&["log", "-1", "--format=%B", branch]);
    let lock = work.show(branch, "localized-web/kustomize-localize.lock");
    let written = format!("{message}\n---\n{lock}");
    let version = concat!("git-kustomize-localize ", env!("CARGO_PKG_VERSION"));
    let written = written.replace(version, "git-kustomize-localize …");
    assert_is("commit", &written);
}

#[test]
fn branch_and_vendor() {
    let world = world();
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    say(
        &world.work,
        "branch",
        &[
            "branch --no-verify --dry-run",
            "branch --no-verify",
            "branch --no-verify",
            "verify localized/main",
            "verify localized/main --format json",
        ],
    );
    say(&world.work, "vendor", &["vendor --no-verify apps/web", "vendor --no-verify apps/web", "check"]);
}

#[test]
fn targets_and_affected() {
    let world = world();
    let since = world.work.id("HEAD");
    world.commit(&[("base/map.yaml", &config_map("other"))]);
    let said = transcript(
        &world.work,
        &["targets", "targets --format json", &format!("affected {since}"), &format!("affected {since} --format json")],
    );
    let said = said.replace(&since, "SINCE").replace(&since[..12], "SINCE");
    assert_is("targets", &said);
}

#[test]
fn help() {
    let world = World::new();
    world.sandbox.builds();
    say(
        &world.work,
        "help",
        &[
            "",
            "-h",
            "check -h",
            "lock -h",
            "update -h",
            "verify -h",
            "tree -h",
            "targets -h",
            "affected -h",
            "hook -h",
            "explain remote-reference",
            "--no-such-option",
            "chekc",
        ],
    );
}
