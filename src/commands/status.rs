//! `status`: the state of the repository on one screen, and the next command. `schema.json` describes the JSON.

use std::collections::BTreeSet;
use std::rc::Rc;

use clap::Args;
use serde::Serialize;

use super::messages::{counted, first, lines, listed, present};
use super::output::{Done, Outcome, Shown};
use super::targets::{named, surveyed};
use crate::build::program;
use crate::check::{Checked, RemoteReferences, gate};
use crate::config::FILE_NAME;
use crate::destination::{BranchOptions, Destination, State as BranchState, commit_command, uncommitted};
use crate::git::{LocalRepo, Snapshot, branch_of};
use crate::graph::Survey;
use crate::message::failure::{Failure, Failures, Result, command, stage};
use crate::message::finding::Severity;
use crate::plan::Changes;
use crate::record::history::{RENDERED, named_source};
use crate::record::{LOCK_NAME, Lock, stored};
use crate::targets::{ExternalInput, Installed, ObjectRef, Target, TargetState, Unread};
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, Tree};
use crate::workspace::{Files, Workspace, repository_offline};

/// How many targets are named without `verbose`.
const NAMED: usize = 10;

const BRANCH: &str = "git kustomize-localize branch";
const CHECK: &str = "git kustomize-localize check";

/// Arguments of `status`.
#[derive(Debug, Clone, Args)]
pub(super) struct StatusArgs {}

impl StatusArgs {
    pub(super) fn run(&self) -> Done {
        Ok(Box::new(status(&repository_offline()?)?))
    }
}

/// The state of the repository.
#[derive(Debug, Serialize)]
pub(super) struct Status {
    #[serde(flatten)]
    source: Snapshot,
    kustomizations: usize,
    remote_references: RemoteReferences,
    errors: usize,
    warnings: usize,
    /// How many things could not be looked at.
    failures: usize,
    targets: Vec<TargetStatus>,
    /// The objects that could not be read: there may be more targets.
    unread: Vec<Unread>,
    /// The engines that the tree installs.
    engines: Vec<Installed>,
    /// The builds that were stopped, so that targets are not known.
    #[serde(skip)]
    stopped: Vec<Failure>,
    branch: BranchStatus,
    /// The branch with the builds of HEAD. `None` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    rendered: Option<BranchStatus>,
    /// Why `branch` cannot compare builds; `None` if it can, or if there is nothing to localize.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unverified: Option<&'static str>,
    /// The next command; `None` if there is nothing to do.
    pub next: Option<String>,
}

/// A target.
#[derive(Debug, Serialize)]
struct TargetStatus {
    name: String,
    file: String,
    line: usize,
    #[serde(flatten)]
    state: TargetState,
}

/// The localized branch.
#[derive(Debug, Serialize)]
struct BranchStatus {
    /// `None` if it has no name.
    name: Option<String>,
    #[serde(flatten)]
    state: BranchState,
}

/// The state of the working tree, or of HEAD in a bare repository, with targets and branch.
fn status(repo: &Rc<LocalRepo>) -> Result<Status, Failures> {
    let (mut status, survey) = Status::without_targets(repo)?;
    // After an error the targets may be incomplete, so none are shown.
    if let Some(survey) = survey.filter(|_| status.failures == 0) {
        let targets = surveyed(repo, &survey)?;
        status.targets = targets.each().map(TargetStatus::of).collect();
        status.stopped = targets.stopped();
        status.unread = targets.unread().to_vec();
        status.engines = targets.engines;
    }
    Ok(status)
}

/// The state without the targets, which take time to find, for commands that only name the next step.
pub(super) fn without_targets(repo: &Rc<LocalRepo>) -> Result<Status, Failures> {
    Ok(Status::without_targets(repo)?.0)
}

/// The reason why `branch` cannot compare builds, with its hint, for people.
pub(super) fn unverified_line(why: &str) -> String {
    format!("builds cannot be compared: {why}; install kustomize, or name it in the variable KUSTOMIZE")
}

