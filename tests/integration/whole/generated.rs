//! Random trees of kustomizations, local and remote: whatever kustomize builds is localized, and then builds to the
//! same bytes without a network; and a branch of the same source has the same tree, whatever lies between.
//!
//! The trees are those of a seed, the same on every machine. What a failure prints makes the one tree again:
//! `KUSTOMIZE_LOCALIZE_SEED` (default 1), `KUSTOMIZE_LOCALIZE_TREES` (how many; default 10, at night 200),
//! `KUSTOMIZE_LOCALIZE_TREE` (this one only). What a tree finds gets a test of its own as well.

mod write;

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use git_kustomize_localize::seams::{processors, side_by_side};
use serde_json::json;

use crate::support::{Kustomize, Output, Random, World, files, full};
use write::{Trees, Writer, Written};

/// How many trees share repositories, a server and the run in place.
const TOGETHER: usize = 10;

/// The result for one tree.
enum Verdict {
    /// kustomize does not build it, for this reason.
    NotBuilt(String),
    Same(Written),
    Broken(String),
}

fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Returns the choices that a tree is made by.
fn choices(seed: usize, index: usize) -> Random {
    Random::of(&format!("{seed} {index}"))
}

#[test]
fn random_trees_build_to_the_same() {
    let Some(kustomize) = Kustomize::find() else { return };
    let seed = number("KUSTOMIZE_LOCALIZE_SEED", 1);
    let indices: Vec<usize> = match env::var("KUSTOMIZE_LOCALIZE_TREE") {
        Ok(index) => vec![index.parse().unwrap()],
        Err(_) => (0..number("KUSTOMIZE_LOCALIZE_TREES", if full() { 200 } else { 10 })).collect(),
    };
    let batches: Vec<(usize, &[usize])> = indices.chunks(TOGETHER).enumerate().collect();
    let verdicts = side_by_side(&batches, processors(), |_, (number, batch)| {
        let mut trees: Vec<Random> = batch.iter().map(|index| choices(seed, *index)).collect();
        tried(&kustomize, &mut trees, number.is_multiple_of(2))
    });

    let mut covered: BTreeMap<String, usize> = BTreeMap::new();
    let (mut same, mut not_built, mut broken) = (0, Vec::new(), Vec::new());
    for (index, verdict) in indices.iter().zip(verdicts.into_iter().flatten()) {
        match verdict {
            Verdict::Same(written) => {
                same += 1;
                for field in written.covered {
                    *covered.entry(field).or_default() += 1;
                }
            }
            Verdict::NotBuilt(reason) => not_built.push(format!("{index}: {reason}")),
            Verdict::Broken(why) => broken.push((index, why)),
        }
    }
    let count = indices.len();
    println!("seed {seed}: {same} of {count} trees are the same");
    println!("{covered:#?}\nnot built: {not_built:#?}\nbroken: {broken:#?}");
    if let Some((index, why)) = broken.first() {
        let all: Vec<_> = broken.iter().map(|(index, _)| index).collect();
        let why = smallest(&kustomize, choices(seed, **index), why.clone());
        panic!(
            "{} trees of seed {seed} are not the same: {all:?}; to try the first alone:\n\
             KUSTOMIZE_LOCALIZE_SEED={seed} KUSTOMIZE_LOCALIZE_TREE={index} cargo test --test integration generated::random\n\
             made as small as can be: {why}",
            broken.len()
        );
    }
    if count >= 60 {
        assert!(same * 10 >= count * 8, "only {same} of {count} are built");
        let fields: BTreeSet<&str> = covered.keys().filter_map(|key| key.split(' ').next()).collect();
        let expected = reference_fields();
        let missing: Vec<&str> =
            expected.filter(|field| !is_tested_elsewhere(field) && !fields.contains(field)).collect();
        assert!(missing.is_empty(), "no tree has {missing:?}");
    }
}

/// Returns every field in which a string may name a file or a root. A test beside the table holds that the list is
/// complete.
pub(crate) fn reference_fields() -> impl Iterator<Item = &'static str> {
    include_str!("../../../src/kustomization/tests/reference_fields.txt").lines()
}

