//! Guesses the meaning of arguments that are not understood: the only code that suggests commands and options.

use std::ffi::{OsStr, OsString};
use std::path::Path;

use clap::Parser as _;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::{COPY, Cli, PAGES, explain, formats};
use crate::message::failure::{Failure, command, nearest};
use crate::message::redact;

/// Other words for commands: those of other programs, and options of one command that are given to another. A word with
/// dashes is an option of any command that has it.
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
    ("o", "--format"),
    ("output", "--format"),
    ("push", "branch --push"),
    ("staged", "check --staged"),
    ("sync", "branch"),
    ("upgrade", "update"),
    ("version", "--version"),
];

/// The commands, as users type them, and [`COPY`].
fn commands() -> impl Iterator<Item = &'static str> {
    PAGES.iter().map(|(name, _)| *name)
}

/// The command that a word means: its name, or the word of another program for the same; `None` if it is unknown.
fn meaning_of(word: &str) -> Option<&'static str> {
    OTHER_WORDS
        .into_iter()
        .chain(commands().map(|name| (name, name)))
        .find(|(other, _)| *other == word)
        .map(|(_, command)| command)
}

/// The arguments of this process, the program first, in the order of clap.
pub(super) fn arguments() -> Vec<OsString> {
    arranged(std::env::args_os().collect())
}

/// The arguments with options that are given before the command moved behind it, where clap reads them: git allows
/// both.
fn arranged(mut all: Vec<OsString>) -> Vec<OsString> {
    // Find the first word that is not an option.
    let mut first = 1;
    while let Some(word) = all.get(first).and_then(|word| word.to_str()) {
        match words_of_global_option(word) {
            Some(count) => first += count,
            // Another option may take the next word as its value, so the line is left to clap as it is.
            None if word.starts_with('-') => return all,
            None => break,
        }
    }
    // Without a word after the options, the range is out of bounds, and nothing is moved.
    if let Some(before) = all.get_mut(1..=first) {
        before.rotate_right(1);
    }
    all
}

/// The number of words of an option that every command has, with its value; `None` if `word` is not such an option.
fn words_of_global_option(word: &str) -> Option<usize> {
    let is_short = |letters: &str| !letters.is_empty() && letters.chars().all(|letter| "qv".contains(letter));
    match word.split_once('=') {
        Some(("--color" | "--format", _)) => Some(1),
        Some(_) => None,
        None => match word {
            "--color" | "--format" => Some(2),
            "--quiet" | "--verbose" => Some(1),
            _ => word.strip_prefix('-').is_some_and(is_short).then_some(1),
        },
    }
}

/// The arguments as messages quote them, without secrets and control characters.
pub(super) fn shown() -> Vec<String> {
    arguments()
        .into_iter()
        // An argument may quote text from outside, and contain a secret.
        .map(|argument: OsString| redact::text(&redact::visible(&argument.to_string_lossy())))
        .collect()
}

/// The command that the first word names; `None` for a copy, a word that is not a command, and without any word.
pub(super) fn named() -> Option<&'static str> {
    let word = arguments().into_iter().nth(1)?;
    commands().find(|name| OsStr::new(name) == word)
}

/// The failure for a word that is neither a command nor a path, with the command that may be meant; `None` if it may be
/// a TARGET. `rest` are the words after it, which belong to the suggested line of a copy.
pub(super) fn unknown_word(text: &str, rest: &[String]) -> Option<Failure> {
    if text.is_empty() || text.contains('/') || text.starts_with('-') || Path::new(text).exists() {
        return None;
    }
    let failure = Failure::new(format!("`{text}` is neither a command nor a directory"));
    Some(failure.hint(match meaning_of(text).or_else(|| nearest(text, commands().filter(|name| *name != COPY))) {
        Some(COPY) if !rest.is_empty() => format!("did you mean `{}`?", command(PROGRAM, rest)),
        Some(COPY) | None => {
            "for a copy, name the directory that contains the kustomization; for all commands: git kustomize-localize -h"
                .to_owned()
        }
        Some(name) => format!("did you mean `{PROGRAM} {name}`?"),
    }))
}

const PROGRAM: &str = "git kustomize-localize";

/// The failure for an unknown command; `None` if the first word may be a TARGET, and for other errors.
pub(super) fn unknown_command(error: &clap::Error) -> Option<Failure> {
    // clap takes an unknown command for a TARGET, and answers with the options of a copy. It reports a third word as a
    // conflict: after TARGET and NEW_DIR only a command could follow.
    let is_unknown = matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::ArgumentConflict);
    if is_unknown { unknown_first_word() } else { None }
}

/// The failure for a first word that is neither a command nor a path; `None` if it may be a TARGET.
pub(super) fn unknown_first_word() -> Option<Failure> {
    let words = shown();
    let (first, rest) = words.get(1..)?.split_first()?;
    if named().is_none() { unknown_word(first, rest) } else { None }
}

/// The failure for an unknown rule of `explain`; `None` for other commands and errors.
pub(super) fn unknown_rule(error: &clap::Error) -> Option<Failure> {
    // The rule is the only argument of `explain` that is not an option.
    let is_option =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(arg)) if arg.starts_with('-'));
    let is_unknown = error.kind() == ErrorKind::InvalidValue && named() == Some("explain") && !is_option;
    let Some(ContextValue::String(id)) = error.get(ContextKind::InvalidValue).filter(|_| is_unknown) else {
        return None;
    };
    // clap would answer with a list of all rules.
    let failure = Failure::new(format!("unknown rule `{id}`"));
    Some(failure.hint(match nearest(id, explain::ids()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "list the rules: git kustomize-localize explain".to_owned(),
    }))
}

