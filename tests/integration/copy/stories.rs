//! The two stories of the proposal, from end to end.

use crate::support::{Transcript, World, config_map, deployment};

const RAW: &str = "https://raw.githubusercontent.com/kubernetes-sigs/kustomize/v1.0.6/examples/helloWorld";

/// An upstream that looks like kustomize itself, at the tag that the proposal names.
fn kustomize_upstream(world: &World) -> String {
    let upstream = world.upstream("kubernetes-sigs/kustomize");
    upstream.write("examples/multibases/kustomization.yaml", "bases:\n- dev\n- production\nnamePrefix: cluster-a-\n");
    for name in ["dev", "production"] {
        upstream.write(
            &format!("examples/multibases/{name}/kustomization.yaml"),
            format!("bases:\n- ../base\nnamePrefix: {name}-\n"),
        );
    }
    upstream.write("examples/multibases/base/kustomization.yaml", "resources:\n- pod.yaml\n");
    upstream.write("examples/multibases/base/pod.yaml", config_map("myapp-pod"));
    upstream.write("examples/multibases/README.md", "not reached\n");
    let id = upstream.commit("v1.0.6");
    upstream.git(&["tag", "v1.0.6"]);
    id
}

pub(crate) fn story_1() -> World {
    let world = World::new();
    kustomize_upstream(&world);
    world.file(&format!("{RAW}/deployment.yaml"), deployment("the-deployment"));
    world.file(&format!("{RAW}/configMap.yaml"), config_map("the-map"));
    world.commit(&[
        (
            "example/overlay/kustomization.yaml",
            "# what we deploy\nresources:\n- ../base\n- https://raw.githubusercontent.com/kubernetes-sigs/kustomize/v1.0.6/examples/helloWorld/deployment.yaml # upstream\n",
        ),
        (
            "example/base/kustomization.yaml",
            "resources:\n- https://github.com/kubernetes-sigs/kustomize//examples/multibases?ref=v1.0.6\n- https://raw.githubusercontent.com/kubernetes-sigs/kustomize/v1.0.6/examples/helloWorld/configMap.yaml\n",
        ),
        ("example/base/unused.yaml", "not: reached\n"),
        ("README.md", "ours\n"),
    ]);
    world
}

