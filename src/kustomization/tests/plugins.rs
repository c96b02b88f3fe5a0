use super::{Accepts, GeneratorKey, NoteKind, good, read, references};
use crate::kustomization::{Edit, Kustomization, Runs, edit, read_object, read_plugin};
use crate::message::position::Position;

fn plugin(text: &str) -> Kustomization {
    read_plugin(text.as_bytes()).unwrap_or_else(|problems| panic!("{text}\n{problems:#?}"))
}

fn builtin(kind: &str, rest: &str) -> String {
    format!("apiVersion: builtin\nkind: {kind}\nmetadata: {{name: x}}\n{rest}\n")
}

fn plugin_references(text: &str) -> Vec<String> {
    let references = plugin(text).references;
    let all = references.iter();
    all.map(|r| format!("{}={}", r.field, r.text)).collect()
}

#[test]
fn an_empty_group_is_none() {
    let text = builtin("ConfigMapGenerator", "files: [a]").replace("builtin", "/builtin");
    assert_eq!(plugin_references(&text), ["ConfigMapGenerator.files[0]=a"]);
}

/// What is wrong with a plugin file, with the line of the first of it.
fn problem(text: &str) -> (usize, String) {
    let found = read_plugin(text.as_bytes()).expect_err(text).problems;
    let messages: Vec<&str> = found.iter().map(|one| one.message.as_str()).collect();
    (found[0].position.line, messages.join("; "))
}

#[test]
fn every_path_of_the_built_in_plugins_is_found() {
    for (kind, rest, wanted) in [
        (
            "ConfigMapGenerator",
            "env: a\nenvs: [b]\nfiles: [c, k=d]\nliterals: [x=y]",
            "envs[0]=b files[0]=c files[1]=d",
        ),
        ("SecretGenerator", "env: a\nenvs: [b]\nfiles: [c]", "envs[0]=b files[0]=c"),
        ("PatchTransformer", "path: a\ntarget: {path: b}", "path=a"),
        ("PatchJson6902Transformer", "path: a\njsonOp: b", "path=a"),
        ("PatchStrategicMergeTransformer", "paths: [a, '{kind: X, metadata: {name: x}}']\npatches: b", "paths[0]=a"),
        ("ReplacementTransformer", "replacements: [{path: a}, {source: {path: b}}]", "replacements[0].path=a"),
        (
            "HelmChartInflationGenerator",
            "name: x\nvaluesFile: a\nadditionalValuesFiles: [b]",
            "valuesFile=a additionalValuesFiles[0]=b",
        ),
        ("ValueAddTransformer", "targetFilePath: a\nvalue: b\ntargets: [{fieldPath: c}]", "targetFilePath=a"),
        ("PrefixTransformer", "path: a\nfiles: [b]", ""),
        ("LabelTransformer", "path: a", ""),
        ("NamespaceTransformer", "path: a", ""),
    ] {
        let wanted: Vec<_> = wanted.split_whitespace().map(|w| format!("{kind}.{w}")).collect();
        let text = builtin(kind, rest);
        assert_eq!(plugin_references(&text), wanted);
        assert!(plugin(&text).references.iter().all(|r| r.accepts == Accepts::File));
    }
}

#[test]
fn keys_of_plugins_follow_the_rules_of_objects() {
    let config = |rest: &str| builtin("ConfigMapGenerator", rest);
    assert_eq!(plugin_references(&config("Files: [a]")), ["ConfigMapGenerator.files[0]=a"]);
    assert_eq!(plugin_references(&config("unknown: {a: 1}\nfiles: ['yes']")), ["ConfigMapGenerator.files[0]=yes"]);
    assert_eq!(plugin_references(&config("x: &a [b]\nfiles: *a")), ["ConfigMapGenerator.files[0]=b"]);
    let key = &plugin(&config("files:\n- a/b?c")).references[0].key;
    assert_eq!(*key, Some(GeneratorKey { name: "b?c".to_owned(), is_written: false }));
}

