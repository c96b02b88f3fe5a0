//! `targets`, and what depends on it, as people run it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::support::{Repo, Sandbox, World, config, config_map};

const OBJECTS: &str = "apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: fleet, namespace: flux-system}
spec: {url: 'https://github.com/acme/fleet', ref: {branch: main}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: apps, namespace: flux-system}
spec:
  path: ./apps/web
  sourceRef: {kind: GitRepository, name: fleet}
";

const OURS: &str = "repository: [{url: 'https://github.com/acme/fleet'}]\n";

/// Returns a repository from which Flux deploys one of two applications.
fn fleet(sandbox: &Sandbox) -> Repo {
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", "git@github.com:acme/fleet.git"]);
    repo.write("clusters/prod/apps.yaml", OBJECTS);
    repo.write("apps/web/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("apps/web/map.yaml", config("web"));
    repo.write("apps/db/kustomization.yaml", "resources: [none.yaml]\n");
    repo.commit("Begin");
    repo
}

fn json(repo: &Repo) -> Value {
    let output = repo.run(&["targets", "--format", "json"]);
    serde_json::from_str(&output.success().stdout).unwrap()
}

#[test]
fn targets_are_shown_for_people_and_machines() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let text = "clusters/prod/apps.yaml:6: Flux Kustomization flux-system/apps\n  apps/web at main: a kustomization, hermetic\n\n1 target: 1 here, 0 external, 0 templated\n";
    for from in [&[][..], &["--rev", "HEAD"]] {
        assert_eq!(repo.run(&[&["targets"], from].concat()).success().stdout, text, "{from:?}");
    }
    assert_eq!(json(&repo)["targets"][0]["here"]["path"], "apps/web");
    // The tree tells which one it is, whatever the clone is of. What is declared goes first.
    let other = "https://github.com/acme/other";
    repo.git(&["remote", "set-url", "origin", other]);
    assert_eq!(repo.run(&["targets"]).success().stdout, text);
    repo.write(".kustomize-localize", format!("repository: [{{url: '{other}'}}]\n"));
    repo.run(&["targets"]).success().stdout_has("external: it is in https://github.com/acme/fleet");
}

/// Returns a workload as those who install an engine have it.
fn workload(name: &str, labels: &str, image: &str) -> String {
    format!(
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  labels: {{{labels}}}\nspec: {{template: {{spec: {{containers: [{{name: side, image: 'other:v9'}}, {{name: main, image: {image}}}]}}}}}}\n"
    )
}

