//! The commands that findings print: run as they stand, none makes anything worse, and each touches only what it
//! names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::{commands, copy_of, findings, shell};
use crate::support::{Repo, World, config_map, deployment, files};

const LOCK: &str = "kustomize-localize.lock";

/// Returns what `check` says, by rule and path, with the commands of each finding.
#[track_caller]
fn check(repo: &Repo) -> Vec<(String, Vec<String>)> {
    let said = |finding: &Value| {
        let text = |key: &str| finding[key].as_str().unwrap();
        let name = format!("{} {}", text("rule"), text("path"));
        (name, commands(std::slice::from_ref(finding)))
    };
    findings(repo, &["--staged"]).iter().map(said).collect()
}

/// Returns every file of the working tree and every entry of the index.
fn state(repo: &Repo) -> BTreeMap<String, String> {
    let mut state = files(repo.path());
    state.retain(|name, _| !name.ends_with('/'));
    for line in repo.git(&["ls-files", "-s"]).lines() {
        let (what, name) = line.split_once('\t').unwrap();
        *state.entry(name.to_owned()).or_default() += what;
    }
    state
}

/// Returns whether a command names a path, or a directory above it.
fn names(command: &str, path: &str) -> bool {
    let mut above = std::path::Path::new(path).ancestors();
    path == LOCK
        || above.any(|above| {
            let word = format!(":/{}", above.display());
            !above.as_os_str().is_empty() && command.split(' ').any(|one| one == word)
        })
}

/// Runs every command that a finding prints, each in a copy of the repository. Returns for which rules one mended
/// something.
#[track_caller]
fn follow(world: &World) -> BTreeSet<String> {
    let before = check(&world.work);
    let mut rules = BTreeSet::new();
    let mut number = 0;
    let mut done = BTreeSet::new();
    for (name, commands) in &before {
        for command in commands {
            if !done.insert(command) {
                continue;
            }
            number += 1;
            let copy = copy_of(&world.work, &format!("copy-{number}"));
            let (was, output) = (state(&copy), shell(&copy, "", command));
            let is = state(&copy);
            for path in was.keys().chain(is.keys()) {
                let is_same = was.get(path) == is.get(path);
                assert!(is_same || names(command, path), "{name}: {command}: {path}");
            }
            let after = check(&copy);
            assert!(after.len() <= before.len(), "{name}: {command}\n{before:?}\n{after:?}\n{output:?}");
            let count = |findings: &[(String, Vec<String>)]| findings.iter().filter(|one| one.0 == *name).count();
            if count(&after) < count(&before) {
                rules.insert(name.split_once(' ').unwrap().0.to_owned());
            }
        }
    }
    rules
}

