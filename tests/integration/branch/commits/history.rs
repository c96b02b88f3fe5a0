//! What the commit continues: its parents, remote-tracking branches, several directories.

use super::BRANCH;
use crate::support::{OVERLAY, Project, Repo, base_of};

/// Returns the parents of a commit.
fn parents(repo: &Repo, revision: &str) -> Vec<String> {
    let line = repo.git(&["log", "-1", "--format=%P", revision]);
    line.split(' ').map(str::to_owned).collect()
}

/// Returns the paths of the branch that are not in its source, first components only.
fn added(repo: &Repo) -> Vec<String> {
    let listing = repo.git(&[
        "diff",
        "--name-only",
        "--no-renames",
        "main",
        "localized/main",
    ]);
    let mut names: Vec<String> = listing
        .lines()
        .map(|line| line.split('/').next().unwrap().to_owned())
        .collect();
    names.dedup();
    names
}

#[test]
fn the_second_commit_has_tip_and_source_as_parents() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    let first = work.id(BRANCH);
    assert_eq!(parents(work, BRANCH), [work.id("main")]);

    work.write("README.md", "More.\n");
    let source = work.commit("second");
    project.overlay(&[]).success();
    assert_eq!(parents(work, BRANCH), [first.clone(), source]);
    assert_eq!(work.show(BRANCH, "README.md"), "More.\n");

    // The source is in the tip already: the tip is the only parent.
    let second = work.id(BRANCH);
    work.run(&["other"]).success();
    assert_eq!(parents(work, BRANCH), [second]);
    assert_eq!(
        work.git(&["log", "--first-parent", "--format=%s", "-3", BRANCH]),
        "Localize other into localized-other\n\
         Localize example/overlay into localized-overlay\n\
         Localize example/overlay into localized-overlay"
    );
}

#[test]
fn a_branch_that_the_source_contains_is_begun_anew() {
    let project = Project::new();
    let work = &project.work;
    work.git(&["branch", "localized/main"]);
    let source = work.commit("second");
    project.overlay(&[]).success();
    assert_eq!(parents(work, BRANCH), [source]);
}

#[test]
fn the_same_result_is_not_committed_again() {
    let project = Project::new();
    project.overlay(&[]).success();
    let before = project.work.state();
    let tip = project.work.id(BRANCH);
    let output = project.overlay(&[]);
    output.success().stdout_has(&format!(
        "nothing to do: branch localized/main ({}) holds example/overlay in localized-overlay already",
        &tip[..12]
    ));
    before.assert_same(&project.work.state());
}

#[test]
fn a_run_for_one_directory_keeps_the_others() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    work.run(&["other", "deploy/other"]).success();
    work.run(&["other", "deploy/again"]).success();
    assert_eq!(added(work), ["deploy", "localized-overlay"]);
    let overlay = work.id("localized/main:localized-overlay");

    work.write("other/config.yaml", crate::support::config("changed"));
    work.commit("other changed");
    work.run(&["other", "deploy/other"]).success();
    assert_eq!(work.id("localized/main:localized-overlay"), overlay);
    assert_ne!(
        work.id("localized/main:deploy/other"),
        work.id("localized/main:deploy/again"),
        "only what was asked for is brought up to date"
    );
    // Files that are no longer referenced are no longer there.
    work.write("other/kustomization.yaml", "resources: []\n");
    work.commit("nothing left");
    work.run(&["other", "deploy/other"]).success();
    let files = work.files("localized/main:deploy/other");
    assert_eq!(
        files,
        [
            "100644 kustomization.yaml",
            "100644 kustomize-localize.lock"
        ]
    );
}

#[test]
fn a_directory_of_another_target_is_refused() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    let before = work.state();
    for more in [&[][..], &["--overwrite"]] {
        work.run(&[&["other", "localized-overlay"], more].concat())
            .fails(2)
            .stderr_has(
                "`localized-overlay` in `localized/main` holds another target, `example/overlay`",
            )
            .stderr_has("hint: choose another NEW_DIR");
    }
    for inside in ["localized-overlay/x", "localized-overlay/base/x/y"] {
        work.run(&["other", inside])
            .fails(2)
            .stderr_has(&format!(
                "`{inside}` lies in `localized-overlay`, which `localized/main` holds for `example/overlay`"
            ))
            .stderr_has("hint: choose another NEW_DIR");
    }
    before.assert_same(&work.state());
    work.run(&["other", "a/b"]).success();
    work.run(&["example/overlay", "a", "--scope", "example"])
        .fails(2)
        .stderr_has("`a` is there already in `localized/main`, and was not made by this tool");
}

#[test]
fn what_the_source_has_in_place_of_another_directory_is_not_hidden() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["other"]).success();
    work.write("localized-other/mine.txt", "by hand, on main\n");
    work.commit("in the way");
    let before = work.state();
    project.overlay(&[]).fails(2).stderr_has(
        "`localized-other` is there already in the source commit, and was not made by this tool",
    );
    before.assert_same(&work.state());
}

