//! `unknown-target`: a template, a variable or a build decides which directory an object deploys, so the check could
//! not look at it.

use super::Context;
use crate::message::failure::Failure;
use crate::message::finding::{Common, Finding, Rule};
use crate::message::position::Position;

/// Finds the targets whose directory is unknown, and the templates that may define more targets.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let unknown = context.deployed.unknown_targets();
    let findings = unknown.map(|(target, why)| {
        // A build may settle it, unless this check has built already.
        let (all, hint) = if target.changed_by.is_some() && context.input.build.is_none() {
            (
                "may be changed by a build before they are deployed, and nothing was built",
                "build it: git kustomize-localize check --build",
            )
        } else {
            (
                "are unknown: the files do not tell what they deploy",
                "write it out, or allow it: # kustomize-localize: allow[unknown-target] REASON",
            )
        };
        let by = target.by();
        let failure = Failure::new(format!("cannot tell what {by} deploys: {why}")).hint(hint);
        let common = Some(Common { all, each: format!("{by}: {why}") });
        Finding { common, ..context.at_target(Rule::UnknownTarget, target, failure) }
    });
    findings.chain(templates(context)).collect()
}

/// The findings for templates of deployed charts that helm could render to targets, and that it has not rendered.
fn templates<'c>(context: &'c Context<'_>) -> impl Iterator<Item = Finding> + 'c {
    // Without helm, `invalid-target` reports these templates.
    let templates = context.deployed.unread().filter(|_| context.config.helm);
    templates.filter_map(|unread| {
        let by = context.deployed.renderer(unread)?.by();
        let failure = match context.input.build {
            None => Failure::new(format!("cannot tell what the objects of this template deploy: {by} renders it"))
                .hint("build it: git kustomize-localize check --build"),
            Some(_) => Failure::new(format!("cannot tell what its objects deploy: {}", unread.message))
                .hint("list what they deploy in `targets` of .kustomize-localize, and the chart in `exclude`"),
        };
        let position = Position::new(unread.line.max(1), 1);
        Some(context.at_position(Rule::UnknownTarget, &unread.file, position, failure))
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Scene, flux, source};
    use super::*;
    use crate::message::finding::Severity;

    const APPS: &str = "resources: [apps.yaml, source.yaml]\n";
    const PATH: &str =
        "kind: Component\npatches: [{target: {kind: Kustomization}, patch: '[{op: remove, path: /spec/path}]'}]\n";

    /// Returns what is not known of a target whose objects, in `clusters/prod`, lie beside other files.
    fn unknown(files: &[(&str, &str)]) -> Vec<String> {
        let scene = Scene::default()
            .file("clusters/prod/source.yaml", &source(""))
            .file("clusters/prod/apps.yaml", &flux("./web"))
            .file("web/kustomization.yaml", "resources: []\n")
            .config("repository: [{url: 'https://github.com/acme/fleet'}]\n");
        let scene = files.iter().fold(scene, |scene, (file, text)| scene.file(file, text));
        scene.find(Rule::UnknownTarget).into_iter().map(|finding| finding.message).collect()
    }

    #[test]
    fn what_is_deployed_and_unknown_is_a_rule() {
        let scene = || Scene::default().file("clusters/apps.yaml", &flux("'./${part}'"));
        let one = |scene: Scene| scene.one(Rule::UnknownTarget);
        let found = one(scene());
        assert_eq!(
            found.message,
            "cannot tell what Flux Kustomization apps (clusters/apps.yaml:1) deploys: `./${part}` is substituted elsewhere"
        );
        assert_eq!((found.span.unwrap().start.line, found.severity), (5, Severity::Warning));
        assert!(one(scene().config("rules: {'*': error}\n")).fails());
        let allow = "allow: [{path: clusters/apps.yaml, rules: [unknown-target], reason: two parts}]\n";
        assert!(one(scene().config(allow)).allowed.is_some());
    }

    #[test]
    fn what_a_changed_child_deploys_may_be_changed() {
        let child = flux("./apps").replace("name: apps", "name: child");
        let unknown = |kind: &str| {
            let patch = format!("[{{op: add, path: /spec/x, value: y}}]', target: {{kind: {kind}}}}}]\n");
            let parent = flux("./clusters/staging").replace("name: apps", "name: parent");
            unknown(&[
                ("root.yaml", &format!("{parent}  patches: [{{patch: '{patch}")),
                ("clusters/staging/child.yaml", &child),
                ("apps/kustomization.yaml", "resources: [deeper.yaml]\n"),
                ("apps/deeper.yaml", &flux("./web").replace("name: apps", "name: deeper")),
            ])
        };
        assert_eq!(unknown("HelmRelease"), [""; 0]);
        assert_eq!(
            unknown("Kustomization"),
            [
                "cannot tell what Flux Kustomization deeper (apps/deeper.yaml:1) deploys: Flux Kustomization child (clusters/staging/child.yaml:1) may change it",
                "cannot tell what Flux Kustomization child (clusters/staging/child.yaml:1) deploys: Flux Kustomization parent (root.yaml:1) may change it",
            ]
        );
    }

    #[test]
    fn who_may_change_what_is_deployed_is_named() {
        let own = "clusters/prod/kustomization.yaml";
        let parent = |path: &str, more: &str| flux(path).replace("name: apps", "name: parent") + more;
        let url = "patches: [{target: {kind: GitRepository}, patch: '{kind: X, spec: {url: x}}'}]";
        let elsewhere = source("").replace("acme/fleet", "acme/other");
        let reference = "nameReference: [{kind: ConfigMap, fieldSpecs: [{path: spec/path, kind: Kustomization}]}]\n";
        for (files, expected) in [
            (vec![(own, format!("{APPS}patches: [{{path: p.yaml}}]\n"))], Some(own)),
            // Its source may be changed, too, also if that is not this repository.
            (vec![(own, format!("{APPS}{url}\n"))], Some(own)),
            (vec![(own, format!("{APPS}{url}\n")), ("clusters/prod/source.yaml", elsewhere)], Some(own)),
            (vec![(own, format!("{APPS}components: ['https://github.com/acme/bases//part?ref=v1']\n"))], Some(own)),
            (
                vec![
                    (own, format!("{APPS}components: [part]\n")),
                    ("clusters/prod/part/kustomization.yaml", PATH.to_owned()),
                ],
                Some("clusters/prod/part/kustomization.yaml"),
            ),
            // Configurations of a base beside it count for names in what reads both.
            (
                vec![
                    (own, APPS.to_owned()),
                    ("all/kustomization.yaml", "resources: [../clusters/prod, ../maps]\n".to_owned()),
                    ("maps/kustomization.yaml", "configurations: [c.yaml]\n".to_owned()),
                    ("maps/c.yaml", reference.to_owned()),
                ],
                Some("maps/kustomization.yaml"),
            ),
            // A parent patches what it reads, wherever that is, and by its components.
            (
                vec![
                    (own, APPS.to_owned()),
                    ("root/kustomization.yaml", "resources: [../clusters/prod]\n".to_owned()),
                    (
                        "root.yaml",
                        parent(
                            "./root",
                            "  patches: [{target: {kind: Kustomization}, patch: '{kind: X, spec: {path: x}}'}]\n",
                        ),
                    ),
                ],
                Some("Flux Kustomization parent (root.yaml:1)"),
            ),
            (
                vec![
                    ("part/kustomization.yaml", PATH.to_owned()),
                    ("root.yaml", parent("./clusters/prod", "  components: [../../part]\n")),
                ],
                Some("Flux Kustomization parent (root.yaml:1)"),
            ),
            // Whatever they write.
            (
                vec![(
                    "root.yaml",
                    parent(
                        "./clusters/prod",
                        "  patches: [{patch: '{kind: Kustomization, metadata: {name: x}, spec: {interval: 1h}}'}]\n",
                    ),
                )],
                Some("Flux Kustomization parent (root.yaml:1)"),
            ),
            (
                vec![("root.yaml", parent("./clusters/prod", "  targetNamespace: x\n"))],
                Some("Flux Kustomization parent (root.yaml:1)"),
            ),
            // The object has no variable to fill in.
            (vec![("root.yaml", parent("./clusters/prod", "  postBuild: {substitute: {a: b}}\n"))], None),
            (vec![(own, format!("{APPS}namespace: x\n"))], Some(own)),
            (vec![(own, format!("{APPS}namePrefix: x-\n"))], Some(own)),
            (vec![(own, format!("{APPS}labels: [{{pairs: {{a: b}}}}]\n"))], Some(own)),
            (vec![(own, format!("{APPS}commonAnnotations: {{a: b}}\n"))], Some(own)),
            (vec![(own, format!("{APPS}replacements: [{{path: r.yaml}}]\n"))], Some(own)),
            (vec![(own, format!("{APPS}transformers: [t.yaml]\n"))], Some(own)),
            (
                vec![(own, format!("{APPS}patches: [{{patch: '{{kind: Kustomization, metadata: {{name: x}}}}'}}]\n"))],
                Some(own),
            ),
            (vec![(own, format!("{APPS}patches: [{{target: {{name: x}}, path: p.yaml}}]\n"))], Some(own)),
            (vec![(own, format!("{APPS}patches: [{{target: {{kind: 'Kust.*'}}, path: p.yaml}}]\n"))], Some(own)),
            // What writes into others.
            (
                vec![(
                    own,
                    format!(
                        "{APPS}namespace: ''\nlabels: []\nconfigMapGenerator: [{{name: x}}]\nreplicas: [{{name: x, count: 1}}]\n"
                    ),
                )],
                None,
            ),
            (vec![(own, format!("{APPS}patches: [{{target: {{kind: Deployment}}, path: p.yaml}}]\n"))], None),
            (
                vec![
                    (own, format!("{APPS}patchesStrategicMerge: [d.yaml]\n")),
                    ("clusters/prod/d.yaml", "kind: Deployment\n---\nkind: X\n".to_owned()),
                ],
                None,
            ),
            (vec![("web/kustomization.yaml", "namespace: x\n".to_owned())], None),
        ] {
            let files: Vec<(&str, &str)> = files.iter().map(|(file, text)| (*file, text.as_str())).collect();
            let message = |by: &str| {
                format!(
                    "cannot tell what Flux Kustomization apps (clusters/prod/apps.yaml:1) deploys: {by} may change it"
                )
            };
            assert_eq!(unknown(&files), expected.map(message).into_iter().collect::<Vec<_>>(), "{files:?}");
        }
    }
}