fn rules(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// A repository that keeps its URLs in the lock, but for two roots that are localized in place.
fn world() -> World {
    let world = World::new();
    world.sandbox.offer_itself();
    world.upstream_of(
        "acme/lib",
        &[("web/kustomization.yaml", "resources: [map.yaml]\n"), ("web/map.yaml", &config_map("lib"))],
    );
    for name in ["one", "two", "three"] {
        let url = format!("https://files.example.com/v1/{name}.yaml");
        world.file(&url, deployment(name));
    }
    let work = &world.work;
    for (root, name) in [("here", "one"), ("there", "two")] {
        let url = format!("resources:\n- https://files.example.com/v1/{name}.yaml\n");
        work.write(&format!("{root}/kustomization.yaml"), url);
    }
    work.git(&["add", "--all"]);
    work.run(&["vendor"]).success();
    for root in ["apps/a", "apps/b", "apps/c"] {
        let url = "resources:\n- https://github.com/acme/lib//web?ref=v1\n";
        work.write(&format!("{root}/kustomization.yaml"), url);
    }
    work.git(&["add", "--all"]);
    work.run(&["lock"]).success();
    work.commit("localized and locked");
    work.run(&["check"]).success();
    world
}

#[test]
fn an_edited_copy_is_written_again_and_nothing_else() {
    let world = world();
    let work = &world.work;
    let file = "here/localized-files/files.example.com/v1/one.yaml";
    let other = "there/localized-files/files.example.com/v1/two.yaml";
    for (path, text) in [(file, "# edited\n"), (other, "# mine\n")] {
        work.write(path, text);
    }
    work.commit("edited");
    assert_eq!(follow(&world), rules(&["edited-copy"]));
    let findings = check(work);
    assert_eq!(findings[0].0, format!("edited-copy {file}"));
    let command = &findings[0].1[0];
    assert_eq!(command, "git kustomize-localize vendor --overwrite :/here");
    shell(work, "", command).success();
    assert_eq!(work.read(file), deployment("one"));
    assert_eq!(work.read(other), "# mine\n");
    assert_eq!(check(work).len(), 1);

    // A root that names a locked URL as well: what that becomes is staged, too.
    work.git(&["reset", "--quiet", "--hard"]);
    let localized = work.read("here/kustomization.yaml");
    let more = format!("{localized}- https://github.com/acme/lib//web?ref=v1\n");
    work.write("here/kustomization.yaml", more);
    work.commit("another");
    assert_eq!(follow(&world), rules(&["edited-copy"]));

    // One that is gone.
    work.remove("here/kustomization.yaml");
    work.commit("gone");
    follow(&world);
}

#[test]
fn unneeded_files_go_with_their_root() {
    let world = world();
    let work = &world.work;
    work.write("there/kustomization.yaml", "namePrefix: a-\n");
    work.write("apps/d/kustomization.yaml", "resources:\n- https://files.example.com/v1/three.yaml\n");
    work.commit("three");
    assert_eq!(follow(&world), rules(&["remote-reference"]));
}

#[test]
fn deleted_files_come_back() {
    let world = world();
    let work = &world.work;
    work.write("m/cm.yaml", config_map("a"));
    work.write("m/d e/kustomization.yaml", "namePrefix: a-\n");
    work.write("m/kustomization.yaml", "resources: [cm.yaml, d e]\n");
    work.commit("there");
    work.git(&["rm", "-r", "--quiet", "m/cm.yaml", "m/d e"]);
    let findings = check(work);
    for (finding, path) in findings.iter().zip(["':/m/d e'", ":/m/cm.yaml"]) {
        let command = format!("git restore --staged --worktree -- {path}");
        assert!(findings.iter().any(|one| one.1.contains(&command)), "{finding:?}");
        shell(work, "", &command).success();
    }
    assert_eq!(check(work), []);
    // Only files that can be committed can be fixed so.
    work.git(&["rm", "--quiet", "m/cm.yaml"]);
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[missing-path]: there is no `m/cm.yaml`
         --> m/kustomization.yaml:1:13
          |
        1 | resources: [cm.yaml, d e]
          |             ^^^^^^^ resources[0]
          = help: restore it: git restore --staged --worktree -- :/m/cm.yaml

        for more: git kustomize-localize explain missing-path
        checked 7 kustomizations with 7 references in the working tree: 1 error
    "#]]);
    work.commit("gone");
    work.run(&["check", "--rev", "HEAD"]).fails(1).says(expect![[r#"
        error[missing-path]: there is no `m/cm.yaml`
         --> m/kustomization.yaml:1:13
          |
        1 | resources: [cm.yaml, d e]
          |             ^^^^^^^ resources[0]
          = help: add it, or remove the reference

        for more: git kustomize-localize explain missing-path
        checked 7 kustomizations with 7 references in commit <0> (HEAD): 1 error
    "#]]);
}

#[test]
fn every_other_command_makes_nothing_worse() {
    let world = world();
    let work = &world.work;
    work.write("shared/x.yaml", config_map("x"));
    for (place, text) in [
        ("m/missing", "resources: [new.yaml]\n"),
        ("m/gone", "resources: [gone.yaml]\n"),
        ("m/dir", "resources: [../../files]\n"),
        ("m/out", "resources: [../../shared/x.yaml]\n"),
        ("m/link", "resources: [x.yaml]\n"),
        ("m/two", "namePrefix: a-\n"),
        ("m/secret", "secretGenerator: [{name: a, envs: [s.env]}]\n"),
        ("m/float", "resources: ['https://github.com/acme/lib//web']\n"),
        ("m/url", "resources: ['https://files.example.com/v1/three.yaml']\n"),
    ] {
        work.write(&format!("{place}/kustomization.yaml"), text);
    }
    work.write("m/two/kustomization.yml", "namePrefix: b-\n");
    work.write("m/gone/gone.yaml", config_map("gone"));
    work.write("files/a.yaml", config_map("a"));
    work.symlink("m/link/x.yaml", "../../shared/x.yaml");
    work.write(".gitignore", "*.env\n");
    // Nothing references the entries for this one any more.
    work.write("apps/a/kustomization.yaml", "namePrefix: a-\n");
    work.write("here/kustomization.yaml", "namePrefix: a-\n");
    work.write("there/localized-files/mine.yaml", "mine\n");
    work.commit("all of it");
    work.git(&["rm", "--quiet", "m/gone/gone.yaml"]);
    work.write("m/missing/new.yaml", config_map("new"));
    work.write("m/secret/s.env", "a=b\n");
    let expected = ["missing-path", "remote-reference", "untracked-path"];
    assert_eq!(follow(&world), rules(&expected));
}

#[test]
fn a_locked_reference_is_brought_in() {
    let world = world();
    let work = &world.work;
    work.write(".kustomize-localize", "rules: {locked-reference: error}\n");
    work.commit("no URL");
    assert_eq!(follow(&world), rules(&["locked-reference"]));
    let findings = check(work);
    assert_eq!(findings[0].1, ["git kustomize-localize vendor :/apps/a"]);
}

#[test]
fn an_edit_on_a_localized_branch_is_taken_back() {
    let world = world();
    let work = &world.work;
    work.git(&["checkout", "--quiet", "-B", "plain"]);
    work.run(&["branch"]).success();
    work.git(&["checkout", "--quiet", "localized/plain"]);
    let file = "apps/a/localized-files/github.com/acme/lib/v1/web/map.yaml";
    for is_committed in [false, true] {
        work.write(file, "# edited\n");
        if is_committed {
            work.commit("edited");
        } else {
            work.git(&["add", "--all"]);
        }
        let found = check(work);
        assert_eq!(found.len(), 1, "{found:?}");
        let [undo, again] = found[0].1.as_slice() else { panic!("{found:?}") };
        assert_eq!(again, "git switch plain && git kustomize-localize branch --overwrite");
        if is_committed {
            shell(work, "", &format!("{again} --no-verify")).success();
            assert_eq!(work.show("localized/plain", file), config_map("lib"));
            work.run(&["check", "--rev", "localized/plain"]).success();
        } else {
            shell(work, "", undo).success();
            assert_eq!(check(work), []);
        }
    }
    // The same from elsewhere.
    work.git(&["checkout", "--quiet", "localized/plain"]);
    work.write(file, "# edited\n");
    work.commit("edited");
    work.git(&["checkout", "--quiet", "plain"]);
    let output = work.run(&["check", "--rev", "localized/plain"]);
    output.fails(1).says(expect![[r#"
        error[edited-copy]: `apps/a/localized-files/github.com/acme/lib/v1/web/map.yaml` was changed: its sha256 <0> differs from the lock
         --> apps/a/localized-files/github.com/acme/lib/v1/web/map.yaml
         = help: recreate the branch: git switch plain && git kustomize-localize branch --overwrite
         = help: put your own changes upstream or in an overlay

        for more: git kustomize-localize explain edited-copy
        checked 8 kustomizations with 8 references in commit <1> (localized/plain): 1 error
    "#]]);
}

#[test]
fn an_older_commit_of_a_localized_branch_is_none_of_its_source() {
    let world = world();
    let work = &world.work;
    work.git(&["checkout", "--quiet", "-B", "plain"]);
    work.run(&["branch"]).success();
    work.git(&["tag", "deployed", "localized/plain"]);
    work.write("new", "");
    work.commit("new");
    work.run(&["branch"]).success();
    work.run(&["check", "--rev", "deployed"]).success().says(expect![[r#"
        checked 8 kustomizations with 8 references in commit <0> (deployed): no problems found
    "#]]);
}

#[test]
fn a_chart_needs_the_url_of_a_repository() {
    let world = world();
    let work = &world.work;
    let chart = |rest: &str| format!("helmCharts:\n- {{name: x, {rest}}}\n");
    work.write("m/kustomization.yaml", chart("repo: ../base"));
    work.commit("chart");
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[remote-chart]: `repo: ../base` is not a URL
         --> m/kustomization.yaml:2:19
          |
        2 | - {name: x, repo: ../base}
          |                   ^^^^^^^^ helmCharts[0]
          = help: write the https, http or oci URL of its repository; or remove `repo` and `version`, and put the chart into `charts/x`

        for more: git kustomize-localize explain remote-chart
        checked 6 kustomizations with 6 references in the working tree: 1 error
    "#]]);
    work.write("m/kustomization.yaml", chart("repo: s3://bucket/charts"));
    work.run(&["check"]).fails(1).says(expect![[r#"
        error[remote-chart]: `repo: s3://bucket/charts` is not an https, http or oci URL
         --> m/kustomization.yaml:2:19
          |
        2 | - {name: x, repo: s3://bucket/charts}
          |                   ^^^^^^^^^^^^^^^^^^^ helmCharts[0]
          = help: write the https, http or oci URL of its repository; or remove `repo` and `version`, and put the chart into `charts/x`

        for more: git kustomize-localize explain remote-chart
        checked 6 kustomizations with 6 references in the working tree: 1 error
    "#]]);
    // What the hint says.
    work.write("m/kustomization.yaml", "helmCharts:\n- name: x\n");
    work.write("m/charts/x/Chart.yaml", "apiVersion: v2\nname: x\nversion: 1.0.0\n");
    work.write("m/charts/x/values.yaml", "");
    work.commit("here");
    work.run(&["check"]).success();
}

#[test]
fn an_ignored_path_that_is_not_there_is_not_staged() {
    let world = world();
    let work = &world.work;
    work.write("m/kustomization.yaml", "secretGenerator: [{name: a, envs: [s.env]}]\n");
    work.write(".gitignore", "\n*.env\n");
    work.commit("ignored");
    let said = |output: &crate::support::Output| {
        output.stdout_has("`m/s.env` does not exist, and git ignores it (.gitignore:2)").lacks("git add");
    };
    said(work.run(&["check"]).success());
    said(work.run(&["check", "--staged"]).success());
    work.run(&["check", "--rev", "HEAD"]).success().says(expect![[r#"
        warning[untracked-path]: `m/s.env` is not committed, and git ignores it (.gitignore:2)
         --> m/kustomization.yaml:1:36
          |
        1 | secretGenerator: [{name: a, envs: [s.env]}]
          |                                    ^^^^^ secretGenerator[0].envs[0]
          = help: add it, or remove the reference

        for more: git kustomize-localize explain untracked-path
        checked 6 kustomizations with 6 references in commit <0> (HEAD): 1 warning
    "#]]);
    work.write("m/s.env", "a=b\n");
    assert_eq!(follow(&world), rules(&["untracked-path"]));
}
