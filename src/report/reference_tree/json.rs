//! The graph for machines. Fields are only ever added; `version` changes if one goes away.

use serde::Serialize;

use crate::record::Digest;
use crate::reference_tree::{NodeKind, ReferenceTree};
use crate::report::json::{TOOL, Tool, render};

#[derive(Serialize)]
struct JsonOutline<'a> {
    version: u32,
    tool: Tool,
    /// Indices into `nodes`.
    starts: &'a [usize],
    nodes: Vec<JsonNode<'a>>,
    references: Vec<JsonLink<'a>>,
}

#[derive(Serialize)]
struct JsonNode<'a> {
    name: &'a str,
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    localized: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#ref: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pin: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    commit: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sha256: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    locked: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why: Option<&'static str>,
}

#[derive(Serialize)]
struct JsonLink<'a> {
    from: usize,
    to: usize,
    path: &'a str,
    line: usize,
    column: usize,
    field: &'a str,
    reference: &'a str,
}

/// Returns the graph as one JSON object.
#[must_use]
pub fn json(reference_tree: &ReferenceTree) -> String {
    render(&JsonOutline {
        version: 1,
        tool: TOOL,
        starts: &reference_tree.starts,
        nodes: reference_tree
            .nodes
            .iter()
            .map(|node| of(&node.name, &node.kind))
            .collect(),
        references: reference_tree
            .links
            .iter()
            .map(|link| JsonLink {
                from: link.from,
                to: link.to,
                path: &link.file,
                line: link.line,
                column: link.column,
                field: &link.field,
                reference: &link.reference,
            })
            .collect(),
    })
}

fn of<'a>(name: &'a str, kind: &'a NodeKind) -> JsonNode<'a> {
    let plain = JsonNode {
        name,
        kind: "",
        localized: None,
        r#ref: None,
        pin: None,
        commit: None,
        sha256: None,
        locked: None,
        why: None,
    };
    match kind {
        NodeKind::Root {
            component,
            localized,
            broken,
        } => JsonNode {
            kind: if *component {
                "component"
            } else {
                "kustomization"
            },
            localized: localized.as_deref(),
            why: *broken,
            ..plain
        },
        NodeKind::File { localized } => JsonNode {
            kind: "file",
            localized: localized.as_deref(),
            ..plain
        },
        NodeKind::Git {
            reference,
            pin,
            locked,
        } => JsonNode {
            kind: "git",
            r#ref: reference.as_deref(),
            pin: Some(pin.name()),
            commit: locked.as_ref().map(Digest::hex),
            locked: Some(locked.is_some()),
            ..plain
        },
        NodeKind::Http { locked } => JsonNode {
            kind: "http",
            sha256: locked.as_ref().map(Digest::hex),
            locked: Some(locked.is_some()),
            ..plain
        },
        NodeKind::Chart { locked } => JsonNode {
            kind: "chart",
            sha256: locked.as_ref().map(Digest::hex),
            locked: Some(locked.is_some()),
            ..plain
        },
        NodeKind::Broken(why) => JsonNode {
            kind: "broken",
            why: Some(why),
            ..plain
        },
    }
}
