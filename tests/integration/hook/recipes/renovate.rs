//! The lock in the pull requests of a bot.

use std::fs;
use std::path::PathBuf;

use regex::Regex;

use super::{json, step};
use crate::support::{Output, Project, Repo, Running, Server, base_of};

const BASE: &str = "example/base/kustomization.yaml";
const BRANCH: &str = "renovate/acme-remote-2.x";
const WORKFLOW: &str = ".github/workflows/lock.yml";
const TOKEN: &str = "t0ken-of-the-app";

/// A repository on a hosting side that asks for a token, with a branch where a bot has raised a version.
struct Hosted {
    project: Project,
    server: Server,
    origin: PathBuf,
}

impl Hosted {
    fn new() -> Hosted {
        let project = Project::new();
        let work = &project.work;
        let sandbox = &project.sandbox;
        sandbox.offer_itself();
        work.run(&["lock"]).success();
        work.commit("lock");
        let origin = sandbox.path("srv/owner/repository.git");
        work.git(&["clone", "--quiet", "--bare", ".", origin.to_str().unwrap()]);
        sandbox.git(&origin, &["config", "http.receivepack", "true"]);
        work.git(&["remote", "add", "origin", origin.to_str().unwrap()]);
        let server = Server::start();
        server.serve_git("/owner/", &sandbox.path("srv/owner"));
        server.require_password("/owner/", "x-access-token", TOKEN);
        sandbox.set("GITHUB_SERVER_URL", server.url().trim_end_matches('/'));
        sandbox.set("GITHUB_REPOSITORY", "owner/repository");
        sandbox.set("GITHUB_OUTPUT", sandbox.path("output"));
        sandbox.set("BRANCH", BRANCH);
        project.second_version();
        let hosted = Hosted {
            project,
            server,
            origin,
        };
        hosted.raise("v2");
        // From here on it is the job that commits.
        for name in ["AUTHOR", "COMMITTER"] {
            hosted.project.sandbox.unset(&format!("GIT_{name}_NAME"));
            hosted.project.sandbox.unset(&format!("GIT_{name}_EMAIL"));
        }
        hosted
    }

    /// Renovate makes its branch anew.
    fn raise(&self, version: &str) {
        let work = &self.project.work;
        work.git(&["checkout", "--quiet", "-B", BRANCH, "main"]);
        work.write(BASE, base_of(version));
        let author = [
            "-c",
            "user.name=renovate",
            "-c",
            "user.email=bot@renovateapp.com",
        ];
        let message = format!("raise to {version}");
        let commit = ["commit", "--quiet", "--all", "-m", &message];
        work.git(&[&author[..], &commit].concat());
        work.git(&["push", "--quiet", "--force", "origin", BRANCH]);
        work.git(&["checkout", "--quiet", "main"]);
    }

    /// Returns what `actions/checkout` leaves.
    fn checkout(&self, name: &str) -> Repo {
        let directory = self.project.sandbox.path(name);
        let from = self.origin.to_str().unwrap();
        let to = directory.to_str().unwrap();
        self.project
            .work
            .git(&["clone", "--quiet", "--branch", BRANCH, from, to]);
        let checkout = Repo::new(&self.project.sandbox, directory);
        let url = format!("{}owner/repository", self.server.url());
        checkout.git(&["remote", "set-url", "origin", &url]);
        fs::write(self.project.sandbox.path("output"), "").unwrap();
        checkout
    }

