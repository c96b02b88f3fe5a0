//! What a build asks for and nobody foresaw, in every command that builds. The reader is made blind for one field.

use super::{Project, stand_in};
use crate::support::{Transcript, World, config_map, wait_until};

const RULE: &str = "unread-reference";

/// Something of a commit that is locked, and something else: the second is refused wherever it is asked for.
const COMPONENTS: [&str; 2] = ["https://github.com/acme/lib//part?ref=v1", "https://github.com/acme/deep//app?ref=v1"];

/// A function whose program is beside it, and the flags with which a build runs it.
const FUNCTION: &str = "apiVersion: example.com/v1\nkind: Fn\nmetadata:\n  name: fn\n  annotations:\n    \
                        config.kubernetes.io/function: '{exec: {path: ./fn.sh}}'\n";
const FLAGS: [&str; 2] = ["--build-arg=--enable-alpha-plugins", "--build-arg=--enable-exec"];

/// A repository whose `app` names something that is locked, and a component that a blind reader does not see.
fn hidden(component: &str) -> Option<World> {
    let world = World::acme();
    world.sandbox.builds()?;
    let app = "resources:\n- https://github.com/acme/lib//other?ref=v1\n";
    world.commit(&[("app/kustomization.yaml", app)]);
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    world.commit(&[("app/kustomization.yaml", &format!("{app}components:\n- {component}\n"))]);
    world.work.run(&["check"]).fails(1);
    world.sandbox.set("KUSTOMIZE_LOCALIZE_BLIND_TO", "components");
    Some(world)
}

#[test]
fn every_command_that_builds_sees_what_the_reader_does_not() {
    let gates: &[(&[&str], i32)] = &[
        (&["check", "--build"], 1),
        (&["check", "--build", "--base", "HEAD~1"], 1),
        (&["check", "--build", "--rev", "HEAD", "app"], 1),
        (&["branch"], 1),
        (&["vendor"], 1),
        (&["app", "out"], 1),
    ];
    // What is locked is there for these.
    let others: &[(&[&str], i32)] = &[(&["build", "app"], 2), (&["diff", "HEAD~1"], 1)];
    for (component, all) in COMPONENTS.into_iter().zip([gates, &[gates, others].concat()]) {
        let Some(world) = hidden(component) else { return };
        let work = &world.work;
        work.run(&["check"]).success();
        let before = work.state();
        let repository = &component[..component.rfind("//").unwrap()];
        for (args, status) in all {
            let output = work.run(args);
            assert_eq!(output.status, *status, "{args:?}: {output:?}");
            let said = format!("{}{}", output.stdout, output.stderr);
            let call = format!("git fetch --depth=1 {repository} v1");
            assert!(said.contains(RULE) && said.contains(&call), "{args:?}: {said}");
            before.assert_same(&work.state());
        }
    }
}

