//! The path of a remote file or root below `localized-files/`, and the default name of NEW_DIR.
//!
//! The layout is that of `kustomize localize` (`api/internal/localizer/util.go`): the host, then the
//! path, and for a root also the ref. We differ where its paths do harm: it uses every text unchanged,
//! so that a path may hold names that a file system refuses (`*`, `:`, `aux`), that git refuses
//! (`.git`) or that kustomize reads as something else (`=`, `?`, `_git/`). Here each segment consists of
//! `[A-Za-z0-9._+-]`, see [`segment`], and hosts are in lower case.
//!
//! As in `kustomize localize`, two references can get the same path, and the layout has to notice it: URLs that
//! differ only in scheme, userinfo, port or query; names that differ only in case; and a ref that runs into the
//! directory after it (`p` + `b/c`, `p/b` + `c`).

use sha2::{Digest, Sha256};

use super::go_url::HttpUrl;
use super::spec::{RepoSpec, clean};
use crate::git::hex;

/// The directory beside a kustomization that holds its localized files.
pub(crate) const LOCALIZED_FILES: &str = "localized-files";

/// The segment in place of a host for repositories that are named by a path of this machine.
const FILE_SCHEME_DIRECTORY: &str = "file-schemed";

/// The longest segment, in bytes.
const MAX_LENGTH: usize = 100;

/// The segments of the localized path of a remote file: the host, then the path, cleaned of empty, `.` and
/// `..` segments, which cannot leave the host. Scheme, userinfo, port, query and fragment do not count. All texts
/// without a host, which cannot be fetched, share one segment.
pub fn file_segments(url: &str) -> Vec<String> {
    // Nothing of a malformed URL (a password, for example) may get into a path.
    let (host, path) = match HttpUrl::parse(url) {
        Some(url) if !url.host.is_empty() => (url.host, url.path),
        _ => ("", ""),
    };
    let mut segments = vec![host_segment(host)];
    // Percent-encoding (`file%2Eyaml`) is not decoded, as in `kustomize localize`; but `%` is outside of our
    // alphabet, so such a segment is changed.
    segments.extend(rooted(path).into_iter().map(segment));
    segments
}

/// The segments of the localized path of a remote root's repository: the host, the path of the repository
/// without one `.git` at its end, and the ref, split at `/`. The directory in the repository comes after.
///
/// `reference` is the ref, or the commit id in its stead.
pub fn root_segments(spec: &RepoSpec, reference: &str) -> Vec<String> {
    let host =
        if spec.is_file() { FILE_SCHEME_DIRECTORY.to_owned() } else { host_segment(host_name(spec.authority())) };
    // kustomize finds `.git` in `.github` too: a segment that is just `.git` stays, changed.
    let path = match spec.repo_path.strip_suffix(".git") {
        Some(path) if !path.is_empty() && !path.ends_with('/') => path,
        _ => &spec.repo_path,
    };
    let mut segments = vec![host];
    segments.extend(rooted(path).into_iter().map(segment));
    if !reference.is_empty() {
        segments.extend(reference.split('/').map(segment));
    }
    segments
}

/// The default name of NEW_DIR: `localized-{base}` for a local target, with `target_base` as
/// the last segment of its path, and `localized-{directory or repository}-{ref}` for a remote target, with
/// `/` in the ref replaced by `-`. Without either, or for the target `/`, it is `localized`.
///
/// The name is one [`segment`]. As in `kustomize localize`, a `.git` at the end of the repository stays.
/// Without a ref, which `kustomize localize` refuses, the name ends before it.
pub(crate) fn default_new_dir(target_base: Option<&str>, spec: Option<&RepoSpec>) -> String {
    // A remote target is named after its directory, or after its repository if that is the target.
    let directory = spec.map(RepoSpec::directory).filter(|directory| !directory.is_empty());
    let path = directory.as_deref().or(spec.map(|spec| &*spec.repo_path)).or(target_base).unwrap_or_default();
    // Only the last segment counts, and a ref must not add one.
    let path = path.trim_end_matches('/');
    let base = path.rsplit_once('/').map_or(path, |(_, base)| base);
    let reference = spec.and_then(|spec| spec.reference.as_deref()).unwrap_or_default().replace('/', "-");
    let parts = ["localized", base, &reference].into_iter().filter(|part| !part.is_empty());
    segment(&parts.collect::<Vec<_>>().join("-"))
}

