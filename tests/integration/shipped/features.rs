//! What a build without the default feature `localize` leaves out.

use std::path::Path;
use std::process::Command;

/// Returns the names of the crates that a build is made of.
fn crates(features: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .args(["tree", "--locked", "--edges=normal,build", "--prefix=none"])
        .args(features)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split(' ').next())
        .map(str::to_owned)
        .collect()
}

#[test]
fn a_check_alone_has_no_way_to_the_network() {
    let all = crates(&[]);
    let check = crates(&["--no-default-features"]);
    for name in ["reqwest", "rustls", "ring", "hyper", "tokio", "indicatif"] {
        assert!(all.iter().any(|one| one == name), "{name} is not used");
        assert!(!check.iter().any(|one| one == name), "{name} is left");
    }
    assert!(check.iter().any(|one| one == "gix"));
}