/// A branch is not made where a root that stays as it is asks for something, whatever else is localized.
#[test]
fn what_localizing_does_not_change_is_built_too() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    world.commit(&[
        ("app/kustomization.yaml", "resources: [cm.yaml]\ntransformers: [fn.yaml]\n"),
        ("app/cm.yaml", &config_map("cm")),
        ("app/fn.yaml", FUNCTION),
        ("plain/kustomization.yaml", "resources: [../app/cm.yaml]\nnamePrefix: plain-\n"),
    ]);
    work.write_executable("app/fn.sh", "#!/bin/sh\n[ ! -e asks ] || git ls-remote https://example.com/o/r\ncat\n");
    work.decide("rules: {function: warning}\nload-restrictor: none\n");
    work.commit("asks for nothing");
    let branch = [&["branch"], &FLAGS[..]].concat();
    work.run(&branch).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 0 files written, 0 references rewritten, 0 removed
          verified: 2 builds not changed (kustomize/…, network closed)
          1 warning (function 1)
          to look at it: git show --stat <0>
        warning[function]: the function `Fn` runs `./fn.sh`, a program of this repository
         --> app/fn.yaml:1:1
          |
        1 | apiVersion: example.com/v1
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Fn
          = help: to see what it asks for: git kustomize-localize check --build --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
    "#]]);
    work.write("app/asks", "");
    work.commit("asks");
    let before = work.state();
    let mut transcript = Transcript::default();
    for args in [&branch[..], &[&branch[..], &["--dry-run"]].concat()] {
        transcript.add(work.run(args).fails(1));
        before.assert_same(&work.state());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize branch --build-arg=--enable-alpha-plugins --build-arg=--enable-exec
        $ git kustomize-localize branch --build-arg=--enable-alpha-plugins --build-arg=--enable-exec --dry-run
        warning[function]: the function `Fn` runs `./fn.sh`, a program of this repository
         --> app/fn.yaml:1:1
          |
        1 | apiVersion: example.com/v1
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Fn
          = help: to see what it asks for: git kustomize-localize check --build --build-arg=--enable-alpha-plugins --build-arg=--enable-exec

        error[unread-reference]: kustomize asks for `git ls-remote https://example.com/o/r`, which no reference names
         --> app/kustomization.yaml
         = help: write the reference plainly, and lock it: git kustomize-localize explain unread-reference

        error: <0> has 1 error (unread-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain unread-reference
    "#]]);
}

#[test]
fn neither_an_exception_nor_a_severity_changes_it() {
    let Some(world) = hidden(COMPONENTS[0]) else { return };
    let work = &world.work;
    let app = work.read("app/kustomization.yaml");
    let entry = "allow: [{url: github.com/acme/lib, refs: any, reason: x}]\nrules: {'*': off, remote-reference: off}\n";
    work.decide(entry);
    work.write("app/kustomization.yaml", format!("# kustomize-localize: allow[remote-reference] x\n{app}"));
    work.run(&["check", "--build"]).fails(1).says(expect![[r#"
        error[unread-reference]: kustomize asks for `git fetch --depth=1 https://github.com/acme/lib v1`, which no reference names
         --> app/kustomization.yaml
         = help: write the reference plainly, and lock it: git kustomize-localize explain unread-reference

        for more: git kustomize-localize explain unread-reference
        checked 1 kustomization with 1 reference in the working tree, 0 builds (kustomize/…, network closed): 1 error
    "#]]);
    let mut transcript = Transcript::default();
    for text in ["rules: {unread-reference: warning}\n", "allow: [{path: app, rules: [unread-reference], reason: x}]\n"]
    {
        work.decide(text);
        transcript.add(work.run(&["check", "--build"]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --build
        error: .kustomize-localize:1:8: rules: `unread-reference` is always an error
        $ git kustomize-localize check --build
        error: .kustomize-localize:1:8: allow: `unread-reference` cannot be allowed
    "#]]);
}

#[test]
fn what_only_the_whole_tree_holds_is_built_too() {
    let Some(world) = hidden(COMPONENTS[0]) else { return };
    let work = &world.work;
    // A blind reader does not see the directory, and it is no root of its own.
    work.decide("exclude: [hidden]\n");
    work.write("hidden/kustomization.yaml", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\nresources: ['https://files.example.com/v1/app.yaml']\n");
    let resources = "resources:\n- https://github.com/acme/lib//other?ref=v1\n";
    work.write("app/kustomization.yaml", format!("{resources}components: [../hidden]\n"));
    work.commit("hidden");
    work.run(&["check"]).success();
    for args in [&["check", "--build"] as &[&str], &["branch"]] {
        let output = work.run(args);
        let said = format!("{}{}", output.fails(1).stdout, output.stderr);
        assert!(said.contains(RULE) && said.contains("`https://files.example.com/v1/app.yaml`"), "{said}");
    }
}

#[test]
fn a_build_that_is_as_it_was_read_asks_for_nothing_more() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources:\n- https://github.com/acme/lib//web?ref=v1\n- https://files.example.com/v1/app.yaml\n",
        ),
        (
            "left/kustomization.yaml",
            "resources:\n- https://files.example.com/v1/left.yaml # kustomize-localize: allow[remote-reference] x\n",
        ),
        (
            "bad/kustomization.yaml",
            "resources: [cm.yaml]\npatches: [{patch: '{a: b}', target: {kind: X}}]\nnamePrefix: 5\n",
        ),
        ("bad/cm.yaml", &config_map("cm")),
    ]);
    work.run(&["check", "--build"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/lib//web?ref=v1` is neither localized nor locked
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        error[remote-reference]: `https://files.example.com/v1/app.yaml` is neither localized nor locked
         --> app/kustomization.yaml:3:3
          |
        3 | - https://files.example.com/v1/app.yaml
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain remote-reference
        checked 3 kustomizations with 4 references in the working tree, and built nothing: 2 errors, 1 allowed
    "#]]);
    work.run(&["lock"]).success();
    work.commit("locked");
    let output = work.run(&["check", "--build", "-v"]);
    output.success().says(expect![[r#"
        warning[not-built]: not built: invalid Kustomization: json: cannot unmarshal number into Go struct field Kustomization.namePrefix of type string
         --> bad/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        allowed[remote-reference]: `https://files.example.com/v1/left.yaml` is neither localized nor locked
         --> left/kustomization.yaml:2:3
          |
        2 | - https://files.example.com/v1/left.yaml # kustomize-localize: allow[remote-reference] x
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = note: allowed by left/kustomization.yaml:2: x

        for more: git kustomize-localize explain not-built
        checked 3 kustomizations with 4 references in the working tree, 1 build (kustomize/…, network closed), 1 not built (an exception covers what they reach): 1 allowed; 1 not built
    "#]]);
    // The policy is that of the base: a change cannot turn it off for itself.
    let gate = ["check", "--build", "--base", "HEAD"];
    work.write("bad/cm.yaml", config_map("other"));
    work.run(&gate).success().says(expect![[r#"
        warning[not-built]: not built: invalid Kustomization: json: cannot unmarshal number into Go struct field Kustomization.namePrefix of type string
         --> bad/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain not-built
        checked 3 kustomizations with 4 references in the working tree, 0 builds (kustomize/…, network closed): 1 allowed; 1 not built
    "#]]);
    work.decide("rules: {not-built: error}\n");
    work.run(&["check", "--build"]).fails(1).says(expect![[r#"
        error[not-built]: not built: invalid Kustomization: json: cannot unmarshal number into Go struct field Kustomization.namePrefix of type string
         --> bad/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain not-built
        checked 3 kustomizations with 4 references in the working tree, 1 build (kustomize/…, network closed), 1 not built (an exception covers what they reach): 1 error, 1 allowed
    "#]]);
    work.run(&["check", "--build", "--base", "HEAD~1"]).success().says(expect![[r#"
        warning[not-built]: not built: invalid Kustomization: json: cannot unmarshal number into Go struct field Kustomization.namePrefix of type string
         --> bad/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain not-built
        new in the configuration: +rules: {not-built: error}
        checked 3 kustomizations with 4 references in the working tree, 0 builds (kustomize/…, network closed): 1 allowed; 1 not built
    "#]]);
    work.decide("");
    // What the lock holds is fetched.
    std::fs::remove_dir_all(world.sandbox.path("cache")).ok();
    work.run(&["check", "--build", "--offline"]).fails(2).says(expect![[r#"
        checked 3 kustomizations with 4 references in the working tree, and built nothing: 1 allowed, 2 could not be checked
        error: app/kustomization.yaml:2:3: resources[0]: commit <0> of https://github.com/acme/lib is not in the cache
        error: app/kustomization.yaml:3:3: resources[1]: https://files.example.com/v1/app.yaml is not in the cache
          hint: run once without `--offline`
    "#]]);
    work.run(&["check", "--build"]).success().says(expect![[r#"
        warning[not-built]: not built: invalid Kustomization: json: cannot unmarshal number into Go struct field Kustomization.namePrefix of type string
         --> bad/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain not-built
        checked 3 kustomizations with 4 references in the working tree, 1 build (kustomize/…, network closed), 1 not built (an exception covers what they reach): 1 allowed; 1 not built
    "#]]);
    work.run(&["check", "--build", "--staged"]).fails(2);
}

/// One build does not show that the next one gives the same: a gate builds twice.
#[test]
fn what_runs_code_is_built_twice() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    world.commit(&[
        ("app/kustomization.yaml", "resources: [cm.yaml]\ntransformers: [fn.yaml]\n"),
        ("app/cm.yaml", &config_map("cm")),
        ("app/fn.yaml", FUNCTION),
    ]);
    work.write_executable("app/fn.sh", "#!/bin/sh\ncat\n");
    work.run(&["check"])
        .success().says(expect![[r#"
            warning[function]: the function `Fn` runs `./fn.sh`, a program of this repository
             --> app/fn.yaml:1:1
              |
            1 | apiVersion: example.com/v1
              | ^^^^^^^^^^^^^^^^^^^^^^^^^^ Fn
              = help: to see what it asks for: git kustomize-localize check --build --build-arg=--enable-alpha-plugins --build-arg=--enable-exec

            for more: git kustomize-localize explain function
            not tracked by git: 1 file that `branch` does not see: app/fn.sh
            hint: git add -- :/app && git commit
            checked 1 kustomization with 3 references in the working tree: 1 warning
        "#]]);
    work.decide("rules: {function: off}\n");
    let run = |args: &[&str]| work.run(&[args, &FLAGS[..]].concat());
    run(&["check", "--build"]).success().says(expect![[r#"
        checked 1 kustomization with 3 references in the working tree, 1 build (kustomize/…, network closed): no problems found
    "#]]);
    work.write("app/fn.sh", "#!/bin/sh\nsed \"s/name: cm/name: cm-$(date +%N)/\"\n");
    work.commit("random");
    let output = run(&["check", "--build"]);
    output.success().says(expect![[r#"
        unknown: app/kustomization.yaml: it builds to something else each time
        checked 1 kustomization with 3 references in the working tree, 1 build (kustomize/…, network closed): no problems found; 1 build unknown
    "#]]);
}

#[test]
fn without_a_kustomize_it_is_a_failure() {
    let project = Project::new();
    project.work.run(&["lock"]).success();
    project.sandbox.set("KUSTOMIZE", "/nowhere/kustomize");
    project.work.run(&["check", "--build"]).fails(2).says(expect![[r#"
        not tracked by git: 1 file that `branch` does not see: kustomize-localize.lock
        hint: git add -- :/kustomize-localize.lock && git commit
        checked 3 kustomizations with 4 references in the working tree, and built nothing: 1 could not be checked
        error: `/nowhere/kustomize` (KUSTOMIZE) is not an executable file
          hint: set KUSTOMIZE to the executable of kustomize or kubectl
    "#]]);
}

/// Whoever ends a build, it tells nothing about what is built: what was done and what was not is said, and how to go
/// on.
#[test]
fn a_build_that_is_ended_is_no_result() {
    let Some(project) = super::project() else { return };
    let (work, sandbox) = (&project.work, &project.sandbox);
    work.run(&["lock"]).success();
    project.second_version();
    work.commit("locked");
    let update = ["update", "https://example.com/acme/remote", "--to", "v2", "--diff"];
    let gates =
        [&["check", "--build"] as &[&str], &["branch"], &["vendor"], &["example/base", "../out", "--no-commit"]];
    let program = sandbox.path("bin/kustomize").display().to_string();
    let space = "echo 'Error: write x: no space left on device' >&2; exit 1";
    // Only what never ends is measured by the clock.
    let mut transcript = Transcript::default();
    for (config, body, said, hint) in [
        ("build-timeout: 59s\n", "exec yes", "took more than 256 MiB of output", "split what it builds"),
        ("build-timeout: 1s\n", "sleep 60", "did not finish within 1 s", "raise `build-timeout`"),
        ("", "kill -9 $$", "was killed", "see that the machine has memory left, and run the same command again"),
        ("", space, "fails: write x: no space left on device", "set TMPDIR to a directory that has room, and run"),
    ] {
        work.decide(config);
        stand_in(sandbox, &format!("[ $1 = version ] && exec REAL version\n{body}\n"));
        let (said, hint) = (format!("`{program}` {said}"), format!("hint: {hint}"));
        let before = work.state();
        for args in &gates[..if body == "exec yes" { 1 } else { gates.len() }] {
            let output = work.run(args);
            let is_gate = args[0] == "check";
            let what = if is_gate { "and built nothing: " } else { "error: nothing was written: example/" };
            let shown = format!("{}{}", output.fails(2).stdout, output.stderr);
            assert!([what, &said, &hint].iter().all(|text| shown.contains(text)), "{args:?}: {shown}");
            assert_eq!(shown.contains("  at example/base/kustomization.yaml\n"), is_gate, "{args:?}: {shown}");
            before.assert_same(&work.state());
        }
        transcript.add(work.run(&["build", "example/base"]).fails(2));
        if body.starts_with("kill") {
            transcript.add(work.run(&update).fails(2));
            before.assert_same(&work.state());
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize build example/base
        error: cannot build `example/base`: `/home/me/bin/kustomize` took more than 256 MiB of output
          hint: split what it builds into several roots
        $ git kustomize-localize build example/base
        error: cannot build `example/base`: `/home/me/bin/kustomize` did not finish within 1 s
          hint: raise `build-timeout` in `.kustomize-localize`, and run the same command again
        $ git kustomize-localize build example/base
        error: cannot build `example/base`: `/home/me/bin/kustomize` was killed
          hint: see that the machine has memory left, and run the same command again
        $ git kustomize-localize update https://example.com/acme/remote --to v2 --diff
        error: nothing was written: example/overlay: `/home/me/bin/kustomize` was killed
          hint: see that the machine has memory left, and run the same command again
        $ git kustomize-localize build example/base
        error: cannot build `example/base`: `/home/me/bin/kustomize` fails: write x: no space left on device
          hint: set TMPDIR to a directory that has room, and run the same command again
    "#]]);
}

/// What lies in a temporary directory is named as if it lay in the repository, or not at all.
#[test]
fn why_a_build_fails_has_no_name_that_is_another_one_each_time() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let path = std::env::var_os("PATH").unwrap();
    let without = std::env::split_paths(&path).filter(|directory| !directory.join("helm").exists());
    world.sandbox.set("PATH", std::env::join_paths(without).unwrap());
    world.commit(&[
        ("app/kustomization.yaml", "helmCharts: [{name: c, releaseName: c}]\n"),
        ("app/charts/c/Chart.yaml", "apiVersion: v2\nname: c\nversion: 1.0.0\n"),
        ("app/charts/c/values.yaml", ""),
        ("fn/kustomization.yaml", "resources: [cm.yaml]\ntransformers: [fn.yaml]\n"),
        ("fn/cm.yaml", &config_map("cm")),
        ("fn/fn.yaml", FUNCTION),
    ]);
    let script = "#!/bin/sh\necho \"no $TMPDIR/a-1, $TMPDIR/b-1/x, $HOME/y, $PWD/z\" >&2\nexit 1\n";
    world.work.write_executable("fn/fn.sh", script);
    world.work.decide("helm: true\nrules: {function: off}\n");
    let build = |root: &str| {
        let args = [&["build", root], &FLAGS[..], &["--build-arg=--enable-helm"]].concat();
        world.work.run(&args).fails(2).stderr.clone()
    };
    expect![[r#"
        error: cannot build `app`: fatal: `helm template c app/charts/c -f c-kustomize-values.yaml`: no `helm` was found on PATH
        error: cannot build `fn`: no tmp/…, x, home/y, fn/z Error: couldn't execute function: exit status 1
    "#]].assert_eq(&(build("app") + &build("fn")));
}

/// What was compared, listed or written before is the result all the same.
#[test]
fn where_a_build_was_ended_the_rest_is_told() {
    const OBJECT: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: web}\n\
                          spec: {path: ./web, sourceRef: {kind: GitRepository, name: fleet}}\n---\n\
                          apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet}\n\
                          spec: {url: 'https://github.com/acme/fleet'}\n";
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    let apps = |value: &str| {
        format!(
            "resources: [apps.yaml]\npatches: [{{target: {{kind: Kustomization}}, patch: '[{{op: add, path: /spec/{value}, value: x}}]'}}]\n"
        )
    };
    work.decide("repository: [{url: 'https://github.com/acme/fleet'}]\n");
    let map = &*config_map("cm");
    let files = |value: &str, prefix: &str| {
        world.commit(&[
            ("apps/apps.yaml", OBJECT),
            ("apps/kustomization.yaml", &*apps(value)),
            ("web/kustomization.yaml", &format!("resources: [cm.yaml]\nnamePrefix: {prefix}\n")),
            ("web/cm.yaml", map),
            ("db/kustomization.yaml", &format!("resources: [cm.yaml]\nnamePrefix: {prefix}\n")),
            ("db/cm.yaml", map),
        ]);
    };
    files("a", "a-");
    files("b", "b-");
    stand_in(&world.sandbox, "case \"$*\" in */apps) kill -9 $$;; esac\nexec REAL \"$@\"\n");
    for (args, says) in [
        (
            &["diff", "HEAD~", "--stat"] as &[&str],
            expect![[r#"
                Flux Kustomization web (apps/apps.yaml:1): web/kustomization.yaml
                db: db/kustomization.yaml
                  removed v1 ConfigMap a-cm
                  added   v1 ConfigMap b-cm
                apps: apps/kustomization.yaml
                  not built: `/home/me/bin/kustomize` was killed
                Flux Kustomization web (apps/apps.yaml:1): compared as written: apps/kustomization.yaml may change it
                  not built: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
                4 objects (2 added, 2 removed) in 2 of 3 affected builds since <0>; unknown: 1 target, 1 root
                error: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
                error: apps: `/home/me/bin/kustomize` was killed
                  hint: see that the machine has memory left, and run the same command again
            "#]],
        ),
        (
            &["affected", "HEAD~"],
            expect![[r#"
            apps: apps/kustomization.yaml
            db: db/kustomization.yaml
            web: web/kustomization.yaml
            Flux Kustomization web (apps/apps.yaml:1): web/kustomization.yaml
            Flux Kustomization web (apps/apps.yaml:1): compared as written: apps/kustomization.yaml may change it
              not built: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
            3 of 3 kustomizations and 1 of 1 target since <0>
            error: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
              hint: see that the machine has memory left, and run the same command again
        "#]],
        ),
        (
            &["check", "--build"],
            expect![[r#"
            warning[unknown-target]: cannot tell what Flux Kustomization web (apps/apps.yaml:1) deploys: apps/kustomization.yaml may change it
             --> apps/apps.yaml:4:14
              |
            4 | spec: {path: ./web, sourceRef: {kind: GitRepository, name: fleet}}
              |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
              = help: write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON

            for more: git kustomize-localize explain unknown-target
            checked 3 kustomizations with 3 references in the working tree, 2 builds (kustomize/…, network closed): 1 could not be checked; 1 target unknown
            error: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
              hint: see that the machine has memory left, and run the same command again
        "#]],
        ),
        (
            &["targets"],
            expect![[r#"
            apps/apps.yaml:1: Flux Kustomization web
              web: a kustomization
              may be changed by apps/kustomization.yaml
                not built: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed

            1 target: 1 here, 0 external, 0 templated; 1 unknown
            error: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
              hint: see that the machine has memory left, and run the same command again
        "#]],
        ),
        (
            &["status"],
            expect![[r#"
            3 kustomizations, 0 remote references
            check: 0 errors, 1 warning
            1 target: 0 localized, 0 remote, 1 unknown
              unknown    apps/apps.yaml:1: Flux Kustomization web: apps/kustomization.yaml may change it
            branch localized/main: missing
            nothing to do
            error: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
              hint: see that the machine has memory left, and run the same command again
        "#]],
        ),
        (
            &["build", "--output", "../built"],
            expect![[r#"
            ../built has 1 build: 1 written, 0 removed
            unknown: Flux Kustomization web (apps/apps.yaml:1): apps/kustomization.yaml may change it
            not built: roots/apps.yaml: cannot build `apps`: `/home/me/bin/kustomize` was killed
            error: apps/kustomization.yaml: `/home/me/bin/kustomize` was killed
            error: cannot build `apps`: `/home/me/bin/kustomize` was killed
              hint: see that the machine has memory left, and run the same command again
        "#]],
        ),
    ] {
        work.run(args).fails(2).says(says);
    }
    work.run(&["diff", "HEAD~", "--format", "json"]).fails(2);
    work.run(&["sbom", "--images", "--quiet"]).fails(2).stderr_has("was killed\n  hint: see that the machine");
}

#[test]
fn what_was_built_before_the_time_is_spent_is_said() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    work.decide("build-timeout: 1s\n");
    for number in 10..40 {
        work.write(&format!("r{number}/kustomization.yaml"), "resources: [cm.yaml]\n");
        work.write(&format!("r{number}/cm.yaml"), config_map("cm"));
    }
    work.commit("many");
    // A budget of time is spent by the first.
    stand_in(&world.sandbox, "case \"$*\" in */r10) ;; */r*) sleep 60;; esac\nexec REAL \"$@\"\n");
    let output = work.run(&["check", "--build"]);
    output.fails(2).stdout_has(", 1 build (kustomize/").stdout_has(": 29 could not be checked\n");
    output.stderr_has("/bin/kustomize` did not finish within 1 s\n  at r11/kustomization.yaml\n");
    output.stderr_has("error: no time is left: the builds before took ");
    output.stderr_has(
        "hint: name a PATH to build only a part of it, or raise `build-timeout` in `.kustomize-localize`\n",
    );
}

/// SIGKILL lets nobody clean up: the system ends what builds.
#[test]
#[cfg(target_os = "linux")]
fn a_build_ends_with_the_program() {
    let Some(project) = super::project() else { return };
    project.work.run(&["lock"]).success();
    project.work.commit("locked");
    let pid = project.sandbox.path("pid");
    let waits = format!("echo $$ >{0}.new && mv {0}.new {0}\nexec sleep 60", pid.display());
    stand_in(&project.sandbox, &format!("[ $1 = version ] && exec REAL version\n{waits}\n"));
    for args in [&["check", "--build"] as &[&str], &["branch"], &["build", "example/base"]] {
        let run = project.work.start(args);
        wait_until("it builds", || pid.exists());
        run.kill();
        run.wait().fails(-9);
        let command = format!("/proc/{}/cmdline", std::fs::read_to_string(&pid).unwrap().trim());
        wait_until("the build is dead", || std::fs::read(&command).unwrap_or_default().is_empty());
        std::fs::remove_file(&pid).unwrap();
    }
}

/// kustomize quotes what it cannot read.
#[test]
fn a_build_that_fails_is_told_without_values_of_secrets() {
    const VALUE: &str = "hunter2Xq9";
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    let generator = |source: &str| format!("secretGenerator: [{{name: s, {source}}}]\n");
    world.commit(&[("a/kustomization.yaml", &generator("literals: [password=right]"))]);
    let key = format!("KEY=-----BEGIN PRIVATE KEY-----\nMIIE+/{VALUE}AgEAAo==\n-----END PRIVATE KEY-----\n");
    let secret =
        format!("apiVersion: v1\nkind: Secret\nmetadata: {{name: s}}\nstringData:\n  a: {VALUE}\n {VALUE}: [\n");
    let cases = [
        (generator(&format!("literals: [{VALUE}]")), ""),
        (generator("envs: [k.env]"), &*key),
        (generator("envs: [k.env]"), &format!("={VALUE}\n")),
        ("resources: [k.env]\n".to_owned(), &secret),
    ];
    for (kustomization, file) in cases {
        world.commit(&[("a/kustomization.yaml", &kustomization), ("a/k.env", file)]);
        for format in ["human", "github", "gitlab", "json", "sarif"] {
            let checked = work.run(&["check", "--build", "--format", format]);
            assert!(!format!("{}{}", checked.stdout, checked.stderr).contains(VALUE), "{checked:?}");
            let is_built = kustomization.contains("envs");
            assert!(is_built || checked.stdout.contains("a/kustomization.yaml"), "{checked:?}");
        }
        for args in [&["branch"] as &[&str], &["vendor"], &["diff", "HEAD~1"], &["targets"], &["status"]] {
            let output = work.run(args);
            assert!(!format!("{}{}", output.stdout, output.stderr).contains(VALUE), "{output:?}");
        }
        work.git(&["reset", "-q", "--hard"]);
    }
}

#[test]
fn what_would_be_loaded_too_often_is_never_built() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let started = world.sandbox.path("started");
    stand_in(&world.sandbox, &format!("[ $1 = version ] || echo \"$*\" >>{}\nexec REAL \"$@\"", started.display()));
    let work = &world.work;
    const LEVELS: usize = 20;
    for level in 0..LEVELS {
        let next = level + 1;
        work.write(&format!("l{level}/kustomization.yaml"), format!("resources: [../l{next}, ../m{next}]\n"));
        work.write(&format!("m{level}/kustomization.yaml"), format!("resources: [../l{next}, ../m{next}]\n"));
    }
    for last in ["l", "m"] {
        work.write(&format!("{last}{LEVELS}/kustomization.yaml"), "resources: [cm.yaml]\n");
        work.write(&format!("{last}{LEVELS}/cm.yaml"), config_map(last));
    }
    // What a patch may touch is read from a build.
    work.write("l20/kustomization.yaml", "resources: [cm.yaml, flux.yaml]\n");
    work.write("l20/flux.yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: x}\nspec: {path: ./l20, sourceRef: {kind: GitRepository, name: fleet}}\n");
    work.write("l0/kustomization.yaml", "resources: [../l1, ../m1]\npatches: [{target: {kind: Kustomization}, patch: '[{op: add, path: /spec/prune, value: true}]'}]\n");
    work.commit("doubling");
    work.run(&["check"]).fails(1).says(expect![[r#"
        warning[unknown-target]: cannot tell what Flux Kustomization a (l20/flux.yaml:1) deploys: l0/kustomization.yaml may change it
         --> l20/flux.yaml:4:14
          |
        4 | spec: {path: ./l20, sourceRef: {kind: GitRepository, name: fleet}}
          |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: build it: git kustomize-localize check --build

        error[invalid-kustomization]: `l4/kustomization.yaml` has more than 100000 kustomizations to load in a build
         --> l4/kustomization.yaml:1:1
          |
        1 | resources: [../l5, ../m5]
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: reference fewer of them twice

        error[invalid-kustomization]: `m4/kustomization.yaml` has more than 100000 kustomizations to load in a build
         --> m4/kustomization.yaml:1:1
          |
        1 | resources: [../l5, ../m5]
          | ^^^^^^^^^^^^^^^^^^^^^^^^^

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain invalid-kustomization unknown-target
        checked 42 kustomizations with 83 references in the working tree: 2 errors; 1 target unknown
    "#]]);
    work.run(&["build", "l0"]).fails(2).says(expect![[r#"
        error: cannot build `l0`: `l0/kustomization.yaml` has more than 100000 kustomizations to load in a build
          hint: reference fewer of them twice
    "#]]);
    work.run(&["branch"]).fails(1).says(expect![[r#"
        warning[unknown-target]: cannot tell what Flux Kustomization a (l20/flux.yaml:1) deploys: l0/kustomization.yaml may change it
         --> l20/flux.yaml:4:14
          |
        4 | spec: {path: ./l20, sourceRef: {kind: GitRepository, name: fleet}}
          |              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON

        error[invalid-kustomization]: `l4/kustomization.yaml` has more than 100000 kustomizations to load in a build
         --> l4/kustomization.yaml:1:1
          |
        1 | resources: [../l5, ../m5]
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: reference fewer of them twice

        error[invalid-kustomization]: `m4/kustomization.yaml` has more than 100000 kustomizations to load in a build
         --> m4/kustomization.yaml:1:1
          |
        1 | resources: [../l5, ../m5]
          | ^^^^^^^^^^^^^^^^^^^^^^^^^

        note: repeated help is omitted: -v shows it
        error: <0> has 2 errors (invalid-kustomization 2): nothing was committed
          hint: for more: git kustomize-localize explain invalid-kustomization
    "#]]);
    work.write("l20/cm.yaml", config_map("other"));
    work.run(&["affected", "HEAD"]).success();
    work.run(&["targets"]).success();
    work.run(&["status"]).success();
    work.run(&["diff", "HEAD"]).success().says(expect![[r#"
        Flux Kustomization a (l20/flux.yaml:1): l20/cm.yaml
          not built: no GitRepository `fleet` is defined in this repository, and `l20` is in this one
        l0: l20/cm.yaml
          not built: `l0/kustomization.yaml` has more than 100000 kustomizations to load in a build
        m0: l20/cm.yaml
          not built: `m0/kustomization.yaml` has more than 100000 kustomizations to load in a build
        Flux Kustomization a (l20/flux.yaml:1): compared as written: l0/kustomization.yaml may change it
          not built: l0/kustomization.yaml: it reaches l4: invalid
        hint: reference fewer of them twice
        3 affected builds could not be compared since <0>; unknown: 2 targets, 2 roots
    "#]]);
    assert!(!started.exists(), "{:?}", std::fs::read_to_string(&started));
}

/// What a build would ask for after it failed, or what it is not run for, is asked by the roots that it names.
#[test]
fn a_root_that_does_not_build_hides_nothing() {
    let patched = "resources: [cm.yaml]\npatches: [{path: 'https://files.example.com/hidden.yaml'}]\n";
    let twice = "resources: [cm.yaml, same.yaml, ../hidden]\nnamePrefix: x-\n";
    let left = "resources: [../hidden, 'https://gone.example.com/x.yaml']\n";
    let missing = "resources: [../hidden, gone.yaml]\n";
    let component = "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n";
    let outside = format!("{patched}configMapGenerator: [{{name: x, files: [../over/cm.yaml]}}]\n");
    let over = |text: &str| text.to_owned();
    for (hidden, over, what) in [
        (over(patched), over(twice), "fails"),
        (over(patched), over(left), "an exception"),
        (over(patched), over(missing), "a missing file"),
        (format!("{component}{patched}"), over("resources: [cm.yaml]\n"), "a component at the top"),
        (outside, over("resources: [cm.yaml]\n"), "any file"),
    ] {
        let world = World::new();
        let Some(_) = world.sandbox.builds() else { return };
        let work = &world.work;
        work.decide(
            "allow:\n- {url: gone.example.com/x.yaml, reason: gone}\n- {path: over/gone.yaml, reason: made elsewhere}\nrules: {stale-allow: off, out-of-scope: off}\n",
        );
        world.commit(&[
            ("hidden/kustomization.yaml", &hidden),
            ("hidden/cm.yaml", &config_map("hidden")),
            ("over/kustomization.yaml", &over),
            ("over/cm.yaml", &config_map("over")),
            ("over/same.yaml", &config_map("over")),
        ]);
        world.sandbox.set("KUSTOMIZE_LOCALIZE_BLIND_TO", "patches");
        work.run(&["check"]).success();
        let gates = [&["check", "--build"] as &[&str], &["check", "--build", "hidden"], &["branch"]];
        for args in &gates[..if what == "fails" { 3 } else { 1 }] {
            let output = work.run(args);
            let said = format!("{}{}", output.stdout, output.stderr);
            assert_eq!(output.status, 1, "{what}, {args:?}: {said}");
            assert!(said.contains(RULE) && said.contains("`https://files.example.com/hidden.yaml`"), "{what}: {said}");
        }
    }
}

/// What one root reads does not happen to be there for another one, which is not known to read it.
#[test]
fn a_file_that_only_another_root_is_known_to_read_is_found() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    work.decide("load-restrictor: none\nrules: {out-of-scope: off}\n");
    // Another root fails whatever is beside it, and is remembered.
    work.write("a/kustomization.yaml", "secretGenerator: [{name: s, literals: [password]}]\n");
    let (map, patch) = (config_map("map"), "- {op: add, path: /metadata/labels, value: {a: b}}\n");
    let merge = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm, labels: {a: b}}\n";
    let labels = "apiVersion: builtin\nkind: LabelTransformer\nmetadata: {name: labels}\nlabels: {a: b}\nfieldSpecs: [{path: metadata/labels, create: true}]\n";
    let replacement = "source: {kind: ConfigMap, name: cm, fieldPath: metadata.name}\ntargets: [{select: {kind: ConfigMap}, fieldPaths: [metadata.name]}]\n";
    let target = "target: {version: v1, kind: ConfigMap, name: cm}";
    let fields: &[(&str, &str, &str)] = &[
        ("resources", "resources: [../shared/x]\n", &map),
        ("resources", "resources: [../shared]\n", &map),
        ("components", "components: [../shared]\n", &map),
        ("patches", "patches: [{path: ../shared/x}]\n", merge),
        ("patchesStrategicMerge", "patchesStrategicMerge: [../shared/x]\n", merge),
        ("patchesJson6902", &format!("patchesJson6902: [{{path: ../shared/x, {target}}}]\n"), patch),
        ("configMapGenerator", "configMapGenerator: [{name: g, files: [../shared/x]}]\n", "x"),
        ("configMapGenerator", "configMapGenerator: [{name: g, envs: [../shared/x]}]\n", "a=b"),
        ("secretGenerator", "secretGenerator: [{name: g, env: ../shared/x}]\n", "a=b"),
        ("replacements", "replacements: [{path: ../shared/x}]\n", replacement),
        ("transformers", "transformers: [../shared/x]\n", labels),
        ("configurations", "configurations: [../shared/x]\n", "namePrefix: []\n"),
        ("crds", "crds: [../shared/x]\n", "{}"),
    ];
    for (field, text, content) in fields {
        let is_component = *field == "components";
        let kind = if is_component { "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n" } else { "" };
        let known = if *field == "configMapGenerator" {
            "crds: [../shared/x]\n"
        } else {
            "configMapGenerator: [{name: o, files: [../shared/x, ../shared/kustomization.yaml]}]\n"
        };
        let resources = if *field == "resources" { "" } else { "resources: [cm.yaml]\n" };
        work.write("shared/x", content);
        work.write("shared/kustomization.yaml", format!("{kind}commonAnnotations: {{a: b}}\n"));
        work.write("app/kustomization.yaml", format!("{resources}{text}"));
        work.write("app/cm.yaml", config_map("cm"));
        work.write("other/kustomization.yaml", known);
        work.commit("next");
        world.sandbox.set("KUSTOMIZE_LOCALIZE_BLIND_TO", field);
        work.run(&["check"]).success();
        let output = work.run(&["check", "--build"]);
        let is_found = output.stdout.contains(RULE) && output.stdout.contains("a file that no reference names");
        assert!(output.status == 1 && is_found, "{text}{output:?}");
    }
    let first = work.run(&["check", "--build"]);
    assert!(first.stdout.contains(RULE) && first.stdout.contains("--> a/kustomization.yaml"), "{first:?}");
    assert_eq!(work.run(&["check", "--build"]).stdout, first.stdout, "the first root is remembered now");
}

#[test]
fn a_tip_that_was_not_built_is_built() {
    let Some(world) = hidden(COMPONENTS[0]) else { return };
    let work = &world.work;
    work.run(&["branch", "--no-verify"]).success();
    work.run(&["branch"]).fails(1).says(expect![[r#"
        error[unread-reference]: kustomize asks for `git fetch --depth=1 https://github.com/acme/lib v1`, which no reference names
         --> app/kustomization.yaml
         = help: write the reference plainly, and lock it: git kustomize-localize explain unread-reference

        error: <0> has 1 error (unread-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain unread-reference
    "#]]);
}

#[test]
fn what_is_deployed_is_localized_though_the_configuration_leaves_it_out() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    let work = &world.work;
    work.decide("include: [clusters]\nrepository: [{url: 'https://github.com/acme/fleet'}]\n");
    let object = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: x, namespace: flux-system}\nspec: {path: ./apps/x, sourceRef: {kind: GitRepository, name: flux-system}}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: https://github.com/acme/fleet, ref: {branch: main}}\n";
    world.commit(&[
        ("clusters/kustomization.yaml", "resources: [ks.yaml]\n"),
        ("clusters/ks.yaml", object),
        ("apps/x/kustomization.yaml", "resources: ['https://github.com/acme/lib//other?ref=v1']\n"),
    ]);
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/lib//other?ref=v1` is neither localized nor locked
         --> apps/x/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib//other?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = note: deployed by Flux Kustomization x (clusters/ks.yaml:1)
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/apps/x

        for more: git kustomize-localize explain remote-reference
        checked 2 kustomizations with 2 references in the working tree: 1 error
    "#]]);
    work.run(&["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 1 remote reference
          added https://github.com/acme/lib?ref=v1 <0>
          to stage it: git add -f -- :/kustomize-localize.lock
        kustomize, Flux and Argo CD do not read the lock: deploy the result of `git kustomize-localize branch`
    "#]]);
    work.commit("locked");
    work.run(&["check", "--build"]).success();
    work.run(&["branch"]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 5 files written, 1 reference rewritten, 0 removed
          added https://github.com/acme/lib?ref=v1 <1>
          verified: 1 build identical, 1 build not changed (kustomize/…, network closed)
          to look at it: git show --stat <0>
        deployed from localized/main: 0 of 1 target; flux-system/x (clusters/ks.yaml:1) reads `main`
    "#]]);
    assert!(work.show("localized/main", "apps/x/kustomization.yaml").contains("localized-files/"));
}
