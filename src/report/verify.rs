//! The report of `verify`. `schema.json` describes each field of the JSON.

mod upstream;

use serde::Serialize;

use super::json::{JsonMessage, report};
use super::{counted, visible};
use crate::message::failure::short;
use crate::record::Left;
use crate::verify::upstream::Upstream;
use crate::verify::{Difference, Kind, Record, Verified};

/// Returns what differs, and what was looked at.
pub(crate) fn human(verified: &Verified) -> String {
    let mut out = String::new();
    // The state of upstream is reported below, along with what has not changed.
    let is_here = |difference: &&Difference| difference.kind != Kind::Upstream;
    for difference in verified.differences.iter().filter(is_here) {
        let path = visible(&difference.path);
        let place = match (path.is_empty(), difference.place) {
            (true, _) => String::new(),
            (false, Some((line, column))) => format!("{path}:{line}:{column}: "),
            (false, None) => format!("{path}: "),
        };
        out.push_str(&format!("{place}{}\n", visible(&difference.message)));
    }
    if !out.is_empty() {
        out.push('\n');
    }
    for record in &verified.records {
        out.push_str(&format!("{}\n", told(record)));
    }
    for (_, left) in &verified.left {
        let label = visible(&left.what.label());
        out.push_str(&format!("stays remote (allowed): {label}: {}\n", visible(&left.reason)));
    }
    if let Some(all) = &verified.upstream {
        out.push_str(&upstream::human(all));
    }
    let result = match verified.differences.len() {
        0 if verified.failures.is_empty() && verified.records.is_empty() => "as locked".to_owned(),
        0 if verified.failures.is_empty() => [&["as recorded"], verified.also.as_slice()].concat().join(", "),
        0 => "not everything could be looked at".to_owned(),
        count => counted(count, "difference"),
    };
    let rev = visible(&verified.rev);
    let named = match &verified.commit {
        None => rev,
        Some(commit) if commit.starts_with(&rev) && rev.len() >= 12 => short(commit).to_owned(),
        Some(commit) => format!("{rev} ({})", short(commit)),
    };
    out.push_str(&format!("verified {named}: {result}\n"));
    out
}

fn told(record: &Record) -> String {
    let directory = match record.directory.as_str() {
        "" => ".".to_owned(),
        directory => visible(directory),
    };
    let from = match &record.target {
        Some(target) => format!(" from {}", visible(target)),
        None => String::new(),
    };
    let message = match &record.recorded_by {
        Some(commit) => format!("recorded in the lock and in the message of {}", short(commit)),
        None if record.has_message => "recorded in the lock alone: no commit message has it any more".to_owned(),
        None => "recorded in the lock alone".to_owned(),
    };
    format!("{directory}{from}: {}, {}; {message}", counted(record.files, "file"), counted(record.remotes, "remote"))
}

#[derive(Serialize)]
struct JsonVerified<'a> {
    rev: &'a str,
    commit: Option<&'a str>,
    records: &'a [Record],
    differences: Vec<JsonDifference<'a>>,
    left: Vec<JsonAccepted<'a>>,
    upstream: Option<&'a [Upstream]>,
    failures: Vec<JsonMessage<'a>>,
}

/// What stays remote, and the directory of the lock that lists it.
#[derive(Serialize)]
struct JsonAccepted<'a> {
    directory: &'a str,
    #[serde(flatten)]
    left: &'a Left,
}

fn accepted((directory, left): &(String, Left)) -> JsonAccepted<'_> {
    JsonAccepted { directory: shown(directory), left }
}

/// Returns a directory from the top of the repository, as JSON names it.
fn shown(directory: &str) -> &str {
    match directory {
        "" => ".",
        directory => directory,
    }
}

#[derive(Serialize)]
struct JsonDifference<'a> {
    kind: Kind,
    path: &'a str,
    line: Option<usize>,
    column: Option<usize>,
    message: &'a str,
}

/// Returns the same as one JSON object.
pub(crate) fn json(verified: &Verified) -> String {
    report(&JsonVerified {
        rev: &verified.rev,
        commit: verified.commit.as_deref(),
        records: &verified.records,
        differences: verified.differences.iter().map(difference).collect(),
        left: verified.left.iter().map(accepted).collect(),
        upstream: verified.upstream.as_deref(),
        failures: verified.failures.iter().map(JsonMessage::from).collect(),
    })
}

fn difference(difference: &Difference) -> JsonDifference<'_> {
    JsonDifference {
        kind: difference.kind,
        path: &difference.path,
        line: difference.place.map(|(line, _)| line),
        column: difference.place.map(|(_, column)| column),
        message: &difference.message,
    }
}
