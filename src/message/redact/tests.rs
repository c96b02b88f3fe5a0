use super::*;

/// A token as GitHub makes them; never a real one.
const TOKEN: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

#[test]
fn what_is_shown() {
    for (written, shown) in [
        ("", ""),
        ("../base", "../base"),
        ("u|@ //host/x", "u|@ //host/x"),
        ("|:u@ //`:u@ //host/x", "// //host/x"),
        ("a#b?c=d.yaml", "a#b?c=d.yaml"),
        ("https://host/a/x.yaml", "https://host/a/x.yaml"),
        ("https://host:8443/a?ref=v1&path=/b", "https://host:8443/a?ref=v1&path=/b"),
        ("https://user:hunter2@host/x", "https://host/x"),
        ("https://user@host/x", "https://host/x"),
        ("https://user:@host/x", "https://host/x"),
        ("https://:hunter2@host/x", "https://host/x"),
        ("HTTPS://U:hunter2@Host/x", "HTTPS://Host/x"),
        ("https://a:hunter2@c@d/", "https://d/"),
        ("https://u:hunter2@[2001:db8::1]:8443/x", "https://[2001:db8::1]:8443/x"),
        ("https://[2001:db8::1]/a@b", "https://[2001:db8::1]/a@b"),
        ("https://u:hunter2@/x", "https:///x"),
        ("https://u:hunter2@", "https://"),
        ("https:///u:hunter2@host/x", "https:///host/x"),
        ("https:/u:hunter2@host/x", "https:/host/x"),
        ("https:\\\\u:hunter2@host/x", "https:\\\\host/x"),
        ("//u:hunter2@host/x", "//u@host/x"),
        ("git::https://u:hunter2@h/", "git::https://h/"),
        ("s3::https://u:hunter2@h/", "s3::https://h/"),
        ("https://u:hunter2@proxy/https://v:hunter2@h/x", "https://proxy/https://h/x"),
        ("https://user%40corp:hunter2@host/x", "https://host/x"),
        ("https://user:hunter2%40host/x", "https://host/x"),
        ("https://user%3Ahunter2@host/x", "https://host/x"),
        ("https://u:hun/ter2@host/x", "https://host/x"),
        ("https://u:hun?ter2@host/x", "https://host/x"),
        ("https://u:hun#ter2@host/x", "https://host/x"),
        (" https://u:hun\nter2@host/x\u{1b}[m ", "https://host/x[m"),
        ("user:hunter2@github.com/o/r?ref=v1", "user@github.com/o/r?ref=v1"),
        ("user:hunter2@host:o/r", "user@host:o/r"),
        ("user:hun@ter2@host:o/r", "user@host:o/r"),
        ("a/b/user:hunter2@host:o/r", "a/b/user@host:o/r"),
        ("../user:hunter2@host:o/r", "../user@host:o/r"),
        ("a/u:hunter2@h/v:hunter2@h/o", "a/u@h/v@h/o"),
        ("a/b c@2x.png", "a/b c@2x.png"),
        ("a:1/b@2", "a:1/b@2"),
        ("app:v1@sha256:0123abcd", "app:v1@sha256:0123abcd"),
        ("h/o/app:v1@sha256:0123abcd", "h/o/app:v1@sha256:0123abcd"),
        ("h/u:hunter2@sha256:x", "h/u@sha256:x"),
        ("user%40corp:hunter2@host:o/r", "host:o/r"),
        ("git@github.com:o/r//p?ref=v1", "git@github.com:o/r//p?ref=v1"),
        ("org-12345@github.com:o/r", "org-12345@github.com:o/r"),
        ("ssh://git@host:22/o/r", "ssh://git@host:22/o/r"),
        ("ssh://git:hunter2@host/o/r", "ssh://git@host/o/r"),
        ("git::ssh://git@host/o/r", "git::ssh://git@host/o/r"),
        ("git::git@github.com:o/r?ref=v1", "git::git@github.com:o/r?ref=v1"),
        ("GIT::git:hunter2@github.com:o/r", "GIT::git@github.com:o/r"),
        ("git+ssh://git:hunter2@host/o/r", "git+ssh://git@host/o/r"),
        ("ftp://anonymous:hunter2@host/", "ftp://host/"),
        ("file:///srv/repo//p", "file:///srv/repo//p"),
        ("file://git@home/x.git", "file://git@home/x.git"),
        ("app@v1/base/x", "app@v1/base/x"),
        ("https://cdn.example/npm/foo@1.2.3/x.yaml", "https://cdn.example/npm/foo@1.2.3/x.yaml"),
        ("git@github.com:o/r@v1", "git@github.com:o/r@v1"),
        ("https://host/x#L10", "https://host/x"),
        ("https://host/x?ref=v1#access_token=hunter2", "https://host/x?ref=v1"),
    ] {
        assert_eq!(url(written), shown, "{written:?}");
        assert!(!written.contains("hunter2") || has_secret(written), "{written:?}");
    }
}

