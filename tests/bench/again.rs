//! What a run costs that has little to do, and one with many roots: `cargo bench --bench again [-- ROUNDS]`.
//!
//! A repository is localized in place on a branch. Shown are medians of runs in turn, beside the least that could be
//! done instead: a check of the same commit, and the builds alone. Needs kustomize (`KUSTOMIZE`, or on PATH).

#![allow(clippy::expect_used, clippy::print_stdout, clippy::unwrap_used)]

mod kustomize;
mod measure;
mod repository;

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use measure::{median, peak};
use repository::Repository;

/// How often each of them runs by default.
const ROUNDS: usize = 5;
/// How many overlays there are in the repository in which little changes.
const OVERLAYS: usize = 2_000;
/// How many share a base that is remote.
const SHARING: usize = 500;
/// How many times a check of the same commit a run with nothing to do may take: it starts a dozen processes, one of
/// them kustomize.
const NOTHING: f64 = 4.0;
/// How long one changed overlay may take, without builds.
const CHANGED: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    let Some(kustomize) = kustomize::find() else {
        println!("no kustomize on PATH and none in KUSTOMIZE: nothing to build with");
        return ExitCode::FAILURE;
    };
    let rounds = env::args().skip(1).find_map(|argument| argument.parse().ok());
    let rounds: usize = rounds.unwrap_or(ROUNDS).max(1);
    println!("medians of {rounds} runs in turn, on a branch that is localized in place\n");
    println!("| | time | beside | | peak memory |");
    println!("|---|---|---|---|---|");
    let is_met = little(&kustomize, rounds);
    many(&kustomize);
    if is_met {
        ExitCode::SUCCESS
    } else {
        println!("\nmissed: see the rows with !");
        ExitCode::FAILURE
    }
}

/// A run with nothing to do, and runs with one changed overlay.
fn little(kustomize: &Path, rounds: usize) -> bool {
    let upstream = upstream();
    let repository = Repository::of(overlays(OVERLAYS, |number| match number {
        0 => Some(url(&upstream)),
        _ => None,
    }));
    lock(&repository, kustomize);
    let localize = |arguments: &[&str]| {
        let mut command = ours(&repository, kustomize);
        command.arg("branch").args(arguments);
        command
    };
    timed(&mut localize(&[]));
    let (mut nothing, mut checked) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        nothing.push(timed(&mut localize(&[])));
        let mut check = ours(&repository, kustomize);
        check.args(["check", "--rev", "localized/main"]);
        checked.push(timed(&mut check));
    }
    let (nothing, checked) = (median(nothing), median(checked));
    let ratio = nothing.as_secs_f64() / checked.as_secs_f64();
    let mut is_met = ratio <= NOTHING;
    row(
        &format!("nothing to do, {OVERLAYS} overlays"),
        nothing,
        ("`check` of the branch", checked),
        peak(&mut localize(&[])),
        is_met,
    );
    for (what, arguments) in [("without builds", &["--no-verify"][..]), ("with builds", &[])] {
        let mut taken = Vec::new();
        for round in 0..=rounds {
            let overlay = 1 + round;
            let place = format!("apps/{overlay}/own.yaml");
            let path = repository.path().join(&place);
            fs::write(path, map("own", &format!("{what} {round}"))).unwrap();
            repository.git(&["commit", "--quiet", "-am", "Change"]);
            if round < rounds {
                taken.push(timed(&mut localize(arguments)));
            }
        }
        let taken = median(taken);
        let is_fast = !arguments.contains(&"--no-verify") || taken <= CHANGED;
        is_met &= is_fast;
        row(
            &format!("one of {OVERLAYS} overlays has changed, {what}"),
            taken,
            ("one `kustomize build`", build(kustomize, &repository, 1)),
            peak(&mut localize(arguments)),
            is_fast,
        );
    }
    is_met
}

