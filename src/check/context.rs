//! The input of each rule, and the constructors of findings at a reference, a note, a target or a position.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use super::Input;
use super::deployed::DeployedTargets;
use super::remotes::{self, RemoteUse};
use crate::config::{Config, FILE_NAME};
use crate::graph::{At, Edge, Explored, FileId, Graph, Noted, Origin, Root, RootId, Trouble, TroubleKind};
use crate::kustomization::{FILE_NAMES, ProblemKind};
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule, Subject};
use crate::message::position::{Position, Span};
use crate::message::redact;
use crate::record::{LOCK_NAME, Lock, stored};
use crate::reference::Upstream;
use crate::targets::{Target, Targets};
use crate::tree::absence::Absence;
use crate::tree::{Entry, Tree, path};

/// The readable locks of a tree, by their directories.
pub(super) type Locks = BTreeMap<String, Rc<Lock>>;

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
    pub(super) locks: &'a Locks,
    /// Whether the lock at the top cannot be read, so that it is unknown which references are locked.
    pub(super) broken_lock: bool,
    /// The remote references of the tree.
    pub(super) remotes: Vec<RemoteUse<'a>>,
    pub(super) deployed: DeployedTargets<'a>,
    /// The directories of the roots to which only a build leads, so that nothing localizes them.
    left_out: &'a BTreeSet<String>,
    /// The paths of the `localized-files` directories whose files a lock lists: findings in them get other help.
    localized_dirs: HashSet<String>,
    /// The reasons why rules could not look at something.
    pub(super) failures: RefCell<Vec<Failure>>,
}

impl<'a> Context<'a> {
    /// Collects what the rules need, once for all of them, from a walk with its targets and locks.
    pub(super) fn new(
        explored: &'a Explored,
        input: &'a Input<'a>,
        targets: &'a Targets,
        left_out: &'a BTreeSet<String>,
        locks: &'a Locks,
    ) -> Self {
        // A copy has a lock of its own, with paths from its directory.
        let localized_dirs = locks.iter().flat_map(|(directory, lock)| {
            let localized_dirs: HashSet<&str> =
                lock.files.iter().filter_map(|file| stored::localized_dir(&file.path)).collect();
            localized_dirs.into_iter().map(move |dir| path::join(directory, dir))
        });
        let graph = &explored.graph;
        // A link is listed among the locks, and reading it as one fails.
        let has_lock = matches!(input.tree.entry(LOCK_NAME), Ok(Some(Entry::File { .. } | Entry::Link)));
        Context {
            input,
            graph,
            troubles: &explored.troubles,
            tree: &*input.tree,
            config: input.config,
            locks,
            broken_lock: has_lock && !locks.contains_key(""),
            remotes: remotes::remote_uses(graph, deciding_lock(locks)),
            deployed: DeployedTargets::new(targets, graph, input.paths),
            left_out,
            localized_dirs: localized_dirs.collect(),
            failures: RefCell::default(),
        }
    }