/// Turns a name into one segment of a path that is safe everywhere: in git, on every file system, and in
/// a kustomization.
///
/// A name that fits does not change. Any other is made to fit, and made distinct by `-` and the first 8 hex digits of
/// its SHA-256, put before a file's extension. Two different names never give the same segment unless
/// these digits collide.
///
/// A name fits if it has 1 to 100 characters of `[A-Za-z0-9._+-]`, does not begin with `-` or end with
/// `.`, and is neither `_git`, nor a name that has a meaning for git (`.git`, `.gitattributes`,
/// `.gitignore`, `.gitmodules`), nor reserved on Windows (`aux`, `com1.txt`), in any case, nor looks as if it were made
/// from another name.
pub(crate) fn segment(name: &str) -> String {
    if fits(name) {
        return name.to_owned();
    }
    let hash = hex(&Sha256::digest(name.as_bytes())[..4]);
    let mapped: String = name.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let (stem, extension) = split_extension(&mapped);
    let mut made = String::new();
    // Only an empty name has an empty stem: `.git` is a stem without an extension.
    if stem.is_empty() || stem.starts_with('-') || is_reserved(stem) {
        made.push('_');
    }
    made.push_str(stem);
    // Only ASCII is left, so that each byte is a character.
    made.truncate(MAX_LENGTH - 1 - hash.len() - extension.len());
    made + "-" + &hash + extension
}

/// Whether [`segment`] leaves a name unchanged: git, kustomize and every file system take it literally.
fn fits(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let special = ["_git", ".git", ".gitattributes", ".gitignore", ".gitmodules"];
    // A name that looks like a result of `segment` is changed as well, so that two names never give the same.
    (1..=MAX_LENGTH).contains(&name.len())
        && name.chars().all(is_allowed)
        && !name.starts_with('-')
        && !name.ends_with('.')
        && !special.contains(&lower.as_str())
        && !is_reserved(name)
        && !looks_made(name)
}

/// Whether a name could be the result of [`segment`] for another name: such a result has a hash, and holds a `_`, is of
/// the greatest length, or does not fit once the hash is removed.
fn looks_made(name: &str) -> bool {
    let (stem, extension) = split_extension(name);
    let Some((stem, hash)) = stem.rsplit_once('-') else {
        return false;
    };
    let is_hash = hash.len() == 8 && hash.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_hash && (stem.contains('_') || name.len() == MAX_LENGTH || !fits(&format!("{stem}{extension}")))
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '+' | '-')
}

/// Whether Windows takes a name for a device; only the part before its first `.` counts.
fn is_reserved(name: &str) -> bool {
    let base = name.split('.').next().unwrap_or_default().to_ascii_lowercase();
    match base.as_str() {
        "con" | "prn" | "aux" | "nul" => true,
        _ => match base.strip_prefix("com").or(base.strip_prefix("lpt")) {
            Some(number) => number.len() == 1 && number.bytes().all(|b| b.is_ascii_digit()),
            None => false,
        },
    }
}

/// Splits off an extension such as `.yaml`: a letter and up to nine more letters and digits, after a name. The digits
/// that make a segment distinct go before it, because kustomize and editors look at the extension.
fn split_extension(name: &str) -> (&str, &str) {
    let Some(dot) = name.rfind('.') else {
        return (name, "");
    };
    let (stem, extension) = name.split_at(dot);
    let letters = &extension[1..];
    let plain = letters.len() <= 10 && letters.bytes().all(|b| b.is_ascii_alphanumeric());
    if !stem.is_empty() && plain && letters.starts_with(|c: char| c.is_ascii_alphabetic()) {
        (stem, extension)
    } else {
        (name, "")
    }
}

/// Cleans a path as one that begins at a root, which `..` cannot leave.
fn rooted(path: &str) -> Vec<&str> {
    let mut segments = clean(path);
    // Only leading `..` are left after cleaning.
    let climbs = segments.iter().take_while(|s| **s == "..").count();
    segments.drain(..climbs);
    segments
}

/// The segment for a host, in lower case, because hosts that differ only in case are the same.
fn host_segment(host: &str) -> String {
    let host = host.to_ascii_lowercase();
    if host == FILE_SCHEME_DIRECTORY {
        // A blank, which no host name holds, keeps this host apart from repositories of this machine.
        return segment(&format!("{host} "));
    }
    segment(&host)
}

/// The name in `[userinfo@]host[:port]`.
fn host_name(authority: &str) -> &str {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    if let Some((address, _)) = host.strip_prefix('[').and_then(|h| h.split_once(']')) {
        return address;
    }
    host.split_once(':').map_or(host, |(host, _)| host)
}

#[cfg(test)]
mod tests;
