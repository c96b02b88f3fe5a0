//! `affected`: what a change touches, compared with what kustomize builds before and after.

mod deployed;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Kustomize, Project, Random, Repo, Sandbox, base_of, config, full};

#[track_caller]
fn lines(repo: &Repo, args: &[&str]) -> Vec<String> {
    let output = repo.run_unchanged(&[&["affected"], args].concat());
    let lines = output.success().stdout.lines();
    lines.map(str::to_owned).collect()
}

/// Returns the report.
#[track_caller]
fn report(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_change_names_what_it_touches_in_every_format() {
    let project = Project::new();
    let work = &project.work;
    let since = work.id("HEAD");
    work.write("README.md", "No build reads it.\n");
    work.commit("Say more");
    assert_eq!(lines(work, &[&since]), Vec::<String>::new());
    work.write("example/base/config.yaml", config("changed"));
    work.write("new/kustomization.yaml", "resources: [config.yaml]\n");
    work.write("new/config.yaml", config("new"));
    work.git(&["rm", "-q", "-r", "other"]);
    work.commit("Change");
    let base = [&*since];
    assert_eq!(lines(work, &base), ["example/overlay: example/base/config.yaml", "new: added", "other: removed"]);
    let output = work.run(&["affected", &since]);
    output.says(expect![[r#"
        example/overlay: example/base/config.yaml
        new: added
        other: removed
        2 of 2 kustomizations (1 removed) since <0>
    "#]]);
    let output = work.run(&["affected", &since, "--format", "json"]);
    let json = report(&output.success().stdout);
    assert_eq!(json["total"], 2);
    assert_eq!(json["roots"][0]["path"], "example/base/config.yaml");
    assert_eq!(json["commit"], work.id("HEAD"));
    assert_eq!(json["targets"], Value::Array(Vec::new()));
    // What is deployed.
    let flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: new}\nspec: {path: new, sourceRef: {kind: GitRepository, name: fleet}}\n---\napiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet}\nspec: {url: https://github.com/acme/fleet}\n";
    work.git(&["remote", "add", "origin", "git@github.com:acme/fleet.git"]);
    work.write("clusters/flux.yaml", flux);
    work.write("new/config.yaml", config("changed"));
    work.commit("Deploy");
    assert_eq!(
        lines(work, &["HEAD^"]),
        ["new: new/config.yaml", "Flux Kustomization new (clusters/flux.yaml:1): added"]
    );
    let output = work.run(&["affected", "HEAD^", "--format", "json"]);
    output.success();
    assert_eq!(report(&output.stdout)["targets"][0]["target"]["here"]["path"], "new");
    // What BASE has beyond the merge base is not of the change.
    let back = lines(work, &["HEAD", "--rev", &since]);
    assert_eq!(back, crate::support::NONE);
    let output = work.run(&["affected", "nowhere", "--format", "json"]);
    output.fails(2).says(expect![[r#"
        {
          "version": 1,
          "tool": {
            "name": "git-kustomize-localize",
            "version": "…"
          },
          "errors": [
            {
              "hints": [
                "fetch it first, or name another one: git log --oneline --all"
              ],
              "message": "unknown revision `nowhere`"
            }
          ],
          "outcome": "failed"
        }
        error: unknown revision `nowhere`
          hint: fetch it first, or name another one: git log --oneline --all
    "#]]);
    assert_eq!(report(&output.stdout)["outcome"], "failed");
    work.run(&["affected"]).fails(2).says(expect![[r#"
        error: the following required arguments were not provided:
          <BASE>

        Usage: git kustomize-localize affected <BASE>

        For more information, try '-h'.
    "#]]);
}

#[test]
fn an_update_of_the_lock_touches_what_names_the_remote() {
    let project = Project::new();
    let work = &project.work;
    work.write("example/base/kustomization.yaml", base_of("main"));
    work.run(&["lock"]).success();
    work.commit("Lock");
    project.second_version();
    work.run(&["update"]).success();
    work.commit("Update");
    assert_eq!(lines(work, &["HEAD^"]), ["example/overlay: https://example.com/acme/remote.git?ref=main"]);
}

const DIRECTORIES: [&str; 6] = ["base", "lib", "web", "web/dev", "web/prod", "mixin"];

/// Changes something, and returns what.
fn change(repo: &Repo, random: &mut Random) -> String {
    let directory = random.one_of(&DIRECTORIES);
    let number = random.below(1000);
    let at = |name: &str| format!("{directory}/{name}");
    match random.below(9) {
        0 => {
            let fields = [
                "namePrefix: a-\nresources: [map.yaml]",
                "resources: [map.yaml, ../lib]",
                "resources: [map.yaml]\ncomponents: [../mixin]",
                "resources: [map.yaml]\nconfigMapGenerator: [{name: g, files: [data.txt]}]",
                "resources: [map.yaml]\npatches: [{path: patch.yaml}]",
                "resources: [../base, map.yaml, gone.yaml]",
            ];
            let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
            let kind = if *directory == *"mixin" { component } else { "" };
            let fields = random.one_of(&fields);
            repo.write(&at("kustomization.yaml"), format!("{kind}{fields}\n"));
            format!("{directory} is {fields:?}")
        }
        1 => {
            repo.write(".gitattributes", random.one_of(&["*.txt eol=crlf\n", "*.md text\n", ""]));
            "attributes".to_owned()
        }
        2 => {
            repo.write(&at(".gitattributes"), random.one_of(&["*.txt eol=crlf\n", ""]));
            at(".gitattributes")
        }
        3 => {
            let name = random.one_of(&["Kustomization", "gone.yaml", "map.yaml"]);
            let place = at(name);
            if repo.path().join(&place).exists() && *name != *"map.yaml" {
                repo.remove(&place);
            } else {
                repo.write(&place, config(&format!("c{number}")));
            }
            place
        }
        4 => {
            repo.write(&at("unread.yaml"), format!("# {number}\n"));
            at("unread.yaml")
        }
        5 => {
            // The same to kustomize, and not to git.
            repo.write(&at("patch.yaml"), format!("# {number}\n{}", patch("a")));
            at("patch.yaml")
        }
        6 => {
            repo.write(&at("patch.yaml"), patch(&number.to_string()));
            at("patch.yaml")
        }
        7 => {
            repo.write(&at("data.txt"), format!("{number}\n"));
            at("data.txt")
        }
        _ => {
            repo.write(&at("map.yaml"), map(directory, &number.to_string()));
            at("map.yaml")
        }
    }
}

fn map(directory: &str, value: &str) -> String {
    let name = directory.replace('/', "-");
    format!("{}data: {{value: \"{value}\"}}\n", config(&name))
}

fn patch(value: &str) -> String {
    format!("- {{op: add, path: /data/patched, value: \"{value}\"}}\n")
}

const ANY_FILE: &str = "--load-restrictor=LoadRestrictionsNone";

/// Returns kind and name of an object that `diff` shows, without the hash of a generator.
fn key(object: &Value) -> String {
    let id = object["id"].as_str().unwrap();
    let name = id.split_once(' ').unwrap().1;
    name.split_once("g-").map_or(name, |(before, _)| before).to_owned()
}

/// Returns the same of the objects of two outputs that differ.
fn differing(before: &str, after: &str) -> Vec<String> {
    let objects = |output: &str| -> BTreeMap<String, String> {
        let documents = output.split("---\n").filter(|one| !one.is_empty());
        let named = documents.map(|one| {
            let line = |key: &str| one.lines().find_map(|line| line.strip_prefix(key)).unwrap();
            let name = format!("{} {}", line("kind: "), line("  name: "));
            (name.split_once("g-").map_or(&*name, |(before, _)| before).to_owned(), one.to_owned())
        });
        named.collect()
    };
    let (was, is) = (objects(before), objects(after));
    let all: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    all.into_iter().filter(|name| was.get(*name) != is.get(*name)).cloned().collect()
}

/// Returns what each root builds to, as git checks the commit out.
fn builds(sandbox: &Sandbox, kustomize: &Kustomize, repo: &Repo) -> BTreeMap<String, String> {
    let out = sandbox.path("out");
    let _ = std::fs::remove_dir_all(&out);
    repo.git(&["checkout-index", "-a", "-f", &format!("--prefix={}/", out.display())]);
    let build = |directory: &&str| {
        let args = ["build", ANY_FILE, directory];
        let output = kustomize.run(sandbox, &out, &args);
        // Why it fails names temporary directories.
        let text = if output.status == 0 { output.stdout } else { "failed".to_owned() };
        ((*directory).to_owned(), text)
    };
    DIRECTORIES.iter().map(build).collect()
}

#[test]
fn nothing_that_builds_to_something_else_is_missed() {
    let sandbox = Sandbox::new();
    let Some(kustomize) = sandbox.builds() else { return };
    let most = if full() { 12 } else { 5 };
    let steps = std::env::var("KUSTOMIZE_LOCALIZE_TREES").map_or(most, |text| text.parse().unwrap());
    let repo = sandbox.repo("work");
    let mut random = Random::of("affected");
    for directory in DIRECTORIES {
        repo.write(&format!("{directory}/map.yaml"), map(directory, "0"));
        repo.write(&format!("{directory}/data.txt"), "0\n");
        repo.write(&format!("{directory}/patch.yaml"), patch("0"));
    }
    let generator = "configMapGenerator: [{name: g, files: [data.txt]}]";
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    for (directory, text) in [
        ("base", format!("resources: [map.yaml]\n{generator}\n")),
        ("lib", "resources: [map.yaml]\n".to_owned()),
        ("web", "resources: [map.yaml, ../base]\n".to_owned()),
        ("web/dev", "resources: [..]\n".to_owned()),
        ("web/prod", "resources: [.., ../../lib]\ncomponents: [../../mixin]\n".to_owned()),
        ("mixin", format!("{component}patches: [{{path: patch.yaml, target: {{kind: ConfigMap}}}}]\n")),
    ] {
        repo.write(&format!("{directory}/kustomization.yaml"), text);
    }
    repo.commit("Begin");
    let mut before = builds(&sandbox, &kustomize, &repo);
    let (mut differ, mut named_too) = (0, BTreeMap::new());
    for step in 0..steps {
        let what = change(&repo, &mut random);
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", &what]);
        let after = builds(&sandbox, &kustomize, &repo);
        let diff = repo.run(&["diff", "HEAD^", "--rev=HEAD", "--format=json", &format!("--build-arg={ANY_FILE}")]);
        let diff = report(&diff.success().stdout);
        let named = lines(&repo, &["HEAD^"]).into_iter();
        let named = named.filter_map(|line| Some(line.split_once(": ")?.0.to_owned()));
        let named: BTreeSet<String> = named.collect();
        let tree = report(&repo.run(&["tree", "--format", "json"]).success().stdout);
        let starts = tree["starts"].as_array().unwrap().iter();
        let starts: Vec<&Value> = starts.map(|start| &start["name"]).collect();
        // Only what no other one names is shown.
        for directory in DIRECTORIES {
            if !starts.iter().any(|start| *start == directory) {
                continue;
            }
            let is_named = named.contains(directory);
            let shown = diff["builds"].as_array().unwrap().iter().find(|build| build["name"] == directory);
            let objects = |build: &Value| build["objects"].as_array().unwrap().iter().map(key).collect::<Vec<_>>();
            // Of what does not build, what can be built below it is compared.
            if ![&before[directory], &after[directory]].iter().any(|output| *output == "failed") {
                let expected = differing(&before[directory], &after[directory]);
                assert_eq!(shown.map(objects).unwrap_or_default(), expected, "step {step} ({what}): {directory}");
            }
            if before[directory] != after[directory] {
                differ += 1;
                assert!(is_named, "step {step} ({what}): {directory} is missed: {named:?}");
            } else if is_named {
                *named_too.entry(what.clone()).or_insert(0) += 1;
            }
        }
        before = after;
    }
    let too_many: usize = named_too.values().sum();
    println!("{differ} builds differ, {too_many} more are named: {named_too:?}");
    assert!(differ * 4 > steps, "{differ}");
}
