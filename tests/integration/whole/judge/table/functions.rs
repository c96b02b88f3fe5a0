//! Functions: what they run, and the ways to say so.

use super::{indented, listed, quoted};
use crate::whole::judge::variant::Variant;

/// What stands in the annotation. `PINNED` is an image that is named by its digest.
const SPECS: [&str; 75] = [
    "container: {image: x}",
    "container: {image: 'x:v1'}",
    "container: {image: 'x@sha256:abc'}",
    "container: {image: PINNED}",
    "container: {image: PINNED, network: true}",
    "container: {image: PINNED, network: True}",
    "container: {image: PINNED, network: TRUE}",
    "container: {image: PINNED, network: yes}",
    "container: {image: PINNED, network: Yes}",
    "container: {image: PINNED, network: y}",
    "container: {image: PINNED, network: on}",
    "container: {image: PINNED, network: ON}",
    "container: {image: PINNED, network: !!bool yes}",
    "container: {image: PINNED, network: 'true'}",
    "container: {image: PINNED, network: 1}",
    "container: {image: PINNED, network: false}",
    "container: {image: PINNED, network: no}",
    "container: {image: PINNED, Network: true}",
    "container: {image: PINNED, networK: true}",
    "container: {image: PINNED, networ\u{212a}: true}",
    "container: {image: PINNED, network: false, NETWORK: true}",
    "container: {image: PINNED, NETWORK: true, network: false}",
    "container: {image: PINNED, Network: false, network: true}",
    "container: {image: PINNED}\nContainer: {network: true}",
    "Container: {network: true}\ncontainer: {image: PINNED}",
    "Container: {image: x}",
    "CONTAINER: {IMAGE: x}",
    "container: {Image: x}",
    "container: {image: PINNED, Image: x}",
    "container: {Image: PINNED, image: x}",
    "container: {image: x, Image: PINNED}",
    "container: {image: PINNED}\nContainer: {image: x}",
    "Container: {image: PINNED}\ncontainer: {image: x}",
    "container: {image: x}\ncontainer: {image: PINNED}",
    "container: {image: PINNED}\ncontainer: {image: x}",
    "container: {<<: {image: x}}",
    "<<: {container: {image: x}}",
    "container: {<<: {network: true}, image: PINNED}",
    "container: {image: !!binary eA==}",
    "\"container\": {\"\\x69mage\": x}",
    "? container\n: {? image : x}",
    "{\"container\": {\"image\": \"x\"}}",
    "%YAML 1.1\n---\ncontainer: {image: x}",
    "--- {container: {image: x}}\n--- {}",
    "--- {}\n--- {container: {image: x}}",
    "container: {image: 5}",
    "container: {image: '-x'}",
    "container: {image: '-PINNED'}",
    "container: {image: '--privileged@sha256:DIGEST'}",
    "container: {image: ' PINNED'}",
    "container: {image: '@sha256:DIGEST'}",
    "container: {image: PINNED, mounts: [{type: bind, src: cm.yaml, dst: /x}]}",
    "container: {image: PINNED, mounts: [{type: bind, src: cm.yaml, dst: /x, rw: true}]}",
    "container: {image: PINNED, mounts: [{type: bind, src: 'cm.yaml,source=/etc', dst: /x}]}",
    "container: {image: PINNED, mounts: [{type: 'bind,source=/etc', src: cm.yaml, dst: /x}]}",
    "container: {image: PINNED, mounts: [{type: bind, src: cm.yaml, dst: '/x,source=/etc'}]}",
    "container: {image: PINNED, mounts: [{type: bind, src: cm.yaml, dst: '/x,readonly=false'}]}",
    "container: {image: PINNED, mounts: [{type: volume, src: v, dst: /x}]}",
    "container: {image: PINNED, mounts: [{type: Bind, src: v, dst: /x}]}",
    "container: {image: PINNED, mounts: [{type: '', src: v, dst: /x}]}",
    "container: {image: PINNED, mounts: [{src: cm.yaml, dst: /x}]}",
    "container: {image: PINNED, mounts: [{type: tmpfs, dst: /x}]}",
    "container: {image: PINNED, mounts: [{type: npipe, src: a, dst: /x}]}",
    "container: {image: PINNED, envs: [A, B=c]}",
    "exec: {path: git}",
    "Exec: {Path: git}",
    "exec: {path: curl, args: ['https://h.example/']}",
    "exec: {path: sh, args: [-c, 'curl https://h.example/']}",
    "exec: {path: ./fn.sh}\ncontainer: {image: x}",
    "container: {image: x}\nexec: {path: ./fn.sh}",
    "exec: {path: ./fn.sh}\nContainer: {image: PINNED, network: yes}",
    "exec: {path: ./fn.sh}\nExec: {path: git}",
    "Exec: {path: ./fn.sh}\nexec: {path: git}",
    "exec: {path: git}\ndeferFailure: true",
    "exec: {path: ' git'}",
];

