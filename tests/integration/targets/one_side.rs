//! A build that makes objects of engines, and that only one side of a change has: nothing is added or removed by that.

use crate::support::{Repo, Sandbox, Transcript};

/// The set of two applications, as an overlay lists it.
const SET: &str = "apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web}
spec:
  generators: [{list: {elements: [{n: one}, {n: two}]}}]
  template:
    metadata: {name: 'web-{{n}}'}
    spec:
      project: default
      destination: {server: 'https://kubernetes.default.svc', namespace: x}
      source: {repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: web}
";

/// A claim that a removed target would delete.
const CLAIM: &str = "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
";

/// A patch of an object that is not there, which kustomize refuses.
const REFUSED: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: nobody}\n";

/// Returns a repository whose overlay does not build in its first commit, and does in its second; `None` without
/// kustomize.
fn mended(field: &str) -> Option<Repo> {
    let sandbox = Sandbox::new();
    sandbox.builds()?;
    let work = sandbox.repo("work");
    work.commit_files(&[
        (".kustomize-localize", "repository: [{url: 'https://github.com/acme/fleet'}]\n"),
        ("base/web.yaml", SET),
        ("base/kustomization.yaml", "resources: [web.yaml]\n"),
        ("prod/kustomization.yaml", &format!("{field}\nresources: [../base]\npatches: [{{path: patch.yaml}}]\n")),
        ("prod/patch.yaml", REFUSED),
        ("web/kustomization.yaml", "resources: [claim.yaml]\n"),
        ("web/claim.yaml", CLAIM),
    ]);
    let patch = "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: web, annotations: {a: b}}\n";
    work.commit_files(&[("prod/patch.yaml", patch)]);
    Some(work)
}

/// What `diff` says where an overlay with a field is mended, and where it is broken again; `None` without kustomize.
fn transcript(field: &str) -> Option<Transcript> {
    let (work, mut transcript) = (mended(field)?, Transcript::default());
    transcript.add(work.run(&["diff", "HEAD^", "--stat"]).success());
    work.git(&["revert", "--no-edit", "HEAD"]);
    transcript.add(work.run(&["diff", "HEAD^", "--stat"]).success());
    Some(transcript)
}

#[test]
fn what_a_renamed_set_makes_is_neither_added_nor_removed() {
    let Some(in_namespace) = transcript("namespace: argocd") else { return };
    for field in ["namePrefix: p-", "nameSuffix: -s"] {
        assert_eq!(transcript(field).as_ref(), Some(&in_namespace), "{field}");
    }
    in_namespace.says(expect![[r#"
        $ git kustomize-localize diff HEAD^ --stat
        prod: prod/patch.yaml
          not built (old side): no resource matches strategic merge patch "ConfigMap.v1.[noGrp]/nobody.[noNs]": no matches for Id ConfigMap.v1…o find unique target for patch ConfigMap.v1.[noGrp]/nobody.[noNs]
        1 affected build could not be compared since <0>; unknown: 1 root
        $ git kustomize-localize diff HEAD^ --stat
        prod: prod/patch.yaml
          not built (new side): no resource matches strategic merge patch "ConfigMap.v1.[noGrp]/nobody.[noNs]": no matches for Id ConfigMap.v1…o find unique target for patch ConfigMap.v1.[noGrp]/nobody.[noNs]
        Argo CD Application web-one (base/web.yaml:1), Argo CD Application web-two (base/web.yaml:1): compared as written: prod/kustomization.yaml may change it
          not built: prod/kustomization.yaml: no resource matches strategic merge patch "ConfigMap.v1.[noGrp]/nobody.[noNs]": no matches for …to find unique target for patch ConfigMap.v1.[noGrp]/nobody.[noNs]
        0 objects differ in 3 affected builds since <0>; unknown: 2 targets, 1 root
    "#]]);
}