#[test]
fn a_copy_that_was_merged_into_the_source_is_continued() {
    let project = Project::new();
    let work = &project.work;
    project.upstream.git(&["branch", "moving", "v1"]);
    work.write("example/base/kustomization.yaml", base_of("moving"));
    work.commit("a branch of upstream");
    project.overlay(&[]).success();
    work.git(&["merge", "--quiet", "--ff-only", "localized/main"]);
    project.second_version();
    project.upstream.git(&["branch", "--force", "moving", "v2"]);
    // The lock of the copy still records which commit the branch was.
    let output = project.overlay(&[]);
    output.success();
    assert_eq!(
        work.id("localized/main:localized-overlay"),
        work.id("main:localized-overlay")
    );
}

#[test]
fn a_fresh_clone_continues_the_remote_branch() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clone = project.sandbox.clone_of(&project.work, "clone");
    let before = clone.state();
    clone.run(&OVERLAY).success().stdout_has("nothing to do");
    // The branch is there all the same, for what comes next in a script.
    before.assert_same(&clone.state().without_ref(BRANCH));
    assert_eq!(clone.id(BRANCH), clone.id("origin/localized/main"));
    clone.git(&["push", "--quiet", "origin", "localized/main"]);
    clone.git(&["branch", "--quiet", "-D", "localized/main"]);

    clone.write("README.md", "Changed.\n");
    clone.commit("second");
    clone.run(&OVERLAY).success();
    assert_eq!(
        parents(&clone, BRANCH),
        [clone.id("origin/localized/main"), clone.id("main")]
    );
    clone.git(&["push", "--quiet", "origin", "localized/main"]);
}

#[test]
fn a_branch_behind_its_remote_is_refused_with_a_hint() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clone = project.sandbox.clone_of(&project.work, "clone");
    clone.git(&[
        "branch",
        "--quiet",
        "localized/main",
        "origin/localized/main",
    ]);
    project.work.run(&["other"]).success();
    clone.git(&["fetch", "--quiet"]);
    let before = clone.state();
    let output = clone.run(&OVERLAY);
    output
        .fails(2)
        .stderr_has("branch `localized/main` is behind `origin/localized/main`");
    before.assert_same(&clone.state());
    follow_hint(&clone, &output.stderr);
    clone.run(&OVERLAY).success().stdout_has("nothing to do");
    assert_eq!(clone.id(BRANCH), clone.id("origin/localized/main"));
}

#[test]
fn diverged_branches_are_refused_with_a_hint() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clone = project.sandbox.clone_of(&project.work, "clone");
    clone.run(&["other", "here"]).success();
    project.work.run(&["other", "there"]).success();
    clone.git(&["fetch", "--quiet"]);
    let before = clone.state();
    let output = clone.run(&OVERLAY);
    output
        .fails(2)
        .stderr_has("branch `localized/main` and `origin/localized/main` have diverged");
    before.assert_same(&clone.state());
    follow_hint(&clone, &output.stderr);
    clone.run(&["other", "here"]).success();
    let files = clone.files(BRANCH);
    for directory in ["here", "there", "localized-overlay"] {
        assert!(files.iter().any(|file| file.contains(directory)));
    }
}

/// Runs the git command that a hint ends with.
fn follow_hint(repo: &Repo, stderr: &str) {
    let command = stderr.split("git ").last().unwrap();
    let words: Vec<&str> = command.split_whitespace().collect();
    repo.git(&words);
}

#[test]
fn the_remote_of_the_source_is_preferred() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    let tip = work.id(BRANCH);
    work.git(&["update-ref", "-d", BRANCH]);
    work.git(&["update-ref", "refs/remotes/one/localized/main", &tip]);
    work.git(&["update-ref", "refs/remotes/two/localized/main", &tip]);
    let before = work.state();
    project
        .overlay(&[])
        .fails(2)
        .stderr_has("several remotes have a branch `localized/main`")
        .stderr_has("hint: say which one to follow: git branch --track localized/main");
    before.assert_same(&work.state());
    work.git(&["config", "branch.main.remote", "two"]);
    project.overlay(&[]).success().stdout_has("nothing to do");
    work.git(&["config", "--unset", "branch.main.remote"]);
    work.git(&["update-ref", "-d", "refs/remotes/one/localized/main"]);
    project.overlay(&[]).success().stdout_has("nothing to do");
}

#[test]
fn a_locked_reference_stays_where_it_was() {
    let project = Project::new();
    let work = &project.work;
    project.upstream.git(&["branch", "moving", "v1"]);
    work.write("example/base/kustomization.yaml", base_of("moving"));
    work.commit("a branch of upstream");
    project.overlay(&[]).success();
    project.second_version();
    project.upstream.git(&["branch", "--force", "moving", "v2"]);
    project.overlay(&[]).success().stdout_has("nothing to do");
    // Not even the upstream is needed.
    std::fs::rename(project.upstream.path(), project.sandbox.path("gone")).unwrap();
    std::fs::remove_dir_all(project.sandbox.path("cache")).unwrap();
    work.write("README.md", "Changed.\n");
    work.commit("second");
    project.overlay(&["--offline", "--locked"]).success();
    assert_eq!(
        work.id("localized/main^:localized-overlay"),
        work.id("localized/main:localized-overlay")
    );
}
