//! Validates a lock, when it is read and before it is written.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::StoredFile;
use super::text::{LeftKeys, LockKeys, RemoteKeys};
use crate::message::failure::{SHORT, shown};
use crate::record::{is_object_id, is_sha256, valid};
use crate::reference::Upstream;
use crate::tree::path;

/// A problem of a lock, with the list that has the invalid entry and its index in it. The index is 0 for a key that is
/// not a list.
pub(super) struct LockProblem {
    pub(super) list: &'static str,
    pub(super) index: usize,
    pub(super) message: String,
}

type Checked = Result<(), String>;

/// Validates every value, and that no two entries contradict each other: none is listed twice (but see [`may_repeat`]),
/// no upstream is both locked and left remote, and no file is the directory of another.
pub(super) fn validate(lock: &LockKeys) -> Result<(), LockProblem> {
    if let Some(target) = &lock.target {
        // The message does not show a remote target, because it may have a secret.
        let checked = valid::target(target).map_err(|reason| format!("the target {reason}"));
        checked.map_err(problem("target", 0))?;
    }
    if let Some(scope) = &lock.scope {
        check_text("scope", scope, valid::path_or_top).map_err(problem("scope", 0))?;
    }
    let mut locked = BTreeSet::new();
    let mut sources: HashMap<Upstream, &RemoteKeys> = HashMap::new();
    // Many entries reference the same upstream, so each text is checked once.
    let mut checked_names = HashSet::new();
    for (index, entry) in lock.remotes.iter().enumerate() {
        let source = entry.source();
        check_remote(entry, &mut checked_names)
            .and_then(|()| refuse_repeated(may_repeat(sources.insert(source.clone(), entry), entry), "remote", &source))
            .map_err(problem("remotes", index))?;
        locked.extend(entry.paths.keys().map(|path| source.at(path::of_shown(path))));
        // A file or a chart has no paths: its entry is the whole upstream.
        locked.extend((!matches!(source, Upstream::Git { .. })).then_some(source));
    }
    // An upstream that stays remote must not be locked, too: nobody could tell which of the two a build gets.
    let mut stays_remote = BTreeSet::new();
    for (index, entry) in lock.left.iter().enumerate() {
        let upstream = entry.upstream();
        check_left(entry)
            .and_then(|()| refuse_repeated(stays_remote.insert(upstream.clone()), "entry", &upstream))
            .map_err(problem("left", index))?;
        if locked.contains(&upstream) {
            let message = format!("`{}` is in both `remotes` and `left`", shown(&upstream.to_string()));
            return Err(problem("left", index)(message));
        }
    }
    let mut paths = BTreeSet::new();
    for (index, entry) in lock.files.iter().enumerate() {
        let is_new = paths.insert(entry.path.as_str());
        check_file(entry)
            .and_then(|()| refuse_repeated(is_new, "file", &entry.path))
            .map_err(problem("files", index))?;
    }
    // Every entry is a file, so no path may be the directory of another.
    for (index, StoredFile { path, .. }) in lock.files.iter().enumerate() {
        if let Some(above) = path::and_above(path::parent(path)).find(|above| paths.contains(above)) {
            let message = format!("`{}` is both a file and the directory of `{}`", shown(above), shown(path));
            return Err(problem("files", index)(message));
        }
    }
    Ok(())
}

/// Makes a problem of a message about the entry `index` of `list`.
fn problem(list: &'static str, index: usize) -> impl FnOnce(String) -> LockProblem {
    move |message| LockProblem { list, index, message }
}

/// Validates an entry of `remotes`: it has the keys of one kind, and each value is valid. A lock comes with a pull
/// request, so its values may be hostile. `checked` are the names that other entries have, which are not validated
/// again.
fn check_remote<'a>(keys: &'a RemoteKeys, checked: &mut HashSet<&'a str>) -> Checked {
    check_digest_keys(keys)?;
    check_upstream(&keys.source())?;
    keys.resolved.iter().try_for_each(|version| check_text("version", version, valid::chart_version))?;
    keys.signed.iter().try_for_each(|signed| check_text("signer", signed, valid::text_without_controls))?;
    keys.paths_of.iter().try_for_each(|of| check_paths_of(of))?;
    keys.paths.keys().try_for_each(|path| check_text("path", path, valid::path_or_top))?;
    let names = keys.paths.values().flat_map(|path| &path.names).chain(&keys.names);
    // Many entries name the same upstream, and parsing a URL takes time.
    names.filter(|name| checked.insert(name)).try_for_each(|name| check_upstream(&Upstream::named(name)))
}

/// Validates the digest of an entry of `remotes`: a repository has a commit, a file or a chart has a SHA-256 and a
/// size. The keys of another kind would be ignored, so they are refused.
fn check_digest_keys(keys: &RemoteKeys) -> Checked {
    let has_ref_keys = keys.reference.is_some() || keys.submodules.is_some() || keys.signed.is_some();
    let has_git_keys = has_ref_keys || !keys.paths.is_empty() || keys.paths_of.is_some();
    let has_chart_keys = keys.chart.is_some() || keys.version.is_some() || keys.resolved.is_some();
    // Only a chart may have them, and it has a name.
    let is_file_or_chart = keys.chart.is_some() || !has_chart_keys;
    match (&keys.commit, &keys.sha256, keys.size) {
        (Some(commit), None, None) if !has_chart_keys && keys.names.is_empty() => check_commit(commit),
        (None, Some(sha256), Some(_)) if !has_git_keys && is_file_or_chart => check_digest(sha256),
        _ => Err("a remote must have a commit, or a sha256 and a size (of a file or a chart)".to_owned()),
    }
}

