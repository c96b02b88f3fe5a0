//! Every kind of reference: localized, and then the build gives the same as before.

use crate::support::{World, config_map, deployment};

const FILES: &str = "https://files.example.com";
const CUSTOM: &str = "apiVersion: example.com/v1\nkind: Custom\nmetadata:\n  name: custom\nspec:\n  \
                      map: the-map\n";

/// What the files of [`every_field`] hold, by name.
pub(crate) fn contents() -> Vec<(&'static str, String)> {
    let text = |text: &str| text.to_owned();
    vec![
        ("deployment.yaml", deployment("the-deployment")),
        ("map.yaml", config_map("the-map")),
        ("custom.yaml", text(CUSTOM)),
        (
            "crd.json",
            text(
                "{\"example.com/v1.Custom\": {\"Schema\": {\"properties\": {\"spec\": {\"properties\": {\"map\": {\"x-kubernetes-object-ref-api-version\": \"v1\", \"x-kubernetes-object-ref-kind\": \"ConfigMap\"}}}}}}}",
            ),
        ),
        (
            "configuration.yaml",
            text("namePrefix:\n- path: spec/prefixed\n  kind: Custom\n"),
        ),
        ("openapi.json", text("{\"definitions\": {}}\n")),
        (
            "patch.yaml",
            text("- op: add\n  path: /metadata/labels\n  value: {patched: 'yes'}\n"),
        ),
        (
            "merge.yaml",
            text(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: the-map\ndata:\n  merged: 'yes'\n",
            ),
        ),
        (
            "json6902.json",
            text("[{\"op\": \"replace\", \"path\": \"/spec/replicas\", \"value\": 3}]"),
        ),
        (
            "replacement.yaml",
            text(
                "source: {kind: Custom, name: custom, fieldPath: spec.map}\ntargets:\n- select: {kind: ConfigMap, name: the-map}\n  fieldPaths: [data.replaced]\n  options: {create: true}\n",
            ),
        ),
        (
            "targets.yaml",
            text("targets:\n- selector: {kind: Custom}\n  fieldPath: spec/added\n"),
        ),
        ("data.txt", text("some text\n")),
        ("one.env", text("ONE=1\n")),
        ("two.env", text("TWO=2\r\n")),
        (
            "generator.yaml",
            text(
                "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata:\n  name: plugin-map\nfiles: [PLACE/data.txt]\nenvs: [PLACE/one.env]\n---\napiVersion: builtin\nkind: SecretGenerator\nmetadata:\n  name: plugin-secret\nfiles:\n- key=PLACE/data.txt\n",
            ),
        ),
        (
            "transformer.yaml",
            text(
                "apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: t1\npath: PLACE/patch.yaml\ntarget: {kind: Secret}\n---\napiVersion: builtin\nkind: PatchJson6902Transformer\nmetadata:\n  name: t2\npath: PLACE/patch.yaml\ntarget: {kind: Custom, name: custom}\n---\napiVersion: builtin\nkind: PatchStrategicMergeTransformer\nmetadata:\n  name: t3\npaths:\n- PLACE/merge.yaml\n---\napiVersion: builtin\nkind: ReplacementTransformer\nmetadata:\n  name: t4\nreplacements:\n- path: PLACE/replacement.yaml\n---\napiVersion: builtin\nkind: ValueAddTransformer\nmetadata:\n  name: t5\nvalue: added\ntargetFilePath: PLACE/targets.yaml\n",
            ),
        ),
        (
            "validator.yaml",
            text(
                "apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: v\npath: PLACE/patch.yaml\ntarget: {kind: Nothing}\n",
            ),
        ),
    ]
}

