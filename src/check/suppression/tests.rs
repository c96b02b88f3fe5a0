use super::super::stale_allow::FORM;
use super::super::testing::{Scene, flux, shown, source};
use super::*;
use crate::message::finding::Severity;

/// Returns the line of each comment with the lines that it is about and the rules, or what is wrong.
fn read_all(text: &str) -> Vec<(usize, usize, String)> {
    Comments::of(text.as_bytes())
        .comments
        .iter()
        .map(|comment| {
            let said = match &comment.directive {
                Ok(said) => {
                    let ids: Vec<&str> = said.rules.iter().map(|rule| rule.id()).collect();
                    format!("{}: {}", ids.join("+"), said.reason)
                }
                Err(why) => why.clone(),
            };
            (comment.span.start.line, comment.about, said)
        })
        .collect()
}

fn scene(text: &str) -> Scene {
    Scene::of(text).file("x.yaml", "")
}

/// Returns the rules and lines of the findings that are not allowed.
fn left(scene: Scene) -> Vec<(Rule, usize)> {
    let findings = scene.check().findings.into_iter();
    findings
        .filter(|finding| finding.allowed.is_none())
        .map(|finding| (finding.rule, finding.span.map_or(0, |span| span.start.line)))
        .collect()
}

#[test]
fn a_comment_is_about_its_line_or_the_next_that_is_none() {
    let text = "\
# kustomize-localize: allow[engine] the first
resources: # kustomize-localize: allow[missing-path] beside
# kustomize-localize: allow[remote-reference] above
# of course
  # kustomize-localize: allow[floating-ref, function] above, too
- https://a.example/x # kustomize-localize: allow[out-of-scope]  and   beside 
- b
# kustomize-localize: allow[engine] no more

- c
# kustomize-localize: allow[engine] the last";
    assert_eq!(
        read_all(text),
        [
            (1, 2, "engine: the first".to_owned()),
            (2, 2, "missing-path: beside".to_owned()),
            (3, 6, "remote-reference: above".to_owned()),
            (5, 6, "floating-ref+function: above, too".to_owned()),
            (6, 6, "out-of-scope: and   beside".to_owned()),
            (8, 9, "engine: no more".to_owned()),
            (11, 12, "engine: the last".to_owned()),
        ]
    );
    for text in [text.replace('\n', "\r\n"), format!("\u{feff}{text}")] {
        assert_eq!(read_all(&text).len(), 7);
        assert_eq!(read_all(&text)[3].1, 6);
    }
}

#[test]
fn only_comments_are_comments() {
    for text in [
        "a: \"# kustomize-localize: allow[engine] x\"\n",
        "a: '\n  # kustomize-localize: allow[engine] x'\n",
        "a: |\n  # kustomize-localize: allow[engine] x\n  y\n",
        "a: >-\n  # kustomize-localize: allow[engine] x\n",
        "a: b#kustomize-localize: allow[engine] x\n",
        "patches:\n- patch: |-\n    # kustomize-localize: allow[engine] x\n    a: b\n  target: {}\n",
        "a: kustomize-localize: allow[engine] x\n",
        "# see kustomize-localize: allow[engine] x\n",
        "# made by kustomize-localize\n# kustomize-localize is a program\n# kustomize-localize.lock\n",
        "\"a\n# kustomize-localize: allow[engine] x\n",
    ] {
        assert_eq!(read_all(text), [], "{text}");
    }
    for text in [
        "a: [ # kustomize-localize: allow[engine] x\n b]\n",
        "a: | # kustomize-localize: allow[engine] x\n  y\n",
        "a: |\n  y\n# kustomize-localize: allow[engine] x\nb: c\n",
        "#kustomize-localize:allow[engine]x\na: b\n",
        "#   kustomize-localize : allow[ engine ]: x\na: b\n",
        "# kustomize-localize: allow[engine] x\na: [\n",
        "# kustomize-localize: allow[engine] x\na: b\n: :\n- c\n",
        "# kustomize-localize: allow[engine] x",
    ] {
        let read = read_all(text);
        assert_eq!(read.len(), 1, "{text}");
        assert_eq!(read[0].2, "engine: x", "{text}");
    }
    assert_eq!(read_all("\u{0}# kustomize-localize: allow[engine] x"), []);
    assert!(Comments::of(b"# kustomize-localize: allow[engine] x\n\xff").comments.is_empty());
    let long = format!("{}a: b\n", "# kustomize-localize: allow[engine] x\n".repeat(2000));
    assert!(read_all(&long).iter().all(|(_, about, _)| *about == 2001));
}

