//! Objects that only git reaches: in the quarantine of a server hook, in a partial clone.

use super::LocalRepo;
use crate::git::not_run;
use crate::message::failure::Result;
use crate::os::process::Conversation;

impl LocalRepo {
    /// Returns the raw bytes of an object (`kind`: `blob`, `tree`) as git finds them; `None` when
    /// there is no such object, or it may not be fetched.
    pub fn object(&self, kind: &str, id: &str) -> Result<Option<Vec<u8>>> {
        let mut batch = self.batch.borrow_mut();
        if batch.is_none() {
            let mut git = self.command();
            *batch = Some(Conversation::start(git.args(["cat-file", "--batch"]), b'\n').map_err(not_run)?);
        }
        let ask = |git: &mut Conversation| {
            git.say(id)?;
            let answer = git.answer()?;
            let mut words = answer.split(' ').skip(1);
            let (found, size) = (words.next(), words.next());
            let Some(size) = size.and_then(|size| size.parse::<usize>().ok()) else {
                return Ok(None);
            };
            let mut bytes = git.read(size + 1)?;
            bytes.truncate(size);
            Ok(Some(bytes).filter(|_| found == Some(kind)))
        };
        let answer = batch.as_mut().map_or(Ok(None), ask);
        answer.or_else(|_: std::io::Error| {
            // It ended, and only a new one says why.
            *batch = None;
            let said = self.bytes(&["cat-file", kind, id]).map(Some);
            said.map_err(|failure| failure.context(format_args!("git cannot read object {id}")))
        })
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
