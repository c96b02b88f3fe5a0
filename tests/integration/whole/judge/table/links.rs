//! Names of files that look like something else, and links.

use crate::whole::judge::variant::Variant;

/// Paths at which something is there, and which kustomize could take for URLs.
const PATHS: [&str; 20] = [
    "github.com/o/r",
    "github.com/o/r/d",
    "GitHub.com/o/r",
    "git@h.example:o/r",
    "git@h.example/o/r",
    "a@b/c/d",
    "app@v1/base/x",
    "user-1@x/y/z",
    "git::x/y/z",
    "git::a@b/c/d",
    "git::github.com/o/r",
    "https:/h.example/x",
    "https:h.example/o/r",
    "ssh:/h.example/o/r",
    "file:/tmp/x",
    "x.git/d",
    "github.com:o/r",
    "a@b:c/d",
    "_git/x",
    "a@_git/x",
];

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for path in PATHS {
        for field in ["resources", "components", "generators"] {
            let entry = format!("{field}: ['{path}']\n");
            let of = |way: &str| Variant::new("names", format!("{field} {way} {path}"), &entry);
            let kustomization = match field {
                "components" => "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n",
                _ => "",
            };
            let kustomization = format!("{kustomization}namePrefix: a-\n");
            all.push(of("directory").with(format!("{path}/kustomization.yaml"), kustomization));
            all.push(of("link").link(path, back(path, "cm.yaml")));
            all.push(of("broken link").link(path, "gone"));
            all.push(of("nothing at"));
            if field == "resources" {
                let resource = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n";
                all.push(of("file").with(path, resource));
            }
        }
    }
    all.extend([
        Variant::bare("names", "kustomization")
            .link("kustomization.yaml", "real.yaml")
            .with("real.yaml", "resources: ['https://h.example/x.yaml']\n"),
        Variant::bare("names", "kustomization in another directory")
            .link("kustomization.yaml", "sub/real.yaml")
            .with("sub/real.yaml", "resources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "base", "resources: [base]\n")
            .link("base", "real")
            .with("real/kustomization.yaml", "resources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "plugin", "transformers: [p.yaml]\n")
            .link("p.yaml", "sub/p.yaml")
            .with("sub/p.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\npath: https://h.example/x\n"),
        Variant::bare("names", "yml")
            .with("kustomization.yml", "resources: ['https://h.example/x.yaml']\n"),
        Variant::bare("names", "Kustomization")
            .with("Kustomization", "resources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "two", "resources: [cm.yaml]\n")
            .with("Kustomization", "resources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "hidden", "resources: [.base]\n")
            .with(".base/kustomization.yaml", "resources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "node_modules", "resources: [node_modules/x]\n")
            .with("node_modules/x/kustomization.yaml", "resources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "a file that is a kustomization", "resources: [base.yaml]\n")
            .with("base.yaml", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nmetadata: {name: a}\nresources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "odd directory", "resources: ['a b=c?d#e']\n")
            .with("a b=c?d#e/kustomization.yaml", "resources: ['https://h.example/x.yaml']\n"),
        Variant::new("names", "through a link and up", "resources: [in/../other]\n")
            .link("in", "deep/er")
            .with("deep/er/cm.yaml", "")
            .with("deep/other/kustomization.yaml", "resources: ['https://h.example/x.yaml']\n")
            .with("other/kustomization.yaml", "namePrefix: a-\n"),
        Variant::new("names", "copy", "resources: [localized-files/x]\n")
            .with("localized-files/x/kustomization.yaml", "resources: ['https://h.example/x.yaml']\n"),
    ]);
    all
}

/// Returns how a link at `path` names what stands beside the kustomization.
fn back(path: &str, target: &str) -> String {
    let depth = path.matches('/').count();
    "../".repeat(depth) + target
}
