//! Records and messages with any content, written and read.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;

use super::*;

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z/._-]{1,10}",
        "[ -~]{1,10}",
        "\\PC{1,6}",
        Just("a  b".to_owned()),
        Just(" % ".to_owned()),
        Just("%20".to_owned()),
    ]
    .prop_map(|text| text.replace(char::is_control, ""))
}

fn accepted(rule: fn(&str) -> std::result::Result<(), &'static str>) -> impl Strategy<Value = String> {
    text()
        .prop_map(|text| text.replace(['\\', ':', '.', '/'], "_"))
        .prop_filter("accepted", move |text| rule(text).is_ok())
}

fn all() -> impl Strategy<Value = Trailers> {
    let path = || accepted(valid::path_or_top);
    let line = || text().prop_filter("accepted", |text| valid::text_without_controls(text).is_ok());
    let hex = || "[0-9a-f]{40}|[0-9a-f]{64}";
    let remote = (accepted(valid::url), hex())
        .prop_map(|(path, hex)| (format!("https://example.com/{path}"), Digest::GitCommit(hex)));
    (
        (path(), option::of(path()), option::of(path())),
        option::of(hex()),
        vec(remote, 0..4),
        hex(),
        (1_usize..300, vec(line(), 0..3), line(), vec(line(), 0..3)),
        line(),
    )
        .prop_map(|(target, source, remotes, tree, verified, tool)| {
            let (same, not_built, program, arguments) = verified;
            let (target, scope, into) = target;
            let rendered = same % 2 == 0;
            let whole = TargetTrailer { target: ".".to_owned(), rendered, ..TargetTrailer::default() };
            let into = into.map(|into| TargetTrailer { target, scope, new_dir: Some(into), rendered: false });
            let is_rendered = into.is_none() && rendered;
            Trailers {
                lock: is_rendered.then(|| Digest::Sha256("ab".repeat(32))),
                target: into.unwrap_or(whole),
                source: source.map(Digest::GitCommit),
                remotes: remotes.into_iter().collect(),
                tree: Digest::GitTree(tree),
                verified: Some(Verified {
                    same,
                    not_built: not_built.into_iter().collect(),
                    by: BuildTool { program, arguments },
                }),
                tool,
            }
        })
}

/// Pieces of text that mean something to git or to us.
fn hostile_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("\r\n".to_owned()),
        Just(" ".to_owned()),
        Just("\t".to_owned()),
        Just("---".to_owned()),
        Just("# ".to_owned()),
        Just("# ------------------------ >8 ------------------------".to_owned()),
        Just("Signed-off-by: A <a@example.org>".to_owned()),
        Just("Fixes: #1".to_owned()),
        Just("Conflicts:".to_owned()),
        Just("(cherry picked from commit 0)".to_owned()),
        Just("Kustomize-Localize-Tree: gitTree:0".to_owned()),
        Just("commit 0123012301230123012301230123012301230123".to_owned()),
        Just("https://example.com/x".to_owned()),
        Just("word".to_owned()),
        "\\PC{1,4}",
    ];
    vec(piece, 1..12).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(trailers in all(), text in hostile_text()) {
        if let Ok(message) = render_message(&text, &trailers) {
            prop_assert_eq!(parsed(&message), trailers);
        } else {
            let is_record = text.contains("Kustomize-Localize-Tree: ");
            prop_assert!(is_record || text.trim_matches([' ', '\t', '\r', '\n']).is_empty());
        }
    }

    #[test]
    fn nothing_panics(text in any::<String>(), message in hostile_text()) {
        let _ = Trailers::parse(&text);
        let _ = Trailers::parse(&message);
        let _ = Trailers::parse(&format!("{OURS}{text}"));
    }
}

proptest! {
    // Each case starts git forty times.
    #![proptest_config(ProptestConfig::with_cases(12))]

    #[test]
    fn git_finds_the_block_below_generated_text(text in vec(hostile_text(), 40)) {
        let git = Git::new();
        for text in text {
            let Ok(message) = render_message(&text, &example()) else {
                continue;
            };
            let found = git.run(&["interpret-trailers", "--parse"], &message);
            prop_assert!(lines(&found).ends_with(&lines(OURS)), "{:?}\n{}", text, found);
        }
    }
}
