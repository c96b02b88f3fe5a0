//! What git knows about files: those of the index, of the working tree, and objects that only git reaches.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::Path;

use serde::Serialize;

use super::{LocalRepo, done};
use crate::git::run;
use crate::message::failure::{Failure, Result};

/// Which files of a repository are read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(tag = "source", rename_all = "kebab-case")]
pub enum Snapshot {
    /// What would be committed.
    Index,
    #[default]
    WorkingTree,
    Commit {
        /// As it was named.
        rev: String,
        /// Its full id; empty when it could not be found.
        commit: String,
    },
}

impl Snapshot {
    /// Returns a commit, or the working tree if `rev` names none.
    pub(crate) fn of(rev: Option<&str>) -> Snapshot {
        let commit = |rev: &str| Snapshot::Commit { rev: rev.to_owned(), commit: String::new() };
        rev.map_or(Snapshot::WorkingTree, commit)
    }
}

/// An entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// Whether a sparse checkout leaves it out.
    pub is_left_out: bool,
    /// As git prints it: `100644`.
    pub mode: String,
    /// The object.
    pub id: String,
    /// 0, or 1 to 3 for a path that is not merged yet.
    pub stage: usize,
    /// The path from the top.
    pub path: String,
}

/// git's letter for a file that it does not track.
const UNTRACKED: char = '?';

/// How many pathspecs git is given: it compares each of them with each file of the index.
const MOST_PATHSPECS: usize = 50;

/// What is known to differ from HEAD.
#[derive(Debug, Default)]
pub(super) struct Changed {
    /// The files and directories that were asked for, from the top. The top itself is the empty path.
    among: BTreeSet<String>,
    /// The files that differ in the index or on disk, with git's letter for what each is on disk.
    files: Vec<(char, String)>,
}

impl Changed {
    fn covers(&self, path: &str) -> bool {
        self.among.iter().any(|one| Path::new(path).starts_with(one))
    }
}

impl LocalRepo {
    /// Returns which of these paths (from the top) are tracked, and differ from HEAD in the index or on disk.
    pub fn changed_paths(&self, among: &BTreeSet<String>) -> Result<Vec<String>> {
        Ok(self.tracked(among)?.into_iter().map(|(_, path)| path).collect())
    }

    /// Returns which of these paths (from the top) are tracked, and something else on disk than in the index: also those
    /// that are not merged or not staged in full.
    pub fn unstaged_paths(&self, among: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let changed = self.tracked(among)?.into_iter();
        Ok(changed.filter(|(on_disk, _)| *on_disk != ' ').map(|(_, path)| path).collect())
    }

    /// Returns what is different of these paths, with git's letter for what it is on disk.
    fn tracked(&self, among: &BTreeSet<String>) -> Result<Vec<(char, String)>> {
        let is_many = among.len() > MOST_PATHSPECS;
        let all = BTreeSet::from([String::new()]);
        let mut changed = self.changed(if is_many { &all } else { among })?;
        changed.retain(|(letter, path)| *letter != UNTRACKED && among.contains(path));
        Ok(changed)
    }

    /// Returns whether no file that git tracks differs from HEAD in the index or on disk.
    pub fn is_clean(&self) -> Result<bool> {
        let all = BTreeSet::from([String::new()]);
        Ok(self.changed(&all)?.iter().all(|(letter, _)| *letter == UNTRACKED))
    }

    /// Returns what differs from HEAD at or below these paths (from the top) in the index or on disk, with git's letter for
    /// what it is on disk; not what git ignores. What the answer before holds is not asked for again.
    pub fn changed(&self, among: &BTreeSet<String>) -> Result<Vec<(char, String)>> {
        let mut known = self.changed.borrow_mut();
        if !among.iter().all(|path| known.covers(path)) {
            let is_all = among.contains("");
            let specs = among.iter().filter(|_| !is_all).map(|path| format!(":(top,literal){path}"));
            let status = ["status", "--porcelain", "-z", "--untracked-files=all", "--no-renames"];
            let mut git = self.command();
            git.args(status).args(["--ignore-submodules=all", "--"]).args(specs);
            let output = done(run(&mut git, None)?)?;
            // A name that is not UTF-8 is none that a reference could name.
            let output = String::from_utf8_lossy(&output);
            let entries = output.split('\0');
            let files = entries.filter_map(|entry| Some((entry.chars().nth(1)?, entry.get(3..)?.to_owned()))).collect();
            *known = Changed { among: among.clone(), files };
        }
        Ok(known.files.clone())
    }

    /// Returns the files that were renamed since the commit `base`: the new path by the old one, from the top.
    pub fn renames(&self, base: &str, to: &Snapshot) -> Result<HashMap<String, String>> {
        let renamed = |how| self.diff(&["-z", "--name-status", "--diff-filter=R", how], base, to, &[]);
        // Files that also changed are not compared where some are missing, as in a partial clone.
        let output = renamed("--find-renames").or_else(|_| renamed("--find-renames=100%"))?;
        let text = String::from_utf8_lossy(&output);
        let mut fields = text.split('\0');
        let mut renames = HashMap::new();
        while let (Some(_), Some(old), Some(new)) = (fields.next(), fields.next(), fields.next()) {
            renames.insert(old.to_owned(), new.to_owned());
        }
        Ok(renames)
    }

