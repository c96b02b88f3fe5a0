//! The lock in the pull requests of a bot.

use std::fs;

use regex::Regex;

use serde_json::Value;

use super::{Hosting, json};
use crate::hook::step;
use crate::support::pages::source;
use crate::support::{Output, Project, Repo, Sandbox, World, base_of, config_map, tool};

const BASE: &str = "example/base/kustomization.yaml";
const BRANCH: &str = "renovate/acme-remote-2.x";
const WORKFLOW: &str = ".github/workflows/lock.yml";
const TOKEN: &str = "t0ken-of-the-app";

/// A repository on a hosting side, with a branch where a bot has raised a version.
struct Hosted {
    project: Project,
    hosting: Hosting,
}

impl Hosted {
    fn new() -> Hosted {
        let project = Project::new();
        let (sandbox, work) = (&project.sandbox, &project.work);
        sandbox.offer_itself();
        work.run(&["lock"]).success();
        work.commit("lock");
        let hosting = Hosting::of(sandbox, work, TOKEN);
        let origin = hosting.origin.path().to_str().unwrap();
        work.git(&["remote", "add", "origin", origin]);
        sandbox.set("BRANCH", BRANCH);
        project.second_version();
        let hosted = Hosted { project, hosting };
        hosted.raise("v2");
        // From here on it is the job that commits.
        for name in ["AUTHOR", "COMMITTER"] {
            let sandbox = &hosted.project.sandbox;
            sandbox.unset(&format!("GIT_{name}_NAME"));
            sandbox.unset(&format!("GIT_{name}_EMAIL"));
        }
        hosted
    }

    /// Renovate makes its branch anew.
    fn raise(&self, version: &str) {
        let work = &self.project.work;
        work.git(&["checkout", "--quiet", "-B", BRANCH, "main"]);
        work.write(BASE, base_of(version));
        let author = ["user.name=renovate", "user.email=bot@renovateapp.com"];
        let message = format!("raise to {version}");
        work.git(&[&["-c", author[0], "-c", author[1]][..], &["commit", "--quiet", "--all", "-m", &message]].concat());
        work.git(&["push", "--quiet", "--force", "origin", BRANCH]);
        work.git(&["checkout", "--quiet", "main"]);
    }

    fn checkout(&self, name: &str) -> Repo {
        fs::write(self.project.sandbox.path("output"), "").unwrap();
        self.hosting.checkout(name, BRANCH)
    }

    /// Runs a step. Only the last one has the token.
    fn step(&self, checkout: &Repo, name: &str) -> Output {
        let token = ("TOKEN".to_owned(), TOKEN.to_owned());
        let variables = (name == "Push").then_some(token);
        let script = super::step(WORKFLOW, name);
        let output = step(&self.project.sandbox, checkout.path(), &script, variables);
        output.lacks(TOKEN);
        output
    }

    fn has_changed(&self) -> bool {
        let output = fs::read_to_string(self.project.sandbox.path("output")).unwrap();
        match output.as_str() {
            "" => false,
            "changed=true\n" => true,
            other => panic!("{other}"),
        }
    }

    fn tip(&self) -> String {
        self.hosting.origin.id(&format!("refs/heads/{BRANCH}"))
    }
}

/// Lets what is committed there be by a person from here on.
fn by_somebody(repo: &Repo) {
    repo.git(&["config", "user.name", "somebody"]);
    repo.git(&["config", "user.email", "somebody@example.com"]);
}

