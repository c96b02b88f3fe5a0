//! One commit on a branch: of a copy, or of the repository localized where it stands.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use gix::ObjectId;

use super::branch::{self, Branch};
use super::commit::{self, Entry};
use super::earlier::{self, Recorded};
use super::message::{self, News};
use super::objects::{self, Written};
use super::worktree::Linked;
use super::{Held, merged};
use crate::build::{BuildCheck, Earlier};
use crate::config::{Config, FILE_NAME};
use crate::fetch::{History, Move, Published, Tip};
use crate::git::{CommitId, LocalRepo, Status};
use crate::graph::Warning;
use crate::message::failure::{Failure, Result, listed, short, stage};
use crate::plan::{Plan, Writes};
use crate::record::history;
use crate::record::history::records::{self, Found};
use crate::record::history::tip::{self, TipState};
use crate::record::history::trees::differences;
use crate::record::{Digest, LOCK_NAME, Lock, TargetTrailer, Trailers, stored};
use crate::tree::objects::{ObjectTree, object_id};
use crate::tree::{self, Listing, Tree, path};
use crate::workspace::{Files, Workspace};

/// The files that decide how the source is localized.
const DECISIVE: [&str; 2] = [LOCK_NAME, FILE_NAME];

/// Returns what is in use of a source of which `used` files are walked.
fn in_use(tree: &ObjectTree, used: &BTreeSet<String>) -> BTreeSet<String> {
    let mut all = tree.followed();
    all.extend(used.iter().cloned());
    all.extend(DECISIVE.map(str::to_owned));
    all
}

/// Returns the source and the top of what people see on disk, where both should be the same.
fn seen(workspace: &Workspace) -> Option<(&ObjectTree, &Path)> {
    match &workspace.files {
        Files::Commit { is_head: true, tree, repo, .. } => Some((tree, repo.top.as_deref()?)),
        _ => None,
    }
}

/// Refuses a configuration or a lock that is something else on disk: whoever follows a hint and edits it would get the
/// same answer again.
fn refuse_undecided(workspace: &Workspace) -> Result<()> {
    let Some((tree, top)) = seen(workspace) else {
        return Ok(());
    };
    let mut differ = BTreeSet::new();
    for name in DECISIVE {
        let committed = match tree.entry(name)? {
            Some(_) => Some(tree.read(name)?),
            None => None,
        };
        if std::fs::read(top.join(name)).ok() != committed {
            differ.insert(name.to_owned());
        }
    }
    let Some(repo) = workspace.repo().filter(|_| !differ.is_empty()) else {
        return Ok(());
    };
    // A sparse checkout may leave it out, and line ends may differ. What git does not track, it passes over.
    let changed = repo.changed_paths(&differ, None)?;
    let is_new = |name: &String| matches!(tree.entry(name), Ok(None)) && top.join(name).is_file();
    differ.retain(|name| changed.contains(name) || is_new(name));
    if differ.is_empty() {
        return Ok(());
    }
    let tracked = repo.tracked_paths()?;
    let is_there = |name: &&String| tracked.contains_key(*name) || top.join(name).is_file();
    let commit = match differ.iter().filter(is_there).collect::<Vec<_>>().as_slice() {
        [] => "commit them: git commit".to_owned(),
        names => format!("commit them: {} && git commit", stage(names)),
    };
    let differ: Vec<String> = differ.into_iter().collect();
    Err(Failure::new(format!("uncommitted changes in {}: the branch is made from what is committed", listed(&differ)))
        .hint(commit)
        .hint("to use what is committed: --rev HEAD"))
}

/// Which branch, and how it is committed to.
#[derive(Debug, Clone, Default)]
pub(crate) struct BranchOptions {
    /// Its name; none: after the branch of the source.
    pub name: Option<String>,
    /// Where to check it out as well.
    pub worktree: Option<PathBuf>,
    /// Subject and body of the commit, a paragraph each; none: what has changed.
    pub message: Vec<String>,
    /// Whether it is pushed, and to which remote; none: to its own.
    pub push: Option<Option<String>>,
}

