//! Exceptions: entries of `allow`, each with a reason.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::Hash;
use std::ops::Deref;

use globset::{GlobMatcher, GlobSet};
use serde::Deserialize;

use super::address::{self, Exact};
use super::{Config, PLACEHOLDER, RefPolicy, glob, read};
use crate::message::failure::Exception;
use crate::message::finding::{Rule, Subject};
use crate::message::position::Span;
use crate::message::redact;
use crate::reference::Upstream;

/// An entry of `allow`. A reference that it covers stays as it is, in every command.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "read::AllowKeys")]
pub struct Allow {
    /// The sort of subject: `url` (files and repositories), `chart`, `image`, `path` (from the top of the repository:
    /// the path of a reference, or the file with the finding), `program` (also plugins, as functions name them).
    #[serde(skip)]
    pub key: &'static str,
    /// The value of the key, as written.
    pub text: String,
    pub(super) matcher: Matcher,
    /// How firmly a subject must be pinned; `None` for an entry that names one reference with its ref.
    pub refs: Option<RefPolicy>,
    pub reason: String,
    /// The rules that the entry allows.
    pub rules: BTreeSet<Rule>,
    /// The location of the entry in the configuration.
    pub span: Span,
}

impl Allow {
    /// A key that is equal for entries that cover the same subjects, whatever their reasons.
    pub fn meaning(&self) -> impl Eq + Hash + use<'_> {
        (self.key, &self.text, self.refs, &self.rules)
    }

    /// Whether the entry names exactly one reference.
    pub fn is_exact(&self) -> bool {
        matches!(self.matcher, Matcher::Exact(_))
    }
}

/// The entries of `allow`, indexed by their matches: there may be as many entries as references.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(try_from = "Vec<Allow>")]
pub struct Exceptions {
    entries: Vec<Allow>,
    /// The globs of each key, and the indices of their entries.
    globs: BTreeMap<&'static str, (GlobSet, Vec<usize>)>,
    /// The indices of the entries of a key that name one reference.
    exact: HashMap<(&'static str, Exact), Vec<usize>>,
}

impl TryFrom<Vec<Allow>> for Exceptions {
    type Error = String;

    /// Indexes the entries by their matches. Fails if their globs take too much memory together.
    fn try_from(entries: Vec<Allow>) -> Result<Exceptions, String> {
        // Each key has its own index, because a URL and a path are never compared.
        let mut wide: BTreeMap<&'static str, Vec<(&GlobMatcher, usize)>> = BTreeMap::new();
        let mut exact: HashMap<(&'static str, Exact), Vec<usize>> = HashMap::new();
        for (index, Allow { key, matcher, .. }) in entries.iter().enumerate() {
            match matcher {
                Matcher::Glob(glob) => wide.entry(key).or_default().push((glob, index)),
                Matcher::Exact(readings) => {
                    readings.iter().for_each(|reading| exact.entry((key, reading.clone())).or_default().push(index));
                }
            }
        }
        let mut globs = BTreeMap::new();
        for (key, entries) in wide {
            let (matchers, indices): (Vec<_>, Vec<_>) = entries.into_iter().unzip();
            globs.insert(key, (glob::set(matchers)?, indices));
        }
        Ok(Exceptions { entries, globs, exact })
    }
}

impl Deref for Exceptions {
    type Target = [Allow];

    fn deref(&self) -> &[Allow] {
        &self.entries
    }
}

impl Exceptions {
    /// Sets the location of each entry.
    pub(super) fn set_spans(&mut self, spans: impl Iterator<Item = Span>) {
        self.entries.iter_mut().zip(spans).for_each(|(entry, span)| entry.span = span);
    }

    /// The exact entries as they would be with `refs: any`; entries that are globs already match nothing in the result.
    pub fn widened(&self) -> Exceptions {
        let mut entries = self.entries.clone();
        for entry in &mut entries {
            let wide = compile(entry.key, &entry.text, Some(RefPolicy::Any));
            let wide = wide.ok().filter(|_| entry.is_exact());
            entry.matcher = wide.unwrap_or(Matcher::Exact(Vec::new()));
        }
        // If the globs take too much memory together, only a hint about entries without `refs` is missing.
        Exceptions::try_from(entries).unwrap_or_default()
    }

