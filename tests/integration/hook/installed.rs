//! `hook`: how hooks are installed and uninstalled, and real commits, merges and pushes that they refuse or accept.

mod install;
mod managed;
mod push;
mod server;

use std::path::Path;

use super::{CONFIG, LOCAL, OFF, REMOTE, ROOT, clean, stage};
use crate::support::{Output, Repo, Running, Sandbox, Transcript};

/// Returns a repository `work` with a clean commit, and the program on `PATH`.
fn work() -> (Sandbox, Repo) {
    let sandbox = Sandbox::new();
    sandbox.offer_itself();
    let work = sandbox.repo("work");
    clean(&work);
    (sandbox, work)
}

/// Installs the hooks, as a user does.
#[track_caller]
fn install(repo: &Repo, args: &[&str]) -> Output {
    let output = hook(repo, &[&["install"], args].concat());
    output.success();
    output
}

fn hook(repo: &Repo, args: &[&str]) -> Output {
    repo.run(&[&["hook"], args].concat())
}

/// Runs it, which succeeds and says this.
#[track_caller]
fn does(repo: &Repo, args: &[&str], said: &str) {
    hook(repo, args).success().stdout_has(said);
}

/// Asserts that a check has refused this.
#[track_caller]
fn refused(output: &Output) {
    output.fails(1);
    assert!(format!("{}{}", output.stdout, output.stderr).contains("remote-reference"), "{output:?}");
}

/// Commits another kustomization.
fn commit(work: &Repo, text: &str) {
    work.write(ROOT, text);
    work.commit("change");
}

/// Returns a hook as the sources offer it.
fn script(name: &str) -> Vec<u8> {
    let hooks = Path::new(env!("CARGO_MANIFEST_DIR")).join("hooks");
    std::fs::read(hooks.join(name)).unwrap()
}

#[test]
fn a_commit_that_needs_the_network_is_refused() {
    let (_sandbox, work) = work();
    install(&work, &[]);
    let before = work.id("HEAD");
    stage(&work, ROOT, REMOTE);
    let state = work.state();
    hook(&work, &["run", "pre-commit"]).fails(1);
    state.assert_same(&work.state());
    refused(&work.try_git(&["commit", "-m", "remote"]));
    // git itself has refreshed the index.
    let state = state.without("index");
    state.assert_same(&work.state().without("index"));
    // Nor by the other ways to name what is committed, each of which gives the hook another index.
    work.git(&["reset", "--quiet"]);
    refused(&work.try_git(&["commit", "-a", "-m", "remote"]));
    refused(&work.try_git(&["commit", "-m", "remote", "--", "app"]));
    refused(&work.try_git(&["commit", "-a", "--amend", "--no-edit"]));
    stage(&work, "note", "w");
    refused(&work.try_git(&["commit", "-m", "remote", "--include", "app"]));
    assert_eq!(work.id("HEAD"), before);
    // One that leaves it out passes, although it is staged.
    work.git(&["add", "app"]);
    work.git(&["commit", "--quiet", "-m", "note", "--", "note"]);
    work.git(&["reset", "--quiet"]);
    // Unstaged changes do not concern the hook.
    work.write("note", "x");
    work.git(&["add", "note"]);
    let output = work.try_git(&["commit", "--quiet", "-m", "note"]);
    output.success();
    assert_eq!((&*output.stdout, &*output.stderr), ("", ""));
}

#[test]
fn a_commit_in_a_linked_worktree_is_checked_too() {
    let (_sandbox, work) = work();
    let linked = work.linked("linked", &["-b", "linked"]);
    hook(&linked, &["install"]).success();
    assert!(work.path().join(".git/hooks/pre-commit").is_file());
    let before = work.state().without("refs");
    linked.write(ROOT, REMOTE);
    refused(&linked.try_git(&["commit", "-am", "remote"]));
    refused(&linked.try_git(&["commit", "-m", "remote", ROOT]));
    linked.write(ROOT, LOCAL);
    stage(&linked, "note", "x");
    linked.git(&["commit", "-qm", "note"]);
    before.assert_same(&work.state().without("refs"));
}

/// Returns a repository with the hooks whose branch `other` needs the network, beside a `main` that went on.
fn diverged(config: &str) -> (Sandbox, Repo) {
    let (sandbox, work) = work();
    work.write(CONFIG, config);
    work.commit("configuration");
    work.git(&["switch", "--quiet", "-c", "other"]);
    work.write("b/kustomization.yaml", REMOTE);
    work.commit("remote");
    work.git(&["switch", "--quiet", "main"]);
    work.write("note", "x");
    work.commit("note");
    install(&work, &[]);
    (sandbox, work)
}

#[test]
fn a_merge_is_checked_where_git_runs_no_pre_commit() {
    let (_sandbox, work) = diverged("");
    let before = work.id("HEAD");
    refused(&work.try_git(&["merge", "-m", "merge", "other"]));
    assert_eq!(work.id("HEAD"), before);
    // The merge is left to be completed, which runs pre-commit.
    refused(&work.try_git(&["commit", "-m", "merge"]));
    work.git(&["merge", "--abort"]);
}

