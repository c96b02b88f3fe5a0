//! One commit on a branch, with a copy in NEW_DIR, the repository localized in place, or rendered files.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;

use gix::ObjectId;
use serde::Serialize;

use super::branch::{self, Branch};
use super::objects::{self, WrittenTrees};
use super::worktree::LinkedWorktree;
use super::{ChangedFiles, Delivered, Discarded, message};
use crate::build::BuildCheck;
use crate::config::{Config, FILE_NAME};
use crate::fetch::{Histories, Published, Tip};
use crate::git::{CommitId, LocalRepo, branch_of, object_id};
use crate::graph::Graph;
use crate::message::failure::{Failure, Failures, Result, argument, listed, short, shown as quoted, stage};
use crate::plan::{Changes, Plan};
use crate::record::history::tip::{self, Content, NewDir, TipState};
use crate::record::history::trees::changed_files;
use crate::record::{
    Digest, LOCK_NAME, Lock, StoredFile, TargetTrailer, Trailers, Verified, history, render_message, stored,
};
use crate::tree::disk::DiskTree;
use crate::tree::git::GitTree;
use crate::tree::{self, Tree, path};
use crate::workspace::{Files, Workspace};

/// The program and version that a record names.
pub(super) const TOOL: &str = concat!(env!("CARGO_PKG_NAME"), "/", env!("CARGO_PKG_VERSION"));

/// The files that configure how the source is localized.
const DECISIVE: [&str; 2] = [LOCK_NAME, FILE_NAME];

/// Refuses HEAD if a file that it uses differs on disk or in the index: after an edit that a hint asked for, the same
/// error would follow. `used` is the graph of HEAD, or an empty one to check only lock and configuration, which always
/// count. Nothing is refused in a bare repository, or for a revision that the user named.
pub(crate) fn refuse_uncommitted(workspace: &Workspace, used: &Graph) -> Result<()> {
    let Files::Commit { is_head: true, tree, repo, .. } = &workspace.files else {
        return Ok(());
    };
    let Some(top) = &repo.top else { return Ok(()) };
    // Without a graph only two files matter, and comparing their bytes on disk needs no process. The index is compared
    // by the later call, which has the graph.
    if used.files.is_empty() && DECISIVE.iter().all(|name| std::fs::read(top.join(name)).ok() == tree.read(name).ok()) {
        return Ok(());
    }
    let mut in_use = BTreeSet::new();
    // If the target is remote, the first source is the upstream, and the user's files are not used.
    if used.sources.first().is_some_and(|source| source.repository.is_none()) {
        in_use.extend(used.user_paths().map(str::to_owned));
        in_use.extend(used.user_links()?);
    }
    let mut changed = uncommitted(repo, &**tree, in_use.clone())?;
    if changed.is_empty() {
        return Ok(());
    }
    // A lock with a conflict, or a broken configuration, must not be committed: its error says what to do instead.
    let disk = DiskTree::of_directory(top)?;
    Config::of(&disk, "")?;
    let locks = [Lock::find(&disk, LOCK_NAME)?, Lock::find(&**tree, LOCK_NAME)?];
    let stored: Vec<&StoredFile> = locks.iter().flatten().flat_map(|lock| &lock.files).collect();
    // The lock alone would not fit the files that `vendor` wrote together with it.
    if !stored.is_empty() {
        in_use.extend(stored.iter().map(|file| file.path.clone()));
        in_use.extend(workspace.survey().explore_all_inputs()?.graph.user_paths().map(str::to_owned));
        changed = uncommitted(repo, &**tree, in_use)?;
    }
    Err(Failure::new(format!("files in use have uncommitted changes: {}", listed(&changed)))
        .hint(format!("commit them: {}", commit_command(repo, &changed)?))
        .hint("or stash them; to use the committed files: --rev HEAD"))
}

/// The files of `in_use`, and those that configure localizing, that differ from `head` on disk or in the index.
pub(crate) fn uncommitted(repo: &LocalRepo, head: &dyn Tree, mut in_use: BTreeSet<String>) -> Result<Vec<String>> {
    let Some(top) = &repo.top else { return Ok(Vec::new()) };
    in_use.extend(DECISIVE.map(str::to_owned));
    let mut changed: BTreeSet<String> = repo.changed_paths(&in_use)?.into_iter().collect();
    // git does not report untracked files as changed.
    changed.extend(in_use.into_iter().filter(|name| matches!(head.entry(name), Ok(None)) && top.join(name).is_file()));
    Ok(Vec::from_iter(changed))
}

