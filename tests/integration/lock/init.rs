//! `init`: what is locked, allowed and configured, and what is left for people.

use crate::support::{Output, Reply, Running, Transcript, World, config_map};

const LOCK: &str = "kustomize-localize.lock";
const CONFIG: &str = ".kustomize-localize";
const LIB: &str = "https://github.com/acme/lib";

fn world(files: &[(&str, &str)]) -> World {
    let world = World::acme();
    world.sandbox.offer_itself();
    world.commit(files);
    world
}

fn init(world: &World, args: &[&str]) -> Output {
    world.work.run_as_is(&[&["init"], args].concat())
}

/// Returns the configuration and the lock; empty where there is none.
fn written(world: &World) -> [String; 2] {
    [CONFIG, LOCK].map(|name| std::fs::read_to_string(world.work.path().join(name)).unwrap_or_default())
}

/// Asserts that running it again writes nothing, and says the same of what must be edited.
#[track_caller]
fn again(world: &World, first: &Output) {
    let before = written(world);
    let second = world.work.run_as_is(&["init"]);
    second.stdout_has("nothing to write: ");
    assert_eq!(second.status, first.status);
    assert_eq!(written(world), before);
    let list = |output: &Output| {
        let start = output.stdout.find(" to edit (").and_then(|at| output.stdout[..at].rfind('\n'));
        // How long it took to be refused differs.
        let is_word = |word: &&str| !word.bytes().all(|byte| byte.is_ascii_digit());
        start.map(|at| output.stdout[at..].split(' ').filter(is_word).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(list(&second), list(first));
}

/// Runs the command that is printed as the next one.
#[track_caller]
fn next(world: &World, output: &Output) -> Output {
    let (_, command) = output.stdout.trim_end().rsplit_once("next: ").unwrap();
    let mut shell = world.sandbox.command("sh", world.work.path());
    Running::start(shell.args(["-c", command])).wait()
}

#[test]
fn live_references_are_locked_and_the_next_commands_make_the_branch() {
    let world = world(&[
        ("base/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n"),
        ("app/kustomization.yaml", "resources: [../base, 'https://files.example.com/v1/app.yaml']\n"),
    ]);
    init(&world, &["--dry-run"]).success().says(expect![[r#"
        would write kustomize-localize.lock
          added https://files.example.com/v1/app.yaml <0>
          added https://github.com/acme/deep?ref=v1 <1>
          added https://github.com/acme/lib?ref=v1 <2>
        check would pass
        next: git kustomize-localize init
    "#]]);
    assert_eq!(written(&world), ["", ""]);
    let first = init(&world, &[]);
    first.success().says(expect![[r#"
        wrote kustomize-localize.lock
          added https://files.example.com/v1/app.yaml <0>
          added https://github.com/acme/deep?ref=v1 <1>
          added https://github.com/acme/lib?ref=v1 <2>
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        next: git add -f -- :/kustomize-localize.lock && git commit -m 'Lock remote references'
    "#]]);
    assert!(!world.work.path().join(CONFIG).exists());
    again(&world, &first);
    next(&world, &first).success();
    world.work.run_as_is(&["check"]).success();
    let status = world.work.run_as_is(&["status"]);
    status.success().says(expect![[r#"
        2 kustomizations, 2 remote references (2 locked)
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        branch localized/main: missing
        next: git kustomize-localize branch --no-verify
    "#]]);
    next(&world, &status).success();
    world.work.run_as_is(&["status"]).success().says(expect![[r#"
        2 kustomizations, 2 remote references (2 locked)
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        branch localized/main: up to date
        nothing to do
    "#]]);
}

#[test]
fn check_does_not_pass_while_git_ignores_what_was_written() {
    let reference = format!("resources: ['{LIB}//web?ref=v1', '{LIB}?ref=nosuch']\n");
    let world = world(&[(".gitignore", "*.lock\n.*\n"), ("app/kustomization.yaml", &reference)]);
    let first = init(&world, &[]);
    first.fails(1).says(expect![[r#"
        wrote .kustomize-localize
        wrote kustomize-localize.lock
          added https://github.com/acme/deep?ref=v1 <0>
          added https://github.com/acme/lib?ref=v1 <1>
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib?ref=nosuch', reason: 'TODO'}
            https://github.com/acme/lib has no ref `nosuch`
        1 place to edit (stale-allow)
          .kustomize-localize:2: https://github.com/acme/lib?ref=nosuch
          help: replace `TODO` with the reason for this exception
        git ignores .kustomize-localize, so check does not see it
        git ignores kustomize-localize.lock, so check does not see it
        next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock
    "#]]);
    init(&world, &[]).fails(1).says(expect![[r#"
        nothing to write: 1 locked, 1 allowed
        1 place to edit (stale-allow)
          .kustomize-localize:2: https://github.com/acme/lib?ref=nosuch
          help: replace `TODO` with the reason for this exception
        git ignores .kustomize-localize, so check does not see it
        git ignores kustomize-localize.lock, so check does not see it
        next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock
    "#]]);
    next(&world, &first).success();
    init(&world, &[]).success().says(expect![[r#"
        nothing to write: 1 locked, 1 allowed
        1 place to edit (stale-allow)
          .kustomize-localize:2: https://github.com/acme/lib?ref=nosuch
          help: replace `TODO` with the reason for this exception
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock && git commit -m 'Lock remote references'
    "#]]);
    world.work.run_as_is(&["check"]).success();
}

#[test]
fn a_dead_ref_leaves_its_neighbours_localized() {
    let reference = |rest: &str| format!("resources: ['{LIB}{rest}']\n");
    let world = world(&[
        ("a/kustomization.yaml", &reference("?ref=nosuch")),
        ("b/kustomization.yaml", &reference("//other?ref=v1")),
        ("c/kustomization.yaml", &reference("//web?ref=v1")),
    ]);
    let first = init(&world, &[]);
    first.success().says(expect![[r#"
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
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock && git commit -m 'Lock remote references'
    "#]]);
    let [config, _] = written(&world);
    assert_eq!(config.matches("- {").count(), 1, "{config}");
    assert!(config.contains("ref=nosuch") && !config.contains("refs:"), "{config}");
    again(&world, &first);
    next(&world, &first).success();
    world.work.run_as_is(&["check"]).success().says(expect![[r#"
        warning[stale-allow]: `TODO` is a placeholder, not a reason
         --> .kustomize-localize:2:3
          |
        2 | - {url: 'https://github.com/acme/lib?ref=nosuch', reason: 'TODO'}
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: give reviewers the reason why it stays

        for more: git kustomize-localize explain stale-allow
        checked 3 kustomizations with 3 references in the working tree: 1 warning, 2 allowed
    "#]]);
    world.work.run_as_is(&["branch"]).success().says(expect![[r#"
        localized the repository on branch localized/main (<0>): 12 files written, 3 references rewritten, 0 removed
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
    let branch = |root: &str| world.work.show("localized/main", &format!("{root}/kustomization.yaml"));
    assert_eq!(branch("a"), reference("?ref=nosuch"));
    for live in ["b", "c"] {
        assert!(branch(live).contains("localized-files/github.com/acme/lib/v1/"), "{}", branch(live));
    }
    // A new reference to the same repository is not covered.
    world.work.write("d/kustomization.yaml", reference("?ref=other"));
    world.work.run_as_is(&["check"]).fails(1).says(expect![[r#"
        warning[stale-allow]: `TODO` is a placeholder, not a reason
         --> .kustomize-localize:2:3
          |
        2 | - {url: 'https://github.com/acme/lib?ref=nosuch', reason: 'TODO'}
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: give reviewers the reason why it stays

        error[remote-reference]: `https://github.com/acme/lib?ref=other` is neither localized nor locked
         --> d/kustomization.yaml:1:13
          |
        1 | resources: ['https://github.com/acme/lib?ref=other']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/d

        for more: git kustomize-localize explain remote-reference stale-allow
        not tracked by git: 1 file that `branch` does not see: d/kustomization.yaml
        hint: git add -- :/d && git commit
        checked 4 kustomizations with 4 references in the working tree: 1 error, 1 warning, 2 allowed
    "#]]);
}

#[test]
fn only_what_git_does_not_find_is_gone() {
    let url = "https://git.example.com/acme/bases//web?ref=v1";
    let world = world(&[("app/kustomization.yaml", &format!("resources: ['{url}']\n"))]);
    world.upstream_of("served/acme/bases", &[("web/kustomization.yaml", "namePrefix: a-\n")]);
    world.server.serve_git("https://git.example.com/", &world.sandbox.path("upstream/served"));
    let refs = "https://git.example.com/acme/bases/info/refs?service=git-upload-pack";
    let pack = "https://git.example.com/acme/bases/git-upload-pack";
    // A server does not have the file of that name in any of these.
    let breaks_off = Reply::ok("0011unpack err").header("Content-Type", "application/x-git-upload-pack-result");
    let login = Reply::status(401).header("WWW-Authenticate", "Basic realm=x");
    for (asked, reply) in [(refs, login), (refs, Reply::status(403)), (refs, Reply::status(418)), (pack, breaks_off)] {
        world.server.route(asked, reply.clone());
        let output = init(&world, &[]);
        output
            .fails(1)
            .stdout_has("1 reference could not be locked")
            .stdout_has(&format!("- {{url: '{url}', reason: 'TODO'}}"));
        assert_eq!(written(&world), ["", ""], "{reply:?}");
        world.server.unroute(asked);
    }
    world.server.route(refs, Reply::status(404));
    init(&world, &[]).success().says(expect![[r#"
        wrote .kustomize-localize
        wrote kustomize-localize.lock
          .kustomize-localize: allow: {url: 'https://git.example.com/acme/bases//web?ref=v1', reason: 'TODO'}
            could not fetch https://git.example.com/acme/bases: repository 'https://git.example.com/acme/bases/' not found
        1 place to edit (stale-allow)
          .kustomize-localize:2: https://git.example.com/acme/bases//web?ref=v1
          help: replace `TODO` with the reason for this exception
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock && git commit -m 'Allow remote references'
    "#]]);
    assert!(written(&world)[0].contains(url));
    world.server.unroute(refs);
    world.work.write(CONFIG, "");
    init(&world, &[]).success().says(expect![[r#"
        wrote kustomize-localize.lock
          added https://git.example.com/acme/bases?ref=v1 <0>
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock && git commit -m 'Lock remote references'
    "#]]);
}

#[test]
fn what_an_upstream_does_wrong_is_for_people() {
    let world = world(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/broken//web?ref=v1']\n")]);
    world.upstream_of("acme/broken", &[("web/kustomization.yaml", "resources: [\n")]);
    init(&world, &[])
        .fails(1).says(expect![[r#"
            nothing to write: 0 locked, 0 allowed
            1 reference could not be locked
              app/kustomization.yaml:1: https://github.com/acme/broken?ref=v1: web/kustomization.yaml:1:12: not valid YAML: unclosed bracket '['
              help: correct it, or allow it, below `allow:` in a new file .kustomize-localize: - {url: 'https://github.com/acme/broken//web?ref=v1', reason: 'TODO'}
            after that: git kustomize-localize init
        "#]]);
    assert_eq!(written(&world), ["", ""]);
}

#[test]
fn what_no_entry_can_name_is_left_by_a_comment() {
    let url = "https://files.example.com/api/files/a%2Fb.yaml/raw";
    let text = |comment: &str| format!("configMapGenerator:\n- name: a\n  files:\n{comment}  - {url}\n");
    let world = world(&[("app/kustomization.yaml", &text(""))]);
    world.server.route(url, Reply::status(404));
    let output = init(&world, &[]);
    let (_, rest) = output.fails(1).stdout.split_once("help: to leave it remote, write above it: ").unwrap();
    let comment = rest.lines().next().unwrap();
    assert_eq!(written(&world), ["", ""]);
    world.work.write(CONFIG, format!("allow:\n- {{url: '{url}', reason: gone}}\n"));
    init(&world, &[]).fails(2).says(expect![[r#"
        error: .kustomize-localize:2:1: allow: the entry for `https://files.example.com/api/files/a%2Fb.yaml/raw` contains `a%2Fb.yaml`, which is not allowed in a URL
          hint: write a comment above the reference instead: # kustomize-localize: allow[remote-reference] TODO
    "#]]);
    world.work.write(CONFIG, "");
    world.work.write("app/kustomization.yaml", text(&format!("  {comment}\n").replace("TODO", "gone upstream")));
    init(&world, &[]).success();
}

#[test]
fn what_is_probably_misspelled_is_to_edit() {
    let world = world(&[(
        "app/kustomization.yaml",
        "resources:\n- https://github.com/acme/lib/tree/v1/web\n- https://github.com/acme/lib//wep?ref=v1\n\
         - https://github.com/acme/lib//web?ref=abcdef1\n",
    )]);
    init(&world, &[]).fails(1).says(expect![[r#"
        nothing to write: 0 locked, 0 allowed
        3 references could not be locked
          app/kustomization.yaml:3: `https://github.com/acme/lib//wep?ref=v1`: there is no directory `wep` in https://github.com/acme/lib at <0>
          help: did you mean `web`?
          help: or allow it, below `allow:` in a new file .kustomize-localize: - {url: 'https://github.com/acme/lib//wep?ref=v1', reason: 'TODO'}
          app/kustomization.yaml:2: `https://github.com/acme/lib/tree/v1/web`: there is no directory `tree/v1/web` in https://github.com/acme/lib at <0>
          help: this is a web page; write https://github.com/acme/lib//web?ref=v1
          help: or allow it, below `allow:` in a new file .kustomize-localize: - {url: 'https://github.com/acme/lib//tree/v1/web', reason: 'TODO'}
          app/kustomization.yaml:4: https://github.com/acme/lib has no ref `abcdef1`, and a short commit id cannot be fetched
          help: write the commit id in full, 40 digits
          help: or allow it, below `allow:` in a new file .kustomize-localize: - {url: 'https://github.com/acme/lib//web?ref=abcdef1', reason: 'TODO'}
        after that: git kustomize-localize init
    "#]]);
    assert_eq!(written(&world), ["", ""]);
    // Nobody here can correct an upstream.
    world.upstream_of(
        "acme/behind",
        &[("web/kustomization.yaml", "resources: ['https://github.com/acme/lib/tree/v1/web']\n")],
    );
    world.commit(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/behind//web?ref=v1']\n")]);
    init(&world, &[])
        .success().says(expect![[r#"
            wrote .kustomize-localize
            wrote kustomize-localize.lock
              added https://github.com/acme/behind?ref=v1 <0>
              .kustomize-localize: allow: {url: 'https://github.com/acme/lib//tree/v1/web', reason: 'TODO'}
                `https://github.com/acme/lib/tree/v1/web`: there is no directory `tree/v1/web` in https://github.com/acme/lib at <1>
            1 place to edit (stale-allow)
              .kustomize-localize:2: https://github.com/acme/lib//tree/v1/web
              help: replace `TODO` with the reason for this exception
            check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
            builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
            next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock && git commit -m 'Lock remote references'
        "#]]);
}

#[test]
fn a_variable_in_a_reference_leaves_the_others() {
    let variable = "https://github.com/acme/lib//web?ref=${VERSION}";
    let world = world(&[
        ("a/kustomization.yaml", &format!("resources:\n- {LIB}//other?ref=v1\n- {variable}\n")),
        ("b/kustomization.yaml", "resources:\n{{- range .all }}\n- {{ . }}\n{{- end }}\n"),
        ("b/live/kustomization.yaml", &format!("resources: ['{LIB}//other?ref=v1']\n")),
    ]);
    let first = init(&world, &[]);
    first.fails(1).says(expect![[r#"
        wrote .kustomize-localize
        wrote kustomize-localize.lock
          added https://github.com/acme/lib?ref=v1 <0>
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib//web?ref=${VERSION}', reason: 'TODO'}
            https://github.com/acme/lib has no ref `${VERSION}`
        1 place to edit (invalid-kustomization)
          b/kustomization.yaml:2: not valid YAML: "-" is only valid inside a block
          help: if it is a template, list its directory below `exclude:` in .kustomize-localize
        1 place to edit (stale-allow)
          .kustomize-localize:2: https://github.com/acme/lib//web?ref=${VERSION}
          help: replace `TODO` with the reason for this exception
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        after that: git kustomize-localize init
    "#]]);
    again(&world, &first);
    world.work.write("b/live/kustomization.yaml", "resources: ['https://evil.example/x.yaml']\n");
    world.work.run_as_is(&["check"]).fails(1).says(expect![[r#"
        warning[stale-allow]: `TODO` is a placeholder, not a reason
         --> .kustomize-localize:2:3
          |
        2 | - {url: 'https://github.com/acme/lib//web?ref=${VERSION}', reason: 'TODO'}
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: give reviewers the reason why it stays

        error[invalid-kustomization]: not valid YAML: "-" is only valid inside a block
         --> b/kustomization.yaml:2:3
          |
        2 | {{- range .all }}
          |   ^^^^^^^^^^^^^^^
          = help: if it is a template, list its directory below `exclude:` in .kustomize-localize

        error[remote-reference]: `https://evil.example/x.yaml` is neither localized nor locked
         --> b/live/kustomization.yaml:1:13
          |
        1 | resources: ['https://evil.example/x.yaml']
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/b/live

        for more: git kustomize-localize explain remote-reference invalid-kustomization stale-allow
        not tracked by git: 2 files that `branch` does not see: .kustomize-localize, kustomize-localize.lock
        hint: git add -- :/.kustomize-localize :/kustomize-localize.lock && git commit
        checked 3 kustomizations with 3 references in the working tree: 2 errors, 1 warning, 2 allowed
    "#]]);
}

#[test]
fn each_exception_has_its_cause() {
    let world = world(&[(
        "app/kustomization.yaml",
        "resources:\n- https://github.com/acme/lib//web?ref=v9\n- https://github.com/acme/lib//none?ref=v1\n\
         - https://github.com/acme/none?ref=v1\n- https://files.example.com/gone.yaml\n",
    )]);
    world.server.route("https://files.example.com/gone.yaml", Reply::status(404));
    init(&world, &["--dry-run"]).success().says(expect![[r#"
        would write .kustomize-localize
        would write kustomize-localize.lock
          .kustomize-localize: allow: {url: 'https://files.example.com/gone.yaml', reason: 'TODO'}
            cannot fetch https://files.example.com/gone.yaml: files.example.com answered 404 Not Found
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib//none?ref=v1', reason: 'TODO'}
            `https://github.com/acme/lib//none?ref=v1`: there is no directory `none` in https://github.com/acme/lib at <0>
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib//web?ref=v9', reason: 'TODO'}
            https://github.com/acme/lib has no ref `v9`
          .kustomize-localize: allow: {url: 'https://github.com/acme/none?ref=v1', reason: 'TODO'}
            cannot fetch https://github.com/acme/none?ref=v1: github.com answered 404 Not Found; as a git repository: could not fetch https://github.com/acme/none: '/home/me/upstream/acme/none' does not appear to be a git repository
        4 places to edit (stale-allow)
          .kustomize-localize:2: https://files.example.com/gone.yaml
          .kustomize-localize:3: https://github.com/acme/lib//none?ref=v1
          .kustomize-localize:4: https://github.com/acme/lib//web?ref=v9
          .kustomize-localize:5: https://github.com/acme/none?ref=v1
          help: replace `TODO` with the reason for this exception
        check would pass
        next: git kustomize-localize init
    "#]]);
    assert_eq!(written(&world), ["", ""]);
    init(&world, &[]).success().says(expect![[r#"
        wrote .kustomize-localize
        wrote kustomize-localize.lock
          .kustomize-localize: allow: {url: 'https://files.example.com/gone.yaml', reason: 'TODO'}
            cannot fetch https://files.example.com/gone.yaml: files.example.com answered 404 Not Found
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib//none?ref=v1', reason: 'TODO'}
            `https://github.com/acme/lib//none?ref=v1`: there is no directory `none` in https://github.com/acme/lib at <0>
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib//web?ref=v9', reason: 'TODO'}
            https://github.com/acme/lib has no ref `v9`
          .kustomize-localize: allow: {url: 'https://github.com/acme/none?ref=v1', reason: 'TODO'}
            cannot fetch https://github.com/acme/none?ref=v1: github.com answered 404 Not Found; as a git repository: could not fetch https://github.com/acme/none: '/home/me/upstream/acme/none' does not appear to be a git repository
        4 places to edit (stale-allow)
          .kustomize-localize:2: https://files.example.com/gone.yaml
          .kustomize-localize:3: https://github.com/acme/lib//none?ref=v1
          .kustomize-localize:4: https://github.com/acme/lib//web?ref=v9
          .kustomize-localize:5: https://github.com/acme/none?ref=v1
          help: replace `TODO` with the reason for this exception
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        next: git add -f -- :/.kustomize-localize :/kustomize-localize.lock && git commit -m 'Allow remote references'
    "#]]);
    let json = init(&world, &["--format", "json"]);
    json.success().stdout_has("\"configuration\": []");
    std::fs::remove_file(world.work.path().join(CONFIG)).unwrap();
    init(&world, &["--format", "json"])
        .success()
        .stdout_has("\"cause\": \"https://github.com/acme/lib has no ref `v9`\"");
}

#[test]
fn an_outage_is_named_and_allowed_by_nothing() {
    let world = world(&[(
        "app/kustomization.yaml",
        "resources:\n- https://127.0.0.1:1/acme/lib//web?ref=v1\n- https://files.example.com/away.yaml\n\
         - https://github.com/acme/none//x?ref=v1\n- https://files.example.com/gone.yaml\n\
         - https://files.example.com/private.yaml\n- https://files.example.com/forbidden.yaml\n",
    )]);
    world.server.route("https://files.example.com/away.yaml", Reply::status(503));
    world.server.route("https://files.example.com/gone.yaml", Reply::status(404));
    world.server.route("https://files.example.com/private.yaml", Reply::status(401));
    world.server.route("https://files.example.com/forbidden.yaml", Reply::status(403));
    let first = init(&world, &[]);
    first
        .fails(1)
        .says(expect![[r#"
            wrote .kustomize-localize
              .kustomize-localize: allow: {url: 'https://files.example.com/gone.yaml', reason: 'TODO'}
                cannot fetch https://files.example.com/gone.yaml: files.example.com answered 404 Not Found
              .kustomize-localize: allow: {url: 'https://github.com/acme/none//x?ref=v1', reason: 'TODO'}
                could not fetch https://github.com/acme/none: '/home/me/upstream/acme/none' does not appear to be a git repository
            4 references could not be locked
              app/kustomization.yaml:7: cannot fetch https://files.example.com/forbidden.yaml: files.example.com answered 403 Forbidden
              help: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
              help: or allow it, below `allow:` in .kustomize-localize: - {url: 'https://files.example.com/forbidden.yaml', reason: 'TODO'}
              app/kustomization.yaml:6: cannot fetch https://files.example.com/private.yaml: files.example.com answered 401 Unauthorized
              help: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
              help: or allow it, below `allow:` in .kustomize-localize: - {url: 'https://files.example.com/private.yaml', reason: 'TODO'}
              app/kustomization.yaml:2: could not fetch https://127.0.0.1:…/acme/lib: Failed to connect to 127.0.0.1
              help: check the host's name, the network and the proxy (`https_proxy`)
              help: or allow it, below `allow:` in .kustomize-localize: - {url: 'https://127.0.0.1:…/acme/lib//web?ref=v1', reason: 'TODO'}
              app/kustomization.yaml:3: cannot fetch https://files.example.com/away.yaml: files.example.com answered 503 Service Unavailable
              help: try again later
              help: or allow it, below `allow:` in .kustomize-localize: - {url: 'https://files.example.com/away.yaml', reason: 'TODO'}
            2 places to edit (stale-allow)
              .kustomize-localize:2: https://files.example.com/gone.yaml
              .kustomize-localize:3: https://github.com/acme/none//x?ref=v1
              help: replace `TODO` with the reason for this exception
            after that: git kustomize-localize init
        "#]]);
    let [config, _] = written(&world);
    assert_eq!(config.matches("reason: 'TODO'").count(), 2, "{config}");
    assert!(config.contains("acme/none") && config.contains("gone.yaml"), "{config}");
    assert!(!config.contains("127.0.0.1") && !config.contains("away"), "{config}");
    // What needs a login is not gone. Whoever wants it remote all the same writes that.
    assert!(!config.contains("private") && !config.contains("forbidden"), "{config}");
    // So does who never reaches the server from here.
    world.work.run_as_is(&["lock"]).fails(1).says(expect![[r#"
        nothing was written
          2 upstreams stay remote (allowed): `-v` shows each
        error: app/kustomization.yaml:2:3: resources[0]: could not fetch https://127.0.0.1:…/acme/lib: Failed to connect to 127.0.0.1
          hint: check the host's name, the network and the proxy (`https_proxy`)
        error: app/kustomization.yaml:3:3: resources[1]: cannot fetch https://files.example.com/away.yaml: files.example.com answered 503 Service Unavailable
          hint: try again later
        error: app/kustomization.yaml:6:3: resources[4]: cannot fetch https://files.example.com/private.yaml: files.example.com answered 401 Unauthorized
          hint: check the URL; if it needs a login, store one in git's credential helper: git credential approve; it is sent only to the host of the URL, and not over plain http
        error: app/kustomization.yaml:7:3: resources[5]: cannot fetch https://files.example.com/forbidden.yaml: files.example.com answered 403 Forbidden
          hint: check the URL; if it needs a login, set a credential helper for its host, whose login is sent at once: git config --global credential.https://HOST.helper HELPER; it is sent only to hosts that your own files name, and not over plain http
        hint: to leave it remote, add to `allow` in `.kustomize-localize`:
          - {url: 'https://files.example.com/forbidden.yaml', reason: 'TODO'}
          - {url: 'https://files.example.com/private.yaml', reason: 'TODO'}
        error: 4 references could not be locked
    "#]]);
    again(&world, &first);
}

#[test]
fn templates_that_nothing_names_are_left_out() {
    let template = "resources:\n{{- range .all }}\n- {{ . }}\n{{- end }}\n";
    let world = world(&[
        ("app/kustomization.yaml", "resources: [../named]\n"),
        ("named/kustomization.yaml", template),
        ("templates/a/kustomization.yaml", template),
        ("templates/b/kustomization.yaml", template),
        ("{{cookie.name}}/base/kustomization.yaml", "resources: [gone.yaml]\n"),
    ]);
    let first = init(&world, &[]);
    // What `exclude` does not mend is for people.
    first.fails(1).says(expect![[r#"
        wrote .kustomize-localize
          .kustomize-localize: exclude: templates/a
          .kustomize-localize: exclude: templates/b
          .kustomize-localize: exclude: '[{][{]cookie.name[}][}]/base'
        1 place to edit (invalid-kustomization)
          named/kustomization.yaml:2: not valid YAML: "-" is only valid inside a block
          help: if it is a template, list its directory below `exclude:` in .kustomize-localize
        after that: git kustomize-localize init
    "#]]);
    let [config, _] = written(&world);
    assert_eq!(config, "exclude:\n- templates/a\n- templates/b\n- '[{][{]cookie.name[}][}]/base'\n");
    again(&world, &first);
}

#[test]
fn files_outside_of_their_roots_take_one_line() {
    let files = [
        ("app/kustomization.yaml", "resources: [../shared/x.yaml, ../shared/y.yaml]\n"),
        ("shared/x.yaml", &config_map("x")),
        ("shared/y.yaml", &config_map("y")),
    ];
    let world = world(&files);
    let first = init(&world, &[]);
    first.success().says(expect![[r#"
        wrote .kustomize-localize
          .kustomize-localize: load-restrictor: none
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        next: git add -f -- :/.kustomize-localize && git commit -m 'Set up git kustomize-localize'
    "#]]);
    assert_eq!(written(&world), ["load-restrictor: none\n", ""]);
    again(&world, &first);
    // What somebody decided stays.
    world.work.write(CONFIG, "load-restrictor: root-only # ours\n");
    init(&world, &[]).fails(1).says(expect![[r#"
        nothing to write: 0 locked, 0 allowed
        2 places to edit (out-of-scope)
          app/kustomization.yaml:1: `../shared/x.yaml` is outside its kustomization root `app`
          app/kustomization.yaml:1: `../shared/y.yaml` is outside its kustomization root `app`
          help: copy it below `app`, or make its directory a root, and reference that
          help: if this is built with `--load-restrictor LoadRestrictionsNone`, as Flux does: write `load-restrictor: none` into .kustomize-localize
          help: or allow each, below `allow:` in .kustomize-localize: - {path: app/kustomization.yaml, rules: [out-of-scope], reason: 'TODO'}
        after that: git kustomize-localize init
    "#]]);
    assert_eq!(world.work.read(CONFIG), "load-restrictor: root-only # ours\n");
}

#[test]
fn what_people_must_edit_is_listed_by_cause() {
    let world = world(&[
        ("a/kustomization.yaml", "resources: [x.yaml]\nresources: [y.yaml]\n"),
        ("a/x.yaml", &config_map("x")),
        ("a/y.yaml", &config_map("y")),
        ("b/kustomization.yaml", "resources: [\n"),
        ("c/kustomization.yaml", "resources:\n- gone.yaml\n- gone.yaml\n"),
        ("d/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
    ]);
    let first = init(&world, &[]);
    first
        .fails(1).says(expect![[r#"
            wrote kustomize-localize.lock
              added https://github.com/acme/deep?ref=v1 <0>
              added https://github.com/acme/lib?ref=v1 <1>
            2 places to edit (missing-path): there is no `c/gone.yaml`
              c/kustomization.yaml:2
              c/kustomization.yaml:3
              help: add it, or remove the reference
              help: or allow each, below `allow:` in a new file .kustomize-localize: - {path: c/gone.yaml, reason: 'TODO'}
            2 places to edit (invalid-kustomization)
              b/kustomization.yaml:1: not valid YAML: unclosed bracket '['
              help: fix it: `kustomize build` refuses it
              a/kustomization.yaml:1: kustomize ignores this `resources`: line 2 repeats it
              help: merge it into line 2, or remove it
            builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
            after that: git kustomize-localize init
        "#]]);
    again(&world, &first);
    let json = world.work.run_as_is(&["init", "--format", "json"]);
    json.fails(1).stdout_has("\"outcome\": \"unchanged\"").stdout_has("\"rule\": \"invalid-kustomization\"");
}

#[test]
fn no_byte_of_the_configuration_changes() {
    let dead = "https://files.example.com/gone.yaml";
    let ours = "# ours\ninclude: [app] # here\nallow: # why\n  # first\n  - {url: github.com/acme/none, refs: any, reason: kept}\n\nhelm: false\n";
    let world = world(&[
        ("app/kustomization.yaml", &format!("resources: ['{dead}', 'https://github.com/acme/none?ref=v1']\n")),
        (CONFIG, ours),
    ]);
    world.server.route(dead, Reply::status(404));
    init(&world, &[]).success();
    let [config, _] = written(&world);
    let new = config.lines().find(|line| line.contains("gone.yaml")).unwrap();
    assert_eq!(config.replace(&format!("{new}\n"), ""), ours);
}

#[test]
fn a_configuration_that_cannot_be_edited_is_refused_and_nothing_is_written() {
    let dead = "https://files.example.com/gone.yaml";
    let world = world(&[("app/kustomization.yaml", &format!("resources: ['{dead}', '{LIB}//web?ref=v1']\n"))]);
    world.server.route(dead, Reply::status(404));
    let mut transcript = Transcript::default();
    for (config, says) in [
        ("allow: [{url: a.example, refs: any, reason: r}]\n", "expected one entry per line in `allow`"),
        ("{helm: false}\n", "expected one entry per line in `allow`"),
        ("helm: [\n", ".kustomize-localize:"),
        ("unknown: x\n", ".kustomize-localize:1"),
    ] {
        world.work.write(CONFIG, config);
        let output = world.work.run_unchanged(&["init"]);
        transcript.add(output.fails(2));
        if says.starts_with("its") {
            output.stderr_has("files.example.com/gone.yaml");
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize init
        error: nothing was written: cannot add entries to `.kustomize-localize`: expected one entry per line in `allow`
          hint: write them below `allow:` by hand:
          hint: - {url: 'https://files.example.com/gone.yaml', reason: 'TODO'}
        $ git kustomize-localize init
        error: .kustomize-localize:1:7: not YAML: unclosed bracket '['
        $ git kustomize-localize init
        error: .kustomize-localize:1:1: unknown field `unknown`
          hint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
    "#]]);
}

#[test]
fn without_anything_remote_there_is_nothing_to_write() {
    let world = world(&[("app/kustomization.yaml", "namePrefix: a-\n")]);
    world.work.run_unchanged(&["init"]).success().says(expect![[r#"
        nothing to write: 0 locked, 0 allowed
        check passes; to keep it passing: git kustomize-localize hook install; in CI: git kustomize-localize help recipes
        nothing to do
    "#]]);
    world.work.run_unchanged(&["status"]).success().says(expect![[r#"
        1 kustomization, 0 remote references
        branch localized/main: missing
        nothing to do
    "#]]);
    let nowhere = world.sandbox.path("nowhere");
    std::fs::create_dir(&nowhere).unwrap();
    world.sandbox.run(&nowhere, &["init"]).fails(2).says(expect![[r#"
        error: this is not a git repository, so there is no place for a lock
          hint: run it in a repository
    "#]]);
}

#[test]
fn offline_the_cache_is_enough() {
    let world = world(&[("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n")]);
    init(&world, &["--offline"]).fails(1).says(expect![[r#"
        nothing to write: 0 locked, 0 allowed
        1 reference could not be locked
          app/kustomization.yaml:1: https://github.com/acme/lib?ref=v1 is not in the cache
          help: run once without `--offline`
        after that: git kustomize-localize init
    "#]]);
    assert_eq!(written(&world), ["", ""]);
    init(&world, &[]).success();
    world.work.write("app/kustomization.yaml", "resources: ['https://github.com/acme/lib//other?ref=v1']\n");
    init(&world, &["--offline"]).success();
    assert!(world.work.read(LOCK).contains("other"));
}

#[test]
fn every_entry_that_people_may_write_is_printed_as_it_can_be_written() {
    let chart =
        |name: &str| format!("helmCharts: [{{name: {name}, repo: 'https://charts.example.com', version: 1.2.3}}]\n");
    let world = world(&[
        ("a/kustomization.yaml", &chart("a")),
        ("b/kustomization.yaml", &chart("b")),
        ("again/kustomization.yaml", &chart("b")),
    ]);
    // Of many charts of one repository nobody reads a line each.
    for number in 0..6 {
        let text = chart(&format!("m{number}")).replace("charts.", "many.");
        world.commit(&[
            (&format!("m{number}/kustomization.yaml"), &text),
            (&format!("n{number}/kustomization.yaml"), &text),
        ]);
    }
    let output = init(&world, &[]);
    output.fails(1).says(expect![[r#"
        nothing to write: 0 locked, 0 allowed
        15 places to edit (remote-chart)
          a/kustomization.yaml:1: the chart `a` 1.2.3 of https://charts.example.com is not in the tree: helm downloads it to `a/charts/a-1.2.3/a`
          again/kustomization.yaml:1: the chart `b` 1.2.3 of https://charts.example.com is not in the tree: helm downloads it to `again/charts/b-1.2.3/b`
          b/kustomization.yaml:1: the chart `b` 1.2.3 of https://charts.example.com is not in the tree: helm downloads it to `b/charts/b-1.2.3/b`
          12 chart references of https://many.example.com: m0/kustomization.yaml:1, m1/kustomization.yaml:1, m2/kustomization.yaml:1, m3/kustomization.yaml:1, m4/kustomization.yaml:1 and 7 more
          help: write `helm: true` into .kustomize-localize, and lock it: git kustomize-localize lock && git add -f -- :/.kustomize-localize :/kustomize-localize.lock
          help: or allow each, below `allow:` in a new file .kustomize-localize:
            - {chart: 'https://charts.example.com#a@1.2.3', reason: 'TODO'}
            - {chart: 'https://charts.example.com#b@1.2.3', reason: 'TODO'}
            - {chart: 'https://many.example.com', refs: any, reason: 'TODO'}
        after that: git kustomize-localize init
    "#]]);
    let printed = output.stdout.lines().filter_map(|line| line.strip_prefix("    "));
    let entries: String = printed.map(|line| format!("{}\n", line.replace("TODO", "soon, with a mirror"))).collect();
    world.work.write(CONFIG, format!("allow:\n{entries}"));
    init(&world, &[]).success();
    world.work.run_as_is(&["check"]).success().says(expect![[r#"
        not tracked by git: 2 files that `branch` does not see: .kustomize-localize, kustomize-localize.lock
        hint: git add -- :/.kustomize-localize :/kustomize-localize.lock && git commit
        checked 15 kustomizations with 15 references in the working tree: 15 allowed
    "#]]);
}

#[test]
fn an_entry_without_a_reason_is_listed_once_also_as_an_error() {
    let config = "rules: {stale-allow: error}\nallow:\n- {path: app/gone.yaml, reason: TODO}\n";
    let world = world(&[(CONFIG, config), ("app/kustomization.yaml", "resources: [gone.yaml]\n")]);
    init(&world, &[]).fails(1).says(expect![[r#"
        nothing to write: 0 locked, 0 allowed
        1 place to edit (stale-allow)
          .kustomize-localize:3: `TODO` is a placeholder, not a reason
          help: give reviewers the reason why it stays
        after that: git kustomize-localize init
    "#]]);
}
