//! `check`: what in a repository's kustomizations a hermetic build could not resolve, found without
//! a network. One file per rule.
//!
//! [`check`] walks every kustomization of a tree once, without a [`graph::Remotes`], and passes the results to each rule
//! in turn (`Context`). What the walk could not follow has the text that the walk gave it, and the rule that one table
//! gives it (`context::rule`); rules say the rest. Where findings stand in their files is filled in last (`fill`).

mod behind;
pub(crate) mod build;
mod context;
mod deployed;
mod deployed_remote;
mod edited_copy;
mod engine;
mod floating_ref;
mod function;
pub(crate) mod gate;
mod invalid_kustomization;
mod invalid_target;
mod known;
pub(crate) mod localized;
mod locked_reference;
pub(crate) mod merged_back;
mod missing_path;
mod missing_target;
mod new_exception;
mod out_of_scope;
mod remote_chart;
mod remote_reference;
mod remotes;
mod sources;
mod stale_allow;
mod stale_lock;
mod starts;
mod suppression;
#[cfg(test)]
pub(crate) mod testing;
mod unknown_target;
mod unread_reference;
mod unsafe_reference;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::iter;
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use crate::config::Config;
use crate::git::Snapshot;
use crate::graph::{self, Explored, Graph, Survey, TroubleKind};
use crate::message::failure::{Failure, Result};
use crate::message::finding::{self, Finding, Rule, Severity};
use crate::message::position::{Position, Span};
use crate::message::redact;
use crate::record::{Added, LOCK_NAME, Lock};
use crate::targets::{self, Identity, Targets, Unsettled};
use crate::tree::absence::Absences;
use crate::tree::{Tree, path};

use context::Context;
use deployed::{Deployed, Walked};
pub(crate) use known::renamed;
pub(crate) use sources::Claim;
pub(crate) use unread_reference::{not_built, not_observed, refused, unread_reference};

/// How long a line is that people look at, in bytes.
const LONGEST_LINE: usize = 10_000;

/// What to check.
pub struct Input<'a> {
    /// Which files these are, for the report.
    pub source: Snapshot,
    /// Its files, from the top of the repository.
    pub tree: Rc<dyn Tree>,
    /// The directories and kustomizations to begin at, from the top; all when empty.
    pub paths: &'a [String],
    /// What the team decided.
    pub config: &'a Config,
    /// What the change decides itself that is to be [judged](Checked::judge), where `config` is not of it.
    pub own: Option<&'a Config>,
    /// Explains why paths are missing.
    pub absences: Option<&'a Absences>,
    /// Returns what is known of the repository, for what is deployed from it; without it nothing is looked at that is.
    pub identity: Option<&'a dyn Fn() -> Result<Identity>>,
    /// Builds, and returns what is deployed as it came out; without it objects are looked at as they are written.
    pub build: Option<Build<'a>>,
}

/// Builds.
pub struct Build<'a>(pub(crate) &'a dyn Fn(Unsettled) -> Result<Targets>);

/// Checks a tree.
pub fn check(input: Input<'_>) -> Result<Checked> {
    surveyed(&Survey::of(input.tree.clone()), input)
}

