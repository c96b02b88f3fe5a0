//! What `check` finds, compared with what the real kustomize builds.

use std::fs;

use crate::support::{Kustomize, Memory, Sandbox, World, config, config_map};

/// The expected result of a case.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Is {
    Clean,
    Found(&'static str),
}
use Is::{Clean, Found};

/// A root `app`, its kustomization, and whether kustomize builds it. Beside it lie `base`, `component`, `files`
/// and links.
const CASES: &[(Is, &[&str])] = &[
    (
        Clean,
        &[
            "resources: [map.yaml, ../base]",
            "resources: [./map.yaml, ../other/../base]",
            "resources: []",
            "RESOURCES: [map.yaml]",
            "resources: [map.yaml]\ncomponents: [../component]",
            "transformers: ['']\nresources: [map.yaml]",
            "bases: [../base]\nresources: [link.yaml]",
            "resources: [linked-base]",
            "resources: [map.yaml]\npatches: [{path: patch.yaml}]",
            "resources: [map.yaml]\npatches: [{patch: '{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}'}]",
            "resources: [map.yaml]\npatchesStrategicMerge: ['{apiVersion: v1, kind: ConfigMap, metadata: {name: app}}']",
            "configMapGenerator: [{name: a, files: [map.yaml, k=map.yaml], literals: [gone=gone.yaml], envs: [one.env]}]",
            "resources: [map.yaml]\n# resources: [gone.yaml]",
            "namePrefix: a-\nresources: [map.yaml]\nnamePrefix: b-",
            "resources: []\nresources: [map.yaml]",
            "configMapGenerator: [{name: a, literals: [a=b], literals: [a=c]}]",
            "patches: [{patch: nonsense}]\nresources: [map.yaml]\npatches: [{path: patch.yaml}]",
            "transformers: [prefix.yaml]\nresources: [map.yaml]",
            "transformers:\n- |\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: a}\n  prefix: x-\n  fieldSpecs: [{path: metadata/name}]\nresources: [map.yaml]",
        ],
    ),
    (
        Found("invalid-kustomization"),
        &[
            "resources: ['']",
            "components: ['']",
            "resources: [map.yaml, null]",
            "",
            "kind: Kustomization",
            "resource: [map.yaml]",
            "resources: map.yaml",
            "kind: Deployment\nresources: [map.yaml]",
            "apiVersion: v1\nresources: [map.yaml]",
            "resources: [map.yaml",
            "resources: [../component]",
            "components: [../base]",
            "components: [map.yaml]",
            "resources: [../two]",
            "resources: [../flux]",
            "resources: [../linked]",
            "resources: [map.yaml]\npatches: [{path: .}]",
            "configMapGenerator: [{name: a, files: [sub]}]",
            "resources: [loop.yaml]",
            "transformers: [nonsense.yaml]\nresources: [map.yaml]",
        ],
    ),
    (
        Found("missing-path"),
        &[
            "resources: [gone.yaml]",
            "resources: [../gone]",
            "resources: [map.yaml/x]",
            "resources: [dangling.yaml]",
            "resources: ['*.yaml']",
            "resources: [../files]",
            "components: [../files]",
            "components: [../gone]",
            "crds: [gone.yaml]",
            "configurations: [gone.yaml]",
            "openapi: {path: gone.yaml}\nresources: [map.yaml]",
            "resources: [map.yaml]\npatches: [{path: gone.yaml}]",
            "resources: [map.yaml]\nreplacements: [{path: gone.yaml}]",
            "configMapGenerator: [{name: a, files: [gone]}]",
            "configMapGenerator: [{name: a, envs: [gone]}]",
            "secretGenerator: [{name: a, files: [k=gone]}]",
            "transformers: [gone.yaml]\nresources: [map.yaml]",
            "transformers: [patch-gone.yaml]\nresources: [map.yaml]",
        ],
    ),
    (
        Found("out-of-scope"),
        &[
            "resources: [../files/map.yaml]",
            "resources: [map.yaml]\npatches: [{path: ../files/map.yaml}]",
            "configMapGenerator: [{name: a, files: [../files/map.yaml]}]",
            "resources: [out.yaml]",
            "resources: [/etc]",
            "resources: [/nowhere/base]",
        ],
    ),
    (
        Found("invalid-kustomization"),
        &[
            "resources: [.]",
            "resources: [../app]",
            "resources: [../back]",
            "resources: [inner]",
            "resources: [linked-self]",
        ],
    ),
];

