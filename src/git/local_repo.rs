//! The repository that we run in.

mod files;
mod hooks;
mod objects;
mod remotes;
mod worktrees;

pub(crate) use files::{Side, Staged, Within};
pub(crate) use worktrees::{Amid, Listed};

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::Command;

use super::{command, is_object_id, not_run, said};
use crate::message::failure::{self, Failure, Result};
use crate::os::failpoint;
use crate::os::process::{self, Conversation, Limits, Output, Terminal};

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

/// The repository that the command was started in, found as git finds it.
#[derive(Debug)]
pub struct LocalRepo {
    /// The repository's own directory (of the linked worktree, if we are in one). Absolute.
    pub git_dir: PathBuf,
    /// The top of the working tree; none in a bare repository.
    pub top: Option<PathBuf>,
    /// From the top to the directory we were started in: empty, or with a final slash.
    pub prefix: String,
    /// The file of the index, which need not be there: `git commit -- PATH` gives hooks another one.
    pub index: PathBuf,
    /// Whether git may fetch objects that a partial clone lacks.
    may_fetch: bool,
    /// The whole configuration: it takes git longer to start than to list it.
    settings: OnceCell<Vec<Setting>>,
    /// The git that reads objects, once it was needed.
    batch: RefCell<Option<Conversation>>,
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
    /// Where it stands, as `global` or `local`.
    scope: String,
    /// With section and variable in lower case, as git lists it.
    key: String,
    /// None for a key that stands alone, which means true.
    value: Option<String>,
}

impl LocalRepo {
    /// Finds the repository of the current directory, or of the environment that a hook gives us.
    pub fn discover() -> Result<Option<LocalRepo>> {
        LocalRepo::find(true)
    }

    /// Finds the repository as [`LocalRepo::discover`] does, for work that must not reach the network:
    /// in a partial clone an object that was not fetched yet is then missing.
    pub fn discover_offline() -> Result<Option<LocalRepo>> {
        LocalRepo::find(false)
    }

    fn find(may_fetch: bool) -> Result<Option<LocalRepo>> {
        let output = run(
            command(),
            &[
                "rev-parse",
                "--is-inside-work-tree",
                "--absolute-git-dir",
                "--show-prefix",
                "--git-path",
                "index",
                "--show-toplevel",
            ],
            None,
        )?;
        // Without a working tree git answers all but the last question, and fails.
        let bare = output.says(&["must be run in a work tree"]);
        if !output.status.success() && !bare {
            return if output.says(&["not a git repository"]) {
                Ok(None)
            } else {
                Err(Failure::new(format!("git cannot use this repository: {}", said(&output))))
            };
        }
        let stdout = text(&output)?;
        let mut lines = stdout.lines();
        let (inside, git_dir, prefix) = (lines.next(), lines.next(), lines.next().unwrap_or(""));
        let git_dir = git_dir.ok_or_else(|| Failure::new("git named no repository directory"))?;
        // Relative to where we are.
        let index = lines.next().unwrap_or_default();
        let index = std::path::absolute(index).map_err(|error| Failure::new(format!("git named no index: {error}")))?;
        let top = lines.next().filter(|_| inside == Some("true") && !bare).map(PathBuf::from);
        Ok(Some(LocalRepo {
            git_dir: PathBuf::from(git_dir),
            top,
            prefix: prefix.to_owned(),
            index,
            may_fetch,
            settings: OnceCell::new(),
            batch: RefCell::default(),
        }))
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
        let commit = format!("{rev}^{{commit}}");
        let tree = format!("{rev}^{{commit}}^{{tree}}");
        // Nothing here can be taken for another option.
        let args = [&commit, &tree, "--symbolic-full-name", rev];
        let output = self.run(&[&["rev-parse"][..], &args].concat(), None)?;
        if !output.status.success() {
            return Ok(None);
        }
        // Without `--verify`, which takes one name only, a range names several objects, the one it begins at with `^`,
        // and no tree.
        let stdout = String::from_utf8_lossy(&output.stdout);
        let mut ids: Vec<String> = stdout.lines().map(str::to_owned).collect();
        // `HEAD` where that is detached.
        let name = ids.pop_if(|last| !is_object_id(last));
        let [commit, tree] = ids.as_slice() else {
            return Ok(None);
        };
        if !ids.iter().all(|id| is_object_id(id)) {
            return Ok(None);
        }
        let id = CommitId { commit: commit.clone(), tree: tree.clone() };
        Ok(Some((id, name.filter(|name| name.starts_with("refs/")))))
    }

    /// Returns the full name of the branch that HEAD is on, also where there is no commit yet; none where it is detached.
    pub fn head(&self) -> Result<Option<String>> {
        self.line(&["symbolic-ref", "--quiet", "HEAD"])
    }