/// Does what [`check`] does, where something was found in the tree already.
pub(crate) fn surveyed(survey: &Survey, input: Input<'_>) -> Result<Checked> {
    let mut failures = Vec::new();
    let kustomizations = input.tree.kustomizations()?;
    let lock_places = input.tree.locks()?;
    let locks = locks(&input, &lock_places, &mut failures);
    let top = locks.iter().find(|(directory, _)| directory.is_empty()).map(|(_, lock)| &**lock);
    let policy = graph::Policy {
        load_restrictor: input.config.load_restrictor,
        leave: Some(input.config),
        lock: top,
        ignores_comments: input.own.is_some(),
        absences: input.absences,
        ..graph::Policy::default()
    };
    failures.extend(top.and_then(|lock| lock.refuse_without(&kustomizations).err()));
    let Walked { targets, written, mut explored } =
        deployed::walk(&input, survey, &kustomizations, policy, &mut failures)?;
    let flux = targets::flux_objects(&explored);
    let graph = &explored.graph;
    explored.troubles.retain(|trouble| graph.file_at(trouble.at).is_none_or(|file| !flux.contains(&file)));
    let failed = explored.troubles.iter();
    let failed = failed.filter(|trouble| trouble.kind == TroubleKind::Failed);
    failures.extend(failed.map(|trouble| trouble.failure.clone()));
    let broken_lock = lock_places.iter().any(|place| place == LOCK_NAME) && top.is_none();
    let context = Context::new(&explored, &input, &targets, &locks, broken_lock);
    let mut findings = find(&context, &RULES);
    failures.extend(context.deployed.stored_otherwise(&*input.tree));
    failures.append(&mut context.failures.borrow_mut());
    failures.extend(context.deployed.name(&mut findings).err());
    if input.own.is_some() {
        let written = written.as_ref().map(|targets| Deployed::new(targets, &explored.graph, input.paths));
        starts::name(&context, written.as_ref().unwrap_or(&context.deployed), &mut findings);
    }
    let remote = RemoteReferences::of(&findings);
    suppression::apply(&context, &mut findings, failures.is_empty());
    let remote = remote.allowed_in(&findings);
    if input.own.is_none() {
        floating_ref::leave_out_remote(&mut findings);
    }
    fill(&*input.tree, &mut findings);
    finding::sort(&mut findings);
    let checked = Checked {
        kustomizations: explored.graph.roots.len() - flux.len(),
        references: references(&explored.graph),
        remote,
        is_made_by_branch: top.is_some_and(merged_back::is_made_by_branch),
        read: explored.graph.user_paths().chain(explored.graph.user_charts()).map(str::to_owned).collect(),
        findings,
        ..Checked::failed(input.source, failures)
    };
    // A program that checks ends next: to free many small pieces takes a tenth of the time.
    // But for the trees, which may hold a temporary directory.
    explored.graph.sources.clear();
    std::mem::forget(explored);
    Ok(checked)
}

/// Finds what engines would do to a tree of which graph and targets are known.
pub(crate) fn engine(input: &Input<'_>, explored: &Explored, targets: &Targets) -> Result<Vec<Finding>> {
    let locks = locks(input, &input.tree.locks()?, &mut Vec::new());
    let context = Context::new(explored, input, targets, &locks, false);
    let mut findings = find(&context, &[engine::find]);
    suppression::apply(&context, &mut findings, false);
    findings.retain(|one| one.rule == Rule::Engine && one.allowed.is_none());
    Ok(findings)
}

/// Reads the locks; those that cannot be read are failures.
fn locks(input: &Input<'_>, places: &[String], failures: &mut Vec<Failure>) -> Vec<(String, Rc<Lock>)> {
    let mut locks = Vec::new();
    for place in places {
        match Lock::read(&*input.tree, place) {
            Ok(lock) => locks.push((path::parent(place).to_owned(), lock)),
            Err(failure) => failures.push(failure),
        }
    }
    locks
}

