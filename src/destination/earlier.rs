//! What the record of a tip still proves of what is going to be committed on top.

use std::collections::BTreeSet;
use std::rc::Rc;

use crate::build::Earlier;
use crate::config;
use crate::git::LocalRepo;
use crate::kustomization;
use crate::message::failure::Result;
use crate::record::history::trees::differences;
use crate::record::{Digest, Lock, Verified};
use crate::tree::objects::{ObjectTree, object_id};
use crate::tree::{self, Listing, Resolved, Tree, path};

/// A record, and what it is about.
pub(super) struct Recorded<'a> {
    /// The source commit that it names.
    pub(super) source: Option<&'a Digest>,
    /// What it records about builds.
    pub(super) verified: &'a Verified,
    /// The tree that it describes; none where the tip no longer holds it.
    pub(super) tree: Option<gix::ObjectId>,
    /// The lock of that tree.
    pub(super) lock: Option<&'a Lock>,
}

/// Returns what a record still proves; none where nothing. `links` are those that
/// were followed in the source, `result` writes the tree that is compared with that of the record.
pub(super) fn earlier(
    here: &Rc<LocalRepo>,
    recorded: Recorded<'_>,
    source_tree: gix::ObjectId,
    links: &BTreeSet<String>,
    result: &dyn Fn(&gix::Repository) -> Result<gix::ObjectId>,
) -> Result<Option<Earlier>> {
    if *recorded.verified == Verified::NotBuilt {
        return Ok(None);
    }
    let source = match recorded.source {
        // A shallow clone may not have it.
        Some(source) => here.commit(source.hex())?,
        None => None,
    };
    let (Some(source), Some(tree)) = (source, recorded.tree) else {
        return Ok(None);
    };
    let old = object_id(&source.tree)?;
    // Nothing is written before it is proven.
    let scratch = tree::objects::open(&here.git_dir)?.with_object_memory();
    let changed = |old, new| -> Result<BTreeSet<String>> {
        let paths = differences(&scratch, old, new, &BTreeSet::new())?;
        Ok(paths.into_iter().collect())
    };
    let source = changed(old, source_tree)?;
    let is_link = |link: &String| path::and_above(link).any(|above| source.contains(above));
    // Then other roots may be starting points, or anything may lead elsewhere.
    if source.contains(config::FILE_NAME) || links.iter().any(is_link) {
        return Ok(None);
    }
    let Some(named) = directories_named(&ObjectTree::of_here(here.clone(), old)?, &source)? else {
        return Ok(None);
    };
    let remotes = recorded.lock.map(Lock::remote_trailers);
    Ok(Some(Earlier {
        verified: recorded.verified.clone(),
        result: changed(tree, result(&scratch)?)?,
        remotes: remotes.into_iter().flatten().collect(),
        source,
        named,
    }))
}

/// Returns the directories that the kustomizations named which have changed since; none where one cannot be read.
fn directories_named(tree: &ObjectTree, changed: &BTreeSet<String>) -> Result<Option<BTreeSet<String>>> {
    let mut named = BTreeSet::new();
    if changed.is_empty() {
        return Ok(Some(named));
    }
    let is_changed = |place: &String| path::and_above(place).any(|above| changed.contains(above));
    for place in tree.kustomizations()?.iter().filter(|place| is_changed(place)) {
        let Resolved::File { path, .. } = tree::resolve(tree, place)? else {
            return Ok(None);
        };
        let Ok(read) = kustomization::read(&tree.read(&path)?) else {
            return Ok(None);
        };
        for reference in &read.references {
            let Some(target) = path::resolve(path::parent(place), &reference.text) else {
                continue;
            };
            if let Resolved::Directory { path } = tree::resolve(tree, &target)? {
                named.insert(path);
            }
        }
    }
    Ok(Some(named))
}
