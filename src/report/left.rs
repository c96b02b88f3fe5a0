//! The report about what stays remote.

use std::fmt::Write;

use super::messages::leave;
use super::{counted, visible};
use crate::config::Config;
use crate::graph;
use crate::record::{Left, LeftWhat};

/// How many are named before the rest is only counted.
const NAMED: usize = 5;

/// Writes what was accepted, on one line.
pub(super) fn write_accepted(out: &mut String, left: &[Left]) -> std::fmt::Result {
    let accepted: Vec<&Left> = left.iter().filter(|left| left.accepted).collect();
    if accepted.is_empty() { Ok(()) } else { writeln!(out, "  stays remote (allowed): {}", labels(&accepted)) }
}

/// Writes what was not accepted, how to bring it in or to accept it, and what happens otherwise: the last line.
pub(super) fn write_left(out: &mut String, left: &[Left]) -> std::fmt::Result {
    let left: Vec<&Left> = left.iter().filter(|left| !left.accepted).collect();
    if left.is_empty() {
        return Ok(());
    }
    if left.iter().any(|left| matches!(left.what, LeftWhat::Chart { .. })) {
        writeln!(out, "  to bring charts in: write `helm: true` in .kustomize-localize")?;
    }
    let exceptions = left.iter().filter_map(|left| {
        let rule = graph::rules(&left.what).first()?;
        Config::exception(*rule, &graph::subject(&left.what), "")
    });
    let exceptions: Vec<_> = exceptions.collect();
    for line in leave(&exceptions.iter().collect::<Vec<_>>()) {
        writeln!(out, "  {}", visible(&line))?;
    }
    writeln!(
        out,
        "`git kustomize-localize verify` will fail: {} left remote and not accepted: {}",
        counted(left.len(), "thing"),
        labels(&left)
    )
}

fn labels(left: &[&Left]) -> String {
    let names = left.iter().take(NAMED).map(|left| visible(&left.what.label()));
    let mut text = names.collect::<Vec<_>>().join(", ");
    if left.len() > NAMED {
        text.push_str(&format!(" and {} more", left.len() - NAMED));
    }
    text
}
