//! The lock in the middle of a merge or a rebase.

use crate::support::{World, config_map};

const LOCK: &str = "kustomize-localize.lock";
const COMMAND: &str = "git kustomize-localize lock && git add -f -- :/kustomize-localize.lock";

fn url(name: &str) -> String {
    format!("https://files.example.com/{name}.yaml")
}

/// Writes a root that names these files, and locks it.
fn locked(world: &World, root: &str, names: &[&str]) {
    let list: String = names.iter().map(|name| format!("- {}\n", url(name))).collect();
    let text = format!("resources:\n{list}");
    world.work.write(&format!("{root}/kustomization.yaml"), text);
    world.work.run(&["lock"]).success();
    world.work.commit(root);
}

/// Two branches that each lock something next to the same entry. With `base`, there is a lock before they part.
fn parted(style: &str, base: bool) -> World {
    let world = World::new();
    for name in ["a", "b", "n", "o", "z"] {
        world.file(&url(name), config_map(name));
    }
    world.work.git(&["config", "merge.conflictStyle", style]);
    if base {
        locked(&world, "base", &["a", "b", "z"])
    } else {
        world.work.write("README.md", "Nothing yet.\n");
        world.work.commit("first");
    }
    world.work.git(&["switch", "-q", "-c", "topic"]);
    if base {
        locked(&world, "base", &["b", "z"]);
    }
    locked(&world, "theirs", &["n"]);
    world.work.git(&["switch", "-q", "main"]);
    locked(&world, "ours", &["o"]);
    world
}

/// Asserts that the lock is in conflict, that the gate reports what to do, and that this resolves it.
fn resolve(world: &World, expected: &[&str]) {
    let text = world.work.read(LOCK);
    assert!(text.contains("<<<<<<<"), "{text}");
    for source in [&["check"][..], &["check", "--staged"]] {
        world.work.run(source).fails(2).stderr_has(&format!("hint: {COMMAND}\n"));
    }
    world.work.run(&["update"]).fails(2).stderr_has(COMMAND);
    // No server is asked.
    world.server.unroute(&url("n"));
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    let output = world.work.run(&["lock"]);
    output
        .success()
        .stdout_has("merged both sides of the conflict")
        .stdout_has("  to stage it: git add -f -- :/kustomize-localize.lock\n");
    assert_eq!(urls(world), expected);
    world.work.git(&["add", "-f", "--", ":/kustomize-localize.lock"]);
    world.work.run(&["check"]).success();
    world.work.run(&["lock"]).success().stdout_has("nothing to do");
}

fn urls(world: &World) -> Vec<String> {
    let lock = world.work.read(LOCK);
    let lines = lock.lines().filter_map(|line| line.strip_prefix("  - url: "));
    let names = lines.filter_map(|url| url.strip_prefix("https://files.example.com/"));
    names.map(|name| name.trim_end_matches(".yaml").to_owned()).collect()
}

#[test]
fn a_merge_is_resolved_from_both_sides() {
    // A lock that both sides added is resolved, too.
    for (style, base) in [("merge", true), ("diff3", true), ("zdiff3", true), ("merge", false)] {
        let world = parted(style, base);
        world.work.try_git(&["merge", "topic"]).fails(1);
        let both: &[&str] = if base { &["b", "n", "o", "z"] } else { &["n", "o"] };
        resolve(&world, both);
    }
}

