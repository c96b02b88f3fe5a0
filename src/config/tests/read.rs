//! What is accepted and what is refused.

use super::*;
use crate::finding::WarningId;

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
        let rules: Vec<_> = config.rules.into_iter().collect();
        assert_eq!(
            rules,
            [
                (Rule::FloatingRef, Level::Warning),
                (Rule::InvalidKustomization, Level::Error),
                (Rule::StaleLock, Level::Off),
            ]
        );
        assert_eq!(config.locked, Locked::Error);
        let texts = |globs: &[Glob]| -> Vec<String> {
            globs.iter().map(|glob| glob.text.clone()).collect()
        };
        assert_eq!(texts(&config.scopes), ["apps/*", "clusters/**"]);
        assert_eq!(texts(&config.include), ["clusters"]);
        assert_eq!(texts(&config.exclude), ["**/templates", "."]);
        assert!(config.new_only && config.helm && config.allow_private);
        assert_eq!(config.load_restrictor, LoadRestrictor::None);
        let [own, charts] = &config.allow[..] else {
            panic!("{:?}", config.allow)
        };
        assert_eq!(
            (own.url.text.as_str(), own.refs),
            ("github.com/acme", RefPolicy::Tag)
        );
        assert_eq!(own.reason, "our own");
        let default = [Rule::RemoteReference, Rule::FloatingRef, Rule::RemoteChart];
        assert_eq!(own.rules, default.into());
        assert_eq!((own.span.line, own.span.column), (first + 13, 3));
        assert_eq!(own.line_text, "- url: github.com/acme");
        assert_eq!(own.span.end_column, own.line_text.len() + 1);
        let [secret] = &config.leave_missing[..] else {
            panic!("{:?}", config.leave_missing)
        };
        assert_eq!(secret.reason, "made by each cluster");
        let strict = [WarningId::NotBuilt, WarningId::LeftMissing];
        assert_eq!(config.strict, Strict::Some(strict.into()));
        assert_eq!(charts.reason, "mirrored, and watched");
        assert_eq!(charts.refs, RefPolicy::Any);
        assert_eq!(charts.rules, BTreeSet::from([Rule::RemoteChart]));
    }
}

#[test]
fn a_file_without_content_is_the_default() {
    for text in [
        "",
        "\n",
        "# nothing yet\n",
        "---\n# nothing\n",
        "\u{feff}",
        "{}\n",
    ] {
        let config = parse(text);
        assert!(config.rules.is_empty() && config.allow.is_empty() && !config.new_only);
        assert_eq!(config.locked, Locked::Allow);
        assert!(config.starts("a/b") && config.starts(""));
        assert_eq!(config.scope_of("a/b"), None);
    }
}

#[test]
fn whatever_is_wrong_is_refused_with_its_place() {
    for (text, part) in [
        (
            "allow-private: true\nnewOnly: true",
            "2:1: newOnly: this key is not known",
        ),
        (
            "allow-private: true\nnewOnly: true",
            "(did you mean `new-only`?)",
        ),
        ("program: rm -rf /", "1:1: program: this key is not known"),
        ("program: rm -rf /", "the keys are rules, locked"),
        (
            "strict: [not-built, left-mising]",
            "1:21: strict[1]: there is no warning `left-mising`",
        ),
        (
            "strict: [not-built, left-mising]",
            "(did you mean `left-missing`?)",
        ),
        ("strict: [all]", "the warnings are edited-copy, extra"),
        (
            "leave-missing: [{path: a, reason: r, reasons: r}]",
            "leave-missing[0].reasons: this key",
        ),
        (
            "leave-missing: [{path: a, reason: r, reasons: r}]",
            "did you mean `reason`?",
        ),
        (
            "leave-missing: [{path: a}]",
            "leave-missing[0]: an entry has a `reason` (give in one line why this may be missing",
        ),
        (
            "exec:\n  - {a: [b, {c: d}]}\nallow-private: true",
            "1:1: exec: this key",
        ),
        (
            "rules:\n  remote-refernce: off",
            "2:3: rules.remote-refernce: there is no rule `remote-refernce`",
        ),
        (
            "rules:\n  remote-refernce: off",
            "did you mean `remote-reference`",
        ),
        ("rules:\n  everything: off", "2:3"),
        (
            "rules:\n  everything: off",
            "the rules are remote-reference, floating-ref",
        ),
        (
            "rules:\n  cycle: info",
            "2:10: rules.cycle: `info` is none of `error`, `warning`, `off`",
        ),
        (
            "rules:\n  cycle: false",
            "2:10: rules.cycle: `false` is none of",
        ),
        ("rules:", "rules: nothing where a mapping should be"),
        ("rules: off", "1:8: rules: a text where a mapping should be"),
        ("scopes: apps", "1:9: scopes: a text where a list should be"),
        (
            "scopes: [[apps]]",
            "1:10: scopes[0]: a list where a text should be",
        ),
        (
            "allow-private: 'true'",
            "1:16: allow-private: is not `true` or `false`",
        ),
        ("new-only: main", "1:11: new-only: is not `true` or `false`"),
        ("locked: warning", "`warning` is none of `allow`, `error`"),
        (
            "load-restrictor: LoadRestrictionsNone",
            "is none of `root-only`, `none`",
        ),
        (
            "allow-private: true\nallow-private: false",
            "2:1: the key `allow-private` is there twice",
        ),
        (
            "rules:\n  cycle: off\n  cycle: off",
            "3:3: rules: the key `cycle` is there twice",
        ),
        ("- a", "1:1: a list where a mapping should be"),
        ("allow-private: true\n---\nallow-private: true", "2:1"),
        (
            "allow-private: true\n---\nallow-private: true",
            "second document",
        ),
        ("scopes: [a", "not YAML"),
        (
            "allow-private: true\n<<<<<<< ours",
            "2: holds a merge conflict",
        ),
    ] {
        is_refused_for(&format!("{text}\n"), part);
    }
}

