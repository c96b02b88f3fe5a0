//! `affected`: what a change touches.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::targets::as_built;
use crate::affected::changes::Changes;
use crate::affected::{self, Affected};
use crate::config::Config;
use crate::message::failure::{Failures, Result};
use crate::record::history::trees;
use crate::reference_tree::Survey;
use crate::targets::Identity;
use crate::tree::Tree;
use crate::tree::git::{GitTree, object_id};
use crate::workspace::{commit, merge_base, repository_offline};

/// What to compare.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// The revision whose merge base with `rev` is compared with.
    pub base: String,
    /// The revision that is looked at.
    pub rev: String,
}

/// What a change touches.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// The commit that was compared with.
    pub since: String,
    /// The commit that was looked at.
    pub commit: String,
    /// What can be built to something else.
    pub affected: Affected,
}

/// Finds what can be built to something else.
pub(crate) fn affected(request: &Request) -> Result<Outcome, Failures> {
    let here = repository_offline()?;
    let new = commit(&here, &request.rev)?;
    let old = merge_base(&here, &request.base, Some(&new.commit))?;
    let (was, is) = (object_id(&old.tree)?, object_id(&new.tree)?);
    let new_tree = GitTree::of_here(here.clone(), is)?;
    let differences = trees::differences(new_tree.repository(), was, is, &BTreeSet::new())?;
    let old_tree = new_tree.beside(was);
    // A build sees the files as git checks them out.
    let [old_tree, new_tree] = [old_tree, new_tree].map(|tree| -> Rc<dyn Tree> { Rc::new(tree.checked_out()) });
    let config = Config::of(&*new_tree, "")?;
    let changes = Changes::of(old_tree, new_tree, differences.into_iter().collect())?;
    let (was, is) = changes.targets(&config, || Identity::of(&here, &config))?;
    let build = |survey: &Survey, found| as_built(&here, survey, &config, found);
    let mut affected = affected::affected(&changes, &config, was, is, &build)?;
    affected.roots.retain(|root| !root.is_named);
    Ok(Outcome { since: old.commit, commit: new.commit, affected })
}