type Find = fn(&Context<'_>) -> Vec<Finding>;

/// What the rules find in what the walk and the record yield. `new-exception` sees the findings of the others.
const RULES: [Find; 20] = [
    |context| context.unfollowed(),
    remote_reference::find,
    locked_reference::find,
    floating_ref::find,
    remote_chart::find,
    out_of_scope::find,
    missing_path::find,
    invalid_kustomization::find,
    unsafe_reference::find,
    function::find,
    invalid_target::find,
    missing_target::find,
    unknown_target::find,
    engine::find,
    deployed_remote::find,
    edited_copy::find,
    stale_lock::find,
    stale_allow::unmatched,
    behind::find,
    sources::find,
];

/// Applies rules.
fn find(context: &Context<'_>, rules: &[Find]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules.iter().flat_map(|find| find(context)).collect();
    for finding in &mut findings {
        for text in iter::once(&mut finding.message).chain(&mut finding.help) {
            *text = redact::message(text).into_owned();
        }
    }
    // What a lock lists is believed in nothing, but others wrote it: there may be a reason for what is no error.
    findings.retain(|finding| finding.severity == Severity::Error || !context.is_owned(&finding.path));
    // A plugin configuration that two roots list is one file, whose paths mean something else in each.
    let edges = context.graph.roots.iter().flat_map(|root| {
        let plugins = root.edges.iter().filter(|edge| edge.from != root.file);
        plugins.map(|edge| context.path(edge.from))
    });
    let plugins: HashSet<&str> = edges.collect();
    let mut told = HashSet::new();
    findings.retain(|finding| {
        let is_plugin = finding.span.is_some() && plugins.contains(&*finding.path);
        let what = if is_plugin && finding.rule != Rule::Function { &finding.reference } else { &finding.message };
        told.insert((finding.rule, finding.path.clone(), finding.span, what.clone()))
    });
    findings
}

/// Adds the lines on which findings in a tree stand, each made once, and the ends of values of which only the beginning is
/// known.
pub(crate) fn fill(tree: &dyn Tree, findings: &mut [Finding]) {
    let mut by_path: BTreeMap<String, Vec<&mut Finding>> = BTreeMap::new();
    let is_bare = |one: &&mut Finding| one.url.is_empty() && one.span.is_some() && one.line_text.is_empty();
    for finding in findings.iter_mut().filter(is_bare) {
        by_path.entry(finding.path.clone()).or_default().push(finding);
    }
    for (path, findings) in by_path {
        let bytes = tree.read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // Columns do not count a byte order mark.
        let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
        let mut made: HashMap<usize, Arc<str>> = HashMap::new();
        for finding in findings {
            let Some(span) = &mut finding.span else { continue };
            let line =
                || span.start.line.checked_sub(1).and_then(|index| lines.get(index)).copied().unwrap_or_default();
            let line = made.entry(span.start.line).or_insert_with(|| line().into()).clone();
            if span.end.line == 0 {
                *span = value_at(&line, span.start);
            }
            finding.line_text = line;
        }
    }
}

/// Returns the span of what begins at a place of a line: a quoted value, or the rest of the line without a comment.
fn value_at(text: &str, start: Position) -> Span {
    // The rest of an overlong line is skipped: it may hold thousands of such places.
    let text = if text.len() > LONGEST_LINE { "" } else { text };
    let rest: String = text.chars().skip(start.column.saturating_sub(1)).collect();
    let quoted = ['"', '\''].into_iter().find_map(|quote| rest.strip_prefix(quote)?.split_once(quote));
    let length = match quoted {
        Some((value, _)) => value.chars().count() + 2,
        None => rest.split(" #").next().unwrap_or_default().trim_end().chars().count(),
    };
    Span { start, end: Position { column: start.column + length.max(1), ..start } }
}

/// Returns how many references there are. Those of a plugin configuration are there once for each root
/// that lists it, and count once.
fn references(graph: &Graph) -> usize {
    let edges = graph.roots.iter().flat_map(|root| &root.edges);
    edges.map(|edge| (edge.from, &edge.reference.spot)).collect::<HashSet<_>>().len()
}

/// How many references are remote, charts among them, by what keeps a build from fetching anything new.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RemoteReferences {
    pub locked: usize,
    pub allowed: usize,
    pub neither: usize,
}

impl RemoteReferences {
    /// Counts what rules found, before any of it is left out.
    fn of(findings: &[Finding]) -> RemoteReferences {
        let locked = findings.iter().filter(|one| one.rule == Rule::LockedReference).count();
        let neither = findings.iter().filter(|one| RemoteReferences::is_one(one)).count();
        RemoteReferences { locked, allowed: 0, neither }
    }

    fn allowed_in(self, findings: &[Finding]) -> RemoteReferences {
        let allowed = findings.iter().filter(|one| RemoteReferences::is_one(one) && one.allowed.is_some()).count();
        RemoteReferences { allowed, neither: self.neither - allowed, ..self }
    }

    fn is_one(finding: &Finding) -> bool {
        matches!(finding.rule, Rule::RemoteReference | Rule::RemoteChart)
    }
}

