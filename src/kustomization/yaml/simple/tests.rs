use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::super::{Document, Node, NodeKind};
use crate::kustomization::libyaml_check;

/// What of a node is used: of a collection only the start.
fn nodes(document: &Document) -> Vec<String> {
    let show = |node: &Node| {
        let (end, range) = match node.kind {
            NodeKind::Scalar { .. } => (Some(node.end), Some(node.range.clone())),
            _ => (None, None),
        };
        let (kind, start, offset) = (&node.kind, node.start, node.range.start);
        let rest = (node.in_flow, node.anchor, &node.tag);
        format!("{kind:?} {start:?} {offset} {end:?} {range:?} {rest:?}")
    };
    document.nodes.iter().map(show).collect()
}

/// Returns whether the text is simple, and if it is, compares the result with both readers.
#[track_caller]
fn is_simple(text: &str) -> bool {
    let Some(simple) = super::read(text) else {
        return false;
    };
    for limit in [1, usize::MAX] {
        let read = libyaml_check::read_twice(text, limit)
            .unwrap_or_else(|error| panic!("{text:?} is refused: {error:?}"));
        assert_eq!(read.documents.len(), 1, "{text:?}");
        assert_eq!((read.rest, read.repeated_anchor), (None, false), "{text:?}");
        assert_eq!(
            nodes(&simple.documents[0]),
            nodes(&read.documents[0]),
            "{text:?}"
        );
        assert_eq!(simple.lines.0, read.lines.0, "{text:?}");
    }
    true
}

#[test]
fn ordinary_kustomizations_are_simple() {
    for text in [
        "resources:\n- a.yaml\n- ../b\n",
        "---\n# c\nkind: Kustomization   # c\n\nresources:\n  - https://x.example/a?b=c#d # e\n",
        "images:\n  - name: a\n    newTag: \"1.0\" # it's new\n  - name: 'b c'\n",
        "configMapGenerator:\n- name: a\n  files:\n  - k=v.yaml\n  literals:\n    - A=b: c\n"
            .replace(": c", ":c")
            .as_str(),
        "a:\n    b:\n        c: d\n    e:\n    - f: g\n      h: i\nj: 1",
        "# only\n---\na: $(b) [c] {d} & * ! | > % @ , ' \" \\ `\n",
    ] {
        assert!(is_simple(text), "{text:?}");
    }
}

#[test]
fn everything_else_is_left_to_the_readers() {
    for text in [
        "",
        "# only a comment\n",
        "a\n",
        "a:\n",
        "a:\nb: c\n",
        "- \n",
        "- - a\n",
        " a: b\n",
        "a: b\n  c\n",
        "a: b\n  - c\n",
        "- a\n  - b\n",
        "a: b: c\n",
        "a: b:\n",
        "a: b\n c: d\n",
        "a: b\n- c\n",
        "a:\n  - b\n  c: d\n",
        "a: b\n---\n",
        "--- a\n",
        "---\n---\na: b\n",
        "...\n",
        "%YAML 1.1\n---\na: b\n",
        "a: |\n  b\n",
        "a: >-\n  b\n",
        "a: [b]\n",
        "a: {b: c}\n",
        "a: &x b\n",
        "a: *x\n",
        "a: !t b\n",
        "a: \"b\\n\"\n",
        "a: \"b\n  c\"\n",
        "a: 'b''c'\n",
        "a: 'b' c\n",
        "'a': b\n",
        "? a\n: b\n",
        "a:\tb\n",
        "a: b\r\n",
        "a: \u{e9}\n",
        "\u{feff}a: b\n",
        "<<: b\n",
        "a: -b\n",
    ] {
        assert!(!is_simple(text), "{text:?}");
    }
    let long = format!("{}: b\n", "a".repeat(2000));
    assert!(!is_simple(&long));
    let deep: String = (0..100)
        .map(|depth| format!("{}a:\n", " ".repeat(depth)))
        .collect();
    assert!(!is_simple(&format!("{deep}{}a: b\n", " ".repeat(100))));
}

