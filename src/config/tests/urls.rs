//! Globs of URLs.

use super::*;

fn matches(glob: &str, subject: &Subject) -> bool {
    let globs = glob::set([&address::compile(glob).unwrap()]).unwrap();
    subject.upstream().is_some_and(|upstream| !address::covering(&globs, upstream).is_empty())
}

#[test]
fn a_url_matches_what_begins_with_the_glob() {
    let base = git("https://github.com/acme/bases", "web/overlay", "v1");
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
        let subject = git(url, "", "v1");
        assert!(matches("github.com/acme/bases", &subject), "{url}");
    }
    let [ssh, https, plain, local] = [
        "git@github.com:acme/bases",
        "https://github.com/acme/bases",
        "http://github.com/acme/bases",
        "file:///srv/git/a.git",
    ]
    .map(|url| git(url, "", "v1"));
    let file = http("https://raw.example.com/o/r/v1/x.yaml?token=REDACTED");
    let port = http("https://raw.example.com:8443/x");
    let chart = Upstream::named("https://charts.example.com/stable#redis@1.2.3").subject();
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
            assert!(!matches(glob, &git(url, "", "0123456789012345678901234567890123456789")), "{glob} {url}");
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
            assert!(!matches(glob, &git(url, path, "0123456789012345678901234567890123456789")), "{glob} {url} {path}");
        }
    }
    for (glob, url) in [
        ("github.com/acme", "https://github.com/acme-evil/bases"),
        ("*.example.com", "https://evil.net\\x.example.com/"),
        ("*.example.com", "https://evil.net/x.example.com/"),
        ("*.example.com", "https://evilexample.com/"),
    ] {
        assert!(!matches(glob, &git(url, "", "v1")), "{glob} {url}");
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
        ("github.com/acme/../x", "contains `..`"),
        ("github.com/acme?ref=v1", "remove `refs`"),
        ("github.com/a b", "space"),
        ("github.com/[a", "is not a glob"),
        ("github.com/a**", "alone between slashes"),
        ("gïthub.com", "has the host"),
        ("github.com\\x", "has the host"),
    ] {
        let refused = address::compile(glob).unwrap_err();
        assert!(refused.contains(why), "{glob}: {refused}");
    }
    let failures = refused("allow: [{url: 'https://user:hunter2@a*b.example', refs: any, reason: r}]\n");
    assert!(!failures.contains("hunter2"), "{failures:?}");
}

/// Returns what `allow` covers, of one entry as it is written between braces.
fn covers(entry: &str, subject: &Subject) -> bool {
    let config = parse(&format!("allow: [{{{entry}, reason: r}}]\n"));
    let rule = match subject {
        Subject::Remote(Upstream::Chart { .. }) => Rule::RemoteChart,
        _ => Rule::RemoteReference,
    };
    config.allowed_by(rule, subject, "").is_some()
}

/// Returns what a text is in `resources`, as a repository.
fn repository(text: &str) -> Subject {
    Upstream::git(&reference::RepoSpec::parse(text).unwrap()).subject()
}

