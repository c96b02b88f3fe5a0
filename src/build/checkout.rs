//! What is built is what a checkout gives, not what is stored: line ends, `ident` and encodings follow the
//! attributes that hold where a file lies, and a copy lies somewhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::build_inputs::not_put;
use crate::message::failure::Result;
use crate::record::sha256_hex;
use crate::tree::checkout::{Conversion, Filters};
use crate::tree::memory::MemoryTree;
use crate::tree::{Entry, Tree, path};

/// Files that were written as they are stored, by their paths in the commit.
pub(super) type Stored = BTreeMap<String, PathBuf>;

/// What a checkout made of files: what it gives, by what is stored and the path in the commit.
pub(super) type Converted = BTreeMap<String, (String, String)>;

/// Returns the `.gitattributes` at a path of a tree. git reads no link.
pub(super) fn attributes_of(tree: &dyn Tree, place: &str) -> Result<Option<Vec<u8>>> {
    match tree.entry(place)? {
        Some(Entry::File { .. }) => tree.read(place).map(Some),
        Some(Entry::Directory | Entry::Link | Entry::Submodule) | None => Ok(None),
    }
}

/// Makes `files` what a checkout gives, and returns those that became something else. `attributes` says what the
/// `.gitattributes` at a path of the commit holds.
pub(super) fn convert(files: &Stored, attributes: &dyn Fn(&str) -> Result<Option<Vec<u8>>>) -> Result<Converted> {
    let mut tree = MemoryTree::default();
    let directories: BTreeSet<&str> =
        files.keys().flat_map(|place| path::and_above(path::parent(place)).chain([""])).collect();
    let mut is_plain = true;
    for directory in directories {
        let place = path::join(directory, ".gitattributes");
        if let Some(text) = attributes(&place)? {
            tree.file(&place, &text, false);
            is_plain = false;
        }
    }
    let mut converted = Converted::new();
    if is_plain {
        return Ok(converted);
    }
    for (place, put) in files {
        let bytes = fs::read(put).map_err(|error| not_put(&error))?;
        tree.file(place, &bytes, false);
    }
    // The builds of both sides would see what a filter makes of a file, which only who configured it knows.
    let conversion = Conversion::new(Filters::None, gix::hash::Kind::Sha1);
    for (place, put) in files {
        let bytes = tree.read(place)?;
        let given = conversion.read(&tree, place)?;
        if given != bytes {
            // In place, so that the mode stays.
            fs::write(put, &given).map_err(|error| not_put(&error))?;
            let what = (sha256_hex(&bytes), sha256_hex(&given));
            converted.insert(place.clone(), what);
        }
    }
    Ok(converted)
}

/// Returns the paths of files that a checkout converts in one of two commits only.
pub(super) fn one_sided(original: &Converted, localized: &Converted) -> Vec<String> {
    let of = |converted: &Converted| converted.values().cloned().collect::<BTreeSet<_>>();
    let (before, after) = (of(original), of(localized));
    let only = |converted: &Converted, other: &BTreeSet<(String, String)>| {
        let only = converted.iter().filter(|(_, what)| !other.contains(*what));
        only.map(|(place, _)| place.clone()).collect::<Vec<_>>()
    };
    let mut paths = [only(original, &after), only(localized, &before)].concat();
    paths.sort();
    paths.dedup();
    paths
}
