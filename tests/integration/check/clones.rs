//! Each clone says the same of a commit, whatever its remotes are.

use super::{Repo, check, found};
use crate::support::{Sandbox, config};

const FLEET: &str = "https://github.com/acme/fleet";

/// Returns an Application of Argo CD that deploys a path of a repository.
fn app(name: &str, url: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{source: {{repoURL: '{url}', path: {path}}}}}\n"
    )
}

fn flux(path: &str) -> String {
    format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: flux-system}}\n\
         spec: {{url: 'ssh://git@github.com/acme/fleet', ref: {{branch: main}}}}\n---\n\
         apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: one}}\n\
         spec: {{path: ./clusters/prod, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n---\n\
         apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: two}}\n\
         spec: {{path: ./apps/a, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n---\n\
         apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: apps}}\n\
         spec: {{path: {path}, sourceRef: {{kind: GitRepository, name: flux-system}}}}\n"
    )
}

/// Checks a commit with each of several sets of remotes, and returns what all of them found.
#[track_caller]
fn same_everywhere(repo: &Repo) -> Vec<String> {
    let remotes: [&[&str]; 5] = [
        &[],
        &[FLEET],
        &["git@github.com:someone/fork.git"],
        &["https://mirror.example.com/acme/fleet.git"],
        &["https://github.com/other/apps", FLEET],
    ];
    let config = repo.read(".git/config");
    let mut all = vec![found(repo, &[])];
    for urls in remotes {
        let remote = |(number, url)| format!("[remote \"r{number}\"]\n\turl = {url}\n");
        let added: String = urls.iter().enumerate().map(remote).collect();
        repo.write(".git/config", format!("{config}{added}"));
        all.push(found(repo, &["--rev", "HEAD"]));
    }
    assert!(all.iter().all(|one| *one == all[0]), "{all:#?}");
    all.remove(0)
}

#[test]
fn the_remotes_of_a_clone_decide_nothing() {
    let missing = ["!missing-target argo/typo.yaml:4"];
    let argo = |paths: &[(&str, &str, &str)]| -> Vec<(String, String)> {
        paths.iter().map(|(name, url, path)| (format!("argo/{name}.yaml"), app(name, url, path))).collect()
    };
    let ours = [("a", FLEET, "apps/a"), ("b", FLEET, "apps/b")];
    let with = |more: &[(&'static str, &'static str, &'static str)]| argo(&[&ours[..], more].concat());
    let declared = |url: &str, mut files: Vec<(String, String)>| {
        files.push((".kustomize-localize".to_owned(), format!("repository: [{{url: '{url}'}}]\n")));
        files
    };
    for (name, files, expected) in [
        ("all of it is here", with(&[]), &[][..]),
        ("a typing error", with(&[("typo", FLEET, "apps/aa")]), &missing[..]),
        ("another repository", with(&[("typo", "https://github.com/other/apps", "apps/x")]), &[]),
        ("another one that has a path of that name", with(&[("typo", "https://github.com/other/apps", "apps/a")]), &[]),
        // Nothing tells that it is this one.
        ("none of it is here", argo(&[("typo", FLEET, "apps/aa")]), &[]),
        ("the top", argo(&[("typo", FLEET, "'.'"), ("x", FLEET, "nowhere")]), &[]),
        ("that is said", declared(FLEET, argo(&[("typo", FLEET, "apps/aa")])), &missing),
        ("another one is said", declared("https://github.com/other/x", with(&[("typo", FLEET, "apps/aa")])), &[]),
        (
            "by Flux",
            vec![("clusters/prod/flux.yaml".to_owned(), flux("./apps/aa"))],
            &["!missing-target clusters/prod/flux.yaml:19"],
        ),
    ] {
        let sandbox = Sandbox::new();
        let repo = sandbox.repo("work");
        for app in ["a", "b"] {
            repo.write(&format!("apps/{app}/kustomization.yaml"), "resources: [map.yaml]\n");
            repo.write(&format!("apps/{app}/map.yaml"), config(app));
        }
        for (path, text) in files {
            repo.write(&path, text);
        }
        repo.commit(name);
        assert_eq!(same_everywhere(&repo), expected, "{name}");
    }
}

#[test]
fn a_pattern_of_exclude_without_effect_is_reported() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write("base/kustomization.yaml", "resources: [map.yaml]\n");
    repo.write("base/map.yaml", config("base"));
    repo.write("app/kustomization.yaml", "resources:\n- ../base\n");
    repo.write(".kustomize-localize", "exclude: [base]\n");
    repo.commit("Begin");
    assert_eq!(found(&repo, &[]), ["stale-allow .kustomize-localize:1"]);
    check(&repo, &[])
        .success()
        .stdout_has("`exclude: base` has no effect on `base`: app/kustomization.yaml:2 references it");
    // It keeps something out.
    repo.write("base/none/kustomization.yaml", "resources: [gone.yaml]\n");
    repo.commit("more");
    assert_eq!(found(&repo, &[]), [""; 0]);
    repo.git(&["rm", "-r", "-q", "base/none"]);
    // Objects in it are not looked at.
    repo.write("base/map.yaml", app("x", FLEET, "apps/a"));
    repo.commit("an object");
    assert_eq!(found(&repo, &[]), [""; 0]);
    // What is deployed is checked all the same.
    repo.write("base/map.yaml", config("base"));
    repo.write("app/kustomization.yaml", "resources: []\n");
    repo.write("argo/web.yaml", app("web", FLEET, "base"));
    repo.commit("deployed");
    check(&repo, &[])
        .success()
        .stdout_has("`exclude: base` has no effect on `base`: Argo CD Application web (argo/web.yaml:1) deploys it");
    repo.write(".kustomize-localize", "");
    repo.commit("as the hint says");
    assert_eq!(found(&repo, &[]), [""; 0]);
}
