//! The report of `affected`. `schema.json` describes each field of the JSON.

use serde::Serialize;

use super::json::{JsonObject, JsonUnread, report};
use super::{counted, visible};
use crate::affected::{Affected, AffectedRoot, AffectedTarget, Cause, Status};
use crate::commands::affected::Outcome;
use crate::message::failure::short;
use crate::targets::{Changer, Place, Target, Unread};

#[derive(Serialize)]
struct JsonReport<'a> {
    since: &'a str,
    commit: &'a str,
    /// How many roots there are.
    total: usize,
    roots: Vec<JsonRoot<'a>>,
    /// How many targets there are.
    targets_total: usize,
    targets: Vec<JsonTarget<'a>>,
    unbuilt: Vec<JsonUnbuilt<'a>>,
    unread: Vec<JsonUnread<'a>>,
}

#[derive(Serialize)]
struct JsonUnbuilt<'a> {
    #[serde(flatten)]
    object: JsonObject<'a>,
    changed_by: &'a str,
    not_built: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonTarget<'a> {
    #[serde(flatten)]
    object: JsonObject<'a>,
    /// Its directory, if it lies in this repository.
    directory: Option<&'a str>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonRoot<'a> {
    directory: &'a str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remote: Option<&'a str>,
}

fn status(status: Status) -> &'static str {
    match status {
        Status::Added => "added",
        Status::Changed => "changed",
        Status::Removed => "removed",
    }
}

/// Returns how a directory is named.
fn shown(directory: &str) -> &str {
    match directory {
        "" => ".",
        directory => directory,
    }
}

fn what(as_what: Status, cause: &Cause) -> String {
    match (as_what, cause) {
        (Status::Added | Status::Removed, _) => status(as_what).to_owned(),
        (Status::Changed, Cause::Path(path)) => visible(shown(path)),
        (Status::Changed, Cause::Remote(label)) => visible(label),
    }
}

/// Returns a line for each root, and one for each target.
pub(crate) fn text(outcome: &Outcome) -> String {
    let affected = &outcome.affected;
    let root = |root: &AffectedRoot| {
        let what = what(root.status, &root.cause);
        format!("{}: {what}\n", visible(shown(&root.directory)))
    };
    let target = |one: &AffectedTarget| {
        let what = what(one.status, &one.cause);
        format!("{}: {what}\n", visible(&one.target.by()))
    };
    let roots = affected.roots.iter().map(root);
    roots.chain(affected.targets.iter().map(target)).collect()
}

/// Returns how many there are, and what could not be read.
pub(crate) fn summary(outcome: &Outcome) -> String {
    let affected = &outcome.affected;
    let mut text = String::new();
    for (target, changer) in unbuilt(affected) {
        let by = visible(&target.by());
        text.push_str(&format!("{by}: compared as written: {} may change it\n", visible(&changer.name)));
        if let Some(why) = &changer.not_built {
            text.push_str(&format!("  not built: {}\n", visible(why)));
        }
    }
    for Unread { file, line, message, .. } in &affected.unread {
        let place = match line {
            0 => visible(file),
            line => format!("{}:{line}", visible(file)),
        };
        text.push_str(&format!("{place}: not read: {}\n", visible(message)));
    }
    let roots = affected.roots.iter().map(|root| root.status);
    text.push_str(&numbers(roots, affected.total, "kustomization"));
    if affected.targets_total > 0 || !affected.targets.is_empty() {
        let targets = affected.targets.iter().map(|target| target.status);
        text.push_str(" and ");
        text.push_str(&numbers(targets, affected.targets_total, "target"));
    }
    text.push_str(&format!(" since {}\n", short(&outcome.since)));
    text
}

/// Returns the targets of which it is not known what a build makes of their objects, with that build.
fn unbuilt(affected: &Affected) -> impl Iterator<Item = (&Target, &Changer)> {
    let targets = affected.unbuilt.iter();
    targets.filter_map(|target| Some((target, target.changed_by.as_ref()?)))
}

/// Returns how many of all are affected, and how many are gone.
fn numbers(affected: impl Iterator<Item = Status>, total: usize, noun: &str) -> String {
    let (removed, there): (Vec<Status>, Vec<Status>) = affected.partition(|one| *one == Status::Removed);
    let mut text = format!("{} of {}", there.len(), counted(total, noun));
    if !removed.is_empty() {
        text.push_str(&format!(" ({} removed)", removed.len()));
    }
    text
}

/// Returns the directories of the roots that there are.
pub(crate) fn paths(outcome: &Outcome) -> String {
    let roots = outcome.affected.roots.iter();
    let there = roots.filter(|root| root.status != Status::Removed);
    there.map(|root| format!("{}\n", shown(&root.directory))).collect()
}

/// Returns all of it as one JSON object.
pub(crate) fn json(outcome: &Outcome) -> String {
    let roots = outcome.affected.roots.iter().map(|root| {
        let (path, remote) = parts(&root.cause);
        JsonRoot { directory: shown(&root.directory), status: status(root.status), path, remote }
    });
    let targets = outcome.affected.targets.iter().map(|one| {
        let (path, remote) = parts(&one.cause);
        JsonTarget {
            object: (&one.target).into(),
            directory: match &one.target.place {
                Place::Here(here) => Some(shown(&here.path)),
                Place::External(_) | Place::Templated(_) => None,
            },
            status: status(one.status),
            path,
            remote,
        }
    });
    report(&JsonReport {
        since: &outcome.since,
        commit: &outcome.commit,
        total: outcome.affected.total,
        roots: roots.collect(),
        targets_total: outcome.affected.targets_total,
        targets: targets.collect(),
        unbuilt: unbuilt(&outcome.affected)
            .map(|(target, changer)| JsonUnbuilt {
                object: target.into(),
                changed_by: &changer.name,
                not_built: changer.not_built.as_deref(),
            })
            .collect(),
        unread: outcome.affected.unread.iter().map(JsonUnread::from).collect(),
    })
}

fn parts(cause: &Cause) -> (Option<&str>, Option<&str>) {
    match cause {
        Cause::Path(path) => (Some(shown(path)), None),
        Cause::Remote(label) => (None, Some(label)),
    }
}
