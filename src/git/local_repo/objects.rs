//! Objects that only git reaches: in the quarantine of a server hook, in a partial clone.

use super::{LocalRepo, ok};
use crate::git::{not_run, said};
use crate::message::failure::{Failure, Result};
use crate::os::process::Conversation;

impl LocalRepo {
    /// Returns the raw bytes of an object (`kind`: `blob`, `tree`) as git finds them; `None` when
    /// there is no such object, or it may not be fetched.
    pub fn object(&self, kind: &str, id: &str) -> Result<Option<Vec<u8>>> {
        let mut batch = self.batch.borrow_mut();
        let git = match &mut *batch {
            Some(git) => git,
            empty => {
                let mut command = self.command();
                command.args(["cat-file", "--batch"]);
                empty.insert(Conversation::start(&mut command).map_err(not_run)?)
            }
        };
        if let Ok(answer) = ask(git, kind, id) {
            return Ok(answer);
        }
        // It ended, and only a new one reports why.
        *batch = None;
        let output = self.run(&["cat-file", kind, id], None)?;
        if output.status.success() {
            Ok(Some(output.stdout))
        } else {
            Err(Failure::new(format!("git cannot read object {id}: {}", said(&output))))
        }
    }

    /// Returns the type of the object that `id` (a full object id) is, or leads to if it is a tag.
    pub fn kind(&self, id: &str) -> Result<String> {
        let kind = ok(self.run(&["cat-file", "-t", &format!("{id}^{{}}")], None)?)?;
        Ok(kind.trim_end().to_owned())
    }

    /// Returns whether this is a partial clone: some objects are fetched when they are needed only.
    pub fn is_partial(&self) -> Result<bool> {
        Ok(self.settings()?.iter().any(|one| {
            one.key == "extensions.partialclone" || (one.key.starts_with("remote.") && one.key.ends_with(".promisor"))
        }))
    }
}

fn ask(git: &mut Conversation, kind: &str, id: &str) -> std::io::Result<Option<Vec<u8>>> {
    let answer = git.ask(id)?;
    let mut words = answer.split(' ').skip(1);
    let (found, size) = (words.next(), words.next());
    let Some(size) = size.and_then(|size| size.parse().ok()) else {
        return Ok(None);
    };
    let bytes = git.read(size)?;
    git.read(1)?;
    Ok(Some(bytes).filter(|_| found == Some(kind)))
}
