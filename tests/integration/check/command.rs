//! `check`: what is looked at, from where, and how it ends. What each rule finds has modules of its own.

use crate::support::{Output, Repo, Sandbox, config};

const REMOTE: &str = "https://github.com/acme/app//base?ref=v1.0.0";

fn remote(url: &str) -> String {
    format!("resources:\n- config.yaml\n- {url}\n")
}

/// A repository with two overlays of one base, all of it local and committed.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.write("base/config.yaml", config("base"));
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    for overlay in ["dev", "prod"] {
        repo.write(
            &format!("overlays/{overlay}/kustomization.yaml"),
            "resources:\n- ../../base\n",
        );
    }
    repo.commit("Begin");
    repo
}

/// Runs a check that must change nothing.
#[track_caller]
fn check(repo: &Repo, args: &[&str]) -> Output {
    repo.run_unchanged(&[&["check"], args].concat())
}

#[test]
fn a_clean_repository_passes_and_says_how_much_was_looked_at() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    check(&repo, &[])
        .success()
        .stdout_has("checked 3 kustomizations with 3 references in the index");
    check(&repo, &["--working-tree"])
        .success()
        .stdout_has("3 kustomizations with 3 references in the working tree");
    check(&repo, &["--rev", "HEAD"])
        .success()
        .stdout_has("3 kustomizations with 3 references in commit ");
    assert_eq!(check(&repo, &["-q"]).success().stdout, "");
}

#[test]
fn each_source_is_looked_at_by_itself() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let place = "base/kustomization.yaml:3:3";

    repo.write("base/kustomization.yaml", remote(REMOTE));
    check(&repo, &["--working-tree"]).fails(1).stdout_has(place);
    check(&repo, &[])
        .success()
        .stdout_has("1 differs in the working tree");
    check(&repo, &["--rev", "HEAD"]).success().lacks("differ");

    repo.git(&["add", "--all"]);
    check(&repo, &[]).fails(1).stdout_has(place).lacks("differ");
    check(&repo, &["--rev", "HEAD"]).success();

    // The fix is on disk, but not staged.
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    check(&repo, &["--staged"])
        .fails(1)
        .stdout_has(place)
        .stdout_has("1 differs in the working tree");
    check(&repo, &["--working-tree"]).success();

    repo.git(&["commit", "--quiet", "--no-verify", "-m", "Remote"]);
    check(&repo, &["--rev", "HEAD"]).fails(1).stdout_has(place);
    check(&repo, &["--rev", "HEAD~"]).success();
}

#[test]
fn a_sub_directory_sees_the_whole_repository() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("base/kustomization.yaml", remote(REMOTE));
    repo.git(&["add", "--all"]);
    let inside = repo.path().join("overlays/dev");
    sandbox
        .run(&inside, &["check"])
        .fails(1)
        .stdout_has("base/kustomization.yaml:3:3")
        .stdout_has("checked 3 kustomizations");
    // Paths are relative to where we are, or absolute.
    for path in [
        ".",
        "../dev",
        "kustomization.yaml",
        inside.to_str().unwrap(),
    ] {
        sandbox
            .run(&inside, &["check", path])
            .fails(1)
            .stdout_has("base/kustomization.yaml:3:3")
            .stdout_has("checked 2 kustomizations with 3 references");
    }
}

#[test]
fn a_path_without_a_kustomization_is_not_clean() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("docs/README.md", "Nothing.\n");
    repo.git(&["add", "--all"]);
    for (path, says) in [
        ("docs", "`docs` holds no kustomization"),
        ("docs/README.md", "`docs/README.md` holds no kustomization"),
        ("nowhere", "there is no `nowhere` here"),
        ("..", "`..` lies outside of the repository"),
        ("/", "`/` lies outside of the repository"),
    ] {
        check(&repo, &["base", path]).fails(2).stderr_has(says);
    }
    check(&repo, &["--", "base"]).success();
}

#[test]
fn a_repository_without_kustomizations_says_so() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("empty");
    check(&repo, &[])
        .success()
        .stdout_has("checked 0 kustomizations");
    check(&repo, &["."]).fails(2);
    check(&repo, &["--rev", "HEAD"])
        .fails(2)
        .stderr_has("`HEAD` names no commit");
}

#[test]
fn without_a_repository_nothing_is_checked() {
    let sandbox = Sandbox::new();
    let outside = sandbox.path("plain");
    std::fs::create_dir(&outside).unwrap();
    sandbox
        .run(&outside, &["check"])
        .fails(2)
        .stderr_has("this is not a git repository");
    let bare = sandbox.path("bare.git");
    sandbox.git(&sandbox.path(""), &["init", "-q", "--bare", "bare.git"]);
    sandbox
        .run(&bare, &["check"])
        .fails(2)
        .stderr_has("no index to check")
        .stderr_has("--rev REV");
    sandbox
        .run(&bare, &["check", "--working-tree"])
        .fails(2)
        .stderr_has("this repository has no working tree");
}

