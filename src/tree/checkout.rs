//! The files of a tree as a checkout writes them: `kustomize build` reads these, not the stored bytes.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;

use super::{Entry, Tree, path};
use crate::git::{Attributes, Checkout};
use crate::message::failure::{Failure, Result, shown};
use crate::os::limits::ATTRIBUTES;

/// The name of the files with attributes.
pub(crate) const FILE_NAME: &str = ".gitattributes";

/// Words in a `.gitattributes` that can change bytes on checkout if `core.eol` is LF: `eol=crlf` (and the old `crlf`),
/// `ident`, `working-tree-encoding`.
const CONVERTING: [&str; 3] = ["crlf", "ident", "encoding"];

/// Converts the files of one tree.
pub(crate) struct Conversion {
    /// Whether a file with a filter cannot be read: its result depends on the configuration of the user.
    refuses_filters: bool,
    hash: gix::hash::Kind,
    /// Whether attributes may change the files in a directory, for the directories that were asked about.
    directories: RefCell<HashMap<String, bool>>,
    /// The repository that converts files, and the attributes of all files, once a file may be converted.
    git: OnceCell<Result<(Checkout, HashMap<String, Attributes>)>>,
}

impl Conversion {
    /// A conversion for a repository with object ids of this kind. A file with a filter is taken as it is stored.
    pub(crate) fn without_filters(hash: gix::hash::Kind) -> Self {
        Conversion { refuses_filters: false, ..Conversion::refusing_filters(hash) }
    }

    /// A conversion for a repository with object ids of this kind. A file with a filter cannot be read.
    pub(crate) fn refusing_filters(hash: gix::hash::Kind) -> Self {
        Conversion { refuses_filters: true, hash, directories: RefCell::default(), git: OnceCell::new() }
    }

    /// Reads a file of `tree` as a checkout writes it; a link as its text. Fails if that is unknown.
    pub(crate) fn read(&self, tree: &dyn Tree, path: &str) -> Result<Vec<u8>> {
        let bytes = tree.read(path)?;
        if !self.applies(tree, path::parent(path))? || !matches!(tree.entry(path)?, Some(Entry::File { .. })) {
            return Ok(bytes);
        }
        // git is started only here, where attributes may change the file.
        let (git, all) = self.git.get_or_init(|| self.attributes(tree)).as_ref().map_err(Failure::clone)?;
        let Some(attributes) = all.get(path) else {
            return Ok(bytes);
        };
        if self.refuses_filters
            && let Some(filter) = &attributes.filter
        {
            return Err(Failure::new(format!(
                "`{path}` goes through the filter `{}` on checkout: its content is unknown without running the filter",
                shown(filter)
            ))
            .hint(format!("commit it as a checkout writes it, with a line in `{FILE_NAME}`: /{path} -filter")));
        }
        // If `$Id: x$` contains a tab or CR, a checkout writes other bytes than `git cat-file --filters`.
        if memchr::memmem::find(&bytes, b"$Id:").is_some() && attributes.has_ident {
            return Err(Failure::new(format!(
                "`{path}` has `ident` and contains `$Id:`: its content after a checkout is unknown"
            ))
            .hint(format!("write `$Id$`, or add a line in `{FILE_NAME}`: /{path} -ident")));
        }
        // Converting starts a program, and most files have no attributes.
        if attributes.converts { git.convert(path, &bytes) } else { Ok(bytes) }
    }

    /// The attributes of all files, and what converts them.
    fn attributes(&self, tree: &dyn Tree) -> Result<(Checkout, HashMap<String, Attributes>)> {
        let (files, all) = (files_named(tree, FILE_NAME)?, tree.below("")?);
        // git compares each file with each line of attributes, so the product of both is limited.
        let lines: usize = files.iter().map(|(_, text)| memchr::memchr_iter(b'\n', text).count()).sum();
        ATTRIBUTES.check(lines.saturating_mul(all.len()), || FILE_NAME.to_owned())?;
        let git = Checkout::new(&files, self.hash)?;
        let attributes = git.attributes(&all)?;
        Ok((git, attributes))
    }

