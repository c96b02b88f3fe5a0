//! `init`: locks the references, allows those that are gone, and lists those that people must edit. Nothing is written
//! before all of it is known. `schema.json` describes the JSON.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use clap::Args;
use serde::Serialize;

use super::messages::{self, NAMED, changes, counted, grouped, lines, listed};
use super::output::{Done, Outcome, OutputArgs, Shown};
use super::{News, lock, status};
use crate::check::{Checked, RemoteReferences, gate};
use crate::config::{Config, FILE_NAME, is_placeholder};
use crate::fetch::{FetchOptions, Fetcher};
use crate::localize::{NowRemote, WriteOutcome, write};
use crate::message::failure::{Failure, Failures, Location, Result};
use crate::message::finding::{Finding, Rule};
use crate::message::position::{Position, Span};
use crate::plan::lock::{Relocked, relock, up_to_date, without_charts};
use crate::plan::{Changes, ResultFile};
use crate::record::{LOCK_NAME, Lock, LockChange};
use crate::reference::Upstream;
use crate::tree::{Entry, path};
use crate::workspace::{Workspace, fetch_options, fetcher, repository_offline};

/// Arguments of `init`.
#[derive(Debug, Clone, Args)]
pub(super) struct InitArgs {
    /// Show what would be done; may fetch into the cache, writes nothing else
    #[arg(long)]
    dry_run: bool,

    /// Use only what lock and cache hold
    #[arg(long)]
    offline: bool,
}

impl InitArgs {
    /// Sets up a repository step by step: each step changes configuration and lock in memory only, so that `check`
    /// fails less.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let mut setup = Setup::open(self.offline, output.quiet)?;
        setup.lift_load_restrictor()?;
        setup.exclude_templates()?;
        setup.lock()?;
        setup.allow_gone()?;
        Ok(Box::new(setup.finish(self.dry_run)?))
    }
}

/// A repository, and the changes that are going to be written.
struct Setup {
    workspace: Workspace,
    old_lock: Lock,
    fetcher: Fetcher,
    relocked: Relocked,
    /// The lock to write; `None` if it does not change.
    new_lock: Option<ResultFile>,
    old_config: String,
    /// The text of the configuration to write. `workspace` has the same configuration.
    new_config: String,
    /// The new entries of the configuration.
    added: Vec<AddedKey>,
    /// The result of `check` after these changes.
    checked: Checked,
}

impl Setup {
    /// Reads the files, and checks them as they are, without any change.
    fn open(offline: bool, quiet: bool) -> Result<Setup, Failures> {
        let workspace = Workspace::of_merged_working_tree()?;
        let old_lock = workspace.lock.clone().unwrap_or_default();
        let config = &workspace.config;
        // Without `helm: true` no chart is pulled, not even one that the lock has.
        let locks = vec![without_charts(Some(&old_lock), config.helm).into()];
        let options = FetchOptions { offline, quiet, ..fetch_options(config) };
        let fetcher = fetcher(workspace.repo(), options, locks, None)?;
        // The workspace has read it as a configuration already, so it is valid UTF-8.
        let text = match workspace.tree.entry(FILE_NAME)? {
            Some(Entry::File { .. }) => String::from_utf8_lossy(&workspace.tree.read(FILE_NAME)?).into_owned(),
            _ => String::new(),
        };
        // The file of a lock with a conflict cannot be read, so it is checked with the entries of both sides.
        let new_lock = workspace.conflicts.is_some().then(|| ResultFile::of(&old_lock)).transpose()?;
        let mut setup = Setup {
            old_lock: (*old_lock).clone(),
            fetcher,
            relocked: Relocked::default(),
            new_lock,
            old_config: text.clone(),
            new_config: text,
            added: Vec::new(),
            checked: Checked::default(),
            workspace,
        };
        setup.checked = setup.check_with(&setup.new_config, &setup.workspace.config)?;
        Ok(setup)
    }

    /// The changes to write if the configuration is `text`: it and the lock, if they differ from the files.
    fn changes_to(&self, text: &str) -> Changes {
        let config = (text != self.old_config).then(|| ResultFile::plain(text.as_bytes().to_vec()));
        let files = [(FILE_NAME, config), (LOCK_NAME, self.new_lock.clone())];
        files.into_iter().filter_map(|(name, file)| Some((name.to_owned(), Some(file?)))).collect()
    }

