//! Globs of URLs.
//!
//! A policy is only as good as the agreement between the one that judges a URL and the ones that
//! follow it. So a URL is taken apart first, and its host compared as a whole; and whatever two clients
//! could take apart in two ways (`..`, `\`, encoded slashes, letters that are no ASCII in a host)
//! matches nothing.

use globset::GlobMatcher;
use serde::Deserialize;

use super::glob;
use crate::message::failure::shown;
use crate::message::finding::Subject;
use crate::message::redact;
use crate::tree::path;

/// The schemes that a glob can name, and the port that need not be written.
const SCHEMES: [(&str, &str); 5] = [("https", ":443"), ("ssh", ":22"), ("http", ":80"), ("oci", ":443"), ("file", "")];

/// A glob of URLs: `HOST`, `HOST/PATH` or `SCHEME://HOST/PATH`.
///
/// - It matches a URL that begins with it, name by name: `github.com/acme` is `github.com/acme/bases`
///   and everything else of that owner, but not `github.com/acme-evil`; `github.com` is the whole host.
/// - Without a scheme it means `https`, `ssh` (also written `git@HOST:PATH`) and `oci`; `http` and
///   `file` must be written.
/// - The host is a name, `*.DOMAIN` for every host below a domain, or `*`. A port other than the usual one must be
///   written. A user name is not looked at.
/// - In the path `*` and `?` stand for characters of one name, `**` for any number of names. `//` is `/`,
///   and a name is the same with and without `.git`. A query is not part of it.
/// - What it is compared with: of a git repository its URL, as kustomize splits it, and the directory in
///   it; of a file its URL; of a Helm chart the repository and the chart's name; of an image its name without tag and
///   digest (`docker.io/` before it where no registry is written).
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct UrlGlob {
    /// As it was written.
    pub text: String,
    #[serde(skip)]
    scheme: Option<&'static str>,
    host: Host,
    /// What a path begins with; none for any path.
    path: Option<GlobMatcher>,
}

impl TryFrom<String> for UrlGlob {
    type Error = String;

    fn try_from(text: String) -> Result<UrlGlob, String> {
        UrlGlob::parse(&text).map_err(|why| {
            // What is not a glob may be a URL with a password.
            let (shown, why) = (shown(&redact::url(&text)), redact::text(&why));
            format!("the glob `{shown}` {why}\nwrite a host, or a host and a path, for example `github.com/acme/*`")
        })
    }
}

#[derive(Debug, Clone)]
enum Host {
    Any,
    Is(String),
    /// Ends so, with the dot.
    Below(String),
}

/// A URL in parts.
struct Address {
    scheme: &'static str,
    host: String,
    path: Vec<String>,
}

/// The scheme, host and path of a text, unchanged.
type Parts<'a> = (Option<&'a str>, &'a str, &'a str);

/// Splits a URL without query, or an scp-like address.
fn split(text: &str) -> Parts<'_> {
    let authority = |rest| match str::find(rest, '/') {
        Some(slash) => rest.split_at(slash),
        None => (rest, ""),
    };
    if let Some((scheme, rest)) = text.split_once("://") {
        let (host, path) = authority(rest);
        return (Some(scheme), without_user(host), path);
    }
    let (host, path) = authority(text);
    // As in git: a colon before the first slash. A port has digits only, and there is no user then.
    if let Some((scp_host, _)) = host.split_once(':')
        && host.contains('@')
    {
        return (Some("ssh"), without_user(scp_host), &text[scp_host.len() + 1..]);
    }
    (None, host, path)
}

fn without_user(host: &str) -> &str {
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

fn scheme(text: &str) -> Option<(&'static str, &'static str)> {
    SCHEMES.into_iter().find(|(scheme, _)| scheme.eq_ignore_ascii_case(text))
}

/// Returns the names of a path.
fn names(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter(|name| !name.is_empty()).map(bare)
}

/// Returns the name of a repository without `.git`.
fn bare(name: &str) -> &str {
    match name.strip_suffix(".git") {
        Some(bare) if !bare.is_empty() => bare,
        _ => name,
    }
}

/// Returns whether a text is a host of ASCII letters, or an address in brackets, and maybe a port.
fn is_host(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !text.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let name = |text: &str, others: &str| {
        let allowed = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
        !text.is_empty() && text.chars().all(allowed)
    };
    let is_host = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => name(address, ":."),
        None => name(host, ".-_"),
    };
    is_host && port.is_none_or(|port| !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()))
}

/// Returns whether every client takes this name for itself.
fn is_plain(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !matches!(name, "." | "..")
        && !name.contains(['\\', '?', '#'])
        && !name.contains(char::is_control)
        && !["%2e", "%2f", "%5c", "%00"].iter().any(|encoded| lower.contains(encoded))
}