/// The line with the next command.
pub(super) fn next_line(next: Option<&str>) -> String {
    next.map_or_else(|| "nothing to do".to_owned(), |next| format!("next: {next}"))
}

impl Status {
    /// The state without targets, and the survey to find the targets in.
    fn without_targets(repo: &Rc<LocalRepo>) -> Result<(Status, Option<Rc<Survey>>), Failures> {
        let head = repo.commit("HEAD")?;
        let source = if repo.top.is_some() { Snapshot::WorkingTree } else { Snapshot::of(Some("HEAD")) };
        // A bare repository without a commit has no files at all.
        let files = (repo.top.is_some() || head.is_some()).then(|| Files::open(repo, &source)).transpose()?;
        let survey = files.as_ref().map(|files| Rc::new(Survey::of(files.checked_out())));
        let mut checked = match files.as_ref().zip(survey.as_ref()) {
            None => Checked::failed(source, Vec::new()),
            Some((files, survey)) => gate::checked(repo, files, survey, &[], &gate::Base::None, None)?,
        };
        let mut options = BranchOptions::default();
        let branch = if head.is_some() { BranchStatus::of(repo, &options) } else { BranchStatus::missing() };
        options.rendered = true;
        let rendered = head.map(|_| BranchStatus::of(repo, &options));
        let read = std::mem::take(&mut checked.read);
        let mut status = Status::of(checked, branch);
        status.rendered = rendered.filter(|rendered| rendered.is_news_beside(&status.branch));
        if let Some(next) = status.before_branch(repo, read)? {
            status.next = Some(next);
        }
        Ok((status, survey))
    }

    /// The state by the result of `check`, with the next step if nothing comes before `branch`. Targets are filled in
    /// later.
    fn of(checked: Checked, branch: BranchStatus) -> Status {
        let [errors, warnings] = [Severity::Error, Severity::Warning].map(|severity| checked.count(severity));
        let has_locked = checked.remote.locked > 0;
        let unverified = program::missing().filter(|_| has_locked);
        // Without a program that builds, `branch` would end with an error.
        let option = if unverified.is_some() { " --no-verify" } else { "" };
        let next = branch.next(has_locked);
        let next = next.map(|next| if next.starts_with(BRANCH) { next + option } else { next });
        Status {
            source: checked.source,
            kustomizations: checked.kustomizations,
            remote_references: checked.remote,
            errors,
            warnings,
            failures: checked.failures.len(),
            targets: Vec::new(),
            unread: Vec::new(),
            engines: Vec::new(),
            stopped: Vec::new(),
            branch,
            rendered: None,
            unverified,
            next,
        }
    }

    /// The command that must run before `branch`; `None` if `branch` is next. `used` are the files that kustomizations
    /// use.
    fn before_branch(&self, repo: &Rc<LocalRepo>, used: BTreeSet<String>) -> Result<Option<String>> {
        // On a localized branch nothing is edited: each next step starts at its source.
        if let Some(source) = repo.head()?.as_deref().and_then(branch_of).and_then(named_source) {
            return Ok(Some(command("git switch", [source])));
        }
        let check = if repo.top.is_some() { CHECK.to_owned() } else { format!("{CHECK} --rev HEAD") };
        if self.failures > 0 {
            return Ok(Some(check));
        }
        let has_errors = self.errors > 0 || self.remote_references.neither > 0;
        // `init` edits the working tree and needs kustomizations; otherwise `check` says what is wrong.
        let can_init = repo.top.is_some() && self.kustomizations > 0;
        match (has_errors, can_init) {
            (true, true) => mend_command(repo).map(Some),
            (true, false) => Ok(Some(check)),
            (false, _) if self.kustomizations == 0 => Ok(Some("git kustomize-localize help".to_owned())),
            (false, _) => self.commit_command(repo, used),
        }
    }

