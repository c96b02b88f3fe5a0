//! What is safe to show of a text from outside: on a terminal, in a log, in a message that quotes it.
//!
//! Texts come from files and servers, and could hide or fake a line. Everything that does so is one of [`is_hidden`],
//! and is shown as its escape.

use super::message;

/// Replaces `##[`, with which commands of GitHub Actions begin.
const INERT: &str = "##\u{fffd}[";

/// How much of a text a message quotes, in characters.
const MOST: usize = 100;

/// Returns whether `c` is escaped when shown: it controls, ends a line, draws nothing, or moves what is drawn around
/// it.
pub(crate) fn is_hidden(c: char) -> bool {
    c.is_control() || is_invisible(c)
}

/// Returns whether `c` draws nothing, or moves what is drawn around it (marks of direction, joiners,
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

/// Returns the text as it can stand in a line: with what [`is_hidden`] escaped, and without secrets and what GitHub Actions take
/// for a command wherever it stands.
pub(crate) fn visible(text: &str) -> String {
    escaped(message(text).chars()).replace("##[", INERT)
}

/// Returns the text as a message quotes it: as [`visible`], and not too long.
pub(crate) fn shown(text: &str) -> String {
    let text = message(text);
    let mut rest = text.chars();
    let mut shown = escaped(rest.by_ref().take(MOST)).replace("##[", INERT);
    if rest.next().is_some() {
        shown.push('…');
    }
    shown
}

fn escaped(text: impl Iterator<Item = char>) -> String {
    let mut out = String::new();
    for c in text {
        if is_hidden(c) { out.extend(c.escape_default()) } else { out.push(c) }
    }
    out
}

/// Returns lines of which none is a command for GitHub Actions, which take a line for one that begins with `::` after
/// blanks, or holds `##[`.
pub(crate) fn inert(text: &str) -> String {
    let inert = |line: &str| {
        let rest = line.trim_start();
        let mark = if rest.starts_with("::") { "\u{fffd}" } else { "" };
        format!("{}{mark}{}", &line[..line.len() - rest.len()], rest.replace("##[", INERT))
    };
    text.split_inclusive('\n').map(inert).collect()
}
