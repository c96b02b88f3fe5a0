//! What is localized builds to the same bytes, with the real kustomize and no network: the rows that are easily
//! missed. Most have a test where their subject is, so that none is written twice:
//!
//! | row | test |
//! |---|---|
//! | origin annotations | here |
//! | a symlinked generator source | `references::generator_keys_stay` |
//! | two URLs that differ only in port or query | here, for generators;
//! `layout::files_that_would_meet_get_paths_of_their_own` |
//! | a scope two and three levels above the target | here |
//! | `.` as target | here |
//! | a remote target in a sub-directory | here |
//! | a remote base with CRLF attributes | `bytes::a_remote_root_has_the_bytes_of_a_checkout`, and here with a submodule
//! |
//! | a plugin directory | `plugins` |
//! | an exec function | `functions::programs_of_the_repository_come_along_unchanged` |
//! | a chart home, with what stands in for helm | `helm::local::local_charts_and_values_come_along` |
//! | every field | `references::every_field_with_…`, `paths::every_field_…` |
//! | names that a random tree (`generated`) found | here |
//! | any tree | `generated` |

use serde::Deserialize as _;
use serde_yaml::Value;

use crate::support::{World, config_map};

/// Returns files of a base that generates a ConfigMap.
fn base(name: &str) -> Vec<(String, String)> {
    vec![
        (
            "kustomization.yaml".to_owned(),
            format!("resources: [map.yaml]\nconfigMapGenerator:\n- name: {name}-data\n  files: [data.txt]\n"),
        ),
        ("map.yaml".to_owned(), config_map(name)),
        ("data.txt".to_owned(), format!("data of {name}\n")),
    ]
}

fn write_base(world: &World, directory: &str, name: &str) {
    for (path, text) in base(name) {
        world.work.write(&format!("{directory}/{path}"), text);
    }
}

/// Localizes, with the program's own proof, and builds again without it.
#[track_caller]
fn same(world: &World, args: &[&str], original: &str, result: &str) {
    world.verified(args);
    world.same_build(original, &world.clone_of_branch(), result);
}

#[test]
fn origin_annotations() {
    let world = World::new();
    let Some(kustomize) = world.sandbox.builds() else { return };
    let files = base("remote");
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    world.upstream_of("acme/base", &files);
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources: [map.yaml, 'https://github.com/acme/base?ref=v1']\nbuildMetadata: [originAnnotations, transformerAnnotations]\nnamePrefix: a-\n",
        ),
        ("app/map.yaml", &config_map("map")),
    ]);
    // What verifying makes of it is tested elsewhere.
    world.work.run(&["app", "--no-verify"]).success();
    let clone = world.clone_of_branch();
    let before = world.build(&kustomize, world.work.path(), "app", &[], false);
    let after = world.build(&kustomize, clone.path(), "localized-app", &[], true);
    before.success().stdout_has("repo: https://github.com/acme/base");
    after.success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          annotations:
            alpha.config.kubernetes.io/transformations: |
              - configuredIn: kustomization.yaml
                configuredBy:
                  apiVersion: builtin
                  kind: PrefixTransformer
            config.kubernetes.io/origin: |
              path: map.yaml
          name: a-map
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          annotations:
            alpha.config.kubernetes.io/transformations: |
              - configuredIn: kustomization.yaml
                configuredBy:
                  apiVersion: builtin
                  kind: PrefixTransformer
            config.kubernetes.io/origin: |
              path: localized-files/github.com/acme/base/v1/map.yaml
          name: a-remote
        ---
        apiVersion: v1
        data:
          data.txt: |
            data of remote
        kind: ConfigMap
        metadata:
          annotations:
            alpha.config.kubernetes.io/transformations: |
              - configuredIn: kustomization.yaml
                configuredBy:
                  apiVersion: builtin
                  kind: PrefixTransformer
            config.kubernetes.io/origin: |
              configuredIn: localized-files/github.com/acme/base/v1/kustomization.yaml
              configuredBy:
                apiVersion: builtin
                kind: ConfigMapGenerator
          name: a-remote-data-7829mg52t9
    "#]]);
    assert_eq!(without_origin(&before.stdout), without_origin(&after.stdout));
    assert_eq!(without_origin(&before.stdout).len(), 3);
}

/// Returns the objects without the annotations of their origin, and asserts that each had them.
fn without_origin(text: &str) -> Vec<Value> {
    let documents = serde_yaml::Deserializer::from_str(text);
    documents
        .map(|document| {
            let mut object = Value::deserialize(document).unwrap();
            let metadata = object["metadata"].as_mapping_mut().unwrap();
            let annotations = metadata.remove("annotations").unwrap();
            assert!(annotations.get("config.kubernetes.io/origin").is_some());
            object
        })
        .collect()
}

#[test]
fn generator_sources_that_differ_in_port_or_query() {
    let world = World::new();
    let urls = [
        "https://files.example.com/data.txt",
        "https://files.example.com:8443/data.txt",
        "https://files.example.com/data.txt?one",
        "https://files.example.com/data.txt?two",
    ];
    let mut text = "configMapGenerator:\n".to_owned();
    for (number, url) in urls.iter().enumerate() {
        world.file(url, format!("data {number}\n"));
        text.push_str(&format!("- name: g{number}\n  files: ['{url}']\n"));
        text.push_str(&format!("  envs: ['{}']\n", url.replace("data.txt", "env")));
        world.file(&url.replace("data.txt", "env"), format!("E={number}\n"));
    }
    world.commit(&[("app/kustomization.yaml", &text)]);
    same(&world, &["app"], "app", "localized-app");
}

