//! `tree`: the reference graph.

use serde_json::Value;

use crate::support::{Project, Repo, Sandbox, World, config};

const APP: &str = "https://github.com/acme/app//deploy?ref=v1.2.0";
const FILE: &str = "https://user:secret@files.example.com/x.yaml";
const TLS: &str = "git@github.com:acme/tls?ref=main";

/// Two overlays, a base that both name, a component; some of it remote, some of it missing.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.write("base/kustomization.yaml", format!("resources:\n- map.yaml\n- {APP}\n"));
    repo.write("base/map.yaml", config("base"));
    repo.write(
        "overlays/prod/kustomization.yaml",
        format!("resources: [../../base, gone.yaml, '{FILE}']\ncomponents: [../../tls]\n"),
    );
    repo.write("overlays/dev/kustomization.yaml", "resources: [../../base]\n");
    repo.write(
        "tls/kustomization.yaml",
        format!("apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: ['{TLS}']\n"),
    );
    repo.commit("Begin");
    repo
}

/// Returns what `tree` says, which changes nothing.
#[track_caller]
fn tree(repo: &Repo, args: &[&str]) -> String {
    let output = repo.run_unchanged(&[&["tree"], args].concat());
    output.success();
    assert!(output.stderr.is_empty(), "{output:?}");
    assert!(!output.stdout.contains("secret"), "{output:?}");
    output.stdout.clone()
}

/// Returns a repository with these files, none of which git knows.
fn with(sandbox: &Sandbox, name: &str, files: &[(&str, &str)]) -> Repo {
    let repo = sandbox.repo(name);
    for (path, text) in files {
        repo.write(path, text);
    }
    repo
}

#[track_caller]
fn graph(repo: &Repo, args: &[&str]) -> Value {
    let text = tree(repo, &[&["--format", "json"], args].concat());
    serde_json::from_str(&text).unwrap()
}

fn list<'a>(graph: &'a Value, key: &str) -> &'a [Value] {
    graph[key].as_array().unwrap()
}

/// Returns where it starts, and all that is named.
fn nodes(graph: &Value) -> impl Iterator<Item = &Value> {
    list(graph, "starts").iter().chain(list(graph, "references").iter().map(|one| &one["to"]))
}

/// Returns the node of this name, if there is one.
fn node<'a>(graph: &'a Value, name: &str) -> Option<&'a Value> {
    nodes(graph).find(|node| node["name"] == name)
}

#[test]
fn it_is_drawn_as_dependencies_are() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    assert_eq!(
        tree(&repo, &[]),
        "\
overlays/dev
└── base
    ├── base/map.yaml
    └── https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)

overlays/prod
├── base (*)
├── overlays/prod/gone.yaml (missing)
├── https://files.example.com/x.yaml (not locked)
└── tls (component)
    └── git@github.com:acme/tls?ref=main (branch, not locked)
"
    );
    for url in [APP, "https://github.com/acme/app", "github.com/acme/app?ref=v1.2.0", "github.com/acme"] {
        let found = tree(&repo, &["--invert", url]);
        let expected = "\
https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)
└── base
    ├── overlays/dev
    └── overlays/prod
";
        assert_eq!(found, expected, "{url}");
    }
}

#[test]
fn options_select_what_is_shown() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let resources = |text: &str| repo.write("overlays/dev/kustomization.yaml", format!("resources: [{text}]\n"));
    resources("../../base, staged.yaml");
    repo.git(&["add", "overlays"]);
    resources("../../base, on-disk.yaml");
    for (args, has, lacks) in
        [(&[][..], "on-disk.yaml", "staged.yaml"), (&["--rev", "HEAD"], "overlays/dev", ".yaml (")]
    {
        let text = tree(&repo, &[args, &["overlays/dev"]].concat());
        assert!(text.contains(has) && !text.contains(lacks), "{args:?}: {text}");
    }
    // Paths are relative to where one stands.
    sandbox.run(&repo.path().join("overlays"), &["tree", "dev"]).success().stdout_has("overlays/dev\n");
}

#[test]
fn directories_of_a_repository_are_distinguished() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    for name in ["web", "db"] {
        repo.write(
            &format!("{name}/kustomization.yaml"),
            format!("resources: ['https://example.com/acme/bases//apps/{name}?ref=v1']\n"),
        );
    }
    let web = "https://example.com/acme/bases//apps/web?ref=v1 (tag, not locked)\n└── web\n";
    for url in [
        "https://example.com/acme/bases//apps/web",
        "https://example.com/acme/bases//apps/web?ref=v1",
        "https://example.com/acme/bases/apps/web",
    ] {
        assert_eq!(tree(&repo, &["--invert", url]), web, "{url}");
    }
    for url in ["https://example.com/acme/bases//apps", "https://example.com/acme/bases", "https://example.com/acme"] {
        let text = tree(&repo, &["--invert", url]);
        assert!(text.contains(web) && text.contains("└── db\n"), "{url}: {text}");
    }
}

