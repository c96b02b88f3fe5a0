//! Where files come from: a commit, the working tree, a result that is not written yet. A tree is
//! read-only, and nothing is ever checked out to be read.

pub(crate) mod absence;
pub(crate) mod checkout;
pub(crate) mod disk;
pub(crate) mod git;
pub(crate) mod license;
pub(crate) mod overlay;
pub(crate) mod path;
pub(crate) mod recorded;

use std::rc::Rc;

use memchr::memmem::Finder;

use crate::message::failure::Result;
use crate::os::limits::{PATH, PATHS};
use crate::os::parallel::{meanwhile, processors, side_by_side};

/// What a tree holds at a path, the last component not followed if it is a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// A regular file.
    File {
        /// Whether its mode is 100755.
        executable: bool,
    },
    Directory,
    /// A symbolic link.
    Link,
    /// Another repository (a gitlink) whose content this tree does not hold.
    Submodule,
}

/// A read-only set of files. Paths are relative to its top, with `/`, without `.` and `..`; the
/// top itself is `""`.
pub trait Tree {
    /// Returns what is at `path`, following no link: below a link there is nothing.
    fn entry(&self, path: &str) -> Result<Option<Entry>>;

    /// Returns the names of everything directly in a directory, sorted; of anything else none.
    fn names(&self, directory: &str) -> Result<Vec<String>>;

    /// Returns the bytes of the file at `path`, as a checkout gives them; for a link its target.
    fn read(&self, path: &str) -> Result<Vec<u8>>;

    /// Returns the bytes of the file at `path` as they are stored, where a checkout may change them.
    fn raw(&self, _path: &str) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// Returns the blob id of the file at `path`, where its bytes are already stored unchanged in
    /// this repository.
    fn stored(&self, _path: &str) -> Option<String> {
        None
    }

    /// Returns the licence files of a directory, as [`license::find`] does, where that is known without a look at
    /// all of its names.
    fn licenses(&self, _directory: &str) -> Option<Vec<String>> {
        None
    }

    /// Returns the path in this tree that an absolute path of the file system means, if any.
    fn absolute(&self, _path: &str) -> Option<String> {
        None
    }

    /// Returns the path in this tree that an absolute link leads to: only all files of the machine hold one. Another
    /// checkout has nothing there.
    fn linked(&self, _target: &str) -> Option<String> {
        None
    }

    /// Returns whether line ends may be others here than where the files are stored: a checkout converts them.
    fn converts(&self) -> bool {
        false
    }

    /// Returns `path` as the user would name it.
    fn label(&self, path: &str) -> String {
        path::shown(path).to_owned()
    }

    /// Returns `path` as one of our commands takes it, wherever that is run in the repository.
    fn word(&self, path: &str) -> String {
        format!(":/{path}")
    }