#[test]
fn malformed_comments_are_explained() {
    for (text, why) in [
        ("allow[engine]", "missing reason"),
        ("allow[engine] -", "missing reason"),
        ("allow[] x", "unknown rule ``"),
        ("allow[engine,] x", "unknown rule ``"),
        ("allow[enigne] x", "unknown rule `enigne` (did you mean `engine`?)"),
        ("allow[everything] x", "unknown rule `everything`"),
        ("allow[Engine] x", "did you mean `engine`?"),
        ("allow[stale-allow] x", "`stale-allow` cannot be allowed"),
        ("allow engine x", "expected `allow[RULE] reason`, found `"),
        ("allow[engine x", "expected `allow[RULE] reason`, found `"),
        ("allow(engine) x", "expected `allow[RULE] reason`, found `"),
        ("ignore[engine] x", "expected `allow[RULE] reason`, found `ignore[engine] x`"),
        ("", "expected `allow[RULE] reason`, found `"),
        ("[engine] x", "expected `allow[RULE] reason`, found `"),
    ] {
        let text = format!("resources:\n- gone.yaml # kustomize-localize: {text}\n");
        let mut findings = scene(&text).check().findings;
        findings.sort_by_key(|finding| finding.rule);
        let [missing, stale] = &findings[..] else { panic!("{text}: {findings:#?}") };
        assert!(missing.fails(), "{text}");
        assert_eq!((stale.rule, stale.severity), (Rule::StaleAllow, Severity::Warning));
        let begin = "this comment allows nothing: ";
        let said = stale.message.strip_prefix(begin).unwrap_or_default();
        assert!(said.contains(why), "{text}: {}", stale.message);
        assert_eq!(stale.help, [FORM]);
        let place = stale.span.map(|span| (span.start.line, span.start.column));
        assert_eq!(place, Some((2, 13)));
    }
    let missing = read_all("a: b # kustomize-localize allow[engine] x\n");
    assert_eq!(missing[0].2, "missing `:` after `kustomize-localize`");
}

#[test]
fn the_first_comments_are_about_the_whole_file() {
    let comment = "# kustomize-localize: allow[engine] later\n";
    let found = |text: &str| {
        let scene = Scene::default()
            .file("clusters/source.yaml", &source(""))
            .file("clusters/apps.yaml", &flux("apps"))
            .file("apps/values.yaml", text);
        left(scene)
    };
    for text in
        [format!("{comment}a: b\n"), format!("---\n{comment}a: b\n"), format!("# about us\n\n{comment}\na: b\n")]
    {
        assert_eq!(found(&text), [], "{text}");
    }
    for text in [format!("a:\n{comment}  b: c\n"), format!("a: b {comment}"), format!("a: b\n{comment}")] {
        assert!(found(&text).contains(&(Rule::Engine, 0)), "{text}");
    }
}

#[test]
fn nothing_allows_what_could_not_be_read() {
    let comment = "# kustomize-localize: allow[invalid-kustomization] later\n";
    for rest in ["", "resources: [\n"] {
        let found = left(scene(&format!("{comment}{rest}")));
        let rules: BTreeSet<Rule> = found.iter().map(|(rule, _)| *rule).collect();
        let expected = [Rule::InvalidKustomization, Rule::StaleAllow];
        assert_eq!(rules, expected.into(), "{rest}");
    }
}

