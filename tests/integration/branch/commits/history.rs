//! What the commit continues: its parents, remote-tracking branches, several directories.

use super::BRANCH;
use crate::support::{OVERLAY, Project, Transcript, base_of, config};

#[test]
fn the_second_commit_has_tip_and_source_as_parents() {
    let project = Project::new();
    let work = &project.work;
    // A branch that the source contains is begun anew.
    work.git(&["branch", "localized/main"]);
    let source = work.commit("first");
    project.overlay(&[]).success();
    let first = work.id(BRANCH);
    assert_eq!(work.parents(BRANCH), [source]);
    let before = work.state();
    project.overlay(&[]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
    before.assert_same(&work.state());

    work.write("README.md", "More.\n");
    let source = work.commit("second");
    project.overlay(&[]).success();
    assert_eq!(work.parents(BRANCH), [first, source]);
    assert_eq!(work.show(BRANCH, "README.md"), "More.\n");

    // Also where the tip contains the source: a shallow clone shows nothing but the parents.
    let second = work.id(BRANCH);
    work.run(&["other"]).success();
    assert_eq!(work.parents(BRANCH), [second, work.id("main")]);
    assert_eq!(
        work.git(&["log", "--first-parent", "--format=%s", "-3", BRANCH]),
        "Localize other into localized-other\n\
         Localize example/overlay into localized-overlay\n\
         Localize example/overlay into localized-overlay"
    );
}

#[test]
fn a_run_for_one_directory_keeps_the_others() {
    let project = Project::new();
    let work = &project.work;
    let tree = |path: &str| work.id(&format!("localized/main:{path}"));
    project.overlay(&[]).success();
    work.run(&["other", "deploy/other"]).success();
    work.run(&["other", "deploy/again"]).success();
    let [overlay, again] = ["localized-overlay", "deploy/again"].map(tree);
    assert_eq!(tree("deploy/other"), again);

    work.write("other/config.yaml", config("changed"));
    work.commit("other changed");
    work.run(&["other", "deploy/other"]).success();
    // Only what was asked for is brought up to date.
    assert_eq!(["localized-overlay", "deploy/again"].map(tree), [overlay, again.clone()]);
    assert_ne!(tree("deploy/other"), again);
    // Files that are no longer referenced are no longer there.
    work.write("other/kustomization.yaml", "resources: []\n");
    work.commit("nothing left");
    work.run(&["other", "deploy/other"]).success();
    assert_eq!(
        work.files("localized/main:deploy/other"),
        ["100644 kustomization.yaml", "100644 kustomize-localize.lock"]
    );
}

#[test]
fn a_directory_of_another_target_is_refused() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    let before = work.state();
    let mut transcript = Transcript::default();
    for args in [
        &["localized-overlay"][..],
        &["localized-overlay", "--overwrite"],
        &["localized-overlay/x"],
        &["localized-overlay/base/x/y"],
    ] {
        transcript.add(work.run(&[&["other"], args].concat()).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize other localized-overlay --no-verify
        $ git kustomize-localize other localized-overlay --overwrite --no-verify
        error: `localized-overlay` in `localized/main` contains another target, `example/overlay`
          hint: choose another NEW_DIR
        $ git kustomize-localize other localized-overlay/x --no-verify
        error: `localized-overlay/x` is in `localized-overlay`, which contains `example/overlay` in `localized/main`
          hint: choose another NEW_DIR
        $ git kustomize-localize other localized-overlay/base/x/y --no-verify
        error: `localized-overlay/base/x/y` is in `localized-overlay`, which contains `example/overlay` in `localized/main`
          hint: choose another NEW_DIR
    "#]]);
    before.assert_same(&work.state());
    work.run(&["other", "a/b"]).success();
    work.run_unchanged(&["example/overlay", "a", "--scope", "example"]).fails(2).says(expect![[r#"
            error: `a` already exists in `localized/main`, and was not made by this tool
              hint: choose another NEW_DIR
        "#]]);
    // Nor is hidden what the source has in place of another directory.
    work.write("a/b/mine.txt", "by hand, on main\n");
    work.commit("in the way");
    let output = work.run_unchanged(&OVERLAY);
    output.fails(2).says(expect![[r#"
        error: `a/b` already exists in the source commit, and was not made by this tool
          hint: choose another NEW_DIR
    "#]]);
}

#[test]
fn a_fresh_clone_continues_the_remote_branch() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clone = project.sandbox.clone_of(&project.work, "clone");
    let before = clone.state();
    clone.run(&OVERLAY).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
    // The branch is there all the same, for what comes next in a script.
    before.assert_same(&clone.state().without_ref(BRANCH));
    assert_eq!(clone.id(BRANCH), clone.id("origin/localized/main"));
    clone.git(&["push", "--quiet", "origin", "localized/main"]);
    clone.git(&["branch", "--quiet", "-D", "localized/main"]);

    clone.write("README.md", "Changed.\n");
    clone.commit("second");
    clone.run(&OVERLAY).success();
    assert_eq!(clone.parents(BRANCH), [clone.id("origin/localized/main"), clone.id("main")]);
    clone.git(&["push", "--quiet", "origin", "localized/main"]);
}

#[test]
fn a_branch_that_is_not_that_of_its_remote_is_refused_with_a_hint() {
    let project = Project::new();
    project.overlay(&[]).success();
    let behind = project.sandbox.clone_of(&project.work, "behind");
    behind.git(&["branch", "localized/main", "origin/localized/main"]);
    let diverged = project.sandbox.clone_of(&project.work, "diverged");
    diverged.run(&["other", "here"]).success();
    project.work.run(&["other", "there"]).success();
    let mut transcript = Transcript::default();
    for clone in [behind, diverged] {
        clone.git(&["fetch", "--quiet"]);
        let output = clone.run_unchanged(&OVERLAY);
        transcript.add(output.fails(2));
        // The command that the hint ends with.
        let command = output.stderr.split("git ").last().unwrap();
        clone.git(&command.split_whitespace().collect::<Vec<_>>());
        transcript.add(clone.run(&OVERLAY).success());
        assert_eq!(clone.id(BRANCH), clone.id("origin/localized/main"));
        clone.run(&["other", "here"]).success();
        let files = clone.files(BRANCH).join("\n");
        for directory in ["here", "there", "localized-overlay"] {
            assert!(files.contains(&format!(" {directory}/")), "{files}");
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized/main` is behind `origin/localized/main`
          hint: git fetch . refs/remotes/origin/localized/main:refs/heads/localized/main
        $ git kustomize-localize example/overlay --scope example --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: branch `localized/main` and `origin/localized/main` have diverged
          hint: to discard the local commits: git branch -f localized/main origin/localized/main
        $ git kustomize-localize example/overlay --scope example --no-verify
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
}

#[test]
fn the_remote_of_the_source_is_preferred() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    for remote in ["one", "two"] {
        work.git(&["remote", "add", remote, "https://example.com/acme/nothing.git"]);
        work.git(&["update-ref", &format!("refs/remotes/{remote}/localized/main"), BRANCH]);
    }
    work.git(&["update-ref", "-d", BRANCH]);
    work.git(&["config", "branch.main.remote", "two"]);
    project.overlay(&[]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
    work.git(&["config", "--unset", "branch.main.remote"]);
    work.git(&["remote", "remove", "one"]);
    project.overlay(&[]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
}

#[test]
fn a_locked_reference_stays_where_it_was() {
    let project = Project::new();
    let work = &project.work;
    project.upstream.git(&["branch", "moving", "v1"]);
    work.write("example/base/kustomization.yaml", base_of("moving"));
    work.commit("a branch of upstream");
    project.overlay(&[]).success();
    let overlay = work.id("localized/main:localized-overlay");
    project.second_version();
    project.upstream.git(&["branch", "--force", "moving", "v2"]);
    project.overlay(&[]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
    // Not even the upstream is needed.
    std::fs::rename(project.upstream.path(), project.sandbox.path("gone")).unwrap();
    std::fs::remove_dir_all(project.sandbox.path("cache")).unwrap();
    work.write("README.md", "Changed.\n");
    work.commit("second");
    project.overlay(&["--offline"]).success();
    assert_eq!(work.id("localized/main:localized-overlay"), overlay);
    // Where the copy was merged into the source, its lock still records which commit the branch was.
    work.git(&["merge", "--quiet", "--ff-only", "localized/main"]);
    project.overlay(&[]).success();
    assert_eq!(work.id("localized/main:localized-overlay"), overlay);
    // The commit changes nothing, because its source has the copy already. That is not an edit of its lock.
    work.run(&["verify", "localized/main"]).success().says(expect![[r#"
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded
    "#]]);
    project.overlay(&[]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
}
