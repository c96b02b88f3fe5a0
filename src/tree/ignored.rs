//! Which paths git ignores, by the ignore files of a tree alone: the same in every clone.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gix::bstr::BStr;
use gix::glob::pattern::Case;
use gix_ignore::Search;

use super::{Entry, Tree, path};

const FILE_NAME: &str = ".gitignore";

/// A rule by which git leaves a path alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ignored {
    /// Where it stands, as `.gitignore:3`.
    pub(super) place: String,
    pub(super) pattern: String,
}

/// The ignore files of a tree, by directory, each read once.
#[derive(Default)]
pub(super) struct Ignores {
    files: RefCell<HashMap<String, Option<Rc<Search>>>>,
}

impl Ignores {
    /// Returns the rule by which `path` is ignored.
    pub(super) fn rule(&self, tree: &dyn Tree, path: &str, is_directory: bool) -> Option<Ignored> {
        let mut files = Vec::new();
        // Below what is no directory of the tree there is no file.
        let mut is_there = true;
        let above = path.match_indices('/').map(|(at, _)| (&path[..at], true));
        // Whatever is in an ignored directory is ignored, even if another pattern includes it.
        above.chain([(path, is_directory)]).find_map(|(place, is_directory)| {
            let directory = path::parent(place);
            is_there =
                is_there && (directory.is_empty() || matches!(tree.entry(directory), Ok(Some(Entry::Directory))));
            if is_there && let Some(file) = self.file(tree, directory) {
                files.push((directory, file));
            }
            last(&files, place, is_directory)
        })
    }

    fn file(&self, tree: &dyn Tree, directory: &str) -> Option<Rc<Search>> {
        if let Some(known) = self.files.borrow().get(directory) {
            return known.clone();
        }
        let place = path::join(directory, FILE_NAME);
        // git follows no link there. A file that cannot be read must not hide that a path is missing.
        let bytes = match tree.entry(&place) {
            Ok(Some(Entry::File { .. })) => tree.read(&place).ok(),
            _ => None,
        };
        let file = bytes.and_then(|bytes| {
            let mut search = Search::default();
            let parse = gix_ignore::search::Ignore::default();
            search.add_patterns_buffer(&bytes, FILE_NAME, None, parse).ok()?;
            Some(Rc::new(search))
        });
        let mut files = self.files.borrow_mut();
        files.insert(directory.to_owned(), file.clone());
        file
    }
}

/// Returns the rule that has the last word on `path` itself, unless it takes it in again. `files` are those of the
/// directories that it is in, the outermost first.
fn last(files: &[(&str, Rc<Search>)], path: &str, is_directory: bool) -> Option<Ignored> {
    let (directory, found) = files.iter().rev().find_map(|(directory, file)| {
        let rest = BStr::new(path::below(path, directory).unwrap_or(path));
        let found = file.pattern_matching_relative_path(rest, Some(is_directory), Case::Sensitive);
        Some((directory, found?))
    })?;
    (!found.pattern.is_negative()).then(|| Ignored {
        place: format!("{}:{}", path::join(directory, FILE_NAME), found.sequence_number),
        pattern: found.pattern.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryTree;
    use super::*;

    fn rule(path: &str) -> Option<String> {
        let mut tree = MemoryTree::default();
        let text = "# secrets\n*.env\n!keep.env\nbuild/\n/top\na/*.tmp\n\\#x\n**/deep/*\n";
        tree.file(".gitignore", text.as_bytes(), false);
        tree.file("a/.gitignore", b"own\n!again.env\n", false);
        tree.file("build/.gitignore", b"!*\n", false);
        tree.link("linked/.gitignore", "../.gitignore");
        let found = Ignores::default().rule(&tree, path, false);
        found.map(|found| format!("{} {}", found.pattern, found.place))
    }

    #[test]
    fn the_last_rule_of_the_innermost_file_counts() {
        for (path, expected) in [
            ("x.env", Some("*.env .gitignore:2")),
            ("a/b/x.env", Some("*.env .gitignore:2")),
            ("keep.env", None),
            ("a/again.env", None),
            ("b/again.env", Some("*.env .gitignore:2")),
            ("a/own", Some("own a/.gitignore:1")),
            ("a/b/own", Some("own a/.gitignore:1")),
            ("own", None),
            // A directory, and all that is in it, whatever stands there.
            ("build", None),
            ("build/x", Some("build/ .gitignore:4")),
            ("a/build/b/x", Some("build/ .gitignore:4")),
            ("top", Some("/top .gitignore:5")),
            ("a/top", None),
            ("a/x.tmp", Some("a/*.tmp .gitignore:6")),
            ("a/b/x.tmp", None),
            ("#x", Some("#x .gitignore:7")),
            ("a/deep/x", Some("**/deep/* .gitignore:8")),
            ("x.yaml", None),
        ] {
            assert_eq!(rule(path).as_deref(), expected, "{path}");
        }
    }

    #[test]
    fn nothing_is_looked_for_where_there_is_no_directory() {
        let mut tree = MemoryTree::default();
        tree.file(".gitignore", b"*.env\n", false);
        tree.file("a/x", b"", false);
        let ignores = Ignores::default();
        let path = format!("{}x.env", "a/".repeat(100));
        let found = ignores.rule(&tree, &path, false);
        assert_eq!(found.map(|found| found.place).as_deref(), Some(".gitignore:1"));
        let mut looked: Vec<String> = ignores.files.into_inner().into_keys().collect();
        looked.sort();
        assert_eq!(looked, ["", "a"]);
    }
}