/// The command that commits changes. Directories of localized files are added as a whole.
pub(crate) fn commit_command(repo: &LocalRepo, changed: &[String]) -> Result<String> {
    let Some(top) = &repo.top else { return Ok("git commit".to_owned()) };
    // `git add` fails for a path that is neither on disk nor in the index.
    let unstaged = repo.unstaged_paths(&changed.iter().cloned().collect())?;
    let to_add = changed.iter().filter(|name| top.join(name).exists() || unstaged.contains(*name));
    let paths: BTreeSet<&str> = to_add.map(|name| stored::localized_dir(name).unwrap_or(name)).collect();
    Ok(if paths.is_empty() { "git commit".to_owned() } else { format!("{} && git commit", stage(paths)) })
}

/// The state of a branch in relation to its source commit.
#[derive(Debug, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub(crate) enum State {
    Missing,
    UpToDate,
    /// Up to date, but not pushed.
    Ahead {
        /// The remote that does not have it yet.
        remote: String,
    },
    Behind {
        /// The number of commits that were not localized yet; `None` if the history is not here.
        commits: Option<usize>,
    },
    Edited {
        /// The files that were edited by hand.
        paths: Vec<String>,
    },
    Unknown {
        why: String,
        /// The command that fixes it; `None` if no single command does.
        #[serde(skip)]
        command: Option<String>,
    },
}

impl State {
    /// The state if the branch could not be examined.
    pub(crate) fn unknown(failures: Failures) -> State {
        let failure = failures.0.into_iter().next();
        let (why, hints) = failure.map(|failure| (failure.message, failure.hints)).unwrap_or_default();
        State::Unknown { why, command: hints.into_iter().find(|hint| hint.starts_with("git ")) }
    }
}

/// The options of a commit on a branch.
#[derive(Clone, Default)]
pub(crate) struct BranchOptions {
    /// The branch; `None` derives it from the branch of the source.
    pub name: Option<String>,
    /// The linked worktree that has it checked out.
    pub worktree: Option<PathBuf>,
    /// The paragraphs of the message; if empty, the message lists the changes.
    pub message: Vec<String>,
    /// Whether to push, and to which remote; `Some(None)` pushes to the default remote.
    pub push: Option<Option<String>>,
    /// Whether the branch holds the builds of the source.
    pub rendered: bool,
}

/// The content of a commit: changes of a tree, and their record.
pub(crate) struct CommitContent<'a> {
    /// The tree that is changed.
    pub(super) base: ObjectId,
    pub(super) changes: Cow<'a, Changes>,
    pub(super) target: TargetTrailer,
    pub(super) lock: Option<Digest>,
    pub(super) remotes: BTreeSet<(String, Digest)>,
    pub(super) verified: Option<Verified>,
}

/// A branch to commit to, with its tip.
pub(crate) struct OnBranch {
    pub(super) repo: Rc<LocalRepo>,
    pub(super) repository: gix::Repository,
    pub(crate) source: CommitId,
    pub(super) source_tree: ObjectId,
    /// The full name of the ref that named the source.
    source_name: Option<String>,
    pub(crate) branch: Branch,
    worktree: Option<LinkedWorktree>,
    /// `None` for a new branch, that is, if all its commits are in the source.
    pub(crate) tip: Option<TipState>,
    /// The path of NEW_DIR from the top; `None` for the repository in place.
    pub(super) new_dir: Option<String>,
    /// The branch at a remote; `None` if there is no remote.
    published: Option<Published>,
    pub(crate) options: BranchOptions,
}

