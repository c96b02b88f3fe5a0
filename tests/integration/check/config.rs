//! What a team decides about a check: the configuration, and comments in the files.

use serde_json::Value;

use crate::support::{Memory, Output, Repo, Sandbox};

const FILE: &str = ".kustomize-localize";
const REMOTE: &str = "https://github.com/acme/bases//web?ref=v1";

fn repo(sandbox: &Sandbox, files: &[(&str, &str)]) -> Repo {
    let repo = sandbox.repo("work");
    for (path, text) in files {
        repo.write(path, text);
    }
    repo.git(&["add", "--all"]);
    repo
}

/// Runs `check` and returns its findings: `rule path:line`, with `!` before one that fails the check and `~` before one
/// that is allowed.
#[track_caller]
fn found(repo: &Repo, args: &[&str]) -> Vec<String> {
    let output = repo.run(&[&["check", "--format", "json"], args].concat());
    let found = of(&output);
    let fails = found.iter().any(|finding| finding.starts_with('!'));
    if fails {
        output.fails(1)
    } else {
        output.success()
    };
    found
}

#[track_caller]
fn of(output: &Output) -> Vec<String> {
    let value: Value = serde_json::from_str(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}\n{}\n{}", output.stdout, output.stderr));
    listed(value["findings"].as_array().unwrap())
}

/// Returns the same of files in memory.
#[track_caller]
fn found_in(memory: &Memory) -> Vec<String> {
    let found = listed(&memory.findings());
    let fails = found.iter().any(|finding| finding.starts_with('!'));
    assert_eq!(memory.checked().status(), u8::from(fails), "{found:?}");
    found
}

fn listed(findings: &[Value]) -> Vec<String> {
    let shown = |finding: &Value| {
        let allowed = !finding["allowed"].is_null();
        let mark = match (allowed, finding["severity"] == "error") {
            (true, _) => "~",
            (false, true) => "!",
            (false, false) => "",
        };
        let text = |key: &str| finding[key].as_str().unwrap().to_owned();
        let line = finding["line"].as_u64().unwrap_or(0);
        format!("{mark}{} {}:{line}", text("rule"), text("path"))
    };
    findings.iter().map(shown).collect()
}

#[test]
fn the_configuration_comes_from_the_checked_tree() {
    let sandbox = Sandbox::new();
    let text = format!("resources:\n- {REMOTE}\n");
    let repo = repo(&sandbox, &[("a/kustomization.yaml", &text)]);
    repo.commit("without a configuration");
    let error = ["!remote-reference a/kustomization.yaml:2"];
    let warning = ["remote-reference a/kustomization.yaml:2"];
    assert_eq!(found(&repo, &[]), error);
    repo.write(FILE, "rules: {remote-reference: warning}\n");
    assert_eq!(found(&repo, &[]), error, "it is not staged");
    assert_eq!(found(&repo, &["--working-tree"]), warning);
    repo.git(&["add", FILE]);
    repo.write(FILE, "rules: {remote-reference: off}\n");
    let before = repo.state();
    assert_eq!(found(&repo, &[]), warning);
    assert_eq!(found(&repo, &["--working-tree"]), [""; 0]);
    assert_eq!(found(&repo, &["--rev", "HEAD"]), error);
    repo.state().assert_same(&before);
    repo.commit("with one");
    assert_eq!(found(&repo, &["--rev", "HEAD"]), [""; 0]);
    assert_eq!(found(&repo, &["--rev", "HEAD^"]), error);
    // From a directory below it is the same one; one that lies there is none.
    repo.write(&format!("a/{FILE}"), "rules: {remote-reference: error}\n");
    repo.git(&["add", "--all"]);
    let below = sandbox.run(&repo.path().join("a"), &["check", "--format", "json"]);
    assert_eq!(of(below.success()), [""; 0]);
}

