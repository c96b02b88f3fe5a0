//! Bounds the number of bytes that one run fetches.

use std::sync::atomic::{AtomicU64, Ordering};

use indicatif::HumanBytes;

use crate::config::FILE_NAME;
use crate::message::failure::{Failure, Result};

/// The default limit for the size of a file.
pub(crate) const MAX_FILE_SIZE: u64 = 64 << 20;
/// The limit for all files of a run.
const MAX_TOTAL: u64 = 1 << 30;

/// The bytes that a run may still fetch. Its threads share one budget.
#[derive(Debug)]
pub(super) struct Budget {
    largest: u64,
    total: u64,
    taken: AtomicU64,
}

impl Budget {
    /// Allows files of up to `largest` bytes each.
    pub(super) fn new(largest: u64) -> Self {
        Budget { largest, total: MAX_TOTAL.max(largest), taken: AtomicU64::new(0) }
    }

    /// The size of the largest file that is allowed.
    pub(super) fn largest(&self) -> u64 {
        self.largest
    }

    /// The most memory for reading one object. A pack may store a file as a delta to a larger one.
    pub(super) fn memory(&self) -> u64 {
        self.largest.saturating_mul(2).max(MAX_FILE_SIZE)
    }

    /// Refuses a file of `size` bytes if it is larger than one file may be: a base must not fill the memory of the
    /// user's machine. `label` names the file in the message.
    pub(super) fn check(&self, size: u64, label: impl FnOnce() -> String) -> Result<()> {
        if size > self.largest {
            return Err(Failure::new(format!(
                "`{}` is too large: {} exceeds the limit of {}",
                label(),
                HumanBytes(size),
                HumanBytes(self.largest)
            ))
            .hint(format!("to accept it, write `max-file-size: {size}` in {FILE_NAME}")));
        }
        Ok(())
    }

    /// Counts a file of `size` bytes in the total of the run, and refuses it if it is too large or the total exceeds
    /// its limit: many small files fill the memory, too.
    pub(super) fn take(&self, size: u64, label: impl Fn() -> String) -> Result<()> {
        self.check(size, &label)?;
        let before = self.taken.fetch_add(size, Ordering::Relaxed);
        if before.saturating_add(size) > self.total {
            return Err(Failure::new(format!(
                "`{}`: all fetched files together exceed {}",
                label(),
                HumanBytes(self.total)
            ))
            .hint("localize fewer targets in one run"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_file_has_a_limit() {
        let budget = Budget::new(10);
        assert!(budget.take(10, || "a".to_owned()).is_ok());
        let failure = budget.take(11, || "a".to_owned()).unwrap_err();
        assert_eq!(failure.message, "`a` is too large: 11 B exceeds the limit of 10 B");
        assert_eq!(failure.hints, ["to accept it, write `max-file-size: 11` in .kustomize-localize"]);
    }

    #[test]
    fn all_files_together_have_a_limit() {
        let budget = Budget { total: 15, ..Budget::new(10) };
        assert!(budget.take(10, String::new).is_ok());
        assert!(budget.take(5, String::new).is_ok());
        let failure = budget.take(1, || "b".to_owned()).unwrap_err();
        assert_eq!(failure.message, "`b`: all fetched files together exceed 15 B");
    }
}
