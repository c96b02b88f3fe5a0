//! What need not count: comments in the files themselves, and the entries of `allow`.
//!
//! ```yaml
//! resources:
//! # kustomize-localize: allow[remote-reference] released by us, with signed tags
//! - https://github.com/acme/bases//web?ref=v1
//! - https://example.com/crds.yaml # kustomize-localize: allow[remote-reference, floating-ref] on trial
//! ```
//!
//! A comment is about the line on which it stands; one that stands alone on its line is about the next line that is not
//! a comment (so several can be stacked, but without a blank line below them). A finding about the whole file is
//! allowed among the comments with which the file begins. Rule and reason are both required. A comment that allows
//! nothing, because it is malformed or because there is nothing to allow, is a finding itself, [`super::stale_allow`].
//!
//! Only comments that the YAML reader finds count, not text in quotes or in a block. Comments in localized files do not
//! count, because upstream wrote them.

use std::collections::{BTreeSet, HashMap};

use granit_parser::{Event, Parser};

use super::stale_allow::{stale, stale_comment, stale_reasons};
use crate::config::{Config, is_placeholder};
use crate::failure::{nearest, shown};
use crate::finding::{Allowed, Finding, Rule, Span, Subject};
use crate::redact;

/// What every such comment begins with.
const NAME: &str = "kustomize-localize";

/// The comments of one file that are meant for us.
#[derive(Debug, Default)]
struct Suppressions {
    comments: Vec<Comment>,
    /// The indexes of those that are about a line or stand on it.
    by_line: HashMap<usize, Vec<usize>>,
    /// The indexes of those with which the file begins.
    first: Vec<usize>,
}

/// One comment.
#[derive(Debug)]
pub(super) struct Comment {
    pub(super) span: Span,
    pub(super) line_text: String,
    /// The line that it is about.
    about: usize,
    /// Whether it is among the comments with which the file begins.
    is_first: bool,
    /// What it says, or what is wrong with it.
    pub(super) said: Result<Said, String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Said {
    pub(super) rules: BTreeSet<Rule>,
    reason: String,
}

impl Suppressions {
    /// Reads the comments of a file. Where it is not YAML, those before that place.
    fn of(bytes: &[u8]) -> Suppressions {
        match std::str::from_utf8(bytes) {
            Ok(text) if has_comment(bytes) => Suppressions::from(comments(text)),
            _ => Suppressions::default(),
        }
    }

    /// Returns the indexes of the comments that allow a finding.
    fn allowing<'a>(&'a self, finding: &'a Finding) -> impl Iterator<Item = (usize, &'a Said)> {
        let on = |line: usize| self.by_line.get(&line).into_iter().flatten().copied();
        let indexes: BTreeSet<usize> = match finding.span {
            None => self.first.iter().copied().collect(),
            Some(span) => {
                // On the last line, only those that stand on it.
                let on_last = on(span.end_line)
                    .filter(|index| self.comments[*index].span.line == span.end_line);
                on(span.line).chain(on_last).collect()
            }
        };
        indexes.into_iter().filter_map(|index| {
            let said = self.comments[index].said.as_ref().ok()?;
            said.rules.contains(&finding.rule).then_some((index, said))
        })
    }
}

impl From<Vec<Comment>> for Suppressions {
    fn from(comments: Vec<Comment>) -> Self {
        let mut by_line: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, comment) in comments.iter().enumerate() {
            for line in BTreeSet::from([comment.about, comment.span.line]) {
                by_line.entry(line).or_default().push(index);
            }
        }
        let is_first = |index: &usize| comments[*index].is_first;
        Suppressions {
            first: (0..comments.len()).filter(is_first).collect(),
            by_line,
            comments,
        }
    }
}

/// Returns whether a file may hold comments that are meant for us.
pub(super) fn has_comment(bytes: &[u8]) -> bool {
    memchr::memmem::find(bytes, NAME.as_bytes()).is_some()
}

