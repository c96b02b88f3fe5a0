//! The texts about which no two readers of YAML disagree, read in one pass.
//!
//! Most kustomizations hold nothing but block mappings and block sequences of scalars that stand on one
//! line, in printable ASCII. For such a text the parser and the second opinion find the same, so neither is
//! asked: they take ten times as long, for 10,000 kustomizations more than the whole of `check` may take
//! (`tests/bench/check.rs`). Whatever is not plainly of that shape (`None`) is left to them, also when it is an
//! error. In detail:
//!
//! - Every line but comments, empty lines and one `---` at the beginning is `KEY:`, `KEY: SCALAR`, or one of
//!   these or `SCALAR` after `- `. `KEY:` is followed by what it holds.
//! - A line begins exactly where the mapping or sequence that it continues began, or where a new one may
//!   begin; so no line continues a scalar.
//! - A scalar is plain and begins with a character that can begin nothing else, or it is in quotes with
//!   neither escapes nor doubled quotes.

use crate::limits::NODES;

use super::{Document, Lines, Node, NodeId, NodeKind, Stream, Style};

/// Longer keys are no keys, for some readers.
const LONGEST_LINE: usize = 1000;

/// Deeper nesting is left to the readers that know where to stop.
const DEEPEST: usize = 50;

/// Reads a text of one simple document.
pub(super) fn read(text: &str) -> Option<Stream<'_>> {
    let mut reader = Reader {
        // About the number in a typical kustomization; a bad guess does no harm.
        nodes: Vec::with_capacity((text.len() / 12).min(256)),
        open: Vec::new(),
        key: None,
    };
    let mut offset = 0;
    let mut marker = false;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        if reader.nodes.len() > NODES.most {
            return None;
        }
        let bytes = line.strip_suffix('\n').unwrap_or(line);
        if bytes.len() > LONGEST_LINE || !bytes.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
            return None;
        }
        if bytes.starts_with("---") || bytes.starts_with("...") {
            if bytes != "---" || marker || !reader.nodes.is_empty() {
                return None;
            }
            marker = true;
        } else {
            let content = bytes.trim_start_matches(' ');
            if !content.is_empty() && !content.starts_with('#') {
                let column = bytes.len() - content.len();
                reader.line(Cursor {
                    content,
                    column,
                    line: number + 1,
                    offset: offset + column,
                })?;
            }
        }
        offset += line.len();
    }
    if reader.key.is_some() || reader.nodes.is_empty() {
        return None;
    }
    Some(Stream {
        text,
        documents: vec![Document {
            nodes: reader.nodes,
        }],
        rest: None,
        repeated_anchor: false,
        lines: Lines::new(text),
    })
}

/// What is left of a line, and where it stands.
#[derive(Clone, Copy)]
struct Cursor<'t> {
    content: &'t str,
    /// 0-based.
    column: usize,
    /// 1-based.
    line: usize,
    offset: usize,
}

impl<'t> Cursor<'t> {
    /// Goes on after `length` characters and the spaces behind them.
    fn skip(self, length: usize) -> Option<Cursor<'t>> {
        let rest = self.content.get(length..)?;
        let content = rest.trim_start_matches(' ');
        let length = length + rest.len() - content.len();
        Some(Cursor {
            content,
            column: self.column + length,
            offset: self.offset + length,
            ..self
        })
    }
}

/// A collection that may go on.
struct Open {
    column: usize,
    node: NodeId,
    is_sequence: bool,
}

struct Reader {
    nodes: Vec<Node>,
    open: Vec<Open>,
    /// The key that waits for its value.
    key: Option<NodeId>,
}

impl Reader {
    fn line(&mut self, at: Cursor<'_>) -> Option<()> {
        let is_item = at.content.starts_with("- ");
        match (self.open.last(), self.key) {
            (None, _) => {
                if at.column > 0 {
                    return None;
                }
                self.begin(at, is_item)?;
            }
            (Some(top), Some(_)) => {
                let deeper = at.column > top.column;
                let beside = is_item && at.column == top.column;
                if !(deeper || beside) {
                    return None;
                }
                self.begin(at, is_item)?;
            }
            (Some(_), None) => {
                while let Some(top) = self.open.last()
                    && (top.column > at.column
                        || (top.column == at.column && top.is_sequence && !is_item))
                {
                    self.open.pop();
                }
                let top = self.open.last()?;
                if top.column != at.column || top.is_sequence != is_item {
                    return None;
                }
            }
        }
        if !is_item {
            return self.pair(at);
        }
        let item = at.skip(2)?;
        match key(item.content) {
            Some(_) => {
                self.begin(item, false)?;
                self.pair(item)
            }
            None => {
                let item = self.scalar(item)?;
                self.attach(item)
            }
        }
    }

