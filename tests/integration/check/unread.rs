//! What cannot be read as a whole is never known, allowed or switched off: it may name more than is seen.

use serde_json::Value;

use crate::support::{Repo, Sandbox, config};

const URL: &str = "https://h.example/x.yaml";

/// One place in which something is wrong, and something remote can be named.
struct Position {
    name: &'static str,
    /// The file with the problem.
    file: &'static str,
    /// What stands in it. `MORE` is nothing at first, and then `more`.
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
const UNKNOWN: &str = "apiVersion: builtin\nkind: Nonsense\nmetadata: {name: a}\n---\nMORE";
const APPLICATION: &str = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet, namespace: flux-system}\nspec: {url: 'https://github.com/acme/fleet'}\n";

const POSITIONS: [Position; 10] = [
    Position {
        name: "kustomization",
        file: "app/kustomization.yaml",
        text: "namePrefx: x\nresources:\n- cm.yaml\nMORE",
        more: "- URL\n",
        rule: "invalid-kustomization",
        is_read: true,
        beside: &[],
    },
    Position {
        name: "chart",
        file: "app/kustomization.yaml",
        text: "namePrefx: x\nresources: [cm.yaml]\nMORE",
        more: "helmCharts: [{name: web, repo: 'https://h.example'}]\n",
        rule: "invalid-kustomization",
        is_read: true,
        beside: &[],
    },
    Position {
        name: "syntax",
        file: "app/kustomization.yaml",
        text: "resources:\n- cm.yaml\nMOREcrds: [\n",
        more: "- URL\n",
        rule: "invalid-kustomization",
        is_read: false,
        beside: &[],
    },
    Position {
        name: "several",
        file: "app/kustomization.yaml",
        text: "resources:\n- cm.yaml\nMORE",
        more: "- URL\n",
        rule: "invalid-kustomization",
        is_read: false,
        beside: &[("app/kustomization.yml", "resources: [cm.yaml]\n")],
    },
    Position {
        name: "plugin file",
        file: "app/t.yaml",
        text: UNKNOWN,
        more: PATCH,
        rule: "invalid-kustomization",
        is_read: true,
        beside: &[("app/kustomization.yaml", TRANSFORMERS)],
    },
    Position {
        name: "inline",
        file: "app/kustomization.yaml",
        text: "resources: [cm.yaml]\ntransformers:\n- '{apiVersion: builtin, kind: Nonsense, metadata: {name: a}}'\nMORE",
        more: "- '{apiVersion: builtin, kind: PatchTransformer, metadata: {name: b}, path: \"URL\"}'\n",
        rule: "invalid-kustomization",
        is_read: true,
        beside: &[],
    },
    Position {
        name: "plugin root",
        file: "app/plugins/t.yaml",
        text: UNKNOWN,
        more: PATCH,
        rule: "invalid-kustomization",
        is_read: true,
        beside: &[
            (
                "app/kustomization.yaml",
                "resources: [cm.yaml]\ntransformers: [plugins]\n",
            ),
            ("app/plugins/kustomization.yaml", "resources: [t.yaml]\n"),
        ],
    },
    Position {
        name: "changed plugin root",
        file: "app/plugins/kustomization.yaml",
        text: "resources: [t.yaml]\npatches: [{path: p.yaml}]\n",
        more: "path: URL\n",
        rule: "function",
        is_read: false,
        beside: &[
            (
                "app/kustomization.yaml",
                "resources: [cm.yaml]\ntransformers: [plugins]\n",
            ),
            (
                "app/plugins/t.yaml",
                "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: b}\n",
            ),
            (
                "app/plugins/p.yaml",
                "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: b}\nMORE",
            ),
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
        beside: &[
            ("app/kustomization.yaml", "resources: [cm.yaml]\n"),
            ("clusters/source.yaml", APPLICATION),
        ],
    },
];

impl Position {
    /// Commits what is wrong, and then what is named beside it. Before the line `at` of the file stands `comment`.
    fn commit(&self, repo: &Repo, policy: &str, (at, comment): (usize, &str)) {
        repo.git(&["rm", "-rq", "--ignore-unmatch", "."]);
        repo.write(".kustomize-localize", policy);
        repo.write("app/cm.yaml", config("cm"));
        for more in ["", self.more] {
            let filled = |text: &str| text.replace("MORE", more).replace("URL", URL);
            for (path, text) in self.beside {
                repo.write(path, filled(text));
            }
            let text = filled(self.text);
            let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
            lines.insert(at, comment);
            repo.write(self.file, lines.concat());
            repo.write("touched", more);
            repo.commit(self.name);
        }
    }

    /// Checks HEAD, and expects the problem, and what is named beside it.
    fn found(&self, repo: &Repo, arguments: &[&str]) -> usize {
        self.found_at(self.file, repo, arguments)
    }

    fn found_at(&self, file: &str, repo: &Repo, arguments: &[&str]) -> usize {
        let arguments = [&["check", "--rev", "HEAD", "--format=json"], arguments].concat();
        let output = repo.run_unchanged(&arguments);
        assert_eq!(output.status, 1, "{}: {arguments:?}: {output:?}", self.name);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        let found = report["findings"].as_array().unwrap();
        let problem = found
            .iter()
            .find(|one| one["rule"] == self.rule && one["path"] == file);
        let problem = problem.unwrap_or_else(|| panic!("{}: {arguments:?}: {found:?}", self.name));
        assert_eq!(problem["severity"], "error", "{}", self.name);
        assert!(problem["allowed"].is_null(), "{}", self.name);
        let is_remote = |one: &Value| {
            ["remote-reference", "remote-chart"].contains(&one["rule"].as_str().unwrap())
        };
        let read = found
            .iter()
            .any(|one| is_remote(one) && one["path"] == file);
        assert_eq!(read, self.is_read, "{}: {found:?}", self.name);
        usize::try_from(problem["line"].as_u64().unwrap_or(1)).unwrap()
    }
}

fn for_each(test: impl Fn(&Position, &Repo)) {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    for position in &POSITIONS {
        test(position, &repo);
    }
}

#[test]
fn what_hides_references_is_always_new() {
    for_each(|position, repo| {
        position.commit(repo, "new-only: true\n", (0, ""));
        position.found(repo, &["--base=HEAD^"]);
        position.found(repo, &["--new-only=HEAD^"]);
    });
}

#[test]
fn no_configuration_switches_it_off() {
    for_each(|position, repo| {
        for level in ["off", "warning"] {
            let policy = format!("rules: {{{}: {level}}}\n", position.rule);
            position.commit(repo, &policy, (0, ""));
            position.found(repo, &[]);
        }
    });
}

#[test]
fn no_comment_allows_it() {
    for_each(|position, repo| {
        position.commit(repo, "", (0, ""));
        let line = position.found(repo, &[]);
        let comment = format!(
            "# kustomize-localize: allow[{}] on purpose\n",
            position.rule
        );
        position.commit(repo, "", (line - 1, &comment));
        position.found(repo, &[]);
        position.found(repo, &["--base=HEAD^"]);
    });
}

#[test]
fn what_nothing_builds_can_be_excluded() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(".kustomize-localize", "exclude: [fixtures]\n");
    repo.write("app/kustomization.yaml", "namePrefix: x\n");
    let fixture = "# kustomize-localize: allow[invalid-kustomization] on purpose\nnamePrefx: x\n";
    repo.write("fixtures/kustomization.yaml", fixture);
    repo.commit("one");
    repo.run(&["check", "--rev", "HEAD"]).success();
    // But not what something names.
    repo.write("app/kustomization.yaml", "resources: [../fixtures]\n");
    repo.commit("two");
    repo.run(&["check", "--rev", "HEAD"])
        .fails(1)
        .stdout_has("invalid-kustomization");
}