/// These are tried in every place.
const COMMON: [&str; 4] = [
    "container: {image: x}",
    "container: {image: PINNED, network: yes}",
    "exec: {path: ./fn.sh}\ncontainer: {image: x}",
    "exec: {path: git}",
];

/// What else can stand in the metadata of an object. `SPEC` is the text of a specification, `FLOW` the mapping.
const METADATA: [&str; 24] = [
    "annotations: {config.kubernetes.io/function: SPEC}",
    "annotations: {config.k8s.io/function: SPEC}",
    "configFn: {FLOW}",
    "annotations: {config.kubernetes.io/function: '', config.k8s.io/function: SPEC}",
    "annotations: {config.kubernetes.io/function: ' ', config.k8s.io/function: SPEC}",
    "annotations: {config.kubernetes.io/function: , config.k8s.io/function: SPEC}",
    "annotations: {config.kubernetes.io/function: 'exec: {path: ./fn.sh}', config.k8s.io/function: SPEC}",
    "annotations: {config.k8s.io/function: 'exec: {path: ./fn.sh}', config.kubernetes.io/function: SPEC}",
    "annotations: {config.kubernetes.io/function: '', config.k8s.io/function: ''}\n  configFn: {FLOW}",
    "annotations: {}\n  configFn: {FLOW}",
    "annotations: {config.kubernetes.io/container: 'x:v1'}",
    "annotations: {config.kubernetes.io/function: '', config.kubernetes.io/container: 'x:v1'}",
    "Annotations: {config.kubernetes.io/function: SPEC}",
    "<<: {annotations: {config.kubernetes.io/function: SPEC}}",
    "annotations: {<<: {config.kubernetes.io/function: SPEC}}",
    "labels: {a: &a SPEC}\n  annotations: {config.kubernetes.io/function: *a}",
    "annotations: {!!binary Y29uZmlnLmt1YmVybmV0ZXMuaW8vZnVuY3Rpb24=: SPEC}",
    "!!binary YW5ub3RhdGlvbnM=: {config.kubernetes.io/function: SPEC}",
    "annotations: {config.kubernetes.io/function: !!binary Y29udGFpbmVyOiB7aW1hZ2U6ICJ4OnYxIn0=}",
    "annotations: {? config.kubernetes.io/function : SPEC}",
    "annotations: {config.kubernetes.io/function: '', config.kubernetes.io/function: SPEC}",
    "labels: {&k config.kubernetes.io/function : x}\n  annotations: {*k : SPEC}",
    "annotations: {\"config.kubernetes.io\\/function\": SPEC}",
    "annotations: {\"config.kubernetes.io\\x2ffunction\": SPEC}",
];

const PROGRAM: &str = "#!/bin/sh\nexec /bin/cat\n";

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    let usual = METADATA[0];
    for spec in SPECS {
        all.push(function(spec, "file", "generators", &object(usual, spec, "Gen")));
    }
    for spec in COMMON {
        for metadata in METADATA {
            let object = object(metadata, spec, "Gen");
            all.push(function(&format!("{metadata}: {spec}"), "file", "transformers", &object));
        }
        for list in ["generators", "transformers", "validators"] {
            for place in ["literal", "directory", "list", "second", "component"] {
                let object = object(usual, spec, "Gen");
                all.push(function(spec, place, list, &object));
            }
        }
        for (api_version, kind) in [
            ("v1", "ConfigMap"),
            ("builtins", "PrefixTransformer"),
            ("x/builtin", "PrefixTransformer"),
            ("builtin/", "PrefixTransformer"),
            ("/builtin", "Gen"),
            ("builtin", "Gen"),
            ("kustomize.config.k8s.io/v1beta1", "Kustomization"),
        ] {
            let object = object(usual, spec, kind).replace("a/v1", api_version);
            let name = format!("{api_version} {kind}: {spec}");
            all.push(function(&name, "file", "transformers", &object));
        }
    }
    all
}

/// Returns an object that is a function.
fn object(metadata: &str, spec: &str, kind: &str) -> String {
    let pinned = format!("x@sha256:{}", "0123456789abcdef".repeat(4));
    let spec = spec
        .replace("-PINNED", &format!("-{pinned}"))
        .replace("PINNED", &format!("\"{pinned}\""))
        .replace("'\"", "'")
        .replace("\"'", "'")
        .replace("' \"", "' ")
        .replace("DIGEST", &"0123456789abcdef".repeat(4));
    let flow = spec.replace('\n', ", ");
    let metadata = metadata.replace("SPEC", &quoted(&spec)).replace("FLOW", &flow);
    format!("apiVersion: a/v1\nkind: {kind}\nmetadata:\n  name: a\n  {metadata}\n")
}

/// Returns a root in which an object is listed.
fn function(name: &str, place: &str, list: &str, object: &str) -> Variant {
    let prefix = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: a-\n";
    let stream = match place {
        "list" => format!("apiVersion: v1\nkind: List\nitems:\n-\n{}", indented(object, 2)),
        "second" => format!("{prefix}---\n{object}"),
        _ => object.to_owned(),
    };
    listed("functions", name, list, place, &stream).program("fn.sh", PROGRAM)
}
