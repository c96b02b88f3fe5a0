//! Paths inside a tree: relative to its top, with `/`, without `.` and `..`; the top is `""`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use super::FILE_NAMES;
use crate::message::failure::{self, Failure, Result};

/// The non-empty components of `path`.
pub(crate) fn components(path: &str) -> impl DoubleEndedIterator<Item = &str> {
    path.split('/').filter(|component| !component.is_empty())
}

/// Whether the text is an absolute path on any platform we run on.
pub(crate) fn is_absolute(text: &str) -> bool {
    text.starts_with('/') || Path::new(text).is_absolute()
}

/// A directory as people name it: the top is `.`.
pub(crate) fn shown(directory: &str) -> &str {
    if directory.is_empty() { "." } else { directory }
}

/// The inverse of [`shown`].
pub(crate) fn of_shown(directory: &str) -> &str {
    if directory == "." { "" } else { directory }
}

/// Serializes a directory as it is [`shown`].
pub(crate) fn serialize<S: serde::Serializer>(directory: &str, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(shown(directory))
}

/// The directory that holds `path`; of the top the top.
pub fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(parent, _)| parent)
}

/// The last component of `path`.
pub fn name(path: &str) -> &str {
    path.rsplit_once('/').map_or(path, |(_, name)| name)
}

/// Puts a relative path that holds no `.` or `..` below `directory`.
pub fn join(directory: &str, path: &str) -> String {
    match (directory.is_empty(), path.is_empty()) {
        (true, _) => path.to_owned(),
        (_, true) => directory.to_owned(),
        _ => [directory, "/", path].concat(),
    }
}

/// Joins a reference to the directory it is relative to, lexically, as kustomize does (Go's
/// `filepath.Join`). `None` when it climbs above the top.
pub(crate) fn resolve(directory: &str, text: &str) -> Option<String> {
    let mut stack: Vec<&str> = components(directory).collect();
    for component in components(text) {
        match component {
            "." => {}
            ".." => {
                stack.pop()?;
            }
            component => stack.push(component),
        }
    }
    Some(stack.join("/"))
}

/// An absolute path of the file system as a path from the directory `top`; `None` if it is not at or below `top`, or
/// not UTF-8.
pub(crate) fn inside(top: &Path, text: &str) -> Option<String> {
    let top = top.canonicalize().ok()?;
    let cleaned = PathBuf::from(format!("/{}", resolve("", text)?));
    if let Ok(inside) = cleaned.strip_prefix(&top) {
        return of_components(inside);
    }
    // The top may have another name because of a link above it, such as `/tmp` on macOS. Links below the top belong to
    // the tree, which follows them itself.
    cleaned.ancestors().collect::<Vec<_>>().into_iter().rev().find_map(|above| {
        let real = above.canonicalize().ok()?;
        let inside = real.strip_prefix(&top).ok()?;
        of_components(&inside.join(cleaned.strip_prefix(above).ok()?))
    })
}

/// A relative path of the file system as a path of a tree; `None` if it is not UTF-8.
pub(crate) fn of_components(path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.components().map(|part| part.as_os_str().to_str()).collect();
    Some(parts?.join("/"))
}

/// Rejects a name that is not UTF-8.
pub(crate) fn refuse_odd(directory: &str, name: &str) -> Result<()> {
    if !is_odd(name) {
        return Ok(());
    }
    // No reference could name it.
    let shown = failure::shown(&join(directory, name));
    Err(Failure::new(format!("`{shown}` cannot be read: its path is not UTF-8")).hint("rename its directory"))
}

/// Whether a path was not UTF-8 before it was made a text.
pub(crate) fn is_odd(path: &str) -> bool {
    path.contains(char::REPLACEMENT_CHARACTER)
}

/// Whether a directory is called as kustomize calls that of a chart which it pulled: `NAME-VERSION/NAME`.
pub(crate) fn is_pulled_chart(directory: &str) -> bool {
    let version = name(parent(directory)).strip_prefix(name(directory)).and_then(|rest| rest.strip_prefix('-'));
    version.is_some_and(|version| version.starts_with(|first: char| first.is_ascii_alphanumeric()))
}

/// Whether `path` is `directory` or lies below it.
pub(crate) fn is_in(path: &str, directory: &str) -> bool {
    below(path, directory).is_some()
}

/// Whether a path is in one of the directories, or equal to one. Without directories every path is.
pub(crate) fn is_in_any(path: &str, directories: &[String]) -> bool {
    directories.is_empty() || directories.iter().any(|directory| is_in(path, directory))
}

/// Whether one of the paths of a command line covers a root: it is the directory of the root, above it, or the
/// kustomization in it. Without paths every root is covered.
pub(crate) fn covers_root(paths: &[String], directory: &str) -> bool {
    let names = |path: &String| parent(path) == directory && FILE_NAMES.contains(&name(path));
    is_in_any(directory, paths) || paths.iter().any(names)
}

