//! What makes a lock a lock: checked when one is read and when one is written.

use std::collections::BTreeSet;

use super::{ChartRemote, FileRemote, GitRemote, Left, LeftWhat, Lock, Remote, StoredFile};
use crate::failure::shown;
use crate::record::valid;
use crate::record::{is_object_id, is_sha256};

/// What is wrong with a lock, and in which entry.
pub(super) struct Problem {
    pub(super) place: Place,
    pub(super) message: String,
}

/// An entry of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Target,
    Scope,
    /// The index into what is left.
    Left(usize),
    /// The index into the remotes.
    Remote(usize),
    /// The index into the files.
    File(usize),
}

/// Checks the values, and that nothing is there twice.
pub(super) fn check(lock: &Lock) -> Result<(), Problem> {
    let at = |place| move |message| Problem { place, message };
    if let Some(target) = &lock.target {
        of("target", target, valid::target).map_err(at(Place::Target))?;
    }
    scope(lock).map_err(at(Place::Scope))?;
    let mut whats = BTreeSet::new();
    for (index, entry) in lock.left.iter().enumerate() {
        left(entry)
            .and_then(|()| once(whats.insert(&entry.what), "entry", &entry.what.label()))
            .map_err(at(Place::Left(index)))?;
    }
    let mut keys = BTreeSet::new();
    for (index, entry) in lock.remotes.iter().enumerate() {
        remote(entry)
            .and_then(|()| {
                let label = entry.label();
                once(keys.insert(entry.key()), "remote", &label)
            })
            .map_err(at(Place::Remote(index)))?;
    }
    files(&lock.files)
}

fn scope(lock: &Lock) -> Result<(), String> {
    if let Some(scope) = &lock.scope {
        of("scope", scope, valid::path_or_top)?;
    }
    Ok(())
}

/// Checks what something is that stays remote.
pub(super) fn left_what(what: &LeftWhat) -> Result<(), String> {
    match what {
        LeftWhat::Reference { url } => address(url)?,
        LeftWhat::Chart {
            url,
            chart,
            version,
        } => {
            address(url)?;
            of("chart", chart, valid::chart)?;
            if let Some(version) = version {
                of("version", version, valid::chart_version)?;
            }
        }
        LeftWhat::Image { image } => of("image", image, valid::text_without_controls)?,
    }
    Ok(())
}

fn left(left: &Left) -> Result<(), String> {
    left_what(&left.what)?;
    let mut through = left.through.iter().flatten();
    through.try_for_each(|label| address(label))?;
    if left.through.contains(&Vec::new()) {
        return Err("nothing leads there".to_owned());
    }
    of("reason", &left.reason, valid::text_without_controls)
}

fn remote(remote: &Remote) -> Result<(), String> {
    match remote {
        Remote::Git(GitRemote {
            url,
            reference,
            submodules: _,
            commit,
            paths,
            through,
        }) => {
            address(url)?;
            if let Some(reference) = reference {
                of("ref", reference, valid::reference)?;
            }
            if !is_object_id(commit) {
                return Err(format!(
                    "the commit `{}` is not 40 or 64 lower-case hex digits",
                    shown(commit)
                ));
            }
            paths
                .iter()
                .try_for_each(|path| of("path", path, valid::path_or_top))?;
            through.iter().try_for_each(|label| address(label))
        }
        Remote::File(FileRemote {
            url,
            sha256,
            size: _,
            through,
        }) => {
            address(url)?;
            digest(sha256)?;
            through.iter().try_for_each(|label| address(label))
        }
        Remote::Chart(ChartRemote {
            url,
            chart,
            version,
            resolved,
            sha256,
            size: _,
            through,
        }) => {
            address(url)?;
            of("chart", chart, valid::chart)?;
            for version in version.iter().chain(resolved) {
                of("version", version, valid::chart_version)?;
            }
            digest(sha256)?;
            through.iter().try_for_each(|label| address(label))
        }
    }
}

fn files(files: &[StoredFile]) -> Result<(), Problem> {
    let at = |index| {
        move |message| Problem {
            place: Place::File(index),
            message,
        }
    };
    let mut paths = BTreeSet::new();
    for (index, entry) in files.iter().enumerate() {
        file(entry)
            .and_then(|()| once(paths.insert(entry.path.as_str()), "file", &entry.path))
            .map_err(at(index))?;
    }
    // Everything is a file, so nothing may be the directory of something else. Sorted by components, a
    // directory comes right before what is in it.
    let mut sorted: Vec<(usize, &str)> = files
        .iter()
        .enumerate()
        .map(|(index, file)| (index, file.path.as_str()))
        .collect();
    sorted.sort_by(|(_, a), (_, b)| a.split('/').cmp(b.split('/')));
    let mut before = "";
    for (index, path) in sorted {
        let is_below = path
            .strip_prefix(before)
            .is_some_and(|rest| rest.starts_with('/'));
        if is_below {
            return Err(at(index)(format!(
                "`{}` is a file and the directory of `{}`",
                shown(before),
                shown(path)
            )));
        }
        before = path;
    }
    Ok(())
}

fn file(file: &StoredFile) -> Result<(), String> {
    let StoredFile {
        path,
        executable: _,
        stripped: _,
        sha256,
        remote,
        source,
        rewritten,
    } = file;
    of("path", path, valid::path)?;
    digest(sha256)?;
    if let Some(remote) = remote {
        address(remote)?;
    }
    if let Some(source) = source {
        of("source", source, valid::path)?;
    }
    // Neither side of a rewritten reference is followed: it is shown, and written back as text.
    if rewritten
        .iter()
        .any(|(now, upstream)| now.is_empty() || upstream.is_empty())
    {
        return Err(format!(
            "a rewritten reference of `{}` is empty",
            shown(path)
        ));
    }
    Ok(())
}

fn digest(sha256: &str) -> Result<(), String> {
    if is_sha256(sha256) {
        Ok(())
    } else {
        Err(format!(
            "the sha256 `{}` is not 64 lower-case hex digits",
            shown(sha256)
        ))
    }
}

/// Checks a URL, which is not shown: it may hold a secret.
fn address(url: &str) -> Result<(), String> {
    valid::url(url).map_err(|reason| format!("the url {reason}"))
}

fn of(
    name: &str,
    text: &str,
    rule: impl Fn(&str) -> Result<(), &'static str>,
) -> Result<(), String> {
    rule(text).map_err(|reason| {
        // A remote target may hold a secret.
        if name == "target" {
            format!("the target {reason}")
        } else {
            format!("the {name} `{}` {reason}", shown(text))
        }
    })
}

fn once(is_new: bool, kind: &str, name: &str) -> Result<(), String> {
    if is_new {
        Ok(())
    } else {
        Err(format!("the {kind} `{}` is there twice", shown(name)))
    }
}
