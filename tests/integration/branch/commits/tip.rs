//! A tip that is not what we made.

use git_kustomize_localize::seams::record::sha256_hex;

use super::BRANCH;
use crate::support::{OVERLAY, Project, Repo, Transcript, config};

/// Checks the branch out, lets `edit` change files, and commits that with `arguments`.
fn edit(project: &Project, arguments: &[&str], edit: impl Fn(&Repo)) -> String {
    let work = &project.work;
    let repo = work.linked("edit", &["localized/main"]);
    edit(&repo);
    repo.git(&["add", "--all"]);
    repo.git(&[&["commit", "--quiet"], arguments].concat());
    work.git(&["worktree", "remove", repo.path().to_str().unwrap()]);
    work.id(BRANCH)
}

/// Asserts that localizing names these paths, and nothing changes.
#[track_caller]
fn refused(work: &Repo, args: &[&str], paths: &[&str]) -> String {
    let output = work.run_unchanged(args);
    output.fails(2).stderr_has("discard these edits: --overwrite");
    let said = output.stderr.lines().next().unwrap();
    assert!(said.contains("`localized/main` was edited by hand"), "{said}");
    let (_, said) = said.rsplit_once(": ").unwrap();
    let said: Vec<&str> = said.split(", ").map(|path| path.trim_matches('`')).collect();
    assert_eq!(said, paths);
    output.stderr
}

