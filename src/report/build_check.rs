//! The report about building original and result.

use std::collections::BTreeSet;
use std::fmt::Write;

use serde::Serialize;

use super::{counted, visible};
use crate::build_check::{BuildCheck, Difference, DifferenceKind, TargetCheck, Verdict};
use crate::failure::{Failure, short};
use crate::record::Change;

/// How many objects, or roots, are named before the rest is only counted.
const NAMED: usize = 10;

/// Writes the result of the builds.
pub(super) fn write_proof(out: &mut String, checked: &BuildCheck) -> std::fmt::Result {
    if let Some(reason) = &checked.without {
        return writeln!(out, "  not verified by a build: {}", visible(reason));
    }
    let program = program(checked);
    let network = checked.network.map(|network| network.to_string());
    let how = format!("{program}, {}", network.unwrap_or_default());
    let (before, built): (Vec<_>, Vec<_>) = checked
        .targets
        .iter()
        .partition(|target| target.verdict == Verdict::VerifiedBefore);
    let same = built.iter().filter(|target| target.verdict.is_same());
    let bytes: u64 = same.clone().map(|target| target.size).sum();
    let annotated = |target: &&&TargetCheck| target.verdict == Verdict::AnnotationsOnly;
    let but = if same.clone().any(|target| annotated(&target)) {
        ", but for the annotations that name paths"
    } else {
        ""
    };
    match (same.count(), checked.targets.len()) {
        (0, _) => {}
        (1, 1) => writeln!(
            out,
            "  verified: it builds to the same {bytes} bytes{but} ({how})"
        )?,
        _ => writeln!(
            out,
            "  verified: {} the same {bytes} bytes{but} ({how})",
            giving(&built)
        )?,
    }
    match (before.len(), checked.targets.len()) {
        (0, _) => {}
        (1, 1) => writeln!(out, "  verified before, from the same inputs ({program})")?,
        (before, _) => writeln!(
            out,
            "  verified before: {} from the same inputs ({program})",
            counted(before, "build")
        )?,
    }
    for target in built {
        write_target(out, checked, target)?;
        for step in target.next_steps() {
            writeln!(out, "  {}{}", which(checked, target), visible(&step))?;
        }
    }
    Ok(())
}

/// Returns how many builds give the same, with the verb; those of what engines deploy are counted by themselves.
fn giving(built: &[&TargetCheck]) -> String {
    let counts = |is_engine: bool| {
        let of_kind = built.iter().filter(|target| target.is_engine == is_engine);
        let all = of_kind.clone().count();
        let same = of_kind.filter(|target| target.verdict.is_same()).count();
        let builds = counted(all, "build");
        let how = if is_engine { " as deployed" } else { "" };
        match (same, all) {
            (_, 0) => None,
            _ if same == all => Some((same, format!("{builds}{how}"))),
            _ => Some((same, format!("{same} of {builds}{how}"))),
        }
    };
    match (counts(false), counts(true)) {
        (Some((_, plain)), Some((_, engines))) => format!("{plain} and {engines} give"),
        (Some((same, one)), None) | (None, Some((same, one))) => {
            format!("{one} {}", if same == 1 { "gives" } else { "give" })
        }
        (None, None) => String::new(),
    }
}

