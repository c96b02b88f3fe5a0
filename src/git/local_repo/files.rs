//! What git knows about files: those of the index, of the working tree, and objects that only git reaches.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::{LocalRepo, run};
use crate::git::said;
use crate::message::failure::{Failure, Result};
use crate::os::parallel::Ahead;
use crate::os::process::Output;

/// What a commit is compared with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side<'a> {
    /// The index.
    Index,
    /// The tracked files of the working tree.
    WorkingTree,
    /// A commit, by its id.
    Commit(&'a str),
}

/// An entry of the index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// As git prints it: `100644`.
    pub mode: String,
    /// The object.
    pub id: String,
    /// 0, or 1 to 3 for a path that is not merged yet.
    pub stage: u32,
    /// The path from the top.
    pub path: Vec<u8>,
}

/// A question which paths are changed, that git answers while something else is done.
pub struct Status {
    among: BTreeSet<String>,
    answer: Ahead<Result<Output>>,
}

/// How many pathspecs git is given: it compares each of them with each file of the index.
const MOST_PATHSPECS: usize = 50;

/// Returns a few paths that these are, or lie in; none where only the top holds them all.
fn shallow(paths: &BTreeSet<String>) -> BTreeSet<&str> {
    let depth = |place: &&str| place.matches('/').count();
    let mut places: BTreeSet<&str> = paths.iter().map(String::as_str).collect();
    while places.len() > MOST_PATHSPECS {
        let deepest = places.iter().map(depth).max().unwrap_or_default();
        places = places
            .into_iter()
            .map(|place| match depth(&place) {
                found if found == deepest => place.rsplit_once('/').map_or("", |(above, _)| above),
                _ => place,
            })
            .collect();
    }
    if places.contains("") { BTreeSet::new() } else { places }
}

impl LocalRepo {
    /// Begins to look which of these paths (from the top) are tracked, and differ from HEAD in the index or on disk.
    pub fn begin_status(&self, among: BTreeSet<String>) -> Status {
        let mut command = self.command();
        command.args(status_arguments(&among));
        let answer = Ahead::begin(move |_| run::<&str>(command, &[], None));
        Status { among, answer }
    }

    /// Returns which of these paths (from the top) are tracked, and differ from HEAD in the index or on disk. `begun` may
    /// have found that out.
    pub fn changed_paths(&self, among: &BTreeSet<String>, begun: Option<Status>) -> Result<Vec<String>> {
        let begun = begun.filter(|begun| among.is_subset(&begun.among));
        let changed = match begun.and_then(|begun| begun.answer.result()) {
            Some(answer) => status_among(&succeeded(answer?)?, among),
            None => self.status(among)?,
        };
        Ok(changed.into_iter().map(|(_, path)| path).collect())
    }

    /// Returns which of these paths (from the top) are tracked, and something else on disk than in the index: also those
    /// that are not merged or not staged in full.
    pub fn unstaged_paths(&self, among: &BTreeSet<String>) -> Result<BTreeSet<String>> {
        let changed = self.status(among)?.into_iter();
        let unstaged = changed.filter(|(on_disk, _)| *on_disk != ' ');
        Ok(unstaged.map(|(_, path)| path).collect())
    }

    /// Returns what is different of these paths, with git's letter for what it is on disk.
    fn status(&self, among: &BTreeSet<String>) -> Result<Vec<(char, String)>> {
        if among.is_empty() {
            return Ok(Vec::new());
        }
        let output = succeeded(self.run(&status_arguments(among), None)?)?;
        Ok(status_among(&output, among))
    }

    /// Returns the tracked paths (from the top), and of each whether a sparse checkout leaves it out.
    pub fn tracked_paths(&self) -> Result<HashMap<String, bool>> {
        let output = self.files(&["ls-files", "-t", "-z", "--full-name", "--", ":/"])?;
        Ok(String::from_utf8_lossy(&output)
            .split('\0')
            .filter_map(|entry| entry.split_once(' '))
            .map(|(tag, path)| (path.to_owned(), tag == "S"))
            .collect())
    }

