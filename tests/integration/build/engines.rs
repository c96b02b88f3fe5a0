//! What Flux and Argo CD build, printed.

use super::project;
use crate::support::{Project, Repo, Sandbox, config};

const HERE: &str = "https://github.com/acme/fleet";

/// What Flux reads this repository by.
fn source() -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: fleet, namespace: flux-system}}
spec: {{url: {HERE}, ref: {{branch: main}}}}
---
"
    )
}

/// A Kustomization of Flux.
fn flux(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: {name}, namespace: flux-system}}
spec:
  sourceRef: {{kind: GitRepository, name: fleet}}
  path: {path}
{more}"
    )
}

/// An Application of Argo CD.
fn argo(name: &str, path: &str, more: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}}}
spec: {{source: {{repoURL: {HERE}, path: {path}{more}}}}}
"
    )
}

const MIXIN: (&str, &str) = (
    "mixin/kustomization.yaml",
    "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {mixed: in}\n",
);

/// Objects of Flux and Argo CD in the layouts that these document: a cluster with applications, one of them a directory
/// that Flux generates for; an app of apps.
fn deployed(work: &Repo) {
    let overlay = "  targetNamespace: prod
  nameSuffix: -x
  components: [../../mixin]
  patches:
    - patch: '[{\"op\": \"add\", \"path\": \"/metadata/labels\", \"value\": {\"patched\": \"yes\"}}]'
      target: {kind: ConfigMap}
  postBuild: {substitute: {WHO: world}}
---
";
    let [overlay, plain] = [flux("overlay", "./example/overlay", overlay), flux("plain", "./plain", "")];
    let web = ", kustomize: {namePrefix: argo-, commonAnnotations: {who: '${WHO}'}}";
    let each = format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: each}}