/// The findings that are left out because the base has them too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Known {
    /// The base; empty if it is nothing.
    pub rev: String,
    /// The commit that was compared, where the change begins; empty if there is none.
    pub commit: String,
    pub left_out: usize,
}

/// What came of builds.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Builds {
    /// How many there were that ended, and asked for nothing but what is locked.
    pub built: usize,
    /// How many were not built because something stays remote by an exception.
    pub left: usize,
    /// What is deployed or built and not known, with the reason: nothing here builds it, or not always to the same.
    pub unknown: Vec<String>,
    /// Whether nothing was built, because of what the check found or what stopped it.
    pub stopped: bool,
    /// What built, and how the network was closed; empty where nothing was built.
    pub by: String,
}

/// The result of a check.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Checked {
    #[serde(flatten)]
    pub source: Snapshot,
    /// The number of kustomizations that were read.
    pub kustomizations: usize,
    /// The number of references in them.
    pub references: usize,
    /// Those that lead out of the tree.
    #[serde(skip)]
    pub remote: RemoteReferences,
    /// The number of kustomizations that differ in the working tree, where a fix may exist but not be staged. Only for
    /// the index.
    pub differing: usize,
    /// The number of kustomizations on disk that git does not track or ignores, where there is no other.
    #[serde(skip)]
    pub unseen: usize,
    /// The files that were read and that git does not track, so that no commit has them. Only for the working tree.
    pub untracked: Vec<String>,
    /// All files that were read, and the directories of charts.
    #[serde(skip)]
    pub read: BTreeSet<String>,
    /// Whether its localized files are those of a localized branch.
    #[serde(skip)]
    pub is_made_by_branch: bool,
    /// What was found, by path and place; what is allowed too.
    pub findings: Vec<Finding>,
    /// What came of builds; none where nothing was to be built.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds: Option<Builds>,
    /// What is left out.
    #[serde(rename = "base")]
    pub known: Option<Known>,
    /// The lines of the configuration that a change adds (`+`) or removes (`-`), where it is judged against its base: they
    /// count from the next change on.
    pub new_config: Vec<String>,
    /// What the locks list that those of the base do not, where a change is judged against its base.
    pub new_locked: Vec<Added>,
    /// What could not be checked. Everything else was.
    pub failures: Vec<Failure>,
}

impl Checked {
    /// What comes of a check that could not begin.
    pub fn failed(source: Snapshot, failures: Vec<Failure>) -> Self {
        Checked { source, failures, ..Checked::default() }
    }

    /// Judges a change: leaves out what its base has too, which is `old`, and adds the exceptions that the change itself adds
    /// for the rest. `before` is the lock of the base: what it localizes may not become remote unseen. Returns how many are
    /// left out.
    pub fn judge(&mut self, old: &[Finding], config: &Config, before: &Lock, tree: &dyn Tree) -> usize {
        let unlocked = new_exception::no_longer_localized(&self.findings, config, before);
        let left_out = self.leave_out(old);
        floating_ref::leave_out_remote(&mut self.findings);
        if *before == Lock::default() {
            new_exception::accept_first(&mut self.findings, old);
        }
        let new = new_exception::find(&self.findings, config);
        self.findings.extend(new.into_iter().chain(unlocked));
        fill(tree, &mut self.findings);
        finding::sort(&mut self.findings);
        left_out
    }

    /// Adds findings.
    pub(crate) fn add(&mut self, mut findings: Vec<Finding>, config: &Config, tree: &dyn Tree) {
        config.judge(&mut findings);
        self.findings.extend(findings);
        fill(tree, &mut self.findings);
        finding::sort(&mut self.findings);
    }

    /// Returns how many findings of this severity count.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity && finding.allowed.is_none()).count()
    }

    /// Returns the exit status: 0 clean, 1 findings that fail, 2 something could not be checked.
    pub fn status(&self) -> u8 {
        if self.failures.is_empty() { u8::from(self.findings.iter().any(Finding::fails)) } else { 2 }
    }
}

#[cfg(test)]
mod tests;