    /// Returns how many of `paths` (from the top, tracked) are something else on disk than in the index.
    pub fn not_staged(&self, paths: &[&str]) -> Result<usize> {
        if paths.is_empty() {
            return Ok(0);
        }
        // Unlike `diff-files`, it reads the file where only its times differ, as in a copy of the repository.
        let mut args = vec!["ls-files", "--modified", "-z", "--full-name", "--"];
        // As many as a command line takes anywhere; one question about all files of these names
        // takes less time than many questions.
        let specs: Vec<String> = if paths.len() <= 200 {
            paths.iter().map(|path| format!(":(top,literal){path}")).collect()
        } else {
            let names: BTreeSet<&str> =
                paths.iter().map(|path| path.rsplit_once('/').map_or(*path, |(_, name)| name)).collect();
            let spec = |name| format!(":(top,glob)**/{name}");
            names.into_iter().map(spec).collect()
        };
        args.extend(specs.iter().map(String::as_str));
        let asked: HashSet<&[u8]> = paths.iter().map(|path| path.as_bytes()).collect();
        let output = self.files(&args)?;
        // An unmerged path is listed more than once.
        let different: HashSet<&[u8]> = output.split(|byte| *byte == 0).collect();
        Ok(different.intersection(&asked).count())
    }

    /// Returns the files that were renamed since the commit `base`: the new path by the old one, from the top.
    pub fn renames(&self, base: &str, side: Side<'_>) -> Result<HashMap<String, String>> {
        // Files that also changed are not compared where some are missing, as in a partial clone.
        let output =
            self.renamed("--find-renames", base, side).or_else(|_| self.renamed("--find-renames=100%", base, side))?;
        let text = String::from_utf8_lossy(&output);
        let mut fields = text.split('\0');
        let mut renames = HashMap::new();
        while let (Some(_), Some(old), Some(new)) = (fields.next(), fields.next(), fields.next()) {
            renames.insert(old.to_owned(), new.to_owned());
        }
        Ok(renames)
    }

    fn renamed(&self, how: &str, base: &str, side: Side<'_>) -> Result<Vec<u8>> {
        let options = ["-z", "--name-status", "--diff-filter=R", how];
        self.diff(&options, base, side, &["--"])
    }

    /// Returns the lines of a file that changed since the commit `base`, each behind `+` or `-`.
    pub fn changed_lines(&self, base: &str, side: Side<'_>, path: &str) -> Result<Vec<String>> {
        // Whatever attributes and configuration say, the lines themselves.
        let options = ["-p", "-U0", "--text", "--no-ext-diff", "--no-textconv"];
        let spec = format!(":(top,literal){path}");
        let output = self.diff(&options, base, side, &["--", &spec])?;
        let text = String::from_utf8_lossy(&output);
        let lines = text.lines().skip_while(|line| !line.starts_with("@@"));
        let changed = lines.filter(|line| line.starts_with(['+', '-']));
        Ok(changed.map(str::to_owned).collect())
    }

    fn diff(&self, options: &[&str], base: &str, side: Side<'_>, paths: &[&str]) -> Result<Vec<u8>> {
        let (command, revisions): (&[&str], &[&str]) = match side {
            Side::Index => (&["diff-index", "--cached"], &[base]),
            Side::WorkingTree => (&["diff-index"], &[base]),
            Side::Commit(commit) => (&["diff-tree", "-r"], &[base, commit]),
        };
        self.files(&[command, options, revisions, paths].concat())
    }

    /// Returns the entries of the index as git reads it, in its order.
    pub fn staged(&self) -> Result<Vec<Staged>> {
        let output = self.files(&["ls-files", "-s", "-z", "--full-name", "--", ":/"])?;
        let mut entries = Vec::new();
        for line in output.split(|byte| *byte == 0).filter(|line| !line.is_empty()) {
            let entry = staged(line).ok_or_else(|| Failure::new("cannot read what git lists of the index"))?;
            entries.push(entry);
        }
        Ok(entries)
    }

    /// Returns the paths of which only the name is staged (`git add -N`).
    pub fn only_named(&self) -> Result<HashSet<Vec<u8>>> {
        let output =
            self.files(&["diff-files", "--diff-filter=A", "--name-only", "-z", "--no-renames", "--no-relative"])?;
        Ok(output.split(|byte| *byte == 0).map(Vec::from).collect())
    }

    /// Returns the files of the working tree that are tracked, or neither tracked nor ignored: from
    /// the top, in any order, and also those that are no longer on disk.
    pub fn working_files(&self) -> Result<Vec<u8>> {
        self.files(&[
            "ls-files",
            "-z",
            "--full-name",
            "--cached",
            "--others",
            "--exclude-standard",
            "--deduplicate",
            "--",
            ":/",
        ])
    }

