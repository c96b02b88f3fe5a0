//! Original and result are built, and compared, before anything is written.

mod before;
mod differs;
mod in_place;
mod program;
mod upstream;

use std::fs;
use std::path::PathBuf;

use super::{project, recorded, stand_in};
use crate::support::{Project, config};

/// Puts a kustomize in the place of the real one that runs `after` as well when it builds a result.
fn altering(project: &Project, after: &str) {
    let script = format!("REAL \"$@\" || exit 1\ncase \"$*\" in */localized*) {after};; esac");
    stand_in(&project.sandbox, &script);
}

/// Returns the directory that a run has kept the outputs in.
fn kept(stdout: &str) -> PathBuf {
    let line = stdout.lines().find_map(|line| line.trim().strip_prefix("both outputs: "));
    PathBuf::from(line.unwrap())
}

#[test]
fn a_difference_keeps_everything_back() {
    let Some(project) = project() else { return };
    let work = &project.work;
    altering(&project, "echo '# one more line'");
    let before = work.state();
    let output = project.overlay(&[]);
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
          both outputs: /home/me/tmp/kustomize-localize-output-…/overlay
        error: nothing was written: the localized build differs from the original
          hint: to accept the difference: --no-verify
    "#]]);
    before.assert_same(&work.state());

    // Both outputs are kept, private to the user.
    let kept = kept(&output.stdout);
    let private = kept.ancestors().find(|above| above.parent() == Some(&project.sandbox.path("tmp"))).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(private).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o700);
    let original = fs::read_to_string(kept.join("original.yaml")).unwrap();
    let localized = fs::read_to_string(kept.join("localized.yaml")).unwrap();
    assert!(original.contains("name: dev-base"), "{original}");
    assert_eq!(localized, format!("{original}# one more line\n"));
    assert_eq!(project.sandbox.leftovers().len(), 1);

    let to_disk = project.overlay(&["--no-commit", "plain"]);
    to_disk.fails(1);
    assert!(!work.path().join("plain").exists());
    // Of all runs in this repository only the last one's outputs stay.
    let last = self::kept(&to_disk.stdout);
    assert!(last.exists() && !kept.exists());
    assert_eq!(project.sandbox.leftovers().len(), 1);
}

#[test]
fn a_result_that_does_not_build_is_a_difference() {
    let Some(project) = project() else { return };
    altering(&project, "echo 'Error: it broke' >&2; exit 1");
    let before = project.work.state();
    project.overlay(&[]).fails(1).says(expect![[r#"
        not localized: the localized build differs from the original, in 1 of 1 build
          example/overlay: the original builds, the result does not: it broke
        error: nothing was written: the localized build differs from the original
          hint: to accept the difference: --no-verify
    "#]]);
    before.assert_same(&project.work.state());
}

#[test]
fn the_network_is_closed_for_the_result() {
    let Some(project) = project() else { return };
    let upstream = project.upstream.path().display().to_string();
    // What a build that still reaches out does: over git, and over http (the proxy of the user's is on this
    // machine, so a closed network hides it).
    for reach in [
        "git ls-remote https://example.com/acme/remote.git".to_owned(),
        format!("git ls-remote file://{upstream}"),
        format!("git -C {upstream} log"),
    ] {
        altering(&project, &format!("{reach} >/dev/null || exit 1"));
        project.overlay(&[]).fails(1);
    }
}

#[test]
fn upstream_may_be_gone_once_it_was_fetched() {
    let Some(project) = project() else { return };
    project.overlay(&["--no-verify"]).success();
    std::fs::rename(project.upstream.path(), project.sandbox.path("gone")).unwrap();
    project.work.write("example/base/config.yaml", config("another"));
    project.work.commit("another name");
    project.overlay(&[]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch localized/main (<0>): 2 files written, 0 references rewritten, 0 removed
          verified: builds are identical: 120 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
}
