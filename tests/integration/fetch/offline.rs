//! What needs no network: versions that the lock decided and the tip or the cache holds.

use std::collections::BTreeMap;
use std::fs;

use git_kustomize_localize::seams::record::sha256_hex;

use super::{forget, local, lock, naming, using};
use crate::support::{Reply, Repo, Sandbox, Server, Transcript, config_map, rows};

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
        let app =
            format!("resources:\n- ../lib # kept\n- {base}acme/inner//base?ref=main\n- {base}files/nested.yaml\n");
        outer.write("app/kustomization.yaml", app);
        let lib =
            format!("resources: [cm.yaml]\nconfigMapGenerator:\n- name: g\n  files: [{base}files/app.properties]\n");
        outer.write("lib/kustomization.yaml", lib);
        outer.write("lib/cm.yaml", config_map("lib"));
        outer.commit("outer");
        server.serve_git("/", &sandbox.path("srv"));
        let plugin = format!(
            "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata:\n  name: p\nfiles:\n- {base}files/app.properties\n"
        );
        for (name, body) in [
            ("nested.yaml", config_map("nested")),
            ("cm.yaml", config_map("file")),
            ("app.properties", "a=b\n".to_owned()),
            ("crd.json", "{}\n".to_owned()),
            ("plugin.yaml", plugin),
        ] {
            server.route(&format!("/files/{name}"), Reply::ok(body));
        }
        World { sandbox, server: Some(server), base, outer, inner }
    }

    /// Returns a repository that uses all of it.
    fn user(&self) -> Repo {
        let base = &self.base;
        let text = format!(
            "resources:\n- {base}acme/outer//app?ref=main\n- {base}files/cm.yaml\n\
             crds: [{base}files/crd.json]\ngenerators:\n- {base}files/plugin.yaml\n\
             configMapGenerator:\n- name: x\n  files:\n  - {base}files/app.properties\n  - key={base}files/cm.yaml\n"
        );
        using(&self.sandbox, &text)
    }

    fn server(&self) -> &Server {
        self.server.as_ref().unwrap()
    }
}

const BRANCH: &str = "localized/main";