#[test]
fn what_lies_out_of_its_root_is_read_all_the_same() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let allow = "# kustomize-localize: allow[out-of-scope] built without restrictions\n";
    repo.write("t.yaml", PATCH.replace("URL", URL));
    for (field, plugins) in [
        ("transformers: [../t.yaml]", "resources: []\n".to_owned()),
        (
            "transformers: [plugins]",
            format!("{allow}resources: [../../t.yaml]\n"),
        ),
    ] {
        repo.write("app/kustomization.yaml", format!("{allow}{field}\n"));
        repo.write("app/plugins/kustomization.yaml", plugins);
        repo.commit(field);
        repo.run(&["check", "--rev", "HEAD"])
            .fails(1)
            .stdout_has("t.yaml:4:7")
            .stdout_has("remote-reference");
    }
}

#[test]
fn a_lock_that_lists_it_hides_nothing() {
    for_each(|position, repo| {
        position.commit(repo, "", (0, ""));
        for directory in ["app", "clusters"] {
            if repo.path().join(directory).exists() {
                let to = format!("x/localized-files/{directory}");
                std::fs::create_dir_all(repo.path().join("x/localized-files")).unwrap();
                repo.git(&["mv", directory, &to]);
            }
        }
        repo.list_localized();
        repo.commit("listed");
        let file = format!("x/localized-files/{}", position.file);
        position.found_at(&file, repo, &[]);
        repo.run_unchanged(&["verify", "HEAD"])
            .fails(1)
            .stdout_has(&format!("{file}:"))
            .stdout_has(&format!("({})\n", position.rule));
    });
}
