//! The lines of a literal block scalar, so that what is inside has a place in the file.

use std::ops::Range;

use super::yaml::{Data, Style, Value};

/// The lines of a literal block scalar (`|`): where each begins in its value, and its content in the text around it.
#[derive(Debug)]
pub(super) struct Lines {
    first_line: usize,
    indent: usize,
    /// Byte in the value, byte in the text.
    starts: Vec<(usize, usize)>,
}

impl Lines {
    /// Finds the lines of a value in the text; none if it is no literal block scalar, or they do not match one by one.
    pub(super) fn find(text: &str, value: &Value) -> Option<Self> {
        let Data::Text(inner) = &value.data else {
            return None;
        };
        if value.style != Style::Literal || value.alias_of.is_some() {
            return None;
        }
        let mut at = text.get(..value.range.start)?.rfind('\n').map_or(0, |at| at + 1);
        let indent = value.range.start - at;
        let mut lines = Lines { first_line: value.line, indent, starts: Vec::new() };
        let mut start = 0;
        for line in inner.split_inclusive('\n') {
            let source = text.get(at..)?.split_inclusive('\n').next()?;
            let content = line.trim_end_matches('\n');
            let before = source.trim_end_matches(['\n', '\r']).strip_suffix(content)?;
            if !before.bytes().all(|b| b == b' ') || (!content.is_empty() && before.len() != indent) {
                return None;
            }
            lines.starts.push((start, at + before.len()));
            start += line.len();
            at += source.len();
        }
        Some(lines)
    }

    /// Returns where a place of the value is in the text.
    pub(super) fn place(&self, (line, column): (usize, usize)) -> (usize, usize) {
        (self.first_line + line - 1, self.indent + column)
    }

    /// Returns where bytes of the value are in the text.
    pub(super) fn outer(&self, range: &Range<usize>) -> Option<Range<usize>> {
        let outer = |at: usize| {
            let line = self.starts.partition_point(|(start, _)| *start <= at).checked_sub(1)?;
            let (start, outer) = self.starts.get(line)?;
            Some(outer + (at - start))
        };
        Some(outer(range.start)?..outer(range.end)?)
    }
}

/// The scalar that holds a text, where that is no file.
#[derive(Debug)]
pub(super) struct Within<'a> {
    pub above: Option<&'a Within<'a>>,
    /// Those of the scalar; none if nothing in it has a place of its own.
    pub lines: Option<Lines>,
    /// The bytes of each scalar around the text, from the file inwards.
    pub ranges: Vec<Range<usize>>,
    pub start: (usize, usize),
    pub end: (usize, usize),
}

impl Within<'_> {
    /// Returns a place in the file; `whole` says what it is of a scalar whose lines are unknown.
    pub(super) fn place(&self, place: (usize, usize), whole: &dyn Fn(&Within<'_>) -> (usize, usize)) -> (usize, usize) {
        let outside = self.lines.as_ref().map_or_else(|| whole(self), |lines| lines.place(place));
        self.above.map_or(outside, |above| above.place(outside, whole))
    }
}