/// Puts the lock of what was localized at the top of the source, as if it was reviewed, and removes the branch.
fn review(repo: &Repo) {
    let lock = lock(repo);
    let remotes = lock.split("files:\n").next().unwrap();
    let lines = remotes.lines().filter(|line| !line.starts_with("target:"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    repo.write("kustomize-localize.lock", text);
    repo.commit("lock");
    repo.git(&["branch", "-q", "-D", BRANCH]);
}

#[test]
fn the_tip_or_a_lock_and_the_cache_are_enough() {
    let mut world = World::new();
    let repo = world.user();
    repo.run(&["app"]).success();
    let log = world.server().log();
    let mut gets: Vec<&String> = log.iter().filter(|it| it.starts_with("GET /files/")).collect();
    gets.sort();
    gets.dedup();
    let times = log.iter().filter(|it| it.starts_with("GET /files/")).count();
    assert_eq!((gets.len(), times), (5, 5), "twice: {log:#?}");
    let tip = repo.id(BRANCH);
    let tree = repo.id("localized/main:localized-app");
    let cache = world.sandbox.path("cache/git-kustomize-localize");
    let away = world.sandbox.path("away");
    world.server = None;
    fs::rename(&cache, &away).unwrap();

    let mut transcript = Transcript::default();
    for more in [&["app"][..], &["app", "--offline"]] {
        transcript.add(repo.run(more).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify
        $ git kustomize-localize app --offline --no-verify
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
    assert_eq!(repo.id(BRANCH), tip);
    // So it is not on disk.
    let disk = ["app", "disk", "--no-commit", "--offline"];
    repo.run(&disk).fails(2);

    // One more local reference changes nothing about the remote ones.
    let text = repo.read("app/kustomization.yaml");
    let more = text.replace("resources:\n", "resources:\n- local.yaml\n");
    repo.write("app/local.yaml", config_map("local"));
    using(&world.sandbox, &more);
    repo.run(&["app", "--offline"]).success();
    let changed = repo.git(&["diff", "--name-only", &tree, "localized/main:localized-app"]);
    let lines = ["kustomization.yaml", "kustomize-localize.lock", "local.yaml"];
    assert_eq!(changed.lines().collect::<Vec<_>>(), lines);

    // Without the tip, the lock and the cache.
    using(&world.sandbox, &text);
    review(&repo);
    if cache.exists() {
        fs::remove_dir_all(&cache).unwrap();
    }
    fs::rename(&away, &cache).unwrap();
    repo.run(&["app"]).success();
    assert_eq!(repo.id("localized/main:localized-app"), tree);
}

/// A build sends what it asks loopback for past every proxy.
#[test]
fn every_command_agrees_on_what_is_locked_on_loopback() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    server.route("/a/b/cm.yaml", Reply::ok(config_map("file")));
    let repo = naming(&sandbox, &[format!("{}a/b/cm.yaml", server.url())]);
    sandbox.builds();
    repo.run(&["lock"]).success();
    repo.commit("locked");
    drop(server);
    let mut transcript = Transcript::default();
    for args in [&["lock"][..], &["check", "--build"], &["branch"]] {
        transcript.add(repo.run(&[args, &["--offline"]].concat()).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock --offline
        nothing to do: kustomize-localize.lock has 1 remote reference
        $ git kustomize-localize check --build --offline
        checked 1 kustomization with 1 reference in the working tree, 1 build (kustomize/…, network closed): no problems found
        $ git kustomize-localize branch --offline
        localized the repository on branch localized/main (<0>): 4 files written, 1 reference rewritten, 0 removed
          added http://127.0.0.1:…/a/b/cm.yaml <1>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: app: accumulating resources: accumulation err='accumulating resources from 'http://127.0.0.1:…/a/b/cm.yaml': Get "http://127.0.0.1:…/a/b/cm.yaml": dial tcp 127.0.0.1:…: connect: permission denied': failed to run 'bin/git fetch --depth=1 http://127.0.0.1:…/a/b HEAD': fatal: `git fetch --depth=1 http://127.0.0.1:…/a/b HEAD`: http://127.0.0.1:…/a/b at HEAD was not fetched : exit status 128
          to look at it: git show --stat <0>
    "#]]);
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
    let [changed, file] = ["changed", "file"].map(config_map);
    let route = |text: &String| world.server().route("/files/cm.yaml", Reply::ok(text.as_str()));
    route(&changed);
    world.server().forget();
    repo.run(&["app"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
    assert_eq!(world.server().log(), crate::support::NONE);

    // The lock at the top of the source decides on its own: no tip, no cache.
    review(&repo);
    forget(&world.sandbox);
    let [now, then] = [&changed, &file].map(|text| sha256_hex(text.as_bytes()));
    repo.run(&["app"])
        .fails(2).stderr_has(&format!("expected sha256 {then}, found {now}"))
        .says(expect![[r#"
            error: http://127.0.0.1:…/files/cm.yaml has changed since it was locked: expected sha256 <0>, found <1>
              at app/kustomization.yaml:3:3: resources[1]
              at app/kustomization.yaml:11:5: configMapGenerator[0].files[1]
              hint: to lock its new content: `git kustomize-localize update`; if only the lock of NEW_DIR has it, remove NEW_DIR and copy again
        "#]]);
    route(&file);
    repo.run(&["app"]).success();
    let lock = lock(&repo);
    assert!(lock.contains(&outer) && lock.contains(&inner), "{lock}");
}

#[test]
fn a_tag_that_moved_stays_where_it_was_locked() {
    let (sandbox, up, url) = local();
    let first = up.id("HEAD");
    let repo = naming(&sandbox, &[format!("{url}//base?ref=v1")]);
    repo.run(&["app"]).success();
    up.write("base/cm.yaml", config_map("moved"));
    up.commit("moved");
    up.git(&["tag", "-f", "v1"]);
    up.git(&["reset", "-q", "--hard", &first]);
    naming(&sandbox, &["base", "base/../base"].map(|it| format!("{url}//{it}?ref=v1")));
    forget(&sandbox);
    let output = repo.run(&["app"]);
    assert!(lock(&repo).contains(&first), "{output:?}");
}

#[test]
fn branch_and_offline_report_what_they_lack() {
    let world = World::new();
    let base = &world.base;
    let fixed = world.inner.id("HEAD");
    let inner = format!("{base}acme/inner");
    let file = format!("{base}files/cm.yaml");
    let pinned = format!("{inner}//base?ref={fixed}");
    let repo = naming(&world.sandbox, &[&format!("{inner}//base?ref=main"), &pinned, &file]);
    repo.run_unchanged(&["branch"])
        .fails(1)
        .says(expect![[r#"
            error[remote-reference]: `http://127.0.0.1:…/acme/inner//base?ref=main` is neither localized nor locked
             --> app/kustomization.yaml:2:3
              |
            2 | - "http://127.0.0.1:…/acme/inner//base?ref=main"
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]

            error[remote-reference]: `http://127.0.0.1:…/acme/inner//base?ref=<0>` is neither localized nor locked
             --> app/kustomization.yaml:3:3
              |
            3 | - "http://127.0.0.1:…/acme/inner//base?ref=<0>"
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]

            error[remote-reference]: `http://127.0.0.1:…/files/cm.yaml` is neither localized nor locked
             --> app/kustomization.yaml:4:3
              |
            4 | - "http://127.0.0.1:…/files/cm.yaml"
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[2]

            error: <1> has 3 errors (remote-reference 3): nothing was committed
              hint: for more: git kustomize-localize explain remote-reference
              hint: lock the remote references: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
        "#]]);
    repo.run_unchanged(&["app", "--offline"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/acme/inner?ref=main is not in the cache
            error: app/kustomization.yaml:3:3: resources[1]: commit <0> of http://127.0.0.1:…/acme/inner is not in the cache
            error: app/kustomization.yaml:4:3: resources[2]: http://127.0.0.1:…/files/cm.yaml is not in the cache
              hint: run once without `--offline`
        "#]]);
    naming(&world.sandbox, &[format!("{inner}//base")]);
    repo.run(&["app", "--offline"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: http://127.0.0.1:…/acme/inner is not in the cache
          hint: run once without `--offline`
    "#]]);
    assert_eq!(world.server().log(), crate::support::NONE);

    // With the commit in the cache, its id is enough.
    naming(&world.sandbox, &[pinned]);
    repo.run(&["app", "--dry-run"]).success();
    world.server().forget();
    repo.run(&["app", "--offline"]).success();
    assert_eq!(world.server().log(), crate::support::NONE);
}

#[test]
fn a_damaged_file_in_the_cache_is_fetched_again() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let file = config_map("file");
    server.route("/files/cm.yaml", Reply::ok(file.as_str()));
    let repo = naming(&sandbox, &[format!("{}files/cm.yaml", server.url())]);
    repo.run(&["app"]).success();
    review(&repo);
    let stored = sandbox.path("cache/git-kustomize-localize/http").join(sha256_hex(file.as_bytes()));
    let asks = |times: usize| {
        server.forget();
        repo.run(&["app", "--dry-run"]).success();
        assert_eq!(server.log().len(), times);
    };
    asks(0);
    fs::write(&stored, "").unwrap();
    asks(1);
    asks(0);
}

#[test]
fn a_damaged_repository_in_the_cache_is_fetched_again() {
    let (sandbox, up, url) = local();
    let numbers: String = (0..2000).map(|number| format!("{number}-")).collect();
    let large = format!("{}data: {{numbers: {numbers}}}\n", config_map("up"));
    up.write("cm.yaml", large);
    let id = up.commit("large");
    let repo = naming(&sandbox, &[format!("{url}?ref={id}")]);
    let run = || repo.run(&["app", "--dry-run"]).success().status;
    run();
    let mut entry = sandbox.path("cache/git-kustomize-localize/git");
    while !entry.ends_with(&id) {
        entry = entry.read_dir().unwrap().next().unwrap().unwrap().path();
    }
    let packs = || -> BTreeMap<_, _> {
        let files = entry.join("objects/pack").read_dir().unwrap();
        let files = files.map(|file| file.unwrap().path());
        let packs = files.filter(|path| path.extension().is_some_and(|it| it == "pack" || it == "idx"));
        packs.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
    };
    let whole = packs();
    assert!(whole.len() > 1);
    let mut transcript = Transcript::default();
    for (path, bytes) in &whole {
        // In the middle, and at each end.
        for at in rows([20, bytes.len() / 2, bytes.len() - 1], 2) {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x55;
            fs::remove_file(path).unwrap();
            fs::write(path, damaged).unwrap();
            transcript.add(repo.run_unchanged(&["app", "--offline"]).fails(2).stderr_has(&id));
            run();
            assert_eq!(packs(), whole, "{path:?} {at}");
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --offline --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: commit <0> of file:///home/me/up is not in the cache
          hint: run once without `--offline`
    "#]]);
}
