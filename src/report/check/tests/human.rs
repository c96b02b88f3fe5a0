use super::*;
use crate::redact::is_hidden;
use crate::report::check::{Shown, human};

const PLAIN: Shown = Shown {
    verbose: false,
    quiet: false,
    color: false,
    overview: false,
};

fn excerpt(line_text: &str, span: Option<Span>) -> Vec<String> {
    let finding = Finding {
        line_text: line_text.into(),
        span,
        field: String::new(),
        ..finding()
    };
    let text = human(&checked(vec![finding]), PLAIN);
    let lines: Vec<&str> = text.lines().skip(3).take(2).collect();
    lines
        .iter()
        .map(|line| line.split_once("| ").unwrap().1.trim_end().to_owned())
        .collect()
}

#[test]
fn a_finding_is_shown_with_its_line_and_what_to_do() {
    let text = human(&checked(vec![finding(), warning(), allowed()]), PLAIN);
    assert_eq!(
        text,
        "\
error[remote-reference]: https://example.com/a.yaml is neither localized nor locked
 --> apps/web/kustomization.yaml:3:5
  |
3 |   - https://example.com/a.yaml # upstream
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
  = help: keep the URL, and lock it:
          git kustomize-localize lock
          git add -- kustomize-localize.lock
  = help: allow it

warning[stale-lock]: nothing references https://example.com/b.yaml
 --> kustomize-localize.lock

for more: git kustomize-localize explain remote-reference stale-lock
checked 14 kustomizations with 52 references in the index: 1 error, 1 warning, 1 allowed
"
    );
}

#[test]
fn help_is_given_once() {
    let here = |path: &str| Finding {
        path: path.to_owned(),
        help: vec!["lock it".to_owned(), format!("or bring it in: {path}")],
        ..finding()
    };
    let other = Finding {
        help: vec!["name a tag".to_owned(), "lock it".to_owned()],
        ..finding()
    };
    let helps = |shown| {
        let text = human(&checked(vec![here("a"), here("b"), other.clone()]), shown);
        let helps = text.lines().filter_map(|line| line.split_once("help: "));
        let helps: Vec<String> = helps.map(|(_, help)| help.to_owned()).collect();
        (
            helps,
            text.contains("note: help like that above is not repeated: --verbose"),
        )
    };
    let (once, is_told) = helps(PLAIN);
    assert_eq!(once, ["lock it", "or bring it in: a", "name a tag"]);
    assert!(is_told);
    let (all, is_told) = helps(Shown {
        verbose: true,
        ..PLAIN
    });
    assert_eq!(all.len(), 6);
    assert!(!is_told);
    // What only one of them needs is not lost.
    let other = Finding {
        help: vec!["lock it".to_owned(), "or write it anew".to_owned()],
        ..finding()
    };
    let text = human(&checked(vec![here("a"), other]), PLAIN);
    assert!(text.contains("help: or write it anew"), "{text}");
    // A finding that is left out and reads the same is no loss.
    let text = human(&checked(vec![here("a"), here("a")]), PLAIN);
    assert_eq!(text.matches("lock it").count(), 1, "{text}");
    assert!(!text.contains("note:"), "{text}");
}

#[test]
fn allowed_findings_are_shown_when_asked_for() {
    let text = human(
        &checked(vec![allowed()]),
        Shown {
            verbose: true,
            ..PLAIN
        },
    );
    assert_eq!(
        text,
        "\
allowed[remote-reference]: https://example.com/a.yaml is neither localized nor locked
 --> apps/web/kustomization.yaml:3:5
  |
3 |   - https://example.com/a.yaml # upstream
  |     ^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
  = note: allowed by .kustomize-localize:12: mirrored inside

checked 14 kustomizations with 52 references in the index: 1 allowed
"
    );
}

#[test]
fn quiet_prints_only_errors() {
    let quiet = Shown {
        quiet: true,
        verbose: true,
        ..PLAIN
    };
    let text = human(&checked(vec![finding(), warning(), allowed()]), quiet);
    assert!(text.starts_with("error[remote-reference]"), "{text}");
    assert_eq!(text.matches("-->").count(), 1, "{text}");
    assert!(!text.contains("checked 14"), "{text}");
    assert_eq!(human(&checked(vec![warning()]), quiet), "");
}

