//! References that stay remote by decision.

use std::collections::{BTreeMap, BTreeSet};

use super::{Config, PLACEHOLDER, RefPolicy, UrlGlob, is_placeholder};
use crate::failure::{Exception, Failure, Location, Result, shown};
use crate::finding::{Rule, Subject};
use crate::redact;

/// What stays remote: the entries of `allow` with `leave: true`, and what `--leave-remote` names. Nothing else
/// decides, least of all whether a server answers.
pub struct Leave<'a> {
    config: &'a Config,
    /// What `--leave-remote` names.
    pub named: Vec<UrlGlob>,
}

impl<'a> Leave<'a> {
    /// Takes what the configuration says, and `named`, the globs of `--leave-remote` ([`Leave::glob`]).
    ///
    /// # Errors
    /// When one of these is not a glob, or an entry of the configuration has a placeholder for a reason.
    pub fn new(config: &'a Config, named: &BTreeSet<String>) -> Result<Leave<'a>> {
        if let Some((span, _, reason)) = config.unreasoned().next() {
            let failure = Failure::new(format!(
                "`{}` is a placeholder, not a reason",
                shown(reason)
            ));
            return Err(failure
                .hint("say why, for those who review it")
                .at(Location {
                    file: config.file.clone(),
                    line: span.line,
                    column: span.column,
                    ..Location::default()
                }));
        }
        let globs = named.iter().map(|text| {
            UrlGlob::parse(text).map_err(|why| {
                Failure::new(format!(
                    "`--leave-remote {}` {}",
                    shown(&redact::url(text)),
                    redact::text(&why)
                ))
                .hint("write a host, or a host and a path, as `github.com/acme/bases`")
            })
        });
        Ok(Leave {
            config,
            named: globs.collect::<Result<_>>()?,
        })
    }

    /// Returns what `--leave-remote URL` matches: a URL as people paste it, without query and secrets.
    #[must_use]
    pub fn glob(url: &str) -> String {
        let url = redact::url(url);
        let end = url.find(['?', '#']).unwrap_or(url.len());
        url[..end].to_owned()
    }

    /// Returns why something that a rule is about stays remote; none if it does not.
    #[must_use]
    pub fn accepts(&self, rule: Rule, subject: &Subject) -> Option<String> {
        if let Some(index) = self.config.leaving(rule, subject) {
            let reason = redact::text(&self.config.allow[index].reason);
            return Some(reason.replace(char::is_control, " "));
        }
        let mut named = self.named.iter();
        let is_named = named.any(|glob| glob.matches(subject));
        is_named.then(|| "--leave-remote".to_owned())
    }
}

impl Config {
    /// Returns the index of the first entry of `allow` that lets something stay remote that a rule is about.
    #[must_use]
    pub fn leaving(&self, rule: Rule, subject: &Subject) -> Option<usize> {
        if self.allow.iter().all(|allow| !allow.leave) {
            return None;
        }
        let refs = RefPolicy::of(rule, subject);
        self.allow.iter().position(|allow| {
            allow.leave
                && !is_placeholder(&allow.reason)
                && allow.rules.contains(&rule)
                && allow.refs <= refs
                && allow.url.matches(subject)
        })
    }

    /// Returns what lets the subject of a rule stay remote; none where no entry can name it.
    #[must_use]
    pub fn exception(rule: Rule, subject: &Subject) -> Option<Exception> {
        let url = UrlGlob::naming(subject)?;
        let inside = match subject {
            Subject::Git { path, .. } => path.split('/').filter(|name| !name.is_empty()).count(),
            Subject::Http { .. } | Subject::Helm { .. } => 1,
            Subject::Image { .. } | Subject::Local => 0,
        };
        let repository = url.rsplitn(inside + 1, '/').last().unwrap_or_default();
        Some(Exception {
            refs: RefPolicy::of(rule, subject).name(),
            rule: if rule.is_allowed_by_default() {
                ""
            } else {
                rule.id()
            },
            repository: repository.to_owned(),
            url,
        })
    }

    /// Returns the entry of `allow` that [`Config::exception`] stands for, as YAML.
    #[must_use]
    pub fn entry_leaving(rule: Rule, subject: &Subject) -> Option<String> {
        Config::entries(&[&Config::exception(rule, subject)?]).pop()
    }

    /// Returns the entries of `allow` for all of these, as YAML, one for each repository: about what several have in
    /// common.
    #[must_use]
    pub fn entries(exceptions: &[&Exception]) -> Vec<String> {
        let mut groups: BTreeMap<(&str, &str), Vec<&Exception>> = BTreeMap::new();
        for one in exceptions {
            let kind = (one.repository.as_str(), one.rule);
            groups.entry(kind).or_default().push(one);
        }
        let entries = groups.into_iter().map(|((repository, rule), group)| {
            let urls: BTreeSet<&str> = group.iter().map(|one| one.url.as_str()).collect();
            let url = match urls.first() {
                Some(url) if urls.len() == 1 => url,
                _ => repository,
            };
            let is_of = |policy: &&RefPolicy| group.iter().any(|one| one.refs == policy.name());
            let refs = RefPolicy::ALL
                .iter()
                .find(is_of)
                .copied()
                .unwrap_or_default();
            let mut entry = format!("- {{url: {}", quoted(url));
            if refs != RefPolicy::default() {
                entry.push_str(&format!(", refs: {}", refs.name()));
            }
            if !rule.is_empty() {
                entry.push_str(&format!(", rules: [{rule}]"));
            }
            entry.push_str(&format!(", leave: true, reason: {PLACEHOLDER}}}"));
            entry
        });
        entries.collect()
    }
}

/// Returns a text as a value between `{` and `}`.
pub(super) fn quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._/-".contains(c);
    if text.chars().all(is_plain) && text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn git(url: &str, pin: &'static str) -> Subject {
        Subject::Git {
            url: url.to_owned(),
            path: "a-b".to_owned(),
            reference: Some("x".to_owned()),
            pin,
        }
    }

