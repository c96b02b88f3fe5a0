//! Fetching once, and the cache.

use crate::support::Transcript;
use std::path::Path;

use super::*;

/// Returns the first file or directory below `top` whose name ends so.
fn find(top: &Path, end: &str) -> Option<PathBuf> {
    let mut entries = top.read_dir().into_iter().flatten();
    entries.find_map(|entry| {
        let path = entry.unwrap().path();
        let is_it = path.to_str().unwrap().ends_with(end);
        if is_it { Some(path) } else { find(&path, end) }
    })
}

/// Returns what the cache holds of a commit.
fn entry(sandbox: &Sandbox, commit: &str) -> PathBuf {
    let git = sandbox.path("cache/git-kustomize-localize/git");
    find(&git, commit).unwrap()
}

#[test]
fn each_repository_and_ref_is_fetched_once_and_side_by_side() {
    let (sandbox, server, _up, _) = served();
    let names = ["a", "b", "c", "d"];
    let [id, ..] = names.map(|name| upstream(&sandbox, &format!("srv/acme/{name}")).id("v1"));
    let git = server.git_url();
    let mut references = Vec::new();
    for name in names {
        references.push(format!("{git}acme/{name}.git?ref=v1"));
        references.push(format!("{git}acme/{name}.git/base?ref=v1"));
    }
    // Another spelling of the same: the repository, the ref and the timeout.
    references.push(format!("{git}acme/a.git/base?ref=v1&timeout=60"));
    let repo = naming(&sandbox, &references);
    let log = count_git(&sandbox);
    let run = || repo.run(&["app", "--dry-run"]).success().status;
    run();
    let fetches = taken(&log, "fetch");
    assert_eq!(fetches.len(), 4, "{fetches:#?}");
    assert!(server.most_at_once() >= 2, "one after the other");
    // A marker says that no file is meant.
    let asked = server.log();
    let is_of_file = |line: &&String| line.starts_with("GET") && !line.contains("info/refs");
    assert_eq!(asked.iter().find(is_of_file), None);

    // A tag may have moved, so it is looked up; the commit is there.
    run();
    let calls = fs::read_to_string(&log).unwrap();
    assert!(!calls.contains(" fetch "), "{calls}");
    assert_eq!(calls.matches(" ls-remote ").count(), 4, "{calls}");

    // A commit cannot move.
    naming(&sandbox, &[format!("{git}acme/a.git?ref={id}")]);
    taken(&log, "");
    server.forget();
    run();
    assert_eq!(server.log(), crate::support::NONE);
    let calls = fs::read_to_string(&log).unwrap();
    assert!(!calls.contains(" init ") && !calls.contains(" ls-remote "));
}

#[test]
fn the_cache_is_private_and_may_go_at_any_time() {
    let (sandbox, up, url) = local();
    let id = up.id("HEAD");
    let repo = naming(&sandbox, &[format!("{url}//base?ref={id}")]);
    let run = || repo.run(&["app", "--dry-run"]).success().status;
    run();
    let cache = sandbox.path("cache/git-kustomize-localize");
    assert_eq!(fs::metadata(&cache).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(sandbox.leftovers(), crate::support::NONE);
    let pack = |end: &str| find(&entry(&sandbox, &id), end).unwrap();
    let shorten = |part: usize| {
        let path = pack(".pack");
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes[..bytes.len() * part / 2]).unwrap();
    };
    let damages: [&dyn Fn(); 7] = [
        &|| fs::remove_dir_all(&cache).unwrap(),
        &|| fs::remove_file(entry(&sandbox, &id).join("HEAD")).unwrap(),
        &|| fs::remove_dir_all(entry(&sandbox, &id).join("objects")).unwrap(),
        &|| fs::remove_file(pack(".pack")).unwrap(),
        &|| fs::remove_file(pack(".idx")).unwrap(),
        &|| shorten(1),
        &|| shorten(0),
    ];
    for (number, damage) in damages.iter().enumerate() {
        damage();
        eprintln!("damage {number}");
        run();
        assert!(pack(".pack").metadata().unwrap().len() > 100);
    }
}

