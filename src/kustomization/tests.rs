//! What is read, as kustomize 5.8.1 reads it: the expectations were measured with the real program.

mod plugins;
mod problems;

use super::fields::{BUILTIN_FIELDS, FieldTree, KUSTOMIZATION_FIELDS, Role};
use super::{Accepts, FILE_NAMES, GeneratorKey, Kustomization, KustomizationKind, Note, NoteKind, read};

/// Reads a kustomization that must be right.
fn good(text: &str) -> Kustomization {
    read(text.as_bytes()).unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"))
}

/// Reads the references as `field=text`.
fn references(text: &str) -> Vec<String> {
    let references = good(text).references;
    let all = references.iter();
    all.map(|r| format!("{}={}", r.field, r.text)).collect()
}

#[test]
fn names_are_in_the_order_of_kustomize() {
    assert_eq!(FILE_NAMES, ["kustomization.yaml", "kustomization.yml", "Kustomization"]);
}

/// Returns the fields of a table in which a string may name a file or a root.
fn fields(tree: &FieldTree, path: &str) -> Vec<String> {
    let refers = |role| matches!(role, Role::Reference(_) | Role::Source | Role::PatchOrFile | Role::ChartHome);
    let here = tree.role.is_some_and(refers).then(|| path.to_owned());
    let below = tree.names.iter().flat_map(|(name, of)| match (path, *name) {
        (path, "[]") => fields(of, &format!("{path}[]")),
        ("", name) => fields(of, name),
        (path, name) => fields(of, &format!("{path}.{name}")),
    });
    here.into_iter().chain(below).collect()
}

#[test]
fn fields_with_a_reference_are_listed_for_random_trees() {
    let mut found = fields(&KUSTOMIZATION_FIELDS, "");
    found.extend(BUILTIN_FIELDS.iter().flat_map(|(kind, tree)| fields(tree, kind)));
    found.sort();
    assert_eq!(found.join("\n") + "\n", include_str!("tests/reference_fields.txt"));
}

#[test]
fn every_field_with_a_path_is_found() {
    let text = "\
apiVersion: kustomize.config.k8s.io/v1beta1
kind: Kustomization
resources: [r]
bases: [b]
components: [c]
crds: [crd]
configurations: [conf]
openapi: {path: oa, version: v1}
patches:
- path: p
  target: {kind: X}
- patch: inline
patchesStrategicMerge: [psm]
patchesJson6902: [{path: pj, target: {kind: X, name: x, version: v1}}]
replacements: [{path: rp}, {source: {kind: X}, targets: [{select: {kind: X}, fieldPaths: [a/b]}]}]
configMapGenerator:
- name: m
  env: ce
  envs: [ces]
  files: [cf, k=ck]
  literals: [a=b/c]
secretGenerator:
- name: m
  env: se
  envs: [ses]
  files: [sf]
  type: Opaque
generators: [g]
transformers: [t]
validators: [v]
helmCharts: [{name: h, valuesFile: hv, additionalValuesFiles: [ha]}]
helmChartInflationGenerator: [{chartName: h, values: ov}]
";
    let found: Vec<(String, Accepts, String)> =
        good(text).references.into_iter().map(|r| (r.field, r.accepts, r.text)).collect();
    let wanted = [
        ("resources[0]", Accepts::Either, "r"),
        ("bases[0]", Accepts::Either, "b"),
        ("components[0]", Accepts::Component, "c"),
        ("crds[0]", Accepts::File, "crd"),
        ("configurations[0]", Accepts::File, "conf"),
        ("openapi.path", Accepts::File, "oa"),
        ("patches[0].path", Accepts::File, "p"),
        ("patchesStrategicMerge[0]", Accepts::File, "psm"),
        ("patchesJson6902[0].path", Accepts::File, "pj"),
        ("replacements[0].path", Accepts::File, "rp"),
        ("configMapGenerator[0].env", Accepts::File, "ce"),
        ("configMapGenerator[0].envs[0]", Accepts::File, "ces"),
        ("configMapGenerator[0].files[0]", Accepts::File, "cf"),
        ("configMapGenerator[0].files[1]", Accepts::File, "ck"),
        ("secretGenerator[0].env", Accepts::File, "se"),
        ("secretGenerator[0].envs[0]", Accepts::File, "ses"),
        ("secretGenerator[0].files[0]", Accepts::File, "sf"),
        ("generators[0]", Accepts::Plugin, "g"),
        ("transformers[0]", Accepts::Plugin, "t"),
        ("validators[0]", Accepts::Plugin, "v"),
        ("helmCharts[0].valuesFile", Accepts::File, "hv"),
        ("helmCharts[0].additionalValuesFiles[0]", Accepts::File, "ha"),
        ("helmChartInflationGenerator[0].values", Accepts::File, "ov"),
    ];
    let wanted = wanted.map(|(field, accepts, text)| (field.to_owned(), accepts, text.to_owned()));
    assert_eq!(found, wanted);
}

