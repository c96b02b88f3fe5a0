//! Where everything goes: the layout of `kustomize localize` wherever it is unambiguous.
//!
//! A remote file lands in `localized-files/HOST/PATH` and a remote root in
//! `localized-files/HOST/ORG/REPO/REF/PATH`, beside the kustomization that names it. Where two
//! different things would meet on one path (port, query, letter case, ref `a/b` with path `c` and
//! ref `a` with path `b/c`, a file where another needs a directory), all of them get a suffix that
//! is made from what they are. The outcome does not depend on any order.

use std::collections::HashMap;

use crate::graph::{Edge, EdgeId, Graph, Origin, RootId, Target};
use crate::record::sha256_hex;
use crate::reference::localized_path;

/// One remote thing beside a kustomization.
struct Candidate {
    edge: EdgeId,
    /// Path components below `localized-files`.
    place: Vec<String>,
    /// The same in lower case.
    folded: Vec<String>,
    /// What it is: equal for equal things, however they are spelled.
    identity: String,
    is_file: bool,
}

/// Names what one root brings in: for each remote edge the path below its `localized-files`, that
/// of the file, or that of the repository's top.
pub(super) fn names(graph: &Graph, root: RootId) -> HashMap<EdgeId, String> {
    let candidates: Vec<Candidate> = graph.edges_of(root).filter_map(|(id, edge)| candidate(graph, id, edge)).collect();
    let name = |one: &Candidate| {
        let mut place = one.place.clone();
        // A file keeps its name: generators take their key from it.
        let part = if one.is_file { place.first_mut() } else { place.last_mut() };
        if let Some(part) = part.filter(|_| candidates.iter().any(|other| meet(one, other))) {
            *part = format!("{part}-{}", &sha256_hex(one.identity.as_bytes())[..8]);
        }
        (one.edge, place.join("/"))
    };
    candidates.iter().map(name).collect()
}

fn candidate(graph: &Graph, id: EdgeId, edge: &Edge) -> Option<Candidate> {
    let (place, identity, is_file) = match edge.target {
        Target::Root { id, remote: true } => {
            let repository = graph.sources[graph.roots[id].source].repository.as_ref()?;
            let place = localized_path::root_segments(edge.remote.as_ref()?.spec.as_ref()?, repository.version_name());
            (place, format!("{} {}", repository.version_name(), repository.commit), false)
        }
        Target::File(file) => match &graph.files[file].origin {
            Origin::Remote(remote) => {
                let shown = remote.url.shown();
                // The letter case of scheme and host makes no difference.
                let address = url::Url::parse(&shown).map_or(shown, String::from);
                (localized_path::file_segments(remote.url.exposed()), format!("{address} {}", remote.sha256), true)
            }
            Origin::Tree { .. } | Origin::Archive { .. } => return None,
        },
        _ => return None,
    };
    let folded = place.iter().map(|part| part.to_lowercase()).collect();
    Some(Candidate { edge: id, place, folded, identity, is_file })
}

/// Returns whether two things that are not the same would meet on one path.
fn meet(one: &Candidate, other: &Candidate) -> bool {
    let (a, b) = (&one.folded, &other.folded);
    if a == b {
        return one.identity != other.identity || one.place != other.place || one.is_file != other.is_file;
    }
    // One inside the other: a file where a directory is needed, or two trees that may overlap.
    a.starts_with(b) || b.starts_with(a)
}
