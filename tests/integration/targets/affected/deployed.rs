//! Targets whose objects a build changes: compared with what kustomize builds, before and after.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

use super::{lines, report};
use crate::support::{Kustomize, Random, Repo, Sandbox, config, full};

const CLUSTERS: [&str; 3] = ["clusters/dev", "clusters/prod", "clusters/test"];
const APPS: [&str; 3] = ["api", "web", "x"];

fn application(name: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, namespace: argocd}}\nspec:\n  source: {{repoURL: https://github.com/acme/fleet, path: deploy/{name}, targetRevision: main}}\n"
    )
}

fn overlay(directory: &str, app: &str, path: &str) -> String {
    format!(
        "resources: [../../apps]\nnamespace: {}\npatches:\n- target: {{name: {app}}}\n  patch: |-\n    {}",
        directory.replace('/', "-"),
        patch(path)
    )
}

/// Returns a repository in which two overlays make applications of one base.
fn fleet(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("fleet");
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    for app in APPS {
        repo.write(&format!("apps/{app}.yaml"), application(app));
        for (place, resources) in
            [(format!("deploy/{app}"), "[map.yaml, ../../lib]"), (format!("deploy/{app}-prod"), "[map.yaml]")]
        {
            repo.write(&format!("{place}/map.yaml"), config(app));
            let text = format!("resources: {resources}\n");
            repo.write(&format!("{place}/kustomization.yaml"), text);
        }
    }
    repo.write("lib/lib.yaml", config("lib"));
    repo.write("lib/kustomization.yaml", "resources: [lib.yaml]\n");
    let apps = "resources: [api.yaml, web.yaml, x.yaml]\n";
    repo.write("apps/kustomization.yaml", apps);
    for directory in CLUSTERS.iter().take(2) {
        let text = overlay(directory, "web", "deploy/web-prod");
        repo.write(&format!("{directory}/kustomization.yaml"), text);
    }
    let component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\npatches: [{path: patch.yaml, target: {name: api}}]\n";
    repo.write("mix/kustomization.yaml", component);
    repo.write("mix/patch.yaml", patch("deploy/api-prod"));
    repo.commit("Begin");
    repo
}

fn patch(path: &str) -> String {
    format!("- {{op: replace, path: /spec/source/path, value: {path}}}\n")
}

/// Changes something, and returns what.
fn change(repo: &Repo, random: &mut Random) -> String {
    let number = random.below(1000);
    let app = random.one_of(&APPS);
    let directory = random.one_of(&CLUSTERS);
    let paths = ["deploy/api", "deploy/web", "deploy/x-prod", "deploy/none"];
    let path = random.one_of(&paths);
    match random.below(9) {
        0 => {
            let place = format!("{directory}/kustomization.yaml");
            repo.write(&place, overlay(directory, app, path));
            format!("{directory}: {app} is at {path}")
        }
        1 => {
            let text = application(app).replace(&format!("deploy/{app}"), path);
            repo.write(&format!("apps/{app}.yaml"), text);
            format!("{app} is at {path}")
        }
        2 => {
            let text = format!("# {number}\n{}", application(app));
            repo.write(&format!("apps/{app}.yaml"), text);
            format!("a comment for {app}")
        }
        3 => {
            let all = ["[api.yaml, web.yaml]", "[web.yaml, x.yaml, api.yaml]"];
            let text = format!("resources: {}\n", random.one_of(&all));
            repo.write("apps/kustomization.yaml", &text);
            text
        }
        4 => {
            let text = overlay(directory, app, path);
            let text = format!("components: [../../mix]\n{text}");
            repo.write(&format!("{directory}/kustomization.yaml"), text);
            format!("{directory} has a component, and {app} is at {path}")
        }
        5 => {
            repo.write("mix/patch.yaml", patch(path));
            format!("the component says {path}")
        }
        6 => {
            let place = "clusters/test/kustomization.yaml";
            if repo.path().join(place).exists() {
                repo.remove(place);
            } else {
                repo.write(place, overlay("clusters/test", app, path));
            }
            format!("{place} comes or goes, with {app} at {path}")
        }
        7 => {
            let text = config(&format!("lib{number}"));
            repo.write("lib/lib.yaml", text);
            "lib".to_owned()
        }
        _ => {
            let place = format!("{}/map.yaml", random.one_of(&["deploy/web", "deploy/web-prod", "deploy/api"]));
            repo.write(&place, config(&format!("c{number}")));
            place
        }
    }
}

