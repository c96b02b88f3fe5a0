//! Classifies a text that may be a git repository, a remote file, or neither.

use super::go_url::{HttpUrl, strip_prefix_ignore_case};
use super::spec::{RepoSpec, split_at_marker, split_host};
use crate::message::redact;

/// Whether kustomize takes a text for a URL.
pub(crate) fn is_url(text: &str) -> bool {
    RepoSpec::parse(text).is_ok() || is_remote_file(text)
}

/// Whether kustomize sends a GET for this text: Go parses it as a URL, and its scheme is http
/// or https in any case (`IsRemoteFile` in its `api/internal/loader/fileloader.go`).
///
/// A malformed `https:/host/x` counts, and so does every git URL over http: in a field that takes a
/// file or a root, kustomize sends the GET first.
pub(crate) fn is_remote_file(text: &str) -> bool {
    HttpUrl::parse(text).is_some()
}

/// Whether an http or https URL marks where a repository ends, so that a file cannot have been meant: a `//`
/// after the host, a segment `_git`, or a segment that ends in `.git`, before the `?`. Only the mark counts at which
/// [`RepoSpec::parse`] splits.
pub(crate) fn has_git_marker(text: &str) -> bool {
    let location = text.split_once('?').map_or(text, |(location, _)| location);
    let unforced = strip_prefix_ignore_case(location, "git::").unwrap_or(location);
    if HttpUrl::parse(unforced).is_none() {
        return false;
    }
    let Ok((_, path)) = split_host(location) else {
        return false;
    };
    let Some((repository, rest)) = split_at_marker(path) else {
        return false;
    };
    // It also splits inside `.github/` and `my_git/`. Such directories hold files, so these do not count here, and a
    // GET decides, as in kustomize.
    if let Some((before, _)) = repository.split_once("_git/") {
        return before.is_empty() || before.ends_with('/');
    }
    path[repository.len()..].starts_with("//") || rest.is_empty() || rest.starts_with('/')
}

/// The scheme or getter prefix, in lower case and with its `://` or `::`, of a text that was
/// surely meant to be remote but that kustomize cannot read: `git://`, `oci://`, `s3::`, `gh:` …
///
/// `None` if [`RepoSpec::parse`] accepts the text, if kustomize reads its scheme (then it is malformed, not
/// unsupported), or if it may be a local path.
pub(crate) fn unsupported_scheme(text: &str) -> Option<String> {
    if RepoSpec::parse(text).is_ok() {
        return None;
    }
    let unforced = strip_prefix_ignore_case(text, "git::");
    let rest = unforced.unwrap_or(text);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+.-".contains(c)));
    let (scheme, after) = rest.split_at(end.unwrap_or(rest.len()));
    let scheme = scheme.to_ascii_lowercase();
    // A single letter is a drive of Windows.
    let is_scheme = scheme.len() > 1 && scheme.starts_with(|c: char| c.is_ascii_alphabetic());
    if is_scheme && after.starts_with("://") {
        let known = matches!(scheme.as_str(), "ssh" | "https" | "http" | "file");
        return (!known).then(|| scheme + "://");
    }
    if is_scheme && after.starts_with("::") {
        return Some(scheme + "::");
    }
    // kustomize reads `git::` only before a text that is also a git reference without it.
    if unforced.is_some() {
        return Some("git::".to_owned());
    }
    // kustomize read this shorthand until 5.0.
    (scheme == "gh" && after.starts_with(':')).then(|| "gh:".to_owned())
}

/// Why kustomize cannot use a reference of an [`unsupported_scheme`], and a hint with what works instead.
pub(crate) fn why_unsupported(scheme: &str) -> (String, &'static str) {
    match scheme {
        "oci://" => (
            "kustomize does not read OCI yet (kubernetes-sigs/kustomize#6247)".to_owned(),
            "name the git repository that the artifact is made from, at a tag; or let Flux (OCIRepository) or Argo CD \
             (repoURL) deploy it as a source of its own; or name a chart in `helmCharts`",
        ),
        _ => (
            format!("kustomize cannot read `{scheme}`"),
            "use an https, ssh or file URL of a git repository, or the https URL of a file",
        ),
    }
}

/// The forges that are often written without a scheme.
const FORGES: [&str; 4] = ["gitlab.com", "bitbucket.org", "dev.azure.com", "codeberg.org"];

