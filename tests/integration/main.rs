//! All integration tests, in one binary: it links once, and the modules share one set of helpers.
//!
//! A module is one subject (mostly one command). Every test works in a [`support::Sandbox`], which
//! has nothing of the caller's git configuration and reaches no network but loopback.

#![cfg(unix)]
// A test stops at the first mismatch, and reports it there.
#![allow(
    clippy::expect_used,
    clippy::print_stderr,
    clippy::print_stdout,
    clippy::unwrap_used
)]

mod action;
mod affected;
mod attributes;
mod branch;
mod bytes;
mod check;
mod check_base;
#[cfg(unix)]
mod check_clear;
mod check_commit;
mod check_config;
mod check_entries;
mod check_formats;
mod check_index;
mod check_local;
mod check_remote;
mod check_targets;
mod clones;
mod configured;
mod disk;
mod engine_builds;
mod example;
#[cfg(target_os = "linux")]
mod faults;
mod features;
mod fetch_git;
mod fetch_http;
mod following;
mod following_changes;
mod functions;
mod generate;
mod generated;
mod gitops;
mod helm;
mod hints;
mod hook;
mod hydrator;
mod in_place;
mod judge;
#[cfg(debug_assertions)]
mod killed;
mod layout;
mod licenses;
mod limits;
mod lock;
mod lock_conflicts;
mod lock_entries;
mod message;
mod offline;
mod old_against_new;
mod packaging;
mod parity;
mod paths;
mod pictures;
mod plugins;
mod pre_commit;
mod printed;
mod proof;
mod reach;
mod readme;
mod recipes;
mod references;
mod refused;
mod rooms;
mod scripts;
mod secrets;
mod shipped;
mod shortlog;
mod snapshots;
mod source;
mod stories;
mod strict;
mod support;
mod tampering;
mod targets;
mod tree;
mod unread;
mod update;
mod update_lock;
mod verify;
mod verify_record;
mod verify_upstream;
mod workflows;
mod worktree;
mod year;

use std::fs;
use std::path::Path;

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
        } else if path != parent && !declares(&text, &name) {
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