#[test]
fn queries() {
    for (query, shown) in [
        ("ref=v1&timeout=90s&submodules=false", "ref=v1&timeout=90s&submodules=false"),
        ("ref=0123456789abcdef0123456789abcdef01234567", "ref=0123456789abcdef0123456789abcdef01234567"),
        ("at=refs%2Fheads%2Fmain&path=/a/b", "at=refs%2Fheads%2Fmain&path=/a/b"),
        ("raw=true&inline=false&format=TEXT", "raw=true&inline=false&format=TEXT"),
        ("a&b=&=c", "a&b=&=c"),
        ("token=", "token="),
        ("token=hunter2", "token=REDACTED"),
        ("ref=v1&private_token=hunter2&x=1", "ref=v1&private_token=REDACTED&x=1"),
        ("ref=v1;token=hunter2", "ref=v1;token=REDACTED"),
        ("TOKEN=hunter2", "TOKEN=REDACTED"),
        ("%74oken=hunter2", "%74oken=REDACTED"),
        ("Access_Token=hunter2", "Access_Token=REDACTED"),
        ("sv=2024&se=x&sp=r&sr=b&sig=hunter2", "sv=REDACTED&se=REDACTED&sp=REDACTED&sr=REDACTED&sig=REDACTED"),
        ("X-Amz-Signature=hunter2&X-Amz-Date=1", "X-Amz-Signature=REDACTED&X-Amz-Date=REDACTED"),
        ("X-Goog-Expires=60", "X-Goog-Expires=REDACTED"),
        ("AWSAccessKeyId=a&Expires=1&Signature=b", "AWSAccessKeyId=REDACTED&Expires=REDACTED&Signature=REDACTED"),
        ("Policy=a&Key-Pair-Id=b", "Policy=REDACTED&Key-Pair-Id=REDACTED"),
        (
            "jwt=a&code=b&key=c&apikey=d&sshkey=e&Deploy-Key=f",
            "jwt=REDACTED&code=REDACTED&key=REDACTED&apikey=REDACTED&sshkey=REDACTED&Deploy-Key=REDACTED",
        ),
        ("password=hunter2==&x=1", "password=REDACTED&x=1"),
        ("x=ghp_0123456789abcdefABCDEF0123456789abcd", "x=REDACTED"),
        ("ref=ghp_0123456789abcdefABCDEF0123456789abcd", "ref=REDACTED"),
        ("ghp_0123456789abcdefABCDEF0123456789abcd", "REDACTED"),
        ("x=eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln", "x=REDACTED"),
        (
            "file=manifests/production-cluster-2024.yaml&x=9f86d081884c7d659a2feaa0c55ad015",
            "file=manifests/production-cluster-2024.yaml&x=9f86d081884c7d659a2feaa0c55ad015",
        ),
        ("u=https://a:hunter2@h/", "u=REDACTED"),
        ("path=https%3A%2F%2Fa%3Ahunter2%40h", "path=REDACTED"),
        (
            "vcs_url=git%2Bhttps:%2F%2Fh:8080%2Fo%2Fr%400123456789abcdef0123456789abcdef01234567",
            "vcs_url=git%2Bhttps:%2F%2Fh:8080%2Fo%2Fr%400123456789abcdef0123456789abcdef01234567",
        ),
        ("u=https:%2F%2Fa:hunter2%40h%2Fr%400123456789abcdef0123456789abcdef01234567", "u=REDACTED"),
        ("u=https%253A%252F%252Fa%253Ahunter2%2540h", "u=REDACTED"),
        ("u=https://a:hun&ter2@h/&x=1", "u=REDACTED&REDACTED&x=REDACTED"),
        ("token=REDACTED", "token=REDACTED"),
        ("x=production-release", "x=production-release"),
    ] {
        let written = format!("https://host/x?{query}");
        assert_eq!(url(&written), format!("https://host/x?{shown}"), "{query}");
        let written = format!("github.com/o/r?{query}");
        assert_eq!(url(&written), format!("github.com/o/r?{shown}"), "{query}");
        assert_eq!(has_secret(&written), shown != query, "{query}");
    }
}