    /// Returns the files that may not be what they were in the commit `base`, from the top: of the working tree also those
    /// that git does not track, and does not ignore.
    pub fn changed_since(&self, base: &str, to: &Snapshot) -> Result<Vec<String>> {
        let tracked = self.diff(&["-z", "--name-only", "--no-renames"], base, to, &[])?;
        let tracked = tracked.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let tracked = tracked.map(|path| String::from_utf8_lossy(path).into_owned());
        let untracked = if *to == Snapshot::WorkingTree { self.untracked()? } else { Vec::new() };
        Ok(tracked.chain(untracked).collect())
    }

    /// Returns the lines of a file that changed since the commit `base`, each behind `+` or `-`.
    pub fn changed_lines(&self, base: &str, to: &Snapshot, path: &str) -> Result<Vec<String>> {
        // Whatever attributes and configuration say, the lines themselves.
        let options = ["-p", "-U0", "--text", "--no-ext-diff", "--no-textconv"];
        let spec = format!(":(top,literal){path}");
        let output = self.diff(&options, base, to, &[&spec])?;
        let text = String::from_utf8_lossy(&output);
        let lines = text.lines().skip_while(|line| !line.starts_with("@@"));
        let changed = lines.filter(|line| line.starts_with(['+', '-']));
        Ok(changed.map(str::to_owned).collect())
    }

    fn diff(&self, options: &[&str], base: &str, to: &Snapshot, paths: &[&str]) -> Result<Vec<u8>> {
        let (command, revisions): (&[&str], &[&str]) = match to {
            Snapshot::Index => (&["diff-index", "--cached"], &[base]),
            Snapshot::WorkingTree => (&["diff-index"], &[base]),
            Snapshot::Commit { commit, .. } => (&["diff-tree", "-r"], &[base, commit]),
        };
        self.bytes(&[command, options, revisions, &["--"], paths].concat())
    }

    /// Returns the entries of the index as git reads it, in its order, without those of which only the name is staged (`git
    /// add -N`).
    pub fn staged(&self) -> Result<Vec<Staged>> {
        let mut entries = self.entries(&[])?.0;
        // git lists an entry that only names a file as an empty one.
        if entries.iter().any(Staged::is_empty) {
            let named =
                self.listed(&["diff-files", "--diff-filter=A", "--name-only", "-z", "--no-renames", "--no-relative"])?;
            let named: HashSet<String> = named.into_iter().collect();
            entries.retain(|entry| !(entry.is_empty() && named.contains(&entry.path)));
        }
        Ok(entries)
    }

    /// Returns the entries of the index, also those of which only the name is staged, and the files of the working tree,
    /// from the top, that git neither tracks nor ignores.
    pub fn working_files(&self) -> Result<(Vec<Staged>, Vec<String>)> {
        self.entries(&["--cached", "--others", "--exclude-standard"])
    }

    /// Returns entries of the index, and files that git does not track.
    fn entries(&self, which: &[&str]) -> Result<(Vec<Staged>, Vec<String>)> {
        let lines = self.listed(&[&["ls-files", "-s", "-t", "-z", "--full-name"], which, &["--", ":/"]].concat())?;
        let (mut entries, mut untracked) = (Vec::new(), Vec::new());
        for line in lines {
            match line.strip_prefix("? ") {
                Some(path) => untracked.push(path.to_owned()),
                None => {
                    let unreadable = || Failure::new("cannot read the output of git ls-files");
                    entries.push(staged(&line).ok_or_else(unreadable)?);
                }
            }
        }
        Ok((entries, untracked))
    }

    /// Returns what git lists with `-z`: what is not UTF-8 as it can be shown.
    fn listed(&self, args: &[&str]) -> Result<Vec<String>> {
        let output = self.bytes(args)?;
        let items = output.split(|byte| *byte == 0).filter(|item| !item.is_empty());
        Ok(items.map(|item| String::from_utf8_lossy(item).into_owned()).collect())
    }

    /// Returns the files of the working tree that git does not track, and does not ignore, from the top.
    pub fn untracked(&self) -> Result<Vec<String>> {
        self.listed(&["ls-files", "-z", "--full-name", "--others", "--exclude-standard", "--", ":/"])
    }

    /// Returns the files of the working tree with one of these names that git ignores, or does not track for whatever
    /// reason, from the top.
    pub fn untracked_named(&self, names: &[&str], is_ignored: bool) -> Result<Vec<String>> {
        let which: &[&str] = if is_ignored { &["--ignored", "--exclude-standard"] } else { &[] };
        let specs: Vec<String> = names.iter().map(|name| format!(":(top,glob)**/{name}")).collect();
        let specs: Vec<&str> = specs.iter().map(String::as_str).collect();
        self.listed(&[&["ls-files", "-z", "--full-name", "--others"], which, &["--"], &specs].concat())
    }
}

impl Staged {
    /// Returns whether it is staged, and the object is the empty blob, of either hash.
    pub fn is_empty(&self) -> bool {
        self.stage == 0 && (self.id.starts_with("e69de29bb2d1d643") || self.id.starts_with("473a0f4c3be8a936"))
    }
}

fn staged(line: &str) -> Option<Staged> {
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
