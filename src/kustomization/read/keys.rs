//! The keys of a mapping as kustomize sees them: merge keys applied, equal keys settled, cases folded.

use std::collections::HashMap;

use super::{Place, Reader};
use crate::kustomization::ProblemKind;
use crate::kustomization::yaml::{Dialect, NodeId, NodeKind, Type};

/// One key in effect.
#[derive(Debug, Clone)]
pub(in crate::kustomization) struct Entry {
    pub key: String,
    pub key_node: NodeId,
    pub place: Place,
}

impl Reader<'_> {
    /// Returns the keys in effect, or `None` if the place holds no mapping.
    pub(in crate::kustomization) fn entries(
        &mut self,
        place: &Place,
        field: &str,
    ) -> Option<Vec<Entry>> {
        let document = self.document;
        let NodeKind::Mapping(pairs) = &document.resolved(place.node).kind else {
            return None;
        };
        let mut entries = Entries::default();
        // go-yaml 3 applies merge keys last.
        let mut merges = Vec::new();
        for (step, (key_node, value_node)) in pairs.iter().enumerate() {
            let value = place.child(*value_node, step);
            if document.is_merge_key(*key_node) {
                if self.dialect == Dialect::Objects {
                    merges.push((*key_node, value));
                    continue;
                }
                for entry in self.merged(*key_node, &value, field) {
                    let loser = entries.replace(entry);
                    self.note_loser(loser, *key_node, place, field);
                }
                continue;
            }
            let key = match document.scalar_type(*key_node, self.dialect) {
                None | Some(Type::Null | Type::Invalid) => {
                    let message = "a key must be a string".to_owned();
                    self.problem(*key_node, field, ProblemKind::WrongType, message, vec![]);
                    continue;
                }
                Some(Type::Bool(value)) => value.to_string(),
                Some(_) => document.scalar(*key_node).unwrap_or_default().to_owned(),
            };
            let entry = Entry {
                key,
                key_node: *key_node,
                place: value,
            };
            // Equal keys of objects are looked for elsewhere (`plugin::duplicate_key`).
            let loser = entries.replace(entry);
            if self.dialect == Dialect::Kustomization {
                self.note_loser(loser, *key_node, place, field);
            }
        }
        for (key_node, value) in merges {
            for entry in self.merged(key_node, &value, field) {
                entries.add(entry);
            }
        }
        Some(entries.list)
    }

    /// Returns what some keys lead to, one below the other, in any case.
    pub(in crate::kustomization) fn folded(
        &mut self,
        place: &Place,
        keys: &[&str],
    ) -> Option<Place> {
        let mut place = place.clone();
        for key in keys {
            let entries = self.entries(&place, "")?;
            let found = entries.into_iter().find(|entry| equal(key, &entry.key));
            place = found?.place;
        }
        Some(place)
    }

    /// Notes that a key which stands in this mapping has no effect. One that a merge key brought in is meant to be replaced.
    fn note_loser(&mut self, loser: Option<Entry>, winner: NodeId, place: &Place, field: &str) {
        if let Some(loser) = loser.filter(|loser| loser.place.path.len() == place.path.len() + 1) {
            let field = super::join(field, &loser.key);
            self.duplicate(loser.key_node, winner, &field);
        }
    }

    /// Returns what a merge key brings in; of equal keys the last one counts.
    fn merged(&mut self, key_node: NodeId, value: &Place, field: &str) -> Vec<Entry> {
        self.found.visits += 1;
        if self.found.visits > self.most_visits() {
            return Vec::new();
        }
        let document = self.document;
        if let NodeKind::Sequence(items) = &document.resolved(value.node).kind {
            // The first mapping of a list has precedence.
            let mut all = Entries::default();
            for (step, item) in items.iter().enumerate().rev() {
                match self.entries(&value.child(*item, step), field) {
                    Some(entries) => entries.into_iter().for_each(|entry| {
                        all.replace(entry);
                    }),
                    None => self.bad_merge(key_node, field),
                }
            }
            return all.list;
        }
        match self.entries(value, field) {
            Some(entries) => {
                self.found.visits += entries.len();
                entries
            }
            None => {
                self.bad_merge(key_node, field);
                Vec::new()
            }
        }
    }

    fn bad_merge(&mut self, key_node: NodeId, field: &str) {
        let message = "the merge key `<<` needs a mapping or a list of mappings".to_owned();
        self.problem(key_node, field, ProblemKind::WrongType, message, vec![]);
    }
}

/// How many keys are compared one after the other: most mappings have few.
const FEW: usize = 16;

/// Keys in the order in which they first appear.
#[derive(Default)]
struct Entries {
    list: Vec<Entry>,
    /// Where each key is, once there are many.
    index: HashMap<String, usize>,
}

impl Entries {
    /// Puts an entry in the place of an equal one, which is returned.
    fn replace(&mut self, entry: Entry) -> Option<Entry> {
        match self.find(&entry.key).and_then(|at| self.list.get_mut(at)) {
            Some(slot) => Some(std::mem::replace(slot, entry)),
            None => {
                self.push(entry);
                None
            }
        }
    }

    /// Adds an entry unless there is an equal one.
    fn add(&mut self, entry: Entry) {
        if self.find(&entry.key).is_none() {
            self.push(entry);
        }
    }

    fn find(&self, key: &str) -> Option<usize> {
        if self.list.len() > FEW {
            self.index.get(key).copied()
        } else {
            self.list.iter().position(|entry| entry.key == key)
        }
    }

    fn push(&mut self, entry: Entry) {
        self.list.push(entry);
        let new = match self.list.len() {
            ..=FEW => return,
            // Those that were few until now, too.
            length if length == FEW + 1 => 0,
            length => length - 1,
        };
        for (at, entry) in self.list.iter().enumerate().skip(new) {
            self.index.insert(entry.key.clone(), at);
        }
    }
}

/// Compares keys as `encoding/json` does: simple case folding, so that `ſ` is `s` and the Kelvin sign is `k`.
pub(super) fn equal(name: &str, key: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).eq(key.chars().map(fold))
}
