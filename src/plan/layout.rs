//! Where everything goes: the layout of `kustomize localize` wherever it is unambiguous.
//!
//! A remote file lands in `localized-files/HOST/PATH` and a remote root in
//! `localized-files/HOST/ORG/REPO/REF/PATH`, beside the kustomization that names it. Where two
//! different things would meet on one path (port, query, letter case, ref `a/b` with path `c` and
//! ref `a` with path `b/c`, a file where another needs a directory), all of them get a suffix that
//! is made from what they are. The outcome does not depend on any order.

use std::collections::HashMap;

use crate::graph::{Edge, Graph, Origin, RootId, Target};
use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::record::sha256_hex;
use crate::reference::{RepoSpec, localized_path};

/// One remote thing beside a kustomization.
struct Candidate {
    edge: usize,
    /// Path components below `localized-files`.
    place: Vec<String>,
    /// What it is: equal for equal things, however they are spelled.
    identity: String,
    is_file: bool,
}

/// Names what one root brings in: for each remote edge the path below its `localized-files`, that
/// of the file, or that of the repository's top.
pub(super) fn names(graph: &Graph, root: RootId) -> Result<HashMap<usize, String>> {
    let mut candidates = Vec::new();
    for (index, edge) in graph.roots[root].edges.iter().enumerate() {
        if let Some(candidate) = candidate(graph, index, edge)? {
            candidates.push(candidate);
        }
    }
    let folded: Vec<Vec<String>> =
        candidates.iter().map(|one| one.place.iter().map(|part| part.to_lowercase()).collect()).collect();
    let all = || candidates.iter().zip(&folded);
    let ambiguous: Vec<bool> = all().map(|one| all().any(|other| meet(one, other))).collect();
    Ok(candidates
        .into_iter()
        .zip(ambiguous)
        .map(|(mut one, ambiguous)| {
            if ambiguous {
                let suffix = &sha256_hex(one.identity.as_bytes())[..8];
                // A file keeps its name: generators take their key from it.
                let part = if one.is_file { one.place.first_mut() } else { one.place.last_mut() };
                if let Some(part) = part {
                    part.push('-');
                    part.push_str(suffix);
                }
            }
            (one.edge, one.place.join("/"))
        })
        .collect())
}

fn candidate(graph: &Graph, index: usize, edge: &Edge) -> Result<Option<Candidate>> {
    Ok(match edge.target {
        Target::Root { id, remote: true } => {
            let repository = graph.sources[graph.roots[id].source]
                .repository
                .as_ref()
                .ok_or_else(|| Failure::new("a remote root without a repository"))?;
            let spec = RepoSpec::parse(&edge.reference.text)
                .map_err(|reason| Failure::new(format!("`{}`: {reason}", redact::url(&edge.reference.text))))?;
            Some(Candidate {
                edge: index,
                place: localized_path::root_place(&spec, repository.version_name()),
                identity: format!("{} {}", repository.version_name(), repository.commit),
                is_file: false,
            })
        }
        Target::File(file) => match &graph.files[file].origin {
            Origin::Remote(remote) => {
                let shown = remote.url.shown();
                // The letter case of scheme and host makes no difference.
                let address = url::Url::parse(&shown).map_or(shown, String::from);
                Some(Candidate {
                    edge: index,
                    place: localized_path::file_place(remote.url.exposed()),
                    identity: format!("{address} {}", remote.sha256),
                    is_file: true,
                })
            }
            Origin::Tree { .. } | Origin::Archive { .. } => None,
        },
        _ => None,
    })
}

/// Returns whether two things that are not the same would meet on one path. Each comes with its place
/// in lower case.
fn meet((one, a): (&Candidate, &Vec<String>), (other, b): (&Candidate, &Vec<String>)) -> bool {
    if a == b {
        return one.identity != other.identity || one.place != other.place || one.is_file != other.is_file;
    }
    // One inside the other: a file where a directory is needed, or two trees that may overlap.
    a.starts_with(b) || b.starts_with(a)
}
