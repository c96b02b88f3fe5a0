//! What was found for the directories that were requested last.

use std::cell::RefCell;
use std::collections::HashMap;

/// How many directories are remembered at most: the next ones that are requested lie near the last ones.
const MOST: usize = 10_000;

/// Something about each of the directories that were requested last.
#[derive(Debug)]
pub(super) struct Recent<T>(RefCell<HashMap<String, T>>);

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Recent(RefCell::default())
    }
}

impl<T: Clone> Recent<T> {
    pub(super) fn get(&self, directory: &str) -> Option<T> {
        self.0.borrow().get(directory).cloned()
    }

    pub(super) fn insert(&self, directory: &str, value: T) {
        let mut known = self.0.borrow_mut();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(directory.to_owned(), value);
    }
}
