//! `check --format`: the output of each format for the same repository, and that all end alike. The details of each are
//! tested beside the formats.

use std::fs;

use git_kustomize_localize::check::Checked;
use git_kustomize_localize::report::check as report;
use serde_json::{Value, json};

use crate::support::{Memory, Output, Repo, Sandbox, schema, shown};

const FORMATS: [&str; 5] = ["human", "json", "sarif", "github", "gitlab"];
const REMOTE: &str = "https://example.com/crds.yaml";

/// A repository with a remote reference that nothing allows, in line 3, and one that is allowed.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.write(
        "apps/web/kustomization.yaml",
        format!("# web\nresources:\n- {REMOTE} # upstream\n"),
    );
    repo.write(
        "apps/db/kustomization.yaml",
        format!(
            "resources:\n# kustomize-localize: allow[remote-reference] released by us\n- {REMOTE}\n"
        ),
    );
    repo.git(&["add", "--all"]);
    repo
}

#[track_caller]
fn check(repo: &Repo, format: &str, args: &[&str]) -> Output {
    let before = repo.state();
    let mut all = vec!["check", "--format", format];
    all.extend(args);
    let output = repo.run(&all);
    before.assert_same(&repo.state());
    output
}

/// Returns the output of a check of files in memory in each format, and in the summary of a step.
fn written(checked: &Checked) -> [(&'static str, String); 6] {
    let verbose = report::Shown {
        verbose: true,
        ..shown()
    };
    [
        ("human", report::human(checked, verbose)),
        ("json", report::json(checked)),
        ("sarif", report::sarif(checked)),
        ("gitlab", report::gitlab(checked)),
        ("github", report::github(checked, verbose)),
        ("summary", report::github_summary(checked, false)),
    ]
}

/// Returns the report.
#[track_caller]
fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

/// Returns the report, which its schema allows.
#[track_caller]
fn sarif(text: &str) -> Value {
    schema::validate(include_str!("../../schemas/sarif-2.1.0.json"), text)
}

#[test]
fn every_format_ends_alike() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    for format in FORMATS {
        check(&repo, format, &[]).fails(1).stdout_has(REMOTE);
        check(&repo, format, &["apps/db"]).success();
        check(&repo, format, &["--no-allow", "apps/db"]).fails(1);
    }
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
fn text_for_people_shows_the_line() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let output = check(&repo, "human", &[]);
    output
        .fails(1)
        .stdout_has("error[remote-reference]: ")
        .stdout_has(" --> apps/web/kustomization.yaml:3:3\n")
        .stdout_has(&format!(
            "\n3 | - {REMOTE} # upstream\n  |   {} resources[0]\n",
            "^".repeat(REMOTE.len())
        ))
        .stdout_has("\n  = help: ")
        .lacks("apps/db");
    assert_eq!(
        output.stdout.lines().last(),
        Some("checked 2 kustomizations with 2 references in the index: 1 error, 1 allowed")
    );
    check(&repo, "human", &["-v"])
        .stdout_has("allowed[remote-reference]: ")
        .stdout_has("note: allowed by apps/db/kustomization.yaml:2: released by us");
    check(&repo, "human", &["-q"]).fails(1).lacks("checked 2");

    // The place is the same wherever the command is given.
    let below = sandbox.run(&repo.path().join("apps/web"), &["check"]);
    assert_eq!(below.stdout, output.stdout);
}

#[test]
fn colour_is_for_terminals_or_on_request() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    assert!(!check(&repo, "human", &[]).stdout.contains('\u{1b}'));
    let always = ["--color", "always"];
    assert!(check(&repo, "human", &always).stdout.contains("\u{1b}[31m"));
    for format in ["json", "sarif"] {
        let output = check(&repo, format, &always);
        assert!(!output.stdout.contains('\u{1b}'), "{format}");
    }
}

