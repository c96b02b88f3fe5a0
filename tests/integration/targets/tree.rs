//! `tree`: the reference graph.

use serde_json::Value;

use crate::support::{Project, Repo, Sandbox, World, config};

const APP: &str = "https://github.com/acme/app//deploy?ref=v1.2.0";
const FILE: &str = "https://user:secret@files.example.com/x.yaml";
const TLS: &str = "git@github.com:acme/tls?ref=main";

/// Two overlays, a base that both name, a component; some of it remote, some of it missing.
fn repository(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.write(
        "base/kustomization.yaml",
        format!("resources:\n- map.yaml\n- {APP}\n"),
    );
    repo.write("base/map.yaml", config("base"));
    repo.write(
        "overlays/prod/kustomization.yaml",
        format!("resources: [../../base, gone.yaml, '{FILE}']\ncomponents: [../../tls]\n"),
    );
    repo.write(
        "overlays/dev/kustomization.yaml",
        "resources: [../../base]\n",
    );
    repo.write(
        "tls/kustomization.yaml",
        format!(
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nresources: ['{TLS}']\n"
        ),
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
    assert_eq!(
        tree(&repo, &["--remote", "overlays/prod"]),
        "\
overlays/prod
├── base
│   └── https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)
├── https://files.example.com/x.yaml (not locked)
└── tls (component)
    └── git@github.com:acme/tls?ref=main (branch, not locked)
"
    );
    for url in [
        APP,
        "https://github.com/acme/app",
        "github.com/acme/app?ref=v1.2.0",
        "github.com/acme",
    ] {
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
    let resources = |text: &str| {
        repo.write(
            "overlays/dev/kustomization.yaml",
            format!("resources: [{text}]\n"),
        )
    };
    resources("../../base, staged.yaml");
    repo.git(&["add", "overlays"]);
    resources("../../base, on-disk.yaml");
    for (args, has, lacks) in [
        (&[][..], "on-disk.yaml", "staged.yaml"),
        (&["--working-tree"], "on-disk.yaml", "staged.yaml"),
        (&["--staged"], "staged.yaml", "on-disk.yaml"),
        (&["--rev", "HEAD"], "overlays/dev", ".yaml ("),
    ] {
        let text = tree(&repo, &[args, &["overlays/dev"]].concat());
        assert!(
            text.contains(has) && !text.contains(lacks),
            "{args:?}: {text}"
        );
    }
    // Paths are relative to where one stands.
    let inside = sandbox.run(&repo.path().join("overlays"), &["tree", "dev", "--staged"]);
    inside.success().stdout_has("overlays/dev\n");
}

#[test]
fn a_root_that_another_names_is_not_a_tree_of_its_own() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", "resources: [part]\n");
    repo.write("app/part/kustomization.yaml", "namePrefix: a-\n");
    repo.commit("Begin");
    let whole = "app\n└── app/part\n";
    assert_eq!(tree(&repo, &["app"]), whole);
    assert_eq!(tree(&repo, &["app/kustomization.yaml"]), whole);
    // Unless it is requested.
    assert_eq!(
        tree(&repo, &["app", "app/part"]),
        format!("{whole}\napp/part\n")
    );
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
    for url in [
        "https://example.com/acme/bases//apps",
        "https://example.com/acme/bases",
        "https://example.com/acme",
    ] {
        let text = tree(&repo, &["--invert", url]);
        assert!(
            text.contains(web) && text.contains("└── db\n"),
            "{url}: {text}"
        );
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
    nothing(&[], "there is no kustomization\n");
    nothing(&["--format", "mermaid"], "");
    repo.write("app/kustomization.yaml", "namePrefix: a-\n");
    nothing(
        &["--remote"],
        "nothing remote is referenced, and nothing was brought in\n",
    );
    repo.run(&["tree", "https://token@example.com/acme/app"])
        .fails(2)
        .stderr_has("`https://example.com/acme/app` is not a directory of this repository")
        .stderr_has("hint: to see what references it: --invert URL");
}

#[test]
fn changes_can_be_shown_alone() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let none = repo.run(&["tree", "--since", "HEAD"]);
    assert_eq!(none.success().stdout, "");
    none.stderr_has("no difference\n");
    assert_eq!(tree(&repo, &["--since", "HEAD", "--format", "mermaid"]), "");
    repo.write(
        "base/kustomization.yaml",
        format!(
            "# moved\n\nresources:\n- map.yaml\n- {}\n",
            APP.replace("v1.2.0", "v1.3.0")
        ),
    );
    assert_eq!(
        tree(&repo, &["--since", "HEAD"]),
        "\
- base -> https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)
+ base -> https://github.com/acme/app//deploy?ref=v1.3.0 (tag, not locked)
"
    );
    let picture = tree(&repo, &["--since", "HEAD", "--format", "mermaid"]);
    assert!(picture.starts_with("flowchart LR\n"), "{picture}");
    for line in [
        "[\"base\"]",
        "([\"https://github.com/acme/app//deploy?ref=v1.3.0<br>tag, not locked\"]):::open",
        " == new ==> ",
        " -. gone .-> ",
    ] {
        assert!(picture.contains(line), "{line}: {picture}");
    }
    assert!(!picture.contains("overlays"), "{picture}");
}

