//! Argo CD builds an application again only if a path in its annotation changes, and the annotation lacks a path that
//! the build reads.

use crate::check::Context;
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule};
use crate::message::position::Position;
use crate::targets::{GENERATE_PATHS, ObjectRef, generate_paths, unwatched};

/// Finds applications whose annotation lacks a path that their build reads.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    context.value_or_failure(find_unwatched(context)).unwrap_or_default()
}

/// Finds the targets whose annotation lacks a path. Fails if the paths that a build reads cannot be determined.
fn find_unwatched(context: &Context<'_>) -> Result<Vec<Finding>> {
    let targets = context.deployed.targets;
    let mut findings = Vec::new();
    let mut values = None;
    for local in context.deployed.local.iter().filter(|local| local.target.manifest.contains(GENERATE_PATHS)) {
        let unwatched = unwatched(context.graph, targets, local.target, local.directory)?;
        // One path shows the problem; the help has the whole annotation.
        let Some(first) = unwatched.first() else { continue };
        let more = match unwatched.len() {
            1 => String::new(),
            count => format!(", and {} more,", count - 1),
        };
        let message = format!("{} reads `{first}`{more} without watching for changes", local.target.by());
        // For all applications at once, and only if one needs it: this walks everything that is deployed.
        if values.is_none() {
            values = Some(generate_paths(context.graph, targets)?);
        }
        let ObjectRef { file, line, .. } = &local.target.object;
        let value = values.as_ref().and_then(|values| values.get(&local.target.object));
        let hint = value.map(|value| format!("write {GENERATE_PATHS}: {value}"));
        let failure = Failure::new(message).hints(hint);
        let finding = context.at_position(Rule::Engine, file, Position::new(*line, 1), failure);
        findings.push(finding.about(local.target.name()).warning());
    }
    Ok(findings)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, argo, source};

    fn found(object: &str) -> Vec<Finding> {
        Scene::default()
            .file("clusters/source.yaml", &source(""))
            .file("clusters/apps.yaml", object)
            .file("apps/web/kustomization.yaml", "resources: [../../base, own.yaml, ../one.yaml]\n")
            .file("apps/web/own.yaml", "")
            .file("apps/one.yaml", "")
            .file("base/kustomization.yaml", "resources: [x.yaml]\n")
            .file("base/x.yaml", "")
            .file("apps/js/x.jsonnet", "{}")
            .config("load-restrictor: none\n")
            .find(Rule::Engine)
    }

    #[test]
    fn what_the_annotation_leaves_out_is_found() {
        let annotated = |paths: &str| {
            argo("path: apps/web")
                .replace("name: web", &format!("name: web, annotations: {{{GENERATE_PATHS}: '{paths}'}}"))
        };
        assert!(annotated("x").contains(GENERATE_PATHS), "{}", annotated("x"));
        let all = "write argocd.argoproj.io/manifest-generate-paths: .;/apps/one.yaml;/base";
        for (paths, left_out) in [
            (".;/apps/one.yaml;/base", None),
            (".;../one.yaml;../../base", None),
            ("/", None),
            (".;/apps/*.yaml;/base/*", None),
            // Every file is enough.
            ("/apps;/base/x.yaml;/base/kustomization.yaml", None),
            ("", None),
            ("{{ .paths }}", None),
            (".", Some("`apps/one.yaml`, and 2 more,")),
            (".;/base", Some("`apps/one.yaml`")),
            // A star stands for no slash, and two are one.
            (".;/apps/*;/b*", Some("`base/kustomization.yaml`, and 1 more,")),
            (".;/apps/one.yaml;/**/x.yaml", Some("`base/kustomization.yaml`")),
            ("/apps/one.yaml;/base", Some("`apps/web/kustomization.yaml`, and 1 more,")),
        ] {
            let findings = found(&annotated(paths));
            let said: Vec<&str> = findings.iter().map(|one| one.message.as_str()).collect();
            match (left_out, &*said) {
                (None, []) => {}
                (Some(what), [message]) => {
                    assert!(message.contains(&format!(" reads {what} without")), "{paths}: {message}");
                    assert_eq!(findings[0].help, [all], "{paths}");
                    assert!(!findings[0].fails());
                }
                _ => panic!("{paths}: {said:?}"),
            }
        }
        assert!(found(&argo("path: apps/web")).is_empty());
        // Jsonnet may import any file.
        assert!(found(&annotated(".").replace("apps/web", "apps/js")).is_empty());
    }
}
