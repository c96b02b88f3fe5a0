//! `stale-allow`: a comment or an entry of the configuration that allows nothing, because it is malformed or because
//! there is nothing to allow, or gives no reason.
//!
//! Only the configuration can silence it.

use std::cell::LazyCell;

use super::Context;
use crate::config::{Allow, Comment, Config, Glob, is_placeholder};
use crate::graph::{SourceId, Target};
use crate::message::failure::shown;
use crate::message::finding::{Finding, Rule};
use crate::message::position::Span;
use crate::targets;
use crate::tree::{LOCK_COMMAND, path};

/// The form that the help for a malformed comment shows.
pub(super) const FORM: &str = "write `# kustomize-localize: allow[RULE]`, followed by the reason";

/// Finds the patterns of `include` that match the directory of no kustomization, and those of `exclude` that match that of
/// no file.
pub(super) fn unmatched(context: &Context<'_>) -> Vec<Finding> {
    let (config, said) = (context.config, context.input.own.unwrap_or(context.config));
    if !context.input.paths.is_empty() || said.include.is_empty() && said.exclude.is_empty() {
        return Vec::new();
    }
    let matches = |glob: &Glob, files: &[String]| {
        let mut directories = files.iter().map(|file| path::parent(file));
        directories.any(|directory| glob.covers(directory))
    };
    // What cannot be listed is a failure elsewhere.
    let roots = context.tree.kustomizations().unwrap_or_default();
    let files = LazyCell::new(|| context.tree.below("").unwrap_or_default());
    let include = said.include.iter().filter(|glob| !matches(glob, &roots));
    let exclude = said.exclude.iter();
    let exclude = exclude.filter(|glob| !matches(glob, &roots) && !matches(glob, &files));
    let known = |glob: &&Glob| {
        let mut known = config.include.iter().chain(&config.exclude);
        known.any(|one| one.text == glob.text)
    };
    let unmatched = |glob: &Glob| {
        let message = format!("nothing matches `{}`", shown(&glob.text));
        let help = "remove or correct it".to_owned();
        stale(&said.file, glob.span, &glob.text, message, help)
    };
    let reached = said.exclude.iter().filter(known).filter_map(|glob| without_effect(context, said, glob, &roots));
    include.chain(exclude).filter(known).map(unmatched).chain(reached).collect()
}

/// Returns what to say of a pattern of `exclude` that matches only kustomizations that are reached all the same.
fn without_effect(context: &Context<'_>, said: &Config, glob: &Glob, roots: &[String]) -> Option<Finding> {
    let graph = context.graph;
    let own = graph.own_roots();
    let is_covered = |directory: &str| glob.covers(directory);
    let mut covered =
        roots.iter().map(|place| path::parent(place)).filter(|directory| is_covered(directory)).peekable();
    covered.peek()?;
    // Objects in these directories are not looked at.
    let has_objects = || {
        targets::candidates(context.tree)
            .and_then(|search| search())
            .map_or(true, |all| all.iter().any(|file| glob.covers(path::parent(file))))
    };
    if !covered.all(|directory| own.contains_key(directory)) || has_objects() {
        return None;
    }
    let referenced = context.edges().find_map(|(root, edge)| match edge.target {
        Target::Root { id, remote: false } if root.source == SourceId::FIRST && !is_covered(&root.directory) => {
            let directory = &graph.roots[id].directory;
            let by = || format!("{}:{} references it", context.path(edge.from), edge.reference.span.start.line);
            is_covered(directory).then(|| (directory.clone(), by()))
        }
        _ => None,
    });
    let deployed = || {
        let mut all =
            context.deployed.here.iter().flat_map(|one| one.target.roots(one.here).map(move |root| (one, root)));
        let (one, root) = all.find(|(_, root)| is_covered(root))?;
        Some((root.to_owned(), format!("{} deploys it", one.target.by())))
    };
    let (directory, by) = referenced.or_else(deployed)?;
    let message = format!("`exclude: {}` has no effect on `{}`: {by}", shown(&glob.text), path::shown(&directory));
    Some(stale(
        &said.file,
        glob.span,
        &glob.text,
        message,
        "remove the pattern, or stop referencing the directory".to_owned(),
    ))
}

/// Returns what is stale about an entry of the configuration whose reason is none.
pub(super) fn unreasoned(config: &Config, entry: &Allow) -> Option<Finding> {
    let (message, help) = is_placeholder(&entry.reason).then(|| unreasoned_with(&entry.reason))?;
    Some(stale(&config.file, entry.span, &entry.text, message, help))
}

