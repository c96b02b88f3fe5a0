//! `status`: what is here, and the next command.

use expect_test::expect;

use crate::support::{Output, Repo, Running, Sandbox, World};

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

/// Runs the program without arguments, which changes nothing, and compares the branch and the next command; empty where
/// there is nothing to do.
#[track_caller]
fn is(world: &World, branch: &str, next: &str) -> Output {
    let before = world.work.state();
    let requests = world.server.requests().len();
    let output = world.work.run_as_is(&[]);
    before.assert_same(&world.work.state());
    assert_eq!(world.server.requests().len(), requests);
    let (line, value) = match next {
        "" => ("nothing to do".to_owned(), "null".to_owned()),
        next => (format!("next: {next}"), serde_json::to_string(next).unwrap()),
    };
    output.success().stdout_has(&format!("{branch}\n{line}\n"));
    assert_eq!(world.work.run_as_is(&["status"]).success().stdout, output.stdout);
    let json = world.work.run_as_is(&["--format", "json"]);
    json.success().stdout_has(&format!("\"next\": {value}\n"));
    output
}

/// Runs a printed command.
fn shell(repo: &Repo, script: &str) -> Output {
    Running::start(repo.sandbox().command("sh", repo.path()).args(["-c", script])).wait()
}

/// Runs what is printed as the next command, one after the other, until there is nothing to do. Returns these.
#[track_caller]
fn walk(repo: &Repo) -> Vec<String> {
    let mut all: Vec<String> = Vec::new();
    loop {
        let status = repo.run_as_is(&[]);
        let Some((_, next)) = status.stdout.trim_end().split_once("\nnext: ") else {
            status.success().stdout_has("\nnothing to do\n");
            return all;
        };
        assert!(!all.contains(&next.to_owned()), "the same again: {next} after {all:?}");
        shell(repo, next).success();
        all.push(next.to_owned());
    }
}

