//! Which versions of the engines run, as the manifests that install them say.

use std::collections::BTreeSet;

use serde::Serialize;

use super::scan::{Spec, models};
use super::{EngineName, Targets};
use crate::config::Config;
use crate::kustomization::{Scalar, Value, documents, read_object};
use crate::message::failure::Result;
use crate::os::limits::FILE;
use crate::tree::{Tree, path};

/// How the names of the files end that bootstrapping and installing write.
const NAMES: &[&str] = &["gotk-components.yaml", "install.yaml"];

/// An engine that a manifest installs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Installed {
    pub engine: EngineName,
    /// Its version as written, or that of the component that builds.
    pub version: String,
    pub file: String,
    /// The line on which the manifest begins.
    pub line: usize,
}

impl Installed {
    pub(crate) fn name(&self) -> String {
        format!("{} {}", self.engine.name(), self.version)
    }
}

/// Finds the engines that manifests of the tree install, because some rules depend on their versions: in files with the
/// usual names, and in those with objects of engines.
pub(crate) fn installed(tree: &dyn Tree, config: &Config, targets: &Targets) -> Result<Vec<Installed>> {
    let marks: Vec<&'static str> = EngineName::ALL.iter().flat_map(|engine| engine.installers()).copied().collect();
    let bytes: Vec<&'static [u8]> = marks.iter().map(|mark| mark.as_bytes()).collect();
    // Whoever writes objects of an engine often installs it from the same file.
    let named = tree.files_with(NAMES, &bytes)?()?;
    let named = named.into_iter().filter(|file| !config.leaves_out(path::parent(file)));
    let files: BTreeSet<String> = named.chain(targets.files.keys().cloned()).collect();
    let mut all = Vec::new();
    for file in files {
        // A file that cannot be read has no version.
        let bytes = tree.read(&file).unwrap_or_default();
        let text = str::from_utf8(&bytes).ok().filter(|text| text.len() <= FILE.most).unwrap_or_default();
        for document in documents(text) {
            if !marks.iter().any(|mark| document.text.contains(mark)) {
                continue;
            }
            let Ok(Some(object)) = read_object(document) else { continue };
            // A template or a variable is not a version.
            let known = installed_version(&object).filter(|(_, version)| !version.contains(['{', '$']));
            all.extend(known.map(|(engine, version)| Installed {
                engine,
                version,
                file: file.clone(),
                line: object.start.line,
            }));
        }
    }
    Ok(all)
}

/// Which engine an object installs, and its version.
fn installed_version(object: &Value) -> Option<(EngineName, String)> {
    let workload: Workload = object.read().ok()?;
    EngineName::ALL.into_iter().find_map(|engine| Some((engine, engine.installed(object, &workload)?)))
}

models! {
    /// An object that may run an engine.
    Workload {
        kind: String,
        metadata: Metadata,
        spec: WorkloadSpec,
    }

    Metadata {
        name: Scalar,
        labels: Labels,
    }

    Labels {
        #[serde(rename = "app.kubernetes.io/version")]
        version: Scalar,
    }

    WorkloadSpec {
        template: Spec<Pod>,
    }

    Pod {
        containers: Vec<Container>,
    }

    Container {
        image: String,
        args: Vec<Scalar>,
    }
}

impl Workload {
    pub(super) fn is_deployment(&self) -> bool {
        self.kind == "Deployment"
    }

    /// The version that its label says.
    pub(super) fn version(&self) -> Option<String> {
        Some(self.metadata.labels.version.0.clone()).filter(|version| !version.is_empty())
    }

