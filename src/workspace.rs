//! The files that a run starts from, of a commit, the working tree or anywhere on disk, with their configuration and
//! lock.

mod conflict;
mod remotes;

use std::cell::OnceCell;
use std::collections::{BTreeSet, HashSet};
use std::path::PathBuf;
use std::rc::Rc;

pub(crate) use remotes::{fetch_options, fetcher, fetcher_of, from_lock, remote_git};

use crate::config::{Config, FILE_NAME};
use crate::git::{CommitId, LocalRepo, Snapshot};
use crate::graph::{ScopedTree, Survey};
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

/// The files that a run starts from, with their configuration and lock.
pub(crate) struct Workspace {
    /// The origin of the files.
    pub files: Files,
    /// The files.
    pub tree: SharedTree,
    /// The path from the top of `tree` to the current directory.
    pub prefix: String,
    /// The path from the top of `tree` to the top of the repository. `None` outside of a repository.
    pub top: Option<String>,
    /// The configuration.
    pub config: Config,
    /// The lock at the top of the repository. `None` if there is none.
    pub lock: Option<Rc<Lock>>,
    /// The conflicts of a lock that git could not merge, with what to do; `lock` is then the merged lock. `None` if git
    /// left no conflict.
    pub conflicts: Option<Vec<Failure>>,
    kustomizations: OnceCell<Vec<String>>,
    survey: OnceCell<Rc<Survey>>,
    /// The directories of the roots that are deployed. Computed when it is first asked for.
    pub deployed: OnceCell<BTreeSet<String>>,
    /// Every directory with a file of the lock at any depth, from the top of the repository.
    owned: HashSet<String>,
}

/// The origin of the files of a run.
pub(crate) enum Files {
    /// The files of a commit.
    Commit {
        repo: Rc<LocalRepo>,
        id: CommitId,
        /// The revision that named it.
        rev: String,
        /// The full name of the ref that the revision is. `None` if it is not a ref.
        name: Option<String>,
        /// Whether it is HEAD because no revision was given. The working tree should match it then.
        is_head: bool,
        tree: Rc<GitTree>,
    },
    /// The files of the index.
    Index { repo: Rc<LocalRepo>, tree: Rc<GitTree> },
    /// The files of the working tree.
    WorkingTree {
        repo: Rc<LocalRepo>,
        /// The top of the working tree on disk.
        top: PathBuf,
        tree: Rc<DiskTree>,
        /// The bytes of the lock on disk. `None` if there was no lock.
        lock: Option<Vec<u8>>,
    },
    Disk {
        /// The repository of the current directory. `None` if there is none.
        repo: Option<Rc<LocalRepo>>,
        /// The current directory.
        cwd: PathBuf,
        /// All files of the machine.
        tree: Rc<DiskTree>,
    },
    /// The files of any tree, such as one in memory. A plan can be made from them, but not written.
    Tree(Rc<dyn Tree>),
}

