//! Upstreams that not everybody may read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::{Hosting, blocks};
use crate::hook::step;
use crate::support::{Limit, Output, Reply, Repo, Request, Sandbox, Server, base64, config};

const WORKFLOW: &str = ".github/workflows/localize.yml";
/// The login of the job, for its own repository.
const TOKEN: &str = "job-s3cr3t";
/// For what the job reads upstream.
const UPSTREAM: &str = "upstream-s3cr3t";

/// One host, as github.com is: it holds the repository, and upstreams that are private.
struct World {
    hosting: Hosting,
    sandbox: Sandbox,
    work: Repo,
}

impl World {
    fn new() -> World {
        let sandbox = Sandbox::new();
        sandbox.offer_itself();
        let bases = sandbox.repo("srv/acme/bases");
        bases.write("web/kustomization.yaml", "resources: [config.yaml]\n");
        bases.write("web/config.yaml", config("private"));
        bases.commit("private");
        bases.git(&["tag", "v1"]);
        let work = sandbox.repo("work");
        work.commit("begin");
        let hosting = Hosting::of(&sandbox, &work, TOKEN);
        let server = &hosting.server;
        server.route("/raw/acme/file.yaml", Reply::ok(config("file")));
        server.serve_git("/acme/", &sandbox.path("srv/acme"));
        let url = server.url();
        work.write(
            "app/kustomization.yaml",
            format!("resources:\n- {url}acme/bases.git//web?ref=v1\n- {url}raw/acme/file.yaml\n"),
        );
        work.commit("app");
        work.lock();
        std::fs::remove_dir_all(sandbox.path("cache")).unwrap();
        for prefix in ["/raw/", "/acme/"] {
            server.require_password(prefix, "x-access-token", UPSTREAM);
        }
        let world = World { hosting, sandbox, work };
        world.push();
        world
    }

    fn push(&self) {
        let origin = self.hosting.origin.path().to_str().unwrap();
        self.work.git(&["push", "--quiet", origin, "main"]);
    }

    /// Returns what the recipe adds to the environment of a step in a job of one's own, for this host.
    fn own_login(&self) -> BTreeMap<String, String> {
        let text = blocks("Private upstreams", "yaml").remove(0);
        let host = self.hosting.server.url();
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

    /// Returns what the workflows are given.
    fn login(&self) -> BTreeMap<String, String> {
        [("UPSTREAM_TOKEN".to_owned(), UPSTREAM.to_owned())].into()
    }

    fn checkout(&self, name: &str) -> Repo {
        self.hosting.checkout(name, "main")
    }

    /// Runs the steps that localize and push.
    fn localize(&self, checkout: &Repo, login: &BTreeMap<String, String>) -> Output {
        let script = ["Localize", "Push"].map(|name| super::step(WORKFLOW, name)).join("\n");
        self.run(checkout, &script, login)
    }

    fn run(&self, checkout: &Repo, script: &str, login: &BTreeMap<String, String>) -> Output {
        let token = ("TOKEN".to_owned(), TOKEN.to_owned());
        let variables = login.clone().into_iter().chain([token]);
        let output = step(&self.sandbox, checkout.path(), script, variables);
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
            let objects = self.sandbox.git(repository, &["cat-file", "--batch-all-objects", "--batch", "--buffer"]);
            assert!(objects.contains("Kustomize-Localize-Tree"));
            assert!(!objects.contains("s3cr3t"), "{objects}");
        }
    }
}

#[test]
fn private_upstreams_are_read_and_no_login_is_kept() {
    let world = World::new();
    world.sandbox.builds();
    let Some(_) = world.sandbox.builds() else { return };
    let (server, origin) = (&world.hosting.server, &world.hosting.origin);
    let checkout = world.checkout("checkout");
    world.localize(&checkout, &world.login()).success();
    let files = origin.files("localized/main").join("\n");
    for file in ["/acme/bases/v1/web/config.yaml", "/raw/acme/file.yaml"] {
        assert!(files.contains(file), "{files}");
    }
    world.assert_kept(&[origin.path(), checkout.path()]);

    // Each login went to what it is for.
    let [own, upstream] = [TOKEN, UPSTREAM].map(|token| {
        let login = base64(format!("x-access-token:{token}").as_bytes());
        format!("Basic {login}")
    });
    let mut sent = BTreeSet::new();
    for request in server.requests() {
        if let Some(login) = request.header("authorization") {
            let url = request.url();
            let expected = if url.contains("/owner/") { &own } else { &upstream };
            assert_eq!(login, expected, "{url}");
            sent.insert(login.to_owned());
        }
    }
    assert_eq!(sent.len(), 2);

    // The next job has nothing but the branch, and finds nothing to do.
    let tip = origin.id("localized/main");
    let again = world.checkout("again");
    world.localize(&again, &world.login()).success();
    assert_eq!(origin.id("localized/main"), tip);
}

