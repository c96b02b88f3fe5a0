//! The lines that differ, for a person to read: limited in length.

use std::fmt::Write;
use std::time::Duration;

use similar::TextDiff;

/// How many lines are shown at most.
const LINES: usize = 100;
/// How many characters of a line are shown at most.
const WIDTH: usize = 200;
/// How much text is compared line by line at most, in bytes: beyond that it takes too long.
const LARGE: usize = 1 << 19;
/// How long lines of one object are compared: after that the diff is right, and longer than it has to be.
const PATIENCE: Duration = Duration::from_millis(300);

/// A diff that grows up to its limit.
#[derive(Default)]
pub(super) struct Limited {
    text: String,
    lines: usize,
    lines_left_out: usize,
    texts_left_out: usize,
}

impl Limited {
    /// Adds what differs between two texts.
    pub(super) fn add(&mut self, what: &str, before: &str, after: &str) {
        if before == after {
            return;
        }
        if self.lines >= LINES {
            self.texts_left_out += 1;
            return;
        }
        if before.len() + after.len() > LARGE {
            self.line(&format!("--- {what}: too large to show"));
            return;
        }
        let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(before, after);
        let mut unified = diff.unified_diff();
        let unified =
            unified.context_radius(2).header(&format!("original: {what}"), &format!("localized: {what}")).to_string();
        for line in unified.lines() {
            self.line(line);
        }
    }

    fn line(&mut self, line: &str) {
        if self.lines >= LINES {
            self.lines_left_out += 1;
            return;
        }
        self.lines += 1;
        let mut characters = line.chars();
        let shown: String = characters.by_ref().take(WIDTH).collect();
        let more = if characters.next().is_some() { "…" } else { "" };
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{shown}{more}");
    }

    /// Returns the text, which ends with how much was left out.
    pub(super) fn finish(mut self) -> String {
        let counted = |count: usize, what: &str| match count {
            0 => None,
            1 => Some(format!("1 {what}")),
            count => Some(format!("{count} {what}s")),
        };
        let more: Vec<String> =
            [counted(self.lines_left_out, "more line"), counted(self.texts_left_out, "more object")]
                .into_iter()
                .flatten()
                .collect();
        if !more.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(self.text, "({} not shown)", more.join(" and "));
        }
        self.text
    }
}
