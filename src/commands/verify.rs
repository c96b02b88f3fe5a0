//! `verify`: a localized commit against its lock and trailers. `schema.json` describes each field of the JSON.

mod rebuild;

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::Path;
use std::rc::Rc;

use clap::Args;

use super::messages::{self, counted, lines, present};
use super::output::{Done, Outcome, OutputArgs, Shown};
use crate::config::Config;
use crate::fetch::{FetchOptions, Network};
use crate::git::{CommitId, LocalRepo};
use crate::message::failure::{Failure, Result, argument, command, short, shown};
use crate::record::answer::{UpdateKind, UpstreamVerdict};
use crate::record::{LOCK_NAME, Pinned};
use crate::reference::Upstream;
use crate::tree::path;
use crate::verify::upstream_status::{Ask, EntryStatus};
use crate::verify::{self, Difference, DifferenceKind, Record, VerifyOutcome, verify_directory};
use crate::workspace::{fetch_options, remote_git, repository_offline};

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub(super) struct VerifyArgs {
    /// The commit, or a directory that `--no-commit` wrote [default: HEAD]
    rev: Option<String>,

    /// Compare each locked remote with upstream: ok, updated, moved, gone or unreachable
    ///
    /// Also for a lock at the top that only says what URLs are locked to, as on `main`.
    #[arg(long)]
    upstream: bool,

    /// Localize again from the source commit and the lock, and compare
    ///
    /// Bytes come from the cache or from upstream: this needs the network, or a warm cache.
    #[arg(long)]
    rebuild: bool,
}

impl VerifyArgs {
    /// Verifies a commit, or a directory that was handed over.
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        // A directory that was handed over needs no repository.
        let repo = LocalRepo::discover_offline()?.map(Rc::new);
        let directory = directory_argument(self.rev.as_deref(), repo.as_deref())?;
        // A directory has no source commit from which it could be localized.
        if let Some(text) = directory.filter(|_| self.rebuild) {
            return Err(Failure::new(format!("`--rebuild` needs a commit, but `{text}` is a directory"))
                .hint("remove it, or name a commit")
                .into());
        }
        // Only with `--upstream` are servers asked.
        let remote_git = self.upstream.then(|| remote_git(repo.as_deref())).transpose()?;
        let ask = remote_git.as_ref().map(|remote_git| {
            |config: &Config, entries: &[(&Upstream, &Pinned)]| {
                let options = FetchOptions { quiet: output.quiet, ..fetch_options(config) };
                Network::new(remote_git.clone(), &options).states(config, entries)
            }
        });
        let ask = ask.as_ref().map(|ask| ask as &Ask<'_>);
        if let Some(directory) = directory {
            return Ok(Box::new(verify_directory(directory, repo.is_some(), ask)?));
        }
        let repo = repo.map_or_else(repository_offline, Ok)?;
        let rev = self.rev.as_deref().unwrap_or("HEAD");
        let mut verified = verify::verify(&repo, rev, ask)?;
        if self.rebuild {
            rebuild::compare(&mut verified)?;
        }
        Ok(Box::new(verified))
    }
}

/// The directory that an argument names. `None` without an argument, if there is no such directory, or if the argument
/// also names a commit and the directory has no lock. Fails if it names a commit and a directory with a lock.
pub(super) fn directory_argument<'a>(rev: Option<&'a str>, repo: Option<&LocalRepo>) -> Result<Option<&'a str>> {
    let Some(text) = rev.filter(|text| Path::new(text).is_dir()) else {
        return Ok(None);
    };
    // A name of both is refused, because the wrong one would be used in silence. But a directory without a lock has
    // nothing to verify, so that the commit is meant. No revision begins with a dash.
    let commit = match repo {
        Some(repo) if !text.starts_with('-') => repo.commit(text)?,
        _ => None,
    };
    match commit {
        Some(id) if Path::new(text).join(LOCK_NAME).is_file() => {
            Err(names_both(text, &id, format_args!("a directory with a `{LOCK_NAME}`")))
        }
        Some(_) => Ok(None),
        None => Ok(Some(text)),
    }
}

/// The failure for an argument that names both a commit and `directory`, with an unambiguous name of each.
pub(super) fn names_both(text: &str, id: &CommitId, directory: impl Display) -> Failure {
    Failure::new(format!("`{}` names both a commit and {directory}", shown(text)))
        .hint(format!("name the directory: {}", argument(&format!("./{text}"))))
        .hint(format!("name the commit: {}", id.commit))
}

impl Outcome for VerifyOutcome {
    /// The differences, and the subjects of the verification.
    fn text(&self, _shown: Shown) -> String {
        // The state of upstream is reported below, along with the unchanged upstreams.
        let differences = self.differences.iter().filter(|difference| difference.kind != DifferenceKind::Upstream);
        let mut out: Vec<String> = differences.map(difference_line).collect();
        if !out.is_empty() {
            out.push(String::new());
        }
        out.extend(self.records.iter().map(record_line));
        let left = self.left.iter();
        out.extend(left.map(|entry| format!("stays remote (allowed): {}: {}", entry.upstream, entry.left.reason)));
        out.extend(self.upstream.iter().flat_map(|all| upstream_lines(all)));
        out.push(result_line(self));
        lines(out)
    }

    fn stderr(&self, _output: &OutputArgs) -> String {
        messages::failures(&self.failures)
    }

    fn status(&self) -> u8 {
        VerifyOutcome::status(self)
    }
}