impl OnBranch {
    /// Opens the branch and examines its tip. With `new_dir` (as the user named it) it must hold copies, otherwise the
    /// repository in place or rendered files, as the options say.
    pub(super) fn open(
        workspace: &Workspace,
        new_dir: Option<&str>,
        options: &BranchOptions,
        overwrite: bool,
    ) -> Result<OnBranch> {
        let Files::Commit { repo, id, name: source_name, is_head, .. } = &workspace.files else {
            return Err(Failure::new("only a commit can be localized on a branch"));
        };
        // Lock and configuration are checked first: with edits in them every later error would be about the wrong
        // files.
        refuse_uncommitted(workspace, &Graph::default())?;
        let new_dir = new_dir.map(|shown| path_of_new_dir(workspace, shown)).transpose()?;
        // A localized branch must not be localized again. A branch that named the source is refused by its name, in
        // `choose_name`. A tag says nothing about that.
        let source = source_name.as_deref();
        if source.and_then(branch_of).is_none() {
            let shown = if *is_head { "HEAD" } else { "the revision" };
            history::refuse_tip(repo, &id.commit, shown)?;
        }
        let prefix = if options.rendered { history::RENDERED } else { history::PREFIX };
        let name = branch::choose_name(options.name.as_deref(), source, prefix)?;
        // Fetch before a push, so that the commit continues from the tip at the remote.
        let is_pushed = options.push.is_some();
        let push_remote = options.push.as_ref().and_then(Option::as_deref);
        let published = Published::find(repo, push_remote, &name, source.and_then(branch_of))?;
        match &published {
            Some(published) if is_pushed => published.fetch()?,
            None if is_pushed => {
                return Err(Failure::new("there is no remote `origin` to push to")
                    .hint("name one of `git remote`: --push REMOTE")
                    .hint("or add it: git remote add origin URL"));
            }
            _ => {}
        }
        let (branch, worktree) = {
            // While another run makes a worktree, its state is unknown.
            let _alone = repo.alone()?;
            let full = format!("refs/heads/{name}");
            let worktree =
                options.worktree.as_deref().map(|path| LinkedWorktree::find(repo, path, &full)).transpose()?;
            (branch::open(repo, &name, worktree.as_ref(), published.as_ref(), is_pushed)?, worktree)
        };
        let mut opened = OnBranch {
            repository: repo.repository()?.clone(),
            repo: repo.clone(),
            source: id.clone(),
            source_tree: object_id(&id.tree)?,
            source_name: source_name.clone(),
            branch,
            worktree,
            tip: None,
            new_dir,
            published,
            options: options.clone(),
        };
        opened.tip = opened.examine(overwrite, *is_head)?;
        Ok(opened)
    }

    /// The branch at the remote to push to; `None` if nothing is pushed.
    pub(crate) fn pushed(&self) -> Option<&Published> {
        self.published.as_ref().filter(|_| self.options.push.is_some())
    }

    /// Refuses a new branch if the remote has one that this clone does not show.
    pub(crate) fn refuse_unseen(&self) -> Result<()> {
        // A new history would be rejected by the remote, or would replace the work of others there.
        let published = self.published.as_ref().filter(|_| self.branch.tip.is_none());
        // A copy is never pushed.
        let or_push = self.new_dir.is_none().then_some("or fetch, commit and push in one step: --push");
        published.map_or(Ok(()), |published| published.refuse_unseen(or_push))
    }

    /// The state of the branch in relation to its source, for `status`. Fails if HEAD is older than the source of the
    /// tip.
    pub(crate) fn state(&self) -> Result<State> {
        let Some(tip) = &self.tip else { return Ok(State::Missing) };
        let source = &self.source.commit;
        Ok(match tip.record.source.as_ref().map(Digest::hex) {
            // Edits come first: the next run stops at them, however old the branch is.
            _ if !tip.edited.is_empty() => State::Edited { paths: tip.edited.clone() },
            Some(localized) if localized == source => match self.branch.unpushed_to.clone() {
                Some(remote) => State::Ahead { remote },
                None => State::UpToDate,
            },
            Some(localized) => {
                self.refuse_older(tip)?;
                State::Behind { commits: self.repo.commits_since(localized, source)? }
            }
            // A record without its source: another run writes one.
            None => State::Behind { commits: None },
        })
    }

