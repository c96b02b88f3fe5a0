//! What people read of building original and result.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Result, Write};

use crate::build::{BuildCheck, Difference, TargetCheck, Verdict};
use crate::commands::messages::{counted, listed};
use crate::message::failure::Failure;
use crate::message::redact::visible;

/// How many objects, roots or reasons are named before the rest is only counted.
const NAMED: usize = 10;

/// Writes the result of the builds. Why roots were not built is said once for each reason, and with `verbose` for all.
pub(super) fn write_proof(out: &mut String, checked: &BuildCheck, verbose: bool) -> Result {
    if let Some(reason) = &checked.without {
        return writeln!(out, "  not verified: {}", visible(reason));
    }
    let by = checked.by.iter().map(|by| by.program.clone());
    let how: Vec<String> = by.chain(checked.network.map(|network| network.to_string())).collect();
    let how = if how.is_empty() { String::new() } else { format!(" ({})", how.join(", ")) };
    let is_verified = checked.targets.iter().any(|target| target.verdict.is_same());
    let not = if is_verified { "" } else { "not " };
    writeln!(out, "  {not}verified: {}{how}", counts(checked))?;
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
        writeln!(out, "  not built for {}: -v names them", counted(unbuilt.len(), "reason"))?;
    } else {
        for ((what, reason), targets) in unbuilt {
            writeln!(out, "  {what}: {}: {}", listed(targets, most), visible(reason))?;
        }
    }
    for step in checked.targets.iter().filter_map(|one| one.next_step).collect::<BTreeSet<&str>>() {
        writeln!(out, "  {step}")?;
    }
    Ok(())
}

/// Returns how many builds came to what.
fn counts(checked: &BuildCheck) -> String {
    if let [one] = checked.targets.as_slice()
        && one.verdict == Verdict::Identical
    {
        return format!("builds are identical: {} bytes", one.size);
    }
    let mut counts: BTreeMap<_, usize> = BTreeMap::new();
    for target in &checked.targets {
        // Its place in the line, what is counted, and how it is.
        let came_to = match &target.verdict {
            Verdict::Identical => (0, "build", "identical"),
            Verdict::VerifiedBefore => (1, "build", "verified before, from the same inputs"),
            Verdict::NotBuilt { .. } => (2, "root", "did not build before either"),
            Verdict::Skipped { .. } => (3, "root", "skipped"),
            Verdict::Differs(_) | Verdict::Unsteady(_) | Verdict::Broken { .. } => (4, "build", "different"),
        };
        *counts.entry(came_to).or_default() += 1;
    }
    let parts = counts.into_iter().map(|((_, what, how), count)| format!("{} {how}", counted(count, what)));
    parts.collect::<Vec<_>>().join(", ")
}

/// Writes how results differ from their originals, and nothing else: nothing was written.
pub(super) fn write_differences(out: &mut String, checked: &BuildCheck) -> Result {
    let differing: Vec<&TargetCheck> = checked.targets.iter().filter(|target| target.verdict.differs()).collect();
    let of = match checked.targets.len() {
        1 => String::new(),
        all => format!(", in {} of {}", differing.len(), counted(all, "build")),
    };
    writeln!(out, "not localized: the localized build differs from the original{of}")?;
    for target in differing.iter().take(NAMED) {
        write_target(out, checked, target)?;
    }
    if let more @ 1.. = differing.len().saturating_sub(NAMED) {
        writeln!(out, "  and {}", counted(more, "more build"))?;
    }
    Ok(())
}

/// Returns the error that ends a run whose results differ from their originals.
pub(super) fn refusal(checked: &BuildCheck) -> Option<Failure> {
    let differing = checked.targets.iter().filter(|target| target.verdict.differs());
    let steps: BTreeSet<Option<&str>> = differing.map(|one| one.next_step).collect();
    let failure = Failure::new("nothing was written: the localized build differs from the original");
    (!steps.is_empty()).then(|| steps.into_iter().flatten().fold(failure, Failure::hint))
}

/// Returns the prefix that names a target in its lines.
fn which(checked: &BuildCheck, target: &TargetCheck) -> String {
    match checked.targets.len() {
        1 => String::new(),
        _ => format!("{}: ", visible(&target.target)),
    }
}

fn write_target(out: &mut String, checked: &BuildCheck, target: &TargetCheck) -> Result {
    let which = which(checked, target);
    match &target.verdict {
        Verdict::Identical | Verdict::VerifiedBefore | Verdict::NotBuilt { .. } | Verdict::Skipped { .. } => {}
        Verdict::Broken { reason } => {
            writeln!(out, "  {which}the original builds, the result does not: {}", visible(reason))?
        }
        Verdict::Unsteady(difference) => {
            writeln!(out, "  {which}the original does not build to the same twice, so nothing can be compared")?;
            write_difference(out, difference)?;
        }
        Verdict::Differs(difference) => {
            let what =
                if difference.objects.is_empty() { "the same objects in another order" } else { "the outputs differ" };
            let program = checked.by.as_ref().map_or("", |by| by.program.as_str());
            writeln!(out, "  {which}{what} ({program})")?;
            write_difference(out, difference)?;
        }
    }
    target.outputs.iter().try_for_each(|kept| writeln!(out, "  both outputs: {}", visible(kept)))
}

fn write_difference(out: &mut String, difference: &Difference) -> Result {
    for object in difference.objects.iter().take(NAMED) {
        writeln!(out, "    {} {}", object.change, visible(&object.id))?;
    }
    if let more @ 1.. = difference.objects.len().saturating_sub(NAMED) {
        writeln!(out, "    and {more} more")?;
    }
    difference.diff.lines().try_for_each(|line| writeln!(out, "    {}", visible(line)))
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
            let mut out = String::new();
            write_proof(&mut out, &checked, false).unwrap();
            assert!(out.starts_with(&format!("  {line} (")), "{out}");
        }
    }
}
