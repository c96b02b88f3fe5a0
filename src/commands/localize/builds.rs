//! The text about the builds of original and result.

use std::collections::{BTreeMap, BTreeSet};

use crate::build::{BuildCheck, OutputDifference, TargetCheck, Verdict};
use crate::commands::messages::{counted, first, listed, present};
use crate::message::failure::Failure;

/// How many objects, roots or reasons are named before the rest is only counted.
const NAMED: usize = 10;

/// The lines about the builds: the counts, the roots that were not built, by reason, and hints. If no build could run,
/// only the reason.
pub(super) fn proof_lines(checked: &BuildCheck, verbose: bool) -> Vec<String> {
    if let Some(reason) = &checked.not_built {
        return vec![format!("  not verified: {reason}")];
    }
    let by = checked.by.iter().map(|by| by.program.clone());
    // People compare proofs of two machines: another program or another isolation explains a difference.
    let how: Vec<String> = by.chain(checked.network.map(|network| network.to_string())).collect();
    let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
    let not = if is_verified(checked) { "" } else { "not " };
    let mut out = vec![format!("  {not}verified: {}{how}", counts(checked))];
    out.extend(unbuilt_lines(checked, verbose));
    let steps: BTreeSet<&str> = checked.targets.iter().filter_map(|target| target.next_step).collect();
    out.extend(steps.into_iter().map(|step| format!("  {step}")));
    out
}

/// Whether a root was built to the same, or was verified before. Roots that were not rewritten prove nothing about
/// those that were, so they count only if none was rewritten.
fn is_verified(checked: &BuildCheck) -> bool {
    let is_any_changed = checked.targets.iter().any(|target| target.is_changed);
    let mut proofs = checked.targets.iter().filter(|target| target.is_changed || !is_any_changed);
    proofs.any(|target| target.verdict.is_same())
}

/// The lines about roots that were not built, by reason: one reason, such as a missing program, often stops many
/// builds. Several skipped roots share a line without their reasons, which `verbose` shows.
fn unbuilt_lines(checked: &BuildCheck, verbose: bool) -> Vec<String> {
    let most = if verbose { usize::MAX } else { NAMED };
    let skipped: Vec<&str> = checked.targets.iter().filter(is_skipped).map(|target| &*target.target).collect();
    let is_shared = skipped.len() > 1 && !verbose;
    let mut unbuilt: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for target in &checked.targets {
        match &target.verdict {
            Verdict::Skipped { .. } if is_shared => {}
            Verdict::NotBuilt { reason } | Verdict::Skipped { reason } => {
                unbuilt.entry(reason).or_default().push(&target.target);
            }
            _ => {}
        }
    }
    let lines = unbuilt.into_iter();
    let lines = lines.map(|(reason, targets)| format!("  not built: {}: {reason}", listed::<&str>(targets, most)));
    let mut out = first(lines, most);
    if is_shared {
        out.push(format!("  not built, for what they reach: {}", listed::<&str>(skipped, most)));
    }
    out
}

/// Whether a root was skipped for what it reaches: something that stays remote, may be missing or is outside.
fn is_skipped(target: &&TargetCheck) -> bool {
    matches!(target.verdict, Verdict::Skipped { .. })
}

/// The number of builds with each result, in one line of the report.
fn counts(checked: &BuildCheck) -> String {
    if let [target] = checked.targets.as_slice()
        && target.verdict == Verdict::Identical
    {
        return format!("builds are identical: {} bytes", target.size);
    }
    let count = |is: fn(&Verdict) -> bool| checked.targets.iter().filter(|target| is(&target.verdict)).count();
    let counts = [
        (count(|verdict| *verdict == Verdict::Identical), "build", "identical"),
        (count(|verdict| *verdict == Verdict::Unchanged), "build", "not changed"),
        (count(|verdict| *verdict == Verdict::VerifiedBefore), "build", "verified before, from the same inputs"),
        (count(|verdict| matches!(verdict, Verdict::NotBuilt { .. } | Verdict::Skipped { .. })), "root", "not built"),
        (count(Verdict::differs), "build", "different"),
    ];
    present(counts.map(|(count, noun, end)| (count, format!("{} {end}", counted(count, noun))))).join(", ")
}

