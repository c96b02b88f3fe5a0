//! What an entry about a URL covers: exactly one reference, or all that a glob matches.
//!
//! An exact entry ([`Exact`]) is a reference as a kustomization or a message has it: the repository, the directory and the
//! ref; the URL of a file; `REPOSITORY#CHART@VERSION`; an image with tag or digest. Host, port, user name and scheme are
//! read as in a glob; everything else is compared as it is, but `.git` at the end of a repository.
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
//! - What it is compared with: of a git repository its URL, as kustomize splits it, and the directory in
//!   it; of a file its URL; of a Helm chart the repository and the chart's name; of an image its name without tag and
//!   digest (`docker.io/` before it where no registry is written).
//!
//! A policy is only as good as the agreement between the one that judges a URL and the ones that
//! follow it. So a URL is taken apart first, and its host compared as a whole; and whatever two clients
//! could take apart in two ways (`..`, `\`, encoded slashes, letters that are no ASCII in a host)
//! matches nothing.

use std::collections::BTreeSet;

use globset::{GlobMatcher, GlobSet, escape};

use super::{Comments, glob};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::reference::{RepoSpec, Upstream};
use crate::tree::path;

/// The schemes that a glob can name, and the port that need not be written.
const SCHEMES: [(&str, &str); 5] = [("https", ":443"), ("ssh", ":22"), ("http", ":80"), ("oci", ":443"), ("file", "")];

/// The schemes of what is written without one.
const UNWRITTEN: [&str; 3] = ["https", "ssh", "oci"];

/// One reference, chart or image.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Exact {
    /// None for one of [`UNWRITTEN`].
    scheme: Option<&'static str>,
    host: String,
    /// That of the repository or file.
    path: String,
    /// The directory in a repository, the chart of one.
    inside: Option<String>,
    /// The ref, the version, the query, the tag or digest.
    at: Option<String>,
}

impl Exact {
    /// Returns what an entry says that names this one, of a finding: the same, perhaps without its scheme.
    pub(super) fn named_by(self) -> Vec<Exact> {
        let unwritten = self.scheme.filter(|scheme| UNWRITTEN.contains(scheme));
        let unwritten = unwritten.map(|_| Exact { scheme: None, ..self.clone() });
        unwritten.into_iter().chain([self]).collect()
    }
}

/// Returns what a finding is about; none where that is no URL, or clients could differ.
pub(super) fn exact(upstream: &Upstream) -> Option<Exact> {
    let at = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let (url, inside, at) = match upstream {
        Upstream::Git { url, path, reference, .. } => {
            (url.strip_suffix(".git").unwrap_or(url), Some(path), reference.clone())
        }
        Upstream::File { url } => {
            let (url, query) = url.split_once('?').unwrap_or((url, ""));
            (url, None, at(query))
        }
        // Where a name ends must be clear.
        Upstream::Chart { chart, version, .. }
            if version.iter().chain([chart]).any(|text| text.contains(['@', '#', '/'])) =>
        {
            return None;
        }
        Upstream::Chart { url, chart, version } => (url.trim_end_matches('/'), Some(chart), version.clone()),
        Upstream::Image { image } => {
            let url = of_image(image);
            let name = image.rsplit('/').next().unwrap_or(image);
            let tag = name.find([':', '@']).map_or("", |start| &name[start..]);
            return exact_of(&url, None, at(tag));
        }
    };
    exact_of(url, inside, at)
}

fn exact_of(url: &str, inside: Option<&String>, at: Option<String>) -> Option<Exact> {
    let (scheme, host, path) = split(url).ok()?;
    let names = || path.split('/').chain(inside.into_iter().flat_map(|inside| inside.split('/')));
    let is_odd = |text: &str| text.contains(|c: char| c.is_control() || c.is_whitespace());
    let is_here = scheme == Some("file") && host.is_empty();
    let is_clear = names().all(is_plain) && !is_odd(url) && !at.iter().chain(inside).any(|text| is_odd(text));
    // One slash is the URL's own, which `HOST:PATH` has not. One more may be another place.
    let repository = path.strip_prefix('/').filter(|_| url.contains("://")).unwrap_or(path).trim_end_matches('/');
    let path = if inside.is_some() { repository } else { path }.to_owned();
    (scheme.is_some() && is_clear && (is_here || is_host(&host))).then(|| Exact {
        scheme,
        host,
        path,
        inside: inside.cloned(),
        at,
    })
}

