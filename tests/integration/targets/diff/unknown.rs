//! What `diff` says of builds that nobody here can know whole.

use expect_test::expect;

use super::*;

#[test]
fn what_stays_remote_is_said_and_counted() {
    let Some((_sandbox, work)) = overlays() else { return };
    let url = "https://github.com/acme/left//web?ref=v1";
    let web = |text: &str| format!("resources: ['{url}']\nnamePrefix: {text}\n");
    let names = ["a", "b", "c", "d", "e", "f"];
    for name in names {
        work.write(&format!("{name}/kustomization.yaml"), web("x-"));
    }
    let allow = format!("allow:\n- {{url: '{url}', reason: gone}}\n");
    work.commit_files(&[(".kustomize-localize", &allow)]);
    work.write("a/kustomization.yaml", web("y-"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success();
    let why = format!("{url} stays remote");
    assert_eq!(output.stdout, "");
    output.says(expect![[r#"
        a: not built: https://github.com/acme/left//web?ref=v1 stays remote
        1 affected build could not be compared since <0>; unknown: 1 root
    "#]]);
    work.run_unchanged(&["diff", "HEAD", "--format=markdown"]).success().says(expect![[r#"
        <!-- git-kustomize-localize diff -->
        **1 affected build could not be compared; unknown: 1 root** in <code>work</code>, <code><0> to the working tree</code>

        <p><code>a: not built: https://github.com/acme/left//web?ref=v1 stays remote</code></p>

        a: not built: https://github.com/acme/left//web?ref=v1 stays remote
        1 affected build could not be compared since <0>; unknown: 1 root
    "#]]);
    assert_eq!(report(&work, &["HEAD"])["builds"][0]["not_built"][1][0]["message"], *why);
    for name in names {
        work.write(&format!("{name}/kustomization.yaml"), web("y-"));
    }
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
        6 builds not built: something stays remote (`-v` shows each)
        6 affected builds could not be compared since <0>; unknown: 6 roots
    "#]]);
    let all = work.run_unchanged(&["diff", "HEAD", "-v"]);
    all.success().says(expect![[r#"
        a: a/kustomization.yaml
        b: b/kustomization.yaml
        c: c/kustomization.yaml
        d: d/kustomization.yaml
        e: e/kustomization.yaml
        f: f/kustomization.yaml
          not built: https://github.com/acme/left//web?ref=v1 stays remote
        6 affected builds could not be compared since <0>; unknown: 6 roots
    "#]]);
}

#[test]
fn what_only_the_cluster_fills_in_is_not_known() {
    let Some((_sandbox, work)) = overlays() else { return };
    let target = flux("web", "./apps/${env}/x", "") + &flux("prod", "./prod", "");
    let map = ("apps/dev/map.yaml", &*config_map("dev"));
    work.commit_files(&[("clusters/web.yaml", &target), map, ("other.yaml", "a: 1\n")]);
    work.write("other.yaml", "a: 2\n");
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
        no build is affected since <0>
    "#]]);
    work.write("apps/dev/map.yaml", config_map("another"));
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
        Flux Kustomization web (clusters/web.yaml:1): apps/dev/map.yaml
          not built: `./apps/${env}/x` is substituted elsewhere
        1 affected build could not be compared since <0>; unknown: 1 target
    "#]]);
    // What a set makes is counted, with the set.
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let set = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all}
spec:
  goTemplate: true
  generators:
  - matrix: {generators: [{clusters: {}}, {list: {elements: [{app: dev}, {app: prod}, {app: web}]}}]}
  template:
    metadata: {name: '{{.app}}'}
    spec: {source: {repoURL: 'https://github.com/acme/fleet', path: 'apps/dev/{{.name}}'}}
";
    work.commit_files(&[("clusters/web.yaml", set)]);
    work.write("apps/dev/map.yaml", config_map("dev"));
    let expected = "3 builds of ApplicationSet all (clusters/web.yaml:1): apps/dev/map.yaml\n  not built: its `clusters` generator can only be evaluated in the cluster\n";
    let output = work.run_unchanged(&["diff", "HEAD"]);
    assert_eq!(output.success().stdout, expected);
    output.says(expect![[r#"
        3 builds of ApplicationSet all (clusters/web.yaml:1): apps/dev/map.yaml
          not built: its `clusters` generator can only be evaluated in the cluster
        3 affected builds could not be compared since <0>; unknown: 3 targets
    "#]]);
    let page = work.run_unchanged(&["diff", "HEAD", "--format=html"]);
    page.success().stdout_has(">3 builds of ApplicationSet all (clusters/web.yaml:1)</a>").lacks("Application dev");
    work.git(&["checkout", "--quiet", "."]);
    work.write("base/map.yaml", config_map("other"));
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
        dev: base/map.yaml
        --- v1 ConfigMap dev/map
        +++ /dev/null
        @@ -1,5 +0,0 @@
        -apiVersion: v1
        -kind: ConfigMap
        -metadata:
        -  name: map
        -  namespace: dev
        --- /dev/null
        +++ v1 ConfigMap dev/other
        @@ -0,0 +1,5 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: other
        +  namespace: dev
        prod: base/map.yaml
        --- v1 ConfigMap prod/map
        +++ /dev/null
        @@ -1,5 +0,0 @@
        -apiVersion: v1
        -kind: ConfigMap
        -metadata:
        -  name: map
        -  namespace: prod
        --- /dev/null
        +++ v1 ConfigMap prod/other
        @@ -0,0 +1,5 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: other
        +  namespace: prod
        4 objects (2 added, 2 removed) in 2 of 2 affected builds since <0>
    "#]]);
    // It goes with what it deploys, whatever that is.
    work.git(&["rm", "--quiet", "clusters/web.yaml"]);
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
            Argo CD Application dev (clusters/web.yaml:1): removed
            Argo CD Application prod (clusters/web.yaml:1): removed
            Argo CD Application web (clusters/web.yaml:1): removed
              not built (old side): its `clusters` generator can only be evaluated in the cluster
              consequence[removed-target]: a target is removed (its objects are deleted with it)
            dev: base/map.yaml
            --- v1 ConfigMap dev/map
            +++ /dev/null
            @@ -1,5 +0,0 @@
            -apiVersion: v1
            -kind: ConfigMap
            -metadata:
            -  name: map
            -  namespace: dev
            --- /dev/null
            +++ v1 ConfigMap dev/other
            @@ -0,0 +1,5 @@
            +apiVersion: v1
            +kind: ConfigMap
            +metadata:
            +  name: other
            +  namespace: dev
            prod: base/map.yaml
            --- v1 ConfigMap prod/map
            +++ /dev/null
            @@ -1,5 +0,0 @@
            -apiVersion: v1
            -kind: ConfigMap
            -metadata:
            -  name: map
            -  namespace: prod
            --- /dev/null
            +++ v1 ConfigMap prod/other
            @@ -0,0 +1,5 @@
            +apiVersion: v1
            +kind: ConfigMap
            +metadata:
            +  name: other
            +  namespace: prod
            4 objects (2 added, 2 removed) in 2 of 5 affected builds, 3 consequences since <0>; unknown: 3 targets
        "#]]);
}

#[test]
fn variables_that_the_target_says_are_filled_in() {
    let Some((_sandbox, work)) = overlays() else { return };
    let variables = |more: &str| format!("  postBuild: {{substitute: {{APP: web, ENV: prod{more}}}}}\n");
    let claim = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: '${APP}', namespace: x}\nspec: {resources: {requests: {storage: '${SIZE:=5Gi}'}}}\n";
    let more = flux("more", "'./apps/${ENV}'", "");
    work.commit_files(&[
        ("clusters/apps.yaml", &flux("apps", "./volume", &variables(", SIZE: 5Gi"))),
        ("volume/kustomization.yaml", "resources: [claim.yaml, more.yaml]\n"),
        ("volume/claim.yaml", claim),
        ("volume/more.yaml", &more),
        ("apps/prod/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/prod/map.yaml", &config_map("prod")),
    ]);
    work.run(&["check"]).success().says(expect![[r#"
        warning[unknown-target]: cannot tell what Flux Kustomization more (volume/more.yaml:1) deploys: Flux Kustomization apps (clusters/apps.yaml:1) may change it
         --> volume/more.yaml:5:9
          |
        5 |   path: './apps/${ENV}'
          |         ^^^^^^^^^^^^^^^
          = help: build it: git kustomize-localize check --build

        for more: git kustomize-localize explain unknown-target
        checked 5 kustomizations with 8 references in the working tree: no problems found; 1 target unknown
    "#]]);
    work.run(&["check", "--build"]).success().says(expect![[r#"
        checked 5 kustomizations with 8 references in the working tree, 5 builds (kustomize/…, network closed): no problems found
    "#]]);
    work.write("clusters/apps.yaml", flux("apps", "./volume", &variables(", SIZE: 1Gi")));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
            Flux Kustomization apps (clusters/apps.yaml:1): clusters/apps.yaml
            --- kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/apps
            +++ kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/apps
            @@ -9,7 +9,7 @@
                 substitute:
                   APP: web
                   ENV: prod
            -      SIZE: 5Gi
            +      SIZE: 1Gi
               sourceRef:
                 kind: GitRepository
                 name: flux-system

            consequence[smaller-pvc]: a PersistentVolumeClaim asks for less, which is refused (5Gi -> 1Gi)
            --- v1 PersistentVolumeClaim x/web
            +++ v1 PersistentVolumeClaim x/web
            @@ -6,4 +6,4 @@
             spec:
               resources:
                 requests:
            -      storage: 5Gi
            +      storage: 1Gi
            2 objects (2 changed) in 1 of 1 affected build, 1 consequence since <0>
        "#]]);
    // What a variable leads to is known once it is filled in.
    work.commit("Smaller");
    work.write("apps/prod/map.yaml", config_map("other"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
        Flux Kustomization more (volume/more.yaml:1): apps/prod/map.yaml
          defined by the build of Flux Kustomization apps (clusters/apps.yaml:1)
        --- /dev/null
        +++ v1 ConfigMap other
        @@ -0,0 +1,4 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: other
        --- v1 ConfigMap prod
        +++ /dev/null
        @@ -1,4 +0,0 @@
        -apiVersion: v1
        -kind: ConfigMap
        -metadata:
        -  name: prod
        2 objects (1 added, 1 removed) in 1 of 1 affected build since <0>
    "#]]);
}

#[test]
fn a_file_that_cannot_be_read_fails_only_if_it_differs() {
    let sandbox = Sandbox::new();
    let work = sandbox.repo("work");
    work.commit_files(&[("README.md", "a\n"), ("base/kustomization.yaml", "namePrefix: a-\n")]);
    let diff = || work.run_unchanged(&["diff", "HEAD", "--exit-code"]);
    work.write("clusters/bad.yaml", flux("x", "[x", ""));
    diff().fails(1).says(expect![[r#"
        clusters/bad.yaml:6: unknown: not YAML: illegal placement of ':' indicator
        0 objects differ in 0 affected builds since <0>; unknown: 1 file
    "#]]);
    work.commit("bad");
    work.write("README.md", "b\n");
    diff().success().says(expect![[r#"
        clusters/bad.yaml:6: unknown: not YAML: illegal placement of ':' indicator
        0 objects differ in 0 affected builds since <0>; unknown: 1 file
    "#]]);
}

#[test]
fn a_comment_names_what_is_unknown_and_what_is_remote_now() {
    let world = World::acme();
    if world.sandbox.builds().is_none() {
        return;
    }
    let url = "https://github.com/acme/lib//web?ref=v1";
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{url}']\n"))]);
    world.work.lock();
    world.work.write("clusters/bad.yaml", flux("x", "[x", ""));
    world.work.write(".kustomize-localize", format!("allow: [{{url: '{url}', reason: by hand}}]\n"));
    world.work.run(&["lock"]).success();
    world.work.run_unchanged(&["diff", "HEAD", "--format=markdown"]).success().says(expect![[r#"
        <!-- git-kustomize-localize diff -->
        **1 affected build could not be compared; unknown: 1 root, 1 file** in <code>work</code>, <code><0> to the working tree</code>

        <p><code>clusters/bad.yaml:6: unknown: not YAML: illegal placement of ':' indicator</code></p>

        <p><code>app: not built: https://github.com/acme/lib//web?ref=v1 stays remote</code></p>

        <p><code>now remote: https://github.com/acme/lib//web?ref=v1 (allowed by .kustomize-localize:1)</code></p>

        clusters/bad.yaml:6: unknown: not YAML: illegal placement of ':' indicator
        app: not built: https://github.com/acme/lib//web?ref=v1 stays remote
        now remote: https://github.com/acme/lib//web?ref=v1 (allowed by .kustomize-localize:1)
        1 affected build could not be compared since <0>; unknown: 1 root, 1 file
    "#]]);
}