/// A kustomization in which every field of the table names its file at `PLACE`.
pub(crate) fn every_field(place: &str) -> String {
    "\
resources: [PLACE/deployment.yaml]
bases:
- PLACE/map.yaml
- 'PLACE/custom.yaml'
crds: [PLACE/crd.json]
configurations:
- \"PLACE/configuration.yaml\"
openapi:
  path: PLACE/openapi.json
patches:
- path: PLACE/patch.yaml
  target: {kind: Deployment}
- patch: '[{\"op\": \"add\", \"path\": \"/metadata/annotations\", \"value\": {\"inline\": \"kept\"}}]'
  target: {kind: Deployment}
patchesStrategicMerge:
- PLACE/merge.yaml
- |-
  apiVersion: v1
  kind: ConfigMap
  metadata: {name: the-map}
  data: {inline: kept}
patchesJson6902:
- path: PLACE/json6902.json
  target: {group: apps, version: v1, kind: Deployment, name: the-deployment}
replacements:
- path: PLACE/replacement.yaml
configMapGenerator:
- name: generated
  files: [PLACE/data.txt, key.txt=PLACE/data.txt]
  envs: [PLACE/one.env]
- name: old
  env: PLACE/two.env
  literals: [a=PLACE/data.txt]
secretGenerator:
- name: secret
  files:
  - PLACE/data.txt
  envs:
  - PLACE/two.env
- name: old-secret
  env: PLACE/one.env
generators:
- PLACE/generator.yaml
- |-
  apiVersion: builtin
  kind: ConfigMapGenerator
  metadata:
    name: inline-map
  files:
  - PLACE/data.txt # kept
transformers:
- PLACE/transformer.yaml
- |
  apiVersion: builtin
  kind: PatchTransformer
  metadata: {name: inline}
  path: PLACE/patch.yaml
  target: {kind: ConfigMap, name: inline-map}
validators: [PLACE/validator.yaml]
"
    .replace("PLACE", place)
}

#[test]
fn every_field_with_remote_files() {
    let world = World::new();
    for (name, text) in contents() {
        world.file(&format!("{FILES}/{name}"), text.replace("PLACE", FILES));
    }
    world.commit(&[("app/kustomization.yaml", &every_field(FILES))]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let text = clone.read("localized-app/kustomization.yaml");
    let literals = text.matches(FILES).count();
    assert_eq!(literals, 1, "the literal only: {text}");
    assert_eq!(
        text,
        every_field("localized-files/files.example.com")
            .replace("a=localized-files/files.example.com", &format!("a={FILES}"))
    );
}

#[test]
fn every_field_with_local_files() {
    let world = World::new();
    for (name, text) in contents() {
        let place = "../app/x/../files";
        world
            .work
            .write(&format!("app/files/{name}"), text.replace("PLACE", place));
    }
    world.commit(&[("app/kustomization.yaml", &every_field("../app/./files"))]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    assert_eq!(
        clone.read("localized-app/kustomization.yaml"),
        every_field("files").replace("a=files", "a=../app/./files")
    );
    for name in ["generator.yaml", "transformer.yaml", "validator.yaml"] {
        let (_, text) = contents().into_iter().find(|(n, _)| *n == name).unwrap();
        assert_eq!(
            clone.read(&format!("localized-app/files/{name}")),
            text.replace("PLACE", "files")
        );
    }
    // With the directory above in the scope the paths are correct.
    let again = world.localized(&["app", "wide", "--scope", "."]);
    world.same_build("app", &again, "wide/app");
    assert_eq!(
        again.read("wide/app/kustomization.yaml"),
        every_field("../app/./files")
    );
}

#[test]
fn helm_values_are_localized_and_charts_named() {
    let world = World::new();
    world.file(&format!("{FILES}/values.yaml"), "a: 1\n");
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!("resources: [map.yaml]\nhelmCharts:\n- name: far\n  repo: https://charts.example.com\n  version: 1.0.0\n  valuesFile: {FILES}/values.yaml\n  additionalValuesFiles: [../app/more.yaml]\nhelmChartInflationGenerator:\n- chartName: near\n  values: more.yaml\n"),
        ),
        ("app/map.yaml", &config_map("map")),
        ("app/more.yaml", "b: 2\n"),
        ("app/charts/near/Chart.yaml", "name: near\n"),
    ]);
    let output = world.work.run(&["app"]);
    output
        .success()
        .stderr_has("warning[remote-chart]")
        .stderr_has("app/kustomization.yaml:4:9: helmCharts[0]");
    let clone = world.clone_of_branch();
    let text = clone.read("localized-app/kustomization.yaml");
    assert!(
        text.contains("valuesFile: localized-files/files.example.com/values.yaml"),
        "{text}"
    );
    assert!(
        text.contains("additionalValuesFiles: [more.yaml]"),
        "{text}"
    );
    assert!(text.contains("repo: https://charts.example.com"), "{text}");
    assert_eq!(
        clone.read("localized-app/charts/near/Chart.yaml"),
        "name: near\n"
    );
    assert!(
        clone
            .read("localized-app/kustomize-localize.lock")
            .contains("left:\n  - url: https://charts.example.com\n    chart: far\n    version: \"1.0.0\"\n    reason: ")
    );
}

