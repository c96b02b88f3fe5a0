//! The input of each rule, and the constructors of findings at a reference, a note, a target or a position.

use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;

use super::Input;
use super::deployed::DeployedTargets;
use super::remotes::{self, RemoteUse};
use crate::config::Config;
use crate::graph::{At, Edge, Explored, FileId, Graph, Noted, Origin, Root, Trouble, TroubleKind};
use crate::kustomization::{FILE_NAMES, ProblemKind};
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule, Severity, Subject};
use crate::message::position::{Position, Span};
use crate::message::redact;
use crate::record::{Lock, stored};
use crate::reference::Upstream;
use crate::targets::{Target, Targets};
use crate::tree::absence::Absence;
use crate::tree::{Entry, Tree, path};

/// The most links that a reference may follow: the limit of Linux.
const MOST_LINKS: usize = 40;

/// The results of the walk and the locks of the tree.
pub(super) struct Context<'a> {
    pub(super) input: &'a Input<'a>,
    /// The roots, files and references of the tree.
    pub(super) graph: &'a Graph,
    /// The troubles of the walk: references and files that it could not follow.
    pub(super) troubles: &'a [Trouble],
    pub(super) tree: &'a dyn Tree,
    /// The configuration that counts: with a base, that of the base.
    pub(super) config: &'a Config,
    /// The readable locks of the tree, each with its directory.
    pub(super) locks: &'a [(String, Rc<Lock>)],
    /// Whether the lock at the top cannot be read, so that it is unknown which references are locked.
    pub(super) broken_lock: bool,
    /// The remote references of the tree.
    pub(super) remotes: Vec<RemoteUse<'a>>,
    pub(super) deployed: DeployedTargets<'a>,
    /// The paths of the `localized-files` directories whose files a lock lists.
    homes: HashSet<String>,
    /// The reasons why rules could not look at something.
    pub(super) failures: RefCell<Vec<Failure>>,
}

impl<'a> Context<'a> {
    pub(super) fn new(
        explored: &'a Explored,
        input: &'a Input<'a>,
        targets: &'a Targets,
        locks: &'a [(String, Rc<Lock>)],
        broken_lock: bool,
    ) -> Self {
        // The directories of localized files, in which findings get other help.
        let homes = locks.iter().flat_map(|(directory, lock)| {
            let homes: HashSet<&str> = lock.files.iter().filter_map(|file| stored::home(&file.path)).collect();
            homes.into_iter().map(move |home| path::join(directory, home))
        });
        let top = locks.iter().find(|(directory, _)| directory.is_empty());
        let remotes = remotes::all(&explored.graph, top.map(|(_, lock)| &**lock));
        Context {
            input,
            graph: &explored.graph,
            troubles: &explored.troubles,
            tree: &*input.tree,
            config: input.config,
            locks,
            broken_lock,
            remotes,
            deployed: DeployedTargets::new(targets, &explored.graph, input.paths),
            homes: homes.collect(),
            failures: RefCell::default(),
        }
    }