/// Reads an exact entry with this key: what a URL means is said by the field that names it, so that it may be both a
/// repository and a file. Fails with the rest of a sentence ("the entry `x` …").
pub(super) fn compile_exact(key: &str, text: &str) -> Result<Vec<Exact>, String> {
    const WIDE: &str = "for everything that a glob matches, write `refs: any` (or branch, tag, commit)";
    let place = text.split('?').next().unwrap_or(text);
    let path = place.find("://").map_or(place, |at| &place[at + 3..]);
    let path = path.find('/').map_or("", |at| &path[at..]);
    if place.contains('*') || path.replace("${", "").contains(['[', '{']) {
        return Err(format!("is a glob: {WIDE}"));
    }
    let has_scheme = text.contains("://") || split(place).is_ok_and(|(scheme, ..)| scheme.is_some());
    let written = if has_scheme { text.to_owned() } else { format!("https://{text}") };
    let upstreams = match key {
        "image" => vec![Upstream::Image { image: text.strip_prefix("oci://").unwrap_or(text).to_owned() }],
        "chart" => {
            let (url, chart) =
                written.split_once('#').ok_or_else(|| format!("has no chart: write URL#NAME@VERSION; {WIDE}"))?;
            let (chart, version) = chart.split_once('@').unwrap_or((chart, ""));
            let (url, chart) = (url.to_owned(), chart.to_owned());
            let version = Some(version.to_owned()).filter(|version| !version.is_empty());
            if url.contains('?') || chart.is_empty() {
                Vec::new()
            } else {
                vec![Upstream::Chart { url, chart, version }]
            }
        }
        _ if text.contains('#') => Vec::new(),
        _ => {
            let repository = RepoSpec::parse(&written).ok().filter(|spec| !spec.query_dropped);
            let repository = repository.map(|spec| Upstream::git(&spec).redacted());
            repository.into_iter().chain([Upstream::File { url: redact::url(&written) }]).collect()
        }
    };
    let exact = upstreams.iter().filter_map(exact);
    let exact = exact.map(|exact| Exact { scheme: exact.scheme.filter(|_| has_scheme || key == "image"), ..exact });
    let exact: Vec<Exact> = exact.collect();
    if exact.is_empty() {
        let why = compile(text).err().filter(|_| !text.contains(['#', '?', ' ']));
        let why = why.unwrap_or_else(|| "is ambiguous: clients read it differently".to_owned());
        let rule = if key == "chart" { Rule::RemoteChart } else { Rule::RemoteReference };
        return Err(format!("{why}\nwrite a comment above the reference instead: {}", Comments::of_rule(rule)));
    }
    Ok(exact)
}

/// The scheme, the host, and the names of the path.
type Parts = (Option<&'static str>, String, Vec<String>);

/// Takes a URL without query apart, or an scp-like address, or a glob, and what is at `below` there. Fails with the rest of
/// a sentence ("the glob `x` …").
fn parts(text: &str, below: &str) -> Result<Parts, String> {
    let (scheme, host, path) = split(text)?;
    let names = [path, below].into_iter().flat_map(|path| path.split('/')).filter(|name| !name.is_empty());
    // With and without `.git` it is the same.
    let bare = |name: &str| name.strip_suffix(".git").filter(|bare| !bare.is_empty()).unwrap_or(name).to_owned();
    let names: Vec<String> = names.map(bare).collect();
    match names.iter().find(|name| !is_plain(name)) {
        Some(name) => Err(format!("contains `{name}`, which is not allowed in a URL")),
        None => Ok((scheme, host, names)),
    }
}

/// Splits a URL without query, or an scp-like address, or a glob, into scheme, host and path.
fn split(text: &str) -> Result<(Option<&'static str>, String, &str), String> {
    let (scheme, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (Some(scheme), rest),
        None => (None, text),
    };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    // As in git: a colon before the first slash. A port has digits only, and there is no user then.
    let (scheme, host, path) = match host.split_once(':') {
        Some((scp, _)) if scheme.is_none() && host.contains('@') => (Some("ssh"), scp, &rest[scp.len() + 1..]),
        _ => (scheme, host, path),
    };
    let scheme = scheme.map(|text| {
        let known = SCHEMES.into_iter().find(|(scheme, _)| scheme.eq_ignore_ascii_case(text));
        let all = || SCHEMES.map(|(scheme, _)| scheme).join(", ");
        known.ok_or_else(|| format!("has the scheme `{text}`, expected one of {}", all()))
    });
    let (scheme, port) = scheme.transpose()?.map_or((None, ":443"), |(scheme, port)| (Some(scheme), port));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host).to_ascii_lowercase();
    let host = host.strip_suffix(port).unwrap_or(&host).to_owned();
    Ok((scheme, host, path))
}

