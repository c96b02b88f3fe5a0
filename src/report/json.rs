//! The report for machines. Fields are only ever added; `version` changes if one goes away.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::build_check::JsonBuildCheck;
use super::{Outcome, Report, by_id};
use crate::failure::{Failure, Failures, Location};
use crate::localize::Rewritten;
use crate::record::{Left, LeftWhat, Remote};
use crate::redact::is_hidden;
use crate::walk::Warning;

#[derive(Serialize)]
struct JsonReport<'a> {
    version: u32,
    tool: Tool,
    outcome: &'static str,
    target: &'a str,
    new_directory: &'a str,
    branch: Option<&'a str>,
    commit: Option<&'a str>,
    tree: Option<&'a str>,
    source: Option<&'a str>,
    remotes: Vec<JsonRemote>,
    left: Vec<JsonLeft<'a>>,
    files: Vec<JsonFile<'a>>,
    rewritten: Vec<JsonRewritten<'a>>,
    warning_counts: BTreeMap<&'static str, usize>,
    warnings: Vec<JsonMessage<'a>>,
    verified: JsonBuildCheck<'a>,
}

#[derive(Serialize)]
pub(super) struct Tool {
    name: &'static str,
    version: &'static str,
}

pub(super) const TOOL: Tool = Tool {
    name: env!("CARGO_PKG_NAME"),
    version: env!("CARGO_PKG_VERSION"),
};

#[derive(Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(super) enum JsonRemote {
    Git {
        url: String,
        r#ref: Option<String>,
        submodules: bool,
        commit: String,
        paths: Vec<String>,
    },
    Http {
        url: String,
        sha256: String,
        size: u64,
    },
    Helm {
        url: String,
        chart: String,
        version: Option<String>,
        resolved: Option<String>,
        sha256: String,
        size: u64,
    },
}

/// What stays remote.
#[derive(Serialize)]
pub(super) struct JsonLeft<'a> {
    url: Option<&'a str>,
    chart: Option<&'a str>,
    version: Option<&'a str>,
    image: Option<&'a str>,
    through: &'a BTreeSet<Vec<String>>,
    reason: &'a str,
    accepted: bool,
}

impl<'a> From<&'a Left> for JsonLeft<'a> {
    fn from(left: &'a Left) -> Self {
        let (url, chart, version, image) = match &left.what {
            LeftWhat::Reference { url } => (Some(url), None, None, None),
            LeftWhat::Chart {
                url,
                chart,
                version,
            } => (Some(url), Some(chart), version.as_ref(), None),
            LeftWhat::Image { image } => (None, None, None, Some(image)),
        };
        JsonLeft {
            url: url.map(String::as_str),
            chart: chart.map(String::as_str),
            version: version.map(String::as_str),
            image: image.map(String::as_str),
            through: &left.through,
            reason: &left.reason,
            accepted: left.accepted,
        }
    }
}

#[derive(Serialize)]
pub(super) struct JsonFile<'a> {
    pub(super) path: &'a str,
    pub(super) size: u64,
}

#[derive(Serialize)]
pub(super) struct JsonRewritten<'a> {
    /// The file in NEW_DIR.
    path: &'a str,
    #[serde(flatten)]
    place: JsonPlace<'a>,
    from: &'a str,
    to: &'a str,
}

#[derive(Serialize)]
struct JsonPlace<'a> {
    /// The upstream that the file is of, unless it is the user's.
    #[serde(skip_serializing_if = "str::is_empty")]
    url: &'a str,
    /// The path of the original file; empty where the upstream is the file.
    file: &'a str,
    line: usize,
    column: usize,
    field: &'a str,
}

impl<'a> From<&'a Location> for JsonPlace<'a> {
    fn from(location: &'a Location) -> Self {
        JsonPlace {
            url: &location.url,
            file: &location.file,
            line: location.line,
            column: location.column,
            field: &location.field,
        }
    }
}

#[derive(Serialize)]
pub(super) struct JsonMessage<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(flatten)]
    place: Option<JsonPlace<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    chain: Vec<JsonPlace<'a>>,
    message: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    hints: &'a [String],
}

impl<'a> From<&'a Rewritten> for JsonRewritten<'a> {
    fn from(one: &'a Rewritten) -> Self {
        JsonRewritten {
            path: &one.path,
            place: (&one.location).into(),
            from: &one.from,
            to: &one.to,
        }
    }
}

