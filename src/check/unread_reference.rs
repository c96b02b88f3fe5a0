//! `unread-reference`: what a build asks for and no reference names. Only builds find it.

use crate::message::finding::{Finding, Rule};

/// Makes a finding about a root, by its kustomization, and what builds it.
pub(crate) fn unread_reference(path: &str, message: String, by: &str) -> Finding {
    let help = "write the reference plainly, and lock it: git kustomize-localize explain unread-reference";
    let found = Finding::new(Rule::UnreadReference, path, message, vec![help.to_owned()]);
    Finding { deployed: if by == path { Vec::new() } else { vec![by.to_owned()] }, ..found }
}