    /// Whether another run would make the same commit again, so that it need not start: this version of the program
    /// made the tip from this very source, and verified it by builds with `arguments`, if there are any. Only for the
    /// repository in place, without a worktree or a push.
    pub(crate) fn is_made_of_source(&self, arguments: Option<&[String]>) -> Result<bool> {
        let is_simple = self.new_dir.is_none() && self.worktree.is_none() && self.pushed().is_none();
        let Some(tip) = self.tip.as_ref().filter(|_| is_simple) else { return Ok(false) };
        let TipState { commit, record, matches_record, .. } = tip;
        let is_same = *matches_record
            && record.tool == TOOL
            && record.source.as_ref().map(Digest::hex) == Some(&self.source.commit)
            && self.branch.local.as_ref() == Some(commit)
            && arguments
                .is_none_or(|arguments| record.verified.as_ref().is_some_and(|same| same.by.arguments == arguments));
        // A run refuses uncommitted changes, so it must not be skipped with any.
        Ok(is_same && (self.repo.top.is_none() || self.repo.is_clean()?))
    }

    /// The content and the record of the tip. `None` for a new branch. Fails if the tip was edited by hand, unless
    /// `overwrite`, and with `is_head` (HEAD is the source, and the user did not name it) if its source is newer.
    fn examine(&self, overwrite: bool, is_head: bool) -> Result<Option<TipState>> {
        let Some(tip) = &self.branch.tip else {
            return Ok(None);
        };
        let name = &self.branch.name;
        // The branch was merged into the source, or made in advance, so that the source has everything of it. Rendered
        // files never continue the source: merged into it, they would delete it.
        if !self.options.rendered && self.repo.is_ancestor(tip, &self.source.commit)? {
            // A branch of another name, such as the source itself or a release, is ours only if it has a record.
            if history::named_source(name).is_none() {
                tip::newest_record(&self.repo, &self.repository, name, tip)?;
            }
            return Ok(None);
        }
        let content = match self.new_dir {
            Some(_) => Content::Copies,
            None if self.options.rendered => Content::Rendered,
            None => Content::InPlace,
        };
        let tip = tip::examine(&self.repo, &self.repository, name, tip, self.source_tree, content)?;
        if !tip.edited.is_empty() && !overwrite {
            return Err(edited(name, &tip, self.new_dir()));
        }
        // Only HEAD can be older by mistake: a revision that was named is meant.
        if is_head {
            self.refuse_older(&tip)?;
        }
        Ok(Some(tip))
    }

    /// Refuses a HEAD that is older than the source of the tip, as in a clone that is not up to date. To go back, the
    /// user names the source.
    fn refuse_older(&self, tip: &TipState) -> Result<()> {
        let (repo, source) = (&self.repo, &self.source.commit);
        let Some(recorded) = tip.record.source.as_ref().map(Digest::hex) else {
            return Ok(());
        };
        // A shallow clone may not have the recorded commit; then the order is unknown.
        let is_older = recorded != source && repo.commit(recorded)?.is_some() && repo.is_ancestor(source, recorded)?;
        if !is_older {
            return Ok(());
        }
        let (name, recorded, source) = (&self.branch.name, short(recorded), short(source));
        Err(Failure::new(format!("`{name}` was localized from {recorded}, which is newer than HEAD ({source})"))
            .hint("git pull")
            .hint(match self.new_dir {
                Some(_) => "if it was reset, localize it anyway: --rev HEAD".to_owned(),
                None => {
                    let rendered = if self.options.rendered { " --rendered" } else { "" };
                    let again = format!("git kustomize-localize branch{rendered} --rev HEAD --branch");
                    format!("if it was reset, localize it anyway: {again} {}", argument(name))
                }
            }))
    }

    /// The path of NEW_DIR; empty for the repository in place.
    pub(super) fn new_dir(&self) -> &str {
        self.new_dir.as_deref().unwrap_or_default()
    }

