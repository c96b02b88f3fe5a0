//! A tip that is not what we made.

use super::BRANCH;
use crate::support::{Project, Repo, config};

/// Checks the branch out, lets `edit` change files, and commits that with `arguments`.
fn edit(project: &Project, arguments: &[&str], edit: impl Fn(&Repo)) -> String {
    let linked = project.sandbox.path("edit");
    let work = &project.work;
    work.git(&[
        "worktree",
        "add",
        "--quiet",
        linked.to_str().unwrap(),
        "localized/main",
    ]);
    let repo = Repo::new(&project.sandbox, linked.clone());
    edit(&repo);
    repo.git(&["add", "--all"]);
    repo.git(&[&["commit", "--quiet"], arguments].concat());
    work.git(&["worktree", "remove", linked.to_str().unwrap()]);
    work.id(BRANCH)
}

#[track_caller]
fn refused(project: &Project, paths: &[&str]) -> String {
    let before = project.work.state();
    let output = project.overlay(&[]);
    output
        .fails(2)
        .stderr_has("`localized/main` was edited by hand")
        .stderr_has("hint: what should be deployed belongs in the source; to discard these edits: --overwrite");
    let said: Vec<&str> = output
        .stderr
        .lines()
        .next()
        .unwrap()
        .rsplit_once(": ")
        .unwrap()
        .1
        .split(", ")
        .map(|path| path.trim_matches('`'))
        .collect();
    assert_eq!(said, paths);
    before.assert_same(&project.work.state());
    output.stderr
}

#[test]
fn an_edited_tip_is_refused_with_paths_and_commits() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clean = project.work.id("localized/main^{tree}");
    let first = edit(&project, &["-m", "hand"], |repo| {
        repo.write("localized-overlay/base/config.yaml", config("edited"));
        repo.write("localized-overlay/extra.yaml", "");
        repo.write("README.md", "Edited on the branch.\n");
    });
    let second = edit(&project, &["-m", "again"], |repo| {
        repo.remove("localized-overlay/overlay/kustomization.yaml");
        repo.write("new/file.txt", "");
    });
    let stderr = refused(
        &project,
        &[
            "README.md",
            "localized-overlay/base/config.yaml",
            "localized-overlay/extra.yaml",
            "localized-overlay/overlay",
            "new",
        ],
    );
    let by = format!("by {}, {}", &second[..12], &first[..12]);
    assert!(stderr.contains(&by), "no {by:?} in {stderr}");

    project.overlay(&["--overwrite"]).success();
    assert_eq!(project.work.id("localized/main^{tree}"), clean);
    let message = project.work.git(&["log", "-1", "--format=%B", BRANCH]);
    let discarded = "Edits by hand that are discarded:\n\n- README.md\n- localized-overlay/base/config.yaml\n\
                     - localized-overlay/extra.yaml\n- localized-overlay/overlay\n- new\n\nKustomize-";
    assert!(message.contains(discarded), "{message}");
    // Nothing is rewritten: what was discarded can still be found.
    assert_eq!(project.work.id("localized/main^"), second);
    project.overlay(&[]).success().stdout_has("nothing to do");
}

#[test]
fn many_edits_are_counted() {
    let project = Project::new();
    project.overlay(&[]).success();
    edit(&project, &["-m", "many"], |repo| {
        for index in 10..25 {
            repo.write(&format!("file-{index}"), "");
        }
    });
    let output = project.overlay(&[]);
    output
        .fails(2)
        .stderr_has("`file-19` and 5 more")
        .lacks("file-20");
}

#[test]
fn an_amended_tip_is_noticed_though_its_record_stays() {
    for (path, contents) in [
        ("localized-overlay/base/config.yaml", "edited: true\n"),
        ("localized-overlay/new.yaml", "added: true\n"),
        ("localized-overlay/kustomize-localize.lock", "version: 1\n"),
        ("example/base/config.yaml", "edited: true\n"),
        ("new.txt", "added"),
    ] {
        let project = Project::new();
        project.overlay(&[]).success();
        let clean = project.work.id("localized/main^{tree}");
        edit(&project, &["--amend", "--no-edit"], |repo| {
            repo.write(path, contents)
        });
        let output = project.overlay(&[]);
        output
            .fails(2)
            .stderr_has("was edited by hand: ")
            .stderr_has(path);
        project.overlay(&["--overwrite"]).success();
        assert_eq!(project.work.id("localized/main^{tree}"), clean, "{path}");
    }
}

