//! Random trees of kustomizations, local and remote: whatever kustomize builds is localized, and then builds to the
//! same bytes without a network.
//!
//! The trees are those of a seed, the same on every machine. What a failure prints makes the one tree again:
//! `KUSTOMIZE_LOCALIZE_SEED` (default 1), `KUSTOMIZE_LOCALIZE_TREES` (how many; default 100, at night 200),
//! `KUSTOMIZE_LOCALIZE_TREE` (this one only). What a tree finds gets a test of its own as well.

mod plan;
mod write;
mod yaml;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

use proptest::strategy::{Strategy as _, ValueTree};
use proptest::test_runner::{Config, TestRunner};

use crate::support::{Kustomize, Output, Random, Repo, World, full};
use crate::whole::old_against_new::{Setting, Stage, script};
use plan::RootPlan;
use write::{Files, OWNER, Place, REPOSITORIES, Writer, Written};

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

/// Returns the plan of a tree, which can be made smaller.
fn planned(seed: usize, index: usize) -> Box<dyn ValueTree<Value = RootPlan>> {
    let rng = Random::of(&format!("{seed} {index}")).into_rng();
    let mut runner = TestRunner::new_with_rng(Config::default(), rng);
    Box::new(plan::tree().new_tree(&mut runner).unwrap())
}

#[test]
fn random_trees_build_to_the_same() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let seed = number("KUSTOMIZE_LOCALIZE_SEED", 1);
    let indices: Vec<usize> = match env::var("KUSTOMIZE_LOCALIZE_TREE") {
        Ok(index) => vec![index.parse().unwrap()],
        Err(_) => (0..number("KUSTOMIZE_LOCALIZE_TREES", if full() { 200 } else { 100 })).collect(),
    };
    let batches: Vec<&[usize]> = indices.chunks(TOGETHER).collect();
    let next = AtomicUsize::new(0);
    let verdicts = Mutex::new(BTreeMap::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some(batch) = batches.get(number) else {
                return;
            };
            let plans: Vec<RootPlan> = batch
                .iter()
                .map(|index| planned(seed, *index).current())
                .collect();
            let found = tried(&kustomize, &plans, number.is_multiple_of(2));
            verdicts
                .lock()
                .unwrap()
                .extend(batch.iter().copied().zip(found));
        }
    };
    let workers = thread::available_parallelism().map_or(2, usize::from);
    thread::scope(|threads| {
        for _ in 0..workers {
            threads.spawn(work);
        }
    });

    let mut covered: BTreeMap<String, usize> = BTreeMap::new();
    let (mut same, mut not_built, mut broken) = (0, Vec::new(), Vec::new());
    for (index, verdict) in verdicts.into_inner().unwrap() {
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
    println!(
        "seed {seed}: {same} of {} trees are the same",
        indices.len()
    );
    for (field, count) in &covered {
        println!("{count:5} {field}");
    }
    for reason in &not_built {
        println!("not built: {reason}");
    }
    for (index, why) in &broken {
        println!("broken: {index}: {why}");
    }
    if let Some((index, why)) = broken.first() {
        let all: Vec<usize> = broken.iter().map(|(index, _)| *index).collect();
        let (plan, why) =
            smallest(&kustomize, seed, *index).unwrap_or_else(|| (String::new(), why.clone()));
        panic!(
            "{} trees of seed {seed} are not the same: {all:?}; to try the first alone:\n\
             KUSTOMIZE_LOCALIZE_SEED={seed} KUSTOMIZE_LOCALIZE_TREE={index} cargo test --test integration generated::random\n\
             made as small as can be: {plan}\n{why}",
            broken.len()
        );
    }
    if indices.len() >= 100 {
        assert!(
            same * 10 >= indices.len() * 8,
            "kustomize builds only {same} of {} trees",
            indices.len()
        );
        let fields: BTreeSet<&str> = covered
            .keys()
            .filter_map(|key| key.split(' ').next())
            .collect();
        let expected = git_kustomize_localize::kustomization::reference_fields();
        let missing: Vec<&String> = expected
            .iter()
            .filter(|field| !is_tested_elsewhere(field) && !fields.contains(field.as_str()))
            .collect();
        assert!(missing.is_empty(), "no tree has {missing:?}");
    }
}

/// Charts need helm, or what stands in for it.
fn is_tested_elsewhere(field: &str) -> bool {
    field.starts_with("helm") || field.starts_with("HelmChartInflationGenerator")
}

/// Makes the plan of a tree that fails smaller, as long as it fails.
fn smallest(kustomize: &Kustomize, seed: usize, index: usize) -> Option<(String, String)> {
    let mut tree = planned(seed, index);
    let mut found = None;
    for _ in 0..number("KUSTOMIZE_LOCALIZE_SHRINK", 60) {
        let plan = tree.current();
        let fails = match tried(kustomize, std::slice::from_ref(&plan), true).pop() {
            Some(Verdict::Broken(why)) => {
                found = Some((format!("{plan:#?}"), why));
                true
            }
            _ => false,
        };
        let goes_on = if fails {
            tree.simplify()
        } else {
            tree.complicate()
        };
        if !goes_on {
            break;
        }
    }
    found
}

