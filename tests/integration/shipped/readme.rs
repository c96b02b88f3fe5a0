//! The claims of the README, and of the pages of the manual.

use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use git_kustomize_localize::seams::Rule;

use super::{said, top};
use crate::copy::stories::story_1;
use crate::support::pages::{blocks, pages, section, source};
use crate::support::{Kustomize, Running, Sandbox, World, config};

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

/// Returns the world that a page names behind `console`, where its commands are played.
fn scene(name: &str) -> World {
    match name {
        "fresh" => story_1(),
        "typed" => typed(),
        "raised" => raised(),
        "locked" => after("lock"),
        "copied" => after("example/overlay --scope example"),
        "change" => change(),
        "cluster" => cluster(),
        "pull-request" => pull_request(),
        "later" => later(),
        _ => panic!("no scene {name}"),
    }
}

/// What the README lets people type, where it says `/tmp/try`.
fn typed() -> World {
    let mut world = World::new();
    let top = world.sandbox.path("try");
    let script = blocks(section(&source("README.md"), "## First use"), "sh").remove(0);
    let script = script.replace("/tmp/try", top.to_str().unwrap());
    let mut shell = world.sandbox.command("sh", &world.sandbox.path(""));
    Running::start(shell.args(["-ec", &script])).wait().success();
    world.work = world.sandbox.repo("try/fleet");
    world
}

/// The same later, when there is another version.
fn raised() -> World {
    let world = typed();
    for args in ["init", "branch"] {
        world.work.run(&[args]).success();
        world.work.git(&["add", "--all"]);
        world.work.git(&["commit", "--quiet", "--allow-empty", "-m", args]);
    }
    let bases = world.sandbox.repo("try/bases");
    bases.commit("two");
    bases.git(&["tag", "v2"]);
    world
}

/// Returns the story after this.
fn after(args: &str) -> World {
    let world = story_1();
    world.sandbox.builds();
    let args: Vec<&str> = args.split(' ').collect();
    world.work.run(&args).success();
    world
}

/// Runs the commands of a block one after the other, and returns them with what they print.
fn played(world: &World, block: &str) -> String {
    let mut transcript = String::new();
    for command in block.lines().filter_map(|line| line.strip_prefix("$ ")) {
        let output = match command.strip_prefix("git kustomize-localize ") {
            Some(words) => world.work.run(&words.split(' ').collect::<Vec<_>>()),
            None => {
                let mut shell = world.sandbox.command("sh", world.work.path());
                Running::start(shell.args(["-c", command])).wait()
            }
        };
        assert!([0, 1].contains(&output.status), "{transcript}\n{output:?}");
        transcript += &format!("$ {command}\n{}{}", output.stdout, output.stderr);
    }
    transcript
}

#[test]
fn every_command_prints_what_is_shown() {
    let Some(kustomize) = Kustomize::find() else { return };
    let version = kustomize.run(&Sandbox::new(), Path::new("/"), &["version"]);
    let version = version.success().stdout.trim_end().to_owned();
    // A build without a version is identified by its digest.
    let digest = regex::Regex::new(r"v5\.8\.1-[0-9a-f]{16}").unwrap();
    let mut worlds = BTreeMap::new();
    let mut count = 0;
    for (path, text) in pages() {
        assert!(!text.contains("```console\n"), "{path}: a block names no scene");
        for fence in text.split("```console ").skip(1) {
            let (name, rest) = fence.split_once('\n').unwrap();
            let block = rest.split("```").next().unwrap();
            // What is only looked at is made once.
            let made = || Rc::new(scene(name));
            let world = match name {
                "fresh" | "locked" => made(),
                _ => Rc::clone(worlds.entry(name.to_owned()).or_insert_with(made)),
            };
            world.sandbox.builds();
            let happens = without_ids(&played(&world, block))
                .replace(&version, "v5.8.1")
                .replace(world.sandbox.path("try").to_str().unwrap(), "/tmp/try")
                // Not every machine allows the sandbox.
                .replace(" by a proxy only (no sandbox on this machine)", "");
            let happens = digest.replace_all(&happens, "v5.8.1");
            // Of a file that is long, a page may show the beginning.
            assert!(
                happens.starts_with(block),
                "{path} shows\n{block}\nbut in the scene `{name}` this happens:\n{happens}"
            );
            count += 1;
        }
    }
    assert!(count >= 10, "{count}");
}

/// A URL was just staged.
fn change() -> World {
    let world = World::new();
    let root = "resources:\n- ../../base\n";
    world.commit(&[
        ("base/kustomization.yaml", "resources:\n- config.yaml\n"),
        ("base/config.yaml", &config("base")),
        ("apps/web/kustomization.yaml", root),
    ]);
    let more = format!("{root}- https://github.com/acme/bases//web?ref=v1.2.0\n");
    world.work.write("apps/web/kustomization.yaml", more);
    world.work.git(&["add", "--all"]);
    world
}

