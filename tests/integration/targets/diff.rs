//! `diff`: what a change deploys.

mod deployed;
mod unknown;

use expect_test::expect;
use serde_json::Value;

use crate::support::{Repo, Sandbox, Transcript, World, config_map, deployment};

const GENERATED: &str = "resources: [map.yaml]\nconfigMapGenerator: [{name: made, literals: [a=1]}]\nsecretGenerator: [{name: hidden, envs: [secret.env]}]\n";

/// Returns a repository with two overlays of one base; none where there is no kustomize.
fn overlays() -> Option<(Sandbox, Repo)> {
    let sandbox = Sandbox::new();
    sandbox.builds()?;
    let work = sandbox.repo("work");
    work.commit_files(&[
        ("base/kustomization.yaml", GENERATED),
        ("base/map.yaml", &config_map("map")),
        ("base/secret.env", "password=hunter2\n"),
        ("dev/kustomization.yaml", "resources: [../base]\nnamespace: dev\n"),
        ("prod/kustomization.yaml", "resources: [../base, more.yaml]\nnamespace: prod\n"),
        ("prod/more.yaml", &deployment("web")),
    ]);
    Some((sandbox, work))
}

#[track_caller]
fn report(work: &Repo, args: &[&str]) -> Value {
    let output = work.run_unchanged(&[&["diff", "--format=json"], args].concat());
    serde_json::from_str(&output.success().stdout).unwrap()
}

/// Returns a target of Flux that deploys `path`, with more of its `spec`.
fn flux(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: flux-system}}\nspec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n{more}---\n"
    )
}

