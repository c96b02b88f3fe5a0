//! `stale-allow`: a comment or an entry of the configuration that allows nothing, because it is malformed or has
//! nothing to allow, or that gives no reason.
//!
//! Only the configuration can silence this rule.

use std::collections::{BTreeSet, HashSet};

use super::Context;
use crate::config::{Allow, Comment, Config, Glob, Globs, is_placeholder};
use crate::graph::{Resolution, SourceId};
use crate::message::failure::{Failure, shown};
use crate::message::finding::{Finding, Rule};
use crate::message::position::Span;
use crate::targets;
use crate::tree::{LOCK_COMMAND, path};

/// The form that the help for a malformed comment shows.
pub(super) const FORM: &str = "write `# kustomize-localize: allow[RULE]`, followed by the reason";

/// Finds the patterns of `include` that match no directory of a kustomization, and those of `exclude` that match no
/// directory of a file, or only roots that the walk reaches from others: removing them would change nothing.
pub(super) fn stale_patterns(context: &Context<'_>) -> Vec<Finding> {
    let (config, written) = (context.config, context.input.change_config.unwrap_or(context.config));
    // With paths the walk does not show what a pattern keeps out.
    if !context.input.paths.is_empty() || written.include.is_empty() && written.exclude.is_empty() {
        return Vec::new();
    }
    // If the tree cannot be listed, the check has failed already.
    let roots = context.tree.kustomizations().unwrap_or_default();
    let included = covering(&written.include, &roots);
    let unmatched = written.include.iter().enumerate().filter(|(index, _)| !included.contains(index));
    let mut stale: Vec<(&Glob, Failure)> = unmatched.map(|(_, glob)| (glob, matches_nothing(glob))).collect();
    stale.extend(excludes_without_effect(context, &written.exclude, &roots));
    // A pattern that the change adds may be for files of a later change.
    let known: HashSet<&str> = config.include.iter().chain(config.exclude.iter()).map(|glob| &*glob.text).collect();
    stale.retain(|(glob, _)| known.contains(&*glob.text));
    stale.into_iter().map(|(glob, failure)| stale_finding(&written.file, glob.span, &glob.text, failure)).collect()
}

/// The patterns of `exclude` that match nothing, or that keep nothing out, each with its failure. `roots` are the
/// kustomizations of the tree.
fn excludes_without_effect<'g>(
    context: &Context<'_>,
    exclude: &'g Globs,
    roots: &[String],
) -> Vec<(&'g Glob, Failure)> {
    let effects = effects(context, exclude, roots);
    // All files are listed only if some pattern excludes no root.
    let matches_roots = effects.iter().all(|effect| effect.has_roots);
    let files = if matches_roots { Vec::new() } else { context.tree.below("").unwrap_or_default() };
    let excluding_files = covering(exclude, &files);
    let failures = exclude.iter().zip(&effects).enumerate().filter_map(|(index, (glob, effect))| {
        let is_unmatched = !effect.has_roots && !excluding_files.contains(&index);
        let failure = if is_unmatched { Some(matches_nothing(glob)) } else { effect.failure_without_effect(glob) };
        Some((glob, failure?))
    });
    failures.collect()
}

/// The failure of a pattern that matches nothing.
fn matches_nothing(glob: &Glob) -> Failure {
    Failure::new(format!("nothing matches `{}`", shown(&glob.text))).hint("remove or correct it")
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
    let mut effects = vec![Effect::default(); exclude.len()];
    let walked = context.graph.user_roots();
    for directory in roots.iter().map(|file| path::parent(file)) {
        for index in exclude.covering(directory) {
            effects[index].has_roots = true;
            effects[index].keeps_out |= !walked.contains_key(directory);
        }
    }
    // These searches read many files, so they run only if a pattern may be stale.
    if effects.iter().any(Effect::may_be_stale) {
        find_excluded_objects(context, exclude, &mut effects);
    }
    if effects.iter().any(Effect::may_be_stale) {
        find_ways_in(context, exclude, &mut effects);
    }
    effects
}

/// Marks the patterns that cover a file with objects of engines as effective: its targets were not read, so the walk
/// does not show what they reach.
fn find_excluded_objects(context: &Context<'_>, exclude: &Globs, effects: &mut [Effect]) {
    match targets::candidates(context.tree).and_then(|search| search()) {
        Ok(files) => covering(exclude, &files).into_iter().for_each(|index| effects[index].keeps_out = true),
        // It is unknown what they reach, so no pattern is reported.
        Err(_) => effects.iter_mut().for_each(|effect| effect.keeps_out = true),
    }
}

