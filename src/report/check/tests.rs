//! What every format must show, with harmless and with hostile input.

mod github;
mod gitlab;
mod human;
mod json;
mod sarif;

use crate::check::{Checked, Checking};
use crate::failure::{Failure, Location};
use crate::finding::{Allowed, Finding, Rule, Severity, Span, Subject};

/// A text that tries everything: ends of lines, controls of a terminal and of GitHub, Markdown, HTML.
const HOSTILE: &str =
    "a\n::set-output name=x::y\r\u{1b}[31m%0A##[stop-commands]x\u{202e}|`<b>&\u{2028}\u{9b}2J";

fn span(line: usize, column: usize, end_line: usize, end_column: usize) -> Option<Span> {
    Some(Span {
        line,
        column,
        end_line,
        end_column,
    })
}

/// A finding of `remote-reference` in line 3 of `apps/web/kustomization.yaml`.
pub(super) fn finding() -> Finding {
    Finding {
        rule: Rule::RemoteReference,
        severity: Severity::Error,
        path: "apps/web/kustomization.yaml".to_owned(),
        span: span(3, 5, 3, 31),
        line_text: "  - https://example.com/a.yaml # upstream".into(),
        field: "resources[0]".to_owned(),
        reference: "https://example.com/a.yaml".to_owned(),
        subject: Subject::Http {
            url: "https://example.com/a.yaml".to_owned(),
        },
        message: "https://example.com/a.yaml is neither localized nor locked".to_owned(),
        help: vec![
            "keep the URL, and lock it:\ngit kustomize-localize lock\ngit add -- kustomize-localize.lock"
                .to_owned(),
            "allow it".to_owned(),
        ],
        unread: false,
        allowed: None,
        deployed: Vec::new(),
    }
}

/// A warning for a whole file.
fn warning() -> Finding {
    Finding {
        rule: Rule::StaleLock,
        severity: Severity::Warning,
        path: "kustomize-localize.lock".to_owned(),
        span: None,
        line_text: "".into(),
        field: String::new(),
        reference: String::new(),
        subject: Subject::Local,
        message: "nothing references https://example.com/b.yaml".to_owned(),
        help: Vec::new(),
        unread: false,
        allowed: None,
        deployed: Vec::new(),
    }
}

fn allowed() -> Finding {
    Finding {
        allowed: Some(Allowed {
            by: ".kustomize-localize:12".to_owned(),
            is_comment: true,
            reason: "mirrored inside".to_owned(),
        }),
        ..finding()
    }
}

/// Every text of it is hostile.
fn hostile() -> Finding {
    Finding {
        path: HOSTILE.to_owned(),
        line_text: HOSTILE.into(),
        span: span(1, 3, 1, 9),
        field: HOSTILE.to_owned(),
        reference: HOSTILE.to_owned(),
        subject: Subject::Git {
            url: HOSTILE.to_owned(),
            path: HOSTILE.to_owned(),
            reference: Some(HOSTILE.to_owned()),
            pin: "branch",
        },
        message: HOSTILE.to_owned(),
        help: vec![HOSTILE.to_owned()],
        ..finding()
    }
}

fn failure() -> Failure {
    Failure::new("this is not YAML")
        .hint("mend it")
        .at(Location {
            file: "apps/db/kustomization.yaml".to_owned(),
            line: 2,
            column: 1,
            ..Location::default()
        })
}

pub(super) fn checked(findings: Vec<Finding>) -> Checked {
    Checked {
        source: Checking::Index,
        kustomizations: 14,
        references: 52,
        differing: 0,
        untold: Vec::new(),
        findings,
        known: None,
        new_config: Vec::new(),
        new_locked: Vec::new(),
        failures: Vec::new(),
    }
}

/// Checks a document against a JSON Schema.
#[track_caller]
pub(in crate::report) fn assert_valid(schema: &str, document: &str) {
    assert_eq!(problem(schema, document), None);
}

/// Returns what a JSON Schema has against a document.
fn problem(schema: &str, document: &str) -> Option<String> {
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let document: serde_json::Value = serde_json::from_str(document).unwrap();
    let mut schemas = boon::Schemas::new();
    let mut compiler = boon::Compiler::new();
    compiler.enable_format_assertions();
    compiler.add_resource("schema.json", schema).unwrap();
    let index = compiler.compile("schema.json", &mut schemas).unwrap();
    let error = schemas.validate(&document, index).err()?;
    Some(format!("{error:#}"))
}

/// One finding for each rule and each sort of subject, and everything that is seldom there.
fn everything() -> Checked {
    let git = |reference: Option<&str>| Subject::Git {
        url: "https://example.com/o/r".to_owned(),
        path: "base".to_owned(),
        reference: reference.map(str::to_owned),
        pin: crate::reference::Pin::of(reference).name(),
    };
    let helm = Subject::Helm {
        url: "https://charts.example.com".to_owned(),
        chart: "redis".to_owned(),
        version: String::new(),
    };
    let subjects = [git(Some("v1")), git(None), helm, Subject::Local];
    let mut findings: Vec<Finding> = Rule::ALL
        .iter()
        .zip(subjects.into_iter().cycle())
        .map(|(rule, subject)| Finding {
            rule: *rule,
            severity: rule.default_severity(),
            subject,
            ..finding()
        })
        .collect();
    findings.extend([warning(), allowed(), hostile()]);
    Checked {
        source: Checking::Commit {
            rev: "main".to_owned(),
            commit: "0123456789abcdef0123456789abcdef01234567".to_owned(),
        },
        known: Some((2, "HEAD~".to_owned())),
        failures: vec![failure(), Failure::new("nothing works")],
        differing: 3,
        ..checked(findings)
    }
}

#[test]
fn no_line_is_a_command_that_is_not_meant() {
    for text in [
        "d\n::warning::pwn",
        "::error::x",
        "  ::error::x",
        "a\n \t##[error]x",
        "\u{202e}::x",
    ] {
        let mut checked = checked(vec![hostile(), hostile(), allowed()]);
        for finding in &mut checked.findings {
            finding.path = text.to_owned();
            finding.message = text.to_owned();
            finding.field = text.to_owned();
            finding.reference = text.to_owned();
            finding.help = vec![text.to_owned(), format!("git add -- {text}")];
            finding.line_text = text.into();
            finding.span = None;
        }
        checked.findings[1].span = span(1, 1, 1, 3);
        checked.failures = vec![Failure::new(text).hint(text)];
        checked.known = Some((1, text.to_owned()));
        let shown = super::Shown {
            verbose: true,
            ..super::Shown::default()
        };
        for report in [
            super::human(&checked, shown),
            super::json(&checked),
            super::sarif(&checked),
        ] {
            for line in crate::redact::inert(&report).lines() {
                let is_command = line.trim_start().starts_with("::") || line.contains("##[");
                assert!(!is_command, "{text:?}: {line:?}");
                assert!(
                    !line.contains(crate::redact::is_hidden),
                    "{text:?}: {line:?}"
                );
            }
        }
        let report = super::github(&checked, shown);
        assert!(!report.contains("##["), "{report}");
        let meant = |line: &&str| line.trim_start().starts_with("::");
        let commands: Vec<&str> = report.lines().filter(meant).collect();
        // The two that stop and resume, a failure, two findings.
        assert_eq!(commands.len(), 5, "{commands:#?}");
        assert!(commands[2..].iter().all(|one| one.starts_with("::error ")));
    }
}
