//! Makes a text from outside safe to show on a terminal, in a log or in a message.
//!
//! Texts from files and servers could hide or fake a line. The characters that do so ([`is_hidden`])
//! are shown as escapes.

use super::message;

/// Replaces `##[`, with which commands of GitHub Actions begin.
const INERT: &str = "##\u{fffd}[";

/// The greatest length of a quotation in a message, in characters.
const MOST: usize = 100;

/// Whether `c` is escaped when shown: it is a control character, ends a line, draws nothing, or moves other characters.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// Whether `c` draws nothing, or moves the characters around it (marks of direction, joiners,
/// fillers, line separators).
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(
        u32::from(c),
        0xad | 0x34f
            | 0x61c
            | 0x115f
            | 0x1160
            | 0x17b4
            | 0x17b5
            | 0x180b..=0x180f
            | 0x200b..=0x200f
            | 0x2028..=0x202e
            | 0x2060..=0x206f
            | 0x3164
            | 0xfe00..=0xfe0f
            | 0xfeff
            | 0xffa0
            | 0xfff0..=0xfffb
            | 0x1d173..=0x1d17a
            | 0xe0000..=0xe0fff
    )
}

/// The text as a part of one line: hidden characters are escaped, secrets and commands of GitHub Actions are removed.
pub(crate) fn visible(text: &str) -> String {
    escaped(message(text).chars()).replace("##[", INERT)
}

/// The text as a message quotes it: as [`visible`], and cut after [`MOST`] characters.
pub(crate) fn shown(text: &str) -> String {
    let text = message(text);
    // Hidden first, then cut: a part of a secret would not be recognized.
    let mut rest = text.chars();
    let mut shown = escaped(rest.by_ref().take(MOST)).replace("##[", INERT);
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

/// A text in which hidden characters are escapes.
fn escaped(text: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in text {
        if is_hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Several lines, changed so that GitHub Actions take none for a command, that is, a line that begins with `::` after
/// blanks or holds `##[`.
pub(crate) fn inert(text: &str) -> String {
    let mut inert = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        // GitHub Actions skip blanks before a command.
        let rest = line.trim_start();
        inert.push_str(&line[..line.len() - rest.len()]);
        if rest.starts_with("::") {
            inert.push('\u{fffd}');
        }
        inert.push_str(&rest.replace("##[", INERT));
    }
    inert
}