/// A branch changes a file and the lock, and adds an application.
fn pull_request() -> World {
    let world = World::new();
    let bases = world.upstream_of("acme/bases", &[("kustomization.yaml", "resources: []\n")]);
    let base = "resources: [../../../base]\n";
    world.commit(&[
        ("base/kustomization.yaml", "resources: [config.yaml]\n"),
        ("base/config.yaml", &config("one")),
        ("apps/db/kustomization.yaml", "resources: []\n"),
        ("apps/web/prod/kustomization.yaml", base),
        ("apps/web/staging/kustomization.yaml", "resources: ['https://github.com/acme/bases?ref=main']\n"),
    ]);
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    bases.commit("Raise the memory limit");
    world.work.git(&["switch", "--quiet", "--create", "change"]);
    world.work.run(&["update"]).success();
    world.commit(&[("base/config.yaml", &config("two")), ("apps/new/kustomization.yaml", "resources: []\n")]);
    world
}

/// Flux deploys something from here, and something from elsewhere.
fn cluster() -> World {
    let world = World::new();
    let source = |name: &str, repository: &str| {
        format!(
            "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\n\
             metadata: {{name: {name}, namespace: flux-system}}\n\
             spec: {{url: 'https://github.com/acme/{repository}', ref: {{branch: main}}, interval: 1m}}\n"
        )
    };
    let kustomization = |name: &str, source: &str, path: &str| {
        format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n\
             metadata: {{name: {name}, namespace: flux-system}}\n\
             spec: {{path: {path}, prune: true, interval: 1m, sourceRef: {{kind: GitRepository, name: {source}}}}}\n"
        )
    };
    let here = "https://github.com/acme/fleet";
    world.work.git(&["remote", "add", "origin", here]);
    for (name, text) in [
        ("flux-system", source("flux-system", "fleet")),
        ("apps", kustomization("apps", "flux-system", "./apps/prod")),
        ("monitoring", kustomization("monitoring", "monitoring", "./deploy")),
        ("sources", source("monitoring", "monitoring")),
    ] {
        let path = format!("clusters/prod/{name}.yaml");
        world.work.write(&path, text);
    }
    world.commit(&[("apps/prod/kustomization.yaml", "resources: []\n")]);
    world
}

/// A branch has moved forward since it was locked, and a tag was moved.
fn later() -> World {
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
    world
}

#[test]
fn every_rule_and_warning_is_explained() {
    let explain = |ids: &[&str]| said(&Sandbox::new(), &[&["explain"], ids].concat());
    let list = explain(&[]);
    for rule in Rule::ALL {
        let (id, severity, summary) = (rule.id(), rule.default_level().name(), rule.summary());
        let row = format!("- `{id}` ({severity}): {summary}\n");
        assert!(list.contains(&row), "{row}: {list}");
        let text = explain(&[id]);
        assert!(text.starts_with(&format!("# {id}: {summary}\n\n")), "{text}");
        assert!(!text.contains("]("), "{text}");
        let first = rule.explanation().trim().lines().next().unwrap();
        assert!(first.contains('[') || text.contains(first), "{text}");
    }
    let both = explain(&["engine", "not-built"]);
    assert_eq!(both, explain(&["engine"]) + &explain(&["not-built"]));
    let sandbox = Sandbox::new();
    sandbox.run(&sandbox.path(""), &["explain", "enigne", "nothing-like-it"]).fails(2).says(expect![[r#"
        error: unknown rule `enigne`
          hint: did you mean `engine`?
    "#]]);
    sandbox.run(&sandbox.path(""), &["explain", "engine", "--color", "xml"]).fails(2).says(expect![[r#"
        error: invalid value 'xml' for '--color <WHEN>'
          [possible values: auto, always, never]

        For more information, try '-h'.
    "#]]);
}

#[test]
fn the_two_commands_are_those_of_ci() {
    let readme = source("README.md");
    let ci = source(".ci/run");
    let commands = blocks(section(&readme, "## Install"), "sh");
    let commands = commands.last().unwrap();
    for command in commands.lines().filter(|line| line.starts_with("cargo")) {
        let command = command.split('#').next().unwrap().trim();
        assert!(ci.lines().any(|line| line == command), "{command} is not in .ci/run");
    }
    assert_eq!(commands.matches("cargo").count(), 2);
}

#[test]
fn every_file_that_contributors_are_told_of_is_there() {
    let page = source(".github/CONTRIBUTING.md");
    let paths = regex::Regex::new(r"`((?:src|tests|\.ci|\.github|hooks)/[a-z_./-]+)`").unwrap();
    let paths: Vec<String> = paths.captures_iter(&page).map(|path| path[1].to_owned()).collect();
    // What a release writes, and a file of another project.
    let elsewhere = ["hooks/action/release", "src/api/json/catalog.json"];
    let is_missing = |path: &&String| !top().join(path).exists() && !elsewhere.contains(&path.as_str());
    assert_eq!(paths.iter().filter(is_missing).collect::<Vec<_>>(), Vec::<&String>::new());
    assert!(paths.len() > 20, "{paths:?}");
}

#[test]
fn the_readme_is_short() {
    let size = source("README.md").len();
    assert!(size <= 10_000, "{size} bytes");
}

#[test]
fn every_block_has_a_language_and_an_end() {
    for (path, text) in pages() {
        let mut is_open = false;
        for (number, line) in (1..).zip(text.lines()) {
            if let Some(language) = line.trim_start().strip_prefix("```") {
                // What has a language begins, and what has none ends.
                assert_eq!(is_open, language.is_empty(), "{path}:{number}");
                is_open = !is_open;
            }
        }
        assert!(!is_open, "{path}: no end");
    }
}
