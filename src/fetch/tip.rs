//! What the tip of the branch already holds: remote files and remote roots that were localized
//! before, taken back from there instead of from the network.
//!
//! A localized kustomization differs from the upstream one in the references that were rewritten.
//! The lock keeps what each said, so the text can be turned back; localizing it again gives the
//! same bytes. What was never stored is not known to be absent: asking for it falls back to the
//! repository itself.

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
use crate::record::history::{is_ours, tip};
use crate::record::{Lock, Mode, StoredFile, sha256_hex};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::reference::{RepoSpec, Upstream};
use crate::tree::git::GitTree;
use crate::tree::{self, Entry, Resolved, SharedTree, Tree, license, path};

/// A NEW_DIR of the tip and its lock.
#[derive(Clone)]
pub(crate) struct Tip {
    /// The tip's tree.
    pub tree: SharedTree,
    /// Where NEW_DIR lies in it.
    pub directory: String,
    /// The lock that was found there.
    pub lock: Rc<Lock>,
    /// Whether it was made with the licences of what it holds.
    pub has_licenses: bool,
}

impl Tip {
    /// Takes a directory of a commit of this repository. `whole` is the tree of that commit.
    pub(crate) fn here(here: &Rc<LocalRepo>, whole: ObjectId, directory: ObjectId, lock: Rc<Lock>) -> Result<Tip> {
        let whole = GitTree::of_here(here.clone(), whole)?;
        Ok(Tip {
            has_licenses: Config::of(&whole, "").is_ok_and(|config| !config.no_licenses),
            tree: Rc::new(whole.beside(directory)),
            directory: String::new(),
            lock,
        })
    }

    /// Returns the tips of all localized branches that this repository shows. A lock that was edited by hand says nothing.
    pub(super) fn of_branches(here: &Rc<LocalRepo>) -> Result<Vec<Tip>> {
        let refs = here.refs(&["refs/heads", "refs/remotes"])?;
        let ours: BTreeSet<String> =
            refs.into_iter().filter(|(name, _)| is_ours(name)).map(|(_, one)| one.id).collect();
        let mut tips = Vec::new();
        for commit in ours {
            let Some(id) = here.commit(&commit)? else { continue };
            let tree = object_id(&id.tree)?;
            // One that holds copies, or was not made by us, has nothing for this.
            let state = tip::examine(here, here.repository()?, &commit, &commit, tree, true);
            if let Some(lock) = state.ok().and_then(|state| state.lock) {
                tips.push(Tip::here(here, tree, tree, lock)?);
            }
        }
        Ok(tips)
    }

    /// Returns the bytes of a remote file that was localized before.
    pub(crate) fn file(&self, upstream: &Upstream, sha256: &str) -> Option<Vec<u8>> {
        self.lock.files.iter().filter(|file| file.remote.as_ref() == Some(upstream) && file.source.is_none()).find_map(
            |file| {
                let bytes = self.read(file).ok()?;
                // A plugin configuration may have been rewritten.
                let bytes = restored(bytes, file)?;
                (sha256_hex(&bytes) == sha256).then_some(bytes)
            },
        )
    }

    /// Returns the files of a repository or a chart that were localized before; `None` if there are none.
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

    /// Returns a chart that was localized before, of the archive with this digest; none unless all of its files are still
    /// what the lock says.
    pub(crate) fn archive(&self, chart: &ChartRef, sha256: &str) -> Option<Archive> {
        let entry = chart.locked(&self.lock).filter(|entry| entry.digest.hex() == sha256)?;
        let files = self.repository(&chart.upstream())?.into_iter();
        let files = files.map(|(path, file)| Some((path, self.read(&file).ok()?.into())));
        let files: BTreeMap<String, Rc<[u8]>> = files.collect::<Option<_>>()?;
        let (name, resolved) = archive::metadata(&files).ok()?;
        let archive = Archive { chart: chart.clone(), resolved, sha256: sha256.to_owned(), size: entry.size?, files };
        (name == chart.name).then_some(archive)
    }

    fn read(&self, file: &StoredFile) -> Result<Vec<u8>> {
        let place = path::join(&self.directory, &file.path);
        let bytes = self.tree.read(&place)?;
        if sha256_hex(&bytes) == file.sha256 {
            Ok(bytes)
        } else {
            Err(Failure::new(format!("`{place}` does not match its lock")))
        }
    }
}

