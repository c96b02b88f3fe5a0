//! What is accepted and what is refused.

use super::*;

#[test]
fn every_key_is_read() {
    for text in [
        EVERYTHING.to_owned(),
        EVERYTHING.replace('\n', "\r\n"),
        format!("\u{feff}{EVERYTHING}"),
        format!("---\n{EVERYTHING}...\n"),
    ] {
        let first = 1 + usize::from(text.starts_with("---"));
        let config = parse(&text);
        let rules: Vec<_> = config.rules.iter().map(|(RuleKey(rule), severity)| (rule.unwrap(), *severity)).collect();
        assert_eq!(
            rules,
            [
                (Rule::FloatingRef, Severity::Warning),
                (Rule::InvalidKustomization, Severity::Error),
                (Rule::StaleLock, Severity::Off),
            ]
        );
        let texts = |globs: &[Glob]| -> Vec<String> { globs.iter().map(|glob| glob.text.clone()).collect() };
        assert_eq!(texts(&config.scopes), ["apps/*", "clusters/**"]);
        assert_eq!(texts(&config.include), ["clusters"]);
        assert_eq!(texts(&config.exclude), ["**/templates", "."]);
        assert!(config.helm && config.allow_private);
        assert_eq!(config.load_restrictor, LoadRestrictor::None);
        let [own, charts, secret, image, program] = &config.allow[..] else { panic!("{:?}", config.allow) };
        assert_eq!((&*own.text, own.refs), ("github.com/acme", Some(RefPolicy::Tag)));
        assert_eq!(own.reason, "our own");
        let default = Rule::ALL.iter().filter(|rule| rule.is_allowed_by_default());
        assert_eq!(own.rules, default.copied().collect());
        assert_eq!((own.span.start.line, own.span.start.column), (first + 12, 3));
        assert_eq!(own.span.end.column, "- url: github.com/acme".len() + 1);
        assert!(secret.key == "path");
        assert_eq!(secret.reason, "made by each cluster");
        assert!(image.key == "image");
        assert_eq!(program.text, "sed");
        assert!(is_placeholder(&image.reason));
        assert_eq!(charts.reason, "mirrored, and watched");
        assert_eq!(charts.refs, Some(RefPolicy::Any));
        assert_eq!(charts.rules, BTreeSet::from([Rule::RemoteChart]));
    }
}

#[test]
fn a_file_without_content_is_the_default() {
    for text in ["", "\n", "# nothing yet\n", "---\n# nothing\n", "\u{feff}", "{}\n"] {
        let config = parse(text);
        assert!(config.rules.is_empty() && config.allow.is_empty());
        assert!(config.may_start_in("a/b") && config.may_start_in(""));
        assert_eq!(config.scope_of("a/b"), None);
    }
}

#[test]
fn whatever_is_wrong_is_refused_with_its_place() {
    for (text, part) in [
        ("allow-private: true\ntrustExec: []", "2:1: unknown field `trustExec` (did you mean `trust-exec`?"),
        (
            "program: rm -rf /",
            "1:1: unknown field `program` (known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more",
        ),
        ("exec:\n  - {a: [b, {c: d}]}\nallow-private: true", "1:1: unknown field `exec`"),
        (
            "rules:\n  remote-refernce: off",
            "2:3: rules: unknown value `remote-refernce` (did you mean `remote-reference`?",
        ),
        ("rules:\n  engine: info", "2:11: rules.engine: unknown value `info` (known are `error`, `warning`, `off`"),
        ("rules:\n  engine: false", "2:11: rules.engine: unknown value `false`"),
        ("rules:", "no value"),
        (
            "rules: off",
            "1:8: rules: expected keys with values, not the text `off` (for example: rules: {floating-ref: error}",
        ),
        (
            "repository: oci://x/y",
            "1:13: repository: expected a list, not the text `oci://x/y` (for example: repository: [{url: 'oci://ghcr.io/acme/manifests'}]",
        ),
        (
            "repository: [oci://x/y]",
            "1:14: repository[0]: expected keys with values, not the text `oci://x/y` (for example: repository: [{url: ",
        ),
        ("scopes: apps", "1:9: scopes: expected a list, not the text `apps`"),
        ("scopes: [[apps]]", "1:10: scopes[0]: expected a text, not a list"),
        ("allow-private: 'true'", "1:16: allow-private: expected `true` or `false`, not the text `true`"),
        ("helm: true\nbuild-timeout: 60", "2:16: build-timeout: `60` is not a duration (write a number with s"),
        ("sources: [{url: a.example, min-age: 1w}]", "1:37: sources[0].min-age: `1w` is not a duration"),
        ("helm: true\nmax-file-size: 64x", "2:16: max-file-size: `64x` is not a size"),
        ("helm: true\nkustomize: new", "2:12: kustomize: `new` is not a version"),
        ("new-only: true", "1:1: unknown field `new-only`"),
        (
            "load-restrictor: LoadRestrictionsNone",
            "unknown value `LoadRestrictionsNone` (known are `root-only`, `none`",
        ),
        ("allow-private: true\nallow-private: false", "2:1: not YAML: the key `allow-private` appears twice"),
        ("rules:\n  engine: off\n  engine: off", "3:3: not YAML: the key `engine` appears twice"),
        ("- a", "1:1: expected keys with values, not a list"),
        ("allow-private: true\n---\nallow-private: true", "2:1: a second document"),
        ("scopes: [a", "not YAML"),
        ("allow-private: true\n<<<<<<< ours", "2: contains a merge conflict"),
    ] {
        is_refused_for(&format!("{text}\n"), part);
    }
}

