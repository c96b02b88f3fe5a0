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
        &[("web/kustomization.yaml", "resources: [map.yaml]\n"), ("web/map.yaml", &config_map("one"))],
    );
    world.file(FILE, config_map("one"));
    world.file(TAGGED, config_map("one"));
    world.work.write(
        "kustomization.yaml",
        format!("resources:\n- https://github.com/acme/lib//web?ref=main\n- {FILE}\n- {TAGGED}\ncomponents: []\n"),
    );
    world.work.write("tagged/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n");
    world.work.run(&["lock"]).success();
    world.work.git(&["add", "--all"]);
    world
}

fn upstream(world: &World) -> Repo {
    Repo::new(&world.sandbox, world.sandbox.path("upstream/acme/lib"))
}

/// Returns how a lock says what a ref is.
fn pin(reference: &str, commit: &str) -> String {
    format!("ref: {reference}\n    commit: {commit}\n")
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
fn moves_are_reported_with_old_and_new_commit() {
    let world = world();
    update(&world, &[]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 4 remote references
    "#]]);
    let (old, new) = move_branch(&world);
    world.file(FILE, config_map("two"));
    let before = world.work.state();
    update(&world, &["--dry-run"]).success().says(expect![[r#"
        would write kustomize-localize.lock: 4 remote references
          moved https://files.example.com/app.yaml <0> -> <1>
          moved https://github.com/acme/lib?ref=main <2> -> <3>
            … days old
            <3> two
          file kustomize-localize.lock (…)
    "#]]);
    before.assert_same(&world.work.state());
    update(&world, &[]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://files.example.com/app.yaml <0> -> <1>
          moved https://github.com/acme/lib?ref=main <2> -> <3>
            … days old
            <3> two
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    let lock = world.work.read(LOCK);
    assert!(lock.contains(&pin("main", &new)), "{lock}");
    assert!(lock.contains(&pin("v1", &old)), "{lock}");
}

#[test]
fn only_named_entries_are_resolved() {
    let world = world();
    let (_, new) = move_branch(&world);
    world.file(FILE, config_map("two"));
    update(&world, &["files.example.com"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://files.example.com/app.yaml <0> -> <1>
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    assert!(!world.work.read(LOCK).contains(&new));
    update(&world, &["https://github.com/acme/lib//web?ref=main"]).success().says(expect![[r#"
            wrote kustomize-localize.lock: 4 remote references
              moved https://github.com/acme/lib?ref=main <0> -> <1>
                … days old
                <1> two
              to stage it: git add -f -- :/kustomize-localize.lock
        "#]]);
    assert!(world.work.read(LOCK).contains(&new));
    world.refused(&["update", "https://github.com/acme/library"]).says(expect![[r#"
        error: no entry of the lock matches `https://github.com/acme/library`
          hint: it contains `https://github.com/acme/lib?ref=v1`, `https://github.com/acme/lib?ref=main`, `https://files.example.com/app.yaml`, `https://github.com/acme/files/releases/download/v1.0.0/app.yaml`
    "#]]);
}

#[test]
fn a_tag_that_moved_stays_until_it_is_named() {
    let world = world();
    let (old, new) = move_branch(&world);
    // It is no branch, although one is the same commit.
    upstream(&world).git(&["tag", "-f", "v1"]);
    update(&world, &["--dry-run"]).fails(1).says(expect![[r#"
        would write kustomize-localize.lock: 4 remote references
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          file kustomize-localize.lock (…)
        error: https://github.com/acme/lib?ref=v1 moved: <0> -> <1>; the lock keeps <0>
          hint: find out why; if it is intended: git kustomize-localize update 'https://github.com/acme/lib?ref=v1'
    "#]]);
    upstream(&world).git(&["tag", "-f", "-a", "v1", "-m", "again"]);
    update(&world, &[]).fails(1).says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          to stage it: git add -f -- :/kustomize-localize.lock
        error: https://github.com/acme/lib?ref=v1 moved: <0> -> <1>; the lock keeps <0>
          hint: find out why; if it is intended: git kustomize-localize update 'https://github.com/acme/lib?ref=v1'
    "#]]);
    let lock = world.work.read(LOCK);
    assert!(lock.contains(&pin("v1", &old)), "{lock}");
    assert!(lock.contains(&pin("main", &new)), "{lock}");
    // One thing is said, not that there is nothing to do.
    update(&world, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock not changed: 4 remote references
        error: https://github.com/acme/lib?ref=v1 moved: <0> -> <1>; the lock keeps <0>
          hint: find out why; if it is intended: git kustomize-localize update 'https://github.com/acme/lib?ref=v1'
    "#]]);
    // With an empty cache it is the fetch that finds out.
    std::fs::remove_dir_all(world.sandbox.path("cache")).unwrap();
    std::fs::create_dir(world.sandbox.path("cache")).unwrap();
    update(&world, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock not changed: 4 remote references
        error: https://github.com/acme/lib?ref=v1 moved: <0> -> <1>; the lock keeps <0>
          hint: find out why; if it is intended: git kustomize-localize update 'https://github.com/acme/lib?ref=v1'
    "#]]);
    update(&world, &["https://github.com/acme/lib?ref=v1"]).success().says(expect![[r#"
            wrote kustomize-localize.lock: 4 remote references
              moved https://github.com/acme/lib?ref=v1 <0> -> <1>
                … days old
                <1> two
              to stage it: git add -f -- :/kustomize-localize.lock
        "#]]);
    let lock = world.work.read(LOCK);
    assert!(lock.contains(&pin("v1", &new)), "{lock}");
}

#[test]
fn what_stays_lets_nobody_be_asked_twice() {
    let world = world();
    world.file(TAGGED, config_map("two"));
    world.file(FILE, config_map("two"));
    world.server.forget();
    update(&world, &[]).fails(1).says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://files.example.com/app.yaml <0> -> <1>
          to stage it: git add -f -- :/kustomize-localize.lock
        error: https://github.com/acme/files/releases/download/v1.0.0/app.yaml moved: <0> -> <1>; the lock keeps <0>
          hint: find out why; if it is intended: git kustomize-localize update https://github.com/acme/files/releases/download/v1.0.0/app.yaml
    "#]]);
    let asked = world.server.log();
    for url in [FILE, TAGGED] {
        assert_eq!(asked.iter().filter(|one| **one == format!("GET {url}")).count(), 1, "{asked:?}");
    }
}

#[test]
fn other_bytes_under_a_version_stay_until_they_are_named() {
    let world = world();
    world.file(TAGGED, config_map("two"));
    update(&world, &[])
        .fails(1).says(expect![[r#"
            kustomize-localize.lock not changed: 4 remote references
            error: https://github.com/acme/files/releases/download/v1.0.0/app.yaml moved: <0> -> <1>; the lock keeps <0>
              hint: find out why; if it is intended: git kustomize-localize update https://github.com/acme/files/releases/download/v1.0.0/app.yaml
        "#]]);
    update(&world, &[TAGGED]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://github.com/acme/files/releases/download/v1.0.0/app.yaml <0> -> <1>
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
}

/// The references and the lock change together, and nothing else in the files.
#[test]
fn another_ref_is_written_where_the_url_is_named() {
    let world = world();
    let (_, new) = move_branch(&world);
    upstream(&world).git(&["tag", "v1.2.0+k3s1"]);
    let text = "# ours\nresources:\n- 'github.com/acme/lib//web?ref=v1&submodules=true' # theirs\n";
    world.work.write("more/kustomization.yaml", text);
    world.work.commit("more");
    world.work.run(&["lock"]).success();
    world.work.commit("lock");
    world.refused(&["update", "https://github.com/acme/lib", "--to", "v9"]).says(expect![[r#"
        error: https://github.com/acme/lib has no ref `v9`
          at kustomization.yaml:2:3: resources[0]
          at more/kustomization.yaml:3:3: resources[0]
          at tagged/kustomization.yaml:2:3: resources[0]
          hint: list its refs: git ls-remote https://github.com/acme/lib
    "#]]);
    world.refused(&["update", FILE, "--to", "v9"]).says(expect![[r#"
            error: no kustomization references a git repository or chart with this URL
              hint: list the references: git kustomize-localize tree
        "#]]);
    // The URL of a file has no ref, although it parses as a repository.
    world.refused(&["update", "https://github.com/acme/files", "--to", "v9"]).says(expect![[r#"
        error: no kustomization references a git repository or chart with this URL
          hint: list the references: git kustomize-localize tree
    "#]]);
    let before = world.work.state();
    let to = ["https://github.com/acme/lib?ref=v1", "--to", "v1.2.0+k3s1"];
    update(&world, &[&to[..], &["--dry-run"]].concat()).success();
    before.assert_same(&world.work.state());
    update(&world, &to).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          dropped https://github.com/acme/lib?ref=v1 <0>
          added https://github.com/acme/lib?ref=v1.2.0+k3s1 <1>
            … days old
            <1> two
          to stage it: git add -f -- :/kustomize-localize.lock :/more/kustomization.yaml :/tagged/kustomization.yaml
    "#]]);
    assert_eq!(world.work.read("more/kustomization.yaml"), text.replace("ref=v1", "ref=v1.2.0%2Bk3s1"));
    let lock = world.work.read(LOCK);
    assert!(lock.contains(&pin("v1.2.0+k3s1", &new)), "{lock}");
    assert!(!lock.contains("ref: v1\n"), "{lock}");
    assert!(lock.contains("ref: main\n"), "{lock}");
    world.work.run(&["check"]).success();
}

#[test]
fn another_ref_is_written_below_a_path() {
    let world = world();
    let text = "resources: ['https://github.com/acme/lib//web?ref=v1']\n";
    for app in ["apps/one", "apps/two"] {
        world.work.write(&format!("{app}/kustomization.yaml"), text);
    }
    world.work.commit("apps");
    world.work.run(&["lock"]).success();
    upstream(&world).git(&["tag", "v1.2.0"]);
    let url = "https://github.com/acme/lib?ref=v1";
    world.refused(&["update", "apps", "--to", "v1.2.0"]).says(expect![[r#"
        error: `--to` needs a URL: the repository or chart whose ref or version to change
          hint: list the references: git kustomize-localize tree :/apps
    "#]]);
    world.refused(&["update", url, "--to", "v1.2.0", "more"]).says(expect![[r#"
        error: no entry of the lock matches `more`
          hint: it contains `https://github.com/acme/lib?ref=v1`, `https://files.example.com/app.yaml`, `https://github.com/acme/lib?ref=main`, `https://github.com/acme/files/releases/download/v1.0.0/app.yaml`
    "#]]);
    world.refused(&["update", url, "--to", "v9", "apps"]).says(expect![[r#"
        error: https://github.com/acme/lib has no ref `v9`
          at apps/one/kustomization.yaml:1:13: resources[0]
          at apps/two/kustomization.yaml:1:13: resources[0]
          hint: list its refs: git ls-remote https://github.com/acme/lib
    "#]]);
    for vendored in [false, true] {
        if vendored {
            world.work.commit("written");
            world.work.run(&["vendor"]).success();
            world.work.commit("vendored");
        }
        let [app, to] = if vendored { ["apps/one", "v1.3.0"] } else { ["apps/two", "v1.2.0"] };
        upstream(&world).git(&["tag", "--force", to]);
        update(&world, &[url, "--to", to, app]).success();
        let named = |app: &str| world.work.read(&format!("{app}/kustomization.yaml"));
        assert!(named(app).contains(to), "{}", named(app));
        assert!(!named("apps/one").contains("v1.2.0") && !named("apps/two").contains("v1.3.0"));
        world.work.run(&["check"]).success();
    }
}

#[test]
fn a_branch_that_was_rewritten_is_told_from_one_that_moved_on() {
    let world = world();
    let upstream = upstream(&world);
    let locked = upstream.id("HEAD");
    move_branch(&world);
    update(&world, &[]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    // A branch that was begun long before is merged.
    let (tree, by) = (upstream.id("HEAD^{tree}"), "A <a@example.com> 978307200 +0000");
    let begun = format!("tree {tree}\nparent {locked}\nauthor {by}\ncommitter {by}\n\nbegun\n");
    upstream.write(".git/begun", begun);
    let begun = upstream.git(&["hash-object", "-t", "commit", "-w", ".git/begun"]);
    upstream.git(&["merge", "--quiet", "--no-edit", "--strategy=ours", begun.trim()]);
    update(&world, &[]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <2> begun
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    let before = world.work.read(LOCK);

    upstream.git(&["reset", "--quiet", "--hard", &locked]);
    update(&world, &["--dry-run"])
        .success().says(expect![[r#"
            would write kustomize-localize.lock: 4 remote references
              moved https://github.com/acme/lib?ref=main <0> -> <1>
                … days old
              1 warning (rewritten-branch 1)
              file kustomize-localize.lock (…)
            warning[rewritten-branch]: `main` of https://github.com/acme/lib was rewritten or reset: it no longer contains the locked commit <0>
             --> kustomize-localize.lock
        "#]]);
    upstream.write("web/map.yaml", config_map("three"));
    upstream.commit("three");
    world.work.write(".kustomize-localize", "rules: {'*': error}\n");
    update(&world, &[]).fails(1).says(expect![[r#"
        error[rewritten-branch]: `main` of https://github.com/acme/lib was rewritten or reset: it no longer contains the locked commit <0>
         --> kustomize-localize.lock

        error: nothing was written: 1 error (rewritten-branch 1)
          hint: for more: git kustomize-localize explain rewritten-branch
    "#]]);
    world.work.remove(".kustomize-localize");
    assert_eq!(world.work.read(LOCK), before);
    update(&world, &[]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
          1 warning (rewritten-branch 1)
          to stage it: git add -f -- :/kustomize-localize.lock
        warning[rewritten-branch]: `main` of https://github.com/acme/lib was rewritten or reset: it no longer contains the locked commit <0>
         --> kustomize-localize.lock
    "#]]);
    assert_ne!(world.work.read(LOCK), before);
}

#[test]
fn a_missing_upstream_keeps_its_entry_and_does_not_block_others() {
    let world = world();
    world.server.unroute(FILE);
    let before = world.work.read(LOCK);
    update(&world, &[]).fails(1).says(expect![[r#"
        kustomize-localize.lock not changed: 4 remote references
        error: kustomization.yaml:3:3: resources[1]: cannot fetch https://files.example.com/app.yaml: files.example.com answered 404 Not Found
          hint: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
        error: 1 reference could not be locked
    "#]]);
    assert_eq!(world.work.read(LOCK), before);
    // The others can be resolved: it is locked, and in the cache.
    update(&world, &["github.com/acme/lib"]).success();
    let (old, new) = move_branch(&world);
    update(&world, &[]).fails(1).says(expect![[r#"
        wrote kustomize-localize.lock: 4 remote references
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          to stage it: git add -f -- :/kustomize-localize.lock
        error: kustomization.yaml:3:3: resources[1]: cannot fetch https://files.example.com/app.yaml: files.example.com answered 404 Not Found
          hint: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
        error: 1 reference could not be locked
    "#]]);
    let moved = before.replace(&pin("main", &old), &pin("main", &new));
    let is_entry = |line: &&str| !line.starts_with("    paths-of: ");
    let entries = |lock: &str| lock.lines().filter(is_entry).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(entries(&world.work.read(LOCK)), entries(&moved));
}

#[test]
fn without_a_lock_there_is_nothing_to_update() {
    let world = world();
    world.work.remove(LOCK);
    let none = World::new();
    none.commit(&[("app/kustomization.yaml", "resources: []\n")]);
    none.work.run_unchanged(&["update"]).success().says(expect![[r#"
        nothing to do: no remote references
    "#]]);
    none.work.run_unchanged(&["update", "github.com/acme/lib"]).fails(2).says(expect![[r#"
        error: no entry of the lock matches `github.com/acme/lib`
          hint: it has none; list the references: git kustomize-localize tree
    "#]]);
    world.refused(&["update"]).says(expect![[r#"
        error: there is no lock at the top of this repository
          hint: git kustomize-localize lock
    "#]]);
}

/// A repository in which everything is localized and committed, and whose upstream has moved.
fn localized() -> (World, String) {
    let world = world();
    world.upstream_of(
        "acme/over",
        &[("kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=main']\n")],
    );
    world
        .work
        .write("over/kustomization.yaml", "# ours\nresources:\n- 'https://github.com/acme/over?ref=v1' # theirs\n");
    world.work.write("url/kustomization.yaml", format!("resources:\n- {FILE}\n"));
    world.work.git(&["add", "--all"]);
    let localize = ["vendor", ".", "tagged", "over"];
    world.work.run(&localize).success();
    world.work.commit("localized");
    let (_, new) = move_branch(&world);
    (world, new)
}

#[test]
fn localized_files_are_brought_in_again() {
    let (world, new) = localized();
    let before = world.work.state();
    update(&world, &["--dry-run"]).success().says(expect![[r#"
        would localize the working tree: 3 files written, 0 references rewritten, 0 removed
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          file kustomize-localize.lock (…)
          file localized-files/github.com/acme/lib/main/web/map.yaml (53)
          file over/localized-files/github.com/acme/over/v1/localized-files/github.com/acme/lib/main/web/map.yaml (53)
    "#]]);
    before.assert_same(&world.work.state());
    update(&world, &[]).success().says(expect![[r#"
        localized the working tree: 3 files written, 0 references rewritten, 0 removed
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/localized-files :/over/localized-files
    "#]]);
    for place in ["", "over/localized-files/github.com/acme/over/v1/"] {
        let map = format!("{place}localized-files/github.com/acme/lib/main/web/map.yaml");
        assert_eq!(world.work.read(&map), config_map("two"), "{map}");
    }
    let tagged = "tagged/localized-files/github.com/acme/lib/v1/web/map.yaml";
    assert_eq!(world.work.read(tagged), config_map("one"));
    // Handwritten files do not change: the URL of another root, too.
    let changed = world.work.git(&["diff", "--name-only"]);
    assert_eq!(
        changed,
        "kustomize-localize.lock\nlocalized-files/github.com/acme/lib/main/web/map.yaml\nover/localized-files/github.com/acme/over/v1/localized-files/github.com/acme/lib/main/web/map.yaml"
    );
    let lock = world.work.read(LOCK);
    assert!(lock.contains(&pin("main", &new)), "{lock}");
    world.work.git(&["add", "--all"]);
    world.work.run(&["check"]).says(expect![[r#"
        checked 8 kustomizations with 10 references in the working tree: no problems found
    "#]]);
    world.work.run(&["vendor", ".", "tagged", "over"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 5 remote references
    "#]]);
    update(&world, &[]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 5 remote references
    "#]]);
}

#[test]
fn files_that_are_brought_in_again_are_built_and_compared() {
    let world = world();
    let url = "https://github.com/acme/lib//web?ref=main";
    world.work.write("kustomization.yaml", format!("resources:\n- {url}\n"));
    world.work.commit("one URL");
    world.verified(&["vendor", "."]);
    world.work.commit("localized");
    move_branch(&world);
    world.verified(&["update"]).success().says(expect![[r#"
        localized the working tree: 2 files written, 0 references rewritten, 0 removed
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          verified: builds are identical: 53 bytes (kustomize/…, network closed)
          to stage it: git add -f -- :/kustomize-localize.lock :/localized-files
    "#]]);
}

#[test]
fn files_that_nothing_verifies_are_refused_if_the_rules_say_so() {
    let (world, _) = localized();
    world.work.write(".kustomize-localize", "rules: {not-built: error}\n");
    world.work.commit("strict");
    world.work.run_unchanged(&["update"]).fails(1).says(expect![[r#"
        error[not-built]: not verified: neither `kustomize` nor `kubectl` was found on PATH

        error: nothing was written: 1 error (not-built 1)
          hint: for more: git kustomize-localize explain not-built
    "#]]);
}

#[test]
fn only_named_localized_files_are_brought_in_again() {
    let (world, _) = localized();
    upstream(&world).git(&["tag", "-f", "v1"]);
    update(&world, &[]).fails(1).says(expect![[r#"
        localized the working tree: 3 files written, 0 references rewritten, 0 removed
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/localized-files :/over/localized-files
        error: https://github.com/acme/lib?ref=v1 moved: <0> -> <1>; the lock keeps <0>
          hint: find out why; if it is intended: git kustomize-localize update 'https://github.com/acme/lib?ref=v1'
    "#]]);
    world.work.commit("updated");
    update(&world, &["github.com/acme/lib"]).success().says(expect![[r#"
        localized the working tree: 2 files written, 0 references rewritten, 0 removed
          moved https://github.com/acme/lib?ref=v1 <0> -> <1>
            … days old
            <1> two
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/tagged/localized-files
    "#]]);
}

#[test]
fn another_ref_is_brought_in_where_it_is_vendored() {
    let (world, _) = localized();
    upstream(&world).git(&["tag", "v1.2.0"]);
    update(&world, &["https://github.com/acme/lib?ref=v1", "--to=v1.2.0"]).success();
    let map = "localized-files/github.com/acme/lib/v1.2.0/web/map.yaml";
    assert_eq!(world.work.read(&format!("tagged/{map}")), config_map("two"));
    let old = world.work.path().join("tagged/localized-files/github.com/acme/lib/v1");
    assert!(!old.exists());
    let tagged = world.work.read("tagged/kustomization.yaml");
    assert!(tagged.contains("lib/v1.2.0/web") && !tagged.contains("https://github.com/acme/lib"), "{tagged}");
    world.work.git(&["add", "--all"]);
    world.work.run(&["check"]).says(expect![[r#"
        checked 8 kustomizations with 10 references in the working tree: no problems found
    "#]]);
}

#[test]
fn what_is_vendored_moves_although_another_upstream_fails() {
    let (world, _) = localized();
    world.work.run(&["vendor"]).success();
    world.work.commit("all");
    world.server.unroute(FILE);
    update(&world, &[]).fails(1).says(expect![[r#"
        localized the working tree: 3 files written, 0 references rewritten, 0 removed
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/localized-files :/over/localized-files
        error: cannot fetch https://files.example.com/app.yaml: files.example.com answered 404 Not Found
          hint: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
    "#]]);
    let map = "localized-files/github.com/acme/lib/main/web/map.yaml";
    assert_eq!(world.work.read(map), config_map("two"));
}

#[test]
fn edits_of_localized_files_are_not_lost() {
    let (world, _) = localized();
    let map = "localized-files/github.com/acme/lib/main/web/map.yaml";
    world.work.write(map, "# edited\n");
    world.refused(&["update"]).says(expect![[r#"
        error: localized files were edited by hand: `localized-files/github.com/acme/lib/main/web/map.yaml`
          hint: to discard the edits: git kustomize-localize vendor --overwrite :/
    "#]]);
}

#[test]
fn files_that_are_gone_upstream_are_removed() {
    let (world, _) = localized();
    let upstream = upstream(&world);
    upstream.git(&["mv", "web/map.yaml", "web/other.yaml"]);
    upstream.write("web/kustomization.yaml", "resources: [other.yaml]\n");
    upstream.commit("renamed");
    update(&world, &[]).success().says(expect![[r#"
        localized the working tree: 5 files written, 0 references rewritten, 2 removed
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> renamed
            <2> two
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/localized-files :/over/localized-files
    "#]]);
    let web = "localized-files/github.com/acme/lib/main/web";
    assert!(!world.work.path().join(web).join("map.yaml").exists());
    assert!(world.work.path().join(web).join("other.yaml").exists());
    world.work.git(&["add", "--all"]);
    world.work.run(&["check"]).says(expect![[r#"
        checked 8 kustomizations with 10 references in the working tree: no problems found
    "#]]);
}

#[test]
fn a_remote_configuration_comes_with_its_files() {
    let world = World::new();
    let (plugin, patch) = ("https://files.example.com/plugin.yaml", "https://files.example.com/patch.yaml");
    let transformer = format!("apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: one\npath: {patch}\n");
    world.file(plugin, &transformer);
    world.file(patch, config_map("patch"));
    world.work.write("kustomization.yaml", format!("transformers:\n- {plugin}\n"));
    world.work.git(&["add", "--all"]);
    world.work.run(&["vendor"]).success();
    world.work.commit("localized");
    world.file(plugin, transformer.replace("one", "two"));
    update(&world, &[plugin]).success().says(expect![[r#"
        localized the working tree: 2 files written, 1 reference rewritten, 0 removed
          moved https://files.example.com/plugin.yaml <0> -> <1>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/localized-files
    "#]]);
    let stored = world.work.read("localized-files/files.example.com/plugin.yaml");
    assert_eq!(
        stored,
        transformer.replace("one", "two").replace(patch, "localized-files/files.example.com/patch.yaml")
    );
    world.work.git(&["add", "--all"]);
    world.work.run(&["check"]).success();
}

#[test]
fn a_reference_without_a_ref_is_updated_as_a_branch_is() {
    let world = world();
    let text = "resources:\n- https://github.com/acme/lib//web\n";
    world.work.write("pinned/kustomization.yaml", text);
    world.work.run(&["lock"]).success();
    move_branch(&world);
    update(&world, &[]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 5 remote references
          moved https://github.com/acme/lib <0> -> <1>
            … days old
            <1> two
          moved https://github.com/acme/lib?ref=main <0> -> <1>
            … days old
            <1> two
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    let upstream = upstream(&world);
    upstream.write("web/map.yaml", config_map("three"));
    upstream.commit("three");
    update(&world, &["https://github.com/acme/lib//web"]).success();
}
