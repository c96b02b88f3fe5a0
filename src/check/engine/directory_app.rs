//! Argo CD reads localized files as an application, or as manifests of one.

use std::collections::BTreeSet;

use crate::check::Context;
use crate::check::deployed::LocalTarget;
use crate::message::failure::{Failure, Result};
use crate::message::finding::{Finding, Rule};
use crate::message::position::Position;
use crate::reference::localized_path::LOCALIZED_FILES;
use crate::targets::plain::manifests;
use crate::targets::{GitGenerator, PathContent};
use crate::tree::path;

/// Finds git generators of ApplicationSets that take localized files for applications, and applications that read
/// localized files as manifests.
pub(super) fn find(context: &Context<'_>) -> Vec<Finding> {
    let mut findings = Vec::new();
    let generators = context.deployed.targets.generators.iter();
    // A generator looks at the whole tree, so a check of given paths leaves it out.
    let mut generators = generators
        .filter(|generator: &&GitGenerator| context.input.paths.is_empty() && generator.revision.is_this)
        .peekable();
    if generators.peek().is_some()
        && let Some(written) = context.value_or_failure(written_paths(context))
    {
        findings.extend(generators.filter_map(|generator| generated(context, generator, &written)));
    }
    let local = context.deployed.local.iter();
    findings.extend(local.filter_map(|local| context.value_or_failure(reads_localized(context, local))?));
    findings
}

/// The directories and files that localizing wrote.
#[derive(Default)]
struct WrittenPaths {
    directories: BTreeSet<String>,
    files: BTreeSet<String>,
}

/// The files below `localized-files` and in copies, and the directories that exist only because of them.
fn written_paths(context: &Context<'_>) -> Result<WrittenPaths> {
    let mut written = WrittenPaths::default();
    let copies = context.locks.iter().filter(|(_, lock)| lock.target.is_some());
    let copies: Vec<&str> = copies.map(|(copy, _)| copy.as_str()).collect();
    for file in context.tree.below("")? {
        if is_vendored(&file) || copies.iter().any(|copy| path::is_in(&file, copy)) {
            written.files.insert(file);
        }
    }
    // Directories on the way to localized files are the user's, unless localizing made them.
    let directories = path::directories(written.files.iter().map(String::as_str));
    written.directories = directories
        .into_iter()
        .filter(|directory: &&str| is_vendored(directory) || copies.iter().any(|copy| path::is_in(directory, copy)))
        .map(str::to_owned)
        .collect();
    Ok(written)
}

/// Whether a path is in or below a directory `localized-files`.
fn is_vendored(path: &str) -> bool {
    path::components(path).any(|name| name == LOCALIZED_FILES)
}

/// The finding for a generator that makes an application of localized files; `None` if it makes none, or if a pattern
/// of it is broken.
fn generated(context: &Context<'_>, generator: &GitGenerator, written: &WrittenPaths) -> Option<Finding> {
    // The patterns of a generator match paths from its base.
    let matches = generator.matcher()?;
    let from_base = |path| path::below(path, &generator.base);
    // A copy is meant to be deployed, but not together with its original: is the same path in the original matched?
    let is_copied = |path: &str| {
        context.locks.iter().any(|(copy, lock)| {
            let inside = from_base(copy).and_then(|copy| path::below(path, copy));
            let original = lock.target.as_deref().and_then(from_base).zip(inside);
            original.is_some_and(|(original, inside)| matches(&path::join(original, inside)))
        })
    };
    let (all, kind) =
        if generator.is_files { (&written.files, "files") } else { (&written.directories, "directories") };
    let matched = all.iter().filter_map(|path| from_base(path)).filter(|path| matches(path));
    let localized: BTreeSet<&str> = matched.filter(|path| is_vendored(path) || is_copied(path)).collect();
    // Each generator has one finding, because one entry excludes all of its paths.
    let first = localized.first()?;
    let more = match localized.len() {
        1 => String::new(),
        count => format!(" and of {} more", count - 1),
    };
    let object = &generator.object;
    let excluded: BTreeSet<String> = localized.iter().map(|path| generator.exclusion(path)).collect();
    let excluded: Vec<String> = excluded.into_iter().collect();
    let failure = Failure::new(format!("Argo CD {object} makes an application of the localized `{first}`{more}"))
        .hint(format!("exclude it in `git.{kind}`: {}", excluded.join(", ")));
    let finding = context.at_position(Rule::Engine, &object.file, Position::new(object.line, 1), failure);
    Some(finding.about(format!("{kind} {}", object.name)))
}

