//! What makes a lock a lock: checked when one is read and when one is written.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::StoredFile;
use super::text::{LeftKeys, LockKeys, RemoteKeys};
use crate::message::failure::{SHORT, shown};
use crate::record::{is_object_id, is_sha256, valid};
use crate::reference::Upstream;
use crate::tree::path;

/// What is wrong with a lock, and in which entry of which list; or in a value, where the index is 0.
pub(super) struct Problem {
    pub(super) list: &'static str,
    pub(super) index: usize,
    pub(super) message: String,
}

type Checked = Result<(), String>;

/// Checks the values, and that nothing is there twice.
pub(super) fn validate(lock: &LockKeys) -> Result<(), Problem> {
    let at = |list, index| move |message| Problem { list, index, message };
    if let Some(target) = &lock.target {
        // A remote target may hold a secret.
        let checked = valid::target(target).map_err(|reason| format!("the target {reason}"));
        checked.map_err(at("target", 0))?;
    }
    if let Some(scope) = &lock.scope {
        of("scope", scope, valid::path_or_top).map_err(at("scope", 0))?;
    }
    let mut held = BTreeSet::new();
    let mut seen: HashMap<Upstream, &RemoteKeys> = HashMap::new();
    // Many entries name the same.
    let mut named = HashSet::new();
    for (index, entry) in lock.remotes.iter().enumerate() {
        let source = entry.source();
        remote(entry, &mut named)
            .and_then(|()| once(raised_to_one(seen.insert(source.clone(), entry), entry), "remote", &source))
            .map_err(at("remotes", index))?;
        held.extend(entry.paths.keys().map(|path| source.at(path::of_shown(path))));
        held.extend((!matches!(source, Upstream::Git { .. })).then_some(source));
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in lock.left.iter().enumerate() {
        let upstream = entry.upstream();
        let both = || {
            if held.contains(&upstream) {
                return Err(format!("`{}` is in both `remotes` and `left`", shown(&upstream.to_string())));
            }
            Ok(())
        };
        let checked = left(entry).and_then(|()| once(seen.insert(upstream.clone()), "entry", &upstream));
        checked.and_then(|()| both()).map_err(at("left", index))?;
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in lock.files.iter().enumerate() {
        let is_new = seen.insert(entry.path.as_str());
        file(entry).and_then(|()| once(is_new, "file", &entry.path)).map_err(at("files", index))?;
    }
    // Everything is a file, so nothing may be the directory of something else.
    for (index, StoredFile { path, .. }) in lock.files.iter().enumerate() {
        if let Some(above) = path::and_above(path::parent(path)).find(|above| seen.contains(above)) {
            let message = format!("`{}` is both a file and the directory of `{}`", shown(above), shown(path));
            return Err(at("files", index)(message));
        }
    }
    Ok(())
}

/// Checks an entry; of what it names only what is not `named` yet.
fn remote<'a>(keys: &'a RemoteKeys, named: &mut HashSet<&'a str>) -> Checked {
    let of_git = keys.reference.is_some() || keys.submodules.is_some() || keys.signed.is_some();
    let of_git = of_git || !keys.paths.is_empty() || keys.paths_of.is_some();
    let of_chart = keys.version.is_some() || keys.resolved.is_some();
    match (&keys.commit, &keys.chart, &keys.sha256, keys.size) {
        (Some(commit), None, None, None) if !of_chart && keys.names.is_empty() => {
            if !is_object_id(commit) {
                return Err(format!("the commit `{}` must have 40 or 64 lower-case hex digits", shown(commit)));
            }
        }
        (None, None, Some(sha256), Some(_)) if !of_git && !of_chart => digest(sha256)?,
        (None, Some(_), Some(sha256), Some(_)) if !of_git => digest(sha256)?,
        _ => return Err("a remote must have a commit, or a sha256 and a size (of a file or a chart)".to_owned()),
    }
    upstream(&keys.source())?;
    keys.resolved.iter().try_for_each(|version| of("version", version, valid::chart_version))?;
    keys.signed.iter().try_for_each(|signed| of("signer", signed, valid::text_without_controls))?;
    keys.paths_of.iter().try_for_each(|of| of_commit(of))?;
    keys.paths.keys().try_for_each(|path| of("path", path, valid::path_or_top))?;
    let names = keys.paths.values().flat_map(|path| &path.names).chain(&keys.names);
    names.filter(|name| named.insert(name)).try_for_each(|name| upstream(&Upstream::named(name)))
}

/// Returns whether there is no other entry, or one of two has become the other by an edit of ref and commit.
fn raised_to_one(other: Option<&RemoteKeys>, entry: &RemoteKeys) -> bool {
    other.is_none_or(|other| other.commit == entry.commit && (other.is_stale() || entry.is_stale()))
}

fn of_commit(text: &str) -> Checked {
    let is_hex = |digit: char| digit.is_ascii_digit() || ('a'..='f').contains(&digit);
    if text.len() == SHORT && text.chars().all(is_hex) {
        return Ok(());
    }
    Err(format!("`paths-of` `{}` must have {SHORT} lower-case hex digits", shown(text)))
}

/// Returns whether a lock can say that something is named or left: an upstream may name anything.
pub(crate) fn can_be_named(what: &Upstream) -> bool {
    upstream(what).is_ok()
}

fn upstream(upstream: &Upstream) -> Checked {
    match upstream {
        Upstream::Git { url, reference, .. } => {
            reference.iter().try_for_each(|text| of("ref", text, valid::reference))?;
            address(url)
        }
        Upstream::File { url } => address(url),
        Upstream::Chart { url, chart, version } => {
            address(url)?;
            of("chart", chart, valid::chart)?;
            version.iter().try_for_each(|version| of("version", version, valid::chart_version))
        }
        Upstream::Image { image } => of("image", image, valid::text_without_controls),
    }
}

fn left(left: &LeftKeys) -> Checked {
    match (&left.url, &left.chart, &left.version, &left.image) {
        (Some(_), None, None, None) | (Some(_), Some(_), _, None) | (None, None, None, Some(_)) => {}
        _ => return Err("an entry of `left` must have a url, a url and a chart, or an image".to_owned()),
    }
    let what = left.upstream();
    // As it would be written: with its own fields.
    if left.chart.is_none() && left.image.is_none() && !matches!(what, Upstream::Git { .. } | Upstream::File { .. }) {
        return Err("an entry of `left` has a chart or an image in its url".to_owned());
    }
    upstream(&what)?;
    of("reason", &left.reason, valid::text_without_controls)
}

fn file(file: &StoredFile) -> Checked {
    of("path", &file.path, valid::path)?;
    digest(&file.sha256)?;
    file.remote.iter().try_for_each(|remote| address(&remote.to_string()))?;
    file.source.iter().try_for_each(|source| of("source", source, valid::path))?;
    // Neither side of a rewritten reference is followed: it is shown, and written back as text.
    if file.rewritten.iter().any(|(now, upstream)| now.is_empty() || upstream.is_empty()) {
        return Err(format!("a rewritten reference of `{}` is empty", shown(&file.path)));
    }
    Ok(())
}

fn digest(sha256: &str) -> Checked {
    if !is_sha256(sha256) {
        let sha256 = shown(sha256);
        return Err(format!("the sha256 `{sha256}` must have 64 lower-case hex digits"));
    }
    Ok(())
}

/// Checks a URL, which is not shown: it may hold a secret.
fn address(url: &str) -> Checked {
    valid::url(url).map_err(|reason| format!("the url {reason}"))
}

fn of(name: &str, text: &str, rule: impl Fn(&str) -> Result<(), &'static str>) -> Checked {
    rule(text).map_err(|reason| format!("the {name} `{}` {reason}", shown(text)))
}

fn once(is_new: bool, kind: &str, name: &dyn std::fmt::Display) -> Checked {
    if !is_new {
        return Err(format!("the {kind} `{}` appears twice", shown(&name.to_string())));
    }
    Ok(())
}