/// Puts a case into a directory.
fn prepare(memory: &mut Memory, at: &str, case: &str) {
    let mut write = |path: &str, text: &str| memory.write(&format!("{at}/{path}"), text);
    write("app/kustomization.yaml", case);
    write("app/map.yaml", &config("app"));
    write("app/one.env", "ONE=1\n");
    write("app/patch.yaml", &config("app"));
    write(
        "app/prefix.yaml",
        "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\nprefix: x-\nfieldSpecs: [{path: metadata/name}]\n",
    );
    write("app/patch-gone.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: gone.yaml\n");
    write("app/nonsense.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: [a]\n");
    write("base/kustomization.yaml", "resources: [map.yaml]\n");
    write("base/map.yaml", &config("base"));
    write(
        "component/kustomization.yaml",
        "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnamePrefix: c-\n",
    );
    write("files/map.yaml", &config("files"));
    write("app/sub/x.txt", "x");
    // Files that are wrong by themselves are only there if the case needs them.
    for (name, path, text) in [
        ("../back]", "back/kustomization.yaml", "resources: [../app]\n"),
        ("[inner]", "app/inner/kustomization.yaml", "resources: [..]\n"),
        ("../two]", "two/kustomization.yaml", "resources: []\n"),
        ("../two]", "two/Kustomization", "resources: []\n"),
        ("../flux]", "flux/kustomization.yaml", FLUX),
    ] {
        if case.contains(name) {
            write(path, text);
        }
    }
    let mut link = |path: &str, to: &str| memory.symlink(&format!("{at}/{path}"), to);
    link("app/link.yaml", "map.yaml");
    link("app/out.yaml", "../files/map.yaml");
    link("app/dangling.yaml", "gone.yaml");
    link("app/loop.yaml", "loop.yaml");
    link("app/linked-base", "../base");
    link("app/linked-self", ".");
    if case.contains("../linked]") {
        link("linked/kustomization.yaml", "../base/kustomization.yaml");
    }
}

const FLUX: &str = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a, namespace: b}\nspec: {path: ./app}\n";

#[test]
fn exactly_the_errors_of_kustomize_are_found() {
    let cases = CASES.iter().flat_map(|(is, texts)| texts.iter().map(|text| (*text, *is)));
    agree(&cases.collect::<Vec<_>>());
}

/// Checks many cases at once, and builds each.
pub(super) fn agree<T: AsRef<str>>(cases: &[(T, Is)]) {
    let Some(kustomize) = Kustomize::find() else { return };
    let mut memory = Memory::default();
    for (number, (text, _)) in cases.iter().enumerate() {
        prepare(&mut memory, &format!("case-{number:02}"), text.as_ref());
    }
    let sandbox = Sandbox::new();
    let work = sandbox.path("work");
    memory.lay_out(&work);
    let findings = memory.findings();
    for (number, (text, is)) in cases.iter().enumerate() {
        let text = text.as_ref();
        let place = format!("case-{number:02}");
        let inside = format!("{place}/");
        let rules: Vec<&str> = findings
            .iter()
            .filter(|one| one["severity"] == "error" && one["path"].as_str().unwrap().starts_with(&inside))
            .map(|finding| finding["rule"].as_str().unwrap())
            .collect();
        let built = kustomize.build(&sandbox, &work, &format!("{place}/app"));
        match is {
            Clean => {
                assert_eq!(rules, crate::support::NONE, "{text}");
                assert_eq!(built.status, 0, "{text}: {built:?}");
            }
            Found(rule) => {
                assert!(!rules.is_empty() && rules.iter().all(|one| one == rule), "{text}: {rules:?}");
                assert_ne!(built.status, 0, "{text}: {built:?}");
            }
        }
    }
}