    /// Begins a collection as what comes next in the one that is open.
    fn begin(&mut self, at: Cursor<'_>, is_sequence: bool) -> Option<()> {
        let kind = if is_sequence {
            NodeKind::Sequence(Vec::new())
        } else {
            NodeKind::Mapping(Vec::new())
        };
        if self.open.len() == DEEPEST {
            return None;
        }
        // The parser sees a sequence begin behind its first dash where that stands below the key.
        let is_below_key = self.open.last().is_some_and(|top| top.column == at.column);
        let start = if is_below_key { at.skip(2)? } else { at };
        let node = self.add(kind, start, 0);
        if !self.open.is_empty() {
            self.attach(node)?;
        }
        self.open.push(Open {
            column: at.column,
            node,
            is_sequence,
        });
        Some(())
    }

    /// Makes a node the next item, or the value of the key that waits.
    fn attach(&mut self, node: NodeId) -> Option<()> {
        let parent = self.open.last()?.node;
        match &mut self.nodes.get_mut(parent)?.kind {
            NodeKind::Sequence(items) => items.push(node),
            NodeKind::Mapping(pairs) => pairs.push((self.key.take()?, node)),
            NodeKind::Scalar { .. } | NodeKind::Alias(_) => return None,
        }
        Some(())
    }

    /// Reads `KEY:` or `KEY: SCALAR`.
    fn pair(&mut self, at: Cursor<'_>) -> Option<()> {
        let name = key(at.content)?;
        let style = Style::Plain;
        let value = name.to_owned();
        self.key = Some(self.add(NodeKind::Scalar { value, style }, at, name.len()));
        let value = at.skip(name.len() + 1)?;
        if value.content.is_empty() || value.content.starts_with('#') {
            return Some(());
        }
        let value = self.scalar(value)?;
        self.attach(value)
    }

    /// Reads a scalar that goes to the end of the line.
    fn scalar(&mut self, at: Cursor<'_>) -> Option<NodeId> {
        let (value, length, style) = match at.content.as_bytes().first()? {
            quote @ (b'"' | b'\'') => {
                let inside = at.content.get(1..)?;
                let value = inside.get(..inside.find(char::from(*quote))?)?;
                let style = match quote {
                    b'"' => Style::Double,
                    _ => Style::Single,
                };
                let rest = inside.get(value.len() + 1..)?;
                let ends = rest.trim_start_matches(' ').is_empty() || is_comment(rest);
                if !ends || value.contains('\\') {
                    return None;
                }
                (value, value.len() + 2, style)
            }
            _ => {
                let value = plain(at.content)?;
                let rest = at.content.get(value.len()..)?;
                let ends = rest.trim_start_matches(' ').is_empty() || is_comment(rest);
                if !ends {
                    return None;
                }
                (value, value.len(), Style::Plain)
            }
        };
        let value = value.to_owned();
        Some(self.add(NodeKind::Scalar { value, style }, at, length))
    }

    fn add(&mut self, kind: NodeKind, at: Cursor<'_>, length: usize) -> NodeId {
        self.nodes.push(Node {
            kind,
            range: at.offset..at.offset + length,
            start: (at.line, at.column + 1),
            end: (at.line, at.column + 1 + length),
            in_flow: false,
            anchor: None,
            tag: None,
        });
        self.nodes.len() - 1
    }
}

/// Returns the key at the beginning of a line.
fn key(content: &str) -> Option<&str> {
    let name = plain(content)?;
    let rest = content.get(name.len()..)?;
    (rest == ":" || rest.starts_with(": ")).then_some(name)
}

/// Returns the plain scalar at the beginning of a text: to its end, a comment, or the colon after a key.
fn plain(content: &str) -> Option<&str> {
    let bytes = content.as_bytes();
    if !bytes
        .first()
        .is_some_and(|first| first.is_ascii_alphanumeric() || b"./_$(".contains(first))
    {
        return None;
    }
    let mut end = bytes.len();
    for (at, byte) in bytes.iter().enumerate() {
        let next = bytes.get(at + 1);
        let is_end = match byte {
            b':' => matches!(next, None | Some(b' ')),
            b' ' => next == Some(&b'#'),
            _ => false,
        };
        if is_end {
            end = at;
            break;
        }
    }
    Some(content.get(..end)?.trim_end_matches(' '))
}

fn is_comment(rest: &str) -> bool {
    rest.starts_with(' ') && rest.trim_start_matches(' ').starts_with('#')
}