fn unreasoned_with(reason: &str) -> (String, String) {
    let message = format!("`{}` is a placeholder, not a reason", shown(reason));
    (message, "give reviewers the reason why it stays".to_owned())
}

/// Returns what is stale about a comment, perhaps beside something that the lock holds.
pub(super) fn stale_comment(
    path: &str,
    comment: &Comment,
    complete: bool,
    is_locked: bool,
    is_used: impl Fn(Rule) -> bool,
) -> Option<Finding> {
    let (message, help) = match &comment.said {
        Err(why) => (format!("this comment allows nothing: {why}"), FORM.to_owned()),
        Ok(said) if is_placeholder(&said.reason) => unreasoned_with(&said.reason),
        Ok(_) if !complete => return None,
        Ok(said) => {
            let unused: Vec<&Rule> = said.rules.iter().filter(|rule| !is_used(**rule)).collect();
            if unused.is_empty() {
                return None;
            }
            if is_locked && unused.iter().all(|rule| matches!(rule, Rule::RemoteReference | Rule::RemoteChart)) {
                let message = "this is locked, so the comment has no effect until `lock` runs".to_owned();
                let help = format!("to leave it remote: {LOCK_COMMAND}; to keep it locked, remove the comment");
                return Some(stale(path, comment.span, "", message, help));
            }
            let unused = unused.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ");
            (format!("{unused} has no finding here to allow"), format!("remove {unused} from the comment"))
        }
    };
    Some(stale(path, comment.span, "", message, help))
}

pub(super) fn stale(path: &str, span: Span, about: &str, message: String, help: String) -> Finding {
    let about = about.to_owned();
    Finding { span: Some(span), about, ..Finding::new(Rule::StaleAllow, path, message, vec![help]) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::testing::{Scene, argo};

    #[test]
    fn a_pattern_of_exclude_without_effect_is_reported() {
        let scene = |app: &str| {
            let scene =
                Scene::default().file("base/kustomization.yaml", "resources: [map.yaml]\n").file("base/map.yaml", "");
            scene.file("app/kustomization.yaml", app).config("exclude: [base]\n")
        };
        let named = || scene("resources:\n- ../base\n");
        let application = argo("path: base");
        for (scene, by) in [
            (named(), Some("app/kustomization.yaml:2 references it")),
            // It keeps something out.
            (named().file("base/none/kustomization.yaml", "resources: [gone.yaml]\n"), None),
            // Objects in it are not looked at.
            (named().file("base/map.yaml", &argo("path: app")), None),
            // What is deployed is checked all the same.
            (
                scene("resources: []\n").file("argo/web.yaml", &application),
                Some("Argo CD Application web (argo/web.yaml:1) deploys it"),
            ),
            (scene("resources: []\n").file("argo/web.yaml", &application).config(""), None),
        ] {
            let found: Vec<String> = scene.check().findings.into_iter().map(|one| one.message).collect();
            let expected = by.map(|by| format!("`exclude: base` has no effect on `base`: {by}"));
            assert_eq!(found, Vec::from_iter(expected));
        }
    }

    #[test]
    fn a_placeholder_counts_and_is_reported() {
        for (reason, is_one) in [
            ("WHY", false),
            ("why?", false),
            ("TODO", false),
            ("todo:", false),
            ("<REASON>", false),
            ("FIXME", false),
            ("why not", true),
            ("ours", true),
            ("TODO by Bob: vendor it", true),
        ] {
            let comment = format!(
                "resources:\n- https://example.com/x.yaml # kustomize-localize: allow[remote-reference] {reason}\n"
            );
            let entries = format!(
                "allow:\n- {{url: example.com, refs: any, reason: '{reason}'}}\n- {{path: gone.yaml, reason: '{reason}'}}\n"
            );
            let both = Scene::of("resources: ['https://example.com/x.yaml', gone.yaml]\n").config(&entries);
            for (scene, count) in [(Scene::of(&comment), 1), (both, 2)] {
                let findings = scene.check().findings;
                let (stale, allowed): (Vec<_>, Vec<_>) =
                    findings.into_iter().partition(|one| one.rule == Rule::StaleAllow);
                assert!(allowed.len() == count && allowed.iter().all(|one| one.allowed.is_some()), "{allowed:?}");
                assert_eq!(stale.len(), if is_one { 0 } else { count }, "{reason}: {stale:?}");
            }
        }
    }
}
