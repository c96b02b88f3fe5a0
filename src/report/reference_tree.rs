//! The reference graph: as `cargo tree` prints dependencies, as JSON, as a picture.

mod json;
mod mermaid;

pub(crate) use json::json;
pub(crate) use mermaid::mermaid;

use std::collections::HashSet;

use console::Style;

use super::visible;
use crate::reference_tree::{Node, NodeKind, ReferenceTree};

/// How text is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Look {
    /// With colour.
    pub color: bool,
    /// The width of the terminal, where there is one: longer lines are cut.
    pub width: Option<usize>,
}

/// Returns the graph as text: a tree below each start. What was shown before is marked with `(*)`.
pub(crate) fn text(reference_tree: &ReferenceTree, look: Look) -> String {
    let below = reference_tree.below();
    let mut shown = HashSet::new();
    let mut out = String::new();
    for start in &reference_tree.starts {
        if !out.is_empty() {
            out.push('\n');
        }
        // A work list, not recursion: how deep roots are nested is up to whoever wrote them.
        let mut todo = vec![Line { node: *start, prefix: String::new(), is_last: true, is_start: true }];
        while let Some(line) = todo.pop() {
            let children = &below[line.node];
            let again = !children.is_empty() && !shown.insert(line.node);
            let branch = match (line.is_start, line.is_last) {
                (true, _) => "",
                (false, true) => "└── ",
                (false, false) => "├── ",
            };
            let mark = if again { " (*)" } else { "" };
            let label = styled(&reference_tree.nodes[line.node], look);
            let frame = style(look).dim().apply_to(format!("{}{branch}", line.prefix));
            out.push_str(&cut(&format!("{frame}{label}{mark}"), look));
            if again {
                continue;
            }
            let indent = match (line.is_start, line.is_last) {
                (true, _) => "",
                (false, true) => "    ",
                (false, false) => "│   ",
            };
            for (index, child) in children.iter().enumerate().rev() {
                todo.push(Line {
                    node: *child,
                    prefix: format!("{}{indent}", line.prefix),
                    is_last: index + 1 == children.len(),
                    is_start: false,
                });
            }
        }
    }
    out
}

/// A line that waits to be written.
struct Line {
    node: usize,
    prefix: String,
    is_last: bool,
    is_start: bool,
}

fn style(look: Look) -> Style {
    Style::new().force_styling(look.color)
}

/// Returns a line with its end, no longer than a terminal is wide.
fn cut(line: &str, look: Look) -> String {
    match look.width {
        Some(width) => format!("{}\n", console::truncate_str(line, width, "…")),
        None => format!("{line}\n"),
    }
}

/// Returns what a node is called, in the colour of its state: red is what a build would fetch or cannot read, green what
/// is locked.
fn styled(node: &Node, look: Look) -> String {
    let name = visible(&node.name);
    let state = node.state();
    let plain = style(look);
    let by_lock = |is_locked: bool| {
        if is_locked { style(look).green() } else { style(look).red() }
    };
    let colored = match &node.kind {
        NodeKind::Git { locked, .. } | NodeKind::Http { locked } | NodeKind::Chart { locked } => {
            by_lock(locked.is_some())
        }
        NodeKind::Broken { .. } | NodeKind::Root { broken: Some(_), .. } => plain.red(),
        NodeKind::Root { .. } => plain.bold(),
        NodeKind::File { .. } => plain,
    };
    let name = colored.apply_to(name);
    if state.is_empty() {
        name.to_string()
    } else {
        let state = style(look).dim().apply_to(format!("({})", visible(&state)));
        format!("{name} {state}")
    }
}

#[cfg(test)]
mod tests;
