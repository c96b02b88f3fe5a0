//! `check`: finds, without a network, whatever a hermetic build of a repository's kustomizations could not resolve. One
//! file per rule.
//!
//! [`check`] walks the kustomizations of a tree, without a [`graph::Remotes`], and passes the result (`Context`) to
//! each rule. A trouble of the walk becomes a finding with the walk's own text; one table (`context::rule`) assigns its
//! rule. Rules find the rest. Lines and ends of spans are filled in last (`fill_in_lines`).

mod base;
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
mod unlocked_dependency;
mod unread_reference;
mod unsafe_reference;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;
use std::sync::Arc;

use serde::Serialize;

use crate::config::Config;
use crate::git::Snapshot;
use crate::graph::{self, Explored, Graph, Survey, TroubleKind};
use crate::message::failure::{FAILED, Failure, Result};
use crate::message::finding::{self, Finding, Rule, Severity};
use crate::message::position::{Position, Span};
use crate::record::{AddedEntry, Lock};
use crate::targets::{self, Identity, Targets, UnresolvedTargets};
use crate::tree::absence::Absences;
use crate::tree::{Tree, path};

pub(crate) use base::renamed;
use context::{Context, Locks, deciding_lock};
use deployed::{DeployedTargets, Walked};
pub(crate) use sources::Claim;
pub(crate) use unread_reference::{not_built, not_observed, refused, unread_reference};

/// The longest line in which the end of a value is searched for, in bytes.
const LONGEST_LINE: usize = 10_000;

/// The input of a check.
pub struct Input<'a> {
    /// The snapshot that the tree was read from, for the report.
    pub source: Snapshot,
    /// The files, by paths from the top of the repository.
    pub tree: Rc<dyn Tree>,
    /// The directories and kustomizations to start from, by paths from the top. If empty, the walk starts from
    /// everything that the configuration includes or a target deploys.
    pub paths: &'a [String],
    /// The configuration that counts.
    pub config: &'a Config,
    /// The configuration of the change that is to be [judged](Checked::judge), if `config` is that of its base.
    pub change_config: Option<&'a Config>,
    /// Explains why paths are missing.
    pub absences: Option<&'a Absences>,
    /// Identifies the repository. `None` if the check does not look at deployed targets.
    pub identity: Option<&'a dyn Fn() -> Result<Identity>>,
    /// Builds the targets. `None` if objects are read as they are written.
    pub build: Option<BuildTargets<'a>>,
}

/// A callback that builds targets, and returns them with the objects of their outputs.
pub struct BuildTargets<'a>(pub(crate) &'a dyn Fn(UnresolvedTargets) -> Result<Targets>);

/// Checks a tree from its own survey.
pub fn check(input: Input<'_>) -> Result<Checked> {
    surveyed(&Survey::of(input.tree.clone()), input)
}

