//! What the formats make of findings in a tree in memory, and of hostile texts in the place of any of theirs.
//!
//! What a whole report looks like is in `tests/snapshots`.

use serde_json::{Value, json};

use super::formats::*;
use super::*;
use crate::check::BaseFindings;
use crate::check::testing::Scene;
use crate::commands::tests::{assert_valid, problem};
use crate::message::failure::Location;
use crate::message::finding::{Rule, Severity, Subject};
use crate::message::position::{Position, Span};
use crate::message::redact::is_hidden;
use crate::reference::Upstream;

/// A text that tries everything: ends of lines, controls of a terminal and of GitHub, Markdown, HTML.
const HOSTILE: &str = "a\n::set-output name=x::y\r\u{1b}[31m%0A##[stop-commands]x\u{202e}|`<b>&\u{2028}\u{9b}2J";
const SARIF: &str = include_str!("../../../tests/schemas/sarif-2.1.0.json");
const JSON: &str = include_str!("schema.json");
const VERBOSE: Shown = Shown { verbose: true, quiet: false, color: false, width: None };

/// Returns what is found in a kustomization.
fn checked(text: &str) -> Checked {
    Scene::of(text).check()
}

/// Returns the one finding of a kustomization, in line 2.
fn finding() -> Finding {
    checked("resources:\n- https://example.com/a.yaml\n").findings[0].clone()
}

fn reporting(findings: Vec<Finding>) -> Checked {
    Checked { findings, ..checked("namePrefix: a-\n") }
}

/// Returns the finding in so many kustomizations.
fn many(count: usize) -> Vec<Finding> {
    let one = finding();
    let of = |number| Finding { path: format!("{number}/kustomization.yaml"), ..one.clone() };
    (0..count).map(of).collect()
}

fn span(line: usize, column: usize, end_line: usize, end_column: usize) -> Option<Span> {
    Some(Span { start: Position { line, column }, end: Position { line: end_line, column: end_column } })
}

fn failure(message: &str) -> Failure {
    Failure::new(message).hint(message).at(Location {
        file: message.to_owned(),
        position: Position::new(2, 1),
        field: message.to_owned(),
        ..Location::default()
    })
}

/// Returns a report in which every text is another one.
fn telling(text: &str) -> Checked {
    let mut told = finding();
    told.path = text.to_owned();
    told.line_text = text.into();
    told.span = span(1, 1, 1, 3);
    told.field = text.to_owned();
    told.reference = text.to_owned();
    let [url, path, reference] = [text; 3].map(str::to_owned);
    told.subject = Subject::Remote(Upstream::Git { url, reference: Some(reference), submodules: true, path });
    told.message = text.to_owned();
    told.help = vec![text.to_owned(), format!("git add -- {text}")];
    let mut whole = told.clone();
    whole.span = None;
    let comment = "resources:\n- https://h/x # kustomize-localize: allow[remote-reference] ours\n";
    let mut allowed = checked(comment).findings[0].clone();
    allowed.path = text.to_owned();
    allowed.allowed.as_mut().unwrap().reason = text.to_owned();
    Checked {
        base: Some(BaseFindings { rev: text.to_owned(), commit: text.to_owned(), left_out: 1 }),
        failures: vec![failure(text)],
        ..reporting(vec![whole, told, allowed])
    }
}

fn read(document: &str) -> Value {
    serde_json::from_str(document).unwrap()
}

/// Returns the commands that the runner obeys (`ActionCommand.cs`, `ActionCommandManager.cs`).
fn commands(text: &str) -> Vec<&str> {
    text.lines().filter(|line| line.trim_start().starts_with("::") || line.contains("##[")).collect()
}

