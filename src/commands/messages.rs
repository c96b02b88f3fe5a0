//! Messages of several commands: failures with their hints, warnings, references that stay remote, changes of a lock.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;

use console::{Alignment, Style, measure_text_width, pad_str};

use super::output::Shown;
use super::{News, UpstreamNews};
use crate::build::rendered::MissingFiles;
use crate::config::{Config, FILE_NAME};
use crate::fetch::Provenance;
pub(super) use crate::message::failure::enumerated as listed;
use crate::message::failure::{Exception, Failure, command, pathspec, short};
use crate::message::redact::visible;
use crate::record::{LockChange, stored};
use crate::reference::Upstream;
use crate::tree::path;

/// How many of a kind are named before the rest is only counted.
pub(super) const NAMED: usize = 5;

/// A number with its noun, such as `1 file` or `2 files`.
pub(super) fn counted(count: usize, what: &str) -> String {
    match count {
        1 => format!("1 {what}"),
        count => format!("{count} {what}s"),
    }
}

/// The texts whose count is above 0, for a line that names only what there is.
pub(super) fn present(counts: impl IntoIterator<Item = (usize, String)>) -> Vec<String> {
    counts.into_iter().filter(|(count, _)| *count > 0).map(|(_, text)| text).collect()
}

/// Joins lines for people: each without control characters, hidden text and secrets.
pub(super) fn lines(all: Vec<String>) -> String {
    all.iter().map(|line| visible(line) + "\n").collect()
}

/// Text escaped for HTML.
pub(super) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// How many of a kind are named: all with `verbose`.
pub(super) fn most_named(verbose: bool) -> usize {
    if verbose { usize::MAX } else { NAMED }
}

/// These names in one line, without `verbose` only the first.
pub(super) fn named(all: &[String], verbose: bool) -> String {
    listed(all, most_named(verbose))
}

/// A warning that does not belong to a rule, with its hint.
pub(super) fn warning(text: &str, hint: Option<&str>) -> String {
    let mark = Style::new().for_stderr().yellow().bold().apply_to("warning:");
    let hint = hint.map(|text| format!("  {}", hinted(text)));
    format!("{mark} {}\n{}", visible(text), hint.unwrap_or_default())
}

/// The line of a hint.
fn hinted(text: &str) -> String {
    format!("{} {}\n", Style::new().for_stderr().cyan().bold().apply_to("hint:"), visible(text))
}

/// The command that commits files which git may not track, with the files that changed with them.
pub(super) fn commit_command(paths: &[String]) -> String {
    // Files below the top are added with their directories, because new files there mostly belong together.
    let mut added: Vec<&str> =
        paths.iter().map(|path| stored::localized_dir(path).unwrap_or_else(|| directory_or_path(path))).collect();
    added.sort_unstable();
    added.dedup_by(|path, above| path::is_in(path, above));
    if added.len() > NAMED {
        // Not the whole tree: other untracked files may be meant to stay so.
        let tops: BTreeSet<&str> = added.iter().filter_map(|path| path.split('/').next()).collect();
        added = tops.into_iter().collect();
    }
    // Localized files belong to the kustomization and the lock that changed with them.
    let changed = if paths.iter().any(|path| stored::localized_dir(path).is_some()) { " -a" } else { "" };
    format!("{} && git commit{changed}", command("git add --", added.into_iter().map(pathspec)))
}

/// The directory of a file; the file itself if it is at the top.
fn directory_or_path(path: &str) -> &str {
    Some(path::parent(path)).filter(|above| !above.is_empty()).unwrap_or(path)
}

/// A text that fits on a line of at most 200 characters, after `before` characters; with `verbose` the whole text.
pub(super) fn fitting(text: &str, before: usize, verbose: bool) -> String {
    cut(text, if verbose { usize::MAX } else { 199usize.saturating_sub(before) })
}

/// The text if it has at most `most` characters; else that many from its beginning and end, with `…` between them.
pub(super) fn cut(text: &str, most: usize) -> String {
    let count = text.chars().count();
    // The end is shown, too, because similar texts mostly differ there.
    let (start, end) = (most - most / 3, most / 3);
    let part = |from, most| text.chars().skip(from).take(most).collect::<String>();
    if count <= most { text.to_owned() } else { format!("{}…{}", part(0, start), part(count - end, end)) }
}

