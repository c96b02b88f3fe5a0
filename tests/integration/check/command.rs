//! `check`: what is looked at, from where, what of it is new, and how it ends. What each rule finds has tests of its
//! own.

use super::{REMOTE, check, repository};
use crate::support::{Sandbox, Transcript};

fn remote(url: &str) -> String {
    format!("resources:\n- config.yaml\n- {url}\n")
}

#[test]
fn each_source_is_looked_at_by_itself() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let mut transcript = Transcript::default();
    for args in [&[][..], &["--staged"], &["--rev", "HEAD"]] {
        transcript.add(check(&repo, args).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        checked 3 kustomizations with 3 references in the working tree: no problems found
        $ git kustomize-localize check --staged
        checked 3 kustomizations with 3 references in the index: no problems found
        $ git kustomize-localize check --rev HEAD
        checked 3 kustomizations with 3 references in commit <0> (HEAD): no problems found
    "#]]);
    assert_eq!(check(&repo, &["-q"]).success().stdout, "");

    repo.write("base/kustomization.yaml", remote(REMOTE));
    check(&repo, &[]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> base/kustomization.yaml:3:3
          |
        3 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/base

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 4 references in the working tree: 1 error
    "#]]);
    check(&repo, &["--staged"]).success().says(expect![[r#"
        checked 3 kustomizations with 3 references in the index: no problems found
    "#]]);
    check(&repo, &["--rev", "HEAD"]).success().says(expect![[r#"
        checked 3 kustomizations with 3 references in commit <0> (HEAD): no problems found
    "#]]);

    repo.git(&["add", "--all"]);
    check(&repo, &["--staged"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> base/kustomization.yaml:3:3
          |
        3 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/base

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 4 references in the index: 1 error
    "#]]);
    check(&repo, &["--rev", "HEAD"]).success();

    // The fix is on disk, but not staged.
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    check(&repo, &["--staged"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> base/kustomization.yaml:3:3
          |
        3 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/base

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 4 references in the index (1 differs in the working tree; fixes count after `git add`): 1 error
    "#]]);
    check(&repo, &[]).success();

    repo.git(&["commit", "--quiet", "--no-verify", "-m", "Remote"]);
    check(&repo, &["--rev", "HEAD"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> base/kustomization.yaml:3:3
          |
        3 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/base

        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 4 references in commit <0> (HEAD): 1 error
    "#]]);
    check(&repo, &["--rev", "HEAD~"]).success();
}

#[test]
fn paths_are_relative_or_absolute_or_from_the_top() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("base/kustomization.yaml", remote(REMOTE));
    repo.write("docs/README.md", "Nothing.\n");
    repo.git(&["add", "--all"]);
    let inside = repo.path().join("overlays/dev");
    let run = |args: &[&str]| sandbox.run(&inside, &[&["check"], args].concat());
    let (dev, all) = ("checked 2 kustomizations with 3", "checked 3 kustomiz");

    for (args, told) in [
        (&[][..], all),
        (&["."], dev),
        (&["../dev"], dev),
        (&["kustomization.yaml"], dev),
        (&[inside.to_str().unwrap()], dev),
        (&[":/overlays/dev"], dev),
        (&[":/"], all),
        (&["--", "../../base"], "checked 1 kustomization with 2"),
    ] {
        let output = run(args);
        output.fails(1).stdout_has(told);
        // The place does not depend on where the command is given.
        output.stdout_has("base/kustomization.yaml:3:3");
    }

    let mut transcript = Transcript::default();
    for path in ["../../docs", "../../docs/README.md", ":/dev", ":/..", "../../..", "/", ""] {
        transcript.add(run(&[".", path]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check . ../../docs
        error: no kustomization in `docs`
          hint: name a directory that contains a kustomization, or none, for all of them
        $ git kustomize-localize check . ../../docs/README.md
        error: no kustomization in `docs/README.md`
          hint: name a directory that contains a kustomization, or none, for all of them
        $ git kustomize-localize check . :/dev
        error: no kustomization in `dev`
          hint: name a directory that contains a kustomization, or none, for all of them
        $ git kustomize-localize check . :/..
        error: `:/..` is outside of the repository
          hint: name a directory of this repository
        $ git kustomize-localize check . ../../..
        error: `../../..` is outside of the repository
          hint: name a directory of this repository
        $ git kustomize-localize check . /
        error: `/` is outside of the repository
          hint: name a directory of this repository
        $ git kustomize-localize check . ""
        error: empty PATH
          hint: name a directory of this repository, or omit PATH to check all
    "#]]);
}

#[test]
fn an_empty_repository_has_nothing_wrong_and_says_so() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    assert!(!repo.git_directory().join("index").exists());
    check(&repo, &[]).success().says(expect![[r#"
        no kustomization in the working tree: no problems found
    "#]]);
    check(&repo, &["."]).fails(2);
    check(&repo, &["--rev", "HEAD"]).fails(2).says(expect![[r#"
        error: this repository has no commit yet
          hint: commit your files first: git add . && git commit
    "#]]);
    // The first commit is checked like any other, and what is not part of it is counted.
    repo.write("kustomization.yaml", remote(REMOTE));
    check(&repo, &["--staged"]).success().says(expect![[r#"
        no kustomization in the index (1 untracked or ignored: git add -f them): no problems found
    "#]]);
    check(&repo, &["--staged", "."]).fails(2).says(expect![[r#"
        error: no kustomization in `.`
          hint: name a directory that contains a kustomization, or none, for all of them
          hint: untracked or ignored kustomizations there: 1; git add -f them
    "#]]);
    repo.git(&["add", "--all"]);
    check(&repo, &[]).fails(1).says(expect![[r#"
        error[missing-path]: there is no `config.yaml`
         --> kustomization.yaml:2:3
          |
        2 | - config.yaml
          |   ^^^^^^^^^^^ resources[0]
          = help: add it, or remove the reference

        error[remote-reference]: `https://github.com/acme/app//base?ref=v1.0.0` is neither localized nor locked
         --> kustomization.yaml:3:3
          |
        3 | - https://github.com/acme/app//base?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/

        for more: git kustomize-localize explain remote-reference missing-path
        checked 1 kustomization with 2 references in the working tree: 2 errors
    "#]]);
}

#[test]
fn without_a_repository_nothing_is_checked() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("plain")).unwrap();
    sandbox.git(&sandbox.path(""), &["init", "-q", "--bare", "bare.git"]);
    let mut transcript = Transcript::default();
    for (place, args) in [("plain", &["check"][..]), ("bare.git", &["check", "--staged"]), ("bare.git", &["check"])] {
        transcript.add(sandbox.run(&sandbox.path(place), args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        error: this is not a git repository
          hint: run it in a repository
        $ git kustomize-localize check --staged
        error: this repository has no working tree, and no index to check
          hint: check a commit instead: --rev REV
        $ git kustomize-localize check
        error: this repository has no working tree
          hint: read a commit instead: --rev REV
    "#]]);
}

#[test]
fn arguments_that_exclude_each_other_or_mean_nothing_are_refused() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let mut transcript = Transcript::default();
    for args in [
        &["--staged", "--staged"][..],
        &["--staged", "--rev", "HEAD"],
        &["--rev"],
        &["--rev", "none"],
        &["--rev", "--upload-pack=x"],
        &["--format", "xml"],
        &["--base"],
        &["--base="],
        &["--base=origin/main"],
    ] {
        let output = check(&repo, args);
        transcript.add(output.fails(2));
        assert_eq!(output.stdout, "", "{args:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged --staged
        error: the argument '--staged' cannot be used multiple times

        Usage: git kustomize-localize check [OPTIONS] [PATH]...

        For more information, try '-h'.
        $ git kustomize-localize check --staged --rev HEAD
        error: the argument '--staged' cannot be used with '--rev <REV>'

        Usage: git kustomize-localize check --staged [PATH]...

        For more information, try '-h'.
        $ git kustomize-localize check --rev
        error: a value is required for '--rev <REV>' but none was supplied

        For more information, try '-h'.
        $ git kustomize-localize check --rev none
        error: unknown revision `none`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize check --rev --upload-pack=x
        error: unexpected argument '--upload-pack' found

          tip: to pass '--upload-pack' as a value, use '-- --upload-pack'

        Usage: git kustomize-localize check [OPTIONS] [PATH]...

        For more information, try '-h'.
        $ git kustomize-localize check --format xml
        error: invalid value 'xml' for '--format <FORMAT>'
          [possible values: human, json, sarif, github, gitlab]

        For more information, try '-h'.
        $ git kustomize-localize check --base
        error: a value is required for '--base <REV>' but none was supplied

        For more information, try '-h'.
        $ git kustomize-localize check --base=
        error: cannot read the configuration of ``: empty REV
          hint: name a commit, a branch or a tag, or omit the option
        $ git kustomize-localize check --base=origin/main
        error: cannot read the configuration of `origin/main`: unknown revision `origin/main`
          hint: fetch it first, or name another one: git log --oneline --all
    "#]]);
}

#[test]
fn what_the_base_has_too_is_left_out() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let text = |reference: &str| {
        format!("resources:\n- gone.yaml\n- https://github.com/o/r//a{reference}\n# more\n# and more\n")
    };
    repo.write("apps/a/kustomization.yaml", text("?ref=main"));
    repo.write("apps/b/kustomization.yaml", text("?ref=v1.0.0"));
    repo.commit("old");
    check(&repo, &["--base=HEAD"]).success().says(expect![[r#"
        checked 2 kustomizations with 4 references in the working tree: 5 findings already in <0>, the merge base with HEAD
    "#]]);
    // What git takes for renamed is, and another version of the same is not new.
    repo.git(&["mv", "apps", "teams"]);
    repo.write("teams/a/kustomization.yaml", text("?ref=v1.2.0"));
    repo.git(&["add", "--all"]);
    let mut transcript = Transcript::default();
    for source in [&["--staged"][..], &[]] {
        transcript.add(check(&repo, &[source, &["--base=HEAD"]].concat()).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged --base=HEAD
        checked 2 kustomizations with 4 references in the index: 4 findings already in <0>, the merge base with HEAD
        $ git kustomize-localize check --base=HEAD
        checked 2 kustomizations with 4 references in the working tree: 4 findings already in <0>, the merge base with HEAD
    "#]]);
    repo.commit("moved");
    check(&repo, &["--rev", "HEAD", "--base=HEAD~"]).success();
    // Something else, and the same in another file.
    repo.write("teams/b/kustomization.yaml", text("?ref=v1.0.0").replace("r//a", "r//b"));
    repo.write("teams/c/kustomization.yaml", text("?ref=v1.0.0"));
    repo.git(&["add", "--all"]);
    check(&repo, &["--base=HEAD", "teams/b"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/o/r//b?ref=v1.0.0` is neither localized nor locked
         --> teams/b/kustomization.yaml:3:3
          |
        3 | - https://github.com/o/r//b?ref=v1.0.0
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/teams/b

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 2 references in the working tree: 1 error, 1 finding already in <0>, the merge base with HEAD
    "#]]);
    let new = [
        "!remote-reference teams/b/kustomization.yaml:3",
        "!missing-path teams/c/kustomization.yaml:2",
        "!remote-reference teams/c/kustomization.yaml:3",
    ];
    assert_eq!(super::found(&repo, &["--base=HEAD"]), new);
}

#[test]
fn quiet_is_about_text_for_people() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.commit_files(&[("app/kustomization.yaml", "namePrefix: a-\n")]);
    for args in [["check", "sarif"], ["check", "gitlab"], ["sbom", "cyclonedx"], ["diff", "markdown"], ["diff", "html"]]
    {
        let [command, format] = args;
        repo.commit(command);
        let args = [command, "--format", format];
        let loud = repo.run(&args).success().stdout.clone();
        let quiet = repo.run(&[&args[..], &["-q"]].concat());
        assert_eq!(quiet.success().stdout, loud, "{args:?}");
        assert_eq!(quiet.stderr, "");
        assert_ne!(loud, "", "{args:?}");
    }
    assert_eq!(repo.run(&["check", "-q"]).success().stdout, "");
}