/// A branch to commit to, with what it holds.
pub(crate) struct OnBranch {
    repo: Rc<LocalRepo>,
    repository: gix::Repository,
    source: CommitId,
    source_tree: ObjectId,
    /// The full name of the ref that named the source.
    source_name: Option<String>,
    branch: Branch,
    worktree: Option<Linked>,
    /// None for a new branch: one that holds nothing that is not in the source.
    tip: Option<TipState>,
    /// The path of NEW_DIR from the top; none for the repository where it stands.
    into: Option<String>,
    /// Where it is pushed to.
    pushed: Option<Published>,
    options: BranchOptions,
}

/// The result of committing.
#[derive(Debug, Clone)]
pub(crate) struct Committed {
    /// The tip.
    pub commit: String,
    /// The tree of NEW_DIR.
    pub tree: String,
    /// Whether that is a new commit; else the branch held just this.
    pub is_new: bool,
}

impl OnBranch {
    /// Looks at the branch and its tip. With `new_dir` (as the user named it) it has to hold copies, else the
    /// repository where it stands.
    pub(super) fn open(
        workspace: &Workspace,
        new_dir: Option<&str>,
        options: &BranchOptions,
        overwrite: bool,
    ) -> Result<OnBranch> {
        let Files::Commit { repo, id, name: source_name, is_head, .. } = &workspace.files else {
            return Err(Failure::new("only a commit can be localized on a branch"));
        };
        refuse_undecided(workspace)?;
        let into = new_dir.map(|shown| into(workspace, shown)).transpose()?;
        let source = source_name.as_deref();
        if source.is_none() {
            let shown = if *is_head { "HEAD" } else { "the revision" };
            history::refuse_tip(repo, &id.commit, shown)?;
        }
        let named = match source {
            Some(source) => repo.branch_of(source)?,
            None => None,
        };
        let is_here = source.is_some_and(|name| name.starts_with("refs/heads/"));
        let name = branch::choose(options.name.as_deref(), named, is_here)?;
        let remote = options.push.as_ref().and_then(Option::as_deref);
        let published = Published::find(repo, remote, &name, named)?;
        let pushed = published.as_ref().filter(|_| options.push.is_some());
        match (pushed, &options.push) {
            (Some(published), _) => published.fetch()?,
            (None, Some(_)) => {
                return Err(Failure::new("there is no remote `origin` to push to")
                    .hint("name one of `git remote`: --push REMOTE")
                    .hint("or add it: git remote add origin URL"));
            }
            (None, None) => {}
        }
        let (branch, worktree) = {
            // While another run makes a worktree, its state is unknown.
            let _alone = repo.alone()?;
            let find = |directory| Linked::find(repo, directory, &format!("refs/heads/{name}"));
            let worktree = options.worktree.as_deref().map(find).transpose()?;
            let branch = branch::open(repo, &name, source, worktree.as_ref(), pushed)?;
            (branch, worktree)
        };
        if let (None, Some(published)) = (&branch.tip, &published) {
            published.refuse_unseen()?;
        }
        let mut opened = OnBranch {
            repository: tree::objects::open(&repo.git_dir)?,
            repo: repo.clone(),
            source: id.clone(),
            source_tree: object_id(&id.tree)?,
            source_name: source_name.clone(),
            branch,
            worktree,
            tip: None,
            into,
            pushed: published.filter(|_| options.push.is_some()),
            options: options.clone(),
        };
        opened.tip = opened.examine(overwrite, *is_head)?;
        Ok(opened)
    }

    fn examine(&self, overwrite: bool, is_head: bool) -> Result<Option<TipState>> {
        let Some(tip) = &self.branch.tip else {
            return Ok(None);
        };
        // Its parents answer that, and what is asked below, most of the time.
        self.repo.commit(tip)?;
        if self.repo.is_ancestor(tip, &self.source.commit)? {
            return Ok(None);
        }
        let name = &self.branch.name;
        let tip = tip::examine(&self.repo, &self.repository, name, tip, self.source_tree, self.into.is_none())?;
        if !tip.edited.is_empty() && !overwrite {
            return Err(edited(name, &tip));
        }
        if is_head {
            self.refuse_older(&tip)?;
        }
        Ok(Some(tip))
    }

