//! What is written, and what is known about it.

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

/// What is written, by path from the top of the tree; none for what is removed.
pub(crate) type Changes = BTreeMap<String, Option<File>>;

/// Returns a tree as it is once changes are written.
pub(crate) fn changed(mut tree: OverlayTree, changes: &Changes) -> OverlayTree {
    for (place, file) in changes {
        match file {
            Some(file) => tree.file(place, &file.bytes, file.executable),
            None => tree.remove(place),
        }
    }
    tree
}

/// One file of a result.
#[derive(Debug, Clone)]
pub(crate) struct File {
    /// Its bytes.
    pub bytes: Rc<[u8]>,
    /// Whether its mode is 100755.
    pub executable: bool,
    /// The blob of this repository that holds just these bytes, where one does.
    pub blob: Option<String>,
}

impl File {
    /// Returns a lock as it is written.
    pub(crate) fn of(lock: &Lock) -> Result<File> {
        Ok(File::plain(lock.render()?.into_bytes()))
    }

    /// Returns a plain file.
    pub(crate) fn plain(bytes: impl Into<Rc<[u8]>>) -> File {
        File { bytes: bytes.into(), executable: false, blob: None }
    }
}

/// Returns a file of a tree with edits.
pub(super) fn edited(tree: &dyn Tree, place: &str, edits: &[Edit<'_>]) -> Result<File> {
    let bytes = kustomization::edit(&tree.read(place)?, edits)
        .map_err(|error| Failure::new(format!("cannot edit `{place}`: {}", error.message)))?;
    let executable = tree.entry(place)? == Some(Entry::File { executable: true });
    Ok(File { executable, ..File::plain(bytes) })
}

/// The roots of a graph at their places, edited, with everything that they reach.
#[derive(Default)]
pub(super) struct Localized {
    /// The files by their path in the result, each with the lock's entry for it.
    pub files: BTreeMap<String, (File, StoredFile)>,
    /// The directory of the first root in the result.
    pub target: String,
    /// Every reference that was changed, in the order of the files.
    pub rewritten: Vec<Rewritten>,
    /// What was brought in, as the lock records it.
    pub remotes: Remotes,
    /// The files of the user (paths in the tree of the source) among them.
    pub local_files: BTreeSet<String>,
    /// The directories of charts that were brought in, and the attributes beside them. In place they belong to the user
    /// from then on.
    pub vendored: BTreeSet<String>,
    /// The paths that unchanged references lead to, and that may be missing.
    pub kept: HashSet<String>,
    /// The fetched files that stay executable, because the user trusts them.
    pub trusted: HashSet<FileId>,
    pub findings: Vec<Finding>,
}

impl Localized {
    /// Returns a tree with these files.
    pub(super) fn on(&self, mut tree: OverlayTree) -> OverlayTree {
        self.files.iter().for_each(|(place, (file, _))| tree.file(place, &file.bytes, file.executable));
        tree
    }

    /// Returns whether a file of the result was brought in, or belongs to what was.
    pub(super) fn is_brought(&self, place: &str) -> bool {
        !self.local_files.contains(place)
    }

    /// Returns the directory of the chart that a file belongs to, if the chart is the user's from then on.
    pub(super) fn vendored(&self, place: &str) -> Option<&str> {
        let mut directories = self.vendored.iter().map(String::as_str);
        directories.find(|directory| path::is_in(place, directory))
    }
}

/// Returns what to say of a program that was brought in and lost its execute bit, with the entry that trusts it.
pub(super) fn stripped(file: &StoredFile, location: Location) -> Finding {
    let (path, remote) = (&file.path, file.remote.as_ref().map(ToString::to_string).unwrap_or_default());
    let entry = Config::path_entry(path);
    let sha256 = &file.sha256;
    let message = format!("`{path}` (sha256 {sha256}) is a program from {remote}, so its execute bit was removed");
    let help = format!("if you trust it, write `trust-exec: [{entry}]` in {FILE_NAME}");
    Finding::at(Rule::StrippedExecutable, location, message, vec![help])
}

/// A reference that was changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Rewritten {
    /// The file of the result that holds it.
    pub path: String,
    /// Where it stands in the original file.
    #[serde(flatten)]
    pub location: Location,
    /// The old text, without secrets.
    pub from: String,
    /// The new text.
    pub to: String,
}
