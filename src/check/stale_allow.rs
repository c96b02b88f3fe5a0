//! `stale-allow`: a comment or an entry of the configuration that allows nothing, because it is malformed or because
//! there is nothing to allow, or gives no reason.
//!
//! Only the configuration can silence it.

use std::cell::LazyCell;

use super::{Context, finding};
use crate::config::{Comment, Config, Glob, is_placeholder};
use crate::message::failure::shown;
use crate::message::finding::{Finding, Rule, Span};
use crate::message::redact;
use crate::tree::path;

/// The form that the help for a malformed comment shows.
pub(super) const FORM: &str = "write `# kustomize-localize: allow[RULE]`, and say why behind it";

/// Finds the patterns of `include` that match the directory of no kustomization, and those of `exclude` that match that of
/// no file.
pub(super) fn unmatched(context: &Context<'_>) -> Vec<Finding> {
    let (config, said) = (context.config, context.own.unwrap_or(context.config));
    if !context.complete || said.include.is_empty() && said.exclude.is_empty() {
        return Vec::new();
    }
    let matches = |glob: &Glob, files: &[String]| {
        let mut directories = files.iter().map(|file| path::parent(file));
        directories.any(|directory| glob.covers(directory))
    };
    // What cannot be listed is a failure elsewhere.
    let roots = context.tree.kustomizations().unwrap_or_default();
    let files = LazyCell::new(|| context.tree.below("").unwrap_or_default());
    let include = said.include.iter().filter(|glob| !matches(glob, &roots));
    let exclude = said.exclude.iter();
    let exclude = exclude.filter(|glob| !matches(glob, &roots) && !matches(glob, &files));
    let known = |glob: &&Glob| {
        let mut known = config.include.iter().chain(&config.exclude);
        known.any(|one| one.text == glob.text)
    };
    let stale = |glob: &Glob| {
        let message = format!("nothing matches `{}`", shown(&glob.text));
        let help = "remove it, or correct it".to_owned();
        let line_text = redact::text(&glob.line_text);
        stale(&said.file, glob.span, line_text, message, help)
    };
    include.chain(exclude).filter(known).map(stale).collect()
}

/// Returns what is stale about the entries of the configuration that give no reason.
pub(super) fn stale_reasons(config: &Config) -> impl Iterator<Item = Finding> {
    let unreasoned = config.allow.iter().filter(|entry| is_placeholder(&entry.reason));
    unreasoned.map(|entry| {
        let message = format!("`{}` is a placeholder, not a reason", shown(&entry.reason));
        let help = "say why this stays, for those who review it".to_owned();
        let line_text = redact::text(&entry.line_text);
        stale(&config.file, entry.span, line_text, message, help)
    })
}

/// Returns what is stale about a comment.
pub(super) fn stale_comment(
    path: &str,
    comment: &Comment,
    complete: bool,
    is_used: impl Fn(Rule) -> bool,
) -> Option<Finding> {
    let (message, help) = match &comment.said {
        Err(why) => (format!("this comment allows nothing: {why}"), FORM.to_owned()),
        Ok(said) if is_placeholder(&said.reason) => (
            format!("`{}` is a placeholder, not a reason", shown(&said.reason)),
            "say why this stays, for those who review it".to_owned(),
        ),
        Ok(_) if !complete => return None,
        Ok(said) => {
            let unused: Vec<&str> = said.rules.iter().filter(|rule| !is_used(**rule)).map(|rule| rule.id()).collect();
            if unused.is_empty() {
                return None;
            }
            let help = if unused.len() == said.rules.len() {
                "remove the comment".to_owned()
            } else {
                format!("take {} out of the comment", quoted(&unused))
            };
            let message = format!("{} has nothing here that could be allowed", quoted(&unused));
            (message, help)
        }
    };
    Some(stale(path, comment.span, comment.line_text.clone(), message, help))
}

fn quoted(ids: &[&str]) -> String {
    let ids: Vec<String> = ids.iter().map(|id| format!("`{id}`")).collect();
    ids.join(", ")
}

pub(super) fn stale(path: &str, span: Span, line_text: String, message: String, help: String) -> Finding {
    Finding { span: Some(span), line_text: line_text.into(), ..finding(Rule::StaleAllow, path, message, vec![help]) }
}
