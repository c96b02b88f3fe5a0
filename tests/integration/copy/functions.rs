//! KRM functions, and plugins with code of their own: what they run comes along, and fetched programs run
//! only if the user trusts them.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::Refused;
use crate::support::{Kustomize, Output, Repo, Transcript, World, config_map};

const FLAGS: [&str; 2] = ["--enable-alpha-plugins", "--enable-exec"];
const BUILD: [&str; 2] = ["--build-arg=--enable-alpha-plugins", "--build-arg=--enable-exec"];

/// A program that makes a ConfigMap of what stands in a file beside it.
const PROGRAM: &str = "#!/bin/sh\ncat > /dev/null\nprintf 'apiVersion: config.kubernetes.io/v1\\nkind: ResourceList\\nitems:\\n- apiVersion: v1\\n  kind: ConfigMap\\n  metadata: {name: %s}\\n  data: {by: \"%s\"}\\n' \"$(basename \"$0\" .sh)\" \"$0\"\n";

/// The configuration of a function with this specification.
fn function(spec: &str) -> String {
    format!(
        "apiVersion: example.com/v1\nkind: Gen\nmetadata:\n  name: gen\n  annotations:\n    config.kubernetes.io/function: |\n      {}\n",
        spec.replace('\n', "\n      ")
    )
}

fn run(repo: &Repo, args: &[&str]) -> Output {
    repo.run(&[args, &BUILD[..]].concat())
}

fn mode(repo: &Repo, path: &str) -> u32 {
    fs::metadata(repo.path().join(path)).unwrap().permissions().mode() & 0o777
}

fn sha256(text: &str) -> String {
    git_kustomize_localize::seams::record::sha256_hex(text.as_bytes())
}

/// Writes what the output suggests to trust a program.
fn trust(world: &World, output: &Output) {
    let says = |line: &str| Some(line.split_once("if you trust it, write `")?.1.to_owned());
    let entry = output.stderr.lines().find_map(says);
    let entry = entry.unwrap_or_else(|| panic!("{output:?}"));
    world.work.decide(entry.split('`').next().unwrap());
}

