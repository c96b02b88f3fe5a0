//! The repository that we run in.

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

use super::{command, done, is_object_id, not_run, object_id, open, run, said};
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

/// Returns whether git accepts `branch` as the name of a branch.
pub(crate) fn is_branch_name(branch: &str) -> bool {
    let full = format!("refs/heads/{branch}");
    let is_ref = gix::validate::reference::name(full.as_str().into()).is_ok();
    is_ref && !branch.starts_with('-') && branch != "HEAD"
}

/// Returns the short name of the branch that a ref is, here or at a remote, by its full name; none for other refs.
pub(crate) fn branch_of(full: &str) -> Option<&str> {
    let at_remote = || Some(full.strip_prefix("refs/remotes/")?.split_once('/')?.1);
    full.strip_prefix("refs/heads/").or_else(at_remote)
}

/// The repository that the command was started in, found as git finds it.
#[derive(Debug, Default)]
pub struct LocalRepo {
    /// The repository's own directory (of the linked worktree, if we are in one). Absolute.
    pub git_dir: PathBuf,
    /// The directory that all worktrees share. Absolute.
    pub common: PathBuf,
    /// The top of the working tree; none in a bare repository.
    pub top: Option<PathBuf>,
    /// From the top to the directory we were started in: empty, or with a final slash.
    pub prefix: String,
    /// The file of the index, which need not be there: `git commit -- PATH` gives hooks another one.
    pub index: PathBuf,
    /// Whether git may fetch objects that a partial clone lacks.
    may_fetch: bool,
    /// The object database.
    repository: OnceCell<gix::Repository>,
    /// The whole configuration: it takes git longer to start than to list it.
    settings: OnceCell<Vec<Setting>>,
    /// What differs from HEAD, with git's letter for what it is on disk.
    changed: RefCell<files::Changed>,
    /// The branches that stand for the repository as a whole.
    main_branches: OnceCell<Vec<String>>,
    /// Where histories of two commits meet, by their ids.
    merge_bases: RefCell<BTreeMap<BTreeSet<String>, Option<String>>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref {
    /// The object that it names.
    pub id: String,
    /// The ref that it is only another name of.
    pub other_name: Option<String>,
    pub is_head: bool,
}

/// A line of the configuration.
#[derive(Debug)]
struct Setting {
    /// Whether it is one of this repository.
    is_own: bool,
    /// With section and variable in lower case, as git lists it.
    key: String,
    /// That of a key that stands alone is `true`.
    value: String,
}

/// What the file HEAD has where git keeps refs in a table.
const NO_FILE: &str = "refs/heads/.invalid";

impl LocalRepo {
    /// Finds the repository of the current directory, or of the environment that a hook gives us.
    pub fn discover() -> Result<Option<LocalRepo>> {
        let mut git = command();
        git.args(["rev-parse", "--is-inside-work-tree", "--absolute-git-dir", "--show-prefix"]);
        git.args(["--git-common-dir", "--git-path", "index", "--show-toplevel"]);
        let output = run(&mut git, None)?;
        // Without a working tree git answers all but the last question, and fails.
        let bare = output.says(&["must be run in a work tree"]);
        if !output.status.success() && !bare {
            let failure = || Failure::new(format!("git cannot use this repository: {}", said(&output)));
            return if output.says(&["not a git repository"]) { Ok(None) } else { Err(failure()) };
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

    /// Finds the repository as [`LocalRepo::discover`] does, for work that must not reach the network:
    /// in a partial clone an object that was not fetched yet is then missing.
    pub fn discover_offline() -> Result<Option<LocalRepo>> {
        Ok(LocalRepo::discover()?.map(|found| LocalRepo { may_fetch: false, ..found }))
    }

    /// Returns the object database, without what a server has not taken yet of a push.
    pub fn repository(&self) -> Result<&gix::Repository> {
        if let Some(repository) = self.repository.get() {
            return Ok(repository);
        }
        let repository = open(&self.git_dir)?;
        Ok(self.repository.get_or_init(|| repository))
    }

    /// Returns the commit that `rev` names, or `None` if it names none.
    pub fn commit(&self, rev: &str) -> Result<Option<CommitId>> {
        Ok(self.named(rev)?.map(|(id, _)| id))
    }

    /// Returns the commit that `rev` names as [`commit`](Self::commit) does, and the full name of the ref that it stands
    /// for: none for an object id, an expression, a detached HEAD. Where a tag and a branch share a name, git takes the
    /// tag, and so does this.
    pub fn named(&self, rev: &str) -> Result<Option<(CommitId, Option<String>)>> {
        if rev.starts_with('-') {
            return Err(Failure::new(format!("`{rev}` is not a revision: it begins with a dash")));
        }
        if let Some(id) = self.read_commit(rev)? {
            return Ok(Some((id, None)));
        }
        let commit = format!("{rev}^{{commit}}");
        let tree = format!("{rev}^{{commit}}^{{tree}}");
        // Nothing here can be taken for another option.
        let output = run(self.command().args(["rev-parse", &commit, &tree, "--symbolic-full-name", rev]), None)?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        // Without `--verify`, which takes one name only, a range names several objects, the one it begins at with `^`.
        let lines: Vec<&str> = stdout.lines().collect();
        let [commit, tree, name @ ..] = lines.as_slice() else {
            return Ok(None);
        };
        if !output.status.success() || name.len() > 1 || !is_object_id(commit) || !is_object_id(tree) {
            return Ok(None);
        }
        let id = CommitId { commit: (*commit).to_owned(), tree: (*tree).to_owned() };
        // `HEAD` where that is detached.
        let name = name.first().filter(|name| name.starts_with("refs/"));
        Ok(Some((id, name.map(|name| (*name).to_owned()))))
    }

    fn found(&self, id: &str) -> Result<Option<gix::Commit<'_>>> {
        let id = is_object_id(id).then(|| object_id(id)).transpose()?;
        let repository = self.repository()?;
        Ok(id.and_then(|id| repository.find_commit(id).ok()))
    }

    /// Returns the commit of a full id, where gix finds it.
    fn read_commit(&self, id: &str) -> Result<Option<CommitId>> {
        let Some(commit) = self.found(id)? else { return Ok(None) };
        let tree = commit.tree_id().map(|tree| tree.to_string()).ok();
        Ok(tree.map(|tree| CommitId { commit: id.to_owned(), tree }))
    }

    /// Returns the full name of the branch that HEAD is on, also where there is no commit yet; none where it is detached.
    pub fn head(&self) -> Result<Option<String>> {
        match self.repository()?.head_name() {
            Ok(name) if name.as_ref().is_none_or(|name| name.as_bstr() != NO_FILE) => {
                Ok(name.map(|name| name.as_bstr().to_string()))
            }
            _ => self.line(&["symbolic-ref", "--quiet", "HEAD"]),
        }
    }

    /// Returns all refs that match one of `patterns` (as `git for-each-ref` matches), by full name: also those whose
    /// object is missing.
    pub fn refs(&self, patterns: &[impl AsRef<str>]) -> Result<BTreeMap<String, Ref>> {
        let mut args = vec!["for-each-ref", "--format=%(HEAD)%(refname) %(objectname) %(symref)"];
        args.extend(patterns.iter().map(AsRef::as_ref));
        let mut refs = BTreeMap::new();
        for line in self.text(&args)?.lines() {
            // HEAD is a star or a space. No name of a ref holds a space.
            let fields: Vec<&str> = line.get(1..).unwrap_or_default().split(' ').collect();
            if let [name, id, other_name] = fields.as_slice() {
                let other_name = Some((*other_name).to_owned()).filter(|name| !name.is_empty());
                let found = Ref { id: (*id).to_owned(), other_name, is_head: line.starts_with('*') };
                refs.insert((*name).to_owned(), found);
            }
        }
        Ok(refs)
    }

    pub fn is_ancestor(&self, old: &str, new: &str) -> Result<bool> {
        if old == new || self.is_parent(old, new)? {
            return Ok(true);
        }
        Ok(!self.is_parent(new, old)? && self.merge_base(old, new)?.as_deref() == Some(old))
    }

    fn is_parent(&self, old: &str, new: &str) -> Result<bool> {
        let Some(commit) = self.found(new)? else { return Ok(false) };
        Ok(commit.parent_ids().any(|id| id == old))
    }

    /// Returns a merge base of two commits; none where their histories have nothing in common here.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>> {
        if one == other {
            return Ok(Some(one.to_owned()));
        }
        let pair = BTreeSet::from([one.to_owned(), other.to_owned()]);
        if let Some(known) = self.merge_bases.borrow().get(&pair) {
            return Ok(known.clone());
        }
        let output = run(self.command().args(["merge-base", one, other]), None)?;
        let found = match output.status.code() {
            Some(1) => None,
            _ => Some(text(done(output)?)?.trim_end().to_owned()),
        };
        // What a name stands for may change.
        if pair.iter().all(|id| is_object_id(id)) {
            self.merge_bases.borrow_mut().insert(pair, found.clone());
        }
        Ok(found)
    }

