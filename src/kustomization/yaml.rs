//! YAML documents as an arena of nodes that know their bytes.

mod literal;
mod scalar;
mod simple;

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use granit_parser::{Event, Options, Parser, ScalarStyle, ScanError, Span, StructureStyle};

use crate::limits::NODES;

pub(super) use literal::Literal;
pub(super) use scalar::{Dialect, Type, plain_type};

/// As many bytes of a scalar count as a node.
const LONG: usize = 100;

/// Index of a node in its [`Document`].
pub(super) type NodeId = usize;

/// A text and the documents that were read from it.
#[derive(Debug)]
pub(super) struct Stream<'t> {
    pub text: &'t str,
    pub documents: Vec<Document>,
    /// Where something begins that was not read, because as many documents as requested were.
    pub rest: Option<usize>,
    /// An anchor name is defined twice in one document.
    pub repeated_anchor: bool,
    lines: Lines,
}

/// The nodes of one document, parents before children, in the order of the text.
#[derive(Debug, Default)]
pub(super) struct Document {
    nodes: Vec<Node>,
}

/// One node.
#[derive(Debug)]
pub(super) struct Node {
    pub kind: NodeKind,
    /// The bytes of a scalar with its quotes, or of an alias with its `*`. Anchor and tag stand before it.
    /// Of a block scalar, from the first character of the content. Of a collection, only the start is of use.
    pub range: Range<usize>,
    /// Line and column (1-based, in characters) at which the range begins.
    pub start: (usize, usize),
    /// Line and column after the last character of a scalar or alias.
    pub end: (usize, usize),
    /// Inside `[]` or `{}`.
    pub in_flow: bool,
    /// The anchor that this node defines.
    pub anchor: Option<usize>,
    /// The resolved tag (`tag:yaml.org,2002:str`, `!local`).
    pub tag: Option<String>,
}

/// What a node is.
#[derive(Debug)]
pub(super) enum NodeKind {
    Scalar {
        value: String,
        style: Style,
    },
    Sequence(Vec<NodeId>),
    Mapping(Vec<(NodeId, NodeId)>),
    /// Stands for the node that is named.
    Alias(NodeId),
}

/// How a scalar is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

impl Style {
    /// Whether the scalar has a header line (`|`, `>`) and an indented body.
    pub(super) fn is_block(self) -> bool {
        matches!(self, Style::Literal | Style::Folded)
    }
}

/// Why a text is not YAML.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SyntaxError {
    /// 1-based.
    pub line: usize,
    /// 1-based, in characters.
    pub column: usize,
    pub message: String,
    pub is_too_large: bool,
}

impl SyntaxError {
    pub(super) fn new((line, column): (usize, usize), message: impl Into<String>) -> Self {
        SyntaxError {
            line,
            column,
            message: message.into(),
            is_too_large: false,
        }
    }
}

/// Byte offsets at which lines begin.
#[derive(Debug)]
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let bom = if text.starts_with('\u{feff}') { 3 } else { 0 };
        let mut starts = vec![bom];
        for (i, byte) in bytes.iter().enumerate() {
            let lone_return = *byte == b'\r' && bytes.get(i + 1) != Some(&b'\n');
            if *byte == b'\n' || lone_return {
                starts.push(i + 1);
            }
        }
        Lines(starts)
    }

    fn position(&self, text: &str, offset: usize) -> (usize, usize) {
        let line = self.0.partition_point(|start| *start <= offset).max(1);
        let start = self.0.get(line - 1).copied().unwrap_or(0);
        let column = text
            .get(start..offset)
            .map_or(0, |before| before.chars().count());
        (line, column + 1)
    }

    fn start(&self, line: usize) -> Option<usize> {
        self.0.get(line.checked_sub(1)?).copied()
    }
}

impl<'t> Stream<'t> {
    /// Reads up to `limit` documents. A byte order mark is allowed.
    pub(super) fn parse(text: &'t str, limit: usize) -> Result<Self, SyntaxError> {
        Stream::parse_until(text, text.len(), limit)
    }

