//! What is built is what a checkout gives, not what is stored: line ends, `ident` and encodings follow the
//! attributes that hold where a file lies, and a copy lies somewhere else.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use super::disk::not_written;
use crate::message::failure::Result;
use crate::tree::checkout::{Conversion, FILE_NAME, Filters};
use crate::tree::overlay::OverlayTree;
use crate::tree::{Entry, Tree, path};

/// Files that were written as they are stored, by their paths in the commit.
pub(super) type Stored = BTreeMap<String, PathBuf>;

/// Makes `files` what a checkout gives. `attributes` holds the `.gitattributes` of the commit.
pub(super) fn convert(files: &Stored, attributes: &dyn Tree) -> Result<()> {
    let mut tree = OverlayTree::default();
    let directories: BTreeSet<&str> =
        files.keys().flat_map(|place| path::and_above(path::parent(place)).chain([""])).collect();
    let mut is_plain = true;
    for directory in directories {
        let place = path::join(directory, FILE_NAME);
        // git reads no link.
        if let Some(Entry::File { .. }) = attributes.entry(&place)? {
            tree.file(&place, &attributes.read(&place)?, false);
            is_plain = false;
        }
    }
    if is_plain {
        return Ok(());
    }
    for (place, written) in files {
        let bytes = fs::read(written).map_err(|error| not_written(&error))?;
        tree.file(place, &bytes, false);
    }
    // The builds of both sides would see what a filter makes of a file, which only who configured it knows.
    let conversion = Conversion::new(Filters::None, gix::hash::Kind::Sha1);
    for (place, written) in files {
        // In place, so that the mode stays.
        fs::write(written, conversion.read(&tree, place)?).map_err(|error| not_written(&error))?;
    }
    Ok(())
}
