//! Where a node stands: in the document, and for the person who looks at the file.

use std::rc::Rc;

use super::Found;
use crate::kustomization::yaml::{Literal, Node, NodeId, Stream};
use crate::kustomization::{Problem, ProblemKind, Spot};

/// A node and the way to it: one index for each pair or item below the root, through aliases and merge keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::kustomization) struct Place {
    /// The node as it stands there; an alias is not followed.
    pub node: NodeId,
    pub path: Vec<usize>,
}

impl Place {
    pub(crate) fn root(node: NodeId) -> Self {
        Place {
            node,
            path: Vec::new(),
        }
    }

    pub(crate) fn child(&self, node: NodeId, step: usize) -> Self {
        let mut path = Vec::with_capacity(self.path.len() + 1);
        path.extend_from_slice(&self.path);
        path.push(step);
        Place { node, path }
    }
}

/// Turns nodes of a stream into positions in the file, and spots in the stream into spots in the file.
#[derive(Debug, Clone)]
pub(in crate::kustomization) struct Whereabouts<'s> {
    stream: &'s Stream<'s>,
    outer: Option<Rc<Outer>>,
    prefix: String,
}

/// The scalar that holds the stream.
#[derive(Debug, Clone)]
struct Outer {
    spot: Spot,
    literal: Option<Literal>,
    start: (usize, usize),
    end: (usize, usize),
    /// The scalar that holds this one, where the stream around it is not a file either.
    above: Option<Rc<Outer>>,
}

impl Outer {
    /// Returns the position in the file of one in the stream; `whole` if lines are unknown.
    fn position(
        &self,
        (line, column): (usize, usize),
        whole: &impl Fn(&Outer) -> (usize, usize),
    ) -> (usize, usize) {
        let Some(literal) = &self.literal else {
            return whole(self);
        };
        let outside = (literal.first_line + line - 1, literal.indent + column);
        match &self.above {
            Some(above) => above.position(outside, whole),
            None => outside,
        }
    }
}

/// Puts a spot into the innermost scalar of another one.
fn inside(outer: &Spot, spot: Spot) -> Spot {
    let inner = match &outer.inner {
        Some(deeper) => inside(deeper, spot),
        None => spot,
    };
    Spot {
        inner: Some(Box::new(inner)),
        ..outer.clone()
    }
}

impl<'s> Whereabouts<'s> {
    /// The stream is the file.
    pub(crate) fn file(stream: &'s Stream<'s>) -> Self {
        Whereabouts {
            stream,
            outer: None,
            prefix: String::new(),
        }
    }

    /// The stream is the value of `node`. `content` is that node, unless what stands there is an alias.
    pub(crate) fn nested<'i>(
        &self,
        node: &Node,
        content: Option<&Node>,
        inner: &'i Stream<'i>,
        spot: Spot,
    ) -> Whereabouts<'i> {
        Whereabouts {
            stream: inner,
            outer: Some(Rc::new(Outer {
                spot,
                literal: content.and_then(|node| Literal::find(self.stream, node)),
                start: self.start(node),
                end: self.end(node),
                above: self.outer.clone(),
            })),
            prefix: String::new(),
        }
    }

    /// Puts something before every field.
    pub(crate) fn within(&self, prefix: &str) -> Self {
        Whereabouts {
            prefix: prefix.to_owned(),
            ..self.clone()
        }
    }

    /// Returns the field, ready to be shown.
    pub(crate) fn label(&self, field: &str) -> String {
        if field.is_empty() {
            self.prefix.clone()
        } else {
            super::join(&self.prefix, field)
        }
    }

    /// Adds a problem at a place in the stream.
    pub(crate) fn problem(
        &self,
        start: (usize, usize),
        field: &str,
        kind: ProblemKind,
        message: String,
        hints: Vec<String>,
        found: &mut Found,
    ) {
        if !found.has_room() {
            return;
        }
        let (line, column) = self.outside(start, |outer| outer.start);
        found.problems.push(Problem {
            line,
            column,
            field: self.label(field),
            message,
            hints,
            kind,
        });
    }

    /// Returns line and column of the first character of a node.
    pub(crate) fn start(&self, node: &Node) -> (usize, usize) {
        self.outside(node.start, |outer| outer.start)
    }

    /// Returns line and column after the last character of a scalar or alias.
    pub(crate) fn end(&self, node: &Node) -> (usize, usize) {
        self.outside(self.stream.end_position(node), |outer| outer.end)
    }

    fn outside(
        &self,
        (line, column): (usize, usize),
        whole: impl Fn(&Outer) -> (usize, usize),
    ) -> (usize, usize) {
        match &self.outer {
            None => (line, column),
            Some(outer) => outer.position((line, column), &whole),
        }
    }

    /// Returns the spot in the file for one in the stream.
    pub(crate) fn spot(&self, spot: Spot) -> Spot {
        match &self.outer {
            None => spot,
            Some(outer) => inside(&outer.spot, spot),
        }
    }
}
