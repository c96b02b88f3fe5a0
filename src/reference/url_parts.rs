//! The parts of a URL over http(s), as far as guesses need them.

use super::go_url::strip_prefix_ignore_case;

pub(super) struct UrlParts<'a> {
    /// In lower case, with the port.
    pub(super) host: String,
    /// The non-empty segments of the path.
    pub(super) segments: Vec<&'a str>,
    /// Whether the path itself marks where a repository ends.
    pub(super) is_marked: bool,
    pub(super) query: &'a str,
}

impl<'a> UrlParts<'a> {
    /// Splits a text that is a URL over http(s), or a shorthand of GitHub without a scheme. `None` for any other text,
    /// for one with control characters, and for a host without a `/` after it. `https://HOST/` has no segments.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        // Hints repeat the parts, so they must be printable.
        if text.chars().any(char::is_control) {
            return None;
        }
        let text = strip_prefix_ignore_case(text, "git::").unwrap_or(text);
        let text = text.split_once('#').map_or(text, |(text, _)| text);
        let (location, query) = text.split_once('?').unwrap_or((text, ""));
        let rest = strip_prefix_ignore_case(location, "https://")
            .or_else(|| strip_prefix_ignore_case(location, "http://"))
            .or_else(|| strip_prefix_ignore_case(location, "github.com/").map(|_| location))?;
        let (authority, path) = rest.split_once('/')?;
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        let is_marked = path.contains("//") || segments.iter().any(|segment| segment.ends_with(".git"));
        Some(UrlParts { host: host.to_ascii_lowercase(), segments, is_marked, query })
    }
}
