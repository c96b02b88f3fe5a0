//! What is not a lock.

use std::fmt::Write as _;

use super::*;

/// A file entry with one more line.
fn with_file(line: &str) -> String {
    format!(
        "version: 1\nfiles:\n  - path: a\n    mode: \"100644\"\n    sha256: {HEX64}\n    {line}\n"
    )
}

fn with_git(lines: &str) -> String {
    format!("version: 1\nremotes:\n  - url: https://h/x\n    commit: {HEX40}\n    {lines}\n")
}

#[test]
fn unknown_syntax_is_refused() {
    let digest = format!("sha256: {HEX64}\n    size: 1");
    let cases: Vec<(String, usize, &str)> = vec![
        ("".into(), 0, "empty"),
        ("\n \n".into(), 0, "empty"),
        ("# only a comment\n".into(), 2, "the end"),
        ("[]\n".into(), 1, "a list where a mapping"),
        ("version\n".into(), 1, "a text where a mapping"),
        ("target: .\n".into(), 1, "version is missing"),
        (
            "version: 2\nsurprise: 1\n".into(),
            1,
            "version 2 of the lock is not known",
        ),
        ("version: 99999999999999999999\n".into(), 1, "too large"),
        ("version: \"1\"\n".into(), 1, "not a whole number"),
        ("version: 01\n".into(), 1, "not a whole number"),
        ("version: 1.0\n".into(), 1, "not a whole number"),
        ("version: 1\nversion: 1\n".into(), 2, "there twice"),
        ("version: 1\nfoo: 1\n".into(), 2, "key is not known"),
        (
            "version: 1\n---\nversion: 1\n".into(),
            2,
            "a second document",
        ),
        ("%YAML 1.1\n---\nversion: 1\n".into(), 1, "not YAML"),
        (
            "version: 1\noptions:\n  helmet: x\n".into(),
            3,
            "key is not known",
        ),
        (
            "version: 1\noptions:\n  helm: x\n".into(),
            3,
            "not `true` or `false`",
        ),
        (
            "version: 1\noptions:\n  no-licenses: yes\n".into(),
            3,
            "not `true` or `false`",
        ),
        (
            "version: 1\noptions:\n  load-restrictor: some\n".into(),
            3,
            "is not `none`",
        ),
        ("version: 1\noptions:\n  scope: ..\n".into(), 3, "`..`"),
        (
            "version: 1\noptions:\n  leave-missing: [\"\"]\n".into(),
            3,
            "is empty",
        ),
        ("version: 1\ntarget: ../a\n".into(), 2, "target holds `..`"),
        ("version: 1\ntarget: /a\n".into(), 2, "target is absolute"),
        ("version: 1\ntarget: ~\n".into(), 2, "holds nothing"),
        ("version: 1\ntarget:\n".into(), 2, "holds nothing"),
        ("version: 1\nremotes:\n".into(), 2, "nothing where a list"),
        (
            "version: 1\nremotes:\n  - chart: x\n".into(),
            3,
            "a remote has a url",
        ),
        (
            format!("version: 1\nremotes:\n  - url: https://h\n    chart: ../x\n    {digest}\n"),
            3,
            "the chart `../x` holds `..`",
        ),
        (
            format!("version: 1\nremotes:\n  - url: https://h\n    chart: a/x\n    {digest}\n"),
            3,
            "holds a `/`",
        ),
        (
            format!("version: 1\nremotes:\n  - url: https://h\n    chart: -x\n    {digest}\n"),
            3,
            "begins with `-`",
        ),
        (
            format!(
                "version: 1\nremotes:\n  - url: https://h\n    chart: x\n    version: --devel\n    {digest}\n"
            ),
            3,
            "the version `--devel` begins with `-`",
        ),
        (
            format!(
                "version: 1\nremotes:\n  - url: https://h\n    chart: x\n    resolved: ../1\n    {digest}\n"
            ),
            3,
            "holds a slash",
        ),
        (
            format!(
                "version: 1\nremotes:\n  - url: https://h\n    chart: x\n    ref: v1\n    {digest}\n"
            ),
            3,
            "a remote has a url",
        ),
        (
            format!(
                "version: 1\nremotes:\n  - url: https://h\n    chart: x\n    commit: {HEX40}\n"
            ),
            3,
            "a remote has a url",
        ),
        (
            format!("version: 1\nremotes:\n  - url: https://u:p@h\n    chart: x\n    {digest}\n"),
            3,
            "holds a user name or a password",
        ),
        (
            "version: 1\nleft: [{url: \"https://u:p@h\", reason: x}]\n".into(),
            2,
            "holds a user name or a password",
        ),
        (
            "version: 1\nleft:\n  - url: https://h/x\n    through: [[\"https://u:p@h\"]]\n    reason: x\n".into(),
            3,
            "holds a user name or a password",
        ),
        (
            "version: 1\nleft: [{url: \"https://h\", through: [[]], reason: x}]\n".into(),
            2,
            "nothing leads there",
        ),
        (
            "version: 1\nleft: [{url: \"https://h\"}]\n".into(),
            2,
            "what is left has a reason",
        ),
        (
            "version: 1\nleft: [{url: \"https://h\", reason: \"\"}]\n".into(),
            2,
            "is empty",
        ),
        (
            "version: 1\nleft: [{image: x, chart: y, reason: x}]\n".into(),
            2,
            "what is left has a url",
        ),
        (
            "version: 1\nleft:\n  - {image: x, reason: one}\n  - {image: x, reason: two}\n".into(),
            4,
            "is there twice",
        ),
        (
            "version: 1\noptions: {leave-remote: [\"https://u:p@h\"]}\n".into(),
            2,
            "holds a user name or a password",
        ),
        (
            "version: 1\nremotes:\n  - url: https://h/x\n".into(),
            3,
            "a remote has a url",
        ),
        (
            format!("version: 1\nremotes:\n  - commit: {HEX40}\n"),
            3,
            "a remote has a url",
        ),
        (with_git(&digest), 3, "a remote has a url"),
        (with_git("size: 1"), 3, "a remote has a url"),
        (
            format!("version: 1\nremotes:\n  - url: https://h/x\n    ref: a\n    {digest}\n"),
            3,
            "a remote",
        ),
        (
            format!("version: 1\nremotes:\n  - url: https://h/x\n    paths: [a]\n    {digest}\n"),
            3,
            "a remote",
        ),
        (with_git("ref:"), 5, "holds nothing"),
        (with_git("ref: --upload-pack=x"), 3, "begins with `-`"),
        (with_git("ref: a:b"), 3, "not a name that git gives"),
        (with_git("ref: \"a\\nb\""), 3, "control character"),
        (with_git("submodules: 1"), 5, "not `true` or `false`"),
        (with_git("paths: [..]"), 3, "`..`"),
        (with_git("paths: [a/.git/b]"), 3, "`.git`"),
        (with_git("paths: a"), 5, "a text where a list"),
        (with_git("paths: [[a]]"), 5, "a list where a text"),
        (with_git("surprise: 1"), 5, "key is not known"),
        (
            "version: 1\nremotes:\n  - url: https://h/x\n    commit: abc\n".into(),
            3,
            "not 40 or 64",
        ),
        (
            with_git("").replace(HEX40, &HEX40.to_uppercase()),
            3,
            "not 40 or 64",
        ),
        (
            with_git("").replace("https://h/x", "https://me:secret@h/x"),
            3,
            "a password",
        ),
        (
            with_git("").replace("https://h/x", "\"https://h/\\x00\""),
            3,
            "control character",
        ),
        (with_file("remote: https://secret@h/x"), 3, "a password"),
        (with_file("source: ../x"), 3, "`..`"),
        (with_file("rewritten: {\"\": x}"), 3, "is empty"),
        (with_file("rewritten: {x: }"), 6, "holds nothing"),
        (with_file("rewritten: {x: y, x: z}"), 6, "there twice"),
        (with_file("rewritten: {[x]: y}"), 6, "a list where a key"),
        (with_file("mode: \"100644\""), 6, "there twice"),
        (
            with_file("").replace("100644", "120000"),
            4,
            "not 100644 or 100755",
        ),
        (
            with_file("").replace("100644", "0644"),
            4,
            "not 100644 or 100755",
        ),
        (with_file("").replace(HEX64, HEX40), 3, "not 64 lower-case"),
        (
            with_file("").replace("path: a", "source: a"),
            3,
            "a file has a path",
        ),
        (
            with_file("").replace("path: a", "path: /etc/passwd"),
            3,
            "is absolute",
        ),
        (with_file("").replace("path: a", "path: ."), 3, "holds `.`"),
        (
            with_file("").replace("path: a", "path: a/../../b"),
            3,
            "holds `..`",
        ),
        (
            with_file("").replace("path: a", "path: .Git/hooks/x"),
            3,
            "holds `.git`",
        ),
        (
            with_file("").replace("path: a", "path: 'a\\b'"),
            3,
            "backslash",
        ),
        (
            with_file("").replace("path: a", "path: \"a\\tb\""),
            3,
            "control character",
        ),
        (
            with_file("").replace("path: a", "path: C:/b"),
            3,
            "like a drive",
        ),
        (
            with_file("").replace("path: a", "path: &x a"),
            3,
            "anchors and aliases",
        ),
        (
            with_file("").replace("path: a", "path: *x"),
            3,
            "anchors and aliases",
        ),
        (
            with_file("").replace("path: a", "path: !!str a"),
            3,
            "tags are not allowed",
        ),
        (
            with_file("").replace("path: a", "&x path: a"),
            3,
            "anchors and aliases",
        ),
        (with_file("<<: {}"), 6, "key is not known"),
        (
            "version: 1\nfiles: &x []\n".into(),
            2,
            "anchors and aliases",
        ),
        ("version: 1\nfiles: [a\n".into(), 2, "not YAML"),
        (
            "version: 1\nremotes: {\n".into(),
            2,
            "a mapping where a list",
        ),
        ("version: 1\n\tfoo: 1\n".into(), 1, "not YAML"),
        (
            "version: 1\n<<<<<<< HEAD\nremotes: []\n=======\n".into(),
            2,
            "merge conflict",
        ),
    ];
    for (text, line, message) in &cases {
        let Err(failure) = parse(text) else {
            panic!("read: {text}");
        };
        let shown = failure.to_string();
        assert!(shown.contains(message), "{text}\n{shown}");
        let location = failure.location.unwrap();
        assert_eq!(location.file, "dir/kustomize-localize.lock", "{text}");
        assert_eq!(location.line, *line, "{text}\n{shown}");
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
    // The helpers above make locks that are read when nothing is wrong with them.
    for text in [
        with_git(""),
        with_file(""),
        with_git("ref: a"),
        with_file("source: a"),
    ] {
        parse(&text).unwrap();
    }
}

#[test]
fn failures_name_the_field() {
    let failure = parse(&with_git("ref:")).unwrap_err();
    assert_eq!(
        failure.to_string(),
        "dir/kustomize-localize.lock:5:8: remotes[0].ref: holds nothing"
    );
    let failure = parse("version: 2\n").unwrap_err();
    assert!(failure.hints[0].contains("newer"), "{failure:?}");
}

#[test]
fn hostile_yaml_ends_soon() {
    let mut bomb = String::from("version: 1\na: &a [x, x, x, x, x, x, x, x, x]\n");
    for (name, before) in ('b'..='k').zip('a'..) {
        let aliases = vec![format!("*{before}"); 9].join(", ");
        writeln!(bomb, "{name}: &{name} [{aliases}]").unwrap();
    }
    let megabytes = 8 << 20;
    for text in [
        bomb,
        "[".repeat(megabytes),
        format!("version: 1\nremotes: {}", "[".repeat(megabytes)),
        "{".repeat(megabytes),
        "- ".repeat(megabytes / 2),
        "? ".repeat(megabytes / 2),
        format!("version: 1\ntarget: {}", "&a ".repeat(megabytes / 3)),
        format!("version: 1\ntarget: \"{}", "\\n".repeat(megabytes / 2)),
        format!("version: 1\n{}", "x".repeat(megabytes)),
        "!".repeat(megabytes),
        "a: |\n".repeat(megabytes / 5),
        with_file("").replace("path: a", &format!("path: {}b", "a/".repeat(megabytes / 2))),
    ] {
        let begin = std::time::Instant::now();
        assert!(parse(&text).is_err());
        let head: String = text.chars().take(40).collect();
        assert!(begin.elapsed().as_secs() < 20, "{head}");
    }
    let large = vec![b' '; crate::limits::LOCK.most + 1];
    assert!(
        Lock::parse(&large, "x")
            .unwrap_err()
            .message
            .contains("more than")
    );
    let failure = Lock::parse(b"version: 1\ntarget: \xff\n", "x").unwrap_err();
    assert_eq!(failure.to_string(), "x:2: not UTF-8");
}
