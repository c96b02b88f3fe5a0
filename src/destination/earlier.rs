//! What the record of a tip still proves of what is going to be committed on top.

use std::collections::BTreeSet;

use super::OnBranch;
use super::on_branch::TOOL;
use crate::build::Earlier;
use crate::config;
use crate::git::Snapshot;
use crate::graph::inputs;
use crate::message::failure::Result;
use crate::record::history::records::{self, RecordLookup};
use crate::record::history::tip::TipState;
use crate::record::{Lock, Trailers};
use crate::targets::affected::changes::Changes;
use crate::tree::{SharedTree, path};
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
        let old = Files::open(&self.repo, &Snapshot::of(Some(&source.commit)))?.checked_out();
        let trees = [old.clone(), workspace.files.checked_out()];
        let source = Changes::of_commits(&self.repo, [&source, &self.source], trees)?;
        // Then other roots may be starting points, or anything may lead elsewhere.
        for decisive in source_tree.followed().iter().map(String::as_str).chain([config::FILE_NAME]) {
            if source.at(decisive)?.is_some() {
                return Ok(None);
            }
        }
        let Some(named) = directories_named(old, &source)? else { return Ok(None) };
        let remotes = held.map(|lock| lock.remotes.clone()).unwrap_or_default();
        Ok(Some(Earlier { verified, remotes, source, named }))
    }

    /// Returns the record of what is localized, if nobody has edited the tip.
    fn recorded(&self, tip: &TipState) -> Result<Option<Trailers>> {
        if !tip.matches_record || !tip.edited.is_empty() {
            return Ok(None);
        }
        // The newest commit may be about another NEW_DIR.
        let is_it = |record: &Trailers| record.target.into == self.into;
        Ok(match records::newest(&self.repository, &tip.commit, &[], is_it)? {
            RecordLookup::Record(found) => Some(found.trailers),
            RecordLookup::Unreadable { .. } | RecordLookup::Nothing => None,
        })
    }
}

/// Returns the directories that kustomizations which have changed since led to; `None` if one cannot be read.
fn directories_named(tree: SharedTree, changes: &Changes) -> Result<Option<BTreeSet<String>>> {
    let mut starts = Vec::new();
    for place in tree.kustomizations()? {
        if changes.at(&place)?.is_some() {
            starts.push(path::parent(&place).to_owned());
        }
    }
    if starts.is_empty() {
        return Ok(Some(BTreeSet::new()));
    }
    let graph = inputs::explore(tree, &starts).graph;
    let is_read = graph.roots.iter().all(|root| root.kind.is_some());
    Ok(is_read.then(|| graph.roots.iter().map(|root| root.directory.clone()).collect()))
}
