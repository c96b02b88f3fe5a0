use super::*;
use crate::report::check::{Shown, human};
use crate::report::is_hidden;

const PLAIN: Shown = Shown {
    verbose: false,
    quiet: false,
    color: false,
};

fn excerpt(line_text: &str, span: Option<Span>) -> Vec<String> {
    let finding = Finding {
        line_text: line_text.to_owned(),
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

checked 14 kustomizations with 52 references in the index: 1 error, 1 warning, 1 allowed
"
    );
}

#[test]
fn the_caret_stands_under_what_is_meant() {
    for (line, span, expected) in [
        ("- a.yaml", span(1, 3, 1, 9), ["- a.yaml", "  ^^^^^^"]),
        // A tab takes four columns, a wide character two, a mark none.
        ("\t- a", span(1, 4, 1, 5), ["    - a", "      ^"]),
        ("- 世界/a", span(1, 3, 1, 7), ["- 世界/a", "  ^^^^^^"]),
        ("- e\u{301}/a", span(1, 3, 1, 7), ["- e\u{301}/a", "  ^^^"]),
        // To the end of the line where it goes on; never nowhere, however wrong the place.
        ("- \"a", span(1, 3, 2, 4), ["- \"a", "  ^^"]),
        ("- a", span(1, 2, 1, 2), ["- a", " ^"]),
        ("- a", span(1, 40, 1, 50), ["- a", "   ^"]),
    ] {
        assert_eq!(excerpt(line, span), expected, "{line}");
    }
}

#[test]
fn a_long_line_is_cut_around_what_is_meant() {
    let line = format!("{}https://x{}", "a".repeat(300), "b".repeat(300));
    let shown = excerpt(&line, span(1, 301, 1, 310));
    assert!(shown[0].starts_with("…aaa") && shown[0].ends_with("bbb…"));
    let before = shown[1].len() - 9;
    let meant: String = shown[0].chars().skip(before).take(9).collect();
    assert_eq!(meant, "https://x");
}

#[test]
fn a_secret_is_not_shown_and_the_caret_still_fits() {
    let url = "https://user:hunter2@example.com/a.yaml";
    let line = format!("- {url} # x");
    let shown = excerpt(&line, span(1, 3, 1, 3 + url.len()));
    assert!(!shown.concat().contains("hunter2"), "{shown:?}");
    assert_eq!(
        shown[1].trim_start().len(),
        shown[0].len() - "- ".len() - " # x".len()
    );
}

#[test]
fn nothing_in_a_file_can_draw_on_the_terminal() {
    let shown = Shown {
        verbose: true,
        ..PLAIN
    };
    let text = human(&checked(vec![hostile(), allowed()]), shown);
    assert!(
        text.lines().all(|line| !line.chars().any(is_hidden)),
        "{text}"
    );
    assert!(!text.lines().any(|line| line.starts_with("::")), "{text}");
}

#[test]
fn the_summary_says_what_is_not_shown() {
    let mut checked = checked(vec![finding(), allowed()]);
    checked.differing = 1;
    checked.known = Some((3, "HEAD".to_owned()));
    checked.failures = vec![failure()];
    let text = human(&checked, PLAIN);
    assert!(
        text.ends_with(
            "note: 1 kustomization is not staged as it is in the working tree: what is mended there counts after `git add`\n\
             checked 14 kustomizations with 52 references in the index (1 differs in the working tree): \
             1 error, 1 allowed, 3 left out that HEAD has too, 1 could not be looked at\n"
        ),
        "{text}"
    );
    assert!(!text.contains("mirrored inside"));
    let verbose = Shown {
        verbose: true,
        ..PLAIN
    };
    assert!(
        human(&checked, verbose)
            .contains("note: allowed by .kustomize-localize.yaml:12: mirrored inside")
    );
    let quiet = Shown {
        quiet: true,
        ..PLAIN
    };
    assert!(!human(&checked, quiet).contains("checked"));
}

#[test]
fn nothing_found_is_said_too() {
    assert_eq!(
        human(&checked(Vec::new()), PLAIN),
        "checked 14 kustomizations with 52 references in the index: nothing found\n"
    );
}