#[test]
fn an_empty_tree_is_reported() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let nothing = |args: &[&str], said: &str| {
        let output = repo.run(&[&["tree"], args].concat());
        assert_eq!(output.success().stdout, "");
        assert_eq!(output.stderr, said);
    };
    let said = "no kustomization found\n";
    nothing(&[], said);
    repo.write("app/kustomization.yaml", "namePrefix: a-\n");
}

#[test]
fn locked_and_localized_nodes_are_marked() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    let text = tree(work, &[]);
    assert!(text.contains(", locked "), "{text}");
    assert!(!text.contains("not locked"), "{text}");
    work.run(&["vendor"]).success();
    let text = tree(work, &[]);
    assert!(!text.contains("locked "), "{text}");
    assert!(text.contains(" (from https://"), "{text}");
    let label = text.split(" (from ").nth(1).unwrap().split(')').next().unwrap();
    let text = tree(work, &["--invert", label]);
    assert!(text.contains("localized-files"), "{text}");
}

#[test]
fn the_json_has_everything() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let whole = graph(&repo, &[]);
    for (name, key, value) in [
        ("tls", "kind", "kustomization"),
        ("base/map.yaml", "kind", "file"),
        ("overlays/prod/gone.yaml", "why", "missing"),
        ("https://files.example.com/x.yaml", "kind", "http"),
        (APP, "kind", "git"),
        (APP, "pin", "tag"),
    ] {
        assert_eq!(node(&whole, name).unwrap()[key], value, "{name}");
    }
    assert_eq!(node(&whole, "tls").unwrap()["component"], true);
    assert!(node(&whole, APP).unwrap()["locked"].is_null());
    let reference = list(&whole, "references").iter().find(|one| one["to"]["name"] == APP).unwrap();
    assert_eq!((&reference["from"], &reference["file"]), (&"base".into(), &"base/kustomization.yaml".into()));
    assert_eq!((&reference["line"], &reference["column"]), (&3.into(), &3.into()));
    assert_eq!(reference["field"], "resources[1]");
}

const PART: &str = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";

/// For each what it shows, files, arguments, and what is drawn.
type Row<'a> = (&'a str, &'a [(&'a str, &'a str)], &'a [&'a str], &'a str);

#[test]
fn every_shape_is_drawn() {
    let parts = [
        ("one/kustomization.yaml", &*format!("{PART}namePrefix: a-\n")),
        ("two/kustomization.yaml", &format!("{PART}components: [../one, ../one]\n")),
        ("app/kustomization.yaml", "components: [../one, ../two, ../one]\npatches: [{path: p.yaml}, {path: p.yaml}]\n"),
        ("app/p.yaml", "a: b\n"),
    ];
    let inner =
        [("app/kustomization.yaml", "resources: [part]\n"), ("app/part/kustomization.yaml", "namePrefix: a-\n")];
    let broken = [("app/kustomization.yaml", "resources: [../base]\n"), ("base/kustomization.yaml", "resources: [\n")];
    let remote = format!("resources: [., '{APP}']\n");
    let rings = [
        ("a/kustomization.yaml", "resources: [../b]\n"),
        ("b/kustomization.yaml", "resources: [../a]\n"),
        ("c/kustomization.yaml", &remote),
    ];
    let rows: &[Row] = &[
        ("a root that another names", &inner, &["app"], "app\n└── app/part\n"),
        ("a file", &inner, &["app/kustomization.yaml"], "app\n└── app/part\n"),
        ("a root that another names, asked for", &inner, &["app", "app/part"], "app\n└── app/part\n"),
        ("unreadable", &broken, &[], "app\n└── base (invalid)\n"),
        (
            "rings",
            &rings,
            &[],
            "a\n└── b\n    └── a (cycle)\n\nc\n├── c (cycle)\n└── https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)\n",
        ),
        (
            "references of rings",
            &rings,
            &["--invert", "https://github.com/acme/app"],
            "https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)\n└── c\n",
        ),
        (
            "repeated references",
            &parts,
            &[],
            "app\n├── one (component)\n├── two (component)\n│   └── one (component)\n└── app/p.yaml\n",
        ),
    ];
    let sandbox = Sandbox::new();
    for (what, files, args, drawn) in rows {
        assert_eq!(tree(&with(&sandbox, what, files), args), *drawn, "{what}");
    }
    // Every reference is listed, also the repeated ones.
    let repo = with(&sandbox, "repeated references", &[]);
    assert_eq!(list(&graph(&repo, &[]), "references").len(), 7);
    let repo = with(&sandbox, "unreadable", &[]);
    assert_eq!(node(&graph(&repo, &[]), "base").unwrap()["why"], "invalid");
}

