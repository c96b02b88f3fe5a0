use super::*;
use crate::redact::is_hidden;
use crate::report::check::{Shown, github, github_summary};

/// Returns the commands that the runner obeys (`ActionCommand.cs`, `ActionCommandManager.cs`).
fn commands(text: &str) -> Vec<String> {
    let mut commands = Vec::new();
    let mut stopped = None;
    for line in text.lines() {
        let command = line.trim_start();
        match &stopped {
            Some(word) if command == format!("::{word}::") => stopped = None,
            Some(_) => {}
            None => match command.strip_prefix("::stop-commands::") {
                Some(word) => stopped = Some(word.to_owned()),
                None if command.starts_with("::") || line.contains("##[") => {
                    commands.push(line.to_owned());
                }
                None => {}
            },
        }
    }
    assert_eq!(stopped, None);
    commands
}

fn log(checked: &Checked) -> String {
    github(checked, Shown::default())
}

#[test]
fn a_finding_becomes_an_annotation() {
    assert_eq!(
        commands(&log(&checked(vec![warning(), finding(), allowed()]))),
        [
            "::error file=apps/web/kustomization.yaml,line=3,col=5,endColumn=31,title=remote-reference::\
             https://example.com/a.yaml is neither localized nor locked%0A\
             keep the URL, and lock it:%0Agit kustomize-localize lock%0A\
             git add -- kustomize-localize.lock%0Aallow it",
            "::warning file=kustomize-localize.lock,title=stale-lock::\
             nothing references https://example.com/b.yaml",
        ]
    );
    assert!(log(&checked(vec![finding()])).contains("resources[0]"));
}

#[test]
fn hostile_text_ends_no_command_and_begins_none() {
    let mut checked = checked(vec![hostile()]);
    checked.failures = vec![Failure {
        message: HOSTILE.to_owned(),
        hints: vec![HOSTILE.to_owned()],
        location: Some(Box::new(Location {
            url: HOSTILE.to_owned(),
            file: HOSTILE.to_owned(),
            line: 1,
            column: 1,
            field: HOSTILE.to_owned(),
        })),
        chain: Vec::new(),
        exception: None,
    }];
    let text = log(&checked);
    let commands = commands(&text);
    assert_eq!(commands.len(), 2);
    assert!(text.lines().all(|line| !line.chars().any(is_hidden)));
    for command in commands {
        let (head, message) = command[2..].split_once("::").unwrap();
        assert!(head.starts_with("error file="), "{head}");
        assert!(!message.contains(['\n', '\r']) && message.contains("%250A"));
    }
}

#[test]
fn ten_of_a_kind_and_how_many_more() {
    let mut findings = vec![finding(); 12];
    findings.extend(vec![warning(); 11]);
    let commands = commands(&log(&checked(findings)));
    assert_eq!(commands.len(), 21);
    assert!(
        commands[..10]
            .iter()
            .all(|line| line.starts_with("::error "))
    );
    assert!(
        commands[10..20]
            .iter()
            .all(|line| line.starts_with("::warning "))
    );
    assert_eq!(
        commands[20],
        "::notice title=git-kustomize-localize::2 errors and 1 warning more: all of them are in the log and in the summary"
    );
}

#[test]
fn reserved_characters_of_properties_are_escaped() {
    let odd = Finding {
        path: "a,b:c%2C.yaml".to_owned(),
        message: "100%".to_owned(),
        help: Vec::new(),
        span: span(1, 1, 4, 2),
        ..finding()
    };
    assert_eq!(
        commands(&log(&checked(vec![odd]))),
        ["::error file=a%2Cb%3Ac%252C.yaml,line=1,col=1,title=remote-reference::100%25"]
    );
}

#[test]
fn failures_are_in_the_text_too() {
    let mut checked = checked(Vec::new());
    checked.failures = vec![failure()];
    let text = log(&checked);
    assert!(
        text.contains(
            "\nerror: apps/db/kustomization.yaml:2:1: this is not YAML\n  hint: mend it\n"
        )
    );
    assert_eq!(
        commands(&text),
        [
            "::error file=apps/db/kustomization.yaml,line=2,title=could not be looked at::this is not YAML%0Ahint: mend it"
        ]
    );
    let quiet = Shown {
        quiet: true,
        ..Shown::default()
    };
    checked.failures.clear();
    assert_eq!(github(&checked, quiet), "");
}

#[test]
fn the_summary_is_a_table() {
    let mut checked = checked(vec![warning(), allowed(), finding()]);
    checked.failures = vec![failure()];
    let summary = github_summary(&checked, false);
    let rows: Vec<&str> = summary
        .lines()
        .filter(|line| line.starts_with("<tr>"))
        .collect();
    assert_eq!(rows.len(), 5);
    assert!(rows[1].starts_with("<tr><td>failure</td>"));
    assert_eq!(
        rows[2],
        "<tr><td>error</td><td>remote-reference</td><td><code>apps/web/kustomization.yaml:3:5</code></td>\
         <td><code>https://example.com/a.yaml is neither localized nor locked</code>\
         <pre>keep the URL, and lock it:&#10;git kustomize-localize lock&#10;git add -- kustomize-localize.lock</pre>\
         <pre>allow it</pre></td></tr>"
    );
    assert!(rows[3].starts_with("<tr><td>warning</td><td>stale-lock</td>"));
    assert!(rows[4].starts_with("<tr><td>allowed</td>"));
    assert!(rows[4].contains("allowed by .kustomize-localize:12: mirrored inside"));
}

#[test]
fn hostile_text_stays_in_its_cell() {
    let mut checked = checked(vec![hostile()]);
    checked.known = Some((1, format!("{HOSTILE}\n\n# [x](y)")));
    let summary = github_summary(&checked, false);
    // HTML ends at an empty line, and where a text from a file holds `<`.
    let (_, body) = summary.split_once("\n\n").unwrap();
    let body = body.strip_suffix("\n").unwrap();
    assert!(!body.contains("\n\n"));
    assert!(body.lines().all(|line| line.starts_with('<')), "{body}");
    let mut text = body.replace("<br>", "");
    for tag in ["table", "tr", "td", "th", "p", "code", "pre"] {
        let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
        assert_eq!(body.matches(&open).count(), body.matches(&close).count());
        text = text.replace(&open, "").replace(&close, "");
    }
    assert!(!text.contains(['<', '>', '"']), "{text}");
    assert!(text.contains("&lt;b&gt;&amp;"), "{text}");
}

#[test]
fn a_summary_fits() {
    let summary = github_summary(&checked(vec![finding(); 20_000]), true);
    assert!(summary.len() < 1 << 20 && summary.len() > 900_000);
    assert!(summary.ends_with(" more are in the log.</p>\n\n"));
    let shown = summary.matches("<tr><td>").count();
    assert!(summary.contains(&format!("<p>{} more", 20_000 - shown)));
    assert!(!github_summary(&checked(Vec::new()), false).contains("<table>"));
}
