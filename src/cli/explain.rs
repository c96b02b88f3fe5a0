//! `explain`: what a rule is about.

use std::process::ExitCode;

use clap::Args;

use super::output;
use crate::manual;
use crate::message::failure::{Failure, Failures, nearest};
use crate::message::finding::Rule;
use crate::message::redact;

/// Arguments of `explain`.
#[derive(Debug, Clone, Args)]
pub(super) struct ExplainArgs {
    /// Rules, for example `remote-reference` [default: list them]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
}

/// Explains what the arguments name.
pub(super) fn run(args: &ExplainArgs) -> ExitCode {
    let unknown: Vec<Failure> = args.ids.iter().filter_map(|id| unknown(id)).collect();
    if !unknown.is_empty() {
        return output::failed(&Failures(unknown), false);
    }
    let text = match args.ids.as_slice() {
        [] => manual::ids(),
        ids => ids.iter().filter_map(|id| Rule::from_id(id)).map(manual::rule).collect(),
    };
    output::print(&manual::unlinked(&text));
    ExitCode::SUCCESS
}

/// Returns the failure that there is no such rule.
fn unknown(id: &str) -> Option<Failure> {
    if Rule::from_id(id).is_some() {
        return None;
    }
    let known = Rule::ALL.iter().map(|rule| rule.id());
    let failure = Failure::new(format!("there is no rule `{}`", redact::text(id)));
    Some(match nearest(id, known) {
        Some(meant) => failure.hint(format!("did you mean `{meant}`? git kustomize-localize explain {meant}")),
        None => failure.hint("to list them: git kustomize-localize explain"),
    })
}
