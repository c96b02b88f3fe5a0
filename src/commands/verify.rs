//! `verify`: a localized commit against its lock and trailers. `schema.json` describes each field of the JSON.

mod rebuild;
mod rebuilt;

use std::path::Path;
use std::rc::Rc;

use clap::Args;

use super::messages::{self, counted};
use super::output::{Done, Outcome, OutputArgs, Shown};
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result, command, short};
use crate::message::redact::visible;
use crate::record::LOCK_NAME;
use crate::record::upstream::Verdict;
use crate::tree::path;
use crate::verify::upstream::{Ask, Upstream};
use crate::verify::{self, Kind, Record, Verified, verify_directory};
use crate::workspace::repository_offline;

/// Arguments of `verify`.
#[derive(Debug, Clone, Args)]
pub(super) struct VerifyArgs {
    /// The commit, or a directory that `--no-commit` wrote [default: HEAD]
    rev: Option<String>,

    /// Ask each remote of the locks what it is now: ok, updated, moved, gone or unreachable
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
    pub(super) fn run(&self, output: &OutputArgs) -> Done {
        let here = LocalRepo::discover_offline()?.map(Rc::new);
        let directory = directory(self.rev.as_deref(), here.as_deref())?;
        if let Some(text) = directory.filter(|_| self.rebuild) {
            return Err(Failure::new(format!("--rebuild is for a commit, and `{text}` is a directory"))
                .hint("leave it out, or name a commit")
                .into());
        }
        let upstream = self.upstream.then(|| asker(here.as_deref(), output.quiet)).transpose()?;
        let ask = upstream.as_ref().map(|upstream| |remotes: &[&crate::record::Remote]| upstream.ask(remotes));
        let ask = ask.as_ref().map(|ask| ask as &Ask<'_>);
        if let Some(directory) = directory {
            return Ok(Box::new(verify_directory(directory, here.is_some(), ask)?));
        }
        let here = here.map_or_else(repository_offline, Ok)?;
        let rev = self.rev.as_deref().unwrap_or("HEAD");
        let mut verified = verify::verify(&here, rev, ask)?;
        if self.rebuild {
            rebuilt::compare(&mut verified)?;
        }
        Ok(Box::new(verified))
    }
}

/// Returns the directory that an argument names, if that is not a commit.
pub(super) fn directory<'a>(rev: Option<&'a str>, here: Option<&LocalRepo>) -> Result<Option<&'a str>> {
    let is_directory = |text: &&str| Path::new(text).is_dir();
    let Some(text) = rev.filter(is_directory) else {
        return Ok(None);
    };
    let commit = match here {
        Some(here) if !text.starts_with('-') => here.commit(text)?,
        _ => None,
    };
    let Some(id) = commit else { return Ok(Some(text)) };
    if !Path::new(text).join(LOCK_NAME).is_file() {
        return Ok(None);
    }
    Err(Failure::new(format!("`{text}` names both a commit and a directory with a `{LOCK_NAME}`"))
        .hint(format!("name the directory as{}", command("", [format!("./{text}")])))
        .hint(format!("name the commit as {}", id.commit)))
}

/// Sets up asking with the connection settings of the repository, if there is one.
fn asker(here: Option<&LocalRepo>, quiet: bool) -> Result<crate::fetch::Upstream> {
    let options = crate::fetch::Options { quiet, ..crate::fetch::Options::default() };
    crate::fetch::Upstream::new(super::remote_git(here)?, &options)
}

