//! `--worktree`: the branch checked out in a linked worktree, which changes together with it.

use std::fs;
use std::path::PathBuf;

use crate::support::{OVERLAY, Output, Project, Repo};

const SERVICE: &str = "example/base/localized-files/example.com/acme/remote/v1/service.yaml";

/// The directory of the worktree.
fn place(project: &Project) -> PathBuf {
    project.sandbox.path("deployed")
}

/// Localizes in place, with the worktree.
fn follow(project: &Project, more: &[&str]) -> Output {
    let directory = place(project);
    let args = [
        "--in-place",
        "--no-verify",
        "--worktree",
        directory.to_str().unwrap(),
    ];
    project.work.run(&[&args, more].concat())
}

/// Asserts that the worktree has just what the branch has.
#[track_caller]
fn is_clean(project: &Project) {
    let deployed = Repo::new(&project.sandbox, place(project));
    assert_eq!(deployed.git(&["status", "--porcelain"]), "");
    assert_eq!(
        deployed.git(&["symbolic-ref", "HEAD"]),
        "refs/heads/localized/main"
    );
    assert_eq!(deployed.id("HEAD"), project.work.id("localized/main"));
}

#[test]
fn it_is_made_and_follows() {
    let project = Project::new();
    // Also if there is nothing new for the branch.
    project.work.run(&["--in-place", "--no-verify"]).success();
    let said = format!("  checked out at {}\n", place(&project).display());
    follow(&project, &[])
        .success()
        .stdout_has("nothing to do: branch localized/main (")
        .stdout_has(&said);
    is_clean(&project);
    assert!(place(&project).join(SERVICE).is_file());
    let main = project.work.git(&["status", "--porcelain", "--branch"]);
    assert_eq!(main, "## main");
    // Nothing to do.
    follow(&project, &[]).success().stdout_has("nothing to do");
    is_clean(&project);
    project.second_version();
    project.work.write(
        "example/base/kustomization.yaml",
        crate::support::base_of("v2"),
    );
    project.work.commit("v2");
    // Touched files have not changed, and untracked ones stay.
    fs::write(place(&project).join("notes.txt"), "mine").unwrap();
    let file = place(&project).join("README.md");
    fs::write(&file, fs::read(&file).unwrap()).unwrap();
    follow(&project, &[]).success();
    assert!(!place(&project).join(SERVICE).exists());
    fs::remove_file(place(&project).join("notes.txt")).unwrap();
    is_clean(&project);
    // Without it, the branch that is checked out does not move.
    project.work.write("README.md", "more");
    project.work.commit("more");
    project
        .work
        .run(&["--in-place", "--no-verify"])
        .fails(2)
        .stderr_has("branch `localized/main` is checked out at ")
        .stderr_has("or bring its files up to date as well: --worktree /");
    follow(&project, &[]).success();
    is_clean(&project);
}

#[test]
fn a_branch_without_news_gets_one_too() {
    let project = Project::new();
    project.work.run(&["--in-place", "--no-verify"]).success();
    let tip = project.work.id("localized/main");
    follow(&project, &[]).success().stdout_has("nothing to do");
    assert_eq!(project.work.id("localized/main"), tip);
    is_clean(&project);
    // From a sub-directory, and for a copy.
    project.work.git(&[
        "worktree",
        "remove",
        "--force",
        place(&project).to_str().unwrap(),
    ]);
    fs::create_dir(place(&project)).unwrap();
    let args = [
        &OVERLAY[1..],
        &[
            "overlay",
            "../localized",
            "--no-verify",
            "--branch",
            "localized/copy",
            "--worktree",
            "../../deployed",
        ],
    ]
    .concat();
    let args: Vec<&str> = args
        .into_iter()
        .filter(|one| *one != "--scope" && *one != "example")
        .collect();
    project
        .sandbox
        .run(
            &project.work.path().join("example"),
            &[&args[..], &["--scope", "."]].concat(),
        )
        .success();
    assert!(
        place(&project)
            .join("localized/overlay/kustomization.yaml")
            .is_file()
    );
}

