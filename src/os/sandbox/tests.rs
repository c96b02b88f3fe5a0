#![cfg(target_os = "linux")]

use std::fs;
use std::process::Command;
use std::time::Duration;

use super::*;
use crate::os::process::{Bounds, Error};

/// Runs a script in a new directory, with this means, and returns its status, what it says, and the directory.
fn run(means: Means, script: &str, bounds: impl Into<Bounds>) -> Option<(Option<i32>, String, tempfile::TempDir)> {
    let top = tempfile::tempdir().unwrap();
    let [input, own] = ["input", "own"].map(|name| top.path().join(name));
    fs::create_dir_all(input.join("below")).unwrap();
    fs::create_dir(&own).unwrap();
    fs::write(input.join("below/file"), "").unwrap();
    let mut command = Command::new("sh");
    command.args(["-c", script]).current_dir(top.path());
    let network = Some((std::net::Ipv4Addr::LOCALHOST, 9).into());
    let isolation = Isolation { means, network, input: &input, writable: &[&own], local: false };
    match super::run(&mut command, isolation, bounds) {
        Ok(Isolated { output, .. }) => Some((output.status.code(), String::from_utf8(output.stdout).unwrap(), top)),
        // The machine forbids it.
        Err(Error::Io(..)) => None,
        Err(error) => Some((None, error.to_string(), top)),
    }
}

#[test]
fn a_child_ends_as_it_would_alone_and_leaves_nothing_behind() {
    let daemon =
        "setsid sh -c 'echo $$ >own/daemon; sleep 60' >/dev/null 2>&1 & until [ -s own/daemon ]; do sleep 0.01; done";
    for means in [Means::Filter, Means::Nothing] {
        for (ends, status) in [("exit 0", Some(0)), ("exit 7", Some(7)), ("kill -9 $$", None)] {
            let Some((code, _, top)) = run(means, &format!("{daemon}; {ends}"), None) else { continue };
            assert_eq!(code, status, "{means:?} {ends}");
            let daemon = fs::read_to_string(top.path().join("own/daemon")).unwrap();
            assert!(!Path::new("/proc").join(daemon.trim()).exists(), "{means:?} {ends}");
        }
        // Also where it is ended.
        let bounds = Bounds::from(Some(Duration::from_secs(1)));
        let Some((_, said, top)) = run(means, &format!("trap '' TERM; {daemon}; sleep 60"), bounds) else { continue };
        assert_eq!(said, "`sh` did not finish within 1 s", "{means:?}");
        let daemon = fs::read_to_string(top.path().join("own/daemon")).unwrap();
        assert!(!Path::new("/proc").join(daemon.trim()).exists(), "{means:?}");
    }
}

#[test]
fn what_it_reads_stays_as_it_is() {
    let script = "for place in input/new input/below/file own/made beside; do echo x >$place; done 2>/dev/null; \
                  mv input/below input/other 2>/dev/null; echo x >/dev/null && ls input input/below own";
    let Some((_, said, top)) = run(Means::Filter, script, None) else { return };
    assert!(!said.contains("new") && !said.contains("other") && said.contains("made"), "{said}");
    assert_eq!(fs::read(top.path().join("input/below/file")).unwrap(), b"");
}
