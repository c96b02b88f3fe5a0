use std::rc::Rc;

use super::*;
use crate::message::failure::Location;

fn node(name: &str, kind: NodeKind) -> Node {
    Node { name: name.to_owned(), kind, ..Node::default() }
}

fn tree() -> ReferenceTree {
    let start = Rc::new(node("a", NodeKind::Kustomization));
    let link = |to| Link { from: start.clone(), to, place: Location::default(), reference: String::new() };
    let links = vec![
        link(node("a/config.yaml", NodeKind::File)),
        link(node("https://example.com/a.yaml", NodeKind::Http)),
        link(Node { why: Some("not there"), ..node("missing", NodeKind::Broken) }),
    ];
    ReferenceTree { starts: vec![(*start).clone()], links }
}

#[test]
fn colour_says_what_is_open() {
    let shown = |color| tree().text(Shown { color, ..Shown::default() });
    let plain = "\
a
├── a/config.yaml
├── https://example.com/a.yaml (not locked)
└── missing (not there)
";
    assert_eq!(shown(false), plain);
    let colored = shown(true);
    assert_eq!(console::strip_ansi_codes(&colored), plain);
    for part in ["\u{1b}[1ma\u{1b}[0m", "\u{1b}[31mhttps://example", "\u{1b}[31mmissing"] {
        assert!(colored.contains(part), "{part:?}: {colored:?}");
    }
}