/// `path` relative to `directory`; `None` if it is neither that directory nor below it.
pub(crate) fn below<'a>(path: &'a str, directory: &str) -> Option<&'a str> {
    if directory.is_empty() {
        return Some(path);
    }
    match path.strip_prefix(directory)? {
        "" => Some(""),
        rest => rest.strip_prefix('/'),
    }
}

/// The relative path that leads from the directory `from` to `to`; `.` when they are one.
pub fn relative(from: &str, to: &str) -> String {
    let from: Vec<&str> = components(from).collect();
    let to: Vec<&str> = components(to).collect();
    let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
    let mut parts = vec![".."; from.len() - common];
    parts.extend(&to[common..]);
    if parts.is_empty() { ".".to_owned() } else { parts.join("/") }
}

/// The innermost directory that both paths are or lie below; empty for the top.
pub(crate) fn common<'a>(path: &'a str, other: &str) -> &'a str {
    let mut common = path;
    while !is_in(other, common) {
        common = parent(common);
    }
    common
}

/// A path and the directories above it, without the top.
pub(crate) fn and_above(path: &str) -> impl Iterator<Item = &str> {
    let start = Some(path).filter(|path| !path.is_empty());
    std::iter::successors(start, |path| Some(parent(path)).filter(|path| !path.is_empty()))
}

/// All directories that some files lie in, at any depth, without the top.
pub(crate) fn directories<'a>(files: impl IntoIterator<Item = &'a str>) -> BTreeSet<&'a str> {
    let (mut all, mut last) = (BTreeSet::new(), "");
    for file in files {
        let directory = parent(file);
        // Most lists are sorted, so that the files of one directory follow each other.
        if directory == last {
            continue;
        }
        last = directory;
        // If a directory was seen, so were all directories above it.
        let mut above = and_above(directory);
        while above.next().is_some_and(|directory| all.insert(directory)) {}
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_of_files_are_found_at_any_depth() {
        let files = ["a/b/c/x", "a/b/y", "z", "d/x", "a/e/x"];
        let expected = ["a", "a/b", "a/b/c", "a/e", "d"];
        assert_eq!(directories(files), BTreeSet::from(expected));
    }

    #[test]
    fn the_innermost_directory_of_two_paths_is_found() {
        for (one, other, expected) in [
            ("a/b", "a/c/d", "a"),
            ("a/b", "a/bc", "a"),
            ("a/b", "a/b/c", "a/b"),
            ("a/b", "a", "a"),
            ("a", "b", ""),
            ("", "b", ""),
        ] {
            assert_eq!(common(one, other), expected, "{one} {other}");
        }
    }

    #[test]
    fn references_are_joined_lexically() {
        for (directory, text, expected) in [
            ("a/b", "../c/x.yaml", Some("a/c/x.yaml")),
            ("a/b", "./x//y/", Some("a/b/x/y")),
            ("a", "none/../x", Some("a/x")),
            ("", "..", None),
            ("a", "../..", None),
            ("a", "..", Some("")),
            ("", ".", Some("")),
        ] {
            assert_eq!(resolve(directory, text).as_deref(), expected, "{directory} {text}");
        }
    }

    #[test]
    fn relative_paths_lead_back() {
        for (from, to, expected) in [
            ("a/b", "a/c/d", "../c/d"),
            ("", "a/b", "a/b"),
            ("a/b", "a/b", "."),
            ("a/b/c", "a", "../.."),
            ("a", "", ".."),
            ("ab", "a", "../a"),
        ] {
            assert_eq!(relative(from, to), expected, "{from} {to}");
            assert_eq!(resolve(from, expected).as_deref(), Some(to));
        }
    }

    #[test]
    fn a_kustomization_covers_its_own_root_only() {
        for (path, covered) in [
            ("a", &["a", "a/b"][..]),
            ("a/kustomization.yml", &["a"]),
            ("Kustomization", &[""]),
            ("", &["", "a", "a/b"]),
            ("a/b/x.yaml", &[]),
        ] {
            let paths = [path.to_owned()];
            let roots = ["", "a", "a/b"].into_iter().filter(|root| covers_root(&paths, root));
            assert_eq!(roots.collect::<Vec<_>>(), covered, "{path}");
        }
    }

    #[test]
    fn a_common_prefix_is_not_a_parent_directory() {
        assert!(is_in("a/b", "a"));
        assert!(is_in("a", "a"));
        assert!(is_in("a", ""));
        assert!(!is_in("ab", "a"));
        assert_eq!(below("a/b/c", "a"), Some("b/c"));
    }
}
