//! How the user's files lead to a trouble in an upstream: every reference on the way.

use std::collections::HashMap;

use super::reach::{Ways, way, ways};
use super::{At, Edge, FileId, Graph, Trouble, TroubleKind};
use crate::config::Config;
use crate::message::failure::{Failure, FailureKind, Location};
use crate::message::finding::Rule;

/// Adds to each trouble in an upstream the references that lead to it, and to each that a reference to something remote
/// leads to how that reference can stay. What was not fetched has its own answer.
pub(super) fn tell(graph: &Graph, troubles: &mut [Trouble]) {
    let ways = edges(graph);
    for trouble in troubles {
        let upstream = graph.file_at(trouble.at).filter(|file| !graph.is_start(*file));
        let way = upstream.and_then(|file| way(&ways, file)).unwrap_or_default();
        trouble.failure.chain = locations(graph, &way);
        let can_stay = match trouble.kind {
            // The server may be out of reach for this machine alone.
            TroubleKind::Failed => trouble.failure.kind.is_outage(),
            TroubleKind::Chart | TroubleKind::Distrusted(_) | TroubleKind::Unsafe | TroubleKind::Unsupported => false,
            _ => true,
        };
        let named = match trouble.at {
            At::Edge(edge) => Some(&graph[edge]),
            _ => None,
        };
        let mut remote = named.into_iter().chain(way);
        let remote = remote.find_map(|edge| edge.remote.as_ref());
        if let Some(wanted) = remote.filter(|_| can_stay) {
            let exception = Config::exception(Rule::RemoteReference, &wanted.subject(), "");
            trouble.failure.exception = exception.map(Box::new);
            let is_absent = matches!(trouble.kind, TroubleKind::Missing { .. } | TroubleKind::NoKustomization { .. });
            if trouble.failure.kind == FailureKind::Other {
                let kind = if is_absent { FailureKind::NotInRepository } else { FailureKind::Unusable };
                trouble.failure.kind = kind;
            }
        }
    }
}

impl Graph {
    /// Returns why a file cannot be read, with its place and how the user's files lead to it.
    pub(crate) fn unreadable(&self, file: FileId, failure: Failure) -> Failure {
        let way = way(&edges(self), file).unwrap_or_default();
        Failure { chain: locations(self, &way), ..failure.at(self.place(file)) }
    }
}

fn locations(graph: &Graph, way: &[&Edge]) -> Vec<Location> {
    way.iter().map(|edge| graph.location(edge.from, &edge.reference)).collect()
}

/// Returns the shortest ways from the tree where the walk starts to each file of an upstream.
fn edges(graph: &Graph) -> Ways<FileId, &Edge> {
    let mut from: HashMap<FileId, Vec<(&Edge, FileId)>> = HashMap::new();
    for edge in graph.roots.iter().flat_map(|root| &root.edges) {
        if let Some(to) = graph.led_to(edge).filter(|to| !graph.is_start(*to)) {
            from.entry(edge.from).or_default().push((edge, to));
        }
    }
    let starts = graph.file_ids().filter(|file| graph.is_start(*file));
    ways(starts, |file| from.get(&file).into_iter().flatten().copied().collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Upstreams, source};
    use super::super::{Policy, explore};

    /// Returns each trouble's place and chain, where of all upstreams only `lib` is there.
    fn troubles(user: &[(&str, &str)], lib: &[(&str, &str)]) -> Vec<(String, Vec<String>)> {
        let mut lib = Upstreams::default().repository("https://h/o/lib", lib);
        let starts = ["".to_owned(), "other".to_owned()];
        let explored = explore(source(user), &starts, Some(&mut lib), &Policy::default());
        let shown = |trouble: super::Trouble| {
            let chain = trouble.failure.chain.iter().map(ToString::to_string);
            let place = trouble.failure.location.unwrap_or_default().to_string();
            (place, chain.collect())
        };
        explored.troubles.into_iter().map(shown).collect()
    }

    fn of_lib(place: &str) -> String {
        format!("https://h/o/lib?ref=v1: {place}")
    }

    const OTHER: (&str, &str) = ("other/kustomization.yaml", "namePrefix: a-\n");

    #[test]
    fn trouble_in_an_upstream_has_the_chain_of_references() {
        let found = troubles(
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
            found.contains(&(
                of_lib("b/kustomization.yaml:1:13"),
                vec![user.clone(), of_lib("a/kustomization.yaml:1:13")]
            )),
            "{found:?}"
        );
        assert!(
            found.contains(&(of_lib("a/gen.yaml:4:9"), vec![user, of_lib("a/kustomization.yaml:2:14")])),
            "{found:?}"
        );
        assert!(found.contains(&("kustomization.yaml:1:19".to_owned(), Vec::new())), "{found:?}");
        assert_eq!(found.len(), 3, "{found:?}");
    }

    #[test]
    fn the_shortest_chain_is_reported() {
        let found = troubles(
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
        assert_eq!(found, [(of_lib("base/kustomization.yaml:1:13"), chain)]);
    }

    #[test]
    fn a_cycle_upstream_ends() {
        let found = troubles(
            &[("kustomization.yaml", "resources: ['https://h/o/lib//a?ref=v1']\n"), OTHER],
            &[("a/kustomization.yaml", "resources: [../b]\n"), ("b/kustomization.yaml", "resources: [../a]\n")],
        );
        assert!(!found.is_empty());
        assert!(found.iter().all(|(_, chain)| !chain.is_empty()), "{found:?}");
    }
}
