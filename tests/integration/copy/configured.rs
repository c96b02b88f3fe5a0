//! What the repository decides holds for every way to localize: a copy or in place, on a branch or on disk.

use crate::support::{Project, Transcript, World, config_map};

#[test]
fn the_load_restrictor_of_the_configuration_holds() {
    let ways = [
        &["app", "copied", "--scope", ".", "--no-verify"][..],
        &["app", "on-disk", "--scope", ".", "--no-verify", "--no-commit"],
        &["branch", "--branch", "placed", "--no-verify"],
    ];
    let outside = [
        ("app/kustomization.yaml", "resources: [../shared/config.yaml]\n"),
        ("shared/config.yaml", &config_map("shared")),
    ];
    let restricted = World::new();
    restricted.commit(&outside);
    let mut transcript = Transcript::default();
    for way in &ways[..2] {
        transcript.add(restricted.work.run(way).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app copied --scope . --no-verify
        $ git kustomize-localize app on-disk --scope . --no-verify --no-commit
        error: app/kustomization.yaml:1:13: resources[0]: `../shared/config.yaml` is outside its kustomization root `app`
          hint: copy it below `app`, or make its directory a root, and reference that
          hint: if this is built with `--load-restrictor LoadRestrictionsNone`, as Flux does: write `load-restrictor: none` into .kustomize-localize
    "#]]);
    let world = World::new();
    let work = &world.work;
    world.commit(&outside);
    work.decide("load-restrictor: none\n");
    for way in &ways {
        work.run(way).success();
    }
}

/// Also for a URL on the command line.
#[test]
fn the_lock_of_the_repository_decides_what_a_remote_target_is() {
    let world = World::new();
    let work = &world.work;
    let url = "https://github.com/acme/base?ref=main";
    let base = world.upstream_of("acme/base", &[("kustomization.yaml", "resources: []\n")]);
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{url}']\n"))]);
    work.run(&["lock"]).success();
    work.commit("lock");
    let locked = base.git(&["rev-parse", "HEAD"]);
    base.write("kustomization.yaml", "namePrefix: new-\n");
    base.commit("second");
    let mut transcript = Transcript::default();
    for more in [&["copied"][..], &["on-disk", "--no-commit"]] {
        let args = [&[url][..], more, &["--no-verify"]].concat();
        transcript.add(work.run(&args).success().stdout_has(&locked[..12]));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize https://github.com/acme/base?ref=main copied --no-verify
        localized https://github.com/acme/base?ref=main into copied on branch localized/main (<0>): 3 files written, 0 references rewritten, 0 removed
          added https://github.com/acme/base?ref=main <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize https://github.com/acme/base?ref=main on-disk --no-commit --no-verify
        localized https://github.com/acme/base?ref=main into on-disk: 3 files written, 0 references rewritten, 0 removed
          added https://github.com/acme/base?ref=main <0>
          not verified: --no-verify
    "#]]);
}

/// What neither the lock of the source nor that of NEW_DIR holds is resolved.
#[test]
fn the_lock_of_the_source_decides_then_that_of_the_copy() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    work.commit("lock");
    project.overlay(&[]).success();
    project.second_version();
    project.upstream.git(&["tag", "--force", "v1"]);
    let tree = work.id("localized/main:localized-overlay");
    project.overlay(&[]).success();
    assert_eq!(work.id("localized/main:localized-overlay"), tree);
    work.git(&["rm", "--quiet", "kustomize-localize.lock"]);
    work.commit("no lock");
    project.overlay(&[]).success();
    assert_eq!(work.id("localized/main:localized-overlay"), tree);
    project.overlay(&["--branch=anew"]).success();
    assert_ne!(work.id("anew:localized-overlay"), tree);
}
