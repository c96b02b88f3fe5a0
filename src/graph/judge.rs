//! What is asked of the facts once they are known: what stays remote, what may be missing and why it is, who may load files
//! from anywhere.

use std::collections::HashSet;
use std::mem;

use super::trouble::{At, Trouble, TroubleKind};
use super::{
    EdgeId, Explored, Graph, Lines, RemoteRef, Remotes, RootId, SourceId, Target, Walker, chain, cycle, overloaded,
};
use crate::config::Config;
use crate::message::finding::{self, Finding, Rule, Subject};
use crate::record::{LoadRestrictor, Lock, Pinned};
use crate::reference::Upstream;
use crate::tree::absence::{Absence, Absences};

/// Why something stays remote that no exception covers.
pub(crate) const KEPT: &str = "not an error by `rules` in the configuration";

/// What decides about the facts that a walk finds.
#[derive(Clone, Default)]
pub(crate) struct Policy<'a> {
    /// Where files may lie. In a remote root always in or below the root.
    pub load_restrictor: LoadRestrictor,
    /// The directories of roots that may load any file in their scope, whatever the load restrictor says: who deploys
    /// them builds them so.
    pub unrestricted: HashSet<String>,
    /// Returns whether a local path (from the top of the tree) may be missing, besides those at which a comment says so: a
    /// reference to it does not change.
    pub leave_missing: Option<&'a dyn Fn(&str) -> bool>,
    /// Explains why what the user names is missing.
    pub absences: Option<&'a Absences>,
    /// A directory of the tree that no reference may reach: where the copy is going to be, if that is what is made.
    pub forbidden: Option<String>,
    /// Says what stays remote, besides comments. Without it nobody judges what was walked, and what is in the charts of the
    /// user is not looked at.
    pub leave: Option<&'a Config>,
    /// What it holds does not stay remote, whatever exceptions say.
    pub lock: Option<&'a Lock>,
    /// Whether remote references stay so without an exception.
    pub keeps: bool,
    /// Whether no comments count: nobody who may decide wrote them.
    pub ignores_comments: bool,
}

/// What becomes of something remote.
pub(super) enum Decision {
    /// It is brought in: the lock holds it, or nothing says that it stays.
    Localized,
    /// It stays remote, for this reason.
    Left(String),
    /// It may not be locked.
    Refused(Box<Trouble>),
}

impl Policy<'_> {
    /// Decides what becomes of a remote reference in these lines. The lock decides before an exception does.
    pub(super) fn decide(&self, graph: &Graph, wanted: &RemoteRef, lines: Lines) -> Decision {
        let meant = wanted.meant();
        if self.lock.is_none_or(|lock| !wanted.is_locked(lock)) {
            let kept = || self.keeps.then(|| KEPT.to_owned());
            if let Some(reason) = self.exception(graph, Rule::RemoteReference, &meant.subject(), lines).or_else(kept) {
                return Decision::Left(reason);
            }
        }
        let pinned = self.lock.and_then(|lock| lock.get(&wanted.locked(lock)?));
        self.distrust(&meant, pinned, &wanted.text.shown()).map_or(Decision::Localized, Decision::Refused)
    }

    /// Refuses an upstream that may not be locked.
    pub(super) fn distrust(&self, upstream: &Upstream, pinned: Option<&Pinned>, shown: &str) -> Option<Box<Trouble>> {
        let (rule, why, hint) = self.leave?.distrust(upstream, pinned)?;
        let message = format!("`{shown}` {why}, so it may not be locked");
        Some(Trouble::new(TroubleKind::Distrusted(rule), message).hint(hint))
    }

    /// Returns why an exception covers what a rule finds in these lines, if one does.
    pub(super) fn exception(&self, graph: &Graph, rule: Rule, subject: &Subject, lines: Lines) -> Option<String> {
        graph.exception(self.leave?, rule, subject, lines)
    }

    /// Returns whether there may be nothing at a path that is named in these lines.
    pub(super) fn may_be_missing(&self, graph: &Graph, source: SourceId, path: &str, lines: Lines) -> bool {
        let Some(may) = self.leave_missing.filter(|_| source == SourceId::FIRST) else {
            return false;
        };
        let (subject, none) = (Subject::Local, Config::default());
        let says = |rule| graph.exception(&none, rule, &subject, lines).is_some();
        may(path) || Rule::MISSING.into_iter().any(says)
    }

    /// Returns why there is nothing at a path of a source.
    pub(super) fn absence(&self, graph: &Graph, source: SourceId, path: &str) -> Absence {
        let is_own = graph.sources[source].repository.is_none();
        let absences = self.absences.filter(|_| is_own);
        absences.map_or(Absence::Nowhere, |absences| absences.of(path))
    }

    /// Returns whether a root may load files from outside of itself.
    fn is_unrestricted(&self, graph: &Graph, root: RootId) -> bool {
        let root = &graph.roots[root];
        graph.sources[root.source].repository.is_none()
            && (self.load_restrictor == LoadRestrictor::None || self.unrestricted.contains(&root.directory))
    }
}

