//! In every state that a working tree of git can be in.

use super::{IN_PLACE, LIB, LOCK, build, follow, in_place, refused, world};
use crate::support::{Repo, Transcript, World, config_map};

const APP: &str = "overlays/dev/localized-files/files.example.com/v1/app.yaml";

fn check(repo: &Repo) {
    repo.run(&["check"]).success().lacks("warning").lacks("edited-copy");
}

#[test]
fn line_ends_are_those_of_the_working_tree_and_of_upstream() {
    let world = world();
    world.work.git(&["config", "core.autocrlf", "true"]);
    world.file("https://files.example.com/v1/app.yaml", config_map("app").replace('\n', "\r\n"));
    world.work.commit("files");
    world.work.remove("base/kustomization.yaml");
    world.work.git(&["checkout", "-q", "--", "base"]);
    let text = world.work.read("base/kustomization.yaml");
    assert!(text.contains("\r\n"), "{text:?}");
    let output = in_place(&world.work, &[]);
    let text = world.work.read("base/kustomization.yaml");
    assert!(text.contains("- localized-files/github.com/acme/lib/v1/web # upstream\r\n"), "{text:?}");
    follow(&world, output.success());
    check(&world.work);
    let shown = world.work.show("HEAD", "base/kustomization.yaml");
    assert!(!shown.contains('\r'), "{shown:?}");
    // A checkout that converts everything converts nothing of what was brought in.
    let clone = world.sandbox.clone_of(&world.work, "clone");
    clone.git(&["config", "core.autocrlf", "true"]);
    clone.git(&["rm", "-q", "--cached", "-r", "."]);
    clone.git(&["reset", "-q", "--hard"]);
    let map = clone.read(&format!("{LIB}/web/map.yaml"));
    assert_eq!(map, config_map("lib"));
    assert!(clone.read(APP).contains("\r\n"));
    in_place(&clone, &[]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    clone.run(&["check"]).success().says(expect![[r#"
        checked 5 kustomizations with 8 references in the working tree: no problems found
    "#]]);
}

#[test]
fn a_mode_that_differs_is_an_edit() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    let text = world.work.read(APP);
    world.work.write_executable(APP, &text);
    in_place(&world.work, &[]).fails(1).says(expect![[r#"
        error[edited-copy]: `overlays/dev/localized-files/files.example.com/v1/app.yaml` has a different mode than in the lock
         --> overlays/dev/localized-files/files.example.com/v1/app.yaml
         = help: git kustomize-localize vendor --overwrite :/overlays/dev

        error: nothing was written: 1 error (edited-copy 1)
          hint: for more: git kustomize-localize explain edited-copy
    "#]]);
    world.work.git(&["config", "core.fileMode", "false"]);
    let mut transcript = Transcript::default();
    for command in ["check", "vendor"] {
        transcript.add(world.work.run(&[command]).success());
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        checked 5 kustomizations with 8 references in the working tree: no problems found
        $ git kustomize-localize vendor
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
}

#[test]
fn what_a_sparse_checkout_leaves_out_keeps_what_it_needs() {
    let world = world();
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    let lock = world.work.read(LOCK);
    world.work.git(&["sparse-checkout", "set", "--cone", "base", "overlays/prod"]);
    assert!(!world.work.path().join("overlays/dev").exists());
    world.work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    check(&world.work);
    let status = world.work.run(&["status"]);
    status.success().says(expect![[r#"
        3 kustomizations, 2 remote references (2 locked)
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        branch localized/main: missing
        next: git kustomize-localize branch --no-verify
    "#]]);
    in_place(&world.work, &["overlays/dev"]).fails(2).says(expect![[r#"
        error: `overlays/dev/kustomization.yaml` would change, and a sparse checkout leaves it out
          hint: check it out: git sparse-checkout add overlays/dev
    "#]]);
    // From another directory, git would add one below that.
    let base = world.work.path().join("base");
    let vendor = ["vendor", "--no-verify", ":/overlays/dev"];
    world.sandbox.run(&base, &vendor).fails(2).says(expect![[r#"
        error: `overlays/dev/kustomization.yaml` would change, and a sparse checkout leaves it out
          hint: check it out: git -C /home/me/work sparse-checkout add overlays/dev
    "#]]);
    in_place(&world.work, &[]).success();
    assert!(!world.work.path().join("overlays/dev").exists());
    let after = world.work.read(LOCK);
    assert!(after.contains("files.example.com"), "{after}");
    world.work.run(&["lock"]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    assert_eq!(world.work.read(LOCK), after);
    assert_ne!(after, lock);

    // And once it is localized everywhere.
    let world = self::world();
    in_place(&world.work, &[]).success();
    world.work.commit("localized");
    world.work.git(&["sparse-checkout", "set", "--cone", "overlays/prod"]);
    let before = world.work.state();
    check(&world.work);
    in_place(&world.work, &[]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    before.assert_same(&world.work.state());
}

#[test]
fn what_git_ignores_was_not_edited_meanwhile() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.write(".gitignore", "localized-files/\n");
    world.work.write("overlays/dev/kustomization.yaml", "resources: [../../base]\n");
    world.work.git(&["add", "."]);
    world.work.git(&["commit", "-q", "-m", "without one, ignored"]);
    in_place(&world.work, &["--overwrite"]).success();
    assert!(!world.work.path().join(APP).exists());
}

#[test]
fn a_linked_worktree_is_a_working_tree() {
    let world = world();
    world.work.commit("files");
    let linked = world.sandbox.path("linked");
    let add = ["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "x"];
    world.work.git(&add);
    let before = world.work.state();
    let linked = Repo::new(&world.sandbox, linked);
    in_place(&linked, &[]).success();
    assert!(linked.path().join(APP).is_file());
    before.assert_same(&world.work.state());
}

#[test]
fn a_submodule_is_not_entered() {
    let world = world();
    let module = world
        .upstream_of("acme/module", &[("kustomization.yaml", "resources:\n- https://files.example.com/v1/app.yaml\n")]);
    let url = module.path().to_str().unwrap();
    world.work.git(&["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", url, "module"]);
    refused(&world, &["module"]).says(expect![[r#"
        error: the root `module` is in a submodule
          hint: run it in the submodule, or name its repository by URL
    "#]]);
    in_place(&world.work, &[]).success();
    let module = Repo::new(&world.sandbox, world.work.path().join("module"));
    assert_eq!(module.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_kustomization_that_is_not_merged_is_not_touched() {
    let world = world();
    world.work.commit("files");
    let url = "https://github.com/acme/lib//web?ref=v1";
    for (branch, reference) in [("ours", "v2"), ("theirs", "v3")] {
        world.work.git(&["checkout", "-q", "-b", branch, "main"]);
        let text = world.work.read("base/kustomization.yaml");
        let other = url.replace("v1", reference);
        world.work.write("base/kustomization.yaml", text.replace(url, &other));
        world.work.commit(branch);
    }
    assert_ne!(world.work.try_git(&["merge", "-q", "ours"]).status, 0);
    let text = world.work.read("base/kustomization.yaml");
    let output = in_place(&world.work, &[]);
    output.fails(1).says(expect![[r#"
            error[invalid-kustomization]: conflict markers: two sides of a merge changed the same lines
             --> base/kustomization.yaml:3:1
              |
            3 | <<<<<<< HEAD
              | ^^^^^^^^^^^^
              = help: resolve the conflict, remove the lines `<<<<<<<`, `=======` and `>>>>>>>`, and `git add` the file

            error: nothing was written: 1 error (invalid-kustomization 1)
              hint: for more: git kustomize-localize explain invalid-kustomization
        "#]]);
    assert_eq!(world.work.read("base/kustomization.yaml"), text);
}

#[test]
fn two_things_never_share_a_place() {
    let url = "https://files.example.com/app.yaml";
    let both = format!("resources:\n- {url}\n- {url}?x=2\n");
    let names = |text: &str| {
        let world = World::new();
        world.file(url, config_map("one"));
        world.file(&format!("{url}?x=2"), config_map("two"));
        world.work.write("kustomization.yaml", text);
        world.work.git(&["add", "--all"]);
        world
    };
    let world = names(&both);
    let before = build(&world, ".", false);
    in_place(&world.work, &[]).success();
    assert_eq!(build(&world, ".", true), before);

    // One after the other.
    let world = names(&format!("resources:\n- {url}\n"));
    let work = &world.work;
    in_place(work, &[]).success();
    let text = work.read("kustomization.yaml") + &format!("- {url}?x=2\n");
    work.write("kustomization.yaml", text);
    work.git(&["add", "--all"]);
    in_place(work, &[]).success().says(expect![[r#"
        localized the working tree: 4 files written, 2 references rewritten, 1 removed
          added https://files.example.com/app.yaml?x=2 <0>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomization.yaml :/kustomize-localize.lock :/localized-files
    "#]]);
    assert_eq!(build(&world, ".", true), before);
}

#[test]
fn excluded_roots_keep_what_they_use() {
    let world = world();
    in_place(&world.work, &[]).success();
    world.work.write(".kustomize-localize", "exclude: [overlays/dev]\n");
    world.work.commit("localized");
    in_place(&world.work, &[]).success().says(expect![[r#"
        nothing to do: kustomize-localize.lock has 3 remote references
    "#]]);
    assert!(world.work.path().join(APP).is_file());
    // It can still be named.
    let text = "resources:\n- ../../base\n- https://github.com/acme/lib//other?ref=v1\n";
    world.work.write("overlays/dev/kustomization.yaml", text);
    world.work.git(&["add", "--all"]);
    in_place(&world.work, &[]).success().says(expect![[r#"
        localized the working tree: 1 file written, 0 references rewritten, 2 removed
          dropped https://files.example.com/v1/app.yaml <0>
          to stage it: git add -f -- :/kustomize-localize.lock :/overlays/dev/localized-files
    "#]]);
    assert!(!world.work.path().join(APP).exists());
    in_place(&world.work, &["overlays/dev"]).success().says(expect![[r#"
        localized overlays/dev: 5 files written, 1 reference rewritten, 0 removed
          added other of https://github.com/acme/lib?ref=v1
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/overlays/dev/kustomization.yaml :/overlays/dev/localized-files
    "#]]);
}

#[test]
fn plugin_configurations_are_edited_in_place() {
    let world = World::new();
    let patch = "https://files.example.com/patch.yaml";
    world.file(patch, "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: own\ndata:\n  a: b\n");
    let plugin = format!(
        "apiVersion: builtin\nkind: PatchTransformer\nmetadata:\n  name: p\npath: {patch}\ntarget:\n  kind: ConfigMap\n"
    );
    for name in ["one", "two"] {
        world.work.write(
            &format!("{name}/kustomization.yaml"),
            "resources: [own.yaml]\ntransformers: [plugins/patch.yaml]\n",
        );
        world.work.write(&format!("{name}/own.yaml"), config_map("own"));
        world.work.write(&format!("{name}/plugins/patch.yaml"), &plugin);
    }
    world.work.git(&["add", "--all"]);
    let output = in_place(&world.work, &[]);
    output.success().says(expect![[r#"
        localized the working tree: 7 files written, 2 references rewritten, 0 removed
          added https://files.example.com/patch.yaml <0>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/kustomize-localize.lock :/one/localized-files :/one/plugins/patch.yaml :/two/localized-files :/two/plugins/patch.yaml
    "#]]);
    assert!(world.work.read("two/plugins/patch.yaml").contains("path: localized-files/files.example.com/patch.yaml\n"));
    if let Some(built) = build(&world, "one", true) {
        assert!(built.contains("a: b"), "{built}");
    }
    follow(&world, &output);
    check(&world.work);
}

#[test]
fn git_is_found_as_a_hook_finds_it() {
    let world = world();
    let directory = world.work.git_directory();
    world.sandbox.set("GIT_DIR", &directory);
    world.sandbox.set("GIT_INDEX_FILE", directory.join("index"));
    world.work.run(&IN_PLACE).success().says(expect![[r#"
        localized the working tree: 11 files written, 3 references rewritten, 0 removed
          added https://files.example.com/v1/app.yaml <0>
          added https://github.com/acme/deep?ref=v1 <1>
          added https://github.com/acme/lib?ref=v1 <2>
          not verified: neither `kustomize` nor `kubectl` was found on PATH
          to stage it: git add -f -- :/base/kustomization.yaml :/base/localized-files :/kustomize-localize.lock :/overlays/dev/kustomization.yaml :/overlays/dev/localized-files
    "#]]);
}
