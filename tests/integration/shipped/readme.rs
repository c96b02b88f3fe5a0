//! The claims of the README, and of the pages of the manual.

use std::collections::BTreeSet;

use git_kustomize_localize::finding::{Rule, WarningId};

use crate::copy::stories::story_1;
use crate::support::pages::{blocks, pages, section, source};
use crate::support::{Running, Sandbox, World, config};

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

/// Runs commands one after the other, and returns them with what they print.
fn played(world: &World, commands: &[&str]) -> String {
    let mut transcript = String::new();
    for command in commands {
        let output = match command.strip_prefix("git kustomize-localize ") {
            Some(words) => {
                let words: Vec<&str> = words.split(' ').collect();
                world.work.run(&words).success().stdout.clone()
            }
            None => {
                let mut shell = world.sandbox.command("sh", world.work.path());
                let output = Running::start(shell.args(["-c", command])).wait();
                output.success().stdout.clone()
            }
        };
        transcript.push_str(&format!("$ {command}\n{output}"));
    }
    transcript + "\n"
}

#[test]
fn every_command_prints_what_is_shown() {
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
        "git kustomize-localize explain cycle",
    ] {
        transcript.push_str(&played(&world, &[command]));
    }
    transcript.push_str(&played(
        &story_1(),
        &[
            "git kustomize-localize lock",
            "git add kustomize-localize.lock && git commit --quiet -m 'Lock what is remote'",
            "git kustomize-localize check",
            "git kustomize-localize --in-place",
            "git kustomize-localize verify localized/main",
        ],
    ));
    transcript.push_str(&check_of_a_change());
    transcript.push_str(&targets_of_a_cluster());
    transcript.push_str(&affected_by_a_change());
    transcript.push_str(&upstream_of_a_lock());
    let transcript = without_ids(&transcript)
        .replace(&version, "v5.8.1")
        // Not every machine allows the namespace.
        .replace(" by a dead proxy", "");
    // A build without a version is identified by its digest.
    let digest = regex::Regex::new(r"v5\.8\.1-[0-9a-f]{16}").unwrap();
    let transcript = digest.replace_all(&transcript, "v5.8.1").into_owned();
    let mut count = 0;
    for (path, text) in pages() {
        for block in blocks(&text, "console") {
            assert!(
                transcript.contains(&block),
                "{path} shows\n{block}\nbut this happens:\n{transcript}"
            );
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
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

/// Returns the output of `affected` for a branch that changes a file, the lock, and adds an application.
fn affected_by_a_change() -> String {
    let world = World::new();
    let bases = world.upstream_of("acme/bases", &[("kustomization.yaml", "resources: []\n")]);
    let base = "resources: [../../../base]\n";
    world.commit(&[
        ("base/kustomization.yaml", "resources: [config.yaml]\n"),
        ("base/config.yaml", &config("one")),
        ("apps/db/kustomization.yaml", "resources: []\n"),
        ("apps/web/prod/kustomization.yaml", base),
        (
            "apps/web/staging/kustomization.yaml",
            "resources: ['https://github.com/acme/bases?ref=main']\n",
        ),
    ]);
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    bases.commit("Raise the memory limit");
    world.work.git(&["switch", "--quiet", "--create", "change"]);
    world.work.run(&["update"]).success();
    world.commit(&[
        ("base/config.yaml", &config("two")),
        ("apps/new/kustomization.yaml", "resources: []\n"),
    ]);
    let output = world.work.run(&["affected", "--since", "main"]);
    let (listed, summary) = (&output.success().stdout, &output.stderr);
    format!("$ git kustomize-localize affected --since main\n{listed}{summary}\n")
}

/// Returns the output of `targets` for what Flux deploys from here, and from elsewhere.
fn targets_of_a_cluster() -> String {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let source = |name: &str, url: &str| {
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n\
             metadata: {{name: {name}, namespace: flux-system}}\n\
             spec: {{url: '{url}', ref: {{branch: main}}, interval: 1m}}\n"
        )
    };
    let kustomization = |name: &str, source: &str, path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
             metadata: {{name: {name}, namespace: flux-system}}\n\
             spec: {{path: {path}, prune: true, interval: 1m, sourceRef: {{kind: GitRepository, name: {source}}}}}\n"
        )
    };
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let prod = [
        (
            "flux-system",
            source("flux-system", "https://github.com/acme/fleet"),
        ),
        ("apps", kustomization("apps", "flux-system", "./apps/prod")),
        (
            "monitoring",
            kustomization("monitoring", "monitoring", "./deploy"),
        ),
        (
            "sources",
            source("monitoring", "https://github.com/acme/monitoring"),
        ),
    ];
    for (name, text) in prod {
        repo.write(&format!("clusters/prod/{name}.yaml"), text);
    }
    repo.write("apps/prod/kustomization.yaml", "resources: []\n");
    repo.commit("Begin");
    let shown = repo.run(&["targets"]).success().stdout.clone();
    format!("$ git kustomize-localize targets\n{shown}\n")
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
    let sandbox = Sandbox::new();
    let mut count = 0;
    for command in [
        "",
        "localize",
        "check",
        "lock",
        "update",
        "verify",
        "tree",
        "hook install",
    ] {
        let words: Vec<&str> = command.split_whitespace().collect();
        let page = sandbox.run(&sandbox.path(""), &[&["help"], words.as_slice()].concat());
        let page = page.success().stdout.clone();
        let (_, table) = page.split_once("\nOptions\n").unwrap();
        let options = options(&sandbox, &[words.as_slice(), &["--help"]].concat());
        for option in &options {
            assert!(
                table.contains(&format!("  `{option}`\n")),
                "{command}: {option}"
            );
        }
        count += options.len();
    }
    assert!(count > 100, "{count}");
}

