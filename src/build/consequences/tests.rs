use std::collections::BTreeSet;

use super::*;

/// A target that says `spec`, as an object of Flux, or of Argo CD where `spec` holds a source.
fn target(name: &str, spec: &str) -> Target {
    use crate::config::Config;
    use crate::targets::{Identity, find};
    use crate::tree::overlay::OverlayTree;
    let is_argo = ["source:", "sources:"].iter().any(|one| spec.contains(one));
    let flux = ("kustomize.toolkit.fluxcd.io/v1", "Kustomization");
    let (version, kind) = if is_argo { ("argoproj.io/v1alpha1", "Application") } else { flux };
    let source = if kind == "Application" { "" } else { ", sourceRef: {kind: GitRepository, name: x}" };
    let text = format!(
        "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: {name}, namespace: ns}}\nspec: {{{spec}{source}}}\n"
    );
    let mut tree = OverlayTree::default();
    tree.add_file("x.yaml", text.as_bytes());
    let config = Config::default();
    let identity = || Ok(Identity::new(["https://github.com/acme/x".to_owned()], &config, ["main".to_owned()]));
    find(&tree, &config, &identity).unwrap().as_written().targets[0].clone()
}

fn sides<T>(old: T, new: T) -> Sides<T> {
    Sides { old, new }
}

fn objects(old: &str, new: &str) -> Vec<ObjectChange> {
    in_namespaces(old, new, Sides::default())
}

fn in_namespaces(old: &str, new: &str, namespaces: Sides<&str>) -> Vec<ObjectChange> {
    compare::changes(Sides { old: old.as_bytes(), new: new.as_bytes() }, namespaces)
}

/// Returns the consequences of a change of what `by` deploys.
fn of(old: &str, new: &str, by: Sides<Option<&Target>>) -> Vec<String> {
    let namespaces = by.map(namespace);
    let objects = in_namespaces(old, new, namespaces.as_ref().map(String::as_str));
    let mut all = [BuildDiff { name: "T", target: by, objects, is_built: true, namespaces }];
    let found = consequences(&mut all, &Needs::new()).remove(0);
    found
        .into_iter()
        .map(|one| format!("{}: {}", one.id, one.text.split_once(" (").unwrap().1.strip_suffix(')').unwrap()))
        .collect()
}

const FLUX: &str = "kustomize.toolkit.fluxcd.io/v1 Kustomization";
const RELEASE: &str = "helm.toolkit.fluxcd.io/v2 HelmRelease";
const ARGO: &str = "argoproj.io/v1alpha1 Application";
const CRD: &str = "apiextensions.k8s.io/v1 CustomResourceDefinition";
const PVC: &str = "v1 PersistentVolumeClaim";
const SET: &str = "apps/v1 StatefulSet";
const DEPLOYMENT: &str = "apps/v1 Deployment";
const JOB: &str = "batch/v1 Job";
const ROLE: &str = "rbac.authorization.k8s.io/v1 ClusterRole";
const BINDING: &str = "rbac.authorization.k8s.io/v1 ClusterRoleBinding";
const UNKNOWN: &str = "deleted if the target prunes (unknown)";
const STAYS: &str = "orphaned: it opts out of pruning";
const CONFIRMED: &str = "deleted after confirmation";
const REFUSED: &str = "the API server refuses it";

