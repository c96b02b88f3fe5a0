//! How kustomize reads a git reference: a port of the grammar in its `api/internal/git/repospec.go`.

use std::fmt;
use std::time::Duration;

use super::go_url::strip_prefix_ignore_case;
use super::query::{parse_query, timeout};
use crate::message::redact::SafeUrl;

const SSH: &str = "ssh://";
const HTTPS: &str = "https://";
const HTTP: &str = "http://";
const FILE: &str = "file://";

/// A git repository and a directory in it, parsed from a text as kustomize does.
///
/// `kustomize build` behaves like this and so must we, however odd it is: `.git` is found inside
/// `.github`, `_git/` inside `my_git/`, `https://user@github.com/o/r` becomes ssh, and a local
/// directory `app@v1/base/x` is a repository on the host `v1`.
///
/// Its `Debug` form shows no secrets.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RepoSpec {
    /// Everything before the repository path, as git gets it: scheme, userinfo, host, port and the
    /// separator, for example `https://github.com/`, `git@gitlab.com:` or `file://`. May hold a password.
    pub host: String,
    /// The path of the repository on its host, as written.
    pub repo_path: String,
    /// The directory in the repository as written; "" for its top. See [`RepoSpec::directory`].
    pub path: String,
    /// The ref, percent-decoded; `None` if the text names none, which means HEAD.
    pub reference: Option<String>,
    /// The time allowed for each git command; `None` if kustomize uses its default (27 s).
    pub timeout: Option<Duration>,
    /// Whether submodules are fetched.
    pub submodules: bool,
    /// Whether the query could not be parsed, so that kustomize ignores all of it and builds HEAD.
    pub query_dropped: bool,
}

impl RepoSpec {
    /// The repository alone, without the parts that do not change a fetch.
    pub fn source(&self) -> RepoSpec {
        RepoSpec { path: String::new(), timeout: None, query_dropped: false, ..self.clone() }
    }

    /// Reads a text as kustomize's `NewRepoSpecFromURL` does.
    ///
    /// The error says why kustomize does not take the text for a git repository; it then tries a local path.
    pub fn parse(text: &str) -> Result<RepoSpec, &'static str> {
        if text.starts_with('/') {
            return Err("it is an absolute path");
        }
        let (location, query) = text.split_once('?').unwrap_or((text, ""));
        let pairs = parse_query(query);
        let (host, rest) = split_host(location)?;
        // Without a mark, the repository is the first two segments, or the whole path on this machine.
        let unmarked = if host == FILE { Some((rest, "")) } else { split_after_two(rest) };
        let (repo_path, path) = split_at_marker(rest).or(unmarked).ok_or("it has no repository")?;
        if repo_path.is_empty() {
            return Err("it has no repository");
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        // With another `/` kustomize takes the path for absolute and does not look for `..` here. It notices them when
        // it opens the directory; we notice them in `refuse_unsafe`.
        if !path.starts_with('/') && clean(path).first() == Some(&"..") {
            return Err("its directory is outside of the repository");
        }
        let query_dropped = pairs.is_none();
        let pairs = pairs.unwrap_or_default();
        Ok(RepoSpec {
            host,
            repo_path: repo_path.to_owned(),
            path: path.to_owned(),
            reference: first_value(&pairs, "ref").or_else(|| first_value(&pairs, "version")).map(str::to_owned),
            timeout: first_value(&pairs, "timeout").and_then(timeout),
            // `strconv.ParseBool`
            submodules: !matches!(
                first_value(&pairs, "submodules"),
                Some("0" | "f" | "F" | "FALSE" | "false" | "False")
            ),
            query_dropped,
        })
    }

    /// The URL or scp-like text that git fetches from.
    pub fn clone_spec(&self) -> SafeUrl {
        format!("{}{}", self.host, self.repo_path).into()
    }

    /// The directory in the repository, cleaned lexically: `/`-separated, without `.`, empty
    /// or trailing segments; "" for the top.
    ///
    /// It begins with `..` only if [`super::refuse_unsafe`] refuses the reference.
    pub fn directory(&self) -> String {
        clean(&self.path).join("/")
    }

    /// Whether the repository is named by a path of this machine.
    pub fn is_file(&self) -> bool {
        self.host == FILE
    }

    /// Whether `..` leads out of the repository, or stands in its own path.
    pub(crate) fn escapes(&self) -> bool {
        self.repo_path.split('/').any(|segment| segment == "..") || clean(&self.path).first() == Some(&"..")
    }

    /// The userinfo, host and port, without the scheme and the separator after them.
    pub(super) fn authority(&self) -> &str {
        let host = self.host.as_str();
        let host = host.split_once("://").map_or(host, |(_, rest)| rest);
        host.strip_suffix(['/', ':']).unwrap_or(host)
    }
}

impl fmt::Debug for RepoSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RepoSpec").field(&self.clone_spec()).field(&self.path).field(&self.reference).finish()
    }
}

