//! Charts that are left, and charts that are refused.

use std::fs;

use super::{REPO, Stage, read, write_chart};

const ARGS: [&str; 5] = ["--no-commit", "--no-verify", "--helm", "app", "../copy"];

fn chart(repo: &str, name: &str, version: &str) -> String {
    format!(
        "helmCharts:\n- name: \"{name}\"\n  repo: \"{repo}\"\n  version: \"{version}\"\n  releaseName: one\n"
    )
}

#[test]
fn without_helm_a_chart_is_left_remote_and_reported() {
    let stage = Stage::new();
    stage.serve(REPO, "nginx", "1.2.3");
    let text = chart(REPO, "nginx", "1.2.3");
    stage.work.write("app/kustomization.yaml", &text);
    let left = |args: &[&str], why: &str| {
        let copy = stage.sandbox.path("copy");
        let _ = fs::remove_dir_all(&copy);
        let expected = format!(
            "warning[remote-chart]: app/kustomization.yaml:3:9: helmCharts[0]: https://charts.example/stable#nginx@1.2.3 is left as it is, so to build the result takes helm and the network; {why}"
        );
        stage.work.run(args).success().stderr_has(&expected);
        assert_eq!(read(&copy.join("kustomization.yaml")), text);
        let lock = read(&copy.join("kustomize-localize.lock"));
        assert!(
            lock.contains("\nleft:\n  - url: https://charts.example/stable\n    chart: nginx\n    version: \"1.2.3\"\n    reason: \"charts are brought in with `--helm` only\"\n"),
            "{lock}"
        );
        assert!(!lock.contains("remotes:"), "{lock}");
        assert!(!copy.join("charts").exists());
    };
    let without = ["--no-commit", "--no-verify", "app", "../copy"];
    left(&without, "to bring it in: `--helm`");
    let no_helm = ["--no-commit", "--no-verify", "--no-helm", "app", "../copy"];
    left(&no_helm, "as `--no-helm` says");
    assert_eq!(stage.pulls(), [""; 0]);
}

/// Takes helm away.
fn without_helm(stage: &Stage) {
    fs::remove_file(stage.sandbox.path("bin/helm")).unwrap();
    for program in ["git", "sh"] {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|directory| directory.join(program))
            .find(|path| path.is_file())
            .unwrap();
        stage.sandbox.offer(program, &found);
    }
    stage.sandbox.set("PATH", stage.sandbox.path("bin"));
}

#[test]
fn helm_that_is_asked_for_must_be_there() {
    let stage = Stage::new();
    let work = &stage.work;
    stage.serve(REPO, "nginx", "1.2.3");
    let text = chart(REPO, "nginx", "1.2.3");
    work.write("app/kustomization.yaml", &text);
    work.commit("chart");
    work.run(&["lock", "--helm"]).success();
    let locked = work.read("kustomize-localize.lock");
    work.remove("kustomize-localize.lock");
    fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    without_helm(&stage);
    let missing = "#nginx@1.2.3: there is no helm on PATH to bring it in\n";
    work.run(&["lock", "--helm"])
        .fails(1)
        .stderr_has(missing)
        .stderr_has("--no-helm")
        .stderr_has("error: 1 of 1 remote reference could not be resolved\n");
    // Nothing claims that charts are brought in from now on, nor why it stays remote.
    assert!(!work.path().join("kustomize-localize.lock").exists());
    work.run(&ARGS).fails(2).stderr_has(missing);
    work.run(&["--in-place", "--helm"])
        .fails(2)
        .stderr_has(missing);
    // The option can be turned off again, and then the charts are remote again.
    work.write("kustomize-localize.lock", &locked);
    work.run(&["lock", "--no-helm"])
        .success()
        .stdout_has("  dropped https://charts.example/stable#nginx@1.2.3 ")
        .stderr_has("warning[remote-chart]");
    let lock = work.read("kustomize-localize.lock");
    assert!(!lock.contains("helm: true"), "{lock}");
    work.run(&["lock"]).success().stdout_has("nothing to do");
}

#[test]
fn texts_like_helm_options_never_reach_helm() {
    let stage = Stage::new();
    stage.serve(REPO, "nginx", "1.2.3");
    for (repo, name, version, said) in [
        (REPO, "--help", "1.2.3", "a part of it begins with `-`"),
        (REPO, "nginx", "--devel", "a part of it begins with `-`"),
        ("--help", "nginx", "1.2.3", "a part of it begins with `-`"),
        (
            REPO,
            "../nginx",
            "1.2.3",
            "its name is not a directory name",
        ),
        (REPO, "a/nginx", "1.2.3", "its name is not a directory name"),
        (REPO, "nginx", "1/../../2", "its version holds a slash"),
        (REPO, "nginx", "1\\n2", "it holds control characters"),
        (
            "file:///srv/charts",
            "nginx",
            "1.2.3",
            "no https, http or oci URL",
        ),
        ("/srv/charts", "nginx", "1.2.3", "no https, http or oci URL"),
    ] {
        stage
            .work
            .write("app/kustomization.yaml", chart(repo, name, version));
        stage
            .work
            .run(&ARGS)
            .fails(2)
            .stderr_has("error: app/kustomization.yaml:3:9: helmCharts[0]: the chart ")
            .stderr_has(said);
        assert!(!stage.sandbox.path("copy").exists());
    }
    assert_eq!(stage.pulls(), [""; 0]);
}

