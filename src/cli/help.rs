//! `help`: the pages of the manual, on the terminal.

use std::process::ExitCode;

use clap::Args;

use super::output;
use crate::failure::{Failure, nearest};
use crate::manual::{self, Look};
use crate::redact;

/// Arguments of `help`.
#[derive(Debug, Clone, Args)]
pub(super) struct HelpArgs {
    /// A command, as `check` or `hook install`, or a guide, as `recipes` [default: list them]
    #[arg(value_name = "PAGE")]
    page: Vec<String>,
}

/// Shows the page that the arguments name.
pub(super) fn run(args: &HelpArgs) -> ExitCode {
    output::Color::Auto.apply();
    let name = args.page.join(" ");
    let pages = manual::pages(&super::documented());
    let text = match pages.iter().find(|page| page.name == name) {
        Some(page) => page.markdown(),
        None => {
            let names = pages.iter().map(|page| page.name.as_str());
            let failure = Failure::new(format!("there is no page `{}`", redact::text(&name)));
            let failure = match nearest(&name, names) {
                Some(meant) => failure.hint(format!(
                    "did you mean `{meant}`? git kustomize-localize help {meant}"
                )),
                None => failure.hint("to list them: git kustomize-localize help"),
            };
            return output::failed(&failure.into(), false);
        }
    };
    output::print(&manual::text(&text, look()));
    ExitCode::SUCCESS
}

/// Returns how text is shown on standard output.
pub(super) fn look() -> Look {
    let (_, columns) = console::Term::stdout().size();
    Look {
        color: console::colors_enabled(),
        width: usize::from(columns),
    }
}
