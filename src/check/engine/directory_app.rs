//! Argo CD takes files that localizing made for an application, or for the manifests of one.

use std::collections::BTreeSet;

use crate::check::Context;
use crate::check::deployed::One;
use crate::config::quoted;
use crate::message::failure::Result;
use crate::message::finding::{Finding, Rule};
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::targets::plain::manifests;
use crate::targets::{DirectorySet, Found, exclusion};
use crate::tree::path;

pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let sets = context.deployed.targets.sets.iter();
    // Asked for by the directories that hold the objects only, as long as paths narrow the check.
    let mut sets = sets.filter(|set| context.input.paths.is_empty() && set.revision.is_this).peekable();
    if sets.peek().is_some()
        && let Some(made) = context.looked(made(context))
    {
        findings.extend(sets.filter_map(|set| in_set(context, set, &made)));
    }
    let here = context.deployed.here.iter();
    findings.extend(here.filter_map(|one| context.looked(recursive(context, one))?));
    findings
}

/// Returns the directories that localizing made.
fn made(context: &Context<'_>) -> Result<BTreeSet<String>> {
    let files = context.tree.below("")?;
    let is_made = |directory: &&str| {
        path::components(directory).any(|name| name == LOCALIZED_FILES)
            || context.locks.iter().any(|(copy, _)| copy == directory)
    };
    let directories = path::directories(files.iter().map(String::as_str));
    let made = directories.into_iter().filter(is_made);
    Ok(made.map(str::to_owned).collect())
}

/// Finds what a set makes applications of.
fn in_set(context: &Context<'_>, set: &DirectorySet, made: &BTreeSet<String>) -> Option<Finding> {
    let takes = set.matcher();
    let is_made = |directory: &&str| {
        path::components(directory).any(|name| name == LOCALIZED_FILES)
            || context.locks.iter().any(|(copy, lock)| {
                let target = lock.target.as_deref();
                let from = |place| path::below(place, &set.base);
                let original = target.and_then(&from);
                // A copy is meant to be deployed, but not beside its original.
                from(copy) == Some(*directory) && original.is_some_and(&takes)
            })
    };
    let inside = made.iter().filter_map(|place| path::below(place, &set.base));
    let made: BTreeSet<&str> = inside.filter(|one| takes(one) && is_made(one)).collect();
    let first = made.first()?;
    let more = match made.len() {
        1 => String::new(),
        count => format!(" and of {} more", count - 1),
    };
    let object = &set.object;
    let message = format!("Argo CD {object} makes an application of the localized `{first}`{more}");
    let excluded: BTreeSet<String> = made.iter().map(|place| exclusion(place)).collect();
    let excluded: Vec<String> =
        excluded.iter().map(|path| format!("{{path: {}, exclude: true}}", quoted(path))).collect();
    let help = vec![format!("exclude it in `git.directories`: {}", excluded.join(", "))];
    let spot = (object.line, 1);
    Some(context.at_place(Rule::Engine, &object.file, spot, message, help))
}

/// Finds localized files that an application takes for manifests.
fn recursive(context: &Context<'_>, one: &One<'_>) -> Result<Option<Finding>> {
    let files = manifests(context.tree, one.target, one.here)?.filter(|_| one.target.build.directory.recurse);
    let (Found::Directory(directory), Some(files)) = (&one.here.found, files) else { return Ok(None) };
    let is_made = |file: &&String| {
        let inside = path::below(file, directory).unwrap_or_default();
        path::components(inside).any(|name| name == LOCALIZED_FILES)
    };
    let Some(first) = files.iter().find(is_made) else {
        return Ok(None);
    };
    let message =
        format!("{} applies every manifest below `{directory}`, including the localized `{first}`", one.target.by());
    let help =
        vec![format!("exclude them in `directory`: exclude: '{{{LOCALIZED_FILES}/**,**/{LOCALIZED_FILES}/**}}'")];
    let file = &one.target.object.file;
    Ok(Some(context.at_place(Rule::Engine, file, one.target.spot, message, help)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, argo};

    fn set(patterns: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: apps}}
spec:
  goTemplate: true
  generators:
  - git: {{repoURL: 'https://github.com/acme/fleet', directories: [{patterns}]}}
  template:
    metadata: {{name: x}}
    spec:
      source: {{repoURL: 'https://github.com/acme/fleet', path: '{{{{.path.path}}}}'}}
"
        )
    }

    fn found(text: &str) -> Vec<Finding> {
        let scene = Scene::default()
            .file("argo/x.yaml", text)
            .file("apps/web/kustomization.yaml", "resources: [x.yaml]\n")
            .file("apps/web/x.yaml", "")
            .file("apps/web/localized-files/example.com/pod.yaml", "");
        let findings = scene.check().findings;
        assert!(findings.iter().all(|one| one.rule == Rule::Engine), "{findings:?}");
        findings
    }

    #[test]
    fn what_a_set_takes_is_found() {
        for (patterns, expected) in [
            ("{path: apps/*}", None),
            ("{path: apps/*/*}", Some("`apps/web/localized-files`")),
            ("{path: apps/*/*}, {path: '*/*/localized-files', exclude: true}", None),
            ("{path: '*/*/*/*'}", Some("`apps/web/localized-files/example.com`")),
        ] {
            let findings = found(&set(patterns));
            let expected = expected.map(|place| {
                format!("Argo CD ApplicationSet apps (argo/x.yaml:1) makes an application of the localized {place}")
            });
            let message = findings.first().map(|finding| finding.message.clone());
            assert_eq!(message, expected, "{patterns}");
            if let Some(finding) = findings.first() {
                // The help helps.
                let (_, exclude) = finding.help[0].split_once("`git.directories`: ").unwrap();
                assert!(found(&set(&format!("{patterns}, {exclude}"))).is_empty());
            }
        }
    }

    #[test]
    fn what_is_applied_recursively_is_found() {
        for (source, count) in [
            ("path: apps, directory: {recurse: true}", 1),
            ("path: apps, directory: {recurse: true, exclude: '**/localized-files/**'}", 0),
            ("path: apps, directory: {recurse: true, exclude: '{localized-files/**,**/localized-files/**}'}", 0),
            ("path: apps/web, directory: {recurse: true, exclude: '{localized-files/**,**/localized-files/**}'}", 0),
            ("path: apps, directory: {recurse: true, include: '*.yml'}", 0),
            ("path: apps, directory: {recurse: true, include: '*.yaml', exclude: 'x'}", 1),
            ("path: apps", 0),
            ("path: apps/web, directory: {recurse: true}", 1),
            ("path: apps/web", 0),
        ] {
            assert_eq!(found(&argo(source)).len(), count, "{source}");
        }
    }
}
