//! `unread-reference` and `not-built`: what only builds find.

use crate::message::finding::{Finding, Rule};

/// Makes a finding about a root, by its kustomization, and what builds it, about what a build asks for and no reference
/// names.
pub(crate) fn unread_reference(path: &str, message: String, by: &str) -> Finding {
    let help = "write the reference plainly, and lock it: git kustomize-localize explain unread-reference";
    of_build(Rule::UnreadReference, path, message, by, help)
}

/// Makes one about a root that is not built; with `help` where it is known what was missing.
pub(crate) fn not_built(path: &str, reason: &str, by: &str, help: Option<&str>) -> Finding {
    let mend = "fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize";
    of_build(Rule::NotBuilt, path, format!("not built: {reason}"), by, help.unwrap_or(mend))
}

/// Makes one about what an engine refuses of what was built for it.
pub(crate) fn refused(path: &str, reason: &str, by: &str) -> Finding {
    let help = "set them in `postBuild.substitute`, write a default as `${NAME:=}`, or escape them as `$${NAME}`";
    of_build(Rule::Engine, path, reason.to_owned(), by, help)
}

/// Makes one about a build that nobody watches, and why.
pub(crate) fn not_observed(path: &str, why: &str, by: &str) -> Finding {
    let help = "build on another machine, or read what the functions do: git kustomize-localize explain not-observed";
    of_build(Rule::NotObserved, path, format!("what its functions ask for is not seen: {why}"), by, help)
}

fn of_build(rule: Rule, path: &str, message: String, by: &str, help: &str) -> Finding {
    let deployed = if by == path { Vec::new() } else { vec![by.to_owned()] };
    Finding { deployed, ..Finding::new(rule, path, message, vec![help.to_owned()]) }
}
