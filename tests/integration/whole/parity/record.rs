//! What the real `kustomize localize` makes of a case.

use std::env;
use std::fs;

use super::case::{Case, Tree, parity};
use crate::support::{Kustomize, Sandbox, skip};

/// The result of a run, free of everything that belongs to one machine or one moment.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Record {
    Copied(Tree),
    /// With the message.
    Failed(String),
}

/// Returns whether the records should be written anew.
pub(super) fn wanted() -> bool {
    env::var_os("KUSTOMIZE_LOCALIZE_RECORD").is_some_and(|value| value == "1")
}

/// Returns whether this kustomize can be held to the records.
///
/// A build from source prints `(devel)` and is assumed to be the right one.
pub(super) fn is_comparable(sandbox: &Sandbox, kustomize: &Kustomize) -> bool {
    let recorded = fs::read_to_string(parity().join("VERSION")).unwrap();
    let recorded = recorded.trim();
    let output = kustomize.run(sandbox, &sandbox.path(""), &["version"]);
    let version = output.success().stdout.trim();
    let comparable = version == recorded || version == "(devel)";
    if !comparable {
        skip(&format!("kustomize is {version}, the records are of {recorded}"));
    }
    comparable
}

/// Runs kustomize on a case.
pub(super) fn make(case: &Case, sandbox: &Sandbox, kustomize: &Kustomize) -> Record {
    let work = case.prepare(sandbox);
    let before = Tree::read(&work);
    let output = kustomize.localize(sandbox, &work, &case.arguments());
    let root = sandbox.path("");
    let root = root.to_str().unwrap().trim_end_matches('/');
    if output.status != 0 {
        return Record::Failed(without_moment(&output.stderr.replace(root, "@SANDBOX@")));
    }
    let mut tree = case.result(sandbox, &before);
    // kustomize gives every file the same mode, and that depends on the umask.
    tree.executables.clear();
    for (path, bytes) in &tree.files {
        let text = String::from_utf8_lossy(bytes);
        assert!(!text.contains(root), "{path} names the sandbox:\n{text}");
    }
    Record::Copied(tree)
}

/// Cuts what another moment, machine or version of git would say in another way: the time of log
/// lines, the numbers of temporary directories, and the messages of git.
fn without_moment(stderr: &str) -> String {
    let mut text = String::new();
    for line in stderr.lines() {
        let stamped = line.len() > 20 && line.as_bytes()[4] == b'/' && line.as_bytes()[13] == b':';
        text.push_str(if stamped { &line[20..] } else { line });
        text.push('\n');
    }
    if let Some((before, _)) = text.split_once("failed to run '") {
        text = format!("{before}failed to run git\n");
    }
    let mut parts = text.split("/kustomize-");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str("/kustomize-N");
        text.push_str(part.trim_start_matches(|c: char| c.is_ascii_digit()));
    }
    text
}

/// Returns the record that is kept with the case.
pub(super) fn stored(case: &Case) -> Record {
    match fs::read_to_string(case.path("expected-error.txt")) {
        Ok(message) => Record::Failed(message),
        Err(_) => Record::Copied(Tree::read(&case.path("expected"))),
    }
}

/// Keeps the record with the case.
pub(super) fn store(case: &Case, record: &Record) {
    let (copied, failed) = (case.path("expected"), case.path("expected-error.txt"));
    fs::remove_dir_all(&copied).ok();
    fs::remove_file(&failed).ok();
    match record {
        Record::Copied(tree) => tree.write(&copied),
        Record::Failed(message) => fs::write(failed, message).unwrap(),
    }
}
