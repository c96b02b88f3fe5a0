//! One state of a target has one word, and all commands know the same targets: in random worlds.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Random, Repo, Sandbox, full};

const SOURCE: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: x}
spec: {interval: 1h, url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: other, namespace: x}
spec: {interval: 1h, url: 'https://github.com/acme/other', ref: {branch: main}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: tagged, namespace: x}
spec: {interval: 1h, url: 'https://github.com/acme/fleet', ref: {tag: v1}}
";

const LOCK: &str = "version: 1
remotes:
- url: https://github.com/acme/lib
  ref: v1
  commit: 0123456789012345678901234567890123456789
  paths: {web: {}}
";

const FILES: [(&str, &str); 12] = [
    (
        ".kustomize-localize",
        "repository: [{url: 'https://github.com/acme/fleet'}]\nhelm: true\nexclude: [hidden]\ntargets: [{path: listed, engine: kustomize}]\n",
    ),
    ("kustomize-localize.lock", LOCK),
    ("source.yaml", SOURCE),
    ("map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"),
    ("plain/kustomization.yaml", "namePrefix: a-\n"),
    ("hidden/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
    ("locked/kustomization.yaml", "resources: ['https://github.com/acme/lib//web?ref=v1']\n"),
    ("open/kustomization.yaml", "resources: [../locked, 'https://github.com/acme/away?ref=v1']\n"),
    ("broken/kustomization.yaml", "resources: [gone.yaml]\n"),
    ("files/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"),
    ("chart/Chart.yaml", "apiVersion: v2\nname: chart\nversion: 1.0.0\n"),
    ("chart/templates/map.yaml", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\n"),
];

/// What a target of the configuration may be, with its state: the resource of a root that the change adds.
const LISTED: [(Option<&str>, &str); 5] = [
    (Some("../plain"), "localized"),
    (Some("../locked"), "remote"),
    (Some("../open"), "remote"),
    (Some("../broken"), "invalid"),
    (None, "missing"),
];

/// What an object deploys, with the state of that. Of a link kustomize itself may say what it is.
const DEPLOYED: [(&str, &str); 11] = [
    ("plain", "localized"),
    ("hidden", "remote"),
    ("locked", "remote"),
    ("open", "remote"),
    ("broken", "invalid"),
    ("files", "localized"),
    ("gone", "missing"),
    ("'${x}'", "unknown"),
    ("chart", "other"),
    ("OTHER", "external"),
    ("TAGGED", "other"),
];

/// Returns an object of an engine that deploys something.
fn object(engine: usize, name: &str, what: &str) -> String {
    let (path, flux, url, revision) = match what {
        "OTHER" => ("plain", "other", "https://github.com/acme/other", "main"),
        "TAGGED" => ("plain", "tagged", "https://github.com/acme/fleet", "v1"),
        path => (path, "fleet", "https://github.com/acme/fleet", "main"),
    };
    match engine {
        0 => format!(
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {name}, namespace: x}}\nspec: {{interval: 1h, path: {path}, prune: true, sourceRef: {{kind: GitRepository, name: {flux}}}}}\n"
        ),
        1 => format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: x}}\nspec: {{project: default, destination: {{namespace: x}}, source: {{path: {path}, repoURL: '{url}', targetRevision: {revision}}}}}\n"
        ),
        2 => {
            let application = object(1, "'{{app}}'", what);
            let (_, template) = application.split_once("kind: Application\n").unwrap();
            let template = template.lines().map(|line| format!("    {line}\n")).collect::<String>();
            format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: {name}, namespace: x}}\nspec:\n  generators: [{{list: {{elements: [{{app: {name}}}]}}}}]\n  template:\n{template}"
            )
        }
        _ => format!(
            "apiVersion: helm.toolkit.fluxcd.io/v2\nkind: HelmRelease\nmetadata: {{name: {name}, namespace: x}}\nspec: {{interval: 1h, chart: {{spec: {{chart: {path}, sourceRef: {{kind: GitRepository, name: {flux}}}}}}}}}\n"
        ),
    }
}

fn json(repo: &Repo, args: &[&str]) -> Value {
    serde_json::from_str(&repo.run_as_is(&[args, &["--format", "json"]].concat()).stdout).unwrap()
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap()
}

/// Returns the files that hold these.
fn files<'a>(all: impl IntoIterator<Item = &'a Value>, key: &str) -> BTreeSet<&'a str> {
    all.into_iter().map(|one| one[key].as_str().unwrap()).collect()
}