    /// The command that commits the files which `branch` takes from HEAD; `None` if they are committed, and in a bare
    /// repository.
    fn commit_command(&self, repo: &Rc<LocalRepo>, used: BTreeSet<String>) -> Result<Option<String>> {
        let Some(top) = &repo.top else { return Ok(None) };
        let head = head_tree(repo)?;
        // Files that only HEAD lists count as well: their removal is to be committed, too.
        let stored = [listed_files(&DiskTree::of_directory(top)?), listed_files(&*head)].concat();
        let changed = uncommitted(repo, &*head, used.into_iter().chain(stored.iter().cloned()).collect())?;
        // Without remote references `branch` does not read kustomizations, so edits of these alone need no commit.
        let has_remote = self.remote_references.locked + self.remote_references.allowed > 0;
        let is_read = |file: &String| has_remote || stored.contains(file) || [LOCK_NAME, FILE_NAME].contains(&&**file);
        if !changed.iter().any(is_read) {
            return Ok(None);
        }
        Ok(Some(format!("{} -m '{}'", commit_command(repo, &changed)?, self.commit_subject(&changed))))
    }

    /// The subject for a commit of changed files.
    fn commit_subject(&self, changed: &[String]) -> &'static str {
        let RemoteReferences { locked, allowed, .. } = self.remote_references;
        let [has_lock, has_config] = [LOCK_NAME, FILE_NAME].map(|name| changed.iter().any(|file| file == name));
        if changed.iter().any(|file| stored::localized_dir(file).is_some()) {
            return "Vendor remote references";
        }
        match (has_lock, has_config) {
            (false, false) => "Change kustomizations",
            (true, _) if locked > 0 => "Lock remote references",
            _ if allowed > 0 => "Allow remote references",
            _ => "Set up git kustomize-localize",
        }
    }
}

/// The command that mends errors: `init`, which also locks or allows references. But if git ignores the configuration
/// or the lock, `check` does not see them, and writing them again mends nothing: then the command that adds them.
fn mend_command(repo: &LocalRepo) -> Result<String> {
    let ignored = ignored_files(repo, &Changes::new())?;
    Ok(if ignored.is_empty() { "git kustomize-localize init".to_owned() } else { stage(ignored) })
}

/// The configuration and the lock, if git ignores them and does not track them, so that no other checkout has them and
/// `check` does not see them. They are on disk, or among the `changes` that are going to be written.
pub(super) fn ignored_files(repo: &LocalRepo, changes: &Changes) -> Result<Vec<&'static str>> {
    let Some(top) = &repo.top else { return Ok(Vec::new()) };
    let mut ignored = Vec::new();
    for name in [FILE_NAME, LOCK_NAME] {
        if (changes.contains_key(name) || top.join(name).exists()) && repo.ignores(name)? {
            ignored.push(name);
        }
    }
    Ok(ignored)
}

/// The files of HEAD; empty before the first commit.
fn head_tree(repo: &Rc<LocalRepo>) -> Result<SharedTree> {
    Ok(match repo.commit("HEAD")? {
        Some(head) => Rc::new(GitTree::of_commit(repo, &head)?),
        None => Rc::new(OverlayTree::default()),
    })
}

/// The localized files in the lock of a tree; empty if the lock cannot be read.
fn listed_files(tree: &dyn Tree) -> Vec<String> {
    let lock = Lock::find(tree, LOCK_NAME).ok().flatten();
    lock.iter().flat_map(|lock| &lock.files).map(|file| file.path.clone()).collect()
}

impl Status {
    /// The number of kustomizations, and that of their remote references in each state.
    fn kustomizations_text(&self) -> String {
        if self.kustomizations == 0 {
            return "no kustomization".to_owned();
        }
        let count = counted(self.kustomizations, "kustomization");
        // Without a lock that can be read, references are not judged, so nothing is counted.
        let is_unknown = self.failures > 0 && self.remote_references == RemoteReferences::default();
        let remote = if is_unknown { "remote references unknown".to_owned() } else { self.remote_references.text() };
        format!("{count}, {remote}")
    }

