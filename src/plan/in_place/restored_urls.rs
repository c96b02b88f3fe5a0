//! Restores the URLs of references into localized files, from the lock. Only an overlay is changed.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use crate::graph::Edge;
use crate::kustomization::{Edit, FILE_NAMES, Reference};
use crate::message::failure::Result;
use crate::plan::files::edited;
use crate::plan::update::spec_of;
use crate::record::{Lock, StoredFile};
use crate::reference::Upstream;
use crate::tree::overlay::OverlayTree;
use crate::tree::{SharedTree, path};
use crate::workspace::Workspace;

/// The tree of a workspace with the URLs of localized files restored.
#[derive(Clone)]
pub(crate) struct RestoredUrls {
    pub tree: SharedTree,
    /// The directories of the roots with restored URLs.
    pub roots: BTreeSet<String>,
    /// The files with restored URLs.
    pub files: BTreeSet<String>,
    /// The references that were replaced: the file, the field, and the path that it has in the tree.
    pub references: HashSet<(String, String, String)>,
}

impl RestoredUrls {
    /// A tree in which no URL has to be restored, because nothing was localized.
    pub(super) fn of(tree: SharedTree) -> RestoredUrls {
        RestoredUrls { tree, roots: BTreeSet::new(), files: BTreeSet::new(), references: HashSet::new() }
    }
}

/// The tree of the workspace, in which references into localized files are URLs again. A localized file that was edited
/// still counts as the upstream in the lock.
pub(crate) fn restored(workspace: &Workspace, old_lock: &Lock) -> Result<RestoredUrls> {
    let mut restored_urls = RestoredUrls::of(workspace.tree.clone());
    let owned: HashMap<&str, &StoredFile> = super::ours(old_lock).map(|file| (file.path.as_str(), file)).collect();
    // Nothing was localized yet, which is most often so: no walk is needed.
    if owned.is_empty() {
        return Ok(restored_urls);
    }
    // Every local reference from a user's file to a localized one becomes a URL, if the lock tells its upstream.
    let roots: Vec<String> = workspace.roots()?.into_iter().map(str::to_owned).collect();
    let graph = workspace.survey().walk(&roots);
    let mut edits: BTreeMap<&str, Vec<Edit<'_>>> = BTreeMap::new();
    for root in graph.roots.iter() {
        for edge in &root.edges {
            // A localized file is made again from its upstream, so its own references need no URL.
            let from = graph.user_path(edge.from).filter(|from| !owned.contains_key(from));
            let url = upstream_url(old_lock, &owned, &root.directory, edge);
            let (Some(from), Some(url)) = (from, url) else { continue };
            let edit = Edit { spot: &edge.reference.spot, value: edge.reference.with_path(&url) };
            edits.entry(from).or_default().push(edit);
            restored_urls.roots.insert(root.directory.clone());
            let Reference { field, text, .. } = &*edge.reference;
            restored_urls.references.insert((from.to_owned(), field.clone(), text.clone()));
        }
    }
    // Nothing is written to disk: the overlay lets one pipeline localize again from URLs.
    let mut overlay = OverlayTree::new(restored_urls.tree.clone());
    for (path, edits) in edits {
        let file = edited(&*restored_urls.tree, path, &edits)?;
        overlay.add_file_with_mode(path, &file.bytes, file.executable);
        restored_urls.files.insert(path.to_owned());
    }
    restored_urls.tree = Rc::new(overlay);
    Ok(restored_urls)
}

/// The URL of the upstream from which the file or root of a local reference was localized, by the entries of the old
/// lock: `owned` has the localized files by path. `None` if it was not localized, or if kustomize would parse the URL
/// as another upstream.
fn upstream_url(old_lock: &Lock, owned: &HashMap<&str, &StoredFile>, directory: &str, edge: &Edge) -> Option<String> {
    let text = edge.reference.text.as_str();
    // Localizing writes relative paths only.
    if text.is_empty() || path::is_absolute(text) || edge.remote.is_some() {
        return None;
    }
    let target = path::resolve(directory, text)?;
    // The upstream of a file, and its path there.
    let upstream_of = |path: &str| {
        let file = owned.get(path)?;
        let remote = file.remote.as_ref().filter(|remote| old_lock.remotes.contains_key(remote))?;
        Some((remote, file.source.as_deref()))
    };
    // A file has its whole URL in the lock, a root only that of its repository.
    if let Some((Upstream::File { url }, None)) = upstream_of(&target) {
        return Some(url.clone());
    }
    match FILE_NAMES.iter().find_map(|name| upstream_of(&path::join(&target, name)))? {
        (source @ Upstream::Git { .. }, Some(file)) => {
            let upstream = source.at(path::parent(file));
            spec_of(&upstream).map(|_| upstream.to_string())
        }
        // A localized root comes from a repository. Without the path of its kustomization there, its URL is unknown.
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::tree;
    use crate::record::LOCK_NAME;

    const LOCK: &str = "version: 1
remotes:
- url: https://h/map.yaml
  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  size: 1
files:
- path: localized-files/h/map.yaml
  mode: \"100644\"
  sha256: 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
  remote: https://h/map.yaml
";

    /// The kustomization with its URLs restored.
    fn text(kustomization: &str) -> String {
        let tree = tree(&[
            ("kustomization.yaml", kustomization),
            ("localized-files/h/map.yaml", "kind: ConfigMap\n"),
            (LOCK_NAME, LOCK),
        ]);
        let workspace = Workspace::of_tree(Rc::new(tree)).unwrap();
        let restored_urls = restored(&workspace, workspace.lock.as_deref().unwrap()).unwrap();
        String::from_utf8(restored_urls.tree.read("kustomization.yaml").unwrap().to_vec()).unwrap()
    }

    #[test]
    fn a_path_into_the_localized_files_becomes_its_url() {
        assert_eq!(text("resources: [localized-files/h/map.yaml]\n"), "resources: [https://h/map.yaml]\n");
    }

    #[test]
    fn an_absolute_path_of_that_name_leads_elsewhere() {
        let text_of_user = "resources: [/localized-files/h/map.yaml]\n";
        assert_eq!(text(text_of_user), text_of_user);
    }
}
