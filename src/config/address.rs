//! Entries about a URL: an entry covers exactly one reference, or all that a glob matches.
//!
//! An exact entry ([`Exact`]) is a reference as a kustomization or a message has it: the repository, the directory and
//! the ref; the URL of a file; `REPOSITORY#CHART@VERSION`; an image with tag or digest. Host, port, user name and
//! scheme are read as in a glob; everything else is compared literally, except for `.git` at the end of a repository.
//!
//! A glob is `HOST`, `HOST/PATH` or `SCHEME://HOST/PATH`:
//!
//! - It matches a URL that begins with it, name by name: `github.com/acme` is `github.com/acme/bases`
//!   and everything else of that owner, but not `github.com/acme-evil`; `github.com` is the whole host.
//! - Without a scheme it means `https`, `ssh` (also written `git@HOST:PATH`) and `oci`; `http` and
//!   `file` must be written.
//! - The host is a name, `*.DOMAIN` for every host below a domain, or `*`. A port other than the usual one must be
//!   written. A user name is not looked at.
//! - In the path `*` and `?` stand for characters of one name, `**` for any number of names. `//` is `/`,
//!   and a name is the same with and without `.git`. A query is not part of it.
//! - It is compared with the URL of a git repository, as kustomize splits it, and the directory in it; with the URL of
//!   a file; with the repository and the name of a Helm chart; with the name of an image without tag and digest
//!   (`docker.io/` before it if no registry is written).
//!
//! A policy only protects if the program that judges a URL and those that follow it agree on its host. So a URL is
//! split first, and its host compared as a whole. A URL that two clients could split differently (`..`, `\`, encoded
//! slashes, letters outside of ASCII in a host) matches nothing.

use std::collections::BTreeSet;

use globset::{GlobMatcher, GlobSet, escape};

use super::{Comments, glob};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::reference::{RepoSpec, Upstream};
use crate::tree::path;

/// The schemes that a glob can name, and the port that need not be written.
const SCHEMES: [(&str, &str); 5] = [("https", ":443"), ("ssh", ":22"), ("http", ":80"), ("oci", ":443"), ("file", "")];

/// The schemes that a text without a scheme may mean.
const UNWRITTEN: [&str; 3] = ["https", "ssh", "oci"];

/// One reference, chart or image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Exact {
    /// `None` for any of [`UNWRITTEN`].
    scheme: Option<&'static str>,
    host: String,
    /// The path of the repository or file in its URL.
    path: String,
    /// The directory in the repository, or the name of the chart.
    inside: Option<String>,
    /// The ref, the version, the query, the tag or digest.
    version: Option<String>,
}

impl Exact {
    /// The entries that cover this subject of a finding: itself, and the same without its scheme if that is usual.
    pub(super) fn entries(self) -> Vec<Exact> {
        // An entry without a scheme means any of the usual ones.
        let unwritten = self.scheme.filter(|scheme| UNWRITTEN.contains(scheme));
        let unwritten = unwritten.map(|_| Exact { scheme: None, ..self.clone() });
        unwritten.into_iter().chain([self]).collect()
    }
}

fn not_empty(text: &str) -> Option<String> {
    Some(text.to_owned()).filter(|text| !text.is_empty())
}

/// The exact entry for an upstream, to look it up among the entries of `allow`; `None` if it is not a URL, or clients
/// could read it differently.
pub(super) fn exact(upstream: &Upstream) -> Option<Exact> {
    let (url, inside, version) = match upstream {
        Upstream::Git { url, path, reference, .. } => {
            (url.strip_suffix(".git").unwrap_or(url), Some(path), reference.clone())
        }
        Upstream::File { url } => {
            let (url, query) = url.split_once('?').unwrap_or((url, ""));
            (url, None, not_empty(query))
        }
        // These characters separate the parts of an entry: with them it could mean two charts.
        Upstream::Chart { chart, version, .. }
            if version.iter().chain([chart]).any(|text| text.contains(['@', '#', '/'])) =>
        {
            return None;
        }
        Upstream::Chart { url, chart, version } => (url.trim_end_matches('/'), Some(chart), version.clone()),
        Upstream::Image { image } => {
            let url = image_url(image);
            // A `:` before the last slash is that of a port.
            let name = image.rsplit('/').next().unwrap_or(image);
            let tag = name.find([':', '@']).map_or("", |start| &name[start..]);
            return exact_of_url(&url, None, not_empty(tag));
        }
    };
    exact_of_url(url, inside, version)
}

