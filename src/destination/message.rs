//! The message of a localized commit: what has changed since the tip.

use std::collections::BTreeSet;

use crate::fetch::{Course, History, Move};
use crate::message::failure::{short, shown};
use crate::record::{Change, Digest, GitRemote, Lock, Remote};

/// How many kustomizations a message names before it only counts the rest.
const MOST_LINES: usize = 50;
/// How many characters of an upstream commit's subject are shown.
const MOST_CHARACTERS: usize = 72;

/// What a message describes.
pub(super) struct News<'a> {
    /// Its first line.
    pub(super) subject: &'a str,
    /// The lock of the tip.
    pub(super) before: &'a Lock,
    /// The lock of the commit.
    pub(super) after: &'a Lock,
    /// The kustomizations of the user that are different.
    pub(super) kustomizations: &'a [String],
    /// The paths whose edits by hand go away.
    pub(super) discarded: &'a [String],
}

/// Writes the message of a commit. `histories` says what lies between the commits of each move, where it can.
pub(super) fn text(news: &News<'_>, histories: impl FnOnce(&[Move]) -> Vec<Option<History>>) -> String {
    let changes = Lock::changes(news.before, news.after);
    let pairs = pairs(news.before, news.after);
    // One that got another ref is listed as a move only.
    let told: BTreeSet<String> = pairs.iter().flat_map(|(old, new)| [label(old), label(new)]).collect();
    let is_told = |label: &String| told.contains(label);
    let moves: Vec<Move> = pairs.iter().map(|(old, new)| between(old, new)).collect();
    let histories = histories(&moves);
    let mut moved: Vec<String> =
        pairs.iter().zip(histories).map(|((old, new), history)| told_move(old, new, history.as_ref())).collect();
    moved.extend(changes.iter().filter_map(|change| match change {
        Change::Moved { label, old, new } if !matches!(new, Digest::GitCommit(_)) => {
            Some(format!("{label} from {} to {}", short(old.hex()), short(new.hex())))
        }
        _ => None,
    }));
    let added = changes.iter().filter_map(|change| match change {
        Change::Added { label, digest } if !is_told(label) => Some(format!("{label} at {}", short(digest.hex()))),
        _ => None,
    });
    let removed = changes.iter().filter_map(|change| match change {
        Change::Removed { label, .. } if !is_told(label) => Some(label.clone()),
        _ => None,
    });
    let all = news.kustomizations;
    let mut kustomizations: Vec<String> = all.iter().take(MOST_LINES).map(|one| shown(one)).collect();
    if all.len() > MOST_LINES {
        kustomizations.push(format!("and {} more", all.len() - MOST_LINES));
    }
    let mut text = format!("{}\n", news.subject);
    for (title, lines) in [
        ("Moved", moved),
        ("Brought in", added.collect()),
        ("No longer referenced", removed.collect()),
        ("Kustomizations", kustomizations),
        ("Edits by hand that are discarded", news.discarded.iter().map(|place| shown(place)).collect()),
    ] {
        if !lines.is_empty() {
            text.push_str(&format!("\n{title}:\n\n"));
            for line in lines {
                text.push_str(&format!("- {line}\n"));
            }
        }
    }
    text
}

/// Returns the repositories that are at another commit than they were: under the same ref, or else where one ref of a
/// repository was replaced by another one.
pub(crate) fn pairs<'a>(before: &'a Lock, after: &'a Lock) -> Vec<(&'a GitRemote, &'a GitRemote)> {
    let (old, new) = (repositories(before), repositories(after));
    let is_same =
        |one: &GitRemote, other: &GitRemote| one.reference == other.reference && is_same_repository(one, other);
    let gone = only(&old, &new, is_same);
    let fresh = only(&new, &old, is_same);
    let replaced = |old: &GitRemote| {
        let one = sole(&fresh, |new| is_same_repository(old, new))?;
        sole(&gone, |other| is_same_repository(one, other)).map(|_| one)
    };
    old.iter()
        .filter_map(|old| {
            let kept = new.iter().copied().find(|new| is_same(old, new));
            let new = match kept {
                Some(new) => new,
                None => replaced(old)?,
            };
            (old.commit != new.commit || old.reference != new.reference).then_some((*old, new))
        })
        .collect()
}

fn repositories(lock: &Lock) -> Vec<&GitRemote> {
    let remotes = lock.remotes.iter();
    remotes
        .filter_map(|remote| match remote {
            Remote::Git(git) => Some(git),
            _ => None,
        })
        .collect()
}

fn is_same_repository(one: &GitRemote, other: &GitRemote) -> bool {
    one.url == other.url && one.submodules == other.submodules
}

/// Returns what is in `these` and has its like not in `those`.
fn only<'a>(
    these: &[&'a GitRemote],
    those: &[&GitRemote],
    is_same: impl Fn(&GitRemote, &GitRemote) -> bool,
) -> Vec<&'a GitRemote> {
    let has_none = |one: &&&GitRemote| !those.iter().any(|other| is_same(one, other));
    these.iter().filter(has_none).copied().collect()
}

/// Returns what fits, if nothing else does.
fn sole<'a>(among: &[&'a GitRemote], fits: impl Fn(&GitRemote) -> bool) -> Option<&'a GitRemote> {
    let mut fitting = among.iter().copied().filter(|one| fits(one));
    let found = fitting.next()?;
    fitting.next().is_none().then_some(found)
}

pub(crate) fn between(old: &GitRemote, new: &GitRemote) -> Move {
    Move {
        url: new.url.clone(),
        from: old.reference.clone(),
        to: new.reference.clone(),
        old: old.commit.clone(),
        new: new.commit.clone(),
    }
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
    let Some(history) = history.filter(|_| old.commit != new.commit) else {
        return text;
    };
    let commits = match history.commits {
        1 => "1 commit".to_owned(),
        count => format!("{count} commits"),
    };
    match (history.course, history.commits) {
        (Course::Forward, _) => text.push_str(&format!(": {commits}")),
        (Course::Back, _) => text.push_str(": back to an earlier commit"),
        (Course::Apart, 0) => text.push_str(": not a continuation of it"),
        (Course::Apart, _) => text.push_str(&format!(": not a continuation of it, {commits}")),
    }
    for line in subjects(history) {
        text.push_str(&format!("\n  {line}"));
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
    let mut characters = subject.chars().peekable();
    let mut text = String::new();
    while let Some(character) = characters.next() {
        let next = characters.peek();
        let is_link = match character {
            '#' => next.is_some_and(char::is_ascii_digit),
            '@' => next.is_some_and(char::is_ascii_alphanumeric),
            _ => false,
        };
        if !is_link {
            text.push(character);
        }
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
        let news = News {
            subject: "Localize main",
            before: &lock(&[("v1", 'a')]),
            after: &lock(&[("v2", 'd'), ("v3", 'e')]),
            kustomizations: &[],
            discarded: &[],
        };
        let text = text(&news, |moves| vec![None; moves.len()]);
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
            ("C# and mail @ home", "C# and mail @ home"),
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
