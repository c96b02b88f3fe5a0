//! The files of a result, and their lock entries.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use serde::Serialize;

use crate::config::{Config, FILE_NAME};
use crate::graph::FileId;
use crate::kustomization::{self, Edit};
use crate::message::failure::{Failure, Location, Result};
use crate::message::finding::{Finding, Rule};
use crate::record::{Lock, Remotes, StoredFile};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, Tree, path};

/// The files to write, by path from the top of the tree. `None` for a file to remove.
pub(crate) type Changes = BTreeMap<String, Option<ResultFile>>;

/// A tree in memory with the changes of a plan, for a walk or a build before anything is written.
pub(crate) fn changed(mut tree: OverlayTree, changes: &Changes) -> OverlayTree {
    for (path, file) in changes {
        match file {
            Some(file) => tree.add_file_with_mode(path, &file.bytes, file.executable),
            None => tree.remove(path),
        }
    }
    tree
}

/// A file of a result.
#[derive(Debug, Clone)]
pub(crate) struct ResultFile {
    pub bytes: Rc<[u8]>,
    /// Whether its mode is 100755.
    pub executable: bool,
    /// The blob of this repository with the same bytes. `None` if there is none, or if it is not known.
    pub blob: Option<String>,
}

impl ResultFile {
    /// The rendered lock.
    pub(crate) fn of(lock: &Lock) -> Result<ResultFile> {
        Ok(ResultFile::plain(lock.render()?.into_bytes()))
    }

    /// A file that is not executable.
    pub(crate) fn plain(bytes: impl Into<Rc<[u8]>>) -> ResultFile {
        ResultFile { bytes: bytes.into(), executable: false, blob: None }
    }
}

/// A file of a tree with edits applied.
pub(super) fn edited(tree: &dyn Tree, path: &str, edits: &[Edit<'_>]) -> Result<ResultFile> {
    let bytes = kustomization::edit(&tree.read(path)?, edits)
        .map_err(|error| Failure::new(format!("cannot edit `{path}`: {}", error.message)))?;
    let executable = tree.entry(path)? == Some(Entry::File { executable: true });
    Ok(ResultFile { executable, ..ResultFile::plain(bytes) })
}

/// The localized roots of a graph, with everything that they reach.
#[derive(Default)]
pub(super) struct LocalizedRoots {
    /// The files by path in the result, each with its lock entry.
    pub files: BTreeMap<String, (ResultFile, StoredFile)>,
    /// The directory of the first root in the result.
    pub target: String,
    /// The rewritten references, in the order of the files.
    pub rewritten: Vec<Rewritten>,
    /// The fetched upstreams, as the lock records them.
    pub remotes: Remotes,
    /// The files that come from the user's tree, by path in the result.
    pub local_files: BTreeSet<String>,
    /// The directories of fetched charts, and the attributes beside them. In place they belong to the user afterwards.
    pub vendored: BTreeSet<String>,
    /// The paths that unchanged references lead to and that may be missing.
    pub allowed_missing: HashSet<String>,
    /// The fetched files that stay executable, because the configuration trusts them.
    pub trusted: HashSet<FileId>,
    pub findings: Vec<Finding>,
}

impl LocalizedRoots {
    /// A tree in memory with these files added.
    pub(super) fn on(&self, mut tree: OverlayTree) -> OverlayTree {
        self.files.iter().for_each(|(path, (file, _))| tree.add_file_with_mode(path, &file.bytes, file.executable));
        tree
    }

    /// Whether a file of the result was fetched, or belongs to fetched files.
    pub(super) fn is_fetched(&self, path: &str) -> bool {
        !self.local_files.contains(path)
    }

    /// The directory of the fetched chart that a file belongs to, or the path itself for attributes beside one. `None`
    /// if it belongs to none.
    pub(super) fn vendored_directory(&self, path: &str) -> Option<&str> {
        let mut directories = self.vendored.iter().map(String::as_str);
        directories.find(|directory| path::is_in(path, directory))
    }
}

/// The finding of a fetched program that lost its execute bit, with the entry that trusts it.
pub(super) fn stripped(file: &StoredFile, location: Location) -> Finding {
    let (path, remote) = (&file.path, file.remote.as_ref().map(ToString::to_string).unwrap_or_default());
    let entry = Config::path_entry(path);
    let sha256 = &file.sha256;
    let message = format!("`{path}` (sha256 {sha256}) is a program from {remote}, so its execute bit was removed");
    let hint = format!("if you trust it, write `trust-exec: [{entry}]` in {FILE_NAME}");
    Finding::at(Rule::StrippedExecutable, location, Failure::new(message).hint(hint))
}

/// A rewritten reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Rewritten {
    /// The file of the result that has it.
    pub path: String,
    /// Its location in the original file.
    #[serde(flatten)]
    pub location: Location,
    /// The old text, without secrets.
    pub from: String,
    /// The new text.
    pub to: String,
}