#[test]
fn no_text_is_a_command_or_hides_anything() {
    for text in [HOSTILE, "d\n::warning::pwn", "::error::x", "  ::error::x", "a\n \t##[error]x", "\u{202e}::x"] {
        let checked = telling(text);
        let reports = [human(&checked, VERBOSE), json(&checked), sarif(&checked)];
        for report in reports.iter().chain([&gitlab(&checked)]) {
            for line in inert(report).lines() {
                let is_command = line.trim_start().starts_with("::") || line.contains("##[");
                assert!(!is_command, "{text:?}: {line:?}");
                assert!(!line.contains(is_hidden), "{text:?}: {line:?}");
            }
        }
        let [human, document, log] = &reports;
        assert!(human.lines().last().unwrap().starts_with("checked 1 "));
        assert_eq!(read(document)["findings"][1]["path"], text);
        assert_eq!(read(document)["findings"][1]["subject"]["ref"], text);
        assert_valid(JSON, document);
        assert_valid(SARIF, log);
        let log = github(&checked, VERBOSE);
        assert!(!log.contains("##["), "{log}");
        assert!(log.lines().all(|line| !line.contains(is_hidden)), "{log}");
        let commands = commands(&log);
        assert_eq!(commands.len(), 3, "{commands:#?}");
        for command in commands {
            let (head, message) = command[2..].split_once("::").unwrap();
            assert!(head.starts_with("error file="), "{head}");
            assert!(!message.contains(['\n', '\r']), "{message}");
        }
    }
}

#[test]
fn every_rule_and_kind_is_in_the_schemas() {
    let of = |text: &str| checked(&format!("{text}\n")).findings[0].clone();
    let kinds = [
        of("resources: ['https://github.com/o/r//base?ref=v1']"),
        of("resources: [https://example.com/a.yaml]"),
        of("helmCharts: [{name: redis, repo: 'https://charts.example.com'}]"),
        of("resources: [gone.yaml]"),
    ];
    let kind = |finding: &Finding| read(&json(&reporting(vec![finding.clone()])));
    let names = kinds.each_ref().map(|one| kind(one)["findings"][0]["subject"]["kind"].clone());
    assert_eq!(names, ["git", "http", "helm", "path"]);
    let rules = Rule::ALL.iter().zip(kinds.iter().cycle());
    let findings = rules.map(|(rule, kind)| Finding { rule: *rule, severity: rule.default_severity(), ..kind.clone() });
    let mut checked = reporting(findings.collect());
    checked.source =
        Snapshot::Commit { rev: "main".to_owned(), commit: "0123456789abcdef0123456789abcdef01234567".to_owned() };
    checked.failures = vec![failure("x"), Failure::new("nothing works")];
    for checked in [checked.clone(), reporting(Vec::new())] {
        assert_valid(JSON, &json(&checked));
        assert_valid(SARIF, &sarif(&checked));
    }
    let run = &read(&sarif(&checked))["runs"][0];
    for result in run["results"].as_array().unwrap() {
        let index = result["ruleIndex"].as_u64().unwrap() as usize;
        let rule = &run["tool"]["driver"]["rules"][index];
        assert_eq!(rule["id"], result["ruleId"]);
    }
    let rules = &read(JSON)["properties"]["findings"]["items"]["properties"]["rule"]["enum"];
    let ids: Vec<&str> = Rule::ALL.iter().map(|rule| rule.id()).collect();
    assert_eq!(*rules, json!(ids));
    // And no others.
    let good = read(&json(&reporting(vec![finding()])));
    for (pointer, bad) in [
        ("/version", json!(2)),
        ("/source", json!("stash")),
        ("/findings/0/rule", json!("no-such-rule")),
        ("/findings/0/severity", json!("off")),
        ("/findings/0/line", json!(0)),
        ("/findings/0/subject/kind", json!("svn")),
        ("/findings/0/subject/kind", json!("git")),
        ("/findings/0/allowed", json!(false)),
        ("/references", json!(-1)),
    ] {
        let mut value = good.clone();
        *value.pointer_mut(pointer).unwrap() = bad;
        assert!(problem(JSON, &value.to_string()).is_some(), "{pointer}");
    }
}

#[test]
fn colour_changes_nothing_else() {
    let checked = checked("resources: [gone.yaml, https://example.com/a.yaml]\n");
    let text = human(&checked, Shown { color: true, ..VERBOSE });
    assert!(text.contains("\u{1b}[31m"), "{text:?}");
    assert_eq!(console::strip_ansi_codes(&text), human(&checked, VERBOSE));
}