/// So many trees, for a comparison of programs.
pub(crate) fn settings(count: usize) -> Vec<Setting> {
    let setting = |first: usize| -> Setting {
        Box::new(move || {
            let plans: Vec<RootPlan> = (first..first + TOGETHER)
                .map(|index| planned(1, index).current())
                .collect();
            let (world, _, written) = laid_out(&plans);
            let check: &[&str] = &["check", "--format=json"];
            let here = ["--in-place", "--no-commit", "--no-verify"];
            let mut scripts = vec![script(&[
                check,
                &["lock"],
                check,
                &["--in-place"],
                &["--in-place"],
                &["verify"],
            ])];
            for one in &written {
                let copy = [&one.target, "../copy", "--scope", &one.scope, "--no-commit"];
                let here = [&here[..], &[&one.target]].concat();
                scripts.push(script(&[&copy]));
                scripts.push(script(&[&here, &here]));
            }
            Stage::of(&format!("trees {first}"), world, scripts)
        })
    };
    (0..count).step_by(TOGETHER).map(setting).collect()
}

/// Writes the trees into one world.
fn laid_out(plans: &[RootPlan]) -> (World, Files, Vec<Written>) {
    let world = World::new();
    let upstream = world.sandbox.path("upstream");
    let base = format!("file://{}/", upstream.display());
    world.sandbox.pretend("git@github.com:", &base);
    let mut files = Files::default();
    let written: Vec<Written> = plans
        .iter()
        .enumerate()
        .map(|(number, plan)| {
            let writer = Writer {
                files: &mut files,
                top: world.work.path().display().to_string(),
                upstream: upstream.display().to_string(),
                tree: format!("t{number}"),
                count: 0,
                covered: Vec::new(),
            };
            writer.write(plan)
        })
        .collect();
    put(&world, &files);
    (world, files, written)
}

/// Localizes and builds each of some trees in one world: as copies, and where they stand if that is wanted too.
fn tried(kustomize: &Kustomize, plans: &[RootPlan], in_place: bool) -> Vec<Verdict> {
    let (world, files, written) = laid_out(plans);
    let mut verdicts: Vec<Option<Verdict>> = Vec::new();
    let mut builds = Vec::new();
    for (number, one) in written.iter().enumerate() {
        let build = world.build(kustomize, world.work.path(), &one.target, &[], false);
        verdicts.push(match build.status {
            0 => copied(&world, kustomize, one, number, &build).map(Verdict::Broken),
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
    if !targets.is_empty() && (in_place || plans.len() == 1) {
        let args = ["--in-place", "--no-commit", "--no-verify", "--quiet"];
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
    }
    written
        .into_iter()
        .zip(verdicts)
        .map(|(one, verdict)| match verdict {
            Some(Verdict::Broken(why)) => {
                Verdict::Broken(format!("{why}\n{}", told(&files, &one.scope)))
            }
            Some(verdict) => verdict,
            None => Verdict::Same(one),
        })
        .collect()
}

/// Localizes one tree into a directory of its own, and returns what differs.
fn copied(
    world: &World,
    kustomize: &Kustomize,
    one: &Written,
    number: usize,
    before: &Output,
) -> Option<String> {
    let copy = format!("copy-{number}");
    let place = world.sandbox.path(&copy);
    let place = place.to_str().unwrap();
    let args = [
        &one.target,
        place,
        "--scope",
        &one.scope,
        "--no-commit",
        "--no-verify",
        "--quiet",
    ];
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

/// Puts everything where it belongs, and commits it.
fn put(world: &World, files: &Files) {
    let upstreams: Vec<Repo> = (0..REPOSITORIES)
        .map(|number| world.upstream(&format!("{OWNER}/r{number}.git")))
        .collect();
    let repo = |place: Place| match place {
        Place::Work => &world.work,
        Place::Upstream(number) => &upstreams[number],
    };
    for ((place, path), text) in &files.files {
        repo(*place).write(path, text);
    }
    for ((place, path), target) in &files.links {
        repo(*place).symlink(path, target);
    }
    for (url, body) in &files.served {
        world.file(url, body);
    }
    world.work.commit("trees");
    for upstream in &upstreams {
        upstream.commit("trees");
        upstream.git(&["tag", "v1"]);
        upstream.git(&["branch", "release/one"]);
    }
}

/// Shows the files of one tree.
fn told(files: &Files, tree: &str) -> String {
    let mut text = String::new();
    let is_its = |path: &str| path.starts_with(&format!("{tree}/"));
    for ((place, path), target) in &files.links {
        if is_its(path) {
            let _ = writeln!(text, "=== {place:?} {path} -> {target}");
        }
    }
    for ((place, path), body) in &files.files {
        if is_its(path) && !path.ends_with("/base.yaml") {
            let _ = writeln!(text, "=== {place:?} {path}\n{body}");
        }
    }
    text
}
