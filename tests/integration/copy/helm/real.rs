//! Charts with the real helm, 3 and 4: everything else here knows a fake.

use std::fs;

use expect_test::expect;
use git_kustomize_localize::seams::record::sha256_hex;
use serde_json::json;

use super::{REGISTRY, REPO, Stage, directory_of};
use crate::support::{Reply, Repo, tool};

/// Returns a stage with this helm and kustomize; `None` without one of them.
fn stage(helm: &str) -> Option<Stage> {
    let helm = tool(helm)?;
    let stage = Stage::new();
    stage.sandbox.builds()?;
    fs::remove_file(stage.sandbox.path("bin/helm")).unwrap();
    stage.sandbox.offer("helm", &helm);
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\ndata:\n  a: {{ quote .Values.a }}\n  \
                    bytes: {{ .Files.Get \"bytes.txt\" | quote }}\n";
    // What lies in a chart is no kustomization of the repository.
    let remote = "resources: [https://example.com/gone.yaml]\n";
    // A checkout would change its bytes, by its own attributes as well.
    let more_files =
        [("kustomization.yaml", remote), ("bytes.txt", BYTES), (".gitattributes", "*.txt text eol=lf ident\n")];
    for (name, more) in [("web", ""), ("old", "kubeVersion: '<1.2.0'\n")] {
        let chart = format!("apiVersion: v2\nname: {name}\nversion: 1.2.3\n{more}");
        let files = [("Chart.yaml", &*chart), ("values.yaml", "a: b\n"), ("templates/a.yaml", template)];
        for (path, text) in files.iter().chain(&more_files) {
            let place = stage.sandbox.path("made").join(name).join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        stage.pack(REPO, name, "1.2.3");
    }
    // One with a packed dependency, to which it gives values.
    let map =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Chart.Name }}}\ndata: {v: {{ quote .Values.v }}}\n";
    let chart = |name: &str, more: &str, values: &str| {
        let made = stage.sandbox.path("made").join(name);
        fs::create_dir_all(made.join("templates")).unwrap();
        let about = format!("apiVersion: v2\nname: {name}\nversion: 1.2.3\n{more}");
        for (path, text) in [("Chart.yaml", &*about), ("values.yaml", values), ("templates/a.yaml", map)] {
            fs::write(made.join(path), text).unwrap();
        }
        made
    };
    chart("sub", "", "v: 1\n");
    let sub = stage.pack("packed", "sub", "1.2.3");
    let needs =
        "dependencies: [{name: sub, version: 1.x, repository: 'https://charts.example/away', condition: sub.on}]\n";
    let parent = chart("parent", needs, "v: 0o10\nsub: {on: true, v: 0644}\n");
    fs::create_dir(parent.join("charts")).unwrap();
    fs::copy(sub, parent.join("charts/sub-1.2.3.tgz")).unwrap();
    register(&stage, &fs::read(stage.pack("packed", "parent", "1.2.3")).unwrap());
    Some(stage)
}

/// Serves an archive as a registry does.
fn register(stage: &Stage, archive: &[u8]) {
    let registry = REGISTRY.replace("oci://", "https://").replace("/charts", "/v2/charts/parent");
    let config = json!({"name": "parent", "version": "1.2.3", "apiVersion": "v2"}).to_string();
    let blob = |kind: &str, bytes: &[u8]| {
        let digest = format!("sha256:{}", sha256_hex(bytes));
        stage.server.route(&format!("{registry}/blobs/{digest}"), Reply::ok(bytes));
        json!({"mediaType": format!("application/vnd.cncf.helm.{kind}"), "digest": digest, "size": bytes.len()})
    };
    let kind = "application/vnd.oci.image.manifest.v1+json";
    let layers = [blob("chart.content.v1.tar+gzip", archive)];
    let config = blob("config.v1+json", config.as_bytes());
    let manifest = json!({"schemaVersion": 2, "mediaType": kind, "config": config, "layers": layers}).to_string();
    let digest = format!("sha256:{}", sha256_hex(manifest.as_bytes()));
    for name in ["1.2.3", &digest] {
        let reply = Reply::ok(&*manifest).header("Content-Type", kind).header("Docker-Content-Digest", &digest);
        stage.server.route(&format!("{registry}/manifests/{name}"), reply);
    }
}

const BYTES: &str = "one\r\n$Id$\n";

/// Commits a kustomization that inflates a chart, and another one of the registry, and locks them.
fn inflate(work: &Repo, name: &str, more: &str) {
    let chart =
        format!("{{name: {name}, repo: '{REPO}', version: 1.2.3, releaseName: one, valuesInline: {{a: 0644}}}}");
    work.write("app/kustomization.yaml", format!("helmCharts: [{chart}{more}]\n"));
    work.commit(name);
    work.run(&["lock"]).success();
    work.commit("lock");
}

