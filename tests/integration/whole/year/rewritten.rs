//! Commits of the branch that went through other hands: squashed, rebased, picked. What they hold is still known by
//! the record in the message and by the tree, and localizing goes on from there.

use super::{BASE, BRANCH as LOCALIZED, COPY, IN_PLACE, LOCK};
use crate::support::{Output, Project, Repo, Transcript, base_of};

/// Returns a project with two deployments, of `v1` and of `v2`.
fn deployed(args: &[&str]) -> Project {
    let project = Project::new();
    project.work.lock();
    project.work.run(args).success();
    project.second_version();
    project.work.write(BASE, base_of("v2"));
    project.work.run_as_is(&["lock"]).success();
    project.work.commit("v2");
    project.work.run(args).success();
    project
}

/// Verifies what was taken over to where its source is not.
#[track_caller]
fn verify_taken(repo: &Repo, rev: &str) -> Output {
    let strict = repo.run_unchanged(&["verify", rev]);
    strict.fails(1).stdout_has(" names the source commit ").stdout_has(": 1 difference\n");
    strict
}

/// Verifies, with what localizing again gives.
#[track_caller]
fn verify(repo: &Repo, args: &[&str]) -> Output {
    let output = repo.run_unchanged(&[&["verify", "--rebuild"], args].concat());
    output
        .success()
        .stdout_has("recorded in the lock and in the message of ")
        .stdout_has(": as recorded, the same when localized again\n");
    output
}

/// Localizes `main` onto a branch, which must make a commit with these parents.
#[track_caller]
fn goes_on(repo: &Repo, args: &[&str], branch: &str, parents: &[String]) {
    repo.run(&[args, &["--branch", branch]].concat()).success().lacks("nothing to do");
    assert_eq!(repo.git(&["log", "-1", "--format=%P", branch]), parents.join(" "));
    verify(repo, &[branch]);
    repo.run(&[args, &["--branch", branch]].concat()).success().stdout_has("nothing to do");
}

/// Commits on the branch by hand, as `change` does, and returns that commit.
fn by_hand(repo: &Repo, change: impl FnOnce()) -> String {
    repo.git(&["switch", "-q", "localized/main"]);
    change();
    let commit = repo.commit("by hand");
    repo.git(&["switch", "-q", "main"]);
    commit
}

/// Returns the trees of two revisions.
fn trees(repo: &Repo, revs: [&str; 2]) -> [String; 2] {
    revs.map(|rev| repo.id(&format!("{rev}^{{tree}}")))
}