#[test]
fn a_comment_beside_a_reference_that_is_not_locked_names_its_unused_rule() {
    let findings =
        Scene::of("resources:\n- gone.yaml # kustomize-localize: allow[remote-reference] ours\n").check().findings;
    let [_missing, stale] = &findings[..] else { panic!("{findings:#?}") };
    assert_eq!(stale.message, "`remote-reference` has no finding here to allow");
    assert_eq!(stale.help, ["remove `remote-reference` from the comment"]);
}

#[test]
fn a_comment_that_allows_nothing_is_stale() {
    let text = "\
resources:
- gone.yaml # kustomize-localize: allow[missing-path, engine] r
- x.yaml # kustomize-localize: allow[engine] r
";
    let entries = "allow:\n- {url: a.example, refs: tag, reason: r}\n- {url: 'b.example', refs: commit, reason: r}\ninclude: [., gone]\nexclude:\n- '**/gone'\n- docs\n";
    let scene = |text: &str| scene(text).file("docs/index.md", "");
    let findings = scene(text).config(entries).check().findings;
    let stale = findings.iter().filter(|one| one.rule == Rule::StaleAllow);
    let stale: Vec<_> = stale
        .map(|one| {
            let line = one.span.unwrap().start.line;
            (&*one.path, line, &*one.message, &*one.help[0])
        })
        .collect();
    let nothing = "`engine` has no finding here to allow";
    let remove = "remove or correct the entry, its `refs` or `rules`";
    let entry = |name: &str| format!("unused exception: `{name}` matches no finding");
    assert_eq!(
        stale,
        [
            (".kustomize-localize", 2, &*entry("a.example"), remove),
            (".kustomize-localize", 3, &*entry("b.example"), remove),
            (".kustomize-localize", 4, "nothing matches `gone`", "remove or correct it"),
            (".kustomize-localize", 6, "nothing matches `**/gone`", "remove or correct it"),
            ("kustomization.yaml", 2, nothing, "remove `engine` from the comment"),
            ("kustomization.yaml", 3, nothing, "remove `engine` from the comment"),
        ]
    );
    assert!(findings.iter().all(|finding| !finding.fails()));
    let count = |config: &str| left(scene(text).config(config)).len();
    // The comments of a rule that is off are still checked.
    assert_eq!(count("rules: {missing-path: off}\n"), 2);
    assert_eq!(count("rules: {stale-allow: off}\n"), 0);
    let strict = scene(text).config("rules: {stale-allow: error}\n");
    assert!(strict.check().findings.iter().any(|one| one.fails()));
    let mut part = scene(text).config(entries);
    part.paths = vec![String::from("kustomization.yaml")];
    assert_eq!(left(part), []);
}

#[test]
fn an_exact_entry_that_others_stand_below_says_how_many() {
    let text = "resources:\n- https://a.example/x/y.yaml\n- github.com/o/r//a?ref=v1\n- github.com/o/r//b\n";
    for (entry, message) in [
        (
            "a.example",
            "unused exception: `a.example` matches no finding exactly; 1 reference is below it: `refs: any` covers it",
        ),
        (
            "github.com/o",
            "unused exception: `github.com/o` matches no finding exactly; 2 references are below it: `refs: any` covers them",
        ),
        (
            "github.com/o/r",
            "unused exception: `github.com/o/r` matches no finding exactly; 2 references are below it: `refs: any` covers them",
        ),
        ("github.com/o/other", "unused exception: `github.com/o/other` matches no finding exactly"),
        ("github.com/o/r//a?ref=v2", "unused exception: `github.com/o/r//a?ref=v2` matches no finding exactly"),
    ] {
        let scene = scene(text).config(&format!("allow: [{{url: '{entry}', reason: r}}]\n"));
        let findings = scene.git("https://github.com/o/r", None).check().findings;
        let stale = findings.iter().filter(|one| one.rule == Rule::StaleAllow);
        let stale: Vec<&str> = stale.map(|one| &*one.message).collect();
        assert_eq!(stale, [message], "{entry}");
    }
}

