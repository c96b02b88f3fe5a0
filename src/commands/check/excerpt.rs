//! The line of a finding, with what is under its span, as a terminal shows it.

use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

use crate::kustomization::unescaped;
use crate::message::finding::Finding;
use crate::message::redact::{self, REPLACED, is_hidden};

/// How many columns of a line are shown.
const WIDTH: usize = 120;
/// How many of them before the span, where the line is cut.
const BEFORE: usize = 24;
/// How many characters before and behind the begin of the span are looked at: many more than are shown, so
/// that a URL is not taken for something else because it is cut.
const NEAR: usize = 1_000;
/// How many columns a tab takes.
const TAB: usize = 4;

/// How far a line was read, in characters and in bytes: to begin anew for each of thousands of findings on it takes
/// minutes.
pub(super) type Passed = (Arc<str>, usize, usize);

/// A line, and the part of it that is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The line, without what a terminal does not show literally, and cut around the span.
    pub(super) line: String,
    /// The columns before the span, on a terminal.
    pub(super) indent: usize,
    /// The columns of the span on a terminal, at least one.
    pub(super) width: usize,
}

impl Excerpt {
    /// Returns the line on which the finding's span begins; none where it has no span, or the line may hold a secret.
    pub(super) fn of(finding: &Finding, passed: &mut Passed) -> Option<Excerpt> {
        let span = finding.span?;
        // A file may be one line: of that no more is looked at than what can be shown, and where it is cut.
        let column = span.column.saturating_sub(1);
        let skipped = column.saturating_sub(NEAR);
        let whole = finding.line_text.trim_end_matches(['\r', '\n']);
        if !Arc::ptr_eq(&passed.0, &finding.line_text) || passed.1 > skipped {
            *passed = (finding.line_text.clone(), 0, 0);
        }
        let mut rest = whole.get(passed.2..).unwrap_or_default().chars();
        rest.by_ref().take(skipped - passed.1).for_each(drop);
        *passed = (passed.0.clone(), skipped, whole.len() - rest.as_str().len());
        let near: String = rest.by_ref().take(2 * NEAR).collect();
        let line: Vec<char> =
            near.chars().map(|one| if one != '\t' && is_hidden(one) { REPLACED } else { one }).collect();
        let goes_on = span.end_line > span.line;
        let start = (column - skipped).min(line.len());
        let end = if goes_on {
            line.len()
        } else {
            (span.end_column.saturating_sub(1).saturating_sub(skipped)).clamp(start, line.len())
        };
        // A text may be written so that only YAML sees the URL, and on several lines.
        let written: String = line[start..end].iter().collect();
        let is_cut = goes_on && written.contains([':', '@']);
        let printable: String = near.chars().filter(|one| *one == '\t' || !one.is_control()).collect();
        if is_cut || [printable, unescaped(&written)].iter().any(|text| redact::message(text) != *text) {
            return None;
        }
        Some(cut(&line, start, end, (skipped > 0, rest.next().is_some())))
    }
}

/// Returns the part of the line around the span that is shown. `more` says whether the line goes on before
/// and behind.
fn cut(line: &[char], start: usize, end: usize, more: (bool, bool)) -> Excerpt {
    let width = |character: char| match character {
        '\t' => TAB,
        character => character.width().unwrap_or(0),
    };
    let total = |characters: &[char]| characters.iter().copied().map(width).sum::<usize>();
    let mut from = 0;
    if total(line) > WIDTH && total(&line[..start]) > BEFORE {
        from = start;
        let mut room = BEFORE;
        while from > 0 && width(line[from - 1]) <= room {
            room -= width(line[from - 1]);
            from -= 1;
        }
        // A mark belongs to the character before it.
        while from < start && width(line[from]) == 0 {
            from += 1;
        }
    }
    let mut to = from;
    let mut room = WIDTH;
    while to < line.len() && width(line[to]) <= room {
        room -= width(line[to]);
        to += 1;
    }
    let [before, behind] = [from > 0 || more.0, to < line.len() || more.1].map(|is_cut| if is_cut { "…" } else { "" });
    let text: String = line[from..to].iter().collect();
    let text = format!("{before}{}{behind}", text.replace('\t', &" ".repeat(TAB)));
    Excerpt {
        line: text.trim_end().to_owned(),
        indent: before.chars().count() + total(&line[from..start]),
        width: total(&line[start..end.clamp(start, to.max(start))]).max(1),
    }
}