/// The kind of an object, what it was and what it is below its name (`-`: it is not there), and the consequences.
fn cases() -> Vec<(&'static str, &'static str, &'static str, Vec<String>)> {
    let removed = |id: &str| vec![format!("{id}: {UNKNOWN}")];
    let refused = |field: &str| vec![format!("immutable-field: {field}: {REFUSED}")];
    let one = |text: &str| vec![text.to_owned()];
    let none = Vec::new;
    vec![
        (SET, "", "-", removed("removed-statefulset")),
        (PVC, "", "-", removed("removed-pvc")),
        ("v1 Namespace", "", "-", removed("removed-namespace")),
        (CRD, "", "-", removed("removed-crd")),
        (
            CRD,
            "spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: {a: {}, b: {items: {properties: {c: {}}}}}}}}}}, {name: v1beta1, served: true}, {name: v0, served: false}]}",
            "spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: {b: {items: {properties: {d: {}}}}}}}}}}, {name: v1beta1, served: false}]}",
            one("removed-field: `v1.spec.a`, `v1.spec.b[].c`, version v1beta1"),
        ),
        (
            CRD,
            "spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {properties: {a: {}}}}}}}]}",
            "spec: {versions: [{name: v1, served: true, schema: {openAPIV3Schema: {properties: {spec: {x-kubernetes-preserve-unknown-fields: true}, more: {}}}}}]}",
            none(),
        ),
        ("networking.k8s.io/v1 NetworkPolicy", "", "-", removed("removed-networkpolicy")),
        ("cilium.io/v2 CiliumClusterwideNetworkPolicy", "", "-", removed("removed-networkpolicy")),
        ("crd.projectcalico.org/v1 GlobalNetworkPolicy", "", "-", removed("removed-networkpolicy")),
        ("v1 ConfigMap", "", "-", none()),
        // Another group is another kind.
        ("example.com/v1 StatefulSet", "", "-", none()),
        (
            PVC,
            "spec: {resources: {requests: {storage: 1Ti}}}",
            "spec: {resources: {requests: {storage: 1000Gi}}}",
            one("smaller-pvc: 1Ti -> 1000Gi"),
        ),
        (
            PVC,
            "spec: {resources: {requests: {storage: 1Gi}}}",
            "spec: {resources: {requests: {storage: 1024Mi}}}",
            none(),
        ),
        (PVC, "spec: {resources: {requests: {storage: much}}}", "spec: {resources: {requests: {storage: 1}}}", none()),
        (
            PVC,
            "spec: {accessModes: [ReadWriteOnce]}",
            "spec: {accessModes: [ReadWriteMany]}",
            refused("spec.accessModes"),
        ),
        (PVC, "spec: {storageClassName: a}", "spec: {storageClassName: b}", refused("spec.storageClassName")),
        // What the cluster fills in.
        (PVC, "spec: {}", "spec: {storageClassName: b, volumeName: c, volumeMode: Filesystem}", none()),
        (PVC, "spec: {volumeMode: Block}", "spec: {}", refused("spec.volumeMode")),
        (PVC, "spec: {volumeAttributesClassName: a}", "spec: {volumeAttributesClassName: b}", none()),
        (
            DEPLOYMENT,
            "spec: {selector: {matchLabels: {app: a}}}",
            "spec: {selector: {matchLabels: {app: a, tier: b}}}",
            refused("spec.selector"),
        ),
        (
            DEPLOYMENT,
            "spec: {selector: {matchLabels: {a: b}}}",
            "spec: {selector: {matchLabels: {a: b}, matchExpressions: []}}",
            none(),
        ),
        (
            "apps/v1 DaemonSet",
            "spec: {selector: {matchLabels: {a: b}}}",
            "spec: {selector: {matchLabels: {a: c}}}",
            refused("spec.selector"),
        ),
        (
            "apps/v1 ReplicaSet",
            "spec: {selector: {matchLabels: {a: b}}}",
            "spec: {selector: {matchExpressions: [{key: a, operator: Exists}]}}",
            refused("spec.selector"),
        ),
        (SET, "spec: {serviceName: a}", "spec: {}", refused("spec.serviceName")),
        (
            SET,
            "spec: {podManagementPolicy: OrderedReady}",
            "spec: {replicas: 2, minReadySeconds: 3, ordinals: {start: 1}}",
            none(),
        ),
        (
            SET,
            "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {resources: {requests: {storage: 1Gi}}}}]}",
            "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {resources: {requests: {storage: 2Gi}}}}]}",
            refused("spec.volumeClaimTemplates"),
        ),
        (
            SET,
            "spec: {volumeClaimTemplates: [{metadata: {name: d}, spec: {accessModes: [x]}}]}",
            "spec: {volumeClaimTemplates: [{apiVersion: v1, metadata: {name: d}, spec: {volumeMode: Filesystem, accessModes: [x]}}]}",
            none(),
        ),
        (
            JOB,
            "spec: {template: {spec: {restartPolicy: Never}}}",
            "spec: {template: {spec: {restartPolicy: OnFailure}}}",
            refused("spec.template"),
        ),
        (
            JOB,
            "spec: {template: {spec: {}}}",
            "spec: {template: {spec: {volumes: [{name: a}]}}}",
            refused("spec.template"),
        ),
        (JOB, "spec: {backoffLimit: 1}", "spec: {backoffLimit: 2, selector: {matchLabels: {a: b}}}", none()),
        (
            JOB,
            "spec: {template: {spec: {restartPolicy: Never}}}",
            "  annotations: {kustomize.toolkit.fluxcd.io/force: enabled}\nspec: {template: {spec: {restartPolicy: OnFailure}}}",
            one("immutable-field: spec.template: deleted and recreated"),
        ),
        (
            BINDING,
            "roleRef: {kind: ClusterRole, name: a}",
            "roleRef: {apiGroup: x, kind: ClusterRole, name: b}",
            refused("roleRef"),
        ),
        ("v1 Service", "spec: {clusterIP: 10.0.0.1}", "spec: {clusterIP: None}", refused("spec.clusterIP")),
        ("v1 Service", "spec: {clusterIP: 10.0.0.1}", "spec: {type: ExternalName, clusterIP: None}", none()),
        ("v1 Service", "spec: {}", "spec: {clusterIP: None}", none()),
        (
            DEPLOYMENT,
            "spec: {template: {spec: {containers: [{name: b, securityContext: {privileged: true}}]}}}",
            "spec: {template: {spec: {initContainers: [{name: a, securityContext: {privileged: true}}], containers: [{name: b, securityContext: {privileged: true}}]}}}",
            one("privileged: `a`"),
        ),
        (
            "batch/v1 CronJob",
            "-",
            "spec: {jobTemplate: {spec: {template: {spec: {hostNetwork: true, hostPID: false, containers: [{name: b}], volumes: [{hostPath: {path: /var}}]}}}}}",
            vec!["host-path: `/var`".to_owned(), "host-namespace: `hostNetwork`".to_owned()],
        ),
        (
            BINDING,
            "-",
            "roleRef: {name: admin}\nsubjects: [{kind: User, name: me}]",
            one("cluster-role-binding: admin for User me"),
        ),
        (BINDING, "subjects: [{kind: User, name: me}]", "subjects: [{kind: User, name: you}]", none()),
        (
            ROLE,
            "rules: [{apiGroups: ['*'], verbs: [get], resources: [pods]}]",
            "rules: [{apiGroups: ['*'], verbs: [get], resources: [pods]}, {verbs: ['*'], resources: [pods]}, {verbs: [get], resources: [pods]}]",
            one("wildcard-role: verbs *; resources pods"),
        ),
        (DEPLOYMENT, "spec: {replicas: 2}", "spec: {replicas: 0}", one("no-replicas: `replicas: 0`")),
        ("argoproj.io/v1alpha1 Rollout", "spec: {}", "spec: {replicas: 0}", one("no-replicas: `replicas: 0`")),
        // Nothing ran.
        (SET, "-", "spec: {replicas: 0}", none()),
        (DEPLOYMENT, "spec: {replicas: 0}", "spec: {replicas: 0, x: y}", none()),
        (FLUX, "spec: {}", "spec: {suspend: true}", one("suspended: `suspend: true`")),
        (
            ARGO,
            "spec: {syncPolicy: {automated: {}}}",
            "spec: {syncPolicy: {automated: {enabled: false}}}",
            one("suspended: manual sync"),
        ),
        (RELEASE, "spec: {suspend: true}", "spec: {suspend: false}", one("resumed: no longer `suspend: true`")),
        (ARGO, "spec: {}", "spec: {syncPolicy: {automated: {prune: true}}}", one("resumed: no longer manual sync")),
        (
            RELEASE,
            "spec: {suspend: true, values: {a: 1}}",
            "spec: {suspend: true, values: {a: 2}}",
            one("below-suspended: it changes itself"),
        ),
        (FLUX, "spec: {prune: true}", "-", deleted()),
        (FLUX, "spec: {}", "-", stays()),
        (FLUX, "spec: {prune: true, suspend: true}", "-", stays()),
        (FLUX, "spec: {prune: true, deletionPolicy: Orphan}", "-", stays()),
        (FLUX, "spec: {deletionPolicy: WaitForTermination}", "-", deleted()),
        (RELEASE, "spec: {}", "-", deleted()),
        (ARGO, "spec: {syncPolicy: {automated: {prune: true}}}", "-", stays()),
        (ARGO, "  finalizers: [resources-finalizer.argocd.argoproj.io/background]", "-", deleted()),
        (
            "argoproj.io/v1alpha1 ApplicationSet",
            "spec: {}",
            "-",
            one("removed-target: its applications and their objects are deleted with it"),
        ),
        (
            "argoproj.io/v1alpha1 ApplicationSet",
            "spec: {syncPolicy: {preserveResourcesOnDeletion: true}}",
            "-",
            one("removed-target: its applications are deleted with it; their objects stay"),
        ),
        ("source.toolkit.fluxcd.io/v1 OCIRepository", "spec: {}", "-", none()),
        (FLUX, "spec: {prune: true}", "spec: {}", one("prune-switched: off: removed objects stay")),
        (
            ARGO,
            "spec: {syncPolicy: {automated: {}}}",
            "spec: {syncPolicy: {automated: {prune: true}}}",
            one("prune-switched: on: removed objects are deleted"),
        ),
        (FLUX, "spec: {}", "spec: {targetNamespace: b}", one("destination-moved: targetNamespace `b`")),
        (
            ARGO,
            "spec: {destination: {name: in-cluster, namespace: a}}",
            "spec: {destination: {server: 'https://kubernetes.default.svc', namespace: b}}",
            one("destination-moved: namespace `b`"),
        ),
        (
            DEPLOYMENT,
            POD,
            "spec: {template: {spec: {containers: [{name: c, image: 'r.io/x:v2'}]}}}",
            one("major-version: image r.io/x v1.2 -> v2"),
        ),
        (DEPLOYMENT, POD, "spec: {template: {spec: {containers: [{name: c, image: 'r.io/x:v1.9@sha256:0'}]}}}", none()),
        (DEPLOYMENT, POD, "spec: {template: {spec: {containers: [{name: c, image: 'r.io/x:20240101'}]}}}", none()),
        (
            DEPLOYMENT,
            POD,
            "spec: {template: {spec: {containers: [{name: c, image: 'other.io/y/x:3'}]}}}",
            one("major-version: image r.io/x:v1.2 -> other.io/y/x:3"),
        ),
        (DEPLOYMENT, POD, "spec: {template: {spec: {containers: [{name: c, image: 'r.io/z:3'}]}}}", none()),
        // In values of a chart, and in a custom resource.
        (
            RELEASE,
            "spec: {values: {app: {image: {repository: r.io/x, tag: v1.2@sha256:0}}, other: {image: {repository: r.io/x, tag: v2}}}}",
            "spec: {values: {app: {image: {repository: r.io/x, tag: v2.0@sha256:1}}, other: {image: {repository: r.io/x, tag: v2}}}}",
            one("major-version: image r.io/x v1.2 -> v2.0"),
        ),
        (
            "monitoring.coreos.com/v1 Prometheus",
            "spec: {image: 'r.io:5000/prom:v2.1', tag: v1}",
            "spec: {image: 'r.io:5000/prom:v3.0', tag: v2}",
            one("major-version: image r.io:5000/prom v2.1 -> v3.0"),
        ),
        (
            RELEASE,
            "spec: {values: {image: 'r.io:5000/x', tag: 1.0.0}}",
            "spec: {values: {image: 'r.io:6000/x'}}",
            none(),
        ),
        (RELEASE, "spec: {values: {image: {tag: 1.0.0}}}", "spec: {values: {image: {tag: 2.0.0}}}", none()),
        (RELEASE, "spec: {values: {tag: 1.0.0, repository: x}}", "spec: {values: {tag: 1.1.0, repository: x}}", none()),
        (
            RELEASE,
            "spec: {chart: {spec: {chart: a, version: '>=1.0.0 <2.0.0'}}}",
            "spec: {chart: {spec: {chart: a, version: ~2.1}}}",
            one("major-version: chart a >=1.0.0 <2.0.0 -> ~2.1"),
        ),
        (
            RELEASE,
            "spec: {chart: {spec: {chart: a, version: ^1.0.0}}}",
            "spec: {chart: {spec: {chart: a, version: '*'}}}",
            none(),
        ),
        (
            "source.toolkit.fluxcd.io/v1 OCIRepository",
            "spec: {url: 'oci://ghcr.io/o/charts/web', ref: {tag: 1.0.0}}",
            "spec: {url: 'oci://ghcr.io/o/charts/web', ref: {tag: 2.0.0}}",
            one("major-version: chart web 1.0.0 -> 2.0.0"),
        ),
        (
            RELEASE,
            "spec: {chart: {spec: {chart: a, version: 1.2.3}}}",
            "spec: {chart: {spec: {chart: a, version: 2.x}}}",
            one("major-version: chart a 1.2.3 -> 2.x"),
        ),
        (
            ARGO,
            "spec: {source: {chart: a, targetRevision: 1.0.0}}",
            "spec: {source: {chart: a, targetRevision: 3.0.0}}",
            one("major-version: chart a 1.0.0 -> 3.0.0"),
        ),
        (
            "v1 ConfigMap",
            "  labels: {helm.sh/chart: a-b-9.9.9-rc.1}",
            "  labels: {helm.sh/chart: a-b-10.0.0}",
            one("major-version: chart a-b 9.9.9-rc.1 -> 10.0.0"),
        ),
        // Of any other kind that is no chart.
        ("example.com/v1 X", "helm: {chart: x, version: 1.0.0}", "helm: {chart: x, version: 2.0.0}", none()),
    ]
}