/// Writes how results differ from their originals, and nothing else: nothing was written.
pub(super) fn write_differences(out: &mut String, checked: &BuildCheck) -> std::fmt::Result {
    let differs = |target: &&TargetCheck| target.verdict.differs();
    let differing: Vec<&TargetCheck> = checked.targets.iter().filter(differs).collect();
    let of = match checked.targets.len() {
        1 => String::new(),
        all => format!(", in {} of {}", differing.len(), counted(all, "build")),
    };
    writeln!(
        out,
        "not localized: the localized build differs from the original{of}"
    )?;
    for target in differing.iter().take(NAMED) {
        write_target(out, checked, target)?;
    }
    if let more @ 1.. = differing.len().saturating_sub(NAMED) {
        writeln!(out, "  and {}", counted(more, "more build"))?;
    }
    for change in &checked.moved {
        if let Change::Moved { label, old, new } = change {
            writeln!(
                out,
                "  upstream has moved meanwhile: {} {} -> {}",
                visible(label),
                short(old.hex()),
                short(new.hex())
            )?;
        }
    }
    if !checked.converted.is_empty() {
        let named: Vec<_> = checked
            .converted
            .iter()
            .take(NAMED)
            .map(String::as_str)
            .collect();
        writeln!(
            out,
            "  by `.gitattributes` a checkout changes the bytes of files on one side only: {}{}",
            visible(&named.join(", ")),
            match checked.converted.len().saturating_sub(NAMED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            }
        )?;
        writeln!(
            out,
            "  write attributes that hold in both places: a pattern without a path, or one more line"
        )?;
    }
    if let Some(kept) = &checked.kept {
        let kept = kept.display().to_string();
        writeln!(out, "  both outputs: {}", visible(&kept))?;
    }
    Ok(())
}

/// Returns the error that ends a run whose results differ from their originals.
pub(super) fn refusal(checked: &BuildCheck) -> Option<Failure> {
    let differs = |target: &&TargetCheck| target.verdict.differs();
    let mut failure = checked.differs().then(|| {
        Failure::new("nothing was written: the localized build differs from the original")
    })?;
    let steps = checked.targets.iter().filter(differs);
    let steps: BTreeSet<String> = steps.flat_map(TargetCheck::next_steps).collect();
    for step in steps {
        failure = failure.hint(step);
    }
    Some(failure)
}

fn program(checked: &BuildCheck) -> &str {
    checked.by.as_ref().map_or("", |by| by.program.as_str())
}

/// Returns the prefix that names a target in its lines.
fn which(checked: &BuildCheck, target: &TargetCheck) -> String {
    match checked.targets.len() {
        1 => String::new(),
        _ => format!("{}: ", visible(&target.target)),
    }
}

fn write_target(out: &mut String, checked: &BuildCheck, target: &TargetCheck) -> std::fmt::Result {
    let which = which(checked, target);
    let program = program(checked);
    match &target.verdict {
        Verdict::Identical | Verdict::AnnotationsOnly | Verdict::VerifiedBefore => {}
        Verdict::NotBuilt { reason } => writeln!(
            out,
            "  not verified: {which}{program} does not build the original: {}",
            visible(reason)
        )?,
        Verdict::Broken { reason } => writeln!(
            out,
            "  {which}the original builds, the result does not: {}",
            visible(reason)
        )?,
        Verdict::Unsteady(difference) => {
            writeln!(
                out,
                "  {which}the original does not build to the same twice, so nothing can be compared"
            )?;
            write_difference(out, difference)?;
        }
        Verdict::Differs(difference) => {
            let what = match difference.kind {
                DifferenceKind::OrderOnly => "the same objects in another order",
                DifferenceKind::Annotations => {
                    "annotations about the build differ, which the kustomization does not ask for"
                }
                DifferenceKind::Spelling => "the same objects, written in another way",
                DifferenceKind::Content => "the outputs differ",
            };
            writeln!(out, "  {which}{what} ({program})")?;
            write_difference(out, difference)?;
        }
    }
    if let Some(live) = &target.live {
        let live = visible(live);
        writeln!(
            out,
            "  {which}the original was built with the live upstream: {live}"
        )?;
    }
    Ok(())
}

fn write_difference(out: &mut String, difference: &Difference) -> std::fmt::Result {
    for object in difference.objects.iter().take(NAMED) {
        writeln!(out, "    {} {}", object.change.name(), visible(&object.id))?;
    }
    if difference.objects.len() > NAMED {
        let more = difference.objects.len() - NAMED;
        writeln!(out, "    and {more} more")?;
    }
    for line in difference.diff.lines() {
        writeln!(out, "    {}", visible(line))?;
    }
    Ok(())
}