    /// Returns the paths of everything below a directory that is not a directory, sorted. Without those whose path is not
    /// UTF-8.
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        files_below(self, directory)
    }

    /// Returns the paths of all files and links whose names are wanted, sorted. Without those in a submodule. Fails
    /// where the path of one is not UTF-8.
    fn files_named(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut found = self.below("")?;
        found.retain(|path| is_wanted(path::name(path)));
        Ok(found)
    }

    /// Returns the files that git neither tracks nor ignores, sorted: in a working tree only.
    fn untracked(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// Returns the paths of all kustomization files, sorted. One that came in a chart is none of this tree.
    fn kustomizations(&self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for place in self.files_named(&|name| FILE_NAMES.contains(&name))? {
            let chart = path::and_above(path::parent(&place)).find(|directory| path::is_pulled_chart(directory));
            let is_in_chart = match chart {
                Some(chart) => self.entry(&path::join(chart, "Chart.yaml"))?.is_some(),
                None => false,
            };
            if !is_in_chart {
                all.push(place);
            }
        }
        Ok(all)
    }

    /// Returns the paths of all locks, sorted.
    fn locks(&self) -> Result<Vec<String>> {
        self.files_named(&|name| name == LOCK_NAME)
    }

    /// Begins to search for the files whose names have one of these endings, and whose stored bytes hold one of these marks.
    /// One that cannot be read may.
    fn files_with(&self, endings: Names, marks: &[&'static [u8]]) -> Result<Search<'_>> {
        let marks = marks.to_vec();
        Ok(Box::new(move || search(self, endings, &marks)))
    }
}

/// Names that the program knows.
pub(crate) type Names = &'static [&'static str];

/// What waits for the end of a search, and returns the files that it found, sorted.
pub(crate) type Search<'a> = Box<dyn FnOnce() -> Result<Vec<String>> + 'a>;

/// Does what [`Tree::below`] promises, directory by directory.
fn files_below<T: Tree + ?Sized>(tree: &T, directory: &str) -> Result<Vec<String>> {
    let mut found = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(directory) = todo.pop() {
        // Equal directories of a hostile tree are one object, so that a few objects make any number of paths.
        PATHS.check(found.len() + todo.len(), || tree.label(&directory))?;
        for name in tree.names(&directory)? {
            let place = path::join(&directory, &name);
            match tree.entry(&place)? {
                Some(Entry::Directory) => todo.push(place),
                // A pipe or a device is not a file, but it is there.
                _ => found.push(place),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Begins to find out for each of some things whether what it holds has one of these marks, `share` of them at once by a
/// thread. `reader` makes what reads for one share: it is given one, and what tells of its bytes.
fn hold<T, R, F>(
    all: Vec<T>,
    share: usize,
    marks: &[&'static [u8]],
    reader: F,
) -> impl FnOnce() -> Vec<bool> + use<T, R, F>
where
    T: Sync + Send + 'static,
    R: FnMut(&T, &dyn Fn(&[u8]) -> bool) -> bool,
    F: Fn() -> R + Sync + Send + 'static,
{
    let marks = marks.to_vec();
    meanwhile(move || {
        let finders: Vec<Finder<'_>> = marks.iter().map(Finder::new).collect();
        let is_marked = |bytes: &[u8]| finders.iter().any(|finder| finder.find(bytes).is_some());
        let shares: Vec<&[T]> = all.chunks(share).collect();
        let held = side_by_side(&shares, processors(), |_, share| {
            let mut holds = reader();
            share.iter().map(|one| holds(one, &is_marked)).collect::<Vec<bool>>()
        });
        held.concat()
    })
}

/// Does what [`Tree::files_with`] promises, file by file.
fn search<T: Tree + ?Sized>(tree: &T, endings: &[&str], marks: &[&[u8]]) -> Result<Vec<String>> {
    let mut holding = Vec::new();
    for path in tree.below("")?.into_iter().filter(|path| endings.iter().any(|ending| path.ends_with(ending))) {
        let holds = |bytes: Vec<u8>| marks.iter().any(|mark| memchr::memmem::find(&bytes, mark).is_some());
        if matches!(tree.entry(&path)?, Some(Entry::File { .. })) && tree.read(&path).map_or(true, holds) {
            holding.push(path);
        }
    }
    Ok(holding)
}

/// Returns a path of a command line, given by a user in `prefix`, as a path of `tree`: an absolute path, one from `top`
/// as git writes it (`:/a/b`), or a relative one. `None` when it lies outside.
pub(crate) fn argument_path(tree: &dyn Tree, top: Option<&str>, prefix: &str, text: &str) -> Option<String> {
    if path::is_absolute(text) {
        return tree.absolute(text);
    }
    match (top, text.strip_prefix(":/")) {
        // Nothing that is named from the top lies above it.
        (Some(top), Some(rest)) => Some(path::join(top, &path::resolve("", rest)?)),
        _ => path::resolve(prefix, text),
    }
}

/// The names that make a directory a kustomization root, in kustomize's order
/// (`RecognizedKustomizationFileNames`, api/konfig/general.go).
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The name of the lock, at the top of the repository or of a NEW_DIR.
pub(crate) const LOCK_NAME: &str = "kustomize-localize.lock";

/// What brings the lock up to date, also where git could not merge its two sides.
pub(crate) const LOCK_COMMAND: &str = "git kustomize-localize lock && git add -f -- :/kustomize-localize.lock";

/// What is at the end of a path, after every link on the way has been followed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Resolved {
    /// A regular file, at its real path.
    File {
        /// The real path.
        path: String,
        /// Whether its mode is 100755.
        executable: bool,
    },
    /// A directory, at its real path.
    Directory {
        /// The real path.
        path: String,
    },
    /// A place inside (or at) a submodule whose content is not at hand.
    Submodule {
        /// The path of the gitlink.
        path: String,
    },
    /// Nothing.
    Missing {
        /// The path that is not there, links before it followed.
        path: String,
    },
    /// A link leads out of the tree, or is absolute, so that it leads out of every other checkout.
    Leaves {
        /// The path of that link.
        link: String,
        /// What it says.
        target: String,
    },
    /// Links lead to each other.
    Loop {
        /// The path of the last link that was followed.
        link: String,
    },
}

/// Returns the kustomization of a directory, if it has one: its name and its real path. Of several the first.
pub(crate) fn kustomization_in(tree: &dyn Tree, directory: &str) -> Result<Option<(&'static str, String)>> {
    for name in FILE_NAMES {
        if let Resolved::File { path, .. } = resolve(tree, &path::join(directory, name))? {
            return Ok(Some((name, path)));
        }
    }
    Ok(None)
}

/// The longest chain of links that is followed, as on Linux.
const LINKS: usize = 40;

/// Follows every link on the way to `path`, inside the tree. Whatever names a path is resolved by this: a file, a root, a
/// chart, values, a plugin, what an engine deploys.
pub(crate) fn resolve(tree: &dyn Tree, path: &str) -> Result<Resolved> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    // Where no link is on the way, only the last component can be one. Only who wrote the path knows how deep it is.
    let is_plain = directory.len() < PATH.most && tree.entry(directory)? == Some(Entry::Directory);
    let (mut real, rest) = if is_plain { (directory.to_owned(), name) } else { (String::new(), path) };
    let mut rest: Vec<String> = path::components(rest).rev().map(str::to_owned).collect();
    let mut links = 0;
    let (mut executable, mut last) = (None, (String::new(), String::new()));
    while let Some(component) = rest.pop() {
        if component == ".." {
            // Only links bring these in; `real` holds no link, so its parent is the true one.
            if real.is_empty() {
                return Ok(Resolved::Leaves { link: last.0, target: last.1 });
            }
            real = path::parent(&real).to_owned();
            executable = None;
            continue;
        }
        let next = path::join(&real, &component);
        let missing = |next: &str, rest: &[String]| {
            let rest: Vec<&str> = rest.iter().rev().map(String::as_str).collect();
            let path = path::resolve(next, &rest.join("/")).unwrap_or_else(|| next.to_owned());
            Ok(Resolved::Missing { path })
        };
        if executable.is_some() {
            return missing(&next, &rest);
        }
        match tree.entry(&next)? {
            None => return missing(&next, &rest),
            Some(Entry::Directory) => real = next,
            Some(Entry::File { executable: mode }) => {
                executable = Some(mode);
                real = next;
            }
            Some(Entry::Submodule) => return Ok(Resolved::Submodule { path: next }),
            Some(Entry::Link) => {
                links += 1;
                if links > LINKS {
                    return Ok(Resolved::Loop { link: next });
                }
                let bytes = tree.read(&next)?;
                let Ok(target) = String::from_utf8(bytes) else {
                    return missing(&next, &rest);
                };
                let inside = if path::is_absolute(&target) {
                    tree.linked(&target).inspect(|_| real.clear())
                } else {
                    path::resolve(&real, &target).map(|_| target.clone())
                };
                let Some(inside) = inside else {
                    return Ok(Resolved::Leaves { link: next, target });
                };
                last = (next, target);
                rest.extend(path::components(&inside).rev().filter(|component| *component != ".").map(str::to_owned));
            }
        }
    }
    Ok(match executable {
        Some(executable) => Resolved::File { path: real, executable },
        None => Resolved::Directory { path: real },
    })
}

/// A tree that several owners share.
pub(crate) type SharedTree = Rc<dyn Tree>;

#[cfg(test)]
mod tests {
    use super::overlay::OverlayTree;
    use super::*;

    fn tree() -> OverlayTree {
        let mut tree = OverlayTree::default();
        tree.file("a/real.yaml", b"x", false);
        tree.file("run.sh", b"x", true);
        tree.link("a/link.yaml", "real.yaml");
        tree.link("dir", "a");
        tree.link("up", "a/../run.sh");
        tree.link("out", "../secret");
        tree.link("a/out", "../../secret");
        tree.link("a/b/top", "../..");
        tree.link("a/b/above", "top/../run.sh");
        tree.link("absolute", "/etc/passwd");
        tree.link("one", "two");
        tree.link("two", "one");
        tree.link("dangling", "nowhere/x");
        tree
    }

    #[test]
    fn links_are_followed_inside_the_tree_and_reported_where_they_leave_it() {
        let tree = tree();
        for (path, expected) in [
            ("a/real.yaml", "file a/real.yaml"),
            ("a/link.yaml", "file a/real.yaml"),
            ("dir/link.yaml", "file a/real.yaml"),
            ("up", "program run.sh"),
            ("dir", "directory a"),
            ("", "directory "),
            ("nowhere", "missing nowhere"),
            ("a/real.yaml/x", "missing a/real.yaml/x"),
            ("dangling", "missing nowhere/x"),
            ("out", "out leaves to ../secret"),
            ("a/out", "a/out leaves to ../../secret"),
            ("dir/out", "a/out leaves to ../../secret"),
            ("a/b/top/run.sh", "program run.sh"),
            ("a/b/above", "a/b/top leaves to ../.."),
            ("absolute", "absolute leaves to /etc/passwd"),
            ("one", "loop"),
        ] {
            let resolved = match resolve(&tree, path).unwrap() {
                Resolved::File { path, executable } => {
                    format!("{} {path}", if executable { "program" } else { "file" })
                }
                Resolved::Directory { path } => format!("directory {path}"),
                Resolved::Missing { path } => format!("missing {path}"),
                Resolved::Leaves { link, target } => format!("{link} leaves to {target}"),
                Resolved::Loop { .. } => "loop".to_owned(),
                other => format!("{other:?}"),
            };
            assert_eq!(resolved, expected, "{path}");
        }
    }
}