/// The first run of a repository in which many roots share a base that is remote: every one of them is built, twice.
fn many(kustomize: &Path) {
    let upstream = upstream();
    let mut files = overlays(SHARING, |_| None);
    files.push(("base/kustomization.yaml".to_owned(), format!("resources:\n- map.yaml\n- {}\n", url(&upstream))));
    let repository = Repository::of(files);
    lock(&repository, kustomize);
    let mut command = ours(&repository, kustomize);
    command.arg("branch");
    let taken = timed(&mut command);
    repository.git(&["branch", "-D", "localized/main"]);
    let peak = peak(&mut command);
    // The result, so that nothing is fetched.
    repository.git(&["switch", "--quiet", "localized/main"]);
    let builds = all(kustomize, &repository) * 2;
    row(
        &format!("first run, {SHARING} overlays of a remote base"),
        taken,
        (&format!("the {} builds alone", 2 * SHARING), builds),
        peak,
        true,
    );
}

fn row(name: &str, taken: Duration, beside: (&str, Duration), peak: u64, is_met: bool) {
    let (what, least) = beside;
    println!(
        "| {name} | {:.3} s | {what}: {:.3} s | {:.1} times{} | {} MiB |",
        taken.as_secs_f64(),
        least.as_secs_f64(),
        taken.as_secs_f64() / least.as_secs_f64(),
        if is_met { "" } else { " !" },
        peak >> 20,
    );
}

/// Returns the time of a command that succeeds.
fn timed(command: &mut Command) -> Duration {
    let start = Instant::now();
    let output = command.output().unwrap();
    let time = start.elapsed();
    assert!(output.status.success(), "{command:?}: {output:?}");
    time
}

/// Commits a lock of what the repository names.
fn lock(repository: &Repository, kustomize: &Path) {
    timed(ours(repository, kustomize).arg("lock"));
    repository.git(&["add", "--all"]);
    repository.git(&["commit", "--quiet", "-m", "Lock"]);
}

fn ours(repository: &Repository, kustomize: &Path) -> Command {
    let mut command = repository.command(env!("CARGO_BIN_EXE_git-kustomize-localize"));
    command.env("KUSTOMIZE", kustomize).stdin(Stdio::null());
    command.stdout(Stdio::null());
    command
}

/// Returns the time of one build of an overlay as it is in the working tree.
fn build(kustomize: &Path, repository: &Repository, overlay: usize) -> Duration {
    let mut command = repository.command(kustomize.to_str().unwrap());
    command.args(["build", &format!("apps/{overlay}")]);
    timed(&mut command)
}

/// Returns the time of one build of each overlay, as many side by side as there are processors.
fn all(kustomize: &Path, repository: &Repository) -> Duration {
    let next = AtomicUsize::new(0);
    let processors = thread::available_parallelism().map_or(1, |count| count.get());
    let start = Instant::now();
    thread::scope(|scope| {
        for _ in 0..processors {
            scope.spawn(|| {
                loop {
                    let overlay = next.fetch_add(1, Ordering::Relaxed);
                    if overlay >= SHARING {
                        return;
                    }
                    build(kustomize, repository, overlay);
                }
            });
        }
    });
    start.elapsed()
}

/// A repository for others to name.
fn upstream() -> Repository {
    Repository::of([
        ("app/kustomization.yaml".to_owned(), "resources:\n- map.yaml\n".to_owned()),
        ("app/map.yaml".to_owned(), map("upstream", "1")),
    ])
}

fn url(upstream: &Repository) -> String {
    format!("file://{}//app?ref=main", upstream.path().display())
}

/// The files of overlays of one base, some of which name something remote as well.
fn overlays(count: usize, remote: impl Fn(usize) -> Option<String>) -> Vec<(String, String)> {
    let mut files = vec![
        ("base/kustomization.yaml".to_owned(), "resources:\n- map.yaml\n".to_owned()),
        ("base/map.yaml".to_owned(), map("base", "1")),
    ];
    for number in 0..count {
        let more = remote(number).map_or_else(String::new, |url| format!("- {url}\n"));
        files.push((
            format!("apps/{number}/kustomization.yaml"),
            format!("namePrefix: a{number}-\nresources:\n- ../../base\n- own.yaml\n{more}"),
        ));
        files.push((format!("apps/{number}/own.yaml"), map("own", "1")));
    }
    files
}

fn map(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  value: {value}\n")
}
