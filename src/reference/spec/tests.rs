use super::*;

/// What a host may be written as, and what git gets.
#[rustfmt::skip]
const HOSTS: &[(&str, &str)] = &[
    ("gitHub.com/", "https://github.com/"),
    ("github.com:", "https://github.com/"),
    ("http://github.com/", "https://github.com/"),
    ("https://github.com/", "https://github.com/"),
    ("hTTps://github.com/", "https://github.com/"),
    ("https://github.com:443/", "https://github.com/"),
    ("https://user@github.com/", "user@github.com:"),
    ("https://user:tok@github.com/", "https://user:tok@github.com/"),
    ("https://git-codecommit.us-east-2.amazonaws.com/", "https://git-codecommit.us-east-2.amazonaws.com/"),
    ("https://fabrikops2.visualstudio.com/", "https://fabrikops2.visualstudio.com/"),
    ("ssh://git.example.com:7999/", "ssh://git.example.com:7999/"),
    ("git::https://gitlab.com/", "https://gitlab.com/"),
    ("GIT::http://git.example.com/", "http://git.example.com/"),
    ("HTTPS://GitLab.com/", "https://GitLab.com/"),
    ("git@github.com:", "git@github.com:"),
    ("git@github.com/", "git@github.com:"),
    ("git::git@github.com:", "git@github.com:"),
    ("org-12345@github.com:", "org-12345@github.com:"),
    ("org-12345@GitHub.com/", "org-12345@github.com:"),
    ("ssh://git@github.com/", "git@github.com:"),
    ("ssh://git@github.com:22/", "git@github.com:"),
    ("ssh://github.com/", "github.com:"),
    ("ssh://git@ssh.github.com:443/", "ssh://git@ssh.github.com:443/"),
    ("git@gitlab.com:", "git@gitlab.com:"),
    ("git@gitlab.com/", "git@gitlab.com/"),
    ("https://user@host.example/", "https://user@host.example/"),
    ("https://[2001:db8::1]:8443/", "https://[2001:db8::1]:8443/"),
    ("https:///", "https:///"),
    ("g\u{130}thub.com/", "https://github.com/"),
];

