//! Takes files and roots that were localized before from the tip of a localized branch, instead of fetching them again.
//!
//! A localized kustomization differs from the one upstream in the references that were rewritten. The lock has the
//! original text of each, so the file can be restored; localizing it again gives the same bytes. A file that was never
//! localized may exist upstream, so a request for it goes to the repository itself.

use std::cell::OnceCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use gix::ObjectId;

use super::Network;
use super::checkout::CheckoutTree;
use super::git::GitRequest;
use crate::config::Config;
use crate::git::{LocalRepo, object_id};
use crate::graph::{Archive, ChartRef, archive};
use crate::kustomization::{self, Edit, Reference};
use crate::message::failure::{Failure, Result};
use crate::record::history::{is_localized_branch, tip};
use crate::record::{Lock, Mode, StoredFile, sha256_hex};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::reference::{RepoSpec, Upstream};
use crate::tree::git::GitTree;
use crate::tree::{self, Entry, Resolved, SharedTree, Tree, license, path};

/// A NEW_DIR of the tip, with its lock.
#[derive(Clone)]
pub(crate) struct Tip {
    /// The tree of the tip.
    pub tree: SharedTree,
    /// The path of NEW_DIR in the tree.
    pub directory: String,
    /// The lock of NEW_DIR.
    pub lock: Rc<Lock>,
    /// Whether licenses were localized with it.
    pub has_licenses: bool,
}

impl Tip {
    /// The NEW_DIR with the tree `directory` in a commit of this repository. `whole` is the tree of the commit, which
    /// has the configuration.
    pub(crate) fn from_commit(
        repo: &Rc<LocalRepo>,
        whole: ObjectId,
        directory: ObjectId,
        lock: Rc<Lock>,
    ) -> Result<Tip> {
        let whole = GitTree::of_local(repo.clone(), whole)?;
        Ok(Tip {
            // If the configuration cannot be read, licenses are looked up in the repository itself.
            has_licenses: Config::of(&whole, "").is_ok_and(|config| !config.no_licenses),
            tree: Rc::new(whole.beside(directory)),
            directory: String::new(),
            lock,
        })
    }

    /// The tips of all localized branches in this repository, local and remote-tracking, which save fetching what they
    /// have. A tip whose lock was edited is skipped; an edited file is noticed when it is read.
    pub(super) fn of_branches(repo: &Rc<LocalRepo>) -> Result<Vec<Tip>> {
        let refs = repo.refs(&["refs/heads", "refs/remotes"])?;
        // Several refs may point to one commit.
        let localized: BTreeSet<String> =
            refs.into_iter().filter(|(name, _)| is_localized_branch(name)).map(|(_, tip)| tip.id).collect();
        let mut tips = Vec::new();
        for commit in localized {
            let Some(id) = repo.commit(&commit)? else { continue };
            let tree = object_id(&id.tree)?;
            // A branch with copies, or one that another program made, has no usable lock.
            let state = tip::examine(repo, repo.repository()?, &commit, &commit, tree, tip::Content::InPlace);
            if let Some(lock) = state.ok().and_then(|state| state.lock) {
                tips.push(Tip::from_commit(repo, tree, tree, lock)?);
            }
        }
        Ok(tips)
    }

    /// The bytes of a remote file with the digest `sha256`, from its localized file. `None` if the tip does not have
    /// them.
    pub(crate) fn file(&self, upstream: &Upstream, sha256: &str) -> Option<Vec<u8>> {
        self.lock.files.iter().filter(|file| file.remote.as_ref() == Some(upstream) && file.source.is_none()).find_map(
            |file| {
                let bytes = self.read(file).ok()?;
                // A plugin configuration may have rewritten references.
                let bytes = restored(bytes, file)?;
                (sha256_hex(&bytes) == sha256).then_some(bytes)
            },
        )
    }

    /// The files of a repository or chart that were localized before, by their path upstream. `None` if there are none.
    pub(crate) fn repository(&self, source: &Upstream) -> Option<BTreeMap<String, StoredFile>> {
        let files: BTreeMap<String, StoredFile> = self
            .lock
            .files
            .iter()
            .filter(|file| file.remote.as_ref() == Some(source))
            .filter_map(|file| Some((file.source.clone()?, file.clone())))
            .collect();
        (!files.is_empty()).then_some(files)
    }

    /// A chart that was localized before from the archive with this digest. `None` unless all of its files match the
    /// lock.
    pub(crate) fn archive(&self, chart: &ChartRef, sha256: &str) -> Option<Archive> {
        let entry = chart.locked(&self.lock).filter(|entry| entry.digest.hex() == sha256)?;
        let files = self.repository(&chart.upstream())?.into_iter();
        let files = files.map(|(path, file)| Some((path, self.read(&file).ok()?.into())));
        let files: BTreeMap<String, Rc<[u8]>> = files.collect::<Option<_>>()?;
        let (name, resolved) = archive::metadata(&files).ok()?;
        let archive = Archive { chart: chart.clone(), resolved, sha256: sha256.to_owned(), size: entry.size?, files };
        // As `helm::unpack` refuses an archive of another chart.
        (name == chart.name).then_some(archive)
    }

    /// The bytes of a localized file. Fails if they do not match the lock.
    fn read(&self, file: &StoredFile) -> Result<Vec<u8>> {
        let path = path::join(&self.directory, &file.path);
        let bytes = self.tree.read(&path)?;
        if sha256_hex(&bytes) == file.sha256 {
            Ok(bytes)
        } else {
            Err(Failure::new(format!("`{path}` does not match its lock")))
        }
    }
}

