//! What Flux and Argo CD build: printed, and compared before and after localizing.

use serde_json::Value;

use super::project;
use crate::support::{Kustomize, Output, Project, Repo, Sandbox, World, config, config_map};

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
    let [overlay, plain] = [
        flux("overlay", "./example/overlay", overlay),
        flux("plain", "./plain", ""),
    ];
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
        (
            "clusters/prod/apps.yaml",
            &*[source(), overlay, plain].concat(),
        ),
        ("argo/apps/web.yaml", &argo("web", "example/overlay", web)),
        // An application of applications, and one for each directory.
        ("root.yaml", &argo("root", "argo/apps", "")),
        ("argo/each.yaml", &each),
        ("apps/one/kustomization.yaml", base),
        ("apps/two/kustomization.yaml", base),
        MIXIN,
        ("plain/map.yaml", &config("plain-${WHO}")),
        (
            "plain/inner/kustomization.yaml",
            "resources: [secret.yaml, ../../example/base]\n",
        ),
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
fn an_application_with_many_sources_is_built_from_the_one_that_is_here() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    deployed(work);
    let many = |name: &str, path: &str| {
        format!(
            "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}}}
spec:
  sources:
  - {{repoURL: 'https://charts.example.com', chart: web, targetRevision: v1}}
  - {{repoURL: {HERE}, path: apps/one}}
{path}"
        )
    };
    let two = format!("  - {{repoURL: {HERE}, path: apps/two}}\n");
    work.write("argo/chart.yaml", many("chart", ""));
    work.write("argo/both.yaml", many("both", &two));
    // What has this name as its directory is not meant.
    work.write("argo/beside.yaml", many("apps/two", ""));
    work.commit("Deploy more");
    for name in ["chart", "apps/two"] {
        work.run(&["targets", "--build", name])
            .success()
            .stdout_has("  name: base\n");
    }
    work.run(&["targets", "--build", "both"])
        .fails(2)
        .stderr_has("Argo CD Application both (argo/both.yaml:1) deploys `apps/one` and `apps/two`")
        .stderr_has("hint: name one of the directories");
    // One that has the name of its object can be named, and so can the top.
    work.write(
        "argo/same.yaml",
        many("same", &two).replace("apps/one", "same"),
    );
    work.write("same/kustomization.yaml", "resources: [../example/base]\n");
    work.write("argo/top.yaml", many("top", &two).replace("apps/one", "."));
    work.write("kustomization.yaml", "resources: [example/base]\n");
    work.commit("Deploy the top");
    for name in ["same", "."] {
        work.run(&["targets", "--build", name])
            .success()
            .stdout_has("  name: base\n");
    }
    work.run(&["targets", "--build", "top"])
        .fails(2)
        .stderr_has("deploys `.` and `apps/two`");
}

#[test]
fn targets_build_prints_what_the_engine_builds() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    deployed(work);
    let built = work.run_unchanged(&["targets", "--build", "flux-system/overlay"]);
    built
        .success()
        .stdout_has("  name: dev-base-x\n")
        .stdout_has("  namespace: prod\n")
        .stdout_has("    patched: \"yes\"\n")
        .stdout_has("    mixed: in\n");
    work.run(&["targets", "--build", "web"])
        .success()
        .stdout_has("  name: argo-base\n")
        .stdout_has("    who: ${WHO}\n");
    // A kustomization is made of the directory; what is filled in or decrypted later stays.
    work.run(&["targets", "--build", "plain"])
        .success()
        .stdout_has("  name: plain-${WHO}\n")
        .stdout_has("  password: ENC[AES256_GCM,data:p673w==,iv:YY=,aad:UQ=,tag:A=]\n");
    work.run(&["targets", "--build", "example/overlay"])
        .fails(2)
        .stderr_has("is the name of Argo CD Application web (argo/apps/web.yaml:1) and of Flux");
    work.run(&["targets", "--build", "nowhere"])
        .fails(2)
        .stderr_has("no target has the name `nowhere`")
        .stderr_has("git kustomize-localize targets");
    work.run(&["targets", "--build", "plian"])
        .fails(2)
        .stderr_has("hint: did you mean `plain`?");
    work.run(&["targets", "--build", "one"])
        .success()
        .stdout_has("  name: one-base\n");
    let paths = work.run(&["targets", "--manifest-generate-paths"]);
    paths.success().stdout_has(
        "argo/apps/web.yaml:1: Application web\n  argocd.argoproj.io/manifest-generate-paths: .;/example/base\n",
    );
}

