//! Which branch is committed to, and what a run leaves as it was.

mod history;
mod meanwhile;
pub(crate) mod signed;
mod storage;
mod tip;

use std::fs;
use std::os::unix::fs::symlink;

use super::BRANCH;
use crate::support::{OVERLAY, Project, Repo, Sandbox, Transcript};

/// Localizes the overlay with these arguments one after the other: each fails, and nothing changes.
#[track_caller]
fn refused(refusals: &mut Transcript, work: &Repo, all: &[&[&str]]) {
    let before = work.state();
    for args in all {
        refusals.add(work.run(&[&OVERLAY, *args].concat()).fails(2));
    }
    before.assert_same(&work.state());
}

#[test]
fn the_branch_is_named_after_the_source_and_nothing_else_changes() {
    let project = Project::new();
    let work = &project.work;
    work.write("README.md", "Changed, not committed.\n");
    work.write("untracked.txt", "");
    work.git(&["stash", "push", "--quiet", "--include-untracked"]);
    work.write("README.md", "Changed again.\n");
    work.git(&["add", "README.md"]);
    work.write("README.md", "And again.\n");
    let before = work.state();
    let output = project.overlay(&[]);
    output.success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(output.stderr, "");
    before.assert_same(&work.state().without_ref(BRANCH));

    assert_eq!(work.id("localized/main^"), work.id("main"));
    let mut expected = work.files("main");
    for path in [
        "100644 localized-overlay/base/config.yaml",
        "100644 localized-overlay/base/kustomization.yaml",
        "100644 localized-overlay/base/localized-files/.gitattributes",
        "100644 localized-overlay/base/localized-files/example.com/acme/remote/v1/kustomization.yaml",
        "100644 localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml",
        "100644 localized-overlay/kustomize-localize.lock",
        "100644 localized-overlay/overlay/kustomization.yaml",
    ] {
        expected.push(path.to_owned());
    }
    expected.sort_by(|a, b| a[7..].cmp(&b[7..]));
    assert_eq!(work.files(BRANCH), expected);
    assert_eq!(work.id("localized/main:localized-overlay/base/config.yaml"), work.id("main:example/base/config.yaml"),);
    assert_eq!(
        work.git(&["log", "--walk-reflogs", "--format=%gs", "localized/main"]),
        "kustomize-localize: Localize example/overlay into localized-overlay"
    );
    assert_eq!(project.sandbox.leftovers(), Vec::<String>::new());
}

#[test]
fn another_branch_can_be_named() {
    let project = Project::new();
    let before = project.work.state();
    for name in ["deploy/dev", "refs/heads/deploy/full", "é"] {
        project.overlay(&["--branch", name]).success();
        let full = format!("refs/heads/{}", name.trim_start_matches("refs/heads/"));
        assert_eq!(project.work.id(&format!("{full}^")), project.work.id("main"));
        project.work.git(&["update-ref", "-d", &full]);
    }
    before.assert_same(&project.work.state());
}

#[test]
fn a_detached_head_names_no_branch() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.git(&["checkout", "--quiet", "--detach"]);
    refused(&mut refusals, work, &[&[]]);
    let before = work.state();
    project.overlay(&["--branch", "localized/main"]).success();
    before.assert_same(&work.state().without_ref(BRANCH));
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: cannot derive the branch to commit to: the source commit is not named by a local branch
          hint: name the branch: `--branch NAME`
    "#]]);
}