#[test]
fn scopes_above_the_target() {
    let world = World::new();
    let files = base("remote");
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    world.upstream_of("acme/base", &files);
    write_base(&world, "one/two/base", "two");
    write_base(&world, "one/base", "one");
    write_base(&world, "base", "zero");
    let remote = "https://github.com/acme/base?ref=v1";
    for (bases, scope, result) in [
        ("../../base", "one/two", "localized-app/three/app"),
        ("../../base, ../../../base", "one", "localized-app/two/three/app"),
        ("../../base, ../../../base, ../../../../base", ".", "localized-app/one/two/three/app"),
    ] {
        let text = format!("resources: [{bases}, '{remote}']\nnamePrefix: app-\n");
        world.commit(&[("one/two/three/app/kustomization.yaml", &text)]);
        let target = "one/two/three/app";
        let args = [target, "--scope", scope, "--overwrite"];
        world.work.git(&["update-ref", "-d", "refs/heads/localized/main"]);
        same(&world, &args, target, result);
    }
}

#[test]
fn the_directory_that_we_are_in() {
    let world = World::new();
    let work = &world.work;
    world.file("https://files.example.com/map.yaml", config_map("file"));
    write_base(&world, "base", "base");
    let text = "resources: [../base, 'https://files.example.com/map.yaml']\n";
    world.commit(&[("app/kustomization.yaml", text)]);
    let inside = work.path().join("app");
    let how: &[&str] = if world.sandbox.builds().is_some() { &[] } else { &["--no-verify"] };
    for (directory, args, result) in
        [(&*inside, &[".", "--scope", ".."][..], "app/localized-app/app"), (work.path(), &[".", "copy"], "copy")]
    {
        world.sandbox.try_git(work.path(), &["branch", "-D", "localized/main"]);
        if directory == work.path() {
            // The top is a root as well.
            world.commit(&[("kustomization.yaml", "resources: [app]\n")]);
        }
        let args = [args, how].concat();
        world.sandbox.run(directory, &args).success();
        let original = if directory == work.path() { "." } else { "app" };
        world.same_build(original, &world.clone_of_branch(), result);
    }
}

#[test]
fn a_remote_target_with_a_submodule_of_crlf_files() {
    let world = World::new();
    world.sandbox.configure("protocol.file.allow", "always");
    let library = world.upstream("acme/library");
    library.write(".gitattributes", "*.txt text eol=crlf\n");
    for (path, text) in base("library") {
        library.write(&format!("base/{path}"), text);
    }
    library.commit("library");
    let shop = world.upstream("acme/shop");
    shop.git(&["submodule", "-q", "add", "https://github.com/acme/library", "lib"]);
    shop.write(
        "deploy/app/kustomization.yaml",
        "resources: [../../lib/base, 'https://files.example.com/map.yaml']\nnamePrefix: shop-\n",
    );
    world.file("https://files.example.com/map.yaml", config_map("file"));
    shop.commit("shop");
    shop.git(&["tag", "v1"]);
    world.commit(&[("README.md", "ours\n")]);
    let url = "https://github.com/acme/shop//deploy/app?ref=v1";
    same(&world, &[url, "shop"], url, "shop/deploy/app");
    let data = world.work.show("localized/main", "shop/lib/base/data.txt");
    assert_eq!(data, "data of library\r\n");
}

#[test]
fn names_that_are_something_else_in_yaml() {
    let world = World::new();
    let merge = format!("{}data: {{merged: 'yes'}}\n", config_map("map"));
    let plugin = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nliterals: [a=b]\n";
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources: [map.yaml]\npatchesStrategicMerge: [x/../&merge]\ngenerators: ['x/../- plugin', './#hash']\ntransformers: ['x/../[merge]']\n",
        ),
        ("app/map.yaml", &config_map("map")),
        ("app/&merge", &merge),
        ("app/- plugin", plugin),
        ("app/#hash", &plugin.replace("name: g", "name: h")),
        (
            "app/[merge]",
            "apiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata: {name: t}\npaths: ['x/../&merge']\n",
        ),
    ]);
    same(&world, &["app"], "app", "localized-app");
    // The directory above belongs to the copy now, so that nothing needs to climb.
    world.commit(&[(
        "app/kustomization.yaml",
        "resources: [map.yaml]\npatchesStrategicMerge: [../app/&merge]\ngenerators: ['../app/- plugin', '../app/#hash']\ntransformers: ['../app/[merge]']\n",
    )]);
    same(&world, &["app"], "app", "localized-app");
    let text = world.work.show("localized/main", "localized-app/kustomization.yaml");
    assert!(text.contains("[./&merge]"), "{text}");
    assert!(text.contains("['./- plugin', './#hash']"), "{text}");
}

#[test]
fn directories_of_the_user_may_have_any_name() {
    let world = World::new();
    let files = base("remote");
    let files: Vec<(&str, &str)> = files.iter().map(|(a, b)| (&**a, &**b)).collect();
    world.upstream_of("acme/base", &files);
    world.file("https://files.example.com/map.yaml", config_map("file"));
    // No system but Windows minds, and it could not have checked this out in the first place.
    world.commit(&[
        (
            "app/a\"b. /kustomization.yaml",
            "resources: ['https://github.com/acme/base?ref=v1', 'https://files.example.com/map.yaml']\n",
        ),
        ("app/kustomization.yaml", "resources: ['a\"b. ']\n"),
    ]);
    same(&world, &["app"], "app", "localized-app");
}