#[test]
fn objects_are_taken_from_the_builds_that_change_them() {
    let sandbox = Sandbox::new();
    if sandbox.builds().is_none() {
        return;
    }
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
  web/parent: nothing: there is no `web/parent`
  built by Argo CD Application root (root.yaml:1)
apps/web.yaml:1: Argo CD Application web
  web/prod: a kustomization, hermetic
  built by overlays/prod/kustomization.yaml
apps/web.yaml:1: Argo CD Application web
  web/stage: nothing: there is no `web/stage`
  built by overlays/stage/kustomization.yaml
root.yaml:1: Argo CD Application root
  apps: a kustomization, hermetic

4 targets: 4 here, 0 external, 0 templated
";
    assert_eq!(shown, expected);
    work.run(&["targets", "--build", "web/prod"])
        .success()
        .stdout_has("name: prod\n");
    work.run(&["targets", "--build", "web"])
        .fails(2)
        .stderr_has("built by overlays/prod/kustomization.yaml");
    work.run(&["targets", "--manifest-generate-paths"])
        .success()
        .stdout_has("Application web, built by overlays/prod/kustomization.yaml\n");
    // What is not hermetic, or cannot be built, is not known.
    work.write(
        "overlays/stage/kustomization.yaml",
        "resources: [../../apps, 'https://example.com/x.yaml']\n",
    );
    let prod = work.read("overlays/prod/kustomization.yaml");
    work.write(
        "overlays/prod/kustomization.yaml",
        prod.replace("/spec/source/path", "/spec/source/none/path"),
    );
    let shown = work.run(&["targets"]).success().stdout.clone();
    for line in [
        "  web/test: nothing: there is no `web/test`\n  may be changed by overlays/prod/kustomization.yaml\n    not built: overlays/prod/kustomization.yaml: ",
        "  built by Argo CD Application root (root.yaml:1)\n",
    ] {
        assert!(shown.contains(line), "{shown}");
    }
    work.write("overlays/prod/kustomization.yaml", prod);
    let shown = work.run(&["targets"]).success().stdout.clone();
    let away = "    not built: overlays/stage/kustomization.yaml: it reaches https://example.com/x.yaml: not locked\n";
    assert!(shown.contains(away), "{shown}");
    sandbox.set("KUSTOMIZE", "/nowhere/kustomize");
    let shown = work
        .run(&["targets", "--format", "json"])
        .success()
        .stdout
        .clone();
    assert!(
        shown.contains("`/nowhere/kustomize` (KUSTOMIZE) is not there"),
        "{shown}"
    );
    assert!(!shown.contains("\"built_by\": \""), "{shown}");
}

/// Returns the name and the verdict of everything that was built.
fn verdicts(output: &Output) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let targets = report["verified"]["targets"].as_array().unwrap().iter();
    targets
        .map(|one| (text(&one["target"]), text(&one["verdict"])))
        .collect()
}

/// Returns those of what was built besides the kustomizations.
fn engines(output: &Output) -> Vec<(String, String)> {
    let mut all = verdicts(output);
    all.retain(|(name, _)| name.contains(' '));
    all
}

