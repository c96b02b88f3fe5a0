//! Submodules of fetched repositories. kustomize checks them out unless the URL has `?submodules=false`.

use std::collections::BTreeSet;

use gix::bstr::{BString, ByteSlice as _};
use percent_encoding::percent_decode_str;

use crate::message::failure::{Failure, Result};
use crate::message::redact;
use crate::tree::path;

/// An entry of `.gitmodules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Submodule {
    /// Its path in the tree.
    pub path: String,
    /// Its URL as written.
    pub url: String,
}

/// The submodules that a `.gitmodules` lists, in the order of their names.
pub(super) fn parse(bytes: &[u8]) -> Result<Vec<Submodule>> {
    let read = gix::config::File::from_bytes_no_includes(bytes, gix::config::file::Metadata::api(), Default::default());
    let settings = read.map_err(|error| Failure::new(error.to_string()))?;
    let sections = settings.sections_by_name("submodule").into_iter().flatten();
    let names: BTreeSet<BString> =
        sections.filter_map(|section| Some(section.header().subsection_name()?.into())).collect();
    let submodules = names.into_iter().filter_map(|name: BString| {
        let value = |key| settings.string_by("submodule", Some(name.as_bstr()), key)?.to_str().ok().map(str::to_owned);
        // An entry without a path or a URL, or with a path that leaves the tree, has no content.
        let path = path::resolve("", &value("path")?).filter(|path| !path.is_empty())?;
        Some(Submodule { path, url: value("url")? })
    });
    Ok(submodules.collect())
}

/// The URL of a submodule. A relative one is relative to the URL of its repository (git's `relative_url`).
pub(super) fn resolve_url(parent: &str, url: &str) -> Result<String> {
    if url.starts_with('-') || url.chars().any(char::is_control) {
        return Err(refused_url(url, "git could misread it"));
    }
    let is_relative = url.starts_with("./") || url.starts_with("../");
    let resolved = if is_relative { relative_to(parent, url)? } else { url.to_owned() };
    // No part of the authority may look like an option to git or ssh.
    let authority = resolved.split_once("://").map_or(resolved.as_str(), |(_, rest)| rest);
    let (authority, _) = authority.split_once('/').unwrap_or((authority, ""));
    if authority.split('@').any(|part| percent_decode_str(part).next() == Some(b'-')) {
        return Err(refused_url(url, "git could misread it"));
    }
    if !is_supported(&resolved, parent) {
        return Err(refused_url(url, "its transport is not supported"));
    }
    Ok(resolved)
}

/// The URL at a relative path from the URL `parent`. Scheme and host stay the same.
fn relative_to(parent: &str, url: &str) -> Result<String> {
    let (start, ends): (usize, &[char]) = match parent.find("://") {
        Some(at) => (at + "://".len(), &['/']),
        None => (0, &['/', ':']),
    };
    let end = parent[start..].find(ends).map_or(parent.len(), |at| start + at);
    let (server, directory) = parent.split_at(end);
    let path = path::resolve(directory.trim_start_matches(ends), url);
    let path = path.ok_or_else(|| refused_url(url, "it leads out of its server"))?;
    // The path of `user@host:/path` is absolute.
    let between = if directory.starts_with(":/") { ":/" } else { directory.get(..1).unwrap_or("/") };
    Ok(format!("{server}{between}{path}"))
}

/// Whether kustomize accepts the transport of a URL. Local ones are accepted only in local repositories.
fn is_supported(url: &str, parent: &str) -> bool {
    let is_in_local = parent.starts_with("file://") || parent.starts_with('/');
    let scheme = url.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
    match scheme.as_deref() {
        Some("https" | "http" | "ssh") => true,
        Some("file") => is_in_local,
        Some(_) => false,
        None if url.contains("::") => false,
        None if url.starts_with('/') => is_in_local,
        // scp-like: `user@host:path`
        None => !url.starts_with('.') && url.contains(':'),
    }
}

fn refused_url(url: &str, why: &str) -> Failure {
    Failure::new(format!("`{}` is refused: {why}", redact::url(url)))
        .hint("to build without submodules, add `submodules=false` to the query of the reference")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_urls_are_relative_to_the_repository() {
        for (parent, url, expected) in [
            ("https://h/o/r", "../lib.git", "https://h/o/lib.git"),
            ("https://h/o/r.git/", "./sub", "https://h/o/r.git/sub"),
            ("git@h:o/r", "../../p/lib", "git@h:p/lib"),
            ("git@h:/srv/git/a.git", "../b.git", "git@h:/srv/git/b.git"),
            ("https://h", "./x", "https://h/x"),
            ("https://h/", "./x", "https://h/x"),
            ("file:///srv/r", "../lib", "file:///srv/lib"),
            ("https://h/o/r", "ssh://git@h/x", "ssh://git@h/x"),
            ("https://h/o/r", "git@h:x/y", "git@h:x/y"),
        ] {
            assert_eq!(resolve_url(parent, url).unwrap(), expected);
        }
    }

    #[test]
    fn urls_that_could_do_harm_are_refused() {
        for url in [
            "-u",
            "ext::sh -c id",
            "file:///etc",
            "/etc",
            "fd::17",
            "git://h/x",
            "a\nb",
            "../../../../../x",
            "ssh://-oProxyCommand=x/y",
            "ssh://git@%2DoProxyCommand=x/y",
            "git@-oProxyCommand=x:y",
        ] {
            assert!(resolve_url("https://h/o/r", url).is_err(), "{url}");
        }
    }
}
