//! The repository that the command runs in.

mod files;
mod objects;
mod remotes;
mod worktrees;

pub use files::Snapshot;
pub(crate) use files::Staged;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use gix::bstr::BStr;

use super::{command, error_message, is_object_id, not_run, object_id, open, run, stdout_of};
use crate::message::failure::{self, Failure, Result};
use crate::message::redact;
use crate::os::failpoint;
use crate::os::process::{self, Output, Terminal};

/// A commit of this repository: full hex ids.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitId {
    /// The commit.
    pub commit: String,
    pub tree: String,
}

/// Whether git accepts `branch` as the name of a branch.
pub(crate) fn is_branch_name(branch: &str) -> bool {
    let full = format!("refs/heads/{branch}");
    let is_ref = gix::validate::reference::name(full.as_str().into()).is_ok();
    is_ref && !branch.starts_with('-') && branch != "HEAD"
}

/// The short name of a local or remote-tracking branch, from the full name of its ref; `None` for other refs.
pub(crate) fn branch_of(full: &str) -> Option<&str> {
    match full.strip_prefix("refs/remotes/") {
        Some(name) => Some(name.split_once('/')?.1),
        None => full.strip_prefix("refs/heads/"),
    }
}

/// The repository that the command was started in, discovered as git does.
#[derive(Debug, Default)]
pub struct LocalRepo {
    /// The git directory of the worktree. Absolute.
    pub git_dir: PathBuf,
    /// The git directory that all worktrees share. Absolute.
    pub common: PathBuf,
    /// The top of the working tree; `None` in a bare repository.
    pub top: Option<PathBuf>,
    /// The current directory, from the top: empty, or with a final slash.
    pub prefix: String,
    /// The file of the index, which may be missing; `git commit -- PATH` gives hooks a temporary one.
    pub index: PathBuf,
    /// Whether git may fetch objects that a partial clone lacks.
    may_fetch: bool,
    /// The object database.
    repository: OnceCell<gix::Repository>,
    /// The whole configuration: git takes longer to start than to list it.
    settings: OnceCell<Vec<Setting>>,
    /// The last answer of `git status`.
    changed: RefCell<files::GitStatus>,
    main_branches: OnceCell<Vec<String>>,
    /// The merge bases of two commits, by their ids.
    merge_bases: RefCell<BTreeMap<BTreeSet<String>, Option<String>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref {
    /// The object that it names.
    pub id: String,
    /// The ref that a symbolic ref points to; `None` for other refs.
    pub other_name: Option<String>,
    pub is_head: bool,
}

/// A line of the configuration.
#[derive(Debug)]
struct Setting {
    /// Whether the configuration of this repository sets it, not that of the user or system.
    is_local: bool,
    /// The key as git lists it, with section and variable in lower case.
    key: String,
    /// The value; `true` for a key without a value.
    value: String,
}

/// The content of the file HEAD if git keeps refs in a table.
const NO_FILE: &str = "refs/heads/.invalid";

impl LocalRepo {
    /// Finds the repository of the current directory, or of the environment that a hook gives us.
    pub fn discover() -> Result<Option<LocalRepo>> {
        let mut git = command();
        git.args(["rev-parse", "--is-inside-work-tree", "--absolute-git-dir", "--show-prefix"]);
        git.args(["--git-common-dir", "--git-path", "index", "--show-toplevel"]);
        let output = run(&mut git, None)?;
        // Without a working tree git answers all questions except the last, and fails.
        let bare = output.says(&["must be run in a work tree"]);
        if output.says(&["not a git repository"]) && !output.status.success() && !bare {
            return Ok(None);
        }
        if !output.status.success() && !bare {
            return Err(Failure::new(format!("git cannot use this repository: {}", error_message(&output))));
        }
        let stdout = text(output.stdout)?;
        let lines: Vec<&str> = stdout.lines().collect();
        let [inside, git_dir, prefix, common, index, top @ ..] = lines.as_slice() else {
            return Err(Failure::new("git named no repository directory"));
        };
        let top = top.first().filter(|_| *inside == "true" && !bare);
        Ok(Some(LocalRepo {
            git_dir: PathBuf::from(git_dir),
            common: absolute(common)?,
            top: top.map(PathBuf::from),
            prefix: (*prefix).to_owned(),
            index: absolute(index)?,
            may_fetch: true,
            ..LocalRepo::default()
        }))
    }