impl<'a> From<&'a Warning> for JsonMessage<'a> {
    fn from(warning: &'a Warning) -> Self {
        JsonMessage {
            id: Some(warning.id.id()),
            place: Some((&warning.location).into()),
            chain: Vec::new(),
            message: &warning.message,
            hints: &[],
        }
    }
}

#[derive(Serialize)]
struct JsonFailures<'a> {
    version: u32,
    tool: Tool,
    outcome: &'static str,
    errors: Vec<JsonMessage<'a>>,
}

impl Report {
    pub(super) fn to_json(&self) -> String {
        let (outcome, branch, commit, tree, source) = match &self.outcome {
            Outcome::Committed {
                branch,
                commit,
                tree,
                source,
            } => (
                "committed",
                Some(branch),
                Some(commit),
                Some(tree),
                Some(source),
            ),
            Outcome::Unchanged {
                branch,
                commit,
                tree,
                source,
            } => (
                "unchanged",
                Some(branch),
                Some(commit),
                Some(tree),
                Some(source),
            ),
            Outcome::Differs => ("differs", None, None, None, None),
            Outcome::Warned => ("warned", None, None, None, None),
            Outcome::Written => ("written", None, None, None, None),
            Outcome::DryRun { branch } => ("dry-run", branch.as_ref(), None, None, None),
        };
        render(&JsonReport {
            version: 1,
            tool: TOOL,
            outcome,
            target: &self.target,
            new_directory: &self.new_dir,
            branch: branch.map(String::as_str),
            commit: commit.map(String::as_str),
            tree: tree.map(String::as_str),
            source: source.map(String::as_str),
            remotes: self.remotes.iter().map(remote).collect(),
            left: self.left.iter().map(JsonLeft::from).collect(),
            files: self
                .files
                .iter()
                .map(|(path, size)| JsonFile { path, size: *size })
                .collect(),
            rewritten: self.rewritten.iter().map(JsonRewritten::from).collect(),
            warning_counts: by_id(&self.warnings),
            warnings: self.warnings.iter().map(JsonMessage::from).collect(),
            verified: (&self.proof).into(),
        })
    }
}

/// Returns what stopped the work as one JSON object, with a final newline.
#[must_use]
pub fn failures_json(failures: &Failures) -> String {
    render(&JsonFailures {
        version: 1,
        tool: TOOL,
        outcome: "failed",
        errors: failures.0.iter().map(JsonMessage::from).collect(),
    })
}

impl<'a> From<&'a Failure> for JsonMessage<'a> {
    fn from(failure: &'a Failure) -> Self {
        JsonMessage {
            id: None,
            place: failure.location.as_deref().map(JsonPlace::from),
            chain: failure.chain.iter().map(JsonPlace::from).collect(),
            message: &failure.message,
            hints: &failure.hints,
        }
    }
}

pub(super) fn remote(remote: &Remote) -> JsonRemote {
    match remote {
        Remote::Git(git) => JsonRemote::Git {
            url: git.url.clone(),
            r#ref: git.reference.clone(),
            submodules: git.submodules,
            commit: git.commit.clone(),
            paths: git.paths.iter().cloned().collect(),
        },
        Remote::File(file) => JsonRemote::Http {
            url: file.url.clone(),
            sha256: file.sha256.clone(),
            size: file.size,
        },
        Remote::Chart(chart) => JsonRemote::Helm {
            url: chart.url.clone(),
            chart: chart.chart.clone(),
            version: chart.version.clone(),
            resolved: chart.resolved.clone(),
            sha256: chart.sha256.clone(),
            size: chart.size,
        },
    }
}

/// Returns the value as indented JSON with a final newline. What could hide or fake a line of a
/// terminal or a command of GitHub Actions is written as `\uXXXX`, which means the same.
pub(super) fn render(value: &impl Serialize) -> String {
    // Only strings, numbers and lists: serializing these cannot fail.
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    let mut out = String::with_capacity(text.len() + 1);
    // All of these stand in strings: elsewhere JSON has none.
    for character in text.replace("##[", "#\\u0023[").chars() {
        if character != '\n' && is_hidden(character) {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character)
        }
    }
    out.push('\n');
    out
}
