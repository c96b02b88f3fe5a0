//! A repository to check: many applications, each with a base and overlays.

use std::fmt::Write as _;

use crate::repository::Repository;

/// The kustomizations of one application.
const ROOTS: [&str; 5] = ["base", "overlays/dev", "overlays/test", "overlays/prod", "parts/tls"];
/// What each of them references.
pub(crate) const REFERENCES: usize = 5;
/// How many files there are for each kustomization, itself included.
pub(crate) const FILES: usize = 10;

/// Makes a repository with this many kustomizations (a multiple of 5), of which Flux deploys `targets` (at most one
/// of each application).
pub(crate) fn repository(kustomizations: usize, targets: usize) -> Repository {
    let all = (0..kustomizations / ROOTS.len()).flat_map(|application| {
        ROOTS.into_iter().flat_map(move |root| {
            let directory = format!("teams/{:02}/app-{application}/{root}", application % 50);
            let own = files(application, root).into_iter();
            own.map(move |(name, text)| (format!("{directory}/{name}"), text))
        })
    });
    let repository = Repository::of(all.chain((0..targets).map(target)));
    repository.git(&["remote", "add", "origin", "https://github.com/acme/fleet"]);
    repository
}

/// Returns the file with the objects that deploy an application.
fn target(application: usize) -> (String, String) {
    let text = format!(
        "apiVersion: source.toolkit.fluxcd.io/v1\nkind: GitRepository\nmetadata: {{name: fleet-{application}}}\nspec: {{url: 'https://github.com/acme/fleet'}}\n---\napiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {{name: app-{application}}}\nspec:\n  path: ./teams/{:02}/app-{application}/overlays/prod\n  sourceRef: {{kind: GitRepository, name: fleet-{application}}}\n",
        application % 50
    );
    (format!("clusters/prod/app-{application}.yaml"), text)
}

/// Returns the files of one root with their names.
fn files(application: usize, root: &str) -> Vec<(String, String)> {
    let name = root.replace('/', "-");
    let mut text = String::from(match root {
        "parts/tls" => "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
        _ => "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\n",
    });
    let mut own = REFERENCES;
    text.push_str("\n# What is deployed.\nresources:\n");
    if let Some(stage) = root.strip_prefix("overlays/") {
        text.push_str("  - ../../base\n");
        own -= 2;
        for file in 0..own - 1 {
            writeln!(text, "  - resource-{file}.yaml").unwrap();
        }
        text.push_str("components:\n  - ../../parts/tls\n");
        writeln!(text, "namespace: app-{application}-{stage}").unwrap();
        writeln!(text, "images:\n  - name: registry.example.com/app-{application}\n    newTag: 1.4.{application}")
            .unwrap();
        writeln!(text, "replicas:\n  - name: app-{application}\n    count: 3").unwrap();
    } else {
        for file in 0..own - 1 {
            writeln!(text, "  - resource-{file}.yaml").unwrap();
        }
        writeln!(
            text,
            "labels:\n  - pairs:\n      app.kubernetes.io/name: app-{application}\n    includeSelectors: true"
        )
        .unwrap();
    }
    writeln!(
        text,
        "configMapGenerator:\n  - name: settings # one for each stage\n    files:\n      - config.txt=resource-{}.yaml\n    literals:\n      - STAGE={name}",
        own - 1
    )
    .unwrap();
    let mut files = vec![("kustomization.yaml".to_owned(), text)];
    for file in 0..FILES - 1 {
        files.push((
            format!("resource-{file}.yaml"),
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: app-{application}-{name}-{file}\ndata:\n  key: value {application}\n  other: |\n    several lines of {file}\n    and more\n"
            ),
        ));
    }
    files
}
