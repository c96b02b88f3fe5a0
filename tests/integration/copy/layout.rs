//! Where everything goes: as `kustomize localize` puts it, and apart where two things would meet.

use std::collections::BTreeSet;

use crate::support::{World, config_map};

const HOST: &str = "https://files.example.com";

/// Returns the paths below `localized-app`, without our own.
fn layout(world: &World) -> BTreeSet<String> {
    let tree = "localized/main:localized-app";
    let paths = world.work.git(&["ls-tree", "-rz", "--name-only", tree]);
    paths
        .split_terminator('\0')
        .filter(|path| {
            !path.ends_with(".gitattributes") && *path != "kustomize-localize.lock" && *path != "kustomization.yaml"
        })
        .map(str::to_owned)
        .collect()
}

/// Returns how many of the paths end like this.
fn count(paths: &BTreeSet<String>, end: &str) -> usize {
    paths.iter().filter(|path| path.ends_with(end)).count()
}

/// Writes `app/kustomization.yaml` with these resources.
fn resources(world: &World, urls: &[&str]) {
    let mut text = String::from("resources:\n");
    for url in urls {
        text.push_str(&format!("- '{url}'\n"));
    }
    world.commit(&[("app/kustomization.yaml", &text)]);
}

fn assert_safe(paths: &BTreeSet<String>) {
    let safe = |c: char| c.is_ascii_alphanumeric() || "._+-/".contains(c);
    for path in paths {
        assert!(path.chars().all(safe), "{path}");
        for part in path.split('/') {
            let stem = part.split('.').next().unwrap().to_ascii_lowercase();
            let refused = ["aux", "con", "nul", ".git", "_git"];
            assert!(!refused.contains(&stem.as_str()) && !part.ends_with('.'), "{path}");
        }
    }
    let folded: BTreeSet<String> = paths.iter().map(|path| path.to_lowercase()).collect();
    assert_eq!(folded.len(), paths.len(), "{paths:?}");
}

#[test]
fn files_that_would_meet_get_paths_of_their_own() {
    let world = World::new();
    let urls = [
        ("https://files.example.com/map.yaml", "plain"),
        ("https://files.example.com:8443/map.yaml", "port"),
        ("https://files.example.com/map.yaml?a=1", "one"),
        ("https://files.example.com/map.yaml?a=2", "two"),
        ("https://files.example.com/Map.yaml", "upper"),
        ("https://files.example.com/x", "file"),
        ("https://files.example.com/x/y.yaml", "below"),
        ("https://other.example.com/map.yaml", "alone"),
    ];
    for (url, name) in urls {
        world.file(url, config_map(name));
    }
    let mut names: Vec<&str> = urls.iter().map(|(url, _)| *url).collect();
    resources(&world, &names);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let first = layout(&world);
    assert_eq!(first.len(), urls.len());
    assert_safe(&first);
    // Without a collision, the path is the plain one.
    assert!(first.contains("localized-files/other.example.com/map.yaml"), "{first:?}");
    // The base name stays, so that generators need no key.
    assert_eq!(count(&first, "/map.yaml"), 5, "{first:?}");
    // The order of the references changes nothing.
    names.reverse();
    resources(&world, &names);
    world.work.run(&["app"]).success();
    assert_eq!(layout(&world), first);
}

