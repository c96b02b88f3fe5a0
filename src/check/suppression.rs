//! What need not count: [comments](crate::config::Comments) in the files themselves, and the entries of `allow`.

use std::collections::{BTreeSet, HashMap};
use std::rc::Rc;

use super::stale_allow::{stale, stale_comment, stale_reasons};
use crate::config::{Comments, Config};
use crate::failure::shown;
use crate::finding::{Allowed, Finding, Rule, Subject};
use crate::redact;

/// How comments are applied.
#[derive(Debug, Clone)]
pub(super) struct Apply {
    /// Everything was looked at, so that what allowed nothing never will.
    pub(super) complete: bool,
    /// The entries of the configuration that are needed for what is no finding.
    pub(super) needed: BTreeSet<usize>,
}

/// Marks what comments of files, by path, and the configuration allow, adds what is stale, and
/// gives every finding the severity that it has here; those of rules that are off go.
pub(super) fn apply<'a>(
    findings: &mut Vec<Finding>,
    files: impl Iterator<Item = (&'a str, Rc<Comments>)>,
    config: &Config,
    how: Apply,
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

fn allow(
    findings: &mut Vec<Finding>,
    files: &HashMap<&str, Rc<Comments>>,
    config: &Config,
    how: &Apply,
) {
    let complete = how.complete;
    let mut used: HashMap<&str, BTreeSet<(usize, Rule)>> = HashMap::new();
    let mut used_entries = how.needed.clone();
    for finding in findings.iter_mut().filter(|finding| !finding.unread) {
        let mut allowed = None;
        if let Some((path, comments)) = files.get_key_value(finding.path.as_str()) {
            for (index, said) in comments.allowing(finding.rule, finding.span) {
                used.entry(path).or_default().insert((index, finding.rule));
                allowed.get_or_insert_with(|| Allowed {
                    by: format!("{path}:{}", comments.comments[index].span.line),
                    is_comment: true,
                    reason: said.reason.clone(),
                });
            }
        }
        if let Some(index) = config.allowed_by(finding.rule, &finding.subject, &finding.path) {
            used_entries.insert(index);
            allowed.get_or_insert_with(|| by_entry(config, index));
        }
        finding.allowed = allowed;
    }
    for (path, comments) in files {
        let used = used.remove(path).unwrap_or_default();
        for (index, comment) in comments.comments.iter().enumerate() {
            findings.extend(stale_comment(path, comment, complete, |rule| {
                used.contains(&(index, rule))
            }));
        }
    }
    findings.extend(stale_reasons(config));
    if !complete {
        return;
    }
    for (index, entry) in config.allow.iter().enumerate() {
        if !used_entries.contains(&index) {
            findings.push(stale(
                &config.file,
                entry.span,
                redact::text(&entry.line_text),
                format!(
                    "nothing is covered by the entry for `{}`",
                    shown(&redact::url(entry.what.text()))
                ),
                "remove the entry, or correct what it names, its `refs` or `rules`".to_owned(),
            ));
        }
    }
}

fn by_entry(config: &Config, index: usize) -> Allowed {
    let entry = &config.allow[index];
    Allowed {
        by: format!("{}:{}", config.file, entry.span.line),
        is_comment: false,
        reason: redact::text(&entry.reason),
    }
}

/// Takes back what only comments allow that did not allow the same in `base`: a change must not pass because of what it
/// claims about itself. Which version a reference names does not matter: that is for the rule about floating refs.
pub(super) fn take_back(findings: &mut [Finding], base: &[Finding], config: &Config, named: &str) {
    let is_by_comment = |finding: &&Finding| {
        finding
            .allowed
            .as_ref()
            .is_some_and(|allowed| allowed.is_comment)
    };
    let accepted: BTreeSet<_> = base.iter().filter(is_by_comment).map(allowable).collect();
    for finding in findings {
        if !is_by_comment(&&*finding) || accepted.contains(&allowable(finding)) {
            continue;
        }
        let by = finding.allowed.take().map(|allowed| allowed.by);
        finding.allowed = config
            .allowed_by(finding.rule, &finding.subject, &finding.path)
            .map(|index| by_entry(config, index));
        if finding.allowed.is_none() {
            finding.help.push(format!(
                "the comment at {} does not count yet: in `{}` no comment allows this",
                by.unwrap_or_default(),
                shown(named)
            ));
        }
    }
}

/// Returns what a comment can allow: a rule, in a file, of what is named there.
fn allowable(finding: &Finding) -> (Rule, String, String) {
    let (rule, path, text) = finding.identity();
    let named = match &finding.subject {
        Subject::Local | Subject::Path { .. } | Subject::Program { .. } => text,
        Subject::Git { url, path, .. } => format!("{url}//{path}"),
        Subject::Http { url } => url.clone(),
        Subject::Helm { url, chart, .. } => format!("{url}#{chart}"),
        Subject::Image { image } => image.clone(),
    };
    (rule, path.to_owned(), named)
}

#[cfg(test)]
mod tests;
