//! Asks git about files of the index and the working tree, and about changes.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde::Serialize;

use super::{LocalRepo, stdout_of};
use crate::git::run;
use crate::message::failure::{Failure, Result};

/// The files of a repository that a run reads.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Snapshot {
    /// The files that would be committed.
    Index,
    #[default]
    WorkingTree,
    Commit {
        /// The revision as the user wrote it.
        rev: String,
        /// The full id; empty if the commit was not found.
        commit: String,
    },
}

impl Snapshot {
    /// A commit, or the working tree without `rev`.
    pub(crate) fn of(rev: Option<&str>) -> Snapshot {
        match rev {
            Some(rev) => Snapshot::Commit { rev: rev.to_owned(), commit: String::new() },
            None => Snapshot::WorkingTree,
        }
    }
}

/// An entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Whether a sparse checkout leaves it out.
    pub is_left_out: bool,
    /// The mode as git prints it, such as `100644`.
    pub mode: String,
    /// The id of the object.
    pub id: String,
    /// 0, or 1 to 3 for a path with a merge conflict.
    pub stage: usize,
    /// The path from the top.
    pub path: String,
}

/// git's letter for a file that it does not track.
const UNTRACKED: char = '?';

/// The largest number of pathspecs for git.
const MOST_PATHSPECS: usize = 50;

/// The last answer of `git status`.
#[derive(Debug, Default)]
pub(super) struct GitStatus {
    /// The files and directories that were asked about, from the top. The top itself is the empty path.
    among: BTreeSet<String>,
    /// The files that differ from HEAD in the index or on disk, with git's letter for the change on disk.
    files: Vec<(char, String)>,
}

impl GitStatus {
    /// Whether a path was asked about, by itself or with a directory above it.
    fn covers(&self, path: &str) -> bool {
        self.among.iter().any(|directory| Path::new(path).starts_with(directory))
    }
}

impl LocalRepo {
    /// The paths of these (from the top) that are tracked and differ from HEAD in the index or on disk.
    pub fn changed_paths(&self, among: &BTreeSet<String>) -> Result<Vec<String>> {
        Ok(self.tracked(among)?.into_iter().map(|(_, path)| path).collect())
    }

    /// The paths of these (from the top) that are tracked and differ on disk from the index, also if they are partly
    /// staged or have a merge conflict.
    pub fn unstaged_paths(&self, among: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let changed = self.tracked(among)?.into_iter();
        Ok(changed.filter(|(on_disk, _)| *on_disk != ' ').map(|(_, path)| path).collect())
    }

    /// The tracked paths of these that differ from HEAD, with git's letter for the change on disk.
    fn tracked(&self, among: &BTreeSet<String>) -> Result<Vec<(char, String)>> {
        // git compares each pathspec with each file, so many of them cost more than all files.
        let is_many = among.len() > MOST_PATHSPECS;
        let all = BTreeSet::from([String::new()]);
        let mut changed = self.changed(if is_many { &all } else { among })?;
        changed.retain(|(letter, path)| *letter != UNTRACKED && among.contains(path));
        Ok(changed)
    }

    /// Whether all tracked files are as in HEAD, in the index and on disk.
    pub fn is_clean(&self) -> Result<bool> {
        let all = BTreeSet::from([String::new()]);
        Ok(self.changed(&all)?.iter().all(|(letter, _)| *letter == UNTRACKED))
    }

