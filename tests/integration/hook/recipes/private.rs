//! Upstreams that not everybody may read.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{blocks, step};
use crate::support::{Output, Reply, Repo, Running, Sandbox, Server, config};

const WORKFLOW: &str = ".github/workflows/localize.yml";
/// The login of the job, for its own repository.
const TOKEN: &str = "job-s3cr3t";
/// For what the job reads upstream.
const UPSTREAM: &str = "upstream-s3cr3t";

/// One host, as github.com is: it holds the repository, and upstreams that are private.
struct World {
    sandbox: Sandbox,
    server: Server,
    work: Repo,
    origin: PathBuf,
}

impl World {
    fn new() -> World {
        let sandbox = Sandbox::new();
        sandbox.offer_itself();
        let server = Server::start();
        let bases = sandbox.repo("srv/acme/bases");
        bases.write("web/kustomization.yaml", "resources: [config.yaml]\n");
        bases.write("web/config.yaml", config("private"));
        bases.commit("private");
        bases.git(&["tag", "v1"]);
        server.route("/raw/acme/file.yaml", Reply::ok(config("file")));
        server.require_password("/raw/", "x-access-token", UPSTREAM);
        server.serve_git("/acme/", &sandbox.path("srv/acme"));
        server.require_password("/acme/", "x-access-token", UPSTREAM);

        let work = sandbox.repo("work");
        let url = server.url();
        work.write(
            "app/kustomization.yaml",
            format!("resources:\n- {url}acme/bases.git//web?ref=v1\n- {url}raw/acme/file.yaml\n"),
        );
        work.commit("app");
        let origin = sandbox.path("srv/owner/repository");
        work.git(&["clone", "--quiet", "--bare", ".", origin.to_str().unwrap()]);
        sandbox.git(&origin, &["config", "http.receivepack", "true"]);
        server.serve_git("/owner/", &sandbox.path("srv/owner"));
        server.require_password("/owner/", "x-access-token", TOKEN);
        sandbox.set("GITHUB_SERVER_URL", url.trim_end_matches('/'));
        sandbox.set("GITHUB_REPOSITORY", "owner/repository");
        World {
            sandbox,
            server,
            work,
            origin,
        }
    }

    /// Returns what the recipe adds to the environment of a step, for this host.
    fn login(&self) -> BTreeMap<String, String> {
        let text = blocks("Private upstreams", "yaml").remove(0);
        let host = self.server.url();
        let text = text.replace("https://github.com", host.trim_end_matches('/'));
        let added: serde_json::Value = serde_yaml::from_str(&text).unwrap();
        let added = added["env"].as_object().unwrap().iter();
        added
            .map(|(name, value)| {
                let value = match value.as_str() {
                    Some("${{ secrets.UPSTREAM_TOKEN }}") => UPSTREAM.to_owned(),
                    Some(text) => text.to_owned(),
                    None => value.to_string(),
                };
                (name.clone(), value)
            })
            .collect()
    }

    fn checkout(&self, name: &str) -> Repo {
        let directory = self.sandbox.path(name);
        let (from, to) = (self.origin.to_str().unwrap(), directory.to_str().unwrap());
        self.work
            .git(&["clone", "--quiet", "--branch", "main", from, to]);
        let checkout = Repo::new(&self.sandbox, directory);
        let url = format!("{}owner/repository", self.server.url());
        checkout.git(&["remote", "set-url", "origin", &url]);
        checkout
    }

    /// Runs the step that localizes. There is no kustomize here, which `--strict` reports.
    fn localize(&self, checkout: &Repo, login: &BTreeMap<String, String>) -> Output {
        let script = step(WORKFLOW, "Localize").replace(" --strict", "");
        self.run(checkout, &script, login)
    }

    fn run(&self, checkout: &Repo, script: &str, login: &BTreeMap<String, String>) -> Output {
        let mut bash = self.sandbox.command("bash", checkout.path());
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]);
        bash.env("TOKEN", TOKEN).envs(login);
        let output = Running::start(&mut bash).wait();
        output.lacks("s3cr3t");
        output
    }

    /// Asserts that no secret lies anywhere but in this test.
    #[track_caller]
    fn assert_kept(&self, repositories: &[&Path]) {
        let mut todo = vec![self.sandbox.path("")];
        while let Some(path) = todo.pop() {
            // Links lead to the programs of this machine.
            if path.is_symlink() {
                continue;
            } else if path.is_dir() {
                todo.extend(path.read_dir().unwrap().map(|entry| entry.unwrap().path()));
            } else if let Ok(bytes) = std::fs::read(&path) {
                let text = String::from_utf8_lossy(&bytes);
                assert!(!text.contains("s3cr3t"), "{}\n{text}", path.display());
            }
        }
        for repository in repositories {
            let objects = self.sandbox.git(
                repository,
                &["cat-file", "--batch-all-objects", "--batch", "--buffer"],
            );
            assert!(objects.contains("Kustomize-Localize-Tree"));
            assert!(!objects.contains("s3cr3t"), "{objects}");
        }
    }
}

