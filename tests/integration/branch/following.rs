//! In place, on a branch: the repository as a source commit holds it, localized where it stands.

use serde_json::Value;

use crate::support::{Output, Project, Repo, base_of, config};

const BRANCH: &str = "refs/heads/localized/main";
const BASE: &str = "example/base/kustomization.yaml";
const SERVICE: &str = "example/base/localized-files/example.com/acme/remote/v1/service.yaml";

/// Runs it, which leaves everything but the branch as it was.
#[track_caller]
fn follow(repo: &Repo, more: &[&str]) -> Output {
    let before = repo.state().without_ref(BRANCH);
    let output = repo.run(&[&["--in-place"], more].concat());
    before.assert_same(&repo.state().without_ref(BRANCH));
    output
}

/// Returns the parents of the branch's tip.
fn parents(repo: &Repo) -> Vec<String> {
    let line = repo.git(&["log", "-1", "--format=%P", BRANCH]);
    line.split(' ').map(str::to_owned).collect()
}

#[test]
fn the_whole_repository_is_committed_localized() {
    let project = Project::new();
    let work = &project.work;
    work.write("README.md", "Changed, not committed.\n");
    let output = follow(work, &[]);
    output
        .success()
        .stdout_has("localized the repository in place on branch localized/main (")
        .stdout_has("): 1 reference rewritten, 5 files different from ")
        .stdout_has("to look at it: git show --stat ");
    assert_eq!(parents(work), [work.id("main")]);
    let mut expected = work.files("main");
    for path in [
        "example/base/localized-files/.gitattributes",
        "example/base/localized-files/example.com/acme/remote/v1/kustomization.yaml",
        SERVICE,
        "kustomize-localize.lock",
    ] {
        expected.push(format!("100644 {path}"));
    }
    expected.sort_by(|one, other| one[7..].cmp(&other[7..]));
    assert_eq!(work.files(BRANCH), expected);
    assert_eq!(
        work.show(BRANCH, BASE),
        base_of("v1").replace(
            "https://example.com/acme/remote.git?ref=v1",
            "localized-files/example.com/acme/remote/v1"
        )
    );
    let message = work.git(&["log", "-1", "--format=%B", BRANCH]);
    for line in [
        "Localize main\n",
        "- https://example.com/acme/remote.git?ref=v1 at ",
        "Kustomizations:\n\n- example/base/kustomization.yaml\n",
        "Kustomize-Localize-Target: . in-place\n",
        "Kustomize-Localize-Source: gitCommit:",
    ] {
        assert!(message.contains(line), "{line}: {message}");
    }
    let tree = work.id("localized/main^{tree}");
    assert!(
        message.contains(&format!("Kustomize-Localize-Tree: gitTree:{tree}\n")),
        "{message}"
    );
    work.run(&["verify", "localized/main"])
        .success()
        .stdout_has(".: 3 files, 1 remote; also in the message of ")
        .stdout_has(": as recorded");
    work.run(&["check", "--rev", "localized/main"]).success();
    // Again, and there is nothing to do.
    let tip = work.id(BRANCH);
    follow(work, &[])
        .success()
        .stdout_has("nothing to do: branch localized/main (");
    assert_eq!(work.id(BRANCH), tip);
    let output = follow(work, &["--format", "json"]);
    let report: Value = serde_json::from_str(&output.success().stdout).unwrap();
    assert_eq!(report["outcome"], "unchanged");
    assert_eq!(report["branch"], "localized/main");
    assert_eq!(report["commit"], tip);
}

#[test]
fn it_follows_its_source() {
    let project = Project::new();
    let work = &project.work;
    follow(work, &[]).success();
    // Something that has nothing to do with it: one more commit with two parents.
    let first = work.id(BRANCH);
    work.write("README.md", "More.\n");
    let source = work.commit("more");
    follow(work, &[]).success();
    assert_eq!(parents(work), [first, work.id("main")]);
    assert_eq!(work.show(BRANCH, "README.md"), "More.\n");
    assert_eq!(source, work.id("main"));
    // A new version, while the branch knows the old one.
    project.second_version();
    work.write(BASE, base_of("v2"));
    work.write("new/kustomization.yaml", "resources: [config.yaml]\n");
    work.write("new/config.yaml", config("new"));
    work.git(&["rm", "-q", "-r", "other"]);
    work.commit("v2");
    follow(work, &[]).success();
    let message = work.git(&["log", "-1", "--format=%B", BRANCH]);
    for line in [
        "Moved:\n\n- https://example.com/acme/remote.git from v1 (",
        ") to v2 (",
        "- example/base/kustomization.yaml\n",
        "- new/kustomization.yaml\n",
        "- other/kustomization.yaml\n",
    ] {
        assert!(message.contains(line), "{line}: {message}");
    }
    let files = work.files(BRANCH).join("\n");
    assert!(files.contains("remote/v2/service.yaml"), "{files}");
    assert!(
        !files.contains("remote/v1/") && !files.contains("other/"),
        "{files}"
    );
    // The last remote reference goes: the branch still follows.
    work.write(BASE, "resources: [config.yaml]\n");
    work.commit("local");
    follow(work, &[]).success();
    assert_eq!(work.id("localized/main^{tree}"), work.id("main^{tree}"));
    work.run(&["verify", "localized/main"])
        .success()
        .stdout_has(".: 0 files, 0 remotes; also in the message of ");
    follow(work, &[]).success().stdout_has("nothing to do");
    let log = work.git(&["log", "--first-parent", "--format=%s", BRANCH]);
    assert_eq!(
        log,
        "Localize main\nLocalize main\nLocalize main\nLocalize main\nmanifests"
    );
}