/// Finds for each pattern a directory that it matches, but that the walk reaches.
fn find_ways_in(context: &Context<'_>, exclude: &Globs, effects: &mut [Effect]) {
    let graph = context.graph;
    for (id, edge) in graph.edges() {
        let Resolution::Root { id: named, remote: false } = edge.resolution else { continue };
        let root = &graph.roots[id.root];
        // Patterns match directories of this tree, and not those of upstreams.
        if root.source != SourceId::FIRST {
            continue;
        }
        // A reference between two directories that one pattern matches does not lead into it.
        let directory = &graph.roots[named].directory;
        let same = exclude.covering(&root.directory);
        for index in exclude.covering(directory).difference(&same) {
            let reference = || format!("{}:{} references it", context.path(edge.from), edge.reference.span.start.line);
            effects[*index].reached.get_or_insert_with(|| (directory.clone(), reference()));
        }
    }
    // A deployed root is walked although the configuration excludes it.
    for local in &context.deployed.local {
        for root in local.target.roots(local.directory) {
            for index in exclude.covering(root) {
                let deployed = || (root.to_owned(), format!("{} deploys it", local.target.by()));
                effects[index].reached.get_or_insert_with(deployed);
            }
        }
    }
}

impl Effect {
    /// Whether every kustomization that the pattern matches is reached anyway, as far as that is known.
    fn may_be_stale(&self) -> bool {
        self.has_roots && !self.keeps_out
    }

    /// The failure of a pattern that keeps nothing out. `None` if it has an effect.
    fn failure_without_effect(&self, glob: &Glob) -> Option<Failure> {
        let (directory, by) = self.reached.as_ref().filter(|_| self.may_be_stale())?;
        let message = format!("`exclude: {}` has no effect on `{}`: {by}", shown(&glob.text), path::shown(directory));
        Some(Failure::new(message).hint("remove the pattern, or stop referencing the directory"))
    }
}

/// The finding for an entry of the configuration without a reason. `None` if it has one.
pub(super) fn unreasoned(config: &Config, entry: &Allow) -> Option<Finding> {
    Some(stale_finding(&config.file, entry.span, &entry.text, placeholder(&entry.reason)?))
}

/// The failure of a reason that is only a placeholder. `None` if it is a reason.
fn placeholder(reason: &str) -> Option<Failure> {
    let failure = || Failure::new(format!("`{}` is a placeholder, not a reason", shown(reason)));
    is_placeholder(reason).then(|| failure().hint("give reviewers the reason why it stays"))
}

/// The finding for a comment that is malformed or unused. `is_complete` tells that the check has looked at everything,
/// `is_locked` that the reference beside it is locked, and `is_used` whether the comment allows a finding of a rule.
pub(super) fn stale_comment(
    path: &str,
    comment: &Comment,
    is_complete: bool,
    is_locked: bool,
    is_used: impl Fn(Rule) -> bool,
) -> Option<Finding> {
    let failure = match &comment.directive {
        Err(why) => Failure::new(format!("this comment allows nothing: {why}")).hint(FORM),
        Ok(directive) => match placeholder(&directive.reason) {
            Some(failure) => failure,
            // With failures it is unknown which findings there are to allow.
            None if !is_complete => return None,
            None => {
                let unused: Vec<Rule> = directive.rules.iter().copied().filter(|rule| !is_used(*rule)).collect();
                unused_rules(&unused, is_locked)?
            }
        },
    };
    Some(stale_finding(path, comment.span, "", failure))
}

/// The failure of rules that a comment allows in vain. `None` if there are none.
fn unused_rules(unused: &[Rule], is_locked: bool) -> Option<Failure> {
    if unused.is_empty() {
        return None;
    }
    if is_locked && unused.iter().all(|rule| matches!(rule, Rule::RemoteReference | Rule::RemoteChart)) {
        let failure = Failure::new("this is locked, so the comment has no effect");
        let hint = "to leave it remote, unless another reference needs it locked";
        return Some(failure.hint(format!("{hint}: {LOCK_COMMAND}; to keep it locked, remove the comment")));
    }
    let unused = unused.iter().map(|rule| format!("`{rule}`")).collect::<Vec<_>>().join(", ");
    let failure = Failure::new(format!("{unused} has no finding here to allow"));
    Some(failure.hint(format!("remove {unused} from the comment")))
}

/// A finding of this rule at an exception. `about` is its text, or empty for a comment.
pub(super) fn stale_finding(path: &str, span: Span, about: &str, failure: Failure) -> Finding {
    Finding { span: Some(span), ..Finding::new(Rule::StaleAllow, path, failure).about(about) }
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
            // A deployed root is checked although it is excluded.
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