fn build(kustomize: &Kustomize, sandbox: &Sandbox, top: &Path, directory: &str) -> String {
    let output = kustomize.run(sandbox, top, &["build", directory]);
    // Why it fails names temporary directories.
    match output.status {
        0 => output.stdout,
        _ => "failed".to_owned(),
    }
}

/// Returns what is deployed: for each overlay and application its object, and what the path in it builds to.
fn deployed(sandbox: &Sandbox, kustomize: &Kustomize, repo: &Repo) -> BTreeMap<String, String> {
    let (mut all, mut built) = (BTreeMap::new(), BTreeMap::new());
    for directory in CLUSTERS {
        let place = format!("{directory}/kustomization.yaml");
        if !repo.path().join(place).exists() {
            continue;
        }
        for object in build(kustomize, sandbox, repo.path(), directory).split("---\n") {
            let value = |key: &str| {
                let mut lines = object.lines().filter_map(|line| line.trim().strip_prefix(key));
                lines.next().unwrap_or_default().to_owned()
            };
            // Several overlays deploy one path.
            let path = value("path: ");
            let built = built.entry(path).or_insert_with_key(|path| build(kustomize, sandbox, repo.path(), path));
            let name = format!("{directory} {}", value("name: "));
            all.insert(name, format!("{object}{built}"));
        }
    }
    all
}

#[test]
fn nothing_that_is_deployed_as_a_build_makes_it_is_missed() {
    let sandbox = Sandbox::new();
    let Some(kustomize) = sandbox.builds() else { return };
    let most = if full() { 12 } else { 5 };
    let steps = std::env::var("KUSTOMIZE_LOCALIZE_TREES").map_or(most, |text| text.parse().unwrap());
    let repo = fleet(&sandbox);
    let mut random = Random::of("affected applications");
    let mut before = deployed(&sandbox, &kustomize, &repo);
    let (mut differ, mut named_too) = (0, Vec::new());
    for step in 0..steps {
        let what = change(&repo, &mut random);
        repo.git(&["add", "--all"]);
        repo.git(&["commit", "-q", "--allow-empty", "-m", &what]);
        let after = deployed(&sandbox, &kustomize, &repo);
        let named = lines(&repo, &["HEAD^"]);
        let all: Vec<&String> = before.keys().chain(after.keys()).collect();
        for name in all {
            let (directory, app) = name.split_once(' ').unwrap();
            let is_named = named.iter().any(|line| {
                line.starts_with(&format!("Argo CD Application {app} ("))
                    && line.contains(&format!("built by {directory}/kustomization.yaml)"))
            });
            if before.get(name) != after.get(name) {
                differ += 1;
                assert!(is_named, "step {step} ({what}): {name} is missed: {named:?}");
            } else if is_named {
                named_too.push(format!("{what}: {name}"));
            }
        }
        before = after;
    }
    println!("{differ} targets differ, named besides: {named_too:?}");
    assert!(differ > steps / 2, "{differ}");
}

