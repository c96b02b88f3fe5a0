//! The mend: what a working tree needs so that `check` finds nothing remote in it that is neither
//! localized nor locked.
//!
//! [`Ground`] is what both ways begin with: the files on disk, where a walk starts, the lock at the
//! top. [`lock`] brings the lock up to date,
//! [`update`] says which of its entries are resolved again, [`in_place`] localizes in the working tree.

mod conflict;
pub mod in_place;
pub mod lock;
pub mod update;

use std::collections::{BTreeSet, HashSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::commit::working::{self, Change};
use crate::config::Config;
use crate::failure::{self, Failure, Failures, Result, shown};
use crate::finding::WarningId;
use crate::git::LocalRepo;
use crate::kustomization;
use crate::localize;
use crate::record::lock::Merged;
use crate::record::{LOCK_NAME, Lock};
use crate::reference::place::LOCALIZED_FILES;
use crate::tree::objects::ObjectTree;
use crate::tree::working::WorkingTree;
use crate::tree::{self, Entry, Listing, Resolved, SharedTree, Tree, path};
use crate::walk::{Explored, Graph, Source, Trouble, TroubleKind, Warning};

/// What is mended: the working tree, or for a branch of ours the source commit.
pub struct Ground {
    /// The repository.
    pub here: Rc<LocalRepo>,
    /// The top of the working tree; none where a commit is localized.
    pub top: Option<PathBuf>,
    /// Its files.
    pub tree: SharedTree,
    /// What the team has decided.
    pub config: Config,
    /// The lock at the top, if there is one.
    pub lock: Option<Rc<Lock>>,
    /// What the two sides of a lock in conflict changed, and not to the same. `lock` is what both come to.
    pub both: Vec<Failure>,
    /// What is on disk instead of the lock, where that is in conflict.
    conflict: Option<Vec<u8>>,
    /// All kustomizations but those in `localized-files` of ours, sorted.
    pub kustomizations: Vec<String>,
    /// The kustomizations that a sparse checkout leaves out, sorted: nobody knows here what they
    /// reference.
    pub hidden: Vec<String>,
    /// The kustomizations that no text can name, as they can be shown: nobody looks at them.
    pub unnameable: Vec<String>,
    /// Every directory that a file of the lock lies in, at any depth.
    owned: HashSet<String>,
    /// The working tree, where it is one.
    disk: Option<Rc<WorkingTree>>,
}

impl Ground {
    /// Finds the working tree that we were started in.
    ///
    /// # Errors
    /// When there is none, or its configuration or lock cannot be read.
    pub fn find() -> Result<Ground, Failures> {
        Ground::open(false)
    }

    /// Does the same, and brings the two sides of a lock together that git could not merge.
    ///
    /// # Errors
    /// As [`Ground::find`], and when a side of the lock cannot be read.
    pub fn find_merging() -> Result<Ground, Failures> {
        Ground::open(true)
    }

    fn open(merges: bool) -> Result<Ground, Failures> {
        let here = Rc::new(LocalRepo::discover()?.ok_or_else(|| {
            Failure::new("this is not a git repository, so there is no place for a lock")
                .hint("run it in a repository")
        })?);
        let top = here.top.clone().ok_or_else(|| {
            Failure::new("this repository has no working tree to mend")
                .hint("run it in a clone, or in a linked worktree")
        })?;
        // Not in the middle of what another run writes.
        let _alone = here.alone()?;
        let tree = Rc::new(WorkingTree::open(here.clone())?);
        let merged = if merges {
            conflict::merged(&here, &*tree)?
        } else {
            None
        };
        let is_merged = merged.is_some();
        let mut ground = Ground::of(here, Some(top), tree.clone(), &*tree, merged)?;
        if is_merged {
            let there = tree.entry(LOCK_NAME)?.is_some();
            ground.conflict = Some(if there {
                tree.read(LOCK_NAME)?
            } else {
                Vec::new()
            });
        }
        ground.disk = Some(tree.clone());
        for (place, is_left_out) in ground.here.tracked_paths()? {
            if is_left_out
                && kustomization::FILE_NAMES.contains(&path::name(&place))
                && !ground.is_owned(&place)
                && tree.entry(&place)?.is_none()
            {
                ground.hidden.push(place);
            }
        }
        ground.hidden.sort();
        Ok(ground)
    }

    /// Takes a commit.
    ///
    /// # Errors
    /// When its configuration or lock cannot be read.
    pub fn at(here: Rc<LocalRepo>, tree: Rc<ObjectTree>) -> Result<Ground, Failures> {
        Ground::of(here, None, tree.clone(), &*tree, None)
    }

    fn of(
        here: Rc<LocalRepo>,
        top: Option<PathBuf>,
        tree: SharedTree,
        listing: &dyn Listing,
        merged: Option<Merged>,
    ) -> Result<Ground, Failures> {
        let config = Config::of(&*tree, "")?;
        let (merged, both) = match merged {
            Some(merged) => {
                let both = merged.both.iter().map(conflict::unclear).collect();
                (Some(merged.lock), both)
            }
            None => (None, Vec::new()),
        };
        let lock = match tree.entry(LOCK_NAME)? {
            _ if merged.is_some() => merged.map(Rc::new),
            None => None,
            Some(Entry::File { .. }) => {
                Some(Rc::new(Lock::parse(&tree.read(LOCK_NAME)?, LOCK_NAME)?))
            }
            Some(_) => {
                return Err(Failure::new(format!("`{LOCK_NAME}` is not a regular file"))
                    .hint("move it away: the lock is written there")
                    .into());
            }
        };
        if let Some(target) = lock.as_ref().and_then(|lock| lock.target.as_deref()) {
            return Err(Failure::new(format!(
                "`{LOCK_NAME}` at the top is that of a copy of `{target}`, whose references are localized already"
            ))
            .hint("run it in the repository that was localized")
            .into());
        }
        let mut ground = Ground {
            here,
            top,
            config,
            lock,
            both,
            conflict: None,
            kustomizations: Vec::new(),
            hidden: Vec::new(),
            unnameable: listing.unnameable(&kustomization::FILE_NAMES)?,
            owned: HashSet::new(),
            disk: None,
            tree,
        };
        for file in ground.lock.iter().flat_map(|lock| &lock.files) {
            let mut directory = path::parent(&file.path);
            while !directory.is_empty() && ground.owned.insert(directory.to_owned()) {
                directory = path::parent(directory);
            }
        }
        for place in listing.kustomizations()? {
            if !ground.is_owned(&place) && !ground.is_flux(&place)? {
                ground.kustomizations.push(place);
            }
        }
        Ok(ground)
    }

    /// Makes changes in the working tree, and removes what dead runs left there.
    ///
    /// # Errors
    /// When something cannot be written, or the lock or a file that would be written over is no longer what the changes
    /// follow from: everything is then as before.
    pub fn apply(&self, changes: &[Change]) -> Result<()> {
        match &self.top {
            Some(top) => {
                let _alone = self.here.alone()?;
                self.refuse_other_lock(top, changes)?;
                self.refuse_edited(changes)?;
                working::apply(top, changes)
            }
            None => Err(Failure::new("a commit cannot be changed")),
        }
    }

    /// Refuses to write over a lock that another run has written meanwhile, unless it is the very same.
    fn refuse_other_lock(&self, top: &Path, changes: &[Change]) -> Result<()> {
        let now = std::fs::read(top.join(LOCK_NAME)).ok();
        let is_ours = changes.iter().any(|change| {
            let to = change.to.as_ref().map(|(bytes, _)| &bytes[..]);
            change.path == LOCK_NAME && to == now.as_deref()
        });
        if changes.is_empty() || is_ours || self.is_lock(now.as_deref()) {
            Ok(())
        } else {
            Err(changed_meanwhile())
        }
    }

    /// Refuses to write over a file that somebody has edited since it was read, unless it is what would be written.
    fn refuse_edited(&self, changes: &[Change]) -> Result<()> {
        let Some(disk) = &self.disk else {
            return Ok(());
        };
        let is_done = |change: &Change| {
            let to = change.to.as_ref().map(|(bytes, _)| &bytes[..]);
            disk.read(&change.path).ok().as_deref() == to
        };
        let is_edited = |change: &&Change| !disk.is_as_read(&change.path) && !is_done(change);
        match changes.iter().find(is_edited) {
            None => Ok(()),
            Some(change) => Err(Failure::new(format!(
                "`{}` was edited meanwhile",
                shown(&change.path)
            ))
            .hint("run the same command again")),
        }
    }

    /// Says whether the lock is in conflict on disk.
    #[must_use]
    pub fn is_in_conflict(&self) -> bool {
        self.conflict.is_some()
    }

    /// Says whether this is what the lock holds that was read.
    fn is_lock(&self, bytes: Option<&[u8]>) -> bool {
        if let Some(conflict) = &self.conflict {
            return bytes.unwrap_or_default() == conflict;
        }
        match (bytes, &self.lock) {
            (None, None) => true,
            (Some(bytes), Some(lock)) => {
                Lock::parse(bytes, LOCK_NAME).is_ok_and(|now| now == **lock)
            }
            _ => false,
        }
    }

    /// Says of what went wrong why: another run may have changed the files that were looked at.
    pub(crate) fn explain(&self, failures: Failures) -> Failures {
        let now = self
            .top
            .as_ref()
            .map(|top| std::fs::read(top.join(LOCK_NAME)).ok());
        match now {
            Some(now) if !self.is_lock(now.as_deref()) => changed_meanwhile().into(),
            _ => failures,
        }
    }

    /// Returns where a walk starts, in or below `paths`, or of the whole tree when there are none.
    ///
    /// # Errors
    /// As [`Config::starting_points`].
    pub fn starts(&self, paths: &[String]) -> Result<Vec<String>> {
        self.config
            .starting_points(&*self.tree, paths, &self.kustomizations)
    }

    /// Returns the directories of the kustomizations, sorted.
    fn roots(&self) -> BTreeSet<&str> {
        let places = self.kustomizations.iter();
        places.map(|place| path::parent(place)).collect()
    }

    /// Returns the tree as a walk takes it: the whole repository bounds what is reached.
    #[must_use]
    pub fn source(&self) -> Source {
        Source {
            tree: self.tree.clone(),
            scope: String::new(),
            repository: None,
        }
    }

    /// Says whether the lock holds something below `directory`.
    #[must_use]
    pub fn owns(&self, directory: &str) -> bool {
        self.owned.contains(directory)
    }

    /// Says whether a path lies in a `localized-files` of ours.
    #[must_use]
    pub fn is_owned(&self, place: &str) -> bool {
        let mut above = path::parent(place);
        while !above.is_empty() {
            if path::name(above) == LOCALIZED_FILES && self.owns(above) {
                return true;
            }
            above = path::parent(above);
        }
        false
    }

    /// Says whether a file that is named like a kustomization is an object of Flux.
    fn is_flux(&self, place: &str) -> Result<bool> {
        Ok(match tree::resolve(&*self.tree, place)? {
            Resolved::File { path, .. } => kustomization::is_flux_object(&self.tree.read(&path)?),
            _ => false,
        })
    }
}

fn changed_meanwhile() -> Failure {
    Failure::new(format!(
        "`{LOCK_NAME}` was changed by somebody else meanwhile"
    ))
    .hint("run the same command again")
}

/// What a walk could not follow, by what it means for a mend.
pub(crate) struct Troubles {
    /// Something remote could not be brought in: nothing can be said about it.
    pub(crate) remote: Vec<Failure>,
    /// Something in the tree itself is wrong. It keeps nothing else from being mended.
    pub(crate) local: Vec<Failure>,
    /// The kustomizations that nobody could read, so that nobody knows what they reference.
    pub(crate) unread: Vec<String>,
}

impl Troubles {
    /// Sorts out the troubles of a walk.
    pub(crate) fn of(ground: &Ground, explored: &Explored) -> Troubles {
        let mut troubles = Troubles {
            remote: Vec::new(),
            local: Vec::new(),
            unread: ground.hidden.clone(),
        };
        let unnameable = ground.unnameable.iter();
        troubles.local.extend(unnameable.map(|place| {
            let place = failure::shown(place);
            Failure::new(format!(
                "`{place}` was not looked at: its path is not UTF-8"
            ))
            .hint("rename its directory")
        }));
        let graph = &explored.graph;
        let mut seen = BTreeSet::new();
        for trouble in &explored.troubles {
            if !seen.insert(trouble.failure.clone()) {
                continue;
            }
            if is_remote(graph, trouble) {
                troubles.remote.push(trouble.failure.clone());
                continue;
            }
            let hides = match trouble.kind {
                TroubleKind::Problem(_) | TroubleKind::Failed | TroubleKind::Reshaped(_) => true,
                TroubleKind::SeveralKustomizations { .. } => trouble.edge.is_none(),
                _ => false,
            };
            if let Some(file) = trouble.file.filter(|_| hides) {
                troubles.unread.push(graph.label(file));
            } else if hides {
                troubles.unread.push(trouble.failure.message.clone());
            }
            troubles.local.push(trouble.failure.clone());
        }
        troubles.unread.dedup();
        troubles
    }

    /// Returns the local ones as warnings.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = Warning> {
        self.local.iter().map(|failure| Warning {
            id: WarningId::NotFollowed,
            location: failure.location.as_deref().cloned().unwrap_or_default(),
            message: failure.message.clone(),
        })
    }
}

/// Says whether a trouble is about something remote: a reference that names it, or what it holds. What a root of the
/// user's own tree names there is the user's own, wherever the reference stands: a plugin configuration may be of a URL.
fn is_remote(graph: &Graph, trouble: &Trouble) -> bool {
    // What is refused for the sake of safety stops everything.
    if trouble.kind == TroubleKind::Unsafe {
        return true;
    }
    let Some(root) = trouble.root else {
        return trouble.file.is_some_and(|file| graph.is_fetched(file));
    };
    let names_remote = |edge: usize| {
        let edge = graph.roots[root].edges.get(edge);
        edge.is_some_and(|edge| localize::is_remote(&edge.reference))
    };
    graph.sources[graph.roots[root].source].repository.is_some()
        || trouble.kind == TroubleKind::Chart
        || trouble.edge.is_some_and(|(_, edge)| names_remote(edge))
}
