//! Random choices, the same on every machine.

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use sha2::{Digest as _, Sha256};

/// The choices that follow from a seed.
pub(super) struct Random(TestRng);

impl Random {
    pub(super) fn of(seed: &str) -> Random {
        let seed: [u8; 32] = Sha256::digest(seed).into();
        Random(TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
    }

    /// Returns a number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0.next_u32() as usize % end
    }

    pub(super) fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}
