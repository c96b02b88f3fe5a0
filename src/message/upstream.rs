//! The identity of something on another host.

use std::cmp::Ordering;
use std::fmt;

use serde::{Serialize, Serializer};

use super::finding::{Rule, Subject};
use super::pin::Pin;
use super::redact;

/// The prefix of the text of an image.
pub(crate) const IMAGE: &str = "docker://";

/// The identity of something on another host that a reference names, without secrets. Ordered as a lock is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Upstream {
    /// A directory of a repository at a ref; its top means the repository itself.
    Git {
        /// The clone specification.
        url: String,
        /// The ref as it was written.
        reference: Option<String>,
        submodules: bool,
        /// Empty for the top.
        path: String,
    },
    /// A file, or a text that may mean a file or a repository.
    File { url: String },
    /// A Helm chart of a repository.
    Chart {
        url: String,
        chart: String,
        /// As it was written.
        version: Option<String>,
    },
    /// The image of a function, as it was written.
    Image { image: String },
}

impl Upstream {
    /// Another directory of the same repository; a copy of itself if it is not in a repository.
    pub fn at(&self, directory: &str) -> Upstream {
        let mut other = self.clone();
        if let Upstream::Git { path, .. } = &mut other {
            directory.clone_into(path);
        }
        other
    }

    /// The unit of a fetch and of a lock entry: the whole repository for a directory of it.
    pub fn source(&self) -> Upstream {
        self.at("")
    }

    /// The directory in the repository; empty for the top, and for anything that is not in a repository.
    pub fn path(&self) -> &str {
        if let Upstream::Git { path, .. } = self { path } else { "" }
    }

    /// The URL of the repository, file or chart; the name of an image.
    pub fn url(&self) -> &str {
        match self {
            Upstream::Git { url, .. } | Upstream::File { url } | Upstream::Chart { url, .. } => url,
            Upstream::Image { image } => image,
        }
    }

    /// The ref of a repository; `None` if it is missing.
    pub fn reference(&self) -> Option<&str> {
        if let Upstream::Git { reference, .. } = self { reference.as_deref() } else { None }
    }

    /// The kind of its ref.
    pub fn pin(&self) -> Pin {
        Pin::of(self.reference())
    }

    /// The rule that forbids it to stay remote.
    pub fn rule(&self) -> Rule {
        match self {
            Upstream::Git { .. } | Upstream::File { .. } => Rule::RemoteReference,
            Upstream::Chart { .. } => Rule::RemoteChart,
            Upstream::Image { .. } => Rule::Function,
        }
    }

    /// The subject of a finding about it, as a policy names it.
    pub fn subject(&self) -> Subject {
        Subject::Remote(self.redacted())
    }

    /// A copy as a policy names it: without tokens in its path and ref, and without regard to submodules.
    pub fn redacted(&self) -> Upstream {
        let mut upstream = self.clone();
        if let Upstream::Git { reference, submodules, path, .. } = &mut upstream {
            // An exception for a directory holds whether its submodules are fetched or not.
            (*submodules, *path) = (true, redact::url(path));
            *reference = reference.as_deref().map(redact::url);
        }
        upstream
    }

    /// The order of upstreams in a lock: by URL, then by kind and the other parts.
    fn key(&self) -> (&str, u8, &str, Option<&str>, bool, &str) {
        match self {
            Upstream::Git { url, reference, submodules, path } => (url, 0, "", reference.as_deref(), *submodules, path),
            Upstream::File { url } => (url, 1, "", None, false, ""),
            Upstream::Chart { url, chart, version } => (url, 2, chart, version.as_deref(), false, ""),
            Upstream::Image { image } => (image, 3, "", None, false, ""),
        }
    }
}

impl PartialOrd for Upstream {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Upstream {
    fn cmp(&self, other: &Self) -> Ordering {
        self.key().cmp(&other.key())
    }
}

/// The text of an upstream in locks, in entries of `allow` and in messages, which [`Upstream::named`] parses:
/// `URL[//PATH][?ref=REF][&submodules=false]`, `URL`, `URL#CHART[@VERSION]` or `docker://IMAGE`.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Git { url, reference, submodules, path } => {
                f.write_str(url)?;
                if !path.is_empty() {
                    write!(f, "//{path}")?;
                }
                // A reference gives a URL without a query, but somebody may write one into a lock.
                let mut separator = if url.contains('?') { '&' } else { '?' };
                if let Some(reference) = reference {
                    write!(f, "{separator}ref={reference}")?;
                    separator = '&';
                }
                if *submodules { Ok(()) } else { write!(f, "{separator}submodules=false") }
            }
            Upstream::File { url } => f.write_str(url),
            Upstream::Chart { url, chart, version } => {
                write!(f, "{url}#{chart}")?;
                version.as_ref().map_or(Ok(()), |version| write!(f, "@{version}"))
            }
            Upstream::Image { image } => write!(f, "{IMAGE}{image}"),
        }
    }
}

impl Serialize for Upstream {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