/// Reads the comments that are meant for us.
fn comments(text: &str) -> Vec<Comment> {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(true);
    // The lines that hold a comment and nothing else.
    let mut alone = BTreeSet::new();
    let mut found = Vec::new();
    let mut first_content = usize::MAX;
    for event in Parser::new_from_str_with_options(text, options) {
        let Ok((event, span)) = event else { break };
        let line = span.start.line();
        let comment = match event {
            Event::Comment(comment, _) => comment,
            Event::Scalar(..)
            | Event::SequenceStart(..)
            | Event::MappingStart(..)
            | Event::Alias(..) => {
                first_content = first_content.min(line);
                continue;
            }
            _ => continue,
        };
        let Some(start) = span.start.byte_offset() else {
            continue;
        };
        let before = text.get(..start).unwrap_or_default();
        let before = before.rsplit(['\n', '\r']).next().unwrap_or_default();
        let is_alone = before.trim_start_matches('\u{feff}').trim().is_empty();
        if is_alone {
            alone.insert(line);
        }
        if let Some(said) = read(&comment) {
            let column = span.start.col() + 1;
            let line_text = format!("{before}#{comment}");
            found.push((line, column, line_text, is_alone, said));
        }
    }
    // The line that each comment on a line of its own is about: found from the last to the first.
    let mut below = HashMap::new();
    for line in alone.iter().rev() {
        let next = line + 1;
        below.insert(*line, below.get(&next).copied().unwrap_or(next));
    }
    let comment = |(line, column, line_text, is_alone, said): (usize, usize, String, bool, _)| {
        let length = line_text.trim_start_matches('\u{feff}').chars().count();
        Comment {
            span: Span {
                line,
                column,
                end_line: line,
                end_column: length + 1,
            },
            line_text: redact::text(&line_text),
            about: below.get(&line).copied().unwrap_or(line),
            is_first: is_alone && line < first_content,
            said,
        }
    };
    found.into_iter().map(comment).collect()
}

/// Reads what stands after `#`; `None` when it is not meant for us.
fn read(comment: &str) -> Option<Result<Said, String>> {
    let rest = comment.trim().strip_prefix(NAME)?;
    let Some(rest) = rest.trim_start().strip_prefix(':') else {
        // Others may mention us.
        let meant = rest.trim_start().starts_with("allow[");
        return meant.then(|| Err(format!("`:` is missing after `{NAME}`")));
    };
    Some(said(rest.trim()))
}

fn said(text: &str) -> Result<Said, String> {
    let Some(rest) = text.strip_prefix("allow") else {
        let word: String = text.chars().take_while(|c| c.is_alphanumeric()).collect();
        return Err(if word.is_empty() {
            "it does not say `allow[RULE]`".to_owned()
        } else {
            format!("`{}` is nothing that can be asked for", shown(&word))
        });
    };
    let Some((ids, reason)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) else {
        return Err("the rules do not stand in brackets after `allow`".to_owned());
    };
    let mut rules = BTreeSet::new();
    for id in ids.split(',').map(str::trim) {
        let rule = match Rule::from_id(id) {
            Some(Rule::StaleAllow) => {
                return Err(format!(
                    "`{id}` cannot be allowed: take the stale comment away"
                ));
            }
            Some(rule) => rule,
            None if id.is_empty() => return Err("a rule is missing in the brackets".to_owned()),
            None => {
                let known = Rule::ALL.iter().map(|rule| rule.id());
                let meant = nearest(id, known)
                    .map(|meant| format!(" (did you mean `{meant}`?)"))
                    .unwrap_or_default();
                return Err(format!("there is no rule `{}`{meant}", shown(id)));
            }
        };
        rules.insert(rule);
    }
    let reason = reason.trim_start_matches([' ', '\t', ':', '-']).trim_end();
    if !reason.contains(char::is_alphanumeric) {
        return Err("no reason is given".to_owned());
    }
    if is_placeholder(reason) {
        return Err(format!(
            "`{}` is a placeholder, not a reason",
            shown(reason)
        ));
    }
    Ok(Said {
        rules,
        reason: redact::text(reason),
    })
}