fn deleted() -> Vec<String> {
    vec!["removed-target: its objects are deleted with it".to_owned()]
}

fn stays() -> Vec<String> {
    vec!["removed-target: its objects stay, and nothing updates them".to_owned()]
}

const POD: &str = "spec: {template: {spec: {containers: [{name: c, image: 'r.io/x:v1.2'}]}}}";

fn text(kind: &str, rest: &str) -> String {
    let (version, kind) = kind.split_once(' ').unwrap();
    match rest {
        "-" => String::new(),
        rest => format!("apiVersion: {version}\nkind: {kind}\nmetadata:\n  name: a\n  namespace: n\n{rest}\n"),
    }
}

#[test]
fn each_row_says_what_it_finds() {
    let mut seen = BTreeSet::from(["removed-dependency".to_owned(), "moved-object".to_owned()]);
    for (kind, old, new, expected) in cases() {
        let (old, new) = (text(kind, old), text(kind, new));
        let found = of(&old, &new, sides(None, None));
        assert_eq!(found, expected, "{old}{new}");
        // What was there before is nothing new, and what did not change is nothing.
        assert_eq!(of(&new, &new, sides(None, None)), [""; 0]);
        seen.extend(found.iter().map(|one| one.split(':').next().unwrap().to_owned()));
    }
    // Those that need more than one object have tests of their own below.
    let all: BTreeSet<String> = TABLE.iter().map(|row| row.id.to_owned()).collect();
    assert_eq!(seen, all);
    assert_eq!(all.len(), TABLE.len());
    assert!(TABLE.iter().all(|row| crate::message::finding::Rule::from_id(row.id).is_none()));
    // The page has a line for each, in this order.
    let listed = PAGE.lines().filter_map(|line| line.strip_prefix("- `")?.split_once("` ("));
    assert!(listed.map(|(id, _)| id).eq(TABLE.iter().map(|row| row.id)));
    assert!(TABLE.iter().all(|row| !row.described().1.is_empty()));
}