#[test]
fn an_entry_applies_where_no_comment_does() {
    let comment = " # kustomize-localize: allow[remote-reference] here";
    let config = "allow:\n- {url: a.example, refs: any, reason: there}\n";
    let by = |text: &str| -> Vec<String> {
        let findings = scene(text).config(config).check().findings.into_iter();
        findings.map(|finding| finding.allowed.unwrap().by()).collect()
    };
    let one = format!("resources:\n- https://a.example/x{comment}\n");
    let both = format!("{one}- https://a.example/y\n");
    assert_eq!(by(&both), ["kustomization.yaml:2", ".kustomize-localize:2"]);
    // An entry that only repeats a comment still counts as used.
    assert_eq!(by(&one), ["kustomization.yaml:2"]);
}

#[test]
fn no_secret_of_a_comment_is_shown() {
    for reference in ["gone.yaml", "x.yaml"] {
        let comment = "# kustomize-localize: allow[missing-path] see https://u:hunter2@b.example";
        let findings = scene(&format!("resources:\n- {reference} {comment}\n")).check().findings;
        assert_eq!(findings.len(), 1);
        assert!(!shown(&findings).contains("hunter2"), "{findings:?}");
    }
}

#[test]
fn the_page_shows_comments_that_allow() {
    let page = include_str!("../../manual/configuration.md");
    let (_, section) = page.split_once("\n## Exceptions\n").unwrap();
    let example = section.split("```yaml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    assert_eq!(
        read_all(example),
        [
            (2, 3, "remote-reference: released by us, with signed tags".to_owned()),
            (4, 4, "remote-reference+floating-ref: on trial".to_owned()),
        ]
    );
}

#[test]
fn urls_are_allowed_by_host_path_and_ref() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    let text = format!(
        "resources:
- https://github.com/acme/bases//web?ref=v1
- git@github.com:acme/bases//web?ref={id}
- https://github.com/acme/bases//web?ref=main
- https://github.com/acme-evil/bases//web?ref=v1
- https://github.com.evil.example/acme/bases//web?ref=v1
- https://evil.example/?x=github.com/acme/bases
- https://evil.example/acme/../github.com/acme/bases.git?ref=v1
- https://github.com/acme/../evil/bases.git?ref=v1
- http://git.example/acme/bases.git?ref=v1
- http://github.com/acme/bases//web?ref=v1
- https://github.com@evil.example/acme/bases?ref=v1
"
    );
    for (entry, lines) in [
        // What kustomize asks first is not what stands for https://github.com/.
        ("url: github.com/acme, refs: tag", &[2, 3][..]),
        ("url: github.com/acme/*, refs: tag", &[2, 3]),
        ("url: github.com/acme, refs: commit", &[3]),
        ("url: github.com/acme, refs: branch", &[2, 3, 4]),
        ("url: github.com/acme, refs: any", &[2, 3, 4]),
        ("url: github.com, refs: tag", &[2, 3, 5]),
        ("url: 'https://github.com/acme/bases//web', refs: tag", &[2]),
        ("url: 'git@github.com:acme', refs: tag", &[3]),
        ("url: 'http://git.example', refs: tag", &[10]),
        ("url: git.example, refs: tag", &[]),
        ("url: github.com, refs: any, rules: [floating-ref]", &[]),
    ] {
        let mut findings =
            Scene::of(&text).config(&format!("allow:\n- {{{entry}, reason: ours}}\n")).find(Rule::RemoteReference);
        findings.retain(|finding| finding.allowed.is_some());
        for allowed in findings.iter().filter_map(|finding| finding.allowed.as_ref()) {
            assert_eq!((allowed.by(), &*allowed.reason), (".kustomize-localize:2".to_owned(), "ours"));
        }
        let found: Vec<usize> = findings.iter().map(|finding| finding.span.unwrap().start.line).collect();
        assert_eq!(found, lines, "{entry}");
    }
}