#[test]
fn the_engines_that_the_tree_installs_are_named() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let none = repo.run(&["targets"]).success().stdout.clone();
    assert!(!repo.run_as_is(&["status"]).success().stdout.contains("engines:"));
    let flux =
        |labels, tag| workload("kustomize-controller", labels, &format!("'ghcr.io/fluxcd/kustomize-controller{tag}'"));
    let argo = |name, tag| {
        workload(name, "app.kubernetes.io/component: repo-server", &format!("'example.com:5000/argoproj/argocd{tag}'"))
    };
    let other =
        workload("source-controller", "app.kubernetes.io/version: v9.9.9", "'ghcr.io/fluxcd/source-controller:v9'");
    let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux}\nspec: {distribution: {version: 2.6.x}}\n";
    let label = "app.kubernetes.io/part-of: flux, app.kubernetes.io/version: v2.6.4";
    repo.write(
        "a/gotk-components.yaml",
        format!("---\n# Flux Version: v0.0.1\n{other}---\n{}", flux(label, ":v1.6.1")),
    );
    repo.write("b/gotk-components.yaml", flux(label, ":v1.6.1"));
    repo.write("c/gotk-components.yaml", flux("", ":v1.6.1@sha256:0000"));
    repo.write("d/flux.yaml", instance);
    repo.write("e/install.yaml", argo("argocd-repo-server", ":v3.1.0"));
    repo.write("f/install.yaml", argo("cd-argocd-repo-server", ":v3.1.0"));
    // What says no version, or is none.
    repo.write("n/digest-install.yaml", argo("argocd-repo-server", "@sha256:0000"));
    repo.write("n/server-install.yaml", argo("argocd-server", ":v1"));
    repo.write("n/named-install.yaml", workload("argocd-repo-server", "", "'example.com/not-argocd:v1'"));
    repo.write("n/template-install.yaml", argo("argocd-repo-server", ":{{ .Values.tag }}"));
    repo.write("n/substituted-install.yaml", flux("app.kubernetes.io/version: '${VERSION}'", ":v1"));
    repo.write("n/broken-install.yaml", format!("{}}}", flux(label, ":v1")));
    repo.write("n/odd-install.yaml", "kind: Deployment\nmetadata: [kustomize-controller]\nspec: {template: x}\n");
    repo.write("n/other-install.yaml", flux(label, ":v1").replace("Deployment", "Widget"));
    repo.write("excluded/install.yaml", flux(label, ":v1"));
    repo.write(".kustomize-localize", format!("{OURS}exclude: [excluded]\n"));
    let expected = [
        ("a/gotk-components.yaml", 10, "flux", "Flux", "v2.6.4"),
        ("b/gotk-components.yaml", 1, "flux", "Flux", "v2.6.4"),
        ("c/gotk-components.yaml", 1, "flux", "Flux", "kustomize-controller v1.6.1"),
        ("d/flux.yaml", 1, "flux", "Flux", "2.6.x"),
        ("e/install.yaml", 1, "argo-cd", "Argo CD", "v3.1.0"),
        ("f/install.yaml", 1, "argo-cd", "Argo CD", "v3.1.0"),
    ];
    let lines = expected.map(|(file, line, _, name, version)| format!("{file}:{line}: {name} {version}\n")).concat();
    let (before, after) = none.split_at(none.find("\n1 target").unwrap());
    assert_eq!(repo.run(&["targets"]).success().stdout, format!("{before}{lines}{after}"));
    let found = expected.map(|(file, line, engine, _, version)| serde_json::json!({"engine": engine, "version": version, "file": file, "line": line}));
    assert_eq!(json(&repo)["engines"], Value::from(found.to_vec()));
    repo.commit("engines");
    let listed = "engines: Argo CD v3.1.0, Flux 2.6.x, Flux kustomize-controller v1.6.1, Flux v2.6.4\n";
    repo.run_as_is(&["status"]).success().stdout_has(listed);
    let status = repo.run_as_is(&["status", "--format", "json"]);
    let status: Value = serde_json::from_str(&status.success().stdout).unwrap();
    assert_eq!(status["engines"], json(&repo)["engines"]);
}

#[test]
fn the_gate_looks_at_what_is_deployed() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    repo.write("clusters/prod/apps.yaml", OBJECTS.replace("apps/web", "apps/weeb"));
    repo.write(".kustomize-localize", OURS);
    repo.run(&["check"]).fails(1).stdout_has("error[missing-target]: Flux Kustomization apps");
}

#[test]
fn what_only_a_localized_branch_has_is_looked_for_there() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let objects = OBJECTS.replace("apps/web", "web").replace("main", "localized/main");
    repo.write("clusters/prod/apps.yaml", objects);
    repo.write("apps/db/kustomization.yaml", "resources: []\n");
    repo.write(".kustomize-localize", OURS);
    repo.commit("Deploy a copy");
    let missing = "error[missing-target]: Flux Kustomization apps";
    repo.run(&["check"]).fails(1).stdout_has(missing);
    for new_dir in ["other", "web"] {
        repo.run(&["apps/web", new_dir, "--no-verify"]).success();
        assert_eq!(repo.run(&["check"]).stdout.contains(missing), new_dir == "other");
    }
    // Others fetch the branch, and have none of that name.
    let clone = sandbox.clone_of(&repo, "clone");
    clone.run(&["check"]).success();
    repo.git(&["branch", "-D", "localized/main"]);
    repo.run(&["check"]).fails(1).stdout_has(missing);
}

