//! Fetching side by side.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::git::{Batch, Fetched, GitRemotes, GitRequest};
use super::reach::Access;
use super::{Progress, http};
use crate::graph::NamedBy;
use crate::kustomization;
use crate::message::failure::{FailureKind, Result};
use crate::message::redact::SafeUrl;
use crate::os::parallel::side_by_side;
use crate::os::process::Terminal;
use crate::reference::RepoRef;

/// How many things are fetched side by side.
pub(super) const SIDE_BY_SIDE: usize = 8;

/// Something to fetch.
pub(super) enum Job {
    Git { key: RepoRef, request: GitRequest, timeout: Option<Duration>, what: Git },
    Http { url: SafeUrl, access: Access },
}

/// What to do about a repository.
pub(super) enum Git {
    Fetch,
    /// Fetch it, unless this URL turns out to be a file meanwhile.
    Unless(SafeUrl),
}

/// The result.
pub(super) enum Done {
    Git(Result<Fetched>),
    Http(Result<Vec<u8>, http::HttpError>),
}

/// Runs the jobs on a few threads; `None` for one that was given up.
pub(super) fn work(jobs: &[Job], git: &GitRemotes, client: &http::Client, progress: &Progress) -> Vec<Option<Done>> {
    let given_up: Vec<AtomicBool> = jobs.iter().map(|_| AtomicBool::new(false)).collect();
    progress.expect(jobs.len());
    let one = |index: usize| {
        let job = &jobs[index];
        let what = job.label();
        progress.begin(&what);
        let done = match job {
            Job::Git { request, timeout, .. } => {
                Done::Git(git.fetch(request, *timeout, Some(&given_up[index]), Terminal::Detached))
            }
            Job::Http { url, access } => Done::Http(client.get(url.exposed(), *access).map(|body| body.bytes)),
        };
        if let (Job::Http { url, .. }, Done::Http(Ok(bytes))) = (job, &done)
            && kustomization::looks_like_resources(bytes).is_ok()
        {
            for (other, flag) in jobs.iter().zip(&given_up) {
                if matches!(other, Job::Git { what: Git::Unless(unless), .. } if unless == url) {
                    flag.store(true, Ordering::Relaxed);
                }
            }
        }
        progress.end(&what);
        done
    };
    let together = |indices: &[usize]| {
        let label = jobs[indices[0]].label();
        progress.begin(&label);
        let done = several(jobs, indices, git);
        for _ in done.iter().flatten() {
            progress.end(&label);
        }
        done
    };
    let groups = groups(jobs);
    let answers = side_by_side(&groups, SIDE_BY_SIDE, |_, group| match group.as_slice() {
        [index] => vec![Some(one(*index))],
        group => together(group),
    });
    let mut done: Vec<Option<Done>> = jobs.iter().map(|_| None).collect();
    for (index, answer) in groups.concat().into_iter().zip(answers.into_iter().flatten()) {
        done[index] = answer;
    }
    let left: Vec<usize> = (0..jobs.len()).filter(|index| done[*index].is_none()).collect();
    let answers = side_by_side(&left, SIDE_BY_SIDE, |_, index| one(*index));
    for (index, answer) in left.into_iter().zip(answers) {
        done[index] = Some(answer);
    }
    done.into_iter().zip(given_up).map(|(answer, given_up)| answer.filter(|_| !given_up.into_inner())).collect()
}

impl Job {
    fn label(&self) -> String {
        match self {
            Job::Git { key, .. } => label(key),
            Job::Http { url, .. } => url.shown(),
        }
    }

    /// Returns what this has in common with other commits that can be fetched with the same request.
    fn shared(&self) -> Option<(&SafeUrl, &NamedBy, Option<Duration>)> {
        match self {
            Job::Git { request, timeout, what: Git::Fetch, .. } => Some((&request.url, &request.by, *timeout)),
            _ => None,
        }
    }
}

/// Returns the jobs, by their indices, those together that are one request.
fn groups(jobs: &[Job]) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut places = HashMap::new();
    for (index, job) in jobs.iter().enumerate() {
        let new = groups.len();
        let place = job.shared().map_or(new, |key| *places.entry(key).or_insert(new));
        match groups.get_mut(place) {
            Some(group) => group.push(index),
            None => groups.push(vec![index]),
        }
    }
    groups
}

/// Fetches commits of one repository. `None` for each that is to be requested alone.
fn several(jobs: &[Job], indices: &[usize], git: &GitRemotes) -> Vec<Option<Done>> {
    let requests = indices.iter().filter_map(|index| match &jobs[*index] {
        Job::Git { request, timeout, .. } => Some((request, *timeout)),
        Job::Http { .. } => None,
    });
    let (requests, timeouts): (Vec<&GitRequest>, Vec<Option<Duration>>) = requests.unzip();
    let timeout = timeouts.first().copied().flatten();
    match git.fetch_together(&requests, timeout) {
        Ok(done) => done.into_iter().map(|one| one.map(|fetched| Done::Git(Ok(fetched)))).collect(),
        // A server that does not answer is asked once.
        Err(failure) if failure.kind == FailureKind::NoAnswer => {
            indices.iter().map(|_| Some(Done::Git(Err(failure.clone())))).collect()
        }
        Err(_) => indices.iter().map(|_| None).collect(),
    }
}

/// Fetches batches of files on a few threads.
pub(super) fn files(batches: &[Batch], git: &GitRemotes, progress: &Progress) -> Vec<Result<()>> {
    progress.expect(batches.len());
    side_by_side(batches, SIDE_BY_SIDE, |_, batch| {
        let what = batch.fetched.request.url.shown();
        progress.begin(&what);
        let done = git.fetch_files(batch, Terminal::Detached);
        progress.end(&what);
        done
    })
}

/// How a repository at a ref is shown: its URL without secrets, and the ref.
pub(super) fn label(key: &RepoRef) -> String {
    let url = key.url.shown();
    match &key.reference {
        Some(reference) => format!("{url}?ref={reference}"),
        None => url,
    }
}
