//! `check --format`: that all formats end alike, what they say of the same, and what a runner obeys of it. The details
//! of each are tested beside the formats.

use std::fs;

use serde_json::{Value, json};

use super::{report, shell};
use crate::support::{Output, Repo, Sandbox, schema};

const FORMATS: [&str; 5] = ["human", "json", "sarif", "github", "gitlab"];
const REMOTE: &str = "https://example.com/crds.yaml";

/// A repository with a remote reference that nothing allows, in line 3, and one that is allowed.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.write("apps/web/kustomization.yaml", format!("# web\nresources:\n- {REMOTE} # upstream\n"));
    repo.write(
        "apps/db/kustomization.yaml",
        format!("resources:\n# kustomize-localize: allow[remote-reference] released by us\n- {REMOTE}\n"),
    );
    repo.git(&["add", "--all"]);
    repo
}

#[track_caller]
fn check(repo: &Repo, format: &str, args: &[&str]) -> Output {
    super::check(repo, &[&["--format", format], args].concat())
}

#[test]
fn every_format_ends_alike() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);

    for format in FORMATS {
        let output = check(&repo, format, &[]);
        output.fails(1).stdout_has(REMOTE).lacks("\u{1b}");
        check(&repo, format, &["apps/db"]).success();
        let coloured = check(&repo, format, &["--color", "always"]).stdout;
        let is_for_people = format == "human" || format == "github";
        assert!(is_for_people || coloured == output.stdout, "{format}");
        assert_eq!(coloured.contains("\u{1b}[31m"), is_for_people, "{format}");
    }

    let sarif = check(&repo, "sarif", &["--rev", "no-such"]);
    let sarif = [check(&repo, "sarif", &[]), sarif]
        .map(|output| schema::validate(include_str!("../../schemas/sarif-2.1.0.json"), &output.stdout));
    let successful = sarif.map(|log| log["runs"][0]["invocations"][0]["executionSuccessful"].clone());
    assert_eq!(successful, [true, false]);
    repo.write("apps/web/kustomization.yaml", "resources: [\n");
    repo.write("kustomize-localize.lock", "version: 7\n");
    repo.git(&["add", "--all"]);
    for format in FORMATS {
        let output = check(&repo, format, &[]);
        output.fails(2);
        let said = format!("{}{}", output.stdout, output.stderr);
        assert!(said.contains("kustomize-localize.lock"), "{said}");
    }
}

#[test]
fn json_says_what_was_checked() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let commit = repo.commit("Begin");

    for (args, status, source) in [
        (&[][..], 1, "working-tree"),
        (&["--staged"], 1, "index"),
        (&["--rev", "HEAD", "--base=HEAD"], 0, "commit"),
        (&["--rev", "no-such"], 2, "commit"),
        (&["--staged", "no/such/path"], 2, "index"),
    ] {
        let (output, value) = report(&repo, args);
        assert_eq!((output.status, &value["source"]), (status, &json!(source)));
        if status < 2 {
            assert_eq!(value["kustomizations"], 2);
        } else {
            output.stderr_has("error: ");
            let message = value["failures"][0]["message"].as_str().unwrap();
            assert!(message.contains("no"), "{message}");
        }
        if status == 0 {
            assert_eq!(value["commit"], commit.trim());
            assert_eq!(value["base"], json!({"rev": "HEAD", "commit": commit.trim(), "left_out": 1}));
        }
    }
}

