//! A lock from text.

use std::collections::BTreeSet;

use super::merge::marker;
use super::rules::{self, Place};
use super::{
    ChartRemote, FileRemote, GitRemote, Left, LeftWhat, Lock, Remote, StoredFile, VERSION,
};
use crate::failure::{Failure, Result, shown};
use crate::limits::LOCK;
use crate::tree::{LOCK_COMMAND, LOCK_NAME};
use crate::yaml::{self, Mark, Reader, at_line};

const RESTORE: &str = "the lock is generated: restore it from git instead of editing it";
const UPGRADE: &str = "a newer git-kustomize-localize may have written it: upgrade this one";

pub(super) fn lock(bytes: &[u8], file: &str) -> Result<Lock> {
    read(bytes, file).map_err(|failure| {
        if failure.hints.is_empty() {
            failure.hint(RESTORE)
        } else {
            failure
        }
    })
}

fn read(bytes: &[u8], file: &str) -> Result<Lock> {
    let (mut lock, _) = as_written(bytes, file)?;
    lock.sort();
    Ok(lock)
}

/// Returns the lines of the remotes, in the order of a sorted lock; none of a lock that cannot be read.
pub(super) fn lines(bytes: &[u8]) -> Vec<usize> {
    let Ok((lock, marks)) = as_written(bytes, "") else {
        return Vec::new();
    };
    let lines = marks.remotes.iter().map(|mark| mark.line);
    let mut remotes: Vec<(&Remote, usize)> = lock.remotes.iter().zip(lines).collect();
    remotes.sort_by(|(one, _), (other, _)| one.compare(other));
    remotes.into_iter().map(|(_, line)| line).collect()
}

/// Reads a lock in the order in which it is written.
fn as_written(bytes: &[u8], file: &str) -> Result<(Lock, Marks)> {
    let text = text(bytes, file)?;
    let mut marks = Marks::default();
    let mut lock = Lock::default();
    let mut reader = Reader::new(text, file);
    reader.document(|reader| top(reader, &mut lock, &mut marks))?;
    rules::check(&lock).map_err(|problem| marks.failure(&problem, &reader))?;
    Ok((lock, marks))
}

/// Returns the text of a file that can be a lock at all.
fn text<'a>(bytes: &'a [u8], file: &str) -> Result<&'a str> {
    let text = yaml::text(bytes, file, LOCK, RESTORE)?;
    if text.trim().is_empty() {
        return Err(Failure::new("the lock is empty").at(at_line(file, 0)));
    }
    let begins = |line: &str| marker(line).is_some_and(|(first, _)| first == '<');
    if let Some(index) = text.lines().position(begins) {
        let failure = Failure::new("holds a merge conflict").at(at_line(file, index + 1));
        return Err(failure.hint(match file {
            LOCK_NAME => LOCK_COMMAND,
            _ => "make it again: it is the lock of what was localized",
        }));
    }
    Ok(text)
}

/// Where the entries of the lock stand.
#[derive(Default)]
struct Marks {
    target: Option<Mark>,
    scope: Option<Mark>,
    remotes: Vec<Mark>,
    left: Vec<Mark>,
    files: Vec<Mark>,
}

impl Marks {
    fn failure(&self, problem: &rules::Problem, reader: &Reader<'_>) -> Failure {
        let (mark, field) = match problem.place {
            Place::Target => (self.target, "target".to_owned()),
            Place::Scope => (self.scope, "scope".to_owned()),
            Place::Left(index) => (self.left.get(index).copied(), format!("left[{index}]")),
            Place::Remote(index) => (
                self.remotes.get(index).copied(),
                format!("remotes[{index}]"),
            ),
            Place::File(index) => (self.files.get(index).copied(), format!("files[{index}]")),
        };
        reader.failure_in(mark, field, &problem.message)
    }
}