#[test]
fn locked_versions_stay_until_they_are_updated() {
    let project = Project::new();
    let work = &project.work;
    follow(work, &[]).success();
    // The tag moves. Neither the branch nor a new source commit follow it.
    project.second_version();
    project.upstream.git(&["tag", "--force", "v1"]);
    work.write("README.md", "More.\n");
    work.commit("more");
    follow(work, &["--locked"]).success();
    assert!(work.show(BRANCH, SERVICE).contains("one"));
    // The lock of the source decides.
    work.run(&["lock"]).success();
    work.commit("locked");
    follow(work, &[]).success();
    assert!(work.show(BRANCH, SERVICE).contains("two"));
    let message = work.git(&["log", "-1", "--format=%B", BRANCH]);
    assert!(
        message.contains("Moved:\n\n- https://example.com/acme/remote.git?ref=v1 from "),
        "{message}"
    );
}

#[test]
fn a_reference_without_a_ref_is_taken_as_a_branch_is() {
    let project = Project::new();
    let work = &project.work;
    work.write(BASE, base_of("v1").replace("?ref=v1", ""));
    work.commit("no ref");
    follow(work, &[]).success();
    let service = || {
        let paths = work.git(&["ls-tree", "-r", "--name-only", BRANCH]);
        let place = paths.lines().find(|path| path.ends_with("service.yaml"));
        work.show(BRANCH, place.unwrap())
    };
    assert!(service().contains("one"));
    project.second_version();
    follow(work, &[]).success();
    assert!(service().contains("one"));
    follow(work, &["--update"]).success();
    assert!(service().contains("two"));
}

#[test]
fn edits_by_hand_are_refused_and_can_be_discarded() {
    let project = Project::new();
    let work = &project.work;
    follow(work, &[]).success();
    work.git(&["switch", "--quiet", "localized/main"]);
    work.write(SERVICE, "kind: Edited\n");
    work.write("other/added.yaml", "a: b\n");
    let by = work.commit("by hand");
    work.git(&["switch", "--quiet", "main"]);
    follow(work, &[])
        .fails(2)
        .stderr_has(&format!(
            "`localized/main` was edited by hand by {}",
            &by[..12]
        ))
        .stderr_has(SERVICE)
        .stderr_has("other/added.yaml")
        .stderr_has("--overwrite");
    assert_eq!(work.id(BRANCH), by);
    follow(work, &["--overwrite"]).success();
    let message = work.git(&["log", "-1", "--format=%B", BRANCH]);
    assert!(
        message.contains("Edits by hand that are discarded:\n\n- example/base/"),
        "{message}"
    );
    assert!(work.show(BRANCH, SERVICE).contains("one"));
    work.run(&["verify", "localized/main"]).success();
    // One of our commits, rewritten.
    work.git(&["switch", "--quiet", "localized/main"]);
    work.write(SERVICE, "kind: Edited\n");
    work.git(&["commit", "--quiet", "--all", "--amend", "--no-edit"]);
    work.git(&["switch", "--quiet", "main"]);
    follow(work, &[])
        .fails(2)
        .stderr_has("was edited by hand: ");
}

#[test]
fn whatever_check_allows_is_localized() {
    let project = Project::new();
    let work = &project.work;
    work.write(
        ".kustomize-localize",
        "allow:\n- url: 'https://example.com/**'\n  refs: any\n  reason: ours\nrules:\n  remote-reference: 'off'\n",
    );
    work.commit("allowed");
    follow(work, &[]).success();
    assert!(work.show(BRANCH, BASE).contains("localized-files/"));
    work.run(&["verify", "localized/main"]).success();
}

