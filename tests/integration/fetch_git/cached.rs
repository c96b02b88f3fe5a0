//! What is fetched once, and the cache.

use super::*;

#[test]
fn each_repository_and_ref_is_fetched_once_and_side_by_side() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    for name in ["a", "b", "c", "d"] {
        upstream(&sandbox, &format!("srv/acme/{name}"));
    }
    server.serve_git("/git/", &sandbox.path("srv"));
    let git = server.git_url();
    let mut references = Vec::new();
    for name in ["a", "b", "c", "d"] {
        references.push(format!("{git}acme/{name}.git?ref=v1"));
        references.push(format!("{git}acme/{name}.git/base?ref=v1"));
    }
    // Another spelling of the same: the repository, the ref and the timeout.
    references.push(format!("{git}acme/a.git/base?ref=v1&timeout=60"));
    let repo = naming(
        &sandbox,
        &references.iter().map(String::as_str).collect::<Vec<_>>(),
    );
    let log = count_git(&sandbox);
    repo.run(&["app", "--dry-run"]).success();
    let fetches = taken(&log, "fetch");
    assert_eq!(fetches.len(), 4, "{fetches:#?}");
    assert!(server.most_at_once() >= 2, "one after the other");
    let posts = server
        .log()
        .iter()
        .filter(|line| line.starts_with("GET /git/acme") && !line.contains("info/refs"))
        .count();
    assert_eq!(
        posts,
        0,
        "a marker says that no file is meant: {:#?}",
        server.log()
    );

    // A tag may have moved, so it is looked up; the commit is there.
    server.forget();
    repo.run(&["app", "--dry-run"]).success();
    let calls = fs::read_to_string(&log).unwrap();
    assert!(!calls.contains(" fetch "), "{calls}");
    assert_eq!(calls.matches(" ls-remote ").count(), 4, "{calls}");

    // A commit cannot move.
    let id = sandbox.git(&sandbox.path("srv/acme/a"), &["rev-parse", "v1"]);
    name(&repo, &[&format!("{git}acme/a.git?ref={id}")]);
    taken(&log, "");
    server.forget();
    repo.run(&["app", "--dry-run"]).success();
    assert_eq!(server.log(), [""; 0]);
    let calls = fs::read_to_string(&log).unwrap();
    assert!(
        !calls.contains(" init ") && !calls.contains(" ls-remote "),
        "{calls}"
    );
}

#[test]
fn the_cache_is_private_and_may_go_at_any_time() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let id = up.id("HEAD");
    let url = format!("file://{}//base?ref={id}", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    let run = || repo.run(&["app", "--no-commit", "--overwrite"]);
    run().success();
    let cache = sandbox.path("cache/git-kustomize-localize");
    let mode = fs::metadata(&cache).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    fs::remove_dir_all(repo.path().join("localized-app")).unwrap();
    fs::remove_dir_all(&cache).unwrap();
    run().success();
    assert_eq!(sandbox.leftovers(), [""; 0]);

    let entry = || {
        let mut path = cache.join("git");
        while !path.ends_with(&id) {
            path = path.read_dir().unwrap().next().unwrap().unwrap().path();
        }
        path
    };
    let pack = |extension: &str| {
        let files = entry().join("objects/pack").read_dir().unwrap();
        let mut paths = files.map(|file| file.unwrap().path());
        paths
            .find(|path| path.extension().is_some_and(|it| it == extension))
            .unwrap()
    };
    let damages: [&dyn Fn(); 6] = [
        &|| fs::remove_file(entry().join("HEAD")).unwrap(),
        &|| fs::remove_dir_all(entry().join("objects")).unwrap(),
        &|| fs::remove_file(pack("pack")).unwrap(),
        &|| fs::remove_file(pack("idx")).unwrap(),
        &|| {
            let path = pack("pack");
            let bytes = fs::read(&path).unwrap();
            fs::remove_file(&path).unwrap();
            fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        },
        &|| {
            let path = pack("pack");
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
        },
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage();
        fs::remove_dir_all(repo.path().join("localized-app")).unwrap();
        eprintln!("damage {number}");
        run().success();
        assert!(pack("pack").metadata().unwrap().len() > 100);
    }
}

#[test]
fn what_a_killed_run_left_is_never_used() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "srv/acme/base");
    let id = up.id("HEAD");
    server.serve_git("/git/", &sandbox.path("srv"));
    let path = "/git/acme/base.git/info/refs?service=git-upload-pack";
    server.route(path, Reply::ok("").delay(Duration::from_secs(30)));
    let repo = naming(
        &sandbox,
        &[&format!("{}acme/base.git?ref={id}", server.git_url())],
    );
    let running = repo.start(&["app"]);
    while server.log().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.kill();
    running.wait().fails(-9);
    let directory = sandbox.path("cache/git-kustomize-localize/git");
    let of_url = directory
        .read_dir()
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let names = || -> Vec<String> {
        let entries = of_url.read_dir().unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    };
    let left = names();
    assert!(
        left.len() == 1 && left[0].starts_with("fetching-"),
        "{left:?}"
    );
    // Two days later.
    let old = std::time::SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    fs::File::open(of_url.join(&left[0]))
        .unwrap()
        .set_modified(old)
        .unwrap();

    server.unroute(path);
    repo.run(&["app"]).success();
    assert_eq!(names(), [id]);
}

#[test]
fn two_runs_may_meet_in_a_cold_cache() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let url = format!("file://{}//base?ref=v1", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    let runs: Vec<_> = (0..4)
        .map(|number| repo.start(&["app", &format!("out-{number}"), "--no-commit"]))
        .collect();
    for run in runs {
        run.wait().success();
    }
}

#[test]
fn a_cache_that_cannot_be_had_is_explained() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let url = format!("file://{}//base?ref=v1", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    fs::write(sandbox.path("file"), "").unwrap();
    sandbox.set("XDG_CACHE_HOME", sandbox.path("file"));
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has("could not write the cache `")
        .stderr_has("hint: set XDG_CACHE_HOME");
    sandbox.unset("XDG_CACHE_HOME");
    sandbox.unset("HOME");
    let output = repo.run(&["app"]);
    output
        .fails(2)
        .stderr_has("there is no place for a cache")
        .stderr_has("hint: set HOME or XDG_CACHE_HOME");
    // Who brings in nothing needs no cache.
    repo.write("app/kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("app/cm.yaml", config_map("local"));
    repo.commit("local");
    repo.run(&["app"]).success();
}