/// The exact entry of a URL without query, with a directory or chart `inside` and a version. `None` if clients could
/// read the URL differently: then the program might judge another host than the one that gets the request.
fn exact_of_url(url: &str, inside: Option<&String>, version: Option<String>) -> Option<Exact> {
    let (scheme, host, path) = split(url).ok()?;
    let texts = [Some(url), inside.map(String::as_str), version.as_deref()];
    let has_blanks = texts.into_iter().flatten().any(has_blank);
    let mut names = path.split('/').chain(inside.into_iter().flat_map(|inside| inside.split('/')));
    let is_clear = is_clear_host(scheme, &host) && names.all(is_plain) && !has_blanks;
    if scheme.is_none() || !is_clear {
        return None;
    }
    // One slash belongs to the syntax of a URL, which `HOST:PATH` lacks. A second slash may name another repository.
    let repository = path.strip_prefix('/').filter(|_| url.contains("://")).unwrap_or(path).trim_end_matches('/');
    let path = if inside.is_some() { repository } else { path }.to_owned();
    Some(Exact { scheme, host, path, inside: inside.cloned(), version })
}

/// Whether clients could cut a text, or drop a part of it.
fn has_blank(text: &str) -> bool {
    text.contains(|c: char| c.is_control() || c.is_whitespace())
}

/// The hint to write an entry for more than one reference.
const WIDE: &str = "for everything that a glob matches, write `refs: any` (or branch, tag, commit)";

/// Reads an exact entry with this key, in every way that its text can be read. Fails with the rest of a sentence ("the
/// entry `x` …").
pub(super) fn compile_exact(key: &str, text: &str) -> Result<Vec<Exact>, String> {
    let url = text.split('?').next().unwrap_or(text);
    refuse_glob(url)?;
    let has_scheme = text.contains("://") || split(url).is_ok_and(|(scheme, ..)| scheme.is_some());
    let full_url = if has_scheme { text.to_owned() } else { format!("https://{text}") };
    let upstreams = match key {
        "image" => vec![Upstream::Image { image: text.strip_prefix("oci://").unwrap_or(text).to_owned() }],
        "chart" => vec![chart_of_entry(&full_url)?],
        _ => upstreams_of_url(&full_url),
    };
    let mut readings: Vec<Exact> = upstreams.iter().filter_map(exact).collect();
    // A scheme that was only added for the parser is dropped: the entry covers all usual schemes. An image is always
    // `oci`.
    if !has_scheme && key != "image" {
        readings.iter_mut().for_each(|reading| reading.scheme = None);
    }
    if readings.is_empty() { Err(why_ambiguous(key, text)) } else { Ok(readings) }
}

/// Refuses a glob as an exact entry: it would silently match one literal reference at most.
fn refuse_glob(url: &str) -> Result<(), String> {
    let path = url.find("://").map_or(url, |start| &url[start + 3..]);
    let path = path.find('/').map_or("", |start| &path[start..]);
    // The brackets around an address are not a part of a glob, and `${` is a variable.
    if url.contains('*') || path.replace("${", "").contains(['[', '{']) {
        return Err(format!("is a glob: {WIDE}"));
    }
    Ok(())
}

/// The chart of an entry `URL#NAME@VERSION`; the version may be missing.
fn chart_of_entry(text: &str) -> Result<Upstream, String> {
    let (url, chart) = text.split_once('#').unwrap_or((text, ""));
    let (chart, version) = chart.split_once('@').unwrap_or((chart, ""));
    if chart.is_empty() {
        return Err(format!("has no chart: write URL#NAME@VERSION; {WIDE}"));
    }
    Ok(Upstream::Chart { url: url.to_owned(), chart: chart.to_owned(), version: not_empty(version) })
}

