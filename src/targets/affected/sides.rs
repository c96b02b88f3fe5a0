//! The two sides of a change.

use serde::{Serialize, Serializer};

/// The same fact of both sides of a change. In JSON it is a list: first the old one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub(crate) struct Sides<T> {
    pub old: T,
    pub new: T,
}

impl<T> Sides<T> {
    pub(crate) fn as_ref(&self) -> Sides<&T> {
        Sides { old: &self.old, new: &self.new }
    }

    pub(crate) fn map<U>(self, mut of: impl FnMut(T) -> U) -> Sides<U> {
        Sides { old: of(self.old), new: of(self.new) }
    }

    /// Does the same with something that can fail.
    pub(crate) fn try_map<U, E>(self, mut of: impl FnMut(T) -> Result<U, E>) -> Result<Sides<U>, E> {
        Ok(Sides { old: of(self.old)?, new: of(self.new)? })
    }

    pub(crate) fn zip<U>(self, other: Sides<U>) -> Sides<(T, U)> {
        Sides { old: (self.old, other.old), new: (self.new, other.new) }
    }

    /// The old one and the new one.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        [&self.old, &self.new].into_iter()
    }
}

impl<T> Sides<Option<T>> {
    /// The one of the new side, or else that of the old one.
    pub(crate) fn newest(self) -> Option<T> {
        self.new.or(self.old)
    }
}

impl<T: Serialize> Serialize for Sides<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [&self.old, &self.new].serialize(serializer)
    }
}