#[test]
fn what_is_removed_is_deleted_or_orphaned_as_the_target_says() {
    let claim = text(PVC, "");
    let kept = text(PVC, "  annotations: {kustomize.toolkit.fluxcd.io/prune: disabled}");
    let removed = |text: &str, by: Sides<Option<&Target>>| of(text, "", by).remove(0);
    let prunes = target("a", "path: ., prune: true");
    let keeps = target("a", "path: ., prune: false");
    let by_hand = target("a", "source: {repoURL: x, path: .}");
    let automated = target("a", "source: {repoURL: x, path: .}, syncPolicy: {automated: {prune: true}}");
    for (old, new, expected) in [
        (&prunes, &prunes, "deleted: the target prunes"),
        (&keeps, &keeps, "orphaned: the target does not prune"),
        (&by_hand, &by_hand, UNKNOWN),
        (&automated, &automated, "deleted: the target prunes"),
    ] {
        assert_eq!(removed(&claim, sides(Some(old), Some(new))), format!("removed-pvc: {expected}"));
    }
    assert_eq!(removed(&kept, sides(Some(&prunes), Some(&prunes))), "removed-pvc: orphaned: it opts out of pruning");
    // Helm leaves the definitions in `crds` of a chart, and nothing tells which these are.
    let mut release = target("a", "chart: {spec: {chart: x}}");
    let kustomization = "kustomize.toolkit.fluxcd.io/v1\",\"kind\":\"Kustomization";
    assert!(release.manifest.contains(kustomization), "{}", release.manifest);
    release.manifest =
        release.manifest.replace(kustomization, "helm.toolkit.fluxcd.io/v2\",\"kind\":\"HelmRelease").into();
    let definition = text("apiextensions.k8s.io/v1 CustomResourceDefinition", "");
    for new in [Some(&release), None] {
        let by = sides(Some(&release), new);
        assert_eq!(
            of(&definition, "", by).pop().unwrap(),
            "removed-crd: deleted, but orphaned if it is in `crds` of the chart"
        );
    }
    assert_eq!(removed(&claim, sides(Some(&release), Some(&release))), "removed-pvc: deleted: the target prunes");
    // What it says now counts.
    let both = of(&claim, "", sides(Some(&keeps), Some(&prunes)));
    let expected = ["prune-switched: on: removed objects are deleted", "removed-pvc: deleted: the target prunes"];
    assert_eq!(both, expected);
    for (target, goes, expected) in [
        (&prunes, deleted(), "removed-pvc: deleted with the target"),
        (&keeps, stays(), "removed-pvc: orphaned: the target leaves it"),
    ] {
        assert_eq!(of(&claim, "", sides(Some(target), None)), [&goes[0], expected]);
    }
    // Argo CD: what an object says of both, and what is confirmed.
    let finalized = |policy: &str| {
        let mut app = target("a", &format!("source: {{repoURL: x, path: .}}, syncPolicy: {{{policy}}}"));
        let mut said: serde_json::Value = serde_json::from_str(&app.manifest).unwrap();
        said["metadata"]["finalizers"] = serde_json::json!(["resources-finalizer.argocd.argoproj.io"]);
        app.manifest = said.to_string().into();
        app
    };
    let (app, by_hand) = (finalized("automated: {prune: true}"), finalized(""));
    let [app, by_hand] = [&app, &by_hand].map(Some);
    let crd = "apiextensions.k8s.io/v1 CustomResourceDefinition";
    for (kind, option, pruned, taken, unknown) in [
        (PVC, "", "deleted: the target prunes", "deleted with the target", UNKNOWN),
        (PVC, "Prune=false", STAYS, "deleted with the target", STAYS),
        (PVC, "Delete=false", "deleted: the target prunes", STAYS, UNKNOWN),
        (PVC, "Prune=confirm", CONFIRMED, "deleted with the target", CONFIRMED),
        (PVC, "Delete=confirm", "deleted: the target prunes", CONFIRMED, UNKNOWN),
        (crd, "", "deleted: the target prunes", "orphaned: the target leaves it", UNKNOWN),
    ] {
        let text = text(kind, &format!("  annotations: {{argocd.argoproj.io/sync-options: 'A=b, {option}'}}"));
        for (by, expected) in [(sides(app, app), pruned), (sides(app, None), taken), (sides(by_hand, by_hand), unknown)]
        {
            let found = of(&text, "", by).pop().unwrap();
            assert_eq!(found.split_once(": ").unwrap().1, expected, "{option}");
        }
    }
    // What makes objects anew.
    let forces = target("a", "path: ., force: true");
    let (old, new) = (text(SET, "spec: {serviceName: a}"), text(SET, "spec: {serviceName: b}"));
    let found = of(&old, &new, sides(Some(&forces), Some(&forces)));
    assert_eq!(found, ["immutable-field: spec.serviceName: deleted and recreated"]);
}

