//! Where the local files come from: the source commit, and what is in the way of it.

use std::fs;

use crate::support::{OVERLAY, Project, Repo, Transcript, World, config, skip};

/// Asserts exit status 2, and that the repository is as before.
#[track_caller]
fn refused(refusals: &mut Transcript, repo: &Repo, args: &[&str]) {
    refusals.add(repo.run_unchanged(args).fails(2));
}

#[test]
fn changed_files_in_use_are_named() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.write("README.md", "Not in use.\n");
    work.write("other/config.yaml", config("not-in-use"));
    project.overlay(&["--dry-run"]).success();
    // The mode counts.
    work.write_executable("example/base/config.yaml", config("base"));
    refused(&mut refusals, work, &OVERLAY);
    let dry_run = [&OVERLAY[..], &["--dry-run"]].concat();
    refused(&mut refusals, work, &dry_run);

    work.write("example/base/config.yaml", config("changed"));
    fs::remove_file(work.path().join("example/overlay/kustomization.yaml")).unwrap();
    refused(&mut refusals, work, &OVERLAY);
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
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        $ git kustomize-localize example/overlay --scope example --dry-run --no-verify
        error: files in use have uncommitted changes: `example/base/config.yaml`
          hint: commit them: git add -f -- :/example/base/config.yaml && git commit
          hint: or stash them; to use the committed files: --rev HEAD
        $ git kustomize-localize example/overlay --scope example --no-verify
        error: files in use have uncommitted changes: `example/base/config.yaml`, `example/overlay/kustomization.yaml`
          hint: commit them: git add -f -- :/example/base/config.yaml :/example/overlay/kustomization.yaml && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
}