spec:
  generators: [{{git: {{repoURL: {HERE}, revision: HEAD, directories: [{{path: apps/*}}]}}}}]
  template:
    metadata: {{name: '{{{{path.basename}}}}'}}
    spec:
      source:
        repoURL: {HERE}
        path: '{{{{path}}}}'
        kustomize: {{namePrefix: '{{{{path.basename}}}}-'}}
"
    );
    let base = "resources: [../../example/base]\n";
    let files = [
        ("clusters/prod/apps.yaml", &*[source(), overlay, plain].concat()),
        ("argo/apps/web.yaml", &argo("web", "example/overlay", web)),
        // An application of applications, and one for each directory.
        ("root.yaml", &argo("root", "argo/apps", "")),
        ("argo/each.yaml", &each),
        ("apps/one/kustomization.yaml", base),
        ("apps/two/kustomization.yaml", base),
        MIXIN,
        ("plain/map.yaml", &config("plain-${WHO}")),
        ("plain/inner/kustomization.yaml", "resources: [secret.yaml, ../../example/base]\n"),
        ("plain/inner/secret.yaml", SEALED),
    ];
    work.commit_files(&files);
}

/// As SOPS leaves it: a change of one byte would break the message authentication code.
const SEALED: &str = "apiVersion: v1
kind: Secret
metadata:
  name: sealed
stringData:
  password: ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A=]
sops:
  mac: ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:B=]
  version: 3.7.1
";

/// Returns a repository at [`HERE`] that builds; none without kustomize.
fn fleet() -> Option<Project> {
    let project = project()?;
    let add = ["remote", "add", "origin", "git@github.com:acme/fleet.git"];
    project.work.git(&add);
    Some(project)
}

#[test]
fn the_annotation_names_what_an_application_reads() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    deployed(work);
    let paths = work.run(&["targets", "--manifest-generate-paths"]);
    paths.success().says(expect![[r#"
        argo/apps/web.yaml:1: Application web
          argocd.argoproj.io/manifest-generate-paths: .;/example/base
        argo/each.yaml:1, of ApplicationSet each: Application one
          argocd.argoproj.io/manifest-generate-paths: .;/example/base
        argo/each.yaml:1, of ApplicationSet each: Application two
          argocd.argoproj.io/manifest-generate-paths: .;/example/base
        root.yaml:1: Application root
          argocd.argoproj.io/manifest-generate-paths: .
    "#]]);
}

#[test]
fn a_kustomization_that_cannot_be_edited_here_makes_the_target_unknown() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    let targets = [source(), flux("moved", "./tagged", "  targetNamespace: prod\n---\n"), flux("same", "./tagged", "")];
    work.commit_files(&[
        ("clusters/apps.yaml", &*targets.concat()),
        ("tagged/kustomization.yaml", "resources: [map.yaml]\nnamePrefix: !!str a-\n"),
        ("tagged/map.yaml", &config("map")),
    ]);
    work.run(&["lock"]).success();
    work.commit("Lock");
    work.run_unchanged(&["build", "flux-system/moved"]).fails(2).says(expect![[r#"
        error: Flux Kustomization moved (clusters/apps.yaml:6) cannot be built here: `tagged/kustomization.yaml:2` cannot be edited: not plain YAML: the tag `!!str`
    "#]]);
    work.run_unchanged(&["build", "flux-system/same"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: a-map
    "#]]);
    work.run_unchanged(&["check", "--build"]).success().says(expect![[r#"
        unknown: Flux Kustomization moved (clusters/apps.yaml:6): `tagged/kustomization.yaml:2` cannot be edited: not plain YAML: the tag `!!str`
        checked 4 kustomizations with 5 references in the working tree, 3 builds (kustomize/…, network closed): no problems found; 1 build unknown
    "#]]);
    work.write("tagged/map.yaml", config("other"));
    work.run_unchanged(&["diff", "HEAD"]).success().says(expect![[r#"
        Flux Kustomization moved (clusters/apps.yaml:6): tagged/map.yaml
          not built: `tagged/kustomization.yaml:2` cannot be edited: not plain YAML: the tag `!!str`
        Flux Kustomization same (clusters/apps.yaml:14): tagged/map.yaml
        --- v1 ConfigMap a-map
        +++ /dev/null
        @@ -1,4 +0,0 @@
        -apiVersion: v1
        -kind: ConfigMap
        -metadata:
        -  name: a-map
        --- /dev/null
        +++ v1 ConfigMap a-other
        @@ -0,0 +1,4 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata:
        +  name: a-other
        2 objects (1 added, 1 removed) in 1 of 2 affected builds since <0>; unknown: 1 target
    "#]]);
}

#[test]
fn a_target_is_built_as_its_engine_does() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    deployed(work);
    work.run(&["lock"]).success();
    work.run_unchanged(&["build", "flux-system/overlay"]).success().says(expect![[r#"
            apiVersion: v1
            kind: ConfigMap
            metadata:
              annotations:
                mixed: in
              labels:
                patched: "yes"
              name: dev-base-x
              namespace: prod
            ---
            apiVersion: v1
            kind: Service
            metadata:
              annotations:
                mixed: in
              name: dev-one-x
              namespace: prod
        "#]]);
    work.run(&["build", "web"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          annotations:
            who: ${WHO}
          name: argo-base
        ---
        apiVersion: v1
        kind: Service
        metadata:
          annotations:
            who: ${WHO}
          name: argo-one
    "#]]);
    // A kustomization is made of the directory; what is filled in or decrypted later stays.
    work.run(&["build", "clusters/prod/apps.yaml:20"]).success().says(expect![[r#"
            apiVersion: v1
            kind: Secret
            metadata:
              name: sealed
            sops:
              mac: ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:B=]
              version: 3.7.1
            stringData:
              password: ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A=]
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata:
              name: base
            ---
            apiVersion: v1
            kind: Service
            metadata:
              name: one
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata:
              name: plain-${WHO}
        "#]]);
    work.run(&["build", "one"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: one-base
        ---
        apiVersion: v1
        kind: Service
        metadata:
          name: one-one
    "#]]);
    work.run(&["build", "root"]).success().says(expect![[r#"
        ---
        apiVersion: argoproj.io/v1alpha1
        kind: Application
        metadata: {name: web}
        spec: {source: {repoURL: https://github.com/acme/fleet, path: example/overlay, kustomize: {namePrefix: argo-, commonAnnotations: {who: '${WHO}'}}}}
    "#]]);
}

#[test]
fn objects_are_taken_from_the_builds_that_change_them() {
    let sandbox = Sandbox::new();
    let Some(_) = sandbox.builds() else { return };
    let work = &sandbox.repo("work");
    work.git(&["remote", "add", "origin", HERE]);
    let [prod, stage] = ["prod", "stage"].map(|name| {
        format!(
            "resources: [../../apps]
patches:
- patch: '[{{\"op\": \"replace\", \"path\": \"/spec/source/path\", \"value\": \"web/{name}\"}}]'
  target: {{kind: Application}}
"
        )
    });
    // The children of this one are patched by their parent.
    let patches = ", kustomize: {patches: [{target: {kind: Application}, patch: '[{\"op\": \"replace\", \"path\": \"/spec/source/path\", \"value\": \"web/parent\"}]'}]}";
    let files = [
        ("apps/web.yaml", &*argo("web", "web/test", "")),
        ("apps/kustomization.yaml", "resources: [web.yaml]\n"),
        ("overlays/prod/kustomization.yaml", &prod),
        ("overlays/stage/kustomization.yaml", &stage),
        ("root.yaml", &argo("root", "apps", patches)),
        ("web/prod/kustomization.yaml", "resources: [map.yaml]\n"),
        ("web/prod/map.yaml", &config("prod")),
    ];
    work.commit_files(&files);
    let shown = work.run_unchanged(&["targets"]);
    let shown = shown.success().stdout.clone();
    let expected = "apps/web.yaml:1: Argo CD Application web
  web/parent: missing: there is no `web/parent`
  built by Argo CD Application root (root.yaml:1)
apps/web.yaml:1: Argo CD Application web
  web/prod: a kustomization, localized
  built by overlays/prod/kustomization.yaml
apps/web.yaml:1: Argo CD Application web
  web/stage: missing: there is no `web/stage`
  built by overlays/stage/kustomization.yaml
root.yaml:1: Argo CD Application root
  apps: a kustomization, localized

4 targets: 4 here, 0 external, 0 templated; 2 missing
";
    assert_eq!(shown, expected);
    work.run(&["targets", "--manifest-generate-paths"]).success().says(expect![[r#"
            apps/web.yaml:1, built by Argo CD Application root (root.yaml:1): Application web
              argocd.argoproj.io/manifest-generate-paths: .
            apps/web.yaml:1, built by overlays/prod/kustomization.yaml: Application web
              argocd.argoproj.io/manifest-generate-paths: .
            apps/web.yaml:1, built by overlays/stage/kustomization.yaml: Application web
              argocd.argoproj.io/manifest-generate-paths: .
            root.yaml:1: Application root
              argocd.argoproj.io/manifest-generate-paths: .
        "#]]);
    // What is not hermetic, or cannot be built, is not known.
    work.write("overlays/stage/kustomization.yaml", "resources: [../../apps, 'https://example.com/x.yaml']\n");
    let prod = work.read("overlays/prod/kustomization.yaml");
    work.write("overlays/prod/kustomization.yaml", prod.replace("/spec/source/path", "/spec/source/none/path"));
    let shown = work.run(&["targets"]).success().stdout.clone();
    for line in [
        "  web/test: missing: there is no `web/test`\n  may be changed by overlays/prod/kustomization.yaml\n    not built: overlays/prod/kustomization.yaml: ",
        "  built by Argo CD Application root (root.yaml:1)\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    work.write("overlays/prod/kustomization.yaml", prod);
    let shown = work.run(&["targets"]).success().stdout.clone();
    let away = "    not built: overlays/stage/kustomization.yaml: it reaches https://example.com/x.yaml: not locked\n";
    assert!(shown.contains(away), "{shown}");
    sandbox.set("KUSTOMIZE", "/nowhere/kustomize");
    let shown = work.run(&["targets", "--format", "json"]).success().stdout.clone();
    assert!(shown.contains("`/nowhere/kustomize` (KUSTOMIZE) is not an executable file"), "{shown}");
    assert!(!shown.contains("\"built_by\": \""), "{shown}");
}
