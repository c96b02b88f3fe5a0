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
        let mut merge = None;
        for (step, (key_node, value_node)) in pairs.iter().enumerate() {
            let value = place.child(*value_node, step);
            if self.dialect == Dialect::Kustomization && document.is_merge_key(*key_node) {
                if let Some(first) = merge.replace(*key_node) {
                    self.duplicate(first, *key_node, field);
                }
                for entry in self.merged(*key_node, &value, field) {
                    match entries.get(&entry.key) {
                        // It would replace what stands before it.
                        Some(own) => {
                            let (first, field) = (own.key_node, super::join(field, &entry.key));
                            self.duplicate(first, *key_node, &field);
                        }
                        None => entries.push(entry),
                    }
                }
                continue;
            }
            let key = match document.scalar_type(*key_node, self.dialect) {
                None | Some(Type::Null | Type::Invalid | Type::Binary) => {
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
            match entries.get(&entry.key) {
                None => entries.push(entry),
                // What a merge key brings in is meant to be replaced.
                Some(other) if other.place.path.len() > entry.place.path.len() => *other = entry,
                // Those of objects are found by `plugin::not_plain`.
                Some(first) if self.dialect == Dialect::Kustomization => {
                    let (first, field) = (first.key_node, super::join(field, &entry.key));
                    self.duplicate(first, *key_node, &field);
                }
                Some(_) => {}
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

    /// Returns what a merge key brings in: a mapping, or several of which the first has precedence.
    fn merged(&mut self, key_node: NodeId, value: &Place, field: &str) -> Vec<Entry> {
        let mut mappings = self.items(value);
        if mappings.is_empty() {
            mappings.push(value.clone());
        }
        let mut all = Entries::default();
        for mapping in mappings {
            let entries = self.entries(&mapping, field).unwrap_or_else(|| {
                let message = "the merge key `<<` needs a mapping or a list of mappings".to_owned();
                self.problem(key_node, field, ProblemKind::WrongType, message, vec![]);
                Vec::new()
            });
            for entry in entries {
                if all.get(&entry.key).is_none() {
                    all.push(entry);
                }
            }
        }
        all.list
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
    fn get(&mut self, key: &str) -> Option<&mut Entry> {
        let at = if self.list.len() > FEW {
            self.index.get(key).copied()
        } else {
            self.list.iter().position(|entry| entry.key == key)
        };
        self.list.get_mut(at?)
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
pub(in crate::kustomization) fn equal(name: &str, key: &str) -> bool {
    let fold = |c: char| match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        c => c.to_ascii_lowercase(),
    };
    name.chars().map(fold).eq(key.chars().map(fold))
}
