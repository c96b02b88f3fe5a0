//! What need not count: [comments](crate::config::Comments) in the files themselves, and the entries of `allow`.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::stale_allow::{stale, stale_comment, unreasoned};
use super::{Context, behind};
use crate::config::{Allow, Comments, Config, Exceptions};
use crate::message::failure::shown;
use crate::message::finding::{Allowed, Finding, Rule};
use crate::message::redact;
use crate::record::{LOCK_NAME, stored};
use crate::tree::{Entry, path};

/// Marks what comments and the configuration allow, adds what is stale (`is_sure` that everything else was looked at), and
/// gives every finding the severity that it has here; those of rules that are off go.
pub(super) fn apply(context: &Context<'_>, findings: &mut Vec<Finding>, is_sure: bool) {
    allow(context, findings, is_sure && context.input.paths.is_empty());
    context.config.judge(findings);
}

/// Returns the comments of all files that the walk read or findings are about, by their paths. A lock is ours, so that no
/// comment in it lasts; in localized files upstream wrote them.
fn comments(context: &Context<'_>, findings: &[Finding]) -> HashMap<String, Rc<Comments>> {
    let files = context.graph.file_ids().zip(context.graph.files.iter());
    let mut all: HashMap<String, Rc<Comments>> =
        files.filter_map(|(id, file)| Some((context.path(id).to_owned(), file.comments.clone()?))).collect();
    for Finding { path, .. } in findings {
        let is_ours = path::name(path) == LOCK_NAME || stored::home(path).is_some();
        let is_file = || matches!(context.tree.entry(path), Ok(Some(Entry::File { .. })));
        if !is_ours && !all.contains_key(path) && is_file() {
            let bytes = context.tree.read(path).unwrap_or_default();
            all.insert(path.clone(), Rc::new(Comments::of(&bytes)));
        }
    }
    all
}

fn allow(context: &Context<'_>, findings: &mut Vec<Finding>, complete: bool) {
    let (config, own) = (context.config, context.input.own);
    let said = own.unwrap_or(config);
    let files = comments(context, findings);
    let mut used: HashMap<&str, BTreeSet<(usize, Rule)>> = HashMap::new();
    let mut locked: BTreeSet<(&str, usize)> = BTreeSet::new();
    let mut used_entries = behind::entries(context, said);
    for finding in findings.iter_mut().filter(|finding| !finding.unread) {
        let mut comment = None;
        if let Some((path, comments)) = files.get_key_value(finding.path.as_str()) {
            if finding.rule == Rule::LockedReference {
                let remote = [Rule::RemoteReference, Rule::RemoteChart].into_iter();
                let waiting = remote.flat_map(|rule| comments.allowing(rule, finding.span));
                locked.extend(waiting.map(|(index, _)| (path.as_str(), index)));
            }
            for (index, said) in comments.allowing(finding.rule, finding.span) {
                used.entry(path.as_str()).or_default().insert((index, finding.rule));
                comment.get_or_insert_with(|| Allowed {
                    path: finding.path.clone(),
                    span: comments.comments[index].span,
                    reason: said.reason.clone(),
                    is_new: own.is_some(),
                });
            }
        }
        let entry = |of: &Config| of.allowed_by(finding.rule, &finding.subject, &finding.path);
        let by_own = entry(said);
        used_entries.extend(by_own);
        let base = own.and_then(|_| entry(config)).map(|index| by_entry(config, index, false));
        let by_own = by_own.map(|index| by_entry(said, index, own.is_some()));
        finding.allowed = base.or(comment).or(by_own);
    }
    for (path, comments) in &files {
        let used = used.remove(path.as_str()).unwrap_or_default();
        for (index, comment) in comments.comments.iter().enumerate() {
            let is_locked = locked.contains(&(path.as_str(), index));
            findings.extend(stale_comment(path, comment, complete, is_locked, |rule| {
                rule == Rule::YoungSource || used.contains(&(index, rule))
            }));
        }
    }
    let (mut stale, mut below) = (Vec::new(), None);
    // One that comes in a change of its own covers what comes later.
    let known: HashSet<_> = config.allow.iter().map(Allow::meaning).collect();
    for (index, entry) in said.allow.iter().enumerate() {
        if complete && !used_entries.contains(&index) && known.contains(&entry.meaning()) {
            let below = below.get_or_insert_with(|| count_below(&said.allow, findings));
            stale.push(unused(said, entry, below[index]));
        } else {
            stale.extend(unreasoned(said, entry));
        }
    }
    findings.append(&mut stale);
}

/// Returns for each entry that names one reference how many would be covered by it with `refs: any`.
fn count_below(allow: &Exceptions, findings: &[Finding]) -> Vec<usize> {
    let (wide, mut below) = (allow.widened(), vec![BTreeSet::new(); allow.len()]);
    for finding in findings {
        for index in wide.covering(finding.rule, &finding.subject, "") {
            below[index].insert((&finding.path, finding.span, &finding.reference));
        }
    }
    below.iter().map(BTreeSet::len).collect()
}

/// Returns what is stale about an entry that covers nothing, and would cover so many references with `refs: any`.
fn unused(config: &Config, entry: &Allow, below: usize) -> Finding {
    let text = shown(&redact::url(&entry.text));
    let (message, help) = match below {
        0 if entry.is_exact() => {
            (format!("unused exception: `{text}` matches no finding exactly"), "remove or correct the entry")
        }
        0 => (
            format!("unused exception: `{text}` matches no finding"),
            "remove or correct the entry, its `refs` or `rules`",
        ),
        count => {
            let (are, them) = if count == 1 { ("reference is", "it") } else { ("references are", "them") };
            (
                format!(
                    "unused exception: `{text}` matches no finding exactly; {count} {are} below it: `refs: any` covers {them}"
                ),
                "write the whole reference as the kustomization has it, or add `refs`",
            )
        }
    };
    stale(&config.file, entry.span, &entry.text, message, help.to_owned())
}

fn by_entry(config: &Config, index: usize, is_new: bool) -> Allowed {
    let entry = &config.allow[index];
    Allowed { path: config.file.clone(), span: entry.span, reason: redact::text(&entry.reason), is_new }
}

#[cfg(test)]
mod tests;
