//! Sorts the troubles of a walk: those of something remote, and those of the user's files.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::graph::{self, At, Explored, Graph, Remotes, Survey, Trouble, TroubleKind};
use crate::kustomization::ProblemKind;
use crate::message::failure::Failure;
use crate::record::Lock;

/// The troubles of a walk, by their effect on locking and localizing.
pub(super) struct Troubles {
    /// Something remote could not be fetched, is refused, or has an error inside, or a reference is unsafe.
    pub(super) remote: Vec<Failure>,
    /// Something in the tree itself is wrong. Everything else can still be localized.
    pub(super) local: Vec<Failure>,
    /// Whether a kustomization or plugin configuration of the user could not be read, so that its references are
    /// unknown.
    pub(super) has_unread: bool,
}

impl Troubles {
    /// Sorts the troubles of a walk into remote ones, which stop the work, and local ones. Equal ones are listed once.
    pub(super) fn of(explored: &Explored) -> Troubles {
        let mut seen = BTreeSet::new();
        let mut troubles = Troubles { remote: Vec::new(), local: Vec::new(), has_unread: false };
        for trouble in explored.troubles.iter().filter(|trouble| seen.insert(&trouble.failure)) {
            if is_remote(&explored.graph, trouble) {
                troubles.remote.push(trouble.failure.clone());
            } else {
                troubles.local.push(trouble.failure.clone());
                troubles.has_unread |= trouble.kind.hides_references();
            }
        }
        troubles
    }
}

/// Walks roots for a build, and fetches their upstreams. What `lock` has does not stay remote, as in `branch`. Only the
/// troubles about something remote are kept: kustomize itself reports missing local files.
pub(crate) fn walk_for_build(
    survey: &Survey,
    config: &Config,
    lock: Option<&Lock>,
    starts: &[String],
    remotes: &mut dyn Remotes,
) -> Explored {
    let policy = graph::WalkPolicy {
        load_restrictor: config.load_restrictor,
        config: Some(config),
        lock,
        ..graph::WalkPolicy::default()
    };
    let mut explored = survey.explore(starts, Some(remotes), &policy);
    explored.troubles.retain(|trouble| is_remote(&explored.graph, trouble));
    explored
}

/// Whether a trouble is about something remote: a reference to it, or its content. A reference of a user's root counts
/// as the user's wherever it is written, because a plugin configuration may be fetched from a URL.
pub(super) fn is_remote(graph: &Graph, trouble: &Trouble) -> bool {
    // An unsafe reference stops everything.
    if matches!(trouble.kind, TroubleKind::Unsafe | TroubleKind::Problem(ProblemKind::Option)) {
        return true;
    }
    let Some(root) = graph.root_at(trouble.at) else {
        return graph.file_at(trouble.at).is_some_and(|file| graph.is_fetched(file));
    };
    let names_remote = matches!(trouble.at, At::Edge(edge) if graph[edge].remote.is_some());
    graph.sources[graph.roots[root].source].repository.is_some()
        || matches!(trouble.kind, TroubleKind::Chart | TroubleKind::Schema { .. } | TroubleKind::Distrusted(_))
        || names_remote
}
