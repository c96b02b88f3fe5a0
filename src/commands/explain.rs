//! `explain`: what a rule is about.

use clap::Args;
use clap::builder::PossibleValuesParser;

use super::manual;
use super::output::{Done, Page};
use crate::message::finding::Rule;

#[derive(Debug, Clone, Args)]
pub(super) struct ExplainArgs {
    /// Rules, for example `remote-reference` [default: list them]
    #[arg(value_name = "ID", value_parser = rules(), hide_possible_values = true)]
    ids: Vec<String>,
}

fn rules() -> PossibleValuesParser {
    PossibleValuesParser::new(Rule::ALL.iter().map(|rule| rule.id()))
}

impl ExplainArgs {
    /// Explains what the arguments name.
    pub(super) fn run(&self) -> Done {
        let rules = self.ids.iter().filter_map(|id| Rule::from_id(id));
        let text = if self.ids.is_empty() { manual::ids() } else { rules.map(manual::rule).collect() };
        Page::of(manual::unlinked(&text))
    }
}