impl Outcome for Verified {
    /// Returns what differs, and what was looked at.
    fn text(&self, _shown: Shown) -> String {
        let mut out = String::new();
        // The state of upstream is reported below, along with what has not changed.
        for difference in self.differences.iter().filter(|difference| difference.kind != Kind::Upstream) {
            let place = match (difference.path.as_str(), difference.place) {
                ("", _) => String::new(),
                (path, Some(span)) => format!("{path}:{}:{}: ", span.line, span.column),
                (path, None) => format!("{path}: "),
            };
            out += &format!("{}{}\n", visible(&place), visible(&difference.message));
        }
        if !out.is_empty() {
            out.push('\n');
        }
        out.extend(self.records.iter().map(told));
        for one in &self.left {
            let label = visible(&one.left.what.label());
            out += &format!("stays remote (allowed): {label}: {}\n", visible(&one.left.reason));
        }
        if let Some(all) = &self.upstream {
            out += &upstream(all);
        }
        let result = match self.differences.len() {
            0 if self.failures.is_empty() && self.records.is_empty() => "as locked".to_owned(),
            0 if self.failures.is_empty() => [&["as recorded"], self.also.as_slice()].concat().join(", "),
            0 => "not everything could be looked at".to_owned(),
            count => counted(count, "difference"),
        };
        let rev = visible(&self.rev);
        let named = match &self.commit {
            None => rev,
            Some(commit) if commit.starts_with(&rev) && rev.len() >= 12 => short(commit).to_owned(),
            Some(commit) => format!("{rev} ({})", short(commit)),
        };
        out + &format!("verified {named}: {result}\n")
    }

    fn said(&self, _output: &OutputArgs) -> String {
        messages::failures(&Failures(self.failures.clone()))
    }

    fn status(&self) -> u8 {
        Verified::status(self)
    }
}

fn told(record: &Record) -> String {
    let directory = visible(path::shown(&record.directory));
    let from = record.target.as_ref().map(|target| format!(" from {}", visible(target))).unwrap_or_default();
    let message = match &record.recorded_by {
        Some(commit) => format!("recorded in the lock and in the message of {}", short(commit)),
        None if record.has_message => "recorded in the lock alone: no commit message has it any more".to_owned(),
        None => "recorded in the lock alone".to_owned(),
    };
    format!("{directory}{from}: {}, {}; {message}\n", counted(record.files, "file"), counted(record.remotes, "remote"))
}

/// Returns one line for each remote, and one that counts them.
fn upstream(all: &[Upstream]) -> String {
    let mut out = String::new();
    for one in all {
        let Upstream { lock, line, answer, .. } = one;
        let label = visible(&one.remote.label());
        let verdict = answer.verdict.name();
        out.push_str(&format!("{}:{line}: {verdict}: {label}", visible(lock)));
        let was = one.remote.digest();
        let was = short(was.hex());
        let now = answer.now.as_ref().map(|now| short(now.hex()));
        match (answer.verdict, now) {
            (Verdict::Ok, _) => out.push_str(&format!(" is {was}")),
            (_, Some(now)) => out.push_str(&format!(" was {was}, is {now}")),
            (_, None) => out.push_str(&format!(" was {was}")),
        }
        if !answer.why.is_empty() {
            out.push_str(&format!(": {}", visible(&answer.why)));
        }
        if let Some(commits) = answer.commits {
            out.push_str(&match commits {
                0 => " by merges alone".to_owned(),
                commits => format!(" by {}", counted(commits, "commit")),
            });
        }
        out.push('\n');
        for (commit, subject) in &answer.newest {
            out.push_str(&format!("    {} {}\n", short(commit), visible(subject)));
        }
        let named = answer.newest.len();
        if let Some(more) = answer.commits.and_then(|all| all.checked_sub(named))
            && more > 0
            && named > 0
        {
            out.push_str(&format!("    and {more} more\n"));
        }
    }
    let counts: Vec<String> = Verdict::ALL
        .iter()
        .filter_map(|verdict| {
            let count = all.iter().filter(|one| one.answer.verdict == *verdict);
            match count.count() {
                0 => None,
                count => Some(format!("{count} {}", verdict.name())),
            }
        })
        .collect();
    out.push_str(&if counts.is_empty() {
        "upstream: there is nothing to ask for\n".to_owned()
    } else {
        format!("upstream of {}: {}\n", counted(all.len(), "remote"), counts.join(", "))
    });
    let is = |verdict| all.iter().any(|one| one.answer.verdict == verdict);
    if is(Verdict::Updated) || is(Verdict::Moved) {
        out.push_str(
            "  to take what is there now: git kustomize-localize update; of a copy whose source has no lock: remove it and copy again\n",
        );
    }
    if is(Verdict::Moved) {
        out.push_str(
            "  before that, find out why something moved; for a tag or a file name it: git kustomize-localize update URL\n",
        );
    }
    out
}
