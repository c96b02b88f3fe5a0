//! `--no-commit`: from the files on disk to a directory on disk.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::support::{NO_MOUNT, OVERLAY, Output, Project, Repo, Transcript, config, files, skip};

/// Returns the paths of all files below `directory`, sorted.
fn paths(directory: &Path) -> Vec<String> {
    let all = files(directory).into_keys();
    all.filter(|path| !path.ends_with('/')).collect()
}

/// Runs the program with `--no-commit`, for the overlay unless `args` names something.
fn run(project: &Project, args: &[&str]) -> Output {
    let target = if args.first().is_none_or(|first| first.starts_with('-')) { &OVERLAY[..] } else { &[] };
    project.work.run(&[target, args, &["--no-commit"]].concat())
}

/// Asserts exit status 2, and that nothing was written.
#[track_caller]
fn refused(refusals: &mut Transcript, project: &Project, args: &[&str]) {
    let before = project.work.state();
    refusals.add(run(project, args).fails(2));
    before.assert_same(&project.work.state());
}

#[test]
fn files_on_disk_go_to_a_directory_on_disk() {
    let project = Project::new();
    let work = &project.work;
    // Neither is committed, and both are taken.
    work.write("example/base/config.yaml", config("changed"));
    work.write(".gitignore", "secret.env\n");
    work.write(
        "example/overlay/kustomization.yaml",
        "resources: [../base]\nsecretGenerator: [{name: s, envs: [secret.env]}]\n",
    );
    work.write("example/overlay/secret.env", "A=1\n");
    let before = work.state();
    run(&project, &[]).success().says(expect![[r#"
        localized example/overlay into localized-overlay: 8 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <0>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
    "#]]);
    let copy = work.path().join("localized-overlay");
    assert_eq!(
        paths(&copy),
        [
            "base/config.yaml",
            "base/kustomization.yaml",
            "base/localized-files/.gitattributes",
            "base/localized-files/example.com/acme/remote/v1/kustomization.yaml",
            "base/localized-files/example.com/acme/remote/v1/service.yaml",
            "kustomize-localize.lock",
            "overlay/kustomization.yaml",
            "overlay/secret.env",
        ]
    );
    assert_eq!(work.read("localized-overlay/base/config.yaml"), config("changed"));
    assert_eq!(work.git(&["status", "--porcelain", "localized-overlay"]), "?? localized-overlay/");
    fs::remove_dir_all(copy).unwrap();
    before.assert_same(&work.state());
    assert_eq!(project.sandbox.leftovers(), Vec::<String>::new());
}

#[test]
fn no_repository_is_needed() {
    let project = Project::new();
    let plain = project.sandbox.path("plain");
    fs::create_dir(&plain).unwrap();
    project.work.git(&["archive", "--output", "../plain.tar", "main"]);
    let untar = ["-xf", "../plain.tar"];
    crate::support::Running::start(project.sandbox.command("tar", &plain).args(untar)).wait().success();
    let args = [&OVERLAY[..], &["--no-commit"]].concat();
    project.sandbox.run(&plain, &args).success();
    run(&project, &[]).success();
    // Nothing in the result shows where it was made.
    let (here, there) = (project.work.path().join("localized-overlay"), plain.join("localized-overlay"));
    assert_eq!(files(&here), files(&there));
    // And from inside the target.
    project
        .sandbox
        .run(&plain.join("example/overlay"), &[".", "../../second", "--scope", "..", "--no-commit"])
        .success();
    assert_eq!(files(&plain.join("second")), files(&there));
    // Wherever it goes, and from whatever repository it is run.
    fs::create_dir_all(project.sandbox.path("else/where")).unwrap();
    let third = project.sandbox.path("else/where/third");
    let [target, scope] = ["example/overlay", "example"].map(|below| plain.join(below).display().to_string());
    let away = [&target, third.to_str().unwrap(), "--scope", &scope, "--no-commit"];
    for from in [&plain, project.work.path()] {
        project.sandbox.run(from, &away).success();
        assert_eq!(files(&third), files(&there));
    }
}

#[test]
fn neither_the_git_directory_nor_a_link_is_written_through() {
    let project = Project::new();
    let work = &project.work;
    std::os::unix::fs::symlink("../elsewhere", work.path().join("link")).unwrap();
    fs::create_dir(project.sandbox.path("elsewhere")).unwrap();
    work.commit("link");
    let before = work.state();
    let mut transcript = Transcript::default();
    for into in [".git/out", ":/.git/refs/heads/out", "link/out", ":/link/out"] {
        transcript.add(work.run(&["other", into, "--no-commit"]).fails(2));
        before.assert_same(&work.state());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize other .git/out --no-commit
        error: `.git/out` is in the git directory
          hint: choose another NEW_DIR
        $ git kustomize-localize other :/.git/refs/heads/out --no-commit
        error: `:/.git/refs/heads/out` is in the git directory
          hint: choose another NEW_DIR
        $ git kustomize-localize other link/out --no-commit
        error: `link/out` goes through the link `/home/me/work/link`
          hint: name the target of the link
        $ git kustomize-localize other :/link/out --no-commit
        error: `:/link/out` goes through the link `/home/me/work/link`
          hint: name the target of the link
    "#]]);
    assert_eq!(fs::read_dir(project.sandbox.path("elsewhere")).unwrap().count(), 0);
}

#[test]
fn modes_are_those_that_git_keeps() {
    let project = Project::new();
    let work = &project.work;
    work.write_executable("other/config.yaml", config("executable"));
    let private = fs::Permissions::from_mode(0o600);
    fs::set_permissions(work.path().join("other/kustomization.yaml"), private).unwrap();
    run(&project, &["other"]).success();
    let mode = |path: &str| {
        let metadata = fs::metadata(work.path().join("localized-other").join(path)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    assert_eq!(mode("config.yaml"), 0o755);
    assert_eq!(mode("kustomization.yaml"), 0o644);
    assert_eq!(mode(""), 0o755);
}

#[test]
fn the_same_target_is_brought_up_to_date() {
    let project = Project::new();
    let work = &project.work;
    run(&project, &["other"]).success();
    work.write("other/kustomization.yaml", "resources: [new.yaml]\n");
    work.write("other/new.yaml", config("new"));
    run(&project, &["other"]).success();
    assert_eq!(
        paths(&work.path().join("localized-other")),
        ["kustomization.yaml", "kustomize-localize.lock", "new.yaml"]
    );
    assert_eq!(work.git(&["status", "--porcelain", "localized-other"]), "?? localized-other/");
    let beside: Vec<_> = fs::read_dir(work.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with('.') && name != ".git")
        .collect();
    assert_eq!(beside, Vec::<String>::new(), "left beside NEW_DIR");
}

#[test]
fn a_checkout_does_not_edit_a_copy() {
    let project = Project::new();
    let work = &project.work;
    work.write(".gitattributes", "* text=auto eol=crlf\n");
    run(&project, &["other"]).success();
    work.git(&["add", "-f", "."]);
    work.commit("copy");
    fs::remove_dir_all(work.path().join("localized-other")).unwrap();
    work.git(&["checkout", "-q", "."]);
    assert!(work.read("localized-other/config.yaml").contains("\r\n"));
    work.write("localized-other/added.txt", "");
    run(&project, &["other", "--overwrite"]).success().says(expect![[r#"
        localized other into localized-other: 3 files written, 0 references rewritten, 0 removed
          discarded edits by hand: `added.txt`
          not verified: neither `kustomize` nor `kubectl` was found on PATH
    "#]]);
}

#[test]
fn an_edited_copy_is_refused_without_overwrite() {
    type Edit = fn(&Path);
    let edits: [Edit; 5] = [
        |copy| fs::write(copy.join("config.yaml"), "x").unwrap(),
        |copy| fs::write(copy.join("added.txt"), "x").unwrap(),
        |copy| fs::remove_file(copy.join("kustomization.yaml")).unwrap(),
        |copy| {
            let mode = fs::Permissions::from_mode(0o755);
            fs::set_permissions(copy.join("config.yaml"), mode).unwrap();
        },
        |copy| {
            fs::remove_file(copy.join("config.yaml")).unwrap();
            std::os::unix::fs::symlink("../other/config.yaml", copy.join("config.yaml")).unwrap();
        },
    ];
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    let copy = work.path().join("localized-other");
    run(&project, &["other"]).success();
    let clean = work.state();
    let mut transcript = Transcript::default();
    for edit in edits {
        edit(&copy);
        refused(&mut refusals, &project, &["other"]);
        transcript.add(run(&project, &["other", "--overwrite"]).success());
        clean.assert_same(&work.state());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize other --overwrite --no-commit
        localized other into localized-other: 3 files written, 0 references rewritten, 0 removed
          discarded edits by hand: `config.yaml`
          not verified: neither `kustomize` nor `kubectl` was found on PATH
        $ git kustomize-localize other --overwrite --no-commit
        localized other into localized-other: 3 files written, 0 references rewritten, 0 removed
          discarded edits by hand: `added.txt`
          not verified: neither `kustomize` nor `kubectl` was found on PATH
        $ git kustomize-localize other --overwrite --no-commit
        localized other into localized-other: 3 files written, 0 references rewritten, 0 removed
          discarded edits by hand: `kustomization.yaml`
          not verified: neither `kustomize` nor `kubectl` was found on PATH
        $ git kustomize-localize other --overwrite --no-commit
        localized other into localized-other: 3 files written, 0 references rewritten, 0 removed
          discarded edits by hand: `config.yaml`
          not verified: neither `kustomize` nor `kubectl` was found on PATH
    "#]]);
    refusals.says(expect![[r#"
        $ git kustomize-localize other --no-commit
        error: files of `localized-other` were edited by hand: config.yaml
          hint: to discard the edits: --overwrite
        $ git kustomize-localize other --no-commit
        error: files of `localized-other` were edited by hand: added.txt
          hint: to discard the edits: --overwrite
        $ git kustomize-localize other --no-commit
        error: files of `localized-other` were edited by hand: kustomization.yaml
          hint: to discard the edits: --overwrite
        $ git kustomize-localize other --no-commit
        error: files of `localized-other` were edited by hand: config.yaml
          hint: to discard the edits: --overwrite
    "#]]);
}

#[test]
fn a_foreign_directory_is_refused() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    work.write("theirs/file", "");
    work.symlink("link", "theirs");
    run(&project, &["other", "copy"]).success();
    for overwrite in [&[][..], &["--overwrite"]] {
        for args in [
            ["other", "theirs"],
            ["other", "README.md"],
            ["other", "link"],
            ["example/base", "copy"],
            ["other", "no/such/place"],
            ["other", ".."],
            ["other", "README.md/x"],
        ] {
            refused(&mut refusals, &project, &[&args[..], overwrite].concat());
        }
    }
    refusals.says(expect![[r#"
        $ git kustomize-localize other theirs --no-commit
        error: `theirs` already exists, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize other README.md --no-commit
        error: `README.md` already exists, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize other link --no-commit
        error: `link` already exists, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize example/base copy --no-commit
        error: `copy` contains another target, `other`
          hint: choose another NEW_DIR
        $ git kustomize-localize other no/such/place --no-commit
        error: no parent directory for `no/such/place`
          hint: create it first: mkdir -p -- no/such
        $ git kustomize-localize other .. --no-commit
        error: `..` is not a valid name for a new directory
          hint: choose another NEW_DIR
        $ git kustomize-localize other README.md/x --no-commit
        error: no parent directory for `README.md/x`
          hint: create it first: mkdir -p -- README.md
        $ git kustomize-localize other theirs --overwrite --no-commit
        error: `theirs` already exists, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize other README.md --overwrite --no-commit
        error: `README.md` already exists, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize other link --overwrite --no-commit
        error: `link` already exists, and was not made by this tool
          hint: choose another NEW_DIR
        $ git kustomize-localize example/base copy --overwrite --no-commit
        error: `copy` contains another target, `other`
          hint: choose another NEW_DIR
        $ git kustomize-localize other no/such/place --overwrite --no-commit
        error: no parent directory for `no/such/place`
          hint: create it first: mkdir -p -- no/such
        $ git kustomize-localize other .. --overwrite --no-commit
        error: `..` is not a valid name for a new directory
          hint: choose another NEW_DIR
        $ git kustomize-localize other README.md/x --overwrite --no-commit
        error: no parent directory for `README.md/x`
          hint: create it first: mkdir -p -- README.md
    "#]]);
}

#[test]
fn a_copy_may_lie_inside_the_target() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    let work = &project.work;
    run(&project, &["other", "other/copy"]).success();
    let clean = work.state();
    run(&project, &["other", "other/copy"]).success();
    clean.assert_same(&work.state());
    work.write("other/kustomization.yaml", "resources: [config.yaml, copy]\n");
    refused(&mut refusals, &project, &["other", "other/copy"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize other other/copy --no-commit
        error: other/copy/kustomization.yaml:1:13: resources[0]: `config.yaml` is in `other/copy`, where the result will be written
        error: other/kustomization.yaml:1:26: resources[1]: `copy` is in `other/copy`, where the result will be written
          hint: choose another NEW_DIR
    "#]]);
}

#[test]
fn a_dry_run_writes_nothing() {
    let project = Project::new();
    let before = project.work.state();
    run(&project, &["--dry-run"])
        .success().says(expect![[r#"
            would localize example/overlay into localized-overlay: 7 files written, 1 reference rewritten, 0 removed
              added https://example.com/acme/remote.git?ref=v1 <0>
              not verified: neither `kustomize` nor `kubectl` was found on PATH
              file base/config.yaml (54)
              file base/kustomization.yaml (74)
              file base/localized-files/.gitattributes (46)
              file base/localized-files/example.com/acme/remote/v1/kustomization.yaml (26)
              file base/localized-files/example.com/acme/remote/v1/service.yaml (51)
              file kustomize-localize.lock (…)
              file overlay/kustomization.yaml (40)
              rewritten example/base/kustomization.yaml:3:5: resources[1]: https://example.com/acme/remote.git?ref=v1 -> localized-files/example.com/acme/remote/v1
        "#]]);
    before.assert_same(&project.work.state());
}

/// Starts `args` for a target whose upstream answers only once `act` has been done.
fn meanwhile(project: &Project, args: &[&str], act: impl FnOnce(&Path)) -> Output {
    let [asked, go] = ["asked", "go"].map(|name| project.sandbox.path(name));
    for mark in [&asked, &go] {
        let _ = fs::remove_file(mark);
    }
    let wait = format!("touch {}; while [ ! -e {} ]; do sleep 0.02; done", asked.display(), go.display());
    project.sandbox.script("ssh", &format!("{wait}\nfor last; do :; done\neval \"$last\""));
    let running = project.work.start(args);
    let start = Instant::now();
    while !asked.exists() && start.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    act(project.work.path());
    fs::write(&go, "").unwrap();
    running.wait()
}

/// A target with an upstream to wait for.
fn slow(project: &Project) {
    let upstream = project.upstream.path().display();
    let url = format!("resources: ['ssh://git@example.org{upstream}?ref=v1']\n");
    project.work.write("slow/kustomization.yaml", url);
}

#[test]
fn what_appears_at_the_place_of_a_copy_meanwhile_stays() {
    type Act = fn(&Path);
    let project = Project::new();
    let top = project.work.path();
    let copy = top.join("copy");
    let mine = |top: &Path| {
        fs::create_dir_all(top.join("copy")).unwrap();
        fs::write(top.join("copy/mine"), "mine").unwrap();
    };
    let acts: [(bool, Act); 8] = [
        (false, mine),
        (false, |top| fs::write(top.join("copy"), "mine").unwrap()),
        (false, |top| std::os::unix::fs::symlink("nowhere", top.join("copy")).unwrap()),
        (true, mine),
        (true, |top| fs::write(top.join("copy/kustomization.yaml"), "namePrefix: mine-\n").unwrap()),
        (true, |top| fs::remove_file(top.join("copy/kustomization.yaml")).unwrap()),
        (true, |top| {
            fs::rename(top.join("copy"), top.join("elsewhere")).unwrap();
            std::os::unix::fs::symlink("elsewhere", top.join("copy")).unwrap();
        }),
        (true, |top| {
            let place = top.join("copy/kustomization.yaml");
            fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
        }),
    ];
    let args = ["slow", "copy", "--no-commit", "--no-verify"];
    let mut transcript = Transcript::default();
    for overwrite in [&[][..], &["--overwrite"]] {
        for (number, (has_copy, act)) in acts.iter().enumerate() {
            for name in ["copy", "elsewhere"] {
                let _ = fs::remove_file(top.join(name));
                let _ = fs::remove_dir_all(top.join(name));
            }
            if *has_copy {
                project.work.write("slow/kustomization.yaml", "namePrefix: a-\n");
                project.work.run(&args).success();
            }
            slow(&project);
            let mut after = None;
            let output = meanwhile(&project, &[&args[..], overwrite].concat(), |top| {
                act(top);
                after = Some(project.work.state());
            });
            assert_eq!(output.status, 2, "{number}\n{}", output.shown());
            transcript.add(&output);
            after.unwrap().assert_same(&project.work.state());
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize slow copy --no-commit --no-verify
        $ git kustomize-localize slow copy --no-commit --no-verify --overwrite
        error: `copy` was changed during this run, and stays as it is
          hint: run the same command again
    "#]]);
    // If nobody interferes, it is made, and made again.
    fs::remove_dir_all(&copy).unwrap();
    meanwhile(&project, &args, |_| {}).success();
    project.work.run(&args).success();
}

#[test]
fn a_copy_with_a_repository_of_its_own_is_refused() {
    let mut refusals = Transcript::default();
    let project = Project::new();
    run(&project, &["other", "copy"]).success();
    project.work.git(&["init", "-q", "copy"]);
    for overwrite in [&[][..], &["--overwrite"]] {
        refused(&mut refusals, &project, &[&["other", "copy"], overwrite].concat());
    }
    // Also one below it, of which a tree shows nothing.
    fs::remove_dir_all(project.work.path().join("copy/.git")).unwrap();
    project.work.git(&["init", "-q", "copy/sub/notes"]);
    refused(&mut refusals, &project, &["other", "copy", "--overwrite"]);
    refusals.says(expect![[r#"
        $ git kustomize-localize other copy --no-commit
        $ git kustomize-localize other copy --overwrite --no-commit
        error: `copy/.git` is a git repository of its own
          hint: move it away, or choose another NEW_DIR
        $ git kustomize-localize other copy --overwrite --no-commit
        error: `copy/sub/notes/.git` is a git repository of its own
          hint: move it away, or choose another NEW_DIR
    "#]]);
}

#[test]
fn the_git_directory_may_be_on_another_file_system() {
    let project = Project::new();
    let work = &project.work;
    let device = |directory: &Path| fs::metadata(directory).map_or(0, |metadata| metadata.dev());
    let here = device(work.path());
    let all = ["/dev/shm", env!("CARGO_TARGET_TMPDIR"), "/tmp", "/var/tmp"].map(Path::new);
    let Some(other) = all.into_iter().find(|directory| directory.is_dir() && device(directory) != here) else {
        return skip(NO_MOUNT);
    };
    let elsewhere = tempfile::tempdir_in(other).unwrap();
    let directory = elsewhere.path().join("linked");
    work.git(&["worktree", "add", "-q", "--detach", directory.to_str().unwrap()]);
    let linked = Repo::new(&project.sandbox, directory);
    for text in ["one", "two"] {
        linked.write("other/config.yaml", config(text));
        linked.run(&["other", "copy", "--no-commit"]).success();
        assert_eq!(linked.read("copy/config.yaml"), config(text));
    }
    assert_eq!(linked.git(&["status", "--porcelain"]), " M other/config.yaml\n?? copy/");
}

#[test]
fn what_appears_in_the_working_tree_meanwhile_stays() {
    let project = Project::new();
    slow(&project);
    project.work.write("app/kustomization.yaml", "configMapGenerator: [{name: a, files: [../README.md]}]\n");
    project.work.commit("slow");
    let mut after = None;
    let output = meanwhile(&project, &["init"], |_| {
        project.work.write(".kustomize-localize", "exclude: [mine]\n");
        after = Some(project.work.state());
    });
    output.fails(2).says(expect![[r#"
        error: `.kustomize-localize` was edited during this run
          hint: run the same command again
    "#]]);
    after.unwrap().assert_same(&project.work.state());
    project.work.remove(".kustomize-localize");
    meanwhile(&project, &["init"], |_| {}).success();
    assert_eq!(project.work.read(".kustomize-localize"), "load-restrictor: none\n");
}

#[test]
fn a_copy_is_never_missing_while_it_is_replaced() {
    let project = Project::new();
    run(&project, &["other"]).success();
    let lock = project.work.path().join("localized-other/kustomize-localize.lock");
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let watcher = scope.spawn(|| {
            let mut missing = 0;
            while !stop.load(Ordering::Relaxed) {
                missing += usize::from(!lock.exists());
            }
            missing
        });
        for turn in 0..5 {
            project.work.write("other/config.yaml", config(&format!("turn-{turn}")));
            run(&project, &["other"]).success();
        }
        stop.store(true, Ordering::Relaxed);
        assert_eq!(watcher.join().unwrap(), 0, "times that it was not there");
    });
}

#[test]
fn an_interrupted_run_leaves_nothing() {
    use rustix::process::Signal;
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)] {
        let project = Project::new();
        let work = &project.work;
        let mark = project.sandbox.path("asked");
        project.sandbox.script("ssh", &format!("touch {}; exec sleep 30", mark.display()));
        work.write("other/kustomization.yaml", "resources: ['ssh://git@example.org/acme/slow.git?ref=v1']\n");
        let before = work.state();
        let running = work.start(&["other", "--no-commit"]);
        let start = Instant::now();
        while !mark.exists() && start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        running.signal(signal);
        running.wait().fails(status);
        before.assert_same(&work.state());
        assert_eq!(project.sandbox.leftovers(), Vec::<String>::new());
    }
}
