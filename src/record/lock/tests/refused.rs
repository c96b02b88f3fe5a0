//! What is not a lock.

use crate::os::testing::ThreadClock;
use std::fmt::Write as _;

use super::*;

const PASSWORD: &str = "contains a user name or a password";

/// A file entry with one more line.
fn with_file(line: &str) -> String {
    format!("version: 1\nfiles:\n  - path: a\n    mode: \"100644\"\n    sha256: {HEX64}\n    {line}\n")
}

fn with_git(lines: &str) -> String {
    format!("version: 1\nremotes:\n  - url: https://h/x\n    commit: {HEX40}\n    {lines}\n")
}

#[test]
fn unknown_syntax_is_refused() {
    // Documents.
    let mut cases: Vec<(String, usize, &str)> = [
        ("", 1, "there is no `version`"),
        ("\n \n", 1, "there is no `version`"),
        ("# only a comment\n", 1, "there is no `version`"),
        ("[]\n", 1, "expected keys with values, not"),
        ("version\n", 1, "expected keys with values, not"),
        ("target: .\n", 1, "there is no `version`"),
        ("version: 2\nsurprise: 1\n", 1, "unknown version 2 of the lock"),
        ("version: 99999999999999999999\n", 1, "expected"),
        ("version: \"1\"\n", 1, "expected"),
        ("version: 01\n", 1, "expected"),
        ("version: 1.0\n", 1, "expected"),
        ("version: 1\n\tfoo: 1\n", 1, "not YAML"),
    ]
    .map(|(text, line, message)| (text.to_owned(), line, message))
    .into();
    // What follows the version; the line is counted from there.
    cases.extend(
        [
            ("version: 1", 1, "appears twice"),
            ("foo: 1", 1, "unknown field"),
            ("---\nversion: 1", 1, "a second document"),
            ("options:\n  helm: true", 1, "unknown field `options`"),
            ("scope: ..", 1, "`..`"),
            ("target: ../a", 1, "target contains `..`"),
            ("target: /a", 1, "target is absolute"),
            ("target: ~", 1, "no value"),
            ("target:", 1, "no value"),
            ("left: [{url: \"https://u:p@h\", reason: x}]", 1, PASSWORD),
            ("left: [{url: h, accepted: true, reason: x}]", 1, "unknown field"),
            ("left: [{url: h, chart: x, reason: x}, {url: h, chart: x, reason: x}]", 1, "appears twice"),
            ("left: [{url: h}]", 1, "there is no `reason`"),
            ("left: [{url: h, reason: \"\"}]", 1, "is empty"),
            ("left: [{image: x, chart: y, reason: x}]", 1, "an entry of `left` must have a url"),
            ("left:\n  - {image: x, reason: a}\n  - {image: x, reason: b}", 3, "appears twice"),
            ("remotes:", 1, "no value"),
            ("remotes: {", 1, "not YAML"),
            ("files: &x []", 1, "an anchor"),
            ("files: [a", 1, "not YAML"),
            ("<<<<<<< HEAD\nremotes: []\n=======", 1, "merge conflict"),
        ]
        .map(|(text, line, message)| (format!("version: 1\n{text}\n"), line + 1, message)),
    );
    // Remotes without what makes one, or with more than one has.
    let digest = format!("sha256: {HEX64}, size: 1");
    let chart = format!("url: h, {digest}, chart");
    for (entry, message) in [
        ("chart: x".to_owned(), "there is no `url`"),
        ("url: h".to_owned(), "a remote must have a commit"),
        (format!("commit: {HEX40}"), "there is no `url`"),
        (format!("url: h, commit: {HEX40}, {digest}"), "a remote must have a commit"),
        (format!("url: h, commit: {HEX40}, size: 1"), "a remote must have a commit"),
        (format!("url: h, ref: a, {digest}"), "a remote must have a commit"),
        (format!("url: h, paths: {{a: {{}}}}, {digest}"), "a remote must have a commit"),
        (format!("url: h, commit: {HEX40}, names: [a]"), "a remote must have a commit"),
        (format!("url: h, names: ['https://u:p@h'], {digest}"), PASSWORD),
        (format!("{chart}: x, ref: v1"), "a remote must have a commit"),
        (format!("url: h, chart: x, commit: {HEX40}"), "a remote must have a commit"),
        (format!("{chart}: ../x"), "the chart `../x` contains `..`"),
        (format!("{chart}: a/x"), "contains a slash"),
        (format!("{chart}: -x"), "begins with `-`"),
        (format!("{chart}: x, version: --devel"), "the version `--devel` begins with `-`"),
        (format!("{chart}: x, resolved: ../1"), "contains a slash"),
        (format!("url: \"https://u:p@h\", {digest}"), PASSWORD),
        ("url: h, commit: abc".to_owned(), "must have 40 or 64"),
        (format!("url: h, commit: {}", HEX40.to_uppercase()), "must have 40 or 64"),
    ] {
        cases.push((format!("version: 1\nremotes:\n  - {{{entry}}}\n"), 3, message));
    }
    cases.extend(
        [
            ("ref:", 5, "no value"),
            ("ref: --upload-pack=x", 3, "begins with `-`"),
            ("ref: a:b", 3, "is not a valid ref name"),
            ("ref: \"a\\nb\"", 3, "control character"),
            ("submodules: 1", 5, "expected `true` or `false`"),
            ("paths: {..: {}}", 3, "`..`"),
            ("paths: {a/.git/b: {}}", 3, "`.git`"),
            ("paths: [a]", 5, "expected keys with values"),
            ("paths: {a: b}", 5, "expected"),
            ("paths: {a: {names: ['https://u:p@h']}}", 3, PASSWORD),
            ("paths: {a: {left: []}}", 5, "unknown field"),
            ("surprise: 1", 5, "unknown field"),
        ]
        .map(|(line, number, message)| (with_git(line), number, message)),
    );
    for (url, message) in [("https://me:secret@h/x", "a password"), ("\"https://h/\\x00\"", "control character")] {
        cases.push((with_git("").replace("https://h/x", url), 3, message));
    }
    cases.extend(
        [
            ("remote: https://secret@h/x", 3, "a password"),
            ("source: ../x", 3, "`..`"),
            ("rewritten: {\"\": x}", 3, "is empty"),
            ("rewritten: {x: }", 6, "no value"),
            ("rewritten: {x: y, x: z}", 6, "appears twice"),
            ("rewritten: {[x]: y}", 6, "a plain or quoted string"),
            ("mode: \"100644\"", 6, "appears twice"),
            ("<<: {}", 6, "unknown field"),
        ]
        .map(|(line, number, message)| (with_file(line), number, message)),
    );
    for (old, new, line, message) in [
        ("100644", "120000", 4, "unknown value"),
        ("100644", "0644", 4, "unknown value"),
        (HEX64, HEX40, 3, "must have 64 lower-case"),
        ("path: a", "source: a", 3, "there is no `path`"),
        ("path: a", "path: /etc/passwd", 3, "is absolute"),
        ("path: a", "path: .", 3, "contains `.`"),
        ("path: a", "path: a/../../b", 3, "contains `..`"),
        ("path: a", "path: .Git/hooks/x", 3, "contains `.git`"),
        ("path: a", "path: 'a\\b'", 3, "backslash"),
        ("path: a", "path: \"a\\tb\"", 3, "control character"),
        ("path: a", "path: C:/b", 3, "like a Windows drive"),
        ("path: a", "path: &x a", 3, "an anchor"),
        ("path: a", "path: *x", 3, "unknown anchor"),
        ("path: a", "path: !!str a", 3, "a tag"),
    ] {
        cases.push((with_file("").replace(old, new), line, message));
    }
    let mut wrong = String::new();
    for (text, line, message) in &cases {
        let Err(failure) = parse(text) else {
            panic!("read: {text}");
        };
        let shown = failure.to_string();
        let location = failure.location.unwrap();
        assert_eq!(location.file, "dir/kustomize-localize.lock", "{text}");
        if !shown.contains(message) || location.position.line != *line {
            let _ = writeln!(wrong, "{text}\n{shown}, not {line}: {message}\n");
        }
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!shown.contains(char::is_control), "{shown:?}");
    }
    assert_eq!(wrong, "");
    // The helpers above make locks that are read when nothing is wrong with them.
    for text in [with_git(""), with_file(""), with_git("ref: a"), with_file("source: a")] {
        parse(&text).unwrap();
    }
}

