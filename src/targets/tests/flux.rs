//! Flux.

use super::*;
use crate::message::position::Position;
use crate::os::limits::PATTERNS;

pub(super) const SOURCE: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata:
  name: flux-system
  namespace: flux-system
spec:
  url: ssh://git@github.com/acme/fleet.git
  ref:
    branch: main
";

pub(super) const APPS: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata:
  name: apps
  namespace: flux-system
spec:
  path: ./apps/prod
  sourceRef:
    kind: GitRepository
    name: flux-system
";

/// Returns a Kustomization with this spec.
pub(super) fn apps(spec: &str) -> String {
    let (head, _) = APPS.split_once("spec:").unwrap();
    format!("{head}spec: {{{spec}}}\n")
}

const REF: &str = "sourceRef: {kind: GitRepository, name: flux-system}";

#[test]
fn a_kustomization_is_bound_to_this_repository() {
    let files =
        [("clusters/prod/all.yaml", format!("{SOURCE}---\n{APPS}")), ("apps/prod/kustomization.yaml", String::new())];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    assert_eq!(
        lines(&files),
        ["Kustomization flux-system/apps (clusters/prod/all.yaml:11) apps/prod@Some(\"main\")true kustomization"]
    );
    let targets = find_in(&files);
    let [target] = targets.targets.as_slice() else { panic!() };
    assert_eq!(target.spot, Position::new(17, 9));
    assert_eq!(target.build.load_restrictor, Some(LoadRestrictor::None));
    assert_eq!(target.by(), "Flux Kustomization apps (clusters/prod/all.yaml:11)");
}

#[test]
fn what_is_not_bound_says_why() {
    for (source, spec, expected) in [
        (
            SOURCE.replace("fleet", "other"),
            format!("path: ./apps, {REF}"),
            "external: it is in ssh://git@github.com/acme/other.git at main",
        ),
        (
            SOURCE.replace("ssh://git@", "https://user:secret@"),
            format!("path: apps, {REF}"),
            "apps@Some(\"main\")true missing",
        ),
        (
            SOURCE.replace("name: flux-system", "name: other"),
            format!("path: ./apps, {REF}"),
            "external: no GitRepository `flux-system` is defined in this repository",
        ),
        (
            SOURCE.replace("name: flux-system", "name: flux-sytsem"),
            format!("path: ./apps, {REF}"),
            "external: no GitRepository `flux-system` is defined in this repository",
        ),
        (
            SOURCE.replace("namespace: flux-system", "namespace: other"),
            format!("path: ./apps, {REF}"),
            "external: no GitRepository `flux-system` is defined in this repository",
        ),
        (SOURCE.replace("branch: main", "tag: v1"), format!("path: ./apps, {REF}"), "apps@Some(\"v1\")false missing"),
        (
            SOURCE.replace("branch: main", "{branch: main, commit: abc}").replace("ref:\n    ", "ref: "),
            format!("path: ./apps, {REF}"),
            "apps@Some(\"abc\")false missing",
        ),
        (
            SOURCE.replace("branch: main", "branch: localized/main"),
            format!("path: ./apps, {REF}"),
            "apps@Some(\"localized/main\")true missing",
        ),
        (
            SOURCE.to_owned(),
            format!("path: './apps/${{cluster}}', {REF}"),
            "templated: `./apps/${cluster}` is substituted elsewhere",
        ),
        (
            SOURCE.to_owned(),
            "path: a, sourceRef: {kind: GitRepository, name: '${x}'}".to_owned(),
            "templated: `${x}` is substituted elsewhere",
        ),
        (SOURCE.to_owned(), format!("path: ../../apps, {REF}"), "apps@Some(\"main\")true missing"),
        (SOURCE.to_owned(), REF.to_owned(), "@Some(\"main\")true directory"),
        (
            SOURCE.replace("spec:", "spec:\n  include: [{toPath: vendor}]"),
            format!("path: vendor/x, {REF}"),
            "templated: `vendor` comes from another source",
        ),
        (
            SOURCE.to_owned(),
            "path: a, sourceRef: {kind: Bucket, name: b}".to_owned(),
            "external: no Bucket `b` is defined in this repository",
        ),
        (
            SOURCE.to_owned(),
            "path: a, sourceRef: {kind: ExternalArtifact, name: b}".to_owned(),
            "external: its source is the ExternalArtifact `b`, which the cluster generates",
        ),
    ] {
        let text = apps(&spec);
        let found = lines(&[("s.yaml", &source), ("a.yml", &text)]);
        let expected = format!("Kustomization flux-system/apps (a.yml:1) {expected}");
        assert_eq!(found, [expected], "{source}\n{text}");
    }
}