#[test]
fn a_revision_names_the_branch_if_it_is_one() {
    let project = Project::new();
    let work = &project.work;
    let first = work.id("HEAD");
    work.git(&["branch", "release/1"]);
    work.git(&["tag", "both"]);
    work.remove("example/overlay/kustomization.yaml");
    work.commit("the target is gone");
    work.git(&["branch", "both"]);
    let before = work.state();

    let mut transcript = Transcript::default();
    for rev in ["release/1", "refs/heads/release/1", "heads/release/1"] {
        transcript.add(project.overlay(&["--rev", rev]).success());
        assert_eq!(work.id("localized/release/1^"), first);
        work.git(&["update-ref", "-d", "refs/heads/localized/release/1"]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --rev release/1 --no-verify
        $ git kustomize-localize example/overlay --scope example --rev refs/heads/release/1 --no-verify
        $ git kustomize-localize example/overlay --scope example --rev heads/release/1 --no-verify
        localized example/overlay into localized-overlay on branch localized/release/1 (<0>): 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    // git takes the tag when a branch has the same name: then the branch must name nothing.
    for rev in ["both", &first, &first[..9], "HEAD~1", "tags/both"] {
        project
            .overlay(&["--rev", rev])
            .fails(2)
            .stderr_has("not named by a local branch")
            .stderr_has("`--branch NAME`");
        project.overlay(&["--rev", rev, "--branch", "here"]).success();
        assert_eq!(work.id("here^"), first, "{rev}");
        work.git(&["update-ref", "-d", "refs/heads/here"]);
    }
    before.assert_same(&work.state());
}

#[test]
fn names_that_are_none_are_refused() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let blob = project.work.id("HEAD:README.md");
    for rev in ["nowhere", "", "HEAD~9", &blob, "a b", "main..main", "^main", "main^!"] {
        refused(&mut refusals, &project.work, &[&["--rev", rev]]);
    }
    for name in ["", "-x", "a..b", "a b", "HEAD", "x.lock", "/x", "a//b", "a/", "x@{1}", ".a", "a~1", "a\u{1}b"] {
        let branch = format!("--branch={name}");
        refused(&mut refusals, &project.work, &[&[&branch]]);
    }
    project.overlay(&["--rev=--all"]).fails(2).says(expect![[r#"
        error: `--all` is not a revision: it begins with a dash
    "#]]);
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --rev nowhere --no-verify
        error: unknown revision `nowhere`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize example/overlay --scope example --rev "" --no-verify
        error: empty REV
          hint: name a commit, a branch or a tag, or omit the option
        $ git kustomize-localize example/overlay --scope example --rev HEAD~9 --no-verify
        error: unknown revision `HEAD~9`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize example/overlay --scope example --rev <0> --no-verify
        error: unknown revision `<0>`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize example/overlay --scope example --rev "a b" --no-verify
        error: unknown revision `a b`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize example/overlay --scope example --rev main..main --no-verify
        error: unknown revision `main..main`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize example/overlay --scope example --rev ^main --no-verify
        error: unknown revision `^main`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize example/overlay --scope example --rev main^! --no-verify
        error: unknown revision `main^!`
          hint: fetch it first, or name another one: git log --oneline --all
        $ git kustomize-localize example/overlay --scope example --branch= --no-verify
        error: `` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=-x --no-verify
        error: `-x` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=a..b --no-verify
        error: `a..b` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example "--branch=a b" --no-verify
        error: `a b` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=HEAD --no-verify
        error: `HEAD` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=x.lock --no-verify
        error: `x.lock` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=/x --no-verify
        error: `/x` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=a//b --no-verify
        error: `a//b` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=a/ --no-verify
        error: `a/` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=x@{1} --no-verify
        error: `x@{1}` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=.a --no-verify
        error: `.a` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=a~1 --no-verify
        error: `a~1` is not a branch name
          hint: see `git help check-ref-format`
        $ git kustomize-localize example/overlay --scope example --branch=ab --no-verify
        error: `a\u{1}b` is not a branch name
          hint: see `git help check-ref-format`
    "#]]);
}

#[test]
fn a_localized_branch_cannot_be_the_source() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    project.overlay(&[]).success();
    let work = &project.work;
    work.git(&["update-ref", "refs/remotes/origin/localized/main", BRANCH]);
    for rev in ["localized/main", BRANCH, "origin/localized/main"] {
        refused(&mut refusals, work, &[&["--rev", rev], &["--rev", rev, "--branch", "x"]]);
    }
    // What writes to the working tree would edit what is generated.
    let writes = |said: &str| {
        let before = work.state();
        for args in [&["lock"][..], &["update"], &["vendor"], &["--no-commit", "localized-overlay/overlay", "new"]] {
            work.run(args).fails(2).stderr_has(said);
        }
        before.assert_same(&work.state());
    };
    work.git(&["checkout", "--quiet", "localized/main"]);
    let said = "`localized/main` is a localized branch, not a source";
    refused(&mut refusals, work, &[&[]]);
    writes(said);
    work.git(&["checkout", "--quiet", "--detach"]);
    writes("HEAD is a commit of a localized branch, not a source");
    for branch in [&[][..], &["--branch", "localized/main"], &["--branch", "x"]] {
        let revision = [branch, &["--rev", "HEAD"]].concat();
        refused(&mut refusals, work, &[branch, &revision]);
    }
    // A tag on it says as little as its commit.
    work.git(&["tag", "v1"]);
    refused(&mut refusals, work, &[&["--rev", "v1", "--branch", "x"]]);
    work.git(&["tag", "--delete", "v1"]);
    // Where it was merged by moving `main`, its commit is a source.
    work.git(&["update-ref", "refs/heads/merged", "HEAD"]);
    work.run(&["lock"]).success();
    work.git(&["checkout", "--quiet", "--detach", "main"]);
    work.run(&["lock"]).success();
    // A branch whose commit is missing is another one.
    work.write(".git/refs/heads/missing", format!("{}\n", "1".repeat(40)));
    work.run(&["lock"]).success();
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --rev localized/main --no-verify
        $ git kustomize-localize example/overlay --scope example --rev localized/main --branch x --no-verify
        $ git kustomize-localize example/overlay --scope example --rev refs/heads/localized/main --no-verify
        $ git kustomize-localize example/overlay --scope example --rev refs/heads/localized/main --branch x --no-verify
        $ git kustomize-localize example/overlay --scope example --rev origin/localized/main --no-verify
        $ git kustomize-localize example/overlay --scope example --rev origin/localized/main --branch x --no-verify
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: `localized/main` is a localized branch, not a source
          hint: name the branch it was made from: `--rev BRANCH`
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: HEAD is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
        $ git kustomize-localize example/overlay --scope example --rev HEAD --no-verify
        error: the revision is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
        $ git kustomize-localize example/overlay --scope example --branch localized/main --no-verify
        error: HEAD is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
        $ git kustomize-localize example/overlay --scope example --branch localized/main --rev HEAD --no-verify
        error: the revision is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
        $ git kustomize-localize example/overlay --scope example --branch x --no-verify
        error: HEAD is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
        $ git kustomize-localize example/overlay --scope example --branch x --rev HEAD --no-verify
        $ git kustomize-localize example/overlay --scope example --rev v1 --branch x --no-verify
        error: the revision is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
    "#]]);
}

#[test]
fn a_localized_branch_at_a_remote_of_any_name_is_not_a_source() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    project.overlay(&[]).success();
    let mut transcript = Transcript::default();
    for remote in ["origin", "team"] {
        let name = format!("clone-{}", remote.replace('/', "-"));
        let options = ["--origin", remote];
        let clone = project.sandbox.clone_with(&project.work, &name, &options);
        let tracking = format!("{remote}/localized/main");
        let main = format!("{remote}/main");
        refused(&mut refusals, &clone, &[&["--rev", &tracking], &["--rev", &main, "--branch", "main"]]);
        transcript.add(clone.run(&["verify", "localized/main"]).fails(2));
        clone.git(&["switch", "--quiet", "--detach", &tracking]);
        let lock = clone.run(&["lock"]);
        transcript.add(lock.fails(2));
        // A commit that a source is at as well, wherever that is.
        clone.git(&["switch", "--quiet", "--detach", "main"]);
        clone.run(&["lock"]).success();
        clone.git(&["switch", "--quiet", "--discard-changes", "main"]);
        clone.git(&["clean", "--force", "--quiet"]);
        // The branch goes on where the remote has it.
        transcript.add(clone.run(&OVERLAY).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify localized/main
        error: unknown revision `localized/main`
          hint: use its local name: origin/localized/main
        $ git kustomize-localize lock
        error: HEAD is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
        $ git kustomize-localize example/overlay --scope example --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
        $ git kustomize-localize verify localized/main
        error: unknown revision `localized/main`
          hint: use its local name: team/localized/main
        $ git kustomize-localize lock
        error: HEAD is a commit of a localized branch, not a source
          hint: run it on the source branch (git switch BRANCH), and localize that again
        $ git kustomize-localize example/overlay --scope example --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --rev origin/localized/main --no-verify
        error: `localized/main` is a localized branch, not a source
          hint: name the branch it was made from: `--rev BRANCH`
        $ git kustomize-localize example/overlay --scope example --rev origin/main --branch main --no-verify
        error: cannot commit to the source branch `main`
          hint: commit to another one: --branch localized/main
        $ git kustomize-localize example/overlay --scope example --rev team/localized/main --no-verify
        error: `localized/main` is a localized branch, not a source
          hint: name the branch it was made from: `--rev BRANCH`
        $ git kustomize-localize example/overlay --scope example --rev team/main --branch main --no-verify
        error: cannot commit to the source branch `main`
          hint: commit to another one: --branch localized/main
    "#]]);
}

#[test]
fn a_branch_above_or_below_is_in_the_way() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.git(&["branch", "localized"]);
    for pack in [false, true] {
        if pack {
            work.git(&["pack-refs", "--all"]);
        }
        refused(&mut refusals, work, &[&[], &["--branch", "localized/a/b"]]);
    }
    work.git(&["branch", "-m", "localized", "NEW_NAME"]);
    project.overlay(&[]).success();
    refused(&mut refusals, work, &[&["--branch", "localized"]]);
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized` exists, so git cannot create a branch `localized/main`
          hint: rename it: git branch -m localized NEW_NAME
          hint: or commit to another branch: `--branch NAME`
        $ git kustomize-localize example/overlay --scope example --branch localized/a/b --no-verify
        error: branch `localized` exists, so git cannot create a branch `localized/a/b`
          hint: rename it: git branch -m localized NEW_NAME
          hint: or commit to another branch: `--branch NAME`
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized` exists, so git cannot create a branch `localized/main`
          hint: rename it: git branch -m localized NEW_NAME
          hint: or commit to another branch: `--branch NAME`
        $ git kustomize-localize example/overlay --scope example --branch localized/a/b --no-verify
        error: branch `localized` exists, so git cannot create a branch `localized/a/b`
          hint: rename it: git branch -m localized NEW_NAME
          hint: or commit to another branch: `--branch NAME`
        $ git kustomize-localize example/overlay --scope example --branch localized --no-verify
        error: branch `localized/main` exists, so git cannot create a branch `localized`
          hint: rename it: git branch -m localized/main NEW_NAME
          hint: or commit to another branch: `--branch NAME`
    "#]]);
}

#[test]
fn a_branch_that_is_checked_out_is_refused() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    let linked = work.linked("linked", &["localized/main"]);
    // The second one is the branch that the command stands on itself.
    let own = ["--branch", "main", "--rev", "main^{commit}"];
    refused(&mut refusals, work, &[&[], &own]);
    fs::remove_dir_all(linked.path()).unwrap();
    refused(&mut refusals, work, &[&[]]);
    work.git(&["worktree", "prune"]);
    project.overlay(&[]).success();

    work.git(&["checkout", "--quiet", "localized/main"]);
    let main = ["--rev", "main"];
    refused(&mut refusals, work, &[&main]);
    // A branch that HEAD names but that has no commit yet.
    work.git(&["symbolic-ref", "HEAD", "refs/heads/unborn"]);
    let unborn = ["--rev", "main", "--branch", "unborn"];
    refused(&mut refusals, work, &[&unborn]);
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized/main` is checked out at `/home/me/linked`, whose files would not be updated
          hint: check out another branch there, or commit to another one: `--branch NAME`
          hint: or update its files as well: --worktree /home/me/linked
        $ git kustomize-localize example/overlay --scope example --branch main --rev main^{commit} --no-verify
        error: branch `main` is checked out at `/home/me/work`, whose files would not be updated
          hint: check out another branch there, or commit to another one: `--branch NAME`
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized/main` is checked out at `/home/me/linked`, whose files would not be updated
          hint: check out another branch there, or commit to another one: `--branch NAME`
          hint: that directory is gone; to remove its worktree, with staged changes: git worktree remove -f -f /home/me/linked
        $ git kustomize-localize example/overlay --scope example --rev main --no-verify
        error: branch `localized/main` is checked out at `/home/me/work`, whose files would not be updated
          hint: check out another branch there, or commit to another one: `--branch NAME`
        $ git kustomize-localize example/overlay --scope example --rev main --branch unborn --no-verify
        error: branch `unborn` is checked out at `/home/me/work`, whose files would not be updated
          hint: check out another branch there, or commit to another one: `--branch NAME`
    "#]]);
}

#[test]
fn nothing_to_do_is_told_by_ids() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["branch", "--no-verify"]).success();
    let nothing = |args: &[&str]| {
        work.run_as_is(args).success().stdout_has("nothing to do");
    };
    nothing(&["branch", "--no-verify"]);
    nothing(&["branch", "--no-verify", "--dry-run"]);
    // What was not built is built once.
    if project.sandbox.builds().is_some() {
        work.run_as_is(&["branch"]).success().says(expect![[r#"
            nothing to do: branch localized/main (<0>) already has <1> localized
              verified: 1 build identical, 1 build not changed (kustomize/…, network closed)
        "#]]);
        nothing(&["branch"]);
        project.sandbox.unset("KUSTOMIZE");
    }
    // What is not committed would be missed.
    let place = "example/overlay/kustomization.yaml";
    let text = work.read(place);
    work.write(place, format!("{text}\n"));
    work.run_unchanged(&["branch"]).fails(2).says(expect![[r#"
        error: files in use have uncommitted changes: `example/overlay/kustomization.yaml`
          hint: commit them: git add -f -- :/example/overlay/kustomization.yaml && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
    work.write(place, text);
    // Another file on the tip is an edit, whatever its message says.
    let tip = work.git(&["rev-parse", BRANCH]);
    let message = work.git(&["log", "-1", "--format=%B", BRANCH]);
    let tree = work.git(&["rev-parse", "main^{tree}"]);
    let forged = work.git(&["commit-tree", "-p", tip.trim(), "-p", "main", "-m", &message, tree.trim()]);
    work.git(&["update-ref", BRANCH, forged.trim()]);
    work.run_unchanged(&["branch"]).fails(2).says(expect![[r#"
        error: `localized/main` was edited by hand: `example/base/kustomization.yaml`, `example/base/localized-files`, `kustomize-localize.lock`
          hint: make the changes in the source; to discard these edits: --overwrite
    "#]]);
}

#[test]
fn a_branch_that_is_another_name_is_refused() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.git(&["branch", "victim"]);
    let before = work.state();
    work.git(&["symbolic-ref", BRANCH, "refs/heads/victim"]);
    refused(&mut refusals, work, &[&[]]);
    work.git(&["symbolic-ref", "--delete", BRANCH]);
    project.overlay(&[]).success();
    before.assert_same(&work.state().without_ref(BRANCH));
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized/main` is a symbolic ref to `refs/heads/victim`
          hint: git symbolic-ref --delete refs/heads/localized/main
    "#]]);
}

#[test]
fn without_a_commit_or_a_repository_there_is_nothing_to_commit_to() {
    let sandbox = Sandbox::new();
    let work = sandbox.repo("work");
    work.write("kustomization.yaml", "resources: []\n");
    work.run_unchanged(&[".", "copy"]).fails(2).says(expect![[r#"
        error: this repository has no commit yet
          hint: commit your files first: git add . && git commit
    "#]]);
    let place = sandbox.path("tmp");
    fs::write(place.join("kustomization.yaml"), "resources: []\n").unwrap();
    let mut transcript = Transcript::default();
    for args in [&[".", "copy"][..], &["https://example.com/a/b.git?ref=v1"]] {
        transcript.add(sandbox.run(&place, args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize . copy --no-verify
        $ git kustomize-localize https://example.com/a/b.git?ref=v1 --no-verify
        error: this is not a git repository, so there is nowhere to commit to
          hint: run it in a repository, or copy a TARGET to plain files: `--no-commit`
    "#]]);
    assert_eq!(sandbox.leftovers(), ["kustomization.yaml"]);
}

#[test]
fn paths_are_those_of_the_directory_it_runs_in() {
    let project = Project::new();
    let work = &project.work;
    let before = work.state();
    let inside = work.path().join("example/overlay");
    let run = |args: &[&str]| project.sandbox.run(&inside, args);
    let gives = |args: &[&str], directory: &str| {
        run(args).success();
        let path = format!("100644 {directory}/overlay/kustomization.yaml");
        assert!(work.files(BRANCH).contains(&path), "{args:?}");
        work.git(&["update-ref", "-d", BRANCH]);
    };
    gives(&[".", "--scope", ".."], "example/overlay/localized-overlay");
    gives(&["../overlay", "../../copy", "--scope", ".."], "copy");
    // Absolute paths, also through a link: what a shell shows as the current directory.
    let link = project.sandbox.path("link");
    symlink(work.path(), &link).unwrap();
    for top in [work.path(), &link] {
        let [target, new_dir, scope] = ["example/overlay", "new/copy", "example"].map(|path| top.join(path));
        let [target, new_dir, scope] = [&target, &new_dir, &scope].map(|it| it.to_str().unwrap());
        gives(&[target, new_dir, "--scope", scope], "new/copy");
    }
    run(&["../../../elsewhere", "x"]).fails(2).says(expect![[r#"
            error: the target `../../../elsewhere` is outside of the repository
              hint: name a directory of the repository, or copy the directory without it: `--no-commit`
        "#]]);
    run(&[".", "../../../x", "--scope", ".."]).fails(2).says(expect![[r#"
        error: NEW_DIR `../../../x` is outside of the repository
          hint: choose a directory inside, or write plain files: `--no-commit`
    "#]]);
    before.assert_same(&work.state());
}

#[test]
fn options_alone_name_no_target() {
    let project = Project::new();
    project.work.run_unchanged(&["--scope", "."]).fails(2).says(expect![[r#"
        error: missing TARGET
          hint: see all commands and options: git kustomize-localize -h
    "#]]);
}

#[test]
fn a_new_directory_needs_a_name_that_git_can_hold() {
    let project = Project::new();
    let work = &project.work;
    let before = work.state();
    work.run(&["."]).fails(2).says(expect![[r#"
        error: missing NEW_DIR for `.`
          hint: name it: git kustomize-localize . localized
          hint: to localize the whole repository: git kustomize-localize branch
    "#]]);
    let mut transcript = Transcript::default();
    for new_dir in [".", "", ".git", "a/.GIT/b", "git~1", "README.md/x", "README.md", "example"] {
        transcript.add(work.run(&["other", new_dir]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize other . --no-verify
        error: NEW_DIR is the top of the repository
          hint: choose a directory below it
        $ git kustomize-localize other "" --no-verify
        error: missing NEW_DIR for `other`
          hint: name it: git kustomize-localize other localized
          hint: to localize the whole repository: git kustomize-localize branch
        $ git kustomize-localize other .git --no-verify
        error: NEW_DIR `.git` cannot be used: git does not check out `.git` everywhere
          hint: choose another NEW_DIR
        $ git kustomize-localize other a/.GIT/b --no-verify
        error: NEW_DIR `a/.GIT/b` cannot be used: git does not check out `.GIT` everywhere
          hint: choose another NEW_DIR
        $ git kustomize-localize other git~1 --no-verify
        error: NEW_DIR `git~1` cannot be used: git does not check out `git~1` everywhere
          hint: choose another NEW_DIR
        $ git kustomize-localize other README.md/x --no-verify
        error: `README.md` is a file in the source commit, so `README.md/x` cannot be below it
          hint: choose another NEW_DIR
        $ git kustomize-localize other README.md --no-verify
        error: `README.md` already exists in the source commit, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize other example --no-verify
        error: `example` already exists in the source commit, and was not made by this tool
          hint: choose another NEW_DIR
    "#]]);
    before.assert_same(&work.state());
}

#[test]
fn a_linked_worktree_is_a_place_like_any_other() {
    let project = Project::new();
    let work = &project.work;
    let linked = work.linked("linked", &["-b", "feature"]);
    linked.write("other/config.yaml", crate::support::config("feature"));
    let source = linked.commit("only here");
    let before = (work.state(), linked.state());
    linked.run(&OVERLAY).success();
    let name = "refs/heads/localized/feature";
    before.0.assert_same(&work.state().without_ref(name));
    before.1.assert_same(&linked.state().without_ref(name));
    assert_eq!(work.parents(name), [source]);
}

#[test]
fn git_finds_the_command_and_its_settings_hold() {
    let project = Project::new();
    let work = &project.work;
    project.sandbox.offer_itself();
    for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
        project.sandbox.unset(name);
    }
    let command = ["-c", "user.name=By Option", "kustomize-localize"];
    work.git(&[&command[..], &OVERLAY, &["--no-verify"]].concat());
    assert_eq!(work.git(&["log", "-1", "--format=%an, %cn", BRANCH]), "By Option, By Option");
}

#[test]
fn a_repository_that_the_environment_names_is_used() {
    let project = Project::new();
    let (sandbox, work) = (&project.sandbox, &project.work);
    let before = work.state();
    sandbox.set("GIT_DIR", work.git_directory());
    sandbox.set("GIT_WORK_TREE", work.path());
    let inside = work.path().join("example");
    let args = ["overlay", "../localized-overlay", "--scope", "."];
    sandbox.run(&inside, &args).success();
    // Outside of the working tree paths begin at its top, as in a bare repository.
    sandbox.run(&sandbox.path("tmp"), &OVERLAY).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
    sandbox.unset("GIT_DIR");
    sandbox.unset("GIT_WORK_TREE");
    before.assert_same(&work.state().without_ref(BRANCH));
}

#[test]
fn a_submodule_is_a_repository_of_its_own() {
    let project = Project::new();
    let above = project.sandbox.repo("above");
    let url = project.work.path().to_str().unwrap();
    project.sandbox.configure("protocol.file.allow", "always");
    above.git(&["submodule", "--quiet", "add", url, "sub"]);
    above.commit("a submodule");
    let before = above.state();
    let sub = Repo::new(&project.sandbox, above.path().join("sub"));
    sub.run(&OVERLAY).success();
    assert_eq!(sub.parents(BRANCH), [sub.id("main")]);
    before.assert_same(&above.state());
}