#[test]
fn programs_of_the_repository_come_along_unchanged() {
    let world = World::new();
    world.sandbox.builds();
    let work = &world.work;
    work.write_executable("app/fn.sh", PROGRAM);
    work.write_executable("bin/shared.sh", PROGRAM);
    work.symlink("base/linked.sh", "../bin/shared.sh");
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!(
                "resources: [../base]\nnamePrefix: app-\ngenerators:\n- |\n  {}",
                function("exec: {path: ./fn.sh}").trim_end().replace('\n', "\n  ")
            ),
        ),
        ("base/kustomization.yaml", "generators: [gen.yaml, ../more]\nnamePrefix: base-\n"),
        ("base/gen.yaml", &function("exec: {path: ./linked.sh}")),
        ("more/kustomization.yaml", "resources: [fn.yaml]\n"),
        ("more/fn.yaml", &function("exec: {path: .././bin/shared.sh}").replace("name: gen", "name: other")),
    ]);
    run(work, &["app", "--scope", "."]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 9 files written, 0 references rewritten, 0 removed
          verified: builds are identical: 269 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    let copy = world.clone_of_branch();
    for program in ["app/fn.sh", "base/linked.sh", "bin/shared.sh"] {
        let place = format!("localized-app/{program}");
        assert_eq!(copy.read(&place), PROGRAM);
        assert_eq!(mode(&copy, &place) & 0o100, 0o100, "{place}");
    }
    for file in ["app/kustomization.yaml", "base/gen.yaml", "more/fn.yaml"] {
        let place = format!("localized-app/{file}");
        assert_eq!(copy.read(&place), work.read(file));
    }
    world.same_build_with("app", &copy, "localized-app/app", &FLAGS);
    work.run(&["check"]).success().says(expect![[r#"
        warning[function]: the function `Gen` runs `./fn.sh`, a program of this repository
         --> app/kustomization.yaml:5:3
          |
        5 |   apiVersion: example.com/v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^ generators[0]#Gen
          = help: to see what it asks for: git kustomize-localize check --build --build-arg=--enable-alpha-plugins --build-arg=--enable-exec

        warning[function]: the function `Gen` runs `./linked.sh`, a program of this repository
         --> base/gen.yaml:1:1
          |
        1 | apiVersion: example.com/v1
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Gen

        warning[function]: the function `Gen` runs `.././bin/shared.sh`, a program of this repository
         --> more/fn.yaml:1:1
          |
        1 | apiVersion: example.com/v1
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Gen

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain function
        checked 3 kustomizations with 7 references in the working tree: 3 warnings
    "#]]);
}

const GEN: &str = "https://github.com/acme/gen//base?ref=v1";

/// Has `app` name a remote root with a function of this specification, and with a program of this name.
fn remote_function(world: &World, spec: &str, name: &str, program: &str) {
    let upstream = world.upstream("acme/gen");
    upstream.write_executable(&format!("base/{name}"), program);
    upstream.write("base/kustomization.yaml", "generators: [gen.yaml]\n");
    upstream.write("base/gen.yaml", function(spec));
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    let text = format!("resources: ['{GEN}']\n");
    world.commit(&[("app/kustomization.yaml", &text)]);
}

/// A world in which `app` names a remote root that runs a program of its own.
fn remote_program() -> World {
    let world = World::new();
    remote_function(&world, "exec: {path: ./fn.sh}", "fn.sh", PROGRAM);
    world
}

const PLACE: &str = "localized-files/github.com/acme/gen/v1/base/fn.sh";

#[test]
fn a_fetched_program_runs_only_when_trusted() {
    let world = remote_program();
    let work = &world.work;
    let output = work.run(&["app", "--no-verify"]);
    output.success().stderr_has(&sha256(PROGRAM)).says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 6 files written, 1 reference rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          not verified: --no-verify
          1 warning (stripped-executable 1)
          to look at it: git show --stat <0>
        warning[stripped-executable]: `localized-files/github.com/acme/gen/v1/base/fn.sh` (sha256 <2>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
          = help: if you trust it, write `trust-exec: [localized-files/github.com/acme/gen/v1/base/fn.sh]` in .kustomize-localize
    "#]]);
    let copy = world.clone_of_branch();
    let place = format!("localized-app/{PLACE}");
    assert_eq!(mode(&copy, &place) & 0o111, 0);
    let lock = copy.read("localized-app/kustomize-localize.lock");
    assert!(lock.contains("mode: \"100644\"\n    stripped: true\n"), "{lock}");
    if let Some(kustomize) = Kustomize::find() {
        let args = [&["build"], &FLAGS[..], &["localized-app"]].concat();
        kustomize.run(&world.sandbox, copy.path(), &args).fails(1).stderr_has("permission denied");
    }
    copy.run(&["check", "localized-app"]).success();

    trust(&world, &output);
    work.run(&["app", "--no-verify"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    let copy = world.clone_of_branch();
    assert_eq!(mode(&copy, &place) & 0o100, 0o100);
    world.same_build_with("app", &copy, "localized-app", &FLAGS);
    let lock = copy.read("localized-app/kustomize-localize.lock");
    assert!(!lock.contains("stripped"), "{lock}");
    copy.run(&["check", "localized-app"]).success();
    // The same bytes as before are still trusted, with no network.
    let offline = ["app", "--no-verify", "--offline"];
    work.run(&offline).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
    // A pattern that matches something else trusts nothing.
    work.decide("trust-exec: ['localized-files/*.sh']\n");
    work.run(&offline).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          1 warning (stripped-executable 1)
          to look at it: git show --stat <0>
        warning[stripped-executable]: `localized-files/github.com/acme/gen/v1/base/fn.sh` (sha256 <1>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
          = help: if you trust it, write `trust-exec: [localized-files/github.com/acme/gen/v1/base/fn.sh]` in .kustomize-localize
    "#]]);
    assert_eq!(mode(&world.clone_of_branch(), &place) & 0o111, 0);
}

#[test]
fn a_build_that_needs_an_untrusted_program_says_what_to_do() {
    let world = remote_program();
    world.sandbox.builds();
    if Kustomize::find().is_none() {
        return;
    }
    let output = run(&world.work, &["app"]);
    output.success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 6 files written, 1 reference rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: app: in `base`: couldn't execute function: fork/exec ./fn.sh: permission denied
          1 warning (stripped-executable 1)
          to look at it: git show --stat <0>
        warning[stripped-executable]: `localized-files/github.com/acme/gen/v1/base/fn.sh` (sha256 <2>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
          = help: if you trust it, write `trust-exec: [localized-files/github.com/acme/gen/v1/base/fn.sh]` in .kustomize-localize
    "#]]);
    trust(&world, &output);
    run(&world.work, &["app"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          verified: builds are identical: 72 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    // Without the flags none of it runs, and that is not a success.
    world
        .work
        .run(&["app", "--branch", "other"])
        .success().says(expect![[r#"
            localized app into localized-app on branch other (<0>): 6 files written, 1 reference rewritten, 0 removed
              added https://github.com/acme/gen?ref=v1 <1>
              not verified: 1 root not built (kustomize/…, network closed)
              not built: app: in `base`: loading generator plugins: failed to load generator: external plugins disabled; unable to load external plugin 'Gen'
              a function needs the flag --build-arg=--enable-alpha-plugins; a plugin of this machine never runs
              to look at it: git show --stat <0>
        "#]]);
}

/// A program that writes down that it ran, what it sees, and what it can change.
fn spying(world: &World) -> String {
    world.sandbox.set("KUSTOMIZE_LOCALIZE_WRITABLE", world.sandbox.path(""));
    let seen = world.sandbox.path("seen");
    let spy = format!(
        "{{ echo ran; env; echo \"files at home: $(ls -A \"$HOME\")\"; case \"$0\" in */localized/*) touch \"$0\" \"$(dirname \"$0\")/more\" && echo changed;; esac; }} >>'{}' 2>/dev/null\n",
        seen.display()
    );
    PROGRAM.replacen('\n', &format!("\n{spy}"), 1)
}

#[test]
fn a_fetched_program_sees_and_changes_nothing_and_needs_trust() {
    let world = World::new();
    let work = &world.work;
    let Some(_) = world.sandbox.builds() else { return };
    let program = spying(&world);
    remote_function(&world, "exec: {path: ./fn.sh}", "fn.sh", &program);
    fs::write(world.sandbox.path("home/.netrc"), "password hunter2\n").unwrap();
    world.sandbox.set("TOKEN", "hunter2");
    let seen = world.sandbox.path("seen");

    let copy = ["app", "--overwrite"];
    let remote = [GEN, "remote"];
    let in_place = ["branch", "--branch", "in-place"];
    let mut transcript = Transcript::default();
    for how in [&copy as &[&str], &remote, &in_place] {
        transcript.add(run(work, how).success());
        assert!(!seen.exists(), "{how:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --overwrite --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
        localized app into localized-app on branch localized/main (<0>): 6 files written, 1 reference rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: app: in `base`: couldn't execute function: fork/exec ./fn.sh: permission denied
          1 warning (stripped-executable 1)
          to look at it: git show --stat <0>
        warning[stripped-executable]: `localized-files/github.com/acme/gen/v1/base/fn.sh` (sha256 <2>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
          = help: if you trust it, write `trust-exec: [localized-files/github.com/acme/gen/v1/base/fn.sh]` in .kustomize-localize
        $ git kustomize-localize https://github.com/acme/gen//base?ref=v1 remote --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
        localized https://github.com/acme/gen//base?ref=v1 into remote on branch localized/main (<0>): 5 files written, 0 references rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: https://github.com/acme/gen//base?ref=v1: couldn't execute function: fork/exec ./fn.sh: permission denied
          1 warning (stripped-executable 1)
          to look at it: git show --stat <0>
        warning[stripped-executable]: `base/fn.sh` (sha256 <2>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
          = help: if you trust it, write `trust-exec: [base/fn.sh]` in .kustomize-localize
        $ git kustomize-localize branch --branch in-place --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
        localized the repository on branch in-place (<0>): 6 files written, 1 reference rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: app: in `base`: couldn't execute function: fork/exec ./fn.sh: permission denied
          1 warning (stripped-executable 1)
          to look at it: git show --stat <0>
        warning[stripped-executable]: `app/localized-files/github.com/acme/gen/v1/base/fn.sh` (sha256 <2>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
          = help: if you trust it, write `trust-exec: [app/localized-files/github.com/acme/gen/v1/base/fn.sh]` in .kustomize-localize
    "#]]);

    work.decide("trust-exec: ['**/fn.sh']\n");
    let mut transcript = Transcript::default();
    for how in [&copy as &[&str], &remote, &in_place] {
        let output = run(work, how);
        transcript.add(output.success());
        let text = fs::read_to_string(&seen).unwrap();
        fs::remove_file(&seen).unwrap();
        assert_eq!(text.lines().filter(|line| *line == "ran").count(), 2, "{text}");
        assert!(!text.contains("hunter2") && !text.contains("TOKEN"), "{text}");
        let homes: Vec<&str> = text.lines().filter(|line| line.starts_with("files at home")).collect();
        assert_eq!(homes, ["files at home: "; 2]);
        if !output.stdout.contains("by a proxy") {
            assert!(!text.contains("changed"), "{text}");
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --overwrite --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
        localized app into localized-app on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          verified: builds are identical: 72 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
        $ git kustomize-localize https://github.com/acme/gen//base?ref=v1 remote --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
        localized https://github.com/acme/gen//base?ref=v1 into remote on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          verified: builds are identical: 72 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
        $ git kustomize-localize branch --branch in-place --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
        localized the repository on branch in-place (<0>): 3 files written, 0 references rewritten, 0 removed
          verified: builds are identical: 72 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
}

#[test]
fn an_upstream_runs_no_program_of_this_machine() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let ran = world.sandbox.path("ran");
    world.sandbox.script("tool", &format!("touch '{}'; cat", ran.display()));
    remote_function(&world, "exec: {path: tool}", "fn.sh", PROGRAM);
    run(&world.work, &["app"]).fails(1).says(expect![[r#"
        error[function]: the function `Gen` runs whatever `tool` is on the PATH of the build machine
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:1:1: Gen

        error: <0> has 1 error (function 1): nothing was committed
          hint: for more: git kustomize-localize explain function
    "#]]);
    world.work.decide("rules: {function: warning}\n");
    run(&world.work, &["app"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          not verified: 1 root not built (kustomize/…)
          not built: app: https://github.com/acme/gen?ref=v1: base/gen.yaml runs the local program `tool`, which cannot be trusted with remote input
          1 warning (function 1)
          to look at it: git show --stat <0>
        warning[function]: the function `Gen` runs whatever `tool` is on the PATH of the build machine
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:1:1: Gen
    "#]]);
    assert!(!ran.exists());
}

#[test]
fn each_root_names_its_own_program_of_this_machine() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    remote_function(&world, "exec: {path: tool}", "fn.sh", PROGRAM);
    let upstream = world.upstream("acme/gen");
    upstream.write("base/gen.yaml", function("exec: {path: other}"));
    upstream.commit("second");
    upstream.git(&["tag", "v2"]);
    let text = world.work.read("app/kustomization.yaml").replace("v1", "v2");
    world.commit(&[("more/kustomization.yaml", &text), (".kustomize-localize", "rules: {function: warning}\n")]);
    run(&world.work, &["branch"]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 9 files written, 2 references rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          added https://github.com/acme/gen?ref=v2 <2>
          not verified: 2 roots not built (kustomize/…)
          not built: app: https://github.com/acme/gen?ref=v1: base/gen.yaml runs the local program `tool`, which cannot be trusted with remote input
          not built: more: https://github.com/acme/gen?ref=v2: base/gen.yaml runs the local program `other`, which cannot be trusted with remote input
          2 warnings (function 2)
          to look at it: git show --stat <0>
        warning[function]: the function `Gen` runs whatever `tool` is on the PATH of the build machine
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:1:1: Gen

        warning[function]: the function `Gen` runs whatever `other` is on the PATH of the build machine
         --> https://github.com/acme/gen?ref=v2: base/gen.yaml:1:1: Gen
    "#]]);
}

#[test]
fn a_fetched_program_is_trusted_in_place() {
    let world = remote_program();
    let work = &world.work;
    let output = work.run(&["vendor", "--no-verify", "app"]);
    output
        .success().says(expect![[r#"
            localized app: 6 files written, 1 reference rewritten, 0 removed
              added https://github.com/acme/gen?ref=v1 <0>
              not verified: --no-verify
              1 warning (stripped-executable 1)
              to stage it: git add -f -- :/app/kustomization.yaml :/app/localized-files :/kustomize-localize.lock
            warning[stripped-executable]: `app/localized-files/github.com/acme/gen/v1/base/fn.sh` (sha256 <1>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
             --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
              = help: if you trust it, write `trust-exec: [app/localized-files/github.com/acme/gen/v1/base/fn.sh]` in .kustomize-localize
        "#]]);
    let place = format!("app/{PLACE}");
    assert_eq!(mode(work, &place) & 0o111, 0);
    work.commit("localized");
    work.run(&["check"]).success();

    trust(&world, &output);
    work.run(&["vendor", "--no-verify", "app"]).success().says(expect![[r#"
        localized app: 2 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to stage it: git add -f -- :/app/localized-files :/kustomize-localize.lock
    "#]]);
    assert_eq!(mode(work, &place) & 0o100, 0o100);
    work.run(&["check"]).success();
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
    if let Some(kustomize) = Kustomize::find() {
        let args = [&["build"], &FLAGS[..], &["app"]].concat();
        kustomize.run(&world.sandbox, work.path(), &args).success().stdout_has("name: fn");
    }
    let state = work.state();
    work.run(&["vendor", "--no-verify", "app"]).success();
    state.assert_same(&work.state());
}

#[test]
fn a_program_at_a_url_is_downloaded() {
    let world = World::new();
    let url = "https://files.example.com/v1.0.0/fn.sh";
    world.file(url, PROGRAM);
    world.commit(&[
        ("app/kustomization.yaml", "generators: [gen.yaml]\n"),
        ("app/gen.yaml", &function(&format!("exec:\n  path: {url} # run"))),
    ]);
    world
        .work
        .run(&["check"])
        .fails(1).says(expect![[r#"
            warning[function]: the function `Gen` runs `https://files.example.com/v1.0.0/fn.sh`, which kustomize does not download: only a localized copy contains it
             --> app/gen.yaml:1:1
              |
            1 | apiVersion: example.com/v1
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Gen
              = help: add the program to this repository, and use its path

            error[remote-reference]: `https://files.example.com/v1.0.0/fn.sh` is neither localized nor locked
             --> app/gen.yaml:8:15
              |
            8 |         path: https://files.example.com/v1.0.0/fn.sh # run
              |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ generators[0] > Gen.exec.path
              = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
              = help: or vendor it: git kustomize-localize vendor :/app

            for more: git kustomize-localize explain remote-reference function
            checked 1 kustomization with 2 references in the working tree: 1 error, 1 warning
        "#]]);
    let output = world.work.run(&["app", "--no-verify"]);
    let place = "localized-files/files.example.com/v1.0.0/fn.sh";
    output
        .success().says(expect![[r#"
            localized app into localized-app on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
              added https://files.example.com/v1.0.0/fn.sh <1>
              not verified: --no-verify
              1 warning (stripped-executable 1)
              to look at it: git show --stat <0>
            warning[stripped-executable]: `localized-files/files.example.com/v1.0.0/fn.sh` (sha256 <1>) is a program from https://files.example.com/v1.0.0/fn.sh, so its execute bit was removed
             --> app/gen.yaml:8:15
              |
            8 |         path: https://files.example.com/v1.0.0/fn.sh # run
              |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ generators[0] > Gen.exec.path
              = help: if you trust it, write `trust-exec: [localized-files/files.example.com/v1.0.0/fn.sh]` in .kustomize-localize
        "#]]);
    let copy = world.clone_of_branch();
    assert_eq!(copy.read("localized-app/gen.yaml"), function(&format!("exec:\n  path: {place} # run")));
    let at = format!("localized-app/{place}");
    assert_eq!((copy.read(&at).as_str(), mode(&copy, &at) & 0o111), (PROGRAM, 0));
    trust(&world, &output);
    world.work.run(&["app", "--no-verify"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    let copy = world.clone_of_branch();
    assert_eq!(mode(&copy, &at) & 0o100, 0o100);
    if let Some(kustomize) = Kustomize::find() {
        let args = [&["build"], &FLAGS[..], &["localized-app"]].concat();
        kustomize.run(&world.sandbox, copy.path(), &args).success().stdout_has(&format!("by: {place}"));
    }
    copy.run(&["check", "localized-app"]).success();
}

/// A pattern that names one program is written so that it matches nothing else.
#[test]
fn a_fetched_program_of_an_odd_name_is_trusted_by_it() {
    let world = World::new();
    let name = "tool [1].sh";
    remote_function(&world, "exec: {path: './tool [1].sh'}", name, PROGRAM);
    world.work.run(&["app", "--no-verify"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 6 files written, 2 references rewritten, 0 removed
          added https://github.com/acme/gen?ref=v1 <1>
          not verified: --no-verify
          1 warning (stripped-executable 1)
          to look at it: git show --stat <0>
        warning[stripped-executable]: `localized-files/github.com/acme/gen/v1/base/tool__1_-8a9184d3.sh` (sha256 <2>) is a program from https://github.com/acme/gen?ref=v1, so its execute bit was removed
         --> https://github.com/acme/gen?ref=v1: base/gen.yaml:7:20: generators[0] > Gen.exec.path
          = help: if you trust it, write `trust-exec: [localized-files/github.com/acme/gen/v1/base/tool__1_-8a9184d3.sh]` in .kustomize-localize
    "#]]);
    let place = "localized-app/localized-files/github.com/acme/gen/v1/base";
    let program = |copy: &Repo| {
        let files = copy.files("HEAD");
        let mut files = files.iter().filter_map(|file| file.split_once(' '));
        let program = files.find(|(_, path)| path.starts_with(place) && path.ends_with(".sh"));
        program.unwrap().1.to_owned()
    };
    let copy = world.clone_of_branch();
    let at = program(&copy);
    assert_eq!((copy.read(&at).as_str(), mode(&copy, &at) & 0o111), (PROGRAM, 0));
    world.work.decide("trust-exec: ['localized-files/**/*.sh']\n");
    world.work.run(&["app", "--no-verify"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    let copy = world.clone_of_branch();
    assert_eq!(mode(&copy, &program(&copy)) & 0o100, 0o100);
}

#[test]
fn programs_that_cannot_come_along_are_reported() {
    let world = World::new();
    let digest = "0".repeat(64);
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources: [map.yaml]\ntransformers: [path.yaml, pinned.yaml, odd.yaml, plugin.yaml]\n",
        ),
        ("app/map.yaml", &config_map("map")),
        ("app/path.yaml", &function("exec: {path: sed}")),
        ("app/pinned.yaml", &function(&format!("container: {{image: 'h/fn@sha256:{digest}', network: true}}"))),
        ("app/odd.yaml", &function("{}")),
        ("app/plugin.yaml", "apiVersion: team.example.com/v1\nkind: Plug\nmetadata: {name: plug}\n"),
    ]);
    world.work.run(&["app", "--no-verify"]).fails(1);
    world.work.decide("rules: {function: warning}\n");
    world.work.run(&["app", "--no-verify"])
        .success()
        .says(expect![[r#"
            localized app into localized-app on branch localized/main (<0>): 7 files written, 0 references rewritten, 0 removed
              not verified: --no-verify
              4 warnings (function 4)
              to look at it: git show --stat <0>
            warning[function]: the function `Gen` names neither a program nor an image
             --> app/odd.yaml:1:1
              |
            1 | apiVersion: example.com/v1
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Gen

            warning[function]: the function `Gen` runs whatever `sed` is on the PATH of the build machine
             --> app/path.yaml:1:1
              |
            1 | apiVersion: example.com/v1
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Gen

            warning[function]: the function `Gen` runs the image `h/fn@sha256:<1>`, with network access
             --> app/pinned.yaml:1:1
              |
            1 | apiVersion: example.com/v1
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Gen

            warning[function]: the code of plugin `Plug` is in the plugin home of the build machine, at `team.example.com/v1/plug/Plug`
             --> app/plugin.yaml:1:1
              |
            1 | apiVersion: team.example.com/v1
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ Plug
        "#]]);
    let copy = world.clone_of_branch();
    for name in ["path", "pinned", "odd", "plugin"] {
        let place = format!("{name}.yaml");
        assert_eq!(copy.read(&format!("localized-app/{place}")), world.work.read(&format!("app/{place}")));
    }
}

#[test]
fn programs_that_lead_out_are_refused() {
    let world = World::new();
    let work = &world.work;
    world.commit(&[("in/data/x", "x\n"), ("other/fn.sh", PROGRAM)]);
    work.symlink("in/link", "../other/fn.sh");
    let mut all = Refused::new(work);
    for (number, (path, said)) in [
        ("/usr/bin/env", "`/usr/bin/env` is an absolute path"),
        ("../../other/fn.sh", "is outside the scope `in`"),
        (".././link", "is outside the scope `in`"),
        ("./none.sh", "there is no "),
        (".././data", "is a directory, not a file"),
    ]
    .into_iter()
    .enumerate()
    {
        let text = function(&format!("exec: {{path: {path}}}"));
        let place = format!("{number}/gen.yaml");
        work.write(&format!("in/{place}"), text);
        all.add(&number.to_string(), "generators: [gen.yaml]\n", said);
    }
    all.in_one_run(&[]);
    // An absolute path into the scope is one that can be written relative.
    let inside = work.path().join("app/own.sh");
    work.write_executable("app/own.sh", PROGRAM);
    let absolute = format!("exec: {{path: {}}}", inside.display());
    world.commit(&[("app/kustomization.yaml", "generators: [gen.yaml]\n"), ("app/gen.yaml", &function(&absolute))]);
    // The program runs under another path: the builds differ if it prints that.
    work.run(&["app", "--no-verify"]).success();
    assert_eq!(work.show("localized/main", "localized-app/gen.yaml"), function("exec: {path: ./own.sh}"));
}
