//! What is named on another host.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{RepoSpec, has_git_marker, looks_like_file};

/// How the text of an image begins.
const IMAGE: &str = "docker://";

/// What a reference names on another host: the one identity of it, without secrets. Ordered as a lock is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Upstream {
    /// A directory of a repository at a ref, or the repository itself: its top.
    Git {
        /// The clone specification.
        url: String,
        /// The ref as it was written.
        reference: Option<String>,
        submodules: bool,
        /// Empty for the top.
        path: String,
    },
    /// A file, or what may be one or a repository.
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
    /// Returns the directory that a reference names.
    pub fn git(spec: &RepoSpec) -> Upstream {
        Upstream::Git {
            url: spec.clone_spec().shown(),
            reference: spec.reference.clone(),
            submodules: spec.submodules,
            path: spec.directory(),
        }
    }

    /// Returns what a text names that `Display` wrote. Where a repository and a file are named alike, how the URL looks
    /// decides.
    pub fn named(text: &str) -> Upstream {
        if let Some(image) = text.strip_prefix(IMAGE) {
            return Upstream::Image { image: image.to_owned() };
        }
        if let Some((url, chart)) = text.split_once('#') {
            let (chart, version) =
                chart.split_once('@').map_or((chart, None), |(chart, version)| (chart, Some(version)));
            let version = version.map(str::to_owned);
            return Upstream::Chart { url: url.to_owned(), chart: chart.to_owned(), version };
        }
        let is_meant = |spec: &RepoSpec| {
            Upstream::git(spec).to_string() == text && (has_git_marker(text) || !looks_like_file(text))
        };
        match RepoSpec::parse(text) {
            Ok(spec) if is_meant(&spec) => Upstream::git(&spec),
            _ => Upstream::File { url: text.to_owned() },
        }
    }

    /// Returns another directory of the same repository; itself if it is not in one.
    pub fn at(&self, directory: &str) -> Upstream {
        let mut other = self.clone();
        if let Upstream::Git { path, .. } = &mut other {
            directory.clone_into(path);
        }
        other
    }

    /// Returns what is fetched, and what a lock has an entry for.
    pub fn source(&self) -> Upstream {
        self.at("")
    }

    /// Returns the directory in the repository; empty for the top, and for what is not in one.
    pub fn path(&self) -> &str {
        if let Upstream::Git { path, .. } = self { path } else { "" }
    }

    /// Returns the URL of what is fetched; of an image its name.
    pub fn url(&self) -> &str {
        match self {
            Upstream::Git { url, .. } | Upstream::File { url } | Upstream::Chart { url, .. } => url,
            Upstream::Image { image } => image,
        }
    }

    /// Returns the ref of a repository.
    pub fn reference(&self) -> Option<&str> {
        if let Upstream::Git { reference, .. } = self { reference.as_deref() } else { None }
    }

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

/// As a person would write it: `URL//PATH?ref=REF`, `URL`, `URL#CHART@VERSION`, `docker://IMAGE`.
impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Upstream::Git { url, reference, submodules, path } => {
                f.write_str(url)?;
                if !path.is_empty() {
                    write!(f, "//{path}")?;
                }
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

impl<'de> Deserialize<'de> for Upstream {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Upstream::named(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_names_the_same() {
        let git = |url: &str, reference: Option<&str>, submodules, path: &str| Upstream::Git {
            url: url.to_owned(),
            reference: reference.map(str::to_owned),
            submodules,
            path: path.to_owned(),
        };
        let chart = |version: Option<&str>| Upstream::Chart {
            url: "https://charts.example.com/stable".to_owned(),
            chart: "redis".to_owned(),
            version: version.map(str::to_owned),
        };
        for (upstream, text) in [
            (git("https://github.com/a/b", Some("v1"), true, ""), "https://github.com/a/b?ref=v1"),
            (
                git("https://github.com/a/b", Some("v1"), false, "x/y"),
                "https://github.com/a/b//x/y?ref=v1&submodules=false",
            ),
            (git("https://github.com/a/b", None, false, ""), "https://github.com/a/b?submodules=false"),
            (git("git@github.com:a/b", None, true, "x"), "git@github.com:a/b//x"),
            (git("file:///srv/a.git", Some("main"), true, "x"), "file:///srv/a.git//x?ref=main"),
            (git("https://h/o/_git/r", Some("v1"), true, "x"), "https://h/o/_git/r//x?ref=v1"),
            (Upstream::File { url: "https://h/a/b/c/x.yaml".to_owned() }, "https://h/a/b/c/x.yaml"),
            (Upstream::File { url: "https://h/a/b/raw?ref=v1".to_owned() }, "https://h/a/b/raw?ref=v1"),
            (Upstream::File { url: "https://h/x.yaml".to_owned() }, "https://h/x.yaml"),
            (Upstream::Image { image: "h:5000/fn:v1@sha256:0".to_owned() }, "docker://h:5000/fn:v1@sha256:0"),
            (chart(None), "https://charts.example.com/stable#redis"),
            (chart(Some("^1.2")), "https://charts.example.com/stable#redis@^1.2"),
        ] {
            assert_eq!(upstream.to_string(), text);
            assert_eq!(Upstream::named(text), upstream, "{text}");
        }
    }
}
