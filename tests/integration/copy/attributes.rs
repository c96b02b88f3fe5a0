//! What is compared and deployed is what a checkout gives, wherever the files of the user's repository with
//! attributes lie.

use crate::support::{Kustomize, Repo, World, rows};

const REMOTE: &str = "https://github.com/acme/app?ref=v1";

/// What gives the text `$Id$` and line ends other bytes, for `*.conf`.
const CONVERTING: [&str; 3] = ["text eol=crlf", "ident", "text working-tree-encoding=UTF-16LE"];

fn kustomization(name: &str) -> String {
    format!("configMapGenerator:\n- name: {name}\n  files: [a.conf]\n")
}

/// An upstream and a user's root, both with a file `a.conf`.
fn world(attributes_at: &str, attributes: &str) -> World {
    let world = World::new();
    let work = &world.work;
    let upstream = kustomization("upstream");
    let files = [("kustomization.yaml", upstream.as_str()), ("a.conf", "$Id$\none\n")];
    world.upstream_of("acme/app", &files);
    world.commit(&[
        ("app/kustomization.yaml", &format!("resources: ['{REMOTE}']\n{}", kustomization("ours"))),
        ("app/a.conf", "$Id$\ntwo\n"),
    ]);
    // Alone: what the others hold on disk is not encoded yet.
    work.write(attributes_at, attributes);
    work.git(&["add", attributes_at]);
    work.git(&["commit", "-q", "-m", "attributes"]);
    // A checkout, which the files that were just written are not.
    work.git(&["rm", "-r", "-q", "--cached", "."]);
    work.git(&["reset", "-q", "--hard"]);
    world
}

/// Returns what a clone of the branch holds.
fn clone(world: &World, to: &str, args: &[&str]) -> Repo {
    world.verified(args);
    let clone = world.clone_of_branch();
    assert_eq!(clone.git(&["status", "--porcelain"]), "", "{to}");
    clone
}

#[test]
fn a_remote_target_keeps_its_bytes_whatever_attributes_the_repository_has() {
    for attributes in CONVERTING {
        let world = world(".gitattributes", &format!("*.conf {attributes}\n"));
        let clone = clone(&world, attributes, &[REMOTE, "copy"]);
        assert_eq!(clone.read("copy/a.conf"), "$Id$\none\n", "{attributes}");
        world.same_build(REMOTE, &clone, "copy");
        clone.run(&["verify", "localized/main"]).success();
    }
}

#[test]
fn attributes_of_the_user_hold_on_both_sides_alike() {
    for attributes in rows(CONVERTING, 2) {
        let world = world(".gitattributes", &format!("*.conf {attributes}\n"));
        let clone = clone(&world, attributes, &["app"]);
        world.same_build("app", &clone, "localized-app");
    }
    for (place, text) in [
        ("app/.gitattributes", "*.conf text eol=crlf\n"),
        (".gitattributes", "/app/*.conf text eol=crlf\n"),
        (".gitattributes", "[attr]windows text eol=crlf\na.conf windows\n"),
    ] {
        let world = world(place, text);
        let clone = clone(&world, text, &["branch"]);
        world.same_build("app", &clone, "app");
        assert_eq!(clone.read("app/a.conf"), "$Id$\r\ntwo\r\n");
    }
}

#[test]
fn attributes_that_hold_in_one_place_only_are_a_difference() {
    if Kustomize::find().is_none() {
        return;
    }

    for (place, text) in [
        ("app/.gitattributes", "*.conf text eol=crlf\n"),
        (".gitattributes", "app/*.conf ident\n"),
        (".gitattributes", "localized-app/*.conf ident\n"),
    ] {
        let world = world(place, text);
        world.sandbox.builds();
        world.work.run(&["app"]).fails(1).stdout_has("the localized build differs from the original");
        assert_eq!(world.work.git(&["branch", "--list", "localized/*"]), "");
    }

    // On disk they are what they are.
    let world = world("app/.gitattributes", "*.conf text eol=crlf\n");
    world.verified(&["app", "--no-commit"]);
    assert_eq!(world.work.read("localized-app/a.conf"), "$Id$\r\ntwo\r\n");
}
