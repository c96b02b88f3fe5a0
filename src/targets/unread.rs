//! What could not be read, and whether that keeps something from being deployed.

use std::collections::HashMap;

use super::Targets;
use crate::failure::Result;
use crate::kustomization::{Accepts, documents};
use crate::tree::{Tree, path};
use crate::walk::{Graph, Origin, Target as Leads};

/// What begins an action in the languages of Helm, Jinja and ERB.
const ACTIONS: [&str; 3] = ["{{", "{%", "<%"];

/// Why a template is not read.
const TEMPLATE: &str = "a template, which is filled in elsewhere";

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unread {
    /// The file, from the top of the repository.
    pub file: String,
    /// 1-based line; 0 for the whole file.
    pub line: usize,
    /// Why: a lower-case phrase.
    pub message: String,
    /// Whether it is a template: something else makes objects of it.
    pub is_template: bool,
    /// What to do where nothing is wrong with the file, but it cannot be read from here; none where that is not so.
    pub hints: Option<Vec<String>>,
}

impl Unread {
    pub(super) fn new(file: &str, line: usize, message: impl Into<String>) -> Unread {
        Unread {
            file: file.to_owned(),
            line,
            message: message.into(),
            is_template: false,
            hints: None,
        }
    }

    /// Notes whether it is a template.
    pub(super) fn tell_templates(all: &mut [Unread], tree: &dyn Tree) -> Result<()> {
        for unread in all.iter_mut().filter(|one| one.hints.is_none()) {
            if is_of_chart(&unread.file, tree)? || is_template(unread, tree) {
                unread.is_template = true;
                TEMPLATE.clone_into(&mut unread.message);
            }
        }
        Ok(())
    }
}

/// Returns whether a file is a template of a Helm chart.
fn is_of_chart(file: &str, tree: &dyn Tree) -> Result<bool> {
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

/// Returns whether a document holds actions of a template. In an ApplicationSet these are Argo CD's own.
fn is_template(unread: &Unread, tree: &dyn Tree) -> bool {
    let Ok(bytes) = tree.read(&unread.file) else {
        return false;
    };
    let text = String::from_utf8_lossy(&bytes);
    let mut documents = documents(&text);
    let document =
        documents.find(|(before, document)| unread.line <= before + document.lines().count());
    document.is_some_and(|(_, document)| {
        ACTIONS.iter().any(|action| document.contains(action))
            && !document
                .lines()
                .any(|line| line.trim_end() == "kind: ApplicationSet")
    })
}

impl Targets {
    /// Returns what could not be read, but is deployed as it is, for all that `graph` tells: what a root reads as a
    /// resource, and what no root reads but for templates. A root may read a file for something else, as a patch.
    pub fn unread_objects<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a Unread> {
        let mut read: HashMap<&str, bool> = HashMap::new();
        if !self.unread.is_empty() {
            for edge in graph.roots.iter().flat_map(|root| &root.edges) {
                if let Leads::File(file) = edge.target
                    && let Origin::Tree { source: 0, path } = &graph.files[file].origin
                {
                    *read.entry(path).or_default() |= edge.reference.accepts == Accepts::Either;
                }
            }
        }
        self.unread.iter().filter(move |unread| {
            let read = read.get(unread.file.as_str());
            read.copied().unwrap_or(!unread.is_template)
        })
    }
}
