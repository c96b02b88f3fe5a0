//! The manual: a page for each command, rule and guide. Each is printed by the program, and becomes a manual page and a
//! page of a site.
//!
//! Text is written once, as Markdown: of a command in `commands/COMMAND.md`, of a rule in its file in `check`, of a guide
//! in `manual/GUIDE.md`. Tables of options, rules and warnings are made from what the program knows. A link in a page is
//! the path from its source to another source, so that it works wherever the sources are shown.

mod docs;
mod markdown;
mod reference;
mod roff;
mod terminal;

pub use docs::docs;
pub use terminal::{Look, text};

use std::path::PathBuf;

use crate::commands;
use crate::finding::{Rule, WarningId};

macro_rules! guides {
    ($($name:literal)*) => {
        /// The guides, by name, in the order in which to read them.
        const GUIDES: &[(&str, &str)] = &[$(($name, include_str!(concat!("manual/", $name, ".md"))),)*];
    };
}

guides! {
    "troubleshooting"
    "recipes"
    "ci"
    "configuration"
    "rules"
    "warnings"
    "remotes"
    "verification"
    "conflicts"
    "formats"
    "comparison"
}

/// What a page is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The program or a command of it.
    Command,
    /// More than one command.
    Guide,
    /// A rule of `check`.
    Rule,
}

/// A page of the manual.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// What it is about.
    pub kind: Kind,
    /// Its name, as `check`, `hook install`, `recipes`; empty of the program itself.
    pub name: String,
    /// What it is about, in one phrase.
    pub about: String,
    /// How a command is called, a line for each way.
    pub usage: Option<String>,
    /// The text, as Markdown. Its headings begin with the second level.
    pub body: String,
    /// Where the text is written, from the top of the sources; links lead on from there.
    source: String,
}

impl Page {
    /// Returns the name of its manual page, without the section.
    #[must_use]
    pub fn file(&self) -> String {
        let name = std::iter::once("git-kustomize-localize").chain(self.name.split_whitespace());
        name.collect::<Vec<&str>>().join("-")
    }

    /// Returns the section of the manual that it is in.
    #[must_use]
    pub fn section(&self) -> u8 {
        match self.kind {
            Kind::Command => 1,
            Kind::Guide | Kind::Rule => 7,
        }
    }

    /// Returns the whole page as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        let usage = self.usage.iter().map(|usage| {
            let lines = usage.lines().map(|line| format!("    {}\n", line.trim()));
            lines.collect::<String>() + "\n"
        });
        format!(
            "# {}\n\n{}\n\n{}{}",
            self.title(),
            sentence(&self.about),
            usage.collect::<String>(),
            self.body
        )
    }

    fn title(&self) -> String {
        match (self.kind, self.name.as_str()) {
            (Kind::Command, "") => "git kustomize-localize".to_owned(),
            (Kind::Command, name) => format!("git kustomize-localize {name}"),
            (Kind::Guide | Kind::Rule, name) => name.to_owned(),
        }
    }
}

/// Returns every page, that of the program first. `command` is the command line, built.
#[must_use]
pub fn pages(command: &clap::Command) -> Vec<Page> {
    let mut pages = Vec::new();
    let mut todo = vec![(String::new(), command)];
    while let Some((name, command)) = todo.pop() {
        let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
        let within =
            visible.map(|one| (format!("{name} {}", one.get_name()).trim().to_owned(), one));
        todo.extend(within);
        pages.push(of_command(&name, command));
    }
    pages.sort_by(|a, b| a.name.cmp(&b.name));
    pages.extend(GUIDES.iter().map(|(name, text)| of_guide(name, text)));
    pages.extend(Rule::ALL.iter().map(|rule| of_rule(*rule)));
    pages
}