#[test]
fn json_is_one_object_whatever_happens() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let value = json(&check(&repo, "json", &[]).stdout);
    assert_eq!(value["source"], "index");
    assert_eq!(
        value["checked"],
        json!({"kustomizations": 2, "references": 2, "differing": 0, "unbuilt_targets": 0})
    );
    let found = &value["findings"];
    assert_eq!(found[0]["path"], "apps/db/kustomization.yaml");
    assert_eq!(
        found[0]["allowed"],
        json!({"by": "apps/db/kustomization.yaml:2", "reason": "released by us"})
    );
    assert_eq!(found[1]["path"], "apps/web/kustomization.yaml");
    assert_eq!(
        (
            &found[1]["line"],
            &found[1]["column"],
            &found[1]["end_column"]
        ),
        (&json!(3), &json!(3), &json!(3 + REMOTE.len()))
    );
    assert_eq!(found[1]["reference"], REMOTE);
    assert_eq!(found[1]["allowed"], Value::Null);

    let commit = repo.commit("Begin");
    let value = json(&check(&repo, "json", &["--rev", "HEAD", "--new-only=HEAD"]).stdout);
    assert_eq!(value["source"], "commit");
    assert_eq!(value["commit"], commit.trim());
    assert_eq!(value["new_only"], json!({"base": "HEAD", "left_out": 1}));
    let value = json(&check(&repo, "json", &["--working-tree"]).stdout);
    assert_eq!(value["source"], "working-tree");

    for (args, source) in [
        (["--rev", "no-such"], "commit"),
        (["--staged", "no/such/path"], "index"),
    ] {
        let output = check(&repo, "json", &args);
        output.fails(2).stderr_has("error: ");
        let value = json(&output.stdout);
        assert_eq!(value["source"], source);
        let message = value["failures"][0]["message"].as_str().unwrap();
        assert!(message.contains("no"), "{message}");
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
        &["affected", "--since", "no-such"],
        &["verify", "no-such"],
        &["lock", "no/such/path"],
        &["update", "no-such"],
        &["no/such/path"],
        &["--in-place", "--rev", "no-such"],
    ] {
        let output = repo.run(&[args, &["--format", "json"]].concat());
        output.fails(2).stderr_has("error: ");
        let value: Value = serde_json::from_str(&output.stdout)
            .unwrap_or_else(|error| panic!("{error}: {output:?}"));
        let failures = value.get("failures").or(value.get("errors"));
        let message = failures.and_then(|failures| failures[0]["message"].as_str());
        assert!(
            message.is_some_and(|it| it.contains("no")),
            "{args:?}: {value}"
        );
    }
}

#[test]
fn sarif_is_sarif() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let value = sarif(&check(&repo, "sarif", &[]).stdout);
    let results = &value["runs"][0]["results"];
    assert_eq!(results[0]["suppressions"][0]["kind"], "inSource");
    assert_eq!(results[1]["ruleId"], "remote-reference");
    assert_eq!(results[1]["suppressions"], Value::Null);
    let print = &results[1]["partialFingerprints"];

    // Lines above move; the finding stays the same.
    repo.write(
        "apps/web/kustomization.yaml",
        format!("# web\n\n\nresources:\n- config.yaml\n- {REMOTE}\n"),
    );
    repo.write("apps/web/config.yaml", crate::support::config("a"));
    repo.git(&["add", "--all"]);
    let moved = sarif(&check(&repo, "sarif", &[]).stdout);
    let moved = &moved["runs"][0]["results"][1];
    assert_eq!(&moved["partialFingerprints"], print);
    assert_eq!(
        moved["locations"][0]["physicalLocation"]["region"]["startLine"],
        6
    );

    let output = check(&repo, "sarif", &["--rev", "no-such"]);
    let value = sarif(&output.fails(2).stdout);
    let invocation = &value["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let said = &invocation["toolExecutionNotifications"][0]["message"]["text"];
    assert!(said.as_str().unwrap().contains("no-such"), "{said}");
}

