//! Judges the facts of a walk: which references stay remote, which files may be missing and why they are, and which
//! roots may load files outside of themselves.

use std::collections::{HashMap, HashSet};
use std::mem;

use super::trouble::{At, Trouble, TroubleKind, WalkResult};
use super::{
    EdgeId, Explored, Graph, Lines, RemoteRef, Remotes, Resolution, RootId, SourceId, Walker, chain, cycle,
    overload_troubles,
};
use crate::config::{Config, Distrust};
use crate::message::failure::Failure;
use crate::message::finding::{self, Finding, Rule, Subject};
use crate::record::{LoadRestrictor, Lock, Pinned};
use crate::reference::Upstream;
use crate::tree::absence::{Absence, Absences};

/// The reason of a reference that stays remote without an exception.
pub(crate) const REASON_NOT_AN_ERROR: &str = "not an error by `rules` in the configuration";

/// The rules by which the facts of a walk are judged.
#[derive(Clone, Default)]
pub(crate) struct WalkPolicy<'a> {
    /// Whether roots may load files outside of themselves.
    pub load_restrictor: LoadRestrictor,
    /// The directories of roots that may load any file in their scope, whatever the load restrictor says.
    pub unrestricted: HashSet<String>,
    /// Whether the configuration allows a local path (from the top of the tree) to be missing. A comment at the
    /// reference allows it, too. Without it no path may be missing.
    pub allows_missing: Option<&'a dyn Fn(&str) -> bool>,
    /// Tells why a path of the user's tree is missing.
    pub absences: Option<&'a Absences>,
    /// The directory that no reference may reach, because the copy will be written there. `None` if no copy is made.
    pub forbidden: Option<String>,
    /// The configuration, whose exceptions decide which references stay remote, and whose `sources` decide which
    /// upstreams may be locked. Without it no exception counts, and the user's charts are not examined.
    pub config: Option<&'a Config>,
    /// The lock, whose upstreams are localized.
    pub lock: Option<&'a Lock>,
    /// Whether remote references that the lock does not have stay remote without an exception.
    pub keeps_remote: bool,
    /// Whether comments do not count, because nobody who may decide wrote them.
    pub ignores_comments: bool,
}

/// The verdict on the path of a reference. If there are several, the first one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PathVerdict {
    /// Nothing is wrong with a path that may be missing, wherever it is.
    MayBeMissing,
    LeavesRoot,
    LeavesScope,
    Missing,
    MayLeaveRoot,
}

