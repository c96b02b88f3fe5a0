//! `update`: what the lock holds, resolved again.

use crate::support::{Output, Repo, World, config_map};

const LOCK: &str = "kustomize-localize.lock";
const FILE: &str = "https://files.example.com/app.yaml";
const TAGGED: &str = "https://github.com/acme/files/releases/download/v1.0.0/app.yaml";

/// A repository whose lock holds a branch, a tag and two files.
fn world() -> World {
    let world = World::new();
    world.upstream_of(
        "acme/lib",
        &[
            ("web/kustomization.yaml", "resources: [map.yaml]\n"),
            ("web/map.yaml", &config_map("one")),
        ],
    );
    world.file(FILE, config_map("one"));
    world.file(TAGGED, config_map("one"));
    world.work.write(
        "kustomization.yaml",
        format!(
            "resources:\n- https://github.com/acme/lib//web?ref=main\n- {FILE}\n- {TAGGED}\ncomponents: []\n"
        ),
    );
    world.work.write(
        "tagged/kustomization.yaml",
        "resources:\n- https://github.com/acme/lib//web?ref=v1\n",
    );
    world.work.run(&["lock"]).success();
    world.work.git(&["add", "--all"]);
    world
}

fn upstream(world: &World) -> Repo {
    Repo::new(&world.sandbox, world.sandbox.path("upstream/acme/lib"))
}

/// Moves the branch upstream; returns what it was and what it is.
fn move_branch(world: &World) -> (String, String) {
    let upstream = upstream(world);
    let old = upstream.id("HEAD");
    upstream.write("web/map.yaml", config_map("two"));
    (old, upstream.commit("two"))
}

fn update(world: &World, args: &[&str]) -> Output {
    world.work.run(&[&["update"], args].concat())
}

#[test]
fn what_moved_is_told_with_old_and_new() {
    let world = world();
    update(&world, &[])
        .success()
        .stdout_has("nothing to do: kustomize-localize.lock holds 4 remote references");
    let (old, new) = move_branch(&world);
    world.file(FILE, config_map("two"));
    let before = world.work.state();
    update(&world, &["--dry-run"])
        .success()
        .stdout_has("would write kustomize-localize.lock");
    before.assert_same(&world.work.state());
    update(&world, &[])
        .success()
        .stdout_has("wrote kustomize-localize.lock: it holds 4 remote references\n")
        .stdout_has(&format!(
            "  moved https://github.com/acme/lib?ref=main {} -> {}\n",
            &old[..12],
            &new[..12]
        ))
        .stdout_has(&format!("  moved {FILE} "));
    let lock = world.work.read(LOCK);
    assert!(
        lock.contains(&format!("ref: main\n    commit: {new}\n")),
        "{lock}"
    );
    assert!(
        lock.contains(&format!("ref: v1\n    commit: {old}\n")),
        "{lock}"
    );
}

#[test]
fn only_what_is_named_is_resolved() {
    let world = world();
    let (_, new) = move_branch(&world);
    world.file(FILE, config_map("two"));
    update(&world, &["files.example.com"])
        .success()
        .stdout_has(&format!("  moved {FILE} "))
        .lacks("acme/lib");
    assert!(!world.work.read(LOCK).contains(&new));
    update(&world, &["https://github.com/acme/lib//web?ref=main"])
        .success()
        .stdout_has("  moved https://github.com/acme/lib?ref=main ");
    assert!(world.work.read(LOCK).contains(&new));
    world
        .refused(&["update", "https://github.com/acme/library"])
        .stderr_has("the lock holds nothing that `https://github.com/acme/library` names")
        .stderr_has("hint: the nearest is `https://github.com/acme/lib?ref=");
}

#[test]
fn a_tag_that_moved_is_refused_until_it_is_accepted() {
    let world = world();
    let (old, new) = move_branch(&world);
    upstream(&world).git(&["tag", "-f", "-a", "v1", "-m", "again"]);
    world
        .refused(&["update"])
        .stderr_has(&format!(
            "https://github.com/acme/lib?ref=v1: the tag `v1` names another commit: {} -> {}",
            &old[..12],
            &new[..12]
        ))
        .stderr_has(
            "git kustomize-localize update --accept-moved 'https://github.com/acme/lib?ref=v1'",
        );
    // With a cache that knows nothing it is the fetch that tells.
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    std::fs::create_dir(world.sandbox.path("cache")).unwrap();
    world
        .refused(&["update", "https://github.com/acme/lib?ref=v1"])
        .stderr_has("the tag `v1` names another commit");
    update(
        &world,
        &["--accept-moved", "https://github.com/acme/lib?ref=v1"],
    )
    .success()
    .stdout_has("  moved https://github.com/acme/lib?ref=v1 ");
    let lock = world.work.read(LOCK);
    assert!(
        lock.contains(&format!("ref: v1\n    commit: {new}\n")),
        "{lock}"
    );
    assert!(
        lock.contains(&format!("ref: main\n    commit: {old}\n")),
        "{lock}"
    );
}

#[test]
fn other_bytes_under_a_version_are_refused_until_they_are_accepted() {
    let world = world();
    world.file(TAGGED, config_map("two"));
    world.refused(&["update"]).stderr_has(&format!(
        "{TAGGED}: `v1.0.0` should never change, but holds other bytes: "
    ));
    update(&world, &["--accept-moved"])
        .success()
        .stdout_has(&format!("  moved {TAGGED} "));
}

#[test]
fn what_is_gone_leaves_the_lock_as_it_is() {
    let world = world();
    world.server.unroute(FILE);
    world.refused(&["update"]).stderr_has(&format!(
        "kustomization.yaml:3:3: resources[1]: cannot fetch {FILE}"
    ));
    // The others can be resolved: it is locked, and in the cache.
    update(&world, &["github.com/acme/lib"]).success();
}

#[test]
fn without_a_lock_there_is_nothing_to_update() {
    let world = world();
    world.work.remove(LOCK);
    world
        .refused(&["update"])
        .stderr_has("there is no lock at the top of this repository")
        .stderr_has("hint: git kustomize-localize lock");
}

#[test]
fn what_is_localized_stays_until_its_url_is_written_again() {
    let world = world();
    world
        .work
        .run(&["--in-place", "--no-commit", "tagged"])
        .success();
    let lock = world.work.read(LOCK);
    world
        .refused(&["update", "https://github.com/acme/lib?ref=v1"])
        .stderr_has("https://github.com/acme/lib?ref=v1 is localized: its files are in the tree")
        .stderr_has("in the kustomization of `tagged`");
    update(&world, &[])
        .success()
        .stdout_has("nothing to do")
        .stderr_has("warning[stored-entry]: kustomize-localize.lock: what is localized stays as it is until its URL is written again: https://github.com/acme/lib?ref=v1");
    assert_eq!(world.work.read(LOCK), lock);
}
