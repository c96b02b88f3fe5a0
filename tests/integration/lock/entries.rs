//! What an entry of a lock is for: the URL that kustomize requests, and the directories that it lists.

use serde_json::Value;

use crate::support::{Repo, Sandbox, World, config, config_map, deployment};

const FILE: &str = "https://files.example.com/v1/app.yaml";
const GIT: &str = "https://git.example.com/o/r";
const SSH: &str = "ssh://git@git.example.com/o/r";
const CHARTS: &str = "https://charts.example.com/stable";

/// A repository with a lock that holds each of the URLs.
fn work(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    let (digest, commit) = ("0".repeat(64), "1".repeat(40));
    let git = |url: &str| {
        format!("- {{url: \"{url}\", ref: v1, commit: \"{commit}\", paths: [\".\", a]}}\n")
    };
    repo.write(
        "kustomize-localize.lock",
        format!(
            "version: 1\nremotes:\n- {{url: \"{FILE}\", sha256: \"{digest}\", size: 1}}\n{}{}\
             - {{url: \"{CHARTS}\", chart: web, version: 1.2.3, sha256: \"{digest}\", size: 1}}\n",
            git(GIT),
            git(SSH),
        ),
    );
    repo
}

/// Returns kustomizations that name a file at a URL, by what names it.
fn files(url: &str) -> Vec<(&'static str, String)> {
    let text = Value::from(url).to_string();
    let entry = Value::from(format!("k={url}")).to_string();
    let plugin = format!(
        "apiVersion: builtin\\nkind: PatchTransformer\\nmetadata: {{name: a}}\\npath: {}\\n",
        text.replace('"', "\\\"")
    );
    vec![
        ("resources", format!("resources: [{text}]\n")),
        ("patches", format!("patches: [{{path: {text}}}]\n")),
        ("crds", format!("crds: [{text}]\n")),
        (
            "files",
            format!("configMapGenerator: [{{name: a, files: [{entry}]}}]\n"),
        ),
        ("inline", format!("transformers: [\"{plugin}\"]\n")),
    ]
}

/// Returns kustomizations that name a repository.
fn roots(url: &str) -> Vec<(&'static str, String)> {
    let text = Value::from(url).to_string();
    ["resources", "components", "generators", "transformers"]
        .map(|field| (field, format!("{field}: [{text}]\n")))
        .into()
}

fn charts(url: &str) -> Vec<(&'static str, String)> {
    let text = Value::from(url).to_string();
    let chart = format!("helmCharts: [{{name: web, version: 1.2.3, repo: {text}}}]\n");
    vec![("repo", chart)]
}

/// Returns what a client requests instead of a URL that looks the same, or is the same in the lock.
fn others(url: &str) -> Vec<String> {
    let mut others: Vec<String> = [" ", "\u{a0}", "\u{3000}", "\u{2003}", "#", "#x"]
        .map(|end| format!("{url}{end}"))
        .into();
    if let Some(rest) = url.strip_prefix("https://") {
        others.extend(["evil@", "@", "evil%40"].map(|user| format!("https://{user}{rest}")));
    }
    others
}

#[test]
fn an_entry_is_for_what_kustomize_requests() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    let check = |what: &str, kustomization: &str| {
        repo.write("kustomization.yaml", kustomization);
        let output = repo.run(&["check", "--working-tree", "kustomization.yaml"]);
        assert!(output.status < 2, "{what}: {output:?}");
        (output.status, output.stdout)
    };
    let of = |url: &str, named: &dyn Fn(&str) -> Vec<(&'static str, String)>| {
        for (field, kustomization) in named(url) {
            assert_eq!(check(field, &kustomization).0, 0, "{field}: {url}");
        }
        for other in others(url) {
            for (field, kustomization) in named(&other) {
                let (status, found) = check(field, &kustomization);
                assert_eq!(status, 1, "{field}: {other:?}");
                assert!(found.contains("error[unsafe-reference]"), "{found}");
            }
        }
    };
    of(FILE, &files);
    of(CHARTS, &charts);
    for url in [GIT, SSH] {
        of(url, &|url| roots(&format!("{url}?ref=v1")));
        of(url, &|url| roots(&format!("{url}//a?ref=v1")));
    }
    for other in others(&format!("{GIT}//a?ref=v1")) {
        for (field, kustomization) in roots(&other) {
            assert_eq!(check(field, &kustomization).0, 1, "{field}: {other:?}");
        }
    }
}

#[test]
fn nothing_is_locked_that_a_lock_cannot_hold() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    for end in ["\u{a0}", "#x"] {
        let url = Value::from(format!("{FILE}{end}"));
        repo.write("kustomization.yaml", format!("resources: [{url}]\n"));
        repo.run(&["lock"]).fails(1).stderr_has(" is refused: it");
        assert!(!repo.path().join("kustomize-localize.lock").exists());
    }
}

