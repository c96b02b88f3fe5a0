//! `help`: the pages of the manual.

use clap::Args;

use super::output::{Done, Page, styled};
use super::{COPY, documented, manual};
use crate::message::failure::Failure;
use crate::message::redact::{self, visible};
use crate::workspace::repository_offline;

/// The repository of nobody on the page of recipes.
const REPOSITORY: &str = "https://github.com/OWNER/REPOSITORY";

#[derive(Debug, Clone, Args)]
pub(super) struct HelpArgs {
    /// A command, for example `check` or `hook install`, or a guide, for example `recipes` [default: list them]
    #[arg(value_name = "PAGE")]
    page: Vec<String>,
}

impl HelpArgs {
    /// Shows the page that the arguments name.
    pub(super) fn run(&self) -> Done {
        let name = self.page.join(" ");
        if name.is_empty() {
            return Page::of(overview());
        }
        let text = page(&name)
            .or_else(|| {
                manual::guide(&name).map(|text| if name == "recipes" { for_this_repository(text) } else { text })
            })
            .ok_or_else(|| {
                Failure::new(format!("there is no page `{}`", redact::text(&name)))
                    .hint("to list them: git kustomize-localize help")
            })?;
        Page::of(text)
    }
}

/// Recipes with the URL and the default branch of `origin` in the place of the examples, so that they can be copied as
/// they are. What this repository does not have stays an example.
fn for_this_repository(text: String) -> String {
    let Ok(repo) = repository_offline() else { return text };
    let url = repo.config("remote.origin.url").ok().flatten();
    let url = url.map(|url| from_ssh(&url).unwrap_or(url)).filter(|url| url.starts_with("https://"));
    let text = match url {
        Some(url) => text.replace(REPOSITORY, visible(&redact::url(&url)).trim_end_matches(".git")),
        None => text,
    };
    // The default branch is in the names of the localized and rendered branches, and in the filter of the branches that
    // jobs run for.
    let head = "refs/remotes/origin/HEAD";
    let head = repo.refs(&[head]).ok().and_then(|mut refs| refs.remove(head)?.other_name);
    match head.as_deref().and_then(|name| name.strip_prefix("refs/remotes/origin/")) {
        Some(branch) => {
            let befores = ["localized/", "rendered/", "branches: ["];
            befores
                .iter()
                .fold(text, |text, before| text.replace(&format!("{before}main"), &format!("{before}{branch}")))
        }
        None => text,
    }
}

/// The https URL of a repository whose URL is for ssh; `None` if it is not.
fn from_ssh(url: &str) -> Option<String> {
    let (host, path) = match url.strip_prefix("ssh://git@") {
        Some(rest) => rest.split_once('/')?,
        None => url.strip_prefix("git@")?.split_once(':')?,
    };
    // The port of ssh is not that of https.
    let host = host.split(':').next()?;
    Some(format!("https://{host}/{path}"))
}

/// The page of the command with this name; `None` if there is none.
fn page(name: &str) -> Option<String> {
    let command = documented();
    let name = if name == "copy" { COPY } else { name };
    let mut words = name.split_whitespace().filter(|_| name != COPY);
    let command = words.try_fold(&command, |command, word| command.find_subcommand(word))?;
    let help = styled(&command.clone().render_long_help(), console::colors_enabled());
    let text = manual::page(name).map(|text| format!("\n{text}"));
    Some(help + &text.unwrap_or_default())
}

/// The list of all commands and guides, for `help` without an argument.
fn overview() -> String {
    let command = documented();
    let commands = command.get_subcommands().filter(|subcommand| !subcommand.is_hide_set());
    let commands = commands
        .map(|subcommand| (subcommand.get_name(), subcommand.get_about().map(ToString::to_string).unwrap_or_default()));
    let copy = (COPY, "Copy a kustomization with all it references".to_owned());
    let commands: String = std::iter::once(copy).chain(commands).map(row).collect();
    let guides: String = manual::guides().map(|(name, about)| row((name, about.to_owned()))).collect();
    format!("Commands:\n{commands}\nGuides:\n{guides}\nTo read one: git kustomize-localize help NAME\n")
}

/// A line of a list of commands or guides.
fn row((name, about): (&str, String)) -> String {
    format!("  {name:<16}{about}\n")
}
