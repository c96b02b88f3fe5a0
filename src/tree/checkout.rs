//! The files of a tree as a checkout gives them: `kustomize build` reads those, not what is stored.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;

use super::recent::Recent;
use super::{Entry, Listing, Search, Tree, path};
use crate::git::{Attributes, Checkout};
use crate::message::failure::{Failure, Result, shown};

/// The name of the files that say how others are checked out.
pub(crate) const FILE_NAME: &str = ".gitattributes";

/// What in a `.gitattributes` can change bytes on checkout, once `core.eol` is LF: `eol=crlf` (and the old `crlf`),
/// `ident`, `working-tree-encoding`.
const CONVERTING: [&str; 3] = ["crlf", "ident", "encoding"];

/// The result of a filter, known only to those who configured it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filters {
    /// Unchanged: no conversion is configured.
    None,
    /// It cannot be read.
    Refused,
}

/// What the attributes on the way to a directory may do to the files in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct May {
    convert: bool,
    filter: bool,
}

/// Converts the files of one tree. Where no attributes may change anything, no git is started.
pub(crate) struct Conversion {
    filters: Filters,
    hash: gix::hash::Kind,
    directories: Recent<May>,
    git: RefCell<Option<Checkout>>,
}

impl Conversion {
    /// Converts as the attributes of a tree say, with object ids of this kind.
    pub(crate) fn new(filters: Filters, hash: gix::hash::Kind) -> Self {
        Conversion { filters, hash, directories: Recent::default(), git: RefCell::default() }
    }

    /// Reads a file of `tree`.
    pub(crate) fn read(&self, tree: &dyn Listing, path: &str) -> Result<Vec<u8>> {
        let bytes = tree.read(path)?;
        let may = self.may(tree, path::parent(path))?;
        let filters = may.filter && self.filters == Filters::Refused;
        if !(may.convert || filters) || !matches!(tree.entry(path)?, Some(Entry::File { .. })) {
            return Ok(bytes);
        }
        let mut git = self.git.borrow_mut();
        let git = match &mut *git {
            Some(git) => git,
            none => none.insert(Checkout::new(&attributes(tree)?, self.hash)?),
        };
        if filters && let Some(filter) = git.filter(path)? {
            return Err(Failure::new(format!(
                "`{path}` goes through the filter `{}` on checkout: what is built from it cannot be known without running that",
                shown(&filter)
            ))
            .hint(format!(
                "commit it as it is built, with a line in `{FILE_NAME}`: /{path} -filter"
            )));
        }
        // Of `$Id: x$` with a tab or CR in it a checkout makes something else than git says.
        if memchr::memmem::find(&bytes, b"$Id:").is_some() && git.has_ident(path)? {
            return Err(Failure::new(format!(
                "`{path}` has `ident` and holds `$Id:`: what git makes of that on checkout cannot be known"
            ))
            .hint(format!("write `$Id$`, or add a line in `{FILE_NAME}`: /{path} -ident")));
        }
        if may.convert { git.convert(path, &bytes) } else { Ok(bytes) }
    }

    /// Returns whether a checkout may change the files in `directory`, which takes the attributes of the whole tree.
    pub(crate) fn applies(&self, tree: &dyn Tree, directory: &str) -> Result<bool> {
        let may = self.may(tree, directory)?;
        Ok(may.convert || (may.filter && self.filters == Filters::Refused))
    }

    /// Returns what the attributes on the way to `directory` may do.
    fn may(&self, tree: &dyn Tree, directory: &str) -> Result<May> {
        if let Some(known) = self.directories.get(directory) {
            return Ok(known);
        }
        let mut may = if directory.is_empty() { May::default() } else { self.may(tree, path::parent(directory))? };
        let file = path::join(directory, FILE_NAME);
        if let Some(Entry::File { .. } | Entry::Link) = tree.entry(&file)? {
            let text = tree.read(&file)?;
            // Unsetting an attribute (`-ident`) changes nothing, as in localized files.
            let given = |word: &&[u8]| !matches!(word.first(), Some(b'-' | b'!'));
            let given: Vec<&[u8]> = text.split(u8::is_ascii_whitespace).filter(given).collect();
            let has = |name: &str| {
                let holds = |word: &&[u8]| word.windows(name.len()).any(|part| part == name.as_bytes());
                given.iter().any(holds)
            };
            may.convert |= CONVERTING.into_iter().any(has);
            may.filter |= has("filter");
        }
        self.directories.insert(directory, may);
        Ok(may)
    }
}

