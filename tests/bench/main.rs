//! Side by side with the real `kustomize localize`, without and with verification: `cargo bench --bench peer`.
//!
//! Both do the same work in turn, in one run, on a RAM disk where there is one: nothing is shared
//! between runs, and our cache is empty every time. Shown are medians, and how many times faster
//! than kustomize we are. (It builds to verify, but compares nothing.)

#![allow(clippy::expect_used, clippy::print_stdout, clippy::unwrap_used)]

mod kustomize;
mod measure;
mod scene;

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use measure::{median, peak};
use scene::{SCENES, Scene, Stage};

/// How often each of them runs by default.
const ROUNDS: usize = 5;

/// The programs that are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    Kustomize,
    Commit,
    NoCommit,
    KustomizeVerified,
    Verified,
}

impl Runner {
    const ALL: [Runner; 5] =
        [Runner::Kustomize, Runner::Commit, Runner::NoCommit, Runner::KustomizeVerified, Runner::Verified];

    fn name(self) -> &'static str {
        match self {
            Runner::Kustomize => "kustomize localize --no-verify",
            Runner::Commit => "git kustomize-localize --no-verify",
            Runner::NoCommit => "git kustomize-localize --no-verify --no-commit",
            Runner::KustomizeVerified => "kustomize localize",
            Runner::Verified => "git kustomize-localize",
        }
    }

    fn is_ours(self) -> bool {
        !matches!(self, Runner::Kustomize | Runner::KustomizeVerified)
    }

    /// What it is compared with, and how many times faster than that we want to be.
    fn goal(self, scene: &Scene) -> Option<(Runner, f64)> {
        match self {
            Runner::Kustomize | Runner::KustomizeVerified => None,
            Runner::Commit | Runner::NoCommit => Some((Runner::Kustomize, scene.goal)),
            Runner::Verified => Some((Runner::KustomizeVerified, scene.verified)),
        }
    }

    fn commits(self) -> bool {
        matches!(self, Runner::Commit | Runner::Verified)
    }

    /// Returns the command, in a fresh copy of what the user has.
    fn command(self, kustomize: &Path, stage: &Stage) -> Command {
        let ours = env!("CARGO_BIN_EXE_git-kustomize-localize");
        let (program, args): (&Path, &[&str]) = match self {
            Runner::Kustomize => (kustomize, &["localize", "--no-verify", "app", "copy"]),
            Runner::Commit => (Path::new(ours), &["--no-verify", "app", "copy"]),
            Runner::NoCommit => {
                let args = &["--no-verify", "--no-commit", "app", "copy"];
                (Path::new(ours), args)
            }
            Runner::KustomizeVerified => (kustomize, &["localize", "app", "copy"]),
            Runner::Verified => (Path::new(ours), &["app", "copy"]),
        };
        let mut command = stage.command(program, &stage.fresh());
        command.env("KUSTOMIZE", kustomize);
        command.args(args).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn main() -> ExitCode {
    let Some(kustomize) = kustomize::find() else {
        println!("no kustomize on PATH and none in KUSTOMIZE: nothing to compare with");
        return ExitCode::FAILURE;
    };
    // cargo adds `--bench`.
    let rounds = env::args().skip(1).find_map(|argument| argument.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS).max(1);
    println!("medians of {rounds} runs in turn; ours against kustomize with the same option\n");
    let names: Vec<String> = Runner::ALL
        .iter()
        .map(|runner| format!("| `{}` {}", runner.name(), if runner.is_ours() { "| " } else { "" }))
        .collect();
    println!("| {}|", names.concat());
    println!("|---|---|---|---|---|---|---|---|---|");
    let missed = SCENES.iter().filter(|scene| !compare(scene, &kustomize, rounds)).count();
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Compares them in one scene. Returns whether we are as fast and as small as we want to be.
fn compare(scene: &Scene, kustomize: &Path, rounds: usize) -> bool {
    let stage = Stage::set(scene);
    let mut times = Runner::ALL.map(|_| Vec::new());
    let mut files = Runner::ALL.map(|_| 0);
    for _ in 0..rounds {
        for (index, runner) in Runner::ALL.into_iter().enumerate() {
            let mut command = runner.command(kustomize, &stage);
            let start = Instant::now();
            let status = command.status().unwrap();
            times[index].push(start.elapsed());
            assert!(status.success(), "{command:?} ended with {status}");
            files[index] = stage.copied(runner.commits());
        }
    }
    assert!(files.iter().all(|count| *count == files[0]), "they copied different numbers of files: {files:?}");

    let medians = times.map(median);
    let of = |runner: Runner| {
        let index = Runner::ALL.iter().position(|one| *one == runner);
        medians[index.unwrap()].as_secs_f64()
    };
    let mut met = true;
    print!("| {}, {} files ", scene.name, files[0]);
    for runner in Runner::ALL {
        print!("| {:.3} s ", of(runner));
        if let Some((against, goal)) = runner.goal(scene) {
            let factor = of(against) / of(runner);
            let mebibytes = peak(&mut runner.command(kustomize, &stage)) >> 20;
            let is_met = factor >= goal && mebibytes < 64;
            print!("| {factor:.1} times, {mebibytes} MiB{} ", if is_met { "" } else { " !" });
            met &= is_met;
        }
    }
    println!("|");
    met
}
