use super::super::stale_allow::FORM;
use super::*;
use crate::finding::Severity;

/// Returns the line of each comment with the lines that it is about and the rules, or what is wrong.
fn read_all(text: &str) -> Vec<(usize, usize, String)> {
    Suppressions::of(text.as_bytes())
        .comments
        .iter()
        .map(|comment| {
            let said = match &comment.said {
                Ok(said) => {
                    let ids: Vec<&str> = said.rules.iter().map(|rule| rule.id()).collect();
                    format!("{}: {}", ids.join("+"), said.reason)
                }
                Err(why) => why.clone(),
            };
            (comment.span.line, comment.about, said)
        })
        .collect()
}

fn finding(rule: Rule, line: usize) -> Finding {
    Finding {
        rule,
        severity: rule.default_severity(),
        path: "a/kustomization.yaml".to_owned(),
        span: (line > 0).then_some(Span {
            line,
            column: 3,
            end_line: line,
            end_column: 9,
        }),
        line_text: Default::default(),
        field: String::new(),
        reference: "x".to_owned(),
        subject: Subject::Http {
            url: "https://a.example/x.yaml".to_owned(),
        },
        message: String::new(),
        help: Vec::new(),
        unread: false,
        allowed: None,
        deployed: Vec::new(),
    }
}

const COMPLETE: Apply = Apply {
    no_allow: false,
    complete: true,
    leaving: BTreeSet::new(),
    missing: None,
};

fn applied(text: &str, findings: &[Finding], config: &str, how: Apply) -> Vec<Finding> {
    let config = Config::parse(config.as_bytes(), ".kustomize-localize").unwrap();
    let mut findings = findings.to_vec();
    let files = [("a/kustomization.yaml", text.as_bytes())];
    apply(&mut findings, files.into_iter(), &config, how);
    findings
}

/// Returns the lines of the findings that are not allowed.
fn left(text: &str, findings: &[(Rule, usize)]) -> Vec<(Rule, usize)> {
    let findings: Vec<Finding> = findings
        .iter()
        .map(|(rule, line)| finding(*rule, *line))
        .collect();
    applied(text, &findings, "", COMPLETE)
        .iter()
        .filter(|finding| finding.allowed.is_none())
        .map(|finding| (finding.rule, finding.span.map_or(0, |span| span.line)))
        .collect()
}

