//! Finds the builds that the record of a tip still proves for the next commit.

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
use crate::targets::affected::Sides;
use crate::targets::affected::changes::Changes;
use crate::tree::{SharedTree, path};
use crate::workspace::{Files, Workspace};

impl OnBranch {
    /// The builds that the record of the tip calls verified, with the changes since: a build that they do not affect is
    /// not run again. `old_lock` is the lock of the tip. `None` for a new branch, if another version made the record,
    /// if the record is not complete, if its source commit is not here, or if the changes could affect any build.
    pub(crate) fn earlier(&self, workspace: &Workspace, old_lock: Option<&Lock>) -> Result<Option<Earlier>> {
        let (Some(tip), Files::Commit { tree: source_tree, .. }) = (&self.tip, &workspace.files) else {
            return Ok(None);
        };
        // Another version may localize the same source differently.
        let record = self.newest_record(tip)?.filter(|record| record.tool == TOOL);
        let Some(Trailers { verified: Some(verified), source: Some(source), .. }) = record else { return Ok(None) };
        // A shallow clone may not have the source commit.
        let Some(source) = self.repo.commit(source.hex())? else { return Ok(None) };
        let old = Files::open(&self.repo, &Snapshot::of(Some(&source.commit)))?.checked_out();
        let trees = Sides { old: old.clone(), new: workspace.files.checked_out() };
        let source = Changes::of_commits(&self.repo, Sides { old: &source, new: &self.source }, trees)?;
        // If the configuration or a followed link changed, other roots may be starting points, or paths may lead
        // elsewhere.
        for decisive in source_tree.followed().iter().map(String::as_str).chain([config::FILE_NAME]) {
            if source.at(decisive)?.is_some() {
                return Ok(None);
            }
        }
        let Some(named) = reached_directories(old, &source)? else { return Ok(None) };
        // The lock tells afterwards which remote content was the same.
        let remotes = old_lock.map(|lock| lock.remotes.clone()).unwrap_or_default();
        Ok(Some(Earlier { verified, remotes, source, named }))
    }

    /// The newest record on the branch for this NEW_DIR, or for the repository in place. `None` if there is none, or if
    /// the tip was edited by hand, so that the record proves nothing.
    fn newest_record(&self, tip: &TipState) -> Result<Option<Trailers>> {
        if !tip.matches_record {
            return Ok(None);
        }
        // The newest commit may be about another NEW_DIR.
        let newest =
            records::newest(&self.repository, &tip.commit, &[], |record| record.target.new_dir == self.new_dir)?;
        Ok(match newest {
            RecordLookup::Record(recorded) => Some(recorded.trailers),
            // Without a record everything is built again, which is always right.
            RecordLookup::Unreadable { .. } | RecordLookup::Nothing => None,
        })
    }
}

/// The directories of the old tree whose builds may depend on a kustomization that was changed since: those of the
/// changed kustomizations, and of everything that these reference. `None` if a kustomization cannot be read.
fn reached_directories(tree: SharedTree, changes: &Changes) -> Result<Option<BTreeSet<String>>> {
    let mut starts = Vec::new();
    for path in tree.kustomizations()? {
        if changes.at(&path)?.is_some() {
            starts.push(path::parent(&path).to_owned());
        }
    }
    if starts.is_empty() {
        return Ok(Some(BTreeSet::new()));
    }
    // A changed root can make another root build something else.
    let graph = inputs::explore(tree, &starts).graph;
    let is_read = graph.roots.iter().all(|root| root.kind.is_some());
    Ok(is_read.then(|| graph.roots.iter().map(|root| root.directory.clone()).collect()))
}