/// A difference in a line, with its location if it has one.
fn difference_line(Difference { path, span, message, .. }: &Difference) -> String {
    match span {
        _ if path.is_empty() => message.clone(),
        Some(span) => format!("{path}:{}:{}: {message}", span.start.line, span.start.column),
        None => format!("{path}: {message}"),
    }
}

/// The last line of the report. It is often read in a long log, where one word is easily overlooked, so a failure is in
/// capitals.
fn result_line(outcome: &VerifyOutcome) -> String {
    let VerifyOutcome { rev, commit, differences, failures, records, also, .. } = outcome;
    let named = match commit {
        None => rev.clone(),
        Some(commit) if commit.starts_with(rev) => short(commit).to_owned(),
        Some(commit) => format!("{rev} ({})", short(commit)),
    };
    let result = match differences.len() {
        0 if !failures.is_empty() => "not everything could be checked".to_owned(),
        0 if records.is_empty() => "as locked".to_owned(),
        0 => [&["as recorded"], also.as_slice()].concat().join(", "),
        count => counted(count, "difference"),
    };
    let verified = if differences.is_empty() && failures.is_empty() { "verified" } else { "NOT verified" };
    format!("{verified} {named}: {result}")
}

/// The line about a record that was verified, with the number of its files and the places that have it.
fn record_line(record: &Record) -> String {
    let directory = path::shown(&record.directory);
    let from = record.target.as_ref().map(|target| format!(" from {target}")).unwrap_or_default();
    if record.rendered
        && let Some(commit) = &record.recorded_by
    {
        let (files, by) = (counted(record.files, "rendered file"), short(commit));
        let remotes = counted(record.remotes, "upstream");
        return format!("{directory}: {files}, {remotes}; recorded in the message of {by}");
    }
    let (files, remotes) = (counted(record.files, "localized file"), counted(record.remotes, "upstream"));
    let by = match &record.recorded_by {
        Some(commit) => format!("and in the message of {}", short(commit)),
        None => "alone".to_owned(),
    };
    format!("{directory}{from}: {files}, {remotes}; recorded in the lock {by}")
}

/// A line for each remote, with its newest commits below; then a line with the counts, and hints for an update.
fn upstream_lines(all: &[EntryStatus]) -> Vec<String> {
    let mut out: Vec<String> = all.iter().flat_map(entry_lines).collect();
    let count = |verdict: &UpstreamVerdict| all.iter().filter(|entry| entry.answer.verdict == *verdict).count();
    let counts = present(UpstreamVerdict::ALL.map(|label| (count(&label), format!("{} {label}", count(&label)))));
    let counts = if counts.is_empty() { "nothing to check".to_owned() } else { counts.join(", ") };
    out.push(format!("upstream of {}: {counts}", counted(all.len(), "remote")));
    out.extend(update_hints(all));
    out
}

/// The line of a remote: its versions, why they differ, and the number of commits between them; with the newest
/// commits below.
fn entry_lines(EntryStatus { lock, line, entry: (source, pinned), answer }: &EntryStatus) -> Vec<String> {
    let was = short(pinned.digest.hex());
    let mut versions = match &answer.now {
        Some(now) if *now == pinned.digest => format!("is {was}"),
        Some(now) => format!("was {was}, is {}", short(now.hex())),
        None => format!("was {was}"),
    };
    // The error below says why it is unreachable.
    if answer.failure.is_none() && !answer.why.is_empty() {
        versions += &format!(": {}", answer.why);
    }
    // Merges are not counted, because nobody reads them: `git log --no-merges` shows the same.
    match answer.commits {
        Some(0) => versions += " by merges only",
        Some(commits) => versions += &format!(" by {}", counted(commits, "commit")),
        None => {}
    }
    let newest = answer.newest.iter().map(|(commit, subject)| format!("{} {subject}", short(commit)));
    let more = answer.commits.unwrap_or_default().saturating_sub(answer.newest.len());
    let more = (more > 0 && !answer.newest.is_empty()).then(|| format!("and {more} more"));
    let mut out = vec![format!("{lock}:{line}: {}: {source} {versions}", answer.verdict)];
    out.extend(newest.chain(more).map(|line| format!("    {line}")));
    out
}

/// The commands that take the changes of upstream into the lock, after `verify --upstream` has found some.
fn update_hints(all: &[EntryStatus]) -> Vec<String> {
    // The entries that an update of a kind would change.
    let of = |update| all.iter().filter(move |entry| entry.answer.update == update);
    // The lock at the top is updated, that of a copy only by another copy.
    let (any, by_name, mut out) = (of(UpdateKind::Any), of(UpdateKind::ByName), Vec::new());
    if any.clone().any(|entry| !is_of_copy(entry)) {
        out.push("  to update the lock: git kustomize-localize update".to_owned());
    }
    let moved: BTreeSet<String> =
        by_name.clone().filter(|entry| !is_of_copy(entry)).map(|entry| entry.entry.0.to_string()).collect();
    if !moved.is_empty() {
        let update = command("git kustomize-localize update", moved);
        out.push(format!("  a moved version is only updated by name, once you know why it moved: {update}"));
    }
    if any.chain(by_name).any(is_of_copy) {
        out.push(
            "  to update a copy: update the lock of its source, or, where that has none, remove it and copy again"
                .to_owned(),
        );
    }
    out
}

/// Whether an entry is in the lock of a copy.
fn is_of_copy(entry: &EntryStatus) -> bool {
    entry.lock != LOCK_NAME
}
