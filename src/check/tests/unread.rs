//! What cannot be read as a whole is never known, allowed or switched off: it may name more than is seen.

use super::super::testing::Scene;
use super::*;
use crate::tree::overlay::OverlayTree;

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
    /// Returns the files with or without what is named. Before the line `at` of the one with the problem stands
    /// `comment`.
    fn files(&self, is_named: bool, (at, comment): (usize, &str)) -> Vec<(&str, String)> {
        let more = if is_named { self.more } else { "" };
        let filled = |text: &str| text.replace("MORE", more).replace("URL", URL);
        let text = filled(self.text);
        let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
        lines.insert(at, comment);
        let beside = self.beside.iter().map(|(path, text)| (*path, filled(text)));
        let mut files: Vec<(&str, String)> = beside.collect();
        files.push((self.file, lines.concat()));
        files.push(("app/cm.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n".to_owned()));
        files
    }

    fn scene(&self, is_named: bool, comment: (usize, &str)) -> Scene {
        let files = self.files(is_named, comment);
        files.iter().fold(Scene::default(), |scene, (path, text)| scene.file(path, text))
    }

    /// Expects the problem, and what is named beside it. Returns the line of the problem.
    #[track_caller]
    fn found(&self, checked: &Checked, file: &str) -> usize {
        let name = self.name;
        assert!(checked.failures.is_empty(), "{name}: {:?}", checked.failures);
        let mut here = checked.findings.iter().filter(|one| one.path == file);
        let problem = here.clone().find(|one| one.rule.id() == self.rule);
        let problem = problem.unwrap_or_else(|| panic!("{name}: {:?}", checked.findings));
        assert!(problem.fails(), "{name}: {problem:?}");
        let is_read = here.any(|one| matches!(one.rule, Rule::RemoteReference | Rule::RemoteChart));
        assert_eq!(is_read, self.is_read, "{name}: {:?}", checked.findings);
        problem.span.map_or(1, |span| span.start.line)
    }

    fn line(&self) -> usize {
        self.found(&self.scene(true, (0, "")).check(), self.file)
    }

    fn allow(&self) -> String {
        format!("# kustomize-localize: allow[{}] on purpose\n", self.rule)
    }
}

#[test]
fn neither_configuration_nor_comment_allows_it() {
    for position in &POSITIONS {
        // What is always an error is no key there.
        for level in ["off", "warning"].iter().filter(|_| position.rule != "invalid-target") {
            let config = format!("rules: {{{}: {level}}}\n", position.rule);
            position.found(&position.scene(true, (0, "")).config(&config).check(), position.file);
        }
        let commented = position.scene(true, (position.line() - 1, &position.allow()));
        position.found(&commented.check(), position.file);
    }
}

#[test]
fn what_hides_references_is_always_new() {
    for position in &POSITIONS {
        for comment in [(0, ""), (position.line() - 1, &*position.allow())] {
            let side = |is_named| {
                let scene = position.scene(is_named, comment);
                Scene { own: Some(Config::default()), ..scene }.check()
            };
            let mut judged = side(true);
            let config = Config::default();
            judged.judge(&side(false).findings, &config, &Lock::default(), &OverlayTree::default());
            position.found(&judged, position.file);
        }
    }
}

#[test]
fn a_lock_that_lists_it_hides_nothing() {
    for position in &POSITIONS {
        let place = |path: &str| format!("x/localized-files/{path}");
        let files = position.files(true, (0, ""));
        let own = Scene::default().file("own/kustomization.yaml", "namePrefix: x\n");
        let scene = files.iter().fold(own, |scene, (path, text)| scene.stored(&place(path), text));
        position.found(&scene.check(), &place(position.file));
    }
}

#[test]
fn what_nothing_builds_can_be_excluded() {
    let fixture = "# kustomize-localize: allow[invalid-kustomization] on purpose\nnamePrefx: x\n";
    let with = |app: &str| {
        let scene = Scene::default().config("exclude: [fixtures]\n");
        scene.file("app/kustomization.yaml", app).file("fixtures/kustomization.yaml", fixture).check()
    };
    assert_eq!(with("namePrefix: x\n").status(), 0);
    // But not what something names.
    let named = with("resources: [../fixtures]\n");
    assert!(named.findings.iter().any(|one| one.rule == Rule::InvalidKustomization && one.fails()));
}

#[test]
fn what_lies_out_of_its_root_is_read_all_the_same() {
    let allow = "# kustomize-localize: allow[out-of-scope] built without restrictions\n";
    let patch = PATCH.replace("URL", URL);
    let plugins = format!("{allow}resources: [../../t.yaml]\n");
    for (field, plugins) in [("transformers: [../t.yaml]", "resources: []\n"), ("transformers: [plugins]", &plugins)] {
        let scene = Scene::default()
            .file("t.yaml", &patch)
            .file("app/kustomization.yaml", &format!("{allow}{field}\n"))
            .file("app/plugins/kustomization.yaml", plugins);
        let [remote] = &scene.find(Rule::RemoteReference)[..] else { panic!("{field}") };
        assert_eq!((&*remote.path, remote.span.unwrap().start.line), ("t.yaml", 4));
        assert!(remote.fails());
    }
}