#[test]
fn colour_is_only_there_when_wanted() {
    let findings = || checked(vec![finding(), warning(), allowed()]);
    let color = Shown {
        color: true,
        verbose: true,
        ..PLAIN
    };
    let text = human(&findings(), color);
    assert!(text.contains("\u{1b}[31m"), "{text:?}");
    assert_eq!(
        console::strip_ansi_codes(&text),
        human(
            &findings(),
            Shown {
                verbose: true,
                ..PLAIN
            }
        )
    );
}

#[test]
fn the_last_line_names_the_source_and_the_result() {
    let commit = |rev: &str| Checking::Commit {
        rev: rev.to_owned(),
        commit: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned(),
    };
    for (source, name) in [
        (Checking::Index, "the index"),
        (Checking::WorkingTree, "the working tree"),
        (commit("main~1"), "commit 1a2b3c4d5e6f (main~1)"),
        (commit("1a2b3c4"), "commit 1a2b3c4d5e6f"),
        (commit("a\nb"), "commit 1a2b3c4d5e6f (a\\nb)"),
    ] {
        let text = human(
            &Checked {
                source,
                kustomizations: 1,
                ..checked(Vec::new())
            },
            PLAIN,
        );
        assert_eq!(
            text,
            format!("checked 1 kustomization with 52 references in {name}: nothing found\n")
        );
    }
    let text = human(
        &Checked {
            known: Some((7, "HEAD".to_owned())),
            failures: vec![failure()],
            differing: 2,
            untold: vec![String::new(); 2],
            ..checked(vec![warning()])
        },
        PLAIN,
    );
    assert!(
        text.ends_with(
            "
note: 2 kustomizations have changes that are not staged: fixes count after `git add`
for more: git kustomize-localize explain stale-lock
checked 14 kustomizations with 52 references in the index (2 differ in the working tree): 1 warning, 7 left out that HEAD has too, 1 could not be looked at; not looked at: 2 targets that only a build or the cluster knows
"
        ),
        "{text}"
    );
}

#[test]
fn the_caret_stands_under_the_span() {
    for (line, span, shown, carets) in [
        // Tabs take four columns.
        ("-\tab", span(1, 3, 1, 5), "-    ab", "     ^^"),
        // Wide characters take two.
        ("- 日本/ab", span(1, 3, 1, 6), "- 日本/ab", "  ^^^^^"),
        ("- 日本/ab", span(1, 6, 1, 8), "- 日本/ab", "       ^^"),
        // Marks take none.
        ("- e\u{301}/ab", span(1, 6, 1, 8), "- e\u{301}/ab", "    ^^"),
        // A span of several lines is shown to the end of its first.
        ("- |", span(1, 3, 4, 2), "- |", "  ^"),
        ("- \"ab", span(1, 3, 2, 2), "- \"ab", "  ^^^"),
        // Something is marked always, also where the span does not fit the line.
        ("", span(1, 1, 1, 1), "", "^"),
        ("ab", span(1, 9, 1, 12), "ab", "  ^"),
        ("ab", span(0, 0, 0, 0), "ab", "^"),
        ("ab", span(1, 2, 1, 1), "ab", " ^"),
        // Control sequences for a terminal are not passed on.
        ("- \u{1b}[31m", span(1, 3, 1, 5), "- \u{fffd}[31m", "  ^^"),
        ("- ab\r", span(1, 3, 1, 5), "- ab", "  ^^"),
    ] {
        assert_eq!(excerpt(line, span), [shown, carets], "{line:?}");
    }
}

#[test]
fn a_long_line_is_cut_around_the_span() {
    let line = format!(
        "resources: [{}here, {}]",
        "a, ".repeat(50),
        "b, ".repeat(50)
    );
    let at = line.find("here").unwrap() + 1;
    let [shown, carets] = excerpt(&line, span(1, at, 1, at + 4)).try_into().unwrap();
    assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
    assert_eq!(shown.chars().count(), 122);
    assert_eq!(carets, format!("{}^^^^", " ".repeat(25)));
    assert_eq!(shown.chars().skip(25).take(4).collect::<String>(), "here");

    let line = format!("- {}", "日".repeat(5_000));
    let [shown, carets] = excerpt(&line, span(1, 3, 1, 5_003)).try_into().unwrap();
    assert!(shown.starts_with("- 日") && shown.ends_with('…'), "{shown}");
    assert_eq!(carets, format!("  {}", "^".repeat(118)));
    assert_eq!(excerpt(&line, span(1, 5_002, 1, 5_003))[1].trim(), "^^");
}

