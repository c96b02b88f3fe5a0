//! The letters of keys: `encoding/json` does not look at their case.

use serde_json::json;

use crate::whole::generated::reference_fields;
use crate::whole::judge::variant::Variant;
use crate::whole::yaml::{extend, nested};

/// Every field that leads somewhere, and the keys on the way to it.
pub(super) fn variants() -> Vec<Variant> {
    let mut all = Vec::new();
    for field in reference_fields() {
        if field.starts_with(|letter: char| letter.is_ascii_uppercase()) {
            continue;
        }
        let mut document = nested(field, "https://h.example/o/r", "cm", "a");
        if field != "resources[]" {
            extend(&mut document, json!({"resources": ["cm.yaml"]}));
        }
        for key in field.split('.') {
            let key = key.trim_end_matches("[]");
            for (way, other) in cases(key) {
                let quoted = |key: &str| format!("\"{key}\":");
                let text = document.to_string();
                let text = text.replacen(&quoted(key), &quoted(&other), 1);
                let name = format!("{field} {key} {way}");
                all.push(Variant::new("keys", name, text).chart("charts/web"));
            }
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
