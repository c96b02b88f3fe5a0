//! All integration tests, in one binary: it links once, and the modules share one set of helpers.
//!
//! A directory is what a user does, a module one subject of that. Every test works in a [`support::Sandbox`], which
//! has nothing of the caller's git configuration and reaches no network but loopback.

#![cfg(unix)]
// A test stops at the first mismatch, and reports it there.
#![allow(clippy::expect_used, clippy::print_stderr, clippy::print_stdout, clippy::unwrap_used)]

#[macro_use]
extern crate expect_test;
/// What the targets of `tests/fuzz` take from there.
extern crate self as libfuzzer_sys;

/// The branch that is committed to.
mod branch;
/// Builds before and after, compared.
mod build;
/// What `check` finds, in files of every sort, and what it says.
mod check;
/// One kustomization with all that it needs, in a directory of its own.
mod copy;
/// What is fetched, from where, and how.
mod fetch;
/// Where `check` runs by itself: git hooks, their frameworks, CI.
mod hook;
/// `lock` and `update`, and what their file holds.
mod lock;
/// What users install and read.
mod shipped;
mod support;
/// What is deployed, what a change touches, and the reference graph.
mod targets;
/// Localized where it stands, in the working tree.
mod vendor;
/// What was localized, against its record.
mod verify;
/// Promises about everything at once.
mod whole;

use std::fs;
use std::path::Path;

use whole::fuzz::fuzz_target;

/// A file without a `mod` line is never compiled, and its tests never run.
#[test]
fn every_file_is_a_module() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/integration");
    let mut forgotten = Vec::new();
    find_forgotten(&tests.join("main.rs"), &tests, &mut forgotten);
    assert!(forgotten.is_empty(), "no `mod` line for {forgotten:?}");
}

/// Collects the files in `directory` that `parent` does not declare, and looks into the others.
fn find_forgotten(parent: &Path, directory: &Path, forgotten: &mut Vec<String>) {
    let text = fs::read_to_string(parent).unwrap();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.is_dir() {
            find_forgotten(&path.with_extension("rs"), &path, forgotten);
        } else if path != parent && path.extension().is_some_and(|it| it == "rs") && !declares(&text, &name) {
            forgotten.push(path.display().to_string());
        }
    }
}

fn declares(text: &str, module: &str) -> bool {
    let module = format!("{module};");
    text.lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        words.ends_with(&["mod", &module]) && !line.trim_start().starts_with("//")
    })
}