#[test]
fn another_configuration_can_judge() {
    let sandbox = Sandbox::new();
    let text = format!("resources:\n- {REMOTE}\n");
    let repo = repo(
        &sandbox,
        &[
            ("a/kustomization.yaml", &text),
            (FILE, "rules: {remote-reference: off}\n"),
        ],
    );
    assert_eq!(found(&repo, &[]), [""; 0]);
    let policy = sandbox.path("policy.yaml");
    std::fs::write(&policy, "rules: {}\n").unwrap();
    let policy = policy.to_str().unwrap();
    let error = ["!remote-reference a/kustomization.yaml:2"];
    assert_eq!(found(&repo, &["--config", policy]), error);
    let below = ["check", "--format", "json", "--config", "../../policy.yaml"];
    let below = sandbox.run(&repo.path().join("a"), &below);
    assert_eq!(of(&below), error);

    let allow =
        "allow:\n- {url: github.com/acme, reason: ours}\n- {url: a.example, reason: unused}\n";
    std::fs::write(policy, allow).unwrap();
    let output = repo.run(&["check", "--format", "json", "--config", policy]);
    assert_eq!(
        of(output.success()),
        [
            format!("stale-allow {policy}:3"),
            "~remote-reference a/kustomization.yaml:2".to_owned(),
        ]
    );
    output.stdout_has(&format!("{policy}:2"));

    std::fs::write(policy, "rules:\n  remote-reference: of\n").unwrap();
    let refused = repo.run(&["check", "--config", policy]);
    refused.fails(2).stderr_has(&format!(
        "{policy}:2:21: rules.remote-reference: `of` is none of `error`, `warning`, `off`"
    ));
    let missing = repo.run(&["check", "--config", "nowhere.yaml"]);
    missing
        .fails(2)
        .stderr_has("could not read the configuration `nowhere.yaml`");
    assert_eq!(missing.stdout, "");
}

#[test]
fn an_unknown_configuration_key_stops_the_check() {
    let sandbox = Sandbox::new();
    let repo = repo(
        &sandbox,
        &[
            ("a/kustomization.yaml", "resources: []\n"),
            (
                FILE,
                "new-only: true\nexec: [rm, -rf, /]\nrules:\n  remote-refrence: off\nallow:\n- url: github.com\n",
            ),
        ],
    );
    let before = repo.state();
    for args in [
        &["check"][..],
        &["check", "--working-tree"],
        &["check", "--format", "json"],
        &["check", "--no-allow"],
        &["check", "a"],
    ] {
        let output = repo.run(args);
        output.fails(2);
        let said = format!("{}{}", output.stdout, output.stderr);
        for part in [
            ".kustomize-localize:2:1",
            "this key is not known",
            ".kustomize-localize:4:3",
            "there is no rule `remote-refrence`",
            "did you mean `remote-reference`?",
            ".kustomize-localize:6:3",
            "an entry has a `reason`",
        ] {
            // JSON keeps place and message apart.
            let place = part.starts_with('.') && args.contains(&"json");
            assert!(place || said.contains(part), "{args:?}: {part}\n{said}");
        }
    }
    repo.state().assert_same(&before);

    repo.remove(FILE);
    repo.symlink(FILE, "elsewhere.yaml");
    repo.git(&["add", "--all"]);
    for args in [&["check"][..], &["check", "--working-tree"]] {
        let link = repo.run(args);
        link.fails(2)
            .stderr_has(FILE)
            .stderr_has("not a regular file");
    }
}

#[test]
fn severities_decide_the_exit_status() {
    let text = format!("resources:\n- {REMOTE}\n- x.yaml # kustomize-localize: allow[cycle] old\n");
    let repo = Memory::of(&[("kustomization.yaml", &text), ("x.yaml", "")]);
    let with = |rules: &str| found_in(&repo.with(FILE, format!("rules: {{{rules}}}\n")));
    let remote = "remote-reference kustomization.yaml:2";
    let stale = "stale-allow kustomization.yaml:3";
    assert_eq!(with(""), [&format!("!{remote}"), stale]);
    assert_eq!(with("remote-reference: warning"), [remote, stale]);
    assert_eq!(with("remote-reference: off"), [stale]);
    assert_eq!(
        with("remote-reference: off, stale-allow: error"),
        [format!("!{stale}")]
    );
    assert_eq!(
        with("stale-allow: off, remote-reference: error"),
        [format!("!{remote}")]
    );
}

