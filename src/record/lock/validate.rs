//! What makes a lock a lock: checked when one is read and when one is written.

use std::collections::BTreeSet;

use super::{Left, LeftWhat, Lock, Remote, StoredFile};
use crate::message::failure::shown;
use crate::record::{is_object_id, is_sha256, valid};
use crate::tree::path;

/// What is wrong with a lock, and in which entry of which list; or in a value, where the index is 0.
pub(super) struct Problem {
    pub(super) list: &'static str,
    pub(super) index: usize,
    pub(super) message: String,
}

type Checked = Result<(), String>;

/// Checks the values, and that nothing is there twice.
pub(super) fn validate(lock: &Lock) -> Result<(), Problem> {
    let at = |list, index| move |message| Problem { list, index, message };
    if let Some(target) = &lock.target {
        // A remote target may hold a secret.
        let checked = valid::target(target).map_err(|reason| format!("the target {reason}"));
        checked.map_err(at("target", 0))?;
    }
    if let Some(scope) = &lock.scope {
        of("scope", scope, valid::path_or_top).map_err(at("scope", 0))?;
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in lock.remotes.iter().enumerate() {
        let is_new = seen.insert(entry.key());
        remote(entry).and_then(|()| once(is_new, "remote", &entry.label())).map_err(at("remotes", index))?;
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in lock.left.iter().enumerate() {
        let is_new = seen.insert(&entry.what);
        left(entry).and_then(|()| once(is_new, "entry", &entry.what.label())).map_err(at("left", index))?;
    }
    let mut seen = BTreeSet::new();
    for (index, entry) in lock.files.iter().enumerate() {
        let is_new = seen.insert(entry.path.as_str());
        file(entry).and_then(|()| once(is_new, "file", &entry.path)).map_err(at("files", index))?;
    }
    // Everything is a file, so nothing may be the directory of something else.
    for (index, StoredFile { path, .. }) in lock.files.iter().enumerate() {
        if let Some(above) = path::and_above(path::parent(path)).find(|above| seen.contains(above)) {
            let message = format!("`{}` is a file and the directory of `{}`", shown(above), shown(path));
            return Err(at("files", index)(message));
        }
    }
    Ok(())
}

fn remote(remote: &Remote) -> Checked {
    let url = match remote {
        Remote::Git(git) => {
            git.reference.iter().try_for_each(|text| of("ref", text, valid::reference))?;
            if !is_object_id(&git.commit) {
                let commit = shown(&git.commit);
                return Err(format!("the commit `{commit}` is not 40 or 64 lower-case hex digits"));
            }
            git.paths.iter().try_for_each(|path| of("path", path, valid::path_or_top))?;
            &git.url
        }
        Remote::File(file) => {
            digest(&file.sha256)?;
            &file.url
        }
        Remote::Chart(chart) => {
            of("chart", &chart.chart, valid::chart)?;
            let mut versions = chart.version.iter().chain(&chart.resolved);
            versions.try_for_each(|version| of("version", version, valid::chart_version))?;
            digest(&chart.sha256)?;
            &chart.url
        }
    };
    address(url)?;
    remote.through().iter().try_for_each(|label| address(label))
}

/// Checks what something is that stays remote.
pub(super) fn left_what(what: &LeftWhat) -> Checked {
    match what {
        LeftWhat::Reference { url } => address(url),
        LeftWhat::Chart { url, chart, version } => {
            address(url)?;
            of("chart", chart, valid::chart)?;
            version.iter().try_for_each(|version| of("version", version, valid::chart_version))
        }
        LeftWhat::Image { image } => of("image", image, valid::text_without_controls),
    }
}

fn left(left: &Left) -> Checked {
    left_what(&left.what)?;
    left.through.iter().try_for_each(|label| address(label))?;
    of("reason", &left.reason, valid::text_without_controls)
}

fn file(file: &StoredFile) -> Checked {
    of("path", &file.path, valid::path)?;
    digest(&file.sha256)?;
    file.remote.iter().try_for_each(|remote| address(remote))?;
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
        return Err(format!("the sha256 `{sha256}` is not 64 lower-case hex digits"));
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

fn once(is_new: bool, kind: &str, name: &str) -> Checked {
    if !is_new {
        return Err(format!("the {kind} `{}` is there twice", shown(name)));
    }
    Ok(())
}
