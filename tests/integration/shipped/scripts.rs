//! The shell scripts that users run.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::tool;

/// Returns the files below `directory` that begin as shell scripts do.
fn scripts(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(scripts(&path));
        } else if fs::read(&path).unwrap().starts_with(b"#!") {
            found.push(path);
        }
    }
    found
}

#[test]
fn every_script_is_sound() {
    let Some(shellcheck) = tool("shellcheck") else {
        return;
    };
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut scripts = scripts(&top.join("hooks"));
    assert!(scripts.len() >= 4, "{scripts:?}");
    let ours = [
        ".ci/release",
        ".ci/run",
        ".github/package.sh",
        ".github/release.sh",
    ];
    scripts.extend(ours.map(|path| top.join(path)));
    let output = Command::new(shellcheck).args(&scripts).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
}