#[test]
fn without_refs_an_entry_is_one_reference() {
    let web = "https://github.com/acme/bases//web?ref=v1";
    let odd = "https://git.example.com/a/b.git//c?ref=v1";
    for (entry, text, expected) in [
        (web, web, true),
        ("github.com/acme/bases//web?ref=v1", web, true),
        ("github.com/acme/bases/web?ref=v1", web, true),
        ("GitHub.com/acme/bases.git//web/?ref=v1", web, true),
        ("https://github.com/acme/bases//web?version=v1&timeout=90s", web, true),
        ("https://github.com/acme/bases//web", web, false),
        ("https://github.com/acme/bases?ref=v1", web, false),
        ("https://github.com/acme/bases//web/x?ref=v1", web, false),
        ("https://github.com/acme/bases//web?ref=v10", web, false),
        ("https://github.com/acme/bases//web?ref=V1", web, false),
        ("https://github.com/Acme/bases//web?ref=v1", web, false),
        ("http://github.com/acme/bases//web?ref=v1", web, true),
        ("git@github.com:acme/bases//web?ref=v1", web, false),
        ("github.com/acme", web, false),
        ("github.com", web, false),
        ("github.com/acme/bases", "https://github.com/acme/bases", true),
        ("github.com/acme/bases", "https://github.com/acme/bases?ref=v1", false),
        ("github.com/acme/bases", "git@github.com:acme/bases", true),
        ("github.com/acme/bases?ref=${VERSION}", "https://github.com/acme/bases?ref=${VERSION}", true),
        (odd, odd, true),
        ("git.example.com/a/b.git/c?ref=v1", odd, true),
        ("git.example.com/a/b//c?ref=v1", odd, true),
        ("https://git.example.com/a//b/c?ref=v1", odd, false),
        ("https://git.example.com/a/b/c//?ref=v1", odd, false),
        ("https://git.example.com:8443/a/b//c?ref=v1", odd, false),
        ("file:///srv/git//a?ref=v1", "file:///srv/git//a?ref=v1", true),
        ("ssh://git@git.example.com//a", "ssh://git@git.example.com//a", true),
        ("ssh://git@git.example.com//a", "ssh://git@git.example.com/a.git", false),
        ("git@git.example.com:a", "git@git.example.com:/a", false),
    ] {
        assert_eq!(covers(&format!("url: '{entry}'"), &repository(text)), expected, "{entry} {text}");
    }
    let file = "https://files.example.com/a/x.yaml?a=b";
    for (entry, expected) in [
        (file, true),
        ("files.example.com:443/a/x.yaml?a=b", true),
        ("https://files.example.com/a/x.yaml", false),
        ("https://files.example.com/a//x.yaml?a=b", false),
        ("https://files.example.com/a/x.yaml.git?a=b", false),
        ("https://files.example.com/a", false),
        ("http://files.example.com/a/x.yaml?a=b", false),
    ] {
        assert_eq!(covers(&format!("url: '{entry}'"), &http(file)), expected, "{entry}");
    }
    let chart = |version: &str| {
        let [url, chart] = ["https://charts.example.com", "redis"].map(str::to_owned);
        let version = Some(version.to_owned()).filter(|version| !version.is_empty());
        Subject::Remote(Upstream::Chart { url, chart, version })
    };
    for (entry, version, expected) in [
        ("https://charts.example.com#redis@1.2.3", "1.2.3", true),
        ("charts.example.com/#redis@1.2.3", "1.2.3", true),
        ("https://charts.example.com#redis", "1.2.3", false),
        ("https://charts.example.com#redis", "", true),
        ("https://charts.example.com#redis@1.2", "1.2.3", false),
        ("https://charts.example.com#red@1.2.3", "1.2.3", false),
        ("https://charts.example.com/redis#redis@1.2.3", "1.2.3", false),
    ] {
        assert_eq!(covers(&format!("chart: '{entry}'"), &chart(version)), expected, "{entry}");
    }
    for (entry, image, expected) in [
        ("gcr.io/acme/fn:v1", "gcr.io/acme/fn:v1", true),
        ("gcr.io/acme/fn", "gcr.io/acme/fn:v1", false),
        ("gcr.io/acme", "gcr.io/acme/fn:v1", false),
        ("docker.io/library/busybox", "busybox", true),
        ("busybox", "busybox:latest", false),
        ("fn@sha256:abc", "fn:v1@sha256:abc", false),
    ] {
        let image = Subject::Remote(Upstream::Image { image: image.to_owned() });
        assert_eq!(covers(&format!("image: '{entry}', rules: [remote-reference]"), &image), expected, "{entry}");
    }
}