#[test]
fn what_bootstrapping_made_is_this_repository_where_its_directories_are_here() {
    let elsewhere = "external: no GitRepository `flux-system` is defined in this repository";
    let other = SOURCE.replace("name: flux-system", "name: flux-system2");
    let other = other.replace("acme/fleet", "acme/other");
    for (apps_are, source, expected) in [
        ("apps/kustomization.yaml", "", ["apps kustomization", "gone missing"]),
        ("other/kustomization.yaml", "", [elsewhere, elsewhere]),
        ("apps/kustomization.yaml", other.as_str(), ["apps kustomization", "gone missing"]),
    ] {
        let gone = apps(&format!("path: ./gone, {REF}"));
        let found = lines(&[
            ("a.yml", &apps(&format!("path: ./apps, {REF}"))),
            ("b.yml", &gone),
            (apps_are, ""),
            ("s.yaml", source),
        ]);
        let expected = ["a.yml", "b.yml"].iter().zip(expected);
        let expected: Vec<String> =
            expected.map(|(file, place)| format!("Kustomization flux-system/apps ({file}:1) {place}")).collect();
        assert_eq!(found, expected, "{apps_are}");
    }
    // What is deployed from the top is here.
    let top = lines(&[("a.yml", &apps(&format!("path: ./, {REF}")))]);
    assert_eq!(top, ["Kustomization flux-system/apps (a.yml:1)  directory"]);
    // As in fluxcd/flux2-kustomize-helm-example, where generators copy parts of it.
    let generator = "apiVersion: source.extensions.fluxcd.io/v1beta1
kind: ArtifactGenerator
metadata: {name: flux-system, namespace: flux-system}
spec:
  sources: [{alias: monorepo, kind: GitRepository, name: flux-system}]
  artifacts:
  - name: apps
    copy:
    - {from: '@monorepo/apps/base/**', to: '@artifact/base/'}
    - {from: '@monorepo/apps/production/**', to: '@artifact/production/'}
";
    let found = lines(&[
        ("clusters/production/artifacts.yaml", generator),
        ("clusters/production/apps.yaml", &apps("path: ./production, sourceRef: {kind: ExternalArtifact, name: apps}")),
        ("apps/production/kustomization.yaml", ""),
        ("apps/base/kustomization.yaml", ""),
    ]);
    let of = "Kustomization flux-system/apps (clusters/production/apps.yaml:1)";
    assert_eq!(found, [format!("{of} apps/production kustomization")]);
    // What nobody can say is not taken for another repository.
    let odd = generator.replace("base/**'", "base/*.yaml'");
    let apps_of = apps("path: ./production, sourceRef: {kind: ExternalArtifact, name: apps}");
    let found = lines(&[("a.yml", &apps_of), ("g.yaml", &odd), ("b.yml", &apps(&format!("path: ./gone, {REF}")))]);
    let why = "templated: the ArtifactGenerator `flux-system/flux-system` copies more than files and directories";
    let expected = [format!("a.yml:1) {why}"), format!("b.yml:1) {elsewhere}")];
    assert_eq!(found, expected.map(|end| format!("Kustomization flux-system/apps ({end}")));
    // The top is here.
    for spec in [REF, &format!("path: ./, {REF}")] {
        let top = lines(&[("a.yml", &apps(spec))]);
        assert_eq!(top, ["Kustomization flux-system/apps (a.yml:1)  directory"]);
    }
}

#[test]
fn a_patch_and_another_kustomization_are_no_targets() {
    for text in [
        apps("path: ./apps"),
        APPS.replace("kustomize.toolkit.fluxcd.io/v1", "kustomize.config.k8s.io/v1beta1"),
        "kind: Kustomization # kustomize.toolkit.fluxcd.io/v1\n".to_owned(),
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: x}}\ndata:\n  text: |\n    {}",
            APPS.replace('\n', "\n    ")
        ),
        "apiVersion: v1\nkind: GitRepositoryList # kustomize.toolkit.fluxcd.io/v1\nitems: [{}]\n".to_owned(),
    ] {
        let found = find_in(&[("a.yaml", &text)]);
        assert_eq!((found.targets.len(), found.unread.len()), (0, 0), "{text}");
    }
}

#[test]
fn a_link_on_the_way_is_nothing_to_flux() {
    let mut tree = tree(&[("s.yaml", SOURCE), ("a.yaml", APPS), ("real/prod/kustomization.yaml", "")]);
    tree.link("apps", "real");
    let config = Config::default();
    let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap().0;
    let TargetLocation::Local(here) = &found.targets[0].location else { panic!() };
    assert_eq!(
        here.content,
        PathContent::Nothing("`apps` is a link, which Flux leaves out of its artifacts".to_owned())
    );
}

