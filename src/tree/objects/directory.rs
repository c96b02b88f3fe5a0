//! One decoded tree object.

use std::ops::Range;

use gix::ObjectId;

use crate::tree::Entry;

/// One entry of a directory.
#[derive(Debug, Clone, Copy)]
pub(in crate::tree) struct Item {
    pub(in crate::tree) entry: Entry,
    pub(in crate::tree) id: ObjectId,
}

/// What a directory holds. There may be a million entries, so that none of them has memory of its own.
#[derive(Debug)]
pub(in crate::tree) struct Directory {
    /// All names, one after the other.
    names: Box<str>,
    /// All ids, in the order of the names.
    ids: Box<[u8]>,
    /// Where each name is, and what it names, sorted by name.
    entries: Box<[(Range<u32>, Entry)]>,
    /// The names that are not UTF-8, as they can be shown, with the ids of those that are directories.
    pub(super) odd: Vec<(String, Option<ObjectId>)>,
    hash: gix::hash::Kind,
}

impl Directory {
    /// Takes the entries of a tree object, in any order. Of a name that a damaged one has twice the last one counts.
    /// `None` where they are too many.
    pub(in crate::tree) fn of(
        mut all: Vec<(&str, Item)>,
        odd: Vec<(String, Option<ObjectId>)>,
        hash: gix::hash::Kind,
    ) -> Option<Directory> {
        all.sort_by_key(|(name, _)| *name);
        all.dedup_by(|(name, item), (kept, first)| {
            let is_same = name == kept;
            if is_same {
                *first = *item;
            }
            is_same
        });
        let names = all.iter().map(|(name, _)| *name).collect::<String>();
        let ids: Vec<u8> = all.iter().flat_map(|(_, item)| item.id.as_bytes()).copied().collect();
        let mut entries = Vec::with_capacity(all.len());
        let mut start = 0;
        for (name, item) in all {
            let end = u32::try_from(name.len()).ok()?.checked_add(start)?;
            entries.push((start..end, item.entry));
            start = end;
        }
        Some(Directory { names: names.into(), ids: ids.into(), entries: entries.into(), odd, hash })
    }

    /// Returns where the entry of this name is.
    pub(super) fn find(&self, name: &str) -> Option<usize> {
        let order = |(place, _): &(Range<u32>, Entry)| self.text(place).cmp(name);
        self.entries.binary_search_by(order).ok()
    }

    /// Returns an entry by where it is, which is less than the number of them.
    pub(super) fn get(&self, number: usize) -> (&str, Item) {
        let (place, entry) = &self.entries[number];
        let length = self.hash.len_in_bytes();
        let id = &self.ids[number * length..][..length];
        let item = Item { entry: *entry, id: ObjectId::from_bytes_or_panic(id) };
        (self.text(place), item)
    }

    /// Returns the entries, in the order of their names.
    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = (&str, Item)> {
        (0..self.entries.len()).map(|number| self.get(number))
    }

    fn text(&self, place: &Range<u32>) -> &str {
        &self.names[place.start as usize..place.end as usize]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::object_id;
    use super::*;

    proptest! {
        #[test]
        fn of_a_name_the_last_entry_is_found(names in prop::collection::vec("[a-c./-]{0,4}", 0..30)) {
            let mut all = Vec::new();
            let mut expected = std::collections::BTreeMap::new();
            for (number, name) in names.iter().enumerate() {
                let item = Item {
                    entry: Entry::File { executable: false },
                    id: object_id(&format!("{number:040x}")).unwrap(),
                };
                all.push((name.as_str(), item));
                expected.insert(name.as_str(), item.id);
            }
            let directory = Directory::of(all, Vec::new(), gix::hash::Kind::Sha1).unwrap();
            let found: Vec<_> = directory.iter().map(|(name, item)| (name, item.id)).collect();
            prop_assert_eq!(found, expected.clone().into_iter().collect::<Vec<_>>());
            for name in names.iter().map(String::as_str).chain(["none"]) {
                let found = directory.find(name).map(|number| directory.get(number).1.id);
                prop_assert_eq!(found, expected.get(name).copied());
            }
        }
    }
}
