//! `help`: the pages of the manual.

use std::process::ExitCode;

use clap::Args;

use super::{documented, output};
use crate::commands::COPY;
use crate::manual;
use crate::message::failure::{Failure, nearest};
use crate::message::redact;

/// Arguments of `help`.
#[derive(Debug, Clone, Args)]
pub(super) struct HelpArgs {
    /// A command, for example `check` or `hook install`, or a guide, for example `recipes` [default: list them]
    #[arg(value_name = "PAGE")]
    page: Vec<String>,
}

/// Shows the page that the arguments name.
pub(super) fn run(args: &HelpArgs) -> ExitCode {
    output::Color::Auto.apply();
    let name = args.page.join(" ");
    let words: Vec<String> = name.split_whitespace().map(str::to_owned).collect();
    let text = match words.as_slice() {
        [] => list(),
        words => match page(words).or_else(|| manual::guide(&name)) {
            Some(text) => text,
            None => return output::failed(&unknown(&name).into(), false),
        },
    };
    output::print(&text);
    ExitCode::SUCCESS
}

/// Returns the page of the command that the words lead to.
fn page(words: &[String]) -> Option<String> {
    let command = documented();
    let (command, name) = match words {
        [word] if [COPY, "copy"].contains(&word.as_str()) => (&command, COPY.to_owned()),
        words => {
            let mut words_left = words.iter();
            let found = words_left.try_fold(&command, |command, word| command.find_subcommand(word))?;
            (found, words.join(" "))
        }
    };
    let help = command.clone().render_long_help();
    let help = if console::colors_enabled() { help.ansi().to_string() } else { help.to_string() };
    let text = manual::page(&name).map(|text| format!("\n{text}"));
    Some(help + &text.unwrap_or_default())
}

/// Returns the commands and the guides.
fn list() -> String {
    let command = documented();
    let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
    let commands = visible.map(|one| {
        let about = one.get_about().map(ToString::to_string);
        (one.get_name(), about.unwrap_or_default())
    });
    let copy = "Copy a kustomization with all it references".to_owned();
    let commands = std::iter::once((COPY, copy)).chain(commands);
    let guides = manual::guides().map(|(name, about)| (name, about.to_owned()));
    let rows = |rows: Vec<(&str, String)>| -> String {
        let row = |(name, about)| format!("  {name:<16}{about}\n");
        rows.into_iter().map(row).collect()
    };
    format!(
        "Commands:\n{}\nGuides:\n{}\nTo read one: git kustomize-localize help NAME\n",
        rows(commands.collect()),
        rows(guides.collect())
    )
}

fn unknown(name: &str) -> Failure {
    let command = documented();
    let commands = command.get_subcommands().map(clap::Command::get_name);
    let names = commands.chain(manual::guides().map(|(name, _)| name));
    let failure = Failure::new(format!("there is no page `{}`", redact::text(name)));
    match nearest(name, names) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`? git kustomize-localize help {meant}")),
        None => failure.hint("to list them: git kustomize-localize help"),
    }
}
