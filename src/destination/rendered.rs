//! Where rendered files go: a directory, or a branch of its own. Only files of an earlier run are deleted.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use gix::ObjectId;

use super::objects::{self, WrittenTrees};
use super::on_branch::{OnBranch, TOOL};
use super::{ChangedFiles, Delivered, working};
use crate::build::rendered::{Rendered, is_plain};
use crate::git::{LocalRepo, object_id};
use crate::message::failure::{Failure, Result};
use crate::plan::{Changes, ResultFile, hydrator};
use crate::record::history::trees::{changed_files, entries};
use crate::record::{Digest, Lock, TargetTrailer, Trailers, Verified, render_message};
use crate::tree::Tree;
use crate::tree::git::GitTree;
use crate::workspace::Workspace;

/// The list of the written files, one per line.
const LIST: &str = ".built";

/// The list of the builds that have no file, each with the reason, one per line.
const UNKNOWN: &str = ".unknown";

/// The files that an earlier run wrote into a directory.
///
/// # Errors
///
/// If the directory has other files, but no list: it is not one of ours.
pub(crate) fn listed(directory: &Path) -> Result<BTreeSet<String>> {
    if let Ok(text) = fs::read_to_string(directory.join(LIST)) {
        return Ok(text.lines().filter(|line| is_plain(line)).map(str::to_owned).collect());
    }
    if fs::read_dir(directory).map_or(true, |mut entries| entries.next().is_none()) {
        return Ok(BTreeSet::new());
    }
    Err(Failure::new(format!("`{}` holds other files: no `{LIST}` lists what was built", directory.display()))
        .hint("name a directory that is empty or new: --output DIR"))
}

/// Makes a directory contain exactly the rendered files. `before` is what is [`listed`] there. First the list names all
/// that was there and that comes: whenever a run ends, the next one knows its files.
pub(crate) fn write_directory(
    repo: &LocalRepo,
    directory: &Path,
    before: &BTreeSet<String>,
    rendered: &Rendered,
) -> Result<ChangedFiles> {
    let mut changes = Changes::new();
    let mut put = |name: &str, bytes: Option<&[u8]>| {
        let there = fs::read(directory.join(name)).ok();
        if there.as_deref() != bytes {
            changes.insert(name.to_owned(), bytes.map(ResultFile::plain));
        }
    };
    rendered.files.iter().for_each(|(name, bytes)| put(name, Some(bytes)));
    before.iter().filter(|name| !rendered.files.contains_key(*name)).for_each(|name| put(name, None));
    let changed = ChangedFiles::of(&changes);
    // Two runs would mix their files, and each would think that the list is its own.
    let _alone = repo.alone()?;
    if !changes.is_empty() {
        let all = text(rendered.files.keys().chain(before).collect::<BTreeSet<_>>());
        let list = Changes::from([(LIST.to_owned(), Some(ResultFile::plain(all.into_bytes())))]);
        working::apply(&repo.git_dir, directory, &list)?;
    }
    let built = ResultFile::plain(text(rendered.files.keys()).into_bytes());
    for (name, list) in [(LIST, Some(built)), (UNKNOWN, unknown(rendered))] {
        if list.is_some() || directory.join(name).exists() {
            changes.insert(name.to_owned(), list);
        }
    }
    working::apply(&repo.git_dir, directory, &changes)?;
    Ok(changed)
}

/// The list of the builds that have no file. `None` if all have one.
fn unknown(rendered: &Rendered) -> Option<ResultFile> {
    let missing = rendered.missing();
    (!missing.is_empty()).then(|| ResultFile::plain(text(&missing).into_bytes()))
}

fn text<'a>(lines: impl IntoIterator<Item = &'a String>) -> String {
    lines.into_iter().map(|line| format!("{line}\n")).collect()
}

