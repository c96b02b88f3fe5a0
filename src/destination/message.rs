//! The message of a localized commit: the changes since the tip.

use std::collections::{BTreeMap, BTreeSet};

use crate::fetch::{Ancestry, Histories, Move, RefCommit};
use crate::message::failure::{short, shown};
use crate::record::{ChangeKind, Digest, Lock, LockChange};
use crate::reference::Upstream;

/// The number of discarded edits that a message names before it only counts the rest.
const MOST_LINES: usize = 50;
/// The number of characters of an upstream commit's subject that are shown.
const MOST_CHARACTERS: usize = 72;

/// The message of a commit that replaces the lock `before` by `after` and discards some edits. `histories` gives the
/// upstream commits of each move, if they are known.
pub(super) fn text(
    subject: &str,
    before: &Lock,
    after: &Lock,
    discarded: &[String],
    histories: &Histories<'_>,
) -> String {
    let moves = moves(before, after);
    // A repository with another ref is listed as moved, not as removed and added.
    let moved_upstreams: BTreeSet<&Upstream> =
        moves.iter().flat_map(|moved| [moved.old.upstream, moved.new.upstream]).collect();
    let histories = histories(&moves);
    let mut moved: Vec<String> =
        moves.iter().zip(histories).map(|(moved, history)| move_line(moved, history.as_ref())).collect();
    // The remaining changes: files and charts with another digest, and entries that are no part of a move.
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    for change in Lock::changes(before, after) {
        let LockChange { kind, upstream, old, new, .. } = change;
        match (kind, old, new) {
            (ChangeKind::Moved, Some(old), Some(new)) if !matches!(new, Digest::GitCommit(_)) => {
                moved.push(format!("{upstream} from {} to {}", short(old.hex()), short(new.hex())));
            }
            (_, None, Some(new)) if !moved_upstreams.contains(&upstream) => {
                added.push(format!("{upstream} at {}", short(new.hex())));
            }
            (_, Some(_), None) if !moved_upstreams.contains(&upstream) => removed.push(upstream.to_string()),
            _ => {}
        }
    }
    // The edits are quoted, because anybody may have named these files.
    let mut edits: Vec<String> = discarded.iter().take(MOST_LINES).map(|path| shown(path)).collect();
    if let more @ 1.. = discarded.len().saturating_sub(MOST_LINES) {
        edits.push(format!("and {more} more"));
    }
    // In this order, because reviewers read the moves first.
    let mut text = format!("{subject}\n");
    for (title, lines) in [
        ("Moved", moved),
        ("Brought in", added),
        ("No longer referenced", removed),
        ("Edits by hand that are discarded", edits),
    ] {
        if !lines.is_empty() {
            text += &format!("\n{title}:\n\n{}", lines.iter().map(|line| format!("- {line}\n")).collect::<String>());
        }
    }
    text
}

/// The repositories whose commit changed: under the same ref, or because one ref of a repository was replaced by
/// another.
pub(crate) fn moves<'a>(before: &'a Lock, after: &'a Lock) -> Vec<Move<'a>> {
    // With several candidates it is open which ref replaced which, so none is a move.
    let (old, new) = (repositories(before), repositories(after));
    let moves = old.iter().filter_map(|(upstream, commit)| {
        let before = RefCommit { upstream, commit };
        let replacement = match new.get(*upstream) {
            Some(commit) => RefCommit { upstream, commit },
            None => unmatched(&old, &new, upstream).and(unmatched(&new, &old, upstream))?,
        };
        (before != replacement).then_some(Move { old: before, new: replacement })
    });
    moves.collect()
}

/// The commits of a lock by repository and ref.
type Repositories<'a> = BTreeMap<&'a Upstream, &'a str>;

/// The only entry of `side` for the repository of `upstream` that the other side lacks. `None` if there are several.
fn unmatched<'a>(side: &Repositories<'a>, other: &Repositories<'a>, upstream: &Upstream) -> Option<RefCommit<'a>> {
    let mut entries =
        side.iter().filter(|(entry, _)| is_same_repository(entry, upstream) && !other.contains_key(**entry));
    let (entry, commit) = entries.next()?;
    entries.next().is_none().then_some(RefCommit { upstream: entry, commit })
}

/// Whether two upstreams are the same repository, at any ref.
fn is_same_repository(upstream: &Upstream, other: &Upstream) -> bool {
    match (upstream, other) {
        (Upstream::Git { url, submodules, .. }, Upstream::Git { url: other, submodules: has, .. }) => {
            url == other && submodules == has
        }
        _ => false,
    }
}

/// The commit of each repository in a lock, by repository and ref.
fn repositories(lock: &Lock) -> Repositories<'_> {
    let remotes = lock.remotes.iter().filter(|(source, _)| matches!(source, Upstream::Git { .. }));
    remotes.map(|(source, pinned)| (source, pinned.digest.hex())).collect()
}

