//! The map of the program is true: a room uses only rooms below it.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::support::each_file;

/// The beginning of the entry of a room in the map.
const ROOM: &str = "//! [`";

/// Returns the part of the map that is about the rooms.
fn map() -> String {
    let page = fs::read_to_string(source().join("lib.rs")).unwrap();
    let (_, map) = page.split_once("//! # The rooms\n").unwrap();
    map.split_once("//! # Outside").unwrap().0.to_owned()
}

/// Returns the rooms by their order in the map.
fn rows() -> BTreeMap<String, usize> {
    let map = map();
    let rooms = map.lines().filter_map(|line| line.strip_prefix(ROOM));
    rooms.enumerate().map(|(row, line)| (line.split('`').next().unwrap().to_owned(), row)).collect()
}

fn source() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

/// Returns whether a file is part of the program: tests may look at anything.
fn is_program(path: &Path) -> bool {
    let is_test = |name: &OsStr| ["tests", "tests.rs", "testing.rs"].iter().any(|one| name == *one);
    path.extension().is_some_and(|end| end == "rs") && !path.iter().any(is_test)
}

/// Returns the code of a file, without comments and tests.
fn code(text: &str) -> String {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    code.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

/// Returns the rooms that a file names in its code.
fn used(text: &str) -> BTreeSet<String> {
    let code = code(text);
    let name = |text: &str| -> String {
        let is_part = |character: &char| character.is_ascii_alphanumeric() || *character == '_';
        text.chars().take_while(is_part).collect()
    };
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        let Some(group) = rest.strip_prefix('{') else {
            found.insert(name(rest));
            continue;
        };
        let mut depth = 0;
        let mut start = true;
        for (at, character) in group.char_indices() {
            match character {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => start = true,
                character if start && depth == 0 && !character.is_whitespace() => {
                    start = false;
                    found.insert(name(&group[at..]));
                }
                _ => {}
            }
        }
    }
    found
}

#[test]
fn a_room_uses_only_rooms_below_it() {
    let rows = rows();
    assert!(rows.len() > 15, "{rows:?}");
    let source = source();
    let mut paths = Vec::new();
    each_file(&source, &mut |path| paths.push(path.to_owned()));
    let mut wrong = Vec::new();
    let mut looked_at = 0;
    for path in paths {
        let place = path.strip_prefix(&source).unwrap();
        if !is_program(place) {
            continue;
        }
        let room = place.iter().next().unwrap().to_str().unwrap();
        let room = room.trim_end_matches(".rs");
        if ["lib", "main"].contains(&room) {
            continue;
        }
        let row = rows.get(room).unwrap_or_else(|| panic!("`{room}` is not on the map"));
        looked_at += 1;
        for other in used(&fs::read_to_string(&path).unwrap()) {
            match rows.get(&other) {
                Some(below) if below >= row => {}
                _ => wrong.push(format!("{} uses `{other}`", place.display())),
            }
        }
    }
    assert!(looked_at > 100, "{looked_at}");
    assert_eq!(wrong, crate::support::NONE);
}

#[test]
fn what_the_map_names_is_there() {
    let (mut named, mut room) = (0, None);
    for line in map().lines() {
        if let Some(entry) = line.strip_prefix(ROOM) {
            room = entry.split('`').next().map(|name| source().join(name));
        }
        let Some(room) = &room else { continue };
        for name in line.split('`').skip(1).step_by(2) {
            // `check/{a,b}.rs` are two files.
            let (before, rest) = name.split_once('{').unwrap_or((name, ""));
            let (names, after) = rest.split_once('}').unwrap_or(("", rest));
            for name in names.split(',').map(|name| format!("{before}{name}{after}")) {
                if [".rs", "/", ".json"].iter().any(|end| name.ends_with(end)) {
                    assert!(room.join(&name).exists() || source().join(&name).exists(), "{line}: {name}");
                    named += 1;
                }
            }
        }
    }
    assert!(named > 100, "{named}");
}

