//! `branch --push`: what the remote has is continued, whoever was faster, and what it refuses changes nothing here.

use super::BRANCH;
use crate::support::{Output, Project, Repo, Transcript};

const PUSH: [&str; 3] = ["branch", "--no-verify", "--push"];
const SHALLOW: [&str; 3] = ["--no-local", "--depth=1", "--branch=main"];

/// A bare `origin` of a project that is locked, and a clone of it.
struct Shared {
    project: Project,
    origin: Repo,
    clone: Repo,
}

impl Shared {
    fn new() -> Shared {
        let project = Project::new();
        project.work.run(&["lock"]).success();
        project.work.commit("lock");
        let origin = project.sandbox.clone_with(&project.work, "origin.git", &["--bare"]);
        let clone = project.sandbox.clone_of(&origin, "clone");
        Shared { project, origin, clone }
    }

    fn another(&self, name: &str, options: &[&str]) -> Repo {
        self.project.sandbox.clone_with(&self.origin, name, options)
    }
}

/// Lets `repo` run a script before each push.
fn before_push(repo: &Repo, script: &str) {
    repo.hook("pre-push", &format!("#!/bin/sh\nunset GIT_DIR\n{script}\n"));
}

#[test]
fn every_clone_goes_on_where_the_remote_is() {
    let shared = Shared::new();
    let Shared { origin, clone, .. } = &shared;
    clone.run(&PUSH).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          not verified: --no-verify
          pushed to origin
          to look at it: git show --stat <0>
    "#]]);
    let first = origin.id(BRANCH);
    assert_eq!(clone.id(BRANCH), first);
    // A clone of one commit of one branch has never heard of it.
    let shallow = shared.another("shallow", &SHALLOW);
    shallow.run(&PUSH).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
          pushed to origin
    "#]]);
    assert_eq!(shallow.id(BRANCH), first);
    shallow.write("README.md", "Second.\n");
    let source = shallow.commit("second");
    shallow.git(&["push", "--quiet", "origin", "main"]);
    shallow.run(&PUSH).success();
    let second = origin.id(BRANCH);
    assert_eq!(shallow.parents(BRANCH), [first, source]);
    // The first one is behind by now.
    clone.git(&["pull", "--quiet", "--ff-only"]);
    clone.run(&PUSH).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
          pushed to origin
    "#]]);
    assert_eq!(clone.id(BRANCH), second);
    // What was committed without `--push` goes along.
    clone.write("README.md", "Third.\n");
    clone.commit("third");
    clone.run(&["branch", "--no-verify"]).success();
    assert_eq!(origin.id(BRANCH), second);
    clone.run(&PUSH).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
          pushed to origin
    "#]]);
    assert_eq!(origin.id(BRANCH), clone.id(BRANCH));
    origin.git(&["fsck", "--strict", "--no-dangling"]);
}

/// Runs the `git fetch` of a hint.
#[track_caller]
fn as_hinted(repo: &Repo, output: &Output, fetch: &str) {
    output.stderr_has(&format!("{fetch}\n"));
    let words: Vec<&str> = fetch.split(' ').skip(1).collect();
    repo.git(&words);
}

