//! What the build of the original sees of the upstream.

use std::fs;

use super::{project, stand_in};
use crate::support::{Kustomize, OVERLAY, Project, World, base_of, config, config_map};

/// Returns a project whose kustomize leaves what the original builds to in `original.yaml`.
fn watched() -> Option<Project> {
    let project = project()?;
    let seen = project.sandbox.path("original.yaml");
    let copy = format!("| tee '{}'", seen.display());
    let script = format!("case \"$*\" in */original/*) REAL \"$@\" {copy};; *) REAL \"$@\";; esac");
    stand_in(&project.sandbox, &script);
    Some(project)
}

/// Runs the program, and returns what the original was built to.
#[track_caller]
fn original(project: &Project, more: &[&str]) -> String {
    let seen = project.sandbox.path("original.yaml");
    fs::remove_file(&seen).ok();
    project.overlay(more).success().stdout_has("  verified: ");
    fs::read_to_string(seen).unwrap()
}

/// Builds one original with what was fetched, and as the user does: the outputs are the same.
#[track_caller]
fn both_ways(project: &Project) {
    let fetched = original(project, &["--no-commit", "fetched"]);
    let kustomize = Kustomize::find().unwrap();
    let live = kustomize.build(&project.sandbox, project.work.path(), OVERLAY[0]);
    assert!(fetched.contains("kind: "), "{fetched}");
    assert_eq!(fetched, live.success().stdout);
}

#[test]
fn fetched_files_build_as_the_live_upstream_does() {
    let Some(project) = watched() else { return };
    let work = &project.work;
    let upstream = &project.upstream;
    // Every way to name a ref, directories, links, line ends that a checkout makes, a root that goes up.
    upstream.write(".gitattributes", "*.txt text eol=crlf\n");
    upstream.write("data/lines.txt", "one\ntwo\n");
    upstream.write(
        "data/kustomization.yaml",
        "resources: [../shared]\nconfigMapGenerator:\n- name: lines\n  files: [lines.txt]\n",
    );
    upstream.write("shared/kustomization.yaml", "resources: [link.yaml]\n");
    upstream.write("shared/real.yaml", config("shared"));
    let shared = upstream.path().join("shared/link.yaml");
    std::os::unix::fs::symlink("real.yaml", shared).unwrap();
    std::os::unix::fs::symlink("data", upstream.path().join("linked")).unwrap();
    upstream.commit("more");
    upstream.git(&["tag", "-a", "-m", "v2", "v2"]);
    upstream.git(&["branch", "feature/one"]);
    let commit = upstream.git(&["rev-parse", "HEAD"]);
    for (number, reference) in [
        "https://example.com/acme/remote.git?ref=v1",
        "https://example.com/acme/remote.git//data?ref=v2",
        "https://example.com/acme/remote.git//linked/?ref=v2",
        "https://example.com/acme/remote.git//shared?ref=feature/one",
        "https://example.com/acme/remote.git//shared?version=refs/tags/v2",
        "https://example.com/acme/remote.git//shared?submodules=false&ref=v2",
        &format!("https://example.com/acme/remote.git//data?ref={commit}"),
    ]
    .into_iter()
    .enumerate()
    {
        work.write(
            &format!("example/part-{number}/kustomization.yaml"),
            format!("resources: ['{reference}']\nnamePrefix: part-{number}-\n"),
        );
    }
    let parts: String = (0..7).map(|part| format!("- ../part-{part}\n")).collect();
    let overlay = format!("resources:\n- ../base\n{parts}");
    work.write("example/overlay/kustomization.yaml", overlay);
    work.commit("parts");
    both_ways(&project);
}

#[test]
fn submodules_are_there_where_they_are_asked_for() {
    let Some(project) = watched() else { return };
    let work = &project.work;
    let sandbox = &project.sandbox;
    sandbox.configure("protocol.file.allow", "always");
    let inner = sandbox.repo("upstream/acme/inner.git");
    inner.write("kustomization.yaml", "resources: [map.yaml]\n");
    inner.write("map.yaml", config("inner"));
    inner.commit("inner");
    let upstream = &project.upstream;
    let url = format!("file://{}", inner.path().display());
    upstream.git(&["submodule", "--quiet", "add", &url, "inner"]);
    upstream.commit("with a submodule");
    upstream.git(&["tag", "v2"]);
    let url = format!("file://{}", upstream.path().display());
    for (name, reference) in
        [("with", format!("{url}//inner?ref=v2")), ("without", format!("{url}?ref=v2&submodules=false"))]
    {
        work.write(
            &format!("example/{name}/kustomization.yaml"),
            format!("resources: ['{reference}']\nnamePrefix: {name}-\n"),
        );
    }
    work.write("example/overlay/kustomization.yaml", "resources: [../with, ../without]\n");
    work.commit("both");
    both_ways(&project);
}