    /// Finds the repository as [`LocalRepo::discover`] does, for work that must not reach the network.
    pub fn discover_offline() -> Result<Option<LocalRepo>> {
        // In a partial clone an object that was not fetched yet is then missing.
        Ok(LocalRepo::discover()?.map(|repo| LocalRepo { may_fetch: false, ..repo }))
    }

    /// Whether this run must not reach the network.
    pub fn is_offline(&self) -> bool {
        !self.may_fetch
    }

    /// The object database. In a hook of a server it lacks the pushed objects, which are still in quarantine.
    pub fn repository(&self) -> Result<&gix::Repository> {
        if let Some(repository) = self.repository.get() {
            return Ok(repository);
        }
        let repository = open(&self.git_dir)?;
        Ok(self.repository.get_or_init(|| repository))
    }

    /// The directory of this program's own files, which all worktrees share. It may be missing, and is safe to delete.
    pub(crate) fn own_directory(&self) -> PathBuf {
        self.common.join("kustomize-localize")
    }

    /// The commit that `rev` names; `None` if it does not name one.
    pub fn commit(&self, rev: &str) -> Result<Option<CommitId>> {
        Ok(self.resolve_rev(rev)?.map(|(id, _)| id))
    }

    /// The commit that `rev` names, as [`commit`](Self::commit) finds it, and the full name of the ref that `rev`
    /// means: `None` for an object id, an expression or a detached HEAD.
    pub fn resolve_rev(&self, rev: &str) -> Result<Option<(CommitId, Option<String>)>> {
        if rev.starts_with('-') {
            return Err(Failure::new(format!("`{rev}` is not a revision: it begins with a dash")));
        }
        if let Some(id) = self.read_commit(rev)? {
            return Ok(Some((id, None)));
        }
        // git itself resolves names: if a tag and a branch have the same one, it takes the tag.
        let commit = format!("{rev}^{{commit}}");
        let tree = format!("{rev}^{{commit}}^{{tree}}");
        // `rev` does not begin with a dash, so git cannot take one of these arguments for an option.
        let output = run(self.command().args(["rev-parse", &commit, &tree, "--symbolic-full-name", rev]), None)?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        // `--verify` would accept one name only. Without it a range is accepted, and prints several objects.
        let lines: Vec<&str> = stdout.lines().collect();
        let [commit, tree, name @ ..] = lines.as_slice() else {
            return Ok(None);
        };
        if !output.status.success() || name.len() > 1 || !is_object_id(commit) || !is_object_id(tree) {
            return Ok(None);
        }
        let id = CommitId { commit: (*commit).to_owned(), tree: (*tree).to_owned() };
        // The name of a detached HEAD is `HEAD`, which is not a branch.
        let name = name.first().filter(|name| name.starts_with("refs/"));
        Ok(Some((id, name.map(|name| (*name).to_owned()))))
    }

    /// The commit with a full id, as gix reads it; `None` if gix does not find it.
    fn find_commit(&self, id: &str) -> Result<Option<gix::Commit<'_>>> {
        let id = is_object_id(id).then(|| object_id(id)).transpose()?;
        let repository = self.repository()?;
        Ok(id.and_then(|id| repository.find_commit(id).ok()))
    }

    /// The commit with a full id; `None` if it is not an id, or gix does not find the object.
    fn read_commit(&self, id: &str) -> Result<Option<CommitId>> {
        let Some(commit) = self.find_commit(id)? else { return Ok(None) };
        let tree = commit.tree_id().map(|tree| tree.to_string()).ok();
        Ok(tree.map(|tree| CommitId { commit: id.to_owned(), tree }))
    }

    /// The full name of the current branch, also if it has no commit yet; `None` if HEAD is detached.
    pub fn head(&self) -> Result<Option<String>> {
        match self.repository()?.head_name() {
            Ok(name) if name.as_ref().is_none_or(|name| name.as_bstr() != NO_FILE) => {
                Ok(name.map(|name| name.as_bstr().to_string()))
            }
            // git can read refs in a table, but gix cannot.
            _ => self.line(&["symbolic-ref", "--quiet", "HEAD"]),
        }
    }