    /// Checks the files as they will be once the configuration `text` (`config`) and the new lock are written.
    fn check_with(&self, text: &str, config: &Config) -> Result<Checked, Failures> {
        gate::once_written(&self.workspace, &self.changes_to(text), config)
    }

    /// A configuration with the result of `check`; `None` if something could not be checked.
    fn try_config(&self, text: &str) -> Result<Option<(Config, Checked)>> {
        let config = Config::parse(text.as_bytes(), FILE_NAME)?;
        // A configuration that excludes every kustomization is a failure here, and `init` goes on without it.
        Ok(self.check_with(text, &config).ok().map(|checked| (config, checked)))
    }

    /// Takes a configuration, if it mends errors and makes no new ones.
    fn take_if_it_mends(&mut self, text: String, (config, checked): (Config, Checked), added: Vec<AddedKey>) {
        let (old, new) = (errors(&self.checked), errors(&checked));
        if new.len() < old.len() && new.is_subset(&old) {
            self.new_config = text;
            self.workspace.config = config;
            self.added.extend(added);
            self.checked = checked;
        }
    }

    /// Sets `load-restrictor: none`, which lets roots load files from outside, if that mends errors and makes none.
    fn lift_load_restrictor(&mut self) -> Result<()> {
        let (key, value) = ("load-restrictor", "none");
        if let Some(text) = Config::with(&self.new_config, key, value)
            && failing(&self.checked).any(|finding| finding.rule == Rule::OutOfScope)
            && let Some(tried) = self.try_config(&text)?
        {
            self.take_if_it_mends(text, tried, vec![AddedKey::of(format!("{key}: {value}"))]);
        }
        Ok(())
    }

    /// Excludes the directories of templates, except for those that a reference needs, which are walked anyway, and
    /// those with a readable root below.
    fn exclude_templates(&mut self) -> Result<()> {
        let directories = failing(&self.checked).filter(|finding| is_template(finding)).map(directory);
        // The top is not a template: without it nothing would be left.
        let mut templates: BTreeSet<String> = directories.filter(|directory| !directory.is_empty()).collect();
        // A directory with a readable root is not a template as a whole.
        let roots = self.workspace.roots()?;
        let roots = roots.into_iter().filter(|root| !templates.contains(*root) && !has_variable(root));
        let roots: Vec<String> = roots.map(str::to_owned).collect();
        templates.retain(|directory| !roots.iter().any(|root| path::is_in(root, directory)));
        // Excluding a directory may show that another one is still reached. A second attempt leaves that one in.
        for _ in 0..2 {
            let entries: Vec<String> =
                templates.iter().map(|directory| format!("- {}", Config::path_entry(directory))).collect();
            if entries.is_empty() {
                return Ok(());
            }
            let text = append(&self.new_config, "exclude", &entries)?;
            let added = entries
                .iter()
                .map(|entry| AddedKey::of(format!("exclude: {}", entry.trim_start_matches("- "))))
                .collect();
            // If `check` cannot run with these entries, none is taken.
            let Some(tried) = self.try_config(&text)? else { return Ok(()) };
            let still_failing: BTreeSet<String> = failing(&tried.1).map(directory).collect();
            if templates.is_disjoint(&still_failing) {
                self.take_if_it_mends(text, tried, added);
                return Ok(());
            }
            templates.retain(|directory| !still_failing.contains(directory));
        }
        Ok(())
    }

    /// Locks the references that the configuration does not allow to stay remote.
    fn lock(&mut self) -> Result<(), Failures> {
        let resolved_before = without_charts(Some(&self.old_lock), self.workspace.config.helm);
        self.relocked = match up_to_date(&self.workspace)? {
            Some(relocked) => relocked,
            None => relock(&self.workspace, &resolved_before, &mut self.fetcher)?,
        };
        self.new_lock = lock::changed_lock(&self.workspace, &self.old_lock, &mut self.relocked)?;
        self.checked = self.check_with(&self.new_config, &self.workspace.config)?;
        Ok(())
    }