#[test]
fn a_squash_holds_no_record_but_the_lock() {
    let mut transcript = Transcript::default();
    for args in [IN_PLACE, COPY] {
        let project = deployed(args);
        let work = &project.work;
        work.git(&["switch", "-q", "-c", "production", "main^"]);
        work.git(&["merge", "-q", "--squash", "localized/main"]);
        work.git(&["commit", "-q", "--no-edit"]);
        work.git(&["switch", "-q", "main"]);
        let [squashed, localized] = trees(work, ["production", LOCALIZED]);
        assert_eq!(squashed, localized);
        transcript.add(work.run_unchanged(&["verify", "production"]).success());
        transcript.add(work.run_unchanged(&[args, &["--branch", "production"]].concat()).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify production
        .: 3 localized files, 1 upstream; recorded in the lock alone
        verified production (<0>): as recorded
        $ git kustomize-localize branch --no-verify --branch production
        error: branch `production` was not made by this tool: none of its commits has a record
          hint: commit to another branch: `--branch NAME`
        $ git kustomize-localize verify production
        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock alone
        verified production (<0>): as recorded
        $ git kustomize-localize example/overlay --scope example --no-verify --branch production
        error: branch `production` was not made by this tool: none of its commits has a record
          hint: commit to another branch: `--branch NAME`
    "#]]);
}

#[test]
fn a_branch_that_was_squashed_onto_main_still_follows() {
    let project = deployed(IN_PLACE);
    let work = &project.work;
    work.git(&["merge", "-q", "--squash", "localized/main"]);
    work.git(&["commit", "-q", "--no-edit"]);
    work.run_unchanged(&["verify", "main"]).success();
    work.run(&["check"]).success();
    work.run(&[IN_PLACE, &["--dry-run"]].concat()).success().says(expect![[r#"
            would localize the repository on branch localized/main: 0 files written, 0 references rewritten, 0 removed
              not verified: --no-verify
              1 warning (merged-back 1)
            warning[merged-back]: the localized branch was merged into its source: local paths replaced its URLs
             --> kustomize-localize.lock
             = help: undo the merge: git revert --no-edit <0>
        "#]]);
    let tip = work.id(LOCALIZED);
    goes_on(work, IN_PLACE, "localized/main", &[tip, work.id("main")]);
    let [main, localized] = trees(work, ["main", LOCALIZED]);
    assert_eq!(main, localized);
    // Another reference beside what is localized on main.
    work.write("other/kustomization.yaml", "resources: [config.yaml, 'https://example.com/acme/remote.git?ref=v1']\n");
    work.commit("Name it elsewhere");
    work.run(&["check"]).fails(1);
    work.lock();
    let tip = work.id(LOCALIZED);
    goes_on(work, IN_PLACE, "localized/main", &[tip, work.id("main")]);
    let lock = work.show(LOCALIZED, LOCK);
    for line in [
        "  - path: example/base/localized-files/example.com/acme/remote/v2/service.yaml\n",
        "  - path: other/localized-files/example.com/acme/remote/v1/service.yaml\n",
    ] {
        assert!(lock.contains(line), "{lock}");
    }
    work.run(&["check", "--rev", LOCALIZED]).success();
}

#[test]
fn a_rebase_is_gone_on_from() {
    let mut transcript = Transcript::default();
    for args in [IN_PLACE, COPY] {
        let project = Project::new();
        let work = &project.work;
        work.lock();
        work.run(args).success();
        work.write("README.md", "More.\n");
        work.write("new.txt", "New.\n");
        let main = work.commit("more");
        work.git(&["rebase", "-q", "main", "localized/main"]);
        let rebased = work.id("HEAD");
        work.git(&["switch", "-q", "main"]);
        let record = ["log", "-1", "--format=%(trailers:key=Kustomize-Localize-Source,valueonly)", LOCALIZED];
        assert_ne!(work.git(&record), format!("gitCommit:{main}"));
        // It is not what its record says, which names the main before.
        transcript.add(work.run_unchanged(&["verify", "localized/main"]).fails(1));
        // Nothing of it would be lost; the record is brought up to date.
        let before = work.id(&format!("{LOCALIZED}^{{tree}}"));
        goes_on(work, args, "localized/main", &[rebased, main.clone()]);
        assert_eq!(work.git(&record), format!("gitCommit:{main}"));
        assert_eq!(work.id(&format!("{LOCALIZED}^{{tree}}")), before);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify localized/main
        README.md: differs from the tree recorded in the message of <0>
        new.txt: differs from the tree recorded in the message of <0>

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified localized/main (<0>): 2 differences
        $ git kustomize-localize verify localized/main
        README.md: differs from the source commit that the message of <0> records
        new.txt: differs from the source commit that the message of <0> records

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified localized/main (<0>): 2 differences
    "#]]);
}

#[test]
fn a_fix_picked_from_main_is_not_an_edit() {
    let mut transcript = Transcript::default();
    for args in [IN_PLACE, COPY] {
        let project = deployed(args);
        let work = &project.work;
        work.write("other/config.yaml", "fixed: yes\n");
        work.write("docs/fix.md", "Fixed.\n");
        work.git(&["rm", "-q", "README.md"]);
        work.commit("fix");
        work.git(&["switch", "-q", "localized/main"]);
        work.git(&["cherry-pick", "main"]);
        let picked = work.id("HEAD");
        work.git(&["switch", "-q", "main"]);
        // Main has more in the new directory by now.
        work.write("docs/more.md", "More.\n");
        let main = work.commit("more");
        goes_on(work, args, "localized/main", &[picked, main]);
        // Main goes on: what was picked is then something else.
        let by = by_hand(work, || work.write("other/config.yaml", "fixed: again\n"));
        work.write("other/config.yaml", "fixed: otherwise\n");
        work.commit("fix");
        transcript.add(work.run_unchanged(args).fails(2).stderr_has(&by[..12]));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: `localized/main` was edited by hand by <0>: `other/config.yaml`
          hint: make the changes in the source; to discard these edits: --overwrite
    "#]]);
}

#[test]
fn a_manual_revert_is_still_an_edit() {
    let project = deployed(IN_PLACE);
    let work = &project.work;
    let place = "example/base/localized-files/example.com/acme/remote/v2/service.yaml";
    // As in main, which has no such file, and a URL.
    by_hand(work, || {
        work.git(&["rm", "-q", place]);
        work.git(&["checkout", "-q", "main", "--", BASE]);
    });
    work.run_unchanged(IN_PLACE).fails(2).says(expect![[r#"
        error: `localized/main` was edited by hand by <0>: `example/base/kustomization.yaml`, `example/base/localized-files/example.com/acme/remote/v2/service.yaml`
          hint: make the changes in the source; to discard these edits: --overwrite
    "#]]);
}

#[test]
fn deployments_can_be_picked_one_by_one() {
    let mut transcript = Transcript::default();
    for args in [IN_PLACE, COPY] {
        let project = deployed(args);
        let work = &project.work;
        work.git(&["switch", "-q", "-c", "release", "main^"]);
        work.git(&["cherry-pick", "localized/main^"]);
        verify(work, &["release"]);
        // A commit of its own in between, so that the next one gets another id.
        work.git(&["commit", "-q", "--allow-empty", "-m", "Approved"]);
        verify(work, &["release"]);
        work.git(&["cherry-pick", "-m", "1", "localized/main"]);
        let picked = work.id("HEAD");
        assert_ne!(picked, work.id(LOCALIZED));
        transcript.add(verify_taken(work, "release").stdout_has(&picked[..12]));
        work.git(&["switch", "-q", "main"]);
        let [release, localized] = trees(work, ["release", LOCALIZED]);
        assert_eq!(release, localized);
        work.write("README.md", "More.\n");
        let main = work.commit("more");
        goes_on(work, args, "release", &[picked, main]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize verify release
        the message of <0> names the source commit <1>, which <0> does not contain

        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified release (<0>): 1 difference
        $ git kustomize-localize verify release
        the message of <0> names the source commit <1>, which <0> does not contain

        localized-overlay from example/overlay: 6 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified release (<0>): 1 difference
    "#]]);
}

#[test]
fn an_older_source_is_localized_only_when_it_is_asked_for() {
    let mut transcript = Transcript::default();
    for args in [IN_PLACE, COPY] {
        let project = deployed(args);
        let work = &project.work;
        let tip = work.id(LOCALIZED);
        let [older, newer] = ["main^", "main"].map(|rev| work.id(rev));
        work.git(&["reset", "-q", "--hard", "main^"]);
        for more in [&[][..], &["--overwrite"]] {
            transcript.add(
                work.run_unchanged(&[args, more].concat()).fails(2).stderr_has(&newer[..12]).stderr_has(&older[..12]),
            );
        }
        goes_on(work, &[args, &["--rev", "HEAD"]].concat(), "localized/main", &[tip, older]);
        let [first, now] = trees(work, ["localized/main~2", LOCALIZED]);
        assert_eq!(first, now);
        // And forward again.
        let tip = work.id(LOCALIZED);
        work.git(&["reset", "-q", "--hard", &newer]);
        goes_on(work, args, "localized/main", &[tip, newer]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --no-verify
        $ git kustomize-localize branch --no-verify --overwrite
        error: `localized/main` was localized from <0>, which is newer than HEAD (<1>)
          hint: git pull
          hint: if it was reset, localize it anyway: git kustomize-localize branch --rev HEAD --branch localized/main
        $ git kustomize-localize example/overlay --scope example --no-verify
        $ git kustomize-localize example/overlay --scope example --no-verify --overwrite
        error: `localized/main` was localized from <0>, which is newer than HEAD (<1>)
          hint: git pull
          hint: if it was reset, localize it anyway: --rev HEAD
    "#]]);
}
