//! Random changes to the text of kustomizations: whatever two readers of YAML see differently.
//!
//! They are the same on every machine; `KUSTOMIZE_LOCALIZE_FUZZ` sets how many (default 600). Most of them begin with a
//! kustomization that has the text of a reference in a place for something else, some with one of the table.

use std::env;

use super::build::Judge;
use super::holes;
use super::table;
use super::variant::Variant;
use crate::support::{Kustomize, Random};

/// The reference that is hidden, or shows.
const URL: &str = "https://h.example/x.yaml";

/// Kustomizations that pass the check. Where `URL` stands in them, nothing reads a reference.
const HARMLESS: [&str; 16] = [
    "# URL\nresources: [cm.yaml]\n",
    "resources:\n- cm.yaml # - URL\n",
    "# resources:\n# - URL\nresources:\n- cm.yaml\n#- URL\n",
    "commonAnnotations: {u: 'URL'}\nresources: [cm.yaml]\n",
    "commonAnnotations:\n  u: &a 'URL'\nresources:\n- &b cm.yaml\n",
    "commonAnnotations:\n  u: |\n    a\n    resources:\n    - URL\nresources:\n- cm.yaml\n",
    "commonAnnotations:\n  u: >-\n    a\n    resources: [URL]\nresources:\n- cm.yaml\n",
    "commonAnnotations:\n  u: \"a\\nresources:\\n- URL\"\nresources:\n- cm.yaml\n",
    "commonAnnotations: {'resources': 'URL', \"crds\": \"[URL]\"}\nresources: ['cm.yaml']\n",
    "{\"resources\": [\"cm.yaml\"], \"commonAnnotations\": {\"resources\": \"URL\"}}\n",
    "metadata:\n  name: a\n  annotations:\n    resources: URL\nresources:\n- cm.yaml\n",
    "configMapGenerator:\n- name: a\n  literals:\n  - a=URL\n  - \"files=[URL]\"\n",
    "resources: [cm.yaml]\npatches:\n- patch: |-\n    apiVersion: v1\n    kind: ConfigMap\n    metadata:\n      name: cm\n    data:\n      path: URL\n",
    "resources:\n- cm.yaml\npatches:\n- target: {kind: ConfigMap}\n  patch: |-\n    - {op: add, path: /data/path, value: URL}\n",
    "resources: [cm.yaml]\nimages:\n- name: URL\n  newName: b\n",
    "resources:\n- cm.yaml\ntransformers:\n- |-\n  apiVersion: builtin\n  kind: PrefixTransformer\n  metadata: {name: a, annotations: {path: URL}}\n  prefix: a-\n",
];

/// What is put into a text.
const PIECES: [&str; 48] = [
    "\n",
    "\r",
    "\r\n",
    "\t",
    " ",
    "  ",
    "-",
    "- ",
    ": ",
    ":",
    ", ",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "'",
    "\\",
    "\\n",
    "#",
    " #",
    "&a ",
    "*a",
    "*a : ",
    "<<: ",
    "<<: *a\n",
    "? ",
    "!!str ",
    "! ",
    "!!binary ",
    "|\n",
    ">-\n",
    "|-\n ",
    "---\n",
    "...\n",
    "%YAML 1.1\n",
    "\u{85}",
    "\u{a0}",
    "\u{2028}",
    "\u{feff}",
    "\u{0}",
    "\u{1b}",
    "~",
    "resources: ",
    "\nresources:\n- URL\n",
    "\nResources: [URL]\n",
    "\ncrds: *a\n",
    "URL",
];

fn count() -> usize {
    let asked = env::var("KUSTOMIZE_LOCALIZE_FUZZ").ok();
    asked.map_or(600, |asked| asked.parse().unwrap())
}

/// Returns a place in a text, at the border of a word or line three times out of four.
fn place(random: &mut Random, text: &str) -> usize {
    let borders = text.char_indices().map(|(index, _)| index);
    let all: Vec<usize> = borders.chain([text.len()]).collect();
    let is_border = |index: &&usize| {
        let before = text[..**index].chars().next_back();
        before.is_none_or(|last| !last.is_ascii_alphanumeric())
    };
    let words: Vec<usize> = all.iter().filter(is_border).copied().collect();
    let places = if random.below(4) == 0 { &all } else { &words };
    places[random.below(places.len())]
}

/// Moves a line, writes it twice, or indents it otherwise.
fn change_line(random: &mut Random, text: &str) -> String {
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    if lines.is_empty() {
        return String::new();
    }
    let line = lines[random.below(lines.len())].clone();
    let at = random.below(lines.len() + 1);
    match random.below(3) {
        0 => lines.insert(at, line),
        1 => lines.insert(at, format!("  {line}")),
        _ => {
            let removed = lines.remove(at % lines.len());
            lines.insert(random.below(lines.len() + 1), removed);
        }
    }
    lines.concat()
}

/// Returns the text with one random change.
fn changed(random: &mut Random, text: &str, other: &str) -> String {
    let at = place(random, text);
    match random.below(8) {
        0..4 => [&text[..at], random.one_of(&PIECES), &text[at..]].concat(),
        4 => {
            let removed = text[at..].chars().take(random.below(3) + 1);
            let length: usize = removed.map(char::len_utf8).sum();
            [&text[..at], &text[at + length..]].concat()
        }
        5 => {
            let mut characters = text[at..].chars();
            let swapped = characters.next().map_or(String::new(), |character| {
                if character.is_lowercase() {
                    character.to_uppercase().to_string()
                } else {
                    character.to_lowercase().to_string()
                }
            });
            [&text[..at], &swapped, characters.as_str()].concat()
        }
        6 => change_line(random, text),
        _ => [&text[..at], &other[place(random, other)..]].concat(),
    }
}

/// Returns variant `number`.
fn variant(number: usize, table: &[&Variant]) -> Variant {
    let mut random = Random::of(&format!("fuzz {number}"));
    let start = if !number.is_multiple_of(4) {
        Variant::new("fuzz", "", random.one_of(&HARMLESS).replace("URL", URL))
    } else {
        random.one_of(table).clone()
    };
    let other = random.one_of(&HARMLESS);
    let mut text = start.kustomization().unwrap().to_owned();
    for _ in 0..=random.below(3) / 2 {
        text = changed(&mut random, &text, other).replace("URL", URL);
    }
    start
        .named("fuzz", number.to_string())
        .with("kustomization.yaml", text)
}

#[test]
fn nothing_random_slips_past_the_gate() {
    let Some(kustomize) = Kustomize::find() else {
        return;
    };
    let table = table::variants();
    let table: Vec<&Variant> = table
        .iter()
        .filter(|variant| variant.kustomization().is_some())
        .collect();
    let variants: Vec<Variant> = (0..count()).map(|number| variant(number, &table)).collect();
    let verdicts = Judge::new(&kustomize).sampling(10).judge(&variants, "");
    let passing = verdicts.iter().filter(|verdict| verdict.passes()).count();
    println!("{passing} of {} pass the check", verdicts.len());
    // What is refused anyway proves nothing.
    assert!(passing * 6 > verdicts.len(), "{passing}");
    let holes: String = holes(&verdicts).iter().map(ToString::to_string).collect();
    assert!(holes.is_empty(), "{holes}");
}
