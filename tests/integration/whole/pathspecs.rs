//! The variables by which git takes patterns for file names, and file names for patterns: Magit sets the first. And the
//! one by which `git config` alone reads another file.

use crate::support::World;

const VARIABLES: [&str; 4] =
    ["GIT_LITERAL_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"];

const URL: &str = "resources: ['https://github.com/acme/lib//web?ref=v1']\n";

/// Runs the program with and without each of these variables, which makes no difference and changes nothing.
#[track_caller]
fn is_same(world: &World, variables: &[&str], args: &[&str]) {
    let plain = world.work.run_unchanged(args);
    for variable in variables {
        let before = world.work.state();
        world.sandbox.set(variable, "1");
        let output = world.work.run_as_is(args);
        world.sandbox.unset(variable);
        before.assert_same(&world.work.state());
        assert_eq!(output.shown(), plain.shown(), "{variable} {args:?}");
    }
}

#[test]
fn no_command_sees_less() {
    let world = World::acme();
    world.commit(&[("app/kustomization.yaml", URL), ("stored/kustomization.yaml", URL)]);
    world.work.run_as_is(&["vendor", "stored"]).success();
    world.work.run_as_is(&["lock"]).success();
    world.work.commit("locked and stored");
    for args in [
        &["vendor", "stored"][..],
        &["lock"],
        &["update"],
        &["init", "--dry-run"],
        &["init"],
        &["status"],
        &["tree"],
        &["targets"],
        &["sbom"],
        &["branch", "--dry-run"],
        &["app", "copy", "--no-commit", "--dry-run"],
        &["affected", "HEAD"],
    ] {
        is_same(&world, &["GIT_LITERAL_PATHSPECS", "GIT_CONFIG"], args);
    }
    world.work.write("new/kustomization.yaml", "resources: ['https://evil.example/x.yaml']\n");
    world.work.git(&["add", "new"]);
    for args in [&["check"][..], &["check", "--staged"], &["hook", "run", "pre-commit"]] {
        is_same(&world, &VARIABLES, args);
        assert!(world.work.run_as_is(args).fails(1).shown().contains("https://evil.example/x.yaml"), "{args:?}");
    }
}