/// The changes that turn a tree into the rendered files of a commit.
pub(crate) fn changes(tree: &dyn Tree, workspace: &Workspace, rendered: &Rendered) -> Result<Changes> {
    let lock = workspace.lock.as_deref().cloned().unwrap_or_default();
    let files = rendered.files.iter().map(|(path, bytes)| (path.clone(), Some(ResultFile::plain(&**bytes))));
    let unknown = unknown(rendered).map(|list| (UNKNOWN.to_owned(), Some(list)));
    let mut changes: Changes = files.chain(unknown).chain(hydrator::change(workspace, &lock)?).collect();
    for path in tree.below("")? {
        let file = changes.get(&path).and_then(Option::as_ref);
        match file {
            Some(file) if tree.read(&path).is_ok_and(|there| *there == *file.bytes) => drop(changes.remove(&path)),
            Some(_) => {}
            None if rendered.keeps(&path) => {}
            None => drop(changes.insert(path, None)),
        }
    }
    Ok(changes)
}

impl OnBranch {
    /// Commits rendered files, unless the tip has just these. `None` if the branch at the remote has moved since it was
    /// fetched.
    pub(crate) fn commit_rendered(&self, workspace: &Workspace, rendered: &Rendered) -> Result<Option<Delivered>> {
        let (written, changed) = self.write_rendered(&self.repository, workspace, rendered)?;
        // The source is not a parent: merged into it, the branch would delete it.
        let parents = self.tip.iter().map(|tip| tip.commit.clone()).collect();
        let is_made = self.tip.as_ref().is_some_and(|tip| tip.matches_record && tip.tree == written.tree);
        self.deliver(&written, changed, parents, is_made, || {
            let text = match self.options.message.as_slice() {
                [] => format!("Render {}", self.source_label()),
                paragraphs => paragraphs.join("\n\n"),
            };
            render_message(&text, &self.rendered_trailers(workspace, rendered, &written))
        })
    }

    /// The files that a commit would change.
    pub(crate) fn changed_by_rendering(&self, workspace: &Workspace, rendered: &Rendered) -> Result<ChangedFiles> {
        Ok(self.write_rendered(&self.repository.clone().with_object_memory(), workspace, rendered)?.1)
    }

    /// Writes the trees, and compares them with the tip. The files of an earlier run stay, edits do not.
    fn write_rendered(
        &self,
        repository: &gix::Repository,
        workspace: &Workspace,
        rendered: &Rendered,
    ) -> Result<(WrittenTrees, ChangedFiles)> {
        let empty = ObjectId::empty_tree(repository.object_hash());
        let base = self.tip.as_ref().map_or(empty, |tip| {
            object_id(tip.made.tree.hex()).ok().filter(|id| entries(repository, *id).is_ok()).unwrap_or(tip.tree)
        });
        let tree = GitTree::of_local(self.repo.clone(), base)?;
        let changes = changes(&tree, workspace, rendered)?;
        let written = objects::write(repository, base, [], &changes, None)?;
        let before = self.tip.as_ref().map_or(empty, |tip| tip.tree);
        Ok((written, ChangedFiles::between(repository, changed_files(repository, before, written.tree)?)))
    }

    fn rendered_trailers(&self, workspace: &Workspace, rendered: &Rendered, written: &WrittenTrees) -> Trailers {
        let lock = workspace.lock.as_deref();
        let built = Verified {
            same: rendered.files.len(),
            not_built: rendered.not_built.keys().cloned().collect(),
            by: rendered.by.recorded(),
        };
        Trailers {
            target: TargetTrailer { target: ".".to_owned(), rendered: true, ..TargetTrailer::default() },
            source: Some(Digest::GitCommit(self.source.commit.clone())),
            lock: Lock::digest_at(&*workspace.tree),
            remotes: lock.map(Lock::remote_trailers).unwrap_or_default(),
            tree: Digest::GitTree(written.tree.to_string()),
            verified: Some(built).filter(|built| built.same > 0 || !built.not_built.is_empty()),
            tool: TOOL.to_owned(),
        }
    }
}
