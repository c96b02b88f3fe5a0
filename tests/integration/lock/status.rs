//! `status`: what is here, and the next command.

use crate::support::{Output, Running, World};

fn world() -> World {
    let world = World::acme();
    world.commit(&[
        ("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
        ("plain/kustomization.yaml", "namePrefix: a-\n"),
        (".kustomize-localize", "targets:\n- {path: app, engine: kustomize}\n- {path: plain, engine: kustomize}\n"),
        (
            "other.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: other}\nspec:\n  source: {repoURL: 'https://github.com/acme/other', path: x}\n",
        ),
    ]);
    world
}

/// Runs the program without arguments, which changes nothing, and compares the branch and the next command.
#[track_caller]
fn is(world: &World, branch: &str, next: &str) -> Output {
    let before = world.work.state();
    let requests = world.server.requests().len();
    let output = world.work.run_as_is(&[]);
    before.assert_same(&world.work.state());
    assert_eq!(world.server.requests().len(), requests);
    let end = format!("{branch}\nnext: {next}\n");
    output.success().stdout_has(&end);
    assert_eq!(world.work.run_as_is(&["status"]).success().stdout, output.stdout);
    let json = world.work.run_as_is(&["--format", "json"]);
    json.success().stdout_has(&format!("\"next\": {}\n", serde_json::to_string(next).unwrap()));
    output
}

#[test]
fn each_state_of_the_branch_has_its_next_command() {
    let world = world();
    is(&world, "branch localized/main: missing", "git kustomize-localize init").says(expect![[r#"
        2 kustomizations, 1 remote reference: 0 locked, 0 allowed, 1 neither
        check: 1 error, 0 warnings
        3 targets: 1 localized, 1 remote, 1 unknown
          remote     .kustomize-localize:2: kustomize: https://github.com/acme/lib//web?ref=v1: tag, not locked
          unknown    other.yaml:1: Argo CD Application other: external: it is in https://github.com/acme/other
          localized  .kustomize-localize:3: kustomize
        branch localized/main: missing
        next: git kustomize-localize init
    "#]]);
    world.work.run_as_is(&["lock"]).success();
    let commit = "git add -f -- :/kustomize-localize.lock && git commit -m 'Lock remote references'";
    is(&world, "branch localized/main: missing", commit).stdout_has("1 locked, 0 allowed, 0 neither\n");
    world.work.commit("lock");
    is(&world, "branch localized/main: missing", "git kustomize-localize branch");
    world.work.run_as_is(&["branch"]).success();
    is(&world, "branch localized/main: up to date", "git kustomize-localize verify localized/main");
    world.work.commit("one");
    is(&world, "branch localized/main: 1 commit behind", "git kustomize-localize branch");
    world.work.commit("two");
    is(&world, "branch localized/main: 2 commits behind", "git kustomize-localize branch");
    world.work.git(&["switch", "--quiet", "localized/main"]);
    is(&world, "branch: unknown: `localized/main` is a localized branch, not a source", "git switch main");
    world.work.write("app/kustomization.yaml", "namePrefix: b-\n");
    world.work.commit("by hand");
    world.work.git(&["switch", "--quiet", "main"]);
    let edited = "branch localized/main: edited by hand: app/kustomization.yaml";
    is(&world, edited, "git kustomize-localize verify localized/main");
}

#[test]
fn a_branch_that_is_behind_its_remote_says_how_to_follow_it() {
    let world = world();
    world.work.lock();
    let origin = world.sandbox.path("origin.git");
    world.work.git(&["clone", "-q", "--bare", ".", origin.to_str().unwrap()]);
    world.work.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
    world.work.run_as_is(&["branch", "--push"]).success();
    let old = world.work.id("localized/main");
    world.work.commit("one");
    world.work.run_as_is(&["branch", "--push"]).success();
    world.work.git(&["update-ref", "refs/heads/localized/main", &old]);
    let next = "git fetch . refs/remotes/origin/localized/main:refs/heads/localized/main";
    is(&world, "branch: unknown: branch `localized/main` is behind `origin/localized/main`", next);
    // A clone without the branch takes that of the remote for it.
    world.work.git(&["branch", "-D", "localized/main"]);
    is(&world, "branch localized/main: up to date", "git kustomize-localize verify localized/main");
}

#[test]
fn it_works_where_there_is_little_to_see() {
    let world = World::acme();
    let empty = is(&world, "branch: missing", "git kustomize-localize help");
    empty.stdout_has("no kustomization\n");
    world.work.write("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n");
    is(&world, "branch: missing", "git kustomize-localize init");
    world.work.run_as_is(&["init"]).success().stdout_has("next: git add -f -- :/app/kustomization.yaml ");

    let bare = |name: &str| {
        let path = world.sandbox.path(name);
        let output = world.sandbox.run(&path, &[]);
        output.success();
        world.sandbox.run(&path, &["status", "--format", "json"]).success();
        output
    };
    world.sandbox.git(&world.sandbox.path(""), &["init", "-q", "--bare", "-b", "main", "empty.git"]);
    bare("empty.git").stdout_has("no kustomization\nbranch: missing\nnext: git kustomize-localize help\n");
    world.work.commit("files");
    world.work.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    bare("bare.git").says(expect![[r#"
        1 kustomization, 1 remote reference: 1 locked, 0 allowed, 0 neither
        branch localized/main: missing
        next: git kustomize-localize branch
    "#]]);
    world.sandbox.run(&world.sandbox.path("bare.git"), &["branch"]).success();
    bare("bare.git").stdout_has("branch localized/main: up to date\n");

    let nowhere = world.sandbox.path("nowhere");
    std::fs::create_dir(&nowhere).unwrap();
    for args in [&[][..], &["status"]] {
        world.sandbox.run(&nowhere, args).fails(2).stderr_has("hint: run it in a repository");
    }
}

#[test]
fn what_cannot_be_looked_at_is_counted() {
    let world = world();
    world.work.write("kustomize-localize.lock", "version: 1\nremotes: 5\n");
    is(&world, "branch localized/main: missing", "git kustomize-localize check").stdout_has("1 could not be checked");
    world.work.write(".kustomize-localize", "unknown: x\n");
    world.work.run_as_is(&[]).fails(2).stderr_has(".kustomize-localize:1");
}

#[test]
fn what_vendor_wrote_is_committed_by_the_next_command() {
    let world = world();
    let next = |expected: &str| {
        let output = is(&world, "branch localized/main: missing", expected);
        let script = output.stdout.rsplit_once("next: ").unwrap().1;
        let mut shell = world.sandbox.command("sh", world.work.path());
        Running::start(shell.args(["-c", script])).wait().success();
        assert_eq!(world.work.git(&["status", "--porcelain"]), "", "after {expected}");
        world.work.run_as_is(&["check", "--rev", "HEAD"]).success();
    };
    let all = "git add -f -- :/app/kustomization.yaml :/app/localized-files :/kustomize-localize.lock";
    world.work.run_as_is(&["vendor"]).success();
    next(&format!("{all} && git commit -m 'Lock remote references'"));
    // What it removes is of it, too.
    world.work.write("app/kustomization.yaml", "namePrefix: b-\n");
    world.work.commit("without");
    world.work.run_as_is(&["vendor"]).success();
    assert!(!world.work.path().join("app/localized-files").exists());
    next("git add -f -- :/app/localized-files :/kustomize-localize.lock && git commit -m 'Lock remote references'");
    world.work.write("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n");
    world.work.commit("with");
    world.work.run_as_is(&["vendor"]).success();
    world.work.git(&["add", "-A"]);
    next(&format!("{all} && git commit -m 'Lock remote references'"));
    // What others edit has nothing to do with it.
    world.work.write("plain/kustomization.yaml", "namePrefix: c-\n");
    is(&world, "branch localized/main: missing", "git kustomize-localize check");
}