    /// The refs that `git for-each-ref` lists with these patterns and filters, by full name, also those whose object is
    /// missing.
    pub fn refs(&self, patterns: &[impl AsRef<str>]) -> Result<BTreeMap<String, Ref>> {
        let mut args = vec!["for-each-ref", "--format=%(HEAD)%(refname) %(objectname) %(symref)"];
        args.extend(patterns.iter().map(AsRef::as_ref));
        let mut refs = BTreeMap::new();
        for line in self.text(&args)?.lines() {
            // The first character is a star for HEAD, else a space. Names of refs cannot contain spaces.
            let fields: Vec<&str> = line.get(1..).unwrap_or_default().split(' ').collect();
            if let [name, id, other_name] = fields.as_slice() {
                let other_name = Some((*other_name).to_owned()).filter(|name| !name.is_empty());
                let reference = Ref { id: (*id).to_owned(), other_name, is_head: line.starts_with('*') };
                refs.insert((*name).to_owned(), reference);
            }
        }
        Ok(refs)
    }

    /// Whether `old` is `new`, or in its history.
    pub fn is_ancestor(&self, old: &str, new: &str) -> Result<bool> {
        // A parent is found without a process, unlike a merge base.
        if old == new || self.is_parent(old, new)? {
            return Ok(true);
        }
        Ok(!self.is_parent(new, old)? && self.merge_base(old, new)?.as_deref() == Some(old))
    }

    /// Whether `old` is a parent of `new`; false if gix does not find `new`.
    fn is_parent(&self, old: &str, new: &str) -> Result<bool> {
        let Some(commit) = self.find_commit(new)? else { return Ok(false) };
        Ok(commit.parent_ids().any(|id| id == old))
    }

    /// A merge base of two commits; `None` if the local history has none.
    pub fn merge_base(&self, old: &str, new: &str) -> Result<Option<String>> {
        if old == new {
            return Ok(Some(old.to_owned()));
        }
        let pair = BTreeSet::from([old.to_owned(), new.to_owned()]);
        if let Some(known) = self.merge_bases.borrow().get(&pair) {
            return Ok(known.clone());
        }
        // git exits with 1 if there is none, which is not a failure.
        let output = run(self.command().args(["merge-base", old, new]), None)?;
        let base = match output.status.code() {
            Some(1) => None,
            _ => Some(text(stdout_of(output)?)?.trim_end().to_owned()),
        };
        // A branch may move while the command runs, so only the answer for ids is remembered.
        if pair.iter().all(|id| is_object_id(id)) {
            self.merge_bases.borrow_mut().insert(pair, base.clone());
        }
        Ok(base)
    }

    /// The number of commits in the history of `new` that are not in that of `old`; `None` if a commit is missing.
    pub fn commits_since(&self, old: &str, new: &str) -> Result<Option<usize>> {
        let count = self.line(&["rev-list", "--count", new, &format!("^{old}")])?;
        Ok(count.and_then(|count| count.parse().ok()))
    }

    /// Whether the repository is a shallow clone, so that earlier commits may be missing.
    pub fn is_shallow(&self) -> Result<bool> {
        let answer = self.line(&["rev-parse", "--is-shallow-repository"])?;
        Ok(answer.as_deref() == Some("true"))
    }

    /// The newest commit in the history of `tip` that changed a path; `None` if no commit did.
    pub fn last_change(&self, tip: &str, path: &str) -> Result<Option<String>> {
        let id = self.line(&["--literal-pathspecs", "rev-list", "-1", tip, "--", path])?;
        Ok(id.filter(|id| !id.is_empty()))
    }

