//! What `diff` shows of targets, as their engines build them.

use expect_test::expect;

use super::*;

#[test]
fn a_target_is_compared_as_its_engine_builds_it() {
    let Some((_sandbox, work)) = overlays() else { return };
    let flux = |path: &str, patch: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: web, namespace: flux-system}}\nspec:\n  path: {path}\n  sourceRef: {{kind: GitRepository, name: flux-system}}\n  namePrefix: {patch}\n"
        )
    };
    work.commit_files(&[("clusters/web.yaml", &flux("./prod", "a-"))]);
    work.write("prod/more.yaml", deployment("web").replace("replicas: 1", "replicas: 2"));
    let stat =
        |word: &[&str]| work.run_unchanged(&[&["diff", "HEAD", "--stat"], word].concat()).success().stdout.clone();
    let expected =
        "Flux Kustomization web (clusters/web.yaml:1): prod/more.yaml\n  changed apps/v1 Deployment prod/a-web\n";
    for word in [&[][..], &["web"], &["flux-system/web"], &["clusters/web.yaml:1"]] {
        assert_eq!(stat(word), expected);
    }
    assert_eq!(stat(&["prod"]), expected);
    assert_eq!(stat(&["dev"]), "");
    // What only the object changes.
    work.git(&["checkout", "-q", "prod"]);
    work.write("clusters/web.yaml", flux("./prod", "b-"));
    let renamed = stat(&[]);
    assert!(
        renamed.starts_with("Flux Kustomization web (clusters/web.yaml:1): clusters/web.yaml\n  changed kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web\n  removed "),
        "{renamed}"
    );
    assert!(renamed.contains("\n  added   apps/v1 Deployment prod/b-web\n"), "{renamed}");
    // What deploys another revision is what it was; and a root that nothing deploys any more is one.
    let source = "---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: flux-system, namespace: flux-system}\nspec: {url: https://github.com/acme/fleet, ref: {tag: v1}}\n";
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    work.commit_files(&[("clusters/web.yaml", &(flux("./prod", "a-") + source))]);
    work.write("prod/more.yaml", deployment("web").replace("replicas: 1", "replicas: 3"));
    assert_eq!(stat(&[]), "prod: prod/more.yaml\n  changed apps/v1 Deployment prod/web\n");
    work.write("clusters/web.yaml", flux("./prod", "a-") + &source.replace("v1}", "v2}"));
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
            Flux Kustomization web (clusters/web.yaml:1): clusters/web.yaml
              not built (old side): it deploys another revision, `v1`
              not built (new side): it deploys another revision, `v2`
            prod: prod/more.yaml
            --- apps/v1 Deployment prod/web
            +++ apps/v1 Deployment prod/web
            @@ -4,7 +4,7 @@
               name: web
               namespace: prod
             spec:
            -  replicas: 1
            +  replicas: 3
               template:
                 spec:
                   containers:
            1 object (1 changed) in 1 of 2 affected builds since <0>; unknown: 1 target
        "#]]);
    work.commit_files(&[("clusters/web.yaml", &flux("./prod", "a-"))]);
    work.write("prod/more.yaml", deployment("web"));
    work.remove("clusters/web.yaml");
    let both = stat(&[]);
    assert!(both.contains("(clusters/web.yaml:1): removed\n") && both.contains("\nprod: prod/more.yaml\n"), "{both}");
    work.git(&["checkout", "-q", "clusters"]);
    // What could not be read is said.
    work.write("clusters/bad.yaml", flux("[x", "a-"));
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
        Flux Kustomization web (clusters/web.yaml:1): prod/more.yaml
        --- apps/v1 Deployment prod/a-web
        +++ apps/v1 Deployment prod/a-web
        @@ -4,7 +4,7 @@
           name: a-web
           namespace: prod
         spec:
        -  replicas: 3
        +  replicas: 1
           template:
             spec:
               containers:
        clusters/bad.yaml:6: unknown: not YAML: illegal placement of ':' indicator
        1 object (1 changed) in 1 of 1 affected build since <0>; unknown: 1 file
    "#]]);
    work.remove("clusters/bad.yaml");
    // What was built, and no longer can be.
    work.write("clusters/web.yaml", flux("./gone", "a-"));
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
            Flux Kustomization web (clusters/web.yaml:1): clusters/web.yaml
              not built (new side): no GitRepository `flux-system` is defined in this repository
            --- kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web
            +++ kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web
            @@ -5,7 +5,7 @@
               namespace: flux-system
             spec:
               namePrefix: a-
            -  path: ./prod
            +  path: ./gone
               sourceRef:
                 kind: GitRepository
                 name: flux-system
            prod: prod/more.yaml
            --- apps/v1 Deployment prod/web
            +++ apps/v1 Deployment prod/web
            @@ -4,7 +4,7 @@
               name: web
               namespace: prod
             spec:
            -  replicas: 3
            +  replicas: 1
               template:
                 spec:
                   containers:
            2 objects (2 changed) in 2 of 2 affected builds since <0>; unknown: 1 target
        "#]]);
}