    /// Allows the references that are gone, as their servers say, with as few entries as possible.
    fn allow_gone(&mut self) -> Result<(), Failures> {
        let (text, mut entries) = (self.new_config.clone(), BTreeMap::new());
        // Each round allows the references that are gone, and may reach further references behind others. An entry is
        // kept with its cause.
        loop {
            let known = entries.len();
            for failure in self.relocked.unresolved.iter().filter(|failure| failure.kind.is_gone()) {
                for entry in Config::entries(&Vec::from_iter(failure.exception.as_deref())) {
                    entries.entry(entry).or_insert_with(|| failure.message.clone());
                }
            }
            if entries.len() == known {
                break;
            }
            self.allow(&text, entries.keys().cloned().collect())?;
        }
        // The last rounds may have made an earlier entry superfluous. An entry is in use if it allows a finding, or
        // lets something behind a locked reference stay remote. New entries come first in the list.
        let count = entries.len();
        let allow = &self.workspace.config.allow[..count];
        let allowed = self.checked.findings.iter().filter_map(|finding| finding.allowed.as_ref());
        let in_findings: HashSet<Span> = allowed.filter(|by| by.path == FILE_NAME).map(|by| by.span).collect();
        let left = self.relocked.lock.left.keys();
        let in_lock = left.filter_map(|left| self.workspace.config.allowed_by(left.rule(), &left.subject(), ""));
        let in_lock: HashSet<usize> = in_lock.collect();
        let used: Vec<(String, String)> = entries
            .into_iter()
            .enumerate()
            .filter(|(index, _)| in_lock.contains(index) || in_findings.contains(&allow[*index].span))
            .map(|(_, entry)| entry)
            .collect();
        if used.len() < count {
            self.allow(&text, used.iter().map(|(entry, _)| entry.clone()).collect())?;
        }
        self.added.extend(used.into_iter().map(|(entry, cause)| AddedKey {
            entry: format!("allow: {}", entry.trim_start_matches("- ")),
            cause: Some(cause),
        }));
        Ok(())
    }

    /// Takes the configuration `text` with these entries of `allow`, and locks by that. `entries` has also those of
    /// earlier rounds, which `text` lacks.
    fn allow(&mut self, text: &str, entries: Vec<String>) -> Result<(), Failures> {
        self.new_config = if entries.is_empty() { text.to_owned() } else { append(text, "allow", &entries)? };
        self.workspace.config = Config::parse(self.new_config.as_bytes(), FILE_NAME)?;
        self.lock()
    }

    /// Writes configuration and lock, and returns the report. Nothing was written before.
    fn finish(self, dry_run: bool) -> Result<Initialized, Failures> {
        let changes = self.changes_to(&self.new_config);
        let outcome = write(&self.workspace, &changes, &[], dry_run)?;
        // After a dry run the files do not have the state that the report is about.
        let is_planned = outcome == WriteOutcome::DryRun;
        let repo = repository_offline()?;
        let status = (!is_planned).then(|| status::without_targets(&repo)).transpose()?;
        Ok(Initialized {
            outcome,
            edit: self.edits(),
            ignored: status::ignored_files(&repo, &changes)?,
            files: changes.into_keys().collect(),
            remote_references: self.checked.remote,
            changes: Lock::changes(&self.old_lock, &self.relocked.lock),
            now_remote: NowRemote::between(&self.old_lock, &self.relocked.lock, &self.workspace.config),
            configuration: self.added,
            conflicts: self.workspace.conflicts.clone().unwrap_or_default(),
            status: self.checked.status(),
            has_configuration: !self.new_config.is_empty(),
            unverified: status.as_ref().and_then(|status| status.unverified),
            next: status.map_or_else(|| Some(INIT.to_owned()), |status| status.next),
        })
    }

