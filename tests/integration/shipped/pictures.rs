//! The pictures of the README show what the program prints.

use std::fs;
use std::process::Command;

use super::top;
use crate::support::pages::source;
use crate::support::{Kustomize, Running, Sandbox, program};

/// They hold every byte that is printed: a change of a message is no reason to draw them at once.
#[test]
#[ignore = "at night"]
fn the_pictures_are_those_of_this_program() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let top = top();
    let sandbox = Sandbox::new();
    let mut script = Command::new("python3");
    script
        .arg(top.join(".github/pictures.py"))
        .arg(sandbox.path("pictures"))
        .env("PROGRAM", program())
        .env("KUSTOMIZE", kustomize.program());
    Running::start(&mut script).wait().success();
    for name in NAMES {
        let [drawn, kept] = [sandbox.path("pictures"), top.join(".github/pictures")]
            .map(|place| fs::read_to_string(place.join(format!("{name}.svg"))).unwrap());
        assert_eq!(drawn, kept, "{name}: draw it again with .github/pictures.py");
    }
}

const NAMES: [&str; 3] = ["check", "localize", "tree"];

#[test]
fn the_readme_shows_the_pictures() {
    let readme = source("README.md");
    for name in NAMES {
        let path = format!(".github/pictures/{name}.svg");
        assert!(readme.contains(&format!("]({path})")), "{name}");
        assert!(source(&path).starts_with("<svg"), "{name}");
    }
}