#[test]
fn what_is_not_there_is_an_error() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let other = "https://user:secret@example.com/other";
    for (args, says) in [
        (&["nowhere"][..], "no kustomization in `nowhere`"),
        (&["--rev", "nothing"], "unknown revision `nothing`"),
        (&["--invert", other], "nothing names `https://example.com/other`"),
        (&["--invert", other], "list the remote references: git kustomize-localize tree"),
        (
            &["https://token@example.com/acme/app"],
            "`https://example.com/acme/app` is not a directory of this repository",
        ),
        (&["https://token@example.com/acme/app"], "hint: to see what references it: --invert URL"),
    ] {
        repo.run(&[&["tree"], args].concat()).fails(2).stderr_has(says).lacks("secret");
    }
    sandbox.run(&sandbox.path(""), &["tree"]).fails(2).stderr_has("not a git repository");
}

#[test]
fn charts_and_plugins_are_drawn() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(
        "app/kustomization.yaml",
        "\
helmCharts:
- {name: web, repo: 'https://user:secret@charts.example.com/stable', version: 1.2.3}
- {name: web, repo: 'https://charts.example.com/stable', version: 1.2.3, releaseName: again}
- {name: any, repo: 'oci://registry.example.com/charts'}
- {name: own}
- {name: gone}
generators: [plugins]
transformers:
- |-
  apiVersion: builtin
  kind: PatchTransformer
  metadata: {name: p}
  path: p.yaml
",
    );
    repo.write("app/p.yaml", config("p"));
    repo.write("app/charts/own/Chart.yaml", "name: own\n");
    repo.write("app/charts/own/values.yaml", "");
    repo.write("app/plugins/kustomization.yaml", "resources: [maps.yaml]\n");
    repo.write(
        "app/plugins/maps.yaml",
        "apiVersion: builtin\nkind: ConfigMapGenerator\nmetadata: {name: m}\nfiles: [k=https://files.example.com/k.txt]\n",
    );
    let text = tree(&repo, &[]);
    for line in [
        "── https://charts.example.com/stable#web@1.2.3 (chart, not locked)\n",
        "── oci://registry.example.com/charts#any (chart, not locked)\n",
        "── app/charts/own\n",
        "── app/charts/gone (missing)\n",
        "── app/plugins\n",
        "── app/plugins/maps.yaml\n",
        "── https://files.example.com/k.txt (not locked)\n",
        "── app/p.yaml\n",
    ] {
        assert_eq!(text.matches(line).count(), 1, "{line}: {text}");
    }
    for url in [
        "https://charts.example.com/stable",
        "charts.example.com",
        "https://charts.example.com/stable#web",
        "https://charts.example.com/stable#web@1.2.3",
    ] {
        assert_eq!(
            tree(&repo, &["--invert", url]),
            "https://charts.example.com/stable#web@1.2.3 (chart, not locked)\n└── app\n",
            "{url}"
        );
    }
    for url in [
        "https://charts.example.com/sta",
        "https://charts.example.com/stable#other",
        "https://charts.example.com/stable#web@1.2",
    ] {
        repo.run(&["tree", "--invert", url]).fails(2).stderr_has("nothing names");
    }
    let graph = graph(&repo, &[]);
    let charts: Vec<_> = nodes(&graph).filter(|node| node["kind"] == "chart").collect();
    assert_eq!(charts.len(), 3, "{graph}");
    assert!(charts[0]["locked"].is_null());
    let mut references = list(&graph, "references").iter();
    let reference = references.find(|one| one["field"] == "helmCharts[0]");
    let url = "https://charts.example.com/stable";
    assert_eq!(reference.unwrap()["reference"], url);
}

#[test]
fn references_of_remotes_are_found_through_the_lock() {
    let world = World::new();
    for (name, file, text) in [
        ("deep", "app/kustomization.yaml", "namePrefix: a-\n"),
        ("middle", "kustomization.yaml", "resources: ['https://github.com/acme/deep//app?ref=v1']\n"),
        ("lib", "web/kustomization.yaml", "resources: ['https://github.com/acme/middle?ref=v1']\n"),
    ] {
        world.upstream_of(&format!("acme/{name}"), &[(file, text)]);
    }
    let top = "resources: ['https://github.com/acme/lib//web?ref=v1']\n";
    world.work.write("base/kustomization.yaml", top);
    world.work.write("app/kustomization.yaml", "resources: [../base]\n");
    world.work.run(&["lock"]).success();
    for url in ["https://github.com/acme/deep", "github.com/acme/deep//app?ref=v1"] {
        let drawn = tree(&world.work, &["--invert", url]);
        let expected = "└── base\n    └── app\n";
        assert!(drawn.starts_with("https://github.com/acme/lib//web?ref=v1 (") && drawn.ends_with(expected), "{drawn}");
    }
    // What no lock records is unknown here.
    world.work.remove("kustomize-localize.lock");
    world.work.run(&["tree", "--invert", "https://github.com/acme/deep"]).fails(2).stderr_has("nothing names");
}