fn attributes(tree: &dyn Listing) -> Result<Vec<Attributes>> {
    let mut found = Vec::new();
    for path in tree.files_named(&[FILE_NAME])? {
        found.push(Attributes { bytes: tree.read(&path)?, path });
    }
    Ok(found)
}

/// A tree of this repository, its files as a checkout gives them.
pub struct CheckedOut {
    tree: Rc<dyn Listing>,
    conversion: Conversion,
}

impl CheckedOut {
    /// Reads the files of `tree`, the ids of which are of this kind.
    pub fn new(tree: Rc<dyn Listing>, hash: gix::hash::Kind) -> Self {
        CheckedOut { tree, conversion: Conversion::new(Filters::Refused, hash) }
    }
}

impl Tree for CheckedOut {
    fn entry(&self, path: &str) -> Result<Option<Entry>> {
        self.tree.entry(path)
    }

    fn is_directory(&self, path: &str) -> Result<bool> {
        self.tree.is_directory(path)
    }

    fn names(&self, directory: &str) -> Result<Vec<String>> {
        self.tree.names(directory)
    }

    fn read(&self, path: &str) -> Result<Vec<u8>> {
        self.conversion.read(&*self.tree, path)
    }

    fn raw(&self, path: &str) -> Result<Option<Vec<u8>>> {
        let applies = self.conversion.applies(&*self.tree, path::parent(path))?;
        applies.then(|| self.tree.read(path)).transpose()
    }

    fn absolute(&self, path: &str) -> Option<String> {
        self.tree.absolute(path)
    }

    fn converts(&self) -> bool {
        true
    }

    fn label(&self, path: &str) -> String {
        self.tree.label(path)
    }

    fn word(&self, path: &str) -> String {
        self.tree.word(path)
    }
}

impl Listing for CheckedOut {
    fn files_named(&self, names: &[&str]) -> Result<Vec<String>> {
        self.tree.files_named(names)
    }

    fn below(&self, directory: &str) -> Result<Vec<String>> {
        self.tree.below(directory)
    }

    fn files_with(
        &self,
        places: &BTreeSet<String>,
        is_wanted: &dyn Fn(&str) -> bool,
        is_meant: fn(&[u8]) -> bool,
    ) -> Result<Search<'_>> {
        self.tree.files_with(places, is_wanted, is_meant)
    }

    fn unnameable(&self, names: &[&str]) -> Result<Vec<String>> {
        self.tree.unnameable(names)
    }
}

#[cfg(test)]
mod tests {
    use super::super::memory::MemoryTree;
    use super::*;

    fn tree(files: &[(&str, &str)]) -> CheckedOut {
        let mut tree = MemoryTree::default();
        for (path, text) in files {
            tree.file(path, text.as_bytes(), false);
        }
        CheckedOut::new(Rc::new(tree), gix::hash::Kind::Sha1)
    }

    #[test]
    fn unknown_conversions_are_an_error() {
        let tree = tree(&[(".gitattributes", "* filter=lfs\nb -filter\n"), ("a", ""), ("b", "x"), ("c\nd", "")]);
        let failure = tree.read("a").unwrap_err();
        assert!(failure.message.contains("filter `lfs`"), "{failure}");
        assert_eq!(tree.read("b").unwrap(), b"x");
        assert!(tree.read("c\nd").is_err());
        for path in ["../.gitattributes", ".git/.gitattributes"] {
            let hostile = self::tree(&[(".gitattributes", "* ident"), (path, "x"), ("a", "")]);
            assert!(hostile.read("a").is_err(), "{path}");
        }
    }
}
