//! What clap does not say about arguments that it does not understand.

use super::{documented, meant};
use crate::message::failure::Failure;

/// Returns a failure that the first word is not a command, if the rest shows that one was meant: otherwise it is a
/// TARGET, and clap suggests the options of a copy.
pub(super) fn misspelled(error: &clap::Error) -> Option<Failure> {
    use clap::error::ErrorKind;
    if !matches!(error.kind(), ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand) {
        return None;
    }
    let mut words = std::env::args_os().skip(1);
    let word = words.find(|word| word != "help")?;
    let word = word.to_str().filter(|word| !word.starts_with('-'))?;
    let meant = meant(word).filter(|name| *name != word)?;
    let here = std::path::Path::new(word).is_dir();
    (!here).then(|| {
        Failure::new(format!("there is no command `{word}`"))
            .hint(format!("did you mean `git kustomize-localize {meant}`?"))
    })
}

/// Names what has an option, where something else does not: clap only tells how to pass it as a value.
pub(super) fn point_elsewhere(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let Some(ContextValue::String(unknown)) = error.get(ContextKind::InvalidArg) else {
        return;
    };
    if error.kind() != ErrorKind::UnknownArgument {
        return;
    }
    let option = unknown.split('=').next().unwrap_or_default();
    let Some(option) = option.strip_prefix("--") else {
        if std::env::args_os().nth(1).is_some_and(|first| first == "branch") {
            let tip = format!(
                "`branch` localizes the repository; to copy one kustomization: git kustomize-localize {unknown}"
            );
            error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
        }
        return;
    };
    let command = documented();
    let commands = command.get_subcommands();
    let has = |command: &&clap::Command| {
        let mut options = command.get_arguments().filter_map(clap::Arg::get_long);
        options.any(|one| one == option)
    };
    let mut names: Vec<String> = commands.filter(has).map(|command| format!("`{}`", command.get_name())).collect();
    if has(&&command) {
        names.push("a copy".to_owned());
    }
    let tip = match (option, names.is_empty()) {
        ("in-place", _) => "`branch` commits the repository, localized; `vendor` localizes the working tree".to_owned(),
        (_, true) if error.get(ContextKind::SuggestedArg).is_some() => return,
        (_, true) => match meant(option) {
            Some(command) => format!("it is a command: git kustomize-localize {command}"),
            None => return,
        },
        (_, false) => format!("it is an option of {}", names.join(", ")),
    };
    // One of nearly that name is not meant, nor is its usage.
    if error.remove(ContextKind::SuggestedArg).is_some() {
        error.remove(ContextKind::Usage);
    }
    error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
}
