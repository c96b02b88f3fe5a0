//! Roots that lead back to themselves, or to a directory that contains them.
//!
//! Where a cycle is reported does not depend on where the walk began: at the reference that closes it, seen from its
//! first root.

use crate::check::Context;
use crate::graph::TroubleKind;
use crate::message::finding::{Finding, Rule};

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for trouble in context.troubles {
        if trouble.kind != TroubleKind::Cycle {
            continue;
        }
        let Some((_, edge)) = context.edge_of(trouble) else {
            continue;
        };
        let message = &trouble.failure.message;
        let message = message.strip_prefix("cycle: ").unwrap_or(message);
        let help = "take the reference out, or let it name something else: what both need belongs in a root of its own";
        findings.push(context.at_reference(
            Rule::InvalidKustomization,
            edge,
            message.to_owned(),
            vec![help.to_owned()],
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, under_caret};

    fn scene(roots: &[(&str, &str)]) -> Scene {
        roots.iter().fold(Scene::default(), |scene, (at, names)| {
            let path = crate::tree::path::join(at, "kustomization.yaml");
            scene.file(&path, &format!("namePrefix: a-\nresources: [{names}]\n"))
        })
    }

    fn told(scene: Scene) -> Vec<String> {
        let findings = scene.check().findings;
        assert!(findings.iter().all(|finding| finding.rule == Rule::InvalidKustomization));
        let told = |finding: Finding| format!("{}: {}", finding.path, finding.message);
        findings.into_iter().map(told).collect()
    }

    #[test]
    fn a_cycle_is_reported_once_wherever_the_walk_begins() {
        let roots = [("a", "../c"), ("b", "../c"), ("c", "../b"), ("d", "../b")];
        let expected = ["c/kustomization.yaml: `b` leads back to itself: `b` -> `c` -> `b`".to_owned()];
        assert_eq!(told(scene(&roots)), expected);
        for start in ["a", "b", "c", "d"] {
            let mut scene = scene(&roots);
            scene.paths = vec![start.to_owned()];
            assert_eq!(told(scene), expected, "{start}");
        }
        let finding = &scene(&roots).check().findings[0];
        assert_eq!(under_caret(finding), "../b");
        assert_eq!(finding.span.unwrap().line, 2);
        assert!(finding.fails());
    }

    /// A ring of roots, each of which names the hub as well, and the hub them.
    #[test]
    fn cycles_without_end_take_no_time_without_end() {
        let count = 3_000;
        let mut roots = vec![("hub".to_owned(), String::new())];
        for at in 0..count {
            let next = (at + 1) % count;
            roots[0].1.push_str(&format!("../r{at}, "));
            roots.push((format!("r{at}"), format!("../r{next}, ../hub")));
        }
        let roots: Vec<(&str, &str)> = roots.iter().map(|(at, names)| (at.as_str(), names.as_str())).collect();
        let begin = std::time::Instant::now();
        let findings = scene(&roots).check().findings;
        assert!(findings.len() >= count, "{}", findings.len());
        let longest = findings.iter().map(|finding| finding.message.len()).max();
        assert!(longest < Some(1_000), "{longest:?}");
        // Many times what it takes, so that a busy machine is not taken for an endless loop.
        assert!(begin.elapsed().as_secs() < 200);
    }

    #[test]
    fn a_long_cycle_is_abbreviated() {
        let roots: Vec<(String, String)> =
            (0..100).map(|at| (format!("r{at}"), format!("../r{}", (at + 1) % 100))).collect();
        let roots: Vec<(&str, &str)> = roots.iter().map(|(at, name)| (at.as_str(), name.as_str())).collect();
        let told = told(scene(&roots));
        assert_eq!(told.len(), 1);
        assert!(told[0].contains("`r16` -> 68 more -> `r85` -> "), "{told:?}");
    }

    #[test]
    fn every_cycle_is_reported() {
        assert_eq!(
            told(scene(&[("a", "."), ("b", "../c"), ("c", "../b, ../d"), ("d", "../c, ../e"), ("e", ""),])),
            [
                "a/kustomization.yaml: `a` leads back to itself: `a` -> `a`",
                "c/kustomization.yaml: `b` leads back to itself: `b` -> `c` -> `b`",
                "d/kustomization.yaml: `c` leads back to itself: `c` -> `d` -> `c`",
            ]
        );
    }

    #[test]
    fn a_directory_that_contains_is_one_too() {
        let roots = [("a/b", "../../x"), ("a/c", "../../x"), ("a", ""), ("x", "../a"), ("y", ".")];
        assert_eq!(
            told(scene(&roots)),
            [
                "x/kustomization.yaml: `a/b` leads to a directory that contains it: `a/b` -> `x` -> `a`",
                "y/kustomization.yaml: `y` leads back to itself: `y` -> `y`",
            ]
        );
        // A root on a cycle is reported as part of the cycle.
        assert_eq!(
            told(scene(&[("a", "b"), ("a/b", "..")])),
            ["a/b/kustomization.yaml: `a` leads back to itself: `a` -> `a/b` -> `a`"]
        );
    }

    #[test]
    fn two_ways_to_one_root_are_none() {
        let roots = [("a", "../b, ../c"), ("b", "../d"), ("c", "../d"), ("d", "")];
        assert_eq!(told(scene(&roots)), [""; 0]);
        assert_eq!(told(scene(&[("a", "b"), ("a/b", "")])), [""; 0]);
    }
}