/// The upstreams that a URL may name: only the field that has it says whether it is a repository or a file. Empty if it
/// has a fragment, which is never sent, so that it cannot be a part of an upstream.
fn upstreams_of_url(url: &str) -> Vec<Upstream> {
    if url.contains('#') {
        return Vec::new();
    }
    // kustomize drops a query that it cannot parse. As a repository the entry would be about another ref then.
    let repository = RepoSpec::parse(url).ok().filter(|spec| !spec.query_dropped);
    let repository = repository.map(|spec| Upstream::git(&spec).redacted());
    repository.into_iter().chain([Upstream::File { url: redact::url(url) }]).collect()
}

/// Why no exact entry can have this text: clients could read it differently.
fn why_ambiguous(key: &str, text: &str) -> String {
    // The error of a glob says more precisely which part of the URL is refused.
    let why = compile(text).err().filter(|_| !text.contains(['#', '?', ' ']));
    let why = why.unwrap_or_else(|| "is ambiguous: clients read it differently".to_owned());
    let rule = if key == "chart" { Rule::RemoteChart } else { Rule::RemoteReference };
    format!("{why}\nwrite a comment above the reference instead: {}", Comments::of_rule(rule))
}

/// The scheme, the host, and the names of the path.
type Parts = (Option<&'static str>, String, Vec<String>);

/// Splits a URL without query, an scp-like address or a glob, with the path `below` appended. Fails with the rest of a
/// sentence ("the glob `x` …").
fn parts(text: &str, below: &str) -> Result<Parts, String> {
    let (scheme, host, path) = split(text)?;
    let names = [path, below].into_iter().flat_map(|path| path.split('/')).filter(|name| !name.is_empty());
    // Hosts serve a repository with and without `.git`, so neither spelling may get around a policy.
    let names: Vec<String> = names
        .map(|name| name.strip_suffix(".git").filter(|bare| !bare.is_empty()).unwrap_or(name).to_owned())
        .collect();
    match names.iter().find(|name| !is_plain(name)) {
        Some(name) => Err(format!("contains `{name}`, which is not allowed in a URL")),
        None => Ok((scheme, host, names)),
    }
}

/// Splits a URL without query, or an scp-like address, or a glob, into scheme, host and path.
fn split(text: &str) -> Result<(Option<&'static str>, String, &str), String> {
    // As git does, and not by a parser of URLs, which would repair a text that git takes literally.
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // As git does: a colon before the first slash makes an scp-like address. Without a user it may be a port.
    let (scheme, host, path) = match host.split_once(':') {
        Some((scp, _)) if scheme.is_none() && host.contains('@') => (Some("ssh"), scp, &rest[scp.len() + 1..]),
        _ => (scheme, host, path),
    };
    let scheme = scheme.map(|text| {
        let known = SCHEMES.into_iter().find(|(scheme, _)| scheme.eq_ignore_ascii_case(text));
        let expected = SCHEMES.map(|(scheme, _)| scheme).join(", ");
        known.ok_or_else(|| format!("has the scheme `{text}`, expected one of {expected}"))
    });
    let (scheme, port) = scheme.transpose()?.map_or((None, ":443"), |(scheme, port)| (Some(scheme), port));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let host = host.strip_suffix(port).unwrap_or(&host).to_owned();
    Ok((scheme, host, path))
}

/// The indices of the globs that match an upstream, or a directory above it.
pub(super) fn covering(globs: &GlobSet, upstream: &Upstream) -> BTreeSet<usize> {
    let path = match_path(upstream).unwrap_or_default();
    path::and_above(&path).flat_map(|path| globs.matches(path)).collect()
}

/// The scheme, the host and the path of an upstream as one path, which globs are compared with; `None` if it is not a
/// URL, or clients could read it differently.
fn match_path(upstream: &Upstream) -> Option<String> {
    let parts = match upstream {
        Upstream::Git { url, path, .. } => parts(url, path),
        Upstream::File { url } => parts(url.split(['?', '#']).next().unwrap_or_default(), ""),
        Upstream::Chart { url, chart, .. } => parts(url, chart),
        Upstream::Image { image } => parts(&image_url(image), ""),
    };
    let (scheme, host, path) = parts.ok()?;
    is_clear_host(scheme, &host).then_some([scheme?, &host, &path.join("/")].join("/"))
}

/// The URL of an image, without tag and digest.
fn image_url(image: &str) -> String {
    // A digest or a tag is not part of the name.
    let name = image.split('@').next().unwrap_or(image);
    let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
    let last = last.split(':').next().unwrap_or(last);
    // As in docker, a name that does not begin with a host belongs to docker.io, and one without an owner to `library`.
    let registry = match directory.split('/').next() {
        Some(first) if first.contains(['.', ':']) || first == "localhost" => "",
        Some("") | None => "docker.io/library",
        Some(_) => "docker.io/",
    };
    format!("oci://{registry}{directory}/{last}")
}

/// Whether every client reads the host of a URL in the same way. Only the URL of a file on this machine may lack it.
fn is_clear_host(scheme: Option<&str>, host: &str) -> bool {
    (scheme == Some("file") && host.is_empty()) || is_host(host)
}

/// Whether a text is a host of ASCII letters, or an address in brackets, perhaps with a port.
fn is_host(text: &str) -> bool {
    // An address in brackets has colons of its own. Without a port, `0` passes the check of the port below.
    let (host, port) = text.rsplit_once(':').filter(|_| !text.ends_with(']')).unwrap_or((text, "0"));
    let (host, others) = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => (address, ":."),
        None => (host, ".-_"),
    };
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    // Not only marks: `.` and `..` are no hosts.
    let is_named = host.contains(|c: char| c.is_ascii_alphanumeric());
    is_named && host.chars().all(|c| c.is_ascii_alphanumeric() || others.contains(c)) && is_port
}

