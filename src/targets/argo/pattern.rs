//! Go's `path.Match`: `*` and `?` within one name, `[a-z]`, `\` before a literal character; no `**`.

use globset::{Glob, GlobBuilder, GlobMatcher};

/// A pattern of Go in the syntax of [`glob`].
pub(in crate::targets) fn in_go(pattern: &str) -> String {
    // In Go braces are literal, and two stars equal one.
    join_stars(pattern.replace('{', "\\{").replace('}', "\\}"))
}

/// A pattern with one star in place of several: Go knows no `**`.
fn join_stars(mut pattern: String) -> String {
    while pattern.contains("**") {
        pattern = pattern.replace("**", "*");
    }
    pattern
}

/// Reads a glob in which a star matches any number of directories; `None` if it is broken.
pub(in crate::targets) fn crossing(pattern: &str) -> Option<Glob> {
    let pattern = join_stars(pattern.to_owned());
    GlobBuilder::new(&pattern).literal_separator(false).backslash_escape(true).build().ok()
}

/// Reads a glob of paths, in which `**` matches any number of directories; `None` if it is broken.
pub(in crate::targets) fn glob(text: &str) -> Option<Glob> {
    GlobBuilder::new(text).literal_separator(true).backslash_escape(true).build().ok()
}

/// Reads a pattern for the whole of a path; `None` if it is broken.
pub(in crate::targets) fn matcher(pattern: &str) -> Option<GlobMatcher> {
    Some(glob(&in_go(pattern))?.compile_matcher())
}

/// The globs that match a path if `git ls-files`, which Argo CD runs, would list it for a pattern; `None` if the
/// pattern is broken.
pub(super) fn git_globs(pattern: &str) -> Option<Vec<Glob>> {
    let text = in_go(pattern);
    // In git `*` matches any number of directories.
    let mut globs = vec![crossing(&text)?];
    // A directory matches everything in it.
    if !pattern.contains(['*', '?', '[', '\\']) {
        globs.push(crossing(&format!("{}/*", text.trim_end_matches('/')))?);
    }
    Some(globs)
}

#[cfg(test)]
mod tests {
    use super::{git_globs, matcher};

    #[test]
    fn patterns_of_files_match_as_in_git() {
        for (pattern, name, expected) in [
            ("p1/*.json", "p1/a/config.json", true),
            ("p1/*.json", "p2/config.json", false),
            ("p1/**/config.json", "p1/config.json", false),
            ("p1/**/config.json", "p1/a/b/config.json", true),
            ("p1/*/config.json", "p1/a/b/config.json", true),
            ("**/config.json", "config.json", false),
            ("*config.json", "a/config.json", true),
            ("p1", "p1/a/config.json", true),
            ("p1/", "p1/a/config.json", true),
            ("p1", "p10/config.json", false),
            ("p?/a", "p1/a", true),
            ("a?b", "a/b", true),
            ("{a,b}/x", "a/x", false),
            ("[ab]/x", "b/x", true),
            ("a\\*", "a*", true),
            ("a\\*", "ab", false),
        ] {
            let globs = git_globs(pattern).unwrap();
            let is_match = globs.iter().any(|glob| glob.compile_matcher().is_match(name));
            assert_eq!(is_match, expected, "{pattern} {name}");
        }
        assert!(git_globs("[").is_none());
    }

    #[test]
    fn patterns_match_as_in_go() {
        // From Go's own `path/match_test.go`.
        for (pattern, name, expected) in [
            ("abc", "abc", Some(true)),
            ("*", "abc", Some(true)),
            ("*c", "abc", Some(true)),
            ("a*", "a", Some(true)),
            ("a*", "abc", Some(true)),
            ("a*", "ab/c", Some(false)),
            ("a*/b", "abc/b", Some(true)),
            ("a*/b", "a/c/b", Some(false)),
            ("a*b*c*d*e*/f", "axbxcxdxe/f", Some(true)),
            ("a*b*c*d*e*/f", "axbxcxdxexxx/f", Some(true)),
            ("a*b*c*d*e*/f", "axbxcxdxe/xxx/f", Some(false)),
            ("a*b?c*x", "abxbbxdbxebxczzx", Some(true)),
            ("a*b?c*x", "abxbbxdbxebxczzy", Some(false)),
            ("ab[c]", "abc", Some(true)),
            ("ab[b-d]", "abc", Some(true)),
            ("ab[e-g]", "abc", Some(false)),
            ("ab[^c]", "abc", Some(false)),
            ("ab[^e-g]", "abc", Some(true)),
            ("a\\*b", "a*b", Some(true)),
            ("a\\*b", "ab", Some(false)),
            ("a?b", "a/b", Some(false)),
            ("a*b", "a/b", Some(false)),
            ("[", "a", None),
            ("[^bc", "a", None),
            ("a[", "ab", None),
            ("*x", "xxx", Some(true)),
            ("apps/*/*", "apps/web/localized-files", Some(true)),
            ("apps/**", "apps/web/x", Some(false)),
            ("{a,b}", "a", Some(false)),
            ("{a,b}", "{a,b}", Some(true)),
        ] {
            let is_match = matcher(pattern).map(|pattern| pattern.is_match(name));
            assert_eq!(is_match, expected, "{pattern} {name}");
        }
    }
}
