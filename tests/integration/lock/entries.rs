//! What an entry of a lock is for: the URL that kustomize requests, and the directories that it lists.

use serde_json::Value;

use crate::support::{Repo, Sandbox, Transcript, World, deployment};

const LOCK: &str = "kustomize-localize.lock";
const FILE: &str = "https://files.example.com/v1/app.yaml";
const GIT: &str = "https://git.example.com/o/r";

/// A lock that holds a directory of a repository.
fn lock() -> String {
    let commit = "1".repeat(40);
    format!("version: 1\nremotes:\n- {{url: \"{GIT}\", ref: v1, commit: \"{commit}\", paths: {{a: {{}}}}}}\n")
}

#[test]
fn nothing_is_locked_that_a_lock_cannot_hold() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let mut transcript = Transcript::default();
    for end in ["\u{a0}", "#x"] {
        let url = Value::from(format!("{FILE}{end}"));
        repo.write("kustomization.yaml", format!("resources: [{url}]\n"));
        transcript.add(repo.run(&["lock"]).fails(1));
        assert!(!repo.path().join(LOCK).exists());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing was written
        error: kustomization.yaml:1:13: resources[0]: `https://files.example.com/v1/app.yaml` is refused: its reference begins or ends with whitespace
          hint: rewrite it, and check where it came from: text that git could misread is never passed on
        error: 1 reference could not be locked
        $ git kustomize-localize lock
        nothing was written
        error: kustomization.yaml:1:13: resources[0]: `https://files.example.com/v1/app.yaml` is refused: it contains `#`, which ends a URL
          hint: rewrite it, and check where it came from: text that git could misread is never passed on
        error: 1 reference could not be locked
    "#]]);
}