/// The finding for an application that reads localized files as manifests.
fn reads_localized(context: &Context<'_>, local: &LocalTarget<'_>) -> Result<Option<Finding>> {
    let files = manifests(context.tree, local.target, local.directory)?;
    let (PathContent::Directory(directory), Some(files)) = (&local.directory.content, files) else { return Ok(None) };
    let Some(first) = files.iter().find(|file: &&String| {
        let inside = path::below(file, directory).unwrap_or_default();
        path::components(inside).any(|name| name == LOCALIZED_FILES)
    }) else {
        return Ok(None);
    };
    let by = local.target.by();
    let message = format!("{by} applies every manifest below `{directory}`, including the localized `{first}`");
    let failure = Failure::new(message)
        .hint(format!("exclude them in `directory`: exclude: '{{{LOCALIZED_FILES}/**,**/{LOCALIZED_FILES}/**}}'"));
    Ok(Some(context.at_target(Rule::Engine, local.target, failure)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, argo};

    const HERE: &str = "repoURL: 'https://github.com/acme/fleet'";

    fn set(generator: &str) -> String {
        format!(
            "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {{name: apps}}
spec:
  goTemplate: true
  generators:
  - {{{generator}}}
  template:
    metadata: {{name: x}}
    spec:
      source: {{{HERE}, path: '{{{{.path.path}}}}'}}
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
        let pod = Some("`apps/web/localized-files/example.com/pod.yaml`");
        for (kind, patterns, expected) in [
            ("directories", "{path: apps/*}", None),
            ("directories", "{path: apps/*/*}", Some("`apps/web/localized-files`")),
            ("directories", "{path: apps/*/*}, {path: '*/*/localized-files', exclude: true}", None),
            ("directories", "{path: '*/*/*/*'}", Some("`apps/web/localized-files/example.com`")),
            ("files", "{path: apps/web/x.yaml}", None),
            ("files", "{path: apps/**/pod.yaml}", pod),
            // As git reads it, a star goes over any number of directories.
            ("files", "{path: apps/*.yaml}", pod),
            ("files", "{path: apps/web}", pod),
            ("files", "{path: apps/*.yaml}, {path: apps/web/localized-files, exclude: true}", None),
            ("files", "{path: apps/*.yaml}, {path: apps/web/x.yaml, exclude: true}", pod),
        ] {
            let git = |patterns: &str| set(&format!("git: {{{HERE}, {kind}: [{patterns}]}}"));
            let findings = found(&git(patterns));
            let expected = expected.map(|place| {
                format!("Argo CD ApplicationSet apps (argo/x.yaml:1) makes an application of the localized {place}")
            });
            let message = findings.first().map(|finding| finding.message.clone());
            assert_eq!(message, expected, "{patterns}");
            if let Some(finding) = findings.first() {
                // The help helps.
                let (_, exclude) = finding.help[0].split_once(&format!("`git.{kind}`: ")).unwrap();
                assert!(found(&git(&format!("{patterns}, {exclude}"))).is_empty());
            }
        }
    }

    #[test]
    fn what_a_generator_takes_is_found_wherever_it_stands() {
        let git = |path: &str| format!("{{git: {{{HERE}, files: [{{path: '{path}'}}]}}}}");
        let plain = git("apps/*/pod.yaml");
        let list = "{list: {elements: [{name: web}, {name: db}]}}";
        let count = |generator: &str| {
            let scene = Scene::default().file("argo/x.yaml", &set(generator));
            scene.file("apps/web/localized-files/example.com/pod.yaml", "").find(Rule::Engine).len()
        };
        let of = |kind: &str, one: &str, two: &str| format!("{kind}: {{mergeKeys: [a], generators: [{one}, {two}]}}");
        for generator in [
            of("matrix", &plain, list),
            of("matrix", list, &plain),
            of("matrix", "{clusters: {}}", &plain),
            of("matrix", list, &git("apps/{{.name}}/*/pod.yaml")),
            of("merge", "{clusters: {}}", &plain),
            of("merge", &plain, "{clusters: {}}"),
            of("matrix", &format!("{{{}}}", of("matrix", list, &plain)), list),
            of("matrix", list, &format!("{{{}}}", of("merge", "{clusters: {}}", &plain))),
            of("merge", list, &format!("{{{}}}", of("matrix", list, &plain))),
            of("matrix", &plain, "{clusters: {}, list: {}}"),
            format!("{}, selector: {{matchLabels: {{a: b}}}}", &plain[1..plain.len() - 1]),
            format!("clusters: {{}}, {}", &plain[1..plain.len() - 1]),
        ] {
            assert_eq!(count(&generator), 1, "{generator}");
        }
        assert_eq!(count(&of("matrix", list, &git("apps/{{.name}}/pod.yml"))), 0);
    }

    #[test]
    fn a_file_of_a_copy_makes_no_application_beside_that_of_its_original() {
        let matched = |kind: &str, pattern: &str| {
            let lock = "version: 1\ntarget: apps/web\n";
            let scene = Scene::default()
                .file("argo/x.yaml", &set(&format!("git: {{{HERE}, {kind}: [{{path: '{pattern}'}}]}}")))
                .file("apps/web/config.json", "{}")
                .file("apps/web/db/x.json", "{}")
                .file("apps/copy/config.json", "{}")
                .file("apps/copy/db/x.json", "{}")
                .file("apps/copy/kustomize-localize.lock", lock);
            scene.find(Rule::Engine).len()
        };
        assert_eq!(matched("files", "apps/*/config.json"), 1);
        assert_eq!(matched("files", "apps/copy/config.json"), 0);
        assert_eq!(matched("directories", "apps/*"), 1);
        assert_eq!(matched("directories", "apps/*/*"), 1);
        assert_eq!(matched("directories", "apps/copy/*"), 0);
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
