//! What the lock holds, and what it lists as left, after a walk in which some upstreams are missing.

use super::take_out;
use crate::config::Config;
use crate::graph::testing::{Upstreams, source};
use crate::graph::{Options, explore};
use crate::plan::lock::{leave, merged};
use crate::plan::{self, UNRESOLVED};
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

/// Returns the lock that a tree that names `A` gets, as its labels and what is left with what names it.
fn relocked(mut upstreams: Upstreams, held: &Lock) -> (Lock, Vec<String>) {
    let config = Config::default();
    let source = source(&[("kustomization.yaml", &resources(A))]);
    let starts = [String::new()];
    let mut explored = explore(source, &starts, Some(&mut upstreams), &Options::default());
    let asked = take_out(&mut explored, held);
    assert_eq!(asked.unresolved == 0, explored.troubles.is_empty());
    let found = plan::remotes(&explored.graph).unwrap();
    let mut lock = merged(held, found.clone(), &asked.not_asked, &asked.not_asked, false);
    leave(&mut lock, &explored.graph, None, &config, &found);
    lock.render().unwrap();
    let mut said: Vec<String> = lock.remotes.iter().map(|remote| remote.label()).collect();
    for left in &lock.left {
        assert!(!left.accepted && left.reason == UNRESOLVED, "{left:?}");
        for label in &left.through {
            said.push(format!("{label} > {}", left.what.label()));
        }
    }
    (lock, said)
}

#[test]
fn unresolvable_references_of_an_upstream_are_left() {
    let a = |names: &str| with(Upstreams::default(), A, &resources(names));
    let nowhere = "https://h/o/b//nowhere?ref=v1";
    let generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: ['https://h/f.yaml']\n";
    for (upstreams, expected) in [
        // The user's reference is not locked, and `check` reports it.
        (Upstreams::default(), vec![]),
        (a("missing.yaml"), vec![]),
        (a(B), vec![A.to_owned(), format!("{A} > {B}")]),
        (a(FILE), vec![A.to_owned(), format!("{A} > {FILE}")]),
        (with(a(nowhere), B, "namePrefix: b-\n"), vec![A.to_owned(), format!("{A} > {nowhere}")]),
        (with(a(B), B, &resources("missing.yaml")), vec![A.to_owned(), format!("{A} > {B}")]),
        (with(a(B), B, "resources: [\n"), vec![A.to_owned(), format!("{A} > {B}")]),
        (with(a(B), B, &resources(C)), vec![A.to_owned(), B.to_owned(), format!("{B} > {C}")]),
        (with(a(B), B, &resources(A)), vec![A.to_owned(), B.to_owned(), format!("{B} > {A}")]),
        (
            with(with(Upstreams::default(), A, "generators: ['https://h/g.yaml']\n"), "https://h/g.yaml", generator),
            vec!["https://h/g.yaml".to_owned(), A.to_owned(), format!("https://h/g.yaml > {FILE}")],
        ),
        // If no lock can hold a reference, what names it is dropped as well.
        (a("https://h/\\x01.yaml"), vec![]),
        (with(a(B), B, &resources("-u@github.com:o/c?ref=v1")), vec![A.to_owned(), format!("{A} > {B}")]),
        // All is there.
        (with(with(a(B), B, &resources(FILE)), FILE, ""), vec![FILE.to_owned(), A.to_owned(), B.to_owned()]),
    ] {
        let (_, said) = relocked(upstreams, &Lock::default());
        assert_eq!(said, expected);
    }
}

#[test]
fn a_left_reference_is_brought_in_once_it_resolves() {
    let a = with(Upstreams::default(), A, &resources(B));
    let (without_b, _) = relocked(a.clone(), &Lock::default());
    let b = with(a.clone(), B, &resources(C));
    let (without_c, said) = relocked(b.clone(), &without_b);
    assert_eq!(said, [A.to_owned(), B.to_owned(), format!("{B} > {C}")]);
    // An entry that cannot be asked again does not change, and neither does what is known to be left behind it.
    assert_eq!(relocked(a, &without_c).0, without_c);
    assert_eq!(relocked(Upstreams::default(), &without_c).0, without_c);
    let (all, said) = relocked(with(b, C, "namePrefix: c-\n"), &without_c);
    assert_eq!((said.len(), &all.left[..]), (3, &[][..]));
}