#[test]
fn urls_are_allowed_by_host_path_and_ref() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    let text = format!(
        "resources:
- https://github.com/acme/bases//web?ref=v1
- git@github.com:acme/bases//web?ref={id}
- https://github.com/acme/bases//web?ref=main
- https://github.com/acme-evil/bases//web?ref=v1
- https://github.com.evil.example/acme/bases//web?ref=v1
- https://evil.example/?x=github.com/acme/bases
- https://evil.example/acme/../github.com/acme/bases.git?ref=v1
- https://github.com/acme/../evil/bases.git?ref=v1
- http://git.example/acme/bases.git?ref=v1
- http://github.com/acme/bases//web?ref=v1
- https://github.com@evil.example/acme/bases?ref=v1
"
    );
    let repo = Memory::of(&[
        ("kustomization.yaml", &text),
        ("ok/kustomization.yaml", "resources: []\n"),
    ]);
    let allowed = |entry: &str| -> Vec<u64> {
        let text = format!("allow:\n- {{{entry}, reason: ours}}\n");
        let findings = repo.with(FILE, text).findings();
        let allowed = findings.iter().filter(|finding| {
            finding["rule"] == "remote-reference" && !finding["allowed"].is_null()
        });
        for finding in allowed.clone() {
            assert_eq!(finding["allowed"]["by"], format!("{FILE}:2"));
            assert_eq!(finding["allowed"]["reason"], "ours");
        }
        allowed
            .map(|finding| finding["line"].as_u64().unwrap())
            .collect()
    };
    // kustomize asks GitHub over https, whatever is written.
    assert_eq!(allowed("url: github.com/acme"), [2, 3, 11]);
    assert_eq!(allowed("url: github.com/acme/*, refs: tag"), [2, 3, 11]);
    assert_eq!(allowed("url: github.com/acme, refs: commit"), [3]);
    assert_eq!(allowed("url: github.com/acme, refs: branch"), [2, 3, 4, 11]);
    assert_eq!(allowed("url: github.com/acme, refs: any"), [2, 3, 4, 11]);
    assert_eq!(allowed("url: github.com"), [2, 3, 5, 11]);
    assert_eq!(
        allowed("url: 'https://github.com/acme/bases//web'"),
        [2, 11]
    );
    assert_eq!(allowed("url: 'git@github.com:acme'"), [3]);
    assert_eq!(allowed("url: 'http://git.example'"), [10]);
    assert_eq!(allowed("url: git.example"), [0; 0]);
    assert_eq!(allowed("url: github.com, rules: [floating-ref]"), [0; 0]);
}