#[test]
fn it_starts_where_check_and_lock_start() {
    let project = Project::new();
    let work = &project.work;
    // Neither can be localized: one cannot be fetched, one cannot be read.
    let template = "resources:\n- https://example.com/nowhere/none.git?ref=v1\n";
    work.write("templates/app/kustomization.yaml", template);
    work.write("old/kustomization.yaml", "resources: [\n");
    for config in [
        "exclude: [templates, old]\n",
        "include: [example]\n",
        "include: ['*/base', 'ex*/overlay']\nexclude: ['templates/**', example/base]\n",
    ] {
        work.write(".kustomize-localize", config);
        work.run(&["lock"]).success();
        work.commit("with a lock");
        work.run(&["check", "--rev", "HEAD"]).success();
        follow(work, &["--locked"]).success();
        // Reached roots are localized, also excluded ones; the others do not change.
        assert!(work.show(BRANCH, BASE).contains("localized-files/"));
        let path = "templates/app/kustomization.yaml";
        assert_eq!(work.show(BRANCH, path), template);
        work.run(&["check", "--rev", BRANCH]).success();
        work.run(&["verify", "localized/main"]).success();
        work.run(&["verify", "localized/main", "--rebuild"])
            .success();
        // The same on disk.
        work.run(&["--in-place", "--no-commit", "--locked"])
            .success()
            .lacks("not-followed");
        assert_eq!(work.read(path), template);
        assert_eq!(work.read(BASE), work.show(BRANCH, BASE));
        work.git(&["reset", "--quiet", "--hard"]);
        work.git(&["clean", "--quiet", "-d", "--force"]);
    }
    work.write(".kustomize-localize", "include: [nowhere]\n");
    work.commit("nothing");
    let all = "`.kustomize-localize` leaves out every kustomization";
    for command in [
        &["check"][..],
        &["lock"],
        &["--in-place"],
        &["--in-place", "--no-commit"],
    ] {
        work.run(command).fails(2).stderr_has(all);
    }
}

#[test]
fn copies_and_the_repository_do_not_share_a_branch() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    follow(work, &[])
        .fails(2)
        .stderr_has("branch `localized/main` holds copies, as `localized-overlay`")
        .stderr_has("--branch NAME")
        .stderr_has(
            "or begin this one again, if the copies are not in use: git branch -D localized/main\n",
        );
    work.run(&["--in-place", "--branch", "hermetic/main"])
        .success();
    project
        .overlay(&["--branch", "hermetic/main"])
        .fails(2)
        .stderr_has("branch `hermetic/main` holds the repository, localized where it stands");
    work.git(&["branch", "-q", "theirs"]);
    work.git(&["commit", "--quiet", "--allow-empty", "--message", "more"]);
    work.git(&["branch", "-q", "-f", "theirs", "HEAD"]);
    work.git(&["reset", "-q", "--hard", "HEAD^"]);
    follow(work, &["--branch", "theirs"])
        .fails(2)
        .stderr_has("branch `theirs` was not made by this tool");
}

#[test]
fn a_fresh_clone_goes_on_from_the_remote_branch() {
    let project = Project::new();
    let work = &project.work;
    follow(work, &[]).success();
    let first = work.id(BRANCH);
    let clone = project.sandbox.clone_of(work, "clone");
    clone.write("README.md", "From the clone.\n");
    clone.commit("from the clone");
    follow(&clone, &[]).success();
    assert_eq!(parents(&clone), [first, clone.id("main")]);
}

#[test]
fn a_failed_run_changes_nothing() {
    let project = Project::new();
    let work = &project.work;
    for (args, expected) in [
        (
            &["example/overlay"][..],
            "`example/overlay`: on a branch the whole repository is localized",
        ),
        (&["--rev", "nothing"], "`nothing` names no commit"),
        (&["--offline"], "offline"),
    ] {
        let before = work.state();
        follow(work, args).fails(2).stderr_has(expected);
        before.assert_same(&work.state());
    }
    work.write(BASE, base_of("v9"));
    let before = work.state();
    follow(work, &[])
        .fails(2)
        .stderr_has("files in use have uncommitted changes: `example/base/kustomization.yaml`")
        .stderr_has("--rev HEAD");
    before.assert_same(&work.state());
    work.commit("missing");
    let before = work.state();
    follow(work, &[]).fails(2).stderr_has("v9");
    before.assert_same(&work.state());
    // An unreadable kustomization does not block the rest.
    work.write(BASE, base_of("v1"));
    work.write("broken/kustomization.yaml", "resources: [\n");
    work.commit("broken");
    follow(work, &[])
        .success()
        .stdout_has("not-followed")
        .stderr_has("broken/kustomization.yaml");
    follow(work, &["--dry-run"])
        .success()
        .stdout_has("would localize");
}

#[test]
fn a_source_that_is_behind_does_not_take_the_branch_back() {
    let project = Project::new();
    let work = &project.work;
    let old = work.id("HEAD");
    work.write("README.md", "Newer.\n");
    let new = work.commit("Newer");
    follow(work, &[]).success();
    let tip = work.id(BRANCH);
    work.git(&["reset", "-q", "--hard", &old]);
    follow(work, &[])
        .fails(2)
        .stderr_has(&format!(
            "`localized/main` holds {} localized, which is newer than HEAD ({})",
            &new[..12],
            &old[..12]
        ))
        .stderr_has("hint: bring HEAD up to date: git pull")
        .stderr_has("hint: to go back on the branch, too: --rev HEAD");
    assert_eq!(work.id(BRANCH), tip);
    // On purpose it goes back, and on again.
    follow(work, &["--rev", "HEAD"]).success();
    assert_eq!(
        work.show(BRANCH, "README.md"),
        work.show("main", "README.md")
    );
    work.git(&["reset", "-q", "--hard", &new]);
    follow(work, &[]).success();
    assert_eq!(work.show(BRANCH, "README.md"), "Newer.\n");
}
