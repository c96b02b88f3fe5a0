//! What a team decides about a check: the configuration, and comments in the files.

use serde_json::json;

use super::{found, marked};
use crate::support::{Memory, Repo, Sandbox};

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
    assert_eq!(found(&repo, &["--staged"]), error, "it is not staged");
    assert_eq!(found(&repo, &[]), warning);
    repo.git(&["add", FILE]);
    repo.write(FILE, "rules: {remote-reference: off}\n");
    assert_eq!(found(&repo, &["--staged"]), warning);
    assert_eq!(found(&repo, &[]), [""; 0]);
    assert_eq!(found(&repo, &["--rev", "HEAD"]), error);
    repo.commit("with one");
    assert_eq!(found(&repo, &["--rev", "HEAD"]), [""; 0]);
    assert_eq!(found(&repo, &["--rev", "HEAD^"]), error);
    // From a directory below it is the same one; one that lies there is none.
    repo.write(&format!("a/{FILE}"), "rules: {remote-reference: error}\n");
    repo.git(&["add", "--all"]);
    sandbox.run(&repo.path().join("a"), &["check"]).success().stdout_has("nothing found");
}

#[test]
fn a_configuration_that_cannot_be_read_stops_the_check() {
    let sandbox = Sandbox::new();
    let wrong = "helm: true\nexec: [rm, -rf, /]\nrules:\n  remote-refrence: off\nallow:\n- url: github.com\n";
    let repo = repo(&sandbox, &[("a/kustomization.yaml", ""), (FILE, wrong)]);
    for args in [&["check"][..], &["check", "--staged"], &["check", "--format", "json"], &["check", "a"]] {
        repo.run_unchanged(args).fails(2).stderr_has(&format!("{FILE}:2:1: unknown field `exec`"));
    }
    repo.remove(FILE);
    repo.symlink(FILE, "elsewhere.yaml");
    repo.git(&["add", "--all"]);
    for args in [&["check"][..], &["check", "--staged"]] {
        repo.run(args).fails(2).stderr_has(FILE).stderr_has("not a regular file");
    }
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
    let repo = Memory::of(&[("kustomization.yaml", &text), ("ok/kustomization.yaml", "resources: []\n")]);
    let allowed = |entry: &str| -> Vec<u64> {
        let text = format!("allow:\n- {{{entry}, reason: ours}}\n");
        let findings = repo.with(FILE, text).findings();
        let allowed =
            findings.iter().filter(|finding| finding["rule"] == "remote-reference" && !finding["allowed"].is_null());
        for finding in allowed.clone() {
            assert_eq!((&finding["allowed"]["path"], &finding["allowed"]["line"]), (&json!(FILE), &json!(2)));
            assert_eq!(finding["allowed"]["reason"], "ours");
        }
        allowed.map(|finding| finding["line"].as_u64().unwrap()).collect()
    };
    // What kustomize asks first is not what stands for https://github.com/.
    assert_eq!(allowed("url: github.com/acme, refs: tag"), [2, 3]);
    assert_eq!(allowed("url: github.com/acme/*, refs: tag"), [2, 3]);
    assert_eq!(allowed("url: github.com/acme, refs: commit"), [3]);
    assert_eq!(allowed("url: github.com/acme, refs: branch"), [2, 3, 4]);
    assert_eq!(allowed("url: github.com/acme, refs: any"), [2, 3, 4]);
    assert_eq!(allowed("url: github.com, refs: tag"), [2, 3, 5]);
    assert_eq!(allowed("url: 'https://github.com/acme/bases//web', refs: tag"), [2]);
    assert_eq!(allowed("url: 'git@github.com:acme', refs: tag"), [3]);
    assert_eq!(allowed("url: 'http://git.example', refs: tag"), [10]);
    assert_eq!(allowed("url: git.example, refs: tag"), [0; 0]);
    assert_eq!(allowed("url: github.com, refs: any, rules: [floating-ref]"), [0; 0]);
}

#[test]
fn a_placeholder_counts_and_is_reported() {
    let marked = |files: &[(&str, &str)]| -> Vec<String> {
        let findings = Memory::of(files).findings();
        findings.iter().map(marked).collect()
    };
    let entries = |reason: &str| {
        format!(
            "allow:\n- {{url: example.com, refs: any, reason: '{reason}'}}\n- {{path: gone.yaml, reason: '{reason}'}}\n"
        )
    };
    let place = "kustomization.yaml";
    let both = "resources: ['https://example.com/x.yaml', gone.yaml]\n";
    let missing = "~missing-path kustomization.yaml:1";
    for (reason, is_one) in [
        ("WHY", false),
        ("why?", false),
        ("TODO", false),
        ("todo:", false),
        ("<REASON>", false),
        ("FIXME", false),
        ("why not", true),
        ("ours", true),
        ("TODO by Bob: vendor it", true),
    ] {
        let text = format!(
            "resources:\n- https://example.com/x.yaml # kustomize-localize: allow[remote-reference] {reason}\n"
        );
        let remote = |mark: &str, line: usize| format!("{mark}remote-reference {place}:{line}");
        let stale = |place: &str, line: usize| format!("stale-allow {place}:{line}");
        let of_comment = [stale(place, 2)];
        let comment = [vec![remote("~", 2)], of_comment[usize::from(is_one)..].to_vec()];
        assert_eq!(marked(&[(place, &text)]), comment.concat(), "{reason}");
        let of_entries = if is_one { vec![] } else { vec![stale(FILE, 2), stale(FILE, 3)] };
        let entry = [of_entries, vec![remote("~", 1), missing.to_owned()]].concat();
        let files = [(FILE, &*entries(reason)), (place, both)];
        assert_eq!(marked(&files), entry, "{reason}");
    }
}
