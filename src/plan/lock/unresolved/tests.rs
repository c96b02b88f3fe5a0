//! What the lock holds, and what it lists as left, after a walk in which some upstreams are missing.

use super::take_out;
use crate::config::Config;
use crate::graph::testing::{Upstreams, source};
use crate::graph::{Survey, WalkPolicy};
use crate::plan::lock::{reachable_lock, unlocked};
use crate::plan::remotes;
use crate::record::Lock;

const A: &str = "https://h/o/a?ref=v1";
const B: &str = "https://h/o/b?ref=v1";
const C: &str = "https://h/o/c?ref=v1";
const FILE: &str = "https://h/f.yaml";

/// Adds a repository with a kustomization at its top, or a file.
fn with(upstreams: Upstreams, reference: &str, text: &str) -> Upstreams {
    match reference.strip_suffix("?ref=v1") {
        Some(url) => upstreams.repository(url, &[("kustomization.yaml", text)]),
        None => upstreams.file(reference, text),
    }
}

fn resources(reference: &str) -> String {
    format!("resources: [\"{reference}\"]\n")
}

/// Returns the lock that a tree that names `A` gets, and its labels.
fn relocked(mut upstreams: Upstreams, held: &Lock) -> (Lock, Vec<String>) {
    let config = Config::default();
    let source = source(&[("kustomization.yaml", &resources(A))]);
    let starts = [String::new()];
    let mut explored = Survey::of(source.tree).explore(&starts, Some(&mut upstreams), &WalkPolicy::default());
    let as_held = take_out(&mut explored, held);
    let found = remotes::remotes(&explored.graph, held).unwrap();
    let own = remotes::user_remotes(&explored.graph, &config, held);
    let lock = reachable_lock(held, &found, &as_held, &own, &|_| None);
    let lock = Lock { remotes: lock.remotes, left: lock.left, ..Lock::default() };
    assert!(lock.left.is_empty() && unlocked(&lock, &own).next().is_none());
    lock.render().unwrap();
    let labels = lock.remotes.keys().map(ToString::to_string).collect();
    (lock, labels)
}

#[test]
fn what_names_something_in_vain_is_not_locked() {
    let a = |names: &str| with(Upstreams::default(), A, &resources(names));
    let generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: ['https://h/f.yaml']\n";
    for (upstreams, expected) in [
        (Upstreams::default(), vec![]),
        (a("missing.yaml"), vec![]),
        (a(B), vec![]),
        (a(FILE), vec![]),
        (with(a("https://h/o/b//nowhere?ref=v1"), B, "namePrefix: b-\n"), vec![]),
        (with(a(B), B, &resources("missing.yaml")), vec![]),
        (with(a(B), B, "resources: [\n"), vec![]),
        (with(a(B), B, &resources(C)), vec![]),
        (with(a(B), B, &resources(A)), vec![]),
        (
            with(with(Upstreams::default(), A, "generators: ['https://h/g.yaml']\n"), "https://h/g.yaml", generator),
            vec![],
        ),
        // All is there.
        (with(with(a(B), B, &resources(FILE)), FILE, ""), vec![FILE, A, B]),
    ] {
        assert_eq!(relocked(upstreams, &Lock::default()).1, expected);
    }
}

#[test]
fn what_was_locked_stays_where_nothing_answers() {
    let a = with(Upstreams::default(), A, &resources(B));
    let b = with(a.clone(), B, &resources(C));
    let all = with(b.clone(), C, "namePrefix: c-\n");
    let (lock, labels) = relocked(all, &Lock::default());
    assert_eq!(labels, [A, B, C]);
    for upstreams in [Upstreams::default(), a, b] {
        assert_eq!(relocked(upstreams, &lock).0, lock);
    }
}