#[test]
fn story_1_a_local_target_with_a_scope() {
    let world = story_1();
    let work = &world.work;
    let before = work.state();
    work.run(&["example/overlay", "--scope", "example"]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 12 files written, 3 references rewritten, 0 removed
          added https://github.com/kubernetes-sigs/kustomize?ref=v1.0.6 <1>
          added https://raw.githubusercontent.com/kubernetes-sigs/kustomize/v1.0.6/examples/helloWorld/configMap.yaml <2>
          added https://raw.githubusercontent.com/kubernetes-sigs/kustomize/v1.0.6/examples/helloWorld/deployment.yaml <3>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    before.assert_same(&work.state().without_ref("refs/heads/localized/main"));

    let kustomize =
        "localized-overlay/base/localized-files/github.com/kubernetes-sigs/kustomize/v1.0.6/examples/multibases";
    let hello = "kubernetes-sigs/kustomize/v1.0.6/examples/helloWorld";
    let mut expected: Vec<String> = [
        "README.md",
        "example/base/kustomization.yaml",
        "example/base/unused.yaml",
        "example/overlay/kustomization.yaml",
        "localized-overlay/base/kustomization.yaml",
        "localized-overlay/base/localized-files/.gitattributes",
        &format!("{kustomize}/base/kustomization.yaml"),
        &format!("{kustomize}/base/pod.yaml"),
        &format!("{kustomize}/dev/kustomization.yaml"),
        &format!("{kustomize}/kustomization.yaml"),
        &format!("{kustomize}/production/kustomization.yaml"),
        &format!("localized-overlay/base/localized-files/raw.githubusercontent.com/{hello}/configMap.yaml"),
        "localized-overlay/kustomize-localize.lock",
        "localized-overlay/overlay/kustomization.yaml",
        "localized-overlay/overlay/localized-files/.gitattributes",
        &format!("localized-overlay/overlay/localized-files/raw.githubusercontent.com/{hello}/deployment.yaml"),
    ]
    .iter()
    .map(|path| format!("100644 {path}"))
    .collect();
    expected.sort();
    let mut files = work.files("localized/main");
    files.sort();
    assert_eq!(files, expected);

    let show = |path: &str| work.show("localized/main", path);
    assert_eq!(
        show("localized-overlay/overlay/kustomization.yaml"),
        format!(
            "# what we deploy\nresources:\n- ../base\n- localized-files/raw.githubusercontent.com/{hello}/deployment.yaml # upstream\n"
        )
    );
    assert_eq!(
        show("localized-overlay/base/kustomization.yaml"),
        format!(
            "resources:\n- localized-files/github.com/kubernetes-sigs/kustomize/v1.0.6/examples/multibases\n- localized-files/raw.githubusercontent.com/{hello}/configMap.yaml\n"
        )
    );

    let lock = show("localized-overlay/kustomize-localize.lock");
    let commit = kustomize_upstream_id(&world);
    for part in [
        "target: example/overlay",
        "scope: example",
        "url: https://github.com/kubernetes-sigs/kustomize",
        "ref: v1.0.6",
        &format!("commit: {commit}"),
        &format!("url: {RAW}/deployment.yaml"),
        &format!("url: {RAW}/configMap.yaml"),
        "path: overlay/kustomization.yaml",
    ] {
        assert!(lock.contains(part), "no {part:?} in\n{lock}");
    }

    let clone = world.clone_of_branch();
    world.same_build("example/overlay", &clone, "localized-overlay/overlay");
    work.run(&["example/overlay", "--scope", "example"]).success().says(expect![[r#"
        nothing to do: branch localized/main (<0>) already has example/overlay in localized-overlay
          not verified: --no-verify
    "#]]);
}

fn kustomize_upstream_id(world: &World) -> String {
    let path = world.sandbox.path("upstream/kubernetes-sigs/kustomize");
    world.sandbox.git(&path, &["rev-parse", "v1.0.6"])
}

#[test]
fn story_2_a_remote_target_in_every_form_of_url() {
    let world = World::new();
    let work = &world.work;
    let upstream = world.upstream_of(
        "acme/shop",
        &[
            ("app/overlay/kustomization.yaml", "resources: [../base]\nnamePrefix: o-\n"),
            ("app/base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("app/base/map.yaml", &config_map("shop")),
            ("kustomization.yaml", "resources: [app/overlay]\n"),
            ("README.md", "not reached\n"),
        ],
    );
    let id = upstream.id("v1");
    let top = world.sandbox.path("upstream/acme");
    // On the real host, too, the name with `.git` is the same repository.
    std::os::unix::fs::symlink(top.join("shop"), top.join("shop.git")).unwrap();
    let base = format!("file://{}/upstream/", world.sandbox.path("").display());
    for prefix in ["ssh://git@example.com/", "git@example.com:"] {
        world.sandbox.pretend(prefix, &base);
    }
    world.commit(&[("README.md", "ours\n")]);
    let file = format!("file://{}/shop", top.display());

    // The target, the default NEW_DIR, and where in it the target lies.
    let (name, deep) = ("localized-overlay-v1", "app/overlay");
    let cases = [
        ("https://github.com/acme/shop//app/overlay?ref=v1", name, deep),
        ("https://github.com/acme/shop.git/app/overlay/?version=v1", name, deep),
        ("git::https://github.com/acme/shop.git?ref=v1", "localized-shop.git-v1", "."),
        ("git@example.com:acme/shop.git//app/overlay?ref=v1", name, deep),
        ("ssh://git@example.com/acme/shop//app/overlay?ref=v1", name, deep),
        (&format!("{file}?ref={id}"), &format!("localized-shop-{id}"), "."),
        (&format!("{file}?ref=refs/tags/v1"), "localized-shop-refs-tags-v1", "."),
    ];
    let mut transcript = Transcript::default();
    for (number, (url, new_dir, place)) in cases.iter().enumerate() {
        let branch = format!("case-{number}");
        transcript
            .add(work.run(&[url, "--branch", &branch]).success().stdout_has(&format!("into {new_dir} on branch")));
        let files = work.files(&branch);
        let top = format!("{new_dir}/{place}/kustomization.yaml").replace("/./", "/");
        let expected = [top, format!("{new_dir}/app/base/map.yaml")];
        for path in expected {
            assert!(files.contains(&format!("100644 {path}")), "{url}: {files:?}");
        }
        let unused = format!("100644 {new_dir}/README.md");
        assert!(!files.contains(&unused), "{url}: {files:?}");
        let lock = work.show(&branch, &format!("{new_dir}/kustomize-localize.lock"));
        assert!(lock.contains(&format!("commit: {id}")), "{url}: {lock}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize https://github.com/acme/shop//app/overlay?ref=v1 --branch case-0 --no-verify
        localized https://github.com/acme/shop//app/overlay?ref=v1 into localized-overlay-v1 on branch case-0 (<0>): 5 files written, 0 references rewritten, 0 removed
          added https://github.com/acme/shop?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize https://github.com/acme/shop.git/app/overlay/?version=v1 --branch case-1 --no-verify
        localized https://github.com/acme/shop.git/app/overlay/?version=v1 into localized-overlay-v1 on branch case-1 (<0>): 5 files written, 0 references rewritten, 0 removed
          added https://github.com/acme/shop.git?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize git::https://github.com/acme/shop.git?ref=v1 --branch case-2 --no-verify
        localized git::https://github.com/acme/shop.git?ref=v1 into localized-shop.git-v1 on branch case-2 (<0>): 6 files written, 0 references rewritten, 0 removed
          added https://github.com/acme/shop.git?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize git@example.com:acme/shop.git//app/overlay?ref=v1 --branch case-3 --no-verify
        localized git@example.com:acme/shop.git//app/overlay?ref=v1 into localized-overlay-v1 on branch case-3 (<0>): 5 files written, 0 references rewritten, 0 removed
          added git@example.com:acme/shop.git?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize ssh://git@example.com/acme/shop//app/overlay?ref=v1 --branch case-4 --no-verify
        localized ssh://git@example.com/acme/shop//app/overlay?ref=v1 into localized-overlay-v1 on branch case-4 (<0>): 5 files written, 0 references rewritten, 0 removed
          added ssh://git@example.com/acme/shop?ref=v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
        $ git kustomize-localize file:///home/me/upstream/acme/shop?ref=<0> --branch case-5 --no-verify
        localized file:///home/me/upstream/acme/shop?ref=<0> into localized-shop-<0> on branch case-5 (<1>): 6 files written, 0 references rewritten, 0 removed
          added file:///home/me/upstream/acme/shop?ref=<0> <0>
          not verified: --no-verify
          to look at it: git show --stat <1>
        $ git kustomize-localize file:///home/me/upstream/acme/shop?ref=refs/tags/v1 --branch case-6 --no-verify
        localized file:///home/me/upstream/acme/shop?ref=refs/tags/v1 into localized-shop-refs-tags-v1 on branch case-6 (<0>): 6 files written, 0 references rewritten, 0 removed
          added file:///home/me/upstream/acme/shop?ref=refs/tags/v1 <1>
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
}
