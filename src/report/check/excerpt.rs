//! The line of a finding, with what is under its span, as a terminal shows it.

use unicode_width::UnicodeWidthChar;

use crate::finding::Finding;
use crate::redact;
use crate::report::is_hidden;

/// How many columns of a line are shown.
const WIDTH: usize = 120;
/// How many of them before the span, where the line is cut.
const BEFORE: usize = 24;
/// How many columns a tab takes.
const TAB: usize = 4;

/// A line, and the part of it that is meant.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Excerpt {
    /// The line, without what a terminal does not show as it is, and cut around the span.
    pub(super) line: String,
    /// The columns before the span, on a terminal.
    pub(super) indent: usize,
    /// The columns of the span on a terminal, at least one.
    pub(super) width: usize,
}

impl Excerpt {
    /// Returns the line on which the finding's span begins; none where it has no span.
    pub(super) fn of(finding: &Finding) -> Option<Excerpt> {
        let span = finding.span?;
        let line: Vec<char> = finding
            .line_text
            .trim_end_matches(['\r', '\n'])
            .chars()
            .map(
                |character| match character != '\t' && is_hidden(character) {
                    true => '\u{fffd}',
                    false => character,
                },
            )
            .collect();
        let start = span.column.saturating_sub(1).min(line.len());
        let end = match span.end_line > span.line {
            true => line.len(),
            false => span.end_column.saturating_sub(1).clamp(start, line.len()),
        };
        Some(
            match without_secrets(&line, start, end, &finding.reference) {
                Some((line, start, end)) => cut(&line, start, end),
                None => cut(&line, start, end),
            },
        )
    }
}

/// Returns the line without passwords and tokens, and where the span is then; none where there are none.
fn without_secrets(
    line: &[char],
    start: usize,
    end: usize,
    reference: &str,
) -> Option<(Vec<char>, usize, usize)> {
    let text: String = line.iter().collect();
    // In double quotes a URL can be written so that only YAML sees it.
    let escaped: String = line[start..end].iter().collect();
    if escaped.contains('\\') && redact::has_secret(&unescaped(&escaped)) {
        let shown: Vec<char> = [redact::text(&line[..start].iter().collect::<String>())]
            .iter()
            .flat_map(|text| text.chars())
            .collect();
        let start = shown.len();
        let shown: Vec<char> = shown.into_iter().chain(reference.chars()).collect();
        let end = shown.len();
        return Some((shown, start, end));
    }
    let shown: Vec<char> = redact::text(&text).chars().collect();
    if shown == line {
        return None;
    }
    // The hidden part lies between what the two have in common at the front and at the end.
    let shorter = line.len().min(shown.len());
    let front = (0..shorter).take_while(|&at| line[at] == shown[at]).count();
    let back = (0..shorter - front)
        .take_while(|&at| line[line.len() - 1 - at] == shown[shown.len() - 1 - at])
        .count();
    let place = |at: usize, inside: usize| match at {
        at if at <= front => at,
        at if at >= line.len() - back => shown.len() - (line.len() - at),
        _ => inside,
    };
    let (start, end) = (place(start, front), place(end, shown.len() - back));
    Some((shown, start, end.max(start)))
}

/// Returns the text with the escapes of double quotes resolved that name a character by its number.
fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\\') {
        out.push_str(before);
        let digits = match after.chars().next() {
            Some('x') => 2,
            Some('u') => 4,
            Some('U') => 8,
            _ => 0,
        };
        let number = after
            .get(1..1 + digits)
            .filter(|digits| !digits.is_empty())
            .and_then(|digits| u32::from_str_radix(digits, 16).ok())
            .and_then(char::from_u32);
        match number {
            Some(character) => {
                out.push(character);
                rest = &after[1 + digits..];
            }
            None => rest = after,
        }
    }
    out + rest
}

/// Returns the part of the line around the span that is shown.
fn cut(line: &[char], start: usize, end: usize) -> Excerpt {
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
    let mut text = String::new();
    if from > 0 {
        text.push('…');
    }
    for &character in &line[from..to] {
        match character {
            '\t' => text.push_str(&" ".repeat(TAB)),
            character => text.push(character),
        }
    }
    if to < line.len() {
        text.push('…');
    }
    let shown_end = end.clamp(start, to.max(start));
    Excerpt {
        line: text.trim_end().to_owned(),
        indent: usize::from(from > 0) + total(&line[from..start]),
        width: total(&line[start..shown_end]).max(1),
    }
}
