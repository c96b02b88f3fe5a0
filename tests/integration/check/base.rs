//! A change that is judged against its base: what it accepts itself does not count.

use serde_json::Value;

use crate::support::{Repo, Sandbox, config};

const ALLOWED: &str = "resources:\n- https://example.com/acme/base?ref=main # kustomize-localize: allow[remote-reference, floating-ref] ours\n";

fn work() -> (Sandbox, Repo) {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", "resources: [config.yaml]\n");
    repo.write("app/config.yaml", config("app"));
    repo.commit("clean");
    (sandbox, repo)
}

#[test]
fn a_comment_that_the_change_adds_does_not_count() {
    let (_sandbox, repo) = work();
    repo.write("app/kustomization.yaml", ALLOWED);
    repo.commit("allow itself");
    let base = ["check", "--rev", "HEAD", "--base"];
    let check = |rev: &str| repo.run_unchanged(&[&base[..], &[rev]].concat());
    check("HEAD^")
        .fails(1)
        .stdout_has("remote-reference")
        .lacks("[floating-ref]")
        .stdout_has("the comment at app/kustomization.yaml:2 does not count yet: in `HEAD^` no comment allows this");
    // Where it is in the base, it counts, also for another version of the same.
    check("HEAD").success();
    repo.write("app/kustomization.yaml", ALLOWED.replace("main", "trunk"));
    repo.commit("bump");
    check("HEAD^").success();
    repo.write("app/kustomization.yaml", ALLOWED.replace("acme", "evil"));
    repo.commit("another one");
    check("HEAD^").fails(1).stdout_has("does not count yet");
    // The base decides which comments count, not the change.
    repo.write(".kustomize-localize", "comments: accept\n");
    repo.commit("accept");
    check("HEAD~2").fails(1).stdout_has("does not count yet");
    check("HEAD").success();
}

#[test]
fn what_changes_in_the_configuration_is_shown() {
    let (_sandbox, repo) = work();
    let file = ".kustomize-localize";
    let entry = "- {url: 'https://u:hunter2@h.example/acme', reason: ours}";
    let both = format!("allow:\n{entry}\nhelm: true\n");
    // A file that attributes call binary, and one that the user has shown by a program.
    repo.write(".gitattributes", ".kustomize-localize -diff diff=x\n");
    repo.git(&["config", "diff.x.textconv", "false"]);
    repo.git(&["config", "diff.external", "false"]);
    repo.git(&["config", "color.ui", "always"]);
    repo.commit("attributes");
    let mut before = None;
    for (text, lines) in [
        (Some("helm: true\n"), &["+helm: true"][..]),
        (
            Some(&*both),
            &[
                "+allow:",
                "+- {url: 'https://h.example/acme', reason: ours}",
            ],
        ),
        // The same lines, in another order.
        (
            Some("exclude:\n- a\ninclude:\n- app\n"),
            &["-helm: true", "+exclude:", "+- a", "+- app"],
        ),
        (
            Some("exclude:\n- app/b\ninclude:\n- app\n"),
            &["-- a", "+- app/b"],
        ),
        (
            Some("include:\n- app\nexclude:\n- app/b\n"),
            &["-exclude:", "+exclude:"],
        ),
        (None, &["-include:", "-exclude:"]),
        (None, &[]),
    ] {
        match text {
            Some(text) => repo.write(file, text),
            None if before.is_some() => repo.remove(file),
            None => {}
        }
        before = text;
        repo.commit("policy");
        let arguments = ["check", "--rev", "HEAD", "--base", "HEAD^"];
        let output = repo.run_unchanged(&arguments);
        assert_eq!(
            output.stdout.contains("new in the configuration"),
            !lines.is_empty()
        );
        for line in lines {
            output.stdout_has(&format!("new in the configuration: {line}\n"));
        }
        output.lacks("hunter2");
        let arguments = [&arguments[..], &["--format=json"]].concat();
        let report: Value = serde_json::from_str(&repo.run(&arguments).stdout).unwrap();
        let shown = report["new_config"].as_array().unwrap();
        for line in lines {
            assert!(shown.iter().any(|one| one == line), "{line}: {shown:?}");
        }
    }
}
