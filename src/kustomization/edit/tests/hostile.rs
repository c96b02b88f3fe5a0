//! Hostile values, written into kustomizations of every style. The checks know how the text was put together, so
//! they do not lean on what is tested.

use proptest::prelude::*;

use super::{Edit, edit};
use crate::kustomization::{Reference, read};

const HOSTILE: &[&str] = &[
    "a: b",
    "#x",
    "x #y",
    "x#",
    "yes",
    "no",
    "y",
    "~",
    "null",
    "[x]",
    "{x}",
    "it's",
    "''",
    "\"q\"",
    "a\tb",
    "\t",
    "a\nb",
    "a\n",
    "\n",
    "\r\n",
    "a\u{2028}b",
    "\u{85}",
    "\u{feff}x",
    "\u{0}",
    "\u{7f}",
    "\u{fffe}",
    "---",
    "--- a",
    "...",
    "c:\\w",
    "\\",
    " a",
    "a ",
    "- a",
    "-",
    "? a",
    "?",
    ": a",
    ":",
    "a:",
    "::",
    "&a",
    "*a",
    "!a",
    "!!str a",
    "|",
    "|-",
    ">",
    "%a",
    "@a",
    "`a",
    "]",
    "}",
    ",",
    "a,b",
    "a, b",
    "0777",
    "1:30",
    "1_000",
    "0x1f",
    "1e3",
    ".5",
    "-1",
    "+1",
    ".inf",
    "2020-01-01",
    "<<",
    "=",
    "é😀",
    "https://h/p?a=b&c=[d]#e",
    "key: |",
    "a  b",
    "localized-files/h/o/r/v1/p",
    "\u{a0}a",
    "\u{200b}",
    "true",
    "a\\nb",
    "{{ .x }}",
    "${x}",
    "$(x)",
];

const OLD: &[&str] = &["base", "../a/b", "https://h/o/r//p?ref=v1.0&x=y", "é/ü😀", "git@h:o/r.git", "a b"];

const FIELDS: &[&str] = &["resources", "components", "crds", "configurations"];

/// One list entry to be generated.
#[derive(Debug, Clone)]
struct Item {
    style: usize,
    old: usize,
    comment: bool,
    new: Option<String>,
}

#[derive(Debug, Clone)]
struct File {
    /// A field, whether it is in flow style, its entries.
    lists: Vec<(bool, Vec<Item>)>,
    crlf: bool,
    bom: bool,
    final_break: bool,
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let value = prop_oneof![
        4 => prop::sample::select(HOSTILE).prop_map(str::to_owned),
        1 => any::<String>().prop_filter("empty", |s| !s.is_empty()),
        1 => (prop::sample::select(HOSTILE), prop::sample::select(HOSTILE))
            .prop_map(|(a, b)| format!("{a}{b}")),
    ];
    let item = (0..11usize, 0..OLD.len(), any::<bool>(), prop::option::weighted(0.7, value))
        .prop_map(|(style, old, comment, new)| Item { style, old, comment, new });
    prop::collection::vec(item, 1..5)
}

fn files() -> impl Strategy<Value = File> {
    let lists = prop::collection::vec((any::<bool>(), items()), 1..=FIELDS.len());
    (lists, any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(lists, crlf, bom, final_break)| File {
        lists,
        crlf,
        bom,
        final_break,
    })
}

/// A part of the text.
#[derive(Debug, Clone)]
enum Piece {
    Fixed(String),
    /// A scalar: its token, its value, the field it is read as, and its new value.
    Scalar {
        token: String,
        value: String,
        field: String,
        new: Option<String>,
    },
}

/// Puts a text together.
fn pieces(file: &File) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let fixed = |pieces: &mut Vec<Piece>, text: &str| pieces.push(Piece::Fixed(text.to_owned()));
    let mut anchors: Vec<(String, bool)> = Vec::new();
    if file.bom {
        fixed(&mut pieces, "\u{feff}");
    }
    fixed(&mut pieces, "namePrefix: x # top\n");
    for (list, (flow, items)) in file.lists.iter().enumerate() {
        let field = FIELDS[list];
        fixed(&mut pieces, &format!("{field}:{}", if *flow { " [" } else { "\n" }));
        for (i, item) in items.iter().enumerate() {
            let old = OLD[item.old];
            let mut value = old.to_owned();
            let mut before = String::new();
            let mut new = item.new.clone();
            // kustomize takes no `?` without quotes there.
            let plain = if *flow && old.contains('?') { format!("'{old}'") } else { old.to_owned() };
            let token = match item.style {
                0 | 1 => plain,
                2 => format!("'{old}'"),
                3 => format!("\"{old}\""),
                6 => {
                    anchors.push((value.clone(), new.is_some()));
                    before = format!("&a{} ", anchors.len() - 1);
                    plain
                }
                8 | 9 if !anchors.is_empty() => {
                    let which = item.old % anchors.len();
                    // Where the value changes, each that shows it says what it is to be.
                    let (shown, is_edited) = &anchors[which];
                    value.clone_from(shown);
                    new = new.or_else(|| is_edited.then(|| shown.clone()));
                    format!("*a{which}")
                }
                10 if old.contains(' ') => old.replace(' ', "\n     "),
                _ => plain,
            };
            fixed(&mut pieces, if *flow { " " } else { "  -  " });
            fixed(&mut pieces, &before);
            pieces.push(Piece::Scalar { token, value, field: format!("{field}[{i}]"), new });
            if *flow {
                fixed(&mut pieces, if item.comment { ", # c\n" } else { " ," });
            } else {
                fixed(&mut pieces, if item.comment { "   # c\n" } else { "\n" });
            }
        }
        if *flow {
            fixed(&mut pieces, " ]\n");
        }
    }
    // A configuration inside a literal block.
    let inner = file.lists.iter().flat_map(|(_, items)| items).next_back();
    if let Some(item) = inner {
        let path = |pieces: &mut Vec<Piece>, field: &str, token: String| {
            pieces.push(Piece::Scalar {
                token,
                value: OLD[item.old].to_owned(),
                field: field.to_owned(),
                new: item.new.clone(),
            });
        };
        fixed(
            &mut pieces,
            "transformers:\n- |-\n    # c\n    apiVersion: builtin\n    kind: PatchTransformer\n    metadata: {name: m}\n    path:  ",
        );
        let token = match item.style {
            2 => format!("'{}'", OLD[item.old]),
            3 => format!("\"{}\"", OLD[item.old]),
            _ => OLD[item.old].to_owned(),
        };
        path(&mut pieces, "transformers[0]#PatchTransformer.path", token);
        fixed(&mut pieces, "\n\n    target: {kind: X}   # d\n");
    }
    fixed(&mut pieces, if file.final_break { " # end\n" } else { "" });
    if file.crlf {
        for piece in &mut pieces {
            let (Piece::Fixed(text) | Piece::Scalar { token: text, .. }) = piece;
            *text = text.replace('\n', "\r\n");
        }
    }
    pieces
}

