//! What need not count: [comments](crate::config::Comments) in the files themselves, and the entries of `allow`.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::stale_allow::{stale, stale_comment, stale_reasons};
use crate::config::{Comments, Config};
use crate::message::failure::shown;
use crate::message::finding::{Allowed, Finding, Rule};
use crate::message::redact;

/// How exceptions are applied.
pub(super) struct Apply<'a> {
    /// Everything was looked at, so that what allowed nothing never will.
    pub(super) complete: bool,
    /// The configuration of the change that is judged by another; what only that or a comment allows is new.
    pub(super) own: Option<&'a Config>,
    /// The entries of the change's configuration that are needed for what is no finding.
    pub(super) needed: BTreeSet<usize>,
}

/// Marks what comments of files, by path, and the configuration allow, adds what is stale, and
/// gives every finding the severity that it has here; those of rules that are off go.
pub(super) fn apply<'a>(
    findings: &mut Vec<Finding>,
    files: impl Iterator<Item = (&'a str, Rc<Comments>)>,
    config: &Config,
    how: Apply<'_>,
) {
    allow(findings, &files.collect(), config, &how);
    findings.retain_mut(|finding| match config.severity(finding) {
        Some(severity) => {
            finding.severity = severity;
            true
        }
        None => false,
    });
}

fn allow(findings: &mut Vec<Finding>, files: &HashMap<&str, Rc<Comments>>, config: &Config, how: &Apply<'_>) {
    let complete = how.complete;
    let said = how.own.unwrap_or(config);
    let mut used: HashMap<&str, BTreeSet<(usize, Rule)>> = HashMap::new();
    let mut used_entries = how.needed.clone();
    for finding in findings.iter_mut().filter(|finding| !finding.unread) {
        let mut comment = None;
        if let Some((path, comments)) = files.get_key_value(finding.path.as_str()) {
            for (index, said) in comments.allowing(finding.rule, finding.span) {
                used.entry(path).or_default().insert((index, finding.rule));
                comment.get_or_insert_with(|| Allowed {
                    path: finding.path.clone(),
                    span: comments.comments[index].span,
                    line_text: comments.comments[index].line_text.clone(),
                    reason: said.reason.clone(),
                    is_new: how.own.is_some(),
                });
            }
        }
        let entry = |of: &Config| of.allowed_by(finding.rule, &finding.subject, &finding.path);
        let own = entry(said);
        used_entries.extend(own);
        let base = how.own.and_then(|_| entry(config));
        let base = base.map(|index| by_entry(config, index, false));
        let own = own.map(|index| by_entry(said, index, how.own.is_some()));
        finding.allowed = base.or(comment).or(own);
    }
    for (path, comments) in files {
        let used = used.remove(path).unwrap_or_default();
        for (index, comment) in comments.comments.iter().enumerate() {
            findings.extend(stale_comment(path, comment, complete, |rule| used.contains(&(index, rule))));
        }
    }
    findings.extend(stale_reasons(said));
    if !complete {
        return;
    }
    for (index, entry) in said.allow.iter().enumerate() {
        // One that comes in a change of its own covers what comes later.
        let is_new = || !config.allow.iter().any(|one| one.says(entry));
        if !used_entries.contains(&index) && !is_new() {
            findings.push(stale(
                &said.file,
                entry.span,
                redact::text(&entry.line_text),
                format!("nothing is covered by the entry for `{}`", shown(&redact::url(&entry.text))),
                "remove the entry, or correct what it names, its `refs` or `rules`".to_owned(),
            ));
        }
    }
}

fn by_entry(config: &Config, index: usize, is_new: bool) -> Allowed {
    let entry = &config.allow[index];
    Allowed {
        path: config.file.clone(),
        span: entry.span,
        line_text: redact::text(&entry.line_text),
        reason: redact::text(&entry.reason),
        is_new,
    }
}

#[cfg(test)]
mod tests;
