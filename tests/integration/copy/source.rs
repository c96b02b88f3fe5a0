//! Where the local files come from: the source commit, and what is in the way of it.

use std::fs;

use crate::support::{OVERLAY, Output, Project, Repo, config, skip};

/// Asserts exit status 2, these words, and that the repository is as before.
#[track_caller]
fn refused(repo: &Repo, args: &[&str], words: &[&str]) -> Output {
    let output = repo.run_unchanged(args);
    output.fails(2);
    for text in words {
        output.stderr_has(text);
    }
    output
}

#[test]
fn changed_files_in_use_are_named() {
    let project = Project::new();
    let work = &project.work;
    work.write("README.md", "Not in use.\n");
    work.write("other/config.yaml", config("not-in-use"));
    project.overlay(&["--dry-run"]).success();
    // The mode counts.
    work.write_executable("example/base/config.yaml", config("base"));
    let words = "files in use have uncommitted changes: `example/base/config.yaml`";
    refused(work, &OVERLAY, &[words]);
    let dry_run = [&OVERLAY[..], &["--dry-run"]].concat();
    refused(work, &dry_run, &[words]);

    work.write("example/base/config.yaml", config("changed"));
    fs::remove_file(work.path().join("example/overlay/kustomization.yaml")).unwrap();
    let output = refused(
        work,
        &OVERLAY,
        &[
            "files in use have uncommitted changes: `example/base/config.yaml`, `example/overlay/kustomization.yaml`",
            "hint: or stash them; to use the committed files: --rev HEAD",
        ],
    );
    output.lacks("README.md").lacks("other/");
    // From a sub-directory, and when the change is staged.
    work.git(&["add", "--all"]);
    let output = project.sandbox.run(&work.path().join("example"), &["overlay", "--scope", "."]);
    output.fails(2).says(expect![[r#"
        error: files in use have uncommitted changes: `example/base/config.yaml`, `example/overlay/kustomization.yaml`
          hint: commit them: git add -f -- :/example/base/config.yaml && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);

    project.overlay(&["--rev", "HEAD"]).success();
    assert_eq!(work.show("localized/main", "localized-overlay/base/config.yaml"), config("base"));
}

#[test]
fn a_lock_or_a_configuration_that_is_not_committed_is_not_passed_over() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    work.write(".kustomize-localize", "allow-private: true\n");
    for (file, differ) in [
        ("kustomize-localize.lock", "`.kustomize-localize`, `kustomize-localize.lock`"),
        (".kustomize-localize", "`.kustomize-localize`"),
    ] {
        let words = [differ, "git add -f -- :/", "&& git commit", "--rev HEAD"];
        for args in [&OVERLAY[..], &["branch"]] {
            refused(work, args, &words);
            let committed = work.run_as_is(&[args, &["--dry-run", "--rev", "HEAD"]].concat());
            if args == OVERLAY {
                committed.success();
            }
        }
        work.git(&["add", "-f", "--", file]);
        refused(work, &["branch"], &words);
        work.git(&["commit", "--quiet", "--message", file]);
    }
    work.run(&["branch", "--dry-run"]).success();
    let differs = "uncommitted changes: `.kustomize-localize`";
    for change in [Some("allow-private: false\n"), None] {
        match change {
            Some(text) => work.write(".kustomize-localize", text),
            None => work.remove(".kustomize-localize"),
        }
        refused(work, &OVERLAY, &[differs]);
        refused(work, &["branch"], &[differs]);
    }
    work.git(&["add", "--all"]);
    refused(work, &["branch"], &["hint: commit them: git commit\n"]);
}

/// Who follows the hint of a failure and edits the configuration is told that it has to be committed, and not the same
/// failure again.
#[test]
fn a_configuration_that_is_not_committed_is_named_before_anything_is_resolved() {
    let project = Project::new();
    let work = &project.work;
    let gone = format!("file://{}/gone", project.sandbox.path("").display());
    work.write("gone/kustomization.yaml", format!("resources: ['{gone}?ref=v1']\n"));
    work.commit("gone");
    work.run_as_is(&["branch"]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://example.com/acme/remote.git?ref=v1` is neither localized nor locked
         --> example/base/kustomization.yaml:3:5
          |
        3 |   - https://example.com/acme/remote.git?ref=v1
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[1]

        error[remote-reference]: `file:///home/me//gone?ref=v1` is neither localized nor locked
         --> gone/kustomization.yaml:1:13
          |
        1 | resources: ['file:///home/me//gone?ref=v1']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]

        error: <0> has 2 errors (remote-reference 2): nothing was committed
          hint: for more: git kustomize-localize explain remote-reference
          hint: lock the remote references: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock && git commit
    "#]]);
    work.write(".kustomize-localize", format!("allow:\n- {{url: '{gone}', refs: any, reason: it is ours}}\n"));
    work.run_as_is(&["branch"]).fails(2).says(expect![[r#"
        error: files in use have uncommitted changes: `.kustomize-localize`
          hint: commit them: git add -f -- :/.kustomize-localize && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
    work.git(&["add", "-f", "--", ":/.kustomize-localize"]);
    work.git(&["commit", "--quiet", "--message", "leave it"]);
    work.run(&["branch", "--no-verify"]).success();
}

#[test]
fn a_changed_link_on_the_way_is_named() {
    let project = Project::new();
    let work = &project.work;
    work.write("example/new/kustomization.yaml", "namePrefix: new-\n");
    work.write("example/linked/real.yaml", "resources: [../current]\n");
    work.symlink("example/linked/kustomization.yaml", "real.yaml");
    work.symlink("example/current", "base");
    work.commit("links");
    let linked = ["example/linked", "--scope", "example"];
    work.run(&[&linked[..], &["--dry-run"]].concat()).success();
    for (link, target) in [("example/current", "new"), ("example/linked/kustomization.yaml", "other.yaml")] {
        work.remove(link);
        work.symlink(link, target);
        let words = format!("files in use have uncommitted changes: `{link}`");
        refused(work, &linked, &[&words]);
        work.git(&["checkout", "--quiet", "--", link]);
    }
}

#[test]
fn a_touched_file_is_not_changed() {
    let project = Project::new();
    let work = &project.work;
    let before = work.state();
    let later = std::time::SystemTime::now() + std::time::Duration::from_secs(60);
    let file = work.path().join("example/base/config.yaml");
    fs::File::options().append(true).open(file).unwrap().set_modified(later).unwrap();
    project.overlay(&["--dry-run"]).success();
    before.assert_same(&work.state());
}

#[test]
fn a_changed_file_whose_name_is_not_utf8_is_ignored() {
    use std::os::unix::ffi::OsStrExt as _;
    let project = Project::new();
    let work = &project.work;
    let name = std::ffi::OsStr::from_bytes(b"caf\xe9.txt");
    if fs::write(work.path().join(name), "one").is_err() {
        return skip("this file system takes no such name");
    }
    work.commit("a name in Latin-1");
    fs::write(work.path().join(name), "two").unwrap();
    project.overlay(&[]).success();
}

#[test]
fn files_outside_of_a_sparse_checkout_are_those_of_the_commit() {
    let project = Project::new();
    let work = &project.work;
    work.git(&["sparse-checkout", "set", "other"]);
    assert!(!work.path().join("example").exists());
    let before = work.state();
    project.overlay(&[]).success();
    before.assert_same(&work.state().without_ref("refs/heads/localized/main"));
}

#[test]
fn uncommitted_files_are_reported_with_the_reason() {
    let project = Project::new();
    let work = &project.work;
    work.write(".gitignore", "# secrets\n*.env\n");
    work.write(
        "other/kustomization.yaml",
        "resources: [untracked.yaml, staged.yaml, ../example/none]\nsecretGenerator:\n- name: s\n  envs: [secret.env]\n  files: [key=nowhere.pem]\n",
    );
    work.commit("names files that are not there");
    work.write("other/untracked.yaml", config("untracked"));
    work.write("other/staged.yaml", config("staged"));
    work.git(&["add", "other/staged.yaml"]);
    for on_disk in [false, true] {
        if on_disk {
            work.write("other/secret.env", "TOKEN=1\n");
        }
        // All of them in one run, each with its place.
        refused(
            work,
            &["other", "--scope", "."],
            &[
                "other/kustomization.yaml:1:13: resources[0]: `other/untracked.yaml` is on disk, but not committed",
                "hint: git add -f -- :/other/untracked.yaml",
                "resources[1]: `other/staged.yaml` is on disk, but not committed",
                "resources[2]: there is no `example/none`",
                if on_disk {
                    "`other/secret.env` is not committed, and git ignores it (.gitignore:2)"
                } else {
                    "`other/secret.env` does not exist, and git ignores it (.gitignore:2)"
                },
                "there is no `other/nowhere.pem`",
            ],
        );
    }
    // Files on disk are ignored for another revision.
    work.git(&["reset", "--quiet"]);
    refused(work, &["other", "--scope", ".", "--rev", "main"], &["there is no `other/untracked.yaml`"]);
}

#[test]
fn a_missing_target_is_reported() {
    let project = Project::new();
    let work = &project.work;
    work.write("new/kustomization.yaml", "resources: []\n");
    fs::create_dir(work.path().join("empty")).unwrap();
    let commit = "commit it first, or use `--no-commit`";
    let look = "name the directory of the kustomization, relative to this one";
    let (directory, word) = ("error: the target `", "` is neither a command nor a directory");
    for (target, says, hint) in [
        ("new", directory, commit),
        ("empty", directory, commit),
        ("./nowhere", directory, look),
        (
            "nowhere",
            word,
            "for a copy, name the directory that contains the kustomization; for all commands: git kustomize-localize -h",
        ),
        // A misspelled command, and those of other programs.
        ("chek", word, "did you mean `git kustomize-localize check`?"),
        ("lint", word, "did you mean `git kustomize-localize check`?"),
        ("upgrade", word, "did you mean `git kustomize-localize update`?"),
        (
            "localize",
            word,
            "for a copy, name the directory that contains the kustomization; for all commands: git kustomize-localize -h",
        ),
    ] {
        refused(work, &[target], &[says, &format!("hint: {hint}\n")]);
    }
    // Also where there is nothing to copy from.
    let empty = project.sandbox.repo("empty");
    refused(&empty, &["lint"], &["`lint` is neither a command nor a directory"]);
    refused(work, &["help", "chek"], &["there is no page `chek`"]);
    // No TARGET takes such an option.
    let meant = "did you mean `git kustomize-localize check`?";
    refused(work, &["chek", "--staged"], &[word, meant]);
    // What is said can be typed as it is, also behind an option that stands first.
    refused(work, &["localize", "other dir"], &["did you mean `git kustomize-localize 'other dir'`?"]);
    refused(work, &["-v", "localize", "x", "y", "--scope", "z"], &[word]).says(expect![[r#"
        error: `localize` is neither a command nor a directory
          hint: did you mean `git kustomize-localize -v x y --scope z`?
    "#]]);
    refused(work, &["-v", "chek", "--staged"], &[word, meant]);
    refused(work, &["-q", "check", "--format=xml"], &["[possible values: human, json, sarif, github, gitlab]"])
        .lacks("html");
    refused(work, &["--format=xml"], &["[possible values: human, json]"]);
    // What a command does not take, and another one does.
    refused(work, &["branch", "app"], &["unexpected argument 'app'"]);
    refused(work, &["vendor", "--update"], &["tip: did you mean `git kustomize-localize update`?"]);
    // Another command has the option.
    refused(work, &["--staged"], &["tip: did you mean `git kustomize-localize check --staged`?"]).lacks("similar");
    // What is meant is said of the command at hand, if that has it.
    for (args, meant) in [
        (["--json", "diff"], Some("--format json diff")),
        (["diff", "--json"], Some("diff --format json")),
        (["example", "--json"], Some("example --format json")),
        (["vendor", "--force"], Some("vendor --overwrite")),
        (["example", "--output=new"], Some("example new")),
        (["lock", "--force"], None),
    ] {
        let output = refused(work, &args, &["unexpected argument"]);
        match meant {
            Some(meant) => output.stderr_has(&format!("did you mean `git kustomize-localize {meant}`?")),
            None => output.lacks("did you mean"),
        };
    }
    // A directory of that name is a TARGET.
    fs::create_dir(work.path().join("chek")).unwrap();
    refused(work, &["chek", "--staged"], &["unexpected argument '--staged'"]);
}

#[test]
fn a_submodule_that_is_in_the_way_is_reported_and_any_other_stays() {
    let project = Project::new();
    let work = &project.work;
    let upstream = project.upstream.path().to_str().unwrap();
    let add = ["submodule", "--quiet", "add", upstream, "vendor/remote"];
    work.git(&[&["-c", "protocol.file.allow=always"], &add[..]].concat());
    work.commit("a submodule");
    let into = ["example/overlay", "vendor/remote/x", "--scope", "example"];
    let words = ["`vendor/remote` is a submodule in the source commit"];
    refused(work, &into, &words);
    project.overlay(&[]).success();
    assert_eq!(work.id("localized/main:vendor/remote"), work.id("main:vendor/remote"));
}

#[test]
fn links_inside_are_followed() {
    let project = Project::new();
    let work = &project.work;
    work.symlink("other/link.yaml", "../example/base/config.yaml");
    work.symlink("other/dir", "sub/../here");
    work.write("other/here/kustomization.yaml", "resources: [c.yaml]\n");
    work.write("other/here/c.yaml", config("here"));
    work.write("other/sub/x", "");
    work.symlink("other/again.yaml", "config.yaml");
    work.write("other/kustomization.yaml", "resources: [dir, again.yaml]\n");
    work.commit("links");
    work.run(&["other"]).success();
    assert_eq!(
        work.files("localized/main:localized-other"),
        [
            "100644 config.yaml",
            "100644 here/c.yaml",
            "100644 here/kustomization.yaml",
            "100644 kustomization.yaml",
            "100644 kustomize-localize.lock",
        ]
    );
    assert_eq!(work.show("localized/main", "localized-other/kustomization.yaml"), "resources: [here, config.yaml]\n");

    // In another checkout an absolute one leads to nothing, or to something else.
    let absolute = work.path().join("other/config.yaml");
    work.remove("other/again.yaml");
    work.symlink("other/again.yaml", absolute.to_str().unwrap());
    work.commit("an absolute link");
    refused(
        work,
        &["other", "elsewhere"],
        &["`again.yaml` goes through the link `other/again.yaml` to the absolute path"],
    );
}

#[test]
fn a_new_directory_that_is_taken_or_reached_is_refused() {
    let project = Project::new();
    let work = &project.work;
    work.symlink("link", "example");
    work.write("other/kustomization.yaml", "resources: [sub/c.yaml]\n");
    work.write("other/sub/c.yaml", config("sub"));
    work.commit("sub");
    // Inside the target it may lie, as long as nothing refers to it.
    work.run(&["other", "other/copy"]).success();
    work.git(&["merge", "--quiet", "--ff-only", "localized/main"]);
    for (new, said) in [
        ("link/copy", "`link` is a link in the source commit"),
        ("link", "`link` already exists in the source commit"),
        ("other/sub", "`other/sub` already exists in the source"),
    ] {
        refused(work, &["other", new], &[said]);
    }
    let reaches = "resources: [copy]\ncrds: [copy/sub/c.yaml]\n";
    work.write("other/kustomization.yaml", reaches);
    work.commit("reaches the copy");
    let words = [
        "`copy` is in `other/copy`, where the result will be written",
        "`copy/sub/c.yaml` is in `other/copy`",
        "hint: choose another NEW_DIR",
    ];
    refused(work, &["other", "other/copy"], &words);
}
