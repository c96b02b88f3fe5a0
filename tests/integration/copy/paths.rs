//! Absolute paths, and files outside of the root that names them.

use crate::copy::references::{contents, every_field};
use crate::support::{Repo, Transcript, World, config_map};

/// Writes the files of [`every_field`] into `directory`, and commits a kustomization `app` that names them at `place`.
fn every_field_at(world: &World, directory: &str, place: &str) {
    for (name, text) in contents() {
        let text = text.replace("PLACE", place);
        world.work.write(&format!("{directory}/{name}"), text);
    }
    world.commit(&[("app/kustomization.yaml", &every_field(place))]);
}

#[test]
fn every_field_with_absolute_paths() {
    let world = World::new();
    let work = &world.work;
    let top = work.path().display().to_string();
    let place = format!("{top}/app/files");
    every_field_at(&world, "app/files", &place);
    world.verified(&["app"]);
    let clone = world.clone_of_branch();
    world.same_build("app", &clone, "localized-app");
    let relative = every_field("files").replace("a=files", &format!("a={place}"));
    assert_eq!(clone.read("localized-app/kustomization.yaml"), relative);
    let absolute = clone.try_git(&["grep", "-F", "-l", &top, "localized-app"]);
    assert_eq!(absolute.stdout, "localized-app/kustomization.yaml\n");

    // The same in place: a literal is not a path.
    work.decide("rules: {out-of-scope: off}\n");
    world.verified(&["vendor"]);
    assert_eq!(work.read("app/kustomization.yaml"), relative);
    work.run(&["check"]).success();
}

#[test]
fn absolute_paths_through_links() {
    let world = World::new();
    let work = &world.work;
    let link = world.sandbox.path("link");
    std::os::unix::fs::symlink(work.path(), &link).unwrap();
    let shown = link.display();
    work.symlink("elsewhere", "app/files");
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!("resources: [{shown}/app/map.yaml]\nconfigMapGenerator:\n- name: g\n  files: [{shown}/x/../elsewhere/data.txt, {shown}/elsewhere/link.txt]\n"),
        ),
        ("app/map.yaml", &config_map("map")),
        ("app/files/data.txt", "data\n"),
    ]);
    work.symlink("app/files/link.txt", "data.txt");
    work.commit("link");
    let expected =
        "resources: [map.yaml]\nconfigMapGenerator:\n- name: g\n  files: [files/data.txt, link.txt=files/data.txt]\n";
    // From the working directory under its own name, and under that of the link.
    world.verified(&["app"]);
    let clone = world.clone_of_branch();
    world.same_build("app", &clone, "localized-app");
    assert_eq!(clone.read("localized-app/kustomization.yaml"), expected);
    let linked = Repo::new(&world.sandbox, link.clone());
    for (number, target) in ["app".to_owned(), format!("{shown}/app")].iter().enumerate() {
        let branch = format!("linked-{number}");
        linked.run(&[target, "--branch", &branch]).success();
        assert_eq!(work.show(&branch, "localized-app/kustomization.yaml"), expected);
        let copy = format!("copy-{number}");
        linked.run(&[target, &copy, "--no-commit"]).success();
        assert_eq!(work.read(&format!("{copy}/kustomization.yaml")), expected);
    }
}

