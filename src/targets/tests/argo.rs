//! Argo CD.

use expect_test::expect;

use super::*;

const HEAD: &str = "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web, namespace: argocd}
";

/// Returns an application with this source.
fn app(source: &str) -> String {
    format!("{HEAD}spec:\n  source: {{repoURL: '{HERE}.git', {source}}}\n")
}

#[test]
fn an_application_is_bound_to_this_repository() {
    for (text, expected) in [
        (app("path: apps/web"), "apps/web kustomization"),
        (app("path: ./apps/web/, targetRevision: HEAD"), "apps/web@Some(\"HEAD\")true kustomization"),
        (app("path: apps/web, targetRevision: v1.2.3"), "apps/web@Some(\"v1.2.3\")false kustomization"),
        (app("path: apps/plain"), "apps/plain directory"),
        (app("path: apps/chart"), "apps/chart chart"),
        (app("path: apps/both"), "apps/both kustomization"),
        (app("path: apps/web, directory: {recurse: true}"), "apps/web directory"),
        (app("path: apps/web, plugin: {}"), "apps/web plugin"),
        (app("path: apps/none"), "apps/none missing"),
        (app("path: ../apps"), " missing"),
        (app("path: 'apps/{{x}}'"), "templated: `apps/{{x}}` is substituted elsewhere"),
        (app("path: a").replace("fleet", "other"), "external: it is in https://github.com/acme/other.git"),
        (
            app("chart: web").replace(HERE, "https://charts.example.com"),
            "external: it is the chart `web` of https://charts.example.com.git",
        ),
    ] {
        let found = lines(&[
            ("a.yaml", &text),
            ("apps/web/kustomization.yaml", ""),
            ("apps/plain/x.yaml", ""),
            ("apps/chart/Chart.yaml", ""),
            ("apps/both/Chart.yaml", ""),
            ("apps/both/Kustomization", ""),
        ]);
        assert_eq!(found, [format!("Application argocd/web (a.yaml:1) {expected}")], "{text}");
    }
}

/// The content of `apps/DIRECTORY` as an application sees it that has this source.
fn content(source: &str, directory: &str) -> String {
    let files = [
        ("a.yaml", &*app(&format!("path: apps/{directory}, {source}"))),
        ("apps/root/kustomization.yaml", ""),
        ("apps/plain/x.yaml", ""),
        ("apps/chart/Chart.yaml", ""),
    ];
    match &find_in(&files).targets[0].location {
        TargetLocation::Local(TargetDir { content: PathContent::Nothing(why), .. }) => why.clone(),
        TargetLocation::Local(dir) => id(&dir.content),
        other => other.described(),
    }
}

