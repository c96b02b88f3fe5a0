//! Charts: where they come from, and what helm is given.

use serde_json::{Value, json};

use super::indented;
use crate::whole::judge::variant::Variant;
use crate::whole::yaml::{extend, plugin};

/// The fields that reach helm as arguments.
const FIELDS: [&str; 9] =
    ["releaseName", "name", "version", "namespace", "repo", "apiVersions", "kubeVersion", "nameTemplate", "chartHome"];

/// What helm could take for an option.
const OPTIONS: [&str; 4] = ["-x", "--post-renderer=./fn.sh", "--repo=https://h.example", "-"];

/// What else a chart can be.
const CHARTS: [&str; 28] = [
    "{name: web2, repo: https://h.example}",
    "{name: web2, repo: https://h.example, version: 1.2.3}",
    "{name: web, repo: https://h.example, version: 1.2.3}",
    "{name: web, repo: https://h.example}",
    "{name: web2, repo: 'oci://h.example/o'}",
    "{name: web2, repo: 'OCI://h.example/o'}",
    "{name: web2, repo: 'http://{loopback}/'}",
    "{name: web2, repo: 'file:///tmp'}",
    "{name: web2, repo: h.example}",
    "{name: web2, repo: ./charts}",
    "{name: web2, repo: ' '}",
    "{name: web2, repo: '@stable'}",
    "{name: web2, repo: ''}",
    "{name: web2}",
    "{name: stable/web, repo: https://h.example}",
    "{name: ../charts/web2, repo: https://h.example}",
    "{name: ../cm.yaml, repo: https://h.example}",
    "{name: 'https://h.example/web2.tgz', repo: https://h.example}",
    "{name: web2, repo: https://h.example, version: ../x}",
    "{name: web, repo: https://h.example, version: /../../web}",
    "{name: web2, Repo: https://h.example}",
    "{name: web, Name: web2, repo: https://h.example}",
    "{Name: web, name: web2, repo: https://h.example}",
    "{name: web, repo: https://h.example, devel: true}",
    "{name: file, repo: https://h.example}",
    "{name: link, repo: https://h.example}",
    "{name: broken, repo: https://h.example}",
    "{<<: {repo: https://h.example}, name: web2}",
];

pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for field in FIELDS {
        for option in OPTIONS {
            // With and without a repository: what is pulled, and what is rendered.
            for repo in [true, false] {
                all.extend(with_option(field, option, repo));
            }
        }
    }
    for chart in CHARTS {
        all.push(with_chart(chart, format!("helmCharts:\n- {chart}\n")));
        let generator = format!(
            "generators:\n- |\n  apiVersion: builtin\n  kind: HelmChartInflationGenerator\n  metadata: {{name: a}}\n{}",
            indented(&lines(chart), 2)
        );
        all.push(with_chart(&format!("generator {chart}"), generator));
    }
    for rest in [
        "helmGlobals: {chartHome: home}\n",
        "HelmGlobals: {ChartHome: home}\n",
        "helmGlobals: {chartHome: ../home}\n",
        "helmChartInflationGenerator: [{chartName: web, chartHome: home}]\n",
        "helmGlobals: {}\nhelmChartInflationGenerator: [{chartName: web, chartHome: home}]\n",
        "helmGlobals: {chartHome: ''}\n",
        "helmGlobals: {configHome: /etc}\n",
        "helmCharts: [{name: web}]\n",
        "namespace: -x\n",
        "namespace: --post-renderer=./fn.sh\n",
    ] {
        for chart in ["{name: web}", "{name: web, repo: https://h.example}"] {
            let text = format!("helmCharts:\n- {chart}\n{rest}");
            all.push(with_chart(&format!("{chart} {rest}"), text));
        }
    }
    let overlay = "resources: [base]\nnamespace: --post-renderer=./fn.sh\n";
    all.push(
        with_chart("namespace of an overlay", overlay.to_owned())
            .with("base/kustomization.yaml", "helmCharts: [{name: web}]\n")
            .chart("base/charts/web"),
    );
    all
}

fn with_chart(name: &str, kustomization: String) -> Variant {
    Variant::new("charts", name, kustomization)
        .chart("charts/web")
        .with("charts/file", "")
        .link("charts/link", "web")
        .link("charts/broken", "gone")
}

/// Returns roots in which a field of a chart is an option: in each of the places where a chart can stand.
fn with_option(field: &str, option: &str, repo: bool) -> Vec<Variant> {
    let value: Value = match field {
        "apiVersions" => json!(["v1", option]),
        _ => json!(option),
    };
    let mut chart = json!({"name": "web"});
    let mut old = json!({"chartName": "web"});
    if repo {
        let (url, version) = ("https://h.example", "1.2.3");
        extend(&mut chart, json!({"repo": url, "version": version}));
        extend(&mut old, json!({"chartRepoUrl": url, "chartVersion": version}));
    }
    let home = match field {
        "chartHome" => option,
        _ => "charts",
    };
    let place = match (field, repo) {
        ("name", true) => format!("{home}/{option}-1.2.3/{option}"),
        ("name", false) => format!("{home}/{option}"),
        ("version", true) => format!("{home}/web-{option}/web"),
        (_, true) => format!("{home}/web-1.2.3/web"),
        (_, false) => format!("{home}/web"),
    };
    let with = |chart: &Value, field: &str| {
        let mut chart = chart.clone();
        extend(&mut chart, json!({field: value}));
        chart
    };
    let listed = match field {
        "chartHome" => json!({"helmCharts": [chart], "helmGlobals": {field: value}}),
        _ => json!({"helmCharts": [with(&chart, field)]}),
    };
    let generator = plugin("HelmChartInflationGenerator", "a", with(&chart, field));
    let generator = json!({"generators": [generator.to_string()]});
    let field_of_old = match field {
        "releaseName" | "chartHome" => Some(field),
        "name" => Some("chartName"),
        "version" => Some("chartVersion"),
        "repo" => Some("chartRepoUrl"),
        _ => None,
    };
    let old = field_of_old.map(|field| json!({"helmChartInflationGenerator": [with(&old, field)]}));
    let mut all = Vec::new();
    for document in [listed, generator].into_iter().chain(old) {
        let document = document.to_string();
        let root = |what| Variant::new("charts", format!("{what} {document}"), &document);
        // Where the chart is there, what is rendered counts.
        if !option.contains("//") {
            all.push(root("there:").chart(&place));
        }
        if repo {
            all.push(root("absent:"));
        }
    }
    all
}

/// Returns a flow mapping as a block.
fn lines(flow: &str) -> String {
    let inner = flow.trim_start_matches('{').trim_end_matches('}');
    match inner.split_once("}, ") {
        Some((merged, rest)) => format!("{merged}}}\n{rest}\n"),
        None => inner.replace(", ", "\n") + "\n",
    }
}