    /// Reads up to `limit` documents as if the text ended at `end`.
    pub(super) fn parse_until(
        text: &'t str,
        end: usize,
        limit: usize,
    ) -> Result<Self, SyntaxError> {
        let mut stream = Stream {
            text,
            documents: Vec::new(),
            rest: None,
            repeated_anchor: false,
            lines: Lines::new(text),
        };
        let mut options = Options::default();
        options.set_emit_comments(false);
        options.emit_anchor_events = true;
        let mut events = Parser::new_from_str_with_options(&text[..end], options);
        let mut builder: Option<Builder> = None;
        let mut size = 0_usize;
        while let Some(next) = events.next_event() {
            let (event, span) = match next {
                Ok(next) => next,
                Err(error) => {
                    let at = error.marker().byte_offset();
                    if builder.is_none() && stream.documents.len() >= limit {
                        stream.rest = Some(at.unwrap_or(text.len()));
                        break;
                    }
                    let start = (error.marker().line(), error.marker().col() + 1);
                    return Err(SyntaxError::new(start, describe(&error)));
                }
            };
            match event {
                Event::StreamStart | Event::StreamEnd => {}
                Event::DocumentStart(..) => {
                    if stream.documents.len() >= limit {
                        stream.rest = Some(span.start.byte_offset().unwrap_or(text.len()));
                        break;
                    }
                    builder = Some(Builder::new(text, size));
                }
                Event::DocumentEnd => {
                    if let Some(done) = builder.take() {
                        size = done.size;
                        stream.repeated_anchor |= done.repeated_anchor;
                        stream.documents.push(done.document);
                    }
                }
                event => {
                    if let Some(builder) = &mut builder {
                        builder.event(event, &span).map_err(|message| {
                            let at = span.start.byte_offset().unwrap_or(0);
                            stream.error(at, message)
                        })?;
                        if builder.size > NODES.most {
                            let at = span.start.byte_offset().unwrap_or(0);
                            return Err(SyntaxError {
                                is_too_large: true,
                                ..stream.error(at, NODES.more())
                            });
                        }
                    }
                }
            }
        }
        Ok(stream)
    }

    /// Reads a text about which no two readers disagree; `None` for any other.
    pub(super) fn simple(text: &'t str) -> Option<Self> {
        simple::read(text)
    }

    /// Returns line and column (1-based, in characters) of a byte offset.
    pub(super) fn position(&self, offset: usize) -> (usize, usize) {
        self.lines.position(self.text, offset)
    }

    /// Returns the byte offset at which a 1-based line begins.
    pub(super) fn line_start(&self, line: usize) -> Option<usize> {
        self.lines.start(line)
    }

    /// Returns the byte offset after the last character of a scalar that is not a line break or blank.
    pub(super) fn scalar_end(&self, node: &Node) -> usize {
        match self.text.get(node.range.clone()) {
            Some(bytes) if node.is_block_scalar() => {
                node.range.start + bytes.trim_end_matches([' ', '\t', '\r', '\n']).len()
            }
            _ => node.range.end,
        }
    }

    /// Returns line and column of [`Stream::scalar_end`].
    pub(super) fn end_position(&self, node: &Node) -> (usize, usize) {
        if node.is_block_scalar() {
            self.position(self.scalar_end(node))
        } else {
            node.end
        }
    }

    fn error(&self, offset: usize, message: String) -> SyntaxError {
        SyntaxError::new(self.position(offset), message)
    }
}

impl Node {
    /// Whether it is a plain or quoted scalar, and no alias.
    pub(super) fn is_word(&self) -> bool {
        matches!(self.kind, NodeKind::Scalar { style, .. } if !style.is_block())
    }

    fn is_block_scalar(&self) -> bool {
        matches!(self.kind, NodeKind::Scalar { style, .. } if style.is_block())
    }
}

impl Document {
    /// Returns the root, unless the document is empty of nodes.
    pub(super) fn root(&self) -> Option<NodeId> {
        (!self.nodes.is_empty()).then_some(0)
    }

    /// Returns a node. Ids come from this document only.
    pub(super) fn node(&self, id: NodeId) -> &Node {
        &self.nodes[id]
    }

    /// Returns all nodes in the order of the text.
    pub(super) fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Follows an alias to what it stands for.
    pub(super) fn target(&self, id: NodeId) -> NodeId {
        match self.node(id).kind {
            // An alias names a node, never another alias.
            NodeKind::Alias(target) => target,
            _ => id,
        }
    }

    /// Returns the node that an id stands for.
    pub(super) fn resolved(&self, id: NodeId) -> &Node {
        self.node(self.target(id))
    }

    /// Returns the value of a scalar, through an alias.
    pub(super) fn scalar(&self, id: NodeId) -> Option<&str> {
        match &self.resolved(id).kind {
            NodeKind::Scalar { value, .. } => Some(value),
            _ => None,
        }
    }

    /// Returns the nodes that are keys of mappings.
    pub(super) fn keys(&self) -> HashSet<NodeId> {
        let keys = self.nodes.iter().flat_map(|node| match &node.kind {
            NodeKind::Mapping(pairs) => pairs.as_slice(),
            _ => &[],
        });
        keys.map(|(key, _)| *key).collect()
    }

    /// Returns the child that one step of a [`super::Spot`] leads to: the value of a pair or an item.
    pub(super) fn child(&self, id: NodeId, step: usize) -> Option<NodeId> {
        match &self.resolved(id).kind {
            NodeKind::Sequence(items) => items.get(step).copied(),
            NodeKind::Mapping(pairs) => pairs.get(step).map(|(_, value)| *value),
            _ => None,
        }
    }
}

/// Turns events into a [`Document`].
struct Builder<'t> {
    text: &'t str,
    document: Document,
    open: Vec<Open>,
    /// The nodes by the anchor ids of the parser.
    anchors: HashMap<usize, NodeId>,
    names: HashSet<String>,
    repeated_anchor: bool,
    /// How many nodes there are, in the documents before it too, with what aliases stand for.
    size: usize,
    /// How many nodes each anchor stands for.
    anchored: HashMap<NodeId, usize>,
}