#[test]
fn places_count_lines_and_characters() {
    let text = "\u{feff}é: &x\r\n";
    assert!(read(text.as_bytes()).is_err());
    let text = "\u{feff}crds: [éa, \"b\r\n  c\"]\r\nresources:\r\n- # c\r\n  &a 'ü'\r\n- *a\r\n- |-\r\n  d\r\n\r\n";
    let places: Vec<_> = good(text)
        .references
        .iter()
        .map(|r| (r.text.clone(), r.span.start.line, r.span.start.column, r.span.end.line, r.span.end.column))
        .collect();
    let wanted = [("éa", 1, 8, 1, 10), ("b c", 1, 12, 2, 5), ("ü", 5, 6, 5, 9), ("ü", 6, 3, 6, 5), ("d", 8, 3, 8, 3)];
    let wanted = wanted.map(|(text, a, b, c, d)| (text.to_owned(), a, b, c, d));
    assert_eq!(places, wanted);
}

#[test]
fn generator_keys_are_those_of_kustomize() {
    let text = "configMapGenerator: [{files: [a/b.txt, a/b/, 'k=a/b', 'https://h/p?x', ./x/.]}]\n";
    let file = good(text);
    let keys: Vec<_> = file.references.iter().map(|r| (r.text.as_str(), r.key.clone().unwrap())).collect();
    let implied = |key: &str| GeneratorKey { name: key.to_owned(), is_written: false };
    let explicit = |key: &str| GeneratorKey { name: key.to_owned(), is_written: true };
    let wanted = [
        ("a/b.txt", implied("b.txt")),
        ("a/b/", implied("b")),
        ("a/b", explicit("k")),
        ("https://h/p?x", implied("p?x")),
        ("./x/.", implied(".")),
    ];
    assert_eq!(keys, wanted);
}

#[test]
fn another_path_keeps_the_key() {
    let text = "configMapGenerator: [{files: [a/b.txt, k=a, 'https://h/c'], envs: [d]}]\n";
    let file = good(text);
    let values: Vec<_> = file.references.iter().map(|r| r.with_path("x/c")).collect();
    assert_eq!(values, ["b.txt=x/c", "k=x/c", "x/c", "x/c"]);
}

#[test]
fn only_files_of_generators_have_keys() {
    let file = good("resources: [a=b]\nconfigMapGenerator: [{envs: [a=b]}]\n");
    assert!(file.references.iter().all(|r| r.key.is_none() && r.text == "a=b"));
    assert_eq!(file.references.len(), 2);
}

#[test]
fn keys_are_compared_without_case() {
    for key in ["Resources", "RESOURCES", "re\u{17f}ources"] {
        assert_eq!(references(&format!("{key}: [a]\n")), ["resources[0]=a"]);
    }
    assert_eq!(references("bases: [a]\n\u{212a}ind: Kustomization\n"), ["bases[0]=a"]);
}