#[test]
fn what_engines_build_is_the_same_when_localized() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    deployed(work);
    let output = work.run(&["branch", "--format", "json"]);
    output.success();
    let same = |name: &str| (name.to_owned(), "identical".to_owned());
    assert_eq!(
        engines(&output),
        [
            same("Argo CD Application web (argo/apps/web.yaml:1)"),
            same("Argo CD ApplicationSet one (argo/each.yaml:1)"),
            same("Argo CD ApplicationSet two (argo/each.yaml:1)"),
            same("Flux Kustomization overlay (clusters/prod/apps.yaml:6)"),
            same("Flux Kustomization plain (clusters/prod/apps.yaml:20)"),
        ]
    );
    // What is filled in or decrypted later is byte for byte what it was.
    assert_eq!(
        work.show("localized/main", "plain/inner/secret.yaml"),
        SEALED
    );
    assert_eq!(
        work.show("localized/main", "plain/map.yaml"),
        config("plain-${WHO}")
    );
    work.run(&["verify", "localized/main"]).success();
    // The branch builds to the same, too.
    let build = |args: &[&str]| {
        let args = [&["targets", "--build", "flux-system/plain"], args].concat();
        work.run(&args).success().stdout.clone()
    };
    assert_eq!(
        build(&["--rev", "main"]),
        build(&["--rev", "localized/main"])
    );
    // Nothing that they build has changed: what was verified is not built again.
    work.write("README.md", "More.\n");
    work.commit("More");
    let output = work.run(&["branch", "--format", "json"]);
    output.success();
    let before: Vec<String> = engines(&output)
        .into_iter()
        .map(|(_, verdict)| verdict)
        .collect();
    let (last, first) = before.split_last().unwrap();
    assert!(
        first.iter().all(|one| one == "verified-before"),
        "{before:?}"
    );
    assert_eq!(last, "identical");
}

#[test]
fn what_flux_leaves_out_is_not_there_when_it_builds() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    let all = [
        source(),
        flux(
            "mixed",
            "./example/overlay",
            "  components: [../../mixin]\n---\n",
        ),
        flux("plain", "./plain", "---\n"),
        argo(
            "mixed",
            "example/overlay",
            ", kustomize: {components: [../../mixin]}",
        ),
    ];
    let files = [
        ("clusters/all.yaml", &*all.concat()),
        MIXIN,
        ("plain/kept.yaml", &config("kept")),
        ("plain/notes.yaml", "- no object\n"),
        (
            "plain/inner/kustomization.yaml",
            "resources: [../../example/base]\n",
        ),
    ];
    work.commit_files(&files);
    work.decide("rules: {engine: warning}\n");
    work.symlink("plain/link.yaml", "notes.yaml");
    let run = |patterns: &str| {
        work.commit_files(&[(".sourceignore", patterns)]);
        let output = work.run(&["branch", "--format", "json"]);
        output.success();
        let verdicts = engines(&output).into_iter();
        verdicts.map(|(_, verdict)| verdict).collect::<Vec<_>>()
    };
    // Both of Flux, then Argo CD.
    let all = run("notes.yaml\n");
    assert_eq!(all, ["identical", "identical", "identical"]);
    // What was verified before was with other files.
    let without = run("notes.yaml\n/mixin/\n");
    assert_eq!(without, ["not-built", "identical", "verified-before"]);
    let with_notes = run("*.md\n");
    assert_eq!(with_notes, ["identical", "not-built", "verified-before"]);
    work.run(&["targets", "--build", "plain"]).fails(2);
    work.write(".sourceignore", "notes.yaml\n");
    work.run(&["targets", "--build", "plain"])
        .success()
        .stdout_has("  name: kept\n");
}