/// Charts need helm, or what stands in for it.
fn is_tested_elsewhere(field: &str) -> bool {
    field.starts_with("helm") || field.starts_with("HelmChartInflationGenerator")
}

/// Leaves out choices of a tree that fails, as long as it fails. Returns why the smallest does.
fn smallest(kustomize: &Kustomize, tree: Random, mut why: String) -> String {
    let mut trees = [tree];
    tried(kustomize, &mut trees, true);
    let mut made = trees[0].made().to_vec();
    let mut left = number("KUSTOMIZE_LOCALIZE_SHRINK", 60);
    let mut size = made.len() / 2;
    while size > 0 && left > 0 {
        let mut at = 0;
        while at < made.len() && left > 0 {
            left -= 1;
            let mut fewer = made.clone();
            fewer.drain(at..made.len().min(at + size));
            let verdict = tried(kustomize, &mut [Random::again(fewer.clone())], true).pop();
            if let Some(Verdict::Broken(found)) = verdict {
                (made, why) = (fewer, found);
            } else {
                at += size;
            }
        }
        size /= 2;
    }
    why
}

/// Writes trees into one world.
fn laid_out(choices: &mut [Random]) -> (Trees, Vec<Written>) {
    let mut trees = Trees::new();
    let written = choices.iter_mut().enumerate().map(|(number, random)| {
        let writer = Writer { trees: &mut trees, random, tree: format!("t{number}"), count: 0, covered: Vec::new() };
        writer.write()
    });
    let written = written.collect();
    trees.commit();
    (trees, written)
}

/// Localizes and builds each of some trees in one world: as copies, and where they stand if that is wanted too.
fn tried(kustomize: &Kustomize, choices: &mut [Random], in_place: bool) -> Vec<Verdict> {
    let (trees, written) = laid_out(choices);
    let world = &trees.world;
    let mut verdicts: Vec<Option<Verdict>> = Vec::new();
    let mut builds = Vec::new();
    for (number, one) in written.iter().enumerate() {
        let build = world.build(kustomize, world.work.path(), &one.target, &[], false);
        verdicts.push(match build.status {
            0 => copied(world, kustomize, one, number, &build).map(Verdict::Broken),
            _ => Some(Verdict::NotBuilt(last_line(&build.stderr))),
        });
        builds.push(build);
    }
    let targets: Vec<&str> = written
        .iter()
        .zip(&verdicts)
        .filter(|(_, verdict)| verdict.is_none())
        .map(|(one, _)| one.target.as_str())
        .collect();
    // One run, but twice the builds.
    if !targets.is_empty() && (in_place || written.len() == 1) {
        let args = ["vendor", "--no-verify", "--quiet"];
        let run = world.work.run(&[&args, &targets[..]].concat());
        for ((one, verdict), before) in written.iter().zip(&mut verdicts).zip(&builds) {
            if verdict.is_some() {
                continue;
            }
            let found = match run.status {
                0 => {
                    let after = world.build(kustomize, world.work.path(), &one.target, &[], true);
                    difference("in place", before, &after)
                }
                _ => Some(format!("in place: {run:?}")),
            };
            *verdict = found.map(Verdict::Broken);
        }
        branched(world, &written, &mut verdicts);
    }
    written
        .into_iter()
        .zip(verdicts)
        .map(|(one, verdict)| match verdict {
            Some(Verdict::Broken(why)) => Verdict::Broken(format!("{why}\n{}", told(&trees, &one.scope))),
            Some(verdict) => verdict,
            None => Verdict::Same(one),
        })
        .collect()
}