impl Files {
    /// Opens the files of a repository that a snapshot names.
    pub(crate) fn open(repo: &Rc<LocalRepo>, snapshot: &Snapshot) -> Result<Files> {
        let repo = repo.clone();
        match snapshot {
            // An empty repository has no index either, but it has a working tree.
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

    /// Opens the commit that `rev` names, or HEAD without one.
    fn of_commit(repo: Rc<LocalRepo>, rev: Option<&str>) -> Result<Files> {
        let commit = repo.resolve_rev(rev.unwrap_or("HEAD"))?;
        let (id, name) = commit.ok_or_else(|| unknown_revision(rev.unwrap_or("HEAD")))?;
        let tree = Rc::new(GitTree::of_commit(&repo, &id)?);
        Ok(Files::Commit { repo, id, rev: rev.unwrap_or("HEAD").to_owned(), name, is_head: rev.is_none(), tree })
    }

    /// The repository. `None` if there is none.
    pub(crate) fn repo(&self) -> Option<&Rc<LocalRepo>> {
        match self {
            Files::Commit { repo, .. } | Files::Index { repo, .. } | Files::WorkingTree { repo, .. } => Some(repo),
            Files::Disk { repo, .. } => repo.as_ref(),
            Files::Tree(_) => None,
        }
    }

    /// The commit. `None` if they are of no commit.
    pub(crate) fn commit(&self) -> Option<&CommitId> {
        if let Files::Commit { id, .. } = self { Some(id) } else { None }
    }

    /// The files as they are stored.
    fn tree(&self) -> SharedTree {
        match self {
            Files::Commit { tree, .. } | Files::Index { tree, .. } => tree.clone(),
            Files::WorkingTree { tree, .. } | Files::Disk { tree, .. } => tree.clone(),
            Files::Tree(tree) => tree.clone(),
        }
    }

    /// The files as git checks them out, which are the files that a build reads in any clone.
    pub(crate) fn checked_out(&self) -> SharedTree {
        self.converted(Conversion::refusing_filters)
    }

    /// The files as a checkout writes them, with a conversion of stored files. A working tree is a checkout already,
    /// but without the files that git ignores, which no other checkout has.
    fn converted(&self, conversion_of: fn(gix::hash::Kind) -> Conversion) -> SharedTree {
        match self {
            Files::Commit { tree, .. } | Files::Index { tree, .. } => {
                // If a checkout changes no file, the stored files are the same, and need no conversion.
                let conversion = conversion_of(tree.hash());
                let is_same = !conversion.applies_anywhere(&**tree);
                if is_same { tree.clone() } else { Rc::new(tree.converted(conversion)) }
            }
            Files::WorkingTree { tree, .. } => Rc::new(tree.without_ignored()),
            Files::Disk { .. } | Files::Tree(_) => self.tree(),
        }
    }

    /// The snapshot of a repository that these files are. `None` if they are not of a repository.
    pub(crate) fn snapshot(&self) -> Option<Snapshot> {
        match self {
            Files::Commit { id, rev, .. } => Some(Snapshot::Commit { rev: rev.clone(), commit: id.commit.clone() }),
            Files::Index { .. } => Some(Snapshot::Index),
            Files::WorkingTree { .. } => Some(Snapshot::WorkingTree),
            Files::Disk { .. } | Files::Tree(_) => None,
        }
    }

    /// Explains why paths are missing in `tree`, which has these files. `None` if they are not of a repository.
    pub(crate) fn absences(&self, tree: &SharedTree) -> Option<Absences> {
        // A commit that the user named need not match the disk.
        let may_be_on_disk = !matches!(self, Files::Commit { is_head: false, .. });
        Some(Absences::new(self.repo()?.clone(), tree.clone(), may_be_on_disk))
    }
}

impl Workspace {
    /// Opens the commit that `rev` names, or HEAD without one.
    pub(crate) fn of_rev(repo: Rc<LocalRepo>, rev: Option<&str>) -> Result<Workspace, Failures> {
        let prefix = repo.prefix.trim_end_matches('/').to_owned();
        Workspace::of(Files::of_commit(repo, rev)?, prefix, Some(String::new()), None)
    }

    /// Opens the commit that `rev` names, or the working tree without one, to read it only.
    pub(crate) fn to_read(repo: Rc<LocalRepo>, rev: Option<&str>) -> Result<Workspace, Failures> {
        if rev.is_some() {
            return Workspace::of_rev(repo, rev);
        }
        if repo.top.is_none() {
            return Err(Failure::new("this repository has no working tree").hint("name a commit: --rev REV").into());
        }
        let prefix = repo.prefix.trim_end_matches('/').to_owned();
        // Another run may be writing, so its end is awaited first.
        let _guard = repo.alone()?;
        // Nothing is written, so a localized branch or a copy may be checked out.
        Workspace::of(Files::open(&repo, &Snapshot::WorkingTree)?, prefix, Some(String::new()), None)
    }

    /// Opens the working tree of the current directory, to write to it. Fails if git could not merge the lock.
    pub(crate) fn of_working_tree() -> Result<Workspace, Failures> {
        Workspace::to_write(|_, _| Ok(None))
    }

    /// Opens the working tree of the current directory, to write to it. The two sides of a lock that git could not
    /// merge are merged, because the caller writes a new lock.
    pub(crate) fn of_merged_working_tree() -> Result<Workspace, Failures> {
        Workspace::to_write(conflict::merged)
    }

    /// Opens the working tree of the current directory. `merge` returns the lock to use in the place of one with a
    /// conflict; with `None` a lock with a conflict is a failure. Also fails on a localized branch, and in a localized
    /// copy.
    fn to_write(merge: impl Fn(&Rc<LocalRepo>, &DiskTree) -> Result<Option<Merged>>) -> Result<Workspace, Failures> {
        let repo = Rc::new(LocalRepo::discover()?.ok_or_else(|| {
            Failure::new("this is not a git repository, so there is no place for a lock").hint("run it in a repository")
        })?);
        if repo.top.is_none() {
            return Err(Failure::new("this repository has no working tree to change")
                .hint("run it in a clone, or in a linked worktree")
                .into());
        }
        history::refuse_localized_head(&repo)?;
        // Another run may be writing, so its end is awaited first.
        let _guard = repo.alone()?;
        let files = Files::open(&repo, &Snapshot::WorkingTree)?;
        let merged = match &files {
            Files::WorkingTree { tree, .. } => merge(&repo, tree)?,
            _ => None,
        };
        let prefix = repo.prefix.trim_end_matches('/').to_owned();
        let workspace = Workspace::of(files, prefix, Some(String::new()), merged)?;
        // The lock must be one that the caller may replace.
        workspace.refuse_foreign_lock()?;
        // A tree that cannot be listed fails here, before anything is fetched.
        workspace.kustomizations()?;
        Ok(workspace)
    }

    /// Opens all files on disk, for a copy of files that need not be in a repository.
    pub(crate) fn of_disk() -> Result<Workspace, Failures> {
        // No repository is required. If there is one, its lock tells which files are localized.
        let repo = LocalRepo::discover()?.map(Rc::new);
        let cwd = std::env::current_dir()
            .and_then(|cwd| cwd.canonicalize())
            .map_err(|error| Failure::new(format!("the current directory cannot be read: {error}")))?;
        let tree = Rc::new(DiskTree::of_machine(&cwd)?);
        let prefix = tree.path(&cwd)?;
        let top = repo.as_ref().and_then(|repo| repo.top.as_ref()?.canonicalize().ok());
        let top = top.map(|top| tree.path(&top)).transpose()?;
        Workspace::of(Files::Disk { repo, cwd, tree }, prefix, top, None)
    }

    /// Treats the files of any tree as a repository.
    pub(crate) fn of_tree(tree: Rc<dyn Tree>) -> Result<Workspace, Failures> {
        Workspace::of(Files::Tree(tree), String::new(), Some(String::new()), None)
    }

    /// Treats the files of a survey as a repository, and keeps what the survey has read.
    pub(crate) fn surveyed(survey: &Rc<Survey>) -> Result<Workspace, Failures> {
        let workspace = Workspace::of_tree(survey.tree())?;
        Ok(Workspace { survey: survey.clone().into(), ..workspace })
    }

    /// Reads the configuration and the lock of some files. `prefix` leads to the current directory, `top` to the top of
    /// the repository; `merged` replaces a lock that git could not merge.
    fn of(files: Files, prefix: String, top: Option<String>, merged: Option<Merged>) -> Result<Workspace, Failures> {
        let tree = files.tree();
        // Outside of a repository, the configuration is in the current directory.
        let config = Config::of(&*tree, top.as_deref().unwrap_or(&prefix))?;
        // A merged lock counts in the place of the one on disk, which has conflict markers.
        let lock = match (&merged, &top) {
            (Some(merged), _) => Some(Rc::new(merged.lock.clone())),
            (None, Some(top)) => Lock::find(&*tree, &path::join(top, LOCK_NAME))?,
            (None, None) => None,
        };
        let conflicts = merged.map(|merged| merged.conflicts.iter().map(conflict::conflict_failure).collect());
        // Every directory above a file of the lock, so that ownership is one look-up.
        let files_of_lock = lock.iter().flat_map(|lock| &lock.files).map(|file| file.path.as_str());
        let owned = path::directories(files_of_lock).into_iter().map(str::to_owned).collect();
        let (kustomizations, survey, deployed) = (OnceCell::new(), OnceCell::new(), OnceCell::new());
        Ok(Workspace { files, tree, prefix, top, config, lock, conflicts, kustomizations, survey, deployed, owned })
    }

    /// Refuses to write a lock in the place of one that is not this repository's own, or of something that is not a
    /// file.
    pub(crate) fn refuse_foreign_lock(&self) -> Result<()> {
        // A copy has the lock of its source, which must not become that of a repository.
        let target = self.lock.as_ref().and_then(|lock| lock.target.as_deref());
        if let Some(target) = target {
            return Err(Failure::new(format!(
                "this repository is already a localized copy of `{target}` (`{LOCK_NAME}` has a `target`)"
            ))
            .hint("run it in the source repository"));
        }
        match self.tree.entry(LOCK_NAME)? {
            None | Some(Entry::File { .. }) => Ok(()),
            _ => Err(Failure::new(format!("`{LOCK_NAME}` is not a regular file"))
                .hint("move it away: the lock is written there")),
        }
    }

    /// The repository. `None` if there is none.
    pub(crate) fn repo(&self) -> Option<&Rc<LocalRepo>> {
        self.files.repo()
    }

    /// The files of the repository. `None` if they cannot be listed, because they are anywhere on disk.
    pub(crate) fn listing(&self) -> Option<SharedTree> {
        (!matches!(self.files, Files::Disk { .. })).then(|| self.files.tree())
    }

    /// The kustomizations of the repository, sorted: without localized ones, those in charts that kustomize inflates,
    /// and objects of Flux in files of such a name. Empty for files anywhere on disk, which cannot be listed.
    pub(crate) fn kustomizations(&self) -> Result<&[String]> {
        if let Some(kustomizations) = self.kustomizations.get() {
            return Ok(kustomizations);
        }
        let mut kustomizations = Vec::new();
        if let Some(listing) = self.listing() {
            for path in listing.kustomizations()? {
                // Localized files belong to upstream, and an object of Flux may have the name of a kustomization.
                if !self.is_owned(&path) && !self.is_flux(&path)? {
                    kustomizations.push(path);
                }
            }
        }
        Ok(self.kustomizations.get_or_init(|| kustomizations))
    }

    /// The directories of the kustomizations, sorted.
    pub(crate) fn roots(&self) -> Result<BTreeSet<&str>> {
        Ok(self.kustomizations()?.iter().map(|file| path::parent(file)).collect())
    }

    /// The kustomizations in a directory whose edits this run does not see: they differ from HEAD in the working tree,
    /// and the configuration includes them. Empty unless HEAD is opened by default.
    pub(crate) fn uncommitted(&self, directory: &str) -> Result<Vec<String>> {
        let repo = match &self.files {
            Files::Commit { repo, is_head: true, .. } if repo.top.is_some() => repo,
            _ => return Ok(Vec::new()),
        };
        // git is also asked about configuration and lock: the answer is remembered, and the search for uncommitted
        // changes in files that are in use needs it next.
        let among = [directory, FILE_NAME, LOCK_NAME].map(str::to_owned);
        let changed = repo.changed(&among.into())?.into_iter().map(|(_, path)| path);
        let kustomizations = changed.filter(|path| kustomization::FILE_NAMES.contains(&path::name(path)));
        let included =
            kustomizations.filter(|path| path::is_in(path, directory) && self.config.may_start_in(path::parent(path)));
        Ok(included.collect())
    }

    /// Replaces the files by those of a checkout, which builds read but nothing may edit.
    pub(crate) fn into_checkout(mut self) -> Workspace {
        // The output of filters is unknown, so their files are taken as they are stored.
        self.set_tree(self.files.converted(Conversion::without_filters));
        self
    }

    /// Replaces the files.
    pub(crate) fn set_tree(&mut self, tree: SharedTree) {
        // The survey is about the files before.
        if !Rc::ptr_eq(&self.tree, &tree) {
            self.survey = OnceCell::new();
        }
        self.tree = tree;
    }

    /// The survey of the files, which reads on demand.
    pub(crate) fn survey(&self) -> &Rc<Survey> {
        self.survey.get_or_init(|| Rc::new(Survey::of(self.tree.clone())))
    }

    /// The tree with the whole repository as its scope.
    pub(crate) fn source(&self) -> ScopedTree {
        ScopedTree { tree: self.tree.clone(), scope: String::new(), repository: None }
    }

    /// Whether the lock has a file below a directory of `tree`.
    pub(crate) fn owns(&self, directory: &str) -> bool {
        let from_top = self.top.as_deref().and_then(|top| path::below(directory, top));
        from_top.is_some_and(|directory| self.owned.contains(directory))
    }

    /// Whether a path of `tree` is in a directory `localized-files` of the lock.
    pub(crate) fn is_owned(&self, path: &str) -> bool {
        let mut above = path::and_above(path::parent(path));
        above.any(|directory| path::name(directory) == LOCALIZED_FILES && self.owns(directory))
    }

    /// Explains why paths of a commit are missing. `None` unless the files are of a commit.
    pub(crate) fn absences(&self) -> Option<Absences> {
        match self.files {
            Files::Commit { .. } => self.files.absences(&self.tree),
            _ => None,
        }
    }

    /// Whether the lock on disk is the one that was read.
    pub(crate) fn has_lock_as_read(&self) -> bool {
        match &self.files {
            Files::WorkingTree { top, lock, .. } => std::fs::read(top.join(LOCK_NAME)).ok() == *lock,
            // Only the lock of a working tree is replaced by other runs.
            _ => true,
        }
    }

    /// The failures, or only the one that says that another run changed the lock meanwhile.
    pub(crate) fn explain(&self, failures: Failures) -> Failures {
        // If another run replaced the lock, the failures may come from that.
        if self.has_lock_as_read() { failures } else { changed_meanwhile().into() }
    }

    /// Whether a file that is named like a kustomization is an object of Flux.
    fn is_flux(&self, path: &str) -> Result<bool> {
        Ok(match tree::resolve(&*self.tree, path)? {
            Resolved::File { path, .. } => kustomization::is_flux_object(&self.tree.read(&path)?),
            _ => false,
        })
    }
}

/// The failure of a run whose lock was replaced by another run.
pub(crate) fn changed_meanwhile() -> Failure {
    Failure::new(format!("`{LOCK_NAME}` was changed by another process")).hint("run the same command again")
}

/// The repository of the current directory, for work that must not reach the network.
pub(crate) fn repository_offline() -> Result<Rc<LocalRepo>> {
    match LocalRepo::discover_offline()? {
        Some(repo) => Ok(Rc::new(repo)),
        None => Err(Failure::new("this is not a git repository").hint("run it in a repository")),
    }
}

/// The commit that a revision names.
pub(crate) fn commit(repo: &LocalRepo, rev: &str) -> Result<CommitId> {
    repo.commit(rev)?.ok_or_else(|| unknown_revision(rev))
}

/// The failure for a revision that names no commit. An empty one comes from a variable that is not set.
fn unknown_revision(rev: &str) -> Failure {
    if rev == "HEAD" {
        return Failure::new("this repository has no commit yet")
            .hint("commit your files first: git add . && git commit");
    }
    if rev.is_empty() {
        return Failure::new("empty REV").hint("name a commit, a branch or a tag, or omit the option");
    }
    Failure::new(format!("unknown revision `{}`", shown(rev)))
        .hint("fetch it first, or name another one: git log --oneline --all")
}

/// The commit at which a change to `base` begins: its merge base with the commit `tip`, or with HEAD. If the histories
/// have no commit in common, or if there is no commit yet, it is `base` itself. Fails in a shallow clone that lacks it.
pub(crate) fn merge_base(repo: &LocalRepo, base: &str, tip: Option<&str>) -> Result<CommitId> {
    let base = commit(repo, base)?;
    let tip = match tip {
        None => repo.commit("HEAD")?.map(|head| head.commit),
        Some(tip) => Some(tip.to_owned()),
    };
    let Some(tip) = tip else { return Ok(base) };
    // A change begins where its branch left the base: later commits of the base are not part of it.
    match repo.merge_base(&base.commit, &tip)? {
        Some(ancestor) => commit(repo, &ancestor),
        // Without the merge base all findings would look new.
        None if repo.is_shallow()? => Err(Failure::new(format!(
            "this shallow clone lacks the merge base of {} and {}",
            short(&base.commit),
            short(&tip)
        ))
        .hint("git fetch --unshallow")),
        None => Ok(base),
    }
}

/// A path of the command line as a path from the top. Fails if it is empty or outside of the repository.
pub(crate) fn from_top(repo: &LocalRepo, tree: &dyn Tree, text: &str) -> Result<String> {
    // A shell variable that is not set would otherwise narrow the check, or widen it.
    if text.is_empty() {
        return Err(Failure::new("empty PATH").hint("name a directory of this repository, or omit PATH to check all"));
    }
    tree::argument_path(tree, Some(""), &repo.prefix, text).ok_or_else(|| {
        Failure::new(format!("`{text}` is outside of the repository")).hint("name a directory of this repository")
    })
}
