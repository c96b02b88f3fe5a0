//! The query of a git reference, read as Go's `net/url.ParseQuery` reads it.

use std::time::Duration;

use super::RepoSpec;
use super::go_url::escapes_are_valid;
use crate::message::redact;

/// The hint for a query that Go refuses.
pub(crate) const PLAIN_QUERY: &str = "write `?ref=TAG-OR-COMMIT` without `;`, and a `%` as `%25`";

/// The decoded pairs of a query, given without its `?`, in order. `None` if Go reports an error: a `;`, or a
/// `%` that is not followed by two hex digits.
pub(super) fn parse_query(query: &str) -> Option<Vec<(String, String)>> {
    if query.contains(';') || !escapes_are_valid(query) {
        return None;
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (unescape(key), unescape(value))
    });
    Some(pairs.collect())
}

/// The hint for a ref with a `+`, which is read as a space; `None` if it has none.
pub(crate) fn plus_hint(text: &str, spec: &RepoSpec) -> Option<String> {
    let (location, query) = text.split_once('?')?;
    let is_read = query.contains('+') && spec.reference.as_ref().is_some_and(|name| name.contains(' '));
    let written = redact::url(&format!("{location}?{}", query.replace('+', "%2B")));
    is_read.then(|| format!("a `+` in a query is a space: write {written}"))
}

/// Escapes a ref for a query. Characters that need no escape there stay.
pub(crate) fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for letter in name.chars() {
        if !letter.is_ascii() || letter.is_ascii_alphanumeric() || "-_./~@,=:".contains(letter) {
            escaped.push(letter);
        } else {
            escaped += &format!("%{:02X}", u32::from(letter));
        }
    }
    escaped
}

fn unescape(text: &str) -> String {
    let text = text.replace('+', " ");
    // Bytes that are not UTF-8 become U+FFFD, which `refuse_unsafe` refuses in a ref.
    percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// Parses whole seconds, or a whole number of hours, minutes or seconds with its unit. kustomize accepts any Go
/// duration; we ignore other forms, and zero.
pub(super) fn timeout(text: &str) -> Option<Duration> {
    let units = [("h", 3600), ("m", 60), ("s", 1)];
    let (number, unit) =
        units.iter().find_map(|(unit, seconds)| Some((text.strip_suffix(unit)?, *seconds))).unwrap_or((text, 1));
    // Rust, like Go, accepts a number that begins with `+`.
    let seconds = number.parse::<u32>().ok().filter(|number| *number > 0)?;
    Some(Duration::from_secs(u64::from(seconds) * unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> RepoSpec {
        RepoSpec::parse(&format!("github.com/o/r?{query}")).unwrap()
    }

    #[test]
    fn ref_wins_over_version_and_the_first_of_each_counts() {
        for (query, reference) in [
            ("", None),
            ("ref=v1.0.0", Some("v1.0.0")),
            ("version=master", Some("master")),
            ("version=master&ref=v1.0.0", Some("v1.0.0")),
            ("ref=a&ref=b", Some("a")),
            ("ref=&ref=b", None),
            ("ref=&version=v2", Some("v2")),
            ("ref", None),
            ("Ref=v1", None),
            ("&&ref=v1&", Some("v1")),
            ("%72ef=v1", Some("v1")),
            ("ref=a=b", Some("a=b")),
            ("ref=feature%2Fx", Some("feature/x")),
            ("ref=a+b", Some("a b")),
            ("ref=a%2Bb", Some("a+b")),
            ("ref=v1?x", Some("v1?x")),
            ("ref=v1#x", Some("v1#x")),
            ("ref=%ff", Some("\u{fffd}")),
        ] {
            let parsed = parse(query);
            assert_eq!(parsed.reference.as_deref(), reference, "{query}");
            assert!(!parsed.query_dropped, "{query}");
        }
    }

    #[test]
    fn a_query_that_go_refuses_is_dropped_whole() {
        for query in ["ref=v1;x=y", ";", "ref=%zz", "ref=v1&x=%", "ref=v1&submodules=false&%4=1", "ref=%%41"] {
            let parsed = parse(query);
            assert!(parsed.query_dropped, "{query}");
            assert_eq!(parsed.reference, None, "{query}");
            assert!(parsed.submodules, "{query}");
        }
    }

    #[test]
    fn submodules_is_a_go_boolean() {
        for (value, expected) in [
            ("", true),
            ("maybe", true),
            ("true", true),
            ("T", true),
            ("no", true),
            ("fALSE", true),
            ("false", false),
            ("False", false),
            ("FALSE", false),
            ("f", false),
            ("F", false),
            ("0", false),
        ] {
            let query = format!("version=master&submodules={value}");
            assert_eq!(parse(&query).submodules, expected, "{value}");
        }
    }

    #[test]
    fn a_timeout_is_a_whole_number_of_seconds_minutes_or_hours() {
        for (value, seconds) in [("61", 61), ("%2B61", 61), ("61s", 61), ("2m", 120), ("1h", 3600)] {
            assert_eq!(parse(&format!("timeout={value}")).timeout, Some(Duration::from_secs(seconds)), "{value}");
        }
        for value in ["", "jiffy", "0", "0s", "-1", "-1s", "1 s", "1d", "s", ".s", "1m1s", "1.5s", "99999999999", "1S"]
        {
            assert_eq!(parse(&format!("timeout={value}")).timeout, None, "{value}");
        }
    }
}
