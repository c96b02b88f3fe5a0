//! Beside the branch: merged back, vendored, left; and what deploys it.

use super::{blocks, run};
use crate::support::{Output, Project, Repo, Transcript, base_of};

const BASE: &str = "example/base/kustomization.yaml";
const LOCK: &str = "kustomize-localize.lock";
const URL: &str = "https://example.com/acme/remote.git?ref=v1";

/// Returns a project with a lock on `main`, where git finds the program.
fn locked() -> Project {
    let project = Project::new();
    project.sandbox.offer_itself();
    project.work.run(&["lock"]).success();
    project.work.commit("lock");
    project
}

/// Returns what a revision has without its lock: paths with the ids of the blobs.
fn content(repo: &Repo, rev: &str) -> String {
    let listing = repo.git(&["ls-tree", "-r", rev]);
    let lines = listing.lines().filter(|line| !line.ends_with(LOCK));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Asserts that the gate and the next runs tell of the merge into `base`, and takes it back as they say.
#[track_caller]
fn told_and_taken_back(project: &Project, base: &str, before: &str) {
    let work = &project.work;
    let gate = work.run(&["check", "--base", base]);
    gate.fails(1).stdout_has("error[merged-back]").lacks("git reset");
    work.run(&["check", "--base", base, "--rev", "main"]).fails(1).stdout_has("error[merged-back]");
    // On `main` alone, too: the next run would refuse it.
    for what in [&[][..], &["--staged"], &["--rev", "HEAD"], &["--rev", "main"], &["--build"]] {
        let found = work.run(&[&["check"], what].concat());
        found.fails(1).stdout_has("error[merged-back]");
        assert_eq!(taking_back(&found), taking_back(&gate), "{what:?}");
    }
    // The branch itself is meant to hold them.
    if work.id("localized/main") != work.id("main") {
        work.run(&["check", "--rev", "localized/main"]).success().lacks("merged-back");
        work.run(&["check", "--rev", &work.id("localized/main")]).success().lacks("merged-back");
    }
    let tip = work.id("localized/main");
    let refused = work.run(&["branch"]);
    refused.fails(1).stderr_has("error[merged-back]: the localized branch was merged into its source").lacks("added");
    assert_eq!(work.id("localized/main"), tip);
    assert_eq!(taking_back(&gate), taking_back(&refused));
    run(project, work, &taking_back(&refused)).success();
    assert_eq!(content(work, "main"), before);
    work.run(&["check"]).success().lacks("merged-back");
    work.run(&["check", "--base", base]).success().lacks("merged-back");
    // The branch goes on, and its history with it.
    work.run(&["branch"]).success().lacks("merged-back");
    work.git(&["merge-base", "--is-ancestor", &tip, "localized/main"]);
    work.run(&["verify", "localized/main"]).success();
    let localized = work.show("localized/main", BASE);
    assert!(!localized.contains("https:"), "{localized}");
}

/// Returns the command that takes a merge back.
#[track_caller]
fn taking_back(output: &Output) -> String {
    let said = format!("{}{}", output.stdout, output.stderr);
    let (_, command) = said.split_once("undo the merge: ").unwrap();
    let command = command.lines().next().unwrap();
    assert!(command.starts_with("git revert --no-edit "), "{command}");
    command.to_owned()
}

#[test]
fn a_branch_that_is_merged_back_is_reported() {
    let mut transcript = Transcript::default();
    for how in ["at once", "later", "resolved", "squashed"] {
        let project = locked();
        let work = &project.work;
        work.decide("rules: {merged-back: error}\n");
        work.run(&["branch"]).success();
        if ["later", "resolved"].contains(&how) {
            work.write("README.md", "More.\n");
            work.commit("more");
            work.run(&["branch"]).success();
        }
        let (base, before) = (work.id("main"), content(work, "main"));
        let merge = match how {
            "at once" => &["--ff-only"][..],
            // Merged like a pull request.
            "later" => &["--no-ff"],
            "resolved" => &["--no-ff", "--no-commit"],
            _ => &["--squash"],
        };
        work.git(&[&["merge", "--quiet", "--no-edit"], merge, &["localized/main"]].concat());
        if how == "squashed" {
            let message = work.message("localized/main");
            // Not yet.
            transcript.add(work.run(&["check", "--staged", "--base", "HEAD"]).fails(1));
            work.git(&["commit", "--quiet", "-m", &message]);
        }
        if how == "resolved" {
            // The lock is neither that of the source nor that of the branch.
            work.write("kustomize-localize.lock", format!("# merged\n{}", work.read("kustomize-localize.lock")));
            work.commit("merge");
        }
        told_and_taken_back(&project, &base, &before);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged --base HEAD
        error[merged-back]: the localized branch was merged into its source: local paths replaced its URLs
         --> kustomize-localize.lock
         = help: undo the merge: git reset --merge
         = help: if this is the localized branch itself, deploy from it, and do not merge it

        for more: git kustomize-localize explain merged-back
        checked 4 kustomizations with 5 references in the index: 1 error
    "#]]);
}

#[test]
fn a_merge_back_is_reported_in_a_shallow_clone_too() {
    let project = locked();
    let work = &project.work;
    work.decide("rules: {merged-back: error}\n");
    work.run(&["branch"]).success();
    work.write("README.md", "More.\n");
    work.commit("more");
    work.run(&["branch"]).success();
    work.git(&["merge", "--quiet", "--ff-only", "localized/main"]);
    let options = ["--no-local", "--depth=1"];
    let shallow = project.sandbox.clone_with(work, "shallow", &options);
    let output = shallow.run(&["branch", "--push"]);
    output.fails(1);
    let revert = format!("git revert --no-edit -m 2 {}", &work.id("main")[..12]);
    assert_eq!(taking_back(&output), revert);
}

#[test]
fn a_gate_lets_the_branch_itself_grow() {
    let project = locked();
    let work = &project.work;
    work.run(&["branch"]).success();
    let tip = work.id("localized/main");
    // It has the files before and after.
    work.write("README.md", "More.\n");
    work.commit("more");
    work.run(&["branch"]).success();
    work.run(&["check", "--rev", "localized/main", "--base", &tip]).success();
    // `rules` of the base decide.
    work.run(&["check", "--rev", "localized/main", "--base", "main"]).fails(1).says(expect![[r#"
        error[merged-back]: the localized branch was merged into its source: local paths replaced its URLs
         --> kustomize-localize.lock
         = help: undo the merge: git revert --no-edit -m 2 <0>
         = help: if this is the localized branch itself, deploy from it, and do not merge it

        for more: git kustomize-localize explain merged-back
        checked 4 kustomizations with 5 references in commit <0> (localized/main): 1 error
    "#]]);
    work.write(".kustomize-localize", "rules: {merged-back: off}\n");
    work.commit("configure");
    work.run(&["check", "--rev", "localized/main", "--base", "main"]).success().says(expect![[r#"
            checked 4 kustomizations with 5 references in commit <0> (localized/main): no problems found
        "#]]);
    // What is staged and not committed is taken back so.
    let before = content(work, "main");
    work.git(&["merge", "--quiet", "--squash", "localized/main"]);
    run(&project, work, "git reset --merge").success();
    assert_eq!(content(work, "HEAD"), before);
    assert_eq!(work.git(&["status", "--porcelain"]), "");
}

#[test]
fn localizing_on_main_on_purpose_is_not_reported() {
    let project = locked();
    let work = &project.work;
    let base = work.id("main");
    // Although git ignores what is added.
    work.write(".gitignore", "*.yaml\nlocalized-files\n");
    work.git(&["add", "-f", ".gitignore"]);
    work.git(&["commit", "--quiet", "-m", "ignore"]);
    run(&project, work, &blocks("Localized files on main", "sh")[0]).success();
    assert_eq!(work.git(&["status", "--porcelain"]), "");
    assert!(!work.show("HEAD", BASE).contains("https:"));
    let files = work.files("HEAD").join("\n");
    assert!(files.contains("acme/remote/v1/service.yaml"), "{files}");
    work.write(".kustomize-localize", "rules: {locked-reference: error}\n");
    work.commit("configure");
    work.run(&["check"]).success();
    work.run(&["check", "--base", &base]).says(expect![[r#"
        new in the configuration: +rules: {locked-reference: error}
        checked 4 kustomizations with 5 references in the working tree: no problems found
    "#]]);
    work.run(&["branch"]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 1 file written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    let message = work.message("localized/main");
    assert!(!message.contains("Brought in:"), "{message}");
    // References that are only locked are refused now.
    let other = format!("resources: ['{URL}']\n");
    work.write("other/kustomization.yaml", other);
    work.run(&["lock"]).success();
    work.git(&["add", "--all", "--force"]);
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[locked-reference]: `https://example.com/acme/remote.git?ref=v1` is locked, but not localized
         --> other/kustomization.yaml:1:13
          |
        1 | resources: ['https://example.com/acme/remote.git?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: vendor it: git kustomize-localize vendor :/other

        for more: git kustomize-localize explain locked-reference
        checked 4 kustomizations with 5 references in the working tree: 1 error
    "#]]);
}

#[test]
fn localized_files_can_be_kept_without_the_tool() {
    let project = locked();
    let work = &project.work;
    let Some(kustomize) = project.sandbox.builds() else { return };
    work.run(&["hook", "install"]).success();
    work.run(&["branch"]).success();
    // The branch is behind when they leave.
    work.write("README.md", "More.\n");
    work.commit("more");
    let built = || kustomize.build(&project.sandbox, work.path(), "example/overlay").success().stdout.clone();
    let before = built();
    let [keep, forget] = blocks("Leaving", "sh").try_into().unwrap();
    run(&project, work, &keep).success();
    run(&project, work, &forget).success();
    assert_eq!(work.git(&["status", "--porcelain"]), "");
    assert_eq!(content(work, "HEAD"), content(work, "localized/main"));
    assert!(!work.files("HEAD").iter().any(|line| line.ends_with(LOCK)));
    assert!(!work.git_directory().join("hooks/pre-commit").exists());
    // Nothing but kustomize, and no upstream.
    std::fs::remove_dir_all(project.sandbox.path("upstream")).unwrap();
    std::fs::remove_dir_all(project.sandbox.path("cache")).unwrap();
    assert_eq!(built(), before);
}

#[test]
fn main_can_go_back_to_urls() {
    let project = locked();
    let work = &project.work;
    run(&project, work, &blocks("Localized files on main", "sh")[0]).success();
    work.git(&["revert", "--no-edit", "HEAD"]);
    assert_eq!(work.show("HEAD", BASE), base_of("v1"));
    work.write(".kustomize-localize", "allow-private: true\n");
    work.commit("configure");
    run(&project, work, &blocks("Leaving", "sh")[1]).success();
    let files = work.files("HEAD").join("\n");
    assert!(!files.contains("localize"), "{files}");
}

#[test]
fn deployments_read_the_branch() {
    let one = |recipe: &str| -> serde_json::Value { serde_yaml::from_str(&blocks(recipe, "yaml")[0]).unwrap() };
    let flux = one("Flux");
    assert_eq!(flux["apiVersion"], "source.toolkit.fluxcd.io/v1");
    assert_eq!(flux["kind"], "GitRepository");
    let spec = flux["spec"].as_object().unwrap();
    assert!(spec.keys().eq(["interval", "ref", "url"]), "{spec:?}");
    let branch = serde_json::json!({"branch": "localized/main"});
    assert_eq!(spec["ref"], branch);
    let argo = one("Argo CD");
    assert_eq!(argo["apiVersion"], "argoproj.io/v1alpha1");
    assert_eq!(argo["kind"], "Application");
    let spec = &argo["spec"];
    assert_eq!(spec["source"]["targetRevision"], "localized/main");
    assert!(!spec["project"].is_null() && !spec["destination"].is_null());
}

#[test]
fn the_page_names_the_repository() {
    let project = Project::new();
    let work = &project.work;
    let shown = || work.run_unchanged(&["help", "recipes"]).success().stdout.clone();
    let nobodys = shown();
    assert!(nobodys.contains("url: https://github.com/OWNER/REPOSITORY\n") && nobodys.contains("branches: [main]"));
    work.git(&["remote", "add", "origin", "https://me:hunter2@git.example.com/acme/fleet.git"]);
    work.git(&["update-ref", "refs/remotes/origin/trunk", "HEAD"]);
    work.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
    let page = shown();
    for part in ["  url: https://git.example.com/acme/fleet\n", "repoURL: https://git.example.com/acme/fleet\n"] {
        assert!(page.contains(part), "{part} {page}");
    }
    for part in ["ref: {branch: localized/trunk}", "targetRevision: localized/trunk\n", "branches: [trunk]"] {
        assert!(page.contains(part), "{part} {page}");
    }
    assert!(
        !page.contains("hunter2")
            && !page.contains("localized/main")
            && !page.contains("rendered/main")
            && page.contains("uses: OWNER/REPOSITORY/"),
        "{page}"
    );
    for url in ["git@git.example.com:acme/other.git", "ssh://git@git.example.com:2222/acme/other.git"] {
        work.git(&["remote", "set-url", "origin", url]);
        assert!(shown().contains("  url: https://git.example.com/acme/other\n"), "{url}");
    }
    // What Flux could not clone is not named.
    work.git(&["remote", "set-url", "origin", "/srv/git/fleet"]);
    assert!(shown().contains("url: https://github.com/OWNER/REPOSITORY\n"));
}