    /// Refuses to take the branch back to what came before its source, as a clone would that is not up to date: to go
    /// back, the source is named.
    fn refuse_older(&self, tip: &TipState) -> Result<()> {
        let (repo, source) = (&self.repo, &self.source.commit);
        let Some(recorded) = tip.made.source.as_ref().map(Digest::hex) else {
            return Ok(());
        };
        // Unknown where history was not fetched.
        let is_older = recorded != source && repo.commit(recorded)?.is_some() && repo.is_ancestor(source, recorded)?;
        if is_older {
            Err(Failure::new(format!(
                "`{}` holds {} localized, which is newer than HEAD ({})",
                self.branch.name,
                short(recorded),
                short(source)
            ))
            .hint("bring HEAD up to date: git pull")
            .hint("to go back on the branch, too: --rev HEAD"))
        } else {
            Ok(())
        }
    }

    /// Returns its short name.
    pub(crate) fn name(&self) -> &str {
        &self.branch.name
    }

    /// Returns whether it holds nothing yet that is not in the source.
    pub(crate) fn is_new(&self) -> bool {
        self.tip.is_none()
    }

    /// Returns the directory where it is checked out as well, as it was named.
    pub(crate) fn worktree(&self) -> Option<String> {
        let directory = self.options.worktree.as_ref();
        directory.map(|directory| directory.display().to_string())
    }

    /// Returns the remote that it is pushed to.
    pub(crate) fn remote(&self) -> Option<&str> {
        self.pushed.as_ref().map(Published::remote)
    }

    /// Returns the source commit.
    pub(crate) fn source(&self) -> &str {
        &self.source.commit
    }

    /// Returns the path of NEW_DIR; empty for the repository where it stands.
    pub(super) fn place(&self) -> &str {
        self.into.as_deref().unwrap_or_default()
    }

    /// Returns what the tip holds, or else what the source does: the branch may have been merged into it.
    pub(super) fn held(&self) -> Result<Held> {
        let (tree, lock) = match (&self.into, &self.tip) {
            (None, None) => return Ok(Held::default()),
            (None, Some(tip)) => match &tip.lock {
                Some(lock) => (tip.tree, lock.clone()),
                None => return Ok(Held::default()),
            },
            (Some(into), tip) => {
                let new_dir = tip.as_ref().and_then(|tip| tip.new_dirs.get(into).cloned());
                let new_dir = match new_dir {
                    Some(new_dir) => Some(new_dir),
                    None => tip::new_dir_at(&self.repo, &self.repository, self.source_tree, into)?,
                };
                match new_dir {
                    Some(new_dir) => (new_dir.tree, new_dir.lock),
                    None => return Ok(Held::default()),
                }
            }
        };
        let lock_place = path::join(self.place(), LOCK_NAME);
        // A lock that was edited by hand says nothing about upstream.
        let is_edited = self.tip.as_ref().is_some_and(|tip| tip.is_edited(&lock_place));
        let files = if is_edited {
            None
        } else {
            let whole = self.tip.as_ref().map_or(self.source_tree, |tip| tip.tree);
            let whole = ObjectTree::of_here(self.repo.clone(), whole)?;
            Some(Tip {
                has_licenses: Config::of(&whole, "").is_ok_and(|config| !config.no_licenses),
                tree: Rc::new(ObjectTree::of_here(self.repo.clone(), tree)?),
                directory: String::new(),
                lock: lock.clone(),
            })
        };
        Ok(Held { lock: Some(lock), files })
    }

    /// Refuses a NEW_DIR where the source or the branch has something else.
    pub(super) fn claim(&self, target: &str, overwrite: bool) -> Result<()> {
        let Some(into) = &self.into else {
            return Ok(());
        };
        let claim = |tree, directory: &str, target: &str, whose: &str| {
            tip::claim(&self.repo, &self.repository, tree, directory, target, whose)
        };
        let in_source = "the source commit";
        claim(self.source_tree, into, target, in_source)?;
        let Some(tip) = &self.tip else {
            return Ok(());
        };
        // With `--overwrite` the record is enough: what it describes may have been edited away.
        let made = &tip.made.target;
        let is_recorded = made.into.as_ref() == Some(into) && made.target == target;
        if !(overwrite && is_recorded) {
            claim(tip.tree, into, target, &format!("`{}`", self.branch.name))?;
        }
        for (directory, other) in tip.new_dirs.iter().filter(|(other, _)| *other != into) {
            let owner = other.lock.target.as_deref().unwrap_or_default();
            claim(self.source_tree, directory, owner, in_source)?;
        }
        Ok(())
    }

    /// Begins to look whether files in use look different on disk or in the index.
    pub(super) fn begin_status(&self, workspace: &Workspace, used: &BTreeSet<String>) -> Option<Status> {
        let (tree, _) = seen(workspace)?;
        Some(self.repo.begin_status(in_use(tree, used)))
    }

