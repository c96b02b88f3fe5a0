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

use super::trailers::Trailers;
use crate::message::failure::{Failure, Result};

/// What follows the comment character, whichever it is, in the line that cuts a message.
const SCISSORS: &str = " ------------------------ >8 ------------------------";

/// Returns the message of a commit: the user's text, then `trailers` as the last paragraph.
///
/// Trailers that end the user's text become part of that paragraph, so that they stay trailers;
/// among them, those of an earlier record are dropped. Line ends become LF, blank lines around the
/// text are removed, and lines that would end the message for git are indented. Everything else
/// stays, also lines that begin with `#`.
///
/// Fails when there is no text, when it holds NUL, and when a value of `trailers` is malformed.
pub(crate) fn render_message(subject_and_body: &str, trailers: &Trailers) -> Result<String> {
    if subject_and_body.contains('\0') {
        return Err(Failure::new("the commit message holds NUL, which git cannot store"));
    }
    let text = subject_and_body.replace("\r\n", "\n");
    let lines: Vec<Cow<'_, str>> = text.split('\n').map(neutral).collect();
    let (body, last) = split(&lines);
    if body.is_empty() {
        return Err(Failure::new("the commit message is empty"));
    }
    let mut message = body.join("\n");
    message.push_str("\n\n");
    for line in last {
        message.push_str(line);
        message.push('\n');
    }
    message.push_str(&trailers.render()?);
    Ok(message)
}

/// Returns the line as git takes it for text.
fn neutral(line: &str) -> Cow<'_, str> {
    let is_divider = line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with(is_space));
    let is_cut = !line.starts_with(is_space) && line.ends_with(SCISSORS);
    if is_divider || is_cut { Cow::Owned(format!(" {line}")) } else { Cow::Borrowed(line) }
}

/// Splits text into what comes first, and the trailers that end it. Blank lines before, between and
/// after are left out.
fn split<'a>(lines: &'a [Cow<'_, str>]) -> (Vec<&'a str>, Vec<&'a str>) {
    let lines: Vec<&str> = lines.iter().map(|line| &**line).collect();
    let body = trimmed(&lines);
    let Some(blank) = body.iter().rposition(|line| is_blank(line)) else {
        // The first paragraph is the subject, whatever it looks like.
        return (body.to_vec(), Vec::new());
    };
    let (before, last) = body.split_at(blank);
    let last = last.get(1..).unwrap_or_default();
    if is_trailer_block(last) { (trimmed(before).to_vec(), without_ours(last)) } else { (body.to_vec(), Vec::new()) }
}

/// Returns the lines between the first and the last that are not blank.
fn trimmed<'s, 'a>(lines: &'s [&'a str]) -> &'s [&'a str] {
    let start = lines.iter().position(|line| !is_blank(line));
    let end = lines.iter().rposition(|line| !is_blank(line));
    match (start, end) {
        (Some(start), Some(end)) => lines.get(start..=end).unwrap_or_default(),
        _ => &[],
    }
}

/// Returns whether git takes a paragraph for trailers, whatever its configuration is.
///
/// A comment counts as prose, since what begins one is configured, and so does a line that is a URL.
fn is_trailer_block(lines: &[&str]) -> bool {
    let mut trailers = 0;
    let mut others = 0;
    let mut is_generated = false;
    let mut continues = false;
    for line in lines {
        if line.starts_with(is_space) {
            others += usize::from(!continues);
            continue;
        }
        let is_by_git = line.starts_with("Signed-off-by: ") || line.starts_with("(cherry picked from commit ");
        is_generated |= is_by_git;
        continues = is_by_git || is_trailer(line);
        if continues {
            trailers += 1;
        } else {
            others += 1;
        }
    }
    trailers > 0 && (others == 0 || is_generated && trailers * 3 >= others)
}

/// Returns the lines of a paragraph without our trailers and their continuation lines.
fn without_ours<'a>(lines: &[&'a str]) -> Vec<&'a str> {
    let mut dropping = false;
    lines
        .iter()
        .filter(|line| {
            if !line.starts_with(is_space) {
                dropping = is_ours(line);
            }
            !dropping
        })
        .copied()
        .collect()
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
    line.split_at_checked(super::trailers::PREFIX.len())
        .is_some_and(|(start, _)| start.eq_ignore_ascii_case(super::trailers::PREFIX))
}

fn is_blank(line: &str) -> bool {
    line.chars().all(is_space)
}

/// What git takes for white space, which is less than Unicode has.
fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}
