//! How the time of a check grows with what there is to check: with twice as much, twice as long.

use std::fmt::Write as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use crate::measure::{median, peak};
use crate::repository::Repository;

/// How often each of them runs.
const ROUNDS: usize = 3;
/// How much longer than in proportion the largest may take.
const TOLERANCE: f64 = 1.5;
/// How many findings there are in one kustomization.
const IN_ONE: usize = 10_000;

/// The input that grows.
struct Row {
    name: &'static str,
    sizes: [usize; 3],
    files: fn(usize) -> Vec<(String, String)>,
}

const ROWS: [Row; 4] = [
    Row { name: "unknown keys on one line", sizes: [10_000, 20_000, 40_000], files: unknown_keys },
    Row {
        name: "locked references",
        sizes: [12_500, 25_000, 50_000],
        files: |count| vec![references(count, ""), lock(count)],
    },
    Row {
        name: "findings",
        sizes: [250_000, 500_000, 1_000_000],
        files: |count| {
            let kustomizations = 0..count / IN_ONE;
            kustomizations.map(|number| references(IN_ONE, &format!("{number}/"))).collect()
        },
    },
    Row {
        name: "entries of the lock",
        sizes: [75_000, 150_000, 300_000],
        files: |count| vec![references(1, ""), lock(count)],
    },
];

/// Shows every row. Fails where one grows faster than it should.
pub(crate) fn show() -> ExitCode {
    println!("\nmedians of {ROUNDS} runs");
    let missed = ROWS.iter().filter(|row| !row.show()).count();
    if missed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

impl Row {
    /// Returns whether it grows as it should.
    fn show(&self) -> bool {
        println!("\n{}", self.name);
        let times = self.sizes.map(|size| {
            let repository = Repository::of((self.files)(size));
            let check = || {
                let mut command = repository.command(env!("CARGO_BIN_EXE_git-kustomize-localize"));
                command.args(["check", "--staged"]).stdin(Stdio::null()).stdout(Stdio::null());
                command
            };
            let time = median((0..ROUNDS).map(|_| time(&mut check())).collect());
            let mebibytes = peak(&mut check()) >> 20;
            println!(
                "  {size:>9}  {:>8.3} s  {:>6.1} µs each  peak {mebibytes} MiB",
                time.as_secs_f64(),
                time.as_secs_f64() * 1e6 / size as f64,
            );
            time.as_secs_f64()
        });
        let [first, .., last] = self.sizes;
        times[2] / times[0] <= TOLERANCE * last as f64 / first as f64
    }
}

/// Times a check, which may find something.
fn time(command: &mut Command) -> Duration {
    let start = Instant::now();
    let status = command.status().unwrap();
    assert!(matches!(status.code(), Some(0 | 1)), "{command:?}: {status}");
    start.elapsed()
}

fn unknown_keys(count: usize) -> Vec<(String, String)> {
    let keys: Vec<String> = (0..count).map(|number| format!("k{number}: 1")).collect();
    let text = format!("{{{}}}\n", keys.join(", "));
    vec![("kustomization.yaml".to_owned(), text)]
}

fn references(count: usize, directory: &str) -> (String, String) {
    let mut text = "resources:\n".to_owned();
    for number in 0..count {
        writeln!(text, "- https://github.com/o/r{number:07}?ref=v1").unwrap();
    }
    (format!("{directory}kustomization.yaml"), text)
}

/// A lock of the same references, each but the last names the next one.
fn lock(count: usize) -> (String, String) {
    let mut text = "version: 1\nremotes:\n".to_owned();
    for number in 0..count {
        writeln!(text, "- url: https://github.com/o/r{number:07}\n  ref: v1\n  commit: {}\n  paths:", "0".repeat(40))
            .unwrap();
        let next = number + 1;
        let names =
            if next < count { format!("names: ['https://github.com/o/r{next:07}?ref=v1']") } else { String::new() };
        writeln!(text, "    '.': {{{names}}}").unwrap();
    }
    ("kustomize-localize.lock".to_owned(), text)
}