    /// The indices of the entries that cover a finding in a file, given by its path from the top, in their order: the
    /// first one gives the reason.
    pub fn covering(&self, rule: Rule, subject: &Subject, file: &str) -> Vec<usize> {
        if self.is_empty() {
            return Vec::new();
        }
        // Looked up, not searched: there may be as many entries as references.
        let (refs, key) = (RefPolicy::of(rule, subject), key(subject));
        let exact = subject.upstream().and_then(address::exact).map(Exact::entries).unwrap_or_default();
        let exact = exact.into_iter().filter_map(|exact| self.exact.get(&(key, exact))).flatten().copied();
        let mut matching: BTreeSet<usize> = exact.collect();
        if let Some((globs, indices)) = self.globs.get(key) {
            let matched = match subject {
                Subject::Path { path } => globs.matches(path).into_iter().collect(),
                Subject::Local => globs.matches(file).into_iter().collect(),
                Subject::Program { program } => globs.matches(program).into_iter().collect(),
                Subject::Remote(upstream) => address::covering(globs, upstream),
            };
            matching.extend(matched.into_iter().map(|index| indices[index]));
        }
        // Rules and refs are compared last: the indexes only know subjects.
        matching.retain(|index| {
            let entry = &self.entries[*index];
            entry.refs.is_none_or(|least| least <= refs) && entry.rules.contains(&rule)
        });
        matching.into_iter().collect()
    }
}

/// The pattern of an entry.
#[derive(Debug, Clone)]
pub(super) enum Matcher {
    Glob(GlobMatcher),
    /// One reference, once for each way to read it.
    Exact(Vec<Exact>),
}

/// Reads the value of an entry with this key and `refs`: with `refs` a URL is a glob, without it names one reference.
/// Fails with the rest of a sentence ("the entry for `x` …").
pub(super) fn compile(key: &str, text: &str, refs: Option<RefPolicy>) -> Result<Matcher, String> {
    match key {
        "path" if text == "." => Err("matches nothing: write the path of a file or directory".to_owned()),
        "path" => glob::from_top(text).map(Matcher::Glob),
        "program" => glob::compile(text).map(Matcher::Glob),
        _ if refs.is_some() => address::compile(text).map(Matcher::Glob),
        _ => address::compile_exact(key, text).map(Matcher::Exact),
    }
}

/// The key of an entry that could cover a subject.
fn key(subject: &Subject) -> &'static str {
    match subject {
        Subject::Remote(Upstream::Git { .. } | Upstream::File { .. }) => "url",
        Subject::Remote(Upstream::Chart { .. }) => "chart",
        Subject::Remote(Upstream::Image { .. }) => "image",
        Subject::Path { .. } | Subject::Local => "path",
        Subject::Program { .. } => "program",
    }
}

impl Config {
    /// The index of the first entry of `allow` that covers a finding in a file; `None` if no entry does.
    pub fn allowed_by(&self, rule: Rule, subject: &Subject, file: &str) -> Option<usize> {
        self.allow.covering(rule, subject, file).first().copied()
    }

    /// The reason of the entry of `allow` that covers a subject; `None` if no entry does.
    pub fn reason(&self, rule: Rule, subject: &Subject) -> Option<String> {
        let index = self.allowed_by(rule, subject, "")?;
        let reason = redact::text(&self.allow[index].reason);
        // A lock has the reason, and takes no control characters.
        Some(reason.replace(char::is_control, " "))
    }

    /// Whether a path from the top may be missing.
    pub fn may_be_missing(&self, path: &str) -> bool {
        let subject = Subject::Path { path: path.to_owned() };
        let mut rules = Rule::MISSING.into_iter();
        rules.any(|rule| self.allowed_by(rule, &subject, "").is_some())
    }

    /// The glob that matches only this path, as YAML.
    pub fn path_entry(path: &str) -> String {
        quoted(&globset::escape(path))
    }

