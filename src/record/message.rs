//! The message of a commit that we make: the user's text, and the trailers as its last paragraph.
//!
//! git finds trailers in the last paragraph only, and only when all of it reads as trailers (or a
//! quarter of it, beside a `Signed-off-by`). What ends the message for git before its last
//! paragraph would hide them (`git-interpret-trailers(1)`, and what git 2.47 was seen to do):
//!
//! * a line `---`, alone or before white space, for `git interpret-trailers`: a patch follows;
//! * the scissors line of `git commit --cleanup=scissors`, for `git log` too.
//!
//! Such a line of the user's text is indented by one space, and is text then.

use std::borrow::Cow;

use super::trailers::{PREFIX, Trailers};
use crate::message::failure::{Failure, Result};

/// What follows the comment character, whichever it is, in the line that cuts a message.
const SCISSORS: &str = " ------------------------ >8 ------------------------";

/// Returns the message of a commit: the user's text, then `trailers` as the last paragraph.
///
/// Trailers that end the user's text become part of that paragraph, so that they stay trailers. Line ends become LF,
/// white space around the text is removed, and lines that would end the message for git are indented. Everything else
/// stays, also lines that begin with `#`.
///
/// Fails when there is no text, when it holds NUL or lines of a record, and when a value of `trailers` is malformed.
pub(crate) fn render_message(text: &str, trailers: &Trailers) -> Result<String> {
    if text.contains('\0') {
        return Err(Failure::new("the commit message contains NUL, which git cannot store"));
    }
    let text = text.replace("\r\n", "\n");
    let lines: Vec<Cow<'_, str>> = text.trim_matches(is_space).split('\n').map(neutral).collect();
    if lines.concat().is_empty() {
        return Err(Failure::new("the commit message is empty"));
    }
    if lines.iter().any(|line| is_ours(line) && is_trailer(line)) {
        return Err(Failure::new(format!(
            "the commit message contains `{PREFIX}…` lines, which only this program may write"
        )));
    }
    // The first paragraph is the subject, whatever it looks like.
    let blank = lines.iter().rposition(|line| line.chars().all(is_space));
    let is_block = blank.is_some_and(|blank| is_trailer_block(&lines[blank + 1..]));
    let separator = if is_block { "\n" } else { "\n\n" };
    Ok([&lines.join("\n"), separator, &trailers.render()?].concat())
}

/// Returns the line as git takes it for text.
fn neutral(line: &str) -> Cow<'_, str> {
    let is_divider = line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(is_space));
    let is_cut = !line.starts_with(is_space) && line.ends_with(SCISSORS);
    if is_divider || is_cut { Cow::Owned(format!(" {line}")) } else { Cow::Borrowed(line) }
}

/// Returns whether git takes a paragraph for trailers, whatever its configuration is: every line is one, or goes on with
/// the one above.
fn is_trailer_block(lines: &[Cow<'_, str>]) -> bool {
    let mut others = lines.iter().filter(|line| !is_trailer(line));
    lines.first().is_some_and(|line| is_trailer(line)) && others.all(|line| line.starts_with(is_space))
}

/// Returns whether a line is `key: value` as git reads it: letters, digits and `-`, then space, then
/// the colon.
pub(super) fn is_trailer(line: &str) -> bool {
    line.split_once(':').is_some_and(|(key, value)| {
        let key = key.trim_end_matches([' ', '\t']);
        !key.is_empty()
            && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && !value.starts_with("//")
    })
}

/// Returns whether a trailer is one of a record. git ignores the case of keys.
pub(super) fn is_ours(line: &str) -> bool {
    line.split_at_checked(PREFIX.len()).is_some_and(|(start, _)| start.eq_ignore_ascii_case(PREFIX))
}

/// What git takes for white space, which is less than Unicode has.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
