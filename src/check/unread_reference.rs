//! `unread-reference`: what a build asks for and no reference names. Only builds find it.

use super::finding;
use crate::graph::Warning;
use crate::message::finding::{Finding, Rule, Span};

/// Makes a finding about a root, by its kustomization, and what builds it.
pub(crate) fn unread_reference(path: &str, message: String, by: &str) -> Finding {
    let help = "write the reference plainly, and lock it: git kustomize-localize explain unread-reference";
    let found = finding(Rule::UnreadReference, path, message, vec![help.to_owned()]);
    Finding { deployed: if by == path { Vec::new() } else { vec![by.to_owned()] }, ..found }
}

/// Makes a finding of what only localizing sees.
pub(crate) fn of_warning(warning: &Warning) -> Finding {
    let Warning { rule, severity, location, message } = warning;
    let span = Span { line: location.line, column: location.column.max(1), ..Span::default() };
    let found = finding(*rule, &location.file, message.clone(), Vec::new());
    Finding { severity: *severity, span: (location.line > 0).then_some(span), field: location.field.clone(), ..found }
}