impl Address {
    fn of(subject: &Subject) -> Option<Address> {
        let (url, below) = match subject {
            Subject::Git { url, path, .. } => (url.as_str(), path.as_str()),
            Subject::Http { url } => {
                let end = url.find(['?', '#']).unwrap_or(url.len());
                (&url[..end], "")
            }
            Subject::Helm { url, chart, .. } => (url.as_str(), chart.as_str()),
            Subject::Image { image } => return Address::of_image(image),
            Subject::Local | Subject::Path { .. } | Subject::Program { .. } => return None,
        };
        Address::at(url, below)
    }

    fn of_image(image: &str) -> Option<Address> {
        let name = image.split('@').next().unwrap_or(image);
        let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
        let last = last.split(':').next().unwrap_or(last);
        // As docker reads it: a name that is not a host belongs to docker's own registry.
        let is_host = |first: &str| first.contains(['.', ':']) || first == "localhost";
        let registry = match directory.split('/').next() {
            Some(first) if is_host(first) => "",
            Some("") | None => "docker.io/library/",
            Some(_) => "docker.io/",
        };
        Address::at(&format!("oci://{registry}{directory}"), last)
    }

    fn at(url: &str, below: &str) -> Option<Address> {
        let (written, host, path) = split(url);
        let (scheme, port) = scheme(written?)?;
        let host = host.to_ascii_lowercase();
        let host = host.strip_suffix(port).unwrap_or(&host).to_owned();
        let is_here = scheme == "file" && host.is_empty();
        if !is_here && !is_host(&host) {
            return None;
        }
        let path: Vec<String> = names(path).chain(names(below)).map(str::to_owned).collect();
        let is_plain = path.iter().all(|name| is_plain(name));
        is_plain.then_some(Address { scheme, host, path })
    }
}

impl UrlGlob {
    /// Reads a glob.
    ///
    /// Fails with the rest of a sentence ("the URL glob `x` …") where it can match nothing, or more
    /// than it seems to.
    pub(super) fn parse(text: &str) -> Result<UrlGlob, String> {
        let is_odd = |c: char| c.is_control() || c.is_whitespace() || "?#".contains(c);
        if text.is_empty() || text.contains(is_odd) {
            return Err("is empty, or contains a space or a query (for refs, there is `refs`)".to_owned());
        }
        let (written, written_host, path) = split(text);
        let known = SCHEMES.map(|(scheme, _)| scheme).join(", ");
        let is_unknown = |written: &str| format!("has the scheme `{written}`, expected one of {known}");
        let scheme = written.map(|written| scheme(written).ok_or_else(|| is_unknown(written))).transpose()?;
        let port = scheme.map_or(":443", |(_, port)| port);
        let scheme = scheme.map(|(scheme, _)| scheme);
        let lower = written_host.to_ascii_lowercase();
        let lower = lower.strip_suffix(port).unwrap_or(&lower);
        let host = match lower {
            "" if scheme == Some("file") => Host::Is(String::new()),
            "*" | "**" => Host::Any,
            host => match host.strip_prefix('*') {
                Some(domain) if domain.starts_with('.') && is_host(domain) => Host::Below(domain.to_owned()),
                None if is_host(host) && !matches!(host, "." | "..") => Host::Is(host.to_owned()),
                // Others can register names that match `github*`.
                _ => return Err(format!("has the host `{host}`: write a host, or `*.DOMAIN`")),
            },
        };
        let names: Vec<&str> = names(path).collect();
        if let Some(name) = names.iter().find(|name| !is_plain(name)) {
            return Err(format!("holds `{name}`, which no URL that is accepted holds"));
        }
        // Whatever follows is covered anyway.
        let end = names.iter().rposition(|name| *name != "**").map_or(0, |last| last + 1);
        let names = names[..end].join("/");
        let path = (!names.is_empty()).then(|| glob::compile(&names)).transpose()?;
        Ok(UrlGlob { text: text.to_owned(), scheme, host, path })
    }

    /// Returns the text of a glob that matches what a finding is about, and as little else as can be; none where no
    /// glob does.
    pub(super) fn naming(subject: &Subject) -> Option<String> {
        let Address { scheme, host, path } = Address::of(subject)?;
        let scheme = match scheme {
            "http" | "file" => format!("{scheme}://"),
            _ => String::new(),
        };
        let text = [vec![format!("{scheme}{host}")], path].concat().join("/");
        let glob = UrlGlob::parse(&text).ok()?;
        glob.matches(subject).then_some(text)
    }

    /// Returns whether it matches what a finding is about. Nothing local matches.
    pub fn matches(&self, subject: &Subject) -> bool {
        let Some(address) = Address::of(subject) else {
            return false;
        };
        let scheme = match self.scheme {
            Some(scheme) => scheme == address.scheme,
            None => !matches!(address.scheme, "http" | "file"),
        };
        let host = match &self.host {
            Host::Any => true,
            Host::Is(host) => *host == address.host,
            Host::Below(domain) => address.host.len() > domain.len() && address.host.ends_with(domain.as_str()),
        };
        let path = address.path.join("/");
        let begins = |glob: &GlobMatcher| path::and_above(&path).any(|path| glob.is_match(path));
        scheme && host && self.path.as_ref().is_none_or(begins)
    }
}