#[test]
fn every_directory_is_on_the_map() {
    let page = fs::read_to_string(source().join("lib.rs")).unwrap();
    let directories = |path: &Path| -> Vec<String> {
        let entries = fs::read_dir(path).unwrap().map(|entry| entry.unwrap());
        let entries = entries.filter(|entry| entry.file_type().unwrap().is_dir());
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect()
    };
    let mut names = [directories(&source().join("..")), directories(&source())].concat();
    // The last one has random cases that failed once.
    names.retain(|name| ![".git", "target", "proptest-regressions"].contains(&name.as_str()));
    assert!(names.len() > 20, "{names:?}");
    let is_named = |name: &String| {
        let mut named = [format!("`{name}/"), format!("[`{name}`]"), format!("`src/{name}/")].into_iter();
        named.any(|named| page.contains(&named))
    };
    names.retain(|name| !is_named(name));
    assert_eq!(names, crate::support::NONE);
}

/// Returns the files of the program whose code has one of some words, but for those that begin as one of `known`.
fn with_words(words: &[&str], known: &[&str]) -> BTreeSet<PathBuf> {
    let (source, mut all) = (source(), BTreeSet::new());
    each_file(&source, &mut |path| {
        let place = path.strip_prefix(&source).unwrap();
        if is_program(place) && !known.iter().any(|known| place.starts_with(known)) {
            let code = code(&fs::read_to_string(path).unwrap());
            if words.iter().any(|word| code.contains(word)) {
                all.insert(place.to_owned());
            }
        }
    });
    all
}

#[test]
fn nothing_but_its_modules_knows_an_engine() {
    const MODULES: [&str; 4] = ["targets/argo", "targets/argo.rs", "targets/flux", "targets/flux.rs"];
    let names = ["EngineName::Flux", "EngineName::ArgoCd", "EngineName::{", "EngineName::*"];
    let known = [&MODULES[..], &["config/deployed.rs", "targets/engine.rs"]].concat();
    assert_eq!(with_words(&names, &known), BTreeSet::new());
    assert!(with_words(&names, &[]).len() > 3);
    // The words of their objects: what a difference of objects brings about reads these of builds, and not as types.
    let words = [
        "\"Application\"",
        "\"ApplicationSet\"",
        "\"ArtifactGenerator\"",
        "\"FluxInstance\"",
        "\"GitRepository\"",
        "\"HelmRelease\"",
        "\"OCIRepository\"",
        "\"ResourceSet\"",
        "argocd-",
        "argoproj.io",
        "fluxcd.io",
        "sourceRef",
        "targetRevision",
    ];
    let known =
        [&MODULES[..], &["build/consequences", "build/consequences.rs", "kustomization/sniff.rs", "targets/policy.rs"]];
    assert_eq!(with_words(&words, &known.concat()), BTreeSet::new());
}

#[test]
fn used_rooms_are_found() {
    let text = "use crate::a::B;\nuse crate::{\n    b::{C, D},\n    c,\n};\n// crate::no\nfn f() { crate::d::e() }\n#[cfg(test)]\nmod tests {\n use crate::no;\n}\n";
    let expected = ["a", "b", "c", "d"].map(str::to_owned);
    assert_eq!(used(text), BTreeSet::from(expected));
}

#[test]
fn a_comment_is_as_wide_as_the_code() {
    let is_wide =
        |line: &&str| line.chars().count() > 120 && line.trim_start().starts_with("//") && !line.contains("//! |");
    for directory in [source(), source().with_file_name("tests")] {
        each_file(&directory, &mut |path| {
            if path.extension().is_some_and(|end| end == "rs") {
                let text = fs::read_to_string(path).unwrap();
                assert_eq!(text.lines().find(is_wide), None, "{}: rustfmt wraps no comments", path.display());
            }
        });
    }
}