/// Lines that are simple, nearly so, or not at all.
fn line() -> impl Strategy<Value = String> {
    let word = || {
        select(vec![
            "a",
            "b.yaml",
            "../c",
            "k=v",
            "x: y",
            "x:y",
            "1",
            "0x1f",
            "1e9",
            "null",
            "~",
            "true",
            "on",
            "d e",
            "f#g",
            "f #g",
            "$(h)",
            "_",
            "(",
            "\"\"",
            "\"q\"",
            "'q'",
            "'it''s'",
            "\"\\t\"",
            "\"a\" b",
            "'#'",
            "'- a: b'",
            "[a]",
            "{}",
            "|",
            "|-",
            ">",
            "&x",
            "*x",
            "!!str a",
            "? a",
            "- ",
            "-",
            "---",
            "...",
            ":",
            "a:",
            ",",
            "%",
            "@",
            "`",
            "<<",
            "=",
            "a\tb",
            "\u{e9}",
            "99999999999999999999999",
            ".inf",
            ".5",
            "2026-01-02",
            "https://example.com//a?ref=v1",
        ])
    };
    let indent = select(vec![
        "", "", "", "  ", "  ", "    ", "    ", " ", "   ", "      ",
    ]);
    let dash = select(vec!["", "", "", "- ", "- ", "-   ", "- - ", "-"]);
    let key = select(vec![
        "", "", "a: ", "b: ", "c:", "c:", "d:   ", "\"e\": ", "f: # ", "h i: ",
    ]);
    let tail = select(vec!["", "", "", "", " ", " # c", "# c", " #", "  # it's"]);
    let end = select(vec![
        "\n",
        "\n",
        "\n",
        "\n",
        "\n",
        "\n\n",
        "\n# c\n",
        "\n  # c\n",
        "\r\n",
        "",
    ]);
    let value = prop_oneof![
        3 => select(vec!["a", "b c", "1"]).boxed(),
        2 => word().boxed(),
        1 => Just("").boxed(),
    ];
    (indent, dash, key, value, tail, end).prop_map(|(indent, dash, key, value, tail, end)| {
        format!("{indent}{dash}{key}{value}{tail}{end}")
    })
}

/// Texts that are simple most of the time, of every nesting.
fn tree(depth: usize, indent: usize) -> BoxedStrategy<String> {
    let pad = " ".repeat(indent);
    let scalar = select(vec![
        "a", "b c", "../d", "1.0", "true", "\"e\"", "'f: g'", "h:i", "j # k", "null", "~", "\"\"",
        "x # it's",
    ]);
    let name = || select(vec!["a", "b", "c d", "e.f/g", "1", "true"]);
    let leaf = {
        let pad = pad.clone();
        vec((name(), scalar.clone()), 1..3).prop_map(move |pairs| {
            pairs
                .iter()
                .map(|(key, value)| format!("{pad}{key}: {value}\n"))
                .collect()
        })
    };
    if depth == 0 {
        return leaf.boxed();
    }
    let items = {
        let pad = pad.clone();
        vec(scalar, 1..3).prop_map(move |items| {
            items
                .iter()
                .map(|item| format!("{pad}- {item}\n"))
                .collect()
        })
    };
    let maps = {
        let pad = pad.clone();
        vec(tree(depth - 1, indent + 2), 1..3).prop_map(move |items| {
            let item =
                |item: &String| format!("{pad}- {}", item.get(indent + 2..).unwrap_or_default());
            items.iter().map(item).collect()
        })
    };
    let nested = (name(), select(vec![0, 1, 2, 4])).prop_flat_map(move |(key, more)| {
        let pad = pad.clone();
        tree(depth - 1, indent + more).prop_map(move |below| format!("{pad}{key}:\n{below}"))
    });
    prop_oneof![
        leaf,
        items,
        maps,
        nested.clone(),
        (nested, tree(depth - 1, indent)).prop_map(|(one, other)| one + &other)
    ]
    .boxed()
}

/// Trees in which something was typed, or a character taken away.
fn mistyped() -> impl Strategy<Value = String> {
    let typed = select(vec![
        "", "", "", "a", " ", "  ", "#", " #", ":", ": ", "-", "- ", "\n", "\n\n", "\n  ", "'",
        "\"", "\t", "\r", "|", ">", "[", "{", ",", "&", "*", "!", "?", "%", "@", "`", "\\",
        "\u{e9}", "...", "---", "<<: ", "\u{2028}", "\u{feff}",
    ]);
    let typed = vec((any::<prop::sample::Index>(), any::<bool>(), typed), 1..4);
    (tree(2, 0), typed).prop_map(|(mut text, typed)| {
        for (place, takes, typed) in typed {
            let mut at = place.index(text.len());
            while !text.is_char_boundary(at) {
                at -= 1;
            }
            if takes {
                text.remove(at);
            }
            text.insert_str(at, typed);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn lines_of_any_kind_are_read_alike_or_left(lines in vec(line(), 1..5)) {
        is_simple(&lines.concat());
    }

    #[test]
    fn trees_are_read_alike(text in tree(3, 0)) {
        is_simple(&text);
    }

    #[test]
    fn mistyped_trees_are_read_alike_or_left(text in mistyped()) {
        is_simple(&text);
    }
}

#[test]
fn enough_generated_texts_are_simple() {
    let mut runner = TestRunner::deterministic();
    let mut percent = |strategy: BoxedStrategy<String>| {
        let mut text = || strategy.new_tree(&mut runner).unwrap().current();
        (0..500).filter(|_| super::read(&text()).is_some()).count() / 5
    };
    let (mistyped, trees) = (percent(mistyped().boxed()), percent(tree(3, 0)));
    assert!(mistyped >= 10 && trees >= 50, "{mistyped} % {trees} %");
}
