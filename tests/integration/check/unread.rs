//! What cannot be read as a whole is never known, allowed or switched off: it may name more than is seen.

use serde_json::Value;

use super::report;
use crate::support::{Memory, Sandbox, config};

const URL: &str = "https://h.example/x.yaml";

/// One place in which something is wrong, and something remote can be named.
struct Position {
    name: &'static str,
    /// The file with the problem.
    file: &'static str,
    /// What stands in it. `MORE` is nothing, or `more`.
    text: &'static str,
    more: &'static str,
    /// The rule that finds the problem.
    rule: &'static str,
    /// Whether what is named can be read all the same.
    is_read: bool,
    /// What else there is.
    beside: &'static [(&'static str, &'static str)],
}

const TRANSFORMERS: &str = "resources: [cm.yaml]\ntransformers: [t.yaml]\n";
const PATCH: &str = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: b}\npath: URL\n";
const UNKNOWN: &str = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: [a]\n---\nMORE";
const SOURCE: &str = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: flux-system}\nspec: {url: 'https://github.com/acme/fleet'}\n";

/// What most of them are like.
const WRONG: Position = Position {
    name: "",
    file: "app/kustomization.yaml",
    text: "",
    more: "- URL\n",
    rule: "invalid-kustomization",
    is_read: true,
    beside: &[],
};

const POSITIONS: [Position; 10] = [
    Position { name: "kustomization", text: "namePrefx: x\nresources:\n- cm.yaml\nMORE", ..WRONG },
    Position {
        name: "chart",
        text: "namePrefx: x\nresources: [cm.yaml]\nMORE",
        more: "helmCharts: [{name: web, repo: 'https://h.example'}]\n",
        ..WRONG
    },
    Position { name: "syntax", text: "resources:\n- cm.yaml\nMOREcrds: [\n", is_read: false, ..WRONG },
    Position {
        name: "several",
        text: "resources:\n- cm.yaml\nMORE",
        is_read: false,
        beside: &[("app/kustomization.yml", "resources: [cm.yaml]\n")],
        ..WRONG
    },
    Position {
        name: "plugin file",
        file: "app/t.yaml",
        text: UNKNOWN,
        more: PATCH,
        beside: &[("app/kustomization.yaml", TRANSFORMERS)],
        ..WRONG
    },
    Position {
        name: "inline",
        text: "resources: [cm.yaml]\ntransformers:\n- '{apiVersion: builtin, kind: PatchTransformer, metadata: {name: a}, path: [a]}'\nMORE",
        more: "- '{apiVersion: builtin, kind: PatchTransformer, metadata: {name: b}, path: \"URL\"}'\n",
        ..WRONG
    },
    Position {
        name: "plugin root",
        file: "app/plugins/t.yaml",
        text: UNKNOWN,
        more: PATCH,
        beside: &[
            ("app/kustomization.yaml", "resources: [cm.yaml]\ntransformers: [plugins]\n"),
            ("app/plugins/kustomization.yaml", "resources: [t.yaml]\n"),
        ],
        ..WRONG
    },
    Position {
        name: "changed plugin root",
        file: "app/plugins/kustomization.yaml",
        text: "resources: [t.yaml]\npatches: [{path: p.yaml}]\n",
        more: "path: URL\n",
        rule: "function",
        is_read: false,
        beside: &[
            ("app/kustomization.yaml", "resources: [cm.yaml]\ntransformers: [plugins]\n"),
            ("app/plugins/t.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: b}\n"),
            ("app/plugins/p.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: b}\nMORE"),
        ],
    },
    Position {
        name: "function",
        file: "app/t.yaml",
        text: "apiVersion: a/v1\nkind: Fn\nmetadata:\n  name: fn\n  annotations:\n    config.kubernetes.io/function: |\n      a: [\nMORE",
        more: "      container: {image: x, network: true}\n",
        rule: "function",
        is_read: false,
        beside: &[("app/kustomization.yaml", TRANSFORMERS)],
    },
    Position {
        name: "object of an engine",
        file: "clusters/app.yaml",
        text: "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: app, namespace: flux-system}\nspec:\n  path: [./app]\n  sourceRef: {kind: GitRepository, name: fleet}\nMORE",
        more: "  components: ['https://h.example/o/r']\n",
        rule: "invalid-target",
        is_read: false,
        beside: &[("app/kustomization.yaml", "resources: [cm.yaml]\n"), ("clusters/source.yaml", SOURCE)],
    },
];

impl Position {
    /// Returns the files with or without what is named. Before the line `at` of the one with the problem stands `comment`.
    fn files(&self, is_named: bool, (at, comment): (usize, &str)) -> Vec<(&str, String)> {
        let more = if is_named { self.more } else { "" };
        let filled = |text: &str| text.replace("MORE", more).replace("URL", URL);
        let text = filled(self.text);
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        lines.insert(at, comment);
        let beside = self.beside.iter().map(|(path, text)| (*path, filled(text)));
        let mut files: Vec<(&str, String)> = beside.collect();
        files.push((self.file, lines.concat()));
        files.push(("app/cm.yaml", config("cm")));
        files
    }

