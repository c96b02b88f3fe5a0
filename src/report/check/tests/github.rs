use super::*;
use crate::report::check::{Shown, github, github_summary};
use crate::report::is_hidden;

fn commands(checked: &Checked) -> Vec<String> {
    let text = github(checked, Shown::default());
    // As the runner sees them.
    let commands = text.lines().map(str::trim_start);
    let commands = commands.filter(|line| line.starts_with("::"));
    commands.map(str::to_owned).collect()
}

#[test]
fn a_finding_becomes_an_annotation() {
    assert_eq!(
        commands(&checked(vec![warning(), finding(), allowed()])),
        [
            "::error file=apps/web/kustomization.yaml,line=3,col=5,title=remote-reference::\
             https://example.com/a.yaml is neither localized nor locked%0A\
             keep the URL, and lock it:%0Agit kustomize-localize lock%0A\
             git add -- kustomize-localize.lock%0Aallow it",
            "::warning file=kustomize-localize.lock,title=stale-lock::\
             nothing references https://example.com/b.yaml",
        ]
    );
    assert!(github(&checked(vec![finding()]), Shown::default()).contains("resources[0]"));
}

#[test]
fn hostile_text_ends_no_command_and_begins_none() {
    let mut checked = checked(vec![hostile()]);
    checked.failures = vec![Failure {
        message: HOSTILE.to_owned(),
        hints: vec![HOSTILE.to_owned()],
        location: Some(Location {
            file: HOSTILE.to_owned(),
            line: 1,
            column: 1,
            field: HOSTILE.to_owned(),
        }),
    }];
    let text = github(&checked, Shown::default());
    assert_eq!(commands(&checked).len(), 2);
    assert!(!text.contains("##["), "{text}");
    assert!(text.lines().all(|line| !line.chars().any(is_hidden)));
    for command in commands(&checked) {
        let (head, message) = command[2..].split_once("::").unwrap();
        assert!(head.starts_with("error file="), "{head}");
        assert!(!message.contains(['\n', '\r']) && message.contains("%250A"));
    }
}

#[test]
fn ten_of_a_kind_and_how_many_more() {
    let mut findings = vec![finding(); 12];
    findings.extend(vec![warning(); 11]);
    let commands = commands(&checked(findings));
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
fn the_summary_is_a_table() {
    let mut checked = checked(vec![warning(), allowed(), finding()]);
    checked.failures = vec![failure()];
    let summary = github_summary(&checked);
    let rows: Vec<&str> = summary
        .lines()
        .filter(|line| line.starts_with('|'))
        .collect();
    assert_eq!(rows.len(), 6);
    assert!(rows[2].starts_with("| failure |"));
    assert!(
        rows[3]
            .starts_with("| error | remote-reference | apps/web/kustomization.yaml&#58;3&#58;5 |")
    );
    assert!(rows[4].starts_with("| warning | stale-lock |"));
    assert!(rows[5].starts_with("| allowed&#58; mirrored inside |"));
}

#[test]
fn hostile_text_stays_in_its_cell() {
    let summary = github_summary(&checked(vec![hostile()]));
    let row = summary.lines().last().unwrap();
    assert_eq!(row.replace("\\|", "").matches('|').count(), 5, "{row}");
    assert!(!row.contains('<') && !row.contains("://"), "{row}");
    assert_eq!(row.matches('`').count(), row.matches("\\`").count());
}

#[test]
fn a_summary_fits() {
    let findings = vec![finding(); 20_000];
    let summary = github_summary(&checked(findings));
    assert!(summary.len() < 1 << 20);
    let last = summary.lines().last().unwrap();
    assert!(last.ends_with(" more are in the log."), "{last}");
}
