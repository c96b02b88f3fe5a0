//! `verify --rebuild`: every record, localized again and compared.

use std::collections::BTreeSet;
use std::rc::Rc;

use super::rebuild::rebuild;
use crate::git::LocalRepo;
use crate::message::failure::{Failure, Failures, Result};
use crate::record::history::trees::{differences, entries, lookup};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::git::{GitTree, object_id};
use crate::tree::path;
use crate::verify::{Difference, Kind, Record, Verified};

/// Adds what differs from localizing again, and why it could not be compared.
pub(super) fn compare(verified: &mut Verified) -> Result<(), Failures> {
    // Not the one that may reach nothing: what is fetched is configured there.
    let here = Rc::new(LocalRepo::discover()?.ok_or_else(|| Failure::new("this is not a git repository"))?);
    let (mut found, mut failures) = (Vec::new(), Vec::new());
    if verified.records.is_empty() {
        let rev = &verified.rev;
        failures.push(Failure::new(format!("`{rev}` cannot be localized again: it holds no localized files")).hint(
            "name the branch with the localized files, for example: git kustomize-localize verify localized/main",
        ));
    }
    for record in &verified.records {
        match of(&here, verified, record) {
            Ok(differences) => found.extend(differences),
            Err(error) => failures.extend(error.0),
        }
    }
    verified.differences.extend(found);
    verified.also.push("the same when localized again");
    verified.failures.extend(failures);
    Ok(())
}

fn of(here: &Rc<LocalRepo>, verified: &Verified, record: &Record) -> Result<Vec<Difference>, Failures> {
    let shown = path::shown(&record.directory);
    let source = record.source.as_deref().ok_or_else(|| {
        Failure::new(format!("`{shown}` cannot be localized again: no commit message names the source commit"))
            .hint("verify the branch itself, for example: git kustomize-localize verify localized/main")
    })?;
    let source = here.commit(source)?.ok_or_else(|| {
        Failure::new(format!("the source commit {source} of `{shown}` is not here"))
            .hint("a shallow clone may not have it: git fetch --unshallow")
    })?;
    let whole = here
        .commit(verified.commit.as_deref().unwrap_or_default())?
        .ok_or_else(|| Failure::new(format!("{} cannot be read", verified.rev)))?;
    let whole = object_id(&whole.tree)?;
    let tree = GitTree::of_here(here.clone(), whole)?;
    let name = path::join(&record.directory, LOCK_NAME);
    let lock = Lock::at(&tree, &name)?.unwrap_or_default();
    let rebuilt = rebuild(here, source, &record.directory, &lock)
        .map_err(|failures| failures.context(format_args!("`{shown}` cannot be localized again")))?;
    let there = match record.target {
        Some(_) => lookup(&rebuilt.repository, whole, &record.directory)?.map(|(_, id)| id),
        // In place, commits of other people have other trees. That one of ours has just this tree is checked already.
        None => match record.tree.as_deref().map(object_id).transpose()? {
            Some(tree) if entries(&rebuilt.repository, tree).is_ok() => Some(tree),
            _ => Some(whole),
        },
    };
    let Some(there) = there else {
        return Ok(Vec::new());
    };
    let paths = differences(&rebuilt.repository, rebuilt.tree, there, &BTreeSet::new())?;
    let difference = |place: &String| Difference {
        kind: Kind::Rebuilt,
        path: path::join(&record.directory, place),
        place: None,
        message: "is not what localizing again gives".to_owned(),
    };
    Ok(paths.iter().map(difference).collect())
}