    /// The localized files of the tip, which need not be fetched again. A copy that the tip lacks is looked for in the
    /// source, into which the branch may have been merged. `None` if there are none, or if the lock was edited by hand.
    pub(super) fn previous_tip(&self) -> Result<Option<Tip>> {
        let tip = self.tip.as_ref();
        let previous = match &self.new_dir {
            // In place, files that the source has already are ordinary files of it, and are not localized again.
            None => tip.and_then(|tip| Some((tip.tree, tip.lock.clone()?))),
            Some(path) => {
                let new_dir = match tip.and_then(|tip| tip.new_dirs.get(path).cloned()) {
                    None => tip::new_dir_at(&self.repo, self.source_tree, path)?,
                    new_dir => new_dir,
                };
                new_dir.map(|new_dir| (new_dir.tree, new_dir.lock))
            }
        };
        let lock_path = path::join(self.new_dir(), LOCK_NAME);
        let Some((tree, lock)) = previous.filter(|_| !tip.is_some_and(|tip| tip.is_edited(&lock_path))) else {
            return Ok(None);
        };
        Tip::from_commit(&self.repo, tip.map_or(self.source_tree, |tip| tip.tree), tree, lock).map(Some)
    }

    /// Refuses a NEW_DIR at which the source or the branch has anything but an earlier copy of `target`, because the
    /// commit would delete it. Also refuses a source that has anything but such a copy at another NEW_DIR of the
    /// branch, because the commit takes that NEW_DIR from the branch. In place nothing is refused here.
    pub(super) fn claim(&self, target: &str, overwrite: bool) -> Result<()> {
        let Some(new_dir) = &self.new_dir else {
            return Ok(());
        };
        let source = GitTree::of_local(self.repo.clone(), self.source_tree)?;
        let in_source = " in the source commit";
        tip::replaced_copy(&source, new_dir, target, in_source)?;
        let Some(tip) = &self.tip else {
            return Ok(());
        };
        // With `--overwrite` the record is enough, because the files may have been edited.
        let recorded = &tip.record.target;
        if !(overwrite && recorded.new_dir.as_ref() == Some(new_dir) && recorded.target == target) {
            tip::replaced_copy(&source.beside(tip.tree), new_dir, target, &format!(" in `{}`", self.branch.name))?;
        }
        for (directory, other) in tip.new_dirs.iter().filter(|(other, _)| *other != new_dir) {
            tip::replaced_copy(&source, directory, other.lock.target.as_deref().unwrap_or_default(), in_source)?;
        }
        Ok(())
    }

