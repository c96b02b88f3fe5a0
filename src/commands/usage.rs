//! What was probably meant by what is not understood: the one place that suggests commands and options.

use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{COPY, PAGES, documented};
use crate::message::failure::{Failure, nearest};

/// The words of other programs for what a command does.
const OTHER_WORDS: [(&str, &str); 17] = [
    ("add", "lock"),
    ("copy", COPY),
    ("diff", "affected"),
    ("graph", "tree"),
    ("in-place", "branch"),
    ("init", "lock"),
    ("install", "hook install"),
    ("lint", "check"),
    ("list", "tree"),
    ("localize", COPY),
    ("outdated", "verify --upstream"),
    ("pin", "lock"),
    ("push", "branch --push"),
    ("status", "check"),
    ("sync", "branch"),
    ("upgrade", "update"),
    ("validate", "check"),
];

/// Returns the command that a word may mean.
fn meant(word: &str) -> Option<&'static str> {
    let other = OTHER_WORDS.iter().find(|(other, _)| *other == word).map(|(_, command)| *command);
    other.or_else(|| nearest(word, PAGES.iter().map(|(name, _)| *name).filter(|name| *name != COPY)))
}

/// Returns what is wrong with a word in the place of a command or a TARGET that is neither, and nothing on disk.
pub(super) fn unknown_word(word: &str) -> Option<Failure> {
    if word.contains('/') || word.starts_with('-') || Path::new(word).exists() {
        return None;
    }
    let failure = Failure::new(format!("`{word}` is neither a command nor a directory"));
    Some(failure.hint(match meant(word) {
        Some(name) => format!("did you mean `git kustomize-localize {name}`?"),
        None => {
            "for a copy, name the directory that holds the kustomization; for all commands: git kustomize-localize -h"
                .to_owned()
        }
    }))
}

/// Returns that the first word is no command, where clap takes it for a TARGET and suggests the options of a copy.
pub(super) fn unknown_command(error: &clap::Error) -> Option<Failure> {
    let word = std::env::args().nth(1).filter(|word| PAGES.iter().all(|(name, _)| name != word))?;
    if error.kind() == ErrorKind::UnknownArgument { unknown_word(&word) } else { None }
}

/// Names what has an option, where something else does not: clap only tells how to pass it as a value.
pub(super) fn point_elsewhere(error: &mut clap::Error) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return };
    let option = unknown.split('=').next().and_then(|option| option.strip_prefix("--"));
    let Some(option) = option.filter(|_| error.kind() == ErrorKind::UnknownArgument) else { return };
    let command = documented();
    let has = |command: &clap::Command| command.get_arguments().any(|one| one.get_long() == Some(option));
    let commands = command.get_subcommands().filter(|one| has(one)).map(|one| format!("`{}`", one.get_name()));
    let names: Vec<String> = commands.chain(has(&command).then(|| "a copy".to_owned())).collect();
    let is_similar = error.get(ContextKind::SuggestedArg).is_some();
    let tip = match meant(option).filter(|_| !is_similar) {
        _ if !names.is_empty() => format!("it is an option of {}", names.join(", ")),
        Some(command) => format!("it is a command: git kustomize-localize {command}"),
        None => return,
    };
    // One of nearly that name is not meant, nor is its usage.
    error.remove(ContextKind::SuggestedArg);
    error.remove(ContextKind::Usage);
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}