    /// Everything that people must edit, by location: references that could not be locked, other errors of `check`, and
    /// reasons that are missing.
    fn edits(&self) -> Vec<RequiredEdit> {
        let mut edits: Vec<RequiredEdit> = self.relocked.unresolved.iter().map(RequiredEdit::of_failure).collect();
        let unresolved: BTreeSet<(String, usize)> = edits.iter().map(|edit| (edit.path.clone(), edit.line)).collect();
        // A failure tells why a reference is not locked, so its finding would only repeat that.
        let is_unresolved = |finding: &Finding| {
            let line = finding.span.map_or(0, |span| span.start.line);
            matches!(
                finding.rule,
                Rule::RemoteReference | Rule::RemoteChart | Rule::UnlistedSource | Rule::UnsignedSource
            ) && unresolved.contains(&(finding.path.clone(), line))
        };
        edits.extend(failing(&self.checked).filter(|finding| !is_unresolved(finding)).map(RequiredEdit::of_finding));
        let unreasoned = self.workspace.config.allow.iter().filter(|entry| is_placeholder(&entry.reason));
        // Where the finding of `check` is an error, it is among them already.
        let reported: Vec<Option<Span>> = failing(&self.checked)
            .filter(|finding| finding.rule == Rule::StaleAllow && finding.path == FILE_NAME)
            .map(|finding| finding.span)
            .collect();
        let unreported = unreasoned.filter(|entry| !reported.contains(&Some(entry.span)));
        edits.extend(unreported.map(|entry| {
            let hint = format!("replace `{}` with the reason for this exception", entry.reason);
            let failure = Failure::new(entry.text.clone()).hint(hint);
            let finding = Finding::new(Rule::StaleAllow, FILE_NAME, failure);
            RequiredEdit::of_finding(&Finding { span: Some(entry.span), ..finding })
        }));
        // The order is by file and line, so that people can work through them from top to bottom.
        edits.sort_by(|left, other| (&left.path, left.line).cmp(&(&other.path, other.line)));
        edits
    }
}

/// The directory of the file with a finding.
fn directory(finding: &Finding) -> String {
    path::parent(&finding.path).to_owned()
}

const INIT: &str = "git kustomize-localize init";

/// The configuration with more entries in a list; fails if the list is not written line by line.
fn append(text: &str, key: &str, entries: &[String]) -> Result<String> {
    Config::with_entries(text, key, entries).ok_or_else(|| {
        let failure = Failure::new(format!(
            "nothing was written: cannot add entries to `{FILE_NAME}`: expected one entry per line in `{key}`"
        ));
        let failure = failure.hint(format!("write them below `{key}:` by hand:"));
        entries.iter().cloned().fold(failure, Failure::hint)
    })
}

/// The findings that make `check` fail.
fn failing(checked: &Checked) -> impl Iterator<Item = &Finding> {
    checked.findings.iter().filter(|finding| finding.fails())
}

/// The identities of the failing findings, to compare two configurations.
fn errors(checked: &Checked) -> BTreeSet<(Rule, &str, Option<Span>, &str)> {
    failing(checked).map(|finding| (finding.rule, &*finding.path, finding.span, &*finding.message)).collect()
}

/// Whether a finding is caused by a template, which another program fills in before the build.
fn is_template(finding: &Finding) -> bool {
    // `is_template` is about a file that cannot be read. One that can is a kustomization, even if a reference in it has
    // a variable.
    finding.is_template || has_variable(&finding.path)
}

/// Whether a path contains a variable of a template, so that it names no directory yet.
fn has_variable(path: &str) -> bool {
    ["{{", "{%", "${"].iter().any(|mark| path.contains(mark))
}

/// The entry of `allow` for a file that people may want to keep as it is; `None` if there should be none.
fn exception(finding: &Finding) -> Option<String> {
    // Localizing fixes remote references, and no build reads an invalid file.
    if finding.unread || matches!(finding.rule, Rule::RemoteReference | Rule::InvalidKustomization) {
        return None;
    }
    // An entry that would not cover the finding is not proposed.
    let exception = Config::exception(finding.rule, &finding.subject, &finding.path)?;
    Config::entries(&[&exception]).pop()
}

/// Something that is new in the configuration.
#[derive(Debug, Serialize)]
struct AddedKey {
    /// The line, with its key.
    entry: String,
    /// Why an exception is needed; `None` for anything else.
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<String>,
}

impl AddedKey {
    /// An entry that needs no cause.
    fn of(entry: String) -> AddedKey {
        AddedKey { entry, cause: None }
    }

    /// The lines of the report about the entry.
    fn lines(&self) -> impl Iterator<Item = String> {
        let cause = self.cause.iter().map(|cause| format!("    {cause}"));
        [format!("  {FILE_NAME}: {}", self.entry)].into_iter().chain(cause)
    }
}

/// Something that people must edit.
#[derive(Debug, Serialize)]
struct RequiredEdit {
    path: String,
    /// 0 for the file as a whole.
    line: usize,
    rule: Rule,
    message: String,
    help: Vec<String>,
    /// The entry of `allow` for it; `None` if there should be none.
    #[serde(rename = "allow", skip_serializing_if = "Option::is_none")]
    exception: Option<String>,
    /// The repository of a chart, whose references share a line and an entry of `allow`; `None` for anything else.
    #[serde(skip)]
    repository: Option<String>,
    /// Whether it is not resolved: another run may do that, where a server did not answer.
    #[serde(skip)]
    is_unlocked: bool,
}

