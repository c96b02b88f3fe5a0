//! A change that is judged against its base: what it accepts itself does not count.

use serde_json::Value;

use crate::support::{Repo, Sandbox, Transcript, World, config};

const FILE: &str = ".kustomize-localize";
const ROOT: &str = "app/kustomization.yaml";
const LOCAL: &str = "resources: [config.yaml]\n";
const REMOTE: &str = "resources:\n- https://example.com/acme/base?ref=main\n";
const OTHER: &str = "resources:\n- https://other.example/x.yaml\n";
const BUMPED: &str = "resources:\n- https://example.com/acme/base?ref=trunk # kustomize-localize: allow[remote-reference, floating-ref] ours\n";
const EVIL: &str = "resources:\n- https://example.com/evil/base?ref=trunk # kustomize-localize: allow[remote-reference, floating-ref] ours\n";
const ALLOWED: &str = "resources:\n- https://example.com/acme/base?ref=main # kustomize-localize: allow[remote-reference, floating-ref] ours\n";

fn work() -> (Sandbox, Repo) {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(ROOT, LOCAL);
    repo.write("app/config.yaml", config("app"));
    repo.commit("clean");
    (sandbox, repo)
}

/// A change after others, and what is found of it alone.
type Change = (&'static str, &'static [(&'static str, &'static str)], i32, &'static [&'static str]);

const ENTRY: &str = "allow:\n- {url: example.com, refs: any, reason: ours}\n";

const CHANGES: [Change; 11] = [
    ("a comment", &[(ROOT, ALLOWED)], 1, &["error[new-exception]", "app/kustomization.yaml:2:"]),
    ("it is merged", &[("note", "x")], 0, &[" allowed\n"]),
    ("a bump", &[(ROOT, BUMPED)], 0, &[" allowed\n"]),
    ("under the same comment", &[(ROOT, EVIL)], 1, &["error[new-exception]", "example.com/evil"]),
    ("without it", &[(ROOT, LOCAL)], 0, &["no problems found"]),
    (
        "an entry",
        &[(ROOT, REMOTE), (FILE, ENTRY)],
        1,
        &["error[new-exception]", ".kustomize-localize:2:", "in a separate change"],
    ),
    (
        "everything off",
        &[
            ("b/kustomization.yaml", OTHER),
            (FILE, "rules: {remote-reference: off, new-exception: off}\nexclude: [b]\n"),
        ],
        1,
        &["error[remote-reference]", "b/kustomization.yaml:2"],
    ),
    ("nothing off", &[(FILE, "")], 0, &[]),
    ("an entry for what is there", &[(FILE, ENTRY)], 0, &[": 2 allowed, 1 finding already in "]),
    ("accepted from now on", &[(FILE, "rules: {new-exception: warning}\n")], 0, &[]),
    (
        "a comment that is accepted",
        &[("c/kustomization.yaml", ALLOWED)],
        0,
        &["warning[new-exception]", "c/kustomization.yaml:2:"],
    ),
];

#[test]
fn nothing_that_a_change_adds_widens_its_gate() {
    let (_sandbox, repo) = work();

    for (name, files, status, said) in CHANGES {
        for (path, text) in files {
            repo.write(path, text);
        }
        repo.commit(name);
        let output = repo.run_unchanged(&["check", "--rev", "HEAD", "--base", "HEAD^"]);
        assert_eq!(output.status, status, "{name}: {output:?}");
        for said in said {
            output.stdout_has(said);
        }
    }
}

