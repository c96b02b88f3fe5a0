//! Programs of others that a test needs.

use std::env;
use std::fs::File;
use std::io::Write as _;
use std::path::PathBuf;
use std::thread;

/// Returns the program under test: the one that was compiled with the tests, or what `KUSTOMIZE_LOCALIZE_PROGRAM`
/// names, such as one that was installed.
pub(crate) fn program() -> PathBuf {
    env::var_os("KUSTOMIZE_LOCALIZE_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_git-kustomize-localize").into())
        .into()
}

/// Returns whether to try as much as at night (`KUSTOMIZE_LOCALIZE_FULL=1`): more random worlds, in more ways.
pub(crate) fn full() -> bool {
    env::var_os("KUSTOMIZE_LOCALIZE_FULL").is_some_and(|full| full == "1")
}

/// Returns all rows of a table at night, and by day the first and then every `step`th, where a row takes long.
pub(crate) fn rows<T>(all: impl IntoIterator<Item = T>, step: usize) -> impl Iterator<Item = T> {
    all.into_iter().step_by(if full() { 1 } else { step })
}

/// What no test may insist on, and why: everything else is required where `KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS=1`.
const BY_DESIGN: [&str; 4] = [
    // Whether there are packages of them, and a right to install them, is up to the machine.
    "no chromium on PATH",
    "no fish on PATH",
    "no zsh on PATH",
    // Whether namespaces may be used is up to the kernel and to who runs the container.
    NO_MOUNT,
];

/// The reason of tests that need a disk of their own.
pub(crate) const NO_MOUNT: &str = "no disk can be mounted here";

/// Reports that the calling test, or a part of it, is skipped: on standard error, and in the file that
/// `KUSTOMIZE_LOCALIZE_SKIPS` names, a line each.
///
/// # Panics
///
/// With `KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS=1`, so that CI skips nothing but what it must.
#[track_caller]
pub(crate) fn skip(reason: &str) {
    let thread = thread::current();
    let line = format!("{}: {reason}", thread.name().unwrap_or("a test"));
    let required = env::var_os("KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS");
    let required = required.as_deref() == Some("1".as_ref());
    assert!(!required || BY_DESIGN.contains(&reason), "may not be skipped: {line}");
    if let Some(file) = env::var_os("KUSTOMIZE_LOCALIZE_SKIPS") {
        let mut file = File::options().create(true).append(true).open(file).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
    }
    eprintln!("skipped: {line}");
}

/// Returns the first `name` on `PATH`; else the calling test is [skipped](skip).
#[track_caller]
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let program = on_path(name);
    if program.is_none() {
        skip(&format!("no {name} on PATH"));
    }
    program
}

/// Returns the first `name` on `PATH`.
pub(super) fn on_path(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).map(|directory| directory.join(name)).find(|program| program.is_file())
}
