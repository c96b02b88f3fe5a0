//! `tree`: the reference graph.

use serde_json::Value;

use crate::support::{Project, Repo, Sandbox, config};

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
fn it_shows_what_is_asked_for() {
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
fn what_lies_below_a_root_that_names_it_is_no_tree_of_its_own() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("app/kustomization.yaml", "resources: [part]\n");
    repo.write("app/part/kustomization.yaml", "namePrefix: a-\n");
    repo.commit("Begin");
    let whole = "app\n└── app/part\n";
    assert_eq!(tree(&repo, &["app"]), whole);
    assert_eq!(tree(&repo, &["app/kustomization.yaml"]), whole);
    // Unless it is asked for.
    assert_eq!(
        tree(&repo, &["app", "app/part"]),
        format!("{whole}\napp/part\n")
    );
}

#[test]
fn what_changes_can_be_seen_alone() {
    let sandbox = Sandbox::new();
    let repo = repository(&sandbox);
    assert_eq!(tree(&repo, &["--since", "HEAD"]), "");
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
fn what_is_locked_and_what_was_brought_in_is_told() {
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
    // What is left out is not there at all.
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
    let text = tree(&repo, &[]);
    assert!(text.contains("cycle") || text.contains("(*)"), "{text}");
    for name in ["a", "b", "c"] {
        assert!(text.contains(name), "{text}");
    }
}

#[test]
fn what_cannot_be_shown_is_an_error() {
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