    /// The lock that decides about the user's references.
    pub(super) fn lock(&self) -> Option<&'a Lock> {
        deciding_lock(self.locks)
    }

    /// Whether the file is below a `localized-files` directory whose files a lock lists. Nobody edits such files by
    /// hand, so only errors and findings about the record are reported in them. The other files of a lock were written
    /// by hand, here or in the repository that they were copied from.
    pub(super) fn is_owned(&self, path: &str) -> bool {
        path::and_above(path::parent(path)).any(|directory| self.localized_dirs.contains(directory))
    }

    /// The failure of something in a root that nothing localizes, although a build shows that it is deployed. `None`
    /// for any other root.
    pub(super) fn left_out(&self, root: RootId, shown: &str) -> Option<Failure> {
        let Root { directory, .. } = &self.graph.roots[root];
        if !self.graph.is_user_root(root) || !self.left_out.contains(directory) {
            return None;
        }
        let named = path::shown(directory);
        let message = format!("`{shown}` stays remote: only a build shows that `{named}` is deployed");
        let key = if self.config.leaves_out(directory) { "no longer below `exclude:`" } else { "below `include:`" };
        Some(Failure::new(message).hint(format!("list `{}` {key} in {FILE_NAME}", globset::escape(named))))
    }

    /// The value of `result`. An error becomes a failure of the check.
    pub(super) fn value_or_failure<T>(&self, result: Result<T>) -> Option<T> {
        result.map_err(|failure| self.failures.borrow_mut().push(failure)).ok()
    }

    /// The findings for references and files that the walk could not follow: its troubles, with their own texts.
    pub(super) fn unfollowed(&self) -> Vec<Finding> {
        let findings = self.troubles.iter().filter_map(|trouble| {
            let unread = trouble.kind.hides_references();
            let is_template = trouble.kind == TroubleKind::Problem(ProblemKind::Template);
            Some(Finding { unread, is_template, ..self.trouble_finding(rule(&trouble.kind)?, trouble)? })
        });
        findings.collect()
    }

    /// The finding for a trouble; `None` if it has no location.
    fn trouble_finding(&self, rule: Rule, trouble: &Trouble) -> Option<Finding> {
        let mut failure = trouble.failure.clone();
        // One of several kustomizations, or not a file: there is no position in it.
        if let TroubleKind::BadKustomization { path } = &trouble.kind {
            return Some(Finding::new(rule, path, failure));
        }
        // Every finding has a help. The message about a text that kustomize refuses says itself what is wrong.
        if failure.hints.is_empty() {
            failure = failure.hint("fix it: `kustomize build` refuses it");
        }
        let finding = match trouble.at {
            At::Edge(edge) => self.at_reference(rule, &self.graph[edge], failure),
            At::Note(note) => self.at_note(rule, &self.graph.notes[note], failure),
            // An empty file has no line that could be shown.
            At::File(file) if trouble.kind == TroubleKind::Problem(ProblemKind::Empty) => {
                Finding::new(rule, self.path(file), failure)
            }
            At::File(file) => {
                // A location without a line means the whole file.
                let location = failure.location.take()?;
                let finding = self.at_position(rule, self.path(file), location.position, failure);
                Finding { field: location.field, span: finding.span.filter(|span| span.start.line > 0), ..finding }
            }
            At::Nothing => return None,
        };
        // An exception names the subject of a finding. These are about a path, and the other troubles about their
        // reference.
        let path = match &trouble.kind {
            TroubleKind::Missing { path, .. } | TroubleKind::Submodule { path } => path.clone(),
            TroubleKind::NoKustomization { directory, .. } => path::join(directory, FILE_NAMES[0]),
            TroubleKind::Schema { url } if !url.is_empty() => {
                return Some(finding.naming(&Upstream::File { url: url.clone() }));
            }
            _ => return Some(finding),
        };
        Some(Finding { subject: Subject::Path { path }, ..finding })
    }

    /// A finding at a position of a file. Its span is filled in later: the quoted value there, or the rest of the line.
    pub(super) fn at_position(&self, rule: Rule, path: &str, start: Position, failure: Failure) -> Finding {
        Finding { span: Some(Span::from(start)), ..Finding::new(rule, path, failure) }
    }

    /// A finding about a target, at the field of its object with the path.
    pub(super) fn at_target(&self, rule: Rule, target: &Target, failure: Failure) -> Finding {
        self.at_position(rule, &target.object.file, target.spot, failure).about(target.name())
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
    pub(super) fn at_reference(&self, rule: Rule, edge: &Edge, failure: Failure) -> Finding {
        let reference = &edge.reference;
        Finding {
            field: reference.field.clone(),
            reference: redact::url(&reference.text),
            subject: edge.remote.as_ref().map_or(Subject::Local, |remote| remote.subject()),
            span: Some(reference.span),
            ..Finding::new(rule, self.path(edge.from), failure)
        }
    }

    /// A finding about a note of the walk, at its position.
    pub(super) fn at_note(&self, rule: Rule, noted: &Noted, failure: Failure) -> Finding {
        let finding = self.at_position(rule, self.path(noted.file), noted.note.position, failure);
        Finding { field: noted.note.field.clone(), ..finding }
    }
}

/// The lock that decides about the user's references: that at the top, unless it is that of a copy, which is finished.
/// `None` if there is no such lock, or it cannot be read.
pub(super) fn deciding_lock(locks: &Locks) -> Option<&Lock> {
    locks.get("").map(|lock| &**lock).filter(|lock| lock.target.is_none())
}

/// The rule for a trouble of the walk. `None` if the trouble is a failure of the check.
fn rule(kind: &TroubleKind) -> Option<Rule> {
    Some(match kind {
        TroubleKind::Failed => return None,
        TroubleKind::OutOfScope | TroubleKind::Restricted => Rule::OutOfScope,
        // The files may exist here, but no clone has them: a build fails elsewhere.
        TroubleKind::Missing { absence: Absence::Ignored { .. }, .. }
        | TroubleKind::NoKustomization { absence: Absence::Ignored { .. }, .. }
        | TroubleKind::Submodule { .. } => Rule::UntrackedPath,
        TroubleKind::Missing { .. } | TroubleKind::NoKustomization { .. } | TroubleKind::Chart => Rule::MissingPath,
        TroubleKind::Problem(_) | TroubleKind::BadKustomization { .. } | TroubleKind::Refused | TroubleKind::Cycle => {
            Rule::InvalidKustomization
        }
        TroubleKind::Unsafe | TroubleKind::Unsupported => Rule::UnsafeReference,
        TroubleKind::Schema { .. } => Rule::RemoteChart,
        TroubleKind::Distrusted(rule) => *rule,
        TroubleKind::Reshaped => Rule::Function,
    })
}