    /// Runs a step. Only the last one has the token.
    fn step(&self, checkout: &Repo, name: &str) -> Output {
        let script = step(WORKFLOW, name);
        let mut bash = self.project.sandbox.command("bash", checkout.path());
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]);
        if name == "Push" {
            bash.env("TOKEN", TOKEN);
        }
        let output = Running::start(&mut bash).wait();
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
        let reference = format!("refs/heads/{BRANCH}");
        self.project
            .sandbox
            .git(&self.origin, &["rev-parse", &reference])
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
    let changed = checkout.git(&["diff", "--name-only", "HEAD^", "HEAD"]);
    assert_eq!(changed, "kustomize-localize.lock");
    let lock = checkout.show("HEAD", "kustomize-localize.lock");
    assert!(
        lock.contains("ref: v2") && !lock.contains("ref: v1"),
        "{lock}"
    );
    checkout
        .run(&["check", "--rev", "HEAD"])
        .success()
        .stdout_has("nothing found");
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
    hosted
        .step(&checkout, "Lock")
        .fails(1)
        .stderr_has("https://example.com/acme/remote.git")
        .stderr_has("v3");
    assert!(!hosted.has_changed());
    assert_eq!(checkout.id("HEAD"), raised);
    // Resolved references are locked, but stay on disk.
    assert_eq!(
        checkout.git(&["status", "--porcelain"]).trim(),
        "M kustomize-localize.lock"
    );
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
    let (_, rest) = super::page()
        .split_once("\"allowedCommands\": [\"")
        .map(|(before, rest)| (before.to_owned(), rest.to_owned()))
        .unwrap();
    let allowed = Regex::new(rest.split_once('"').unwrap().0).unwrap();
    for command in tasks["commands"].as_array().unwrap() {
        let command = command.as_str().unwrap();
        assert!(allowed.is_match(command), "{command}");
        assert!(!allowed.is_match(&format!("{command}; id")), "{command}");
        let mut shell = project.sandbox.command("sh", work.path());
        Running::start(shell.args(["-c", command])).wait().success();
    }
    let status = work.git(&["status", "--porcelain"]);
    let filters = tasks["fileFilters"].as_array().unwrap();
    let expected = format!("M {BASE}\n M {}", filters[0].as_str().unwrap());
    assert_eq!(status.trim(), expected);
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
}

#[test]
fn renovate_finds_the_urls_of_files() {
    let configuration = json("customManagers");
    let strings = configuration["customManagers"][0]["matchStrings"]
        .as_array()
        .unwrap();
    let patterns: Vec<Regex> = strings
        .iter()
        .map(|text| Regex::new(text.as_str().unwrap()).unwrap())
        .collect();
    let raw = "https://raw.githubusercontent.com/acme/crds";
    for (line, expected) in [
        (format!("- {raw}/v1.2.3/all.yaml"), Some("v1.2.3")),
        (format!("- {raw}/1.2.3/a/all.yaml # ours"), Some("1.2.3")),
        (format!("- {raw}/refs/tags/v2.0.0/all.yaml"), Some("v2.0.0")),
        (format!("- {raw}/main/v1.2.3/all.yaml"), None),
        (
            "- https://github.com/acme/crds/releases/download/v1.2.3/install.yaml".to_owned(),
            Some("v1.2.3"),
        ),
        (
            "- https://github.com/acme/crds/releases/latest/download/install.yaml".to_owned(),
            None,
        ),
        (
            "- https://example.com/acme/crds/v1/all.yaml".to_owned(),
            None,
        ),
    ] {
        let found = patterns.iter().find_map(|pattern| pattern.captures(&line));
        let value = found.as_ref().map(|found| &found["currentValue"]);
        assert_eq!(value, expected, "{line}");
        if let Some(found) = found {
            assert_eq!(&found["depName"], "acme/crds", "{line}");
        }
    }
    // In Renovate, a pattern is between slashes.
    let files = configuration["customManagers"][0]["managerFilePatterns"][0]
        .as_str()
        .unwrap();
    let files = Regex::new(files.trim_matches('/')).unwrap();
    assert!(files.is_match("apps/web/kustomization.yaml") && files.is_match("kustomization.yml"));
    assert!(!files.is_match("apps/web/my-kustomization.yaml"));
    // References that the kustomize manager finds by itself are left out.
    let more = configuration["kustomize"]["managerFilePatterns"][0]
        .as_str()
        .unwrap();
    let more = Regex::new(more.trim_matches('/')).unwrap();
    for (path, is_more) in [
        ("apps/web/Kustomization", true),
        ("Kustomization", true),
        ("apps/web/kustomization.yaml", false),
    ] {
        assert!(files.is_match(path), "{path}");
        assert_eq!(more.is_match(path), is_more, "{path}");
    }
}
