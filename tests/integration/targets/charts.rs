//! Charts in the tree, rendered by what stands in for helm.

use std::fs;

use crate::support::{Repo, Sandbox, Transcript};

/// Prints an object with the arguments, but for directories, and one with the values, the chart and its templates.
const HELM: &str = r#"[ "$1" = version ] && { echo v3.19.4+g0; exit; }
[ -z "$KUBECONFIG$HELM_DRIVER$SECRET" ] || exit 3
printf 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: called}\ndata:\n  with: |\n'
for one; do printf '    %s\n' "$one" | sed 's,/[^ ]*/,,'; done
for one; do
  chart=$one
  case $one in --values=*)
    number=$((number + 1))
    printf -- '---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: values-%s}\ndata:\n  text: |\n' "$number"
    sed 's/^/    /' "${one#--values=}" && echo ;;
  esac
done
[ -f "$chart/Chart.yaml" ] || { echo "Error: no chart at $chart" >&2; exit 1; }
cat "$chart"/templates/*.yaml
"#;

/// A release of Flux, with its source.
const RELEASE: &str = "apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {name: released, namespace: x}
spec: {chart: {spec: {chart: charts/web, sourceRef: {kind: GitRepository, name: fleet}, valuesFiles: [flux/v.yaml]}}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: x}
spec: {url: 'https://github.com/acme/fleet'}
";

fn application(helm: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: web}}
spec: {{destination: {{namespace: prod}}, source: {{repoURL: 'https://github.com/acme/fleet', path: charts/web, helm: {{{helm}}}}}}}
"
    )
}

fn map(name: &str) -> String {
    format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

/// Returns a repository whose charts are rendered; none without kustomize.
fn charts() -> Option<(Sandbox, Repo)> {
    let sandbox = Sandbox::new();
    sandbox.builds()?;
    sandbox.script("helm", HELM);
    sandbox.set("SECRET", "of the environment");
    let work = sandbox.repo("work");
    work.commit_files(&[
        (".kustomize-localize", "helm: true\nrepository: [{url: 'https://github.com/acme/fleet'}]\n"),
        ("argo/web.yaml", &application("valueFiles: [../../values/prod.yaml], values: 'password: s3cr3t'")),
        ("values/prod.yaml", "size: 1\n"),
        ("charts/web/Chart.yaml", "apiVersion: v2\nname: web\nversion: 1.0.0\n"),
        ("charts/web/templates/a.yaml", &map("a")),
        ("flux/web.yaml", RELEASE),
        ("flux/v.yaml", "size: 2\n"),
    ]);
    Some((sandbox, work))
}

#[test]
fn a_chart_is_rendered_as_its_engine_does() {
    let Some((sandbox, work)) = charts() else { return };
    let output = work.run_unchanged(&["build", "web"]);
    output.success().says(expect![[r#"
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: called}
            data:
              with: |
                template
                --skip-tests
                --name-template=web
                --namespace=prod
                --include-crds
                --values=0.yaml
                --values=1.yaml
                --
                web
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: values-1}
            data:
              text: |
                size: 1

            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: values-2}
            data:
              text: |
                password: s3cr3t
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: a}
        "#]]);
    let output = work.run_unchanged(&["build", "flux/web.yaml:1"]);
    output.success().says(expect![[r#"
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: called}
            data:
              with: |
                template
                --skip-tests
                --name-template=released
                --namespace=x
                --include-crds
                --values=0.yaml
                --
                web
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: values-1}
            data:
              text: |
                size: 2

            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: a}
        "#]]);
    assert_eq!(sandbox.leftovers(), crate::support::NONE);
}

/// What is deployed and not built is not silence.
#[test]
fn a_gate_that_builds_renders_charts_too() {
    let Some((sandbox, work)) = charts() else { return };
    let check = ["check", "--build"];
    let output = work.run_unchanged(&check);
    output.success().says(expect![[r#"
        no kustomization in the working tree, 2 builds (kustomize/…, network closed): no problems found
    "#]]);
    sandbox.script("helm", &format!("{HELM}date +%s%N | sed 's/^/# /'\n"));
    let output = work.run_unchanged(&check);
    output.success().says(expect![[r#"
        unknown: Argo CD Application web (argo/web.yaml:1): its chart renders to something else each time
        unknown: Flux HelmRelease released (flux/web.yaml:1): its chart renders to something else each time
        no kustomization in the working tree, 0 builds (kustomize/…, network closed): no problems found; 2 builds unknown
    "#]]);
    sandbox.script("helm", HELM);
    fs::remove_file(work.path().join("charts/web/Chart.yaml")).unwrap();
    work.run(&check).success().says(expect![[r#"
        warning[not-built]: not built: no chart at charts/web
         --> argo/web.yaml
         = note: deployed by Argo CD Application web (argo/web.yaml:1)
         = help: fix the chart, or the values that its object gives

        warning[not-built]: not built: no chart at charts/web
         --> flux/web.yaml
         = note: deployed by Flux HelmRelease released (flux/web.yaml:1)

        note: repeated help is omitted: -v shows it
        for more: git kustomize-localize explain not-built
        no kustomization in the working tree, 0 builds (kustomize/…, network closed): no problems found; 2 not built
    "#]]);
    // What nothing here builds is no error of the chart.
    work.decide("rules: {'*': error}\n");
    work.run(&check).success().says(expect![[r#"
        unknown: Argo CD Application web (argo/web.yaml:1): it is a Helm chart, and `helm` is off
        unknown: Flux HelmRelease released (flux/web.yaml:1): it is a Helm chart, and `helm` is off
        no kustomization in the working tree, 0 builds: no problems found; 2 builds unknown
    "#]]);
}

#[test]
fn what_a_change_makes_of_a_chart_is_shown() {
    let Some((_sandbox, work)) = charts() else { return };
    let (argo, flux) = ("Argo CD Application web (argo/web.yaml:1)", "Flux HelmRelease released (flux/web.yaml:1)");

    for (file, text, by, shown) in [
        ("values/prod.yaml", "size: 3\n".to_owned(), argo, "+    size: 3\n"),
        ("flux/v.yaml", "size: 4\n".to_owned(), flux, "+    size: 4\n"),
        ("charts/web/templates/a.yaml", map("b"), argo, "+++ v1 ConfigMap b\n"),
        ("charts/web/templates/a.yaml", map("b"), flux, "+++ v1 ConfigMap b\n"),
        ("argo/web.yaml", application("releaseName: other"), argo, "+    --name-template=other\n"),
    ] {
        work.write(file, text);

        work.run_unchanged(&["diff", "HEAD"]).success().stdout_has(&format!("{by}: {file}\n")).stdout_has(shown);
        work.commit("change");
        work.run(&["affected", "HEAD^"]).success().stdout_has(&format!("{by}: {file}\n"));
        work.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    }

    // Nothing reads it.
    work.write("values/other.yaml", "size: 5\n");
    work.run(&["diff", "HEAD"]).success().says(expect![[r#"
        no build is affected since <0>
    "#]]);
}

#[test]
fn what_is_not_rendered_is_unknown() {
    let Some((sandbox, work)) = charts() else { return };
    let diff = |why: &str| {
        let output = work.run(&["diff", "HEAD", "--exit-code"]);
        output.fails(1).stdout_has(why).stderr_has("could not be compared");
        output.lacks("+++");
        work.run(&["build", "web"]).fails(2).stderr_has(why);
    };
    let file = work.read("charts/web/templates/a.yaml");
    work.write("charts/web/templates/a.yaml", map("b"));
    fs::remove_file(sandbox.path("bin/helm")).unwrap();
    diff("it is a Helm chart, and no `helm` was found on PATH");
    sandbox.script("helm", "[ $1 = version ] && echo other");
    diff("did not print its version as helm does");
    sandbox.script(
        "helm",
        "[ $1 = version ] && echo v3.0.0 || { echo Error: missing in charts/ directory: common >&2; exit 1; }",
    );
    diff("missing in charts/ directory: common");
    sandbox.script("helm", "[ $1 = version ] && echo v3.0.0 || { printf 'a: '; od -An -N8 -tx8 /dev/urandom; }");
    diff("its chart renders to something else each time");
    sandbox.script("helm", HELM);
    work.write(".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n");
    work.commit("off");
    work.write("charts/web/templates/a.yaml", map("c"));
    diff("it is a Helm chart, and `helm` is off");
    work.run(&["build", "web"]).fails(2).says(expect![[r#"
        error: Argo CD Application web (argo/web.yaml:1) cannot be built here: it is a Helm chart, and `helm` is off
          hint: write `helm: true` into .kustomize-localize
    "#]]);
    // Nothing but the configuration names it.
    let config = "helm: true\ntargets: [{path: charts/web, engine: argo-cd}]\n";
    work.commit_files(&[(".kustomize-localize", config)]);
    work.run(&["build", ".kustomize-localize:2"]).fails(2).says(expect![[r#"
        error: Argo CD target charts/web (.kustomize-localize:2) cannot be built here: no object says how to render this chart
    "#]]);
    work.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    // A values file alone.
    work.git(&["checkout", "--quiet", "."]);
    work.write("values/prod.yaml", "size: 3\n");
    diff("it is a Helm chart, and `helm` is off");
    work.write("charts/web/templates/a.yaml", file);
}

#[test]
fn nothing_out_of_the_tree_is_rendered() {
    let Some((sandbox, work)) = charts() else { return };
    fs::write(sandbox.path("outside.yaml"), "outside: s3cr3t\n").unwrap();
    let refused = |helm: &str, why: &str| {
        work.write("argo/web.yaml", application(helm));
        work.run(&["build", "web"]).fails(2).stderr_has(why).lacks("s3cr3t");
    };
    refused("valueFiles: [../../../outside.yaml]", "leads out of the repository");
    refused("releaseName: '--post-renderer=/bin/sh'", "is not a valid name");
    work.symlink("values/link.yaml", "../../outside.yaml");
    refused("valueFiles: [/values/link.yaml]", "its values file `values/link.yaml` does not exist");
    work.symlink("charts/web/templates/link.yaml", "../../../../outside.yaml");
    refused("", "`charts/web/templates/link.yaml` in the chart leads out of the repository");
    work.remove("charts/web/templates/link.yaml");
    // One that stays in is followed.
    work.write("shared/b.yaml", map("shared"));
    work.symlink("charts/web/templates/link.yaml", "../../../shared/b.yaml");
    work.run(&["build", "web"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: called}
        data:
          with: |
            template
            --skip-tests
            --name-template=web
            --namespace=prod
            --include-crds
            --
            web
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: shared}
    "#]]);
    let out = application("").replace("path: charts/web", "path: ../web");
    work.write("argo/web.yaml", out);
    work.run(&["build", "web"]).fails(2).says(expect![[r#"
        error: Argo CD Application web (argo/web.yaml:1) cannot be built here: it is outside of the repository
    "#]]);
}

/// A release of Flux, which has its namespace from the kustomization that lists it.
fn release(values: &str) -> String {
    format!(
        "apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: api}}
spec:
  chart: {{spec: {{chart: charts/web, valuesFiles: [values/api.yaml], sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}}}}}
  values: {{{values}}}
"
    )
}

#[test]
fn a_release_of_flux_is_rendered_as_its_kustomizations_make_it() {
    let Some((sandbox, work)) = charts() else { return };
    let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
";
    let files = [
        ("flux.yaml", flux),
        ("apps/kustomization.yaml", "namespace: team\nresources: [release.yaml]\n"),
        ("apps/release.yaml", &release("replicas: 1")),
        ("charts/web/values.yaml", "own: 1\n"),
        ("values/api.yaml", "size: 6\n"),
    ];
    work.commit_files(&files);
    work.run(&["targets"]).success().says(expect![[r#"
            apps/release.yaml:1: Flux HelmRelease team/api
              charts/web: a chart
              built by apps/kustomization.yaml
            argo/web.yaml:1: Argo CD Application web
              charts/web: a chart
            flux.yaml:1: Flux Kustomization flux-system/apps
              apps: a kustomization, localized
            flux/web.yaml:1: Flux HelmRelease x/released
              charts/web: a chart

            4 targets: 4 here, 0 external, 0 templated
        "#]]);
    work.run(&["build", "api"]).success().says(expect![[r#"
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: called}
            data:
              with: |
                template
                --skip-tests
                --name-template=api
                --namespace=team
                --include-crds
                --values=0.yaml
                --values=1.yaml
                --
                web
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: values-1}
            data:
              text: |
                size: 6

            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: values-2}
            data:
              text: |
                {"replicas":1}
            ---
            apiVersion: v1
            kind: ConfigMap
            metadata: {name: a}
        "#]]);
    let by = "Flux HelmRelease api (apps/release.yaml:1)";
    let mut transcript = Transcript::default();
    for (file, text, shown) in [
        ("values/api.yaml", "size: 7\n".to_owned(), "+    size: 7\n"),
        ("apps/release.yaml", release("replicas: 2"), "+    {\"replicas\":2}\n"),
        ("charts/web/templates/a.yaml", map("b"), "+++ v1 ConfigMap b\n"),
        // Its values do not count, but may again.
        ("charts/web/values.yaml", "own: 2\n".to_owned(), ""),
    ] {
        work.write(file, text);
        let output = work.run(&["diff", "HEAD"]);
        if shown.is_empty() {
            transcript.add(output.success());
        } else {
            output.success().stdout_has(&format!("{by}: {file}\n")).stdout_has(shown);
        }
        work.git(&["checkout", "--quiet", "."]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize diff HEAD
        nothing differs in 3 affected builds since <0>
    "#]]);
    // Helm deletes what a chart no longer has, unless that says something else.
    let mut transcript = Transcript::default();
    for policy in ["", "helm.sh/resource-policy: keep"] {
        let claim = map("a").replace(
            "kind: ConfigMap\nmetadata: {",
            &format!("kind: PersistentVolumeClaim\nmetadata: {{annotations: {{{policy}}}, "),
        );
        work.commit_files(&[("charts/web/templates/a.yaml", &claim)]);
        work.write("charts/web/templates/a.yaml", map("a"));
        transcript.add(work.run(&["diff", "HEAD", "api"]).success());
        work.commit("back");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize diff HEAD api
        Flux HelmRelease api (apps/release.yaml:1): charts/web/templates/a.yaml
          defined by the build of apps/kustomization.yaml
        --- /dev/null
        +++ v1 ConfigMap a
        @@ -0,0 +1,3 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata: {name: a}

        consequence[removed-pvc]: a PersistentVolumeClaim is removed, perhaps with the data of its volume (deleted: the target prunes)
        --- v1 PersistentVolumeClaim a
        +++ /dev/null
        @@ -1,3 +0,0 @@
        -apiVersion: v1
        -kind: PersistentVolumeClaim
        -metadata: {annotations: {}, name: a}
        2 objects (1 added, 1 removed) in 1 of 1 affected build, 1 consequence since <0>
        $ git kustomize-localize diff HEAD api
        Flux HelmRelease api (apps/release.yaml:1): charts/web/templates/a.yaml
          defined by the build of apps/kustomization.yaml
        --- /dev/null
        +++ v1 ConfigMap a
        @@ -0,0 +1,3 @@
        +apiVersion: v1
        +kind: ConfigMap
        +metadata: {name: a}

        consequence[removed-pvc]: a PersistentVolumeClaim is removed, perhaps with the data of its volume (orphaned: it opts out of pruning)
        --- v1 PersistentVolumeClaim a
        +++ /dev/null
        @@ -1,3 +0,0 @@
        -apiVersion: v1
        -kind: PersistentVolumeClaim
        -metadata: {annotations: {helm.sh/resource-policy: keep}, name: a}
        2 objects (1 added, 1 removed) in 1 of 1 affected build, 1 consequence since <0>
    "#]]);
    // An overlay patches it.
    let patched = |path: &str| {
        let patch = format!("[{{\"op\": \"add\", \"path\": \"/spec/{path}\", \"value\": 3}}]");
        format!(
            "namespace: team\nresources: [release.yaml]\npatches: [{{patch: '{patch}', target: {{kind: HelmRelease}}}}]\n"
        )
    };
    work.write("apps/kustomization.yaml", patched("values/no/such"));
    work.run(&["build", "api"]).fails(2).says(expect![[r#"
        error: Flux HelmRelease api (apps/release.yaml:1) cannot be built here: apps/kustomization.yaml may change it
    "#]]);
    work.commit_files(&[("apps/kustomization.yaml", &patched("values/replicas"))]);
    work.run(&["build", "api"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: called}
        data:
          with: |
            template
            --skip-tests
            --name-template=api
            --namespace=team
            --include-crds
            --values=0.yaml
            --values=1.yaml
            --
            web
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: values-1}
        data:
          text: |
            size: 6

        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: values-2}
        data:
          text: |
            {"replicas":3}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: a}
    "#]]);
    work.run(&["check"]).success();
    // What is not known.

    for (from, to, why) in [
        ("  values: {", "  valuesFrom: [{kind: Secret, name: a}]\n  values: {", "`spec.valuesFrom` may change it"),
        ("  values: {", "  postRenderers: [{kustomize: {}}]\n  values: {", "`spec.postRenderers` may change it"),
        ("values/api.yaml", "values/gone.yaml", "its values file `values/gone.yaml` does not exist"),
    ] {
        work.write("apps/release.yaml", release("replicas: 1").replace(from, to));

        work.run(&["diff", "HEAD", "--exit-code"]).fails(1).stdout_has(&format!("not built (new side): {why}"));
    }

    work.git(&["checkout", "--quiet", "."]);
    work.write("charts/web/templates/a.yaml", "a: {{ lookup \"v1\" \"Secret\" \"a\" \"b\" }}\n");
    work.run(&["build", "api"]).fails(2).says(expect![[r#"
        error: Flux HelmRelease api (apps/release.yaml:1, built by apps/kustomization.yaml) cannot be built here: `charts/web/templates/a.yaml` may ask the cluster (`lookup`)
    "#]]);
    // Argo CD gets no answer from it, either.
    work.run(&["build", "web"]).success().says(expect![[r#"
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: called}
        data:
          with: |
            template
            --skip-tests
            --name-template=web
            --namespace=prod
            --include-crds
            --values=0.yaml
            --values=1.yaml
            --
            web
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: values-1}
        data:
          text: |
            size: 1

        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: values-2}
        data:
          text: |
            password: s3cr3t
        a: {{ lookup "v1" "Secret" "a" "b" }}
    "#]]);
    assert_eq!(sandbox.leftovers(), crate::support::NONE);
}

#[test]
fn values_of_a_chart_that_is_not_rendered_name_its_target() {
    let Some((_sandbox, work)) = charts() else { return };
    let here = "repoURL: 'https://github.com/acme/fleet'";
    let stable = "repoURL: 'https://charts.example/stable', chart: redis, targetRevision: 1.0.0";
    let application = |name: &str, spec: &str| {
        format!("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n")
    };
    let values =
        format!("sources: [{{{stable}, helm: {{valueFiles: [$v/values/redis.yaml, own.yaml]}}}}, {{{here}, ref: v}}]");
    let filled = format!(
        "source: {{{here}, path: charts/web, helm: {{valueFiles: ['../../values/$ARGOCD_APP_REVISION/a.yaml']}}}}"
    );
    let set = format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: all}}
spec:
  generators: [{{clusters: {{}}}}]
  template:
    metadata: {{name: 'web-{{{{name}}}}'}}
    spec: {{source: {{{here}, path: charts/web, helm: {{valueFiles: ['../../clusters/{{{{name}}}}/a.yaml']}}}}}}
"
    );
    let (redis, filled) = (application("redis", &values), application("filled", &filled));
    work.commit_files(&[
        ("argo/redis.yaml", &redis),
        ("argo/filled.yaml", &filled),
        ("argo/set.yaml", &set),
        ("values/redis.yaml", "size: 1\n"),
        ("values/staging/a.yaml", "size: 1\n"),
        ("clusters/edge/a.yaml", "size: 1\n"),
        ("own.yaml", "size: 1\n"),
    ]);
    let mut transcript = Transcript::default();
    for file in ["values/redis.yaml", "values/staging/a.yaml", "clusters/edge/a.yaml"] {
        work.write(file, "size: 2\n");
        transcript.add(work.run(&["diff", "HEAD", "--exit-code"]).fails(1));
        work.commit("change");
        transcript.add(work.run(&["affected", "HEAD^"]).success());
        work.git(&["reset", "--quiet", "--hard", "HEAD^"]);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize diff HEAD --exit-code
        Argo CD Application filled (argo/filled.yaml:1): values/redis.yaml
          not built: `values/$ARGOCD_APP_REVISION/a.yaml` is not the name of one file
        Argo CD Application redis (argo/redis.yaml:1): values/redis.yaml
          not built: it is the chart `redis` of https://charts.example/stable
        2 affected builds could not be compared since <0>; unknown: 2 targets
        $ git kustomize-localize affected HEAD^
        Argo CD Application filled (argo/filled.yaml:1): values/redis.yaml
        Argo CD Application redis (argo/redis.yaml:1): values/redis.yaml
        0 of 0 kustomizations and 2 of 5 targets since <0>
        $ git kustomize-localize diff HEAD --exit-code
        Argo CD Application filled (argo/filled.yaml:1): values/staging/a.yaml
          not built: `values/$ARGOCD_APP_REVISION/a.yaml` is not the name of one file
        1 affected build could not be compared since <0>; unknown: 1 target
        $ git kustomize-localize affected HEAD^
        Argo CD Application filled (argo/filled.yaml:1): values/staging/a.yaml
        0 of 0 kustomizations and 1 of 5 targets since <0>
        $ git kustomize-localize diff HEAD --exit-code
        ApplicationSet all (argo/set.yaml:1): clusters/edge/a.yaml
          not built: its `helm` is filled in elsewhere
        1 affected build could not be compared since <0>; unknown: 1 target
        $ git kustomize-localize affected HEAD^
        Argo CD Application web-{{name}} (argo/set.yaml:1, of ApplicationSet all): clusters/edge/a.yaml
        0 of 0 kustomizations and 1 of 5 targets since <0>
    "#]]);
    // It lies in the chart of the other repository.
    work.write("own.yaml", "size: 2\n");
    work.run(&["diff", "HEAD", "--exit-code"]).success().says(expect![[r#"
        no build is affected since <0>
    "#]]);
}