/// Localizes the trees that are the same so far on a branch, again after another commit, and again without that: the
/// same source must give the same tree.
fn branched(world: &World, written: &[Written], verdicts: &mut [Option<Verdict>]) {
    let work = &world.work;
    // What names an absolute path is committed nowhere.
    let can_be_committed = |tree: &Written| !tree.covered.iter().any(|field| field.ends_with(" absolute"));
    let trees = written.iter().zip(verdicts);
    let mut trees: Vec<_> = trees.filter(|(tree, verdict)| verdict.is_none() && can_be_committed(tree)).collect();
    if trees.is_empty() {
        return;
    }
    work.git(&["reset", "--quiet", "--hard"]);
    work.git(&["clean", "--quiet", "-ffdx"]);
    let scopes: Vec<&str> = trees.iter().map(|(tree, _)| tree.scope.as_str()).collect();
    work.write(".kustomize-localize", json!({"include": scopes}).to_string());
    let lock = work.run(&["lock", "--quiet"]);
    work.commit("lock");
    let branch = || {
        let run = work.run(&["branch", "--no-verify", "--quiet"]);
        (run.status == 0).then(|| work.git(&["rev-parse", "localized/main^{tree}"])).ok_or_else(|| format!("{run:?}"))
    };
    let first = branch();
    work.write("between", "");
    work.commit("between");
    let second = branch();
    work.git(&["rm", "--quiet", "between"]);
    work.commit("without");
    let (first, second, third) = match (first, second, branch()) {
        (Ok(first), Ok(second), Ok(third)) => (first, second, third),
        (first, second, third) => {
            let why = format!("on a branch: {lock:?}\n{first:?}\n{second:?}\n{third:?}");
            return trees.iter_mut().for_each(|(_, verdict)| **verdict = Some(Verdict::Broken(why.clone())));
        }
    };
    for (tree, verdict) in trees {
        let differs = |other: &str| work.git(&["diff", &first, other, "--", &tree.scope, "kustomize-localize.lock"]);
        let differs = differs(&second) + &differs(&third);
        if !differs.is_empty() {
            *verdict = Some(Verdict::Broken(format!("on a branch, the same source gives another tree:\n{differs}")));
        }
    }
}

/// Localizes one tree into a directory of its own, and returns what differs.
fn copied(world: &World, kustomize: &Kustomize, one: &Written, number: usize, before: &Output) -> Option<String> {
    let copy = format!("copy-{number}");
    let place = world.sandbox.path(&copy);
    let place = place.to_str().unwrap();
    let args = [&one.target, place, "--scope", &one.scope, "--no-commit", "--no-verify", "--quiet"];
    let run = world.work.run(&args);
    if run.status != 0 {
        return Some(format!("{run:?}"));
    }
    let inside = one.target.strip_prefix(&one.scope).unwrap();
    let target = format!("./{inside}");
    let after = world.build(kustomize, Path::new(place), &target, &[], true);
    difference("copied", before, &after)
}

fn difference(what: &str, before: &Output, after: &Output) -> Option<String> {
    if after.status != 0 {
        return Some(format!("{what}, it does not build: {}", after.stderr));
    }
    if before.stdout == after.stdout {
        return None;
    }
    let lines = |text: &str| -> Vec<String> { text.lines().map(str::to_owned).collect() };
    let (one, other) = (lines(&before.stdout), lines(&after.stdout));
    let mut text = format!("{what}, it builds to something else:\n");
    for line in one.iter().filter(|line| !other.contains(line)).take(20) {
        let _ = writeln!(text, "-{line}");
    }
    for line in other.iter().filter(|line| !one.contains(line)).take(20) {
        let _ = writeln!(text, "+{line}");
    }
    Some(text)
}

fn last_line(text: &str) -> String {
    text.trim().lines().last().unwrap_or_default().to_owned()
}

/// Shows the files of one tree.
fn told(trees: &Trees, tree: &str) -> String {
    let work = &trees.world.work;
    work.git(&["reset", "--quiet", "--hard"]);
    work.git(&["clean", "--quiet", "-ffdx"]);
    let mut text = String::new();
    for place in Trees::places() {
        let top = trees.repo(place).path().join(tree);
        for (path, what) in files(&top) {
            match fs::read_to_string(top.join(&path)) {
                Ok(body) if !what.starts_with("link") => {
                    let _ = writeln!(text, "=== {place:?} {path}\n{body}");
                }
                _ => drop(writeln!(text, "=== {place:?} {path} {what}")),
            }
        }
    }
    text
}
