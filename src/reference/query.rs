//! The query of a git reference, read as Go's `net/url.ParseQuery` reads it.

use std::time::Duration;

use super::go_url::escapes_are_valid;

/// What to do about a query that Go refuses.
pub(crate) const PLAIN_QUERY: &str = "write `?ref=TAG-OR-COMMIT` without `;`, and a `%` as `%25`";

/// What kustomize takes from the query of a git reference (`parseQuery` in its
/// `api/internal/git/repospec.go`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// The first `ref`, else the first `version`; `None` when both are absent or empty.
    pub(super) reference: Option<String>,
    /// The first `timeout`, if it is a positive number of seconds or a positive Go duration.
    pub(super) timeout: Option<Duration>,
    /// The first `submodules`, if it is a Go boolean; else true.
    pub(super) submodules: bool,
    /// Whether Go refuses the query, in which case kustomize ignores all of it.
    pub(super) dropped: bool,
}

impl Query {
    /// Reads a query, given without its `?`.
    pub(super) fn parse(query: &str) -> Self {
        let Some(pairs) = pairs(query) else {
            return Query { reference: None, timeout: None, submodules: true, dropped: true };
        };
        // An empty first value is not skipped in favour of a later one: it counts as absent.
        let first = |name: &str| {
            let value = pairs.iter().find(|(key, _)| key == name);
            value.map(|(_, value)| value).filter(|v| !v.is_empty())
        };
        Query {
            reference: first("ref").or_else(|| first("version")).cloned(),
            timeout: first("timeout").and_then(|value| timeout(value)),
            submodules: first("submodules").and_then(|v| go_bool(v)) != Some(false),
            dropped: false,
        }
    }
}

/// Returns the decoded pairs in order, or `None` when Go reports an error: a `;`, or a `%` that is
/// not followed by two hex digits.
///
/// Bytes that are not UTF-8 become U+FFFD, which [`super::refuse_unsafe`] refuses in a ref.
fn pairs(query: &str) -> Option<Vec<(String, String)>> {
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

fn unescape(text: &str) -> String {
    let text = text.replace('+', " ");
    percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
}

/// Reads a timeout as kustomize does: whole seconds, else a Go duration; zero and less do not count.
///
/// Seconds that overflow Go's nanosecond counter (about 292 years) do not count either; Go would
/// wrap around.
fn timeout(text: &str) -> Option<Duration> {
    match text.parse::<i64>() {
        Ok(seconds) if seconds > 0 => {
            let nanoseconds = seconds.checked_mul(1_000_000_000)?;
            Some(Duration::from_nanos(nanoseconds.unsigned_abs()))
        }
        _ => go_duration(text).filter(|duration| !duration.is_zero()),
    }
}

/// Reads what Go's `strconv.ParseBool` accepts.
fn go_bool(text: &str) -> Option<bool> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Some(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Some(false),
        _ => None,
    }
}

/// Reads what Go's `time.ParseDuration` accepts, such as `1m1.5s`; negative durations are `None`, as they make no sense
/// here.
fn go_duration(text: &str) -> Option<Duration> {
    /// The largest value of Go's `time.Duration`, in nanoseconds.
    const MAX: u128 = i64::MAX.unsigned_abs() as u128;

    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (whole, after) = leading_digits(rest);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => leading_digits(after),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return None;
        }
        let end = after.find(|c: char| c == '.' || c.is_ascii_digit());
        let (unit, after) = after.split_at(end.unwrap_or(after.len()));
        let unit: u64 = match unit {
            "ns" => 1,
            // U+00B5 is the micro sign, U+03BC the Greek letter mu.
            "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
            "ms" => 1_000_000,
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return None,
        };
        if !whole.is_empty() {
            let whole = whole.parse::<u64>().ok()?;
            total += u128::from(whole) * u128::from(unit);
        }
        total += fraction_of(fraction, unit);
        if total > MAX {
            return None;
        }
        rest = after;
    }
    u64::try_from(total).ok().map(Duration::from_nanos)
}

/// Returns the whole nanoseconds in `0.{digits}` of a unit; digits past the eighteenth cannot matter.
fn fraction_of(digits: &str, unit: u64) -> u128 {
    let mut value: u128 = 0;
    let mut scale: u128 = 1;
    for digit in digits.bytes().take(18) {
        value = value * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    value * u128::from(unit) / scale
}

fn leading_digits(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit());
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timeout_of(query: &str) -> Option<Duration> {
        Query::parse(query).timeout
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
            let parsed = Query::parse(query);
            assert_eq!(parsed.reference.as_deref(), reference, "{query}");
            assert!(!parsed.dropped, "{query}");
        }
    }

    #[test]
    fn a_query_that_go_refuses_is_dropped_whole() {
        for query in ["ref=v1;x=y", ";", "ref=%zz", "ref=v1&x=%", "ref=v1&submodules=false&%4=1", "ref=%%41"] {
            let parsed = Query::parse(query);
            assert!(parsed.dropped, "{query}");
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
            assert_eq!(Query::parse(&query).submodules, expected, "{value}");
        }
    }

    #[test]
    fn timeout_is_seconds_or_a_go_duration() {
        let ms = Duration::from_millis;
        for (value, expected) in [
            ("61", ms(61_000)),
            ("%2B61", ms(61_000)),
            ("61s", ms(61_000)),
            ("1m1s", ms(61_000)),
            ("%2B1m", ms(60_000)),
            ("1h2m3s4ms", ms(3_723_004)),
            ("1.5s", ms(1_500)),
            (".5s", ms(500)),
            ("1.s", ms(1_000)),
            ("0.5h", ms(1_800_000)),
            ("1s1m", ms(61_000)),
            ("2us", Duration::from_micros(2)),
            ("2%C2%B5s", Duration::from_micros(2)),
            ("2%CE%BCs", Duration::from_micros(2)),
            ("1.9ns", Duration::from_nanos(1)),
            ("9223372036854775807ns", Duration::from_nanos(i64::MAX as u64)),
            ("0.33333333333333333333333333s", Duration::from_nanos(333_333_333)),
        ] {
            let query = format!("timeout={value}");
            assert_eq!(timeout_of(&query), Some(expected), "{value}");
        }
    }

    #[test]
    fn a_timeout_that_kustomize_ignores_is_none() {
        for value in [
            "",
            "jiffy",
            "0",
            "0s",
            "-1",
            "-1s",
            "1",
            "1 s",
            "1d",
            "s",
            ".s",
            ".",
            "%2B",
            "1m1",
            "9223372036854775808ns",
            "9223372037",
            "99999999999999999999",
            "99999999999999999999h",
            "2562048h",
            "1S",
        ] {
            let query = format!("timeout={value}");
            let expected = (value == "1").then(|| Duration::from_secs(1));
            assert_eq!(timeout_of(&query), expected, "{value}");
        }
    }
}