/// The differences between results and originals. They are printed alone, because nothing was written.
pub(super) fn differences(checked: &BuildCheck) -> Vec<String> {
    let all = counted(checked.targets.len(), "build");
    let targets = checked.targets.iter().filter(|target| target.verdict.differs());
    let targets: Vec<&TargetCheck> = targets.collect();
    let differ = targets.len();
    let mut out = vec![format!("not localized: the localized build differs from the original, in {differ} of {all}")];
    for TargetCheck { target, verdict, outputs, .. } in targets.iter().take(NAMED) {
        let (what, difference) = match verdict {
            Verdict::Broken { reason } => (format!("the original builds, the result does not: {reason}"), None),
            Verdict::Unsteady(difference) => {
                ("two builds of the original differ: nothing can be compared".to_owned(), Some(difference))
            }
            Verdict::Differs(difference) if difference.objects.is_empty() => {
                ("the same objects in another order".to_owned(), Some(difference))
            }
            Verdict::Differs(difference) => ("the outputs differ".to_owned(), Some(difference)),
            // No other verdict differs.
            _ => continue,
        };
        out.push(format!("  {target}: {what}"));
        if let Some(OutputDifference { objects, diff, .. }) = difference {
            out.extend(first(
                objects.iter().map(|object| format!("    {} {}", object.change.name(), object.id)),
                NAMED,
            ));
            out.extend(diff.lines().map(|line| format!("    {line}")));
        }
        out.extend(outputs.iter().map(|path| format!("  both outputs: {path}")));
    }
    out
}

/// The error that ends a run with differences; `None` if there are none.
pub(super) fn refusal(checked: &BuildCheck) -> Option<Failure> {
    let differing = checked.targets.iter().filter(|target| target.verdict.differs());
    // A build without a hint counts as well: the set is empty only if no build differs.
    let steps: BTreeSet<Option<&str>> = differing.map(|target| target.next_step).collect();
    let failure = Failure::new("nothing was written: the localized build differs from the original");
    (!steps.is_empty()).then(|| steps.into_iter().flatten().fold(failure, Failure::hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RootId;
    use crate::record::BuildTool;

    #[test]
    fn builds_are_counted_by_what_came_of_them() {
        let target = |verdict| TargetCheck {
            target: "apps".to_owned(),
            root: RootId(0),
            is_changed: verdict != Verdict::Unchanged,
            verdict,
            size: 50,
            next_step: None,
            outputs: None,
        };
        let reason = || "no".to_owned();
        let plain = target(Verdict::Identical);
        let before = target(Verdict::VerifiedBefore);
        let broken = target(Verdict::NotBuilt { reason: reason() });
        let skipped = target(Verdict::Skipped { reason: reason() });
        for (targets, line) in [
            (vec![plain.clone()], "verified: builds are identical: 50 bytes"),
            (vec![plain.clone(), plain.clone()], "verified: 2 builds identical"),
            (
                vec![broken.clone(), plain.clone(), before.clone(), skipped],
                "verified: 1 build identical, 1 build verified before, from the same inputs, 2 roots not built",
            ),
            // Nothing that was rewritten was built.
            (vec![target(Verdict::Unchanged), broken.clone()], "not verified: 1 build not changed, 1 root not built"),
            (vec![broken.clone(), broken], "not verified: 2 roots not built"),
        ] {
            let checked = BuildCheck { by: Some(BuildTool::default()), targets, ..BuildCheck::default() };
            let out = proof_lines(&checked, false);
            assert!(out[0].starts_with(&format!("  {line} (")), "{out:?}");
        }
    }
    #[test]
    fn what_was_skipped_is_counted() {
        let target = |name: &str| {
            let verdict = Verdict::Skipped { reason: format!("{name} stays remote") };
            TargetCheck {
                target: name.to_owned(),
                root: RootId(0),
                is_changed: true,
                verdict,
                size: 0,
                next_step: None,
                outputs: None,
            }
        };
        let checked = |names: &[&str]| BuildCheck {
            by: Some(BuildTool::default()),
            targets: names.iter().map(|name| target(name)).collect(),
            ..BuildCheck::default()
        };
        assert_eq!(proof_lines(&checked(&["a"]), false)[1], "  not built: a: a stays remote");
        assert_eq!(proof_lines(&checked(&["a", "b"]), false)[1..], ["  not built, for what they reach: a, b"]);
        let each = ["  not built: a: a stays remote", "  not built: b: b stays remote"];
        assert_eq!(proof_lines(&checked(&["a", "b"]), true)[1..], each);
    }
}