#[test]
fn directories_that_a_change_adds_are_new_in_the_lock() {
    let sandbox = Sandbox::new();
    let repo = work(&sandbox);
    repo.write(
        "kustomization.yaml",
        format!("resources: ['{GIT}//a?ref=v1']\n"),
    );
    repo.commit("locked");
    let lock = repo.read("kustomize-localize.lock");
    repo.write("kustomize-localize.lock", lock.replacen("a]", "a, b/c]", 1));
    repo.write(
        "kustomization.yaml",
        format!("resources: ['{GIT}//a?ref=v1', '{GIT}//b/c?ref=v1']\n"),
    );
    repo.commit("more of it");
    let args = ["check", "--rev", "HEAD", "--base", "HEAD^"];
    let output = repo.run(&args);
    let line = format!(
        "kustomize-localize.lock:4: {GIT}//b/c?ref=v1 gitCommit:{}",
        "1".repeat(40)
    );
    output
        .success()
        .stdout_has(&format!("new in the lock: {line}\n"));
    assert_eq!(output.stdout.matches("new in the lock").count(), 1);
    let output = repo.run(&[&args[..], &["--format=json"]].concat());
    let report: Value = serde_json::from_str(&output.success().stdout).unwrap();
    assert_eq!(
        report["new_locked"][0]["remote"],
        format!("{GIT}//b/c?ref=v1")
    );
    // What it no longer holds is not new.
    repo.run(&["check", "--rev", "HEAD^", "--base", "HEAD"])
        .success()
        .lacks("new in the lock");
}

/// The system follows a link before it climbs; whoever joins paths as text sees another program.
#[test]
fn the_path_of_a_program_does_not_climb_after_a_link() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write_executable("app/fn.sh", "#!/bin/sh\n");
    repo.write_executable("lib/fn.sh", "#!/bin/sh\n");
    repo.write("lib/deep/cm.yaml", config_map("a"));
    repo.write("app/real/cm.yaml", config("a"));
    repo.symlink("app/link", "../lib/deep");
    repo.symlink("app/real/out", "../../lib/deep");
    let status = |path: &str| {
        let function = format!(
            "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: 'exec: {{path: {path}}}'\n"
        );
        repo.write("app/kustomization.yaml", "transformers: [fn.yaml]\n");
        repo.write("app/fn.yaml", function);
        let output = repo.run(&["check", "--working-tree", "app"]);
        (output.status, output.stdout)
    };
    for path in ["./fn.sh", "../lib/fn.sh", ".././/app/./fn.sh"] {
        assert_eq!(status(path).0, 0, "{path}");
    }
    for path in [
        "link/../fn.sh",
        "./link/../fn.sh",
        "real/out/../../fn.sh",
        "real/../link/../fn.sh",
        "../app/link/../fn.sh",
        "real/../fn.sh",
        "none/../fn.sh",
        "fn.sh/../fn.sh",
    ] {
        let (status, found) = status(path);
        assert_eq!(status, 1, "{path}");
        assert!(found.contains("climbs with `..` after a name"), "{found}");
    }
}

#[test]
fn check_and_localize_agree_on_what_is_locked() {
    let world = World::acme();
    let work = &world.work;
    // The same URL shape, once a repository and once a file: only the answer decides, and the lock records it.
    world.file("https://files.example.com/a/b/c", deployment("c"));
    let resources = [
        "https://github.com/acme/lib//web?ref=v1",
        "https://github.com/acme/lib/web?ref=v1",
        "github.com/acme/lib//?ref=v1&submodules=false",
        "https://files.example.com/a/b/c",
        FILE,
    ];
    for (index, text) in resources.iter().enumerate() {
        let kustomization = format!("namePrefix: p{index}-\nresources: ['{text}']\n");
        work.write(&format!("r{index}/kustomization.yaml"), kustomization);
    }
    let patch = format!("resources: [../r4]\npatches: [{{path: '{FILE}'}}]\n");
    work.write("p/kustomization.yaml", patch);
    work.commit("all");
    work.run(&["check"]).fails(1);
    work.run(&["lock"]).success();
    work.commit("locked");
    work.run(&["check"]).success();
    for index in 0..resources.len() {
        let (root, copy) = (format!("r{index}"), format!("out-{index}"));
        let args = [&root, &copy, "--no-commit", "--locked", "--offline"];
        work.run(&args).success();
    }
    // An entry for another directory of the same repository, for another ref.
    for (url, why) in [
        ("lib//part?ref=v1", "the lock does not hold `part`"),
        ("lib//web?ref=v2", "neither localized nor locked"),
    ] {
        let text = format!("resources: ['https://github.com/acme/{url}']\n");
        work.write("r0/kustomization.yaml", text);
        work.git(&["add", "r0"]);
        work.run(&["check"]).fails(1).stdout_has(why);
    }
}

/// Nobody has seen yet what it names, which may be remote.
#[test]
fn a_directory_that_is_not_in_the_lock_is_not_locked() {
    let world = World::acme();
    let work = &world.work;
    let lib = Repo::new(&world.sandbox, world.sandbox.path("upstream/acme/lib"));
    lib.symlink("link", "web");
    lib.commit("link");
    lib.git(&["tag", "v2"]);
    let check = |directory: &str| {
        let text = format!("resources: ['https://github.com/acme/lib//{directory}?ref=v2']\n");
        work.write("kustomization.yaml", text);
        work.git(&["add", "--all"]);
        work.run(&["check"])
    };
    check("other").fails(1);
    work.run(&["lock"]).success();
    check("other").success();
    for directory in ["web", "link"] {
        let unseen = format!("of which the lock does not hold `{directory}`");
        check(directory).fails(1).stdout_has(&unseen);
        let added = format!("  added {directory} of https://github.com/acme/lib?ref=v2\n");
        work.run(&["lock"]).success().stdout_has(&added);
        check(directory).success();
        assert!(work.read("kustomize-localize.lock").contains("acme/deep"));
        work.run(&["lock"]).success().stdout_has("nothing to do");
    }
}
