//! What was localized, as it was before: so that it can be brought in again, from what its ref is now.
//!
//! A reference into localized files becomes the URL again that the lock knows for what it leads to. That is
//! done in an overlay only; on disk a kustomization changes if what it has to say is something else.

use std::collections::{BTreeSet, HashMap};

use super::super::update::reference_to;
use super::write_plan::ours;
use crate::kustomization::{self, Accepts, Edit, FILE_NAMES, Reference};
use crate::message::failure::{Failure, Result};
use crate::plan::{is_remote, value};
use crate::record::{Lock, Remote, StoredFile};
use crate::tree::overlay::OverlayTree;
use crate::tree::{self, Resolved, SharedTree, path};
use crate::workspace::Workspace;

/// Returns the labels of the entries and of all those through which one of them was brought in.
pub(super) fn with_what_names_them(lock: &Lock, labels: &BTreeSet<String>) -> BTreeSet<String> {
    let mut all = labels.clone();
    loop {
        let before = all.len();
        for remote in &lock.remotes {
            if all.contains(&remote.label()) {
                all.extend(remote.through().iter().cloned());
            }
        }
        if all.len() == before {
            return all;
        }
    }
}

/// Puts kustomizations and plugin configurations into `overlay` that name by URL again what they name of
/// the localized files from these remotes. Returns the roots that do, and the files.
pub(super) fn turn_back(
    workspace: &Workspace,
    held: &Lock,
    tree: &SharedTree,
    labels: &BTreeSet<String>,
    overlay: &mut OverlayTree,
) -> Result<(Vec<String>, BTreeSet<String>)> {
    let mut back = TurnBack {
        tree,
        held,
        labels,
        owned: ours(held).map(|file| (file.path.as_str(), file)).collect(),
        changed: HashMap::new(),
    };
    let mut roots = Vec::new();
    for directory in workspace.kustomizations()?.roots() {
        let before = back.changed.len();
        for name in FILE_NAMES {
            back.root(directory, &path::join(directory, name))?;
        }
        if back.changed.len() > before {
            roots.push(directory.to_owned());
        }
    }
    for (place, (bytes, executable)) in &back.changed {
        overlay.file(place, bytes, *executable);
    }
    Ok((roots, back.changed.into_keys().collect()))
}

struct TurnBack<'a> {
    tree: &'a SharedTree,
    held: &'a Lock,
    labels: &'a BTreeSet<String>,
    owned: HashMap<&'a str, &'a StoredFile>,
    changed: HashMap<String, (Vec<u8>, bool)>,
}

impl TurnBack<'_> {
    fn root(&mut self, directory: &str, place: &str) -> Result<()> {
        let Resolved::File { path, executable } = tree::resolve(&**self.tree, place)? else {
            return Ok(());
        };
        let bytes = self.tree.read(&path)?;
        // The walk reports a file that cannot be read.
        let Ok(read) = kustomization::read(&bytes) else {
            return Ok(());
        };
        for reference in &read.references {
            if reference.accepts != Accepts::Plugin {
                continue;
            }
            for (path, executable) in self.configurations(directory, reference)? {
                let bytes = self.tree.read(&path)?;
                if let Ok(plugin) = kustomization::read_plugin(&bytes) {
                    self.file(directory, &path, bytes, executable, &plugin.references)?;
                }
            }
        }
        self.file(directory, &path, bytes, executable, &read.references)
    }

    /// Returns the files of the user that hold the plugin configurations which a reference names: that file, or the
    /// resources of that root.
    fn configurations(&self, directory: &str, reference: &Reference) -> Result<Vec<(String, bool)>> {
        let mut found = Vec::new();
        let mut seen = BTreeSet::new();
        let mut todo: Vec<Resolved> = self.leads(directory, reference)?.into_iter().collect();
        while let Some(resolved) = todo.pop() {
            match resolved {
                Resolved::File { path, executable } => found.push((path, executable)),
                Resolved::Directory { path: directory } if seen.insert(directory.clone()) => {
                    for name in FILE_NAMES {
                        let place = path::join(&directory, name);
                        let Resolved::File { path, .. } = tree::resolve(&**self.tree, &place)? else {
                            continue;
                        };
                        let Ok(read) = kustomization::read(&self.tree.read(&path)?) else {
                            continue;
                        };
                        let resources = read.references.iter();
                        for reference in resources.filter(|one| one.accepts == Accepts::Either) {
                            todo.extend(self.leads(&directory, reference)?);
                        }
                    }
                }
                _ => {}
            }
        }
        found.retain(|(path, _)| !self.owned.contains_key(path.as_str()));
        Ok(found)
    }

    fn file(
        &mut self,
        directory: &str,
        place: &str,
        bytes: Vec<u8>,
        executable: bool,
        references: &[Reference],
    ) -> Result<()> {
        let mut edits = Vec::new();
        for reference in references {
            if let Some(url) = self.url(directory, reference)? {
                let value = Some(value(reference, &url));
                let spot = &reference.spot;
                edits.push(Edit { spot, value });
            }
        }
        if edits.is_empty() {
            return Ok(());
        }
        let bytes = kustomization::edit(&bytes, &edits)
            .map_err(|error| Failure::new(format!("`{place}` cannot be rewritten: {error}")))?;
        self.changed.insert(place.to_owned(), (bytes, executable));
        Ok(())
    }

    /// Returns what is at the end of a local reference.
    fn leads(&self, directory: &str, reference: &Reference) -> Result<Option<Resolved>> {
        let text = reference.text.as_str();
        if text.is_empty() || path::is_absolute(text) || is_remote(reference) {
            return Ok(None);
        }
        match path::resolve(directory, text) {
            Some(place) => tree::resolve(&**self.tree, &place).map(Some),
            None => Ok(None),
        }
    }

    /// Returns the URL of what a reference leads to, if that was brought in from one of the remotes.
    fn url(&self, directory: &str, reference: &Reference) -> Result<Option<String>> {
        let from = |place: &str| {
            let file = self.owned.get(place)?;
            let label = file.remote.as_ref().filter(|label| self.labels.contains(*label))?;
            let mut remotes = self.held.remotes.iter();
            let remote = remotes.find(|remote| remote.label() == *label)?;
            Some((remote, file.source.as_deref()))
        };
        Ok(match self.leads(directory, reference)? {
            Some(Resolved::File { path, .. }) => match from(&path) {
                Some((Remote::File(file), None)) => Some(file.url.clone()),
                _ => None,
            },
            Some(Resolved::Directory { path }) => FILE_NAMES
                .iter()
                .find_map(|name| from(&path::join(&path, name)))
                .and_then(|(remote, source)| match (remote, source) {
                    (Remote::Git(git), Some(source)) => reference_to(git, path::parent(source)),
                    _ => None,
                })
                .map(|(text, _)| text),
            _ => None,
        })
    }
}