/// The upstream bytes of a localized file: each reference has its original text again, from the lock. `None` if that is
/// not possible, or if localizing the result would give other bytes.
fn restored(bytes: Vec<u8>, file: &StoredFile) -> Option<Vec<u8>> {
    if file.rewritten.is_empty() {
        return Some(bytes);
    }
    let localized = references(&bytes)?;
    let originals: Vec<Option<String>> =
        localized.iter().map(|reference| file.rewritten.get(&reference.value()).cloned()).collect();
    let upstream = edited(&bytes, &localized, &originals)?;
    let restored = references(&upstream)?;
    // Localizing the result must give the same bytes: the content of a branch must not depend on earlier runs.
    let pairs = localized.iter().zip(&originals);
    let localized_texts: Vec<Option<String>> =
        pairs.map(|(reference, original)| original.as_ref().map(|_| reference.value())).collect();
    let again = edited(&upstream, &restored, &localized_texts)?;
    (localized.len() == restored.len() && again == bytes).then_some(upstream)
}

/// The references of a kustomization or plugin configuration. `None` if it cannot be parsed.
fn references(bytes: &[u8]) -> Option<Vec<Reference>> {
    match kustomization::read(bytes) {
        Ok(read) => Some(read.references),
        Err(_) => Some(kustomization::read_plugin(bytes).ok()?.references),
    }
}

/// The file with each reference replaced by its value, if it has one.
fn edited(bytes: &[u8], references: &[Reference], values: &[Option<String>]) -> Option<Vec<u8>> {
    let pairs = references.iter().zip(values);
    let edits = pairs.filter_map(|(reference, value)| Some(Edit { spot: &reference.spot, value: value.clone()? }));
    kustomization::edit(bytes, &edits.collect::<Vec<_>>()).ok()
}

/// A repository of which the tip has some files. The others are fetched when they are read.
pub(super) struct TipTree {
    pub(super) tip: Tip,
    pub(super) files: BTreeMap<String, StoredFile>,
    pub(super) version: RepoSpec,
    pub(super) network: Rc<Network>,
    /// The request that fetches everything else.
    pub(super) request: GitRequest,
    pub(super) fetched: OnceCell<CheckoutTree>,
}

impl TipTree {
    /// The repository itself, for files that the tip does not have. It is fetched when it is first needed.
    fn fetched(&self) -> Result<&CheckoutTree> {
        if let Some(tree) = self.fetched.get() {
            return Ok(tree);
        }
        let fetched = self.network.fetch_one(&self.request)?;
        let tree = CheckoutTree::open_root(&self.network, fetched, &self.version)?;
        Ok(self.fetched.get_or_init(|| tree))
    }

    /// Whether a file is below a path.
    fn has(&self, directory: &str) -> bool {
        let next = self.files.range(format!("{directory}/")..).next();
        directory.is_empty() || next.is_some_and(|(path, _)| path::is_in(path, directory))
    }

    /// Whether the localized files prove that `path` does not exist upstream.
    fn is_known_absent(&self, path: &str) -> bool {
        let name = path::name(path);
        let directory = path::parent(path);
        let has_kustomization =
            kustomization::FILE_NAMES.iter().any(|name| self.files.contains_key(&path::join(directory, name)));
        // A directory has one kustomization only, and upstream has no `localized-files` of its own.
        has_kustomization && (kustomization::FILE_NAMES.contains(&name) || name == LOCALIZED_FILES)
    }
}

impl Tree for TipTree {
    /// Most paths are answered without fetching: those of localized files, and those that these prove to be absent.
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        if let Some(file) = self.files.get(path) {
            let executable = file.mode == Mode::Executable || file.stripped;
            return Ok(Some(Entry::File { executable }));
        }
        if self.has(path) {
            return Ok(Some(Entry::Directory));
        }
        if self.is_known_absent(path) { Ok(None) } else { self.fetched()?.entry(path) }
    }

    /// The localized files do not tell which other files there are, so the repository is fetched.
    fn names(&self, directory: &str) -> Result<Vec<String>> {
        self.fetched()?.names(directory)
    }

    /// The licenses that a root below `directory` gets from it, by the localized files. `None` if they do not tell: the
    /// licenses of a directory were localized only if a root is in it or below it.
    fn licenses(&self, directory: &str) -> Option<Vec<String>> {
        let mut files = self.files.keys();
        let has_root = files.any(|file| {
            kustomization::FILE_NAMES.contains(&path::name(file)) && path::is_in(path::parent(file), directory)
        });
        if !self.tip.has_licenses || !has_root {
            return None;
        }
        let licenses = self.files.keys().filter(|file| {
            let parent = path::parent(file);
            let is_in_root =
                || kustomization::FILE_NAMES.iter().any(|name| self.files.contains_key(&path::join(parent, name)));
            // A directory such as `LICENSES` belongs to the one above it, unless it is a root itself.
            license::licensed_directory(file) == Some(directory) && (parent == directory || !is_in_root())
        });
        Some(licenses.cloned().collect())
    }

    /// The bytes of a file upstream: restored from its localized file if the tip has it, otherwise fetched.
    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let Some(file) = self.files.get(path) else {
            return self.fetched()?.read(path);
        };
        if let Some(bytes) = self.tip.read(file).ok().and_then(|bytes| restored(bytes, file)) {
            return Ok(bytes);
        }
        // A file that cannot be restored is fetched. A license may be a link upstream, and its localized file has the
        // content of the target.
        match tree::resolve(self.fetched()?, path)? {
            Resolved::File { path, .. } => self.fetched()?.read(&path),
            _ => self.fetched()?.read(path),
        }
    }

    fn label(&self, path: &str) -> String {
        format!("{}: {}", Upstream::git(&self.version), path::shown(path))
    }
}
