//! Random kustomizations and plugin configurations: objects with references, written in all the ways that YAML has, and
//! in all places where kustomize reads them. Whatever a build asks for, the check must report.
//!
//! They are the same on every machine; `KUSTOMIZE_LOCALIZE_FUZZ=COUNT` or `FIRST+COUNT` sets which (default 600, at
//! night 20,000).

use std::env;
use std::ops::Range;

use serde_json::{Value, json};

use super::assert_no_holes;
use super::build::{Judge, TOGETHER, WAYS};
use super::variant::Variant;
use crate::support::{Kustomize, Random, full};
use crate::whole::yaml::{Writer, Yaml, extend, nested, plugin};

/// What a build asks for, or what looks like it.
const URLS: [&str; 10] = [
    "https://h.example/x.yaml",
    "http://{loopback}/x",
    "https://h.example/o/r//d?ref=v1",
    "https://h.example/?a: b",
    "https://h.example/{kind: List}",
    "github.com/o/r",
    "github.com/o/r/x.yaml",
    "git@h.example:o/r.git/x.yaml",
    "ssh://git@h.example/o/r",
    "{\"kind\":\"FooList\"}",
];

/// Fields of plugins that name a file or root, with the list that takes the configuration.
const PLUGINS: [(&str, &str); 9] = [
    ("generators", "ConfigMapGenerator.files[]"),
    ("generators", "SecretGenerator.envs[]"),
    ("generators", "HelmChartInflationGenerator.valuesFile"),
    ("transformers", "PatchTransformer.path"),
    ("transformers", "PatchJson6902Transformer.path"),
    ("transformers", "PatchStrategicMergeTransformer.paths[]"),
    ("transformers", "ReplacementTransformer.replacements[].path"),
    ("transformers", "ValueAddTransformer.targetFilePath"),
    ("validators", "PatchTransformer.path"),
];

/// Fields of a kustomization.
const FIELDS: [&str; 12] = [
    "resources[]",
    "components[]",
    "bases[]",
    "crds[]",
    "configurations[]",
    "generators[]",
    "transformers[]",
    "patchesStrategicMerge[]",
    "patches[].path",
    "replacements[].path",
    "configMapGenerator[].files[]",
    "openapi.path",
];

/// What functions run.
const SPECS: [&str; 2] = ["exec.path", "container.image"];

/// What may break a text anywhere.
const PIECES: [&str; 24] = [
    "\n", "\r", "\t", " ", "- ", ": ", "[", "{", "}", "\"", "'", "\\", " #", "*a", "<<: ", "? ", "! ", "|\n", "---\n",
    "...\n", "\u{85}", "\u{a0}", "\u{2028}", "\u{feff}",
];

fn numbers() -> Range<usize> {
    let asked = env::var("KUSTOMIZE_LOCALIZE_FUZZ").unwrap_or_else(|_| if full() { "20000" } else { "600" }.to_owned());
    let (first, count) = asked.split_once('+').unwrap_or(("0", &asked));
    let first: usize = first.parse().unwrap();
    first..first + count.parse::<usize>().unwrap()
}

fn written(random: &mut Random, value: &Value) -> String {
    Writer::new(random).write(&Yaml::from(value))
}

/// Returns a plugin configuration that names `url`, and the list that takes it.
fn configuration(random: &mut Random, url: &str) -> (&'static str, Value) {
    if random.below(3) == 0 {
        let runs = random.one_of(&SPECS);
        let spec = written(random, &nested(runs, url, "", ""));
        let names = ["config.kubernetes.io/function", "config.k8s.io/function"];
        let annotations = json!({random.one_of(&names): spec});
        let lists = ["generators", "transformers", "validators"];
        let object = json!({
            "apiVersion": "a/v1",
            "kind": "A",
            "metadata": {"name": "a", "annotations": annotations},
        });
        return (random.one_of(&lists), object);
    }
    let (list, field) = PLUGINS[random.below(PLUGINS.len())];
    let (kind, _) = field.split_once('.').unwrap();
    (list, plugin(kind, "a", nested(field, url, "cm", "a")))
}

