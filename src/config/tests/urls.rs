//! Globs of URLs.

use super::*;

fn matches(glob: &str, subject: &Subject) -> bool {
    allow::is_match(&address::compile(glob).unwrap(), subject, "")
}

#[test]
fn a_url_matches_what_begins_with_the_glob() {
    let base = git("https://github.com/acme/bases", "web/overlay", "tag");
    for glob in [
        "github.com",
        "GitHub.com",
        "https://github.com",
        "https://github.com:443/",
        "github.com/acme",
        "github.com/acme/",
        "github.com/*",
        "github.com/acme/*",
        "github.com/acme/b*s",
        "github.com/{acme,other}/bases",
        "github.com/acme/bases",
        "github.com/acme/bases.git",
        "https://github.com/acme/bases//web",
        "https://github.com/acme/bases/web/overlay",
        "github.com/**/overlay",
        "github.com/**",
        "*.com",
        "*",
        "https://*/acme",
    ] {
        assert!(matches(glob, &base), "{glob}");
    }
    for glob in [
        "github.com/acm",
        "github.com/acme/base",
        "github.com/acme/bases/web/overlay/x",
        "github.com/Acme",
        "github.com:8443",
        "hub.com",
        "*.github.com",
        "http://github.com",
        "ssh://github.com",
        "file:///acme",
        "com",
    ] {
        assert!(!matches(glob, &base), "{glob}");
    }
    for url in [
        "https://github.com/acme/bases.git",
        "https://github.com:443/acme/bases",
        "ssh://git@github.com/acme/bases",
        "ssh://git@github.com:22/acme/bases",
        "git@github.com:acme/bases",
        "git@github.com:acme/bases.git",
        "HTTPS://GITHUB.COM/acme/bases",
    ] {
        let subject = git(url, "", "tag");
        assert!(matches("github.com/acme/bases", &subject), "{url}");
    }
    let [ssh, https, plain, local] = [
        "git@github.com:acme/bases",
        "https://github.com/acme/bases",
        "http://github.com/acme/bases",
        "file:///srv/git/a.git",
    ]
    .map(|url| git(url, "", "tag"));
    let file = http("https://raw.example.com/o/r/v1/x.yaml?token=REDACTED");
    let port = http("https://raw.example.com:8443/x");
    let chart = Subject::Helm {
        url: "https://charts.example.com/stable".to_owned(),
        chart: "redis".to_owned(),
        version: "1.2.3".to_owned(),
    };
    for (glob, subject, expected) in [
        ("git@github.com:acme", &ssh, true),
        ("git@github.com:acme", &https, false),
        ("http://github.com", &plain, true),
        ("github.com", &plain, false),
        ("file:///srv/git/*", &local, true),
        ("*", &local, false),
        ("raw.example.com/o/r", &file, true),
        ("*.example.com:8443", &port, true),
        ("*.example.com", &port, false),
        ("*.example.com", &http("https://example.com/x"), false),
        ("charts.example.com/stable/redis", &chart, true),
        ("charts.example.com/stable/postgres", &chart, false),
        ("*", &Subject::Local, false),
    ] {
        assert_eq!(matches(glob, subject), expected, "{glob} {subject:?}");
    }
}

#[test]
fn no_other_host_looks_like_the_one_that_is_allowed() {
    for url in [
        "https://github.com.evil.example/acme/bases",
        "https://evil.example/?x=github.com/acme/bases",
        "https://evil.example/github.com/acme/bases",
        "https://evil.example/https://github.com/acme/bases",
        "https://github.com@evil.example/acme/bases",
        "https://github.com:x@evil.example/acme/bases",
        "https://evilgithub.com/acme/bases",
        "https://github.com:8443/acme/bases",
        "https://github.com:x/acme/bases",
        "https://evil.example\\github.com/acme/bases",
        "https://github.com\\.evil.example/acme/bases",
        "https://github.com%2eevil.example/acme/bases",
        "https://github.com\u{ff0f}.evil.example/acme/bases",
        "https://ｇithub.com/acme/bases",
        "https://github.com /acme/bases",
        "https:github.com/acme/bases",
        "https:///github.com/acme/bases",
        "//github.com/acme/bases",
        "github.com/acme/bases",
        "git@github.com.evil.example:acme/bases",
        "github.com@evil.example:acme/bases",
        "git@evil.example:github.com/acme/bases",
        "ext::https://github.com/acme/bases",
        "",
    ] {
        for glob in ["github.com/acme", "github.com", "https://github.com/acme/*", "*.github.com"] {
            assert!(!matches(glob, &git(url, "", "commit")), "{glob} {url}");
            assert!(!matches(glob, &http(url)), "{glob} {url}");
        }
    }
    // A path that a client may resolve to another one.
    for (url, path) in [
        ("https://github.com/acme/../evil/bases", ""),
        ("https://github.com/acme/./bases", ""),
        ("https://github.com/acme/%2e%2e/evil/bases", ""),
        ("https://github.com/acme%2f..%2Fevil/bases", ""),
        ("https://github.com/acme\\..\\evil/bases", ""),
        ("https://github.com/acme/bases", "../../evil"),
    ] {
        for glob in ["github.com/acme", "github.com/acme*", "github.com/**", "github.com"] {
            assert!(!matches(glob, &git(url, path, "commit")), "{glob} {url} {path}");
        }
    }
    for (glob, url) in [
        ("github.com/acme", "https://github.com/acme-evil/bases"),
        ("*.example.com", "https://evil.net\\x.example.com/"),
        ("*.example.com", "https://evil.net/x.example.com/"),
        ("*.example.com", "https://evilexample.com/"),
    ] {
        assert!(!matches(glob, &git(url, "", "tag")), "{glob} {url}");
        assert!(!matches(glob, &http(url)), "{glob} {url}");
    }
}

#[test]
fn globs_of_urls_that_say_more_than_they_seem_to_are_refused() {
    for (glob, why) in [
        ("", "is empty"),
        ("github.com*", "has the host"),
        ("github*", "has the host"),
        ("git*.com/acme", "has the host"),
        ("*github.com", "has the host"),
        ("*.*.com", "has the host"),
        ("gopher://github.com", "has the scheme `gopher`, expected one of https, ssh"),
        ("htps://github.com", "has the scheme `htps`"),
        ("git::https://github.com", "has the scheme"),
        ("*://github.com", "has the scheme"),
        ("github.com:acme/bases", "has the host `github.com:acme`"),
        ("https://", "has the host ``"),
        ("/acme", "has the host ``"),
        ("../acme", "has the host `..`"),
        ("github.com/acme/../x", "holds `..`"),
        ("github.com/acme?ref=v1", "query"),
        ("github.com/a b", "space"),
        ("github.com/[a", "is not a glob"),
        ("github.com/a**", "stands alone"),
        ("gïthub.com", "has the host"),
        ("github.com\\x", "has the host"),
    ] {
        let refused = address::compile(glob).unwrap_err();
        assert!(refused.contains(why), "{glob}: {refused}");
    }
    let failures = refused("allow: [{url: 'https://user:hunter2@a*b.example', reason: r}]\n");
    assert!(!failures.contains("hunter2"), "{failures:?}");
}