#[test]
fn what_deploys_it_is_looked_at_with_what_it_deploys() {
    let (old, new) = (text("v1 ConfigMap", "data: {a: b}"), text("v1 ConfigMap", "data: {a: c}"));
    let suspended = target("a", "path: ., suspend: true");
    let found = of(&old, &new, sides(Some(&suspended), Some(&suspended)));
    assert_eq!(found, ["below-suspended: 1 object changes"]);
    let runs = target("a", "path: .");
    assert_eq!(of(&old, &old, sides(Some(&suspended), Some(&suspended))), [""; 0]);
    assert_eq!(of(&old, &old, sides(Some(&suspended), Some(&runs))), ["resumed: no longer `suspend: true`"]);
    // It is an object among those that differ, unless another build shows it.
    let yaml =
        |target: &Target| serde_yaml::to_string(&serde_json::from_str::<Value>(&target.manifest).unwrap()).unwrap();
    let parent = objects(&yaml(&suspended), &yaml(&runs));
    let suffixed = [&suspended, &runs].map(|one| yaml(one).replace("name: a\n", "name: a-b\n"));
    let suffixed = objects(&suffixed[0], &suffixed[1]);
    let other = [&suspended, &runs].map(|one| yaml(one).replace("name: a\n", "name: b\n"));
    let other = objects(&other[0], &other[1]);
    for (parent, shown) in [(Vec::new(), [0, 1]), (parent, [1, 0]), (suffixed, [1, 0]), (other, [1, 1])] {
        let child = BuildDiff { name: "a", target: sides(Some(&suspended), Some(&runs)), ..BuildDiff::default() };
        let mut all =
            [BuildDiff { name: "parent", target: sides(None, None), objects: parent, ..BuildDiff::default() }, child];
        let found = consequences(&mut all, &Needs::new());
        assert_eq!(all.each_ref().map(|one| one.objects.len()), shown);
        assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), shown);
    }
}