    /// Returns how many commits are in the history of `new` and not in that of `old`; none where that is not here.
    pub fn commits_since(&self, old: &str, new: &str) -> Result<Option<usize>> {
        let count = self.line(&["rev-list", "--count", new, &format!("^{old}")])?;
        Ok(count.and_then(|count| count.parse().ok()))
    }

    /// Returns whether history ends somewhere because earlier commits were not fetched.
    pub fn is_shallow(&self) -> Result<bool> {
        let answer = self.line(&["rev-parse", "--is-shallow-repository"])?;
        Ok(answer.as_deref() == Some("true"))
    }

    /// Returns the newest commit in the history of `tip` that changed a path.
    pub fn last_change(&self, tip: &str, path: &str) -> Result<Option<String>> {
        let id = self.line(&["--literal-pathspecs", "rev-list", "-1", tip, "--", path])?;
        Ok(id.filter(|id| !id.is_empty()))
    }

    fn settings(&self) -> Result<&[Setting]> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let stdout = self.text(&["config", "--list", "--show-scope", "-z"])?;
        let mut fields = stdout.split('\0');
        let mut settings = Vec::new();
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            let is_own = matches!(scope, "local" | "worktree");
            settings.push(Setting { is_own, key: key.to_owned(), value: value.to_owned() });
        }
        Ok(self.settings.get_or_init(|| settings))
    }

    /// Returns the command in which git shows what is long; none where it only prints it.
    pub fn pager(&self) -> Result<Option<String>> {
        Ok(self.line(&["var", "GIT_PAGER"])?.filter(|pager| !pager.is_empty() && pager != "cat"))
    }

    /// Returns the value of a configuration key (section and variable in lower case), if it is set.
    pub fn config(&self, key: &str) -> Result<Option<String>> {
        Ok(self.settings()?.iter().rfind(|one| one.key == key).map(|one| one.value.clone()))
    }

    /// Returns whether modes of files on disk mean something. Where they do not, git adds a file that it does not track as
    /// one that is not executable.
    pub fn has_modes(&self) -> Result<bool> {
        Ok(self.config("core.filemode")?.as_deref() != Some("false"))
    }

    /// Returns whether a configuration key is set to something that git takes for true, or what holds where it is not
    /// set.
    pub fn config_bool(&self, key: &str, default: bool) -> Result<bool> {
        let Some(value) = self.config(key)? else { return Ok(default) };
        let value = gix::config::Boolean::try_from(BStr::new(&value));
        value
            .map(|value| value.0)
            .map_err(|error| Failure::new(format!("bad boolean value for `{key}` in the git configuration: {error}")))
    }

    /// Returns the URLs of the remotes, as configured: those to fetch from and those to push to.
    pub fn remote_urls(&self) -> Result<Vec<String>> {
        let is_url = |key: &str| key.starts_with("remote.") && (key.ends_with(".url") || key.ends_with(".pushurl"));
        let urls = self.settings()?.iter().filter(|one| is_url(&one.key));
        Ok(urls.map(|one| one.value.clone()).collect())
    }

    /// Returns what names it to people: the URL of `origin`, else its directory.
    pub fn name(&self) -> Result<String> {
        let directory = self.top.as_ref().unwrap_or(&self.git_dir).file_name();
        let url = self.config("remote.origin.url")?.map(|url| redact::url(&url));
        Ok(url.unwrap_or_else(|| directory.unwrap_or_default().to_string_lossy().into_owned()))
    }

    /// Returns the short names of the branches that stand for the repository as a whole: the one that is checked out,
    /// and those that the remotes call their HEAD. Where no remote does, as in most jobs, that is a branch with the name
    /// that repositories begin with, if it is here or nothing else is known. They are asked for once in a run.
    pub fn main_branches(&self) -> Result<Vec<String>> {
        if let Some(known) = self.main_branches.get() {
            return Ok(known.clone());
        }
        const FIRST: [&str; 2] = ["main", "master"];
        let heads = self.refs(&["refs/remotes/*/HEAD"])?;
        let mut names: Vec<String> = heads.into_values().filter_map(|head| head.other_name).collect();
        if names.is_empty() {
            let patterns = FIRST.map(|name| [format!("refs/heads/{name}"), format!("refs/remotes/*/{name}")]);
            names.extend(self.refs(patterns.as_flattened())?.into_keys());
        }
        names.extend(self.head()?);
        let mut branches: Vec<String> = names.iter().filter_map(|name| branch_of(name).map(str::to_owned)).collect();
        if branches.is_empty() {
            branches = FIRST.map(str::to_owned).to_vec();
        }
        Ok(self.main_branches.get_or_init(|| branches).clone())
    }

    /// Returns this repository's own settings that matter to a connection (`url.*`, `http.*`,
    /// `credential.*`, …), which a fetch in another repository would not see.
    pub fn connection_config(&self) -> Result<Vec<(String, String)>> {
        const SECTIONS: [&str; 5] = ["url.", "http.", "credential.", "protocol.", "ssh."];
        const KEYS: [&str; 3] = ["core.sshcommand", "core.askpass", "core.gitproxy"];
        let matters = |key: &str| {
            let key = key.to_ascii_lowercase();
            SECTIONS.iter().any(|section| key.starts_with(section)) || KEYS.contains(&key.as_str())
        };
        let own = self.settings()?.iter().filter(|one| one.is_own && matters(&one.key));
        Ok(own.map(|one| (one.key.clone(), one.value.clone())).collect())
    }

    /// Returns the directory that git takes hooks from, an absolute path; it may not be there.
    pub fn hooks(&self) -> Result<PathBuf> {
        // git then names the current directory.
        if self.config("core.hookspath")?.as_deref() == Some("") {
            return Err(Failure::new("`core.hooksPath` is empty, so git finds no hooks")
                .hint("unset it: git config --unset-all core.hooksPath"));
        }
        absolute(self.text(&["rev-parse", "--git-path", "hooks"])?.trim_end())
    }

    /// Writes a commit object and returns its id. Identity, dates and whether it is signed are git's.
    pub fn commit_tree(&self, tree: &str, parents: &[String], message: &str) -> Result<String> {
        let mut git = self.command();
        git.arg("commit-tree");
        // `commit-tree` alone ignores it.
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
            false => Err(Failure::new(format!("git could not write the commit: {}", said(&output)))),
        }
    }

    /// Moves `name` from `old` to `new` in one step, with a reflog entry. `old` is `None` for a ref
    /// that must not exist yet. Runs the `reference-transaction` hook.
    pub fn update_ref(&self, name: &str, new: &str, old: Option<&str>, reason: &str) -> Result<()> {
        let absent = "0".repeat(new.len());
        let mut git = self.command();
        git.args(["update-ref", "--create-reflog", "-m", reason, "--end-of-options"]);
        failpoint::before("move the ref");
        let output = run(git.args([name, new, old.unwrap_or(&absent)]), None)?;
        // Another run that made the same commit may have been faster.
        if output.status.success() || self.at(name)?.as_deref() == Some(new) {
            Ok(())
        } else {
            Err(not_moved(name, &output))
        }
    }

    /// Returns where a ref is.
    fn at(&self, name: &str) -> Result<Option<String>> {
        Ok(self.refs(&[name])?.remove(name).map(|found| found.id))
    }

    fn command(&self) -> Command {
        let mut command = command();
        if !self.may_fetch {
            command.env("GIT_NO_LAZY_FETCH", "1");
        }
        command
    }

    /// Returns what git prints.
    fn bytes(&self, args: &[&str]) -> Result<Vec<u8>> {
        done(run(self.command().args(args), None)?)
    }

    fn text(&self, args: &[&str]) -> Result<String> {
        text(self.bytes(args)?)
    }

    /// Returns the line that git prints; none where it fails.
    fn line(&self, args: &[&str]) -> Result<Option<String>> {
        let output = run(self.command().args(args), None)?;
        let line = text(output.stdout)?.trim_end().to_owned();
        Ok(Some(line).filter(|_| output.status.success()))
    }
}

/// Explains why a ref was not moved: another process moved it, a lock is in the way, or the message of git.
fn not_moved(name: &str, output: &Output) -> Failure {
    if output.says(&["but expected", "reference already exists", "unable to resolve reference"]) {
        let short = name.trim_start_matches("refs/heads/");
        return Failure::new(format!("`{short}` was updated by another process")).hint("run the same command again");
    }
    let failure = Failure::new(format!("git could not move `{name}`: {}", said(output)));
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
