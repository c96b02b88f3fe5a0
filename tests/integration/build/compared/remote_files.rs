//! Remote files: the build of the original sees what was fetched, and no server is asked again.

use crate::support::{World, config_map};

const URL: &str = "https://files.example.com/maps/map.yaml?v=1";

fn world() -> Option<World> {
    let world = World::new();
    world.sandbox.builds()?;
    world.file(URL, config_map("one"));
    world.file("http://plain.example.com/map.yaml", config_map("two"));
    let kustomization =
        format!("resources:\n- {URL}\n- http://plain.example.com/map.yaml\nnamePrefix: a-\n");
    world.commit(&[("app/kustomization.yaml", &kustomization)]);
    Some(world)
}

#[test]
fn upstream_is_asked_once() {
    let Some(world) = world() else { return };
    let output = world.work.run(&["app"]);
    output
        .success()
        .stdout_has("  verified: builds are identical: ")
        .lacks("live upstream");
    assert_eq!(world.server.log().len(), 2, "{:?}", world.server.log());
    assert_eq!(world.sandbox.leftovers(), [""; 0]);

    world
        .work
        .run(&["app", "plain", "--no-commit", "--verify=full"])
        .success()
        .stdout_has("  verified: ");
    assert!(world.server.log().len() > 2, "{:?}", world.server.log());
}

#[test]
fn nothing_is_asked_offline_and_it_is_verified() {
    let Some(world) = world() else { return };
    world.work.run(&["app", "--no-verify"]).success();
    world.commit(&[("app/unused.yaml", "unused")]);
    world.server.forget();
    world
        .work
        .run(&["app", "--offline"])
        .success()
        .stdout_has("  verified: builds are identical: ");
    assert_eq!(world.server.log(), [""; 0]);
}

#[test]
fn unfetched_files_are_reported_and_requested_from_upstream() {
    let Some(world) = world() else { return };
    let Some(kustomize) = world.sandbox.builds() else {
        return;
    };
    // Like a plugin might, the original requests something that no kustomization names.
    let other = "https://files.example.com/other.yaml";
    world.file(other, config_map("other"));
    let side = world.sandbox.path("side");
    std::fs::create_dir(&side).unwrap();
    let text = format!("resources: ['{other}']\n");
    std::fs::write(side.join("kustomization.yaml"), text).unwrap();
    let real = kustomize.program().display();
    let body = format!(
        "case \"$*\" in */original/*) {real} build {} >/dev/null || exit 1;; esac\nexec {real} \"$@\"",
        side.display()
    );
    world.sandbox.script("kustomize", &body);
    let script = world.sandbox.path("bin/kustomize");
    world.sandbox.set("KUSTOMIZE", script);
    world
        .work
        .run(&["app"])
        .success()
        .stdout_has("  verified: ")
        .stdout_has(&format!(
            "the original was built with the live upstream: `{other}`: it was not fetched"
        ));
}
