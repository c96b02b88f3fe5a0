//! Trees: the read-only files of a commit, of the working tree, or of a result that is not written yet. Nothing is ever
//! checked out to be read.

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

/// The kind of the node at a path. A link in the last component is not followed.
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
    /// Another repository (a gitlink) whose content is not in this tree.
    Submodule,
}

/// A read-only set of files. Paths are relative to its top, with `/`, without `.` and `..`; the
/// top itself is `""`.
pub trait Tree {
    /// The node at `path`; `None` if it is missing. Links are not followed, so a path below a link is missing.
    fn entry(&self, path: &str) -> Result<Option<Entry>>;

    /// The sorted names of the nodes in a directory; empty if the path is not a directory. Fails for a name that is not
    /// UTF-8.
    fn names(&self, directory: &str) -> Result<Vec<String>>;

    /// The bytes of the file at `path`, as in a checkout; for a link its text.
    fn read(&self, path: &str) -> Result<Vec<u8>>;

    /// The bytes of the file at `path` as git stores them; `None` if a checkout does not change them.
    fn raw(&self, _path: &str) -> Result<Option<Vec<u8>>> {
        Ok(None)
    }

    /// The blob id of the file at `path`; `None` if its bytes are not stored unchanged in this repository.
    fn stored(&self, _path: &str) -> Option<String> {
        None
    }

    /// The license files of a directory, as [`license::find`] finds them; `None` if they are not known in advance.
    fn licenses(&self, _directory: &str) -> Option<Vec<String>> {
        None
    }

    /// The path in this tree of an absolute path of the file system; `None` if that is outside.
    fn absolute(&self, _path: &str) -> Option<String> {
        None
    }

    /// The path in this tree to which the text of an absolute link leads. `None` if this is not the whole file system.
    fn linked(&self, _text: &str) -> Option<String> {
        None
    }

    /// Whether line ends may differ from the stored files, because a checkout converts them.
    fn converts(&self) -> bool {
        false
    }

    /// `path` as the user would name it.
    fn label(&self, path: &str) -> String {
        path::shown(path).to_owned()
    }

    /// `path` as an argument for one of our commands, in any directory of the repository.
    fn word(&self, path: &str) -> String {
        format!(":/{path}")
    }

    /// The sorted paths of all nodes below a directory that are not directories. A tree of git leaves out paths that
    /// are not UTF-8; any other tree fails for them.
    fn below(&self, directory: &str) -> Result<Vec<String>> {
        files_below(self, directory)
    }

    /// The sorted paths of all files and links with a wanted name, without those in a submodule. Fails if one of these
    /// paths is not UTF-8.
    fn files_named(&self, is_wanted: &dyn Fn(&str) -> bool) -> Result<Vec<String>> {
        let mut paths = self.below("")?;
        paths.retain(|path| is_wanted(path::name(path)));
        Ok(paths)
    }

    /// The sorted paths of the files that git neither tracks nor ignores; empty unless this is a working tree.
    fn untracked(&self) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    /// The sorted paths of all kustomization files, without those inside charts that kustomize inflates.
    fn kustomizations(&self) -> Result<Vec<String>> {
        let mut all = Vec::new();
        for file in self.files_named(&|name| FILE_NAMES.contains(&name))? {
            let mut is_in_chart = false;
            for directory in path::and_above(path::parent(&file)) {
                is_in_chart |= is_inflated(self, directory)?;
            }
            if !is_in_chart {
                all.push(file);
            }
        }
        Ok(all)
    }

    /// The sorted paths of all locks.
    fn locks(&self) -> Result<Vec<String>> {
        self.files_named(&|name| name == LOCK_NAME)
    }

