//! `check --rev` gives the same result for a commit wherever it runs, and reads its files as git checks them out.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use git_kustomize_localize::seams::tree::Tree as _;
use git_kustomize_localize::seams::tree::{self, GitTree, object_id};
use serde_json::Value;

use crate::support::{Random, Repo, Sandbox, Transcript, config, rows};

/// In this encoding, the yen sign is the byte of a backslash: what stands in quotes is another text.
const HOLE: &str =
    "{namePrefix: \"¥\", namespace: \", resources: [https://example.com/x.yaml], nameSuffix: \" #\"\n}\n";

#[test]
fn files_are_checked_as_they_are_checked_out() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("plain/kustomization.yaml", HOLE);
    repo.write("app/kustomization.yaml", HOLE);
    repo.commit("as it stands there");
    repo.run(&["check", "--rev", "HEAD"]).success();
    repo.write("app/.gitattributes", "*.yaml enc\n");
    repo.write(".gitattributes", "[attr]enc working-tree-encoding=ISO646-JP\n");
    repo.git(&["add", ".gitattributes", "app/.gitattributes"]);
    // The blob is as before: the encoding is that of the working tree.
    repo.git(&["commit", "--quiet", "-m", "another encoding"]);
    let mut transcript = Transcript::default();
    for args in [&["check", "--staged"][..], &["check", "--rev", "HEAD"]] {
        transcript.add(repo.run(args).fails(1));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged
        error[remote-reference]: `https://example.com/x.yaml` is neither localized nor locked
         --> app/kustomization.yaml:1:45: resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 2 kustomizations with 1 reference in the index: 1 error
        $ git kustomize-localize check --rev HEAD
        error[remote-reference]: `https://example.com/x.yaml` is neither localized nor locked
         --> app/kustomization.yaml:1:45: resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/app

        for more: git kustomize-localize explain remote-reference
        checked 2 kustomizations with 1 reference in commit <0> (HEAD): 1 error
    "#]]);
    // Nothing on this machine has an influence.
    fs::write(repo.git_directory().join("info/attributes"), "* -working-tree-encoding\n").unwrap();
    repo.run(&["check", "--rev", "HEAD"]).fails(1);
}

#[test]
fn an_id_that_git_may_keep_is_not_read() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let (mut refused, mut read) = (Transcript::default(), Transcript::default());
    for id in ["$Id: a\tb$", "$Id: a\rb$", "$Id: a b$", "$Id: a", "$Id:"] {
        // `git add` would take the id out.
        repo.write(".gitattributes", "");
        repo.write("kustomization.yaml", format!("# {id}\nresources: []\n"));
        repo.commit("with an id");
        repo.write(".gitattributes", "*.yaml ident\n");
        repo.git(&["add", ".gitattributes"]);
        repo.git(&["commit", "--quiet", "-m", "with ident"]);
        for args in [&["check", "--staged"][..], &["check", "--rev", "HEAD"]] {
            refused.add(repo.run(args).fails(2));
        }
        repo.write(".gitattributes", "*.yaml ident\n/kustomization.yaml -ident\n");
        repo.git(&["add", ".gitattributes"]);
        repo.git(&["commit", "--quiet", "-m", "without ident"]);
        read.add(&repo.run(&["check", "--staged"]));
    }
    refused.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index (1 differs in the working tree; fixes count after `git add`): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index (1 differs in the working tree; fixes count after `git add`): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index (1 differs in the working tree; fixes count after `git add`): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index: 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index: 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 could not be checked
        error: `kustomization.yaml` has `ident` and contains `$Id:`: its content after a checkout is unknown
          hint: write `$Id$`, or add a line in `.gitattributes`: /kustomization.yaml -ident
    "#]]);
    read.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index: no problems found
        $ git kustomize-localize check --staged
        error[invalid-kustomization]: not valid YAML: mapping values are not allowed in this context
         --> kustomization.yaml:3:10
          = help: fix it: `kustomize build` refuses it

        for more: git kustomize-localize explain invalid-kustomization
        checked 1 kustomization with 0 references in the index: 1 error
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index: no problems found
    "#]]);
    repo.write(".gitattributes", "*.yaml ident\n");
    repo.write("kustomization.yaml", "# $Id$\nresources: []\n");
    repo.commit("git writes it");
    repo.run(&["check", "--staged"]).success();
}

