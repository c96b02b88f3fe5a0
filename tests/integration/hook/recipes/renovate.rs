//! The lock in the pull requests of a bot.

use std::fs;

use regex::Regex;

use super::{Hosting, json};
use crate::hook::step;
use crate::support::{Output, Project, Repo, base_of};

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
    checkout
        .run(&["check", "--rev", "HEAD"])
        .fails(1)
        .stdout_has("error[remote-reference]: `https://example.com/acme/remote.git?ref=v2`");
    hosted.step(&checkout, "Lock").success();
    assert!(hosted.has_changed());
    hosted.step(&checkout, "Push").success();

    let locked = hosted.tip();
    assert_eq!(checkout.id("HEAD"), locked);
    assert_eq!(checkout.id("HEAD^"), raised);
    assert_eq!(checkout.git(&["diff", "--name-only", "HEAD^", "HEAD"]), "kustomize-localize.lock");
    let lock = checkout.show("HEAD", "kustomize-localize.lock");
    assert!(lock.contains("ref: v2") && !lock.contains("ref: v1"), "{lock}");
    checkout.run(&["check", "--rev", "HEAD"]).success().stdout_has("nothing found");
    let author = checkout.git(&["log", "-1", "--format=%ae"]);
    let ignored = &json("gitIgnoredAuthors")["gitIgnoredAuthors"];
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
    hosted.step(&checkout, "Lock").fails(1).stderr_has("https://example.com/acme/remote.git").stderr_has("v3");
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

#[test]
fn renovate_finds_the_urls_of_files() {
    let configuration = json("customManagers");
    let manager = &configuration["customManagers"][0];
    // In Renovate, a pattern is between slashes.
    let pattern = |text: &serde_json::Value| {
        let text = text.as_str().unwrap();
        Regex::new(text.trim_matches('/')).unwrap()
    };
    let strings = manager["matchStrings"].as_array().unwrap();
    let patterns: Vec<Regex> = strings.iter().map(|text| Regex::new(text.as_str().unwrap()).unwrap()).collect();
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