/// Checks a tree like [`check`], from a survey that may have read a part of it already.
pub(crate) fn surveyed(survey: &Survey, input: Input<'_>) -> Result<Checked> {
    let mut failures = Vec::new();
    let kustomizations = input.tree.kustomizations()?;
    let locks = read_locks(&input, &mut failures)?;
    let top = deciding_lock(&locks);
    // The configuration that counts is that of the base, if there is one: comments of the change itself must not allow
    // anything.
    let policy = graph::WalkPolicy {
        load_restrictor: input.config.load_restrictor,
        config: Some(input.config),
        lock: top,
        ignores_comments: input.change_config.is_some(),
        absences: input.absences,
        ..graph::WalkPolicy::default()
    };
    // If no kustomization was found, although the lock has entries, the check must not be green.
    failures.extend(top.and_then(|lock| lock.require_kustomizations(&kustomizations).err()));
    let Walked { targets, written, left_out, mut explored } =
        deployed::walk(&input, survey, &kustomizations, policy, &mut failures)?;
    // An object of Flux is not a kustomization, so its troubles as one are noise.
    let flux = targets::flux_objects(&explored, &targets.roots());
    let graph = &explored.graph;
    explored.troubles.retain(|trouble| graph.file_at(trouble.at).is_none_or(|file| !flux.contains(&file)));
    // These are failures of this run, such as an unreadable object, and no edit of the tree would mend them.
    let failed = explored.troubles.iter();
    let failed = failed.filter(|trouble| trouble.kind == TroubleKind::Failed);
    failures.extend(failed.map(|trouble| trouble.failure.clone()));
    let context = Context::new(&explored, &input, &targets, &left_out, &locks);
    // Rules only find. Exceptions, severities and source lines are added below, once for all of them.
    let mut findings = apply_rules(&context, &RULES);
    failures.extend(context.deployed.conversion_failures(&*input.tree));
    failures.append(&mut context.failures.borrow_mut());
    // Once for the findings of all rules.
    failures.extend(context.deployed.fill_in_targets(&mut findings).err());
    // Only with a base it matters what leads to a finding.
    if input.change_config.is_some() {
        let written = written.as_ref().map(|targets| DeployedTargets::new(targets, &explored.graph, input.paths));
        starts::fill_in(&context, written.as_ref().unwrap_or(&context.deployed), &mut findings);
    }
    // After a failure, or with paths, nobody knows whether an exception is unused.
    let is_complete = failures.is_empty() && input.paths.is_empty();
    suppression::allow(&context, &mut findings, is_complete);
    // Counted before findings of rules that are off are dropped.
    let remote = RemoteReferences::of(&findings);
    input.config.judge(&mut findings);
    // With a base, `judge` does this once the findings of the base are dropped: both findings at a reference are
    // compared with those of the base.
    if input.change_config.is_none() {
        floating_ref::leave_out_remote(&mut findings);
    }
    fill_in_lines(&*input.tree, &mut findings);
    finding::sort(&mut findings);
    let checked = Checked {
        paths: input.paths.to_vec(),
        kustomizations: explored.graph.roots.len() - flux.len(),
        references: references(&explored.graph),
        remote,
        is_made_by_branch: top.is_some_and(merged_back::is_made_by_branch),
        read: explored.graph.user_paths().chain(explored.graph.user_charts()).map(str::to_owned).collect(),
        findings,
        ..Checked::failed(input.source, failures)
    };
    // The process ends soon, and freeing many small allocations takes a tenth of its time. Trees are dropped: one may
    // own a temporary directory.
    explored.graph.sources.clear();
    std::mem::forget(explored);
    Ok(checked)
}

/// The errors and warnings of rule `engine` in a tree whose graph and targets are known, without the allowed ones.
/// Localizing uses them to refuse a result that an engine could not deploy.
pub(crate) fn engine_findings(input: &Input<'_>, explored: &Explored, targets: &Targets) -> Result<Vec<Finding>> {
    // `check` reports a lock that cannot be read.
    let locks = read_locks(input, &mut Vec::new())?;
    // Only rules about remote references ask which roots are left out.
    let left_out = BTreeSet::new();
    let context = Context::new(explored, input, targets, &left_out, &locks);
    let mut findings = apply_rules(&context, &[engine::find]);
    // Other rules may use an exception, so an unused one is not reported.
    let is_complete = false;
    suppression::allow(&context, &mut findings, is_complete);
    input.config.judge(&mut findings);
    findings.retain(|finding| finding.rule == Rule::Engine && finding.allowed.is_none());
    Ok(findings)
}

/// Reads the locks of the tree, that of the repository and those of copies in it, by their directories. The failure of
/// a lock that cannot be read is added to `failures`.
fn read_locks(input: &Input<'_>, failures: &mut Vec<Failure>) -> Result<Locks> {
    let mut locks = Locks::new();
    for path in input.tree.locks()? {
        match Lock::read(&*input.tree, &path) {
            Ok(lock) => drop(locks.insert(path::parent(&path).to_owned(), lock)),
            Err(failure) => failures.push(failure),
        }
    }
    Ok(locks)
}

type Find = fn(&Context<'_>) -> Vec<Finding>;

/// The rules, in the order of their findings at one location. `new-exception` is not among them: it judges their
/// findings.
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
    stale_allow::stale_patterns,
    unlocked_dependency::find,
    sources::find,
];

/// Applies rules, and drops duplicates and warnings about localized files.
fn apply_rules(context: &Context<'_>, rules: &[Find]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = rules.iter().flat_map(|find| find(context)).collect();
    // Localized files are not trusted, so their errors count, but not their warnings: upstream may have its reasons.
    findings.retain(|finding| finding.severity == Severity::Error || !context.is_owned(&finding.path));
    // Two roots may list one plugin configuration. Its paths resolve from each of them, so the messages differ though
    // the reference is the same: there the reference identifies a finding, except for `function`, whose findings need
    // not have one.
    let edges = context.graph.roots.iter().flat_map(|root| {
        let plugins = root.edges.iter().filter(|edge| edge.from != root.file);
        plugins.map(|edge| context.path(edge.from))
    });
    let plugins: HashSet<&str> = edges.collect();
    let mut reported = HashSet::new();
    findings.retain(|finding| {
        let is_plugin = finding.span.is_some() && plugins.contains(&*finding.path);
        let text = if is_plugin && finding.rule != Rule::Function { &finding.reference } else { &finding.message };
        reported.insert((finding.rule, finding.path.clone(), finding.span, text.clone()))
    });
    findings
}

