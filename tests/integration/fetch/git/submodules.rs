//! Submodules of remote repositories.

use super::*;

#[test]
fn submodules_are_checked_out_when_they_are_used() {
    let sandbox = Sandbox::new();
    let server = Server::start();
    upstream(&sandbox, "srv/acme/inner");
    let library = upstream(&sandbox, "srv/acme/library");
    let add = |repo: &Repo, url: &str, path: &str| {
        repo.git(&[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "--quiet",
            "add",
            url,
            path,
        ]);
    };
    server.serve_git("/git/", &sandbox.path("srv"));
    let git = server.git_url();
    add(&library, &format!("{git}acme/inner"), "vendor/inner");
    library.git(&[
        "config",
        "-f",
        ".gitmodules",
        "submodule.vendor/inner.url",
        "../inner",
    ]);
    library.commit("inner");
    let app = upstream(&sandbox, "srv/acme/app");
    add(&app, &format!("{git}acme/library"), "lib");
    add(&app, &format!("{git}acme/library"), "unused");
    app.git(&[
        "config",
        "-f",
        ".gitmodules",
        "submodule.lib.url",
        "./../library.git",
    ]);
    app.git(&[
        "config",
        "-f",
        ".gitmodules",
        "submodule.unused.url",
        "../nowhere.git",
    ]);
    app.write(
        "overlay/kustomization.yaml",
        "resources: [../lib/base, ../lib/vendor/inner/base]\n",
    );
    app.commit("submodules");
    server.forget();

    let repo = naming(&sandbox, &[&format!("{git}acme/app.git/overlay?ref=main")]);
    repo.run(&["app"]).success();
    let files = repo.files("localized/main").join("\n");
    assert!(files.contains("/lib/base/cm.yaml"), "{files}");
    assert!(files.contains("/lib/vendor/inner/base/cm.yaml"), "{files}");
    assert!(!server.log().iter().any(|line| line.contains("nowhere")));

    let repo = naming(
        &sandbox,
        &[&format!(
            "{git}acme/app.git/overlay?ref=main&submodules=false"
        )],
    );
    let output = repo.run(&["app", "--dry-run"]);
    output
        .fails(2)
        .stderr_has("`../lib/base` lies in the submodule");

    // A root that needs the missing one reports which it is.
    app.write("broken/kustomization.yaml", "resources: [../unused/base]\n");
    app.commit("broken");
    let repo = naming(&sandbox, &[&format!("{git}acme/app.git/broken?ref=main")]);
    let output = repo.run(&["app", "--dry-run", "--update"]);
    output
        .fails(2)
        .stderr_has("submodule `")
        .stderr_has("unused")
        .stderr_has("acme/nowhere.git");
}

#[test]
fn submodules_of_the_file_system_are_refused_as_git_does() {
    let sandbox = Sandbox::new();
    let library = upstream(&sandbox, "library");
    let app = upstream(&sandbox, "app");
    let url = format!("file://{}", library.path().display());
    app.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        &url,
        "lib",
    ]);
    app.write("overlay/kustomization.yaml", "resources: [../lib/base]\n");
    app.commit("submodule");
    let repo = naming(
        &sandbox,
        &[&format!(
            "file://{}//overlay?ref=main",
            app.path().display()
        )],
    );
    repo.run(&["app"])
        .fails(2)
        .stderr_has("transport 'file' not allowed")
        .stderr_has("submodule `");
    sandbox.configure("protocol.file.allow", "always");
    repo.run(&["app"]).success();
}

#[test]
fn hostile_submodules_start_nothing() {
    let sandbox = Sandbox::new();
    let library = upstream(&sandbox, "library");
    let head = library.id("HEAD");
    let app = upstream(&sandbox, "app");
    app.write("overlay/kustomization.yaml", "resources: [../lib/base]\n");
    app.commit("overlay");
    let mark = sandbox.path("pwned");
    let log = count_git(&sandbox);
    for (url, why) in [
        (
            format!("ext::sh -c touch% {}", mark.display()),
            "transport is not supported",
        ),
        (
            format!("--upload-pack=touch {}", mark.display()),
            "git could take it for something else",
        ),
        (
            "../../../../../../../../../../../../x".to_owned(),
            "it climbs out of its server",
        ),
        (
            "ssh://-oProxyCommand=touch/x".to_owned(),
            "git could take it for something else",
        ),
        (
            "-oProxyCommand=touch:x".to_owned(),
            "git could take it for something else",
        ),
        ("git://h/x".to_owned(), "transport is not supported"),
    ] {
        app.write(
            ".gitmodules",
            format!("[submodule \"lib\"]\n\tpath = lib\n\turl = \"{url}\"\n"),
        );
        app.git(&[
            "update-index",
            "--add",
            "--cacheinfo",
            &format!("160000,{head},lib"),
        ]);
        app.git(&["add", ".gitmodules"]);
        app.git(&["commit", "-qm", "hostile"]);
        let id = app.id("HEAD");
        let repo = naming(
            &sandbox,
            &[&format!(
                "file://{}//overlay?ref={id}",
                app.path().display()
            )],
        );
        fs::write(&log, "").unwrap();
        let output = repo.run(&["app", "--update"]);
        output
            .fails(2)
            .stderr_has(why)
            .stderr_has("submodules=false");
        assert_eq!(
            taken(&log, "fetch").len(),
            1,
            "only the repository itself: {url}"
        );
        assert!(!mark.exists(), "{url}");
    }
    // A path that leaves the repository is nowhere in its tree.
    app.write(
        ".gitmodules",
        format!(
            "[submodule \"lib\"]\n\tpath = ../../lib\n\turl = file://{}\n",
            library.path().display()
        ),
    );
    app.git(&["add", ".gitmodules"]);
    app.git(&["commit", "-qm", "escape"]);
    let repo = naming(
        &sandbox,
        &[&format!(
            "file://{}//overlay?ref=main",
            app.path().display()
        )],
    );
    repo.run(&["app", "--update"])
        .fails(2)
        .stderr_has("`../lib/base` lies in the submodule");
}
