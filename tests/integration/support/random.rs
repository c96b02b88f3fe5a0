//! Random choices, the same on every machine.

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use sha2::{Digest as _, Sha256};

/// The choices that follow from a seed.
pub(crate) struct Random(TestRng);

impl Random {
    pub(crate) fn of(seed: &str) -> Random {
        let seed: [u8; 32] = Sha256::digest(seed).into();
        Random(TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.0.next_u32() as usize % end
    }

    /// Returns a number from 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        f64::from(self.0.next_u32()) / f64::from(u32::MAX)
    }

    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// Returns up to so many, perhaps one of them several times.
    pub(crate) fn some_of<'a, T: ?Sized>(&mut self, all: &[&'a T], most: usize) -> Vec<&'a T> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.one_of(all)).collect()
    }

    /// Returns what proptest makes its values from.
    pub(crate) fn into_rng(self) -> TestRng {
        self.0
    }
}