/// Returns objects as kustomize may split, unwrap and merge them.
fn stream(random: &mut Random, object: Value) -> String {
    let prefix = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: a-\n";
    let object = match random.below(12) {
        0 => {
            let kinds = ["List", "FooList", "ResourceList", "ConfigMapList"];
            json!({"apiVersion": "v1", "kind": random.one_of(&kinds), "items": [object]})
        }
        _ => object,
    };
    let written = written(random, &object);
    let separators = [
        "---\n",
        "--- # x\n",
        "---\t\n",
        "---# x\n",
        "--- x\n",
        "---x: y\n",
        "...\n---\n",
        "...\n",
        " ---\n",
        "---\r\n",
        "--- !x\n",
        "--- ",
    ];
    match random.below(6) {
        0 => [prefix, random.one_of(&separators), &written].concat(),
        1 => [written.as_str(), random.one_of(&separators), prefix].concat(),
        2 => [random.one_of(&separators), &written].concat(),
        _ => written,
    }
}

/// Breaks one text of thirty somewhere.
fn broken(random: &mut Random, text: String) -> String {
    if random.below(30) > 0 {
        return text;
    }
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let Some(at) = (!places.is_empty()).then(|| places[random.below(places.len())]) else {
        return text;
    };
    [&text[..at], random.one_of(&PIECES), &text[at..]].concat()
}

/// Returns variant `number`.
fn variant(number: usize) -> Variant {
    let random = &mut Random::of(&format!("structured {number}"));
    let url = random.one_of(&URLS);
    let named = |kustomization: String| Variant::new("fuzz", number.to_string(), kustomization);
    let variant = if random.below(3) == 0 {
        let mut kustomization = json!({"resources": ["cm.yaml"]});
        let field = random.one_of(&FIELDS);
        extend(&mut kustomization, nested(field, url, "cm", "a"));
        let written = written(random, &kustomization);
        named(broken(random, written))
    } else {
        let (list, object) = configuration(random, url);
        let stream = stream(random, object);
        let stream = broken(random, stream);
        let of = |entry: &str| json!({"resources": ["cm.yaml"], list: [entry]});
        let plain = |entry: &str| Writer::plain().write(&Yaml::from(&of(entry)));
        match random.below(4) {
            0 => named(plain("p.yaml")).with("p.yaml", &stream),
            1 => named(plain("p")).with("p/kustomization.yaml", "resources: [p.yaml]\n").with("p/p.yaml", &stream),
            2 => {
                let written = written(random, &of(&stream));
                named(broken(random, written))
            }
            _ => named(plain(&stream)),
        }
    };
    match random.below(4) {
        // What lies at the path of a URL hides nothing.
        0 if !url.starts_with("http") => variant.with(url, "kind: X\n"),
        1 if !url.starts_with("http") => variant.with(format!("{url}/kustomization.yaml"), "namePrefix: a-\n"),
        _ => variant,
    }
}

#[test]
fn nothing_random_slips_past_the_gate() {
    let Some(kustomize) = Kustomize::find() else { return };
    let variants: Vec<Variant> = numbers().map(variant).collect();
    let mut judge = Judge::new(&kustomize);
    (judge.refused, judge.together) = (20, 10 * TOGETHER);
    // With everything allowed, and in no other way.
    judge.ways = &WAYS[4..];
    let verdicts = judge.judge(&variants, "");
    let passing = verdicts.iter().filter(|verdict| verdict.passes()).count();
    let built: Vec<_> = verdicts.iter().filter(|verdict| verdict.is_built).collect();
    let reaching = built.iter().filter(|verdict| !verdict.reached.is_empty()).count();
    println!("{passing} of {} pass the check; {reaching} of {} that were built reach out", verdicts.len(), built.len());
    assert_no_holes(&verdicts);
    // What asks for nothing anyway proves nothing.
    let refused = built.iter().filter(|verdict| !verdict.passes()).count();
    assert!(reaching * 10 > refused, "{reaching} of {refused}");
}
