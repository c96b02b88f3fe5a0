//! What was localized, as it was before: a reference into localized files becomes the URL again that the lock knows
//! for what it leads to. That is done in an overlay only.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::kustomization::{Edit, FILE_NAMES, Reference};
use crate::message::failure::Result;
use crate::plan::files::edited;
use crate::plan::is_remote;
use crate::plan::update::spec_of;
use crate::record::{Lock, StoredFile};
use crate::reference::Upstream;
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, path};
use crate::workspace::Workspace;

/// The tree of a workspace in which the user's files name by URL again what was localized of it.
#[derive(Clone)]
pub(crate) struct TurnedBack {
    pub tree: SharedTree,
    /// The directories of the roots that do.
    pub roots: BTreeSet<String>,
    /// The files that do.
    pub files: BTreeSet<String>,
    /// What they say in the tree: the file, the field, and the path.
    pub said: HashSet<(String, String, String)>,
}

impl TurnedBack {
    /// Returns a tree in which nothing was localized.
    pub(super) fn of(tree: SharedTree) -> TurnedBack {
        TurnedBack { tree, roots: BTreeSet::new(), files: BTreeSet::new(), said: HashSet::new() }
    }
}

/// Returns the tree of the workspace in which the user's files name by URL again what was localized of it. Files that are
/// not as the lock says still stand for what it says.
pub(crate) fn turned_back(workspace: &Workspace, held: &Lock) -> Result<TurnedBack> {
    let mut turned = TurnedBack::of(workspace.tree.clone());
    let owned: HashMap<&str, &StoredFile> = super::ours(held).map(|file| (file.path.as_str(), file)).collect();
    if owned.is_empty() {
        return Ok(turned);
    }
    let roots: Vec<String> = workspace.roots()?.into_iter().map(str::to_owned).collect();
    let graph = workspace.survey().walk(&roots);
    let mut edits: BTreeMap<&str, Vec<Edit<'_>>> = BTreeMap::new();
    for root in graph.roots.iter() {
        for edge in &root.edges {
            let from = graph.user_path(edge.from).filter(|from| !owned.contains_key(from));
            let url = url(held, &owned, &root.directory, &edge.reference);
            let (Some(from), Some(url)) = (from, url) else { continue };
            let edit = Edit { spot: &edge.reference.spot, value: edge.reference.with_path(&url) };
            edits.entry(from).or_default().push(edit);
            turned.roots.insert(root.directory.clone());
            let Reference { field, text, .. } = &*edge.reference;
            turned.said.insert((from.to_owned(), field.clone(), text.clone()));
        }
    }
    let mut overlay = OverlayTree::new(turned.tree.clone());
    for (place, edits) in edits {
        let file = edited(&*turned.tree, place, &edits)?;
        overlay.file(place, &file.bytes, file.executable);
        turned.files.insert(place.to_owned());
    }
    turned.tree = Rc::new(overlay);
    Ok(turned)
}

/// Returns the URL of what a local reference leads to, if that was brought in.
fn url(held: &Lock, owned: &HashMap<&str, &StoredFile>, directory: &str, reference: &Reference) -> Option<String> {
    let text = reference.text.as_str();
    if text.is_empty() || path::is_absolute(text) || is_remote(reference) {
        return None;
    }
    let place = path::resolve(directory, text)?;
    let from = |place: &str| {
        let file = owned.get(place)?;
        let remote = file.remote.as_ref().filter(|remote| held.remotes.contains_key(remote))?;
        Some((remote, file.source.as_deref()))
    };
    if let Some((Upstream::File { url }, None)) = from(&place) {
        return Some(url.clone());
    }
    match FILE_NAMES.iter().find_map(|name| from(&path::join(&place, name)))? {
        (source @ Upstream::Git { .. }, Some(file)) => {
            let upstream = source.at(path::parent(file));
            spec_of(&upstream).map(|_| upstream.to_string())
        }
        _ => None,
    }
}