#[test]
fn a_dot_before_an_ambiguous_path_is_what_kustomize_needs() {
    let Some(kustomize) = Kustomize::find() else { return };
    let world = World::new();
    for text in ["app@v1/base/x", "github.com/o/r/dir"] {
        let build = |written: &str| {
            let memory = Memory::of(&[
                (&format!("{text}/kustomization.yaml"), "resources: [map.yaml]\n"),
                (&format!("{text}/map.yaml"), &config_map("here")),
                ("kustomization.yaml", &format!("resources: ['{written}']\n")),
            ]);
            memory.lay_out(world.work.path());
            let built = kustomize.build(&world.sandbox, world.work.path(), ".");
            (built.status == 0, memory.findings())
        };
        let (built, found) = build(text);
        assert!(!built, "{text}");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0]["rule"], "unsafe-reference");
        let help = format!("write `./{text}` for the local path");
        assert_eq!(found[0]["help"][0], help.as_str());
        let (built, found) = build(&format!("./{text}"));
        assert!(built, "{text}");
        assert!(found.is_empty(), "{found:?}");
    }
}

/// Where kustomize looks for a chart is what it does, not what we say.
#[test]
fn a_chart_is_remote_when_kustomize_pulls_it() {
    let Some(kustomize) = Kustomize::find() else { return };
    let world = World::new();
    let pulled = world.sandbox.path("pulled");
    world.sandbox.script(
        "helm",
        &format!(
            "case $1 in\n\
             version) echo v3.15.0;;\n\
             pull) touch '{}'; exit 1;;\n\
             template) printf 'apiVersion: v1\\nkind: ConfigMap\\nmetadata: {{name: x}}\\n';;\n\
             esac",
            pulled.display()
        ),
    );
    let repo = "repo: https://charts.example, releaseName: r";
    let charts = |version: &str, globals: &str| format!("{globals}helmCharts:\n- {{name: nginx, {version}{repo}}}\n");
    let plugin = format!(
        "helmGlobals: {{chartHome: c}}\ngenerators:\n- |-\n  {{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {{name: x}}, name: nginx, version: 1.2.3, {repo}, chartHome: own}}\n"
    );
    let old = "helmChartInflationGenerator:\n- {chartName: nginx, chartVersion: 1.2.3, chartRepoUrl: 'https://charts.example'}\n";
    let one = "version: 1.2.3, ";
    let home = "helmGlobals: {chartHome: ../c}\n";
    let cases = [
        (charts(one, ""), "a/charts/nginx-1.2.3/nginx", false),
        (charts(one, ""), "a/charts/nginx", true),
        (charts(one, ""), "charts/nginx-1.2.3/nginx", true),
        (charts("", ""), "a/charts/nginx", false),
        (charts("", ""), "a/charts/nginx-1.2.3/nginx", true),
        (charts(one, home), "c/nginx-1.2.3/nginx", false),
        (charts(one, home), "a/charts/nginx-1.2.3/nginx", true),
        (old.to_owned(), "a/charts/nginx-1.2.3/nginx", false),
        (format!("{home}{old}"), "c/nginx-1.2.3/nginx", false),
        (format!("{home}{old}"), "a/charts/nginx-1.2.3/nginx", true),
        (plugin.clone(), "a/own/nginx-1.2.3/nginx", false),
        (plugin, "a/c/nginx-1.2.3/nginx", true),
    ];
    for (number, (text, place, remote)) in cases.iter().enumerate() {
        let memory = Memory::of(&[("a/kustomization.yaml", text), (&format!("{place}/values.yaml"), "a: b\n")]);
        let work = world.sandbox.path(&format!("work-{number}"));
        memory.lay_out(&work);
        let args = ["build", "--enable-helm", "--load-restrictor", "LoadRestrictionsNone", "a"];
        let built = kustomize.run(&world.sandbox, &work, &args);
        let pulls = fs::remove_file(&pulled).is_ok();
        assert_eq!(pulls, *remote, "{text}{place}: {built:?}");
        let found = memory.findings();
        let told = found.iter().any(|finding| finding["rule"] == "remote-chart");
        assert_eq!(told, *remote, "{text}{place}: {found:?}");
    }
}