impl Walker {
    /// Brings in what is remote where there is a network, and returns what all walks have found, judged.
    pub(super) fn judged(
        mut self,
        starts: Vec<Option<RootId>>,
        mut remotes: Option<&mut dyn Remotes>,
        policy: &Policy<'_>,
    ) -> Explored {
        self.graph.ignores_comments = policy.ignores_comments;
        loop {
            let wanted = self.decide(policy);
            let Some(remotes) = remotes.as_deref_mut().filter(|_| !wanted.is_empty()) else { break };
            self.resolve(wanted, remotes, policy);
            self.follow_all(Some(remotes));
        }
        self.judge_paths(policy);
        self.judge_notes(policy);
        match remotes {
            Some(remotes) => {
                self.find_charts(Some(&mut *remotes), policy);
                remotes.prefetch(&self.graph.of_repositories());
            }
            None => self.find_charts(None, policy),
        }
        self.refuse_reshaped_plugins();
        // What it took to walk is large: only this is kept.
        let Walker { mut graph, mut troubles, .. } = self;
        troubles.extend(cycle::find(&graph));
        troubles.extend(overloaded(&graph));
        chain::tell(&graph, &mut troubles);
        // Remote references fail after local ones, but a file is read from its top.
        troubles.sort_by(|one, other| one.failure.location.cmp(&other.failure.location));
        finding::sort(&mut graph.findings);
        Explored { graph, troubles, starts }
    }

    /// Decides what becomes of the remote references that were found. Returns those to bring in.
    fn decide(&mut self, policy: &Policy<'_>) -> Vec<EdgeId> {
        let mut wanted = Vec::new();
        for id in mem::take(&mut self.pending) {
            let edge = &self.graph[id];
            let Some(remote) = edge.remote.clone() else { continue };
            match policy.decide(&self.graph, &remote, edge.lines()) {
                Decision::Localized => wanted.push(id),
                Decision::Left(reason) => drop(self.graph.left.insert(id, reason)),
                Decision::Refused(stop) => {
                    self.trouble(*stop, At::Edge(id));
                    self.graph[id].target = Target::Broken;
                }
            }
        }
        wanted
    }

    /// Judges local references: which of them may lead out of their root or to nothing, and why there is nothing.
    fn judge_paths(&mut self, policy: &Policy<'_>) {
        let (mut left, mut restricted, mut outside) = (HashSet::new(), HashSet::new(), HashSet::new());
        for Trouble { kind, at, .. } in &self.troubles {
            let At::Edge(id) = *at else { continue };
            let (lines, source) = (self.graph[id].lines(), self.graph.roots[id.root].source);
            if *kind == TroubleKind::Restricted {
                self.graph.leaves.insert(id.root);
            }
            match kind {
                TroubleKind::Restricted if !policy.is_unrestricted(&self.graph, id.root) => {
                    restricted.insert(*at);
                }
                TroubleKind::OutOfScope => drop(outside.insert(*at)),
                TroubleKind::Missing { path, .. } if policy.may_be_missing(&self.graph, source, path, lines) => {
                    left.insert(*at);
                    self.graph.keep_missing(id.root, path);
                    self.graph[id].target = Target::Kept;
                }
                _ => {}
            }
        }
        // Of several that one reference has, the first that counts is told.
        let troubles = mem::take(&mut self.troubles).into_iter().filter(|trouble| match trouble.kind {
            TroubleKind::Restricted => restricted.contains(&trouble.at) && !left.contains(&trouble.at),
            TroubleKind::OutOfScope => !restricted.contains(&trouble.at) && !left.contains(&trouble.at),
            TroubleKind::Missing { .. } => {
                [&left, &restricted, &outside].iter().all(|others| !others.contains(&trouble.at))
            }
            _ => true,
        });
        for (number, trouble) in troubles.enumerate() {
            let (at, explained) = (trouble.at, self.explained(&trouble, number, policy));
            self.troubles.push(explained.map_or(trouble, |explained| explained.at(&self.graph, at)));
        }
        if let Some(forbidden) = &policy.forbidden {
            self.refuse_forbidden(forbidden);
        }
    }

    fn judge_notes(&mut self, policy: &Policy<'_>) {
        for (number, noted) in self.graph.notes.iter().enumerate() {
            let lines = self.graph.lines_of(number);
            let is_allowed = |subject| policy.exception(&self.graph, Rule::Function, &subject, lines).is_some();
            let open = noted.note.kind.open().filter(|_| !noted.note.kind.subject().is_some_and(is_allowed));
            if let Some(message) = open {
                let location = self.graph.note_location(number);
                self.graph.findings.push(Finding::at(Rule::Function, location, message, Vec::new()));
            }
        }
    }
}