#[test]
fn targets_are_told_without_a_kustomization() {
    let world = World::acme();
    let object = |name: &str, path: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec:\n  source: {{repoURL: 'https://github.com/acme/other', path: {path}}}\n"
        )
    };
    world.commit(&[("apps/other.yaml", &object("other", "x"))]);
    world.work.run_as_is(&[]).success().says(expect![[r#"
        no kustomization
        1 target: 0 localized, 0 remote, 1 external, 0 unknown
          external   apps/other.yaml:1: Argo CD Application other: it is in https://github.com/acme/other
        branch localized/main: missing
        next: git kustomize-localize help
    "#]]);
}

#[test]
fn the_printed_commands_lead_to_where_nothing_is_to_do() {
    let world = World::acme();
    world.sandbox.offer_itself();
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n")]);
    let repo = &world.work;
    let origin = world.sandbox.path("origin.git");
    let origin = origin.to_str().unwrap();
    repo.git(&["clone", "-q", "--bare", ".", origin]);
    repo.git(&["remote", "add", "origin", origin]);
    // Nothing here builds, which is said.
    let [init, lock, branch, push, overwrite] = [
        "git kustomize-localize init",
        "git add -f -- :/kustomize-localize.lock && git commit -m 'Lock remote references'",
        "git kustomize-localize branch --no-verify",
        "git kustomize-localize branch --push --no-verify",
        "git kustomize-localize branch --overwrite --no-verify",
    ];
    assert_eq!(walk(repo), [init, lock, branch, push]);
    repo.commit("behind");
    assert_eq!(walk(repo), [branch, push]);
    let tip = repo.id("localized/main");
    let tree = repo.git(&["write-tree"]);
    let edited = repo.git(&["commit-tree", "-p", &tip, "-m", "by hand", tree.trim()]);
    repo.git(&["update-ref", "refs/heads/localized/main", edited.trim()]);
    is(
        &world,
        "branch localized/main: edited by hand, which --overwrite discards: app/kustomization.yaml, app/localized-files, kustomize-localize.lock",
        overwrite,
    );
    assert_eq!(walk(repo), [overwrite, push]);
    repo.git(&["push", "-q", "origin", "main"]);
    // A clone of which little is there.
    let clone = |args: &[&str], name: &str| {
        let url = format!("file://{origin}");
        repo.git(&[&["clone", "-q"], args, &[&url, &format!("../{name}")]].concat());
        Repo::new(&world.sandbox, world.sandbox.path(name))
    };
    let shallow = clone(&["--depth=1", "--no-single-branch"], "shallow");
    assert_eq!(walk(&shallow), crate::support::NONE);
    shallow.commit("more");
    assert_eq!(walk(&shallow), [branch, push]);
    repo.git(&["fetch", "-q"]);
    let sparse = clone(&["--sparse"], "sparse");
    sparse.commit("less");
    assert_eq!(walk(&sparse), [branch, push]);
    sparse.git(&["switch", "-q", "--detach"]);
    sparse.run_as_is(&[]).success().says(expect![[r#"
        1 kustomization, 1 remote reference (1 locked)
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        branch: unknown: cannot derive the branch to commit to: the source commit is not named by a local branch
        next: git kustomize-localize branch --no-verify
    "#]]);
    sparse.write("kustomize-localize.lock", "version: 1\nnone: 1\n");
    sparse.run_as_is(&[]).success().says(expect![[r#"
        1 kustomization, remote references unknown
        check: 0 errors, 0 warnings, 1 could not be checked
        branch: unknown: cannot derive the branch to commit to: the source commit is not named by a local branch
        next: git kustomize-localize check
    "#]]);
}

#[test]
fn each_state_of_the_branch_has_its_next_command() {
    let world = world();
    is(&world, "branch localized/main: missing", "git kustomize-localize init").says(expect![[r#"
        2 kustomizations, 1 remote reference (1 not locked)
        check: 1 error, 0 warnings
        3 targets: 1 localized, 1 remote, 1 external, 0 unknown
          remote     .kustomize-localize:2: kustomize target app: https://github.com/acme/lib//web?ref=v1: tag, not locked
          external   other.yaml:1: Argo CD Application other: it is in https://github.com/acme/other
          localized  .kustomize-localize:3: kustomize target plain
        branch localized/main: missing
        next: git kustomize-localize init
    "#]]);
    world.work.run_as_is(&["lock"]).success();
    let commit = "git add -f -- :/kustomize-localize.lock && git commit -m 'Lock remote references'";
    is(&world, "branch localized/main: missing", commit).says(expect![[r#"
        2 kustomizations, 1 remote reference (1 locked)
        check: 0 errors, 1 warning
        3 targets: 1 localized, 1 remote, 1 external, 0 unknown
          remote     .kustomize-localize:2: kustomize target app: https://github.com/acme/lib//web?ref=v1: tag, locked <0>
          external   other.yaml:1: Argo CD Application other: it is in https://github.com/acme/other
          localized  .kustomize-localize:3: kustomize target plain
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        branch localized/main: missing
        next: git add -f -- :/kustomize-localize.lock && git commit -m 'Lock remote references'
    "#]]);
    world.work.commit("lock");
    is(&world, "branch localized/main: missing", "git kustomize-localize branch --no-verify");
    world.work.run_as_is(&["branch"]).success();
    is(&world, "branch localized/main: up to date", "");
    world.work.commit("one");
    is(&world, "branch localized/main: 1 commit behind", "git kustomize-localize branch --no-verify");
    world.work.commit("two");
    is(&world, "branch localized/main: 2 commits behind", "git kustomize-localize branch --no-verify");
    world.work.git(&["switch", "--quiet", "localized/main"]);
    is(&world, "branch: unknown: `localized/main` is a localized branch, not a source", "git switch main");
    world.work.write("app/kustomization.yaml", "namePrefix: b-\n");
    world.work.commit("by hand");
    world.work.git(&["switch", "--quiet", "main"]);
    let edited = "branch localized/main: edited by hand, which --overwrite discards: app/kustomization.yaml";
    is(&world, edited, "git kustomize-localize branch --overwrite --no-verify");
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
    is(&world, "branch localized/main: up to date", "");
}

#[test]
fn it_works_where_there_is_little_to_see() {
    let world = World::acme();
    let empty = is(&world, "branch: missing", "git kustomize-localize help");
    empty.says(expect![[r#"
        no kustomization
        branch: missing
        next: git kustomize-localize help
    "#]]);
    world.work.write("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n");
    is(&world, "branch: missing", "git kustomize-localize init");
    world.work.run_as_is(&["init"]).success().says(expect![[r#"
        wrote kustomize-localize.lock
          added https://github.com/acme/deep?ref=v1 <0>
          added https://github.com/acme/lib?ref=v1 <1>
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        next: git add -f -- :/app/kustomization.yaml :/kustomize-localize.lock && git commit -m 'Lock remote references'
    "#]]);

    let bare = |name: &str| {
        let path = world.sandbox.path(name);
        let output = world.sandbox.run(&path, &[]);
        output.success();
        world.sandbox.run(&path, &["status", "--format", "json"]).success();
        output
    };
    world.sandbox.git(&world.sandbox.path(""), &["init", "-q", "--bare", "-b", "main", "empty.git"]);
    bare("empty.git").says(expect![[r#"
        no kustomization
        branch: missing
        next: git kustomize-localize help
    "#]]);
    world.work.commit("files");
    world.work.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    bare("bare.git").says(expect![[r#"
        1 kustomization, 1 remote reference (1 locked)
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        branch localized/main: missing
        next: git kustomize-localize branch --no-verify
    "#]]);
    world.sandbox.run(&world.sandbox.path("bare.git"), &["branch"]).success();
    bare("bare.git").says(expect![[r#"
        1 kustomization, 1 remote reference (1 locked)
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        branch localized/main: up to date, and `origin` does not have it yet
        next: git kustomize-localize branch --push --no-verify
    "#]]);

    let local = world.sandbox.repo("local");
    local.write("app/kustomization.yaml", "namePrefix: a-\n");
    local.commit("local");
    local.git(&["clone", "-q", "--bare", ".", "../local.git"]);
    bare("local.git").says(expect![[r#"
        1 kustomization, 0 remote references
        branch localized/main: missing
        nothing to do
    "#]]);

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
    is(&world, "branch localized/main: missing", "git kustomize-localize check").says(expect![[r#"
        2 kustomizations, remote references unknown
        check: 0 errors, 0 warnings, 1 could not be checked
        branch localized/main: missing
        next: git kustomize-localize check
    "#]]);
    world.work.write(".kustomize-localize", "unknown: x\n");
    world.work.run_as_is(&[]).fails(2).says(expect![[r#"
        error: .kustomize-localize:1:1: unknown field `unknown`
          hint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
    "#]]);
}

#[test]
fn what_vendor_wrote_is_committed_by_the_next_command() {
    let world = world();
    let next = |expected: &str| {
        let output = is(&world, "branch localized/main: missing", expected);
        let script = output.stdout.rsplit_once("next: ").unwrap().1;
        shell(&world.work, script).success();
        assert_eq!(world.work.git(&["status", "--porcelain"]), "", "after {expected}");
        world.work.run_as_is(&["check", "--rev", "HEAD"]).success();
    };
    let all = "git add -f -- :/app/kustomization.yaml :/app/localized-files :/kustomize-localize.lock";
    world.work.run_as_is(&["vendor"]).success();
    next(&format!("{all} && git commit -m 'Vendor remote references'"));
    // What it removes is of it, too.
    world.work.write("app/kustomization.yaml", "namePrefix: b-\n");
    world.work.commit("without");
    world.work.run_as_is(&["vendor"]).success();
    assert!(!world.work.path().join("app/localized-files").exists());
    next("git add -f -- :/app/localized-files :/kustomize-localize.lock && git commit -m 'Vendor remote references'");
    world.work.write("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n");
    world.work.commit("with");
    world.work.run_as_is(&["vendor"]).success();
    world.work.git(&["add", "-A"]);
    next(&format!("{all} && git commit -m 'Vendor remote references'"));
    // What others edit has nothing to do with it.
    world.work.write("plain/kustomization.yaml", "namePrefix: c-\n");
    is(&world, "branch localized/main: missing", "");
}

#[test]
fn one_state_of_a_target_has_one_word_in_all_commands() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(".kustomize-localize", "targets:\n- {path: gone, engine: kustomize}\n- {path: broken, engine: kustomize}\n- {path: away, engine: kustomize}\n");
    repo.write("broken/kustomization.yaml", "resources: [nothing.yaml]\n");
    repo.write("away/kustomization.yaml", "resources: [nothing.yaml, 'https://h.example/x.yaml']\n");
    repo.commit("targets");
    repo.run(&["status"]).success().says(expect![[r#"
        2 kustomizations, 1 remote reference (1 not locked)
        check: 4 errors, 0 warnings
        3 targets: 0 localized, 1 remote, 1 missing, 1 invalid, 0 unknown
          missing    .kustomize-localize:2: kustomize target gone: there is no `gone`
          invalid    .kustomize-localize:3: kustomize target broken: broken/nothing.yaml: missing
          remote     .kustomize-localize:4: kustomize target away: https://h.example/x.yaml: not locked
        branch localized/main: missing
        next: git kustomize-localize init
    "#]]);
    repo.run(&["targets"]).success().says(expect![[r#"
        .kustomize-localize:2: kustomize target gone
          gone: missing: there is no `gone`
        .kustomize-localize:3: kustomize target broken
          broken: a kustomization
            reaches broken/nothing.yaml: missing
        .kustomize-localize:4: kustomize target away
          away: a kustomization
            reaches away/nothing.yaml: missing
            reaches https://h.example/x.yaml: not locked

        3 targets: 3 here, 0 external, 0 templated; 1 missing
        deployed from a localized branch: 0 of 3 targets; gone (.kustomize-localize:2) reads the default branch
    "#]]);
    let json = |command: &str| repo.run(&[command, "--format", "json"]).stdout;
    assert!(json("status").contains("\"state\": \"missing\""));
    assert!(json("targets").contains("\"missing\": \"there is no `gone`\""));
    repo.run(&["check"]).fails(1).stdout_has("error[missing-target]").stdout_has("error[missing-path]");
}