#[test]
fn a_link_in_the_place_of_the_lock_is_refused() {
    let world = parted("merge", true);
    world.work.try_git(&["merge", "topic"]).fails(1);
    world.work.remove(LOCK);
    std::os::unix::fs::symlink("elsewhere", world.work.path().join(LOCK)).unwrap();
    world.refused(&["lock"]).says(expect![[r#"
        error: `kustomize-localize.lock` is not a regular file
          hint: move it away: the lock is written there
    "#]]);
}

#[test]
fn markers_that_were_committed_are_refused() {
    let world = parted("merge", true);
    world.work.try_git(&["merge", "topic"]).fails(1);
    // The index has no sides any more, but HEAD has a lock.
    world.work.git(&["add", "-f", "--", ":/kustomize-localize.lock"]);
    world.refused(&["lock"]).says(expect![[r#"
        error: kustomize-localize.lock:7: contains a merge conflict
          hint: take a lock without markers: git checkout HEAD -- :/kustomize-localize.lock; then: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
    "#]]);
    world.work.commit("with markers");
    world.work.run(&["lock"]).fails(2).says(expect![[r#"
        error: kustomize-localize.lock:7: contains a merge conflict
          hint: take a lock without markers: git checkout HEAD^ -- :/kustomize-localize.lock; then: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
    "#]]);
    world.work.git(&["checkout", "HEAD^", "--", ":/kustomize-localize.lock"]);
    world.work.run(&["lock"]).success();
    assert_eq!(urls(&world), ["b", "n", "o", "z"]);
}

#[test]
fn a_side_that_cannot_be_read_is_replaced_by_the_other() {
    for (broken, other, other_option) in [("main", "topic", "--theirs"), ("topic", "main", "--ours")] {
        let world = parted("merge", true);
        world.work.git(&["switch", "-q", broken]);
        world.work.write(LOCK, "version: 99\n");
        world.work.commit("broken");
        world.work.git(&["switch", "-q", "main"]);
        world.work.try_git(&["merge", "topic"]).fails(1);
        let take = format!("git checkout {other_option} -- :/{LOCK} && git add -f -- :/{LOCK}");
        let hint = format!("hint: take the other side: {take}; then: {COMMAND}\n");
        world.work.run(&["lock"]).fails(2).stderr_has(&hint);
        world.work.git(&["checkout", other_option, "--", &format!(":/{LOCK}")]);
        assert_eq!(world.work.read(LOCK).trim_end(), world.work.git(&["show", &format!("{other}:{LOCK}")]));
        world.work.git(&["add", "-f", "--", &format!(":/{LOCK}")]);
        world.work.run(&["lock"]).success();
        assert_eq!(urls(&world), ["b", "n", "o", "z"]);
    }
}

#[test]
fn a_rebase_is_resolved_from_both_sides() {
    let world = parted("zdiff3", true);
    world.work.git(&["switch", "-q", "topic"]);
    let mut stops = 0;
    let mut output = world.work.try_git(&["rebase", "main"]);
    while output.status != 0 {
        stops += 1;
        assert!(stops < 4, "{output:?}");
        world.work.run(&["lock"]).success();
        world.work.git(&["add", "-f", "--", ":/kustomize-localize.lock"]);
        output = world.work.try_git(&["-c", "core.editor=true", "rebase", "--continue"]);
    }
    assert!(stops > 0);
    assert_eq!(urls(&world), ["b", "n", "o", "z"]);
    world.work.run(&["check"]).success();
}

#[test]
fn conflicting_entries_are_left_to_update() {
    let world = World::new();
    world.file(&url("a"), config_map("one"));
    locked(&world, "base", &["a"]);
    world.work.git(&["switch", "-q", "-c", "topic"]);
    let change = |text: &str| {
        world.file(&url("a"), config_map(text));
        world.work.run(&["update"]).success();
        world.work.commit(text);
        let lock = world.work.read(LOCK);
        let line = lock.lines().find(|line| line.contains("sha256")).unwrap();
        line.trim_start().trim_start_matches("sha256: ")[..12].to_owned()
    };
    let theirs = change("two");
    world.work.git(&["switch", "-q", "main"]);
    let ours = change("three");
    world.work.try_git(&["merge", "topic"]).fails(1);
    let output = world.work.run(&["lock"]);
    output.fails(1).stderr_has(&format!(": kept ours ({ours}), not theirs ({theirs})\n")).says(expect![[r#"
        wrote kustomize-localize.lock: 1 remote reference
          merged both sides of the conflict
          to stage it: git add -f -- :/kustomize-localize.lock
        error: https://files.example.com/a.yaml: both sides changed it: kept ours (<0>), not theirs (<1>)
          hint: to keep ours: git add -f -- :/kustomize-localize.lock
          hint: to resolve it again: git kustomize-localize update https://files.example.com/a.yaml
    "#]]);
    // The side that the user takes stays.
    world.work.git(&["checkout", "--theirs", "--", ":/kustomize-localize.lock"]);
    world.work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
    "#]]);
    world.file(&url("a"), config_map("four"));
    world.work.run(&["update", &url("a")]).success();
    // Conflicts that were resolved by hand are not resolved again.
    world.work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 1 remote reference
    "#]]);
    world.work.git(&["add", "-f", "--", ":/kustomize-localize.lock"]);
    world.work.run(&["check"]).success();
}
