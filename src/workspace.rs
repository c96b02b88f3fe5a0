//! What a run starts from: the files of a commit, of the working tree, or anywhere on disk, with the configuration and
//! the lock that they hold.

mod conflict;
mod remotes;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

pub(crate) use remotes::{fetcher, fetcher_of, fetching, from_lock, remote_git};

use crate::config::{Config, FILE_NAME};
use crate::git::{CommitId, LocalRepo, Snapshot};
use crate::graph::{Source, Survey};
use crate::kustomization;
use crate::message::failure::{Failure, Failures, Result, short, shown};
use crate::record::lock::Merged;
use crate::record::{LOCK_NAME, Lock, history};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::tree::absence::Absences;
use crate::tree::checkout::Conversion;
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::{self, Entry, Resolved, SharedTree, Tree, path};

/// Files to start from, and what they say about localizing.
pub(crate) struct Workspace {
    /// Which files these are.
    pub files: Files,
    /// The files.
    pub tree: SharedTree,
    /// From the top of `tree` to the directory that we were started in.
    pub prefix: String,
    /// From the top of `tree` to that of the repository; none if there is no repository.
    pub top: Option<String>,
    /// What the team has decided.
    pub config: Config,
    /// The lock at the top of the repository, if there is one.
    pub lock: Option<Rc<Lock>>,
    /// What the two sides of a lock in conflict changed, and not to the same; none where there is no conflict. `lock` is
    /// what both come to.
    pub merged: Option<Vec<Failure>>,
    kustomizations: OnceCell<Vec<String>>,
    survey: OnceCell<Rc<Survey>>,
    /// The roots that are deployed, once that is asked for.
    pub deployed: OnceCell<BTreeSet<String>>,
    /// Every directory that a file of the lock lies in, at any depth, from the top of the repository.
    owned: HashSet<String>,
}

/// Which files a run starts from.
pub(crate) enum Files {
    /// Those of a commit.
    Commit {
        /// The repository.
        repo: Rc<LocalRepo>,
        /// The commit.
        id: CommitId,
        /// The revision that named it.
        rev: String,
        /// The full name of the ref that this is, if it is one.
        name: Option<String>,
        /// Whether it is HEAD by default: then the working tree should match it.
        is_head: bool,
        tree: Rc<GitTree>,
    },
    /// Those of the index.
    Index { repo: Rc<LocalRepo>, tree: Rc<GitTree> },
    /// Those of the working tree.
    WorkingTree {
        /// The repository.
        repo: Rc<LocalRepo>,
        /// The top of the working tree.
        top: PathBuf,
        /// Its files.
        tree: Rc<DiskTree>,
        /// What was on disk as the lock.
        lock: Option<Vec<u8>>,
    },
    Disk {
        /// The repository that we were started in, if it was one.
        repo: Option<Rc<LocalRepo>>,
        /// The directory that we were started in.
        cwd: PathBuf,
        /// All files.
        tree: Rc<DiskTree>,
    },
    /// Those of any tree, as of one in memory: the plan is made, and cannot be delivered.
    Tree(Rc<dyn Tree>),
}

impl Files {
    /// Opens files of a repository.
    pub(crate) fn open(repo: &Rc<LocalRepo>, what: &Snapshot) -> Result<Files> {
        let repo = repo.clone();
        match what {
            // No index is what an empty repository has, too.
            Snapshot::Index if repo.top.is_none() && !repo.index.exists() => {
                Err(Failure::new("this repository has no working tree, and no index to check")
                    .hint("check a commit instead: --rev REV"))
            }
            Snapshot::Index => Ok(Files::Index { tree: Rc::new(GitTree::of_index(repo.clone())?), repo }),
            Snapshot::WorkingTree => {
                let tree = Rc::new(DiskTree::of_working_tree(repo.clone())?);
                let top = repo.top.clone().unwrap_or_default();
                let lock = std::fs::read(top.join(LOCK_NAME)).ok();
                Ok(Files::WorkingTree { repo, top, tree, lock })
            }
            Snapshot::Commit { rev, .. } => Files::of_commit(repo, Some(rev)),
        }
    }