#[test]
fn what_deploys_it_is_compared_too() {
    let Some((_sandbox, work)) = overlays() else { return };
    let argo = |namespace: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: dev}}\nspec:\n  source: {{repoURL: 'https://github.com/acme/fleet', path: dev}}\n  destination: {{namespace: {namespace}}}\n"
        )
    };
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let apps = flux("apps", "./none", "  dependsOn: [{name: web}]\n");
    let all = |web: &str, namespace: &str| format!("{web}{apps}{}", argo(namespace));
    work.commit_files(&[
        ("clusters/all.yaml", &all(&flux("web", "./prod", "  prune: true\n"), "dev")),
        ("none/kustomization.yaml", "resources: [map.yaml]\n"),
        ("none/map.yaml", &config_map("none")),
    ]);
    // Nothing that is built differs.
    work.write("clusters/all.yaml", all(&flux("web", "./prod", "  suspend: true\n  prune: false\n"), "stage"));
    let output = work.run_unchanged(&["diff", "HEAD", "--stat"]);
    let stat = &output.success().stdout;
    for expected in [
        "Flux Kustomization web (clusters/all.yaml:1): clusters/all.yaml\n  changed kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web\n    consequence[suspended]: a change is no longer deployed by itself (`suspend: true`)\n    consequence[prune-switched]: pruning is switched (off: removed objects stay)\n",
        "  changed argoproj.io/v1alpha1 Application dev\n    consequence[destination-moved]: it is deployed to another place (namespace `stage`)\n",
    ] {
        assert!(stat.contains(expected), "{expected}{stat}");
    }
    output.says(expect![[r#"
        Flux Kustomization web (clusters/all.yaml:1): clusters/all.yaml
          changed kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web
            consequence[suspended]: a change is no longer deployed by itself (`suspend: true`)
            consequence[prune-switched]: pruning is switched (off: removed objects stay)
        Argo CD Application dev (clusters/all.yaml:18): clusters/all.yaml
          changed argoproj.io/v1alpha1 Application dev
            consequence[destination-moved]: it is deployed to another place (namespace `stage`)
        2 objects (2 changed) in 2 of 2 affected builds, 3 consequences since <0>
    "#]]);
    let affected = work.run_unchanged(&["affected", "HEAD"]);
    assert_eq!(affected.success().stdout, "", "it compares commits");
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
            Flux Kustomization web (clusters/all.yaml:1): clusters/all.yaml

            consequence[suspended]: a change is no longer deployed by itself (`suspend: true`)
            consequence[prune-switched]: pruning is switched (off: removed objects stay)
            --- kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web
            +++ kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web
            @@ -5,7 +5,8 @@
               namespace: flux-system
             spec:
               path: ./prod
            -  prune: true
            +  prune: false
               sourceRef:
                 kind: GitRepository
                 name: flux-system
            +  suspend: true
            Argo CD Application dev (clusters/all.yaml:18): clusters/all.yaml

            consequence[destination-moved]: it is deployed to another place (namespace `stage`)
            --- argoproj.io/v1alpha1 Application dev
            +++ argoproj.io/v1alpha1 Application dev
            @@ -4,7 +4,7 @@
               name: dev
             spec:
               destination:
            -    namespace: dev
            +    namespace: stage
               source:
                 path: dev
                 repoURL: https://github.com/acme/fleet
            2 objects (2 changed) in 2 of 2 affected builds, 3 consequences since <0>
        "#]]);
    // What the kustomization above shows is shown once.
    work.write("clusters/kustomization.yaml", "resources: [all.yaml]\n");
    work.commit("Suspend");
    work.run_unchanged(&["affected", "HEAD~"]).success().says(expect![[r#"
        clusters: added
        Flux Kustomization web (clusters/all.yaml:1): clusters/all.yaml
        Argo CD Application dev (clusters/all.yaml:18): clusters/all.yaml
        1 of 4 kustomizations and 2 of 3 targets since <0>
    "#]]);
    work.write("clusters/all.yaml", all(&flux("web", "./prod", "  prune: true\n"), "stage"));
    let json = report(&work, &["HEAD"]);
    assert_eq!((json["builds"].as_array().unwrap().len(), &json["builds"][0]["name"]), (1, &"clusters".into()));
    let ids = json["consequences"].as_array().unwrap().iter().map(|one| (&one["id"], &one["target"]));
    let ids: Vec<_> = ids.map(|(id, target)| (id.as_str().unwrap(), target.as_str().unwrap())).collect();
    assert_eq!(ids, [("resumed", "clusters"), ("prune-switched", "clusters")]);
    // Below something suspended, and what depends on something that goes.
    work.git(&["checkout", "-q", "clusters"]);
    work.write("prod/more.yaml", deployment("web").replace("replicas: 1", "replicas: 0"));
    let output = work.run_unchanged(&["diff", "HEAD"]);
    let web = "Flux Kustomization web (clusters/all.yaml:1): prod/more.yaml\n  consequence[below-suspended]: the target is suspended, so this waits until it is resumed (1 object changes)\n\nconsequence[no-replicas]: nothing of it runs any more (`replicas: 0`)\n--- apps/v1 Deployment prod/web\n";
    assert_eq!(output.success().stdout.split_once("+++").unwrap().0, web);
    work.git(&["checkout", "-q", "prod"]);
    work.write("clusters/all.yaml", all("", "stage"));
    work.run_unchanged(&["diff", "HEAD"]).success().stdout_has("consequence[removed-dependency]: something is removed that others depend on (needed by flux-system/apps)\n--- kustomize.toolkit.fluxcd.io/v1 Kustomization flux-system/web\n+++ /dev/null\n");
}

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\n";

#[test]
fn a_claim_that_goes_is_deleted_or_orphaned_and_is_named_first() {
    let Some((_sandbox, work)) = overlays() else { return };
    work.write("prod/claim.yaml", CLAIM);
    work.write("prod/kustomization.yaml", "resources: [../base, more.yaml, claim.yaml]\nnamespace: prod\n");
    let mut transcript = Transcript::default();
    for target in [Some("  prune: true\n"), Some("  prune: false\n"), None] {
        work.write("clusters/web.yaml", target.map_or(String::new(), |more| flux("web", "./prod", more)));
        work.commit("Begin");
        work.write("prod/kustomization.yaml", "resources: [../base, more.yaml]\nnamespace: prod\n");
        transcript.add(work.run_unchanged(&["diff", "HEAD"]).success());
        work.git(&["checkout", "-q", "prod"]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize diff HEAD
        Flux Kustomization web (clusters/web.yaml:1): prod/kustomization.yaml

        consequence[removed-pvc]: a PersistentVolumeClaim is removed, perhaps with the data of its volume (deleted: the target prunes)
        --- v1 PersistentVolumeClaim prod/data
        +++ /dev/null
        @@ -1,5 +0,0 @@
        -apiVersion: v1
        -kind: PersistentVolumeClaim
        -metadata:
        -  name: data
        -  namespace: prod
        1 object (1 removed) in 1 of 1 affected build, 1 consequence since <0>
        $ git kustomize-localize diff HEAD
        Flux Kustomization web (clusters/web.yaml:1): prod/kustomization.yaml

        consequence[removed-pvc]: a PersistentVolumeClaim is removed, perhaps with the data of its volume (orphaned: the target does not prune)
        --- v1 PersistentVolumeClaim prod/data
        +++ /dev/null
        @@ -1,5 +0,0 @@
        -apiVersion: v1
        -kind: PersistentVolumeClaim
        -metadata:
        -  name: data
        -  namespace: prod
        1 object (1 removed) in 1 of 1 affected build, 1 consequence since <0>
        $ git kustomize-localize diff HEAD
        prod: prod/kustomization.yaml

        consequence[removed-pvc]: a PersistentVolumeClaim is removed, perhaps with the data of its volume (deleted if the target prunes (unknown))
        --- v1 PersistentVolumeClaim prod/data
        +++ /dev/null
        @@ -1,5 +0,0 @@
        -apiVersion: v1
        -kind: PersistentVolumeClaim
        -metadata:
        -  name: data
        -  namespace: prod
        1 object (1 removed) in 1 of 1 affected build, 1 consequence since <0>
    "#]]);
    work.write("prod/kustomization.yaml", "resources: [../base]\nnamespace: prod\n");
    let output = work.run_unchanged(&["diff", "HEAD", "--format=markdown"]);
    let expected = "<!-- git-kustomize-localize diff -->\n**2 objects (2 removed) in 1 of 1 affected build, 1 consequence** in <code>work</code>, <code>";
    assert!(output.success().stdout.starts_with(expected), "{}", output.stdout);
    let base = &work.id("HEAD")[..12];
    let html = work.run_unchanged(&["diff", "HEAD", "--format=html"]);
    html.success().stdout_has(&format!("<h1>What work deploys: {base} to the working tree</h1>"));
    output.says(expect![[r#"
        <!-- git-kustomize-localize diff -->
        **2 objects (2 removed) in 1 of 1 affected build, 1 consequence** in <code>work</code>, <code><0> to the working tree</code>

        - <code>removed-pvc</code>: <code>v1 PersistentVolumeClaim prod/data</code> of <code>prod</code>: <code>a PersistentVolumeClaim is removed, perhaps with the data of its volume (deleted if the target prunes (unknown))</code>

        <details><summary><code>prod</code>: <code>prod/kustomization.yaml</code> (2 objects)</summary>

        <p>removed <code>v1 PersistentVolumeClaim prod/data</code></p>

        ```diff
        @@ -1,5 +0,0 @@
        -apiVersion: v1
        -kind: PersistentVolumeClaim
        -metadata:
        -  name: data
        -  namespace: prod
        ```

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

        2 objects (2 removed) in 1 of 1 affected build, 1 consequence since <0>
    "#]]);
    let page = work.run_unchanged(&["explain", "removed-pvc"]);
    page.success().says(expect![[r#"
        # removed-pvc: a PersistentVolumeClaim is removed, perhaps with the data of its volume

        A consequence of a change (data is lost).

        `git kustomize-localize diff` shows a consequence above its object, first in the Markdown of a comment, and in
        `consequences` of the JSON. Consequences do not change the exit status, and cannot be turned off.

        A consequence is found by comparing an object before and after the change, and from the target that deploys it. It is
        only shown if it is certain:

        - A field that is missing on one side may be filled in by the API server, and is then not a change: `storageClassName`
          of a claim, `clusterIP` of a Service. `revisionHistoryLimit` of a StatefulSet can be changed in newer clusters.
        - The target says whether a removed object is deleted or stays, orphaned: `prune` of a Kustomization of Flux or of the
          automated sync of an Application of Argo CD, and annotations of the object. This is unknown for an application that is
          synced by hand, and for a directory that no target deploys.
        - If a target is removed, so are its objects, unless it keeps them: `prune`, `deletionPolicy` (Flux), no finalizer
          (Application), `preserveResourcesOnDeletion` (ApplicationSet). Argo CD leaves CRDs.
        - Helm never deletes a CRD in `crds` of a chart, which the output of a HelmRelease does not tell from one that a
          template makes.
        - An object that moved from one target to another may be in another cluster.
        - A privileged container, a path of the node or a rule with `*` counts only if the object did not have it before.
        - Dependencies are taken from `dependsOn` of targets and of the objects in builds that differ.

    "#]]);
    work.run_unchanged(&["explain"]).success().stdout_has("\n- `removed-pvc` (data is lost): ");
}

#[test]
fn a_plain_directory_is_compared_as_it_is_applied() {
    let sandbox = Sandbox::new();
    let Some(_) = sandbox.builds() else { return };
    let work = &sandbox.repo("work");
    let application = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec: {source: {repoURL: 'https://github.com/acme/fleet', path: web, directory: {recurse: true, exclude: 'old/*'}}}
";
    let files = [
        (".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n"),
        ("web.yaml", application),
        ("web/a.yaml", &config_map("a")),
        ("web/in/b.yaml", &config_map("b")),
        ("web/old/c.yaml", &config_map("c")),
    ];
    work.commit_files(&files);
    work.run(&["build", "web"]).success().says(expect![[r#"
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: b
    "#]]);
    let set = |file: &str, value: &str| {
        work.write(file, work.read(file).replace("kind: ConfigMap", &format!("kind: {value}")))
    };
    let stat = || work.run(&["diff", "HEAD", "--stat"]).success().clone();
    // What it does not take makes no difference.
    set("web/old/c.yaml", "Secret");
    let output = stat();
    assert!(output.stdout.is_empty(), "{}", output.stdout);
    set("web/in/b.yaml", "Secret");
    let shown = stat().stdout;
    for line in ["Argo CD Application web (web.yaml:1)", "v1 Secret b"] {
        assert!(shown.contains(line), "{line}: {shown}");
    }
    // How it is read counts, too.
    work.write("web.yaml", application.replace("recurse: true", "recurse: false"));
    assert!(stat().stdout.contains("v1 ConfigMap b"));
    work.write("web/x.jsonnet", "{}");
    let output = work.run(&["diff", "HEAD", "--stat"]);
    assert!(format!("{}{}", output.stdout, output.stderr).contains("Jsonnet"), "{}{}", output.stdout, output.stderr);
}

const SOURCES: &str = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
spec:
  destination: {namespace: web}
  sources:
  - {repoURL: 'https://github.com/acme/fleet', path: base}
  - {repoURL: 'https://github.com/acme/fleet', path: over}
  - {repoURL: 'https://github.com/acme/other', path: x}
";

/// Returns ConfigMaps, each from `NAME=VALUE`.
fn maps(all: &str) -> String {
    let pairs = all.split(' ').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| config_map(name) + &format!("data:\n  k: v{value}\n---\n")).collect()
}

#[test]
fn the_sources_of_an_application_are_compared_as_one() {
    let sandbox = Sandbox::new();
    let Some(_) = sandbox.builds() else { return };
    let work = sandbox.repo("fleet");
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    work.commit_files(&[
        ("argo/web.yaml", SOURCES),
        ("base/kustomization.yaml", "resources: [x.yaml]\n"),
        ("base/x.yaml", &maps("own=1 both=1 moves=1")),
        ("over/kustomization.yaml", "resources: [x.yaml]\n"),
        ("over/x.yaml", &maps("both=2")),
    ]);
    work.write("base/x.yaml", maps("own=2 both=3"));
    work.write("over/x.yaml", maps("both=2 moves=1"));
    work.run(&["diff", "HEAD"]).success().says(expect![[r#"
        Argo CD Application web (argo/web.yaml:1): base/x.yaml
        --- v1 ConfigMap own
        +++ v1 ConfigMap own
        @@ -1,6 +1,6 @@
         apiVersion: v1
         data:
        -  k: v1
        +  k: v2
         kind: ConfigMap
         metadata:
           name: own
        1 object (1 changed) in 1 of 1 affected build since <0>
    "#]]);
    work.run(&["diff", "HEAD", "base", "--stat"]).success().says(expect![[r#"
        Argo CD Application web (argo/web.yaml:1): base/x.yaml
          changed v1 ConfigMap own
        1 object (1 changed) in 1 of 1 affected build since <0>
    "#]]);
    // A source that does not build is compared in parts, and the others are as before.
    work.write("over/kustomization.yaml", "resources: [x.yaml, gone.yaml]\n");
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Argo CD Application web (argo/web.yaml:1): base/x.yaml
          not built (new side): accumulating resources: accumulation err='accumulating resources from 'gone.yaml': evalsymlink failure on 'ove…over/gone.yaml' : lstat over/gone.yaml: no such file or directory
          changed v1 ConfigMap own
        1 object (1 changed) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
    work.write("over/kustomization.yaml", "resources: [x.yaml]\n");
    work.commit("both");
    work.write(
        "argo/web.yaml",
        format!("# moved\n{}", SOURCES.replace("  - {repoURL: 'https://github.com/acme/fleet', path: base}\n", "")),
    );
    work.run(&["diff", "HEAD", "--stat"]).success().says(expect![[r#"
        Argo CD Application web (argo/web.yaml:2): argo/web.yaml
          not built: it is in https://github.com/acme/other
          changed argoproj.io/v1alpha1 Application argocd/web
          removed v1 ConfigMap own
        2 objects (1 changed, 1 removed) in 1 of 1 affected build since <0>; unknown: 1 target
    "#]]);
    work.commit("less");
    work.run(&["affected", "HEAD~"]).success().says(expect![[r#"
        Argo CD Application web (argo/web.yaml:2): argo/web.yaml
        0 of 2 kustomizations and 2 of 2 targets (1 removed) since <0>
    "#]]);
}
