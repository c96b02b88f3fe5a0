//! The table of variants, by class.

mod attributes;
mod charts;
mod dressed;
mod functions;
mod keys;
mod links;
mod odd;
mod reshaped;
mod urls;
mod yaml;

use serde_json::Value;

use super::variant::Variant;

/// Returns all variants.
pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    all.extend(urls::variants());
    all.extend(yaml::variants());
    all.extend(keys::variants());
    all.extend(reshaped::variants());
    all.extend(functions::variants());
    all.extend(charts::variants());
    all.extend(attributes::variants());
    all.extend(dressed::variants());
    all.extend(links::variants());
    all.extend(odd::variants());
    all
}

/// Returns a text as a scalar in double quotes.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Indents every line.
fn indented(text: &str, by: usize) -> String {
    let pad = " ".repeat(by);
    let lines = text.lines().map(|line| format!("{pad}{line}\n"));
    lines.collect()
}

/// Returns a root in whose list a stream of plugin configurations is read, from one of several places.
fn listed(class: &'static str, name: &str, list: &str, place: &str, stream: &str) -> Variant {
    let entry = match place {
        "literal" => format!("- |\n{}", indented(stream, 2)),
        "quoted" => format!("- {}\n", quoted(stream)),
        "directory" | "component" => "- plugins\n".to_owned(),
        _ => "- p.yaml\n".to_owned(),
    };
    let kustomization = format!("resources: [cm.yaml]\n{list}:\n{entry}");
    let variant = Variant::new(class, format!("{list} {place} {name}"), kustomization);
    let named = "resources: [p.yaml]\n";
    match place {
        "literal" | "quoted" => variant,
        "directory" => variant.with("plugins/kustomization.yaml", named).with("plugins/p.yaml", stream),
        "component" => variant
            .with("plugins/kustomization.yaml", "resources: [../more]\n")
            .with("more/kustomization.yaml", named)
            .with("more/p.yaml", stream),
        _ => variant.with("p.yaml", stream),
    }
}
