//! `explain`: explains a rule, or a consequence of a change.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::manual;
use super::output::{Done, Page};
use crate::build::consequences::TABLE;
use crate::message::finding::Rule;

#[derive(Debug, Clone, Args)]
pub(super) struct ExplainArgs {
    /// Rules or consequences, for example `remote-reference` [default: list them]
    #[arg(value_name = "ID", value_parser = rules(), hide_possible_values = true)]
    ids: Vec<String>,
}

/// The ids that `explain` accepts, for clap.
fn rules() -> PossibleValuesParser {
    PossibleValuesParser::new(ids())
}

/// The ids of all rules and consequences.
pub(super) fn ids() -> impl Iterator<Item = &'static str> {
    Rule::ALL.iter().map(|rule| rule.id()).chain(TABLE.iter().map(|row| row.id))
}

impl ExplainArgs {
    /// Explains the rules and consequences that the arguments name. Without arguments, lists all of them.
    pub(super) fn run(&self) -> Done {
        let text = if self.ids.is_empty() {
            manual::ids()
        } else {
            self.ids
                .iter()
                .map(|id: &String| match Rule::from_id(id) {
                    Some(rule) => manual::rule(rule),
                    None => manual::consequence(id),
                })
                .collect()
        };
        Page::of(manual::unlinked(&text))
    }
}