    /// The lock at the top of the tree, if there is one that can be read.
    pub(super) fn lock(&self) -> Option<&'a Lock> {
        self.locks.iter().find(|(directory, _)| directory.is_empty()).map(|(_, lock)| &**lock)
    }

    /// Whether the file is below a `localized-files` directory whose files a lock lists. Nobody edits such files by hand, so
    /// only errors and findings about the record are reported in them. The other files of a lock were written by hand, here or
    /// in the repository that they were copied from.
    pub(super) fn is_owned(&self, path: &str) -> bool {
        path::and_above(path::parent(path)).any(|directory| self.homes.contains(directory))
    }

    /// The value of `result`. An error becomes a failure of the check, and `None` is returned.
    pub(super) fn looked<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|failure| self.failures.borrow_mut().push(failure)).ok()
    }

    /// The findings for the troubles of the walk, with its text.
    pub(super) fn unfollowed(&self) -> Vec<Finding> {
        let findings = self.troubles.iter().filter_map(|trouble| {
            let unread = trouble.kind.hides_references();
            let is_template = trouble.kind == TroubleKind::Problem(ProblemKind::Template);
            Some(Finding { unread, is_template, ..self.trouble(rule(&trouble.kind)?, trouble)? })
        });
        findings.collect()
    }

    fn trouble(&self, rule: Rule, trouble: &Trouble) -> Option<Finding> {
        let Failure { message, mut hints, location, .. } = trouble.failure.clone();
        if let TroubleKind::BadKustomization { path } = &trouble.kind {
            return Some(Finding::new(rule, path, message, hints));
        }
        // Every finding has a way out; for a text that kustomize refuses it is the message itself.
        if hints.is_empty() {
            hints.push("fix it: `kustomize build` refuses it".to_owned());
        }
        let finding = match trouble.at {
            At::Edge(edge) => self.at_reference(rule, &self.graph[edge], message, hints),
            At::Note(note) => self.at_note(rule, &self.graph.notes[note], message, hints),
            // An empty file has no line that could be shown.
            At::File(file) if trouble.kind == TroubleKind::Problem(ProblemKind::Empty) => {
                Finding::new(rule, self.path(file), message, hints)
            }
            At::File(file) => {
                let location = location?;
                let finding = self.at_position(rule, self.path(file), location.position, message, hints);
                Finding { field: location.field, span: finding.span.filter(|span| span.start.line > 0), ..finding }
            }
            At::Nothing => return None,
        };
        // The subject is a path that an exception can name; the other troubles are about their reference.
        let path = match &trouble.kind {
            TroubleKind::Missing { path, .. } | TroubleKind::Submodule { path } => path.clone(),
            TroubleKind::NoKustomization { directory, .. } => path::join(directory, FILE_NAMES[0]),
            TroubleKind::Schema { url } if !url.is_empty() => {
                let (reference, subject) = (url.clone(), Subject::Remote(Upstream::File { url: url.clone() }));
                return Some(Finding { reference, subject, ..finding });
            }
            _ => return Some(finding),
        };
        Some(Finding { subject: Subject::Path { path }, ..finding })
    }

    /// A finding at a position of a file. Its span is filled in later: the quoted value there, or the rest of the line.
    pub(super) fn at_position(
        &self,
        rule: Rule,
        path: &str,
        start: Position,
        message: String,
        help: Vec<String>,
    ) -> Finding {
        Finding { span: Some(Span::from(start)), ..Finding::new(rule, path, message, help) }
    }

    /// A finding about a target, at the field of its object with the path.
    pub(super) fn at_target(&self, rule: Rule, target: &Target, message: String, help: Vec<String>) -> Finding {
        let about = target.name();
        Finding { about, ..self.at_position(rule, &target.object.file, target.spot, message, help) }
    }

    /// The references of the tree, each with the root that it is relative to.
    pub(super) fn edges(&self) -> impl Iterator<Item = (&'a Root, &'a Edge)> {
        self.graph.roots.iter().flat_map(|root| root.edges.iter().map(move |edge| (root, edge)))
    }

    /// The path of a file from the top, or the URL of a remote one.
    pub(super) fn path(&self, file: FileId) -> &'a str {
        match &self.graph.files[file].origin {
            Origin::Tree { path, .. } => path,
            Origin::Remote(remote) => remote.url.exposed(),
            Origin::Archive { path, .. } => path,
        }
    }

    /// A finding about a reference, with the reference as its span.
    pub(super) fn at_reference(&self, rule: Rule, edge: &Edge, message: String, help: Vec<String>) -> Finding {
        let (path, reference) = (self.path(edge.from), &edge.reference);
        Finding {
            field: reference.field.clone(),
            reference: redact::url(&reference.text),
            subject: edge.remote.as_ref().map_or(Subject::Local, |remote| remote.subject()),
            span: Some(reference.span),
            ..Finding::new(rule, path, message, help)
        }
    }

    /// A finding about a note of the walk, from its position to the end of the line.
    pub(super) fn at_note(&self, rule: Rule, noted: &Noted, message: String, help: Vec<String>) -> Finding {
        let note = &noted.note;
        let (path, position) = (self.path(noted.file), note.position);
        Finding { field: note.field.clone(), ..self.at_position(rule, path, position, message, help) }
    }

    /// The links that a local reference follows, in order, each with its target.
    pub(super) fn links(&self, root: &Root, edge: &Edge) -> Vec<(String, String)> {
        let mut links = Vec::new();
        let mut next = path::resolve(&root.directory, &edge.reference.text);
        while let Some(written) = next.filter(|written| {
            links.len() < MOST_LINKS && self.graph.real_path(edge).is_some_and(|real| real != written)
        }) {
            // From the top, because a link decides what the rest of the path means.
            let above: Vec<&str> = path::and_above(&written).collect();
            let link = above.into_iter().rev().find(|path| self.tree.entry(path) == Ok(Some(Entry::Link)));
            let Some(link) = link else { break };
            let Some(target) = self.tree.read(link).ok().and_then(|target| String::from_utf8(target).ok()) else {
                break;
            };
            let rest = path::below(&written, link).unwrap_or_default();
            next = path::resolve(path::parent(link), &format!("{target}/{rest}"));
            links.push((link.to_owned(), target));
        }
        links
    }

    /// The finding as a warning, whatever its rule's default.
    pub(super) fn warning(finding: Finding) -> Finding {
        Finding { severity: Severity::Warning, ..finding }
    }
}

/// The rule for a trouble of the walk. `None` if the trouble is a failure of the check.
fn rule(kind: &TroubleKind) -> Option<Rule> {
    use TroubleKind::{
        BadKustomization, Chart, Cycle, Distrusted, Failed, Missing, NoKustomization, OutOfScope, Problem, Refused,
        Reshaped, Restricted, Schema, Submodule, Unsafe, Unsupported,
    };
    Some(match kind {
        Failed => return None,
        OutOfScope | Restricted => Rule::OutOfScope,
        // The file exists here, but no clone has it: a build fails elsewhere.
        Missing { absence: Absence::Ignored { .. }, .. }
        | NoKustomization { absence: Absence::Ignored { .. }, .. }
        | Submodule { .. } => Rule::UntrackedPath,
        Missing { .. } | NoKustomization { .. } | Chart => Rule::MissingPath,
        Problem(_) | BadKustomization { .. } | Refused | Cycle => Rule::InvalidKustomization,
        Unsafe | Unsupported => Rule::UnsafeReference,
        Schema { .. } => Rule::RemoteChart,
        Distrusted(rule) => *rule,
        Reshaped => Rule::Function,
    })
}