    /// The arguments of its programs.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        let containers = self.spec.template.spec.containers.iter();
        containers.flat_map(|container| &container.args).map(|argument| argument.0.as_str())
    }

    /// The tag of the image of that name.
    pub(super) fn tag(&self, name: &str) -> Option<String> {
        self.spec.template.spec.containers.iter().find_map(|container| {
            let image = container.image.split('@').next()?.rsplit('/').next()?;
            Some(image.strip_prefix(name)?.strip_prefix(':')?.to_owned())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::testing::tree;

    const FLUX: &str = "kustomize-controller";
    const ARGO: &str = "argocd-repo-server";

    /// A workload as those who install an engine have it.
    fn workload(name: &str, labels: &str, image: &str) -> String {
        format!(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: {name}\n  labels: {{{labels}}}\nspec: {{template: {{spec: {{containers: [{{name: side, image: 'other:v9'}}, {{name: main, image: {image}}}]}}}}}}\n"
        )
    }

    #[test]
    fn an_engine_has_the_version_that_its_manifest_says() {
        let flux = |labels, tag| workload(FLUX, labels, &format!("'ghcr.io/fluxcd/{FLUX}{tag}'"));
        let argo = |name, tag| {
            workload(
                name,
                "app.kubernetes.io/component: repo-server",
                &format!("'example.com:5000/argoproj/argocd{tag}'"),
            )
        };
        let other =
            workload("source-controller", "app.kubernetes.io/version: v9.9.9", "'ghcr.io/fluxcd/source-controller:v9'");
        let instance = "apiVersion: fluxcd.controlplane.io/v1\nkind: FluxInstance\nmetadata: {name: flux}\nspec: {distribution: {version: 2.6.x}}\n";
        let labelled = flux("app.kubernetes.io/part-of: flux, app.kubernetes.io/version: v2.6.4", ":v1.6.1");
        let files = [
            ("a/gotk-components.yaml", format!("---\n# Flux Version: v0.0.1\n{other}---\n{labelled}")),
            ("b/gotk-components.yaml", labelled.clone()),
            ("c/gotk-components.yaml", flux("", ":v1.6.1@sha256:0000")),
            ("d/flux.yaml", instance.to_owned()),
            ("e/install.yaml", argo(ARGO, ":v3.1.0")),
            ("f/install.yaml", argo("cd-argocd-repo-server", ":v3.1.0")),
            // Without a version, or with a text that is not one.
            ("n/digest-install.yaml", argo(ARGO, "@sha256:0000")),
            ("n/server-install.yaml", argo("argocd-server", ":v1")),
            ("n/named-install.yaml", workload(ARGO, "", "'example.com/not-argocd:v1'")),
            ("n/template-install.yaml", argo(ARGO, ":{{ .Values.tag }}")),
            ("n/substituted-install.yaml", flux("app.kubernetes.io/version: '${VERSION}'", ":v1")),
            ("n/broken-install.yaml", format!("{labelled}}}")),
            (
                "n/odd-install.yaml",
                "kind: Deployment\nmetadata: [kustomize-controller]\nspec: {template: x}\n".to_owned(),
            ),
            ("n/other-install.yaml", labelled.replace("Deployment", "Widget")),
            ("excluded/install.yaml", labelled.clone()),
        ];
        let tree = tree(&files.each_ref().map(|(path, text)| (*path, text.as_str())));
        let config = Config::parse(b"exclude: [excluded]\n", ".kustomize-localize").unwrap();
        let identity = || Ok(super::super::Identity::new([], &config, []));
        let targets = super::super::find(&tree, &config, &identity).unwrap();
        let all = installed(&tree, &config, targets.as_written()).unwrap();
        let all: Vec<String> =
            all.iter().map(|installed| format!("{}:{} {}", installed.file, installed.line, installed.name())).collect();
        assert_eq!(
            all,
            [
                "a/gotk-components.yaml:10 Flux v2.6.4",
                "b/gotk-components.yaml:1 Flux v2.6.4",
                "c/gotk-components.yaml:1 Flux kustomize-controller v1.6.1",
                "d/flux.yaml:1 Flux 2.6.x",
                "e/install.yaml:1 Argo CD v3.1.0",
                "f/install.yaml:1 Argo CD v3.1.0",
            ]
        );
    }
}
