use std::rc::Rc;

use super::*;
use crate::message::failure::Location;
use crate::targets::reference_tree::Link;

fn node(name: &str, kind: NodeKind) -> Node {
    Node { name: name.to_owned(), kind, ..Node::default() }
}

fn tree() -> ReferenceTree {
    let start = Rc::new(node("a", NodeKind::Kustomization));
    let link = |to| Link { from: start.clone(), to: Rc::new(to), place: Location::default(), reference: String::new() };
    let links = vec![
        link(node("a/config.yaml", NodeKind::File)),
        link(node("https://example.com/a.yaml", NodeKind::Http)),
        link(Node { why: Some("not there"), ..node("missing", NodeKind::Broken) }),
    ];
    ReferenceTree { starts: vec![start], links }
}

#[test]
fn a_line_is_cut_where_the_terminal_ends_and_colour_says_what_is_open() {
    let shown = |width, color| tree().text(Shown { color, width, ..Shown::default() });
    let plain = "\
a
├── a/config.yaml
├── https://example.com/a.yaml (not locked)
└── missing (not there)
";
    let narrow = "\
a
├── a/config.yaml
├── https://example…
└── missing (not th…
";
    for (width, expected) in [(None, plain), (Some(20), narrow)] {
        assert_eq!(shown(width, false), expected);
        let colored = shown(width, true);
        assert_eq!(console::strip_ansi_codes(&colored), expected);
        for part in ["\u{1b}[1ma\u{1b}[0m", "\u{1b}[31mhttps://example", "\u{1b}[31mmissing"] {
            assert!(colored.contains(part), "{part:?}: {colored:?}");
        }
    }
}