    /// Refuses to take from the source commit what looks different on disk or in the index.
    pub(super) fn refuse_changed(&self, workspace: &Workspace, plan: &Plan, begun: Option<Status>) -> Result<()> {
        let Some((tree, _)) = seen(workspace) else {
            return Ok(());
        };
        let used = in_use(tree, &plan.used);
        let changed = self.repo.changed_paths(&used, begun)?;
        if changed.is_empty() {
            Ok(())
        } else {
            Err(Failure::new(format!("files in use have uncommitted changes: {}", listed(&changed)))
                .hint("commit or stash them; to use the committed files: --rev HEAD"))
        }
    }

    /// Returns what the record of the tip still proves about builds.
    pub(super) fn earlier(&self, workspace: &Workspace, plan: &Plan, held: Option<&Lock>) -> Result<Option<Earlier>> {
        let (Some(tip), Files::Commit { tree, .. }) = (&self.tip, &workspace.files) else {
            return Ok(None);
        };
        let found;
        let made = tip.made.target.into.as_ref();
        let (record, tree_there) = match &self.into {
            // Where the tip was edited by hand, its record says nothing about it.
            None => (&tip.made, Some(tip.tree).filter(|_| tip.is_told)),
            Some(into) => {
                let record = if made == Some(into) {
                    &tip.made
                } else {
                    // The newest commit is about another NEW_DIR.
                    let is_it = |record: &Trailers| record.target.into.as_ref() == Some(into);
                    match records::newest(&self.repository, &tip.commit, &[], is_it)? {
                        Found::Record(record) => {
                            found = record.trailers;
                            &found
                        }
                        _ => return Ok(None),
                    }
                };
                let is_told = |tree: &ObjectId| record.tree == Digest::GitTree(tree.to_string());
                let there = tip.new_dirs.get(into).map(|new_dir| new_dir.tree);
                (record, there.filter(is_told))
            }
        };
        let recorded =
            Recorded { source: record.source.as_ref(), verified: &record.verified, tree: tree_there, lock: held };
        let result = |scratch: &gix::Repository| Ok(self.write(scratch, plan)?.directory);
        let links = tree.followed();
        earlier::earlier(&self.repo, recorded, self.source_tree, &links, &result)
    }

    /// Returns what should be known about the source.
    pub(super) fn warning(&self, workspace: &Workspace) -> Result<Option<Warning>> {
        if self.into.is_some() {
            return Ok(None);
        }
        merged::warning(&self.repo, &self.repository, &self.source.commit, workspace.lock.as_deref())
    }

    /// Writes the trees of the result into a repository. The other NEW_DIRs of the tip do not change.
    fn write(&self, repository: &gix::Repository, plan: &Plan) -> Result<Written> {
        match &plan.writes {
            Writes::Copy { into, files } => {
                let tip = self.tip.as_ref();
                let others = tip.map_or_else(BTreeMap::new, |tip| tip.others(into));
                objects::write(repository, self.source_tree, &others, into, files)
            }
            Writes::InPlace { changes, .. } => {
                let tree = objects::write_changes(repository, self.source_tree, changes)?;
                Ok(Written { tree, directory: tree })
            }
        }
    }

    /// Commits the result, unless the tip holds exactly that, and pushes it where that was asked for. `before` is the lock
    /// that its message compares with, `histories` says what lies between the commits of each move. None where the remote
    /// has moved meanwhile: nothing has changed then.
    pub(super) fn commit(
        &self,
        plan: &Plan,
        before: &Lock,
        builds: Option<&BuildCheck>,
        histories: &dyn Fn(&[Move]) -> Vec<Option<History>>,
    ) -> Result<Option<Committed>> {
        let written = self.write(&self.repository, plan)?;
        let target = plan.lock.target.clone();
        let entry = Entry {
            source: &self.source,
            tip: self.tip.as_ref(),
            tree: written.tree,
            text: Box::new(|| self.text(plan, &written, before, histories)),
            trailers: Trailers {
                target: TargetTrailer {
                    in_place: target.is_none(),
                    target: target.unwrap_or_else(|| ".".to_owned()),
                    scope: plan.lock.scope.clone(),
                    into: self.into.clone(),
                },
                source: Some(Digest::GitCommit(self.source.commit.clone())),
                remotes: plan.lock.remote_trailers(),
                tree: Digest::GitTree(written.directory.to_string()),
                verified: builds.map(BuildCheck::verified).unwrap_or_default(),
                tool: commit::tool(),
            },
        };
        let committed = commit::commit(
            &self.options.message,
            &self.repo,
            &self.branch,
            self.worktree.as_ref(),
            self.pushed.as_ref(),
            entry,
        )?;
        Ok(committed.map(|(commit, is_new)| Committed { commit, tree: written.directory.to_string(), is_new }))
    }

