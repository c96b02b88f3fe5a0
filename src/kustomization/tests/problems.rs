use super::read;
use crate::kustomization::refuse_expansion;
use crate::kustomization::{Problem, ProblemKind};
use crate::message::position::Position;

fn problems(text: &str) -> Vec<Problem> {
    read(text.as_bytes()).expect_err(text).problems
}

/// The only problem of a text, as `line:column field: message`.
fn problem(text: &str) -> String {
    let problems = problems(text);
    assert_eq!(problems.len(), 1, "{problems:#?}");
    let Problem { position: Position { line, column }, field, message, .. } = &problems[0];
    format!("{line}:{column} {field}: {message}")
}

#[test]
fn unknown_fields_are_named() {
    let text = "resources: []\nresource: [a]\n";
    assert_eq!(problem(text), "2:1 resource: unknown field `resource`");
    assert_eq!(problems(text)[0].hint, "did you mean `resources`?");
    assert_eq!(problems("xyzzy: 1\n")[0].hint, "");
}

#[test]
fn wrong_types_are_named() {
    for (text, wanted) in [
        ("resources: a\n", "1:12 resources: expected a list, found a string"),
        ("resources: {a: b}\n", "1:12 resources: expected a list, found a mapping"),
        ("resources: [[a]]\n", "1:13 resources[0]: expected a string, found a list"),
        ("resources:\n- yes\n", "2:3 resources[0]: expected a string, found a boolean"),
        ("resources: [a, 1_0]\n", "1:16 resources[1]: expected a string, found a number"),
        ("generators: [{kind: x}]\n", "1:14 generators[0]: expected a string, found a mapping"),
        ("patches: [a]\n", "1:11 patches[0]: expected a mapping, found a string"),
        ("openapi: {path: 1}\n", "1:17 openapi.path: expected a string, found a number"),
        ("- a\n", "1:1 : expected a mapping, found a list"),
        ("abc\n", "1:1 : expected a mapping, found a string"),
        ("~: a\nresources: []\n", "1:1 : not valid YAML: expected a plain or quoted string as a key"),
    ] {
        assert_eq!(problem(text), wanted);
    }
    assert_eq!(problems("resources: [yes]\n")[0].hint, "quote it: `\"yes\"`");
    assert_eq!(problems("patches: [a.yaml]\n")[0].hint, "write `path: a.yaml`");
}

/// Each is an argument of helm, as kustomize writes it.
#[test]
fn words_of_a_chart_mean_one_thing() {
    let date = "a date in a chart: kustomize may add a time to it";
    for (field, wanted) in [
        ("version: 1.0", Some("expected a string, found a number")),
        ("name: 1", Some("expected a string, found a number")),
        ("repo: true", Some("expected a string, found a boolean")),
        ("valuesFile: 1", Some("expected a string, found a number")),
        ("version: _1", None),
        ("version: '1.0'", None),
        ("version: ~", None),
        ("skipTests: true", None),
        ("version: 2024-01-01", Some(date)),
        ("version: 2024-1-1T00:00:00Z", Some(date)),
        ("version: '2024-01-01'", None),
        ("version: 2024.1.1", None),
        ("version: 2024-01", None),
        ("releaseName: 1234-5-team", None),
        ("additionalValuesFiles: ['a,b']", Some("helm reads two files where `,` separates them")),
        ("valuesFile: a,b", Some("helm reads two files where `,` separates them")),
        ("releaseName: a,b", None),
        ("nameTemplate: '{{ env \"HOME\" }}'", Some("helm fills in this template from the machine that builds")),
        ("nameTemplate: a", None),
    ] {
        let config =
            format!("apiVersion: builtin\nkind: HelmChartInflationGenerator\nmetadata: {{name: x}}\n{field}\n");
        for (found, is_plugin) in [
            (read(format!("helmCharts:\n- {field}\n").as_bytes()).map(drop), false),
            (crate::kustomization::read_plugin(config.as_bytes()).map(drop), true),
        ] {
            let found = found.err().map(|error| error.problems).unwrap_or_default();
            // In a kustomization all of these are texts from the start.
            let wanted = wanted.filter(|wanted| is_plugin || *wanted != date);
            assert_eq!(found.first().map(|one| &*one.message), wanted, "{field}: {found:?}");
        }
    }
}