#[test]
fn locked_and_localized_nodes_are_marked() {
    let project = Project::new();
    let work = &project.work;
    work.run(&["lock"]).success();
    let text = tree(work, &["--remote"]);
    assert!(text.contains(", locked "), "{text}");
    assert!(!text.contains("not locked"), "{text}");
    work.run(&["--in-place", "--no-commit"]).success();
    let text = tree(work, &["--remote"]);
    assert!(!text.contains("locked "), "{text}");
    assert!(text.contains(" (from https://"), "{text}");
    let label = text
        .split(" (from ")
        .nth(1)
        .unwrap()
        .split(')')
        .next()
        .unwrap();
    let text = tree(work, &["--invert", label]);
    assert!(text.contains("localized-files"), "{text}");
}

#[test]
fn the_json_has_everything() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    let graph: Value = serde_json::from_str(&tree(&repo, &["--format", "json"])).unwrap();
    assert_eq!(graph["version"], 1);
    let nodes = graph["nodes"].as_array().unwrap();
    let named = |name: &str| nodes.iter().find(|node| node["name"] == name).unwrap();
    assert_eq!(named("tls")["kind"], "component");
    assert_eq!(named("base/map.yaml")["kind"], "file");
    assert_eq!(named("overlays/prod/gone.yaml")["why"], "missing");
    assert_eq!(named("https://files.example.com/x.yaml")["kind"], "http");
    let app = named(APP);
    assert_eq!(app["kind"], "git");
    assert_eq!(app["ref"], "v1.2.0");
    assert_eq!(app["pin"], "tag");
    assert_eq!(app["locked"], false);
    let references = graph["references"].as_array().unwrap();
    let to = |reference: &Value| nodes[reference["to"].as_u64().unwrap() as usize]["name"].clone();
    let reference = references
        .iter()
        .find(|reference| to(reference) == APP)
        .unwrap();
    assert_eq!(reference["path"], "base/kustomization.yaml");
    assert_eq!(reference["line"], 3);
    assert_eq!(reference["column"], 3);
    assert_eq!(reference["field"], "resources[1]");
    // Nodes that are left out are not there at all.
    let graph: Value =
        serde_json::from_str(&tree(&repo, &["--remote", "--format", "json"])).unwrap();
    let names: Vec<&str> = graph["nodes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|node| node["name"].as_str().unwrap())
        .collect();
    assert!(!names.contains(&"base/map.yaml"), "{names:?}");
}

#[test]
fn names_cannot_break_the_picture() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(
        "kustomization.yaml",
        "resources: ['https://example.com/\"]--><script>.yaml', \"a\\e[31m.yaml\"]\n",
    );
    repo.git(&["add", "--all"]);
    let picture = tree(&repo, &["--format", "mermaid"]);
    assert!(
        !picture.contains("<script>") && !picture.contains("\"]-->"),
        "{picture}"
    );
    let text = tree(&repo, &[]);
    assert!(!text.contains('\u{1b}'), "{text:?}");
}