    /// Checks the files, and expects the problem, and what is named beside it. Returns the line of the problem.
    #[track_caller]
    fn found(&self, policy: &str, comment: (usize, &str)) -> usize {
        let mut memory = Memory::default();
        memory.write(".kustomize-localize", policy);
        for (path, text) in self.files(true, comment) {
            memory.write(path, text);
        }
        self.assert_found(&memory.findings(), self.file)
    }

    #[track_caller]
    fn assert_found(&self, found: &[Value], file: &str) -> usize {
        let is_here = |one: &&Value, rule: &str| one["rule"] == rule && one["path"] == file;
        let problem = found.iter().find(|one| is_here(one, self.rule));
        let problem = problem.unwrap_or_else(|| panic!("{}: {found:?}", self.name));
        assert_eq!(problem["severity"], "error", "{}", self.name);
        assert!(problem["allowed"].is_null(), "{}", self.name);
        let is_remote = |one: &Value| is_here(&one, "remote-reference") || is_here(&one, "remote-chart");
        let is_read = found.iter().any(is_remote);
        assert_eq!(is_read, self.is_read, "{}: {found:?}", self.name);
        usize::try_from(problem["line"].as_u64().unwrap_or(1)).unwrap()
    }

    fn allow(&self) -> String {
        format!("# kustomize-localize: allow[{}] on purpose\n", self.rule)
    }
}

#[test]
fn neither_configuration_nor_comment_allows_it() {
    for position in &POSITIONS {
        let line = position.found("", (0, ""));
        for level in ["off", "warning"] {
            let policy = format!("rules: {{{}: {level}}}\n", position.rule);
            position.found(&policy, (0, ""));
        }
        position.found("", (line - 1, &position.allow()));
    }
}

#[test]
fn what_hides_references_is_always_new() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    for position in &POSITIONS {
        let line = position.found("", (0, ""));
        for comment in [(0, ""), (line - 1, &*position.allow())] {
            repo.git(&["rm", "-rq", "--ignore-unmatch", "."]);
            for is_named in [false, true] {
                for (path, text) in position.files(is_named, comment) {
                    repo.write(path, text);
                }
                repo.commit(position.name);
            }
            let (output, report) = report(&repo, &["--rev", "HEAD", "--base=HEAD^"]);
            output.fails(1);
            let found = report["findings"].as_array().unwrap();
            position.assert_found(found, position.file);
        }
    }
}

#[test]
fn a_lock_that_lists_it_hides_nothing() {
    for position in &POSITIONS {
        let sandbox = Sandbox::new();
        let repo = sandbox.repo("work");
        repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
        let place = |path: &str| format!("x/localized-files/{path}");
        for (path, text) in position.files(true, (0, "")) {
            repo.write(&place(path), text);
        }
        repo.list_localized();
        repo.commit("listed");
        let file = place(position.file);
        let (output, report) = report(&repo, &["--rev", "HEAD"]);
        output.fails(1);
        position.assert_found(report["findings"].as_array().unwrap(), &file);
        repo.run_unchanged(&["verify", "HEAD"])
            .fails(1)
            .stdout_has(&format!("{file}:"))
            .stdout_has(&format!("({})\n", position.rule));
    }
}

#[test]
fn what_nothing_builds_can_be_excluded() {
    let fixture = "# kustomize-localize: allow[invalid-kustomization] on purpose\nnamePrefx: x\n";
    let memory = Memory::of(&[
        (".kustomize-localize", "exclude: [fixtures]\n"),
        ("app/kustomization.yaml", "namePrefix: x\n"),
        ("fixtures/kustomization.yaml", fixture),
    ]);
    assert_eq!(memory.checked().status(), 0);
    // But not what something names.
    let named = memory.with("app/kustomization.yaml", "resources: [../fixtures]\n");
    let findings = named.findings();
    let is_it = |one: &Value| one["rule"] == "invalid-kustomization" && one["severity"] == "error";
    assert!(findings.iter().any(is_it), "{findings:?}");
    assert_eq!(named.checked().status(), 1);
}

#[test]
fn what_lies_out_of_its_root_is_read_all_the_same() {
    let allow = "# kustomize-localize: allow[out-of-scope] built without restrictions\n";
    let patch = PATCH.replace("URL", URL);
    let plugins = format!("{allow}resources: [../../t.yaml]\n");
    for (field, plugins) in [("transformers: [../t.yaml]", "resources: []\n"), ("transformers: [plugins]", &plugins)] {
        let findings = Memory::of(&[
            ("t.yaml", &patch),
            ("app/kustomization.yaml", &format!("{allow}{field}\n")),
            ("app/plugins/kustomization.yaml", plugins),
        ])
        .findings();
        let remote = findings.iter().find(|one| one["rule"] == "remote-reference");
        let remote = remote.unwrap();
        assert_eq!((&remote["path"], &remote["line"]), (&"t.yaml".into(), &4.into()));
        assert!(remote["allowed"].is_null() && remote["severity"] == "error");
    }
}
