use std::collections::HashMap;

use super::*;

fn file(url: &str) -> String {
    file_segments(url).join("/")
}

fn root(text: &str) -> String {
    let spec = RepoSpec::parse(text).expect(text);
    root_segments(&spec, spec.reference.as_deref().unwrap_or_default()).join("/")
}

/// Asserts that every segment is what the documentation of [`segment`] promises.
fn assert_safe(segment: &str) {
    assert!((1..=100).contains(&segment.len()), "{segment}");
    assert!(segment.chars().all(is_allowed), "{segment}");
    assert!(!segment.starts_with('-') && !segment.ends_with('.'), "{segment}");
    let lower = segment.to_lowercase();
    assert!(lower != "_git" && lower != ".git" && lower != ".gitattributes");
    assert!(!is_reserved(segment), "{segment}");
}

#[test]
fn file_places_of_kustomize_localize() {
    for (url, place) in [
        (
            "https://raw.githubusercontent.com/org/repo/ref/path/to/file.yaml",
            "raw.githubusercontent.com/org/repo/ref/path/to/file.yaml",
        ),
        ("https://host", "host"),
        ("https://host//", "host"),
        ("http://userinfo@host:1234/path/file?query", "host/path/file"),
        ("https://host/path/blah/../to/foo/bar/../../file/./", "host/path/to/file"),
        ("https://host/foo/bar/baz/../../../../file", "host/file"),
        ("HTTPS://HOST/Path", "host/Path"),
        ("https://host/a//b#c/d", "host/a/b"),
        ("https://u:p@host/x.yaml?token=hunter2#s", "host/x.yaml"),
    ] {
        assert_eq!(file(url), place, "{url}");
    }
}

#[test]
fn file_places_where_we_differ() {
    for (url, place) in [
        ("https://host/file%2Eyaml", "host/file_2Eyaml-"),
        ("https://host/a%20b.yaml", "host/a_20b-"),
        ("https://[2001:4860:4860::8888]/file.yaml", "2001_4860_4860__8888-"),
        ("https://host/*", "host/_-"),
        ("https://host/aux/file", "host/_aux-"),
        ("https://host/.../.file", "host/...-"),
        ("https://host/%2e%2e/x", "host/_2e_2e-"),
        ("https://host/a\\..\\b", "host/a_.._b-"),
        ("https://host/.git/config", "host/.git-"),
        ("https://host/.GitAttributes", "host/.GitAttributes-"),
        ("https://host/_git/x", "host/_git-"),
        ("https://host/-x", "host/_-x-"),
        ("https://file-schemed/x", "file-schemed_-"),
    ] {
        assert!(file(url).starts_with(place), "{url}: {}", file(url));
        file_segments(url).iter().for_each(|segment| assert_safe(segment));
    }
}

#[test]
fn a_url_without_a_host_leaves_no_trace() {
    for url in [
        "https:/u:hunter2@host/x",
        "https:u:hunter2@host/x",
        "https://u:hunter2 @host/x",
        "https:///u:hunter2@host/x",
        "u:hunter2@host/x",
    ] {
        assert_eq!(file(url), "_-e3b0c442", "{url}");
    }
}

#[test]
fn root_places_of_kustomize_localize() {
    for (text, place) in [
        (
            "https://github.com/kubernetes-sigs/kustomize//examples?ref=v1.0.6",
            "github.com/kubernetes-sigs/kustomize/v1.0.6",
        ),
        ("ssh://git@gitlab.com/org/repo//p?ref=value", "gitlab.com/org/repo/value"),
        ("git@gitlab.com:org/repo//p?ref=value", "gitlab.com/org/repo/value"),
        ("git@gitlab.com/org/repo//p?ref=value", "gitlab.com/org/repo/value"),
        ("git@github.com:org/repo?ref=value", "github.com/org/repo/value"),
        ("https://gitlab.com/org/repo.git//p?ref=value", "gitlab.com/org/repo/value"),
        ("https://gitlab.com/org/repo.git.git//p?ref=v", "gitlab.com/org/repo.git/v"),
        ("https://gitlab.com/org/repo//p?ref=group/version/kind", "gitlab.com/org/repo/group/version/kind"),
        ("https://github.com/parent-org/child-org/repo.git?ref=value", "github.com/parent-org/child-org/repo/value"),
        ("https://u:p@GitLab.com:8443/Org/repo?ref=v1", "gitlab.com/Org/repo/v1"),
        ("ssh://git@host:7999/proj/repo.git//p?ref=v1", "host/proj/repo/v1"),
        ("file:///srv/a/repo.git//p?ref=v1", "file-schemed/srv/a/repo/v1"),
        ("file://a/./b//p?ref=v1", "file-schemed/a/b/v1"),
        ("file:///a/../../b//p?ref=v1", "file-schemed/b/v1"),
        ("https://github.com/org/repo", "github.com/org/repo"),
    ] {
        assert_eq!(root(text), place, "{text}");
    }
}

