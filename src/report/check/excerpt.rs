//! The line of a finding, with what is under its span, as a terminal shows it.

use std::ops::Range;
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
    /// Returns the line on which the finding's span begins; none where it has no span.
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
        let line: Vec<char> = rest
            .by_ref()
            .take(2 * NEAR)
            .map(|character| if character != '\t' && is_hidden(character) { REPLACED } else { character })
            .collect();
        let goes_on = span.end_line > span.line;
        let start = (column - skipped).min(line.len());
        let end = if goes_on {
            line.len()
        } else {
            (span.end_column.saturating_sub(1).saturating_sub(skipped)).clamp(start, line.len())
        };
        let near = near(&line, start, end);
        let more = (skipped > 0 || near.start > 0, near.end < line.len() || rest.next().is_some());
        let (start, end) = (start - near.start, end - near.start);
        let line = line[near].to_vec();
        let reference = &finding.reference;
        let (line, start, end) = if hides_a_secret(&line[start..end], goes_on, reference) {
            let before: String = line[..start].iter().collect();
            let mut shown: Vec<char> = redact::text(&before).chars().collect();
            let start = shown.len();
            shown.extend(reference.chars());
            let end = shown.len();
            (shown, start, end)
        } else {
            without_secrets(line, start, end)
        };
        Some(cut(&line, start, end, more))
    }
}

/// Returns the part of a line that is looked at for secrets: what can be shown, and the words at its ends as a whole. A
/// line with thousands of findings is not read thousands of times.
fn near(line: &[char], start: usize, end: usize) -> Range<usize> {
    let is_blank = |character: &char| character.is_whitespace();
    let before = &line[..start.saturating_sub(WIDTH)];
    let after = end.max(start + WIDTH).min(line.len());
    let from = before.iter().rposition(is_blank).map_or(0, |at| at + 1);
    let to = line[after..].iter().position(is_blank);
    from..to.map_or(line.len(), |at| after + at)
}

/// Returns whether the written form of a reference may hold a secret that is not seen in it: a URL may be
/// written in double quotes so that only YAML sees it, and on several lines.
fn hides_a_secret(written: &[char], goes_on: bool, reference: &str) -> bool {
    let written: String = written.iter().collect();
    let meant = unescaped(&written);
    let bare = meant.trim_matches(['"', '\'', ' ', '\t']);
    let is_cut = goes_on && bare.contains([':', '@']) && !reference.starts_with(bare);
    is_cut || (meant != written && redact::has_secret(&meant))
}

/// Returns the line without passwords and tokens, and where the span is then.
fn without_secrets(line: Vec<char>, start: usize, end: usize) -> (Vec<char>, usize, usize) {
    let text: String = line.iter().collect();
    let shown: Vec<char> = redact::text(&text).chars().collect();
    if shown == line {
        return (line, start, end);
    }
    // The hidden part lies between what the two have in common at the front and at the end.
    let shorter = line.len().min(shown.len());
    let front = (0..shorter).take_while(|&at| line[at] == shown[at]).count();
    let back = (0..shorter - front).take_while(|&at| line[line.len() - 1 - at] == shown[shown.len() - 1 - at]).count();
    let place = |at: usize, inside: usize| match at {
        at if at <= front => at,
        at if at >= line.len() - back => shown.len() - (line.len() - at),
        _ => inside,
    };
    let (start, end) = (place(start, front), place(end, shown.len() - back));
    (shown, start, end.max(start))
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
    let is_cut = (from > 0 || more.0, to < line.len() || more.1);
    let mut text = String::new();
    if is_cut.0 {
        text.push('…');
    }
    for &character in &line[from..to] {
        match character {
            '\t' => text.push_str(&" ".repeat(TAB)),
            character => text.push(character),
        }
    }
    if is_cut.1 {
        text.push('…');
    }
    let shown_end = end.clamp(start, to.max(start));
    Excerpt {
        line: text.trim_end().to_owned(),
        indent: usize::from(is_cut.0) + total(&line[from..start]),
        width: total(&line[start..shown_end]).max(1),
    }
}