#[test]
fn an_entry_in_a_change_of_its_own_counts_from_the_next_on() {
    let (_sandbox, repo) = work();
    let base = ["check", "--rev", "HEAD", "--base", "HEAD^"];
    repo.write(FILE, ENTRY.replace("any", "any, rules: [remote-reference, floating-ref]"));
    repo.commit("entry");
    repo.run(&base).success().says(expect![[r#"
        new in the configuration: +allow:
        new in the configuration: +- {url: example.com, refs: any, rules: [remote-reference, floating-ref], reason: ours}
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
    "#]]);
    repo.write(ROOT, REMOTE);
    repo.commit("remote");
    repo.run(&base).success().says(expect![[r#"
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 2 allowed
    "#]]);
}

#[test]
fn a_change_is_compared_with_its_merge_base_and_judged_by_the_tip() {
    let (sandbox, repo) = work();
    repo.write("old/kustomization.yaml", REMOTE);
    repo.commit("old");
    repo.git(&["switch", "--quiet", "-c", "topic"]);
    repo.write("new/kustomization.yaml", "resources: [gone.yaml]\n");
    repo.commit("new");
    repo.git(&["switch", "--quiet", "main"]);
    repo.remove("old/kustomization.yaml");
    repo.write(FILE, "rules: {missing-path: warning}\n");
    repo.commit("mended");
    let check = |repo: &Repo| repo.run(&["check", "--rev=topic", "--base=main"]);
    check(&repo)
        .success().says(expect![[r#"
            warning[missing-path]: there is no `new/gone.yaml`
             --> new/kustomization.yaml:1:13
              |
            1 | resources: [gone.yaml]
              |             ^^^^^^^^^ resources[0]
              = help: add it, or remove the reference

            for more: git kustomize-localize explain missing-path
            checked 3 kustomizations with 3 references in commit <0> (topic): 1 warning, 2 findings already in <1>, the merge base with main
        "#]]);
    // Where history is cut off, nobody knows.
    let origin = format!("file://{}", repo.path().display());
    let clone = |args: &[&str]| sandbox.git(&sandbox.path(""), &[&["clone", "--quiet"], args].concat());
    clone(&["--depth=1", "--no-single-branch", "--branch=topic", &origin, "shallow"]);
    let shallow = Repo::new(&sandbox, sandbox.path("shallow"));
    shallow.git(&["branch", "--quiet", "main", "origin/main"]);
    check(&shallow).fails(2).says(expect![[r#"
        error: this shallow clone lacks the merge base of <0> and <1>
          hint: git fetch --unshallow
    "#]]);
    shallow.run(&["affected", "--rev=topic", "main"]).fails(2).says(expect![[r#"
        error: this shallow clone lacks the merge base of <0> and <1>
          hint: git fetch --unshallow
    "#]]);
    shallow.git(&["fetch", "--quiet", "--unshallow"]);
    check(&shallow).success();
}

/// Returns what of a kustomization names `url`.
fn names(url: &str) -> String {
    format!("resources:\n- {url}\n")
}

#[test]
fn the_first_lock_and_its_exceptions_pass_the_gate_and_the_same_tree_has_nothing_new() {
    let world = World::acme();
    let gone = "https://github.com/acme/gone//x?ref=v1";
    world.upstream_of("acme/mid", &[("m/kustomization.yaml", &names(gone))]);
    world.commit(&[
        ("a/kustomization.yaml", &names("https://github.com/acme/mid//m?ref=v1")),
        ("b/kustomization.yaml", &names("https://github.com/acme/lib//none?ref=v1")),
        ("c/kustomization.yaml", "resources: [\n"),
        ("d/kustomization.yaml", "generators: [g.yaml]\n"),
        ("d/g.yaml", "apiVersion: acme.example/v1\nkind: Unknown\nmetadata: {name: x}\n"),
        (
            "argo/a.yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: x}\nspec: {source: {repoURL: x}}\n",
        ),
    ]);
    let repo = &world.work;
    let base = ["check", "--rev", "HEAD", "--base", "HEAD^"];
    repo.run_as_is(&["check", "--rev", "HEAD", "--base", "HEAD"]).success().says(expect![[r#"
        checked 4 kustomizations with 3 references in commit <0> (HEAD): 5 findings already in <0>, the merge base with HEAD
    "#]]);
    repo.run_as_is(&["init"]).fails(1).says(expect![[r#"
        wrote .kustomize-localize
        wrote kustomize-localize.lock
          added https://github.com/acme/mid?ref=v1 <0>
          .kustomize-localize: allow: {url: 'https://github.com/acme/gone//x?ref=v1', reason: 'TODO'}
            could not fetch https://github.com/acme/gone: '/home/me/upstream/acme/gone' does not appear to be a git repository
          .kustomize-localize: allow: {url: 'https://github.com/acme/lib//none?ref=v1', reason: 'TODO'}
            `https://github.com/acme/lib//none?ref=v1`: there is no directory `none` in https://github.com/acme/lib at <1>
        1 place to edit (invalid-kustomization)
          c/kustomization.yaml:1: not valid YAML: unclosed bracket '['
          help: fix it: `kustomize build` refuses it
        1 place to edit (function)
          d/g.yaml:1: the code of plugin `Unknown` is in the plugin home of the build machine, at `acme.example/v1/unknown/Unknown`
          help: use a built-in plugin, or a function whose program is in this repository
          help: or allow it, below `allow:` in .kustomize-localize: - {program: Unknown, rules: [function], reason: 'TODO'}
        1 place to edit (invalid-target)
          argo/a.yaml:4: cannot read what is deployed: Application x: a source has neither `path` nor `chart`
          help: fix it: a file that cannot be read is not checked
          help: or, if nothing deploys it, move it to a directory in `exclude` of .kustomize-localize
        2 places to edit (stale-allow)
          .kustomize-localize:2: https://github.com/acme/gone//x?ref=v1
          .kustomize-localize:3: https://github.com/acme/lib//none?ref=v1
          help: replace `TODO` with the reason for this exception
        builds cannot be compared: neither `kustomize` nor `kubectl` was found on PATH; install kustomize, or name it in the variable KUSTOMIZE
        after that: git kustomize-localize init
    "#]]);
    let entries = repo.read(FILE).replace("TODO", "it is gone, and we know");
    repo.write(FILE, &entries);
    repo.commit("what init writes");
    repo.run_as_is(&base)
        .success().says(expect![[r#"
            new in the configuration: +allow:
            new in the configuration: +- {url: 'https://github.com/acme/gone//x?ref=v1', reason: 'it is gone, and we know'}
            new in the configuration: +- {url: 'https://github.com/acme/lib//none?ref=v1', reason: 'it is gone, and we know'}
            new in the lock: kustomize-localize.lock:4: https://github.com/acme/mid?ref=v1 gitCommit:<0>
            checked 4 kustomizations with 3 references in commit <1> (HEAD): 2 allowed, 3 findings already in <2>, the merge base with HEAD^
        "#]]);
    repo.run_as_is(&["check", "--rev", "HEAD", "--base", "HEAD"]).success();
    // Later, an exception needs a change of its own; so does one for what is new.
    repo.git(&["reset", "-q", "--soft", "HEAD^"]);
    repo.write("e/kustomization.yaml", names("https://evil.example/x.yaml"));
    repo.write(FILE, format!("{entries}- {{url: 'https://evil.example/x.yaml', reason: ours}}\n"));
    repo.commit("more than that");
    repo.run_as_is(&base).fails(1).says(expect![[r#"
        error[new-exception]: the change itself adds this exception for remote-reference at e/kustomization.yaml:2: `https://evil.example/x.yaml`
         --> .kustomize-localize:4:3
          |
        4 | - {url: 'https://evil.example/x.yaml', reason: ours}
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
          = help: add it to `allow` in .kustomize-localize, in a separate change, and merge that first; or set `rules: {new-exception: warning}` there

        for more: git kustomize-localize explain new-exception
        new in the configuration: +allow:
        new in the configuration: +- {url: 'https://github.com/acme/gone//x?ref=v1', reason: 'it is gone, and we know'}
        new in the configuration: +- {url: 'https://github.com/acme/lib//none?ref=v1', reason: 'it is gone, and we know'}
        new in the configuration: +- {url: 'https://evil.example/x.yaml', reason: ours}
        new in the lock: kustomize-localize.lock:4: https://github.com/acme/mid?ref=v1 gitCommit:<0>
        checked 5 kustomizations with 4 references in commit <1> (HEAD): 1 error, 3 allowed, 3 findings already in <2>, the merge base with HEAD^
    "#]]);
    repo.git(&["reset", "-q", "--soft", "HEAD^"]);
    repo.git(&["rm", "-qrf", "e"]);
    repo.write(FILE, entries.replace("//x?ref=v1'", "', refs: any"));
    repo.commit("wide");
    repo.run_as_is(&base)
        .success().says(expect![[r#"
            new in the configuration: +allow:
            new in the configuration: +- {url: 'https://github.com/acme/gone', refs: any, reason: 'it is gone, and we know'}
            new in the configuration: +- {url: 'https://github.com/acme/lib//none?ref=v1', reason: 'it is gone, and we know'}
            new in the lock: kustomize-localize.lock:4: https://github.com/acme/mid?ref=v1 gitCommit:<0>
            checked 4 kustomizations with 3 references in commit <1> (HEAD): 2 allowed, 3 findings already in <2>, the merge base with HEAD^
        "#]]);
    // A file that is not read and not the same may name anything.
    repo.write("c/kustomization.yaml", "resources: [x\n");
    repo.commit("broken");
    repo.run_as_is(&base).fails(1).says(expect![[r#"
        error[invalid-kustomization]: not valid YAML: unclosed bracket '['
         --> c/kustomization.yaml:1:12
          |
        1 | resources: [x
          |            ^^
          = help: fix it: `kustomize build` refuses it

        for more: git kustomize-localize explain invalid-kustomization
        checked 4 kustomizations with 3 references in commit <0> (HEAD): 1 error, 1 allowed, 2 findings already in <1>, the merge base with HEAD^
    "#]]);
}

#[test]
fn what_changes_in_the_configuration_is_shown() {
    let (_sandbox, repo) = work();
    let entry = "- {url: 'https://u:hunter2@h.example/acme', refs: any, reason: ours}";
    let both = format!("allow:\n{entry}\nhelm: true\n");
    // A file that attributes call binary, and one that the user has shown by a program.
    repo.write(".gitattributes", ".kustomize-localize -diff diff=x\n");
    repo.git(&["config", "diff.x.textconv", "false"]);
    repo.git(&["config", "diff.external", "false"]);
    repo.git(&["config", "color.ui", "always"]);
    repo.commit("attributes");
    let mut before = None;
    let mut transcript = Transcript::default();
    for (text, lines) in [
        (Some("helm: true\n"), &["+helm: true"][..]),
        (Some(&*both), &["+allow:", "+- {url: 'https://h.example/acme', refs: any, reason: ours}"]),
        // The same lines, in another order.
        (Some("exclude:\n- a\ninclude:\n- app\n"), &["-helm: true", "+exclude:", "+- a", "+- app"]),
        (Some("exclude:\n- app/b\ninclude:\n- app\n"), &["-- a", "+- app/b"]),
        (Some("include:\n- app\nexclude:\n- app/b\n"), &["-exclude:", "+exclude:"]),
        (None, &["-include:", "-exclude:"]),
        (None, &[]),
    ] {
        match text {
            Some(text) => repo.write(FILE, text),
            None if before.is_some() => repo.remove(FILE),
            None => {}
        }
        before = text;
        repo.commit("policy");
        let arguments = ["check", "--rev", "HEAD", "--base", "HEAD^"];
        let output = repo.run_unchanged(&arguments);
        assert_eq!(output.stdout.contains("new in the configuration"), !lines.is_empty());
        transcript.add(&output);
        output.lacks("hunter2");
        let arguments = [&arguments[..], &["--format=json"]].concat();
        let report: Value = serde_json::from_str(&repo.run(&arguments).stdout).unwrap();
        let shown = report["new_config"].as_array().unwrap();
        for line in lines {
            assert!(shown.iter().any(|one| one == line), "{line}: {shown:?}");
        }
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize check --rev HEAD --base HEAD^
        new in the configuration: +helm: true
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
        $ git kustomize-localize check --rev HEAD --base HEAD^
        new in the configuration: +allow:
        new in the configuration: +- {url: 'https://h.example/acme', refs: any, reason: ours}
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
        $ git kustomize-localize check --rev HEAD --base HEAD^
        new in the configuration: -allow:
        new in the configuration: -- {url: 'https://h.example/acme', refs: any, reason: ours}
        new in the configuration: -helm: true
        new in the configuration: +exclude:
        new in the configuration: +- a
        new in the configuration: +include:
        new in the configuration: +- app
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
        $ git kustomize-localize check --rev HEAD --base HEAD^
        new in the configuration: -- a
        new in the configuration: +- app/b
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
        $ git kustomize-localize check --rev HEAD --base HEAD^
        new in the configuration: -exclude:
        new in the configuration: -- app/b
        new in the configuration: +exclude:
        new in the configuration: +- app/b
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 finding already in <1>, the merge base with HEAD^
        $ git kustomize-localize check --rev HEAD --base HEAD^
        new in the configuration: -include:
        new in the configuration: -- app
        new in the configuration: -exclude:
        new in the configuration: -- app/b
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
        $ git kustomize-localize check --rev HEAD --base HEAD^
        checked 1 kustomization with 1 reference in commit <0> (HEAD): no problems found
    "#]]);
}

#[test]
fn a_base_that_its_own_check_refuses_does_not_stop_a_change() {
    let (_sandbox, repo) = work();
    let base = ["check", "--rev", "HEAD", "--base", "HEAD^"];
    repo.write(FILE, "include: [clusters]\n");
    repo.commit("include what comes next");
    repo.write("clusters/kustomization.yaml", OTHER);
    repo.commit("the first root");
    repo.run(&base).fails(1).says(expect![[r#"
        error[remote-reference]: `https://other.example/x.yaml` is neither localized nor locked
         --> clusters/kustomization.yaml:2:3
          |
        2 | - https://other.example/x.yaml
          |   ^^^^^^^^^^^^^^^^^^^^^^^^^^^^ resources[0]
          = help: keep the URL, and lock it: git kustomize-localize lock && git add -f -- :/kustomize-localize.lock
          = help: or vendor it: git kustomize-localize vendor :/clusters

        for more: git kustomize-localize explain remote-reference
        checked 1 kustomization with 1 reference in commit <0> (HEAD): 1 error
    "#]]);
    // It is unknown what a lock with a conflict holds, so that each remote reference counts as new.
    repo.write("kustomize-localize.lock", "<<<<<<< ours\n");
    repo.commit("conflict");
    repo.remove("kustomize-localize.lock");
    repo.commit("without the lock");
    repo.run(&base).fails(1).stdout_has("error[remote-reference]: `https://other.example/x.yaml`");
}