impl RequiredEdit {
    /// The edit that a finding of `check` demands.
    fn of_finding(finding: &Finding) -> RequiredEdit {
        RequiredEdit {
            path: finding.path.clone(),
            line: finding.span.map_or(0, |span| span.start.line),
            rule: finding.rule,
            message: finding.message.clone(),
            help: finding.help.clone(),
            exception: exception(finding),
            repository: match finding.subject.upstream() {
                Some(Upstream::Chart { url, .. }) => Some(url.clone()),
                _ => None,
            },
            is_unlocked: false,
        }
    }

    /// The edit that a reference demands because it could not be locked.
    fn of_failure(failure: &Failure) -> RequiredEdit {
        // A failure is reported at the user's file that leads to it.
        let location = failure.chain.first().or(failure.location.as_deref()).cloned();
        let Location { file, position: Position { line, .. }, .. } = location.unwrap_or_default();
        let message = if failure.chain.is_empty() { failure.message.clone() } else { failure.to_string() };
        RequiredEdit {
            path: file,
            line,
            rule: Rule::RemoteReference,
            message,
            help: failure.hints.clone(),
            exception: failure.exception.as_deref().and_then(|exception| Config::entries(&[exception]).pop()),
            repository: None,
            is_unlocked: true,
        }
    }

    /// The ways to mend it, without the paths and commands that differ: references with the same ways are listed
    /// together.
    fn ways(&self) -> Vec<&str> {
        self.help.iter().map(|line| line.split_once(": ").map_or(&**line, |(way, _)| way)).collect()
    }

    /// The location as `FILE:LINE`, or only the file.
    fn location_text(&self) -> String {
        if self.line > 0 { format!("{}:{}", self.path, self.line) } else { self.path.clone() }
    }
}

/// The outcome of `init`.
#[derive(Debug, Serialize)]
struct Initialized {
    outcome: WriteOutcome,
    /// The files that were written.
    files: Vec<String>,
    remote_references: RemoteReferences,
    #[serde(skip)]
    changes: Vec<LockChange>,
    #[serde(skip)]
    now_remote: Vec<NowRemote>,
    /// The new entries of the configuration.
    configuration: Vec<AddedKey>,
    /// The references that people must edit.
    edit: Vec<RequiredEdit>,
    /// The entries that both sides of a conflict changed.
    #[serde(rename = "kept")]
    conflicts: Vec<Failure>,
    /// The configuration and the lock, if git ignores them.
    #[serde(skip)]
    ignored: Vec<&'static str>,
    #[serde(skip)]
    status: u8,
    /// Whether there is a configuration, now that this is written.
    #[serde(skip)]
    has_configuration: bool,
    /// Why `branch` cannot compare builds; `None` if it can, or if there is nothing to localize.
    #[serde(skip_serializing_if = "Option::is_none")]
    unverified: Option<&'static str>,
    /// The next command; `None` if there is nothing to do.
    next: Option<String>,
}

impl Initialized {
    /// The lines about everything that must be edited, by rule and by the ways out, with common help once.
    fn edit_lines(&self) -> Vec<String> {
        // People fix causes, not locations: fifty references to one repository are one edit for them.
        let mut headings: BTreeMap<(Rule, bool), Vec<&RequiredEdit>> = BTreeMap::new();
        for edit in &self.edit {
            headings.entry((edit.rule, edit.is_unlocked)).or_default().push(edit);
        }
        let mut out = Vec::new();
        for ((rule, is_unlocked), edits) in headings {
            // A message that differs for each reference is printed beside it, the same one only once above them.
            let same = edits
                .first()
                .map(|edit| &*edit.message)
                .filter(|message| edits.len() > 1 && edits.iter().all(|other| other.message == *message));
            let count = if is_unlocked {
                format!("{} could not be locked", counted(edits.len(), "reference"))
            } else {
                format!("{} to edit ({rule})", counted(edits.len(), "place"))
            };
            out.push(same.map_or(count.clone(), |message| format!("{count}: {message}")));
            let mut groups: BTreeMap<Vec<&str>, Vec<&RequiredEdit>> = BTreeMap::new();
            edits.iter().for_each(|edit| groups.entry(edit.ways()).or_default().push(edit));
            groups.values().for_each(|group| out.extend(self.group_lines(group, same.is_some())));
        }
        out
    }

