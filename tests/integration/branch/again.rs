//! The same source gives the same tree, whatever lies between: what comes back from the tip is what upstream says.

use super::BRANCH;
use crate::support::World;

const VALUES: &str = "https://files.example.com/v.env?raw";

/// Makes the branch, once more after another commit, and once more without that; returns the kustomization of upstream
/// as it was localized.
#[track_caller]
fn branch_three_times(upstream: &str) -> String {
    let world = World::new();
    world.file(VALUES, "A=1\n");
    world.upstream_of("acme/env", &[("b/kustomization.yaml", upstream)]);
    let work = &world.work;
    world.commit(&[("a/kustomization.yaml", "resources: ['https://github.com/acme/env//b?ref=v1']\n")]);
    work.run_as_is(&["lock"]).success();
    work.commit("lock");
    let branch = || {
        work.run_as_is(&["branch", "--no-verify"]).success();
        work.git(&["rev-parse", &format!("{BRANCH}^{{tree}}")])
    };
    let first = branch();
    world.commit(&[("README.md", "More.\n")]);
    let second = branch();
    assert_eq!(work.git(&["diff", "--name-only", &first, &second]), "README.md");
    work.git(&["rm", "--quiet", "README.md"]);
    work.commit("less");
    assert_eq!(branch(), first);
    work.run_as_is(&["verify", "localized/main", "--rebuild"]).success().says(expect![[r#"
        .: 4 localized files, 2 upstreams; recorded in the lock and in the message of <0>
        verified localized/main (<0>): as recorded, the same when localized again
    "#]]);
    work.show(BRANCH, "a/localized-files/github.com/acme/env/v1/b/kustomization.yaml")
}

#[test]
fn an_alias_stays_where_its_anchor_gets_the_same_value() {
    let localized = branch_three_times(&format!(
        "configMapGenerator: [{{name: a, envs: [&e '{VALUES}']}}]\nsecretGenerator: [{{name: b, envs: [*e]}}]\n"
    ));
    assert!(localized.contains("secretGenerator: [{name: b, envs: [*e]}]\n"), "{localized}");
}

#[test]
fn an_alias_with_a_value_of_its_own_is_quoted_for_good() {
    // A file gets a key, for which its URL stood.
    let localized = branch_three_times(&format!(
        "configMapGenerator: [{{name: a, files: [&e '{VALUES}']}}]\nsecretGenerator: [{{name: b, envs: [*e]}}]\n"
    ));
    assert!(localized.contains("files: [&e 'v.env?raw="), "{localized}");
    assert!(localized.contains("envs: ['"), "{localized}");
}

#[test]
fn what_many_fields_share_is_written_once() {
    let shared = branch_three_times(&format!(
        "configMapGenerator:\n- &g\n  name: a\n  envs: &l\n  - {VALUES}\n- {{name: c, envs: *l}}\nsecretGenerator: [*g]\n"
    ));
    assert_eq!(shared.matches("files.example.com").count(), 1, "{shared}");
    assert!(shared.contains("envs: *l}\nsecretGenerator: [*g]\n"), "{shared}");
}
