//! Random choices, the same on every machine.

use proptest::prelude::Rng as _;
use proptest::test_runner::{RngAlgorithm, TestRng};
use sha2::{Digest as _, Sha256};

/// The choices that follow from a seed, or those that were made before.
pub(crate) struct Random {
    /// None where only what was made before is made again.
    rng: Option<TestRng>,
    /// Numbers that choices were made by, and how many of them have been taken.
    made: Vec<u32>,
    taken: usize,
}

impl Random {
    pub(crate) fn of(seed: &str) -> Random {
        let seed: [u8; 32] = Sha256::digest(seed).into();
        Random { rng: Some(TestRng::from_seed(RngAlgorithm::ChaCha, &seed)), made: Vec::new(), taken: 0 }
    }

    /// Makes choices by these numbers, and then always the first.
    pub(crate) fn again(made: Vec<u32>) -> Random {
        Random { rng: None, made, taken: 0 }
    }

    /// Returns what the choices so far were made by.
    pub(crate) fn made(&self) -> &[u32] {
        &self.made[..self.taken.min(self.made.len())]
    }

    fn next(&mut self) -> u32 {
        if let Some(rng) = &mut self.rng {
            self.made.push(rng.next_u32());
        }
        self.taken += 1;
        self.made.get(self.taken - 1).copied().unwrap_or_default()
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        self.next() as usize % end
    }

    /// Returns a number from 0 to 1.
    pub(crate) fn fraction(&mut self) -> f64 {
        f64::from(self.next()) / f64::from(u32::MAX)
    }

    pub(crate) fn one_of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }

    /// Returns up to so many, perhaps one of them several times.
    pub(crate) fn some_of<'a, T: ?Sized>(&mut self, all: &[&'a T], most: usize) -> Vec<&'a T> {
        let count = self.below(most + 1);
        (0..count).map(|_| self.one_of(all)).collect()
    }
}
