//! Full disks: the state is as before, and the message names the directory.

use std::fs;
use std::path::Path;

use crate::support::{NO_MOUNT, OVERLAY, Output, Project, Running, State, rows, skip, tool};

/// Mounts a small disk at `$1`, with what is there, and fills it with the file `$2` but for `$3` bytes. Runs the rest;
/// what is on the disk then is `$1.disk` for those who do not see it.
const FULL: &str = r#"
place=$1 filler=$2 room=$3; shift 3
mount -t tmpfs -o size=4m none "$place" || exit 99
cp -a "$place.disk/." "$place/"
# Where it was is what is covered now.
cd "$PWD" || exit 99
dd if=/dev/zero of="$filler" bs=4k 2>/dev/null
truncate -s "-$room" "$filler"
"$@"
status=$?
rm -f "$filler"
rm -rf "$place.disk"
cp -a "$place" "$place.disk"
exit $status
"#;

/// The program under test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_git-kustomize-localize");

/// Runs the program in the repository while the disk at `place` has this much room.
fn run_with(project: &Project, place: &str, room: usize, args: &[&str]) -> Output {
    let sandbox = &project.sandbox;
    let directory = sandbox.path(place);
    let disk = sandbox.path(&format!("{place}.disk"));
    fs::create_dir_all(&directory).unwrap();
    let copy = |from: &Path, to: &Path| {
        let mut copy = sandbox.command("cp", &sandbox.path(""));
        Running::start(copy.arg("-a").args([from, to])).wait().success();
    };
    copy(&directory, &disk);
    let filler = match place {
        "work" => directory.join(".git/filler"),
        _ => directory.join("filler"),
    };
    let mut command = sandbox.command("unshare", project.work.path());
    command.args(["-rm", "sh", "-c", FULL, "sh"]);
    command.args([&directory, &filler]).arg(room.to_string());
    let output = Running::start(command.arg(PROGRAM).args(args)).wait();
    fs::remove_dir_all(&directory).unwrap();
    fs::rename(&disk, &directory).unwrap();
    output
}

/// Returns whether disks can be mounted here, in a private namespace.
fn can_mount(project: &Project) -> bool {
    if tool("unshare").is_none() {
        return false;
    }
    let mut command = project.sandbox.command("unshare", &project.sandbox.path("tmp"));
    command.args(["-rm", "mount", "-t", "tmpfs", "none", "."]);
    let can = Running::start(&mut command).wait().status == 0;
    if !can {
        skip(NO_MOUNT);
    }
    can
}

/// Returns what only a living run uses, below a directory.
fn unfinished(directory: &Path) -> Vec<String> {
    const BEGIN: [&str; 4] = ["fetching-", "kustomize-localize-tmp-", ".tmp", "tmp_obj_"];
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if BEGIN.iter().any(|begin| name.starts_with(begin)) || name.ends_with(".lock") {
            found.push(name);
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(unfinished(&entry.path()));
        }
    }
    found
}

#[test]
fn a_full_disk_leaves_everything_as_it_was() {
    let project = Project::new();
    if !can_mount(&project) || project.sandbox.builds().is_none() {
        return;
    }
    // More than fits where there is some room, and it comes along.
    let noise: String = (0_u32..40_000).map(|number| format!("{:x}\n", number.wrapping_mul(2_654_435_761))).collect();
    project.upstream.write("LICENSE", noise);
    project.upstream.commit("license");
    project.upstream.git(&["tag", "--force", "v1"]);
    fs::create_dir(project.sandbox.path("out")).unwrap();
    let (cache, tmp) = (project.sandbox.path("cache"), project.sandbox.path("tmp"));
    let work = project.sandbox.path("work");
    let named = |path: &Path| path.display().to_string();
    let elsewhere = [&OVERLAY[..1], &["../out/copy"], &OVERLAY[1..], &["--no-commit"]].concat();
    let in_place = ["vendor"];
    for (place, named, args) in [
        ("cache", named(&cache), &OVERLAY[..]),
        ("tmp", named(&tmp), &OVERLAY[..]),
        ("work", named(&work.join(".git")), &OVERLAY[..]),
        // Whichever file of it is the first that does not fit.
        ("work", "could not write `".to_owned(), &in_place[..]),
        ("out", "`../out/copy`".to_owned(), &elsewhere[..]),
    ] {
        let mut failed = 0;
        for room in rows([0, 4 << 10, 16 << 10, 48 << 10], 3) {
            let before = State::of(&project.work);
            let output = run_with(&project, place, room, args);
            let about = format!("{place} {room}");
            if output.status == 0 {
                project.work.git(&["reset", "--quiet", "--hard"]);
                project.work.git(&["clean", "--quiet", "-ffdx"]);
                project.work.try_git(&["branch", "-D", "localized/main"]);
                let _ = fs::remove_dir_all(project.sandbox.path("out/copy"));
            } else {
                output.fails(2).stderr_has(&named).stderr_has("hint: ");
                assert_eq!(output.stdout, "", "{about}");
                before.assert_same(&State::of(&project.work));
                assert!(!project.sandbox.path("out/copy").exists(), "{about}");
                failed += 1;
            }
            for top in ["cache", "tmp", "work", "out"] {
                assert_eq!(unfinished(&project.sandbox.path(top)), crate::support::NONE, "{about}: {top}: {output:?}");
            }
            fs::remove_dir_all(&cache).unwrap();
            fs::create_dir(&cache).unwrap();
        }
        assert_ne!(failed, 0, "{place}: there is always room");
    }
    project.overlay(&[]).success();
}
