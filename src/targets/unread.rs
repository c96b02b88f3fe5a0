//! What could not be read, and whether that keeps something from being deployed.

use std::collections::{BTreeMap, HashMap};

use super::{Targets, declared};
use crate::graph::Graph;
use crate::kustomization::{Accepts, documents};
use crate::message::failure::Result;
use crate::tree::{Tree, path};

/// What begins an action in the languages of Helm, Jinja and ERB.
const ACTIONS: [&str; 3] = ["{{", "{%", "<%"];

/// What begins a directive of Terraform, but also a field in the patterns of Logstash and grok.
const DIRECTIVE: &str = "%{";

/// Why a template is not read.
const TEMPLATE: &str = "a template, which is filled in elsewhere";

/// Something that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Unread {
    /// The file, from the top of the repository.
    pub file: String,
    /// 1-based line; 0 for the whole file.
    pub line: usize,
    /// Why: a lower-case phrase.
    pub message: String,
    /// What sort of reason that is.
    pub why: Why,
}

/// Why something could not be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Why {
    /// Its text is not YAML.
    NotYaml,
    /// A value has the wrong type, or is a broken pattern.
    WrongType,
    /// It is a template: something else makes objects of it.
    Template,
    /// Nothing is wrong with it, but it is not here. With what to do.
    Away(Vec<String>),
    /// It is too much, or what a build made of it cannot be read.
    Limit,
}

impl Unread {
    /// Returns a value that is wrong.
    pub(super) fn wrong(file: &str, line: usize, message: impl Into<String>) -> Unread {
        Unread { file: file.to_owned(), line, message: message.into(), why: Why::WrongType }
    }

    pub(super) fn not_yaml(file: &str, line: usize, message: impl Into<String>) -> Unread {
        Unread { why: Why::NotYaml, ..Unread::wrong(file, line, message) }
    }

    pub(super) fn too_much(file: &str, line: usize, message: String) -> Unread {
        Unread { why: Why::Limit, ..Unread::wrong(file, line, message) }
    }

    /// Notes which of them are templates.
    pub(super) fn tell_templates(all: &mut [Unread], tree: &dyn Tree) -> Result<()> {
        let mut by_file: BTreeMap<String, Vec<&mut Unread>> = BTreeMap::new();
        for unread in all {
            if matches!(unread.why, Why::NotYaml | Why::WrongType) {
                by_file.entry(unread.file.clone()).or_default().push(unread);
            }
        }
        for (file, all) in by_file {
            let is_of_chart = is_of_chart(&file, tree)?;
            let bytes = tree.read(&file).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            let templates = Templates::of(&text);
            for unread in all {
                if is_of_chart || templates.has(unread) {
                    unread.why = Why::Template;
                    TEMPLATE.clone_into(&mut unread.message);
                }
            }
        }
        Ok(())
    }
}

/// Which parts of a file hold actions of a template.
struct Templates<'a> {
    lines: Vec<&'a str>,
    /// The last line of each document, and whether it is a template.
    documents: Vec<(usize, bool)>,
}

impl<'a> Templates<'a> {
    fn of(text: &'a str) -> Templates<'a> {
        let documents = documents(text).map(|(before, document)| {
            // There these are Argo CD's own.
            let is_template = document.lines().any(has_action) && !declared::is_application_set(document);
            (before + document.lines().count(), is_template)
        });
        Templates { documents: documents.collect(), lines: text.lines().collect() }
    }

    /// Returns whether what could not be read is one: the document that is not YAML, or the line with the wrong value.
    fn has(&self, unread: &Unread) -> bool {
        let index = self.documents.partition_point(|(last, _)| *last < unread.line);
        let is_template = self.documents.get(index).is_some_and(|(_, is_one)| *is_one);
        let line = unread.line.checked_sub(1).and_then(|line| self.lines.get(line));
        is_template && (unread.why == Why::NotYaml || line.is_some_and(|line| has_action(line)))
    }
}

fn has_action(line: &str) -> bool {
    let line = declared::without_comment(line);
    let mut after = line.split(DIRECTIVE).skip(1);
    ACTIONS.iter().any(|action| line.contains(action)) || after.any(is_directive)
}

/// Returns whether a text goes on as a directive of Terraform does behind its `%{`.
fn is_directive(text: &str) -> bool {
    let text = text.strip_prefix('~').unwrap_or(text).trim_start();
    let (word, rest) = text.split_at(text.find(|one| !is_of_name(one)).unwrap_or(text.len()));
    match word {
        "if" | "for" => rest.starts_with([' ', '\t', '(', '!', '"']),
        "else" | "endif" | "endfor" => {
            let rest = rest.trim_start();
            rest.strip_prefix('~').unwrap_or(rest).starts_with('}')
        }
        _ => false,
    }
}

fn is_of_name(character: char) -> bool {
    character.is_alphanumeric() || "_-".contains(character)
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

impl Targets {
    /// Returns what could not be read, but is deployed as it is, for all that `graph` tells: what a root reads as a
    /// resource, and what no root reads but for templates. A root may read a file for something else, as a patch.
    pub(crate) fn unread_objects<'a>(&'a self, graph: &'a Graph) -> impl Iterator<Item = &'a Unread> {
        let mut read: HashMap<&str, bool> = HashMap::new();
        if !self.unread.is_empty() {
            for edge in graph.roots.iter().flat_map(|root| &root.edges) {
                if let Some(path) = graph.own_file(edge) {
                    *read.entry(path).or_default() |= edge.reference.accepts == Accepts::Either;
                }
            }
        }
        self.unread.iter().filter(move |unread| {
            let read = read.get(unread.file.as_str());
            read.copied().unwrap_or(unread.why != Why::Template)
        })
    }
}
