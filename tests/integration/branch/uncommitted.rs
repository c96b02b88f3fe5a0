//! What only the working tree has, and what only the commit is: both sides say so.

use serde_json::Value;

use crate::support::{Project, Repo, Sandbox, config_map};

const IN_PLACE: [&str; 2] = ["branch", "--no-verify"];
const APP: [(&str, &str); 2] = [("app/kustomization.yaml", "resources: [map.yaml]\n"), ("app/map.yaml", "")];

/// Returns a repository with an example that is not committed.
fn example() -> (Sandbox, Repo) {
    let sandbox = Sandbox::new();
    let work = sandbox.repo("work");
    work.commit_files(&[("README.md", "Read me.\n")]);
    for (path, text) in APP {
        work.write(path, if text.is_empty() { config_map("map") } else { text.to_owned() });
    }
    (sandbox, work)
}

/// Runs the command of a hint.
fn as_hinted(work: &Repo, hint: &str) {
    let add: Vec<&str> = hint.strip_prefix("git ").unwrap().split(' ').collect();
    work.git(&add);
    work.git(&["commit", "--quiet", "-m", "as hinted"]);
}

#[test]
fn kustomizations_that_are_not_committed_are_named() {
    let (sandbox, work) = example();
    let check = work.run_unchanged(&["check"]);
    check.success().says(expect![[r#"
        not tracked by git: 2 files that `branch` does not see: app/kustomization.yaml, app/map.yaml
        hint: git add -- :/app && git commit
        checked 1 kustomization with 1 reference in the working tree: no problems found
    "#]]);
    let report: Value = serde_json::from_str(&work.run(&["check", "--format=json"]).stdout).unwrap();
    assert_eq!(report["untracked"], serde_json::json!(["app/kustomization.yaml", "app/map.yaml"]));
    work.run_as_is(&IN_PLACE).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 0 files written, 0 references rewritten, 0 removed
          to look at it: git show --stat <0>
        warning: 1 kustomization is not committed, and only HEAD is localized: app/kustomization.yaml
          hint: git add -- :/app && git commit
    "#]]);
    let report = work.run_as_is(&["branch", "--no-verify", "--format=json"]);
    let report: Value = serde_json::from_str(&report.success().stdout).unwrap();
    assert_eq!(report["uncommitted"], serde_json::json!(["app/kustomization.yaml"]));
    // Neither of another commit, nor where there is no working tree.
    work.run_as_is(&["branch", "--no-verify", "--rev=HEAD", "--branch=other"]).success().lacks("warning:");
    let bare = sandbox.clone_with(&work, "bare.git", &["--bare"]);
    bare.run_as_is(&IN_PLACE).success().lacks("warning:");
    // Staged is not committed.
    work.git(&["add", "--all"]);
    work.run_unchanged(&["check"]).success().lacks("not tracked");
    work.run_as_is(&IN_PLACE).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
        warning: 1 kustomization is not committed, and only HEAD is localized: app/kustomization.yaml
          hint: git add -- :/app && git commit
    "#]]);
    as_hinted(&work, "git add -- :/app");
    work.run_as_is(&IN_PLACE).success().lacks("warning:");
    // Ignored, left out, or not where a copy begins.
    work.decide("exclude: [left-out]\n");
    work.write(".git/info/exclude", "ignored\n");
    for directory in ["ignored", "left-out"] {
        work.write(&format!("{directory}/kustomization.yaml"), "namePrefix: a-\n");
    }
    work.run_as_is(&IN_PLACE).success().lacks("warning:");
    work.write("beside/kustomization.yaml", "namePrefix: a-\n");
    work.run_as_is(&["app", "--no-verify", "--branch=copy"]).success().lacks("warning:");
    // Many are counted, and added by the directories at the top that have them.
    for number in 0..6 {
        work.write(&format!("many/{number}/kustomization.yaml"), "namePrefix: a-\n");
    }
    work.run_as_is(&IN_PLACE).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
          1 warning (stale-allow 1)
        warning: 7 kustomizations are not committed, and only HEAD is localized: beside/kustomization.yaml, many/0/kustomization.yaml, many/1/kustomization.yaml, many/2/kustomization.yaml, many/3/kustomization.yaml and 2 more
          hint: git add -- :/beside :/many && git commit
        warning[stale-allow]: nothing matches `left-out`
         --> .kustomize-localize:1:11
          |
        1 | exclude: [left-out]
          |           ^^^^^^^^^
          = help: remove or correct it
    "#]]);
    work.run_as_is(&["branch", "--no-verify", "-v"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has <1> localized
          not verified: --no-verify
          1 warning (stale-allow 1)
        warning: 7 kustomizations are not committed, and only HEAD is localized: beside/kustomization.yaml, many/0/kustomization.yaml, many/1/kustomization.yaml, many/2/kustomization.yaml, many/3/kustomization.yaml, many/4/kustomization.yaml, many/5/kustomization.yaml
          hint: git add -- :/beside :/many && git commit
        warning[stale-allow]: nothing matches `left-out`
         --> .kustomize-localize:1:11
          |
        1 | exclude: [left-out]
          |           ^^^^^^^^^
          = help: remove or correct it
    "#]]);
}

/// The text in UTF-7, as a checkout writes it, has a reference that the stored text does not have.
#[test]
fn what_a_checkout_changes_is_judged_before_it_is_localized() {
    let sandbox = Sandbox::new();
    let work = sandbox.repo("work");
    work.write(".gitattributes", "*.yaml working-tree-encoding=UTF-7\n");
    work.write("app/kustomization.yaml", "namePrefix: +ACI-x-\nresources:\n- https://files.example.com/x.yaml?+ACI-\n");
    work.commit("app");
    assert_eq!(
        work.show("HEAD", "app/kustomization.yaml"),
        "namePrefix: \"x-\nresources:\n- https://files.example.com/x.yaml?\"\n"
    );
    work.run_as_is(&IN_PLACE).fails(1).says(expect![[r#"
        error[remote-reference]: `https://files.example.com/x.yaml?+ACI` is neither localized nor locked
         --> app/kustomization.yaml:3:3
          |
        3 | - https://files.example.com/x.yaml?+ACI
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]

        error: <0> has 1 error (remote-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-reference
          hint: lock the remote references: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
    "#]]);
}

#[test]
fn a_file_that_only_the_working_tree_has_is_named() {
    let (_sandbox, work) = example();
    work.git(&["add", "app/kustomization.yaml"]);
    work.git(&["commit", "--quiet", "-m", "without the map"]);
    work.run_unchanged(&["check"]).success().says(expect![[r#"
            not tracked by git: 1 file that `branch` does not see: app/map.yaml
            hint: git add -- :/app && git commit
            checked 1 kustomization with 1 reference in the working tree: no problems found
        "#]]);
    work.run_unchanged(&IN_PLACE).fails(1).says(expect![[r#"
        error[missing-path]: `app/map.yaml` is on disk, but not committed
         --> app/kustomization.yaml:1:13
          |
        1 | resources: [map.yaml]
          |             ^^^^^^^^ resources[0]
          = help: git add -f -- :/app/map.yaml

        error: <0> has 1 error (missing-path 1): nothing was committed
          hint: for more: git kustomize-localize explain missing-path
    "#]]);
    as_hinted(&work, "git add -- :/app");
    work.run_unchanged(&["check"]).success().lacks("not tracked");
    work.run_as_is(&IN_PLACE).success();
    // Of many the first are named.
    let names = ["a", "b", "c", "d", "e", "f", "g"];
    let listed: String = names.iter().map(|name| format!("- {name}.yaml\n")).collect();
    work.write("app/kustomization.yaml", format!("resources:\n{listed}"));
    for name in names {
        work.write(&format!("app/{name}.yaml"), config_map(name));
    }
    work.run_unchanged(&["check"]).success().says(expect![[r#"
        not tracked by git: 7 files that `branch` does not see: app/a.yaml, app/b.yaml, app/c.yaml, app/d.yaml, app/e.yaml and 2 more
        hint: git add -- :/app && git commit
        checked 1 kustomization with 7 references in the working tree: no problems found
    "#]]);
    work.run_unchanged(&["check", "-v"]).success().says(expect![[r#"
        not tracked by git: 7 files that `branch` does not see: app/a.yaml, app/b.yaml, app/c.yaml, app/d.yaml, app/e.yaml, app/f.yaml, app/g.yaml
        hint: git add -- :/app && git commit
        checked 1 kustomization with 7 references in the working tree: no problems found
    "#]]);
}

#[test]
fn a_chart_that_only_the_working_tree_has_is_named() {
    let (_sandbox, work) = example();
    work.write("app/kustomization.yaml", "helmCharts: [{name: web}]\n");
    work.commit("a chart");
    work.write("app/charts/web/Chart.yaml", "name: web\nversion: 1.2.3\n");
    work.write("app/charts/web/values.yaml", "");
    work.run_unchanged(&["check"]).success().says(expect![[r#"
        not tracked by git: 2 files that `branch` does not see: app/charts/web/Chart.yaml, app/charts/web/values.yaml
        hint: git add -- :/app/charts/web && git commit
        checked 1 kustomization with 1 reference in the working tree: no problems found
    "#]]);
    // git adds a repository within another one as a submodule, and never its files.
    work.git(&["init", "--quiet", "app/charts/web"]);
    work.run_unchanged(&["check"]).success().says(expect![[r#"
        warning[untracked-path]: `web` is in the submodule `app/charts/web`, whose files are not in this repository
         --> app/kustomization.yaml:1:14
          |
        1 | helmCharts: [{name: web}]
          |              ^^^^^^^^^^^^ helmCharts[0]
          = help: copy the files into this repository, or name the submodule's repository by URL, with its commit

        for more: git kustomize-localize explain untracked-path
        checked 1 kustomization with 1 reference in the working tree: 1 warning
    "#]]);
}

#[test]
fn a_lock_that_is_not_committed_is_named() {
    let project = Project::new();
    let work = &project.work;
    work.run_as_is(&["lock"]).success();
    let check = work.run_unchanged(&["check"]);
    check.success().says(expect![[r#"
        not tracked by git: 1 file that `branch` does not see: kustomize-localize.lock
        hint: git add -- :/kustomize-localize.lock && git commit
        checked 3 kustomizations with 4 references in the working tree: no problems found
    "#]]);
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: files in use have uncommitted changes: `kustomize-localize.lock`
          hint: commit them: git add -f -- :/kustomize-localize.lock && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
    as_hinted(work, "git add -- :/kustomize-localize.lock");
    work.run_unchanged(&["check"]).success().lacks("not tracked");
    work.run_as_is(&IN_PLACE).success();
}

#[test]
fn a_lock_in_the_middle_of_a_merge_is_not_to_be_committed() {
    let project = Project::new();
    let work = &project.work;
    work.run_as_is(&["lock"]).success();
    work.commit("locked");
    work.write("kustomize-localize.lock", "<<<<<<< ours\nversion: 1\n=======\n>>>>>>> theirs\n");
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: kustomize-localize.lock:1: contains a merge conflict
          hint: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
    "#]]);
    work.git(&["checkout", "--", "."]);
    work.write(".kustomize-localize", "alow: []\n");
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: .kustomize-localize:1:1: unknown field `alow`
          hint: did you mean `allow`?
    "#]]);
}

#[test]
fn what_was_vendored_is_committed_with_its_lock() {
    let project = Project::new();
    let work = &project.work;
    work.run_as_is(&["lock"]).success();
    work.commit("locked");
    work.run_as_is(&["vendor", "--no-verify"]).success();
    let branch = work.run_unchanged(&IN_PLACE);
    branch.fails(2).says(expect![[r#"
        error: files in use have uncommitted changes: `example/base/kustomization.yaml`, `example/base/localized-files/.gitattributes`, `example/base/localized-files/example.com/acme/remote/v1/kustomization.yaml`, `example/base/localized-files/example.com/acme/remote/v1/service.yaml`, `kustomize-localize.lock`
          hint: commit them: git add -f -- :/example/base/kustomization.yaml :/example/base/localized-files :/kustomize-localize.lock && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
    let hint =
        branch.stderr.lines().find_map(|line| line.split_once("commit them: ")?.1.strip_suffix(" && git commit"));
    as_hinted(work, hint.unwrap());
    assert_eq!(work.git(&["status", "--porcelain"]), "");
    work.run_as_is(&IN_PLACE).success();
}

#[test]
fn a_link_that_changed_beside_vendored_files_is_named() {
    let project = Project::new();
    let work = &project.work;
    for name in ["one", "two"] {
        work.write(&format!("app/{name}.yaml"), config_map(name));
    }
    work.write("app/kustomization.yaml", "resources: [link.yaml]\n");
    let link = work.path().join("app/link.yaml");
    std::os::unix::fs::symlink("one.yaml", &link).unwrap();
    work.run_as_is(&["vendor", "--no-verify"]).success();
    work.commit("vendored");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink("two.yaml", &link).unwrap();
    work.run_unchanged(&IN_PLACE).fails(2).says(expect![[r#"
        error: files in use have uncommitted changes: `app/link.yaml`
          hint: commit them: git add -f -- :/app/link.yaml && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
}
