//! The chain of references by which the user's files lead to a trouble in an upstream.

use std::collections::HashMap;

use super::reach::{Predecessors, predecessors, steps_to};
use super::{At, Edge, FileId, Graph, Trouble, TroubleKind};
use crate::config::Config;
use crate::message::failure::{Failure, FailureKind, Location};
use crate::message::finding::Rule;

/// Fills in `chain` for each trouble inside an upstream, and the exception for the remote reference that has the
/// trouble, or else for the user's reference that leads there.
pub(super) fn add_chains(graph: &Graph, troubles: &mut [Trouble]) {
    let predecessors = upstream_predecessors(graph);
    for trouble in troubles {
        let upstream = graph.file_at(trouble.at).filter(|file| graph.user_path(*file).is_none());
        let chain = upstream.and_then(|file| steps_to(&predecessors, file)).unwrap_or_default();
        trouble.failure.chain = locations(graph, &chain);
        let edge = if let At::Edge(edge) = trouble.at { Some(&graph[edge]) } else { None };
        // An exception covers a reference of an upstream as well as the user's, with which the chain begins.
        let remote = edge.into_iter().chain(chain).find_map(|edge| edge.remote.as_ref());
        if let Some(wanted) = remote.filter(|_| can_stay(trouble)) {
            let exception = Config::exception(Rule::RemoteReference, &wanted.subject(), "");
            trouble.failure.exception = exception.map(Box::new);
            // A trouble of fetching itself has its own kind.
            if trouble.failure.kind == FailureKind::Other {
                trouble.failure.kind = kind_in_upstream(&trouble.kind);
            }
        }
    }
}

/// Whether an exception helps: only if the reference can work where it is deployed.
fn can_stay(trouble: &Trouble) -> bool {
    match trouble.kind {
        // The server may be unreachable only from this machine.
        TroubleKind::Failed => trouble.failure.kind.is_outage(),
        // The exception of a chart is for another rule, and none is offered against `sources`.
        TroubleKind::Chart | TroubleKind::Distrusted(_) | TroubleKind::Unsafe | TroubleKind::Unsupported => false,
        _ => true,
    }
}

/// The kind of failure of content that was fetched.
fn kind_in_upstream(kind: &TroubleKind) -> FailureKind {
    match kind {
        TroubleKind::Missing { .. } | TroubleKind::NoKustomization { .. } => FailureKind::NotInRepository,
        _ => FailureKind::Unusable,
    }
}

impl Graph {
    /// The failure of a file that cannot be read, with its location and the chain of references to it.
    pub(crate) fn unreadable(&self, file: FileId, failure: Failure) -> Failure {
        let chain = steps_to(&upstream_predecessors(self), file).unwrap_or_default();
        Failure { chain: locations(self, &chain), ..failure.at(self.file_location(file)) }
    }
}

/// The locations of the references of a chain.
fn locations(graph: &Graph, chain: &[&Edge]) -> Vec<Location> {
    chain.iter().map(|edge| graph.location(edge)).collect()
}

/// For each file of an upstream the reference that leads to it on a shortest path from the user's files. A message
/// about the file shows this path, because the user can change only its beginning.
fn upstream_predecessors(graph: &Graph) -> Predecessors<FileId, &Edge> {
    // The references to files of upstreams, by the file that has them.
    let mut references: HashMap<FileId, Vec<(&Edge, FileId)>> = HashMap::new();
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        if let Some(to) = graph.resolved_file(edge).filter(|to| graph.user_path(*to).is_none()) {
            references.entry(edge.from).or_default().push((edge, to));
        }
    }
    let starts = graph.file_ids().filter(|file| graph.user_path(*file).is_some());
    predecessors(starts, |file| references.get(&file).into_iter().flatten().copied().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Upstreams, source};
    use super::super::{Survey, WalkPolicy};

    /// The location and chain of each trouble, if `lib` is the only upstream.
    fn troubles(user: &[(&str, &str)], lib: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let mut lib = Upstreams::default().repository("https://h/o/lib", lib);
        let starts = ["".to_owned(), "other".to_owned()];
        let explored = Survey::in_scope(source(user)).explore(&starts, Some(&mut lib), &WalkPolicy::default());
        let shown = |trouble: super::Trouble| {
            let chain = trouble.failure.chain.iter().map(ToString::to_string);
            let location = trouble.failure.location.unwrap_or_default().to_string();
            (location, chain.collect())
        };
        explored.troubles.into_iter().map(shown).collect()
    }

    fn of_lib(location: &str) -> String {
        format!("https://h/o/lib?ref=v1: {location}")
    }

    const OTHER: (&str, &str) = ("other/kustomization.yaml", "namePrefix: a-\n");

    #[test]
    fn trouble_in_an_upstream_has_the_chain_of_references() {
        let troubles = troubles(
            &[
                ("kustomization.yaml", "resources: [base, 'https://h/o/gone?ref=v1']\n"),
                ("base/kustomization.yaml", "resources:\n- https://h/o/lib//a?ref=v1\n"),
                OTHER,
            ],
            &[
                ("a/kustomization.yaml", "resources: [../b]\ngenerators: [gen.yaml]\n"),
                (
                    "a/gen.yaml",
                    "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: a}\nfiles: [missing]\n",
                ),
                ("b/kustomization.yaml", "resources: ['https://h/o/deep?ref=v1']\n"),
            ],
        );
        let user = "base/kustomization.yaml:2:3".to_owned();
        assert!(
            troubles.contains(&(
                of_lib("b/kustomization.yaml:1:13"),
                vec![user.clone(), of_lib("a/kustomization.yaml:1:13")]
            )),
            "{troubles:?}"
        );
        assert!(
            troubles.contains(&(of_lib("a/gen.yaml:4:9"), vec![user, of_lib("a/kustomization.yaml:2:14")])),
            "{troubles:?}"
        );
        assert!(troubles.contains(&("kustomization.yaml:1:19".to_owned(), Vec::new())), "{troubles:?}");
        assert_eq!(troubles.len(), 3, "{troubles:?}");
    }

    #[test]
    fn the_shortest_chain_is_reported() {
        let troubles = troubles(
            &[
                ("kustomization.yaml", "resources: ['https://h/o/lib//long?ref=v1']\n"),
                ("other/kustomization.yaml", "resources: ['https://h/o/lib//base?ref=v1']\n"),
            ],
            &[
                ("long/kustomization.yaml", "resources: [../base]\n"),
                ("base/kustomization.yaml", "resources: [missing.yaml]\n"),
            ],
        );
        let chain = vec!["other/kustomization.yaml:1:13".to_owned()];
        assert_eq!(troubles, [(of_lib("base/kustomization.yaml:1:13"), chain)]);
    }

    #[test]
    fn a_cycle_upstream_ends() {
        let troubles = troubles(
            &[("kustomization.yaml", "resources: ['https://h/o/lib//a?ref=v1']\n"), OTHER],
            &[("a/kustomization.yaml", "resources: [../b]\n"), ("b/kustomization.yaml", "resources: [../a]\n")],
        );
        assert!(!troubles.is_empty());
        assert!(troubles.iter().all(|(_, chain)| !chain.is_empty()), "{troubles:?}");
    }
}
