//! Properties of every tree of local roots and files.

mod whole;

use std::collections::BTreeMap;
use std::rc::Rc;

use proptest::prelude::*;

use super::copy;
use super::files::LocalizedRoots;
use crate::config::Config;
use crate::graph::testing::{Upstreams, source};
use crate::graph::{self, ScopedTree, Start, WalkPolicy};
use crate::tree::overlay::OverlayTree;
use crate::tree::path;

/// Sorted, so that a directory comes before its contents. References only lead forward in this list, so that there is
/// no cycle.
const DIRECTORIES: [&str; 8] = ["", "a", "a/b", "a/b/c d", "e", "e/app@v1", "e/localized-files", "f"];
const FILES: [&str; 3] = ["x.yaml", "files/y.yaml", "files/deep/z"];
const MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n";

/// One reference: the field, which of the possible things it names, and how that is spelled.
type Choice = (u8, prop::sample::Index, u8);

fn choices() -> impl Strategy<Value = Vec<Vec<Choice>>> {
    let choice = (0..5_u8, any::<prop::sample::Index>(), 0..6_u8);
    prop::collection::vec(prop::collection::vec(choice, 0..6), DIRECTORIES.len())
}

/// Spells the same path in another way.
fn spelled(directory: &str, relative: &str, how: u8) -> String {
    match how {
        1 => format!("./{relative}"),
        2 => format!("nowhere/../{relative}"),
        3 if !directory.is_empty() => format!("../{}/{relative}", path::name(directory)),
        4 => relative.replacen('/', "//", 1),
        5 => format!("././/{relative}"),
        // Without this, kustomize would take some directories for URLs.
        _ if relative.contains('@') => format!("./{relative}"),
        _ => relative.to_owned(),
    }
}

/// Writes the kustomization of one directory.
fn kustomization(index: usize, choices: &[Choice]) -> String {
    let directory = DIRECTORIES[index];
    let mut lists: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (field, which, how) in choices {
        let file = || spelled(directory, FILES[which.index(FILES.len())], *how);
        let (list, entry) = match field {
            0 => {
                let later = &DIRECTORIES[index + 1..];
                if later.is_empty() {
                    continue;
                }
                let root = later[which.index(later.len())];
                let relative = path::relative(directory, root);
                let text = spelled(directory, &relative, *how);
                ("resources", format!("- '{text}' # a root\n"))
            }
            1 => ("resources", format!("- \"{}\"\n", file())),
            2 => ("configMapGenerator", format!("- name: g\n  files: [ {} ]\n", file())),
            3 => ("configMapGenerator", format!("- files:\n  - key={}\n", file())),
            _ => ("patches", format!("- path: {}\n", spelled(directory, "link.yaml", *how))),
        };
        lists.entry(list).or_default().push(entry);
    }
    let mut text = "# by hand\nnamePrefix: a-\n".to_owned();
    for (list, entries) in lists {
        text.push_str(&format!("{list}:\n{}", entries.concat()));
    }
    text
}

fn tree(choices: &[Vec<Choice>]) -> OverlayTree {
    let mut tree = OverlayTree::default();
    for (index, directory) in DIRECTORIES.iter().enumerate() {
        let text = kustomization(index, &choices[index]);
        tree.add_file(&path::join(directory, "kustomization.yaml"), text.as_bytes());
        for (number, file) in FILES.iter().enumerate() {
            tree.add_file_with_mode(&path::join(directory, file), MAP.as_bytes(), number == 1);
        }
        tree.link(&path::join(directory, "link.yaml"), FILES[1]);
    }
    tree
}

fn localized(tree: OverlayTree, target: &str, scope: &str) -> LocalizedRoots {
    let start = Start {
        source: ScopedTree { tree: Rc::new(tree), scope: scope.to_owned(), repository: None },
        directory: target.to_owned(),
    };
    let graph = graph::walk(start, None, &WalkPolicy::default()).unwrap();
    copy::localized(&graph, &Config::default(), &Default::default()).unwrap().0
}

/// The bytes and the mode of every file.
fn files(localized: &LocalizedRoots) -> BTreeMap<String, (Vec<u8>, bool)> {
    let files = localized.files.iter();
    files.map(|(path, (file, _))| (path.clone(), (file.bytes.to_vec(), file.executable))).collect()
}

proptest! {
    #[test]
    fn a_localized_copy_is_its_own_copy(
        choices in choices(),
        target in 0..DIRECTORIES.len(),
    ) {
        let first = localized(tree(&choices), DIRECTORIES[target], "");
        let mut copy = OverlayTree::default();
        for (path, (file, _)) in &first.files {
            copy.add_file_with_mode(path, &file.bytes, file.executable);
        }
        let second = localized(copy, &first.target, "");
        prop_assert_eq!(&second.rewritten, &[]);
        prop_assert_eq!(files(&first), files(&second));
        prop_assert_eq!(first.target, second.target);
    }

    #[test]
    fn what_is_copied_is_what_is_there(
        choices in choices(),
        target in 0..DIRECTORIES.len(),
    ) {
        let original = tree(&choices);
        let copy = localized(tree(&choices), DIRECTORIES[target], "");
        for (path, (file, _)) in &copy.files {
            let name = path::name(path);
            if name == "kustomization.yaml" || name == ".gitattributes" {
                continue;
            }
            prop_assert_eq!(
                file.bytes.to_vec(),
                crate::tree::Tree::read(&original, path).unwrap()
            );
        }
    }
}

#[test]
fn copies_that_double_with_every_level_are_refused() {
    let copies = |levels: usize| {
        // Each names the next one twice.
        let with = |upstreams: Upstreams, level: usize| {
            let below = match level {
                _ if level == levels => "namePrefix: a-\n".to_owned(),
                _ => format!("resources: ['https://h/o/{}?ref=v1']\n", level + 1),
            };
            let files = [
                ("kustomization.yaml", "resources: [a, b]\n"),
                ("a/kustomization.yaml", &below),
                ("b/kustomization.yaml", &below),
            ];
            upstreams.repository(&format!("https://h/o/{level}"), &files)
        };
        let mut upstreams = (0..=levels).fold(Upstreams::default(), with);
        let text = "resources: ['https://h/o/0?ref=v1']\n";
        let start = Start { source: source(&[("kustomization.yaml", text)]), directory: String::new() };
        let graph = graph::walk(start, Some(&mut upstreams), &WalkPolicy::default()).unwrap();
        copy::localized(&graph, &Config::default(), &Default::default()).map(|(localized, _)| localized)
    };
    // The target, and three roots for each copy of a repository.
    let few = copies(3).unwrap();
    let roots = few.files.keys().filter(|path| path.ends_with("kustomization.yaml"));
    assert_eq!(roots.count(), 1 + 3 * (1 + 2 + 4 + 8));
    let Err(failures) = copies(13) else {
        panic!("so many copies");
    };
    assert!(failures.0[0].message.contains("10000 extra copies of remote roots"));
}
