//! What no test would notice that uses it: helpers that hold something down, or say that nothing happened. Those that
//! let something happen are held by the tests that wait for it.

use std::fs;
use std::io::Read as _;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use super::{NO_MOUNT, Running, Sandbox, skip};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: remote\n";

/// An upstream with one commit `v1` in `upstream/acme/base`.
fn upstream(sandbox: &Sandbox) -> String {
    let repo = sandbox.repo("upstream/acme/base");
    repo.write("kustomization.yaml", "resources: [pod.yaml]\n");
    repo.write("pod.yaml", CONFIG_MAP.replace("remote", "cloned"));
    let id = repo.commit("first");
    repo.git(&["tag", "v1"]);
    id
}

#[test]
fn the_environment_is_that_of_the_sandbox_only() {
    let sandbox = Sandbox::new();
    let all = Running::start(&mut sandbox.command("env", &sandbox.path(""))).wait();
    let strangers = all.success().stdout.lines().filter(|line| {
        let name = line.split('=').next().unwrap();
        name.starts_with("GIT_") && !line.contains(sandbox.path("").to_str().unwrap())
    });
    let names: Vec<&str> = strangers.map(|line| line.split('=').next().unwrap()).collect();
    assert_eq!(
        names,
        [
            "GIT_AUTHOR_DATE",
            "GIT_AUTHOR_EMAIL",
            "GIT_AUTHOR_NAME",
            "GIT_COMMITTER_DATE",
            "GIT_COMMITTER_EMAIL",
            "GIT_COMMITTER_NAME",
            "GIT_CONFIG_NOSYSTEM",
            "GIT_TERMINAL_PROMPT",
        ]
    );
    all.lacks("proxy").lacks("PROXY");
    let configuration = || sandbox.git(&sandbox.path(""), &["config", "--list"]);
    assert_eq!(configuration(), "maintenance.auto=false");
    sandbox.configure("core.autocrlf", "true");
    assert_eq!(configuration(), "maintenance.auto=false\ncore.autocrlf=true");
}

#[test]
fn ids_are_the_same_everywhere() {
    let sandbox = Sandbox::new();
    assert_eq!(upstream(&sandbox), "a3acfb21fb663531d40e67022f981402975a57e8");
}

#[test]
fn a_program_that_hangs_is_a_failure_and_killed_with_its_group() {
    let sandbox = Sandbox::new();
    let fifo = sandbox.path("fifo");
    let mut make = sandbox.command("mkfifo", &sandbox.path(""));
    Running::start(make.arg(&fifo)).wait().success();
    for script in [
        "sleep 60",
        "sleep 60; :",
        // Without its output.
        "exec >&- 2>&-; sleep 60",
        // It has ended, and what it started holds its output.
        "sleep 60 &",
    ] {
        let mut shell = sandbox.command("sh", &sandbox.path(""));
        let running = Running::start(shell.args(["-c", &format!("exec 9>fifo; {script}")]));
        let mut alive = fs::File::open(&fifo).unwrap();
        let (sender, ended) = mpsc::channel();
        thread::spawn(move || sender.send(alive.read_to_end(&mut Vec::new()).unwrap()));
        let waiting = AssertUnwindSafe(|| running.wait_for(Duration::from_millis(50)));
        let report = panic::catch_unwind(waiting).map(drop).unwrap_err();
        let report = report.downcast::<String>().unwrap();
        assert!(report.starts_with("still running after 50ms: sh -c"), "{report}");
        let ended = ended.recv_timeout(Duration::from_secs(30));
        assert_eq!(ended, Ok(0), "{script} is alive");
    }
}

#[test]
fn temporary_files_are_seen() {
    let sandbox = Sandbox::new();
    assert_eq!(sandbox.leftovers(), crate::support::NONE);
    sandbox.script("leave", "mktemp -d -t leftover-XXXXXX; echo $MARK");
    let leave = || Running::start(&mut sandbox.command("leave", &sandbox.path(""))).wait();
    sandbox.set("MARK", "seen");
    leave().success().stdout_has("seen\n");
    sandbox.unset("MARK");
    leave().success().lacks("seen");
    assert_eq!(sandbox.leftovers().len(), 2);
    assert!(sandbox.leftovers()[0].starts_with("leftover-"));
}