    /// A line for each target and for each object that could not be read; only the first [`NAMED`] without `verbose`.
    fn target_lines(&self, verbose: bool) -> Vec<String> {
        let mut targets: Vec<&TargetStatus> = self.targets.iter().collect();
        // Finished targets come last: only the first lines are printed.
        targets.sort_by_key(|target| target.state == TargetState::Localized);
        let unread = self.unread.iter().map(|unread| status_line("unknown", &unread.location_text(), &unread.message));
        let mut texts: Vec<String> = unread.chain(targets.into_iter().map(TargetStatus::text)).collect();
        // Several targets that one object generates share a line.
        texts.dedup();
        first(texts.into_iter(), if verbose { usize::MAX } else { NAMED })
    }

    /// The number of targets in each state: always of three, and of the other states only if there are any. Objects
    /// that could not be read count as unknown, as in `targets`.
    fn counts(&self) -> String {
        let counts = TargetState::WORDS.iter().filter_map(|word| {
            let unread = if *word == "unknown" { self.unread.len() } else { 0 };
            let count = self.targets.iter().filter(|target| target.state.word() == *word).count() + unread;
            let is_always = ["localized", "remote", "unknown"].contains(word);
            (is_always || count > 0).then(|| format!("{count} {word}"))
        });
        let counts: Vec<String> = counts.collect();
        format!("{}: {}", counted(self.targets.len(), "target"), counts.join(", "))
    }
}

impl TargetStatus {
    /// The state of a target; `reaches` are the inputs of its build that the tree lacks.
    fn of((target, reaches): (&Target, Option<&[ExternalInput]>)) -> TargetStatus {
        let (ObjectRef { file, line, .. }, state) = (&target.object, target.state(reaches));
        TargetStatus { name: named(target), file: file.clone(), line: *line, state }
    }

    /// The state of the target in a line, with the reason or the first remote input of its build.
    fn text(&self) -> String {
        let why = match &self.state {
            TargetState::Localized => String::new(),
            TargetState::Remote { reaches } => {
                let more = if reaches.len() > 1 { format!(" and {} more", reaches.len() - 1) } else { String::new() };
                format!(": {}{more}", reaches.first().map_or("", String::as_str))
            }
            TargetState::Missing { why }
            | TargetState::Invalid { why }
            | TargetState::External { why }
            | TargetState::Other { why }
            | TargetState::Unknown { why } => format!(": {why}"),
        };
        status_line(self.state.word(), &format!("{}:{}", self.file, self.line), &format!("{}{why}", self.name))
    }
}

/// A line about what is deployed.
fn status_line(state: &str, location: &str, text: &str) -> String {
    format!("  {state:<9}  {location}: {text}")
}

impl BranchStatus {
    /// The state of a branch that does not exist and has no name, because nothing is committed.
    fn missing() -> BranchStatus {
        BranchStatus { name: None, state: BranchState::Missing }
    }

    /// Looks at the branch to which `branch` with these options would commit HEAD.
    fn of(repo: &Rc<LocalRepo>, options: &BranchOptions) -> BranchStatus {
        // A branch that cannot be examined is a state, not the end of `status`.
        let look = || -> Result<Option<BranchStatus>, Failures> {
            // A named revision is opened as a commit, so that uncommitted changes do not matter.
            let workspace = Workspace::of_rev(repo.clone(), Some("HEAD"))?;
            // A branch with edits by hand is a state as well, so it is opened as for `--overwrite`.
            let overwrite = true;
            let destination = Destination::open(&workspace, Some(options), None, overwrite)?;
            let Some(on) = destination.branch() else { return Ok(None) };
            Ok(Some(BranchStatus { name: Some(on.branch.name.clone()), state: on.state()? }))
        };
        match look() {
            Ok(branch) => branch.unwrap_or_else(BranchStatus::missing),
            Err(failures) => BranchStatus { name: None, state: BranchState::unknown(failures) },
        }
    }