/// The first value of a key in a query. An empty one counts as absent; a later one does not replace it.
fn first_value<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a str> {
    let (_, value) = pairs.iter().find(|(key, _)| key == name)?;
    Some(value.as_str()).filter(|value| !value.is_empty())
}

/// Splits the host, in the form in which git gets it, from the path of a text without query. The error says why
/// kustomize does not take the text for a git repository.
pub(super) fn split_host(text: &str) -> Result<(String, &str), &'static str> {
    let text = strip_prefix_ignore_case(text, "git::").unwrap_or(text);
    let (scheme, text) = split_scheme(text);
    if scheme == FILE {
        return Ok((FILE.to_owned(), text));
    }
    // Without a scheme only GitHub and scp-like texts with a user are repositories.
    let (user, text) = split_user(text);
    let github = is_github(text);
    let scp_style = scheme.is_empty() && (!user.is_empty() || github);
    if scheme.is_empty() && !scp_style {
        return Err("it has no scheme that kustomize reads as a git repository");
    }
    let (host, rest) = match host_end(text, scp_style) {
        Some(at) => text.split_at(at + 1),
        None => (text, ""),
    };
    if host.is_empty() {
        return Err("it has no host");
    }
    // kustomize normalizes GitHub: ssh if that is the scheme or a user is given, https otherwise, even for http.
    let host = if !github {
        format!("{scheme}{user}{host}")
    } else if scheme == SSH || !user.is_empty() {
        format!("{user}github.com:")
    } else {
        "https://github.com/".to_owned()
    };
    Ok((host, rest))
}

/// Splits a path at the first explicit mark of where the repository ends, if there is one: the
/// segment after `_git/`, else before `//`, else after `.git`.
pub(super) fn split_at_marker(path: &str) -> Option<(&str, &str)> {
    const AZURE: &str = "_git/";
    if let Some(at) = path.find(AZURE) {
        let name = at + AZURE.len();
        let end = path[name..].find('/').map(|length| name + length);
        return Some(match end {
            Some(end) => (&path[..end], &path[end + 1..]),
            None => (path, ""),
        });
    }
    if let Some(split) = path.split_once("//") {
        return Some(split);
    }
    let at = path.find(".git")?;
    Some(path.split_at(at + ".git".len()))
}

/// Splits a path after two segments, which may be empty: there the repository ends (`OWNER/NAME`) if the URL does not
/// mark its end. `None` if it has only one.
fn split_after_two(path: &str) -> Option<(&str, &str)> {
    let first = path.find('/')?;
    let second = path[first + 1..].find('/');
    Some(match second {
        Some(length) => (&path[..first + 1 + length], &path[first + 1 + length + 1..]),
        None => (path, ""),
    })
}

/// Cleans a relative path lexically, as Go's `filepath.Clean`: only leading `..` remain.
pub(super) fn clean(path: &str) -> Vec<&str> {
    let mut cleaned: Vec<&str> = Vec::new();
    for segment in path.split('/') {
        match segment {
            "" | "." => {}
            ".." if cleaned.last().is_some_and(|last| *last != "..") => {
                cleaned.pop();
            }
            _ => cleaned.push(segment),
        }
    }
    cleaned
}

fn split_scheme(text: &str) -> (&'static str, &str) {
    for scheme in [SSH, HTTPS, HTTP, FILE] {
        if let Some(rest) = strip_prefix_ignore_case(text, scheme) {
            return (scheme, rest);
        }
    }
    ("", text)
}

/// Splits off a user name with its `@`: a letter, then letters, digits and `-`. A user with a
/// password does not count and stays with the host.
fn split_user(text: &str) -> (&str, &str) {
    let Some(at) = text.find('@') else {
        return ("", text);
    };
    let name = &text[..at];
    let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    if plain && name.starts_with(|c: char| c.is_ascii_alphabetic()) { text.split_at(at + 1) } else { ("", text) }
}

/// Whether a text begins with `github.com`, in any case, and `/` or `:`.
fn is_github(text: &str) -> bool {
    // Go folds case by Unicode's simple mapping, so that U+0130 counts as an `i` here.
    let mut folded = text.chars().map(|c| c.to_lowercase().next());
    "github.com".chars().all(|c| folded.next() == Some(Some(c))) && matches!(folded.next(), Some(Some('/' | ':')))
}

/// Finds the character that ends the host: the first `/`; in scp style a `:` that comes before it. `None` if the text
/// has neither.
fn host_end(text: &str, scp_style: bool) -> Option<usize> {
    let slash = text.find('/');
    if !scp_style {
        return slash;
    }
    let colon = text.find(':');
    // kustomize takes a colon at the very beginning only if there is no `/`.
    match (slash, colon) {
        (None, _) => colon,
        (Some(slash), Some(colon)) if colon > 0 && colon < slash => Some(colon),
        _ => slash,
    }
}

#[cfg(test)]
mod tests;