#[test]
fn a_shallow_clone_can_verify_what_it_pushes() {
    let shared = Shared::new();
    let Shared { origin, clone, .. } = &shared;
    clone.write("README.md", "Second.\n");
    clone.commit("second");
    clone.git(&["push", "--quiet", "origin", "main"]);
    let verify = ["verify", "origin/localized/main"];
    let is_sound = |repo: &Repo| {
        assert_eq!(repo.id("origin/localized/main"), origin.id(BRANCH));
        repo.run_unchanged(&verify).success().stdout_has(": as recorded\n");
        repo.run_unchanged(&["verify", "localized/main", "--rebuild"]).success();
    };
    let first = shared.another("first", &SHALLOW);
    first.run(&PUSH).success();
    is_sound(&first);
    // A manual commit, and the one that discards it: between them and the source lies what a shallow clone does not
    // show.
    clone.git(&["fetch", "--quiet"]);
    clone.git(&["switch", "--quiet", "localized/main"]);
    clone.write("other/config.yaml", "a: b\n");
    clone.commit("by hand");
    clone.git(&["push", "--quiet", "origin", "localized/main"]);
    let second = shared.another("second", &SHALLOW);
    let refused = second.run(&PUSH);
    as_hinted(&second, refused.fails(2), "git fetch --deepen=100");
    second.run(&[&PUSH[..], &["--overwrite"]].concat()).success();
    is_sound(&second);
    let third = shared.another("third", &SHALLOW);
    third.run(&PUSH).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
          pushed to origin
    "#]]);
    is_sound(&third);
    // A clone of the branch alone lacks the source.
    let branch = shared.another("branch", &["--no-local", "--depth=1", "--branch=localized/main"]);
    branch.run_unchanged(&["verify"]).success();
    let again = branch.run_unchanged(&["verify", "--rebuild"]);
    again.fails(2).says(expect![[r#"
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified HEAD (<0>): not everything could be checked
        error: `.` cannot be localized again: this shallow clone lacks the source commit <1>
          hint: git fetch --unshallow
    "#]]);
    as_hinted(&branch, &again, "git fetch --unshallow");
    branch.run_unchanged(&["verify", "--rebuild"]).success();
}

#[test]
fn a_branch_that_only_the_remote_has_is_not_begun_again() {
    let shared = Shared::new();
    let (origin, clone) = (&shared.origin, &shared.clone);
    let alone = ["branch", "--no-verify"];
    let single = shared.another("single", &["--single-branch"]);
    // Nobody has it yet.
    single.run(&alone).success();
    single.git(&["branch", "--quiet", "-D", "localized/main"]);
    clone.run(&PUSH).success();
    let fetch = "git fetch origin +refs/heads/localized/main:refs/remotes/origin/localized/main";
    let mut transcript = Transcript::default();
    for repo in [&single, &shared.another("shallow", &SHALLOW)] {
        transcript.add(repo.run_unchanged(&alone).fails(2));
        let words: Vec<&str> = fetch.split(' ').skip(1).collect();
        repo.git(&words);
        transcript.add(repo.run(&alone).success());
        assert_eq!(repo.id(BRANCH), origin.id(BRANCH));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        error: this clone lacks `localized/main` of `origin`, and would start a new history
          hint: git fetch origin +refs/heads/localized/main:refs/remotes/origin/localized/main
          hint: or fetch, commit and push in one step: --push
        $ git kustomize-localize branch --no-verify
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
        $ git kustomize-localize branch --no-verify
        error: this clone lacks `localized/main` of `origin`, and would start a new history
          hint: git fetch origin +refs/heads/localized/main:refs/remotes/origin/localized/main
          hint: or fetch, commit and push in one step: --push
        $ git kustomize-localize branch --no-verify
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
    "#]]);
    // A copy is never pushed.
    single.git(&["update-ref", "-d", "refs/remotes/origin/localized/main"]);
    single.git(&["branch", "--quiet", "-D", "localized/main"]);
    single.run_unchanged(&["other", "copy"]).fails(2).says(expect![[r#"
        error: this clone lacks `localized/main` of `origin`, and would start a new history
          hint: git fetch origin +refs/heads/localized/main:refs/remotes/origin/localized/main
    "#]]);
    let lost = shared.another("lost", &SHALLOW);
    lost.git(&["remote", "set-url", "origin", "/nowhere"]);
    lost.run_unchanged(&alone).fails(2).says(expect![[r#"
            error: could not look for `localized/main` at `origin`: '/nowhere' does not appear to be a git repository
        "#]]);
}

#[test]
fn it_delivers_again_when_somebody_else_is_faster() {
    let shared = Shared::new();
    let (origin, clone) = (&shared.origin, &shared.clone);
    let other = shared.another("other", &[]);
    other.run(&["branch", "--no-verify", "-m", "Other"]).success();
    clone.write("README.md", "Second.\n");
    let source = clone.commit("second");
    let push = format!("git -C {} push -q origin localized/main", other.path().display());
    before_push(clone, &push);
    let walks = shared.project.sandbox.path("walks");
    shared.project.sandbox.set("KUSTOMIZE_LOCALIZE_WALKS", &walks);
    clone.run_as_is(&PUSH).success();
    shared.project.sandbox.unset("KUSTOMIZE_LOCALIZE_WALKS");
    // As many as when nobody is faster.
    assert_eq!(std::fs::read_to_string(&walks).unwrap().lines().count(), 2);
    assert_eq!(clone.parents(BRANCH), [other.id(BRANCH), source]);
    assert_eq!(origin.id(BRANCH), clone.id(BRANCH));
    // Somebody who never stops.
    clone.write("README.md", "Third.\n");
    clone.commit("third");
    let other = other.path().display();
    before_push(
        clone,
        &format!(
            "cd {other} && git fetch -q origin && git checkout -q -B localized/main origin/localized/main \
             && git commit -q --allow-empty -m again && git push -q origin localized/main"
        ),
    );
    let before = clone.id(BRANCH);
    clone.run(&PUSH).fails(2).says(expect![[r#"
        error: the remote branch was updated 3 times during this run
          hint: run the same command again
    "#]]);
    assert_eq!(clone.id(BRANCH), before);
}

#[test]
fn an_edit_that_somebody_else_pushes_meanwhile_is_not_lost() {
    let shared = Shared::new();
    let (origin, clone) = (&shared.origin, &shared.clone);
    clone.run(&PUSH).success();
    let other = shared.another("other", &["--branch=localized/main"]);
    other.write("other/config.yaml", "a: b\n");
    let edit = other.commit("by hand");
    clone.write("README.md", "Second.\n");
    clone.commit("second");
    let before = clone.id(BRANCH);
    before_push(clone, &format!("git -C {} push -q origin localized/main", other.path().display()));
    clone.run_as_is(&PUSH).fails(2).says(expect![[r#"
        error: `localized/main` was edited by hand by <0>: `other/config.yaml`
          hint: make the changes in the source; to discard these edits: --overwrite
    "#]]);
    assert_eq!((clone.id(BRANCH), origin.id(BRANCH)), (before, edit.clone()));
    // One that comes after the plan is discarded by its name, too.
    other.write("other/config.yaml", "a: c\n");
    let again = other.commit("by hand again");
    clone.run_as_is(&[&PUSH[..], &["--overwrite"]].concat()).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          discarded edits by hand by <1>, <2>: `other/config.yaml`
          not verified: --no-verify
          pushed to origin
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(clone.parents(BRANCH)[0], again);
}

#[test]
fn what_cannot_be_pushed_changes_nothing() {
    let shared = Shared::new();
    let clone = &shared.clone;
    shared.origin.hook("pre-receive", "#!/bin/sh\necho not today >&2\nexit 1\n");
    clone
        .run_unchanged(&PUSH)
        .fails(2)
        .stderr_has("could not push `localized/main` to `origin`: ")
        .stderr_has("not today");
    clone.run_unchanged(&[&PUSH[..], &["elsewhere"]].concat()).fails(2).says(expect![[r#"
        error: unknown remote `elsewhere`
          hint: list them: git remote
    "#]]);

    for more in ["--offline", "--dry-run"] {
        clone.run_unchanged(&[&PUSH[..], &[more]].concat()).fails(2).stderr_has("cannot be used with");
    }

    clone.git(&["remote", "remove", "origin"]);
    clone.run_unchanged(&PUSH).fails(2).says(expect![[r#"
        error: there is no remote `origin` to push to
          hint: name one of `git remote`: --push REMOTE
          hint: or add it: git remote add origin URL
    "#]]);
}
