//! What a record describes, localized again: from the source commit and the lock alone, with bytes from cache or
//! network. Nothing is written, and what the branch holds is ignored.

use std::rc::Rc;

use crate::commands::fetcher;
use crate::commands::localize::target::{local_target, remote, remote_target};
use crate::destination::objects;
use crate::fetch;
use crate::git::{CommitId, LocalRepo};
use crate::message::failure::{Failures, Result};
use crate::plan::{Options, copy, in_place};
use crate::record::Lock;
use crate::tree::git::object_id;
use crate::tree::path;
use crate::workspace::Workspace;

/// A tree that was made again. Its objects are in memory only.
pub(super) struct Rebuilt {
    /// Where the tree can be read.
    pub(super) repository: gix::Repository,
    pub(super) tree: gix::ObjectId,
}

/// Localizes again what `directory` holds by its lock; the whole repository where the lock has no target.
pub(super) fn rebuild(
    here: &Rc<LocalRepo>,
    source: CommitId,
    directory: &str,
    lock: &Rc<Lock>,
) -> Result<Rebuilt, Failures> {
    let repository = crate::tree::git::open(&here.git_dir)?.with_object_memory();
    let source_tree = object_id(&source.tree)?;
    let workspace = Workspace::of_commit(here.clone(), source)?;
    let options = Options { overwrite: false, trailers: lock.trailers };
    let fetching = fetch::Options {
        helm: workspace.config.helm,
        max_file_size: workspace.config.max_file_size,
        locked: true,
        allow_private: workspace.config.allow_private,
        ..fetch::Options::default()
    };
    let mut fetcher = fetcher(Some(here), fetching, vec![lock.clone()], None)?;
    let plan = match &lock.target {
        Some(target) => {
            let target = match remote(target, lock.scope.is_some())? {
                Some(spec) => remote_target(target, &spec, &mut fetcher)?,
                None => {
                    let place = |text: &String| path::resolve("", text).unwrap_or_default();
                    let scope = lock.scope.as_ref().map(place);
                    local_target(&workspace, &place(target), scope.as_deref(), "")
                }
            };
            let into = directory.to_owned();
            copy::plan(&workspace, target, into, &options, &mut fetcher)?
        }
        None => {
            let all = in_place::Request::default();
            in_place::plan(&workspace, all, &options, &mut fetcher)?
        }
    };
    let tree = objects::write(&repository, source_tree, [], &plan)?.directory;
    Ok(Rebuilt { repository, tree })
}