/// Returns the manual pages: the path of a file below a directory of manuals, and what it holds. Rules share a page.
#[must_use]
pub fn manuals(command: &clap::Command) -> Vec<(PathBuf, String)> {
    let pages = pages(command).into_iter();
    let pages = pages.filter(|page| page.kind != Kind::Rule);
    pages
        .map(|page| {
            let section = page.section();
            let file = format!("man{section}/{}.{section}", page.file());
            let page = Page {
                body: page.body.clone() + &reference::see_also(&page),
                ..page
            };
            (PathBuf::from(file), roff::roff(&page))
        })
        .collect()
}

/// Returns what to know about what has this id, as Markdown: a rule, a warning, or one of each.
#[must_use]
pub fn explanation(id: &str) -> String {
    let rule = Rule::from_id(id).map(self::rule);
    let warning = WarningId::from_id(id).map(reference::warning);
    rule.into_iter().chain(warning).collect()
}

/// Returns what to know about a rule, as Markdown.
#[must_use]
pub fn rule(rule: Rule) -> String {
    let page = of_rule(rule);
    format!("# {} (rule): {}\n\n{}\n", page.name, page.about, page.body)
}

/// Returns the list of what [`explanation`] knows, as Markdown.
#[must_use]
pub fn ids() -> String {
    format!(
        "# Rules of `check`\n\n{}\n# Warnings\n\n{}",
        reference::filled("<!-- rules -->\n"),
        reference::filled("<!-- warnings -->\n")
    )
}

/// Returns the names of the guides.
pub fn guides() -> impl Iterator<Item = &'static str> {
    GUIDES.iter().map(|(name, _)| *name)
}

/// Returns Markdown without its links to other pages: for those who show only this part.
#[must_use]
pub fn unlinked(text: &str) -> String {
    docs::relinked(text, &|target| {
        target.contains("://").then(|| target.to_owned())
    })
}

fn of_command(name: &str, command: &clap::Command) -> Page {
    let written = commands::PAGES.iter().find(|(known, _)| *known == name);
    // The heading is for those who look at the sources.
    let text = written.and_then(|(_, text)| text.split_once('\n'));
    let text = text.map_or("", |(_, text)| text.trim());
    let about = command.get_about().map(ToString::to_string);
    let text = match name {
        // The program has no text but that of its help.
        "" => command
            .get_long_about()
            .map(ToString::to_string)
            .and_then(|text| Some(text.split_once("\n\n")?.1.to_owned())),
        _ => Some(text.to_owned()),
    };
    let file = match name {
        "" => "git-kustomize-localize".to_owned(),
        name => name.replace(' ', "-"),
    };
    Page {
        kind: Kind::Command,
        name: name.to_owned(),
        usage: Some(reference::usage(command)),
        body: reference::command(&text.unwrap_or_default(), name, command),
        about: about.unwrap_or_default(),
        source: format!("src/commands/{file}.md"),
    }
}

fn of_guide(name: &str, text: &str) -> Page {
    let (about, text) = text.split_once('\n').unwrap_or((text, ""));
    Page {
        kind: Kind::Guide,
        name: name.to_owned(),
        about: about.trim_start_matches("# ").to_owned(),
        usage: None,
        body: reference::filled(text.trim_start()),
        source: format!("src/manual/{name}.md"),
    }
}

fn of_rule(rule: Rule) -> Page {
    Page {
        kind: Kind::Rule,
        name: rule.id().to_owned(),
        about: rule.summary().to_owned(),
        usage: None,
        body: reference::rule(rule),
        source: format!("src/check/{}.rs", rule.id().replace('-', "_")),
    }
}

/// Returns a phrase as a sentence.
fn sentence(phrase: &str) -> String {
    let mut characters = phrase.chars();
    let first = characters
        .next()
        .map(|first| first.to_uppercase().to_string());
    let end = if phrase.ends_with('.') { "" } else { "." };
    format!("{}{}{end}", first.unwrap_or_default(), characters.as_str())
}

#[cfg(test)]
mod tests;