#[test]
fn local_links_and_an_upper_scope() {
    let Some(project) = watched() else { return };
    let work = &project.work;
    work.write("shared/maps/map.yaml", config("linked"));
    work.write("shared/maps/kustomization.yaml", "resources: [map.yaml]\n");
    for (link, target) in [("example/maps", "../shared/maps"), ("shared/maps/again.yaml", "./map.yaml")] {
        std::os::unix::fs::symlink(target, work.path().join(link)).unwrap();
    }
    work.write(
        "example/overlay/kustomization.yaml",
        "resources: [../base, ../maps]\nconfigMapGenerator:\n- name: g\n  files: [own.txt]\n",
    );
    work.write("example/overlay/real.txt", "data");
    let own = work.path().join("example/overlay/own.txt");
    std::os::unix::fs::symlink("real.txt", own).unwrap();
    work.commit("links");
    work.run(&["example/overlay", "copy", "--scope", "."]).success().says(expect![[r#"
        localized example/overlay into copy on branch localized/main (<0>): 10 files written, 3 references rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          verified: builds are identical: 257 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    work.run(&["example/overlay", "plain", "--scope", ".", "--no-commit"]).success().says(expect![[r#"
        localized example/overlay into plain: 10 files written, 3 references rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <0>
          verified: builds are identical: 257 bytes (kustomize/…, network closed)
    "#]]);
}

#[test]
fn an_upstream_that_moves_after_the_fetch_is_not_seen() {
    let Some(project) = project() else { return };
    let work = &project.work;
    let upstream = &project.upstream;
    let id = upstream.git(&["rev-parse", "HEAD"]);
    upstream.write("service.yaml", config("moved"));
    upstream.commit("moved");
    let moved = upstream.git(&["rev-parse", "HEAD"]);
    // Every build moves all refs of upstream first.
    let refs = upstream.path().join(".git/refs").display().to_string();
    let names = ["heads/main", "heads/feature/one", "tags/v1"];
    let moves: String = names.iter().map(|name| format!("echo {moved} >'{refs}/{name}'; ")).collect();
    let script = format!("[ $1 = version ] || {{ {moves} }}\nexec REAL \"$@\"");
    stand_in(&project.sandbox, &script);
    let url = "https://example.com/acme/remote.git";
    for (number, end) in ["", "?ref=HEAD", "?ref=v1", "?ref=feature/one", &format!("?ref={id}")].iter().enumerate() {
        let verified = |args: &[&str]| {
            for name in names {
                upstream.write(&format!(".git/refs/{name}"), &id);
            }
            work.run(args).success().stdout_has("  verified: ");
            assert_eq!(["HEAD", "v1", "feature/one"].map(|name| upstream.id(name)), [&*moved; 3], "{end}");
        };
        work.write("example/base/kustomization.yaml", format!("resources: [config.yaml, '{url}{end}']\n"));
        work.commit("another ref");
        let place = format!("copy-{number}");
        verified(&["example/overlay", &place, "--scope=example", "--no-commit"]);
        let target = format!("{url}{end}");
        if number.is_multiple_of(2) {
            verified(&[&target, &format!("remote-{number}"), "--no-commit"]);
        } else {
            verified(&["branch", "--branch", &place]);
        }
    }
}

#[test]
fn other_git_calls_are_refused() {
    let Some(project) = project() else { return };
    // As a kustomize of tomorrow may: it asks something that we do not know.
    let ask = "case \"$*\" in */original/*) git --exec-path >/dev/null || exit 1;; esac";
    stand_in(&project.sandbox, &format!("{ask}\nexec REAL \"$@\""));
    project.overlay(&[]).fails(1).says(expect![[r#"
        error[unread-reference]: kustomize asks for `git --exec-path`, which no reference names
         --> example/overlay/kustomization.yaml
         = help: write the reference plainly, and lock it: git kustomize-localize explain unread-reference

        error: <0> has 1 error (unread-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain unread-reference
    "#]]);
}

#[test]
fn fetched_files_are_served_to_the_build_only() {
    let project = Project::new();
    let sandbox = &project.sandbox;
    let program = env!("CARGO_BIN_EXE_git-kustomize-localize");
    std::os::unix::fs::symlink(program, sandbox.path("bin/git")).unwrap();
    let git = sandbox.path("bin/git");
    let run = |name: &str| {
        let program = sandbox.path(&format!("bin/{name}"));
        let mut command = sandbox.command(program, &sandbox.path(""));
        crate::support::Running::start(command.args(["init"])).wait()
    };
    // Without the variable it is the program under another name.
    assert_ne!(run("git").status, 0);
    assert!(!sandbox.path(".git").exists());
    // With it, a manifest that is none answers nothing but what needs none.
    let manifest = sandbox.path("manifest.json");
    fs::write(&manifest, "{}").unwrap();
    sandbox.set("KUSTOMIZE_LOCALIZE_STAND_IN", &manifest);
    std::os::unix::fs::symlink(&git, sandbox.path("bin/git-kustomize-localize")).unwrap();
    assert_ne!(run("git-kustomize-localize").status, 0);
    assert!(!sandbox.path(".git").exists());
}

#[test]
fn a_nondeterministic_build_is_reported_as_such() {
    let Some(project) = project() else { return };
    let script = "REAL \"$@\" || exit; [ $1 = version ] || date '+# %s%N'";
    stand_in(&project.sandbox, script);
    let before = project.work.state();
    project.overlay(&[]).fails(1);
    before.assert_same(&project.work.state());
}

#[test]
fn every_file_is_asked_for_once() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    // Names that are written in a request in another way than in a kustomization, and one host in two ways.
    let names = ["map.yaml", "a%20b.yaml", "c d.yaml", "q.yaml?x=1&y=2", "\u{fc}.yaml"];
    let mut resources = String::new();
    for (number, name) in names.iter().enumerate() {
        let asked = name.replace(' ', "%20").replace('\u{fc}', "%C3%BC");
        let url = format!("https://files.example.com/{asked}");
        world.file(&url, config_map(&format!("map-{number}")));
        resources.push_str(&format!("- 'https://files.example.com/{name}'\n"));
    }
    world.file("https://files.example.com:8443/x.yaml", config_map("port"));
    resources.push_str("- https://Files.example.com:8443/x.yaml\n");
    world.commit(&[("app/kustomization.yaml", &format!("resources:\n{resources}"))]);
    world.work.run(&["app"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 9 files written, 6 references rewritten, 0 removed
          added https://Files.example.com:8443/x.yaml <1>
          added https://files.example.com/a%20b.yaml <2>
          added https://files.example.com/c d.yaml <3>
          added https://files.example.com/map.yaml <4>
          added https://files.example.com/q.yaml?x=1&y=2 <5>
          and 1 more change: `-v` shows all
          verified: builds are identical: 349 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    let mut log = world.server.log();
    log.sort();
    let count = log.len();
    log.dedup();
    assert_eq!((log.len(), count), (6, 6), "{log:?}");

    // Offline not even that.
    world.server.forget();
    let kustomization = format!("resources:\n{resources}namePrefix: a-\n");
    world.commit(&[("app/kustomization.yaml", &kustomization)]);
    world.work.run(&["app", "--offline"]).success().says(expect![[r#"
        localized app into localized-app on branch localized/main (<0>): 2 files written, 6 references rewritten, 0 removed
          verified: builds are identical: 361 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
    assert_eq!(world.server.log(), crate::support::NONE);
}

#[test]
fn the_original_is_the_committed_tree() {
    let Some(project) = project() else { return };
    let commit = project.work.git(&["rev-parse", "HEAD"]);
    project.work.write("example/base/kustomization.yaml", base_of("nowhere"));
    project.overlay(&["--rev", &commit, "--branch", "copies"]).success().says(expect![[r#"
        localized example/overlay into localized-overlay on branch copies (<0>): 7 files written, 1 reference rewritten, 0 removed
          added https://example.com/acme/remote.git?ref=v1 <1>
          verified: builds are identical: 117 bytes (kustomize/…, network closed)
          to look at it: git show --stat <0>
    "#]]);
}

#[test]
fn unfetched_files_are_refused() {
    let world = World::new();
    let Some(_) = world.sandbox.builds() else { return };
    let url = "https://files.example.com/map.yaml";
    world.file(url, config_map("one"));
    let text = format!("resources: ['{url}']\n");
    world.commit(&[("app/kustomization.yaml", &text)]);
    // Like a plugin might, the original requests something that no kustomization names.
    let other = "https://files.example.com/other.yaml";
    world.file(other, config_map("other"));
    let side = world.sandbox.path("side");
    std::fs::create_dir(&side).unwrap();
    let text = format!("resources: ['{other}']\n");
    std::fs::write(side.join("kustomization.yaml"), text).unwrap();
    let build = format!("REAL build '{}' >/dev/null || exit 1", side.display());
    let script = format!("case \"$*\" in */original/*) {build};; esac\nexec REAL \"$@\"");
    stand_in(&world.sandbox, &script);
    world.server.forget();
    world.work.run(&["app"]).fails(1).says(expect![[r#"
        error[unread-reference]: kustomize asks for `https://files.example.com/other.yaml`, which no reference names
         --> app/kustomization.yaml
         = help: write the reference plainly, and lock it: git kustomize-localize explain unread-reference

        error: <0> has 1 error (unread-reference 1): nothing was committed
          hint: for more: git kustomize-localize explain unread-reference
    "#]]);
    assert!(!world.server.log().iter().any(|line| line.contains("other.yaml")));
}