#[test]
fn bad_plugins_are_refused() {
    let config = |rest: &str| builtin("ConfigMapGenerator", rest);
    for (text, line, message) in [
        (config("files: [a]\nfiles: [b]"), 5, "appears twice"),
        (config("Files: [a]\nfiles: [b]"), 5, "duplicate of the field in line 4"),
        (config("foo: {a: 1, a: 2}"), 4, "appears twice"),
        (config("files: a"), 4, "expected a list"),
        (config("files: [1]"), 4, "expected a string"),
        (config("files: [a=b=c]"), 4, "with one `=`"),
        ("# c\nkind: X\n".to_owned(), 2, "without `metadata.name`"),
        ("foo\n".to_owned(), 1, "expected an object, found a string"),
        (builtin("PrefixTransformers", ""), 1, "there is no built-in plugin"),
        ("a: [\n".to_owned(), 1, "not valid YAML"),
    ] {
        let found = problem(&text);
        assert!(found.0 == line && found.1.contains(message), "{text}{found:?}");
    }
}

#[test]
fn all_documents_count() {
    let one = builtin("PatchTransformer", "path: a");
    let two = builtin("PatchTransformer", "path: b");
    let text = format!("---\n# c\n--- # d\n{one}---\t# e\n{{}}\n---\r\n{two}");
    assert_eq!(plugin_references(&text), ["PatchTransformer[0].path=a", "PatchTransformer[1].path=b"]);
    assert_eq!(plugin_references(""), [""; 0]);
}

/// Wherever an object that kustomize reads is written.
#[test]
fn objects_are_plain_yaml_or_refused() {
    let odd = [
        ("path: !!str a", "the tag `!!str`"),
        ("path: !!binary YQ==", "the tag `!!binary`"),
        ("path: ! a", "the tag `!`"),
        ("path: !x a", "the tag `!x`"),
        ("path: !<tag:yaml.org,2002:str> a", "the tag `!!str`"),
        ("!!str path: a", "expected a plain or quoted string as a key"),
        ("x: !!map {a: b}", "the tag `!!map`"),
        ("<<: {path: a}", "the merge key `<<`"),
        ("x: &x {path: a}\n<<: *x", "the merge key `<<`"),
        ("x: {y: [{<<: {path: a}}]}", "the merge key `<<`"),
        ("? [a]\n: b", "expected a plain or quoted string as a key"),
        ("? {a: b}\n: b", "expected a plain or quoted string as a key"),
        ("? |\n  path\n: b", "expected a plain or quoted string as a key"),
        ("x: &x path\n*x : a", "expected a plain or quoted string as a key"),
        ("---x: a", "text after `---`"),
        ("--- {kind: A, metadata: {name: a}}", "text after `---`"),
    ];
    // kyaml reads what follows the line; both of our parsers see one document before it.
    let hidden = "--- #\rkind: ConfigMapGenerator\rmetadata: {name: a}\rx: |\n  kind: PatchTransformer\n  path: a\n";
    let found = read_plugin(hidden.as_bytes()).unwrap_err().problems;
    assert!(found[0].message.contains("a carriage return"), "{found:?}");
    let inline = format!("transformers: [{}]\n", serde_json::to_string(&format!("\n{hidden}")).unwrap());
    let found = read(inline.as_bytes()).unwrap_err().problems;
    assert!(found.iter().any(|one| one.message.contains("a carriage return")), "{found:?}");
    for (rest, what) in odd {
        let text = builtin("PatchTransformer", rest);
        let positions = [read_plugin(text.as_bytes()).unwrap_err().problems, {
            let inline = text.replace('\n', "\n  ");
            read(format!("transformers:\n- |\n  {inline}\n").as_bytes()).unwrap_err().problems
        }];
        for problems in positions {
            let is_named = problems.iter().any(|problem| problem.message.contains(what));
            assert!(is_named, "{rest}: {problems:?}");
        }
        let error = read_object(&*text).unwrap_err();
        assert!(error.message.contains(what) && error.line > 3, "{rest}: {error:?}");
    }
    for list in ["List", "FooList", "ResourceList"] {
        let text = format!("kind: {list}\nitems:\n- {{kind: A, metadata: {{name: a}}}}\n");
        assert!(problem(&text).1.contains("of objects"), "{list}");
    }
    let odd = "apiVersion: x/v1\nkind: Foo\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      !!map\n      container: {image: x}\n";
    let found = read_plugin(odd.as_bytes()).unwrap_err().problems;
    assert!(found[0].message.contains("the tag `!!map`"), "{found:?}");
}

