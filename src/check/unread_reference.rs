//! The findings of builds: `unread-reference`, `not-built`, `not-observed` and, if an engine refuses an output,
//! `engine`.

use crate::message::failure::Failure;
use crate::message::finding::{Finding, Rule};

/// The finding for a request of a build that no reference names. `path` is the kustomization, `by` the target or path
/// that names the build.
pub(crate) fn unread_reference(path: &str, message: String, by: &str) -> Finding {
    let hint = "write the reference plainly, and lock it: git kustomize-localize explain unread-reference";
    of_build(Rule::UnreadReference, path, message, by, hint)
}

/// The finding for a root that cannot be built. `hint` replaces the general advice.
pub(crate) fn not_built(path: &str, reason: &str, by: &str, hint: Option<&str>) -> Finding {
    let mend = "fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize";
    of_build(Rule::NotBuilt, path, format!("not built: {reason}"), by, hint.unwrap_or(mend))
}

/// The finding for an output that its engine refuses.
pub(crate) fn refused(path: &str, reason: &str, by: &str) -> Finding {
    let hint =
        "set variables in `postBuild.substitute`, write a default as `${NAME:=}`, and escape other texts as `$${`";
    of_build(Rule::Engine, path, reason.to_owned(), by, hint)
}

/// The finding for a build whose requests cannot be seen, and the reason.
pub(crate) fn not_observed(path: &str, why: &str, by: &str) -> Finding {
    let hint = "build on another machine, or read what the functions do: git kustomize-localize explain not-observed";
    of_build(Rule::NotObserved, path, format!("what its functions ask for is not seen: {why}"), by, hint)
}

/// A finding about the file of a build. `by` names the build: it is not repeated if it is the file itself.
fn of_build(rule: Rule, path: &str, message: String, by: &str, hint: &str) -> Finding {
    let deployed = if by == path { Vec::new() } else { vec![by.to_owned()] };
    Finding { deployed, ..Finding::new(rule, path, Failure::new(message).hint(hint)) }
}
