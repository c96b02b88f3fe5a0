//! What must never be called clean: files that were not looked at, and files that are hidden from the check.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;

use crate::support::{Memory, Project, Repo, Sandbox, skip};

const REMOTE: &str = "resources: [https://example.com/x.yaml]\n";

/// Every source that can be checked.
const SOURCES: [&[&str]; 3] = [
    &["check"],
    &["check", "--working-tree"],
    &["check", "--rev", "HEAD"],
];

#[track_caller]
fn says(repo: &Repo, status: i32, words: &[&str]) {
    repo.git(&["add", "--all"]);
    repo.git(&["commit", "--quiet", "--allow-empty", "-m", "files"]);
    for source in SOURCES {
        let output = repo.run(source);
        match status {
            0 => output.success(),
            status => output.fails(status),
        };
        for words in words {
            assert!(
                output.stdout.contains(words) || output.stderr.contains(words),
                "no {words:?} in {output:?}"
            );
        }
    }
}

#[test]
fn a_directory_whose_name_is_not_utf8() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", "namePrefix: a-\n");
    let bytes = repo.path().join(OsStr::from_bytes(b"b\xff/deep"));
    if fs::create_dir_all(&bytes).is_err() {
        return skip("this file system takes no such name");
    }
    fs::write(bytes.join("kustomization.yaml"), REMOTE).unwrap();
    let words = "error: `b\u{fffd}/deep/kustomization.yaml` was not looked at: its path is not UTF-8\n  hint: rename its directory";
    says(&repo, 2, &[words, "checked 1 kustomization"]);
    // The requested path was checked.
    repo.run(&["check", "app"]).success();
    // A sparse index holds the directory as a tree.
    repo.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "app"]);
    assert!(!bytes.exists());
    repo.run(&["check"])
        .fails(2)
        .stderr_has("was not looked at");
}

#[test]
fn a_configuration_that_leaves_out_everything() {
    let files = Memory::of(&[("app/kustomization.yaml", REMOTE)]);
    for text in ["include: [apps/*]\n", "exclude: ['**']\n"] {
        let failure = files.with(".kustomize-localize", text).check().unwrap_err();
        assert_eq!(
            failure.0[0].message,
            "`.kustomize-localize` leaves out every kustomization"
        );
        assert_eq!(failure.0[0].hints, ["change `include` and `exclude` there"]);
    }
    // Where there is none, none is left out.
    let none = Memory::of(&[(".kustomize-localize", "exclude: ['**']\n")]);
    assert_eq!(none.checked().kustomizations, 0);
}

#[test]
fn a_lock_that_lists_handwritten_files() {
    let text = "helmCharts:\n- name: x\n  repo: https://charts.example.com\n  version: 1.0.0\n";
    let digest = git_kustomize_localize::record::sha256_hex(text.as_bytes());
    let lock = format!(
        "version: 1\nfiles:\n  - path: kustomization.yaml\n    mode: \"100644\"\n    sha256: {digest}\n"
    );
    let said = Memory::of(&[
        ("app/kustomization.yaml", text),
        ("app/kustomize-localize.lock", &lock),
    ])
    .human();
    assert!(said.contains("error[remote-chart]"), "{said}");
}

#[test]
fn an_unseen_directory_of_a_locked_repository() {
    let project = Project::new();
    let work = &project.work;
    let upstream = &project.upstream;
    upstream.write(
        "deep/kustomization.yaml",
        "resources: ['https://example.com/acme/remote.git?ref=v1']\n",
    );
    upstream.symlink("link", "deep");
    upstream.commit("deep");
    upstream.git(&["tag", "v2"]);
    let names = |directory: &str| {
        work.write(
            "example/base/kustomization.yaml",
            format!("resources: ['https://example.com/acme/remote.git//{directory}?ref=v2']\n"),
        );
        work.git(&["add", "--all"]);
    };
    names("");
    work.run(&["lock"]).success();
    work.git(&["add", "--all"]);
    work.run(&["check"]).success();
    // The directory names a remote that is not in the lock.
    for directory in ["deep", "link"] {
        names(directory);
        work.run(&["check"]).fails(1).stdout_has(&format!(
            "is a git repository at `v2`, of which the lock does not hold `{directory}`"
        ));
        work.run(&["lock"]).success().stdout_has(&format!(
            "  added {directory} of https://example.com/acme/remote.git?ref=v2\n"
        ));
        work.git(&["add", "--all"]);
        work.run(&["check"]).success();
        assert!(work.read("kustomize-localize.lock").contains("ref: v1"));
        work.run(&["lock"]).success().stdout_has("nothing to do");
    }
}