#[test]
fn obstacles_are_found_before_anything_changes() {
    let project = Project::new();
    let work = &project.work;
    let refused = |expected: &str| {
        let before = work.state();
        follow(&project, &[]).fails(2).stderr_has(expected);
        before.assert_same(&work.state());
    };
    fs::create_dir(place(&project)).unwrap();
    fs::write(place(&project).join("mine"), "").unwrap();
    refused("is there already, and no worktree of this repository");
    assert_eq!(fs::read_dir(place(&project)).unwrap().count(), 1);
    fs::remove_dir_all(place(&project)).unwrap();
    fs::write(place(&project), "").unwrap();
    refused("is there already");
    fs::remove_file(place(&project)).unwrap();
    work.git(&[
        "worktree",
        "add",
        "-q",
        "-b",
        "other",
        place(&project).to_str().unwrap(),
    ]);
    refused("is a worktree that has `other` checked out");
    work.git(&["worktree", "remove", place(&project).to_str().unwrap()]);
    let before = work.state();
    work.run(&["--in-place", "--no-verify", "--worktree", "."])
        .fails(2)
        .stderr_has("is the main worktree, whose files are yours");
    work.run(&["--in-place", "--no-commit", "--worktree", "x"])
        .fails(2)
        .stderr_has("cannot be used with");
    before.assert_same(&work.state());

    follow(&project, &[]).success();
    let tip = work.id("localized/main");
    work.write("README.md", "more");
    work.commit("more");
    // Changes of its own, staged or not.
    let deployed = Repo::new(&project.sandbox, place(&project));
    deployed.write(SERVICE, "changed");
    refused("has changes of its own");
    deployed.git(&["add", "--all"]);
    refused("has changes of its own");
    deployed.git(&["reset", "-q", "--hard"]);
    // An untracked file in the place of a new one.
    work.write("fresh.yaml", "a: b");
    work.commit("fresh");
    deployed.write("fresh.yaml", "mine");
    refused("cannot be brought up to date");
    assert_eq!(deployed.read("fresh.yaml"), "mine");
    assert_eq!(work.id("localized/main"), tip);
    deployed.remove("fresh.yaml");
    is_clean(&project);
    follow(&project, &[]).success();
    is_clean(&project);
}

#[test]
fn a_run_that_was_killed_in_between_is_gone_on_from() {
    let project = Project::new();
    let work = &project.work;
    follow(&project, &[]).success();
    let old = work.id("localized/main");
    work.write("README.md", "more");
    work.commit("more");
    follow(&project, &[]).success();
    let new = work.id("localized/main");
    // Files first: then the branch did not move.
    work.git(&["update-ref", "refs/heads/localized/main", &old]);
    let deployed = Repo::new(&project.sandbox, place(&project));
    assert_ne!(deployed.git(&["status", "--porcelain"]), "");
    follow(&project, &[]).success();
    is_clean(&project);
    assert_eq!(
        work.id("localized/main^{tree}"),
        work.id(&format!("{new}^{{tree}}"))
    );
    // A ref with a lock file of another process: the files are as before.
    work.write("README.md", "even more");
    work.commit("even more");
    let lock = work.git_directory().join("refs/heads/localized/main.lock");
    fs::write(&lock, "").unwrap();
    follow(&project, &[]).fails(2).stderr_has("remove the lock");
    fs::remove_file(&lock).unwrap();
    is_clean(&project);
}

#[test]
fn a_branch_that_git_is_in_the_middle_of_does_not_move() {
    let project = Project::new();
    let work = &project.work;
    follow(&project, &[]).success();
    let deployed = Repo::new(&project.sandbox, place(&project));
    for text in ["one", "two"] {
        deployed.write("README.md", text);
        deployed.commit(text);
    }
    let refused = |doing: &str, end: &str| {
        for more in [&[][..], &["--overwrite"]] {
            let before = work.state();
            follow(&project, more)
                .fails(2)
                .stderr_has(&format!("branch `localized/main` is being {doing} at "))
                .stderr_has(end);
            work.run(&[&["--in-place", "--no-verify"], more].concat())
                .fails(2)
                .stderr_has(&format!("is being {doing} at "));
            before.assert_same(&work.state());
        }
    };
    project
        .sandbox
        .set("GIT_SEQUENCE_EDITOR", "sed -i s/^pick/edit/");
    deployed.git(&["rebase", "--quiet", "--interactive", "HEAD^^"]);
    refused("rebased", "deployed rebase --abort");
    deployed.git(&["rebase", "--abort"]);
    deployed.git(&["bisect", "start", "HEAD", "HEAD^^"]);
    refused("bisected", "deployed bisect reset");
    deployed.git(&["bisect", "reset"]);
    follow(&project, &["--overwrite"]).success();
    is_clean(&project);
}

#[test]
fn missing_and_existing_worktrees_are_distinguished() {
    let project = Project::new();
    let work = &project.work;
    follow(&project, &[]).success();
    let directory = place(&project);
    let there = directory.to_str().unwrap();
    // Locked or not makes no difference while it is there.
    work.git(&["worktree", "lock", there]);
    work.write("README.md", "more");
    work.commit("more");
    follow(&project, &[]).success();
    is_clean(&project);
    fs::remove_dir_all(&directory).unwrap();
    let gone = |hint: &str| {
        for output in [
            follow(&project, &[]),
            work.run(&["--in-place", "--no-verify"]),
        ] {
            output
                .fails(2)
                .stderr_has("is checked out in a worktree that is gone: ")
                .stderr_has(hint);
            assert!(!output.stderr.contains("--worktree"), "{output:?}");
        }
    };
    gone(&format!(
        "git worktree unlock {there} && git worktree prune"
    ));
    work.git(&["worktree", "unlock", there]);
    gone("forget such worktrees: git worktree prune");
    work.git(&["worktree", "prune"]);
    follow(&project, &[]).success();
    is_clean(&project);
}