#[test]
fn the_type_of_a_source_decides_what_a_directory_is() {
    let all = [
        "kustomize: {namePrefix: x-}",
        "kustomize: {commonLabels: {}, forceCommonLabels: true}",
        "kustomize: {}, helm: {values: ''}, directory: {recurse: false, jsonnet: {}}",
        "helm: {skipCrds: true}",
        "directory: {include: '*.yaml'}",
        "plugin: {}",
        "kustomize: {version: v5}, directory: {jsonnet: {}}",
        "kustomize: {images: [a:1]}, helm: {releaseName: a}, directory: {recurse: true}, plugin: {}",
    ];
    let table: String = all
        .iter()
        .flat_map(|source| {
            let rows = ["root", "plain", "chart"];
            [format!("{source}\n")].into_iter().chain(rows.map(|row| format!("  {row}: {}\n", content(source, row))))
        })
        .collect();
    expect![[r#"
        kustomize: {namePrefix: x-}
          root: kustomization
          plain: its source has `kustomize`, and `apps/plain` has no kustomization
          chart: its source has `kustomize`, and `apps/chart` has no kustomization
        kustomize: {commonLabels: {}, forceCommonLabels: true}
          root: kustomization
          plain: directory
          chart: chart
        kustomize: {}, helm: {values: ''}, directory: {recurse: false, jsonnet: {}}
          root: kustomization
          plain: directory
          chart: chart
        helm: {skipCrds: true}
          root: chart
          plain: chart
          chart: chart
        directory: {include: '*.yaml'}
          root: directory
          plain: directory
          chart: directory
        plugin: {}
          root: plugin
          plain: plugin
          chart: plugin
        kustomize: {version: v5}, directory: {jsonnet: {}}
          root: kustomization
          plain: its source has `kustomize`, and `apps/plain` has no kustomization
          chart: its source has `kustomize`, and `apps/chart` has no kustomization
        kustomize: {images: [a:1]}, helm: {releaseName: a}, directory: {recurse: true}, plugin: {}
          root: its source has `kustomize` and `helm` and `directory` and `plugin`: Argo CD takes one of them
          plain: its source has `kustomize` and `helm` and `directory` and `plugin`: Argo CD takes one of them
          chart: its source has `kustomize` and `helm` and `directory` and `plugin`: Argo CD takes one of them
    "#]]
    .assert_eq(&table);
}

#[test]
fn the_type_of_a_source_tells_no_repository() {
    let other = app("path: apps/plain, kustomize: {namePrefix: x-}").replace("fleet", "other");
    assert_eq!(
        lines(&[("a.yaml", &other), ("apps/plain/x.yaml", "")]),
        ["Application argocd/web (a.yaml:1) apps/plain missing"]
    );
}

#[test]
fn every_source_is_a_target() {
    let text = format!(
        "{HEAD}spec:\n  sources:\n  - {{repoURL: '{HERE}', path: a}}\n  - {{repoURL: '{HERE}', ref: values}}\n  - {{repoURL: '{HERE}', path: b}}\n"
    );
    assert_eq!(
        lines(&[("a.yaml", &text)]),
        ["Application argocd/web (a.yaml:1) a missing", "Application argocd/web (a.yaml:1) b missing",]
    );
    let text = format!(
        "{HEAD}spec:\n  sourceHydrator:\n    drySource: {{repoURL: '{HERE}', path: dry, targetRevision: localized/main}}\n"
    );
    assert_eq!(
        lines(&[("a.yaml", &text)]),
        ["Application argocd/web (a.yaml:1) dry@Some(\"localized/main\")true missing"]
    );
    // What is hydrated into another repository is deployed from there.
    let hydrated = |dry: &str, sync: &str| {
        format!(
            "{HEAD}spec:\n  sourceHydrator:\n    drySource: {{repoURL: '{HERE}{dry}', path: dry}}\n    syncSource: {{{sync}path: wet, targetBranch: main}}\n"
        )
    };
    for (dry, sync, expected) in [
        ("", "", &["dry missing"][..]),
        ("-dry", "", &["external: it is in https://github.com/acme/fleet-dry"]),
        (
            "-dry",
            &format!("repoURL: '{HERE}', "),
            &["external: it is in https://github.com/acme/fleet-dry", "wet@Some(\"main\")true directory"],
        ),
    ] {
        let found = lines(&[("a.yaml", &hydrated(dry, sync)), ("wet/manifest.yaml", "kind: X\n")]);
        let expected: Vec<String> =
            expected.iter().map(|one| format!("Application argocd/web (a.yaml:1) {one}")).collect();
        assert_eq!(found, expected, "{dry} {sync}");
    }
    // An empty list is no list.
    for sources in ["[]", "null"] {
        let text = format!("{HEAD}spec:\n  sources: {sources}\n  source: {{repoURL: '{HERE}', path: a}}\n");
        assert_eq!(lines(&[("a.yaml", &text)]), ["Application argocd/web (a.yaml:1) a missing"]);
    }
    for text in [format!("{HEAD}spec:\n  source: {{path: a}}\n"), HEAD.to_owned()] {
        assert_eq!(lines(&[("a.yaml", &text)]), [""; 0], "{text}");
    }
    assert_eq!(
        unread(&[("a.yaml", &format!("{HEAD}spec: {{sources: x}}\n")), ("b.yaml", &app("x: y"))]),
        [
            "a.yaml:4: Application argocd/web: `spec.sources`: expected a list, found a string",
            "b.yaml:5: Application argocd/web: a source has neither `path` nor `chart`",
        ]
    );
}

#[test]
fn the_options_come_from_the_tree() {
    let text = app("path: apps/web, kustomize: {namePrefix: a-, components: [../c], version: v5}");
    let found = find_in(&[("a.yaml", &text)]);
    let build = &found.targets[0].build;
    // Nothing says otherwise: the configuration does.
    assert_eq!(build.load_restrictor, Some(LoadRestrictor::RootOnly));
    assert_eq!(Json::Object(build.overrides.clone()), serde_json::json!({"namePrefix": "a-"}));
    assert_eq!(build.components[0].text.text, "../c");
    let map = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: argocd-cm}\ndata:\n  kustomize.buildOptions: --enable-helm --load-restrictor LoadRestrictionsNone\n";
    let operator = "apiVersion: argoproj.io/v1beta1\nkind: ArgoCD\nmetadata: {name: x}\nspec: {kustomizeBuildOptions: --enable-helm}\n";
    for (options, restrictor, count) in [(map, LoadRestrictor::None, 3), (operator, LoadRestrictor::RootOnly, 1)] {
        let found = find_in(&[("a.yaml", &text), ("cm.yaml", options)]);
        let build = &found.targets[0].build;
        assert_eq!((build.load_restrictor, build.options.len()), (Some(restrictor), count));
    }
}

#[test]
fn overrides_in_the_repository_are_merged() {
    let own = "kustomize: {components: [../own], namePrefix: ~}\npath: elsewhere\n";
    let found = find_in(&[
        ("a.yaml", &app("path: web, kustomize: {namePrefix: a-, nameSuffix: -b}")),
        ("web/.argocd-source.yaml", "kustomize: {components: [../all], commonLabels: {a: b}}\n"),
        ("web/.argocd-source-web.yaml", own),
        ("web/kustomization.yaml", ""),
        ("web/.argocd-source-other.yaml", "kustomize: [\n"),
    ]);
    let [target, elsewhere] = &found.targets[..] else { panic!("{:?}", found.targets) };
    // What an application of another repository reads must be readable, too.
    let [unread] = &found.unread[..] else { panic!("{:?}", found.unread) };
    assert_eq!(unread.file, "web/.argocd-source-other.yaml");
    assert_eq!(elsewhere.object.full_name(), "any");
    assert_eq!(line(target), "Application argocd/web (a.yaml:1) web kustomization");
    assert_eq!(
        Json::Object(target.build.overrides.clone()),
        // Argo CD reads what is merged into what was there: null takes nothing away.
        serde_json::json!({"namePrefix": "a-", "nameSuffix": "-b", "commonLabels": {"a": "b"}})
    );
    assert_eq!(target.build.components[0].text.text, "../own");
}

/// Returns an ApplicationSet with this generator and this path.
fn set(generator: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: apps}}
spec:
  goTemplate: true
  generators:
  - {{{generator}}}
  template:
    metadata: {{name: 'x'}}
    spec:
      destination: {{server: '{{{{.server | other}}}}'}}
      source: {{repoURL: '{HERE}', path: '{path}'}}
