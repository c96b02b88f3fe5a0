//! The pictures of the README show what the program prints.

use std::fs;
use std::path::Path;

use crate::support::{Kustomize, Running, Sandbox};

#[test]
fn the_pictures_are_those_of_this_program() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let top = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sandbox = Sandbox::new();
    let mut script = std::process::Command::new("python3");
    script
        .arg(top.join(".github/pictures.py"))
        .arg(sandbox.path("pictures"))
        .env("PROGRAM", env!("CARGO_BIN_EXE_git-kustomize-localize"))
        .env("KUSTOMIZE", kustomize.program());
    Running::start(&mut script).wait().success();
    let readme = crate::support::pages::source("README.md");
    for name in ["check", "localize", "tree"] {
        assert!(
            readme.contains(&format!("](.github/pictures/{name}.svg)")),
            "{name}"
        );
        let drawn = fs::read_to_string(sandbox.path("pictures").join(format!("{name}.svg")));
        let kept = fs::read_to_string(top.join(format!(".github/pictures/{name}.svg")));
        assert_eq!(
            drawn.unwrap(),
            kept.unwrap(),
            "{name}: draw it again with .github/pictures.py"
        );
    }
}
