//! The upstreams that may be locked, and the conditions that they must meet.

use std::collections::BTreeMap;
use std::time::Duration;

use globset::{GlobMatcher, GlobSet};
use serde::Deserialize;

use super::{Config, FILE_NAME, address, glob, read};
use crate::git::Signers;
use crate::message::failure::{Failure, Result, command, shown};
use crate::message::finding::Rule;
use crate::message::redact;
use crate::record::Pinned;
use crate::reference::Upstream;
use crate::tree::{Entry, Tree, path};

/// An entry of `sources`: upstreams that may be locked. The first entry that covers an upstream decides.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "Keys")]
pub struct SourcePolicy {
    glob: GlobMatcher,
    /// How old a version must be at least.
    pub min_age: Option<Duration>,
    /// The keys of which one must have signed it.
    pub signed_by: Option<Signers>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Keys {
    url: String,
    #[serde(default, deserialize_with = "read::duration")]
    min_age: Option<Duration>,
    signed_by: Option<String>,
}

impl TryFrom<Keys> for SourcePolicy {
    type Error = String;

    fn try_from(Keys { url, min_age, signed_by }: Keys) -> Result<SourcePolicy, String> {
        let glob = address::compile(&url).map_err(|why| format!("the source `{}` {why}", shown(&redact::url(&url))))?;
        // The file of keys is read later, because the tree is not known here.
        Ok(SourcePolicy { glob, min_age, signed_by: signed_by.map(Signers::unread) })
    }
}

/// The entries of `sources`, which are compared with an upstream in one pass.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Vec<SourcePolicy>")]
pub struct SourcePolicies {
    entries: Vec<SourcePolicy>,
    globs: GlobSet,
}

impl TryFrom<Vec<SourcePolicy>> for SourcePolicies {
    type Error = String;

    fn try_from(entries: Vec<SourcePolicy>) -> Result<SourcePolicies, String> {
        let globs = glob::set(entries.iter().map(|source| &source.glob))?;
        Ok(SourcePolicies { entries, globs })
    }
}

impl Config {
    /// Whether an upstream may be locked: an entry of `sources` covers it, or there is no such key.
    pub(crate) fn lists(&self, upstream: &Upstream) -> bool {
        self.sources.is_none() || self.source(upstream).is_some()
    }

    /// The entry of `sources` that decides about an upstream; `None` if no entry covers it.
    pub(crate) fn source(&self, upstream: &Upstream) -> Option<&SourcePolicy> {
        let sources = self.sources.as_ref()?;
        sources.entries.get(*address::covering(&sources.globs, upstream).first()?)
    }

    /// The keys that must have signed a lock entry, by their file: those for each of `paths`, its directories. An entry
    /// of `sources` may be about one of them only.
    pub(crate) fn signers<'a>(
        &self,
        source: &Upstream,
        paths: impl Iterator<Item = &'a String>,
    ) -> BTreeMap<&str, &Signers> {
        let signers = paths.filter_map(|path| self.source(&source.at(path))?.signed_by.as_ref());
        signers.map(|signers| (&*signers.file, signers)).collect()
    }

    /// Reads the files of `signed-by` from the repository whose top is at `directory`.
    pub(super) fn read_signers(&mut self, tree: &dyn Tree, directory: &str) -> Result<()> {
        let policies = self.sources.iter_mut().flat_map(|sources| &mut sources.entries);
        for signers in policies.filter_map(|policy| policy.signed_by.as_mut()) {
            // The file is read from the same tree as the policy, so that a reviewer sees both.
            let path = path::resolve("", &signers.file).map(|file| path::join(directory, &file));
            *signers = match path {
                Some(path) if matches!(tree.entry(&path)?, Some(Entry::File { .. })) => {
                    Signers::parse(&signers.file, tree.read(&path)?)?
                }
                _ => {
                    let message = format!("`signed-by: {}` is not a file of this repository", shown(&signers.file));
                    return Err(Failure::new(message)
                        .hint(format!("write its path from the top into {FILE_NAME}, and `git add` the file")));
                }
            };
        }
        Ok(())
    }

