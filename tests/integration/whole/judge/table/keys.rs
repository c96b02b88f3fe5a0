//! The letters of keys: `encoding/json` does not look at their case.

use crate::whole::judge::variant::Variant;

/// Every field that leads somewhere, and one that does in a value of it.
const FIELDS: [(&str, &str); 26] = [
    ("resources", "['URL']"),
    ("bases", "['URL']"),
    ("components", "['URL']"),
    ("crds", "['URL']"),
    ("configurations", "['URL']"),
    ("generators", "['URL']"),
    ("transformers", "['URL']"),
    ("validators", "['URL']"),
    ("patchesStrategicMerge", "['URL']"),
    ("openapi", "{path: 'URL'}"),
    ("patches", "[{path: 'URL'}]"),
    ("patches", "[{Path: 'URL'}]"),
    (
        "patchesJson6902",
        "[{target: {version: v1, kind: ConfigMap, name: cm}, path: 'URL'}]",
    ),
    (
        "patchesJson6902",
        "[{target: {version: v1, kind: ConfigMap, name: cm}, PATH: 'URL'}]",
    ),
    ("replacements", "[{path: 'URL'}]"),
    ("replacements", "[{patH: 'URL'}]"),
    ("configMapGenerator", "[{name: a, files: ['URL']}]"),
    ("configMapGenerator", "[{name: a, Files: ['URL']}]"),
    ("configMapGenerator", "[{name: a, envs: ['URL']}]"),
    ("configMapGenerator", "[{name: a, ENV: 'URL'}]"),
    ("secretGenerator", "[{name: a, FILES: ['k=URL']}]"),
    ("secretGenerator", "[{name: a, Envs: ['URL']}]"),
    ("secretGenerator", "[{name: a, env: 'URL'}]"),
    ("helmCharts", "[{name: web, valuesFile: 'URL'}]"),
    ("helmCharts", "[{Name: web2, REPO: 'URL'}]"),
    (
        "helmChartInflationGenerator",
        "[{ChartName: web2, chartRepoURL: 'URL'}]",
    ),
];

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for (field, value) in FIELDS {
        let value = value.replace("URL", "https://h.example/o/r");
        for (way, key) in cases(field) {
            let document = format!("{key}: {value}\n");
            let rest = match field {
                "resources" => "",
                _ => "resources: [cm.yaml]\n",
            };
            all.push(
                Variant::new("keys", format!("{field} {way}: {value}"), document + rest)
                    .chart("charts/web"),
            );
        }
    }
    all
}

fn cases(field: &str) -> Vec<(&'static str, String)> {
    let title = field[..1].to_uppercase() + &field[1..];
    let mut ways = vec![
        ("as it is", field.to_owned()),
        ("lower", field.to_lowercase()),
        ("upper", field.to_uppercase()),
        ("title", title),
    ];
    for (way, letter, other) in [("long s", 's', 'ſ'), ("kelvin", 'k', '\u{212a}')] {
        if field.contains(letter) {
            ways.push((way, field.replacen(letter, &other.to_string(), 1)));
        }
    }
    ways.dedup_by(|one, other| one.1 == other.1);
    ways
}