/// A text; its host, repository path, path and ref.
#[rustfmt::skip]
const SPLITS: &[(&str, &str, &str, &str, &str)] = &[
    ("github.com/org/repo", "https://github.com/", "org/repo", "", ""),
    ("gitHub.com/org/repo/p?ref=v1", "https://github.com/", "org/repo", "p", "v1"),
    ("https://github.com/org/repo//p/q/?ref=v1.0.6", "https://github.com/", "org/repo", "p/q/", "v1.0.6"),
    ("https://github.com/org/repo.git/p", "https://github.com/", "org/repo.git", "p", ""),
    ("http://github.com/o/r.git/d", "https://github.com/", "o/r.git", "d", ""),
    ("git@github.com:org/repo/p", "git@github.com:", "org/repo", "p", ""),
    ("ssh://git@github.com/org/repo//p?ref=v1", "git@github.com:", "org/repo", "p", "v1"),
    ("ssh://git@ssh.github.com:443/U/R.git", "ssh://git@ssh.github.com:443/", "U/R.git", "", ""),
    ("https://gitlab.com/g/sub/repo//p?ref=v1", "https://gitlab.com/", "g/sub/repo", "p", "v1"),
    ("https://gitlab.com/g/sub/repo.git/p?ref=v1", "https://gitlab.com/", "g/sub/repo.git", "p", "v1"),
    ("https://gitlab.com/g/sub/repo/p", "https://gitlab.com/", "g/sub", "repo/p", ""),
    ("git@host:infra/k8s/x.git?ref=v0.1.0", "git@host:", "infra/k8s/x.git", "", "v0.1.0"),
    ("git@gitlab2.sqtools.ru:10022/infra/x.git?ref=v0", "git@gitlab2.sqtools.ru:", "10022/infra/x.git", "", "v0"),
    ("git@gitlab.com/user:name/R.git/p", "git@gitlab.com/", "user:name/R.git", "p", ""),
    ("git@bitbucket.org/company/project.git//p", "git@bitbucket.org/", "company/project.git", "p", ""),
    ("git@bitbucket.org:c/p.git//path?ref=b", "git@bitbucket.org:", "c/p.git", "path", "b"),
    ("ssh://git@bitbucket.example.com:7999/proj/repo.git//p", "ssh://git@bitbucket.example.com:7999/", "proj/repo.git", "p", ""),
    ("https://bitbucket.example.com/scm/proj/repo.git", "https://bitbucket.example.com/", "scm/proj/repo.git", "", ""),
    ("https://bitbucket.org/ws/repo/src/main/p", "https://bitbucket.org/", "ws/repo", "src/main/p", ""),
    ("https://u@dev.azure.com/org/proj/_git/repo//p", "https://u@dev.azure.com/", "org/proj/_git/repo", "p", ""),
    ("https://org.visualstudio.com/proj/_git/repo/p", "https://org.visualstudio.com/", "proj/_git/repo", "p", ""),
    ("https://dev.azure.com/org/proj/_git/repo?path=/p&version=GBmain", "https://dev.azure.com/", "org/proj/_git/repo", "", "GBmain"),
    ("git@ssh.dev.azure.com:v3/org/proj/repo//p", "git@ssh.dev.azure.com:", "v3/org/proj/repo", "p", ""),
    ("https://itfs.mycompany.com/collection/project/_git/somerepos/dir?version=v1.0.0", "https://itfs.mycompany.com/", "collection/project/_git/somerepos", "dir", "v1.0.0"),
    ("git::https://itfs.mycompany.com/collection/project/_git/somerepos", "https://itfs.mycompany.com/", "collection/project/_git/somerepos", "", ""),
    ("https://git-codecommit.us-east-2.amazonaws.com/someorg/somerepo/dir", "https://git-codecommit.us-east-2.amazonaws.com/", "someorg/somerepo", "dir", ""),
    ("https://git-codecommit.us-east-2.amazonaws.com/v1/repos/r", "https://git-codecommit.us-east-2.amazonaws.com/", "v1/repos", "r", ""),
    ("https://gist.github.com/HASH.git", "https://gist.github.com/", "HASH.git", "", ""),
    ("git@gist.github.com:HASH.git", "git@gist.github.com:", "HASH.git", "", ""),
    ("https://gist.github.com/user/HASH", "https://gist.github.com/", "user/HASH", "", ""),
    ("https://example.org/path/to/repo//dev", "https://example.org/", "path/to/repo", "dev", ""),
    ("ssh://alice@example.com/path/to/repo//dev", "ssh://alice@example.com/", "path/to/repo", "dev", ""),
    ("https://authority/org/repo?ref=includes.git/x", "https://authority/", "org/repo", "", "includes.git/x"),
    ("https://authority/org/repo/?ref=includes_git/x", "https://authority/", "org/repo", "", "includes_git/x"),
    ("https://authority/org/repo/%-invalid", "https://authority/", "org/repo", "%-invalid", ""),
    ("file:///srv/repo.git/p?ref=b", "file://", "/srv/repo.git", "p", "b"),
    ("file:///srv/repo//p?ref=b", "file://", "/srv/repo", "p", "b"),
    ("FILE:///srv/repo/p", "file://", "/srv/repo/p", "", ""),
    ("file://a/b", "file://", "a/b", "", ""),
    ("file://git@home/x.git//p", "file://", "git@home/x.git", "p", ""),
    ("file://../repo//p", "file://", "../repo", "p", ""),
    ("git::https://h/o/r//p", "https://h/", "o/r", "p", ""),
    ("git::ssh://git@h/o/r", "ssh://git@h/", "o/r", "", ""),
    ("https://host/a/x.tar.gz", "https://host/", "a/x.tar.gz", "", ""),
    ("github.com/Org/repo/dir?ref=x", "https://github.com/", "Org/repo", "dir", "x"),
    ("app@v1/base/x", "app@v1/", "base/x", "", ""),
    // Found where it was not meant.
    ("https://github.com/org/repo/.github/deploy", "https://github.com/", "org/repo/.git", "hub/deploy", ""),
    ("https://github.com/org/.github/deploy", "https://github.com/", "org/.git", "hub/deploy", ""),
    ("https://github.com/org/repo//.github/deploy", "https://github.com/", "org/repo", ".github/deploy", ""),
    ("https://host/org/my_git/a/b", "https://host/", "org/my_git/a", "b", ""),
    ("https://host/org/x//my_git/a/b", "https://host/", "org/x//my_git/a", "b", ""),
    ("https://host/o/r.git.git/p", "https://host/", "o/r.git", ".git/p", ""),
    ("https://host/o/r?ref=a&ref=b", "https://host/", "o/r", "", "a"),
    ("https://host/o/r?ref=v1?x", "https://host/", "o/r", "", "v1?x"),
    ("https://host/o/r#x?ref=v1", "https://host/", "o/r#x", "", "v1"),
    ("https://host/o//", "https://host/", "o", "", ""),
    ("https://host//r/p", "https://host/", "/r", "p", ""),
    ("github.com:443/o/r", "https://github.com/", "443/o", "r", ""),
];