#[test]
fn what_differs_only_where_an_engine_builds_is_refused() {
    let part = "localized-files/github.com/acme/lib/v1/part";
    let flux = flux(
        "web",
        "./apps/web",
        &format!("  ignoreMissingComponents: true\n  components: [{part}]\n"),
    );
    let flux = [source(), flux].concat();
    let components =
        format!(", kustomize: {{ignoreMissingComponents: true, components: [{part}]}}");
    let plain = argo("web", "apps/web", "");
    let argo = argo("web", "apps/web", &components);
    // An overlay says the same of an application.
    let overlay = "resources: [../clusters]
patches:
- target: {kind: Application}
  patch: |-
    - op: add
      path: /spec/source/kustomize
      value: {ignoreMissingComponents: true, components: [localized-files/github.com/acme/lib/v1/part]}
";
    let nothing = "resources: []\n";
    for (objects, prod, name) in [
        (
            &flux,
            nothing,
            "Flux Kustomization web (clusters/web.yaml:6)",
        ),
        (
            &argo,
            nothing,
            "Argo CD Application web (clusters/web.yaml:1)",
        ),
        (
            &plain,
            overlay,
            "Argo CD Application web (clusters/web.yaml:1, built by prod/kustomization.yaml)",
        ),
    ] {
        let world = World::acme();
        if Kustomize::find().is_none() {
            return;
        }
        let work = &world.work;
        work.git(&["remote", "add", "origin", HERE]);
        world.commit(&[
            ("clusters/web.yaml", objects),
            ("clusters/kustomization.yaml", "resources: [web.yaml]\n"),
            ("prod/kustomization.yaml", prod),
            (
                "apps/web/kustomization.yaml",
                "resources: [map.yaml]\ncomponents: ['https://github.com/acme/lib//part?ref=v1']\n",
            ),
            ("apps/web/map.yaml", &config_map("web")),
        ]);
        // The component that the object adds is there only when it is localized: then it is added twice.
        work.lock();
        let before = work.state();
        let output = work.run(&["branch", "--format", "json"]);
        let verdicts = verdicts(output.fails(1));
        let expected = [("apps/web", "identical"), (name, "differs")];
        assert_eq!(verdicts, expected.map(|(a, b)| (a.into(), b.into())));
        let output = work.run(&["branch"]);
        output.fails(1).stdout_has(name);
        output
            .stdout_has("-  name: x-web\n")
            .stdout_has("+  name: x-x-web\n");
        work.state().assert_same(&before);
        // Without the object nothing differs.
        work.git(&["rm", "-qr", "clusters", "prod"]);
        work.commit("No object");
        work.run(&["branch"]).success();
    }
}

#[test]
fn what_others_say_of_an_object_is_built_again_when_they_change() {
    let argo = argo("web", "apps/web", "");
    let overlay = |prefix: &str| {
        let text = format!(
            "resources: [../clusters]
patches:
- target: {{kind: Application}}
  patch: |-
    - {{op: add, path: /spec/source/kustomize, value: {{namePrefix: {prefix}}}}}
"
        );
        ("prod/kustomization.yaml", text)
    };
    let world = World::acme();
    if Kustomize::find().is_none() {
        return;
    }
    let work = &world.work;
    work.git(&["remote", "add", "origin", HERE]);
    let verdict = |prefix: &str| {
        let (place, text) = overlay(prefix);
        world.commit(&[(place, &text)]);
        let output = work.run(&["branch", "--format", "json"]);
        let all = engines(output.success());
        let web = all.into_iter().find(|(name, _)| name.contains(" web ("));
        web.unwrap().1
    };
    world.commit(&[
        ("source.yaml", &source()),
        ("clusters/web.yaml", &argo),
        ("clusters/kustomization.yaml", "resources: [web.yaml]\n"),
        (
            "apps/web/kustomization.yaml",
            "resources: [map.yaml]\ncomponents: ['https://github.com/acme/lib//part?ref=v1']\n",
        ),
        ("apps/web/map.yaml", &config_map("web")),
    ]);
    for prefix in ["a-", "b-"] {
        assert_eq!(verdict(prefix), "identical", "{prefix}");
    }
}

/// What did not build is not verified before, whoever builds it.
#[test]
fn a_build_of_an_engine_that_failed_is_never_verified_before() {
    let Some(project) = fleet() else { return };
    let work = &project.work;
    let patch = "  namePrefix: x-
  patches:
    - patch: |
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: nowhere}
";
    let overlay = flux("overlay", "./example/overlay", patch);
    work.commit_files(&[("ks.yaml", &[source(), overlay].concat())]);
    let same = |said: &str| {
        said.matches("as deployed did not work before either")
            .count()
    };
    let first = work.run(&["branch"]);
    assert_eq!(same(&first.success().stdout), 1, "{first:?}");
    for _ in 0..2 {
        let again = work.run(&["branch"]);
        assert_eq!(same(&again.success().stdout), 1, "{again:?}");
        work.write("README.md", "Another text\n");
        work.commit("Nothing that is built");
    }
}