impl WalkPolicy<'_> {
    /// The reason why a remote reference at these lines stays remote. `None` if it is localized: the lock has it, or no
    /// exception covers it and the policy does not keep all of them. Fails if it may not be locked.
    fn reason_to_stay(&self, graph: &Graph, wanted: &RemoteRef, lines: Lines) -> WalkResult<Option<String>> {
        let meant = wanted.meant();
        // An upstream in the lock is localized, whatever exceptions say.
        if self.lock.is_none_or(|lock| !wanted.is_locked(lock)) {
            let exception = self.exception(graph, Rule::RemoteReference, &meant.subject(), lines);
            let reason = exception.or_else(|| self.keeps_remote.then(|| REASON_NOT_AN_ERROR.to_owned()));
            if reason.is_some() {
                return Ok(reason);
            }
        }
        let pinned = self.lock.and_then(|lock| lock.get(&wanted.locked(lock)?));
        self.refuse_distrusted(&meant, pinned, &wanted.text.shown())?;
        Ok(None)
    }

    /// Refuses an upstream that the `sources` of the configuration do not accept. `pinned` is its entry in the lock,
    /// which may violate them, too; `shown` is the reference for the message.
    pub(super) fn refuse_distrusted(
        &self,
        upstream: &Upstream,
        pinned: Option<&Pinned>,
        shown: &str,
    ) -> WalkResult<()> {
        match self.config.and_then(|config| config.distrust(upstream, pinned)) {
            None => Ok(()),
            Some(Distrust { rule, why, hint }) => {
                let message = format!("`{shown}` {why}, so it may not be locked");
                Err(Trouble::new(TroubleKind::Distrusted(rule), message).hint(hint))
            }
        }
    }

    /// The reason of the exception that covers `rule` at these lines. `None` if no exception does.
    pub(super) fn exception(&self, graph: &Graph, rule: Rule, subject: &Subject, lines: Lines) -> Option<String> {
        graph.exception(self.config?, rule, subject, lines)
    }

    /// Whether there may be no file at a path that is referenced at these lines.
    pub(super) fn may_be_missing(&self, graph: &Graph, source: SourceId, path: &str, lines: Lines) -> bool {
        let Some(allows_missing) = self.allows_missing.filter(|_| source == SourceId::FIRST) else {
            return false;
        };
        // The configuration decides in `allows_missing`, so only comments count for the rules.
        let no_config = Config::default();
        let mut rules = Rule::MISSING.into_iter();
        allows_missing(path) || rules.any(|rule| graph.exception(&no_config, rule, &Subject::Local, lines).is_some())
    }

    /// Why there is no file at a path of a source.
    pub(super) fn absence(&self, graph: &Graph, source: SourceId, path: &str) -> Absence {
        let is_user_tree = graph.sources[source].repository.is_none();
        let absences = self.absences.filter(|_| is_user_tree);
        absences.map_or(Absence::Nowhere, |absences| absences.of(path))
    }

    /// Whether a root may load files outside of itself.
    fn is_unrestricted(&self, graph: &Graph, root: RootId) -> bool {
        // Some engines build without the load restrictor, but kustomize always restricts a remote root.
        let root = &graph.roots[root];
        graph.sources[root.source].repository.is_none()
            && (self.load_restrictor == LoadRestrictor::None || self.unrestricted.contains(&root.directory))
    }
}

impl Walker {
    /// Fetches remote references if there are `remotes`, then judges the whole walk.
    pub(super) fn judged(
        mut self,
        starts: Vec<Option<RootId>>,
        mut remotes: Option<&mut dyn Remotes>,
        policy: &WalkPolicy<'_>,
    ) -> Explored {
        self.graph.ignores_comments = policy.ignores_comments;
        // Each turn fetches one level. The loop ends when no reference is left to fetch.
        loop {
            let to_fetch = self.decide_pending(policy);
            let Some(remotes) = remotes.as_deref_mut().filter(|_| !to_fetch.is_empty()) else { break };
            self.resolve(to_fetch, remotes, policy);
            self.follow_all(Some(remotes));
        }
        // Paths and notes can be judged only when all references are known.
        self.judge_paths(policy);
        self.judge_notes(policy);
        match remotes {
            Some(remotes) => {
                self.find_charts(Some(&mut *remotes), policy);
                // The graph is complete, so one request per repository gets every file that builds will read.
                remotes.prefetch(&self.graph.fetched_paths());
            }
            None => self.find_charts(None, policy),
        }
        self.refuse_reshaped_plugins();
        // The rest of the walker is large, so only the graph and the troubles are kept.
        let Walker { mut graph, mut troubles, .. } = self;
        troubles.extend(cycle::cycle_troubles(&graph));
        troubles.extend(overload_troubles(&graph));
        chain::add_chains(&graph, &mut troubles);
        // Troubles of remote references come after local ones, but messages follow the order of the file.
        troubles.sort_by(|a, b| a.failure.location.cmp(&b.failure.location));
        finding::sort(&mut graph.findings);
        Explored { graph, troubles, starts }
    }