/// Changes the hints of clap, which knows neither the words of other programs nor which formats a command has. For a
/// wrong `--format` the error lists the formats of the command; for an unknown option it suggests a line or a command.
pub(super) fn point_elsewhere(error: &mut clap::Error) {
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else { return };
    if error.kind() == ErrorKind::InvalidValue && unknown.starts_with("--format") {
        error.remove(ContextKind::SuggestedValue);
        // clap would list the formats of all commands.
        error.insert(ContextKind::ValidValue, ContextValue::Strings(formats(named())));
    } else if error.kind() == ErrorKind::UnknownArgument
        && let Some(meant) = line_meant_by(unknown)
    {
        // clap only suggests a similar option, or to pass the option as a value.
        let tip = format!("did you mean `{meant}`?");
        // A similar option of the same command is a wrong guess, and so is its usage.
        error.remove(ContextKind::SuggestedArg);
        error.remove(ContextKind::Usage);
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
}

/// The line or command that is meant by a word or option which the command does not have; `None` if it is unknown.
fn line_meant_by(unknown: &str) -> Option<String> {
    let first = named();
    // An option may come with its value.
    let option = unknown.split('=').next().unwrap_or_default();
    let Some(meant) = meaning_of(option.trim_start_matches('-')) else {
        // `branch` takes no words: one is most likely the revision to localize.
        let is_revision = first == Some("branch") && !unknown.starts_with('-');
        return is_revision.then(|| command("git kustomize-localize branch --rev", [unknown]));
    };
    match meant {
        // `-o DIR` of `kustomize build`: a copy takes DIR as its second word, without an option.
        "--format" if first.is_none() => corrected_line(option, ""),
        // The value stays, after `=` or as the next word, and must be a format of this command: it may be a file.
        "--format" | "--format json" => corrected_line(option, meant).filter(|line| has_format(line, first)),
        _ if !meant.starts_with("--") => Some(format!("{PROGRAM} {meant}")),
        _ if has_option(first.unwrap_or(COPY), meant) => corrected_line(option, meant),
        _ => None,
    }
}

/// The command line with `meant` instead of an option, and with its value if it takes one; `None` if the option is not
/// a word of it.
fn corrected_line(option: &str, meant: &str) -> Option<String> {
    // Everything else stays, so that the user can copy the line.
    let words: Vec<String> = shown().into_iter().skip(1).collect();
    let (at, value) = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(option)? {
        "" => Some((at, None)),
        rest => Some((at, Some(rest.strip_prefix('=')?))),
    })?;
    // Without the option, its value is a word; and of all meanings only `--format` takes a value.
    let value = value.filter(|_| matches!(meant, "" | "--format"));
    let (before, after) = (words[..at].iter().map(String::as_str), words[at + 1..].iter().map(String::as_str));
    Some(command(PROGRAM, before.chain(meant.split_whitespace()).chain(value).chain(after)))
}

/// Whether the format in a line is one that a command has.
fn has_format(line: &str, command: Option<&str>) -> bool {
    let value = line.split_once("--format ").and_then(|(_, after)| after.split(' ').next());
    value.is_some_and(|value| formats(command).iter().any(|format| format == value))
}

/// Whether a command has an option, so that an option of another command can be recognized.
fn has_option(command: &str, option: &str) -> bool {
    // Any other error shows that clap knows the option.
    let words = ["git-kustomize-localize", command].into_iter().chain(option.split_whitespace());
    let kind = Cli::try_parse_from(words).err().map(|error| error.kind());
    !matches!(kind, Some(ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand))
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn what_every_command_takes_may_stand_before_it() {
        let line = |words: &[&str]| ["git-kustomize-localize"].iter().chain(words).map(OsString::from).collect();
        let read = |words: &[&str]| format!("{:?}", Cli::try_parse_from(arranged(line(words))).unwrap());
        let options: [&[&str]; 7] = [
            &["-v"],
            &["-q"],
            &["-qv"],
            &["--color=never"],
            &["--color", "never"],
            &["--format", "json"],
            &["--quiet"],
        ];
        for rest in [vec!["check", "--base", "main"], vec!["hook", "install"], vec!["apps/web", "out"], vec![]] {
            for option in options {
                assert_eq!(read(&[option, &rest].concat()), read(&[&rest, option].concat()), "{option:?} {rest:?}");
            }
        }
        for line in
            [&["-v", "--", "check"][..], &["-v", "--scope", "x", "check"], &["check", "-v"], &["--format"], &["-x"]]
        {
            let line: Vec<OsString> = line.iter().map(OsString::from).collect();
            assert_eq!(arranged(line.clone()), line);
        }
        // None is left out.
        let (globals, mut all) = (
            ["format", "quiet", "verbose", "color", "help"],
            Cli::command().get_arguments().cloned().collect::<Vec<_>>(),
        );
        all.retain(clap::Arg::is_global_set);
        assert_eq!(all.iter().filter_map(clap::Arg::get_long).collect::<Vec<_>>(), globals);
    }

    #[test]
    fn what_is_meant_can_be_typed() {
        for (other, command) in OTHER_WORDS.into_iter().filter(|(_, command)| *command != COPY) {
            let (first, rest) = command.split_once(' ').unwrap_or((command, ""));
            let is_known = if first.starts_with("--") {
                first == "--version" || PAGES.iter().any(|(page, _)| has_option(page, command))
            } else {
                PAGES.iter().any(|(page, _)| *page == first) && has_option(first, rest)
            };
            assert!(is_known, "{other}: {command}");
            assert!(PAGES.iter().all(|(name, _)| *name != other), "{other} is a command");
        }
    }
}