#[test]
fn the_last_line_names_the_source_and_the_result() {
    let commit = |rev: &str| Snapshot::Commit {
        rev: rev.to_owned(),
        commit: "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d".to_owned(),
    };
    for (source, name) in [
        (Snapshot::Index, "the index"),
        (Snapshot::WorkingTree, "the working tree"),
        (commit("main~1"), "commit 1a2b3c4d5e6f (main~1)"),
        (commit("1a2b3c4"), "commit 1a2b3c4d5e6f"),
        (commit("a\nb"), "commit 1a2b3c4d5e6f (a\\nb)"),
    ] {
        let checked = Checked { source, ..reporting(Vec::new()) };
        assert_eq!(
            human(&checked, Shown::default()),
            format!("checked 1 kustomization with 0 references in {name}: no problems found\n")
        );
    }
    let unknown = Finding { rule: Rule::UnknownTarget, severity: Severity::Warning, ..finding() };
    let checked = Checked {
        base: Some(BaseFindings { rev: "1".repeat(40), commit: "2".repeat(40), left_out: 7 }),
        failures: vec![failure("x")],
        differing: 2,
        ..reporting([many(10_000), vec![unknown; 2]].concat())
    };
    let text = human(&checked, Shown::default());
    assert_eq!(text.matches("error[remote-reference]").count(), 10_000);
    let end = "
for more: git kustomize-localize explain remote-reference unknown-target
checked 1 kustomization with 0 references in the index (2 differ in the working tree; fixes count after `git add`): 10000 errors, 7 findings already in 222222222222, the merge base with 111111111111, 1 could not be checked; 2 targets unknown
";
    assert!(text.ends_with(end), "{}", &text[text.len() - 500..]);
}

/// Returns how a line is shown, and what is under it.
fn excerpt(line_text: &str, span: Option<Span>) -> Option<[String; 2]> {
    let finding = Finding { line_text: line_text.into(), span, field: String::new(), ..finding() };
    let text = human(&reporting(vec![finding]), Shown::default());
    assert!(!text.contains("hunter"), "{text}");
    let mut lines = text.lines().skip(3);
    let mut line = || Some(lines.next()?.split_once("| ")?.1.trim_end().to_owned());
    Some([line()?, line()?])
}

#[test]
fn the_caret_stands_under_the_span() {
    for (line, span, shown, carets) in [
        // Tabs take four columns.
        ("-\tab", span(1, 3, 1, 5), "-    ab", "     ^^"),
        // Wide characters take two.
        ("- 日本/ab", span(1, 3, 1, 6), "- 日本/ab", "  ^^^^^"),
        ("- 日本/ab", span(1, 6, 1, 8), "- 日本/ab", "       ^^"),
        // Marks take none.
        ("- e\u{301}/ab", span(1, 6, 1, 8), "- e\u{301}/ab", "    ^^"),
        // Something is marked always, also where the span does not fit the line.
        ("ab", span(1, 9, 1, 12), "ab", "  ^"),
        ("ab", span(0, 0, 0, 0), "ab", "^"),
        ("ab", span(1, 2, 1, 1), "ab", " ^"),
        ("- ab\r", span(1, 3, 1, 5), "- ab", "  ^^"),
    ] {
        assert_eq!(excerpt(line, span), Some([shown, carets].map(str::to_owned)), "{line:?}");
    }
}

#[test]
fn a_line_that_may_hold_a_password_is_not_shown() {
    for line in [
        "- https://user:hunter2@example.com/a # see b",
        "- 'https://user:hunter2@example.com/a'",
        "- key=https://user:hunter2@example.com/a",
        "- a # https://user:hunter2@example.com/a",
        r#"- "https:\x2f\u002fuser:hunter2\U00000040example.com/a""#,
        "- ht\u{1}tps://user:hunter2@example.com/a",
    ] {
        let end = line.find(" # ").unwrap_or(line.len());
        let end = line[..end].chars().count() + 1;
        assert_eq!(excerpt(line, span(1, 3, 1, end)), None, "{line}");
    }
    // What goes on in the next line, what a terminal does not show as it is, and what does not fit on it.
    for (line, end) in [("- \"https://user:hunter\\", 2), ("- >-", 2), ("- \u{1b}[31m", 1), (&*"a".repeat(161), 1)] {
        assert_eq!(excerpt(line, span(1, 3, end, 9)), None, "{line:?}");
    }
}