#[test]
fn plugin_configurations_may_be_the_resources_of_a_directory() {
    let world = World::new();
    world.file(&format!("{FILES}/far.txt"), "far\n");
    let generator = |name: &str, files: &str| {
        format!(
            "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata:\n  name: {name}\nfiles: [{files}]\n"
        )
    };
    // Where kustomize looks for what they name: in the root that lists the directory.
    world.commit(&[
        ("app/kustomization.yaml", "generators: [../gens]\n"),
        ("app/near.txt", "near\n"),
        (
            "gens/kustomization.yaml",
            "resources: [one.yaml, ../more]\n",
        ),
        ("gens/one.yaml", &generator("one", "near.txt")),
        ("more/kustomization.yaml", "resources: [two.yaml]\n"),
        (
            "more/two.yaml",
            &generator("two", &format!("{FILES}/far.txt")),
        ),
    ]);
    let output = world.work.run(&["app", "--scope", "."]);
    output.success().lacks("warning");
    let copy = world.clone_of_branch();
    assert_eq!(
        copy.read("localized-app/more/two.yaml"),
        generator("two", "localized-files/files.example.com/far.txt")
    );
    assert_eq!(
        copy.read("localized-app/app/localized-files/files.example.com/far.txt"),
        "far\n"
    );
    world.same_build("app", &copy, "localized-app/app");
    world
        .work
        .run(&["check"])
        .fails(1)
        .stdout_has("more/two.yaml:5:9");
    world.work.run(&["lock"]).success();
    world.work.git(&["add", "--all"]);
    world.work.run(&["check"]).success();
    world
        .work
        .run(&["--in-place", "--no-commit", "app"])
        .success();
    assert_eq!(
        world.work.read("more/two.yaml"),
        generator("two", "localized-files/files.example.com/far.txt")
    );
    // A missing file there is reported.
    world.work.remove("app/near.txt");
    world
        .work
        .run(&["app", "--scope", ".", "--no-commit"])
        .fails(2)
        .stderr_has("gens/one.yaml:5:9: generators[0] > ConfigMapGenerator.files[0]: `near.txt` does not exist");
}