#[test]
fn github_gets_annotations_and_a_summary() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let summary = sandbox.path("summary.md");
    fs::write(&summary, "of another step\n").unwrap();
    sandbox.set("GITHUB_STEP_SUMMARY", &summary);
    let output = check(&repo, "github", &[]);
    output
        .fails(1)
        .stdout_has(&format!("- {REMOTE} # upstream"))
        .stdout_has("\n::error file=apps/web/kustomization.yaml,line=3,col=3,endColumn=32,title=remote-reference::");
    let written = fs::read_to_string(&summary).unwrap();
    assert!(written.starts_with("of another step\n\n### "), "{written}");
    assert!(written.contains("<code>apps/web/kustomization.yaml:3:3</code>"));

    // Nothing could be checked: the step says why in its summary, too.
    let output = check(&repo, "github", &["no/such/path"]);
    output
        .fails(2)
        .stdout_has("\n::error title=could not be looked at::");
    assert_eq!(output.stderr, "");
    let written = fs::read_to_string(&summary).unwrap();
    assert!(written.contains("<td>failure</td>"), "{written}");

    sandbox.set("GITHUB_STEP_SUMMARY", sandbox.path("no/such/file"));
    check(&repo, "github", &[])
        .fails(2)
        .stdout_has("::error file=apps/web")
        .stderr_has("could not write the summary");
    sandbox.unset("GITHUB_STEP_SUMMARY");
    check(&repo, "github", &[]).fails(1);
}

/// Returns what a runner of GitHub Actions takes for commands.
fn commands(log: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut stopped = None;
    for line in log.lines() {
        let command = line.trim_start();
        if let Some(word) = stopped {
            if command == format!("::{word}::") {
                stopped = None;
            }
        } else if let Some(word) = command.strip_prefix("::stop-commands::") {
            stopped = Some(word);
        } else if command.starts_with("::") || line.contains("##[") {
            found.push(line);
        }
    }
    found
}

#[test]
fn text_of_files_is_shown_and_not_obeyed() {
    let hostile = "##[set-output name=a]b %0A::set-output name=c::d \u{202e}|`<img src=x>[x](y)";
    let directory = "##[stop-commands]a\n::set-output name=e::f\u{1b}[2J";
    let path = format!("{directory}/kustomization.yaml");
    let text = format!("resources:\n- {REMOTE} # {hostile}\n- 'no/such {hostile}'\n");
    let checked = Memory::of(&[(&path, &text)]).checked();
    assert_eq!(checked.status(), 1);
    let written = written(&checked);
    for (format, said) in &written {
        let hidden = |one: char| (one.is_control() && one != '\n') || one == '\u{202e}';
        assert!(!said.contains(hidden), "{format}: {said:?}");
    }
    let [_, (_, object), (_, log), _, (_, annotations), (_, summary)] = &written;
    assert_eq!(json(object)["findings"][0]["path"], path);
    sarif(log);
    let commands = commands(annotations);
    assert!(!commands.is_empty());
    for command in commands {
        assert!(command.starts_with("::error file="), "{command}");
    }
    assert!(!summary.contains("<img"), "{summary}");
}

#[test]
fn no_format_shows_a_password() {
    let text = "resources:\n- https://user:hunter2@example.com/a.yaml\n- \"https://user:hunter2\\x40example.com/b.yaml\"\n- 'git::https://user:hunter2@github.com/o/r?ref=main&token=hunter2' # https://user:hunter2@example.com\n";
    let checked = Memory::of(&[("kustomization.yaml", text)]).checked();
    assert_eq!(checked.status(), 1);
    for (format, said) in written(&checked) {
        assert!(said.contains("example.com/b.yaml"), "{format}: {said}");
        assert!(!said.contains("hunter2"), "{format}: {said}");
    }
}

