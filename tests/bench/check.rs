//! `check --staged` side by side with the least that git takes to read the same: `git ls-files -s`, and
//! `git cat-file --batch` of the kustomizations; and `affected` of the last commit.
//! `cargo bench --bench check [-- KUSTOMIZATIONS...]`
//!
//! Both do it in turn, in one run, on a RAM disk where there is one. Shown are medians, and how many times
//! the floor we take. Then how the time grows with what is in one repository; `-- growth` shows that alone.

#![allow(clippy::expect_used, clippy::print_stdout, clippy::unwrap_used)]

mod applications;
mod growth;
mod measure;
mod repository;

use std::env;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use applications::{FILES, REFERENCES};
use measure::{median, peak};
use repository::Repository;

/// How often each of them runs.
const ROUNDS: usize = 9;
/// How many kustomizations there are, unless arguments say otherwise.
const SIZES: [usize; 2] = [1_000, 10_000];
/// At most this many times the floor, at most this long and this large: with 10,000 kustomizations.
const GOAL: (f64, Duration, u64) = (3.0, Duration::from_millis(500), 100);
/// At most this long for `affected`, with 10,000 kustomizations.
const AFFECTED: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    if env::args().any(|argument| argument == "growth") {
        return growth::show();
    }
    // cargo adds `--bench`.
    let mut sizes: Vec<usize> = env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    if sizes.is_empty() {
        sizes = SIZES.to_vec();
    }
    println!("medians of {ROUNDS} runs in turn; goal with 10,000 kustomizations: {GOAL:?} MiB\n");
    println!(
        "| files | kustomizations | targets | git, every YAML file | git, kustomizations | check | | | peak memory | affected | peak memory |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let mut rows: Vec<(usize, usize)> = sizes.iter().map(|size| (*size, 0)).collect();
    rows.extend(sizes.iter().filter(|size| **size >= 10_000).map(|size| (*size, 500)));
    let missed = rows.iter().filter(|(size, targets)| !compare(*size, *targets)).count();
    if missed == 0 { growth::show() } else { ExitCode::FAILURE }
}

/// Compares the two. Returns whether we are as fast and as small as we want to be.
fn compare(kustomizations: usize, targets: usize) -> bool {
    let repository = applications::repository(kustomizations, targets);
    let check = || {
        let mut command = repository.command(env!("CARGO_BIN_EXE_git-kustomize-localize"));
        command.args(["check", "--staged"]).stdin(Stdio::null());
        command
    };
    let told = String::from_utf8(check().output().unwrap().stdout).unwrap();
    let references = kustomizations * REFERENCES;
    let expected = format!("checked {kustomizations} kustomizations with {references} references in the index");
    assert!(told.starts_with(&expected), "{told}");

    let [few, all] = [ids(&repository, "few", "/kustomization.yaml"), ids(&repository, "all", ".yaml")];
    let (mut least, mut floor, mut ours) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        least.push(read(&repository, &few));
        floor.push(read(&repository, &all));
        ours.push(time(&mut check()));
    }
    let (least, floor, ours) = (median(least), median(floor), median(ours));
    let mebibytes = peak(check().stdout(Stdio::null())) >> 20;
    let times = |floor: Duration| ours.as_secs_f64() / floor.as_secs_f64();
    let factor = times(floor);
    print!(
        "| {} | {kustomizations} | {targets} | {:.3} s | {:.3} s | {:.3} s | {factor:.1} times | {:.1} times | {mebibytes} MiB ",
        kustomizations * FILES + targets,
        floor.as_secs_f64(),
        least.as_secs_f64(),
        ours.as_secs_f64(),
        times(least)
    );
    let is_fast = factor <= GOAL.0 && ours <= GOAL.1 && mebibytes < GOAL.2;
    let affected = affected(&repository);
    kustomizations != 10_000 || (is_fast && affected <= AFFECTED)
}

/// Writes down which blobs are the files whose paths end like this: to find out is not what the floor is about.
fn ids(repository: &Repository, name: &str, end: &str) -> PathBuf {
    let listed = output(repository.command("git").args(["ls-files", "-s"]));
    let ids: String = listed
        .lines()
        .filter(|line| line.ends_with(end))
        .map(|line| format!("{}\n", line.split(' ').nth(1).unwrap()))
        .collect();
    let place = repository.path().with_file_name(name);
    std::fs::write(&place, ids).unwrap();
    place
}

/// Times `git ls-files -s`, and `git cat-file --batch` of blobs.
fn read(repository: &Repository, ids: &Path) -> Duration {
    let mut list = repository.command("git");
    let mut read = repository.command("git");
    read.stdin(File::open(ids).unwrap());
    time(list.args(["ls-files", "-s"])) + time(read.args(["cat-file", "--batch"]))
}

/// Times `affected` of a commit that changes one file.
fn affected(repository: &Repository) -> Duration {
    let file = "teams/07/app-7/base/resource-1.yaml";
    std::fs::write(repository.path().join(file), "changed: true\n").unwrap();
    repository.git(&["commit", "--quiet", "-m", "Change", "--", file]);
    let affected = || {
        let mut command = repository.command(env!("CARGO_BIN_EXE_git-kustomize-localize"));
        command.args(["affected", "HEAD~1"]);
        command
    };
    let told = output(&mut affected());
    assert_eq!(told.matches("app-7/overlays/prod").count(), 1, "{told}");
    let quiet = || {
        let mut command = affected();
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let time = median((0..ROUNDS).map(|_| time(&mut quiet())).collect());
    println!("| {:.3} s | {} MiB |", time.as_secs_f64(), peak(&mut quiet()) >> 20);
    time
}

fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.stdout(Stdio::null()).status().unwrap();
    assert!(status.success(), "{command:?} ended with {status}");
    start.elapsed()
}

fn output(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}
