//! `hooks/pre-receive`: a server that takes no push that needs the network, and fails closed.

use std::fs;

use git_kustomize_localize::seams::record::Lock;

use super::{CONFIG, LOCAL, OFF, REMOTE, commit, script, work};
use crate::support::{Output, Repo, Sandbox, Transcript};

/// Returns a repository and a bare one with the hook of the source, which has the first commit.
fn served() -> (Sandbox, Repo) {
    let (sandbox, work) = work();
    work.git(&["init", "--quiet", "--bare", "-b", "main", "../server.git"]);
    work.git(&["remote", "add", "origin", "../server.git"]);
    work.write_executable("../server.git/hooks/pre-receive", script("pre-receive"));
    takes(&work, &["main"]);
    (sandbox, work)
}

/// Asserts that the server takes these refs.
#[track_caller]
fn takes(work: &Repo, refs: &[&str]) {
    work.git(&[&["push", "--quiet", "origin"], refs].concat());
}

/// Asserts that the server refused this, because of what it found.
#[track_caller]
fn refused(output: &Output) {
    output.fails(1).stderr_has("remote: ").stderr_has("remote-reference").stderr_has("pre-receive hook declined");
}

fn refs(sandbox: &Sandbox) -> String {
    sandbox.git(&sandbox.path("server.git"), &["for-each-ref"])
}

