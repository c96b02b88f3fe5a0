//! What else happens while we work: other runs, other people, Ctrl-C.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::BRANCH;
use crate::support::{Project, Transcript, wait_until};

/// Makes every signature take the time to run `script` in the repository.
fn while_signing(project: &Project, script: &str) {
    project.sandbox.script(
        "slow-gpg",
        &format!("cat >/dev/null\n{script}\nprintf '\\n[GNUPG:] SIG_CREATED \\n' >&2\necho signature"),
    );
    project.sandbox.configure("gpg.program", "slow-gpg");
    project.sandbox.configure("commit.gpgSign", "true");
}

#[test]
fn a_branch_that_moves_meanwhile_is_not_overwritten() {
    let project = Project::new();
    let work = &project.work;
    let other = work.git(&["commit-tree", "HEAD^{tree}", "-p", "HEAD", "-m", "theirs"]);
    while_signing(&project, &format!("git update-ref {BRANCH} {other}"));
    let before = work.state();
    let mut transcript = Transcript::default();
    for more in [&[][..], &["--overwrite"]] {
        transcript.add(project.overlay(more).fails(2));
        assert_eq!(work.id(BRANCH), other, "theirs is lost");
        work.git(&["update-ref", "-d", BRANCH]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        $ git kustomize-localize example/overlay --scope example --overwrite --no-verify
        error: `localized/main` was updated by another process
          hint: run the same command again
    "#]]);
    before.assert_same(&work.state());
}

#[test]
fn a_branch_that_git_cannot_move_is_reported() {
    let refused = |project: &Project, said: &str| {
        let before = project.work.state();
        project
            .overlay(&[])
            .fails(2)
            .stderr_has("git could not move `refs/heads/localized/main`")
            .stderr_has(said)
            .lacks("somebody else");
        let appeared = "refs/heads/localized";
        before.assert_same(&project.work.state().without_ref(appeared));
    };
    // One that appears above it meanwhile.
    let project = Project::new();
    while_signing(&project, "git update-ref refs/heads/localized HEAD");
    refused(&project, "refs/heads/localized");
    // A hook.
    let project = Project::new();
    project.work.write_executable(
        ".git/hooks/reference-transaction",
        "#!/bin/sh\n[ \"$1\" != prepared ] || { echo 'not on a Friday' >&2; exit 1; }\n",
    );
    refused(&project, "not on a Friday");
    // A lock that a killed git left, which stays.
    let project = Project::new();
    let lock = ".git/refs/heads/localized/main.lock";
    project.work.write(lock, "");
    refused(&project, "main.lock': File exists");
    refused(&project, "hint: if no git is running, remove the lock: rm ");
    assert_eq!(project.work.read(lock), "");
}

#[test]
fn an_interrupted_fetch_leaves_nothing() {
    let project = Project::new();
    let marks = project.sandbox.path("marks");
    fs::create_dir(&marks).unwrap();
    // A connection that never answers, and outlives being asked to stop.
    project.sandbox.script(
        "ssh",
        &format!(
            "trap '' TERM HUP INT\necho $$ >{0}/pid.new && mv {0}/pid.new {0}/pid\nwhile :; do sleep 1; done",
            marks.display()
        ),
    );
    project.work.write("other/kustomization.yaml", "resources:\n  - ssh://git@example.org/acme/slow.git?ref=v1\n");
    project.work.commit("slow");
    let before = project.work.state();
    let run = project.work.start(&["other"]);
    let pid = marks.join("pid");
    wait_until("it is asked", || pid.exists());
    let started = Instant::now();
    run.interrupt();
    run.wait().fails(130);
    assert!(started.elapsed() < Duration::from_secs(20), "{:?}", started.elapsed());
    let pid = fs::read_to_string(pid).unwrap();
    // A process that is dead but not yet reaped has no command line any more. It was killed before we ended, and dies
    // when the machine gets round to it.
    let command = Path::new("/proc").join(pid.trim()).join("cmdline");
    wait_until("the connection is dead", || fs::read(&command).unwrap_or_default().is_empty());
    before.assert_same(&project.work.state());
    assert_eq!(project.sandbox.leftovers(), Vec::<String>::new());
    assert_eq!(unfinished(&project), Vec::<String>::new());
}

/// Returns what the cache holds that is not a finished repository.
fn unfinished(project: &Project) -> Vec<String> {
    let cache = project.sandbox.path("cache/git-kustomize-localize");
    let mut pending = vec![cache];
    let mut names = Vec::new();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path.clone());
            }
            names.push(path.display().to_string());
        }
    }
    names.retain(|name| name.contains("fetching-"));
    names
}

#[test]
fn a_commit_that_was_ended_leaves_the_branch() {
    for signal in [2, 9] {
        let project = Project::new();
        let mark = project.sandbox.path("signing");
        while_signing(&project, &format!("touch {}; sleep 0.5", mark.display()));
        let before = project.work.state();
        let run = project.work.start(&["other"]);
        wait_until("it is asked", || mark.exists());
        if signal == 2 {
            run.interrupt();
            run.wait().fails(130);
        } else {
            run.kill();
            run.wait().fails(-9);
        }
        before.assert_same(&project.work.state());
        project.work.run(&["other"]).success();
        before.assert_same(&project.work.state().without_ref(BRANCH));
    }
}
