//! What the record of a tip still proves of what is going to be committed on top.

use std::collections::BTreeSet;
use std::rc::Rc;

use gix::ObjectId;

use super::OnBranch;
use crate::build::Earlier;
use crate::config;
use crate::graph::inputs;
use crate::message::failure::Result;
use crate::plan::Plan;
use crate::record::history::records::{self, Found};
use crate::record::history::tip::TipState;
use crate::record::history::trees::differences;
use crate::record::{Digest, Lock, Trailers, Verified};
use crate::tree::git::{GitTree, object_id};
use crate::tree::{self, Tree, path};
use crate::workspace::{Files, Workspace};

impl OnBranch {
    /// Returns what the record of the tip still proves about builds. `held` is the lock of what it describes.
    pub(crate) fn earlier(&self, workspace: &Workspace, plan: &Plan, held: Option<&Lock>) -> Result<Option<Earlier>> {
        let (Some(tip), Files::Commit { tree: source_tree, .. }) = (&self.tip, &workspace.files) else {
            return Ok(None);
        };
        let Some((record, result)) = self.recorded(tip)? else {
            return Ok(None);
        };
        let source = match &record.source {
            // A shallow clone may not have it.
            Some(source) if record.verified != Verified::NotBuilt => self.repo.commit(source.hex())?,
            _ => None,
        };
        let Some(source) = source else { return Ok(None) };
        let old = object_id(&source.tree)?;
        // Nothing is written before it is proven.
        let scratch = tree::git::open(&self.repo.git_dir)?.with_object_memory();
        let changed = |old, new| -> Result<BTreeSet<String>> {
            Ok(differences(&scratch, old, new, &BTreeSet::new())?.into_iter().collect())
        };
        let source = changed(old, self.source_tree)?;
        let is_link = |link: &String| path::and_above(link).any(|above| source.contains(above));
        // Then other roots may be starting points, or anything may lead elsewhere.
        if source.contains(config::FILE_NAME) || source_tree.followed().iter().any(is_link) {
            return Ok(None);
        }
        let Some(named) = directories_named(GitTree::of_here(self.repo.clone(), old)?, &source)? else {
            return Ok(None);
        };
        Ok(Some(Earlier {
            verified: record.verified,
            result: changed(result, self.write(&scratch, plan)?.directory)?,
            remotes: held.map(Lock::remote_trailers).into_iter().flatten().collect(),
            source,
            named,
        }))
    }

    /// Returns the record of what is localized, and the tree that it describes, if the tip still holds that.
    fn recorded(&self, tip: &TipState) -> Result<Option<(Trailers, ObjectId)>> {
        let Some(into) = &self.into else {
            return Ok(tip.is_told.then(|| (tip.made.clone(), tip.tree)));
        };
        // The newest commit may be about another NEW_DIR.
        let is_it = |record: &Trailers| record.target.into.as_ref() == Some(into);
        let Found::Record(found) = records::newest(&self.repository, &tip.commit, &[], is_it)? else {
            return Ok(None);
        };
        let record = found.trailers;
        let there = tip.new_dirs.get(into).map(|new_dir| new_dir.tree);
        let there = there.filter(|tree| record.tree == Digest::GitTree(tree.to_string()));
        Ok(there.map(|tree| (record, tree)))
    }
}

/// Returns the directories that kustomizations which have changed since led to; none where one cannot be read.
fn directories_named(tree: GitTree, changed: &BTreeSet<String>) -> Result<Option<BTreeSet<String>>> {
    if changed.is_empty() {
        return Ok(Some(BTreeSet::new()));
    }
    let mut starts = tree.kustomizations()?;
    starts.retain(|place| path::and_above(place).any(|above| changed.contains(above)));
    let starts: Vec<String> = starts.iter().map(|place| path::parent(place).to_owned()).collect();
    let graph = inputs::explore(Rc::new(tree), &starts).graph;
    let is_read = graph.roots.iter().all(|root| root.kind.is_some());
    Ok(is_read.then(|| graph.roots.into_iter().map(|root| root.directory).collect()))
}