    /// Opens the commit that `rev` names, or HEAD.
    fn of_commit(repo: Rc<LocalRepo>, rev: Option<&str>) -> Result<Files> {
        let found = repo.named(rev.unwrap_or("HEAD"))?;
        let (id, name) = found.ok_or_else(|| match rev {
            None => Failure::new("this repository has no commit yet")
                .hint("commit your files first: git add . && git commit"),
            Some(rev) => unknown(rev),
        })?;
        let tree = Rc::new(GitTree::of_commit(&repo, &id)?);
        Ok(Files::Commit { repo, id, rev: rev.unwrap_or("HEAD").to_owned(), name, is_head: rev.is_none(), tree })
    }

    /// Returns the repository, if there is one.
    pub(crate) fn repo(&self) -> Option<&Rc<LocalRepo>> {
        match self {
            Files::Commit { repo, .. } | Files::Index { repo, .. } | Files::WorkingTree { repo, .. } => Some(repo),
            Files::Disk { repo, .. } => repo.as_ref(),
            Files::Tree(_) => None,
        }
    }

    /// Returns the files as they are stored.
    fn tree(&self) -> SharedTree {
        match self {
            Files::Commit { tree, .. } | Files::Index { tree, .. } => tree.clone(),
            Files::WorkingTree { tree, .. } | Files::Disk { tree, .. } => tree.clone(),
            Files::Tree(tree) => tree.clone(),
        }
    }

    /// Returns the files as git checks them out: those that a build reads in any clone. If that changes nothing they are
    /// those that are stored.
    pub(crate) fn checked_out(&self) -> SharedTree {
        self.as_checkout(true)
    }

    fn as_checkout(&self, refuses_filters: bool) -> SharedTree {
        match self {
            Files::Commit { tree, .. } | Files::Index { tree, .. } => {
                let is_same = !Conversion::new(refuses_filters, tree.hash()).applies_anywhere(&**tree);
                if is_same { tree.clone() } else { Rc::new(tree.checked_out(refuses_filters)) }
            }
            Files::WorkingTree { tree, .. } => Rc::new(tree.without_ignored()),
            Files::Disk { .. } | Files::Tree(_) => self.tree(),
        }
    }

    /// Returns which files of a repository these are; none where they are not of one.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        match self {
            Files::Commit { id, rev, .. } => Some(Snapshot::Commit { rev: rev.clone(), commit: id.commit.clone() }),
            Files::Index { .. } => Some(Snapshot::Index),
            Files::WorkingTree { .. } => Some(Snapshot::WorkingTree),
            Files::Disk { .. } | Files::Tree(_) => None,
        }
    }

    /// Returns what explains why a path is missing in `tree`, which has these files. What a commit lacks may be on disk
    /// where that should match it.
    pub(crate) fn absences(&self, tree: &SharedTree) -> Option<Absences> {
        let lacks_some = !matches!(self, Files::Commit { is_head: false, .. });
        Some(Absences::new(self.repo()?.clone(), tree.clone(), lacks_some))
    }
}

impl Workspace {
    /// Opens the commit that `rev` names, or HEAD.
    pub(crate) fn of_rev(repo: Rc<LocalRepo>, rev: Option<&str>) -> Result<Workspace, Failures> {
        let prefix = repo.prefix.trim_end_matches('/').to_owned();
        Workspace::of(Files::of_commit(repo, rev)?, prefix, Some(String::new()), None)
    }

