//! Guesses from the URL of a single file: whether it names a file, and which version.

use percent_encoding::percent_decode_str;

use super::url_parts::UrlParts;
use super::{Pin, has_git_marker, is_remote_file};

/// Whether a text that could also name a repository is probably meant as a file: its path ends like a file that a build
/// reads, or it is an http(s) URL at which a known forge serves raw bytes. A guess, for messages, for the order of
/// requests, and for the texts of records.
pub(crate) fn looks_like_file(url: &str) -> bool {
    let path = url.split(['?', '#']).next().unwrap_or(url);
    let lower = path.to_ascii_lowercase();
    [".yaml", ".yml", ".json"].iter().any(|ending| lower.ends_with(ending))
        || (is_remote_file(url)
            && !has_git_marker(url)
            && UrlParts::of(url).is_some_and(|parts| parts.version_at_forge().is_some()))
}

/// Whether the extension of a URL or a file name is one of HTML.
pub(crate) fn names_page(name: &str) -> bool {
    let path = name.split(['?', '#']).next().unwrap_or(name).to_ascii_lowercase();
    [".html", ".htm"].iter().any(|ending| path.ends_with(ending))
}

/// How firmly the URL of a file names a version, and the part of it that does, for example `main` or
/// `releases/latest`; that part is empty if the version is missing. `None` if no part is known to be a version.
///
/// The known forms are the raw files, releases and gists of GitHub, the raw files of Bitbucket, and on any host the raw
/// files and the latest release of GitLab, the queries `ref` and `at`, and a directory that is `latest` or named as a
/// branch that most repositories have. The server accepts a short commit id as long as it is unique.
pub(crate) fn file_pin(url: &str) -> Option<(Pin, String)> {
    let parts = UrlParts::of(url)?;
    let version = parts
        .version_at_forge()
        .or_else(|| parts.probable_branch())
        .or_else(|| parts.query_value("ref"))
        .or_else(|| parts.query_value("at"))?;
    let pin = match version.as_str() {
        // A URL without a version, or with a branch whose name ends at an unknown segment, moves.
        "" | "refs/heads" => Pin::Branch,
        version if LATEST.contains(&version) => Pin::Branch,
        version => Pin::of(Some(version)),
    };
    Some((pin, version))
}

/// The usual names of the first branch of a repository.
const DEFAULT_BRANCHES: [&str; 5] = ["main", "master", "trunk", "develop", "HEAD"];

/// The part of a path that means the newest release, at GitHub and at GitLab.
const LATEST: [&str; 2] = ["releases/latest", "releases/permalink/latest"];