/// The result of the builds, as JSON.
#[derive(Serialize)]
pub(super) struct JsonBuildCheck<'a> {
    /// The program that built, or would have; none if there is none.
    program: Option<&'a str>,
    /// Why nothing was built.
    without: Option<&'a str>,
    /// How the network was closed for the result; none where nothing was built.
    network: Option<&'static str>,
    targets: Vec<JsonTarget<'a>>,
    moved: Vec<super::remotes::JsonChange<'a>>,
    /// The files that a checkout converts on one side only.
    converted: &'a [String],
}

#[derive(Serialize)]
struct JsonTarget<'a> {
    target: &'a str,
    verdict: &'static str,
    size: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<JsonDifference<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next_steps: Vec<String>,
    /// Why the original was built against its live upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<&'a str>,
    /// Where both outputs are.
    #[serde(skip_serializing_if = "Option::is_none")]
    outputs: Option<String>,
}

#[derive(Serialize)]
struct JsonDifference<'a> {
    kind: &'static str,
    objects: Vec<JsonObject<'a>>,
    diff: &'a str,
}

#[derive(Serialize)]
struct JsonObject<'a> {
    id: &'a str,
    change: &'static str,
}

impl<'a> From<&'a BuildCheck> for JsonBuildCheck<'a> {
    fn from(checked: &'a BuildCheck) -> Self {
        JsonBuildCheck {
            program: checked.by.as_ref().map(|by| by.program.as_str()),
            without: checked.without.as_deref(),
            network: checked.network.map(|network| network.name()),
            targets: checked.targets.iter().map(JsonTarget::from).collect(),
            moved: checked.moved.iter().map(Into::into).collect(),
            converted: &checked.converted,
        }
    }
}

impl<'a> From<&'a TargetCheck> for JsonTarget<'a> {
    fn from(target: &'a TargetCheck) -> Self {
        let (reason, difference) = match &target.verdict {
            Verdict::Identical | Verdict::AnnotationsOnly | Verdict::VerifiedBefore => (None, None),
            Verdict::Broken { reason } | Verdict::NotBuilt { reason } => {
                (Some(reason.as_str()), None)
            }
            Verdict::Differs(difference) | Verdict::Unsteady(difference) => {
                (None, Some(difference))
            }
        };
        JsonTarget {
            target: &target.target,
            verdict: target.verdict.name(),
            size: target.size,
            reason,
            difference: difference.map(|difference| JsonDifference {
                kind: difference.kind.name(),
                objects: difference
                    .objects
                    .iter()
                    .map(|object| JsonObject {
                        id: &object.id,
                        change: object.change.name(),
                    })
                    .collect(),
                diff: &difference.diff,
            }),
            next_steps: target.next_steps(),
            live: target.live.as_deref(),
            outputs: target.kept.as_ref().map(|kept| kept.display().to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Builder;

    #[test]
    fn builds_are_counted_with_those_of_engines() {
        let target = |is_engine, verdict| TargetCheck {
            target: "apps".to_owned(),
            is_engine,
            verdict,
            size: 50,
            live: None,
            kept: None,
        };
        let plain = target(false, Verdict::Identical);
        let engine = target(true, Verdict::Identical);
        let before = target(false, Verdict::VerifiedBefore);
        let broken = target(
            false,
            Verdict::NotBuilt {
                reason: "no".to_owned(),
            },
        );
        for (targets, line) in [
            (vec![plain.clone()], "it builds to the same 50 bytes"),
            (
                vec![plain.clone(), engine.clone()],
                "1 build and 1 build as deployed give the same 100 bytes",
            ),
            (
                vec![broken.clone(), plain.clone(), engine.clone()],
                "1 of 2 builds and 1 build as deployed give the same 100 bytes",
            ),
            (
                vec![before.clone(), engine],
                "1 build as deployed gives the same 50 bytes",
            ),
            (
                vec![plain.clone(), before],
                "1 build gives the same 50 bytes",
            ),
            (vec![plain, broken], "1 of 2 builds gives the same 50 bytes"),
        ] {
            let checked = BuildCheck {
                by: Some(Builder::default()),
                targets,
                ..BuildCheck::default()
            };
            let mut out = String::new();
            write_proof(&mut out, &checked).unwrap();
            assert!(out.starts_with(&format!("  verified: {line} (")), "{out}");
        }
    }
}
