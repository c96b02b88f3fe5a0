//! Files that could not be read, and whether they hide a deployment.

use std::collections::HashMap;

use serde::Serialize;

use super::Targets;
use crate::graph::Graph;
use crate::kustomization::Accepts;
use crate::message::failure::Result;
use crate::tree::{Tree, path};

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Unread {
    /// The file, from the top of the repository.
    pub file: String,
    /// 1-based line; 0 for the whole file.
    pub line: usize,
    /// Why: a lower-case phrase.
    pub message: String,
    /// The kind of reason.
    #[serde(skip)]
    pub why: Why,
}

impl Unread {
    pub(super) fn new(file: &str, line: usize, message: impl Into<String>, why: Why) -> Unread {
        Unread { file: file.to_owned(), line, message: message.into(), why }
    }

    /// A file that is invalid as an object; a template is not, because something else renders it first.
    pub(super) fn invalid(file: &str, line: usize, message: impl Into<String>, is_template: bool) -> Unread {
        if is_template {
            return Unread::new(file, line, "a template, which is rendered elsewhere", Why::Template);
        }
        Unread::new(file, line, message, Why::Invalid)
    }

    /// The location for messages.
    pub(crate) fn location_text(&self) -> String {
        match self.line {
            0 => self.file.clone(),
            line => format!("{}:{line}", self.file),
        }
    }
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// Its text is not YAML, or a value has the wrong type, or is a broken pattern.
    Invalid,
    /// It is a template: something else makes objects of it.
    Template,
    /// It is correct, but not available. With hints.
    Unavailable(Vec<String>),
    /// It exceeds a limit, or the output of a build cannot be read.
    Limit,
}

/// Whether a file is a template of a Helm chart: in or below `templates` beside a `Chart.yaml`.
pub(super) fn is_chart_template(file: &str, tree: &dyn Tree) -> Result<bool> {
    for directory in path::and_above(path::parent(file)) {
        if path::name(directory) == "templates" {
            let chart = path::join(path::parent(directory), "Chart.yaml");
            if tree.entry(&chart)?.is_some() {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The files that roots read, each with whether a root lists it as a resource: it may also be only a patch.
pub(super) fn read_as(graph: &Graph) -> HashMap<&str, bool> {
    let mut read: HashMap<&str, bool> = HashMap::new();
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        if let Some(path) = graph.user_file(edge) {
            *read.entry(path).or_default() |= edge.reference.accepts == Accepts::Either;
        }
    }
    read
}

impl Targets {
    /// The files that could not be read, but are deployed as they are, so that their deployments are unknown: by
    /// `graph`, the resources of roots, and files that no root reads, except for templates of charts that nothing
    /// deploys.
    pub(crate) fn unread_objects<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a Unread> {
        // Most trees have no such file, and the search looks at every reference.
        let read = if self.unread.is_empty() { HashMap::new() } else { read_as(graph) };
        self.unread.iter().filter(move |unread| {
            // A root may read a file in another role, for example as a patch.
            let read = read.get(unread.file.as_str());
            read.copied().unwrap_or_else(|| {
                unread.why != Why::Template || self.local_targets().any(|(target, dir)| target.takes(dir, &unread.file))
            })
        })
    }
}
