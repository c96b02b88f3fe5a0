//! `verify`: a localized commit against its lock and trailers.

mod rebuild;
mod rebuilt;

use std::path::Path;
use std::rc::Rc;

use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result, command};
use crate::record::LOCK_NAME;
use crate::tree::git::{GitTree, object_id};
use crate::verify::upstream::Ask;
use crate::verify::{self, Verified, verify_directory};
use crate::workspace::{from_top, repository_offline};

/// What to verify.
#[derive(Debug, Clone, Default)]
pub(crate) struct Request {
    /// A revision, or a directory that holds a copy; none: HEAD.
    pub rev: Option<String>,
    /// Only what lies in or below these, from the directory that we were started in; everything when empty.
    pub paths: Vec<String>,
    /// Ask upstream what it holds now.
    pub upstream: bool,
    /// Localize again, and compare.
    pub rebuild: bool,
    /// Show no progress.
    pub quiet: bool,
}

pub(crate) fn verify(request: &Request) -> Result<Verified, Failures> {
    let here = LocalRepo::discover_offline()?.map(Rc::new);
    let directory = directory(request, here.as_deref())?;
    let upstream = request.upstream.then(|| asker(here.as_deref(), request)).transpose()?;
    let ask = upstream.as_ref().map(|upstream| |remotes: &[&crate::record::Remote]| upstream.ask(remotes));
    let ask = ask.as_ref().map(|ask| ask as &Ask<'_>);
    if let Some(directory) = directory {
        return verify_directory(directory, here.is_some(), ask);
    }
    let here = match here {
        Some(here) => here,
        None => repository_offline()?,
    };
    let rev = request.rev.as_deref().unwrap_or("HEAD");
    let mut paths = Vec::new();
    if !request.paths.is_empty()
        && let Some(id) = here.commit(rev)?
    {
        let tree = GitTree::of_here(here.clone(), object_id(&id.tree)?)?;
        for text in &request.paths {
            paths.push(from_top(&here, &tree, text)?);
        }
    }
    let asked = verify::Request { rev, paths: &paths, upstream: ask };
    let mut verified = verify::verify(&here, &asked)?;
    if request.rebuild {
        rebuilt::compare(&mut verified)?;
    }
    Ok(verified)
}

/// Sets up asking with the connection settings of the repository, if there is one.
fn asker(here: Option<&LocalRepo>, request: &Request) -> Result<crate::fetch::Upstream> {
    let settings = here.map(LocalRepo::connection_config).transpose()?;
    let options = crate::fetch::Options { quiet: request.quiet, ..crate::fetch::Options::default() };
    let git = crate::git::RemoteGit::new(settings.unwrap_or_default());
    crate::fetch::Upstream::new(git, &options)
}

/// Returns the directory that the request names, if that is not a commit.
fn directory<'a>(request: &'a Request, here: Option<&LocalRepo>) -> Result<Option<&'a str>> {
    let is_directory = |text: &&str| Path::new(text).is_dir();
    let Some(text) = request.rev.as_deref().filter(is_directory) else {
        return Ok(None);
    };
    let commit = match here {
        Some(here) if !text.starts_with('-') => here.commit(text)?,
        _ => None,
    };
    if let Some(id) = commit {
        if !Path::new(text).join(LOCK_NAME).is_file() {
            return Ok(None);
        }
        return Err(Failure::new(format!("`{text}` names both a commit and a directory with a `{LOCK_NAME}`"))
            .hint(format!("the directory: {}", command("git kustomize-localize verify", [format!("./{text}")])))
            .hint(format!("the commit: git kustomize-localize verify {}", id.commit)));
    }
    for (option, is_given) in [("--rebuild", request.rebuild), ("PATH", !request.paths.is_empty())] {
        if is_given {
            return Err(Failure::new(format!("{option} is for a commit, and `{text}` is a directory"))
                .hint("leave it out, or name a commit"));
        }
    }
    Ok(Some(text))
}
