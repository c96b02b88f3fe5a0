//! When a lock already fits the tree, so that locking fetches nothing.

use std::rc::Rc;

use super::up_to_date;
use crate::graph::testing::tree;
use crate::record::LOCK_NAME;
use crate::workspace::Workspace;

const LOCK: &str = "version: 1
remotes:
- url: https://h/o/a
  ref: v1
  commit: 0123456789abcdef0123456789abcdef01234567
  paths-of: 0123456789ab
  paths: {.: {}}
";

/// The upstreams in the lock of a tree with these resources. `None` if something must be fetched.
fn locked(resources: &str, lock: &str) -> Option<Vec<String>> {
    let tree = tree(&[("kustomization.yaml", &format!("resources: [{resources}]\n")), (LOCK_NAME, lock)]);
    let relocked = up_to_date(&Workspace::of_tree(Rc::new(tree)).unwrap()).unwrap();
    relocked.map(|relocked| relocked.lock.remotes.keys().map(ToString::to_string).collect())
}

#[test]
fn a_lock_with_every_reference_fits() {
    assert_eq!(locked("'https://h/o/a?ref=v1'", LOCK), Some(vec!["https://h/o/a?ref=v1".to_owned()]));
}

#[test]
fn an_entry_that_nothing_references_needs_no_fetch() {
    assert_eq!(locked("", LOCK), Some(vec![]));
}

#[test]
fn a_reference_that_the_lock_lacks_is_fetched() {
    assert_eq!(locked("'https://h/o/a?ref=v1', 'https://h/o/b?ref=v1'", LOCK), None);
}

#[test]
fn the_paths_of_a_commit_that_a_bot_wrote_are_fetched() {
    let edited = LOCK.replace("commit: 0", "commit: f");
    assert_eq!(locked("'https://h/o/a?ref=v1'", &edited), None);
}

#[test]
fn an_unsafe_reference_is_left_to_the_walk_that_fetches() {
    assert_eq!(locked("'https://h/o/a?ref=v1', 'ssh://-oProxyCommand=x/o/r'", LOCK), None);
}

#[test]
fn an_exception_leaves_no_chart_that_is_in_the_tree() {
    let digest = "0".repeat(64);
    let entry = format!("- {{url: 'https://c/s', chart: nginx, version: 1.2.3, sha256: '{digest}', size: 1}}\n");
    let tree = tree(&[
        ("kustomization.yaml", "helmCharts: [{name: nginx, repo: 'https://c/s', version: 1.2.3, releaseName: r}]\n"),
        ("charts/nginx-1.2.3/nginx/Chart.yaml", "name: nginx\nversion: 1.2.3\n"),
        (".kustomize-localize", "helm: true\nallow: [{chart: 'https://c/s#nginx@1.2.3', reason: ours}]\n"),
        (LOCK_NAME, &format!("version: 1\nremotes:\n{entry}")),
    ]);
    // Its entry says where the files came from, and nothing stays remote.
    let workspace = Workspace::of_tree(Rc::new(tree)).unwrap();
    let relocked = up_to_date(&workspace).unwrap().unwrap();
    assert_eq!(Some(&relocked.lock), workspace.lock.as_deref());
}