#[test]
fn what_is_needed_or_comes_elsewhere_is_said() {
    let (infra, apps) =
        (target("infra", "path: ., prune: true"), target("apps", "path: ., dependsOn: [{name: infra}]"));
    let mut needed = Needs::new();
    add_needs(apps.manifest.as_bytes(), &mut needed);
    let set = text(SET, "");
    let found = |all: &mut [BuildDiff<'_>]| {
        let found = consequences(all, &needed).into_iter().flatten();
        found.map(|one| format!("{} {}", one.target, one.text)).collect::<Vec<_>>()
    };
    let gone = BuildDiff { name: "infra", target: sides(Some(&infra), None), ..BuildDiff::default() };
    let expected = [
        "infra a target is removed (its objects are deleted with it)",
        "infra something is removed that others depend on (needed by ns/apps)",
    ];
    assert_eq!(found(&mut [gone]), expected);
    let gone = BuildDiff {
        name: "infra",
        target: sides(Some(&infra), None),
        objects: objects(&set, ""),
        ..BuildDiff::default()
    };
    let comes = BuildDiff {
        name: "next",
        target: sides(None, Some(&apps)),
        objects: objects("", &set),
        ..BuildDiff::default()
    };
    let text = "deleted with the target, unless next takes it over";
    assert!(found(&mut [gone, comes]).contains(&format!("infra a StatefulSet is removed ({text})")));
    let leaves = BuildDiff {
        name: "infra",
        target: sides(Some(&infra), Some(&infra)),
        objects: objects(&set, ""),
        ..BuildDiff::default()
    };
    let comes = BuildDiff {
        name: "apps",
        target: sides(Some(&apps), Some(&apps)),
        objects: objects("", &set),
        ..BuildDiff::default()
    };
    let expected = [
        "infra a StatefulSet is removed (the target prunes, so it is deleted, unless apps takes it over)",
        "infra an object moves to another target (apps has it now)",
    ];
    assert_eq!(found(&mut [leaves, comes]), expected);
    // Of directories that no target deploys, it is not known whether that is the same cluster.
    let leaves =
        BuildDiff { name: "old", target: sides(None, None), objects: objects(&set, ""), ..BuildDiff::default() };
    let comes =
        BuildDiff { name: "new", target: sides(None, None), objects: objects("", &set), ..BuildDiff::default() };
    let expected = ["old a StatefulSet is removed (deleted if the target prunes (unknown); new has it now)"];
    assert_eq!(found(&mut [leaves, comes]), expected);
}

#[test]
fn each_object_that_names_a_chart_says_so_and_of_those_that_bear_its_label_one() {
    let all = |kind: &str, rest: &str, version: &str| {
        let rest = rest.replace("VERSION", version);
        ["a", "b"].map(|name| text(kind, &rest).replace("name: a\n", &format!("name: {name}\n"))).join("---\n")
    };
    for (kind, rest, count) in [
        (RELEASE, "spec: {chart: {spec: {chart: x, version: VERSION}}}", 2),
        (ARGO, "spec: {source: {chart: x, targetRevision: VERSION}}", 2),
        ("v1 ConfigMap", "  labels: {helm.sh/chart: x-VERSION}", 1),
    ] {
        let found = of(&all(kind, rest, "1.0.0"), &all(kind, rest, "2.0.0"), sides(None, None));
        assert_eq!(found, vec!["major-version: chart x 1.0.0 -> 2.0.0"; count], "{kind}");
    }
}