#[test]
fn no_format_shows_a_secret() {
    let text = "resources:\n\
        - https://me:hunter2@github.com/acme/lib//web?ref=v1\n\
        - https://files.example.com/x.yaml?sig=hunter2\n\
        - \"https://me:hunter2\\x40example.com/b.yaml\"\n\
        - 'git::https://me:hunter2@github.com/o/r?ref=main&token=hunter2' # https://me:hunter2@h\n\
        components: [\"https://me:hunter2@h/o/.github/x?ref=v1\"]\n\
        patches:\n- path: https://me:hunter2@files.example.com/latest/p.yaml # https://me:hunter2@h\n\
        helmCharts: [{name: nginx, repo: 'https://me:hunter2@charts.example'}]\n\
        generators:\n- |-\n  apiVersion: x/v1\n  kind: A\n  metadata: {name: a}\n  argsFromFile: https://me:hunter2@h/x\nconfigurations: ['']\n";
    let checked = checked(text);
    assert_eq!(checked.status(), 1);
    for rule in ["unsafe-reference", "function", "invalid-kustomization", "remote-chart", "remote-reference"] {
        assert!(checked.findings.iter().any(|one| one.rule.id() == rule), "{rule}");
    }
    let summary = github_summary(&checked, false);
    let reports =
        [human(&checked, VERBOSE), json(&checked), sarif(&checked), gitlab(&checked), github(&checked, VERBOSE)];
    for said in reports.iter().chain([&summary]) {
        assert!(said.contains("example.com/b.yaml"), "{said}");
        assert!(!said.contains("hunter2"), "{said}");
    }
}

#[test]
fn a_mark_before_the_text_moves_no_caret() {
    const REMOTE: &str = "https://example.com/crds.yaml";
    let text = format!("\u{feff}resources: [\"{REMOTE}\"]\r\n");
    let said = human(&checked(&text), Shown::default());
    let expected =
        format!("\n1 | resources: [\"{REMOTE}\"]\n  |             {} resources[0]\n", "^".repeat(REMOTE.len() + 2));
    assert!(said.contains(&expected), "{said}");
}

#[test]
fn a_path_becomes_a_uri() {
    let scene = Scene::default().file("a b/ü:%#?/kustomization.yaml", "resources: [x]\n");
    let run = &read(&sarif(&scene.check()))["runs"][0];
    assert_eq!(
        run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "a%20b/%C3%BC%3A%25%23%3F/kustomization.yaml"
    );
}

#[test]
fn only_a_comment_in_the_file_suppresses_in_source() {
    let url = "resources:\n- https://example.com/a.yaml";
    for (scene, kind, justification) in [
        (
            Scene::of(&format!("{url} # kustomize-localize: allow[remote-reference] ours\n")),
            "inSource",
            "ours (kustomization.yaml:2)",
        ),
        (
            Scene::of(&format!("{url}\n")).config("allow: [{url: example.com, refs: any, reason: r}]\n"),
            "external",
            "r (.kustomize-localize:1)",
        ),
    ] {
        let run = &read(&sarif(&scene.check()))["runs"][0];
        let suppression = &run["results"][0]["suppressions"][0];
        assert_eq!(suppression["kind"], kind);
        assert_eq!(suppression["justification"], justification);
    }
}

#[test]
fn a_message_of_sarif_holds_no_link() {
    let link = "`[click](https://evil.example)`".to_owned();
    let odd = Finding { message: link.clone(), help: vec![link], ..finding() };
    let text = sarif(&reporting(vec![odd]));
    assert!(!text.contains("]("), "{text}");
}

