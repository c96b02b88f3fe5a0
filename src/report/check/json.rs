//! The findings for machines. Fields are only ever added; `version` changes if one goes away. `schema.json` beside this
//! file describes each of them.

use serde::Serialize;

use crate::check::{Checked, Checking};
use crate::message::finding::{Finding, Subject};
use crate::message::redact;
use crate::record::Added;
use crate::report::json::{JsonMessage, report};

#[derive(Serialize)]
struct JsonChecked<'a> {
    source: &'static str,
    rev: Option<&'a str>,
    commit: Option<&'a str>,
    checked: Counts,
    base: Option<Base<'a>>,
    new_config: Vec<String>,
    new_locked: Vec<NewLocked<'a>>,
    findings: Vec<JsonFinding<'a>>,
    failures: Vec<JsonMessage<'a>>,
}

#[derive(Serialize)]
struct Counts {
    kustomizations: usize,
    references: usize,
    differing: usize,
    unbuilt_targets: usize,
}

#[derive(Serialize)]
struct Base<'a> {
    rev: &'a str,
    left_out: usize,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    rule: &'static str,
    severity: &'static str,
    path: &'a str,
    line: Option<usize>,
    column: Option<usize>,
    end_line: Option<usize>,
    end_column: Option<usize>,
    field: &'a str,
    reference: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    git: Option<Git<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    http: Option<Http<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    helm: Option<Helm<'a>>,
    message: &'a str,
    help: &'a [String],
    deployed_by: &'a [String],
    allowed: Option<JsonAllowed<'a>>,
}

#[derive(Serialize)]
struct Git<'a> {
    url: &'a str,
    path: &'a str,
    r#ref: Option<&'a str>,
    pin: &'a str,
}

#[derive(Serialize)]
struct Http<'a> {
    url: &'a str,
}

#[derive(Serialize)]
struct Helm<'a> {
    url: &'a str,
    chart: &'a str,
    version: &'a str,
}

#[derive(Serialize)]
struct NewLocked<'a> {
    lock: &'a str,
    line: usize,
    remote: String,
    digest: String,
}

#[derive(Serialize)]
struct JsonAllowed<'a> {
    by: String,
    reason: &'a str,
}

/// Returns what was found as one JSON object, with a final newline.
pub fn json(checked: &Checked) -> String {
    let (rev, commit) = match &checked.source {
        Checking::Commit { rev, commit } => {
            (Some(rev.as_str()), Some(commit.as_str()).filter(|commit| !commit.is_empty()))
        }
        Checking::Index | Checking::WorkingTree => (None, None),
    };
    report(&JsonChecked {
        source: checked.source.name(),
        rev,
        commit,
        checked: Counts {
            kustomizations: checked.kustomizations,
            references: checked.references,
            differing: checked.differing,
            unbuilt_targets: checked.untold.len(),
        },
        base: checked.known.as_ref().map(|(count, rev)| Base { rev, left_out: *count }),
        new_config: checked.new_config.iter().map(|line| redact::text(line)).collect(),
        new_locked: checked.new_locked.iter().map(new_locked).collect(),
        findings: checked.findings.iter().map(finding).collect(),
        failures: checked.failures.iter().map(JsonMessage::from).collect(),
    })
}

fn new_locked(added: &Added) -> NewLocked<'_> {
    NewLocked { lock: &added.lock, line: added.line, remote: added.remote.clone(), digest: added.digest.to_string() }
}

fn finding(finding: &Finding) -> JsonFinding<'_> {
    let (kind, git, http, helm) = match &finding.subject {
        Subject::Local | Subject::Path { .. } | Subject::Program { .. } => ("local", None, None, None),
        // Its name is the reference.
        Subject::Image { .. } => ("image", None, None, None),
        Subject::Git { url, path, reference, pin } => {
            let git = Git { url, path, r#ref: reference.as_deref(), pin };
            ("git", Some(git), None, None)
        }
        Subject::Http { url } => ("http", None, Some(Http { url }), None),
        Subject::Helm { url, chart, version } => {
            let helm = Helm { url, chart, version };
            ("helm", None, None, Some(helm))
        }
    };
    JsonFinding {
        rule: finding.rule.id(),
        severity: finding.severity.name(),
        path: &finding.path,
        line: finding.span.map(|span| span.line),
        column: finding.span.map(|span| span.column),
        end_line: finding.span.map(|span| span.end_line),
        end_column: finding.span.map(|span| span.end_column),
        field: &finding.field,
        reference: &finding.reference,
        kind,
        git,
        http,
        helm,
        message: &finding.message,
        help: &finding.help,
        deployed_by: &finding.deployed,
        allowed: finding.allowed.as_ref().map(|allowed| JsonAllowed { by: allowed.by(), reason: &allowed.reason }),
    }
}