    /// Opens the working tree that we were started in. With `merges`, the two sides of a lock that git could not merge
    /// are brought together.
    pub(crate) fn of_working_tree(merges: bool) -> Result<Workspace, Failures> {
        let repo = Rc::new(LocalRepo::discover()?.ok_or_else(|| {
            Failure::new("this is not a git repository, so there is no place for a lock").hint("run it in a repository")
        })?);
        if repo.top.is_none() {
            return Err(Failure::new("this repository has no working tree to change")
                .hint("run it in a clone, or in a linked worktree")
                .into());
        }
        history::refuse_checked_out(&repo)?;
        // Not while another run is writing.
        let _alone = repo.alone()?;
        let files = Files::open(&repo, &Snapshot::WorkingTree)?;
        let merged = match &files {
            Files::WorkingTree { tree, .. } if merges => conflict::merged(&repo, tree)?,
            _ => None,
        };
        let prefix = repo.prefix.trim_end_matches('/').to_owned();
        let workspace = Workspace::of(files, prefix, Some(String::new()), merged)?;
        workspace.refuse_foreign_lock()?;
        workspace.kustomizations()?;
        Ok(workspace)
    }

    /// Opens all files on disk. A repository is not needed, but if we were started in one, it tells which files are
    /// ours.
    pub(crate) fn of_disk() -> Result<Workspace, Failures> {
        let repo = LocalRepo::discover()?.map(Rc::new);
        let cwd = std::env::current_dir()
            .and_then(|cwd| cwd.canonicalize())
            .map_err(|error| Failure::new(format!("the current directory cannot be read: {error}")))?;
        let tree = Rc::new(DiskTree::of_machine(&cwd)?);
        let prefix = tree.path(&cwd)?;
        let top = repo.as_ref().and_then(|repo| repo.top.as_ref());
        let top = match top.and_then(|top| top.canonicalize().ok()) {
            Some(top) => Some(tree.path(&top)?),
            None => None,
        };
        Workspace::of(Files::Disk { repo, cwd, tree }, prefix, top, None)
    }

    /// Takes the files of any tree for those of a repository.
    pub(crate) fn of_tree(tree: Rc<dyn Tree>) -> Result<Workspace, Failures> {
        Workspace::of(Files::Tree(tree), String::new(), Some(String::new()), None)
    }

    /// Does so where something was found in the tree already.
    pub(crate) fn surveyed(survey: &Rc<Survey>) -> Result<Workspace, Failures> {
        let workspace = Workspace::of_tree(survey.tree())?;
        Ok(Workspace { survey: survey.clone().into(), ..workspace })
    }