#[test]
fn no_two_issues_of_gitlab_have_one_fingerprint() {
    let scene = |more: &str| Scene::of(&format!("{more}resources:\n- https://example.com/a.yaml\n")).check();
    let mut checked = scene("");
    checked.findings = [checked.findings.clone(), checked.findings.clone()].concat();
    checked.failures = vec![failure("x")];
    let found = read(&gitlab(&checked));
    let prints = [0, 1, 2].map(|index| &found[index]["fingerprint"]);
    assert!(prints[0] != prints[1] && prints[1] != prints[2] && prints[0] != prints[2]);
    assert!(prints.iter().all(|print| print.as_str().unwrap().len() == 64));
    let failed = json!([found[0]["check_name"], found[0]["severity"], found[0]["location"]["lines"]["begin"]]);
    assert_eq!(failed, json!(["not-checked", "blocker", 2]));
    // They stay the same when the lines move.
    let mut moved = scene("# moved\n");
    let mut moved_failure = failure("x");
    moved_failure.location.as_mut().unwrap().position.line += 1;
    moved.failures = vec![moved_failure];
    let moved = read(&gitlab(&moved));
    assert_eq!([0, 1].map(|index| &moved[index]["fingerprint"]), [prints[0], prints[1]]);
    assert_eq!(gitlab(&reporting(Vec::new())), "[]\n");
}

#[test]
fn annotations_of_github_are_escaped_and_failures_are_among_them() {
    let odd = Finding {
        path: "a,b:c%2C.yaml".to_owned(),
        message: "100%".to_owned(),
        help: Vec::new(),
        span: span(1, 1, 4, 2),
        ..finding()
    };
    let mut checked = reporting(vec![odd]);
    checked.failures = vec![failure("x")];
    let text = github(&checked, Shown::default());
    assert_eq!(
        commands(&text),
        [
            "::error file=x,line=2,col=1,title=could not be checked::x%0Ahint: x",
            "::error file=a%2Cb%3Ac%252C.yaml,line=1,col=1,title=remote-reference::100%25",
        ]
    );
    assert!(text.contains("\nerror: x:2:1: x: x\n  hint: x\n"), "{text}");
    let quiet = Shown { quiet: true, ..Shown::default() };
    assert_eq!(github(&reporting(Vec::new()), quiet), "");
}

#[test]
fn the_summary_of_github_is_what_a_terminal_shows() {
    let mut checked = checked("resources:\n- gone.yaml\n");
    checked.failures = vec![failure("x")];
    let summary = github_summary(&checked, false);
    let text = human(&checked, Shown::default()).replace('>', "&gt;").replace('\n', "&#10;");
    let failures = "error: x:2:1: x: x&#10;  hint: x&#10;";
    assert_eq!(summary, format!("\n### git kustomize-localize check\n\n<pre>{text}{failures}</pre>\n\n"));
    let many = reporting(many(50));
    assert_eq!(github_summary(&many, false).matches("error[").count(), 0);
    assert_eq!(github_summary(&many, true).matches("error[").count(), 50);
    assert_eq!(github(&many, Shown { width: Some(80), ..Shown::default() }).matches("error[").count(), 50);
}

#[test]
fn no_text_leaves_the_summary() {
    let summary = github_summary(&telling(&format!("{HOSTILE}\n\n# [x](y)")), false);
    let (_, body) = summary.split_once("<pre>").unwrap();
    let body = body.strip_suffix("</pre>\n\n").unwrap();
    assert!(!body.contains(['<', '>', '"', '\n']), "{body}");
    assert!(body.contains("&lt;b&gt;&amp;"), "{body}");
}

#[test]
fn a_summary_fits() {
    let summary = github_summary(&reporting(many(20_000)), true);
    assert!(summary.len() < 1 << 20 && summary.len() > 900_000);
    assert!(summary.ends_with("… the rest is in the log</pre>\n\n"));
}

