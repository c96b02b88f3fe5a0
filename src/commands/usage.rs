//! What was probably meant by what is not understood: the one place that suggests commands and options.

use std::path::Path;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{COPY, Cli, PAGES};
use crate::message::failure::{Failure, nearest};

/// Other words for what a command does: those of other programs, and options of one command that are given to another. What
/// begins with dashes is an option of any command that has it.
const OTHER_WORDS: [(&str, &str); 18] = [
    ("base", "check --base"),
    ("config", "help configuration"),
    ("copy", COPY),
    ("fix", "lock"),
    ("force", "--overwrite"),
    ("install", "hook install"),
    ("json", "--format json"),
    ("lint", "check"),
    ("list", "tree"),
    ("localize", COPY),
    ("man", "generate man"),
    ("o", "--format json"),
    ("output", "--format json"),
    ("push", "branch --push"),
    ("staged", "check --staged"),
    ("sync", "branch"),
    ("upgrade", "update"),
    ("version", "--version"),
];

/// Returns the command that a word stands for.
fn word(word: &str) -> Option<&'static str> {
    let commands = PAGES.iter().map(|(name, _)| (*name, *name));
    OTHER_WORDS.into_iter().chain(commands).find(|(other, _)| *other == word).map(|(_, command)| command)
}

/// Returns what is wrong with a word in the place of a command or a TARGET that is neither, and nothing on disk.
pub(super) fn unknown_word(text: &str) -> Option<Failure> {
    if text.is_empty() || text.contains('/') || text.starts_with('-') || Path::new(text).exists() {
        return None;
    }
    let failure = Failure::new(format!("`{text}` is neither a command nor a directory"));
    let meant = || nearest(text, PAGES.iter().map(|(name, _)| *name).filter(|name| *name != COPY));
    Some(failure.hint(match word(text).or_else(meant) {
        Some(name) => format!("did you mean `git kustomize-localize {name}`?"),
        None => {
            "for a copy, name the directory that contains the kustomization; for all commands: git kustomize-localize -h"
                .to_owned()
        }
    }))
}

/// Returns that the first word is no command, where clap takes it for a TARGET and suggests the options of a copy.
pub(super) fn unknown_command(error: &clap::Error) -> Option<Failure> {
    let word = std::env::args().nth(1).filter(|word| PAGES.iter().all(|(name, _)| name != word))?;
    if error.kind() == ErrorKind::UnknownArgument { unknown_word(&word) } else { None }
}

/// Names the command that is meant by an option: clap only tells how to pass it as a value, or what looks like it.
pub(super) fn point_elsewhere(error: &mut clap::Error) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return };
    let option = unknown.split('=').next().unwrap_or_default().trim_start_matches('-');
    let first = std::env::args().nth(1).filter(|word| PAGES.iter().any(|(name, _)| name == word));
    let is_revision = || !unknown.starts_with('-') && first.as_deref() == Some("branch");
    let command = match word(option) {
        _ if error.kind() != ErrorKind::UnknownArgument => return,
        Some("--format json") if first.is_none() => "TARGET NEW_DIR".to_owned(),
        Some(meant) if meant.starts_with("--") => match first.as_deref().unwrap_or(COPY) {
            command if takes(command, meant) => format!("{command} {meant}"),
            _ => return,
        },
        Some(command) => command.to_owned(),
        None if is_revision() => format!("branch --rev {unknown}"),
        None => return,
    };
    let tip = format!("did you mean `git kustomize-localize {command}`?");
    // One of nearly that name is not meant, nor is its usage.
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Usage);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}

/// Returns whether a command has an option.
fn takes(command: &str, option: &str) -> bool {
    let words = ["git-kustomize-localize", command].into_iter().chain(option.split_whitespace());
    let kind = Cli::try_parse_from(words).err().map(|error| error.kind());
    !matches!(kind, Some(ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_meant_can_be_typed() {
        for (other, command) in OTHER_WORDS.into_iter().filter(|(_, command)| *command != COPY) {
            let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
            let is_known = if first.starts_with("--") {
                first == "--version" || PAGES.iter().any(|(page, _)| takes(page, command))
            } else {
                PAGES.iter().any(|(page, _)| *page == first) && takes(first, rest)
            };
            assert!(is_known, "{other}: {command}");
            assert!(PAGES.iter().all(|(name, _)| *name != other), "{other} is a command");
        }
    }
}