#[test]
fn an_entry_that_is_not_clearly_one_reference_is_refused() {
    for (entry, why) in [
        ("url: github.com/acme/*", "is a glob: for everything that a glob matches, write `refs: any`"),
        ("url: '*'", "is a glob"),
        ("url: 'github.com/{acme,other}/bases'", "is a glob"),
        ("url: '*.example.com/x?ref=v1'", "is a glob"),
        ("chart: charts.example.com", "has no chart: write URL#NAME@VERSION"),
        ("chart: 'https://charts.example.com#'", "has no chart: write URL#NAME@VERSION"),
        ("chart: 'https://charts.example.com#a@b@1'", "is ambiguous"),
        ("url: github.com/acme/../x", "`..`"),
        ("url: 'github.com/acme/x#y'", "is ambiguous"),
        ("url: 'github.com/acme/x?ref=a b'", "is ambiguous"),
        ("url: 'htps://github.com/acme/x'", "has the scheme `htps`"),
        ("url: 'https://github.com/acme/%2e%2e/x'", "contains `%2e%2e`"),
        ("url: gïthub.com/o/r", "has the host"),
    ] {
        is_refused_for(&format!("allow: [{{{entry}, reason: r}}]\n"), why);
    }
}

mod generated {
    use proptest::prelude::*;
    use proptest::sample::select;

    use super::*;

    fn reference() -> impl Strategy<Value = String> {
        let hosts = [
            "https://github.com/",
            "git@github.com:",
            "ssh://git@h.example/",
            "http://h.example/",
            "https://h.example:8443/",
            "file:///",
        ];
        let names = || select(vec!["o", "r", "r.git", "_git", "a", "a.git", "", "..", "%2e", "x.yaml", "a@b", "é"]);
        let queries = [
            "",
            "?ref=v1",
            "?ref=V1",
            "?version=v1",
            "?ref=a%26b",
            "?ref=a+b",
            "?ref=",
            "?ref=v1#x",
            "?x=y",
            "?ref=%zz",
            "#ref",
        ];
        let path = proptest::collection::vec((names(), select(vec!["/", "//"])), 1..5);
        (select(hosts.to_vec()), path, select(queries.to_vec())).prop_map(|(host, path, query)| {
            let path: String = path.into_iter().flat_map(|(name, end)| [name, end]).collect();
            format!("{host}{}{query}", path.trim_end_matches('/'))
        })
    }

    /// What makes one reference differ from another: read as kustomize reads it, not by the code for entries.
    fn identity(subject: &Subject) -> String {
        match subject {
            Subject::Remote(Upstream::Git { url, path, reference, .. }) => {
                let url = url.strip_suffix(".git").unwrap_or(url);
                let url = url.replacen("git@github.com:", "ssh://github.com/", 1).replace("git@", "");
                format!("{} {path} {reference:?}", url.trim_end_matches('/'))
            }
            other => format!("{other:?}"),
        }
    }

    fn subjects(text: &str) -> Vec<Subject> {
        let git = reference::RepoSpec::parse(text).is_ok().then(|| repository(text));
        git.into_iter().chain(text.starts_with("http").then(|| http(&crate::message::redact::url(text)))).collect()
    }

    proptest! {
        #[test]
        fn an_entry_for_one_reference_covers_no_other(a in reference(), b in reference()) {
            for subject in subjects(&a) {
                let Some(exception) = Config::exception(Rule::RemoteReference, &subject, "") else { continue };
                let entry = Config::entries(&[&exception]).concat();
                let config = parse(&format!("allow:\n{entry}\n"));
                prop_assert!(config.reason(Rule::RemoteReference, &subject).is_some(), "{} {:?}", entry, subject);
                for other in subjects(&b) {
                    // One URL may be both a repository and a file: the field that names it says which.
                    let kind = |subject: &Subject| subject.upstream().map(std::mem::discriminant);
                    if kind(&subject) == kind(&other) && identity(&subject) != identity(&other) {
                        let covered = config.reason(Rule::RemoteReference, &other).is_some();
                        prop_assert!(!covered, "{} covers {:?}", entry, other);
                    }
                }
            }
        }
    }
}
