//! What people read of building original and result.

use std::collections::{BTreeMap, BTreeSet};

use crate::build::{BuildCheck, Difference, TargetCheck, Verdict};
use crate::commands::messages::{counted, listed};
use crate::message::failure::Failure;

/// How many objects, roots or reasons are named before the rest is only counted.
const NAMED: usize = 10;

/// Returns the result of the builds. Why roots were not built is said once for each reason, and with `verbose` for all.
pub(super) fn proof(checked: &BuildCheck, verbose: bool) -> Vec<String> {
    if let Some(reason) = &checked.without {
        return vec![format!("  not verified: {reason}")];
    }
    let by = checked.by.iter().map(|by| by.program.clone());
    let how: Vec<String> = by.chain(checked.network.map(|network| network.to_string())).collect();
    let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
    let is_verified = checked.targets.iter().any(|target| target.verdict.is_same());
    let not = if is_verified { "" } else { "not " };
    let mut out = vec![format!("  {not}verified: {}{how}", counts(checked))];
    let mut unbuilt: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for target in &checked.targets {
        let why = match &target.verdict {
            Verdict::NotBuilt { reason } => ("did not build", reason.as_str()),
            Verdict::Skipped { reason } => ("skipped", reason.as_str()),
            _ => continue,
        };
        unbuilt.entry(why).or_default().push(&target.target);
    }
    let most = if verbose { usize::MAX } else { NAMED };
    if unbuilt.len() > most {
        out.push(format!("  not built for {}: -v names them", counted(unbuilt.len(), "reason")));
    } else {
        let reason = |((what, reason), targets)| format!("  {what}: {}: {reason}", listed::<&str>(targets, most));
        out.extend(unbuilt.into_iter().map(reason));
    }
    let steps: BTreeSet<&str> = checked.targets.iter().filter_map(|one| one.next_step).collect();
    out.extend(steps.into_iter().map(|step| format!("  {step}")));
    out
}

/// Returns how many builds came to what.
fn counts(checked: &BuildCheck) -> String {
    if let [one] = checked.targets.as_slice()
        && one.verdict == Verdict::Identical
    {
        return format!("builds are identical: {} bytes", one.size);
    }
    let count = |is: fn(&Verdict) -> bool| checked.targets.iter().filter(|target| is(&target.verdict)).count();
    let counts = [
        (count(|one| *one == Verdict::Identical), "build", "identical"),
        (count(|one| *one == Verdict::VerifiedBefore), "build", "verified before, from the same inputs"),
        (count(|one| matches!(one, Verdict::NotBuilt { .. })), "root", "did not build before either"),
        (count(|one| matches!(one, Verdict::Skipped { .. })), "root", "skipped"),
        (count(Verdict::differs), "build", "different"),
    ];
    let counts = counts.into_iter().filter(|(count, ..)| *count > 0);
    counts.map(|(count, what, how)| format!("{} {how}", counted(count, what))).collect::<Vec<_>>().join(", ")
}

/// Returns how results differ from their originals, and nothing else: nothing was written.
pub(super) fn differences(checked: &BuildCheck) -> Vec<String> {
    let differing: Vec<&TargetCheck> = checked.targets.iter().filter(|target| target.verdict.differs()).collect();
    let of = match checked.targets.len() {
        1 => String::new(),
        all => format!(", in {} of {}", differing.len(), counted(all, "build")),
    };
    let mut out = vec![format!("not localized: the localized build differs from the original{of}")];
    for target in differing.iter().take(NAMED) {
        let program = checked.by.as_ref().map_or("", |by| by.program.as_str());
        let (what, difference) = match &target.verdict {
            Verdict::Broken { reason } => (format!("the original builds, the result does not: {reason}"), None),
            Verdict::Unsteady(difference) => (
                "the original does not build to the same twice, so nothing can be compared".to_owned(),
                Some(difference),
            ),
            Verdict::Differs(difference) if difference.objects.is_empty() => {
                (format!("the same objects in another order ({program})"), Some(difference))
            }
            Verdict::Differs(difference) => (format!("the outputs differ ({program})"), Some(difference)),
            _ => continue,
        };
        let which = if checked.targets.len() == 1 { String::new() } else { format!("{}: ", target.target) };
        out.push(format!("  {which}{what}"));
        out.extend(difference.into_iter().flat_map(objects));
        out.extend(target.outputs.iter().map(|kept| format!("  both outputs: {kept}")));
    }
    if let more @ 1.. = differing.len().saturating_sub(NAMED) {
        out.push(format!("  and {}", counted(more, "more build")));
    }
    out
}

fn objects(difference: &Difference) -> Vec<String> {
    let objects = difference.objects.iter().take(NAMED);
    let mut out: Vec<String> = objects.map(|object| format!("    {} {}", object.change, object.id)).collect();
    if let more @ 1.. = difference.objects.len().saturating_sub(NAMED) {
        out.push(format!("    and {more} more"));
    }
    out.extend(difference.diff.lines().map(|line| format!("    {line}")));
    out
}

/// Returns the error that ends a run whose results differ from their originals.
pub(super) fn refusal(checked: &BuildCheck) -> Option<Failure> {
    let differing = checked.targets.iter().filter(|target| target.verdict.differs());
    let steps: BTreeSet<Option<&str>> = differing.map(|one| one.next_step).collect();
    let failure = Failure::new("nothing was written: the localized build differs from the original");
    (!steps.is_empty()).then(|| steps.into_iter().flatten().fold(failure, Failure::hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Builder;

    #[test]
    fn builds_are_counted_by_what_came_of_them() {
        let target =
            |verdict| TargetCheck { target: "apps".to_owned(), verdict, size: 50, next_step: None, outputs: None };
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
                "verified: 1 build identical, 1 build verified before, from the same inputs, 1 root did not build before either, 1 root skipped",
            ),
            (vec![broken.clone(), broken], "not verified: 2 roots did not build before either"),
        ] {
            let checked = BuildCheck { by: Some(Builder::default()), targets, ..BuildCheck::default() };
            let out = proof(&checked, false);
            assert!(out[0].starts_with(&format!("  {line} (")), "{out:?}");
        }
    }
}
