//! Objects that only git reaches: those that a partial clone lacks.

use super::LocalRepo;
use crate::git::{run, said};
use crate::message::failure::{Failure, Result};

impl LocalRepo {
    /// Returns the raw bytes of an object (`kind`: `blob`, `tree`) as git finds them, which a partial clone may fetch for
    /// that. `None` when there is no such object, or nothing may be fetched.
    pub fn object(&self, kind: &str, id: &str) -> Result<Option<Vec<u8>>> {
        if !self.may_fetch && self.is_partial()? {
            return Ok(None);
        }
        let output = run(self.command().args(["cat-file", kind, id]), None)?;
        match output.status.success() {
            true => Ok(Some(output.stdout)),
            false if self.is_partial()? => Err(Failure::new(format!("git cannot read object {id}: {}", said(&output)))),
            false => Ok(None),
        }
    }

    /// Returns the type of the object that `id` (a full object id) is, or leads to if it is a tag.
    pub fn kind(&self, id: &str) -> Result<String> {
        Ok(self.text(&["cat-file", "-t", &format!("{id}^{{}}")])?.trim_end().to_owned())
    }

    /// Returns whether this is a partial clone: some objects are fetched when they are needed only.
    pub fn is_partial(&self) -> Result<bool> {
        Ok(self.settings()?.iter().any(|one| {
            one.key == "extensions.partialclone" || (one.key.starts_with("remote.") && one.key.ends_with(".promisor"))
        }))
    }
}