#[test]
fn the_nearest_of_several_sources_counts() {
    let other = SOURCE.replace("main", "production");
    let files = [
        ("clusters/a/s.yaml", SOURCE),
        ("clusters/b/s.yaml", &other),
        ("clusters/a/apps.yaml", APPS),
        ("clusters/b/apps.yaml", APPS),
        ("apps.yaml", APPS),
    ];
    assert_eq!(
        lines(&files),
        [
            "Kustomization flux-system/apps (apps.yaml:1) templated: there are several GitRepository `flux-system`",
            "Kustomization flux-system/apps (clusters/a/apps.yaml:1) apps/prod@Some(\"main\")true missing",
            "Kustomization flux-system/apps (clusters/b/apps.yaml:1) apps/prod@Some(\"production\")false missing",
        ]
    );
}

#[test]
fn sources_of_many_clusters_in_one_directory_are_told_apart() {
    let one = format!("{SOURCE}---\n{APPS}");
    let other = one.replace("main", "production");
    let equal = one.replace("name: apps", "name: more");
    let files = [("clusters/a.yaml", one.as_str()), ("clusters/b.yaml", &other)];
    let found = lines(&files);
    assert!(found[0].contains("@Some(\"main\")true"), "{found:?}");
    assert!(found[1].contains("@Some(\"production\")false"), "{found:?}");
    // Of sources that pack the same, any will do.
    let found = lines(&[("a.yaml", SOURCE), ("b.yaml", &equal), ("c.yaml", APPS)]);
    assert!(found[1].contains("@Some(\"main\")true"), "{found:?}");
}

#[test]
fn an_artifact_of_a_subdirectory_can_be_bound() {
    let config = "repository:\n- url: oci://ghcr.io/acme/manifests\n  path: deploy\n";
    let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
    let text = apps("path: web, sourceRef: {kind: OCIRepository, name: m}");
    // Its tag is none of this repository, and its digest is one of its commits.
    for (reference, expected) in [
        ("", "deploy/web kustomization"),
        ("tag: latest", "deploy/web@Some(\"latest\")true kustomization"),
        ("tag: v1.2.3", "deploy/web@Some(\"v1.2.3\")true kustomization"),
        ("semver: '>=1.0.0'", "deploy/web@Some(\">=1.0.0\")true kustomization"),
        ("digest: 'sha256:0'", "deploy/web@Some(\"sha256:0\")false kustomization"),
    ] {
        let source = format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: OCIRepository\nmetadata: {{name: m}}\nspec: {{url: 'oci://ghcr.io/acme/manifests', ref: {{{reference}}}}}\n"
        );
        let tree = tree(&[("s.yaml", &*source), ("a.yaml", &*text), ("deploy/web/kustomization.yaml", "")]);
        let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap().0;
        assert_eq!(line(&found.targets[0]), format!("Kustomization flux-system/apps (a.yaml:1) {expected}"));
    }
}

#[test]
fn an_instance_is_a_target_and_a_source() {
    let instance = "apiVersion: fluxcd.controlplane.io/v1
kind: FluxInstance
metadata: {name: flux, namespace: flux-system}
spec:
  sync: {kind: GitRepository, url: 'https://github.com/acme/fleet.git', ref: refs/heads/main, path: clusters/prod}
";
    assert_eq!(
        lines(&[("flux.yaml", instance), ("clusters/prod/apps.yaml", APPS)]),
        [
            "Kustomization flux-system/apps (clusters/prod/apps.yaml:1) apps/prod@Some(\"main\")true missing",
            "FluxInstance flux-system/flux (flux.yaml:1) clusters/prod@Some(\"main\")true directory",
        ]
    );
}

#[test]
fn how_it_is_built_is_kept() {
    let text = apps(&format!(
        "path: a, {REF}, targetNamespace: x, namePrefix: p-, images: [{{name: a, newTag: '1'}}], components: [../c, d], ignoreMissingComponents: true, patches: [{{patch: '{{}}'}}], postBuild: {{}}"
    ));
    let found = find_in(&[("a.yaml", &text), ("s.yaml", SOURCE)]);
    let build = &found.targets[0].build;
    assert_eq!(
        Json::Object(build.overrides.clone()),
        serde_json::json!({"targetNamespace": "x", "namePrefix": "p-", "images": [{"name": "a", "newTag": "1"}], "patches": [{"patch": "{}"}], "postBuild": {}})
    );
    let components: Vec<&str> = build.components.iter().map(|one| one.text.text.as_str()).collect();
    assert_eq!(components, ["../c", "d"]);
    assert!(build.ignore_missing_components);
}