    fn of(files: Files, prefix: String, top: Option<String>, merged: Option<Merged>) -> Result<Workspace, Failures> {
        let tree = files.tree();
        let config = Config::of(&*tree, top.as_deref().unwrap_or(&prefix))?;
        let lock = match (&merged, &top) {
            (Some(merged), _) => Some(Rc::new(merged.lock.clone())),
            (None, Some(top)) => Lock::at(&*tree, &path::join(top, LOCK_NAME))?,
            (None, None) => None,
        };
        let merged = merged.map(|merged| merged.both.iter().map(conflict::unclear).collect());
        let mut owned = HashSet::new();
        for file in lock.iter().flat_map(|lock| &lock.files) {
            let mut directory = path::parent(&file.path);
            while !directory.is_empty() && owned.insert(directory.to_owned()) {
                directory = path::parent(directory);
            }
        }
        let (kustomizations, survey, deployed) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Workspace { files, tree, prefix, top, config, lock, merged, kustomizations, survey, deployed, owned })
    }

    /// Refuses to change what was localized as a copy, and a lock that could not be written.
    pub(crate) fn refuse_foreign_lock(&self) -> Result<()> {
        let target = self.lock.as_ref().and_then(|lock| lock.target.as_deref());
        if let Some(target) = target {
            return Err(Failure::new(format!(
                "this repository is already a localized copy of `{target}` (`{LOCK_NAME}` has a `target`)"
            ))
            .hint("run it in the source repository"));
        }
        match self.tree.entry(LOCK_NAME)? {
            None | Some(Entry::File { .. }) => Ok(()),
            Some(_) if self.merged.is_some() => Ok(()),
            Some(_) => Err(Failure::new(format!("`{LOCK_NAME}` is not a regular file"))
                .hint("move it away: the lock is written there")),
        }
    }

    /// Returns the repository, if there is one.
    pub(crate) fn repo(&self) -> Option<&Rc<LocalRepo>> {
        self.files.repo()
    }

    /// Returns the files of the repository, where they can be listed.
    pub(crate) fn listing(&self) -> Option<&dyn Tree> {
        match &self.files {
            Files::Commit { tree, .. } | Files::Index { tree, .. } => Some(&**tree),
            Files::WorkingTree { tree, .. } => Some(&**tree),
            Files::Tree(tree) => Some(&**tree),
            Files::Disk { .. } => None,
        }
    }

    /// Returns the kustomizations of the repository but for those in `localized-files` directories, sorted; none outside of
    /// a repository.
    pub(crate) fn kustomizations(&self) -> Result<&[String]> {
        if let Some(kustomizations) = self.kustomizations.get() {
            return Ok(kustomizations);
        }
        let mut found = Vec::new();
        if let Some(listing) = self.listing() {
            for place in listing.kustomizations()? {
                if !self.is_owned(&place) && !self.is_flux(&place)? {
                    found.push(place);
                }
            }
        }
        Ok(self.kustomizations.get_or_init(|| found))
    }

    /// Returns the directories of the kustomizations, sorted.
    pub(crate) fn roots(&self) -> Result<BTreeSet<&str>> {
        Ok(self.kustomizations()?.iter().map(|place| path::parent(place)).collect())
    }

    /// Returns the kustomizations in a directory of the working tree that are not as HEAD has them, if it is HEAD that is
    /// opened by default: those that are not left out.
    pub(crate) fn uncommitted(&self, directory: &str) -> Result<Vec<String>> {
        let Files::Commit { repo, is_head: true, .. } = &self.files else {
            return Ok(Vec::new());
        };
        if repo.top.is_none() {
            return Ok(Vec::new());
        }
        // What decides is looked at next.
        let among = [directory, FILE_NAME, LOCK_NAME].map(str::to_owned);
        let mut found: Vec<String> = repo.changed(&among.into())?.into_iter().map(|(_, place)| place).collect();
        let is_kustomization = |place: &str| kustomization::FILE_NAMES.contains(&path::name(place));
        found.retain(|place| path::is_in(place, directory) && is_kustomization(place));
        found.retain(|place| self.config.starts(path::parent(place)));
        Ok(found)
    }

    /// Takes the files as a checkout gives them to builds: nothing is edited then. What a filter makes of one is left open.
    pub(crate) fn into_checkout(mut self) -> Workspace {
        self.set_tree(self.files.as_checkout(false));
        self
    }

    /// Replaces the files, and forgets what others before them said.
    pub(crate) fn set_tree(&mut self, tree: SharedTree) {
        if !Rc::ptr_eq(&self.tree, &tree) {
            self.survey = OnceCell::new();
        }
        self.tree = tree;
    }

    /// Returns what the files say, as far as it was asked for.
    pub(crate) fn survey(&self) -> &Rc<Survey> {
        self.survey.get_or_init(|| Rc::new(Survey::of(self.tree.clone())))
    }

    /// Returns the tree as a walk takes it: the whole repository bounds what is reached.
    pub(crate) fn source(&self) -> Source {
        Source { tree: self.tree.clone(), scope: String::new(), repository: None }
    }

    /// Returns whether the lock holds something below a directory of `tree`.
    pub(crate) fn owns(&self, directory: &str) -> bool {
        let from_top = self.top.as_deref().and_then(|top| path::below(directory, top));
        from_top.is_some_and(|directory| self.owned.contains(directory))
    }

    /// Returns whether a path of `tree` lies in one of our `localized-files` directories.
    pub(crate) fn is_owned(&self, place: &str) -> bool {
        let mut above = path::parent(place);
        while !above.is_empty() {
            if path::name(above) == LOCALIZED_FILES && self.owns(above) {
                return true;
            }
            above = path::parent(above);
        }
        false
    }

    /// Returns what explains why a path of a commit is missing.
    pub(crate) fn absences(&self) -> Option<Absences> {
        match self.files {
            Files::Commit { .. } => self.files.absences(&self.tree),
            _ => None,
        }
    }

    /// Returns whether the lock on disk is the one that was read. What is not on disk does not change.
    pub(crate) fn has_lock_as_read(&self) -> bool {
        match &self.files {
            Files::WorkingTree { top, lock, .. } => std::fs::read(top.join(LOCK_NAME)).ok() == *lock,
            _ => true,
        }
    }

    /// Replaces the failures if another run may have changed the files that were read.
    pub(crate) fn explain(&self, failures: Failures) -> Failures {
        if self.has_lock_as_read() { failures } else { changed_meanwhile().into() }
    }

    /// Returns whether a file that is named like a kustomization is an object of Flux.
    fn is_flux(&self, place: &str) -> Result<bool> {
        Ok(match tree::resolve(&*self.tree, place)? {
            Resolved::File { path, .. } => kustomization::is_flux_object(&self.tree.read(&path)?),
            _ => false,
        })
    }
}

