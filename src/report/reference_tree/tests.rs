use super::*;

fn node(name: &str, kind: NodeKind) -> Node {
    Node {
        name: name.to_owned(),
        kind,
    }
}

fn tree() -> ReferenceTree {
    let link = |to| Link {
        from: 0,
        to,
        file: "a/kustomization.yaml".to_owned(),
        line: 2,
        column: 3,
        field: "resources[0]".to_owned(),
        reference: String::new(),
        change: None,
    };
    let root = NodeKind::Root {
        component: false,
        localized: None,
        broken: None,
    };
    ReferenceTree {
        nodes: vec![
            node("a", root),
            node("a/config.yaml", NodeKind::File { localized: None }),
            node(
                "https://example.com/a.yaml",
                NodeKind::Http { locked: None },
            ),
            node("missing", NodeKind::Broken("not there")),
        ],
        starts: vec![0],
        links: (1..4).map(link).collect(),
    }
}

#[test]
fn a_line_is_cut_where_the_terminal_ends() {
    let plain = "\
a
├── a/config.yaml
├── https://example.com/a.yaml (not locked)
└── missing (not there)
";
    assert_eq!(text(&tree(), Look::default()), plain);
    let narrow = Look {
        width: Some(20),
        ..Look::default()
    };
    assert_eq!(
        text(&tree(), narrow),
        "\
a
├── a/config.yaml
├── https://example…
└── missing (not th…
"
    );
}

#[test]
fn colour_says_what_is_open() {
    let colored = Look {
        color: true,
        ..Look::default()
    };
    let text = text(&tree(), colored);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].contains("\u{1b}[1ma\u{1b}[0m"), "{text:?}");
    assert!(
        lines[2].contains("\u{1b}[31mhttps://example.com/a.yaml"),
        "{text:?}"
    );
    assert!(lines[3].contains("\u{1b}[31mmissing"), "{text:?}");
    assert_eq!(
        console::strip_ansi_codes(&text),
        super::text(&tree(), Look::default())
    );
    let cut = super::text(
        &tree(),
        Look {
            width: Some(20),
            ..colored
        },
    );
    for line in cut.lines() {
        assert!(console::measure_text_width(line) <= 20, "{line:?}");
    }
}