#[test]
fn an_addition_beside_a_new_directory_is_noticed() {
    let project = Project::new();
    let args = ["other", "deploy/other"];
    project.work.run(&args).success();
    let clean = project.work.id("localized/main^{tree}");
    edit(&project, &["--amend", "--no-edit"], |repo| {
        repo.write("deploy/mine.yaml", "by hand\n");
    });
    project
        .work
        .run(&args)
        .fails(2)
        .stderr_has("`localized/main` was edited by hand: `deploy/mine.yaml`");
    project
        .work
        .run(&[&args[..], &["--overwrite"]].concat())
        .success();
    assert_eq!(project.work.id("localized/main^{tree}"), clean);
}

#[test]
fn an_edit_of_another_directory_is_noticed() {
    let project = Project::new();
    project.work.run(&["other"]).success();
    project.overlay(&[]).success();
    edit(&project, &["--amend", "--no-edit"], |repo| {
        repo.write("localized-other/config.yaml", "edited: true\n");
    });
    refused(&project, &["localized-other/config.yaml"]);
    // This run must not discard it, so that the next one reports it again.
    project
        .work
        .write("example/base/config.yaml", config("new"));
    project.work.commit("new");
    project.overlay(&["--overwrite"]).success();
    let message = project.work.git(&["log", "-1", "--format=%B", BRANCH]);
    assert!(!message.contains("by hand"), "{message}");
    refused(&project, &["localized-other/config.yaml"]);
    project.work.run(&["other", "--overwrite"]).success();
    project.overlay(&[]).success();
}

#[test]
fn a_broken_lock_is_an_edit_like_any_other() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clean = project.work.id("localized/main^{tree}");
    edit(&project, &["-m", "broken"], |repo| {
        repo.write("localized-overlay/kustomize-localize.lock", "{broken");
    });
    refused(&project, &["localized-overlay/kustomize-localize.lock"]);
    project.overlay(&["--overwrite"]).success();
    assert_eq!(project.work.id("localized/main^{tree}"), clean);

    edit(&project, &["-m", "gone"], |repo| {
        repo.remove("localized-overlay/kustomize-localize.lock");
    });
    refused(&project, &["localized-overlay/kustomize-localize.lock"]);
    project.overlay(&["--overwrite"]).success();
    assert_eq!(project.work.id("localized/main^{tree}"), clean);
}

#[test]
fn a_directory_that_was_removed_by_hand_is_made_again() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clean = project.work.id("localized/main^{tree}");
    edit(&project, &["-m", "gone"], |repo| {
        repo.git(&["rm", "-r", "--quiet", "localized-overlay"]);
    });
    refused(&project, &["localized-overlay"]);
    project.overlay(&["--overwrite"]).success();
    assert_eq!(project.work.id("localized/main^{tree}"), clean);
}

#[test]
fn an_empty_commit_is_not_an_edit() {
    let project = Project::new();
    project.overlay(&[]).success();
    let tip = edit(&project, &["--allow-empty", "-m", "empty"], |_| ());
    project.overlay(&[]).success().stdout_has("nothing to do");
    assert_eq!(project.work.id(BRANCH), tip);
}

#[test]
fn a_foreign_branch_is_refused() {
    let project = Project::new();
    let work = &project.work;
    work.git(&["checkout", "--quiet", "-b", "feature"]);
    work.write("feature.txt", "");
    work.commit("theirs");
    work.git(&["checkout", "--quiet", "main"]);
    let before = work.state();
    for more in [&[][..], &["--overwrite"]] {
        project
            .overlay(&[&["--branch", "feature"], more].concat())
            .fails(2)
            .stderr_has(
                "branch `feature` was not made by this tool: no commit of it holds a record",
            )
            .stderr_has("hint: commit to another branch: `--branch NAME`");
    }
    before.assert_same(&work.state());
}

#[test]
fn an_edited_lock_does_not_vouch_for_edited_files() {
    let project = Project::new();
    project.overlay(&[]).success();
    let clean = project.work.id("localized/main^{tree}");
    let service = project
        .work
        .git(&["ls-tree", "-r", "--name-only", "localized/main"])
        .lines()
        .find(|path| path.ends_with("/service.yaml"))
        .unwrap()
        .to_owned();
    edit(&project, &["-m", "forged"], |repo| {
        let real = repo.read(&service);
        let forged = real.replace("one", "forged");
        let lock = "localized-overlay/kustomize-localize.lock";
        let text = repo.read(lock);
        let digest = |text: &str| git_kustomize_localize::record::sha256_hex(text.as_bytes());
        assert!(text.contains(&digest(&real)));
        repo.write(lock, text.replace(&digest(&real), &digest(&forged)));
        repo.write(&service, forged);
    });
    refused(
        &project,
        &[&service, "localized-overlay/kustomize-localize.lock"],
    );
    project.overlay(&["--overwrite"]).success();
    assert_eq!(project.work.id("localized/main^{tree}"), clean);
}