#[test]
fn what_is_deployed_from_a_localized_branch_is_what_that_holds() {
    let world = World::acme();
    let work = &world.work;
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    work.write("clusters/apps.yaml", OBJECTS);
    let localized = OBJECTS.replace("main", "localized/main").replace("name: apps", "name: other");
    work.write("clusters/other.yaml", localized.replace("name: fleet", "name: localized"));
    work.write("apps/web/kustomization.yaml", "resources: ['https://github.com/acme/lib//other?ref=v1']\n");
    work.commit("Begin");
    work.lock();
    let reads = "flux-system/apps (clusters/apps.yaml:6) reads `main`\n";
    let reaches = "  apps/web at main: a kustomization\n    reaches https://github.com/acme/lib//other?ref=v1: ";
    // It is not there yet.
    work.run(&["targets"]).success().stdout_has(reaches).stdout_has(&reaches.replace("main", "localized/main"));
    work.run(&["branch", "--no-verify"])
        .success()
        .stdout_has(&format!("deployed from localized/main: 1 of 2 targets; {reads}"));
    let after = work.run(&["targets"]);
    after.success().says(expect![[r#"
        clusters/apps.yaml:6: Flux Kustomization flux-system/apps
          apps/web at main: a kustomization
            reaches https://github.com/acme/lib//other?ref=v1: tag, locked <0>
        clusters/other.yaml:6: Flux Kustomization flux-system/other
          apps/web at localized/main: a kustomization, hermetic

        2 targets: 2 here, 0 external, 0 templated
        deployed from a localized branch: 1 of 2 targets; flux-system/apps (clusters/apps.yaml:6) reads `main`
    "#]]);
    work.remove("clusters/other.yaml");
    work.run(&["targets"]).stdout_has(&format!("deployed from a localized branch: 0 of 1 target; {reads}"));
}

#[test]
fn a_result_that_changes_what_is_deployed_is_refused() {
    let world = World::acme();
    let work = &world.work;
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    let set = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: apps, namespace: argocd}
spec:
  generators:
  - git:
      repoURL: https://github.com/acme/fleet
      revision: main
      directories:
      - path: apps/*/*
  template:
    metadata: {name: '{{path.basename}}'}
    spec:
      source: {repoURL: 'https://github.com/acme/fleet', path: '{{path}}', targetRevision: main}
";
    work.write("sets/apps.yaml", set);
    work.write("apps/web/kustomization.yaml", "resources:\n- https://github.com/acme/lib//web?ref=v1\n- map.yaml\n");
    work.write("apps/web/map.yaml", config_map("web"));
    work.write("apps/team/db/kustomization.yaml", "resources: [map.yaml]\n");
    work.write("apps/team/db/map.yaml", config_map("db"));
    work.commit("Begin");
    work.lock();
    for command in ["branch", "vendor"] {
        let before = work.state();
        work.run(&[command, "--no-verify"])
            .fails(1)
            .stderr_has(" --> sets/apps.yaml:1:1\n")
            .stderr_has("ApplicationSet argocd/apps")
            .stderr_has("hint: ");
        work.state().assert_same(&before);
    }
    // What the hint says helps.
    let excluded = "      - path: apps/*/*\n      - {path: apps/*/localized-files, exclude: true}\n";
    work.write("sets/apps.yaml", set.replace("      - path: apps/*/*\n", excluded));
    work.commit("Exclude");
    work.run(&["branch", "--no-verify"]).success();
}

/// Returns an object of Flux in the namespace of bootstrapping.
fn of_flux(version: &str, kind: &str, name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: {version}\nkind: {kind}\nmetadata: {{name: '{name}', namespace: flux-system}}\nspec: {{{spec}}}\n"
    )
}

fn kustomization(name: &str, spec: &str) -> String {
    of_flux("kustomize.toolkit.fluxcd.io/v1", "Kustomization", name, spec)
}

/// Writes clusters as the example of Flux has them: an ArtifactGenerator copies out of `flux-system`, which is declared
/// nowhere before it is bootstrapped.
fn clusters_of_generators(repo: &Repo) {
    for cluster in ["production", "staging"] {
        let generator = format!(
            "sources: [{{alias: monorepo, kind: GitRepository, name: flux-system}}], artifacts: [{{name: apps, originRevision: '@monorepo', copy: [{{from: '@monorepo/apps/base/**', to: '@artifact/base/'}}, {{from: '@monorepo/apps/{cluster}/**', to: '@artifact/{cluster}/'}}]}}, {{name: infra, copy: [{{from: '@monorepo/infra/**', to: '@artifact/'}}]}}]"
        );
        let artifact = |name: &str, path: &str, more: &str| {
            let spec = format!("sourceRef: {{kind: ExternalArtifact, name: {name}}}, path: {path}{more}");
            kustomization(name, &spec)
        };
        let files = [
            ("flux-system/gotk-sync.yaml", "# flux bootstrap writes this file.\n".to_owned()),
            (
                "artifacts.yaml",
                of_flux("source.extensions.fluxcd.io/v1beta1", "ArtifactGenerator", "flux-system", &generator),
            ),
            ("apps.yaml", artifact("apps", &format!("./{cluster}"), "")),
            ("infra.yaml", artifact("infra", "./configs", "")),
        ];
        for (name, text) in files {
            repo.write(&format!("clusters/{cluster}/{name}"), text);
        }
        repo.write(&format!("apps/{cluster}/kustomization.yaml"), "resources: [../base/web]\n");
    }
    repo.write("apps/base/web/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("apps/base/web/map.yaml", config("web"));
    let team = kustomization("acme", "path: ./teams/acme, sourceRef: {kind: GitRepository, name: flux-system}");
    repo.write("infra/configs/team.yaml", team);
    repo.write("teams/acme/map.yaml", config("acme"));
}

/// Returns the names and directories of what is deployed, each once; that of another repository has none.
fn deployed(repo: &Repo) -> BTreeSet<(String, String)> {
    let json = json(repo);
    let text = |one: &Value, key: &str| one.pointer(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let targets = json["targets"].as_array().unwrap().iter();
    targets.map(|one| (text(one, "/name"), text(one, "/here/path"))).collect()
}

#[test]
fn what_bootstrapping_is_going_to_declare_is_this_repository() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    clusters_of_generators(&repo);
    repo.commit("Begin");
    let expected =
        [("acme", "teams/acme"), ("apps", "apps/production"), ("apps", "apps/staging"), ("infra", "infra/configs")];
    let expected = expected.map(|(name, path)| (name.to_owned(), path.to_owned()));
    assert_eq!(deployed(&repo), expected.into());
    repo.write("apps/base/web/map.yaml", config("changed"));
    repo.write("apps/staging/kustomization.yaml", "resources: [gone.yaml, ../base/web]\n");
    repo.commit("Change");
    let affected = repo.run(&["affected", "HEAD^"]);
    for cluster in ["production", "staging"] {
        let name = format!("Flux Kustomization apps (clusters/{cluster}/apps.yaml:");
        affected.success().stdout_has(&name);
    }
    repo.run(&["check"]).fails(1).stdout_has("apps/staging/kustomization.yaml:1:");
    // What is deployed from the top is here, too; where no path is, the source is another repository.
    for (path, is_here) in [("./", true), ("./nowhere", false)] {
        let repo = sandbox.repo(&format!("deploys-{is_here}"));
        let spec = format!("path: {path}, sourceRef: {{kind: GitRepository, name: flux-system}}");
        repo.write("cluster.yaml", kustomization("cluster", &spec));
        repo.commit("Begin");
        assert_eq!(json(&repo)["targets"][0].get("here").is_some(), is_here);
    }
}

#[test]
fn what_a_path_pattern_makes_is_followed_to_its_directory() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let generator = "sources: [{alias: mono, kind: GitRepository, name: flux-system}], pathPattern: '@mono/apps/{app}/envs/{env}', artifacts: [{name: '{app}-{env}', copy: [{from: '@mono/apps/{app}/envs/{env}/**', to: '@artifact/'}]}]";
    let mut text = of_flux("source.extensions.fluxcd.io/v1beta1", "ArtifactGenerator", "mono", generator);
    for (name, directory) in [("web-prod", "Web/envs/prod"), ("db-prod", "db/envs/prod")] {
        text += &kustomization(name, &format!("sourceRef: {{kind: ExternalArtifact, name: {name}}}, path: ./"));
        repo.write(&format!("apps/{directory}/kustomization.yaml"), "resources: [map.yaml]\n");
        repo.write(&format!("apps/{directory}/map.yaml"), config(name));
    }
    repo.write("clusters/prod.yaml", text);
    repo.commit("Begin");
    let places = [("db-prod", "apps/db/envs/prod"), ("web-prod", "apps/Web/envs/prod")];
    assert_eq!(deployed(&repo), places.map(|(name, path)| (name.to_owned(), path.to_owned())).into());
    repo.write("apps/Web/envs/prod/map.yaml", config("changed"));
    repo.commit("Change");
    let by = "Flux Kustomization web-prod (clusters/prod.yaml:";
    let affected = repo.run(&["affected", "HEAD^"]);
    assert!(!affected.success().stdout_has(by).stdout.contains("db-prod"));
    if sandbox.builds().is_some() {
        let output = repo.run(&["diff", "HEAD^"]);
        let changed = output.success().stdout_has(by).stdout_has("+++ v1 ConfigMap changed");
        assert!(!changed.stdout.contains("db-prod"));
    }
    // What has no directory any more is not called another repository.
    repo.git(&["rm", "-q", "-r", "apps/db"]);
    let targets = repo.run(&["targets"]);
    targets.success().stdout_has("matches no directory").stdout_has("2 targets: 1 here, 0 external, 1 templated");
    repo.run(&["check"]).stdout_has("1 target unknown");
}

/// Writes applications of Argo CD that use what does not lie in their directories.
fn applications_that_share(repo: &Repo) {
    let here = "repoURL: 'https://github.com/acme/fleet', targetRevision: main";
    let application = |name: &str, spec: &str| {
        repo.write(
            &format!("argo/{name}.yaml"),
            format!("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}, annotations: {{argocd.argoproj.io/manifest-generate-paths: .}}}}\nspec: {{{spec}}}\n"),
        );
    };
    for (name, path) in [("web", "apps/web"), ("linked", "apps/linked")] {
        application(name, &format!("source: {{{here}, path: {path}}}"));
    }
    let values = "valueFiles: [own.yaml, ../../values/prod.yaml, /values/all.yaml, '../../values/*/x.yaml']";
    application("shop", &format!("source: {{{here}, path: charts/shop, helm: {{{values}}}}}"));
    let values = "valueFiles: [$values/values/other.yaml], fileParameters: [{name: a, path: ../../values/file.txt}]";
    application(
        "many",
        &format!("sources: [{{{here}, path: charts/many, helm: {{{values}}}}}, {{{here}, ref: values}}]"),
    );
    for (file, text) in [
        (
            "apps/web/kustomization.yaml",
            "resources: [../base]\nhelmGlobals: {chartHome: ../../charts}\nhelmCharts: [{name: web, valuesFile: ../../values/web.yaml}]\n",
        ),
        ("apps/base/kustomization.yaml", "resources: [map.yaml]\n"),
        ("apps/base/map.yaml", &config("base")),
        ("charts/web/Chart.yaml", "name: web\nversion: 1.0.0\n"),
        ("charts/web/templates/map.yaml", &config("web")),
        ("real/linked/kustomization.yaml", "resources: [map.yaml]\n"),
        ("real/linked/map.yaml", &config("linked")),
        (
            "charts/shop/Chart.yaml",
            "name: shop\nversion: 1.0.0\ndependencies: [{name: common, repository: file://../common}]\n",
        ),
        (
            "charts/common/Chart.yaml",
            "name: common\nversion: 1.0.0\ndependencies: [{name: shop, repository: file://../shop}]\n",
        ),
        ("charts/many/Chart.yaml", "name: many\nversion: 1.0.0\n"),
        ("values/web.yaml", "a: b\n"),
        ("values/prod.yaml", "a: b\n"),
        ("values/all.yaml", "a: b\n"),
        ("values/some/x.yaml", "a: b\n"),
        ("values/other.yaml", "a: b\n"),
        ("values/file.txt", "a\n"),
        ("README.md", "No application uses it.\n"),
    ] {
        repo.write(file, text);
    }
    repo.symlink("apps/linked", "../real/linked");
}

/// Returns whether Argo CD looks again at an application when a file changes, as its webhook decides that.
fn is_watched(value: &str, own: &str, file: &str) -> bool {
    value.split(';').any(|item| {
        let item = match item.strip_prefix('/') {
            Some(item) => item,
            None => own,
        };
        file == item || file.strip_prefix(item).is_some_and(|rest| rest.starts_with('/'))
    })
}

#[test]
fn what_argo_cd_watches_covers_every_file_that_makes_a_difference() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.git(&["remote", "add", "origin", "git@github.com:acme/fleet.git"]);
    applications_that_share(&repo);
    repo.commit("Begin");
    let printed = repo.run(&["targets", "--manifest-generate-paths"]);
    let lines = printed.success().stdout.lines();
    let ends: Vec<&str> = lines.map(|line| line.rsplit(' ').next().unwrap()).collect();
    let values: BTreeMap<&str, &str> = ends.chunks(2).map(|pair| (pair[0], pair[1])).collect();
    assert_eq!(values.len(), 4, "{printed:?}");
    let all = repo.git(&["ls-files"]);
    let mut uses: BTreeSet<(String, String)> = BTreeSet::new();
    let others = ["argo/", ".kustomize-localize", "apps/linked"];
    let files = all.lines().filter(|file| !others.iter().any(|other| file.starts_with(other)));
    for file in files.chain(["apps/linked"]) {
        if file == "apps/linked" {
            repo.remove(file);
            repo.write(file, "no link\n");
        } else {
            repo.write(file, repo.read(file) + "# changed\n");
        }
        repo.commit(&format!("Change {file}"));
        let output = repo.run(&["affected", "HEAD^"]);
        let touched = output.success().stdout.clone();
        for (name, value) in &values {
            if touched.contains(&format!("Argo CD Application {name} (")) {
                let own = match *name {
                    "web" | "linked" => format!("apps/{name}"),
                    _ => format!("charts/{name}"),
                };
                assert!(is_watched(value, &own, file), "{name} {value}: {file}");
                uses.insert(((*name).to_owned(), file.to_owned()));
            }
        }
    }
    for (name, file) in [
        ("web", "charts/web/templates/map.yaml"),
        ("web", "values/web.yaml"),
        ("web", "apps/base/map.yaml"),
        ("linked", "apps/linked"),
        ("linked", "real/linked/map.yaml"),
        ("shop", "charts/common/Chart.yaml"),
        ("shop", "values/prod.yaml"),
        ("shop", "values/all.yaml"),
        ("shop", "values/some/x.yaml"),
        ("many", "values/other.yaml"),
        ("many", "values/file.txt"),
    ] {
        assert!(uses.contains(&(name.to_owned(), file.to_owned())), "{name} {file}");
    }
    assert!(!uses.iter().any(|(_, file)| file == "README.md"));
    // What the help says is enough.
    repo.git(&["checkout", "-q", "HEAD", "."]);
    for (name, value) in &values {
        let file = format!("argo/{name}.yaml");
        let text = repo.read(&file).replace("generate-paths: .", &format!("generate-paths: '{value}'"));
        repo.write(&file, text);
    }
    repo.git(&["add", "--all"]);
    repo.run(&["check"]).lacks("error[generate-paths]");
}

#[test]
fn what_nothing_deploys_is_a_warning_that_names_the_way_out() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    let deploys = |name: &str, path: &str| {
        let spec = format!("path: {path}, sourceRef: {{kind: GitRepository, name: flux-system}}");
        kustomization(name, &spec)
    };
    repo.write("kubernetes/flux/cluster/ks.yaml", deploys("cluster-apps", "./kubernetes/apps"));
    repo.write("kubernetes/apps/default/kustomization.yaml", "resources: [web/ks.yaml]\n");
    let web = "kubernetes/apps/default/web/ks.yaml";
    repo.write(web, deploys("web", "./kubernetes/apps/default/web/app"));
    repo.write("kubernetes/apps/default/web/app/map.yaml", config("web"));
    for name in ["old", "older"] {
        let app = format!("./kubernetes/apps/default/{name}/app");
        let both = deploys(name, &app) + &deploys(&format!("{name}-db"), &app);
        repo.write(&format!("kubernetes/archive/default/{name}/ks.yaml"), both);
    }
    repo.write("kubernetes/archive/default/kustomization.yaml", "resources: [old/ks.yaml]\n");
    let found = |status: i32, warnings: usize, errors: usize| {
        repo.git(&["add", "--all"]);
        for arguments in [&["check"][..], &["check", "kubernetes/archive"]] {
            let output = repo.run(arguments);
            let told = &output.stdout;
            assert_eq!(told.matches("warning[missing-target]").count(), warnings, "{told}");
        }
        let told = repo.run(&["check"]);
        assert_eq!(told.status, status, "{}", told.stdout);
        assert_eq!(told.stdout.matches("error[missing-target]").count(), errors);
        told.stdout.clone()
    };
    let told = found(0, 4, 0);
    assert!(told.contains("add `kubernetes/archive` to `exclude`"), "{told}");
    // What is deployed fails, and so does what may be deployed by hand as what is beside it.
    repo.write(web, deploys("web", "./kubernetes/apps/default/wbe"));
    repo.write("kubernetes/flux/cluster/more.yaml", deploys("more", "./kubernetes/mroe"));
    found(1, 4, 2);
    repo.write(".kustomize-localize", "exclude: [kubernetes/archive]\n");
    let told = found(1, 0, 2);
    assert!(!told.contains("archive"), "{told}");
    // Where no object is reached, all may be deployed from elsewhere.
    repo.git(&["rm", "-q", "-r", "-f", "kubernetes/flux", ".kustomize-localize"]);
    repo.write(web, deploys("web", "./kubernetes/apps/default/web/app"));
    let told = found(1, 0, 4);
    assert!(told.contains("to `exclude`"), "{told}");
}

