//! What an Application of Argo CD changes in a kustomization, held against `kustomize edit`, which Argo CD runs.

use std::fs;
use std::path::Path;

use expect_test::expect;

use crate::support::{Kustomize, Repo, Sandbox};

fn fleet(sandbox: &Sandbox) -> Repo {
    let work = sandbox.repo("fleet");
    work.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    work
}

fn application(name: &str, path: &str, kustomize: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {{name: {name}, namespace: argocd}}
spec:
  project: prod
  destination: {{namespace: there}}
  source: {{repoURL: 'https://github.com/acme/fleet', targetRevision: main, path: {path}, kustomize: {{{kustomize}}}}}
"
    )
}

/// Returns what kustomize builds of a copy of a directory after these edits.
fn edited(kustomize: &Kustomize, sandbox: &Sandbox, work: &Repo, directory: &str, edits: &[Vec<&str>]) -> String {
    let (from, copy) = (work.path().join(directory), sandbox.path("edited"));
    fs::remove_dir_all(&copy).ok();
    fs::create_dir_all(&copy).unwrap();
    for entry in fs::read_dir(from).unwrap().flatten() {
        fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
    }
    for edit in edits {
        kustomize.run(sandbox, &copy, &[&["edit"], &**edit].concat()).success();
    }
    kustomize.build(sandbox, Path::new("/"), copy.to_str().unwrap()).success().stdout.clone()
}

#[test]
fn images_are_what_kustomize_edit_makes_of_them() {
    let sandbox = &Sandbox::new();
    let Some(kustomize) = sandbox.builds() else { return };
    let work = &fleet(sandbox);
    // Each with a name of its own, so that one build holds all: `%` stands for it.
    let [s, t] = ["1", "2"].map(|digit| format!("sha256:{}", digit.repeat(64)));
    let had = [
        "".to_owned(),
        "{name: %, newTag: '9'}".to_owned(),
        format!("{{name: %, digest: '{t}'}}"),
        "{name: %, newName: foo, newTag: '9'}".to_owned(),
        format!("{{name: %, newName: foo, digest: '{t}'}}"),
        "{name: foo-%, newTag: '3'}, {name: %, newName: foo-%}".to_owned(),
        "{name: %, newTag: '8'}, {name: %, newTag: '9'}".to_owned(),
        "{name: %, tagSuffix: -x}".to_owned(),
    ];
    let wanted =
        ["%:2", "%@S", "%:2@S", "%=bar", "%=bar:2", "%=bar@S", "%=bar:2@S", "%=r.io:5000/bar", "%=r.io:5000/x/%:2"];
    let wanted = wanted.iter().chain(&["r.io:5000/x/%:2", "r.io:5000/x/%=z:1", "%=*:2", "%=*@S"]);
    let wanted: Vec<String> = wanted.map(|text| text.replace('S', &s)).collect();
    let named = |text: &str, at: usize| text.replace('%', &format!("n{at}"));
    let (mut pod, mut count) = ("apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers:\n".to_owned(), 0);
    for at in 0..wanted.len() {
        for image in ["%", "%:1", &format!("%@{s}"), "r.io:5000/x/%:1", "foo-%:1"] {
            pod += &format!("  - {{name: c{count}, image: '{}'}}\n", named(image, at));
            count += 1;
        }
    }
    let images: Vec<String> = wanted.iter().enumerate().map(|(at, text)| named(text, at)).collect();
    let said = serde_json::to_string(&images).unwrap();
    for (number, had) in had.iter().enumerate() {
        let directory = format!("had{number}");
        let entries: Vec<String> = (0..wanted.len()).map(|at| named(had, at)).filter(|one| !one.is_empty()).collect();
        let kustomization = format!("resources: [p.yaml]\nimages: [{}]\n", entries.join(", "));
        work.write(&format!("{directory}/kustomization.yaml"), kustomization);
        work.write(&format!("{directory}/p.yaml"), &pod);
        work.write(&format!("argo/{number}.yaml"), application(&directory, &directory, &format!("images: {said}")));
    }
    work.commit("images");
    for (number, kustomization) in had.iter().enumerate() {
        let directory = format!("had{number}");
        let edit = ["set", "image"].into_iter().chain(images.iter().map(String::as_str)).collect();
        let expected = edited(&kustomize, sandbox, work, &directory, &[edit]);
        let built = work.run_unchanged(&["build", &format!("argocd/{directory}")]);
        assert_eq!(built.success().stdout, expected, "{kustomization}");
    }
}

