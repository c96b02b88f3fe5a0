//! In place every affected root that no other names is built.

use super::{altering, kept, project, stand_in};
use crate::support::{Transcript, World, config};

const IN_PLACE: [&str; 1] = ["vendor"];

#[test]
fn a_root_that_never_built_is_reported_and_blocks_nothing() {
    let Some(project) = project() else { return };
    let work = &project.work;
    let twice = "bases: [../base]\nresources: [config.yaml]\n";
    work.write("example/twice/kustomization.yaml", twice);
    work.write("example/twice/config.yaml", config("base"));
    work.commit("the same name twice");
    // That is no warning.
    work.run(&IN_PLACE).success().says(expect![[r#"
        localized the working tree: 5 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <0>
          verified: 1 build identical, 1 root not built (kustomize/…, network closed)
          not built: example/twice: in `example/base`: may not add resource with an already registered id: ConfigMap.v1.[noGrp]/base.[noNs]
          to stage it: git add -f -- :/example/base/kustomization.yaml :/example/base/localized-files :/kustomize-localize.lock
    "#]]);
    assert!(work.path().join("example/base/localized-files").is_dir());
}

#[test]
fn files_edited_during_the_build_are_not_overwritten() {
    let Some(project) = project() else { return };
    let work = &project.work;
    let edited = work.path().join("example/base/kustomization.yaml");
    let edit = format!("case \"$1\" in build) echo '# mine' >>'{}';; esac; ", edited.display());
    stand_in(&project.sandbox, &format!("{edit}exec REAL \"$@\""));
    work.run(&IN_PLACE).fails(2).says(expect![[r#"
        error: `example/base/kustomization.yaml` was edited during this run
          hint: run the same command again
    "#]]);
    assert!(work.read("example/base/kustomization.yaml").ends_with("# mine\n"));
    assert!(!work.path().join("kustomize-localize.lock").exists());
    assert!(!work.path().join("example/base/localized-files").exists());
}

#[test]
fn differing_builds_show_the_difference_and_no_files() {
    let Some(project) = project() else { return };
    let again = "resources: [../base]\nnamePrefix: prod-\n";
    let work = &project.work;
    work.write("example/production/kustomization.yaml", again);
    work.commit("production");
    work.lock();
    let script = "case \"$*\" in *overlay*) echo '# one more line';; esac";
    altering(&project, script);
    let mut transcript = Transcript::default();
    for (mode, all) in [(&IN_PLACE as &[&str], 2), (&["branch"], 3), (&["branch", "--dry-run"], 3)] {
        let output = work.run_unchanged(mode);
        output.fails(1);
        let lines: Vec<&str> = output.stdout.lines().collect();
        let first = format!("not localized: the localized build differs from the original, in 1 of {all} builds");
        assert_eq!(lines[0], first);
        assert!(lines[1].starts_with("  example/overlay: "), "{lines:?}");
        let last = lines.last().unwrap();
        let kept = last.strip_prefix("  both outputs: ").unwrap();
        let kept = std::path::Path::new(kept).join("localized.yaml");
        assert!(kept.ends_with("example/overlay/localized.yaml"));
        assert!(kept.is_file(), "{output:?}");
        transcript.add(&output);
        let errors = output.stderr.lines().filter(|line| line.starts_with("error: "));
        assert_eq!(errors.count(), 1, "{output:?}");
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize vendor
        not localized: the localized build differs from the original, in 1 of 2 builds
          example/overlay: the outputs differ
            changed v1 Service dev-one
            v1 Service dev-one:
            @@ -2,3 +2,4 @@
             kind: Service
             metadata:
               name: dev-one
            +# one more line
          both outputs: /home/me/tmp/kustomize-localize-output-…/example/overlay
        error: nothing was written: the localized build differs from the original
          hint: to accept the difference: --no-verify
        $ git kustomize-localize branch
        $ git kustomize-localize branch --dry-run
        not localized: the localized build differs from the original, in 1 of 3 builds
          example/overlay: the outputs differ
            changed v1 Service dev-one
            v1 Service dev-one:
            @@ -2,3 +2,4 @@
             kind: Service
             metadata:
               name: dev-one
            +# one more line
          both outputs: /home/me/tmp/kustomize-localize-output-…/example/overlay
        error: nothing was written: the localized build differs from the original
          hint: to accept the difference: --no-verify
    "#]]);
    let json = [&IN_PLACE[..], &["--format=json"]].concat();
    work.run(&json).fails(1).stdout_has("\"outcome\": \"differs\"");
}

#[test]
fn outputs_stay_although_the_base_is_built_by_itself() {
    let Some(project) = project() else { return };
    let work = &project.work;
    work.lock();
    altering(&project, "case \"$*\" in *overlay*) echo '# one more line';; esac");
    let output = work.run_unchanged(&IN_PLACE);
    output.fails(1).says(expect![[r#"
        not localized: the localized build differs from the original, in 1 of 1 build
          example/overlay: the outputs differ
            changed v1 Service dev-one
            v1 Service dev-one:
            @@ -2,3 +2,4 @@
             kind: Service
             metadata:
               name: dev-one
            +# one more line
          both outputs: /home/me/tmp/kustomize-localize-output-…/example/overlay
        error: nothing was written: the localized build differs from the original
          hint: to accept the difference: --no-verify
    "#]]);
    assert!(kept(&output.stdout).join("localized.yaml").is_file());
}

#[test]
fn a_base_is_built_although_its_root_is_not() {
    let world = World::acme();
    let Some(_) = world.sandbox.builds() else { return };
    world.commit(&[
        (".kustomize-localize", "allow: [{url: github.com/acme/internal, refs: any, reason: by hand}]\n"),
        ("app/kustomization.yaml", "resources: [../base, 'https://github.com/acme/internal?ref=v1']\n"),
        ("base/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
    ]);
    world.work.run(&["lock"]).success();
    world.work.run(&["vendor"]).success().says(expect![[r#"
        localized the working tree: 8 files written, 2 references rewritten, 0 removed
          not verified: 1 root not built (kustomize/…, network closed)
          not built: app: https://github.com/acme/internal?ref=v1 stays remote
          stays remote (allowed): https://github.com/acme/internal?ref=v1
          to stage it: git add -f -- :/base/kustomization.yaml :/base/localized-files :/kustomize-localize.lock
    "#]]);
}