fn top(reader: &mut Reader<'_>, lock: &mut Lock, marks: &mut Marks) -> Result<()> {
    let mut has_version = false;
    let start = reader.mapping(|reader, key, mark| {
        match key {
            "version" => {
                let version = reader.number()?;
                if version != VERSION {
                    return Err(reader
                        .failure(mark, format!("version {version} of the lock is not known"))
                        .hint(UPGRADE));
                }
                has_version = true;
            }
            "target" => {
                marks.target = Some(mark);
                lock.target = Some(text_of(reader)?);
            }
            "trailers" => lock.trailers = reader.flag()?,
            "scope" => {
                marks.scope = Some(mark);
                lock.scope = Some(text_of(reader)?);
            }
            "options" => options(reader)?,
            "remotes" => reader.sequence(|reader| {
                let (mark, remote) = remote(reader)?;
                marks.remotes.push(mark);
                lock.remotes.push(remote);
                Ok(())
            })?,
            "left" => reader.sequence(|reader| {
                let (mark, left) = left(reader)?;
                marks.left.push(mark);
                lock.left.push(left);
                Ok(())
            })?,
            "files" => reader.sequence(|reader| {
                let (mark, file) = stored_file(reader)?;
                marks.files.push(mark);
                lock.files.push(file);
                Ok(())
            })?,
            _ => return Err(unknown(reader, mark)),
        }
        Ok(())
    })?;
    if has_version {
        Ok(())
    } else {
        Err(reader.failure(start, "the version is missing"))
    }
}

/// Refuses the options that locks held, and says where they are now.
fn options(reader: &mut Reader<'_>) -> Result<()> {
    reader.mapping(|reader, key, mark| {
        let now = match key {
            "scope" => "`scope` beside `target`",
            "helm" => "`helm: true` in .kustomize-localize",
            "no-licenses" => "`licenses: false` in .kustomize-localize",
            "hydrator-metadata" => "`hydrator-metadata: true` in .kustomize-localize",
            "load-restrictor" => "`load-restrictor: none` in .kustomize-localize",
            "trust-exec" => "`trust-exec: [GLOB]` in .kustomize-localize",
            "leave-missing" | "leave-remote" => "an entry of `allow` in .kustomize-localize",
            _ => return Err(unknown(reader, mark)),
        };
        Err(reader
            .failure(mark, "a lock has no options any more")
            .hint(format!("remove it here, and write {now}")))
    })?;
    Ok(())
}

/// The keys of every kind of remote; which ones are there decides the kind.
#[derive(Default)]
struct RemoteKeys {
    url: Option<String>,
    reference: Option<String>,
    submodules: Option<bool>,
    commit: Option<String>,
    paths: Option<BTreeSet<String>>,
    chart: Option<String>,
    version: Option<String>,
    resolved: Option<String>,
    sha256: Option<String>,
    size: Option<u64>,
    through: BTreeSet<String>,
}

fn remote(reader: &mut Reader<'_>) -> Result<(Mark, Remote)> {
    let mut keys = RemoteKeys::default();
    let start = reader.mapping(|reader, key, mark| {
        match key {
            "url" => keys.url = Some(text_of(reader)?),
            "ref" => keys.reference = Some(text_of(reader)?),
            "submodules" => keys.submodules = Some(reader.flag()?),
            "commit" => keys.commit = Some(text_of(reader)?),
            "paths" => texts(reader, keys.paths.get_or_insert_default())?,
            "chart" => keys.chart = Some(text_of(reader)?),
            "version" => keys.version = Some(text_of(reader)?),
            "resolved" => keys.resolved = Some(text_of(reader)?),
            "sha256" => keys.sha256 = Some(text_of(reader)?),
            "size" => keys.size = Some(reader.number()?),
            "through" => texts(reader, &mut keys.through)?,
            _ => return Err(unknown(reader, mark)),
        }
        Ok(())
    })?;
    let remote = match keys {
        RemoteKeys {
            url: Some(url),
            reference,
            submodules,
            commit: Some(commit),
            paths,
            chart: None,
            version: None,
            resolved: None,
            sha256: None,
            size: None,
            through,
        } => Remote::Git(GitRemote {
            url,
            reference,
            submodules: submodules.unwrap_or(true),
            commit,
            paths: paths.unwrap_or_default(),
            through,
        }),
        RemoteKeys {
            url: Some(url),
            reference: None,
            submodules: None,
            commit: None,
            paths: None,
            chart: None,
            version: None,
            resolved: None,
            sha256: Some(sha256),
            size: Some(size),
            through,
        } => Remote::File(FileRemote {
            url,
            sha256,
            size,
            through,
        }),
        RemoteKeys {
            url: Some(url),
            reference: None,
            submodules: None,
            commit: None,
            paths: None,
            chart: Some(chart),
            version,
            resolved,
            sha256: Some(sha256),
            size: Some(size),
            through,
        } => Remote::Chart(ChartRemote {
            url,
            chart,
            version,
            resolved,
            sha256,
            size,
            through,
        }),
        _ => {
            return Err(reader.failure(
                start,
                "a remote has a url and either a commit, or a sha256 and a size (of a file or a chart)",
            ));
        }
    };
    Ok((start, remote))
}