#[test]
fn a_key_twice_that_hides_a_reference_is_refused() {
    let in_line = "duplicate of the field in line 1";
    for (text, line, message) in [
        ("resources: [a]\nnamePrefix: x\nresources: [b]\n", 1, "kustomize ignores this `resources`: line 3 repeats it"),
        ("resources: [a]\nresources:\n", 1, "kustomize ignores this `resources`: line 2 repeats it"),
        ("resources: &a [a]\nresources: *a\n", 1, "kustomize ignores this `resources`: line 2 repeats it"),
        (
            "helmGlobals: {chartHome: a}\nhelmGlobals: {}\n",
            1,
            "kustomize ignores this `helmGlobals`: line 2 repeats it",
        ),
        (
            "configMapGenerator:\n- name: a\n  files: [a]\n  files: [b]\n",
            3,
            "kustomize ignores this `files`: line 4 repeats it",
        ),
        ("configMapGenerator: [{name: a, envs: [b]}]\nconfigMapGenerator: []\n", 1, "line 2 repeats it"),
        ("configMapGenerator: !a []\nconfigMapGenerator: []\n", 1, "line 2 repeats it"),
        ("resources: [a]\nResources: [b]\n", 2, in_line),
        ("Resources: [a]\nresources: null\n", 2, in_line),
        ("re\u{17f}ources: [a]\nresources: []\n", 2, in_line),
        ("OpenAPI: {path: a}\nopenapi: {version: v1}\n", 2, in_line),
        ("configMapGenerator:\n- files: [a]\n  Files: [b]\n", 3, "duplicate of the field in line 2"),
        ("openapi:\n  path: a\n  path: b\n", 2, "kustomize ignores this `path`: line 3 repeats it"),
        ("helmCharts:\n- name: a\n  Name: b\n", 3, "duplicate of the field in line 2"),
        (
            "helmCharts:\n- name: a\n  repo: https://h/a\n  repo: https://h/b\n",
            3,
            "kustomize ignores this `repo`: line 4 repeats it",
        ),
        ("commonLabels: {1: b, \"1\": c}\nresources: []\n", 1, "appears twice"),
        (
            "patches:\n- patch: |\n    kind: A\n    metadata: {name: b}\n    kind: A\n  path: x\npatchesStrategicMerge:\n- |\n  kind: A\n  kind: A\n",
            9,
            "appears twice",
        ),
        ("<<: {resources: [b]}\n<<: {crds: [a]}\n", 2, "appears twice"),
    ] {
        let problems = read(text.as_bytes()).unwrap_err().problems;
        let found: Vec<_> = problems.iter().filter(|one| one.position.line == line).collect();
        assert!(found.iter().any(|one| one.message.contains(message)), "{text}{problems:?}");
    }
}

#[test]
fn an_alias_means_the_last_anchor_of_its_name() {
    let file = read("\u{feff}namePrefix: &é x.yaml\nresources: [*é, &é y.yaml, *é, &é z.yaml, *é]\n".as_bytes());
    let file = file.unwrap();
    let texts: Vec<&str> = file.references.iter().map(|one| one.text.as_str()).collect();
    assert_eq!(texts, ["x.yaml", "y.yaml", "y.yaml", "z.yaml", "z.yaml"]);
}

#[test]
fn of_a_key_twice_the_last_one_counts() {
    for (text, expected, lines) in [
        ("namePrefix: a-\nresources: [a]\nnamePrefix: b-\n", &["resources[0]=a"][..], &[(1, 3)][..]),
        ("resources:\nresources: [b]\n", &["resources[0]=b"], &[(1, 2)]),
        ("resources: []\nresources: ''\nresources: [b]\n", &["resources[0]=b"], &[(1, 3), (2, 3)]),
        ("commonLabels: {a: b, a: c}\ncrds: [a]\n", &["crds[0]=a"], &[(1, 1)]),
        ("patches: [{patch: a}]\npatches: [{path: c}]\n", &["patches[0].path=c"], &[(1, 2)]),
        (
            "configMapGenerator:\n- name: a\n  literals: [a=b]\n  literals: []\n  envs: [x]\n",
            &["configMapGenerator[0].envs[0]=x"],
            &[(3, 4)],
        ),
        ("images: [{name: a}]\nimages: [{name: b}]\nkind: Component\nkind: Kustomization\n", &[], &[(1, 2), (3, 4)]),
    ] {
        let lines_of = |note: &Note| match note.kind {
            NoteKind::Replaced { line } => (note.position.line, line),
            _ => panic!("{note:?}"),
        };
        assert_eq!(good(text).notes.iter().map(lines_of).collect::<Vec<_>>(), lines, "{text}");
        assert_eq!(references(text), expected);
    }
}

