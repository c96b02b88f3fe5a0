//! Go's `path.Match`: `*` and `?` within one name, `[a-z]`, `\` before what stands for itself; no `**`.

use globset::{GlobBuilder, GlobMatcher};

/// A pattern for the whole of a name.
#[derive(Debug, Clone)]
pub(in crate::targets) struct Pattern(GlobMatcher);

impl Pattern {
    /// Reads a pattern; none where it is broken.
    pub(in crate::targets) fn new(pattern: &str) -> Option<Pattern> {
        // Braces are nothing special, and two stars are one.
        let mut glob = pattern.replace('{', "\\{").replace('}', "\\}");
        while glob.contains("**") {
            glob = glob.replace("**", "*");
        }
        let glob = GlobBuilder::new(&glob).literal_separator(true).backslash_escape(true).build();
        Some(Pattern(glob.ok()?.compile_matcher()))
    }

    /// Returns whether it matches all of the name.
    pub(in crate::targets) fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Pattern) -> bool {
        self.0.glob() == other.0.glob()
    }
}

impl Eq for Pattern {}

#[cfg(test)]
mod tests {
    use super::Pattern;

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
            let found = Pattern::new(pattern).map(|pattern| pattern.matches(name));
            assert_eq!(found, expected, "{pattern} {name}");
        }
    }
}