    /// The entry of `allow` that covers this finding and no other reference; `None` if no entry can.
    pub fn exception(rule: Rule, subject: &Subject, file: &str) -> Option<Exception> {
        if !rule.can_be_allowed() {
            return None;
        }
        let text = match subject {
            Subject::Path { path } => globset::escape(path),
            Subject::Local => globset::escape(file),
            Subject::Program { program } => globset::escape(program),
            Subject::Remote(Upstream::Image { image }) => image.clone(),
            Subject::Remote(upstream) => upstream.to_string(),
        };
        // The program must not propose an entry that it would refuse, or that would not cover the finding.
        let key = key(subject);
        let entry = Allow {
            key,
            text: text.clone(),
            matcher: compile(key, &text, None).ok()?,
            refs: None,
            reason: PLACEHOLDER.to_owned(),
            rules: BTreeSet::from([rule]),
            span: Span::default(),
        };
        Exceptions::try_from(vec![entry]).ok()?.covering(rule, subject, file).first()?;
        let rule = if rule.is_allowed_by_default() { "" } else { rule.id() };
        Some(Exception { key, rule, text })
    }

    /// The entry of `allow` for all charts of a repository, as YAML.
    pub fn entry_of_charts(url: &str) -> String {
        format!("- {{chart: {}, refs: any, reason: '{PLACEHOLDER}'}}", quoted(url))
    }

    /// The entries of `allow` for these exceptions, sorted and without repetition, as YAML with a placeholder as
    /// reason.
    pub fn entries(exceptions: &[&Exception]) -> Vec<String> {
        let mut entries = Vec::new();
        for Exception { key, rule, text } in exceptions.iter().copied().collect::<BTreeSet<_>>() {
            let rules = if rule.is_empty() { String::new() } else { format!(", rules: [{rule}]") };
            entries.push(format!("- {{{key}: {}{rules}, reason: '{PLACEHOLDER}'}}", quoted(text)));
        }
        entries
    }
}

/// A text as a YAML value between `{` and `}`, quoted if necessary.
pub(crate) fn quoted(text: &str) -> String {
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "._/-".contains(c));
    if is_plain && text.starts_with(|c: char| c.is_ascii_alphanumeric()) {
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
        let git = |url: &str, reference: &str| {
            let (url, reference) = (url.to_owned(), Some(reference.to_owned()));
            Subject::Remote(Upstream::Git { url, reference, submodules: true, path: "a-b".to_owned() })
        };
        let http = |url: &str| Subject::Remote(Upstream::File { url: url.to_owned() });
        let helm = |url: &str, version: &str| {
            let (url, chart, version) = (url.to_owned(), "web".to_owned(), Some(version.to_owned()));
            Subject::Remote(Upstream::Chart { url, chart, version })
        };
        let image = |image: &str| Subject::Remote(Upstream::Image { image: image.to_owned() });
        let path = |path: &str| Subject::Path { path: path.to_owned() };
        let program = |program: &str| Subject::Program { program: program.to_owned() };
        use Rule::{Function, MissingPath, OutOfScope, RemoteChart, RemoteReference};
        for (rule, subject) in [
            (RemoteReference, git("https://github.com/o/r.git", "v1")),
            (RemoteReference, git("git@host:o/r", "main")),
            (RemoteReference, git("http://[::1]:8080/o/r", &"0".repeat(40))),
            (RemoteReference, git("file:///srv/r", "abc1234")),
            (RemoteReference, http("https://example.com/xy'/z.yaml?a=b")),
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
            let elsewhere = match subject.clone() {
                Subject::Remote(git @ Upstream::Git { .. }) => git.at("b").subject(),
                Subject::Remote(Upstream::File { url }) => http(&format!("{url}x")),
                Subject::Remote(Upstream::Chart { url, .. }) => helm(&url, "9.9.9"),
                Subject::Remote(Upstream::Image { image: name }) => image(&format!("{name}0")),
                _ => path("elsewhere"),
            };
            assert_eq!(config.allowed_by(rule, &elsewhere, "elsewhere"), None, "{entry}");
            let other = path("app/other.env");
            assert_eq!(config.allowed_by(rule, &other, "other.yaml"), None);
        }
        assert_eq!(Config::exception(Rule::StaleAllow, &Subject::Local, "x"), None);
    }

    #[test]
    fn rules_refs_and_kind_narrow_an_entry() {
        let reference = Upstream::named("https://github.com/o/r//a?ref=x").subject();
        for (entry, is_covered) in [
            ("url: github.com/o", false),
            ("url: 'github.com/o/r//a?ref=x'", true),
            ("url: github.com/o, refs: tag", false),
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