#[test]
fn one_setting_switches_the_hooks_off() {
    let (_sandbox, work) = work();
    install(&work, &[]);
    stage(&work, ROOT, REMOTE);
    for off in ["false", "no", "0"] {
        work.git(&["config", "kustomize-localize.hook", off]);
        hook(&work, &["run", "pre-commit"]).success();
    }
    work.git(&["config", "kustomize-localize.hook", "true"]);
    refused(&work.try_git(&["commit", "-m", "remote"]));
    work.git(&["config", "kustomize-localize.hook", "perhaps"]);
    hook(&work, &["run", "pre-commit"]).fails(2).says(expect![[r#"
        error: bad boolean value for `kustomize-localize.hook` in the git configuration: Booleans need to be 'no', 'off', 'false', '' or 'yes', 'on', 'true' or any number, input="perhaps"
    "#]]);
    work.git(&["config", "kustomize-localize.hook", "false"]);
    work.git(&["commit", "-m", "remote"]);
}

#[test]
fn a_hook_without_the_program_says_so_and_passes() {
    let (sandbox, work) = work();
    install(&work, &["pre-commit", "pre-merge-commit", "pre-push"]);
    std::fs::remove_file(sandbox.path("bin/git-kustomize-localize")).unwrap();
    work.git(&["init", "--quiet", "--bare", "../server.git"]);
    stage(&work, ROOT, REMOTE);
    let says = |args: &[&str], said: &str| {
        assert_eq!(work.try_git(args).success().stderr, said);
    };
    let missing = "git-kustomize-localize is not on PATH: this";
    says(&["commit", "--quiet", "-m", "remote"], &format!("{missing} commit was not checked\n"));
    says(&["push", "--quiet", "../server.git", "main"], &format!("{missing} push was not checked\n"));
    // After it is switched off, it is silent.
    work.git(&["config", "kustomize-localize.hook", "false"]);
    says(&["commit", "--quiet", "--allow-empty", "-m", "again"], "");
}

#[test]
fn an_unknown_hook_is_a_usage_error() {
    let (sandbox, work) = work();
    let home = Repo::new(&sandbox, sandbox.path("home"));
    let mut transcript = Transcript::default();
    for (repo, args) in
        [(&work, &["install", "post-commit"][..]), (&work, &["run"]), (&work, &[]), (&home, &["install"])]
    {
        transcript.add(hook(repo, args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize hook install post-commit
        error: invalid value 'post-commit' for '[HOOK]...'
          [possible values: pre-commit, pre-merge-commit, pre-push]

          tip: a similar value exists: 'pre-commit'

        For more information, try '-h'.
        $ git kustomize-localize hook run
        error: the following required arguments were not provided:
          <HOOK>

        Usage: git kustomize-localize hook run <HOOK> [ARG]...

        For more information, try '-h'.
        $ git kustomize-localize hook
        Manage git hooks that run `check`

        Usage: git kustomize-localize hook [OPTIONS] <COMMAND>

        Commands:
          install    Install git hooks that run `check`
          uninstall  Remove what `install` added, and nothing else
          run        Run a hook; for hooks written by hand or by other programs

        Options:
          -q, --quiet    Print only errors
          -v, --verbose  Print each item that is otherwise only counted
          -h, --help     Print help; `help COMMAND` is the whole page
        $ git kustomize-localize hook install
        error: this is not a git repository
          hint: run it in a repository
    "#]]);
}

#[test]
fn the_scripts_can_be_used_as_they_are() {
    let (_sandbox, work) = work();
    for name in ["pre-commit", "pre-merge-commit", "pre-push"] {
        work.write_executable(&format!(".githooks/{name}"), script(name));
    }
    work.git(&["config", "core.hooksPath", ".githooks"]);
    work.git(&["add", "."]);
    work.git(&["commit", "-m", "hooks"]);
    does(&work, &["install"], "installed .githooks/pre-commit\n");
    work.write(ROOT, REMOTE);
    refused(&work.try_git(&["commit", "-am", "remote"]));
}

#[test]
fn object_ids_may_be_long_and_refs_stored_in_another_way() {
    for option in ["--object-format=sha256", "--ref-format=reftable"] {
        let (sandbox, _) = work();
        let directory = sandbox.path("other");
        std::fs::create_dir(&directory).unwrap();
        let init = ["init", "--quiet", "-b", "main", option];
        sandbox.git(&directory, &init);
        let other = Repo::new(&sandbox, directory);
        other.write("old/kustomization.yaml", "namePrefix: a-\n");
        other.commit("old");
        other.git(&[&init[..], &["--bare", "../server.git"]].concat());
        other.git(&["remote", "add", "origin", "../server.git"]);
        other.git(&["push", "--quiet", "origin", "main"]);
        install(&other, &["pre-commit", "pre-push"]);
        stage(&other, "new/kustomization.yaml", REMOTE);
        let refuses = |args: &[&str]| {
            let output = other.try_git(args);
            refused(&output);
            output.lacks("old/kustomization.yaml");
        };
        refuses(&["commit", "-m", "new"]);
        other.git(&["commit", "--quiet", "--no-verify", "-m", "new"]);
        refuses(&["push", "origin", "main"]);
        other.write_executable("../server.git/hooks/pre-receive", script("pre-receive"));
        refuses(&["push", "--no-verify", "origin", "main", "main:topic"]);
    }
}

#[test]
fn a_submodule_has_hooks_of_its_own() {
    let (sandbox, work) = work();
    let outer = sandbox.repo("outer");
    sandbox.configure("protocol.file.allow", "always");
    let from = work.path().to_str().unwrap();
    outer.git(&["submodule", "--quiet", "add", from, "inner"]);
    let inner = Repo::new(&sandbox, outer.path().join("inner"));
    install(&inner, &[]);
    let own = outer.path().join(".git");
    assert!(own.join("modules/inner/hooks/pre-commit").is_file());
    assert!(!own.join("hooks/pre-commit").exists());
    inner.write(ROOT, REMOTE);
    refused(&inner.try_git(&["commit", "-am", "remote"]));
    outer.git(&["commit", "-am", "outer"]);
}

#[test]
fn a_hook_warns_of_what_is_touched_alone() {
    let (sandbox, repo) = work();
    let app = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {source: {repoURL: 'https://h.example/x', path: 'a/{{x}}'}}\n";
    let staged = |path: &str, text: &str| {
        stage(&repo, path, text);
        hook(&repo, &["run", "pre-commit"])
    };
    let own = "repository: [{url: 'https://h.example/x'}]\n";
    repo.write(CONFIG, own);
    repo.commit("config");
    staged("argo.yaml", app).success().says(expect![[r#"
        git kustomize-localize check:
        warning[unknown-target]: cannot tell what Argo CD Application web (argo.yaml:1) deploys: `a/{{x}}` is substituted elsewhere
         --> argo.yaml:4:55
          |
        4 | spec: {source: {repoURL: 'https://h.example/x', path: 'a/{{x}}'}}
          |                                                       ^^^^^^^^^
          = help: write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON

        for more: git kustomize-localize explain unknown-target
        checked 1 kustomization with 1 reference in the index: no problems found; 1 target unknown
    "#]]);
    repo.git(&["commit", "-q", "-m", "app"]);
    let old = repo.id("HEAD");
    let readme = staged("README.md", "x");
    readme.success();
    assert_eq!(readme.stderr, "");
    repo.git(&["commit", "-q", "-m", "readme"]);
    let push = |old: &str| {
        let line = format!("refs/heads/main {} refs/heads/main {old}", repo.id("HEAD"));
        let script = format!("echo {line} | git kustomize-localize hook run pre-push");
        Running::start(sandbox.command("sh", repo.path()).args(["-c", &script])).wait()
    };
    assert_eq!(push(&old).success().stderr, "");
    push(&"0".repeat(40)).success().says(expect![[r#"
        git kustomize-localize check: refs/heads/main:
        warning[unknown-target]: cannot tell what Argo CD Application web (argo.yaml:1) deploys: `a/{{x}}` is substituted elsewhere
         --> argo.yaml:4:55
          |
        4 | spec: {source: {repoURL: 'https://h.example/x', path: 'a/{{x}}'}}
          |                                                       ^^^^^^^^^
          = help: write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON

        for more: git kustomize-localize explain unknown-target
        checked 1 kustomization with 1 reference in commit <0>: no problems found; 1 target unknown
    "#]]);
    // What decides elsewhere may change anything.
    staged(CONFIG, &format!("{own}helm: false\n")).success().says(expect![[r#"
        git kustomize-localize check:
        warning[unknown-target]: cannot tell what Argo CD Application web (argo.yaml:1) deploys: `a/{{x}}` is substituted elsewhere
         --> argo.yaml:4:55
          |
        4 | spec: {source: {repoURL: 'https://h.example/x', path: 'a/{{x}}'}}
          |                                                       ^^^^^^^^^
          = help: write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON

        for more: git kustomize-localize explain unknown-target
        checked 1 kustomization with 1 reference in the index: no problems found; 1 target unknown
    "#]]);
    repo.git(&["commit", "-q", "-m", "config"]);
    // What fails is said, wherever it is.
    repo.write("other/kustomization.yaml", REMOTE);
    repo.commit("broken");
    staged("README.md", "y").fails(1).says(expect![[r#"
        git kustomize-localize check:
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> other/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/other

        for more: git kustomize-localize explain remote-reference
        checked 2 kustomizations with 2 references in the index: 1 error
    "#]]);
}