#[test]
fn sources_exclude_each_other() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    for args in [
        ["--staged", "--working-tree", "--staged"].as_slice(),
        &["--staged", "--rev", "HEAD"],
        &["--working-tree", "--rev=HEAD"],
        &["--new-only=HEAD", "--no-new-only"],
        &["--rev"],
        &["--rev", "none"],
        &["--rev", "--upload-pack=x"],
        &["--format", "xml"],
    ] {
        check(&repo, args).fails(2);
    }
}

#[test]
fn only_new_findings_count_with_new_only() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("base/kustomization.yaml", remote(REMOTE));
    let old = repo.commit("An old repository");
    check(&repo, &[]).fails(1);
    check(&repo, &["--new-only=HEAD"])
        .success()
        .stdout_has("1 ")
        .stdout_has("HEAD")
        .lacks(REMOTE);

    // It moves, and another one comes.
    let other = "https://github.com/acme/other?ref=v2.0.0";
    repo.write(
        "base/kustomization.yaml",
        format!("# A comment\n{}- {other}\n", remote(REMOTE)),
    );
    repo.git(&["add", "--all"]);
    check(&repo, &["--new-only=HEAD"])
        .fails(1)
        .stdout_has("base/kustomization.yaml:5:3")
        .stdout_has(other)
        .lacks(REMOTE);
    check(&repo, &["--new-only=HEAD", "base"]).fails(1);
    repo.commit("Another");
    check(&repo, &["--rev", "HEAD", &format!("--new-only={old}")]).fails(1);
    check(&repo, &["--rev", "HEAD", "--new-only=HEAD"]).success();
    // The same in another file is new.
    repo.write(
        "overlays/dev/kustomization.yaml",
        format!("resources: [\"{REMOTE}\"]\n"),
    );
    repo.git(&["add", "--all"]);
    check(&repo, &["--new-only=HEAD"])
        .fails(1)
        .stdout_has("overlays/dev/kustomization.yaml:1:");
}

#[test]
fn an_unknown_base_is_not_clean() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    check(&repo, &["--new-only=origin/main"])
        .fails(2)
        .stderr_has("cannot tell what is new: `origin/main` names no commit");
    for args in [["--new-only"], ["--new-only="]] {
        check(&repo, &args)
            .fails(2)
            .stderr_has("`new-only` needs a base to compare with")
            .stderr_has("--new-only=BASE");
    }
    repo.write(".kustomize-localize", "new-only: true\n");
    repo.git(&["add", "--all"]);
    check(&repo, &[]).fails(2).stderr_has("--no-new-only");
    check(&repo, &["--no-new-only"]).success();
    check(&repo, &["--new-only=HEAD"]).success();
}

#[test]
fn a_finding_is_new_once_it_is_no_longer_allowed() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let allowed = format!(
        "resources:\n- config.yaml\n# kustomize-localize: allow[remote-reference] until the move\n- {REMOTE}\n"
    );
    repo.write("base/kustomization.yaml", &allowed);
    repo.commit("Allowed");
    check(&repo, &[]).success();
    check(&repo, &["--new-only=HEAD"]).success();
    repo.write("base/kustomization.yaml", remote(REMOTE));
    repo.git(&["add", "--all"]);
    check(&repo, &["--new-only=HEAD"])
        .fails(1)
        .stdout_has("base/kustomization.yaml:3:3");
}

#[test]
fn one_broken_file_does_not_hide_the_others() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.write("a/kustomization.yaml", "resources: [\n");
    repo.write("b/kustomization.yaml", [0xff, 0xfe, b'a']);
    repo.write("base/kustomization.yaml", remote(REMOTE));
    repo.write("kustomize-localize.lock", "<<<<<<< HEAD\n");
    repo.git(&["add", "--all"]);
    check(&repo, &[])
        .fails(2)
        .stderr_has("kustomize-localize.lock:1");
    repo.git(&["rm", "-q", "--cached", "kustomize-localize.lock"]);
    check(&repo, &[])
        .fails(1)
        .stdout_has(" --> a/kustomization.yaml:")
        .stdout_has(" --> b/kustomization.yaml")
        .stdout_has("base/kustomization.yaml:3:3");
}

#[test]
fn moved_and_improved_findings_are_not_new() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let text = |reference: &str| {
        format!(
            "resources:\n- gone.yaml\n- https://github.com/o/r//a{reference}\n# more\n# and more\n"
        )
    };
    repo.write("apps/a/kustomization.yaml", text("?ref=main"));
    repo.write("apps/b/kustomization.yaml", text("?ref=v1.0.0"));
    repo.commit("old");
    repo.git(&["mv", "apps", "teams"]);
    repo.write("teams/a/kustomization.yaml", text("?ref=v1.2.0"));
    repo.git(&["add", "--all"]);
    for source in ["--staged", "--working-tree"] {
        check(&repo, &[source, "--new-only=HEAD"])
            .success()
            .stdout_has("left out that HEAD has too");
    }
    repo.commit("moved");
    check(&repo, &["--rev", "HEAD", "--new-only=HEAD~"]).success();
    // Less firmly.
    repo.write("teams/b/kustomization.yaml", text("?ref=main"));
    repo.git(&["add", "--all"]);
    check(&repo, &["--new-only=HEAD"])
        .fails(1)
        .stdout_has("teams/b/kustomization.yaml:3:3")
        .lacks("teams/a/");
}
