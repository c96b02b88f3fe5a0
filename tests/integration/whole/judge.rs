//! Nothing slips past the gate: the result of `check` for a commit is compared with what the real `kustomize build`
//! then does.
//!
//! A [`Variant`] is one kustomization root and what stands beside it. Many of them share a commit. Each is checked, and
//! then built in several ways ([`build::WAYS`]) from a real checkout, with programs on `PATH` that only write down how
//! they were called, and a proxy that answers 404 and writes down the requests. A variant for which anything
//! is called or asked although the check passes is a hole, and fails the test.

mod branch;
mod build;
mod call;
mod fuzz;
mod table;
mod variant;

use std::collections::BTreeMap;

use crate::support::{Kustomize, full};
use build::{BUILT, Judge, Verdict, WAYS};
use variant::Variant;

/// The table is worth what it holds.
const LEAST_VARIANTS: usize = 800;

#[test]
fn nothing_of_the_table_slips_past_the_gate() {
    let Some(kustomize) = Kustomize::find() else { return };
    assert!(table::variants().len() >= LEAST_VARIANTS);
    let variants = some_of_the_table(5);
    let mut judge = Judge::new(&kustomize);
    judge.refused = 10;
    let verdicts = judge.judge(&variants, "");
    assert_no_holes(&verdicts);
    assert_reaching(&verdicts);
}

/// Returns the table; by day one variant of so many of each class.
fn some_of_the_table(step: usize) -> Vec<Variant> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut variants = table::variants();
    variants.retain(|variant| {
        let of_class = seen.entry(variant.class).or_default();
        *of_class += 1;
        full() || *of_class % step == 1
    });
    variants
}

/// What a lock lists is not believed: whoever adds a file can list it.
#[test]
fn nothing_that_a_lock_lists_slips_past_the_gate() {
    let Some(kustomize) = Kustomize::find() else { return };
    let variants = some_of_the_table(12);
    let mut judge = Judge::new(&kustomize);
    (judge.refused, judge.listed) = (10, true);
    assert_no_holes(&judge.judge(&variants, ""));
}

#[track_caller]
fn assert_no_holes(verdicts: &[Verdict<'_>]) {
    let holes = verdicts.iter().filter(|one| one.is_hole());
    let shown: Vec<String> = holes.map(ToString::to_string).collect();
    assert!(
        shown.is_empty(),
        "{} of {} variants pass the check, and the build reaches out:\n{}",
        shown.len(),
        verdicts.len(),
        shown.concat()
    );
}

/// What no reader sees, a build does: a program that is told to see no field finds everything that a build reaches out
/// for.
#[test]
fn a_build_sees_what_no_reader_does() {
    let Some(kustomize) = Kustomize::find() else { return };
    let variants = some_of_the_table(usize::MAX);
    let mut judge = Judge::new(&kustomize);
    judge.sandbox.builds();
    judge.sandbox.set("KUSTOMIZE_LOCALIZE_BLIND_TO", "");
    // Without a helm a chart is not built, and nothing behind it is asked for.
    judge.sandbox.script("helm", "[ \"$1\" != version ] || echo v3.14.0");
    // What is wrong with one keeps all from being built.
    (judge.ways, judge.builds, judge.together) = (&WAYS[4..], BUILT, 1);
    let verdicts = judge.judge(&variants, "");
    assert_no_holes(&verdicts);
    let reaching = verdicts.iter().filter(|one| !one.reached.is_empty()).count();
    assert!(reaching > variants.len() / 4, "{reaching} of {}", variants.len());
}

/// A class of which no variant reaches out proves nothing. By day there are too few of some.
fn assert_reaching(verdicts: &[Verdict<'_>]) {
    let mut classes: BTreeMap<&str, usize> = BTreeMap::new();
    for verdict in verdicts {
        let reaching = classes.entry(verdict.variant.class).or_default();
        *reaching += usize::from(!verdict.reached.is_empty());
    }
    let least = usize::from(full());
    assert!(classes.values().all(|reaching| *reaching >= least), "{classes:?}");
    assert!(classes.values().sum::<usize>() > verdicts.len() / 20, "{classes:?}");
}

/// A judge that sees nothing is useless: with rules switched off, every access to the outside is a hole.
#[test]
fn the_judge_sees_a_hole() {
    let Some(kustomize) = Kustomize::find() else { return };
    let digest = "0123456789abcdef".repeat(4);
    let function = |image: &str| {
        format!(
            "transformers:\n- |-\n  apiVersion: a/v1\n  kind: A\n  metadata:\n    name: a\n    annotations:\n      config.kubernetes.io/function: '{{container: {{image: \"{image}\"}}}}'\n"
        )
    };
    let chart = "helmCharts:\n- name: web\n";
    let variants = [
        Variant::new("git", "git://", "resources: ['ssh://h.example/o/r']\n"),
        Variant::new("https", "GET", "crds: ['https://h.example/x.yaml']\n"),
        Variant::new("http", "GET", "crds: ['http://h.example/x.yaml']\n"),
        Variant::new("http", "loopback", "crds: ['http://{loopback}/x']\n"),
        Variant::new("helm", "pull", format!("{chart}  repo: https://h.example\n")),
        Variant::new("docker", "run", function("x:v1")),
        // These are what they should be.
        Variant::new("none", "local", "resources: [cm.yaml]\n"),
        Variant::new("none", "pinned", function(&format!("x@sha256:{digest}"))),
        Variant::new("none", "chart", chart)
            .with("charts/web/Chart.yaml", "name: web\nversion: 1.2.3\n")
            .with("charts/web/values.yaml", ""),
    ];
    let judge = Judge::new(&kustomize);
    let reached = |verdicts: &[Verdict<'_>]| -> Vec<&'static str> {
        let holes = verdicts.iter().filter(|one| one.is_hole());
        holes.map(|hole| hole.variant.class).collect()
    };
    let verdicts = judge.judge(&variants, "");
    assert_no_holes(&verdicts);
    let planted = "rules: {remote-reference: off, floating-ref: warning, remote-chart: off, function: warning}\n";
    let verdicts = judge.judge(&variants, planted);
    let expected = ["git", "https", "http", "http", "helm", "docker"];
    assert_eq!(reached(&verdicts), expected);
    for (verdict, what) in verdicts.iter().zip([
        "git init",
        "GET https://h.example/x.yaml",
        "GET http://h.example/x.yaml",
        "/x",
        "helm pull",
        "docker run",
    ]) {
        assert!(verdict.to_string().contains(what), "{what}: {verdict}");
    }
    // Half of what a rule finds is enough for a hole.
    let one = judge.judge(&variants, "rules: {remote-reference: off, floating-ref: error}\n");
    assert_eq!(reached(&one), ["https", "http", "http"]);
}