#[test]
fn one_thing_has_one_entry() {
    let repository = git("https://h/x", Some("v1"), HEX40, "");
    let moved = git("https://h/x", Some("v1"), &"f".repeat(40), "");
    let without = format!("{repository}, submodules: false");
    let floating = git("https://h/x", None, HEX40, "");
    locking(&[&repository, &without, &floating]);
    let query = git("https://h/x?a=b", Some("v1"), HEX40, "");
    let file = file("https://h/x", HEX64);
    for (entries, message) in [
        ([&repository, &moved], "`https://h/x?ref=v1` appears twice"),
        ([&query, &query], "`https://h/x?a=b&ref=v1` appears twice"),
        ([&file, &file], "`https://h/x` appears twice"),
    ] {
        let entries = entries.map(|entry| format!("- {{{entry}}}\n")).concat();
        let failure = parse(&format!("version: 1\nremotes:\n{entries}")).unwrap_err();
        assert!(failure.message.contains(message), "{failure}");
    }
    let files = |paths: &[&str]| {
        let entry = |path: &&str| format!("- {{path: {path}, mode: \"100644\", sha256: {HEX64}}}\n");
        let entries: String = paths.iter().map(entry).collect();
        parse(&format!("version: 1\nfiles:\n{entries}"))
    };
    assert!(files(&["a", "a"]).is_err());
    let failure = files(&["a/b", "a", "a-b"]).unwrap_err();
    let message = "`a` is both a file and the directory of `a/b`";
    assert!(failure.message.contains(message), "{failure}");
    files(&["a/b", "a-b", "ab/c"]).unwrap();
}

