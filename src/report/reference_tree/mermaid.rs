//! The graph as a Mermaid flowchart, which GitHub and GitLab draw in Markdown.

use std::collections::BTreeSet;

use crate::reference_tree::{NodeKind, ReferenceTree};
use crate::report::visible;

/// Returns the graph as a Mermaid flowchart; empty where there is nothing to draw.
pub(crate) fn mermaid(reference_tree: &ReferenceTree) -> String {
    if reference_tree.nodes.is_empty() {
        return String::new();
    }
    let mut drawn: BTreeSet<usize> = reference_tree.starts.iter().copied().collect();
    drawn.extend(reference_tree.links.iter().flat_map(|link| [link.from, link.to]));
    let mut out = String::from("flowchart LR\n");
    for id in drawn {
        let node = &reference_tree.nodes[id];
        let mut label = escape(&node.name);
        let state = node.state();
        if !state.is_empty() {
            label.push_str(&format!("<br>{}", escape(&state)));
        }
        let class = match &node.kind {
            NodeKind::Git { locked: None, .. } | NodeKind::Http { locked: None } | NodeKind::Chart { locked: None } => {
                ":::open"
            }
            NodeKind::Git { .. } | NodeKind::Http { .. } | NodeKind::Chart { .. } => ":::locked",
            NodeKind::Broken { .. } | NodeKind::Root { broken: Some(_), .. } => ":::broken",
            NodeKind::Root { .. } | NodeKind::File { .. } => "",
        };
        let [open, close] = match &node.kind {
            NodeKind::Root { .. } => ["[", "]"],
            NodeKind::Git { .. } | NodeKind::Http { .. } | NodeKind::Chart { .. } => ["([", "])"],
            NodeKind::File { .. } | NodeKind::Broken { .. } => ["(", ")"],
        };
        out.push_str(&format!("  n{id}{open}\"{label}\"{close}{class}\n"));
    }
    let mut seen = BTreeSet::new();
    for link in &reference_tree.links {
        if seen.insert((link.from, link.to)) {
            out.push_str(&format!("  n{} --> n{}\n", link.from, link.to));
        }
    }
    out.push_str("  classDef open stroke:#cf222e,stroke-width:2px\n");
    out.push_str("  classDef locked stroke:#1a7f37,stroke-width:2px\n");
    out.push_str("  classDef broken stroke:#cf222e,stroke-dasharray:4\n");
    out
}

/// Escapes text so that it stands between quotes and is not read as markup. Names come from files, and the picture is
/// shown on a page.
fn escape(text: &str) -> String {
    let mut out = String::new();
    for character in visible(text).chars() {
        match character {
            '"' | '#' | '<' | '>' | '&' | '`' | '\\' | '%' | ';' => {
                out.push_str(&format!("#{};", u32::from(character)));
            }
            other => out.push(other),
        }
    }
    out
}
