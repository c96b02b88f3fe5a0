use super::{Literal, NodeKind, Stream};
use crate::kustomization::libyaml_check::{read_twice, values};

#[test]
fn positions_count_characters_and_every_line_break() {
    let stream = Stream::parse("\u{feff}é: a\r\nb: c\rd: e\n", 1).unwrap();
    let text = stream.text;
    let place = |word: &str| stream.position(text.find(word).unwrap());
    assert_eq!(place("a"), (1, 4));
    assert_eq!(place("b"), (2, 1));
    assert_eq!(place("e"), (3, 4));
    assert_eq!(stream.position(text.len()), (4, 1));
    for node in stream.documents[0].nodes() {
        assert_eq!(node.start, stream.position(node.range.start));
        if matches!(node.kind, NodeKind::Scalar { .. }) {
            assert_eq!(node.end, stream.position(node.range.end));
        }
    }
}

#[test]
fn lines_of_a_literal_are_found() {
    for (text, value) in [
        ("- |\n  a\n  b\n", "a\nb\n"),
        ("- |-\n\n\n  a\n\n   b\n    \n  c", "a\n\n b\n  \nc"),
        ("- |2\n    a\n  b\n", "  a\nb\n"),
        ("- &x !!str |+ # c\r\n  a\r\n  b\r\n\r\n", "a\nb\n\n"),
        ("- k:\n    - |\n        é\n        a\n# c\n", "é\na\n"),
    ] {
        let stream = Stream::parse(text, 1).unwrap();
        let is_literal = |node: &&super::Node| Literal::find(&stream, node).is_some();
        let node = stream.documents[0].nodes().iter().find(is_literal);
        let node = node.unwrap_or_else(|| panic!("{text:?}"));
        let literal = Literal::find(&stream, node).unwrap();
        let NodeKind::Scalar { value: found, .. } = &node.kind else {
            panic!();
        };
        assert!(found.trim_start_matches('\n') == value, "{found:?}");
        for (at, c) in found.char_indices().filter(|(_, c)| *c != '\n') {
            let offset = literal.offset(at).unwrap();
            assert!(text[offset..].starts_with(c), "{text:?} {at}");
        }
    }
    let stream = Stream::parse("- >\n  a\n- 'b'\n", 1).unwrap();
    let nodes = stream.documents[0].nodes();
    assert!(
        nodes
            .iter()
            .all(|node| Literal::find(&stream, node).is_none())
    );
}

#[test]
fn a_last_line_needs_no_end() {
    let mut read = 0;
    for header in [
        "|", "|-", "|+", ">", ">-", ">+", "", "\"x\"", "'x'", "[x]", "&x |",
    ] {
        for lines in ["", "\nx", "\nx\ny", "\nx\n", "\nx\n\ny"] {
            for end in [
                "", " ", "  ", "\t", " \t", "\n", "\n ", "\n  ", "\n   ", "\n     ", "\n\n   ",
                "\n \n  ",
            ] {
                for before in ["a: ", "- a: ", "a:\n- "] {
                    let indent = if before == "a: " { "\n  " } else { "\n    " };
                    let lines = lines.replace('\n', indent);
                    let text = format!("{before}{header}{lines}{end}");
                    if values(&text, 1).is_err() {
                        continue;
                    }
                    let stream = read_twice(&text, 1);
                    let stream = stream.unwrap_or_else(|error| panic!("{text:?}: {error:?}"));
                    assert_eq!(stream.text, text);
                    read += 1;
                }
            }
        }
    }
    assert!(read > 1_000, "{read}");
}
