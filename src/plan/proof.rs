//! Proves that a result is complete before any of it is written.

use super::files::LocalizedRoots;
use crate::graph::{Explored, Graph, Resolution};
use crate::kustomization::{Accepts, Reference};
use crate::message::failure::{Failure, Failures};
use crate::message::redact;
use crate::tree::path;

/// Checks that each reference in a file of the result leads to something in the tree, unless it stays remote, may be
/// missing, or led to nothing in `before` too. Without `before` the walk `after` may have no trouble at all, because a
/// copy is complete.
pub(super) fn assert_whole(
    before: Option<&Graph>,
    after: &Explored,
    localized: &LocalizedRoots,
) -> Result<(), Failures> {
    let graph = &after.graph;
    // In place the troubles were there before, and are the user's.
    let troubles = after.troubles.iter().filter(|_| before.is_none());
    let mut failures: Vec<Failure> = troubles.map(|trouble| trouble.failure.clone()).collect();
    for (id, edge) in graph.edges() {
        let is_resolved =
            !matches!(edge.resolution, Resolution::Remote | Resolution::Broken) || graph.stays_remote.contains_key(&id);
        // Any other file is the user's and was not changed, so a broken reference in it is not our defect.
        let is_ours = graph.user_path(edge.from).is_some_and(|path| localized.files.contains_key(path));
        if is_resolved || !is_ours {
            continue;
        }
        let (directory, Reference { text, accepts, .. }) = (&graph.roots[id.root].directory, &*edge.reference);
        // kustomize tries a plugin entry as an inline configuration first, so a missing path may be intended.
        let is_allowed = *accepts == Accepts::Plugin
            && path::resolve(directory, text).is_some_and(|path| localized.allowed_missing.contains(&path));
        // A root that did not build before need not build after: the user is told about it by `check`.
        let was_broken = before.is_some_and(|before| has_broken(before, directory, &edge.reference));
        if !is_allowed && !was_broken {
            let failure = Failure::new(format!("`{}` leads nowhere", redact::url(text)));
            failures.push(failure.at(graph.location(edge)));
        }
    }
    // No input may lead here, so the user cannot mend it.
    let defects = failures.into_iter().map(|failure| {
        failure
            .context("the result is inconsistent")
            .hint("this is a defect of git-kustomize-localize: please report it with the kustomization")
    });
    Failures::if_any(defects.collect())
}

/// Whether the root of the user in a directory has a reference that leads to nothing.
fn has_broken(graph: &Graph, directory: &str, reference: &Reference) -> bool {
    let edges = graph.user_root(directory).into_iter().flat_map(|root| &graph.roots[root].edges);
    let mut broken = edges.filter(|edge| edge.resolution == Resolution::Broken).map(|edge| &edge.reference);
    broken.any(|broken| broken.field == reference.field && broken.text == reference.text)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use expect_test::expect;

    use super::*;
    use crate::graph::testing::tree;
    use crate::graph::{Survey, WalkPolicy};
    use crate::plan::files::ResultFile;
    use crate::record::StoredFile;

    const NAME: &str = "kustomization.yaml";

    fn walked(files: &[(&str, &str)]) -> Explored {
        Survey::of(Rc::new(tree(files))).explore(&[String::new()], None, &WalkPolicy::default())
    }

    /// A result that writes these files. The path `intended.yaml` may be missing.
    fn localized(files: &[(&str, &str)]) -> LocalizedRoots {
        let files = files.iter().map(|(path, text)| {
            (path.to_string(), (ResultFile::plain(text.as_bytes().to_vec()), StoredFile::default()))
        });
        LocalizedRoots {
            files: files.collect(),
            allowed_missing: ["intended.yaml".to_owned()].into(),
            ..LocalizedRoots::default()
        }
    }

    /// The failures of a result in place: of a tree whose kustomization has the text `before`, and gets the text
    /// `after`.
    fn in_place(before: &str, after: &str) -> String {
        let changed = [(NAME, after)];
        shown(assert_whole(Some(&walked(&[(NAME, before)]).graph), &walked(&changed), &localized(&changed)))
    }

    fn shown(result: Result<(), Failures>) -> String {
        let failures = result.err().map(|failures| failures.0).unwrap_or_default();
        failures.iter().map(|failure| format!("{failure}\n")).collect()
    }

    #[test]
    fn a_copy_in_which_a_reference_leads_nowhere_is_refused() {
        let files = [(NAME, "resources: [gone.yaml]\n")];
        let failures = shown(assert_whole(None, &walked(&files), &localized(&files)));
        expect![[r#"
            kustomization.yaml:1:13: resources[0]: the result is inconsistent: there is no `gone.yaml`
            kustomization.yaml:1:13: resources[0]: the result is inconsistent: `gone.yaml` leads nowhere
        "#]]
        .assert_eq(&failures);
    }

    #[test]
    fn a_copy_in_which_a_reference_stays_remote_is_refused() {
        let files = [(NAME, "resources: ['https://h/o/a?ref=v1']\n")];
        let failures = shown(assert_whole(None, &walked(&files), &localized(&files)));
        expect![[r#"
            kustomization.yaml:1:13: resources[0]: the result is inconsistent: `https://h/o/a?ref=v1` leads nowhere
        "#]]
        .assert_eq(&failures);
    }

    #[test]
    fn a_missing_plugin_may_be_meant_and_a_missing_resource_is_not() {
        let text = "generators: [intended.yaml, other.yaml]\nresources: [intended.yaml]\n";
        expect![[r#"
            kustomization.yaml:1:29: generators[1]: the result is inconsistent: `other.yaml` leads nowhere
            kustomization.yaml:2:13: resources[0]: the result is inconsistent: `intended.yaml` leads nowhere
        "#]]
        .assert_eq(&in_place("namePrefix: a-\n", text));
    }

    #[test]
    fn a_reference_that_led_nowhere_before_is_the_users() {
        assert_eq!(in_place("resources: [gone.yaml]\n", "resources: [gone.yaml]\nnamePrefix: a-\n"), "");
    }

    #[test]
    fn another_reference_that_led_nowhere_before_excuses_none() {
        expect![[r#"
            kustomization.yaml:1:13: resources[0]: the result is inconsistent: `gone.yaml` leads nowhere
        "#]]
        .assert_eq(&in_place("resources: [other.yaml]\n", "resources: [gone.yaml]\n"));
        expect![[r#"
            kustomization.yaml:1:13: resources[0]: the result is inconsistent: `gone.yaml` leads nowhere
        "#]]
        .assert_eq(&in_place("patches: [{path: gone.yaml}]\n", "resources: [gone.yaml]\n"));
    }

    #[test]
    fn a_reference_that_led_to_a_file_before_must_lead_there() {
        let text = (NAME, "resources: [map.yaml]\n");
        let before = walked(&[text, ("map.yaml", "")]);
        let failures = shown(assert_whole(Some(&before.graph), &walked(&[text]), &localized(&[text])));
        expect![[r#"
            kustomization.yaml:1:13: resources[0]: the result is inconsistent: `map.yaml` leads nowhere
        "#]]
        .assert_eq(&failures);
    }

    #[test]
    fn a_file_that_is_not_written_is_not_judged() {
        let before = walked(&[(NAME, "resources: [map.yaml]\n"), ("map.yaml", "")]);
        let after = walked(&[(NAME, "resources: [gone.yaml]\n")]);
        assert_eq!(shown(assert_whole(Some(&before.graph), &after, &localized(&[]))), "");
    }
}