    /// The content of the commit that delivers a plan. `builds` are the builds that verified it, for the record.
    pub(super) fn localized_content<'a>(&self, plan: &'a Plan, builds: Option<&BuildCheck>) -> CommitContent<'a> {
        let target = plan.lock.target.clone().unwrap_or_else(|| ".".to_owned());
        CommitContent {
            base: self.source_tree,
            changes: Cow::Borrowed(&plan.changes),
            target: TargetTrailer {
                target,
                scope: plan.lock.scope.clone(),
                new_dir: self.new_dir.clone(),
                rendered: false,
            },
            lock: None,
            remotes: plan.lock.remote_trailers(),
            verified: builds.and_then(BuildCheck::verified),
        }
    }

    /// Commits content, unless the tip is equal to it, and pushes it if requested. `text` is the message unless the
    /// user gave one. `None` if the branch at the remote has moved since it was fetched. The push comes first, so that
    /// nothing has changed in this repository if it fails.
    pub(crate) fn commit(
        &self,
        content: &CommitContent<'_>,
        text: impl FnOnce() -> String,
    ) -> Result<Option<Delivered>> {
        let (written, changed) = self.write(&self.repository, content)?;
        let current = self.current_tip(content, &written)?;
        let (commit, reason) = match current {
            // The branch is moved even without a new commit, so that later steps, such as a push, find it.
            Some(tip) => (tip.commit.clone(), "reset to the remote branch".to_owned()),
            None => {
                let paragraphs = &self.options.message;
                let text = if paragraphs.is_empty() { text() } else { paragraphs.join("\n\n") };
                let message = render_message(&text, &self.trailers(content, &written))?;
                let subject = message.lines().next().unwrap_or_default().to_owned();
                (self.repo.commit_tree(&written.tree.to_string(), &self.parents(content), &message)?, subject)
            }
        };
        if let Some(pushed) = self.pushed() {
            // Whatever would stop the move below is found before the remote has the commit.
            let alone = self.repo.alone()?;
            self.worktree_for(&commit)?;
            drop(alone);
            if !pushed.push(&commit)? {
                return Ok(None);
            }
        }
        self.move_to(&commit, &format!("kustomize-localize: {reason}"))?;
        let tree = Some(written.directory.to_string());
        Ok(Some(Delivered { is_written: current.is_none(), commit: Some(commit), tree, changed }))
    }

    /// The tip, if it needs no new commit: its tree is the same, and its history shows the source. `None` if it does.
    fn current_tip(&self, content: &CommitContent<'_>, written: &WrittenTrees) -> Result<Option<&TipState>> {
        let Some(tip) = self.tip.as_ref().filter(|tip| tip.matches_record && tip.tree == written.tree) else {
            return Ok(None);
        };
        // The source is never in the history of a rendered branch.
        let shows_source = content.target.rendered || self.contains_source(tip)?;
        Ok(shows_source.then_some(tip))
    }

    /// The parents of a new commit: the tip, and the source.
    fn parents(&self, content: &CommitContent<'_>) -> Vec<String> {
        // The source is named even if the tip contains it: a shallow clone shows nothing but the parents. It is not a
        // parent of a rendered commit: merged into it, the branch would delete it.
        let source = Some(&self.source.commit).filter(|_| !content.target.rendered);
        self.tip.iter().map(|tip| &tip.commit).chain(source).cloned().collect()
    }

    /// The changes that a commit would make; nothing is written.
    pub(crate) fn pending(&self, content: &CommitContent<'_>) -> Result<Delivered> {
        let changed = self.write(&self.repository.clone().with_object_memory(), content)?.1;
        Ok(Delivered { changed, ..Delivered::default() })
    }

    /// Writes the trees of a commit, and compares them with the tip.
    fn write(&self, repository: &gix::Repository, content: &CommitContent<'_>) -> Result<(WrittenTrees, ChangedFiles)> {
        // The other NEW_DIRs of the tip do not change.
        let new_dir = content.target.new_dir.as_deref();
        let others = self.tip.iter().zip(new_dir).flat_map(|(tip, new_dir)| tip.others(new_dir));
        let written = objects::write_trees(repository, content.base, others, &content.changes, new_dir)?;
        let before = self.tip.as_ref().map_or(content.base, |tip| tip.tree);
        let changed = changed_files(repository, before, written.tree, &BTreeSet::new())?;
        Ok((written, ChangedFiles::between(repository, changed)))
    }

    /// The record of a commit with this content, which becomes the last lines of its message.
    fn trailers(&self, content: &CommitContent<'_>, written: &WrittenTrees) -> Trailers {
        Trailers {
            target: content.target.clone(),
            source: Some(Digest::GitCommit(self.source.commit.clone())),
            lock: content.lock.clone(),
            remotes: content.remotes.clone(),
            tree: Digest::GitTree(written.directory.to_string()),
            verified: content.verified.clone(),
            tool: TOOL.to_owned(),
        }
    }

    /// Whether a tip contains its source. In a shallow clone the commits do not show that, but the record does.
    fn contains_source(&self, tip: &TipState) -> Result<bool> {
        let source = &self.source.commit;
        let is_recorded = tip.record.source.as_ref().is_some_and(|recorded| recorded.hex() == source);
        Ok(self.repo.is_ancestor(source, &tip.commit)? || (is_recorded && self.repo.is_shallow()?))
    }

    /// Moves the branch to a commit, unless it is already there, and updates the files of its worktree. `reason` goes
    /// into the reflog.
    fn move_to(&self, commit: &str, reason: &str) -> Result<()> {
        let (repo, branch) = (&self.repo, &self.branch);
        let name = format!("refs/heads/{}", branch.name);
        let is_moved = branch.local.as_deref() == Some(commit);
        if is_moved && self.worktree.is_none() {
            return Ok(());
        }
        let _alone = repo.alone()?;
        let worktree = self.worktree_for(commit)?;
        if !is_moved {
            repo.update_ref(&name, commit, branch.local.as_deref(), reason)?;
        }
        worktree.map_or(Ok(()), |worktree| worktree.follow(repo, &name, commit))
    }

    /// The worktree that the user named, as it is now. Everything is checked again: since the branch was opened, it may
    /// have been checked out. Fails if the branch cannot be moved to `commit` without losing or hiding files of a
    /// worktree. The caller holds the lock of the repository.
    fn worktree_for(&self, commit: &str) -> Result<Option<LinkedWorktree>> {
        let (repo, name) = (&self.repo, format!("refs/heads/{}", self.branch.name));
        let worktree =
            self.worktree.as_ref().map(|old| LinkedWorktree::find(repo, &old.directory, &name)).transpose()?;
        branch::refuse_checked_out(repo, &self.branch.name, worktree.as_ref())?;
        if let Some(worktree) = &worktree {
            worktree.refuse_blocked_update(repo, commit)?;
        }
        Ok(worktree)
    }

    /// The message of the commit that delivers a plan, unless the user gives one. It lists the changes since the lock
    /// `before`.
    pub(super) fn text(&self, plan: &Plan, before: &Lock, histories: &Histories<'_>) -> String {
        let subject = match &self.new_dir {
            Some(new_dir) => {
                let target = plan.lock.target.as_deref().unwrap_or_default();
                format!("Localize {target} into {new_dir}")
            }
            None => format!("Localize {}", self.source_label()),
        };
        message::text(&subject, before, &plan.lock, &self.discarded().paths, histories)
    }

    /// The source, as a message calls it.
    pub(crate) fn source_label(&self) -> &str {
        self.source_name.as_deref().map_or("the repository", short_name)
    }

    /// The edits by hand that a commit discards, and the commits that made them. Edits in other NEW_DIRs stay.
    pub(crate) fn discarded(&self) -> Discarded {
        let Some(tip) = &self.tip else {
            return Discarded::default();
        };
        let paths = tip.discarded(self.new_dir());
        let commits = if paths.is_empty() { Vec::new() } else { tip.edited_by.clone() };
        Discarded { commits, paths }
    }
}