#[test]
fn what_flux_reads_is_what_is_stored() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    // As it is stored, the quoted text ends earlier, and a URL follows.
    let hidden = "namePrefix: \"+AFw-\", resources: [https://example.com/x.yaml], namespace: \"x\"";
    let mut transcript = Transcript::default();
    for (attributes, text) in [
        ("*.yaml working-tree-encoding=UTF-7\n", format!("{{{hidden}}}\n")),
        ("*.yaml ident\n", "# $Id$\nresources: []\n".to_owned()),
    ] {
        repo.write("app/kustomization.yaml", text);
        repo.write(
            "flux/app.yaml",
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec: {path: ./app, sourceRef: {kind: GitRepository, name: flux-system}}\n",
        );
        repo.git(&["rm", "-q", "--cached", "--ignore-unmatch", "-r", "."]);
        fs::remove_file(repo.path().join("app/.gitattributes")).ok();
        repo.commit("stored");
        repo.write("app/.gitattributes", attributes);
        repo.git(&["add", "app/.gitattributes"]);
        repo.git(&["commit", "--quiet", "-m", "another encoding"]);
        transcript.add(repo.run(&["check", "--rev", "HEAD"]).fails(2));
    }
    repo.write("app/.gitattributes", "*.yaml ident\n/kustomization.yaml -ident -working-tree-encoding\n");
    repo.commit("the hint");
    transcript.add(repo.run(&["check", "--rev", "HEAD"]).success());
    transcript.says(expect![[r#"
        $ git kustomize-localize check --rev HEAD
        error[invalid-kustomization]: not valid YAML: mapping values are not allowed in this context
         --> app/kustomization.yaml:1:45
          |
        1 | +AHs-namePrefix: +ACIAKw-AFw-+ACI, resources: +AFs-https://example.com/x.yaml+AF0, namespace: +ACI-x+ACIAfQ
          |                                             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = note: deployed by Flux Kustomization app (flux/app.yaml:1)
          = help: fix it: `kustomize build` refuses it

        for more: git kustomize-localize explain invalid-kustomization
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 error, 1 could not be checked
        error: a checkout changes `app/kustomization.yaml`, but Flux reads the file that git stores
          hint: add a line at the end of `app/.gitattributes`: /kustomization.yaml -ident -working-tree-encoding
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 could not be checked
        error: a checkout changes `app/kustomization.yaml`, but Flux reads the file that git stores
          hint: add a line at the end of `app/.gitattributes`: /kustomization.yaml -ident -working-tree-encoding
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): no problems found
    "#]]);
}

#[test]
fn a_filter_is_not_run_and_not_ignored() {
    let sandbox = Sandbox::new();
    sandbox.configure("filter.secret.smudge", "touch /tmp/ran; cat");
    let repo = sandbox.repo("work");
    repo.write(".gitattributes", "*.yaml filter=secret\n*.md filter\n");
    repo.write("kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("map.yaml", config("map"));
    repo.commit("filtered");
    let mut transcript = Transcript::default();
    for args in [&["check", "--staged"][..], &["check", "--rev", "HEAD"]] {
        transcript.add(repo.run(args).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --staged
        checked 1 kustomization with 0 references in the index: 1 could not be checked
        error: `kustomization.yaml` goes through the filter `secret` on checkout: its content is unknown without running the filter
          hint: commit it as a checkout writes it, with a line in `.gitattributes`: /kustomization.yaml -filter
        $ git kustomize-localize check --rev HEAD
        checked 1 kustomization with 0 references in commit <0> (HEAD): 1 could not be checked
        error: `kustomization.yaml` goes through the filter `secret` on checkout: its content is unknown without running the filter
          hint: commit it as a checkout writes it, with a line in `.gitattributes`: /kustomization.yaml -filter
    "#]]);
    // Files that kustomize builds from it only are not parsed here.
    repo.write(".gitattributes", "*.yaml filter=secret\n/kustomization.yaml -filter\n");
    repo.commit("not filtered");
    repo.run(&["check", "--rev", "HEAD"]).success();
}

const DIRECTORIES: [&str; 4] = ["", "a/", "a/b/", "c/"];
const IGNORE: [&str; 12] =
    ["*.env", "!x.env", "/b", "b/", "a/b", "**/y.env", "gen/", "/gen/*", "!gen/", "*", "!*.yaml", "c/*.env"];
const ATTRIBUTES: [&str; 14] = [
    "* text=auto",
    "*.yaml text eol=crlf",
    "*.yaml ident",
    "kustomization.yaml working-tree-encoding=UTF-16LE-BOM",
    "*.yaml enc",
    "*.yaml !enc",
    "*.yaml -working-tree-encoding",
    "*.yaml crlf=input",
    "b/* ident",
    "a/** filter=secret",
    "*.yaml -filter",
    "kustomization.yaml -text -ident",
    "*.yaml binary",
    "\"c/kustomization.yaml\" eol=crlf",
];
const NAMES: [&str; 6] = ["x.env", "y.env", "gen/z.env", "../x.env", "b/x.env", "gone.txt"];

/// Fills a repository, and returns what its kustomizations name that is not there.
fn fill(repo: &Repo, random: &mut Random) -> BTreeSet<String> {
    let mut missing = BTreeSet::new();
    for directory in DIRECTORIES {
        let mut text = "# $Id$ ¥\nsecretGenerator:\n".to_owned();
        for (number, name) in random.some_of(&NAMES, 4).into_iter().enumerate() {
            text.push_str(&format!("- {{name: s{number}, files: [{name}]}}\n"));
            let place = format!("{directory}{name}");
            if !name.starts_with("..") {
                missing.insert(place);
            }
        }
        text.push_str("namePrefix: p-\n");
        repo.write(&format!("{directory}kustomization.yaml"), text);
        let mut lines = random.some_of(&IGNORE, 3).join("\n");
        if !lines.is_empty() {
            lines.push('\n');
            repo.write(&format!("{directory}.gitignore"), lines);
        }
    }
    repo.git(&["add", "--all", "--force"]);
    // Afterwards, so that the blobs are what was written.
    for directory in DIRECTORIES {
        let mut lines = random.some_of(&ATTRIBUTES, 3);
        if directory.is_empty() {
            lines.insert(0, "[attr]enc working-tree-encoding=ISO646-JP");
        }
        repo.write(&format!("{directory}.gitattributes"), lines.join("\n") + "\n");
        repo.git(&["add", "--force", &format!("{directory}.gitattributes")]);
    }
    missing
}

/// Returns the verdict on a commit: the status, what was found, and what could not be read.
fn verdict(repo: &Repo, commit: &str) -> (i32, Value, Vec<String>) {
    let output = repo.run(&["check", "--rev", commit, "--format", "json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let errors = output.stderr.lines().map(str::to_owned).collect();
    (output.status, report["findings"].clone(), errors)
}

#[test]
fn the_verdict_is_a_function_of_the_commit() {
    let mut seen = BTreeSet::new();
    for seed in rows(0..8, 2) {
        let sandbox = Sandbox::new();
        let repo = sandbox.repo("work");
        let mut random = Random::of(&format!("commit {seed}"));
        let missing = fill(&repo, &mut random);
        repo.git(&["commit", "--quiet", "-m", "world"]);
        let commit = repo.id("HEAD");
        let before = verdict(&repo, &commit);
        seen.extend(rules(&before.1));
        assert_eq!(ignored(&before.1), told_by_git(&repo, &missing, &before.1), "seed {seed}: {before:?}");
        as_checked_out(&sandbox, &repo, &commit, seed);

        let bare = sandbox.path("bare.git");
        let from = repo.path().to_str().unwrap();
        sandbox.git(&sandbox.path(""), &["clone", "--quiet", "--bare", from, bare.to_str().unwrap()]);
        let bare = sandbox.run(&bare, &["check", "--rev", &commit, "--format", "json"]);
        let report: Value = serde_json::from_str(&bare.stdout).unwrap();
        assert_eq!((bare.status, &report["findings"]), (before.0, &before.1));

        // Everything that could have a say, and must not.
        for directory in DIRECTORIES {
            repo.write(&format!("{directory}.gitignore"), "!*\n");
            repo.write(&format!("{directory}.gitattributes"), "* -text !ident\n");
            repo.write(&format!("{directory}kustomization.yaml"), "resource: x\n");
            repo.write(&format!("{directory}y.env"), "");
        }
        repo.git(&["add", "--all"]);
        let info = repo.git_directory().join("info");
        fs::create_dir_all(&info).unwrap();
        fs::write(info.join("exclude"), "*\n").unwrap();
        fs::write(info.join("attributes"), "* eol=crlf filter=x\n").unwrap();
        sandbox.configure("core.autocrlf", "true");
        sandbox.configure("core.excludesFile", info.join("exclude").to_str().unwrap());
        assert_eq!(verdict(&repo, &commit), before, "seed {seed}");
    }
    for rule in ["untracked-path", "missing-path"] {
        assert!(seen.contains(rule), "{seen:?}");
    }
}

fn rules(findings: &Value) -> BTreeSet<String> {
    let findings = findings.as_array().unwrap().iter();
    findings.map(|one| one["rule"].as_str().unwrap().to_owned()).collect()
}

/// Returns which paths that are not there are said to be ignored.
fn ignored(findings: &Value) -> BTreeSet<String> {
    named(findings, "untracked-path", "`")
}

fn named(findings: &Value, rule: &str, before: &str) -> BTreeSet<String> {
    let findings = findings.as_array().unwrap().iter();
    findings
        .filter(|one| one["rule"] == rule)
        .filter_map(|one| {
            let message = one["message"].as_str().unwrap();
            Some(message.split_once(before)?.1.split_once('`')?.0.to_owned())
        })
        .collect()
}

/// Returns which of the paths that were spoken of git ignores.
fn told_by_git(repo: &Repo, missing: &BTreeSet<String>, findings: &Value) -> BTreeSet<String> {
    let mut spoken = ignored(findings);
    spoken.extend(named(findings, "missing-path", "there is no `"));
    let spoken: Vec<&str> = spoken.intersection(missing).map(String::as_str).collect();
    let told = repo.try_git(&[&["check-ignore", "--no-index", "--"][..], &spoken].concat());
    told.stdout.lines().map(str::to_owned).collect()
}

/// Compares every file with what git checks out.
fn as_checked_out(sandbox: &Sandbox, repo: &Repo, commit: &str, seed: u64) {
    let clone = sandbox.clone_of(repo, "clone");
    let id = repo.id(&format!("{commit}^{{tree}}"));
    let repository = tree::open(&repo.git_directory()).unwrap();
    let tree = GitTree::new(repository, object_id(&id).unwrap()).checked_out();
    let paths = tree.below("").unwrap();
    let names: Vec<&str> = paths.iter().map(|path| &**path).collect();
    let attributes = clone.git(&[&["check-attr", "filter", "--"][..], &names].concat());
    assert_eq!(attributes.lines().count(), names.len());
    for (path, attributes) in paths.iter().zip(attributes.lines()) {
        match tree.read(path) {
            Ok(bytes) => {
                assert!(!attributes.contains("secret"), "seed {seed}: {attributes}");
                let on_disk = fs::read(clone.path().join(Path::new(path))).unwrap();
                assert_eq!(bytes, on_disk, "seed {seed}: {path}");
            }
            Err(_) => assert!(attributes.contains("secret"), "seed {seed}: {path}"),
        }
    }
}