#[test]
fn a_chart_is_rendered_alike_by_all() {
    for helm in ["helm-3", "helm-4"] {
        let Some(stage) = stage(helm) else { return };
        let stage = stage.with_helm();
        let archive =
            |name: &str| stage.sandbox.path("served").join(directory_of(REPO)).join(format!("{name}-1.2.3.tgz"));
        let work = &stage.work;
        work.write(".gitattributes", "* text=auto\n");
        inflate(work, "web", &format!(", {{name: parent, repo: '{REGISTRY}', version: 1.2.3}}"));
        let with_helm = "--build-arg=--enable-helm";
        let built = work.run(&["build", with_helm, "app"]);
        built.success().stdout_has("data:\n  a: \"420\"\n  bytes: \"one\\r\\n$Id$\\n\"\nkind: ConfigMap\n");
        let branch = work.run(&["branch", with_helm]);
        branch.success().stdout_has("verified: builds are identical");
        for data in [
            "  v: \"8\"\nkind: ConfigMap\nmetadata:\n  name: parent\n",
            "  v: \"420\"\nkind: ConfigMap\nmetadata:\n  name: sub\n",
        ] {
            built.stdout_has(data);
        }
        work.run(&["verify", "localized/main"]).success();
        // What the branch holds is taken from there, whatever the repository has now.
        fs::remove_dir_all(work.sandbox().path("cache")).unwrap();
        stage.pack(REPO, "old", "1.2.3");
        fs::rename(archive("old"), archive("web")).unwrap();
        register(&stage, b"something else");
        for offline in [&["--offline"][..], &[]] {
            let run = |args: &[&str]| work.run(&[args, &[with_helm], offline].concat());
            assert_eq!(run(&["build", "app"]).success().stdout, built.stdout);
            run(&["check", "--build"]).success().stdout_has("1 build ");
            work.git(&["commit", "--allow-empty", "-m", "more"]);
            run(&["branch"]).success();
        }
        stage.pack(REPO, "web", "1.2.3");
        register(&stage, &fs::read(stage.sandbox.path("served/packed/parent-1.2.3.tgz")).unwrap());
        work.run(&["vendor", with_helm]).success().stdout_has("verified: builds are identical");
        work.commit("vendored");
        for branch in ["main", "localized/main"] {
            let clone = work.sandbox().clone_with(work, &format!("clone-{branch}"), &["--branch", branch]);
            assert_eq!(stage.build(&clone.path().join("app")).unwrap().success().stdout, built.stdout);
        }
        work.run(&["check", "--build", with_helm]).success();
        assert_eq!(work.run(&["build", with_helm, "app"]).success().stdout, built.stdout);
        // What Argo CD gives to helm for a chart of the tree.
        work.git(&["remote", "add", "origin", "https://example.com/acme/fleet"]);
        let chart = "app/charts/web-1.2.3/web";
        let said = "helm: {releaseName: one, valuesObject: {a: 0o10}}, targetRevision: HEAD";
        let source = format!("{{repoURL: 'https://example.com/acme/fleet', path: {chart}, {said}}}");
        let kind = "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: web, namespace: argocd}\n";
        work.write("argo/web.yaml", format!("{kind}spec: {{project: default, source: {source}}}\n"));
        let helm = work.sandbox().path("bin/helm");
        let rendered_with = |option: &str, value: &str| {
            let mut template = work.sandbox().command(&helm, work.path());
            let output = template.args(["template", "one", chart, option, value]).output().unwrap();
            assert_eq!(work.run(&["build", "argocd/web"]).success().stdout, String::from_utf8(output.stdout).unwrap());
        };
        rendered_with("--set", "a=8");
        // Its image updater writes a file beside the chart, and parameters win over values.
        let parameters = "helm: {parameters: [{name: a, value: '0x1,$ARGOCD_APP_NAME', forcestring: true}]}\n";
        work.write(&format!("{chart}/.argocd-source-web.yaml"), parameters);
        rendered_with("--set-string", "a=0x1\\,web");
    }
}

#[test]
fn why_a_chart_is_not_rendered_is_said_by_all() {
    let Some(stage) = stage("helm-4") else { return };
    let stage = stage.with_helm();
    let work = &stage.work;
    inflate(work, "old", "");
    let with_helm = "--build-arg=--enable-helm";
    work.run(&["vendor", with_helm, "--dry-run"]).success().says(expect![[r#"
        would localize the working tree: 6 files written, 0 references rewritten, 0 removed
          not verified: 1 root not built (kustomize/…, network closed)
          not built: app: chart requires kubeVersion: <1.2.0 which is incompatible with Kubernetes v1.35.0
          file app/charts/old-1.2.3/.gitattributes (46)
          file app/charts/old-1.2.3/old/Chart.yaml (62)
          file app/charts/old-1.2.3/old/bytes.txt (10)
          file app/charts/old-1.2.3/old/kustomization.yaml (43)
          file app/charts/old-1.2.3/old/templates/a.yaml (148)
          file app/charts/old-1.2.3/old/values.yaml (5)
    "#]]);
    work.run(&["branch", with_helm, "--dry-run"]).success().says(expect![[r#"
        would localize the repository on branch localized/main: 7 files written, 0 references rewritten, 0 removed
          added https://charts.example/stable#old@1.2.3 <0>
          not verified: 1 root not built (kustomize/…, network closed)
          not built: app: chart requires kubeVersion: <1.2.0 which is incompatible with Kubernetes v1.35.0
          file app/charts/old-1.2.3/.gitattributes (46)
          file app/charts/old-1.2.3/old/Chart.yaml (62)
          file app/charts/old-1.2.3/old/bytes.txt (10)
          file app/charts/old-1.2.3/old/kustomization.yaml (43)
          file app/charts/old-1.2.3/old/templates/a.yaml (148)
          file app/charts/old-1.2.3/old/values.yaml (5)
          file kustomize-localize.lock (…)
    "#]]);
    work.run(&["check", "--build", with_helm]).success().says(expect![[r#"
        warning[not-built]: not built: chart requires kubeVersion: <1.2.0 which is incompatible with Kubernetes v1.35.0
         --> app/kustomization.yaml
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain not-built
        checked 1 kustomization with 1 reference in the working tree, 0 builds (kustomize/…, network closed): no problems found; 1 not built
    "#]]);
}
