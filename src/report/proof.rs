//! What is said about building original and result.

use std::fmt::Write;

use super::{short, visible};
use crate::prove::{Proof, Verdict};
use crate::record::Change;

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
    match (same.count(), proof.targets.as_slice()) {
        (0, _) => {}
        (1, [_]) => writeln!(
            out,
            "  verified: it builds to the same {bytes} bytes ({how})"
        )?,
        (same, all) => writeln!(
            out,
            "  verified: {same} of {} build to the same {bytes} bytes ({how})",
            all.len()
        )?,
    }
    for target in &proof.targets {
        let which = match proof.targets.len() {
            1 => String::new(),
            _ => format!("{}: ", visible(&target.target)),
        };
        match &target.verdict {
            Verdict::Identical => {}
            Verdict::NotBuilt { reason } => writeln!(
                out,
                "  not verified: {which}{program} does not build the original: {}",
                visible(reason)
            )?,
            Verdict::Unsteady(what) => writeln!(
                out,
                "  {which}the original does not build to the same twice; {} ({how})",
                visible(what)
            )?,
            Verdict::Differs(what) => {
                writeln!(out, "  {which}{} ({how})", visible(what))?;
            }
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
