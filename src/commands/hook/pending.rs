//! The commits or the index that a hook must check, and the base of the comparison.

use std::collections::HashSet;

use crate::check::gate::Base;
use crate::config::FILE_NAME;
use crate::git::{LocalRepo, Snapshot};
use crate::message::failure::{Failure, Result, shown};
use crate::message::finding::Finding;
use crate::record::{LOCK_NAME, is_object_id};
use crate::workspace::commit;

/// A snapshot that is to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PendingCheck {
    pub snapshot: Snapshot,
    /// The base of the comparison.
    pub base: Base,
    /// The refs that move to this commit; empty for the index, and if the commit alone names the check.
    pub refs: Vec<String>,
    /// Whether all of `refs` are created: nothing can have been merged into them.
    pub is_new: bool,
    /// The previous commit; `None` if there is none, or several.
    pub since: Option<String>,
}

impl PendingCheck {
    /// The check of the files that are about to be committed. Warnings are shown only for changes since HEAD.
    pub(super) fn index(repo: &LocalRepo) -> Result<PendingCheck> {
        let since = repo.commit("HEAD")?.map(|head| head.commit);
        Ok(PendingCheck { snapshot: Snapshot::Index, base: Base::None, refs: Vec::new(), is_new: false, since })
    }

    /// The filter for the findings to show: all that fail, and warnings only in files that changed since the previous
    /// commit. All warnings are shown without such a commit, and if the configuration or the lock changed.
    pub(super) fn finding_filter(
        &self,
        repo: &LocalRepo,
        snapshot: &Snapshot,
    ) -> Result<impl Fn(&Finding) -> bool + use<>> {
        // People who commit or push are not warned about files that they did not change.
        let touched = self.since.as_ref().map(|since| repo.changed_since(since, snapshot)).transpose()?;
        let touched: Option<HashSet<String>> = touched.map(|paths| paths.into_iter().collect());
        // A change of the configuration or the lock can cause findings anywhere.
        let touched = touched.filter(|paths| !paths.contains(FILE_NAME) && !paths.contains(LOCK_NAME));
        Ok(move |finding: &Finding| {
            finding.fails() || touched.as_ref().is_none_or(|paths| paths.contains(&finding.path))
        })
    }
}

/// The commits that are about to be pushed, from the lines that git gives to `pre-push`.
pub(super) fn pushed(repo: &LocalRepo, lines: &str) -> Result<Vec<PendingCheck>> {
    let updates = parse_updates(lines, "<local ref> <local object> <remote ref> <remote object>", |line| {
        // The first field is the name that the user gave, and may contain spaces.
        let mut fields = line.rsplitn(4, ' ');
        let (old, name, new) = (fields.next()?, fields.next()?, fields.next()?);
        fields.next().map(|_| RefUpdate { old, new, name })
    })?;
    pending_checks(repo, &updates, |_| Ok(Base::None))
}

/// The commits that a server is about to receive, from the lines that git gives to `pre-receive`, checked by the
/// configuration of the branch before the push, or of HEAD for a new branch.
pub(super) fn received(repo: &LocalRepo, lines: &str) -> Result<Vec<PendingCheck>> {
    let updates = parse_updates(lines, "<old object> <new object> <ref>", |line| {
        let mut fields = line.splitn(3, ' ');
        Some(RefUpdate { old: fields.next()?, new: fields.next()?, name: fields.next()? })
    })?;
    // git would read the replacement in the place of the commit, so that a check of the commit would prove nothing.
    let is_replacing = |update: &&RefUpdate| !is_absent(update.new) && update.name.starts_with("refs/replace/");
    if let Some(RefUpdate { name, .. }) = updates.iter().find(is_replacing) {
        return Err(Failure::new(format!("`{}` would replace the files of a commit here", shown(name)))
            .hint("push the changed files as a commit"));
    }
    // With a base its configuration counts: a push must not switch off its own check. By the empty tree, the first push
    // is checked with the default configuration.
    pending_checks(repo, &updates, |old| {
        for name in [old, "HEAD"].into_iter().filter(|name| !is_absent(name)) {
            if let Some(old) = repo.commit(name)? {
                return Ok(Base::Rev(old.commit));
            }
        }
        Ok(Base::EmptyTree)
    })
}

/// The commit or files for which the pre-commit framework runs the hook: the end of its range, the pushed branch, or
/// the index. For a commit, warnings in all files are shown.
pub(super) fn framework(repo: &LocalRepo) -> Result<PendingCheck> {
    let push = variable("PRE_COMMIT_REMOTE_NAME").and(variable("PRE_COMMIT_LOCAL_BRANCH"));
    match variable("PRE_COMMIT_TO_REF").or(push) {
        Some(rev) => {
            let snapshot = Snapshot::of(Some(&commit(repo, &rev)?.commit));
            Ok(PendingCheck { snapshot, since: None, ..PendingCheck::index(repo)? })
        }
        None => PendingCheck::index(repo),
    }
}

/// A variable of the pre-commit framework; `None` if it is empty or not set.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// A ref that is moved from an old object to a new one.
struct RefUpdate<'a> {
    old: &'a str,
    new: &'a str,
    name: &'a str,
}

/// Whether a line of git says with this object that the ref does not exist.
fn is_absent(id: &str) -> bool {
    id.bytes().all(|byte| byte == b'0')
}

/// Parses the lines that git passes to a hook, with `parse_line`. `form` describes such a line for the failure of any
/// other.
fn parse_updates<'a>(
    lines: &'a str,
    form: &str,
    parse_line: impl Fn(&'a str) -> Option<RefUpdate<'a>>,
) -> Result<Vec<RefUpdate<'a>>> {
    let updates = lines
        .lines()
        .filter(|line| !line.is_empty())
        .map(|line| parse_line(line).filter(|update: &RefUpdate| is_object_id(update.old) && is_object_id(update.new)));
    updates
        .collect::<Option<_>>()
        .ok_or_else(|| Failure::new("unexpected line on standard input").hint(format!("expected: {form}")))
}

/// The checks of the commits of the updates, each once for each base. Deleted refs have nothing to check.
fn pending_checks(
    repo: &LocalRepo,
    updates: &[RefUpdate<'_>],
    base: impl Fn(&str) -> Result<Base>,
) -> Result<Vec<PendingCheck>> {
    let mut all: Vec<PendingCheck> = Vec::new();
    for RefUpdate { old, new, name } in updates.iter().filter(|update| !is_absent(update.new)) {
        // A tag of a blob or a tree has no kustomizations, but a commit that cannot be read is an error.
        let Some(tip) = repo.commit(new)? else {
            match repo.kind(new)?.as_str() {
                "commit" => return Err(Failure::new(format!("commit {new} cannot be read"))),
                _ => continue,
            }
        };
        let (snapshot, refs) = (Snapshot::of(Some(&tip.commit)), vec![(*name).to_owned()]);
        let since = if is_absent(old) { None } else { repo.commit(old)?.map(|old| old.commit) };
        let pending = PendingCheck { snapshot, base: base(old)?, refs, is_new: is_absent(old), since };
        // Several refs of one commit are checked once.
        match all.iter_mut().find(|other| (&other.snapshot, &other.base) == (&pending.snapshot, &pending.base)) {
            Some(other) => {
                other.refs.extend(pending.refs);
                other.is_new &= pending.is_new;
                other.since = other.since.take().filter(|since| pending.since.as_ref() == Some(since));
            }
            None => all.push(pending),
        }
    }
    Ok(all)
}
