//! The one exception: what stays as it is, for a reason.

use std::collections::{BTreeMap, BTreeSet};

use globset::GlobMatcher;
use serde::Deserialize;

use super::{Config, PLACEHOLDER, PathGlob, RefPolicy, UrlGlob, glob, read};
use crate::message::failure::Exception;
use crate::message::finding::{Rule, Span, Subject};
use crate::message::redact;

/// An entry of `allow`: what it covers stays as it is, wherever that is looked at.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "read::AllowKeys")]
pub struct Allow {
    /// What it covers.
    pub what: Named,
    /// How firmly that must be pinned.
    pub refs: RefPolicy,
    /// Why.
    pub reason: String,
    /// The rules that it is about.
    pub rules: BTreeSet<Rule>,
    /// Where it stands.
    pub span: Span,
    /// The line on which it begins.
    pub line_text: String,
}

/// What an entry of `allow` names.
#[derive(Debug, Clone)]
pub enum Named {
    /// Files and repositories.
    Url(UrlGlob),
    /// Charts of repositories.
    Chart(UrlGlob),
    /// Images of functions.
    Image(UrlGlob),
    /// Paths from the top of the repository: what is named, or the file in which something else is found.
    Path(GlobMatcher),
    /// Programs and plugins, as functions name them.
    Program(GlobMatcher),
}

impl Allow {
    /// Returns whether another entry covers the same, whatever its reason.
    pub fn says(&self, other: &Allow) -> bool {
        self.what.key() == other.what.key()
            && self.what.text() == other.what.text()
            && self.refs == other.refs
            && self.rules == other.rules
    }
}

impl Named {
    /// Returns the key that names it.
    fn key(&self) -> &'static str {
        match self {
            Named::Url(_) => "url",
            Named::Path(_) => "path",
            Named::Chart(_) => "chart",
            Named::Image(_) => "image",
            Named::Program(_) => "program",
        }
    }

    /// Returns the glob as it was written.
    pub fn text(&self) -> &str {
        match self {
            Named::Url(glob) | Named::Chart(glob) | Named::Image(glob) => &glob.text,
            Named::Path(glob) | Named::Program(glob) => glob.glob().glob(),
        }
    }

    /// Returns whether it covers what is found in a file, given by its path from the top.
    fn covers(&self, subject: &Subject, file: &str) -> bool {
        match (self, subject) {
            (Named::Url(glob), Subject::Git { .. } | Subject::Http { .. })
            | (Named::Chart(glob), Subject::Helm { .. })
            | (Named::Image(glob), Subject::Image { .. }) => glob.matches(subject),
            (Named::Path(glob), Subject::Path { path }) => glob.is_match(path),
            (Named::Path(glob), Subject::Local) => glob.is_match(file),
            (Named::Program(glob), Subject::Program { program }) => glob.is_match(program),
            _ => false,
        }
    }
}

impl Config {
    /// Returns the index of the first entry of `allow` that covers what a rule finds in a file.
    pub fn allowed_by(&self, rule: Rule, subject: &Subject, file: &str) -> Option<usize> {
        if self.allow.is_empty() {
            return None;
        }
        let refs = RefPolicy::of(rule, subject);
        self.allow
            .iter()
            .position(|allow| allow.rules.contains(&rule) && allow.refs <= refs && allow.what.covers(subject, file))
    }

    /// Returns why something that a rule is about stays as it is; none if no entry of `allow` covers it.
    pub fn reason(&self, rule: Rule, subject: &Subject) -> Option<String> {
        let index = self.allowed_by(rule, subject, "")?;
        let reason = redact::text(&self.allow[index].reason);
        Some(reason.replace(char::is_control, " "))
    }

    /// Returns whether a path from the top may be missing.
    pub fn may_be_missing(&self, path: &str) -> bool {
        let path = path.to_owned();
        let subject = Subject::Path { path };
        let mut rules = Rule::MISSING.into_iter();
        rules.any(|rule| self.allowed_by(rule, &subject, "").is_some())
    }

    /// Returns the glob that matches one path alone, as YAML.
    pub fn path_entry(path: &str) -> String {
        quoted(&globset::escape(path))
    }

    /// Returns the entry of `allow` that covers what a rule finds in a file; none where no entry can.
    pub fn exception(rule: Rule, subject: &Subject, file: &str) -> Option<Exception> {
        if !rule.can_be_allowed() {
            return None;
        }
        let (key, glob) = match subject {
            Subject::Git { .. } | Subject::Http { .. } => ("url", UrlGlob::naming(subject)?),
            Subject::Helm { .. } => ("chart", UrlGlob::naming(subject)?),
            Subject::Image { .. } => ("image", UrlGlob::naming(subject)?),
            Subject::Path { path } => ("path", globset::escape(path)),
            Subject::Local => ("path", globset::escape(file)),
            Subject::Program { program } => ("program", globset::escape(program)),
        };
        let inside = match subject {
            Subject::Git { path, .. } => path.split('/').filter(|name| !name.is_empty()).count(),
            Subject::Http { .. } | Subject::Helm { .. } => 1,
            _ => 0,
        };
        // What cannot be read back is no entry.
        match key {
            "path" => drop(PathGlob::try_from(glob.clone()).ok()?),
            "program" => drop(glob::compile(&glob).ok()?),
            _ => drop(UrlGlob::parse(&glob).ok()?),
        }
        let repository = glob.rsplitn(inside + 1, '/').last().unwrap_or_default();
        Some(Exception {
            key,
            refs: RefPolicy::of(rule, subject).name(),
            rule: if rule.is_allowed_by_default() { "" } else { rule.id() },
            repository: repository.to_owned(),
            glob,
        })
    }