    /// Returns the files of the working tree with one of these names that git does not track, ignored ones too, from the
    /// top.
    pub fn untracked(&self, names: &[&str]) -> Result<Vec<String>> {
        let mut args: Vec<String> = ["ls-files", "-z", "--full-name", "--others", "--"].map(str::to_owned).into();
        args.extend(names.iter().map(|name| format!(":(top,glob)**/{name}")));
        let output = self.files(&Vec::from_iter(args.iter().map(String::as_str)))?;
        let paths = output.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        Ok(paths.map(|path| String::from_utf8_lossy(path).into_owned()).collect())
    }

    /// Returns the stages of a path (from the top) that is not merged yet, each with its blob.
    pub fn unmerged(&self, path: &str) -> Result<Vec<(u32, String)>> {
        let path = format!(":(top,literal){path}");
        let output = self.files(&["ls-files", "-u", "-z", "--full-name", "--", &path])?;
        let lines = output.split(|byte| *byte == 0);
        let entries = lines.filter_map(staged);
        Ok(entries.map(|entry| (entry.stage, entry.id)).collect())
    }

    /// Returns what a blob holds.
    pub fn blob(&self, id: &str) -> Result<Vec<u8>> {
        self.files(&["cat-file", "blob", id])
    }

    fn files(&self, args: &[&str]) -> Result<Vec<u8>> {
        succeeded(self.run(args, None)?)
    }
}

fn succeeded(output: Output) -> Result<Vec<u8>> {
    if output.status.success() { Ok(output.stdout) } else { Err(Failure::new(said(&output))) }
}

/// Returns what git is asked about these paths, of which there is at least one. It looks at no other file where there
/// are not too many of them: a repository may hold a million.
fn status_arguments(among: &BTreeSet<String>) -> Vec<String> {
    const STATUS: [&str; 8] = [
        // Nobody waits for an index that is refreshed.
        "--no-optional-locks",
        "status",
        "--porcelain",
        "-z",
        "--untracked-files=no",
        "--no-renames",
        "--ignore-submodules=all",
        "--",
    ];
    let pathspecs = shallow(among).into_iter();
    let pathspecs = pathspecs.map(|place| format!(":(top,literal){place}"));
    STATUS.map(str::to_owned).into_iter().chain(pathspecs).collect()
}

/// Returns the paths of an answer, with git's letter for what each is on disk.
fn status_among(answer: &[u8], among: &BTreeSet<String>) -> Vec<(char, String)> {
    // A name that is not UTF-8 is none that a reference could name.
    String::from_utf8_lossy(answer)
        .split('\0')
        .filter_map(|entry| Some((entry.chars().nth(1)?, entry.get(3..)?.to_owned())))
        .filter(|(_, path)| among.contains(path))
        .collect()
}

impl Staged {
    /// Returns whether it is staged, and the object is the empty blob, of either hash.
    pub fn is_empty(&self) -> bool {
        self.stage == 0 && (self.id.starts_with("e69de29bb2d1d643") || self.id.starts_with("473a0f4c3be8a936"))
    }
}

fn staged(line: &[u8]) -> Option<Staged> {
    let tab = line.iter().position(|byte| *byte == b'\t')?;
    let (fields, path) = line.split_at(tab);
    let mut fields = std::str::from_utf8(fields).ok()?.split(' ');
    Some(Staged {
        mode: fields.next()?.to_owned(),
        id: fields.next()?.to_owned(),
        stage: fields.next()?.parse().ok()?,
        path: path.get(1..)?.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn git_is_given_a_few_paths_that_hold_all(
            paths in prop::collection::btree_set("[a-f](/[a-f]){0,5}", 1..300),
        ) {
            let few = shallow(&paths);
            prop_assert!(few.len() <= MOST_PATHSPECS);
            if paths.len() <= MOST_PATHSPECS {
                prop_assert_eq!(few.len(), paths.len());
            }
            let holds = |above: &&str, path: &str| {
                path.strip_prefix(above).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            };
            for path in &paths {
                prop_assert!(few.is_empty() || few.iter().any(|above| holds(above, path)), "{}", path);
            }
        }
    }
}