    /// The files at or below these paths (from the top) that differ from HEAD in the index or on disk, with git's
    /// letter for the change on disk. Ignored files are left out. The result may have other files, too, because the
    /// answer to an earlier question is used again: callers filter it.
    pub fn changed(&self, among: &BTreeSet<String>) -> Result<Vec<(char, String)>> {
        let mut known = self.changed.borrow_mut();
        // The last answer is remembered, because git may read every file for it.
        if !among.iter().all(|path| known.covers(path)) {
            // The top stands for all files, so git needs no pathspec.
            let is_all = among.contains("");
            let specs = among.iter().filter(|_| !is_all).map(|path| format!(":(top,literal){path}"));
            // With renames an entry would have two paths. A changed submodule is not a changed file.
            let status = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"];
            let mut git = self.command();
            git.args(status).args(["--ignore-submodules=all", "--"]).args(specs);
            let output = stdout_of(run(&mut git, None)?)?;
            // A reference cannot name a file whose name is not UTF-8, so a wrong name does not matter.
            let output = String::from_utf8_lossy(&output);
            let entries = output.split('\0');
            let files = entries.filter_map(|entry| Some((entry.chars().nth(1)?, entry.get(3..)?.to_owned()))).collect();
            *known = GitStatus { among: among.clone(), files };
        }
        Ok(known.files.clone())
    }

    /// The files that were renamed since the commit `base`: the new path by the old path, from the top.
    pub fn renames(&self, base: &str, to: &Snapshot) -> Result<HashMap<String, String>> {
        let mut options = ["-z", "--name-status", "--diff-filter=R", "--find-renames"];
        let output = self.diff(&options, base, to, &[]).or_else(|_| {
            // A partial clone may lack the contents. Renames of unchanged files are visible without them.
            options[3] = "--find-renames=100%";
            self.diff(&options, base, to, &[])
        })?;
        let text = String::from_utf8_lossy(&output);
        let mut fields = text.split('\0');
        let mut renames = HashMap::new();
        while let (Some(_), Some(old), Some(new)) = (fields.next(), fields.next(), fields.next()) {
            renames.insert(old.to_owned(), new.to_owned());
        }
        Ok(renames)
    }

    /// The files that may have changed since the commit `base`, from the top: a file on disk may only have a new time.
    /// For the working tree it includes untracked files that git does not ignore.
    pub fn changed_since(&self, base: &str, to: &Snapshot) -> Result<Vec<String>> {
        let tracked = self.diff(&["-z", "--name-only", "--no-renames"], base, to, &[])?;
        let tracked = tracked.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let tracked = tracked.map(|path| String::from_utf8_lossy(path).into_owned());
        // Only the working tree has files that git does not know.
        let untracked = if *to == Snapshot::WorkingTree { self.untracked()? } else { Vec::new() };
        Ok(tracked.chain(untracked).collect())
    }

    /// The lines of a file that changed since the commit `base`, each after `+` or `-`.
    pub fn changed_lines(&self, base: &str, to: &Snapshot, path: &str) -> Result<Vec<String>> {
        // Attributes and configuration must not replace the lines by the output of a program.
        let options = ["-p", "-U0", "--text", "--no-ext-diff", "--no-textconv"];
        let spec = format!(":(top,literal){path}");
        let output = self.diff(&options, base, to, &[&spec])?;
        let text = String::from_utf8_lossy(&output);
        // The lines above the first `@@` name the file, also after `+` and `-`.
        let lines = text.lines().skip_while(|line| !line.starts_with("@@"));
        let changed = lines.filter(|line| line.starts_with(['+', '-']));
        Ok(changed.map(str::to_owned).collect())
    }

    /// The output of a plumbing diff between the commit `base` and a snapshot.
    fn diff(&self, options: &[&str], base: &str, to: &Snapshot, paths: &[&str]) -> Result<Vec<u8>> {
        let (command, revisions): (&[&str], &[&str]) = match to {
            Snapshot::Index => (&["diff-index", "--cached"], &[base]),
            Snapshot::WorkingTree => (&["diff-index"], &[base]),
            Snapshot::Commit { commit, .. } => (&["diff-tree", "-r"], &[base, commit]),
        };
        self.bytes(&[command, options, revisions, &["--"], paths].concat())
    }