/// The first of these lines, and the number of the others.
pub(super) fn first(mut all: impl Iterator<Item = String>, most: usize) -> Vec<String> {
    let mut out: Vec<String> = all.by_ref().take(most).collect();
    if let more @ 1.. = all.count() {
        out.push(format!("  and {more} more"));
    }
    out
}

/// The deployments that have no file. Those that are elsewhere by intent are only counted, unless `quiet`.
pub(super) fn missing(MissingFiles { lines: all, elsewhere }: &MissingFiles, quiet: bool) -> String {
    // The last lines are those about deployments elsewhere.
    let named = all.iter().take(all.len() - elsewhere).cloned();
    let note = elsewhere_note(*elsewhere, "`.unknown`").filter(|_| !quiet);
    lines(named.chain(note).collect())
}

/// Says how many deployments are elsewhere, and which document names them; `None` if there are none.
pub(super) fn elsewhere_note(count: usize, document: &str) -> Option<String> {
    let are = if count == 1 { "is" } else { "are" };
    (count > 0).then(|| format!("note: {} {are} not built from here: see {document}", counted(count, "deployment")))
}

/// All failures with their hints, as [`first_failures`] prints them.
pub(super) fn failures(failures: &[Failure]) -> String {
    let verbose = true;
    first_failures(failures, verbose)
}

/// The failures with their hints, without `verbose` only the first. Those that differ only in their locations share a
/// message, with the locations, without `verbose` only the first.
pub(super) fn first_failures(failures: &[Failure], verbose: bool) -> String {
    let mark = Style::new().for_stderr().red().bold().apply_to("error:");
    let mut out = String::new();
    let groups = by_reason(failures);
    // A terminal has some fifty lines. The first failures are usually the cause of the others.
    let (groups, more) = groups.split_at(groups.len().min(most_named(verbose)));
    for (index, group) in groups.iter().enumerate() {
        let failure = group[0];
        if let [failure] = group.as_slice() {
            out += &format!("{mark} {}\n", visible(&failure.to_string()));
        } else {
            out += &format!("{mark} {}\n", visible(&failure.message));
            let locations = group.iter().map(|failure| format!("  at {}", failure.location_text().unwrap_or_default()));
            out += &lines(first(locations, most_named(verbose)));
        }
        if !failure.chain.is_empty() {
            let chain: Vec<String> = failure.chain.iter().map(ToString::to_string).collect();
            out += &format!("  reached from {}\n", visible(&chain.join(" -> ")));
        }
        // The same hint for several in a row is printed once, below them.
        let is_repeated = groups.get(index + 1).is_some_and(|next| next[0].hints == failure.hints);
        for text in failure.hints.iter().filter(|_| !is_repeated) {
            out += &format!("  {}", hinted(text));
        }
    }
    // A list that was cut says so, or else the rest would be thought mended.
    if let more @ 1.. = more.iter().flatten().count() {
        out += &format!("{mark} {}: `-v` shows all\n", counted(more, "more error"));
    }
    let all: Vec<&Failure> = groups.concat();
    out + &remote_hint(&all, verbose)
}

/// The hints of failures, each once.
pub(super) fn hints(failures: &[&Failure], verbose: bool) -> String {
    let mut all: Vec<&String> = Vec::new();
    for hint in failures.iter().flat_map(|failure| &failure.hints) {
        if !all.contains(&hint) {
            all.push(hint);
        }
    }
    all.into_iter().map(|hint| hinted(hint)).collect::<String>() + &remote_hint(failures, verbose)
}