#[test]
fn of_many_findings_a_terminal_shows_how_many_there_are_of_what() {
    let brief = Shown { width: Some(80), ..Shown::default() };
    let scene = |count: usize| {
        let one = |scene: Scene, index: usize| {
            let reference = match index {
                _ if index == count - 1 => "gone.yaml".to_owned(),
                _ => format!("https://h{}.example/{index}.yaml", index % 2),
            };
            scene.file(&format!("app{index:03}/kustomization.yaml"), &format!("resources: ['{reference}']\n"))
        };
        (0..count).fold(Scene::default(), one).check()
    };
    let few = scene(20);
    assert_eq!(human(&few, brief), human(&few, Shown::default()));
    let many = scene(120);
    for shown in [Shown::default(), Shown { verbose: true, ..brief }, Shown { quiet: true, ..brief }] {
        assert_eq!(human(&many, shown).matches("error[").count(), 120);
    }
    let text = "findings by rule:
   119  remote-reference (error)
     1  missing-path (error)

findings by upstream:
    60  https://h0.example
    59  https://h1.example

to begin:
  see each: git kustomize-localize check -v --staged
  lock what can be locked, and list the rest: git kustomize-localize init

for more: git kustomize-localize explain remote-reference missing-path
checked 120 kustomizations with 120 references in the index: 120 errors
";
    assert_eq!(human(&many, brief), text);
    let base = BaseFindings { rev: "main~".to_owned(), commit: String::new(), left_out: 0 };
    let source = Snapshot::of(Some("main"));
    let asked = Checked { source, base: Some(base), paths: vec!["a b".to_owned()], ..many.clone() };
    let each = "  see each: git kustomize-localize check -v --rev main --base 'main~' ':/a b'\n";
    assert!(human(&asked, brief).contains(each), "{}", human(&asked, brief));
    let urls: String = (0..32).map(|n| format!("- https://github.com/o/r{n}//base\n")).collect();
    let text = human(&Scene::of(&format!("resources:\n{urls}")).check(), brief);
    assert!(text.contains("    22  in 22 others\n"), "{text}");
}

#[test]
fn what_is_said_of_several_lines_is_said_once() {
    let url = "https://example.com/a.yaml";
    let found = checked(&format!("resources:\n- {url}\n- {url}\n- {url}?other\n- {url}\n"));
    let text = human(&found, Shown::default());
    assert_eq!(text.matches(&format!("`{url}` is neither")).count(), 1, "{text}");
    assert!(text.contains("= note: and in lines 3, 5\n"), "{text}");
    assert!(text.contains(&format!("`{url}?other` is neither")) && text.contains("4 errors"), "{text}");
    let text = human(&found, VERBOSE);
    assert_eq!(text.matches(&format!("`{url}` is neither")).count(), 3, "{text}");
}

#[test]
fn what_several_targets_have_in_common_is_said_once() {
    use crate::check::testing::argo;
    let scene = |count: usize| {
        let apps: String = (0..count).map(|number| argo(&format!("path: 'a/{{{{x}}}}{number}'")) + "---\n").collect();
        Scene::default().file("argo.yaml", &apps).check()
    };
    let shown = Shown { width: Some(80), ..Shown::default() };
    let text = human(&scene(30), shown);
    let (block, _) = text.split_once("\n\n").unwrap();
    let lines: Vec<&str> = block.lines().collect();
    assert_eq!(lines[0], "warning[unknown-target]: 30 targets are unknown: the files do not tell what they deploy");
    assert_eq!(lines[1].trim_start(), "--> argo.yaml:5:60");
    assert!(lines[2].contains("note: Argo CD Application web (argo.yaml:1): `a/{{x}}0` is substituted"), "{text}");
    assert!(lines[7].ends_with("note: and 25 more: -v shows each"), "{text}");
    assert!(text.ends_with("; 30 targets unknown\n") && lines.len() == 9, "{text}");
    for (count, shown, heads) in [(1, shown, 1), (3, shown, 1), (3, VERBOSE, 3), (3, Shown { quiet: true, ..shown }, 0)]
    {
        assert_eq!(human(&scene(count), shown).matches("warning[").count(), heads, "{count}");
    }
    assert_eq!(json(&scene(3)).matches("cannot tell what").count(), 3);
}
