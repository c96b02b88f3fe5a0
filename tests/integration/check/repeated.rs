//! A key that a kustomization has twice: kustomize takes the last one.

use super::found;
use crate::support::{World, config_map};

#[test]
fn the_last_one_is_localized_and_the_first_one_is_left_alone() {
    let world = World::acme();
    world.sandbox.builds();
    let work = &world.work;
    let text = "namePrefix: a-\nresources: []\nresources:\n- https://github.com/acme/lib//web?ref=v1\nnamePrefix: b-\n\
        configMapGenerator:\n- name: m\n  literals: [a=b]\n  literals: [a=c]\n  files: [own.txt]\n";
    world.commit(&[("app/kustomization.yaml", text), ("app/own.txt", "own\n")]);
    work.run(&["lock"]).success();
    work.commit("lock");
    let is = ["invalid-kustomization app/kustomization.yaml"; 3];
    let lines = [":1", ":2", ":8"];
    let expected: Vec<String> = is.iter().zip(lines).map(|(is, line)| format!("{is}{line}")).collect();
    assert_eq!(found(work, &[]), expected);
    let clone = world.localized(&["branch"]);
    let localized = clone.read("app/kustomization.yaml");
    let local = text.replace("https://github.com/acme/lib//web?ref=v1", "localized-files/github.com/acme/lib/v1/web");
    assert_eq!(localized, local);
    world.same_build("app", &clone, "app");
    work.run(&["verify", "localized/main"]).success();
    // What deploys the same as before is not affected by what does not count.
    work.write("app/kustomization.yaml", text.replace("namePrefix: a-", "namePrefix: c-"));
    work.commit("what does not count");
    work.run(&["diff", "HEAD~1"]).success().says(expect![[r#"
        nothing differs in 1 affected build since <0>
    "#]]);
}

#[test]
fn a_reference_that_does_not_count_stops_both() {
    let world = World::acme();
    let work = &world.work;
    let two = "resources:\n- https://github.com/acme/lib//web?ref=v1\nresources: [map.yaml]\n";
    world.commit(&[("app/kustomization.yaml", two), ("app/map.yaml", &config_map("own"))]);
    assert_eq!(found(work, &[]), ["!invalid-kustomization app/kustomization.yaml:1"]);
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[invalid-kustomization]: kustomize ignores this `resources`: line 3 repeats it
         --> app/kustomization.yaml:1:1
          |
        1 | resources:
          | ^^^^^^^^^^ resources
          = help: merge it into line 3, or remove it

        for more: git kustomize-localize explain invalid-kustomization
        checked 1 kustomization with 1 reference in the working tree: 1 error
    "#]]);
    let before = work.state();
    work.run_as_is(&["branch"]).fails(1).says(expect![[r#"
        error[invalid-kustomization]: kustomize ignores this `resources`: line 3 repeats it
         --> app/kustomization.yaml:1:1
          |
        1 | resources:
          | ^^^^^^^^^^ resources
          = help: merge it into line 3, or remove it

        error: <0> has 1 error (invalid-kustomization 1): nothing was committed
          hint: for more: git kustomize-localize explain invalid-kustomization
    "#]]);
    before.assert_same(&work.state());
    work.write("app/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n- map.yaml\n");
    work.commit("merged");
    work.run(&["lock"]).success();
    work.run(&["check"]).success();
}
