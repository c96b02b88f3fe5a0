//! Makes an [`Upstream`] of a reference, or of its text.

use serde::{Deserialize, Deserializer};

use super::{RepoSpec, has_git_marker, looks_like_file};
pub(crate) use crate::message::upstream::{IMAGE, Upstream};

impl Upstream {
    /// The directory of a repository that a reference names.
    pub fn git(spec: &RepoSpec) -> Upstream {
        Upstream::Git {
            url: spec.clone_spec().shown(),
            reference: spec.reference.clone(),
            submodules: spec.submodules,
            path: spec.directory(),
        }
    }

    /// Parses a text that `Display` wrote. The result is always displayed as the same text.
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
        // The text could be the name of a repository or of a file: a guess by its form decides. `Display` writes a
        // repository in one form, so a text in another form is not from one.
        let repository = RepoSpec::parse(text).ok().map(|spec| Upstream::git(&spec));
        repository
            .filter(|git| git.to_string() == text && (has_git_marker(text) || !looks_like_file(text)))
            .unwrap_or_else(|| Upstream::File { url: text.to_owned() })
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