/// What the configuration leaves out is looked at if it is deployed, by whatever finds that.
#[test]
fn what_is_left_out_is_a_target_only_where_it_is_deployed() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.commit_files(&[
        (".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\nexclude: [hidden, old]\n"),
        ("root.yaml", &object(1, "root", "hidden")),
        ("hidden/kustomization.yaml", "resources: [object.yaml, deeper]\n"),
        ("hidden/object.yaml", &object(1, "hidden", "gone")),
        ("hidden/deeper/kustomization.yaml", "resources: [object.yml]\n"),
        ("hidden/deeper/object.yml", &object(1, "deeper", "hidden/away")),
        ("hidden/away/kustomization.yaml", "resources: [last.txt]\n"),
        ("hidden/away/last.txt", &object(1, "last", "gone")),
        ("hidden/unlisted.yaml", &object(1, "unlisted", "gone")),
        ("old/kustomization.yaml", "resources: [object.yaml]\n"),
        ("old/object.yaml", &object(1, "old", "gone")),
    ]);
    let state = |all: &[Value]| -> Vec<String> {
        let text = |one: &Value| format!("{} {}", one["file"].as_str().unwrap(), one["state"].as_str().unwrap());
        all.iter().map(text).collect()
    };
    let expected = [
        "hidden/away/last.txt missing",
        "hidden/deeper/object.yml localized",
        "hidden/object.yaml missing",
        "root.yaml localized",
    ];
    for command in ["targets", "status"] {
        assert_eq!(state(list(&json(&repo, &[command]), "targets")), expected, "{command}");
    }
    let check = json(&repo, &["check"]);
    let found = list(&check, "findings").iter().filter(|one| one["rule"] == "missing-target");
    assert_eq!(files(found, "path"), ["hidden/away/last.txt", "hidden/object.yaml"].into());
}

#[test]
fn all_commands_know_the_same_targets_in_the_same_state() {
    for world in 0..if full() { 20 } else { 3 } {
        let mut random = Random::of(&format!("targets {world}"));
        let sandbox = Sandbox::new();
        if sandbox.builds().is_none() {
            return;
        }
        let repo = sandbox.repo("work");
        repo.commit_files(&FILES);
        let mut expected: BTreeMap<String, &str> = BTreeMap::new();
        for number in 0..8 {
            let (what, state) = DEPLOYED[random.below(DEPLOYED.len())];
            let name = format!("t{number}");
            let engine = random.below(4);
            // Flux makes a kustomization of files.
            let state = match (engine, what) {
                (0, "chart") => "localized",
                // No chart names a root.
                (3, _) if !["missing", "external"].contains(&state) => "other",
                _ => state,
            };
            // What a build may change that cannot run here is unknown.
            let is_patched = engine != 3 && random.below(4) == 0;
            let file = format!("objects/{name}/object.yaml");
            repo.write(&file, object(engine, &name, what));
            if is_patched {
                let kustomization = "resources: [object.yaml, 'https://github.com/acme/away?ref=v1']\nnamespace: y\n";
                repo.write(&format!("objects/{name}/kustomization.yaml"), kustomization);
            }
            expected.insert(file, if is_patched { "unknown" } else { state });
        }
        let (resource, state) = LISTED[random.below(LISTED.len())];
        if let Some(resource) = resource {
            repo.write("listed/kustomization.yaml", format!("resources: [{resource}]\n"));
        }
        expected.insert(".kustomize-localize".to_owned(), state);
        repo.commit("objects");
        let [targets, status, check] = ["targets", "status", "check"].map(|command| json(&repo, &[command]));
        let state = |all: &Value| -> BTreeMap<String, String> {
            let text = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
            list(all, "targets").iter().map(|one| (text(one, "file"), text(one, "state"))).collect()
        };
        let expected: BTreeMap<String, String> =
            expected.into_iter().map(|(file, state)| (file, state.to_owned())).collect();
        assert_eq!(state(&targets), expected, "{world}");
        assert_eq!(state(&status), expected, "{world}");
        let is = |states: &'static [&str]| -> BTreeSet<&str> {
            let those = expected.iter().filter(|(_, state)| states.contains(&state.as_str()));
            those.map(|(file, _)| file.as_str()).collect()
        };
        let unknown = list(&targets, "targets").iter().filter(|one| !one["unknown"].is_null());
        assert_eq!(files(unknown, "file"), is(&["unknown"]), "{world}");
        let found = |rule: &str| files(list(&check, "findings").iter().filter(|one| one["rule"] == rule), "path");
        assert_eq!(found("unknown-target"), is(&["unknown"]), "{world}");
        assert_eq!(found("missing-target"), is(&["missing"]), "{world}");
        // Those of which the lock holds something.
        let reaches_locked =
            |one: &&Value| one["reaches"].to_string().contains("locked 0123") && one["unknown"].is_null();
        let remote = files(list(&targets, "targets").iter().filter(reaches_locked), "file");
        let deployed: BTreeSet<&str> = found("deployed-remote").intersection(&is(&["remote"])).copied().collect();
        assert_eq!(deployed, remote, "{world}");
        let affected = json(&repo, &["affected", "HEAD~1"]);
        let touched = list(&affected, "targets").iter().map(|one| &one["target"]);
        assert_eq!(files(touched, "file"), expected.keys().map(String::as_str).collect(), "{world}");
        let diff = json(&repo, &["diff", "HEAD~1", "--offline"]);
        let unbuilt = files(list(&affected, "unbuilt"), "file");
        assert_eq!(unbuilt, files(list(&diff, "unbuilt"), "file"), "{world}");
        assert!(unbuilt.is_subset(&is(&["unknown"])), "{world}");
        for build in list(&diff, "builds").iter().filter(|one| one["not_built"] == serde_json::json!([[], []])) {
            let name = build["name"].as_str().unwrap();
            let file = expected.keys().find(|file| name.contains(&***file));
            let is_built = |file: &String| is(&["localized", "other"]).contains(&**file) || unbuilt.contains(&**file);
            assert!(file.is_none_or(is_built), "{world}: {name}");
        }
    }
}