#[test]
fn rings_end() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("a/kustomization.yaml", "resources: [../b]\n");
    repo.write("b/kustomization.yaml", "resources: [../a]\n");
    repo.write("c/kustomization.yaml", "resources: [.]\n");
    repo.git(&["add", "--all"]);
    assert_eq!(
        tree(&repo, &[]),
        "a\n└── b\n    └── a (cycle)\n\nc\n└── c (cycle)\n"
    );
    // References are listed all the same.
    repo.write("c/kustomization.yaml", format!("resources: [., '{APP}']\n"));
    assert_eq!(
        tree(&repo, &["--invert", "https://github.com/acme/app"]),
        "https://github.com/acme/app//deploy?ref=v1.2.0 (tag, not locked)\n└── c\n"
    );
}

#[test]
fn an_unknown_target_is_an_error() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    repo.run(&["tree", "nowhere"])
        .fails(2)
        .stderr_has("there is no `nowhere`");
    repo.run(&["tree", "--rev", "nothing"])
        .fails(2)
        .stderr_has("`nothing` names no commit");
    repo.run(&["tree", "--since", "nothing"])
        .fails(2)
        .stderr_has("cannot tell what is new since nothing");
    repo.run(&["tree", "--invert", "https://user:secret@example.com/other"])
        .fails(2)
        .stderr_has("nothing names `https://example.com/other`")
        .stderr_has("git kustomize-localize tree --remote")
        .lacks("secret");
    repo.run(&["tree", "--invert", "x", "--since", "HEAD"])
        .fails(2);
    sandbox
        .run(&sandbox.path(""), &["tree"])
        .fails(2)
        .stderr_has("not a git repository");
}

#[test]
fn repeated_references_are_drawn_once() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n";
    repo.write(
        "one/kustomization.yaml",
        component.to_owned() + "namePrefix: a-\n",
    );
    repo.write(
        "two/kustomization.yaml",
        component.to_owned() + "components: [../one, ../one]\n",
    );
    repo.write(
        "app/kustomization.yaml",
        "components: [../one, ../two, ../one]\npatches: [{path: p.yaml}, {path: p.yaml}]\n",
    );
    repo.write("app/p.yaml", config("p"));
    repo.git(&["add", "--all"]);
    assert_eq!(
        tree(&repo, &[]),
        "\
app
├── one (component)
├── two (component)
│   └── one (component)
└── app/p.yaml
"
    );
    // Every reference is listed, also the repeated ones.
    let graph: Value = serde_json::from_str(&tree(&repo, &["--format", "json"])).unwrap();
    assert_eq!(graph["references"].as_array().unwrap().len(), 7);
    // The picture has each arrow once.
    let picture = tree(&repo, &["--format", "mermaid"]);
    assert_eq!(picture.matches("-->").count(), 4, "{picture}");
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
    repo.git(&["add", "--all"]);
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
        repo.run(&["tree", "--invert", url])
            .fails(2)
            .stderr_has("nothing names");
    }
    let graph: Value =
        serde_json::from_str(&tree(&repo, &["--remote", "--format", "json"])).unwrap();
    let charts = graph["nodes"].as_array().unwrap().iter();
    let charts: Vec<_> = charts.filter(|node| node["kind"] == "chart").collect();
    assert_eq!(charts.len(), 2, "{graph}");
    assert_eq!(charts[0]["locked"], false);
    let references = graph["references"].as_array().unwrap();
    let reference = references
        .iter()
        .find(|reference| reference["field"] == "helmCharts[0]");
    assert_eq!(
        reference.unwrap()["reference"],
        "https://charts.example.com/stable"
    );
    let picture = tree(&repo, &["--format", "mermaid"]);
    assert!(
        picture.contains(
            "([\"oci://registry.example.com/charts#35;any<br>chart, not locked\"]):::open"
        ),
        "{picture}"
    );
}

#[test]
fn unreadable_kustomizations_are_marked() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", "resources: [../base]\n");
    repo.write("base/kustomization.yaml", "resources: [\n");
    repo.git(&["add", "--all"]);
    assert_eq!(tree(&repo, &[]), "app\n└── base (invalid)\n");
    let graph: Value = serde_json::from_str(&tree(&repo, &["--format", "json"])).unwrap();
    let nodes = graph["nodes"].as_array().unwrap();
    let base = nodes.iter().find(|node| node["name"] == "base").unwrap();
    assert_eq!(base["why"], "invalid");
    let picture = tree(&repo, &["--format", "mermaid"]);
    assert!(
        picture.contains("[\"base<br>invalid\"]:::broken"),
        "{picture}"
    );
}