    /// The whole configuration that holds in this repository, in the order of git.
    fn settings(&self) -> Result<&[Setting]> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        // One process for all keys: git takes longer to start than to list them.
        let stdout = self.text(&["config", "--list", "--show-scope", "-z"])?;
        let mut fields = stdout.split('\0');
        let mut settings = Vec::new();
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            // A key without a value is true.
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            let is_local = matches!(scope, "local" | "worktree");
            settings.push(Setting { is_local, key: key.to_owned(), value: value.to_owned() });
        }
        Ok(self.settings.get_or_init(|| settings))
    }

    /// The pager of git; `None` if git prints long output directly.
    pub fn pager(&self) -> Result<Option<String>> {
        Ok(self.line(&["var", "GIT_PAGER"])?.filter(|pager| !pager.is_empty() && pager != "cat"))
    }

    /// The value of a configuration key (section and variable in lower case); `None` if it is not set.
    pub fn config(&self, key: &str) -> Result<Option<String>> {
        // The last value wins, as in git.
        Ok(self.settings()?.iter().rfind(|setting| setting.key == key).map(|setting| setting.value.clone()))
    }

    /// Whether git trusts the modes of files on disk. If it does not, it adds new files as not executable.
    pub fn has_modes(&self) -> Result<bool> {
        Ok(self.config("core.filemode")?.as_deref() != Some("false"))
    }

    /// The boolean value of a configuration key, or `default` if it is not set.
    pub fn config_bool(&self, key: &str, default: bool) -> Result<bool> {
        let Some(value) = self.config(key)? else { return Ok(default) };
        let value = gix::config::Boolean::try_from(BStr::new(&value));
        value
            .map(|value| value.0)
            .map_err(|error| Failure::new(format!("bad boolean value for `{key}` in the git configuration: {error}")))
    }

    /// The URLs of the remotes as configured, for fetching and for pushing.
    pub fn remote_urls(&self) -> Result<Vec<String>> {
        let settings = self.settings()?.iter().filter(|setting| setting.key.starts_with("remote."));
        let urls = settings.filter(|setting| setting.key.ends_with(".url") || setting.key.ends_with(".pushurl"));
        Ok(urls.map(|setting| setting.value.clone()).collect())
    }

    /// A name of the repository for people: the URL of `origin`, or else its directory.
    pub fn name(&self) -> Result<String> {
        let directory = self.top.as_ref().unwrap_or(&self.git_dir).file_name();
        let url = self.config("remote.origin.url")?.map(|url| redact::url(&url));
        Ok(url.unwrap_or_else(|| directory.unwrap_or_default().to_string_lossy().into_owned()))
    }

    /// The short names of the branches that represent the repository: the current branch, and the HEADs of the remotes;
    /// without such a HEAD the branches `main` and `master` that exist. If none of these is found, the two names.
    pub fn main_branches(&self) -> Result<Vec<String>> {
        if let Some(known) = self.main_branches.get() {
            return Ok(known.clone());
        }
        const FIRST: [&str; 2] = ["main", "master"];
        let heads = self.refs(&["refs/remotes/*/HEAD"])?;
        let mut names: Vec<String> = heads.into_values().filter_map(|head| head.other_name).collect();
        // In most CI jobs no remote has a HEAD.
        if names.is_empty() {
            let patterns = FIRST.map(|name| [format!("refs/heads/{name}"), format!("refs/remotes/*/{name}")]);
            names.extend(self.refs(patterns.as_flattened())?.into_keys());
        }
        // HEAD counts in any case: a checkout of a feature branch is what its user works on.
        names.extend(self.head()?);
        let mut branches: Vec<String> = names.iter().filter_map(|name| branch_of(name).map(str::to_owned)).collect();
        if branches.is_empty() {
            branches = FIRST.map(str::to_owned).to_vec();
        }
        Ok(self.main_branches.get_or_init(|| branches).clone())
    }

    /// The settings of this repository that concern connections (`url.*`, `http.*`, `credential.*`, …), which also hold
    /// for fetching upstreams.
    pub fn connection_config(&self) -> Result<Vec<(String, String)>> {
        // Only the settings of this repository: git reads those of the user in any directory.
        const SECTIONS: [&str; 5] = ["url.", "http.", "credential.", "protocol.", "ssh."];
        const KEYS: [&str; 3] = ["core.sshcommand", "core.askpass", "core.gitproxy"];
        let mut settings = Vec::new();
        for setting in self.settings()?.iter().filter(|setting| setting.is_local) {
            let key = setting.key.to_ascii_lowercase();
            if SECTIONS.iter().any(|section| key.starts_with(section)) || KEYS.contains(&key.as_str()) {
                settings.push((setting.key.clone(), setting.value.clone()));
            }
        }
        Ok(settings)
    }

    /// The directory of git's hooks, an absolute path; it may be missing.
    pub fn hooks(&self) -> Result<PathBuf> {
        // For an empty value git would name the current directory, and hooks would be written into the user's files.
        if self.config("core.hookspath")?.as_deref() == Some("") {
            return Err(Failure::new("`core.hooksPath` is empty, so git finds no hooks")
                .hint("unset it: git config --unset-all core.hooksPath"));
        }
        absolute(self.text(&["rev-parse", "--git-path", "hooks"])?.trim_end())
    }

    /// Writes a commit object and returns its id. git decides about identity, dates and signing.
    pub fn commit_tree(&self, tree: &str, parents: &[String], message: &str) -> Result<String> {
        let mut git = self.command();
        git.arg("commit-tree");
        // Unlike `git commit`, `commit-tree` does not read this setting.
        if self.config_bool("commit.gpgsign", false)? {
            git.arg("-S");
        }
        git.args(parents.iter().flat_map(|parent| ["-p", parent])).args(["-F", "-", tree]);
        failpoint::before("write the commit");
        // A signing program may have to ask for a passphrase.
        let output = process::run(&mut git, Some(message.as_bytes()), None, Terminal::Shared);
        let output = output.map_err(not_run)?;
        match output.status.success() {
            true => Ok(text(output.stdout)?.trim_end().to_owned()),
            false if output.says(&["tell me who you are", "ident name", "no email was given", "no name was given"]) => {
                Err(Failure::new("missing user name or email for the commit")
                    .hint("git config user.name NAME")
                    .hint("git config user.email MAIL"))
            }
            false => Err(Failure::new(format!("git could not write the commit: {}", error_message(&output)))),
        }
    }

    /// Moves `name` from `old` to `new` in one step, with a reflog entry. `old` is `None` for a ref
    /// that must not exist yet. Runs the `reference-transaction` hook.
    pub fn update_ref(&self, name: &str, new: &str, old: Option<&str>, reason: &str) -> Result<()> {
        // git compares the old value itself, so nobody can move the ref in between.
        let absent = "0".repeat(new.len());
        let mut git = self.command();
        git.args(["update-ref", "--create-reflog", "-m", reason, "--end-of-options"]);
        failpoint::before("move the ref");
        let output = run(git.args([name, new, old.unwrap_or(&absent)]), None)?;
        // Another run that made the same commit may have been faster.
        if output.status.success() || self.ref_id(name)?.as_deref() == Some(new) {
            Ok(())
        } else {
            Err(not_moved(name, &output))
        }
    }

    /// The object id of a ref; `None` if there is no such ref.
    fn ref_id(&self, name: &str) -> Result<Option<String>> {
        Ok(self.refs(&[name])?.remove(name).map(|reference| reference.id))
    }

    /// git in this repository, which fetches missing objects only if this run may.
    fn command(&self) -> Command {
        let mut command = command();
        // git would fetch the missing objects of a partial clone.
        if !self.may_fetch {
            command.env("GIT_NO_LAZY_FETCH", "1");
        }
        command
    }

    /// The stdout of git.
    fn bytes(&self, args: &[&str]) -> Result<Vec<u8>> {
        stdout_of(run(self.command().args(args), None)?)
    }

    /// The stdout of git as text. Fails if it is not UTF-8.
    fn text(&self, args: &[&str]) -> Result<String> {
        text(self.bytes(args)?)
    }

    /// The line that git prints; `None` if git fails.
    fn line(&self, args: &[&str]) -> Result<Option<String>> {
        let output = run(self.command().args(args), None)?;
        let line = text(output.stdout)?.trim_end().to_owned();
        Ok(Some(line).filter(|_| output.status.success()))
    }
}

/// The failure for a ref that was not moved: another process moved it, a lock exists, or else the message of git.
fn not_moved(name: &str, output: &Output) -> Failure {
    if output.says(&["but expected", "reference already exists", "unable to resolve reference"]) {
        let short = name.trim_start_matches("refs/heads/");
        return Failure::new(format!("`{short}` was updated by another process")).hint("run the same command again");
    }
    let failure = Failure::new(format!("git could not move `{name}`: {}", error_message(output)));
    let lock = output.stderr.split_once("Unable to create '").and_then(|(_, rest)| rest.split_once("': File exists"));
    match lock {
        Some((lock, _)) => {
            failure.hint(format!("if no git is running, remove the lock: {}", failure::command("rm", [lock])))
        }
        None => failure,
    }
}

fn absolute(path: &str) -> Result<PathBuf> {
    std::path::absolute(Path::new(path)).map_err(|error| Failure::new(format!("git named `{path}`: {error}")))
}

fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Failure::new("git gave a name that is not UTF-8"))
}
