//! What an entry of a lock is for: the URL that kustomize requests, and the directories that it lists.

use serde_json::Value;

use crate::support::{Memory, Repo, Sandbox, World, config, deployment};

const LOCK: &str = "kustomize-localize.lock";
const FILE: &str = "https://files.example.com/v1/app.yaml";
const GIT: &str = "https://git.example.com/o/r";
const SSH: &str = "ssh://git@git.example.com/o/r";
const CHARTS: &str = "https://charts.example.com/stable";

/// A lock that holds each of the URLs.
fn lock() -> String {
    let (digest, commit) = ("0".repeat(64), "1".repeat(40));
    let git =
        |url: &str| format!("- {{url: \"{url}\", ref: v1, commit: \"{commit}\", paths: {{\".\": {{}}, a: {{}}}}}}\n");
    format!(
        "version: 1\nremotes:\n- {{url: \"{FILE}\", sha256: \"{digest}\", size: 1}}\n{}{}\
         - {{url: \"{CHARTS}\", chart: web, version: 1.2.3, sha256: \"{digest}\", size: 1}}\n",
        git(GIT),
        git(SSH),
    )
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
        ("files", format!("configMapGenerator: [{{name: a, files: [{entry}]}}]\n")),
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
    let mut others: Vec<String> =
        [" ", "\u{a0}", "\u{3000}", "\u{2003}", "#", "#x"].map(|end| format!("{url}{end}")).into();
    if let Some(rest) = url.strip_prefix("https://") {
        others.extend(["evil@", "@", "evil%40"].map(|user| format!("https://{user}{rest}")));
    }
    others
}

#[test]
fn an_entry_is_for_what_kustomize_requests() {
    let locked = Memory::of(&[(LOCK, &lock())]);
    // Returns whether it is refused as unsafe.
    let is_refused = |what: &str, kustomization: &str| {
        let memory = locked.with("kustomization.yaml", kustomization);
        let findings = memory.findings();
        let mut errors = findings.iter().filter(|one| one["severity"] == "error");
        assert_eq!(memory.checked().status() == 0, errors.clone().count() == 0);
        let is_unsafe = errors.any(|one| one["rule"] == "unsafe-reference");
        assert_eq!(memory.checked().status() == 1, is_unsafe, "{what}: {findings:?}");
        is_unsafe
    };
    let of = |url: &str, named: &dyn Fn(&str) -> Vec<(&'static str, String)>| {
        for (field, kustomization) in named(url) {
            assert!(!is_refused(field, &kustomization), "{field}: {url}");
        }
        for other in others(url) {
            for (field, kustomization) in named(&other) {
                assert!(is_refused(field, &kustomization), "{field}: {other:?}");
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
            let memory = locked.with("kustomization.yaml", kustomization);
            assert_eq!(memory.checked().status(), 1, "{field}: {other:?}");
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
        assert!(!repo.path().join(LOCK).exists());
    }
}

#[test]
fn directories_that_a_change_adds_are_new_in_the_lock() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(LOCK, lock());
    repo.write("kustomization.yaml", format!("resources: ['{GIT}//a?ref=v1']\n"));
    repo.commit("locked");
    repo.write(LOCK, lock().replacen("a: {}}", "a: {}, b/c: {}}", 1));
    repo.write("kustomization.yaml", format!("resources: ['{GIT}//a?ref=v1', '{GIT}//b/c?ref=v1']\n"));
    repo.commit("more of it");
    let args = ["check", "--rev", "HEAD", "--base", "HEAD^"];
    let output = repo.run(&args);
    let line = format!("kustomize-localize.lock:4: {GIT}//b/c?ref=v1 gitCommit:{}", "1".repeat(40));
    output.success().stdout_has(&format!("new in the lock: {line}\n"));
    assert_eq!(output.stdout.matches("new in the lock").count(), 1);
    let output = repo.run(&[&args[..], &["--format=json"]].concat());
    let report: Value = serde_json::from_str(&output.success().stdout).unwrap();
    assert_eq!(report["new_locked"][0]["remote"], format!("{GIT}//b/c?ref=v1"));
    assert_eq!(report["new_locked"][0]["line"], 4);
    // What it no longer holds is not new.
    repo.run(&["check", "--rev", "HEAD^", "--base", "HEAD"]).success().lacks("new in the lock");
}

/// The system follows a link before it climbs; whoever joins paths as text sees another program.
#[test]
fn the_path_of_a_program_does_not_climb_after_a_link() {
    let mut memory = Memory::of(&[
        ("app/fn.sh", "#!/bin/sh\n"),
        ("lib/fn.sh", "#!/bin/sh\n"),
        ("lib/deep/cm.yaml", &config("a")),
        ("app/real/cm.yaml", &config("a")),
        ("app/kustomization.yaml", "transformers: [fn.yaml]\n"),
    ]);
    memory.symlink("app/link", "../lib/deep");
    memory.symlink("app/real/out", "../../lib/deep");
    let found = |path: &str| {
        let function = format!(
            "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: 'exec: {{path: {path}}}'\n"
        );
        memory.with("app/fn.yaml", function).findings()
    };
    for path in ["./fn.sh", "../lib/fn.sh", ".././/app/./fn.sh"] {
        assert_eq!(found(path).len(), 0, "{path}");
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
        let found = found(path);
        let climbs = |one: &Value| {
            let message = one["message"].as_str().unwrap();
            message.contains("has `..` after a directory name") && one["severity"] == "error"
        };
        assert!(found.iter().any(climbs), "{path}: {found:?}");
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
    work.run_as_is(&["branch", "--dry-run", "--offline"]).success();
    for index in 0..resources.len() {
        let (root, copy) = (format!("r{index}"), format!("out-{index}"));
        let args = [&root, &copy, "--no-commit", "--offline"];
        work.run(&args).success();
    }
    // An entry for another directory of the same repository, for another ref.
    for (url, why) in [
        ("lib//part?ref=v1", "`part` of `https://github.com/acme/lib//part?ref=v1` is not locked"),
        ("lib//web?ref=v2", "neither localized nor locked"),
    ] {
        let text = format!("resources: ['https://github.com/acme/{url}']\n");
        work.write("r0/kustomization.yaml", text);
        work.commit("another");
        work.run(&["check"]).fails(1).stdout_has(why);
        work.run_as_is(&["branch"]).fails(1).stderr_has(why);
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
        let unseen = format!("error[remote-reference]: `{directory}` of `");
        check(directory).fails(1).stdout_has(&unseen);
        let added = format!("  added {directory} of https://github.com/acme/lib?ref=v2\n");
        work.run(&["lock"]).success().stdout_has(&added);
        check(directory).success();
        assert!(work.read(LOCK).contains("acme/deep"));
        work.run(&["lock"]).success().stdout_has("nothing to do");
    }
}