/// Returns the length of the scalar token at the start of a text, given its value.
fn token_length(text: &str, value: &str) -> Option<usize> {
    if text.starts_with('\'') {
        let bytes = text.as_bytes();
        let mut at = 1;
        loop {
            at += text[at..].find('\'')?;
            if bytes.get(at + 1) != Some(&b'\'') {
                return Some(at + 1);
            }
            at += 2;
        }
    }
    if text.starts_with('"') {
        let mut at = 1;
        loop {
            at += text[at..].find(['"', '\\'])?;
            if text.as_bytes()[at] == b'"' {
                return Some(at + 1);
            }
            at += 2;
        }
    }
    text.starts_with(value).then_some(value.len())
}

fn check(file: &File) -> Result<(), TestCaseError> {
    let pieces = pieces(file);
    let before: String = pieces
        .iter()
        .map(|piece| match piece {
            Piece::Fixed(text) | Piece::Scalar { token: text, .. } => text.as_str(),
        })
        .collect();
    let old = read(before.as_bytes());
    let old = old.map_err(|e| TestCaseError::fail(format!("{before}\n{e:?}")))?.references;
    let find = |references: &[Reference], field: &str| {
        let found = references.iter().find(|r| r.field == field).cloned();
        found.ok_or_else(|| TestCaseError::fail(format!("{before}\nno {field}")))
    };
    let mut edits = Vec::new();
    for piece in &pieces {
        if let Piece::Scalar { value, field, new, .. } = piece {
            let reference = find(&old, field)?;
            prop_assert_eq!(&reference.text, value);
            edits.extend(new.clone().map(|value| (reference.spot, value)));
        }
    }
    let edits: Vec<Edit<'_>> = edits.iter().map(|(spot, value)| Edit { spot, value: value.clone() }).collect();
    let after = edit(before.as_bytes(), &edits);
    let after = after.map_err(|e| TestCaseError::fail(format!("{before}\n{e:?}")))?;
    let after = String::from_utf8(after).unwrap();

    // Every value is the one that was requested.
    let new = read(after.as_bytes());
    let new = new.map_err(|e| TestCaseError::fail(format!("{before}\n{after}\n{e:?}")))?.references;
    prop_assert_eq!(old.len(), new.len());
    // And between the scalars not one byte has changed.
    let mut rest = after.as_str();
    for piece in &pieces {
        let length = match piece {
            Piece::Fixed(text) => rest.starts_with(text.as_str()).then_some(text.len()),
            Piece::Scalar { token, value, field, new: wanted } => {
                let now = wanted.as_ref().unwrap_or(value);
                prop_assert_eq!(&find(&new, field)?.text, now, "{}\n{}", before, after);
                let same = rest.starts_with(token.as_str()).then_some(token.len());
                match wanted {
                    None if !token.starts_with('*') => same,
                    _ if token.starts_with('*') => same.or_else(|| token_length(rest, now)),
                    _ => token_length(rest, now),
                }
            }
        };
        let Some(length) = length else {
            return Err(TestCaseError::fail(format!("{piece:?} in\n{before}\n{after}")));
        };
        rest = &rest[length..];
    }
    prop_assert_eq!(rest, "");
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn hostile_values_change_nothing_but_themselves(file in files()) {
        check(&file)?;
    }
}

/// Each value in each style, so that none is left to chance.
#[test]
fn every_hostile_value_fits_every_style() {
    for new in HOSTILE {
        for style in 0..11 {
            let item = |old| Item { style, old, comment: style % 2 == 0, new: Some((*new).to_owned()) };
            let anchor = Item { style: 6, new: None, ..item(1) };
            let items = vec![anchor, item(0), item(5)];
            let file = File {
                lists: vec![(false, items.clone()), (true, items)],
                crlf: style % 3 == 0,
                bom: style % 4 == 0,
                final_break: style % 5 == 0,
            };
            check(&file).unwrap();
        }
    }
}
