//! What a walk could not follow: something remote, or something of the user's.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::graph::{self, At, Explored, Graph, Remotes, Survey, Trouble, TroubleKind};
use crate::kustomization::ProblemKind;
use crate::message::failure::Failure;

/// What a walk could not follow, by what it means for a lock and for localizing in place.
pub(super) struct Troubles {
    /// Something remote could not be brought in: nothing can be said about it.
    pub(super) remote: Vec<Failure>,
    /// Something in the tree itself is wrong. Everything else can still be localized.
    pub(super) local: Vec<Failure>,
    /// Whether a kustomization could not be read, so that its references are unknown.
    pub(super) has_unread: bool,
}

impl Troubles {
    /// Sorts out the troubles of a walk.
    pub(super) fn of(explored: &Explored) -> Troubles {
        let mut seen = BTreeSet::new();
        let troubles = explored.troubles.iter().filter(|trouble| seen.insert(&trouble.failure));
        let (remote, local): (Vec<&Trouble>, Vec<&Trouble>) =
            troubles.partition(|trouble| is_remote(&explored.graph, trouble));
        let has_unread = local.iter().any(|trouble| trouble.kind.hides_references());
        let failures = |troubles: Vec<&Trouble>| troubles.into_iter().map(|one| one.failure.clone()).collect();
        Troubles { remote: failures(remote), local: failures(local), has_unread }
    }
}

/// Walks roots as they are built: what is local and not there is kustomize's to say, everything remote must be there.
pub(crate) fn reached(survey: &Survey, config: &Config, directories: &[String], remotes: &mut dyn Remotes) -> Explored {
    let policy =
        graph::Policy { load_restrictor: config.load_restrictor, leave: Some(config), ..graph::Policy::default() };
    let mut explored = survey.explore(directories, Some(remotes), &policy);
    explored.troubles.retain(|trouble| is_remote(&explored.graph, trouble));
    explored
}

/// Returns whether a trouble is about something remote: a reference that names it, or what it holds. What a root of the
/// user's tree names there is the user's, wherever the reference stands: a plugin configuration may be fetched from a
/// URL.
pub(super) fn is_remote(graph: &Graph, trouble: &Trouble) -> bool {
    // What is unsafe stops everything.
    if matches!(trouble.kind, TroubleKind::Unsafe | TroubleKind::Problem(ProblemKind::Option)) {
        return true;
    }
    let Some(root) = graph.root_at(trouble.at) else {
        return graph.file_at(trouble.at).is_some_and(|file| graph.is_fetched(file));
    };
    let names_remote = match trouble.at {
        At::Edge(edge) => super::is_remote(&graph[edge].reference),
        _ => false,
    };
    graph.sources[graph.roots[root].source].repository.is_some()
        || matches!(trouble.kind, TroubleKind::Chart | TroubleKind::Schema { .. } | TroubleKind::Distrusted(_))
        || names_remote
}
