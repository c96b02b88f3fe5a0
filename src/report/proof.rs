//! What is said about building original and result.

use std::fmt::Write;

use serde::Serialize;

use super::visible;
use crate::failure::short;
use crate::prove::{Difference, DifferenceKind, Proof, TargetProof, Verdict};
use crate::record::Change;

/// How many objects are named before the rest is only counted.
const NAMED: usize = 10;

/// Says what came of building.
pub(super) fn write_proof(out: &mut String, proof: &Proof) -> std::fmt::Result {
    if let Some(reason) = &proof.without {
        return writeln!(out, "  not verified by a build: {}", visible(reason));
    }
    let program = proof.program.as_deref().unwrap_or_default();
    let network = proof.network.map(|network| network.to_string());
    let how = format!("{program}, {}", network.unwrap_or_default());
    let same = proof
        .targets
        .iter()
        .filter(|target| target.verdict.is_same());
    let bytes: u64 = same.clone().map(|target| target.size).sum();
    let annotated = |target: &TargetProof| target.verdict == Verdict::AnnotationsOnly;
    let but = match same.clone().any(annotated) {
        true => ", but for the annotations that name paths",
        false => "",
    };
    match (same.count(), proof.targets.as_slice()) {
        (0, _) => {}
        (1, [_]) => writeln!(
            out,
            "  verified: it builds to the same {bytes} bytes{but} ({how})"
        )?,
        (same, all) => writeln!(
            out,
            "  verified: {same} of {} build to the same {bytes} bytes{but} ({how})",
            all.len()
        )?,
    }
    for target in &proof.targets {
        write_target(out, proof, target)?;
    }
    for change in &proof.moved {
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
    Ok(())
}

fn write_target(out: &mut String, proof: &Proof, target: &TargetProof) -> std::fmt::Result {
    let which = match proof.targets.len() {
        1 => String::new(),
        _ => format!("{}: ", visible(&target.target)),
    };
    let program = proof.program.as_deref().unwrap_or_default();
    match &target.verdict {
        Verdict::Identical | Verdict::AnnotationsOnly => {}
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
    for step in target.next_steps() {
        writeln!(out, "  {which}{}", visible(&step))?;
    }
    if let Some(live) = &target.live {
        let live = visible(live);
        writeln!(
            out,
            "  {which}the original was built with the live upstream: {live}"
        )?;
    }
    if let Some(kept) = &target.kept {
        let kept = kept.display().to_string();
        writeln!(out, "  {which}both outputs: {}", visible(&kept))?;
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

/// What came of building, for machines.
#[derive(Serialize)]
pub(super) struct JsonProof<'a> {
    /// What built; none where nothing did.
    program: Option<&'a str>,
    /// Why nothing was built.
    without: Option<&'a str>,
    /// How the network was closed for the result.
    network: Option<&'static str>,
    targets: Vec<JsonTarget<'a>>,
    moved: Vec<super::lock::JsonChange<'a>>,
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

impl<'a> From<&'a Proof> for JsonProof<'a> {
    fn from(proof: &'a Proof) -> Self {
        JsonProof {
            program: proof.program.as_deref(),
            without: proof.without.as_deref(),
            network: proof.network.map(|network| network.name()),
            targets: proof.targets.iter().map(JsonTarget::from).collect(),
            moved: proof.moved.iter().map(Into::into).collect(),
        }
    }
}

impl<'a> From<&'a TargetProof> for JsonTarget<'a> {
    fn from(target: &'a TargetProof) -> Self {
        let (reason, difference) = match &target.verdict {
            Verdict::Identical | Verdict::AnnotationsOnly => (None, None),
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