#[test]
fn files_that_differ_by_user_or_token_only() {
    let world = World::new();
    // The server sends the same to both, as most do.
    world.file("https://files.example.com/map.yaml", config_map("map"));
    world.commit(&[(
        "app/kustomization.yaml",
        "configMapGenerator:\n- name: g\n  files:\n  - a=https://one:secret1@files.example.com/map.yaml\n  - b=https://files.example.com/map.yaml\n",
    )]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    assert_eq!(layout(&world), BTreeSet::from(["localized-files/files.example.com/map.yaml".to_owned()]));
    world.work.run(&["app"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has app in localized-app
          not verified: --no-verify
    "#]]);
}

#[test]
fn roots_that_would_meet_get_paths_of_their_own() {
    let world = World::new();
    let upstream = world.upstream("acme/base");
    for (directory, name) in [("c", "c"), ("b/c", "bc")] {
        upstream.write(&format!("{directory}/kustomization.yaml"), "resources: [map.yaml]\n");
        upstream.write(&format!("{directory}/map.yaml"), config_map(name));
    }
    upstream.commit("first");
    upstream.git(&["tag", "a"]);
    upstream.git(&["branch", "a/b"]);
    upstream.git(&["tag", "A"]);
    upstream.write("c/map.yaml", config_map("upper"));
    upstream.commit("second");
    upstream.git(&["tag", "-f", "A"]);
    let urls = [
        "https://github.com/acme/base//c?ref=a/b",
        "https://github.com/acme/base//b/c?ref=a",
        "https://github.com/acme/base//c?ref=A",
    ];
    resources(&world, &urls);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let first = layout(&world);
    assert_eq!(first.len(), 6, "{first:?}");
    assert_safe(&first);
    resources(&world, &[urls[2], urls[0], urls[1]]);
    world.work.run(&["app"]).success();
    assert_eq!(layout(&world), first);
    // Alone, each has the plain path.
    resources(&world, &urls[..1]);
    world.work.run(&["app"]).success();
    assert!(layout(&world).contains("localized-files/github.com/acme/base/a/b/c/map.yaml"));
}

#[test]
fn one_thing_spelled_twice_is_one_copy() {
    let world = World::new();
    let upstream = world.upstream_of(
        "acme/base",
        &[
            ("kustomization.yaml", "resources: [dir]\n"),
            ("dir/kustomization.yaml", "resources: [map.yaml]\n"),
            ("dir/map.yaml", &config_map("map")),
            ("other/kustomization.yaml", "resources: [map.yaml]\n"),
            ("other/map.yaml", &config_map("other")),
        ],
    );
    std::os::unix::fs::symlink(upstream.path(), world.sandbox.path("upstream/acme/base.git")).unwrap();
    world.file(&format!("{HOST}/data.txt"), "data\n");
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources: [one, two, three]\nconfigMapGenerator:\n- name: g\n  files: ['a=https://files.example.com/data.txt', 'b=HTTPS://files.example.com/data.txt', 'c=https://files.example.com//data.txt']\n",
        ),
        ("app/one/kustomization.yaml", "resources: ['https://github.com/acme/base.git//dir?ref=v1', '../four']\nnamePrefix: one-\n"),
        ("app/two/kustomization.yaml", "resources: ['github.com/acme/base?ref=v1', 'https://github.com/acme/base.git//other?ref=v1']\nnamePrefix: two-\n"),
        ("app/three/kustomization.yaml", "resources: ['https://GitHub.com/acme/base/dir?ref=v1']\nnamePrefix: three-\n"),
        ("app/four/kustomization.yaml", "resources: ['git::https://github.com/acme/base//dir?ref=v1']\nnamePrefix: four-\npatches:\n- path: https://files.example.com/patch.yaml\n- path: https://files.example.com/patch.yaml\n"),
    ]);
    world.file(&format!("{HOST}/patch.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {a: b}\n");
    world.file(&format!("{HOST}//data.txt"), "data\n");
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let paths = layout(&world);
    // An empty segment of a path may mean something to a server; letter case of a host does not.
    assert_eq!(count(&paths, "data.txt"), 2, "{paths:?}");
    assert_eq!(count(&paths, "patch.yaml"), 1, "{paths:?}");
    // One beside each kustomization.
    assert_eq!(count(&paths, "map.yaml"), 5, "{paths:?}");
    // Two spellings beside one kustomization share the plain directory.
    for name in ["dir", "other"] {
        let place = format!("two/localized-files/github.com/acme/base/v1/{name}/map.yaml");
        assert!(paths.contains(&place), "{paths:?}");
    }
}

#[test]
fn names_that_are_unsafe_somewhere() {
    let world = World::new();
    let upstream = world.upstream("acme/base");
    let names = [
        "a b.yaml",
        "ü.yaml",
        "=.yaml",
        "50%.yaml",
        "c:d.yaml",
        "*.yaml",
        "aux.yaml",
        "...",
        "x..yaml",
        "same.yaml",
        "-dash.yaml",
        "q?.yaml",
        "_git",
        "localized-files/x.yaml",
    ];
    let mut text = String::from("resources:\n- ../a dir\n");
    for (number, name) in names.iter().enumerate() {
        upstream.write(&format!("my app/{name}"), config_map(&format!("map-{number}")));
        text.push_str(&format!("- '{name}'\n"));
    }
    upstream.write("my app/.gitattributes", "# data\n");
    upstream.write("my app/.gitmodules", "# data\n");
    upstream.write("my app/.gitignore", "# data\n");
    text.push_str("configMapGenerator:\n- name: g\n  files: [.gitattributes, .gitmodules, i=.gitignore]\n");
    upstream.write("my app/kustomization.yaml", text);
    upstream.write("a dir/kustomization.yaml", "resources: [map.yaml]\n");
    upstream.write("a dir/map.yaml", config_map("in-dir"));
    upstream.git(&["config", "core.protectNTFS", "false"]);
    upstream.commit("first");
    for name in ["v=1", "ü", "v%1", "aux", "V+1.-"] {
        upstream.git(&["tag", name]);
    }
    for reference in ["v%3D1", "%C3%BC", "v%251", "aux", "V%2B1.-"] {
        resources(&world, &[&format!("https://github.com/acme/base//my app?ref={reference}")]);
        world.work.run(&["app"]).success();
        let paths = layout(&world);
        assert_eq!(paths.len(), names.len() + 4 + 2, "{paths:?}");
        assert_safe(&paths);
    }
    world.same_build("app", &world.clone_of_branch(), "localized-app");

    for (url, name) in [
        ("/.git/config.yaml", "one"),
        ("/_git", "two"),
        ("/aux.yaml", "three"),
        ("/a%2fb.yaml", "four"),
        ("/.gitattributes", "five"),
    ] {
        world.file(&format!("{HOST}{url}"), config_map(name));
    }
    resources(&world, &[]);
    world.commit(&[("app/kustomization.yaml", &format!("patches:\n- path: {HOST}/.git/config.yaml\n- path: {HOST}/_git\n- path: {HOST}/aux.yaml\n- path: {HOST}/a%2fb.yaml\n- path: {HOST}/.gitattributes\n"))]);
    world.work.run(&["app"]).success();
    let paths = layout(&world);
    assert_eq!(paths.len(), 5, "{paths:?}");
    assert_safe(&paths);
}

#[test]
fn a_localized_files_that_is_not_ours() {
    let world = World::new();
    world.file(&format!("{HOST}/map.yaml"), config_map("map"));
    world.commit(&[
        ("app/kustomization.yaml", "resources: [localized-files/own.yaml, base]\n"),
        ("app/localized-files/own.yaml", &config_map("own")),
        ("app/base/kustomization.yaml", "resources: ['https://files.example.com/map.yaml']\n"),
    ]);
    // Free.
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
}

#[test]
fn a_localized_files_that_the_lock_of_the_source_owns_is_extended() {
    let world = World::new();
    for name in ["one", "two"] {
        world.file(&format!("{HOST}/{name}.yaml"), config_map(name));
    }
    resources(&world, &["https://files.example.com/one.yaml"]);
    world.work.run(&["app", "../copy", "--no-commit"]).success();
    let copy = world.sandbox.repo("copy");
    let text = copy.read("kustomization.yaml");
    copy.write("kustomization.yaml", format!("{text}- {HOST}/two.yaml\n"));
    copy.commit("one more");
    copy.run(&[".", "out"]).success();
    let files = copy.files("localized/main:out");
    for name in ["one", "two"] {
        let place = format!("100644 localized-files/files.example.com/{name}.yaml");
        assert!(files.contains(&place), "{files:?}");
    }
}

#[test]
fn files_that_differ_by_a_secret_and_in_content() {
    let world = World::new();
    for name in ["one", "two"] {
        world.file(&format!("{HOST}/map.yaml?token=secret{name}"), config_map(name));
    }
    resources(
        &world,
        &["https://files.example.com/map.yaml?token=secretone", "https://files.example.com/map.yaml?token=secrettwo"],
    );
    // Taken from the lock, the one would become the other.
    world.refused(&["app"]).says(expect![[r#"
        error: app/kustomization.yaml:3:3: resources[1]: https://files.example.com/map.yaml?token=REDACTED returned different content for different credentials; the lock stores none and cannot tell them apart
          hint: copy one of the two into this repository, or use different URLs
    "#]]);
}