/// Returns the options that a help names, as a page writes them.
fn options(sandbox: &Sandbox, args: &[&str]) -> BTreeSet<String> {
    let help = sandbox.run(&sandbox.path(""), args);
    // `  -m, --message <TEXT>` becomes `-m, --message TEXT`.
    help.success()
        .stdout
        .lines()
        .filter(|line| line.starts_with("  -") || line.starts_with("      --"))
        .map(|line| line.trim().replace(['<', '>'], ""))
        .collect()
}

#[test]
fn every_rule_and_warning_is_explained() {
    let sandbox = Sandbox::new();
    let explain = |ids: &[&str]| {
        let output = sandbox.run(&sandbox.path(""), &[&["explain"], ids].concat());
        output.success().stdout.clone()
    };
    let words = |text: &str| text.split_whitespace().collect::<Vec<&str>>().join(" ");
    let list = words(&explain(&[]));
    for rule in Rule::ALL {
        let (id, severity, summary) = (rule.id(), rule.default_level(), rule.summary());
        let row = format!("`{id}` default: {severity} finds: {}", words(summary));
        assert!(list.contains(&row), "{row}: {list}");
        let text = explain(&[id]);
        assert!(
            text.starts_with(&format!("{id} (rule): {}\n\n", summary.replace('`', ""))),
            "{text}"
        );
        let first = rule.explanation().trim().split("\n\n").next().unwrap();
        let first = without_links(first);
        assert!(words(&text).contains(&words(&first)), "{text}");
        assert!(!text.contains("](") && !text.contains("```"), "{text}");
    }
    for warning in WarningId::ALL {
        let (id, meaning) = (warning.id(), words(warning.meaning()));
        let row = format!("`{id}` {meaning}");
        assert!(list.contains(&row), "{row}: {list}");
        let text = explain(&[id]);
        assert!(text.contains(&format!("{id} (warning)\n\n")), "{text}");
        assert!(words(&text).contains(&meaning[1..]), "{text}");
    }
    let both = explain(&["cycle", "not-built"]);
    assert_eq!(both, explain(&["cycle"]) + "\n" + &explain(&["not-built"]));
    // An id of a rule and of a warning.
    assert!(explain(&["function"]).contains("function (warning)\n"));
    sandbox
        .run(&sandbox.path(""), &["explain", "cycel", "nothing-like-it"])
        .fails(2)
        .stderr_has("error: there is no rule or warning `cycel`")
        .stderr_has("did you mean `cycle`? git kustomize-localize explain cycle")
        .stderr_has("to list them: git kustomize-localize explain");
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
    let readme = source("README.md");
    let ci = source(".ci/run");
    let commands = blocks(section(&readme, "## Install"), "sh");
    let commands = commands.last().unwrap();
    for command in commands.lines().filter(|line| line.starts_with("cargo")) {
        let command = command.split('#').next().unwrap().trim();
        assert!(
            ci.lines().any(|line| line == command),
            "{command} is not in .ci/run"
        );
    }
    assert_eq!(commands.matches("cargo").count(), 2);
}

#[test]
fn the_readme_is_short() {
    let size = source("README.md").len();
    assert!(size <= 12_000, "{size} bytes");
}

#[test]
fn every_block_has_a_language_and_an_end() {
    for (path, text) in pages() {
        let fences = text.lines().enumerate();
        let fences: Vec<(usize, &str)> = fences
            .filter_map(|(number, line)| Some((number + 1, line.trim_start().strip_prefix("```")?)))
            .collect();
        let mut pairs = fences.chunks_exact(2);
        for pair in &mut pairs {
            let [(first, language), (last, end)] = pair else {
                unreachable!()
            };
            assert!(!language.is_empty(), "{path}:{first}: no language");
            assert!(end.is_empty(), "{path}:{last}: no end before it");
        }
        assert!(pairs.remainder().is_empty(), "{path}: no end");
    }
}