#[test]
fn what_only_the_cluster_knows_is_templated() {
    let set = "apiVersion: fluxcd.controlplane.io/v1
kind: ResourceSet
metadata: {name: apps, namespace: flux-system}
spec: {inputs: [{tenant: one}], resources: [{kind: Kustomization, metadata: {name: << inputs.tenant >>}}]}
";
    let variable = apps(&format!("path: 'apps/${{cluster}}', {REF}"));
    for (text, why) in
        [(set, "the cluster generates its objects"), (&variable, "`apps/${cluster}` is substituted elsewhere")]
    {
        let found = find_in(&[("set.yaml", text), ("s.yaml", SOURCE)]);
        let places: Vec<&TargetLocation> = found.targets.iter().map(|target| &target.location).collect();
        assert_eq!(places, [&TargetLocation::Templated(why.to_owned())], "{text}");
    }
}

#[test]
fn bad_input_is_named_and_the_rest_is_found() {
    for (bad, expected) in [
        (
            apps(&format!("path: [a], {REF}")),
            "a.yaml:6: Kustomization flux-system/apps: `spec.path`: expected a string, found a list",
        ),
        (
            apps("path: a, sourceRef: x"),
            "a.yaml:6: Kustomization flux-system/apps: `spec.sourceRef`: expected a mapping, found a string",
        ),
        (
            apps("path: a, sourceRef: {name: 7}"),
            "a.yaml:6: Kustomization flux-system/apps: `spec.sourceRef.name`: expected a string, found a number",
        ),
        (
            apps(&format!("path: a, {REF}, components: [{{}}]")),
            "a.yaml:6: Kustomization flux-system/apps: `spec.components[]`: expected a string, found a mapping",
        ),
    ] {
        let text = format!("{bad}---\n{SOURCE}---\n{APPS}");
        assert_eq!(unread(&[("a.yaml", &text)]), [expected]);
        assert_eq!(lines(&[("a.yaml", &text)]).len(), 1, "{bad}");
    }
    let broken =
        format!("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nspec: [\n---\n{SOURCE}---\n{APPS}");
    let [only] = &unread(&[("a.yaml", &broken)])[..] else { panic!() };
    assert!(only.starts_with("a.yaml:3: not YAML: "), "{only}");
    assert_eq!(lines(&[("a.yaml", &broken)]).len(), 1);
    let template = APPS.replace("name: apps", "name: {{ .x }}-a");
    let [only] = &unread(&[("a.yaml", &template)])[..] else { panic!() };
    assert!(only.starts_with("a.yaml:4: not YAML: "), "{only}");
    let chart = [("c/Chart.yaml", "name: c\n"), ("c/templates/a.yaml", &*template)];
    assert_eq!(unread(&chart), ["c/templates/a.yaml:4: a template, which is rendered elsewhere"]);
    // Helm's templates are none of ours.
    assert_eq!(unread(&[("templates/a.yaml", "{{ if .x }}\na: [ # kustomize.toolkit.fluxcd.io/v1\n")]), [""; 0]);
}

#[test]
fn ten_thousand_documents_are_bounded() {
    let mut text = format!("{SOURCE}---\n");
    for _ in 0..10_000 {
        text += APPS;
        text += "---\n";
    }
    let found = find_in(&[("a.yaml", &text), ("b.yaml", APPS)]);
    assert_eq!(found.targets.len(), 1000);
    assert_eq!(found.targets[999].object.file, "b.yaml");
    assert_eq!(found.unread[0].message, "the file contains more than 1000 objects: the rest is not read");
    // Those that do not matter do not count.
    let mut text = "kind: ConfigMap\n---\n".repeat(10_000);
    text += APPS;
    assert_eq!(find_in(&[("a.yaml", &text)]).targets.len(), 1);
}

#[test]
fn the_patterns_of_a_tree_are_bounded() {
    // Broken ones count, too. Those of the same text count once.
    let patterns: String = (0..PATTERNS.most + 1).map(|n| format!("a**{n}/x\n")).collect();
    let (less, _) = patterns.split_at(patterns.len() / 2);
    for (text, is_refused) in [(patterns.as_str(), true), (less, false)] {
        let all = format!("{SOURCE}---\n{APPS}");
        let ignores = ["a", "apps", "b"].map(|directory| format!("{directory}/.sourceignore"));
        let files = ignores.iter().map(|file| (file.as_str(), text));
        let files: Vec<_> = files.chain([("all.yaml", all.as_str())]).collect();
        let config = Config::default();
        let failure = find(&tree(&files), &config, &|| Ok(identity(&config))).err().map(|failure| failure.message);
        let refused = "`spec.ignore` has more than 50000 patterns";
        assert_eq!(failure.as_deref(), is_refused.then_some(refused));
    }
}
