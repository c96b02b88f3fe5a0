//! The claims of the README.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git_kustomize_localize::finding::{Rule, WarningId};

use crate::stories::story_1;
use crate::support::{Sandbox, World, config};

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the contents of the fenced blocks that are marked with `language`.
fn blocks(text: &str, language: &str) -> Vec<String> {
    text.split(&format!("```{language}\n"))
        .skip(1)
        .map(|rest| rest.split("```").next().unwrap().to_owned())
        .collect()
}

/// Returns the text with every object id and digest cut to `…`: the upstream of a test has others.
fn without_ids(text: &str) -> String {
    text.split_inclusive(|character: char| !character.is_ascii_hexdigit())
        .map(|part| {
            let id = part.trim_end_matches(|character: char| !character.is_ascii_hexdigit());
            match id.len() {
                12 | 40 | 64 => part.replace(id, "…"),
                _ => part.to_owned(),
            }
        })
        .collect()
}

#[test]
fn the_first_use_works_as_shown() {
    let world = story_1();
    let Some(kustomize) = world.sandbox.builds() else {
        return;
    };
    let version = kustomize.run(&world.sandbox, world.work.path(), &["version"]);
    let version = version.stdout.trim_end().to_owned();
    let mut transcript = String::new();
    for command in [
        "git kustomize-localize example/overlay --scope example",
        "git log -1 --format=%B localized/main",
        "git diff main:example/overlay/kustomization.yaml localized/main:localized-overlay/overlay/kustomization.yaml",
        "git show localized/main:localized-overlay/kustomize-localize.lock",
        "git log -1 --format='%(trailers:only)' localized/main",
        "git kustomize-localize lock",
        "git kustomize-localize --in-place --no-commit",
    ] {
        let unquoted = command.replace('\'', "");
        let words: Vec<&str> = unquoted.split(' ').skip(1).collect();
        let output = match words[0] {
            "kustomize-localize" => world.work.run(&words[1..]).success().stdout.clone(),
            _ => world.work.git(&words),
        };
        transcript.push_str(&format!("$ {command}\n{}\n\n", output.trim_end()));
    }
    transcript.push_str(&check_of_a_change());
    transcript.push_str(&upstream_of_a_lock());
    let transcript = without_ids(&transcript)
        .replace(&version, "v5.8.1")
        // Not every machine allows the namespace.
        .replace(" by a dead proxy", "");
    // A build without a version is identified by its digest.
    let digest = regex::Regex::new(r"v5\.8\.1-[0-9a-f]{16}").unwrap();
    let transcript = digest.replace_all(&transcript, "v5.8.1").into_owned();
    let shown = blocks(&file("README.md"), "console");
    assert!(!shown.is_empty());
    for block in shown {
        assert!(
            transcript.contains(&block),
            "the README shows\n{block}\nbut this happens:\n{transcript}"
        );
    }
}

/// Returns what `check` and `tree` say of a URL that was just staged.
fn check_of_a_change() -> String {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("base/kustomization.yaml", "resources:\n- config.yaml\n");
    repo.write("base/config.yaml", config("base"));
    repo.write("apps/web/kustomization.yaml", "resources:\n- ../../base\n");
    repo.commit("Begin");
    repo.write(
        "apps/web/kustomization.yaml",
        "resources:\n- ../../base\n- https://github.com/acme/bases//web?ref=v1.2.0\n",
    );
    repo.git(&["add", "--all"]);
    let checked = repo.run(&["check"]).fails(1).stdout.clone();
    let tree = repo.run(&["tree"]).success().stdout.clone();
    format!("$ git kustomize-localize check\n{checked}\n$ git kustomize-localize tree\n{tree}\n")
}

/// Returns the output of `verify --upstream` for a branch that moved forward, and for a tag that was moved.
fn upstream_of_a_lock() -> String {
    let world = World::new();
    let bases = world.upstream_of("acme/bases", &[("kustomization.yaml", "resources: []\n")]);
    bases.git(&["tag", "v1.2.0"]);
    world.commit(&[(
        "kustomization.yaml",
        "resources: ['https://github.com/acme/bases?ref=main', 'https://github.com/acme/bases?ref=v1.2.0']\n",
    )]);
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    bases.commit("Raise the memory limit");
    bases.git(&["tag", "--force", "v1.2.0"]);
    let told = world
        .work
        .run(&["verify", "--upstream"])
        .fails(1)
        .stdout
        .clone();
    format!("$ git kustomize-localize verify --upstream\n{told}\n")
}

