//! What needs no network: versions that the lock decided and the tip or the cache holds.

use std::collections::BTreeMap;
use std::fs;

use crate::support::{Reply, Repo, Sandbox, Server};

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

/// A loopback world: two repositories, of which one names the other, and files.
struct World {
    sandbox: Sandbox,
    server: Option<Server>,
    base: String,
    outer: Repo,
    inner: Repo,
}

impl World {
    fn new() -> World {
        let sandbox = Sandbox::new();
        let server = Server::start();
        let base = server.url();
        let inner = sandbox.repo("srv/acme/inner");
        inner.write("base/kustomization.yaml", "resources: [cm.yaml]\n");
        inner.write("base/cm.yaml", config_map("inner"));
        inner.commit("inner");
        let outer = sandbox.repo("srv/acme/outer");
        outer.write(
            "app/kustomization.yaml",
            format!("resources:\n- ../lib # kept\n- {base}acme/inner//base?ref=main\n- {base}files/nested.yaml\n"),
        );
        outer.write(
            "lib/kustomization.yaml",
            format!("resources: [cm.yaml]\nconfigMapGenerator:\n- name: g\n  files: [{base}files/app.properties]\n"),
        );
        outer.write("lib/cm.yaml", config_map("lib"));
        outer.commit("outer");
        server.serve_git("/", &sandbox.path("srv"));
        for (path, body) in [
            ("/files/nested.yaml", config_map("nested")),
            ("/files/cm.yaml", config_map("file")),
            ("/files/app.properties", "a=b\n".to_owned()),
            ("/files/crd.json", "{}\n".to_owned()),
            (
                "/files/plugin.yaml",
                format!(
                    "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata:\n  name: p\nfiles:\n- {base}files/app.properties\n"
                ),
            ),
        ] {
            server.route(path, Reply::ok(body));
        }
        World {
            sandbox,
            server: Some(server),
            base,
            outer,
            inner,
        }
    }

    /// Returns a repository that uses all of it.
    fn user(&self) -> Repo {
        let repo = self.sandbox.repo("work");
        let base = &self.base;
        repo.write(
            "app/kustomization.yaml",
            format!(
                "resources:\n- {base}acme/outer//app?ref=main\n- {base}files/cm.yaml\n\
                 crds: [{base}files/crd.json]\ngenerators:\n- {base}files/plugin.yaml\n\
                 configMapGenerator:\n- name: x\n  files:\n  - {base}files/app.properties\n  - key={base}files/cm.yaml\n"
            ),
        );
        repo.commit("source");
        repo
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }

    /// The network is gone, and the cache with it.
    fn cut(&mut self) {
        self.server = None;
        fs::remove_dir_all(self.sandbox.path("cache/git-kustomize-localize")).unwrap();
    }
}

const BRANCH: &str = "localized/main";

#[test]
fn the_tip_alone_is_enough() {
    let mut world = World::new();
    let repo = world.user();
    repo.run(&["app"]).success();
    let log = world.server().log();
    let mut gets: Vec<&String> = log
        .iter()
        .filter(|line| line.starts_with("GET /files/"))
        .collect();
    gets.sort();
    let before = gets.len();
    gets.dedup();
    assert_eq!(gets.len(), before, "a URL was fetched twice: {log:#?}");
    assert_eq!(gets.len(), 5, "{log:#?}");
    let tip = repo.id(BRANCH);
    let tree = repo.id("localized/main:localized-app");
    world.cut();

    repo.run(&["app"]).success().stdout_has("nothing to do");
    repo.run(&["app", "--offline"])
        .success()
        .stdout_has("nothing to do");
    repo.run(&["app", "--locked"])
        .success()
        .stdout_has("nothing to do");
    assert_eq!(repo.id(BRANCH), tip);

    // One more local reference changes nothing about the remote ones.
    let text = repo.read("app/kustomization.yaml");
    repo.write(
        "app/kustomization.yaml",
        text.replace("resources:\n", "resources:\n- local.yaml\n"),
    );
    repo.write("app/local.yaml", config_map("local"));
    repo.commit("local");
    repo.run(&["app", "--locked", "--offline"]).success();
    assert_ne!(repo.id(BRANCH), tip);
    let changed = repo.git(&["diff", "--name-only", &tree, "localized/main:localized-app"]);
    let mut changed: Vec<&str> = changed.lines().collect();
    changed.retain(|path| *path != "kustomize-localize.lock");
    assert_eq!(changed, ["kustomization.yaml", "local.yaml"]);

    // And so it is on disk.
    repo.run(&["app", "disk", "--no-commit", "--offline"])
        .fails(2);
}

