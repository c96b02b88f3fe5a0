//! Hints hold paths, refs and URLs as words that a shell leaves alone, whatever these are called.

use std::fs;

use crate::support::{Output, Project, Repo, Sandbox, Transcript, config, rows};

/// What a shell would read more into, and what git takes for an option.
const PATHS: [&str; 8] = ["my app", "it's", "$(touch pwned)", "say \"x\"", "-x", "a;b&c|d", "`id`", "[a]*?"];

/// What a branch can be called.
const REFS: [&str; 5] = ["it's", "$(id)", "a;b&c|d", "say\"x\"", "`id`"];

const TOP: &str = "$(git rev-parse --show-toplevel)";

/// Splits a command as a shell does. Fails where the shell would do more than split.
#[track_caller]
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut rest = command.chars();
    while let Some(c) = rest.next() {
        match c {
            '\'' | '"' => {
                let (inside, after) = rest.as_str().split_once(c).expect(command);
                let inside = match c {
                    '"' => inside.strip_prefix(TOP).unwrap_or(inside),
                    _ => inside,
                };
                assert!(c == '\'' || !inside.contains(['$', '`', '\\']), "{command}");
                word.get_or_insert_default().push_str(inside);
                rest = after.chars();
            }
            '\\' => word.get_or_insert_default().extend(rest.next()),
            ' ' | '(' | ')' | '&' | ';' | '>' => {
                words.extend(word.take());
                if c != ' ' {
                    words.push(c.to_string());
                }
            }
            '$' | '`' | '|' | '<' | '*' | '?' | '[' => panic!("unquoted {c}: {command}"),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Returns the commands of all hints, as words.
#[track_caller]
fn commands(output: &Output) -> Vec<Vec<String>> {
    const BEGINS: [&str; 11] =
        ["git ", "(cd ", "cd ", "cp ", "rm ", "mkdir ", "touch ", "printf ", "chmod ", "helm ", "--"];
    let lines = output.stdout.lines().chain(output.stderr.lines());
    let hints = lines.filter_map(|line| {
        let line = line.trim_start().trim_start_matches("= ");
        line.strip_prefix("hint: ").or_else(|| line.strip_prefix("help: "))
    });
    hints
        .filter_map(|hint| {
            let starts = std::iter::once(0).chain(hint.match_indices(": ").map(|(at, _)| at + 2));
            let mut texts = starts.map(|at| &hint[at..]);
            texts.find(|text| BEGINS.iter().any(|begin| text.starts_with(begin)))
        })
        .map(words)
        .collect()
}

/// A command begins so, and holds the name in one word, which is not an option.
#[track_caller]
fn has(output: &Output, beginning: &str, name: &str) {
    let commands = commands(output);
    let is_it =
        |words: &&Vec<String>| words.join(" ").contains(beginning) && words.iter().any(|word| word.contains(name));
    let words = commands.iter().find(is_it);
    let Some(words) = words else {
        panic!("no `{beginning}` with {name:?} in {commands:#?}\n{output:?}");
    };
    for (at, word) in words.iter().enumerate() {
        if word.contains(name) && word.starts_with('-') {
            assert!(words[..at].contains(&"--".to_owned()), "{words:?}");
        }
    }
}

#[test]
fn paths_of_findings_are_single_words() {
    let sandbox = Sandbox::new();
    let work = sandbox.repo("work");
    let listing = |entries: &[&str]| format!("resources: {entries:?}\n");
    work.write(".gitignore", "*.env\n");
    for name in PATHS {
        let write = |path: &str, text: &str| work.write(&format!("{name}/{path}"), text);
        write("gone.yaml", &config("gone"));
        write("two/kustomization.yaml", "namePrefix: a-\n");
        write("two/kustomization.yml", "namePrefix: a-\n");
        write("empty/x.yaml", &config("x"));
        write("shared.yaml", &config("shared"));
        let out = listing(&["../shared.yaml", "link.yaml"]);
        write("out/kustomization.yaml", &out);
        work.symlink(&format!("{name}/out/link.yaml"), "../shared.yaml");
        work.symlink(&format!("{name}/away.yaml"), "/nowhere/x.yaml");
        let all = listing(&["gone.yaml", "new.yaml", "empty", "away.yaml"]);
        let secret = "secretGenerator: [{name: a, envs: [s.env]}]\n";
        write("kustomization.yaml", &(all + secret));
        write("chart/kustomization.yaml", "helmCharts: [{name: web}]\n");
        let chart = "apiVersion: v2\nname: web\n";
        write("chart/charts/web/Chart.yaml", chart);
    }
    work.commit("all");
    for name in PATHS {
        let gone = format!(":(literal){name}/gone.yaml");
        work.git(&["rm", "--quiet", "--", &gone]);
        work.write(&format!("{name}/new.yaml"), config("new"));
        work.write(&format!("{name}/s.env"), "a=b\n");
    }
    for name in PATHS {
        let output = work.run(&["check", &format!("./{name}")]);
        output.fails(1);
        has(&output, "git restore --staged", name);
    }
}

#[test]
fn paths_of_failures_are_single_words() {
    let mut transcript = Transcript::default();
    for name in rows(PATHS, 2) {
        let sandbox = Sandbox::new();
        let work = sandbox.repo(&format!("{name}/work"));
        let project = Project::in_repo(sandbox, work);
        let work = &project.work;
        let new = format!("new/{name}/copy");
        let output = work.run(&["--no-commit", "--no-verify", "other", &new]);
        has(&output, "mkdir -p --", name);

        let held = ".git/refs/heads/localized/main.lock";
        work.write(held, "");
        let output = project.overlay(&[]);
        output.fails(2);
        has(&output, "rm", name);
        work.remove(held);

        project.overlay(&[]).success();
        let linked = project.sandbox.path(&format!("linked {name}"));
        let linked = linked.to_str().unwrap();
        work.git(&["worktree", "add", "--quiet", linked, "localized/main"]);
        has(&project.overlay(&[]), "--worktree", name);
        fs::write(format!("{linked}/README.md"), "edited\n").unwrap();
        work.write("example/base/config.yaml", config("other"));
        work.commit("other");
        has(&project.overlay(&["--worktree", linked]), "git -C", name);

        // What a name of ours stands for already.
        let place = format!("{name}/localized-files");
        work.write(&format!("{place}/x.yaml"), "mine\n");
        work.write(
            &format!("{name}/kustomization.yaml"),
            "resources: ['https://example.com/acme/remote.git?ref=v1']\n",
        );
        work.commit("mine");
        transcript.add(work.run(&["vendor", "--no-verify"]).fails(2));
    }
    transcript.says(expect![[r#"
        $ git kustomize-localize vendor --no-verify
        error: files that the lock does not list are in the way: `my app/localized-files/x.yaml`
          hint: move them away, then run the same command again
        $ git kustomize-localize vendor --no-verify
        error: files that the lock does not list are in the way: `$(touch pwned)/localized-files/x.yaml`
          hint: move them away, then run the same command again
        $ git kustomize-localize vendor --no-verify
        error: files that the lock does not list are in the way: `-x/localized-files/x.yaml`
          hint: move them away, then run the same command again
        $ git kustomize-localize vendor --no-verify
        error: files that the lock does not list are in the way: ``id`/localized-files/x.yaml`
          hint: move them away, then run the same command again
    "#]]);
}

#[test]
fn refs_are_single_words() {
    for name in rows(REFS, 2) {
        let project = Project::new();
        let work = &project.work;
        let on = |branch: &str| {
            let output = project.overlay(&["--branch", branch, "--no-verify"]);
            output.fails(2);
            output
        };
        let full = format!("refs/heads/{name}");
        let main = work.id("main");
        work.git(&["update-ref", &full, &main]);
        has(&on(&format!("{name}/below")), "git branch -m", name);
        let taken = project.overlay(&["--rev", name, "--branch", name]);
        has(&taken, "--branch", name);
        work.git(&["update-ref", "-d", &full]);
        work.git(&["symbolic-ref", &full, "refs/heads/main"]);
        has(&on(name), "git symbolic-ref --delete", name);
        work.git(&["symbolic-ref", "--delete", &full]);

        let commit = |parent: &str, message: &str| {
            let tree = format!("{main}^{{tree}}");
            let made = work.git(&["commit-tree", "-p", parent, "-m", message, &tree]);
            made.trim().to_owned()
        };
        let (ahead, beside) = (commit(&main, "ahead"), commit(&main, "beside"));
        work.git(&["update-ref", &full, &main]);
        work.git(&["config", "remote.origin.url", "https://example.com/acme/nothing.git"]);
        let tracking = format!("refs/remotes/origin/{name}");
        work.git(&["update-ref", &tracking, &ahead]);
        has(&on(name), "git fetch .", name);
        work.git(&["update-ref", &full, &beside]);
        has(&on(name), "git branch -f", name);
    }
}

#[test]
fn urls_are_single_words() {
    for name in REFS {
        let sandbox = Sandbox::new();
        let up = sandbox.repo(&format!("srv/{name}"));
        up.write("kustomization.yaml", "resources: []\n");
        up.commit("one");
        let work: Repo = sandbox.repo("work");
        let url = format!("file://{}?ref=nowhere", up.path().display());
        work.write("app/kustomization.yaml", format!("resources: [{url:?}]\n"));
        work.commit("source");
        let output = work.run(&["lock"]);
        output.fails(1);
        has(&output, "git ls-remote", name);
    }
}