#[test]
fn a_path_that_an_overlay_gives_is_followed() {
    let sandbox = Sandbox::new();
    let Some(_) = sandbox.builds() else { return };
    let repo = fleet(&sandbox);
    repo.write("deploy/web-prod/map.yaml", config("changed"));
    repo.commit("Change what only the overlays deploy");
    let by = |cluster: &str| {
        format!(
            "Argo CD Application web (apps/web.yaml:1, built by clusters/{cluster}/kustomization.yaml): deploy/web-prod/map.yaml"
        )
    };
    let first = "deploy/web-prod: deploy/web-prod/map.yaml".to_owned();
    let since = ["HEAD^"];
    assert_eq!(lines(&repo, &since), [first.clone(), by("dev"), by("prod")]);
    // A build that cannot be run leaves the object as its file has it.
    let remote = "resources: [../../apps, 'https://example.com/acme/x?ref=v1']\npatches: [{path: p.yaml}]\n";
    repo.write("clusters/dev/kustomization.yaml", remote);
    repo.write("clusters/dev/p.yaml", "kind: Application\nmetadata: {name: web}\nspec: {source: null}\n");
    repo.commit("Reach out");
    repo.write("deploy/web-prod/map.yaml", config("again"));
    repo.commit("Change it again");
    assert_eq!(lines(&repo, &since), [first, by("prod")]);
    repo.run_unchanged(&["affected", since[0]])
        .success().says(expect![[r#"
            deploy/web-prod: deploy/web-prod/map.yaml
            Argo CD Application web (apps/web.yaml:1, built by clusters/prod/kustomization.yaml): deploy/web-prod/map.yaml
            Argo CD Application api (apps/api.yaml:1), Argo CD Application web (apps/web.yaml:1), Argo CD Application x (apps/x.yaml:1): compared as written: clusters/dev/kustomization.yaml may change it
              not built: clusters/dev/kustomization.yaml: it reaches https://example.com/acme/x?ref=v1: tag, not locked
            1 of 9 kustomizations and 1 of 6 targets since <0>
        "#]]);
    let output = repo.run_unchanged(&["affected", since[0], "--format", "json"]);
    let json = report(&output.success().stdout);
    let unbuilt = json["unbuilt"].as_array().unwrap();
    let names: Vec<&Value> = unbuilt.iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["api", "web", "x"]);
}

#[test]
fn patterns_of_flux_that_come_or_go_touch_all_that_it_deploys() {
    let sandbox = Sandbox::new();
    let Some(_) = sandbox.builds() else { return };
    let repo = sandbox.repo("fleet");
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let mut objects = "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {name: fleet}\nspec: {url: 'https://github.com/acme/fleet'}\n".to_owned();
    for app in APPS {
        objects.push_str(&format!(
            "---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: {app}}}\nspec: {{path: deploy/{app}, sourceRef: {{kind: GitRepository, name: fleet}}}}\n"
        ));
        // Flux leaves pictures out of its artifacts, unless something says what it leaves out.
        let text = "configMapGenerator: [{name: logo, files: [logo.png]}]\n";
        repo.write(&format!("deploy/{app}/kustomization.yaml"), text);
        repo.write(&format!("deploy/{app}/logo.png"), "a picture\n");
    }
    repo.write("clusters/flux.yaml", objects);
    repo.write("clusters/argo.yaml", application("argo-api"));
    repo.commit("Begin");
    let flux = || {
        let named = lines(&repo, &["HEAD^"]);
        assert!(named.iter().all(|line| line.starts_with("Flux")), "{named:?}");
        named.len()
    };
    repo.write("docs/guide/index.md", "No build reads it.\n");
    repo.commit("Explain");
    assert_eq!(flux(), 0);
    repo.write("notes/old/.sourceignore", "drafts/\n");
    repo.commit("Leave out drafts");
    assert_eq!(flux(), APPS.len());
    repo.git(&["rm", "-q", "-r", "notes"]);
    repo.commit("Remove the notes");
    assert_eq!(flux(), APPS.len());
}

#[test]
fn a_submodule_in_a_directory_that_is_read_is_not_known() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("fleet");
    repo.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    for (name, directory) in [("deep", "{recurse: true}"), ("flat", "{}")] {
        let application = application(name).replace(&format!("deploy/{name}"), "vendor");
        let application = application.replace("targetRevision: main", &format!("directory: {directory}"));
        repo.write(&format!("apps/{name}.yaml"), application);
    }
    repo.write("vendor/map.yaml", config("map"));
    repo.commit("Begin");
    for commit in ["1", "2"] {
        let link = format!("160000,{},vendor/sub/part", commit.repeat(40));
        repo.git(&["update-index", "--add", "--cacheinfo", &link]);
        repo.git(&["commit", "-q", "-m", commit]);
    }
    sandbox.builds();
    // Only one of them reads directories in it.
    let named = lines(&repo, &["HEAD^"]);
    assert!(named.len() == 1 && named[0].contains("deep"), "{named:?}");
    let output = repo.run(&["diff", "HEAD^", "--rev", "HEAD", "--exit-code"]);
    output.fails(1).says(expect![[r#"
        Argo CD Application deep (apps/deep.yaml:1): vendor/sub/part
          not built: `vendor/sub/part` is a submodule
        1 affected build could not be compared since <0>; unknown: 1 target
    "#]]);
}
