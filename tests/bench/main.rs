//! Side by side with the real `kustomize localize --no-verify`: `cargo bench --bench peer`.
//!
//! Both do the same work in turn, in one run, on a RAM disk where there is one: nothing is shared
//! between runs, and our cache is empty every time. Shown are medians, and how many times faster
//! than kustomize we are.

#![allow(clippy::expect_used, clippy::print_stdout, clippy::unwrap_used)]

mod measure;
mod scene;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use measure::{median, peak};
use scene::{SCENES, Scene, Stage};

/// How often each of them runs, unless an argument says otherwise.
const ROUNDS: usize = 5;

/// The three that are compared.
#[derive(Clone, Copy)]
enum Runner {
    Kustomize,
    Commit,
    NoCommit,
}

impl Runner {
    const ALL: [Runner; 3] = [Runner::Kustomize, Runner::Commit, Runner::NoCommit];

    fn name(self) -> &'static str {
        match self {
            Runner::Kustomize => "kustomize localize --no-verify",
            Runner::Commit => "git kustomize-localize",
            Runner::NoCommit => "git kustomize-localize --no-commit",
        }
    }

    /// Returns the command, in a fresh copy of what the user has.
    fn command(self, kustomize: &Path, stage: &Stage) -> Command {
        let ours = env!("CARGO_BIN_EXE_git-kustomize-localize");
        let (program, args): (&Path, &[&str]) = match self {
            Runner::Kustomize => (kustomize, &["localize", "--no-verify", "app", "copy"]),
            Runner::Commit => (Path::new(ours), &["app", "copy"]),
            Runner::NoCommit => (Path::new(ours), &["--no-commit", "app", "copy"]),
        };
        let mut command = stage.command(program, &stage.fresh());
        command.args(args).stdin(Stdio::null());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        command
    }
}

fn main() -> ExitCode {
    let Some(kustomize) = kustomize() else {
        println!("no kustomize on PATH and none in KUSTOMIZE: nothing to compare with");
        return ExitCode::FAILURE;
    };
    // cargo adds `--bench`.
    let rounds = env::args()
        .skip(1)
        .find_map(|argument| argument.parse().ok());
    let rounds = rounds.unwrap_or(ROUNDS).max(1);
    println!("medians of {rounds} runs in turn; goal and factor against the first row");
    let missed = SCENES
        .iter()
        .filter(|scene| !compare(scene, &kustomize, rounds))
        .count();
    match missed == 0 {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}

/// Compares the three in one scene. Says whether we are as fast and as small as we want to be.
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
            files[index] = stage.copied(matches!(runner, Runner::Commit));
        }
    }
    assert_eq!(
        files, [files[0]; 3],
        "the three copied different numbers of files"
    );

    println!(
        "\n{} (goal {}x), {} files",
        scene.name, scene.goal, files[0]
    );
    let medians = times.map(median);
    let mut met = true;
    for (runner, time) in Runner::ALL.into_iter().zip(medians) {
        let seconds = time.as_secs_f64();
        print!("  {:<36} {seconds:>8.3} s", runner.name());
        if !matches!(runner, Runner::Kustomize) {
            let factor = medians[0].as_secs_f64() / seconds;
            let mebibytes = peak(&mut runner.command(kustomize, &stage)) >> 20;
            print!("  {factor:>6.1}x  peak {mebibytes} MiB");
            met &= factor >= scene.goal && mebibytes < 64;
        }
        println!();
    }
    met
}

fn kustomize() -> Option<PathBuf> {
    let named = env::var_os("KUSTOMIZE").map(PathBuf::from);
    named.or_else(|| {
        env::split_paths(&env::var_os("PATH")?)
            .map(|directory| directory.join("kustomize"))
            .find(|program| program.is_file())
    })
}