#[test]
fn a_failure_is_json_for_every_command() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.commit("Begin");

    for args in [
        &["check", "--rev", "no-such"][..],
        &["tree", "--rev", "no-such"],
        &["targets", "--rev", "no-such"],
        &["affected", "no-such"],
        &["verify", "no-such"],
        &["update", "no-such"],
        &["no/such/path"],
        &["branch", "--rev", "no-such"],
    ] {
        let output = repo.run(&[args, &["--format", "json"]].concat());
        output.fails(2).stderr_has("error: ");
        let value: Value = serde_json::from_str(&output.stdout).unwrap();
        let failures = value.get("failures").or(value.get("errors"));
        let message = failures.and_then(|failures| failures[0]["message"].as_str());
        assert!(message.is_some_and(|it| it.contains("no")), "{args:?}: {value}");
    }
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let summary = sandbox.path("summary.md");
    fs::write(&summary, "of another step\n").unwrap();
    sandbox.set("GITHUB_STEP_SUMMARY", &summary);
    check(&repo, "github", &[]).fails(1).says(expect![[r#"
        error[remote-reference]: `https://example.com/crds.yaml` is neither localized nor locked
         --> apps/web/kustomization.yaml:3:3
          |
        3 | - https://example.com/crds.yaml # upstream
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/apps/web

        for more: git kustomize-localize explain remote-reference
        checked 2 kustomizations with 2 references in the working tree: 1 error, 1 allowed
        ::error file=apps/web/kustomization.yaml,line=3,col=3,title=remote-reference::`https://example.com/crds.yaml` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/apps/web
    "#]]);
    let written = fs::read_to_string(&summary).unwrap();
    assert!(written.starts_with("of another step\n\n### "), "{written}");
    assert!(written.contains("--&gt; apps/web/kustomization.yaml:3:3"), "{written}");

    // Nothing could be checked: the step says why in its summary, too.
    let output = check(&repo, "github", &["no/such/path"]);
    output.fails(2).says(expect![[r#"
        error: no kustomization in `no/such/path`
          hint: name a directory that contains a kustomization, or none, for all of them
        ::error title=could not be checked::no kustomization in `no/such/path`%0Ahint: name a directory that contains a kustomization, or none, for all of them
    "#]]);
    assert_eq!(output.stderr, "");
    let written = fs::read_to_string(&summary).unwrap();
    assert!(written.contains("error: "), "{written}");

    sandbox.set("GITHUB_STEP_SUMMARY", sandbox.path("no/such/file"));
    check(&repo, "github", &[])
        .fails(2)
        .says(expect![[r#"
            error[remote-reference]: `https://example.com/crds.yaml` is neither localized nor locked
             --> apps/web/kustomization.yaml:3:3
              |
            3 | - https://example.com/crds.yaml # upstream
              |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
              = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
              = help: or vendor it: git kustomize-localize vendor :/apps/web

            for more: git kustomize-localize explain remote-reference
            checked 2 kustomizations with 2 references in the working tree: 1 error, 1 allowed, 1 could not be checked
            error: could not write the summary to `/home/me/no/such/file`: No such file or directory (os error 2)
            ::error title=could not be checked::could not write the summary to `/home/me/no/such/file`: No such file or directory (os error 2)
            ::error file=apps/web/kustomization.yaml,line=3,col=3,title=remote-reference::`https://example.com/crds.yaml` is neither localized nor locked%0Akeep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock%0Aor vendor it: git kustomize-localize vendor :/apps/web
        "#]]);
}

#[test]
fn names_of_files_are_no_commands_in_any_output() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let names = ["d\n::warning::pwn", "::error::x", "##[error]x", "a\u{202e}b"];
    for name in names {
        repo.write(
            &format!("{name}/kustomization.yaml"),
            "resources: # ##[set-output name=a]b %0A::set-output name=c::d \u{202e}|`<img src=x>[x](y)\n- https://example.com/x.yaml # \u{202e}##[error]x\n- new.yaml\n- gone.yaml\n- ../out.yaml\n- \"x\\n::error::y\"\n",
        );
        repo.write(&format!("{name}/new.yaml"), "a: b\n");
    }
    repo.write("out.yaml", "a: b\n");
    repo.git(&["add", "*kustomization.yaml", "out.yaml"]);
    repo.git(&["commit", "-qm", "names"]);
    let summary = sandbox.path("summary.md");
    fs::write(&summary, "").unwrap();
    sandbox.set("GITHUB_STEP_SUMMARY", &summary);
    let formats = |format: &'static str| ["check", "--verbose", "--format", format];
    let commands: Vec<Vec<&str>> = vec![
        formats("human").to_vec(),
        formats("json").to_vec(),
        formats("sarif").to_vec(),
        formats("github").to_vec(),
        vec!["tree"],
        vec!["tree", "--format", "json"],
        vec!["lock", "--offline"],
        vec!["lock", "--offline", "--format", "json"],
        vec!["vendor", "--offline"],
        vec!["verify"],
        vec!["hook", "run", "pre-commit"],
    ];
    for args in commands {
        let output = repo.run(&args);
        for line in output.stdout.lines().chain(output.stderr.lines()) {
            let ours = ["::error file=", "::warning file="];
            let is_ours = args.contains(&"github") && ours.iter().any(|ours| line.starts_with(ours));
            assert!(is_ours || !line.trim_start().starts_with("::"), "{args:?}: {line:?}");
            assert!(!line.contains("##["), "{args:?}: {line:?}");
            let is_hidden = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!line.contains(is_hidden), "{args:?}: {line:?}");
        }
    }
    let summary = fs::read_to_string(summary).unwrap();
    assert!(!summary.is_empty() && !summary.contains("<img"), "{summary}");
    // The help of a finding works where every character of its path is shown, and means nothing else where not.
    let text = repo.run(&["check", "--staged"]).stdout;
    let marker = "= help: git add -f -- ";
    let adds: Vec<&str> = text.lines().filter_map(|line| Some(line.split_once(marker)?.1)).collect();
    assert_eq!(adds.len(), names.len(), "{text}");
    for add in adds {
        let added = shell(&repo, "", &format!("git add -f -- {add}"));
        assert_eq!(added.status == 0, add.contains("::error::x"), "{add}");
    }
    assert_eq!(repo.git(&["diff", "--cached", "--name-only", "-z"]), "::error::x/new.yaml\0");
}

#[cfg(target_os = "linux")]
#[test]
fn a_report_that_cannot_be_written_is_a_failure() {
    use std::process::{Command, Stdio};

    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("kustomization.yaml", "namePrefix: a-\n");
    repo.git(&["add", "--all"]);
    let run = |args: &[&str], stdout: Stdio| {
        let program = env!("CARGO_BIN_EXE_git-kustomize-localize");
        let mut command: Command = sandbox.command(program, repo.path());
        let output = command.args(args).stdout(stdout).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for args in [
        &["check"][..],
        &["check", "--format", "json"],
        &["check", "--format", "sarif"],
        &["check", "--format", "github"],
        &["tree"],
        &["generate", "completion", "bash"],
        &["--version"],
        &["-h"],
    ] {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let (status, said) = run(args, full.into());
        assert_eq!(status, Some(2), "{args:?}: {said}");
        let message = "error: could not write to standard output: No space left on device";
        assert_eq!(said.matches(message).count(), 1, "{args:?}: {said}");
        // A reader that has gone away has read what it wanted.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        assert_eq!(run(args, writer.into()), (Some(0), String::new()), "{args:?}");
    }
}
