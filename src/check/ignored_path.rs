//! `ignored-path`: a path that names nothing because git ignores it: a secret that is kept out of
//! git, or what a tool generates.
//!
//! A warning: the file is ignored on purpose, and the build works wherever the file exists.

use super::Context;
use super::missing_path::{self, Absent};
use super::rule::{Allow, Definition, Find};
use crate::config::{Config, FILE_NAME, PLACEHOLDER};
use crate::failure::stage;
use crate::finding::{Finding, Rule, Severity};
use crate::tree::absence::Absence;

pub(super) const DEFINITION: Definition = Definition {
    id: "ignored-path",
    severity: Severity::Warning,
    is_off: false,
    summary: "a path that git ignores",
    explanation: r"
A path does not exist in what is checked, and git ignores it: most often a secret that is kept out of git on
purpose. The build works only where somebody puts the file.

Add it all the same if it is no secret (`git add -f`). Otherwise leave the warning, or put the path into `leave-missing`
of the [configuration](../manual/configuration.md), with the reason. Only the `.gitignore` files of what is checked count,
so that every clone gets the same findings.
",
    allow: Allow::Never,
    find: Find::Here(find),
};

fn find(context: &Context<'_>) -> Vec<Finding> {
    missing_path::absent(context)
        .into_iter()
        .filter_map(|absent| {
            let Absent {
                edge,
                place,
                why: Absence::Ignored(rule, pattern),
                on_disk,
                ..
            } = absent
            else {
                return None;
            };
            let message = format!("git ignores `{place}`: by `{pattern}` in {rule}");
            let mut help = Vec::new();
            if on_disk {
                help.push(format!(
                    "if it holds no secret, commit it: {}",
                    stage([&place])
                ));
            }
            help.push(format!(
                "if it is made where it is built: # kustomize-localize: allow[{}] {PLACEHOLDER}",
                Rule::IgnoredPath
            ));
            help.push(format!(
                "or let it be missing, here and on a localized branch: add to `leave-missing` in `{FILE_NAME}`: {}",
                Config::entry_missing(&place)
            ));
            Some(context.at_reference(Rule::IgnoredPath, edge, message, help))
        })
        .collect()
}
