//! Warnings are counted, and `rules: {"*": error}` makes errors of them.

use serde_json::Value;

use crate::support::{Project, Transcript, World, config_map};

/// Two things that work but should be known.
const WARNED: &str = "resources: [config.yaml]\ngenerators:\n- '{apiVersion: x/v1, kind: Foo, metadata: {name: a}}'\n- '{apiVersion: x/v1, kind: Bar, metadata: {name: a}}'\n";
const COUNTED: &str = "2 warnings (function 2)";

fn warned() -> World {
    let world = World::new();
    world.commit(&[
        ("app/kustomization.yaml", WARNED),
        ("app/config.yaml", &config_map("app")),
        (".kustomize-localize", "rules: {function: warning}\n"),
    ]);
    world
}

#[test]
fn one_severity_holds_in_every_command() {
    let world = warned();
    let work = &world.work;
    let output = work.run(&["app", "--no-verify", "--format", "json", "--dry-run"]);
    let told: Value = serde_json::from_str(&output.success().stdout).unwrap();
    let rules = told["findings"].as_array().unwrap().iter().map(|one| &one["rule"]);
    assert_eq!(Vec::from_iter(rules), ["function"; 2]);
    work.run(&["check"]).success();
    let commands = [&["app", "--no-verify", "--branch=copies"][..], &["branch", "--no-verify"], &["vendor"]];

    for command in commands {
        work.run(&[command, &["--dry-run"]].concat()).success().stdout_has(&format!("\n  {COUNTED}\n"));
    }

    work.decide("");

    for command in commands {
        let before = work.state();
        let output = work.run(command);
        let head = work.git(&["rev-parse", "--short=12", "HEAD"]);
        let message = match command[0] {
            "vendor" => "nothing was written: 2 errors (function 2)".to_owned(),
            _ => format!("{} has 2 errors (function 2): nothing was committed", head.trim()),
        };

        output
            .fails(1)
            .stderr_has("error[function]: ")
            .stderr_has(" --> app/kustomization.yaml:3:")
            .stderr_has(&format!("error: {message}"));
        assert_eq!(output.stdout, "");
        before.assert_same(&work.state());
    }

    let entry = "rules: {'*': error}\nallow:\n- {program: '{Foo,Bar}', rules: [function], reason: ours}\n";
    work.decide(entry);
    work.run(&["check"]).success();
    let mut transcript = Transcript::default();
    for command in commands {
        transcript.add(work.run(command).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify --branch=copies
        localized app into localized-app on branch copies (<0>): 3 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize branch --no-verify
        localized the repository on branch localized/main (<0>): 0 files written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize vendor
        nothing to do: no remote references
    "#]]);
}

#[test]
fn no_command_has_a_severity_of_its_own() {
    let world = warned();
    let mut transcript = Transcript::default();
    for command in [&["check"][..], &["branch"], &["vendor"], &["update"], &["app"]] {
        transcript.add(world.work.run(&[command, &["--strict"]].concat()).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --strict
        error: unexpected argument '--strict' found

          tip: to pass '--strict' as a value, use '-- --strict'

        Usage: git kustomize-localize check [OPTIONS] [PATH]...

        For more information, try '-h'.
        $ git kustomize-localize branch --strict --no-verify
        error: unexpected argument '--strict' found

        Usage: git kustomize-localize branch [OPTIONS]

        For more information, try '-h'.
        $ git kustomize-localize vendor --strict
        error: unexpected argument '--strict' found

          tip: to pass '--strict' as a value, use '-- --strict'

        Usage: git kustomize-localize vendor [OPTIONS] [PATH]...

        For more information, try '-h'.
        $ git kustomize-localize update --strict
        error: unexpected argument '--strict' found

          tip: to pass '--strict' as a value, use '-- --strict'

        Usage: git kustomize-localize update [OPTIONS] [URL]...

        For more information, try '-h'.
        $ git kustomize-localize app --strict --no-verify
        error: unexpected argument '--strict' found

          tip: to pass '--strict' as a value, use '-- --strict'

        Usage: git kustomize-localize [OPTIONS] <TARGET> [NEW_DIR]
               git kustomize-localize <COMMAND>

        For more information, try '-h'.
    "#]]);
}

#[test]
fn all_warnings_can_be_errors() {
    let world = World::new();
    let work = &world.work;
    work.write(".gitignore", "secret.env\n");
    let text = "secretGenerator:\n- {name: s, envs: [secret.env]}\n";
    let commands = [&["check"][..], &["branch", "--no-verify"], &["vendor", "--no-verify"]];
    for (rules, severity, status) in [
        ("", "warning", 0),
        ("'*': error", "error", 1),
        ("'*': error, untracked-path: warning", "warning", 0),
        ("untracked-path: error", "error", 1),
    ] {
        world.commit(&[("app/kustomization.yaml", text), (".kustomize-localize", &format!("rules: {{{rules}}}\n"))]);
        for command in commands {
            let output = work.run(command);
            assert_eq!(output.status, status, "{rules} {output:?}");
            let said = format!("{}{}", output.stdout, output.stderr);
            assert!(said.contains(&format!("{severity}[untracked-path]")), "{rules} {output:?}");
        }
    }
}

#[test]
fn what_no_build_verifies_is_judged_by_rules_alone() {
    let project = Project::new();
    project.overlay(&["--dry-run"]).success();
    project.work.decide("rules: {not-built: error}\n");
    let before = project.work.state();
    project.overlay(&["--no-commit"]).fails(1).says(expect![[r#"
        error[not-built]: not verified: neither `kustomize` nor `kubectl` was found on PATH

        error: nothing was written: 1 error (not-built 1)
          hint: for more: git kustomize-localize explain not-built
    "#]]);
    before.assert_same(&project.work.state());
    project.overlay(&["--no-verify"]).success();
}

#[test]
fn nothing_is_committed_that_no_program_can_compare() {
    let project = Project::new();
    let work = &project.work;
    work.lock();
    project.sandbox.offer_itself();
    let before = work.state();
    for args in [&["branch"][..], &["branch", "--dry-run"], &["example/overlay", "--scope", "example"]] {
        let output = work.try_git(&[&["kustomize-localize"], args].concat());
        output.fails(2).says(expect![[r#"
            error: nothing was committed, because builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH
              hint: install kustomize, or name it: --kustomize FILE, or the variable KUSTOMIZE
              hint: to commit without comparing builds: --no-verify
        "#]]);
        before.assert_same(&work.state());
    }
    // On disk, somebody looks at it before it is committed. `status` says it beforehand.
    work.run_as_is(&["status"])
        .success().says(expect![[r#"
            3 kustomizations, 1 remote reference (1 locked)
            builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
            branch localized/main: missing
            next: git kustomize-localize branch --no-verify
        "#]]);
    work.run_as_is(&["init"]).success().says(expect![[r#"
        nothing to write: 1 locked, 0 allowed
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        next: git kustomize-localize branch --no-verify
    "#]]);
    work.run_as_is(&["vendor"]).success().says(expect![[r#"
        localized the working tree: 5 files written, 1 reference rewritten, 0 removed
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/example/base/kustomization.yaml :/example/base/localized-files :/kustomize-localize.lock
    "#]]);
}

#[test]
fn a_job_that_takes_no_warnings_passes_with_accepted_ones() {
    let project = Project::new();
    let work = &project.work;
    let Some(_) = project.sandbox.builds() else { return };
    work.write(".gitignore", "secret.env\n");
    work.write(
        "other/kustomization.yaml",
        "resources: [../example/overlay]\nsecretGenerator:\n- name: s\n  envs: [secret.env]\n",
    );
    work.write(".kustomize-localize", "rules: {'*': error}\n");
    work.commit("a secret");
    work.lock();
    let before = work.state();
    for args in [&["branch"][..], &["other"], &["check"]] {
        let output = work.run(args);
        assert_ne!(output.status, 0, "{output:?}");
        assert!(args != ["check"] || output.stdout.contains("untracked-path"), "{output:?}");
    }
    before.assert_same(&work.state());

    work.write(
        ".kustomize-localize",
        "rules: {'*': error}\nallow:\n- path: '**/secret.env'\n  reason: made by each cluster\n",
    );
    work.commit("accepted");
    work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
    "#]]);
    work.commit("locked");
    let mut transcript = Transcript::default();
    for _ in 0..2 {
        transcript.add(work.run(&["branch"]).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch
        localized the repository on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: other: other/secret.env is missing (allowed)
          to look at it: git show --stat <0>
        $ git kustomize-localize branch
        nothing to do: branch localized/main (<0>) already has <1> localized
    "#]]);
    // Whatever lacks the file cannot be built.
    let mut transcript = Transcript::default();
    for gate in [
        &["check", "--rev", "localized/main"][..],
        &["verify", "localized/main"],
        &["verify", "localized/main", "--rebuild"],
    ] {
        transcript.add(work.run(gate).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --rev localized/main
        checked 4 kustomizations with 6 references in commit <0> (localized/main): 1 allowed
        $ git kustomize-localize verify localized/main
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded
        $ git kustomize-localize verify localized/main --rebuild
        .: 3 localized files, 1 upstream; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded, the same when localized again
    "#]]);
    let copy = ["other", "copy", "--scope", ".", "--branch", "copies"];
    work.run(&copy).success().says(expect![[r#"
        localized other into copy on branch copies (<0>): 8 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          not verified: 1 root not built (kustomize/…)
          not built: other: other/secret.env is missing (allowed)
          to look at it: git show --stat <0>
    "#]]);
    work.run(&["verify", "copies", "--rebuild"]).success();
    work.run(&["vendor"]).success().says(expect![[r#"
        localized the working tree: 5 files written, 1 reference rewritten, 0 removed
          not verified: 1 root not built (kustomize/…, network closed)
          not built: other: other/secret.env is missing (allowed)
          to stage it: git add -f -- :/example/base/kustomization.yaml :/example/base/localized-files :/kustomize-localize.lock
    "#]]);
}
