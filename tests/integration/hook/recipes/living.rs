//! Beside the branch: merged back, vendored, left; and what deploys it.

use super::{blocks, run};
use crate::support::{Kustomize, Project, Repo, base_of};

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

/// Returns what `main` has without its lock: paths with the ids of the blobs.
fn content(repo: &Repo, rev: &str) -> String {
    let listing = repo.git(&["ls-tree", "-r", rev]);
    let is_own = |line: &&str| !line.ends_with(&format!("\t{LOCK}"));
    listing
        .lines()
        .filter(is_own)
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns the step that refuses localized files in a pull request.
fn refusal() -> String {
    let step = blocks("Never merge the branch back", "yaml").remove(0);
    let steps: serde_json::Value = serde_yaml::from_str(&step).unwrap();
    steps[0]["run"].as_str().unwrap().to_owned()
}

/// Asserts that the next runs tell of the merge, and takes it back as they say.
#[track_caller]
fn told_and_taken_back(project: &Project, before: &str) {
    let work = &project.work;
    run(project, work, &refusal()).fails(1);
    // On `main` alone nothing is wrong.
    work.run(&["check"]).success();
    let tip = work.id("localized/main");
    let strict = work.run(&["--in-place", "--strict"]);
    strict
        .fails(1)
        .stderr_has("warning[merged-back]: kustomize-localize.lock: the localized branch was merged into its source")
        .lacks("added");
    assert_eq!(work.id("localized/main"), tip);
    let (_, command) = strict.stderr.split_once("to take that back: ").unwrap();
    let command = command.lines().next().unwrap();
    assert!(command.starts_with("git revert --no-edit "), "{command}");
    run(project, work, command).success();
    assert_eq!(content(work, "main"), before);
    run(project, work, &refusal()).success();
    // The branch goes on, and its history with it.
    work.run(&["--in-place"]).success().lacks("merged-back");
    work.git(&["merge-base", "--is-ancestor", &tip, "localized/main"]);
    work.run(&["verify", "localized/main"]).success();
    let localized = work.show("localized/main", BASE);
    assert!(!localized.contains("https:"), "{localized}");
}

#[test]
fn a_branch_that_is_merged_back_at_once_is_reported() {
    let project = locked();
    let work = &project.work;
    let before = content(work, "main");
    work.run(&["--in-place"]).success();
    work.git(&["merge", "--quiet", "--ff-only", "localized/main"]);
    told_and_taken_back(&project, &before);
}

#[test]
fn a_branch_that_is_merged_back_later_is_reported() {
    let project = locked();
    let work = &project.work;
    work.run(&["--in-place"]).success();
    work.write("README.md", "More.\n");
    work.commit("more");
    work.run(&["--in-place"]).success();
    let before = content(work, "main");
    // Merged like a pull request.
    work.git(&[
        "merge",
        "--quiet",
        "--no-ff",
        "-m",
        "Merge",
        "localized/main",
    ]);
    told_and_taken_back(&project, &before);
}

#[test]
fn a_merge_back_is_reported_in_a_shallow_clone_too() {
    let project = locked();
    let work = &project.work;
    work.run(&["--in-place"]).success();
    work.write("README.md", "More.\n");
    work.commit("more");
    work.run(&["--in-place"]).success();
    work.git(&["merge", "--quiet", "--ff-only", "localized/main"]);
    let directory = project.sandbox.path("shallow");
    let url = format!("file://{}", work.path().display());
    let to = directory.to_str().unwrap();
    work.git(&["clone", "--quiet", "--depth=1", &url, to]);
    let shallow = Repo::new(&project.sandbox, directory);
    let tip = &work.id("main")[..12];
    shallow
        .run(&["--in-place", "--strict"])
        .fails(1)
        .stderr_has(&format!("git revert --no-edit -m 2 {tip}\n"));
}

#[test]
fn a_branch_that_is_squashed_into_main_is_reported() {
    let project = locked();
    let work = &project.work;
    let before = content(work, "main");
    work.run(&["--in-place"]).success();
    work.git(&["merge", "--quiet", "--squash", "localized/main"]);
    let message = work.git(&["log", "-1", "--format=%B", "localized/main"]);
    work.git(&["commit", "--quiet", "-m", &message]);
    let tip = work.id("localized/main");
    let warned = work.run(&["--in-place", "--strict"]);
    warned.fails(1).stderr_has("warning[merged-back]");
    assert_eq!(work.id("localized/main"), tip);
    let (_, command) = warned.stderr.split_once("to take that back: ").unwrap();
    run(&project, work, command.lines().next().unwrap()).success();
    assert_eq!(content(work, "main"), before);
    work.run(&["--in-place"]).success().lacks("merged-back");
}

#[test]
fn localizing_on_main_on_purpose_is_not_reported() {
    let project = locked();
    let work = &project.work;
    run(&project, work, &blocks("Localized files on main", "sh")[0]).success();
    assert_eq!(work.git(&["status", "--porcelain"]), "");
    assert!(!work.show("HEAD", BASE).contains("https:"));
    work.write(".kustomize-localize", "locked: error\n");
    work.commit("configure");
    work.run(&["check"]).success();
    work.run(&["--in-place", "--strict"])
        .success()
        .lacks("merged-back")
        .lacks("added");
    let message = work.git(&["log", "-1", "--format=%B", "localized/main"]);
    assert!(!message.contains("Brought in:"), "{message}");
    // References that are only locked are refused now.
    work.write(
        "other/kustomization.yaml",
        format!("resources: ['{URL}']\n"),
    );
    work.run(&["lock"]).success();
    work.git(&["add", "--all"]);
    work.run(&["check"])
        .fails(1)
        .stdout_has("error[remote-reference]");
}

#[test]
fn localized_files_are_added_although_git_ignores_them() {
    let project = locked();
    let work = &project.work;
    work.write(".gitignore", "*.yaml\nlocalized-files\n");
    work.git(&["add", "-f", ".gitignore"]);
    work.git(&["commit", "--quiet", "-m", "ignore"]);
    run(&project, work, &blocks("Localized files on main", "sh")[0]).success();
    work.run(&["check", "--rev", "HEAD"]).success();
    let files = work.files("HEAD").join("\n");
    assert!(
        files.contains("localized-files/example.com/acme/remote/v1/service.yaml"),
        "{files}"
    );
}

#[test]
fn localized_files_can_be_kept_without_the_tool() {
    let project = locked();
    let work = &project.work;
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    work.run(&["hook", "install"]).success();
    work.run(&["--in-place"]).success();
    // The branch is behind when they leave.
    work.write("README.md", "More.\n");
    work.commit("more");
    let built = || {
        kustomize
            .build(&project.sandbox, work.path(), "example/overlay")
            .success()
            .stdout
            .clone()
    };
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
    let one = |recipe: &str| -> serde_json::Value {
        serde_yaml::from_str(&blocks(recipe, "yaml")[0]).unwrap()
    };
    let flux = one("Flux");
    assert_eq!(flux["apiVersion"], "source.toolkit.fluxcd.io/v1");
    assert_eq!(flux["kind"], "GitRepository");
    let spec = flux["spec"].as_object().unwrap();
    let keys: Vec<&String> = spec.keys().collect();
    assert_eq!(keys.len(), 3, "{keys:?}");
    assert!(spec["interval"].is_string() && spec["url"].is_string());
    assert_eq!(
        flux["spec"]["ref"],
        serde_json::json!({"branch": "localized/main"})
    );
    let argo = one("Argo CD");
    assert_eq!(argo["apiVersion"], "argoproj.io/v1alpha1");
    assert_eq!(argo["kind"], "Application");
    assert_eq!(argo["spec"]["source"]["targetRevision"], "localized/main");
    for key in ["project", "destination"] {
        assert!(!argo["spec"][key].is_null(), "{key}");
    }
}