/// Returns the indices of the globs that match what a finding is about, or what is above it.
pub(super) fn covering(globs: &GlobSet, upstream: &Upstream) -> BTreeSet<usize> {
    let place = place(upstream).unwrap_or_default();
    path::and_above(&place).flat_map(|place| globs.matches(place)).collect()
}

/// Returns the scheme, the host and the path of what a finding is about, as one path: what globs match, or what is above.
/// None where that is no URL, or clients could differ.
fn place(upstream: &Upstream) -> Option<String> {
    let parts = match upstream {
        Upstream::Git { url, path, .. } => parts(url, path),
        Upstream::File { url } => parts(url.split(['?', '#']).next().unwrap_or_default(), ""),
        Upstream::Chart { url, chart, .. } => parts(url, chart),
        Upstream::Image { image } => parts(&of_image(image), ""),
    };
    let (scheme, host, path) = parts.ok()?;
    let is_here = scheme == Some("file") && host.is_empty();
    (is_here || is_host(&host)).then_some([scheme?, &host, &path.join("/")].join("/"))
}

/// Returns the URL of an image. As docker reads it, a name that does not begin with a host belongs to its own registry.
fn of_image(image: &str) -> String {
    let name = image.split('@').next().unwrap_or(image);
    let (directory, last) = name.rsplit_once('/').unwrap_or(("", name));
    let last = last.split(':').next().unwrap_or(last);
    let registry = match directory.split('/').next() {
        Some(first) if first.contains(['.', ':']) || first == "localhost" => "",
        Some("") | None => "docker.io/library",
        Some(_) => "docker.io/",
    };
    format!("oci://{registry}{directory}/{last}")
}

/// Returns whether a text is a host of ASCII letters, or an address in brackets, and maybe a port.
fn is_host(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').filter(|_| !text.ends_with(']')).unwrap_or((text, "0"));
    let (host, others) = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(address) => (address, ":."),
        None => (host, ".-_"),
    };
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    let is_port = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    !host.is_empty() && host.chars().all(is_allowed) && is_port
}

/// Returns whether every client takes this name for itself.
fn is_plain(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !matches!(name, "." | "..")
        && !name.contains(['\\', '?', '#'])
        && !name.contains(char::is_control)
        && !["%2e", "%2f", "%5c", "%00"].iter().any(|encoded| lower.contains(encoded))
}

/// Reads a glob, for [`place`]. Fails with the rest of a sentence ("the glob `x` …") where it can match nothing, or more
/// than it seems to.
pub(super) fn compile(text: &str) -> Result<GlobMatcher, String> {
    let is_odd = |c: char| c.is_control() || c.is_whitespace() || "?#".contains(c);
    if text.is_empty() || text.contains(is_odd) {
        return Err(
            "is empty, or contains a space or a query (a glob has none: for one reference, remove `refs`)".to_owned()
        );
    }
    let (scheme, host, mut path) = parts(text, "")?;
    let is_below = |domain: &str| domain.starts_with('.') && is_host(domain);
    let host = match &*host {
        "" if scheme == Some("file") => host,
        "*" | "**" => "*".to_owned(),
        name if is_host(name) && !matches!(name, "." | "..") => escape(name),
        // Others can register names that match `github*`.
        name if name.strip_prefix('*').is_some_and(is_below) => host,
        _ => return Err(format!("has the host `{host}`: write a host, or `*.DOMAIN`")),
    };
    // Whatever follows is covered anyway.
    path.truncate(path.iter().rposition(|name| name != "**").map_or(0, |last| last + 1));
    let names = [scheme.unwrap_or("{https,ssh,oci}").to_owned(), host];
    glob::compile(&[&names[..], &path].concat().join("/"))
}
