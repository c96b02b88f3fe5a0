//! The proof that a result holds together, before anything of it is written.

use std::collections::HashSet;
use std::rc::Rc;

use super::{Localized, left};
use crate::config::Config;
use crate::graph::{self, Place, Source, Start, Target};
use crate::kustomization::Accepts;
use crate::message::failure::{Failure, Failures};
use crate::message::redact;
use crate::record::{Left, LoadRestrictor};
use crate::tree::memory::MemoryTree;
use crate::tree::path;

/// Walks the result again, with no network: every reference must lead to something in it. Returns what stays
/// remote.
pub(super) fn assert_whole(
    localized: &Localized,
    load_restrictor: LoadRestrictor,
    leave: Option<&Config>,
    ignores_comments: bool,
    kept: &HashSet<String>,
) -> Result<Vec<Left>, Failures> {
    let mut tree = MemoryTree::default();
    for (place, file) in &localized.files {
        tree.file(place, file.content.bytes(), file.executable);
    }
    let start = Start {
        source: Source { tree: Rc::new(tree), scope: String::new(), repository: None },
        directory: localized.target.clone(),
    };
    let leave_missing = |path: &str| kept.contains(path);
    let options = graph::Options {
        load_restrictor,
        leave_missing: Some(&leave_missing),
        leave,
        ignores_comments,
        ..graph::Options::default()
    };
    let graph = graph::walk(start, None, &options).map_err(|failures| {
        let hint = "this is a defect of git-kustomize-localize: please report it with the kustomization";
        Failures(
            failures
                .0
                .into_iter()
                .map(|failure| failure.context("the result does not hold together").hint(hint))
                .collect(),
        )
    })?;
    // Charts of repositories that are not there stay remote, and are reported.
    for chart in graph.named_charts() {
        let is_kept = match (&chart.place, chart.repo) {
            (Place::There(_), _) | (_, Some(_)) => true,
            (Place::Missing(path), None) => kept.contains(path),
            (Place::Submodule(_) | Place::Outside, None) => false,
        };
        if !is_kept {
            return Err(Failure::new(format!("the result does not hold the chart `{}`", chart.name))
                .at(graph.note_location(chart.note))
                .hint("this is a defect of git-kustomize-localize: please report it with the kustomization")
                .into());
        }
    }
    for (id, root) in graph.roots.iter().enumerate() {
        for (index, edge) in root.edges.iter().enumerate() {
            let text = &edge.reference.text;
            let is_left = graph.left.contains(&(id, index));
            let is_kept = edge.reference.accepts == Accepts::Plugin
                && path::resolve(&root.directory, text).is_some_and(|path| kept.contains(&path));
            if edge.target == Target::Remote && !is_left && !is_kept {
                let text = redact::url(text);
                return Err(Failure::new(format!("the result still names `{text}`"))
                    .at(graph.location(edge.from, &edge.reference))
                    .into());
            }
        }
    }
    let brought = |path: &str| localized.files.get(path)?.remote.clone();
    Ok(left::left(&graph, leave, &brought))
}