#[test]
fn no_name_is_more_than_a_name_in_a_picture() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let hostile = [
        "a\"] --> evil[\"b.yaml",
        "``` </code></pre><img src=x>.yaml",
        "%%{init: {}}%%.yaml",
        "#quot;&lt;script&gt;.yaml",
        "x\ny\u{2028}z\u{202e}.yaml",
        "click n0 call() \\.yaml",
        "end;\tsubgraph.yaml",
    ];
    let quoted: Vec<String> = hostile
        .map(|name| serde_json::to_string(name).unwrap())
        .into();
    repo.write(
        "kustomization.yaml",
        format!("resources: [{}]\n", quoted.join(", ")),
    );
    repo.git(&["add", "--all"]);
    let picture = tree(&repo, &["--format", "mermaid"]);
    let mut lines = picture.lines();
    assert_eq!(lines.next(), Some("flowchart LR"));
    for line in lines {
        let line = line.strip_prefix("  ").unwrap();
        let is_node = line.starts_with('n') && line.matches('"').count() == 2;
        let is_arrow = line.split(" --> ").all(|end| {
            end.strip_prefix('n')
                .is_some_and(|id| id.bytes().all(|byte| byte.is_ascii_digit()))
        });
        assert!(
            is_node || is_arrow || line.starts_with("classDef "),
            "{line:?}"
        );
        if is_node {
            let label = line.split('"').nth(1).unwrap().replace("<br>", "");
            for character in ['<', '>', '`', '\\', '%', '&'] {
                assert!(!label.contains(character), "{label:?}");
            }
            let plain = |character: char| !character.is_control() && character != '\u{202e}';
            assert!(label.chars().all(plain), "{label:?}");
        }
    }
    // JSON is JSON whatever the names are.
    let graph: Value = serde_json::from_str(&tree(&repo, &["--format", "json"])).unwrap();
    assert_eq!(graph["references"].as_array().unwrap().len(), hostile.len());
}

#[test]
fn references_of_remotes_are_found_through_the_lock() {
    let world = World::new();
    world.upstream_of(
        "acme/deep",
        &[("app/kustomization.yaml", "namePrefix: a-\n")],
    );
    world.upstream_of(
        "acme/middle",
        &[(
            "kustomization.yaml",
            "resources: ['https://github.com/acme/deep//app?ref=v1']\n",
        )],
    );
    world.upstream_of(
        "acme/lib",
        &[(
            "web/kustomization.yaml",
            "resources: ['https://github.com/acme/middle?ref=v1']\n",
        )],
    );
    let top = "resources: ['https://github.com/acme/lib//web?ref=v1']\n";
    world.work.write("base/kustomization.yaml", top);
    world
        .work
        .write("app/kustomization.yaml", "resources: [../base]\n");
    world.work.run(&["lock"]).success();
    world.work.commit("locked");
    for url in [
        "https://github.com/acme/deep",
        "github.com/acme/deep//app?ref=v1",
    ] {
        let output = world.work.run(&["tree", "--invert", url]);
        let lines: Vec<&str> = output.success().stdout.lines().collect();
        let indent = |line: &str| {
            line.chars()
                .take_while(|c| !c.is_ascii_alphanumeric())
                .count()
        };
        let shape: Vec<(usize, &str)> = lines
            .iter()
            .map(|line| {
                let text = line.trim_start_matches(|c: char| !c.is_ascii_alphanumeric());
                (indent(line) / 4, text.split(' ').next().unwrap())
            })
            .collect();
        assert_eq!(
            shape,
            [
                (0, "https://github.com/acme/deep//app?ref=v1"),
                (1, "https://github.com/acme/middle?ref=v1"),
                (2, "https://github.com/acme/lib//web?ref=v1"),
                (3, "base"),
                (4, "app"),
            ],
            "{output:?}"
        );
    }
    // What no lock records is unknown here.
    world.work.remove("kustomize-localize.lock");
    world
        .work
        .run(&["tree", "--invert", "https://github.com/acme/deep"])
        .fails(2)
        .stderr_has("nothing names");
}
