//! Globs of directories.

use super::*;

/// Reads one glob.
fn globs(text: &str) -> Result<Globs, String> {
    Globs::try_from(vec![Glob::try_from(text.to_owned())?])
}

#[test]
fn globs_match_directories_from_the_top() {
    for (glob, yes, no) in [
        ("apps", vec!["apps"], vec!["", "apps/web", "x/apps", "app"]),
        ("apps/*", vec!["apps/web", "apps/.web"], vec!["apps", "apps/web/base", "x/apps/web"]),
        ("*", vec!["apps"], vec!["", "apps/web"]),
        ("a*", vec!["a", "apps"], vec!["apps/web", "bapps"]),
        ("**", vec!["", "apps", "apps/web"], vec![]),
        ("**/base", vec!["base", "a/base", "a/b/base"], vec!["base/x", "a/basement"]),
        ("apps/**", vec!["apps/web", "apps/web/base"], vec!["apps", "", "x/apps/web"]),
        ("a/**/z", vec!["a/z", "a/b/z", "a/b/c/z", "a/z/z"], vec!["a", "z", "a/z/b"]),
        ("**/a/**/a/*", vec!["a/a/b", "x/a/b/a/c", "a/a/a"], vec!["a/a", "a/b/c"]),
        ("apps/{web,db}-?", vec!["apps/web-1", "apps/db-x"], vec!["apps/web-", "apps/web-12", "apps/web-/"]),
        ("apps/[a-c]x", vec!["apps/ax"], vec!["apps/dx", "apps//x"]),
        (".", vec![""], vec!["a", "."]),
        (".github/*", vec![".github/x"], vec!["github/x"]),
        ("été/*", vec!["été/é"], vec!["Été/é"]),
    ] {
        let globs = globs(glob).unwrap();
        for directory in yes {
            assert!(globs.matches(directory), "{glob} {directory}");
        }
        for directory in no {
            assert!(!globs.matches(directory), "{glob} {directory}");
        }
    }
    for (glob, why) in [
        ("", "contains the name ``"),
        ("/apps", "contains the name ``"),
        ("apps/", "contains the name ``"),
        ("./apps", "contains the name `.`"),
        ("../apps", "contains the name `..`"),
        ("apps//web", "contains the name ``"),
        ("apps/**x", "alone between slashes"),
        ("apps/[!a]x", "would match `/`"),
        ("apps[^a]x", "would match `/`"),
        ("apps[+-9]x", "would match `/`"),
        ("apps/[a", "is not a glob"),
        ("{a/b,c}", "is not a glob"),
        ("apps\\", "is not a glob"),
    ] {
        let refused = Glob::try_from(glob.to_owned()).unwrap_err();
        assert!(refused.contains(why), "{glob}: {refused}");
    }
    // No text makes the reader panic, or is slow.
    let pieces =
        ["?", "*", "**/", "**/?", "{a,b}", "{a,{b,?}}", "[a-z]", "é?", "{", "[", "\\", "a/*", "{**/,a}", "[.]"];
    for piece in pieces {
        let globs = globs(&piece.repeat(1000 / piece.len()));
        assert!(!globs.is_ok_and(|globs| globs.covers(&"b/".repeat(2000))) || piece.contains('*'));
    }
    // Guessing where each `**` ends would take longer than anybody waits.
    let globs = globs(&format!("{}b", "**/a/".repeat(100))).unwrap();
    assert!(!globs.matches(&"a/".repeat(2000)));
    assert!(globs.matches(&format!("{}b", "a/".repeat(2000))));
}

#[test]
fn the_innermost_scope_bounds() {
    let config = parse("scopes: [apps/*, apps/web/**/private, clusters]\n");
    for (directory, scope) in [
        ("apps/web", Some("apps/web")),
        ("apps/web/base", Some("apps/web")),
        ("apps/web/a/private/x", Some("apps/web/a/private")),
        ("apps", None),
        ("", None),
        ("clusters/prod", Some("clusters")),
        ("other/clusters", None),
    ] {
        assert_eq!(config.scope_of(directory).as_deref(), scope, "{directory}");
    }
    assert_eq!(parse("scopes: [.]\n").scope_of("a"), None);
    assert_eq!(parse("scopes: [.]\n").scope_of("").as_deref(), Some(""));
}
