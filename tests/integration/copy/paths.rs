//! Absolute paths, and files outside of the root that names them.

use crate::copy::references::{contents, every_field};
use crate::support::{Kustomize, Project, Repo, World, config_map};

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
    let top = world.work.path().display().to_string();
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
    world.verified(&["--in-place", "--no-commit"]);
    assert_eq!(world.work.read("app/kustomization.yaml"), relative);
    world.work.run(&["check", "--working-tree"]).success();
}

#[test]
fn absolute_paths_through_links() {
    let world = World::new();
    let link = world.sandbox.path("link");
    std::os::unix::fs::symlink(world.work.path(), &link).unwrap();
    let shown = link.display();
    world.work.symlink("elsewhere", "app/files");
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!("resources: [{shown}/app/map.yaml]\nconfigMapGenerator:\n- name: g\n  files: [{shown}/x/../elsewhere/data.txt, {shown}/elsewhere/link.txt]\n"),
        ),
        ("app/map.yaml", &config_map("map")),
        ("app/files/data.txt", "data\n"),
    ]);
    world.work.symlink("app/files/link.txt", "data.txt");
    world.work.commit("link");
    let expected = "resources: [map.yaml]\nconfigMapGenerator:\n- name: g\n  files: [files/data.txt, link.txt=files/data.txt]\n";
    // From the working directory under its own name, and under that of the link.
    world.verified(&["app"]);
    let clone = world.clone_of_branch();
    world.same_build("app", &clone, "localized-app");
    assert_eq!(clone.read("localized-app/kustomization.yaml"), expected);
    let linked = Repo::new(&world.sandbox, link.clone());
    for (number, target) in ["app".to_owned(), format!("{shown}/app")]
        .iter()
        .enumerate()
    {
        let branch = format!("linked-{number}");
        linked.run(&[target, "--branch", &branch]).success();
        assert_eq!(
            world.work.show(&branch, "localized-app/kustomization.yaml"),
            expected
        );
        let copy = format!("copy-{number}");
        linked.run(&[target, &copy, "--no-commit"]).success();
        let text = world.work.read(&format!("{copy}/kustomization.yaml"));
        assert_eq!(text, expected);
    }
}

#[test]
fn absolute_paths_are_those_of_the_working_tree() {
    let world = World::new();
    let other = world.sandbox.path("other");
    let other_text = other.display().to_string();
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!("configMapGenerator:\n- name: g\n  files: [{other_text}/app/data.txt]\n"),
        ),
        ("app/data.txt", "data\n"),
    ]);
    world.work.git(&["branch", "side"]);
    world
        .work
        .git(&["worktree", "add", "-q", &other_text, "side"]);
    let message = format!(
        "app/kustomization.yaml:3:11: configMapGenerator[0].files[0]: `{other_text}/app/data.txt` is an absolute path, which leads to nothing in this repository"
    );
    // The main working tree is another place, whatever the branch.
    for args in [&["app"][..], &["app", "--rev", "side"]] {
        world
            .refused(args)
            .stderr_has(&message)
            .stderr_has("hint: it holds on one machine, in one checkout only: write it relative to the kustomization");
    }
    let linked = Repo::new(&world.sandbox, other);
    linked.run(&["app"]).success();
    let copy = "localized-app/kustomization.yaml";
    let expected = "configMapGenerator:\n- name: g\n  files: [data.txt]\n";
    assert_eq!(linked.show("localized/side", copy), expected);

    // A bare repository has no working tree.
    let bare = world.sandbox.path("bare.git");
    let (from, to) = (world.work.path().to_str().unwrap(), bare.to_str().unwrap());
    world.sandbox.git(
        &world.sandbox.path(""),
        &["clone", "-q", "--bare", from, to],
    );
    world
        .sandbox
        .run(&bare, &["app", "--rev", "main"])
        .fails(2)
        .stderr_has(&message);
}