    fn text(
        &self,
        plan: &Plan,
        written: &Written,
        before: &Lock,
        histories: &dyn Fn(&[Move]) -> Vec<Option<History>>,
    ) -> Result<String> {
        let subject = match (&self.into, &self.source_name) {
            (Some(into), _) => {
                let target = plan.lock.target.as_deref().unwrap_or_default();
                format!("Localize {target} into {into}")
            }
            (None, Some(name)) => format!("Localize {}", short_name(name)),
            (None, None) => "Localize the repository".to_owned(),
        };
        let kustomizations = match &self.into {
            Some(_) => Vec::new(),
            None => self.changed_kustomizations(written.tree)?,
        };
        let news = News {
            subject: &subject,
            before,
            after: &plan.lock,
            kustomizations: &kustomizations,
            discarded: &self.discarded(),
        };
        Ok(message::text(&news, histories))
    }

    /// Returns the kustomizations of the user that are different since the tip, or else since the source.
    fn changed_kustomizations(&self, after: ObjectId) -> Result<Vec<String>> {
        let before = self.tip.as_ref().map_or(self.source_tree, |tip| tip.tree);
        // For a directory that is new or gone, git names only the directory.
        let changed = differences(&self.repository, before, after, &BTreeSet::new())?;
        let changed: BTreeSet<&str> = changed.iter().map(String::as_str).collect();
        let is_changed = |place: &String| {
            stored::home(place).is_none() && path::and_above(place).any(|above| changed.contains(above))
        };
        let mut found = BTreeSet::new();
        for tree in [before, after] {
            let tree = ObjectTree::of_here(self.repo.clone(), tree)?;
            found.extend(tree.kustomizations()?.into_iter().filter(is_changed));
        }
        Ok(found.into_iter().collect())
    }

    /// Returns the paths whose edits by hand go away. Those in other NEW_DIRs stay.
    fn discarded(&self) -> Vec<String> {
        let Some(tip) = &self.tip else {
            return Vec::new();
        };
        let others = tip.others(self.place());
        let is_here = |place: &&String| !others.keys().any(|other| path::is_in(place, other));
        tip.edited.iter().filter(is_here).cloned().collect()
    }
}

fn edited(branch: &str, tip: &TipState) -> Failure {
    let by = match tip.edited_by.as_slice() {
        [] => String::new(),
        commits => format!(" by {}", commits.join(", ")),
    };
    Failure::new(format!("`{branch}` was edited by hand{by}: {}", listed(&tip.edited)))
        .hint("what should be deployed belongs in the source; to discard these edits: --overwrite")
}

/// Returns NEW_DIR as a path from the top of the repository.
fn into(workspace: &Workspace, shown: &str) -> Result<String> {
    let top = workspace.top.as_deref();
    match tree::argument_path(&*workspace.tree, top, &workspace.prefix, shown) {
        None => Err(Failure::new(format!("NEW_DIR `{shown}` lies outside of the repository"))
            .hint("choose a directory inside, or write plain files: `--no-commit`")),
        Some(into) if into.is_empty() => {
            Err(Failure::new("NEW_DIR is the top of the repository").hint("choose a directory below it"))
        }
        Some(into) => {
            for component in path::components(&into) {
                let options = gix::validate::path::component::Options::default();
                gix::validate::path::component(component.into(), None, options).map_err(|error| {
                    Failure::new(format!("NEW_DIR `{shown}` cannot be used: {error}")).hint("choose another NEW_DIR")
                })?;
            }
            Ok(into)
        }
    }
}

/// Returns a ref as people say it.
fn short_name(full: &str) -> &str {
    ["refs/heads/", "refs/tags/", "refs/remotes/"].iter().find_map(|prefix| full.strip_prefix(prefix)).unwrap_or(full)
}
