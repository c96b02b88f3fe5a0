//! The layout of localized files: that of `kustomize localize` wherever it is unambiguous.
//!
//! A remote file becomes `localized-files/HOST/PATH`, a remote root `localized-files/HOST/ORG/REPO/REF/PATH`, beside
//! the kustomization that references it. If different upstreams would get the same path (port, query, letter case, ref
//! `a/b` with path `c` and ref `a` with path `b/c`, a file and a directory), each of them gets a suffix that is made
//! from its identity. The result does not depend on any order.

use std::collections::HashMap;

use crate::graph::{Edge, EdgeId, Graph, Origin, Resolution, RootId};
use crate::record::sha256_hex;
use crate::reference::localized_path;

/// A remote file or repository beside a kustomization.
struct Candidate {
    edge: EdgeId,
    /// The path components below `localized-files`.
    components: Vec<String>,
    /// The components in lower case.
    folded: Vec<String>,
    /// The identity of the content. It is equal for equal content, however the URL is spelled.
    identity: String,
    is_file: bool,
}

/// The path below `localized-files` for each remote reference of a root: the path of the file, or of the top of the
/// repository.
pub(super) fn localized_paths(graph: &Graph, root: RootId) -> HashMap<EdgeId, String> {
    let candidates: Vec<Candidate> = graph.edges_of(root).filter_map(|(id, edge)| candidate(graph, id, edge)).collect();
    let paths = candidates.iter().map(|candidate| {
        let mut components = candidate.components.clone();
        // Different contents that would get the same path get a suffix each. A file keeps its name, because generators
        // take their key from it, so the suffix goes to its first component.
        let part = if candidate.is_file { components.first_mut() } else { components.last_mut() };
        if let Some(part) = part.filter(|_| candidates.iter().any(|other| collide(candidate, other))) {
            *part = format!("{part}-{}", &sha256_hex(candidate.identity.as_bytes())[..8]);
        }
        (candidate.edge, components.join("/"))
    });
    paths.collect()
}

/// The path that a remote reference gets unless another one would get the same. `None` for a local reference.
fn candidate(graph: &Graph, id: EdgeId, edge: &Edge) -> Option<Candidate> {
    let (components, identity, is_file) = match edge.resolution {
        Resolution::Root { id, remote: true } => {
            let repository = graph.sources[graph.roots[id].source].repository.as_ref()?;
            let components =
                localized_path::root_segments(edge.remote.as_ref()?.spec.as_ref()?, repository.version_name());
            (components, format!("{} {}", repository.version_name(), repository.commit), false)
        }
        Resolution::File(file) => match &graph.files[file].origin {
            Origin::Remote(remote) => {
                let shown = remote.url.shown();
                // Scheme and host are the same in any letter case.
                let address = url::Url::parse(&shown).map_or(shown, String::from);
                (localized_path::file_segments(remote.url.exposed()), format!("{address} {}", remote.sha256), true)
            }
            Origin::Tree { .. } | Origin::Archive { .. } => return None,
        },
        // A local root, or nothing that is laid out.
        _ => return None,
    };
    // Some file systems ignore letter case.
    let folded = components.iter().map(|part| part.to_lowercase()).collect();
    Some(Candidate { edge: id, components, folded, identity, is_file })
}

/// Whether two different candidates would get the same path.
fn collide(left: &Candidate, right: &Candidate) -> bool {
    let (a, b) = (&left.folded, &right.folded);
    if a == b {
        return left.identity != right.identity || left.components != right.components || left.is_file != right.is_file;
    }
    // If one path is inside the other, a file is where a directory is needed, or two trees may overlap.
    a.starts_with(b) || b.starts_with(a)
}
