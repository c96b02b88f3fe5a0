//! Runs the `git` executable, for everything that users configure in git, or that must be exactly as git does it.
//! Everything else, such as reading and writing objects, goes through `gix`.
//!
//! "This repository" ([`LocalRepo`]) keeps the environment of this process, so that the `GIT_DIR` of a hook and the
//! caller's `git -c` settings hold. Commands about a remote repository ([`RemoteGit`]) run without it: in a hook of a
//! linked worktree git exports an absolute `GIT_DIR` and `GIT_INDEX_FILE`, and a `git fetch` that inherits these writes
//! into the user's repository.

mod checkout;
mod database;
mod date;
mod key;
mod local_repo;
mod remote_git;
mod signature;

pub(crate) use checkout::{Attributes, Checkout};
pub(crate) use database::{keep_bases, open_fetched};
pub use database::{object_id, open};
pub(crate) use date::{date, made};
pub(crate) use key::{Key, hex};
pub use local_repo::Snapshot;
pub(crate) use local_repo::{CommitId, LocalRepo, Ref, Staged, branch_of, is_branch_name};
pub(crate) use remote_git::untie;
pub(crate) use remote_git::{Exchange, Fetch, FetchFilter, Login, Peer, RemoteGit, is_http, take_login};
pub(crate) use signature::Signers;

use std::process::Command;

use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::os::process::{self, Output, Terminal};

/// Variables that change the meaning of arguments: they make patterns literal (as Magit does) or names patterns, or
/// replace the configuration, but only for `git config`.
const VARIABLES_TO_REMOVE: [&str; 5] =
    ["GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS", "GIT_CONFIG"];

/// A `git` command with the settings that every command needs.
fn command() -> Command {
    let mut command = Command::new("git");
    // Arguments mean the same for every user.
    for name in VARIABLES_TO_REMOVE {
        command.env_remove(name);
    }
    command
        // Its messages are read, mere queries take no lock, and nothing waits at the terminal. Replaced objects would
        // be other bytes than those that a clone has.
        .env("LC_ALL", "C")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .env("GIT_TERMINAL_PROMPT", "0");
    command
}

/// A git that reads no configuration of the user or the system, and is not tied to this repository.
fn isolated() -> Command {
    let mut command = command();
    untie(&mut command);
    for name in ["GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS"] {
        command.env_remove(name);
    }
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

/// Runs git without a terminal.
fn run(git: &mut Command, input: Option<&[u8]>) -> Result<Output> {
    process::run(git, input, None, Terminal::Detached).map_err(not_run)
}

/// The stdout of git; fails with its message if git failed.
fn stdout_of(output: Output) -> Result<Vec<u8>> {
    if output.status.success() { Ok(output.stdout) } else { Err(Failure::new(error_message(&output))) }
}

/// The failure for a git that could not be run, or did not finish in time.
pub(crate) fn not_run(error: process::Error) -> Failure {
    let failure = Failure::new(error.to_string());
    match error {
        process::Error::NotFound(_) => failure.hint("install git, or put it on PATH"),
        _ => failure,
    }
}

/// Lines that git prints for any problem with a remote.
const ADVICE: [&str; 3] = [
    "fatal: Could not read from remote repository.",
    "Please make sure you have the correct access rights",
    "and the repository exists.",
];

/// The error message of git or helm, without secrets, prefixes and advice, on one line.
pub(crate) fn error_message(output: &Output) -> String {
    let text = redact::text(&output.stderr);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| is_message(line)).map(bare_message).collect();
    match lines.as_slice() {
        [] => format!("it ended with {}", output.status),
        lines => lines.join("; "),
    }
}

/// Whether a line says what went wrong.
fn is_message(line: &str) -> bool {
    !line.is_empty() && !line.starts_with("hint:") && !line.starts_with("WARNING:") && !ADVICE.contains(&line)
}

/// A message without its prefix, and without the URL.
fn bare_message(line: &str) -> &str {
    let prefixes = ["fatal: ", "error: ", "remote: ", "Error: "];
    let line = prefixes.iter().find_map(|prefix| line.strip_prefix(prefix)).unwrap_or(line);
    // The caller names the URL in its own message.
    let rest = line.strip_prefix("unable to access '");
    rest.and_then(|rest| rest.split_once("': ")).map_or(line, |(_, why)| why)
}

impl Output {
    /// Whether the error message has one of these phrases, which are in lower case and have a blank.
    pub(crate) fn says(&self, phrases: &[&str]) -> bool {
        // A repository or a ref may be called `not-found`: words with a slash do not count, and a ref has no blank.
        let words = message_words(&self.stderr);
        phrases.iter().any(|phrase| words.contains(phrase))
    }
}

/// A message in lower case, to look for phrases: a blank between words, without paths and URLs (words with a slash).
fn message_words(text: &str) -> String {
    text.lines()
        .map(|line: &str| {
            let words = line.split_whitespace().filter(|word| !word.contains('/'));
            words.collect::<Vec<_>>().join(" ")
        })
        .collect::<Vec<_>>()
        .join("\n")
        .to_lowercase()
}

/// Whether `text` is the full id of a git object: 40 (SHA-1) or 64 (SHA-256) hex digits in lower case.
pub(crate) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_a_slash_is_not_said() {
        for (text, words) in [
            ("fatal: repository 'https://h/o/not found/' not found", "fatal: repository not found"),
            ("ERROR: https://h/x  Not\tFound\nHint: x", "error: not found\nhint: x"),
        ] {
            assert_eq!(message_words(text), words, "{text}");
        }
    }

    #[test]
    fn names_of_branches_are_those_that_git_accepts() {
        for name in [
            "main",
            "a/b",
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            "a.",
            ".a",
            "a/.b",
            "a.lock",
            "a.lock/b",
            "a..b",
            "a b",
            "a~b",
            "a^b",
            "a:b",
            "a?b",
            "a*b",
            "a[b",
            "a\\b",
            "a@{b",
            "@",
            "a@b",
            "a\tb",
            "a\u{7f}b",
            "ä",
            "{",
            "a+b",
            "a'b",
            "a\"b",
            "refs/heads/a",
            "HEADS",
        ] {
            let mut git = command();
            git.args(["check-ref-format", &format!("refs/heads/{name}")]);
            let accepts = git.status().unwrap().success();
            assert_eq!(is_branch_name(name), accepts, "{name:?}");
        }
        assert!(!is_branch_name("HEAD") && !is_branch_name("-a"));
    }
}