/// A hint with the URL to write for a text that was meant as a repository, but that kustomize takes for a path: without
/// a scheme, it knows only github.com. `None` if a path may have been meant.
pub(crate) fn without_scheme(text: &str) -> Option<String> {
    let (host, url) = (text.split('/').next()?, format!("https://{text}"));
    let is_host = host.contains('.') && host.starts_with(|c: char| c.is_ascii_alphanumeric());
    let is_named = ["?ref=", "?version="].iter().any(|query| text.contains(query));
    let is_meant = is_host && (is_named || FORGES.contains(&host)) && RepoSpec::parse(&url).is_ok();
    is_meant.then(|| format!("kustomize knows only github.com without a scheme: write {}", redact::url(&url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_files() {
        for text in [
            "https://host/x.yaml",
            "http://host/x.yaml",
            "HTTP://host/x",
            "hTTps://host",
            "https:/host/x",
            "https://github.com/org/repo",
            "https://github.com/org/repo//dir?ref=v1",
            "https://github.com/org/repo/tree/main/dir",
            "https://example.org/x?ref=main - ../../x",
            "http::https://host/x",
        ] {
            assert!(is_remote_file(text), "{text}");
        }
        for text in [
            "",
            "x.yaml",
            "../x",
            "/x",
            "github.com/org/repo",
            "git@github.com:org/repo",
            "ssh://git@github.com/org/repo",
            "file:///srv/repo",
            "git::https://github.com/org/repo",
            "oci://host/x",
            " https://host/x",
            "https://ho st/x",
            "https://host/%zz",
        ] {
            assert!(!is_remote_file(text), "{text}");
        }
    }

    #[test]
    fn git_markers() {
        for text in [
            "https://host/o/r//dir?ref=v1",
            "https://host/o/r//",
            "https://host/o/r.git",
            "https://host/o/r.git/dir",
            "https://host/o/r.git?ref=v1",
            "https://dev.azure.com/o/p/_git/r",
            "https://host/_git/r/dir",
            "HTTPS://host/o/r//x.yaml",
            "git::https://host/o/r.git",
            "https://raw.host/o/r/.github//x",
        ] {
            assert!(has_git_marker(text), "{text}");
        }
        for text in [
            "https://host/o/r",
            "https://host/o/r/dir?ref=v1",
            "https://host//x.yaml",
            "https://host",
            "https://raw.githubusercontent.com/o/r/main/x.yaml",
            "https://raw.githubusercontent.com/o/r/main/.github/x.yaml",
            "https://raw.githubusercontent.com/o/my_git/main/x.yaml",
            "https://host/o/r?ref=includes.git/x",
            "https://host/o/r?ref=includes_git/x",
            "https://host/o/r?x=a//b",
            "https://x.gitlab.com/o/r",
            "ssh://git@host/o/r.git",
            "git@host:o/r.git",
            "github.com/o/r//dir",
            "file:///o/r.git",
            "dir//x",
            "",
        ] {
            assert!(!has_git_marker(text), "{text}");
        }
    }

    #[test]
    fn paths_that_were_meant_as_urls() {
        let hint = |text: &str| without_scheme(text);
        for text in [
            "gitlab.com/o/r",
            "bitbucket.org/o/r.git//d",
            "git.example.com/o/r//d?ref=v1",
            "h.example:8443/o/r?version=v1",
        ] {
            let written = format!("kustomize knows only github.com without a scheme: write https://{text}");
            assert_eq!(hint(text), Some(written));
        }
        for text in [
            "app.d/base",
            "../gitlab.com/o/r",
            "gitlab.com",
            "v1.2//x",
            "base?ref=v1",
            ".x/y?ref=v1",
            "-h.example/o/r?ref=v1",
            "",
        ] {
            assert_eq!(hint(text), None, "{text}");
        }
    }

    #[test]
    fn unsupported() {
        for (text, scheme) in [
            ("git://github.com/o/r", "git://"),
            ("git+ssh://git@github.com/o/r", "git+ssh://"),
            ("git+https://github.com/o/r", "git+https://"),
            ("GIT://host/o/r", "git://"),
            ("ftp://host/x", "ftp://"),
            ("oci://ghcr.io/o/r:v1", "oci://"),
            ("s3::https://s3.amazonaws.com/b/x", "s3::"),
            ("hg::http://host/r", "hg::"),
            ("codecommit::us-east-1://repo", "codecommit::"),
            ("git::git://host/o/r", "git://"),
            ("git::s3::x", "s3::"),
            ("git::___", "git::"),
            ("http::https://host/x", "http::"),
            ("htxxxtp://github.com/", "htxxxtp://"),
            ("gh:org/repo", "gh:"),
        ] {
            assert_eq!(unsupported_scheme(text).as_deref(), Some(scheme), "{text}");
        }
        for text in [
            "",
            "base",
            "../base",
            "/abs",
            "C:/x",
            "c://x",
            "a:b",
            "host.xz:path",
            "dir//sub",
            "ghost:x",
            "1://x",
            "é://x",
            "ssh://git.example.com",
            "file:////tmp//x",
            "https://host/x.yaml",
            "https:/host/x",
            "https://github.com/o/r.git//path/../../exits",
            "github.com/o/r",
            "git::github.com/o/r",
            "git@scp://github.com/org/repo.git//path",
            "app@v1/base/x",
        ] {
            assert_eq!(unsupported_scheme(text), None, "{text}");
        }
    }
}