#[test]
fn examples_are_read() {
    for (key, example) in crate::config::read::EXAMPLES {
        Config::parse(format!("{key}: {example}\n").as_bytes(), "x").unwrap();
    }
}

#[test]
fn an_entry_of_allow_says_which_and_why() {
    for (entry, part) in [
        ("url: a.example", "2:3: allow[0]: there is no `reason`"),
        ("url: a.example\n  reason: ''", "3:11: allow[0].reason: a string is empty"),
        ("url: a.example\n  reason: '  '", "a string is empty"),
        ("url: a.example\n  reason:", "3:9: no value"),
        ("reason: r", "2:1: allow: the entry with the reason `r` must have exactly one of `url`, `path`"),
        ("{url: a.example, path: a, reason: r}", "must have exactly one of"),
        ("a.example", "2:3: allow[0]: expected keys with values, not the text `a.example`"),
        ("{url: a.example, reason: r, ref: tag}", "unknown field `ref` (did you mean `refs`?"),
        ("{url: a.example, reason: r, refs: sha}", "unknown value `sha` (known are `any`, `branch`, `tag`, `commit`"),
        ("{url: a.example, reason: r, rules: []}", "`rules` is empty"),
        ("{url: a.example, reason: r, rules: [stale-allow]}", "`stale-allow` cannot be allowed"),
        ("{url: a.example, reason: r, rules: [remote]}", "unknown value `remote` (did you mean `remote-reference`?"),
    ] {
        is_refused_for(&format!("allow:\n- {entry}\n"), part);
    }
}

#[test]
fn hostile_files_end_in_an_error() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nscopes: [*b, *b]\n";
    refused(bomb);
    is_refused_for("scopes: &a [x]\n", "an anchor");
    is_refused_for("scopes: !!seq [x]\n", "a tag");
    refused(&"[".repeat(100_000));
    refused(&format!("scopes: {}", "[".repeat(1000)));
    refused(&"x: ".repeat(10_000));
    is_refused_for(&"#".repeat(300 << 10), "more than 262144 bytes");
    let failures = Config::parse(b"allow-private: true\n\xff", "x").unwrap_err();
    assert_eq!(failures.to_string(), "x: not UTF-8");
    assert!(Config::parse(b"\0", "x").is_err());
    // Text quoted from the file moves no cursor.
    is_refused_for("rules:\n  \"\\e[2Jx\": off\n", "\\u{1b}[2Jx");
    // No glob is slow to match, and no text makes the reader panic.
    refused(&format!("scopes: ['{}']", "a".repeat(2000)));
    for cut in 0..EVERYTHING.len() {
        let _ = Config::parse(&EVERYTHING.as_bytes()[..cut], "x");
        let _ = Config::parse(&EVERYTHING.as_bytes()[cut..], "x");
    }
}

#[test]
fn a_file_of_another_name_is_not_passed_over() {
    for (name, said) in [
        (".kustomize-localize.yaml", Some("`.kustomize-localize.yaml` is not read")),
        (".kustomize-localize.yml", Some("rename it to `.kustomize-localize`")),
        ("apps/.kustomize-localize.yaml", None),
    ] {
        for beside in [false, true] {
            let mut tree = crate::tree::overlay::OverlayTree::default();
            tree.add_file(name, b"helm: true\n");
            if beside {
                tree.add_file(FILE_NAME, b"helm: false\n");
            }
            let read = Config::of(&tree, "");
            let failure = read.err().map(|failure| format!("{failure} {:?}", failure.hints));
            assert_eq!(failure.is_some(), said.is_some(), "{name}");
            assert!(failure.unwrap_or_default().contains(said.unwrap_or_default()), "{name}");
        }
    }
}