#[test]
fn locked_versions_stay_although_upstream_moved() {
    let world = World::new();
    let repo = world.user();
    repo.run(&["app"]).success();
    let (outer, inner) = (world.outer.id("HEAD"), world.inner.id("HEAD"));
    for upstream in [&world.outer, &world.inner] {
        upstream.write("moved", "moved\n");
        upstream.commit("moved");
    }
    world
        .server()
        .route("/files/cm.yaml", Reply::ok(config_map("changed")));
    world.server().forget();
    repo.run(&["app"]).success().stdout_has("nothing to do");
    assert_eq!(world.server().log(), [""; 0]);

    // The lock at the top of the source decides on its own: no tip, no cache.
    let lock = repo.show(BRANCH, "localized-app/kustomize-localize.lock");
    repo.write("kustomize-localize.lock", reviewed(&lock));
    repo.commit("lock");
    repo.git(&["branch", "-q", "-D", BRANCH]);
    fs::remove_dir_all(world.sandbox.path("cache/git-kustomize-localize")).unwrap();
    let output = repo.run(&["app", "--locked"]);
    let now = sha256(&config_map("changed"));
    let then = sha256(&config_map("file"));
    output
        .fails(2)
        .stderr_has("files/cm.yaml has changed since it was locked");
    output
        .stderr_has(&format!("sha256 {now} instead of {then}"))
        .stderr_has("hint: to lock what it is now");

    world
        .server()
        .route("/files/cm.yaml", Reply::ok(config_map("file")));
    repo.run(&["app", "--locked"]).success();
    let lock = repo.show(BRANCH, "localized-app/kustomize-localize.lock");
    assert!(lock.contains(&outer) && lock.contains(&inner), "{lock}");
}

