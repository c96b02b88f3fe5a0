//! `hydrator.metadata`: which commit a branch was made from, in the form that GitOps Promoter reads.
//!
//! What it holds depends on the source commit and the lock alone, so that localizing again writes the same bytes. The
//! URL of the repository is not among it: clones name it differently.

use std::collections::BTreeSet;

use gix::objs::CommitRef;
use serde::Serialize;

use super::File;
use crate::git::{CommitId, LocalRepo};
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::record::{Lock, Remote};
use crate::tree::git::object_id;
use crate::workspace::{Files, Workspace};

/// The name of the file, at the top of the repository.
pub(crate) const NAME: &str = "hydrator.metadata";

/// The fields of the file, in the order in which GitOps Promoter documents them.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    dry_sha: &'a str,
    author: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<String>,
    subject: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    body: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    references: Vec<Reference<'a>>,
}

#[derive(Debug, Serialize)]
struct Reference<'a> {
    commit: Upstream<'a>,
}

/// A commit of another repository.
#[derive(Debug, Serialize)]
struct Upstream<'a> {
    sha: &'a str,
    #[serde(rename = "repoURL")]
    url: &'a str,
}

/// Returns what writes the file; none where the configuration does not ask for it, or what is localized is no commit.
/// `lock` is the lock of the result.
pub(super) fn change(workspace: &Workspace, lock: &Lock) -> Result<Option<(String, Option<File>)>> {
    let Files::Commit { repo, id, .. } = &workspace.files else {
        return Ok(None);
    };
    if !workspace.config.hydrator_metadata {
        return Ok(None);
    }
    let bytes = rendered(&raw(repo, id)?, id, lock)?;
    Ok(Some((NAME.to_owned(), Some(File::plain(bytes)))))
}

fn raw(repo: &LocalRepo, id: &CommitId) -> Result<Vec<u8>> {
    let commit = repo.object("commit", &id.commit)?;
    commit.ok_or_else(|| Failure::new(format!("commit {} cannot be read", id.commit)))
}

/// Returns the text of the file for a commit, of which `raw` are the bytes.
fn rendered(raw: &[u8], id: &CommitId, lock: &Lock) -> Result<Vec<u8>> {
    let hash = object_id(&id.commit)?.kind();
    let unreadable =
        |error: &dyn std::fmt::Display| Failure::new(format!("commit {} cannot be read: {error}", id.commit));
    let commit = CommitRef::from_bytes(raw, hash).map_err(|error| unreadable(&error))?;
    let author = commit.author().map_err(|error| unreadable(&error))?;
    let message = commit.message();
    let text = |text: &[u8]| redact::text(String::from_utf8_lossy(text).trim());
    let date = author.time().ok().and_then(|time| {
        // Others would not be a date of RFC 3339, and with it the whole file unreadable.
        let has_four_digits = (-62_135_596_800..253_402_214_400).contains(&time.seconds);
        let format = gix::date::time::format::ISO8601_STRICT;
        has_four_digits.then(|| time.format(format).ok()).flatten()
    });
    let metadata = Metadata {
        dry_sha: &id.commit,
        author: format!("{} <{}>", printable(author.name.as_ref()), printable(author.email.as_ref())),
        date,
        subject: text(&message.summary()),
        body: message.body.map(|body| text(body)).unwrap_or_default(),
        references: references(lock),
    };
    let mut bytes = serde_json::to_vec_pretty(&metadata).map_err(|error| unreadable(&error))?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn printable(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.chars().filter(|c| !c.is_control()).collect()
}

/// Returns the commits of other repositories that the result holds files of, each once, in the order of the lock.
fn references(lock: &Lock) -> Vec<Reference<'_>> {
    let mut seen = BTreeSet::new();
    let remotes = lock.remotes.iter().filter_map(|remote| match remote {
        Remote::Git(git) => Some(Upstream { sha: &git.commit, url: &git.url }),
        Remote::File(_) | Remote::Chart(_) => None,
    });
    remotes.filter(|commit| seen.insert((commit.url, commit.sha))).map(|commit| Reference { commit }).collect()
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
            assert_eq!(value.get("date"), None, "{text}");
            assert_eq!(value.get("body"), None, "{text}");
        }
        let text = commit("\u{1b}J <j@example.com> 1 +0000", "clone https://u:hunter2@example.com/x \"quoted\"");
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(value["author"], "J <j@example.com>");
        assert_eq!(value["subject"], "clone https://example.com/x \"quoted\"");
    }
}
