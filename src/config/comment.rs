//! Exceptions in the files themselves.
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
//! nothing, because it is malformed or because there is nothing to allow, is a finding itself.
//!
//! Only comments that the YAML reader finds count, not text in quotes or in a block. Comments in localized files do not
//! count, because upstream wrote them.

use std::collections::{BTreeSet, HashMap};

use granit_parser::{Event, Parser};

use super::PLACEHOLDER;
use crate::message::failure::{nearest, shown};
use crate::message::finding::Rule;
use crate::message::position::{Position, Span};
use crate::message::redact;

/// What every such comment begins with.
const NAME: &str = "kustomize-localize";

/// The comments of one file that are meant for us.
#[derive(Debug, Default)]
pub(crate) struct Comments {
    /// In their order.
    pub comments: Vec<Comment>,
    /// The indexes of those that are about a line or stand on it.
    by_line: HashMap<usize, Vec<usize>>,
}

#[derive(Debug)]
pub(crate) struct Comment {
    /// Where it stands.
    pub span: Span,
    /// The line that it is about.
    pub about: usize,
    /// Whether it is among the comments with which the file begins.
    is_first: bool,
    /// What it says, or what is wrong with it.
    pub said: Result<Said, String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Said {
    pub rules: BTreeSet<Rule>,
    pub reason: String,
}

impl Comments {
    /// Reads the comments of a file. Where it is not YAML, those before that place.
    pub(crate) fn of(bytes: &[u8]) -> Comments {
        let may_have_some = memchr::memmem::find(bytes, NAME.as_bytes()).is_some();
        let text = std::str::from_utf8(bytes).ok().filter(|_| may_have_some);
        let comments = text.map(comments).unwrap_or_default();
        let mut by_line: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, comment) in comments.iter().enumerate() {
            for line in BTreeSet::from([comment.about, comment.span.start.line]) {
                by_line.entry(line).or_default().push(index);
            }
        }
        Comments { comments, by_line }
    }

    /// Returns a comment that allows what a rule finds, but for its reason.
    pub(crate) fn of_rule(rule: Rule) -> String {
        format!("# {NAME}: allow[{rule}] {PLACEHOLDER}")
    }

    /// Returns the indexes of the comments that allow what a rule finds at a place: at the whole file where there is
    /// none.
    pub(crate) fn allowing(&self, rule: Rule, span: Option<Span>) -> impl Iterator<Item = (usize, &Said)> {
        let on = |line: usize| self.by_line.get(&line).into_iter().flatten().copied();
        let indexes: BTreeSet<usize> = match span {
            None => (0..self.comments.len()).filter(|index| self.comments[*index].is_first).collect(),
            Some(span) => {
                // On the last line, only those that stand on it.
                let on_last = on(span.end.line).filter(|index| self.comments[*index].span.start.line == span.end.line);
                on(span.start.line).chain(on_last).collect()
            }
        };
        indexes.into_iter().filter_map(move |index| {
            let said = self.comments[index].said.as_ref().ok()?;
            said.rules.contains(&rule).then_some((index, said))
        })
    }
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
            Event::Scalar(..) | Event::SequenceStart(..) | Event::MappingStart(..) | Event::Alias(..) => {
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
            let end_column = column + 1 + comment.trim_end_matches('\r').chars().count();
            let [start, end] = [column, end_column].map(|column| Position { line, column });
            found.push((Span { start, end }, is_alone, said));
        }
    }
    // The line that each comment on a line of its own is about: found from the last to the first.
    let mut below = HashMap::new();
    for line in alone.iter().rev() {
        let next = line + 1;
        below.insert(*line, below.get(&next).copied().unwrap_or(next));
    }
    let comment = |(span, is_alone, said): (Span, bool, _)| Comment {
        span,
        about: below.get(&span.start.line).copied().unwrap_or(span.start.line),
        is_first: is_alone && span.start.line < first_content,
        said,
    };
    found.into_iter().map(comment).collect()
}

/// Reads what stands after `#`; `None` when it is not meant for us: others may mention us.
fn read(comment: &str) -> Option<Result<Said, String>> {
    let rest = comment.trim().strip_prefix(NAME)?.trim_start();
    if rest.starts_with("allow[") {
        return Some(Err(format!("missing `:` after `{NAME}`")));
    }
    Some(said(rest.strip_prefix(':')?.trim()))
}

fn said(text: &str) -> Result<Said, String> {
    let parts = text.strip_prefix("allow[").and_then(|rest| rest.split_once(']'));
    let (ids, reason) = parts.ok_or_else(|| format!("expected `allow[RULE] reason`, found `{}`", shown(text)))?;
    let rule = |id: &str| match Rule::from_id(id) {
        Some(rule) if rule.can_be_allowed() => Ok(rule),
        Some(_) => Err(format!("`{id}` cannot be allowed")),
        None => {
            let meant = nearest(id, Rule::ALL.iter().map(|rule| rule.id()));
            let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
            Err(format!("unknown rule `{}`{meant}", shown(id)))
        }
    };
    let rules = ids.split(',').map(|id| rule(id.trim())).collect::<Result<_, _>>()?;
    let reason = reason.trim_start_matches([' ', '\t', ':', '-']).trim_end();
    if !reason.contains(char::is_alphanumeric) {
        return Err("missing reason".to_owned());
    }
    Ok(Said { rules, reason: redact::text(reason) })
}
