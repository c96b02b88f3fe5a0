//! Many runs at one time: one wins, the others follow or say plainly what to do.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{COPY, DISK, IN_PLACE, PROGRAM, WORKING_TREE, WORKTREE, files, next_version, project};
use crate::support::{Output, Project, Repo, Running, Transcript, rows};

/// How many meet.
const RUNS: usize = 5;
const BRANCH: &str = "localized/main";
const MOVED: &str = "`localized/main` was updated by another process";
const AGAIN: &str = "hint: run the same command again";

/// Starts many runs, waits for all of them, and repeats those that failed with a hint to. None may fail otherwise than
/// with one of the `reasons`. Returns how many had to be repeated.
///
/// Each commits at a time of its own, if `times` is set: what they make is then never the same commit.
#[track_caller]
fn all(project: &Project, runs: &[Vec<&str>], times: bool, reasons: &[&str]) -> usize {
    let outputs = meet(project, runs, times);
    let mut repeated = 0;
    for (output, args) in outputs.iter().zip(runs) {
        if output.status != 0 {
            output.fails(2).stderr_has(AGAIN);
            let known = reasons.iter().any(|reason| output.stderr.contains(reason));
            assert!(known, "{output:?}");
            repeated += 1;
            project.work.run(args).success();
        }
    }
    assert!(repeated < runs.len(), "nobody won: {outputs:?}");
    fsck(project);
    repeated
}

/// Starts many runs and waits for all of them.
fn meet(project: &Project, runs: &[Vec<&str>], times: bool) -> Vec<Output> {
    let start = |(number, args): (usize, &Vec<&str>)| {
        let mut command = project.sandbox.command(PROGRAM, project.work.path());
        if times {
            let date = format!("2026-01-02T03:05:{number:02}Z");
            command.env("GIT_COMMITTER_DATE", date);
        }
        Running::start(command.args(args))
    };
    let running: Vec<Running> = runs.iter().enumerate().map(start).collect();
    let outputs: Vec<Output> = running.into_iter().map(Running::wait).collect();
    fsck(project);
    outputs
}

fn fsck(project: &Project) {
    let fsck = project.work.fsck();
    assert_eq!((fsck.status, &*fsck.stdout), (0, ""), "{fsck:?}");
}

/// Asserts that the branch is one line of so many commits after its source, and each step of it a commit of it.
#[track_caller]
fn is_linear(project: &Project, commits: usize) {
    let work = &project.work;
    let log = work.git(&["log", "--first-parent", "--format=%H", BRANCH, "--not", "main"]);
    let reflog = work.git(&["reflog", "show", "--format=%H", BRANCH]);
    assert_eq!(log, reflog);
    assert_eq!(log.lines().count(), commits);
}

/// Asserts that the cache holds one whole entry for each of so many commits, and nothing else.
#[track_caller]
fn cache_holds(project: &Project, commits: usize) {
    let git = project.sandbox.path("cache/git-kustomize-localize/git");
    let mut found = 0;
    for of_url in git.read_dir().unwrap() {
        for entry in of_url.unwrap().path().read_dir().unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            assert!(!name.starts_with("fetching-"), "{name}");
            let repository = format!("--git-dir={}", entry.path().display());
            let fsck = [&repository, "fsck", "--strict", "--no-dangling"];
            project.work.git(&fsck);
            project.work.git(&[&repository, "cat-file", "-e", &name]);
            found += 1;
        }
    }
    assert_eq!(found, commits);
}

#[test]
fn copies_into_directories_of_their_own() {
    let project = project();
    let names: Vec<String> = (0..RUNS).map(|number| format!("copy-{number}")).collect();
    let runs: Vec<Vec<&str>> = names.iter().map(|name| [&COPY[..1], &[name], &COPY[1..]].concat()).collect();
    all(&project, &runs, false, &[MOVED]);
    is_linear(&project, RUNS);
    cache_holds(&project, 1);
    let files = project.work.files(BRANCH);
    for name in names {
        let lock = format!("100644 {name}/kustomize-localize.lock");
        assert!(files.contains(&lock), "{files:?}");
    }
}

#[test]
fn copies_into_the_same_directory() {
    let project = project();
    all(&project, &vec![COPY.to_vec(); RUNS], true, &[MOVED]);
    is_linear(&project, 1);
    cache_holds(&project, 1);
}

#[test]
fn a_run_that_makes_the_same_commit_need_not_repeat_it() {
    let project = project();
    assert_eq!(all(&project, &vec![IN_PLACE.to_vec(); RUNS], false, &[]), 0);
    is_linear(&project, 1);
    next_version(&project);
    assert_eq!(all(&project, &vec![IN_PLACE.to_vec(); RUNS], false, &[]), 0);
    is_linear(&project, 2);
}

#[test]
fn the_repository() {
    let project = project();
    for turn in [1, 2] {
        all(&project, &vec![IN_PLACE.to_vec(); RUNS], true, &[MOVED]);
        is_linear(&project, turn);
        cache_holds(&project, turn);
        project.work.run(&["verify", BRANCH]).success();
        if turn == 1 {
            next_version(&project);
        }
    }
}