#[test]
fn inline_configurations_are_read_in_place() {
    let text = "\
namePrefix: x
generators:
- file.yaml
- |
  # comment
  apiVersion: builtin
  kind: ConfigMapGenerator
  metadata: {name: é}
  files: [a, k=b]
- \"{apiVersion: builtin, kind: SecretGenerator, metadata: {name: x}, envs: [c]}\"
validators: ['', '{}']
";
    let found: Vec<_> = good(text)
        .references
        .into_iter()
        .map(|r| (r.field, r.accepts, r.span.start.line, r.span.start.column, r.span.end.line, r.span.end.column))
        .collect();
    let wanted = [
        ("generators[0]", Accepts::Plugin, 3, 3, 3, 12),
        ("generators[1]#ConfigMapGenerator.files[0]", Accepts::File, 9, 11, 9, 12),
        ("generators[1]#ConfigMapGenerator.files[1]", Accepts::File, 9, 14, 9, 17),
        // Where in a quoted scalar something stands cannot be said, so the whole scalar is named.
        ("generators[2]#SecretGenerator.envs[0]", Accepts::File, 10, 3, 10, 81),
    ];
    let wanted = wanted.map(|(field, b, c, d, e, f)| (field.to_owned(), b, c, d, e, f));
    assert_eq!(found, wanted);
}

#[test]
fn a_text_that_may_be_yaml_is_never_a_path() {
    let texts = [
        "a: b",
        "https://h/a: b",
        "https://h/a:\tb",
        "https://h/?a:\u{a0}b",
        " {a}",
        "\u{feff}{a}",
        "!!map {a: b}",
        "&a {b: c}",
        "--- {b: c}",
        "[https://h/a]",
        "{kind: X}",
        "kind:\u{85}X",
        "https://h/a\nb",
        "https://h/a\n",
        "https://h/a\rb",
        "https://h/a\u{2028}b",
    ];
    for field in ["generators", "transformers", "validators", "patchesStrategicMerge"] {
        for text in texts {
            let quoted = text.replace('\n', "\\n").replace('\r', "\\r").replace('\t', "\\t");
            let quoted = quoted.replace('\u{85}', "\\N").replace('\u{2028}', "\\L");
            let found = read(format!("{field}: [\"{quoted}\"]\n").as_bytes()).unwrap_err().problems;
            assert!(found[0].message.starts_with("neither a path nor"), "{text}");
        }
        for path in ["a", "a:b", "https://h/a?b=c:d", "a[b]", "./{a}", "a b", "a:"] {
            let text = format!("{field}: ['{path}']\n");
            assert_eq!(references(&text), [format!("{field}[0]={path}")]);
        }
    }
    let inline = "patchesStrategicMerge:\n- |-\n  kind: X\n  metadata: {name: x}\n  spec: {}\n  ---\n  kind: Y\n  metadata: {name: y}\n";
    assert_eq!(references(inline), [""; 0]);
}

#[test]
fn broken_inline_configurations_are_noted() {
    for (yaml, why) in [
        ("kind: X\n  a: b", "mapping values are not allowed"),
        ("kind: X\n  spec: {}", "without `metadata.name`"),
        ("a\n  b", "expected an object, found a string"),
    ] {
        for field in ["generators", "patchesStrategicMerge"] {
            let text = format!("{field}:\n- |-\n  {}\n", yaml.replace("\n  ", "\n    "));
            let text = if why.starts_with("mapping") { text } else { text.replace("\n    ", "\n  ") };
            let found = read(text.as_bytes()).unwrap_err().problems;
            assert!(found[0].message.starts_with("neither a path nor"), "{text}");
            assert!(found[0].message.contains(why), "{found:?}");
        }
    }
}

