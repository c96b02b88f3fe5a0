//! Our lines in a message, wherever they ended up.

use super::{Key, PREFIX};
use crate::failure::{Failure, Result, shown};

/// The lines of one record: keys and values.
pub(super) type Lines = Vec<(Key, String)>;

/// Returns the lines of every record, newest first; nothing when no line is ours.
///
/// # Errors
/// When a line is malformed, or a record lacks one: only beside other records, as a squash leaves them, may one be
/// cut off.
pub(super) fn all(message: &str) -> Result<Vec<Lines>> {
    let Found { records, malformed } = found(message);
    if let Some(line) = malformed {
        return Err(Failure::new(format!(
            "the line `{}` of the commit message is not one of a record",
            shown(&line)
        ))
        .hint("a newer git-kustomize-localize may have written it: upgrade this one"));
    }
    let count = records.len();
    let mut complete: Vec<Record> = records.into_iter().filter(Record::is_complete).collect();
    if complete.len() < count.min(2) {
        return Err(incomplete());
    }
    let mut newest = Vec::new();
    while let Some(last) = complete.pop() {
        // A log is newest first.
        let is_same = |record: &Record| last.log.is_some() && record.log == last.log;
        let (same, others): (Vec<Record>, Vec<Record>) = complete.into_iter().partition(is_same);
        newest.extend(same.into_iter().map(|record| record.lines));
        newest.push(last.lines);
        complete = others;
    }
    Ok(newest)
}

/// Returns the failure for a message in which no record is whole.
pub(super) fn incomplete() -> Failure {
    Failure::new(format!(
        "the commit message holds `{PREFIX}…` lines, but no complete record"
    ))
    .hint("compare with the lock, which is the other copy of the record")
}

/// Lines that belong together.
struct Record {
    lines: Lines,
    /// Which log of `git merge --squash` they stand in.
    log: Option<usize>,
}

impl Record {
    fn is_complete(&self) -> bool {
        Key::REQUIRED.iter().all(|key| self.has(*key))
    }

    fn has(&self, key: Key) -> bool {
        self.lines.iter().any(|(other, _)| *other == key)
    }
}

/// What a message holds.
#[derive(Default)]
struct Found {
    /// All records, whole or not, in the order of the message.
    records: Vec<Record>,
    /// A line with our prefix that no record has.
    malformed: Option<String>,
}

fn found(message: &str) -> Found {
    let mut finder = Finder::default();
    for line in message.lines() {
        finder.line(line);
    }
    finder.end_record();
    finder.found
}

#[derive(Default)]
struct Finder {
    found: Found,
    /// The lines of the record that is being read.
    lines: Lines,
    /// What followed the last of these lines, and may be the rest of it: a hosting service that
    /// wraps text at a width (GitHub does when it squashes, at 72) breaks it between two fields.
    rest: Vec<String>,
    /// The log that the record stands in.
    record_log: Option<usize>,
    /// The log that the line stands in, and the number of logs so far.
    log: Option<usize>,
    logs: usize,
}

impl Finder {
    fn line(&mut self, line: &str) {
        self.follow_log(line);
        let text = without_marks(line);
        if text.is_empty() {
            self.end_record();
        } else if is_malformed(text) {
            self.found.malformed.get_or_insert_with(|| text.to_owned());
        } else if let Some((key, value)) = ours(text) {
            // The target is the first line, and only lists have more than one.
            let is_next = key == Key::Target
                || !key.is_list() && self.lines.iter().any(|(other, _)| *other == key);
            if is_next {
                self.end_record();
            } else {
                self.join_rest();
            }
            if self.lines.is_empty() {
                self.record_log = self.log.filter(|_| is_in_log(line));
            }
            self.lines.push((key, value.to_owned()));
        } else if !self.lines.is_empty() && !is_other_trailer(text) {
            self.rest.push(line.trim().to_owned());
        }
    }

    /// Follows where the log of `git merge --squash` begins and ends: `commit ID` and other headers
    /// stand at the margin, messages are indented by four.
    fn follow_log(&mut self, line: &str) {
        if line.is_empty() || is_in_log(line) {
            return;
        }
        let is_commit = line
            .strip_prefix("commit ")
            .and_then(|rest| rest.split(' ').next())
            .is_some_and(crate::record::is_object_id);
        let is_header = [
            "Author:",
            "AuthorDate:",
            "Commit:",
            "CommitDate:",
            "Date:",
            "Merge:",
        ]
        .iter()
        .any(|header| line.starts_with(header));
        if is_commit && self.log.is_none() {
            self.logs += 1;
            self.log = Some(self.logs);
        } else if !is_commit && !is_header {
            self.log = None;
        }
    }

    fn join_rest(&mut self) {
        if let Some((_, value)) = self.lines.last_mut() {
            for rest in self.rest.drain(..) {
                if !value.is_empty() {
                    value.push(' ');
                }
                value.push_str(&rest);
            }
        }
        self.rest.clear();
    }

    fn end_record(&mut self) {
        // After the last line, the rest of it cannot be told apart from prose, unless it is empty.
        if let (Some((_, value)), Some(rest)) = (self.lines.last_mut(), self.rest.first())
            && value.is_empty()
        {
            value.push_str(rest);
        }
        self.rest.clear();
        if !self.lines.is_empty() {
            self.found.records.push(Record {
                lines: std::mem::take(&mut self.lines),
                log: self.record_log,
            });
        }
    }
}

/// Returns whether a line is indented as the messages in a log are.
fn is_in_log(line: &str) -> bool {
    line.starts_with("    ")
}

/// Returns a line without what a squash puts before it: indentation, the mark of a list or a quote.
fn without_marks(line: &str) -> &str {
    let line = line.trim();
    ["* ", "- ", "> "]
        .iter()
        .find_map(|mark| line.strip_prefix(mark))
        .unwrap_or(line)
        .trim_start()
}

/// Returns the key and the value of one of our lines.
fn ours(text: &str) -> Option<(Key, &str)> {
    let (name, value) = text.split_once(':')?;
    let name = name.strip_prefix(PREFIX)?;
    let key = Key::ALL.into_iter().find(|key| key.name() == name)?;
    Some((key, value.trim()))
}

/// Returns whether a line is a trailer with our prefix, but none that we write. git ignores the case of keys, and
/// spaces after them.
fn is_malformed(text: &str) -> bool {
    let is_key = |name: &str| {
        let is_ours = crate::record::message::is_ours(name);
        is_ours
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let name = text.split_once(':').map(|(name, _)| name.trim_end());
    name.is_some_and(is_key) && ours(text).is_none()
}

/// Returns whether a line is some other trailer. A digest (`gitCommit:…`) is not one.
fn is_other_trailer(text: &str) -> bool {
    text.split_once(": ").is_some_and(|(key, _)| {
        !key.is_empty()
            && key
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}