#[test]
fn a_target_has_the_namespace_that_what_deploys_it_gives() {
    let sandbox = Sandbox::new();
    let repo = fleet(&sandbox);
    let without = |text: &str| text.replace(", namespace: flux-system", "");
    let named = |name: &str| without(OBJECTS).replace("name: apps", &format!("name: {name}"));
    let object = |name: &str| named(name).split("---\n").nth(1).unwrap().to_owned();
    repo.write(
        "clusters/prod/apps.yaml",
        OBJECTS.replace("apps/web", "more").replace("spec:\n", "spec:\n  targetNamespace: given\n"),
    );
    repo.write("more/kustomization.yaml", "namespace: hidden\nresources: [one.yaml]\n");
    repo.write("more/one.yaml", object("one"));
    // Nobody deploys these: one kustomization gives a namespace, or several do.
    repo.write("two/kustomization.yaml", "Namespace: own\nresources: [two.yaml]\n");
    repo.write("two/two.yaml", object("two"));
    repo.write("base/kustomization.yaml", "resources: [three.yaml]\n");
    repo.write("base/three.yaml", object("three"));
    repo.write("a/kustomization.yaml", "namespace: a\nresources: [../base]\n");
    repo.write("b/kustomization.yaml", "namespace: b\nresources: [../base]\n");
    repo.write(
        "set.yaml",
        "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: all, namespace: argocd}
spec:
  generators: [{list: {elements: [{name: web}]}}]
  template:
    metadata: {name: 'app-{{name}}'}
    spec: {source: {repoURL: 'https://github.com/acme/fleet', path: 'apps/{{name}}'}}
",
    );
    repo.write(".kustomize-localize", OURS);
    let shown = repo.run(&["targets"]).success().stdout.clone();
    for line in [
        "more/one.yaml:1: Flux Kustomization given/one\n",
        "two/two.yaml:1: Flux Kustomization own/two\n",
        "base/three.yaml:1: Flux Kustomization three\n",
        "set.yaml:1: Argo CD Application argocd/app-web\n  apps/web: a kustomization, of ApplicationSet argocd/all, hermetic\n",
    ] {
        assert!(shown.contains(line), "{line}\n{shown}");
    }
    if sandbox.builds().is_some() {
        for name in ["given/one", "own/two", "argocd/app-web"] {
            repo.run(&["build", name]).success().stdout_has("name: web");
        }
        repo.run(&["build", "a/three"]).fails(2);
    }
}

#[test]
fn what_is_made_of_jsonnet_is_not_known() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(".kustomize-localize", OURS);
    repo.write("a.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec: {source: {repoURL: 'https://github.com/acme/fleet', path: d}}\n");
    repo.write("d/main.jsonnet", "{}\n");
    repo.commit("jsonnet");
    let text = "a.yaml:1: Argo CD Application a\n  d: a directory without a kustomization\n  unknown: Argo CD generates its objects from Jsonnet: `main.jsonnet`\n";
    repo.run(&["targets"]).success().stdout_has(text);
    repo.run(&["targets", "--format=json"]).success().stdout_has("\"reaches\": null");
}