    /// The reason why a lock may not contain an upstream; `None` if it may. `pinned` is the entry in the lock, if there
    /// is one. `min-age` is judged only when something is resolved, because a lock has no dates.
    pub(crate) fn distrust(&self, upstream: &Upstream, pinned: Option<&Pinned>) -> Option<Distrust> {
        // Without the key `sources` every upstream may be locked.
        self.sources.as_ref()?;
        let Some(source) = self.source(upstream) else {
            let (why, hint) = ("is not in `sources`".to_owned(), Config::hint_to_list(upstream));
            return Some(Distrust { rule: Rule::UnlistedSource, why, hint });
        };
        // Without an entry in the lock nothing is signed yet: the fetch verifies it.
        let (signers, pinned) = source.signed_by.as_ref().zip(pinned)?;
        let why = match &pinned.signed {
            Some(signed) if signers.include(signed) => return None,
            Some(signed) => format!("is signed by {signed}, whose key is not in `{}`", signers.file),
            None => format!("is not signed by a key of `{}`, according to the lock", signers.file),
        };
        let hint = match upstream {
            Upstream::Git { url, .. } => {
                format!("to verify its current version: {}", command("git kustomize-localize update", [url]))
            }
            _ => Config::hint_to_list_first(upstream),
        };
        Some(Distrust { rule: Rule::UnsignedSource, why, hint })
    }

    /// A hint for an upstream that cannot have a signature or a date.
    pub(crate) fn hint_to_list_first(upstream: &Upstream) -> String {
        // The first entry that covers an upstream decides, so another one must come before it.
        format!("{}, before the entry that it cannot satisfy", Config::hint_to_list(upstream))
    }

    /// A hint how to add an upstream to `sources`.
    pub(crate) fn hint_to_list(upstream: &Upstream) -> String {
        let url = upstream.url().split('?').next().unwrap_or_default();
        let url = url.strip_prefix("https://").unwrap_or(url).trim_end_matches(".git");
        let entry = super::allow::quoted(&address::escaped(url));
        format!("if it may be used, add it to `sources` in {FILE_NAME}: - {{url: {entry}}}")
    }
}

/// The reason why a lock may not contain an upstream.
pub(crate) struct Distrust {
    pub rule: Rule,
    /// The reason, as the rest of a sentence about the upstream.
    pub why: String,
    pub hint: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_entry_covers_may_be_locked() {
        let git = |url: &str| {
            let (url, path) = (url.to_owned(), "a".to_owned());
            Upstream::Git { url, reference: None, submodules: true, path }
        };
        let chart = |url: &str| Upstream::named(&format!("{url}#web"));
        for (sources, upstream, expected) in [
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
            assert_eq!(config.lists(&upstream), expected, "{sources}{upstream:?}");
        }
    }

    #[test]
    fn an_entry_that_is_offered_covers_what_it_was_offered_for() {
        for url in [
            "https://github.com/o/r.git",
            "http://h:8080/o/r",
            "file:///srv/r",
            "https://h/it's/r",
            "ssh://git@h/o/r",
            "https://[::1]/[o]/{r}",
        ] {
            let (url, path) = (url.to_owned(), String::new());
            let upstream = Upstream::Git { url, reference: None, submodules: true, path };
            let hint = Config::hint_to_list(&upstream);
            let (_, entry) = hint.split_once(": - ").unwrap();
            let config = Config::parse(format!("sources: [{entry}]\n").as_bytes(), "x").unwrap();
            assert!(config.lists(&upstream), "{hint}");
        }
    }

    #[test]
    fn an_entry_that_matches_nothing_is_an_error() {
        for text in ["sources: [{}]\n", "sources: [{url: ''}]\n", "sources: [{url: 'github*'}]\n", "sources: [x]\n"] {
            assert!(Config::parse(text.as_bytes(), "x").is_err(), "{text}");
        }
    }
}