    /// Returns the entries of `allow` for all of these, as YAML, one for each repository: about what several have in
    /// common.
    pub fn entries(exceptions: &[&Exception]) -> Vec<String> {
        let mut groups: BTreeMap<(&str, &str, &str), Vec<&Exception>> = BTreeMap::new();
        for one in exceptions {
            let kind = (one.key, one.repository.as_str(), one.rule);
            groups.entry(kind).or_default().push(one);
        }
        let entries = groups.into_iter().map(|((key, repository, rule), group)| {
            let globs: BTreeSet<&str> = group.iter().map(|one| one.glob.as_str()).collect();
            let glob = match globs.first() {
                Some(glob) if globs.len() == 1 => glob,
                _ => repository,
            };
            let is_of = |policy: &&RefPolicy| group.iter().any(|one| one.refs == policy.name());
            let refs = RefPolicy::ALL.iter().find(is_of).copied();
            let refs = refs.filter(|_| !["path", "program"].contains(&key));
            let mut entry = format!("- {{{key}: {}", quoted(glob));
            if let Some(refs) = refs.filter(|refs| *refs < RefPolicy::default()) {
                entry.push_str(&format!(", refs: {}", refs.name()));
            }
            if !rule.is_empty() {
                entry.push_str(&format!(", rules: [{rule}]"));
            }
            entry.push_str(&format!(", reason: {PLACEHOLDER}}}"));
            entry
        });
        entries.collect()
    }
}

/// Returns a text as a value between `{` and `}`.
fn quoted(text: &str) -> String {
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

    #[test]
    fn a_printed_entry_means_what_it_was_printed_for() {
        let git = |url: &str, pin| Subject::Git {
            url: url.to_owned(),
            path: "a-b".to_owned(),
            reference: Some("x".to_owned()),
            pin,
        };
        let http = |url: &str| Subject::Http { url: url.to_owned() };
        let helm = |url: &str, version: &str| Subject::Helm {
            url: url.to_owned(),
            chart: "web".to_owned(),
            version: version.to_owned(),
        };
        let image = |image: &str| Subject::Image { image: image.to_owned() };
        let path = |path: &str| Subject::Path { path: path.to_owned() };
        let program = |program: &str| Subject::Program { program: program.to_owned() };
        use Rule::{Function, MissingPath, OutOfScope, RemoteChart, RemoteReference};
        for (rule, subject) in [
            (RemoteReference, git("https://github.com/o/r.git", "tag")),
            (RemoteReference, git("git@host:o/r", "branch")),
            (RemoteReference, git("http://[::1]:8080/o/r", "commit")),
            (RemoteReference, git("file:///srv/r", "none")),
            (RemoteReference, http("https://example.com/x*y'/z.yaml?a=b")),
            (RemoteReference, http("https://h:8443/releases/latest/x")),
            (RemoteChart, helm("https://charts.example/", "1.2.3")),
            (RemoteChart, helm("oci://h/o", "^1")),
            (Function, image("busybox")),
            (Function, image("acme/fn:latest")),
            (Function, image("localhost:5000/fn@sha256:abc")),
            (Function, image("gcr.io/x/fn:v1")),
            (Function, http("https://example.com/x.star")),
            (Function, program("sed")),
            (Function, program("https://example.com/run[1].sh")),
            (MissingPath, path("app/secret.env")),
            (MissingPath, path("a b/[x]*?{y}.env")),
            (MissingPath, path("- it's.env")),
            (MissingPath, path("#a: b")),
            (OutOfScope, Subject::Local),
        ] {
            let file = "apps/kustomization.yaml";
            let exception = Config::exception(rule, &subject, file);
            let exception = exception.unwrap_or_else(|| panic!("{subject:?}"));
            let entry = Config::entries(&[&exception]).concat();
            let config = Config::parse(format!("allow:\n{entry}\n").as_bytes(), "x").unwrap();
            assert_eq!(config.allowed_by(rule, &subject, file), Some(0), "{entry}");
            let other = path("app/other.env");
            assert_eq!(config.allowed_by(rule, &other, "other.yaml"), None);
        }
        assert_eq!(Config::exception(Rule::StaleAllow, &Subject::Local, "x"), None);
    }

    #[test]
    fn rules_refs_and_kind_narrow_an_entry() {
        let reference = Subject::Git {
            url: "https://github.com/o/r".to_owned(),
            path: "a".to_owned(),
            reference: Some("x".to_owned()),
            pin: "branch",
        };
        for (entry, is_covered) in [
            ("url: github.com/o", false),
            ("url: github.com/o, refs: branch", true),
            ("url: github.com/o, refs: any, rules: [floating-ref]", false),
            ("url: github.com/other, refs: any", false),
            ("chart: github.com/o, refs: any", false),
            ("image: github.com/o, refs: any", false),
            ("path: '**', refs: any, rules: [remote-reference]", false),
        ] {
            let text = format!("allow: [{{{entry}, reason: r}}]\n");
            let config = Config::parse(text.as_bytes(), "x").unwrap();
            let reason = config.reason(Rule::RemoteReference, &reference);
            assert_eq!(reason.is_some(), is_covered, "{entry}");
        }
    }

    #[test]
    fn a_path_may_be_missing() {
        let text = "allow:\n- {path: '**/secret.env', reason: r}\n- {path: 'apps/*/gen', reason: r}\n- {path: x, rules: [engine], reason: r}\n";
        let config = Config::parse(text.as_bytes(), "x").unwrap();
        for (path, may) in [
            ("secret.env", true),
            ("apps/web/secret.env", true),
            ("apps/web/gen", true),
            ("apps/web/deep/gen", false),
            ("apps/web/gen/x", false),
            ("my-secret.env", false),
            ("x", false),
        ] {
            assert_eq!(config.may_be_missing(path), may, "{path}");
        }
    }
}
