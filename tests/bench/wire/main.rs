//! What a cold start costs over the network: `cargo bench --bench wire [-- ROUNDS]`.
//!
//! `git http-backend` serves the upstreams over loopback, behind a proxy with a round-trip time and a bandwidth. The
//! same localization runs against a server that gives parts of a commit, against one that gives whole commits (one
//! commit deep), and as `kustomize localize` (`KUSTOMIZE`, or on PATH), in turn, with an empty cache each time. Shown
//! are medians, the bytes that were received, and the packed size of what is needed plus the trees.

#![allow(clippy::expect_used, clippy::print_stdout, clippy::unwrap_used)]

#[path = "../kustomize.rs"]
mod kustomize;
mod link;
mod server;
mod upstream;

use std::env;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use link::{LINKS, Link};
use server::Server;
use upstream::{SCENES, Scene, Upstream};

/// How often each of them runs by default.
const ROUNDS: usize = 3;
/// How much more than what is needed may be received.
const BYTES: f64 = 1.5;
/// What a request and its answer take besides, in bytes.
const PROTOCOL: u64 = 1_000;
/// How much longer than with whole commits it may take anywhere.
const TIME: f64 = 1.1;
/// The same where most of the commit is not needed.
const TIME_OF_LARGE: f64 = 0.5;

/// Who localizes, and from which server.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Runner {
    Parts,
    Whole,
    Kustomize,
}

impl Runner {
    const ALL: [Runner; 3] = [Runner::Parts, Runner::Whole, Runner::Kustomize];

    /// The path below which its server is.
    fn path(self) -> &'static str {
        match self {
            Runner::Parts => "parts",
            Runner::Whole | Runner::Kustomize => "whole",
        }
    }
}

/// What one run took.
#[derive(Clone, Copy)]
struct Taken {
    time: Duration,
    bytes: u64,
}

fn main() -> ExitCode {
    let rounds = env::args().skip(1).find_map(|argument| argument.parse().ok());
    let rounds: usize = rounds.unwrap_or(ROUNDS).max(1);
    let kustomize = kustomize::find();
    println!("medians of {rounds} runs in turn, with an empty cache and without verification");
    let mut is_met = true;
    for link in LINKS {
        println!("\n{}", link.name);
        println!("| | parts | whole commits | | `kustomize localize` | | received | of whole | needed | |");
        println!("|---|---|---|---|---|---|---|---|---|---|");
        for scene in SCENES {
            is_met &= compare(&link, &scene, kustomize.as_deref(), rounds);
        }
    }
    if is_met {
        ExitCode::SUCCESS
    } else {
        println!("\nmissed: see the rows with !");
        ExitCode::FAILURE
    }
}

/// Prints one row. Returns whether what it says is as it should be.
fn compare(link: &Link, scene: &Scene, kustomize: Option<&Path>, rounds: usize) -> bool {
    let upstream = Upstream::new(scene);
    let server = Server::start(upstream.path());
    let mut taken: [Vec<Taken>; 3] = Runner::ALL.map(|_| Vec::new());
    for _ in 0..rounds {
        for (index, runner) in Runner::ALL.into_iter().enumerate() {
            if runner == Runner::Kustomize && kustomize.is_none() {
                continue;
            }
            let proxy = link.open(server.address());
            let mut command = match (runner, kustomize) {
                (Runner::Kustomize, Some(program)) => {
                    let mut command = Command::new(program);
                    command.args(["localize", "--no-verify", "app", "copy"]);
                    command
                }
                _ => {
                    let mut command = Command::new(env!("CARGO_BIN_EXE_git-kustomize-localize"));
                    command.args(["app", "copy", "--no-verify", "--no-commit"]);
                    command
                }
            };
            let base = format!("http://{}/{}", proxy.address(), runner.path());
            upstream.user(&mut command, &base);
            let start = Instant::now();
            let output = command.stdin(Stdio::null()).output().unwrap();
            let time = start.elapsed();
            assert!(output.status.success(), "{command:?}: {output:?}");
            taken[index].push(Taken { time, bytes: proxy.received() });
        }
    }
    let [parts, whole, peer] = taken.map(median);
    let (Some(parts), Some(whole)) = (parts, whole) else {
        return false;
    };
    let needed = upstream.needed();
    let seconds = |taken: Taken| taken.time.as_secs_f64();
    let ratio = seconds(parts) / seconds(whole);
    #[allow(clippy::cast_precision_loss)]
    let bytes = parts.bytes.saturating_sub(PROTOCOL) as f64 / needed as f64;
    let most = if scene.is_large { TIME_OF_LARGE } else { TIME };
    let is_met = ratio <= most && bytes <= BYTES;
    println!(
        "| {} | {:.2} s | {:.2} s | {ratio:.2} | {} | {} | {} | {} | {} | {bytes:.2}{} |",
        scene.name,
        seconds(parts),
        seconds(whole),
        peer.map_or_else(String::new, |peer| format!("{:.2} s", seconds(peer))),
        peer.map_or_else(String::new, |peer| format!("{:.1}", seconds(peer) / seconds(parts))),
        kilobytes(parts.bytes),
        kilobytes(whole.bytes),
        kilobytes(needed),
        if is_met { "" } else { " !" },
    );
    is_met
}

fn kilobytes(bytes: u64) -> String {
    format!("{} kB", bytes.div_ceil(1000))
}

fn median(mut all: Vec<Taken>) -> Option<Taken> {
    all.sort_by_key(|taken| taken.time);
    all.get(all.len() / 2).copied()
}