/// A collection that is being filled.
struct Open {
    id: NodeId,
    flow: bool,
    /// The key whose value comes next.
    key: Option<NodeId>,
    /// How many nodes were there before it.
    before: usize,
}

impl<'t> Builder<'t> {
    fn new(text: &'t str, size: usize) -> Self {
        Builder {
            text,
            size,
            anchored: HashMap::new(),
            document: Document::default(),
            open: Vec::new(),
            anchors: HashMap::new(),
            names: HashSet::new(),
            repeated_anchor: false,
        }
    }

    fn event(&mut self, event: Event<'_>, span: &Span) -> Result<(), String> {
        let range = span.byte_range().unwrap_or(0..0);
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                let style = match style {
                    ScalarStyle::Plain => Style::Plain,
                    ScalarStyle::SingleQuoted => Style::Single,
                    ScalarStyle::DoubleQuoted => Style::Double,
                    ScalarStyle::Literal => Style::Literal,
                    ScalarStyle::Folded => Style::Folded,
                };
                let mut value = value.into_owned();
                if style == Style::Plain && range.is_empty() {
                    // The parser writes `~` for a value that is not there.
                    value.clear();
                }
                if style.is_block()
                    && range.end >= self.text.len()
                    && !self.text.ends_with(['\n', '\r'])
                {
                    // libyaml adds no line break that the file does not have.
                    if value.ends_with('\n') {
                        value.pop();
                    }
                }
                let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                self.add(NodeKind::Scalar { value, style }, span, anchor, tag);
            }
            Event::SequenceStart(style, anchor, tag) => {
                let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                let id = self.add(NodeKind::Sequence(Vec::new()), span, anchor, tag);
                self.push(id, style);
            }
            Event::MappingStart(style, anchor, tag) => {
                let tag = tag.map(|tag| format!("{}{}", tag.handle(), tag.suffix()));
                let id = self.add(NodeKind::Mapping(Vec::new()), span, anchor, tag);
                self.push(id, style);
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(done) = self.open.pop()
                    && self.document.node(done.id).anchor.is_some()
                {
                    self.anchored.insert(done.id, self.size - done.before);
                }
            }
            Event::Alias(anchor) => {
                let Some(target) = self.anchors.get(&anchor).copied() else {
                    return Err("alias of an anchor that is not known".to_owned());
                };
                if self.open.iter().any(|open| open.id == target) {
                    return Err("an anchor's value contains itself".to_owned());
                }
                self.size += self.anchored.get(&target).copied().unwrap_or_default();
                self.add(NodeKind::Alias(target), span, 0, None);
            }
            Event::Anchor(_, name) => {
                self.repeated_anchor |= !self.names.insert(name.into_owned());
            }
            other => return Err(format!("unexpected event {other:?}")),
        }
        Ok(())
    }

    fn push(&mut self, id: NodeId, style: StructureStyle) {
        self.open.push(Open {
            id,
            flow: style == StructureStyle::Flow,
            key: None,
            before: self.size - 1,
        });
    }

    fn add(&mut self, kind: NodeKind, span: &Span, anchor: usize, tag: Option<String>) -> NodeId {
        let id = self.document.nodes.len();
        let length = match &kind {
            NodeKind::Scalar { value, .. } => value.len(),
            _ => 0,
        };
        self.size += 1 + length / LONG;
        let anchor = (anchor != 0).then_some(anchor);
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
            self.anchored.insert(id, 1 + length / LONG);
        }
        self.document.nodes.push(Node {
            kind,
            range: span.byte_range().unwrap_or(0..0),
            start: (span.start.line(), span.start.col() + 1),
            end: (span.end.line(), span.end.col() + 1),
            in_flow: self.open.last().is_some_and(|open| open.flow),
            anchor,
            tag,
        });
        if let Some(parent) = self.open.last_mut() {
            match &mut self.document.nodes[parent.id].kind {
                NodeKind::Sequence(items) => items.push(id),
                NodeKind::Mapping(pairs) => match parent.key.take() {
                    Some(key) => pairs.push((key, id)),
                    None => parent.key = Some(id),
                },
                NodeKind::Scalar { .. } | NodeKind::Alias(_) => {}
            }
        }
        id
    }
}

/// Puts an error of the parser into words.
fn describe(error: &ScanError) -> String {
    let info = error.info();
    if !info.is_empty() {
        let mut chars = info.chars();
        let first = chars.next().map(|c| c.to_ascii_lowercase());
        return first.into_iter().chain(chars).collect();
    }
    // Some kinds come without words: `ExpectedBlockMappingKey`.
    let kind = format!("{:?}", error.kind());
    let name = kind.split(|c: char| !c.is_ascii_alphanumeric()).next();
    let mut words = String::new();
    for c in name.unwrap_or_default().chars() {
        if c.is_ascii_uppercase() && !words.is_empty() {
            words.push(' ');
        }
        words.push(c.to_ascii_lowercase());
    }
    words
}

#[cfg(test)]
mod tests;
