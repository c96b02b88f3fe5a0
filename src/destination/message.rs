//! The message of a localized commit: what has changed since the tip.

use std::collections::{BTreeMap, BTreeSet};

use crate::fetch::{Histories, History, Move};
use crate::message::failure::{short, shown};
use crate::record::{Change, ChangeKind, Digest, Lock};
use crate::reference::Upstream;

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
    let moves = moves(before, after);
    // One that got another ref is listed as a move only.
    let told: BTreeSet<&Upstream> = moves.iter().flat_map(|one| [one.old.0, one.new.0]).collect();
    let histories = histories(&moves);
    let mut moved: Vec<String> =
        moves.iter().zip(histories).map(|(one, history)| told_move(one, history.as_ref())).collect();
    let (mut added, mut removed) = (Vec::new(), Vec::new());
    for change in Lock::changes(before, after) {
        let Change { kind, upstream, old, new, .. } = change;
        match (kind, old, new) {
            (ChangeKind::Moved, Some(old), Some(new)) if !matches!(new, Digest::GitCommit(_)) => {
                moved.push(format!("{upstream} from {} to {}", short(old.hex()), short(new.hex())));
            }
            (_, None, Some(new)) if !told.contains(&upstream) => {
                added.push(format!("{upstream} at {}", short(new.hex())));
            }
            (_, Some(_), None) if !told.contains(&upstream) => removed.push(upstream.to_string()),
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
pub(crate) fn moves<'a>(before: &'a Lock, after: &'a Lock) -> Vec<Move<'a>> {
    let (old, new) = (repositories(before), repositories(after));
    let is_of = |one: &Upstream, other: &Upstream| match (one, other) {
        (Upstream::Git { url, submodules, .. }, Upstream::Git { url: other, submodules: has, .. }) => {
            url == other && submodules == has
        }
        _ => false,
    };
    // What is of the same repository in one lock only, if nothing else is.
    let sole = |these: &BTreeMap<&'a Upstream, &'a str>, those: &BTreeMap<&'a Upstream, &'a str>, of: &Upstream| {
        let mut only = these.iter().filter(|(one, _)| is_of(one, of) && !those.contains_key(**one));
        only.next().map(|(one, commit)| (*one, *commit)).filter(|_| only.next().is_none())
    };
    let moved = |(one, commit): (&&'a Upstream, &&'a str)| {
        let new = match new.get(*one) {
            Some(commit) => (*one, *commit),
            None => sole(&old, &new, one).and(sole(&new, &old, one))?,
        };
        let old = (*one, *commit);
        (old != new).then_some(Move { old, new })
    };
    old.iter().filter_map(moved).collect()
}

fn repositories(lock: &Lock) -> BTreeMap<&Upstream, &str> {
    let remotes = lock.remotes.iter().filter(|(source, _)| matches!(source, Upstream::Git { .. }));
    remotes.map(|(source, pinned)| (source, pinned.digest.hex())).collect()
}

fn told_move(Move { old, new }: &Move<'_>, history: Option<&History>) -> String {
    let named = |(source, commit): &(&Upstream, &str)| match source.reference() {
        Some(reference) => format!("{} ({})", shown(reference), short(commit)),
        None => format!("HEAD ({})", short(commit)),
    };
    let mut text = if old.0 == new.0 {
        format!("{} from {} to {}", new.0, short(old.1), short(new.1))
    } else {
        format!("{} from {} to {}", new.0.url(), named(old), named(new))
    };
    if let Some(history) = history.filter(|_| old.1 != new.1) {
        text += &match history.commits {
            _ if !history.is_forward => ": not a descendant".to_owned(),
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

/// Returns the subject of an upstream commit as text that has no effect here: it links no issue, mentions nobody, lets no
/// pipeline be skipped, and is not a record.
fn tamed(subject: &str) -> String {
    // `[skip ci]`, in the many spellings of many services, and `***NO_CI***`.
    let mut text = subject.replace(['#', '@'], "").replace("***", "").replace('[', "(").replace(']', ")");
    let lower = text.to_ascii_lowercase();
    if lower.contains("kustomize-localize-") {
        return "(subject omitted: it looks like a record)".to_owned();
    }
    if lower.contains("skip-checks") {
        text = text.replace(':', "");
    }
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
            assert_eq!(tamed(subject), expected);
        }
        assert!(!tamed("a\u{1b}[31mred\rb").contains('\u{1b}'));
        assert_eq!(tamed(&"é".repeat(200)), format!("{}…", "é".repeat(72)));
    }
}