    /// Whether a rendered branch is there, or cannot be examined for another reason than the localized one.
    fn is_news_beside(&self, localized: &BranchStatus) -> bool {
        match (&self.state, &localized.state) {
            (BranchState::Missing, _) => false,
            (BranchState::Unknown { why, .. }, BranchState::Unknown { why: same, .. }) => why != same,
            _ => true,
        }
    }

    /// The command that updates the branch, locally and at the remote. `None` if it is current, or if there is nothing
    /// to localize and no branch.
    fn next(&self, has_locked: bool) -> Option<String> {
        let next = match &self.state {
            BranchState::Missing if !has_locked => return None,
            BranchState::UpToDate => return None,
            BranchState::Missing | BranchState::Behind { .. } => BRANCH,
            BranchState::Ahead { .. } => "git kustomize-localize branch --push",
            BranchState::Edited { .. } => "git kustomize-localize branch --overwrite",
            // Without a command of its own, `branch` fails with the reason and the ways out.
            BranchState::Unknown { command, .. } => command.as_deref().unwrap_or(BRANCH),
        };
        Some(next.to_owned())
    }

    /// The state in a line; `noun` stands for an unknown name.
    fn text(&self, noun: &str) -> String {
        let state = match &self.state {
            BranchState::Missing => "missing".to_owned(),
            BranchState::UpToDate => "up to date".to_owned(),
            BranchState::Ahead { remote } => format!("up to date, and `{remote}` does not have it yet"),
            BranchState::Behind { commits: Some(count) } => {
                // Commits that change no rendered file are not rendered, and telling them apart takes all builds.
                let is_rendered = self.name.as_deref().is_some_and(|name| name.starts_with(RENDERED));
                format!("{}{} behind", if is_rendered { "at most " } else { "" }, counted(*count, "commit"))
            }
            BranchState::Behind { commits: None } => "behind".to_owned(),
            BranchState::Edited { paths } => {
                format!("edited by hand, which --overwrite discards: {}", listed(paths, 3))
            }
            BranchState::Unknown { why, .. } => format!("unknown: {why}"),
        };
        match &self.name {
            Some(name) => format!("branch {name}: {state}"),
            None => format!("{noun}: {state}"),
        }
    }
}

impl RemoteReferences {
    /// The number of remote references, and how many are locked, allowed, or neither.
    fn text(self) -> String {
        let RemoteReferences { locked, allowed, neither } = self;
        let states = [(locked, "locked"), (allowed, "allowed"), (neither, "not locked")];
        let states = present(states.map(|(count, state)| (count, format!("{count} {state}"))));
        let count = counted(locked + allowed + neither, "remote reference");
        if states.is_empty() { count } else { format!("{count} ({})", states.join(", ")) }
    }
}

impl Outcome for Status {
    fn stopped(&self) -> Vec<Failure> {
        self.stopped.clone()
    }

    fn text(&self, shown: Shown) -> String {
        let mut out = vec![self.kustomizations_text()];
        if self.errors + self.warnings + self.failures > 0 {
            let failed = match self.failures {
                0 => String::new(),
                count => format!(", {count} could not be checked"),
            };
            let [errors, warnings] = [counted(self.errors, "error"), counted(self.warnings, "warning")];
            out.push(format!("check: {errors}, {warnings}{failed}"));
        }
        if !self.targets.is_empty() || !self.unread.is_empty() {
            out.push(self.counts());
            out.extend(self.target_lines(shown.verbose));
        }
        let engines: BTreeSet<String> = self.engines.iter().map(Installed::name).collect();
        if !engines.is_empty() {
            out.push(format!("engines: {}", listed(engines, NAMED)));
        }
        out.extend(self.unverified.map(unverified_line));
        out.push(self.branch.text("branch"));
        out.extend(self.rendered.as_ref().map(|rendered| rendered.text("rendered branch")));
        out.push(next_line(self.next.as_deref()));
        lines(out)
    }
}