/// Whether every client reads this name of a path literally.
fn is_plain(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !matches!(name, "." | "..")
        && !name.contains(['\\', '?', '#'])
        && !name.contains(char::is_control)
        && !["%2e", "%2f", "%5c", "%00"].iter().any(|encoded| lower.contains(encoded))
}

/// The glob that covers a URL and everything below it.
pub(super) fn escaped(url: &str) -> String {
    // The brackets around an address are not a part of a glob.
    let host = url.find("://").map_or(0, |scheme| scheme + "://".len());
    let (host, path) = url.split_at(url[host..].find('/').map_or(url.len(), |length| host + length));
    host.to_owned() + &escape(path)
}

/// Reads a glob of URLs as one of paths, `SCHEME/HOST/PATH`, so that host and path are never compared with each other.
/// Fails with the rest of a sentence ("the glob `x` …") if it can match nothing, or more than it seems to.
pub(super) fn compile(text: &str) -> Result<GlobMatcher, String> {
    if text.is_empty() || has_blank(text) || text.contains(['?', '#']) {
        return Err(
            "is empty, or contains a space or a query (a glob has none: for one reference, remove `refs`)".to_owned()
        );
    }
    let (scheme, host, mut path) = parts(text, "")?;
    let host = match &*host {
        "" if scheme == Some("file") => host,
        "*" | "**" => "*".to_owned(),
        name if is_host(name) => escape(name),
        // Others can register names that match `github*`.
        name if name.strip_prefix('*').is_some_and(|domain| domain.starts_with('.') && is_host(domain)) => host,
        _ => return Err(format!("has the host `{host}`: write a host, or `*.DOMAIN`")),
    };
    // A glob covers everything below its match, so `**` at the end would only exclude the directory itself.
    path.truncate(path.iter().rposition(|name| name != "**").map_or(0, |last| last + 1));
    // The scheme and the host are the first names of the path, so that one glob compares all.
    let names = [scheme.unwrap_or("{https,ssh,oci}").to_owned(), host];
    glob::compile(&[&names[..], &path].concat().join("/"))
}