fn parse(text: &str) -> RepoSpec {
    RepoSpec::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn assert_split(text: &str, host: &str, repo_path: &str, path: &str, reference: &str) {
    let spec = parse(text);
    assert_eq!(spec.host, host, "{text}");
    assert_eq!(spec.repo_path, repo_path, "{text}");
    assert_eq!(spec.path, path, "{text}");
    assert_eq!(spec.reference.unwrap_or_default(), reference, "{text}");
    assert!(!spec.query_dropped, "{text}");
}

#[test]
fn every_spelling_of_a_host() {
    for (written, host) in HOSTS {
        for repo in ["someOrg/someRepo", "kubernetes/website"] {
            for path in ["README.md", "foo/krusty.txt", ""] {
                for reference in ["someBranch", "v0.1.0", "feature/x", ""] {
                    for separator in if path.is_empty() { [""; 3] } else { ["/", "//", "///"] } {
                        let mut text = format!("{written}{repo}{separator}{path}");
                        if !reference.is_empty() {
                            text = format!("{text}?ref={reference}");
                        }
                        assert_split(&text, host, repo, path, reference);
                        assert_eq!(parse(&text).clone_spec().exposed(), format!("{host}{repo}"));
                    }
                }
            }
        }
    }
}

#[test]
fn splits() {
    for (text, host, repo_path, path, reference) in SPLITS {
        assert_split(text, host, repo_path, path, reference);
    }
}

#[test]
fn not_git() {
    for (text, reason) in [
        ("/tmp", "it is an absolute path"),
        ("//github.com/o/r", "it is an absolute path"),
        ("", "it has no scheme that kustomize reads as a git repository"),
        ("../../tmp", "it has no scheme that kustomize reads as a git repository"),
        ("src/github.com/org/repo", "it has no scheme that kustomize reads as a git repository"),
        ("iauhsdiuashduas", "it has no scheme that kustomize reads as a git repository"),
        ("htxxxtp://github.com/", "it has no scheme that kustomize reads as a git repository"),
        ("git::___", "it has no scheme that kustomize reads as a git repository"),
        ("git::git::https://h/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("github.com!org/repo.git//path", "it has no scheme that kustomize reads as a git repository"),
        ("github.com", "it has no scheme that kustomize reads as a git repository"),
        ("gh:org/repo", "it has no scheme that kustomize reads as a git repository"),
        ("git://github.com/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("git+ssh://git@github.com/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("s3::https://s3.amazonaws.com/b/x", "it has no scheme that kustomize reads as a git repository"),
        ("oci://ghcr.io/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("host.xz:path/to/repo", "it has no scheme that kustomize reads as a git repository"),
        ("C:/x/y", "it has no scheme that kustomize reads as a git repository"),
        ("user:pw@host/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("1user@host/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("my_user@host/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("https:/host/o/r", "it has no scheme that kustomize reads as a git repository"),
        ("https://", "it has no host"),
        ("git@", "it has no host"),
        ("ssh://git@?ref=x", "it has no host"),
        ("ssh://git.example.com", "it has no repository"),
        ("https://host?ref=group/version", "it has no repository"),
        ("https://github.com/thisisa404.yaml", "it has no repository"),
        ("https://github.com:org/repo", "it has no repository"),
        ("file:////tmp//path", "it has no repository"),
        ("file://", "it has no repository"),
        ("git@scp://github.com/org/repo.git//path", "it has no repository"),
        ("app@v1/base", "it has no repository"),
        ("git@:x", "it has no repository"),
        ("https://host///o/r", "it has no repository"),
        ("https://github.com/org/repo.git//path/../../exits/repo", "its directory is outside of the repository"),
        ("https://github.com/org/repo.git/../x", "its directory is outside of the repository"),
        ("https://github.com/org/repo//..", "its directory is outside of the repository"),
        ("https://github.com/org/repo///../x", "its directory is outside of the repository"),
    ] {
        assert_eq!(RepoSpec::parse(text), Err(reason), "{text}");
    }
}

#[test]
fn reasons_are_phrases() {
    let error = RepoSpec::parse("https://host").unwrap_err();
    assert_eq!(error, "it has no repository");
}

#[test]
fn query() {
    let spec = parse("https://host/o/r?ref=v1&submodules=false&timeout=1m");
    assert_eq!(spec.reference.as_deref(), Some("v1"));
    assert!(!spec.submodules);
    assert_eq!(spec.timeout, Some(Duration::from_secs(60)));

    let spec = parse("https://host/o/r");
    assert!(spec.submodules && !spec.query_dropped);
    assert_eq!((spec.reference, spec.timeout), (None, None));

    for text in [
        "https://host/o/r?ref=v1;x=y",
        "https://host/o/r?ref=v1&submodules=0;",
        "https://host/o/r?ref=%zz",
        "https://host/o/r?%",
    ] {
        let spec = parse(text);
        assert!(spec.query_dropped && spec.submodules, "{text}");
        assert_eq!(spec.reference, None, "{text}");
        assert_eq!(spec.clone_spec(), "https://host/o/r".into(), "{text}");
    }
}

#[test]
fn directories_are_cleaned() {
    for (path, directory) in [
        ("", ""),
        ("/", ""),
        ("//.", ""),
        ("//p/q/", "p/q"),
        ("//p//q", "p/q"),
        ("//./p/../q/.", "q"),
        ("//p/..", ""),
        ("//...", "..."),
        ("////../x", "../x"),
    ] {
        let spec = parse(&format!("https://host/o/r{path}"));
        assert_eq!(spec.directory(), directory, "{path}");
    }
}

#[test]
fn debug_shows_no_password() {
    let spec = parse("https://user:hunter2@host/o/r?ref=v1");
    assert!(spec.clone_spec().exposed().contains("hunter2"));
    let shown = format!("{spec:?}");
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("https://host/o/r") && shown.contains("v1"), "{shown}");
}

#[test]
fn hostile_texts_do_not_panic() {
    let pieces = [
        "git::",
        "https://",
        "file://",
        "é",
        "\u{130}",
        "@",
        ":",
        "/",
        "//",
        ".git",
        "_git/",
        "?",
        "..",
        "%",
        "a",
        "github.com",
        "\0",
        "ref=",
    ];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                for d in pieces {
                    let text = format!("{a}{b}{c}{d}");
                    if let Ok(spec) = RepoSpec::parse(&text) {
                        assert!(!spec.host.is_empty() && !spec.repo_path.is_empty(), "{text:?}");
                    }
                }
            }
        }
    }
}
