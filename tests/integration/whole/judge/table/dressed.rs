//! Kustomizations that look like something else: an object of Flux, whose kind has the same name, or an inline
//! configuration that is a URL, too.

use super::super::variant::Variant;
use super::quoted;

const URLS: [&str; 4] =
    ["https://h.example/x.yaml", "http://h.example/x.yaml", "https://h.example/o/r?ref=v1", "git@h.example:o/r"];

/// What stands beside the head of an object of Flux, and makes kustomize read it.
const BESIDE: [&str; 6] = [
    "apiversion: kustomize.config.k8s.io/v1beta1\nresources: [URL]\n",
    "apiversion: kustomize.config.k8s.io/v1beta1\nRESOURCES: [URL]\n",
    "apiversion: kustomize.config.k8s.io/v1beta1\nbases: [URL]\n",
    "apiversion: kustomize.config.k8s.io/v1beta1\n<<: {resources: [URL]}\n",
    "apiversion: kustomize.config.k8s.io/v1beta1\nmetadata: {name: a}\ncomponents: [URL]\n",
    "apiversion: ''\ngenerators: [URL]\n",
];

/// Texts that kustomize takes for a repository or a file before it reads them.
const TEXTS: [&str; 4] =
    ["git@h.example:o/r?x", "https://h.example/x.yaml?a", "ssh://h.example/o/r?x", "http://h.example/x"];

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for beside in BESIDE {
        for url in URLS {
            let beside = beside.replace("URL", &format!("'{url}'"));
            let text = format!("apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n{beside}");
            all.push(Variant::new("dressed", beside, text));
        }
    }
    for list in ["generators", "transformers", "validators"] {
        for text in TEXTS {
            let object = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: a}\n";
            // One id twice: kustomize cannot read it as a configuration, and goes on.
            let inline = quoted(&format!("{text}: y\n{object}---\n{object}"));
            let kustomization = format!("resources: [cm.yaml]\n{list}: [{inline}]\n");
            all.push(Variant::new("dressed", format!("{list} {text}"), kustomization));
        }
    }
    all
}
