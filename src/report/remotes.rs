//! The report about what was brought in or locked.

use std::fmt::Write;

use serde::Serialize;

use super::visible;
use crate::commands::News;
use crate::failure::short;
use crate::record::{Change, Remote};

/// Writes what is different about the remotes, one line each, with what is new in each.
pub(super) fn write_changes(out: &mut String, changes: &[Change], news: &News) -> std::fmt::Result {
    for change in changes {
        match change {
            Change::Added { label, digest } => {
                writeln!(out, "  added {} {}", visible(label), short(digest.hex()))?;
            }
            Change::Removed { label, digest } => {
                writeln!(out, "  dropped {} {}", visible(label), short(digest.hex()))?;
            }
            Change::Moved { label, old, new } => {
                let (old, new) = (short(old.hex()), short(new.hex()));
                writeln!(out, "  moved {} {old} -> {new}", visible(label))?;
            }
            Change::Extended { label, paths } => {
                let paths = visible(&paths.join(", "));
                writeln!(out, "  added {paths} of {}", visible(label))?;
            }
        }
        if let Change::Added { label, .. } | Change::Moved { label, .. } = change {
            for line in news.get(label).into_iter().flatten() {
                writeln!(out, "    {}", visible(line))?;
            }
        }
    }
    Ok(())
}

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

/// Returns what machines read of a remote.
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

/// What is different about one remote.
#[derive(Serialize)]
pub(super) struct JsonChange<'a> {
    change: &'static str,
    url: &'a str,
    old: Option<String>,
    new: Option<String>,
    /// The directories that were added to an entry.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    paths: &'a [String],
}

impl<'a> From<&'a Change> for JsonChange<'a> {
    fn from(change: &'a Change) -> Self {
        let (change, url, old, new, paths) = match change {
            Change::Added { label, digest } => ("added", label, None, Some(digest), &[][..]),
            Change::Removed { label, digest } => ("dropped", label, Some(digest), None, &[][..]),
            Change::Moved { label, old, new } => ("moved", label, Some(old), Some(new), &[][..]),
            Change::Extended { label, paths } => ("extended", label, None, None, &paths[..]),
        };
        JsonChange {
            change,
            url,
            old: old.map(ToString::to_string),
            new: new.map(ToString::to_string),
            paths,
        }
    }
}