#[test]
fn comments_allow_findings_on_their_line() {
    let text = format!(
        "resources:
# kustomize-localize: allow[remote-reference] ours
- {REMOTE}
- https://example.com/a.yaml # kustomize-localize: allow[remote-reference] on trial
- https://example.com/b.yaml # kustomize-localize: allow[remote-reference]
- https://example.com/c.yaml # kustomize-localize: allow[cycle] no
- https://example.com/d.yaml # kustomize-localize: allow[remote-refrence] typo
patches:
- patch: |-
    # kustomize-localize: allow[remote-reference] no comment
    - op: remove
"
    );
    let files = [("kustomization.yaml", text.as_str())];
    let repo = Memory::of(&files);
    let at = |rule: &str, line: usize| format!("{rule} kustomization.yaml:{line}");
    assert_eq!(
        found_in(&repo),
        [
            at("~remote-reference", 3),
            at("~remote-reference", 4),
            at("!remote-reference", 5),
            at("stale-allow", 5),
            at("!remote-reference", 6),
            at("stale-allow", 6),
            at("!remote-reference", 7),
            at("stale-allow", 7),
        ]
    );
    let said = Value::from(repo.findings()).to_string();
    for part in [
        "\"kustomization.yaml:2\"",
        "\"on trial\"",
        "this comment allows nothing: no reason is given",
        "`cycle` has nothing here that could be allowed",
        "there is no rule `remote-refrence` (did you mean `remote-reference`?)",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert_eq!(
        found_in(&repo.no_allow()),
        [3, 4, 5, 6, 7].map(|line| at("!remote-reference", line))
    );
    // A part does not tell what the whole needs.
    let repo = repo.with(
        "b/kustomization.yaml",
        format!("resources:\n- {REMOTE} # kustomize-localize: allow[cycle] x\n"),
    );
    let part = found_in(&repo.at(&["b"]));
    assert_eq!(part, ["!remote-reference b/kustomization.yaml:2"]);
    let strict = "rules: {stale-allow: error, remote-reference: warning}\n";
    let strict = found_in(&repo.with(FILE, strict));
    assert!(strict.contains(&at("!stale-allow", 6)), "{strict:?}");
    assert!(strict.contains(&at("~remote-reference", 3)), "{strict:?}");
}

#[test]
fn a_placeholder_is_no_reason() {
    let text = |reason: &str| {
        format!(
            "resources:\n- https://example.com/x.yaml # kustomize-localize: allow[remote-reference] {reason}\n"
        )
    };
    let comment = |reason: &str| found_in(&Memory::of(&[("kustomization.yaml", &text(reason))]));
    let entry = |reason: &str| {
        let allow = format!("- {{url: example.com, leave: true, reason: '{reason}'}}\n");
        let missing = format!("- {{path: app/gone.yaml, reason: '{reason}'}}\n");
        let sandbox = Sandbox::new();
        let repo = repo(
            &sandbox,
            &[
                (FILE, &format!("allow:\n{allow}leave-missing:\n{missing}")),
                (
                    "app/kustomization.yaml",
                    "resources: ['https://example.com/x.yaml', gone.yaml]\n",
                ),
            ],
        );
        let found = found(&repo, &[]);
        repo.commit("entries");
        let ways = [
            &["lock"][..],
            &["--in-place", "--no-verify"],
            &["app", "--no-verify", "--branch", "copy"],
        ];
        for way in ways {
            let output = repo.run(way);
            if found.iter().any(|one| one.starts_with('!')) {
                // It would be in the lock for good.
                output.fails(2).stderr_has(&format!("{FILE}:2:3: "));
                assert!(!repo.path().join("kustomize-localize.lock").exists());
            } else {
                let lock = repo.read("kustomize-localize.lock");
                assert!(output.success().stderr.is_empty() && lock.contains(reason));
                repo.git(&["add", "--all"]);
                repo.git(&["commit", "--quiet", "--allow-empty", "--message", "lock"]);
            }
        }
        found
    };
    for reason in ["WHY", "why?", "TODO", "todo:", "<REASON>", "FIXME"] {
        assert_eq!(
            comment(reason),
            [
                "!remote-reference kustomization.yaml:2",
                "stale-allow kustomization.yaml:2"
            ],
            "{reason}"
        );
        assert_eq!(
            entry(reason),
            [
                &format!("stale-allow {FILE}:2"),
                &format!("stale-allow {FILE}:4"),
                "!remote-reference app/kustomization.yaml:1",
                "!missing-path app/kustomization.yaml:1",
            ],
            "{reason}"
        );
    }
    for reason in ["why not", "ours", "TODO by Bob: vendor it"] {
        let allowed = ["~remote-reference kustomization.yaml:2"];
        assert_eq!(comment(reason), allowed, "{reason}");
        let allowed = ["~remote-reference app/kustomization.yaml:1"];
        assert_eq!(entry(reason), allowed, "{reason}");
    }
}

#[test]
fn excluded_roots_are_still_followed() {
    let text = format!("resources:\n- {REMOTE}\n");
    let repo = Memory::of(&[
        ("apps/templates/kustomization.yaml", &text),
        ("apps/web/kustomization.yaml", "resources: []\n"),
    ]);
    let error = ["!remote-reference apps/templates/kustomization.yaml:2"];
    let with = |text: &str| found_in(&repo.with(FILE, text));
    assert_eq!(with(""), error);
    let exclude = "exclude: [\"**/templates\"]\n";
    assert_eq!(with(exclude), [""; 0]);
    assert_eq!(with("include: [apps/w*]\n"), [""; 0]);
    assert_eq!(with("include: [apps]\n"), error);
    let named = |paths: &[&str], text: &str| repo.with(FILE, text).at(paths).check();
    assert_eq!(
        named(&["apps/web"], "include: [apps]\n").unwrap().status(),
        0
    );
    for paths in [
        &["apps/templates"][..],
        &["apps/web", "apps/templates/kustomization.yaml"],
    ] {
        let failure = &named(paths, exclude).unwrap_err().0[0];
        let is_excluded = "is excluded by `.kustomize-localize`";
        assert!(failure.message.contains(is_excluded), "{failure:?}");
        let hint = "change `include` and `exclude`";
        assert!(failure.hints[0].contains(hint), "{failure:?}");
    }
    let repo = repo.with("apps/web/kustomization.yaml", "resources: [../templates]\n");
    assert_eq!(found_in(&repo.with(FILE, exclude)), error);
}

#[test]
fn new_only_in_the_configuration_needs_a_base() {
    let sandbox = Sandbox::new();
    let text = format!("resources:\n- {REMOTE}\n");
    let repo = repo(
        &sandbox,
        &[("kustomization.yaml", &text), (FILE, "new-only: true\n")],
    );
    repo.commit("old");
    let output = repo.run(&["check"]);
    output
        .fails(2)
        .stderr_has("`new-only` needs a base to compare with")
        .stderr_has("--new-only=BASE")
        .stderr_has("--no-new-only");
    assert_eq!(output.stdout, "");
    assert_eq!(found(&repo, &["--no-new-only"]).len(), 1);
    assert_eq!(found(&repo, &["--new-only=HEAD"]), [""; 0]);
    // A finding that the base allowed is new without the entry.
    repo.write(
        FILE,
        "allow: [{url: github.com, reason: r}]\nnew-only: true\n",
    );
    repo.commit("allowed");
    assert_eq!(
        found(&repo, &["--new-only=HEAD"]),
        ["~remote-reference kustomization.yaml:2"]
    );
    let unknown = repo.run(&["check", "--new-only=nowhere"]);
    unknown.fails(2).stderr_has("`nowhere` names no commit");
}

#[test]
fn locked_references_can_count_too() {
    let text = format!("resources:\n- {REMOTE}\n");
    let lock = "version: 1
remotes:
  - url: https://github.com/acme/bases
    ref: v1
    commit: 0123456789abcdef0123456789abcdef01234567
    paths: [web]
";
    let repo = Memory::of(&[
        ("kustomization.yaml", &text),
        ("kustomize-localize.lock", lock),
    ]);
    assert_eq!(found_in(&repo), [""; 0]);
    let strict = repo.with(FILE, "locked: error\n");
    assert_eq!(
        found_in(&strict),
        ["!remote-reference kustomization.yaml:2"]
    );
    let said = strict.human();
    assert!(
        said.contains("locked but not localized") && said.contains(FILE),
        "{said}"
    );
    // An allowed reference is allowed, locked or not; without the entry of the lock nothing is different.
    let allowed = "locked: error\nallow: [{url: github.com/acme, reason: r}]\n";
    assert_eq!(
        found_in(&repo.with(FILE, allowed)),
        ["~remote-reference kustomization.yaml:2"]
    );
    // Where the lock fulfils it there is nothing to allow.
    let idle = "allow: [{url: github.com/acme, reason: r}]\n";
    assert_eq!(
        found_in(&repo.with(FILE, idle)),
        [format!("stale-allow {FILE}:1")]
    );
}

#[test]
fn a_scope_applies_to_its_files() {
    let repo = Memory::of(&[
        (
            "apps/web/overlay/kustomization.yaml",
            "resources:\n- ../base\n- ../../../shared\n- ../../db\n",
        ),
        ("apps/web/base/kustomization.yaml", "resources: []\n"),
        ("apps/db/kustomization.yaml", "resources: []\n"),
        ("shared/kustomization.yaml", "resources: [../apps/db]\n"),
    ]);
    let with = |scopes: &str| found_in(&repo.with(FILE, format!("scopes: {scopes}\n")));
    let at = |line: usize| format!("!out-of-scope apps/web/overlay/kustomization.yaml:{line}");
    assert_eq!(with("[]"), [""; 0]);
    assert_eq!(with("[.]"), [""; 0]);
    assert_eq!(with("[apps/*]"), [at(3), at(4)]);
    assert_eq!(with("[apps]"), [at(3)]);
    // The innermost bounds.
    assert_eq!(with("[apps, apps/web]"), [at(3), at(4)]);
    assert_eq!(with("[apps/**]"), [at(2), at(3), at(4)]);
    assert_eq!(with("['**/web']"), [at(3), at(4)]);
    let said = repo.with(FILE, "scopes: ['**/web']\n").human();
    assert!(said.contains("apps/web") && said.contains(FILE), "{said}");
    // One exception, where it is made.
    let repo = repo.with(
        "apps/web/overlay/kustomization.yaml",
        "resources:\n- ../base\n- ../../../shared # kustomize-localize: allow[out-of-scope] everybody's\n- ../../db\n",
    );
    assert_eq!(
        found_in(&repo.with(FILE, "scopes: [apps/*]\n")),
        [format!("~{}", &at(3)[1..]), at(4)]
    );
}

#[test]
fn files_outside_of_their_root_can_be_allowed() {
    let repo = Memory::of(&[
        (
            "apps/web/kustomization.yaml",
            "resources:\n- ../shared.yaml\n- ../../top.yaml\n",
        ),
        ("apps/shared.yaml", ""),
        ("top.yaml", ""),
    ]);
    let with = |text: &str| found_in(&repo.with(FILE, text));
    let at = |line: usize| format!("!out-of-scope apps/web/kustomization.yaml:{line}");
    assert_eq!(with(""), [at(2), at(3)]);
    assert_eq!(with("load-restrictor: root-only\n"), [at(2), at(3)]);
    assert_eq!(with("load-restrictor: none\n"), [""; 0]);
    assert_eq!(with("load-restrictor: none\nscopes: [apps]\n"), [at(3)]);
}

#[test]
fn a_warning_is_not_an_error_by_default() {
    let text = "resources:\n- x.yaml\n---\nresources:\n- x.yaml\n";
    let repo = Memory::of(&[("kustomization.yaml", text), ("x.yaml", "")]);
    let with = |rules: &str| found_in(&repo.with(FILE, format!("rules: {{{rules}}}\n")));
    let key = "invalid-kustomization kustomization.yaml:3";
    assert_eq!(with(""), [key]);
    assert_eq!(with("cycle: error"), [key]);
    assert_eq!(with("invalid-kustomization: warning"), [key]);
    assert_eq!(with("invalid-kustomization: error"), [format!("!{key}")]);
    assert_eq!(with("invalid-kustomization: off"), [""; 0]);
}

#[test]
fn the_head_of_a_file_allows_what_is_about_all_of_it() {
    let flux = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flux-system, namespace: flux-system}
spec: {url: 'https://github.com/acme/fleet'}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec: {path: ./apps, sourceRef: {kind: GitRepository, name: flux-system}}
";
    let none = |comment: &str| format!("{comment}replicas: 2\n");
    let sandbox = Sandbox::new();
    let repo = repo(
        &sandbox,
        &[
            ("clusters/apps.yaml", flux),
            ("apps/values.yaml", &none("")),
        ],
    );
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let place = "scanned-file apps/values.yaml:0";
    assert_eq!(found(&repo, &[]), [format!("!{place}")]);
    let comment = |rule: &str| format!("# kustomize-localize: allow[{rule}] on trial\n");
    repo.write("apps/values.yaml", none(&comment("scanned-file")));
    repo.git(&["add", "--all"]);
    assert_eq!(found(&repo, &[]), [format!("~{place}")]);
    let all = found(&repo, &["--no-allow"]);
    assert_eq!(all, [format!("!{place}")]);
    // Below the head, and about another rule, it allows nothing.
    let below = format!("replicas: 2\n{}", comment("scanned-file"));
    for (text, line) in [(below, 2), (none(&comment("cycle")), 1)] {
        repo.write("apps/values.yaml", text);
        repo.git(&["add", "--all"]);
        assert_eq!(
            found(&repo, &[]),
            [
                format!("!{place}"),
                format!("stale-allow apps/values.yaml:{line}")
            ]
        );
    }
}