#[test]
fn absolute_paths_are_those_of_the_working_tree() {
    let world = World::new();
    let work = &world.work;
    let other = world.sandbox.path("other");
    let other_text = other.display().to_string();
    world.commit(&[
        ("app/kustomization.yaml", &format!("configMapGenerator:\n- name: g\n  files: [{other_text}/app/data.txt]\n")),
        ("app/data.txt", "data\n"),
    ]);
    work.git(&["branch", "side"]);
    work.git(&["worktree", "add", "-q", &other_text, "side"]);
    // The main working tree is another place, whatever the branch.
    let mut transcript = Transcript::default();
    for args in [&["app"][..], &["app", "--rev", "side"]] {
        transcript.add(&world.refused(args));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize app --no-verify
        $ git kustomize-localize app --rev side --no-verify
        error: app/kustomization.yaml:3:11: configMapGenerator[0].files[0]: `/home/me/other/app/data.txt` is an absolute path, which does not exist in other checkouts
          hint: copy its target into this repository, and write a relative path
    "#]]);
    let linked = Repo::new(&world.sandbox, other);
    linked.run(&["app"]).success();
    let copy = "localized-app/kustomization.yaml";
    let expected = "configMapGenerator:\n- name: g\n  files: [data.txt]\n";
    assert_eq!(linked.show("localized/side", copy), expected);

    // A bare repository has no working tree.
    let bare = world.sandbox.path("bare.git");
    let (from, to) = (work.path().to_str().unwrap(), bare.to_str().unwrap());
    world.sandbox.git(&world.sandbox.path(""), &["clone", "-q", "--bare", from, to]);
    world.sandbox.run(&bare, &["app", "--rev", "main"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:3:11: configMapGenerator[0].files[0]: `/home/me/other/app/data.txt` is an absolute path, which does not exist in other checkouts
          hint: copy its target into this repository, and write a relative path
    "#]]);
}

#[test]
fn every_field_outside_of_its_root() {
    let flag = ["--load-restrictor", "LoadRestrictionsNone"];

    for absolute in [false, true] {
        let world = World::new();
        let place = if absolute {
            format!("{}/shared/files", world.work.path().display())
        } else {
            "../shared/files".to_owned()
        };
        every_field_at(&world, "shared/files", &place);

        world
            .refused(&["app", "--scope", "."])
            .stderr_has("write `load-restrictor: none` into .kustomize-localize")
            .stderr_has("openapi.path: ")
            .stderr_has("replacements[0].path");
        world.work.decide("load-restrictor: none\n");
        world.verified(&["app", "--scope", "."]);
        let clone = world.clone_of_branch();
        world.same_build_with("app", &clone, "localized-app/app", &flag);
        let relative = every_field("../shared/files").replace("a=../shared/files", &format!("a={place}"));
        assert_eq!(clone.read("localized-app/app/kustomization.yaml"), relative);
        for (name, text) in contents() {
            let text = text.replace("PLACE", "../shared/files");
            let copied = clone.read(&format!("localized-app/shared/files/{name}"));
            assert_eq!(copied, text, "{name}");
        }
    }
}

#[test]
fn a_link_may_leave_its_root_without_the_load_restrictor() {
    let world = World::new();
    let work = &world.work;
    world.commit(&[
        ("app/kustomization.yaml", "resources: [map.yaml]\nconfigMapGenerator:\n- name: g\n  files: [data.txt]\n"),
        ("shared/map.yaml", &config_map("map")),
        ("shared/other.txt", "data\n"),
    ]);
    work.symlink("app/map.yaml", "../shared/map.yaml");
    work.symlink("app/data.txt", "../shared/other.txt");
    work.commit("links");
    let scope = ["app", "--scope", "."];
    world.refused(&scope).says(expect![[r#"
        error: app/kustomization.yaml:1:13: resources[0]: `map.yaml` is outside its kustomization root `app`
        error: app/kustomization.yaml:4:11: configMapGenerator[0].files[0]: `data.txt` is outside its kustomization root `app`
          hint: copy it below `app`, or make its directory a root, and reference that
          hint: if this is built with `--load-restrictor LoadRestrictionsNone`, as Flux does: write `load-restrictor: none` into .kustomize-localize
    "#]]);
    work.decide("load-restrictor: none\n");
    world.verified(&scope);
    let clone = world.clone_of_branch();
    let flag = ["--load-restrictor", "LoadRestrictionsNone"];
    world.same_build_with("app", &clone, "localized-app/app", &flag);
    work.run(&["app", "narrow"]).fails(2).says(expect![[r#"
        error: app/kustomization.yaml:1:13: resources[0]: `map.yaml` is outside the scope `app`
        error: app/kustomization.yaml:4:11: configMapGenerator[0].files[0]: `data.txt` is outside the scope `app`
          hint: name a directory that contains both with `--scope DIR`
    "#]]);
}