#[test]
fn a_worktree() {
    let project = project();
    for turn in [1, 2] {
        all(&project, &vec![WORKTREE.to_vec(); RUNS], true, &[MOVED]);
        is_linear(&project, turn);
        let deployed = Repo::new(&project.sandbox, project.sandbox.path("deployed"));
        assert_eq!(deployed.git(&["status", "--porcelain", "--branch"]), "## localized/main");
        let worktrees = project.work.git(&["worktree", "list", "--porcelain"]);
        assert!(!worktrees.contains("locked"), "{worktrees}");
        assert_eq!(worktrees.matches("worktree ").count(), 2);
        if turn == 1 {
            next_version(&project);
        }
    }
}

#[test]
fn a_worktree_each() {
    let project = project();
    let places = ["../deployed-0", "../deployed-1", "../deployed-2", "../deployed-3"];
    let run = |place| [IN_PLACE, &["--worktree", place]].concat();
    let outputs = meet(&project, &places.map(run), false);
    let done = outputs.iter().filter(|output| output.status == 0).count();
    assert_eq!(done, 1, "{outputs:?}");
    for output in outputs.iter().filter(|output| output.status != 0) {
        let said = [MOVED, "branch `localized/main` is checked out at `"];
        assert!(said.iter().any(|said| output.stderr.contains(said)), "{output:?}");
    }
    // Nothing is left of the others'.
    let there = |place: &&&str| project.work.path().join(place).exists();
    assert_eq!(places.iter().filter(there).count(), 1);
    let worktrees = project.work.git(&["worktree", "list", "--porcelain"]);
    assert_eq!(worktrees.matches("worktree ").count(), 2, "{worktrees}");
}

#[test]
fn what_is_on_disk() {
    let made = "`localized-overlay` was changed during this run, and stays as it is";
    let changed = "`kustomize-localize.lock` was changed by another process";
    for (run, said, turns) in [(DISK, made, 2), (WORKING_TREE, changed, 1)] {
        let alone = project();
        alone.work.run(run).success();
        let expected = files(alone.work.path());
        let project = project();
        for _ in 0..turns {
            all(&project, &vec![run.to_vec(); RUNS], false, &[said]);
            assert!(files(project.work.path()) == expected);
        }
        is_clean(project.work.path());
    }
}

#[test]
fn parts_of_the_working_tree() {
    let mut transcript = Transcript::default();
    for _ in rows(0..3, 2) {
        let project = project();
        project.second_version();
        let resource = |version| {
            let url = format!("https://example.com/acme/remote.git?ref={version}");
            format!("resources: ['{url}']\n")
        };
        let targets = ["one", "two", "three", "four", "example/overlay"];
        for (name, version) in targets.iter().zip(["v1", "v2", "v1", "v2"]) {
            let path = format!("{name}/kustomization.yaml");
            project.work.write(&path, resource(version));
        }
        project.work.commit("more");
        let runs = targets.map(|target| [WORKING_TREE, &[target]].concat());
        let changed = "`kustomize-localize.lock` was changed by another process";
        all(&project, &runs, false, &[changed]);
        // Nothing that one of them wrote is lost.
        transcript.add(project.work.run(WORKING_TREE).success());
        project.work.git(&["add", "--all"]);
        project.work.run(&["check"]).success();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize vendor --no-verify
        nothing to do: kustomize-localize.lock has 2 remote references
    "#]]);
}

#[test]
fn a_lock_that_another_run_has_written_is_not_written_over() {
    let project = project();
    let (asked, go) = (project.sandbox.path("asked"), project.sandbox.path("go"));
    // A connection that waits.
    project.sandbox.script(
        "ssh",
        &format!(
            "touch {}\nwhile [ ! -e {} ]; do sleep 0.02; done\nfor last; do :; done\neval \"$last\"",
            asked.display(),
            go.display()
        ),
    );
    let upstream = project.upstream.path().display();
    let slow = format!("resources: ['ssh://git@example.org{upstream}?ref=v1']\n");
    project.work.write("slow/kustomization.yaml", slow);
    project.work.commit("slow");
    let of = |target| ["vendor", "--no-verify", target];
    let running = project.work.start(&of("slow"));
    let start = Instant::now();
    while !asked.exists() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    project.work.run(&of("example/overlay")).success();
    let first = files(project.work.path());
    fs::write(&go, "").unwrap();
    running.wait().fails(2).says(expect![[r#"
        error: `kustomize-localize.lock` was changed by another process
          hint: run the same command again
    "#]]);
    assert!(files(project.work.path()) == first);
    project.work.run(&of("slow")).success();
    let lock = project.work.read("kustomize-localize.lock");
    assert!(lock.contains("ssh://") && lock.contains("https://example.com/"), "{lock}");
}

/// Asserts that no run has left anything at the top of the working tree.
#[track_caller]
fn is_clean(top: &Path) {
    for entry in fs::read_dir(top).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(!name.starts_with("kustomize-localize-tmp-"), "{name}");
    }
}