#[test]
fn a_failing_helm_is_reported_with_its_output() {
    let stage = Stage::new();
    let work = &stage.work;
    stage.serve(REPO, "nginx", "1.2.3");
    work.write(
        "app/kustomization.yaml",
        chart(
            "https://user:secret@charts.example/stable",
            "absent",
            "1.2.3",
        ),
    );
    let output = work.run(&ARGS);
    output
        .fails(2)
        .stderr_has("error: app/kustomization.yaml:3:9: helmCharts[0]: https://charts.example/stable#absent@1.2.3: helm could not pull it: chart \"absent\" version \"1.2.3\" not found in https://charts.example/stable repository")
        .stderr_has("hint: to see what helm does: helm pull --version 1.2.3 --repo https://charts.example/stable absent");
    assert!(!output.stderr.contains("secret"), "{output:?}");
    // No end of it: the deadline.
    work.write("app/kustomization.yaml", chart(REPO, "nginx", "1.2.3"));
    fs::write(
        stage
            .sandbox
            .path("served/https___charts.example_stable/slow"),
        "",
    )
    .unwrap();
    work.run(&[&ARGS[..], &["--timeout", "1"]].concat())
        .fails(2)
        .stderr_has("https://charts.example/stable#nginx@1.2.3: `helm` did not finish within 1 s")
        .stderr_has("hint: give it more time with `--timeout SECONDS`");
    assert!(!stage.sandbox.path("copy").exists());
    assert_eq!(stage.sandbox.leftovers(), [""; 0]);
}

#[test]
fn an_archive_that_is_something_else_is_refused() {
    let stage = Stage::new();
    stage
        .work
        .write("app/kustomization.yaml", chart(REPO, "nginx", "1.2.3"));
    let made = stage.sandbox.path("made/nginx");
    let refused = |said: &str| {
        stage.work.run(&ARGS).fails(2).stderr_has(said);
        assert!(!stage.sandbox.path("copy").exists());
    };
    write_chart(&made, "redis", "1.2.3");
    let archive = stage.pack(REPO, "nginx", "1.2.3");
    refused("https://charts.example/stable#nginx@1.2.3 is an archive of the chart `redis`");
    write_chart(&made, "nginx", "1.2.4");
    stage.pack(REPO, "nginx", "1.2.3");
    refused("https://charts.example/stable#nginx@1.2.3 is an archive of the version `1.2.4`");
    write_chart(&made, "nginx", "1.2.3");
    std::os::unix::fs::symlink("/etc/passwd", made.join("link")).unwrap();
    stage.pack(REPO, "nginx", "1.2.3");
    refused(
        "the archive of https://charts.example/stable#nginx@1.2.3 is refused: `nginx/link` is a link",
    );
    fs::remove_file(made.join("link")).unwrap();
    fs::create_dir(made.join(".git")).unwrap();
    fs::write(made.join(".git/config"), "[core]\n").unwrap();
    stage.pack(REPO, "nginx", "1.2.3");
    refused(
        "error: app/kustomization.yaml:3:9: helmCharts[0]: `charts/nginx/.git/config` cannot be written: ",
    );
    fs::write(&archive, "<!doctype html>").unwrap();
    refused("is refused: it is not compressed with gzip");
}

#[test]
fn another_archive_than_the_locked_one_is_refused() {
    let stage = Stage::new();
    let work = &stage.work;
    stage.serve(REPO, "nginx", "1.2.3");
    work.write("app/kustomization.yaml", chart(REPO, "nginx", "1.2.3"));
    work.commit("chart");
    work.run(&["lock", "--helm"]).success();
    fs::remove_dir_all(stage.sandbox.path("cache")).unwrap();
    let made = stage.sandbox.path("made/nginx");
    fs::write(made.join("values.yaml"), "replicas: 666\n").unwrap();
    stage.pack(REPO, "nginx", "1.2.3");
    work.commit("lock");
    let before = work.state();
    work.run(&["app", "--no-verify"])
        .fails(2)
        .stderr_has(
            "https://charts.example/stable#nginx@1.2.3 has changed since it was locked: sha256 ",
        )
        .stderr_has("hint: ");
    assert_eq!(work.state(), before);
    work.run(&["update"])
        .fails(2)
        .stderr_has(
            "https://charts.example/stable#nginx@1.2.3: the chart `1.2.3` is another archive: ",
        )
        .stderr_has("update --accept-moved");
    work.run(&["update", "--accept-moved"]).success();
    work.commit("moved");
    work.run(&["app", "--no-verify"]).success();
}