#[test]
fn an_object_that_git_lacks_is_named() {
    let Some((_sandbox, work)) = overlays() else { return };
    work.write("prod/more.yaml", deployment("other"));
    work.commit("other");
    let id = work.id("HEAD:prod/more.yaml");
    std::fs::remove_file(work.path().join(".git/objects").join(&id[..2]).join(&id[2..])).unwrap();
    work.run(&["diff", "HEAD^", "--rev", "HEAD"]).fails(2).says(expect![[r#"
        error: `prod/more.yaml` is damaged: there is no object <0>
          hint: list missing objects: git fsck
    "#]]);
}

#[test]
fn a_change_is_shown_object_by_object() {
    let Some((_sandbox, work)) = overlays() else { return };
    let output = work.run_unchanged(&["diff", "HEAD", "--exit-code"]);
    assert_eq!(output.success().stdout, "");
    output.says(expect![[r#"
        no build is affected since <0>
    "#]]);
    // One that only moves, one that differs, one that is new, and one that nobody builds.
    work.write("prod/kustomization.yaml", "resources: [more.yaml, ../base]\nnamespace: prod\n");
    work.write("prod/more.yaml", deployment("web").replace("replicas: 1", "replicas: 2"));
    work.write("new/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("new/map.yaml", config_map("new"));
    work.write("unread.yaml", config_map("unread"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    let web = "apps/v1 Deployment prod/web";
    let expected = format!(
        "new: added\n--- /dev/null\n+++ v1 ConfigMap new\n@@ -0,0 +1,4 @@\n+apiVersion: v1\n+kind: ConfigMap\n+metadata:\n+  name: new\n\
         prod: prod/kustomization.yaml\n--- {web}\n+++ {web}\n@@ -4,7 +4,7 @@\n   name: web\n   namespace: prod\n spec:\n-  replicas: 1\n+  replicas: 2\n   template:\n     spec:\n       containers:\n"
    );
    assert_eq!(output.success().stdout, expected);
    output.says(expect![[r#"
        new: added
        --- /dev/null
        +++ v1 ConfigMap new
        @@ -0,0 +1,4 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: new
        prod: prod/kustomization.yaml
        --- apps/v1 Deployment prod/web
        +++ apps/v1 Deployment prod/web
        @@ -4,7 +4,7 @@
           name: web
           namespace: prod
         spec:
        -  replicas: 1
        +  replicas: 2
           template:
             spec:
               containers:
        2 objects (1 added, 1 changed) in 2 of 2 affected builds since <0>
    "#]]);
    let stat = work.run_unchanged(&["diff", "HEAD", "--stat", "--exit-code"]);
    let expected = format!("new: added\n  added   v1 ConfigMap new\nprod: prod/kustomization.yaml\n  changed {web}\n");
    assert_eq!(stat.fails(1).stdout, expected);
    // Only what is asked for.
    for (word, name) in [("new", "new"), ("prod", "prod"), (":/prod", "prod"), ("prod/kustomization.yaml", "prod")] {
        assert_eq!(report(&work, &["HEAD", word])["builds"][0]["name"], name);
    }
    assert_eq!(report(&work, &["HEAD", "dev"])["builds"], Value::Array(Vec::new()));
    let mut transcript = Transcript::default();
    for word in ["podr", "unread.yaml"] {
        let output = work.run_unchanged(&["diff", "HEAD", word]);
        transcript
            .add(output.fails(2).stderr_has("is neither a directory").stderr_has(&format!("git fetch origin {word}")));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize diff HEAD podr
        error: `podr` is neither a directory with a kustomization nor a target
          hint: list the targets: git kustomize-localize targets
          hint: to compare with a commit, fetch it first: git fetch origin podr
        $ git kustomize-localize diff HEAD unread.yaml
        error: `unread.yaml` is neither a directory with a kustomization nor a target
          hint: list the targets: git kustomize-localize targets
          hint: to compare with a commit, fetch it first: git fetch origin unread.yaml
    "#]]);
    let output = work.run_unchanged(&["diff", "HEAD", "--build-arg=--output=x", "--exit-code"]);
    output.fails(2).says(expect![[r#"
        error: `--build-arg --output=x` would leave nothing to compare
          hint: remove it
    "#]]);
    // What is committed; without a word the commit before.
    work.commit("Change");
    work.write("prod/more.yaml", deployment("web"));
    assert_eq!(report(&work, &["--rev=HEAD"])["builds"].as_array().unwrap().len(), 2);
    assert_eq!(report(&work, &["HEAD~"])["builds"].as_array().unwrap().len(), 1);
    let json = report(&work, &["HEAD", "--rev=HEAD~"]);
    assert_eq!((&json["affected"], &json["commit"]), (&Value::from(0), &json["since"]), "BASE is its merge base");
    // The branch that this one follows.
    work.git(&["branch", "up", "HEAD~"]);
    work.git(&["branch", "-q", "--set-upstream-to=up"]);
    assert_eq!(report(&work, &[])["since"], work.id("up"));
    work.git(&["rm", "-q", "-r", "dev"]);
    let gone = work.run_unchanged(&["diff", "HEAD", "dev", "--stat"]);
    gone.success().says(expect![[r#"
        dev: removed
          removed v1 ConfigMap dev/made-h29d89cmmt
          removed v1 ConfigMap dev/map
          removed v1 Secret dev/hidden-cf85kd65mm
        3 objects (3 removed) in 1 of 1 affected build since <0>
    "#]]);
}

#[test]
fn a_directory_selects_the_target_that_builds_a_root_in_it() {
    let Some((_sandbox, work)) = overlays() else { return };
    work.commit_files(&[
        ("clusters/all.yaml", &flux("all", "./apps", "")),
        ("apps/web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/web/map.yaml", &config_map("web")),
        ("docs/map.yaml", &config_map("unread")),
    ]);
    work.write("apps/web/map.yaml", config_map("other"));
    work.run_unchanged(&["diff", "HEAD", "apps/web", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:1): apps/web/map.yaml
          added   v1 ConfigMap other
          removed v1 ConfigMap web
        2 objects (1 added, 1 removed) in 1 of 1 affected build since <0>
    "#]]);
    let output = ["build", "--output", "../out"];
    work.run_unchanged(&[&output[..], &["apps/web"]].concat()).success().says(expect![[r#"
        ../out has 1 build: 1 written, 0 removed
    "#]]);
    // With a directory that selects nothing, it would look as if nothing differed.
    work.run_unchanged(&["diff", "HEAD", "docs"]).fails(2).says(expect![[r#"
        error: `docs` is neither a directory with a kustomization nor a target
          hint: list the targets: git kustomize-localize targets
    "#]]);
    work.run_unchanged(&[&output[..], &["docs"]].concat()).fails(2).says(expect![[r#"
        error: `docs` is neither a directory with a kustomization nor a target
          hint: list the targets: git kustomize-localize targets
    "#]]);
    // A target is selected by the directory that it had, too.
    work.write("clusters/all.yaml", flux("all", "./moved", ""));
    work.git(&["mv", "apps", "moved"]);
    work.run_unchanged(&["diff", "HEAD", "apps", "--stat"]).success().says(expect![[r#"
        Flux Kustomization all (clusters/all.yaml:1): clusters/all.yaml
          changed kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/all
          added   v1 ConfigMap other
          removed v1 ConfigMap web
        3 objects (1 added, 1 changed, 1 removed) in 1 of 1 affected build since <0>
    "#]]);
}

#[test]
fn images_come_first_each_once_and_then_what_is_worst() {
    let Some((_sandbox, work)) = overlays() else { return };
    let images = ["nginx:1.2@sha256:0", "redis:7.0", "registry:5000/app:1.0"];
    let three = |images: [&str; 3]| {
        let one = |(name, image): (&str, &str)| deployment(name).replace("nginx", image);
        ["a", "b", "c"].into_iter().zip(images).map(one).collect::<Vec<_>>().join("---\n")
    };
    work.commit_files(&[
        ("prod/more.yaml", &three(images)),
        ("dev/kustomization.yaml", "resources: [../base, more.yaml]\nnamespace: dev\n"),
        ("dev/more.yaml", &three(images)),
        ("crds/kustomization.yaml", "resources: [crd.yaml]\n"),
        ("crds/crd.yaml", "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.x.io}\nspec:\n  versions:\n  - {name: v1, served: true}\n  - {name: v2, served: true}\n"),
    ]);
    let moved = ["nginx:1.2", "redis:latest", "registry:5000/app:1.1"];
    work.write("prod/more.yaml", three(moved));
    work.write("dev/more.yaml", three(moved));
    work.write("crds/crd.yaml", work.read("crds/crd.yaml").replace("  - {name: v1, served: true}\n", ""));
    work.write("base/map.yaml", format!("{}data: {{a: '{}'}}\n", config_map("map"), "x\n\n".repeat(400_000)));
    work.run_unchanged(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        image nginx:1.2@sha256:0 -> nginx:1.2 (2 objects, the digest was lost)
        image redis:7.0 -> redis:latest (2 objects, a floating tag)
        image registry:5000/app:1.0 -> registry:5000/app:1.1 (2 objects)
        crds: crds/crd.yaml
          changed apiextensions.k8s.io/v1 CustomResourceDefinition as.x.io
            consequence[removed-field]: a CustomResourceDefinition no longer has a version or field that objects may use (version v1)
        dev: dev/more.yaml
          changed v1 ConfigMap dev/map
          changed apps/v1 Deployment dev/a
          changed apps/v1 Deployment dev/b
          changed apps/v1 Deployment dev/c
        prod: prod/more.yaml
          changed v1 ConfigMap prod/map
          changed apps/v1 Deployment prod/a
          changed apps/v1 Deployment prod/b
          changed apps/v1 Deployment prod/c
        9 objects (9 changed) in 3 of 3 affected builds, 1 consequence since <0>
    "#]]);
    let markdown = work.run_unchanged(&["diff", "HEAD", "--format=markdown"]);
    markdown
        .success()
        .stdout_has("- <code>image nginx:1.2@sha256:0 -&gt; nginx:1.2 (2 objects, the digest was lost)</code>");
    markdown.stdout_has("</code>: 0 lines removed, 400002 added</p>");
    markdown.stdout_has("Too long for a comment: left out the lines of 2 objects.\n");
    let text = work.run_unchanged(&["diff", "HEAD"]);
    text.success().stdout_has("\ntoo large to show: 0 lines removed, 400002 added (`--format html` shows all)\n");
    let page = work.run_unchanged(&["diff", "HEAD", "--format=html"]);
    assert!(page.success().stdout.len() > 1 << 20, "all of it");
}

/// The option for a kustomize that says it is `version`, and whose output goes through a `filter` of sed.
fn kustomize(sandbox: &Sandbox, version: &str, filter: &str) -> String {
    let real = sandbox.builds().unwrap().program().display().to_string();
    let builds = format!("'{real}' \"$@\" | sed '{filter}'");
    let name = format!("kustomize-{version}");
    sandbox.script(&name, &format!("case $1 in version) echo {version} ;; *) {builds} ;; esac"));
    format!("--kustomize={}", sandbox.path("bin").join(name).display())
}

/// The option for a helm that renders every chart to a ConfigMap with its own version.
fn helm(sandbox: &Sandbox, version: u32) -> String {
    let name = format!("helm-{version}");
    let object = config_map(&format!("by-{version}")).replace('\n', "\\n");
    sandbox.script(&name, &format!("case $1 in version) echo v{version}.0.0 ;; *) printf '{object}' ;; esac"));
    format!("--helm={}", sandbox.path("bin").join(name).display())
}

#[test]
fn one_tree_is_built_by_two_programs() {
    let Some((sandbox, work)) = overlays() else { return };
    // Another version than the configuration wants is rehearsed, too.
    work.commit_files(&[
        (".kustomize-localize", "kustomize: \"5.7\"\nhelm: true\nrepository: [{url: 'https://github.com/acme/fleet'}]\n"),
        ("argo.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web}\nspec: {destination: {namespace: prod}, source: {repoURL: 'https://github.com/acme/fleet', path: chart}}\n"),
        ("chart/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
    ]);
    let old = kustomize(&sandbox, "v5.7.1", "");
    let new = kustomize(&sandbox, "v5.8.0", "s/replicas: 1/replicas: 2/");
    let (helm3, helm4) = (helm(&sandbox, 3), helm(&sandbox, 4));
    let both = ["diff", &old, &new, &helm3];
    work.run_unchanged(&both).success().says(expect![[r#"
        prod: kustomize/v5.7.1 with helm/v3.0.0 -> kustomize/v5.8.0 with helm/v3.0.0
        --- apps/v1 Deployment prod/web
        +++ apps/v1 Deployment prod/web
        @@ -4,7 +4,7 @@
           name: web
           namespace: prod
         spec:
        -  replicas: 1
        +  replicas: 2
           template:
             spec:
               containers:
        1 object (1 changed) in 1 of 3 builds (kustomize/v5.7.1 with helm/v3.0.0 -> kustomize/v5.8.0 with helm/v3.0.0)
    "#]]);
    work.run_unchanged(&[&both[..], &[&helm4, "--stat", "--exit-code"]].concat()).fails(1).says(expect![[r#"
        Argo CD Application web (argo.yaml:1): kustomize/v5.7.1 with helm/v3.0.0 -> kustomize/v5.8.0 with helm/v4.0.0
          removed v1 ConfigMap by-3
          added   v1 ConfigMap by-4
        prod: kustomize/v5.7.1 with helm/v3.0.0 -> kustomize/v5.8.0 with helm/v4.0.0
          changed apps/v1 Deployment prod/web
        3 objects (1 added, 1 changed, 1 removed) in 2 of 3 builds (kustomize/v5.7.1 with helm/v3.0.0 -> kustomize/v5.8.0 with helm/v4.0.0)
    "#]]);
    let json = work.run_unchanged(&[&both[..], &["--rev=HEAD", "prod", "--format=json"]].concat());
    let json: Value = serde_json::from_str(&json.success().stdout).unwrap();
    assert_eq!(json["programs"][0], "kustomize/v5.7.1 with helm/v3.0.0");
    assert_eq!((&json["commit"], &json["affected"]), (&Value::from(work.id("HEAD")), &Value::from(1)));
    work.run_unchanged(&["diff", &old, &old, &helm3]).success().says(expect![[r#"
        nothing differs in 3 builds (kustomize/v5.7.1 with helm/v3.0.0 -> kustomize/v5.7.1 with helm/v3.0.0)
    "#]]);
}

#[test]
fn two_programs_are_of_one_kind_and_build_one_tree() {
    let Some((sandbox, work)) = overlays() else { return };
    let (old, new) = (kustomize(&sandbox, "v5.7.1", ""), kustomize(&sandbox, "v5.8.0", ""));
    work.run_unchanged(&["diff", "main", &old, &new]).fails(2).says(expect![[r#"
        error: `main` is a commit, and both programs build one tree
          hint: to build its tree: --rev main
    "#]]);
    // In a directory a word is a path from there.
    work.git(&["branch", "web"]);
    work.commit_files(&[
        ("apps/web/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/web/map.yaml", &config_map("a")),
    ]);
    sandbox.run(&work.path().join("apps"), &["diff", "web", &old, &new]).success().says(expect![[r#"
        nothing differs in 1 build (kustomize/v5.7.1 -> kustomize/v5.8.0)
    "#]]);
    work.run_unchanged(&["diff", "podr", &old, &new]).fails(2).says(expect![[r#"
        error: `podr` is neither a directory with a kustomization nor a target
          hint: list the targets: git kustomize-localize targets
    "#]]);
    work.run_unchanged(&["diff", &old, &new, &old]).fails(2).says(expect![[r#"
        error: at most two programs are compared
          hint: give `--kustomize` or `--helm` twice
    "#]]);
    work.run_unchanged(&["diff", &old, &new, "--helm=gone"]).fails(2).says(expect![[r#"
        error: `/home/me/work/gone` is not an executable file
          hint: set --helm to the executable of helm
    "#]]);
}

#[test]
fn only_a_word_that_is_no_path_is_to_be_fetched() {
    let Some((_sandbox, work)) = overlays() else { return };
    let mut transcript = Transcript::default();
    for word in ["prod", "release"] {
        transcript.add(work.run_unchanged(&["diff", word]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize diff prod
        error: no commit to compare with
          hint: name one: git kustomize-localize diff BASE prod
        $ git kustomize-localize diff release
        error: no commit to compare with
          hint: fetch it first: git fetch origin release
    "#]]);
}

#[test]
fn a_base_that_is_named_is_built() {
    let Some((_sandbox, work)) = overlays() else { return };
    work.write("base/map.yaml", config_map("other"));
    let output = work.run_unchanged(&["diff", "HEAD", "base", "--exit-code"]);
    output.fails(1).says(expect![[r#"
        base: base
        --- v1 ConfigMap map
        +++ /dev/null
        @@ -1,4 +0,0 @@
        -apiVersion: v1
        -kind: ConfigMap
        -metadata:
        -  name: map
        --- /dev/null
        +++ v1 ConfigMap other
        @@ -0,0 +1,4 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: other
        2 objects (1 added, 1 removed) in 1 of 1 affected build since <0>
    "#]]);
    work.run_unchanged(&["diff", "HEAD", "base", "dev"]).success().says(expect![[r#"
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
            base: base
            --- v1 ConfigMap map
            +++ /dev/null
            @@ -1,4 +0,0 @@
            -apiVersion: v1
            -kind: ConfigMap
            -metadata:
            -  name: map
            --- /dev/null
            +++ v1 ConfigMap other
            @@ -0,0 +1,4 @@
            +apiVersion: v1
            +kind: ConfigMap
            +metadata:
            +  name: other
            4 objects (2 added, 2 removed) in 2 of 2 affected builds since <0>
        "#]]);
    work.git(&["checkout", "--quiet", "."]);
    work.write("prod/more.yaml", deployment("other"));
    work.run_unchanged(&["diff", "HEAD", "base", "--exit-code"]).success().says(expect![[r#"
        no build is affected since <0>
    "#]]);
}

#[test]
fn a_generated_name_is_one_object_and_a_secret_is_not_shown() {
    let Some((_sandbox, work)) = overlays() else { return };
    work.write("base/kustomization.yaml", GENERATED.replace("a=1", "a=2"));
    work.write("base/secret.env", "password=hunter3\nnew=hunter4\n");
    let json = report(&work, &["HEAD"]);
    for build in json["builds"].as_array().unwrap() {
        let objects = build["objects"].as_array().unwrap();
        let kinds = objects.iter().map(|one| (one["change"].as_str().unwrap(), one["was"].as_str().unwrap()));
        let kinds: Vec<&str> =
            kinds.filter(|(change, was)| *change == "changed" && was.contains('-')).map(|one| one.1).collect();
        assert_eq!(kinds.len(), objects.len(), "{objects:?}");
        assert!(kinds[0].starts_with("v1 ConfigMap ") && kinds[1].starts_with("v1 Secret ") && kinds.len() == 2);
    }

    for format in ["human", "json", "markdown", "html"] {
        let output = work.run_unchanged(&["diff", "HEAD", "--format", format]);

        output.success().stdout_has("password: …(12 bytes, sha256 b073…)").stdout_has("new: …(12 bytes, sha256 ");
        // As it is, and as base64 has it.
        for secret in ["hunter", "aHVudGVy"] {
            assert!(!output.stdout.contains(secret), "{}", output.stdout);
        }
    }
}

#[test]
fn an_update_says_what_moved() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    let url = "https://github.com/acme/lib//web?ref=main";
    world.commit(&[(
        "web/kustomization.yaml",
        &format!("resources: ['{url}', 'https://files.example.com/v1/app.yaml']\n"),
    )]);
    let work = &world.work;
    work.run(&["lock"]).success();
    work.commit("Lock");
    let lib = world.upstream("acme/lib");
    let was = lib.id("main");
    for value in ["1", "2"] {
        lib.write("web/map.yaml", format!("{}data: {{value: \"{value}\"}}\n", config_map("lib")));
        lib.commit("Change");
    }
    // Before it is written, and with it.
    let dry = work.run_unchanged(&["update", "--dry-run", "--diff"]);
    dry.success().says(expect![[r#"
        would write kustomize-localize.lock: 3 remote references
          moved https://github.com/acme/lib?ref=main <0> -> <1>: 1 object changes
            … days old
            <1> Change
            <2> Change
          file kustomize-localize.lock (…)
        web: https://github.com/acme/lib?ref=main: <0> -> <1>, 2 commits
        --- v1 ConfigMap lib
        +++ v1 ConfigMap lib
        @@ -1,4 +1,6 @@
         apiVersion: v1
        +data:
        +  value: "2"
         kind: ConfigMap
         metadata:
           name: lib
        1 object (1 changed) in 1 of 1 affected build
    "#]]);
    let output = work.run(&["update", "--diff", "--format=json"]);
    let json: Value = serde_json::from_str(&output.success().stdout).unwrap();
    assert_eq!(json["diff"]["builds"][0]["objects"][0]["id"], "v1 ConfigMap lib");
    let because = format!("https://github.com/acme/lib?ref=main: {} -> {}", &was[..12], &lib.id("main")[..12]);
    let json = report(work, &["HEAD"]);
    assert_eq!(json["builds"][0]["because"], format!("{because}, 2 commits"));
    assert_eq!(json["builds"][0]["objects"][0]["id"], "v1 ConfigMap lib");
    // Both sides are in the cache. How far it moved only the server tells.
    world.server.forget();
    assert_eq!(report(work, &["HEAD", "--offline"])["builds"][0]["because"], because);
    assert_eq!(world.server.log(), crate::support::NONE);
    // A runner that has no cache fetches what the locks hold, and offline says what it lacks.
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    let offline = work.run_unchanged(&["diff", "HEAD", "--offline", "--exit-code"]);
    offline
        .fails(1).says(expect![[r#"
            web: https://github.com/acme/lib?ref=main: <0> -> <1>
              not built (old side): web/kustomization.yaml:1:13: resources[0]: commit <0> of https://github.com/acme/lib is not in the cache
              not built (old side): web/kustomization.yaml:1:58: resources[1]: https://files.example.com/v1/app.yaml is not in the cache
              not built (new side): web/kustomization.yaml:1:13: resources[0]: commit <1> of https://github.com/acme/lib is not in the cache
              not built (new side): web/kustomization.yaml:1:58: resources[1]: https://files.example.com/v1/app.yaml is not in the cache
            hint: run once without `--offline`
            1 affected build could not be compared since <2>; unknown: 1 root
        "#]]);
    assert_eq!(report(work, &["HEAD"])["builds"][0]["objects"][0]["id"], "v1 ConfigMap lib");
    // What no lock holds is not fetched.
    work.write("web/kustomization.yaml", "resources: ['https://github.com/acme/lib//other?ref=main']\n");
    work.write("new/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("new/map.yaml", config_map("new"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
        new: added
        --- /dev/null
        +++ v1 ConfigMap new
        @@ -0,0 +1,4 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: new
        web: https://github.com/acme/lib?ref=main: <0> -> <1>, 2 commits
          not built (new side): web/kustomization.yaml:1:13: resources[0]: `other` of `https://github.com/acme/lib//other?ref=main` is not locked
        hint: lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
        1 object (1 added) in 1 of 2 affected builds since <2>; unknown: 1 root
    "#]]);
}

#[test]
fn a_base_without_a_lock_is_compared_as_far_as_it_can_be() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    let web = |reference: &str| format!("resources: ['https://github.com/acme/lib//web?ref={reference}']\n");
    world.commit(&[
        ("web/kustomization.yaml", &web("v1")),
        ("same/kustomization.yaml", &web("main")),
        ("own/kustomization.yaml", "resources: [map.yaml]\n"),
    ]);
    let work = &world.work;
    work.write("own/map.yaml", config_map("own"));
    let base = work.commit("Without a lock");
    let upstream = world.upstream("acme/lib");
    upstream.commit_files(&[("web/map.yaml", &(config_map("lib") + "data: {v: main}\n"))]);
    work.write("web/kustomization.yaml", web("main"));
    work.write("same/kustomization.yaml", web("main") + "namePrefix: a-\n");
    work.write("own/map.yaml", config_map("another"));
    work.run(&["lock"]).success();
    let output = work.run_unchanged(&["diff", "HEAD"]);
    let taken = format!("{} has no lock: its remote references were built as the new lock has them", &base[..12]);
    let today = "not locked, so built as of today: https://github.com/acme/lib?ref=v1";
    output.success().stdout_has("own: own/map.yaml\n").lacks("hint:").lacks("not built").lacks("unknown");
    output.stderr_has(&format!("warning: {taken}\nwarning: {today}\n"));
    // The first bump is compared.
    output.stdout_has("web: https://github.com/acme/lib?ref=main\n--- v1 ConfigMap lib\n+++ v1 ConfigMap lib\n");
    // What is named as before is built from what the change has locked.
    output.stdout_has("\n--- v1 ConfigMap deep\n").stdout_has("\n+++ v1 ConfigMap a-lib\n");
    let json = report(work, &["HEAD"]);
    let source = serde_json::json!(["https://github.com/acme/lib?ref=v1"]);
    assert_eq!((&json["unlocked"], &json["takes_lock"]), (&source, &Value::Bool(true)));
    let markdown = work.run_unchanged(&["diff", "HEAD", "--format=markdown"]);
    markdown.success().stdout_has(&format!("{taken}</code>")).stdout_has(&format!("{today}</code>"));
    // Nothing else asks for it: the hint does what it says.
    let offline = work.run_unchanged(&["diff", "HEAD", "web", "--offline", "--exit-code"]);
    offline.fails(1).says(expect![[r#"
        web: https://github.com/acme/lib?ref=main
          not built (old side): web/kustomization.yaml:1:13: resources[0]: https://github.com/acme/lib?ref=v1 is not in the cache
        warning: <0> has no lock: its remote references were built as the new lock has them
        hint: run once without `--offline`
        1 affected build could not be compared since <0>; unknown: 1 root
    "#]]);
    // The change that adopts the lock, and nothing else.
    work.git(&["checkout", "--quiet", "--", "own", "same", "web"]);
    work.run(&["lock"]).success();
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
        warning: <0> has no lock: its remote references were built as the new lock has them
        nothing differs in 2 affected builds since <0>
    "#]]);
    // Without a lock on either side nothing is.
    work.remove("kustomize-localize.lock");
    work.write("web/kustomization.yaml", web("main"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
        web: web/kustomization.yaml
        --- v1 ConfigMap lib
        +++ v1 ConfigMap lib
        @@ -1,4 +1,6 @@
         apiVersion: v1
        +data:
        +  v: main
         kind: ConfigMap
         metadata:
           name: lib
        warning: not locked, so built as of today: https://github.com/acme/deep?ref=v1, https://github.com/acme/lib?ref=main, https://github.com/acme/lib?ref=v1
        1 object (1 changed) in 1 of 1 affected build since <0>
    "#]]);
    // A commit cannot be something else tomorrow.
    work.write("web/kustomization.yaml", web(&upstream.id("main")));
    work.commit("A commit");
    work.write("web/kustomization.yaml", web(&upstream.id("main")) + "namePrefix: a-\n");
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
            web: web/kustomization.yaml
            --- /dev/null
            +++ v1 ConfigMap a-deep
            @@ -0,0 +1,4 @@
            +apiVersion: v1
            +kind: ConfigMap
            +metadata:
            +  name: a-deep
            --- /dev/null
            +++ v1 ConfigMap a-lib
            @@ -0,0 +1,6 @@
            +apiVersion: v1
            +data:
            +  v: main
            +kind: ConfigMap
            +metadata:
            +  name: a-lib
            --- v1 ConfigMap deep
            +++ /dev/null
            @@ -1,4 +0,0 @@
            -apiVersion: v1
            -kind: ConfigMap
            -metadata:
            -  name: deep
            --- v1 ConfigMap lib
            +++ /dev/null
            @@ -1,6 +0,0 @@
            -apiVersion: v1
            -data:
            -  v: main
            -kind: ConfigMap
            -metadata:
            -  name: lib
            warning: not locked, so built as of today: https://github.com/acme/deep?ref=v1
            4 objects (2 added, 2 removed) in 1 of 1 affected build since <0>
        "#]]);
    work.write("web/kustomization.yaml", web("main"));
    // A lock that lacks something says what, and has no hint either: it is committed.
    work.write("kustomize-localize.lock", "version: 1\n");
    work.commit("An empty lock");
    work.write("web/kustomization.yaml", web("main") + "namePrefix: a-\n");
    work.run(&["lock"]).success();
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
        same: https://github.com/acme/lib?ref=main
          not built (old side): same/kustomization.yaml:1:13: resources[0]: `https://github.com/acme/lib//web?ref=main` is neither localized nor locked
        web: https://github.com/acme/lib?ref=main
          not built (old side): web/kustomization.yaml:1:13: resources[0]: `https://github.com/acme/lib//web?ref=main` is neither localized nor locked
        2 affected builds could not be compared since <0>; unknown: 2 roots
    "#]]);
}

#[test]
fn what_deploys_it_is_compared_where_the_base_has_no_lock() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    world.commit(&[
        ("web/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=main']\n"),
        ("clusters/web.yaml", &flux("web", "./web", "  prune: true\n")),
    ]);
    let work = &world.work;
    work.write("clusters/web.yaml", flux("web", "./web", "  prune: false\n"));
    work.write("web/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n");
    work.run(&["lock"]).success();
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
        Flux Kustomization web (clusters/web.yaml:1): clusters/web.yaml

        consequence[prune-switched]: pruning is switched (off: removed objects stay)
        --- kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web
        +++ kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web
        @@ -5,7 +5,7 @@
           namespace: flux-system
         spec:
           path: ./web
        -  prune: true
        +  prune: false
           sourceRef:
             kind: GitRepository
             name: flux-system
        warning: <0> has no lock: its remote references were built as the new lock has them
        warning: not locked, so built as of today: https://github.com/acme/lib?ref=main
        1 object (1 changed) in 1 of 1 affected build, 1 consequence since <0>
    "#]]);
}

#[test]
fn what_differs_alike_is_shown_once() {
    let Some((_sandbox, work)) = overlays() else { return };
    let rings = ["a", "b", "c", "d", "e"];
    let long = "l".repeat(230);
    let object = |name: &str| flux(name, "./prod", "");
    let all: String = rings.iter().copied().chain([&*long]).map(object).collect();
    let parent = "resources: [all.yaml]\npatches:\n- patch: '[{\"op\": \"add\", \"path\": \"/spec/images\", \"value\": []}]'\n  target: {kind: Kustomization}\n";
    work.commit_files(&[("clusters/all.yaml", &all), ("clusters/kustomization.yaml", parent)]);
    work.write("prod/more.yaml", deployment("web").replace("replicas: 1", "replicas: 2"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    let text = &output.success().stdout;
    assert_eq!(text.matches("--- apps/v1 Deployment prod/web").count(), 1, "{text}");
    assert!(
        text.starts_with("Flux Kustomization a (clusters/all.yaml:1): prod/more.yaml\nFlux Kustomization b "),
        "{text}"
    );
    assert!(text.contains("\n  and 1 more\n  defined by the build of clusters/kustomization.yaml\n--- "), "{text}");
    output.says(expect![[r#"
        Flux Kustomization a (clusters/all.yaml:1): prod/more.yaml
        Flux Kustomization b (clusters/all.yaml:8): prod/more.yaml
        Flux Kustomization c (clusters/all.yaml:15): prod/more.yaml
        Flux Kustomization d (clusters/all.yaml:22): prod/more.yaml
        Flux Kustomization e (clusters/all.yaml:29): prod/more.yaml
          and 1 more
          defined by the build of clusters/kustomization.yaml
        --- apps/v1 Deployment prod/web
        +++ apps/v1 Deployment prod/web
        @@ -4,7 +4,7 @@
           name: web
           namespace: prod
         spec:
        -  replicas: 1
        +  replicas: 2
           template:
             spec:
               containers:
        6 objects (6 changed) in 6 of 6 affected builds since <0>
    "#]]);
    let output = work.run_unchanged(&["diff", "HEAD", "-v"]);
    output.success().says(expect![[r#"
        Flux Kustomization a (clusters/all.yaml:1): prod/more.yaml
        Flux Kustomization b (clusters/all.yaml:8): prod/more.yaml
        Flux Kustomization c (clusters/all.yaml:15): prod/more.yaml
        Flux Kustomization d (clusters/all.yaml:22): prod/more.yaml
        Flux Kustomization e (clusters/all.yaml:29): prod/more.yaml
        Flux Kustomization lllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllllll…lllllllllllllllllllllllll (clusters/all.yaml:36): prod/more.yaml
          defined by the build of clusters/kustomization.yaml
        --- apps/v1 Deployment prod/web
        +++ apps/v1 Deployment prod/web
        @@ -4,7 +4,7 @@
           name: web
           namespace: prod
         spec:
        -  replicas: 1
        +  replicas: 2
           template:
             spec:
               containers:
        6 objects (6 changed) in 6 of 6 affected builds since <0>
    "#]]);
    assert!(output.stdout.lines().all(|line| line.chars().count() <= 200), "{}", output.stdout);
    // Where it stands tells it from others of that beginning.
    let output = work.run_unchanged(&["diff", "HEAD", "--format=markdown"]);
    assert_eq!(output.success().stdout.matches("<details>").count(), 1);
    assert_eq!(report(&work, &["HEAD"])["builds"].as_array().unwrap().len(), 6);
    work.write("prod/more.yaml", deployment("web").replace("replicas: 1", "replicas: 0"));
    let json = report(&work, &["HEAD"]);
    let consequences = json["consequences"].as_array().unwrap();
    assert_eq!(consequences.len(), 6);
    assert!(consequences.iter().all(|one| one["built_by"] == "clusters/kustomization.yaml"), "{consequences:?}");
    // One error is printed once.
    work.write("prod/kustomization.yaml", "resources: [gone.yaml]\n");
    let output = work.run_unchanged(&["diff", "HEAD"]);
    assert_eq!(output.success().stdout.matches("not built").count(), 1, "{}", output.stdout);
    output.says(expect![[r#"
        Flux Kustomization a (clusters/all.yaml:1): prod/kustomization.yaml
        Flux Kustomization b (clusters/all.yaml:8): prod/kustomization.yaml
        Flux Kustomization c (clusters/all.yaml:15): prod/kustomization.yaml
        Flux Kustomization d (clusters/all.yaml:22): prod/kustomization.yaml
        Flux Kustomization e (clusters/all.yaml:29): prod/kustomization.yaml
          and 1 more
          defined by the build of clusters/kustomization.yaml
          not built (new side): accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open prod/gone.yaml: no suc…prod/gone.yaml' : lstat prod/gone.yaml: no such file or directory
        6 affected builds could not be compared since <0>; unknown: 6 targets
    "#]]);
    assert!(!output.stderr.contains("gone.yaml"), "{}", output.stderr);
    work.commit("Break");
    work.write("prod/more.yaml", "");
    work.write("prod/kustomization.yaml", "resources: [gone.yaml]\nnamePrefix: a-\n");
    let output = work.run_unchanged(&["diff", "HEAD"]);
    output.success().says(expect![[r#"
        Flux Kustomization a (clusters/all.yaml:1): prod/kustomization.yaml
        Flux Kustomization b (clusters/all.yaml:8): prod/kustomization.yaml
        Flux Kustomization c (clusters/all.yaml:15): prod/kustomization.yaml
        Flux Kustomization d (clusters/all.yaml:22): prod/kustomization.yaml
        Flux Kustomization e (clusters/all.yaml:29): prod/kustomization.yaml
          and 1 more
          defined by the build of clusters/kustomization.yaml
          not built: accumulating resources: accumulation err='accumulating resources from 'gone.yaml': open prod/gone.yaml: no such file or d…prod/gone.yaml' : lstat prod/gone.yaml: no such file or directory
        6 affected builds could not be compared since <0>; unknown: 6 targets
    "#]]);
}

#[test]
fn an_update_sums_up_what_each_entry_brings_about() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n";
    let root = "resources: [map.yaml]\n";
    for name in ["deep", "none", "gone"] {
        world.upstream_of(&format!("acme/{name}"), &[("kustomization.yaml", root), ("map.yaml", set)]);
    }
    let deep = "resources: ['https://github.com/acme/deep?ref=v1']\n";
    world.upstream_of("acme/lib", &[("kustomization.yaml", deep)]);
    let url = |name: &str, reference: &str| format!("resources: ['https://github.com/acme/{name}?ref={reference}']\n");
    world.commit(&[
        ("lib/kustomization.yaml", &url("lib", "main")),
        ("none/kustomization.yaml", &url("none", "main")),
        ("gone/kustomization.yaml", &url("gone", "v1")),
    ]);
    let work = &world.work;
    work.run(&["lock"]).success();
    work.commit("Lock");
    // What an upstream names counts for both.
    let deep = world.upstream("acme/deep");
    deep.write("map.yaml", config_map("deep"));
    deep.commit("Change");
    deep.git(&["tag", "v2"]);
    world.upstream("acme/lib").commit_files(&[("kustomization.yaml", &url("deep", "v2"))]);
    world.upstream("acme/none").commit_files(&[("README.md", "none\n")]);
    let output = work.run_unchanged(&["update", "--dry-run", "--diff"]);
    let line = |start: &str| output.stdout.lines().find(|line| line.starts_with(start)).unwrap_or_default().to_owned();
    for (start, sum) in [
        ("  moved https://github.com/acme/lib?ref=main ", ": 2 objects change, 1 consequence"),
        ("  added https://github.com/acme/deep?ref=v2 ", ": 2 objects change, 1 consequence"),
        ("  moved https://github.com/acme/none?ref=main ", ": 0 objects change"),
    ] {
        assert!(line(start).ends_with(sum), "{start}: {}", output.success().stdout);
    }
    // Without it nothing is claimed.
    work.run_unchanged(&["update", "--dry-run"]).success().lacks("objects change");
    // What moved is named although its server is gone.
    world.upstream("acme/gone").git(&["tag", "v2"]);
    world.upstream("acme/gone").commit_files(&[("kustomization.yaml", "namePrefix: a-\nresources: [map.yaml]\n")]);
    world.upstream("acme/gone").git(&["tag", "-f", "v2"]);
    work.run(&["update", "https://github.com/acme/gone", "--to", "v2"]).success();
    std::fs::remove_dir_all(world.sandbox.path("upstream/acme/gone")).unwrap();
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    let output = work.run_unchanged(&["diff", "HEAD", "--exit-code"]);
    output.fails(1).stdout_has("gone: https://github.com/acme/gone: v1 -> v2\n  not built: ");
    output.stderr_has("1 affected build could not be compared since ");
    assert_eq!(report(work, &["HEAD"])["moved"][0]["not_known"], 1);
}

#[test]
fn what_is_renamed_is_one_line() {
    let Some((_sandbox, work)) = overlays() else { return };
    let set = "apiVersion: apps/v1\nkind: StatefulSet\nmetadata: {name: db}\n";
    work.commit_files(&[("prod/more.yaml", set), ("clusters/web.yaml", &flux("web", "./prod", "  prune: true\n"))]);
    work.git(&["mv", "dev", "stage"]);
    work.write("clusters/web.yaml", flux("web2", "./prod", "  prune: true\n"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    let web = "Flux Kustomization web";
    let expected = format!(
        "{web}2 (clusters/web.yaml:1): was {web} (clusters/web.yaml:1), all objects are equal\n  consequence[removed-target]: {web} (clusters/web.yaml:1): a target is removed (its objects are deleted with it)\n  consequence[removed-statefulset]: apps/v1 StatefulSet prod/db: a StatefulSet is removed (deleted with the target, unless {web}2 (clusters/web.yaml:1) takes it over)\nstage: was dev, all objects are equal\n"
    );
    assert_eq!(output.success().stdout, expected);
    output.says(expect![[r#"
        Flux Kustomization web2 (clusters/web.yaml:1): was Flux Kustomization web (clusters/web.yaml:1), all objects are equal
          consequence[removed-target]: Flux Kustomization web (clusters/web.yaml:1): a target is removed (its objects are deleted with it)
          consequence[removed-statefulset]: apps/v1 StatefulSet prod/db: a StatefulSet is removed (deleted with the target, unless Flux Kustomization web2 (clusters/web.yaml:1) takes it over)
        stage: was dev, all objects are equal
        0 objects in 2 of 4 affected builds, 2 consequences since <0>
    "#]]);
    // What differs as well is not renamed.
    work.write("stage/kustomization.yaml", "resources: [../base]\nnamespace: stage\n");
    work.run_unchanged(&["diff", "HEAD"]).success().stdout_has("dev: removed\n").stdout_has("\nstage: added\n");
}

#[test]
fn what_cannot_be_compared_is_an_error() {
    let Some((sandbox, work)) = overlays() else { return };
    work.run_unchanged(&["diff", "--rev=nowhere"]).fails(2).says(expect![[r#"
        error: unknown revision `nowhere`
          hint: fetch it first, or name another one: git log --oneline --all
    "#]]);
    work.write("kustomize-localize.lock", "version: 9\n");
    work.commit("Break");
    work.git(&["rm", "-q", "kustomize-localize.lock"]);
    work.run_unchanged(&["diff", "HEAD"]).fails(2).says(expect![[r#"
        error: kustomize-localize.lock:1:1: at <0>: unknown version 9 of the lock
          hint: the lock is generated: restore it from git instead of editing it, or upgrade this program if a newer one wrote it
    "#]]);
    work.commit("Mend");
    let shallow = sandbox.clone_with(&work, "shallow", &["--depth=1", "--no-local"]);
    let first = work.id("HEAD~2");
    shallow.git(&["fetch", "-q", "--depth=1", "origin", &first]);
    shallow.run_unchanged(&["diff", &first]).fails(2).says(expect![[r#"
        error: this shallow clone lacks the merge base of <0> and <1>
          hint: git fetch --unshallow
    "#]]);
    // What git leaves out of the working tree is not gone.
    let sparse = sandbox.clone_of(&work, "sparse");
    sparse.git(&["sparse-checkout", "set", "dev"]);
    for args in [&["diff", "HEAD"][..], &["diff", "HEAD", "--rev=HEAD"]] {
        assert_eq!(sparse.run_unchanged(args).success().stdout, "");
    }
    // A file that no build reads, and that only a filter gives.
    work.commit_files(&[(".gitattributes", "*.png filter=lfs\n"), ("logo.png", "1\n")]);
    work.write("logo.png", "2\n");
    assert_eq!(work.run_unchanged(&["diff", "HEAD"]).success().stdout, "");
    work.git(&["checkout", "-q", "logo.png"]);
    // A history of its own.
    work.git(&["checkout", "-q", "--orphan", "other"]);
    work.git(&["rm", "-q", "-r", "-f", "dev"]);
    work.commit("Begin");
    work.run_unchanged(&["diff", "main", "--stat"]).success().says(expect![[r#"
        dev: removed
          removed v1 ConfigMap dev/made-h29d89cmmt
          removed v1 ConfigMap dev/map
          removed v1 Secret dev/hidden-cf85kd65mm
        3 objects (3 removed) in 1 of 1 affected build since <0>
    "#]]);
    work.run_unchanged(&["diff", "main", "--format=sarif"]).fails(2).says(expect![[r#"
        error: unsupported format `sarif`: expected one of human, json, markdown, html
    "#]]);
}

#[test]
fn nothing_in_an_object_fakes_a_line() {
    let Some((_sandbox, work)) = overlays() else { return };
    let text = "    ::error::x\n    ```\n    </details>\n    \u{202e} https://me:hunter2@h.example.com/\n";
    let map = config_map("'@all ::warning::'");
    work.write("prod/more.yaml", format!("{map}data:\n  escape: \"\\e[2J\"\n  text: |\n{text}"));

    for format in ["human", "json", "markdown", "html"] {
        let output = work.run_unchanged(&["diff", "HEAD", "--format", format]);
        output.success().lacks("hunter2").lacks("\u{202e}").lacks("\u{1b}");
        assert!(!output.stdout.lines().any(|line| line.trim_start().starts_with("::")), "{}", output.stdout);
    }

    let output = work.run_unchanged(&["diff", "HEAD", "--format=markdown"]);
    output.says(expect![[r#"
        <!-- git-kustomize-localize diff -->
        **2 objects (1 added, 1 removed) in 1 of 1 affected build** in <code>work</code>, <code><0> to the working tree</code>

        <details><summary><code>prod</code>: <code>prod/more.yaml</code> (2 objects)</summary>

        <p>added <code>v1 ConfigMap prod/@all ::warning::</code></p>

        ````diff
        @@ -0,0 +1,12 @@
        +apiVersion: v1
        +data:
        +  escape: "\e[2J"
        +  text: |
        +    ::error::x
        +    ```
        +    </details>
        +    \u{202e} https://…h.example.com/
        +kind: ConfigMap
        +metadata:
        +  name: '@all ::warning::'
        +  namespace: prod
        ````

        <p>removed <code>apps/v1 Deployment prod/web</code></p>

        ```diff
        @@ -1,12 +0,0 @@
        -apiVersion: apps/v1
        -kind: Deployment
        -metadata:
        -  name: web
        -  namespace: prod
        -spec:
        -  replicas: 1
        -  template:
        -    spec:
        -      containers:
        -      - image: nginx
        -        name: main
        ```

        </details>

        2 objects (1 added, 1 removed) in 1 of 1 affected build since <0>
    "#]]);
}

#[test]
fn a_word_that_is_a_commit_and_a_directory_is_refused() {
    let Some((_sandbox, work)) = overlays() else { return };
    work.write("dev/kustomization.yaml", "resources: [../base]\nnamespace: other\n");
    work.commit("change");
    work.run_unchanged(&["diff", "dev", "--exit-code"]).fails(1);
    work.git(&["branch", "dev"]);
    work.run_unchanged(&["diff", "dev", "--exit-code"]).fails(2).says(expect![[r#"
        error: `dev` names both a commit and a directory with kustomizations
          hint: name the directory: ./dev
          hint: name the commit: <0>
    "#]]);
    work.run_unchanged(&["diff", "./dev", "--exit-code"]).fails(1);
    // One without a kustomization is the commit.
    work.git(&["branch", "clusters"]);
    work.write("clusters/README.md", "");
    work.run_unchanged(&["diff", "clusters", "--exit-code"]).success();
}