#[test]
fn a_file_of_one_line_is_cut_around_the_span() {
    let line = format!("[{}here{}]", "a, ".repeat(5_000), ", b".repeat(5_000));
    for (column, width) in [(15_002, 4), (2, 1), (30_005, 1)] {
        let [shown, carets] = excerpt(&line, span(1, column, 1, column + width))
            .try_into()
            .unwrap();
        let at = carets.find('^').unwrap();
        let marked: String = shown.chars().skip(at).take(width).collect();
        let meant: String = line.chars().skip(column - 1).take(width).collect();
        assert_eq!(marked, meant, "{shown}");
        assert_eq!(carets.len() - at, width);
        assert!(shown.chars().count() <= 122, "{shown}");
        assert_eq!(shown.starts_with('…'), column > 2, "{shown}");
        assert_eq!(shown.ends_with('…'), column < 30_000, "{shown}");
    }
}

#[test]
fn no_password_on_two_lines_is_shown() {
    let finding = |line: &str, reference: &str| Finding {
        line_text: line.into(),
        span: span(1, 3, 2, 9),
        reference: reference.to_owned(),
        ..finding()
    };
    let url = "https://example.com/a";
    let secret = finding("- \"https://user:hunter\\", url);
    let text = human(&checked(vec![secret]), PLAIN);
    assert!(
        !text.contains("hunter") && text.contains("\n1 | - https://example.com/a\n"),
        "{text}"
    );
    let harmless = finding("- \"https://exam\\", url);
    assert!(human(&checked(vec![harmless]), PLAIN).contains("\n1 | - \"https://exam\\\n"));
    let folded = finding("- >-", url);
    assert!(human(&checked(vec![folded]), PLAIN).contains("\n1 | - >-\n"));
}

#[test]
fn no_password_is_shown() {
    for (line, reference, shown, carets) in [
        (
            "- https://user:hunter2@example.com/a # see b",
            "https://example.com/a",
            "- https://example.com/a # see b",
            "  ^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "- 'https://user:hunter2@example.com/a'",
            "https://example.com/a",
            "- 'https://example.com/a'",
            "  ^^^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "- key=https://user:hunter2@example.com/a",
            "https://example.com/a",
            "- key=https://example.com/a",
            "  ^^^^^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            r#"- "https:\x2f\u002fuser:hunter2\U00000040example.com/a""#,
            "https://example.com/a",
            "- https://example.com/a",
            "  ^^^^^^^^^^^^^^^^^^^^^",
        ),
        (
            "- ht\u{1}tps://user:hunter2@example.com/a",
            "https://example.com/a",
            "- ht\u{fffd}tps://example.com/a",
            "  ^^^^^^^^^^^^^^^^^^^^^^",
        ),
    ] {
        let end = line
            .find(" # ")
            .map_or(line.chars().count(), |at| line[..at].chars().count());
        let finding = Finding {
            line_text: line.into(),
            span: span(1, 3, 1, end + 1),
            field: String::new(),
            reference: reference.to_owned(),
            ..finding()
        };
        let text = human(&checked(vec![finding]), PLAIN);
        assert!(!text.contains("hunter2"), "{text}");
        assert!(
            text.contains(&format!("\n1 | {shown}\n  | {carets} \n"))
                || text.contains(&format!("\n1 | {shown}\n  | {carets}\n")),
            "{text}"
        );
    }
}

#[test]
fn hostile_text_stays_in_its_line_and_its_place() {
    let text = human(
        &Checked {
            known: Some((1, HOSTILE.to_owned())),
            ..checked(vec![hostile(), hostile()])
        },
        PLAIN,
    );
    assert!(
        !text.chars().any(|one| one != '\n' && is_hidden(one)),
        "{text:?}"
    );
    // A help of several lines is ours, and begins with nothing from outside.
    let lines = text.lines().filter(|line| !line.starts_with("      "));
    assert!(!lines.map(str::trim).any(|line| line.starts_with("::")));
    assert!(text.lines().last().unwrap().starts_with("checked 14 "));
}

#[test]
fn ten_thousand_findings_are_shown() {
    let text = human(&checked(vec![finding(); 10_000]), PLAIN);
    assert_eq!(text.matches("error[remote-reference]").count(), 10_000);
    assert!(text.ends_with(": 10000 errors\n"));
}
