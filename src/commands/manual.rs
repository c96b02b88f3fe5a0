//! The manual: a page for each command, rule and guide, printed by the program.
//!
//! Each text is written once, as Markdown: for a command in `commands/COMMAND.md`, for a rule in its file in `check`,
//! for a guide in `manual/GUIDE.md`. The page of a command is the long help of clap with that text below; the list of
//! rules is made from the program itself. A link is the path from its source to another source, and is printed as its
//! text.

use crate::build::consequences::{PAGE, TABLE};
use crate::commands;
use crate::message::finding::Rule;

macro_rules! guides {
    ($($name:literal)*) => {
        /// The guides, by name, in the order in which to read them.
        const GUIDES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../manual/", $name, ".md"))),)*];
    };
}

guides! {
    "glossary"
    "troubleshooting"
    "recipes"
    "ci"
    "configuration"
    "rules"
    "remotes"
    "verification"
    "formats"
    "comparison"
}

/// The text of the page of a command, or of [`commands::COPY`]; `None` if there is no page.
pub(crate) fn page(name: &str) -> Option<String> {
    let (_, text) = commands::PAGES.iter().find(|(known, _)| *known == name)?;
    // The heading is for those who look at the sources.
    let (_, text) = text.split_once('\n')?;
    Some(printed(text.trim_start()))
}

/// Adds the parts to manual pages that the short help omits.
pub(crate) fn described(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| match (argument.get_help().cloned(), argument.get_long_help()) {
        (Some(help), None) => argument.long_help(help),
        _ => argument,
    });
    command.mut_subcommands(described)
}

/// The text of a guide; `None` for another name.
pub(crate) fn guide(name: &str) -> Option<String> {
    let (_, text) = GUIDES.iter().find(|(known, _)| *known == name)?;
    Some(printed(text))
}

/// The guides, each with its name and its subject.
pub(crate) fn guides() -> impl Iterator<Item = (&'static str, &'static str)> {
    GUIDES.iter().map(|(name, text)| {
        let about = text.lines().next().unwrap_or_default();
        (*name, about.trim_start_matches("# "))
    })
}

/// The page of a rule as Markdown, with the ways to change it.
pub(crate) fn rule(rule: Rule) -> String {
    let (id, about, severity) = (rule.id(), rule.summary(), rule.default_level().name());
    let allow = match rule {
        Rule::InvalidKustomization | Rule::Function => {
            ", and an [exception](../manual/configuration.md#exceptions) lets one finding stay, but not one about \
             something that could not be read as a whole"
        }
        rule if rule.can_be_allowed() => {
            ", and an [exception](../manual/configuration.md#exceptions) lets one finding stay"
        }
        _ => "",
    };
    let changes = match rule {
        rule if rule.is_always_an_error() => format!(", always{allow}"),
        _ => format!(". `rules: {{{id}: …}}` in the [configuration](../manual/configuration.md) changes that{allow}"),
    };
    format!("# {id}: {about}\n\n{}\n\nSeverity: `{severity}`{changes}.\n\n", rule.explanation().trim())
}

/// The page of a consequence as Markdown; empty if there is none with this id.
pub(crate) fn consequence(id: &str) -> String {
    let Some(row) = TABLE.iter().find(|row| row.id == id) else { return String::new() };
    let (group, about) = row.described();
    let (_, page) = PAGE.split_once("\n\n").unwrap_or_default();
    format!("# {id}: {about}\n\nA consequence of a change ({group}).\n\n{page}\n")
}

/// The lists of rules and of consequences, as Markdown.
pub(crate) fn ids() -> String {
    let (consequences, _) = PAGE.split_once("\n\n").unwrap_or_default();
    format!("# Rules\n\n{}\n# Consequences of a change\n\n{consequences}\n", rules())
}

/// A text as it is printed: with marked parts, and without links that only the sources can follow.
fn printed(text: &str) -> String {
    let filled = text.replace("<!-- rules -->\n", &rules());
    // A terminal shows no pictures.
    let lines = filled.lines().filter(|line| !line.starts_with("!["));
    unlinked(lines.map(terminal_line).collect::<String>().trim_end()) + "\n"
}

/// A line of a page as it is printed.
fn terminal_line(line: &str) -> String {
    // A terminal does not know the attributes of a block.
    match line.strip_prefix("```console ") {
        Some(_) => "```console\n".to_owned(),
        None => format!("{line}\n"),
    }
}

/// A list of all rules with their severities.
fn rules() -> String {
    Rule::ALL
        .iter()
        .map(|rule: &Rule| {
            let (id, severity, summary) = (rule.id(), rule.default_level().name(), rule.summary());
            format!("- `{id}` ({severity}): {summary}\n")
        })
        .collect()
}

/// Markdown with only the texts of its links, for readers who do not have the pages that they lead to.
pub(crate) fn unlinked(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let (Some(at), Some((url, after))) = (before.rfind('['), after.split_once(')')) else {
            break;
        };
        out.push_str(&before[..at]);
        out.push_str(&before[at + 1..]);
        if url.contains("://") {
            out.push_str(&format!(" ({url})"));
        }
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests;
