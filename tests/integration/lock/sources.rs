//! `sources`: what may be locked at all.

use crate::support::World;

const LOCK: &str = "kustomize-localize.lock";
const ROOT: &str = "resources:\n- https://github.com/acme/lib//web?ref=v1\n";

#[test]
fn what_is_not_listed_is_not_locked_by_any_command() {
    let world = World::acme();
    let work = &world.work;
    world.commit(&[("app/kustomization.yaml", ROOT)]);
    work.decide("sources: [{url: github.com/other}]\n");
    let said = "`https://github.com/acme/lib//web?ref=v1` is not in `sources`, so it may not be locked";
    let hint = "add it to `sources` in .kustomize-localize: - {url: github.com/acme/lib}";
    work.run(&["lock"]).fails(1).stderr_has(said).stderr_has(hint).lacks("leave it remote");
    assert!(!work.path().join(LOCK).exists());
    work.run_unchanged(&["check"])
        .fails(1)
        .stdout_has("error[unlisted-source]: ")
        .stdout_has(hint)
        .lacks("remote-reference");
    work.run_unchanged(&["branch"]).fails(1).stderr_has("error[unlisted-source]: ");
    work.run_unchanged(&["vendor"]).fails(1).stderr_has("error[unlisted-source]: ");
    work.run_unchanged(&["app"]).fails(2).stderr_has(said);
    // What is not listed gets no exception by itself.
    work.run_unchanged(&["init", "--dry-run"]).fails(1).stdout_has(said).lacks("allow: ");
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
    work.run(&["lock"])
        .fails(1)
        .stderr_has("`https://github.com/evil/base?ref=v1` is not in `sources`")
        .stderr_has("reached from thin/kustomization.yaml:1:13");
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
    work.run_unchanged(&["check", "--base", "HEAD~1"]).fails(1).stdout_has("error[unlisted-source]");
}

#[test]
fn a_chart_that_is_not_listed_is_not_pulled() {
    let world = World::acme();
    let work = &world.work;
    world.sandbox.script("helm", "[ \"$1\" != pull ] || { echo pulled >&2; exit 1; }; echo v3.14.0");
    world.commit(&[(
        "app/kustomization.yaml",
        "helmCharts: [{name: web, repo: 'https://charts.example/stable', version: 1.2.3}]\n",
    )]);
    work.decide("helm: true\nsources: [{url: github.com}]\n");
    let said = "https://charts.example/stable#web@1.2.3` is not in `sources`";
    work.run(&["lock"]).fails(1).stderr_has(said).lacks("pulled");
    work.run_unchanged(&["check"]).fails(1).stdout_has("error[unlisted-source]: ");
    work.decide("helm: true\nsources: [{url: charts.example}]\n");
    work.run(&["lock"]).fails(1).stderr_has("pulled");
}