    /// The entries of the index as git reads it, in its order, without those of `git add -N`.
    pub fn staged(&self) -> Result<Vec<Staged>> {
        let mut entries = self.entries(&[])?.0;
        // git lists an entry of `git add -N` like an empty file; `diff-files` tells them apart.
        if entries.iter().any(Staged::is_empty) {
            let named = self.list_paths(&[
                "diff-files",
                "--diff-filter=A",
                "--name-only",
                "-z",
                "--no-renames",
                "--no-relative",
            ])?;
            let named: HashSet<String> = named.into_iter().collect();
            entries.retain(|entry| !(entry.is_empty() && named.contains(&entry.path)));
        }
        Ok(entries)
    }

    /// The entries of the index with those of `git add -N`, and the untracked files of the working tree, from the top,
    /// that git does not ignore.
    pub fn working_files(&self) -> Result<(Vec<Staged>, Vec<String>)> {
        self.entries(&["--cached", "--others", "--exclude-standard"])
    }

    /// Entries of the index, and untracked files, as `git ls-files` lists them with the options `which`.
    fn entries(&self, which: &[&str]) -> Result<(Vec<Staged>, Vec<String>)> {
        let lines =
            self.list_paths(&[&["ls-files", "-s", "-t", "-z", "--full-name"], which, &["--", ":/"]].concat())?;
        let (mut entries, mut untracked) = (Vec::new(), Vec::new());
        for line in lines {
            // With `-t` git puts `?` before a file that it does not track.
            match line.strip_prefix("? ") {
                Some(path) => untracked.push(path.to_owned()),
                None => match parse_entry(&line) {
                    Some(entry) => entries.push(entry),
                    None => return Err(Failure::new("cannot read the output of git ls-files")),
                },
            }
        }
        Ok((entries, untracked))
    }

    /// The items that git lists with `-z`, with replacement characters if they are not UTF-8.
    fn list_paths(&self, args: &[&str]) -> Result<Vec<String>> {
        let output = self.bytes(args)?;
        let items = output.split(|byte| *byte == 0).filter(|item| !item.is_empty());
        Ok(items.map(|item| String::from_utf8_lossy(item).into_owned()).collect())
    }

    /// The untracked files of the working tree that git does not ignore, from the top.
    pub fn untracked(&self) -> Result<Vec<String>> {
        self.list_paths(&["ls-files", "-z", "--full-name", "--others", "--exclude-standard", "--", ":/"])
    }

    /// Whether git ignores a file of the working tree, from the top.
    pub fn ignores(&self, path: &str) -> Result<bool> {
        Ok(self.line(&["check-ignore", "--", &format!(":(top){path}")])?.is_some())
    }

    /// The untracked files of the working tree with one of these names, from the top, ignored or not.
    pub fn untracked_named(&self, names: &[&str]) -> Result<Vec<String>> {
        self.other_files(names, &[])
    }

    /// The files of the working tree with one of these names that git ignores, from the top.
    pub fn ignored_named(&self, names: &[&str]) -> Result<Vec<String>> {
        self.other_files(names, &["--ignored", "--exclude-standard"])
    }

    /// The untracked files with one of these names, as `git ls-files --others` lists them with the options `which`.
    fn other_files(&self, names: &[&str], which: &[&str]) -> Result<Vec<String>> {
        let specs: Vec<String> = names.iter().map(|name| format!(":(top,glob)**/{name}")).collect();
        let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
        self.list_paths(&[&["ls-files", "-z", "--full-name", "--others"], which, &["--"], &specs].concat())
    }
}

impl Staged {
    /// Whether the object is the empty blob, as SHA-1 or SHA-256, and the path has no conflict.
    pub fn is_empty(&self) -> bool {
        self.stage == 0 && (self.id.starts_with("e69de29bb2d1d643") || self.id.starts_with("473a0f4c3be8a936"))
    }
}

/// Parses an entry of the index as `git ls-files -s -t` prints it.
fn parse_entry(line: &str) -> Option<Staged> {
    let (fields, path) = line.split_once('\t')?;
    let mut fields = fields.split(' ');
    Some(Staged {
        is_left_out: fields.next()? == "S",
        mode: fields.next()?.to_owned(),
        id: fields.next()?.to_owned(),
        stage: fields.next()?.parse().ok()?,
        path: path.to_owned(),
    })
}