#[test]
fn without_the_login_it_says_what_it_could_not_read() {
    let world = World::new();
    world.sandbox.builds();
    let Some(_) = world.sandbox.builds() else { return };
    let checkout = world.checkout("checkout");
    world
        .localize(&checkout, &BTreeMap::new())
        .fails(2)
        .says(expect![[r#"
            ::add-mask::eC1hY2Nlc3MtdG9rZW46am9iLXMzY3IzdA==
            checked 1 kustomization with 2 references in commit <0> (HEAD), and built nothing: 2 could not be checked
            error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/acme/bases.git: could not read Username for 'http://127.0.0.1:…': terminal prompts disabled
              hint: it is private, or does not exist: make `git ls-remote` of that URL work, with a credential helper or `url.<base>.insteadOf`
            error: app/kustomization.yaml:3:3: resources[1]: cannot fetch http://127.0.0.1:…/raw/acme/file.yaml: 127.0.0.1:… answered 401 Unauthorized
              hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
        "#]]);
    let refs = world.hosting.origin.git(&["for-each-ref"]);
    assert!(!refs.contains("localized"), "{refs}");
    // The job that locks logs in in the same way.
    let script = super::step(".github/workflows/lock.yml", "Lock");
    checkout.git(&["rm", "--quiet", "kustomize-localize.lock"]);
    checkout.commit("no lock");
    world.run(&checkout, &script, &BTreeMap::new()).fails(1).says(expect![[r#"
        ::add-mask::eC1hY2Nlc3MtdG9rZW46am9iLXMzY3IzdA==
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch http://127.0.0.1:…/acme/bases.git: could not read Username for 'http://127.0.0.1:…': terminal prompts disabled
          hint: it is private, or does not exist: make `git ls-remote` of that URL work, with a credential helper or `url.<base>.insteadOf`
        error: app/kustomization.yaml:3:3: resources[1]: cannot fetch http://127.0.0.1:…/raw/acme/file.yaml: 127.0.0.1:… answered 401 Unauthorized
          hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/acme/bases.git//web?ref=v1', reason: 'TODO'}
          - {url: 'http://127.0.0.1:…/raw/acme/file.yaml', reason: 'TODO'}
        error: 2 references could not be locked
    "#]]);
    assert_eq!(checkout.git(&["status", "--porcelain"]), "");
    world.run(&checkout, &script, &world.login()).success();
    let lock = checkout.show("HEAD", "kustomize-localize.lock");
    assert!(lock.contains("/acme/bases"), "{lock}");
    // So does a job of one's own.
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    checkout.git(&["rm", "--quiet", "kustomize-localize.lock"]);
    world.run(&checkout, "git kustomize-localize lock", &world.own_login()).success();
    world.assert_kept(&[]);
}

/// GitHub limits requests without a login, also for what everybody may read.
#[test]
fn the_jobs_read_upstream_with_their_own_token() {
    let world = World::new();
    world.sandbox.builds();
    let Some(_) = world.sandbox.builds() else { return };
    let server = &world.hosting.server;
    server.forget_passwords();
    let checkout = world.checkout("checkout");
    let jobs = [("localize.yml", "Localize"), ("lock.yml", "Lock"), ("upstream.yml", "Verify")];
    for (workflow, name) in jobs {
        if name == "Verify" {
            checkout.git(&["checkout", "--quiet", "localized/main"]);
            world.sandbox.set("RUNNER_TEMP", world.sandbox.path("tmp"));
        }
        let _ = std::fs::remove_dir_all(world.sandbox.path("cache"));
        server.forget();
        server.limit("/acme/", Limit::TooMany(Some(3600)), |_| true);
        let script = super::step(&format!(".github/workflows/{workflow}"), name);
        let output = world.run(&checkout, &script, &BTreeMap::new());
        assert!(output.stdout.contains("::add-mask::"), "{output:?}");
        output.success();
        let requests = server.requests();
        // A build asks for files here, too.
        let is_git = |agent: &str| agent.starts_with("git/");
        let of_upstream = |it: &&Request| it.url().starts_with("/acme/") && it.header("user-agent").is_some_and(is_git);
        let sent: Vec<_> = requests.iter().filter(of_upstream).map(|it| it.header("authorization")).collect();
        assert!(name == "Lock" || !sent.is_empty(), "{name}");
        assert!(sent.iter().all(Option::is_some), "{name} {requests:#?}");
    }
}

#[test]
fn another_host_gets_no_login() {
    let world = World::new();
    world.sandbox.builds();
    let other = Server::start();
    other.serve_git("/acme/", &world.sandbox.path("srv/acme"));
    other.require_password("/", "x-access-token", UPSTREAM);
    let url = other.url();
    let references = format!("resources:\n- {url}acme/bases.git//web?ref=v1\n- {url}file.yaml\n");
    let checkout = world.checkout("checkout");
    checkout.write("app/kustomization.yaml", references);
    checkout.commit("somebody's change");
    let script = super::step(".github/workflows/lock.yml", "Lock");
    world.run(&checkout, &script, &world.login()).fails(1);
    let requests = other.requests();
    assert!(!requests.is_empty());
    for request in requests {
        assert_eq!(request.header("authorization"), None, "{}", request.url());
    }
}

#[test]
fn the_branch_can_be_kept_in_another_repository() {
    let world = World::new();
    world.sandbox.builds();
    let Some(_) = world.sandbox.builds() else { return };
    let sandbox = &world.sandbox;
    let deploy = sandbox.path("elsewhere/acme/deploy.git");
    let init = ["init", "--quiet", "--bare", deploy.to_str().unwrap()];
    sandbox.git(&sandbox.path(""), &init);
    let base = format!("file://{}/", sandbox.path("elsewhere").display());
    sandbox.pretend("https://example.com/", &base);
    let script = blocks("Private upstreams", "sh").remove(0);
    let keep = |name: &str| {
        let checkout = world.checkout(name);
        world.run(&checkout, &script, &world.own_login()).success();
        sandbox.git(&deploy, &["rev-parse", "refs/heads/localized/main"])
    };
    let first = keep("first");
    let refs = world.hosting.origin.git(&["for-each-ref"]);
    assert!(!refs.contains("localized"), "{refs}");
    // It goes on from there.
    world.work.write("README.md", "More.\n");
    world.work.commit("more");
    world.push();
    let second = keep("second");
    assert_ne!(second, first);
    sandbox.git(&deploy, &["merge-base", "--is-ancestor", &first, &second]);
}
