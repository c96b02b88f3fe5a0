//! What may be locked at all.

use globset::GlobMatcher;
use serde::Deserialize;

use super::{Config, FILE_NAME, address};
use crate::message::failure::shown;
use crate::message::finding::Subject;
use crate::message::redact;

/// An entry of `sources`: upstreams that may be locked.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Keys")]
pub struct Source(GlobMatcher);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    url: String,
}

impl TryFrom<Keys> for Source {
    type Error = String;

    fn try_from(Keys { url }: Keys) -> Result<Source, String> {
        let why = |why| format!("the source `{}` {why}", shown(&redact::url(&url)));
        address::compile(&url).map(Source).map_err(why)
    }
}

impl Config {
    /// Returns whether an upstream may be locked: an entry of `sources` covers it, or there is no such key.
    pub(crate) fn lists(&self, subject: &Subject) -> bool {
        let sources = self.sources.as_ref();
        sources.is_none_or(|all| all.iter().any(|Source(glob)| address::covers(glob, subject)))
    }

    /// Says how an upstream gets into `sources`.
    pub(crate) fn list_it(subject: &Subject) -> String {
        let url = match subject {
            Subject::Git { url, .. } | Subject::Http { url } | Subject::Helm { url, .. } => url,
            _ => "",
        };
        let place = url.split('?').next().unwrap_or_default();
        let place = place.strip_prefix("https://").unwrap_or(place).trim_end_matches(".git");
        format!("if it may be used, add it to `sources` in {FILE_NAME}: - {{url: {}}}", super::allow::quoted(place))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_entry_covers_may_be_locked() {
        let git = |url: &str| Subject::Git { url: url.to_owned(), path: "a".to_owned(), reference: None, pin: "none" };
        let chart = |url: &str| Subject::Helm { url: url.to_owned(), chart: "web".to_owned(), version: String::new() };
        for (sources, subject, expected) in [
            ("", git("https://github.com/evil/lib"), true),
            ("sources: []\n", git("https://github.com/acme/lib"), false),
            ("sources: [{url: github.com/acme}]\n", git("https://github.com/acme/lib.git"), true),
            ("sources: [{url: github.com/acme}]\n", git("git@github.com:acme/lib"), true),
            ("sources: [{url: github.com/acme}]\n", git("http://github.com/acme/lib"), false),
            ("sources: [{url: github.com/acme}]\n", git("https://github.com/acme-evil/lib"), false),
            ("sources: [{url: github.com/acme}]\n", git("https://github.com/acme/../evil/lib"), false),
            ("sources: [{url: github.com/acme/lib/a}]\n", git("https://github.com/acme/lib"), true),
            ("sources: [{url: github.com/x}, {url: '*'}]\n", git("https://h/o/r"), true),
            ("sources: [{url: '*'}]\n", git("file:///srv/r"), false),
            ("sources: [{url: 'file:///srv'}]\n", git("file:///srv/r"), true),
            ("sources: [{url: charts.example}]\n", chart("https://charts.example/stable"), true),
            ("sources: [{url: charts.example/stable/db}]\n", chart("https://charts.example/stable"), false),
        ] {
            let config = Config::parse(sources.as_bytes(), "x").unwrap();
            assert_eq!(config.lists(&subject), expected, "{sources}{subject:?}");
        }
    }

    #[test]
    fn an_entry_that_is_offered_covers_what_it_was_offered_for() {
        for url in
            ["https://github.com/o/r.git", "http://h:8080/o/r", "file:///srv/r", "https://h/it's/r", "ssh://git@h/o/r"]
        {
            let subject = Subject::Git { url: url.to_owned(), path: String::new(), reference: None, pin: "none" };
            let hint = Config::list_it(&subject);
            let (_, entry) = hint.split_once(": - ").unwrap();
            let config = Config::parse(format!("sources: [{entry}]\n").as_bytes(), "x").unwrap();
            assert!(config.lists(&subject), "{hint}");
        }
    }

    #[test]
    fn an_entry_that_matches_nothing_is_an_error() {
        for text in ["sources: [{}]\n", "sources: [{url: ''}]\n", "sources: [{url: 'github*'}]\n", "sources: [x]\n"] {
            assert!(Config::parse(text.as_bytes(), "x").is_err(), "{text}");
        }
    }
}