    /// The lines of references with the same ways out, with their messages unless those `are_told`, then the help for
    /// all.
    fn group_lines(&self, group: &[&RequiredEdit], are_told: bool) -> Vec<String> {
        let line = |edit: &RequiredEdit| if are_told { String::new() } else { format!(": {}", edit.message) };
        let mut out: Vec<String> = grouped(group.iter().copied(), |edit| &edit.repository)
            .into_iter()
            .flat_map(|edits| match &edits[0].repository {
                Some(url) if edits.len() > NAMED => {
                    let locations = listed(edits.iter().map(|edit| edit.location_text()), NAMED);
                    vec![format!("  {} of {url}: {locations}", counted(edits.len(), "chart reference"))]
                }
                _ => edits.iter().map(|edit| format!("  {}{}", edit.location_text(), line(edit))).collect(),
            })
            .collect();
        // Help that differs for each reference is printed by `check`.
        let help = group.first().into_iter().flat_map(|edit| &edit.help);
        let shared = help.filter(|help| group.iter().all(|other| other.help.contains(help)));
        let shared: Vec<String> = shared.map(|help| format!("  help: {help}")).collect();
        let way = if shared.is_empty() { "correct it, or allow" } else { "or allow" };
        out.extend(shared);
        out.extend(self.allow_lines(group, way));
        out
    }

    /// The help with the entries of `allow` that let these references stay as they are; `way` are its first words.
    fn allow_lines(&self, group: &[&RequiredEdit], way: &str) -> Vec<String> {
        let by_repository = grouped(group.iter().copied(), |edit| &edit.repository);
        let entries = by_repository.into_iter().flat_map(|edits| {
            let exact: BTreeSet<&str> = edits.iter().filter_map(|edit| edit.exception.as_deref()).collect();
            // Several charts of a repository share an entry.
            match &edits[0].repository {
                Some(url) if exact.len() > NAMED => vec![Config::entry_of_charts(url)],
                _ => exact.into_iter().map(str::to_owned).collect(),
            }
        });
        let entries: BTreeSet<String> = entries.collect();
        let which = if group.len() > 1 { "each" } else { "it" };
        let file = if self.has_configuration { "" } else { "a new file " };
        let help = format!("  help: {way} {which}, below `allow:` in {file}{FILE_NAME}:");
        match Vec::from_iter(entries).as_slice() {
            [] => Vec::new(),
            [entry] => vec![format!("{help} {entry}")],
            all => [help].into_iter().chain(all.iter().map(|entry| format!("    {entry}"))).collect(),
        }
    }
}

impl Outcome for Initialized {
    fn text(&self, shown: Shown) -> String {
        let done = match self.outcome {
            WriteOutcome::DryRun => "would write",
            _ => "wrote",
        };
        let mut out: Vec<String> = self.files.iter().map(|file| format!("{done} {file}")).collect();
        out.extend(changes(&self.changes, &News::new(), |_| None, shown));
        out.extend(self.now_remote.iter().map(|upstream| format!("  {}", upstream.line())));
        out.extend(self.configuration.iter().flat_map(AddedKey::lines));
        if out.is_empty() {
            let RemoteReferences { locked, allowed, .. } = self.remote_references;
            out.push(format!("nothing to write: {locked} locked, {allowed} allowed"));
        }
        out.extend(self.edit_lines());
        out.extend(self.ignored.iter().map(|file| format!("git ignores {file}, so check does not see it")));
        match (self.status, self.outcome) {
            _ if !self.ignored.is_empty() => {}
            (0, WriteOutcome::DryRun) => out.push("check would pass".to_owned()),
            (0, _) => out.push("check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes".to_owned()),
            _ => {}
        }
        out.extend(self.unverified.map(status::unverified_line));
        out.push(match &self.next {
            // While `check` fails, the edits above come first: until then, `init` would report the same again.
            Some(next) if self.status > 0 && self.outcome != WriteOutcome::DryRun => format!("after that: {next}"),
            next => status::next_line(next.as_deref()),
        });
        lines(out)
    }

    fn stderr(&self, _output: &OutputArgs) -> String {
        messages::failures(&self.conflicts)
    }

    fn status(&self) -> u8 {
        self.status.max(u8::from(!self.conflicts.is_empty() || !self.ignored.is_empty()))
    }
}