#[test]
fn more_than_github_shows_is_counted() {
    let urls: String = (0..13)
        .map(|n| format!("- https://example.com/{n}.yaml\n"))
        .collect();
    let memory = Memory::of(&[("kustomization.yaml", &format!("resources:\n{urls}"))]);
    let log = report::github(&memory.checked(), shown());
    let count = |kind: &str| {
        commands(&log)
            .iter()
            .filter(|line| line.starts_with(kind))
            .count()
    };
    assert_eq!(count("::error "), 10);
    assert_eq!(count("::notice "), 1);
    assert!(
        log.contains(" more: all of them are in the log and in the summary"),
        "{log}"
    );
    assert!(memory.findings().len() >= 13);
}

#[test]
fn a_mark_before_the_text_moves_no_caret() {
    let text = format!("\u{feff}resources: [\"{REMOTE}\"]\r\n");
    let said = Memory::of(&[("kustomization.yaml", &text)]).human();
    let expected = format!(
        "\n1 | resources: [\"{REMOTE}\"]\n  |             {} resources[0]\n",
        "^".repeat(REMOTE.len() + 2)
    );
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn names_of_files_are_no_commands_in_any_output() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let names = [
        "d\n::warning::pwn",
        "::error::x",
        "##[error]x",
        "a\u{202e}b",
    ];
    for name in names {
        repo.write(
            &format!("{name}/kustomization.yaml"),
            "resources: [https://example.com/x.yaml, new.yaml, gone.yaml, ../out.yaml, \"x\\n::error::y\"]\n",
        );
        repo.write(&format!("{name}/new.yaml"), "a: b\n");
    }
    repo.write("out.yaml", "a: b\n");
    repo.git(&["add", "*kustomization.yaml", "out.yaml"]);
    repo.git(&["commit", "-qm", "names"]);
    sandbox.unset("GITHUB_STEP_SUMMARY");
    let formats = |format: &'static str| ["check", "--verbose", "--format", format];
    let commands: Vec<Vec<&str>> = vec![
        formats("human").to_vec(),
        formats("json").to_vec(),
        formats("sarif").to_vec(),
        formats("github").to_vec(),
        vec!["tree"],
        vec!["tree", "--format", "json"],
        vec!["tree", "--format", "mermaid"],
        vec!["lock", "--offline"],
        vec!["lock", "--offline", "--format", "json"],
        vec!["--in-place", "--no-commit", "--offline"],
        vec!["verify"],
        vec!["hook", "run", "pre-commit"],
    ];
    for args in commands {
        let output = repo.run(&args);
        let mut stopped = false;
        for line in output.stdout.lines().chain(output.stderr.lines()) {
            let begin = line.trim_start();
            let is_ours = args.contains(&"github")
                && [
                    "::stop-commands::",
                    "::error file=",
                    "::warning file=",
                    "::notice title=",
                ]
                .iter()
                .any(|ours| line.starts_with(ours));
            let is_end = stopped && line.len() == 68 && line.ends_with("::");
            stopped = (stopped || line.starts_with("::stop-commands::")) && !is_end;
            assert!(
                is_ours || is_end || !begin.starts_with("::"),
                "{args:?}: {line:?}"
            );
            assert!(!line.contains("##["), "{args:?}: {line:?}");
            let is_hidden = |c: char| c.is_control() || c == '\u{202e}';
            assert!(!line.contains(is_hidden), "{args:?}: {line:?}");
        }
    }
    // The help of a finding works.
    let text = repo.run(&["check"]).stdout;
    let marker = "= help: git add -f -- ";
    let adds: Vec<&str> = text
        .lines()
        .filter_map(|line| Some(line.split_once(marker)?.1))
        .collect();
    assert_eq!(adds.len(), names.len(), "{text}");
    for add in adds {
        let mut shell = sandbox.command("sh", repo.path());
        let output = shell
            .args(["-c", &format!("git add -f -- {add}")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{add}: {output:?}");
    }
    let staged = repo.git(&["diff", "--cached", "--name-only", "-z"]);
    assert_eq!(staged.matches("/new.yaml\0").count(), names.len());
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
        (
            output.status.code(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )
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
        assert_eq!(
            run(args, writer.into()),
            (Some(0), String::new()),
            "{args:?}"
        );
    }
}