#[test]
fn without_any_kustomization_a_lock_stays_as_it_is() {
    let world = World::acme();
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//other?ref=v1']\n")]);
    world.work.run_as_is(&["lock"]).success();
    world.work.commit("locked");
    world.work.run_as_is(&["vendor"]).success();
    let stored = world.work.commit("stored");
    let mut transcript = Transcript::default();
    for of in ["HEAD^", &stored] {
        world.work.git(&["checkout", "-q", of]);
        world.work.git(&["rm", "-q", "app/kustomization.yaml"]);
        for command in ["lock", "update", "init", "vendor"] {
            world.work.run_unchanged(&[command]).fails(2).says(expect![[r#"
                error: no kustomization found, although `kustomize-localize.lock` has entries
                  hint: if none is left on purpose, delete `kustomize-localize.lock` and the files that it lists
            "#]]);
        }
        for more in [&[][..], &["--staged"]] {
            let output = world.work.run_unchanged(&[&["check"], more].concat());
            transcript.add(output.fails(2));
        }
        world.work.git(&["reset", "-q", "--hard"]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        warning[stale-lock]: nothing references `https://github.com/acme/lib?ref=v1`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain stale-lock
        no kustomization in the working tree: 1 warning, 1 could not be checked
        error: no kustomization found, although `kustomize-localize.lock` has entries
          hint: if none is left on purpose, delete `kustomize-localize.lock` and the files that it lists
        $ git kustomize-localize check --staged
        warning[stale-lock]: nothing references `https://github.com/acme/lib?ref=v1`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain stale-lock
        no kustomization in the index: 1 warning, 1 could not be checked
        error: no kustomization found, although `kustomize-localize.lock` has entries
          hint: if none is left on purpose, delete `kustomize-localize.lock` and the files that it lists
        $ git kustomize-localize check
        checked 1 kustomization with 1 reference in the working tree: 1 could not be checked
        error: no kustomization found, although `kustomize-localize.lock` has entries
          hint: if none is left on purpose, delete `kustomize-localize.lock` and the files that it lists
        $ git kustomize-localize check --staged
        checked 1 kustomization with 1 reference in the index: 1 could not be checked
        error: no kustomization found, although `kustomize-localize.lock` has entries
          hint: if none is left on purpose, delete `kustomize-localize.lock` and the files that it lists
    "#]]);
    // An empty lock may stay.
    world.work.git(&["rm", "-q", "-r", "app"]);
    world.work.write(LOCK, "version: 1\n");
    world.work.git(&["add", LOCK]);
    world.work.run_unchanged(&["check"]).success();
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
    output.success().says(expect![[r#"
        new in the lock: kustomize-localize.lock:3: https://git.example.com/o/r//b/c?ref=v1 gitCommit:<0>
        checked 1 kustomization with 2 references in commit <1> (HEAD): no problems found
    "#]]);
    assert_eq!(output.stdout.matches("new in the lock").count(), 1);
    let output = repo.run(&[&args[..], &["--format=json"]].concat());
    let report: Value = serde_json::from_str(&output.success().stdout).unwrap();
    assert_eq!(report["new_locked"][0]["remote"], format!("{GIT}//b/c?ref=v1"));
    assert_eq!(report["new_locked"][0]["line"], 3);
    // What it no longer holds is not new.
    repo.run(&["check", "--rev", "HEAD^", "--base", "HEAD"]).success().says(expect![[r#"
        checked 1 kustomization with 1 reference in commit <0> (HEAD^): no problems found
    "#]]);
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
    let mut transcript = Transcript::default();
    for url in ["lib//part?ref=v1", "lib//web?ref=v2"] {
        let text = format!("resources: ['https://github.com/acme/{url}']\n");
        work.write("r0/kustomization.yaml", text);
        work.commit("another");
        transcript.add(work.run(&["check"]).fails(1));
        transcript.add(work.run_as_is(&["branch"]).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        error[remote-reference]: `part` of `https://github.com/acme/lib//part?ref=v1` is not locked
         --> r0/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//part?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/r0

        for more: git kustomize-localize explain remote-reference
        checked 18 kustomizations with 22 references in the working tree: 1 error
        $ git kustomize-localize branch --no-verify
        error[remote-reference]: `part` of `https://github.com/acme/lib//part?ref=v1` is not locked
         --> r0/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//part?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]

        error: <0> has 1 error (remote-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-reference
          hint: lock the remote references: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
        $ git kustomize-localize check
        error[remote-reference]: `https://github.com/acme/lib//web?ref=v2` is neither localized nor locked
         --> r0/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//web?ref=v2']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/r0

        for more: git kustomize-localize explain remote-reference
        checked 18 kustomizations with 22 references in the working tree: 1 error
        $ git kustomize-localize branch --no-verify
        error[remote-reference]: `https://github.com/acme/lib//web?ref=v2` is neither localized nor locked
         --> r0/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//web?ref=v2']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]

        error: <0> has 1 error (remote-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain remote-reference
          hint: lock the remote references: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
    "#]]);
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
    let mut transcript = Transcript::default();
    for directory in ["web", "link"] {
        transcript.add(check(directory).fails(1));
        transcript.add(work.run(&["lock"]).success());
        check(directory).success();
        assert!(work.read(LOCK).contains("acme/deep"));
        transcript.add(work.run(&["lock"]).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        error[remote-reference]: `web` of `https://github.com/acme/lib//web?ref=v2` is not locked
         --> kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//web?ref=v2']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/

        warning[stale-lock]: nothing references `https://github.com/acme/lib//other?ref=v2`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain remote-reference stale-lock
        checked 1 kustomization with 1 reference in the working tree: 1 error, 1 warning
        $ git kustomize-localize lock
        wrote kustomize-localize.lock: 2 remote references
          added https://github.com/acme/deep?ref=v1 <0>
          added web of https://github.com/acme/lib?ref=v2
          to stage it: git add -f -- :/kustomize-localize.lock
        $ git kustomize-localize lock
        nothing to do: kustomize-localize.lock has 2 remote references
        $ git kustomize-localize check
        error[remote-reference]: `link` of `https://github.com/acme/lib//link?ref=v2` is not locked
         --> kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//link?ref=v2']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/

        warning[stale-lock]: nothing references `https://github.com/acme/deep?ref=v1`
         --> kustomize-localize.lock:4:5
          |
        4 |   - url: https://github.com/acme/deep
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes
          = help: drop it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        warning[stale-lock]: nothing references `https://github.com/acme/lib//web?ref=v2`
         --> kustomize-localize.lock:9:5
          |
        9 |   - url: https://github.com/acme/lib
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ remotes

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain remote-reference stale-lock
        checked 1 kustomization with 1 reference in the working tree: 1 error, 2 warnings
        $ git kustomize-localize lock
        wrote kustomize-localize.lock: 2 remote references
          added link of https://github.com/acme/lib?ref=v2
          to stage it: git add -f -- :/kustomize-localize.lock
        $ git kustomize-localize lock
        nothing to do: kustomize-localize.lock has 2 remote references
    "#]]);
}
