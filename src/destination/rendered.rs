//! The destination of rendered files: a directory, or a branch of its own. Only files of an earlier run are deleted.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gix::ObjectId;

use super::on_branch::{CommitContent, OnBranch};
use super::{ChangedFiles, working};
use crate::build::rendered::{Rendered, is_file_name};
use crate::git::{LocalRepo, object_id};
use crate::message::failure::{Failure, Result};
use crate::plan::{Changes, ResultFile, hydrator};
use crate::record::history::trees::entries;
use crate::record::{Lock, TargetTrailer, Verified};
use crate::tree::Tree;
use crate::tree::git::GitTree;
use crate::workspace::Workspace;

/// The list of the written files, one per line.
const LIST: &str = ".built";

/// The list of the deployments that have no file, each with the reason, one per line.
const UNKNOWN: &str = ".unknown";

/// The files that an earlier run wrote into a directory, by its list. The next run may delete them, but no other files.
///
/// # Errors
///
/// If the directory has other files, but no list: it is not one of ours.
pub(crate) fn listed(directory: &Path) -> Result<BTreeSet<String>> {
    if let Ok(text) = fs::read_to_string(directory.join(LIST)) {
        // The list may have been edited, so only paths that a build can have are taken from it.
        return Ok(text.lines().filter(|line| is_file_name(line)).map(str::to_owned).collect());
    }
    if fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none()) {
        return Ok(BTreeSet::new());
    }
    Err(Failure::new(format!("`{}` holds other files: no `{LIST}` lists what was built", directory.display()))
        .hint("name a directory that is empty or new: --output DIR"))
}

/// Writes the rendered files to a directory, and removes the files of an earlier run that are not among them. Other
/// files stay; without a list of earlier files they are refused ([`listed`]). Returns the changes of rendered files.
pub(crate) fn write_directory(repo: &LocalRepo, directory: &Path, rendered: &Rendered) -> Result<ChangedFiles> {
    // Two runs would mix their files, and each would think that the list is its own.
    let _alone = repo.alone()?;
    let before = listed(directory)?;
    // A file with the same bytes is not written again, so that other programs do not see a change of its time.
    let removed = before.iter().filter(|name| !rendered.files.contains_key(*name)).map(|name| (name, None));
    let files = rendered.files.iter().map(|(name, bytes)| (name, Some(&**bytes))).chain(removed);
    let mut changes = Changes::new();
    for (name, bytes) in files {
        if fs::read(directory.join(name)).ok().as_deref() != bytes {
            changes.insert(name.clone(), bytes.map(ResultFile::plain));
        }
    }
    let changed = ChangedFiles::of(&changes);
    // First the list names the old and the new files: wherever this run ends early, the next one knows its files.
    if !changes.is_empty() {
        let all = list_text(rendered.files.keys().chain(&before).collect::<BTreeSet<_>>());
        let list = Changes::from([(LIST.to_owned(), Some(ResultFile::plain(all.into_bytes())))]);
        working::apply(&repo.git_dir, directory, &list)?;
    }
    // With the last changes the list names only the new files.
    let built = ResultFile::plain(list_text(rendered.files.keys()).into_bytes());
    for (name, list) in [(LIST, Some(built)), (UNKNOWN, unknown(rendered))] {
        if list.is_some() || directory.join(name).exists() {
            changes.insert(name.to_owned(), list);
        }
    }
    working::apply(&repo.git_dir, directory, &changes)?;
    Ok(changed)
}

/// The list of the deployments that have no file. `None` if all have one.
fn unknown(rendered: &Rendered) -> Option<ResultFile> {
    let lines = rendered.missing().lines;
    (!lines.is_empty()).then(|| ResultFile::plain(list_text(&lines).into_bytes()))
}

/// The text of a list, one entry per line.
fn list_text<'a>(lines: impl IntoIterator<Item = &'a String>) -> String {
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// The changes that turn `tree`, an earlier commit of rendered files, into the new rendered files. Files that
/// `rendered` does not have are removed, unless their build failed and they are to stay.
pub(crate) fn changes(tree: &dyn Tree, workspace: &Workspace, rendered: &mut Rendered) -> Result<Changes> {
    rendered.keep_earlier(tree)?;
    let lock = workspace.lock.as_deref().cloned().unwrap_or_default();
    let files = rendered.files.iter().map(|(path, bytes)| (path.clone(), Some(ResultFile::plain(&**bytes))));
    let unknown = unknown(rendered).map(|list| (UNKNOWN.to_owned(), Some(list)));
    // First the files that the commit has, then those are dropped that `tree` already has with the same bytes.
    let mut changes: Changes = files.chain(unknown).chain(hydrator::change(workspace, &lock)?).collect();
    for path in tree.below("")? {
        let file = changes.get(&path).and_then(Option::as_ref);
        match file {
            Some(file) if tree.read(&path).is_ok_and(|there| *there == *file.bytes) => drop(changes.remove(&path)),
            // The file differs, so the change stays.
            Some(_) => {}
            None if rendered.keeps(&path) => {}
            None => drop(changes.insert(path, None)),
        }
    }
    Ok(changes)
}

impl OnBranch {
    /// The content of the commit of rendered files. Files of an earlier run whose build failed now stay; edits by hand
    /// do not, because the changes start from the recorded tree.
    pub(crate) fn rendered_content(
        &self,
        workspace: &Workspace,
        rendered: &mut Rendered,
    ) -> Result<CommitContent<'static>> {
        let repository = &self.repository;
        // The tree that the record names, which lacks edits by hand. After a rewrite of the branch it may be missing.
        let base = self.tip.as_ref().map_or(ObjectId::empty_tree(repository.object_hash()), |tip| {
            object_id(tip.record.tree.hex()).ok().filter(|id| entries(repository, *id).is_ok()).unwrap_or(tip.tree)
        });
        let tree = GitTree::of_local(self.repo.clone(), base)?;
        let not_built = rendered.not_built.keys().cloned().collect();
        let built = Verified { same: rendered.files.len(), not_built, by: rendered.by.without_secrets() };
        Ok(CommitContent {
            base,
            changes: Cow::Owned(changes(&tree, workspace, rendered)?),
            target: TargetTrailer { target: ".".to_owned(), rendered: true, ..TargetTrailer::default() },
            lock: Lock::digest_at(&*workspace.tree),
            remotes: workspace.lock.as_deref().map(Lock::remote_trailers).unwrap_or_default(),
            // Without a single target there is no claim to record.
            verified: Some(built).filter(|built| built.same > 0 || !built.not_built.is_empty()),
        })
    }
}