#[test]
fn private_upstreams_are_read_and_no_login_is_kept() {
    let world = World::new();
    let checkout = world.checkout("checkout");
    world.localize(&checkout, &world.login()).success();
    let branch = "refs/heads/localized/main";
    let files = world
        .sandbox
        .git(&world.origin, &["ls-tree", "-r", "--name-only", branch]);
    assert!(files.contains("/acme/bases/v1/web/config.yaml"), "{files}");
    assert!(files.contains("/raw/acme/file.yaml"), "{files}");
    world.assert_kept(&[&world.origin, checkout.path()]);

    // Each login went to what it is for.
    for request in world.server.requests() {
        let Some(sent) = request.header("authorization") else {
            continue;
        };
        let sent = sent.to_owned();
        let own = world.server.requests();
        let of_job = own
            .iter()
            .filter(|one| one.url().contains("/owner/"))
            .filter_map(|one| one.header("authorization"))
            .any(|one| one == sent);
        assert_eq!(
            of_job,
            request.url().contains("/owner/"),
            "{}",
            request.url()
        );
    }

    // The next job has nothing but the branch, and finds nothing to do.
    let again = world.checkout("again");
    let tip = world.sandbox.git(&world.origin, &["rev-parse", branch]);
    world.localize(&again, &world.login()).success();
    assert_eq!(
        world.sandbox.git(&world.origin, &["rev-parse", branch]),
        tip
    );
}

#[test]
fn without_the_login_it_says_what_it_could_not_read() {
    let world = World::new();
    let checkout = world.checkout("checkout");
    let output = world.localize(&checkout, &BTreeMap::new());
    output
        .fails(2)
        .stderr_has("acme/bases")
        .stderr_has("raw/acme/file.yaml");
    let refs = world.sandbox.git(&world.origin, &["for-each-ref"]);
    assert!(!refs.contains("localized"), "{refs}");
}

#[test]
fn the_job_that_locks_logs_in_the_same_way() {
    let world = World::new();
    let checkout = world.checkout("checkout");
    world
        .sandbox
        .set("GITHUB_OUTPUT", world.sandbox.path("output"));
    let script = step(".github/workflows/lock.yml", "Lock");
    world
        .run(&checkout, &script, &BTreeMap::new())
        .fails(1)
        .stderr_has("acme/bases");
    assert_eq!(checkout.git(&["status", "--porcelain"]), "");
    world.run(&checkout, &script, &world.login()).success();
    let lock = checkout.show("HEAD", "kustomize-localize.lock");
    assert!(lock.contains("/acme/bases"), "{lock}");
    world.assert_kept(&[]);
}

#[test]
fn another_host_gets_no_login() {
    let world = World::new();
    let other = Server::start();
    other.serve_git("/acme/", &world.sandbox.path("srv/acme"));
    other.require_password("/", "x-access-token", UPSTREAM);
    let url = other.url();
    let references = format!("resources:\n- {url}acme/bases.git//web?ref=v1\n- {url}file.yaml\n");
    let checkout = world.checkout("checkout");
    checkout.write("app/kustomization.yaml", references);
    checkout.commit("somebody's change");
    world.localize(&checkout, &world.login()).fails(2);
    let requests = other.requests();
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(request.header("authorization"), None, "{}", request.url());
    }
}

#[test]
fn the_branch_can_be_kept_in_another_repository() {
    let world = World::new();
    for (name, value) in world.login() {
        world.sandbox.set(&name, value);
    }
    let deploy = world.sandbox.path("elsewhere/acme/deploy.git");
    std::fs::create_dir_all(&deploy).unwrap();
    world.sandbox.git(&deploy, &["init", "--quiet", "--bare"]);
    let base = format!("file://{}/", world.sandbox.path("elsewhere").display());
    world.sandbox.pretend("https://example.com/", &base);
    let script = blocks("Private upstreams", "sh").remove(0);
    let keep = |name: &str| {
        let checkout = world.checkout(name);
        let mut bash = world.sandbox.command("bash", checkout.path());
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &script]);
        Running::start(&mut bash).wait().success().lacks("s3cr3t");
        world
            .sandbox
            .git(&deploy, &["rev-parse", "refs/heads/localized/main"])
    };
    let first = keep("first");
    let refs = world.sandbox.git(&world.origin, &["for-each-ref"]);
    assert!(!refs.contains("localized"), "{refs}");
    // It goes on from there.
    world.work.write("README.md", "More.\n");
    world.work.commit("more");
    let origin = world.origin.to_str().unwrap();
    world.work.git(&["push", "--quiet", origin, "main"]);
    let second = keep("second");
    assert_ne!(second, first);
    world
        .sandbox
        .git(&deploy, &["merge-base", "--is-ancestor", &first, &second]);
}