/// Fills in the source line of each finding in a tree, and the end of its span if only the start is known. Findings on
/// one line share its text.
pub(crate) fn fill_in_lines(tree: &dyn Tree, findings: &mut [Finding]) {
    // Each file is read once, however many findings it has.
    let mut by_path: BTreeMap<String, Vec<&mut Finding>> = BTreeMap::new();
    for finding in findings {
        // A finding with a URL is about a file of an upstream, which is not in this tree.
        if finding.url.is_empty() && finding.span.is_some() && finding.line_text.is_empty() {
            by_path.entry(finding.path.clone()).or_default().push(finding);
        }
    }
    for (path, findings) in by_path {
        // The lines of a file that cannot be read stay empty.
        let bytes = tree.read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // Columns do not count a byte order mark.
        let lines: Vec<&str> = text.trim_start_matches('\u{feff}').lines().collect();
        let mut shared: HashMap<usize, Arc<str>> = HashMap::new();
        for finding in findings {
            let Some(span) = &mut finding.span else { continue };
            let line =
                || span.start.line.checked_sub(1).and_then(|index| lines.get(index)).copied().unwrap_or_default();
            let line = shared.entry(span.start.line).or_insert_with(|| line().into()).clone();
            if span.end.line == 0 {
                *span = value_at(&line, span.start);
            }
            finding.line_text = line;
        }
    }
}

/// The span of the value that starts at a position of a line, for a finding that knows only the start: a quoted string,
/// or the rest of the line without a comment.
fn value_at(text: &str, start: Position) -> Span {
    // An overlong line may hold thousands of values, and nobody reads it: skip the search.
    let text = if text.len() > LONGEST_LINE { "" } else { text };
    let rest: String = text.chars().skip(start.column.saturating_sub(1)).collect();
    let quoted = ['"', '\''].into_iter().find_map(|quote| rest.strip_prefix(quote)?.split_once(quote));
    let length = match quoted {
        Some((value, _)) => value.chars().count() + 2,
        None => rest.split(" #").next().unwrap_or_default().trim_end().chars().count(),
    };
    Span { start, end: Position { column: start.column + length.max(1), ..start } }
}

/// Counts references. The graph has those of a plugin configuration once for each root that lists it; they count once.
fn references(graph: &Graph) -> usize {
    let edges = graph.roots.iter().flat_map(|root| &root.edges);
    let edges: HashSet<_> = edges.map(|edge| (edge.from, &edge.reference.spot)).collect();
    let charts = graph.charts.iter().map(|chart| &graph.notes[chart.note]);
    let charts: HashSet<_> = charts.map(|noted| (noted.file, noted.note.position)).collect();
    edges.len() + charts.len()
}

/// The numbers of remote references, charts included, by whether something pins them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct RemoteReferences {
    pub locked: usize,
    pub allowed: usize,
    pub neither: usize,
}

impl RemoteReferences {
    /// Counts the findings of all rules, after exceptions were applied.
    fn of(findings: &[Finding]) -> RemoteReferences {
        let locked = findings.iter().filter(|finding| finding.rule == Rule::LockedReference).count();
        let unlocked = findings.iter().filter(|finding| RemoteReferences::is_unlocked(finding));
        let (allowed, neither): (Vec<_>, Vec<_>) = unlocked.partition(|finding| finding.allowed.is_some());
        RemoteReferences { locked, allowed: allowed.len(), neither: neither.len() }
    }

    /// Whether a finding is about something remote that is not locked.
    fn is_unlocked(finding: &Finding) -> bool {
        matches!(finding.rule, Rule::RemoteReference | Rule::RemoteChart)
    }
}

/// The base of a check, and how many findings it has in common with the change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BaseFindings {
    /// The revision of the base; empty if the change is compared with an empty tree.
    pub rev: String,
    /// The merge base of the change and `rev`, which the change is compared with; empty without one.
    pub commit: String,
    /// The number of findings that are not reported because the base has them too.
    pub left_out: usize,
}