#[test]
fn tokens_are_hidden_wherever_they_stand() {
    for written in [
        format!("https://{TOKEN}@github.com/o/r"),
        format!("https://{TOKEN}:x-oauth-basic@github.com/o/r"),
        format!("https://x-access-token:{TOKEN}@github.com/o/r"),
        format!("ssh://{TOKEN}@host/o/r"),
        format!("{TOKEN}@github.com:o/r"),
        format!("https://host/{TOKEN}/x"),
        format!("https://host/x?a={TOKEN}"),
        format!("https://host/x?{TOKEN}"),
        format!("https://host/x?ref={TOKEN}"),
        format!("https://host/x#token={TOKEN}"),
    ] {
        assert!(!url(&written).contains("ghp_"), "{}", url(&written));
        assert!(has_secret(&written), "{written}");
    }
}

#[test]
fn secrets() {
    for written in [
        "https://user:@host/x",
        "https://user@host/x",
        "https://@host/x",
        "https://my-organisation-name@dev.azure.com/o/p/_git/r",
        "https://0123456789abcdef0123456789abcdef01234567@github.com/o/r",
    ] {
        assert!(has_secret(written), "{written}");
    }
    for written in [
        "",
        "base",
        "https://host/x",
        "git@github.com:o/r",
        "ssh://git@host:22/o/r?ref=v1",
        "https://host/x#L10",
        "https://host/x?ref=0123456789abcdef0123456789abcdef01234567",
        "https://host/x?token=",
        "https://host/npm/foo@1.2.3/x",
        "app@v1/base/x",
    ] {
        assert!(!has_secret(written), "{written}");
    }
}

#[test]
fn urls_in_text() {
    for (written, shown) in [
        ("", ""),
        ("nothing here.\n\tAt all: no.\n", "nothing here.\n\tAt all: no.\n"),
        (
            "fatal: unable to access 'https://u:hunter2@h/x/': Could not resolve host: h\n",
            "fatal: unable to access 'https://h/x/': Could not resolve host: h\n",
        ),
        (
            "From ssh://git:hunter2@h/o/r (https://h/x?token=hunter2).",
            "From ssh://git@h/o/r (https://h/x?token=REDACTED).",
        ),
        ("url=https://u:hunter2@h/,other=\"https://u:hunter2@i\";", "url=https://h/,other=\"https://i\";"),
        ("'user:hunter2@github.com/o/r'", "'user@github.com/o/r'"),
        ("'git@github.com:o/r'", "'git@github.com:o/r'"),
        ("<a@b.example>", "<a@b.example>"),
        ("\u{1b}[31mred\u{1b}[0m\r\nx\u{7}\u{9b}", "[31mred[0m\nx"),
        ("https://u:hun\u{0}ter2@h/x", "https://h/x"),
        ("  https://u:hunter2@h  ", "  https://h  "),
    ] {
        assert_eq!(text(written), shown, "{written:?}");
    }
    let shown = text(&format!("bad token {TOKEN}, retry"));
    assert_eq!(shown, "bad token REDACTED, retry");
}

#[test]
fn shown_text_holds_no_secret() {
    let token = format!("-{TOKEN}");
    let pieces = ["https://", "git::", "ssh:/", "u", ":p", "@", "%40", "/", "?", "#", "token=", "\\", &token, " "];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                for d in pieces {
                    let written = format!("{a}{b}{c}{d}");
                    let shown = url(&written);
                    assert!(!shown.contains("ghp_"), "{written:?} is shown as {shown:?}");
                    assert!(!shown.chars().any(char::is_control), "{written:?}");
                    assert!(!has_secret(&shown), "{written:?} is shown as {shown:?}");
                    assert_eq!(url(&shown), shown, "{written:?}");
                    let told = message(&written);
                    assert!(!told.contains("ghp_"), "{written:?}");
                    assert!(written.contains(' ') || told == written || has_secret(&written));
                    assert_eq!(message(&told), told, "{written:?}");
                    assert!(!text(&written).contains("ghp_"), "{written:?}");
                }
            }
        }
    }
}

#[test]
fn a_long_hostile_text_takes_linear_time() {
    let started = std::time::Instant::now();
    for piece in ["a://", "a://a:b/", "@", ":", "https://u:p@", "?a=b&", "/", "%40"] {
        let long = piece.repeat(100_000 / piece.len());
        assert!(url(&long).len() <= long.len() * 2);
        assert!(text(&long).len() <= long.len() * 2);
    }
    assert!(started.elapsed().as_secs() < 200);
}