#[test]
fn every_option_is_in_the_table() {
    let readme = file("README.md");
    let mut expected = options(&["--help"]);
    expected.extend(["TARGET".to_owned(), "NEW_DIR".to_owned()]);
    assert_eq!(first_column(section(&readme, "## Options")), expected);
    let mut check = options(&["check", "--help"]);
    check.insert("PATH".to_owned());
    assert_eq!(first_column(section(&readme, "## Check")), check);
    let mut tree = options(&["tree", "--help"]);
    tree.insert("TARGET".to_owned());
    assert_eq!(first_column(section(&readme, "## What names what")), tree);
    let mut verify = options(&["verify", "--help"]);
    verify.extend(["REV".to_owned(), "PATH".to_owned()]);
    assert_eq!(
        first_column(section(&readme, "## The gate of the branch")),
        verify
    );
    let lock = options(&["lock", "--help"]);
    let mut update = options(&["update", "--help"]);
    update.extend(["URL".to_owned(), "PATH".to_owned()]);
    update.extend(lock);
    assert_eq!(first_column(section(&readme, "## The lock")), update);
}

/// Returns the options that a help names, as the README writes them.
fn options(args: &[&str]) -> BTreeSet<String> {
    let sandbox = Sandbox::new();
    let help = sandbox.run(&sandbox.path(""), args);
    // `  -m, --message <TEXT>` becomes `-m, --message TEXT`.
    help.success()
        .stdout
        .lines()
        .filter(|line| line.trim_start().starts_with('-') && line.starts_with("  "))
        .filter(|line| line.starts_with("  -") || line.starts_with("      --"))
        .map(|line| line.trim().replace(['<', '>'], ""))
        .collect()
}

#[test]
fn every_rule_has_its_section() {
    let readme = file("README.md");
    let rules = section(&readme, "## Rules");
    let (table, sections) = rules.split_once("\n### ").unwrap();
    let rows: Vec<&str> = table
        .lines()
        .filter(|line| line.starts_with("| ["))
        .collect();
    let sections: Vec<(&str, String)> = sections
        .split("\n### ")
        .map(|section| {
            let (id, text) = section.split_once('\n').unwrap();
            // Text after the first paragraph is for those who read the README.
            let first = text.trim_start().split("\n\n").next().unwrap();
            let words: Vec<&str> = first.split_whitespace().collect();
            (id, words.join(" "))
        })
        .collect();
    assert_eq!(rows.len(), Rule::ALL.len());
    for ((rule, row), (id, text)) in Rule::ALL.iter().zip(rows).zip(sections) {
        let (name, severity) = (rule.id(), rule.default_severity().name());
        assert_eq!(
            row,
            format!("| [`{name}`](#{name}) | {severity} | {} |", rule.summary())
        );
        assert_eq!(id, name);
        assert_eq!(text, rule.explanation(), "{id}");
    }
}

#[test]
fn every_warning_is_in_the_table_with_its_meaning() {
    let ids = WarningId::ALL.iter().map(|warning| warning.id().to_owned());
    let expected: BTreeSet<String> = ids.collect();
    let readme = file("README.md");
    let table = section(&readme, "## Warnings");
    assert_eq!(first_column(table), expected);
    for warning in WarningId::ALL {
        let start = format!("| `{}` | ", warning.id());
        let mut rows = table.lines().filter_map(|line| line.strip_prefix(&start));
        let row = without_links(rows.next().unwrap().trim_end_matches(" |"));
        assert_eq!(row, warning.meaning());
    }
}

/// Returns Markdown with the texts of its links alone.
fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, (link, after))) = rest.split_once('[').and_then(|(before, link)| {
        let (text, rest) = link.split_once("](")?;
        Some((before, (text, rest.split_once(')')?.1)))
    }) {
        plain.push_str(before);
        plain.push_str(link);
        rest = after;
    }
    plain + rest
}

#[test]
fn the_two_commands_are_those_of_ci() {
    let readme = file("README.md");
    let ci = file(".ci/run");
    let commands = blocks(section(&readme, "## Try it"), "sh").concat();
    for command in commands.lines().filter(|line| line.starts_with("cargo")) {
        let command = command.split('#').next().unwrap().trim();
        assert!(
            ci.lines().any(|line| line == command),
            "{command} is not in .ci/run"
        );
    }
    assert_eq!(commands.matches("cargo").count(), 2);
}

/// Returns the text of the section with this heading.
fn section<'a>(readme: &'a str, heading: &str) -> &'a str {
    let (_, rest) = readme.split_once(&format!("\n{heading}\n")).unwrap();
    rest.split("\n## ").next().unwrap()
}

/// Returns what stands between the first backquotes of every row of a table.
fn first_column(text: &str) -> BTreeSet<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .map(|line| line.split('`').next().unwrap().to_owned())
        .collect()
}
