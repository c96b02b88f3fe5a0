use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;
use crate::record::{BuildTool, render_message};

mod generated;

const OURS: &str = "\
Kustomize-Localize-Target: example/overlay scope=example into=localized-overlay
Kustomize-Localize-Source: gitCommit:34f034f034f034f034f034f034f034f034f034f0
Kustomize-Localize-Remote: https://github.com/kubernetes-sigs/kustomize?ref=v1.0.6 gitCommit:0123012301230123012301230123012301230123
Kustomize-Localize-Remote: https://raw.example.com/a%20b%2520c.yaml sha256:deaddeaddeaddeaddeaddeaddeaddeaddeaddeaddeaddeaddeaddeaddeaddead
Kustomize-Localize-Tree: gitTree:8b3f8b3f8b3f8b3f8b3f8b3f8b3f8b3f8b3f8b3f
Kustomize-Localize-Verified: identical 1/1 kustomize/v5.8.1
Kustomize-Localize-Tool: git-kustomize-localize/0.1.0
";

fn example() -> Trailers {
    Trailers {
        target: TargetTrailer {
            target: "example/overlay".into(),
            scope: Some("example".into()),
            new_dir: Some("localized-overlay".into()),
            rendered: false,
        },
        source: Some(Digest::GitCommit("34f0".repeat(10))),
        lock: None,
        remotes: [
            ("https://raw.example.com/a b%20c.yaml".to_owned(), Digest::Sha256("dead".repeat(16))),
            (
                "https://github.com/kubernetes-sigs/kustomize?ref=v1.0.6".to_owned(),
                Digest::GitCommit("0123".repeat(10)),
            ),
        ]
        .into(),
        tree: Digest::GitTree("8b3f".repeat(10)),
        verified: verified("kustomize/v5.8.1", &[]),
        tool: "git-kustomize-localize/0.1.0".into(),
    }
}

fn verified(program: &str, not_built: &[&str]) -> Option<Verified> {
    Some(Verified {
        same: 1,
        not_built: not_built.iter().map(|one| (*one).to_owned()).collect(),
        by: BuildTool { program: program.to_owned(), arguments: Vec::new() },
    })
}

/// A record that differs from the others by its tree.
fn numbered(number: u32) -> Trailers {
    Trailers { tree: Digest::GitTree(format!("{number:040x}")), ..example() }
}

fn parsed(message: &str) -> Trailers {
    Trailers::parse(message)
        .unwrap_or_else(|failure| panic!("{failure}:\n{message}"))
        .unwrap_or_else(|| panic!("no record:\n{message}"))
}

/// A repository that knows nothing of this machine's configuration.
struct Git(tempfile::TempDir);

impl Git {
    fn new() -> Self {
        let git = Git(tempfile::tempdir().unwrap());
        git.run(&["init", "-q", "--initial-branch=main", "."], "");
        git
    }

    fn run(&self, args: &[&str], input: &str) -> String {
        let output = self.try_run(args, input);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn try_run(&self, args: &[&str], input: &str) -> std::process::Output {
        let directory: &Path = self.0.path();
        let mut command = Command::new("git");
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        let mut child = command
            .args(args)
            .current_dir(directory)
            .env("HOME", directory)
            .env("XDG_CONFIG_HOME", directory)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CEILING_DIRECTORIES", directory)
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_AUTHOR_DATE", "1700000000 +0000")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_DATE", "1700000000 +0000")
            .env("LC_ALL", "C")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    }

    fn commit(&self, message: &str) -> String {
        let tree = self.run(&["mktree"], "");
        let commit = self.run(&["commit-tree", tree.trim()], message);
        commit.trim().to_owned()
    }

