//! Exceptions in the files themselves.
//!
//! ```yaml
//! resources:
//! # kustomize-localize: allow[remote-reference] released by us, with signed tags
//! - https://github.com/acme/bases//web?ref=v1
//! - https://example.com/crds.yaml # kustomize-localize: allow[remote-reference, floating-ref] on trial
//! ```
//!
//! A comment is about its line; a comment on a line of its own is about the next line that is not a comment (so several
//! can be stacked, but without a blank line below them). The comments with which a file begins can also allow a finding
//! about the whole file. Rule and reason are both required. A comment that allows nothing, because it is malformed or
//! because there is nothing to allow, is a finding itself.
//!
//! Only comments that the YAML parser finds count, not text in quotes or in a block. Comments in localized files do not
//! count, because upstream wrote them.

use std::collections::{BTreeSet, HashMap};

use granit_parser::{Event, Parser};

use super::PLACEHOLDER;
use crate::message::failure::{nearest, shown};
use crate::message::finding::Rule;
use crate::message::position::{Position, Span};
use crate::message::redact;

/// The word with which these comments begin.
const NAME: &str = "kustomize-localize";

/// The comments of one file that are meant for this program.
#[derive(Debug, Default)]
pub(crate) struct Comments {
    /// In the order of the text.
    pub comments: Vec<Comment>,
    /// For each line, the indexes of the comments that are on it or about it.
    by_line: HashMap<usize, Vec<usize>>,
}

#[derive(Debug)]
pub(crate) struct Comment {
    pub span: Span,
    /// The number of the line that the comment is about.
    pub about: usize,
    /// Whether it is one of the comments with which the file begins.
    is_first: bool,
    /// The directive, or the reason why it is malformed.
    pub directive: Result<Directive, String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Directive {
    pub rules: BTreeSet<Rule>,
    pub reason: String,
}

impl Comments {
    /// Reads the comments of a file. If it is not YAML, only those before the error are read.
    pub(crate) fn of(bytes: &[u8]) -> Comments {
        // Most files have none, and parsing costs more than a search.
        let may_have_some = memchr::memmem::find(bytes, NAME.as_bytes()).is_some();
        let text = std::str::from_utf8(bytes).ok().filter(|_| may_have_some);
        let comments = text.map(read_comments).unwrap_or_default();
        let mut by_line: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, comment) in comments.iter().enumerate() {
            for line in BTreeSet::from([comment.about, comment.span.start.line]) {
                by_line.entry(line).or_default().push(index);
            }
        }
        Comments { comments, by_line }
    }

    /// A comment that allows the findings of a rule, with a placeholder as reason.
    pub(crate) fn of_rule(rule: Rule) -> String {
        format!("# {NAME}: allow[{rule}] {PLACEHOLDER}")
    }

    /// The indexes of the comments that allow the findings of a rule at a location. Without `span` the finding is about
    /// the whole file, and only the comments with which the file begins can allow it.
    pub(crate) fn allowing(&self, rule: Rule, span: Option<Span>) -> impl Iterator<Item = (usize, &Directive)> {
        // A set, because a comment may be on the first and on the last line.
        let indexes: BTreeSet<usize> = match span {
            None => (0..self.comments.len()).filter(|index| self.comments[*index].is_first).collect(),
            Some(span) => {
                // A comment above the last line is inside of the value, so it is about a part of it at most.
                let end = span.end.line;
                let on_last = self.on_line(end).filter(|index| self.comments[*index].span.start.line == end);
                self.on_line(span.start.line).chain(on_last).collect()
            }
        };
        indexes.into_iter().filter_map(move |index| {
            let directive = self.comments[index].directive.as_ref().ok()?;
            directive.rules.contains(&rule).then_some((index, directive))
        })
    }

    /// The indexes of the comments on a line or about it.
    fn on_line(&self, line: usize) -> impl Iterator<Item = usize> {
        self.by_line.get(&line).into_iter().flatten().copied()
    }
}

/// Reads the comments that are meant for this program, up to the first error of YAML.
fn read_comments(text: &str) -> Vec<Comment> {
    let mut options = granit_parser::Options::default();
    options.set_emit_comments(true);
    // The lines with only a comment, also one for another program: such comments may be between ours and its value.
    let mut comment_lines = BTreeSet::new();
    let mut comments = Vec::new();
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
        let Some(start) = span.start.byte_offset() else { continue };
        let before = text.get(..start).unwrap_or_default();
        let before = before.rsplit(['\n', '\r']).next().unwrap_or_default();
        // A comment on a line of its own is about the next line, any other comment about its own line.
        let is_alone = before.trim_start_matches('\u{feff}').trim().is_empty();
        if is_alone {
            comment_lines.insert(line);
        }
        if let Some(directive) = read_comment(&comment) {
            let column = span.start.col() + 1;
            let end_column = column + 1 + comment.trim_end_matches('\r').chars().count();
            let [start, end] = [column, end_column].map(|column| Position { line, column });
            comments.push(Comment { span: Span { start, end }, about: line, is_first: is_alone, directive });
        }
    }
    // From the last line to the first, so that the line below a stack of comments is known for each of them.
    let mut below = HashMap::new();
    for line in comment_lines.iter().rev() {
        let next = line + 1;
        below.insert(*line, below.get(&next).copied().unwrap_or(next));
    }
    // Up to here `about` is the line of the comment itself.
    for comment in &mut comments {
        comment.is_first &= comment.about < first_content;
        comment.about = below.get(&comment.about).copied().unwrap_or(comment.about);
    }
    comments
}

/// Reads the text after `#`; `None` if it is not meant for this program.
fn read_comment(comment: &str) -> Option<Result<Directive, String>> {
    let rest = comment.trim().strip_prefix(NAME)?.trim_start();
    if rest.starts_with("allow[") {
        return Some(Err(format!("missing `:` after `{NAME}`")));
    }
    // Without `:` people only mention the program.
    Some(parse_directive(rest.strip_prefix(':')?.trim()))
}

/// Reads the text after `kustomize-localize:`, which must be `allow[RULE,…] reason`. The error is a phrase for the
/// finding about a malformed comment.
fn parse_directive(text: &str) -> Result<Directive, String> {
    let parts = text.strip_prefix("allow[").and_then(|rest| rest.split_once(']'));
    let (ids, reason) = parts.ok_or_else(|| format!("expected `allow[RULE] reason`, found `{}`", shown(text)))?;
    let rules = ids.split(',').map(|id| parse_rule(id.trim())).collect::<Result<_, _>>()?;
    let reason = reason.trim_start_matches([' ', '\t', ':', '-']).trim_end();
    if !reason.contains(char::is_alphanumeric) {
        return Err("missing reason".to_owned());
    }
    // Reports show the reason, which may have a secret.
    Ok(Directive { rules, reason: redact::text(reason) })
}

/// Reads a rule between the brackets. The error suggests the rule that was probably meant.
fn parse_rule(id: &str) -> Result<Rule, String> {
    match Rule::from_id(id) {
        Some(rule) if rule.can_be_allowed() => Ok(rule),
        Some(_) => Err(format!("`{id}` cannot be allowed")),
        None => {
            let meant = nearest(id, Rule::ALL.iter().map(|rule| rule.id()));
            let meant = meant.map(|meant| format!(" (did you mean `{meant}`?)")).unwrap_or_default();
            Err(format!("unknown rule `{}`{meant}", shown(id)))
        }
    }
}
