//! Objects of engines that a chart in the tree renders, such as an app of apps.

use std::fs;

use crate::support::{Repo, Sandbox, Transcript, tool};

/// An application at a path.
fn application(name: &str, path: &str, helm: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: default
  destination: {{server: 'https://kubernetes.default.svc', namespace: x}}
  source: {{repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: {path}{helm}}}
"
    )
}

/// A map with a name.
fn map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// Returns a repository in which a chart makes applications, one of which is such a chart; `None` without a program.
fn app_of_apps(helm: &str) -> Option<(Sandbox, Repo)> {
    let helm = tool(helm)?;
    let sandbox = Sandbox::new();
    sandbox.builds()?;
    sandbox.offer("helm", &helm);
    let work = sandbox.repo("work");
    let chart = |name: &str| format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n");
    work.commit_files(&[
        (".kustomize-localize", "helm: true\nrepository: [{url: 'https://github.com/acme/fleet'}]\n"),
        ("root.yaml", &application("root", "apps", "")),
        ("apps/Chart.yaml", &chart("apps")),
        ("apps/values.yaml", "paths: [web]\n"),
        (
            "apps/templates/all.yaml",
            &format!("{{{{ range .Values.paths }}}}\n---\n{}{{{{ end }}}}\n", application("{{ . }}", "{{ . }}", "")),
        ),
        ("apps/templates/inner.yaml", &application("inner", "inner", ", helm: {parameters: [{name: n, value: deep}]}")),
        ("inner/Chart.yaml", &chart("inner")),
        ("inner/templates/a.yaml", &application("{{ .Values.n }}", "deep", "")),
        ("web/kustomization.yaml", "resources: [a.yaml]\n"),
        ("web/a.yaml", &map("web")),
        ("db/kustomization.yaml", "resources: [a.yaml]\n"),
        ("db/a.yaml", &map("db")),
        ("deep/kustomization.yaml", "resources: [a.yaml]\n"),
        ("deep/a.yaml", &map("deep")),
    ]);
    Some((sandbox, work))
}

/// Returns what commands say of the repository; `None` without a program.
fn transcript(helm: &str) -> Option<Transcript> {
    let (sandbox, work) = app_of_apps(helm)?;
    let mut transcript = Transcript::default();
    // A run without builds does not know them, and one with builds knows all.
    transcript.add(work.run(&["check"]).success());
    transcript.add(work.run(&["check", "--build"]).success());
    transcript.add(work.run(&["targets"]).success());
    transcript.add(work.run(&["build", "argocd/deep"]).success());
    // A value moves an application, and a removed template removes one.
    work.write("apps/values.yaml", "paths: [db]\n");
    work.git(&["rm", "--quiet", "apps/templates/inner.yaml"]);
    transcript.add(work.run(&["diff", "HEAD", "--stat"]).success());
    work.git(&["reset", "--quiet", "--hard"]);
    // What does not build is unknown.
    work.write("apps/templates/z.yaml", "{{ fail \"no\" }}\n");
    work.commit("break");
    transcript.add(work.run(&["check", "--build"]).success());
    transcript.add(work.run(&["status"]).success());
    transcript.add(work.run(&["branch"]).success());
    transcript.add(work.run(&["diff", "HEAD^"]).success());
    work.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    fs::remove_file(sandbox.path("bin/helm")).unwrap();
    transcript.add(work.run(&["check", "--build"]).success());
    // Nothing may render it: the objects are an error until somebody lists them.
    work.write(".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n");
    transcript.add(work.run(&["check"]).fails(1));
    Some(transcript)
}