#[test]
fn a_comment_in_a_line_stays_one() {
    for line in ["- https://h/x # why", "a #b", "#", "x#"] {
        assert_eq!(text(line), line);
    }
    assert_eq!(text("- https://u:hunter2@h/x # why"), "- https://h/x # why");
    assert_eq!(url("https://h/x#"), "https://h/x");
}

#[test]
fn characters_that_hide_or_fake_a_line_are_not_shown() {
    for (c, escape) in [
        ('\0', "\\u{0}"),
        ('\n', "\\n"),
        ('\r', "\\r"),
        ('\u{1b}', "\\u{1b}"),
        ('\u{9b}', "\\u{9b}"),
        ('\u{202e}', "\\u{202e}"),
        ('\u{2066}', "\\u{2066}"),
        ('\u{200b}', "\\u{200b}"),
        ('\u{feff}', "\\u{feff}"),
        ('\u{e0041}', "\\u{e0041}"),
    ] {
        for safe in [visible, shown] {
            assert_eq!(safe(&format!("a{c}b")), format!("a{escape}b"), "{c:?}");
        }
    }
    for safe in [visible, shown] {
        assert_eq!(safe("ä ☸ #[ :: x \\n"), "ä ☸ #[ :: x \\n");
        assert_eq!(safe("##[error]x"), "##\u{fffd}[error]x");
    }
    // Safe text does not change.
    let once = visible("a\u{1b}[31m##[x]\n");
    assert_eq!((visible(&once), shown(&once)), (once.clone(), once));
}

#[test]
fn a_message_quotes_no_more_than_people_read() {
    assert_eq!(shown(&"x".repeat(100)), "x".repeat(100));
    assert_eq!(shown(&"x".repeat(101)), format!("{}…", "x".repeat(100)));
    assert_eq!(shown(&"\n".repeat(101)), format!("{}…", "\\n".repeat(100)));
}

proptest::proptest! {
    #[test]
    fn no_line_is_a_command(text in "[ \t\n:#\\[a\u{202e}]{0,20}") {
        for line in inert(&text).lines().chain(inert(&visible(&text)).lines()) {
            proptest::prop_assert!(!line.trim_start().starts_with("::"), "{line:?}");
            proptest::prop_assert!(!line.contains("##["), "{line:?}");
        }
        // Nothing else changes.
        let plain = |text: &str| text.replace('\u{fffd}', "");
        proptest::prop_assert_eq!(plain(&inert(&text)), text);
    }
}

#[test]
fn words_without_a_secret_stay_as_they_are() {
    let shortest = token::SHORTEST;
    let words = ["a", "k1", "don't", "a=b", "a&b=c", "ghp_0123456789", "é", "\u{feff}a", "-", "token=x"];
    for word in words {
        assert_eq!((&*message(word), &*url(word)), (word, word));
    }
    for prefix in ["eyJ", "ghp_", "ATBB"] {
        let token = format!("{prefix}{}", "0".repeat(16));
        assert!(token.len() >= shortest);
        assert_eq!(text(&format!("a {token} b")), "a REDACTED b");
    }
}

#[test]
fn ordinary_references_are_plain() {
    for text in
        ["", "../base", "https://github.com/o/r//base?ref=v1&submodules=false", "h:8443/o/app:v1", "ssh:host/o/r?a;b=c"]
    {
        assert!(has_nothing_to_hide(text), "{text}");
    }
    for text in
        ["a@b", "a b", "a#b", "a%40b", "x?a+b=c", "x?pat=c", "x?a;sig", "x/ghp_0123456789abcdefABCDEF", "ä", "a\n"]
    {
        assert!(!has_nothing_to_hide(text), "{text}");
    }
}

proptest::proptest! {
    #[test]
    fn plain_texts_have_nothing_to_hide(text in "(https?:|//|/|[a-z:?&;=.\\\\]|token|pat|eyJ[a-z0-9]{14,18}|ghp_){0,12}") {
        if has_nothing_to_hide(&text) {
            let Redacted { text: shown, secret } = Redacted::in_one_pass(&text);
            proptest::prop_assert_eq!((&shown, secret), (&text, false));
        }
    }
}

/// Each of them could begin a token, which takes minutes if each is followed to the end.
#[test]
fn as_many_prefixes_as_there_may_be_take_no_time() {
    let text = format!("{}@", "ghp_".repeat(100_000));
    assert_eq!(message(&text), text);
}
