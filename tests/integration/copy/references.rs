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
        ("configuration.yaml", text("namePrefix:\n- path: spec/prefixed\n  kind: Custom\n")),
        ("openapi.json", text("{\"definitions\": {}}\n")),
        ("patch.yaml", text("- op: add\n  path: /metadata/labels\n  value: {patched: 'yes'}\n")),
        ("merge.yaml", text("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: the-map\ndata:\n  merged: 'yes'\n")),
        ("json6902.json", text("[{\"op\": \"replace\", \"path\": \"/spec/replicas\", \"value\": 3}]")),
        (
            "replacement.yaml",
            text(
                "source: {kind: Custom, name: custom, fieldPath: spec.map}\ntargets:\n- select: {kind: ConfigMap, name: the-map}\n  fieldPaths: [data.replaced]\n  options: {create: true}\n",
            ),
        ),
        ("targets.yaml", text("targets:\n- selector: {kind: Custom}\n  fieldPath: spec/added\n")),
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
        world.work.write(&format!("app/files/{name}"), text.replace("PLACE", place));
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
        assert_eq!(clone.read(&format!("localized-app/files/{name}")), text.replace("PLACE", "files"));
    }
    // With the directory above in the scope the paths are correct.
    let again = world.localized(&["app", "wide", "--scope", "."]);
    world.same_build("app", &again, "wide/app");
    assert_eq!(again.read("wide/app/kustomization.yaml"), every_field("../app/./files"));
}

#[test]
fn generator_keys_stay() {
    let world = World::new();
    for path in ["a%20b.txt", "plain.txt"] {
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

    // A URL with such a query has no key that can go into an object, but can be an env file.
    world.commit(&[(
        "env/kustomization.yaml",
        &format!("configMapGenerator:\n- name: map\n  envs: ['{FILES}/one.env?a=b&c']\n"),
    )]);
    world.file(&format!("{FILES}/one.env?a=b&c"), "ONE=1\n");
    let clone = world.localized(&["env"]);
    world.same_build("env", &clone, "localized-env");
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
    world.work.run(&["app"]).success();
    let clone = world.clone_of_branch();
    world.same_build("app", &clone, "localized-app");
    let local = "localized-files/files.example.com";
    assert_eq!(clone.read("localized-app/Kustomization"), text.replace(FILES, local));
    assert_eq!(world.work.files("localized/main:localized-app").len(), 5);
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
            &format!(
                "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: p}}\nfiles: ['{FILES}/data.txt']\n"
            ),
        ),
        ("app/data.txt", "data\n"),
    ]);
    if world.sandbox.builds().is_some() {
        world.work.run(&["app", "verified"]).fails(1).says(expect![[r#"
            not localized: the localized build differs from the original, in 1 of 1 build
              app: the outputs differ
                changed v1 ConfigMap g-dmkk2b7fhb
                v1 ConfigMap g-dmkk2b7fhb:
                @@ -6,7 +6,7 @@
                     apiVersion: builtin
                     kind: ConfigMapGenerator
                     metadata: {name: p}
                -    files: ['https://files.example.com/data.txt']
                +    files: ['localized-files/files.example.com/data.txt']
                 kind: ConfigMap
                 metadata:
                -  name: g-f7t2fd2kkc
                +  name: g-dmkk2b7fhb
              both outputs: /home/me/tmp/kustomize-localize-output-…/
            error: nothing was written: the localized build differs from the original
              hint: to accept the difference: --no-verify
        "#]]);
    }
}

#[test]
fn plugin_configurations_that_several_kustomizations_list() {
    let world = World::new();
    world.file(&format!("{FILES}/data.txt"), "data\n");
    let gen_yaml =
        format!("apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {{name: p}}\nfiles: ['{FILES}/data.txt']\n");
    world.commit(&[
        ("app/kustomization.yaml", "resources: [a, b]\n"),
        ("app/a/kustomization.yaml", "generators: [../gen.yaml]\nnamePrefix: a-\n"),
        ("app/b/kustomization.yaml", "generators: [../gen.yaml]\nnamePrefix: b-\n"),
        ("app/gen.yaml", &gen_yaml),
    ]);
    world.work.decide("load-restrictor: none\n");
    let clone = world.localized(&["app"]);
    let flag = ["--load-restrictor", "LoadRestrictionsNone"];
    world.same_build_with("app", &clone, "localized-app", &flag);
    for name in ["a", "b"] {
        let place = format!("localized-app/{name}/localized-files/files.example.com/data.txt");
        assert_eq!(clone.read(&place), "data\n");
    }
}