    /// Returns what git makes of a message, by both of its ways; they must agree.
    fn trailers(&self, message: &str) -> Vec<String> {
        let by_interpret = self.run(&["interpret-trailers", "--parse"], message);
        let commit = self.commit(message);
        let format = "--format=%(trailers:only,unfold)";
        let by_log = self.run(&["log", "-1", format, &commit], "");
        assert_eq!(by_interpret.trim_end(), by_log.trim_end(), "{message}");
        for key in ["Target", "Source", "Remote", "Tree", "Verified", "Not-Built", "Tool"] {
            let key = format!("{PREFIX}{key}");
            let format = format!("--format=%(trailers:key={key})");
            let by_key = self.run(&["log", "-1", &format, &commit], "");
            let expected: Vec<&str> =
                by_interpret.lines().filter(|line| line.starts_with(&format!("{key}:"))).collect();
            assert_eq!(by_key.trim_end().lines().collect::<Vec<_>>(), expected);
        }
        // commit-tree stored the message unchanged.
        let stored = self.run(&["log", "-1", "--format=%B", &commit], "");
        assert_eq!(stored.trim_end(), message.trim_end());
        by_interpret.lines().map(str::to_owned).collect()
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(str::to_owned).collect()
}

#[test]
fn block_is_as_documented() {
    assert_eq!(example().render().unwrap(), OURS);
    let message = render_message("Localize example/overlay", &example()).unwrap();
    assert_eq!(message, format!("Localize example/overlay\n\n{OURS}"));
    assert_eq!(parsed(&message), example());
}

#[test]
fn git_finds_all_of_the_block_below_any_text() {
    let git = Git::new();
    let long = "word ".repeat(4000);
    let texts = [
        "Localize",
        "Localize: prod",
        "Signed-off-by: A <a@example.org>",
        "Subject\n\nBody of\ntwo lines.",
        "Subject\n\n\n\nBody\n\n\n\n",
        "\n\n \t\nSubject\n\nBody\n \n\t\n",
        "Subject\r\n\r\nBody\r\n---\r\nmore\r\n",
        "Subject\n\nBody\n---\nmore",
        "Subject\n\n---",
        "---\n\nBody",
        "Subject\n\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n---\t\n",
        "Subject\n\n--- \n----\n---x\n",
        "Subject\n\n---\r\nmore",
        "Subject\n\nBody\n# ------------------------ >8 ------------------------\nbelow",
        "# ------------------------ >8 ------------------------\nbelow",
        "Subject\n\n; ------------------------ >8 ------------------------",
        "Subject\n\n# a comment\n# another",
        "# a comment\n\nFoo: bar",
        "Subject\n\nConflicts:\n\ta\n\tb\n",
        "Subject\n\nhttps://example.com/x",
        "Subject\n\nNote: prose\nand more prose",
        "Subject\n\n  indented: yes",
        "Subject\n\nprose\n\u{b}\nmore prose",
        "Subject\n\nprose\n\u{a0}\nmore",
        "日本語\n\nテキスト: はい",
        "Subject\n\ndiff --git a/x b/x\nIndex: x",
        &long,
    ];
    for text in texts {
        let message = render_message(text, &example()).unwrap();
        let found = git.trailers(&message);
        assert!(found.ends_with(&lines(OURS)), "{message}\n{found:?}");
        assert_eq!(parsed(&message), example());
    }
}

#[test]
fn other_comment_characters_do_not_hide_the_block() {
    let git = Git::new();
    git.run(&["config", "core.commentChar", ";"], "");
    for text in [
        "Subject\n\nBody\n; ------------------------ >8 ------------------------\nbelow",
        "Subject\n\nFixes: 1\n# not a comment",
        "Subject\n\nFixes: 1\n; a comment",
        "Subject\n\nSigned-off-by: A\n; a comment",
    ] {
        let message = render_message(text, &example()).unwrap();
        assert!(git.trailers(&message).ends_with(&lines(OURS)), "{message}");
    }
}

#[test]
fn only_text_that_confuses_git_is_changed() {
    let text = "Subject\n\n---\n--- a/x\n----\n ---\n---x\n# comment\n\ttab  \n\nlast";
    let message = render_message(text, &example()).unwrap();
    let kept = "Subject\n\n ---\n --- a/x\n----\n ---\n---x\n# comment\n\ttab  \n\nlast";
    assert_eq!(message, format!("{kept}\n\n{OURS}"));
    // Once more over its own text changes nothing.
    assert_eq!(render_message(kept, &example()).unwrap(), message);
}

#[test]
fn trailers_of_the_user_stay_trailers() {
    let git = Git::new();
    let cases: [(&str, &[&str]); 5] = [
        ("Subject\n\nFixes: #1\n\n", &["Fixes: #1"]),
        ("Subject\n\nBody\n\nSigned-off-by: A <a@example.org>", &["Signed-off-by: A <a@example.org>"]),
        ("Subject\n\nLong: one\n  two\nOther : x", &["Long: one two", "Other: x"]),
        // A subject is not a trailer.
        ("Fixes: #1", &[]),
        // Prose that has a colon in it is none either.
        ("Subject\n\nNote: this\nis prose", &[]),
    ];
    for (text, expected) in cases {
        let message = render_message(text, &example()).unwrap();
        let mut all = lines(&expected.join("\n"));
        all.extend(lines(OURS));
        let found = git.trailers(&message);
        assert_eq!(found, all, "{message}");
        assert_eq!(parsed(&message), example());
    }
}

#[test]
fn invalid_messages_are_refused() {
    for text in ["", "\n \t\r\n", "a\0b", "S\n\nkustomize-localize-tool: x", "Kustomize-Localize-Tree : x\n\nB"] {
        assert!(render_message(text, &example()).is_err(), "{text:?}");
    }
}

#[test]
fn values_that_would_not_be_read_are_not_written() {
    let hostile: Vec<fn(&mut Trailers)> = vec![
        |t| t.target.target = String::new(),
        |t| t.target.target = "../a".into(),
        |t| t.target.target = "https://t0ken@h/x".into(),
        |t| t.target.scope = Some("/".into()),
        |t| t.target.new_dir = Some("a\nb".into()),
        |t| t.source = Some(Digest::GitTree("a".repeat(40))),
        |t| t.source = Some(Digest::GitCommit("a".repeat(39))),
        |t| t.tree = Digest::GitCommit("a".repeat(40)),
        |t| t.tree = Digest::GitTree("A".repeat(40)),
        |t| assert!(t.remotes.insert(("https://u:t0ken@h/x".into(), Digest::GitCommit("a".repeat(40))))),
        |t| assert!(t.remotes.insert((String::new(), Digest::GitCommit("a".repeat(40))))),
        |t| assert!(t.remotes.insert(("https://h/x".into(), Digest::Sha256("a".repeat(40))))),
        |t| t.verified = verified("", &[]),
        |t| t.verified = verified("a\nb", &[]),
        |t| t.verified = verified("kustomize/v5.8.1", &["a\nb"]),
        |t| t.tool = String::new(),
    ];
    for (index, damage) in hostile.into_iter().enumerate() {
        let mut trailers = example();
        damage(&mut trailers);
        let failure = render_message("S", &trailers).unwrap_err();
        assert!(!failure.to_string().contains("t0ken"), "{index}: {failure}");
    }
}

#[test]
fn two_hundred_remotes_and_long_lines_are_read() {
    let git = Git::new();
    let mut trailers = example();
    trailers.remotes = (0..200)
        .map(|number| {
            let label = format!("https://example.com/{}/é {number}?ref=v1", "long/".repeat(200));
            (label, Digest::GitCommit(format!("{number:040x}")))
        })
        .collect();
    let message = render_message("Subject\n\nBody", &trailers).unwrap();
    assert_eq!(git.trailers(&message), lines(&trailers.render().unwrap()));
    let read = parsed(&message);
    assert_eq!(read.remotes.len(), 200);
    assert_eq!(read, trailers);
}

#[test]
fn messages_without_a_record_have_none() {
    for message in [
        "",
        "Subject",
        "Subject\n\nSigned-off-by: A",
        "Kustomize-Localize is a tool: this one\n\nKustomize-Localize-Tree is a trailer: x",
        "The line `Kustomize-Localize-Tree: x` is a trailer",
    ] {
        assert_eq!(Trailers::parse(message).unwrap(), None, "{message}");
    }
}

#[test]
fn broken_records_are_reported() {
    let failure = Trailers::parse("S\n\nKustomize-Localize-Tool: x").unwrap_err();
    assert!(failure.message.contains("the record in the commit message is incomplete"), "{failure}");
    let hex = "8b3f".repeat(10);
    for (old, new) in [
        (hex.as_str(), "8b3f"),
        ("gitTree:", "gitCommit:"),
        ("gitTree:", "gitTree: "),
        (" scope=example", " scope=example scope=example"),
        (" scope=example", " level=3"),
        ("scope=example", "scope=../example"),
        ("example/overlay", "%2e%2e/overlay"),
        ("example/overlay", "a%00"),
        ("example/overlay", "a%ff"),
        ("https://github.com/", "https://u:t0ken@github.com/"),
        (" gitCommit:0123", " gitcommit:0123"),
        ("Verified: identical 1/1 kustomize/v5.8.1", "Verified:"),
    ] {
        let message = format!("S\n\n{OURS}");
        let broken = message.replacen(old, new, 1);
        assert_ne!(broken, message, "{old}");
        let failure = Trailers::parse(&broken).expect_err(new);
        assert!(!failure.to_string().contains("t0ken"), "{failure}");
    }
}

#[test]
fn only_the_last_paragraph_holds_a_record() {
    let (first, second) = (numbered(1), numbered(2));
    let (one, two) = (first.render().unwrap(), second.render().unwrap());
    assert_eq!(parsed(&format!("S\n\n{one}\n{two}")), second);
    assert_eq!(parsed(&format!("S\n\n{one}prose\n")), first);
    assert_eq!(parsed(&format!("S\n\nFixes: #1\n  more\n{one}Signed-off-by: A <a@example.org>\n")), first);
    let below = format!("S\n\n{one}\nprose\n");
    let listed = format!("S\n\n* {}", one.replace('\n', "\n* "));
    let logged = format!("S\n\n    {}", one.replace('\n', "\n    "));
    for none in [below, listed, logged] {
        assert_eq!(Trailers::parse(&none).unwrap(), None, "{none}");
    }
    let headless = one.split_once('\n').unwrap().1;
    for edited in [
        format!("{one}{two}"),
        format!("{two}{headless}"),
        format!("{headless}{two}"),
        format!("{two}  folded\n"),
        headless.to_owned(),
    ] {
        assert!(Trailers::parse(&format!("S\n\n{edited}")).is_err(), "{edited}");
    }
}

/// Returns the block with each of its lines changed in one way, by what was done.
fn damaged() -> Vec<(String, String)> {
    let lines: Vec<&str> = OURS.lines().collect();
    let mut damaged = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let (key, value) = line.split_once(": ").unwrap();
        let with = |new: &[String]| {
            let mut lines: Vec<String> = lines.iter().map(|&line| line.to_owned()).collect();
            lines.splice(index..=index, new.iter().cloned());
            lines.join("\n") + "\n"
        };
        let mut add = |what: &str, text: String| damaged.push((format!("{key} {what}"), text));
        add("doubled", with(&[line.to_string(), line.to_string()]));
        add("doubled below", format!("{OURS}{line}\n"));
        add("other case", with(&[line.replacen(key, &key.to_lowercase(), 1)]));
        add("other key", with(&[line.replacen(key, &format!("{key}s"), 1)]));
        add("space before the colon", with(&[format!("{key} : {value}")]));
        add("no colon", with(&[format!("{key} {value}")]));
        add("no value", with(&[format!("{key}:")]));
        add("other encoding", with(&[format!("{key}: {}", value.replacen('e', "%65", 1))]));
        add("two spaces", with(&[format!("{key}: {}", value.replacen(' ', "  ", 1))]));
        let mut other = lines.clone();
        other.remove(index);
        // Other missing trailers are found through the lock and the parents of the commit.
        if !key.ends_with("-Source") && !key.ends_with("-Remote") {
            add("removed", other.join("\n") + "\n");
        }
        other.insert((index + 1) % lines.len(), line);
        add("reordered", other.join("\n") + "\n");
    }
    damaged.retain(|(_, text)| text != OURS);
    damaged
}

#[test]
fn a_block_that_is_not_as_it_was_written_is_not_read() {
    let damaged = damaged();
    assert!(damaged.len() > 7 * 8, "{}", damaged.len());
    for (what, text) in damaged {
        let read = Trailers::parse(&format!("S\n\nBody\n\n{text}"));
        assert!(read.is_err(), "{what}: {read:?}\n{text}");
    }
    let place = |target: &str| OURS.replacen("example/overlay scope=example into=localized-overlay", target, 1);
    assert!(Trailers::parse(&place(". in-place")).is_ok());
    for target in [".", "app in-place", ". scope=. in-place", ". into=a in-place"] {
        assert!(Trailers::parse(&place(target)).is_err(), "{target}");
    }
}

#[test]
fn an_indented_line_above_other_trailers_is_no_part_of_the_record() {
    let text = "subject\n\n ---\nSigned-off-by: A <a@example.org>";
    let message = render_message(text, &example()).unwrap();
    assert_eq!(parsed(&message), example());
}