/// Undoes what localizing did to a file. `None` if that is not possible, or if localizing the result would give other bytes:
/// a branch must not depend on what lies between.
fn restored(bytes: Vec<u8>, file: &StoredFile) -> Option<Vec<u8>> {
    if file.rewritten.is_empty() {
        return Some(bytes);
    }
    let localized = references(&bytes)?;
    let originals: Vec<Option<String>> =
        localized.iter().map(|reference| file.rewritten.get(&reference.value()).cloned()).collect();
    let upstream = edited(&bytes, &localized, &originals)?;
    let restored = references(&upstream)?;
    let values = localized.iter().zip(&originals);
    let values: Vec<Option<String>> =
        values.map(|(reference, original)| original.as_ref().map(|_| reference.value())).collect();
    let again = edited(&upstream, &restored, &values)?;
    (localized.len() == restored.len() && again == bytes).then_some(upstream)
}

/// Returns the references of a kustomization, or of a plugin configuration.
fn references(bytes: &[u8]) -> Option<Vec<Reference>> {
    match kustomization::read(bytes) {
        Ok(read) => Some(read.references),
        Err(_) => Some(kustomization::read_plugin(bytes).ok()?.references),
    }
}

/// Returns a file in which each reference has its value, if there is one for it.
fn edited(bytes: &[u8], references: &[Reference], values: &[Option<String>]) -> Option<Vec<u8>> {
    let pairs = references.iter().zip(values);
    let edits = pairs.filter_map(|(reference, value)| Some(Edit { spot: &reference.spot, value: value.clone()? }));
    kustomization::edit(bytes, &edits.collect::<Vec<_>>()).ok()
}

/// The part of a fetched repository that the tip holds.
pub(super) struct TipTree {
    pub(super) tip: Tip,
    /// From [`Tip::repository`].
    pub(super) files: BTreeMap<String, StoredFile>,
    pub(super) version: RepoSpec,
    pub(super) network: Rc<Network>,
    /// What to fetch for everything else.
    pub(super) request: GitRequest,
    pub(super) fetched: OnceCell<CheckoutTree>,
}

impl TipTree {
    fn fetched(&self) -> Result<&CheckoutTree> {
        if let Some(tree) = self.fetched.get() {
            return Ok(tree);
        }
        let fetched = self.network.fetch_one(&self.request)?;
        let (label, has_submodules) = (Upstream::git(&self.version).to_string(), self.version.submodules);
        let tree = CheckoutTree::open(&self.network, fetched, label, has_submodules)?;
        Ok(self.fetched.get_or_init(|| tree))
    }

    /// Returns whether a file lies below a path.
    fn has(&self, directory: &str) -> bool {
        let next = self.files.range(format!("{directory}/")..).next();
        directory.is_empty() || next.is_some_and(|(path, _)| path::is_in(path, directory))
    }

    /// Returns whether what was stored proves that there is nothing at `path`: a directory with one
    /// kustomization file has no other, and where files were localized, upstream had no
    /// `localized-files` in the way.
    fn known_absent(&self, path: &str) -> bool {
        let name = path::name(path);
        let directory = path::parent(path);
        let has_kustomization =
            kustomization::FILE_NAMES.iter().any(|name| self.files.contains_key(&path::join(directory, name)));
        has_kustomization && (kustomization::FILE_NAMES.contains(&name) || name == LOCALIZED_FILES)
    }
}

impl Tree for TipTree {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        if let Some(file) = self.files.get(path) {
            let executable = file.mode == Mode::Executable || file.stripped;
            return Ok(Some(Entry::File { executable }));
        }
        if self.has(path) {
            return Ok(Some(Entry::Directory));
        }
        if self.known_absent(path) { Ok(None) } else { self.fetched()?.entry(path) }
    }

    /// What was stored does not say what else there is.
    fn names(&self, directory: &str) -> Result<Vec<String>> {
        self.fetched()?.names(directory)
    }

    /// A lock lists the licences of every directory above a root.
    fn licenses(&self, directory: &str) -> Option<Vec<String>> {
        let is_root = |place: &&String| {
            kustomization::FILE_NAMES.contains(&path::name(place)) && path::is_in(path::parent(place), directory)
        };
        if !self.tip.has_licenses || !self.files.keys().any(|place| is_root(&place)) {
            return None;
        }
        let is_license = |place: &&String| {
            let beside = |name: &&str| self.files.contains_key(&path::join(path::parent(place), name));
            license::covered(place) == Some(directory)
                && (path::parent(place) == directory || !kustomization::FILE_NAMES.iter().any(beside))
        };
        Some(self.files.keys().filter(is_license).cloned().collect())
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        let Some(file) = self.files.get(path) else {
            return self.fetched()?.read(path);
        };
        if let Some(bytes) = self.tip.read(file).ok().and_then(|bytes| restored(bytes, file)) {
            return Ok(bytes);
        }
        // A licence may be a link, and is what that leads to.
        match tree::resolve(self.fetched()?, path)? {
            Resolved::File { path, .. } => self.fetched()?.read(&path),
            _ => self.fetched()?.read(path),
        }
    }

    fn label(&self, path: &str) -> String {
        format!("{}: {}", Upstream::git(&self.version), path::shown(path))
    }
}
