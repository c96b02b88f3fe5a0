//! Objects that their readers may understand in different ways, URLs with something local of that name, and texts that
//! may be YAML or a path: in every place where kustomize reads them.

use super::{indented, listed, quoted};
use crate::whole::judge::variant::Variant;

const URL: &str = "https://h.example/x.yaml";

/// What stands in a plugin configuration besides its kind and name.
const ODD: [&str; 24] = [
    "path: URL\n",
    "path: !!str URL\n",
    "path: ! URL\n",
    "path: !x URL\n",
    "path: !<tag:yaml.org,2002:str> URL\n",
    "path: !!binary aHR0cHM6Ly9oLmV4YW1wbGUveC55YW1s\n",
    "!!str path: URL\n",
    "!!binary cGF0aA==: URL\n",
    "? path\n: URL\n",
    "? |-\n  path\n: URL\n",
    "x: &k path\n*k : URL\n",
    "<<: {path: URL}\n",
    "!!merge <<: {path: URL}\n",
    "? <<\n: {path: URL}\n",
    "<<: [{path: URL}, {path: cm.yaml}]\n",
    "<<: [{path: cm.yaml}, {path: URL}]\n",
    "path: cm.yaml\n<<: {path: URL}\n",
    "<<: {path: URL}\npath: cm.yaml\n",
    "x: &x {path: URL}\n<<: *x\n",
    "path: cm.yaml\npath: URL\n",
    "path: cm.yaml\nPath: URL\n",
    "Path: URL\npath: cm.yaml\n",
    "x: &a cm.yaml\ny: &a URL\npath: *a\n",
    "\"p\\x61th\": \"\\x68ttps://h.example/x.yaml\"\n",
];

/// What stands before an object, and what begins each of its lines.
const WRAPPED: [(&str, &str); 16] = [
    ("apiVersion: v1\nkind: List\nitems:\n-\n", "  "),
    ("apiVersion: v1\nkind: FooList\nitems:\n-\n", "  "),
    ("kind: ResourceList\nfunctionConfig: {a: b}\nitems:\n-\n", "  "),
    ("kind: List\nitems:\n- kind: List\n  items:\n  -\n", "    "),
    ("kind: List\nitems: {}\n---\n", ""),
    ("kind: FooList\nmetadata: {name: a}\n---\n", ""),
    ("kind: A\nmetadata: {name: b}\nitems:\n-\n", "  "),
    ("---\n", ""),
    ("--- # x\n", ""),
    ("--- !!map\n", ""),
    ("PREFIX---\n", ""),
    ("PREFIX--- # x\n", ""),
    ("PREFIX---# x\n", ""),
    ("PREFIX...\n---\n", ""),
    ("PREFIX...\n", ""),
    ("%YAML 1.1\n---\n", ""),
];

/// URLs that are paths too.
const NAMES: [&str; 7] = [
    "github.com/o/r",
    "github.com/o/r/x.yaml",
    "git@h.example:o/r",
    "u@h.example:a/b.git/x.yaml",
    "ssh://git@h.example/o/r",
    "git::https://h.example/o/r",
    "https://h.example/x.yaml",
];

/// Texts that kustomize tries as objects, and then as a URL.
const TEXTS: [&str; 10] = [
    "https://h.example/x: y",
    "https://h.example/?a:\tb",
    "https://h.example/{kind: List}",
    "https://h.example/[a]",
    "{https://h.example/x: y}",
    "[https://h.example/x]",
    "git@h.example:o/r: x",
    "github.com/o/r: x",
    "https://h.example/x\ny",
    "https://h.example/x\n",
];

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    let object = |rest: &str| {
        let head = "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\n";
        format!("{head}{}", rest.replace("URL", URL))
    };
    for rest in ODD {
        all.extend(everywhere(rest, &object(rest)));
        // Of this one, nothing is missing where no field is seen.
        let added = object(rest)
            .replace("PatchTransformer", "ValueAddTransformer")
            .replace("path", "targetFilePath")
            .replace("p\\x61th", "targetFil\\x65Path")
            .replace("Path:", "TargetFilePath:")
            .replace("targetFileTargetFilePath", "targetFilePath")
            .replace("cGF0aA==", "dGFyZ2V0RmlsZVBhdGg=");
        all.extend(everywhere(&format!("added {rest}"), &added));
    }
    let prefix = object("x: y\n").replace("PatchTransformer", "PrefixTransformer");
    for (before, pad) in WRAPPED {
        let inner = indented(&object("path: URL\n"), pad.len());
        let text = before.replace("PREFIX", &prefix) + &inner;
        all.extend(everywhere(before, &text));
    }
    for (list, field) in FIELDS {
        for name in NAMES {
            let root = |what: &str| {
                let text = field.replace("TEXT", &quoted(name));
                Variant::new("shadowed", format!("{list} {what} {name}"), text)
            };
            all.push(root("alone"));
            // A good object, which is there already.
            let resource = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: cm}\n";
            all.push(root("file").with(name, resource));
            let path = format!("{name}/kustomization.yaml");
            all.push(root("directory").with(path, "resources: []\n"));
        }
        for text in TEXTS {
            let kustomization = field.replace("TEXT", &quoted(text));
            let name = format!("{list} {text}");
            all.push(Variant::new("inline", name, kustomization));
        }
    }
    all
}

/// Where kustomize takes a file, a root or a text.
const FIELDS: [(&str, &str); 8] = [
    ("resources", "resources: [cm.yaml, TEXT]\n"),
    ("components", "resources: [cm.yaml]\ncomponents: [TEXT]\n"),
    ("bases", "resources: [cm.yaml]\nbases: [TEXT]\n"),
    ("generators", "resources: [cm.yaml]\ngenerators: [TEXT]\n"),
    ("transformers", "resources: [cm.yaml]\ntransformers: [TEXT]\n"),
    ("validators", "resources: [cm.yaml]\nvalidators: [TEXT]\n"),
    ("patchesStrategicMerge", "resources: [cm.yaml]\npatchesStrategicMerge: [TEXT]\n"),
    ("patches", "resources: [cm.yaml]\npatches: [{path: TEXT}]\n"),
];

/// Returns roots in which a stream of plugin configurations is read in each way.
fn everywhere(name: &str, stream: &str) -> Vec<Variant> {
    let mut all = Vec::new();
    for list in ["generators", "transformers", "validators"] {
        for place in ["file", "directory", "literal", "quoted"] {
            all.push(listed("odd", name, list, place, stream));
        }
    }
    let text = format!("resources: [cm.yaml]\npatchesStrategicMerge:\n- {}\n", quoted(stream));
    all.push(Variant::new("odd", format!("patch {name}"), text));
    all
}
