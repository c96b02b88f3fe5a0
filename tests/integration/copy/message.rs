//! The record and the report: lock, trailers, what is said about a run.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{OVERLAY, Project, Repo, base_of};

const BRANCH: &str = "localized/main";

/// Returns what git takes for the trailers of the tip.
fn trailers(repo: &Repo) -> Vec<String> {
    let all = repo.git(&["log", "-1", "--format=%(trailers:only,unfold)", BRANCH]);
    all.lines().map(str::to_owned).collect()
}

#[test]
fn the_record_is_read_by_git_itself() {
    let project = Project::new();
    let work = &project.work;
    project.overlay(&[]).success();
    let commit = project.upstream.id("v1");
    let expected = [
        "Kustomize-Localize-Target: example/overlay scope=example into=localized-overlay".to_owned(),
        format!("Kustomize-Localize-Source: gitCommit:{}", work.id("main")),
        format!("Kustomize-Localize-Remote: https://example.com/acme/remote.git?ref=v1 gitCommit:{commit}"),
        format!("Kustomize-Localize-Tree: gitTree:{}", work.id("localized/main:localized-overlay")),
        "Kustomize-Localize-Verified: not built".to_owned(),
        format!("Kustomize-Localize-Tool: git-kustomize-localize/{}", env!("CARGO_PKG_VERSION")),
    ];
    assert_eq!(trailers(work), expected);
    let message = project.sandbox.path("message");
    fs::write(&message, work.git(&["log", "-1", "--format=%B", BRANCH])).unwrap();
    let parsed = work.git(&["interpret-trailers", "--parse", message.to_str().unwrap()]);
    assert_eq!(parsed.lines().collect::<Vec<_>>(), expected);

    let lock = work.show(BRANCH, "localized-overlay/kustomize-localize.lock");
    let sandbox = project.sandbox.path("");
    assert!(!lock.contains(sandbox.to_str().unwrap()), "{lock}");
    assert!(!lock.contains("2026"), "a date in\n{lock}");
}

#[test]
fn the_message_lists_what_changed() {
    let project = Project::new();
    let work = &project.work;
    let body = || work.git(&["log", "-1", "--format=%B", BRANCH]);
    let first = project.upstream.id("v1")[..12].to_owned();
    project.overlay(&[]).success();
    assert!(
        body().starts_with(&format!(
            "Localize example/overlay into localized-overlay\n\nBrought in:\n\n\
             - https://example.com/acme/remote.git?ref=v1 at {first}\n\nKustomize-"
        )),
        "{}",
        body()
    );

    project.second_version();
    let second = project.upstream.id("v2")[..12].to_owned();
    work.write("example/base/kustomization.yaml", base_of("v2"));
    work.commit("v2");
    project.overlay(&[]).success();
    assert!(
        body().contains(&format!(
            "\n\nMoved:\n\n- https://example.com/acme/remote.git from v1 ({first}) to v2 ({second}): \
             1 commit\n  {second} two\n\nKustomize-"
        )),
        "{}",
        body()
    );

    // The same ref at another commit.
    project.upstream.git(&["tag", "--force", "v2", "v1"]);
    work.run(&["lock"]).success();
    work.commit("lock");
    let output = project.overlay(&[]);
    output.success();
    assert!(
        body().contains(&format!(
            "Moved:\n\n- https://example.com/acme/remote.git?ref=v2 from {second} to {first}: \
             not a descendant\n"
        )),
        "{}",
        body()
    );
    output.says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          moved https://example.com/acme/remote.git?ref=v2 <1> -> <2>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
}

