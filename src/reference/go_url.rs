//! A port of how Go's `net/url.Parse` reads http and https URLs.
//!
//! kustomize uses it to recognize a remote file. The WHATWG parser of the `url` crate gives other answers: it repairs
//! texts that Go refuses (`https://host:port/`, blanks in a host) and reads an authority where Go sees a path
//! (`https:/host/x`).

use std::net::Ipv6Addr;

/// The parts of an http or https URL that decide the path of the localized file; borrowed, still escaped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct HttpUrl<'a> {
    /// The user and password as written; "" if there are none.
    pub(super) userinfo: &'a str,
    /// The host as written, without port and without the brackets of an IPv6 address.
    pub(super) host: &'a str,
    /// The path as written; empty, or with a leading `/` unless the URL has no authority.
    pub(super) path: &'a str,
}

impl<'a> HttpUrl<'a> {
    /// Splits a text that Go parses as a URL with the scheme http or https, in any case: kustomize takes only such a
    /// text for a remote file. `None` if it has another scheme, or Go refuses it.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let (text, fragment) = text.split_once('#').unwrap_or((text, ""));
        if text.bytes().any(|b| b < b' ' || b == 0x7f) || !escapes_are_valid(fragment) {
            return None;
        }
        // Go does not validate the query.
        let rest = strip_prefix_ignore_case(text, "https:").or_else(|| strip_prefix_ignore_case(text, "http:"))?;
        let rest = rest.split_once('?').map_or(rest, |(rest, _)| rest);
        let mut parsed = HttpUrl { userinfo: "", host: "", path: rest };
        if !rest.starts_with('/') {
            // Go calls this opaque and does not look into it.
            return Some(parsed);
        }
        if let Some(rest) = rest.strip_prefix("//") {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (userinfo, host) = authority.rsplit_once('@').unwrap_or(("", authority));
            parsed = HttpUrl { userinfo, host: host_name(host)?, path };
            if !is_valid_userinfo(userinfo) {
                return None;
            }
        }
        // Go validates the escapes of a path whether or not there is an authority.
        escapes_are_valid(parsed.path).then_some(parsed)
    }
}

/// Whether every `%` is followed by two hex digits.
pub(super) fn escapes_are_valid(text: &str) -> bool {
    let mut parts = text.split('%');
    parts.next();
    parts.all(|part| matches!(part.as_bytes(), [a, b, ..] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()))
}

/// Strips an ASCII prefix from a text in any case.
pub(super) fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (head, rest) = text.split_at_checked(prefix.len())?;
    head.eq_ignore_ascii_case(prefix).then_some(rest)
}

/// The name in `host[:port]` or `[address][:port]`; `None` if Go refuses it.
fn host_name(text: &str) -> Option<&str> {
    let (host, port, valid) = match text.strip_prefix('[') {
        Some(text) => {
            let (host, port) = text.rsplit_once(']')?;
            // The zone follows `%25`. Go validates it too, but nothing can be fetched from such a host.
            let address = host.split_once("%25").map_or(host, |(address, _)| address);
            (host, port, address.parse::<Ipv6Addr>().is_ok())
        }
        None => {
            let (host, port) = text.split_at(text.rfind(':').unwrap_or(text.len()));
            (host, port, is_valid_host(host))
        }
    };
    let port_is_valid = match port.strip_prefix(':') {
        Some(digits) => digits.bytes().all(|b| b.is_ascii_digit()),
        None => port.is_empty(),
    };
    (valid && port_is_valid).then_some(host)
}

/// Whether Go accepts the characters and escapes of a host: only `%` and bytes from 0x80 may be escaped.
fn is_valid_host(host: &str) -> bool {
    let characters =
        host.bytes().all(|b| !b.is_ascii() || b.is_ascii_alphanumeric() || b"!$&'()*+,;=:[]<>\"-_.~%".contains(&b));
    let mut escapes = host.split('%');
    escapes.next();
    characters
        && escapes_are_valid(host)
        && escapes.all(|part| part.starts_with("25") || part.as_bytes().first() >= Some(&b'8'))
}

fn is_valid_userinfo(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b)) && escapes_are_valid(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts() {
        for (text, userinfo, host, path) in [
            ("https://host", "", "host", ""),
            ("https://host/", "", "host", "/"),
            ("HTTP://Host:80/a?b/c", "", "Host", "/a"),
            ("http://u:p@host:1/a#b?c", "u:p", "host", "/a"),
            ("http://u:p@x@host/", "u:p@x", "host", "/"),
            ("https://[2001:db8::1]:8/f", "", "2001:db8::1", "/f"),
            ("https://[fe80::1%25eth0]/f", "", "fe80::1%25eth0", "/f"),
            ("https:/host/x", "", "", "/host/x"),
            ("https:///host/x", "", "", "/host/x"),
            ("https:host/x", "", "", "host/x"),
            ("https://h%C3%BC/", "", "h%C3%BC", "/"),
            ("https://h/%41 b", "", "h", "/%41 b"),
        ] {
            let expected = HttpUrl { userinfo, host, path };
            assert_eq!(HttpUrl::parse(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn refused_by_go() {
        for text in [
            "ssh://host/x",
            "http",
            "://host",
            "https://ho st/x",
            "https://host:port/x",
            "https://host:80:x/",
            "https://[::1/x",
            "https://[::1]x/",
            "https://[::g]/x",
            "https://[10.0.0.1]/x",
            "https://h/%zz",
            "https://h/%4",
            "https://h/x#%zz",
            "https://h%41/x",
            "https://h%/x",
            "https://u<@h/x",
            "https://u%zz@h/x",
            "https://h/\u{7}",
            "https://h/x?\n",
            "https://h\\x/",
        ] {
            assert_eq!(HttpUrl::parse(text), None, "{text}");
        }
    }
}
