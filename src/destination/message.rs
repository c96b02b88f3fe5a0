//! The message of a localized commit: what has changed since the tip.

use std::collections::BTreeSet;

use crate::fetch::{Histories, History};
use crate::message::failure::{short, shown};
use crate::record::{Change, ChangeKind, Digest, GitRemote, Lock, Remote};

/// How many discarded edits a message names before it only counts the rest.
const MOST_LINES: usize = 50;
/// How many characters of an upstream commit's subject are shown.
const MOST_CHARACTERS: usize = 72;

/// Writes the message of a commit that takes one lock to another and discards some edits. `histories` says what lies
/// between the commits of each move, where it can.
pub(super) fn text(
    subject: &str,
    before: &Lock,
    after: &Lock,
    discarded: &[String],
    histories: &Histories<'_>,
) -> String {
    let pairs = pairs(before, after);
    // One that got another ref is listed as a move only.
    let told: BTreeSet<String> = pairs.iter().flat_map(|(old, new)| [label(old), label(new)]).collect();
    let histories = histories(&pairs);
    let mut moved: Vec<String> =
        pairs.iter().zip(histories).map(|((old, new), history)| told_move(old, new, history.as_ref())).collect();
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    for change in Lock::changes(before, after) {
        let Change { kind, label, old, new, .. } = change;
        match (kind, old, new) {
            (ChangeKind::Moved, Some(old), Some(new)) if !matches!(new, Digest::GitCommit(_)) => {
                moved.push(format!("{label} from {} to {}", short(old.hex()), short(new.hex())));
            }
            (_, None, Some(new)) if !told.contains(&label) => added.push(format!("{label} at {}", short(new.hex()))),
            (_, Some(_), None) if !told.contains(&label) => removed.push(label),
            _ => {}
        }
    }
    let mut edits: Vec<String> = discarded.iter().take(MOST_LINES).map(|one| shown(one)).collect();
    if let more @ 1.. = discarded.len().saturating_sub(MOST_LINES) {
        edits.push(format!("and {more} more"));
    }
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

/// Returns the repositories that are at another commit than they were: under the same ref, or else where one ref of a
/// repository was replaced by another one.
pub(crate) fn pairs<'a>(before: &'a Lock, after: &'a Lock) -> Vec<(&'a GitRemote, &'a GitRemote)> {
    let (old, new) = (repositories(before), repositories(after));
    let is_of = |one: &GitRemote, other: &GitRemote| one.url == other.url && one.submodules == other.submodules;
    let is_same = |one: &GitRemote, other: &GitRemote| one.reference == other.reference && is_of(one, other);
    // What is of the same repository in one lock only, if nothing else is.
    let sole = |these: &[&'a GitRemote], those: &[&'a GitRemote], of: &GitRemote| {
        let mut only =
            these.iter().filter(|one| is_of(one, of) && !those.iter().any(|other| is_same(one, other))).copied();
        only.next().filter(|_| only.next().is_none())
    };
    old.iter()
        .filter_map(|one| {
            let new = match new.iter().copied().find(|new| is_same(one, new)) {
                Some(new) => new,
                None => sole(&old, &new, one).and(sole(&new, &old, one))?,
            };
            (one.commit != new.commit || one.reference != new.reference).then_some((*one, new))
        })
        .collect()
}

fn repositories(lock: &Lock) -> Vec<&GitRemote> {
    let remotes = lock.remotes.iter();
    let git = remotes.filter_map(|remote| if let Remote::Git(git) = remote { Some(git) } else { None });
    git.collect()
}

fn label(remote: &GitRemote) -> String {
    Remote::Git(remote.clone()).label()
}

fn told_move(old: &GitRemote, new: &GitRemote, history: Option<&History>) -> String {
    let at = |remote: &GitRemote| short(&remote.commit).to_owned();
    let named = |remote: &GitRemote| match &remote.reference {
        Some(reference) => format!("{} ({})", shown(reference), at(remote)),
        None => format!("HEAD ({})", at(remote)),
    };
    let mut text = if old.reference == new.reference {
        format!("{} from {} to {}", label(new), at(old), at(new))
    } else {
        format!("{} from {} to {}", new.url, named(old), named(new))
    };
    if let Some(history) = history.filter(|_| old.commit != new.commit) {
        text += &match history.commits {
            _ if !history.is_forward => ": not a continuation of it".to_owned(),
            1 => ": 1 commit".to_owned(),
            count => format!(": {count} commits"),
        };
        text.extend(subjects(history).iter().map(|line| format!("\n  {line}")));
    }
    text
}

/// Returns the newest commits of a history, a line each, and how many more there are.
pub(crate) fn subjects(history: &History) -> Vec<String> {
    let newest = history.newest.iter();
    let mut lines: Vec<String> = newest.map(|(id, subject)| format!("{} {}", short(id), tamed(subject))).collect();
    if history.commits > lines.len() && !lines.is_empty() {
        lines.push(format!("and {} more", history.commits - lines.len()));
    }
    lines
}

/// Returns the subject of an upstream commit as text that has no effect here: it links no issue, mentions nobody, and
/// is not a record.
fn tamed(subject: &str) -> String {
    if subject.to_ascii_lowercase().contains("kustomize-localize-") {
        return "(a subject that could be taken for a record)".to_owned();
    }
    let text = shown(&subject.replace(['#', '@'], "").replace("://", ":/ /"));
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
        let text =
            text("Localize main", &before, &after, &[], &|moves: &[(&GitRemote, &GitRemote)]| vec![None; moves.len()]);
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
            ("x Kustomize-Localize-Tree: gitTree:0", "(a subject that could be taken for a record)"),
            ("", ""),
        ] {
            assert_eq!(tamed(subject), expected);
        }
        assert!(!tamed("a\u{1b}[31mred\rb").contains('\u{1b}'));
        assert_eq!(tamed(&"é".repeat(200)), format!("{}…", "é".repeat(72)));
    }
}