#[test]
fn problems_inside_are_placed_outside() {
    let text = "generators:\n- |\n  apiVersion: builtin\n  kind: ConfigMapGenerator\n  metadata: {name: x}\n  files: [a, [b]]\n";
    let found = read(text.as_bytes()).unwrap_err().problems;
    assert_eq!(found[0].position, Position::new(6, 14));
    assert_eq!(found[0].field, "generators[0]#ConfigMapGenerator.files[1]");
}

fn runtime(metadata: &str) -> Runs {
    let text = format!("apiVersion: x/v1\nkind: Foo\nmetadata:\n  name: x\n{metadata}spec: {{url: https://h/a}}\n");
    let notes = plugin(&text).notes;
    assert_eq!(notes.len(), 1);
    match notes.into_iter().next().unwrap().kind {
        NoteKind::Code { kind, runs } => {
            assert_eq!(kind, "Foo");
            runs
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn functions_are_noted() {
    for name in ["config.kubernetes.io/function", "config.k8s.io/function"] {
        let annotation = |spec: &str| format!("  annotations:\n    {name}: |\n{spec}");
        assert_eq!(runtime(&annotation("      exec: {path: ./a.sh}\n")), Runs::Program("./a.sh".to_owned()));
        assert_eq!(
            runtime(&annotation("      container:\n        image: i\n        network: true\n")),
            Runs::Image { image: "i".to_owned(), network: true }
        );
        assert_eq!(runtime(&annotation("      {[\n")), Runs::Unknown);
    }
    assert_eq!(runtime("  configFn: {container: {image: i}}\n"), Runs::Image { image: "i".to_owned(), network: false });
    assert_eq!(
        runtime("  annotations: {config.kubernetes.io/container: i}\n"),
        Runs::Image { image: "i".to_owned(), network: false }
    );
}

#[test]
fn other_plugins_are_noted() {
    let text = "generators:\n- |\n  apiVersion: team.example.com/v1\n  kind: Foo\n  metadata: {name: x}\n  path: a/b\n  files: [c]\n";
    let file = good(text);
    assert_eq!(file.references, []);
    assert_eq!(file.notes[0].position, Position::new(3, 3));
    assert_eq!(file.notes[0].field, "generators[0]#Foo");
    assert_eq!(
        file.notes[0].kind,
        NoteKind::Code { kind: "Foo".to_owned(), runs: Runs::Plugin("team.example.com/v1/foo/Foo".to_owned()) }
    );
}

/// The program stands in YAML that is a string in YAML that is a string in a kustomization.
#[test]
fn programs_of_functions_are_referenced_at_their_place() {
    let text = "\
generators:
- |
  apiVersion: a/v1
  kind: A
  metadata:
    name: a
    annotations:
      config.kubernetes.io/function: |
        exec:
          path: ./fn.sh # run
";
    let read = good(text);
    let program = &read.references[0];
    assert_eq!(program.accepts, Accepts::Program);
    assert_eq!(program.field, "generators[0]#A.exec.path");
    assert_eq!(program.span.start, Position::new(10, 17));
    assert_eq!(program.span.end, Position::new(10, 24));
    let edited = edit(text.as_bytes(), &[Edit { spot: &program.spot, value: "localized-files/h/fn.sh".to_owned() }]);
    assert_eq!(String::from_utf8(edited.unwrap()).unwrap(), text.replace("./fn.sh", "localized-files/h/fn.sh"));
    for none in ["exec: {path: fn}", "exec: {path: ''}", "{["] {
        let text = format!(
            "apiVersion: a/v1\nkind: A\nmetadata:\n  name: a\n  annotations:\n    config.kubernetes.io/function: |\n      {none}\n"
        );
        assert_eq!(plugin(&text).references, [], "{none}");
    }
}

#[test]
fn charts_in_plugins_are_noted() {
    let text = builtin("HelmChartInflationGenerator", "name: a\nrepo: https://h\nversion: 1.0.0\nchartHome: c");
    let notes = plugin(&text).notes;
    let fields: Vec<_> = notes.iter().map(|n| n.field.as_str()).collect();
    assert_eq!(fields, ["HelmChartInflationGenerator"]);
    assert!(matches!(&notes[0].kind, NoteKind::Chart { name, home, .. } if name == "a" && home == "c"));
}