#[test]
fn an_entry_of_allow_says_which_and_why() {
    for (entry, part) in [
        ("url: a.example", "2:3: allow[0]: an entry has a `reason`"),
        ("url: a.example", "for those who review"),
        (
            "url: a.example\n  reason: ''",
            "3:11: allow[0].reason: the reason is empty",
        ),
        ("url: a.example\n  reason: '  '", "the reason is empty"),
        (
            "url: a.example\n  reason:",
            "allow[0].reason: holds nothing",
        ),
        ("reason: r", "2:3: allow[0]: an entry has a `url`"),
        (
            "a.example",
            "2:3: allow[0]: a text where a mapping should be",
        ),
        (
            "{url: a.example, reason: r, ref: tag}",
            "allow[0].ref: this key is not known",
        ),
        (
            "{url: a.example, reason: r, ref: tag}",
            "did you mean `refs`",
        ),
        (
            "{url: a.example, reason: r, refs: sha}",
            "`sha` is none of `any`, `branch`, `tag`, `commit`",
        ),
        (
            "{url: a.example, reason: r, rules: []}",
            "`rules` names no rule",
        ),
        (
            "{url: a.example, reason: r, rules: [missing-path]}",
            "allow[0].rules[0]: `missing-path` is about no URL",
        ),
        (
            "{url: a.example, reason: r, rules: [missing-path]}",
            "allow[missing-path] WHY",
        ),
        (
            "{url: a.example, reason: r, rules: [remote]}",
            "no rule `remote`",
        ),
    ] {
        is_refused_for(&format!("allow:\n- {entry}\n"), part);
    }
}

#[test]
fn all_errors_are_reported_at_once() {
    let failures = refused(
        "rules: {cycel: off, cycle: on}\nscopes: [/apps, ok, ../x]\nallow:\n- url: ''\n- {url: b.example, rules: [x], refs: y, reason: r}\npni: true\nnew-only: 1\n",
    );
    let places: Vec<&str> = failures
        .iter()
        .map(|failure| failure.split(": ").nth(1).unwrap())
        .collect();
    assert_eq!(
        places,
        [
            "rules.cycel",
            "rules.cycle",
            "scopes[0]",
            "scopes[2]",
            "allow[0]",
            "allow[0].url",
            "allow[1].rules[0]",
            "allow[1].refs",
            "pni",
            "new-only",
        ],
        "{failures:#?}"
    );
}

#[test]
fn hostile_files_end_in_an_error() {
    let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nscopes: [*b, *b]\n";
    let failures = refused(bomb);
    assert!(
        failures
            .iter()
            .any(|failure| failure.contains("anchors and aliases")),
        "{failures:?}"
    );
    is_refused_for("scopes: &a [x]\n", "anchors and aliases are not allowed");
    is_refused_for("scopes: !!seq [x]\n", "tags are not allowed");
    refused(&"[".repeat(100_000));
    refused(&format!("scopes: {}", "[".repeat(1000)));
    refused(&"x: ".repeat(10_000));
    is_refused_for(&"#".repeat(300 << 10), "more than 262144 bytes");
    let failures = Config::parse(b"allow-private: true\n\xff", "x").unwrap_err();
    assert_eq!(failures.0[0].to_string(), "x:2: not UTF-8");
    assert_eq!(failures.0[0].hints, ["save the file as UTF-8"]);
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
        (
            ".kustomize-localize.yaml",
            Some("`.kustomize-localize.yaml` is not read"),
        ),
        (
            ".kustomize-localize.yml",
            Some("git mv -- :/.kustomize-localize.yml"),
        ),
        ("apps/.kustomize-localize.yaml", None),
    ] {
        for beside in [false, true] {
            let mut tree = crate::tree::memory::MemoryTree::default();
            tree.file(name, b"helm: true\n", false);
            if beside {
                tree.file(FILE_NAME, b"helm: false\n", false);
            }
            let read = Config::of(&tree, "").map_err(|failures| failures.0);
            let failure = read
                .err()
                .map(|all| format!("{} {:?}", all[0], all[0].hints));
            assert_eq!(failure.is_some(), said.is_some(), "{name}");
            assert!(
                failure
                    .unwrap_or_default()
                    .contains(said.unwrap_or_default()),
                "{name}"
            );
        }
    }
}