#[test]
fn kinds_and_versions_must_fit() {
    for (text, wanted) in [
        ("kind: Foo\n", "expected `kind: Kustomization`, found `Foo`"),
        ("kind: kustomization\n", "expected `kind: Kustomization`, found `kustomization`"),
        ("apiVersion: foo/v1\n", "expected `apiVersion: kustomize.config.k8s.io/v1beta1`, found `foo/v1`"),
        (
            "apiVersion: kustomize.config.k8s.io/v1alpha1\n",
            "expected `apiVersion: kustomize.config.k8s.io/v1beta1`, found `kustomize.config.k8s.io/v1alpha1`",
        ),
        (
            "kind: Component\napiVersion: kustomize.config.k8s.io/v1beta1\n",
            "expected `apiVersion: kustomize.config.k8s.io/v1alpha1`, found `kustomize.config.k8s.io/v1beta1`",
        ),
    ] {
        let found = problems(&format!("{text}resources: []\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!((found[0].message.as_str(), found[0].kind), (wanted, ProblemKind::WrongKind));
    }
    assert_eq!(problems("kind: Foo\napiVersion: v1\nresources: []\n").len(), 2);
}

#[test]
fn empty_is_what_kustomize_calls_empty() {
    for text in [
        "",
        "\u{feff}",
        "# c\n",
        "---\n",
        "~\n",
        "{}\n",
        "---\n---\nresources: [a]\n",
        "kind: Component\n",
        "apiVersion: kustomize.config.k8s.io/v1beta1\n",
        "resources:\n",
    ] {
        assert_eq!(problem(text), "1:1 : kustomization.yaml is empty", "{text}");
        assert_eq!(problems(text)[0].kind, ProblemKind::Empty);
    }
    for text in [
        "resources: []\n",
        "metadata: {}\n",
        "openapi: {}\n",
        "helmGlobals: {}\n",
        "vars: []\n",
        "commonLabels: {}\n",
        "bases: [a]\n",
        "patches: []\n",
        "namePrefix: x\n",
    ] {
        assert!(read(text.as_bytes()).is_ok(), "{text}");
    }
}

#[test]
fn invalid_yaml_is_refused_with_its_place() {
    for (text, line, column) in [
        ("resources: [a\n", 1, 12),
        ("resources:\n\t- a\n", 2, 2),
        ("resources: [*x]\n", 1, 13),
        ("metadata: &a {labels: *a}\n", 1, 23),
        ("resources: [@a]\n", 1, 13),
        ("resources: [a\u{1}]\n", 1, 13),
    ] {
        let found = problems(text);
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].position, Position::new(line, column), "{text}: {found:?}");
        assert!(found[0].message.len() > "not valid YAML: ".len(), "{found:?}");
    }
    let found = read(b"a\nb\xc3\xa9\xff").unwrap_err().problems;
    assert_eq!(found[0].position, Position::new(2, 1));
}

#[test]
fn line_breaks_that_only_kustomize_sees_are_refused() {
    for odd in ['\u{85}', '\u{2028}', '\u{2029}'] {
        // A comment for YAML 1.2, a resource for kustomize.
        assert_eq!(problems(&format!("namePrefix: x\n# {odd}resources: [a]\n")).len(), 1);
    }
    // A path for YAML 1.2, nothing or a number for kustomize.
    assert_eq!(problems("crds:\n- \u{85}\n").len(), 1);
    assert_eq!(problems("crds:\n- \u{2028}1\n").len(), 1);
}

#[test]
fn file_sources_must_split_in_two() {
    for (source, shown) in [
        ("a=b=c", "a=b=c"),
        ("https://h/p?a=b&c=d", "https://h/p?a=b&c=d"),
        ("https://h/p?token=hunter2", "https://h/p?token=REDACTED"),
        ("h/p?token=hunter2", "h/p?token=REDACTED"),
        ("=a", "=a"),
        ("a=", "a="),
    ] {
        for generator in ["configMapGenerator", "secretGenerator"] {
            let text = format!("{generator}: [{{files: ['{source}']}}]\n");
            let found = problems(&text);
            assert_eq!(found[0].message, format!("expected a path, or `key=path` with one `=`, found `{shown}`"));
            assert_eq!(found[0].field, format!("{generator}[0].files[0]"));
        }
    }
}