#[test]
fn what_built_the_target_tells_it_from_others_of_its_name() {
    let by = |name: &str| {
        let mut target = target("a", "path: .");
        target.object.built_by = Some(format!("{name}/kustomization.yaml"));
        target
    };
    let [here, there] = ["x", "y"].map(by);
    let objects = || objects(&text(PVC, ""), "");
    let build = |target| BuildDiff { name: "a", target, objects: objects(), ..BuildDiff::default() };
    let mut all =
        [build(sides(Some(&here), Some(&here))), build(sides(Some(&there), Some(&there))), build(sides(None, None))];
    let found: Vec<Consequence> = consequences(&mut all, &Needs::new()).concat();
    let by: Vec<_> = found.iter().map(|one| one.built_by.as_deref()).collect();
    assert_eq!(by, [Some("x/kustomization.yaml"), Some("y/kustomization.yaml"), None]);
}

/// Returns the first target of a file, by its name.
fn target_of(file: &str, text: &str) -> Target {
    use crate::targets::{Identity, find};
    let mut tree = crate::tree::overlay::OverlayTree::default();
    tree.add_file(file, text.as_bytes());
    tree.add_file("apps/web/kustomization.yaml", b"namePrefix: a-\n");
    let config = crate::config::Config::default();
    let identity = || Ok(Identity::new(["https://github.com/acme/x".to_owned()], &config, ["main".to_owned()]));
    find(&tree, &config, &identity).unwrap().as_written().targets[0].clone()
}

#[test]
fn what_a_set_makes_says_it_too() {
    let set = |namespace: &str, policy: &str| {
        let text = format!(
            "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {{name: s, namespace: argocd}}\nspec:\n  generators: [{{list: {{elements: [{{path: apps/web}}]}}}}]\n  template:\n    metadata: {{name: web}}\n    spec:\n      source: {{repoURL: 'https://github.com/acme/x', path: '{{{{path}}}}'}}\n      destination: {{name: in-cluster, namespace: {namespace}}}\n      syncPolicy: {{{policy}}}\n"
        );
        target_of("set.yaml", &text)
    };
    let [prunes, keeps] = ["automated: {prune: true}", "automated: {}"].map(|policy| set("a", policy));
    let found = of("", "", sides(Some(&prunes), Some(&keeps)));
    assert_eq!(found, ["prune-switched: off: removed objects stay"]);
    assert_eq!(of("", "", sides(Some(&keeps), Some(&set("a", "")))), ["suspended: manual sync"]);
    let moved = of("", "", sides(Some(&keeps), Some(&set("b", "automated: {}"))));
    assert_eq!(moved, ["destination-moved: namespace `b`"]);
    let removed = of(&text(PVC, ""), "", sides(Some(&prunes), Some(&prunes)));
    assert_eq!(removed, ["removed-pvc: deleted: the target prunes"]);
    // The set itself is shown, and what it makes says what that brings about.
    let set_of = |value: &str| {
        let text = text("argoproj.io/v1alpha1 ApplicationSet", &format!("spec: {{x: {value}}}"));
        text.replace("name: a", "name: s").replace("namespace: n", "namespace: argocd")
    };
    let changed = objects(&set_of("a"), &set_of("b"));
    let made = BuildDiff { name: "T", target: sides(Some(&prunes), Some(&keeps)), ..BuildDiff::default() };
    let mut all =
        [BuildDiff { name: "parent", target: sides(None, None), objects: changed, ..BuildDiff::default() }, made];
    let found = consequences(&mut all, &Needs::new());
    assert_eq!((found[1].len(), found[1][0].id, all[1].objects.len()), (1, "prune-switched", 0));
    // One element less.
    assert_eq!(of("", "", sides(Some(&prunes), None)), deleted());
    let preserved = set("a", "}\n  syncPolicy: {preserveResourcesOnDeletion: true");
    assert_eq!(of("", "", sides(Some(&preserved), None)), stays());
}