/// The hint that says how to leave the failed references remote, with the entries of `allow` for them; empty if no
/// failure has an entry.
fn remote_hint(failures: &[&Failure], verbose: bool) -> String {
    // An outage passes, so only `init` offers an entry for it.
    let lasting = failures.iter().filter(|failure| !failure.kind.is_outage());
    let failures: Vec<&Failure> = lasting.filter(|failure| failure.exception.is_some()).copied().collect();
    let exceptions: Vec<&Exception> = failures.iter().filter_map(|failure| failure.exception.as_deref()).collect();
    let entries = Config::entries(&exceptions);
    if entries.is_empty() {
        return String::new();
    }
    // If only this machine cannot get something, `init` does not allow it either.
    let are_gone = failures.iter().all(|failure| failure.kind.is_gone());
    let init = if are_gone { "run `git kustomize-localize init`, or " } else { "" };
    let hint = hinted(&format!("to leave it remote, {init}add to `allow` in `{FILE_NAME}`:"));
    let entries = entries.into_iter().map(|entry| format!("  {entry}"));
    hint + &lines(first(entries, most_named(verbose)))
}

/// The failures in groups that differ only in their locations, in the order of the first of each.
fn by_reason(failures: &[Failure]) -> Vec<Vec<&Failure>> {
    let mut numbers = 0..;
    grouped(failures, |failure| {
        // A failure without a location is a group of its own.
        let alone = numbers.next().filter(|_: &usize| failure.location.is_none());
        (&failure.message, &failure.hints, &failure.chain, alone)
    })
}

