//! The result of localizing: the files, and what is known about them.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::rc::Rc;

use serde::Serialize;

use crate::config::{Config, FILE_NAME};
use crate::graph::{FileId, Warning};
use crate::message::failure::Location;
use crate::message::finding::Rule;
use crate::record::{self, Left, Remote, StoredFile};

/// What a localized kustomization consists of.
pub(crate) struct Localized {
    /// Every file by its path in NEW_DIR, `.gitattributes` of `localized-files` included, the lock
    /// not.
    pub files: BTreeMap<String, ResultFile>,
    /// Every reference that was changed, in the order of the files.
    pub rewritten: Vec<Rewritten>,
    /// What was brought in, as the lock records it.
    pub remotes: Vec<Remote>,
    /// The target's directory in NEW_DIR.
    pub target: String,
    /// The local files (paths in the tree of the source) that are in use.
    pub local_files: BTreeSet<String>,
    /// The directories (paths in NEW_DIR) of charts that were brought in. In place they belong to the user from then
    /// on.
    pub vendored: BTreeSet<String>,
    /// What stays remote of a copy. In place this is unknown before all of the tree is walked.
    pub left: Vec<Left>,
    /// The programs from elsewhere that lost their execute bit.
    pub untrusted: Vec<Untrusted>,
    /// The fetched files that stay executable, because the user trusts them.
    pub trusted: HashSet<FileId>,
    /// The warnings.
    pub warnings: Vec<Warning>,
}

/// One file of the result.
#[derive(Debug, Clone)]
pub(crate) struct ResultFile {
    /// Its bytes.
    pub content: Content,
    /// Whether its mode is 100755.
    pub executable: bool,
    /// Whether it was brought in, may have to be executable, and is not trusted.
    pub stripped: bool,
    /// The label of the remote that it came from, if it was brought in.
    pub remote: Option<String>,
    /// Its path in the repository that it came from; none for a remote file, and none where the
    /// upstream text could not be recorded.
    pub source: Option<String>,
    /// What rewritten scalars of a remote kustomization said, by what they say now.
    pub rewritten: BTreeMap<String, String>,
}

/// Where the bytes of a file are.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// In this repository already, unchanged, as this blob.
    Stored(String, Rc<[u8]>),
    /// Here.
    Bytes(Rc<[u8]>),
}

impl Content {
    /// Returns the bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Content::Stored(_, bytes) | Content::Bytes(bytes) => bytes,
        }
    }
}

impl ResultFile {
    /// Returns the lock's entry for this file.
    pub(crate) fn record(&self, path: &str) -> StoredFile {
        StoredFile {
            path: path.to_owned(),
            executable: self.executable,
            stripped: self.stripped,
            sha256: record::sha256_hex(self.content.bytes()),
            remote: self.remote.clone(),
            source: self.source.clone(),
            rewritten: self.rewritten.clone(),
        }
    }
}

/// A program that was brought in and lost its execute bit.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Untrusted {
    /// The reference that leads there.
    pub location: Location,
    /// Its path in NEW_DIR.
    pub path: String,
    /// The SHA-256 of its bytes, in hex.
    pub sha256: String,
    /// The label of the remote that it came from.
    pub remote: String,
}

impl Untrusted {
    /// Returns what to say of it, with the entry that trusts it.
    pub(crate) fn warning(&self) -> Warning {
        Warning::new(
            Rule::StrippedExecutable,
            self.location.clone(),
            format!(
                "`{}` (sha256 {}) is a program from {}, so its execute bit was taken off; once it is trusted, write `trust-exec: [{}]` in {FILE_NAME}",
                self.path,
                self.sha256,
                self.remote,
                Config::path_entry(&self.path)
            ),
        )
    }
}

/// A reference that was changed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct Rewritten {
    /// The file in NEW_DIR that holds it.
    pub path: String,
    /// Where it stands in the original file.
    #[serde(flatten)]
    pub location: Location,
    /// The old text, without secrets.
    pub from: String,
    /// The new text.
    pub to: String,
}

/// One file that is written or removed.
#[derive(Debug, Clone)]
pub(crate) struct Change {
    /// Its path from the top of the working tree. No link on the way is followed; one that is there
    /// itself is replaced.
    pub path: String,
    /// What it holds afterwards and whether it can be executed; none when it is removed.
    pub to: Option<(Rc<[u8]>, bool)>,
}