    /// Whether a checkout may change any file; also true if that is unknown.
    pub(crate) fn applies_anywhere(&self, tree: &dyn Tree) -> bool {
        let Ok(files) = tree.files_named(&|file| file == FILE_NAME) else { return true };
        files.iter().any(|path| self.applies(tree, path::parent(path)).unwrap_or(true))
    }

    /// Whether a checkout may change the files in `directory`. Only then do callers read the attributes of all
    /// files.
    pub(crate) fn applies(&self, tree: &dyn Tree, directory: &str) -> Result<bool> {
        if let Some(known) = self.directories.borrow().get(directory) {
            return Ok(*known);
        }
        // Attributes of a directory hold for all below.
        let mut applies = !directory.is_empty() && self.applies(tree, path::parent(directory))?;
        let file = path::join(directory, FILE_NAME);
        // git reads attributes from the index, where a link is a file with its text.
        if let Some(Entry::File { .. } | Entry::Link) = tree.entry(&file)? {
            let text = tree.read(&file)?;
            // Unsetting an attribute (`-ident`) changes nothing: `GITATTRIBUTES` of localized files only unsets.
            let mut given = text.split(u8::is_ascii_whitespace).filter(|word| !matches!(word, [b'-' | b'!', ..]));
            // A filter counts only if its files cannot be read: otherwise they are taken as they are stored.
            let filter = self.refuses_filters.then_some("filter");
            let names = Vec::from_iter(CONVERTING.into_iter().chain(filter));
            // A word may have a value (`eol=crlf`). A pattern with such a name counts, too: git then knows better.
            applies |= given.any(|word| names.iter().any(|name| memchr::memmem::find(word, name.as_bytes()).is_some()));
        }
        self.directories.borrow_mut().insert(directory.to_owned(), applies);
        Ok(applies)
    }
}

/// The files and links with a name, and their bytes.
pub(super) fn files_named(tree: &dyn Tree, name: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let files = tree.files_named(&|file| file == name)?.into_iter();
    files.map(|path| Ok((path.clone(), tree.read(&path)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::overlay::OverlayTree;
    use super::*;

    #[test]
    fn what_git_would_compare_is_bounded() {
        let read = |lines: usize, files: usize| {
            let mut tree = OverlayTree::default();
            let text: String = (0..lines).map(|number| format!("*.x{number} eol=crlf\n")).collect();
            tree.add_file(FILE_NAME, text.as_bytes());
            (0..files).for_each(|number| tree.add_file(&format!("{number}"), b""));
            let conversion = Conversion::refusing_filters(gix::hash::Kind::Sha1);
            let read = conversion.read(&tree, "0").map_err(|failure| failure.message);
            assert!(conversion.git.get().is_some(), "the next file does not count again");
            read
        };
        let refused = "`.gitattributes` has more than 200000000 pairs of a line and a file to compare";
        assert_eq!(read(100_000, 3000), Err(refused.to_owned()));
        assert_eq!(read(300, 30), Ok(Vec::new()));
    }

    #[test]
    fn unknown_conversions_are_an_error() {
        let read = |files: &[(&str, &str)], path: &str| {
            let mut tree = OverlayTree::default();
            for (path, text) in files {
                tree.add_file(path, text.as_bytes());
            }
            Conversion::refusing_filters(gix::hash::Kind::Sha1).read(&tree, path)
        };
        let files = [(".gitattributes", "* filter=lfs\nb -filter\n"), ("a", ""), ("b", "x"), ("c\nd", "")];
        let failure = read(&files, "a").unwrap_err();
        assert!(failure.message.contains("filter `lfs`"), "{failure}");
        assert_eq!(read(&files, "b").unwrap(), b"x");
        assert!(read(&files, "c\nd").is_err());
        for path in ["../.gitattributes", ".git/.gitattributes"] {
            assert!(read(&[(".gitattributes", "* ident"), (path, "x"), ("a", "")], "a").is_err(), "{path}");
        }
    }
}
