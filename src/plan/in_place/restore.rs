//! Restores localized files that were edited or deleted, to the contents that the lock lists: from the index, from
//! HEAD, or from where they came from. A file counts only if it has the digest in the lock.

use std::collections::{BTreeMap, BTreeSet};

use super::super::update::wanted;
use crate::graph::{Found, Remotes};
use crate::kustomization::{self, Edit, GeneratorKey, Reference};
use crate::message::failure::Result;
use crate::plan::GITATTRIBUTES;
use crate::record::{Lock, Remote, StoredFile, sha256_hex};
use crate::tree::index::IndexTree;
use crate::tree::objects::{ObjectTree, object_id};
use crate::tree::{self, Resolved, Tree, path};
use crate::workspace::Workspace;

/// Localized files that differ from the lock, and what happened to them.
#[derive(Default)]
pub(super) struct Restored {
    /// What they were, by path.
    pub(super) files: BTreeMap<String, (Vec<u8>, bool)>,
    /// Those that could not be found anywhere.
    pub(super) lost: BTreeSet<String>,
}

/// Restores these files to the contents that the lock lists.
pub(super) fn restore(
    workspace: &Workspace,
    held: &Lock,
    edited: &[&StoredFile],
    remotes: &mut dyn Remotes,
) -> Result<Restored> {
    let mut restored = Restored::default();
    if edited.is_empty() {
        return Ok(restored);
    }
    let mut places: Vec<Box<dyn Tree>> = Vec::new();
    if let Some(repo) = workspace.repo() {
        places.push(Box::new(IndexTree::open(repo.clone())?));
        if let Some(head) = repo.commit("HEAD")? {
            let tree = object_id(&head.tree)?;
            places.push(Box::new(ObjectTree::of_here(repo.clone(), tree)?));
        }
    }
    let mut upstream = Upstream { held, remotes, found: BTreeMap::new() };
    for file in edited {
        let is_it = |bytes: &Vec<u8>| sha256_hex(bytes) == file.sha256;
        let bytes = places
            .iter()
            .find_map(|tree| tree.read(&file.path).ok().filter(is_it))
            .or_else(|| Some(GITATTRIBUTES.as_bytes().to_vec()).filter(is_it))
            .or_else(|| upstream.file(file).filter(is_it));
        match bytes {
            Some(bytes) => {
                let restored_file = (bytes, file.executable);
                restored.files.insert(file.path.clone(), restored_file);
            }
            None => {
                restored.lost.insert(file.path.clone());
            }
        }
    }
    Ok(restored)
}

/// Where localized files came from.
struct Upstream<'a> {
    held: &'a Lock,
    remotes: &'a mut dyn Remotes,
    found: BTreeMap<String, Option<Found>>,
}

impl Upstream<'_> {
    fn file(&mut self, file: &StoredFile) -> Option<Vec<u8>> {
        let label = file.remote.as_ref()?;
        let remote = self.held.remotes.iter().find(|remote| remote.label() == *label)?;
        let bytes = match (self.found(remote)?, &file.source) {
            (Found::File(file), None) => file.bytes.to_vec(),
            // A licence may be a link, and is what that leads to.
            (Found::Root(repository), Some(source)) => match tree::resolve(&*repository.tree, source).ok()? {
                Resolved::File { path, .. } => repository.tree.read(&path).ok()?,
                _ => return None,
            },
            _ => return None,
        };
        rewritten(bytes, file)
    }

    fn found(&mut self, remote: &Remote) -> Option<Found> {
        let label = remote.label();
        if !self.found.contains_key(&label) {
            // A chart that was brought in is a file of the user like any other.
            let wanted = wanted(remote)?;
            let answer = self.remotes.resolve(&[wanted]).pop();
            self.found.insert(label.clone(), answer.and_then(Result::ok));
        }
        self.found.get(&label).cloned().flatten()
    }
}

/// Does to an upstream file what localizing did to it.
fn rewritten(bytes: Vec<u8>, file: &StoredFile) -> Option<Vec<u8>> {
    if file.rewritten.is_empty() {
        return Some(bytes);
    }
    let references = match kustomization::read(&bytes) {
        Ok(read) => read.references,
        Err(_) => kustomization::read_plugin(&bytes).ok()?.references,
    };
    let directory = path::parent(file.source.as_deref().unwrap_or_default());
    let edits: Vec<Edit<'_>> = references
        .iter()
        .filter_map(|reference| {
            let (now, _) = file.rewritten.iter().find(|(_, before)| is_same(reference, before, directory))?;
            Some(Edit { spot: &reference.spot, value: Some(now.clone()) })
        })
        .collect();
    kustomization::edit(&bytes, &edits).ok()
}

/// Returns whether a reference is the one that the lock writes as `before`: so, or as another text for the
/// same place.
fn is_same(reference: &Reference, before: &str, directory: &str) -> bool {
    let whole = match &reference.key {
        Some(GeneratorKey::Explicit(key)) => format!("{key}={}", reference.text),
        _ => reference.text.clone(),
    };
    let place = |text: &str| path::resolve(directory, text);
    whole == before || (!before.contains("://") && place(&whole) == place(before))
}