"
    )
}

fn paths_of(text: &str) -> Vec<String> {
    let found = find_in(&[
        ("set.yaml", text),
        ("apps/web/kustomization.yaml", ""),
        ("apps/web/localized-files/x/pod.yaml", ""),
        ("apps/db/kustomization.yaml", ""),
        ("apps/.hidden/x.yaml", ""),
        ("clusters/empty.yaml", ""),
        ("clusters/a/config.json", "{\"cluster\": {\"name\": \"a\"}}"),
        ("clusters/b/config.json", "[{\"cluster\": {\"name\": \"b\"}}, {\"cluster\": {\"name\": \"c\"}}]"),
    ]);
    let targets = found.targets.iter();
    targets
        .map(|target| match &target.location {
            TargetLocation::Local(here) => here.path.clone(),
            TargetLocation::External(why) | TargetLocation::Templated(why) => why.clone(),
        })
        .collect()
}

#[test]
fn an_application_set_makes_what_the_tree_tells() {
    let git = |rest: &str| format!("git: {{repoURL: '{HERE}', revision: HEAD, {rest}}}");
    for (generator, path, expected) in [
        ("list: {elements: [{a: one}, {a: two}]}".to_owned(), "x/{{.a}}", &["x/one", "x/two"][..]),
        (git("directories: [{path: apps/*}]"), "{{.path.path}}", &["apps/db", "apps/web"]),
        (git("directories: [{path: apps/*/*}]"), "{{.path.path}}", &["apps/web/localized-files"]),
        (git("directories: [{path: apps/*}, {path: apps/db, exclude: true}]"), "{{.path.path}}/x", &["apps/web/x"]),
        (
            git("files: [{path: 'clusters/**/config.json'}]"),
            "{{.path.path}}/{{.cluster.name}}",
            &["clusters/a/a", "clusters/b/b", "clusters/b/c"],
        ),
        (git("files: [{path: clusters/*/config.json}, {path: '**/b/*', exclude: true}]"), "{{.path.basename}}", &["a"]),
        (
            format!(
                "matrix: {{generators: [{{list: {{elements: [{{dir: apps}}]}}}}, {{{}}}]}}",
                git("directories: [{path: '{{.dir}}/*'}]")
            ),
            "{{.path.path}}",
            &["apps/db", "apps/web"],
        ),
        (
            git("pathParamPrefix: app, directories: [{path: apps/*}]"),
            "{{.app.path.path}}/{{index .app.path.segments 1}}",
            &["apps/db/db", "apps/web/web"],
        ),
        (
            git("files: [{path: clusters/empty.yaml}]"),
            "{{.path.path}}/{{.path.filenameNormalized}}",
            &["clusters/empty.yaml"],
        ),
        (
            git("values: {up: '{{.path.basename}}-up'}, directories: [{path: apps/*}]"),
            "{{.values.up}}",
            &["db-up", "web-up"],
        ),
        (
            git(
                "template: {metadata: {}, spec: {project: '', source: {path: 'own/{{.path.basename}}'}}}, directories: [{path: apps/*}]",
            ),
            "x",
            &["own/db", "own/web"],
        ),
        ("list: {elements: [{a: one}]}".to_owned(), "{{.a | lower}}", &["`{{.a | lower}}` is substituted elsewhere"]),
        (
            git("directories: [{path: apps/*}]").replace("fleet", "other"),
            "{{.path.path}}",
            &["its generator reads another repository"],
        ),
        (
            git("directories: [{path: apps/*}]").replace("HEAD", "v1"),
            "{{.path.path}}",
            &["its generator reads another revision"],
        ),
        (git("directories: [{path: 'apps/['}]"), "x", &[]),
        // For Argo CD an empty list is missing.
        (git("directories: [], files: [{path: 'clusters/a/config.json'}]"), "{{.path.path}}", &["clusters/a"]),
        (git("directories: [], files: []"), "x/{{.a}}", &["its generator names neither directories nor files"]),
    ] {
        assert_eq!(paths_of(&set(&generator, path)), expected, "{generator} {path}");
    }
    let text = set("list: {elements: [{a: one}]}", "x/{{.a}}");
    let named = text.replace("name: 'x'", "name: '{{.a | lower}}'");
    assert_ne!(named, text);
    assert_eq!(paths_of(&named), ["x/one"]);
    for (patch, expected) in [
        ("'spec: {syncPolicy: {}}'", "x/one"),
        ("'spec: {source: {}}'", "x/one"),
        ("'spec: {source: {path: x/two}}'", "x/two"),
        ("'spec: {source: {path: x/{{.b}}}}'", "`templatePatch` may change it"),
        // What it prints may be anything.
        ("'{{ toYaml .spec }}'", "`templatePatch` may change it"),
        ("'spec: {\"sourc\\u0065\": {{ .unheardOf }}}'", "`templatePatch` may change it"),
        ("'{{ if .b }}spec: {syncPolicy: {}}{{ end }}'", "`templatePatch` may change it"),
    ] {
        let patched = format!("{text}  templatePatch: {patch}\n");
        assert_eq!(paths_of(&patched), [expected], "{patch}");
    }
    let text = set(
        "list: {elements: [{a: one, patch: 'spec: {source: {path: y}}'}, {a: two, patch: 'spec: {}'}]}",
        "x/{{.a}}",
    );
    let patched = format!("{text}  templatePatch: '{{{{ .patch }}}}'\n");
    assert_eq!(paths_of(&patched), ["x/two", "y"]);
    let text = set("list: {elements: [{a: one}]}", "x/{{.a}}");
    let own = "list: {elements: [{a: one}], template: {spec: {source: {repoURL: '', path: 'y/{{.a}}'}, sources: []}}}";
    assert_eq!(paths_of(&set(own, "x/{{.a}}")), ["y/one"]);
    let old = text.replace("  goTemplate: true\n", "").replace("{{.a}}", "{{a}}");
    assert_eq!(paths_of(&old), ["x/one"]);
    // The zero value of a generator's template is no value.
    let prune = |value: bool| format!("syncPolicy: {{automated: {{prune: {value}}}}}");
    let own = format!("list: {{elements: [{{a: one}}], template: {{metadata: {{}}, spec: {{{}}}}}}}", prune(false));
    let text = set(&own, "x/{{.a}}") + &format!("      {}\n", prune(true));
    let found = find_in(&[("set.yaml", &text)]);
    assert!(found.targets[0].manifest.contains(r#""prune":true"#), "{}", found.targets[0].manifest);
    // `valuesObject` is raw JSON in Go.
    let spec = "source: {helm: {valuesObject: {on: false}}}";
    let own = format!("list: {{elements: [{{a: one}}], template: {{metadata: {{}}, spec: {{{spec}}}}}}}");
    let found = find_in(&[("set.yaml", &set(&own, "x/{{.a}}"))]);
    assert!(found.targets[0].manifest.contains(r#""on":false"#), "{}", found.targets[0].manifest);
}

#[test]
fn a_git_generator_reads_files_through_links() {
    let text = set(&format!("git: {{repoURL: '{HERE}', files: [{{path: 'c/*.json'}}]}}"), "x/{{.a}}");
    let made = |link: &str| {
        let mut tree = tree(&[("set.yaml", &text), ("c/one.json", "{\"a\": \"one\"}"), ("two", "{\"a\": \"two\"}")]);
        tree.link("c/two.json", link);
        let config = Config::default();
        let found = find(&tree, &config, &|| Ok(identity(&config))).unwrap().0;
        let targets = found.targets.iter().map(line).collect::<Vec<_>>().join("\n");
        let unread = found.unread.iter().map(|unread| format!("\n{}: {}", unread.location_text(), unread.message));
        targets + &unread.collect::<String>()
    };
    expect![[r#"
        Application x (set.yaml:1, of ApplicationSet apps, x/one) x/one missing
        Application x (set.yaml:1, of ApplicationSet apps, x/two) x/two missing"#]]
    .assert_eq(&made("../two"));
    // Argo CD reads each file of the list, and fails.
    expect![[r#"
        Application x (set.yaml:1, of ApplicationSet apps) templated: its generator cannot read `c/two.json`
        c/two.json: not a file"#]]
    .assert_eq(&made("../gone"));
    expect![[r#"
        Application x (set.yaml:1, of ApplicationSet apps) templated: its generator cannot read `c/two.json`
        c/two.json: not a file"#]]
    .assert_eq(&made("../c"));
}

#[test]
fn a_merge_and_elements_in_a_text_are_read() {
    let merge = |keys: &str, more: &str| {
        format!(
            "merge: {{mergeKeys: [{keys}], generators: [{{list: {{elements: [{{a: one, b: x}}, {{a: two, b: x}}]}}}}, {more}]}}"
        )
    };
    let list = |elements: &str| format!("{{list: {{elements: [{elements}]}}}}");
    let odd = "a generator in its `merge` sets a key twice";
    let made = |made: &str| format!("list: {{elements: [{{a: one}}], elementsYaml: {made}}}");
    let parts = "{list: {elements: [{name: n, parts: [{a: one}, {a: two}]}]}}";
    for (generator, path, expected) in [
        (merge("a", &list("{a: two, b: y}, {a: three, b: y}")), "{{.a}}/{{.b}}", vec!["one/x", "two/y"]),
        (merge("a, b", &list("{a: two, b: y, c: z}")), "{{.a}}/{{.b}}", vec!["one/x", "two/x"]),
        (
            merge("a", &format!("{}, {}", list("{a: one, b: y}"), list("{a: one, b: z}"))),
            "{{.a}}/{{.b}}",
            vec!["one/z", "two/x"],
        ),
        (merge("b", &list("{b: x}")), "{{.a}}", vec![odd]),
        (merge("c", &list("{a: two}")), "{{.a}}", vec![odd]),
        (
            merge("", &list("{a: two}")),
            "{{.a}}",
            vec!["its `merge` needs `mergeKeys`, without a `.` in templates of Go, and two `generators`"],
        ),
        (merge("a", "{clusters: {}}"), "{{.a}}", vec!["its `clusters` generator can only be evaluated in the cluster"]),
        (
            merge("a", &format!("{{{}}}", merge("a", &list("")))),
            "{{.a}}",
            vec!["its `merge` contains a `matrix` or `merge`"],
        ),
        (made("'[{a: two}, {a: three}]'"), "{{.a}}", vec!["one", "two", "three"]),
        (made("'{a: two}'"), "{{.a}}", vec!["its list comes from a template"]),
        (made("'{{ .x | toJson }}'"), "{{.a}}", vec!["its list comes from a template"]),
        (
            format!("matrix: {{generators: [{parts}, {{list: {{elementsYaml: '{{{{ .parts | toJson }}}}'}}}}]}}"),
            "{{.name}}/{{.a}}",
            vec!["n/one", "n/two"],
        ),
    ] {
        assert_eq!(paths_of(&set(&generator, path)), expected, "{generator}");
    }
}

#[test]
fn what_only_the_cluster_knows_may_leave_the_place_known() {
    let dirs = |path: &str| format!("{{git: {{repoURL: '{HERE}', directories: [{{path: {path}}}]}}}}");
    let both = |one: &str, two: &str| format!("matrix: {{generators: [{one}, {two}]}}");
    let why = |kind: &str| format!("its `{kind}` generator can only be evaluated in the cluster");
    // What no element of the others gives is the same for all.
    let merge = |more: &str| {
        format!(
            "merge: {{mergeKeys: [name], generators: [{{clusters: {{values: {{env: dev, dir: a}}}}}}, {more}]}}, selector: {{}}"
        )
    };
    let elements = "{list: {elements: [{name: one, values: {dir: b}}]}}";
    for (generator, path, expected) in [
        (merge(elements), "x/{{.values.env}}", vec!["x/dev".to_owned()]),
        (merge(elements), "x/{{.values.dir}}", vec![why("clusters")]),
        (merge("{clusters: {}}"), "x/{{.values.env}}", vec![why("clusters")]),
        ("clusters: {}".to_owned(), "x", vec!["x".to_owned()]),
        ("clusters: {}".to_owned(), "x/{{.name}}", vec![why("clusters")]),
        ("clusters: {values: {env: dev, its: '{{.name}}'}}".to_owned(), "x/{{.values.env}}", vec!["x/dev".to_owned()]),
        ("clusters: {values: {its: '{{.name}}'}}".to_owned(), "x/{{.values.its}}", vec![why("clusters")]),
        (both("{clusters: {}}", &dirs("apps/*")), "{{.path.path}}", vec!["apps/db".to_owned(), "apps/web".to_owned()]),
        (
            both(&dirs("apps/*"), "{clusters: {selector: {matchLabels: {a: '{{.x | lower}}'}}}}"),
            "{{.path.path}}",
            vec!["apps/db".to_owned(), "apps/web".to_owned()],
        ),
        (both(&dirs("apps/*"), "{clusters: {}}"), "{{.path.path}}/{{.name}}", vec![why("clusters"), why("clusters")]),
        (both("{clusters: {}}", &dirs("'{{.name}}/*'")), "{{.path.path}}", vec![why("clusters")]),
        (
            both(&dirs("apps/*"), "{list: {elementsYaml: '{{ toJson .x }}'}}"),
            "{{.path.path}}",
            vec!["apps/db".to_owned(), "apps/web".to_owned()],
        ),
        (
            both(&dirs("apps/*"), "{list: {elements: [{a: '{{.x | lower}}'}]}}"),
            "{{.path.path}}/{{.a}}",
            vec!["its `matrix` uses more than parameter names".to_owned(); 2],
        ),
        (String::new(), "x/{{.a}}", vec!["it has a generator without a type".to_owned()]),
        (
            "list: {elements: [{name: one}]}, clusters: {}".to_owned(),
            "x/{{.name}}",
            vec!["x/one".to_owned(), why("clusters")],
        ),
        ("list: {elements: []}, clusters: {}".to_owned(), "x", vec!["x".to_owned()]),
        ("list: {elements: [{name: one}]}, clusters: ~".to_owned(), "x/{{.name}}", vec!["x/one".to_owned()]),
        (
            format!(
                "list: {{elements: [{{name: one}}], template: {{spec: {{source: {{path: own}}}}}}}}, git: {{repoURL: '{HERE}', directories: [{{path: apps/*}}]}}"
            ),
            "{{.path.path}}",
            ["own", "apps/db", "apps/web"].map(str::to_owned).into(),
        ),
        (
            both("{clusters: {}, list: {elements: [{a: b}]}}", &dirs("apps/*")),
            "{{.path.path}}",
            vec!["a generator in its `matrix` has two types".to_owned()],
        ),
        (
            "list: {elements: [{a: one}]}, selector: {}".to_owned(),
            "{{.a}}",
            vec!["its generator has a `selector`".to_owned()],
        ),
    ] {
        assert_eq!(paths_of(&set(&generator, path)), expected, "{generator} {path}");
    }
}

#[test]
fn a_source_of_which_a_patch_tells_the_rest_is_templated() {
    let selector = ", selector: {matchLabels: {a: b}}";
    let spec = |source: &str| format!("spec:\n  {}", source.replace('\n', "\n  "));
    let url = format!("repoURL: {HERE}");
    let plain = spec(&format!("source:\n  {url}\n  path: apps/{{{{.a}}}}"));
    let branches = "path: x\n  {{- if .b }}\n  path: apps/{{.a}}\n  {{- else }}\n  path: y\n  {{- end }}";
    let branches = spec(&format!("source:\n  {url}\n  {branches}"));
    let printed = "{{- with .patch }}\n{{ toYaml . | nindent 2 }}\n{{- end }}";
    let several = spec(&format!("sources:\n- {url}\n  path: apps/{{{{.b}}}}\n- {url}\n  path: apps/web"));
    let open = "`templatePatch` may change it";
    for (patch, more, expected) in [
        (&*plain, "", vec!["apps/one"]),
        (&plain, selector, vec![open]),
        (&branches, "", vec![open]),
        (&branches, selector, vec![open]),
        (printed, "", vec![open]),
        (printed, selector, vec![open]),
        (&several, selector, vec![open]),
        // Without a source it deploys nothing, and that is certain.
        ("metadata: {labels: {a: b}}", "", vec![]),
    ] {
        let template = set(&format!("list: {{elements: [{{a: one}}]}}{more}"), "x");
        let (before, _) = template.split_once("      source:").unwrap();
        let text = format!("{before}  templatePatch: |\n    {}\n", patch.replace('\n', "\n    "));
        assert_eq!(paths_of(&text), expected, "{text}");
    }
}

#[test]
fn a_file_that_changes_an_application_by_its_name_may_change_any() {
    let text = set("clusters: {}", "apps/web").replace("name: 'x'", "name: '{{.name}}'");
    let place = |file: &str| {
        let found = find_in(&[("set.yaml", &text), (file, "")]);
        matches!(found.targets[0].location, TargetLocation::Local(_))
    };
    assert!(place("apps/web/sub/.argocd-source-one.yaml"));
    assert!(!place("apps/web/.argocd-source-one.yaml"));
}

#[test]
fn too_many_applications_are_bounded() {
    let elements: String = (0..10_001).map(|n| format!("{{a: '{n}'}}, ")).collect();
    let text = set(&format!("list: {{elements: [{elements}]}}"), "x/{{.a}}");
    let found = find_in(&[("set.yaml", &text)]);
    assert_eq!(found.targets.len(), 10_000);
    assert_eq!(found.unread.len(), 1);
}

#[test]
fn the_rounds_of_a_matrix_are_bounded() {
    let matrix = |count: usize, second: &str| {
        let elements: String = (0..count).map(|n| format!("{{a: '{n}'}}, ")).collect();
        let git = format!("git: {{repoURL: '{HERE}', {second}}}");
        format!("matrix: {{generators: [{{list: {{elements: [{elements}]}}}}, {{{git}}}]}}")
    };
    let too_much = "its generators take too much work";
    let nothing = |count| format!("directories: [{}]", "{path: '{{.a}}/*'}, ".repeat(count));
    let files = "files: [{path: 'clusters/a/*'}, {path: '{{.a}}'}]";
    // 5000 patterns are too much.
    let none = format!("files: [{}]", "{path: none}, ".repeat(20));
    for (count, second, path, expected) in [
        (240, nothing(20).as_str(), "{{.path.path}}", &[][..]),
        (260, &nothing(20), "{{.path.path}}", &[too_much]),
        (260, &none, "{{.path.path}}", &[too_much]),
        (260, &nothing(20), "same", &["same"]),
    ] {
        let found = paths_of(&set(&matrix(count, second), path));
        assert_eq!(found, expected, "{count} {second}");
    }
    // So are 4000 and as many files.
    let empty = set(&matrix(2000, files), "x/{{.path.path}}");
    let two = [("set.yaml", &*empty), ("clusters/a/one.json", "[]"), ("clusters/a/two.json", "[]")];
    let found = find_in(&two);
    let [target] = &found.targets[..] else { panic!() };
    assert!(line(target).ends_with(&format!("templated: {too_much}")));
}

#[test]
fn what_a_template_makes_is_bounded() {
    let elements: String = (0..1000).map(|n| format!("{{a: '{n}'}}, ")).collect();
    let large = "x".repeat(50_000);
    let text = set(&format!("list: {{elements: [{elements}]}}"), &format!("apps/{{{{.a}}}}/{large}"));
    let found = find_in(&[("set.yaml", &text)]);
    assert!((100..1000).contains(&found.targets.len()), "{}", found.targets.len());
    let said = |found: &Targets| {
        let one = &found.unread[0];
        format!("{}:{}: {}", one.file, one.line, one.message)
    };
    let too_much = "set.yaml:1: ApplicationSet apps: generates too much: the rest is not read";
    assert_eq!(said(&found), too_much);
    // So are the parameters that each of them is given.
    let parameters: String = (0..1500).map(|n| format!("p{n}: {}, ", "v".repeat(100))).collect();
    let elements: String = (0..300).map(|n| format!("{{a: '{n}'}}, ")).collect();
    let list = |elements: &str| format!("list: {{elements: [{elements}]}}");
    let matrix =
        format!("matrix: {{generators: [{{{}}}, {{{}}}]}}", list(&format!("{{{parameters}}}")), list(&elements));
    let values = format!("list: {{elements: [{elements}], values: {{{parameters}}}}}");
    for generator in [matrix, values] {
        let found = find_in(&[("set.yaml", &set(&generator, "apps/{{.a}}"))]);
        assert!(found.targets.len() < 300, "{}", found.targets.len());
        assert_eq!(said(&found), too_much);
    }
}

#[test]
fn a_generator_takes_directories_that_go_would_match() {
    let text = set(&format!("git: {{repoURL: '{HERE}', directories: [{{path: 'apps/*/*'}}]}}"), "{{.path.path}}");
    let found = find_in(&[("set.yaml", &text)]);
    let [generator] = &found.generators[..] else { panic!() };
    let takes = generator.matcher().unwrap();
    assert!(takes("apps/web/localized-files"));
    assert!(!takes("apps/web"));
    assert!(!takes("apps/web/.x"));
}

#[test]
fn what_stays_a_template_makes_a_source_unknown() {
    let why_unknown = |text: &str| {
        let found = find_in(&[("set.yaml", text), ("apps/web/kustomization.yaml", "")]);
        let [target] = &found.targets[..] else { panic!("{:?}", found.targets) };
        target.why_unknown()
    };
    let list = "list: {elements: [{a: one}]}";
    let of_set = |more: &str| {
        why_unknown(&set(list, "apps/web").replace("path: 'apps/web'}\n", &format!("path: 'apps/web', {more}}}\n")))
    };
    assert_eq!(of_set("kustomize: {namePrefix: '{{.a}}-'}"), None);
    let lower = "kustomize: {namePrefix: '{{.a | lower}}-'}";
    for (more, left) in [
        (lower, "{{.a | lower}}"),
        ("kustomize: {images: ['x={{- .a }}']}", "{{- .a }}"),
        ("chart: web, targetRevision: '{{.a | trim}}'", "{{.a | trim}}"),
    ] {
        assert_eq!(of_set(more), Some(format!("`{left}` is substituted elsewhere")));
    }
    // Without Go templates, and without a set, it is a text like any other.
    let old = set(list, "apps/web").replace("  goTemplate: true\n", "");
    assert_eq!(why_unknown(&old.replace("path: 'apps/web'}\n", &format!("path: 'apps/web', {lower}}}\n"))), None);
    let kind = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\n";
    assert_eq!(why_unknown(&format!("{kind}spec: {{source: {{repoURL: '{HERE}', path: apps/web, {lower}}}}}\n")), None);
}
