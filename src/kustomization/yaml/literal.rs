//! The lines of a literal block scalar, so that what is inside has a place outside.

use super::{Node, NodeKind, Stream, Style};

/// A literal block scalar (`|`) whose every line is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kustomization) struct Literal {
    /// 1-based line of the text that holds the first line of the value.
    pub first_line: usize,
    /// Bytes before the content in each line; all of them blanks.
    pub indent: usize,
    /// For each line of the value: the byte offset of its content in the text.
    starts: Vec<usize>,
    /// For each line of the value: its byte offset in the value.
    value_starts: Vec<usize>,
}

impl Literal {
    /// Finds the lines of a node in the text; `None` if it is not a literal block scalar, or its lines
    /// cannot be matched one by one.
    pub(crate) fn find(stream: &Stream<'_>, node: &Node) -> Option<Self> {
        let NodeKind::Scalar {
            value,
            style: Style::Literal,
        } = &node.kind
        else {
            return None;
        };
        let (content_line, _) = stream.position(node.range.start);
        // The value may begin with empty lines, which the range does not cover.
        let leading = value.len() - value.trim_start_matches('\n').len();
        let first_line = content_line.checked_sub(leading)?;
        let line_text = |line: usize| -> Option<&str> {
            let start = stream.line_start(line)?;
            let end = stream.line_start(line + 1).unwrap_or(stream.text.len());
            Some(stream.text.get(start..end)?.trim_end_matches(['\n', '\r']))
        };
        let lines: Vec<&str> = value.split('\n').collect();
        let filled = lines.iter().position(|line| !line.is_empty())?;
        let source = line_text(first_line + filled)?;
        let indent = source.strip_suffix(lines[filled])?.len();
        let mut literal = Literal {
            first_line,
            indent,
            starts: Vec::with_capacity(lines.len()),
            value_starts: Vec::with_capacity(lines.len()),
        };
        let mut value_start = 0;
        for (i, line) in lines.iter().enumerate() {
            let last = i + 1 == lines.len();
            if last && line.is_empty() {
                break;
            }
            let source = line_text(first_line + i)?;
            let before = source.strip_suffix(line)?;
            let blank = before.bytes().all(|b| b == b' ');
            if !blank || (!line.is_empty() && before.len() != indent) {
                return None;
            }
            let start = stream.line_start(first_line + i)?;
            literal.starts.push(start + before.len());
            literal.value_starts.push(value_start);
            value_start += line.len() + 1;
        }
        Some(literal)
    }

    /// Returns where a byte of the value stands in the text.
    pub(crate) fn offset(&self, value_offset: usize) -> Option<usize> {
        let line = self
            .value_starts
            .partition_point(|start| *start <= value_offset)
            .checked_sub(1)?;
        Some(self.starts.get(line)? + (value_offset - self.value_starts.get(line)?))
    }
}