#[test]
fn absolute_paths_that_kustomize_refuses() {
    let world = World::new();
    let top = world.work.path().display().to_string();
    for (kustomization, message, hint) in [
        (
            "configMapGenerator: [{name: g, files: [/etc/hostname]}]".to_owned(),
            "configMapGenerator[0].files[0]: `/etc/hostname` is an absolute path, which leads to nothing in this repository".to_owned(),
            "write it relative",
        ),
        (
            format!("configMapGenerator: [{{name: g, files: [{top}/data.txt]}}]"),
            format!("`{top}/data.txt` lies outside its kustomization root `app`"),
            "--load-restrictor none",
        ),
        (
            format!("configMapGenerator: [{{name: g, files: [{top}/app/gone.txt]}}]"),
            format!("`{top}/app/gone.txt` does not exist: there is no `app/gone.txt`"),
            "",
        ),
        (
            format!("resources: [{top}/base]"),
            format!("resources[0]: `{top}/base` is an absolute path, which leads to no file here"),
            "takes those for files only",
        ),
        (
            format!("components: [{top}/base]"),
            format!("components[0]: `{top}/base` is an absolute path"),
            "write a relative path",
        ),
    ] {
        world.commit(&[
            ("app/kustomization.yaml", &kustomization),
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("base/map.yaml", &config_map("map")),
            ("data.txt", "data\n"),
        ]);
        world
            .refused(&["app", "--scope", "."])
            .stderr_has(&message)
            .stderr_has(hint);
        if let Some(kustomize) = Kustomize::find() {
            let build = kustomize.build(&world.sandbox, world.work.path(), "app");
            assert_ne!(build.status, 0, "{build:?}");
        }
    }
}

#[test]
fn every_field_outside_of_its_root() {
    let none = ["--load-restrictor", "none"];
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
            .stderr_has("give `--load-restrictor none`")
            .stderr_has("openapi.path: ")
            .stderr_has("replacements[0].path");
        world.verified(&[&["app", "--scope", "."], &none[..]].concat());
        let clone = world.clone_of_branch();
        world.same_build_with("app", &clone, "localized-app/app", &flag);
        let relative =
            every_field("../shared/files").replace("a=../shared/files", &format!("a={place}"));
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
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources: [map.yaml]\nconfigMapGenerator:\n- name: g\n  files: [data.txt]\n",
        ),
        ("shared/map.yaml", &config_map("map")),
        ("shared/other.txt", "data\n"),
    ]);
    world.work.symlink("app/map.yaml", "../shared/map.yaml");
    world.work.symlink("app/data.txt", "../shared/other.txt");
    world.work.commit("links");
    let scope = ["app", "--scope", "."];
    world
        .refused(&scope)
        .stderr_has("resources[0]: `map.yaml` lies outside its kustomization root `app`");
    let none = ["--load-restrictor", "none"];
    world.verified(&[&scope[..], &none].concat());
    let clone = world.clone_of_branch();
    let flag = ["--load-restrictor", "LoadRestrictionsNone"];
    world.same_build_with("app", &clone, "localized-app/app", &flag);
    world
        .work
        .run(&["app", "narrow", "--load-restrictor", "none"])
        .fails(2)
        .stderr_has("resources[0]: `map.yaml` lies outside the scope `app`");
}

#[test]
fn files_of_a_remote_root_stay_in_their_root() {
    // Without the restriction too: kustomize does not lift it for what it clones.
    let project = Project::new();
    project.upstream.write(
        "up/kustomization.yaml",
        "configMapGenerator:\n- name: g\n  files: [../service.yaml]\n",
    );
    project.upstream.commit("up");
    project.upstream.git(&["tag", "up"]);
    let reference = "https://example.com/acme/remote.git//up?ref=up";
    project.work.write(
        "other/kustomization.yaml",
        format!("resources: ['{reference}']\n"),
    );
    project.work.commit("up");
    if let Some(kustomize) = Kustomize::find() {
        let args = [
            "build",
            "other",
            "--load-restrictor",
            "LoadRestrictionsNone",
        ];
        let build = kustomize.run(&project.sandbox, project.work.path(), &args);
        build.fails(1).stderr_has("is not in or below");
    }
    let before = project.work.state();
    project
        .work
        .run(&["other", "--scope", ".", "--load-restrictor", "none"])
        .fails(2)
        .stderr_has("`../service.yaml` lies outside its kustomization root")
        .stderr_has("hint: `kustomize build` refuses files outside their root in a remote root");
    before.assert_same(&project.work.state());
}