/// The failure of a tip that was edited by hand. `--overwrite` discards the edits that a commit of `new_dir` would
/// lose; those in another NEW_DIR only if that one is localized again.
fn edited(branch: &str, tip: &TipState, new_dir: &str) -> Failure {
    let by = match tip.edited_by.as_slice() {
        [] => String::new(),
        commits => format!(" by {}", commits.join(", ")),
    };
    let mut failure = Failure::new(format!("`{branch}` was edited by hand{by}: {}", listed(&tip.edited)));
    if !tip.discarded(new_dir).is_empty() {
        failure = failure.hint("make the changes in the source; to discard these edits: --overwrite");
    }
    for (other, NewDir { lock, .. }) in tip.new_dirs.iter().filter(|(other, _)| *other != new_dir) {
        if tip.edited.iter().any(|path| path::is_in(path, other)) {
            let target = lock.target.as_deref().unwrap_or_default();
            let again = format!("to discard the edits in `{other}`, localize `{target}` there again: --overwrite");
            failure = failure.hint(again);
        }
    }
    failure
}

/// NEW_DIR, as the user wrote it, as a path from the top of the repository. Fails if no directory of a commit can have
/// this path.
fn path_of_new_dir(workspace: &Workspace, shown: &str) -> Result<String> {
    let top = workspace.top.as_deref();
    let Some(new_dir) = tree::argument_path(&*workspace.tree, top, &workspace.prefix, shown) else {
        return Err(Failure::new(format!("NEW_DIR `{shown}` is outside of the repository"))
            .hint("choose a directory inside, or write plain files: `--no-commit`"));
    };
    if new_dir.is_empty() {
        return Err(Failure::new("NEW_DIR is the top of the repository").hint("choose a directory below it"));
    }
    // git could not check out a tree with such a name on every system.
    for component in path::components(&new_dir) {
        let options = gix::validate::path::component::Options::default();
        if gix::validate::path::component(component.into(), None, options).is_err() {
            let component = quoted(component);
            let message = format!("NEW_DIR `{shown}` cannot be used: git does not check out `{component}` everywhere");
            return Err(Failure::new(message).hint("choose another NEW_DIR"));
        }
    }
    Ok(new_dir)
}

/// The short name of a ref.
fn short_name(full: &str) -> &str {
    ["refs/heads/", "refs/tags/", "refs/remotes/"].iter().find_map(|prefix| full.strip_prefix(prefix)).unwrap_or(full)
}
