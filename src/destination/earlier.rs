//! What the record of a tip still proves of what is going to be committed on top.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::OnBranch;
use super::on_branch::TOOL;
use crate::build::Earlier;
use crate::config;
use crate::git::object_id;
use crate::graph::inputs;
use crate::message::failure::Result;
use crate::record::history::records::{self, Found};
use crate::record::history::tip::TipState;
use crate::record::history::trees::differences;
use crate::record::{Lock, Trailers};
use crate::tree::git::GitTree;
use crate::tree::{Tree, path};
use crate::workspace::{Files, Workspace};

impl OnBranch {
    /// Returns what the record of the tip still proves about builds. `held` is the lock of what it describes.
    pub(crate) fn earlier(&self, workspace: &Workspace, held: Option<&Lock>) -> Result<Option<Earlier>> {
        let (Some(tip), Files::Commit { tree: source_tree, .. }) = (&self.tip, &workspace.files) else {
            return Ok(None);
        };
        // Another version may make something else of the same source.
        let record = self.recorded(tip)?.filter(|record| record.tool == TOOL);
        let Some(Trailers { verified: Some(verified), source: Some(source), .. }) = record else { return Ok(None) };
        // A shallow clone may not have it.
        let Some(source) = self.repo.commit(source.hex())? else { return Ok(None) };
        let old = object_id(&source.tree)?;
        let source = differences(&self.repository, old, self.source_tree, &BTreeSet::new())?;
        let source: BTreeSet<String> = source.into_iter().collect();
        let is_link = |link: &String| path::and_above(link).any(|above| source.contains(above));
        // Then other roots may be starting points, or anything may lead elsewhere.
        if source.contains(config::FILE_NAME) || source_tree.followed().iter().any(is_link) {
            return Ok(None);
        }
        let Some(named) = directories_named(GitTree::of_here(self.repo.clone(), old)?, &source)? else {
            return Ok(None);
        };
        let remotes = held.map(|lock| lock.remotes.clone()).unwrap_or_default();
        Ok(Some(Earlier { verified, remotes, source, named }))
    }

    /// Returns the record of what is localized, if nobody has edited the tip.
    fn recorded(&self, tip: &TipState) -> Result<Option<Trailers>> {
        if !tip.is_told || !tip.edited.is_empty() {
            return Ok(None);
        }
        // The newest commit may be about another NEW_DIR.
        let is_it = |record: &Trailers| record.target.into == self.into;
        Ok(match records::newest(&self.repository, &tip.commit, &[], is_it)? {
            Found::Record(found) => Some(found.trailers),
            Found::Unreadable { .. } | Found::Nothing => None,
        })
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
    Ok(is_read.then(|| graph.roots.iter().map(|root| root.directory.clone()).collect()))
}
