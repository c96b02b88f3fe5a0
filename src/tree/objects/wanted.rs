//! The files of a tree that are searched.

use std::sync::Arc;

use gix::ObjectId;

use super::directory::{Directory, Item};
use crate::tree::{Entry, path};

/// Files by where they are. There may be millions, so that none of them has a path of its own.
#[derive(Default)]
pub(super) struct Wanted {
    directories: Vec<(String, Arc<Directory>)>,
    /// Of each which of the directories it is in, and where in that.
    files: Vec<(u32, u32)>,
}

impl Wanted {
    /// Adds the files of a directory of these names and paths.
    pub(super) fn add(
        &mut self,
        place: &str,
        directory: &Arc<Directory>,
        is_named: &dyn Fn(&str) -> bool,
        is_wanted: &dyn Fn(&str) -> bool,
    ) {
        let is_wanted = |(name, item): (&str, Item)| {
            is_named(name) && matches!(item.entry, Entry::File { .. }) && is_wanted(&path::join(place, name))
        };
        // As many take more memory than there is.
        let here = u32::try_from(self.directories.len()).unwrap_or(u32::MAX);
        let all = (0..).zip(directory.iter());
        let wanted = all.filter(|(_, entry)| is_wanted(*entry));
        self.files.extend(wanted.map(|(number, _)| (here, number)));
        self.directories.push((place.to_owned(), directory.clone()));
    }

    pub(super) fn count(&self) -> usize {
        self.files.len()
    }

    pub(super) fn id(&self, file: usize) -> ObjectId {
        let (_, (_, item)) = self.get(file);
        item.id
    }

    pub(super) fn path(&self, file: usize) -> String {
        let (place, (name, _)) = self.get(file);
        path::join(place, name)
    }

    fn get(&self, file: usize) -> (&str, (&str, Item)) {
        let (directory, number) = self.files[file];
        let (place, directory) = &self.directories[directory as usize];
        (place, directory.get(number as usize))
    }
}