#[test]
fn a_lock_or_a_configuration_that_is_not_committed_is_not_passed_over() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    work.write(".kustomize-localize", "allow-private: true\n");
    for file in ["kustomize-localize.lock", ".kustomize-localize"] {
        for args in [&OVERLAY[..], &["branch"]] {
            refused(&mut refusals, work, args);
            let committed = work.run_as_is(&[args, &["--dry-run", "--rev", "HEAD"]].concat());
            if args == OVERLAY {
                committed.success();
            }
        }
        work.git(&["add", "-f", "--", file]);
        refused(&mut refusals, work, &["branch"]);
        work.git(&["commit", "--quiet", "--message", file]);
    }
    work.run(&["branch", "--dry-run"]).success();
    for change in [Some("allow-private: false\n"), None] {
        match change {
            Some(text) => work.write(".kustomize-localize", text),
            None => work.remove(".kustomize-localize"),
        }
        refused(&mut refusals, work, &OVERLAY);
        refused(&mut refusals, work, &["branch"]);
    }
    work.git(&["add", "--all"]);
    refused(&mut refusals, work, &["branch"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example --no-verify
        $ git kustomize-localize branch --no-verify
        error: files in use have uncommitted changes: `.kustomize-localize`, `kustomize-localize.lock`
          hint: commit them: git add -f -- :/.kustomize-localize :/kustomize-localize.lock && git commit
          hint: or stash them; to use the committed files: --rev HEAD
        $ git kustomize-localize example/overlay --scope example --no-verify
        $ git kustomize-localize branch --no-verify
        error: files in use have uncommitted changes: `.kustomize-localize`
          hint: commit them: git add -f -- :/.kustomize-localize && git commit
          hint: or stash them; to use the committed files: --rev HEAD
        $ git kustomize-localize branch --no-verify
        error: files in use have uncommitted changes: `.kustomize-localize`
          hint: commit them: git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
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
    let mut refusals = Transcript::default();
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
        refused(&mut refusals, work, &linked);
        work.git(&["checkout", "--quiet", "--", link]);
    }
    refusals.says(expect![[r#"
        $ git kustomize-localize example/linked --scope example --no-verify
        error: files in use have uncommitted changes: `example/current`
          hint: commit them: git add -f -- :/example/current && git commit
          hint: or stash them; to use the committed files: --rev HEAD
        $ git kustomize-localize example/linked --scope example --no-verify
        error: files in use have uncommitted changes: `example/linked/kustomization.yaml`
          hint: commit them: git add -f -- :/example/linked/kustomization.yaml && git commit
          hint: or stash them; to use the committed files: --rev HEAD
    "#]]);
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
    let mut refusals = Transcript::default();
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
        refused(&mut refusals, work, &["other", "--scope", "."]);
    }
    // Files on disk are ignored for another revision.
    work.git(&["reset", "--quiet"]);
    refused(&mut refusals, work, &["other", "--scope", ".", "--rev", "main"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize other --scope . --no-verify
        error: other/kustomization.yaml:1:13: resources[0]: `other/untracked.yaml` is on disk, but not committed
          hint: git add -f -- :/other/untracked.yaml
        error: other/kustomization.yaml:1:29: resources[1]: `other/staged.yaml` is on disk, but not committed
          hint: git add -f -- :/other/staged.yaml
        error: other/kustomization.yaml:1:42: resources[2]: there is no `example/none`
        error: other/kustomization.yaml:4:10: secretGenerator[0].envs[0]: `other/secret.env` does not exist, and git ignores it (.gitignore:2)
        error: other/kustomization.yaml:5:11: secretGenerator[0].files[0]: there is no `other/nowhere.pem`
          hint: add it, or remove the reference
        $ git kustomize-localize other --scope . --no-verify
        error: other/kustomization.yaml:1:13: resources[0]: `other/untracked.yaml` is on disk, but not committed
          hint: git add -f -- :/other/untracked.yaml
        error: other/kustomization.yaml:1:29: resources[1]: `other/staged.yaml` is on disk, but not committed
          hint: git add -f -- :/other/staged.yaml
        error: other/kustomization.yaml:1:42: resources[2]: there is no `example/none`
          hint: add it, or remove the reference
        error: other/kustomization.yaml:4:10: secretGenerator[0].envs[0]: `other/secret.env` is not committed, and git ignores it (.gitignore:2)
          hint: if it contains no secret, commit it: git add -f -- :/other/secret.env
        error: other/kustomization.yaml:5:11: secretGenerator[0].files[0]: there is no `other/nowhere.pem`
          hint: add it, or remove the reference
        $ git kustomize-localize other --scope . --rev main --no-verify
        error: other/kustomization.yaml:1:13: resources[0]: there is no `other/untracked.yaml`
        error: other/kustomization.yaml:1:29: resources[1]: there is no `other/staged.yaml`
        error: other/kustomization.yaml:1:42: resources[2]: there is no `example/none`
        error: other/kustomization.yaml:4:10: secretGenerator[0].envs[0]: `other/secret.env` is not committed, and git ignores it (.gitignore:2)
        error: other/kustomization.yaml:5:11: secretGenerator[0].files[0]: there is no `other/nowhere.pem`
          hint: add it, or remove the reference
    "#]]);
}

#[test]
fn a_missing_target_is_reported() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.write("new/kustomization.yaml", "resources: []\n");
    fs::create_dir(work.path().join("empty")).unwrap();
    // The last ones are a misspelled command, and those of other programs.
    for target in ["new", "empty", "./nowhere", "nowhere", "localize", "chek", "lint", "upgrade"] {
        refused(&mut refusals, work, &[target]);
    }
    // Also where there is nothing to copy from.
    let empty = project.sandbox.repo("empty");
    refused(&mut refusals, &empty, &["lint"]);
    refused(&mut refusals, work, &["help", "chek"]);
    // No TARGET takes such an option.
    refused(&mut refusals, work, &["chek", "--staged"]);
    // What is said can be typed as it is, also behind an option that stands first.
    refused(&mut refusals, work, &["localize", "other dir"]);
    refused(&mut refusals, work, &["-v", "localize", "x", "y", "--scope", "z"]);
    refused(&mut refusals, work, &["-v", "chek", "--staged"]);
    refused(&mut refusals, work, &["-q", "check", "--format=xml"]);
    refused(&mut refusals, work, &["--format=xml"]);
    // What a command does not take, and another one does.
    refused(&mut refusals, work, &["branch", "app"]);
    refused(&mut refusals, work, &["vendor", "--update"]);
    // Another command has the option.
    refused(&mut refusals, work, &["--staged"]);
    // What is meant is said of the command at hand, if that has it.
    for args in [
        ["--json", "diff"],
        ["diff", "--json"],
        ["example", "--json"],
        ["vendor", "--force"],
        ["example", "--output=new"],
        ["lock", "--force"],
        ["check", "--output=json"],
        ["sbom", "--output=x.json"],
        ["build", "--json"],
        ["lint", "--format=sarif"],
    ] {
        refused(&mut refusals, work, &args);
    }
    refused(&mut refusals, work, &["check", "-o", "json"]);
    // A directory of that name is a TARGET.
    fs::create_dir(work.path().join("chek")).unwrap();
    refused(&mut refusals, work, &["chek", "--staged"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize new --no-verify
        error: the target `new` is not in the source commit
          hint: commit it first, or use `--no-commit`
        $ git kustomize-localize empty --no-verify
        error: the target `empty` is not in the source commit
          hint: commit it first, or use `--no-commit`
        $ git kustomize-localize ./nowhere --no-verify
        error: the target `./nowhere` does not exist
          hint: name the directory of the kustomization, relative to this one
        $ git kustomize-localize nowhere --no-verify
        error: `nowhere` is neither a command nor a directory
          hint: for a copy, name the directory that contains the kustomization; for all commands: git kustomize-localize -h
        $ git kustomize-localize localize
        error: `localize` is neither a command nor a directory
          hint: for a copy, name the directory that contains the kustomization; for all commands: git kustomize-localize -h
        $ git kustomize-localize chek --no-verify
        error: `chek` is neither a command nor a directory
          hint: did you mean `git kustomize-localize check`?
        $ git kustomize-localize lint --no-verify
        error: `lint` is neither a command nor a directory
          hint: did you mean `git kustomize-localize check`?
        $ git kustomize-localize upgrade --no-verify
        error: `upgrade` is neither a command nor a directory
          hint: did you mean `git kustomize-localize update`?
        $ git kustomize-localize lint --no-verify
        error: `lint` is neither a command nor a directory
          hint: did you mean `git kustomize-localize check`?
        $ git kustomize-localize help chek
        error: there is no page `chek`
          hint: to list them: git kustomize-localize help
        $ git kustomize-localize chek --staged --no-verify
        error: `chek` is neither a command nor a directory
          hint: did you mean `git kustomize-localize check`?
        $ git kustomize-localize localize "other dir"
        error: `localize` is neither a command nor a directory
          hint: did you mean `git kustomize-localize 'other dir'`?
        $ git kustomize-localize -v localize x y --scope z
        error: `localize` is neither a command nor a directory
          hint: did you mean `git kustomize-localize -v x y --scope z`?
        $ git kustomize-localize -v chek --staged
        error: `chek` is neither a command nor a directory
          hint: did you mean `git kustomize-localize check`?
        $ git kustomize-localize -q check --format=xml
        error: invalid value 'xml' for '--format <FORMAT>'
          [possible values: human, json, sarif, github, gitlab]

        For more information, try '-h'.
        $ git kustomize-localize --format=xml
        error: invalid value 'xml' for '--format <FORMAT>'
          [possible values: human, json]

        For more information, try '-h'.
        $ git kustomize-localize branch app --no-verify
        error: unexpected argument 'app' found

          tip: did you mean `git kustomize-localize branch --rev app`?

        For more information, try '-h'.
        $ git kustomize-localize vendor --update
        error: unexpected argument '--update' found

          tip: did you mean `git kustomize-localize update`?

        For more information, try '-h'.
        $ git kustomize-localize --staged
        error: unexpected argument '--staged' found

          tip: did you mean `git kustomize-localize check --staged`?

        For more information, try '-h'.
        $ git kustomize-localize --json diff
        error: unexpected argument '--json' found

          tip: did you mean `git kustomize-localize --format json diff`?

        For more information, try '-h'.
        $ git kustomize-localize diff --json
        error: unexpected argument '--json' found

          tip: did you mean `git kustomize-localize diff --format json`?

        For more information, try '-h'.
        $ git kustomize-localize example --json
        error: unexpected argument '--json' found

          tip: did you mean `git kustomize-localize example --format json`?

        For more information, try '-h'.
        $ git kustomize-localize vendor --force
        error: unexpected argument '--force' found

          tip: did you mean `git kustomize-localize vendor --overwrite`?

        For more information, try '-h'.
        $ git kustomize-localize example --output=new
        error: unexpected argument '--output' found

          tip: did you mean `git kustomize-localize example new`?

        For more information, try '-h'.
        $ git kustomize-localize lock --force
        error: unexpected argument '--force' found

          tip: a similar argument exists: '--format'

        Usage: git kustomize-localize lock --format <FORMAT>

        For more information, try '-h'.
        $ git kustomize-localize check --output=json
        error: unexpected argument '--output' found

          tip: did you mean `git kustomize-localize check --format json`?

        For more information, try '-h'.
        $ git kustomize-localize sbom --output=x.json
        error: unexpected argument '--output' found

          tip: to pass '--output' as a value, use '-- --output'

        Usage: git kustomize-localize sbom [OPTIONS] [REV]

        For more information, try '-h'.
        $ git kustomize-localize build --json
        error: unexpected argument '--json' found

          tip: to pass '--json' as a value, use '-- --json'

        Usage: git kustomize-localize build [OPTIONS] [PATH|TARGET]...

        For more information, try '-h'.
        $ git kustomize-localize lint --format=sarif --no-verify
        error: `lint` is neither a command nor a directory
          hint: did you mean `git kustomize-localize check`?
        $ git kustomize-localize check -o json
        error: unexpected argument '-o' found

          tip: did you mean `git kustomize-localize check --format json`?

        For more information, try '-h'.
        $ git kustomize-localize chek --staged --no-verify
        error: unexpected argument '--staged' found

          tip: did you mean `git kustomize-localize check --staged`?

        For more information, try '-h'.
    "#]]);
}

#[test]
fn a_submodule_that_is_in_the_way_is_reported_and_any_other_stays() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    let upstream = project.upstream.path().to_str().unwrap();
    let add = ["submodule", "--quiet", "add", upstream, "vendor/remote"];
    work.git(&[&["-c", "protocol.file.allow=always"], &add[..]].concat());
    work.commit("a submodule");
    let into = ["example/overlay", "vendor/remote/x", "--scope", "example"];
    refused(&mut refusals, work, &into);
    project.overlay(&[]).success();
    assert_eq!(work.id("localized/main:vendor/remote"), work.id("main:vendor/remote"));
    refusals.says(expect![[r#"
        $ git kustomize-localize example/overlay vendor/remote/x --scope example --no-verify
        error: `vendor/remote` is a submodule in the source commit, so `vendor/remote/x` cannot be below it
          hint: choose another NEW_DIR
    "#]]);
}

#[test]
fn links_inside_are_followed() {
    let mut refusals = Transcript::default();
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
    refused(&mut refusals, work, &["other", "elsewhere"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize other elsewhere --no-verify
        error: other/kustomization.yaml:1:18: resources[1]: `again.yaml` goes through the link `other/again.yaml` to the absolute path `/home/me/work/other/config.yaml`, which does not exist in other checkouts
          hint: replace the link with a copy of its target
    "#]]);
}

#[test]
fn a_new_directory_that_is_taken_or_reached_is_refused() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.symlink("link", "example");
    work.write("other/kustomization.yaml", "resources: [sub/c.yaml]\n");
    work.write("other/sub/c.yaml", config("sub"));
    work.commit("sub");
    // Inside the target it may lie, as long as nothing refers to it.
    work.run(&["other", "other/copy"]).success();
    work.git(&["merge", "--quiet", "--ff-only", "localized/main"]);
    for new in ["link/copy", "link", "other/sub"] {
        refused(&mut refusals, work, &["other", new]);
    }
    let reaches = "resources: [copy]\ncrds: [copy/sub/c.yaml]\n";
    work.write("other/kustomization.yaml", reaches);
    work.commit("reaches the copy");
    refused(&mut refusals, work, &["other", "other/copy"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize other link/copy --no-verify
        error: `link` is a link in the source commit, so `link/copy` cannot be below it
          hint: choose another NEW_DIR
        $ git kustomize-localize other link --no-verify
        error: `link` already exists in the source commit, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize other other/sub --no-verify
        error: `other/sub` already exists in the source commit, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize other other/copy --no-verify
        error: other/copy/kustomization.yaml:1:13: resources[0]: `sub/c.yaml` is in `other/copy`, where the result will be written
        error: other/kustomization.yaml:1:13: resources[0]: `copy` is in `other/copy`, where the result will be written
        error: other/kustomization.yaml:2:8: crds[0]: `copy/sub/c.yaml` is in `other/copy`, where the result will be written
          hint: choose another NEW_DIR
    "#]]);
}

#[test]
fn the_cause_is_told_if_no_target_was_sought() {
    let world = World::acme();
    world.commit(&[("web/kustomization.yaml", "namePrefix: a-\n"), (".kustomize-localize", "nosuch: 1\n")]);
    world.work.git(&["clone", "-q", "--bare", ".", "../bare.git"]);
    let bare = world.sandbox.path("bare.git");
    world.sandbox.run(&bare, &["web", "out"]).fails(2).says(expect![[r#"
        error: .kustomize-localize:1:1: unknown field `nosuch`
          hint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
    "#]]);
    world.sandbox.run(&bare, &["web", "out", "--rev", "nosuch"]).fails(2).says(expect![[r#"
        error: unknown revision `nosuch`
          hint: fetch it first, or name another one: git log --oneline --all
    "#]]);
    world.sandbox.run(&bare, &["chek"]).fails(2);
}
