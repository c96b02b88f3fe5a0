//! Positions in a file.

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

/// A line and a column, both from 1; columns count characters. Line 0 means the whole file, column 0 the whole line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    pub fn new(line: usize, column: usize) -> Position {
        Position { line, column }
    }
}

/// A range of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub start: Position,
    /// The position after the last character; of line 0 if only the start is known.
    pub end: Position,
}

impl Span {
    /// A span of which only the start is known.
    pub fn from(start: Position) -> Span {
        Span { start, end: Position::default() }
    }
}

/// Writes four keys; callers flatten them into their own.
impl Serialize for Span {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Span { start, end } = self;
        let mut keys = serializer.serialize_struct("Span", 4)?;
        keys.serialize_field("line", &start.line)?;
        keys.serialize_field("column", &start.column)?;
        keys.serialize_field("end_line", &end.line)?;
        keys.serialize_field("end_column", &end.column)?;
        keys.end()
    }
}
