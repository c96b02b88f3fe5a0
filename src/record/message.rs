//! Renders the message of a commit: the user's text, and the trailers as its last paragraph.
//!
//! git looks for trailers only in the last paragraph, and only if all of its lines are trailers (or a quarter of them,
//! beside a `Signed-off-by`). Lines of the user's text that end the message for git before that paragraph are indented.

use std::borrow::Cow;

use super::trailers::{PREFIX, Trailers};
use crate::message::failure::{Failure, Result};

/// The end of the line that cuts a message, after the comment character.
const SCISSORS: &str = " ------------------------ >8 ------------------------";

/// Renders the message of a commit: the user's text, then `trailers` as the last paragraph.
///
/// Trailers at the end of the user's text become part of that paragraph, so that they stay trailers. Line ends become
/// LF, white space around the text is removed, and lines that would end the message for git are indented. Everything
/// else stays, including lines that begin with `#`.
///
/// Fails if there is no text, if it has NUL or lines of a record, or if a value of `trailers` is malformed.
pub(crate) fn render_message(text: &str, trailers: &Trailers) -> Result<String> {
    if text.contains('\0') {
        return Err(Failure::new("the commit message contains NUL, which git cannot store"));
    }
    // git stores the message as it is, and `\r` would end up in the trailers.
    let text = text.replace("\r\n", "\n");
    let lines: Vec<Cow<'_, str>> = text.trim_matches(is_space).split('\n').map(neutral).collect();
    if lines.concat().is_empty() {
        return Err(Failure::new("the commit message is empty"));
    }
    if lines.iter().any(|line| is_record_line(line) && is_trailer(line)) {
        return Err(Failure::new(format!(
            "the commit message contains `{PREFIX}…` lines, which only this program may write"
        )));
    }
    // The first paragraph is the subject, so it is never a block of trailers.
    let blank = lines.iter().rposition(|line| line.chars().all(is_space));
    let is_block = blank.is_some_and(|blank| is_trailer_block(&lines[blank + 1..]));
    // Trailers of the user's text join that paragraph, so that git still finds both.
    let separator = if is_block { "\n" } else { "\n\n" };
    Ok([&lines.join("\n"), separator, &trailers.render()?].concat())
}

/// The line, indented if it would end the message for git.
fn neutral(line: &str) -> Cow<'_, str> {
    // A patch follows a line `---`, alone or before white space, for `git interpret-trailers(1)`.
    let is_divider = line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(is_space));
    // The scissors line of `git commit --cleanup=scissors` ends the message for `git log`, too (as of git 2.47).
    let is_cut = !line.starts_with(is_space) && line.ends_with(SCISSORS);
    // git reads an indented line as text.
    if is_divider || is_cut { Cow::Owned(format!(" {line}")) } else { Cow::Borrowed(line) }
}

/// Whether git reads a paragraph as trailers with any configuration: every line is a trailer, or continues the one
/// above.
fn is_trailer_block(lines: &[Cow<'_, str>]) -> bool {
    let mut others = lines.iter().filter(|line| !is_trailer(line));
    lines.first().is_some_and(|line| is_trailer(line)) && others.all(|line| line.starts_with(is_space))
}

/// Whether git reads a line as `key: value`: letters, digits and `-`, then optional space, then the colon. A line that
/// is a URL counts as prose, although git takes its scheme for a key.
pub(super) fn is_trailer(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, value)| {
        let key = key.trim_end_matches([' ', '\t']);
        !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !value.starts_with("//")
    })
}

/// Whether a line is a trailer of a record.
pub(super) fn is_record_line(line: &str) -> bool {
    // git ignores the case of keys.
    line.split_at_checked(PREFIX.len()).is_some_and(|(start, _)| start.eq_ignore_ascii_case(PREFIX))
}

/// Whether git counts a character as white space. Unicode has more.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
