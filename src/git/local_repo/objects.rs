//! Reads objects through git, which fetches those that a partial clone lacks.

use super::LocalRepo;
use crate::git::{error_message, object_id, run};
use crate::message::failure::{Failure, Result};

impl LocalRepo {
    /// The raw bytes of an object (`kind`: `blob`, `tree`, `commit`), which git may fetch in a partial clone. `None` if
    /// there is no such object, or if it is not here and nothing may be fetched.
    pub fn object(&self, kind: &str, id: &str) -> Result<Option<Vec<u8>>> {
        // git would fetch a missing object from the remote. gix only looks here.
        if !self.may_fetch && self.is_partial()? {
            let object = self.repository()?.find_object(object_id(id)?).ok();
            return Ok(object.filter(|object| object.kind.to_string() == kind).map(|object| object.detach().data));
        }
        let output = run(self.command().args(["cat-file", kind, id]), None)?;
        match output.status.success() {
            true => Ok(Some(output.stdout)),
            // In a partial clone the fetch may have failed, so that nothing tells whether the object exists.
            false if self.is_partial()? => {
                Err(Failure::new(format!("git cannot read object {id}: {}", error_message(&output))))
            }
            false => Ok(None),
        }
    }

    /// The type of the object with this full id; for a tag, the type of its target.
    pub fn kind(&self, id: &str) -> Result<String> {
        Ok(self.text(&["cat-file", "-t", &format!("{id}^{{}}")])?.trim_end().to_owned())
    }

    /// Whether this is a partial clone, which fetches some objects only when they are needed.
    pub fn is_partial(&self) -> Result<bool> {
        let mut keys = self.settings()?.iter().map(|setting| &*setting.key);
        Ok(keys.any(|key| key == "extensions.partialclone" || key.starts_with("remote.") && key.ends_with(".promisor")))
    }
}