#[test]
fn generator_keys_stay() {
    let world = World::new();
    for path in [
        "app.properties?x",
        "a%20b.txt",
        "dir/",
        "plain.txt",
        "q.txt?a",
    ] {
        world.file(&format!("{FILES}/{path}"), format!("{path}\n"));
    }
    world.work.symlink("app/link.txt", "real.txt");
    world.work.symlink("app/linked", "directory");
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!("configMapGenerator:\n- name: map\n  files:\n  - {FILES}/a%20b.txt\n  - link.txt\n  - linked/deep.txt\n  - {FILES}/plain.txt\n  - other=link.txt\n  - ./real.txt\n  - k.txt={FILES}/plain.txt\n"),
        ),
        ("app/real.txt", "real\n"),
        ("app/directory/deep.txt", "deep\n"),
    ]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let text = clone.read("localized-app/kustomization.yaml");
    for line in [
        "- a%20b.txt=localized-files/files.example.com/a_20b-",
        "- link.txt=real.txt\n",
        "- directory/deep.txt\n",
        "- localized-files/files.example.com/plain.txt\n",
        "- other=real.txt\n",
        "- ./real.txt\n",
        "- k.txt=localized-files/files.example.com/plain.txt\n",
    ] {
        assert!(text.contains(line), "no {line:?} in {text}");
    }
    assert!(!clone.path().join("localized-app/link.txt").exists());

    // Such a key cannot go into an object, but the URL in an env file can.
    world.commit(&[(
        "env/kustomization.yaml",
        &format!("configMapGenerator:\n- name: map\n  envs: ['{FILES}/one.env?a=b&c']\n"),
    )]);
    world.file(&format!("{FILES}/one.env?a=b&c"), "ONE=1\n");
    let clone = world.localized(&["env"]);
    world.same_build("env", &clone, "localized-env");

    world.commit(&[(
        "app/kustomization.yaml",
        &format!("configMapGenerator:\n- name: map\n  files: ['{FILES}/plain.txt?a=b']\n"),
    )]);
    world.refused(&["app", "other"]).stderr_has(
        "app/kustomization.yaml:3:11: configMapGenerator[0].files[0]: kustomize takes the text before `=` in ",
    );
}

#[test]
fn keys_documents_and_aliases_are_read_as_kustomize_does() {
    let world = World::new();
    world.file(&format!("{FILES}/map.yaml"), config_map("file"));
    world.file(&format!("{FILES}/data.txt"), "data\n");
    let text = format!(
        "RESOURCES:\n- {FILES}/map.yaml\nConfigMapGenerator:\n- NAME: one\n  Files: &files [{FILES}/data.txt]\n- name: two\n  files: *files\n- name: three\n  files:\n  - &one data.txt={FILES}/data.txt\n- name: four\n  files: [*one]\n---\nresources: [not-read.yaml]\n"
    );
    world.commit(&[("app/Kustomization", &text)]);
    let output = world.work.run(&["app"]);
    output.success().stderr_has("warning[extra-document]");
    let clone = world.clone_of_branch();
    world.same_build("app", &clone, "localized-app");
    assert_eq!(
        clone.read("localized-app/Kustomization"),
        text.replace(FILES, "localized-files/files.example.com")
    );
    assert_eq!(world.work.files("localized/main:localized-app").len(), 5);
}

