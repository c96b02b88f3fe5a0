//! What interrupted runs left behind.

use crate::support::Transcript;
use std::fs;
use std::time::{Duration, SystemTime};

use super::{COPY, DISK, Stage, next_version, project};

#[test]
fn files_of_others_stay() {
    let stage = Stage::new(DISK);
    let top = stage.project.work.git_directory();
    // A file, a link, a directory of another name: none of them is what we make.
    fs::write(top.join("kustomize-localize-tmp-file00"), "mine").unwrap();
    let elsewhere = stage.sandbox().path("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("mine"), "mine").unwrap();
    std::os::unix::fs::symlink(&elsewhere, top.join("kustomize-localize-tmp-link00")).unwrap();
    fs::create_dir(top.join("kustomize-localize-mine")).unwrap();
    fs::create_dir(top.join("kustomize-localize-tmp-dead00")).unwrap();
    // Very old.
    for name in ["kustomize-localize-tmp-file00", "kustomize-localize-mine"] {
        let file = fs::File::open(top.join(name)).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1)).unwrap();
    }
    stage.run().success();
    assert!(top.join("kustomize-localize-tmp-file00").is_file());
    assert!(top.join("kustomize-localize-tmp-link00").is_symlink());
    assert!(elsewhere.join("mine").is_file());
    assert!(top.join("kustomize-localize-mine").is_dir());
    assert!(!top.join("kustomize-localize-tmp-dead00").exists());
}

/// Ends a run right before the first effect of this name.
fn end_at(stage: &Stage, name: &str) {
    let effects = stage.undisturbed();
    let at = effects.iter().position(|effect| effect == name);
    stage.end_at(at.unwrap() + 1, name);
}

#[test]
fn leftovers_of_a_dead_run_are_invisible() {
    let stage = Stage::new(DISK);
    end_at(&stage, "move NEW_DIR to its place");
    let left = stage.temporary();
    assert_eq!(left.len(), 1, "{left:?}");
    let work = &stage.project.work;
    let new = stage.sandbox().path(&left[0]).join(work.path().strip_prefix("/").unwrap());
    assert!(new.join("localized-overlay/overlay/kustomization.yaml").is_file());
    assert_eq!(work.git(&["status", "--porcelain"]), "");
    let mut transcript = Transcript::default();
    for args in [&["lock"][..], &["check"], &["tree"]] {
        transcript.add(&work.run(args));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize lock
        nothing to do: kustomize-localize.lock has 1 remote reference
        $ git kustomize-localize check
        checked 2 kustomizations with 3 references in the working tree: no problems found
        $ git kustomize-localize tree
        example/overlay
        └── example/base
            ├── example/base/config.yaml
            └── https://example.com/acme/remote.git?ref=v1 (tag, locked <0>)
    "#]]);
}

#[test]
fn a_run_that_fetches_cleans_the_whole_cache() {
    let stage = Stage::new(COPY);
    end_at(&stage, "fetch");
    let left = stage.temporary();
    assert_eq!(left.len(), 1, "{left:?}");
    let other = stage.sandbox().path("cache/git-kustomize-localize/git/0123/fetching-dead00");
    fs::create_dir_all(&other).unwrap();
    stage.run().success();
    assert_eq!(stage.temporary(), crate::support::NONE);
    // Complete cache entries stay.
    fs::create_dir_all(&other).unwrap();
    next_version(&stage.project);
    stage.run().success();
    assert_eq!(stage.temporary(), crate::support::NONE);
    let git = stage.sandbox().path("cache/git-kustomize-localize/git");
    let whole = git.read_dir().unwrap().flat_map(|of_url| of_url.unwrap().path().read_dir().unwrap());
    assert_eq!(whole.count(), 2);
}

#[test]
fn outputs_that_differ_are_the_users() {
    let project = project();
    let Some(_) = project.sandbox.builds() else { return };
    let kustomize = crate::support::Kustomize::find().unwrap();
    project.sandbox.script(
        "kustomize",
        &format!(
            "{} \"$@\" || exit 1\ncase \"$*\" in */localized*) echo '# more';; esac",
            kustomize.program().display()
        ),
    );
    project.sandbox.set("KUSTOMIZE", project.sandbox.path("bin/kustomize"));
    // For each repository only the last.
    let mut transcript = Transcript::default();
    for _ in 0..2 {
        transcript.add(project.overlay(&[]).fails(1));
        assert_eq!(project.sandbox.leftovers().len(), 1);
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize example/overlay --scope example
        not localized: the localized build differs from the original, in 1 of 1 build
          example/overlay: the outputs differ
            changed v1 Service dev-one
            v1 Service dev-one:
            @@ -2,3 +2,4 @@
             kind: Service
             metadata:
               name: dev-one
            +# more
          both outputs: /home/me/tmp/kustomize-localize-output-…/overlay
        error: nothing was written: the localized build differs from the original
          hint: to accept the difference: --no-verify
    "#]]);
}