    /// Starts a search for the files whose names have one of the endings, and whose stored bytes contain one of the
    /// marks. Files that cannot be read are included.
    fn files_with(&self, endings: Names, marks: &[&'static [u8]]) -> Result<Search<'_>> {
        let marks = marks.to_vec();
        Ok(Box::new(move || search(self, endings, &marks)))
    }
}

/// Whether a directory is a chart that a kustomization inflates from a directory beside it: `charts`, or what it calls
/// the home of charts. Its files are templates, not kustomizations. Any other directory may be the user's, although it
/// looks like a chart.
fn is_inflated<T: Tree + ?Sized>(tree: &T, directory: &str) -> Result<bool> {
    let (above, is_pulled) = (path::parent(directory), path::is_pulled_chart(directory));
    let home = if is_pulled { path::parent(above) } else { above };
    let is_home = path::name(home) == CHART_HOME;
    if !(is_home || is_pulled) || tree.entry(&path::join(directory, "Chart.yaml"))?.is_none() {
        return Ok(false);
    }
    let chart = path::name(directory);
    let inflates = |name: &str| {
        let bytes = tree.read(&path::join(path::parent(home), name)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        // The file of a generator names the chart, and only a chart with a version in its path was certainly pulled.
        let names = text.contains(chart) && CHART_FIELDS.iter().any(|field| text.contains(field));
        (is_home || text.contains("chartHome")) && (names || is_pulled && text.contains("generators"))
    };
    Ok(FILE_NAMES.into_iter().any(inflates))
}

/// The words by which a kustomization names charts.
const CHART_FIELDS: [&str; 3] = ["helmCharts", "helmChartInflationGenerator", "HelmChartInflationGenerator"];

/// The directory beside a kustomization in which its charts lie, unless it says another one.
pub(crate) const CHART_HOME: &str = "charts";

/// Names that the program knows.
pub(crate) type Names = &'static [&'static str];

/// A function that waits for the end of a search and returns the sorted paths.
pub(crate) type Search<'a> = Box<dyn FnOnce() -> Result<Vec<String>> + 'a>;

/// Implements [`Tree::below`] directory by directory.
fn files_below<T: Tree + ?Sized>(tree: &T, directory: &str) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut todo = vec![directory.to_owned()];
    while let Some(directory) = todo.pop() {
        // Equal directories of a hostile tree are one object, so that a few objects make any number of paths.
        PATHS.check(files.len() + todo.len(), || tree.label(&directory))?;
        for name in tree.names(&directory)? {
            let path = path::join(&directory, &name);
            match tree.entry(&path)? {
                Some(Entry::Directory) => todo.push(path),
                // A pipe or a device has no entry, but its name exists.
                _ => files.push(path),
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Starts to test for each of `items` whether its bytes contain one of the marks; a thread takes `share` items at a
/// time. `reader` makes a function for one share, which reads an item and passes its bytes to the given test.
fn start_search<T, R, F>(
    items: Vec<T>,
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
        // Preparing a search takes longer than searching one small file.
        let finders: Vec<Finder<'_>> = marks.iter().map(Finder::new).collect();
        let shares: Vec<&[T]> = items.chunks(share).collect();
        let marked = side_by_side(&shares, processors(), |_, share| {
            let mut read_and_test = reader();
            let has_mark = |bytes: &[u8]| finders.iter().any(|finder| finder.find(bytes).is_some());
            share.iter().map(|item| read_and_test(item, &has_mark)).collect::<Vec<bool>>()
        });
        marked.concat()
    })
}

/// Implements [`Tree::files_with`] file by file.
fn search<T: Tree + ?Sized>(tree: &T, endings: &[&str], marks: &[&[u8]]) -> Result<Vec<String>> {
    let mut marked = Vec::new();
    for path in tree.below("")?.into_iter().filter(|path| endings.iter().any(|ending| path.ends_with(ending))) {
        if matches!(tree.entry(&path)?, Some(Entry::File { .. })) && is_marked(tree, &path, marks) {
            marked.push(path);
        }
    }
    Ok(marked)
}

/// Whether the bytes of a file contain one of the marks, or cannot be read.
fn is_marked<T: Tree + ?Sized>(tree: &T, path: &str, marks: &[&[u8]]) -> bool {
    // If they cannot be read, whoever reads the file says why.
    tree.read(path).map_or(true, |bytes| marks.iter().any(|mark| memchr::memmem::find(&bytes, mark).is_some()))
}

/// The path in `tree` of an argument that a user gave in `prefix`: an absolute path, a path from `top`
/// as git writes it (`:/a/b`), or a relative path. `None` if it is outside of the tree.
pub(crate) fn argument_path(tree: &dyn Tree, top: Option<&str>, prefix: &str, text: &str) -> Option<String> {
    if path::is_absolute(text) {
        return tree.absolute(text);
    }
    match (top, text.strip_prefix(":/")) {
        // A path from the top must not leave it.
        (Some(top), Some(rest)) => Some(path::join(top, &path::resolve("", rest)?)),
        _ => path::resolve(prefix, text),
    }
}

/// The names that make a directory a kustomization root, in kustomize's order
/// (`RecognizedKustomizationFileNames`, api/konfig/general.go).
pub const FILE_NAMES: [&str; 3] = ["kustomization.yaml", "kustomization.yml", "Kustomization"];

/// The name of the lock, at the top of the repository or of a NEW_DIR.
pub(crate) const LOCK_NAME: &str = "kustomize-localize.lock";

/// The command that updates the lock, also after git could not merge it.
pub(crate) const LOCK_COMMAND: &str = "git kustomize-localize lock && git add -f -- :/kustomize-localize.lock";

/// The node at the end of a path after all links have been followed.
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
    /// A path inside (or at) a submodule whose content is not in the tree.
    Submodule {
        /// The path of the gitlink.
        path: String,
    },
    Missing {
        /// The missing path, with the links before it followed.
        path: String,
    },
    /// A link leads out of the tree, or is absolute, so that it leads out of every other checkout.
    Leaves {
        /// The path of that link.
        link: String,
        /// The text of the link: the path that it points to.
        pointee: String,
    },
    /// Links lead to each other.
    Loop {
        /// The path of the last link that was followed.
        link: String,
    },
}

/// The name and the real path of the first kustomization of a directory, in the order of [`FILE_NAMES`]; `None` if it
/// has none.
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

/// Follows every link on the way to `path`, inside the tree. All references to paths are resolved by this function:
/// files, roots, charts, values, plugins, and the paths that engines deploy.
pub(crate) fn resolve(tree: &dyn Tree, path: &str) -> Result<Resolved> {
    let mut way = Way::begin(tree, path)?;
    while let Some(component) = way.rest.pop() {
        // Only the texts of links have `..`. No component of `real` is a link, so its parent is the true one.
        if component == ".." {
            if way.real.is_empty() {
                return Ok(way.last_link);
            }
            way.real = path::parent(&way.real).to_owned();
            continue;
        }
        // One component after another: a link changes the meaning of every later `..`.
        let next = path::join(&way.real, &component);
        match tree.entry(&next)? {
            Some(Entry::Directory) => way.real = next,
            Some(Entry::File { executable }) if way.rest.is_empty() => {
                return Ok(Resolved::File { path: next, executable });
            }
            // A file has nothing below it.
            Some(Entry::File { .. }) | None => return Ok(way.missing_at(&next)),
            Some(Entry::Submodule) => return Ok(Resolved::Submodule { path: next }),
            Some(Entry::Link) => {
                if let Some(end) = way.follow(tree, next)? {
                    return Ok(end);
                }
            }
        }
    }
    Ok(Resolved::Directory { path: way.real })
}

/// The state of [`resolve`].
struct Way {
    /// The real path of the directory that was reached.
    real: String,
    /// The components that are still to be followed, the next one last.
    rest: Vec<String>,
    /// The number of links that were followed.
    links: usize,
    /// The last link, as the end of a way that leaves the tree by `..`.
    last_link: Resolved,
}

impl Way {
    /// The way to `path`. If no directory on it is a link, only the last component is still to be followed.
    fn begin(tree: &dyn Tree, path: &str) -> Result<Way> {
        let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
        // A tree fails for a path that is too long, but one of its components may be a link, or missing.
        let is_plain = directory.len() < PATH.most && tree.entry(directory)? == Some(Entry::Directory);
        let (real, rest) = if is_plain { (directory, name) } else { ("", path) };
        let rest = path::components(rest).rev().map(str::to_owned).collect();
        let last_link = Resolved::Leaves { link: String::new(), pointee: String::new() };
        Ok(Way { real: real.to_owned(), rest, links: 0, last_link })
    }

    /// Puts the components of the text of a link in its place. Returns the end of the way if the link leads nowhere in
    /// the tree.
    fn follow(&mut self, tree: &dyn Tree, link: String) -> Result<Option<Resolved>> {
        // As the kernel does (ELOOP), so that a ring ends.
        self.links += 1;
        if self.links > LINKS {
            return Ok(Some(Resolved::Loop { link }));
        }
        // No path in a tree is other than UTF-8, so such a link leads to nothing.
        let Ok(pointee) = String::from_utf8(tree.read(&link)?) else {
            return Ok(Some(self.missing_at(&link)));
        };
        // An absolute link starts again at the top of the file system. A text that climbs above the top by itself
        // leaves the tree, even if a link in it would lead back.
        let inside = if path::is_absolute(&pointee) {
            tree.linked(&pointee).inspect(|_| self.real.clear())
        } else {
            path::resolve(&self.real, &pointee).map(|_| pointee.clone())
        };
        let Some(inside) = inside else {
            return Ok(Some(Resolved::Leaves { link, pointee }));
        };
        self.rest.extend(path::components(&inside).rev().filter(|component| *component != ".").map(str::to_owned));
        self.last_link = Resolved::Leaves { link, pointee };
        Ok(None)
    }

    /// The missing path that begins with `next`.
    fn missing_at(&self, next: &str) -> Resolved {
        let rest: Vec<&str> = self.rest.iter().rev().map(String::as_str).collect();
        Resolved::Missing { path: path::resolve(next, &rest.join("/")).unwrap_or_else(|| next.to_owned()) }
    }
}

/// A tree that several owners share.
pub(crate) type SharedTree = Rc<dyn Tree>;

#[cfg(test)]
mod tests {
    use super::overlay::OverlayTree;
    use super::*;

    fn tree() -> OverlayTree {
        let mut tree = OverlayTree::default();
        tree.add_file("a/real.yaml", b"x");
        tree.add_file_with_mode("run.sh", b"x", true);
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
    fn only_charts_that_a_kustomization_inflates_are_no_kustomizations() {
        let charts = [
            "charts/web/deploy/kustomization.yaml",
            "charts/db-1.2.0/db/kustomization.yaml",
            "web-prod/web/kustomization.yaml",
        ];
        let left_out = |text: &str| -> Vec<&str> {
            let mut tree = OverlayTree::default();
            tree.add_file("kustomization.yaml", text.as_bytes());
            for file in ["charts/web/Chart.yaml", "charts/db-1.2.0/db/Chart.yaml", "web-prod/web/Chart.yaml"] {
                tree.add_file(file, b"");
            }
            charts.iter().for_each(|file| tree.add_file(file, b""));
            let found = tree.kustomizations().unwrap();
            charts.into_iter().filter(|file| !found.iter().any(|found| found == file)).collect()
        };
        assert_eq!(left_out("helmCharts: [{name: web}]\n"), charts[..1]);
        assert_eq!(left_out("helmCharts: [{name: db, version: 1.2.0}]\n"), charts[1..2]);
        assert_eq!(left_out("helmChartInflationGenerator: [{chartName: web}, {chartName: db}]\n"), charts[..2]);
        assert_eq!(left_out("generators: [generator.yaml]\n"), charts[1..2]);
        assert_eq!(left_out("helmGlobals: {chartHome: .}\nhelmCharts: [{name: web}]\n"), [charts[0], charts[2]]);
        assert_eq!(left_out("resources: [helmrelease-web.yaml, db.yaml]\n"), [""; 0]);
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
                Resolved::Leaves { link, pointee } => format!("{link} leaves to {pointee}"),
                Resolved::Loop { .. } => "loop".to_owned(),
                other => format!("{other:?}"),
            };
            assert_eq!(resolved, expected, "{path}");
        }
    }
}
