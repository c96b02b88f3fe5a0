//! `stale-allow`: a comment or an entry of the configuration that allows nothing, because it is malformed or has nothing to
//! allow, or that gives no reason.
//!
//! Only the configuration can silence this rule.

use std::collections::{BTreeSet, HashSet};

use super::Context;
use crate::config::{Allow, Comment, Config, Glob, Globs, is_placeholder};
use crate::graph::{Resolution, SourceId};
use crate::message::failure::shown;
use crate::message::finding::{Finding, Rule};
use crate::message::position::Span;
use crate::targets;
use crate::tree::{LOCK_COMMAND, path};

/// The form that the help for a malformed comment shows.
pub(super) const FORM: &str = "write `# kustomize-localize: allow[RULE]`, followed by the reason";

/// Finds the patterns of `include` that match no directory of a kustomization, and those of `exclude` that match no directory of
/// a file, or only roots that the walk reaches from others.
pub(super) fn unmatched(context: &Context<'_>) -> Vec<Finding> {
    let (config, written) = (context.config, context.input.change_config.unwrap_or(context.config));
    if !context.input.paths.is_empty() || written.include.is_empty() && written.exclude.is_empty() {
        return Vec::new();
    }
    // If the tree cannot be listed, the check has failed already.
    let roots = context.tree.kustomizations().unwrap_or_default();
    // A pattern is stale if removing it would change nothing.
    let included = covering(&written.include, &roots);
    let effects = effects(context, &written.exclude, &roots);
    let in_use = if (0..effects.len()).any(|index| !effects[index].has_roots) {
        covering(&written.exclude, &context.tree.below("").unwrap_or_default())
    } else {
        BTreeSet::new()
    };
    let include =
        (0..written.include.len()).filter(|index| !included.contains(index)).map(|index| &written.include[index]);
    let exclude = (0..effects.len()).filter(|index| !effects[*index].has_roots && !in_use.contains(index));
    let exclude = exclude.map(|index| &written.exclude[index]);
    // A pattern that the change adds may be for files of a later change.
    let known: HashSet<&str> = config.include.iter().chain(config.exclude.iter()).map(|glob| &*glob.text).collect();
    let known = |glob: &&Glob| known.contains(&*glob.text);
    let unmatched = |glob: &Glob| {
        let message = format!("nothing matches `{}`", shown(&glob.text));
        let help = "remove or correct it".to_owned();
        stale(&written.file, glob.span, &glob.text, message, help)
    };
    let reached = written.exclude.iter().zip(&effects).filter(|(glob, _)| known(glob));
    let reached = reached.filter_map(|(glob, effect)| effect.without(&written.file, glob));
    include.chain(exclude).filter(known).map(unmatched).chain(reached).collect()
}

/// The indices of the globs that cover the directory of any of `files`.
fn covering(globs: &Globs, files: &[String]) -> BTreeSet<usize> {
    let directories: BTreeSet<&str> = files.iter().map(|file| path::parent(file)).collect();
    directories.into_iter().flat_map(|directory| globs.covering(directory)).collect()
}

/// The effect of a pattern of `exclude`.
#[derive(Debug, Clone, Default)]
struct Effect {
    /// Whether the pattern matches a kustomization.
    has_roots: bool,
    /// Whether the walk does not reach some kustomization that the pattern matches.
    keeps_out: bool,
    /// A directory that the pattern matches, but that the walk reaches, and the reference that leads there.
    reached: Option<(String, String)>,
}

/// The effect of each pattern of `exclude`, in their order.
fn effects(context: &Context<'_>, exclude: &Globs, roots: &[String]) -> Vec<Effect> {
    let (graph, mut effects) = (context.graph, vec![Effect::default(); exclude.len()]);
    let walked = graph.user_roots();
    for directory in roots.iter().map(|file| path::parent(file)) {
        for index in exclude.covering(directory) {
            effects[index].has_roots = true;
            effects[index].keeps_out |= !walked.contains_key(directory);
        }
    }
    // The searches below read many files, so they run only if a pattern may be stale.
    if !effects.iter().any(Effect::may_be_none) {
        return effects;
    }
    // Targets in excluded directories were not read, so their objects cannot reach anything.
    match targets::candidates(context.tree).and_then(|search| search()) {
        Ok(files) => covering(exclude, &files).into_iter().for_each(|index| effects[index].keeps_out = true),
        Err(_) => effects.iter_mut().for_each(|effect| effect.keeps_out = true),
    }
    for (root, edge) in context.edges() {
        let Resolution::Root { id, remote: false } = edge.target else { continue };
        if root.source != SourceId::FIRST || !effects.iter().any(Effect::may_be_none) {
            continue;
        }
        let directory = &graph.roots[id].directory;
        let by = exclude.covering(&root.directory);
        for index in exclude.covering(directory).difference(&by) {
            let reference = || format!("{}:{} references it", context.path(edge.from), edge.reference.span.start.line);
            effects[*index].reached.get_or_insert_with(|| (directory.clone(), reference()));
        }
    }
    for local in &context.deployed.local {
        for root in local.target.roots(local.directory) {
            for index in exclude.covering(root) {
                effects[index]
                    .reached
                    .get_or_insert_with(|| (root.to_owned(), format!("{} deploys it", local.target.by())));
            }
        }
    }
    effects
}

impl Effect {
    /// Whether every kustomization that the pattern matches is reached anyway, as far as that is known.
    fn may_be_none(&self) -> bool {
        self.has_roots && !self.keeps_out
    }

    /// The finding for a pattern that keeps nothing out. `None` if it has an effect.
    fn without(&self, file: &str, glob: &Glob) -> Option<Finding> {
        let (directory, by) = self.reached.as_ref().filter(|_| self.may_be_none())?;
        let message = format!("`exclude: {}` has no effect on `{}`: {by}", shown(&glob.text), path::shown(directory));
        let help = "remove the pattern, or stop referencing the directory".to_owned();
        Some(stale(file, glob.span, &glob.text, message, help))
    }
}

/// The finding for an entry of the configuration without a reason. `None` if it has one.
pub(super) fn unreasoned(config: &Config, entry: &Allow) -> Option<Finding> {
    let (message, help) = is_placeholder(&entry.reason).then(|| unreasoned_with(&entry.reason))?;
    Some(stale(&config.file, entry.span, &entry.text, message, help))
}

fn unreasoned_with(reason: &str) -> (String, String) {
    let message = format!("`{}` is a placeholder, not a reason", shown(reason));
    (message, "give reviewers the reason why it stays".to_owned())
}

/// The finding for a comment that is malformed or unused. `is_locked` tells that the reference beside it is locked.
pub(super) fn stale_comment(
    path: &str,
    comment: &Comment,
    complete: bool,
    is_locked: bool,
    is_used: impl Fn(Rule) -> bool,
) -> Option<Finding> {
    let (message, help) = match &comment.directive {
        Err(why) => (format!("this comment allows nothing: {why}"), FORM.to_owned()),
        Ok(directive) if is_placeholder(&directive.reason) => unreasoned_with(&directive.reason),
        // With failures it is unknown which findings there are to allow.
        Ok(_) if !complete => return None,
        Ok(directive) => {
            let unused: Vec<&Rule> = directive.rules.iter().filter(|rule| !is_used(**rule)).collect();
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