fn left(reader: &mut Reader<'_>) -> Result<(Mark, Left)> {
    let (mut url, mut chart, mut version, mut image) = (None, None, None, None);
    let (mut reason, mut accepted) = (None, false);
    let mut through = BTreeSet::new();
    let start = reader.mapping(|reader, key, mark| {
        match key {
            "url" => url = Some(text_of(reader)?),
            "chart" => chart = Some(text_of(reader)?),
            "version" => version = Some(text_of(reader)?),
            "image" => image = Some(text_of(reader)?),
            "through" => reader.sequence(|reader| {
                let mut chain = Vec::new();
                reader.sequence(|reader| {
                    chain.push(text_of(reader)?);
                    Ok(())
                })?;
                through.insert(chain);
                Ok(())
            })?,
            "reason" => reason = Some(text_of(reader)?),
            "accepted" => accepted = reader.flag()?,
            _ => return Err(unknown(reader, mark)),
        }
        Ok(())
    })?;
    let what = match (url, chart, version, image) {
        (Some(url), None, None, None) => LeftWhat::Reference { url },
        (Some(url), Some(chart), version, None) => LeftWhat::Chart {
            url,
            chart,
            version,
        },
        (None, None, None, Some(image)) => LeftWhat::Image { image },
        _ => {
            return Err(reader.failure(
                start,
                "what is left has a url, a url and a chart, or an image",
            ));
        }
    };
    let Some(reason) = reason else {
        return Err(reader.failure(start, "what is left has a reason"));
    };
    let left = Left {
        what,
        through,
        reason,
        accepted,
    };
    Ok((start, left))
}

fn stored_file(reader: &mut Reader<'_>) -> Result<(Mark, StoredFile)> {
    let mut path = None;
    let mut executable = None;
    let mut sha256 = None;
    let mut file = StoredFile::default();
    let start = reader.mapping(|reader, key, mark| {
        match key {
            "path" => path = Some(text_of(reader)?),
            "mode" => executable = Some(mode(reader)?),
            "stripped" => file.stripped = reader.flag()?,
            "sha256" => sha256 = Some(text_of(reader)?),
            "remote" => file.remote = Some(text_of(reader)?),
            "source" => file.source = Some(text_of(reader)?),
            "rewritten" => {
                reader.mapping(|reader, now, _| {
                    let upstream = text_of(reader)?;
                    file.rewritten.insert(now.to_owned(), upstream);
                    Ok(())
                })?;
            }
            _ => return Err(unknown(reader, mark)),
        }
        Ok(())
    })?;
    let (Some(path), Some(executable), Some(sha256)) = (path, executable, sha256) else {
        return Err(reader.failure(start, "a file has a path, a mode and a sha256"));
    };
    let file = StoredFile {
        path,
        executable,
        sha256,
        ..file
    };
    Ok((start, file))
}

/// Reads a mode; returns whether the file is executable.
fn mode(reader: &mut Reader<'_>) -> Result<bool> {
    let mode = reader.text()?;
    match &*mode.text {
        "100644" => Ok(false),
        "100755" => Ok(true),
        other => Err(reader.failure(
            mode.mark,
            format!("the mode `{}` is not 100644 or 100755", shown(other)),
        )),
    }
}

fn text_of(reader: &mut Reader<'_>) -> Result<String> {
    Ok(reader.text()?.text.into_owned())
}

fn texts(reader: &mut Reader<'_>, into: &mut BTreeSet<String>) -> Result<()> {
    reader.sequence(|reader| {
        into.insert(text_of(reader)?);
        Ok(())
    })
}

fn unknown(reader: &Reader<'_>, mark: Mark) -> Failure {
    reader.failure(mark, "this key is not known").hint(UPGRADE)
}