/// Groups what has the same key, in the order of the first of each group.
pub(super) fn grouped<'a, T, K: Eq + Hash>(
    all: impl IntoIterator<Item = &'a T>,
    mut key: impl FnMut(&'a T) -> K,
) -> Vec<Vec<&'a T>> {
    let mut groups: Vec<Vec<&T>> = Vec::new();
    let mut known = HashMap::new();
    for item in all {
        let at = *known.entry(key(item)).or_insert(groups.len());
        match groups.get_mut(at) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// The references that stay remote because of an exception; without `verbose` their number, if there are several.
pub(super) fn left(left: &BTreeMap<Upstream, String>, verbose: bool) -> Vec<String> {
    if left.len() > 1 && !verbose {
        return vec![format!("  {} stay remote (allowed): `-v` shows each", counted(left.len(), "upstream"))];
    }
    left.keys().map(|upstream| format!("  stays remote (allowed): {upstream}")).collect()
}

/// The changes of the remotes, one line each, with their commit subjects and their effects (`effects_of`); without
/// `verbose` only the first, or an update of many as a table.
pub(super) fn changes(
    changes: &[LockChange],
    news: &News,
    effects_of: impl Fn(&Upstream) -> Option<String>,
    shown: Shown,
) -> Vec<String> {
    if changes.len() > NAMED && !news.is_empty() && !shown.verbose {
        return table(changes, news, effects_of, shown.width);
    }
    // A terminal shows some fifty lines, and reviewers need the rest of the report as well.
    let (named, more) = changes.split_at(changes.len().min(most_named(shown.verbose)));
    let mut out = Vec::new();
    for change in named {
        let effects = effects_of(&change.upstream).map_or(String::new(), |effects| format!(": {effects}"));
        out.push(format!("  {}{effects}", versions(change).join(" ").trim_end()));
        let Some(UpstreamNews { provenance, commits }) = news.get(&change.upstream) else { continue };
        out.extend(provenance.iter().map(|Provenance { age, signed, .. }| match signed {
            Some(signed) => format!("    {age}, signed by {signed}"),
            None => format!("    {age}"),
        }));
        out.extend(commits.iter().map(|line| format!("    {line}")));
    }
    out.extend(unlisted(more.len()));
    out
}

/// The line that tells how many changes are not listed; `None` if all are.
fn unlisted(count: usize) -> Option<String> {
    (count > 0).then(|| format!("  and {}: `-v` shows all", counted(count, "more change")))
}

/// The columns of a changed lock entry: how it changed, its name, and its versions.
fn versions(LockChange { upstream, old, new, paths, .. }: &LockChange) -> [String; 3] {
    let (verb, entry, versions) = match (old, new) {
        // Never: a change is made only for an entry that a lock has.
        (None, None) => ("", String::new(), String::new()),
        (None, Some(new)) => ("added", upstream.to_string(), short(new.hex()).to_owned()),
        (Some(old), None) => ("dropped", upstream.to_string(), short(old.hex()).to_owned()),
        // More directories of a repository whose commit stays the same.
        (old, new) if old == new => ("added", format!("{} of {upstream}", paths.join(", ")), String::new()),
        (Some(old), Some(new)) => {
            ("moved", upstream.to_string(), format!("{} -> {}", short(old.hex()), short(new.hex())))
        }
    };
    [verb.to_owned(), entry, versions]
}

/// An update of many remotes on one screen: their versions, their effects (`effects_of`), their ages and their signers.
/// The entries are cut where the terminal is not as wide as the table.
fn table(
    changes: &[LockChange],
    news: &News,
    effects_of: impl Fn(&Upstream) -> Option<String>,
    screen: Option<usize>,
) -> Vec<String> {
    // How many rows a screen has.
    const ROWS: usize = 40;
    // The least and the greatest number of characters of an entry that are shown.
    const ENTRY: [usize; 2] = [20, 80];
    let (shown, more) = changes.split_at(changes.len().min(ROWS));
    let row = |change: &LockChange| {
        let [verb, entry, versions] = versions(change);
        let provenance = news.get(&change.upstream).and_then(|news| news.provenance.as_ref());
        let age = provenance.map_or(String::new(), |provenance| provenance.age.clone());
        let signed = provenance.and_then(|provenance| provenance.signed.as_ref());
        let signed = signed.map_or(String::new(), |signed| format!("signed by {signed}"));
        [verb, cut(&visible(&entry), ENTRY[1]), versions, effects_of(&change.upstream).unwrap_or_default(), age, signed]
    };
    let mut rows: Vec<[String; 6]> = shown.iter().map(row).collect();
    // Wide characters take two columns.
    let mut widths = [0; 6];
    for row in &rows {
        widths.iter_mut().zip(row).for_each(|(width, cell)| *width = measure_text_width(cell).max(*width));
    }
    // Only an entry is long: it gives way to what a reviewer needs beside it.
    let whole = widths.iter().filter(|width| **width > 0).map(|width| width + 2).sum::<usize>();
    let excess = screen.map_or(0, |screen| whole.saturating_sub(screen));
    let entry = widths[1].saturating_sub(excess).max(ENTRY[0]).min(widths[1]);
    // One more character shows that something is left out.
    rows.iter_mut().filter(|row| measure_text_width(&row[1]) > entry).for_each(|row| row[1] = cut(&row[1], entry - 1));
    widths[1] = entry;
    rows.iter()
        .map(|row: &[String; 6]| {
            let cells = row.iter().zip(widths).filter(|(_, width)| *width > 0);
            let line: String =
                cells.map(|(cell, width)| format!("  {}", pad_str(cell, width, Alignment::Left, None))).collect();
            line.trim_end().to_owned()
        })
        .chain(unlisted(more.len()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::failure::Location;
    use crate::record::{ChangeKind, Digest};

    #[test]
    fn a_table_is_as_wide_as_the_terminal() {
        let digest = |digit: &str| Some(Digest::Sha256(digit.repeat(64)));
        let change = |number: usize| LockChange {
            kind: ChangeKind::Moved,
            upstream: Upstream::File { url: format!("https://example.com/{}/{number}", "long/".repeat(9)) },
            old: digest("1"),
            new: digest("2"),
            paths: Vec::new(),
        };
        let moved: Vec<LockChange> = (0..=NAMED).map(change).collect();
        let news = News::from([(moved[0].upstream.clone(), UpstreamNews::default())]);
        let width = |screen| {
            let rows = changes(
                &moved,
                &news,
                |_| Some("1 object changes".to_owned()),
                Shown { width: screen, ..Shown::default() },
            );
            rows.iter().map(|row| measure_text_width(row)).max().unwrap()
        };
        assert_eq!([width(None), width(Some(100)), width(Some(40))], [124, 100, 77]);
    }

    #[test]
    fn all_locations_are_shown_only_on_demand() {
        let at = |number: usize| {
            Failure::new("it is gone").at(Location { file: format!("{number}.yaml"), ..Location::default() })
        };
        let failures: Vec<Failure> = (0..=NAMED).map(at).collect();
        let shown = |verbose| {
            let text = first_failures(&failures, verbose);
            [text.matches(".yaml").count(), text.matches("and 1 more").count()]
        };
        assert_eq!([shown(false), shown(true)], [[NAMED, 1], [NAMED + 1, 0]]);
    }
}
