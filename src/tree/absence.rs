//! Why a path is not in a tree of this repository.

use std::cell::OnceCell;
use std::collections::HashSet;
use std::fs::Metadata;
use std::rc::Rc;

use super::git::GitTree;
use super::{Entry, SharedTree, Tree, checkout};
use crate::git::{Checkout, LocalRepo};

/// The reason why a local file is not in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Absence {
    Nowhere,
    /// It was deleted: HEAD holds it.
    Deleted,
    /// It is on disk, but not in the tree: git does not track it, or it is not staged.
    Untracked {
        /// Whether to add it with `git add -f`.
        is_forced: bool,
    },
    /// A pattern of an ignore file matches it.
    Ignored {
        /// The location of the pattern.
        rule: String,
        /// Whether it is on disk; `None` if that does not matter because the tree is a commit.
        on_disk: Option<bool>,
    },
}

/// Explains why paths are missing.
pub struct Absences {
    repo: Rc<LocalRepo>,
    tree: SharedTree,
    on_disk: bool,
    /// The ignore files of the tree with texts of which an ignored path contains at least one, read on first use;
    /// `None` if they cannot be read.
    ignores: OnceCell<Option<(HashSet<String>, Checkout)>>,
    head: OnceCell<Option<GitTree>>,
}

impl Absences {
    /// `tree` is the tree with the missing paths and the ignore files. `on_disk` is whether files on disk may get into
    /// it, which is false for a commit.
    pub fn new(repo: Rc<LocalRepo>, tree: SharedTree, on_disk: bool) -> Self {
        Absences { repo, tree, on_disk, ignores: OnceCell::new(), head: OnceCell::new() }
    }

    /// Whether `path` (from the top) exists on disk and may get into the tree.
    pub fn is_on_disk(&self, path: &str) -> bool {
        self.on_disk(path).is_some()
    }

    /// The metadata of `path` on disk, without following a link; `None` if it cannot get into the tree from there.
    fn on_disk(&self, path: &str) -> Option<Metadata> {
        let top = self.repo.top.as_ref().filter(|_| self.on_disk)?;
        top.join(path).symlink_metadata().ok()
    }

    /// The full name of the ref that a revision names, for example `refs/heads/main`; `None` for a detached HEAD.
    pub fn full_name(&self, rev: &str) -> Option<String> {
        if rev == "HEAD" { self.repo.head().ok()? } else { self.repo.resolve_rev(rev).ok()??.1 }
    }

    /// Whether `git restore` can bring back `path` (from the top), because HEAD has it.
    fn is_in_head(&self, path: &str) -> bool {
        let head = self.head.get_or_init(|| GitTree::of_commit(&self.repo, &self.repo.commit("HEAD").ok()??).ok());
        let entry = head.as_ref().and_then(|head| head.entry(path).ok()?);
        matches!(entry, Some(Entry::File { .. } | Entry::Link | Entry::Directory))
    }

    /// The reason why `path` (from the top) is missing.
    pub fn of(&self, path: &str) -> Absence {
        match (self.ignore_rule(path), self.on_disk(path)) {
            (Some(rule), entry) => Absence::Ignored { rule, on_disk: self.on_disk.then_some(entry.is_some()) },
            // Force adds a file also if rules of this machine ignore it. A directory may contain files that are ignored
            // for good reason, so it is added by force only if these rules ignore it as a whole.
            (None, Some(entry)) => {
                Absence::Untracked { is_forced: !entry.is_dir() || self.repo.ignores(path).unwrap_or(true) }
            }
            (None, None) if self.is_in_head(path) => Absence::Deleted,
            (None, None) => Absence::Nowhere,
        }
    }

    /// The location of the pattern by which the ignore files of the tree exclude a path; `None` if none does, or if
    /// these files cannot be read.
    fn ignore_rule(&self, path: &str) -> Option<String> {
        let ignores = self.ignores.get_or_init(|| {
            let mut files = checkout::files_named(&*self.tree, ".gitignore").ok()?;
            // git does not read an ignore file through a link.
            files.retain(|(path, _)| matches!(self.tree.entry(path), Ok(Some(Entry::File { .. }))));
            let literals = files.iter().flat_map(|(_, bytes)| literals(bytes)).collect();
            // No object is read, so the kind of their ids does not matter.
            Some((literals, Checkout::new(&files, gix::hash::Kind::Sha1).ok()?))
        });
        let (literals, ignores) = ignores.as_ref()?;
        // Each query starts a process, so paths that no pattern can match are sorted out first.
        let lower = path.to_lowercase();
        if !literals.iter().any(|literal| lower.contains(literal)) {
            return None;
        }
        // git asks an empty checkout, in which it cannot see that the path is a directory. So it is asked about a file
        // in the directory, which a pattern for the directory also matches.
        let is_directory = self.on_disk && self.repo.top.as_ref().is_some_and(|top| top.join(path).is_dir());
        ignores.ignore_rule(&if is_directory { format!("{path}/-") } else { path.to_owned() })
    }
}

/// For each pattern of an ignore file, a text in lower case that all matched paths contain.
fn literals(bytes: &[u8]) -> Vec<String> {
    // Every path contains the empty text, so a file that is not UTF-8 sorts none out.
    let Ok(text) = std::str::from_utf8(bytes) else { return vec![String::new()] };
    let patterns = text.trim_start_matches('\u{feff}').lines().filter(|line| !line.starts_with('#'));
    let patterns = patterns.map(str::trim).filter(|pattern| !pattern.is_empty());
    patterns.map(literal).collect()
}

/// The longest text without wildcards in a pattern.
fn literal(pattern: &str) -> String {
    let texts = pattern.split(['*', '?', '\\']).map(|text| text.trim_matches(['/', '!', ' ']));
    // The characters in `[…]` are alternatives, so no text of such a pattern is certain.
    let longest = texts.max_by_key(|text| text.len()).filter(|_| !pattern.contains('['));
    longest.unwrap_or_default().to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_path_that_is_ignored_holds_the_text_of_its_pattern() {
        let found = |text: &str| literals(text.as_bytes());
        assert_eq!(found("# a\n\n*.env\r\n!/Build/\nsecrets/**/x.yaml  \n"), [".env", "build", "secrets"]);
        // These patterns may match anything.
        assert_eq!(found("*\n[ab]cde\n?\n"), ["", "", ""]);
        assert_eq!(
            found("\\#x\n\u{feff}\n"),
            ["#x"].map(str::to_owned).into_iter().chain(["\u{feff}".to_owned()]).collect::<Vec<_>>()
        );
        assert_eq!(literals(b"\xff"), [""]);
    }
}