/// The results of builds, as numbers and reasons; their findings are in [`Checked::findings`].
#[derive(Debug, Clone, Default, Serialize)]
pub struct BuildSummary {
    /// The number of builds that succeeded without an unlocked request.
    pub built: usize,
    /// The number of builds that were skipped because an exception keeps a reference of theirs remote.
    pub left: usize,
    /// The builds whose result is unknown, each with the reason: nothing here builds it, or its output is not stable.
    pub unknown: Vec<String>,
    /// Whether a failure kept everything from being built.
    pub stopped: bool,
    /// The program that built, and how its network was closed; empty if nothing was built.
    pub by: String,
}

/// The result of a check.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Checked {
    #[serde(flatten)]
    pub source: Snapshot,
    /// The paths to which the check was limited, from the top. Empty if it was not.
    #[serde(skip)]
    pub paths: Vec<String>,
    /// The number of kustomizations that were read.
    pub kustomizations: usize,
    /// The number of references in them.
    pub references: usize,
    /// The remote ones among them.
    #[serde(skip)]
    pub remote: RemoteReferences,
    /// For the index: the number of kustomizations that differ in the working tree, where an unstaged fix may be.
    pub differing: usize,
    /// The number of untracked or ignored kustomizations on disk, if the check had no other.
    #[serde(skip)]
    pub unseen: usize,
    /// For the working tree: the files that were read and are untracked, so that no commit has them.
    pub untracked: Vec<String>,
    /// The paths of all files that were read, and of the directories of charts.
    #[serde(skip)]
    pub read: BTreeSet<String>,
    /// Whether the lock at the top was written by `branch`.
    #[serde(skip)]
    pub is_made_by_branch: bool,
    /// The findings by path and position, allowed ones included.
    pub findings: Vec<Finding>,
    /// The results of builds. `None` if none was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub builds: Option<BuildSummary>,
    /// The base, if there is one.
    pub base: Option<BaseFindings>,
    /// With a base: the lines of the configuration that the change adds (`+`) or removes (`-`). They count from the
    /// next change on.
    pub new_config: Vec<String>,
    /// With a base: the lock entries that the locks of the base lack.
    pub new_locked: Vec<AddedEntry>,
    /// The reasons why something could not be checked. Everything else was.
    pub failures: Vec<Failure>,
}

impl Checked {
    /// The result of a check that could not begin.
    pub fn failed(source: Snapshot, failures: Vec<Failure>) -> Self {
        Checked { source, failures, ..Checked::default() }
    }

    /// Turns the findings of a tree into those of a change: drops the findings that its base has too (`old`), and adds
    /// one for each exception that the change adds, and for each upstream that `before`, the lock of the base,
    /// localizes and that is now remote. Returns the number of dropped findings.
    pub fn judge(&mut self, old: &[Finding], config: &Config, before: &Lock, tree: &dyn Tree) -> usize {
        // All findings are looked at: one that the base has too may have become an exception.
        let unlocked = new_exception::no_longer_localized(&self.findings, config, before);
        let left_out = self.leave_out(old);
        floating_ref::leave_out_remote(&mut self.findings);
        // A base without a lock fetches everything, so the exceptions of the first lock let nothing new in.
        if *before == Lock::default() {
            new_exception::accept_first(&mut self.findings, old);
        }
        let new = new_exception::find(&self.findings, config);
        self.findings.extend(new.into_iter().chain(unlocked));
        fill_in_lines(tree, &mut self.findings);
        finding::sort(&mut self.findings);
        left_out
    }

    /// Adds findings, with the severities of the configuration.
    pub(crate) fn add(&mut self, mut findings: Vec<Finding>, config: &Config, tree: &dyn Tree) {
        config.judge(&mut findings);
        self.findings.extend(findings);
        fill_in_lines(tree, &mut self.findings);
        finding::sort(&mut self.findings);
    }

    /// The number of findings of a severity that are not allowed.
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity && finding.allowed.is_none()).count()
    }

    /// The exit status: 0 if nothing fails, 1 if a finding fails, 2 if something could not be checked.
    pub fn status(&self) -> u8 {
        if self.failures.is_empty() { u8::from(self.findings.iter().any(Finding::fails)) } else { FAILED }
    }
}

#[cfg(test)]
mod tests;