#[test]
fn root_places_where_we_differ() {
    for (text, place) in [
        ("ssh://git@[2001:db8::1]:22/o/r?ref=v1", "2001_db8__1-"),
        ("https://gitlab.com/org./repo//p?ref=v1", "gitlab.com/org.-"),
        ("https://gitlab.com/org/repo..git//p?ref=v1", "gitlab.com/org/repo.-"),
        ("https://dev.azure.com/o/p/_git/r?ref=v1", "dev.azure.com/o/p/_git-"),
        ("https://github.com/org/.github/deploy?ref=v1", "github.com/org/.git-"),
        ("git@gitlab.com/user:name/R.git/p?ref=v1", "gitlab.com/user_name-"),
        ("https://host/o/r?ref=v1=2", "host/o/r/v1_2-"),
        ("https://host/o/r?ref=größe", "host/o/r/gr__e-"),
    ] {
        assert!(root(text).starts_with(place), "{text}: {}", root(text));
        root(text).split('/').for_each(assert_safe);
    }
}

#[test]
fn a_changed_segment_is_deterministic_and_keeps_the_extension() {
    for (name, made) in [
        ("", "_-e3b0c442"),
        ("*", "_-684888c0"),
        ("file%2Eyaml", "file_2Eyaml-7e9873b2"),
        ("aux.tar.gz", "_aux.tar-a305d1af.gz"),
        ("a b.yaml", "a_b-ed89bc8f.yaml"),
        (".git", ".git-4d0a4dff"),
    ] {
        assert_eq!(segment(name), made, "{name}");
    }
    let long = "x".repeat(200) + ".yaml";
    assert_eq!(segment(&long).len(), 100);
    assert!(segment(&long).ends_with(".yaml"));
}

#[test]
fn a_name_that_fits_is_not_changed() {
    for name in [
        "v1.0.6",
        "v0.0.0-20240131-deadbeef",
        "my_app-1.2.3",
        "release-1234567",
        "CON1",
        "auxiliary",
        "com10",
        ".github",
        ".file",
        "a+b",
        "x_git",
        &"x".repeat(100),
    ] {
        assert_eq!(segment(name), name);
        assert_safe(name);
    }
}

#[test]
fn two_names_never_meet() {
    let mut names: Vec<String> = Vec::new();
    let pieces = [
        "",
        "a",
        ".",
        "..",
        "-",
        "_",
        " ",
        "%",
        "aux",
        ".yaml",
        ".git",
        "_git",
        "+",
        "/",
        "é",
        "Z",
        "con",
        "-deadbeef",
        ".7",
    ];
    for a in pieces {
        for b in pieces {
            for c in pieces {
                names.push(format!("{a}{b}{c}"));
            }
        }
    }
    for length in 88..=120 {
        names.push("x".repeat(length));
        names.push("x".repeat(length) + ".yaml");
        names.push("-".repeat(length));
    }
    names.sort();
    names.dedup();
    // The attack: give another file the very name that was made for the first one.
    for _ in 0..2 {
        let made: Vec<String> = names.iter().map(|name| segment(name)).collect();
        names.extend(made);
        names.sort();
        names.dedup();
    }
    let mut seen: HashMap<String, &str> = HashMap::new();
    for name in &names {
        let made = segment(name);
        assert_safe(&made);
        if let Some(other) = seen.insert(made.clone(), name) {
            panic!("{other:?} and {name:?} both become {made:?}");
        }
    }
}

#[test]
fn default_names() {
    for (base, expected) in [
        (Some("beta"), "localized-beta"),
        (Some("/"), "localized"),
        (Some(""), "localized"),
        (None, "localized"),
        (Some("a/beta/"), "localized-beta"),
    ] {
        assert_eq!(default_new_dir(base, None), expected);
    }
    for (text, expected) in [
        ("https://github.com/org/repo?ref=value", "localized-repo-value"),
        ("https://github.com/org/repo?ref=group/version", "localized-repo-group-version"),
        (
            "https://github.com/k/kustomize//api/krusty/testdata/localize/simple?ref=kustomize/v4.5.7",
            "localized-simple-kustomize-v4.5.7",
        ),
        ("https://github.com/org/repo.git//a/b/?ref=v1", "localized-b-v1"),
        ("https://github.com/org/repo.git?ref=v1", "localized-repo.git-v1"),
        ("https://github.com/org/repo", "localized-repo"),
        ("git@gist.github.com:HASH.git?ref=v1", "localized-HASH.git-v1"),
    ] {
        let spec = RepoSpec::parse(text).expect(text);
        assert_eq!(default_new_dir(None, Some(&spec)), expected, "{text}");
        assert_eq!(default_new_dir(Some("x"), Some(&spec)), expected, "{text}");
    }
    let odd = default_new_dir(Some("my dir"), None);
    assert!(odd.starts_with("localized-my_dir-"), "{odd}");
    assert_safe(&odd);
}
