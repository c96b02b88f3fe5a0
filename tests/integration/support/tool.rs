//! Programs of others that a test needs.

use std::env;
use std::path::PathBuf;
use std::thread;

/// Returns the program under test: the one that was compiled with the tests, or what `KUSTOMIZE_LOCALIZE_PROGRAM` names,
/// such as one that was installed.
pub(crate) fn program() -> PathBuf {
    env::var_os("KUSTOMIZE_LOCALIZE_PROGRAM")
        .unwrap_or_else(|| env!("CARGO_BIN_EXE_git-kustomize-localize").into())
        .into()
}

/// Returns whether to try as much as at night (`KUSTOMIZE_LOCALIZE_FULL=1`): more random worlds, in more ways.
pub(crate) fn full() -> bool {
    env::var_os("KUSTOMIZE_LOCALIZE_FULL").is_some_and(|full| full == "1")
}

/// Returns the first `name` on `PATH`, or reports on standard error that the calling test is skipped.
///
/// # Panics
///
/// With `KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS=1` when there is none, so that CI skips nothing.
pub(crate) fn tool(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    let program = env::split_paths(&path)
        .map(|directory| directory.join(name))
        .find(|program| program.is_file());
    if program.is_none() {
        let required = env::var_os("KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS");
        assert_ne!(required.as_deref(), Some("1".as_ref()), "no {name} on PATH");
        let thread = thread::current();
        let test = thread.name().unwrap_or("a test");
        eprintln!("skipped: {test} (no {name} on PATH)");
    }
    program
}
