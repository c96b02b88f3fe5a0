//! Exceptions: [comments](crate::config::Comments) in the files themselves, and the entries of `allow`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::stale_allow::{stale_comment, stale_finding, unreasoned};
use super::{Context, unlocked_dependency};
use crate::config::{Allow, Comments, Config, Exceptions};
use crate::message::failure::{Failure, shown};
use crate::message::finding::{Allowed, Finding, Rule};
use crate::message::redact;
use crate::record::{LOCK_NAME, stored};
use crate::tree::{Entry, path};

/// The comments of all files that the walk read or that have findings, by their paths. Comments in a lock do not count,
/// since `lock` rewrites it, nor those in localized files, which upstream wrote.
fn comments(context: &Context<'_>, findings: &[Finding]) -> HashMap<String, Rc<Comments>> {
    let (graph, mut all) = (context.graph, HashMap::new());
    for file in graph.root_ids().flat_map(|root| graph.files_of(root)) {
        if let Some(comments) = &graph.files[file].comments {
            all.insert(context.path(file).to_owned(), comments.clone());
        }
    }
    for Finding { path, .. } in findings {
        let is_ours = path::name(path) == LOCK_NAME || stored::localized_dir(path).is_some();
        if !is_ours && !all.contains_key(path) && matches!(context.tree.entry(path), Ok(Some(Entry::File { .. }))) {
            let bytes = context.tree.read(path).unwrap_or_default();
            all.insert(path.clone(), Rc::new(Comments::of(&bytes)));
        }
    }
    all
}

/// Marks the findings that comments and the configuration allow, and adds findings for exceptions that are stale,
/// malformed or without a reason. Unused exceptions are stale only if `is_complete`, which tells that the check has
/// looked at everything.
pub(super) fn allow(context: &Context<'_>, findings: &mut Vec<Finding>, is_complete: bool) {
    let (config, change_config) = (context.config, context.input.change_config);
    // With a base, the configuration of the change does not count yet, but its exceptions are marked as new.
    let written = change_config.unwrap_or(config);
    let files = comments(context, findings);
    // By file, with the position of the comment in it: comments that allow a finding of a rule, and comments beside a
    // locked reference.
    let mut used: BTreeSet<(&str, usize, Rule)> = BTreeSet::new();
    let mut locked: BTreeSet<(&str, usize)> = BTreeSet::new();
    // Entries for upstreams behind locked ones, and for sources that may be too young, have no finding here, but are in
    // use.
    let mut used_entries = unlocked_dependency::entries_in_use(context, written);
    // A file that could not be read may hide more references than the exception is for, so its finding always counts.
    for finding in findings.iter_mut().filter(|finding| !finding.unread) {
        let mut comment = None;
        if let Some((path, comments)) = files.get_key_value(finding.path.as_str()) {
            // Once a reference is locked, a comment that lets it stay remote allows nothing more.
            if finding.rule == Rule::LockedReference {
                for rule in [Rule::RemoteReference, Rule::RemoteChart] {
                    let beside = comments.allowing(rule, finding.span);
                    locked.extend(beside.map(|(index, _)| (path.as_str(), index)));
                }
            }
            for (index, directive) in comments.allowing(finding.rule, finding.span) {
                used.insert((path.as_str(), index, finding.rule));
                comment.get_or_insert_with(|| Allowed {
                    path: finding.path.clone(),
                    span: comments.comments[index].span,
                    reason: directive.reason.clone(),
                    is_new: change_config.is_some(),
                });
            }
        }
        let entry_of = |config: &Config| config.allowed_by(finding.rule, &finding.subject, &finding.path);
        let entry = entry_of(written);
        used_entries.extend(entry);
        // An exception of the base comes first: it was reviewed before.
        let by_base = change_config.and_then(|_| entry_of(config)).map(|index| by_entry(config, index, false));
        let by_written = entry.map(|index| by_entry(written, index, change_config.is_some()));
        finding.allowed = by_base.or(comment).or(by_written);
    }
    // Only now it is known which comments allowed nothing.
    for (path, comments) in &files {
        for (index, comment) in comments.comments.iter().enumerate() {
            let is_locked = locked.contains(&(path.as_str(), index));
            // The age of a source is known only while it is locked, so a comment about it never counts as unused.
            findings.extend(stale_comment(path, comment, is_complete, is_locked, |rule| {
                rule == Rule::YoungSource || used.contains(&(path.as_str(), index, rule))
            }));
        }
    }
    // An entry that the change adds may be for a later change, so it is not stale yet.
    let known: HashSet<_> = config.allow.iter().map(Allow::meaning).collect();
    let is_unused =
        |index: usize| is_complete && !used_entries.contains(&index) && known.contains(&written.allow[index].meaning());
    findings.extend(stale_entries(written, findings, is_unused));
}

/// The findings for entries of `allow` that are unused, or without a reason.
fn stale_entries(config: &Config, findings: &[Finding], is_unused: impl Fn(usize) -> bool) -> Vec<Finding> {
    // The help for an unused one tells how much it would cover with `refs: any`, which is counted only if there is one.
    let (mut stale, mut with_any_ref) = (Vec::new(), None);
    for (index, entry) in config.allow.iter().enumerate() {
        if is_unused(index) {
            let counts = with_any_ref.get_or_insert_with(|| count_with_any_ref(&config.allow, findings));
            stale.push(unused_entry(config, entry, counts[index]));
        } else {
            stale.extend(unreasoned(config, entry));
        }
    }
    stale
}

/// For each entry that names one reference: how many findings it would cover with `refs: any`.
fn count_with_any_ref(allow: &Exceptions, findings: &[Finding]) -> Vec<usize> {
    let (wide, mut below) = (allow.widened(), vec![BTreeSet::new(); allow.len()]);
    for finding in findings {
        for index in wide.covering(finding.rule, &finding.subject, "") {
            below[index].insert((&finding.path, finding.span, &finding.reference));
        }
    }
    below.iter().map(BTreeSet::len).collect()
}

/// The finding for an entry that covers nothing. With `refs: any` an exact entry would cover `below` references; 0 for
/// a glob.
fn unused_entry(config: &Config, entry: &Allow, below: usize) -> Finding {
    let text = shown(&redact::url(&entry.text));
    let failure = |rest: &str| Failure::new(format!("unused exception: `{text}` matches no finding{rest}"));
    // A `url`, `chart` or `image` without `refs` is exact. A `path` or `program` is always a glob, also without `refs`.
    let failure = match below {
        0 if entry.is_exact() => failure(" exactly").hint("remove or correct the entry"),
        0 if entry.refs.is_some() => failure("").hint("remove or correct the entry, its `refs` or `rules`"),
        0 => failure("").hint("remove or correct the entry"),
        count => {
            let (are, them) = if count == 1 { ("reference is", "it") } else { ("references are", "them") };
            failure(&format!(" exactly; {count} {are} below it: `refs: any` covers {them}"))
                .hint("write the whole reference as the kustomization has it, or add `refs`")
        }
    };
    stale_finding(&config.file, entry.span, &entry.text, failure)
}

/// The permission by an entry of `allow`. `is_new` tells that only the change has the entry.
fn by_entry(config: &Config, index: usize, is_new: bool) -> Allowed {
    let entry = &config.allow[index];
    Allowed { path: config.file.clone(), span: entry.span, reason: redact::text(&entry.reason), is_new }
}

#[cfg(test)]
mod tests;
