//! What a team decides about a check: the configuration, and comments in the files.

use super::found;
use crate::support::{Repo, Sandbox, Transcript};

const FILE: &str = ".kustomize-localize";
const REMOTE: &str = "https://github.com/acme/bases//web?ref=v1";

fn repo(sandbox: &Sandbox, files: &[(&str, &str)]) -> Repo {
    let repo = sandbox.repo("work");
    for (path, text) in files {
        repo.write(path, text);
    }
    repo.git(&["add", "--all"]);
    repo
}

#[test]
fn the_configuration_comes_from_the_checked_tree() {
    let sandbox = Sandbox::new();
    let text = format!("resources:\n- {REMOTE}\n");
    let repo = repo(&sandbox, &[("a/kustomization.yaml", &text)]);
    repo.commit("without a configuration");
    let error = ["!remote-reference a/kustomization.yaml:2"];
    let warning = ["remote-reference a/kustomization.yaml:2"];
    assert_eq!(found(&repo, &[]), error);
    repo.write(FILE, "rules: {remote-reference: warning}\n");
    assert_eq!(found(&repo, &["--staged"]), error, "it is not staged");
    assert_eq!(found(&repo, &[]), warning);
    repo.git(&["add", FILE]);
    repo.write(FILE, "rules: {remote-reference: off}\n");
    assert_eq!(found(&repo, &["--staged"]), warning);
    assert_eq!(found(&repo, &[]), crate::support::NONE);
    assert_eq!(found(&repo, &["--rev", "HEAD"]), error);
    repo.commit("with one");
    assert_eq!(found(&repo, &["--rev", "HEAD"]), crate::support::NONE);
    assert_eq!(found(&repo, &["--rev", "HEAD^"]), error);
    // From a directory below it is the same one; one that lies there is none.
    repo.write(&format!("a/{FILE}"), "rules: {remote-reference: error}\n");
    repo.git(&["add", "--all"]);
    sandbox.run(&repo.path().join("a"), &["check"]).success().says(expect![[r#"
        checked 1 kustomization with 1 reference in the working tree: no problems found
    "#]]);
}

#[test]
fn a_configuration_that_cannot_be_read_stops_the_check() {
    let sandbox = Sandbox::new();
    let wrong = "helm: true\nexec: [rm, -rf, /]\nrules:\n  remote-refrence: off\nallow:\n- url: github.com\n";
    let repo = repo(&sandbox, &[("a/kustomization.yaml", ""), (FILE, wrong)]);
    let mut transcript = Transcript::default();
    for args in [&["check"][..], &["check", "--staged"], &["check", "--format", "json"], &["check", "a"]] {
        transcript.add(repo.run_unchanged(args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        $ git kustomize-localize check --staged
        error: .kustomize-localize:2:1: unknown field `exec`
          hint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
        $ git kustomize-localize check --format json
        {
          "version": 1,
          "tool": {
            "name": "git-kustomize-localize",
            "version": "…"
          },
          "source": "working-tree",
          "kustomizations": 0,
          "references": 0,
          "differing": 0,
          "untracked": [],
          "findings": [],
          "base": null,
          "new_config": [],
          "new_locked": [],
          "failures": [
            {
              "file": ".kustomize-localize",
              "line": 2,
              "column": 1,
              "field": "",
              "message": "unknown field `exec`",
              "hints": [
                "known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more"
              ]
            }
          ]
        }
        error: .kustomize-localize:2:1: unknown field `exec`
          hint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
        $ git kustomize-localize check a
        error: .kustomize-localize:2:1: unknown field `exec`
          hint: known are `rules`, `scopes`, `include`, `exclude`, `allow`, `sources`, `helm`, `licenses`, `load-restrictor`, `kustomize` and 8 more
    "#]]);
    repo.remove(FILE);
    repo.symlink(FILE, "elsewhere.yaml");
    repo.git(&["add", "--all"]);
    let mut transcript = Transcript::default();
    for args in [&["check"][..], &["check", "--staged"]] {
        transcript.add(repo.run(args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check
        $ git kustomize-localize check --staged
        error: `.kustomize-localize` is not a regular file
          hint: replace it with a file: the configuration is read there
    "#]]);
}