#[test]
fn a_push_that_needs_the_network_is_not_taken() {
    let (sandbox, work) = served();
    commit(&work, REMOTE);
    let before = refs(&sandbox);
    let output = work.try_git(&["push", "origin", "main"]);
    refused(&output);
    output.says(expect![[r#"
        remote: git kustomize-localize check: refs/heads/main:        
        remote: error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked        
        remote:  --> app/kustomization.yaml:2:5        
        remote:   |        
        remote: 2 |   - https://example.com/acme/app//deploy?ref=v1        
        remote:   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]        
        remote:   = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock        
        remote:   = help: or vendor it: git kustomize-localize vendor :/app        
        remote: 
        remote: for more: git kustomize-localize explain remote-reference        
        remote: checked 1 kustomization with 1 reference in commit <0>: 1 error        
        To ../server.git
         ! [remote rejected] main -> main (pre-receive hook declined)
        error: failed to push some refs to '../server.git'
    "#]]);
    // One bad ref of several: git takes none.
    let output = work.try_git(&["push", "origin", "main:new", "HEAD^:refs/heads/fine"]);
    refused(&output);
    output.says(expect![[r#"
        remote: git kustomize-localize check: refs/heads/new:        
        remote: error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked        
        remote:  --> app/kustomization.yaml:2:5        
        remote:   |        
        remote: 2 |   - https://example.com/acme/app//deploy?ref=v1        
        remote:   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]        
        remote:   = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock        
        remote:   = help: or vendor it: git kustomize-localize vendor :/app        
        remote: 
        remote: for more: git kustomize-localize explain remote-reference        
        remote: checked 1 kustomization with 1 reference in commit <0>: 1 error        
        To ../server.git
         ! [remote rejected] main -> new (pre-receive hook declined)
         ! [remote rejected] HEAD^ -> fine (pre-receive hook declined)
        error: failed to push some refs to '../server.git'
    "#]]);
    assert_eq!(refs(&sandbox), before);
    // What was refused leaves nothing behind.
    let loose = sandbox.git(&sandbox.path("server.git"), &["count-objects"]);
    commit(&work, LOCAL);
    takes(&work, &["main", "main:new"]);
    assert_ne!(sandbox.git(&sandbox.path("server.git"), &["count-objects"]), loose);
    work.git(&["push", "--quiet", "--delete", "origin", "new"]);
    work.git(&["tag", "-m", "annotated", "v1"]);
    takes(&work, &["v1"]);
}

#[test]
fn a_localized_branch_is_taken_but_not_merged() {
    let (_sandbox, work) = served();
    work.git(&["checkout", "--quiet", "-b", "localized/main"]);
    work.write("web/kustomization.yaml", "resources: [localized-files/h/x.yaml]\n");
    work.write("web/localized-files/h/x.yaml", crate::support::config("x"));
    work.list_localized();
    let text = work.read("kustomize-localize.lock");
    let lock = Lock::parse(text.as_bytes(), "lock").unwrap();
    work.write("kustomize-localize.lock", Lock { trailers: true, ..lock }.render().unwrap());
    work.commit("localized");
    takes(&work, &["localized/main"]);
    let output = work.try_git(&["push", "origin", "localized/main:main"]);
    output.fails(1).says(expect![[r#"
        remote: git kustomize-localize check: refs/heads/main:        
        remote: error[merged-back]: the localized branch was merged into its source: local paths replaced its URLs        
        remote:  --> kustomize-localize.lock        
        remote:  = help: undo the merge: git revert --no-edit <0>        
        remote:  = help: if this is the localized branch itself, deploy from it, and do not merge it        
        remote: 
        remote: for more: git kustomize-localize explain merged-back        
        remote: checked 2 kustomizations with 2 references in commit <0>: 1 error        
        To ../server.git
         ! [remote rejected] localized/main -> main (pre-receive hook declined)
        error: failed to push some refs to '../server.git'
    "#]]);
    // A new commit of the branch.
    work.write("README.md", "More.\n");
    work.commit("more");
    takes(&work, &["localized/main"]);
}

#[test]
fn a_push_cannot_change_the_configuration_that_judges_it() {
    let (_sandbox, work) = served();
    work.write(CONFIG, OFF);
    commit(&work, REMOTE);
    refused(&work.try_git(&["push", "origin", "main"]));
    refused(&work.try_git(&["push", "origin", "main:new"]));
    // Nor can it break what judges the next one.
    work.write(CONFIG, "nonsense: true\n");
    commit(&work, LOCAL);
    work.try_git(&["push", "origin", "main"]).fails(1).stderr_has(".kustomize-localize:1");
    work.write(CONFIG, OFF);
    // Once it is reviewed and there, it counts.
    commit(&work, LOCAL);
    takes(&work, &["main"]);
    commit(&work, REMOTE);
    takes(&work, &["main", "main:new"]);
}

#[test]
fn what_the_branch_has_too_is_left_out() {
    let (sandbox, work) = served();
    let hook = sandbox.path("server.git/hooks/pre-receive");
    let away = sandbox.path("away");
    fs::rename(&hook, &away).unwrap();
    work.write("old/kustomization.yaml", REMOTE);
    work.commit("old");
    takes(&work, &["main"]);
    fs::rename(&away, &hook).unwrap();
    work.write("note", "x");
    work.commit("note");
    takes(&work, &["main", "main:topic"]);
    commit(&work, REMOTE);
    let output = work.try_git(&["push", "origin", "main"]);
    refused(&output);
    output.says(expect![[r#"
        remote: git kustomize-localize check: refs/heads/main:        
        remote: error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked        
        remote:  --> app/kustomization.yaml:2:5        
        remote:   |        
        remote: 2 |   - https://example.com/acme/app//deploy?ref=v1        
        remote:   |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]        
        remote:   = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock        
        remote:   = help: or vendor it: git kustomize-localize vendor :/app        
        remote: 
        remote: for more: git kustomize-localize explain remote-reference        
        remote: checked 2 kustomizations with 2 references in commit <0>: 1 error, 1 finding already in <1>        
        To ../server.git
         ! [remote rejected] main -> main (pre-receive hook declined)
        error: failed to push some refs to '../server.git'
    "#]]);
    refused(&work.try_git(&["push", "origin", "main:other"]));
}

#[test]
fn the_configuration_of_another_branch_does_not_count_for_this_one() {
    let (_sandbox, work) = served();
    work.git(&["checkout", "--quiet", "-b", "topic"]);
    work.write(CONFIG, OFF);
    work.commit("lax");
    takes(&work, &["topic"]);
    commit(&work, REMOTE);
    takes(&work, &["topic"]);
    refused(&work.try_git(&["push", "origin", "topic:main"]));
}

#[test]
fn the_first_push_is_judged_without_a_configuration() {
    let (sandbox, work) = served();
    fs::remove_dir_all(sandbox.path("server.git/refs/heads")).unwrap();
    fs::create_dir(sandbox.path("server.git/refs/heads")).unwrap();
    work.write(CONFIG, "rules:\n  remote-reference: off\n");
    commit(&work, REMOTE);
    refused(&work.try_git(&["push", "origin", "main"]));
    commit(&work, LOCAL);
    takes(&work, &["main"]);
}

#[test]
fn a_push_that_cannot_be_checked_is_refused() {
    let (sandbox, work) = served();
    let before = refs(&sandbox);
    commit(&work, "resources:\n  - config.yaml\nnamePrefix: x-\n");
    let program = sandbox.path("bin/git-kustomize-localize");
    let away = sandbox.path("away");
    fs::rename(&program, &away).unwrap();
    work.try_git(&["push", "origin", "main"])
        .fails(1)
        .stderr_has("remote: git-kustomize-localize is not on PATH")
        .stderr_has("pre-receive hook declined");
    for (script, said) in
        [("exit 2", "declined"), ("kill -9 $$", "declined"), ("echo broken >&2; exit 127", "remote: broken")]
    {
        sandbox.script("git-kustomize-localize", script);
        work.try_git(&["push", "origin", "main"]).fails(1).stderr_has(said);
    }
    fs::rename(&away, &program).unwrap();
    assert_eq!(refs(&sandbox), before);
    // A broken configuration on the server must not let anything pass, nor must the switch that turns off local hooks.
    let server = sandbox.path("server.git");
    sandbox.git(&server, &["config", "kustomize-localize.hook", "false"]);
    commit(&work, REMOTE);
    refused(&work.try_git(&["push", "origin", "main"]));
    commit(&work, LOCAL);
    takes(&work, &["main"]);
}

/// A push that tries to slip past the server, and its answer. `whole::judge` has more that no gate lets pass.
type Push = (&'static str, &'static [(&'static str, &'static str)], &'static [&'static str]);

const PUSHES: [Push; 5] = [
    (
        "what is checked out is another text",
        &[
            (
                "app/kustomization.yaml",
                "{namePrefix: \"¥\", namespace: \", resources: [https://example.com/x.yaml], nameSuffix: \" #\"\n}\n",
            ),
            ("app/.gitattributes", "*.yaml working-tree-encoding=ISO646-JP\n"),
        ],
        &["app/kustomization.yaml:1", "https://example.com/x.yaml"],
    ),
    (
        "it allows itself",
        &[(
            "app/kustomization.yaml",
            "resources:\n- https://example.com/x.yaml # kustomize-localize: allow[remote-reference, floating-ref] ours\n",
        )],
        &["https://example.com/x.yaml", "new-exception"],
    ),
    (
        "its lock holds less than it names",
        &[
            ("app/kustomization.yaml", "resources: ['https://github.com/o/r//b?ref=v1']\n"),
            (
                "kustomize-localize.lock",
                "version: 1\nremotes:\n- url: https://github.com/o/r\n  ref: v1\n  commit: 0123456789abcdef0123456789abcdef01234567\n  paths: {a: {}}\n",
            ),
        ],
        &["`b` of `https://github.com/o/r//b?ref=v1` is not locked", "new in the lock"],
    ),
    (
        "its names are commands",
        &[("d\n::warning::pwn/kustomization.yaml", "resources: [https://example.com/x.yaml]\n")],
        &["https://example.com/x.yaml"],
    ),
    (
        "its names are commands after blanks",
        &[("d\n\t##[error]pwn\u{202e}/kustomization.yaml", "resources: [https://example.com/x.yaml]\n")],
        &["https://example.com/x.yaml"],
    ),
];

#[test]
fn a_push_does_not_slip_past() {
    let (sandbox, work) = served();
    let start = work.git(&["rev-parse", "HEAD"]);
    let before = refs(&sandbox);

    for (name, files, said) in PUSHES {
        // One by one: a file that was added before its attributes keeps its bytes.
        for (path, text) in files {
            work.write(path, text);
            work.git(&["add", "--", path]);
        }
        work.git(&["commit", "--quiet", "-m", name]);
        for branch in ["main", "main:new"] {
            let output = work.try_git(&["push", "origin", branch]);
            output.fails(1).stderr_has("pre-receive hook declined");
            for said in said {
                let known = branch == "main" || !said.contains("new in the lock");
                assert!(!known || output.stderr.contains(said), "{name}: {output:?}");
            }
            let lines = output.stderr.lines();
            let mut lines = lines.map(|line| line.trim_start_matches("remote:").trim_start());
            let is_command = |line: &str| line.starts_with("::") || line.starts_with("##[");
            assert!(!lines.any(is_command), "{name}: {output:?}");
            assert!(!output.stderr.contains('\u{202e}'), "{name}: {output:?}");
        }
        assert_eq!(refs(&sandbox), before, "{name}");
        work.git(&["reset", "--quiet", "--hard", &start]);
    }

    // The contents of a lock entry are for reviewers.
    work.write("app/kustomization.yaml", "resources: ['https://github.com/o/r//a?ref=v1']\n");
    work.write("kustomize-localize.lock", PUSHES[2].1[1].1);
    work.commit("locked");
    work.try_git(&["push", "origin", "main"])
        .success()
        .stderr_has("new in the lock")
        .stderr_has("https://github.com/o/r?ref=v1");
}

/// A replacement shows other bytes under an id: to whoever has it, and to nobody else.
#[test]
fn an_object_that_is_replaced_is_judged_as_it_is() {
    let (sandbox, work) = served();
    let local = work.git(&["rev-parse", "HEAD:app/kustomization.yaml"]);
    commit(&work, REMOTE);
    let remote = work.git(&["rev-parse", "HEAD:app/kustomization.yaml"]);
    work.git(&["replace", &remote, &local]);
    let mut transcript = Transcript::default();
    for args in [&["check"][..], &["check", "--rev", "HEAD"]] {
        transcript.add(work.run(args).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in the working tree: 1 error
        $ git kustomize-localize check --rev HEAD
        error[remote-reference]: `https://example.com/acme/app//deploy?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:5
          |
        2 |   - https://example.com/acme/app//deploy?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 error
    "#]]);
    let before = refs(&sandbox);
    refused(&work.try_git(&["push", "origin", "main"]));
    // Pushed together or first, it would hide what follows from those who build there.
    let mut transcript = Transcript::default();
    for refspecs in [&["refs/replace/*"][..], &["main", "refs/replace/*"]] {
        let output = work.try_git(&[&["push", "origin"], refspecs].concat());
        assert_ne!(output.status, 0, "{output:?}");
        transcript.add(&output);
    }
    transcript.says(expect![[r#"
        $ git push origin refs/replace/*
        remote: error: `refs/replace/<0>` would replace the files of a commit here        
        remote:   hint: push the changed files as a commit        
        To ../server.git
         ! [remote rejected] refs/replace/<0> -> refs/replace/<0> (pre-receive hook declined)
        error: failed to push some refs to '../server.git'
        $ git push origin main refs/replace/*
        remote: error: `refs/replace/<0>` would replace the files of a commit here        
        remote:   hint: push the changed files as a commit        
        To ../server.git
         ! [remote rejected] main -> main (pre-receive hook declined)
         ! [remote rejected] refs/replace/<0> -> refs/replace/<0> (pre-receive hook declined)
        error: failed to push some refs to '../server.git'
    "#]]);
    assert_eq!(refs(&sandbox), before);
    // One that is on the server already makes no difference there.
    let server = sandbox.path("server.git");
    let name = format!("refs/replace/{remote}");
    sandbox.git(&server, &["update-ref", &name, &local]);
    refused(&work.try_git(&["push", "origin", "main"]));
}