/// Validates the id of a commit.
fn check_commit(commit: &str) -> Checked {
    if !is_object_id(commit) {
        return Err(format!("the commit `{}` must have 40 or 64 lower-case hex digits", shown(commit)));
    }
    Ok(())
}

/// Whether two entries may have the same source: an edit of ref and commit has made them equal. Also true without
/// `other`.
fn may_repeat(other: Option<&RemoteKeys>, entry: &RemoteKeys) -> bool {
    // A bot that raises ref and commit leaves `paths-of` as it was.
    other.is_none_or(|other| other.commit == entry.commit && (other.is_stale() || entry.is_stale()))
}

/// Validates `paths-of`, the beginning of a commit id.
fn check_paths_of(text: &str) -> Checked {
    if text.len() == SHORT && text.chars().all(|digit| digit.is_ascii_digit() || ('a'..='f').contains(&digit)) {
        return Ok(());
    }
    Err(format!("`paths-of` `{}` must have {SHORT} lower-case hex digits", shown(text)))
}

/// Whether a lock can list an upstream as a name or in `left`.
pub(crate) fn can_be_named(name: &Upstream) -> bool {
    // An upstream may reference anything.
    check_upstream(name).is_ok()
}

/// Validates the parts of an upstream that a lock names, except for the directory in its repository, which is only
/// compared.
fn check_upstream(upstream: &Upstream) -> Checked {
    match upstream {
        Upstream::Git { url, reference, .. } => {
            reference.iter().try_for_each(|text| check_text("ref", text, valid::reference))?;
            check_url(url)
        }
        Upstream::File { url } => check_url(url),
        Upstream::Chart { url, chart, version } => {
            check_url(url)?;
            check_text("chart", chart, valid::chart)?;
            version.iter().try_for_each(|version| check_text("version", version, valid::chart_version))
        }
        Upstream::Image { image } => check_text("image", image, valid::text_without_controls),
    }
}

/// Validates an entry of `left`: it has the keys of one kind of upstream, and each value is valid.
fn check_left(left: &LeftKeys) -> Checked {
    match (&left.url, &left.chart, &left.version, &left.image) {
        (Some(_), None, None, None) | (Some(_), Some(_), _, None) | (None, None, None, Some(_)) => {}
        _ => return Err("an entry of `left` must have a url, a url and a chart, or an image".to_owned()),
    }
    let entry = left.upstream();
    // The text of an entry must be as the program writes it, with a key for each part.
    if left.chart.is_none() && left.image.is_none() && !matches!(entry, Upstream::Git { .. } | Upstream::File { .. }) {
        return Err("an entry of `left` has a chart or an image in its url".to_owned());
    }
    check_upstream(&entry)?;
    check_text("reason", &left.reason, valid::text_without_controls)
}

/// Validates an entry of `files`. The program writes and deletes files by these paths, so none may leave its directory.
fn check_file(file: &StoredFile) -> Checked {
    check_text("path", &file.path, valid::path)?;
    check_digest(&file.sha256)?;
    file.remote.iter().try_for_each(|remote| check_url(&remote.to_string()))?;
    file.source.iter().try_for_each(|source| check_text("source", source, valid::path))?;
    // Neither text of a rewritten reference is followed: the localized one is looked up, and the one upstream is put
    // back in its place, only to restore the upstream file.
    if file.rewritten.iter().any(|(localized, upstream)| localized.is_empty() || upstream.is_empty()) {
        return Err(format!("a rewritten reference of `{}` is empty", shown(&file.path)));
    }
    Ok(())
}

/// Validates a SHA-256.
fn check_digest(sha256: &str) -> Checked {
    if !is_sha256(sha256) {
        let sha256 = shown(sha256);
        return Err(format!("the sha256 `{sha256}` must have 64 lower-case hex digits"));
    }
    Ok(())
}

/// Validates a URL, which the message does not show.
fn check_url(url: &str) -> Checked {
    // It may have a secret.
    valid::url(url).map_err(|reason| format!("the url {reason}"))
}

/// Checks the text of the key `name` by a rule of [`valid`].
fn check_text(name: &str, text: &str, rule: impl Fn(&str) -> Result<(), &'static str>) -> Checked {
    rule(text).map_err(|reason| format!("the {name} `{}` {reason}", shown(text)))
}

/// Refuses an entry that appears twice in its list. `is_new` tells that it was not there before.
fn refuse_repeated(is_new: bool, kind: &str, name: &dyn std::fmt::Display) -> Checked {
    if !is_new {
        return Err(format!("the {kind} `{}` appears twice", shown(&name.to_string())));
    }
    Ok(())
}
