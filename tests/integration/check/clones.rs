//! Each clone says the same of a commit, whatever its remotes are.

use super::found;
use crate::support::{Sandbox, config};

const FLEET: &str = "https://github.com/acme/fleet";

#[test]
fn only_the_branch_that_is_checked_is_this_revision() {
    let sandbox = Sandbox::new();
    let repo = sandbox.repo("work");
    repo.write(".kustomize-localize", format!("repository: [{{url: '{FLEET}'}}]\n"));
    repo.write("argo/a.yaml", format!("apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: a}}\nspec: {{source: {{repoURL: '{FLEET}', path: gone, targetRevision: main}}}}\n"));
    repo.commit("deployed from main");
    let missing = ["!missing-target argo/a.yaml:4"];
    assert_eq!(found(&repo, &[]), missing);
    // A branch of it: that may be deployed from main once it is merged.
    repo.git(&["switch", "-q", "-c", "topic"]);
    assert_eq!(found(&repo, &[]), missing);
    repo.git(&["branch", "-q", "-D", "main"]);
    assert_eq!(found(&repo, &[]), crate::support::NONE);
    // A job knows no branch at all.
    repo.git(&["switch", "-q", "--detach"]);
    repo.git(&["branch", "-q", "-D", "topic"]);
    assert_eq!(found(&repo, &[]), missing);
    repo.git(&["update-ref", "refs/remotes/origin/trunk", "HEAD"]);
    repo.git(&["symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/trunk"]);
    assert_eq!(found(&repo, &[]), crate::support::NONE);
}

#[test]
fn the_remotes_of_a_clone_decide_nothing() {
    // Where nothing but a remote tells that it is this repository, nothing is missing.
    for (apps, expected) in [(&["a", "b"][..], &["!missing-target argo/typo.yaml:4"][..]), (&[], &[])] {
        let sandbox = Sandbox::new();
        let repo = sandbox.repo("work");
        for (name, path) in apps.iter().map(|app| (*app, *app)).chain([("typo", "aa")]) {
            let app = format!(
                "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\nspec: {{source: {{repoURL: '{FLEET}', path: apps/{path}}}}}\n"
            );
            repo.write(&format!("argo/{name}.yaml"), app);
        }
        for app in ["a", "b"] {
            repo.write(&format!("apps/{app}/kustomization.yaml"), "resources: [map.yaml]\n");
            repo.write(&format!("apps/{app}/map.yaml"), config(app));
        }
        repo.commit("a typing error");
        assert_eq!(found(&repo, &[]), expected);
        let remotes: [&[&str]; 5] = [
            &[],
            &[FLEET],
            &["git@github.com:someone/fork.git"],
            &["https://mirror.example.com/acme/fleet.git"],
            &["https://github.com/other/apps", FLEET],
        ];
        let config = repo.read(".git/config");
        for urls in remotes {
            let remote = |(number, url)| format!("[remote \"r{number}\"]\n\turl = {url}\n");
            let added: String = urls.iter().enumerate().map(remote).collect();
            repo.write(".git/config", format!("{config}{added}"));
            assert_eq!(found(&repo, &["--rev", "HEAD"]), expected, "{urls:?}");
        }
    }
}