#[test]
fn a_comment_is_about_its_line_or_the_next_that_is_none() {
    let text = "\
# kustomize-localize: allow[cycle] the first
resources: # kustomize-localize: allow[missing-path] beside
# kustomize-localize: allow[remote-reference] above
# of course
  # kustomize-localize: allow[floating-ref, function] above, too
- https://a.example/x # kustomize-localize: allow[out-of-scope]  and   beside 
- b
# kustomize-localize: allow[cycle] no more

- c
# kustomize-localize: allow[cycle] the last";
    assert_eq!(
        read_all(text),
        [
            (1, 2, "cycle: the first".to_owned()),
            (2, 2, "missing-path: beside".to_owned()),
            (3, 6, "remote-reference: above".to_owned()),
            (5, 6, "floating-ref+function: above, too".to_owned()),
            (6, 6, "out-of-scope: and   beside".to_owned()),
            (8, 9, "cycle: no more".to_owned()),
            (11, 12, "cycle: the last".to_owned()),
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
        "a: \"# kustomize-localize: allow[cycle] x\"\n",
        "a: '\n  # kustomize-localize: allow[cycle] x'\n",
        "a: |\n  # kustomize-localize: allow[cycle] x\n  y\n",
        "a: >-\n  # kustomize-localize: allow[cycle] x\n",
        "a: b#kustomize-localize: allow[cycle] x\n",
        "patches:\n- patch: |-\n    # kustomize-localize: allow[cycle] x\n    a: b\n  target: {}\n",
        "a: kustomize-localize: allow[cycle] x\n",
        "# see kustomize-localize: allow[cycle] x\n",
        "# made by kustomize-localize\n# kustomize-localize is a program\n# kustomize-localize.lock\n",
        "\"a\n# kustomize-localize: allow[cycle] x\n",
    ] {
        assert_eq!(read_all(text), [], "{text}");
    }
    for text in [
        "a: [ # kustomize-localize: allow[cycle] x\n b]\n",
        "a: | # kustomize-localize: allow[cycle] x\n  y\n",
        "a: |\n  y\n# kustomize-localize: allow[cycle] x\nb: c\n",
        "#kustomize-localize:allow[cycle]x\na: b\n",
        "#   kustomize-localize : allow[ cycle ]: x\na: b\n",
        "# kustomize-localize: allow[cycle] x\na: [\n",
        "# kustomize-localize: allow[cycle] x\na: b\n: :\n- c\n",
        "# kustomize-localize: allow[cycle] x",
    ] {
        let read = read_all(text);
        assert_eq!(read.len(), 1, "{text}");
        assert_eq!(read[0].2, "cycle: x", "{text}");
    }
    assert_eq!(read_all("\u{0}# kustomize-localize: allow[cycle] x"), []);
    assert!(
        Suppressions::of(b"# kustomize-localize: allow[cycle] x\n\xff")
            .comments
            .is_empty()
    );
    let long = format!(
        "{}a: b\n",
        "# kustomize-localize: allow[cycle] x\n".repeat(2000)
    );
    assert!(read_all(&long).iter().all(|(_, about, _)| *about == 2001));
}

#[test]
fn malformed_comments_are_explained() {
    for (text, why) in [
        ("allow[cycle]", "no reason is given"),
        ("allow[cycle] -", "no reason is given"),
        ("allow[] x", "a rule is missing in the brackets"),
        ("allow[cycle,] x", "a rule is missing"),
        (
            "allow[cycel] x",
            "there is no rule `cycel` (did you mean `cycle`?)",
        ),
        ("allow[everything] x", "there is no rule `everything`"),
        ("allow[Cycle] x", "did you mean `cycle`?"),
        ("allow[stale-allow] x", "`stale-allow` cannot be allowed"),
        ("allow cycle x", "do not stand in brackets"),
        ("allow[cycle x", "do not stand in brackets"),
        ("allow(cycle) x", "do not stand in brackets"),
        (
            "ignore[cycle] x",
            "`ignore` is nothing that can be asked for",
        ),
        ("", "it does not say `allow[RULE]`"),
        ("[cycle] x", "it does not say `allow[RULE]`"),
    ] {
        let text = format!("a: b # kustomize-localize: {text}\n");
        let findings = applied(&text, &[finding(Rule::Cycle, 1)], "", COMPLETE);
        let [cycle, stale] = &findings[..] else {
            panic!("{text}: {findings:#?}")
        };
        assert!(cycle.fails(), "{text}");
        assert_eq!(
            (stale.rule, stale.severity),
            (Rule::StaleAllow, Severity::Warning)
        );
        assert!(
            stale.message.starts_with("this comment allows nothing: "),
            "{text}"
        );
        assert!(stale.message.contains(why), "{text}: {}", stale.message);
        assert_eq!(stale.help, [FORM]);
        assert_eq!(
            stale.span.map(|span| (span.line, span.column)),
            Some((1, 6))
        );
    }
    let missing = read_all("a: b # kustomize-localize allow[cycle] x\n");
    assert_eq!(missing[0].2, "`:` is missing after `kustomize-localize`");
}

#[test]
fn the_comment_of_an_empty_file_is_about_all_of_it() {
    let text = "# kustomize-localize: allow[invalid-kustomization] later\n";
    assert_eq!(left(text, &[(Rule::InvalidKustomization, 1)]), []);
    assert_eq!(left(text, &[(Rule::InvalidKustomization, 0)]), []);
    let text = format!("---\n{text}resources: [\n");
    assert_eq!(left(&text, &[(Rule::InvalidKustomization, 0)]), []);
    assert_eq!(left(&text, &[(Rule::InvalidKustomization, 3)]), []);
}

#[test]
fn a_comment_that_allows_nothing_is_stale() {
    let text = "\
resources:
- a # kustomize-localize: allow[missing-path, cycle] r
- b # kustomize-localize: allow[cycle] r
";
    let found = [finding(Rule::MissingPath, 2)];
    let config =
        "allow:\n- {url: a.example, reason: r}\n- {url: 'b.example', refs: commit, reason: r}\n";
    let findings = applied(text, &found, config, COMPLETE);
    let stale: Vec<(&str, usize, &str, &str)> = findings[1..]
        .iter()
        .map(|finding| {
            let line = finding.span.unwrap().line;
            let [help] = &finding.help[..] else { panic!() };
            (
                finding.path.as_str(),
                line,
                finding.message.as_str(),
                help.as_str(),
            )
        })
        .collect();
    assert_eq!(
        stale,
        [
            (
                "a/kustomization.yaml",
                2,
                "`cycle` has nothing here that could be allowed",
                "take `cycle` out of the comment"
            ),
            (
                "a/kustomization.yaml",
                3,
                "`cycle` has nothing here that could be allowed",
                "remove the comment"
            ),
            (
                ".kustomize-localize",
                2,
                "nothing is allowed by the entry for `a.example`",
                "remove the entry, or correct its `url`, `refs` or `rules`"
            ),
            (
                ".kustomize-localize",
                3,
                "nothing is allowed by the entry for `b.example`",
                "remove the entry, or correct its `url`, `refs` or `rules`"
            ),
        ]
    );
    assert!(findings.iter().all(|finding| !finding.fails()));
    // The comments of a rule that is off are still checked.
    let off = applied(text, &found, "rules: {missing-path: off}\n", COMPLETE);
    assert_eq!(off.len(), 2);
    let partial = Apply {
        complete: false,
        ..COMPLETE
    };
    assert_eq!(applied(text, &found, config, partial).len(), 1);
    let error = applied(text, &found, "rules: {stale-allow: error}\n", COMPLETE);
    assert!(error[1].fails());
    let silent = applied(text, &found, "rules: {stale-allow: off}\n", COMPLETE);
    assert_eq!(silent.len(), 1);
}

#[test]
fn an_entry_applies_where_no_comment_does() {
    let text = "# kustomize-localize: allow[remote-reference] here\na: b\n";
    let config = "allow:\n- {url: a.example, reason: there}\n";
    let both = [
        finding(Rule::RemoteReference, 2),
        finding(Rule::RemoteReference, 9),
    ];
    let findings = applied(text, &both, config, COMPLETE);
    let by: Vec<&str> = findings
        .iter()
        .map(|finding| finding.allowed.as_ref().unwrap().by.as_str())
        .collect();
    assert_eq!(by, ["a/kustomization.yaml:1", ".kustomize-localize:2"]);
    // An entry that only repeats a comment still counts as used.
    assert_eq!(applied(text, &both[..1], config, COMPLETE).len(), 1);
}

#[test]
fn no_secret_and_no_control_character_is_shown() {
    let text = "- https://u:hunter2@a.example/x # kustomize-localize: allow[cycle] see https://u:hunter2@b.example\n";
    let findings = applied(text, &[finding(Rule::Cycle, 1)], "", COMPLETE);
    assert!(!format!("{findings:?}").contains("hunter2"), "{findings:?}");
    let stale = applied(text, &[], "", COMPLETE);
    assert_eq!(stale.len(), 1);
    assert!(!format!("{stale:?}").contains("hunter2"), "{stale:?}");
}

#[test]
fn the_page_shows_comments_that_allow() {
    let page = include_str!("../../manual/configuration.md");
    let (_, section) = page.split_once("\n## Allowing a finding\n").unwrap();
    let example = section.split("```yaml\n").nth(1).unwrap();
    let example = example.split("```").next().unwrap();
    assert_eq!(
        read_all(example),
        [
            (
                2,
                3,
                "remote-reference: released by us, with signed tags".to_owned()
            ),
            (4, 4, "remote-reference+floating-ref: on trial".to_owned()),
        ]
    );
}

#[test]
fn only_the_first_comments_are_about_the_whole_file() {
    let rule = Rule::InvalidKustomization;
    for text in [
        "resources:\n# kustomize-localize: allow[invalid-kustomization] late\n- a\n",
        "resources: [] # kustomize-localize: allow[invalid-kustomization] beside\n",
        "{} \n# kustomize-localize: allow[invalid-kustomization] last\n",
    ] {
        assert_eq!(left(text, &[(rule, 0)])[0], (rule, 0), "{text}");
    }
    let text =
        "# about us\n\n# kustomize-localize: allow[invalid-kustomization] r\n\nresources: []\n";
    assert_eq!(left(text, &[(rule, 0)]), []);
}