#[test]
fn leftovers_of_a_killed_run_are_never_used() {
    let (sandbox, server, up, url) = served();
    let id = up.id("HEAD");
    let path = "/git/acme/base.git/info/refs?service=git-upload-pack";
    server.route(path, Reply::ok("").delay(Duration::from_secs(30)));
    let repo = naming(&sandbox, &[format!("{url}?ref={id}")]);
    let running = repo.start(&["app"]);
    while server.log().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    running.kill();
    running.wait().fails(-9);
    let git = sandbox.path("cache/git-kustomize-localize/git");
    let of_url = find(&git, "").unwrap();
    let names = || -> Vec<String> {
        let entries = of_url.read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    };
    let left = names();
    assert_eq!(left.len(), 1, "{left:?}");
    assert!(left[0].starts_with("fetching-"), "{left:?}");
    // Two days later.
    let old = std::time::SystemTime::now() - Duration::from_secs(2 * 24 * 60 * 60);
    let left = fs::File::open(of_url.join(&left[0])).unwrap();
    left.set_modified(old).unwrap();

    server.unroute(path);
    repo.run(&["app"]).success();
    assert_eq!(names(), [id]);
}

#[test]
fn a_cache_that_cannot_be_had_is_explained() {
    let (sandbox, _up, url) = local();
    let repo = naming(&sandbox, &[format!("{url}//base?ref=v1")]);
    fs::write(sandbox.path("file"), "").unwrap();
    sandbox.set("XDG_CACHE_HOME", sandbox.path("file"));
    repo.run(&["app"])
        .fails(2)
        .says(expect![[r#"
            error: app/kustomization.yaml:2:3: resources[0]: could not write the cache `/home/me/file/git-kustomize-localize`: Not a directory (os error 20)
              hint: set XDG_CACHE_HOME to a writable directory with enough free space
            hint: to leave it remote, add to `allow` in `.kustomize-localize`:
              - {url: 'file:///home/me/up//base?ref=v1', reason: 'TODO'}
        "#]]);
    sandbox.unset("XDG_CACHE_HOME");
    sandbox.unset("HOME");
    let output = repo.run(&["app"]);
    output.fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: there is no cache directory
          hint: set HOME or XDG_CACHE_HOME
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'file:///home/me/up//base?ref=v1', reason: 'TODO'}
    "#]]);
    // A run that brings in nothing needs no cache.
    repo.write("app/cm.yaml", config_map("local"));
    naming(&sandbox, &["cm.yaml"]);
    repo.run(&["app"]).success();
}

/// Puts other bytes under the id of the blob at `path`, in the one pack that the cache holds.
fn exchange(sandbox: &Sandbox, entry: &Path, commit: &str, path: &str, bytes: &str) {
    let work = sandbox.path("exchange");
    fs::create_dir(&work).unwrap();
    sandbox.git(&work, &["init", "-q", "--bare", "."]);
    let shell = |script: &str| {
        let mut command = sandbox.command("sh", &work);
        assert!(command.args(["-ec", script]).status().unwrap().success());
    };
    let pack = find(entry, ".pack").unwrap();
    shell(&format!("git unpack-objects -q < '{}'", pack.display()));
    let blob = sandbox.git(&work, &["rev-parse", &format!("{commit}:{path}")]);
    let loose = work.join("objects").join(&blob[..2]).join(&blob[2..]);
    fs::remove_file(&loose).unwrap();
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
    let object = format!("blob {}\0{bytes}", bytes.len());
    std::io::Write::write_all(&mut encoder, object.as_bytes()).unwrap();
    fs::write(&loose, encoder.finish().unwrap()).unwrap();
    // The commit alone, as in the cache.
    fs::write(work.join("shallow"), format!("{commit}\n")).unwrap();
    shell(&format!("git rev-list --objects {commit} | git pack-objects -q made > /dev/null"));
    for end in [".pack", ".idx"] {
        let old = find(entry, end).unwrap();
        fs::remove_file(&old).unwrap();
        fs::copy(find(&work, end).unwrap(), old).unwrap();
    }
}

#[test]
fn a_tampered_cache_is_refused() {
    let (sandbox, up, url) = local();
    let id = up.id("HEAD");
    let repo = naming(&sandbox, &[format!("{url}//base?ref={id}")]);
    repo.run(&["app", "--branch", "localized/first"]).success();
    let entry = entry(&sandbox, &id);
    exchange(&sandbox, &entry, &id, "base/cm.yaml", &config_map("evil"));
    // Files that the branch holds need no cache, and the record of their origin is not trusted.
    let mut transcript = Transcript::default();
    for arguments in [
        &["app", "--branch", "localized/second"][..],
        &["app", "out", "--no-commit"],
        &["verify", "localized/first", "--rebuild"],
    ] {
        transcript.add(repo.run_unchanged(arguments).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --branch localized/second --no-verify
        $ git kustomize-localize app out --no-commit
        error: file:///home/me/up?ref=<0>: base/cm.yaml: blob <1> in `/home/me/cache/git-kustomize-localize/git/<2>/<0>` does not match its id: the cache was changed
          reached from app/kustomization.yaml:2:3 -> file:///home/me/up?ref=<0>: base/kustomization.yaml:1:13
          hint: remove it, and run the command again: rm -rf /home/me/cache/git-kustomize-localize/git/<2>/<0>
        $ git kustomize-localize verify localized/first --rebuild
        localized-app from app: 4 localized files, 1 upstream; recorded in the lock and in the message of <0>
        NOT verified localized/first (<0>): not everything could be checked
        error: file:///home/me/up?ref=<1>: base/cm.yaml: `localized-app` cannot be localized again: blob <2> in `/home/me/cache/git-kustomize-localize/git/<3>/<1>` does not match its id: the cache was changed
          reached from app/kustomization.yaml:2:3 -> file:///home/me/up?ref=<1>: base/kustomization.yaml:1:13
          hint: remove it, and run the command again: rm -rf /home/me/cache/git-kustomize-localize/git/<3>/<1>
    "#]]);
    fs::remove_dir_all(&entry).unwrap();
    repo.run(&["app", "--branch", "localized/second"]).success();
}

#[test]
fn a_cache_that_others_can_write_is_refused() {
    let (sandbox, up, url) = local();
    let repo = naming(&sandbox, &[format!("{url}//base?ref={}", up.id("HEAD"))]);
    repo.run(&["app", "--dry-run"]).success();
    let cache = sandbox.path("cache/git-kustomize-localize");
    let allow = |mode| fs::set_permissions(&cache, fs::Permissions::from_mode(mode)).unwrap();
    let mut transcript = Transcript::default();
    for more in [&[][..], &["--offline"]] {
        for mode in [0o770, 0o707, 0o777] {
            allow(mode);
            transcript.add(repo.run(&[&["app", "--dry-run"], more].concat()).fails(2));
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --dry-run --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: the cache `/home/me/cache/git-kustomize-localize` can be written by other users, so it is not used
          hint: remove it: rm -rf /home/me/cache/git-kustomize-localize
          hint: or set XDG_CACHE_HOME to a directory of your own
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'file:///home/me/up//base?ref=<0>', reason: 'TODO'}
        $ git kustomize-localize app --dry-run --offline --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: the cache `/home/me/cache/git-kustomize-localize` can be written by other users, so it is not used
          hint: remove it: rm -rf /home/me/cache/git-kustomize-localize
          hint: or set XDG_CACHE_HOME to a directory of your own
    "#]]);
    allow(0o700);
    repo.run(&["app", "--dry-run", "--offline"]).success();
}

#[test]
fn fetched_files_have_a_size_limit() {
    let (sandbox, server, up, url) = served();
    let large = format!("{}  large: {}\n", config_map("large"), "x".repeat(20_000));
    up.write("base/cm.yaml", &large);
    up.commit("large");
    server.route("/cm.yaml", Reply::ok(large.as_str()));
    let root = format!("{url}//base?ref={}", up.id("HEAD"));
    let file = format!("{}cm.yaml", server.url());
    let mut transcript = Transcript::default();
    for url in [root, file] {
        let repo = naming(&sandbox, &[url]);
        repo.lock();
        fs::remove_dir_all(sandbox.path("cache")).unwrap();
        repo.decide("max-file-size: 19k\n");
        for way in [&["app", "--no-commit"][..], &["app"], &["branch"]] {
            transcript
                .add(repo.run_unchanged(way).fails(2).stderr_has("too large").stderr_has("write `max-file-size: "));
        }
        repo.decide("max-file-size: 21k\n");
        repo.run(&["app", "--dry-run"]).success();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-commit
        $ git kustomize-localize app --no-verify
        $ git kustomize-localize branch --no-verify
        error: `http://127.0.0.1:…/git/acme/base.git?ref=<0>: base/cm.yaml` is too large: 19.59 KiB exceeds the limit of 19.00 KiB
          reached from app/kustomization.yaml:2:3 -> http://127.0.0.1:…/git/acme/base.git?ref=<0>: base/kustomization.yaml:1:13
          hint: to accept it, write `max-file-size: 20065` in .kustomize-localize
        $ git kustomize-localize app --no-commit
        $ git kustomize-localize app --no-verify
        $ git kustomize-localize branch --no-verify
        error: app/kustomization.yaml:2:3: resources[0]: cannot fetch http://127.0.0.1:…/cm.yaml: the file is too large: the limit is 19.00 KiB
          hint: check that the URL names one file of manifests, not an archive
          hint: to accept larger files, write `max-file-size: SIZE` in .kustomize-localize
    "#]]);
    // So have other inputs.
    let comments = "# nothing\n".repeat(2_000);
    let mut transcript = Transcript::default();
    for path in rows([".gitmodules", ".gitattributes", "base/.gitattributes", "LICENSE"], 3) {
        up.git(&["reset", "--quiet", "--hard", "v1"]);
        up.write(path, &comments);
        let repo = naming(&sandbox, &[format!("{url}//base?ref={}", up.commit("large"))]);
        repo.decide("max-file-size: 19k\n");
        transcript.add(repo.run_unchanged(&["app", "--no-commit"]).fails(2));
        repo.decide("");
        repo.run(&["app", "--dry-run"]).success();
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-commit
        error: app/kustomization.yaml:2:3: resources[0]: `http://127.0.0.1:…/git/acme/base.git?ref=<0>: .gitmodules` is too large: 19.53 KiB exceeds the limit of 19.00 KiB
          hint: to accept it, write `max-file-size: 20000` in .kustomize-localize
        $ git kustomize-localize app --no-commit
        error: the licenses of `http://127.0.0.1:…/git/acme/base.git?ref=<0>: .`: `http://127.0.0.1:…/git/acme/base.git?ref=<0>: LICENSE` is too large: 19.53 KiB exceeds the limit of 19.00 KiB
          hint: to accept it, write `max-file-size: 20000` in .kustomize-localize
          hint: to omit licenses, write `licenses: false` in .kustomize-localize
    "#]]);
    // And one that takes more memory than reading any may take.
    up.git(&["reset", "--quiet", "--hard", "v1"]);
    up.write("base/cm.yaml", "#".repeat(65 << 20));
    let repo = naming(&sandbox, &[format!("{url}//base?ref={}", up.commit("larger"))]);
    repo.run_unchanged(&["app", "--no-commit"])
        .fails(2)
        .says(expect![[r#"
            error: `http://127.0.0.1:…/git/acme/base.git?ref=<0>: base/cm.yaml` is too large: 65.00 MiB exceeds the limit of 64.00 MiB
              reached from app/kustomization.yaml:2:3 -> http://127.0.0.1:…/git/acme/base.git?ref=<0>: base/kustomization.yaml:1:13
              hint: to accept it, write `max-file-size: 68157440` in .kustomize-localize
        "#]]);
}