#[test]
fn failures_name_the_field() {
    let failure = parse(&with_git("ref:")).unwrap_err();
    assert_eq!(failure.to_string(), "dir/kustomize-localize.lock:5:8: no value");
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
    let megabyte = 1 << 20;
    for text in [
        bomb,
        "[".repeat(megabyte),
        format!("version: 1\nremotes: {}", "[".repeat(megabyte)),
        "{".repeat(megabyte),
        "- ".repeat(megabyte / 2),
        "? ".repeat(megabyte / 2),
        format!("version: 1\ntarget: {}", "&a ".repeat(megabyte / 3)),
        format!("version: 1\ntarget: \"{}", "\\n".repeat(megabyte / 2)),
        format!("version: 1\n{}", "x".repeat(megabyte)),
        "!".repeat(megabyte),
        "a: |\n".repeat(megabyte / 5),
        with_file("").replace("path: a", &format!("path: {}b", "a/".repeat(megabyte / 2))),
    ] {
        let clock = ThreadClock::start();
        assert!(parse(&text).is_err());
        let head: String = text.chars().take(40).collect();
        clock.stays_below(20, &head);
    }
    let large = vec![b' '; crate::os::limits::LOCK.most + 1];
    assert!(Lock::parse(&large, "x").unwrap_err().message.contains("more than"));
    let failure = Lock::parse(b"version: 1\ntarget: \xff\n", "x").unwrap_err();
    assert_eq!(failure.to_string(), "x: not UTF-8");
}
