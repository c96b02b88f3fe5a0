//! The targets of `tests/fuzz`, which are programs of their own at night: they compile, and hold for every input of the
//! comparison with kustomize.

#![allow(unused_attributes, reason = "a program has no main function there")]

#[path = "../../fuzz/targets/archive.rs"]
mod archive;
#[path = "../../fuzz/targets/configuration.rs"]
mod configuration;
#[path = "../../fuzz/targets/kustomization.rs"]
mod kustomization;
#[path = "../../fuzz/targets/lock.rs"]
mod lock;
#[path = "../../fuzz/targets/trailers.rs"]
mod trailers;
#[path = "../../fuzz/targets/url.rs"]
mod url;

use std::fs;
use std::path::Path;

use crate::support::{each_file, full};

/// As `libfuzzer-sys` has it, which the targets name: here a function that is called with each input.
macro_rules! fuzz_target {
    (|$input:ident: &[u8]| $body:block) => {
        pub(super) fn run($input: &[u8]) {
            $body
        }
    };
    (|$input:ident: &str| $body:block) => {
        pub(super) fn run(bytes: &[u8]) {
            if let Ok($input) = std::str::from_utf8(bytes) {
                $body
            }
        }
    };
}
pub(crate) use fuzz_target;

type Target = (&'static str, fn(&[u8]));

const TARGETS: [Target; 6] = [
    ("archive", archive::run),
    ("configuration", configuration::run),
    ("kustomization", kustomization::run),
    ("lock", lock::run),
    ("trailers", trailers::run),
    ("url", url::run),
];

#[test]
fn every_target_holds() {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut files: Vec<String> = fs::read_dir(tests.join("fuzz/targets"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    files.sort();
    assert_eq!(files, TARGETS.map(|(name, _)| format!("{name}.rs")));
    let mut count = 0;
    each_file(&tests.join("parity"), &mut |path| {
        let Ok(bytes) = fs::read(path) else { return };
        for (_, run) in TARGETS {
            run(&bytes);
            count += 1;
            // By day each target gets the lines of every fifth file.
            for line in bytes.split(|byte| *byte == b'\n').filter(|_| full() || count % 5 == 0) {
                run(line);
            }
        }
    });
    assert!(count > 1000, "{count}");
}