#[test]
fn json_is_a_kustomization() {
    let world = World::new();
    world.file(&format!("{FILES}/map.yaml"), config_map("file"));
    world.commit(&[(
        "app/kustomization.yml",
        &format!("{{\"resources\": [\"{FILES}/map.yaml\"], \"namePrefix\": \"a-\"}}"),
    )]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    assert_eq!(
        clone.read("localized-app/kustomization.yml"),
        "{\"resources\": [\"localized-files/files.example.com/map.yaml\"], \"namePrefix\": \"a-\"}"
    );
}

/// Remote roots that name files, roots and components near and far.
#[test]
fn remote_roots_reach_further() {
    let world = World::new();
    world.file(&format!("{FILES}/map.yaml"), config_map("file"));
    world.upstream_of(
        "acme/deep",
        &[
            (
                "kustomization.yaml",
                "resources: [map.yaml]\nnameSuffix: -deep\n",
            ),
            ("map.yaml", &config_map("map")),
        ],
    );
    world.upstream_of(
        "acme/middle",
        &[
            (
                "apps/one/kustomization.yaml",
                &format!("resources:\n- ../../base\n- https://github.com/acme/deep?ref=v1\n- {FILES}/map.yaml\nnamePrefix: one-\n"),
            ),
            ("base/kustomization.yaml", "resources: [map.yaml]\n"),
            ("base/map.yaml", &config_map("base")),
            (
                "component/kustomization.yaml",
                "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {by: component}\nconfigMapGenerator:\n- name: component\n  files: [data.txt]\n",
            ),
            ("component/data.txt", "data\n"),
        ],
    );
    world.commit(&[(
        "app/kustomization.yaml",
        "bases:\n- https://github.com/acme/middle//apps/one?ref=v1\ncomponents:\n- https://github.com/acme/middle//component?ref=v1\n",
    )]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let middle = "localized-app/localized-files/github.com/acme/middle/v1";
    for path in [
        "base/map.yaml",
        "component/data.txt",
        "apps/one/localized-files/github.com/acme/deep/v1/map.yaml",
        "apps/one/localized-files/files.example.com/map.yaml",
        "apps/one/localized-files/.gitattributes",
    ] {
        assert!(clone.path().join(middle).join(path).is_file(), "{path}");
    }
}

#[test]
fn one_repository_at_two_refs_from_two_overlays() {
    let world = World::new();
    let upstream = world.upstream_of(
        "acme/base",
        &[
            ("kustomization.yaml", "resources: [map.yaml]\n"),
            ("map.yaml", &config_map("first")),
        ],
    );
    upstream.write("map.yaml", config_map("second"));
    upstream.commit("second");
    upstream.git(&["tag", "v2"]);
    world.commit(&[
        ("app/kustomization.yaml", "resources: [a, b]\n"),
        (
            "app/a/kustomization.yaml",
            "resources:\n- https://github.com/acme/base?ref=v1\n- https://github.com/acme/base?ref=v2\nnamePrefix: a-\n",
        ),
        (
            "app/b/kustomization.yaml",
            "resources:\n- https://github.com/acme/base?ref=v1\n- ../c\nnamePrefix: b-\n",
        ),
        ("app/c/kustomization.yaml", "resources: [map.yaml]\n"),
        ("app/c/map.yaml", &config_map("c")),
    ]);
    // A diamond: two ways to one local base.
    world.commit(&[("app/kustomization.yaml", "resources: [a, b, d]\n")]);
    world.commit(&[(
        "app/d/kustomization.yaml",
        "resources: [../c]\nnamePrefix: d-\n",
    )]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let place = "localized-app/a/localized-files/github.com/acme/base";
    assert_eq!(
        clone.read(&format!("{place}/v1/map.yaml")),
        config_map("first")
    );
    assert_eq!(
        clone.read(&format!("{place}/v2/map.yaml")),
        config_map("second")
    );
    // Each kustomization has its own copy beside it: files may not lie outside their root.
    let place = "localized-app/b/localized-files/github.com/acme/base/v1/map.yaml";
    assert_eq!(clone.read(place), config_map("first"));
    let lock = clone.read("localized-app/kustomize-localize.lock");
    assert_eq!(
        lock.matches("url: https://github.com/acme/base").count(),
        2,
        "{lock}"
    );
}

#[test]
fn links_are_replaced_by_their_targets() {
    let world = World::new();
    world
        .work
        .symlink("app/kustomization.yaml", "real/kustomization.yaml");
    world.work.symlink("app/map.yaml", "real/map.yaml");
    world.work.symlink("app/base", "../bases/one");
    world.commit(&[
        (
            "app/real/kustomization.yaml",
            "resources: [map.yaml, base]\n",
        ),
        ("app/real/map.yaml", &config_map("app")),
        (
            "bases/one/kustomization.yaml",
            "resources: [map.yaml, ../two]\n",
        ),
        ("bases/one/map.yaml", &config_map("one")),
        ("bases/two/kustomization.yaml", "resources: [map.yaml]\n"),
        ("bases/two/map.yaml", &config_map("two")),
    ]);
    let clone = world.localized(&["app", "--scope", "."]);
    world.same_build("app", &clone, "localized-app/app");
    assert_eq!(
        clone.read("localized-app/app/kustomization.yaml"),
        "resources: [real/map.yaml, ../bases/one]\n"
    );
    let links: Vec<String> = world.work.files("localized/main:localized-app");
    assert!(
        links.iter().all(|file| file.starts_with("100644 ")),
        "{links:?}"
    );
}

#[test]
fn links_in_a_remote_root_are_replaced_too() {
    let world = World::new();
    let upstream = world.upstream("acme/base");
    upstream.symlink("app/base", "../real");
    upstream.symlink("app/data.txt", "directory/data.txt");
    upstream.write(
        "app/kustomization.yaml",
        "resources: [base]\nconfigMapGenerator:\n- {name: g, files: [data.txt]}\n",
    );
    upstream.write("app/directory/data.txt", "data\n");
    upstream.write("real/kustomization.yaml", "resources: [map.yaml]\n");
    upstream.write("real/map.yaml", config_map("real"));
    upstream.symlink("linked", "app");
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    world.commit(&[(
        "app/kustomization.yaml",
        "resources: ['https://github.com/acme/base//linked?ref=v1']\n",
    )]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let place = "localized-files/github.com/acme/base/v1/app";
    assert_eq!(
        clone.read("localized-app/kustomization.yaml"),
        format!("resources: ['{place}']\n")
    );
}

#[test]
fn absolute_files_become_relative() {
    let world = World::new();
    let top = world.work.path().display().to_string();
    world.commit(&[
        (
            "app/kustomization.yaml",
            &format!("resources: ['{top}/app/map.yaml']\nconfigMapGenerator:\n- name: g\n  files: [{top}/app/data.txt]\n"),
        ),
        ("app/map.yaml", &config_map("map")),
        ("app/data.txt", "data\n"),
    ]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    assert_eq!(
        clone.read("localized-app/kustomization.yaml"),
        "resources: ['map.yaml']\nconfigMapGenerator:\n- name: g\n  files: [data.txt]\n"
    );
}

#[test]
fn files_outside_their_root_need_the_load_restrictor() {
    let world = World::new();
    world.commit(&[
        (
            "deploy/app/kustomization.yaml",
            "resources: [../shared/map.yaml]\nconfigMapGenerator:\n- name: g\n  files: [../shared/data.txt]\n",
        ),
        ("deploy/shared/map.yaml", &config_map("map")),
        ("deploy/shared/data.txt", "data\n"),
    ]);
    let output = world.refused(&["deploy/app", "--scope", "deploy"]);
    output
        .stderr_has(
            "resources[0]: `../shared/map.yaml` lies outside its kustomization root `deploy/app`",
        )
        .stderr_has("configMapGenerator[0].files[0]: `../shared/data.txt` lies outside")
        .stderr_has("--load-restrictor none");
    let none = ["--load-restrictor", "none"];
    world
        .refused(&[&["deploy/app"][..], &none].concat())
        .stderr_has("`../shared/map.yaml` lies outside the scope `deploy/app`")
        .stderr_has("hint: name a directory that holds both: --scope :/deploy\n");
    let clone = world.localized(&[&["deploy/app", "--scope", "deploy"][..], &none].concat());
    let flag = ["--load-restrictor", "LoadRestrictionsNone"];
    world.same_build_with("deploy/app", &clone, "localized-app/app", &flag);
}

#[test]
fn a_remote_root_never_has_files_outside() {
    let world = World::new();
    world.upstream_of(
        "acme/base",
        &[
            ("app/kustomization.yaml", "resources: [../map.yaml]\n"),
            ("map.yaml", &config_map("map")),
            ("out/kustomization.yaml", "resources: [../../other]\n"),
            (
                "absolute/kustomization.yaml",
                "resources: [/etc/hostname]\n",
            ),
        ],
    );
    let none = ["--load-restrictor", "none", "--scope", "."];
    for (directory, message) in [
        (
            "app",
            "https://github.com/acme/base?ref=v1: app/kustomization.yaml:1:13: resources[0]: `../map.yaml` lies outside its kustomization root",
        ),
        ("out", "`../../other` lies outside the scope"),
        (
            "absolute",
            "absolute/kustomization.yaml:1:13: resources[0]: `/etc/hostname` is an absolute path",
        ),
    ] {
        world.commit(&[(
            "app/kustomization.yaml",
            &format!("resources: ['https://github.com/acme/base//{directory}?ref=v1']\n"),
        )]);
        world
            .refused(&[&["app"][..], &none].concat())
            .stderr_has(message);
    }
}

#[test]
fn scopes_far_above_the_target() {
    let world = World::new();
    world.commit(&[
        (
            "a/b/c/app/kustomization.yaml",
            "resources: [../../base, ../../../top]\n",
        ),
        ("a/b/base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("a/b/base/map.yaml", &config_map("base")),
        ("a/top/kustomization.yaml", "resources: [map.yaml]\n"),
        ("a/top/map.yaml", &config_map("top")),
    ]);
    world
        .refused(&["a/b/c/app", "--scope", "a/b"])
        .stderr_has("resources[1]: `../../../top` lies outside the scope `a/b`");
    let clone = world.localized(&["a/b/c/app", "--scope", "a"]);
    world.same_build("a/b/c/app", &clone, "localized-app/b/c/app");

    // From where the command runs, with `.` for the target.
    let inside = world.work.path().join("a/b/c/app");
    let output = world
        .sandbox
        .run(&inside, &[".", "--scope", "../../..", "--branch", "dot"]);
    output
        .success()
        .stdout_has("localized a/b/c/app into a/b/c/app/localized-app on branch dot");
    assert!(
        world
            .work
            .files("dot")
            .contains(&"100644 a/b/c/app/localized-app/top/map.yaml".to_owned())
    );
}

#[test]
fn nothing_may_lead_into_new_dir() {
    let world = World::new();
    world.commit(&[
        ("app/kustomization.yaml", "resources: [map.yaml]\n"),
        ("app/map.yaml", &config_map("map")),
    ]);
    let scope = ["app", "--scope", "."];
    world.work.run(&scope).success();
    world.work.git(&["merge", "-q", "localized/main"]);
    world.commit(&[(
        "app/kustomization.yaml",
        "resources: [../localized-app/app]\npatches:\n- path: ../localized-app/app/map.yaml\n",
    )]);
    world
        .refused(&scope)
        .stderr_has("resources[0]: `../localized-app/app` lies in `localized-app`, where the result is going to be")
        .stderr_has("patches[0].path: `../localized-app/app/map.yaml` lies in `localized-app`")
        .stderr_has("hint: choose another NEW_DIR");
}

#[test]
fn a_file_that_is_rewritten_and_also_read_as_data() {
    let world = World::new();
    world.file(&format!("{FILES}/data.txt"), "data\n");
    world.commit(&[
        (
            "app/kustomization.yaml",
            "generators: [gen.yaml]\nconfigMapGenerator:\n- name: g\n  files: [gen.yaml, data.txt]\n",
        ),
        (
            "app/gen.yaml",
            &format!("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: p}}\nfiles: ['{FILES}/data.txt']\n"),
        ),
        ("app/data.txt", "data\n"),
    ]);
    let output = world.work.run(&["app", "--no-verify"]);
    output
        .success()
        .stderr_has("warning[rewritten-data]: app/kustomization.yaml:4:11: configMapGenerator[0].files[0]: `gen.yaml` is also read as data here");
    assert_eq!(output.stderr.matches("warning[").count(), 1, "{output:?}");
    if world.sandbox.builds().is_some() {
        let output = world.work.run(&["app", "verified"]);
        output.fails(1).stderr_has("warning[rewritten-data]");
    }
}

#[test]
fn plugin_configurations_that_several_kustomizations_list() {
    let world = World::new();
    for name in ["data.txt", "other/data.txt"] {
        world.file(&format!("{FILES}/{name}"), "data\n");
    }
    let gen_yaml = format!(
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: p}}\nfiles: ['{FILES}/data.txt']\n"
    );
    world.commit(&[
        ("app/kustomization.yaml", "resources: [a, b]\n"),
        (
            "app/a/kustomization.yaml",
            "generators: [../gen.yaml]\nnamePrefix: a-\n",
        ),
        (
            "app/b/kustomization.yaml",
            "generators: [../gen.yaml]\nnamePrefix: b-\n",
        ),
        ("app/gen.yaml", &gen_yaml),
    ]);
    let none = ["app", "--load-restrictor", "none"];
    let clone = world.localized(&none);
    let flag = ["--load-restrictor", "LoadRestrictionsNone"];
    world.same_build_with("app", &clone, "localized-app", &flag);
    for name in ["a", "b"] {
        let place = format!("localized-app/{name}/localized-files/files.example.com/data.txt");
        assert_eq!(clone.read(&place), "data\n");
    }
    // Where the same text would have to become two, nothing is guessed.
    world.commit(&[(
        "app/b/kustomization.yaml",
        &format!("generators: [../gen.yaml]\npatches:\n- path: {FILES}/DATA.txt\n"),
    )]);
    world.file(&format!("{FILES}/DATA.txt"), "[]\n");
    world
        .refused(&none)
        .stderr_has("`app/gen.yaml` is listed by several kustomizations, and this reference would have to differ in each")
        .stderr_has("hint: give each kustomization a plugin configuration of its own");
}

#[test]
fn references_that_may_be_missing_stay() {
    let world = World::new();
    world.commit(&[
        (
            "app/kustomization.yaml",
            "resources: [map.yaml, gone]\nsecretGenerator:\n- name: s\n  envs: [secret.env]\npatches:\n- path: ''\n  patch: '[{\"op\": \"test\", \"path\": \"/kind\", \"value\": \"ConfigMap\"}]'\n  target: {kind: ConfigMap}\n",
        ),
        ("app/map.yaml", &config_map("map")),
        (".gitignore", "*.env\n"),
    ]);
    world.work.write("app/secret.env", "a=b\n");
    world
        .refused(&["app"])
        .stderr_has("secretGenerator[0].envs[0]: `secret.env` is kept out of git: `app/secret.env` matches `*.env` (.gitignore:1)")
        .stderr_has("--leave-missing app/secret.env")
        .stderr_has("resources[1]: `gone` does not exist");
    let output = world.work.run(&[
        "app",
        "--leave-missing",
        "**/*.env",
        "--leave-missing",
        "app/gone",
    ]);
    output.success().stderr_has(
        "warning[left-missing]: app/kustomization.yaml:1:23: resources[1]: `gone` is left as it is",
    );
    assert_eq!(output.stderr.matches("warning[left-missing]").count(), 2);
    assert_eq!(
        world
            .work
            .show("localized/main", "localized-app/kustomization.yaml"),
        world.work.read("app/kustomization.yaml")
    );
}

#[test]
fn submodules_of_a_remote_root_are_part_of_it() {
    let world = World::new();
    world.sandbox.configure("protocol.file.allow", "always");
    world.upstream_of(
        "acme/lib",
        &[
            ("app/kustomization.yaml", "resources: [map.yaml]\n"),
            ("app/map.yaml", &config_map("lib")),
            (".gitattributes", "*.txt eol=crlf\n"),
            ("app/data.txt", "data\n"),
        ],
    );
    let upstream = world.upstream("acme/base");
    upstream.write(
        "kustomization.yaml",
        "resources: [lib/app]\nconfigMapGenerator:\n- {name: g, files: [lib/app/data.txt]}\n",
    );
    upstream.git(&[
        "submodule",
        "--quiet",
        "add",
        "https://github.com/acme/lib",
        "lib",
    ]);
    upstream.commit("first");
    upstream.git(&["tag", "v1"]);
    let url = "https://github.com/acme/base?ref=v1";
    world.commit(&[("app/kustomization.yaml", &format!("resources: ['{url}']\n"))]);
    let clone = world.localized(&["app"]);
    world.same_build("app", &clone, "localized-app");
    let place = "localized-app/localized-files/github.com/acme/base/v1/lib/app";
    assert_eq!(clone.read(&format!("{place}/data.txt")), "data\r\n");

    world.commit(&[(
        "app/kustomization.yaml",
        &format!("resources: ['{url}&submodules=false']\n"),
    )]);
    world
        .refused(&["app"])
        .stderr_has("`lib/app` lies in the submodule `https://github.com/acme/base?ref=v1: lib`");
}
