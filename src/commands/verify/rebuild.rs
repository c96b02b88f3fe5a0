//! `verify --rebuild`: localizes again from the source commit and the lock, with bytes from cache or network, and
//! compares the result with the record. Nothing is written, and the files of the branch are ignored.

use std::collections::BTreeSet;
use std::rc::Rc;

use gix::ObjectId;

use crate::destination::objects;
use crate::fetch;
use crate::git::{CommitId, LocalRepo, object_id};
use crate::localize::rendered;
use crate::localize::target::{local_target, parse_remote, remote_target};
use crate::message::failure::{Failure, Failures, Result};
use crate::message::redact::visible;
use crate::plan::{Plan, PlanOptions, copy, in_place};
use crate::record::history::trees::{differences, entries, lookup};
use crate::record::{LOCK_NAME, Lock};
use crate::tree::git::GitTree;
use crate::tree::path;
use crate::verify::{Difference, DifferenceKind, Record, VerifyOutcome, hint_instead};
use crate::workspace::{Workspace, fetch_options, fetcher};

/// Adds the differences from localizing again, or the reasons why that failed.
pub(super) fn compare(verified: &mut VerifyOutcome) -> Result<(), Failures> {
    // The repository is opened again, because the one of `verify` is offline, and this one has the settings for
    // fetching.
    let repo = Rc::new(LocalRepo::discover()?.ok_or_else(|| Failure::new("this is not a git repository"))?);
    let (mut differences, mut failures) = (Vec::new(), Vec::new());
    // Success without anything to localize would look like a proof.
    if verified.records.is_empty() {
        let rev = &verified.rev;
        failures.push(
            Failure::new(format!("`{rev}` cannot be localized again: it has no localized files"))
                .hint(hint_instead(&repo, rev)?),
        );
    }
    let rev = verified.commit.as_deref().unwrap_or_default();
    let whole = repo.commit(rev)?.ok_or_else(|| Failure::new(format!("{} cannot be read", verified.rev)))?;
    for record in &verified.records {
        match differences_of(&repo, &whole.tree, record, &mut failures) {
            Ok(more) => differences.extend(more),
            Err(error) => {
                let shown = path::shown(&record.directory);
                failures.extend(error.context(format_args!("`{shown}` cannot be localized again")).0);
            }
        }
    }
    verified.differences.extend(differences);
    // The report shows this only if nothing differs and nothing failed.
    let is_rendered = verified.records.iter().any(|record| record.rendered);
    verified.also.push(if is_rendered { "the same when rendered again" } else { "the same when localized again" });
    verified.failures.extend(failures);
    Ok(())
}

/// The differences between the tree of a commit (`whole`) and the result of localizing again as a record in it
/// describes. Adds a failure for each file that cannot be compared.
fn differences_of(
    repo: &Rc<LocalRepo>,
    whole: &str,
    record: &Record,
    failures: &mut Vec<Failure>,
) -> Result<Vec<Difference>, Failures> {
    let source = source_of(repo, record)?;
    // A rendered branch is built again: nothing in it was localized.
    if record.rendered {
        let again = rendered::render_again(repo, &source.commit, whole, &record.arguments)?;
        failures.extend(
            again.kept.iter().map(|file| {
                Failure::new(format!("`{}` cannot be rendered again: its build is not known", visible(file)))
            }),
        );
        return Ok(again.differing.iter().map(|path| rebuilt(record, path)).collect());
    }
    let whole = object_id(whole)?;
    let tree = GitTree::of_local(repo.clone(), whole)?;
    let lock = Lock::find(&tree, &path::join(&record.directory, LOCK_NAME))?.unwrap_or_default();
    let plan = plan_again(repo, &source, record, &lock)?;
    // The new objects are kept in memory only. Other copies do not matter: only this one is compared.
    let repository = repo.repository()?.clone().with_object_memory();
    let source_tree = object_id(&source.tree)?;
    let rebuilt_tree =
        objects::write_trees(&repository, source_tree, [], &plan.changes, plan.new_dir.as_deref())?.directory;
    let recorded_tree = recorded_tree(&repository, whole, record)?;
    let paths = differences(&repository, rebuilt_tree, recorded_tree, &BTreeSet::new())?;
    Ok(paths.iter().map(|path| rebuilt(record, path)).collect())
}

/// The source commit that a record names.
fn source_of(repo: &LocalRepo, record: &Record) -> Result<CommitId> {
    let source = record.source.as_deref().ok_or_else(|| {
        Failure::new("no commit message names the source commit")
            .hint("verify the branch itself, for example: git kustomize-localize verify localized/main")
    })?;
    match repo.commit(source)? {
        Some(source) => Ok(source),
        None if repo.is_shallow()? => {
            Err(Failure::new(format!("this shallow clone lacks the source commit {source}"))
                .hint("git fetch --unshallow"))
        }
        None => Err(Failure::new(format!("the source commit {source} is not in this repository"))),
    }
}

/// Localizes the source commit again: the target of the lock, or in place if it names none.
fn plan_again(repo: &Rc<LocalRepo>, source: &CommitId, record: &Record, lock: &Rc<Lock>) -> Result<Plan, Failures> {
    let workspace = Workspace::of_rev(repo.clone(), Some(&source.commit))?;
    let options = PlanOptions { overwrite: false, trailers: lock.trailers };
    // Only locked digests count, or else a moved tag would look like an edited commit.
    let fetching = fetch::FetchOptions { locked: true, ..fetch_options(&workspace.config) };
    let mut fetcher = fetcher(Some(repo), fetching, vec![lock.clone()], None)?;
    let Some(target) = &lock.target else {
        return in_place::plan(&workspace, in_place::InPlaceRequest::default(), &options, &mut fetcher);
    };
    let target = match parse_remote(target, lock.scope.is_some())? {
        Some(spec) => remote_target(target, &spec, &mut fetcher)?,
        None => {
            let scope = lock.scope.as_deref().map(to_path);
            local_target(&workspace, &to_path(target), scope.as_deref(), "")
        }
    };
    copy::plan(&workspace, target, record.directory.clone(), &options, &mut fetcher)
}

/// The tree that localizing again must give: the directory of a copy, which has the lock that names the target. In
/// place, the commit may also have later changes of people, so the tree of the trailer counts, which `verify` has
/// compared with the commit that we made; without that tree in this repository, the whole commit.
fn recorded_tree(repository: &gix::Repository, whole: ObjectId, record: &Record) -> Result<ObjectId> {
    if record.target.is_some() {
        return match lookup(repository, whole, &record.directory)? {
            Some((_, id)) => Ok(id),
            None => Err(Failure::new(format!("there is no directory `{}`", record.directory))),
        };
    }
    let recorded = record.tree.as_deref().map(object_id).transpose()?;
    Ok(recorded.filter(|tree| entries(repository, *tree).is_ok()).unwrap_or(whole))
}

/// A path of a lock or trailer as a path from the top of the tree.
fn to_path(text: &str) -> String {
    path::resolve("", text).unwrap_or_default()
}

/// The difference of a file that another run does not write in the same way.
fn rebuilt(record: &Record, path: &str) -> Difference {
    let made = if record.rendered { "rendered" } else { "localized" };
    let (path, message) = (path::join(&record.directory, path), format!("differs when {made} again"));
    Difference { kind: DifferenceKind::Rebuilt, path, span: None, message }
}