impl UrlParts<'_> {
    /// The version in the URL of a file, of its web page (`blob`) or of a file of a release at a known forge. Empty for
    /// a gist with a single segment after `raw`, which counts as the file name. `None` for any other URL, also if no
    /// file follows the version.
    fn version_at_forge(&self) -> Option<String> {
        let segments = self.segments.as_slice();
        // The segments after the repository and the kind of the URL, such as `raw`: first the version, then the path of
        // the file. The web page of a file, `blob`, has them in the same order.
        let version_and_path = match (self.host.as_str(), segments) {
            ("raw.githubusercontent.com", [_, _, rest @ ..])
            | ("github.com" | "www.github.com", [_, _, "raw" | "blob", rest @ ..])
            | ("github.com" | "www.github.com", [_, _, "releases", "download", rest @ ..])
            | ("bitbucket.org", [_, _, "raw", rest @ ..]) => rest,
            ("github.com" | "www.github.com", [_, _, "releases", "latest", "download", _, ..]) => {
                return Some(LATEST[0].to_owned());
            }
            ("gist.githubusercontent.com" | "gist.github.com", [_, _, "raw", rest @ ..]) => {
                return Some(match rest {
                    [revision, _, ..] => (*revision).to_owned(),
                    _ => String::new(),
                });
            }
            // GitLab, which runs on any host: `-` ends the path of the repository, however many groups are in it.
            _ => {
                let dash = segments.iter().position(|segment| *segment == "-")?;
                match &segments[dash + 1..] {
                    ["raw" | "blob", rest @ ..] => rest,
                    ["releases", "permalink", "latest", _, ..] => {
                        return Some(LATEST[1].to_owned());
                    }
                    _ => return None,
                }
            }
        };
        // A full ref takes three segments, any other version one. Of others, such as `refs/pull/1/head`, `refs` is
        // taken, which counts as a branch, because they move.
        match version_and_path {
            ["refs", kind @ ("heads" | "tags"), name, _, ..] => Some(format!("refs/{kind}/{name}")),
            [version, _, ..] => Some((*version).to_owned()),
            _ => None,
        }
    }

    /// A part of the path that usually moves, on a host whose URLs are not known: a word for the newest release, a
    /// branch in `refs/heads`, or the usual name of a first branch. `None` if it has no such part.
    fn probable_branch(&self) -> Option<String> {
        // The last segment is the file itself.
        let (_, directories) = self.segments.split_last()?;
        directories.iter().enumerate().find_map(|(at, segment)| match *segment {
            "latest" if at > 0 && directories[at - 1] == "releases" => Some(LATEST[0].to_owned()),
            "heads" if at > 0 && directories[at - 1] == "refs" => Some("refs/heads".to_owned()),
            "latest" => Some("latest".to_owned()),
            segment => DEFAULT_BRANCHES.contains(&segment).then(|| segment.to_owned()),
        })
    }

    /// The decoded value of a key in the query; `None` if it is missing, empty or not printable.
    fn query_value(&self, key: &str) -> Option<String> {
        let mut pairs = self.query.split('&').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == key)?;
        let value = percent_decode_str(value).decode_utf8().ok()?;
        let shown = !value.is_empty() && !value.chars().any(char::is_control);
        shown.then(|| value.into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_files() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        for (url, pin, version) in [
            ("https://raw.githubusercontent.com/o/r/main/x.yaml", Pin::Branch, "main"),
            ("https://raw.githubusercontent.com/o/r/v1.2.3/a/x.yaml", Pin::Tag, "v1.2.3"),
            ("https://raw.githubusercontent.com/o/r/refs/heads/v1/x.yaml", Pin::Branch, "refs/heads/v1"),
            ("https://raw.githubusercontent.com/o/r/refs/tags/stable/x.yaml", Pin::Tag, "refs/tags/stable"),
            ("https://raw.githubusercontent.com/o/main/v1/main/x.yaml", Pin::Tag, "v1"),
            ("https://u:p@RAW.githubusercontent.com/o/r/abc1234/x.yaml", Pin::ShortCommit, "abc1234"),
            ("https://github.com/o/r/raw/HEAD/x.yaml", Pin::Branch, "HEAD"),
            ("https://github.com/o/r/releases/latest/download/x.yaml", Pin::Branch, "releases/latest"),
            ("https://github.com/o/r/releases/download/v1.0/x.yaml", Pin::Tag, "v1.0"),
            ("https://github.com/o/r/releases/download/nightly/x.yaml", Pin::Branch, "nightly"),
            ("https://gitlab.example.com/g/s/r/-/raw/main/x.yaml", Pin::Branch, "main"),
            (
                "https://gitlab.com/g/r/-/releases/permalink/latest/downloads/x.yaml",
                Pin::Branch,
                "releases/permalink/latest",
            ),
            ("https://bitbucket.org/o/r/raw/v2/x.yaml", Pin::Tag, "v2"),
            ("https://gist.githubusercontent.com/u/1/raw/x.yaml", Pin::Branch, ""),
            (&format!("https://gist.githubusercontent.com/u/1/raw/{id}/x.yaml"), Pin::Commit, id),
            ("https://example.com/manifests/master/x.yaml", Pin::Branch, "master"),
            ("https://example.com/latest/x.yaml", Pin::Branch, "latest"),
            ("https://example.com/api/x.yaml/raw?a=b&ref=main", Pin::Branch, "main"),
            ("https://git.example.com/x.yaml?at=refs%2Ftags%2Fv1", Pin::Tag, "refs/tags/v1"),
        ] {
            let version = (pin, version.to_owned());
            assert_eq!(file_pin(url), Some(version), "{url}");
        }
        for url in [
            "",
            "https://example.com",
            "https://example.com/x.yaml",
            "https://example.com/main",
            "https://example.com/v1/main.yaml",
            "https://example.com/maintenance/x.yaml",
            "https://example.com/x.yaml?token=main",
            "https://raw.githubusercontent.com/o/r",
        ] {
            assert_eq!(file_pin(url), None, "{url}");
        }
    }

    #[test]
    fn files_are_recognized_by_their_extension_or_host() {
        for url in [
            "https://host/o/r/x.yaml",
            "https://host/o/r/X.YML?ref=v1",
            "https://host/x.json#y",
            "https://raw.githubusercontent.com/o/r/v1/config",
            "https://github.com/o/r/releases/latest/download/all",
        ] {
            assert!(looks_like_file(url), "{url}");
        }
        for url in [
            "https://github.com/o/r",
            "https://github.com/o/r/dir?ref=main",
            "https://github.com/o/r//main/x?ref=v1",
            "https://github.com/o/r/main/x",
            "https://host/o/r.git/main/x",
            "https://raw.githubusercontent.com/o/r",
            "git@host:main/x/y",
        ] {
            assert!(!looks_like_file(url), "{url}");
        }
    }
}