    /// Returns all refs that match one of `patterns` (as `git for-each-ref` matches), by full name: also those whose
    /// object is missing.
    pub fn refs(&self, patterns: &[&str]) -> Result<BTreeMap<String, Ref>> {
        // HEAD is a star or a space.
        let list = self
            .run(&[&["for-each-ref", "--format=%(HEAD)%(refname) %(objectname) %(symref)"], patterns].concat(), None)?;
        let mut refs = BTreeMap::new();
        for line in ok(list)?.lines() {
            // No name of a ref holds a space.
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
        if old == new {
            return Ok(true);
        }
        let output = self.run(&["merge-base", "--is-ancestor", old, new], None)?;
        match output.status.code() {
            Some(0) => Ok(true),
            Some(1) => Ok(false),
            _ => Err(Failure::new(format!("git cannot compare {old} and {new}: {}", said(&output)))),
        }
    }

    /// Returns a merge base of two commits; none where their histories have nothing in common here.
    pub fn merge_base(&self, one: &str, other: &str) -> Result<Option<String>> {
        self.line(&["merge-base", one, other])
    }

    /// Returns whether history ends somewhere because earlier commits were not fetched.
    pub fn is_shallow(&self) -> Result<bool> {
        Ok(self.line(&["rev-parse", "--is-shallow-repository"])?.as_deref() == Some("true"))
    }

    /// Returns the newest commit in the history of `tip` that changed a path.
    pub fn last_change(&self, tip: &str, path: &str) -> Result<Option<String>> {
        let id = ok(self.run(&["--literal-pathspecs", "rev-list", "-1", tip, "--", path], None)?)?;
        Ok(Some(id.trim().to_owned()).filter(|id| !id.is_empty()))
    }

    /// Returns the line that git prints; none where it fails.
    fn line(&self, args: &[&str]) -> Result<Option<String>> {
        let output = self.run(args, None)?;
        let line = text(&output)?.trim_end().to_owned();
        Ok(Some(line).filter(|_| output.status.success()))
    }

    fn settings(&self) -> Result<&[Setting]> {
        if let Some(settings) = self.settings.get() {
            return Ok(settings);
        }
        let stdout = ok(self.run(&["config", "--list", "--show-scope", "-z"], None)?)?;
        let mut fields = stdout.split('\0');
        let mut settings = Vec::new();
        while let (Some(scope), Some(entry)) = (fields.next(), fields.next()) {
            let (key, value) = match entry.split_once('\n') {
                Some((key, value)) => (key, Some(value.to_owned())),
                None => (entry, None),
            };
            settings.push(Setting { scope: scope.to_owned(), key: key.to_owned(), value });
        }
        Ok(self.settings.get_or_init(|| settings))
    }

    /// Returns the value of a configuration key (section and variable in lower case), if it is set.
    pub fn config(&self, key: &str) -> Result<Option<String>> {
        let last = self.settings()?.iter().rfind(|one| one.key == key);
        Ok(last.map(|one| one.value.clone().unwrap_or_default()))
    }

    /// Returns the URLs of the remotes, as configured: those to fetch from and those to push to.
    pub fn remote_urls(&self) -> Result<Vec<String>> {
        let is_url = |key: &str| {
            let name = key.strip_prefix("remote.");
            name.is_some_and(|name| name.ends_with(".url") || name.ends_with(".pushurl"))
        };
        let urls = self.settings()?.iter().filter(|one| is_url(&one.key));
        Ok(urls.filter_map(|one| one.value.clone()).collect())
    }

    /// Returns the short names of the branches that stand for the repository as a whole: the one that is checked out,
    /// and those that the remotes call their HEAD.
    pub fn main_branches(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = self.head()?.into_iter().collect();
        let patterns = self.at_remotes("HEAD")?;
        let heads = self.refs(&Vec::from_iter(patterns.iter().map(String::as_str)))?;
        names.extend(heads.into_values().filter_map(|head| head.other_name));
        let mut branches = Vec::new();
        for name in &names {
            branches.extend(self.branch_of(name)?.map(str::to_owned));
        }
        Ok(branches)
    }

    /// Returns the short name of the branch that a ref is, here or at a remote, by its full name; none for other refs.
    pub fn branch_of<'n>(&self, full: &'n str) -> Result<Option<&'n str>> {
        let Some(tracked) = full.strip_prefix("refs/remotes/") else {
            return Ok(full.strip_prefix("refs/heads/"));
        };
        // The name of a remote may hold slashes. One that is not configured any more leaves its refs.
        let remotes = self.remotes()?.into_iter();
        let configured = remotes.filter_map(|remote| tracked.strip_prefix(remote)?.strip_prefix('/'));
        let first = tracked.split_once('/').map(|(_, branch)| branch);
        Ok(configured.min_by_key(|branch| branch.len()).or(first))
    }

    /// Returns patterns for [`refs`](Self::refs) that match a branch of that name at each remote.
    pub fn at_remotes(&self, branch: &str) -> Result<Vec<String>> {
        let remotes = self.remotes()?.into_iter().chain(["*"]);
        let pattern = |remote| format!("refs/remotes/{remote}/{branch}");
        Ok(remotes.map(pattern).collect())
    }

    /// Returns whether a configuration key (in lower case) is set to something that git takes for true.
    pub fn config_bool(&self, key: &str) -> Result<bool> {
        if self.config(key)?.is_none() {
            return Ok(false);
        }
        Ok(ok(self.run(&["config", "--type=bool", "--get", key], None)?)?.starts_with("true"))
    }

    /// Returns this repository's own settings that matter to a connection (`url.*`, `http.*`,
    /// `credential.*`, …), which a fetch in another repository would not see.
    pub fn connection_config(&self) -> Result<Vec<(String, String)>> {
        const SECTIONS: [&str; 5] = ["url.", "http.", "credential.", "protocol.", "ssh."];
        const KEYS: [&str; 3] = ["core.sshcommand", "core.askpass", "core.gitproxy"];
        let mut settings = Vec::new();
        for Setting { scope, key, value } in self.settings()? {
            let lower = key.to_ascii_lowercase();
            if (scope == "local" || scope == "worktree")
                && (SECTIONS.iter().any(|section| lower.starts_with(section)) || KEYS.contains(&lower.as_str()))
            {
                // A key without a value (`[http] emptyAuth`) means true.
                let value = value.as_deref().unwrap_or("true");
                settings.push((key.clone(), value.to_owned()));
            }
        }
        Ok(settings)
    }

    /// Writes a commit object and returns its id. Identity, dates and whether it is signed are git's.
    pub fn commit_tree(&self, tree: &str, parents: &[String], message: &str) -> Result<String> {
        let mut args = vec!["commit-tree"];
        // `commit-tree` alone ignores it.
        if self.config_bool("commit.gpgsign")? {
            args.push("-S");
        }
        for parent in parents {
            args.extend(["-p", parent]);
        }
        args.extend(["-F", "-", tree]);
        failpoint::before("write the commit");
        // A signing program may have to ask for a passphrase.
        let output =
            process::run(self.command().args(&args), Some(message.as_bytes()), Limits::default(), Terminal::Shared)
                .map_err(not_run)?;
        match output.status.success() {
            true => Ok(text(&output)?.trim_end().to_owned()),
            false if is_nameless(&output) => Err(nameless()),
            false => Err(Failure::new(format!("git could not write the commit: {}", said(&output)))),
        }
    }

    /// Moves `name` from `old` to `new` in one step, with a reflog entry. `old` is `None` for a ref
    /// that must not exist yet. Runs the `reference-transaction` hook.
    pub fn update_ref(&self, name: &str, new: &str, old: Option<&str>, reason: &str) -> Result<()> {
        let absent = "0".repeat(new.len());
        failpoint::before("move the ref");
        let output = self.run(
            &["update-ref", "--create-reflog", "-m", reason, "--end-of-options", name, new, old.unwrap_or(&absent)],
            None,
        )?;
        match output.status.success() {
            true => Ok(()),
            // Another run that made the same commit was faster.
            false if self.at(name)?.as_deref() == Some(new) => Ok(()),
            false => Err(not_moved(name, &output)),
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

    fn run<S: AsRef<OsStr>>(&self, args: &[S], input: Option<&[u8]>) -> Result<Output> {
        run(self.command(), args, input)
    }
}

/// Returns whether git stopped because it does not know the committer.
fn is_nameless(output: &Output) -> bool {
    !output.status.success()
        && output.says(&["tell me who you are", "ident name", "no email was given", "no name was given"])
}

fn nameless() -> Failure {
    Failure::new("git knows no name and mail address for the commit")
        .hint("git config user.name NAME")
        .hint("git config user.email MAIL")
}

fn moved_meanwhile(name: &str) -> Failure {
    let short = name.trim_start_matches("refs/heads/");
    Failure::new(format!("`{short}` was updated by another process")).hint("run the same command again")
}

/// Explains why a ref was not moved: another process moved it, a lock is in the way, or the message of git.
fn not_moved(name: &str, output: &Output) -> Failure {
    if output.says(&["but expected", "reference already exists", "unable to resolve reference"]) {
        return moved_meanwhile(name);
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

fn run<S: AsRef<OsStr>>(mut command: Command, args: &[S], input: Option<&[u8]>) -> Result<Output> {
    process::run(command.args(args), input, Limits::default(), Terminal::Detached).map_err(not_run)
}

fn text(output: &Output) -> Result<String> {
    String::from_utf8(output.stdout.clone()).map_err(|_| Failure::new("git gave a name that is not UTF-8"))
}

fn ok(output: Output) -> Result<String> {
    if output.status.success() { text(&output) } else { Err(Failure::new(said(&output))) }
}
