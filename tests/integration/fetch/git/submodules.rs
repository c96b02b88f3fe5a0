//! Submodules of remote repositories.

use super::*;
use crate::support::Transcript;

#[test]
fn submodules_are_checked_out_when_they_are_used() {
    let (sandbox, server, library, url) = served();
    upstream(&sandbox, "srv/acme/inner");
    let git = server.git_url();
    // What is written down, and where it is cloned from.
    let add = |repo: &Repo, path: &str, url: &str, from: &str| {
        repo.git(&["submodule", "--quiet", "add", &format!("{git}acme/{from}"), path]);
        let key = format!("submodule.{path}.url");
        repo.git(&["config", "-f", ".gitmodules", &key, url]);
    };
    add(&library, "vendor/inner", "../inner", "inner");
    library.commit("inner");
    let app = upstream(&sandbox, "srv/acme/app");
    add(&app, "lib", "./../base.git", "base");
    add(&app, "unused", "../nowhere.git", "base");
    app.write("overlay/kustomization.yaml", "resources: [../lib/base, ../lib/vendor/inner/base]\n");
    // A root that needs the missing one reports which it is.
    app.write("broken/kustomization.yaml", "resources: [../unused/base]\n");
    app.commit("submodules");
    server.forget();

    let url = url.replace("acme/base", "acme/app");
    let repo = naming(&sandbox, &[format!("{url}/overlay?ref=main")]);
    repo.run(&["app"]).success();
    let files = repo.files("localized/main").join("\n");
    for file in ["/lib/base/cm.yaml", "/lib/vendor/inner/base/cm.yaml"] {
        assert!(files.contains(file), "{files}");
    }
    assert!(!server.log().iter().any(|line| line.contains("nowhere")));
    // Without the submodule in the cache, `--offline` does not reach for it.
    repo.run(&["lock"]).success();
    let id = library.id("HEAD");
    for entries in sandbox.path("cache/git-kustomize-localize/git").read_dir().unwrap() {
        let _ = std::fs::remove_dir_all(entries.unwrap().path().join(&id));
    }
    server.forget();
    let again = ["app", "again", "--no-commit", "--offline"];
    repo.run(&again)
        .fails(2)
        .stderr_has(&format!("commit {id} of {}acme/base.git is not in the cache", server.git_url()));
    assert_eq!(server.log(), crate::support::NONE);

    naming(&sandbox, &[format!("{url}/overlay?ref=main&submodules=false")]);
    repo.run(&["app", "--dry-run"]).fails(2).says(expect![[r#"
        error: http://127.0.0.1:…/git/acme/app.git?ref=main&submodules=false: overlay/kustomization.yaml:1:13: resources[0]: `../lib/base` is in the submodule `http://127.0.0.1:…/git/acme/app.git?ref=main&submodules=false: lib`, whose files are not in this repository
          reached from app/kustomization.yaml:2:3
        error: http://127.0.0.1:…/git/acme/app.git?ref=main&submodules=false: overlay/kustomization.yaml:1:26: resources[1]: `../lib/vendor/inner/base` is in the submodule `http://127.0.0.1:…/git/acme/app.git?ref=main&submodules=false: lib`, whose files are not in this repository
          reached from app/kustomization.yaml:2:3
          hint: copy the files into this repository, or name the submodule's repository by URL, with its commit
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'http://127.0.0.1:…/git/acme/app.git//overlay?ref=main', reason: 'TODO'}
    "#]]);
    naming(&sandbox, &[format!("{url}/broken?ref=main")]);
    repo.run(&["app", "--dry-run", "--branch=again1"])
        .fails(2)
        .says(expect![[r#"
            error: http://127.0.0.1:…/git/acme/app.git?ref=main: broken/kustomization.yaml:1:13: resources[0]: submodule `http://127.0.0.1:…/git/acme/app.git?ref=main: unused`: could not fetch http://127.0.0.1:…/git/acme/nowhere.git: repository 'http://127.0.0.1:…/git/acme/nowhere.git/' not found
              reached from app/kustomization.yaml:2:3
              hint: check the URL (kustomize splits it after two segments, at `.git`, or at `//`); if the repository moved or is private, ask its owner
        "#]]);
}

/// Returns an upstream whose `overlay` names the submodule `lib`, which it does not have yet.
fn overlaid() -> (Sandbox, Repo, String, Repo) {
    let (sandbox, app, url) = local();
    app.write("overlay/kustomization.yaml", "resources: [../lib/base]\n");
    app.commit("overlay");
    let library = upstream(&sandbox, "library");
    (sandbox, app, format!("{url}//overlay?ref="), library)
}

#[test]
fn submodules_of_the_file_system_are_refused_as_git_does() {
    let (sandbox, app, url, library) = overlaid();
    let from = format!("file://{}", library.path().display());
    let allow = ["-c", "protocol.file.allow=always"];
    let add = ["submodule", "--quiet", "add", &from, "lib"];
    app.git(&[&allow[..], &add].concat());
    app.commit("submodule");
    let repo = naming(&sandbox, &[format!("{url}main")]);
    repo.run(&["app"]).fails(2).says(expect![[r#"
        error: file:///home/me/up?ref=main: overlay/kustomization.yaml:1:13: resources[0]: submodule `file:///home/me/up?ref=main: lib`: could not fetch file:///home/me/library: transport 'file' not allowed
          reached from app/kustomization.yaml:2:3
    "#]]);
    sandbox.configure("protocol.file.allow", "always");
    repo.run(&["app"]).success();
}

#[test]
fn hostile_submodules_start_nothing() {
    let (sandbox, app, upstream, library) = overlaid();
    let head = library.id("HEAD");
    let mark = sandbox.path("pwned");
    let log = count_git(&sandbox);
    let (touch, place) = (mark.display(), library.path().display());
    let link = format!("160000,{head},lib");
    app.git(&["update-index", "--add", "--cacheinfo", &link]);
    let run = |path: &str, url: &str| {
        app.write(".gitmodules", format!("[submodule \"lib\"]\n\tpath = {path}\n\turl = \"{url}\"\n"));
        app.git(&["add", ".gitmodules"]);
        app.git(&["commit", "-qm", "hostile"]);
        let repo = naming(&sandbox, &[format!("{upstream}{}", app.id("HEAD"))]);
        taken(&log, "");
        let output = repo.run(&["app", "--branch=again2"]);
        output.fails(2);
        output
    };
    let mut transcript = Transcript::default();
    for url in [
        format!("ext::sh -c touch% {touch}"),
        format!("--upload-pack=touch {touch}"),
        "../../../../../../../../../../../../x".to_owned(),
        "ssh://-oProxyCommand=touch/x".to_owned(),
        "-oProxyCommand=touch:x".to_owned(),
        "git://h/x".to_owned(),
    ] {
        transcript.add(&run("lib", &url));
        let fetches = taken(&log, "fetch");
        assert_eq!(fetches.len(), 1, "only the repository itself: {url}");
        assert!(!mark.exists(), "{url}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --branch=again2 --no-verify
        error: file:///home/me/up?ref=<0>: overlay/kustomization.yaml:1:13: resources[0]: submodule `file:///home/me/up?ref=<0>: lib`: `ext::sh -c touch% /home/me/pwned` is refused: its transport is not supported
          reached from app/kustomization.yaml:2:3
          hint: to build without submodules, add `submodules=false` to the query of the reference
        $ git kustomize-localize app --branch=again2 --no-verify
        error: file:///home/me/up?ref=<0>: overlay/kustomization.yaml:1:13: resources[0]: submodule `file:///home/me/up?ref=<0>: lib`: `--upload-pack=touch /home/me/pwned` is refused: git could misread it
          reached from app/kustomization.yaml:2:3
          hint: to build without submodules, add `submodules=false` to the query of the reference
        $ git kustomize-localize app --branch=again2 --no-verify
        error: file:///home/me/up?ref=<0>: overlay/kustomization.yaml:1:13: resources[0]: submodule `file:///home/me/up?ref=<0>: lib`: `../../../../../../../../../../../../x` is refused: it leads out of its server
          reached from app/kustomization.yaml:2:3
          hint: to build without submodules, add `submodules=false` to the query of the reference
        $ git kustomize-localize app --branch=again2 --no-verify
        error: file:///home/me/up?ref=<0>: overlay/kustomization.yaml:1:13: resources[0]: submodule `file:///home/me/up?ref=<0>: lib`: `ssh://-oProxyCommand=touch/x` is refused: git could misread it
          reached from app/kustomization.yaml:2:3
          hint: to build without submodules, add `submodules=false` to the query of the reference
        $ git kustomize-localize app --branch=again2 --no-verify
        error: file:///home/me/up?ref=<0>: overlay/kustomization.yaml:1:13: resources[0]: submodule `file:///home/me/up?ref=<0>: lib`: `-oProxyCommand=touch:x` is refused: git could misread it
          reached from app/kustomization.yaml:2:3
          hint: to build without submodules, add `submodules=false` to the query of the reference
        $ git kustomize-localize app --branch=again2 --no-verify
        error: file:///home/me/up?ref=<0>: overlay/kustomization.yaml:1:13: resources[0]: submodule `file:///home/me/up?ref=<0>: lib`: `git://h/x` is refused: its transport is not supported
          reached from app/kustomization.yaml:2:3
          hint: to build without submodules, add `submodules=false` to the query of the reference
    "#]]);
    // A path that leaves the repository is nowhere in its tree.
    run("../../lib", &format!("file://{place}")).says(expect![[r#"
        error: file:///home/me/up?ref=<0>: overlay/kustomization.yaml:1:13: resources[0]: `../lib/base` is in the submodule `file:///home/me/up?ref=<0>: lib`, whose files are not in this repository
          reached from app/kustomization.yaml:2:3
          hint: copy the files into this repository, or name the submodule's repository by URL, with its commit
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'file:///home/me/up//overlay?ref=<0>', reason: 'TODO'}
    "#]]);
}