/// Returns what to say where another run has written the lock since it was read.
pub(crate) fn changed_meanwhile() -> Failure {
    Failure::new(format!("`{LOCK_NAME}` was changed by another process")).hint("run the same command again")
}

/// Finds the repository, for work that must not reach the network.
pub(crate) fn repository_offline() -> Result<Rc<LocalRepo>> {
    match LocalRepo::discover_offline()? {
        Some(repo) => Ok(Rc::new(repo)),
        None => Err(Failure::new("this is not a git repository").hint("run it in a repository")),
    }
}

/// Returns the commit that a revision names.
pub(crate) fn commit(here: &LocalRepo, rev: &str) -> Result<CommitId> {
    here.commit(rev)?.ok_or_else(|| unknown(rev))
}

fn unknown(rev: &str) -> Failure {
    Failure::new(format!("unknown revision `{}`", shown(rev)))
        .hint("fetch it first, or name another one: git log --oneline --all")
}

/// Returns where a change to `base` begins: its merge base with the commit `of`, or HEAD; itself where the histories
/// have nothing in common.
pub(crate) fn merge_base(here: &LocalRepo, base: &str, of: Option<&str>) -> Result<CommitId> {
    let base = commit(here, base)?;
    let of = match of {
        None => here.commit("HEAD")?.map(|head| head.commit),
        Some(of) => Some(of.to_owned()),
    };
    let Some(of) = of else { return Ok(base) };
    match here.merge_base(&base.commit, &of)? {
        Some(found) => commit(here, &found),
        None if here.is_shallow()? => Err(Failure::new(format!(
            "this shallow clone lacks the merge base of {} and {}",
            short(&base.commit),
            short(&of)
        ))
        .hint("git fetch --unshallow")),
        None => Ok(base),
    }
}

/// Returns a path that was given on the command line as a path from the top.
pub(crate) fn from_top(repo: &LocalRepo, tree: &dyn Tree, text: &str) -> Result<String> {
    // A variable that is not set would otherwise narrow the check, or widen it.
    if text.is_empty() {
        return Err(Failure::new("empty PATH").hint("name a directory of this repository, or omit PATH to check all"));
    }
    tree::argument_path(tree, Some(""), &repo.prefix, text).ok_or_else(|| {
        Failure::new(format!("`{text}` is outside of the repository")).hint("name a directory of this repository")
    })
}
