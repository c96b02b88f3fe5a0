//! What a rule looks at, and how it makes a finding of what it saw.

use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;

use super::deployed::Deployed;
use super::lines::Lines;
use super::remotes::{self, RemoteUse};
use super::{Input, finding};
use crate::config::Config;
use crate::graph::{At, Edge, Explored, FileId, Graph, Noted, Origin, Root, Trouble, TroubleKind};
use crate::kustomization::{FILE_NAMES, ProblemKind};
use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule, Severity, Span, Subject};
use crate::message::redact;
use crate::record::{Lock, stored};
use crate::targets::Targets;
use crate::tree::absence::Absences;
use crate::tree::{Entry, Tree, path};

/// How long a line is that people look at, in bytes.
const LONGEST_LINE: usize = 10_000;

/// Everything that the walk and the record yield, for rules.
pub(super) struct Context<'a> {
    /// The roots, files and references of the tree.
    pub(super) graph: &'a Graph,
    /// What the walk could not follow.
    pub(super) troubles: &'a [Trouble],
    /// The tree.
    pub(super) tree: &'a dyn Tree,
    /// What the team decided.
    pub(super) config: &'a Config,
    /// What the change decides itself that is to be judged, where `config` is not of it.
    pub(super) own: Option<&'a Config>,
    /// Whether everything is looked at, not only what some paths lead to.
    pub(super) complete: bool,
    /// Explains why paths are missing.
    pub(super) absences: Option<&'a Absences>,
    /// Every lock of the tree that can be read, with its directory.
    pub(super) locks: &'a [(String, Lock)],
    /// Whether there is a lock at the top that cannot be read, so that what is locked is unknown.
    pub(super) broken_lock: bool,
    /// Every reference that leads out of the tree.
    pub(super) remotes: Vec<RemoteUse<'a>>,
    pub(super) deployed: Deployed<'a>,
    /// The directories `localized-files` of which locks list files, by their paths from the top.
    homes: HashSet<String>,
    lines: Lines,
    /// What rules could not look at.
    pub(super) failures: RefCell<Vec<Failure>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        explored: &'a Explored,
        input: &'a Input<'a>,
        targets: &'a Targets,
        locks: &'a [(String, Lock)],
        broken_lock: bool,
    ) -> Self {
        let mut homes = HashSet::new();
        for (directory, lock) in locks {
            for home in lock.files.iter().filter_map(|file| stored::home(&file.path)) {
                let home = path::join(directory, home);
                if !homes.contains(&home) {
                    homes.insert(home);
                }
            }
        }
        let top = locks.iter().find(|(directory, _)| directory.is_empty());
        let remotes = remotes::all(&explored.graph, top.map(|(_, lock)| lock));
        Context {
            graph: &explored.graph,
            troubles: &explored.troubles,
            tree: &*input.tree,
            config: input.config,
            own: input.own,
            complete: input.paths.is_empty(),
            absences: input.absences,
            locks,
            broken_lock,
            remotes,
            deployed: Deployed::new(targets, &explored.graph, input.paths),
            homes,
            lines: Lines::default(),
            failures: RefCell::default(),
        }
    }

    /// Returns the lock at the top of the tree.
    pub(super) fn lock(&self) -> Option<&'a Lock> {
        self.locks.iter().find(|(directory, _)| directory.is_empty()).map(|(_, lock)| lock)
    }

    /// Returns whether the file lies below a `localized-files` directory and is listed in a lock: such files are not
    /// edited by hand, so only findings about the record are reported. Anything else that a lock lists was written by
    /// hand, here or in the repository it was copied from.
    pub(super) fn is_owned(&self, path: &str) -> bool {
        let mut directories = std::iter::successors(Some(path::parent(path)), |directory| {
            (!directory.is_empty()).then(|| path::parent(directory))
        });
        !self.homes.is_empty() && directories.any(|directory| self.homes.contains(directory))
    }

    /// Makes findings of what the walk could not follow, and is of this sort, with its text.
    pub(super) fn troubles(&self, rule: Rule, is_meant: impl Fn(&TroubleKind) -> bool) -> Vec<Finding> {
        let meant = self.troubles.iter().filter(|trouble| is_meant(&trouble.kind));
        meant.filter_map(|trouble| self.trouble(rule, trouble)).collect()
    }

    fn trouble(&self, rule: Rule, trouble: &Trouble) -> Option<Finding> {
        let Failure { message, mut hints, location, .. } = trouble.failure.clone();
        if let TroubleKind::BadKustomization { path } = &trouble.kind {
            return Some(finding(rule, path, message, hints));
        }
        if hints.is_empty() {
            hints.push("fix it: `kustomize build` refuses it".to_owned());
        }
        let found = match trouble.at {
            At::Edge(root, edge) => self.at_reference(rule, &self.graph.roots[root].edges[edge], message, hints),
            At::Note(note) => self.at_note(rule, &self.graph.notes[note], message, hints),
            At::File(file) if trouble.kind == TroubleKind::Problem(ProblemKind::Empty) => {
                finding(rule, self.path(file), message, hints)
            }
            At::File(file) => {
                let location = location?;
                let place = (location.line, location.column);
                let path = self.path(file);
                Finding { field: location.field, ..self.at_place(rule, path, place, message, hints) }
            }
            At::Nothing => return None,
        };
        let path = match &trouble.kind {
            TroubleKind::Missing { path, .. } | TroubleKind::Submodule { path } => path.clone(),
            TroubleKind::NoKustomization { directory, .. } => path::join(directory, FILE_NAMES[0]),
            _ => return Some(found),
        };
        Some(Finding { subject: Subject::Path { path }, ..found })
    }

    /// Makes a finding about a place of a file: about what stands there in quotes, else all to the end of the line.
    pub(super) fn at_place(
        &self,
        rule: Rule,
        path: &str,
        (number, column): (usize, usize),
        message: String,
        help: Vec<String>,
    ) -> Finding {
        let line = self.line(path, number);
        let span = Some(value_at(&line, (number, column)));
        Finding { span, line_text: line, ..finding(rule, path, message, help) }
    }

    /// Returns every reference of the tree with the root that it is relative to.
    pub(super) fn edges(&self) -> impl Iterator<Item = (&'a Root, &'a Edge)> {
        self.graph.roots.iter().flat_map(|root| root.edges.iter().map(move |edge| (root, edge)))
    }

    /// Returns the path of a file from the top.
    pub(super) fn path(&self, file: FileId) -> &'a str {
        match &self.graph.files[file].origin {
            Origin::Tree { path, .. } => path,
            Origin::Remote(remote) => remote.url.exposed(),
            Origin::Archive { path, .. } => path,
        }
    }

    /// Makes a finding about a reference.
    pub(super) fn at_reference(&self, rule: Rule, edge: &Edge, message: String, help: Vec<String>) -> Finding {
        let (path, reference) = (self.path(edge.from), &edge.reference);
        let span = Span {
            line: reference.line,
            column: reference.column,
            end_line: reference.end_line,
            end_column: reference.end_column,
        };
        Finding {
            field: reference.field.clone(),
            reference: redact::url(&reference.text),
            subject: edge.remote.as_ref().map_or(Subject::Local, |remote| remote.subject()),
            span: Some(span),
            line_text: self.line(path, span.line),
            ..finding(rule, path, message, help)
        }
    }

    /// Makes a finding about what was noted: from where it begins to the end of that line.
    pub(super) fn at_note(&self, rule: Rule, noted: &Noted, message: String, help: Vec<String>) -> Finding {
        let note = &noted.note;
        let (path, place) = (self.path(noted.file), (note.line, note.column));
        Finding { field: note.field.clone(), ..self.at_place(rule, path, place, message, help) }
    }

    /// Returns a line of a file without its end; 1-based.
    pub(super) fn line(&self, path: &str, number: usize) -> Arc<str> {
        self.lines.get(path, || self.tree.read(path).unwrap_or_default(), number)
    }

    /// Returns the first link on the way that a local reference goes.
    pub(super) fn link(&self, root: &Root, edge: &Edge) -> Option<String> {
        let real = self.graph.real(edge)?;
        let written = path::resolve(&root.directory, &edge.reference.text).filter(|written| written != real)?;
        let above: Vec<&str> = path::and_above(&written).collect();
        let is_link = |place: &&str| self.tree.entry(place) == Ok(Some(Entry::Link));
        above.into_iter().rev().find(is_link).map(str::to_owned)
    }

    /// Makes a warning of a finding that would be an error by default.
    pub(super) fn warning(finding: Finding) -> Finding {
        Finding { severity: Severity::Warning, ..finding }
    }
}

/// Returns the span of what stands at a place of a line: a quoted value, or the rest of the line without a comment.
fn value_at(text: &str, (line, column): (usize, usize)) -> Span {
    // The rest of an overlong line is skipped: it may hold thousands of such places.
    let rest: String =
        if text.len() > LONGEST_LINE { String::new() } else { text.chars().skip(column.saturating_sub(1)).collect() };
    let quoted = ['"', '\'']
        .into_iter()
        .find_map(|quote| rest.strip_prefix(quote)?.find(quote))
        .and_then(|at| rest.get(..at + 2));
    let plain = || rest.find(" #").map_or(rest.as_str(), |at| &rest[..at]);
    let value = quoted.unwrap_or_else(plain);
    Span { line, column, end_line: line, end_column: column + value.trim_end().chars().count().max(1) }
}
