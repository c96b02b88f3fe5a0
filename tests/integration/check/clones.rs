//! Each clone says the same of a commit, whatever its remotes are.

use super::found;
use crate::support::{Sandbox, config};

const FLEET: &str = "https://github.com/acme/fleet";

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