#[test]
fn each_override_is_an_edit_in_the_order_of_argo_cd() {
    let sandbox = &Sandbox::new();
    let Some(kustomize) = sandbox.builds() else { return };
    let work = &fleet(sandbox);
    let web = "apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: a, image: nginx}]}
";
    let tls = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nnameSuffix: -tls\n";
    work.commit_files(&[
        ("web/d.yaml", web),
        (
            "web/kustomization.yaml",
            "resources: [d.yaml]\nnamePrefix: old-\ncommonLabels: {team: a}\ncomponents: [../tls]\n",
        ),
        ("tls/kustomization.yaml", tls),
    ]);
    let all = "namePrefix: p-, nameSuffix: -s, namespace: ns, replicas: [{name: web, count: '3'}], forceCommonLabels: true, \
               images: ['nginx=r.io/${ARGOCD_APP_NAME}:$ARGOCD_APP_SOURCE_TARGET_REVISION'], \
               commonLabels: {team: b, of: '${ARGOCD_APP_PROJECT_NAME}', none: a$b}, components: [../tls], \
               commonAnnotations: {to: '$ARGOCD_APP_NAMESPACE', at: '$$'}, commonAnnotationsEnvsubst: true";
    work.write("argo/a.yaml", application("all", "web", all));
    work.commit("an application");
    let edits: [Vec<&str>; 7] = [
        vec!["set", "nameprefix", "--", "p-"],
        vec!["set", "namesuffix", "--", "-s"],
        vec!["set", "image", "nginx=r.io/all:main"],
        vec!["set", "replicas", "web=3"],
        vec!["add", "label", "--force", "none:a", "of:prod", "team:b"],
        vec!["add", "annotation", "at:$", "to:there"],
        vec!["set", "namespace", "--", "ns"],
    ];
    let copy = sandbox.path("tls");
    fs::create_dir_all(&copy).unwrap();
    fs::write(copy.join("kustomization.yaml"), tls).unwrap();
    let expected = edited(&kustomize, sandbox, work, "web", &edits);
    assert_eq!(work.run_unchanged(&["build", "argocd/all"]).success().stdout, expected);
    // What Argo CD cannot edit it does not deploy.
    let fails = |kustomize: &str, command: &str| {
        work.write("argo/a.yaml", application("all", "web", kustomize));
        let shown = work.run(&["build", "argocd/all"]).fails(2).shown();
        assert!(shown.starts_with(&format!("error: `kustomize edit {command}` fails: ")), "{shown}");
    };
    fails("images: [nginx]", "set image nginx");
    fails("commonLabels: {team: b}", "add label team:b");
    fails("replicas: [{name: web, count: many}]", "set replicas web=many");
    work.run(&["check", "--build"]).success().says(expect![[r#"
        warning[not-built]: not built: `kustomize edit set replicas web=many` fails: invalid format of replica, use the following format: <name>=<count>
         --> web/kustomization.yaml
         = note: deployed by Argo CD Application all (argo/a.yaml:1)
         = help: fix it, or, if it is not built by itself, list its directory below `exclude:` in .kustomize-localize

        for more: git kustomize-localize explain not-built
        checked 2 kustomizations with 2 references in the working tree, 1 build (kustomize/…, network closed): no problems found; 1 not built
    "#]]);
    // Only the cluster knows it, or another program.
    work.write("argo/a.yaml", application("all", "web", "images: ['nginx:$ARGOCD_APP_REVISION_SHORT']"));
    work.run(&["build", "argocd/all"]).fails(2).says(expect![[r#"
        error: Argo CD Application all (argo/a.yaml:1) cannot be built here: `ARGOCD_APP_REVISION_SHORT` is only known to Argo CD
    "#]]);
    work.run(&["check", "--build", "-v"]).success().says(expect![[r#"
        unknown: Argo CD Application all (argo/a.yaml:1): `ARGOCD_APP_REVISION_SHORT` is only known to Argo CD
        checked 2 kustomizations with 2 references in the working tree, 1 build (kustomize/…, network closed): no problems found; 1 build unknown
    "#]]);
    let version = r#"{"clientVersion": {"gitVersion": "v1.34.1"}, "kustomizeVersion": "v5.7.1"}"#;
    sandbox.script("kubectl", &format!("echo '{version}'"));
    sandbox.unset("KUSTOMIZE");
    sandbox.set("PATH", format!("{}:/usr/bin:/bin", sandbox.path("bin").display()));
    work.write("argo/a.yaml", application("all", "web", "namespace: x"));
    work.run(&["build", "argocd/all"]).fails(2).says(expect![[r#"
        error: Argo CD runs `kustomize edit` first, which kubectl does not have
          hint: install kustomize, or name it in the environment variable KUSTOMIZE
    "#]]);
}