#[test]
fn merge_keys_are_refused_on_the_way_to_a_reference() {
    for text in [
        "<<: {resources: [a]}\nresources: [b]\n",
        "resources: [a]\n<<: {}\n",
        "configMapGenerator:\n- &a {envs: [a]}\n- {<<: [*a]}\n",
        "openapi: {<<: {path: a}}\n",
    ] {
        let problems = read(text.as_bytes()).unwrap_err().problems;
        assert!(problems[0].message.starts_with("the merge key `<<`"), "{text}{problems:?}");
    }
    assert_eq!(references("resources: [a]\ncommonLabels: {<<: {a: b}}\n"), ["resources[0]=a"]);
}

#[test]
fn aliases_are_followed() {
    assert_eq!(
        references("resources: &l [&a x, *a]\ncrds: *l\n"),
        ["resources[0]=x", "crds[0]=x", "resources[1]=x", "crds[1]=x"]
    );
}

#[test]
fn the_first_document_counts() {
    for rest in ["---\nresources: [b]\n", "---\n{[\n", "...\nfoo\n", "---\n"] {
        let file = good(&format!("resources: [a]\n{rest}"));
        assert_eq!(file.references.len(), 1);
        assert_eq!(file.notes.len(), 1, "{rest}");
        assert_eq!(file.notes[0].kind, NoteKind::ExtraDocument);
        assert!(file.notes[0].position.line >= 2);
    }
    assert!(good("---\nresources: [a]\n...\n").notes.is_empty());
}

#[test]
fn nothing_passes_in_silence() {
    let text = "resources: [a]\ncrds:\npatches: [{path: '', patch: a}]\ngenerators: [null, '']\nconfigMapGenerator: [{files: [], env: ''}]\npatchesStrategicMerge: ['', '{kind: A, metadata: {name: a}}', ~]\n";
    assert_eq!(references(text), ["resources[0]=a"]);
}

#[test]
fn an_empty_entry_is_not_a_root() {
    for field in ["resources", "crds", "components"] {
        let problems = read(format!("{field}: ['', null, a]\n").as_bytes()).unwrap_err().problems;
        let found: Vec<_> = problems.iter().map(|one| (one.field.as_str(), one.message.as_str())).collect();
        let message = "empty entry";
        assert_eq!(found, [(&*format!("{field}[0]"), message), (&*format!("{field}[1]"), message)]);
    }
}

#[test]
fn json_is_fine_and_tags_are_where_nothing_leads() {
    assert_eq!(references("{\"resources\":[\"a\"],}"), ["resources[0]=a"]);
    assert_eq!(references("resources: [a]\ncommonLabels: !x {a: !!str 1}\n"), ["resources[0]=a"]);
    for tagged in ["!x [a]", "[!!str a]", "[!!binary YQ==]", "[! a]"] {
        let problems = read(format!("resources: {tagged}\n").as_bytes()).unwrap_err();
        assert!(problems.problems[0].message.starts_with("the tag `!"), "{tagged}");
    }
}

#[test]
fn kinds_are_distinguished() {
    assert_eq!(good("kind: Component\nresources: []\n").kind, KustomizationKind::Component);
    assert_eq!(good("kind: ''\nresources: []\n").kind, KustomizationKind::Kustomization);
    let text = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nmetadata: {name: x}\n";
    assert_eq!(good(text).kind, KustomizationKind::Component);
}

