//! The proof that a result holds together, before anything of it is written.

use std::collections::HashSet;
use std::rc::Rc;

use super::Localized;
use crate::failure::{Failure, Failures};
use crate::record::LoadRestrictor;
use crate::redact;
use crate::tree::memory::MemoryTree;
use crate::tree::path;
use crate::walk::{self, Place, Source, Start, Target};

/// Walks the result once more, with no network: every reference must lead to something in it.
pub(super) fn prove(
    localized: &Localized,
    load_restrictor: LoadRestrictor,
    kept: &HashSet<String>,
) -> Result<(), Failures> {
    let mut tree = MemoryTree::default();
    for (place, file) in &localized.files {
        tree.file(place, file.content.bytes(), file.executable);
    }
    let start = Start {
        source: Source {
            tree: Rc::new(tree),
            scope: String::new(),
            repository: None,
        },
        directory: localized.target.clone(),
    };
    let leave_missing = |path: &str| kept.contains(path);
    let options = walk::Options {
        load_restrictor,
        leave_missing: Some(&leave_missing),
        ..walk::Options::default()
    };
    let graph = walk::walk(start, None, &options).map_err(|failures| {
        let hint =
            "this is a defect of git-kustomize-localize: please report it with the kustomization";
        Failures(
            failures
                .0
                .into_iter()
                .map(|failure| {
                    failure
                        .context("the result does not hold together")
                        .hint(hint)
                })
                .collect(),
        )
    })?;
    for chart in graph.named_charts()? {
        let wanted = chart.wanted();
        let is_left = match (&chart.place, wanted) {
            (Place::Missing(path), None) => kept.contains(path),
            (_, Some(wanted)) => localized.left.contains(&wanted.label()),
            _ => false,
        };
        if !matches!(chart.place, Place::There(_)) && !is_left {
            return Err(Failure::new(format!(
                "the result does not hold the chart `{}`",
                chart.name
            ))
            .at(graph.note_location(chart.note))
            .hint("this is a defect of git-kustomize-localize: please report it with the kustomization")
            .into());
        }
    }
    for root in &graph.roots {
        for edge in &root.edges {
            let text = &edge.reference.text;
            let left = edge.reference.accepts.is_plugin()
                && path::resolve(&root.directory, text).is_some_and(|path| kept.contains(&path));
            if edge.target == Target::Remote && !left {
                let text = redact::url(text);
                return Err(Failure::new(format!("the result still names `{text}`"))
                    .at(graph.location(edge.from, &edge.reference))
                    .into());
            }
        }
    }
    Ok(())
}