#[test]
fn an_update_by_a_bot_is_locked_in_one_more_commit() {
    let hosted = Hosted::new();
    let raised = hosted.tip();
    let checkout = hosted.checkout("first");
    checkout.run(&["check", "--rev", "HEAD"]).fails(1).says(expect![[r#"
            error[remote-reference]: `https://example.com/acme/remote.git?ref=v2` is neither localized nor locked
             --> example/base/kustomization.yaml:3:5
              |
            3 |   - https://example.com/acme/remote.git?ref=v2
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]
              = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
              = help: or vendor it: git kustomize-localize vendor :/example/base

            warning[stale-lock]: nothing references `https://example.com/acme/remote.git?ref=v1`
             --> kustomize-localize.lock:4:5
              |
            4 |   - url: https://example.com/acme/remote.git
              |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
              = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

            for more: git kustomize-localize explain remote-reference stale-lock
            checked 3 kustomizations with 4 references in commit <0> (HEAD): 1 error, 1 warning
        "#]]);
    hosted.step(&checkout, "Lock").success();
    assert!(hosted.has_changed());
    hosted.step(&checkout, "Push").success();

    let locked = hosted.tip();
    assert_eq!(checkout.id("HEAD"), locked);
    assert_eq!(checkout.id("HEAD^"), raised);
    assert_eq!(checkout.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "kustomize-localize.lock");
    let lock = checkout.show("HEAD", "kustomize-localize.lock");
    assert!(lock.contains("ref: v2") && !lock.contains("ref: v1"), "{lock}");
    checkout.run(&["check", "--rev", "HEAD"]).success().says(expect![[r#"
        checked 3 kustomizations with 4 references in commit <0> (HEAD): no problems found
    "#]]);
    let author = checkout.git(&["log", "-1", "--format=%ae"]);
    let ignored = &preset()["gitIgnoredAuthors"];
    assert_eq!(*ignored, serde_json::json!([author]));
    // The token is in no file of the job.
    let configuration = checkout.git(&["config", "--list", "--show-origin"]);
    assert!(!configuration.contains(TOKEN), "{configuration}");

    // The push has started the job again.
    let again = hosted.checkout("again");
    hosted.step(&again, "Lock").success();
    assert!(!hosted.has_changed());
    assert_eq!(again.id("HEAD"), locked);
    assert_eq!(again.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_bot_that_pushes_in_between_wins_and_starts_the_job_again() {
    let hosted = Hosted::new();
    let slow = hosted.checkout("slow");
    hosted.step(&slow, "Lock").success();
    by_somebody(&hosted.project.work);
    hosted.project.work.write("README.md", "More.\n");
    hosted.project.work.commit("more");
    hosted.raise("v2");
    let rebased = hosted.tip();
    hosted.step(&slow, "Push").fails(1).stderr_has("rejected");
    assert_eq!(hosted.tip(), rebased);

    let fresh = hosted.checkout("fresh");
    hosted.step(&fresh, "Lock").success();
    hosted.step(&fresh, "Push").success();
    assert_eq!(fresh.id("HEAD^"), rebased);
    assert_eq!(hosted.tip(), fresh.id("HEAD"));
    fresh.run(&["check", "--rev", "HEAD"]).success();
}

#[test]
fn an_update_that_cannot_be_locked_fails_without_a_commit() {
    let hosted = Hosted::new();
    by_somebody(&hosted.project.work);
    hosted.raise("v3");
    let raised = hosted.tip();
    let checkout = hosted.checkout("checkout");
    hosted.step(&checkout, "Lock").fails(1).says(expect![[r#"
        ::add-mask::eC1hY2Nlc3MtdG9rZW46
        wrote kustomize-localize.lock: 0 remote references
          dropped https://example.com/acme/remote.git?ref=v1 <0>
          to stage it: git add -f -- :/kustomize-localize.lock
        error: example/base/kustomization.yaml:3:5: resources[1]: https://example.com/acme/remote.git has no ref `v3`
          hint: list its refs: git ls-remote https://example.com/acme/remote.git
        hint: to leave it remote, run `git kustomize-localize init`, or add to `allow` in `.kustomize-localize`:
          - {url: 'https://example.com/acme/remote.git?ref=v3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
    assert!(!hosted.has_changed());
    assert_eq!(checkout.id("HEAD"), raised);
    // Resolved references are locked, but stay on disk.
    assert_eq!(checkout.git(&["status", "--porcelain"]).trim(), "M kustomize-localize.lock");
}

#[test]
fn a_repository_without_remote_references_stays_without_a_lock() {
    let hosted = Hosted::new();
    let checkout = hosted.checkout("checkout");
    checkout.write(BASE, "resources: [config.yaml]\n");
    by_somebody(&checkout);
    checkout.git(&["rm", "--quiet", "kustomize-localize.lock"]);
    let head = checkout.commit("nothing remote");
    hosted.step(&checkout, "Lock").success();
    assert!(!hosted.has_changed());
    assert_eq!(checkout.id("HEAD"), head);
}

#[test]
fn renovate_can_lock_by_itself() {
    let project = Project::new();
    let work = &project.work;
    project.sandbox.offer_itself();
    work.run(&["lock"]).success();
    work.commit("lock");
    project.second_version();
    work.write(BASE, base_of("v2"));
    let tasks = &json("postUpgradeTasks")["postUpgradeTasks"];
    let page = super::page();
    let (_, rest) = page.split_once("\"allowedCommands\": [\"").unwrap();
    let allowed = Regex::new(rest.split_once('"').unwrap().0).unwrap();
    for command in tasks["commands"].as_array().unwrap() {
        let command = command.as_str().unwrap();
        assert!(allowed.is_match(command), "{command}");
        assert!(!allowed.is_match(&format!("{command}; id")), "{command}");
        super::run(&project, work, command).success();
    }
    let status = work.git(&["status", "--porcelain"]);
    let filter = tasks["fileFilters"][0].as_str().unwrap();
    assert_eq!(status.trim(), format!("M {BASE}\n M {filter}"));
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
}

/// Returns the preset.
fn preset() -> Value {
    serde_json::from_str(&source("hooks/renovate.json")).unwrap()
}

/// Returns a pattern as Renovate writes it, between slashes.
fn pattern(text: &Value) -> Regex {
    Regex::new(text.as_str().unwrap().trim_matches('/')).unwrap()
}

/// What Renovate extracts with a regex manager.
struct Extracted {
    whole: String,
    datasource: String,
    name: String,
    value: String,
    digest: String,
}

/// Returns what the regex managers of the preset extract from a lock, without what its rules turn off.
fn extracted(lock: &str) -> Vec<Extracted> {
    let preset = preset();
    let off = pattern(&preset["packageRules"][0]["matchPackageNames"][0]);
    let mut all = Vec::new();
    for manager in preset["customManagers"].as_array().unwrap() {
        if !pattern(&manager["managerFilePatterns"][0]).is_match("kustomize-localize.lock") {
            continue;
        }
        let datasource = manager["datasourceTemplate"].as_str().unwrap().to_owned();
        for found in pattern(&manager["matchStrings"][0]).captures_iter(lock) {
            let text = |name| found.name(name).map_or(String::new(), |one| one.as_str().to_owned());
            if datasource == "git-tags" && off.is_match(&text("packageName")) {
                continue;
            }
            all.push(Extracted {
                whole: found[0].to_owned(),
                datasource: datasource.clone(),
                name: text("depName"),
                value: text("currentValue"),
                digest: text("currentDigest"),
            });
        }
    }
    all
}

/// Edits a lock as Renovate does: in what was matched, the first place of the value, and then of the digest.
fn raised(lock: &str, name: &str, value: &str, digest: &str) -> String {
    let all = extracted(lock).into_iter().filter(|one| one.name == name);
    all.fold(lock.to_owned(), |lock, one| {
        let new = one.whole.replacen(&one.value, value, 1).replacen(&one.digest, digest, 1);
        lock.replacen(&one.whole, &new, 1)
    })
}

const LOCK: &str = "kustomize-localize.lock";
const APP: &str = "app/kustomization.yaml";

#[test]
fn the_preset_raises_kustomizations_and_lock_together() {
    let world = World::acme();
    let has_builder = world.sandbox.builds().is_some();
    let [lib, deep] =
        ["lib", "deep"].map(|name| Repo::new(&world.sandbox, world.sandbox.path(&format!("upstream/acme/{name}"))));
    let (work, name) = (&world.work, |of: &Repo, tag: &str, path: &str, text: &str| {
        of.write(path, text);
        of.commit(tag);
        of.git(&["tag", tag]);
        of.id("HEAD")
    });
    name(&lib, "v1.1", "web/map.yaml", &config_map("lib11"));
    let of = |web: &str, other: &str| {
        let lib = "https://github.com/acme/lib//";
        format!("resources:\n- {lib}web?ref={web}\n- {lib}other?ref={other}\n")
    };
    work.write("apart/kustomization.yaml", "resources: ['https://github.com/acme/deep//app?ref=main']\n");
    work.write(APP, of("v1", "v1.1"));
    work.run(&["lock"]).success();
    work.commit("locked");
    let all = extracted(&work.read(LOCK));
    let all: Vec<_> = all.iter().map(|one| (&*one.datasource, &*one.name, &*one.value)).collect();
    // What only an upstream names is not raised.
    let versions = ["v1", "v1.1"].map(|value| ("github-tags", "acme/lib", value));
    assert_eq!(all, [versions[0], versions[1], ("git-refs", "github.com/acme/deep", "main")]);

    // It names what is locked already, and a directory in it.
    let base = work.id("HEAD");
    let two = name(
        &lib,
        "v2",
        "other/kustomization.yaml",
        "resources: [map.yaml, 'https://github.com/acme/deep//app?ref=v1']\nnamePrefix: o-\n",
    );
    work.write(APP, of("v2", "v2"));
    work.write(LOCK, raised(&work.read(LOCK), "acme/lib", "v2", &two));
    work.commit("renovate");
    let gate = work.run(&["check", "--base", &base]);
    gate.success().stdout_has(&two[..12]).says(expect![[r#"
        warning[stale-lock]: `https://github.com/acme/lib?ref=v2` is at <0> now, but what it names was read at <1>
          --> kustomize-localize.lock:23:5
           |
        23 |   - url: https://github.com/acme/lib
           |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
           = help: read it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain stale-lock
        new in the lock: kustomize-localize.lock:23: https://github.com/acme/lib?ref=v2 gitCommit:<0>
        checked 2 kustomizations with 3 references in the working tree: 1 warning
    "#]]);
    assert_eq!(work.run(&["check", "--rev", "HEAD"]).success().stdout.matches("stale-lock]").count(), 1);
    if has_builder {
        work.run(&["check", "--build", "--rev", "HEAD"]).success();
        work.run_as_is(&["branch"]).success().says(expect![[r#"
            localized the repository on branch localized/main (<0>): 17 files written, 5 references rewritten, 0 removed
              added https://github.com/acme/deep?ref=main <1>
              added https://github.com/acme/deep?ref=v1 <1>
              added https://github.com/acme/lib?ref=v2 <2>
              verified: 2 builds identical (kustomize/…, network closed)
              1 warning (stale-lock 1)
              to look at it: git show --stat <0>
            warning[stale-lock]: `https://github.com/acme/lib?ref=v2` is at <2> now, but what it names was read at <3>
              --> kustomize-localize.lock:23:5
               |
            23 |   - url: https://github.com/acme/lib
               |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
               = help: read it again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
        "#]]);
        work.run(&["verify", "localized/main"]).success();
    }

    // It names what is not locked: `lock` is for that.
    let new = name(&deep, "v2", "app/map.yaml", &config_map("deep2"));
    let three = name(
        &lib,
        "v3",
        "other/kustomization.yaml",
        "resources: [map.yaml, 'https://github.com/acme/deep//app?ref=v2']\nnamePrefix: o-\n",
    );
    let lock = raised(&work.read(LOCK), "acme/lib", "v3", &three);
    work.write(LOCK, raised(&lock, "github.com/acme/deep", "main", &new));
    work.write(APP, of("v3", "v3"));
    work.commit("renovate");
    work.run(&["check", "--rev", "HEAD"]).success();
    let missing = "https://github.com/acme/deep//app?ref=v2";
    if has_builder {
        let gate = work.run(&["check", "--build", "--rev", "HEAD"]);
        assert!(gate.status > 0 && gate.shown().contains(missing), "{gate:?}");
    }
    let made = work.run_as_is(&["branch", "--no-verify"]);
    assert!(made.status > 0 && made.shown().contains(missing), "{made:?}");
    work.run(&["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          added https://github.com/acme/deep?ref=v2 <0>
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    work.commit("locked");
    work.run(&["check", "--rev", "HEAD"]).success().says(expect![[r#"
        checked 2 kustomizations with 3 references in commit <0> (HEAD): no problems found
    "#]]);
    work.run_as_is(&["branch", "--no-verify"]).success();
    assert_eq!(work.read(LOCK).matches("  - url: https://github.com/acme/lib\n").count(), 1);
}

#[test]
fn the_preset_knows_every_way_to_write_an_entry() {
    let entry = |url: &str, reference: &str, more: &str| {
        format!(
            "  - url: {url}\n    ref: {reference}\n{more}    commit: {}\n    paths-of: {}\n",
            "a".repeat(40),
            "a".repeat(12)
        )
    };
    for (url, reference, more, expected) in [
        ("https://github.com/acme/a", "v1.2.3", "", "github-tags acme/a v1.2.3"),
        ("https://github.com/acme/a.git", "\"1.2\"", "", "github-tags acme/a 1.2"),
        ("git@github.com:acme/a.git", "v1", "    submodules: false\n", "github-tags acme/a v1"),
        ("https://gitlab.com/a/b/c.git", "v1", "", "git-tags gitlab.com/a/b/c v1"),
        ("ssh://git@h:22/a/b", "release-1.30", "", "git-tags h:22/a/b release-1.30"),
        ("git@h:a/b", "main", "", "git-refs h:a/b main"),
        ("https://dev.azure.com/o/p/_git/r", "v1", "", "git-tags dev.azure.com/o/p/_git/r v1"),
        // Nothing is to be raised: a commit, and what a key has signed.
        ("https://github.com/acme/a", &"a1".repeat(20), "", ""),
        ("https://github.com/acme/a", "v1", "    signed: \"SHA256:x\"\n", ""),
    ] {
        let all = extracted(&entry(url, reference, more));
        let all: Vec<String> = all.iter().map(|one| format!("{} {} {}", one.datasource, one.name, one.value)).collect();
        assert_eq!(all.join("; "), expected, "{url}");
    }
}

#[test]
fn renovate_finds_the_urls_of_files() {
    let configuration = preset();
    let manager = &configuration["customManagers"][3];
    let patterns: Vec<Regex> = manager["matchStrings"].as_array().unwrap().iter().map(pattern).collect();
    let raw = "raw.githubusercontent.com/acme/crds";
    let releases = "github.com/acme/crds/releases";
    for (rest, expected) in [
        (format!("{raw}/v1.2.3/all.yaml"), Some("v1.2.3")),
        (format!("{raw}/1.2.3/a/all.yaml # ours"), Some("1.2.3")),
        (format!("{raw}/refs/tags/v2.0.0/all.yaml"), Some("v2.0.0")),
        (format!("{raw}/main/v1.2.3/all.yaml"), None),
        (format!("{releases}/download/v1.2.3/install.yaml"), Some("v1.2.3")),
        (format!("{releases}/latest/download/install.yaml"), None),
        ("example.com/acme/crds/v1/all.yaml".to_owned(), None),
    ] {
        let line = format!("- https://{rest}");
        let found = patterns.iter().find_map(|pattern| pattern.captures(&line));
        let value = found.as_ref().map(|found| &found["currentValue"]);
        assert_eq!(value, expected, "{line}");
        if let Some(found) = found {
            assert_eq!(&found["depName"], "acme/crds", "{line}");
        }
    }
    let files = pattern(&manager["managerFilePatterns"][0]);
    // References that the kustomize manager finds by itself are left out.
    let more = pattern(&configuration["kustomize"]["managerFilePatterns"][0]);
    for (path, is_file, is_more) in [
        ("apps/web/Kustomization", true, true),
        ("Kustomization", true, true),
        ("apps/web/kustomization.yaml", true, false),
        ("kustomization.yml", true, false),
        ("apps/web/my-kustomization.yaml", false, false),
    ] {
        assert_eq!(files.is_match(path), is_file, "{path}");
        assert_eq!(more.is_match(path), is_more, "{path}");
    }
}

/// Returns a preset as Renovate 39 reads it, which calls patterns of files otherwise.
fn older(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let field = |(name, value): (&String, &Value)| match (name.as_str(), value) {
                ("managerFilePatterns", Value::Array(all)) => {
                    let pattern = |one: &Value| Value::from(one.as_str().unwrap().trim_matches('/'));
                    ("fileMatch".to_owned(), all.iter().map(pattern).collect())
                }
                _ => (name.clone(), older(value)),
            };
            Value::Object(fields.iter().map(field).collect())
        }
        Value::Array(all) => all.iter().map(older).collect(),
        value => value.clone(),
    }
}

#[test]
#[ignore = "needs Renovate 39"]
fn renovate_itself_extracts_each_entry_by_the_name_in_the_kustomization() {
    let Some(renovate) = tool("renovate") else { return };
    let sandbox = Sandbox::new();
    let work = sandbox.repo("work");
    let entry = |url: &str, reference: &str| {
        let (commit, paths_of) = ("a".repeat(40), "a".repeat(12));
        format!(
            "- url: {url}\n    ref: {reference}\n    commit: {commit}\n    paths-of: {paths_of}\n    paths:\n      web: {{}}\n"
        )
    };
    let all = [("https://github.com/acme/app", "v1.0.6"), ("https://gitlab.example.com/acme/bases", "v1.2.0")];
    let lock: String = all.iter().map(|(url, reference)| format!("  {}", entry(url, reference))).collect();
    let named: String = all.iter().map(|(url, reference)| format!("- {url}.git//web?ref={reference}\n")).collect();
    work.commit_files(&[
        ("renovate.json", &older(&preset()).to_string()),
        ("apps/kustomization.yaml", &format!("resources:\n{named}")),
        ("kustomize-localize.lock", &format!("version: 1\nremotes:\n{lock}")),
    ]);
    let path = std::env::var("PATH").unwrap();
    let mut command = sandbox.command(renovate, work.path());
    command.args(["--platform=local", "--dry-run=extract"]).env("LOG_LEVEL", "debug").env("LOG_FORMAT", "json");
    let output = command.env("PATH", path).output().unwrap();
    let log = String::from_utf8(output.stdout).unwrap();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let extracted = lines.into_iter().find(|line| line["msg"] == "Extracted dependencies");
    let extracted = &extracted.unwrap_or_else(|| panic!("{log}"))["packageFiles"];
    let names = |manager: &str| {
        let files = extracted[manager].as_array().unwrap().iter();
        let all = files.flat_map(|file| file["deps"].as_array().unwrap());
        let name = |one: &Value| (one["depName"].as_str().unwrap().to_owned(), one["currentValue"].clone());
        // What the first manager has, a rule leaves out of the second.
        let all = all.map(name).filter(|(name, _)| !name.starts_with("github.com/"));
        all.collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(names("regex"), names("kustomize"));
    assert_eq!(names("regex").len(), all.len());
}
