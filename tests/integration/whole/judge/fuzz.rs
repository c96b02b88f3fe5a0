//! Random kustomizations and plugin configurations: objects with references, written in all the ways that YAML has, and
//! in all places where kustomize reads them. Whatever a build asks for, the check must report.
//!
//! They are the same on every machine; `KUSTOMIZE_LOCALIZE_FUZZ=COUNT` or `FIRST+COUNT` sets which (default 2,000, at
//! night 20,000).

use std::env;
use std::ops::Range;

use super::build::Judge;
use super::holes;
use super::variant::Variant;
use crate::support::{Kustomize, Random, full};

mod write;

use write::{Writer, Yaml, list, map, text};

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

/// Plugins, and what of them names a file or root; `[]` is a list of such.
const PLUGINS: [(&str, &str, &str); 9] = [
    ("generators", "ConfigMapGenerator", "files[]"),
    ("generators", "SecretGenerator", "envs[]"),
    ("generators", "HelmChartInflationGenerator", "valuesFile"),
    ("transformers", "PatchTransformer", "path"),
    ("transformers", "PatchJson6902Transformer", "path"),
    ("transformers", "PatchStrategicMergeTransformer", "paths[]"),
    (
        "transformers",
        "ReplacementTransformer",
        "replacements[].path",
    ),
    ("transformers", "ValueAddTransformer", "targetFilePath"),
    ("validators", "PatchTransformer", "path"),
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
    "\n", "\r", "\t", " ", "- ", ": ", "[", "{", "}", "\"", "'", "\\", " #", "*a", "<<: ", "? ",
    "! ", "|\n", "---\n", "...\n", "\u{85}", "\u{a0}", "\u{2028}", "\u{feff}",
];

fn numbers() -> Range<usize> {
    let asked = env::var("KUSTOMIZE_LOCALIZE_FUZZ")
        .unwrap_or_else(|_| if full() { "20000" } else { "2000" }.to_owned());
    let (first, count) = asked.split_once('+').unwrap_or(("0", &asked));
    let first: usize = first.parse().unwrap();
    first..first + count.parse::<usize>().unwrap()
}

/// Returns a value with `url` at the place that a field names.
fn at(field: &str, url: &str) -> Yaml {
    let (first, rest) = field.split_once('.').unwrap_or((field, ""));
    let (name, is_list) = match first.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (first, false),
    };
    let mut value = if rest.is_empty() {
        text(url)
    } else {
        at(rest, url)
    };
    if is_list {
        value = list([value]);
    }
    map([(name, value)])
}

/// Returns a plugin configuration that names `url`, and the list that takes it.
fn plugin(random: &mut Random, url: &str) -> (&'static str, Yaml) {
    if random.below(3) == 0 {
        let runs = random.one_of(&SPECS);
        let spec = Writer::new(random).write(&at(runs, url));
        let names = ["config.kubernetes.io/function", "config.k8s.io/function"];
        let annotations = map([(random.one_of(&names), text(&spec))]);
        let metadata = map([("name", text("a")), ("annotations", annotations)]);
        let lists = ["generators", "transformers", "validators"];
        let object = [
            ("apiVersion", text("a/v1")),
            ("kind", text("A")),
            ("metadata", metadata),
        ];
        return (random.one_of(&lists), map(object));
    }
    let (list, kind, field) = PLUGINS[random.below(PLUGINS.len())];
    let mut object = map([
        ("apiVersion", text("builtin")),
        ("kind", text(kind)),
        ("metadata", map([("name", text("a"))])),
    ]);
    object.extend(at(field, url));
    if field == "path" {
        object.extend(map([("target", map([("kind", text("ConfigMap"))]))]));
    }
    (list, object)
}

/// Returns objects as kustomize may split, unwrap and merge them.
fn stream(random: &mut Random, object: &Yaml) -> String {
    let prefix = "apiVersion: builtin\nkind: PrefixTransformer\nmetadata: {name: p}\nprefix: a-\n";
    let object = match random.below(12) {
        0 => {
            let kinds = ["List", "FooList", "ResourceList", "ConfigMapList"];
            let items = [
                ("apiVersion", text("v1")),
                ("kind", text(random.one_of(&kinds))),
                ("items", list([object.clone()])),
            ];
            map(items)
        }
        _ => object.clone(),
    };
    let written = Writer::new(random).write(&object);
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
        let mut kustomization = map([("resources", list([text("cm.yaml")]))]);
        kustomization.extend(at(random.one_of(&FIELDS), url));
        let written = Writer::new(random).write(&kustomization);
        named(broken(random, written))
    } else {
        let (list_of, object) = plugin(random, url);
        let stream = stream(random, &object);
        let stream = broken(random, stream);
        let of = |entry: Yaml| {
            map([
                ("resources", list([text("cm.yaml")])),
                (list_of, list([entry])),
            ])
        };
        let plain = |entry: Yaml| Writer::plain().write(&of(entry));
        match random.below(4) {
            0 => named(plain(text("p.yaml"))).with("p.yaml", &stream),
            1 => named(plain(text("p")))
                .with("p/kustomization.yaml", "resources: [p.yaml]\n")
                .with("p/p.yaml", &stream),
            2 => {
                let written = Writer::new(random).write(&of(text(&stream)));
                named(broken(random, written))
            }
            _ => named(plain(text(&stream))),
        }
    };
    match random.below(4) {
        // What lies at the path of a URL hides nothing.
        0 if !url.starts_with("http") => variant.with(url, "kind: X\n"),
        1 if !url.starts_with("http") => {
            variant.with(format!("{url}/kustomization.yaml"), "namePrefix: a-\n")
        }
        _ => variant,
    }
}

#[test]
fn nothing_random_slips_past_the_gate() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let variants: Vec<Variant> = numbers().map(variant).collect();
    let judge = Judge::new(&kustomize).sampling(20).in_one_way();
    let verdicts = judge.judge(&variants, "");
    let passing = verdicts.iter().filter(|verdict| verdict.passes()).count();
    let built: Vec<_> = verdicts.iter().filter(|verdict| verdict.is_built).collect();
    let reaching = built
        .iter()
        .filter(|verdict| !verdict.reached.is_empty())
        .count();
    println!(
        "{passing} of {} pass the check; {reaching} of {} that were built reach out",
        verdicts.len(),
        built.len()
    );
    let holes: String = holes(&verdicts).iter().map(ToString::to_string).collect();
    assert!(holes.is_empty(), "{holes}");
    // What asks for nothing anyway proves nothing.
    let refused = built.iter().filter(|verdict| !verdict.passes()).count();
    assert!(reaching * 6 > refused, "{reaching} of {refused}");
}