#[test]
fn charts_are_noted() {
    let text = "\
helmGlobals: {chartHome: ../charts}
helmCharts:
- {name: a, repo: https://h, version: 1.0.0, valuesFile: v}
- {name: b}
- {valuesInline: {a: [b]}}
helmChartInflationGenerator:
- {chartName: c, chartRepoUrl: oci://h}
";
    let notes = good(text).notes;
    let fields: Vec<_> = notes.iter().map(|n| (n.position.line, n.field.as_str())).collect();
    let old = "helmChartInflationGenerator[0]";
    assert_eq!(fields, [(3, "helmCharts[0]"), (4, "helmCharts[1]"), (7, old),]);
    let NoteKind::Chart { repo, name, version, values_file, home, .. } = &notes[0].kind else {
        panic!("{:?}", notes[0]);
    };
    assert_eq!(home, "../charts");
    assert_eq!((repo.as_str(), name.as_str(), version.as_str(), *values_file), ("https://h", "a", "1.0.0", true));
    let NoteKind::Chart { repo, name, values_file: false, .. } = &notes[1].kind else {
        panic!("{:?}", notes[1]);
    };
    assert_eq!((repo.as_str(), name.as_str()), ("", "b"));
    let NoteKind::Chart { repo, name, version, .. } = &notes[2].kind else {
        panic!("{:?}", notes[2]);
    };
    assert_eq!((repo.as_str(), name.as_str(), version.as_str()), ("oci://h", "c", ""));
}

/// Where a build would read what is not followed.
#[test]
fn fields_that_are_not_followed_are_refused() {
    let helm =
        |more: &str| format!("apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {{name: a}}\n{more}");
    let listed = |plugin: &str| format!("generators:\n- |-\n  {}", plugin.replace('\n', "\n  "));
    for text in [
        "helmGlobals: {configHome: x}\n".to_owned(),
        "helmChartInflationGenerator: [{chartName: a, HELMHOME: x}]\n".to_owned(),
        listed(&helm("ConfigHome: x\n")),
        listed(
            "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  configFn: {Container: {image: i, MOUNTS: [{src: x}]}}\n",
        ),
    ] {
        let problems = read(text.as_bytes()).unwrap_err().problems;
        assert_eq!(problems.len(), 1, "{text}{problems:?}");
        assert_eq!(problems[0].message, "this field is not supported");
        assert!(!problems[0].hint.is_empty());
    }
    let envs = |envs: &str| {
        format!(
            "generators:\n- |-\n  kind: A\n  metadata:\n    name: a\n    annotations:\n      config.kubernetes.io/function: '{{container: {{image: i, envs: {envs}}}}}'\n"
        )
    };
    assert!(read(envs("[LEVEL=debug, EMPTY=]").as_bytes()).is_ok());
    let problems = read(envs("[LEVEL=debug, TOKEN]").as_bytes()).unwrap_err().problems;
    assert_eq!(problems[0].message, "the value comes from the machine that builds");
}

/// Nor does it say so.
#[test]
fn a_home_that_does_not_count_is_refused() {
    let old = "helmChartInflationGenerator: [{chartName: a, chartHome: x}]\n";
    for text in [old.to_owned(), format!("{old}helmGlobals: null\n")] {
        assert!(matches!(&good(&text).notes[0].kind, NoteKind::Chart { home, .. } if home == "x"));
    }
    for globals in ["{}", "{chartHome: home}", "{ChartHome: ''}"] {
        let text = format!("HelmGlobals: {globals}\n{old}");
        let problems = read(text.as_bytes()).unwrap_err().problems;
        let message = "kustomize ignores it if `helmGlobals` is set";
        assert_eq!((problems.len(), &*problems[0].message), (1, message), "{text}");
    }
}

#[test]
fn whatever_comes_in_nothing_panics() {
    let seed = "resources: &l [&a x, *a]\nconfigMapGenerator: [{<<: {}, files: [k=v]}]\ngenerators:\n- |\n  kind: X\n  metadata: {name: y}\n---\n";
    for end in 0..=seed.len() {
        let _ = read(&seed.as_bytes()[..end]);
        let _ = super::read_plugin(&seed.as_bytes()[end..]);
    }
    assert_eq!(read(b"\xff").unwrap_err().problems[0].message, "not UTF-8");
}