/// How an edit is committed, the paths that it is noticed at, and what it does.
type Edit<'a> = (&'a [&'a str], &'a [&'a str], &'a dyn Fn(&Repo));

/// Makes `edits` of what `args` localize, one after the other: each is refused with these paths, and can be discarded.
#[track_caller]
fn each_is_noticed(args: &[&str], edits: &[Edit]) {
    let project = Project::new();
    let work = &project.work;
    work.run(args).success();
    let clean = work.id("localized/main^{tree}");
    for (commit, paths, made) in edits {
        edit(&project, commit, made);
        refused(work, args, paths);
        work.run(&[args, &["--overwrite"]].concat()).success();
        assert_eq!(work.id("localized/main^{tree}"), clean, "{paths:?}");
    }
}

const LOCK: &str = "localized-overlay/kustomize-localize.lock";
const SERVICE: &str = "localized-overlay/base/localized-files/example.com/acme/remote/v1/service.yaml";
/// The record of such a tip stays.
const AMEND: &[&str] = &["--amend", "--no-edit"];

#[test]
fn every_edit_is_noticed_and_can_be_discarded() {
    each_is_noticed(
        &OVERLAY,
        &[
            (AMEND, &["localized-overlay/base/config.yaml"], &|repo| {
                repo.write("localized-overlay/base/config.yaml", "edited: true\n");
            }),
            (AMEND, &["localized-overlay/new.yaml"], &|repo| {
                repo.write("localized-overlay/new.yaml", "added: true\n");
            }),
            (AMEND, &["example/base/config.yaml"], &|repo| {
                repo.write("example/base/config.yaml", "edited: true\n");
            }),
            (AMEND, &["new.txt"], &|repo| repo.write("new.txt", "added")),
            (AMEND, &[LOCK], &|repo| repo.write(LOCK, "version: 1\n")),
            (&["-m", "broken"], &[LOCK], &|repo| {
                repo.write(LOCK, "{broken");
            }),
            (&["-m", "gone"], &[LOCK], &|repo| repo.remove(LOCK)),
            (&["-m", "all gone"], &["localized-overlay"], &|repo| {
                repo.git(&["rm", "-r", "--quiet", "localized-overlay"]);
            }),
            // The lock does not vouch for files that were edited together with it.
            (&["-m", "forged"], &[SERVICE, LOCK], &|repo| {
                let real = repo.read(SERVICE);
                let forged = real.replace("one", "forged");
                let lock = repo.read(LOCK);
                let digest = |text: &str| sha256_hex(text.as_bytes());
                assert!(lock.contains(&digest(&real)));
                repo.write(LOCK, lock.replace(&digest(&real), &digest(&forged)));
                repo.write(SERVICE, forged);
            }),
        ],
    );
    // Where the repository is localized in place.
    let service = SERVICE.replace("localized-overlay/", "example/");
    let edited = |repo: &Repo| {
        repo.write(&service, "kind: Edited\n");
        repo.write("other/added.yaml", "a: b\n");
    };
    each_is_noticed(
        &["branch"],
        &[
            (&["-m", "by hand"], &[&service, "other/added.yaml"], &edited),
            (AMEND, &[&service], &|repo| repo.write(&service, "")),
        ],
    );
    // Beside a new directory.
    let path = "deploy/mine.yaml";
    let write = |repo: &Repo| repo.write(path, "by hand\n");
    each_is_noticed(&["other", "deploy/other"], &[(AMEND, &[path], &write)]);
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
        &project.work,
        &OVERLAY,
        &[
            "README.md",
            "localized-overlay/base/config.yaml",
            "localized-overlay/extra.yaml",
            "localized-overlay/overlay",
            "new/file.txt",
        ],
    );
    let by = format!("by {}, {}", &second[..12], &first[..12]);
    assert!(stderr.contains(&by), "no {by:?} in {stderr}");

    project.overlay(&["--overwrite"]).success();
    assert_eq!(project.work.id("localized/main^{tree}"), clean);
    let message = project.work.message(BRANCH);
    let discarded = "Edits by hand that are discarded:\n\n- README.md\n- localized-overlay/base/config.yaml\n\
                     - localized-overlay/extra.yaml\n- localized-overlay/overlay\n- new/file.txt\n\nKustomize-";
    assert!(message.contains(discarded), "{message}");
    // Nothing is rewritten: what was discarded can still be found.
    assert_eq!(project.work.id("localized/main^"), second);
    project.overlay(&[]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
}

#[test]
fn many_edits_are_counted() {
    let project = Project::new();
    project.overlay(&[]).success();
    // A commit without a change edits nothing, so it is not named.
    edit(&project, &["-m", "before", "--allow-empty"], |_| {});
    edit(&project, &["-m", "many"], |repo| {
        for index in 10..25 {
            repo.write(&format!("file-{index}"), "");
        }
    });
    edit(&project, &["-m", "after", "--allow-empty"], |_| {});
    project.overlay(&[]).fails(2).says(expect![[r#"
        error: `localized/main` was edited by hand by <0>: `file-10`, `file-11`, `file-12`, `file-13`, `file-14`, `file-15`, `file-16`, `file-17`, `file-18`, `file-19` and 5 more
          hint: make the changes in the source; to discard these edits: --overwrite
    "#]]);
}

#[test]
fn an_edit_of_another_directory_is_noticed() {
    let project = Project::new();
    project.work.run(&["other"]).success();
    project.overlay(&[]).success();
    edit(&project, &["--amend", "--no-edit"], |repo| {
        repo.write("localized-other/config.yaml", "edited: true\n");
    });
    project.work.run_unchanged(&OVERLAY).fails(2).says(expect![[r#"
        error: `localized/main` was edited by hand: `localized-other/config.yaml`
          hint: to discard the edits in `localized-other`, localize `other` there again: --overwrite
    "#]]);
    // This run must not discard it, so that the next one reports it again.
    project.work.write("example/base/config.yaml", config("new"));
    project.work.commit("new");
    project.overlay(&["--overwrite"]).success();
    let message = project.work.message(BRANCH);
    assert!(!message.contains("by hand"), "{message}");
    project.work.run_unchanged(&OVERLAY).fails(2);
    project.work.run(&["other", "--overwrite"]).success();
    project.overlay(&[]).success();
}

#[test]
fn a_directory_in_the_localized_commit_is_not_lost_if_the_source_has_its_files_and_more() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    edit(&project, AMEND, |repo| repo.write("docs/a", "a"));
    work.write("docs/a", "a");
    work.write("docs/b", "b");
    work.commit("docs");
    project.overlay(&[]).success();
    assert_eq!(work.git(&["show", "localized/main:docs/b"]), "b");
}

#[test]
fn an_empty_commit_is_not_an_edit() {
    let project = Project::new();
    project.overlay(&[]).success();
    let tip = edit(&project, &["--allow-empty", "-m", "empty"], |_| ());
    project.overlay(&[]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
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
    let mut transcript = Transcript::default();
    for args in [&OVERLAY[..], &[OVERLAY[0], OVERLAY[1], OVERLAY[2], "--overwrite"], &["branch"]] {
        let output = work.run_unchanged(&[args, &["--branch", "feature"]].concat());
        transcript.add(output.fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --branch feature --no-verify
        $ git kustomize-localize example/overlay --scope example --overwrite --branch feature --no-verify
        $ git kustomize-localize branch --branch feature --no-verify
        error: branch `feature` was not made by this tool: none of its commits has a record
          hint: commit to another branch: `--branch NAME`
    "#]]);
}

#[test]
fn a_foreign_branch_that_the_source_contains_is_refused() {
    let project = Project::new();
    let work = &project.work;
    work.git(&["branch", "release"]);
    work.write("README.md", "More.\n");
    work.commit("more");
    // As in CI, where no branch is checked out.
    work.git(&["checkout", "--quiet", "--detach"]);
    work.lock();
    let mut transcript = Transcript::default();
    for branch in ["main", "release"] {
        for args in [&["branch"][..], &OVERLAY] {
            transcript.add(work.run_unchanged(&[args, &["--branch", branch]].concat()).fails(2));
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --branch main --no-verify
        $ git kustomize-localize example/overlay --scope example --branch main --no-verify
        error: branch `main` was not made by this tool: none of its commits has a record
          hint: commit to another branch: `--branch NAME`
        $ git kustomize-localize branch --branch release --no-verify
        $ git kustomize-localize example/overlay --scope example --branch release --no-verify
        error: branch `release` was not made by this tool: none of its commits has a record
          hint: commit to another branch: `--branch NAME`
    "#]]);
    // One that came back to the source is continued under any name.
    work.run(&["branch", "--branch", "deployed"]).success();
    work.git(&["merge", "--quiet", "--no-ff", "-m", "back", "deployed"]);
    work.run(&["branch", "--branch", "deployed"]).success();
}

#[test]
#[cfg(target_os = "linux")]
fn a_changed_file_counts_whatever_its_name_is() {
    use std::os::unix::ffi::OsStrExt;
    let project = Project::new();
    let work = &project.work;
    let file = work.path().join(std::ffi::OsStr::from_bytes(b"caf\xe9.txt"));
    std::fs::write(&file, "1\n").unwrap();
    work.commit("file");
    work.run(&["branch", "--no-verify"]).success();
    std::fs::write(&file, "2\n").unwrap();
    work.commit("changed");
    work.run(&["branch", "--no-verify"]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 1 file written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
}