#[test]
fn a_state_sees_every_change() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("a", "a");
    repo.write("b", "b");
    repo.commit("first");
    let before = repo.state();
    before.assert_same(&repo.state());

    let blob = repo.id("HEAD:b");
    let object = format!(".git/objects/{}/{}", &blob[..2], &blob[2..]);
    let changes: [(&str, &dyn Fn()); 15] = [
        ("refs", &|| drop(repo.git(&["branch", "other"]))),
        ("HEAD", &|| drop(repo.git(&["switch", "--quiet", "other"]))),
        ("files", &|| repo.write("a", "changed")),
        ("files", &|| repo.write_executable("b", "b")),
        ("files", &|| repo.symlink("link", "a")),
        ("index", &|| drop(repo.git(&["add", "a"]))),
        ("refs", &|| drop(repo.git(&["stash"]))),
        ("configuration", &|| drop(repo.git(&["config", "a.b", "c"]))),
        ("git directory", &|| repo.write(".git/index.lock", "")),
        ("info", &|| repo.write(".git/info/exclude", "*.log\n")),
        ("modules", &|| {
            repo.write(".git/modules/a/objects/x", "");
            repo.write(".git/modules/a/HEAD", "0123\n");
        }),
        ("refs", &|| repo.write(".git/logs/refs/heads/main", "")),
        ("refs", &|| repo.write(".git/refs/heads/broken", "0123\n")),
        ("refs", &|| repo.remove(".git/refs/heads/broken")),
        ("fsck", &|| repo.remove(&object)),
    ];
    repo.git(&["pack-refs", "--all"]);
    let packed = repo.state();
    let unpacked = before.without("git directory");
    unpacked.assert_same(&packed.clone().without("git directory"));
    let mut last = packed;
    for (part, change) in changes {
        change();
        let next = repo.state();
        let report = panic::catch_unwind(|| last.assert_same(&next)).unwrap_err();
        let report = report.downcast::<String>().unwrap();
        assert!(report.contains(&format!("\n{part} before:")), "{part}: {report}");
        last = next;
    }
}

#[test]
fn a_state_leaves_out_what_may_change() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.commit("first");
    let before = repo.state();
    repo.git(&["branch", "localized/main"]);
    before.assert_same(&repo.state().without_ref("refs/heads/localized/main"));
    repo.git(&["branch", "localized/main2"]);
    assert_ne!(before, repo.state().without_ref("refs/heads/localized/main"));
    assert_eq!(before.without("refs"), repo.state().without("refs"));
}

/// Both variables are those of a process: this runs the test binary again, for [`skip_in_child`] only.
#[test]
fn a_skip_is_counted_and_must_be_by_design_where_tools_are_required() {
    let sandbox = Sandbox::new();
    let file = sandbox.path("skips");
    sandbox.set("KUSTOMIZE_LOCALIZE_SKIPS", &file);
    let run = |reason: &str| {
        sandbox.set("REASON", reason);
        let mut command = sandbox.command(std::env::current_exe().unwrap(), &sandbox.path(""));
        let test = "support::selftest::skip_in_child";
        Running::start(command.args(["--ignored", "--exact", "--nocapture", test])).wait()
    };
    let line = |reason: &str| format!("support::selftest::skip_in_child: {reason}\n");
    let mut expected = String::new();
    for (required, reason, passes) in
        [("", "no tea", true), ("1", "no tea", false), ("1", "no fish on PATH", true), ("1", NO_MOUNT, true)]
    {
        sandbox.set("KUSTOMIZE_LOCALIZE_REQUIRE_TOOLS", required);
        let output = run(reason);
        if passes {
            expected += &line(reason);
            output.success().stderr_has(&format!("skipped: {}", line(reason)));
        } else {
            output.fails(101).stderr_has(&format!("may not be skipped: {}", line(reason)));
        }
        assert_eq!(fs::read_to_string(&file).unwrap(), expected);
    }
}

#[test]
#[ignore = "run by a_skip_is_counted_and_must_be_by_design_where_tools_are_required"]
fn skip_in_child() {
    skip(&std::env::var("REASON").unwrap());
}