    /// Decides which of the pending remote references stay remote, and records why. Returns the others, which are to be
    /// fetched. A reference whose upstream may not be locked becomes a trouble.
    fn decide_pending(&mut self, policy: &WalkPolicy<'_>) -> Vec<EdgeId> {
        let mut to_fetch = Vec::new();
        for id in mem::take(&mut self.pending) {
            let edge = &self.graph[id];
            let Some(remote) = edge.remote.clone() else { continue };
            match policy.reason_to_stay(&self.graph, &remote, edge.lines()) {
                Ok(None) => to_fetch.push(id),
                Ok(Some(reason)) => drop(self.graph.stays_remote.insert(id, reason)),
                Err(trouble) => {
                    self.record_trouble(*trouble, At::Edge(id));
                    self.graph[id].resolution = Resolution::Broken;
                }
            }
        }
        to_fetch
    }

    /// Judges local references: whether they may lead out of their root or to a missing file, and why the file is
    /// missing.
    fn judge_paths(&mut self, policy: &WalkPolicy<'_>) {
        let troubles = mem::take(&mut self.troubles);
        let verdicts: Vec<Option<PathVerdict>> =
            troubles.iter().map(|trouble| self.judge_path(trouble, policy)).collect();
        // One reference may have three troubles: its path leaves its root, leaves the scope, and has no file. Only the
        // first verdict in the order of [`PathVerdict`] counts.
        let mut first = HashMap::new();
        for (trouble, verdict) in troubles.iter().zip(&verdicts) {
            if let Some(verdict) = verdict {
                let first = first.entry(trouble.at).or_insert(*verdict);
                *first = (*first).min(*verdict);
            }
        }
        let reported = troubles.into_iter().zip(verdicts).filter(|(trouble, verdict)| {
            let is_allowed = matches!(verdict, Some(PathVerdict::MayBeMissing | PathVerdict::MayLeaveRoot));
            !is_allowed && verdict.is_none_or(|verdict| verdict == first[&trouble.at])
        });
        // The message about a missing path needs the policy, so the walk left it empty.
        for (number, (trouble, _)) in reported.enumerate() {
            let (at, explained) = (trouble.at, self.explain_missing(&trouble, number, policy));
            self.troubles.push(explained.map_or(trouble, |explained| explained.at(&self.graph, at)));
        }
        // No reference may lead to the directory that the copy will be written to.
        if let Some(forbidden) = &policy.forbidden {
            self.refuse_forbidden(forbidden);
        }
    }

    /// Judges a trouble about the path of a reference, and records what the policy allows. `None` if it is about
    /// something else.
    fn judge_path(&mut self, trouble: &Trouble, policy: &WalkPolicy<'_>) -> Option<PathVerdict> {
        let At::Edge(id) = trouble.at else { return None };
        match &trouble.kind {
            TroubleKind::Restricted => {
                self.graph.roots_reading_outside.insert(id.root);
                let is_allowed = policy.is_unrestricted(&self.graph, id.root);
                Some(if is_allowed { PathVerdict::MayLeaveRoot } else { PathVerdict::LeavesRoot })
            }
            TroubleKind::OutOfScope => Some(PathVerdict::LeavesScope),
            TroubleKind::Missing { path, .. } => {
                let (lines, source) = (self.graph[id].lines(), self.graph.roots[id.root].source);
                if !policy.may_be_missing(&self.graph, source, path, lines) {
                    return Some(PathVerdict::Missing);
                }
                self.graph.allow_missing(id.root, path);
                self.graph[id].resolution = Resolution::Unchanged;
                Some(PathVerdict::MayBeMissing)
            }
            _ => None,
        }
    }

    /// Adds a finding for each function or plugin whose code can change without a commit, unless an exception covers
    /// it.
    fn judge_notes(&mut self, policy: &WalkPolicy<'_>) {
        for (number, noted) in self.graph.notes.iter().enumerate() {
            let lines = self.graph.lines_of(number);
            let subject = noted.note.kind.subject();
            let exception = subject.and_then(|subject| policy.exception(&self.graph, Rule::Function, &subject, lines));
            let open = noted.note.kind.untracked_code().filter(|_| exception.is_none());
            if let Some(message) = open {
                let location = self.graph.note_location(number);
                self.graph.findings.push(Finding::at(Rule::Function, location, Failure::new(message)));
            }
        }
    }
}