    #[test]
    fn a_printed_entry_means_what_it_was_printed_for() {
        let http = |url: &str| Subject::Http {
            url: url.to_owned(),
        };
        let helm = |url: &str, version: &str| Subject::Helm {
            url: url.to_owned(),
            chart: "web".to_owned(),
            version: version.to_owned(),
        };
        let image = |image: &str| Subject::Image {
            image: image.to_owned(),
        };
        for (rule, subject) in [
            (
                Rule::RemoteReference,
                git("https://github.com/o/r.git", "tag"),
            ),
            (Rule::RemoteReference, git("git@host:o/r", "branch")),
            (
                Rule::RemoteReference,
                git("http://[::1]:8080/o/r", "commit"),
            ),
            (Rule::RemoteReference, git("file:///srv/r", "none")),
            (
                Rule::RemoteReference,
                http("https://example.com/x*y'/z.yaml?a=b"),
            ),
            (
                Rule::RemoteReference,
                http("https://example.com:8443/releases/latest/x"),
            ),
            (Rule::RemoteChart, helm("https://charts.example/", "1.2.3")),
            (Rule::RemoteChart, helm("oci://h/o", "^1")),
            (Rule::Function, image("busybox")),
            (Rule::Function, image("acme/fn:latest")),
            (Rule::Function, image("localhost:5000/fn@sha256:abc")),
            (Rule::Function, image("gcr.io/x/fn:v1")),
            (Rule::Function, http("https://example.com/x.star")),
        ] {
            let entry = Config::entry_leaving(rule, &subject);
            let entry = entry.unwrap_or_else(|| panic!("{subject:?}"));
            let printed = format!("allow:\n{entry}\n");
            let config = Config::parse(printed.as_bytes(), "x").unwrap();
            assert_eq!(config.leaving(rule, &subject), None, "{entry}");
            let text = printed.replace(PLACEHOLDER, "ours");
            let config = Config::parse(text.as_bytes(), "x").unwrap();
            assert_eq!(config.leaving(rule, &subject), Some(0), "{entry}");
            let none = BTreeSet::new();
            let leave = Leave::new(&config, &none).unwrap();
            assert_eq!(leave.accepts(rule, &subject).as_deref(), Some("ours"));
            let without = text.replace(", leave: true", "");
            let config = Config::parse(without.as_bytes(), "x").unwrap();
            assert_eq!(config.leaving(rule, &subject), None, "{entry}");
        }
        assert_eq!(Config::entry_leaving(Rule::Function, &Subject::Local), None);
    }

    #[test]
    fn rules_and_refs_count_as_for_allowing() {
        let subject = git("https://github.com/o/r", "branch");
        for (entry, is_left) in [
            ("url: github.com/o, leave: true", false),
            ("url: github.com/o, leave: true, refs: branch", true),
            (
                "url: github.com/o, leave: true, refs: any, rules: [floating-ref]",
                false,
            ),
            ("url: github.com/other, leave: true, refs: any", false),
        ] {
            let text = format!("allow: [{{{entry}, reason: r}}]\n");
            let config = Config::parse(text.as_bytes(), "x").unwrap();
            let found = config.leaving(Rule::RemoteReference, &subject).is_some();
            assert_eq!(found, is_left, "{entry}");
        }
    }

    #[test]
    fn a_pasted_url_is_a_glob_without_its_secrets() {
        let config = Config::default();
        for url in [
            "https://u:hunter2@github.com/o/r//a?ref=v1&sig=hunter2",
            "github.com/o",
            "https://github.com/o/r.git",
        ] {
            let glob = Leave::glob(url);
            assert!(!glob.contains("hunter2"), "{glob}");
            let leave = Leave::new(&config, &BTreeSet::from([glob])).unwrap();
            let subject = Subject::Git {
                url: "https://github.com/o/r".to_owned(),
                path: "a".to_owned(),
                reference: None,
                pin: "none",
            };
            let accepted = leave.accepts(Rule::RemoteReference, &subject);
            assert_eq!(accepted.as_deref(), Some("--leave-remote"), "{url}");
        }
        for url in ["", "apps/web x", "ftp://h/x", "../x"] {
            let globs = BTreeSet::from([Leave::glob(url)]);
            assert!(Leave::new(&config, &globs).is_err(), "{url}");
        }
    }
}
