//! The parts of a page that are made from what the program knows: options, commands, rules, warnings.

use std::collections::BTreeSet;

use super::{GUIDES, Page, docs, sentence};
use crate::finding::{Rule, WarningId};

/// Returns how a command is called.
pub(super) fn usage(command: &clap::Command) -> String {
    let usage = command.clone().render_usage().to_string();
    usage.trim_start_matches("Usage: ").to_owned()
}

/// Returns the text of a command's page: what is written about it, with its options before the first section.
pub(super) fn command(written: &str, name: &str, command: &clap::Command) -> String {
    let (first, sections) = match written.find("\n## ") {
        Some(at) if !written.starts_with("## ") => written.split_at(at + 1),
        _ if written.starts_with("## ") => ("", written),
        _ => (written, ""),
    };
    let mut body = String::new();
    let mut add = |part: &str| {
        if !part.trim().is_empty() {
            body.push_str(part.trim());
            body.push_str("\n\n");
        }
    };
    add(first);
    add(&commands(name, command));
    if name.is_empty() {
        add(&guides());
    }
    add(&options(command));
    add(sections);
    if let Some(status) = command.get_after_help().map(ToString::to_string) {
        let status = status.trim_start_matches("Exit status: ");
        add(&format!("## Exit status\n\n{status}"));
    }
    filled(&body)
}

/// Fills in the parts of a text that are marked.
pub(super) fn filled(text: &str) -> String {
    text.replace("<!-- rules -->\n", &rules())
        .replace("<!-- warnings -->\n", &warnings())
}

/// Returns the text about a rule, and how to change what it does.
pub(super) fn rule(rule: Rule) -> String {
    let id = rule.id();
    let severity = rule.default_level();
    let allow = match rule {
        Rule::StaleAllow => "",
        _ => ", [a comment](../manual/configuration.md#allowing-a-finding) allows one finding",
    };
    format!(
        "{}\n\nSeverity: `{severity}`. `rules: {{{id}: …}}` in the \
         [configuration](../manual/configuration.md) changes that{allow}.\n",
        rule.explanation().trim()
    )
}

/// Returns the text about a warning, and how to make it an error.
pub(super) fn warning(warning: WarningId) -> String {
    let id = warning.id();
    format!(
        "# {id} (warning)\n\n{}\n\n`--strict={id}`, or `strict: [{id}]` in the \
         [configuration](../manual/configuration.md), makes it an error. All about warnings: \
         `git kustomize-localize help warnings`.\n\n",
        sentence(warning.meaning())
    )
}

fn rules() -> String {
    let row = |rule: &Rule| {
        let id = rule.id();
        let file = id.replace('-', "_");
        let (severity, summary) = (rule.default_level(), rule.summary());
        format!("| [`{id}`](../check/{file}.rs) | {severity} | {summary} |\n")
    };
    let rows: String = Rule::ALL.iter().map(row).collect();
    format!("| rule | default | finds |\n|---|---|---|\n{rows}")
}

fn warnings() -> String {
    let row = |warning: &WarningId| format!("| `{}` | {} |\n", warning.id(), warning.meaning());
    let rows: String = WarningId::ALL.iter().map(row).collect();
    format!("| warning | meaning |\n|---|---|\n{rows}")
}

fn guides() -> String {
    let row = |(name, text): &(&str, &str)| {
        let about = text.lines().next().unwrap_or_default();
        let about = about.trim_start_matches("# ");
        format!("| [`{name}`](../manual/{name}.md) | {about} |\n")
    };
    let rows: String = GUIDES.iter().map(row).collect();
    format!(
        "## Guides\n\nRead one with `git kustomize-localize help GUIDE`.\n\n| guide | about |\n|---|---|\n{rows}"
    )
}

fn commands(name: &str, command: &clap::Command) -> String {
    let row = |one: &clap::Command| {
        let about = one.get_about().map(ToString::to_string).unwrap_or_default();
        let shown = format!("{name} {}", one.get_name());
        let shown = shown.trim();
        let file = shown.replace(' ', "-");
        format!("| [`{shown}`]({file}.md) | {about} |\n")
    };
    let visible = command.get_subcommands().filter(|one| !one.is_hide_set());
    let rows: String = visible.map(row).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("## Commands\n\n| command | what it does |\n|---|---|\n{rows}")
}

fn options(command: &clap::Command) -> String {
    let visible = command.get_arguments().filter(|one| !one.is_hide_set());
    let (places, options): (Vec<_>, Vec<_>) = visible.partition(|one| one.is_positional());
    let rows: String = places.into_iter().chain(options).map(option).collect();
    if rows.is_empty() {
        return rows;
    }
    format!("## Options\n\n| option | meaning |\n|---|---|\n{rows}")
}

fn option(argument: &clap::Arg) -> String {
    let long = argument.to_string().replace(['<', '>'], "");
    let name = match argument.get_short() {
        _ if argument.is_positional() => long.trim_matches(['[', ']', '.']).to_owned(),
        Some(short) if argument.get_long().is_some() => format!("-{short}, {long}"),
        _ => long,
    };
    let help = argument.get_long_help().or_else(|| argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    // A page is no summary, and has none.
    let help = help.replace(" (see a summary with '-h')", "");
    let mut meaning: Vec<String> = help.split("\n\n").map(sentence).collect();
    let values = argument.get_possible_values();
    let is_choice = values.iter().any(|value| value.get_help().is_some());
    if is_choice && !argument.is_hide_possible_values_set() {
        let default: Vec<_> = argument.get_default_values().iter().collect();
        let visible = values.iter().filter(|value| !value.is_hide_set());
        let choices: Vec<String> = visible
            .map(|value| {
                let name = value.get_name();
                let is_default = default.iter().any(|one| *one == name);
                let mark = if is_default { " (default)" } else { "" };
                let help = value.get_help().map(ToString::to_string);
                format!("`{name}`{mark}: {}", help.unwrap_or_default())
            })
            .collect();
        meaning.push(format!("{}.", choices.join("; ")));
    }
    format!("| `{name}` | {} |\n", meaning.join(" ").replace('|', "\\|"))
}

/// Returns the section that names the manual pages a page leads to, and that of the program.
pub(super) fn see_also(page: &Page) -> String {
    let mut names: BTreeSet<String> = docs::targets(page)
        .iter()
        .map(|source| manual(source))
        .filter(|name| *name != format!("{}({})", page.file(), page.section()))
        .collect();
    if !page.name.is_empty() {
        names.insert("git-kustomize-localize(1)".to_owned());
    }
    let names: Vec<String> = names.iter().map(|name| format!("**{name}**")).collect();
    format!("\n## See also\n\n{}\n", names.join(", "))
}

/// Returns the manual page that is made of a source.
fn manual(source: &str) -> String {
    let name = source.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(".md");
    if source.starts_with("src/commands/") {
        format!("git-kustomize-localize-{name}(1)")
    } else if source.starts_with("src/check/") {
        "git-kustomize-localize-rules(7)".to_owned()
    } else {
        format!("git-kustomize-localize-{name}(7)")
    }
}