/// The lines of a message about a repository that moved: from which commit to which, how many commits are between them,
/// and the newest of these, if the `history` is known.
fn move_line(Move { old, new }: &Move<'_>, history: Option<&Ancestry>) -> String {
    let mut text = if old.upstream == new.upstream {
        format!("{} from {} to {}", new.upstream, short(old.commit), short(new.commit))
    } else {
        format!("{} from {} to {}", new.upstream.url(), ref_and_commit(*old), ref_and_commit(*new))
    };
    if let Some(history) = history.filter(|_| old.commit != new.commit) {
        text += &match history.commits {
            _ if !history.is_forward => ": not a descendant".to_owned(),
            1 => ": 1 commit".to_owned(),
            count => format!(": {count} commits"),
        };
        text.extend(subjects(history).iter().map(|line| format!("\n  {line}")));
    }
    text
}

/// A ref with its commit, for a repository that moved to another ref.
fn ref_and_commit(RefCommit { upstream, commit }: RefCommit<'_>) -> String {
    match upstream.reference() {
        Some(reference) => format!("{} ({})", shown(reference), short(commit)),
        None => format!("HEAD ({})", short(commit)),
    }
}

/// The newest commits of a history, one per line, and the number of the others.
pub(crate) fn subjects(history: &Ancestry) -> Vec<String> {
    let newest = history.newest.iter();
    let mut lines: Vec<String> = newest.map(|(id, subject)| format!("{} {}", short(id), defused(subject))).collect();
    if history.commits > lines.len() && !lines.is_empty() {
        lines.push(format!("and {} more", history.commits - lines.len()));
    }
    lines
}

/// The subject of an upstream commit as text without effect in a commit message of this repository. Its author could
/// otherwise close issues, mention people, skip pipelines, or forge a record.
fn defused(subject: &str) -> String {
    // `#1` is an issue, and `@name` a person. Pipelines are skipped by `[skip ci]`, which each service spells in
    // several ways, `***NO_CI***`, and a trailer `skip-checks: true`.
    let mut text = subject.replace(['#', '@'], "").replace("***", "").replace('[', "(").replace(']', ")");
    let lower = text.to_ascii_lowercase();
    if lower.contains("kustomize-localize-") {
        return "(subject omitted: it looks like a record)".to_owned();
    }
    if lower.contains("skip-checks") {
        text = text.replace(':', "");
    }
    // A URL of an issue is a link to it, too.
    let text = shown(&text.replace("://", ":/ /"));
    match text.char_indices().nth(MOST_CHARACTERS) {
        Some((end, _)) => format!("{}…", text[..end].trim_end()),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ambiguous_replacement_is_an_addition_and_a_removal() {
        let lock = |refs: &[(&str, char)]| {
            let entry = |(name, digit): &(&str, char)| {
                let commit = digit.to_string().repeat(40);
                format!("- {{url: \"https://h/a\", ref: {name}, commit: {commit}}}\n")
            };
            let entries: String = refs.iter().map(entry).collect();
            Lock::parse(format!("version: 1\nremotes:\n{entries}").as_bytes(), "x").unwrap()
        };
        let (before, after) = (lock(&[("v1", 'a')]), lock(&[("v2", 'd'), ("v3", 'e')]));
        let text = text("Localize main", &before, &after, &[], &|moves: &[Move<'_>]| vec![None; moves.len()]);
        assert!(!text.contains("Moved"), "{text}");
        for part in ["?ref=v2 at dddd", "?ref=v3 at eeee", "No longer referenced:\n\n- "] {
            assert!(text.contains(part), "no {part:?} in\n{text}");
        }
    }

    #[test]
    fn upstream_subjects_have_no_effect() {
        for (subject, expected) in [
            ("Fix the port (#1234)", "Fix the port (1234)"),
            ("Fixes acme/app#12", "Fixes acme/app12"),
            ("Thanks @ann, a@b", "Thanks ann, ab"),
            ("C# and mail @ home", "C and mail  home"),
            ("Fixes https://example.com/a/issues/1", "Fixes https:/ /example.com/a/issues/1"),
            ("chore: v1.2.3 [skip ci]", "chore: v1.2.3 (skip ci)"),
            ("[Skip Actions][ci-skip] x", "(Skip Actions)(ci-skip) x"),
            ("[#skip @ci] x", "(skip ci) x"),
            ("Bump ***NO_CI***", "Bump NO_CI"),
            ("Bump **#*NO_CI***", "Bump NO_CI"),
            ("x Kustomize-#Localize-Tree: gitTree:0", "(subject omitted: it looks like a record)"),
            ("Skip-@Checks:true", "Skip-Checkstrue"),
            ("chore: v1 skip-checks: true", "chore v1 skip-checks true"),
            ("x Kustomize-Localize-Tree: gitTree:0", "(subject omitted: it looks like a record)"),
            ("", ""),
        ] {
            assert_eq!(defused(subject), expected);
        }
        assert!(!defused("a\u{1b}[31mred\rb").contains('\u{1b}'));
        assert_eq!(defused(&"é".repeat(200)), format!("{}…", "é".repeat(72)));
    }
}