#[test]
fn all_problems_are_reported_in_order() {
    let found = problems("foo: 1\nresources: x\nbar: 2\nkind: Z\n");
    let lines: Vec<_> = found.iter().map(|p| p.position.line).collect();
    assert_eq!(lines, [1, 2, 3, 4]);
}

#[test]
fn aliases_do_not_explode() {
    let mut list = format!("buildMetadata: [a{}]\n", ", a".repeat(2_000));
    list += "replacements: [{sourceValue: a, targets: [&t {fieldPaths: [&p a";
    list += &", *p".repeat(1_000);
    list += "]}";
    list += &", *t".repeat(600);
    list += "]}]\n";
    assert_eq!(problems(&list)[0].kind, ProblemKind::TooLarge);
    let mut merges = "metadata: {labels: &a0 {a: b}}\n".to_owned();
    for i in 1..40 {
        merges += &format!("k{i}: &a{i} {{<<: [*a{}, *a{}]}}\n", i - 1, i - 1);
    }
    merges += "commonLabels: *a39\n";
    assert!(read(merges.as_bytes()).is_err());
}

/// kustomize makes a copy for each alias in what it reads.
#[test]
fn aliases_in_what_kustomize_reads_are_counted() {
    let nested = |depth: usize| {
        let mut text = "kind: X\na0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
        for i in 1..=depth {
            text += &format!("a{i}: &a{i} [{}]\n", vec![format!("*a{}", i - 1); 10].join(", "));
        }
        text
    };
    let refused = |text: &str| refuse_expansion(text).err().map(|problem| (problem.position.line, problem.message));
    assert_eq!(refused(&nested(4)), None);
    assert_eq!(refused(&nested(8)), Some((7, "aliases stand for more than 500000 YAML nodes".to_owned())));
    let long = format!("a: &a {}\nb: [*a{}]\n", "x".repeat(100_000), ", *a".repeat(1_000));
    assert_eq!(refused(&long).map(|(line, _)| line), Some(2));
    // Nothing of this is an alias.
    assert_eq!(refused(&"a: R&D, &b and **b**, 2 *b\n".repeat(10_000)), None);
    let inline = nested(8).replace('\n', "\n    ");
    for field in ["patches", "patchesJson6902"] {
        let found = problem(&format!("{field}:\n- patch: |\n    {inline}\n"));
        assert_eq!(found, format!("3:5 {field}[0].patch: aliases stand for more than 500000 YAML nodes"));
    }
}

#[test]
fn aliases_do_not_nest_without_end() {
    let mut merges = "metadata: {labels: &a0 {a: b}}\ncommonLabels:\n".to_owned();
    let mut lists = "a: &a0 {kind: FooList, items: []}\n".to_owned();
    let mut plain = "a: &a0 [b]\n".to_owned();
    for i in 1..3_000 {
        let last = i - 1;
        merges += &format!("  k{i}: &a{i} {{<<: *a{last}}}\n");
        lists += &format!("b{i}: &a{i} {{kind: FooList, items: [*a{last}]}}\n");
        plain += &format!("b{i}: &a{i} [*a{last}]\n");
    }
    merges += "  <<: *a2999\n";
    lists += "kind: FooList\nitems: [*a2999]\n";
    plain += "kind: X\nmetadata: {name: x}\n";
    for text in [merges, lists, plain] {
        assert!(read(text.as_bytes()).is_err());
        let quoted = format!("generators: [{text:?}]\n");
        assert!(read(quoted.as_bytes()).is_err());
        assert!(crate::kustomization::read_plugin(text.as_bytes()).is_err());
        assert!(crate::kustomization::count_objects(text.as_bytes()).is_err());
    }
}

#[test]
fn conflict_markers_are_called_so() {
    let text = "resources:\n- a.yaml\n<<<<<<< HEAD\n- b.yaml\n||||||| base\n=======\n- c.yaml\n>>>>>>> topic\n";
    for text in [text.to_owned(), text.replace('\n', "\r\n")] {
        assert_eq!(problem(&text), "3:1 : conflict markers: two sides of a merge changed the same lines");
    }
    let half = problem("resources:\n- a.yaml\n<<<<<<< HEAD\n- b.yaml\n");
    assert!(half.contains("not valid YAML"), "{half}");
    // Where it is text, it is text.
    assert!(read(b"patches:\n- patch: |\n    <<<<<<< a\n    =======\n    >>>>>>> b\n").is_ok());
}