#[test]
fn objects_that_a_chart_renders_are_targets() {
    let (Some(third), Some(fourth)) = (transcript("helm-3"), transcript("helm-4")) else { return };
    assert_eq!(third, fourth);
    third.says(expect![[r#"
        $ git kustomize-localize check
        warning[unknown-target]: cannot tell what the objects of this template deploy: Argo CD Application root (root.yaml:1) renders it
         --> apps/templates/all.yaml:5:1
          |
        5 | metadata: {name: {{ . }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: build it: git kustomize-localize check --build

        warning[unknown-target]: cannot tell what the objects of this template deploy: Argo CD Application inner (apps/templates/inner.yaml:1) renders it
         --> inner/templates/a.yaml:3:1
          |
        3 | metadata: {name: {{ .Values.n }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain unknown-target
        checked 3 kustomizations with 3 references in the working tree: no problems found; 2 targets unknown
        $ git kustomize-localize check --build
        checked 3 kustomizations with 3 references in the working tree, 6 builds (kustomize/…, network closed): no problems found
        $ git kustomize-localize targets
        apps/templates/all.yaml:1: Argo CD Application argocd/web
          web at main: a kustomization, localized
          built by Argo CD Application root (root.yaml:1)
        apps/templates/inner.yaml:1: Argo CD Application argocd/inner
          inner at main: a chart
          built by Argo CD Application root (root.yaml:1)
        inner/templates/a.yaml:1: Argo CD Application argocd/deep
          deep at main: a kustomization, localized
          built by Argo CD Application inner (apps/templates/inner.yaml:1)
        root.yaml:1: Argo CD Application argocd/root
          apps at main: a chart

        4 targets: 4 here, 0 external, 0 templated
        $ git kustomize-localize build argocd/deep
        apiVersion: v1
        kind: ConfigMap
        metadata:
          name: deep
        $ git kustomize-localize diff HEAD --stat
        Argo CD Application root (root.yaml:1): apps/templates/inner.yaml
          added   argoproj.io/v1alpha1 Application argocd/db
          removed argoproj.io/v1alpha1 Application argocd/inner
            consequence[removed-target]: a target is removed (its objects stay, and nothing updates them)
          removed argoproj.io/v1alpha1 Application argocd/web
            consequence[removed-target]: a target is removed (its objects stay, and nothing updates them)
        Argo CD Application inner (apps/templates/inner.yaml:1): removed
          defined by the build of Argo CD Application root (root.yaml:1)
          removed argoproj.io/v1alpha1 Application argocd/deep
            consequence[removed-target]: a target is removed (its objects stay, and nothing updates them)
        Argo CD Application db (apps/templates/all.yaml:1): added
          defined by the build of Argo CD Application root (root.yaml:1)
          added   v1 ConfigMap db
        Argo CD Application web (apps/templates/all.yaml:1): removed
          defined by the build of Argo CD Application root (root.yaml:1)
          removed v1 ConfigMap web
        Argo CD Application deep (inner/templates/a.yaml:1): removed
          defined by the build of Argo CD Application inner (apps/templates/inner.yaml:1)
          removed v1 ConfigMap deep
        7 objects (2 added, 5 removed) in 5 of 5 affected builds, 3 consequences since <0>
        $ git kustomize-localize check --build
        warning[unknown-target]: cannot tell what its objects deploy: a template, which is not rendered: Argo CD Application root (root.yaml:1): execution error at (apps/templates/z.yaml:1:3): no
         --> apps/templates/all.yaml:5:1
          |
        5 | metadata: {name: {{ . }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: list what they deploy in `targets` of .kustomize-localize, and the chart in `exclude`

        warning[not-built]: not built: execution error at (apps/templates/z.yaml:1:3): no
         --> root.yaml
         = note: deployed by Argo CD Application root (root.yaml:1)
         = help: fix the chart, or the values that its object gives

        for more: git kustomize-localize explain unknown-target not-built
        checked 3 kustomizations with 3 references in the working tree, 4 builds (kustomize/…, network closed): no problems found; 1 target unknown; 1 not built
        $ git kustomize-localize status
        3 kustomizations, 0 remote references
        check: 0 errors, 2 warnings
        3 targets: 1 localized, 0 remote, 2 other, 1 unknown
          unknown    apps/templates/all.yaml:5: a template, which is not rendered: Argo CD Application root (root.yaml:1): execution error at (apps/templates/z.yaml:1:3): no
          other      apps/templates/inner.yaml:1: Argo CD Application argocd/inner: inner at main: a chart
          other      root.yaml:1: Argo CD Application argocd/root: apps at main: a chart
          localized  inner/templates/a.yaml:1: Argo CD Application argocd/deep
        branch localized/main: missing
        nothing to do
        $ git kustomize-localize branch
        localized the repository on branch localized/main (<0>): 0 files written, 0 references rewritten, 0 removed
          verified: 3 builds not changed (kustomize/…, network closed)
          1 warning (unknown-target 1)
          to look at it: git show --stat <0>
        deployed from localized/main: 0 of 2 targets; argocd/inner (apps/templates/inner.yaml:1) reads `main`
        warning[unknown-target]: cannot tell what its objects deploy: a template, which is not rendered: Argo CD Application root (root.yaml:1): execution error at (apps/templates/z.yaml:1:3): no
         --> apps/templates/all.yaml:5:1
          |
        5 | metadata: {name: {{ . }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: list what they deploy in `targets` of .kustomize-localize, and the chart in `exclude`
        $ git kustomize-localize diff HEAD^
        Argo CD Application root (root.yaml:1): apps/templates/z.yaml
          not built (new side): execution error at (apps/templates/z.yaml:1:3): no
        Argo CD Application web (apps/templates/all.yaml:1): compared as written: apps/templates/all.yaml:5 may change it
        apps/templates/all.yaml:5: unknown: a template, which is not rendered: Argo CD Application root (root.yaml:1): execution error at (apps/templates/z.yaml:1:3): no
        0 objects differ in 2 affected builds since <0>; unknown: 2 targets, 1 file
        $ git kustomize-localize check --build
        warning[unknown-target]: cannot tell what its objects deploy: a template, which is not rendered: Argo CD Application root (root.yaml:1): it is a Helm chart, and no `helm` was found on PATH
         --> apps/templates/all.yaml:5:1
          |
        5 | metadata: {name: {{ . }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: list what they deploy in `targets` of .kustomize-localize, and the chart in `exclude`

        warning[unknown-target]: cannot tell what its objects deploy: a template, which is not rendered: Argo CD Application inner (apps/templates/inner.yaml:1): it is a Helm chart, and no `helm` was found on PATH
         --> inner/templates/a.yaml:3:1
          |
        3 | metadata: {name: {{ .Values.n }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain unknown-target
        unknown: Argo CD Application inner (apps/templates/inner.yaml:1): it is a Helm chart, and no `helm` was found on PATH
        unknown: Argo CD Application root (root.yaml:1): it is a Helm chart, and no `helm` was found on PATH
        checked 3 kustomizations with 3 references in the working tree, 3 builds (kustomize/…, network closed): no problems found; 2 targets unknown; 2 builds unknown
        $ git kustomize-localize check
        error[invalid-target]: a chart that is deployed renders this template: what its objects deploy is unknown
         --> apps/templates/all.yaml:5:1
          |
        5 | metadata: {name: {{ . }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: let helm render it: write `helm: true` into .kustomize-localize
          = help: or list what they deploy in `targets` there, and the chart in `exclude`

        error[invalid-target]: a chart that is deployed renders this template: what its objects deploy is unknown
         --> inner/templates/a.yaml:3:1
          |
        3 | metadata: {name: {{ .Values.n }}, namespace: argocd}
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain invalid-target
        checked 3 kustomizations with 3 references in the working tree: 2 errors
    "#]]);
}
