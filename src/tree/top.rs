//! The place of a tree in the file system.

use std::path::{Path, PathBuf};

use super::path;

/// The top of the working tree, made real: what an absolute path is compared with.
#[derive(Debug, Clone)]
pub(super) struct Top(PathBuf);

impl Top {
    pub(super) fn new(top: &Path) -> Option<Top> {
        std::fs::canonicalize(top).ok().map(Top)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the path from the top that an absolute path means, if it lies below.
    pub(super) fn inside(&self, text: &str) -> Option<String> {
        let cleaned = PathBuf::from(format!("/{}", path::resolve("", text)?));
        let top = &self.0;
        let inside = match cleaned.strip_prefix(top) {
            Ok(inside) => inside.to_owned(),
            // The same place under another name: a link above the top, as `/tmp` on macOS. Links
            // below the top are those of the tree, and followed there.
            Err(_) => cleaned.ancestors().collect::<Vec<_>>().into_iter().rev().find_map(|above| {
                let real = std::fs::canonicalize(above).ok()?;
                let inside = real.strip_prefix(top).ok()?;
                Some(inside.join(cleaned.strip_prefix(above).ok()?))
            })?,
        };
        let parts: Option<Vec<&str>> = inside.components().map(|part| part.as_os_str().to_str()).collect();
        Some(parts?.join("/"))
    }
}