#[test]
fn what_says_no_namespace_lies_in_that_of_the_target() {
    let claim = |namespace: &str| text(PVC, "").replace("  namespace: n\n", namespace);
    let (silent, x, other) = (claim(""), claim("  namespace: x\n"), claim("  namespace: y\n"));
    let argo = |namespace: &str| {
        let policy = "source: {repoURL: x, path: .}, syncPolicy: {automated: {prune: true}}";
        target("a", &format!("{policy}, destination: {{namespace: {namespace}}}"))
    };
    let (flux, placed) = (target("a", "path: ., prune: true"), target("a", "path: ., prune: true, targetNamespace: x"));
    let default = claim("  namespace: default\n");
    for (by, namespaced) in [(&argo("x"), &x), (&flux, &default)] {
        let by = sides(Some(by), Some(by));
        for (old, new) in [(&silent, namespaced), (namespaced, &silent)] {
            assert_eq!(of(old, new, by), [""; 0], "{old}{new}");
        }
        assert_eq!(of(&silent, &other, by).len(), 1);
        assert_eq!(of(&other, &silent, by).len(), 1);
    }
    // Where it is not known, another name is another object.
    for by in [&argo("''"), &placed] {
        assert_eq!(of(&silent, &x, sides(Some(by), Some(by))), ["removed-pvc: deleted: the target prunes"]);
    }
    // It stays where it was, and the target goes elsewhere.
    let (was, is) = (argo("x"), argo("y"));
    let moved = "destination-moved: namespace `y`";
    assert_eq!(of(&silent, &x, sides(Some(&was), Some(&is))), [moved]);
    assert_eq!(of(&x, &silent, sides(Some(&was), Some(&is))), [moved, "removed-pvc: deleted: the target prunes"]);
    // A kind without namespaces is the same wherever the rest goes.
    let role = |verb: &str| {
        format!(
            "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {{name: a}}\nrules: [{{verbs: [{verb}]}}]\n"
        )
    };
    let found = in_namespaces(&role("get"), &role("list"), sides("x", "y"));
    assert_eq!(
        found.iter().map(|one| (one.change.name(), &*one.id)).collect::<Vec<_>>(),
        [("changed", "rbac.authorization.k8s.io/v1 ClusterRole a")]
    );
    // Another target has it.
    let at = |old: &str, new: &str| in_namespaces(old, new, sides("x", "x"));
    let namespaces = || sides("x", "x").map(str::to_owned);
    let leaves = BuildDiff {
        target: sides(Some(&was), Some(&was)),
        objects: at(&silent, ""),
        namespaces: namespaces(),
        ..BuildDiff::default()
    };
    let comes = BuildDiff {
        target: sides(Some(&flux), Some(&flux)),
        objects: at("", &x),
        namespaces: namespaces(),
        ..BuildDiff::default()
    };
    let found = consequences(&mut [leaves, comes], &Needs::new());
    assert_eq!(found[0].last().map(|one| one.id), Some("moved-object"));
}

#[test]
fn a_namespace_that_the_build_writes_moves_what_the_build_shows() {
    let in_namespace = |namespace: &str| text(PVC, "").replace("namespace: n", &format!("namespace: {namespace}"));
    let [plain, placed] = ["path: .", "path: ., targetNamespace: q"].map(|spec| target("a", spec));
    let (old, q) = (in_namespace("n"), in_namespace("q"));
    assert_eq!(of(&q, &q, sides(Some(&plain), Some(&placed))), [""; 0]);
    assert_eq!(of(&q, &q, sides(Some(&placed), Some(&plain))), [""; 0]);
    let more = text(PVC, "spec: {x: y}").replace("namespace: n", "namespace: q");
    assert_eq!(of(&q, &more, sides(Some(&plain), Some(&placed))), [""; 0]);
    let moved = of(&old, &q, sides(Some(&plain), Some(&placed)));
    let expected = ["destination-moved: targetNamespace `q`", "removed-pvc: orphaned: the target does not prune"];
    assert_eq!(moved, expected);
    // Another cluster is another place.
    let remote = target("a", "path: ., targetNamespace: q, kubeConfig: {secretRef: {name: k}}");
    let moved = of(&q, &q, sides(Some(&plain), Some(&remote)));
    assert_eq!(moved, ["destination-moved: kubeConfig.secretRef.name `k`"]);
    // What could not be built may move.
    let unknown = BuildDiff { name: "T", target: sides(Some(&plain), Some(&placed)), ..BuildDiff::default() };
    assert_eq!(consequences(&mut [unknown], &Needs::new())[0].len(), 1);
}

#[test]
fn no_secret_is_said() {
    let at =
        |server: &str| text(ARGO, &format!("spec: {{destination: {{server: 'https://me:{server}@h.example.com'}}}}"));
    let found = of(&at("hunter1"), &at("hunter2"), sides(None, None));
    assert_eq!(found, ["destination-moved: cluster `https://…h.example.com`"]);
}

#[test]
fn hostile_objects_bring_about_nothing_worse() {
    for rest in [
        "spec: [1]",
        "spec: {template: 3, replicas: -1}",
        "rules: {a: b}",
        "roleRef: [x]",
        "metadata: []",
        "spec: {containers: 5, volumes: x, selector: 1e999, clusterIP: {a: [b]}}",
    ] {
        for kind in [SET, PVC, JOB, ROLE, BINDING, FLUX, ARGO, RELEASE, "v1 Service", "v1 Pod"] {
            let (version, name) = kind.split_once(' ').unwrap();
            let text = format!("apiVersion: {version}\nkind: {name}\n{rest}\n");
            for (old, new) in [("", &*text), (&*text, ""), (&*text, &*text), (&*text, &*format!("{text}x: y\n"))] {
                of(old, new, sides(None, None));
            }
        }
    }
}