#[test]
fn the_users_text_stands_above_the_trailers() {
    let project = Project::new();
    let work = &project.work;
    let ours = 6;
    for (texts, subject, kept, more) in [
        (&["Subject", "One.", "Two."][..], "Subject", "Subject\n\nOne.\n\nTwo.\n\nKustomize-", 0),
        (&["Subject", "A patch:\n---\n file | 1 +"], "Subject", "A patch:\n ---\n file", 0),
        (&["Subject", "Reviewed-by: Ann <ann@example.com>"], "Subject", "Reviewed-by: Ann", 1),
        (&["# S\u{fc}bject: \u{1f600}"], "# S\u{fc}bject: \u{1f600}", "# S\u{fc}bject: \u{1f600}\n\nKustomize-", 0),
    ] {
        let args: Vec<&str> = texts.iter().flat_map(|text| ["-m", text]).collect();
        project.overlay(&args).success();
        assert_eq!(work.git(&["log", "-1", "--format=%s", BRANCH]), subject);
        let message = work.git(&["log", "-1", "--format=%B", BRANCH]);
        assert!(message.contains(kept), "no {kept:?} in\n{message}");
        assert_eq!(trailers(work).len(), ours + more, "{message}");
        let tree = format!("Kustomize-Localize-Tree: gitTree:{}", work.id("localized/main:localized-overlay"));
        assert!(trailers(work).contains(&tree), "{message}");
        // It is read back: nothing was edited by hand, and nothing is to do.
        project.overlay(&[]).success();
        work.git(&["update-ref", "-d", "refs/heads/localized/main"]);
    }
    let before = work.state();
    for text in ["", " \n ", "\n"] {
        project.overlay(&["-m", text]).fails(2);
    }
    let record = ["-m", "Subject", "-m", "Kustomize-Localize-Tree: gitTree:0000000000000000000000000000000000000000"];
    project.overlay(&record).fails(2).says(expect![[r#"
        error: the commit message contains `Kustomize-Localize-…` lines, which only this program may write
    "#]]);
    before.assert_same(&work.state());
}

#[test]
fn the_result_is_the_same_for_everybody() {
    let trees: Vec<String> = (0..3)
        .map(|user| {
            let project = Project::new();
            let mut work = project.sandbox.clone_of(&project.work, "elsewhere/deeper");
            if user == 1 {
                for (key, value) in [
                    ("core.autocrlf", "true"),
                    ("core.quotePath", "false"),
                    ("i18n.commitEncoding", "ISO-8859-1"),
                    ("i18n.logOutputEncoding", "ISO-8859-1"),
                    ("core.commentChar", "K"),
                    ("log.showSignature", "true"),
                    ("log.date", "relative"),
                    ("color.ui", "always"),
                    ("status.renames", "copies"),
                    ("trailer.separators", "="),
                    ("core.abbrev", "7"),
                    ("diff.noprefix", "true"),
                ] {
                    project.sandbox.configure(key, value);
                }
                project.sandbox.set("LC_ALL", "C.UTF-8");
                project.sandbox.set("TZ", "Asia/Tokyo");
            } else if user == 2 {
                project.sandbox.set("GIT_AUTHOR_DATE", "2030-01-01T00:00:00Z");
                work = Repo::new(&project.sandbox, project.work.path().to_owned());
                // Something else in the cache, and other permissions.
                work.run(&["other"]).success();
                let mode = fs::Permissions::from_mode(0o600);
                let file = work.path().join("example/base/config.yaml");
                fs::set_permissions(file, mode).unwrap();
            }
            work.run(&[&OVERLAY[..], &["-m", "Ümlaut"]].concat()).success();
            work.run(&OVERLAY).success().stdout_has("nothing to do");
            work.id("localized/main:localized-overlay")
        })
        .collect();
    assert_eq!(trees[0], trees[1]);
    assert_eq!(trees[0], trees[2]);
}

/// Returns how many objects the repository holds.
fn objects(repo: &Repo) -> String {
    repo.git(&["count-objects", "-v"])
}

#[test]
fn a_dry_run_reports_everything_and_writes_nothing() {
    let project = Project::new();
    let work = &project.work;
    let before = (work.state(), objects(work));
    project
        .overlay(&["--dry-run"])
        .success().says(expect![[r#"
            would localize example/overlay into localized-overlay on branch localized/main: 7 files written, 1 reference rewritten, 0 removed
              added https://example.com/acme/remote.git?ref=v1 <0>
              not verified: --no-verify
              file base/config.yaml (54)
              file base/kustomization.yaml (74)
              file base/localized-files/.gitattributes (46)
              file base/localized-files/example.com/acme/remote/v1/kustomization.yaml (26)
              file base/localized-files/example.com/acme/remote/v1/service.yaml (51)
              file kustomize-localize.lock (…)
              file overlay/kustomization.yaml (40)
              rewritten example/base/kustomization.yaml:3:5: resources[1]: https://example.com/acme/remote.git?ref=v1 -> localized-files/example.com/acme/remote/v1
        "#]]);
    before.0.assert_same(&work.state());
    assert_eq!(objects(work), before.1);
    // Also when there is a tip.
    project.overlay(&[]).success();
    let before = (work.state(), objects(work));
    project.overlay(&["--dry-run", "--format=json"]).success();
    before.0.assert_same(&work.state());
    assert_eq!(objects(work), before.1);
}

/// Runs the program with `--format json` and parses what it says.
fn json(project: &Project, args: &[&str], status: i32) -> Value {
    let output = project.work.run(&[args, &["--format", "json"]].concat());
    assert_eq!(output.status, status, "{output:?}");
    serde_json::from_str(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

#[test]
fn json_has_everything() {
    let project = Project::new();
    let work = &project.work;
    let dry = json(&project, &[&OVERLAY[..], &["--dry-run"]].concat(), 0);
    assert_eq!(dry["outcome"], "dry-run");
    assert_eq!(dry["commit"], Value::Null);

    let done = json(&project, &OVERLAY, 0);
    assert_eq!(done["outcome"], "written");
    assert_eq!(done["branch"], BRANCH);
    assert_eq!(done["commit"], work.id(BRANCH));
    assert_eq!(done["tree"], work.id("localized/main:localized-overlay"));
    assert_eq!(done["source"], work.id("main"));
    assert_eq!(done["remotes"][0]["commit"], project.upstream.id("v1"));
    let files: Vec<&str> = done["files"].as_object().unwrap().keys().map(String::as_str).collect();
    let listed = work.files("localized/main:localized-overlay");
    let listed: Vec<&str> = listed.iter().map(|line| &line[7..]).collect();
    assert_eq!(files, listed);
    let size = work.git(&["cat-file", "-s", "localized/main:localized-overlay/base/config.yaml"]);
    assert_eq!(done["files"]["base/config.yaml"].to_string(), size);
    let again = json(&project, &OVERLAY, 0);
    assert_eq!(again["outcome"], "unchanged");
    assert_eq!(again["commit"], done["commit"]);
    assert_eq!(again["source"], work.id("main"));
    let disk = json(&project, &["other", "--no-commit"], 0);
    assert_eq!(disk["outcome"], "written");

    work.write("example/base/kustomization.yaml", "resources: [nowhere.yaml, none.yaml]\n");
    work.commit("broken");
    let failed = json(&project, &OVERLAY, 2);
    assert_eq!(failed["outcome"], "failed");
    let errors = failed["errors"].as_array().unwrap();
    assert_eq!(errors.len(), 2, "{failed}");
    assert_eq!(errors[0]["file"], "example/base/kustomization.yaml");
    assert_eq!(errors[0]["field"], "resources[0]");
}

#[test]
fn quiet_prints_nothing_but_errors() {
    let project = Project::new();
    let output = project.overlay(&["-q"]);
    output.success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    let output = project.overlay(&["-q"]);
    output.success();
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("", ""));
    let output = project.work.run(&["none", "--quiet"]);
    output.fails(2).says(expect![[r#"
        error: `none` is neither a command nor a directory
          hint: for a copy, name the directory that contains the kustomization; for all commands: git kustomize-localize -h
    "#]]);
    assert_eq!(output.stdout, "");
}
