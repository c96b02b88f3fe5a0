//! What the lock holds, and what it lists as left, after a walk in which some upstreams are missing.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use super::take_out;
use crate::config::{Config, Leave};
use crate::failure::{Failure, Result};
use crate::plan::lock::{leave, merged};
use crate::plan::{self, UNRESOLVED};
use crate::record::Lock;
use crate::reference::RepoRef;
use crate::tree::memory::MemoryTree;
use crate::walk::{Found, Options, RemoteFile, RemoteRef, Remotes, Repository, Source, explore};

const A: &str = "https://h/o/a?ref=v1";
const B: &str = "https://h/o/b?ref=v1";
const C: &str = "https://h/o/c?ref=v1";
const FILE: &str = "https://h/f.yaml";

fn tree(text: &str) -> Rc<MemoryTree> {
    let mut tree = MemoryTree::default();
    tree.file("kustomization.yaml", text.as_bytes(), false);
    Rc::new(tree)
}

/// Upstreams by their references, each with a kustomization; one by the URL of a file.
#[derive(Default, Clone)]
struct Upstreams(BTreeMap<String, Found>);

impl Upstreams {
    fn with(mut self, reference: &str, text: &str) -> Upstreams {
        let found = match reference.split_once("?ref=") {
            Some((url, version)) => Found::Root(Rc::new(Repository {
                tree: tree(text),
                version: RepoRef {
                    url: url.to_owned().into(),
                    reference: Some(version.to_owned()),
                    submodules: true,
                },
                commit: "0".repeat(40),
            })),
            None => Found::File(Rc::new(RemoteFile {
                url: reference.into(),
                sha256: "0".repeat(64),
                bytes: text.as_bytes().into(),
            })),
        };
        self.0.insert(reference.replace("?ref=", "//?ref="), found);
        self
    }
}

impl Remotes for Upstreams {
    fn resolve(&mut self, wanted: &[RemoteRef]) -> Vec<Result<Found>> {
        let one = |wanted: &RemoteRef| {
            let mut all = self.0.iter();
            let found =
                all.find(
                    |(reference, _)| match wanted.text.exposed().split_once("?ref=") {
                        // Any directory of it.
                        Some((url, version)) => {
                            let url = url.split_once("//nowhere").map_or(url, |(url, _)| url);
                            **reference == format!("{url}//?ref={version}")
                        }
                        None => **reference == wanted.text.exposed(),
                    },
                );
            found.map(|(_, found)| found.clone())
        };
        let answer = |wanted: &RemoteRef| one(wanted).ok_or_else(|| Failure::new("unreachable"));
        wanted.iter().map(answer).collect()
    }
}

fn resources(reference: &str) -> String {
    format!("resources: [\"{reference}\"]\n")
}

/// Returns the lock that a tree that names `A` gets, as its labels and what is left with the chain that leads there.
fn relocked(mut upstreams: Upstreams, held: &Lock) -> (Lock, Vec<String>) {
    let config = Config::default();
    let leaving = Leave::new(&config, &BTreeSet::new()).unwrap();
    let source = Source {
        tree: tree(&resources(A)),
        scope: String::new(),
        repository: None,
    };
    let starts = [String::new()];
    let mut explored = explore(source, &starts, Some(&mut upstreams), &Options::default());
    let asked = take_out(&mut explored, held);
    assert_eq!(asked.unresolved == 0, explored.troubles.is_empty());
    let found = plan::remotes(&explored.graph).unwrap();
    let (mut lock, _) = merged(held, found, &asked.not_asked, &asked.not_asked, false);
    leave(&mut lock, &explored.graph, None, &leaving);
    lock.render().unwrap();
    let mut said: Vec<String> = lock.remotes.iter().map(|remote| remote.label()).collect();
    for left in &lock.left {
        assert!(!left.accepted && left.reason == UNRESOLVED, "{left:?}");
        for chain in &left.through {
            said.push(format!("{} > {}", chain.join(" > "), left.what.label()));
        }
    }
    (lock, said)
}

#[test]
fn unresolvable_references_of_an_upstream_are_left() {
    let a = |names: &str| Upstreams::default().with(A, &resources(names));
    let nowhere = "https://h/o/b//nowhere?ref=v1";
    let generator = "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: g}\nfiles: ['https://h/f.yaml']\n";
    for (upstreams, expected) in [
        // The user's reference is not locked, and `check` reports it.
        (Upstreams::default(), vec![]),
        (a("missing.yaml"), vec![]),
        (a(B), vec![A.to_owned(), format!("{A} > {B}")]),
        (a(FILE), vec![A.to_owned(), format!("{A} > {FILE}")]),
        (
            a(nowhere).with(B, "namePrefix: b-\n"),
            vec![A.to_owned(), format!("{A} > {nowhere}")],
        ),
        (
            a(B).with(B, &resources("missing.yaml")),
            vec![A.to_owned(), format!("{A} > {B}")],
        ),
        (
            a(B).with(B, "resources: [\n"),
            vec![A.to_owned(), format!("{A} > {B}")],
        ),
        (
            a(B).with(B, &resources(C)),
            vec![A.to_owned(), B.to_owned(), format!("{A} > {B} > {C}")],
        ),
        (
            a(B).with(B, &resources(A)),
            vec![A.to_owned(), B.to_owned(), format!("{A} > {B} > {A}")],
        ),
        (
            Upstreams::default()
                .with(A, "generators: ['https://h/g.yaml']\n")
                .with("https://h/g.yaml", generator),
            vec![
                "https://h/g.yaml".to_owned(),
                A.to_owned(),
                format!("{A} > https://h/g.yaml > {FILE}"),
            ],
        ),
        // If no lock can hold a reference, what names it is dropped as well.
        (a("https://h/\\x01.yaml"), vec![]),
        (
            a(B).with(B, &resources("-u@github.com:o/c?ref=v1")),
            vec![A.to_owned(), format!("{A} > {B}")],
        ),
        // All is there.
        (
            a(B).with(B, &resources(FILE)).with(FILE, ""),
            vec![FILE.to_owned(), A.to_owned(), B.to_owned()],
        ),
    ] {
        let (_, said) = relocked(upstreams, &Lock::default());
        assert_eq!(said, expected);
    }
}

#[test]
fn a_left_reference_is_brought_in_once_it_resolves() {
    let a = Upstreams::default().with(A, &resources(B));
    let (without_b, _) = relocked(a.clone(), &Lock::default());
    let b = a.clone().with(B, &resources(C));
    let (without_c, said) = relocked(b.clone(), &without_b);
    assert_eq!(
        said,
        [A.to_owned(), B.to_owned(), format!("{A} > {B} > {C}")]
    );
    // An entry that cannot be asked again does not change, and neither does what is known to be left behind it.
    assert_eq!(relocked(a, &without_c).0, without_c);
    assert_eq!(relocked(Upstreams::default(), &without_c).0, without_c);
    let (all, said) = relocked(b.with(C, "namePrefix: c-\n"), &without_c);
    assert_eq!((said.len(), &all.left[..]), (3, &[][..]));
}