fn sha256(text: &str) -> String {
    use sha2::Digest as _;
    let digest = sha2::Sha256::digest(text.as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_tag_that_moved_stays_where_it_was_locked() {
    let world = World::new();
    let first = world.inner.id("HEAD");
    world.inner.git(&["tag", "v1"]);
    let repo = world.sandbox.repo("work");
    repo.write(
        "app/kustomization.yaml",
        format!("resources: ['{}acme/inner//base?ref=v1']\n", world.base),
    );
    repo.commit("source");
    repo.run(&["app"]).success();
    world.inner.write("base/cm.yaml", config_map("moved"));
    world.inner.commit("moved");
    world.inner.git(&["tag", "-f", "v1"]);
    world.inner.git(&["reset", "-q", "--hard", &first]);
    repo.write(
        "app/kustomization.yaml",
        format!(
            "resources: ['{0}acme/inner//base?ref=v1', '{0}acme/inner//base/../base?ref=v1']\n",
            world.base
        ),
    );
    repo.commit("again");
    fs::remove_dir_all(world.sandbox.path("cache/git-kustomize-localize")).unwrap();
    let output = repo.run(&["app"]);
    let lock = repo.show(BRANCH, "localized-app/kustomize-localize.lock");
    assert!(lock.contains(&first), "{output:?}\n{lock}");
}

#[test]
fn locked_and_offline_report_what_they_lack() {
    let world = World::new();
    let repo = world.sandbox.repo("work");
    let base = &world.base;
    let fixed = world.inner.id("HEAD");
    repo.write(
        "app/kustomization.yaml",
        format!("resources:\n- {base}acme/inner//base?ref=main\n- {base}acme/inner//base?ref={fixed}\n- {base}files/cm.yaml\n"),
    );
    repo.commit("source");
    let before = repo.state();
    let output = repo.run(&["app", "--locked"]);
    output.fails(2).stderr_has(&format!(
        "app/kustomization.yaml:2:3: resources[0]: {base}acme/inner at `main` is not in the lock"
    ));
    output.stderr_has(&format!("{base}acme/inner at `{fixed}` is not in the lock"));
    output
        .stderr_has(&format!("{base}files/cm.yaml is not in the lock"))
        .stderr_has("hint: run once without `--locked`");
    let output = repo.run(&["app", "--offline"]);
    output.fails(2).stderr_has(&format!(
        "{base}acme/inner: `main` cannot be resolved offline"
    ));
    output.stderr_has(&format!(
        "commit {fixed} of {base}acme/inner is not in the cache"
    ));
    output
        .stderr_has(&format!("{base}files/cm.yaml is not in the cache"))
        .stderr_has("hint: run once without `--offline`");
    assert_eq!(world.server().log(), [""; 0]);
    before.assert_same(&repo.state());

    repo.write(
        "app/kustomization.yaml",
        format!("resources: ['{base}acme/inner//base']\n"),
    );
    repo.commit("no ref");
    repo.run(&["app", "--offline"])
        .fails(2)
        .stderr_has(&format!(
            "{base}acme/inner: `HEAD` cannot be resolved offline"
        ));
    assert_eq!(world.server().log(), [""; 0]);

    // With the commit in the cache, its id is enough.
    repo.write(
        "app/kustomization.yaml",
        format!("resources: ['{base}acme/inner//base?ref={fixed}']\n"),
    );
    repo.commit("fixed");
    repo.run(&["app", "--dry-run"]).success();
    world.server().forget();
    repo.run(&["app", "--offline"]).success();
    assert_eq!(world.server().log(), [""; 0]);
}

#[test]
fn a_damaged_file_in_the_cache_is_fetched_again() {
    let world = World::new();
    let repo = world.sandbox.repo("work");
    repo.write(
        "app/kustomization.yaml",
        format!("resources: ['{}files/cm.yaml']\n", world.base),
    );
    repo.commit("source");
    repo.run(&["app"]).success();
    let lock = repo.show(BRANCH, "localized-app/kustomize-localize.lock");
    repo.write("kustomize-localize.lock", reviewed(&lock));
    repo.commit("lock");
    let stored = world
        .sandbox
        .path("cache/git-kustomize-localize/http")
        .join(sha256(&config_map("file")));
    let fresh = |requests: usize| {
        repo.git(&["branch", "-q", "-D", BRANCH]);
        world.server().forget();
        repo.run(&["app"]).success();
        assert_eq!(world.server().log().len(), requests);
    };
    fresh(0);
    fs::write(&stored, "").unwrap();
    fresh(1);
    fresh(0);
}

#[test]
fn a_damaged_repository_in_the_cache_is_fetched_again() {
    let sandbox = Sandbox::new();
    let up = sandbox.repo("up");
    let numbers: String = (0..2000).map(|number| format!("{number}-")).collect();
    up.write("kustomization.yaml", "resources: [cm.yaml]\n");
    up.write(
        "cm.yaml",
        format!("{}data: {{numbers: {numbers}}}\n", config_map("up")),
    );
    up.commit("one");
    let repo = sandbox.repo("work");
    let url = format!("file://{}?ref={}", up.path().display(), up.id("HEAD"));
    repo.write("app/kustomization.yaml", format!("resources: ['{url}']\n"));
    repo.commit("source");
    repo.run(&["app"]).success();
    let mut entry = sandbox.path("cache/git-kustomize-localize/git");
    while !entry.ends_with(up.id("HEAD")) {
        entry = entry.read_dir().unwrap().next().unwrap().unwrap().path();
    }
    let packs = || {
        let files = entry.join("objects/pack").read_dir().unwrap();
        let files: BTreeMap<_, _> = files
            .map(|file| file.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|it| it == "pack" || it == "idx")
            })
            .map(|path| (path.clone(), fs::read(path).unwrap()))
            .collect();
        files
    };
    let whole = packs();
    assert!(whole.len() > 1);
    for (path, bytes) in &whole {
        // In the middle, and at each end.
        for at in [20, bytes.len() / 2, bytes.len() - 1] {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            fs::remove_file(path).unwrap();
            fs::write(path, damaged).unwrap();
            repo.git(&["branch", "-q", "-D", BRANCH]);
            repo.run_unchanged(&["app", "--offline"])
                .fails(2)
                .stderr_has(&format!("`{}` in the cache is damaged", entry.display()))
                .stderr_has("run once without `--offline`");
            assert!(entry.is_dir());
            repo.run(&["app"]).success();
            assert_eq!(packs(), whole, "{path:?} {at}");
        }
    }
}

#[test]
fn a_lock_and_the_cache_are_enough() {
    let mut world = World::new();
    let repo = world.user();
    repo.run(&["app"]).success();
    let tree = repo.id("localized/main:localized-app");
    let lock = repo.show(BRANCH, "localized-app/kustomize-localize.lock");
    repo.write("kustomize-localize.lock", reviewed(&lock));
    repo.commit("lock");
    repo.git(&["branch", "-q", "-D", BRANCH]);
    world.server = None;
    repo.run(&["app", "--locked"]).success();
    assert_eq!(repo.id("localized/main:localized-app"), tree);
}

/// Returns what a lock at the top of the source would say.
fn reviewed(lock: &str) -> String {
    let remotes = lock.split("files:\n").next().unwrap();
    let lines = remotes.lines().filter(|line| !line.starts_with("target:"));
    lines.map(|line| format!("{line}\n")).collect()
}
