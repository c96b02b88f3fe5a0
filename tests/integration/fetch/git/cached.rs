//! Fetching once, and the cache.

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
fn leftovers_of_a_killed_run_are_never_used() {
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
        .stderr_has("there is no cache directory")
        .stderr_has("hint: set HOME or XDG_CACHE_HOME");
    // A run that brings in nothing needs no cache.
    repo.write("app/kustomization.yaml", "resources: [cm.yaml]\n");
    repo.write("app/cm.yaml", config_map("local"));
    repo.commit("local");
    repo.run(&["app"]).success();
}

/// Puts other bytes under the id of the blob at `path`, in the one pack that the cache holds.
fn exchange(sandbox: &Sandbox, entry: &std::path::Path, commit: &str, path: &str, bytes: &str) {
    let packs = entry.join("objects/pack");
    let pack = |extension: &str| {
        let mut files = packs.read_dir().unwrap().map(|file| file.unwrap().path());
        files
            .find(|path| path.extension().is_some_and(|it| it == extension))
            .unwrap()
    };
    let work = sandbox.path("exchange");
    let _ = fs::remove_dir_all(&work);
    fs::create_dir(&work).unwrap();
    sandbox.git(&work, &["init", "-q", "--bare", "."]);
    let shell = |script: String| {
        let mut command = sandbox.command("sh", &work);
        assert!(command.args(["-ec", &script]).status().unwrap().success());
    };
    shell(format!(
        "git unpack-objects -q < '{}'",
        pack("pack").display()
    ));
    let blob = sandbox.git(&work, &["rev-parse", &format!("{commit}:{path}")]);
    let loose = work.join("objects").join(&blob[..2]).join(&blob[2..]);
    fs::remove_file(&loose).unwrap();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    std::io::Write::write_all(
        &mut encoder,
        format!("blob {}\0{bytes}", bytes.len()).as_bytes(),
    )
    .unwrap();
    fs::write(&loose, encoder.finish().unwrap()).unwrap();
    // The commit alone, as in the cache.
    fs::write(work.join("shallow"), format!("{commit}\n")).unwrap();
    shell(format!(
        "git rev-list --objects {commit} | git pack-objects -q made > /dev/null"
    ));
    for extension in ["pack", "idx"] {
        let mut made = work.read_dir().unwrap().map(|file| file.unwrap().path());
        let made = made.find(|path| path.extension().is_some_and(|it| it == extension));
        let old = pack(extension);
        fs::remove_file(&old).unwrap();
        fs::copy(made.unwrap(), old).unwrap();
    }
}

#[test]
fn a_tampered_cache_is_refused() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let id = up.id("HEAD");
    let url = format!("file://{}//base?ref={id}", up.path().display());
    let repo = naming(&sandbox, &[&url]);
    repo.run(&["app", "--branch", "localized/first"]).success();
    let mut entry = sandbox.path("cache/git-kustomize-localize/git");
    while !entry.ends_with(&id) {
        entry = entry.read_dir().unwrap().next().unwrap().unwrap().path();
    }
    let path = sandbox.git(up.path(), &["ls-tree", "-r", "--name-only", &id, "base/"]);
    let path = path
        .lines()
        .find(|path| !path.ends_with("kustomization.yaml"))
        .unwrap();
    exchange(&sandbox, &entry, &id, path, &config_map("evil"));
    // Files that the branch holds need no cache, and the record of their origin is not trusted.
    for arguments in [
        &["app", "--branch", "localized/second"][..],
        &["app", "out", "--no-commit"],
        &["verify", "localized/first", "--rebuild"],
    ] {
        repo.run_unchanged(arguments)
            .fails(2)
            .stderr_has("is not what its id says: the cache was changed")
            .stderr_has("hint: remove it, and run the command again: rm -rf ");
    }
    fs::remove_dir_all(&entry).unwrap();
    repo.run(&["app", "--branch", "localized/second"]).success();
}

#[test]
fn a_cache_that_others_can_write_is_refused() {
    let sandbox = Sandbox::new();
    let up = upstream(&sandbox, "up");
    let url = format!("file://{}//base?ref={}", up.path().display(), up.id("HEAD"));
    let repo = naming(&sandbox, &[&url]);
    repo.run(&["app", "first", "--no-commit"]).success();
    let cache = sandbox.path("cache/git-kustomize-localize");
    for mode in [0o770, 0o707, 0o777] {
        fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
        for offline in [&[][..], &["--offline"]] {
            let arguments = [&["app", "second", "--no-commit"][..], offline].concat();
            repo.run(&arguments)
                .fails(2)
                .stderr_has("can be written by other users, so it is not used")
                .stderr_has(&format!("hint: remove it: rm -rf {}", cache.display()));
        }
    }
    fs::set_permissions(&cache, fs::Permissions::from_mode(0o700)).unwrap();
    repo.run(&["app", "second", "--no-commit", "--offline"])
        .success();
}

#[test]
fn fetched_files_have_a_size_limit() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    let up = upstream(&sandbox, "up");
    let large = format!("{}  large: {}\n", config_map("large"), "x".repeat(20_000));
    up.write("base/cm.yaml", &large);
    up.commit("large");
    server.route("/cm.yaml", Reply::ok(large.as_str()));
    let root = format!("file://{}//base?ref={}", up.path().display(), up.id("HEAD"));
    let file = format!("{}cm.yaml", server.url());
    let repo = sandbox.repo("work");
    for url in [root.as_str(), file.as_str()] {
        name(&repo, &[url]);
        for way in [&["app", "--no-commit"][..], &["app"], &["--in-place"]] {
            let arguments = [way, &["--max-file-size=19k"]].concat();
            repo.run_unchanged(&arguments)
                .fails(2)
                .stderr_has("too large")
                .stderr_has("`--max-file-size");
        }
        let output = repo.run(&["app", "--no-commit", "--max-file-size", "21k"]);
        output.success();
        fs::remove_dir_all(repo.path().join("localized-app")).unwrap();
    }
    for size in ["0", "-1", "many", "1t", "99999999999g", ""] {
        repo.run_unchanged(&["app", &format!("--max-file-size={size}")])
            .fails(2)
            .stderr_has("--max-file-size");
    }
}

#[test]
fn other_inputs_have_a_size_limit_too() {
    let comments = "# nothing\n".repeat(2_000);
    for path in [
        ".gitmodules",
        ".gitattributes",
        "base/.gitattributes",
        "LICENSE",
    ] {
        let sandbox = Sandbox::new();
        let up = upstream(&sandbox, "up");
        up.write(path, &comments);
        up.commit("large");
        let repo = sandbox.repo("work");
        let root = format!("file://{}//base?ref={}", up.path().display(), up.id("HEAD"));
        name(&repo, &[&root]);
        repo.run_unchanged(&["app", "--no-commit", "--max-file-size=19k"])
            .fails(2)
            .stderr_has(&format!("{path} is too large: "))
            .stderr_has("`--max-file-size 20000`");
        repo.run(&["app", "--no-commit"]).success();
    }
}
