//! The lock decides: what it holds is localized, whatever an exception says, and an entry changes for no other reason
//! than what it names.

use crate::support::{Kustomize, Output, Random, World, config_map, rows};

const LOCK: &str = "kustomize-localize.lock";
const CONFIG: &str = ".kustomize-localize";
const LIB: &str = "https://github.com/acme/lib//web?ref=v1";
const DEEP: &str = "https://github.com/acme/deep//app?ref=v1";

fn name(world: &World, urls: &[&str]) {
    let entries: String = urls.iter().map(|url| format!("- {url}\n")).collect();
    world.work.write("app/kustomization.yaml", format!("resources:\n{entries}"));
}

fn run(world: &World, args: &[&str]) -> Output {
    world.work.run(args)
}

/// Runs `branch` with the lock that is committed.
fn branch(world: &World) -> Output {
    world.work.run_as_is(&["branch", "--no-verify"])
}

/// Returns a repository that has locked `LIB`, and what that names.
fn locked() -> World {
    let world = World::acme();
    world.sandbox.builds();
    name(&world, &[LIB]);
    run(&world, &["lock"]).success();
    world.work.commit("locked");
    world
}

#[test]
fn an_exception_over_what_is_locked_waits_for_lock() {
    let world = locked();
    branch(&world).success();
    let base = world.work.id("HEAD");
    let first = base.clone();
    // A wide one, written by a person for something else.
    world.work.write(CONFIG, "allow:\n- {url: github.com/acme, refs: any, reason: ours}\n");
    world.work.commit("allow");
    let before = world.work.read(LOCK);
    run(&world, &["check"]).success();
    run(&world, &["check", "--base", &base]).success();
    branch(&world).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 1 file written, 0 references rewritten, 0 removed
          not verified: --no-verify
          to look at it: git show --stat <0>
    "#]]);
    assert!(!world.work.show("localized/main", "app/kustomization.yaml").contains("https:"));
    assert_eq!(world.work.read(LOCK), before);

    // The change that locks again is told of: by `lock`, by the gate, by `diff` and by the branch.
    let base = world.work.id("HEAD");
    run(&world, &["init", "--dry-run"]).success().says(expect![[r#"
        would write kustomize-localize.lock
          dropped https://github.com/acme/deep?ref=v1 <0>
          dropped https://github.com/acme/lib?ref=v1 <1>
          now remote: https://github.com/acme/lib//web?ref=v1 (allowed by .kustomize-localize:2)
        check would pass
        next: git kustomize-localize init
    "#]]);
    run(&world, &["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 0 remote references
          dropped https://github.com/acme/deep?ref=v1 <0>
          dropped https://github.com/acme/lib?ref=v1 <1>
          now remote: https://github.com/acme/lib//web?ref=v1 (allowed by .kustomize-localize:2)
          stays remote (allowed): https://github.com/acme/lib//web?ref=v1
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    let lock = world.work.read(LOCK);
    assert!(
        !lock.contains("remotes:") && lock.contains(&format!("left:\n  - url: {LIB}\n    reason: ours\n")),
        "{lock}"
    );
    world.work.commit("locked again");
    let gate = run(&world, &["check", "--base", &base]);
    gate.fails(1).says(expect![[r#"
        error[new-exception]: `https://github.com/acme/lib//web?ref=v1` was localized, and is now remote: .kustomize-localize:2 allows it
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: make the exception exact, or remove it, and lock again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock; or set `rules: {new-exception: warning}` in a separate change, and merge that first

        for more: git kustomize-localize explain new-exception
        checked 1 kustomization with 1 reference in the working tree: 1 error, 1 allowed
    "#]]);
    // Also where the exception comes in the same change.
    let gate = run(&world, &["check", "--base", &first]);
    gate.fails(1).says(expect![[r#"
        error[new-exception]: the change itself adds this exception for remote-reference at app/kustomization.yaml:2: `https://github.com/acme/lib//web?ref=v1`
         --> .kustomize-localize:2:3
          |
        2 | - {url: github.com/acme, refs: any, reason: ours}
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: add it to `allow` in .kustomize-localize, in a separate change, and merge that first; or set `rules: {new-exception: warning}` there

        error[new-exception]: `https://github.com/acme/lib//web?ref=v1` was localized, and is now remote: .kustomize-localize:2 allows it
         --> app/kustomization.yaml:2:3
          |
        2 | - https://github.com/acme/lib//web?ref=v1
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: make the exception exact, or remove it, and lock again: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock; or set `rules: {new-exception: warning}` in a separate change, and merge that first

        for more: git kustomize-localize explain new-exception
        new in the configuration: +allow:
        new in the configuration: +- {url: github.com/acme, refs: any, reason: ours}
        checked 1 kustomization with 1 reference in the working tree: 2 errors, 1 allowed
    "#]]);
    run(&world, &["diff", &base]).says(expect![[r#"
        app: not built: https://github.com/acme/lib//web?ref=v1 stays remote
        now remote: https://github.com/acme/lib//web?ref=v1 (allowed by .kustomize-localize:2)
        1 affected build could not be compared since <0>; unknown: 1 root
    "#]]);
    branch(&world).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 2 files written, 0 references rewritten, 6 removed
          dropped https://github.com/acme/deep?ref=v1 <1>
          dropped https://github.com/acme/lib?ref=v1 <2>
          now remote: https://github.com/acme/lib//web?ref=v1 (allowed by .kustomize-localize:2)
          not verified: --no-verify
          stays remote (allowed): https://github.com/acme/lib//web?ref=v1
          to look at it: git show --stat <0>
    "#]]);
    assert!(world.work.show("localized/main", "app/kustomization.yaml").contains(LIB));
    // Taken back, it is localized again.
    world.work.remove(CONFIG);
    run(&world, &["check"]).fails(1);
    run(&world, &["lock"]).success();
    assert_eq!(world.work.read(LOCK), before);
    // A comment waits, too.
    let text = world
        .work
        .read("app/kustomization.yaml")
        .replace(LIB, &format!("{LIB} # kustomize-localize: allow[remote-reference] ours"));
    world.work.write("app/kustomization.yaml", text);
    run(&world, &["check"]).success().says(expect![[r#"
        warning[stale-allow]: this is locked, so the comment has no effect
         --> app/kustomization.yaml:2:43
          |
        2 | - https://github.com/acme/lib//web?ref=v1 # kustomize-localize: allow[remote-reference] ours
          |                                           ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: to leave it remote, unless another reference needs it locked: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock; to keep it locked, remove the comment

        for more: git kustomize-localize explain stale-allow
        checked 1 kustomization with 1 reference in the working tree: 1 warning
    "#]]);
    run(&world, &["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 0 remote references
          dropped https://github.com/acme/deep?ref=v1 <0>
          dropped https://github.com/acme/lib?ref=v1 <1>
          now remote: https://github.com/acme/lib//web?ref=v1 (allowed by a comment)
          stays remote (allowed): https://github.com/acme/lib//web?ref=v1
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    run(&world, &["check"]).success().says(expect![[r#"
        checked 1 kustomization with 1 reference in the working tree: 1 allowed
    "#]]);
}

#[test]
fn a_comment_does_not_cover_what_another_upstream_names() {
    let world = World::acme();
    world.sandbox.builds();
    name(&world, &[LIB]);
    let comment = "kustomize-localize: allow[remote-reference] only here";
    world.work.write("trial/kustomization.yaml", format!("resources:\n- {DEEP} # {comment}\n"));
    world.work.git(&["add", "--all"]);
    run(&world, &["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 2 remote references
          added https://github.com/acme/deep?ref=v1 <0>
          added https://github.com/acme/lib?ref=v1 <1>
          to stage it: git add -f -- :/kustomize-localize.lock
        kustomize, Flux and Argo CD do not read the lock: deploy the result of `git kustomize-localize branch`
    "#]]);
    run(&world, &["check"]).success().says(expect![[r#"
        warning[stale-allow]: this is locked, so the comment has no effect
         --> trial/kustomization.yaml:2:44
          |
        2 | - https://github.com/acme/deep//app?ref=v1 # kustomize-localize: allow[remote-reference] only here
          |                                            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: to leave it remote, unless another reference needs it locked: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock; to keep it locked, remove the comment

        for more: git kustomize-localize explain stale-allow
        not tracked by git: 1 file that `branch` does not see: kustomize-localize.lock
        hint: git add -- :/kustomize-localize.lock && git commit
        checked 2 kustomizations with 2 references in the working tree: 1 warning
    "#]]);
}

#[test]
fn one_dead_ref_leaves_no_live_one_remote() {
    let world = World::acme();
    world.sandbox.builds();
    let urls = ["https://github.com/acme/lib?ref=nosuch", LIB, "https://github.com/acme/lib//other?ref=v1"];
    name(&world, &urls);
    run(&world, &["init"]).success().says(expect![[r#"
        wrote .kustomize-localize
        wrote kustomize-localize.lock
          added https://github.com/acme/deep?ref=v1 <0>
          added https://github.com/acme/lib?ref=v1 <1>
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib?ref=nosuch', reason: 'TODO'}
            https://github.com/acme/lib has no ref `nosuch`
        1 place to edit (stale-allow)
          .kustomize-localize:2: https://github.com/acme/lib?ref=nosuch
          help: replace `TODO` with the reason for this exception
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        next: git add -f -- :/.kustomize-localize :/app/kustomization.yaml :/kustomize-localize.lock && git commit -m 'Lock remote references'
    "#]]);
    world.work.commit("init");
    let base = world.work.id("HEAD");
    run(&world, &["check"]).success();
    branch(&world).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 10 files written, 3 references rewritten, 0 removed
          added https://github.com/acme/deep?ref=v1 <1>
          added https://github.com/acme/lib?ref=v1 <2>
          not verified: --no-verify
          stays remote (allowed): https://github.com/acme/lib?ref=nosuch
          1 warning (stale-allow 1)
          to look at it: git show --stat <0>
        warning[stale-allow]: `TODO` is a placeholder, not a reason
         --> .kustomize-localize:2:3
          |
        2 | - {url: 'https://github.com/acme/lib?ref=nosuch', reason: 'TODO'}
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: give reviewers the reason why it stays
    "#]]);
    let text = world.work.show("localized/main", "app/kustomization.yaml");
    assert_eq!(text.matches("https:").count(), 1, "{text}");
    // With a reason written, another branch of the same repository still does not pass.
    let config = world.work.read(CONFIG).replace("TODO", "gone upstream");
    world.work.write(CONFIG, config);
    name(&world, &[&urls[..], &["https://github.com/acme/lib?ref=some-branch"]].concat());
    world.work.commit("another branch");
    run(&world, &["check", "--base", &base]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://github.com/acme/lib?ref=some-branch` is neither localized nor locked
         --> app/kustomization.yaml:5:3
          |
        5 | - https://github.com/acme/lib?ref=some-branch
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[3]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        new in the configuration: -- {url: 'https://github.com/acme/lib?ref=nosuch', reason: 'TODO'}
        new in the configuration: +- {url: 'https://github.com/acme/lib?ref=nosuch', reason: 'gone upstream'}
        checked 1 kustomization with 4 references in the working tree: 1 error, 2 allowed
    "#]]);
    branch(&world).fails(1);
}

#[test]
fn what_a_merge_lost_is_found_and_mended() {
    let world = locked();
    let before = world.work.read(LOCK);
    let entry = before.find("  - url: https://github.com/acme/deep").unwrap();
    let end = before.find("  - url: https://github.com/acme/lib").unwrap();
    world.work.write(LOCK, format!("{}{}", &before[..entry], &before[end..]));
    world.work.commit("merged without a conflict");
    run(&world, &["check"])
        .fails(1).says(expect![[r#"
            error[remote-reference]: `https://github.com/acme/lib//web?ref=v1` is locked, but what is at https://github.com/acme/deep//app?ref=v1 behind it stays remote: https://github.com/acme/lib//web?ref=v1 > https://github.com/acme/deep//app?ref=v1
             --> app/kustomization.yaml:2:3
              |
            2 | - https://github.com/acme/lib//web?ref=v1
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock

            for more: git kustomize-localize explain remote-reference
            checked 1 kustomization with 1 reference in the working tree: 1 error
        "#]]);
    branch(&world).fails(1);
    run(&world, &["lock"]).success().says(expect![[r#"
        wrote kustomize-localize.lock: 2 remote references
          added https://github.com/acme/deep?ref=v1 <0>
          to stage it: git add -f -- :/kustomize-localize.lock
    "#]]);
    assert_eq!(world.work.read(LOCK), before);
}

#[test]
fn what_is_an_error_stops_the_branch_and_vendor_mends_it() {
    for (rule, names) in [("stale-lock", "[map.yaml]"), ("locked-reference", &format!("[map.yaml, '{LIB}']"))] {
        let world = locked();
        world.work.write("app/kustomization.yaml", format!("resources: {names}\n"));
        world.work.write("app/map.yaml", config_map("own"));
        for (severity, status) in [("warning", 0), ("error", 1)] {
            world.work.write(CONFIG, format!("rules: {{{rule}: {severity}}}\n"));
            world.work.commit(severity);
            assert_eq!(run(&world, &["check", "--rev", "HEAD"]).status, status, "{rule}: {severity}");
            let made = branch(&world);
            assert_eq!(made.status, status, "{rule}: {severity}: {made:?}");
            made.stderr_has(&format!("{severity}[{rule}]"));
        }
        run(&world, &["vendor", "--no-verify"]).success();
        world.work.commit("vendored");
        run(&world, &["check", "--rev", "HEAD"]).success().lacks(&format!("[{rule}]"));
        branch(&world).success();
    }
}

/// Roots that do not build: one that localizing changes, and one that it does not.
#[test]
fn what_does_not_build_is_judged_as_the_gate_does() {
    if Kustomize::find().is_none() {
        return;
    }
    for name in [LIB, "map.yaml"] {
        let world = World::acme();
        world.sandbox.builds();
        world.work.write("app/map.yaml", config_map("own"));
        world.work.write("app/kustomization.yaml", format!("resources: ['{name}']\npatches: [{{path: gone.yaml}}]\n"));
        world.work.write("app/gone.yaml", config_map("gone"));
        world.work.write("other/kustomization.yaml", format!("resources: ['{DEEP}']\n"));
        run(&world, &["lock"]).success();
        // What the record says of it does not lower it.
        for (severity, status) in [("warning", 0), ("error", 1), ("off", 0)] {
            world.work.write(CONFIG, format!("rules: {{not-built: {severity}}}\n"));
            world.work.commit(severity);
            let gate = run(&world, &["check", "--build", "--rev", "HEAD"]);
            let tip = || world.work.git(&["for-each-ref", "refs/heads/localized"]);
            let before = tip();
            let made = world.work.run_as_is(&["branch"]);
            assert_eq!((gate.status, made.status), (status, status), "{name} {severity}: {gate:?} {made:?}");
            assert_eq!(gate.stdout.contains("not-built]"), severity != "off", "{gate:?}");
            assert_eq!(made.stderr.contains("error[not-built]: not built: "), status == 1, "{made:?}");
            assert_eq!(tip() == before, status == 1, "{name} {severity}");
        }
    }
}

/// Whether the lines of a text are among those of another one, in their order.
fn is_within(old: &str, new: &str) -> bool {
    let mut new = new.lines();
    old.lines().all(|line| new.any(|other| other == line))
}

#[test]
fn an_added_reference_adds_lines_and_changes_none() {
    let world = World::acme();
    world.sandbox.builds();
    world.upstream_of("acme/top", &[("x/kustomization.yaml", &format!("resources: ['{LIB}']\n"))]);
    let all = [
        LIB,
        DEEP,
        "https://github.com/acme/lib//other?ref=v1",
        "https://github.com/acme/top//x?ref=v1",
        "https://files.example.com/v1/app.yaml",
        "https://github.com/acme/gone?ref=v1",
    ];
    world.work.write(CONFIG, "allow:\n- {url: 'https://github.com/acme/gone?ref=v1', reason: gone}\n");
    for seed in 0..3 {
        let mut random = Random::of(&seed.to_string());
        let mut rest = all.to_vec();
        let (mut named, mut locks) = (Vec::new(), vec!["version: 1\n".to_owned()]);
        while !rest.is_empty() {
            named.push(rest.remove(random.below(rest.len())));
            name(&world, &named);
            run(&world, &["lock"]).success();
            let lock = world.work.read(LOCK);
            let last = locks.last().unwrap();
            assert!(is_within(last, &lock), "{named:?}\n{last}\n{lock}");
            locks.push(lock);
        }
        // And back: a removed reference takes lines out, and changes none.
        while named.pop().is_some() && !named.is_empty() {
            locks.pop();
            name(&world, &named);
            run(&world, &["lock"]).success();
            assert_eq!(&world.work.read(LOCK), locks.last().unwrap(), "{named:?}");
        }
        world.work.remove(LOCK);
    }
}

/// Repositories that name each other, some of them dead or down; exceptions of every kind; one or more runs of `init`.
#[test]
fn in_random_worlds_what_the_lock_holds_is_localized() {
    for seed in rows(0..6, 2) {
        random_world(&mut Random::of(&seed.to_string()), seed);
    }
}

fn random_world(random: &mut Random, seed: u64) {
    let world = World::new();
    world.sandbox.builds();
    let url =
        |name: usize, path: &str, reference: &str| format!("https://github.com/acme/r{name}//{path}?ref={reference}");
    // Each names only those after it.
    for number in (0..4).rev() {
        let names = |random: &mut Random| match number {
            3 => String::new(),
            _ => {
                let other = number + 1 + random.below(3 - number);
                let reference = ["v1", "v1", "v1", "gone"][random.below(4)];
                format!("- {}\n", url(other, ["a", "b"][random.below(2)], reference))
            }
        };
        let [a, b] = [names(random), names(random)].map(|more| format!("resources:\n- map.yaml\n{more}"));
        let map = config_map(&format!("r{number}"));
        let files =
            [("a/kustomization.yaml", &*a), ("a/map.yaml", &map), ("b/kustomization.yaml", &b), ("b/map.yaml", &map)];
        world.upstream_of(&format!("acme/r{number}"), &files);
    }
    let mut named = Vec::new();
    for root in 0..4 {
        let mut text = "resources:\n- map.yaml\n".to_owned();
        for _ in 0..=random.below(2) {
            let reference = ["v1", "v1", "nosuch"][random.below(3)];
            let url = url(random.below(4), ["a", "b", "nowhere"][random.below(3)], reference);
            let comment = if random.below(6) == 0 { " # kustomize-localize: allow[remote-reference] ours" } else { "" };
            if !text.contains(&url) {
                text += &format!("- {url}{comment}\n");
                named.push(url);
            }
        }
        world.work.write(&format!("root{root}/map.yaml"), config_map(&format!("root{root}")));
        world.work.write(&format!("root{root}/kustomization.yaml"), text);
    }
    if random.below(2) == 0 {
        let url = &named[random.below(named.len())];
        let entry = match random.below(3) {
            0 => "{url: github.com/acme/r2, refs: any, reason: ours}".to_owned(),
            1 => "{url: github.com/acme/r3, refs: tag, reason: ours}".to_owned(),
            _ => format!("{{url: '{url}', reason: ours}}"),
        };
        world.work.write(CONFIG, format!("allow:\n- {entry}\n"));
    }
    world.work.commit("first");
    let first = run(&world, &["init"]);
    let written = |name: &str| std::fs::read_to_string(world.work.path().join(name)).unwrap_or_default();
    let files = [LOCK, CONFIG].map(written);
    let again = run(&world, &["init"]);
    assert_eq!([LOCK, CONFIG].map(written), files, "{seed}: {first:?} {again:?}");
    world.work.git(&["add", "--all"]);
    world.work.git(&["commit", "-q", "--allow-empty", "-m", "init"]);
    let check = run(&world, &["check", "--rev", "HEAD"]);
    let branch = self::branch(&world);
    assert_eq!(check.status, branch.status, "{seed}: {check:?} {branch:?}");
    assert_eq!(check.status, again.status, "{seed}: {again:?} {check:?}");
    let lock = files[0].clone();
    let (remotes, left) = lock.split_once("left:\n").unwrap_or((&lock, ""));
    for line in left.lines().filter_map(|line| line.trim_start().strip_prefix("- url: ")) {
        let (repository, rest) = line.split_once("//").map(|_| line.rsplit_once("//").unwrap()).unwrap();
        let (path, reference) = rest.split_once("?ref=").unwrap();
        let entry = format!("  - url: {repository}\n    ref: {reference}\n");
        let held = remotes.split_once(&entry).map(|(_, entry)| entry.split("\n  - url:").next().unwrap_or_default());
        let is_held = held.is_some_and(|entry| entry.contains(&format!("\n      {path}:")));
        assert!(!is_held, "{seed}: {line} is in both\n{lock}");
    }
    if branch.status != 0 {
        return;
    }
    let is_left = |url: &str| left.contains(&format!("- url: {url}\n"));
    for root in 0..4 {
        let text = world.work.show("localized/main", &format!("root{root}/kustomization.yaml"));
        for line in text.lines().filter(|line| line.contains("https:")) {
            let url = line.trim_start_matches("- ").split(" #").next().unwrap();
            assert!(is_left(url), "{seed}: {url} stays remote\n{lock}");
        }
    }
    run(&world, &["verify", "localized/main"]).success();
}
