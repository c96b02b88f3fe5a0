//! `sources`: what may be locked at all, and what is asked of it.

use crate::support::{Repo, World};

const LOCK: &str = "kustomize-localize.lock";
const ROOT: &str = "resources:\n- https://github.com/acme/lib//web?ref=v1\n";

#[test]
fn what_is_not_listed_is_not_locked_by_any_command() {
    let world = World::acme();
    let work = &world.work;
    world.commit(&[("app/kustomization.yaml", ROOT)]);
    work.decide("sources: [{url: github.com/other}]\n");
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:2:3: resources[0]: `https://github.com/acme/lib//web?ref=v1` is not in `sources`, so it may not be locked
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}
        error: 1 reference could not be locked
    "#]]);
    assert!(!work.path().join(LOCK).exists());
    work.run_unchanged(&["check"]).fails(1).says(expect![[r#"
        error[unlisted-source]: `https://github.com/acme/lib//web?ref=v1` is not in `sources`, so it may not be locked
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}

        for more: git kustomize-localize explain unlisted-source
        checked 1 kustomization with 1 reference in the working tree: 1 error
    "#]]);
    work.run_unchanged(&["branch"]).fails(1).says(expect![[r#"
        error[unlisted-source]: `https://github.com/acme/lib//web?ref=v1` is not in `sources`, so it may not be locked
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}

        error: <0> has 1 error (unlisted-source 1): nothing was committed
          hint: for more: git kustomize-localize explain unlisted-source
    "#]]);
    work.run_unchanged(&["vendor"]).fails(1).says(expect![[r#"
        error[unlisted-source]: `https://github.com/acme/lib//web?ref=v1` is not in `sources`, so it may not be locked
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}

        error: nothing was written: 1 error (unlisted-source 1)
          hint: for more: git kustomize-localize explain unlisted-source
    "#]]);
    work.run_unchanged(&["app"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: `https://github.com/acme/lib//web?ref=v1` is not in `sources`, so it may not be locked
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}
    "#]]);
    // What is not listed gets no exception by itself.
    work.run_unchanged(&["init", "--dry-run"]).fails(1).says(expect![[r#"
        nothing to write: 0 locked, 0 allowed
        1 reference could not be locked
          app/kustomization.yaml:2: `https://github.com/acme/lib//web?ref=v1` is not in `sources`, so it may not be locked
          help: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}
        after that: git kustomize-localize init
    "#]]);
}

#[test]
fn an_upstream_of_an_upstream_counts() {
    let world = World::acme();
    let work = &world.work;
    world.upstream_of("evil/base", &[("kustomization.yaml", "resources: []\n")]);
    world.upstream_of("acme/thin", &[("kustomization.yaml", "resources: ['https://github.com/evil/base?ref=v1']\n")]);
    world.commit(&[
        ("app/kustomization.yaml", ROOT),
        ("thin/kustomization.yaml", "resources: ['https://github.com/acme/thin?ref=v1']\n"),
    ]);
    work.decide("sources: [{url: github.com/acme}]\n");
    work.run(&["lock"]).fails(1).says(expect![[r#"
        wrote kustomize-localize.lock: 2 remote references
          added https://github.com/acme/deep?ref=v1 <0>
          added https://github.com/acme/lib?ref=v1 <1>
          to stage it: git add -f -- :/kustomize-localize.lock
        kustomize, Flux and Argo CD do not read the lock: deploy the result of `git kustomize-localize branch`
        error: https://github.com/acme/thin?ref=v1: kustomization.yaml:1:13: resources[0]: `https://github.com/evil/base?ref=v1` is not in `sources`, so it may not be locked
          reached from thin/kustomization.yaml:1:13
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/evil/base}
        error: 1 reference could not be locked
    "#]]);
    // The rest is locked.
    let lock = work.read(LOCK);
    assert!(lock.contains("acme/lib") && !lock.contains("evil") && !lock.contains("thin"), "{lock}");
    // What a lock holds already is found by `check`, at the reference that leads there, and stays.
    work.decide("");
    work.lock();
    work.run_unchanged(&["check"]).success();
    let before = work.read(LOCK);
    work.decide("sources: [{url: github.com/acme}]\n");
    for command in ["check", "branch"] {
        let output = work.run_unchanged(&[command]);
        let said = format!("{}{}", output.fails(1).stdout, output.stderr);
        assert!(
            said.contains("error[unlisted-source]: `https://github.com/acme/thin?ref=v1` is locked, but"),
            "{said}"
        );
    }
    work.run(&["lock"]);
    assert_eq!(work.read(LOCK), before);
    // The policy is that of the base.
    work.decide("sources: [{url: '*'}]\n");
    work.run_unchanged(&["check"]).success();
    work.write("own/kustomization.yaml", "resources: ['https://github.com/evil/base?ref=v1']\n");
    work.run_unchanged(&["check", "--base", "HEAD~1"]).fails(1).says(expect![[r#"
        error[unlisted-source]: `https://github.com/evil/base?ref=v1` is not in `sources`, so it may not be locked
         --> own/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/evil/base?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/evil/base}

        for more: git kustomize-localize explain unlisted-source
        new in the configuration: -sources: [{url: github.com/acme}]
        new in the configuration: +sources: [{url: '*'}]
        not tracked by git: 1 file that `branch` does not see: own/kustomization.yaml
        hint: git add -- :/own && git commit
        checked 3 kustomizations with 3 references in the working tree: 1 error, 1 finding already in <0>, the merge base with HEAD~1
    "#]]);
}

#[test]
fn a_chart_that_is_not_listed_is_not_pulled() {
    let world = World::acme();
    let work = &world.work;
    world.sandbox.script("helm", "[ \"$1\" != pull ] || { echo pulled >&2; exit 1; }; echo v3.14.0");
    world.commit(&[(
        "app/kustomization.yaml",
        "helmCharts: [{name: web, repo: 'oci://charts.example/stable', version: 1.2.3}]\n",
    )]);
    work.decide("helm: true\nsources: [{url: github.com}]\n");
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:1:32: helmCharts[0]: `oci://charts.example/stable#web@1.2.3` is not in `sources`, so it may not be locked
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: 'oci://charts.example/stable'}
        error: 1 reference could not be locked
    "#]]);
    work.run_unchanged(&["check"]).fails(1).says(expect![[r#"
        error[unlisted-source]: `oci://charts.example/stable#web@1.2.3` is not in `sources`, so it may not be locked
         --> app/kustomization.yaml:1:32
          |
        1 | helmCharts: [{name: web, repo: 'oci://charts.example/stable', version: 1.2.3}]
          |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: if it may be used, add it to `sources` in .kustomize-localize: - {url: 'oci://charts.example/stable'}

        error[remote-chart]: the chart `web` 1.2.3 of oci://charts.example/stable is not in the tree: helm downloads it to `app/charts/web-1.2.3/web`
         --> app/kustomization.yaml:1:32
          |
        1 | helmCharts: [{name: web, repo: 'oci://charts.example/stable', version: 1.2.3}]
          |                                ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

        for more: git kustomize-localize explain unlisted-source remote-chart
        checked 1 kustomization with 1 reference in the working tree: 2 errors
    "#]]);
    work.decide("helm: true\nsources: [{url: charts.example}]\n");
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:1:32: helmCharts[0]: oci://charts.example/stable#web@1.2.3: helm could not pull it: pulled
          hint: to see what helm does: helm pull --version=1.2.3 -- oci://charts.example/stable/web
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {chart: 'oci://charts.example/stable#web@1.2.3', reason: 'TODO'}
        error: 1 reference could not be locked
    "#]]);
}

/// Commits and tags as they were made `days` ago; before 1970 or in the future where that leads.
fn made(world: &World, days: i64) {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    let date = i64::try_from(now).unwrap() - days * 24 * 60 * 60;
    for who in ["AUTHOR", "COMMITTER"] {
        world.sandbox.set(&format!("GIT_{who}_DATE"), format!("@{date} +0000"));
    }
}

/// Returns an upstream whose commit is 30 days old, with an annotated tag that is 2 days old.
fn aged() -> (World, Repo) {
    let world = World::new();
    made(&world, 30);
    let lib = world.upstream("acme/lib");
    lib.commit_files(&[("web/kustomization.yaml", "resources: []\n")]);
    lib.git(&["tag", "v1"]);
    made(&world, 2);
    lib.git(&["tag", "-a", "v2", "-m", "two"]);
    world.work.decide("sources: [{url: '*', min-age: 7d}]\n");
    (world, lib)
}

fn names(world: &World, reference: &str) {
    let text = format!("resources:\n- https://github.com/acme/lib//web?ref={reference}\n");
    world.commit(&[("app/kustomization.yaml", &text)]);
}

#[test]
fn what_is_young_is_not_locked() {
    let (world, lib) = aged();
    let work = &world.work;
    names(&world, "v2");
    let said =
        "app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=v2 is 2 days old (min-age 7 days)";
    for _ in 0..2 {
        work.run(&["lock"]).fails(1).stderr_has(said).stderr_has("hint: it may be locked from 20").lacks("leave it");
        work.run_unchanged(&["vendor"]).fails(2).stderr_has(said);
        work.run_unchanged(&["app"]).fails(2).stderr_has(said);
        assert!(!work.path().join(LOCK).exists());
        // The same commit is old by another name, and in the cache from now on.
        names(&world, "v1");
        work.run(&["lock"]).success();
        work.remove(LOCK);
        names(&world, "v2");
    }
    work.run_unchanged(&["https://github.com/acme/lib//web?ref=v2", "copy"]).fails(2).says(expect![[r#"
        error: https://github.com/acme/lib?ref=v2 is … days old (min-age 7 days)
          hint: it may be locked from … on
          hint: to lock it now, add to `allow` in .kustomize-localize: - {url: 'https://github.com/acme/lib//web?ref=v2', rules: [young-source], reason: 'TODO'}
    "#]]);
    work.decide("sources: [{url: github.com/other}]\n");
    work.run_unchanged(&["https://github.com/acme/lib//web?ref=v2", "copy"]).fails(2).says(expect![[r#"
        error: https://github.com/acme/lib//web?ref=v2 is not in `sources`, so it may not be locked
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}
    "#]]);
    work.decide("sources: [{url: '*', min-age: 7d}]\n");
    // A reason lifts it, in the configuration and beside the reference.
    let hint = work
        .run(&["lock"])
        .stderr
        .lines()
        .find_map(|line| line.split_once(".kustomize-localize: "))
        .unwrap()
        .1
        .to_owned();
    work.decide(&format!("sources: [{{url: '*', min-age: 7d}}]\nallow:\n{}\n", hint.replace("TODO", "a fix")));
    work.run(&["lock"]).success();
    work.run_unchanged(&["check"]).success().lacks("stale");
    work.remove(LOCK);
    work.decide("sources: [{url: '*', min-age: 7d}]\n");
    let text = work.read("app/kustomization.yaml").replace("v2", "v2 # kustomize-localize: allow[young-source] a fix");
    work.write("app/kustomization.yaml", text);
    work.run(&["lock"]).success();
    work.run_unchanged(&["check"]).success().lacks("stale");
    // The first entry decides.
    names(&world, "v2");
    for sources in ["[{url: github.com}, {url: '*', min-age: 7d}]", "[{url: '*', min-age: 47h}]"] {
        work.decide(&format!("sources: {sources}\n"));
        work.remove(LOCK);
        work.run(&["lock"]).success();
    }
    drop(lib);
}

#[test]
fn a_date_that_nobody_can_have_is_no_age() {
    let (world, lib) = aged();
    for (days, said) in [
        (-400, "?ref=odd is dated in the future (min-age 7 days)"),
        (30_000, "?ref=odd has no date, or one before 1970"),
    ] {
        // git itself writes no such date.
        let head = lib.git(&["cat-file", "commit", "HEAD"]);
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let date = i64::try_from(now).unwrap() - days * 24 * 60 * 60;
        let (before, _) = head.split_once("committer ").unwrap();
        let text = format!("{before}committer o <o@example.com> {date} +0000\n\nodd\n");
        lib.write("odd", text);
        let id = lib.git(&["hash-object", "-t", "commit", "-w", "--literally", "odd"]);
        lib.git(&["update-ref", "refs/tags/odd", id.trim()]);
        names(&world, "odd");
        world.work.run(&["lock"]).fails(1).stderr_has(said);
    }
}

#[test]
fn an_update_holds_what_is_young() {
    let (world, lib) = aged();
    let work = &world.work;
    world.file("https://files.example.com/v1/app.yaml", "a: b\n");
    names(&world, "main");
    work.run(&["lock"]).success();
    let locked = work.read(LOCK);
    made(&world, 2);
    lib.write("web/kustomization.yaml", "namePrefix: a-\n");
    let young = lib.commit("young");
    work.run(&["update"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
          held: https://github.com/acme/lib?ref=main is … days old (min-age 7 days); it may be locked from … on
    "#]]);
    assert_eq!(work.read(LOCK), locked);
    // It is never set back, and is no news once it is locked.
    work.decide("");
    work.run(&["update"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 1 remote reference
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> young
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    assert!(work.read(LOCK).contains(&young));
    work.decide("sources: [{url: '*', min-age: 7d}]\n");
    work.run(&["update"]).success().lacks("held");
    assert!(work.read(LOCK).contains(&young));
    // Whatever else reads it checks its age again: anybody can write a lock.
    work.run_unchanged(&["vendor"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=main is … days old (min-age 7 days)
          hint: it may be locked from … on
          hint: to lock it now, add to `allow` in .kustomize-localize: - {url: 'https://github.com/acme/lib//web?ref=main', rules: [young-source], reason: 'TODO'}
    "#]]);
    work.decide("");
    work.run(&["vendor"]).success();
    work.decide("sources: [{url: '*', min-age: 7d}]\n");
    // What is vendored is held as well, and another ref is refused by its name.
    work.commit("vendored");
    lib.write("web/kustomization.yaml", "namePrefix: b-\n");
    lib.commit("younger");
    work.run_unchanged(&["update"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
          held: https://github.com/acme/lib?ref=main is … days old (min-age 7 days); it may be locked from … on
    "#]]);
    work.run_unchanged(&["update", "github.com/acme/lib", "--to", "v2"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:2:3: resources[0]: https://github.com/acme/lib?ref=v2 is … days old (min-age 7 days)
          hint: it may be locked from … on
          hint: to lock it now, add to `allow` in .kustomize-localize: - {url: 'https://github.com/acme/lib//web?ref=v2', rules: [young-source], reason: 'TODO'}
    "#]]);
}

#[test]
fn what_has_no_date_needs_an_entry_without_an_age() {
    let (world, _) = aged();
    let work = &world.work;
    let url = "https://files.example.com/v1/app.yaml";
    world.file(url, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n");
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{url}']\n"))]);
    work.run(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
        error: app/kustomization.yaml:1:13: resources[0]: https://files.example.com/v1/app.yaml has no date, which `sources` requires: it is not a repository
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: files.example.com/v1/app.yaml}, before the entry that it cannot satisfy
        error: 1 reference could not be locked
    "#]]);
    work.decide("sources: [{url: files.example.com}, {url: '*', min-age: 7d}]\n");
    work.run(&["lock"]).success();
    // The lock has no date, either.
    work.decide("sources: [{url: '*', min-age: 7d}]\n");
    work.run_unchanged(&["vendor"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:1:13: resources[0]: https://files.example.com/v1/app.yaml has no date, which `sources` requires: it is not a repository
          hint: if it may be used, add it to `sources` in .kustomize-localize: - {url: files.example.com/v1/app.yaml}, before the entry that it cannot satisfy
    "#]]);
}

#[test]
fn a_pattern_takes_the_newest_release_that_may_be_locked() {
    let (world, lib) = aged();
    let work = &world.work;
    made(&world, 30);
    for tag in ["v1.2.0", "v1.10.0", "v2.0.0-rc.1", "v1.11.0-rc.1", "other/v9.0.0", "2024.01.31", "v1.x"] {
        lib.git(&["tag", "-a", tag, "-m", tag]);
    }
    lib.git(&["tag", "v1.9.0"]);
    made(&world, 2);
    for tag in ["v1.12.0", "v3.0.0"] {
        lib.git(&["tag", "-a", tag, "-m", tag]);
    }
    let root = |reference: &str| format!("resources: ['https://github.com/acme/lib//web?ref={reference}']\n");
    world.commit(&[
        ("app/kustomization.yaml", &root("v1.2.0")),
        ("main/kustomization.yaml", &root("main")),
        ("late/kustomization.yaml", &root("v1.11.0-rc.1")),
    ]);
    work.lock();
    let held =
        |tag: &str| format!("  held: https://github.com/acme/lib?ref={tag} is 2 days old (min-age 7 days); it may be");
    // What others call `outdated`.
    let before = work.state();
    let output = work.run(&["update", "--dry-run", "--to", "*"]);
    // Once, although two refs of it are in use.
    assert_eq!(output.stdout.matches(&held("v3.0.0")).count(), 1, "{output:?}");
    output.success().says(expect![[r#"
            would write kustomize-localize.lock: 3 remote references
              added https://github.com/acme/lib?ref=v1.10.0 <0>
                … days old
              dropped https://github.com/acme/lib?ref=v1.2.0 <0>
              held: https://github.com/acme/lib?ref=v3.0.0 is … days old (min-age 7 days); it may be locked from … on
              held: https://github.com/acme/lib?ref=v2 is … days old (min-age 7 days); it may be locked from … on
              held: https://github.com/acme/lib?ref=v1.12.0 is … days old (min-age 7 days); it may be locked from … on
              file app/kustomization.yaml (60)
              file kustomize-localize.lock (…)
        "#]]);
    before.assert_same(&work.state());
    work.run(&["update", "github.com/acme/lib", "--to", "v1.*"]).success().lacks("v3.0.0");
    assert_eq!(work.read("app/kustomization.yaml"), root("v1.10.0"));
    // A branch is no version, and nothing goes back.
    assert_eq!(work.read("main/kustomization.yaml"), root("main"));
    assert_eq!(work.read("late/kustomization.yaml"), root("v1.11.0-rc.1"));
    work.run_unchanged(&["update", "--to", "v1.2.*"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    work.decide("");
    work.run(&["update", "--to", "*", "github.com/acme/lib", "app"]).success();
    assert_eq!(work.read("app/kustomization.yaml"), root("v3.0.0"));
    assert_eq!(work.read("late/kustomization.yaml"), root("v1.11.0-rc.1"));
    work.run_unchanged(&["update", "github.com/acme/none", "--to", "*"]).fails(2);
    work.run_unchanged(&["update", "--to", "[*"]).fails(2).says(expect![[r#"
        error: `[*` is not a pattern: unclosed character class; missing ']'
    "#]]);
    work.run_unchanged(&["update", "--to", "v1"]).fails(2).says(expect![[r#"
        error: `--to` needs a URL: the repository or chart whose ref or version to change
          hint: name it first, for example: git kustomize-localize update 'https://github.com/acme/lib?ref=main' --to v1
    "#]]);
    // What is vendored moves, too.
    work.run(&["vendor", "late"]).success();
    work.commit("vendored");
    work.run(&["update", "--to", "v1.*"]).success();
    assert!(work.read(LOCK).contains("ref: v1.12.0"), "{}", work.read(LOCK));
}
