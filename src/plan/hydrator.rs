//! Renders `hydrator.metadata`, which names the source commit of a branch for GitOps Promoter.
//!
//! Its content depends only on the source commit and the lock, so that localizing again writes the same bytes. It lacks
//! the URL of the repository, which differs between clones.

use std::collections::BTreeSet;

use gix::objs::CommitRef;
use serde_json::json;

use super::ResultFile;
use crate::git::{CommitId, object_id};
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::record::{Digest, Lock};
use crate::workspace::{Files, Workspace};

/// The name of the file, at the top of the repository.
pub(crate) const NAME: &str = "hydrator.metadata";

/// The change that writes `hydrator.metadata`, as an entry of [`super::Changes`]. `None` if the configuration does not
/// ask for the file, or if no commit is localized. `lock` is the lock of the result.
pub(crate) fn change(workspace: &Workspace, lock: &Lock) -> Result<Option<(String, Option<ResultFile>)>> {
    let Files::Commit { repo, id, .. } = &workspace.files else {
        return Ok(None);
    };
    if !workspace.config.hydrator_metadata {
        return Ok(None);
    }
    let raw = repo.object("commit", &id.commit)?;
    let raw = raw.ok_or_else(|| Failure::new(format!("commit {} cannot be read", id.commit)))?;
    let bytes = rendered(&raw, id, lock)?;
    Ok(Some((NAME.to_owned(), Some(ResultFile::plain(bytes)))))
}

/// The text of the file for a commit with the bytes `raw`.
fn rendered(raw: &[u8], id: &CommitId, lock: &Lock) -> Result<Vec<u8>> {
    let hash = object_id(&id.commit)?.kind();
    let unreadable = format!("commit {} cannot be read", id.commit);
    let commit = CommitRef::from_bytes(raw, hash).map_err(|error| Failure::new(format!("{unreadable}: {error}")))?;
    let author = commit.author().map_err(|error| Failure::new(format!("{unreadable}: {error}")))?;
    let message = commit.message();
    let date = author.time().ok().and_then(|time| {
        // Null if it is malformed, or if its year does not have four digits: that is not a date of RFC 3339, and would
        // make the whole file unreadable. The last day of 9999 is left out, because a time zone may put it into the
        // next year.
        let has_four_digits = (-62_135_596_800..253_402_214_400).contains(&time.seconds);
        let format = gix::date::time::format::ISO8601_STRICT;
        has_four_digits.then(|| time.format(format).ok()).flatten()
    });
    // The format of Argo CD knows commits only, so files, charts and images are omitted.
    let repositories = lock.remotes.iter().filter_map(|(source, pinned)| match &pinned.digest {
        Digest::GitCommit(commit) => Some((source.url(), commit)),
        Digest::GitTree(_) | Digest::Sha256(_) => None,
    });
    // A commit under several refs is listed once.
    let references: BTreeSet<(&str, &String)> = repositories.collect();
    let references = references.iter().map(|(url, commit)| json!({"commit": {"sha": commit, "repoURL": url}}));
    let metadata = json!({
        "drySha": id.commit,
        "author": format!("{} <{}>", printable(author.name.as_ref()), printable(author.email.as_ref())),
        "date": date,
        "subject": text(&message.summary()),
        "body": message.body.map(|body| text(body)).unwrap_or_default(),
        "references": references.collect::<Vec<_>>(),
    });
    let bytes = serde_json::to_vec_pretty(&metadata);
    let mut bytes = bytes.map_err(|error| Failure::new(format!("{unreadable}: {error}")))?;
    bytes.push(b'\n');
    Ok(bytes)
}

/// A part of a commit as text without secrets.
fn text(bytes: &[u8]) -> String {
    redact::text(String::from_utf8_lossy(bytes).trim())
}

/// A name without control characters.
fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|c| !c.is_control()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(author: &str, message: &str) -> String {
        let tree = "1".repeat(40);
        let committer = "C <c@example.com> 1700000000 +0000";
        let raw = format!("tree {tree}\nauthor {author}\ncommitter {committer}\n\n{message}");
        let id = CommitId { commit: "a".repeat(40), tree };
        String::from_utf8(rendered(raw.as_bytes(), &id, &Lock::default()).unwrap()).unwrap()
    }

    #[test]
    fn whatever_a_commit_holds_it_stays_readable_and_without_secrets() {
        for time in ["99999999999999 +0000", "-99999999999999 +0000"] {
            let text = commit(&format!("J <j@example.com> {time}"), "x");
            let value: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(value["date"], json!(null), "{text}");
            assert_eq!(value["body"], "", "{text}");
        }
        let text = commit("\u{1b}J <j@example.com> 1 +0000", "clone https://u:hunter2@example.com/x \"quoted\"");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(value["author"], "J <j@example.com>");
        assert_eq!(value["subject"], "clone https://example.com/x \"quoted\"");
    }
}