/// How suppressions are applied.
#[derive(Debug, Clone)]
pub(super) struct Apply {
    /// Everything was looked at, so that what allowed nothing never will.
    pub(super) complete: bool,
    /// The entries of the configuration that let something stay remote, whether it is a finding or not.
    pub(super) leaving: BTreeSet<usize>,
    /// The entries of the configuration that allow something to be missing; none where that is unknown.
    pub(super) missing: Option<BTreeSet<usize>>,
}

/// Marks what comments of `files` (path and bytes) and the configuration allow, adds what is stale, and
/// gives every finding the severity that it has here; those of rules that are off go.
pub(super) fn apply<'a>(
    findings: &mut Vec<Finding>,
    files: impl Iterator<Item = (&'a str, &'a [u8])>,
    config: &Config,
    how: Apply,
) {
    let files: HashMap<&str, Suppressions> = files
        .map(|(path, bytes)| (path, Suppressions::of(bytes)))
        .filter(|(_, suppressions)| !suppressions.comments.is_empty())
        .collect();
    allow(findings, &files, config, &how);
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
    files: &HashMap<&str, Suppressions>,
    config: &Config,
    how: &Apply,
) {
    let complete = how.complete;
    let mut used: HashMap<&str, BTreeSet<(usize, Rule)>> = HashMap::new();
    let mut used_entries = how.leaving.clone();
    for finding in findings.iter_mut().filter(|finding| !finding.unread) {
        let mut allowed = None;
        if let Some((path, suppressions)) = files.get_key_value(finding.path.as_str()) {
            for (index, said) in suppressions.allowing(finding) {
                used.entry(path).or_default().insert((index, finding.rule));
                allowed.get_or_insert_with(|| Allowed {
                    by: format!("{path}:{}", suppressions.comments[index].span.line),
                    is_comment: true,
                    reason: said.reason.clone(),
                });
            }
        }
        if let Some(index) = config.allowed_by(finding) {
            used_entries.insert(index);
            allowed.get_or_insert_with(|| by_entry(config, index));
        }
        finding.allowed = allowed;
    }
    for (path, suppressions) in files {
        let used = used.remove(path).unwrap_or_default();
        for (index, comment) in suppressions.comments.iter().enumerate() {
            findings.extend(stale_comment(path, comment, complete, |rule| {
                used.contains(&(index, rule))
            }));
        }
    }
    findings.extend(stale_reasons(config));
    if let Some(used) = how.missing.as_ref().filter(|_| complete) {
        let entries = config.leave_missing.iter().enumerate();
        let unused = entries.filter(|(index, _)| !used.contains(index));
        for (_, entry) in unused.filter(|(_, entry)| !is_placeholder(&entry.reason)) {
            findings.push(stale(
                &config.file,
                entry.span,
                redact::text(&entry.line_text),
                format!(
                    "nothing is missing that `{}` lists",
                    shown(entry.path.glob().glob())
                ),
                "remove the entry, or correct its `path`".to_owned(),
            ));
        }
    }
    if complete {
        for (index, entry) in config.allow.iter().enumerate() {
            if !used_entries.contains(&index) && !is_placeholder(&entry.reason) {
                findings.push(stale(
                    &config.file,
                    entry.span,
                    redact::text(&entry.line_text),
                    format!(
                        "nothing is allowed by the entry for `{}`",
                        shown(&redact::url(&entry.url.text))
                    ),
                    "remove the entry, or correct its `url`, `refs` or `rules`".to_owned(),
                ));
            }
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
            .allowed_by(finding)
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
        Subject::Local => text,
        Subject::Git { url, path, .. } => format!("{url}//{path}"),
        Subject::Http { url } => url.clone(),
        Subject::Helm { url, chart, .. } => format!("{url}#{chart}"),
        Subject::Image { image } => image.clone(),
    };
    (rule, path.to_owned(), named)
}

#[cfg(test)]
mod tests;
