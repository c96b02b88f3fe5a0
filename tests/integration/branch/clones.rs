//! In place, in clones of all sorts: shallow, bare.

use expect_test::expect;

use super::BRANCH;
use crate::support::{Project, Repo};

const IN_PLACE: [&str; 2] = ["branch", "--no-verify"];
const SHALLOW: [&str; 3] = ["--no-local", "--depth=1", "--branch=main"];

fn fetch(clone: &Repo, depth: &[&str]) {
    let refspec = format!("{BRANCH}:refs/remotes/origin/localized/main");
    clone.git(&[&["fetch", "--quiet"], depth, &["origin", &refspec]].concat());
}

#[test]
fn shallow_clones_go_on_where_the_branch_is() {
    let project = Project::new();
    let work = &project.work;
    work.run(&IN_PLACE).success();
    work.write("README.md", "Second.\n");
    work.commit("second");
    work.run(&IN_PLACE).success();
    let (main, tip) = (work.id("main"), work.id(BRANCH));
    // How deep main and the branch are. `whole::year::clones` has a main that is shallow.
    for (name, depth) in [("branch", &["--depth=1"][..]), ("neither", &[])] {
        let clone = project.sandbox.clone_with(work, name, &SHALLOW);
        clone.git(&["fetch", "--quiet", "--unshallow", "origin", "main"]);
        // `status` does not ask the remote, `branch` does.
        clone.run_as_is(&["status"]).success().stdout_has("missing\nnext: git kustomize-localize branch");
        let hint = format!("hint: git fetch origin +{BRANCH}:refs/remotes/origin/localized/main\n");
        clone.run_unchanged(&IN_PLACE).fails(2).stderr_has(&hint);
        fetch(&clone, depth);
        // Nothing is new, so that there is nothing to commit, however often it runs.
        clone.run(&IN_PLACE).success().stdout_has("nothing to do");
        assert_eq!(clone.id(BRANCH), tip, "{name}");
        clone.run(&["verify", "localized/main"]).success();
        clone.write("README.md", format!("From {name}.\n"));
        let source = clone.commit("more");
        clone.run(&IN_PLACE).success();
        assert_eq!(clone.parents(BRANCH), [tip.clone(), source], "{name}");
        // It can be pushed right away, to a repository that has everything.
        let to = format!("{BRANCH}:refs/heads/from/{name}");
        clone.git(&["push", "--quiet", "origin", &to]);
        work.git(&["fsck", "--strict", "--no-dangling"]);
        let base = work.git(&["merge-base", &main, &format!("from/{name}")]);
        assert_eq!(base, main);
    }
}

#[test]
fn a_gate_in_a_shallow_clone_that_lacks_the_record_says_so() {
    let project = Project::new();
    let work = &project.work;
    work.run(&IN_PLACE).success();
    work.git(&["switch", "--quiet", "localized/main"]);
    work.write("other/config.yaml", "a: b\n");
    work.commit("by hand");
    let clone = project.sandbox.clone_with(work, "clone", &SHALLOW);
    fetch(&clone, &["--depth=1"]);
    // It cannot tell what the commit on top has changed.
    let verify = ["verify", "origin/localized/main"];
    clone.run_unchanged(&verify).fails(2).says(expect![[r#"
        .: 3 localized files, 1 upstream; recorded in the lock alone
        NOT verified origin/localized/main (<0>): not everything could be checked
        error: no commit of `origin/localized/main` in this shallow clone has a record
          hint: git fetch --deepen=100
          hint: or fetch all of it: git fetch --unshallow
    "#]]);
    fetch(&clone, &["--deepen=100"]);
    clone.run_unchanged(&verify).fails(1).says(expect![[r#"
            other/config.yaml: differs from the tree recorded in the message of <0>

            .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
            NOT verified origin/localized/main (<1>): 1 difference
        "#]]);
}

#[test]
fn the_source_is_never_the_branch() {
    let project = Project::new();
    let work = &project.work;
    work.lock();
    work.git(&["switch", "--quiet", "--detach"]);
    for args in [
        &["branch", "--rev", "main", "--branch", "main"][..],
        &["branch", "--rev", "main", "--branch", "refs/heads/main"],
        &["other", "copy", "--rev", "main", "--branch", "main"],
    ] {
        work.run_unchanged(args)
            .fails(2)
            .stderr_has("cannot commit to the source branch `main`")
            .stderr_has("--branch localized/main");
    }
    // Detached, and without a name to begin with.
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: cannot derive the branch to commit to: the source commit is not named by a local branch
          hint: name the branch: `--branch NAME`
    "#]]);
    work.run(&["branch", "--branch", "localized/main"]).success();
    work.run(&["branch", "--rev", "main"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
    "#]]);
}

#[test]
fn a_bare_repository_has_the_branch_too() {
    let project = Project::new();
    let (sandbox, work) = (&project.sandbox, &project.work);
    work.lock();
    let bare = sandbox.clone_with(work, "bare.git", &["--bare"]);
    bare.run(&IN_PLACE).success();
    bare.run(&IN_PLACE).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
    "#]]);
    bare.run(&["branch", "--branch", "main"]).fails(2).says(expect![[r#"
        error: cannot commit to the source branch `main`
          hint: commit to another one: --branch localized/main
    "#]]);
    bare.run(&["verify", "localized/main", "--rebuild"]).success();
    bare.run(&["tree", "--rev", "localized/main"]).success().says(expect![[r#"
        example/overlay
        └── example/base
            ├── example/base/config.yaml
            └── example/base/localized-files/example.com/acme/remote/v1 (from https://example.com/acme/remote.git?ref=v1)
                └── example/base/localized-files/example.com/acme/remote/v1/service.yaml (from https://example.com/acme/remote.git?ref=v1)

        other
        └── other/config.yaml
    "#]]);
    let place = sandbox.path("deployed");
    bare.run(&["branch", "--worktree", place.to_str().unwrap()]).success();
    let deployed = Repo::new(sandbox, place);
    assert_eq!(deployed.git(&["status", "--porcelain"]), "");
    assert_eq!(deployed.id("HEAD"), bare.id(BRANCH));
}

#[test]
fn only_branch_asks_for_what_a_shallow_clone_does_not_show() {
    let project = Project::new();
    let clone = project.sandbox.clone_with(&project.work, "shallow", &SHALLOW);
    clone.git(&["remote", "set-url", "origin", "http://127.0.0.1:9/none.git"]);
    clone.run_as_is(&["status"]).success().stdout_has("branch localized/main: missing\n");
    let offline = [&IN_PLACE[..], &["--offline"]].concat();
    clone.run_unchanged(&offline).fails(2).says(expect![[r#"
        error: this clone does not show whether `origin` has `localized/main`
          hint: run it without `--offline`, so that the remote is asked
    "#]]);
    clone.run_unchanged(&IN_PLACE).fails(2).stderr_has("could not look for `localized/main` at `origin`: ");
}
